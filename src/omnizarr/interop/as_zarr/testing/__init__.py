"""What zarr-python has for tests; pytest loads it where zarr-python is installed, whatever its name stands for."""
