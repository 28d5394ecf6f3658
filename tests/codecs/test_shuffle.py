import numcodecs
import numpy as np
import pytest

from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.registry import find
from omnizarr.errors import ChunkSizeError
from tests.codecs.cases import PLAIN, bound


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_agrees_with_numcodecs(size):
    codec, theirs = bound("numcodecs.shuffle", {"elementsize": size}, PLAIN), numcodecs.Shuffle(size)
    assert bytes(codec.encode(PLAIN)) == bytes(theirs.encode(PLAIN))
    assert bytes(codec.decode(bytes(theirs.encode(PLAIN)))) == PLAIN


@pytest.mark.parametrize(("plain", "shuffled"), [(b"abcdABCDxy", b"aAbBcCdDxy"), (b"ab", b"ab"), (b"abcdx", b"abcdx")])
def test_bytes_left_over_stay_at_the_end(plain, shuffled):
    # as the filter of HDF5 does it; numcodecs refuses them
    codec = bound("shuffle", {"elementsize": 4}, plain)
    assert (bytes(codec.encode(plain)), bytes(codec.decode(shuffled))) == (shuffled, plain)


def test_a_checksum_of_odd_size_is_shuffled_as_netcdf_c_does():
    # what netCDF-C 4.10.2 stored of the doubles 1, 2, 3, 4, 5: fletcher32, then shuffle
    stored = bytes.fromhex("00" * 30 + "f0000810143f40404040401d3fa7")
    plain = np.arange(1.0, 6.0).astype("<f8").tobytes() + bytes.fromhex("401d3fa7")
    codec = bound("shuffle", {"elementsize": 8}, plain)
    assert bytes(codec.encode(plain)) == stored
    assert bytes(codec.decode(stored)) == plain


@pytest.mark.parametrize(("elementsize", "size"), [(0, 8), ("0", 8), ("2", 2), (4, 4)])
def test_size_of_items(elementsize, size):
    assert find("shuffle")({"elementsize": elementsize}, BytesSpec(80, 8)).item_size == size


def test_size_is_kept():
    codec = find("shuffle")({}, BytesSpec(None, 4, 100))
    assert (codec.encoded.nbytes, codec.encoded.max_nbytes) == (None, 100)
    with pytest.raises(ChunkSizeError):
        codec.decode(bytes(101))
