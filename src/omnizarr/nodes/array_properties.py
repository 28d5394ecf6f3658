"""Properties of an array that follow from its metadata alone, without access to the store."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from omnizarr import metadata as public
from omnizarr.codecs import values
from omnizarr.engine import Binding
from omnizarr.errors import MetadataError, OmnizarrError
from omnizarr.indexing import Plan
from omnizarr.model import UNDEFINED, ArrayMetadata, Named, datatypes, dimensions, grids, thawed
from omnizarr.model.grids import Grid
from omnizarr.nodes import bindings, chunking
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.node import NodeProperties

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Bound(NamedTuple):
    """What each read and write needs."""

    binding: Binding
    grid: Grid
    dtype: np.dtype[Any]
    has_fields: bool
    order: Literal["C", "F"]
    read: Callable[[Binding, Plan, NDArray[Any], int | None], None]
    """The engine's function that fills an array as a plan describes."""


class State:
    """The metadata of an array, and what was computed from it; replaced as a whole when the metadata changes."""

    __slots__ = ("bound", "metadata")

    def __init__(self, metadata: ArrayMetadata, bound: Bound | None = None) -> None:
        self.metadata = metadata
        self.bound = bound


class ArrayProperties(NodeProperties):
    """Properties of `Array` and `AsyncArray`."""

    __slots__ = ()

    @property
    @abstractmethod
    def _state(self) -> State:
        """The metadata, and what was computed from it."""

    @property
    @abstractmethod
    def _config(self) -> ArrayConfig:
        """Settings of the open array, which are not stored."""

    @property
    def _metadata(self) -> ArrayMetadata:
        return self._state.metadata

    @property
    def metadata(self) -> public.ArrayMetadata:
        """The metadata, in the terms of Zarr v3 for every format.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.metadata.zarr_format, array.metadata.shape
        (3, (3, 4))
        """
        return public.ArrayMetadata.of(self._metadata)

    @property
    def config(self) -> ArrayConfig:
        """Settings of the open array, which are not stored.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.config.missing
        'fill'
        """
        return self._config

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each dimension.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.shape
        (3, 4)
        """
        return self._metadata.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.ndim
        2
        """
        return len(self._metadata.shape)

    @property
    def size(self) -> int:
        """Number of elements.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.size
        12
        """
        return math.prod(self._metadata.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy data type of the elements in memory. Raises UnknownDataTypeError.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.dtype
        dtype('int64')
        """
        if self._state.bound is not None:
            return self._state.bound.dtype
        try:
            return datatypes.bind(self._metadata.data_type, self._metadata.byte_order).dtype
        except OmnizarrError as error:
            raise error.add(store=str(self._where.store), path=self.path)

    @property
    def itemsize(self) -> int:
        """Number of bytes that an element takes in memory.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.itemsize
        8
        """
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Number of bytes that the elements take in memory. Objects count as references.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.nbytes
        96
        """
        return self.size * self.dtype.itemsize

    @property
    def fill_value(self) -> Any:
        """Value of elements that were never written; None if the metadata leaves it undefined.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.fill_value
        np.int64(0)
        """
        if self._metadata.fill_value is UNDEFINED:
            return None
        try:
            data_type = datatypes.bind(self._metadata.data_type, self._metadata.byte_order)
            return data_type.fill_from_json(thawed(self._metadata.fill_value))
        except OmnizarrError as error:
            raise error.add(store=str(self._where.store), path=self.path)

    @property
    def order(self) -> Literal["C", "F"]:
        """Memory layout of results, "C" or "F". The default is the layout of the stored chunks; see `ArrayConfig`.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.order
        'C'
        """
        order, metadata = self._config.order, self._state.metadata
        is_free = order is None or metadata.dialect != "v3"
        if is_free and chunking.is_fortran(metadata.codecs, len(metadata.shape)):
            return "F"
        return order or "C"

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """Names of the dimensions, or None if they have no names or the names do not fit the shape.

        The names come from Zarr v3's ``dimension_names``, otherwise from xarray's attribute ``_ARRAY_DIMENSIONS``,
        otherwise from NCZarr's references, without the names of groups.

        Examples
        --------
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=[[1, 2]], dimension_names=["y", None])
        >>> array.dimension_names
        ('y', None)
        """
        return dimensions.names_of(self._metadata)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions, as in xarray: one without a name is called ``dim_0``, ``dim_1``, and so on.

        Examples
        --------
        >>> import omnizarr
        >>> omnizarr.create_array({}, data=[[1, 2]], dimension_names=["y", None]).dims
        ('y', 'dim_1')
        """
        return dimensions.numbered(self.dimension_names, len(self._metadata.shape))

    @property
    def sizes(self) -> dict[str, int]:
        """Length of each dimension by its name in `dims`, as in xarray.

        Examples
        --------
        >>> import omnizarr
        >>> omnizarr.create_array({}, data=[[1, 2]], dimension_names=["y", "x"]).sizes
        {'y': 1, 'x': 2}
        """
        return dict(zip(self.dims, self._metadata.shape, strict=True))

    # -- chunks and codecs ---------------------------------------------------------------

    @property
    def _grid(self) -> Grid:
        bound = self._state.bound
        if bound is not None:
            return bound.grid
        try:
            return grids.bind(self._metadata.chunk_grid, self._metadata.shape)
        except OmnizarrError as error:
            raise bindings.in_its_document(
                error.add(store=str(self.store), path=self.path), self._where, self._metadata
            )

    @property
    def _inner_shape(self) -> tuple[int, ...] | None:
        """Shape of inner chunks; None without shards. Raises what reading does if the document states none."""
        metadata = self._metadata
        if not chunking.has_shards(metadata.codecs):
            return None
        found = chunking.possible_inner_shape(metadata.codecs, self.ndim)
        if found is None:
            bindings.bind(self._where, metadata, self.config.policy)
            raise MetadataError(
                "the document states no shape of inner chunks",
                store=str(self.store),
                path=self.path,
                found=thawed(metadata.codecs[0]),
                expected=f"codecs that divide chunks of {self.ndim} dimensions",
            )
        return found

    @property
    def chunks(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        """Shape of a chunk (with shards: of an inner chunk).

        If lengths vary, a tuple of all lengths for each dimension.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.chunks
        (2, 2)
        """
        inner = self._inner_shape
        if inner is not None:
            return inner
        chunk_shape = self._grid.chunk_shape
        return self.write_chunk_sizes if chunk_shape is None else chunk_shape

    @property
    def shards(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...] | None:
        """Shape of a shard; None if the array has no shards.

        Examples
        --------
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, shape=(8,), chunks=(2,), shards=(4,), dtype="int8")
        >>> array.chunks, array.shards
        ((2,), (4,))
        """
        if self._inner_shape is None:
            return None
        chunk_shape = self._grid.chunk_shape
        return self.write_chunk_sizes if chunk_shape is None else chunk_shape

    @property
    def write_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """For each dimension, the lengths of chunks (with shards: of shards), cut at the array's edge.

        Raises MetadataError if there are more than 10,000,000 along a dimension.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.write_chunk_sizes
        ((2, 1), (2, 2))
        """
        return self._sizes((None,) * self.ndim)

    @property
    def read_chunk_sizes(self) -> tuple[tuple[int, ...], ...]:
        """For each dimension, the lengths of chunks (with shards: of inner chunks), cut at the array's edge.

        Raises MetadataError if there are more than 10,000,000 along a dimension.

        Examples
        --------
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, shape=(7,), chunks=(2,), shards=(4,), dtype="int8")
        >>> array.read_chunk_sizes, array.write_chunk_sizes
        (((2, 2, 2, 1),), ((4, 3),))
        """
        return self._sizes(self._inner)

    @property
    def _inner(self) -> tuple[int | None, ...]:
        return self._inner_shape or (None,) * self.ndim

    def _sizes(self, inner: tuple[int | None, ...]) -> tuple[tuple[int, ...], ...]:
        try:
            return tuple(chunking.sizes(axis, length) for axis, length in zip(self._grid.axes, inner, strict=True))
        except MetadataError as error:
            raise error.add(store=str(self.store), path=self.path)

    @property
    def cdata_shape(self) -> tuple[int, ...]:
        """Number of chunks (with shards: of inner chunks) along each dimension.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.cdata_shape
        (2, 2)
        """
        inner = self._inner_shape
        if inner is None:
            return self._grid.grid_shape
        return tuple(-(-length // chunk) for length, chunk in zip(self.shape, inner, strict=True))

    @property
    def nchunks(self) -> int:
        """Number of chunks (with shards: of inner chunks).

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.nchunks
        4
        """
        return math.prod(self.cdata_shape)

    @property
    def filters(self) -> tuple[values.CodecValue, ...]:
        """The array-to-array codecs.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.filters
        ()
        """
        return _values_of(chunking.split(self._metadata.codecs)[0])

    @property
    def serializer(self) -> values.CodecValue | None:
        """The array-to-bytes codec (with shards: of the inner chunks); None if it is unknown.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.serializer
        BytesCodec(endian='little')
        """
        serializer = chunking.split(self._metadata.codecs)[1]
        return None if serializer is None else values.value_of(thawed(serializer))

    @property
    def compressors(self) -> tuple[values.CodecValue, ...]:
        """The bytes-to-bytes codecs.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.compressors
        (ZstdCodec(level=0, checksum=False),)
        """
        return _values_of(chunking.split(self._metadata.codecs)[2])

    @property
    def compressor(self) -> values.CodecValue | None:
        """The last of `compressors`; None if there are none. Zarr v2 has at most one compressor.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.compressor
        ZstdCodec(level=0, checksum=False)
        """
        compressors = self.compressors
        return compressors[-1] if compressors else None


def _values_of(codecs: tuple[Named, ...]) -> tuple[values.CodecValue, ...]:
    return tuple([values.value_of(thawed(codec)) for codec in codecs])
