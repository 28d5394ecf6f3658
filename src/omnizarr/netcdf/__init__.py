"""The netCDF-4 data model on Zarr, with the names that netCDF4-python has for it.

Spec: NCZarr.
"""
