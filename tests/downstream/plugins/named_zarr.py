"""A plugin of pytest: ``import zarr`` finds omnizarr, in this process and in those that it starts."""

from omnizarr.interop import as_zarr

as_zarr.install()
