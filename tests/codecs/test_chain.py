"""A chain runs its codecs in order, and refuses those that do not fit each other."""

import itertools
import sys

import numpy as np
import pytest

from omnizarr import errors
from omnizarr.codecs import chain
from omnizarr.codecs.contract import ArraySpec, ChunkPolicy
from omnizarr.model import Named, datatypes

BYTES = Named("bytes", {"endian": "little"})
GZIP = Named("gzip", {"level": 1})
CRC = Named("crc32c")
SWAP = Named("transpose", {"order": [1, 0]})


def spec(dtype="int32", shape=(3, 4), fill_value=0, **policy):
    data_type = datatypes.bind(Named(dtype))
    return ArraySpec(shape, data_type, data_type.dtype.type(fill_value), ChunkPolicy(**policy))


VALUES = np.arange(12, dtype="int32").reshape(3, 4)


@pytest.mark.parametrize("codecs", [[BYTES], [SWAP, BYTES], [BYTES, GZIP], [SWAP, BYTES, GZIP, CRC]], ids=str)
def test_decode_undoes_encode(codecs):
    bound = chain.bind(codecs, spec())
    data = bytes(bound.encode(VALUES))
    np.testing.assert_array_equal(bound.decode(data), VALUES)
    for order in "CF":
        out = np.empty((3, 4), "int32", order=order)
        bound.decode_into(data, out)
        np.testing.assert_array_equal(out, VALUES)
    part = np.empty((2, 2), "int32")
    bound.decode_part(data, (slice(1, 3, 1), slice(0, 4, 3)), part)
    np.testing.assert_array_equal(part, VALUES[1:3, 0:4:3])


def test_codecs_run_in_the_order_of_the_document():
    assert bytes(chain.bind([SWAP, BYTES], spec()).encode(VALUES)) == VALUES.T.tobytes()


@pytest.mark.parametrize(
    ("codecs", "position"),
    [
        ([GZIP, BYTES], 0),
        ([BYTES, BYTES], 1),
        ([BYTES, SWAP], 1),
        ([SWAP, BYTES, GZIP, SWAP], 3),
        ([SWAP], None),
        ([], None),
    ],
    ids=str,
)
def test_codec_out_of_place_is_named(codecs, position):
    with pytest.raises(errors.CodecError) as caught:
        chain.bind(codecs, spec())
    assert caught.value.pointer == ("/codecs" if position is None else f"/codecs/{position}")


def test_unknown_codec_is_an_error():
    with pytest.raises(errors.UnknownCodecError) as caught:
        chain.bind([BYTES, Named("zzip")], spec())
    assert (caught.value.codec, caught.value.pointer) == ("zzip", "/codecs/1")


def test_unknown_codec_that_need_not_be_understood_is_left_out():
    bound = chain.bind([BYTES, Named("zzip", {}, must_understand=False)], spec())
    np.testing.assert_array_equal(bound.decode(VALUES.tobytes()), VALUES)
    with pytest.raises(errors.UnknownCodecError):
        bound.encode(VALUES)


def test_error_bears_the_name_of_its_step():
    bound = chain.bind([BYTES, GZIP, CRC], spec())
    data = bytearray(bound.encode(VALUES))
    data[3] ^= 1
    with pytest.raises(errors.ChecksumError) as caught:
        bound.decode(bytes(data))
    assert caught.value.codec == "crc32c"


def test_write_changes_what_is_selected_and_keeps_the_rest():
    bound = chain.bind([SWAP, BYTES, GZIP], spec())
    new = bound.write(bound.encode(VALUES), (slice(0, 2, 1), slice(1, 3, 1)), np.full((2, 2), -1, "int32"))
    expected = VALUES.copy()
    expected[0:2, 1:3] = -1
    np.testing.assert_array_equal(bound.decode(new), expected)


def test_write_of_only_the_fill_value_stores_nothing():
    bound = chain.bind([BYTES], spec(fill_value=7))
    assert bound.write(None, (slice(0, 3, 1), slice(0, 4, 1)), np.full((3, 4), 7, "int32")) is None
    kept = chain.bind([BYTES], spec(fill_value=7, write_empty_chunks=True))
    assert kept.write(None, (slice(0, 1, 1), slice(0, 1, 1)), np.full((1, 1), 7, "int32")) is not None


PAYLOAD = np.array([0x7FF8000000000001], "u8").view("f8")


@pytest.mark.parametrize(
    ("dtype", "fill", "value", "empty"),
    [
        ("float64", np.nan, np.nan, True),
        ("float64", np.nan, PAYLOAD[0], False),
        ("float64", 0.0, -0.0, False),
        ("float64", -0.0, -0.0, True),
        ("complex128", 0j, complex(0, -0.0), False),
        ("complex128", 1j, 1j, True),
        ("bool", False, False, True),
        ("uint8", 255, 255, True),
    ],
)
def test_empty_means_equal_bit_for_bit(dtype, fill, value, empty):
    what = spec(dtype, fill_value=fill)
    assert chain.holds_only(np.full((3, 4), value, dtype), what) is empty
    assert chain.holds_only(np.full((4, 3), value, dtype).T, what) is empty
    assert chain.holds_only(np.full((6, 8), value, dtype)[::2, ::2], what) is empty
    mixed = np.full((3, 4), fill, dtype)
    mixed[2, 3] = 1 if fill != 1 else 2
    assert not chain.holds_only(mixed, what)


def test_missing_chunk_is_an_error_on_request():
    with pytest.raises(errors.ChunkNotFoundError):
        chain.bind([BYTES], spec(missing="error")).fill_missing(np.empty((3, 4), "int32"))


# Bounds


def bounds(*codecs, shape=(1000,), dtype="uint8"):
    bound = chain.bind(
        [Named(name, configuration) for name, configuration in codecs], ArraySpec(shape, datatypes.parse(dtype), 0)
    )
    return bound, [codec.encoded.max_nbytes for _, codec in bound.compressors]


def test_bounds_of_a_chain_grow_little_with_each_compressor():
    _, found = bounds(("bytes", {}), *[("gzip", {"level": 1})] * 30, shape=(10**6,))
    assert found[0] >= 10**6
    assert found == sorted(found)
    assert found[-1] < 10 * 10**6
    bound, found = bounds(("bytes", {}), *[("gzip", {"level": 1})] * 400, shape=(10**6,))
    assert bound.encoded.max_nbytes <= 2**28 < found[-1]


def test_chains_of_compressors_read_what_they_wrote():
    compressors = ("gzip", "zstd", "numcodecs.bz2", "numcodecs.base64")
    for names in (*itertools.product(compressors, repeat=2), *itertools.product(compressors, repeat=3)):
        noise = np.random.default_rng(1).integers(0, 255, 100_000 if len(names) == 2 else 5000, "u1")
        codecs = [Named(name, {"level": 1} if name != "numcodecs.base64" else {}) for name in names]
        bound = chain.bind([Named("bytes", {}), *codecs], ArraySpec(noise.shape, datatypes.parse("uint8"), 0))
        np.testing.assert_array_equal(bound.decode(bound.encode(noise)), noise)


def test_codecs_that_always_make_too_much_of_a_chunk_are_refused():
    with pytest.raises(errors.CodecError, match="too much of a chunk"):
        bounds(("numcodecs.astype", {"encode_dtype": "<U100000", "decode_dtype": "|u1"}), ("bytes", {}))


@pytest.mark.parametrize(("dtype", "codecs", "most"), [
    ("uint8", ("bytes",), 2**28),
    ("uint8", ("bytes", "crc32c"), 2**28),
    ("string", ("vlen-utf8",), sys.maxsize),
])  # fmt: skip
def test_stored_chunks_may_have_what_the_setting_allows(dtype, codecs, most):
    spec = ArraySpec((4,), datatypes.parse(dtype), "" if dtype == "string" else 0)
    assert chain.bind([Named(name, {}) for name in codecs], spec).most_stored == most
