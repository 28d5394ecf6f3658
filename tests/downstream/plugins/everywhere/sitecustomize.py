"""Runs when Python starts, as its folder is on the path: ``import zarr`` finds omnizarr in this process.

So it does in the workers of pytest-xdist, dask and multiprocessing, and before pytest reads settings that import zarr.
"""

import omnizarr_as_zarr as as_zarr

as_zarr.install()
