"""A plugin of pytest for netCDF4-python's own tests: ``import netCDF4`` finds `omnizarr.netcdf`, and files are Zarr.

Formats that NCZarr does not have become the one that it has. Names that are about netCDF-C, and the helpers of the
package's programs, are those of netCDF4-python.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import files_as_zarr
import netCDF4 as original  # noqa: N813 - it replaces the original

from omnizarr import netcdf

pytest_plugins = ("files_as_zarr",)

HAS = ("rename_grp", "nc_inq_path", *(f"{each}_support" for each in ("quantization", "zstandard", "bzip2", "blosc")))
LACKS = ("cdf5_format", "nc_create_mem", "nc_open_mem", "set_alignment", "nc_rc_set", "parallel4_support")
ABOUT_C = (
    "__version__",
    "__netcdf4libversion__",
    "__hdf5libversion__",
    "__path__",
    "getlibversion",
    "rc_get",
    "rc_set",
)
HDF5 = ("get_alignment", "set_alignment", "rc_get", "rc_set")
TYPES = ("CompoundType", "EnumType", "VLType")
CLASSIC = {"NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT"}

_make, _close = netcdf.Dataset.__init__, netcdf.Dataset.close


def make(self: Any, filename: Any, mode: str = "r", clobber: bool = True, format: str = "", **options: Any) -> None:  # noqa: A002
    if format not in CLASSIC:
        options |= {"format": format} if format else {}
    _make(self, files_as_zarr.place(filename, mode), mode, clobber, **options)
    self._filename = str(filename)


def close(self: Any) -> None:
    _close(self)
    files_as_zarr.show_size(self.filepath())


def as_netcdf4() -> ModuleType:
    """Return the replacement of the module netCDF4."""
    module = ModuleType("netCDF4")
    module.__dict__.update({name: getattr(netcdf, name) for name in netcdf.__all__})
    module.__dict__.update({name: getattr(original, name) for name in (*ABOUT_C, *HDF5, *TYPES)})
    module.__dict__.update({f"__has_{each}__": True for each in (*HAS, "szip_support")})
    module.__dict__.update({f"__has_{each}__": False for each in (*LACKS, "pnetcdf_support")})
    return module


netcdf.Dataset.__init__ = make
netcdf.Dataset.close = close
sys.modules["netCDF4"] = named = as_netcdf4()
spec = spec_from_file_location("netCDF4.utils", Path(original.__file__).parent / "utils.py")
named.utils = sys.modules["netCDF4.utils"] = module_from_spec(spec)
spec.loader.exec_module(named.utils)


def pytest_report_header() -> str:
    import netCDF4

    if netCDF4 is not named:
        raise RuntimeError(f"netCDF4 is {netCDF4.__file__}: what passes here would say nothing of omnizarr")
    return "netCDF4 is omnizarr.netcdf"
