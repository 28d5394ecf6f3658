import random
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numcodecs
import numpy as np
import pytest

from omnizarr.codecs import blosc_frames
from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.registry import find
from omnizarr.errors import ChunkError, ChunkSizeError, MissingDependencyError
from tests.codecs.cases import PLAIN

# What zarr-python 1.1.0 wrote, and what it was given: see make/blosc_frames.py.
with np.load(Path(__file__).parent / "data" / "blosc_frames.npz") as recorded:
    CONTENT = {name.removesuffix("/data"): recorded[name].tobytes() for name in recorded if name.endswith("/data")}
    BUFFERS = {name.removesuffix("/buffer"): recorded[name].tobytes() for name in recorded if name.endswith("/buffer")}
PARTS = ["snappy-blocks-shuffle0", "zstd-blocks-shuffle0"]
COPIED, RESERVED, UNSPLIT = 2, 8, 16


def content_of(name):
    return CONTENT[name.split("-")[1]]


def decoder(size):
    spec = {"cname": "snappy", "clevel": 5, "shuffle": "noshuffle", "blocksize": 0, "typesize": 4}
    return find("blosc")(spec, BytesSpec(size, 4))


def number(value):
    return value.to_bytes(4, "little")


def with_bytes(buffer, at, replacement):
    return buffer[:at] + replacement + buffer[at + len(replacement) :]


def with_number(buffer, at, value):
    return with_bytes(buffer, at, number(value))


def number_at(buffer, at):
    return int.from_bytes(buffer[at : at + 4], "little")


def framed(content, *streams, item_size=4, flags=0, compressor=2):
    """Return a Blosc buffer of one block, made by hand from the text of its format."""
    body = number(20) + b"".join(number(len(stream)) + stream for stream in streams)
    header = bytes([2, 1, compressor << 5 | flags, item_size])
    return header + number(len(content)) * 2 + number(16 + len(body)) + body


def literally(content):
    """Return a snappy stream: a varint that says how long it is, and up to 60 bytes that stand unchanged."""
    assert len(content) <= 60
    return bytes([len(content), len(content) - 1 << 2]) + content


@pytest.mark.parametrize("name", BUFFERS)
def test_what_zarr_1_wrote_is_read(name):
    content = content_of(name)
    assert bytes(decoder(len(content)).decode(BUFFERS[name])) == content


@pytest.mark.parametrize("name", BUFFERS)
def test_what_zarr_1_wrote_is_read_into_the_memory_of_the_caller(name):
    content = content_of(name)
    out = bytearray(len(content))
    decoder(len(content)).decode_into(memoryview(BUFFERS[name]), memoryview(out))
    assert out == content


@pytest.mark.parametrize("cname", ["snappy", "zstd"])
def test_recorded_blocks_stand_in_any_order(cname):
    frame = blosc_frames.Frame.of(BUFFERS[f"{cname}-out_of_order-shuffle1"])
    starts = [streams[0].start for *_, streams in frame.blocks()]
    assert starts != sorted(starts)


def test_frame_is_found_behind_streams_that_are_stored():
    name = "zstd-some_blocks_stored-shuffle1"
    frame = blosc_frames.Frame.of(BUFFERS[name])
    assert next(frame.blocks())[2][0].is_stored
    assert blosc_frames.is_needed(BUFFERS[name], has_snappy=True)


@pytest.mark.parametrize("cname", ["blosclz", "lz4", "lz4hc", "zlib", "zstd"])
@pytest.mark.parametrize("content", [PLAIN, np.random.default_rng(0).bytes(5000)])
def test_what_numcodecs_decodes_is_left_to_it(cname, content):
    assert not blosc_frames.is_needed(numcodecs.Blosc(cname).encode(content), has_snappy=False)


def test_snappy_is_left_to_a_numcodecs_that_has_it():
    buffer = BUFFERS["snappy-blocks-shuffle0"]
    assert blosc_frames.is_needed(buffer, has_snappy=False)
    assert not blosc_frames.is_needed(buffer, has_snappy=True)


@pytest.mark.parametrize("item_size", [1, 2, 3, 8, 17])
@pytest.mark.parametrize("nitems", [8, 16, 104, 1000])
@pytest.mark.parametrize("rest", [b"", b"x"])
def test_bits_are_put_back(item_size, nitems, rest):
    items = np.random.default_rng(0).integers(0, 256, (nitems, item_size), np.uint8)
    # a row for each bit of the item, lowest first; a bit for each item, lowest first
    bits = np.unpackbits(items, axis=1, bitorder="little").T
    shuffled = np.packbits(bits, axis=1, bitorder="little").tobytes()
    rest = rest[: item_size - 1]
    out = bytearray(items.nbytes + len(rest))
    blosc_frames.unshuffle_bits(shuffled + rest, item_size, memoryview(out))
    assert out == items.tobytes() + rest


@pytest.mark.parametrize(("size", "item_size"), [(7, 1), (9, 1), (4, 8), (28, 4)])
def test_bits_of_items_that_are_no_multiple_of_eight_stay(size, item_size):
    data, out = bytes(range(size)), bytearray(size)
    blosc_frames.unshuffle_bits(data, item_size, memoryview(out))
    assert out == data


def test_block_of_short_streams_is_one_stream():
    content = bytes(range(60))
    buffer = framed(content, literally(content))
    assert decoder(60).decode(buffer) == content


def test_block_is_split_into_as_many_streams_as_an_item_has_bytes():
    content = b"a" * 128 + b"b" * 128
    # 60, 60 and 8 bytes that stand unchanged
    halves = [b"\x80\x01" + (b"\xec" + letter * 60) * 2 + b"\x1c" + letter * 8 for letter in (b"a", b"b")]
    assert decoder(256).decode(framed(content, *halves, item_size=2)) == content


def test_flag_of_later_releases_says_that_a_block_is_not_split():
    content = b"a" * 256
    # one byte that stands unchanged; three copies of 64 bytes and one of 63, from one byte before
    stream = b"\x80\x02\x00a" + b"\xfe\x01\x00" * 3 + b"\xfa\x01\x00"
    assert decoder(256).decode(framed(content, stream, item_size=2, flags=UNSPLIT)) == content


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("start", [0, 16, 19, 2**31 - 1, 2**32 - 1])
def test_block_outside_the_buffer_is_refused(name, start):
    with pytest.raises(ChunkError, match=r"is in its header|cut off"):
        decoder(len(content_of(name))).decode(with_number(BUFFERS[name], 16, start))


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("size", [2**31 - 1, 2**32 - 1, 100_000])
def test_stream_past_the_end_is_refused(name, size):
    buffer = BUFFERS[name]
    with pytest.raises(ChunkSizeError, match="cut off"):
        decoder(len(content_of(name))).decode(with_number(buffer, number_at(buffer, 16), size))


@pytest.mark.parametrize("name", PARTS)
def test_blocks_that_overlap_are_refused(name):
    buffer = BUFFERS[name]
    with pytest.raises(ChunkError, match="overlap"):
        decoder(len(content_of(name))).decode(with_number(buffer, 20, number_at(buffer, 16)))


@pytest.mark.parametrize("name", PARTS)
def test_more_blocks_than_the_buffer_has_room_for_are_refused(name):
    with pytest.raises(ChunkSizeError, match="cut off"):
        decoder(len(content_of(name))).decode(with_number(BUFFERS[name], 8, 1))


@pytest.mark.parametrize("name", PARTS)
def test_block_that_cannot_be_split_is_refused(name):
    # 513 bytes are four streams of 128, and one byte that is nowhere
    content = bytes(513)
    compressor = BUFFERS[name][2] >> 5
    with pytest.raises(ChunkError, match="cannot be split"):
        blosc_frames.decode_into(
            framed(content, *[bytes(128)] * 4, compressor=compressor), memoryview(bytearray(len(content)))
        )


def test_flag_without_meaning_is_refused():
    buffer = BUFFERS["snappy-blocks-shuffle0"]
    with pytest.raises(ChunkError, match="flag without meaning"):
        decoder(4012).decode(with_bytes(buffer, 2, bytes([buffer[2] | RESERVED])))


def test_copy_of_the_wrong_size_is_refused():
    buffer = BUFFERS["snappy-copy_of_noise-shuffle0"]
    with pytest.raises(ChunkSizeError) as caught:
        decoder(400).decode(with_number(buffer, 12, len(buffer) - 1))
    assert (caught.value.found, caught.value.expected) == ("415 bytes", "416 bytes")


@pytest.mark.parametrize("said", [39, 41])
def test_snappy_of_another_size_is_refused(said):
    content = bytes(range(40))
    with pytest.raises(ChunkError, match=r"snappy|too short"):
        decoder(40).decode(framed(content, bytes([said]) + literally(content)[1:]))


def test_snappy_that_is_shorter_than_its_block_is_refused():
    with pytest.raises(ChunkSizeError) as caught:
        decoder(40).decode(framed(bytes(40), literally(bytes(39))[:-1] + b"\0"))
    assert (caught.value.found, caught.value.expected) == ("39 bytes", "40 bytes")


def test_broken_snappy_is_refused():
    with pytest.raises(ChunkError, match=r"stream of snappy .* is broken"):
        decoder(40).decode(framed(bytes(40), b"\x28\xff\xff\xff"))


def first_frame(buffer):
    return number_at(buffer, 16) + 4


@pytest.mark.parametrize(
    ("at", "replacement", "message"),
    [
        (6, b"\xff\xff", "has the wrong size"),  # the size that the frame states
        (8, b"\x00\x00\x00", "is broken"),  # its first block
        (4, b"\x00\xd8", "too much memory"),  # a window of 2**37 bytes, no size
    ],
)
def test_broken_frame_is_refused(at, replacement, message):
    buffer = BUFFERS["zstd-blocks-shuffle0"]
    with pytest.raises(ChunkError, match=message):
        decoder(4012).decode(with_bytes(buffer, first_frame(buffer) + at, replacement))


def test_frame_of_another_release_among_those_of_07_is_refused():
    buffer = BUFFERS["zstd-blocks-shuffle0"]
    second = number_at(buffer, 20) + 4
    assert buffer[second : second + 4].hex() == "27b52ffd"
    with pytest.raises(ChunkError, match=re.escape("no frame of Zstandard 0.7")) as caught:
        decoder(4012).decode(with_bytes(buffer, second, b"\x28"))
    assert caught.value.found == "28b52ffd"


@pytest.mark.parametrize("name", [name for name in BUFFERS if re.search("some|small|items_of_[48]", name)])
def test_broken_bytes_are_refused_or_of_the_right_size(name):
    chance = random.Random(name)
    content, buffer = content_of(name), BUFFERS[name]
    codec = decoder(len(content))
    for _ in range(100):
        broken = bytearray(buffer)
        for _ in range(chance.choice((1, 1, 3))):
            at = chance.choice((chance.randrange(16, 80), chance.randrange(len(broken))))
            broken[at] = chance.choice((0, 255, chance.randrange(256)))
        if chance.random() < 0.2:
            del broken[chance.randrange(16, len(broken)) :]
            broken[12:16] = number(len(broken))
        try:
            found = codec.decode(bytes(broken))
        except ChunkError:
            continue
        assert len(found) == len(content)


@pytest.mark.parametrize(("name", "what"), [(PARTS[0], "snappy"), (PARTS[1], "Zstandard 0.7")])
def test_missing_package_is_named_with_its_extra(name, what, monkeypatch):
    monkeypatch.setitem(sys.modules, "cramjam", None)
    with pytest.raises(MissingDependencyError, match=f"{what} needs the package 'cramjam'") as caught:
        decoder(len(content_of(name))).decode(BUFFERS[name])
    assert caught.value.remedy == 'pip install "omnizarr[legacy]"'


@pytest.mark.parametrize("name", [name for name in BUFFERS if "copy" in name])
def test_copies_need_no_package(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "cramjam", None)
    content = content_of(name)
    assert bytes(decoder(len(content)).decode(BUFFERS[name])) == content


def library_that_raises(error):
    def fail(data, out):
        raise error

    return SimpleNamespace(snappy=SimpleNamespace(decompress_raw_into=fail))


def test_panic_of_the_library_is_a_broken_chunk(monkeypatch):
    panic = type("PanicException", (BaseException,), {})
    monkeypatch.setitem(sys.modules, "cramjam", library_that_raises(panic("index out of range")))
    with pytest.raises(ChunkError, match="index out of range"):
        decoder(4012).decode(BUFFERS[PARTS[0]])


def test_interruption_of_the_library_is_passed_on(monkeypatch):
    monkeypatch.setitem(sys.modules, "cramjam", library_that_raises(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        decoder(4012).decode(BUFFERS[PARTS[0]])
