"""Base classes of stores and codecs in zarr-python."""
