"""Warnings of zarr-python about the creation of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from omnizarr.codecs.values import ShardingCodec
from omnizarr.formats import dialects_for
from omnizarr.settings import config as settings
from omnizarr_as_zarr.errors import (
    MetadataValidationError,
    ZarrDeprecationWarning,
    ZarrRuntimeWarning,
    ZarrUserWarning,
    warn,
)

IGNORED: Final = ("cache_attrs", "cache_metadata", "chunk_store", "meta_array", "read_only")
"""Keywords without effect."""


def checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords of a new array as omnizarr takes them, after the warnings that zarr-python gives."""
    found = with_format(options)
    for name in IGNORED:
        if found.pop(name, None) is not None:
            warn(f"{name} is not yet implemented", ZarrRuntimeWarning)
    if found.get("order") is not None and (found.get("zarr_format") or settings.get("default_zarr_format")) == 3:
        warn(
            "The `order` keyword argument has no effect for Zarr format 3 arrays. To control the memory layout of the "
            "array, either use the `config` keyword argument, as in `config={'order': 'C'}`, or change the global "
            "'array.order' configuration variable.",
            ZarrRuntimeWarning,
        )
        del found["order"]
    if found.get("write_empty_chunks") is not None:
        warn(
            "The `write_empty_chunks` keyword argument is deprecated and will be removed in future versions. To "
            "control whether empty chunks are written to storage, either use the `config` keyword argument, as in "
            "`config={'write_empty_chunks': True}`, or change the global 'array.write_empty_chunks' configuration "
            "variable.",
            ZarrRuntimeWarning,
        )
    if isinstance(found.get("shards"), str):
        warn(
            "Automatic shard shape inference is experimental and may change without notice.",
            ZarrUserWarning,
        )
    if isinstance(found.get("serializer"), ShardingCodec) and _has_some(found.get("compressors", "auto")):
        warn(
            "Combining a `sharding_indexed` codec disables partial reads and writes, which may lead to inefficient "
            "performance; give its own compressors to it instead.",
            ZarrUserWarning,
        )
    return found


def with_format(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords with what zarr-python once called `zarr_version` under its name."""
    found = dict(options)
    version = found.pop("zarr_version", None)
    if version is not None:
        if found.get("zarr_format") not in {None, version}:
            raise ValueError(
                f"zarr_format {found['zarr_format']} does not match zarr_version {version}, please only set one"
            )
        warn("zarr_version is deprecated, use zarr_format", ZarrDeprecationWarning)
        found["zarr_format"] = version
    if found.get("zarr_format") is not None:
        try:
            dialects_for(found["zarr_format"])
        except ValueError as error:
            message = f"Invalid value for 'zarr_format'. Expected 2, 3, or None. Got {found['zarr_format']!r}."
            raise MetadataValidationError(message) from error
    return found


def _has_some(compressors: Any) -> bool:
    return compressors is not None and (not hasattr(compressors, "__len__") or len(compressors) > 0)
