"""The documents below a place, including those that a walk through the hierarchy does not reach.

One listing finds them by their names. In hierarchies with an entry point, the entry point says where they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from omnizarr.errors import MetadataError, StoreError
from omnizarr.formats import DIALECTS, dialects_for, documents
from omnizarr.formats.consolidated import Copy, Slices
from omnizarr.formats.contract import Dialect, Scanned
from omnizarr.formats.keyspaces import Split
from omnizarr.formats.paths import Above, prefix
from omnizarr.formats.reader import join
from omnizarr.model import JSON, Metadata, Problem, Report, strict
from omnizarr.nodes import detection, holdings
from omnizarr.nodes.location import StorePath
from omnizarr.settings import config
from omnizarr.stores import bounded, verbs
from omnizarr.stores.base import Buffer, Store
from omnizarr.support.packed import Packed

ENTRY: Final = "zarr.json"

_META = re.compile(r"(?:^|/)meta/")
_DRAFT_NAME = re.compile(r"[^/]*\.(?:array|group)[A-Za-z0-9._-]{0,64}")
_ROOT_DOCUMENT = re.compile(r"(?:^|/)meta/(?:array|group)[A-Za-z0-9._-]{0,64}\Z")
_CONSOLIDATED = ".zmetadata"
_COPIES: Final = b"consolidated_metadata"
_BATCH: Final = 256
_MANY_BYTES: Final = 2**16
"""Of smaller documents, all copies are parsed."""
_OWN: Final = frozenset({".zgroup", ".zattrs", ".zarray"})
"""The names of the copies of a group's own documents in Zarr v2."""

Scan: TypeAlias = Callable[[bytes], Scanned | None]
_SCANS: Final[Mapping[str, Scan]] = {
    dialect.consolidated.document or dialect.group_document: dialect.consolidated.scan for dialect in reversed(DIALECTS)
}
"""What finds the copies in documents, by their names."""


class Document:
    """A document as it is in the store. It is parsed when its value is asked for.

    Parameters
    ----------
    key : str
    data : bytes-like
    value : JSON, optional
        What it says, if it `is_parsed`.
    problems : list of Problem, optional
        Why it cannot be read, if that is known. It is then not parsed.
    texts : Packed, optional
        What keeps the bytes of many documents.
    scan : callable, optional
        Finds the copies of other documents in its text. If it does, they are no part of its value.

    Attributes
    ----------
    is_read : bool
        Its problems have been told.
    is_unreadable : bool
        The store could not read it.
    may_be_entry, may_have_copies : bool
        False if it certainly is no entry point of a hierarchy, or has no copies of others in it.
    copies : Slices, optional
        The copies of other documents that its value is without, after this has been asked for.
    """

    __slots__ = (
        "_data", "_problems", "_scan", "_texts", "_value", "copies", "is_read", "is_unreadable", "key", "may_be_entry",
        "may_have_copies",
    )  # fmt: skip

    def __init__(
        self,
        key: str,
        data: Buffer,
        value: JSON = None,
        *,
        problems: list[Problem] | None = None,
        is_read: bool = False,
        is_unreadable: bool = False,
        is_parsed: bool = False,
        texts: Packed | None = None,
        scan: Scan | None = None,
    ) -> None:
        self.key = key
        self.is_read = is_read
        self.is_unreadable = is_unreadable
        text = bytes(data)
        self.may_be_entry = texts is None or detection.may_be_entry(text)
        self.may_have_copies = texts is None or _COPIES in text or b"\\" in text
        self.copies: Slices | None = None
        self._scan = scan if scan is not None and len(text) >= _MANY_BYTES else None
        self._texts = texts if self._scan is None else None
        self._data: Buffer | int = text if self._texts is None else self._texts.add(text)
        self._value = value
        self._problems: list[Problem] | None = [] if is_parsed else problems
        """None: it has not been parsed."""

    @property
    def data(self) -> Buffer:
        """Its bytes."""
        data = self._data
        return self._texts[data] if isinstance(data, int) and self._texts is not None else data  # type: ignore[return-value]

    @property
    def value(self) -> JSON:
        """What it says; None if it cannot be parsed."""
        if self._problems is None:
            self._parse()
        return self._value

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with it."""
        if self._problems is None:
            self._parse()
        return self._problems or []

    def _parse(self) -> None:
        problems: list[Problem] = []
        if self._scan is None or not self._is_scanned(self._scan):
            self._value = documents.parse(self.data, problems.append)
        self._problems = problems

    def _is_scanned(self, scan: Scan) -> bool:
        """Find the copies, and parse the rest; return whether this is possible."""
        text = bytes(self.data)
        found = scan(text) if len(text) <= config.get("documents.max_bytes") else None
        if found is None or not isinstance(found.nodes, Slices):
            return False
        members = found.members
        own = [number for number, name in enumerate(members.names) if name in _OWN]  # they describe the group itself
        value = documents.parse(members.replaced({members.names[number]: members.value(number) for number in own}))
        inline = value.get("consolidated_metadata") if isinstance(value, Mapping) else None
        if isinstance(inline, Mapping) and inline.get("kind", "inline") != "inline":
            return False  # what an unknown kind holds describes no nodes
        self._value, self.copies = value, found.nodes
        return True

    def parts(self) -> Iterator[tuple[str, str, JSON]]:
        """Yield its value, and each copy that this is without: key, JSON pointer and value."""
        yield self.key, "", self.value
        if self.copies is not None:
            members = self.copies.members
            above = "".join(join("", name) for name in members.path)
            for number, name in enumerate(members.names):
                if name not in _OWN:
                    yield name, join(above, name), documents.parse_part(members.value(number))

    def forget(self) -> None:
        """Release what it says, until it is asked for again: there may be many."""
        if isinstance(self._data, int):
            self._value = self._problems = None

    def forget_copies(self) -> None:
        """Release the copies, too."""
        if self.copies is not None:
            self._value = self._problems = self.copies = None

    @property
    def is_broken(self) -> bool:
        """Whether it could not be parsed at all."""
        return self.value is None and bool(self.problems)


@dataclass(slots=True)
class Node:
    """The documents of one format at one place."""

    where: StorePath
    dialect: Dialect
    documents: dict[str, Document]
    metadata: Metadata | None = None
    is_sound: bool = False
    """Its documents have no errors: its metadata can be relied on."""
    is_bound: bool = False
    """It is an array whose chunks can be read."""
    base: str = ""
    """JSON pointer of its document within consolidated metadata, if it has no other document."""

    @property
    def path(self) -> str:
        """Where it is."""
        return self.where.path

    @property
    def values(self) -> dict[str, JSON]:
        """The documents, parsed, by name; without those that could not be."""
        return {name: document.value for name, document in self.documents.items() if not document.is_broken}

    @property
    def marker(self) -> Document:
        """The document that makes it a node."""
        for name in (self.dialect.array_document, self.dialect.group_document):
            if name in self.documents:
                return self.documents[name]
        return next(iter(self.documents.values()))


@dataclass(slots=True)
class Inventory:
    """What a listing shows.

    Attributes
    ----------
    nodes : dict of str to list of Node
        By path; of several formats at one place in the order of detection.
    homes : list of Split
        Hierarchies with an entry point.
    entries : list of (str, Document, list of Problem)
        Path and document of these entry points, and of those that are broken, with what is wrong with them.
    loose : list of (str, str)
        Path and key of documents that belong to no node.
    known : set of str
        Keys of documents that are not at the path of a node.
    """

    nodes: dict[str, list[Node]] = field(default_factory=dict)
    homes: list[Split] = field(default_factory=list)
    entries: list[tuple[str, Document, list[Problem]]] = field(default_factory=list)
    loose: list[tuple[str, str]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def knows(self, key: str) -> bool:
        """Return whether a key is that of a document."""
        if key in self.known:
            return True
        path, _, name = key.rpartition("/")
        nodes = self.nodes.get(path, ())
        return any(name in node.documents and node.documents[name].key == key for node in nodes)

    def __iter__(self) -> Iterator[Node]:
        for nodes in self.nodes.values():
            yield from nodes


def copy_pointer(group: Node, path: str, name: str) -> str:
    """Return where in a group's consolidated metadata the copy of a document of the node at `path` below it is."""
    if group.dialect.consolidated.document is None:
        return join("/consolidated_metadata/metadata", path)
    key = group.dialect.keyspace.documents(group.where.prefix + path).get(name, name)
    return join("/metadata", key.removeprefix(group.where.prefix))


def home_of(where: StorePath, zarr_format: int | str | None = None) -> StorePath:
    """Return a place as one of the hierarchy whose entry point is above it, if there is such.

    In a format that is asked for and needs none, also as one of a hierarchy without.
    """
    if where.home is not None:
        return where
    for place in reversed(list(where.ancestors())):
        data = bounded.document(where.store, place.prefix + ENTRY)
        if data is None:
            continue
        try:
            home = _enter(documents.parse(data, strict), place.path, strict)
        except MetadataError:
            home = None
        return where if home is None else replace(where, home=home)
    inside = None if where.store.exists(where.prefix + ENTRY) else detection.without_entry_point(where, zarr_format)
    return inside or where


def sizes_below(where: StorePath) -> Iterator[tuple[str, int]]:
    """Yield the same keys, each with the size of its value in bytes."""
    if where.home is None:
        return verbs.list_sizes(where.store, where.prefix)
    return holdings.sizes(where)


def take(
    where: StorePath, zarr_format: int | str | None = None, *, lists_chunks: bool = True, scans: bool = False
) -> Inventory:
    """Return the nodes at a place and below it, with documents that are read, but not yet interpreted.

    With `lists_chunks`, a node of which there is only a copy in consolidated metadata has to have chunks. With `scans`,
    values of large documents are without the copies of others in them (`Document.copies`).
    """
    wanted = dialects_for(zarr_format)
    flat = [dialect for dialect in wanted if dialect.entry_point is None]
    drafts = [dialect for dialect in wanted if dialect.entry_point is not None]
    names = {name: dialect for dialect in flat for name in dialect.keyspace.documents("")}
    found: dict[str, tuple[str, ...]] = {}
    combinations: dict[tuple[str, ...], tuple[str, ...]] = {}
    others: list[str] = []
    for key in holdings.listed(where):
        path, _, name = key.rpartition("/")
        if (name in names or name == ENTRY) and where.home is None:
            there = (*found.get(path, ()), name)
            found[path] = combinations.setdefault(there, there)
        elif _draft_document(key) or _ROOT_DOCUMENT.search(key) or name == _CONSOLIDATED or where.home is not None:
            others.append(key)
    inventory = Inventory()
    if where.home is not None:
        inventory.homes.append(where.home)
    loaded = read(where.store, (prefix(path) + name for path, names in found.items() for name in names), scans=scans)
    for path in sorted(found):
        if drafts and ENTRY in found[path]:
            _take_entry(inventory, path, loaded.get(prefix(path) + ENTRY))
    inside = tuple(f"{prefix(home.root)}{place}/" for home in inventory.homes for place in (home.meta, home.data))
    for path in sorted(found):
        keys = {name: prefix(path) + name for name in found.pop(path)}
        if inside and f"{path}/".startswith(inside):
            others.extend(keys.values())
        else:
            own = {name: loaded.pop(key) for name, key in keys.items() if key in loaded}
            _place(inventory, where.at(path), own, flat)
    for home in inventory.homes:
        _take_draft(inventory, where, home, others, drafts)
    _unfold(inventory, where, lists_chunks=lists_chunks)
    _enter_orphans(inventory, others if drafts and where.home is None else [])
    return inventory


def read(store: Store, keys: Iterable[str], *, scans: bool = False) -> dict[str, Document]:
    """Return documents by key."""
    wanted = list(keys)
    texts = Packed()
    result: dict[str, Document] = {}
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        try:
            found = list(bounded.documents(store, batch))
        except StoreError:  # of one of them: the others can be read
            for key in batch:
                document = _read_alone(store, key, texts)
                if document is not None:
                    result[key] = document
            continue
        for position, data in found:
            if data is not None:
                key = batch[position]
                scan = _SCANS.get(key.rpartition("/")[2]) if scans else None
                result[key] = Document(key, data, texts=texts, scan=scan)
    return {key: result[key] for key in wanted if key in result}


def _take_entry(inventory: Inventory, path: str, document: Document | None) -> None:
    """Enter a hierarchy, if the document at its root is an entry point."""
    if document is None or not _is_entry(document):
        return
    problems: list[Problem] = []
    home = _enter(document.value, path, problems.append)
    inventory.entries.append((path, document, problems))
    if home is not None:
        inventory.homes.append(home)


def _is_entry(document: Document) -> bool:
    if not document.may_be_entry:
        return False
    return isinstance(document.value, Mapping) and isinstance(document.value.get("zarr_format"), str)


def _read_alone(store: Store, key: str, texts: Packed) -> Document | None:
    try:
        data = bounded.document(store, key)
    except StoreError as error:
        problem = Problem("", error.message, found=error.found, remedy=error.remedy)
        return Document(key, b"", problems=[problem], is_unreadable=True)
    return None if data is None else Document(key, data, texts=texts)


def _place(inventory: Inventory, where: StorePath, own: Mapping[str, Document], flat: list[Dialect]) -> None:
    """Enter the documents at one place that have the names of formats without entry points."""
    if ENTRY in own and _is_entry(own[ENTRY]):
        inventory.known.add(own[ENTRY].key)
        own = {name: document for name, document in own.items() if name != ENTRY}
    for dialect in flat:
        there = {name: own[name] for name in dialect.keyspace.documents("") if name in own}
        if there and _makes_node(dialect, there):
            inventory.nodes.setdefault(where.path, []).append(Node(where, dialect, there))
        elif there and dialect.name in {"v2", "v0"}:
            inventory.loose.extend((where.path, document.key) for document in there.values())
            inventory.known.update(document.key for document in there.values())


def _enter(document: JSON, root: str, report: Report) -> Split | None:
    """Return where the keys of a hierarchy are; the drafts have entry points of one form."""
    points = [dialect.entry_point for dialect in DIALECTS if dialect.entry_point is not None]
    return points[0].enter(document, root, report)


def _makes_node(dialect: Dialect, there: Mapping[str, Document]) -> bool:
    """Return whether documents belong to a node, even if they are incomplete."""
    markers = {dialect.array_document, dialect.group_document, str(dialect.consolidated.document)}
    found = [there[name] for name in there if name in markers]
    if not found:
        return False
    if dialect.name != "v1":
        return True
    # Any program may call a file "meta".
    value = found[0].value
    if found[0].is_broken:
        return "attrs" in there
    return isinstance(value, Mapping) and ("zarr_format" in value or {"shape", "chunks"} <= value.keys())


def _take_draft(
    inventory: Inventory, where: StorePath, home: Split, keys: Iterable[str], drafts: list[Dialect]
) -> None:
    """Enter the documents of a hierarchy with an entry point."""
    places: dict[str, dict[str, str]] = {}
    root = prefix(home.root)
    top = f"{root}{home.meta}"
    of_root = {key: name for name, key in home.documents(home.root).items()}
    for key in keys:
        if key in of_root:
            places.setdefault(home.root, {})[of_root[key]] = key
            continue
        for kind in ("array", "group"):
            ending = f".{kind}{home.suffix}"
            below = key[len(top) : -len(ending)]
            if key.startswith(top) and key.endswith(ending) and below.startswith("/"):
                places.setdefault(root + below[1:], {})[kind] = key
                break
    loaded = read(where.store, (key for found in places.values() for key in found.values()))
    for path in sorted(places):
        own = {name: loaded[key] for name, key in places[path].items() if key in loaded}
        if not own:
            continue
        dialect = _draft_of(own, home, drafts)
        inventory.known.update(document.key for document in own.values())
        if dialect is not None:
            place = StorePath(where.store, path, home)
            inventory.nodes.setdefault(path, []).append(Node(place, replace(dialect, keyspace=home), own))


def _draft_of(own: Mapping[str, Document], home: Split, drafts: list[Dialect]) -> Dialect | None:
    """Return which of the drafts documents belong to: the first that recognises a node, or the entry point's."""
    values = {name: document.value for name, document in own.items() if not document.is_broken}
    for dialect in drafts:
        if values and dialect.load(values, lambda _: None) is not None:
            return dialect
    return next((dialect for dialect in drafts if dialect.name == home.dialect), drafts[0] if drafts else None)


def _unfold(inventory: Inventory, where: StorePath, *, lists_chunks: bool) -> None:
    """Add the nodes that only consolidated metadata describes, if there is nothing else, or only their chunks."""
    missing: dict[str, Node] = {}
    for node in list(inventory):
        for full, copy in _missing_copies(inventory, node):
            missing.setdefault(full, copy)
    if not missing:
        return
    prefixes = {node.dialect.keyspace.chunk_prefix(path): path for path, node in missing.items()}
    there = {path for path in missing if missing[path].is_sound or not lists_chunks}
    for key in holdings.listed(where):
        if len(there) == len(missing):
            break
        end = key.rfind("/")
        while end > 0:
            there.update(path for path in (prefixes.get(key[: end + 1]),) if path is not None)
            end = key.rfind("/", 0, end)
    for path in there:
        missing[path].is_sound = False  # until it has been read
        inventory.nodes[path] = [missing[path]]


def _missing_copies(inventory: Inventory, node: Node) -> Iterator[tuple[str, Node]]:
    """Yield path and node of each copy of a node that has no document; valid, if there are only copies."""
    name = node.dialect.consolidated.document
    document = node.marker if name is None else node.documents.get(name)
    if document is None or not (name is not None or document.may_have_copies):
        return
    if not isinstance(document.value, Mapping):
        return
    value = document.value if name is not None else document.value.get("consolidated_metadata")
    if not isinstance(value, Mapping):
        return
    is_alone = list(node.documents) == [name]
    found: Mapping[str, Mapping[str, JSON]] | None = document.copies
    if found is None:
        found = node.dialect.consolidated.load(value, lambda _: None)
    texts = Packed()
    for path in found:
        full = f"{node.where.prefix}{path}"
        if path and full not in inventory.nodes:
            place, copies = node.where.at(full), found[path]
            own = {name: _copy(document.key, copies, name, texts) for name in copies}
            base = copy_pointer(node, path, next(iter(own)))
            yield place.path, Node(place, node.dialect, own, is_sound=is_alone, base=base)


def _copy(key: str, copies: Mapping[str, JSON], name: str, texts: Packed) -> Document:
    """Return a copy in the document at a key, of which the problems have been told there."""
    if isinstance(copies, Copy):
        return Document(key, copies.texts[name], is_read=True, texts=texts)
    return Document(key, b"", copies[name], is_read=True, is_parsed=True)


def _draft_document(key: str) -> re.Match[str] | None:
    """Return the directory `meta` in the key of a document of the drafts; None for other keys."""
    begin = key.rfind("/") + 1
    return _META.search(key, 0, begin) if _DRAFT_NAME.fullmatch(key, begin) else None


def _enter_orphans(inventory: Inventory, keys: Iterable[str]) -> None:
    """Record documents of drafts without an entry point, unless something else explains them."""
    broken = Above({path for path, _, problems in inventory.entries if problems})
    for key in keys:
        if next(broken.of(key), None) is not None:
            continue
        match = _draft_document(key)
        if not inventory.knows(key) and match is not None:
            inventory.loose.append((key[: match.start()].strip("/"), key))
            inventory.known.add(key)
