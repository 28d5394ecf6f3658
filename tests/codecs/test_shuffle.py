import numcodecs
import pytest

from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.registry import find
from omnizarr.errors import ChunkSizeError, CodecError
from tests.codecs.cases import PLAIN, bound


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_agrees_with_numcodecs(size):
    codec, theirs = bound("numcodecs.shuffle", {"elementsize": size}, PLAIN), numcodecs.Shuffle(size)
    assert bytes(codec.encode(PLAIN)) == bytes(theirs.encode(PLAIN))
    assert bytes(codec.decode(bytes(theirs.encode(PLAIN)))) == PLAIN


def test_bytes_left_over_are_read_from_the_end():
    # as the filter of HDF5 does it
    codec = bound("shuffle", {"elementsize": 4}, b"abcdABCDxy")
    assert bytes(codec.decode(b"aAbBcCdDxy")) == b"abcdABCDxy"


@pytest.mark.parametrize("data", [b"abcdABCDxy", b"ab"])
def test_bytes_left_over_are_not_written(data):
    # numcodecs, and so zarr-python, could not read them
    with pytest.raises(ValueError, match="multiple"):
        numcodecs.Shuffle(4).decode(data)
    with pytest.raises(CodecError, match="multiple"):
        bound("shuffle", {"elementsize": 4}, data).encode(data)


@pytest.mark.parametrize(("elementsize", "size"), [(0, 8), ("0", 8), ("2", 2), (4, 4)])
def test_size_of_items(elementsize, size):
    assert find("shuffle")({"elementsize": elementsize}, BytesSpec(80, 8)).item_size == size


def test_size_is_kept():
    codec = find("shuffle")({}, BytesSpec(None, 4, 100))
    assert (codec.encoded.nbytes, codec.encoded.max_nbytes) == (None, 100)
    with pytest.raises(ChunkSizeError):
        codec.decode(bytes(101))
