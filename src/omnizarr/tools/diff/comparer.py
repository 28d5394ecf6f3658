"""One comparison: from two places to the report of their differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from omnizarr.codecs.contract import AnyArray
from omnizarr.errors import OmnizarrError, SchedulerError, StoreError, Wording
from omnizarr.formats import conventions
from omnizarr.formats.conventions import nczarr_metadata
from omnizarr.formats.paths import Above
from omnizarr.formats.spelling import same
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, GroupMetadata, Named, thawed
from omnizarr.nodes import naming, wording
from omnizarr.nodes.copying import same_value
from omnizarr.nodes.detection import Found
from omnizarr.nodes.equivalence import have_same_bytes, spec_of
from omnizarr.stores import pool
from omnizarr.stores.base import Buffer
from omnizarr.stores.manifests.store import ManifestStore
from omnizarr.support import amounts
from omnizarr.support.progress import Progress, Tick, Tracker
from omnizarr.tools import strangers
from omnizarr.tools.diff.report import Diff, Difference, Kind, Unequal
from omnizarr.tools.strangers import Strangers
from omnizarr.tools.streaming.chunks import Chunks, box_of
from omnizarr.tools.streaming.equality import first_difference, first_of, is_small, largest_distance, unequal
from omnizarr.tools.streaming.executors import Executor, Question, executor
from omnizarr.tools.streaming.nodes import Hierarchy, Meaning, Node, documents_of, hierarchies, metadata_of
from omnizarr.tools.streaming.regions import Box, Regions
from omnizarr.tools.streaming.several import QUIET, worked_on
from omnizarr.tools.streaming.walking import BlocksToVisit, Effort, Elements, Walk, chunks_of, walk

_MEMBERS: Final = ("data_type", "shape", "dimension_names")
_MOST_ELEMENTS: Final = 2**22
"""Elements that are compared at a time; masks take memory, too."""
_Nodes: TypeAlias = tuple[str, Node | None, Node | None]
"""A path, and the nodes there."""


def run(
    left: Any,
    right: Any,
    *,
    left_path: str | None,
    right_path: str | None,
    rtol: float,
    atol: float,
    storage: bool,
    values: bool,
    allow_pickle: bool,
    concurrency: int | None,
    scheduler: Any,
    max_memory: int | str | None,
    progress: Progress,
    storage_options: Mapping[str, Any] | None,
) -> Diff:
    """Return the differences of two hierarchies; see `omnizarr.diff`."""
    effort = Effort(amounts.limit(max_memory, "max_memory"), concurrency, allow_pickle)
    if not (rtol >= 0 and atol >= 0):
        raise ValueError(Wording("{rtol}, {atol}: expected numbers that are not negative", rtol=rtol, atol=atol))
    with ExitStack() as opened:
        one, other = hierarchies(opened, ((left, left_path), (right, right_path)), storage_options)
        workers = opened.enter_context(executor(scheduler))
        work = _Comparison(one, other, workers, effort, rtol, atol)
        work.leave_out_marks()
        sides = work.strangers() if values else None
        work.compare(progress, values=values)
        if sides is not None:
            work.compare_files(sides)
    counted = (*work.differences, *work.storage) if storage else tuple(work.differences)
    if storage:
        order = {path: number for number, path in enumerate([*one.nodes, *other.nodes])}
        counted = tuple(sorted(counted, key=lambda each: order[each.path]))
    return Diff(
        left=one.name,
        right=other.name,
        differences=counted,
        storage=tuple(work.storage),
        problems=tuple(work.problems),
        nodes=work.nodes,
        elements=work.elements,
        rtol=rtol,
        atol=atol,
        files=work.files,
        remarks=tuple(work.remarks),
    )


@dataclass
class _Comparison:
    """A comparison under way."""

    left: Hierarchy
    right: Hierarchy
    executor: Executor
    effort: Effort
    rtol: float
    atol: float
    differences: list[Difference] = field(default_factory=list)
    storage: list[Difference] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    nodes: int = 0
    elements: int = 0
    files: int = 0
    left_out: AbstractSet[str] = frozenset()

    def leave_out_marks(self) -> None:
        """Leave out the attributes of NCZarr if one side is a file, which says in its own form what they say."""
        are_files = [isinstance(each.top.where.store, ManifestStore) for each in (self.left, self.right)]
        if are_files[0] == are_files[1]:
            return
        self.left_out = nczarr_metadata.HIDDEN
        metas = [node.meaning for side in (self.left, self.right) for node in side.nodes.values()]
        if any(each is not None and not self.left_out.isdisjoint(each.attributes) for each in metas):
            self.remarks.append("attributes of NCZarr, for which a file has other forms, were not compared")

    def compare(self, progress: Progress, *, values: bool) -> None:
        """Compare all nodes; the elements of arrays only if `values`."""
        sizes = [self._nbytes(path) if values else 0 for path in self._paths()]
        with Tracker(progress, "comparing", sum(sizes)) as shown:
            next_size = iter(sizes).__next__

            def begin(pair: _Nodes) -> Tick:
                shown.begin(next_size(), pair[0])
                return shown.tick

            def compare(pair: _Nodes, effort: Effort, tick: Tick) -> Unequal | str | None:
                sides = _elements_of(pair, effort) if values else []
                return self._try_values(sides[0], sides[1], tick) if sides else None

            store = self.left.top.where.store
            for (path, one, other), found in worked_on(
                self._pairs(), compare, _chunks_of, self.effort, self.executor, store, begin, QUIET
            ):
                if one is None or other is None:
                    self._enter_single(path, one, other)
                else:
                    self._compare_nodes(path, one, other, found, values=values)

    def _pairs(self) -> Iterator[_Nodes]:
        """Yield the nodes of both sides by path, each made when it is its turn."""
        return ((path, self.left.nodes.get(path), self.right.nodes.get(path)) for path in self._paths())

    def _paths(self) -> Iterator[str]:
        yield from self.left.nodes
        yield from (path for path in self.right.nodes if path not in self.left.nodes)

    def _nbytes(self, path: str) -> int:
        """Return the bytes of the elements of an array that is compared element by element; 0 for any other node."""
        if not all(path in side.nodes and side.nodes.is_array(path) for side in (self.left, self.right)):
            return 0
        left, right = self.left.nodes.elements(path, Effort()), self.right.nodes.array(path)
        return left.values_bytes() if left.metadata.shape == right.metadata.shape else 0

    def strangers(self) -> list[Strangers]:
        """Return the files of both sides that are not Zarr. The listings tell, too, which chunks are stored."""
        both, is_far = (self.left, self.right), naming.is_far(self.left.top.where.store)

        def of(side: Hierarchy) -> Strangers:
            return strangers.of(side.top.where, metadata_of(side), side.nodes.few)

        found = dict(pool.gather(of, both, 2 if is_far else 1))
        return [found[0], found[1]]

    def compare_files(self, sides: list[Strangers]) -> None:
        """Compare files that are not Zarr, without those of operating systems; of a store that lists none, by name."""
        if not any(side.is_known for side in sides):
            self.remarks.append("neither can be listed, so files that are not Zarr were not looked for")
        elif not all(side.is_known for side in sides):
            which = "first" if sides[1].is_known else "second"
            self.remarks.append(f"the {which} cannot be listed, so files that are not Zarr are those of the other")
        nodes = Above(self.left.nodes.keys() | self.right.nodes.keys())
        keys = sorted(key for key in {*sides[0].files, *sides[1].files} if not strangers.is_system(key))
        for _, (key, sizes, is_same) in pool.gather(
            self._compare_file, keys, self.left.top.where.store.features.concurrency
        ):
            self.files += 1
            if is_same:
                continue
            path = next(nodes.of(key), "")
            only = {(True, False): "right", (False, True): "left"}.get((sizes[0] is None, sizes[1] is None), "")
            name = key[len(path) :].lstrip("/")
            self._enter(path, "file", name=name, left=sizes[0], right=sizes[1], only=only)

    def _compare_file(self, key: str) -> tuple[str, tuple[int | None, ...], bool]:
        """Return a file with its sizes, and whether both sides are the same."""
        left, right = self.left.top.where, self.right.top.where
        keys = left.prefix + key, right.prefix + key
        sizes = left.store.size(keys[0]), right.store.size(keys[1])
        return key, sizes, sizes[0] == sizes[1] and same_value(left.store, keys[0], right.store, keys[1])

    def _enter_single(self, path: str, one: Node | None, other: Node | None) -> None:
        node = one or other
        if node is None:
            return
        what = "node" if node.meaning is None else node.meaning.kind
        if one is not None:
            self._enter(path, "node", left=what, only="left")
        else:
            self._enter(path, "node", right=what, only="right")

    def _enter(self, path: str, kind: Kind, **fields: Any) -> None:
        self.differences.append(Difference(path=path, kind=kind, **fields))

    def _compare_nodes(self, path: str, one: Node, other: Node, found: Unequal | str | None, *, values: bool) -> None:
        self.nodes += 1
        for side, node in (("first", one), ("second", other)):
            if node.error is not None:
                self.problems.append((path, f"the {side} cannot be read: {node.error}"))
        self._compare_meanings(path, one, other)
        left, right = one.array, other.array
        if left is not None and right is not None:
            self.storage += _differences_of_storage(path, left.metadata, right.metadata)
            if isinstance(found, str):
                self.problems.append((path, found))
            elif values and left.metadata.shape == right.metadata.shape:
                self.elements += math.prod(left.metadata.shape)
                if found is not None:
                    self._enter(path, "values", left=found.left, right=found.right, values=found)

    def _compare_meanings(self, path: str, one: Node, other: Node) -> None:
        left, right = one.meaning, other.meaning
        if left is None or right is None:
            return
        if left.kind != right.kind:
            self._enter(path, "kind", left=left.kind, right=right.kind)
            return
        member: Kind
        for member in ("shape", "data_type", "dimension_names"):
            if getattr(left, member) != getattr(right, member):
                self._enter(path, member, left=getattr(left, member), right=getattr(right, member))
        alike = _alike(path, left, right)
        for name in {**left.attributes, **right.attributes}:
            if name in self.left_out or name in alike:
                continue
            if name not in right.attributes:
                self._enter(path, "attribute", name=name, left=thawed(left.attributes[name]), only="left")
            elif name not in left.attributes:
                self._enter(path, "attribute", name=name, right=thawed(right.attributes[name]), only="right")
            elif not same(left.attributes[name], right.attributes[name]):
                self._enter(path, "attribute", name=name, left=_stored(one, name), right=_stored(other, name))

    def _try_values(self, left: Elements, right: Elements, tick: Tick) -> Unequal | str | None:
        """Return how the elements of two arrays differ, or why they cannot be compared."""
        try:
            return self._compare_values(left, right, tick)
        except (StoreError, SchedulerError):
            raise
        except (OmnizarrError, MemoryError) as error:
            return str(error)

    def _compare_values(self, left: Elements, right: Elements, tick: Tick) -> Unequal | None:
        sides = left, right
        for side in sides:
            self.executor.expect(side.where.store, documents_of(Found(side.where, side.metadata)))
        pair = _Pair(*sides, rtol=self.rtol, atol=self.atol)
        fills_differ = pair.compare_fills()
        if fills_differ is None and all(side.chunks.keys == () for side in sides):
            return None
        by_bytes = pair.stored_alike()
        laid = by_bytes or pair.walk(left.effort)
        question = _Comparing(pair, laid, by_bytes is not None)
        visits, size = BlocksToVisit(laid, sides), math.prod(left.metadata.shape)
        total = _Sum()
        for each in self.executor.ask(question, visits, tick):
            total.add(each)
        if fills_differ is not None and visits.gap is not None:
            first = tuple(part.start for part in laid.regions.box(visits.gap))
            total.add(fills_differ._replace(differing=size - visits.elements, first=first))
        return total.result(size)


def _elements_of(pair: _Nodes, effort: Effort) -> list[Elements]:
    """Return the elements of two arrays that are compared element by element, or none."""
    _, one, other = pair
    found = (None if node is None else node.elements(effort) for node in (one, other))
    sides = [each for each in found if each is not None]
    is_pair = len(sides) == 2 and sides[0].metadata.shape == sides[1].metadata.shape
    return sides if is_pair else []


def _chunks_of(pair: _Nodes) -> list[Chunks]:
    return [each.chunks for each in _elements_of(pair, Effort())]


# How elements are stored


def _alike(path: str, one: Meaning, other: Meaning) -> AbstractSet[str]:
    """Return the names of attributes of two groups that say the same in different versions of a convention."""
    if one.kind != "group" or same(one.attributes, other.attributes):
        return frozenset()
    left, right = (
        conventions.settled(path, GroupMetadata(dialect="v3", attributes=each.attributes)).attributes
        for each in (one, other)
    )
    return {name for name, value in left.items() if name in right and same(value, right[name])}


def _stored(node: Node, name: str) -> JSON:
    """Return an attribute as it is stored, or as it is meant if nothing is stored under its name."""
    stored = {} if node.found is None else node.found.metadata.attributes
    meant = {} if node.meaning is None else node.meaning.attributes
    value: JSON = thawed(stored[name] if name in stored else meant[name])
    return value


def _differences_of_storage(path: str, left: ArrayMetadata, right: ArrayMetadata) -> Iterator[Difference]:
    if left.dialect != right.dialect:
        names = wording.format_name(left.dialect), wording.format_name(right.dialect)
        yield Difference(path=path, kind="storage", name="format", left=names[0], right=names[1])
    for member in ("chunk_grid", "chunk_key_encoding", "codecs", "fill_value", "storage_transformers"):
        one, other = getattr(left, member), getattr(right, member)
        if not (same(one, other) or (member == "fill_value" and _have_same_fill(left, right))):
            yield Difference(path=path, kind="storage", name=member, left=_document(one), right=_document(other))


def _have_same_fill(left: ArrayMetadata, right: ArrayMetadata) -> bool:
    """Return whether two fill values are the same bits of one type, however they are written."""
    if UNDEFINED in (left.fill_value, right.fill_value):
        return False
    try:
        one, other = (_fill_of(metadata) for metadata in (left, right))
    except OmnizarrError:
        return False
    return one.dtype == other.dtype and first_difference(one, other) is None


def _fill_of(metadata: ArrayMetadata) -> AnyArray:
    spec = spec_of(metadata)
    dtype = _native(spec.dtype)
    return box_of(spec.fill_value, spec.dtype).astype(dtype)


def _document(value: Any) -> Any:
    """Return a member of the model as JSON."""
    if isinstance(value, Named):
        return {"name": value.name, "configuration": thawed(value.configuration)} if value.configuration else value.name
    if isinstance(value, tuple):
        return [_document(item) for item in value]
    return None if value is UNDEFINED else thawed(value)


# Elements


class _Found(NamedTuple):
    """How the elements of a part of two arrays differ."""

    differing: int = 0
    first: tuple[int, ...] = ()
    left: Any = None
    right: Any = None
    largest: Any = None


@dataclass
class _Sum:
    """How all elements differ that were compared so far."""

    found: _Found = field(default_factory=_Found)

    def add(self, found: _Found) -> None:
        if not found.differing:
            return
        if not self.found.differing:
            self.found = found
            return
        first = min(self.found, found, key=lambda each: each.first)
        distances = [each.largest for each in (self.found, found) if each.largest is not None]
        largest = max(distances, default=None)
        self.found = first._replace(differing=self.found.differing + found.differing, largest=largest)

    def result(self, size: int) -> Unequal | None:
        found = self.found
        if not found.differing:
            return None
        return Unequal(
            count=found.differing,
            size=size,
            first=found.first,
            left=found.left,
            right=found.right,
            largest=found.largest,
        )


@dataclass(frozen=True)
class _Pair:
    """The elements of two arrays of one shape."""

    left: Elements
    right: Elements
    rtol: float
    atol: float

    def walk(self, effort: Effort) -> Walk:
        """Return the blocks in which both are read."""
        grids = chunks_of(self.left), chunks_of(self.right)
        size = self.left.chunks.element_bytes() + self.right.chunks.element_bytes()
        coarse = max(grids, key=lambda grid: math.prod(max((*axis.sizes, 1)) for axis in grid.axes))
        return walk(coarse, grids, size, effort)

    def stored_alike(self) -> Walk | None:
        """Return the chunks one by one, if chunks with the same stored bytes hold equal elements, and fit in memory."""
        left, right = self.left, self.right
        if left.metadata.storage_transformers or right.metadata.storage_transformers:
            return None
        if not have_same_bytes(left.metadata, right.metadata) or self.common_type() is None:
            return None
        grid = left.chunks.grid
        size = left.chunks.element_bytes() + right.chunks.element_bytes()
        whole = max(1, 2 * size * math.prod(max((*axis.sizes, 1)) for axis in grid.axes))
        if whole > left.effort.memory:
            return None
        at_once = walk(grid, (grid,), 2 * size, left.effort).at_once
        return Walk(Regions(grid, (1,) * len(grid.axes)), at_once)

    def common_type(self) -> np.dtype[Any] | None:
        """Return the type in which elements are compared; None if they cannot be."""
        one, other = (_native(each.bind().spec.dtype) for each in (self.left, self.right))
        if one == other or one.names is not None or other.names is not None:
            return one if one.names == other.names else None
        if {one.kind, other.kind} <= {"T", "O"}:
            return np.dtype(object)
        kinds = {one.kind, other.kind}
        if kinds <= set("biufc") or kinds in ({"U"}, {"S"}, {"M"}, {"m"}) or is_small(one) or is_small(other):
            try:
                return np.promote_types(one, other)
            except TypeError:
                return None
        return None

    def compare_fills(self) -> _Found | None:
        """Return the difference between the values of missing chunks; None if they are equal."""
        specs = self.left.bind().spec, self.right.bind().spec
        found = self.compare(*(box_of(spec.fill_value, spec.dtype) for spec in specs))
        return found if found.differing else None

    def compare(self, left: AnyArray, right: AnyArray) -> _Found:
        """Return how parts of the two arrays differ; the first place is that in the part."""
        if left.dtype.hasobject or right.dtype.hasobject or left.size <= _MOST_ELEMENTS or not left.shape:
            return self._compare(left, right)
        total = _Sum()
        step = max(1, _MOST_ELEMENTS * left.shape[0] // left.size)
        for start in range(0, left.shape[0], step):
            found = self._compare(left[start : start + step], right[start : start + step])
            total.add(found._replace(first=(start + found.first[0], *found.first[1:])) if found.differing else found)
        return total.found

    def _compare(self, left: AnyArray, right: AnyArray) -> _Found:
        dtype = self._type_of(left, right)
        one, other = left.astype(dtype, copy=False), right.astype(dtype, copy=False)
        mask = unequal(one, other, self.rtol, self.atol)
        first = first_of(mask)
        if first is None:
            return _Found()
        count = int(np.count_nonzero(mask))
        return _Found(count, first, left[first], right[first], largest_distance(one[mask], other[mask]))

    def _type_of(self, left: AnyArray, right: AnyArray) -> np.dtype[Any]:
        if left.dtype == right.dtype and left.dtype.isnative:
            return left.dtype
        dtype = self.common_type()
        if dtype is None:
            raise OmnizarrError(f"values of {left.dtype} and {right.dtype} cannot be compared")
        return dtype


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type in the byte order of this machine."""
    return dtype if dtype.kind in "TO" or is_small(dtype) else dtype.newbyteorder("=")


@dataclass(frozen=True)
class _Comparing(Question[int, _Found]):
    """Compare the elements of each block; or of each chunk its stored bytes, and its elements where these differ."""

    pair: _Pair
    laid: Walk
    by_bytes: bool

    @property
    def at_once(self) -> int:
        return self.laid.at_once

    def begin(self) -> Callable[[int], tuple[int, _Found]]:
        pair, regions = self.pair, self.laid.regions
        left, right = pair.left.reader(self.at_once), pair.right.reader(self.at_once)
        one, other = pair.left.chunks, pair.right.chunks
        item = one.element_bytes()

        def stored_bytes_are_equal(number: int) -> bool:
            (coords,) = regions.chunks(number)
            values = one.value_of(coords), other.value_of(coords)
            return values[0] is not None and values[1] is not None and _are_same(values[0], values[1])

        def compare(number: int) -> tuple[int, _Found]:
            box = regions.box(number)
            nbytes = item * math.prod(part.stop - part.start for part in box)
            if self.by_bytes and stored_bytes_are_equal(number):
                return nbytes, _Found()
            found = pair.compare(left(box), right(box))
            return nbytes, _placed(found, box)

        return compare


def _placed(found: _Found, box: Box) -> _Found:
    if not found.differing:
        return found
    return found._replace(first=tuple(part.start + at for part, at in zip(box, found.first, strict=True)))


def _are_same(left: Buffer, right: Buffer) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, bytes) and isinstance(right, bytes):
        return left == right
    return bool(np.array_equal(np.frombuffer(left, np.uint8), np.frombuffer(right, np.uint8)))
