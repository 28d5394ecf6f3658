"""A file in memory with the structure of an HDF5 file, for netCDF-C, which opens no file with certain things in it.

Those are datasets without a shape, links that lead nowhere, and attributes of a variable that are tables of numbers.
The skeleton has the groups, types, dimensions and variables of the file, but no values and no other attributes.

Spec: NetCDF-4 Format; HDF5 Dimension Scale Specification.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

import numpy as np

from omnizarr.netcdf.files import hdf5 as files_hdf5
from omnizarr.netcdf.files.libraries import h5py

_COPIED: Final = ("_Netcdf4Coordinates", "_Netcdf4Dimid", "_nc3_strict", "_FillValue")
_NAME: Final = "skeleton"


def image(root: Any, without: Container[str]) -> bytes:
    """Return the bytes of a file with the structure of another one, `without` members of these paths."""
    with h5py.File(_NAME, "w", driver="core", backing_store=False, track_order=True) as made:
        _Copy(without).group(root, made, "")
        made.flush()
        return bytes(made.id.get_file_image())


class _Copy:
    def __init__(self, without: Container[str]) -> None:
        self._without = without
        self._scales: dict[tuple[int, int], Any] = {}

    def group(self, source: Any, target: Any, path: str) -> None:
        _copy_attributes(source, target)
        datasets, groups = [], []
        for name in files_hdf5.member_names(source):
            each = None if f"{path}/{name}" in self._without else source[name]
            if isinstance(each, h5py.Dataset):
                datasets.append((each, _dataset(each, target, name)))
                self._scales[_address(each)] = datasets[-1][1]
            elif isinstance(each, h5py.Datatype):
                target[name] = each.dtype
            elif each is not None:
                groups.append((each, target.create_group(name, track_order=True), f"{path}/{name}"))
        for one, other in datasets:
            self._attach(one, other)
        for below in groups:
            self.group(*below)

    def _attach(self, source: Any, target: Any) -> None:
        """Give a dataset the dimensions of another one, as far as they are in its group or above."""
        if source.is_scale:
            h5py.h5ds.set_scale(target.id, h5py.h5ds.get_scale_name(source.id))
            return
        for axis, scales in enumerate(source.dims):
            for scale in scales.values():
                found = self._scales.get(_address(scale))
                if found is not None:
                    if not found.is_scale:
                        h5py.h5ds.set_scale(found.id, h5py.h5ds.get_scale_name(scale.id))
                    h5py.h5ds.attach_scale(target.id, found.id, axis)


def _address(dataset: Any) -> tuple[int, int]:
    info = h5py.h5o.get_info(dataset.id)
    return info.fileno, info.addr


def _dataset(source: Any, target: Any, name: str) -> Any:
    given, created = source.id.get_create_plist(), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if given.get_layout() == h5py.h5d.CHUNKED:
        created.set_chunk(given.get_chunk())
    elif source.maxshape != source.shape:
        created.set_chunk((1,) * source.ndim)
    created.set_attr_creation_order(h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED)
    space = source.id.get_space()
    h5py.h5d.create(target.id, name.encode(), source.id.get_type(), space, created)
    made = target[name]
    _copy_attributes(source, made)
    return made


def _copy_attributes(source: Any, target: Any) -> None:
    for name in _COPIED:
        if name in source.attrs and np.ndim(source.attrs[name]) < 2:
            files_hdf5.copy_attribute(source, target, name)
