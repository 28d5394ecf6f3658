"""Bounds on the size of decoded bytes, so that a small chunk cannot fill the memory.

`sized` checks the result of a library. `inflate` runs the decompressors of the standard library, which can stop,
so that nothing beyond the bound is ever decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import ClassVar, Final, Protocol

from omnizarr.codecs.contract import ArraySpec, Buffer, BytesSpec
from omnizarr.errors import ChunkError, ChunkSizeError, CodecError, OmnizarrError, Remedy, Setting

SLACK: Final = 4096

_AT_ONCE: Final = 2**31  # what compressors accept
_FOREIGN: Final = 2**20
_GROWTH: Final = 32  # compressors that fail to compress add less than one byte for this number
_MOST: Final = 16  # bytes stored for one in memory: more than codecs of elements make of it
_LEAST: Final = 2**20
_PARSED: Final = 8  # JSON and MessagePack become objects of Python, which take up to 30 times the memory
TOO_LOW: Final = Remedy(
    "if that is what was written, open the array with {setting} raised", setting=Setting("array.variable_chunk_bytes")
)


class Decompressor(Protocol):
    """The interface of `bz2.BZ2Decompressor` and `lzma.LZMADecompressor`, and of an adapted `zlib.decompressobj`."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream has been reached."""

    @property
    def unused_data(self) -> bytes:
        """The bytes after the end of the stream."""

    def decompress(self, data: Buffer, max_length: int = -1, /) -> bytes:
        """Return at most `max_length` more bytes."""


def limit_of(spec: BytesSpec) -> int | None:
    """Return the maximum size of the decoded bytes; None if there is no bound."""
    return spec.nbytes if spec.nbytes is not None else spec.max_nbytes


def compressed(decoded: BytesSpec) -> BytesSpec:
    """Return the spec of compressed `decoded` bytes: any size, but never much more than the input.

    A bound grows little when it is compressed again: a chain of many compressors must not double it each time.
    """
    if decoded.nbytes is not None:  # writers that flush often or do not compress waste less than this
        return replace(decoded, nbytes=None, max_nbytes=2 * decoded.nbytes + SLACK)
    limit = decoded.max_nbytes
    return replace(decoded, max_nbytes=None if limit is None else limit + limit // _GROWTH + SLACK)


def variable(decoded: ArraySpec) -> BytesSpec:
    """Return the bound for elements of variable length. Documents state none, so a setting must.

    It grows with the number of elements, up to what compressors accept at once.

    >>> from omnizarr.model.datatypes import parse
    >>> [variable(ArraySpec((length,), parse("string"), "")).max_nbytes for length in (1, 8192, 10**9)]
    [268435456, 536870912, 2147483648]
    """
    policy = decoded.policy
    in_proportion = min(prod(decoded.shape) * policy.variable_element_bytes, _AT_ONCE)
    return BytesSpec(None, max_nbytes=max(policy.variable_chunk_bytes, in_proportion), remedy=TOO_LOW)


def parsed(decoded: ArraySpec) -> BytesSpec:
    """Return the bound for elements that are parsed to Python objects, which take many times the memory."""
    found = variable(decoded)
    return replace(found, max_nbytes=(found.max_nbytes or 0) // _PARSED)


def most_of(decoded: ArraySpec) -> int:
    """Return how many bytes a chunk may take at each step of its codecs, and stored."""
    if decoded.nbytes is None:
        return 4 * (variable(decoded).max_nbytes or 0) + _LEAST
    return max(decoded.policy.variable_chunk_bytes, _MOST * decoded.nbytes, _LEAST)


def within(found: ArraySpec | BytesSpec, most: int) -> ArraySpec | BytesSpec:
    """Return `found` with its bound lowered to `most`. Raises CodecError if it always takes more."""
    if found.nbytes is not None:
        if found.nbytes <= most:
            return found
        raise CodecError("the codec makes too much of a chunk", found=f"{found.nbytes} bytes",
                         expected=f"at most {most} bytes", remedy=TOO_LOW)  # fmt: skip
    if isinstance(found, ArraySpec) or (found.max_nbytes is not None and found.max_nbytes <= most):
        return found
    return replace(found, max_nbytes=most, remedy=found.remedy or TOO_LOW)


def foreign(decoded: ArraySpec | BytesSpec) -> BytesSpec:
    """Return a generous bound for the result of an unknown codec."""
    size = limit_of(decoded) if isinstance(decoded, BytesSpec) else decoded.nbytes
    if size is None:
        return replace(decoded, nbytes=None) if isinstance(decoded, BytesSpec) else variable(decoded)
    item_size = decoded.item_size if isinstance(decoded, BytesSpec) else 1
    return BytesSpec(None, item_size, 4 * size + _FOREIGN, getattr(decoded, "remedy", None))


def changed_by(decoded: BytesSpec, extra: int) -> BytesSpec:
    """Return the spec of bytes that are `extra` longer."""
    return replace(
        decoded,
        nbytes=None if decoded.nbytes is None else decoded.nbytes + extra,
        max_nbytes=None if decoded.max_nbytes is None else decoded.max_nbytes + extra,
    )


def check_size(size: int, spec: BytesSpec) -> None:
    """Raise ChunkSizeError if this size of decoded bytes contradicts `spec`."""
    if spec.nbytes is not None and size != spec.nbytes:
        raise ChunkSizeError("the decoded bytes have the wrong size", found=f"{size} bytes",
                             expected=f"{spec.nbytes} bytes")  # fmt: skip
    if spec.max_nbytes is not None and size > spec.max_nbytes:
        raise too_long(spec, found=f"{size} bytes")


def too_long(spec: BytesSpec, found: str | None = None) -> ChunkSizeError:
    """Return the error for decoded bytes that exceed their bound."""
    limit = limit_of(spec)
    at_most = "" if spec.nbytes is not None else "at most "
    return ChunkSizeError(
        "the decoded bytes have the wrong size",
        found=found or f"more than {limit} bytes",
        expected=f"{at_most}{limit} bytes",
        remedy=spec.remedy,
    )


def sized(data: Buffer, spec: BytesSpec) -> Buffer:
    """Return `data`, checked against `spec`."""
    check_size(len(data), spec)
    return data


def fill(out: memoryview, data: Buffer) -> None:
    """Copy `data` into `out`, which must have its size."""
    if len(data) != len(out):
        raise ChunkSizeError("the decoded bytes have the wrong size", found=f"{len(data)} bytes",
                             expected=f"{len(out)} bytes")  # fmt: skip
    out[:] = data


def inflate(start: Callable[[], Decompressor], data: Buffer, spec: BytesSpec, ends: Callable[[bytes], bool]) -> Buffer:
    """Return the decoded bytes of all streams in `data`, one after the other.

    Parameters
    ----------
    start : callable
        Returns a new decompressor.
    data : buffer
        One or more streams.
    spec : BytesSpec
        The bound.
    ends : callable
        Returns whether the bytes after a stream are no further stream. May raise ChunkError.
    """
    limit = limit_of(spec)
    parts: list[bytes] = []
    size = 0
    rest: Buffer = data
    while True:
        stream = start()
        # One byte more than allowed, which shows whether there is more, and lets the stream reach its end.
        part = stream.decompress(rest, -1 if limit is None else limit - size + 1)
        size += len(part)
        parts.append(part)
        if limit is not None and size > limit:
            raise too_long(spec)
        if not stream.eof:
            raise ChunkError("the compressed bytes are cut off", found=f"{len(data)} bytes, {size} when decoded")
        rest = stream.unused_data
        if not rest or ends(rest):
            break
    return sized(parts[0] if len(parts) == 1 else b"".join(parts), spec)


class Compressor:
    """The base of codecs whose result has any size."""

    __slots__ = ()

    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return compressed(self.decoded)


class ObjectCodec:
    """The base of codecs of items of variable length."""

    __slots__ = ()

    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return variable(self.decoded)


class StreamCodec(Compressor):
    """The base of codecs of the standard library, whose bytes are streams for `inflate`."""

    __slots__ = ()

    broken: ClassVar[tuple[type[Exception], ...]] = ()
    """The errors of a decompressor for broken bytes."""

    def start(self) -> Decompressor:
        """Return a decompressor of one stream."""
        raise NotImplementedError

    def ends(self, rest: bytes) -> bool:
        """Return whether the bytes after a stream are no further stream."""
        raise NotImplementedError

    def decode(self, data: Buffer) -> Buffer:
        """Return the decoded bytes of all streams."""
        try:
            return inflate(self.start, data, self.decoded, self.ends)
        except self.broken as error:
            if isinstance(error, OmnizarrError):
                raise
            raise ChunkError(f"the compressed bytes are broken: {error}") from error

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with the decoded bytes of all streams."""
        fill(out, self.decode(data))
