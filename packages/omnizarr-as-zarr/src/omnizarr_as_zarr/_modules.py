"""Which module of this package has the names of a module of zarr-python."""

from __future__ import annotations

from typing import Final

PACKAGE: Final = "omnizarr_as_zarr"

ELSEWHERE: Final = {
    "abc.buffer": "core.buffer",
    "buffer": "core.buffer",
    "buffer.cpu": "core.buffer.cpu",
    "codecs._v2": "codecs",
    "codecs.blosc": "codecs",
    "codecs.bytes": "codecs",
    "codecs.crc32c_": "codecs",
    "codecs.gzip": "codecs",
    "codecs.sharding": "codecs",
    "codecs.transpose": "codecs",
    "codecs.vlen_utf8": "codecs",
    "codecs.zstd": "codecs",
    "convenience": "api.synchronous",
    "core.attributes": "core.group",
    "core.buffer.core": "core.buffer",
    "core.dtype.common": "core.dtype",
    "core.dtype.npy": "core.dtype",
    "core.dtype.npy.bool": "core.dtype",
    "core.dtype.npy.bytes": "core.dtype",
    "core.dtype.npy.complex": "core.dtype",
    "core.dtype.npy.float": "core.dtype",
    "core.dtype.npy.int": "core.dtype",
    "core.dtype.npy.string": "core.dtype",
    "core.dtype.npy.structured": "core.dtype",
    "core.dtype.npy.time": "core.dtype",
    "core.dtype.registry": "core.dtype",
    "core.dtype.wrapper": "core.dtype",
    "core.metadata.v2": "core.metadata",
    "core.metadata.v3": "core.metadata",
    "creation": "api.synchronous",
    "dtype": "core.dtype",
    "storage._common": "storage",
    "storage._fsspec": "storage",
    "storage._local": "storage",
    "storage._logging": "storage",
    "storage._memory": "storage",
    "storage._obstore": "storage",
    "storage._wrapper": "storage",
    "storage._zip": "storage",
    "types": "core.array",
}
"""Modules of zarr-python whose names are found in another one here."""
