"""What is above the directory of a store, which the store does not see: it has keys only for what is below its root."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from omnizarr.errors import ContainsArrayError, OmnizarrError
from omnizarr.formats import DIALECTS
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.nodes import detection
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore
from omnizarr.stores.local.surroundings import files_in

DOCUMENTS: Final = tuple(
    dict.fromkeys(
        name
        for dialect in DIALECTS
        if dialect.entry_point is None
        for name in (dialect.group_document, dialect.array_document, dialect.consolidated.document)
        if name is not None
    )
)
"""Names of the documents that make a directory a node, in any format without an entry point."""


class Beyond(NamedTuple):
    """What is above a directory that does not exist yet."""

    folder: str
    """The nearest directory above that exists."""
    files: frozenset[str]
    """The documents in that directory."""
    below: str
    """The path of the missing directory from there, with slashes."""


def beyond(where: StorePath, *, is_resolved: bool = False) -> Beyond | None:
    """Return what is above the directory of a store; None if that exists, or if the store is of another kind.

    `is_resolved` says that `omnizarr.stores.resolve` has just made the store, and looked for its directory.
    """
    store = where.store
    if type(store) is not LocalStore or (is_resolved and store.knows_root):
        return None
    if not (is_resolved and store.is_missing) and os.path.exists(store.root):  # noqa: PTH110 - faster than Path, as below
        return None
    folder = root = store.root
    while (above := os.path.dirname(folder)) != folder:  # noqa: PTH120
        folder = above
        found = files_in(folder, DOCUMENTS)
        if found is not None:
            return Beyond(folder, found, root[len(folder) :].replace(os.sep, "/"))
    return None


def entered(where: StorePath, above: Beyond) -> StorePath | None:
    """Return the place if a missing directory names a node of a draft, whose entry point is further up.

    Nodes of a draft have no directories of their own, but users name them like those of other formats.
    """
    if detection.ENTRY not in above.files:
        return None
    store = LocalStore(above.folder, read_only=where.store.read_only)
    return detection.entered_at_root(StorePath(store) / f"{above.below}/{where.path}")


def refuse_array(where: StorePath, above: Beyond | None = None) -> GroupMetadata | None:
    """Raise ContainsArrayError if a new directory of a store would lie in the directory of an array.

    Return the nearest group above, if one has been seen. This looks only where the store's directory does not exist
    yet, up to the nearest node. What is `above` it is not looked for again.
    """
    above = above or beyond(where)
    if above is None:
        return None
    folder, found = above.folder, above.files
    while True:
        if found:
            metadata = _node_in(folder)
            if isinstance(metadata, ArrayMetadata):
                raise ContainsArrayError(
                    "an array is in the way: nodes cannot lie below it",
                    store=str(where.store),
                    path=where.path,
                    found=f"an array at {folder!r}",
                    expected="a group",
                    remedy="choose another place",
                )
            if isinstance(metadata, GroupMetadata):
                return metadata
        if (higher := os.path.dirname(folder)) == folder:  # noqa: PTH120
            return None
        folder, found = higher, files_in(higher, DOCUMENTS) or frozenset()


def _node_in(folder: str) -> object:
    """Return the metadata of the node that a directory is; None if it is none, or if it is broken."""
    try:
        found = detection.here(StorePath(LocalStore(folder, read_only=True)), DIALECTS)
    except OmnizarrError:
        return None
    return None if found is None else found.metadata
