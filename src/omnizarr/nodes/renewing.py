"""Consolidated metadata after a change: every change of a node's documents renews the copies in all groups above it.

All functions that create, change, replace, copy, move or delete a node do this through `Change`, below the functions
that users call. Whether a node was reached through a group, through its path or by another handle makes no
difference. The documents are changed first, then each group above is looked at, and those that keep copies get new
ones under their locks. In Zarr v3 this costs one read per group above, all at once; in v2, one question for
``.zmetadata``. Groups that were read anyway, to create a node, are not read again.

A store can begin below a group, as that of ``open("era.zarr/temp")`` does. Groups above the store are found by going
up from it as long as there are documents of groups (`Store.above`). If their copies cannot be changed, a warning says
so: the change itself is made.

Spec: Zarr v3 core, "Additional fields"; for v2 a convention (``.zmetadata``).
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self, TypeAlias

from omnizarr.errors import OmnizarrError, StoreAccessError, StoreError
from omnizarr.formats import documents
from omnizarr.formats.consolidated import Slices
from omnizarr.formats.contract import Dialect
from omnizarr.formats.paths import upwards
from omnizarr.formats.spelling import in_order_of
from omnizarr.nodes import consolidated, stored
from omnizarr.nodes.consolidated import Held, Nodes
from omnizarr.nodes.detection import Documents
from omnizarr.nodes.location import StorePath, dialects_at
from omnizarr.stores import LocalStore, Store, bounded, conflicts, pool
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.local import surroundings
from omnizarr.support.warned import warn

Below: TypeAlias = Literal["same", "gone", "new"]
"""The effect of a change on the nodes below: none, removed, or replaced."""
Place: TypeAlias = tuple[StorePath, Dialect]

_GROUPS: Final = ("zarr.json", ".zgroup", ".zmetadata")
_INLINE: Final = b'"consolidated_metadata"'


class Change:
    """A change of the node at a place. At the end of the block, the copies in the groups above are renewed.

    This happens only if the change began, and also if it failed then. The caller holds no lock of a group above.

    Parameters
    ----------
    where : StorePath
    below : {"same", "gone", "new"}
        What it means for the nodes below.
    own : bool
        Whether copies in the node itself are renewed, too.
    """

    __slots__ = ("_begun", "_start", "below", "formats", "is_new", "is_outermost", "known", "outside", "own", "where")

    def __init__(self, where: StorePath, below: Below = "same", *, own: bool = False) -> None:
        self.where = where
        self.below: Below = below
        self.own = own
        self.is_new = False
        """Whether there was no node at the place before."""
        self.is_outermost = False
        """Whether it has been seen that no group is directly above the store."""
        self.formats: Sequence[Dialect] | None = None
        """The formats of the documents that are changed, if they are known: other formats have no copies of them."""
        self.known: Mapping[str, Sequence[Dialect]] = {}
        """The formats in which groups above may keep copies, by path, as far as these groups have been read."""
        self.outside: StorePath | None = None
        """The same place in a store that begins at the outermost group above the store, once this was looked for."""
        self._begun = False
        self._start = 0
        """How long the paths of the groups above are at most; 0 for any length."""

    def begin(self, below: Below | None = None) -> None:
        """Note that documents are changed from now on."""
        self._begun = True
        self.below = below or self.below

    def begins_in(self, dialect: Dialect) -> None:
        """Note that documents of one format are changed from now on, of which only groups of that have copies."""
        self.formats = (dialect,)
        self.begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._begun:
            return
        if error is not None and self.below == "gone":
            self.below = "new"  # not all of them may be gone
        later = _later.get()
        if later is not None and error is None and later.takes(self):
            return
        _renew_for([self], error)

    def _seen_from(self, outside: StorePath) -> Change:
        """Return the same change in a store that begins further up, for the groups that this store does not reach."""
        seen = Change(outside, self.below)
        seen.formats = self.formats
        seen._start = len(outside.path) - len(self.where.prefix)
        return seen

    def candidates(self) -> Iterator[Place]:
        """Yield the places above that may keep copies, and in which format."""
        for place in self.places():
            known = self.known.get(place.path)
            for dialect in (self.formats or dialects_at(place)) if known is None else known:
                if self._may_hold(place, dialect):
                    yield place, dialect

    def places(self) -> Iterator[StorePath]:
        """Yield the places of the groups that the change concerns."""
        for place in self.where.ancestors():
            if not self._start or len(place.path) < self._start:
                yield place
        if self.own:
            yield self.where

    def _may_hold(self, place: StorePath, dialect: Dialect) -> bool:
        """Return whether copies of the node can be in a group, and not in the document that has just been written."""
        is_written = place.path == self.where.path and self.below == "same"
        is_apart = dialect.consolidated.document is not None
        return dialect.consolidated.is_possible and (is_apart or not is_written) and _key(place, dialect) is not None


class _Later:
    """Nodes of a store whose copies are renewed later: new ones, of which the groups above have none yet."""

    def __init__(self, store: Store, *, every: bool = False) -> None:
        self._store = store
        self._every = every
        self._paths: set[str] = set()
        self.changes: list[Change] = []

    def takes(self, change: Change) -> bool:
        """Note a change of a new node, or `every` change. Return False for others, whose copies must not get stale."""
        path = change.where.path
        is_one = change.is_new or path in self._paths or (self._every and change.below == "same")
        if change.where.store is not self._store or not is_one:
            return False
        self._paths.add(path)
        self.changes.append(change)
        return True


_later: Final[ContextVar[_Later | None]] = ContextVar("later", default=None)


@contextmanager
def together(store: Store, *, every: bool = False) -> Iterator[None]:
    """Renew copies of the nodes that are created in a store in this block, by this thread, once: at its end.

    Copies of nodes that are replaced or deleted are renewed as always, so that no reader finds old metadata for new
    chunks. `every`: also copies of nodes that change, for changes of which readers may learn later, as of arrays that
    become longer.
    """
    later = _Later(store, every=every)
    token = _later.set(later)
    error: BaseException | None = None
    try:
        yield
    except BaseException as failure:
        error = failure
        raise
    finally:
        _later.reset(token)
        if later.changes:
            _renew_for(later.changes, error)


def _renew_for(changes: Sequence[Change], error: BaseException | None = None) -> None:
    """Renew the copies in all groups above nodes of one store, also if there was an error, which hides errors here."""
    if error is not None:
        with suppress(OmnizarrError):
            _renew_above(changes)
        return
    _renew_above(changes)
    here = [change for change in changes if change.where.home is None and not change.is_outermost]
    above = _above(here[0].where.store) if here else None
    if above is not None:
        for change in here:
            change.outside = _seen_in(above, change.where)
        try:
            _renew_above([change._seen_from(change.outside) for change in here if change.outside])  # noqa: SLF001 - of its kind
        except OmnizarrError as failure:
            warn(
                f"the groups above {changes[0].where} may have consolidated metadata that is now stale: {failure}",
            )


def _renew_above(changes: Sequence[Change]) -> None:
    concerned: dict[tuple[str, str], tuple[Place, list[Change]]] = {}
    for change in changes:
        for place, dialect in change.candidates():
            concerned.setdefault((place.path, dialect.name), ((place, dialect), []))[1].append(change)
    asked = []
    for one, some in concerned.values():
        if _is_opened(*one):
            _renew(*one, None, some)
        else:
            asked.append((one, some))
    holds = (
        dict(pool.gather(lambda each: _holds(each[0]), asked, changes[0].where.store.features.concurrency))
        if asked
        else {}
    )
    for position, (one, some) in enumerate(asked):
        if holds[position]:
            _renew(*one, None, some)
    for snapshot in consolidated.opened():  # copies under a name of their own
        name = snapshot.name
        if name is not None and (some := [each for each in changes if any(map(snapshot.is_of, each.places()))]):
            _renew(snapshot.root, None, name, some)


def _seen_in(above: tuple[Store, str], where: StorePath) -> StorePath:
    """Return the same place in a store that begins further up."""
    store, path = above
    return StorePath(store, f"{path}/{where.path}".rstrip("/"))


def from_above(where: StorePath) -> StorePath | None:
    """Return the same place in a store that begins at the outermost group above; None if there is none above."""
    above = _above(where.store) if where.home is None else None
    return None if above is None else _seen_in(above, where)


def _above(store: Store) -> tuple[Store, str] | None:
    """Return what `_outermost` does, remembered where it takes long to find out."""
    # What has nothing above may be a store in memory: to look one up compares all values of stores.
    if store.features.concurrency == 1 or store.above() is None:
        return _outermost(store)
    enclosing = consolidated.enclosing
    return enclosing[store] if store in enclosing else enclosing.setdefault(store, _outermost(store))


def _outermost(store: Store) -> tuple[Store, str] | None:
    """Return a store that begins at the outermost group above a store, and the path of the store there."""
    if type(store) is LocalStore and not surroundings.files_in(os.path.dirname(store.root), _GROUPS):  # noqa: PTH120 - faster
        return None
    found, path = None, ""
    while (higher := store.above()) is not None:
        store, name = higher
        path = f"{name}/{path}".rstrip("/")
        if not any(pool.results(partial(_exists, store), _GROUPS, store.features.concurrency)):
            break
        found = store, path
    return found


def _exists(store: Store, key: str) -> bool:
    try:
        return store.exists(key)
    except StoreAccessError:
        return False  # of others


def renew(where: StorePath, below: Below = "new", *, own: bool = False) -> None:
    """Renew the copies of a node in the groups above it, after something else has changed its documents."""
    with Change(where, below, own=own) as change:
        change.begin()


def _key(place: StorePath, dialect: Dialect) -> str | None:
    """Return the key of the document in which a group keeps copies; None if it can keep none."""
    name = dialect.consolidated.document or dialect.group_document
    return dialect.keyspace.documents(place.path).get(name)


def _is_opened(place: StorePath, dialect: Dialect) -> bool:
    """Return whether this process uses the copies of the group at a place, so that there is no need to ask."""
    return any(
        snapshot.name is None
        and snapshot.known
        and snapshot.is_of(place)
        and consolidated.format_of(place, snapshot.known) == dialect.name
        for snapshot in consolidated.opened()
    )


def _holds(one: Place) -> bool:
    place, dialect = one
    key = _key(place, dialect) or ""
    if dialect.consolidated.document is not None:
        return _exists(place.store, key)
    try:
        return _INLINE in bytes(bounded.document(place.store, key) or b"")
    except StoreAccessError:
        return False  # of others


@conflicts.retried
def _renew(root: StorePath, dialect: Dialect | None, name: str | None, changes: Sequence[Change]) -> None:
    """Renew the copies that a group keeps of nodes that have changed."""
    with root.lock():
        try:
            held = consolidated.held_at(root, name, dialect)
        except StoreError:
            raise
        except OmnizarrError:
            return  # broken: `check` reports it
        if held is None:
            return  # another writer has removed the consolidated metadata
        delta = _delta(root, held, changes)
        text = _renewed_text(root, held, delta)
        nodes: Nodes | None = None
        if held.source is None or text is None:
            held = held.parsed()
            nodes = delta.applied(held.nodes)
            consolidated.write(root, held.dialect, nodes, held.group, name, held.nodes)
        elif text != held.source.members.text:
            root.store.set(held.source.key, text)
        place = held.dialect, "" if held.source is None else held.source.key
        del held  # there may be many
    users = [snapshot for snapshot in consolidated.opened() if snapshot.name == name and snapshot.is_of(root)]
    if users and nodes is None:
        nodes = consolidated.copies_in(*place, text or b"")
    for snapshot in users:
        snapshot.adopt(nodes or {})


class _Delta(NamedTuple):
    """What changes do to the copies of a group."""

    gone: set[str]
    """Paths of nodes that are removed with everything below them."""
    read: dict[str, Documents]
    """The documents of nodes that are new, or have changed."""

    def removed(self, nodes: Nodes) -> set[str]:
        """Return the paths of the copies that are removed, as far as they are not read again."""
        return {path for path in nodes if _is_in(path, self.gone)} if self.gone else set()

    def applied(self, nodes: Nodes) -> dict[str, Documents]:
        """Return the copies after the changes."""
        removed = self.removed(nodes)
        return {**{path: node for path, node in nodes.items() if path not in removed}, **self.read}


def _delta(root: StorePath, held: Held, changes: Sequence[Change]) -> _Delta:
    """Return what is to be changed, with the documents as they are now."""
    nodes, skip = held.nodes, len(root.prefix)
    wanted: dict[str, StorePath] = {}
    for change in changes:
        for place in change.where.ancestors():
            if len(place.path) > len(root.path) and place.path[skip:] not in nodes:
                wanted[place.path] = place  # it may have been created on the way
        if change.where.path != root.path or held.group is None:
            wanted[change.where.path] = change.where
    workers = root.store.features.concurrency
    found = dict(pool.gather(lambda place: _copy_of(place, held.dialect, skip), wanted.values(), workers))
    read = {path: node for position in range(len(wanted)) for path, node in found[position].items()}
    gone = set()
    for change in changes:
        path = change.where.path[skip:]
        if change.below != "same" or not (path in read or change.where.path == root.path):
            gone.add(path)
    for change in changes:
        if change.below == "new":
            below = consolidated.gather_below(change.where, held.dialect.name)
            read.update(
                (f"{change.where.prefix}{path}"[skip:], node)
                for path, node in below.items()
                if consolidated.is_of(held.dialect, node)
            )
    return _Delta(gone, read)


def _copy_of(place: StorePath, dialect: Dialect, skip: int) -> dict[str, Documents]:
    """Return the documents of a node of a format by its path below a group; nothing for nodes of other formats."""
    found = consolidated.documents_in(place, dialect)
    return {place.path[skip:]: found} if found else {}


def _is_in(path: str, tops: Container[str]) -> bool:
    """Return whether a path is one of several, or below one of them."""
    return any(each in tops for each in upwards(path))


def _renewed_text(root: StorePath, held: Held, delta: _Delta) -> bytes | None:
    """Return the text of all copies, with those of a few nodes renewed; the others are neither parsed nor made.

    The document is changed as if it held only those copies and their neighbours. The others are put back into its
    text then. None if this is not possible: parse all copies.
    """
    nodes = held.nodes
    if held.source is None or not isinstance(nodes, Slices):
        return None
    dialect, (key, members) = held.dialect, held.source
    removed, read = delta.removed(nodes), delta.read
    touched = {*removed, *read}
    if held.group is not None:
        read = consolidated.inline_copies(dialect, read)
    paths = [path for path in nodes if path not in removed and (path in read or path not in touched)]
    paths += [path for path in read if path in removed or path not in nodes]

    def names_after(path: str) -> AbstractSet[str]:
        return read[path].keys() if path in read else nodes.names(path)

    def before() -> Iterator[tuple[str, str]]:
        return consolidated.in_order(dialect, nodes, nodes.names)

    def after() -> Iterator[tuple[str, str]]:
        return consolidated.in_order(dialect, paths, names_after)

    if not _are_equal(before(), members.names):
        return None
    kept = _neighbourhood(touched, members.names, before(), after())
    some = consolidated.held_from(dialect, key, members.only(kept))
    if some is None:
        return None
    known = {**some.nodes, **read}
    few = {path: known[path] for path in paths if path in known}
    result = members.restored(kept, _rendered(root, few, some))
    return result[0] if result is not None and _are_equal(after(), result[1]) else None


def _are_equal(named: Iterable[tuple[str, str]], names: Sequence[str]) -> bool:
    return all(found is not None and found[0] == name for found, name in zip_longest(named, names))


def _rendered(where: StorePath, nodes: Nodes, held: Held) -> bytes:
    """Return the document of copies, as a revision of what was read."""
    if held.group is not None:
        found = stored.dump(where, replace(held.group.metadata, consolidated=nodes))
        return documents.render(found[held.dialect.group_document])
    replaced = held.nodes.document if isinstance(held.nodes, consolidated.Copies) else None
    return documents.render(in_order_of(held.dialect.consolidated.dump(nodes), replaced))


def _neighbourhood(
    touched: Container[str],
    names: Sequence[str],
    before: Iterable[tuple[str, str]],
    after: Iterable[tuple[str, str]],
) -> list[int]:
    """Return which of the copies with `names` a change concerns, by number.

    They are those of the paths `touched`, the ones beside these, and the first two, which show the spacing, and the
    last. `before` and `after` are names and paths.
    """
    wanted: set[str] = set()
    for those in (before, after):
        last, is_touched = "", False
        for name, path in those:
            if is_touched or path in touched:
                is_touched = path in touched
                wanted.update((last, name) if is_touched else (name,))
            last = name
    ends = {0, 1, len(names) - 1}
    return [number for number, name in enumerate(names) if name in wanted or number in ends]
