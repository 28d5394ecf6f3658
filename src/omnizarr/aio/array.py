"""Asynchronous arrays."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast, overload

from numpy.typing import ArrayLike

from omnizarr import engine, indexing
from omnizarr.aio import transfer
from omnizarr.aio.indexers import AsyncIndexed
from omnizarr.aio.nodes import reading, writing
from omnizarr.aio.opening import opened
from omnizarr.aio.writer import AsyncArrayWriter
from omnizarr.api import opening
from omnizarr.engine import budget
from omnizarr.errors import ReadOnlyError
from omnizarr.formats import dialect_named
from omnizarr.nodes.array import Array
from omnizarr.nodes.array_properties import ArrayProperties, State
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.indexers import AnyArray, ArrayIndex, Fields, Index, Planner
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.out import Out
from omnizarr.nodes.reading import pair_of, prepare_many
from omnizarr.nodes.resizing import AppendedShape
from omnizarr.nodes.writing import converted_value
from omnizarr.stores.tasks import run, turn, waited
from omnizarr.support.warned import warn

if TYPE_CHECKING:
    from omnizarr.nodes.info_card import ArrayInfo
    from omnizarr.pictures.picture import Picture

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    method: Callable[Concatenate[Array, P], T],
) -> Callable[Concatenate[AsyncArray, P], Coroutine[Any, Any, T]]:
    """Return a method of `Array` that ends in `_get` or `_set` as a coroutine method of `AsyncArray`."""

    @wraps(method)
    async def awaiting(self: Any, *args: P.args, **options: P.kwargs) -> Any:
        return await cast("Any", method)(self, *args, **options)

    awaiting.__module__, awaiting.__qualname__ = __name__, f"AsyncArray.{method.__name__}"
    return cast("Callable[Concatenate[AsyncArray, P], Coroutine[Any, Any, T]]", awaiting)


class AsyncArray(ArrayProperties, AsyncIndexed):
    """An array in a store, read and written by coroutines.

    You get asynchronous arrays from `omnizarr.aio.open_array`, `omnizarr.aio.create_array` and asynchronous
    groups. They behave like `omnizarr.Array`. Tasks of one event loop or of several can share an array.

    Parameters
    ----------
    array : Array
        The synchronous array.

    Examples
    --------
    >>> import asyncio
    >>> import numpy as np
    >>> from omnizarr import aio
    >>> async def main():
    ...     array = await aio.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
    ...     await array.setitem((0, 0), 100)
    ...     return await array.getitem((slice(0, 2), 0))
    >>> asyncio.run(main())
    array([100,   4])
    """

    __slots__ = ("__weakref__", "array")

    array: Array
    """The synchronous array."""

    def __init__(self, array: Array) -> None:
        self.array = array

    @classmethod
    async def open(cls, store: Any, *, config: ArrayConfig | Mapping[str, Any] | None = None) -> AsyncArray:
        """Return the array at a store, a `StorePath`, a path or a URL. Raises ArrayNotFoundError."""
        place = store.array if isinstance(store, AsyncArray) else store
        return cls(await opened(opening.open_array, place, config=config))

    # -- properties ---------------------------------------------------------------

    @property
    def _where(self) -> StorePath:
        return self.array.store_path

    @property
    def _state(self) -> State:
        return self.array._state  # noqa: SLF001 - its other half

    @property
    def _config(self) -> ArrayConfig:
        return self.array.config

    @property
    def attrs(self) -> dict[str, Any]:
        """A copy of the attributes, as they were when the array was last opened or changed."""
        return self.array.attrs.asdict()

    @property
    def info(self) -> ArrayInfo:
        """A summary of the metadata. Print it to read it."""
        return self.array.info

    async def nchunks_initialized(self) -> int:
        """Return the number of stored chunks. A stored shard counts as all its inner chunks."""
        return await waited(lambda: self.array.nchunks_initialized)

    async def nbytes_stored(self) -> int:
        """Return the number of bytes that the store holds for the array, metadata documents included."""
        return await waited(self.array.nbytes_stored)

    async def info_complete(self) -> ArrayInfo:
        """Return the summary of `info` with the number of stored chunks and of stored bytes."""
        return await waited(self.array.info_complete)

    # -- reading ------------------------------------------------------------------

    async def _bind(self) -> None:
        """Look up everything that reading and writing chunks needs.

        For formats that leave chunk keys open, look in the store.
        """
        array = self.array
        if array._state.bound is None:  # noqa: SLF001 - its other half
            if dialect_named(array._metadata.dialect).other_keys(array._metadata):  # noqa: SLF001
                await waited(array._bind)  # noqa: SLF001
            else:
                array._bind()  # noqa: SLF001

    async def _get(
        self, planner: Planner, selection: Any, out: Out | None, fields: Fields, concurrency: int | None = None
    ) -> Any:
        await self._bind()
        if not (self._state.bound and engine.is_remote(self._state.bound.binding)):
            await turn()  # remote chunks are requested together
        prepared = self.array._prepare(planner, selection, out, fields)  # noqa: SLF001
        concurrency = self.config.concurrency if concurrency is None else concurrency
        await transfer.read(prepared.binding, prepared.plan, prepared.buffer, concurrency)
        return prepared.shown()

    @overload
    async def getitem(self, selection: ArrayIndex, *, prototype: Any = None) -> AnyArray: ...
    @overload
    async def getitem(self, selection: Index, *, prototype: Any = None) -> Any: ...
    async def getitem(self, selection: Any, *, prototype: Any = None) -> Any:
        """Return the selected elements, like ``array[selection]``."""
        fields: Fields = None
        if self.dtype.names is not None:
            fields, selection = indexing.pop_fields(selection)
        return await self._get(indexing.plan, selection, None, fields)

    get_basic_selection = _awaited(Array.get_basic_selection)
    get_orthogonal_selection = _awaited(Array.get_orthogonal_selection)
    get_coordinate_selection = _awaited(Array.get_coordinate_selection)
    get_mask_selection = _awaited(Array.get_mask_selection)
    get_block_selection = _awaited(Array.get_block_selection)

    # -- writing ------------------------------------------------------------------

    async def _set(
        self, planner: Planner, selection: Any, value: Any, fields: Fields, concurrency: int | None = None
    ) -> None:
        array = self.array
        if array.read_only:
            raise ReadOnlyError("the array is read-only", store=str(array.store), path=array.path)
        await self._bind()
        concurrency = self.config.concurrency if concurrency is None else concurrency
        if fields is not None:
            await writing(array.store, array._set, planner, selection, value, fields, concurrency)  # noqa: SLF001
            return
        await turn()
        bound = array._state.bound or array._bind()  # noqa: SLF001
        binding, plan = bound.binding, array._plan(planner, selection, bound.grid)  # noqa: SLF001
        said = array._metadata  # noqa: SLF001
        converted = converted_value(value, binding.spec.dtype, plan.shape, binding, said)
        if converted.size:
            await transfer.write(binding, plan, plan.as_buffer(converted), concurrency)

    async def setitem(self, selection: Index, value: ArrayLike, prototype: Any = None) -> None:
        """Store elements, like ``array[selection] = value``.

        If the task is cancelled, each chunk is either old or new.
        """
        fields: Fields = None
        if self.dtype.names is not None:
            fields, selection = indexing.pop_fields(selection)
        await self._set(indexing.plan, selection, value, fields)

    set_basic_selection = _awaited(Array.set_basic_selection)
    set_orthogonal_selection = _awaited(Array.set_orthogonal_selection)
    set_coordinate_selection = _awaited(Array.set_coordinate_selection)
    set_mask_selection = _awaited(Array.set_mask_selection)
    set_block_selection = _awaited(Array.set_block_selection)

    async def resize(self, *shape: int | tuple[int, ...]) -> None:
        """Change the shape. See `omnizarr.Array.resize`."""
        await writing(self.array.store, self.array.resize, *shape)

    async def append(self, data: ArrayLike, axis: int = 0) -> AppendedShape:
        """Add elements at the end of a dimension, and return the new shape. See `omnizarr.Array.append`."""
        return await writing(self.array.store, self.array.append, data, axis)

    @asynccontextmanager
    async def writer(self, memory: int | str | None = None) -> AsyncIterator[AsyncArrayWriter]:
        """Return a writer, which gathers small writes in memory and stores each chunk (with shards: shard) once.

        The end of the block stores what waits, also after an exception. What waits exists in memory only. See
        `omnizarr.Array.writer`. If the task was cancelled and storing fails, too, the task ends as cancelled:
        ``CancelledError`` has the error as its cause, and a warning says it. What waits is stored when the program
        ends.

        Parameters
        ----------
        memory : int or str, optional
            Bytes that may wait, such as ``"500MB"``. The default is 256 MiB, or two chunks if these are larger.

        Returns
        -------
        async context manager of AsyncArrayWriter

        Raises
        ------
        ReadOnlyError
        ValueError
            If `memory` is smaller than a chunk.

        Examples
        --------
        >>> import asyncio
        >>> from omnizarr import aio
        >>> async def main():
        ...     array = await aio.create_array({}, shape=(100, 4), shards=(50, 4), chunks=(10, 4), dtype="int16")
        ...     async with array.writer() as rows:
        ...         for number in range(100):
        ...             await rows.setitem(number, number)
        ...     return rows.stats.chunks_stored, int(await array.getitem((99, 0)))
        >>> asyncio.run(main())
        (2, 99)
        """
        await self._bind()
        writer = AsyncArrayWriter(self.array.writer(memory))
        try:
            yield writer
        except CancelledError as cancelled:
            try:
                await writer.close()
            except Exception as error:
                # What cancels tasks, such as a timeout or a TaskGroup, has to see that this one has ended so.
                cancelled.add_note(f"what waited in a writer could not be stored: {error}")
                warn(f"the task was cancelled, and what waited in its writer could not be stored: {error}")
                raise cancelled from error
            raise
        except BaseException:
            await writer.close()
            raise
        await writer.close()

    # -- metadata ------------------------------------------------------------------

    async def update_attributes(self, new_attributes: Mapping[str, Any]) -> AsyncArray:
        """Set several attributes in one atomic change, and return the array."""
        await writing(self.array.store, self.array.update_attributes, new_attributes)
        return self

    async def refresh(self) -> None:
        """Read the metadata again, in case another program resized the array or changed its attributes."""
        since = None
        while since is not self.array._state:  # noqa: SLF001 - until nothing else has changed it meanwhile
            since = self.array._state  # noqa: SLF001
            metadata = await reading(self.array.store, self.array._stored)  # noqa: SLF001
        self.array._adopt(metadata)  # noqa: SLF001

    def with_config(self, config: ArrayConfig | Mapping[str, Any]) -> AsyncArray:
        """Return the same array with other settings."""
        return AsyncArray(self.array.with_config(config))

    async def show(
        self,
        selection: Any = (),
        *,
        colormap: str = "viridis",
        limits: tuple[float, float] | None = None,
        percentiles: tuple[float, float] = (2, 98),
        rgb: bool | None = None,
        size: tuple[int, int] = (520, 400),
    ) -> Picture:
        """Return a picture of elements, as `Array.show` does."""
        call = partial(self.array.show, selection, colormap=colormap, limits=limits, percentiles=percentiles)
        return await waited(partial(call, rgb=rgb, size=size))

    # -- Python protocols ----------------------------------------------------------------

    def __repr__(self) -> str:
        return repr(self.array).replace("<Array", "<AsyncArray", 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncArray) and self.array == other.array

    def __hash__(self) -> int:
        return hash((AsyncArray, self.array))


async def read_many(
    requests: Iterable[tuple[AsyncArray | Array, Index]],
    *,
    out: Sequence[Out | None] | None = None,
    concurrency: int | None = None,
) -> list[Any]:
    """Read several selections concurrently, and return a list of results. See `omnizarr.read_many`.

    Parameters
    ----------
    requests : iterable of (AsyncArray or Array, selection)
        Each selection is what you would write in ``array[...]``.
    out : sequence of array or None, optional
        For each selection, an array of the selection's shape to fill and return, or None. See
        `omnizarr.Array.get_basic_selection`.
    concurrency : int, optional
        Number of chunks of each selection to process at once. The store limits the number of requests.
    """
    wanted = [
        (array if isinstance(array, AsyncArray) else AsyncArray(array), selection)
        for array, selection in map(pair_of, requests)
    ]
    await run(lambda array: array._bind(), {id(array): array for array, _ in wanted}.values(), budget.MOST_REQUESTS)  # noqa: SLF001
    jobs = prepare_many([(array.array, selection) for array, selection in wanted], out)
    groups = transfer.groups(jobs)
    await run(lambda group: transfer.fill(group, concurrency), groups, budget.MOST_REQUESTS)
    return [job.shown() for job in jobs]
