"""Boxes of arrays, read together: each becomes memory that is given."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from omnizarr import engine, indexing
from omnizarr.errors import ShapeError
from omnizarr.nodes import reading
from omnizarr.nodes.array import Array
from omnizarr.nodes.reading import Prepared
from omnizarr.stores import pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class Box(NamedTuple):
    """What to read, and where to."""

    array: Any
    place: tuple[slice, ...]
    out: NDArray[Any]


def read(boxes: Sequence[Box], indexes: Any = None) -> None:
    """Fill the memory of all boxes. Raises the first error; memory that was not filled yet is unchanged.

    `indexes` is where indexes of shards are kept: the result of `omnizarr.engine.shard_indexes`.
    """
    ways: dict[str, list[Prepared]] = {"far": [], "asked": [], "together": []}
    others: list[Callable[[], object]] = []
    concurrency = None
    for array, place, out in boxes:
        if isinstance(array, np.ndarray):
            out[...] = array[place]
        elif isinstance(array, Array):
            _check_size(array, place)
            concurrency = array._config.concurrency  # noqa: SLF001 - a part of Array
            prepared = array._prepare(indexing.basic, place, out, None)  # noqa: SLF001
            way = _way_of(prepared.binding)
            if way is None:
                others.append(partial(_alone, prepared))
            else:
                ways[way].append(prepared)
        else:
            others.append(partial(array.lazy[place].read, out=out))
    far, asked, together = ways.values()
    if together:
        engine.read_together(_requests(together), concurrency)
    if far:
        engine.read_many(_requests(far), concurrency, indexes)
    if asked:
        reading.fill(asked, concurrency)
    _finish([*together, *far, *asked])
    if others:
        pool.run(_call, others, min(len(others), _workers(boxes, concurrency)), 1)


def _way_of(binding: engine.Binding) -> str | None:
    """Return how boxes of an array are read together: "asked" means that Python asks the store for chunks."""
    if engine.is_remote(binding):
        return "far"
    if binding.elements is not None:
        return None
    if binding.asks_store:
        return "asked"
    return "together" if engine.can_read_together(binding) else None


def _check_size(array: Array, place: tuple[slice, ...]) -> None:
    """Raise ShapeError if an array has become so small that a place is not in it any more."""
    shape = array.shape
    if any(each.stop > n for each, n in zip(place, shape, strict=True)):
        raise ShapeError(
            "the array has become smaller since its samples were counted",
            store=str(array.store),
            path=array.path,
            found=f"shape {shape}",
            expected=f"at least {tuple(each.stop for each in place)}",
            remedy="make the loader again",
        )


def _requests(jobs: Sequence[Prepared]) -> list[Any]:
    return [(job.binding, job.plan, job.buffer) for job in jobs]


def _finish(jobs: Sequence[Prepared]) -> None:
    for job in jobs:
        if not job.is_in_place:
            job.result()


def _alone(prepared: Prepared) -> None:
    engine.read(prepared.binding, prepared.plan, prepared.buffer, 1)
    _finish([prepared])


def _call(task: Callable[[], object]) -> None:
    task()


def _workers(boxes: Sequence[Box], concurrency: int | None) -> int:
    """Return how many boxes to read at once: as many as the slowest store wants requests."""
    if concurrency is not None:
        return concurrency
    wanted = [pool.default_concurrency()]
    for array in {id(box.array): box.array for box in boxes}.values():
        if isinstance(array, Array):
            binding = (array._state.bound or array._bind()).binding  # noqa: SLF001
            wanted.append(min(binding.store.features.concurrency, binding.most_in_flight))
    return max(wanted)
