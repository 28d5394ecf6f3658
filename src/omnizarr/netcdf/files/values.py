"""The values of variables in netCDF-4 and HDF5 files, as netCDF has them.

Numbers are read by the engine, from where the reader of the format says that chunks lie; anything else by the reader
itself. A dataset may be shorter than the dimensions of its variable: beyond its end are fill values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import BoundsCheckError, ChunkError, NodeNotFoundError, OmnizarrError
from omnizarr.netcdf import types
from omnizarr.netcdf.header import Selection
from omnizarr.netcdf.types import AnyType
from omnizarr.nodes import detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.location import StorePath
from omnizarr.readers.hdf5 import arrays, store
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.forms import Unshown
from omnizarr.readers.hdf5.outside import Files
from omnizarr.readers.hdf5.parts import Parts
from omnizarr.stores.manifests.store import ManifestStore

_FAILURES: Final = (OSError, RuntimeError, ValueError, KeyError, TypeError, MemoryError)


class _Known(NamedTuple):
    """A variable."""

    dataset: Dataset
    type: AnyType
    shape: tuple[int, ...]
    fill: Any
    files: Files
    name_of: Callable[[int], str]


class Values:
    """What reads the variables of a file, by their full names."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._arrays: dict[str, Array | None] = {}
        self._parts: dict[str, Parts] = {}

    def add(
        self,
        name: str,
        dataset: Dataset,
        nc_type: AnyType,
        shape: tuple[int, ...],
        fill: Any,
        files: Files,
        name_of: Callable[[int], str],
    ) -> None:
        """Note a variable.

        Parameters
        ----------
        name : str
        dataset : Dataset
        nc_type : NcType or UserType
        shape : tuple of int
        fill : object
            What stands beyond the end of its dataset.
        files : Files
            The file of the dataset, and what it may lead to.
        name_of : callable
            Returns the path of an object of that file by its address, for references.
        """
        self._known[name] = _Known(dataset, nc_type, shape, fill, files, name_of)

    def array(self, name: str) -> Array | None:
        """Return the array of Zarr that shows the dataset of a variable; None if its elements are none of Zarr."""
        if name not in self._arrays:
            self._arrays[name] = self._array(self._known[name])
        return self._arrays[name]

    @staticmethod
    def _array(known: _Known) -> Array | None:
        shown = arrays.show(known.dataset, known.name_of, known.files, is_v3_only=True)
        if isinstance(shown, Unshown):
            return None
        document = {"a/zarr.json": arrays.rendered(shown.document)}
        found = store.Documents(document, {} if shown.manifest is not None else {"a": shown})
        manifests = {} if shown.manifest is None else {"a": shown.manifest}
        where = StorePath(ManifestStore(found, manifests, known.files.listed), "a")
        return Array(where, detection.open_array(where).metadata)

    def read(self, name: str, selection: Selection) -> NDArray[Any]:
        """Return what is stored in a part of a variable."""
        known = self._known.get(name)
        if known is None:
            raise NodeNotFoundError("there is no such variable", path=name.lstrip("/"))
        check_bounds(name, known.shape, selection)
        try:
            return self._read(name, known, selection)
        except OmnizarrError as error:
            raise ChunkError("values cannot be read", path=name[1:], found=str(error)) from error
        except _FAILURES as error:
            raise ChunkError("values cannot be read", path=name[1:], found=str(error)) from error

    def _read(self, name: str, known: _Known, selection: Selection) -> NDArray[Any]:
        stored = known.dataset.shape
        inside = tuple(
            slice(min(each.start, size), min(each.stop, size)) for each, size in zip(selection, stored, strict=True)
        )
        if inside == selection:
            return self._stored(name, known, selection)
        result = filled(lengths(selection), known.type.dtype, known.fill)
        if 0 not in lengths(inside):
            _put(result, tuple(map(slice, lengths(inside))), self._stored(name, known, inside))
        return result

    def _stored(self, name: str, known: _Known, selection: Selection) -> NDArray[Any]:
        dtype = known.type.dtype
        if 0 in lengths(selection):
            return np.empty(lengths(selection), dtype)
        if _is_plain(known):
            array = self.array(name)
            if array is not None:
                found = np.asarray(array[selection])
                if found.dtype.kind == "b":
                    return found.view(dtype)
                return found.astype(dtype, copy=False)
        parts = self._parts.get(name)
        if parts is None:
            parts = self._parts[name] = Parts(known.dataset, known.name_of, known.files)
        result = filled(lengths(selection), dtype, self._unwritten(parts, known))
        for where, each in parts.read(selection):
            place = tuple(
                slice(part.start - start.start, part.stop - start.start)
                for part, start in zip(where, selection, strict=True)
            )
            _put(result, place, converted(each, known))
        return result

    @staticmethod
    def _unwritten(parts: Parts, known: _Known) -> Any:
        """Return what stands where nothing is stored."""
        raw = known.dataset.fill.raw
        if known.type.dtype == object:
            return known.fill
        return np.zeros((), known.type.dtype) if raw is None else converted(parts.values(raw), known)[0]


def _is_plain(known: _Known) -> bool:
    """Return whether the engine reads the elements: numbers, of enumerations too, and characters."""
    datatype = known.dataset.datatype
    if datatype.kind in {"integer", "float", "bitfield", "enum"}:
        return True
    return datatype.kind == "string" and datatype.size == 1


def converted(found: NDArray[Any], known: _Known) -> NDArray[Any]:
    """Return elements, as the reader gives them, in the type of their variable."""
    dtype = known.type.dtype
    if known.type is types.CHAR:
        return np.array([str(each).encode("utf-8", "surrogateescape") for each in found.ravel()], dtype).reshape(
            found.shape
        )
    if found.dtype == object and dtype.names:
        made = np.empty(found.shape, dtype)
        flat = made.reshape(-1)
        for at, each in enumerate(found.ravel().tolist()):
            flat[at] = each
        return made
    if found.dtype == object:
        return _cut(found) if known.dataset.datatype.kind == "string" else found
    if found.dtype.kind in "bc":
        return np.ascontiguousarray(found, found.dtype.newbyteorder("=")).view(dtype).reshape(found.shape)
    return found.astype(dtype, copy=False)


def _cut(found: NDArray[Any]) -> NDArray[Any]:
    """Return texts up to their first NUL."""
    made = np.empty(found.size, object)
    made[:] = [each.split("\0")[0] for each in found.ravel()]
    return made.reshape(found.shape)


def _put(result: NDArray[Any], place: Selection, found: NDArray[Any]) -> None:
    """Set elements, also where there are no dimensions: without the dots, the element would be an array then."""
    result[place + (...,)] = found  # noqa: RUF005 - mypy knows the type of this


def check_bounds(name: str, shape: Sequence[int], selection: Selection) -> None:
    """Raise BoundsCheckError if a selection leaves a variable."""
    if len(shape) != len(selection) or any(
        not 0 <= each.start <= each.stop <= size for each, size in zip(selection, shape, strict=True)
    ):
        raise BoundsCheckError("selection leaves the variable", path=name[1:], found=selection, expected=shape)


def lengths(selection: Selection) -> tuple[int, ...]:
    """Return the shape of a selection."""
    return tuple(each.stop - each.start for each in selection)


def filled(shape: Sequence[int], dtype: np.dtype[Any], fill: Any) -> NDArray[Any]:
    """Return an array of one value, which may be an array itself."""
    result = np.empty(shape, dtype)
    if dtype.kind != "O":
        result[...] = fill
        return result
    flat = result.reshape(-1)
    for index in range(flat.size):
        flat[index] = fill
    return result
