"""Delete a node: only what belongs to it, its document first, so that readers never see it without its chunks."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from omnizarr.errors import ContainsGroupError, NodeNotFoundError, OmnizarrError, Remedy, StoreError
from omnizarr.formats import DIALECTS, conventions
from omnizarr.formats.conventions import Nodes
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata
from omnizarr.nodes import detection, erasing, hierarchy, holdings, naming, nczarr_members
from omnizarr.nodes.copying import document_test
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath, dialects_at
from omnizarr.nodes.renewing import Change, renew
from omnizarr.stores import LocalStore, Store, ZipStore, verbs
from omnizarr.support.progress import Progress, Tracker
from omnizarr.tools.edit import mentions, places, unfinished
from omnizarr.tools.edit.report import Edited

_SHOWN: Final = 5
_BATCH: Final = 1000
_DOCUMENTS: Final = 6
"""More documents than a node has in any format."""


def run(
    store: Any,
    *,
    path: str | None,
    recursive: bool,
    dry_run: bool,
    progress: Progress,
    storage_options: Mapping[str, Any] | None,
) -> Edited:
    """Like `omnizarr.delete_node`."""
    with places.opened(store, path, "r+", storage_options) as where:
        found = node_at(where)
        if found is None:
            outcome = finish(detection.placed(where), dry_run=dry_run, progress=progress)
        else:
            known = Known.of(found)
            gone = None if dry_run else _vanished(found, known, progress)
            if gone is None:
                refuse(found, recursive=recursive, known=known)
                gone = delete(found, dry_run=dry_run, progress=progress, known=known)
            outcome = gone
    if not dry_run and not where.path and isinstance(store, str | os.PathLike):
        _remove_empty(where.store)
    return outcome


class Known(NamedTuple):
    """What is known of a node that is to be deleted.

    Attributes
    ----------
    sizes : list
        Key and size of all that belongs to it and to the nodes below.
    around : mapping
        The nodes around it (see `mentions.around`).
    """

    sizes: list[tuple[str, int]]
    around: Mapping[str, Metadata]

    @classmethod
    def of(cls, found: Found[Metadata]) -> Known:
        """List all keys, and read the documents."""
        where = found.where
        sizes = list(holdings.sizes(where, _sizes_below))
        is_document = document_test(where)
        documents = [key for key, _ in sizes if is_document(key)]
        # In a draft, documents of several nodes lie in the same directory.
        number = len({key.rpartition("/")[0] for key in documents} if where.home is None else documents)
        is_lost = number > (1 if where.home is None else _DOCUMENTS) * mentions.MOST_LOOKED_AT  # some would be in vain
        if is_lost:
            return cls(sizes, {})
        array = found.metadata if isinstance(found.metadata, ArrayMetadata) else None
        return cls(sizes, mentions.around(where, few=number <= mentions.MOST_LOOKED_AT, array=array))


def _sizes_below(store: Store, prefix: str) -> Iterator[tuple[str, int]]:
    return store.sizes_below(prefix) if type(store) is LocalStore else verbs.list_sizes(store, prefix)


def node_at(where: StorePath) -> Found[Metadata] | None:
    """Return the node at a place; None for leftovers of an interrupted copy or deletion.

    Raises NodeNotFoundError if there is no node: also for a directory that merely has hierarchies in it.
    """
    try:
        found = detection.open_node(where)
    except NodeNotFoundError:
        if unfinished.is_left(detection.placed(where)):
            return None
        raise
    is_directory = isinstance(found.metadata, GroupMetadata) and found.metadata.implicit and found.where.home is None
    if is_directory and not any(detection.here(place, DIALECTS) for place in where.ancestors()):
        if unfinished.is_left(where):
            return None
        raise NodeNotFoundError(
            "this directory is not a node: it has no documents of Zarr, though there are nodes further down",
            store=str(where.store),
            path=where.path,
            remedy="name one of these",
        )
    return found


def refuse(found: Found[Metadata], *, recursive: bool, known: Known | None = None) -> None:
    """Raise if a node must not be deleted: a group with members, if not `recursive`; or with files of others."""
    where = found.where
    if isinstance(found.metadata, GroupMetadata) and not recursive:
        members = list(islice(detection.load_children(where, detection.children(where), ""), _SHOWN + 1))
        if members:
            raise ContainsGroupError(
                "the group has members",
                store=str(where.store),
                path=where.path,
                found=_some([name for name, _ in members]),
                remedy=Remedy("pass {recursive} to delete them, too", recursive=True),
            )
    refuse_strangers(found, known)


def refuse_strangers(found: Found[Metadata], known: Known | None = None) -> None:
    """Raise StoreError if something is below a node that does not belong to it."""
    where = found.where
    around = mentions.around(where) if known is None else known.around
    kept = _files_of_conventions(where, around)
    strangers = erasing.strangers(where, found.metadata, _below(where, around))
    others = list(islice((key for key in strangers if key not in kept), _SHOWN + 1))
    if others:
        raise StoreError(
            "below this node lie files that belong to no node: nothing was deleted",
            store=str(where.store),
            path=where.path,
            found=_some(others),
            remedy="move or remove these first",
        )


def _below(where: StorePath, around: Mapping[str, Metadata]) -> dict[str, Metadata]:
    return {path: one for path, one in around.items() if path == where.path or path.startswith(where.prefix)}


def _files_of_conventions(where: StorePath, around: Mapping[str, Metadata]) -> set[str]:
    """Return the keys of files that a convention keeps below a node, such as the XML of OME."""
    nodes = Nodes(_below(where, around))
    return {f"{path}/{key}".strip("/") for path in nodes for key in conventions.files(path, nodes)}


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")


def delete(
    found: Found[Metadata], *, dry_run: bool = False, progress: Progress = None, known: Known | None = None
) -> Edited:
    """Delete a node and all below it; groups above no longer mention it."""
    where = found.where
    known = known or Known.of(found)
    sizes, around = known
    outcome = _outcome(found, known, dry_run=dry_run)
    if dry_run:
        return outcome
    with Change(where, "gone") as change, where.lock():
        change.begin()
        is_document = document_test(where)
        is_noted = len(sizes) != 1 or where.home is not None or not is_document(sizes[0][0])
        if is_noted:  # one document is gone at once
            unfinished.begin_deletion(found)
        own = [key for dialect in dialects_at(where) for key in dialect.keyspace.documents(where.path).values()]
        below = sorted((key for key, _ in sizes if is_document(key)), key=lambda key: key.count("/"))
        verbs.delete_many(where.store, dict.fromkeys((*own, *below)))
    _unlist(where, around)
    _delete_rest(where, sizes, progress, gone=frozenset(below), is_noted=is_noted)
    return outcome


def _outcome(found: Found[Metadata], known: Known, *, dry_run: bool) -> Edited:
    where = found.where
    return Edited(
        "delete",
        str(where),
        None,
        found.metadata.node_type,
        len(known.sizes),
        sum(size for _, size in known.sizes),
        dry_run=dry_run,
        remarks=mentions.missed(where, known.around),
    )


def _vanished(found: Found[Metadata], known: Known, progress: Progress) -> Edited | None:
    """Delete a node that is one document in a local directory, in one step; return None if that is not possible."""
    where = found.where
    if len(known.sizes) != 1 or known.sizes[0][0].rpartition("/")[0] != where.path:
        return None
    outcome = _outcome(found, known, dry_run=False)
    with Change(where, "gone") as change:
        if not hierarchy.vanishes(where, change, whole=False):
            return None
    _unlist(where, known.around)
    with Tracker(progress, f"delete {where}", outcome.bytes_stored) as shown:
        shown.tick(outcome.bytes_stored or 0)
    return outcome


def _unlist(where: StorePath, around: Mapping[str, Metadata]) -> None:
    """Remove a node from the list of the group above, if that is not known to have none."""
    above = around.get(where.parent.path) if where.path else None
    if not isinstance(above, GroupMetadata) or naming.may_have_objects(above) or above.attributes or above.unknown:
        nczarr_members.enter(where, None)


def _delete_rest(
    where: StorePath,
    sizes: list[tuple[str, int]],
    progress: Progress,
    *,
    gone: Container[str] = (),
    is_noted: bool = True,
) -> None:
    """Delete what is not `gone` yet, and the note on the deletion if there is one."""
    journal = unfinished.key_of(where)
    with Tracker(progress, f"delete {where}", sum(size for _, size in sizes)) as shown:
        for first in range(0, len(sizes), _BATCH):
            batch = sizes[first : first + _BATCH]
            verbs.delete_many(where.store, [key for key, _ in batch if key != journal and key not in gone])
            shown.tick(sum(size for _, size in batch))
    if is_noted:
        where.store.delete(journal)
    owned = dialects_at(where)[0].keyspace.node_keys(where.path)
    for prefix in owned.prefixes:  # what came meanwhile, and empty directories
        if next(iter(where.store.list_prefix(prefix)), None) is None:
            verbs.delete_prefix(where.store, prefix)


def finish(where: StorePath, *, dry_run: bool = False, progress: Progress = None) -> Edited:
    """Delete leftovers of an interrupted copy or deletion."""
    sizes = list(holdings.sizes(where))
    if not (is_whole := unfinished.is_whole(where)):
        others = set(erasing.strangers(where))
        sizes = [(key, size) for key, size in sizes if key not in others]
    outcome = Edited("delete", str(where), None, None, len(sizes), sum(size for _, size in sizes), dry_run=dry_run)
    if not is_whole and not dry_run:
        nczarr_members.enter(where, None)
        hierarchy.clear(where)
    elif not dry_run:
        nczarr_members.enter(where, None)
        renew(where, "gone")
        _delete_rest(where, sizes, progress)
    return outcome


def _remove_empty(store: Store) -> None:
    """Remove the directory or the archive that nothing is left in."""
    if type(store) is LocalStore:
        with suppress(OSError):
            Path(store.root).rmdir()
    elif isinstance(store, ZipStore) and isinstance(store.path, str) and store.store is None:
        with suppress(OSError, OmnizarrError), ZipStore(store.path, mode="r") as archive:
            is_empty = next(iter(archive.list()), None) is None
        if is_empty:
            with suppress(OSError):
                Path(store.path).unlink()
