"""Arrays to be awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from omnizarr import indexing
from omnizarr import metadata as public
from omnizarr.aio import transfer
from omnizarr.aio.nodes import array_on, reading, writing
from omnizarr.aio.opening import opened
from omnizarr.api import opening
from omnizarr.engine import budget
from omnizarr.errors import ReadOnlyError
from omnizarr.formats import dialect_named
from omnizarr.indexing import Plan
from omnizarr.model.grids import Grid
from omnizarr.nodes import detection
from omnizarr.nodes.array import AppendedShape, Array
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.indexers import AnyArray, Fields, points
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.reading import prepare_many
from omnizarr.nodes.writing import converted_value
from omnizarr.stores import Store
from omnizarr.stores.tasks import run, waited

_Planner = Callable[[Any, Grid], Plan]


class AsyncArray:
    """An array in a store, read and written by coroutines.

    Made by `omnizarr.aio.open_array`, `omnizarr.aio.create_array` and asynchronous groups. It says and does what
    `omnizarr.Array` does; it may be used by many tasks at once, of one event loop or of several.

    Parameters
    ----------
    array : Array
        The same array for those who do not await.

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
    """The same array for those who do not await."""

    def __init__(self, array: Array) -> None:
        self.array = array

    @classmethod
    async def open(cls, store: Any, *, config: ArrayConfig | Mapping[str, Any] | None = None) -> AsyncArray:
        """Return the array at a store, a `StorePath`, a path or a URL. Raises ArrayNotFoundError."""
        place = store.array if isinstance(store, AsyncArray) else store
        return cls(await opened(opening.open_array, place, config=config))

    # -- what it is ---------------------------------------------------------------

    @property
    def metadata(self) -> public.ArrayMetadata:
        """What its documents say, in the words of Zarr v3."""
        return self.array.metadata

    @property
    def config(self) -> ArrayConfig:
        """How it behaves while it is open."""
        return self.array.config

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.array.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.array.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy data type of the elements in memory."""
        return self.array.dtype

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take in memory."""
        return self.array.nbytes

    @property
    def fill_value(self) -> Any:
        """Value of elements that were never written; None if the document leaves it undefined."""
        return self.array.fill_value

    @property
    def order(self) -> Literal["C", "F"]:
        """Memory layout of results."""
        return self.array.order

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Names of the dimensions, if they have any."""
        return self.array.dimension_names

    @property
    def chunks(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        """Shape of a chunk (with shards: of an inner chunk)."""
        return self.array.chunks

    @property
    def shards(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...] | None:
        """Shape of a shard; None if chunks are stored one by one."""
        return self.array.shards

    @property
    def write_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Lengths of what is stored under one key (chunks, or shards), per dimension, cut at the array's edge."""
        return self.array.write_chunk_sizes

    @property
    def read_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Lengths of what can be read by itself (chunks, or inner chunks), per dimension, cut at the array's edge."""
        return self.array.read_chunk_sizes

    @property
    def cdata_shape(self) -> tuple[int, ...]:
        """Number of chunks along each dimension."""
        return self.array.cdata_shape

    @property
    def nchunks(self) -> int:
        """Number of chunks."""
        return self.array.nchunks

    @property
    def filters(self) -> tuple[Any, ...]:
        """Array to array codecs."""
        return self.array.filters

    @property
    def serializer(self) -> Any:
        """The array to bytes codec."""
        return self.array.serializer

    @property
    def compressors(self) -> tuple[Any, ...]:
        """Bytes to bytes codecs."""
        return self.array.compressors

    @property
    def compressor(self) -> Any:
        """The last of `compressors`; None if there is none."""
        return self.array.compressor

    @property
    def attrs(self) -> dict[str, Any]:
        """A copy of its attributes, as they were when it was last opened or changed."""
        return self.array.attrs.asdict()

    @property
    def info(self) -> Any:
        """What it is, as a card to be printed."""
        return self.array.info

    @property
    def store_path(self) -> StorePath:
        """Where it is: store and path."""
        return self.array.store_path

    @property
    def store(self) -> Store:
        """The store it is in."""
        return self.array.store

    @property
    def path(self) -> str:
        """Path within the store, without a leading slash."""
        return self.array.path

    @property
    def name(self) -> str:
        """Path with a leading slash."""
        return self.array.name

    @property
    def basename(self) -> str:
        """Last part of the path."""
        return self.array.basename

    @property
    def read_only(self) -> bool:
        """Whether it refuses to be written."""
        return self.array.read_only

    @property
    def zarr_format(self) -> int | str:
        """The format it is stored in."""
        return self.array.zarr_format

    async def nchunks_initialized(self) -> int:
        """Return the number of chunks that are stored; with shards, a stored shard counts as all its chunks."""
        return await waited(lambda: self.array.nchunks_initialized)

    async def nbytes_stored(self) -> int:
        """Return the bytes that the store holds for the array, documents included."""
        return await waited(self.array.nbytes_stored)

    async def info_complete(self) -> Any:
        """Return the card with what must be counted: chunks that are stored, and their bytes."""
        return await waited(self.array.info_complete)

    # -- reading ------------------------------------------------------------------

    async def _bind(self) -> None:
        """Look up, once, all that moving chunks needs; of formats that leave keys open, in the store."""
        array = self.array
        if array._state.bound is None:  # noqa: SLF001 - its other half
            if dialect_named(array._metadata.dialect).other_keys(array._metadata):  # noqa: SLF001
                await waited(array._bind)  # noqa: SLF001
            else:
                array._bind()  # noqa: SLF001

    async def _get(
        self, planner: _Planner, selection: Any, out: AnyArray | None, fields: Fields, concurrency: int | None = None
    ) -> Any:
        await self._bind()
        prepared = self.array._prepare(planner, selection, out, fields)  # noqa: SLF001
        concurrency = self.config.concurrency if concurrency is None else concurrency
        await transfer.read(prepared.binding, prepared.plan, prepared.buffer, concurrency)
        return prepared.result()

    async def getitem(self, selection: Any, *, prototype: Any = None) -> Any:
        """Return the selected elements as ``array[selection]`` does."""
        fields: Fields = None
        if self.dtype.names is not None:
            fields, selection = indexing.pop_fields(selection)
        return await self._get(indexing.plan, selection, None, fields)

    async def get_basic_selection(
        self,
        selection: Any = Ellipsis,
        *,
        out: AnyArray | None = None,
        prototype: Any = None,
        fields: Fields = None,
        concurrency: int | None = None,
    ) -> Any:
        """Return what integers and slices select; see `omnizarr.Array.get_basic_selection`."""
        return await self._get(indexing.basic, selection, out, fields, concurrency)

    async def get_orthogonal_selection(
        self,
        selection: Any,
        *,
        out: AnyArray | None = None,
        prototype: Any = None,
        fields: Fields = None,
        concurrency: int | None = None,
    ) -> Any:
        """Return what one selector per dimension selects, each independently."""
        return await self._get(indexing.orthogonal, selection, out, fields, concurrency)

    async def get_coordinate_selection(
        self,
        selection: Any,
        *,
        out: AnyArray | None = None,
        prototype: Any = None,
        fields: Fields = None,
        concurrency: int | None = None,
    ) -> Any:
        """Return the elements at coordinates, one array per dimension."""
        return await self._get(indexing.coordinate, selection, out, fields, concurrency)

    async def get_mask_selection(
        self,
        mask: Any,
        *,
        out: AnyArray | None = None,
        prototype: Any = None,
        fields: Fields = None,
        concurrency: int | None = None,
    ) -> Any:
        """Return the elements where a mask of the array's shape is true."""
        return await self._get(indexing.mask, mask, out, fields, concurrency)

    async def get_block_selection(
        self,
        selection: Any,
        *,
        out: AnyArray | None = None,
        prototype: Any = None,
        fields: Fields = None,
        concurrency: int | None = None,
    ) -> Any:
        """Return whole chunks, selected by their coordinates."""
        return await self._get(indexing.block, selection, out, fields, concurrency)

    @property
    def oindex(self) -> AsyncIndexer:
        """Orthogonal selections: ``await array.oindex.getitem(([0, 2], slice(None), mask))``."""
        return AsyncIndexer(self, indexing.orthogonal)

    @property
    def vindex(self) -> AsyncIndexer:
        """Selections of single elements: ``await array.vindex.getitem(([0, 2], [1, 1]))``, or by a mask."""
        return AsyncIndexer(self, points)

    @property
    def blocks(self) -> AsyncIndexer:
        """Selections of whole chunks: ``await array.blocks.getitem((0, slice(1, None)))``."""
        return AsyncIndexer(self, indexing.block)

    # -- writing ------------------------------------------------------------------

    async def _set(
        self, planner: _Planner, selection: Any, value: Any, fields: Fields, concurrency: int | None = None
    ) -> None:
        array = self.array
        if array.read_only:
            raise ReadOnlyError("the array is read-only", store=str(array.store), path=array.path)
        await self._bind()
        concurrency = self.config.concurrency if concurrency is None else concurrency
        if fields is not None:
            await writing(array.store, array._set, planner, selection, value, fields, concurrency)  # noqa: SLF001
            return
        bound = array._state.bound or array._bind()  # noqa: SLF001
        binding, plan = bound.binding, array._plan(planner, selection, bound.grid)  # noqa: SLF001
        converted = converted_value(value, binding.spec.dtype, plan.shape, binding)
        if converted.size:
            await transfer.write(binding, plan, plan.as_buffer(converted), concurrency)

    async def setitem(self, selection: Any, value: ArrayLike, prototype: Any = None) -> None:
        """Store elements as ``array[selection] = value`` does. Cancelled, each chunk is as before or as after."""
        fields: Fields = None
        if self.dtype.names is not None:
            fields, selection = indexing.pop_fields(selection)
        await self._set(indexing.plan, selection, value, fields)

    async def set_basic_selection(
        self, selection: Any, value: ArrayLike, *, fields: Fields = None, concurrency: int | None = None
    ) -> None:
        """Store elements that integers and slices select."""
        await self._set(indexing.basic, selection, value, fields, concurrency)

    async def set_orthogonal_selection(
        self, selection: Any, value: ArrayLike, *, fields: Fields = None, concurrency: int | None = None
    ) -> None:
        """Store elements that one selector per dimension selects."""
        await self._set(indexing.orthogonal, selection, value, fields, concurrency)

    async def set_coordinate_selection(
        self, selection: Any, value: ArrayLike, *, fields: Fields = None, concurrency: int | None = None
    ) -> None:
        """Store elements at coordinates."""
        await self._set(indexing.coordinate, selection, value, fields, concurrency)

    async def set_mask_selection(
        self, mask: Any, value: ArrayLike, *, fields: Fields = None, concurrency: int | None = None
    ) -> None:
        """Store elements where a mask is true."""
        await self._set(indexing.mask, mask, value, fields, concurrency)

    async def set_block_selection(
        self, selection: Any, value: ArrayLike, *, fields: Fields = None, concurrency: int | None = None
    ) -> None:
        """Store whole chunks."""
        await self._set(indexing.block, selection, value, fields, concurrency)

    async def resize(self, *shape: int | tuple[int, ...]) -> None:
        """Change the shape; see `omnizarr.Array.resize`."""
        await writing(self.array.store, self.array.resize, *shape)

    async def append(self, data: ArrayLike, axis: int = 0) -> AppendedShape:
        """Add elements at the end of a dimension, and return the new shape; see `omnizarr.Array.append`."""
        return await writing(self.array.store, self.array.append, data, axis)

    # -- metadata ------------------------------------------------------------------

    async def update_attributes(self, new_attributes: Mapping[str, Any]) -> AsyncArray:
        """Set several attributes in one atomic change; return the array."""
        await writing(self.array.store, self.array.update_attributes, new_attributes)
        return self

    async def refresh(self) -> None:
        """Read the documents again: others may have resized the array or changed its attributes."""
        where, dialect = self.array.store_path, self.array._metadata.dialect  # noqa: SLF001

        def found(store: Store) -> Any:
            return detection.open_array(array_on(self.array, store).store_path, dialect).metadata

        self.array._adopt(await reading(where.store, found), is_ours=False)  # noqa: SLF001

    def with_config(self, config: ArrayConfig | Mapping[str, Any]) -> AsyncArray:
        """Return the same array, behaving otherwise."""
        return AsyncArray(self.array.with_config(config))

    # -- Python's ways -------------------------------------------------------------------

    def __repr__(self) -> str:
        return repr(self.array).replace("<Array", "<AsyncArray", 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AsyncArray) and self.array == other.array

    def __hash__(self) -> int:
        return hash((AsyncArray, self.array))


class AsyncIndexer:
    """A way of selecting: ``await array.oindex.getitem(...)``."""

    __slots__ = ("_array", "_planner")

    def __init__(self, array: AsyncArray, planner: _Planner) -> None:
        self._array = array
        self._planner = planner

    async def getitem(self, selection: Any) -> Any:
        """Return the selected elements."""
        fields, selection = indexing.pop_fields(selection)
        return await self._array._get(self._planner, selection, None, fields)  # noqa: SLF001 - a part of AsyncArray

    async def setitem(self, selection: Any, value: ArrayLike) -> None:
        """Store elements."""
        fields, selection = indexing.pop_fields(selection)
        await self._array._set(self._planner, selection, value, fields)  # noqa: SLF001 - a part of AsyncArray


async def read_many(
    requests: Iterable[tuple[AsyncArray | Array, Any]],
    *,
    out: Sequence[NDArray[Any] | None] | None = None,
    concurrency: int | None = None,
) -> list[Any]:
    """Return several selections, read side by side; see `omnizarr.read_many`.

    Parameters
    ----------
    requests : iterable of (AsyncArray or Array, selection)
        Selections as they stand in ``array[...]``.
    out : sequence of numpy.ndarray or None, optional
        For each selection an array to be filled and returned, of the selection's shape, or None.
    concurrency : int, optional
        Chunks of each selection under way at a time. How many requests there are at a time says the store.
    """
    wanted = [
        (array if isinstance(array, AsyncArray) else AsyncArray(array), selection) for array, selection in requests
    ]
    await run(lambda array: array._bind(), {id(array): array for array, _ in wanted}.values(), budget.MOST_REQUESTS)  # noqa: SLF001
    jobs = prepare_many([(array.array, selection) for array, selection in wanted], out)
    read = partial(transfer.read, concurrency=concurrency)
    await run(lambda job: read(job.binding, job.plan, job.buffer), jobs, budget.MOST_REQUESTS)
    return [job.result() for job in jobs]
