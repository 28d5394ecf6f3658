"""Prepared selections, and reading many of them at once, from any arrays and stores."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from omnizarr import engine, indexing
from omnizarr.engine import Binding, Conversion, budget, reference
from omnizarr.engine.conversion import cast
from omnizarr.errors import OmnizarrError, SelectionMemoryError, ShapeError
from omnizarr.indexing import Plan
from omnizarr.model.datatypes.optional import as_masked
from omnizarr.nodes.indexers import AnyArray, Fields, Index, as_buffer, fields_dtype, select_fields
from omnizarr.nodes.out import Out, memory_of
from omnizarr.stores import pool

_Task: TypeAlias = Callable[[], object]
_MOST_TOGETHER = 1 << 14
"""How many pieces of selections are compared, to read those of the same chunk together."""
_MOST_ASKED = 64
"""For how many chunks a store is asked at once, if it answers that itself."""


class Prepared(NamedTuple):
    """A selection of an array: what to read, and how to make the result of it."""

    binding: Binding
    plan: Plan
    buffer: AnyArray
    """The array that the engine fills."""
    out: Out | None
    """What the user wants to have filled."""
    memory: AnyArray | None
    """Its memory."""
    fields: Fields
    conversion: Conversion | None = None
    """What is done to the elements of the buffer; None if the engine has done it, or there is nothing to do."""
    is_in_place: bool = False
    """Whether the buffer is the memory of `out`."""

    def result(self) -> Any:
        """Return the user's result, after the buffer has been filled."""
        if self.is_in_place:
            return self.out
        result = self.plan.as_result(self.buffer)
        if self.conversion is not None:
            result = self.conversion.apply(result)
        if self.fields is not None:
            result = select_fields(result, self.fields)
        if self.memory is None:
            return result if self.plan.shape else result[()]
        np.copyto(self.memory, result, casting="same_kind")
        return self.out

    def shown(self) -> Any:
        """Return what users see: a masked array, if elements may be missing and `out` is not given."""
        result = self.result()
        if self.fields is None and self.out is None and self.binding.spec.data_type.is_optional:
            return as_masked(np.asarray(result))
        return result


def prepare(
    binding: Binding,
    plan: Plan,
    order: Any,
    out: Out | None,
    fields: Fields,
    conversion: Conversion | None = None,
    *,
    is_checked: bool = False,
) -> Prepared:
    """Return a planned selection with memory to read it into: `out` itself if possible.

    Elements are converted as they are read, by `conversion` or to the data type of `out`, if the engine can do it.
    `is_checked` says that `out` is a part of memory that `memory_of` knows.
    """
    dtype = binding.spec.dtype
    wanted = dtype if conversion is None else conversion.dtype
    memory = None
    if is_checked and isinstance(out, np.ndarray) and out.dtype == wanted and out.shape == plan.shape:
        memory = out
    elif out is not None:
        try:
            memory = memory_of(out, wanted if fields is None else fields_dtype(dtype, fields), plan.shape)
        except OmnizarrError as error:
            raise error.add(store=str(binding.base or binding.store), path=binding.path)
        if fields is None and memory.dtype != wanted and conversion is None:
            conversion = cast(dtype, memory.dtype)
    if conversion is not None and (converting := binding.converting(conversion)) is not None:
        binding, dtype, conversion = converting, conversion.dtype, None
    if memory is not None and fields is None and conversion is None and memory.dtype == dtype:
        view = as_buffer(memory, plan)
        if view is not None:
            return Prepared(binding, plan, view, out, memory, None, is_in_place=True)
    try:
        buffer = np.empty(plan.buffer_shape, dtype, order)
    except (MemoryError, ValueError) as error:  # ValueError: more than any array can have
        raise too_large(binding, plan) from error
    return Prepared(binding, plan, buffer, out, memory, fields, conversion)


def too_large(binding: Binding, plan: Plan) -> SelectionMemoryError:
    """Return the error for a selection that no memory holds."""
    return SelectionMemoryError(
        "the selected elements do not fit in memory",
        store=str(binding.base or binding.store),
        path=binding.path,
        found=f"shape {plan.buffer_shape}, data type {binding.spec.dtype}",
        remedy="read a part of them at a time",
    )


def pair_of(request: Any) -> tuple[Any, Any]:
    """Return the array and the selection of a request. Raises TypeError for anything else, such as a lone array."""
    if isinstance(request, (tuple, list)) and len(request) == 2 and hasattr(request[0], "dtype"):
        return request[0], request[1]
    shown = repr(request) if hasattr(request, "dtype") else f"{type(request).__name__} {request!r}"
    raise TypeError(
        f"not a pair of an array and a selection: found {shown}; write (array, ...) to read all of an array"
    )


def prepare_many(requests: Iterable[tuple[Any, Any]], out: Sequence[Out | None] | None) -> list[Prepared]:
    """Return what to read for each (array, selection). Raises the errors of `read_many`, before anything is read."""
    wanted = [pair_of(request) for request in requests]
    outs = [None] * len(wanted) if out is None else list(out)
    if len(outs) != len(wanted):
        raise ShapeError("out must have one array, or None, for each selection", found=len(outs), expected=len(wanted))
    found = []
    for (array, selection), target in zip(wanted, outs, strict=True):
        fields, rest = (None, selection) if array.dtype.names is None else indexing.pop_fields(selection)
        found.append(array._prepare(indexing.plan, rest, target, fields))  # noqa: SLF001 - a part of Array
    return found


def read_many(
    requests: Iterable[tuple[Any, Index]],
    *,
    out: Sequence[Out | None] | None = None,
    concurrency: int | None = None,
) -> list[Any]:
    """Read several selections concurrently, from one array or many, in one store or several.

    With slow stores, this takes about as long as the slowest selection alone.

    Parameters
    ----------
    requests : iterable of (Array, selection)
        Each selection is what you would write in ``array[...]``.
    out : sequence of array or None, optional
        For each selection, an array of the selection's shape to fill and return, or None. See
        `omnizarr.Array.get_basic_selection`.
    concurrency : int, optional
        Number of chunks to fetch at once. The default depends on each store.

    Returns
    -------
    list
        For each request, the value of ``array[selection]``.

    Raises
    ------
    SelectionError
        If a selection is not valid. Nothing is read then.
    ShapeError
        If an array in `out` has another shape than its selection.
    ChunkError
        If a stored chunk is broken.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> root["a"], root["b"] = np.arange(5), np.arange(6).reshape(2, 3)
    >>> omnizarr.read_many([(root["a"], slice(1, 3)), (root["b"], (0, ...))])
    [array([1, 2]), array([0, 1, 2])]
    """
    return read_prepared(prepare_many(requests, out), concurrency)


def read_prepared(jobs: Sequence[Prepared], concurrency: int | None = None) -> list[Any]:
    """Read selections that are prepared, like `read_many`."""
    fill(jobs, concurrency)
    return [job.out if job.is_in_place else job.shown() for job in jobs]


def fill(
    jobs: Sequence[Prepared], concurrency: int | None = None, is_stopped: Callable[[], bool] | None = None
) -> None:
    """Fill the buffers of selections.

    Once `is_stopped` returns True, no further chunk is read from stores that answer in Python.
    """
    if _are_plain(jobs):
        _read_apart(jobs, concurrency)
        return
    seeking = _seeking(jobs, concurrency)
    far: dict[Hashable, list[Prepared]] = {}
    near: list[_Task] = []
    native = [job for job in jobs if engine.is_remote(job.binding)]
    if native:
        near.append(partial(engine.read_many, [(job.binding, job.plan, job.buffer) for job in native], concurrency))
    for job in jobs:
        if not (id(job) in seeking or engine.is_remote(job.binding) or _is_near(job.binding)):
            far.setdefault(job.binding.store.origin()[0], []).append(job)
    here = itertools.chain(near, _near([job for job in jobs if _is_near(job.binding)], concurrency))
    tasks = [here, seeking.values(), *(_tasks(several) for several in far.values())]
    workers = len(seeking) + sum(_share(several, concurrency) for several in far.values())
    workers = max(workers, _readers(jobs, concurrency))
    workers = min(budget.MOST_REQUESTS, workers) or 1
    mixed = _in_turn(tasks)
    if is_stopped is not None:
        mixed = itertools.takewhile(lambda _: not is_stopped(), mixed)
    pool.run(_run, mixed, min(workers, concurrency or workers), 1)


def _read_apart(jobs: Sequence[Prepared], concurrency: int | None) -> None:
    """Read selections that share no chunk, by one call of the native engine as far as that is possible."""
    together = [job for job in jobs if job.binding.elements is None and engine.can_read_together(job.binding)]
    if len(together) == 1:
        together = []
    if together:
        engine.read_together([(job.binding, job.plan, job.buffer) for job in together], concurrency)
    if len(together) < len(jobs):
        done = set(map(id, together))
        for job in jobs:
            if id(job) not in done:
                engine.read(job.binding, job.plan, job.buffer, concurrency)


def _seeking(jobs: Sequence[Prepared], concurrency: int | None) -> dict[int, _Task]:
    """Return what reads the only job of an array by parts of an index of a far file, by the identity of the job.

    For several jobs of one array, the whole index is read here: then the engine fetches what all of them need.
    """
    found: dict[int, _Task] = {}
    counts = Counter(id(job.binding.plain) for job in jobs)
    for job in jobs:
        if job.binding.index is None or _is_near(job.binding):
            continue
        if counts[id(job.binding.plain)] == 1:
            found[id(job)] = partial(engine.read, job.binding, job.plan, job.buffer, concurrency)
        else:
            job.binding.read_index()
    return found


def _are_plain(jobs: Sequence[Prepared]) -> bool:
    """Return whether each job reads another array, whose store answers immediately: then nothing is shared."""
    bindings = [job.binding for job in jobs]
    return len(set(map(id, bindings))) == len(bindings) and all(map(_is_near, bindings))


def _is_near(binding: Binding) -> bool:
    """Return whether a store answers immediately, or reads whole selections itself."""
    return binding.elements is not None or (binding.store.features.concurrency <= 1 and not engine.is_remote(binding))


def _readers(jobs: Sequence[Prepared], concurrency: int | None) -> int:
    """Return how many threads are to read chunks of stores that answer immediately, in Python."""
    chunks: dict[int, int] = {}
    bindings: dict[int, Binding] = {}
    for job in jobs:
        if _is_near(job.binding) and job.binding.asks_store and job.binding.elements is None:
            number = id(job.binding.plain)
            chunks[number] = chunks.get(number, 0) + len(job.plan)
            bindings[number] = job.binding
    return max((reference.readers(bindings[each], count, concurrency) for each, count in chunks.items()), default=1)


def _near(jobs: Sequence[Prepared], concurrency: int | None) -> Iterator[_Task]:
    """Yield a function that reads each job, or each chunk. Jobs of one array decode each chunk once."""
    counts = Counter(id(job.binding.plain) for job in jobs)
    limits: dict[int, engine.Limits] = {}
    asking: dict[int, list[Prepared]] = {}
    for job in jobs:
        number = id(job.binding.plain)
        if counts[number] > 1 and job.binding.asks_store and job.binding.elements is None:
            asking.setdefault(number, []).append(job)
        elif counts[number] > 1 and engine.is_stoppable(job.binding):
            if number not in limits:
                limits[number] = engine.Limits(engine.shared_chunks(job.binding))
            yield partial(engine.read_within, limits[number], job.binding, job.plan, job.buffer, concurrency)
        else:
            yield partial(engine.read, job.binding, job.plan, job.buffer, concurrency)
    apart: list[Prepared] = []
    for several in asking.values():
        sharing = _sharing(several)
        yield from _tasks(sharing)
        shared = set(map(id, sharing))
        apart += [job for job in several if id(job) not in shared]
    if apart:
        yield partial(_read_apart, apart, concurrency)


def _sharing(jobs: Sequence[Prepared]) -> Sequence[Prepared]:
    """Return those selections of one array that need a chunk which another one needs, too; of very many chunks, all."""
    if sum(len(job.plan) for job in jobs) > _MOST_TOGETHER:
        return jobs
    users = Counter(piece[0] for job in jobs for piece in job.plan)
    return [job for job in jobs if any(users[piece[0]] > 1 for piece in job.plan)]


def _tasks(jobs: Sequence[Prepared]) -> Iterator[_Task]:
    """Yield a function that reads each chunk. Parts of a chunk that several jobs want are read together."""
    of_array: dict[int, list[Prepared]] = {}
    for job in jobs:
        of_array.setdefault(id(job.binding.plain), []).append(job)
    for same in of_array.values():
        if len(same) == 1:
            (job,) = same
            for piece in job.plan:
                yield partial(reference.read, job.binding, (piece,), job.buffer)
            continue
        binding = same[0].binding
        pieces = ((job.binding, piece, job.buffer) for job in same for piece in job.plan)
        while some := list(itertools.islice(pieces, _MOST_TOGETHER)):
            of_chunk: dict[tuple[int, ...], list[tuple[Binding, indexing.Piece, AnyArray]]] = {}
            for each in some:
                of_chunk.setdefault(each[1][0], []).append(each)
            if binding.store.features.concurrency > 1 or not reference.asks_for_many(binding):
                for parts in of_chunk.values():
                    yield partial(reference.read_parts, parts)
                continue
            chunks = iter(of_chunk.values())
            while several := list(itertools.islice(chunks, min(_MOST_ASKED, binding.most_in_flight))):
                yield partial(reference.read_parts_of_many, several)


def _share(jobs: Sequence[Prepared], concurrency: int | None) -> int:
    """Return how many chunks of one store to fetch at once."""
    wanted = concurrency or max(job.binding.store.features.concurrency for job in jobs)
    pieces = sum(len(job.plan) for job in jobs)
    most = min(job.binding.most_in_flight for job in jobs)
    return min(wanted, most, pieces)


def _in_turn(several: Iterable[Iterable[_Task]]) -> Iterator[_Task]:
    """Yield one item of each iterable in turn, so that no store waits for another."""
    iterators = [iter(tasks) for tasks in several]
    while iterators:
        left = []
        for iterator in iterators:
            for task in itertools.islice(iterator, 1):
                yield task
                left.append(iterator)
        iterators = left


def _run(task: _Task) -> None:
    task()
