import numcodecs
import pytest

from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.registry import find
from omnizarr.errors import ChecksumError, ChunkError, ChunkSizeError
from tests.codecs.cases import PLAIN, bound

MAGIC = bytes.fromhex("28b52ffd")
TEXT = b"abcdefgh" * 40


def raw_block(data, *, last=True):
    return (len(data) << 3 | last).to_bytes(3, "little") + data


def silent(*blocks):
    """A frame, made by RFC 8878, that does not state the size of its content (window of 2 MiB)."""
    return MAGIC + b"\x00\x58" + b"".join(raw_block(b, last=b is blocks[-1]) for b in blocks)


def compressed_silent(data):
    """The same, with the compressed blocks of numcodecs."""
    frame = numcodecs.Zstd(3).encode(data)
    size = (1, 2, 4, 8)[frame[4] >> 6]
    assert frame[4] & 0x20
    return MAGIC + b"\x00\x58" + frame[5 + size :]


def codec(data):
    return bound("zstd", {"level": 3}, data)


@pytest.mark.parametrize("level", [-131072, -5, 0, 1, 22])
@pytest.mark.parametrize("checksum", [False, True])
def test_agrees_with_numcodecs(level, checksum):
    ours = bound("zstd", {"level": level, "checksum": checksum}, PLAIN)
    theirs = numcodecs.Zstd(level, checksum)
    assert ours.encode(PLAIN) == theirs.encode(PLAIN)
    assert ours.decode(theirs.encode(PLAIN)) == PLAIN


@pytest.mark.parametrize("frame", [silent(TEXT), silent(TEXT[:7], TEXT[7:]), compressed_silent(TEXT)])
def test_frame_that_states_no_size_is_read(frame):
    assert codec(TEXT).decode(frame) == TEXT
    out = bytearray(len(TEXT))
    codec(TEXT).decode_into(frame, memoryview(out))
    assert out == TEXT


@pytest.mark.parametrize("spec", [BytesSpec(None), BytesSpec(None, max_nbytes=10_000)])
def test_frame_that_states_no_size_is_read_where_none_is_known(spec):
    frames = compressed_silent(TEXT) + silent(b"123") + numcodecs.Zstd().encode(b"456")
    assert bytes(find("zstd")({}, spec).decode(frames)) == TEXT + b"123456"


@pytest.mark.parametrize("frame", [silent(TEXT), compressed_silent(TEXT)])
@pytest.mark.parametrize("size", [0, 1, len(TEXT) - 1, len(TEXT) + 1, 10 * len(TEXT)])
def test_frame_that_states_no_size_has_to_have_the_right_one(frame, size):
    with pytest.raises(ChunkError):
        codec(bytes(size)).decode(frame)


def test_several_frames_are_one_value():
    encode = numcodecs.Zstd().encode
    data = encode(TEXT[:10]) + silent(TEXT[10:20]) + encode(TEXT[20:])
    assert bytes(codec(TEXT).decode(data)) == TEXT


def test_skippable_frames_are_ignored():
    skippable = bytes.fromhex("5a2a4d18") + (3).to_bytes(4, "little") + b"xyz"
    data = skippable + numcodecs.Zstd().encode(TEXT) + skippable
    assert bytes(codec(TEXT).decode(data)) == TEXT


def test_repeated_byte_is_read():
    frame = MAGIC + b"\x00\x58" + (1000 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"z"
    assert bytes(codec(b"z" * 1000).decode(frame)) == b"z" * 1000


def test_wrong_checksum_is_reported():
    data = bytearray(numcodecs.Zstd(1, checksum=True).encode(TEXT))
    data[-1] ^= 1
    with pytest.raises(ChecksumError):
        codec(TEXT).decode(bytes(data))


def test_stated_size_that_the_blocks_cannot_hold_is_refused():
    frame = MAGIC + b"\xe0" + (2**50).to_bytes(8, "little") + raw_block(b"abc")
    with pytest.raises(ChunkError):
        find("zstd")({}, BytesSpec(None)).decode(frame)


@pytest.mark.parametrize("data", [b"junk", MAGIC, MAGIC + b"\0", numcodecs.Zstd().encode(TEXT) + b"junkjunk"])
def test_what_is_no_frame_is_refused(data):
    with pytest.raises(ChunkError):
        codec(TEXT).decode(data)


def test_empty_value():
    assert codec(b"").decode(numcodecs.Zstd().encode(b"")) == b""


def test_second_frame_too_many_is_refused():
    with pytest.raises(ChunkSizeError):
        codec(TEXT).decode(numcodecs.Zstd().encode(TEXT) * 2)
