"""Helpers for all other rooms, which know nothing about Zarr."""
