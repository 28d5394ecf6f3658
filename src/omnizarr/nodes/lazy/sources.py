"""Sources of lazy arrays that change while the lazy array lives: an error that names the source, never other values.

Joins look at their sources before they read: at the shape and the data type that a source has now, and for
directories at the file of the document, whose size and times are known from when the join was made. A request to a
server would cost as much as reading, so what is far is looked at only where all elements that were read have the fill
value, as those of an array that has gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnizarr.errors import ArrayNotFoundError, StaleError
from omnizarr.model import ArrayMetadata, Named
from omnizarr.nodes import detection
from omnizarr.nodes.location import dialect_of
from omnizarr.stores import LocalStore, pool

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from omnizarr.nodes.lazy.tree import Leaf

Stamp = tuple[int, ...]

_AT_ONCE: Final = 16
_REMEDY: Final = "it was changed since the lazy array was made: make that again"
_ELEMENTS: Final = ("shape", "data_type", "chunk_grid", "codecs", "fill_value")
"""Members of metadata that say which elements an array has."""


def stamp(source: Any) -> Stamp | None:
    """Return what tells a change of the document of an array in a directory; None if nothing does at no cost."""
    metadata = metadata_of(source)
    if metadata is None or type(source.store_path.store) is not LocalStore:
        return None
    where = source.store_path
    dialect = dialect_of(where, metadata)
    document, _ = dialect.keyspace.of_array(where.path, dialect.array_document)
    try:
        found = os.stat(f"{where.store.root}/{document}")  # noqa: PTH116 - several times faster
    except OSError:  # consolidated metadata can be all that there is
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def metadata_of(source: Any) -> ArrayMetadata | None:
    """Return the metadata of an open array of omnizarr; None for other sources, and those that are not open."""
    if not hasattr(type(source), "_prepare"):  # no array, or one that is opened when it is read
        return None
    found = source._metadata  # noqa: SLF001 - a part of Array
    return found if isinstance(found, ArrayMetadata) else None


def check(leaf: Leaf) -> None:
    """Raise StaleError, or ArrayNotFoundError, if a source has other elements than when it was joined."""
    if not leaf.is_watched:
        return
    source = leaf.source
    shape, dtype = tuple(source.shape), np.dtype(source.dtype)
    if (shape, dtype) != (leaf.shape, leaf.dtype):
        raise _changed(leaf, f"shape {shape}, data type {dtype}")
    if leaf.stamp is not None and stamp(source) != leaf.stamp:
        check_document(leaf)


def check_filled(read: Iterable[tuple[Leaf, Any]]) -> None:
    """Look at the documents of far sources of which only fill values were read."""
    doubtful = {
        id(leaf): leaf
        for leaf, values in read
        if leaf.is_watched and leaf.stamp is None and _is_doubtful(leaf, np.asarray(values))
    }
    if doubtful:
        for _ in pool.gather(check_document, list(doubtful.values()), min(len(doubtful), _AT_ONCE)):
            pass


def _is_doubtful(leaf: Leaf, values: NDArray[Any]) -> bool:
    if metadata_of(leaf.source) is None or leaf.dtype.hasobject or leaf.dtype.names or not values.size:
        return False
    fill = leaf.source.fill_value
    if fill is None:
        return False
    first = values[(0,) * values.ndim]
    if not (first == fill or (first != first and fill != fill)):  # noqa: PLR0124 - NaN
        return False
    same = values == fill
    return bool(np.all(same if fill == fill else same | (values != values)))  # noqa: PLR0124 - NaN


def check_document(leaf: Leaf) -> None:
    """Raise StaleError, or ArrayNotFoundError, if the stored metadata of a source describe other elements."""
    where, known = leaf.source.store_path, leaf.source._metadata  # noqa: SLF001 - a part of Array
    found = detection.detect(where)
    if found is None:
        dialect = dialect_of(where, known)
        document, _ = dialect.keyspace.of_array(where.path, dialect.array_document)
        detection.check_there(where, document)
        return
    now = found.metadata
    if not isinstance(now, ArrayMetadata):
        raise ArrayNotFoundError(
            "the array is not there any more", store=str(where.store), path=where.path, found="a group", remedy=_REMEDY
        )
    for name in _ELEMENTS:
        old, new = getattr(known, name), getattr(now, name)
        if old != new and not (old != old and new != new):  # noqa: PLR0124 - NaN
            raise _changed(leaf, f"{name} {_shown(new)}", f"{name} {_shown(old)}")


def _shown(value: Any) -> str:
    if isinstance(value, Named):
        return f"{value.name} {dict(value.configuration)}" if value.configuration else value.name
    is_list = isinstance(value, tuple) and any(isinstance(each, Named) for each in value)
    return ", ".join(map(_shown, value)) if is_list else str(value)


def _changed(leaf: Leaf, found: str, expected: str = "") -> StaleError:
    where = getattr(leaf.source, "store_path", None)
    return StaleError(
        "a source of a lazy array has changed",
        store=type(leaf.source).__name__ if where is None else str(where.store),
        path=None if where is None else where.path,
        found=found,
        expected=expected or f"shape {leaf.shape}, data type {leaf.dtype}",
        remedy=_REMEDY,
    )
