"""What readers write in documents of Zarr v3: an array in a regular grid, and the codec of its elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def array_document(
    shape: Sequence[int], data_type: Any, chunks: Sequence[int], fill_value: Any, codecs: list[dict[str, Any]],
    attributes: dict[str, Any], names: list[str | None] | list[str],
) -> dict[str, Any]:  # fmt: skip
    """Return the document of an array."""
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value,
        "codecs": codecs,
        "attributes": attributes,
        "dimension_names": names,
    }


def bytes_codec(endian: str, itemsize: int) -> dict[str, Any]:
    """Return the codec that turns elements into bytes."""
    return {"name": "bytes", "configuration": {"endian": endian}} if itemsize > 1 else {"name": "bytes"}
