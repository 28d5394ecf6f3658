"""The chunks of a lazy array: stored chunks of its sources, passed on unchanged, and others, which are encoded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.codecs.chain import Chain
from omnizarr.engine import Binding, reference
from omnizarr.errors import OmnizarrError
from omnizarr.indexing import Plan, transforms
from omnizarr.indexing.inverse import transform_of
from omnizarr.indexing.transforms import Along, Transform
from omnizarr.model import ArrayMetadata
from omnizarr.model.grids import Axis, Coords, Grid
from omnizarr.nodes import holdings
from omnizarr.nodes.array import Array
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.encoded import MOST_SOURCES, EncodedChunks
from omnizarr.nodes.equivalence import have_same_bytes, spec_of
from omnizarr.nodes.indexers import AnyArray
from omnizarr.nodes.lazy import sources
from omnizarr.nodes.lazy.deferred import Deferred
from omnizarr.nodes.lazy.reading import Job, jobs, opened_jobs, read
from omnizarr.nodes.lazy.tree import Filled, Leaf, selected
from omnizarr.nodes.lazy.view import LazyArray
from omnizarr.nodes.location import StorePath
from omnizarr.stores import Buffer, MemoryStore, Span, Store, verbs
from omnizarr.stores.base import Buffers, cut, parts_of

_PLAIN: Final = "biufcmMSUV"
"""Kinds of data types whose elements are bytes."""
_MOST_ASKED_FOR: Final = 1000
"""Stored chunks that are looked for, to find out whether a chunk is missing that is made of them."""
_MOST_KNOWN: Final = 1024
"""Sources of which it is remembered whether their chunks fit."""
_SAMPLE: Final = 32
"""Sources of which a chunk is looked at, to find out whether most chunks are passed on."""


class Stored(NamedTuple):
    """A stored chunk of a source."""

    leaf: Leaf
    array: Array
    coords: Coords

    @property
    def store(self) -> Store:
        """The store of the source."""
        return self.array.store

    @property
    def key(self) -> str:
        """The key in that store."""
        return _bound(self.array).key_of(self.coords)


def _bound(array: Array) -> Binding:
    return (array._state.bound or array._bind()).binding  # noqa: SLF001 - a part of Array


class ShownChunks:
    """The chunks of one lazy array.

    Parameters
    ----------
    view : LazyArray
    array : Array
        The array that it is shown as.
    is_listed : bool
        Whether all sources can be listed. If not, no chunk is missing.
    """

    def __init__(self, view: LazyArray, array: Array, *, is_listed: bool) -> None:
        self.view = view
        self.array = array
        self.grid: Grid = array._grid  # noqa: SLF001 - a part of Array
        self._node = view._node  # noqa: SLF001 - two halves of one thing
        self._is_listed = is_listed
        self._fitting: dict[int, tuple[ArrayMetadata, bool, bool]] = {}
        self._kept = EncodedChunks()

    def holds(self, coords: Coords) -> bool:
        """Return whether the array has such a chunk."""
        return all(0 <= at < count for at, count in zip(coords, self.grid.grid_shape, strict=True))

    def read(self, plan: Plan, grid: Grid, out: AnyArray, concurrency: int | None) -> None:
        """Fill `out` with what a plan selects, without chunks."""
        if 0 not in plan.buffer_shape:
            read(selected(self._node, transform_of(plan, grid)), out, concurrency)

    def passes_on(self) -> bool:
        """Return whether at least half of the chunks are passed on, as far as a sample tells."""
        found = list(itertools.islice(jobs(self._node), 10_000))
        sample = found[:: max(1, len(found) // _SAMPLE)]
        middles = filter(None, map(self._middle, sample))
        return 2 * sum(self.stored(coords) is not None for coords in middles) >= max(1, len(sample))

    def _middle(self, job: Job) -> Coords | None:
        """Return a chunk within the elements of a job; None if there is none."""
        region = _region(job)
        if region is None or not all(region):
            return None
        found = []
        for axis, part in zip(self.grid.axes, region, strict=True):
            number, start, size = axis.find((part.start + part.stop) // 2)
            if not (part.start <= start and min(start + size, axis.length) <= part.stop):
                return None
            found.append(number)
        return tuple(found)

    # -- which chunks are passed on --------------------------------------------------

    def _jobs(self, coords: Coords) -> Iterator[Job]:
        box = self.grid.slices_of(coords)
        places = [Along(dim, range(part.start, part.stop)) for dim, part in enumerate(box)]
        return jobs(selected(self._node, Transform([len(place.indices) for place in places], places)))

    def stored(self, coords: Coords) -> Stored | None:
        """Return the stored chunk of a source that a chunk is; None if it is none."""
        return self._stored_of(list(itertools.islice(self._jobs(coords), 2)), coords)

    def _stored_of(self, found: Sequence[Job], coords: Coords) -> Stored | None:
        return self._stored(found[0], coords) if len(found) == 1 else None

    def _stored(self, job: Job, coords: Coords) -> Stored | None:
        array = None if job.steps else _array_of(job)
        if array is None or not isinstance(job.leaf, Leaf):
            return None
        is_in_place = job.target.outputs == transforms.identity(job.target.shape).outputs
        fits, in_any_shape = self._fits(array) if is_in_place else (False, False)
        sizes = [axis.chunk(at)[1] for axis, at in zip(self.grid.axes, coords, strict=True)]
        found = _whole_chunk(job, _bound(array).grid, sizes) if fits else None
        if found is None:
            return None
        at, dims = found
        if dims != list(range(len(sizes))) or len(at) != len(sizes):
            long = [dim for dim in dims if sizes[dim] != 1]
            if not in_any_shape or long != sorted(long):
                return None
        leaf = job.leaf.source.leaf() if isinstance(job.leaf.source, Deferred) else job.leaf
        return Stored(leaf, array, at)

    def _fits(self, array: Array) -> tuple[bool, bool]:
        """Return whether stored chunks of an array mean the same here, and whether in any shape of equal size."""
        metadata, shown = array._metadata, self.array._metadata  # noqa: SLF001 - a part of Array
        known = self._fitting.get(id(metadata))
        if known is None:
            in_any_shape = bool(metadata.codecs) and metadata.codecs[0].name == "bytes"
            here = replace(metadata, shape=shown.shape, chunk_grid=shown.chunk_grid)
            is_alike = in_any_shape or len(metadata.shape) == len(shown.shape)
            fits = is_alike and not metadata.storage_transformers and have_same_bytes(here, shown)
            if len(self._fitting) >= _MOST_KNOWN:
                self._fitting.clear()
            known = self._fitting[id(metadata)] = metadata, fits, in_any_shape
        return known[1:]

    def _has_same_fill(self, array: Array) -> bool:
        """Return whether missing chunks of a source read as those of the lazy array."""
        try:
            other, own = spec_of(array._metadata), spec_of(self.array._metadata)  # noqa: SLF001 - a part of Array
        except OmnizarrError:
            return False
        return other.dtype == self.view.dtype and _are_equal(other.fill_value, own.fill_value, own.dtype)

    # -- values ----------------------------------------------------------------------

    def value(self, coords: Coords, span: Span | None = None) -> Buffer | None:
        """Return the bytes of a chunk, or a part of them; None if it is missing."""
        found = list(self._jobs(coords))
        stored = self._stored_of(found, coords)
        if stored is not None:
            sources.check(stored.leaf)
            value = stored.store.get(stored.key, span)
            if value is not None:
                return value
            _check_there(stored.leaf, stored.array)
        if not self._is_there(found, stored):
            return None
        if span is None:
            return self._encoded(coords)
        made_of = self._made_of(found)
        if made_of is None:
            return cut(self._encoded(coords), span)
        kept = self._kept.get(str(coords), None, made_of, lambda: self._encoded(coords))
        return None if kept is None else cut(kept, span)

    def spans(self, coords: Coords, spans: Sequence[Span]) -> Buffers | None:
        """Return several parts of the bytes of a chunk; None if it is missing."""
        stored = self.stored(coords)
        if stored is not None:
            sources.check(stored.leaf)
            found = verbs.get_spans(stored.store, stored.key, spans)
            if found is not None:
                return found
        value = self.value(coords, (0, None))
        return None if value is None else parts_of(value, spans)

    def _encoded(self, coords: Coords) -> Buffer:
        chain = self._binding.chain_for(coords)
        try:
            return self._encoded_by(chain, coords)
        except MemoryError as error:
            bound = _bound(self.array)
            raise reference.too_large(bound, chain, bound.key_of(coords), coords) from error

    def _encoded_by(self, chain: Chain, coords: Coords) -> Buffer:
        spec, dtype = chain.spec, self.view.dtype
        box = self.grid.slices_of(coords)
        if dtype.kind in _PLAIN and dtype.kind == spec.dtype.kind and not dtype.hasobject:
            lengths = tuple(part.stop - part.start for part in box)
            whole = np.empty(spec.shape, spec.dtype) if lengths == spec.shape else chain.empty()
            inside: tuple[Any, ...] = (*map(slice, lengths), ...)
            part = whole[inside]
            places = [Along(dim, range(each.start, each.stop)) for dim, each in enumerate(box)]
            read(selected(self._node, Transform(lengths, places)), part)
            return chain.encode(whole)
        scratch = MemoryStore()
        config = ArrayConfig.of(None, write_empty_chunks=True)
        Array(StorePath(scratch, ""), self.array._metadata, config)[box or ...] = self.view[box or ...]  # noqa: SLF001
        (found,) = scratch.store_dict.values()
        return found

    @cached_property
    def _binding(self) -> Binding:
        config = ArrayConfig.of(None, write_empty_chunks=True)
        return _bound(Array(StorePath(MemoryStore(), ""), self.array._metadata, config))  # noqa: SLF001

    def _made_of(self, found_jobs: Sequence[Job]) -> list[tuple[Store, str]] | None:
        """Return the stored chunks of which a chunk is made; None if they are not known, or too many."""
        found: list[tuple[Store, str]] = []
        for job in found_jobs:
            if isinstance(job.leaf, Filled):
                continue
            keys = None if (array := _array_of(job)) is None else _keys(job, array, MOST_SOURCES)
            if array is None or keys is None:
                return None
            found += ((array.store, key) for key in keys)
            if len(found) > MOST_SOURCES:
                return None
        return found

    def exists(self, coords: Coords) -> bool:
        """Return whether a chunk is stored, or made of one that is; True if that is not known."""
        found = list(self._jobs(coords))
        return self._is_there(found, self._stored_of(found, coords))

    def _is_there(self, found: Sequence[Job], stored: Stored | None) -> bool:
        if not self._is_listed:
            return True
        if stored is not None:
            return stored.store.exists(stored.key) or not self._has_same_fill(stored.array)
        return any(map(self._has_elements, found))

    def _has_elements(self, job: Job) -> bool:
        """Return whether elements of a job are stored, or are others than the fill value."""
        if isinstance(job.leaf, Filled):
            return bool(job.steps) or not self._is_fill(job.leaf.value)
        array = None if job.steps else _array_of(job)
        if array is None or not self._has_same_fill(array):
            return True
        keys = _keys(job, array, _MOST_ASKED_FOR)
        return keys is None or any(map(array.store.exists, keys))

    def _is_fill(self, value: Any) -> bool:
        spec = spec_of(self.array._metadata)  # noqa: SLF001 - a part of Array
        return _are_equal(np.asarray(value, self.view.dtype)[()], spec.fill_value, spec.dtype)

    def size(self, coords: Coords) -> int | None:
        """Return the number of bytes of a chunk, which are not made if they are known."""
        found = list(self._jobs(coords))
        stored = self._stored_of(found, coords)
        if stored is not None and (size := stored.store.size(stored.key)) is not None:
            return size
        if not self._is_there(found, stored):
            return None
        chain = self._binding.chain_for(coords)
        if chain.is_raw and chain.spec.nbytes is not None:
            return chain.spec.nbytes
        value = self.value(coords)
        return None if value is None else len(value)

    # -- listing ---------------------------------------------------------------------

    def listed(self) -> Iterator[Coords]:
        """Yield the coordinates of all chunks that exist, each once."""
        if not self._is_listed:
            yield from self.grid.coords()
            return
        seen: set[Coords] = set()
        for job in opened_jobs(self._node):
            region = _region(job)
            if region is None:
                yield from (coords for coords in self.grid.coords() if coords not in seen and self.exists(coords))
                return
            if not all(region) and job.target.shape:
                continue
            for coords, is_own in self._listed_of(job, region):
                if is_own:
                    yield coords
                elif coords not in seen:
                    seen.add(coords)
                    yield coords

    def _listed_of(self, job: Job, region: Sequence[range]) -> Iterator[tuple[Coords, bool]]:
        """Yield the chunks with elements of a job that exist, and whether no other yields them."""
        if isinstance(job.leaf, Filled):
            if job.steps or not self._is_fill(job.leaf.value):
                yield from self._within(region, region)
            return
        array = None if job.steps else _array_of(job)
        if array is None or not isinstance(job.leaf, Leaf) or not self._has_same_fill(array):
            yield from self._within(region, region)
            return
        is_box = all(isinstance(output, int | Along) for output in job.source.outputs)
        if not is_box or array._metadata.storage_transformers:  # noqa: SLF001 - a part of Array
            # Stored chunks do not tell which of these are made of them, but each of these tells of which it is made.
            yield from (each for each in self._within(region, region) if self.exists(each[0]))
            return
        sources.check(job.leaf)
        bound, is_empty = _bound(array), True
        for coords in holdings.found(array.store, bound.prefix, bound.keys, bound.grid):
            is_empty = False
            part = _part(job, bound.grid.slices_of(coords), region)
            if part is not None:
                yield from self._within(part, part)
        if is_empty:
            _check_there(job.leaf, array)

    def _within(self, part: Sequence[range], whole: Sequence[range]) -> Iterator[tuple[Coords, bool]]:
        """Yield the chunks with elements of a part, and whether they lie in it entirely."""
        rows: list[_Row] = []
        for axis, each, own in zip(self.grid.axes, part, whole, strict=True):
            first, last = axis.find(each[0])[0], axis.find(each[-1])[0]
            begins, ends = axis.chunk(first)[0] >= own.start, _end(axis, last) <= own.stop
            rows.append(_Row(first, last, begins=begins, ends=ends))
        for numbers in _product(rows):
            yield tuple(number for number, _ in numbers), all(is_own for _, is_own in numbers)


class _Row:
    """Numbers of chunks along a dimension, and whether each lies within a part.

    They are made when they are needed: there may be more than memory holds.
    """

    def __init__(self, first: int, last: int, *, begins: bool, ends: bool) -> None:
        self._given = first, last, begins, ends

    def __iter__(self) -> Iterator[tuple[int, bool]]:
        first, last, begins, ends = self._given
        if first == last:
            yield first, begins and ends
            return
        yield first, begins
        yield from ((number, True) for number in range(first + 1, last))
        yield last, ends


def _product(rows: Sequence[_Row]) -> Iterator[tuple[tuple[int, bool], ...]]:
    """Yield what `itertools.product` does, which would first make lists."""
    if not rows:
        yield ()
        return
    for each in rows[0]:
        for others in _product(rows[1:]):
            yield (each, *others)


def _end(axis: Axis, number: int) -> int:
    start, size = axis.chunk(number)
    return min(start + size, axis.length)


def _whole_chunk(job: Job, grid: Grid, sizes: Sequence[int]) -> tuple[Coords, list[int]] | None:
    """Return the coordinates of the stored chunk of a source that a job is, and the dimensions that its axes are.

    None if it is no whole chunk with these lengths.
    """
    found, dims = [], []
    for axis, output in zip(grid.axes, job.source.outputs, strict=True):
        if isinstance(output, int):
            number, _, size = axis.find(output)
            is_same = size == 1
        elif isinstance(output, Along) and output.indices.step == 1:
            number, start, size = axis.find(output.indices.start)
            is_all = start == output.indices.start and len(output.indices) == min(size, axis.length - start)
            is_same = is_all and size == sizes[output.dim]
            dims.append(output.dim)
        else:
            return None
        if not is_same:
            return None
        found.append(number)
    if any(size != 1 for dim, size in enumerate(sizes) if dim not in dims):
        return None
    return tuple(found), dims


def _region(job: Job) -> list[range] | None:
    """Return the part of the array that a job fills; None if it is no box."""
    found: list[range | None] = [None] * len(job.target.outputs)
    for axis, output in enumerate(job.target.outputs):
        if isinstance(output, int):
            found[axis] = range(output, output + 1)
        elif isinstance(output, Along) and output.indices.step == 1:
            found[axis] = output.indices
        else:
            return None
    return [each for each in found if each is not None]


def _part(job: Job, box: Sequence[slice], region: Sequence[range]) -> list[range] | None:
    """Return the part of a region that a box of the source fills; None if none does."""
    found = dict.fromkeys(range(len(job.target.shape)), (0, -1))
    for output, part in zip(job.source.outputs, box, strict=True):
        if isinstance(output, int):
            if not part.start <= output < part.stop:
                return None
        elif isinstance(output, Along):
            first, last = transforms.between(output.indices, part.start, part.stop)
            if first >= last:
                return None
            found[output.dim] = first, last
    parts = []
    for output, whole in zip(job.target.outputs, region, strict=True):
        first, last = found[output.dim] if isinstance(output, Along) else (0, -1)
        parts.append(whole if last < 0 else whole[first:last])
    return parts


def _array_of(job: Job) -> Array | None:
    """Return the source of a job, opened; None if it is no array in a store."""
    source = job.leaf.source if isinstance(job.leaf, Leaf) else None
    if isinstance(source, Deferred):
        source = source.array()
    return source if isinstance(source, Array) else None


def _keys(job: Job, array: Array, most: int) -> list[str] | None:
    """Return the keys of the stored chunks with elements of a job; None if they are too many."""
    bound = _bound(array)
    rows = []
    for axis, output in zip(bound.grid.axes, job.source.outputs, strict=True):
        if isinstance(output, int):
            rows.append(range(axis.find(output)[0], axis.find(output)[0] + 1))
        elif isinstance(output, Along):
            ends = sorted((output.indices[0], output.indices[-1]))
            rows.append(range(axis.find(ends[0])[0], axis.find(ends[1])[0] + 1))
        else:
            return None
    if math.prod(map(len, rows)) > most:
        return None
    return [bound.key_of(coords) for coords in itertools.product(*rows)]


def _check_there(leaf: Leaf, array: Array) -> None:
    """Raise an error if a source does not exist any more, of which nothing was found."""
    reference.check_home(_bound(array))
    if leaf.is_watched and leaf.stamp is None:
        sources.check_document(leaf)


def _are_equal(one: Any, other: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether two values are the same, bit for bit."""
    if dtype.kind not in _PLAIN or dtype.hasobject:
        return bool(one == other)
    return np.asarray(one, dtype).tobytes() == np.asarray(other, dtype).tobytes()
