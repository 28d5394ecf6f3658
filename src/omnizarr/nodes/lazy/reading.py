"""Reading lazy arrays: a tree becomes selections of its sources, each with its place in the result.

All selections of arrays in stores are read together, as by `omnizarr.read_many`, directly into the result where nothing
has to be spread, and converted piece by piece as they are read, if the engine can do it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from typing import cast as cast_to

import numpy as np

from omnizarr import engine, indexing
from omnizarr.engine.conversion import Conversion, cast, joined
from omnizarr.indexing import Plan, transforms
from omnizarr.indexing.transforms import Along, Listed, Transform, identity
from omnizarr.nodes.lazy import deferred, reshaping, sources, tree
from omnizarr.nodes.lazy.tree import Converted, Filled, Joined, Leaf, Node, Reshaped, Selected, Step
from omnizarr.nodes.reading import Prepared, prepare, read_prepared

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_BYTES: Final = 64 * 2**20
"""Bytes of elements that are held beside the result at once."""
_OPENED: Final = 256
"""Sources that are opened at a time to list what is in them."""


class Job(NamedTuple):
    """Elements of one source, and their place in the result."""

    leaf: Leaf | Filled | Reshaped
    """What is reshaped is a source of its own here; `read` looks into it."""
    source: Transform
    """From positions in the job to positions in the source."""
    target: Transform
    """From positions in the job to positions in the result."""
    steps: tuple[Step, ...]
    """Conversions, in the order in which they are applied."""


_Waiting: TypeAlias = "tuple[Job, Layout, Prepared, NDArray[Any]]"
"""What to read, its form as a selection, how it is read (into the result, if it has a part for it), and the result."""


def read(node: Node, out: NDArray[Any], concurrency: int | None = None) -> None:
    """Read all elements of a node into an array of its shape, with so many requests at once."""
    several: list[tuple[Job, NDArray[Any]]] = []
    finishing: list[Callable[[], None]] = []
    held = 0
    for job in jobs(node):
        if 0 in job.source.shape:
            continue
        if not isinstance(job.leaf, Reshaped):
            several.append((job, out))
            continue
        for begun, part, nbytes in _unreshaped(job, out, finishing):
            several.append((begun, part))
            held += nbytes
        if held > _MOST_BYTES:
            _read_jobs(several, concurrency)
            _finish(finishing)
            several, held = [], 0
    _read_jobs(several, concurrency)
    _finish(finishing)


def _finish(finishing: list[Callable[[], None]]) -> None:
    while finishing:
        finishing.pop()()  # the last first, as what is within another was begun later


def _unreshaped(
    job: Job, out: NDArray[Any], finishing: list[Callable[[], None]]
) -> Iterator[tuple[Job, NDArray[Any], int]]:
    """Yield jobs without reshaped nodes, the memory for each, and how many bytes are held for it beside the result.

    What has to be done after they are read is added to `finishing`.
    """
    waiting: list[Iterator[tuple[Job, NDArray[Any], int]]] = [iter([(job, out, 0)])]
    while waiting:
        found = next(waiting[-1], None)
        if found is None:
            waiting.pop()
        elif isinstance(found[0].leaf, Reshaped):
            waiting.append(_parts_of_reshaped(*found, finishing))
        else:
            yield found


def _parts_of_reshaped(
    job: Job, out: NDArray[Any], held: int, finishing: list[Callable[[], None]]
) -> Iterator[tuple[Job, NDArray[Any], int]]:
    node = cast_to("Reshaped", job.leaf)
    region = _region(job.target, out)
    if region is None:
        region = np.empty(job.target.shape, out.dtype)
        finishing.append(partial(_place, job, region, out))
        held += region.nbytes
    for transform, memory, copy in reshaping.parts(node.base.shape, node.shape, job.source, region):
        if copy is not None:
            finishing.append(partial(np.copyto, copy[1], copy[0]))
            held += copy[0].nbytes
        held += sum(output.indices.nbytes for output in transform.outputs if isinstance(output, Listed))
        for below in jobs(tree.converted(tree.selected(node.base, transform), job.steps)):
            yield below, memory, held
            held = 0


def _read_jobs(several: Sequence[tuple[Job, NDArray[Any]]], concurrency: int | None) -> None:
    waiting: list[_Waiting] = []
    held = 0
    layout, preparing = Layout(identity(())), _Preparing()
    opened = _opened([job for job, _ in several])
    for job, (_, out) in zip(opened, several, strict=True):
        if isinstance(job.leaf, Filled):
            _place(job, _converted(np.asarray(job.leaf.value, job.leaf.dtype), job.steps), out)
            continue
        leaf = cast_to("Leaf", job.leaf)
        sources.check(leaf)
        if job.source is not layout.source:  # most parts of a join are read in the same way
            layout = Layout(job.source)
        if not hasattr(leaf.source, "_prepare"):
            _place(job, _converted(layout.arranged(_of_other(leaf, layout)), job.steps), out)
            continue
        prepared = preparing.prepared(job, layout, out)
        waiting.append((job, layout, prepared, out))
        held += 0 if prepared.is_in_place else prepared.buffer.nbytes
        if held > _MOST_BYTES:
            _fetch(waiting, concurrency)
            waiting, held = [], 0
            preparing.clear()
    _fetch(waiting, concurrency)


def _opened(several: Sequence[Job]) -> Iterable[Job]:
    """Return jobs with all sources open."""
    leaves = deferred.opened(
        job.leaf.source for job in several if isinstance(job.leaf, Leaf) and 0 not in job.source.shape
    )
    if not leaves:
        return several
    return (
        job._replace(leaf=leaves.get(id(job.leaf.source), job.leaf)) if isinstance(job.leaf, Leaf) else job
        for job in several
    )


def opened_jobs(node: Node) -> Iterator[Job]:
    """Yield what `jobs` yields, with sources open: some at a time, side by side, as they are asked for."""
    waiting = jobs(node)
    while several := list(islice(waiting, _OPENED)):
        yield from _opened(several)


def _conversion(job: Job, dtype: np.dtype[Any]) -> Conversion | None:
    """Return what is done to the elements of a source, which become elements of a data type."""
    found, now = [], job.leaf.dtype
    for step in job.steps:
        found.append(step.conversion(now))
        now = step.dtype
    if now != dtype:
        found.append(cast(now, dtype))
    return joined(found) if found else None


def _fetch(waiting: Sequence[_Waiting], concurrency: int | None) -> None:
    if not waiting:
        return
    if len(waiting) == 1:  # reading several costs more than a small read
        ((job, _, each, _),) = waiting
        usual = cast_to("Leaf", job.leaf).source.config.concurrency
        engine.read(each.binding, each.plan, each.buffer, usual if concurrency is None else concurrency)
        found = [each.result()]
    else:
        found = read_prepared([each for _, _, each, _ in waiting], concurrency)
    sources.check_filled(
        (cast_to("Leaf", job.leaf), values, partial(_conversion, job, out.dtype))
        for (job, _, _, out), values in zip(waiting, found, strict=True)
        if cast_to("Leaf", job.leaf).stamp is None  # others were compared before
    )
    for (job, layout, each, out), values in zip(waiting, found, strict=True):
        if each.out is None:
            _place(job, layout.arranged(np.asarray(values).reshape(layout.shape)), out)


class _Preparing:
    """Prepares jobs: those with equal selections share a plan, and those with equal steps a conversion."""

    def __init__(self) -> None:
        self._plans: dict[tuple[int, int], tuple[Layout, Plan]] = {}
        self._conversions: dict[tuple[np.dtype[Any], tuple[int, ...]], Conversion | None] = {}

    def prepared(self, job: Job, layout: Layout, out: NDArray[Any]) -> Prepared:
        """Return how to read a job: into its part of the result if there is one."""
        array = cast_to("Leaf", job.leaf).source
        bound = array._state.bound or array._bind()  # noqa: SLF001 - a part of Array
        key = id(layout), id(bound.grid)  # arrays with the same metadata have one grid
        if key not in self._plans:
            self._plans[key] = layout, array._plan(indexing.plan, layout.selection, bound.grid)  # noqa: SLF001
        _, plan = self._plans[key]
        direct, conversion = _direct(job, layout, out), self._conversion(job, out.dtype)
        return prepare(bound.binding, plan, bound.order, direct, None, conversion, is_checked=True)

    def _conversion(self, job: Job, wanted: np.dtype[Any]) -> Conversion | None:
        """Return what is done to the elements of a job, for results of one data type: that of all jobs."""
        if not job.steps and job.leaf.dtype == wanted:
            return None
        key = job.leaf.dtype, tuple(map(id, job.steps))
        if key not in self._conversions:
            self._conversions[key] = _conversion(job, wanted)
        return self._conversions[key]

    def clear(self) -> None:
        """Forget the plans of jobs that have been read."""
        self._plans.clear()


def jobs(node: Node) -> Iterator[Job]:
    """Yield what has to be read for all elements of a node."""
    everything = identity(node.shape)
    stack: list[tuple[Node, Transform, Transform, tuple[Step, ...]]] = [(node, everything, everything, ())]
    while stack:
        node, source, target, steps = stack.pop()
        if isinstance(node, Selected):
            inner = node.transform if source is everything else node.transform.compose(source)
            stack.append((node.base, inner, target, steps))
        elif isinstance(node, Converted):
            stack.append((node.base, source, target, (node.step, *steps)))
        elif isinstance(node, Joined):
            stack += reversed([(part, *places, steps) for part, places in _parts(node, source, target)])
        else:
            yield Job(node, source, target, steps)


def _parts(node: Joined, source: Transform, target: Transform) -> Iterator[tuple[Node, tuple[Transform, Transform]]]:
    """Yield each part of a join that has selected elements, with the transforms of these elements."""
    axis = node.axis
    output = source.outputs[axis]
    part, before = source, range(0)
    for number in _touched(node, source):
        end = node.ends[number]
        start = node.ends[number - 1] if number else 0
        if isinstance(output, Along):  # most common, and several times faster
            indices = output.indices
            first, last = transforms.between(indices, start, end)
            if first < last:
                begin = indices.start + first * indices.step - start
                within = range(begin, begin + (last - first) * indices.step, indices.step)
                if within != before:  # otherwise it is the same object, by which `read` knows it again
                    part, before = source.cut(output.dim, first, last).shifted(axis, start), within
                yield node.parts[number], (part, target.cut(output.dim, first, last))
        elif (inside := source.within(axis, start, end)) is not None:
            yield node.parts[number], (source.compose(inside).shifted(axis, start), target.compose(inside))


def _touched(node: Joined, source: Transform) -> Iterable[int]:
    """Return the numbers of the parts that may have selected elements, at a cost that follows their number."""
    output = source.outputs[node.axis]
    if isinstance(output, int):
        return (bisect_right(node.ends, output),)
    if isinstance(output, Listed):
        positions = output.indices.ravel()
    elif not output.indices:
        return ()
    else:
        ends = sorted((output.indices[0], output.indices[-1]))
        return range(bisect_right(node.ends, ends[0]), bisect_right(node.ends, ends[1]) + 1)
    return np.unique(np.searchsorted(node.ends, positions, side="right")).tolist()  # type: ignore[no-any-return]


def _converted(values: NDArray[Any], steps: Iterable[Step]) -> NDArray[Any]:
    for step in steps:
        values = step.apply(values)
    return values


def _place(job: Job, values: NDArray[Any], out: NDArray[Any]) -> None:
    """Put values in the order of a job's dimensions where they belong."""
    region = _region(job.target, out)
    values = np.broadcast_to(values, job.target.shape)
    if region is not None:
        region[...] = values
        return
    dims = range(len(job.target.shape))
    places = []
    for output in job.target.outputs:
        of: tuple[int, ...] = () if isinstance(output, int) else transforms.dims_of(output)
        indices = np.array(output if isinstance(output, int) else output.indices)
        lengths = dict(zip(of, indices.shape, strict=True))
        places.append(indices.reshape([lengths.get(dim, 1) for dim in dims]))
    out[tuple(places)] = values


def _region(target: Transform, out: NDArray[Any]) -> NDArray[Any] | None:
    """Return the part of the result that a job fills, in the order of its dimensions; None if there is no such view."""
    places: list[Any] = []
    dims = []
    for output in target.outputs:
        if not isinstance(output, Along):
            return None
        dims.append(output.dim)
        indices = output.indices
        places.append(slice(indices.start, indices.stop) if indices.step == 1 else as_slice(indices))
    view = out[(*places, ...)]  # the Ellipsis keeps 0-d results views
    return view if dims == sorted(dims) else view.transpose(np.argsort(dims, kind="stable"))


def as_slice(indices: range) -> slice:
    """Return the slice that selects the members of a range."""
    if not indices:
        return slice(0, 0, 1)
    stop = indices.start + indices.step * len(indices)
    return slice(indices.start, None if stop < 0 else stop, indices.step)


class Layout:
    """A transform as a selection of ``array[...]``, and the way from its result to the dimensions of the transform.

    Attributes
    ----------
    source : Transform
    selection : tuple
        Slices and arrays of indices: no axis is dropped.
    shape : tuple of int
        Shape of ``array[selection]``.
    dims : list of int or None
        For each axis of ``array[selection]``, the dimension of the transform; None: the axis is of length 1.
    """

    def __init__(self, source: Transform) -> None:
        self.source = source
        self._of_transform = source.shape
        selection: list[Any] = []
        dims: list[int | None] = []
        lists = [output for output in source.outputs if isinstance(output, Listed)]
        together = sorted({dim for output in lists for dim in output.dims})
        is_list = [isinstance(output, Listed) for output in source.outputs]
        are_adjacent = not lists or sum(is_list[is_list.index(True) :][: len(lists)]) == len(lists)
        if not are_adjacent:
            dims += together
        for output in source.outputs:
            if isinstance(output, Along):
                selection.append(as_slice(output.indices))
                dims.append(output.dim)
            elif isinstance(output, int):
                selection.append(slice(output, output + 1))
                dims.append(None)
            else:
                lengths = dict(zip(output.dims, output.indices.shape, strict=True))
                selection.append(output.indices.reshape([lengths.get(dim, 1) for dim in together]))
                if are_adjacent and output is lists[0]:
                    dims += together
        self.selection = tuple(selection)
        self.dims = dims
        self.shape = tuple([1 if dim is None else source.shape[dim] for dim in dims])
        self._is_same = dims == list(range(len(source.shape)))

    @property
    def is_one_to_one(self) -> bool:
        """Whether no element of the source is selected twice because of a dimension that it does not have."""
        return self._is_same or all(length == 1 or dim in self.dims for dim, length in enumerate(self._of_transform))

    def arranged(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return ``array[selection]`` with the dimensions of the transform, of length 1 where it has none of them."""
        if self._is_same:
            return values
        dims = [dim for dim in self.dims if dim is not None]
        values = values[tuple(0 if dim is None else slice(None) for dim in self.dims)]
        values = values.transpose(np.argsort(dims, kind="stable"))
        return values[tuple(slice(None) if dim in dims else None for dim in range(len(self._of_transform)))]

    def rearranged(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values with the dimensions of the transform in the order of ``array[selection]``, as a view."""
        if self._is_same:
            return values
        kept = sorted(dim for dim in self.dims if dim is not None)
        items: list[Any] = [slice(None) if dim in kept else 0 for dim in range(values.ndim)]
        values = values[(*items, ...)]
        values = values.transpose([kept.index(dim) for dim in self.dims if dim is not None])
        items = [None if dim is None else slice(None) for dim in self.dims]
        return values[(*items, ...)]


def _direct(job: Job, layout: Layout, out: NDArray[Any]) -> NDArray[Any] | None:
    """Return the part of the result into which a source can be read."""
    if not layout.is_one_to_one:
        return None
    region = _region(job.target, out)
    return None if region is None else layout.rearranged(region)


def _of_other(leaf: Leaf, layout: Layout) -> NDArray[Any]:
    """Return elements of a source that is no array of omnizarr: slices are asked of it, the rest is done by NumPy."""
    found: NDArray[Any]
    if isinstance(leaf.source, np.ndarray):
        found = leaf.source[(*layout.selection, ...)]
        return found
    boxes: list[slice] = []
    rest: list[Any] = []
    for item in layout.selection:
        if isinstance(item, slice):
            boxes.append(item)
            rest.append(slice(None))
        else:
            low = int(item.min())
            boxes.append(slice(low, int(item.max()) + 1))
            rest.append(item - low)
    box = np.asarray(leaf.source[tuple(boxes)])
    found = box[tuple(rest)]
    return found
