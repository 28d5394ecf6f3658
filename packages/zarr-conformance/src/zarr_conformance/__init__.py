"""Cases that any implementation of Zarr can run, compared by value."""

__version__ = "0.1.0"
