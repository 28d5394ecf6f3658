"""The elements of an HDF5 dataset: those that are stored, and what replaces all others.

A dataset may be shorter than the dimensions of its variable, or lack a chunk. There netCDF-C and HDF5 sometimes leave
what was in memory before, or fail; so only what is stored is read.

Spec: NetCDF-4 Format; HDF5 File Format, "Data Layout Message".
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.netcdf import types
from omnizarr.netcdf.files import hdf5 as files_hdf5
from omnizarr.netcdf.files.libraries import h5py
from omnizarr.netcdf.files.values import filled
from omnizarr.netcdf.header import Selection
from omnizarr.netcdf.types import AnyType

Read: TypeAlias = Callable[[Selection], NDArray[Any]]


def is_filled(dataset: Any) -> bool:
    """Return whether unwritten elements hold a fill value that was defined."""
    return bool(dataset.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED)


# Elements that are not stored


def within(read: Read, stored: Sequence[int], dtype: np.dtype[Any], fill: Any) -> Read:
    """Return what reads the part of a selection that lies in a stored shape; the rest is `fill`."""

    def bounded(selection: Selection) -> NDArray[Any]:
        inside = tuple(
            slice(min(each.start, size), min(each.stop, size)) for each, size in zip(selection, stored, strict=True)
        )
        if inside == selection:
            return read(selection)
        result = filled(_lengths(selection), dtype, fill)
        lengths = _lengths(inside)
        if 0 not in lengths:
            result[tuple(map(slice, lengths))] = read(inside)
        return result

    return bounded


def by_chunks(read: Read, dataset: Any, dtype: np.dtype[Any], fill: Any) -> Read:
    """Return what reads only chunks that are stored; elsewhere is `fill`."""
    is_whole = functools.cache(lambda: _is_whole(dataset))
    chunks = dataset.chunks

    def read_stored(selection: Selection) -> NDArray[Any]:
        shape = _lengths(selection)
        if not all(shape):
            return np.empty(shape, dtype)
        if is_whole():
            return read(selection)
        result = filled(shape, dtype, fill)
        if chunks is not None and dataset.id.get_num_chunks():
            limits = [
                range(each.start // chunk, -(-each.stop // chunk))
                for each, chunk in zip(selection, chunks, strict=True)
            ]
            counts = [*map(len, limits)]
            places = itertools.product(*limits)
            stored = np.fromiter((_is_stored(dataset, each) for each in places), bool, math.prod(counts))
            stored = stored.reshape(counts)
            corner = tuple(each.start for each in limits)
            for part in _parts(selection, chunks, stored, corner):
                result[tuple(map(_moved, part, selection))] = read(part)
        return result

    return read_stored


def _is_whole(dataset: Any) -> bool:
    """Return whether everything is stored, or lies elsewhere."""
    if dataset.chunks is None:
        is_contiguous = dataset.id.get_create_plist().get_layout() == h5py.h5d.CONTIGUOUS
        return bool(not is_contiguous or dataset.external or dataset.id.get_storage_size())
    count = math.prod(-(-size // chunk) for size, chunk in zip(dataset.shape, dataset.chunks, strict=True))
    return bool(dataset.id.get_num_chunks() == count)


def _is_stored(dataset: Any, place: Sequence[int]) -> bool:
    offset = tuple(at * chunk for at, chunk in zip(place, dataset.chunks, strict=True))
    return dataset.id.get_chunk_info_by_coord(offset).byte_offset is not None


def _parts(
    selection: Selection, chunks: Sequence[int], stored: NDArray[Any], corner: Sequence[int]
) -> Iterator[Selection]:
    """Yield parts of a selection, as large as easily found, in which all chunks are stored."""
    if stored.all():
        yield selection
    elif stored.any():
        axis = int(np.argmax(stored.shape))
        middle = stored.shape[axis] // 2
        cut = (corner[axis] + middle) * chunks[axis]
        for half, bounds, start in (
            (slice(0, middle), slice(selection[axis].start, cut), corner[axis]),
            (slice(middle, None), slice(cut, selection[axis].stop), corner[axis] + middle),
        ):
            inside = (*selection[:axis], bounds, *selection[axis + 1 :])
            where = (*(slice(None),) * axis, half)
            yield from _parts(inside, chunks, stored[where], (*corner[:axis], start, *corner[axis + 1 :]))


def _moved(part: slice, selection: slice) -> slice:
    return slice(part.start - selection.start, part.stop - selection.start)


def _lengths(selection: Selection) -> tuple[int, ...]:
    return tuple(each.stop - each.start for each in selection)


# Reading and writing through h5py


def reader(dataset: Any, nc_type: AnyType) -> Read:
    """Return what reads a dataset."""
    convert = _to_strings if nc_type is types.STRING else _to_native(nc_type.dtype)

    def read(selection: Selection) -> NDArray[Any]:
        shape = _lengths(selection)
        values = np.empty(shape, dataset.dtype) if dataset.dtype.hasobject else np.zeros(shape, dataset.dtype)
        if values.size:
            space = dataset.id.get_space()
            if shape:
                space.select_hyperslab(tuple(each.start for each in selection), shape)
            dataset.id.read(h5py.h5s.create_simple(shape) if shape else space, space, values, _memory(dataset))
        return convert(values)

    return read


def _memory(dataset: Any) -> Any:
    """Return the type of values in memory: as they are stored, so that characters lose nothing, unless by reference."""
    return None if dataset.dtype.hasobject else dataset.id.get_type()


def _to_strings(values: NDArray[Any]) -> NDArray[Any]:
    return files_hdf5.strings(bytes(each) for each in values.ravel()).reshape(values.shape)


def _to_native(dtype: np.dtype[Any]) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def convert(values: NDArray[Any]) -> NDArray[Any]:
        if values.dtype.kind in "bc":  # h5py's reading of an enum of FALSE and TRUE, and of a pair of r and i
            return values.astype(values.dtype.newbyteorder("="), copy=False).view(dtype)
        return values.astype(dtype, copy=False)

    return convert


def write(dataset: Any, selection: Selection, values: NDArray[Any]) -> None:
    """Write values, and make the dataset longer where that needs it."""
    shape = tuple(max(each.stop, size) for each, size in zip(selection, dataset.shape, strict=True))
    if shape != dataset.shape:
        dataset.resize(shape)
    if dataset.dtype.kind == "c" and values.dtype.names:  # h5py's reading of a pair of r and i
        values = np.ascontiguousarray(values).view(dataset.dtype.newbyteorder("=")).reshape(values.shape)
    values = np.ascontiguousarray(values).astype(dataset.dtype, copy=False)
    space = dataset.id.get_space()
    if selection:
        space.select_hyperslab(tuple(each.start for each in selection), values.shape)
    dataset.id.write(h5py.h5s.create_simple(values.shape) if selection else space, space, values, _memory(dataset))
