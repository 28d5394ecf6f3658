"""Consolidated metadata of a group: reading, writing and checking it.

A group opened from consolidated metadata finds its members there. Every change of a node changes its documents first
and the copies next (`omnizarr.nodes.renewing`), so that our own changes never make the copies stale. `differences`
finds copies that other programs made stale.

Spec: Zarr v3 core, "Additional fields"; for v2 a convention (``.zmetadata``).
"""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from omnizarr.codecs.contract import Buffer
from omnizarr.errors import (
    ConsolidatedMetadataError,
    Function,
    InvalidKeyError,
    NodeNameError,
    OmnizarrError,
    Remedy,
    StoreError,
)
from omnizarr.formats import DIALECTS, documents, paths
from omnizarr.formats.consolidated import Copy, Slices
from omnizarr.formats.contract import Dialect, Scanned
from omnizarr.formats.scanning import Members
from omnizarr.formats.spelling import Document, in_order_of, same
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata, strict
from omnizarr.nodes import detection, stored
from omnizarr.nodes import walk as walks
from omnizarr.nodes.detection import Documents, Found
from omnizarr.nodes.kept import KeptDocuments
from omnizarr.nodes.location import StorePath, dialect_of, dialects_at
from omnizarr.stores import Store, bounded, conflicts, threads
from omnizarr.stores.base import invalid_key, is_key
from omnizarr.support.warned import warn

Nodes = Mapping[str, Documents]

"""The location of a node with its documents, or with the error that makes them unreadable."""

_MANY_BYTES: Final = 2**16
"""Smaller documents are parsed, and remembered (`omnizarr.formats.documents.parse_shared`)."""


class Copies(dict[str, Documents]):
    """Documents by path below a group, and the document that contains the group's consolidated metadata.

    Parameters
    ----------
    nodes : mapping
    document : JSON
    """

    __slots__ = ("document",)

    def __init__(self, nodes: Nodes, document: JSON) -> None:
        super().__init__(nodes)
        self.document = document


class _Group(NamedTuple):
    """The documents of a group, as they were read."""

    dialect: Dialect
    documents: Documents
    metadata: GroupMetadata
    text: bytes = b""
    """The text, if its copies have been left out of the documents."""

    def without_copies(self) -> Documents:
        """Return the documents without copies of others in them."""
        return _without_copies(self.dialect, self.metadata, self.documents)


class Held(NamedTuple):
    """The copies of a group, and what was read to find them."""

    dialect: Dialect
    nodes: Nodes
    group: _Group | None
    source: Source | None = None
    """The text, if the copies in it have not been parsed. The group is then without copies."""

    def parsed(self) -> Held:
        """Return the same, with all copies parsed."""
        source = self.source
        held = None if source is None else held_from(self.dialect, source.key, source.members.text)
        return held or self


class Source(NamedTuple):
    """Where copies were found."""

    key: str
    members: Members


class Snapshot:
    """The nodes below a group, from its consolidated metadata.

    All nodes reached through the group share it.

    Parameters
    ----------
    root : StorePath
        Place of the group.
    name : str, optional
        Key of the document with the copies, if it is not the usual one.
    nodes : mapping, optional
        Documents by path below the group, not yet parsed. By default, they are read at first use.
    """

    def __init__(self, root: StorePath, name: str | None = None, nodes: Nodes | None = None) -> None:
        self.root = root
        self.name = name
        self._nodes = nodes
        self._names: tuple[Nodes, Mapping[str, set[str]]] | None = None
        """The names of children by path, and the copies of which they are."""
        self._length = len(root.prefix)
        with threads.lock(Snapshot):
            _opened.add(self)

    @classmethod
    def of(cls, found: Found[GroupMetadata], use: str | bool | None) -> Snapshot | Callable[[], Snapshot | None] | None:  # noqa: FBT001 - as for `snapshot`
        """Return the result of `snapshot`.

        If nothing depends on it before members are requested, return a function that finds it.

        Most groups have no consolidated metadata, and looking for it takes a request.
        """
        where, metadata = found.where, found.metadata
        dialect = dialect_of(where, metadata)
        if use is None and dialect.consolidated.document is None and metadata.consolidated is None:
            return None
        if use is None and dialect.consolidated.document is not None:
            is_possible = dialect.consolidated.document in dialect.keyspace.documents(where.path)
            return partial(snapshot, where, None, dialect) if is_possible else None
        return snapshot(where, use, dialect, metadata if metadata.consolidated is not None else None)

    @property
    def nodes(self) -> Nodes:
        """Documents by path below the group."""
        nodes = self._nodes
        if nodes is None:
            found = read(self.root, self.name) or {}
            with self._guard():
                if self._nodes is None:  # otherwise another thread has changed the copies since
                    self._nodes = found
                nodes = self._nodes
        return nodes

    @property
    def known(self) -> Nodes | None:
        """The same, if they have been read."""
        return self._nodes

    def adopt(self, nodes: Nodes) -> None:
        """Use other copies, which are now stored."""
        with self._guard():
            self._nodes = nodes

    def is_of(self, root: StorePath) -> bool:
        """Return whether these are the copies of the group at a place."""
        own = self.root
        return own.path == root.path and (own.store is root.store or own.store.origin() == root.store.origin())

    def _guard(self) -> AbstractContextManager[object]:
        return threads.lock((Snapshot, id(self)))

    def children(self, path: str) -> list[str]:
        """Return the sorted names of the nodes directly below `path`."""
        nodes = self.nodes
        if self._names is None or self._names[0] is not nodes:
            self._names = nodes, _names_below(nodes)
        return sorted(self._names[1].get(self._relative(path), ()))

    def load(self, path: str) -> Metadata | None:
        """Return the node at `path`; None if it has no copy. Raises MetadataError if its copy is broken."""
        return self.load_at(self.root.at(path))

    def load_at(self, where: StorePath) -> Metadata | None:
        """Like `load`, for a place in the same store."""
        path = where.path
        found = self.nodes.get(path[self._length :])
        if path and not path.isidentifier() and not is_key(path):
            raise invalid_key(path).add(store=str(where.store), path=path)
        formats = dialects_at(where)
        if found is None:
            return GroupMetadata(dialect=formats[0].name, implicit=True) if self.children(path) else None
        names = found.texts if isinstance(found, Copy) else found
        for dialect in formats:
            if dialect.array_document in names or dialect.group_document in names:
                metadata = detection.load_copy(where, dialect, found)
                if metadata is not None:
                    return metadata
        return None

    def _relative(self, path: str) -> str:
        return path[self._length :]

    def __reduce__(self) -> tuple[Any, ...]:
        return Snapshot, (self.root, self.name)


enclosing: Final[WeakKeyDictionary[Store, tuple[Store, str] | None]] = WeakKeyDictionary()
"""Remote stores, and a store in which each begins below a group, with its path there; None if there is none. They are
asked once, until something is consolidated."""

_opened: Final[WeakSet[Snapshot]] = WeakSet()
"""Consolidated metadata that this process has opened. Every change updates all of it (`omnizarr.nodes.renewing`)."""


def opened() -> list[Snapshot]:
    """Return the consolidated metadata that nodes of this process use."""
    if not _opened:
        return []
    with threads.lock(Snapshot):
        return list(_opened)


def _names_below(nodes: Nodes) -> dict[str, set[str]]:
    """Return the names of the nodes directly below each path, including those that have only nodes below."""
    names: dict[str, set[str]] = {}
    for path in nodes:
        above, _, name = path.rpartition("/")
        while name and name not in (there := names.setdefault(above, set())):
            there.add(name)
            above, _, name = above.rpartition("/")
    return names


def snapshot(
    where: StorePath,
    use: str | bool | None,  # noqa: FBT001 - one of three and names
    dialect: Dialect | None = None,
    group: GroupMetadata | None = None,
) -> Snapshot | None:
    """Return the consolidated metadata of a group according to ``use_consolidated=``.

    Parameters
    ----------
    where : StorePath
    use : bool or str, optional
        True: it must exist. None: if it exists. False: never. A string: it must exist under this name.
    dialect : Dialect, optional
        The dialect of the group, if it is known.
    group : GroupMetadata, optional
        Metadata of the group, if it has just been read and contains copies.

    Raises
    ------
    ConsolidatedMetadataError
        If it must exist and is missing or broken.
    """
    if use is False:
        return None
    name = use if isinstance(use, str) else None
    try:
        nodes = read(where, name, dialect, group)
    except OmnizarrError as error:
        if use is not None:
            raise
        warn(f"consolidated metadata is broken and ignored: {error}")
        return None
    if nodes is None and use is not None:
        raise ConsolidatedMetadataError(
            "there is no consolidated metadata",
            store=str(where.store),
            path=where.path,
            remedy=Remedy("open with {use_consolidated}", use_consolidated=None)
            | Remedy("make it with {consolidate_metadata}", consolidate_metadata=Function()),
        )
    return None if nodes is None else Snapshot(where, name, nodes)


def read(
    where: StorePath, name: str | None = None, dialect: Dialect | None = None, group: GroupMetadata | None = None
) -> Nodes | None:
    """Return the copies in a group's consolidated metadata; None if there is none.

    Looks in the way of one dialect, or of each dialect that the group may have; in its documents, if they are
    given.

    Raises ConsolidatedMetadataError if it is broken.
    """
    held = held_at(where, name, dialect, group)
    return None if held is None else held.nodes


def held_at(
    where: StorePath,
    name: str | None,
    dialect: Dialect | None = None,
    group: GroupMetadata | None = None,
    *,
    prefer: str = "",
) -> Held | None:
    """Return the copies like `read`, and what was read for them. Tries the dialect `prefer` first."""
    for candidate in _preferring(where, prefer) if dialect is None else (dialect,):
        try:
            held = _held_in(where, candidate, name, group)
        except OmnizarrError as error:
            raise error.add(
                store=str(where.store),
                path=where.path,
                remedy=Remedy("open with {use_consolidated}", use_consolidated=False)
                | Remedy("see what {check} finds", check=Function()),
            ) from None
        if held is not None:
            return held
    return None


def _preferring(where: StorePath, prefer: str) -> Sequence[Dialect]:
    return sorted(dialects_at(where), key=lambda dialect: dialect.name != prefer)


def _held_in(where: StorePath, dialect: Dialect, name: str | None, group: GroupMetadata | None) -> Held | None:
    if dialect.consolidated.document is None:
        if group is not None:
            is_sound = isinstance(group.consolidated, Slices)
            return (
                Held(dialect, group.consolidated or {}, None)
                if is_sound
                else _held_inline(dialect, dialect.dump(group))
            )
        values = detection.fetch_documents(where, dialect)
        data = values.get(dialect.group_document)
        if data is not None:
            held = _scanned(dialect, dialect.keyspace.documents(where.path)[dialect.group_document], data)
            if held is not None:
                return held
        return _held_inline(dialect, detection.parsed(where, dialect, values))
    key = _key(where, dialect, name)
    data = None if key is None else bounded.document(where.store, key)
    if key is None or data is None:
        return None
    return _scanned(dialect, key, data) or held_from(dialect, key, data)


def _scanned(dialect: Dialect, key: str, data: Buffer) -> Held | None:
    """Return the copies in the value of a key, not parsed; None if this is not possible."""
    if len(data) < _MANY_BYTES:
        return None
    text = bytes(data)
    scanned = _shared(dialect, text) or dialect.consolidated.scan(text)
    if scanned is None:
        return None
    try:
        held = held_from(dialect, key, scanned.members.without())
    except OmnizarrError:
        return None
    return held and held._replace(nodes=scanned.nodes, source=Source(key, scanned.members))


def _shared(dialect: Dialect, text: bytes) -> Scanned | None:
    """Return what nodes of this process use already, if it is from an equal text."""
    for snapshot in opened():
        nodes = snapshot.known
        if isinstance(nodes, Slices) and nodes.members.text == text:
            path = nodes.members.path
            if (path == ("metadata",)) == (dialect.consolidated.document is not None):
                return Scanned(nodes, nodes.members)
    return None


def _held_inline(dialect: Dialect, found: Documents) -> Held | None:
    """Return the copies in the document of a group."""
    metadata = dialect.load(found, strict) if found else None
    if not isinstance(metadata, GroupMetadata) or metadata.consolidated is None:
        return None
    return Held(dialect, metadata.consolidated, _Group(dialect, found, metadata))


def held_from(dialect: Dialect, key: str, data: Buffer) -> Held | None:
    """Return the copies in the value of a key."""
    try:
        document = documents.parse_shared(data, strict)
    except OmnizarrError as error:
        raise ConsolidatedMetadataError(error.message, key=key, found=error.found) from None
    if dialect.consolidated.document is None:
        return _held_inline(dialect, {dialect.group_document: document})
    try:
        return Held(dialect, Copies(dialect.consolidated.load(document, strict), document), None)
    except OmnizarrError as error:
        raise error.add(key=key)


def _key(where: StorePath, dialect: Dialect, name: str | None) -> str | None:
    """Return the key of the copies; None if the format has no place for them."""
    if name is not None:
        return where.prefix + name
    return dialect.keyspace.documents(where.path).get(str(dialect.consolidated.document))


def documents_at(where: StorePath, prefer: str = "") -> Documents:
    """Return the documents of the node at a place, without copies of others in them; empty if there is none.

    `prefer` is the dialect to use if documents of several formats are at the place.
    """
    return next(filter(None, (documents_in(where, dialect) for dialect in _preferring(where, prefer))), {})


def documents_in(where: StorePath, dialect: Dialect) -> Documents:
    """Return the documents of the node at a place in one dialect, like `documents_at`."""
    found = detection.read_documents(where, dialect)
    try:
        metadata = detection.load(where, dialect, found)
    except OmnizarrError:
        return found  # a copy of a broken document is broken, too, and raises its error when it is read
    return {} if metadata is None else _without_copies(dialect, metadata, found)


def _without_copies(dialect: Dialect, metadata: Metadata, found: Documents) -> Documents:
    if isinstance(metadata, GroupMetadata) and metadata.consolidated is not None:
        return dialect.dump(replace(metadata, consolidated=None))
    return found


def gather(where: StorePath, prefer: str = "", unreachable: list[str] | None = None) -> dict[str, Documents]:
    """Return the documents of all nodes below a group, by path relative to it. The group itself has the path "".

    Paths that `walk` skips are added to `unreachable`.
    """
    return {"": documents_at(where, prefer), **gather_below(where, prefer, unreachable)}


def gather_below(where: StorePath, prefer: str, unreachable: list[str] | None = None) -> dict[str, Documents]:
    """Return the same without the group itself."""
    return dict(_documents_below(where, prefer, unreachable))


def _documents_below(
    where: StorePath, prefer: str, unreachable: list[str] | None = None
) -> Iterator[tuple[str, Documents]]:
    for place, metadata in walk(where, prefer, unreachable, concurrency=where.store.features.concurrency):
        found = (
            documents_at(place, prefer)
            if metadata is None
            else _without_copies(dialect_of(place, metadata), metadata, stored.dump(place, metadata))
        )
        yield place.path[len(where.prefix) :], found


def walk(
    where: StorePath, prefer: str = "", unreachable: list[str] | None = None, *, concurrency: int = 1
) -> Iterator[tuple[StorePath, Metadata | None]]:
    """Yield place and metadata of all nodes with documents below a group, parents first; None for a broken one.

    Nodes for which the store has no keys are skipped, and their paths, relative to the group, are added to
    `unreachable`. Raises StoreError if the store fails, so that missing answers do not count as missing nodes.
    """
    for place, found in walks.listed(where, prefer, concurrency=concurrency):
        if isinstance(found, (InvalidKeyError, NodeNameError)):
            if unreachable is not None:
                unreachable.append(place.path[len(where.prefix) :])
        elif isinstance(found, StoreError):
            raise found
        elif isinstance(found, OmnizarrError):
            yield place, None
        elif not (isinstance(found, GroupMetadata) and found.implicit):
            yield place, found


def walk_from(where: StorePath, concurrency: int = 1) -> Iterator[tuple[StorePath, Metadata | None]]:
    """Yield place and metadata of the node at a place and all below it; None for a broken one below."""
    found = detection.detect(where)
    if found is not None:
        yield where, found.metadata
    if found is not None and isinstance(found.metadata, GroupMetadata):
        yield from walk(found.where, concurrency=concurrency)


def _group_at(where: StorePath, zarr_format: int | str | None) -> _Group:
    for dialect in dialects_at(where, zarr_format):
        values = detection.fetch_documents(where, dialect, "group")
        text = bytes(values.get(dialect.group_document, b""))
        scanned = None
        if dialect.consolidated.document is None and len(text) >= _MANY_BYTES:
            scanned = dialect.consolidated.scan(text)
        if scanned is not None:  # what remains describes the group itself: its copies are made again
            values = {**values, dialect.group_document: scanned.members.without()}
        found = detection.parsed(where, dialect, values)
        metadata = detection.load(where, dialect, found)
        if isinstance(metadata, GroupMetadata):
            return _Group(dialect, found, metadata, b"" if scanned is None else text)
    raise ConsolidatedMetadataError("there is no group", store=str(where.store), path=where.path)


def is_of(dialect: Dialect, node: Documents) -> bool:
    """Whether documents have the names of a dialect."""
    return node.keys() <= dialect.keyspace.documents("").keys()


def format_of(where: StorePath, nodes: Nodes) -> str:
    """Return the name of the dialect of copies; "" if there are none."""
    formats = (dialect for node in nodes.values() for dialect in dialects_at(where) if node and is_of(dialect, node))
    return next((dialect.name for dialect in formats), "")


def write(
    where: StorePath,
    dialect: Dialect,
    nodes: Nodes,
    group: _Group | None,
    name: str | None = None,
    old: Nodes | None = None,
) -> None:
    """Store copies as the consolidated metadata of a group, in its dialect. The caller holds its lock.

    The parts that the new document shares with the copies `old`, which it replaces, keep their text.
    """
    if dialect.consolidated.document is None:
        if group is not None:
            consolidated = replace(group.metadata, consolidated=inline_copies(dialect, nodes))
            stored.rewrite(where, dialect, consolidated, group.documents)
        return
    key = _key(where, dialect, name)
    if key is None:
        raise _no_place(where, dialect)
    replaced = old.document if isinstance(old, Copies) else None
    where.store.set(key, documents.render_shared(in_order_of(dialect.consolidated.dump(nodes), replaced)))


def _no_place(where: StorePath, dialect: Dialect) -> ConsolidatedMetadataError:
    return ConsolidatedMetadataError(
        f"Zarr {dialect.name} keeps consolidated metadata at the root of a hierarchy only",
        store=str(where.store),
        path=where.path,
        remedy="consolidate the root",
    )


def inline_copies(dialect: Dialect, nodes: Nodes) -> dict[str, Documents]:
    """Return the copies that fit into the document of the group itself."""
    names = dialect.keyspace.documents("").keys()
    return {path: node for path, node in nodes.items() if path and node.keys() <= names}


def stored_copies(dialect: Dialect, group: Documents, nodes: Nodes) -> dict[str, bytes]:
    """Return, by name, the stored document in which a group of a dialect keeps copies of all nodes below it.

    `group` are the documents of the group alone; `nodes` are all documents by path below it, its own under "".
    """
    apart = dialect.consolidated.document
    if apart is not None:
        return {apart: documents.render(dialect.consolidated.dump(nodes))}
    metadata = dialect.load(group, strict)
    if not isinstance(metadata, GroupMetadata):
        return {}
    inline = {path: node for path, node in nodes.items() if path}
    found = dialect.dump(replace(metadata, consolidated=inline))
    return {name: documents.render(document) for name, document in found.items()}


@conflicts.retried
def consolidate(where: StorePath, zarr_format: int | str | None = None) -> tuple[GroupMetadata, Snapshot]:
    """Store copies of the documents of all nodes below a group with the group. Return the group and the copies.

    `zarr_format` is the format of the group, if it is known.
    """
    enclosing.clear()
    with where.lock():
        group = _group_at(where, zarr_format)
        dialect = group.dialect
        unreachable: list[str] = []
        below = _documents_below(where, dialect.name, unreachable)
        few, many = _few_or_many(itertools.chain([("", group.without_copies())], below))
        nodes: Nodes = few if many is None else many
        if many is None:
            write(where, dialect, few, group)
        else:
            _write_many(where, group, many)
    names = dialect.keyspace.documents("").keys()
    others = [path for path in nodes if path and not _names_of(nodes, path) <= names]
    if others:
        warn(
            f"consolidated metadata of Zarr {dialect.name} has no place for nodes of other formats ({_some(others)}): "
            "open the group with use_consolidated=False to see them",
        )
    if unreachable:
        warn(
            f"consolidated metadata leaves out what the store has no keys for ({_some(unreachable)})",
        )
    if dialect.consolidated.document is not None:
        return group.metadata, Snapshot(where, None, nodes)
    inline = _Without(nodes, {"", *others})
    return replace(group.metadata, consolidated=inline), Snapshot(where, None, inline)


class _Without(Mapping[str, Documents]):
    """Documents of nodes without those of some."""

    __slots__ = ("_left_out", "_nodes")

    def __init__(self, nodes: Nodes, left_out: AbstractSet[str]) -> None:
        self._nodes = nodes
        self._left_out = left_out

    def __getitem__(self, path: str) -> Documents:
        if path in self._left_out:
            raise KeyError(path)
        return self._nodes[path]

    def __iter__(self) -> Iterator[str]:
        return (path for path in self._nodes if path not in self._left_out)

    def __len__(self) -> int:
        return len(self._nodes) - len(self._left_out & self._nodes.keys())


def _few_or_many(found: Iterable[tuple[str, Documents]]) -> tuple[dict[str, Documents], KeptDocuments | None]:
    """Return documents by path as they are; if they are long, as texts in little memory."""
    few: dict[str, Documents] | None = {}
    kept = KeptDocuments()
    for path, node in found:
        kept.add(path, node)
        if few is not None:
            few[path] = node
            if kept.nbytes > documents.MAX_INDENTED:
                few = None
    return ({}, kept) if few is None else (few, None)


def _names_of(nodes: Nodes, path: str) -> AbstractSet[str]:
    return frozenset(nodes.names(path)) if isinstance(nodes, KeptDocuments) else nodes[path].keys()


def _write_many(where: StorePath, group: _Group, nodes: KeptDocuments) -> None:
    """Store long copies, each on one line, from which the document is joined. The caller holds the group's lock."""
    dialect = group.dialect
    mark = {"omnizarr": os.urandom(16).hex()}
    placeholder = Document(mark, documents.on_one_line(mark).decode())
    name = dialect.consolidated.document or dialect.group_document
    if dialect.consolidated.document is None:
        written = stored.dump(where, replace(group.metadata, consolidated={"x": {name: placeholder}}))
        text = documents.render(written[name])
    else:
        text = documents.render(dialect.consolidated.dump({"x": {dialect.group_document: placeholder}}))
    placed = "x", placeholder.text.encode()
    if dialect.consolidated.document is not None:
        placed = f"x/{dialect.group_document}", placed[1]
    parts = documents.with_members(text, placed, _members(dialect, nodes))
    key = _key(where, dialect, None) if dialect.consolidated.document else _document_key(where, dialect)
    if key is None:
        raise _no_place(where, dialect)
    joined = io.BytesIO()  # `join` would hold all parts beside their sum
    joined.writelines(parts)
    value = joined.getvalue()
    if value != group.text:
        where.store.set(key, value)


def _document_key(where: StorePath, dialect: Dialect) -> str:
    return dialect.keyspace.documents(where.path)[dialect.group_document]


def _members(dialect: Dialect, nodes: KeptDocuments) -> Iterator[tuple[str, bytes]]:
    """Yield names and texts of copies, in the order in which `Dialect.consolidated.dump` writes them."""
    for name, path in in_order(dialect, nodes, nodes.names):
        document = name.rpartition("/")[2] if dialect.consolidated.document else dialect.group_document
        yield name, nodes[path].texts[document]


def in_order(
    dialect: Dialect, found: Iterable[str], names_of: Callable[[str], Collection[str]]
) -> Iterator[tuple[str, str]]:
    """Yield name and path of each copy as `Dialect.consolidated.dump` writes it, for nodes with the paths `found`.

    `names_of` returns the names of the documents of a node.
    """
    if dialect.consolidated.document is None:
        only = {dialect.group_document}
        for path in sorted(found):
            if path and set(names_of(path)) == only:
                yield path, path
        return
    names = dialect.keyspace.documents("").keys()
    for path in found:
        for name in sorted(names_of(path)):
            if name in names:
                yield paths.key(path, name), path


def copies_in(dialect: Dialect, key: str, text: bytes) -> Nodes:
    """Return the copies in a text that has just been stored under a key."""
    held = _scanned(dialect, key, text) or held_from(dialect, key, text)
    return {} if held is None else held.nodes


@conflicts.retried
def remove(where: StorePath, zarr_format: int | str | None = None) -> bool:
    """Delete the consolidated metadata of a group, and return whether there was any. The documents do not change."""
    with where.lock():
        group = _group_at(where, zarr_format)
        if group.dialect.consolidated.document is None:
            if group.metadata.consolidated is None:
                return False
            alone = replace(group.metadata, consolidated=None)
            stored.rewrite(where, group.dialect, alone, group.documents)
            return True
        key = _key(where, group.dialect, None)
        if key is None or not where.store.exists(key):
            return False
        where.store.delete(key)
        return True


def _some(paths: Sequence[str]) -> str:
    return ", ".join(map(repr, paths[:5])) + (", ..." if len(paths) > 5 else "")


def differences(where: StorePath, nodes: Nodes) -> list[str]:
    """Return the paths, relative to the group, where copies differ from the documents."""
    prefer = format_of(where, nodes)
    formats = [dialect for dialect in dialects_at(where) if prefer in {"", dialect.name}]
    different, left = [], set(nodes) - {""}
    for path, node in _documents_below(where, prefer):  # one after the other: there may be many
        # There is no place for nodes of other formats among the copies.
        if path in nodes or any(is_of(dialect, node) for dialect in formats):
            left.discard(path)
            if not _agree(nodes.get(path), node):
                different.append(path)
    different.extend(path for path in left if not _agree(nodes[path], None))
    return sorted(different)


def _agree(copy: Documents | None, original: Documents | None) -> bool:
    ours, theirs = _meaning(copy or {}), _meaning(original or {})
    if isinstance(ours, ArrayMetadata | GroupMetadata) and isinstance(theirs, ArrayMetadata | GroupMetadata):
        is_same = same(ours.attributes, theirs.attributes)
        return is_same and replace(ours, attributes={}) == replace(theirs, attributes={})
    return same(ours, theirs)


def _meaning(found: Documents) -> Metadata | Documents | None:
    """Return the content of documents; broken ones unchanged."""
    for dialect in DIALECTS:
        try:
            metadata = dialect.load(found, strict)
        except OmnizarrError:
            return found
        if isinstance(metadata, GroupMetadata):
            # zarr-python 3 puts an empty block into the copies of .zgroup.
            unknown = {name: value for name, value in metadata.unknown.items() if name != "consolidated_metadata"}
            metadata = replace(metadata, consolidated=None, unknown=unknown)
        if metadata is not None:
            return metadata
    return None


def check(where: StorePath, nodes: Nodes) -> None:
    """Raise ConsolidatedMetadataError if copies differ from the documents. The error names the paths."""
    different = differences(where, nodes)
    if different:
        raise ConsolidatedMetadataError(
            "consolidated metadata is stale",
            store=str(where.store),
            path=where.path,
            found=f"other documents at {', '.join(repr(path) for path in different)}",
            remedy=Remedy("run {consolidate_metadata} again", consolidate_metadata=Function())
            | Remedy("open with {use_consolidated}", use_consolidated=False),
        )
