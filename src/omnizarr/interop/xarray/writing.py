"""Writing datasets of xarray: `to_zarr`.

xarray encodes variables and checks regions with its `ZarrStore`. This module decides what is stored, and when:
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final, NamedTuple

import numpy as np
from xarray import DataArray, Dataset, DataTree, Variable, conventions

from omnizarr.api import opening
from omnizarr.errors import GroupNotFoundError, NotJSONError, NotRepresentableError, OmnizarrError, SchedulerError
from omnizarr.formats import dialect_named
from omnizarr.interop.dask import is_elsewhere
from omnizarr.interop.gates import ends_with_chunks, gathered, through_gates
from omnizarr.interop.xarray import internals
from omnizarr.interop.xarray.growing import Done, Piece, grown, take_back
from omnizarr.interop.xarray.reading import ArraysStore, has_consolidated, is_nczarr
from omnizarr.metadata import as_model
from omnizarr.model import GroupMetadata
from omnizarr.model.dimensions import ATTRIBUTE
from omnizarr.nodes import consolidated as copies
from omnizarr.nodes import creating, detection, hierarchy, replacing
from omnizarr.nodes.attributes import to_json
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore, MemoryStore, Store, pool

__all__ = ["to_zarr"]

_FILL_VALUE: Final = "_FillValue"
_NAME: Final = "__xarray_dataarray_name__"
"""The attribute in which xarray stores the name of a data array."""
_UNNAMED: Final = "__xarray_dataarray_variable__"
"""xarray's name of the variable of a data array without a name, or with the name of a coordinate."""


def to_zarr(
    data: Dataset | DataArray | DataTree,
    store: Any = None,
    mode: str | None = None,
    group: str | None = None,
    encoding: Mapping[Any, Any] | None = None,
    *,
    compute: bool = True,
    consolidated: bool | None = None,
    append_dim: Hashable | None = None,
    region: Mapping[Any, Any] | str | None = None,
    safe_chunks: bool | None = None,
    align_chunks: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    zarr_format: int | str | None = None,
    write_empty_chunks: bool | None = None,
    chunkmanager_store_kwargs: Mapping[str, Any] | None = None,
    write_inherited_coords: bool = False,
) -> Any:
    """Write a dataset, a data array or a tree with omnizarr, like `xarray.Dataset.to_zarr`.

    Keywords have the same meaning, with the following differences.

    Parameters
    ----------
    data : xarray.Dataset, xarray.DataArray or xarray.DataTree
    store : path, URL, Store, StorePath, Group or mutable mapping, optional
        Like that of `omnizarr.open`. The default is a new store in memory.
    mode : {"w", "w-", "a", "a-", "r+"}, optional
        "w": replace an existing group. "w-": raise an error if it exists. "a": write values of existing
        variables, and create the others. "a-": the same, but do not change existing variables without
        `append_dim`. "r+": change only values. The default is "a" with `append_dim`, "r+" with `region`,
        otherwise "w-".
    group : str, optional
        Path of the group. Not allowed for trees.
    encoding : mapping, optional
        Options by variable; for trees, by group and variable: ``chunks``, ``shards``, ``compressors``, ``filters``,
        ``serializer``, ``fill_value``, ``dtype``, ``scale_factor`` and the like. Codecs are those that
        `omnizarr.create_array` takes.
    compute : bool
        Whether to write the data of dask now. If not, metadata and all other data are written, and the returned
        `dask.delayed.Delayed` writes the rest.
    consolidated : bool, optional
        Whether to write consolidated metadata. Existing consolidated metadata is always updated.
    append_dim : hashable, optional
        The dimension along which to append. Readers see the new elements when those of all variables are
        stored. If something fails, the variables keep their old length.
    region : mapping or "auto", optional
        The region of existing variables to write.
    safe_chunks : bool, optional
        Whether chunks of dask must end where stored ones do. The default is True only if several processes
        write to a store that keeps writers of one chunk apart only within a process (`exclusion` is "process").
        True: check like xarray. False: no check.
    align_chunks : bool
        Whether to rechunk the arrays of dask so that their chunks end where stored chunks do.
    storage_options : mapping, optional
        Options of the store, if you pass a URL.
    zarr_format : int or str, optional
        Any format of `omnizarr.create_group`. The default is that of the group, otherwise 3.
    write_empty_chunks : bool, optional
        Whether to store chunks that hold only the fill value.
    chunkmanager_store_kwargs : mapping, optional
        Keywords of `dask.array.store`.
    write_inherited_coords : bool
        For trees: whether to write coordinates in every group that inherits them.

    Returns
    -------
    Group, or dask.delayed.Delayed if not `compute`

    Raises
    ------
    ContainsGroupError, ContainsArrayError
        If the group exists, in mode "w-" (a FileExistsError).
    GroupNotFoundError
        If the group does not exist, in mode "r+" (a FileNotFoundError).
    NotRepresentableError
        If the format cannot express the dataset.
    SchedulerError
        If values would be stored in the memory of other processes.
    ValueError, TypeError
        Like in xarray: for regions, encodings, dimensions or data types that do not fit.

    Examples
    --------
    >>> import xarray
    >>> from omnizarr.interop.xarray import to_zarr
    >>> values = {}
    >>> _ = to_zarr(xarray.Dataset({"t": ("time", [1.5, 2.5])}), values)
    >>> _ = to_zarr(xarray.Dataset({"t": ("time", [3.5])}), values, append_dim="time")
    >>> xarray.open_dataset(values, engine="omnizarr")["t"].values
    array([1.5, 2.5, 3.5])
    """
    how = _How(
        mode=internals.choose_mode(mode=mode, append_dim=append_dim, region=region),
        append_dim=append_dim,
        region=dict(region) if isinstance(region, Mapping) else region,
        safe_chunks=safe_chunks,
        align_chunks=align_chunks,
        write_empty_chunks=write_empty_chunks,
        compute=compute,
    )
    if isinstance(data, DataTree):
        _refuse_for_trees(data, group, how, encoding or {})
    target = _Target.at(store, group, how, _Options(storage_options, zarr_format, consolidated))
    try:
        if isinstance(data, DataTree):
            writers = list(_of_tree(data, target, encoding or {}, inherit=write_inherited_coords))
        else:
            writers = [target.writer("", _as_dataset(data), encoding or {})]
        return _run(target, writers, dict(chunkmanager_store_kwargs or {}))
    finally:
        if compute:
            target.close()


@dataclass(frozen=True)
class _How:
    """How datasets are written: the keywords of `to_zarr`."""

    mode: str
    append_dim: Hashable | None
    region: Any
    safe_chunks: bool | None
    align_chunks: bool
    write_empty_chunks: bool | None
    compute: bool

    def checks_alignment(self, store: Store) -> bool:
        """Return whether chunks of dask must end where stored ones do."""
        if self.align_chunks:
            return False
        if self.safe_chunks is not None:
            return self.safe_chunks
        return store.features.exclusion == "process" and (not self.compute or is_elsewhere())


class _Options(NamedTuple):
    storage_options: Mapping[str, Any] | None
    zarr_format: int | str | None
    consolidated: bool | None


# -- target ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Target:
    """The target group, and its existing content."""

    root: StorePath
    """The place of `store`. Consolidated metadata belongs to this group."""
    where: StorePath
    found: Group | None
    """None: the group is created, or replaced."""
    dialect: str
    how: _How
    consolidated: bool | None
    is_owned: bool
    """Whether the store was opened here."""

    @classmethod
    def at(cls, place: Any, path: str | None, how: _How, options: _Options) -> _Target:
        if not has_consolidated(place):
            options = options._replace(consolidated=False)
        root, _ = opening.locate(place, None, "a", options.storage_options)
        where, found = root / (path or ""), None
        if how.mode in {"r+", "a", "a-"}:
            known = options.consolidated if how.mode == "r+" else False
            try:
                found = opening.open_group(where, mode="r+", zarr_format=options.zarr_format, use_consolidated=known)
            except GroupNotFoundError:
                if how.mode == "r+":
                    raise
        if found is None:
            dialect = creating.dialect_for_new(where, options.zarr_format).name
        else:
            where, dialect = found.store_path, found.metadata.dialect
        is_owned = isinstance(place, str | os.PathLike)
        return cls(root, where, found, dialect, how, options.consolidated, is_owned)

    def writer(self, path: str, dataset: Dataset, encoding: Mapping[Any, Any]) -> _GroupWriter:
        """Return a prepared writer of one dataset. Everything that is not valid raises an error here."""
        group = self.found
        if group is not None and path:
            group = group.get_group(path) if self.how.mode == "r+" or path in group else None
        writer = _GroupWriter(self, self.where / path, group)
        internals.validate_names(dataset)
        internals.dump_to_store(writer.checked(dataset, encoding), writer, encoding=encoding)
        return writer

    def create(self, writer: _GroupWriter) -> None:
        """Create a group, or replace its attributes."""
        attributes, mode = writer.attributes, self.how.mode
        if writer.group is not None:
            if mode != "r+" and writer.group.attrs != attributes:
                writer.group.attrs.put(attributes)
        elif dialect_named(self.dialect).has_groups:
            is_top = writer.where.path == self.where.path
            made = hierarchy.create(
                writer.where,
                creating.new_group_metadata(writer.where, dialect_named(self.dialect), attributes),
                overwrite=is_top and mode == "w",
            )
            writer.where = made.where
        elif mode == "w":
            hierarchy.clear(writer.where)

    def consolidate(self) -> None:
        """Write consolidated metadata, if it is wanted or exists already."""
        if self.how.mode == "r+" or not dialect_named(self.dialect).has_groups:
            return
        is_known = self.found is not None and self.where.path == self.root.path
        root = self.where if is_known else detection.open_group(self.root).where
        if self.consolidated:
            copies.consolidate(root)
        elif self.consolidated is None or copies.read(root) is not None:
            with suppress(NotRepresentableError):  # of a format without consolidated metadata
                copies.consolidate(root)

    def group(self) -> Group:
        """Return the written group."""
        if self.found is not None:
            return self.found
        return opening.open_group(self.where, mode="r+", zarr_format=dialect_named(self.dialect).zarr_format)

    def close(self) -> None:
        """Close the store, unless it belongs to the user. An archive is written then."""
        if self.is_owned:
            self.root.store.close()


def _as_dataset(data: Dataset | DataArray) -> Dataset:
    if isinstance(data, Dataset):
        return data
    if data.name is not None and data.name not in data.coords and data.name not in data.dims:
        return data.to_dataset()
    dataset = data.to_dataset(name=_UNNAMED)
    if data.name is not None:
        dataset.attrs[_NAME] = data.name
    return dataset


def _of_tree(tree: DataTree, target: _Target, encoding: Mapping[str, Any], *, inherit: bool) -> Iterator[_GroupWriter]:
    for path, node in tree.subtree_with_keys:
        dataset = node.to_dataset(inherit=inherit or node is tree)
        yield target.writer("" if node is tree else path, dataset, encoding.get(node.path) or {})


def _refuse_for_trees(tree: DataTree, group: str | None, how: _How, encoding: Mapping[str, Any]) -> None:
    if group is not None:
        raise NotImplementedError("specifying a root group for a tree: use a StorePath, or a path to the group itself")
    if how.append_dim is not None:
        raise NotImplementedError("specifying ``append_dim`` for a tree: append to its datasets one by one")
    if unknown := set(encoding) - set(tree.groups):
        raise ValueError(f"unexpected encoding group name(s) provided: {unknown}")


# -- data to write --------------------------------------------------------------------------------


class _GroupWriter(internals.WritableStore):
    """One group, in the form that xarray's `dump_to_store` writes to. It encodes and checks, and stores nothing."""

    def __init__(self, target: _Target, where: StorePath, group: Group | None) -> None:
        self.target = target
        self.where = where
        self.group = group
        self.attributes: dict[str, Any] = {}
        self.pieces: list[Piece] = []
        self._mode = target.how.mode  # inherited methods use these three
        self._append_dim = target.how.append_dim
        self._write_region = target.how.region
        self._arrays = {} if group is None else dict(group.arrays())
        self._stored = ArraysStore(self._arrays, {})
        self._variables: dict[str, Variable] | None = None

    # -- existing arrays

    def array_keys(self) -> tuple[str, ...]:
        """Return the names of the existing arrays."""
        return tuple(self._arrays)

    def open_store_variable(self, name: Any) -> Variable:
        """Return an existing array, as it is stored."""
        if self._variables is None:
            self._variables = self._stored.get_variables()
        return self._variables[internals.encode_variable_name(name)]

    def _dimensions(self) -> dict[Hashable, int]:
        return {dim: n for name in self._arrays for dim, n in self.open_store_variable(name).sizes.items()}

    # -- encoding

    @property
    def is_v3(self) -> bool:
        """Whether the format stores masks and names of dimensions like Zarr v3."""
        return self.target.dialect == "v3"

    def encode_variable(self, variable: Variable, name: Any = None) -> Variable:
        """Return a variable as it is stored."""
        coded: Variable = internals.encode_zarr_variable(variable, name=name, zarr_format=3 if self.is_v3 else 2)
        return coded

    def store(
        self,
        variables: Mapping[Any, Variable],
        attributes: Mapping[str, Any],
        check_encoding_set: Any = frozenset(),
        writer: Any = None,
        unlimited_dims: Any = None,
    ) -> None:
        """Prepare what is to be written."""
        there = {name for name in variables if internals.encode_variable_name(name) in self._arrays}
        if self._mode == "r+" and (new := [name for name in variables if name not in there]):
            raise ValueError(
                f"dataset contains non-pre-existing variables {new!r}: mode='r+' changes values only; "
                "use mode='a' to create variables"
            )
        dim = self._append_dim
        if dim is not None and dim not in self._arrays and dim not in (known := self._dimensions()):
            raise ValueError(f"append_dim={dim!r} does not match any existing dataset dimensions {known}")
        if self.group is not None and self._mode != "r+" and is_nczarr(self.group):
            raise NotRepresentableError(
                "NCZarr keeps variables and dimensions in its own metadata, which to_zarr does not change",
                store=str(self.where.store),
                path=self.where.path,
                remedy="write it with omnizarr.netcdf; mode='r+' and region= change values",
            )
        fresh, attributes = self.encoded({name: v for name, v in variables.items() if name not in there}, attributes)
        coded = {**fresh, **self._encoded_as_stored({name: variables[name] for name in variables if name in there})}
        self.attributes = self._json(self.where, attributes)
        if self.attributes and self.group is None and not dialect_named(self.target.dialect).has_groups:
            raise NotRepresentableError(
                f"groups of Zarr {self.target.dialect} have no attributes",
                store=str(self.where.store),
                path=self.where.path,
                found=sorted(self.attributes),
                remedy="drop them: data.drop_attrs(deep=False)",
            )
        for name in variables:
            variable = coded[name]
            if name not in there:
                self.pieces.append(self._new(name, variable, is_checked=name in check_encoding_set))
            elif self._mode != "a-" or self._append_dim is None or self._append_dim in variable.dims:
                self.pieces.append(self._existing(name, variable))

    def _encoded_as_stored(self, variables: Mapping[Any, Variable]) -> dict[Any, Variable]:
        """Return variables encoded like the existing arrays."""
        if not variables:
            return {}
        known, _, _ = conventions.decode_cf_variables({name: self.open_store_variable(name) for name in variables}, {})
        recoded = {}
        for name, variable in variables.items():
            internals.validate_data_types(name, known[name], variable)
            recoded[name] = variable.copy(deep=False)
            recoded[name].encoding = known[name].encoding
        coded, _ = self.encoded(recoded, {})
        where, dim = self._write_region, self._append_dim
        return {
            name: internals.validate_and_transpose(name, each, known[name], where, dim) for name, each in coded.items()
        }

    @staticmethod
    def _json(where: StorePath, attributes: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return dict(to_json(attributes))
        except NotJSONError as error:
            known = {name: getattr(error, name) for name in error.FIELDS}
            message = f"Invalid attribute in Dataset.attrs: {error.message}"
            raise NotJSONError(message, **known).add(store=str(where.store), path=where.path) from None

    # -- variables

    def _existing(self, name: Any, variable: Variable) -> Piece:
        array = self._arrays[internals.encode_variable_name(name)]
        if self.target.how.write_empty_chunks is not None:
            array = array.with_config({"write_empty_chunks": self.target.how.write_empty_chunks})
        region = [(self._write_region or {}).get(dim, slice(None)) for dim in variable.dims]
        axis, shape = None, list(array.shape)
        if self._append_dim in variable.dims:
            axis = variable.dims.index(self._append_dim)
            region[axis] = slice(shape[axis], None)
            shape[axis] += variable.shape[axis]
        blocks = array.shards or array.chunks
        variable = self._fitting(name, variable, blocks, tuple(shape), tuple(region), array.store)
        return Piece(array.basename, variable, tuple(region), array=array, axis=axis)

    def _new(self, name: Any, variable: Variable, *, is_checked: bool) -> Piece:
        attributes, fill = self._masked(variable)
        wanted: dict[str, Any] = internals.extract_zarr_variable_encoding(
            variable, raise_on_invalid=is_checked, name=name, zarr_format=3 if self.is_v3 else 2
        )
        wanted.pop("cache_metadata", None)
        if isinstance(wanted["chunks"], tuple):  # dask has empty chunks for empty arrays
            wanted["chunks"] = tuple(max(length, 1) for length in wanted["chunks"])
        empty = self.target.how.write_empty_chunks
        if empty is not None and wanted.setdefault("write_empty_chunks", empty) != empty:
            raise ValueError(
                f'Differing "write_empty_chunks" values in encoding and parameters for {name!r}: '
                f"found {wanted['write_empty_chunks']} and {empty}"
            )
        encoding = wanted
        region = tuple((self._write_region or {}).get(dim, slice(None)) for dim in variable.dims)
        if any(part.indices(n) != (0, n, 1) for part, n in zip(region, variable.shape, strict=True)):
            raise ValueError(f"variable {name!r} is not there: region= writes into variables that are")
        blocks = encoding.get("shards") or encoding["chunks"]
        variable = self._fitting(name, variable, blocks, variable.shape, region, self.where.store)
        names: dict[str, Any] = {"dimension_names": variable.dims} if self.is_v3 else {}
        if not self.is_v3:
            attributes[ATTRIBUTE] = variable.dims
        where = self.where / internals.encode_variable_name(name)
        hierarchy.check_path(dialect_named(self.target.dialect), where.path)
        trial = creating.new_array(
            StorePath(MemoryStore()),
            zarr_format=self.target.dialect,
            shape=variable.shape,
            dtype="string" if _is_text(variable.dtype) else variable.dtype,
            fill_value=fill,
            attributes=self._json(where, {key: self.plain(value) for key, value in attributes.items()}),
            **names,
            **encoding,
        )
        return Piece(where.name, variable, region, metadata=as_model(trial.metadata), config=trial.config)

    def _masked(self, variable: Variable) -> tuple[dict[str, Any], Any]:
        """Return attributes and fill value, with the mask where the format has it."""
        attributes = dict(variable.attrs)
        if variable.encoding.pop(_FILL_VALUE, None) is not None:
            raise ValueError(f"encoding[{_FILL_VALUE!r}] was not used by xarray for data of {variable.dtype}")
        mask = attributes.pop(_FILL_VALUE, None)
        if not self.is_v3:
            return attributes, mask
        if mask is not None:
            attributes[_FILL_VALUE] = internals.FillValueCoder.encode(mask, variable.dtype)
        fill = variable.encoding.pop("fill_value", None)
        return attributes, np.nan if fill is None and variable.dtype.kind == "f" else fill

    def _fitting(
        self,
        name: Any,
        variable: Variable,
        blocks: Any,
        shape: tuple[int, ...],
        region: tuple[slice, ...],
        store: Store,
    ) -> Variable:
        """Return a variable whose chunks of dask can be written concurrently. Raises ValueError if they cannot."""
        if variable.chunks is None or not isinstance(blocks, tuple):
            return variable
        is_checked = self.target.how.checks_alignment(store)
        if any(isinstance(each, tuple) for each in blocks):  # not all of one length
            if is_checked and any(len(lengths) > 1 for lengths in variable.chunks):
                raise ValueError(f"chunks of dask would overlap chunks of {name!r}, which are {blocks}: rechunk to one")
            return variable
        if self.target.how.align_chunks:
            variable = internals.grid_rechunk(v=variable, enc_chunks=blocks, region=region)
        if is_checked:
            internals.validate_grid_chunks_alignment(
                nd_v_chunks=variable.chunks,
                enc_chunks=blocks,
                region=region,
                allow_partial_chunks=self._mode != "r+",
                name=name,
                backend_shape=shape,
            )
        return variable

    # -- storing

    def create_arrays(self) -> None:
        """Create the missing arrays."""
        pool.run(self._create, self.pieces, min(self.where.store.features.concurrency, len(self.pieces)), 1)

    def _create(self, piece: Piece) -> None:
        if piece.metadata is not None:
            piece.array = creating.add_array(self.where / piece.name, piece.metadata, piece.config)


def _is_text(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "T" or internals.check_vlen_dtype(dtype) is str


# -- storing ----------------------------------------------------------------------------------------


def _run(target: _Target, writers: Sequence[_GroupWriter], options: dict[str, Any]) -> Any:
    pieces = [piece for writer in writers for piece in writer.pieces]
    store, is_chunked = target.root.store, any(piece.is_chunked for piece in pieces)
    if is_chunked and target.how.compute and not store.features.is_shared and is_elsewhere():
        raise SchedulerError(
            "the store is in the memory of this process: other processes cannot reach it",
            store=str(store),
            remedy="use a directory or an object store, or the scheduler 'threads'",
        )
    above = hierarchy.Above()
    if target.how.mode == "w" and _is_remade(target, pieces, above):
        # Write everything beside a group, and replace it when all is complete.
        def make(place: StorePath) -> None:
            made = replace(target, root=place, where=place)
            for writer in writers:
                writer.where = place / writer.where.path[len(target.where.prefix) :]
                made.create(writer)
                writer.create_arrays()
            _write([piece for writer in writers for piece in writer.pieces], place.store, options)

        where, _ = replacing.remade(target.where, dialect_named(target.dialect), make)
        creating.enter(where, GroupMetadata(dialect=target.dialect), above)
        target.consolidate()
        return target.group()
    if target.how.mode == "w":
        _outlast(target, pieces)
    try:
        for writer in writers:
            target.create(writer)
            writer.create_arrays()
        return (_written if target.how.compute else _delayed)(target, pieces, options)
    except Exception as error:
        made = [piece.name for piece in pieces if piece.metadata is not None and piece.array is not None]
        if made:
            error.add_note(f"{target.where}: the arrays {', '.join(made)} exist, but perhaps without all data")
        raise


def _is_remade(target: _Target, pieces: Sequence[Piece], above: hierarchy.Above) -> bool:
    """Return whether a group is replaced by data that is yet to be read, and workers can reach where it is made."""
    dialect = dialect_named(target.dialect)
    if not target.how.compute or not dialect.has_groups or all(map(Piece.cannot_fail, pieces)):
        return False
    if any(piece.is_chunked for piece in pieces) and is_elsewhere() and type(target.root.store) is not LocalStore:
        return False
    return replacing.is_taken(target.where, dialect, above)


def _written(target: _Target, pieces: Sequence[Piece], options: dict[str, Any]) -> Group:
    """Write all data, then lengthen the arrays."""
    done = grown(pieces, lambda: _write(pieces, target.root.store, options))
    with _taken_back(target, done):
        target.consolidate()
    return target.group()


def _delayed(target: _Target, pieces: Sequence[Piece], options: dict[str, Any]) -> Any:
    """Lengthen the arrays, write everything except dask arrays, and return what writes the rest."""
    done = grown(pieces, None)
    with _taken_back(target, done):
        target.consolidate()
        _write_loaded(pieces, target.root.store)
    chunked = [piece for piece in pieces if piece.is_chunked]
    rest = _sync(chunked, [piece.array for piece in chunked], options, compute=False)
    return import_module("dask").delayed(_finish)(rest, target)


@contextmanager
def _taken_back(target: _Target, done: Done) -> Iterator[None]:
    """Restore the old lengths of arrays if something fails, so that a second attempt does not append twice."""
    try:
        yield
    except BaseException:
        if done:
            take_back(done)
            with suppress(OmnizarrError):
                target.consolidate()
        raise


def _finish(_: object, target: _Target) -> Group:
    group = target.group()
    target.close()
    return group


def _write(pieces: Sequence[Piece], store: Store, options: dict[str, Any]) -> None:
    """Write all data."""
    _write_loaded(pieces, store)
    chunked = [piece for piece in pieces if piece.is_chunked]
    is_here = "scheduler" not in options and not is_elsewhere()
    with gathered([piece.array for piece in chunked], [is_here and _is_cut(piece) for piece in chunked]) as targets:
        through_gates(targets, lambda gates: _sync(chunked, gates, options, compute=True))


def _is_cut(piece: Piece) -> bool:
    """Return whether chunks of dask end within stored chunks, which would be stored several times."""
    chunks = piece.variable.chunks
    return chunks is not None and not ends_with_chunks(chunks, piece.array.write_chunk_sizes, piece.region)


def _write_loaded(pieces: Sequence[Piece], store: Store) -> None:
    """Write all arrays except dask arrays, concurrently if the store has latency."""
    loaded = [piece for piece in pieces if not piece.is_chunked]
    pool.run(Piece.write, loaded, min(store.features.concurrency, len(loaded)), 1)


def _sync(pieces: Sequence[Piece], targets: Sequence[Any], options: dict[str, Any], *, compute: bool) -> Any:
    """Write dask arrays to targets, or return what does that."""
    writer = internals.ArrayWriter()
    for piece, target in zip(pieces, targets, strict=True):
        writer.add(piece.variable.data, target, piece.region)
    return writer.sync(compute=compute, chunkmanager_store_kwargs=options)


def _outlast(target: _Target, pieces: Sequence[Piece]) -> None:
    """Load data that is read from where it would be replaced. Raises an error for such dask arrays."""
    for piece in pieces:
        if any(source.store_path.lies_in(target.where) for source in piece.sources()):
            if piece.is_chunked:
                raise ValueError(
                    f"{target.where}: the data of {piece.name!r} is read from what mode='w' would remove before it "
                    "is read; write it to another place, or load it before"
                )
            piece.variable.load()
