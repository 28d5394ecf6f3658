"""Test helpers under zarr-python's name: pytest loads this module if zarr-python is installed."""
