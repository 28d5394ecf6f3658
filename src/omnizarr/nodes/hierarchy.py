"""Changing a hierarchy: creating nodes, changing their documents, removing, copying and moving them.

Dialects (documents) and stores (bytes) meet here. Every change of a node's documents is made under the node's
lock, after reading them again, so that writers never undo each other's changes.

Spec: Zarr v3 core, "Storage", "Operations"; Zarr v2, "Storage".
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from omnizarr.errors import (
    ConflictError,
    ContainsArrayError,
    ContainsGroupError,
    Function,
    InvalidKeyError,
    NodeExistsError,
    NodeNameError,
    NodeNotFoundError,
    NotRepresentableError,
    OmnizarrError,
    ReadOnlyError,
    Remedy,
    StoreError,
)
from omnizarr.formats import DIALECTS, dialect_named, documents
from omnizarr.formats.contract import Dialect
from omnizarr.formats.keyspaces import Split
from omnizarr.formats.reader import MAX_LENGTH
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata, grids
from omnizarr.model import keys as chunk_keys
from omnizarr.nodes import erasing, holdings, outside, stored, walk
from omnizarr.nodes.copying import Copier, Layout, Sizes
from omnizarr.nodes.detection import (
    Documents,
    Entries,
    Found,
    Kind,
    Values,
    children,
    here,
    implied,
    is_free,
    load,
    not_found,
    open_node,
    read_documents,
)
from omnizarr.nodes.location import StorePath, dialect_of, dialects_at
from omnizarr.nodes.outside import Beyond
from omnizarr.nodes.renewing import Change
from omnizarr.stores import LocalStore, conflicts, pool, verbs
from omnizarr.stores.interrupts import contextmanager

M = TypeVar("M", ArrayMetadata, GroupMetadata)


def check_path(dialect: Dialect, path: str) -> None:
    """Raise NodeNameError if the dialect does not allow a name in a path of a new node."""
    for part in path.split("/") if path else ():
        try:
            dialect.check_name(part)
        except OmnizarrError as error:
            raise error.add(path=path)


def create(where: StorePath, metadata: M, *, overwrite: bool = False, above: Above | None = None) -> Found[M]:
    """Write the documents of a new node, and those of groups above that have none.

    If several writers do so at the same time without `overwrite`, one succeeds. Known nodes `above` are not read
    again.

    Raises
    ------
    ContainsArrayError, ContainsGroupError
        If a node exists, or an array is among the nodes above.
    NodeNameError
        If the dialect does not allow a name in the path.
    NotRepresentableError
        If the dialect cannot express `metadata`.
    ReadOnlyError
    """
    _refuse_read_only(where)
    above = above or Above()
    with Change(where) as change:
        found = _create(where, metadata, change, overwrite=overwrite, above=above)
    above.outside = change.outside
    return found


@conflicts.retried
def _create(where: StorePath, metadata: M, change: Change, *, overwrite: bool, above: Above) -> Found[M]:
    if where.store.features.concurrency > 1:  # all of them will be asked for
        above.look_at(where.ancestors())
    where = change.where = place_in_hierarchy(where, dialect_named(metadata.dialect), above)
    dialect = dialect_of(where, metadata)
    # In the older variants of a draft, chunks have other keys than those of new arrays.
    metadata = dialect.keyspace.settle(metadata)
    check_path(dialect, where.path)
    values = stored.rendered(where, metadata)  # refuse before anything is deleted or written
    change.is_outermost = create_ancestors(where, dialect, above)
    refuse_sibling(where, dialect)
    change.known = above.formats()
    change.below = "gone" if isinstance(metadata, ArrayMetadata) else "same"
    if _is_written_at_once(where, dialect, values):
        change.is_new = True
        change.begins_in(dialect)
        return Found(where, metadata)
    with where.lock():
        rest = "" if overwrite else _rest(where)
        is_cleared = overwrite or (isinstance(metadata, ArrayMetadata) and rest in {"whole", "part"})
        existing, is_begun = _occupied(where) if is_cleared else (occupant(where), False)
        is_rest = False
        if existing is not None:
            if not overwrite:
                raise in_the_way(where, existing)
            change.known = above.formats(others=True)
            change.begin("gone")
            with _marked(where):
                is_rest, is_nczarr = _clear_for(where, existing, heir=metadata)
            above.replaced = Replaced(existing, is_nczarr)
        elif is_begun:
            change.begin("gone")
            with _marked(where):
                erasing.erase(where)
        elif rest == "deleting":
            raise _half_deleted(where)
        change.is_new = existing is None
        change.formats = (dialect,) if existing is None and not is_begun else None
        if is_cleared and isinstance(metadata, ArrayMetadata) and (is_rest or existing is None):
            delete_strays(where, metadata)
        elif rest:
            _erase_rest(where, rest)
        change.begin()
        write_entry_point(where, dialect)
        other = _write_new(where, dialect, values)
        if other is not None and overwrite:
            _clear_for(where, other)
            other = _write_new(where, dialect, values)
        if other is not None:
            change.is_new, change.formats = False, None
            change.begin("new")
            raise in_the_way(where, other)
    return Found(where, metadata)


def create_in_new(where: StorePath, metadata: M, formats: Mapping[str, Sequence[Dialect]]) -> Found[M]:
    """Write the documents of a new node, and ask for nothing: what is around it has been found, or made, before.

    At the place was nothing, and the nodes above are groups. Of a writer that makes a node there all the same, the
    documents stay.

    Parameters
    ----------
    where : StorePath
        A place that is in no hierarchy of a draft.
    metadata : ArrayMetadata or GroupMetadata
    formats : mapping
        In which formats the groups above may keep copies, by path (see `Above.formats`).

    Raises
    ------
    ContainsArrayError, ContainsGroupError, NodeNameError, NotRepresentableError
    """
    with Change(where) as change:
        dialect = dialect_of(where, metadata)
        metadata = dialect.keyspace.settle(metadata)
        check_path(dialect, where.path)
        values = stored.rendered(where, metadata)
        keys = dialect.keyspace.documents(where.path)
        change.known, change.is_new = formats, True
        change.below = "gone" if isinstance(metadata, ArrayMetadata) else "same"
        # a dialect lists first the documents that make a node
        for name in sorted(values, key=list(keys).index, reverse=True):
            if not verbs.set_if_absent(where.store, keys[name], values[name]):
                raise in_the_way(where, occupant(where) or _gone(where))
        change.begin()
    return Found(where, metadata)


class Replaced(NamedTuple):
    """The node that a new one has replaced.

    Attributes
    ----------
    node : Found or OmnizarrError
        For a broken one, its error.
    is_nczarr : bool or None
        netCDF-C 4.8.0 has described it beside its documents. None if this has not been seen.
    """

    node: Found[Metadata] | OmnizarrError
    is_nczarr: bool | None = None


class Above:
    """The nodes above a new node. Each place is read once.

    Parameters
    ----------
    entries : dict, optional
        What has been read there before.
    beyond : Beyond, optional
        What has been seen above the directory of the store.

    Attributes
    ----------
    replaced : Replaced or None
        The node that the new one has replaced; set when it is created.
    outside : StorePath or None
        The place of the new node in a store that begins further up, at the outermost group; set when it is created.
    """

    def __init__(self, entries: Entries | None = None, beyond: Beyond | None = None) -> None:
        self.replaced: Replaced | None = None
        self.outside: StorePath | None = None
        self._around: GroupMetadata | None = None
        self._entries = entries or {}
        self._beyond = beyond
        self._seen: dict[tuple[str, bool], Found[Metadata] | OmnizarrError | None] = {}

    def at(self, where: StorePath) -> Found[Metadata] | OmnizarrError | None:
        """Return the node at a place; for a broken one, its error."""
        key = where.path, where.home is None
        if key not in self._seen:
            self._seen[key] = _without_copies(_here_or_error(where, "group", self._entries.get(where.path)))
        return self._seen[key]

    def refuse_outside(self, where: StorePath) -> bool:
        """Raise ContainsArrayError if the store of a new node would lie in an array.

        Return whether it has been seen that nothing is directly above the store.
        """
        root = where.at("")
        if where.path and isinstance(self.at(root), Found) and root.home is None:
            return False  # it has a document, and so its directory exists
        self._beyond = self._beyond or outside.beyond(where)
        if self._beyond is None:
            return False
        self._around = outside.refuse_array(where, self._beyond)
        return not self._beyond.files

    def look_at(self, places: Iterable[StorePath]) -> None:
        """Read what is at several places, side by side if they are far away."""
        unknown = [where for where in places if (where.path, where.home is None) not in self._seen]
        if unknown:
            for _ in pool.gather(self.at, unknown, unknown[0].store.features.concurrency):
                pass

    def groups(self) -> Iterator[GroupMetadata]:
        """Yield the groups that were read."""
        for node in self._seen.values():
            if isinstance(node, Found) and isinstance(node.metadata, GroupMetadata):
                yield node.metadata
        if self._around is not None:
            yield self._around

    def unseen(self, where: StorePath) -> StorePath | None:
        """Return the place of a new node among the groups above the store, if it is in some that were not read."""
        if self.outside is None:
            return None
        outer = self.outside.path.removesuffix(where.path).rstrip("/")
        return self.outside if self._around is None or "/" in outer else None

    def formats(self, *, others: bool = False) -> dict[str, list[Dialect]]:
        """Return in which formats the groups that were read may keep copies of nodes, by path.

        With `others`, they may have documents of other formats besides their own.
        """
        found: dict[str, list[Dialect]] = {}
        for (path, _), node in self._seen.items():
            if node is None:
                found.setdefault(path, [])
            elif isinstance(node, Found):
                own = dialect_of(node.where, node.metadata)
                is_sure = own.consolidated.document is None and not _has_copies(node.metadata)
                rest = [each for each in dialects_at(node.where) if each.name != own.name] if others else []
                found[path] = [*([] if is_sure else [own]), *rest]
        return found


def _without_copies(found: Found[Metadata] | OmnizarrError | None) -> Found[Metadata] | OmnizarrError | None:
    """Return the same; of a group with copies of many nodes only that it has copies, and not how they are written."""
    if isinstance(found, Found) and isinstance(found.metadata, GroupMetadata) and found.metadata.consolidated:
        return Found(found.where, replace(found.metadata, consolidated={}, spellings={}))
    return found


def _has_copies(metadata: Metadata) -> bool:
    return isinstance(metadata, GroupMetadata) and metadata.consolidated is not None


def place_in_hierarchy(where: StorePath, dialect: Dialect, looked: Above | None = None) -> StorePath:
    """Return a place within the hierarchy to which a new node of a dialect will belong.

    In formats without entry points, this is the place itself. A draft's hierarchy begins at its entry point. If
    there is none yet, it begins at the root of the store; or at the place itself, if that is within a hierarchy
    of another format or beside other nodes.

    Raises NotRepresentableError for a node of another format within the hierarchy of a draft, where readers would
    not find it, and for an entry point that would hide existing nodes.
    """
    looked = looked or Above()
    above: Found[Metadata] | OmnizarrError | None = None
    if where.home is None:
        own = [where] if dialect.entry_point is not None else []
        for place in (*own, *reversed(list(where.ancestors()))):
            above = looked.at(place)
            if above is not None:
                break
        if isinstance(above, Found) and above.where.home is not None:
            where = above.where.at(where.path)
    if where.home is not None and where.home.dialect != dialect.name:
        if where.path == where.home.root:  # where it would be replaced as a whole
            keyspace = dialect.keyspace
            return replace(where, home=replace(keyspace, root=where.path) if isinstance(keyspace, Split) else None)
        raise NotRepresentableError(
            f"a hierarchy of {where.home.dialect} holds no nodes of Zarr {dialect.name}",
            store=str(where.store),
            path=where.path,
            remedy="create it in another store, or in the format of that hierarchy, or convert that first",
        )
    if where.home is None and isinstance(dialect.keyspace, Split):
        begins_here = above is not None or _has_others(where.at(""))
        if begins_here and above is None and not where.path:
            raise NotRepresentableError(
                f"below lie nodes of other formats, which a hierarchy of {dialect.name} would hide",
                store=str(where.store),
                path=where.path,
                remedy="create it at a path of its own, or in another store",
            )
        return replace(where, home=replace(dialect.keyspace, root=where.path if begins_here else ""))
    return where


def _has_others(root: StorePath) -> bool:
    """Whether a store without a node at its root has nodes further down, as far as it can be listed."""
    try:
        return implied(root) is not None
    except StoreError:
        return False


def refuse_sibling(where: StorePath, dialect: Dialect) -> None:
    """Raise NodeNameError if the name of a sibling differs only in case, in a format that forbids this."""
    if dialect.has_cases or not where.path:
        return
    for name in children(where.parent):
        if name != where.name and name.lower() == where.name.lower():
            raise NodeNameError(
                "siblings must differ in more than upper and lower case",
                store=str(where.store),
                path=where.path,
                found=f"a node called {name!r}",
                expected="names that are unique under case-insensitive comparison",
                spec='Zarr v3 draft of 2019, "Node names"',
            )


def write_entry_point(where: StorePath, dialect: Dialect) -> None:
    """Write the entry point of the hierarchy, if there is none yet."""
    home = where.home
    if home is not None and dialect.entry_point is not None and (not home.entry or where.path == home.root):
        verbs.set_if_absent(where.store, home.entry_key, documents.render(home.entry or dialect.entry_point.new()))


def _erase(where: StorePath) -> None:
    """Remove everything that belongs to the node at a place, in its format and in others."""
    owned = dialects_at(where)[0].keyspace.node_keys(where.path)
    holdings.delete_unlisted(where)
    verbs.delete_many(where.store, owned.keys)
    for prefix in owned.prefixes:
        verbs.delete_prefix(where.store, prefix)


_MOST_STRAYS: Final = 10**6
"""Number of chunks of an older array that are looked for one by one in a store that does not list everything."""


def delete_strays(where: StorePath, metadata: ArrayMetadata) -> None:
    """Delete leftovers of an older array that would become chunks of a new one.

    Files of other programs stay.
    """
    prefix = dialect_of(where, metadata).keyspace.chunk_prefix(where.path)
    encoding = chunk_keys.bind(metadata.chunk_key_encoding)
    if holdings.is_asked(where.store):
        grid = grids.bind(metadata.chunk_grid, metadata.shape)
        asked = list(holdings.asked(where.store, prefix, encoding, grid)) if grid.nchunks <= _MOST_STRAYS else []
        verbs.delete_many(where.store, [prefix + encoding.encode(coords) for coords in asked])
    found = list(where.store.list_prefix(prefix))
    ndim = len(metadata.shape)
    verbs.delete_many(where.store, [key for key in found if encoding.decode(key[len(prefix) :], ndim) is not None])


def clear(where: StorePath) -> None:
    """Remove the documents and chunks of a node and of all nodes below. Everything else stays."""
    _refuse_read_only(where)
    with Change(where, "gone") as change, where.lock(), _marked(where):
        change.begin()
        erasing.erase(where)


def update(where: StorePath, kind: type[M], change: Callable[[M], M], zarr_format: int | str | None = None) -> M:
    """Change a node's documents: read them, apply `change`, and write those that differ, all under the node's lock.

    An implicit group gets a document of its own. If documents of several formats exist, `zarr_format` states
    which to change.

    Raises
    ------
    NodeNotFoundError
        If the node does not exist any more.
    ReadOnlyError, NotRepresentableError, MetadataError
    """
    _refuse_read_only(where)
    with Change(where, own=kind is GroupMetadata) as noted:
        return _update(where, kind, change, noted, zarr_format)


@conflicts.retried
def _update(
    where: StorePath, kind: type[M], change: Callable[[M], M], noted: Change, zarr_format: int | str | None
) -> M:
    with where.lock():
        return update_locked(where, kind, change, noted, zarr_format)


def update_locked(
    where: StorePath, kind: type[M], change: Callable[[M], M], noted: Change, zarr_format: int | str | None = None
) -> M:
    """Like `update`, for a caller that holds the lock, and whose change of the node is `noted`."""
    for dialect in dialects_at(where, zarr_format):
        found = read_documents(where, dialect, "array" if kind is ArrayMetadata else "group")
        metadata = load(where, dialect, found)
        if metadata is not None:
            break
    else:
        implicit = implied(where, zarr_format)
        if implicit is None:
            if (store := _local(where)) is not None and store.killed_deletion(where.lock_key):
                store.leave_deletion(where.lock_key)
            raise not_found(where, NodeNotFoundError, zarr_format)
        metadata, found, where = implicit.metadata, {}, implicit.where
        dialect = dialect_of(where, metadata)
    if not isinstance(metadata, kind):
        error = ContainsArrayError if isinstance(metadata, ArrayMetadata) else ContainsGroupError
        raise error("another node has taken this place", store=str(where.store), path=where.path)
    changed = change(metadata)
    noted.begins_in(dialect)
    resized = _resized(dialect, metadata, changed, found)
    if resized is None:
        stored.rewrite(where, dialect, changed, found)
    else:
        stored.write(where, dialect, resized)
    return changed


def delete(where: StorePath) -> None:
    """Remove a node and all nodes below. Spec: Zarr v3, "Erase a group or array"."""
    _refuse_read_only(where)
    with Change(where, "gone") as change:
        if vanishes(where, change):
            return
        with where.lock(), _marked(where, whole=True):
            change.begin()
            _erase(where)


def vanishes(where: StorePath, change: Change, *, whole: bool = True) -> bool:
    """Delete a node in a local directory in one step, under its lock; return False if it must be done in several.

    `whole`: with everything below. Otherwise its document must be all that is there.
    """
    store, (folder, _, name) = _local(where), where.lock_key.rpartition("/")
    if store is None:
        return False
    try:
        if not store.delete_node(folder, name, whole=whole):
            return False
    except BaseException:
        change.begin()
        raise
    change.begin()
    return True


def _local(where: StorePath) -> LocalStore | None:
    """Return the directory that a node is in by its path; None if it lies in another store, or in that of a draft."""
    return where.store if where.home is None and type(where.store) is LocalStore else None


@contextmanager
def _marked(where: StorePath, *, whole: bool = False) -> Iterator[None]:
    """Say in the lock file, which you hold, that this may leave chunks without an array, if it fails or is killed.

    `whole`: everything in the directory of the node was to go. Then `_rest` tells the next.
    """
    store = _local(where)
    if store is None:
        yield
        return
    store.mark_deletion(where.lock_key, whole=whole)
    try:
        yield
    except BaseException:
        store.leave_deletion(where.lock_key)
        raise


def _rest(where: StorePath) -> Literal["", "whole", "part", "deleting"]:
    """Return what a deletion that failed or was killed was to delete, or that one may be at work. Holds the lock.

    What a deletion left must not become chunks of a new array.
    """
    store = _local(where)
    if store is None:
        return ""
    if killed := store.killed_deletion(where.lock_key):
        return killed
    options = erasing.begun(where)
    return "part" if options == erasing.REPLACEMENT else "deleting" if options == erasing.DELETION else ""


def _erase_rest(where: StorePath, rest: str) -> None:
    """Delete what a deletion has left: `rest` comes from `_rest`. Nodes that it had not come to stay."""
    with _marked(where, whole=rest == "whole"):
        erasing.erase_orphans(where, whole=rest == "whole")


Occupant: TypeAlias = "Found[Metadata] | OmnizarrError"
"""A node that another one replaces; for a broken one, its error."""


def copy(
    source: StorePath,
    target: StorePath,
    *,
    overwrite: bool = False,
    on_copied: Callable[[], object] | None = None,
    exchange: Callable[[StorePath, Occupant, Sequence[str]], bool] | None = None,
) -> None:
    """Copy a node and all nodes below, byte for byte, to another place of this or another store.

    Documents come last, so that no incomplete node is visible. `on_copied` is called for each value, from several
    threads. `exchange` is called first, with the target, its existing node, and the directories of the chunks that will
    come; it may replace that itself: then it returns True. To keep what is replaced until the copy is complete, see
    `omnizarr.nodes.replacing`.

    Raises
    ------
    NodeNotFoundError
        If there is no node at `source`.
    ContainsArrayError, ContainsGroupError
        If there is a node at `target`, and `overwrite` is False.
    NodeExistsError
        If what was at `target` is being deleted, and `overwrite` is False.
    NodeNameError
        If `target` is within `source`, or vice versa.
    NotRepresentableError
        If `target` is in a hierarchy with another scheme of keys.
    """
    found, target, arrays = _ready(source, target, is_staged=exchange is not None)
    source, dialect = found.where, dialect_of(target, found.metadata)
    with Change(target, "new" if isinstance(found.metadata, GroupMetadata) else "gone") as change, target.lock():
        existing, is_begun = _occupied(target) if overwrite else (occupant(target), False)
        change.is_new = existing is None
        is_noted = existing is not None or is_begun
        if existing is not None:
            if not overwrite:
                raise in_the_way(target, existing)
            change.begin()
            if exchange is not None and exchange(target, existing, arrays):
                return
        if is_noted:
            change.begin()
            is_rest = (
                erasing.erase(target, coming=arrays)
                if existing is None
                else _clear_for(target, existing, coming=arrays)
            ).is_rest
            if is_rest and isinstance(found.metadata, ArrayMetadata):
                delete_strays(target, found.metadata)
        elif (rest := _rest(target)) == "deleting":
            raise _half_deleted(target)
        elif rest:
            change.begin()
            _erase_rest(target, rest)
            with _marked(target, whole=rest == "whole"):
                if isinstance(found.metadata, ArrayMetadata):
                    delete_strays(target, found.metadata)
        change.begin()
        with _marked(target):
            layout = Layout(source, target)
            if not layout.has_entry:
                write_entry_point(target, dialect)
            copier = Copier(source.store, target.store, sized=False, sizes=layout.sizes)
            copier.run(layout.chunks(), on_copied)
            for level in layout.documents():
                replace(copier, by_server=False, sizes=Sizes()).run(level, on_copied)
            layout.keep_up(lambda pairs, keeps: replace(copier, keeps=keeps).run(pairs))
        if is_noted:
            erasing.forget(target)


def _ready(
    source: StorePath, target: StorePath, *, is_staged: bool = False
) -> tuple[Found[Metadata], StorePath, list[str]]:
    """Return what to copy, where to, and the directories that its chunks will have, after creating the groups above it.

    Raises the errors of `copy`.
    """
    _refuse_read_only(target)
    found = open_node(source)
    source = found.where
    dialect = dialect_of(source, found.metadata)
    check_path(dialect, target.path)
    if not is_staged:  # in a directory within the root, but not below it
        refuse_overlap(source, target)
    arrays = arrays_below(source) if isinstance(found.metadata, GroupMetadata) else [source.path]
    above = Above()
    target = place_in_hierarchy(target, dialect, above)
    refuse_other_keys(source, target)
    dialect = dialect_of(target, found.metadata)
    create_ancestors(target, dialect, above)
    refuse_sibling(target, dialect)
    space = dialects_at(target)[0].keyspace
    paths = (f"{target.prefix}{path[len(source.prefix) :]}".rstrip("/") for path in arrays)
    return found, target, [path if target.home is None else space.chunk_prefix(path)[:-1] for path in paths]


def arrays_below(source: StorePath) -> list[str]:
    """Return the paths of the arrays below a group.

    Raises InvalidKeyError if something below would not be copied, because the store has no keys for it.
    """
    arrays = []
    for where, found in walk.listed(source):
        if isinstance(found, InvalidKeyError):
            raise found
        if not isinstance(found, GroupMetadata):
            arrays.append(where.path)
    return arrays


def refuse_other_keys(source: StorePath, target: StorePath) -> None:
    """Raise NotRepresentableError if bytes cannot be copied because the hierarchies have different schemes of keys."""
    if source.home is None or target.home is None:
        return
    if replace(source.home, root="", entry={}) != replace(target.home, root="", entry={}):
        raise NotRepresentableError(
            "the two hierarchies keep their keys in different ways",
            store=str(target.store),
            path=target.path,
            remedy=Remedy("use {convert}", convert=Function()),
        )


def _is_renamed(old: StorePath, new: StorePath) -> bool:
    """Rename a node and all nodes below, if its store can do that."""
    with Change(old, "gone") as left, Change(new, "new") as arrived:
        is_done = verbs.move_prefix(old.store, old.prefix, new.prefix)
        if is_done:
            left.begin()
            arrived.begin()
        return is_done


def refuse_overlap(source: StorePath, target: StorePath) -> None:
    """Raise NodeNameError if a node would be copied into itself, or over itself."""
    if target.lies_in(source):
        raise NodeNameError(
            "a node cannot be copied or moved into itself",
            store=str(target.store),
            path=target.path,
            expected=f"a place that is not below {source}",
        )
    if source.lies_in(target):
        raise NodeNameError(
            "a node cannot replace a node that contains it",
            path=target.path,
            expected=f"not above {source.path!r}",
            remedy="copy it elsewhere first",
        )


def move(source: StorePath, target: StorePath) -> None:
    """Move a node and all nodes below to another place of its store. Raises the errors of `copy`."""
    found, place, _ = _ready(source, target)
    existing = occupant(place)
    if existing is not None:
        raise in_the_way(place, existing)
    is_one_tree = found.where.home is None and source.store is target.store
    if is_one_tree and _is_renamed(found.where, place):
        return
    copy(source, target)
    delete(open_node(source).where)


def _is_alone(where: StorePath, dialect: Dialect) -> bool:
    """Return whether the one document of a node holds everything, so that it can appear without the node's lock."""
    return where.home is None and dialect.attributes_document is None


def _is_written_at_once(where: StorePath, dialect: Dialect, values: Mapping[str, bytes]) -> bool:
    """Write a node's only document into a new directory, without the lock. Return False if that is not possible.

    A writer of another format may hold the lock and may have found the place free. So each of the two looks for the
    other's documents after it has written its own, and deletes its own if it finds them.
    """
    if not _is_alone(where, dialect):
        return False
    ((name, value),) = values.items()
    done = verbs.set_in_new_folder(where.store, where.prefix + name, value)
    if done != "set":
        return done == "alone"
    if verbs.has_any(where.store, where.prefix, _OTHER_MAKERS):
        with where.lock():
            if verbs.has_any(where.store, where.prefix, _OTHER_MAKERS):
                where.store.delete(where.prefix + name)
                return False  # now under the lock: the other node is in the way, or is overwritten
    return True


_OTHER_MAKERS: Final = tuple(
    dict.fromkeys(
        name
        for dialect in DIALECTS
        if dialect.attributes_document is not None
        for name in (dialect.array_document, dialect.group_document)
    )
)
"""Documents that make a node of a format with several documents."""


def _write_new(
    where: StorePath, dialect: Dialect, values: Mapping[str, bytes]
) -> Found[Metadata] | OmnizarrError | None:
    """Write the documents of a new node under its lock.

    Return None, or the node that a writer without the lock has created meanwhile (see `_is_written_at_once`).
    """
    is_free = True
    if not where.store.features.sets_unlocked or where.home is not None:
        stored.write(where, dialect, values)
    elif _is_alone(where, dialect):
        ((name, value),) = values.items()
        is_free = verbs.set_if_absent(where.store, where.prefix + name, value)
    else:
        stored.write(where, dialect, values)
        if where.store.exists(where.lock_key):
            is_free = False
            verbs.delete_many(where.store, [where.prefix + name for name in values])
    if is_free:
        return None
    return occupant(where) or _gone(where)


def _gone(where: StorePath) -> OmnizarrError:
    """Return the error that makes a writer try again."""
    return ConflictError("another writer has created and deleted a node", store=str(where.store), path=where.path)


def _resized(dialect: Dialect, before: Metadata, after: Metadata, old: Documents) -> dict[str, bytes] | None:
    """Return the one document that changes when an array gets another shape; None if more than its text must change.

    If the rest of the model is equal, a dialect writes the same document except for this member.
    """
    if (
        not (isinstance(before, ArrayMetadata) and isinstance(after, ArrayMetadata))
        or dialect.name not in _PLAIN_SHAPES
    ):
        return None
    if (
        before.shape == after.shape
        or max(after.shape) > MAX_LENGTH
        or not all(map(operator.is_, _but_shape(before), _but_shape(after)))
    ):
        return None
    name = next(iter(dialect.keyspace.documents("")))
    data = documents.resized(old.get(name), before.shape, after.shape)
    return None if data is None else {name: data}


_PLAIN_SHAPES: Final = frozenset({"v2", "v3"})
"""Dialects whose documents state the shape in exactly one member."""

_but_shape: Final = operator.attrgetter(*(each.name for each in fields(ArrayMetadata) if each.name != "shape"))


@conflicts.retried
def create_ancestors(where: StorePath, dialect: Dialect, looked: Above) -> bool:
    """Write a group's document at every place above that has no node.

    Return whether it has been seen that nothing is directly above the store. Raises an error for an array above,
    before anything is written.
    """
    is_outermost = looked.refuse_outside(where)
    for place in where.ancestors():
        _refuse_array(where, place, looked.at(place))
    for place in where.ancestors():
        existing = looked.at(place)
        # Nodes above the root of a draft's hierarchy belong to other formats, and are not created.
        if existing is None and dialect.has_groups and place.home == where.home:
            refuse_sibling(place, dialect)
            with place.lock():
                existing = None if _is_free(place) else _here_or_error(place)  # another writer may have been faster
                if existing is None:
                    _clear_rest(place)
                    existing = _write_new(place, dialect, stored.rendered(place, GroupMetadata(dialect=dialect.name)))
                _refuse_array(where, place, existing)
    return is_outermost


def _clear_rest(place: StorePath) -> None:
    """Delete what a killed deletion left below a place that becomes a group again: new arrays would show it."""
    rest = _rest(place)
    if rest == "deleting":
        raise _half_deleted(place)
    if rest:
        _erase_rest(place, rest)


def _refuse_array(where: StorePath, place: StorePath, existing: Found[Metadata] | OmnizarrError | None) -> None:
    if isinstance(existing, Found) and isinstance(existing.metadata, ArrayMetadata):
        raise ContainsArrayError(
            "an array is in the way: nodes cannot lie below it",
            store=str(where.store),
            path=place.path,
            found=f"an array at {'/' + place.path!r}",
            expected="a group",
        )


def _here_or_error(
    where: StorePath, kind: Kind = "array", entry: Values | None = None
) -> Found[Metadata] | OmnizarrError | None:
    """Return the node at a place; for a broken node, its error.

    Raises StoreError if the store fails, so that missing answers do not count as missing nodes.
    """
    try:
        return here(where, DIALECTS, kind, entry)
    except StoreError:
        raise
    except OmnizarrError as error:
        return error


def _is_free(where: StorePath, *others: str) -> bool:
    """Return whether nothing at a place makes a node, and no other name is there, as far as one request tells."""
    return where.home is None and is_free(where, *others)


def _occupied(where: StorePath) -> tuple[Found[Metadata] | OmnizarrError | None, bool]:
    """Return the node that a new node would replace; if there is none, also whether one was being made or removed."""
    if _is_free(where, erasing.JOURNAL):
        return None, False
    existing = _in_the_place(where)
    return existing, existing is None and erasing.is_begun(where)


def occupant(where: StorePath) -> Found[Metadata] | OmnizarrError | None:
    """Return the node that a new node would replace. At the root of a draft's hierarchy, it may have another format."""
    return None if _is_free(where) else _in_the_place(where)


def _in_the_place(where: StorePath) -> Found[Metadata] | OmnizarrError | None:
    existing = _here_or_error(where)
    if existing is None and where.home is not None and not where.home.entry and where.path == where.home.root:
        return _here_or_error(replace(where, home=None))
    return existing


def _clear_for(
    where: StorePath,
    existing: Found[Metadata] | OmnizarrError | None,
    *,
    heir: Metadata | None = None,
    coming: Sequence[str] | None = None,
) -> erasing.Erased:
    """Remove what a new node replaces. See `erasing.erase`."""
    if isinstance(existing, Found):
        return erasing.erase(existing.where, existing.metadata, heir=heir, coming=coming)
    return erasing.erase(where, heir=heir, coming=coming)


def in_the_way(where: StorePath, existing: Found[Metadata] | OmnizarrError) -> OmnizarrError:
    """Return the error that a node exists."""
    what = {
        "store": str(where.store),
        "path": where.path,
        "remedy": Remedy("pass {overwrite} to replace it", overwrite=True),
    }
    if isinstance(existing, OmnizarrError):
        return existing
    if isinstance(existing.metadata, ArrayMetadata):
        return ContainsArrayError("there is an array already", **what)
    return ContainsGroupError("there is a group already", **what)


def _half_deleted(where: StorePath) -> NodeExistsError:
    """Return the error that chunks of an old node, which is being deleted, would become those of a new one."""
    return NodeExistsError(
        "what was here is being deleted, or its deletion was interrupted",
        store=str(where.store),
        path=where.path,
        remedy=Remedy("delete it again, to the end, by {delete_node}", delete_node=Function()),
    )


def _refuse_read_only(where: StorePath) -> None:
    if where.store.read_only:
        raise ReadOnlyError("the store is read-only", store=str(where.store), path=where.path)
