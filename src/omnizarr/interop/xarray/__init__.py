"""xarray with omnizarr: the engine ``omnizarr``, which opens every Zarr as a dataset, and `to_zarr`, which writes one.

xarray finds the engine when omnizarr is installed. It opens every format that `omnizarr.open` opens, every store,
and single arrays. Hierarchies of NCZarr are read through the netCDF data model, with netCDF's types and
characters. In others, dimensions are those of `Array.dimension_names`. Dimensions without a name are called
``phony_dim_0`` and so on, one for each length, as in h5netcdf.

Missing values are those of xarray's own engine ``zarr``: in v3 the attribute ``_FillValue``, in v2 the fill
value. In older formats, a fill value is a mask only if dimensions have names.

When this module is imported, which xarray does when it looks for engines, datasets, data arrays and trees get an
attribute ``omnizarr``: see `Accessor`.

The engine works with xarray 2024.11 and later, writing with 2025.9 and later.

>>> import omnizarr
>>> import xarray
>>> old = omnizarr.create_array({}, data=[14.5, 15.0], zarr_format=1)
>>> xarray.open_dataset(old, engine="omnizarr")["data"].values
array([14.5, 15. ])
"""

from typing import TYPE_CHECKING, Any

from omnizarr.interop.xarray.accessors import Accessor, load, register
from omnizarr.interop.xarray.reading import OmnizarrBackendEntrypoint, as_variable

if TYPE_CHECKING:
    from omnizarr.interop.xarray.writing import to_zarr

__all__ = ["Accessor", "OmnizarrBackendEntrypoint", "as_variable", "load", "to_zarr"]

register()


def __getattr__(name: str) -> Any:
    if name == "to_zarr":  # it needs a later release of xarray than the engine does
        from omnizarr.interop.xarray import writing  # noqa: PLC0415

        return writing.to_zarr
    raise AttributeError(f"module 'omnizarr.interop.xarray' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
