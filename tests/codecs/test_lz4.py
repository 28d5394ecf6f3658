import numcodecs
import pytest

from omnizarr.errors import ChunkError, ChunkSizeError
from tests.codecs.cases import PLAIN, bound


@pytest.mark.parametrize("acceleration", [0, 1, 50])
def test_agrees_with_numcodecs(acceleration):
    codec = bound("numcodecs.lz4", {"acceleration": acceleration}, PLAIN)
    theirs = numcodecs.LZ4(acceleration)
    assert codec.encode(PLAIN) == theirs.encode(PLAIN)
    assert codec.decode(theirs.encode(PLAIN)) == PLAIN


def test_one_literal_run_is_read():
    # size 3, then a token for three literals: LZ4 block format
    assert bytes(bound("lz4", {}, b"abc").decode(bytes.fromhex("0300000030") + b"abc")) == b"abc"


def test_size_that_cannot_be_true_is_refused_whatever_the_bound():
    data = (2**31 - 1).to_bytes(4, "little") + b"\x30abc"
    with pytest.raises(ChunkSizeError):
        bound("lz4", {}, bytes(10)).decode(data)


def test_empty_value():
    codec = bound("lz4", {}, b"")
    assert codec.decode(numcodecs.LZ4().encode(b"")) == b""
    with pytest.raises(ChunkError):
        codec.decode(bytes(4) + b"\x30abc")
