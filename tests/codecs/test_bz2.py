import bz2

import pytest

from omnizarr.errors import ChunkError
from tests.codecs.cases import PLAIN, bound


@pytest.mark.parametrize("level", [1, 9])
def test_python_reads_what_is_written(level):
    assert bz2.decompress(bound("numcodecs.bz2", {"level": level}, PLAIN).encode(PLAIN)) == PLAIN


def test_several_streams_are_one_value():
    assert bound("bz2", {}, PLAIN).decode(bz2.compress(PLAIN[:50]) + bz2.compress(PLAIN[50:])) == PLAIN


def test_bytes_behind_the_stream_are_ignored():
    assert bound("bz2", {}, PLAIN).decode(bz2.compress(PLAIN) + b"more") == PLAIN


def test_broken_block_is_refused():
    data = bytearray(bz2.compress(PLAIN))
    data[len(data) // 2] ^= 1
    with pytest.raises(ChunkError):
        bound("bz2", {}, PLAIN).decode(bytes(data))
