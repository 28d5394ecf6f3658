"""Multiscale images: the levels of lower resolution, and their OME-Zarr metadata."""
