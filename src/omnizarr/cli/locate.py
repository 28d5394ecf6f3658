"""From what is typed to a node: a hierarchy, an archive, references of Kerchunk, or a place inside one of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from omnizarr.api import opening
from omnizarr.cli import trace
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath
from omnizarr.stores import resolve
from omnizarr.stores.resolve import has_references


def open_node(text: str) -> Array | Group:
    """Return the node at ``x.zarr``, ``x.zarr/a/b``, ``x.zip/a/b``, ``refs.json/a/b``, or at a URL, to be read.

    Documents are read themselves, not copies of them: what is shown is what is there.

    Raises
    ------
    NodeNotFoundError
        If there is none; it says which names come near.
    OmnizarrError, OSError
    """
    if "://" in text:
        return _open(text)
    place = Path(text).expanduser()
    inside: list[str] = []
    while not place.exists() and place.parent != place:
        inside.insert(0, place.name)
        place = place.parent
    for above in place.parents if place.is_dir() and not _is_node(place) else ():
        if has_references(os.fspath(above)):  # a set in Parquet has directories called as its arrays
            return _open(above, "/".join([*place.relative_to(above).parts, *inside]))
    is_misspelt_name = len(inside) == 1 and place.is_dir() and not _is_node(place)
    if not inside or is_misspelt_name:
        return _open(text)
    return _open(place, "/".join(inside))


def watched(place: str | Path) -> Any:
    """Return a place; under ``--trace`` its store, which tells of the requests that it gets."""
    if not trace.is_on():
        return place
    store, path = resolve(place, "r")
    return StorePath(trace.watched(store), path)


def _open(place: str | Path, path: str | None = None) -> Array | Group:
    return opening.open(watched(place), mode="r", path=path, use_consolidated=False)


def _is_node(place: Path) -> bool:
    return any((place / name).exists() for name in ("zarr.json", ".zgroup", ".zarray"))
