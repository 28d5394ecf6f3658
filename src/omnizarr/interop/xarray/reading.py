"""Hierarchies as xarray reads them: the engine ``omnizarr``."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np
from xarray import Dataset, DataTree, Variable
from xarray.backends import AbstractDataStore, BackendArray, BackendEntrypoint, StoreBackendEntrypoint

from omnizarr import aio, netcdf
from omnizarr.api import combining, opening
from omnizarr.errors import MetadataError, NodeNotFoundError, OmnizarrError
from omnizarr.formats.conventions import fill_values, nczarr_metadata
from omnizarr.formats.conventions.nczarr import notes_of
from omnizarr.interop.xarray.backend import TEXT, indexing
from omnizarr.model import dimensions
from omnizarr.model.datatypes.optional import VALID, VALUE, is_optional
from omnizarr.model.dimensions import ATTRIBUTE
from omnizarr.netcdf.header import Attribute, GroupHeader
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.lazy import view
from omnizarr.nodes.lazy.store import LazyStore
from omnizarr.nodes.lazy.view import LazyArray
from omnizarr.nodes.packing import own_scale
from omnizarr.nodes.walk import walk
from omnizarr.stores import Store, kinds
from omnizarr.stores.urls import scheme_of

__all__ = ["OmnizarrBackendEntrypoint"]

_HIDDEN: Final = "_nc"
"""Prefixes, in lower case, of attributes that netCDF-C writes for its own use."""
_QUANTIZED: Final = "_Quantize"
"""Prefix of attributes that state how values were rounded. netCDF shows them."""
_FILL_VALUE: Final = "_FillValue"
_HANDY: Final = 128 * 2**20
"""Bytes of a chunk of dask, unless its configuration says otherwise."""
_SCALED: Final = frozenset({"scale_factor", "add_offset", _FILL_VALUE, "missing_value"})
"""Encodings of numbers that have been decoded."""
_SMALL: Final = 2
"""Bytes of integers that float32 holds exactly."""
_LAYERS: Final = ("xarray.", "dask.")
"""Packages with classes that wrap lazy data."""
_Opened: TypeAlias = "tuple[str, tuple[AbstractDataStore, dict[str, Any]]]"
"""Path of a group, its variables, and the groups in it."""

_UNNAMED: Final = "data"
"""Name of the variable that represents an array without a name."""


class OmnizarrBackendEntrypoint(BackendEntrypoint):
    """How xarray opens Zarr by omnizarr; use it as ``xarray.open_dataset(..., engine="omnizarr")``.

    Keywords besides those that all engines have:

    group : str, optional
        Path of the group in the hierarchy.
    zarr_format : int or str, optional
        As for `omnizarr.open`. Default: found by looking.
    consolidated : bool, optional
        True: use consolidated metadata, which must exist; False: do not use it; None: use it if it exists.
    storage_options : mapping, optional
        As for `omnizarr.open`.
    mode : {"r", "r+"}, default "r"
        Both read.
    zarr_version : int or str, optional
        The former name of `zarr_format`.
    synchronizer, cache_members : optional
        For programs that pass them to the engine ``zarr``. Reading needs no locks, and members are looked up once.
    chunk_store, store : optional
        None, or a TypeError says what to do.
    combine : str or mapping, optional
        The dimension along which to join many hierarchies, as `omnizarr.combine` does: ``filename_or_obj`` is a list of
        paths, or a pattern of them. A mapping has its keywords: ``{"along": "time", "overlaps": "last"}``.
    use_zarr_fill_value_as_mask : bool, optional
        Whether elements that equal the fill value of their array are missing. Default: in Zarr v2 (and older formats,
        where dimensions have names) they are, in v3 they are not.
    nullable : bool, default False
        Whether variables of one dimension whose elements may be missing (the data type ``optional``) are nullable
        arrays of pandas, such as ``Int64``, which keep every integer; they are read at once. False: floats with NaN.

    Examples
    --------
    >>> import omnizarr
    >>> import xarray
    >>> root = omnizarr.create_group({})
    >>> _ = root.create_array("t", data=[1.0, 2.0], dimension_names=["x"], attributes={"units": "K"})
    >>> xarray.open_dataset(root, engine="omnizarr")["t"].attrs
    {'units': 'K'}
    """

    description = "Open every Zarr ever specified (v0 to v3, the drafts, NCZarr) using omnizarr"
    url = "https://github.com/omnizarr/omnizarr"
    supports_groups = True

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return whether there is a hierarchy that xarray's engine ``zarr`` would not open."""
        if isinstance(filename_or_obj, str) and scheme_of(filename_or_obj) is not None:
            return False  # to look would be a request
        if not isinstance(filename_or_obj, str | os.PathLike | Store | Array | Group):
            return False
        if isinstance(filename_or_obj, str | os.PathLike):
            endings = kinds.endings_of(os.fsdecode(filename_or_obj))
            if not kinds.READERS.keys().isdisjoint(endings):
                return False  # other engines of xarray open these files
        try:
            node = opening.open(filename_or_obj, mode="r")
        except (OmnizarrError, OSError, TypeError, ValueError):
            return False
        if not isinstance(filename_or_obj, str | os.PathLike):
            return True
        is_theirs = node.zarr_format in (2, 3) and isinstance(node, Group) and find_spec("zarr") is not None
        return not (is_theirs and str(filename_or_obj).rstrip("/").endswith(".zarr"))

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        mask_and_scale: bool = True,
        decode_times: bool = True,
        concat_characters: bool = True,
        decode_coords: bool = True,
        drop_variables: str | Iterable[str] | None = None,
        use_cftime: bool | None = None,
        decode_timedelta: bool | None = None,
        group: str | None = None,
        zarr_format: int | str | None = None,
        consolidated: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
        use_zarr_fill_value_as_mask: bool | None = None,
        mode: str = "r",
        zarr_version: int | str | None = None,
        synchronizer: Any = None,
        cache_members: bool = True,
        chunk_store: Any = None,
        store: Any = None,
        combine: str | Mapping[str, Any] | None = None,
        nullable: bool = False,
    ) -> Dataset:
        """Return a group, or a single array, as a dataset; see `xarray.open_dataset`."""
        hierarchy = _Hierarchy(
            filename_or_obj,
            zarr_format=zarr_format,
            consolidated=consolidated,
            storage_options=storage_options,
            use_zarr_fill_value_as_mask=use_zarr_fill_value_as_mask,
            mode=mode,
            zarr_version=zarr_version,
            synchronizer=synchronizer,
            cache_members=cache_members,
            chunk_store=chunk_store,
            store=store,
            combine=combine,
        )
        with hierarchy.closed_on_error():
            store = hierarchy.at(group)
            dataset = StoreBackendEntrypoint().open_dataset(
                store,
                mask_and_scale=mask_and_scale,
                decode_times=decode_times,
                concat_characters=concat_characters,
                decode_coords=decode_coords,
                drop_variables=drop_variables,
                use_cftime=use_cftime,
                decode_timedelta=decode_timedelta,
            )
            return _with_nullable(dataset, store) if nullable else dataset

    def open_datatree(self, filename_or_obj: Any, **options: Any) -> DataTree:
        """Return a group with all below it; see `xarray.open_datatree`. Keywords are those of `open_dataset`."""
        datasets = self.open_groups_as_dict(filename_or_obj, **options)
        try:
            tree = DataTree.from_dict(datasets)
        except BaseException:
            for each in datasets.values():
                each.close()
            raise
        for path, each in datasets.items():
            tree[path].set_close(each.close)
        return tree

    def open_groups_as_dict(
        self, filename_or_obj: Any, *, group: str | None = None, nullable: bool = False, **options: Any
    ) -> dict[str, Dataset]:
        """Return a group and all below it by path; see `xarray.open_groups`. Keywords are those of `open_dataset`."""
        own = {name: options.pop(name) for name in _Hierarchy.__init__.__kwdefaults__ or () if name in options}
        hierarchy = _Hierarchy(filename_or_obj, **own)
        opened = StoreBackendEntrypoint().open_dataset
        with hierarchy.closed_on_error():
            found = {}
            for path, store in hierarchy.below(group):
                dataset = opened(store, **options)
                found[path] = _with_nullable(dataset, store) if nullable else dataset
            return found


def _with_nullable(dataset: Dataset, store: AbstractDataStore) -> Dataset:
    """Return a dataset whose variables of one dimension that may lack elements are nullable arrays of pandas."""
    arrays = store.arrays if isinstance(store, ArraysStore) else {}
    for name, variable in dataset.variables.items():
        array = arrays.get(str(name))
        # xarray makes indexes of dimensions, and has no such arrays of several dimensions.
        if array is None or array.ndim != 1 or name in dataset.dims or not is_optional(array.dtype):
            continue
        if variable.dtype != _Decoded(_ZarrArray(array)).dtype or _SCALED & variable.encoding.keys():
            continue  # numbers that xarray has decoded
        made = _nullable(np.asarray(array))
        if made is not None:
            dataset = dataset.assign({name: (variable.dims, made, variable.attrs, variable.encoding)})
    return dataset


def _nullable(elements: np.ndarray[Any, Any]) -> Any:
    """Return elements that may be missing as a nullable array of pandas; None if it has no such type."""
    pandas, (valid, values) = import_module("pandas"), (elements[VALID], elements[VALUE])
    if values.dtype.kind in "biuf" and values.dtype.str[1:] != "f2":
        kinds_of = {"b": "BooleanArray", "i": "IntegerArray", "u": "IntegerArray", "f": "FloatingArray"}
        made_by = getattr(pandas.arrays, kinds_of[values.dtype.kind])
        return made_by(values.astype(values.dtype.newbyteorder("="), copy=True), ~valid)
    return None


# -- hierarchies ------------------------------------------------------------------------------------


class _Hierarchy:
    """An opened hierarchy, whose groups are datasets."""

    def __init__(
        self,
        place: Any,
        *,
        zarr_format: int | str | None = None,
        consolidated: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
        use_zarr_fill_value_as_mask: bool | None = None,
        mode: str = "r",
        zarr_version: int | str | None = None,
        synchronizer: Any = None,
        cache_members: bool = True,
        chunk_store: Any = None,
        store: Any = None,
        combine: str | Mapping[str, Any] | None = None,
    ) -> None:
        _check_reads(mode, chunk_store=chunk_store, store=store)
        if zarr_version is not None:
            if zarr_format not in (None, zarr_version):
                raise ValueError(f"zarr_version={zarr_version!r}, zarr_format={zarr_format!r}: leave out zarr_version")
            zarr_format = zarr_version
        options: dict[str, Any] = {"zarr_format": zarr_format, "storage_options": storage_options}
        if combine is not None:
            asked = {"along": combine} if isinstance(combine, str) else dict(combine)
            place = combining.combine(place, **asked, storage_options=storage_options)
        is_open = isinstance(place, Array | Group)
        known = consolidated if has_consolidated(place) else False
        self.root = place if is_open else opening.open(place, mode="r", use_consolidated=known, **options)
        self.owned = self.root.store if isinstance(place, str | os.PathLike) else None
        self.masks = use_zarr_fill_value_as_mask
        self.dataset: netcdf.Dataset | None = None
        if isinstance(self.root, Group) and is_nczarr(self.root):
            self.dataset = netcdf.Dataset(self.root.store_path, "r")
            self.headers = dict(self.dataset.as_source(for_xarray=True).root.walk())

    def close(self) -> None:
        """Close the store, unless it is the user's."""
        if self.owned is not None:
            self.owned.close()

    @contextmanager
    def closed_on_error(self) -> Iterator[None]:
        """Close the store if the datasets cannot be made, and say which one it was."""
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, ValueError) and not isinstance(error, OmnizarrError):
                where = self.root.store_path
                raise MetadataError(str(error), store=str(where.store), path=where.path) from error
            raise

    def at(self, group: str | None) -> AbstractDataStore:
        """Return one group as xarray has data stores."""
        return self._opened(self._find(group))[0]

    def below(self, group: str | None) -> Iterator[tuple[str, AbstractDataStore]]:
        """Yield a group and all groups below it, by their paths from there; parents first."""

        def inner(above: _Opened) -> Iterator[_Opened]:
            path, (_, groups) = above
            return ((f"{path.rstrip('/')}/{name}", self._opened(each)) for name, each in groups.items())

        top = "/", self._opened(self._find(group))
        concurrency = self.root.store.features.concurrency if self.dataset is None else 1
        for path, (store, _) in chain((top,), map(itemgetter(1), walk(top, inner, concurrency=concurrency))):
            yield path, store

    def _find(self, group: str | None) -> Array | Group | netcdf.Group:
        path = (group or "").strip("/")
        if self.dataset is not None:
            node = self.dataset[f"/{path}"] if path else self.dataset
            if isinstance(node, netcdf.Group):
                return node
            raise NodeNotFoundError("there is a variable, not a group", path=path)
        if not path:
            return self.root
        if isinstance(self.root, Array):
            raise NodeNotFoundError("there is an array, not a group", path=self.root.path, found=path)
        return self.root.get_group(path)

    def _opened(self, node: Array | Group | netcdf.Group) -> tuple[AbstractDataStore, dict[str, Any]]:
        """Return the variables of a node, and the groups in it."""
        if isinstance(node, netcdf.Group):
            header = self.headers[node.path.rstrip("/")]
            return _NetcdfStore(node, header, self.close), dict(node.groups)
        if isinstance(node, Array):
            return ArraysStore({node.basename or _UNNAMED: node}, {}, self.masks, self.close), {}
        members = dict(node.members())
        arrays = {name: each for name, each in members.items() if isinstance(each, Array)}
        groups = {name: each for name, each in members.items() if isinstance(each, Group)}
        return ArraysStore(arrays, {**node.attrs.asdict(), **_typed(node)}, self.masks, self.close), groups


def _check_reads(mode: str, **others: Any) -> None:
    """Raise if keywords of the engine ``zarr`` ask for what this engine does not do."""
    if mode not in ("r", "r+"):
        remedy = "leave out mode, and write with dataset.omnizarr.to_zarr(...)"
        raise ValueError(f"mode={mode!r}: engine 'omnizarr' opens what exists, to read it; {remedy}")
    remedies = {
        "store": "pass it as the first argument",
        "chunk_store": "chunks and metadata are read from one store; make one of both, or open it with engine='zarr'",
    }
    for name, value in others.items():
        if value is not None:
            raise TypeError(f"{name}={value!r}: engine 'omnizarr' does not take it; {remedies[name]}")


class _OpenStore(AbstractDataStore):
    """The reader of a group, which is notified when its dataset is closed."""

    def __init__(self, closing: Callable[[], None]) -> None:
        self._closing = closing

    def close(self) -> None:
        """Do what closing the dataset means."""
        self._closing()


class ArraysStore(_OpenStore):
    """The arrays of a group.

    Parameters
    ----------
    arrays : mapping of str to Array
    attributes : mapping
        Of the group.
    masks : bool, optional
        Whether fill values mask; see `OmnizarrBackendEntrypoint`.
    closing : callable
        Called when the dataset is closed.
    """

    def __init__(
        self,
        arrays: Mapping[str, Array],
        attributes: Mapping[str, Any],
        masks: bool | None = None,  # noqa: FBT001 - three values
        closing: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(closing)
        self.arrays = arrays
        self._attributes = attributes
        self._masks = masks

    def get_variables(self) -> dict[str, Variable]:
        """Return all arrays as variables."""
        phony: dict[int, str] = {}
        taken = {name for each in self.arrays.values() for name in each.dimension_names or () if name is not None}
        found = {}
        for name, array in self.arrays.items():
            names = array.dimension_names or (None,) * array.ndim
            for length, given in zip(array.shape, names, strict=True):
                if given is None and length not in phony:
                    phony[length] = _free(taken)
            dims = [given or phony[length] for length, given in zip(array.shape, names, strict=True)]
            found[name] = _variable(array, dims, masks=self._masks)
        return found

    def get_attrs(self) -> dict[str, Any]:
        """Return the attributes of the group, but those that netCDF-C writes for itself."""
        return _shown(self._attributes)

    def get_encoding(self) -> dict[str, Any]:
        """Return nothing: no dimension is unlimited."""
        return {}


class _NetcdfStore(_OpenStore):
    """The variables of a group of NCZarr, as netCDF has them."""

    def __init__(self, group: netcdf.Group, header: GroupHeader, closing: Callable[[], None]) -> None:
        super().__init__(closing)
        self._group = group
        self._header = header

    def get_variables(self) -> dict[str, Variable]:
        """Return all variables."""
        found = {}
        for name, header in self._header.variables.items():
            variable = self._group.variables[name]
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
            dims = variable.dimensions
            chunks: Any = variable.chunking()
            if chunks is None and dims:  # netCDF-3 has none: those in which the array is read
                chunks = list(variable.array.chunks)
            encoding: dict[str, Any] = {}
            if isinstance(chunks, list):
                encoding = {"chunks": tuple(chunks), "preferred_chunks": dict(zip(dims, chunks, strict=True))}
            quantization = {key: each for key, each in header.special.items() if key.startswith(_QUANTIZED)}
            attributes = {key: _plain(each) for key, each in {**header.attributes, **quantization}.items()}
            data = indexing.LazilyIndexedArray(_NetcdfArray(variable))
            found[name] = Variable(dims, data, attributes, encoding)
        return found

    def get_attrs(self) -> dict[str, Any]:
        """Return the attributes of the group."""
        return {name: _plain(each) for name, each in self._header.attributes.items()}

    def get_encoding(self) -> dict[str, Any]:
        """Return which dimensions are unlimited."""
        group: netcdf.Group | None = self._group
        found: set[str] = set()
        while group is not None:
            found |= {name for name, each in group.dimensions.items() if each.isunlimited()}
            group = group.parent
        return {"unlimited_dims": found & {name for each in self._group.variables.values() for name in each.dimensions}}


def is_nczarr(root: Group) -> bool:
    """Return whether a group is a dataset of NCZarr."""
    where = root.store_path
    if root.zarr_format not in (2, 3):
        return False
    return bool(notes_of(root.metadata)) or (
        root.zarr_format == 2 and where.store.exists(where.prefix + nczarr_metadata.SUPERBLOCK)
    )


def has_consolidated(place: Any) -> bool:
    """Return whether a store can have consolidated metadata; stores of zarr-python, as Icechunk's, may say no."""
    return bool(getattr(place, "supports_consolidated_metadata", True))


def _free(taken: set[str]) -> str:
    """Return a name of a dimension that is not taken, and take it."""
    number = 0
    while (name := f"phony_dim_{number}") in taken:
        number += 1
    taken.add(name)
    return name


def _shown(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if not name.lower().startswith(_HIDDEN)}


def _typed(node: Array | Group) -> dict[str, Any]:
    """Return the attributes of a node with their types in its file, if JSON loses them: of HDF5, float32 and others."""
    attributes_of = getattr(node.store, "attributes_of", None)
    found: dict[str, Any] = {} if attributes_of is None else attributes_of(node.path.strip("/")) or {}
    return found


def _plain(attribute: Attribute) -> Any:
    """Return the value of an attribute as in netCDF4-python."""
    value = attribute.value
    if isinstance(value, str):
        return value.rstrip("\0")
    if value.size == 1:
        return value[0]
    return list(value) if value.dtype == object else value


def _variable(array: Array, dims: list[str], *, masks: bool | None) -> Variable:
    attributes = array.attrs.asdict()
    typed = _typed(array)
    if array.zarr_format != 3 or array.dimension_names is None:
        attributes.pop(ATTRIBUTE, None)
    # Codecs are included if they are those of Zarr v3: what is read from an older format is often written as v3, where
    # zarr-python refuses codecs of v2.
    shards = array.shards
    preferred = shards if shards is not None and _is_handy(array) else array.chunks
    encoding: dict[str, Any] = {"chunks": array.chunks, "preferred_chunks": dict(zip(dims, preferred, strict=True))}
    if array.zarr_format == 3:
        serializer = array.serializer
        encoding |= {
            "shards": shards,
            "filters": tuple(each.to_dict() for each in array.filters),
            "serializer": None if serializer is None else serializer.to_dict(),
            "compressors": tuple(each.to_dict() for each in array.compressors),
        }
    fill = array.fill_value
    if masks is None:
        masks = array.zarr_format == 2 or (array.zarr_format != 3 and array.dimension_names is not None)
    if masks:
        if fill is not None and not _has_arrays(array.dtype):  # xarray compares fill values by their hashes
            attributes[_FILL_VALUE] = fill
    elif array.zarr_format == 3:
        encoding["fill_value"] = fill
        if _FILL_VALUE in attributes and _FILL_VALUE not in typed:
            meant = fill_values.decode(attributes[_FILL_VALUE], array.dtype)
            attributes[_FILL_VALUE] = attributes[_FILL_VALUE] if meant is None else meant
    attributes |= typed | own_scale(array.metadata)
    store = array.store
    if isinstance(store, LazyStore):
        wrapped: _LazyArray | _ZarrArray = _LazyArray(store.view_of(array.path.strip("/")))
    else:
        wrapped = _ZarrArray(array)
    if is_optional(wrapped.dtype):
        # The codecs are for elements that may be missing, which xarray does not write.
        encoding = {name: encoding[name] for name in ("chunks", "preferred_chunks", "shards") if name in encoding}
    if wrapped.dtype.kind == "T":
        encoding["dtype"] = wrapped.dtype
    return Variable(dims, indexing.LazilyIndexedArray(_readable(wrapped)), _shown(attributes), encoding)


def _readable(wrapped: _ZarrArray | _LazyArray) -> BackendArray:
    """Return an array of which xarray understands every element."""
    return _Decoded(wrapped) if is_optional(wrapped.dtype) else wrapped


def _has_arrays(dtype: np.dtype[Any]) -> bool:
    """Return whether records have arrays in them."""
    return any(each[0].shape or _has_arrays(each[0]) for each in (dtype.fields or {}).values())


def _is_handy(array: Array) -> bool:
    """Return whether a shard is not larger than what dask likes to have as a chunk."""
    lengths = (max(each, default=0) if isinstance(each, tuple) else each for each in array.shards or ())
    return math.prod(map(min, lengths, array.shape)) * array.dtype.itemsize <= _HANDY


# -- arrays -----------------------------------------------------------------------------------------


class _ZarrArray(BackendArray):
    """An array that is read when its elements are asked for."""

    __slots__ = ("dtype", "shape", "stored")

    def __init__(self, array: Array) -> None:
        self.stored = array
        self.shape = array.shape
        is_text = array.dtype.kind == "O" and isinstance(array.fill_value, str)
        self.dtype = TEXT if is_text else array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return elements; every selection that xarray knows is read unchanged."""
        support = indexing.IndexingSupport.VECTORIZED
        return self._typed(indexing.explicit_indexing_adapter(key, self.shape, support, self._reader(key)))

    def _typed(self, value: Any) -> Any:
        """Return a single text with its data type, which Python's texts do not have."""
        return np.asarray(value, self.dtype) if self.dtype.kind == "T" and isinstance(value, str) else value

    def _reader(self, key: indexing.ExplicitIndexer) -> Any:
        if isinstance(key, indexing.VectorizedIndexer):
            return self.stored.vindex.__getitem__
        if isinstance(key, indexing.OuterIndexer):
            return self.stored.oindex.__getitem__
        return self.stored.__getitem__

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Return elements without a thread that waits."""
        waiting = aio.AsyncArray(self.stored)
        method = waiting.getitem
        if isinstance(key, indexing.VectorizedIndexer):
            method = waiting.get_coordinate_selection
        elif isinstance(key, indexing.OuterIndexer):
            method = waiting.get_orthogonal_selection
        support = indexing.IndexingSupport.VECTORIZED
        return self._typed(await indexing.async_explicit_indexing_adapter(key, self.shape, support, method))


class _LazyArray(BackendArray):
    """A lazy array, which stays one until its elements are asked for."""

    __slots__ = ("dtype", "lazy", "shape")

    def __init__(self, lazy: LazyArray) -> None:
        self.lazy = lazy
        self.shape = lazy.shape
        self.dtype = lazy.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return elements; every selection that xarray knows is read unchanged."""
        reader: Any = self.lazy.__getitem__
        if isinstance(key, indexing.VectorizedIndexer):
            reader = self.lazy.vindex.__getitem__
        elif isinstance(key, indexing.OuterIndexer):
            reader = self.lazy.oindex.__getitem__
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.VECTORIZED, reader)


def as_variable(array: Array | LazyArray) -> Variable:
    """Return an array, or many arrays as one, as a variable of xarray, without reading elements.

    Parameters
    ----------
    array : omnizarr.Array or omnizarr.LazyArray
        Dimensions without a name are called ``dim_0``, ``dim_1``, and so on.

    Returns
    -------
    xarray.Variable
        It has the stored elements and attributes: `xarray.decode_cf` decodes them.

    Examples
    --------
    >>> import omnizarr
    >>> import xarray
    >>> first, second = (omnizarr.create_array({}, data=[n, n + 1], dimension_names=("time",)) for n in (0, 10))
    >>> temp = xarray.DataArray(as_variable(omnizarr.concat([first, second])))
    >>> temp.isel(time=[3, 0]).values
    array([11,  0])
    """
    lazy = view.as_lazy(array)
    dims = dimensions.numbered(lazy.dimension_names, lazy.ndim)
    return Variable(dims, indexing.LazilyIndexedArray(_readable(_LazyArray(lazy))), _shown(lazy.attrs))


class _Decoded(BackendArray):
    """An array whose elements may be missing, as xarray decodes ``_FillValue``: NaN, NaT or None means missing."""

    __slots__ = ("dtype", "shape", "wrapped")

    def __init__(self, wrapped: _ZarrArray | _LazyArray) -> None:
        self.wrapped = wrapped
        self.shape = wrapped.shape
        inner = wrapped.dtype
        while is_optional(inner):
            inner = inner[VALUE]
        if inner.kind in "iu":  # floats that hold most of them, as in xarray
            inner = np.dtype(np.float32 if inner.itemsize <= _SMALL else np.float64)
        self.dtype = inner if inner.kind in "fcmM" else np.dtype(object)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return elements; every selection that xarray knows is read unchanged."""
        return self._decoded(self.wrapped[key])

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Return elements without a thread that waits."""
        return self._decoded(await self.wrapped.async_getitem(key))

    def _decoded(self, found: Any) -> Any:
        if found is np.ma.masked:
            found = np.ma.MaskedArray(np.zeros((), self.dtype), np.True_)
        missing, values = np.ma.getmaskarray(found), np.ma.getdata(found)
        while missing.dtype.names is not None:
            missing = missing[VALID]
        while is_optional(values.dtype):
            missing, values = missing | ~values[VALID], values[VALUE]
        values = np.array(values, self.dtype)
        values[missing] = (
            None if self.dtype == object else np.array("NaT" if self.dtype.kind in "mM" else np.nan, self.dtype)
        )
        return values


class _NetcdfArray(BackendArray):
    """A variable of NCZarr, neither masked nor scaled."""

    __slots__ = ("dtype", "shape", "variable")

    def __init__(self, variable: netcdf.Variable) -> None:
        self.variable = variable
        self.shape = variable.shape
        self.dtype = TEXT if variable.dtype is str else np.dtype(variable.dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        """Return elements; points are taken from the box that holds them."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Return elements, read in a thread."""
        return await asyncio.to_thread(self.__getitem__, key)

    def _read(self, key: tuple[Any, ...]) -> Any:
        return np.asarray(self.variable[key or ...])


# -- what is read -----------------------------------------------------------------------------------


def sources_of(data: Any) -> Iterator[Array]:
    """Yield the arrays that lazy data, or an array of dask, is read from by this engine."""
    seen: set[int] = set()
    pending = [data, *getattr(data, "dask", {}).values()]
    while pending:
        each = pending.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, _ZarrArray):
            yield each.stored
        elif isinstance(each, tuple | list):
            pending += each
        elif type(each).__module__.startswith(_LAYERS):
            pending += [getattr(each, name, None) for name in ("array", "args", "value")]
