"""Write beside each .cdl here, as JSON, what ncgen makes of it: ``python make.py PATH_OF_NCGEN PATH_OF_NCDUMP``.

In the file that ``ncgen -4`` wrote, netCDF4-python says what groups, dimensions and variables there are, in which
order, and h5py the rest: netCDF4-python does not tell char from string attributes, and mistakes a dimension of an outer
group for one of the same name.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import h5py
import netCDF4
import numpy as np

NAMES = {"S1": "char", "i1": "byte", "i2": "short", "i4": "int", "i8": "int64", "f4": "float", "f8": "double"}
NAMES |= {"u1": "ubyte", "u2": "ushort", "u4": "uint", "u8": "uint64"}
HIDDEN = {"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties"}
HIDDEN |= {"_nc3_strict", "_NoFill"}

NOT_ITS_OWN = "_nc4_non_coord_"


def name_of(dtype: np.dtype) -> str:
    return NAMES.get(f"{dtype.kind}{dtype.itemsize}", "string")


def listed(values: np.ndarray) -> list:
    flat = np.asarray(values).ravel()
    if flat.dtype == object:
        return [each.decode() for each in flat.tolist()]
    if flat.dtype.kind == "S":
        return [each.decode("latin-1") or "\0" for each in flat.tolist()]
    return flat.tolist()


def attribute(owner: h5py.HLObject, name: str) -> list:
    stored = owner.attrs.get_id(name)
    text = h5py.check_string_dtype(stored.dtype)
    if text is not None and text.length is not None:  # of fixed length: char
        content = np.empty(stored.shape, stored.dtype)
        if stored.get_space().get_simple_extent_type() != h5py.h5s.NULL:
            stored.read(content)
        return ["char", content.tobytes().decode("latin-1").rstrip("\0")]
    if text is not None:
        return ["string", [str(each) for each in np.atleast_1d(owner.attrs[name]).ravel()]]
    return [name_of(stored.dtype), listed(owner.attrs[name])]


def attributes(owner: h5py.HLObject) -> dict:
    return {name: attribute(owner, name) for name in owner.attrs if name not in HIDDEN}


def user_type(dtype: np.dtype) -> dict:
    if (members := h5py.check_enum_dtype(dtype)) is not None:
        return {"kind": "enum", "size": dtype.itemsize, "members": {name: int(each) for name, each in members.items()}}
    if dtype.names:
        offsets = {name: dtype.fields[name][1] for name in dtype.names}
        return {"kind": "compound", "size": dtype.itemsize, "offsets": offsets}
    if h5py.check_vlen_dtype(dtype):
        return {"kind": "vlen"}
    return {"kind": "opaque", "size": dtype.itemsize}


def hdf5_name(name: str, group: h5py.Group) -> str:
    """Return what a variable is called in HDF5 if a dimension that is not its own has the name."""
    return f"{NOT_ITS_OWN}{name}" if f"{NOT_ITS_OWN}{name}" in group else name


def variable(stored: h5py.Dataset) -> dict:
    """Return type, dimensions and data, filled up to the lengths of the dimensions."""
    own = [stored.name.replace(NOT_ITS_OWN, "")] if "CLASS" in stored.attrs else []
    scales = [each[0] for each in stored.dims if len(each)]
    data = stored[...]
    if scales:
        shape = [length(each) for each in scales]
        data = np.full(shape, stored.fillvalue, stored.dtype)
        data[tuple(map(slice, stored.shape))] = stored[...]
    return {
        "type": name_of(stored.dtype) if stored.dtype != object else "string",
        "dimensions": [each.name.replace(NOT_ITS_OWN, "") for each in scales] or own,
        "data": listed(data),
    }


def length(scale: h5py.Dataset) -> int:
    """Return the length of a dimension: that of its longest variable."""
    lengths: list[int] = []

    def see(name: str, each: h5py.HLObject) -> None:
        if isinstance(each, h5py.Dataset):
            lengths.extend(n for n, dim in zip(each.shape, each.dims, strict=True) if len(dim) and dim[0] == scale)

    scale.file.visititems(see)
    return max([*lengths, 0], default=0)


def described(group: netCDF4.Dataset, stored: h5py.Group, path: str, into: dict) -> None:
    for name, each in group.dimensions.items():
        into["dimensions"][f"{path}/{name}"] = [len(each), each.isunlimited()]
    into["attributes"][path] = attributes(stored)
    for name in group.variables:
        full = f"{path}/{name}"
        into["variables"][full] = variable(stored[hdf5_name(name, stored)])
        into["attributes"][full] = attributes(stored[hdf5_name(name, stored)])
    for name, each in stored.items():
        if isinstance(each, h5py.Datatype):
            into["types"][f"{path}/{name}"] = user_type(each.dtype)
    for name, each in group.groups.items():
        into["groups"].append(f"{path}/{name}")
        described(each, stored[name], f"{path}/{name}", into)


def main(ncgen: str, ncdump: str) -> None:
    warnings.simplefilter("ignore")  # types that netCDF4-python does not know
    for cdl in sorted(Path(__file__).parent.glob("*.cdl")):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/x.nc"
            subprocess.run([ncgen, "-4", "-o", file, str(cdl)], check=True)
            found = {"dimensions": {}, "types": {}, "variables": {}, "attributes": {}, "groups": []}
            with netCDF4.Dataset(file) as dataset, h5py.File(file) as stored:
                described(dataset, stored, "", found)
            shown = subprocess.run([ncdump, "-hs", file], check=True, capture_output=True, text=True).stdout
            special = [line.strip() for line in shown.splitlines() if ":_" in line and "_FillValue" not in line]
            found["special"] = [line for line in special if "_NCProperties" not in line]
        lines = [f'"{key}": {json.dumps(part, ensure_ascii=False)}' for key, part in found.items()]
        cdl.with_suffix(".json").write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
