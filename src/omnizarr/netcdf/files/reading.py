"""Reading HDF5 files that lead to other files: structure and numbers from netCDF-C, the rest from HDF5.

Other files are read by `classic` and `netcdf4`.

Spec: NetCDF Classic Format; NetCDF-4 Format.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import BoundsCheckError, ChunkError, MetadataError, NodeNotFoundError, OmnizarrError
from omnizarr.model import Note
from omnizarr.netcdf import forms, types
from omnizarr.netcdf.files import elements, outside, skeleton, usertypes
from omnizarr.netcdf.files import hdf5 as files_hdf5
from omnizarr.netcdf.files.elements import Read
from omnizarr.netcdf.files.libraries import h5py, netCDF4
from omnizarr.netcdf.files.netcdf4 import PROPERTIES, QUANTIZE
from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, Selection, Source, VariableHeader
from omnizarr.netcdf.types import AnyType, NcType, UserType
from omnizarr.stores.trust import Trust

_FORMATS: Final = {
    "NETCDF4_CLASSIC": "netCDF-4 classic model",
    "NETCDF4": "netCDF-4",
}
_FAILURES: Final = (OSError, RuntimeError, ValueError, KeyError, AttributeError, TypeError)
"""Errors of netCDF4-python and h5py for broken files."""


@contextmanager
def opened(path: str, *, allowed: Trust) -> Iterator[Source]:
    """Open an HDF5 file that exists. `allowed`: other files that it may refer to."""
    with ExitStack() as stack:
        try:
            found = outside.check(path, allowed)
            hdf5 = stack.enter_context(h5py.File(path, "r", locking="best-effort"))
            files_hdf5.check_properties(hdf5)
            file = _opened(path, hdf5, found, stack)
        except OmnizarrError as error:
            raise error.add(store=path)
        except _FAILURES as error:
            raise MetadataError("netCDF-C cannot open this file", store=path, found=str(error)) from error
        yield Source(file.root, file.read)


def _opened(path: str, hdf5: Any, found: outside.Found, stack: ExitStack) -> _File:
    """Return a file as netCDF-C sees it, or, if it cannot open it, as it sees a skeleton of it."""
    if not found.left_out:
        try:
            return _File(_dataset(stack, path), hdf5, found)
        except _FAILURES:
            pass
    image = skeleton.image(hdf5, found.left_out)
    return _File(_dataset(stack, path, memory=image), hdf5, found, is_skeleton=True)


def _dataset(stack: ExitStack, path: str, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of variables that netCDF4-python ignores
        dataset = stack.enter_context(netCDF4.Dataset(path, "r", **options))
    dataset.set_auto_maskandscale(False)
    dataset.set_auto_chartostring(False)
    return dataset


class _File:
    """An open file: its header, and for each variable what reads it.

    `is_skeleton`: netCDF-C sees none of its values.
    """

    def __init__(self, dataset: Any, hdf5: Any, found: outside.Found, *, is_skeleton: bool = False) -> None:
        self._missing = found.missing
        self._left_out = found.left_out
        self._is_skeleton = is_skeleton
        self._readers: dict[str, tuple[tuple[int, ...], Read]] = {}
        self._named_types: list[tuple[Any, UserType]] = []
        self._sizes: dict[str, int] = {}
        self._is_netcdf = files_hdf5.is_of_netcdf(hdf5)
        self.root = self._group(dataset, hdf5, "", _global_special(dataset, hdf5))

    def read(self, name: str, selection: Selection) -> NDArray[Any]:
        """Return what is stored in a part of a variable."""
        if name not in self._readers:
            raise NodeNotFoundError("there is no such variable", path=name.lstrip("/"))
        shape, read = self._readers[name]
        if len(shape) != len(selection) or any(
            not 0 <= each.start <= each.stop <= size for each, size in zip(selection, shape, strict=True)
        ):
            raise BoundsCheckError("selection leaves the variable", path=name[1:], found=selection, expected=shape)
        try:
            return read(selection)
        except _FAILURES as error:
            raise ChunkError("values cannot be read", path=name[1:], found=str(error)) from error

    def _group(self, group: Any, hdf5: Any, path: str, special: Mapping[str, Attribute]) -> GroupHeader:
        dimensions = {
            name: DimensionHeader(name, each.size, each.isunlimited()) for name, each in group.dimensions.items()
        }
        self._sizes |= {f"{path}/{name}": each.size for name, each in dimensions.items()}
        defined = files_hdf5.named_types(hdf5)
        self._named_types = [*defined.values(), *self._named_types]
        attributes, notes = self._attributes(hdf5)
        return GroupHeader(
            name=path.rpartition("/")[2],
            dimensions=dimensions,
            types={name: each for name, (_, each) in defined.items()},
            variables=self._variables(group, hdf5, path, notes),
            attributes=attributes,
            special=special,
            groups={name: self._group(each, hdf5[name], f"{path}/{name}", {}) for name, each in group.groups.items()},
            notes=tuple(notes),
        )

    def _variables(self, group: Any, hdf5: Any, path: str, notes: list[Note]) -> dict[str, VariableHeader]:
        left_out = {name: f"{path}/{name}" for name in hdf5 if f"{path}/{name}" in self._left_out}
        notes += [Note(f"/variables/{name}", f"left out: {self._left_out[each]}") for name, each in left_out.items()]
        objects = {name: each for name, each in files_hdf5.members(hdf5).items() if name not in left_out}
        variables = {
            name: self._variable(each, objects[name], name, path, self._dimensions_of(each, objects[name], path))
            for name, each in group.variables.items()
        }
        unseen = [name for name, each in objects.items() if self._is_unseen(each, name, group)]
        for name in unseen:
            dimensions = self._scales(objects[name], path)
            if dimensions is None or files_hdf5.user_type_of(objects[name], self._named_types) is None:
                notes.append(Note(f"/variables/{name}", "left out: netCDF has no such type, or no such dimensions"))
            else:
                variables[name] = self._variable(None, objects[name], name, path, dimensions)
        if unseen:
            variables = {name: variables[name] for name in objects if name in variables}
        return variables

    def _dimensions_of(self, variable: Any, dataset: Any, path: str) -> tuple[str, ...]:
        """Return the full names of dimensions: of several of one name the right one, not the nearest."""
        if not files_hdf5.has_hidden_dimension(variable.dimensions, path, self._sizes):
            return _dimension_names(variable)
        return self._scales(dataset, path) or _dimension_names(variable)

    @staticmethod
    def _is_unseen(each: Any, name: str, group: Any) -> bool:
        return isinstance(each, h5py.Dataset) and name not in group.variables and name not in group.dimensions

    def _scales(self, dataset: Any, path: str) -> tuple[str, ...] | None:
        """Return the dimensions of a dataset that netCDF4-python ignored: its scales, or those without a name."""
        own = f"{path}/{files_hdf5.plain_name(dataset)}"
        if dataset.is_scale and dataset.ndim == 1 and own in self._sizes:
            return (own,)
        names: list[str] = []
        for size, scales in zip(dataset.shape, dataset.dims, strict=True):
            if len(scales):
                names.append(str(scales[0].name))
                continue
            same = [
                name
                for name, length in self._sizes.items()
                if length == size and name.startswith(f"{path}/phony_dim_") and name not in names
            ]
            names.append(same[0] if same else "")
        return tuple(names) if all(each in self._sizes for each in names) else None

    def _variable(
        self, variable: Any, dataset: Any, name: str, path: str, dimensions: tuple[str, ...]
    ) -> VariableHeader:
        attributes, notes = self._attributes(dataset)
        if f"{path}/{name}" in self._missing:
            file = self._missing[f"{path}/{name}"]
            notes.append(
                Note("/values", f"left out: they are in the file {file}, which is missing; read as fill values")
            )
        special = files_hdf5.storage(dataset)
        special |= {each: attributes.pop(each) for each in QUANTIZE if each in attributes}
        type_name = getattr(getattr(variable, "datatype", None), "name", None)
        nc_type: AnyType | None = files_hdf5.user_type_of(dataset, self._named_types, type_name)
        if nc_type is None:
            nc_type = self._atomic_type(variable, dataset)
        if variable is not None and isinstance(nc_type, NcType) and nc_type.dtype.itemsize > 1:
            order = variable.endian()
            if order != "native":
                special["_Endianness"] = Attribute.of(order)
        if not elements.is_filled(dataset):
            special["_NoFill"] = Attribute.of("true")
        shape = tuple(self._sizes[each] for each in dimensions)
        is_simple = isinstance(nc_type, NcType) and nc_type is not types.STRING and not files_hdf5.is_half(dataset)
        is_through_netcdf = is_simple and not self._is_skeleton and dimensions == _dimension_names(variable)
        read = _numbers(variable, nc_type) if is_through_netcdf else elements.reader(dataset, nc_type)
        fill = usertypes.fill(nc_type, attributes.get("_FillValue"))
        if nc_type.dtype == object:
            read = elements.by_chunks(read, dataset, nc_type.dtype, fill)
        elif "_NoFill" in special:
            read = elements.by_chunks(read, dataset, nc_type.dtype, np.zeros((), nc_type.dtype))
        self._readers[f"{path}/{name}"] = shape, elements.within(read, dataset.shape, nc_type.dtype, fill)
        return VariableHeader(
            name=name,
            type=nc_type,
            dimensions=dimensions,
            attributes=attributes,
            special={name: special[name] for name in sorted(special, key=lambda name: name in QUANTIZE)},
            notes=tuple(notes),
        )

    def _attributes(self, hdf5: Any) -> tuple[dict[str, Attribute], list[Note]]:
        """Return the attributes of a variable or group, and notes on those of types that netCDF does not have."""
        found, notes = {}, []
        for name in hdf5.attrs:  # netCDF-C skips those of unknown types, and lists none beside numbers in a table
            if files_hdf5.is_hidden(hdf5, name):
                continue
            attribute = files_hdf5.read_attribute(hdf5, name, is_netcdf=self._is_netcdf)
            if attribute is None:
                notes.append(Note(f"/attributes/{name}", "left out: neither netCDF nor JSON has its type"))
                continue
            found[name] = attribute
            if forms.kind(attribute):
                notes.append(Note(f"/attributes/{name}", forms.remark(name, attribute)))
        return found, notes

    @staticmethod
    def _atomic_type(variable: Any, dataset: Any) -> NcType:
        if files_hdf5.is_half(dataset):
            return types.FLOAT  # netCDF4-python may say something else
        return types.STRING if variable.dtype is str else types.of_dtype(variable.dtype)


def _dimension_names(variable: Any) -> tuple[str, ...]:
    return tuple(f"{each.group().path.rstrip('/')}/{each.name}" for each in variable.get_dims())


def _numbers(variable: Any, nc_type: AnyType) -> Read:
    """Return what reads a variable of numbers or characters through netCDF-C, which fills up what is missing."""

    def read(selection: Selection) -> NDArray[Any]:
        shape = tuple(each.stop - each.start for each in selection)
        if 0 in shape:
            return np.empty(shape, nc_type.dtype)
        return np.asarray(variable[selection or ...]).astype(nc_type.dtype, copy=False).reshape(shape)

    return read


def _global_special(dataset: Any, hdf5: Any) -> dict[str, Attribute]:
    special: dict[str, Any] = {}
    if PROPERTIES in hdf5.attrs:  # netCDF4-python writes beyond its memory for those of version 1
        properties = files_hdf5.read_attribute(hdf5, PROPERTIES)
        if properties is not None and isinstance(properties.python, str):
            special[PROPERTIES] = properties.python.rstrip("\0")
    special["_SuperblockVersion"] = np.array([hdf5.file.id.get_create_plist().get_version()[0]], "i4")
    special["_IsNetcdf4"] = np.array([dataset.getncattr("_IsNetcdf4")], "i4")
    special["_Format"] = _FORMATS[dataset.data_model]
    return {name: Attribute.of(value) for name, value in special.items()}
