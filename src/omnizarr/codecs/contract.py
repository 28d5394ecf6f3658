"""The contract of codecs: the values that form a chain.

A document names a codec (`omnizarr.model.Named`). A *bind* function turns its configuration into one of the
three kinds of objects below, for one decoded representation. The chain checks that each codec fits the next.
Codecs are immutable, and threads can share them.

    bind(configuration: Mapping, decoded: ArraySpec) -> ArrayToArray | ArrayToBytes
    bind(configuration: Mapping, decoded: BytesSpec) -> BytesToBytes

Spec: Zarr v3 core, "Codecs".
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from omnizarr.model.datatypes import DataType
from omnizarr.settings import config

if TYPE_CHECKING:
    from numpy.typing import NDArray

AnyArray: TypeAlias = "NDArray[Any]"
Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes, C-contiguous and of format "B". The receiver never writes to them."""

Description: TypeAlias = tuple[Any, ...]
"""The name of a codec in the native engine, and plain values."""


@dataclass(frozen=True, slots=True)
class ChunkPolicy:
    """Settings for chunks while an array is open. A shard passes them on to its inner chunks."""

    write_empty_chunks: bool = False
    """Whether to store chunks that hold only the fill value."""
    missing: Literal["fill", "error"] = "fill"
    """What reading a missing chunk does: return the fill value, or raise an error."""
    allow_pickle: bool = False
    """Whether the pickle codec may run."""
    variable_chunk_bytes: int = field(default_factory=lambda: config.get("array.variable_chunk_bytes"))
    """Bytes that a chunk of elements of variable length may always decode to, however few elements it has."""
    variable_element_bytes: int = field(default_factory=lambda: config.get("array.variable_element_bytes"))
    """Bytes per element that such a chunk may decode to, if that is more."""
    bytes_in_flight: int = field(default_factory=lambda: config.get("bytes_in_flight"))
    """Decoded bytes of the chunks that are fetched or stored at once."""
    engine: str | None = field(default_factory=lambda: config.get("engine"))
    """The engine that reads and writes chunks: "native" or "reference"; None: the best one for the array."""
    shard_order: Literal["C", "F", "morton"] = "C"
    """In which order shards hold their inner chunks: readers find them in any."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array before or after a codec: shape, data type and fill value."""

    shape: tuple[int, ...]
    data_type: DataType
    fill_value: Any
    """NumPy scalar of `data_type.dtype`, or the object itself for object dtypes. Never undefined."""
    policy: ChunkPolicy = ChunkPolicy()

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy dtype of the elements in memory."""
        return self.data_type.dtype

    @property
    def nbytes(self) -> int | None:
        """Size of the elements in bytes; None if it depends on the values."""
        if not self.data_type.is_fixed_size:
            return None
        size = self.dtype.itemsize
        for length in self.shape:
            size *= length
        return size


@dataclass(frozen=True, slots=True)
class BytesSpec:
    """Bytes before or after a codec."""

    nbytes: int | None
    """Exact size in bytes if it is the same for all values, otherwise None."""
    item_size: int = 1
    """Bytes per element of the array encoded in it (for shuffling); 1 if unknown."""
    max_nbytes: int | None = None
    """A bound on the size if it is not exact; None if there is none."""
    remedy: str | None = None
    """The remedy in the error if the bound is too low."""


@runtime_checkable
class ArrayToArray(Protocol):
    """Encodes an array as another array."""

    @property
    def encoded(self) -> ArraySpec:
        """The encoded representation, fill value included."""

    def encode(self, array: AnyArray) -> AnyArray:
        """Return the encoded array. It may be a view of `array`, or `array` itself."""

    def decode(self, array: AnyArray) -> AnyArray:
        """Return the decoded array, with the bound shape and dtype. It may be a view."""


@runtime_checkable
class ArrayToBytes(Protocol):
    """Encodes an array as bytes."""

    @property
    def encoded(self) -> BytesSpec:
        """The encoded representation."""

    def encode(self, array: AnyArray) -> Buffer:
        """Return the bytes of `array`. They may be a view of its memory."""

    def decode(self, data: Buffer) -> AnyArray:
        """Return the array with the bound shape and dtype. It may be read-only, and a view of `data`.

        Raises ChunkSizeError if `data` is too short or too long.
        """


@runtime_checkable
class BytesToBytes(Protocol):
    """Encodes bytes as other bytes."""

    @property
    def encoded(self) -> BytesSpec:
        """The encoded representation."""

    def encode(self, data: Buffer) -> Buffer:
        """Return the encoded bytes."""

    def decode(self, data: Buffer) -> Buffer:
        """Return the decoded bytes. Never allocates more than the bound size (`nbytes` or `max_nbytes`).

        Raises ChunkError (ChecksumError, ChunkSizeError) if `data` is broken.
        """


@runtime_checkable
class Lossy(Protocol):
    """A codec whose `decode` may return other values than those that `encode` got."""

    @property
    def loss(self) -> str:
        """What decoding loses, with its bound; "" if nothing is lost with these parameters."""


@runtime_checkable
class DecodesInto(Protocol):
    """A bytes-to-bytes codec that can decode directly into the caller's memory."""

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` (writable, contiguous, format "B", exactly the decoded size) from `data`.

        Raises the errors of `decode`.
        """


@runtime_checkable
class DecodesPart(Protocol):
    """An array-to-bytes codec that can decode a part directly into the caller's memory, such as a shard."""

    def decode_part(self, data: Buffer, selection: tuple[Any, ...], out: AnyArray) -> None:
        """Set ``out[...] = decode(data)[selection]``. Raises the errors of `decode`.

        `selection` is the `chunk_selection` of a piece (see `omnizarr.indexing.Piece`).
        """


Span: TypeAlias = tuple[int, int | None]
"""(start, stop) in bytes, half-open. A negative start counts from the end; then stop is None."""


class Source(Protocol):
    """Reads the encoded bytes of one chunk, in part or whole.

    If a source has a true attribute ``is_pinned``, all its calls return spans of the same version of the chunk:
    the version of the first call. It raises ConflictError if that version no longer exists.
    """

    def __call__(self, spans: Sequence[Span] | None) -> Sequence[Buffer] | None:
        """Return the bytes of each span (None: all bytes as one span) in one round trip; None if nothing is stored.

        The answer may have an attribute ``size``, the number of bytes of the whole chunk. A span that reaches
        past the end is cut there. A request for all bytes returns the current version, pinned or not.
        """


Reading: TypeAlias = Generator[Sequence[Span] | None, Sequence[Buffer] | None, bool]
"""Reads a chunk without fetching: it yields the spans it needs (None: all), and receives answers of a `Source`.

It returns False if nothing is stored. The driver decides how to wait: see `omnizarr.codecs.chain.drive`.
"""


@runtime_checkable
class ReadsPart(Protocol):
    """An array-to-bytes codec that need not fetch and decode everything, such as a shard."""

    def reading(self, selection: tuple[Any, ...], out: AnyArray, *, is_pinned: bool = False) -> Reading:
        """Set ``out[...] = decoded[selection]``, requesting only needed bytes. Return False if nothing is stored.

        `selection` is the `chunk_selection` of a piece (see `omnizarr.indexing.Piece`). `is_pinned`: all answers
        are from one version of the chunk, so this need not be checked.
        """


@runtime_checkable
class WritesPart(Protocol):
    """An array-to-bytes codec that need not decode what a write does not change, such as a shard."""

    def write(self, old: Buffer | None, selection: tuple[Any, ...], value: AnyArray) -> Buffer | None:
        """Return `old` (None: nothing stored) with ``decoded[selection] = value``; None if nothing must be stored."""


Codec: TypeAlias = ArrayToArray | ArrayToBytes | BytesToBytes
Configuration: TypeAlias = Mapping[str, Any]
