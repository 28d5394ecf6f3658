"""Boxes of arrays, read together: each becomes memory that is given."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from omnizarr import engine, indexing
from omnizarr.errors import ShapeError
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
    together: list[Prepared] = []
    far: list[Prepared] = []
    others: list[Callable[[], object]] = []
    concurrency = None
    for array, place, out in boxes:
        if isinstance(array, np.ndarray):
            out[...] = array[place]
        elif isinstance(array, Array):
            _check_size(array, place)
            concurrency = array._config.concurrency  # noqa: SLF001 - a part of Array
            prepared = array._prepare(indexing.basic, place, out, None)  # noqa: SLF001
            if prepared.binding.elements is None and engine.can_read_together(prepared.binding):
                together.append(prepared)
            elif engine.is_remote(prepared.binding):
                far.append(prepared)
            else:
                others.append(partial(_alone, prepared))
        else:
            others.append(partial(array.lazy[place].read, out=out))
    if together:
        _finish(together, engine.read_together, concurrency)
    if far:
        _finish(far, partial(engine.read_many, indexes=indexes), concurrency)
    if others:
        pool.run(_call, others, min(len(others), _workers(boxes, concurrency)), 1)


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


def _finish(jobs: list[Prepared], run: Any, concurrency: int | None) -> None:
    run([(job.binding, job.plan, job.buffer) for job in jobs], concurrency)
    for job in jobs:
        if not job.is_in_place:
            job.result()


def _alone(prepared: Prepared) -> None:
    engine.read(prepared.binding, prepared.plan, prepared.buffer, 1)
    if not prepared.is_in_place:
        prepared.result()


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
