"""Writers of asynchronous arrays: `omnizarr.nodes.writer` for event loops.

What only waits in memory is done in the loop where that is known before: an appended block that is small, and has
room. All other calls run in a thread, because they may store chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

import numpy as np

from omnizarr.aio.indexers import AsyncIndexed
from omnizarr.aio.nodes import writing
from omnizarr.nodes.indexers import AnyArray, ArrayIndex, Fields, Index, Planner
from omnizarr.nodes.resizing import AppendedShape
from omnizarr.nodes.writer import ArrayWriter, WriterStats

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

T = TypeVar("T")

_SMALL: Final = 128 * 1024
"""Bytes up to which a block is copied in the loop, because passing it to a thread takes as long."""


class AsyncArrayWriter(AsyncIndexed):
    """Gathers small writes to an array, and stores each chunk (with shards: each shard) once.

    You get one from `AsyncArray.writer`. It does the same as `omnizarr.nodes.writer.ArrayWriter`, and can lose the
    same. Tasks of one event loop or of several can share it: what they write at once is written one after another.

    Parameters
    ----------
    writer : ArrayWriter
        The writer without ``await``.

    Examples
    --------
    >>> import asyncio
    >>> import numpy as np
    >>> from omnizarr import aio
    >>> async def main():
    ...     array = await aio.create_array({}, shape=(0, 3), shards=(1000, 3), chunks=(10, 3), dtype="float32")
    ...     async with array.writer() as writer:
    ...         for number in range(5):
    ...             await writer.append(np.full((1, 3), number, "float32"))
    ...         await writer.setitem((0, 0), 7)
    ...     return array.shape, await array.getitem((slice(0, 2), 0)), writer.stats.chunks_stored
    >>> asyncio.run(main())
    ((5, 3), array([7., 1.], dtype=float32), 1)
    """

    __slots__ = ("__weakref__", "writer")

    writer: ArrayWriter
    """The writer without ``await``."""

    def __init__(self, writer: ArrayWriter) -> None:
        self.writer = writer

    # -- properties ----------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each dimension, including appended ones that are not stored yet. It never waits."""
        return self.writer.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.writer.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the elements."""
        return self.writer.dtype

    @property
    def nbytes_waiting(self) -> int:
        """Bytes in memory that wait to be stored."""
        return self.writer.nbytes_waiting

    @property
    def stats(self) -> WriterStats:
        """What the writer has stored so far."""
        return self.writer.stats

    # -- reading -------------------------------------------------------------------

    @overload
    async def getitem(self, selection: ArrayIndex) -> AnyArray: ...
    @overload
    async def getitem(self, selection: Index) -> Any: ...
    async def getitem(self, selection: Any) -> Any:
        """Return the selected elements, with what was written and is not stored yet."""
        return await self._run(self.writer.__getitem__, selection)

    async def _get(self, planner: Planner, selection: Any, out: None, fields: Fields) -> Any:
        return await self._run(self.writer._get, planner, selection, out, fields)  # noqa: SLF001 - its other half

    # -- writing -------------------------------------------------------------------

    async def setitem(self, selection: Index, value: ArrayLike) -> None:
        """Write elements, like ``writer[selection] = value``. They wait in memory, and raise errors at once."""
        await self._run(self.writer.__setitem__, selection, value)

    async def _set(self, planner: Planner, selection: Any, value: ArrayLike, fields: Fields) -> None:
        await self._run(self.writer._set, planner, selection, value, fields)  # noqa: SLF001 - its other half

    async def append(self, data: ArrayLike, axis: int = 0) -> AppendedShape:
        """Add elements at the end of a dimension. They wait in memory. See `omnizarr.nodes.writer.ArrayWriter.append`.

        Raises
        ------
        ShapeError
            If `data` does not fit.
        ValueTypeError
            If `data` cannot be converted to the data type of the array.
        """
        writer = self.writer
        if type(data) is np.ndarray and data.dtype == writer.dtype and data.nbytes <= _SMALL:
            appended = writer.append_if_it_waits(data, axis)
            if appended is not None:
                return appended
        return await self._run(writer.append, data, axis)

    async def flush(self) -> None:
        """Store everything that waits. If that fails, what could not be stored still waits, and you can try again."""
        await self._run(self.writer.flush)

    async def close(self) -> None:
        """Store everything that waits. A second call does nothing.

        If storing fails, the writer stays open, so that you can call this again.
        """
        await self._run(self.writer.close)

    async def discard(self) -> None:
        """Drop what waits, and close the writer. What is already stored stays."""
        await self._run(self.writer.discard)

    async def _run(self, function: Callable[..., T], *args: Any) -> T:
        return await writing(self.writer.store, function, *args)

    def __repr__(self) -> str:
        return repr(self.writer).replace("<ArrayWriter", "<AsyncArrayWriter", 1)
