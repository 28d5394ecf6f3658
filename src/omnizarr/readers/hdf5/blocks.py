"""The elements of any dataset as blocks of bytes without filters: in the file, in others, and in other datasets.

The reader makes chunks of them where no codec does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ChunkError, OmnizarrError
from omnizarr.readers.hdf5 import chunks, elements, filters, outside, virtual
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.outside import Files, Outside
from omnizarr.readers.hdf5.virtual import Axes, Axis, Mapping, Unsupported
from omnizarr.stores.manifests.manifest import strided

_MOST_BYTES: Final = 1 << 22  # of a chunk of a virtual dataset, unless that are too many chunks
_LARGEST: Final = 1 << 26
_MOST_CHUNKS: Final = 1 << 20
_MOST_SOURCES: Final = 1 << 16  # that a pattern in a name may mean

_Bytes: TypeAlias = NDArray[np.void]


class Blocks(NamedTuple):
    """The elements of a dataset in blocks.

    Attributes
    ----------
    shape, chunk_shape, grid : tuple of int
    fetch : callable
        Returns the bytes of a whole block, by its number; None if it is not stored.
    numbers : callable
        Returns the numbers of blocks that may be stored.
    has : callable
        Returns whether a block may be stored.
    """

    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    grid: tuple[int, ...]
    fetch: Callable[[int], bytes | None]
    numbers: Callable[[], range | list[int]]
    has: Callable[[int], bool]


def of(dataset: Dataset, files: Files) -> Blocks:
    """Return the elements of a dataset in blocks. Raises MetadataError, Unsupported, Outside."""
    if dataset.is_external:
        return _external(dataset, files)
    if dataset.layout.storage == "virtual":
        if elements.has_heap(dataset.datatype):
            raise Unsupported("it is virtual, and its elements have a variable length")
        return Virtual(dataset, files).blocks()
    if dataset.layout.storage == "chunked":
        return _chunked(dataset)
    return _whole(dataset)


def missing(dataset: Dataset, files: Files) -> Iterator[tuple[str, str]]:
    """Yield file and path of the sources of a virtual dataset that do not exist, and of those of its sources.

    Raises what `of` raises, for each source too, and MetadataError if one is the dataset itself.
    """
    return _missing(dataset, files, frozenset(), set())


_Place: TypeAlias = tuple[int, int]


def _missing(dataset: Dataset, files: Files, above: frozenset[_Place], seen: set[_Place]) -> Iterator[tuple[str, str]]:
    own = id(files.file.source.file), dataset.header.address
    if own in above:
        raise dataset.header.source.broken(dataset.header.address, "a virtual dataset leads back to itself")
    if own in seen:
        return
    seen.add(own)
    if dataset.is_external:
        _external(dataset, files)
    elif dataset.layout.storage == "virtual":
        names = dict.fromkeys((each.file, each.path) for each in virtual.read(dataset))
        for file, path in dict.fromkeys(tuple(virtual.numbered(each, 0) for each in name) for name in names):
            opened = files.dataset(file, path)
            if opened is None:
                yield file, path
                continue
            yield from _missing(*opened, above | {own}, seen)


def _grid(shape: Sequence[int], chunk_shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(-(-length // step) for length, step in zip(shape, chunk_shape, strict=True))


def _chunked(dataset: Dataset) -> Blocks:
    shape, chunk_shape = dataset.shape, dataset.layout.chunk_shape
    source = dataset.header.source

    def table() -> chunks.Chunks:
        key = "chunks", dataset.header.address
        found: chunks.Chunks | None = source.memo.get(key)
        if found is None:
            found = source.memo[key] = chunks.read(dataset)
        return found

    def fetch(number: int) -> bytes | None:
        known = table()
        at = int(np.searchsorted(known.numbers, number))
        if at >= len(known) or known.numbers[at] != number:
            return None
        skipped = 0 if known.skipped is None else int(known.skipped[at])
        data = source.read(int(known.offsets[at]) - source.base, int(known.lengths[at]))
        return bytes(filters.decode(dataset.filters, skipped, data, dataset.datatype.size, chunks.chunk_bytes(dataset)))

    def numbers() -> list[int]:
        found: list[int] = table().numbers.tolist()
        return found

    return Blocks(shape, chunk_shape, _grid(shape, chunk_shape), fetch, numbers, lambda _: True)


def _whole(dataset: Dataset) -> Blocks:
    """Return blocks of elements that are not divided in the file."""
    layout, source = dataset.layout, dataset.header.source

    def read(start: int, length: int) -> bytes:
        if layout.storage == "compact":
            return layout.data[start : start + length]
        return source.read((layout.address or 0) + start, length)

    return _divided(dataset, read, is_stored=layout.storage == "compact" or layout.address is not None)


def _divided(dataset: Dataset, read: Callable[[int, int], bytes], *, is_stored: bool) -> Blocks:
    shape = dataset.shape
    if not prod(shape):
        return Blocks(shape, tuple(max(1, each) for each in shape), shape, lambda _: None, list, lambda _: False)
    chunk_shape, manifest = strided(shape, dataset.datatype.size, 0)
    size = prod(chunk_shape) * dataset.datatype.size

    def fetch(number: int) -> bytes | None:
        if not is_stored:
            return None
        extent = manifest.find(number)
        data = read(extent.offset, extent.length)
        if len(data) != extent.length:
            raise ChunkError("the elements of a dataset end too early", found=len(data), expected=extent.length)
        return data.ljust(size, b"\0")

    grid = _grid(shape, chunk_shape)
    numbers = range(prod(grid)) if is_stored else range(0)
    return Blocks(shape, chunk_shape, grid, fetch, lambda: numbers, lambda _: is_stored)


# -- external storage ---------------------------------------------------------------------


def _external(dataset: Dataset, files: Files) -> Blocks:
    parts = []
    for piece in outside.pieces(dataset):
        file = files.raw(piece.name)
        if file is None:
            raise Unsupported(f"its elements are in the file {piece.name!r}, which does not exist")
        if file.size is None or piece.offset + piece.length > file.size:
            raise Unsupported(f"its elements end after the file {piece.name!r}, which has {file.size} bytes")
        parts.append((file, piece.offset, piece.length))
    return _divided(dataset, lambda start, length: outside.read_pieces(parts, start, length), is_stored=bool(parts))


# -- virtual datasets ---------------------------------------------------------------------


def shape_of(dataset: Dataset, files: Files) -> tuple[int, ...]:
    """Return the shape of a dataset, which may depend on others. Raises MetadataError, Unsupported, Outside."""
    return Virtual(dataset, files).shape if dataset.layout.storage == "virtual" else dataset.shape


class Virtual:
    """A virtual dataset.

    Parameters
    ----------
    dataset : Dataset
    files : Files

    Attributes
    ----------
    mappings : list of Mapping
        Those that it has now: the extent of each is known.
    shape, chunk_shape, grid : tuple of int

    Raises
    ------
    MetadataError, Unsupported, Outside
    """

    def __init__(self, dataset: Dataset, files: Files) -> None:
        self.dataset, self.files = dataset, files
        self.mappings, self.shape = self._concrete(virtual.read(dataset))
        self.dtype = np.dtype(f"V{dataset.datatype.size}")
        self.chunk_shape = self._chunk_shape()
        self.grid = _grid(self.shape, self.chunk_shape)
        if prod(self.grid) > _MOST_CHUNKS:
            raise Unsupported("it is virtual, and too large")

    def blocks(self) -> Blocks:
        """Return its elements in blocks."""
        return Blocks(self.shape, self.chunk_shape, self.grid, self._fetch, self._numbers, self._has)

    def target(self, mapping: Mapping) -> Axes:
        """Return which elements a mapping shows."""
        return virtual.whole(self.shape) if mapping.target is None else mapping.target

    # -- mappings without an end ------------------------------------------------------------

    def _concrete(self, mappings: list[Mapping]) -> tuple[list[Mapping], tuple[int, ...]]:
        """Return mappings of known extent, and the shape, which depends on those without an end."""
        found: list[Mapping] = []
        shape = list(self.dataset.shape)
        growing: set[int] = set()
        for name in {each.file for each in mappings}:
            self.files.check(name)
        for each in mappings:
            axis = _endless(each.target)
            if each.target is not None and len(each.target) != len(shape):
                raise Unsupported("a mapping has other dimensions than the dataset")
            if axis is None or each.target is None:
                if _endless(each.source) is not None:
                    raise Unsupported("a mapping has an end in the virtual dataset, and none in its source")
                found.append(each)
                continue
            growing.add(axis)
            found += (
                self._numbered(each, each.target, axis) if "%b" in each.file + each.path else self._ended(each, axis)
            )
        for axis in growing:
            shape[axis] = max((each.target[axis].stop for each in found if each.target is not None), default=0)
        return found, tuple(shape)

    def _numbered(self, mapping: Mapping, target: Axes, axis: int) -> list[Mapping]:
        """Return the mappings for names with numbers, as many as there are."""
        found: list[Mapping] = []
        for number in range(_MOST_SOURCES):
            file, path = (virtual.numbered(each, number) for each in (mapping.file, mapping.path))
            if self.files.dataset(file, path) is None:
                return found
            one = target[axis]
            axes = list(target)
            axes[axis] = Axis(one.start + number * one.stride, one.stride, 1, one.block)
            found.append(Mapping(file, path, mapping.source, tuple(axes)))
        raise Unsupported(f"a name with a number means more than {_MOST_SOURCES} sources")

    def _ended(self, mapping: Mapping, axis: int) -> list[Mapping]:
        opened = self.files.dataset(mapping.file, mapping.path)
        if opened is None or mapping.target is None:
            return []
        shape = shape_of(*opened)
        at = _endless(mapping.source)
        if mapping.source is None or at is None or len(shape) != len(mapping.source):
            raise Unsupported("a mapping has no end in the virtual dataset, and one in its source")
        count = replace(mapping.source[at], count=1 << 61).ranks(0, shape[at])[1]
        source, target = list(mapping.source), list(mapping.target)
        source[at], target[axis] = _with(source[at], count), _with(target[axis], count)
        return [Mapping(mapping.file, mapping.path, tuple(source), tuple(target))]

    # -- chunks --------------------------------------------------------------------------------

    def _chunk_shape(self) -> tuple[int, ...]:
        """Return the chunk shape of the first source, if that is handy; or one of about as many bytes as usual."""
        size = self.dataset.datatype.size
        for most in (_MOST_BYTES, _LARGEST):
            for found in (self._of_source() if most == _MOST_BYTES else None, _by_bytes(self.shape, size, most)):
                if (
                    found is not None
                    and prod(found) * size <= _LARGEST
                    and prod(_grid(self.shape, found)) <= _MOST_CHUNKS
                ):
                    return found
        return _by_bytes(self.shape, size, _LARGEST)

    def _of_source(self) -> tuple[int, ...] | None:
        if not self.mappings:
            return None
        mapping = self.mappings[0]
        try:
            opened = self.files.dataset(mapping.file, mapping.path)
            if opened is None:
                return None
            blocks = of(*opened)
            target = self.target(mapping)
            pairs = virtual.pairs(_source(mapping, blocks.shape), target)
        except (OmnizarrError, Outside, Unsupported):
            return None
        steps = (1 if at is None else blocks.chunk_shape[at] for at in pairs)
        return tuple(max(1, min(step, length)) for step, length in zip(steps, self.shape, strict=True))

    def _boxes(self, mapping: Mapping) -> list[slice]:
        """Return the chunks between the first and the last element of a mapping, along each dimension."""
        found = []
        for axis, step, count in zip(self.target(mapping), self.chunk_shape, self.grid, strict=True):
            found.append(slice(min(count, axis.start // step), min(count, -(-axis.stop // step)) if axis.length else 0))
        return found

    def _has(self, number: int) -> bool:
        coords = [int(each) for each in np.unravel_index(number, self.grid)] if self.grid else []
        for mapping in self.mappings:
            boxes = self._boxes(mapping)
            if all(box.start <= at < box.stop for box, at in zip(boxes, coords, strict=True)):
                return True
        return False

    def _numbers(self) -> list[int]:
        """Return the chunks that stored elements of a source may be in."""
        found = np.zeros(self.grid, np.bool_)
        is_stored: dict[tuple[str, str], bool] = {}
        for mapping in self.mappings:
            key = mapping.file, mapping.path
            if key not in is_stored:
                is_stored[key] = self._has_stored(*key)
            if is_stored[key]:
                found[tuple(self._boxes(mapping))] = True
        numbers: list[int] = np.flatnonzero(found).tolist()
        return numbers

    def _has_stored(self, file: str, path: str) -> bool:
        """Return whether a source has stored elements, or cannot be read: those who read it then see why."""
        try:
            opened = self.files.dataset(file, path)
            return opened is not None and len(of(*opened).numbers()) > 0
        except (OmnizarrError, Outside, Unsupported):
            return True

    def _fetch(self, number: int) -> bytes:
        low = (
            [int(at) * step for at, step in zip(np.unravel_index(number, self.grid), self.chunk_shape, strict=True)]
            if self.grid
            else []
        )
        high = [min(at + step, length) for at, step, length in zip(low, self.chunk_shape, self.shape, strict=True)]
        out = _filled(self.dataset, self.chunk_shape)
        for mapping in self.mappings:
            target = self.target(mapping)
            ranks = [axis.ranks(first, stop) for axis, first, stop in zip(target, low, high, strict=True)]
            if all(first < stop for first, stop in ranks):
                self._show(mapping, target, ranks, low, out)
        return out.tobytes()

    def _show(self, mapping: Mapping, target: Axes, ranks: list[tuple[int, int]], low: list[int], out: _Bytes) -> None:
        try:
            opened = self.files.dataset(mapping.file, mapping.path)
            if opened is None:
                return
            dataset = opened[0]
            blocks = of(*opened)
            indices, _ = wanted(mapping, blocks.shape, target, ranks)
        except (Unsupported, Outside) as error:
            raise unread(mapping, error) from error
        part = _converted(gather(dataset, blocks, indices), dataset, self.dataset)
        places = [
            axis.indices(first, stop) - base for axis, (first, stop), base in zip(target, ranks, low, strict=True)
        ]
        out[np.ix_(*places)] = part.reshape([len(each) for each in places])


def unread(mapping: Mapping, error: Exception) -> ChunkError:
    """Return the error that a source cannot be read."""
    return ChunkError(f"a part of a virtual dataset cannot be read: {error}", found=f"{mapping.path} in {mapping.file}")


def wanted(
    mapping: Mapping, shape: tuple[int, ...], target: Axes, ranks: Sequence[tuple[int, int]]
) -> tuple[list[NDArray[np.int64]], list[int | None]]:
    """Return which elements of a source are shown, along each of its dimensions, and to which ones the target's belong.

    `shape` is that of the source, and `ranks` says which of the elements of the target. Raises Unsupported, and
    ChunkError if the source does not have them.
    """
    source = _source(mapping, shape)
    pairs = virtual.pairs(source, target)
    indices = [axis.indices(0, 1) for axis in source]
    for at, (first, stop) in zip(pairs, ranks, strict=True):
        if at is not None:
            indices[at] = source[at].indices(first, stop)
    if any(len(each) and each[-1] >= length for each, length in zip(indices, shape, strict=True)):
        raise ChunkError(
            "a virtual dataset shows elements that its source does not have",
            found=f"{mapping.path} of shape {shape} in {mapping.file}",
        )
    return indices, pairs


def _with(axis: Axis, count: int) -> Axis:
    """Return an axis with so many indices; the last block has all of them."""
    if axis.stride == axis.block:
        return Axis(axis.start, 1, count, 1)
    return replace(axis, count=count // axis.block)


def _endless(axes: Axes | None) -> int | None:
    return next((at for at, axis in enumerate(axes or ()) if axis.count is None), None)


def _source(mapping: Mapping, shape: tuple[int, ...]) -> Axes:
    """Return the elements of the source. Raises Unsupported if it has other dimensions."""
    if mapping.source is None:
        return virtual.whole(shape)
    if len(mapping.source) != len(shape):
        raise Unsupported("a mapping has other dimensions than its source")
    return mapping.source


def _by_bytes(shape: tuple[int, ...], size: int, most: int) -> tuple[int, ...]:
    """Return a chunk shape of at most so many bytes: as many dimensions as a whole as possible, the last ones first."""
    found = [1] * len(shape)
    left = max(1, most // size)
    for axis in range(len(shape) - 1, -1, -1):
        found[axis] = max(1, min(shape[axis], left))
        left //= found[axis]
    return tuple(found)


def _filled(dataset: Dataset, shape: Sequence[int]) -> _Bytes:
    """Return elements that are the fill value."""
    dtype = np.dtype(f"V{dataset.datatype.size}")
    found = np.zeros(tuple(shape), dtype)
    if dataset.fill.raw is not None:
        found[...] = np.frombuffer(dataset.fill.raw, dtype)[0]
    return found


def gather(dataset: Dataset, blocks: Blocks, indices: Sequence[NDArray[np.int64]]) -> _Bytes:
    """Return the elements of a dataset at some indices along each dimension, which are sorted."""
    out = _filled(dataset, [len(each) for each in indices])
    along = []
    for each, step in zip(indices, blocks.chunk_shape, strict=True):
        numbers, starts = np.unique(each // step, return_index=True)
        stops = [*starts[1:].tolist(), len(each)]
        along.append(list(zip(numbers.tolist(), starts.tolist(), stops, strict=True)))
    for parts in product(*along):
        number = 0
        for (at, _, _), count in zip(parts, blocks.grid, strict=True):
            number = number * count + at
        data = blocks.fetch(number)
        if data is None:
            continue
        chunk = np.frombuffer(data, out.dtype).reshape(blocks.chunk_shape)
        inside = [
            each[start:stop] - at * step
            for each, (at, start, stop), step in zip(indices, parts, blocks.chunk_shape, strict=True)
        ]
        out[tuple(slice(start, stop) for _, start, stop in parts)] = chunk[np.ix_(*inside)] if inside else chunk
    return out


def _converted(found: _Bytes, source: Dataset, target: Dataset) -> Any:
    """Return elements of one datatype as those of another: numbers as numbers, limited to what the type has."""
    if source.datatype == target.datatype:
        return found
    first, second = source.datatype.dtype(), target.datatype.dtype()
    if first is None or second is None or first.kind not in "iuf" or second.kind not in "iuf":
        raise ChunkError(
            "a virtual dataset has another datatype than its source",
            found=source.datatype.title(),
            expected=target.datatype.title(),
        )
    values = found.view(first)
    if second.kind in "iu":
        info = np.iinfo(second.str)
        if first.kind == "f":
            values = np.nan_to_num(np.trunc(values))
        values = np.clip(values, max(info.min, _least(first)), min(info.max, _most(first)))
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(second).view(f"V{second.itemsize}")


def _least(dtype: np.dtype[Any]) -> float | int:
    return int(np.iinfo(dtype.str).min) if dtype.kind in "iu" else -float("inf")


def _most(dtype: np.dtype[Any]) -> float | int:
    return int(np.iinfo(dtype.str).max) if dtype.kind in "iu" else float("inf")
