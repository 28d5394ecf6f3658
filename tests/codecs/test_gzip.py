import gzip
import zlib

import pytest

from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.gzip import from_zlib
from omnizarr.errors import ChecksumError, ChunkError, ChunkSizeError
from tests.codecs.cases import PLAIN, bound


def codec(data=PLAIN):
    return bound("gzip", {"level": 5}, data)


def test_python_reads_what_is_written():
    assert gzip.decompress(codec().encode(PLAIN)) == PLAIN


def test_equal_bytes_are_written_equal():
    # no time, no name in the header
    assert codec().encode(PLAIN)[:8] == bytes.fromhex("1f8b080000000000")


@pytest.mark.parametrize("level", range(10))
def test_every_level_is_read(level):
    assert codec().decode(gzip.compress(PLAIN, level)) == PLAIN


def test_several_members_are_one_value():
    assert codec().decode(gzip.compress(PLAIN[:100]) + gzip.compress(b"") + gzip.compress(PLAIN[100:])) == PLAIN


def test_zeros_behind_are_ignored():
    assert codec().decode(gzip.compress(PLAIN) + bytes(100)) == PLAIN


def test_rubbish_behind_is_refused():
    with pytest.raises(ChunkError, match="follow"):
        codec().decode(gzip.compress(PLAIN) + b"rubbish")


def test_cut_stream_is_refused():
    data = gzip.compress(PLAIN)
    for length in (len(data) - 1, len(data) - 8, len(data) // 2, 5):
        with pytest.raises(ChunkError, match="cut off"):
            codec().decode(data[:length])


def test_wrong_checksum_is_reported():
    data = bytearray(gzip.compress(PLAIN))
    data[-5] ^= 1
    with pytest.raises(ChecksumError):
        codec().decode(bytes(data))


def test_second_member_too_many_is_refused():
    with pytest.raises(ChunkSizeError):
        codec().decode(gzip.compress(PLAIN) * 2)


def test_default_level_of_numcodecs_is_1():
    assert bound("numcodecs.gzip", {}, PLAIN).encode(PLAIN) == zlib.compress(PLAIN, 1, 31)


def test_empty_value():
    assert codec(b"").decode(gzip.compress(b"")) == b""


@pytest.mark.parametrize("spec", [BytesSpec(len(PLAIN)), BytesSpec(None, max_nbytes=len(PLAIN)), BytesSpec(None)])
@pytest.mark.parametrize("after", [b"", b"what follows a stream is ignored"])
@pytest.mark.parametrize("level", range(10))
def test_zlib_stream_becomes_a_member_without_being_compressed_again(level, after, spec):
    stream = zlib.compress(PLAIN, level)
    found = from_zlib(stream + after, spec)
    assert gzip.decompress(found) == PLAIN
    assert found[10:-8] == stream[2:-4]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"garbage", ChunkError),
        (b"", ChunkError),
        (zlib.compress(PLAIN)[:-1], ChunkError),
        (zlib.compress(PLAIN)[:-4] + bytes(4), ChecksumError),
        (zlib.compress(PLAIN + b"x"), ChunkSizeError),
        (zlib.compress(PLAIN[1:]), ChunkSizeError),
    ],
)
def test_broken_zlib_stream_becomes_nothing(data, error):
    with pytest.raises(error):
        from_zlib(data, BytesSpec(len(PLAIN)))
