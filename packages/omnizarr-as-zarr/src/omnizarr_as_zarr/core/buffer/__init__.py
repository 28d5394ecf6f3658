"""Bytes as stores of zarr-python hand them over."""

from __future__ import annotations

from omnizarr_as_zarr.core.buffer import cpu
from omnizarr_as_zarr.core.buffer.cpu import (
    ArrayLike,
    Buffer,
    BufferPrototype,
    NDArrayLike,
    NDArrayLikeOrScalar,
    NDBuffer,
    default_buffer_prototype,
    numpy_buffer_prototype,
)

__all__ = [
    "ArrayLike",
    "Buffer",
    "BufferPrototype",
    "NDArrayLike",
    "NDArrayLikeOrScalar",
    "NDBuffer",
    "cpu",
    "default_buffer_prototype",
    "numpy_buffer_prototype",
]
