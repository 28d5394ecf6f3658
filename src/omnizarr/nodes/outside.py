"""Arrays above the directory of a store, which the store does not see: it has keys only for what is below its root."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from omnizarr.errors import ContainsArrayError, OmnizarrError
from omnizarr.formats import DIALECTS
from omnizarr.model import ArrayMetadata
from omnizarr.nodes import detection
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore

DOCUMENTS: Final = tuple(
    dict.fromkeys(
        name
        for dialect in DIALECTS
        if dialect.entry_point is None
        for name in (dialect.group_document, dialect.array_document)
    )
)
"""Names of the documents that make a directory a node, in any format without an entry point."""


def refuse_array(where: StorePath) -> None:
    """Raise ContainsArrayError if a new directory of a store would lie in the directory of an array.

    This looks only where the store's directory does not exist yet, up to the nearest node.
    """
    if type(where.store) is not LocalStore or os.path.isdir(where.store.root):  # noqa: PTH112 - faster than Path
        return
    folder = str(Path(where.store.root).absolute())
    while (above := os.path.dirname(folder)) != folder:  # noqa: PTH120
        folder = above
        if any(os.path.isfile(os.path.join(folder, name)) for name in DOCUMENTS):  # noqa: PTH113, PTH118
            found = _node_in(folder)
            if isinstance(found, ArrayMetadata):
                raise ContainsArrayError(
                    "an array is in the way: nodes cannot lie below it",
                    store=str(where.store),
                    path=where.path,
                    found=f"an array at {folder!r}",
                    expected="a group",
                    remedy="choose another place",
                )
            if found is not None:
                return


def _node_in(folder: str) -> object:
    """Return the metadata of the node that a directory is; None if it is none, or if it is broken."""
    try:
        found = detection.here(StorePath(LocalStore(folder, read_only=True)), DIALECTS)
    except OmnizarrError:
        return None
    return None if found is None else found.metadata
