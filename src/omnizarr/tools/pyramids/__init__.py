"""Multiscale images: the levels of lower resolution, and what OME-Zarr says of them."""
