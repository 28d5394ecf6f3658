"""What stores and codecs are to zarr-python."""
