import numcodecs
import numpy as np
import pytest

from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.registry import find
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError
from tests.codecs.cases import PLAIN, bound


@pytest.mark.parametrize("cname", ["blosclz", "lz4", "lz4hc", "zlib", "zstd"])
@pytest.mark.parametrize(("shuffle", "number"), [("noshuffle", 0), ("shuffle", 1), ("bitshuffle", 2)])
def test_agrees_with_numcodecs(cname, shuffle, number):
    ours = bound("blosc", {"cname": cname, "clevel": 5, "shuffle": shuffle, "typesize": 4, "blocksize": 0}, PLAIN)
    theirs = numcodecs.Blosc(cname, 5, number).encode(np.frombuffer(PLAIN, "<i4"))
    assert bytes(ours.decode(theirs)) == PLAIN
    # the same flags and item size
    assert ours.encode(PLAIN)[2:4] == theirs[2:4]
    assert bytes(numcodecs.Blosc().decode(ours.encode(PLAIN))) == PLAIN


@pytest.mark.parametrize(("given", "item_size", "meant"), [(-1, 4, 1), (-1, 1, 2), (0, 4, 0), (2, 4, 2)])
def test_shuffle_of_numcodecs(given, item_size, meant):
    assert find("numcodecs.blosc")({"shuffle": given}, BytesSpec(None, item_size)).shuffle == meant


@pytest.mark.parametrize(("configuration", "typesize"), [({}, 4), ({"typesize": 2}, 2), ({"typesize": 300}, 1)])
def test_size_of_items(configuration, typesize):
    assert bound("blosc", {"cname": "lz4", **configuration}, PLAIN).encode(PLAIN)[3] == typesize


def test_more_than_two_gibibytes_cannot_be_encoded():
    with pytest.raises(CodecError, match="smaller chunks"):
        bound("blosc", {"cname": "lz4"}, PLAIN).encode(
            np.lib.stride_tricks.as_strided(np.zeros(1, "u1"), (2**31,), (0,))
        )


def test_cut_buffer_is_refused():
    codec = bound("blosc", {"cname": "lz4"}, PLAIN)
    data = codec.encode(PLAIN)
    for length in (3, 16, len(data) - 1):
        with pytest.raises(ChunkSizeError):
            codec.decode(data[:length])


def test_another_version_of_the_format_is_refused():
    codec = bound("blosc", {"cname": "lz4"}, PLAIN)
    with pytest.raises(ChunkError, match="version 5"):
        codec.decode(b"\x05" + codec.encode(PLAIN)[1:])


def test_snappy_can_be_named_if_not_run():
    codec = bound("blosc", {"cname": "snappy"}, PLAIN)
    if "snappy" not in numcodecs.blosc.list_compressors():
        with pytest.raises(CodecError):
            codec.encode(PLAIN)


def test_empty_value():
    codec = bound("blosc", {"cname": "lz4"}, b"")
    assert codec.decode(codec.encode(b"")) == b""
