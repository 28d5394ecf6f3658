"""zstd: Zstandard frames.

Configuration: ``level``, -131072 to 22 (0: the library's default), 0 if missing; ``checksum``, false if missing.
netCDF-C writes negative levels, in v2, as unsigned numbers of 32 bits.
Agrees with numcodecs and zarrs. Frames may follow each other, be skippable, and need not state the size
of their content (streaming writers do not); no frame is decoded before its size is known to be right.

Spec: zarr-extensions, "zstd"; RFC 8878.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from omnizarr.codecs.compiled import Compiled, decompress_by
from omnizarr.codecs.configuration import Fields
from omnizarr.codecs.contract import Buffer, BytesSpec, Configuration, Description
from omnizarr.codecs.record import ALL, B2B, Name, Parameters, Record, filter_of_level, integer, with_level
from omnizarr.codecs.streams import SLACK, Compressor, check_size, fill, limit_of, too_long
from omnizarr.errors import ChecksumError, ChunkError
from omnizarr.model import JSON, Named

_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE: Final = 0x184D2A5  # followed by any hexadecimal digit
_SHORTEST: Final = 9
_LARGEST_BLOCK: Final = 1 << 17
_DICTIONARY_BYTES: Final = (0, 1, 2, 4)
_SIZE_IS_64_BIT: Final = 0xC0
_HAS_CHECKSUM: Final = 0x04
_SPEC: Final = 'zarr-extensions, "zstd"'


def _of_native(native: Any) -> Any:
    def compress(data: Buffer, level: int, checksum: bool) -> Buffer:  # noqa: FBT001 - as in numcodecs
        return native.encode(("zstd", level, checksum), data)  # type: ignore[no-any-return]

    return SimpleNamespace(compress=compress, decompress=decompress_by(native, ("zstd", 0, False)))


zstd: Final[Any] = Compiled("zstd", _of_native)


@dataclass(frozen=True, slots=True)
class Frame:
    """The position of a frame, and the size of its content."""

    start: int
    header: int
    """Position of the content size in the header, or where it would be."""
    blocks: int
    stop: int
    size: int | None
    """The content size in its header; None if it has none."""
    most: int
    """The maximum content of its blocks."""


class Block(NamedTuple):
    """The position of a block, and the maximum size of its content."""

    start: int
    stop: int
    most: int


@dataclass(frozen=True, slots=True)
class Zstd(Compressor):
    """Zstandard."""

    level: int
    checksum: bool
    decoded: BytesSpec

    def describe_native(self, _spec: BytesSpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        return "zstd", self.level, self.checksum

    def encode(self, data: Buffer) -> Buffer:
        """Return one frame that states the size of its content."""
        return zstd.compress(data, self.level, self.checksum)  # type: ignore[no-any-return]

    def decode(self, data: Buffer) -> Buffer:
        """Return the content of all frames."""
        if self.decoded.nbytes is not None and (found := _at_once(data, self.decoded.nbytes, None)) is not None:
            return found
        frames = _sized_frames(data, self.decoded)
        if len(frames) == 1:
            return _run(*frames[0], None)
        out = memoryview(bytearray(sum(size for _, size in frames)))
        _fill(frames, out)
        return out

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with the content of all frames."""
        if _at_once(data, len(out), out) is not None:
            return
        frames = _sized_frames(data, BytesSpec(len(out)))
        if sum(size for _, size in frames) != len(out):
            fill(out, b"".join(_run(*frame, None) for frame in frames))
        _fill(frames, out)


def _at_once(data: Buffer, size: int, out: memoryview | None) -> Buffer | None:
    """Decode a single frame that states the right size, which is the usual case; None for anything else."""
    if data[:4] != _MAGIC or len(data) < _SHORTEST:
        return None
    descriptor = data[4]
    header = 5 + (not descriptor & 0x20) + _DICTIONARY_BYTES[descriptor & 3]
    width = (1 if descriptor & 0x20 else 0, 2, 4, 8)[descriptor >> 6]
    stated = int.from_bytes(data[header : header + width], "little") + (256 if width == 2 else 0)
    if not size or not width or stated != size:
        return None
    try:
        # The library allocates memory for the stated size of the first frame; more frames do not fit, and fail.
        found: Buffer = zstd.decompress(data, out)
    except (RuntimeError, ValueError, TypeError, MemoryError):
        return None
    return found if len(found) == size else None


def _fill(frames: list[tuple[Buffer, int]], out: memoryview) -> None:
    position = 0
    for frame, size in frames:
        _run(frame, size, out[position : position + size])
        position += size


def _run(frame: Buffer, size: int, out: memoryview | None) -> Buffer:
    if size == 0:  # numcodecs does not accept empty frames
        return b""
    try:
        data: Buffer = zstd.decompress(frame, out)
    except (RuntimeError, ValueError, TypeError, MemoryError) as error:
        kind = ChecksumError if "checksum" in str(error) else ChunkError
        raise kind(f"the compressed bytes are broken: {error}") from error
    if len(data) != size:
        check_size(len(data), BytesSpec(size))
    return data


def _sized_frames(data: Buffer, spec: BytesSpec) -> list[tuple[Buffer, int]]:
    """Return each frame with the size of its content. Raises an error if the total contradicts `spec`."""
    frames = list(_frames(data))
    if not frames:
        check_size(0, spec)
        return []
    stated = sum(frame.size for frame in frames if frame.size is not None)
    silent = [frame for frame in frames if frame.size is None]
    if not silent:
        check_size(stated, spec)
        view = data if len(frames) == 1 and frames[0].stop == len(data) else memoryview(data)
        return [(view if view is data else view[f.start : f.stop], f.size or 0) for f in frames]
    if len(silent) == 1 and spec.nbytes is not None:
        if stated > spec.nbytes:
            raise too_long(spec, found=f"more than {stated} bytes")
        missing = spec.nbytes - stated
        return [
            (_stating(data, frame, missing), missing) if frame.size is None
            else (memoryview(data)[frame.start : frame.stop], frame.size)
            for frame in frames
        ]  # fmt: skip
    return _measured(data, frames, spec)


def _stating(data: Buffer, frame: Frame, size: int) -> bytes:
    """Return the frame with a header that states `size`, so that the library decodes exactly this much."""
    if size == 0 and frame.most:
        raise too_long(BytesSpec(0))
    if size > frame.most:
        raise ChunkError("the decoded bytes are too few", found=f"at most {frame.most} bytes", expected=f"{size} bytes")
    header = bytearray(data[frame.start : frame.header])
    header[4] |= _SIZE_IS_64_BIT
    return bytes(header) + size.to_bytes(8, "little") + bytes(data[frame.blocks : frame.stop])


def _measured(data: Buffer, frames: list[Frame], spec: BytesSpec) -> list[tuple[Buffer, int]]:
    """Return frames with sizes. Frames that do not state their size must be decoded to find it."""
    limit = limit_of(spec)
    most = sum(frame.most if frame.size is None else frame.size for frame in frames)
    # A block may be shorter than its largest size: the bound is generous, but a bound.
    if limit is not None and most > 4 * limit + SLACK + 64 * _LARGEST_BLOCK:
        raise too_long(spec, found=f"frames of unstated size, up to {most} bytes")
    measured: list[tuple[Buffer, int]] = []
    for frame in frames:
        view = memoryview(data)[frame.start : frame.stop]
        size = frame.size
        if size is None:
            try:
                size = _measure(data, frame, spec)
            except (RuntimeError, ValueError, MemoryError) as error:
                if isinstance(error, ChunkError):
                    raise
                raise ChunkError(f"the compressed bytes are broken: {error}") from error
        measured.append((view if frame.size is not None else _stating(data, frame, size), size))
    check_size(sum(size for _, size in measured), spec)
    return measured


def _measure(data: Buffer, frame: Frame, spec: BytesSpec) -> int:
    """Return the content size of a frame that does not state it, decoding hardly more than is allowed.

    The library accepts no bound. So it gets the first blocks of the frame, as many as cannot exceed the bound,
    and more blocks as long as these decode to less than they could.
    """
    limit = limit_of(spec)
    if limit is None or frame.most <= limit:
        return len(zstd.decompress(memoryview(data)[frame.start : frame.stop]))
    blocks = list(_blocks(data, frame.blocks))
    head = bytearray(data[frame.start : frame.blocks])
    head[4] &= ~_HAS_CHECKSUM
    taken = size = 0
    while taken < len(blocks):
        room, first = limit - size + _LARGEST_BLOCK, taken
        while taken < len(blocks) and blocks[taken].most <= room:
            room -= blocks[taken].most
            taken += 1
        if taken == first:
            raise too_long(spec)
        last = blocks[taken - 1]
        part = head + data[frame.blocks : last.stop]
        part[len(head) + last.start - frame.blocks] |= 1  # the last one
        size = len(zstd.decompress(part))
        if size > limit:
            raise too_long(spec)
    return size


def most_of(data: Buffer) -> int:
    """Return a bound of the bytes that frames decode to, from what they state."""
    return sum(frame.most for frame in _frames(data))


def _frames(data: Buffer) -> Iterator[Frame]:
    """Yield the frames with content, without decoding them."""
    position, end = 0, len(data)
    if end == 0:
        raise ChunkError("no Zstandard frame", found="0 bytes")
    while position < end:
        magic = data[position : position + 4]
        if magic == _MAGIC:
            frame = _frame(data, position)
            position = frame.stop
            yield frame
        elif int.from_bytes(magic, "little") >> 4 == _SKIPPABLE:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            _check_inside(position, end)
        else:
            raise ChunkError("no Zstandard frame", found=bytes(magic).hex(), expected=_MAGIC.hex())


def _frame(data: Buffer, start: int) -> Frame:
    end = len(data)
    _check_inside(start + 6, end)
    descriptor = data[start + 4]
    is_single = bool(descriptor & 0x20)
    header = start + 5 + (not is_single) + _DICTIONARY_BYTES[descriptor & 3]
    width = (1 if is_single else 0, 2, 4, 8)[descriptor >> 6]
    position = blocks = header + width
    _check_inside(position, end)
    size = None
    if width:
        size = int.from_bytes(data[header:blocks], "little") + (256 if width == 2 else 0)
    most = 0
    for block in _blocks(data, position):
        most += block.most
        position = block.stop
    position += 4 if descriptor & _HAS_CHECKSUM else 0
    _check_inside(position, end)
    if size is not None and (size > most or (size == 0 and most)):
        raise ChunkError(
            "the frame cannot hold what it states", found=f"{size} bytes", expected=f"at most {most} bytes"
        )
    return Frame(start, header, blocks, position, size, most)


def _blocks(data: Buffer, position: int) -> Iterator[Block]:
    """Yield the blocks of a frame, without decoding them."""
    is_last = False
    while not is_last:
        _check_inside(position + 3, len(data))
        block = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        is_last, kind, length = bool(block & 1), block >> 1 & 3, block >> 3
        start = position
        # raw, one byte repeated, compressed, reserved
        position += 3 + (1 if kind == 1 else length)
        yield Block(start, position, _LARGEST_BLOCK if kind == 2 else length)


def _check_inside(position: int, end: int) -> None:
    if position > end:
        raise ChunkError(
            "the compressed bytes are cut off", found=f"{end} bytes", expected=f"at least {position} bytes"
        )


def bind(configuration: Configuration, decoded: BytesSpec) -> Zstd:
    """Return the codec."""
    fields = Fields(configuration, ("level", "checksum"), _SPEC)
    return Zstd(fields.integer("level", 0, -131072, 22), fields.boolean("checksum", default=False), decoded)


def bind_numcodecs(configuration: Configuration, decoded: BytesSpec) -> Zstd:
    """Return the codec of numcodecs. netCDF-C writes a negative level as an unsigned number."""
    level = configuration.get("level")
    if isinstance(level, int) and 2**32 - 131072 <= level < 2**32:
        configuration = {**configuration, "level": level - 2**32}
    return bind(configuration, decoded)


_USUAL: Final = 3


def _in_blosc(given: Parameters) -> tuple[str, int]:
    level = integer(given, "level", 0) or _USUAL
    return "zstd", min(max(level, 1), 9)


def _from_v2(given: Parameters, _item_size: int) -> Named | None:
    level, checksum = given.get("level", 1), given.get("checksum", False)
    # netCDF-C's unsigned number for a negative level is only allowed for the codec of numcodecs
    is_plain = given.keys() <= {"level", "checksum"} and type(level) is int and level < 2**31
    return Named("zstd", {"level": level, "checksum": checksum}) if is_plain and isinstance(checksum, bool) else None


def _to_v2(given: Parameters) -> dict[str, JSON]:
    return {"level": given.get("level", 0), **({"checksum": True} if given.get("checksum") else {})}


CODECS = (
    Record(
        id="zstd", kind=B2B,
        names={
            "zstd": Name(bind, ALL, "registered", ("level",)),
            "numcodecs.zstd": Name(bind_numcodecs, required=("level",)),
        },
        parameters={"level": int, "checksum": bool}, note="numcodecs", is_compiled=True, native=True,
        compresses=True,
        words=lambda given: with_level("zstd")(given) + (" with checksum" if given.get("checksum") is True else ""),
        decodes_with={"level": 1}, from_v2=_from_v2, to_v2=_to_v2, hdf5=filter_of_level(32015, "zstd", -131072, 22),
        in_blosc=_in_blosc,
    ),
)  # fmt: skip
