"""The netCDF-4 data model on Zarr, under the names of netCDF4-python. It needs no part of netCDF-C.

>>> from omnizarr import netcdf
>>> values = {}  # or a path, or a URL
>>> with netcdf.Dataset(values, "w") as ds:
...     time, lat = ds.createDimension("time", None), ds.createDimension("lat", 2)
...     sst = ds.createVariable("sst", "f4", ("time", "lat"), fill_value=-999)
...     sst.units = "K"
...     sst[0] = [280.5, -999]
>>> netcdf.Dataset(values)["sst"][0]
masked_array(data=[280.5, --],
             mask=[False,  True],
       fill_value=-999.0,
            dtype=float32)

Spec: NCZarr.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from omnizarr.netcdf.chars import chartostring, stringtoarr, stringtochar
    from omnizarr.netcdf.chunk_cache import get_chunk_cache, set_chunk_cache
    from omnizarr.netcdf.dataset import Dataset
    from omnizarr.netcdf.dimension import Dimension
    from omnizarr.netcdf.group import Group
    from omnizarr.netcdf.header import Attribute
    from omnizarr.netcdf.multifile import MFDataset, MFTime
    from omnizarr.netcdf.types import NcType, UserType, default_fillvals
    from omnizarr.netcdf.variable import Variable

# The module of each name. Names are imported at first use, because `omnizarr info` needs only one function.
_NAMES: Final = {
    "Attribute": "omnizarr.netcdf.header",
    "Dataset": "omnizarr.netcdf.dataset",
    "Dimension": "omnizarr.netcdf.dimension",
    "Group": "omnizarr.netcdf.group",
    "MFDataset": "omnizarr.netcdf.multifile",
    "MFTime": "omnizarr.netcdf.multifile",
    "NcType": "omnizarr.netcdf.types",
    "UserType": "omnizarr.netcdf.types",
    "Variable": "omnizarr.netcdf.variable",
    "chartostring": "omnizarr.netcdf.chars",
    "default_fillvals": "omnizarr.netcdf.types",
    "get_chunk_cache": "omnizarr.netcdf.chunk_cache",
    "set_chunk_cache": "omnizarr.netcdf.chunk_cache",
    "stringtoarr": "omnizarr.netcdf.chars",
    "stringtochar": "omnizarr.netcdf.chars",
    # Names of cftime, which is optional.
    "date2index": "cftime",
    "date2num": "cftime",
    "num2date": "cftime",
}

__all__ = [
    "Attribute",
    "Dataset",
    "Dimension",
    "Group",
    "MFDataset",
    "MFTime",
    "NcType",
    "UserType",
    "Variable",
    "chartostring",
    "date2index",
    "date2num",
    "default_fillvals",
    "get_chunk_cache",
    "is_native_big",
    "is_native_little",
    "num2date",
    "set_chunk_cache",
    "stringtoarr",
    "stringtochar",
]

is_native_little: Final = sys.byteorder == "little"
is_native_big: Final = not is_native_little


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_NAMES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})
