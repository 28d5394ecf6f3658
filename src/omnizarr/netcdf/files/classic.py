"""netCDF-3 files as datasets, through omnizarr's own reader.

Spec: NetCDF Classic Format, "The Format in Detail".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ChunkError, MetadataError, NodeNotFoundError, OmnizarrError
from omnizarr.netcdf import types
from omnizarr.netcdf.files import values
from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, Selection, Source, VariableHeader
from omnizarr.nodes import detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.location import StorePath
from omnizarr.readers import netcdf3
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.store import ManifestStore

_FORMATS: Final = {1: "classic", 2: "64-bit offset", 5: "cdf5"}


def opened(path: Path) -> Source:
    """Return a file as a dataset. Raises MetadataError if its header counts more than the file has, or is broken."""
    return in_store(File.at(path))


def in_store(file: File) -> Source:
    """Return a file in any store as a dataset. Raises what `opened` raises."""
    header, contents = netcdf3.read_header(file), netcdf3.read(file)
    if header is None or contents is None:
        raise MetadataError("this is not a netCDF-3 file", store=file.path)
    root = GroupHeader(
        dimensions={each.name: DimensionHeader(each.name, each.size, each.is_unlimited) for each in header.dimensions},
        variables={each.name: _variable(header, each) for each in header.variables},
        attributes=_attributes(header.attributes),
        special={"_Format": Attribute.of(_FORMATS[header.version])},
    )
    reading = _Values(ManifestStore(contents.documents, contents.manifests, [file]), root)
    return Source(root, reading.read, reading.array)


def _variable(header: netcdf3.Header, variable: netcdf3.Variable) -> VariableHeader:
    return VariableHeader(
        name=variable.name,
        type=types.of_dtype(variable.dtype),
        dimensions=tuple(f"/{header.dimensions[number].name}" for number in variable.dimensions),
        attributes=_attributes(variable.attributes),
    )


def _attributes(found: Mapping[str, netcdf3.Attribute]) -> dict[str, Attribute]:
    made = {}
    for name, each in found.items():
        if isinstance(each.value, str):
            made[name] = Attribute(types.CHAR, each.value)
        else:
            nc_type = types.of_dtype(each.value.dtype)
            made[name] = Attribute(nc_type, each.value.astype(nc_type.dtype))
    return made


class _Values:
    """What reads the variables of a file, by their full names."""

    def __init__(self, store: ManifestStore, root: GroupHeader) -> None:
        self._store = store
        self._root = root
        self._arrays: dict[str, Array] = {}

    def array(self, name: str) -> Array:
        """Return the array of a variable."""
        found = self._arrays.get(name)
        if found is None:
            where = StorePath(self._store, name[1:])
            found = self._arrays[name] = Array(where, detection.open_array(where).metadata)
        return found

    def read(self, name: str, selection: Selection) -> NDArray[Any]:
        """Return what is stored in a part of a variable."""
        variable = self._root.variables.get(name[1:])
        if variable is None:
            raise NodeNotFoundError("there is no such variable", path=name.lstrip("/"))
        array = self.array(name)
        values.check_bounds(name, array.shape, selection)
        try:
            return np.asarray(array[selection]).astype(variable.type.dtype, copy=False)
        except OmnizarrError as error:
            raise ChunkError("values cannot be read", path=name[1:], found=str(error)) from error
