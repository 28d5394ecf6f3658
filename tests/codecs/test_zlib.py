import zlib

import pytest

from omnizarr.errors import ChecksumError, ChunkError
from tests.codecs.cases import PLAIN, bound


@pytest.mark.parametrize("level", range(-1, 10))
def test_python_reads_what_is_written(level):
    assert zlib.decompress(bound("numcodecs.zlib", {"level": level}, PLAIN).encode(PLAIN)) == PLAIN


def test_bytes_behind_the_stream_are_ignored():
    assert bound("zlib", {}, PLAIN).decode(zlib.compress(PLAIN) + b"more") == PLAIN


def test_wrong_checksum_is_reported():
    data = bytearray(zlib.compress(PLAIN))
    data[-1] ^= 1
    with pytest.raises(ChecksumError):
        bound("zlib", {}, PLAIN).decode(bytes(data))


def test_gzip_stream_is_no_zlib_stream():
    with pytest.raises(ChunkError, match="incorrect header check"):
        bound("zlib", {}, PLAIN).decode(zlib.compress(PLAIN, 1, 31))
