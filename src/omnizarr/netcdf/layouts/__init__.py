"""The layouts of NCZarr: how netCDF is stored in Zarr, read and written.

Reading never raises an error about NCZarr's metadata. What is not valid becomes a `Note`, and the plain Zarr view is
used instead.

Spec: NCZarr, "NCZarr versus Pure Zarr", "Appendix C", "Appendix D", "Appendix E".
"""

from omnizarr.netcdf.layouts.contract import Layout, Loaded, Marks, Stored
from omnizarr.netcdf.layouts.loading import load, read_group, read_stored, read_variable
from omnizarr.netcdf.layouts.writing import LAYOUTS, new_special

__all__ = [
    "LAYOUTS",
    "Layout",
    "Loaded",
    "Marks",
    "Stored",
    "load",
    "new_special",
    "read_group",
    "read_stored",
    "read_variable",
]
