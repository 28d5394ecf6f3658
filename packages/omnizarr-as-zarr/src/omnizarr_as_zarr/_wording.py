"""Error messages of zarr-python, in front of omnizarr's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from omnizarr.errors import OmnizarrError

_WORDS: Final[Mapping[str, str]] = {
    "an array is in the way: nodes cannot lie below it": (
        "A parent of the node is an array - only groups may have child nodes."
    ),
    "cannot be written as Zarr v2: chunk key encoding 'default' has no place there": (
        "chunk_key_encoding cannot be used for arrays with zarr_format 2. Use dimension_separator instead."
    ),
    "cannot be written as Zarr v2: dimension names have no place there": (
        "Zarr format 2 arrays do not support dimension names."
    ),
    "only booleans can be packed": "Packbits filter requires bool dtype.",
    "no data type is given": "dtype was not specified",
    "no shape is given": "shape was not specified",
    "the store is read-only": "store was opened in read-only mode and does not support writing",
    "the value does not fit the selection": (
        "Attempting to set a selection of {expected} elements with an array of {found} elements."
    ),
    "there is an array of another data type": "Incompatible dtype ({found} vs {expected})",
    "there is an array of another shape": "Incompatible shape ({found} vs {expected})",
    "there is no consolidated metadata": (
        "Consolidated metadata requested with 'use_consolidated=True' but not found in '{path}'."
    ),
    "Zarr v2 has no serializer": "Zarr format 2 arrays do not support `serializer`.",
    "Zarr v2 has no shards": "Zarr format 2 arrays can only be created with `shard_shape` set to `None`.",
}
"""By the message of omnizarr. Other packages, and their tests, look for these words."""


@contextmanager
def worded() -> Iterator[None]:
    """Give errors that leave a ``with`` block the words of zarr-python, too."""
    try:
        yield
    except OmnizarrError as error:
        words = _WORDS.get(error.message)
        if words is not None:
            said = words.format(found=error.found, expected=error.expected, path=error.path or "")
            error.message = f"{said}: {error.message}"
        raise
