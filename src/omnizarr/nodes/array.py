"""Arrays in a store, read and written like NumPy arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from omnizarr import engine, indexing
from omnizarr import metadata as public
from omnizarr.engine import Binding, Conversion
from omnizarr.errors import (
    OmnizarrError,
    ReadOnlyError,
    SelectionError,
    ShapeError,
)
from omnizarr.indexing import Plan
from omnizarr.indexing.slices import checked_index
from omnizarr.model import JSON, ArrayMetadata
from omnizarr.model.datatypes.optional import is_optional
from omnizarr.model.grids import Grid
from omnizarr.nodes import bindings, chunking, detection
from omnizarr.nodes.array_properties import ArrayProperties, Bound, State
from omnizarr.nodes.attributes import Attrs, to_json
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.gone import Gone
from omnizarr.nodes.indexers import AnyArray, ArrayIndex, AsType, Fields, Index, fields_dtype
from omnizarr.nodes.late import (
    contents,
    habits,
    hierarchy,
    holdings,
    info,
    info_card,
    info_html,
    nczarr_objects,
    resizing,
    showing,
    writer,
)
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.node import Node
from omnizarr.nodes.out import Out
from omnizarr.nodes.reading import Prepared, prepare, too_large
from omnizarr.nodes.selecting import Selecting
from omnizarr.nodes.writing import converted_value, write_values
from omnizarr.stores import threads, verbs
from omnizarr.stores.resolve import resolve_root
from omnizarr.support.lazy import Lazy
from omnizarr.support.text import visible

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from omnizarr.nodes.lazy import view
    from omnizarr.nodes.lazy.view import LazySelection
    from omnizarr.nodes.resizing import AppendedShape
    from omnizarr.pictures.picture import Picture
else:
    view = Lazy("omnizarr.nodes.lazy.view")


class Array(Node, ArrayProperties, Selecting):
    """An array in a store, read and written by selections.

    You get arrays from `omnizarr.open_array`, `omnizarr.create_array` and groups. Threads can share an array.
    You can pickle it and send it to another process.

    An array with an unknown codec or data type can be opened, and shows its metadata and attributes. Reading or
    writing its elements raises an error.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
    >>> array[1:, ::-2]
    array([[ 7,  5],
           [11,  9]])
    >>> array[0, 0] = 100
    >>> array
    <Array / (3, 4) int64 memory>
    """

    __slots__ = ("_config", "_snapshot", "_state")

    _state: State
    _config: ArrayConfig

    def __init__(
        self,
        store_path: StorePath,
        metadata: ArrayMetadata,
        config: ArrayConfig | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        self._where = store_path
        self._state = State(public.as_model(metadata))
        self._config = config or ArrayConfig.of()
        self._snapshot = snapshot

    @classmethod
    def open(cls, store: Any, *, config: ArrayConfig | Mapping[str, Any] | None = None) -> Array:
        """Return the array at a store, a `StorePath`, a path or a URL. Raises ArrayNotFoundError.

        Examples
        --------
        >>> import omnizarr
        >>> values = {}
        >>> _ = omnizarr.create_array(values, data=[1, 2])
        >>> omnizarr.Array.open(values)
        <Array / (2,) int64 memory>
        """
        where = store if isinstance(store, StorePath) else StorePath(*resolve_root(store))
        found = detection.open_array(where)
        return cls(found.where, found.metadata, ArrayConfig.of(config))

    @classmethod
    def from_dict(cls, store_path: StorePath, data: Mapping[str, JSON]) -> Array:
        """Return the array that a document (``zarr.json`` or ``.zarray``) describes. The document need not be stored.

        Raises MetadataError.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> omnizarr.Array.from_dict(array.store_path, array.metadata.to_dict()) == array
        True
        """
        try:
            return cls(store_path, public.ArrayMetadata.from_dict(data))
        except OmnizarrError as error:
            raise error.add(store=str(store_path.store), path=store_path.path)

    # -- properties ----------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of elements along each dimension. Assigning to it resizes the array.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.shape
        (3, 4)
        """
        return self._state.metadata.shape

    @shape.setter
    def shape(self, shape: int | tuple[int, ...]) -> None:
        self.resize(shape)

    @property
    def nchunks_initialized(self) -> int:
        """Number of stored chunks. A stored shard counts as all its inner chunks.

        Examples
        --------
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, shape=(6,), chunks=(2,), dtype="int8")
        >>> array[:3] = 1
        >>> array.nchunks_initialized, array.nchunks
        (2, 3)
        """
        inner = self._inner_shape
        grid = self._grid
        count = 0
        for coords in holdings.coords(self._where, self._metadata):
            lengths = (part.stop - part.start for part in grid.slices_of(coords))
            count += 1 if inner is None else math.prod(-(-n // size) for n, size in zip(lengths, inner, strict=True))
        return count

    def nbytes_stored(self) -> int:
        """Return the number of bytes that the store holds for the array, metadata documents included.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.nbytes_stored() > 0
        True
        """
        return holdings.nbytes(self._where)

    @property
    def info(self) -> info_card.ArrayInfo:
        """A summary of the metadata. Print it to read it.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> print(array.info)
        Type        : Array
        ...
        Shape       : (3, 4)
        ...
        """
        return info_card.of_array(self)

    def info_complete(self) -> info_card.ArrayInfo:
        """Return the summary of `info` with the number of stored chunks and of stored bytes.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.info_complete().chunks_stored
        4
        """
        return info_card.of_array(self, complete=True)

    @property
    def engine(self) -> str:
        """The engine of the array: "native", or "reference" if the native engine is not built or lacks a codec.

        Raises UnknownExtensionError if neither engine supports the array.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.engine in {"native", "reference"}
        True
        """
        return (self._state.bound or self._bind()).binding.name

    # -- reading -------------------------------------------------------------------

    def _bind(self) -> Bound:
        """Look up everything that reading and writing chunks needs. Later calls return the same object."""
        state = self._state
        metadata = state.metadata
        config = self._config
        binding = bindings.bind(self._where, metadata, config.policy, config.chunk_cache)
        if isinstance(self._snapshot, Snapshot):
            binding.if_nothing = Gone(self._where, metadata)
        dtype = binding.chain.spec.data_type.scalars.dtype
        read = engine.reader(binding)
        state.bound = bound = Bound(binding, binding.grid, dtype, dtype.names is not None, self.order, read)
        return bound

    @overload
    def __getitem__(self, selection: ArrayIndex) -> AnyArray: ...
    @overload
    def __getitem__(self, selection: Index) -> Any: ...
    def __getitem__(self, selection: Any) -> Any:
        """Return the selected elements as a NumPy array or scalar.

        Selections work as in NumPy: integers, slices with any step, Ellipsis, newaxis, masks, lists and integer
        arrays, in any combination. One exception follows zarr-python: the axis of a single one-dimensional list
        or mask keeps its place, even if the selection also has integers. Names select fields.

        Raises
        ------
        SelectionError
            If the selection is not valid for the array.
        ChunkError
            If a stored chunk is broken.
        ChunkNotFoundError
            If a chunk is missing and the array was opened with ``missing="error"``.
        """
        # This path is short on purpose: in a small read, every function call takes a measurable part of the time.
        binding, grid, dtype, has_fields, order, read = self._state.bound or self._bind()
        if has_fields:
            fields, selection = indexing.pop_fields(selection)
            if fields is not None or is_optional(dtype):
                return self._get(indexing.plan, selection, None, fields)
        try:
            plan = indexing.plan(selection, grid)
        except SelectionError as error:
            raise error.add(store=str(self._where.store), path=self.path)
        try:
            out = np.empty(plan.buffer_shape, dtype, order)
        except (MemoryError, ValueError) as error:  # ValueError: more than any array can have
            raise too_large(binding, plan) from error
        read(binding, plan, out, self._config.concurrency)
        if plan.shape != plan.buffer_shape or plan.turned is not None:
            out = plan.as_result(out)
        return out if plan.shape else out[()]

    def _get(
        self,
        planner: Callable[[Any, Grid], Plan],
        selection: Any,
        out: Out | None,
        fields: Fields,
        concurrency: int | None = None,
    ) -> Any:
        return self._read(self._prepare(planner, selection, out, fields), concurrency)

    def _replaces_text(self, *, looks: bool = True) -> bool:
        """Return whether elements have U+FFFD in place of bytes that are not UTF-8; see `verbs.replaces_text`."""
        return verbs.replaces_text(self._where.store, self._where.prefix, looks)

    def _read(self, prepared: Prepared, concurrency: int | None = None) -> Any:
        concurrency = self._config.concurrency if concurrency is None else concurrency
        engine.read(prepared.binding, prepared.plan, prepared.buffer, concurrency)
        return prepared.shown()

    def _prepare(
        self,
        planner: Callable[[Any, Grid], Plan],
        selection: Any,
        out: Out | None,
        fields: Fields,
        conversion: Conversion | None = None,
    ) -> Prepared:
        bound = self._state.bound or self._bind()
        plan = self._plan(planner, selection, bound.grid)
        return prepare(bound.binding, plan, bound.order, out, fields, conversion)

    def _plan(self, planner: Callable[[Any, Grid], Plan], selection: Any, grid: Grid) -> Plan:
        try:
            return planner(selection, grid)
        except SelectionError as error:
            raise error.add(store=str(self._where.store), path=self.path)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:  # noqa: FBT001 - NumPy's
        if copy is False:
            raise ValueError("the elements must be copied out of the store, so `copy=False` is not possible")
        result = np.asarray(self[...] if not is_optional(self.dtype) else self.get_basic_selection(out=self._records()))
        return result if dtype is None else result.astype(dtype, copy=False)

    def to_numpy(self) -> AnyArray:
        """Return all elements as a NumPy array, as ``array[...]`` does.

        Examples
        --------
        >>> import omnizarr
        >>> omnizarr.create_array({}, data=[1, 2, 3]).to_numpy()
        array([1, 2, 3])
        """
        return np.asanyarray(self[...])

    def _records(self) -> AnyArray:
        """Return memory for all elements in the form that holds those that may be missing."""
        return np.empty(self.shape, self.dtype)

    def tolist(self) -> Any:
        """Return all elements as nested lists of Python's numbers; of an array without dimensions, the element.

        Examples
        --------
        >>> import omnizarr
        >>> omnizarr.create_array({}, data=[[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return self.to_numpy().tolist()

    def item(self, *index: int | tuple[int, ...]) -> Any:
        """Return one element as Python's number, as NumPy does. Only its chunk is read.

        Parameters
        ----------
        *index : int or tuple of int
            The place of the element: an index for each dimension, or one that counts elements in the order of C.
            Without it, the array must have one element.

        Raises
        ------
        ValueError
            If there is no index and the array has more elements, or if there is another number of indices.
        BoundsCheckError
            If it is outside the array.

        Examples
        --------
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=[[1, 2], [3, 4]])
        >>> array.item(2), array.item(0, -1)
        (3, 2)
        """
        given: Any = index[0] if len(index) == 1 and isinstance(index[0], tuple) else index
        if not given:
            return self._only(ValueError).item()
        place = [operator.index(each) for each in given]
        if len(place) == 1 and self.ndim != 1:
            rest = checked_index(place[0], self.size, 0)
            place = []
            for length in reversed(self.shape):
                rest, within = divmod(rest, length)
                place.insert(0, within)
        if len(place) != self.ndim:
            raise SelectionError(f"{len(place)} indices for {self.ndim} dimensions", found=tuple(place))
        found = [checked_index(each, *axis) for *axis, each in zip(self.shape, range(self.ndim), place, strict=True)]
        return np.asanyarray(self[tuple(slice(each, each + 1) for each in found)]).reshape(1).tolist()[0]

    @property
    def T(self) -> view.LazyArray:  # noqa: N802 - NumPy's name
        """The array with its dimensions reversed, as an `omnizarr.LazyArray`, which is read later.

        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=[[0, 1, 2], [3, 4, 5]])
        >>> array.T[0]
        array([0, 3])
        """
        return view.as_lazy(self).T

    @property
    def lazy(self) -> LazySelection:
        """Selections that are read later: ``array.lazy[::2]`` is an `omnizarr.LazyArray`, and reads nothing.

        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(10))
        >>> odd = array.lazy[1::2]
        >>> odd[::-1]
        array([9, 7, 5, 3, 1])
        """
        return view.as_lazy(self).lazy

    def astype(self, dtype: DTypeLike) -> AsType:
        """Return a view that converts the elements to another data type when you read them.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.astype("float32")[0]
        array([0., 1., 2., 3.], dtype=float32)
        """
        return AsType(self, np.dtype(dtype))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """Iterate along the first dimension, reading each chunk once."""
        if not self.shape:
            raise TypeError("iteration over an array without dimensions")
        return self._rows()

    def _rows(self, first: int = 0, end: int | None = None) -> Iterator[Any]:
        start = 0
        for length in chunking.each_size(self._grid.axes[0], self._inner[0]):
            if end is not None and start >= end:
                return
            if start + length > first:
                yield from self[max(first, start) : start + length if end is None else min(end, start + length)]
            start += length

    def _only(self, error: type[Exception] = TypeError) -> AnyArray:
        """Return the only element as a NumPy array, which converts it.

        An array with more elements raises an error and is not read.
        """
        if self.size != 1:
            raise error(f"only an array of one element has such a value; this one has {self.size}")
        return np.asanyarray(self[...])

    def __bool__(self) -> bool:
        return bool(self._only(ValueError))

    def __int__(self) -> int:
        return int(self._only())

    def __float__(self) -> float:
        return float(self._only())

    def __complex__(self) -> complex:
        return complex(self._only())

    def __index__(self) -> int:
        return operator.index(self._only())

    # -- writing -------------------------------------------------------------------

    def __setitem__(self, selection: Index, value: ArrayLike) -> None:
        """Store elements. Selections work as for reading, and `value` is broadcast as in NumPy.

        An error about the selection, shape or data type is raised before anything is written.

        Raises
        ------
        ReadOnlyError
        SelectionError
        ShapeError
            If `value` cannot be broadcast to the selection.
        ValueTypeError
            If `value` cannot be converted to the array's data type; or if it has masked elements, and neither the data
            type nor an attribute such as ``_FillValue`` says what is missing.
        """
        fields: Fields = None
        if (self._state.bound or self._bind()).has_fields:
            fields, selection = indexing.pop_fields(selection)
        self._set(indexing.plan, selection, value, fields)

    def _set(
        self,
        planner: Callable[[Any, Grid], Plan],
        selection: Any,
        value: Any,
        fields: Fields,
        concurrency: int | None = None,
    ) -> None:
        if self.read_only:
            raise ReadOnlyError("the array is read-only", store=str(self._where.store), path=self.path)
        binding, grid, *_ = self._state.bound or self._bind()
        plan = self._plan(planner, selection, grid)
        concurrency = self._config.concurrency if concurrency is None else concurrency
        if fields is not None:
            self._set_fields(binding, plan, value, fields, concurrency)
            return
        write_values(binding, plan, value, concurrency, self._metadata)

    def _set_fields(self, binding: Binding, plan: Plan, value: Any, fields: Fields, concurrency: int | None) -> None:
        """Change some fields of elements. Other writers may change other fields of the same elements meanwhile."""
        if binding.spec.data_type.is_optional:
            raise SelectionError(
                "the mask and the values of elements that may be missing change together",
                found=fields,
                remedy="assign a masked array",
                store=str(self._where.store),
                path=self.path,
            )
        dtype = fields_dtype(binding.spec.dtype, fields)
        # A field that is an array itself adds dimensions.
        converted = converted_value(value, dtype.base, plan.shape + dtype.shape, binding)
        names = [fields] if isinstance(fields, str) else list(fields or ())
        engine.write_fields(binding, plan, names, plan.as_buffer(converted), len(plan.buffer_shape), concurrency)

    def resize(self, *shape: int | tuple[int, ...], axis: int | None = None) -> None:
        """Change the shape. Elements keep their coordinates.

        New elements have the fill value. Elements that are cut off are lost, even if the array grows again: chunks
        outside the new shape are deleted, and parts of chunks outside it are set to the fill value. Consolidated
        metadata of groups above is updated, however the array was opened.

        Parameters
        ----------
        *shape : int or tuple of int
            One length per dimension; with `axis`, the length of that dimension.
        axis : int, optional
            The only dimension to change.

        Raises
        ------
        ShapeError
            If the number of lengths is not that of the dimensions, or there is no such dimension.
        NotRepresentableError
            If the array is a variable of NCZarr, whose dimensions `omnizarr.netcdf` makes longer.

        Examples
        --------
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, shape=(4, 6), dtype="int16")
        >>> array.resize(8, 6)
        >>> array.resize(10, axis=0)
        >>> array.shape
        (10, 6)
        """
        lengths: Any = shape[0] if len(shape) == 1 else shape
        if axis is not None:
            if not -self.ndim <= axis < self.ndim or not hasattr(lengths, "__index__"):
                raise ShapeError(
                    "not a length of one dimension",
                    found=f"{lengths} for axis {axis}",
                    expected=f"an integer, and an axis from {-self.ndim} to {self.ndim - 1}",
                    store=str(self.store),
                    path=self.path,
                )
            lengths = [*self.shape[: axis % self.ndim], lengths, *self.shape[axis % self.ndim + 1 :]]
        self._check_lengths_are_free()
        resizing.resize(self._where, lengths, self._config.policy, self._metadata.dialect, self._adopt)

    def iter_chunks(self) -> Iterator[tuple[slice, ...]]:
        """Yield the selection of each chunk (with shards: of each shard), in the order of `blocks`.

        Work on an array chunk by chunk needs the memory of one chunk, and each is read and written once.

        Examples
        --------
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, shape=(5,), chunks=(2,), dtype="int16")
        >>> for place in array.iter_chunks():
        ...     array[place] = place[0].start
        >>> array[:]
        array([0, 0, 2, 2, 4], dtype=int16)
        """
        grid = self._grid
        return (grid.slices_of(coords) for coords in np.ndindex(*grid.grid_shape))

    def read_direct(self, dest: AnyArray, source_sel: Index = ..., dest_sel: Any = ...) -> None:
        """Read selected elements into a part of a NumPy array, as h5py does.

        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(6))
        >>> found = np.zeros(4, dtype="int64")
        >>> array.read_direct(found, np.s_[3:5], np.s_[1:3])
        >>> found
        array([0, 3, 4, 0])
        """
        dest[dest_sel] = self[source_sel]

    def write_direct(self, source: AnyArray, source_sel: Any = ..., dest_sel: Index = ...) -> None:
        """Store a part of a NumPy array in selected elements, as h5py does.

        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, shape=(4,), dtype="int64")
        >>> array.write_direct(np.arange(10), np.s_[5:7], np.s_[2:])
        >>> array[:]
        array([0, 0, 5, 6])
        """
        self[dest_sel] = source[source_sel]

    def islice(self, start: int | None = None, end: int | None = None) -> Iterator[Any]:
        """Iterate over a part of the first dimension, reading each chunk once.

        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=[0, 10, 20, 30], chunks=(2,))
        >>> [int(row) for row in array.islice(1, 3)]
        [10, 20]
        """
        if not self.shape:
            raise TypeError("iteration over an array without dimensions")
        return self._rows(*slice(start, end).indices(len(self))[:2])

    def append(self, data: ArrayLike, axis: int = 0) -> AppendedShape:
        """Add elements at the end of a dimension.

        If several writers append at the same time, every block is stored, one after another. Consolidated metadata of
        groups above is updated, however the array was opened: its readers see the new elements.

        Parameters
        ----------
        data : array_like
            Must have the array's shape, except along `axis`.
        axis : int

        Returns
        -------
        tuple of int
            The new shape. Its attribute ``region`` is the selection that holds `data`.

        Raises
        ------
        ShapeError
            If `data` does not fit.
        NotRepresentableError
            If the array is a variable of NCZarr, whose dimensions `omnizarr.netcdf` makes longer.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.append([[20, 21, 22, 23]])
        (4, 4)
        >>> array.append(np.zeros((4, 1)), axis=1).region
        (slice(0, 4, None), slice(4, 5, None))
        """
        self._check_lengths_are_free()
        return self._append(data, axis)

    def _append(self, data: ArrayLike, axis: int) -> AppendedShape:
        since = self._state
        metadata, region = resizing.append(
            self._where, data, axis, self._config.policy, self._config.concurrency, self._metadata.dialect
        )
        self._adopt(metadata, since)
        return resizing.AppendedShape(metadata.shape, region)

    def _check_lengths_are_free(self) -> None:
        """Raise NotRepresentableError if NCZarr says how long the dimensions are."""
        nczarr_objects.refuse_other_lengths(self._where, self._metadata)

    def writer(self, memory: int | str | None = None) -> writer.ArrayWriter:
        """Return a writer, which gathers small writes in memory and stores each chunk (with shards: shard) once.

        Use it in a ``with`` block for many writes that are smaller than a chunk or shard: rows one by one, regions
        that do not end where chunks end, single elements. The block's end stores what waits, also after an exception,
        as does `ArrayWriter.flush`. Chunks that are complete are stored first, when the memory is full.

        What waits exists in memory only: other readers do not see it, and if the process is killed, it is lost.
        It is stored before a fork and at the end of the program. Elements that are not written through the writer
        keep what others store in them meanwhile, also within the same chunk.

        Parameters
        ----------
        memory : int or str, optional
            Bytes that may wait, such as ``"500MB"``. The default is ``bytes_in_flight`` of the array, or two
            chunks if these are larger.

        Returns
        -------
        ArrayWriter

        Raises
        ------
        ReadOnlyError
        ValueError
            If `memory` is smaller than a chunk.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, shape=(100, 4), shards=(50, 4), chunks=(10, 4), dtype="int16")
        >>> with array.writer() as rows:
        ...     for number in range(100):
        ...         rows[number] = number
        >>> rows.stats.chunks_stored, int(array[99, 0])
        (2, 99)
        """
        return writer.ArrayWriter(self, memory)

    # -- metadata ------------------------------------------------------------------

    def update_attributes(self, new_attributes: Mapping[str, Any]) -> Array:
        """Set several attributes in one atomic change, and return the array.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.update_attributes({"units": "K"}).attrs
        {'units': 'K'}
        """
        self.attrs.update(to_json(new_attributes))
        return self

    def refresh(self) -> None:
        """Read the metadata again, in case another program resized the array or changed its attributes.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> same = omnizarr.open_array(array.store)
        >>> array.resize(5, 4)
        >>> same.refresh()
        >>> same.shape
        (5, 4)
        """
        since = self._state
        self._adopt(self._stored(), since)

    def _stored(self) -> ArrayMetadata:
        return detection.open_array(self._where, self._metadata.dialect).metadata

    def with_config(self, config: ArrayConfig | Mapping[str, Any]) -> Array:
        """Return the same array with other settings: ``array.with_config({"missing": "error"})``.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> array = omnizarr.create_array({}, data=np.arange(12).reshape(3, 4), chunks=(2, 2))
        >>> array.with_config({"missing": "error"}).config.missing
        'error'
        """
        changed = config if isinstance(config, ArrayConfig) else ArrayConfig.of(self._config, **config)
        return Array(self._where, self._metadata, changed, self._snapshot)

    def _change_attributes(self, change: Callable[[Attrs], Attrs]) -> None:
        since = self._state
        metadata = hierarchy.update(
            self._where,
            ArrayMetadata,
            lambda metadata: replace(metadata, attributes=change(dict(metadata.attributes))),
            self._metadata.dialect,
        )
        self._adopt(metadata, since)

    def _adopt(self, metadata: ArrayMetadata, since: State | None = None) -> None:
        """Use the metadata that is stored now.

        `since` is the state before they were read or changed. If another thread has replaced it, its metadata may be
        newer or older, so they are read again.
        """
        with threads.lock((Array, id(self))):
            state = self._state
            if since is not None and state is not since:
                metadata = self._stored()
            known = state.metadata
            same = metadata.shape == known.shape and replace(metadata, attributes={}) == replace(known, attributes={})
            self._state = State(metadata, state.bound if same else None)

    def show(
        self,
        selection: Any = (),
        *,
        colormap: str = "viridis",
        limits: tuple[float, float] | None = None,
        percentiles: tuple[float, float] = (2, 98),
        rgb: bool | None = None,
        size: tuple[int, int] = (520, 400),
    ) -> Picture:
        """Return a picture of the selected elements.

        The picture is an image, a line plot (one dimension) or a table (text and records). It reads only as many
        elements as it has room for: every n-th element, or a coarser level of an OME-Zarr multiscale image. It uses
        the coordinates, units and missing values of CF and OME-Zarr. Complex numbers are shown by their magnitude.

        Parameters
        ----------
        selection : int, slice, Ellipsis, name of a field, or tuple of these
            If more than two dimensions are selected, the picture shows the dimensions y and x (or lat and lon,
            ...) or else the last two, at the first selected index of all others.
        colormap : str
            "viridis", "magma", "cividis", "coolwarm" or "gray"; with "_r" appended, reversed.
        limits : tuple of float, optional
            Values at both ends of the colormap. The default is the values at `percentiles`.
        percentiles : tuple of float
        rgb : bool, optional
            Show a dimension of length 3 or 4 as red, green, blue and alpha. The default is True if the elements
            are bytes, and the dimension is last and has no name, or its name is "c", "channel", "band" or
            "rgb".
            By default, the first four channels of an OME-Zarr image are blended in the colours and windows of its
            ``omero`` metadata.
        size : tuple of int
            Width and height of the picture in pixels.

        Returns
        -------
        Picture
            Notebooks show it, `print` draws it in the terminal, and `Picture.save` writes it to a file.

        Examples
        --------
        >>> import numpy as np
        >>> import omnizarr
        >>> wave = omnizarr.create_array({}, data=np.sin(np.linspace(0, 6, 40))[:, None] * np.arange(20))
        >>> wave.show(colormap="gray", size=(10, 10)).page.title
        '/[::4, ::4] float64'
        """
        style = contents.Style(colormap, limits, percentiles)
        return showing.picture_of(self, selection, style, size, rgb=rgb)

    # -- Python protocols ----------------------------------------------------------------

    if not TYPE_CHECKING:  # for which every name would be one

        def __getattr__(self, name: str) -> object:
            raise habits.missing(type(self).__name__, name, habits.ARRAY, self)

    def __repr__(self) -> str:
        name, store = visible(self.name), info.store_name(self._where.store)
        return f"<Array {name} {self.shape} {visible(info.type_name(self._metadata))} {store}>"

    def _repr_html_(self) -> str:
        return info_html.render(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Array):
            return NotImplemented
        return self._where == other._where and self._metadata == other._metadata

    def __hash__(self) -> int:
        return hash((Array, self._where.path))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._where, self._metadata, self._config, self._snapshot)

    def __dask_tokenize__(self) -> object:
        return self._token(self._config.missing, self.order)
