"""The libraries that read and write HDF5 and netCDF files, imported when a file is opened."""

from typing import TYPE_CHECKING

from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import h5py
    import netCDF4
else:
    h5py, netCDF4 = Lazy("h5py"), Lazy("netCDF4")  # noqa: N816 (the name of the package)

__all__ = ["h5py", "netCDF4"]
