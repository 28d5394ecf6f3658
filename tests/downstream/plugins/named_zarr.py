"""A plugin of pytest: makes sure that ``import zarr`` finds omnizarr."""

import zarr

import omnizarr_as_zarr as as_zarr

if zarr is not as_zarr:
    raise RuntimeError(f"zarr is {zarr.__file__}: what passes here would say nothing of omnizarr")
