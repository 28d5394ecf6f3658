"""What conventions say of a node, with what the groups around it say: read when it is asked for."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions import Nodes
from omnizarr.formats.conventions import meaning as conventions
from omnizarr.metadata import as_model
from omnizarr.model import JSON, GroupMetadata
from omnizarr.nodes import detection
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.showing.around import Around
from omnizarr.stores import LocalStore

rows = conventions.rows
_MOST_ABOVE: Final = 4
"""Directories above that of a node that are asked whether they are groups."""


def of(node: Any) -> dict[str, JSON]:
    """Return what conventions say of an array or a group; the documents of groups above, and of levels, are read.

    Examples
    --------
    >>> import omnizarr
    >>> group = omnizarr.create_group({}, attributes={"proj:code": "EPSG:32633"})
    >>> of(group.create_array("heights", shape=(4, 3), dtype="f4", dimension_names=("y", "x")))
    {'crs': 'EPSG:32633', 'georeferenced_by': ['proj:']}
    """
    node = _in_its_hierarchy(node)
    return conventions.of(node.path, Around(node).nodes())


def own(path: str, metadata: Any) -> dict[str, JSON]:
    """Return what conventions say of a node by itself; nothing is read."""
    return conventions.of(path, Nodes({path: as_model(metadata)}))


def _in_its_hierarchy(node: Any) -> Any:
    """Return a node that was opened by its own directory as a member of the groups around it."""
    store = node.store
    if node.path or not isinstance(store, LocalStore):
        return node
    inner = root = Path(store.root).absolute()
    with suppress(OmnizarrError, OSError):
        for _ in range(_MOST_ABOVE):
            above = detection.find(StorePath(LocalStore(root.parent, read_only=True)))
            if not isinstance(above, GroupMetadata) or above.implicit:
                break
            root = root.parent
        if root != inner:
            place = StorePath(LocalStore(root, read_only=True)) / inner.relative_to(root).as_posix()
            return type(node)(place, node._metadata, node._config)  # noqa: SLF001 - `metadata` would copy all attributes
    return node
