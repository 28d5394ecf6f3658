"""Engines run a plan against a store.

`reference`, in Python, defines the result of a plan; `native` runs the plans that it supports faster. The engine
of an array is chosen once, when its chunks are first accessed (see `Binding.name`). If something cannot be bound
(an unknown codec, type or grid), it raises an error then, only for that array.

The native engine has no error messages. It gets codecs as names and plain values, and the parts of a plan (not
its pieces) in one call, and returns the coordinates of chunks that it refused or that stopped it. The reference
engine reads those chunks, or raises an error. So errors are the same with both engines, and every message is
written once.
"""

from __future__ import annotations

from collections.abc import Callable

from omnizarr.codecs.contract import AnyArray
from omnizarr.engine import native, reference
from omnizarr.engine.binding import Binding, bind, check
from omnizarr.engine.conversion import Conversion
from omnizarr.engine.native import (
    Limits,
    begin,
    can_read_together,
    can_write,
    is_remote,
    is_stoppable,
    may_be_gone,
    place_samples,
    raise_of,
    read_many,
    read_together,
    read_within,
    shard_index_nbytes,
    shard_indexes,
    shared_chunks,
)
from omnizarr.engine.reference import write_fields
from omnizarr.indexing import Plan

__all__ = [
    "Binding",
    "Conversion",
    "Limits",
    "begin",
    "bind",
    "can_read_together",
    "can_write",
    "check",
    "is_remote",
    "is_stoppable",
    "may_be_gone",
    "place_samples",
    "raise_of",
    "read",
    "read_many",
    "read_together",
    "read_within",
    "reader",
    "shard_index_nbytes",
    "shard_indexes",
    "shared_chunks",
    "write",
    "write_fields",
]


def reader(binding: Binding) -> Callable[[Binding, Plan, AnyArray, int | None], None]:
    """Return the function that `read` calls for a binding: that of its engine, or of a store that makes its chunks."""
    if binding.elements is not None:
        return _read_elements
    return native.read if binding.native is not None else reference.read


def _read_elements(binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None) -> None:
    assert binding.elements is not None  # noqa: S101 - `reader` has looked
    binding.elements.read(plan, binding.grid, out, concurrency)


def read(binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None = None) -> None:
    """Fill `out`, of shape ``plan.buffer_shape`` and any strides, with the selected elements.

    They are converted if the binding is the result of `Binding.converting`.

    Raises
    ------
    ChunkError
        If a stored chunk is broken; the error names its key and coordinates.
    ChunkNotFoundError
        If a chunk is missing, and the array was opened with ``missing="error"``.
    """
    reader(binding)(binding, plan, out, concurrency)


def write(binding: Binding, plan: Plan, value: AnyArray, concurrency: int | None = None) -> None:
    """Store `value`, of shape ``plan.buffer_shape`` (or broadcast to it), into the selected elements."""
    (reference if binding.native is None else native).write(binding, plan, value, concurrency)
