"""Making the levels of an image, each from the one above, and writing their metadata when all are complete."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from omnizarr.api.creating import create_array, create_group
from omnizarr.engine import budget
from omnizarr.errors import ContainsGroupError, MetadataError, NodeExistsError, OmnizarrError, Remedy, Wording
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata, grids, thawed
from omnizarr.model.grids import Grid
from omnizarr.nodes import creating, detection, hierarchy, holdings, stored
from omnizarr.nodes.array import Array
from omnizarr.nodes.attributes import to_json
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.stores import pool
from omnizarr.support import amounts
from omnizarr.support.progress import Progress, Tick, Tracker
from omnizarr.tools.convert import journal
from omnizarr.tools.convert.journal import Journal
from omnizarr.tools.edit import cp, places, rm, unfinished
from omnizarr.tools.pyramid import images, maps
from omnizarr.tools.pyramid.images import Image, Level
from omnizarr.tools.pyramid.reducing import METHODS, AnyArray, reduce
from omnizarr.tools.streaming import executors, regions
from omnizarr.tools.streaming.chunks import Chunks
from omnizarr.tools.streaming.executors import Executor, Job
from omnizarr.tools.streaming.regions import Box, Regions

CONVENTIONS: Final = ("ome", "geozarr")
_ON_THE_WAY: Final = 64
"""Bytes in memory for each element of a level while it is made, in addition to the source elements."""
_MOST_TRIED: Final = 2**20
"""Elements of a block of fill values that is averaged (or its mode found) to get the result for missing chunks."""
_MOST_AT_ONCE: Final = 4
"""Regions that are made at once; each is read with as many threads as the machine has."""


@dataclass(frozen=True, slots=True)
class Pyramid:
    """The multiscale image that `omnizarr.pyramid` has made.

    Attributes
    ----------
    group : str
        Path of the image's group.
    version : str
        Version of OME-Zarr.
    method : str
    axes : tuple of str
    levels : tuple of Level
        The levels, with the full resolution first.
    dry_run : bool
    remarks : tuple of str
        Where the full resolution differs from what OME-Zarr recommends, and what GeoZarr lacks.
    convention : {"ome", "geozarr"}
    """

    group: str
    version: str
    method: str
    axes: tuple[str, ...]
    levels: tuple[Level, ...]
    dry_run: bool = False
    remarks: tuple[str, ...] = ()
    convention: str = "ome"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        levels = [
            {
                "path": level.path,
                "shape": list(level.shape),
                "scale": list(level.scale),
                "translation": list(level.translation),
            }
            for level in self.levels
        ]
        return {
            "group": self.group,
            "version": self.version,
            "method": self.method,
            "axes": list(self.axes),
            "levels": levels,
            "dry_run": self.dry_run,
            "remarks": list(self.remarks),
            "convention": self.convention,
        }


@dataclass(frozen=True, slots=True)
class Task:
    """All keywords of `omnizarr.pyramid`, as the user gave them."""

    source: Any
    target: Any
    path: str | None
    method: str | None
    levels: int | None
    factor: int | Mapping[str, int]
    axes: Sequence[str] | None
    scale: Mapping[str, float] | None
    unit: Mapping[str, str] | None
    overwrite: bool
    resume: bool
    dry_run: bool
    scheduler: Any
    max_memory: int | None
    progress: Progress
    storage_options: Mapping[str, Any] | None
    ome_version: str | None
    convention: str = "ome"

    @property
    def is_map(self) -> bool:
        """Whether the levels are those of a map."""
        return self.convention == "geozarr"

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_memory", amounts.limit(self.max_memory, "max_memory"))

    def factors(self, image: Image) -> tuple[int, ...]:
        """Return the factors of all axes: 1 for axes that are not spatial."""
        given = self.factor
        named = given if isinstance(given, Mapping) else {}
        spatial = {axis.name for axis in image.axes if axis.type == "space"}
        wrong = [name for name in named if name not in spatial]
        if wrong:
            raise MetadataError(
                "there is no such axis of space",
                store=str(image.group.where.store),
                path=image.group.where.path,
                found=repr(wrong[0]),
                expected=f"one of {', '.join(sorted(spatial))}",
            )
        usual: Any = 2 if isinstance(given, Mapping) else given
        factors = tuple(int(named.get(axis.name, usual)) if axis.name in spatial else 1 for axis in image.axes)
        if math.prod(factors) == 1:
            raise ValueError(Wording("{factor}: no axis becomes shorter", factor=given))
        return factors


def run(task: Task) -> Pyramid:
    """Like `omnizarr.pyramid`."""
    _check(task)
    given = task.axes, task.scale or {}, task.unit or {}, task.ome_version
    source, path, options = task.source, task.path, task.storage_options
    with executors.executor(task.scheduler) as executor:
        if task.is_map:
            return _map(task, executor)
        if task.target is not None:
            with places.opened(source, path, "r", options) as old:
                found = detection.open_array(old)
                if task.dry_run:
                    return _Building(images.of_new(found, *given), task).result()
                images.of_new(found, *given)  # raises before anything is written
                with places.opened(task.target, None, "a", options) as new:
                    _copy_first(found, new, executor, task, "0")
            source, path = task.target, "0"
        with places.opened(source, path, "r+", options) as where:
            building = _Building(images.find(where, *given), task)
            if not task.dry_run:
                building.run(executor)
            return building.result()


def _map(task: Task, executor: Executor) -> Pyramid:
    """Make the resolutions of a map."""
    source, path, options = task.source, task.path, task.storage_options
    if task.target is None:
        with places.opened(source, path, "r+", options) as where:
            return _built(_Building(maps.find(where), task), executor)
    with places.opened(source, path, "r", options) as old:
        found = detection.open_array(old)
        made = maps.of_new(found)
        if task.dry_run:
            return _Building(made, task).result()
        with places.opened(task.target, None, "a", options) as new:
            _copy_first(found, new, executor, task, made.first.path)
    with places.opened(task.target, None, "r+", options) as where:
        return _built(_Building(made.placed(where), task), executor)


def _built(building: _Building, executor: Executor) -> Pyramid:
    if not building.task.dry_run:
        building.run(executor)
    return building.result()


def _check(task: Task) -> None:
    if task.convention not in CONVENTIONS:
        raise ValueError(
            Wording(f"{{convention}}: expected one of {', '.join(CONVENTIONS)}", convention=task.convention)
        )
    if task.is_map and (task.axes is not None or task.scale or task.unit or task.ome_version):
        raise ValueError(
            Wording(
                "{convention} takes axes, lengths and units from the array, and has no version of OME-Zarr",
                convention=task.convention,
            )
        )
    if task.method is not None and task.method not in METHODS:
        raise ValueError(Wording(f"{{method}}: expected one of {', '.join(METHODS)}", method=task.method))
    if task.ome_version not in (None, "0.4", "0.5", "0.6"):
        raise ValueError(Wording("{ome_version}: expected 0.4, 0.5 or 0.6", ome_version=task.ome_version))
    if task.levels is not None and task.levels < 1:
        raise ValueError(Wording("{levels}: an image has at least one level", levels=task.levels))
    factors = list(task.factor.values()) if isinstance(task.factor, Mapping) else [task.factor]
    if any(factor < 1 for factor in factors) or task.factor == 1:
        raise ValueError(
            Wording("{factor}: expected numbers from 2 on, or 1 for an axis that does not change", factor=task.factor)
        )


def _copy_first(found: Found[ArrayMetadata], new: StorePath, executor: Executor, task: Task, path: str) -> None:
    """Create the group of a new image, and copy the full resolution into it."""
    overwrite, resume = task.overwrite, task.resume
    place = new / path
    there = detection.detect(new)
    if there is not None and not (resume or overwrite or _is_new(there)):
        if any(map(unfinished.is_left, (new, place))) or not (images.is_image(there) or maps.is_map(there)):
            raise _unfinished(new)
        raise hierarchy.in_the_way(new, there)
    if there is not None and overwrite:
        hierarchy.refuse_overlap(found.where, new)
        if unfinished.is_left(place):
            rm.finish(place)
        rm.refuse(there, recursive=True)
    if there is None or overwrite:
        group = create_group(new, zarr_format=dialect_of(found.where, found.metadata).zarr_format, overwrite=overwrite)
        new = group.store_path
        place = new / path
    try:
        if detection.detect(place) is None or unfinished.is_left(place):
            copy = cp.Copy(found.where, place, resume=resume, executor=executor)
            copy.run(dry_run=False, progress=task.progress)
    except BaseException:
        with suppress(OmnizarrError):
            if there is None and next(holdings.keys(place), None) is None:  # nothing to continue with
                hierarchy.clear(new)
        raise


def _is_new(there: Found[Metadata]) -> bool:
    """Whether a group has nothing yet: a pyramid that was interrupted at once leaves such a group."""
    if not isinstance(there.metadata, GroupMetadata) or there.metadata.attributes:
        return False
    return next(iter(detection.children(there.where)), None) is None


def _unfinished(where: StorePath) -> NodeExistsError:
    return NodeExistsError(
        "there is an unfinished pyramid here, or a group that is no image",
        store=str(where.store),
        path=where.path,
        remedy=Remedy("pass {resume} to continue it", resume=True)
        | Remedy("{overwrite} to begin again", overwrite=True),
    )


class _Building:
    """The creation of one image."""

    def __init__(self, image: Image, task: Task) -> None:
        self.image, self.task, self.memory = image, task, task.max_memory or budget.for_blocks()
        self.factors = task.factors(image)
        self.method = task.method or ("mode" if image.is_label else "mean")
        self.levels = image.levels(self.factors, self.method, task.levels)
        self.where = image.group.where
        self.remarks: tuple[str, ...] = ()

    def _is_complete(self) -> bool:
        """Whether the group lists these levels, and they are there."""
        if self.image.others != tuple(level.path for level in self.levels[1:]):
            return False
        if self.image.said(self.levels, self.method) != self.image.entry:
            return False
        there = [detection.detect(self.where / level.path) for level in self.levels]
        shapes = [getattr(each.metadata, "shape", None) if each is not None else None for each in there]
        return shapes == [level.shape for level in self.levels]

    def result(self) -> Pyramid:
        """Return the result."""
        axes = tuple(axis.name for axis in self.image.axes)
        remarks = self.remarks
        if self.image.has_flat_chunks:
            remarks = (
                *remarks,
                f"chunks of level {self.image.first.path!r} are not in directories, as OME-Zarr 0.4 has them",
            )
        dry_run = self.task.dry_run
        remarks = (*remarks, *self.image.remarks(self.method))
        convention = self.task.convention
        return Pyramid(
            str(self.where), self.image.version, self.method, axes, self.levels, dry_run, remarks, convention
        )

    def run(self, executor: Executor) -> None:
        """Make the levels, and write their metadata."""
        first = detection.open_array(self.where / self.image.first.path)
        note = self._journal(first.metadata)
        overwrite, resume = self.task.overwrite, self.task.resume
        continues = not overwrite and unfinished.check(self.where, note, resume=resume)
        if resume and not continues and self._is_complete():
            self.remarks = ("the pyramid was complete already",)
            return
        self._clear(overwrite=overwrite, continues=continues)
        note.write(self.where)
        source = Array(first.where, first.metadata)
        total = sum(math.prod(level.shape) for level in self.levels[:-1]) * source.dtype.itemsize
        with Tracker(self.task.progress, f"pyramid {self.where.path or self.where.store}", total) as shown:
            for above, level in pairwise(self.levels):
                source = self._make(source, above, level, executor, shown.tick, continues=continues)
        self._name_dimensions(self.where / self.image.first.path)
        self.image.accompany(self.levels)
        self._announce(self.levels)
        journal.remove(self.where)

    def _journal(self, first: ArrayMetadata) -> Journal:
        nameless = replace(first, dimension_names=None, spellings={})  # they may get some
        digest = journal.digest([("", stored.dump(self.where / self.image.first.path, nameless))], is_old=True)
        wanted = {"pyramid": self.method, "levels": repr([(level.path, level.shape) for level in self.levels])}
        name = first.dialect
        return Journal(f"{self.where}/{self.image.first.path}", name, name, wanted, digest, digest, verify=False)

    def _clear(self, *, overwrite: bool, continues: bool) -> None:
        """Remove levels that are to be made again. Raises an error if there are some and they must not be replaced."""
        paths = dict.fromkeys((*self.image.others, *(level.path for level in self.levels[1:])))
        there = [found for path in paths if (found := detection.detect(self.where / path)) is not None]
        for path in paths:  # what an interrupted deletion has left
            if not any(found.where == self.where / path for found in there) and unfinished.is_left(self.where / path):
                rm.finish(self.where / path)
        if continues or not there:
            return
        if not overwrite:
            raise NodeExistsError(
                "the image has such levels already",
                store=str(self.where.store),
                path=self.where.path,
                found=", ".join(repr(found.where.path[len(self.where.prefix) :]) for found in there),
                remedy=Remedy("pass {overwrite} to make them again", overwrite=True),
            )
        for found in there:
            rm.refuse(found, recursive=True)
        if self.image.entry:
            self._announce(self.levels[:1])
        for found in there:
            rm.delete(found)

    def _make(
        self, source: Array, above: Level, level: Level, executor: Executor, tick: Tick, *, continues: bool
    ) -> Array:
        """Make one level from the one above, and return it."""
        place = self.where / level.path
        there = detection.detect(place) if continues else None
        target = Array(there.where, _array_metadata(there)) if there is not None else self._created(place, level)
        steps = tuple(factor if length > 1 else 1 for factor, length in zip(self.factors, above.shape, strict=True))
        grids_ = _grid(target), _in_blocks(source, steps, level.shape)
        item_bytes = source.dtype.itemsize * math.prod(steps) + _ON_THE_WAY
        at_once = min(pool.default_concurrency(), _MOST_AT_ONCE)
        parts = regions.plan(*grids_, item_bytes, self.memory // at_once, at_once * executor.width)
        for where, metadata in ((source.store_path, source), (target.store_path, target)):
            documents = dialect_of(where, metadata.metadata).keyspace.documents(where.path)
            executor.expect(where.store, documents.values())
        job = _Reducing(source, target, parts, steps, self.method, at_once, self.memory // at_once, skips=continues)
        executor.run(job, job.wanted(), tick)
        return target

    def _created(self, place: StorePath, level: Level) -> Array:
        """Create the array of a level like the full resolution."""
        first = detection.open_array(self.where / self.image.first.path)
        like = Array(first.where, first.metadata)
        options = creating.like(like, {"shape": level.shape})
        chunks: Any = like.chunks
        if like.shards is None and first.metadata.chunk_grid.name == "regular":
            options["chunks"] = tuple(max(1, min(pair)) for pair in zip(chunks, level.shape, strict=True))
        if first.metadata.dialect == "v3":
            options["dimension_names"] = self.image.names
        else:
            options["chunk_key_encoding"] = {"name": "v2", "separator": "/"}
        return create_array(place, attributes=self.image.of_level(like.attrs.asdict()), **options)

    def _name_dimensions(self, place: StorePath) -> None:
        """Name the dimensions of the first level after the axes, if they have no names, as OME-Zarr 0.5 requires."""

        def named(metadata: ArrayMetadata) -> ArrayMetadata:
            has_names = metadata.dialect != "v3" or metadata.dimension_names is not None
            return metadata if has_names else replace(metadata, dimension_names=self.image.names)

        hierarchy.update(place, ArrayMetadata, named, self.image.group.metadata.dialect)

    def _announce(self, levels: Sequence[Level]) -> None:
        entry = self.image.said(levels, self.method)

        def change(group: GroupMetadata) -> GroupMetadata:
            old = {name: thawed(value) for name, value in group.attributes.items()}
            return replace(group, implicit=False, attributes=to_json(self.image.attributes(old, entry)))

        hierarchy.update(self.where, GroupMetadata, change, self.image.group.metadata.dialect)


def _array_metadata(found: Found[Metadata]) -> ArrayMetadata:
    if isinstance(found.metadata, ArrayMetadata):
        return found.metadata
    raise ContainsGroupError("a group is in the place of a level", store=str(found.where.store), path=found.where.path)


def _grid(array: Array) -> Grid:
    """Return the grid of the units of writing: chunks, or shards."""
    found = detection.open_array(array.store_path)
    return grids.bind(found.metadata.chunk_grid, found.metadata.shape)


def _in_blocks(source: Array, steps: Sequence[int], shape: Sequence[int]) -> Grid:
    """Return the grid of the source in units of blocks, which are the elements of the level."""
    sizes = [max((*axis.sizes, 1)) for axis in _grid(source).axes]
    chunks = tuple(max(1, size // step) for size, step in zip(sizes, steps, strict=True))
    return grids.bind(grids.regular(chunks), tuple(shape))


@dataclass(frozen=True)
class _Reducing(Job[int]):
    """Makes the elements of a region of whole chunks of the level."""

    source: Array
    target: Array
    parts: Regions
    steps: tuple[int, ...]
    method: str
    many: int
    memory: int
    skips: bool

    @property
    def at_once(self) -> int:
        return self.many

    def begin(self, _: dict[str, str]) -> tuple[Callable[[int], int], None]:
        found = detection.open_array(self.target.store_path)
        chunks = Chunks.of(found.where, found.metadata)

        def make(number: int) -> int:
            box = self.parts.box(number)
            if not (self.skips and self._is_there(chunks, number)):
                self.target[box] = self._reduced(box)
            return int(math.prod(part.stop - part.start for part in self._block(box))) * self.source.dtype.itemsize

        return make, None

    def wanted(self) -> Iterable[int]:
        """Return the regions that are made: those of stored chunks, if missing ones become missing ones."""
        if self.source.fill_value is None or math.prod(self.steps) > _MOST_TRIED:
            return range(self.parts.total)
        fill = np.full(self.steps, self.source.fill_value, self.source.dtype)
        kept = np.full((1,) * fill.ndim, self.target.fill_value, self.target.dtype)
        if reduce(fill, self.steps, self.method).astype(kept.dtype, copy=False).tobytes() != kept.tobytes():
            return range(self.parts.total)
        found = detection.open_array(self.source.store_path)
        chunks = Chunks.of(found.where, found.metadata)
        return self.parts.holding(self._level_box(chunks.grid.slices_of(coords)) for coords in chunks.stored())

    def _level_box(self, box: Box) -> Box:
        """Return the part of the level that a part of the source becomes."""
        return tuple(
            slice(part.start // step, min(-(-part.stop // step), length))
            for part, step, length in zip(box, self.steps, self.target.shape, strict=True)
        )

    def _block(self, box: Box) -> Box:
        """Return the part of the source that becomes a part of the level."""
        return tuple(
            slice(part.start * step, min(part.stop * step, length))
            for part, step, length in zip(box, self.steps, self.source.shape, strict=True)
        )

    def _reduced(self, box: Box) -> AnyArray:
        """Return a region of the level, made piece by piece, because a shard may be larger than the memory."""
        shape = tuple(part.stop - part.start for part in box)
        made = np.empty(shape, self.target.dtype)
        chunks: Any = self.source.chunks
        sizes = [
            max(1, (max(each) if isinstance(each, tuple) else each) // step)
            for each, step in zip(chunks, self.steps, strict=True)
        ]
        grid = grids.bind(grids.regular(tuple(sizes)), shape)
        item_bytes = self.source.dtype.itemsize * math.prod(self.steps) + _ON_THE_WAY
        pieces = regions.plan(grid, grid, item_bytes, self.memory)
        for number in range(pieces.total):
            piece = pieces.box(number)
            there = tuple(
                slice(part.start + within.start, part.start + within.stop)
                for part, within in zip(box, piece, strict=True)
            )
            made[piece] = reduce(np.asarray(self.source[self._block(there)]), self.steps, self.method)
        return made

    def _is_there(self, chunks: Chunks, number: int) -> bool:
        return all(chunks.store.exists(chunks.key_of(coords)) for coords in self.parts.chunks(number))
