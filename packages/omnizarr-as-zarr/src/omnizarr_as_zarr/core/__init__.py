"""The part of `zarr.core` that other packages import."""
