"""What a codec is: the values that a chain is made of.

A document names a codec (`omnizarr.model.Named`); a *bind* function turns its
configuration into one of the three kinds of value below, for one decoded
representation. The chain checks that each codec fits the next; a codec only knows
itself. All are immutable and may be called by many threads at once.

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
"""Bytes, C-contiguous and of format "B"; never written to by the one who receives them."""


@dataclass(frozen=True, slots=True)
class ChunkPolicy:
    """What is wanted of chunks while an array is open; a shard passes it on to its inner chunks."""

    write_empty_chunks: bool = False
    """Store chunks that hold nothing but the fill value."""
    missing: Literal["fill", "error"] = "fill"
    """What reading a chunk that is not stored means."""
    allow_pickle: bool = False
    """Let the pickle codec run."""
    variable_chunk_bytes: int = field(default_factory=lambda: config.get("array.variable_chunk_bytes"))
    """Bytes that the elements of a chunk may decode to, if they are of variable length, however few they are."""
    variable_element_bytes: int = field(default_factory=lambda: config.get("array.variable_element_bytes"))
    """Bytes that each of them may decode to on average, where together they need more than that."""
    bytes_in_flight: int = field(default_factory=lambda: config.get("bytes_in_flight"))
    """Bytes, decoded, of the chunks that are fetched or stored at once."""
    engine: str | None = field(default_factory=lambda: config.get("engine"))
    """The engine that moves chunks: "native" or "reference"; None: the best one for the array."""


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array as a codec meets it: shape, data type and fill value."""

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
        """Size of the elements, in bytes; None where it depends on the values."""
        if not self.data_type.is_fixed_size:
            return None
        size = self.dtype.itemsize
        for length in self.shape:
            size *= length
        return size


@dataclass(frozen=True, slots=True)
class BytesSpec:
    """A byte string as a codec meets it."""

    nbytes: int | None
    """Exact size in bytes where it is the same for all values, else None."""
    item_size: int = 1
    """Bytes per element of the array encoded in it (for shuffling); 1 if unknown."""
    max_nbytes: int | None = None
    """A bound on the size where it is not exact; None if there is none."""
    remedy: str | None = None
    """What to do if the bound is too low."""


@runtime_checkable
class ArrayToArray(Protocol):
    """An array becomes another array."""

    @property
    def encoded(self) -> ArraySpec:
        """What the codec makes of the decoded representation that it was bound to (fill value included)."""

    def encode(self, array: AnyArray) -> AnyArray:
        """Return the encoded array. May be a view of `array`, or `array` itself."""

    def decode(self, array: AnyArray) -> AnyArray:
        """Return the decoded array, of the shape and dtype bound to. May be a view."""


@runtime_checkable
class ArrayToBytes(Protocol):
    """An array becomes bytes."""

    @property
    def encoded(self) -> BytesSpec:
        """What the codec makes of the decoded representation that it was bound to."""

    def encode(self, array: AnyArray) -> Buffer:
        """Return the bytes of `array`. May be a view of its memory."""

    def decode(self, data: Buffer) -> AnyArray:
        """Return the array of the shape and dtype bound to; it may be read-only and a view of `data`.

        Raises ChunkSizeError if `data` is too short or too long.
        """


@runtime_checkable
class BytesToBytes(Protocol):
    """Bytes become other bytes."""

    @property
    def encoded(self) -> BytesSpec:
        """What the codec makes of the decoded representation that it was bound to."""

    def encode(self, data: Buffer) -> Buffer:
        """Return the encoded bytes."""

    def decode(self, data: Buffer) -> Buffer:
        """Return the decoded bytes. Never allocates more than the bound size (`nbytes` or `max_nbytes`).

        Raises ChunkError (ChecksumError, ChunkSizeError) if `data` is broken.
        """


@runtime_checkable
class DecodesInto(Protocol):
    """A bytes to bytes codec that can decode straight into the caller's memory."""

    def decode_into(self, data: Buffer, out: memoryview) -> None:
        """Fill `out` (writable, contiguous, format "B", exactly the decoded size) from `data`.

        Raises as `decode`.
        """


@runtime_checkable
class DecodesPart(Protocol):
    """An array to bytes codec that can decode a part, straight into the caller's memory (a shard)."""

    def decode_part(self, data: Buffer, selection: tuple[Any, ...], out: AnyArray) -> None:
        """Set ``out[...] = decode(data)[selection]``; raises as `decode`.

        `selection` is a piece's `chunk_selection` (see `omnizarr.indexing.Piece`).
        """


Span: TypeAlias = tuple[int, int | None]
"""(start, stop) in bytes, half-open; a negative start counts from the end, with stop None: the last bytes."""


class Source(Protocol):
    """Where the encoded bytes of one chunk can be had from, in part or whole.

    A source that has an attribute ``is_pinned`` which is true gives the spans of all its calls from one version of the
    chunk: the one that its first call met. It raises ConflictError when that is there no more.
    """

    def __call__(self, spans: Sequence[Span] | None) -> Sequence[Buffer] | None:
        """Return the bytes of each span (all of them as one if None), in one round trip; None if nothing is stored.

        An answer may have an attribute ``size``, the number of bytes of the whole chunk.
        A span that reaches past the end is cut there. Asked for all, the source gives what is there now, pinned or not.
        """


Reading: TypeAlias = Generator[Sequence[Span] | None, Sequence[Buffer] | None, bool]
"""Reads a chunk without fetching: yields which spans it needs next (None: all), is sent what a `Source` answers.

Returns False if nothing is stored. Its driver decides how to wait: see `omnizarr.codecs.chain.drive`.
"""


@runtime_checkable
class ReadsPart(Protocol):
    """An array to bytes codec that need not fetch and decode everything (a shard)."""

    def reading(self, selection: tuple[Any, ...], out: AnyArray, *, is_pinned: bool = False) -> Reading:
        """Set ``out[...] = decoded[selection]``, asking for the bytes needed; return False if nothing is stored.

        `selection` is a piece's `chunk_selection` (see `omnizarr.indexing.Piece`). `is_pinned`: all answers are from
        one version of the chunk, so this need not be checked.
        """


@runtime_checkable
class WritesPart(Protocol):
    """An array to bytes codec that need not decode what a write leaves alone (a shard)."""

    def write(self, old: Buffer | None, selection: tuple[Any, ...], value: AnyArray) -> Buffer | None:
        """Return `old` (None: nothing stored) with ``decoded[selection] = value``; None if nothing need be stored."""


Codec: TypeAlias = ArrayToArray | ArrayToBytes | BytesToBytes
Configuration: TypeAlias = Mapping[str, Any]
