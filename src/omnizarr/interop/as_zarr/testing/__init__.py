"""What zarr-python has for tests; pytest loads it if zarr-python is installed, whatever module has its name."""
