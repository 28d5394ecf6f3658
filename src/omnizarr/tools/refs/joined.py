"""Lazy arrays as references: each chunk of a join that is a stored chunk of one source.

Zarr alone can express a join if its chunks are those of its sources: in the same codecs, data type and fill value, and
without a shorter chunk between two sources. A source is compared with the first one, as a whole: nothing is asked for
each chunk.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.errors import Function, NotRepresentableError, OmnizarrError, Remedy, StoreLimitError
from omnizarr.formats import dialect_named
from omnizarr.indexing.transforms import Along
from omnizarr.model import ArrayMetadata, GroupMetadata, Named, grids
from omnizarr.model.grids import Axis, Grid
from omnizarr.nodes import chunking, detection, placement
from omnizarr.nodes.array import Array
from omnizarr.nodes.equivalence import have_same_bytes, spec_of
from omnizarr.nodes.lazy import sources
from omnizarr.nodes.lazy.reading import Job, opened_jobs
from omnizarr.nodes.lazy.store import LazyStore
from omnizarr.nodes.lazy.tree import Filled, Leaf, Reshaped
from omnizarr.nodes.lazy.view import LazyArray
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.placement import Integers, Names, Placement
from omnizarr.settings import config
from omnizarr.stores import MemoryStore, pool
from omnizarr.stores.base import Buffer
from omnizarr.support.progress import Tick
from omnizarr.tools.refs.gathering import Described, Place, divided, store_documents, without_shards
from omnizarr.tools.translate.coding import KEEP
from omnizarr.tools.translate.translation import translate

_AT_ONCE: Final = 16
"""Sources that are looked into at the same time."""
_CONVERT: Final = Remedy("copy it instead: {convert}", convert=Function("(source, target)"))


def described(where: StorePath, store: LazyStore, *, inner: bool) -> Described:
    """Return a hierarchy of lazy arrays.

    Raises NotRepresentableError if a chunk of theirs is no stored chunk. It names two sources, and what differs.
    """
    documents, places = MemoryStore(), dict[str, Place]()
    for key in store.documents:
        path = key.rpartition("/")[0]
        if path != where.path and not path.startswith(where.prefix):
            continue
        below = path[len(where.prefix) :]
        found = detection.open_node(StorePath(store, path)).metadata
        if isinstance(found, GroupMetadata):
            store_documents(documents, below, found)
            continue
        try:
            metadata, place = _joined(store, path, store.view_of(path), found, inner=inner)
        except OmnizarrError as error:
            raise error.add(path=path)
        store_documents(documents, below, metadata)
        places[below] = place
    return Described(detection.open_node(StorePath(documents)), places, tuple(store.notes))


def _joined(
    store: LazyStore, path: str, view: LazyArray, shown: ArrayMetadata, *, inner: bool
) -> tuple[ArrayMetadata, Place]:
    """Return the metadata of a lazy array in the terms of its sources, and what finds out where its chunks lie."""
    jobs = list(opened_jobs(view._node))  # noqa: SLF001 - two halves of one thing
    if any(isinstance(job.leaf, Reshaped) for job in jobs):
        raise NotRepresentableError(
            "chunks of an array whose dimensions were divided or merged are no stored chunks",
            found=str(next(job.leaf for job in jobs if isinstance(job.leaf, Reshaped))),
            remedy=_CONVERT,
        )
    stored = [job for job in jobs if isinstance(_source(job), Array)]
    if not stored:
        return shown, lambda _: _made(store, path, shown)
    pieces = dict(pool.gather(_divided, jobs, min(len(jobs), _AT_ONCE)))
    jobs = [pieces[number] for number in range(len(jobs))]
    stored = [job for job in jobs if isinstance(_source(job), Array)]
    parts = _Parts(jobs, shown, stored[0], inner=inner)
    for job in jobs:
        parts.check(job)
    return parts.metadata, lambda tick: parts.place(stored, tick)


def _source(job: Job) -> Any:
    return job.leaf.source if isinstance(job.leaf, Leaf) else None


def _divided(job: Job) -> Job:
    """Return the same elements of a source with smaller chunks, if only those are single pieces of a file."""
    array = _source(job)
    if not isinstance(array, Array) or not isinstance(job.leaf, Leaf):
        return job
    where, metadata = divided(array.store_path, array._metadata)  # noqa: SLF001 - a part of Array
    return job if where is array.store_path else job._replace(leaf=replace(job.leaf, source=Array(where, metadata)))


def _made(store: LazyStore, path: str, metadata: ArrayMetadata) -> Placement:
    """Return the chunks of an array that is in no store, such as the coordinate that `combine` makes: as values."""
    grid = grids.bind(metadata.chunk_grid, metadata.shape)
    chunks, most = Array(StorePath(store, path), metadata)._bind().binding, int(config.get("references.max_bytes"))  # noqa: SLF001
    values: dict[int, Buffer] = {}
    total = 0
    if grid.nchunks > (limit := int(config.get("references.max_count"))):
        raise StoreLimitError(
            "an array in memory has more chunks than references may have",
            path=path,
            found=f"{grid.nchunks:,}",
            expected=f"at most {limit:,}",
        )
    for number, coords in enumerate(grid.coords()):
        value = store.get(chunks.key_of(coords))
        if value is None:
            continue
        values[number] = bytes(value)
        total += len(value)
        if total > most:
            raise StoreLimitError(
                "an array in memory is larger than references may be", path=path, expected=f"at most {most:,} bytes"
            )
    none = np.zeros(0, np.int64)
    return Placement(grid.grid_shape, none, none, none, none, Names(), lambda _: (), values)


class _Span(NamedTuple):
    """Which chunks of a source are which of the join, along one axis of the join."""

    axis: int | None
    """Of the source; None: the join has an axis more, of one chunk here."""
    first: int
    """The first chunk of the source."""
    chunks: int
    start: int
    """The first chunk of the join."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is remembered of metadata that many sources have."""

    metadata: ArrayMetadata
    grid: Grid
    difference: tuple[str, object, object] | None
    has_same_fill: bool


class _Parts:
    """The sources of a lazy array, each a box of its chunks."""

    def __init__(self, jobs: Sequence[Job], shown: ArrayMetadata, first: Job, *, inner: bool) -> None:
        self._jobs, self._first, self._inner = jobs, first, inner
        self._known: dict[int, tuple[ArrayMetadata, _Known]] = {}
        source = self._laid(_source(first)._metadata)  # noqa: SLF001 - a part of Array
        made = translate(source, dialect_named("v3"), compressors=KEEP)
        if not isinstance(made.target, ArrayMetadata) or not made.same_bytes:
            raise NotRepresentableError(
                "stored chunks of the sources cannot be said in Zarr v3 as they are",
                found=", ".join(codec.name for codec in source.codecs),
                remedy=_CONVERT,
            )
        grid = shown.chunk_grid
        if grid.name == "rectilinear":
            grid = self._anew(shown)
        elif inner and (shape := chunking.inner_chunk_shape(shown.codecs)) is not None:
            grid = grids.regular(shape)
        elif len(shown.shape) == len(source.shape) and grid.name == "regular":
            grid = source.chunk_grid
        self.metadata = replace(
            made.target,
            shape=shown.shape,
            chunk_grid=grid,
            attributes=shown.attributes,
            dimension_names=shown.dimension_names,
            spellings={},
            unknown={},
        )
        self._grid = grids.bind(grid, shown.shape)

    def _anew(self, shown: ArrayMetadata) -> Named:
        """Return a grid in which the chunks of each source follow those of the one before."""
        parts: list[dict[tuple[int, int], list[tuple[int, int]]]] = [{} for _ in shown.shape]
        for job in self._jobs:
            array = _source(job)
            laid = self._laid(array._metadata) if isinstance(array, Array) else None  # noqa: SLF001 - a part of Array
            axes = None if laid is None else grids.bind(laid.chunk_grid, laid.shape).axes
            of_dim = {
                output.dim: (axes[axis], output.indices)
                for axis, output in enumerate(job.source.outputs)
                if axes is not None and isinstance(output, Along) and len(output.indices)
            }
            for known, output in zip(parts, job.target.outputs, strict=True):
                there = output.indices if isinstance(output, Along) else range(1)
                if isinstance(output, int):
                    there = range(output, output + 1)
                sizes = [(len(there), 1)]
                if isinstance(output, Along) and output.dim in of_dim:
                    axis, here = of_dim[output.dim]
                    sizes = _sizes(axis, axis.find(here[0])[0], axis.find(here[-1])[0])
                known.setdefault((there.start, there.stop), sizes)
        rows = [[list(size) for _, sizes in sorted(known.items()) for size in sizes] for known in parts]
        return Named("rectilinear", {"kind": "inline", "chunk_shapes": rows})

    def _laid(self, metadata: ArrayMetadata) -> ArrayMetadata:
        return without_shards(metadata) if self._inner else metadata

    def _of(self, metadata: ArrayMetadata) -> _Known:
        found = self._known.get(id(metadata))
        if found is None:
            laid = self._laid(metadata)
            known = _Known(laid, grids.bind(laid.chunk_grid, laid.shape), *self._compared(laid))
            found = self._known[id(metadata)] = metadata, known
        return found[1]

    def _compared(self, laid: ArrayMetadata) -> tuple[tuple[str, object, object] | None, bool]:
        """Return how the chunks of a source differ from those of the first, and whether missing ones read the same."""
        own = self.metadata
        here = replace(laid, shape=own.shape, chunk_grid=own.chunk_grid)
        other, mine = spec_of(laid), spec_of(own)
        has_same_fill = other.dtype == mine.dtype and bool(
            np.asarray(other.fill_value, other.dtype).tobytes() == np.asarray(mine.fill_value, mine.dtype).tobytes()
            if not mine.dtype.hasobject
            else other.fill_value == mine.fill_value
        )
        is_flat = bool(laid.codecs) and laid.codecs[0].name == "bytes"
        if not laid.storage_transformers and have_same_bytes(here, own):
            if is_flat or len(laid.shape) == len(own.shape):
                return None, has_same_fill
            return ("number of dimensions", len(laid.shape), len(own.shape)), has_same_fill
        if other.dtype != mine.dtype:
            return ("data type", other.dtype, mine.dtype), has_same_fill
        return ("codecs", _words(laid), _words(own)), has_same_fill

    # -- whether it can be said ------------------------------------------------------

    def check(self, job: Job) -> None:
        """Raise NotRepresentableError if the elements of a job are no stored chunks, or others than the fill value."""
        if job.steps:
            found = ", ".join(map(str, job.steps))
            raise self._differs(job, "they are converted", found, "elements as they are stored")
        if isinstance(job.leaf, Filled):
            own = spec_of(self.metadata).fill_value
            if np.asarray(job.leaf.value, job.leaf.dtype).tobytes() != np.asarray(own, job.leaf.dtype).tobytes():
                raise self._differs(job, "a gap has another value than the fill value", job.leaf.value, own)
            return
        if not isinstance(job.leaf, Leaf) or not isinstance(job.leaf.source, Array):
            found = type(_source(job)).__name__
            raise self._differs(job, "they are in memory, and in no file", found, "an array")
        sources.check(job.leaf)
        known = self._of(job.leaf.source._metadata)  # noqa: SLF001 - a part of Array
        if known.difference is not None:
            what, one, other = known.difference
            raise self._differs(job, f"their {what} differ", one, other)
        self._spans(job, known)

    def _differs(self, job: Job, how: str, found: object, expected: object) -> NotRepresentableError:
        other = self._first.leaf
        if other is job.leaf:
            other = next((each.leaf for each in self._jobs if each.leaf is not job.leaf), other)
        return NotRepresentableError(
            f"chunks of {job.leaf} are no chunks of a join with {other}: {how}",
            found=found,
            expected=expected,
            remedy=_CONVERT,
        )

    def _spans(self, job: Job, known: _Known) -> list[_Span]:
        """Return which chunks of a source are which of the join."""
        axes: dict[int, int] = {}
        for axis, output in enumerate(job.source.outputs):
            if isinstance(output, Along) and output.indices.step == 1:
                axes[output.dim] = axis
            elif not isinstance(output, int):
                raise self._differs(job, "a selection has a step or a list", output, "slices with step 1")
            elif known.grid.axes[axis].find(output)[2] != 1:
                size = known.grid.axes[axis].find(output)[2]
                raise self._differs(job, "one position of longer chunks is selected", f"chunks of {size}", "of 1")
        found: list[_Span] = []
        for dim, output in enumerate(job.target.outputs):
            own = self._grid.axes[dim]
            if isinstance(output, int):
                found.append(self._single(job, own, output))
            elif not isinstance(output, Along) or output.indices.step != 1:
                raise self._differs(job, "their elements are spread", output, "boxes")
            elif output.dim not in axes:
                if len(output.indices) != 1:
                    raise self._differs(job, "elements are repeated", f"{len(output.indices)} times", "once")
                found.append(self._single(job, own, output.indices.start))
            else:
                axis = axes[output.dim]
                source = job.source.outputs[axis]
                assert isinstance(source, Along)  # noqa: S101 - looked at above
                found.append(
                    self._matched(job, dim, axis, (own, output.indices), (known.grid.axes[axis], source.indices))
                )
        order = [span.axis for span in found if span.axis is not None and known.grid.axes[span.axis].length != 1]
        if order != sorted(order):
            raise self._differs(job, "axes are transposed", order, sorted(order))
        return found

    def _single(self, job: Job, own: Axis, at: int) -> _Span:
        number, _, size = own.find(at)
        if size != 1:
            raise self._differs(job, "a chunk of the join has several sources", f"chunks of {size}", "of 1")
        return _Span(None, 0, 1, number)

    def _matched(self, job: Job, dim: int, axis: int, target: tuple[Axis, range], source: tuple[Axis, range]) -> _Span:
        """Return the chunks along an axis; raise NotRepresentableError if they do not begin and end together."""
        (own, there), (other, here) = target, source
        if not len(there):
            return _Span(axis, 0, 0, 0)
        name = f"along dimension {self._name(dim)}"
        (start, first_at, _), (first, source_at, _) = own.find(there.start), other.find(here.start)
        last, last_at, last_size = own.find(there.stop - 1)
        final, final_at, final_size = other.find(here.stop - 1)
        if here.start != source_at or there.start != first_at:
            raise self._differs(
                job,
                f"{name}, a chunk has elements of two sources",
                f"a source that begins at {there.start}, in chunks of {own.find(there.start)[2]}",
                "sources whose lengths are whole chunks, but the last",
            )
        is_edge = there.stop == own.length
        is_whole = last_at + last_size == there.stop and final_at + final_size == here.stop
        same = (
            last - start == final - first
            and last_size == final_size
            and _sizes(own, start, last) == _sizes(other, first, final)
        )
        if not same:
            raise self._differs(
                job,
                f"{name}, chunks have other lengths",
                _lengths(other, first, final),
                _lengths(own, start, last),
            )
        if not is_whole and not is_edge:
            raise self._differs(
                job,
                f"{name}, its last chunk is shorter, and others follow",
                f"length {len(here)}, chunks of {final_size}",
                "sources whose lengths are whole chunks, but the last",
            )
        return _Span(axis, first, last - start + 1, start)

    def _name(self, dim: int) -> str:
        names = self.metadata.dimension_names
        return repr(names[dim]) if names and names[dim] else str(dim)

    # -- where chunks lie ------------------------------------------------------------

    def place(self, jobs: Sequence[Job], tick: Tick) -> Placement:
        """Return where the chunks of all sources lie, as those of one array."""

        def look(job: Job) -> tuple[Integers, Integers, Placement]:
            array: Array = _source(job)
            known = self._of(array._metadata)  # noqa: SLF001 - a part of Array
            is_split = self._inner and chunking.inner_chunk_shape(array._metadata.codecs) is not None  # noqa: SLF001
            find = placement.placed_within_shards if is_split else placement.placed
            found = find(array.store_path, array._metadata, tick)  # noqa: SLF001
            return self._mapped(job, known, found)

        every = [
            found for _, found in sorted(pool.gather(look, jobs, min(len(jobs), _AT_ONCE)), key=lambda each: each[0])
        ]
        columns: list[list[Integers]] = [[], [], [], [], [], []]
        names: list[Any] = []
        values: dict[int, Buffer] = {}
        count = 0
        for part, (rows, numbers, found) in enumerate(every):
            mine = np.full(len(rows), part, np.int64)
            for column, each in zip(
                columns,
                (numbers, found.files[rows] + count, found.offsets[rows], found.lengths[rows], mine, rows),
                strict=True,
            ):
                column.append(each)
            names += found.names.parts
            count += len(found.names)
            values.update(found.values)
        numbers, files, offsets, lengths, parts, rows = (np.concatenate(each) for each in columns)
        order = np.argsort(numbers, kind="stable")
        parts, rows = parts[order], rows[order]

        def fetch(wanted: Integers) -> Iterator[tuple[int, Buffer | None]]:
            for part in np.unique(parts[wanted]).tolist():
                some = wanted[parts[wanted] == part]
                back = dict(zip(rows[some].tolist(), some.tolist(), strict=True))
                yield from ((back[row], value) for row, value in every[part][2].fetch(rows[some]))

        return Placement(
            self._grid.grid_shape,
            numbers[order],
            files[order],
            offsets[order],
            lengths[order],
            Names(names),
            fetch,
            values,
        )

    def _mapped(self, job: Job, known: _Known, found: Placement) -> tuple[Integers, Integers, Placement]:
        """Return those rows of a source that are in the join, their numbers there, and the source."""
        spans = self._spans(job, known)
        rows, numbers = self._numbers(job, known, spans, found.numbers, found.grid_shape)
        total = math.prod(span.chunks for span in spans)
        values: dict[int, Buffer] = {}
        if found.values:
            given = np.array(list(found.values), np.int64)
            at, there = self._numbers(job, known, spans, given, found.grid_shape)
            values = dict(zip(there.tolist(), (found.values[int(given[row])] for row in at), strict=True))
        if not known.has_same_fill and len(rows) + len(values) < total:
            raise self._differs(
                job,
                "their fill values differ, and chunks are not stored",
                known.metadata.fill_value,
                self.metadata.fill_value,
            )
        return rows, numbers, replace(found, values=values)

    def _numbers(
        self, job: Job, known: _Known, spans: Sequence[_Span], numbers: Integers, grid_shape: tuple[int, ...]
    ) -> tuple[Integers, Integers]:
        coords = placement.coords_of(numbers, grid_shape)
        is_inside = np.ones(len(numbers), bool)
        for axis, output in enumerate(job.source.outputs):
            if isinstance(output, int):
                is_inside &= coords[axis] == known.grid.axes[axis].find(output)[0]
        for span in spans:
            if span.axis is not None:
                is_inside &= (coords[span.axis] >= span.first) & (coords[span.axis] < span.first + span.chunks)
        rows = np.flatnonzero(is_inside)
        there = [
            np.full(len(rows), span.start, np.int64)
            if span.axis is None
            else coords[span.axis][rows] - span.first + span.start
            for span in spans
        ]
        found = placement.numbers_of(there, self._grid.grid_shape) if there else np.zeros(len(rows), np.int64)
        return rows, found


def _sizes(axis: Axis, first: int, last: int) -> list[tuple[int, int]]:
    """Return the lengths of the chunks between two numbers (inclusive), and how many follow each other."""
    found: list[tuple[int, int]] = []
    for segment in axis.segments:
        begin, end = max(first, segment.first), min(last + 1, segment.first + segment.chunks)
        if begin < end:
            if found and found[-1][0] == segment.size:
                found[-1] = segment.size, found[-1][1] + end - begin
            else:
                found.append((segment.size, end - begin))
    return found


def _lengths(axis: Axis, first: int, last: int) -> str:
    found = _sizes(axis, first, last)
    words = ", ".join(f"{count} of {size}" for size, count in found[:4])
    return f"chunks: {words}{', ...' if len(found) > 4 else ''}"


def _words(metadata: ArrayMetadata) -> str:
    return ", ".join(
        f"{codec.name} {dict(codec.configuration)}" if codec.configuration else codec.name for codec in metadata.codecs
    )
