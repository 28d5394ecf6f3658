"""Replacing a node: the old one stays, with documents and chunks, until the new one is complete.

What is to replace a node may be read from it, directly or through a graph of dask or another library, and reading may
fail. So the new node is made elsewhere. When it is complete, it takes the place of the old one under that one's lock.

- In a directory, it is made in a directory of the same store, and takes its place by renaming.
- For other stores, it is made in memory or in temporary files, and stored when the old node has been removed. This
  takes no more requests than to write it directly. If the store fails then, part of the old data is gone.

Values that are in memory already are written directly: they cannot fail half-way, and nothing removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from omnizarr.errors import ConflictError, OmnizarrError, StoreError
from omnizarr.formats import DIALECTS
from omnizarr.formats.contract import Dialect
from omnizarr.nodes import detection, erasing, hierarchy
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.stores import LocalStore, MemoryStore, Store
from omnizarr.stores.interrupts import contextmanager
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import tempfile

    from omnizarr.stores.local import staging
else:
    tempfile = Lazy("tempfile")
    staging = Lazy("omnizarr.stores.local.staging")

T = TypeVar("T")


def is_taken(where: StorePath, dialect: Dialect, above: hierarchy.Above | None = None) -> bool:
    """Return whether there is a node that a new one would replace. It is remembered in `above`."""
    above = above or hierarchy.Above()
    found = hierarchy.occupant(hierarchy.place_in_hierarchy(where, dialect, above))
    above.replaced = None if found is None else hierarchy.Replaced(found)
    return found is not None


def remade(where: StorePath, dialect: Dialect, make: Callable[[StorePath], T]) -> tuple[StorePath, T]:
    """Replace the node at a place by one that `make` makes at another place. If that fails, nothing changes.

    Returns
    -------
    StorePath
        The place, in the hierarchy that the new node belongs to.
    object
        What `make` has returned.
    """
    where.store.check_writable()
    where = hierarchy.place_in_hierarchy(where, dialect)
    hierarchy.check_path(dialect, where.path)
    if type(where.store) is not LocalStore or where.home is not None:
        with _temporary(where) as store:
            made = _root(store, where)
            result = _made(made, where, make)
            hierarchy.copy(made, where, overwrite=True)
        return where, result
    with staging.staged(where.store) as stage:
        made = _root(stage.store, where)
        result = _made(made, where, make, stage.is_whole)
        hierarchy.copy(made, where, overwrite=True, exchange=partial(_exchange, stage))
    return where, result


def _made(
    place: StorePath, where: StorePath, make: Callable[[StorePath], T], is_whole: Callable[[], bool] = lambda: True
) -> T:
    """Return the result of `make`. Its errors name the place of the node, not the one where it is made.

    Raises ConflictError if someone else has removed what was made.
    """
    removed = ConflictError(
        "another writer has removed what was being made", store=str(where.store), path=where.path, remedy="try again"
    )
    try:
        result = make(place)
    except OmnizarrError as error:
        if not is_whole():
            raise removed from error
        if error.store != str(place.store):
            raise
        if isinstance(error, StoreError) and type(where.store) is not LocalStore:
            raise error.add(remedy="make room where temporary files are, or set TMPDIR to another directory")
        error.store = str(where.store)
        error.path = f"{where.prefix}{error.path or ''}".strip("/")
        error.key = None if error.key is None else where.prefix + error.key
        raise
    if not is_whole():
        raise removed
    return result


def copy(
    source: StorePath, target: StorePath, *, overwrite: bool = False, on_copied: Callable[[], object] | None = None
) -> None:
    """Copy a node and all nodes below, like `hierarchy.copy`, and replace a node only when the copy is complete.

    Within a store with latency, which copies values itself, the old node is removed first.
    """
    is_quick = source.store is target.store and target.store.features.concurrency > 1
    existing = hierarchy.occupant(target) if overwrite and not is_quick else None
    if existing is None:
        hierarchy.copy(source, target, overwrite=overwrite, on_copied=on_copied)
        return
    found = detection.open_node(source)
    hierarchy.refuse_overlap(found.where, target)
    dialect = dialect_of(found.where, found.metadata)
    remade(target, dialect, lambda made: hierarchy.copy(found.where, made, on_copied=on_copied))


def _root(store: Store, where: StorePath) -> StorePath:
    """Return the root of a store, with the scheme of keys at another place."""
    return StorePath(store, "", None if where.home is None else replace(where.home, root=""))


def _temporary(where: StorePath) -> AbstractContextManager[Store]:
    return _in_files() if where.store.features.is_shared else _in_memory()


@contextmanager
def _in_memory() -> Iterator[Store]:
    yield MemoryStore()


@contextmanager
def _in_files() -> Iterator[Store]:
    with tempfile.TemporaryDirectory(prefix="omnizarr-", ignore_cleanup_errors=True) as folder:
        yield LocalStore(folder)


def _exchange(stage: staging.Staging, where: StorePath, existing: hierarchy.Occupant, arrays: Sequence[str]) -> bool:
    """Rename, if everything in the directory belongs to the node. Otherwise return False."""
    at, metadata = (where, None) if isinstance(existing, OmnizarrError) else (existing.where, existing.metadata)
    if at.home is not None:
        return False
    found = erasing.Belongings(at, metadata)
    if next(found.strangers(), None) is not None:
        return False
    found.note(arrays)
    try:
        is_done = stage.exchange(where.prefix, _turn)
    finally:
        erasing.forget(at)  # if it failed, it was undone
    if is_done:
        return True
    if not where.path:  # the directory in which the new node waits is in what would be removed
        raise StoreError("the files of the old node cannot be renamed", store=str(where.store), path=where.path)
    return False


def _turn(name: str) -> int | None:
    """Return when something in the directory of a node is put into place: the document that makes it a node last."""
    return None if name == erasing.JOURNAL else 2 if name in _MAKERS else int(name in _DOCUMENTS)


_MAKERS: Final = frozenset(name for dialect in DIALECTS for name in (dialect.array_document, dialect.group_document))
_DOCUMENTS: Final = frozenset(name for dialect in DIALECTS for name in dialect.keyspace.documents(""))
