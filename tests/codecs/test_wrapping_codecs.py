"""conditional, n5_default, omnizarr.bytes_filter, and codecs of other packages."""

import gzip
import struct

import numcodecs
import numpy as np
import pytest

from omnizarr.codecs import foreign
from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.registry import find
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from tests.codecs.cases import FLOATS, NUMBERS, PLAIN, array_spec, bound

CONDITIONAL = {"codecs": [{"name": "gzip", "configuration": {"level": 5}}, {"name": "crc32c"}]}
N5 = {
    "codecs": [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {"name": "bytes", "configuration": {"endian": "big"}},
        {"name": "gzip", "configuration": {"level": 5}},
    ]
}


def test_mask_says_which_codecs_were_applied():
    codec = bound("conditional", CONDITIONAL, b"abc")
    assert bytes(codec.decode(b"\x00abc")) == b"abc"
    assert bytes(codec.decode(b"\x01" + gzip.compress(b"abc"))) == b"abc"
    with pytest.raises(ChunkError):
        codec.decode(b"\x04abc")


def test_what_makes_a_chunk_longer_is_left_out():
    assert bytes(bound("conditional", CONDITIONAL, b"abc").encode(b"abc")) == b"\x00abc"
    assert bound("conditional", CONDITIONAL, bytes(1000)).encode(bytes(1000))[0] == 1


def test_header_may_have_more_bits():
    codec = bound("conditional", {**CONDITIONAL, "header_bits": 16}, b"abc")
    assert bytes(codec.encode(b"abc")) == b"\x00\x00abc"


def test_array_codec_cannot_be_conditional():
    with pytest.raises(CodecError):
        bound("conditional", {"codecs": ["bytes"]}, b"abc")


def block(array):
    elements = array.T.astype(">i4").tobytes()
    return struct.pack(">HHII", 0, 2, *array.shape) + gzip.compress(elements)


def test_n5_block_is_read():
    codec = bound("n5_default", N5, NUMBERS)
    np.testing.assert_array_equal(codec.decode(block(NUMBERS)), NUMBERS)
    assert codec.encode(NUMBERS)[:12] == struct.pack(">HHII", 0, 2, 10, 12)


def test_truncated_n5_block_is_filled_up():
    codec = bound("n5_default", N5, NUMBERS, fill_value=7)
    decoded = codec.decode(block(NUMBERS[:3, :5]))
    np.testing.assert_array_equal(decoded[:3, :5], NUMBERS[:3, :5])
    assert (decoded[3:] == 7).all()
    assert (decoded[:, 5:] == 7).all()


@pytest.mark.parametrize("header", [(1, 2, 10, 12), (0, 3, 10, 12), (0, 2, 11, 12), (0, 2, 2**32 - 1, 2**32 - 1)])
def test_n5_block_of_another_form_is_refused(header):
    with pytest.raises(ChunkError):
        bound("n5_default", N5, NUMBERS).decode(struct.pack(">HHII", *header) + block(NUMBERS)[12:])


@pytest.mark.parametrize(
    "configuration",
    [
        {"id": "delta", "dtype": "<i4"},
        {"id": "delta", "dtype": "<i4", "astype": "<i2"},
        {"id": "astype", "encode_dtype": "<i8", "decode_dtype": "<i4"},
        {"id": "fixedscaleoffset", "offset": 1, "scale": 2, "dtype": "<i4", "astype": "<i8"},
    ],
)
@pytest.mark.parametrize("spec", [BytesSpec(400), BytesSpec(None)])
def test_filter_of_bytes_agrees_with_numcodecs(configuration, spec):
    data = np.arange(100, dtype="<i4").tobytes()
    theirs = numcodecs.get_codec(dict(configuration))
    codec = find("omnizarr.bytes_filter")(configuration, spec)
    stored = np.asarray(theirs.encode(np.frombuffer(data, "u1"))).tobytes()
    assert bytes(codec.encode(data)) == stored
    assert bytes(codec.decode(stored)) == data
    assert codec.encoded.nbytes in (None, len(stored))


@pytest.mark.parametrize("codec_id", ["json2", "bitround", "gzip", None])
def test_other_filters_cannot_stand_behind_bytes(codec_id):
    with pytest.raises(CodecError):
        find("omnizarr.bytes_filter")({"id": codec_id}, BytesSpec(4))


def test_filter_of_bytes_of_half_an_element_is_refused():
    with pytest.raises(ChunkSizeError):
        find("omnizarr.bytes_filter")({"id": "delta", "dtype": "<i4"}, BytesSpec(None)).decode(b"abc")


@pytest.mark.parametrize("name", ["GzipCodec", "ZstdCodec", "Crc32cCodec", "BloscCodec"])
def test_bytes_codecs_of_zarr_python(name):
    zarr = pytest.importorskip("zarr", reason="its codec classes")
    kind, bind = foreign.from_zarr_python(getattr(zarr.codecs, name)().to_dict()["name"], getattr(zarr.codecs, name))
    configuration = getattr(zarr.codecs, name)(**({"typesize": 4} if name == "BloscCodec" else {})).to_dict()
    codec = bind(configuration.get("configuration", {}), BytesSpec(len(PLAIN), 4))
    assert kind == "bytes to bytes"
    assert bytes(codec.decode(codec.encode(PLAIN))) == PLAIN
    with pytest.raises(ChunkError):
        codec.decode(b"")


def test_array_codecs_of_zarr_python():
    zarr = pytest.importorskip("zarr", reason="its codec classes")
    _, bind = foreign.from_zarr_python("transpose", zarr.codecs.TransposeCodec)
    codec = bind({"order": [1, 0]}, array_spec(NUMBERS))
    assert codec.encoded.shape == (12, 10)
    np.testing.assert_array_equal(codec.encode(NUMBERS), NUMBERS.T)
    np.testing.assert_array_equal(codec.decode(NUMBERS.T), NUMBERS)
    _, bind = foreign.from_zarr_python("bytes", zarr.codecs.BytesCodec)
    serializer = bind({"endian": "big"}, array_spec(FLOATS))
    assert bytes(serializer.encode(FLOATS)) == FLOATS.astype(">f8").tobytes()
    np.testing.assert_array_equal(serializer.decode(FLOATS.astype(">f8").tobytes()), FLOATS)


def test_codec_of_zarr_python_that_cannot_be_set_up():
    zarr = pytest.importorskip("zarr", reason="its codec classes")
    _, bind = foreign.from_zarr_python("gzip", zarr.codecs.GzipCodec)
    with pytest.raises(CodecError):
        bind({"level": 99}, BytesSpec(1))
