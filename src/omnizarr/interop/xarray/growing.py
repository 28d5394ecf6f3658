"""Variables on their way into a store, and how those grow that are appended to: all of them, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from xarray import Variable

from omnizarr.errors import ConflictError, OmnizarrError, ShapeError
from omnizarr.interop.xarray.reading import sources_of
from omnizarr.model import ArrayMetadata
from omnizarr.nodes import creating, resizing
from omnizarr.nodes.array import Array
from omnizarr.nodes.config import ArrayConfig

Done = list[tuple[resizing.Growth, resizing.Grown]]
"""Arrays that have become longer."""


@dataclass
class Piece:
    """One variable, and where its data goes.

    Attributes
    ----------
    name : str
        Of the array in its group.
    variable : xarray.Variable
        Encoded; in memory, of dask, or lazy.
    region : tuple of slice
        Where in the array.
    array : Array
        None until it is created from `metadata`.
    metadata, config : optional
        Of a new array.
    axis : int, optional
        The dimension along which the data is appended.
    """

    name: str
    variable: Variable
    region: tuple[slice, ...]
    array: Any = None
    metadata: ArrayMetadata | None = None
    config: ArrayConfig | None = None
    axis: int | None = None

    @property
    def is_chunked(self) -> bool:
        """Whether the data is an array of dask, or of another chunk manager."""
        return self.variable.chunks is not None

    def cannot_fail(self) -> bool:
        """Return whether the data is in memory, and can be written after the removal of what is stored."""
        is_loaded = self.variable._in_memory  # noqa: SLF001 - what is public would load it
        return is_loaded and creating.cannot_fail(self.variable.values, self.metadata)

    def sources(self) -> Iterator[Array]:
        """Yield the arrays that the data is read from by the engine here."""
        return sources_of(self.variable._data)  # noqa: SLF001 - what is public would load it

    def write(self) -> None:
        """Write data that is not an array of dask."""
        self.array[self.region or ...] = self.variable.data


def grown(pieces: Sequence[Piece], write: Callable[[], None] | None) -> Done:
    """Call `write` while arrays that are appended to are as long as they will be for it alone; then make them longer.

    Without `write`, they become longer at once. If anything fails, they are as long as before. If several
    writers append, each gets a place of its own, the same in all arrays: the first array, by name, decides.

    Raises
    ------
    ShapeError
        If the arrays are not of one length.
    ConflictError
        If another writer has claimed a place in one array, and not in another.
    """
    growing = sorted((piece for piece in pieces if piece.axis is not None), key=attrgetter("name"))
    done: Done = []
    try:
        _grow(growing, write, None, done)
    except BaseException:
        take_back(done)
        raise
    return done


def take_back(done: Done) -> None:
    """Make arrays as long again as they were."""
    for growth, result in reversed(done):
        with suppress(OmnizarrError):
            resizing.take_back(growth, result)
    done.clear()


def _grow(pieces: Sequence[Piece], write: Callable[[], None] | None, start: int | None, done: Done) -> None:
    if not pieces:
        if write is not None:
            write()
        return
    first, *rest = pieces
    array, axis = first.array, first.axis or 0
    begins: list[int] = []

    def longer(shape: tuple[int, ...]) -> tuple[int, ...]:
        _check_length(array, shape[axis], start)
        begins[:] = [shape[axis]]
        return (*shape[:axis], shape[axis] + first.variable.shape[axis], *shape[axis + 1 :])

    def write_rest(metadata: ArrayMetadata) -> None:
        first.array = Array(array.store_path, metadata, array.config)
        region = slice(begins[0], metadata.shape[axis])
        first.region = (*first.region[:axis], region, *first.region[axis + 1 :])
        _grow(rest, write, begins[0], done)

    growth = resizing.Growth(array.store_path, longer, array.config.policy, array.zarr_format)
    if write is not None:
        is_all = all(part == slice(None) for at, part in enumerate(first.region) if at != axis)
        covers = resizing.everything if is_all else None
        done.append((growth, resizing.grow(growth, lambda binding: write_rest(binding.metadata), covers)))
        return
    result = resizing.grow(growth)
    done.append((growth, result))
    write_rest(result.meant)


def _check_length(array: Array, length: int, expected: int | None) -> None:
    """Raise unless an array is as long as that which decides where data is appended."""
    if expected is None or length == expected:
        return
    where = {"store": str(array.store), "path": array.path, "found": length, "expected": expected}
    if length < expected:  # the faster writer is about to make this one longer, too
        raise ConflictError("another writer has made the first variable longer, and not this one", **where)
    raise ShapeError("the variables differ in length along the dimension that is appended to", **where)
