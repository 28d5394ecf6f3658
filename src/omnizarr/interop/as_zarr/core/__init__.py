"""What zarr-python has in `zarr.core`, as far as other packages import it."""
