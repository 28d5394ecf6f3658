"""What every room may use, and what knows nothing of Zarr."""
