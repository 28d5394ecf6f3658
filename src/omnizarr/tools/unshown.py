"""What a file of another format has that its store does not show, or shows as something else: losses of a copy.

A copy that begins with an open store or node has what the store shows, and reads no file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from omnizarr.model import ArrayMetadata, Loss
from omnizarr.nodes import consolidated
from omnizarr.nodes.location import StorePath
from omnizarr.stores import verbs
from omnizarr.stores.base import answers_itself
from omnizarr.stores.manifests.store import ManifestStore
from omnizarr.stores.wrap.wrappers import WrapperStore

_TEXTS: Final = "bytes of strings that are not UTF-8"
_WHY: Final = "strings are UTF-8 in Zarr v3, as which the open file is read"
_MARK: Final = "U+FFFD"


def noted(where: StorePath, *, is_array: bool = False) -> Iterator[Loss]:
    """Yield what the reader of a file does not show of a node, and of those below if it is a group."""
    if not isinstance(where.store, ManifestStore):
        return
    notes = where.store.about_node(where.path).get("notes", ()) if is_array else where.store.notes
    for note in notes:
        if not where.path or note.startswith((f"/{where.path}: ", f"/{where.prefix}")):
            what, _, why = note.partition(": ")
            yield Loss("", "", what, why or "it is not shown")


def texts(where: StorePath, path: str = "", *, looks: bool = True) -> Iterator[Loss]:
    """Yield a loss if elements of an array that was read have U+FFFD for bytes that are not UTF-8; `path` is its.

    `looks`: also where others have read them (see `verbs.replaces_text`).
    """
    if verbs.replaces_text(where.store, where.prefix, looks):
        yield Loss(path, "", _TEXTS, _WHY, _MARK)


def in_words(loss: Loss) -> str:
    """Return a sentence for a loss of this module."""
    return f"/{loss.path}: {loss.what} are {loss.kept}: {loss.why}" if loss.kept else f"{loss.what}: {loss.why}"


def below(where: StorePath, *, looks: bool = True) -> Iterator[Loss]:
    """Yield all of this of a node that was copied, and of those below. `looks`: see `texts`."""
    store = where.store
    while isinstance(store, WrapperStore):
        store = store.store
    if not answers_itself(store, verbs.replaces_text):
        return
    nodes = list(consolidated.walk_from(where, where.store.features.concurrency))
    yield from noted(where, is_array=len(nodes) == 1 and isinstance(nodes[0][1], ArrayMetadata))
    for place, metadata in nodes:
        if isinstance(metadata, ArrayMetadata):
            yield from texts(place, f"{place.path}/"[len(where.prefix) :].rstrip("/"), looks=looks)
