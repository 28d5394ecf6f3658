"""Bounds on the size of decoded bytes: what makes a small chunk unable to fill the memory.

`sized` checks what a library returned; `inflate` runs the decompressors of the standard
library, which can stop, so that nothing beyond the bound is ever decoded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import ClassVar, Final, Protocol

from omnizarr.codecs.contract import ArraySpec, Buffer, BytesSpec
from omnizarr.errors import ChunkError, ChunkSizeError, OmnizarrError

SLACK: Final = 4096

_AT_ONCE: Final = 2**31  # what compressors take
_FOREIGN: Final = 2**20
_REMEDY: Final = (
    'if that is what was written, open the array with omnizarr.config.set({"array.variable_chunk_bytes": ...}) raised'
)


class Decompressor(Protocol):
    """What `zlib.decompressobj` is once adapted, and `bz2.BZ2Decompressor` and `lzma.LZMADecompressor` are."""

    @property
    def eof(self) -> bool:
        """Whether the end of the stream has been seen."""

    @property
    def unused_data(self) -> bytes:
        """What follows the end of the stream."""

    def decompress(self, data: Buffer, max_length: int = -1, /) -> bytes:
        """Return at most `max_length` more bytes."""


def limit_of(spec: BytesSpec) -> int | None:
    """Return the largest size that decoded bytes may have; None if there is no bound."""
    return spec.nbytes if spec.nbytes is not None else spec.max_nbytes


def compressed(decoded: BytesSpec) -> BytesSpec:
    """Return what a compressor makes of `decoded`: any size, though never much more than it gets."""
    limit = limit_of(decoded)
    # Writers that flush often or do not compress at all waste less than this.
    return replace(decoded, nbytes=None, max_nbytes=None if limit is None else 2 * limit + SLACK)


def variable(decoded: ArraySpec) -> BytesSpec:
    """Return the bound of elements of variable length. No document bounds them, so that a setting must.

    It grows with the number of elements, up to what compressors take at once.

    >>> from omnizarr.model.datatypes import parse
    >>> [variable(ArraySpec((length,), parse("string"), "")).max_nbytes for length in (1, 8192, 10**9)]
    [268435456, 536870912, 2147483648]
    """
    policy = decoded.policy
    in_proportion = min(prod(decoded.shape) * policy.variable_element_bytes, _AT_ONCE)
    return BytesSpec(None, max_nbytes=max(policy.variable_chunk_bytes, in_proportion), remedy=_REMEDY)


def foreign(decoded: ArraySpec | BytesSpec) -> BytesSpec:
    """Return the bound of what a codec makes of which nothing is known; generous."""
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
    """Raise ChunkSizeError if decoded bytes of this size are not what `spec` promises."""
    if spec.nbytes is not None and size != spec.nbytes:
        raise ChunkSizeError("the decoded bytes have the wrong size", found=f"{size} bytes",
                             expected=f"{spec.nbytes} bytes")  # fmt: skip
    if spec.max_nbytes is not None and size > spec.max_nbytes:
        raise too_long(spec, found=f"{size} bytes")


def too_long(spec: BytesSpec, found: str | None = None) -> ChunkSizeError:
    """Return the error of decoded bytes that exceed their bound."""
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
    """Copy `data` into `out`, which must be of its size."""
    if len(data) != len(out):
        raise ChunkSizeError("the decoded bytes have the wrong size", found=f"{len(data)} bytes",
                             expected=f"{len(out)} bytes")  # fmt: skip
    out[:] = data


def inflate(start: Callable[[], Decompressor], data: Buffer, spec: BytesSpec, ends: Callable[[bytes], bool]) -> Buffer:
    """Return what all streams in `data`, one after the other, decode to.

    Parameters
    ----------
    start : callable
        Returns a new decompressor.
    data : buffer
        One stream or more.
    spec : BytesSpec
        The bound.
    ends : callable
        Tells of the bytes after a stream that they are not one more; may raise ChunkError.
    """
    limit = limit_of(spec)
    parts: list[bytes] = []
    size = 0
    rest: Buffer = data
    while True:
        stream = start()
        # One byte more than allowed: shows whether there is more, and lets the stream see its end.
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
    """What all codecs have in common that make bytes of any size."""

    __slots__ = ()

    decoded: BytesSpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return compressed(self.decoded)


class ObjectCodec:
    """What all codecs have in common that make bytes of items of any length."""

    __slots__ = ()

    decoded: ArraySpec

    @property
    def encoded(self) -> BytesSpec:
        """Bytes of any size."""
        return variable(self.decoded)


class StreamCodec(Compressor):
    """What the codecs of the standard library have in common: their bytes are streams, which `inflate` decodes."""

    __slots__ = ()

    broken: ClassVar[tuple[type[Exception], ...]] = ()
    """What a decompressor raises for bytes that are broken."""

    def start(self) -> Decompressor:
        """Return a decompressor of one stream."""
        raise NotImplementedError

    def ends(self, rest: bytes) -> bool:
        """Tell of the bytes after a stream that they are not one more."""
        raise NotImplementedError

    def decode(self, data: Buffer) -> Buffer:
        """Return what all streams decode to."""
        try:
            return inflate(self.start, data, self.decoded, self.ends)
        except self.broken as error:
            if isinstance(error, OmnizarrError):
                raise
            raise ChunkError(f"the compressed bytes are broken: {error}") from error

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` with what all streams decode to."""
        fill(out, self.decode(data))
