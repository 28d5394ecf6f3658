"""From what is typed to a node: a hierarchy, a place inside one, a zip archive, a place inside one."""

from __future__ import annotations

from pathlib import Path

from omnizarr import opening
from omnizarr.array import Array
from omnizarr.group import Group


def open_node(text: str) -> Array | Group:
    """Return the node at ``x.zarr``, ``x.zarr/a/b``, ``x.zip``, ``x.zip/a/b``, or at a URL, to be read.

    Documents are read themselves, not copies of them: what is shown is what is there.

    Raises
    ------
    NodeNotFoundError
        If there is none; it says which names come near.
    OmnizarrError, OSError
    """
    if "://" in text:
        return opening.open(text, mode="r", use_consolidated=False)
    place = Path(text).expanduser()
    inside: list[str] = []
    while not place.exists() and place.parent != place:
        inside.insert(0, place.name)
        place = place.parent
    is_misspelt_name = len(inside) == 1 and place.is_dir() and not _is_node(place)
    if not inside or is_misspelt_name:
        return opening.open(text, mode="r", use_consolidated=False)
    return opening.open(place, mode="r", path="/".join(inside), use_consolidated=False)


def _is_node(place: Path) -> bool:
    return any((place / name).exists() for name in ("zarr.json", ".zgroup", ".zarray"))
