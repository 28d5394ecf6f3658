"""The `sharding_indexed` codec: array to bytes. Many inner chunks and an index of their positions in one value.

Names: v3 `sharding_indexed`. Configuration: ``chunk_shape`` of an inner chunk; ``codecs`` of the inner chunks;
``index_codecs``, little-endian `bytes` and `crc32c` if missing; ``index_location``, "end" (default) or "start".

Inner chunks that do not divide the shard are cut at its edge, as is proposed (zarr-specs, pull request 370). Only the
reference engine reads these.

The index holds offset and size of each inner chunk, in C order; both are 2**64 - 1 if it is not stored, which
means the fill value. Inner chunks may be anywhere in the shard; omnizarr writes them without gaps, in C order, or in
that of zarr-python to its arrays (`ChunkPolicy.shard_order`).

A part of a shard is read in two requests: the index, then the inner chunks, near ones together (`spans`). A
small shard is read whole in one request. Unless the source guarantees that all its answers are from one
version, the second request fetches the last bytes of the index again. If they have changed, the shard was
replaced meanwhile, and is fetched again as a whole.

Agrees with: zarr-python, TensorStore, zarrs. Spec: Zarr v3, "Sharding codec".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from omnizarr.codecs import chain, registry, spans
from omnizarr.codecs.chain import Chain, describe_chain
from omnizarr.codecs.configuration import REQUIRED, Fields
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer, BytesSpec, Configuration, Description, Reading, Span
from omnizarr.codecs.record import A2B, ALL, Name, Parameters, Record, brief
from omnizarr.codecs.streams import changed_by, limit_of, variable
from omnizarr.errors import ChunkSizeError, CodecError, OmnizarrError, ShardIndexError
from omnizarr.indexing import Piece, subplan
from omnizarr.model import JSON, Named, datatypes, grids
from omnizarr.model.grids import Grid

_SPEC: Final = 'Zarr v3, "Sharding codec"'
_MISSING: Final = 2**64 - 1
_LARGEST_FILE: Final = 2**63 - 1
_BYTES: Final = Named("bytes", {"endian": "little"})
_INDEX_CODECS: Final = (_BYTES, Named("crc32c"))
# A writer may align inner chunks, for example to disk pages, and leave unused bytes between them.
_ALIGNMENT: Final = 4096
_CHECKSUM_SIZE: Final = 4
_MANY: Final = 1 << 16
"""Number of inner chunks from which the index of a shard is read first, even if all of the shard is needed."""


@dataclass(frozen=True, slots=True, eq=False)
class Sharding:
    """A shard.

    Attributes
    ----------
    decoded : ArraySpec
        The shard as an array.
    encoded : BytesSpec
    grid : Grid
        Grid of the inner chunks in the shard.
    inner : Chain
        Codecs of an inner chunk.
    index : Chain
        Codecs of the index.
    index_size : int
    index_at_end : bool
    is_small : bool
        Whether fetching all of it takes no longer than a part.
    sequence : ndarray, optional
        The numbers of the inner chunks in the order in which they are written. None: C order, like their numbers.
    """

    decoded: ArraySpec
    encoded: BytesSpec
    grid: Grid
    inner: Chain
    index: Chain
    index_size: int
    index_at_end: bool
    is_small: bool
    sequence: AnyArray | None = None
    edges: Callable[[tuple[int, ...]], Chain] | None = None
    """Returns the codecs of an inner chunk with this shape. None: all have one shape, that of `inner`."""

    def inner_at(self, coords: tuple[int, ...]) -> Chain:
        """Return the codecs of the inner chunk at `coords`, which the edge of the shard may cut."""
        if self.edges is None:
            return self.inner
        shape = self.grid.shape_of(coords)
        return self.inner if shape == self.inner.spec.shape else self.edges(shape)

    def describe_native(self, _spec: ArraySpec) -> Description | None:
        """Return what the native engine takes; see `omnizarr.codecs.chain.describe_chain`."""
        inner, index = describe_chain(self.inner), describe_chain(self.index)
        if inner is None or index is None or self.edges is not None or max(self.inner.spec.shape, default=0) >= 2**63:
            return None
        sequence = () if self.sequence is None else (self.sequence.tolist(),)
        return "sharding", self.inner.spec.shape, inner, index, self.index_at_end, *sequence

    def encode(self, array: AnyArray) -> Buffer:
        """Return the shard of `array`. Inner chunks that hold only the fill value are omitted (see `ChunkPolicy`)."""
        if array.shape != self.decoded.shape:
            raise CodecError("the array has the wrong shape", found=array.shape, expected=self.decoded.shape)
        return self._assemble(dict(enumerate(self._encode_inner(array, piece) for piece in self._all_pieces())))

    def decode(self, data: Buffer) -> AnyArray:
        """Return the whole array.

        Raises
        ------
        ShardIndexError
            If the index is not possible, or points outside the shard.
        ChunkError
            If the index or an inner chunk is broken otherwise; the message names the inner chunk.
        ChunkNotFoundError
            If an inner chunk is missing, and the array was opened with ``missing="error"``.
        """
        self._check_length(len(data))
        out: AnyArray = np.empty(self.decoded.shape, self.decoded.dtype)
        self._decode_pieces(data, self._all_pieces(), out)
        return out

    def decode_part(self, data: Buffer, selection: tuple[Any, ...], out: AnyArray) -> None:
        """Set ``out[...] = decoded[selection]``.

        Decodes only the needed inner chunks. Raises the errors of `decode`.
        """
        self._check_length(len(data))
        self._decode_pieces(data, list(subplan(selection, self.grid)), out)

    def reading(self, selection: tuple[Any, ...], out: AnyArray, *, is_pinned: bool = False) -> Reading:
        """Set ``out[...] = decoded[selection]``, requesting only the index and the needed inner chunks.

        Returns False if the shard is not stored. Raises the errors of `decode`.
        """
        values: Sequence[Buffer] | None = ()
        if self.grid.nchunks > _MANY:  # see first whether the value has room for their index
            values = yield [self.index_span]
            if values is None:
                return False
            self._check_length(len(values[0]))
        pieces = list(subplan(selection, self.grid))
        if not pieces:
            return True
        if not values:
            # Whether fetching a part of an inner chunk pays, which it does only if the inner chunk is a shard, too.
            if self.is_small or (
                len(pieces) == self.grid.nchunks
                and not (isinstance(self.inner.serializer[1], Sharding) and not all(piece.whole for piece in pieces))
            ):
                return (yield from self._reading_all(pieces, out))
            values = yield [self.index_span]
            if values is None:
                return False
        index = values[0]
        entries = self._entries(self._decode_index(index), pieces, None)
        if not any(entries):
            self._place(pieces, [None] * len(pieces), out)
            return True
        stamp = None if is_pinned else bytes(memoryview(index)[-self._stamp_size :])
        if (yield from self._reading_entries(stamp, pieces, entries, out)):
            return True
        return (yield from self._reading_all(pieces, out))

    def write(self, old: Buffer | None, selection: tuple[Any, ...], value: AnyArray) -> Buffer | None:
        """Return the shard `old` with ``decoded[selection] = value``, or None if no inner chunk remains.

        Inner chunks outside the selection keep their bytes, undecoded.

        Raises
        ------
        ShardIndexError, ChunkError
            If the index of `old`, or an inner chunk that is partly overwritten, is broken.
        """
        pieces = list(subplan(selection, self.grid))
        numbers = self._numbers(pieces)
        covered = {number for number, piece in zip(numbers, pieces, strict=True) if piece.whole}
        parts: dict[int, Buffer | None] = {}  # most of very many may be missing
        if old is not None and len(covered) < self.grid.nchunks:
            self._keep(old, covered, parts)
        for number, piece in zip(numbers, pieces, strict=True):
            if piece.whole:
                parts[number] = self._encode_inner(value, piece)
                continue
            try:
                part = value[(*piece.out_selection, ...)]
                parts[number] = self.inner_at(piece.coords).write(parts.get(number), piece.chunk_selection, part)
            except OmnizarrError as error:
                _name_inner_chunk(error, piece.coords)
                raise
        return None if all(part is None for part in parts.values()) else self._assemble(parts)

    # ---- the index

    @property
    def index_span(self) -> Span:
        """Return the position of the index in a shard."""
        return (-self.index_size, None) if self.index_at_end else (0, self.index_size)

    @property
    def _stamp_size(self) -> int:
        """Number of bytes at the end of the index that distinguish it from other versions."""
        codecs = self.index.compressors
        return _CHECKSUM_SIZE if codecs and codecs[-1][0] == "crc32c" else self.index_size

    @property
    def _stamp_span(self) -> Span:
        size = self._stamp_size
        return (-size, None) if self.index_at_end else (self.index_size - size, self.index_size)

    def stored(self, index: Buffer) -> AnyArray:
        """Return which inner chunks are stored, as booleans with the shape of the grid. Raises ShardIndexError."""
        found: AnyArray = (self._decode_index(index) != _MISSING).any(axis=1).reshape(self.grid.grid_shape)
        return found

    def places(self, index: Buffer, size: int) -> AnyArray:
        """Return offset and length of each inner chunk of a shard of `size` bytes, (n, 2) of int64; -1: missing.

        All inner chunks have one shape. Raises ShardIndexError, ChunkSizeError.
        """
        rows = self._decode_index(index)
        is_missing = (rows == _MISSING).all(axis=1)
        offsets, lengths = rows[:, 0], rows[:, 1]
        # Sums of unsigned numbers may overflow.
        is_outside = ~is_missing & ((offsets > size) | (lengths > size) | (offsets > size - np.minimum(lengths, size)))
        exact = self.inner.encoded.nbytes
        is_wrong = is_outside if exact is None else is_outside | (~is_missing & (lengths != exact))
        for number in np.flatnonzero(is_wrong)[:1].tolist():
            coords = tuple(map(int, np.unravel_index(number, self.grid.grid_shape))) if self.grid.grid_shape else ()
            offset, length = map(int, rows[number])
            if is_outside[number]:
                raise _outside(coords, offset, length, size)
            raise _of_wrong_size(coords, length, exact)
        found: AnyArray = np.where(is_missing[:, None], np.uint64(0), rows).astype(np.int64)
        found[is_missing] = -1
        return found

    def _index_of(self, data: Buffer) -> AnyArray:
        """Return the index of a whole shard, one row per inner chunk."""
        start = max(0, len(data) - self.index_size) if self.index_at_end else 0
        return self._decode_index(memoryview(data)[start : start + self.index_size])

    def _check_length(self, found: int) -> None:
        """Raise ShardIndexError if a shard is shorter than its index, before a list of its inner chunks is made."""
        if found < self.index_size:
            raise ShardIndexError(
                "the shard is shorter than its index",
                found=f"{found} bytes",
                expected=f"at least {self.index_size} bytes",
                spec=_SPEC,
            )

    def _decode_index(self, data: Buffer) -> AnyArray:
        self._check_length(len(data))
        try:
            return self.index.decode(data).reshape(-1, 2)
        except OmnizarrError as error:
            error.message = f"index of the shard: {error.message}"
            raise

    def _numbers(self, pieces: Sequence[Piece]) -> list[int]:
        """Return the rows of the index for pieces."""
        shape = self.grid.grid_shape
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        return [sum(map(int.__mul__, piece[0], strides)) for piece in pieces]

    def _entries(self, index: AnyArray, pieces: Sequence[Piece], size: int | None) -> list[tuple[int, int] | None]:
        """Return start and stop of the inner chunks of pieces, None for missing ones.

        `size` is the size of the shard, if known.
        """
        exact = self.inner.encoded.nbytes
        entries: list[tuple[int, int] | None] = []
        for piece, row in zip(pieces, index[self._numbers(pieces)].tolist(), strict=True):
            entry = _entry(row, piece[0], size)
            if self.edges is not None:
                exact = self.inner_at(piece[0]).encoded.nbytes
            # Checked before memory is allocated for it.
            if entry is not None and exact is not None and entry[1] - entry[0] != exact:
                raise _of_wrong_size(piece[0], entry[1] - entry[0], exact)
            entries.append(entry)
        return entries

    # ---- reading

    def _all_pieces(self) -> list[Piece]:
        return list(subplan(tuple(slice(0, length, 1) for length in self.decoded.shape), self.grid))

    def _reading_all(self, pieces: Sequence[Piece], out: AnyArray) -> Reading:
        values = yield None
        if values is None:
            return False
        self._decode_pieces(values[0], pieces, out)
        return True

    def _decode_pieces(self, data: Buffer, pieces: Sequence[Piece], out: AnyArray) -> None:
        entries = self._entries(self._index_of(data), pieces, len(data))
        view = memoryview(data)
        self._place(pieces, [None if entry is None else view[entry[0] : entry[1]] for entry in entries], out)

    def _reading_entries(
        self, stamp: bytes | None, pieces: Sequence[Piece], entries: Sequence[tuple[int, int] | None], out: AnyArray
    ) -> Reading:
        """Fetch and decode the inner chunks at `entries`. Return False if the shard changes meanwhile.

        `stamp` is the end of the index; None if the shard cannot change.
        """
        is_deep = [self._is_deep(piece, entry) for piece, entry in zip(pieces, entries, strict=True)]
        deep = [n for n, yes in enumerate(is_deep) if yes]
        flat = [n for n, yes in enumerate(is_deep) if not yes]
        stored = [n for n in flat if entries[n] is not None]
        ranges, places = spans.coalesce([entry for n in stored if (entry := entries[n]) is not None])
        wanted: list[Span] = [*ranges] if stamp is None else [*ranges, self._stamp_span]
        values: Sequence[Buffer] | None = ()
        if wanted:
            values = yield wanted
        if values is None or (stamp is not None and values[-1] != stamp):
            return False
        size = getattr(values, "size", None)
        chunks: dict[int, Buffer] = {}
        for n, place in zip(stored, places, strict=True):
            chunks[n] = _cut(values[place], ranges[place][0], entries[n], pieces[n].coords, size)
        self._place([pieces[n] for n in flat], [chunks.get(n) for n in flat], out)
        try:
            for n in deep:
                if not (yield from self._reading_deep(pieces[n], entries[n], out, is_pinned=stamp is None)):
                    return False
        except OmnizarrError:
            if (yield from self._is_unchanged(stamp)):
                raise
            return False
        return not deep or (yield from self._is_unchanged(stamp))

    def _is_unchanged(self, stamp: bytes | None) -> Reading:
        if stamp is None:
            return True
        values = yield [self._stamp_span]
        return values is not None and values[0] == stamp

    def _is_deep(self, piece: Piece, entry: tuple[int, int] | None) -> bool:
        """Whether to look for a part within an inner chunk, instead of fetching all of it."""
        if entry is None or piece.whole or not self.inner.reads_part:
            return False
        # A shard within the shard knows where its chunks are; other inner chunks are worth separate requests only
        # if they are large.
        least = spans.GAP if isinstance(self.inner.serializer[1], Sharding) else spans.LARGEST
        return entry[1] - entry[0] > least

    def _reading_deep(self, piece: Piece, entry: tuple[int, int] | None, out: AnyArray, *, is_pinned: bool) -> Reading:
        if entry is None:
            return True
        part, is_view = _target(out, piece)
        try:
            inner = self.inner_at(piece.coords).reading(piece.chunk_selection, part, is_pinned=is_pinned)
            complete = yield from _within(inner, *entry)
        except OmnizarrError as error:
            _name_inner_chunk(error, piece.coords)
            raise
        if not is_view:
            out[piece.out_selection] = part
        return complete

    def _place(self, pieces: Sequence[Piece], chunks: Sequence[Buffer | None], out: AnyArray) -> None:
        """Decode inner chunks (None: missing) and copy the selected parts into `out`."""
        inner = self.inner
        for piece, data in zip(pieces, chunks, strict=True):
            part, is_view = _target(out, piece)
            if self.edges is not None:
                inner = self.inner_at(piece.coords)
            try:
                if data is None:
                    inner.fill_missing(part)
                elif piece.whole:
                    inner.decode_into(data, part)
                else:
                    inner.decode_part(data, piece.chunk_selection, part)
            except OmnizarrError as error:
                _name_inner_chunk(error, piece.coords)
                raise
            if not is_view:
                out[piece.out_selection] = part

    # ---- writing

    def _encode_inner(self, array: AnyArray, piece: Piece) -> Buffer | None:
        """Return the encoded inner chunk of ``array[piece.out_selection]``; None if it need not be stored."""
        try:
            return self.inner_at(piece.coords).encode_unless_empty(array[(*piece.out_selection, ...)])
        except OmnizarrError as error:
            _name_inner_chunk(error, piece.coords)
            raise

    def _keep(self, old: Buffer, covered: set[int], parts: dict[int, Buffer | None]) -> None:
        """Copy the bytes of a shard's inner chunks into `parts`, except those that will be overwritten."""
        view = memoryview(old)
        kept = 0
        rows = self._index_of(old).tolist()
        for number, (coords, row) in enumerate(zip(self.grid.coords(), rows, strict=True)):
            if number in covered:
                continue
            entry = _entry(row, coords, len(old))
            if entry is not None:
                parts[number] = view[entry[0] : entry[1]]
                kept += entry[1] - entry[0]
        if kept > len(old):
            # Copied separately, they might fill the memory.
            raise ShardIndexError(
                "inner chunks overlap",
                found=f"{kept} bytes in all",
                expected=f"at most {len(old)} bytes",
                remedy="write the shard as a whole",
                spec=_SPEC,
            )

    def _assemble(self, parts: Mapping[int, Buffer | None]) -> bytes:
        """Return the shard of encoded inner chunks by number; others, and None, are missing."""
        try:
            table = np.full((self.grid.nchunks, 2), _MISSING, np.uint64)
        except ValueError:  # more than NumPy can count
            raise MemoryError from None
        order = sorted(parts) if self.sequence is None else self.sequence.tolist()
        stored = [number for number in order if parts.get(number) is not None]
        chunks = [part for number in stored if (part := parts[number]) is not None]
        sizes = np.array([len(chunk) for chunk in chunks], np.uint64)
        start = 0 if self.index_at_end else self.index_size
        table[stored, 0] = np.cumsum(sizes, dtype=np.uint64) - sizes + np.uint64(start)
        table[stored, 1] = sizes
        index = self.index.encode(table.reshape(self.index.spec.shape))
        return b"".join([*chunks, index] if self.index_at_end else [index, *chunks])


def _entry(row: Sequence[int], coords: tuple[int, ...], size: int | None) -> tuple[int, int] | None:
    """Return start and stop of the inner chunk with this row of the index; None if it is missing."""
    offset, nbytes = row
    if offset == nbytes == _MISSING:
        return None
    if offset + nbytes > (_LARGEST_FILE if size is None else size):
        raise _outside(coords, offset, nbytes, size)
    return offset, offset + nbytes


def _of_wrong_size(coords: tuple[int, ...], found: int, expected: int | None) -> ChunkSizeError:
    return ChunkSizeError(
        f"inner chunk {coords} has the wrong size", found=f"{found} bytes", expected=f"{expected} bytes"
    )


def _outside(coords: tuple[int, ...], offset: int, nbytes: int, size: int | None) -> ShardIndexError:
    return ShardIndexError(
        f"inner chunk {coords} is outside the shard",
        found=f"{nbytes} bytes at offset {offset}",
        expected=f"nothing beyond byte {size}" if size is not None else "an offset and a size that a file can have",
        spec=_SPEC,
    )


def _cut(value: Buffer, start: int, entry: tuple[int, int] | None, coords: tuple[int, ...], size: int | None) -> Buffer:
    """Return an inner chunk from the fetched span that contains it and begins at `start`."""
    low, high = entry or (0, 0)
    if high - start > len(value):
        raise _outside(coords, low, high - low, start + len(value) if size is None else size)
    return memoryview(value)[low - start : high - start]


def _target(out: AnyArray, piece: Piece) -> tuple[AnyArray, bool]:
    """Return the part of `out` that a piece fills, and whether it is a view. If not, it must be copied there."""
    for selector in piece.out_selection:
        if isinstance(selector, np.ndarray):
            shape = np.broadcast_to(np.False_, out.shape)[piece.out_selection].shape
            return np.empty(shape, out.dtype), False
    # The Ellipsis makes a view of a 0-d array, too.
    return out[(*piece.out_selection, ...)], True


def _within(reading: Reading, start: int, stop: int) -> Reading:
    """Read an inner chunk from `start` to `stop` in the shard: shift requests to these bytes."""
    answer: Sequence[Buffer] | None = None
    while True:
        try:
            wanted = reading.send(answer)
        except StopIteration as end:
            return end.value is True
        values = yield [(start, stop)] if wanted is None else [_shifted(part, start, stop) for part in wanted]
        answer = values and [*values]  # without the size, which is the size of the shard


def _shifted(part: Span, start: int, stop: int) -> Span:
    low, high = part
    first = max(start, stop + low) if low < 0 else min(start + low, stop)
    return first, stop if high is None else max(first, min(start + high, stop))


def _name_inner_chunk(error: OmnizarrError, coords: tuple[int, ...]) -> None:
    error.message = f"inner chunk {coords}: {error.message}"


def bind(configuration: Configuration, decoded: ArraySpec) -> Sharding:
    """Return the codec for shards like `decoded`.

    Raises
    ------
    MetadataError
        If the configuration is broken. The pointer states where.
    CodecError
        If inner chunks are larger than the shard, or the size of the encoded index is not fixed.
    UnknownCodecError
        If a codec of the inner chunks or the index is unknown.

    Examples
    --------
    >>> spec = ArraySpec((4,), datatypes.parse("uint8"), np.uint8(0))
    >>> shard = bind({"chunk_shape": [2], "codecs": [{"name": "bytes"}]}, spec)
    >>> data = shard.encode(np.array([1, 2, 0, 0], "u1"))
    >>> len(data)  # one inner chunk of 2 bytes, two rows of the index, a checksum
    38
    >>> shard.decode(data)
    array([1, 2, 0, 0], dtype=uint8)
    """
    fields = Fields(configuration, ("chunk_shape", "codecs", "index_codecs", "index_location"), _SPEC)
    chunk_shape = _chunk_shape(fields, decoded.shape)
    index_at_end = fields.choice("index_location", {"end": True, "start": False}, "end")
    is_even = not any(length % size for length, size in zip(decoded.shape, chunk_shape, strict=True))
    grid = grids.bind(grids.regular(chunk_shape) if is_even else _cut_grid(chunk_shape, decoded.shape), decoded.shape)
    inner = _bind_chain(fields, "codecs", replace(decoded, shape=chunk_shape))
    edges = None
    if not is_even:
        edges = _Edges(fields, decoded)
        edges(grid.shape_of(tuple(length - 1 for length in grid.grid_shape)))  # if codecs refuse it, now
    uint64 = datatypes.bind(Named("uint64"))
    index_spec = ArraySpec((*grid.grid_shape, 2), uint64, np.uint64(_MISSING))
    index = _bind_chain(fields, "index_codecs", index_spec)
    index_size = index.encoded.nbytes
    if index_size is None:
        raise CodecError(
            "the codecs of the index give no fixed size",
            pointer="/configuration/index_codecs",
            found=[name for name, _ in (*index.filters, index.serializer, *index.compressors)],
            expected="codecs whose result has one size, such as 'bytes' and 'crc32c'",
            spec=_SPEC,
        )
    overhead = grid.nchunks * _ALIGNMENT + index_size
    if decoded.nbytes is None:
        # Not the sum of the bounds of all inner chunks, because few reach their bound.
        encoded = changed_by(variable(decoded), (variable(decoded).max_nbytes or 0) + overhead)
    else:
        largest = limit_of(inner.encoded)
        encoded = BytesSpec(
            None, 1, None if largest is None else grid.nchunks * largest + overhead, inner.encoded.remedy
        )
    is_small = min(decoded.nbytes or math.inf, encoded.max_nbytes or math.inf) + index_size <= spans.GAP
    sequence = _sequence(decoded.policy.shard_order, grid.grid_shape)
    return Sharding(decoded, encoded, grid, inner, index, index_size, index_at_end, is_small, sequence, edges)


def _sequence(order: str, shape: tuple[int, ...]) -> AnyArray | None:
    """Return the numbers of the chunks of a grid in an order; None if it is that of their numbers."""
    if order == "C":
        return None
    try:
        if order == "F":
            return np.arange(math.prod(shape)).reshape(shape).ravel("F")
        codes = np.zeros(shape, np.uint64)
    except ValueError:  # more than NumPy can count
        raise MemoryError from None
    # The bits of all coordinates in turn, from the lowest on; an axis that has no more of them is left out.
    bits = [(length - 1).bit_length() for length in shape]
    turns = [(axis, bit) for bit in range(max(bits, default=0)) for axis in range(len(shape)) if bit < bits[axis]]
    for place, (axis, bit) in enumerate(turns):
        along = np.arange(shape[axis], dtype=np.uint64).reshape([-1 if at == axis else 1 for at in range(len(shape))])
        codes |= ((along >> np.uint64(bit)) & np.uint64(1)) << np.uint64(place)
    return np.argsort(codes, axis=None, kind="stable")


def _chunk_shape(fields: Fields, shape: tuple[int, ...]) -> tuple[int, ...]:
    lengths = fields.raw("chunk_shape")
    is_list = isinstance(lengths, Sequence) and not isinstance(lengths, str)
    # True == 1, but JSON's true is not a length.
    if not is_list or len(lengths) != len(shape) or any(type(n) is not int or n < 1 for n in lengths):
        expected = f"{len(shape)} positive integers, one per dimension of the shard's shape {shape}"
        raise fields.reject("chunk_shape", "no shape of an inner chunk", lengths, expected)
    if any(size > length for length, size in zip(shape, lengths, strict=True)):
        raise CodecError(
            "inner chunks are larger than the shard",
            pointer="/configuration/chunk_shape",
            found=tuple(lengths),
            expected=f"at most the shard's shape {shape}",
            spec=_SPEC,
        )
    return tuple(lengths)


def _cut_grid(chunk_shape: tuple[int, ...], shape: tuple[int, ...]) -> Named:
    """Return the grid of inner chunks of which the edge of the shard cuts the last ones."""
    runs: list[JSON] = []
    for size, length in zip(chunk_shape, shape, strict=True):
        count, rest = divmod(length, size)
        runs.append([[size, count], *[rest] * bool(rest)])
    return Named("rectilinear", {"kind": "inline", "chunk_shapes": runs})


class _Edges:
    """The codecs of inner chunks that the edge of the shard cuts, by their shape.

    Parameters
    ----------
    fields : Fields
        The configuration of the codec.
    decoded : ArraySpec
        The shard.
    """

    __slots__ = ("_decoded", "_fields", "_made")

    def __init__(self, fields: Fields, decoded: ArraySpec) -> None:
        self._fields = fields
        self._decoded = decoded
        self._made: dict[tuple[int, ...], Chain] = {}

    def __call__(self, shape: tuple[int, ...]) -> Chain:
        made = self._made.get(shape)
        if made is None:
            made = self._made[shape] = _bind_chain(self._fields, "codecs", replace(self._decoded, shape=shape))
        return made


def _bind_chain(fields: Fields, name: str, spec: ArraySpec) -> Chain:
    """Bind the list of codecs in a field."""
    default = _INDEX_CODECS if name == "index_codecs" else REQUIRED
    value = fields.raw(name, default)
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise fields.reject(name, "no list of codecs", value, "a list")
    # In documents of 2023, an empty list means little-endian bytes.
    codecs = [_codec(fields, item, f"{name}/{number}") for number, item in enumerate(value)] or [_BYTES]
    try:
        return chain.bind(codecs, spec)
    except OmnizarrError as error:
        error.pointer = f"/configuration/{name}" + (error.pointer or "").removeprefix("/codecs")
        raise


def _codec(fields: Fields, item: Any, place: str) -> Named:
    if isinstance(item, str):
        return Named(item)
    if isinstance(item, Named):
        return item
    if isinstance(item, Mapping) and isinstance(item.get("name"), str):
        configuration = item.get("configuration", {})
        if isinstance(configuration, Mapping):
            return Named(item["name"], configuration, item.get("must_understand", True) is not False)
    raise fields.reject(place, "no codec", item, "an object with a name, and perhaps a configuration")


def _words(given: Parameters) -> str:
    inner = registry.words_of_list(given.get("codecs")) or ["uncompressed"]
    index = registry.words_of_list(given.get("index_codecs")) or ["no checksum"]
    place = brief(given.get("index_location", "end"))
    return f"{', then '.join(inner)}, in shards with the index at the {place} ({', '.join(index)})"


CODECS = (
    Record(
        id="sharding_indexed", kind=A2B, names={"sharding_indexed": Name(bind, ALL, "core")},
        parameters={"chunk_shape": list, "codecs": list, "index_codecs": list, "index_location": str}, v2="-",
        native=True, words=_words, defaults={"index_location": "end"},
        remedy="there are no shards: re-encode with the inner chunks as chunks, or write v3",
    ),
)  # fmt: skip
