"""The functions of zarr-python."""
