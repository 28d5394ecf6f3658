"""Finding the nodes in a store, their formats and their metadata.

Only the documents decide. At one place, in this order, until one is found:

1. ``zarr.json`` with the integer 3: Zarr v3. With the URI of a draft: the entry point of a hierarchy of that draft.
2. ``.zarray``, then ``.zgroup``; only if both are missing, ``.zmetadata``: Zarr v2.
3. ``meta``, an object with ``"zarr_format": 1``: Zarr v1. ``__zmeta__``: an array of zarr 0.x.
4. A ``zarr.json`` further up that is the entry point of a draft, which determines where the node's documents are.
5. Nodes further down: an implicit group.

Spec: Zarr v3 core, "Storage", "Operations"; Zarr v3 draft of 2020, "Storage keys".
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeAlias, TypeVar, overload

from omnizarr.codecs.contract import Buffer
from omnizarr.errors import (
    ArrayNotFoundError,
    ConsolidatedMetadataError,
    ContainsArrayError,
    ContainsGroupError,
    Function,
    GroupNotFoundError,
    InvalidKeyError,
    MetadataError,
    NodeNameError,
    NodeNotFoundError,
    OmnizarrError,
    Remedy,
    StoreError,
)
from omnizarr.formats import DIALECTS, dialects_for, documents, scanning
from omnizarr.formats.consolidated import Copy
from omnizarr.formats.contract import Dialect
from omnizarr.formats.keyspaces import Split
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata, Note, Problem, strict
from omnizarr.nodes.location import StorePath, dialect_of, dialects_at
from omnizarr.stores import LocalStore, bounded, kinds, pool, verbs
from omnizarr.support import suggestions
from omnizarr.support.lazy import Lazy
from omnizarr.support.memo import Memo

if TYPE_CHECKING:
    import pathlib

    from omnizarr.stores.wrap import recalling
else:
    pathlib = Lazy("pathlib")
    recalling = Lazy("omnizarr.stores.wrap.recalling")

M_co = TypeVar("M_co", bound=Metadata, covariant=True)
Documents: TypeAlias = Mapping[str, JSON]
Values: TypeAlias = Mapping[str, Buffer]
"""Documents by name, not yet parsed."""
Entries: TypeAlias = dict[str, Values]
"""``zarr.json`` by its name (empty if it is missing), by path."""
Kind: TypeAlias = Literal["array", "group"]

ENTRY: Final = "zarr.json"
_MAX_SEARCHED: Final = 1000
_DAMAGED: Final = "correct the document, or copy it again from where it came"
_RENAME: Final = "rename it, or open it as a store of its own"

_MAX_REMEMBERED: Final = 8000  # bytes
_PREFERRING: Final = {
    first.name: (first, *(dialect for dialect in DIALECTS if dialect is not first)) for first in DIALECTS
}
"""The dialects, by the name of the one to look for first."""
_remembered: Final[Memo[Metadata | None]] = Memo(exact=True)
"""Metadata by the bytes of their documents (see `_question`), and by the texts of copies."""
_remembered_copies: Final[Memo[Metadata | None]] = Memo(most_bytes=8192)
"""The same by the values of parsed documents."""


def _makers(dialects: Iterable[Dialect]) -> tuple[str, ...]:
    """Return the names of documents that alone make a node, in one or more formats."""
    return tuple(
        dict.fromkeys(
            name
            for dialect in dialects
            if dialect.entry_point is None
            for name in (dialect.array_document, dialect.group_document, dialect.consolidated.document)
            if name is not None
        )
    )


_MAKERS: Final = _makers(DIALECTS)
_RARE: Final = frozenset(_MAKERS) - {
    name for dialect in DIALECTS if dialect.has_groups for name in (dialect.array_document, dialect.group_document)
}
"""Names among them that are rare."""

_says_format_as_text = re.compile(rb'"zarr_format"\s*:\s*"').search


@dataclass(frozen=True, slots=True)
class Found(Generic[M_co]):
    """A node: its place (in the hierarchy to which it belongs), and its metadata."""

    where: StorePath
    metadata: M_co


# -- documents -------------------------------------------------------------------


def read_documents(where: StorePath, dialect: Dialect, kind: Kind = "array") -> Documents:
    """Return the parsed documents of one dialect at a place, by name.

    As few documents as possible are read. If one document makes an array and another a group, the document of the
    other `kind` is read only if there is none of this kind. A document of consolidated metadata is read (see
    `omnizarr.nodes.consolidated`) only if there is nothing else.
    """
    return parsed(where, dialect, fetch_documents(where, dialect, kind))


def fetch_documents(where: StorePath, dialect: Dialect, kind: Kind = "array", rare: _Rare | None = None) -> Values:
    """Return the documents of one dialect at a place as bytes, like `read_documents`."""
    keys = dialect.keyspace.documents(where.path)
    makers = dialect.array_document, dialect.group_document
    first, second = makers if kind == "array" else makers[::-1]
    apart = [] if dialect.attributes_document is None else [dialect.attributes_document]
    # Formats without groups are rare: their marker is looked for separately.
    at_once = apart if dialect.has_groups else []
    found = _fetch(where, keys, [first, *at_once], rare)
    if first not in found and second != first:
        found.update(_fetch(where, keys, [second], rare))
    if first in found or second in found:
        if not at_once:
            found.update(_fetch(where, keys, apart))
    elif dialect.consolidated.document in keys:
        found.update(_fetch(where, keys, [str(dialect.consolidated.document)], rare))
    return found


class _Rare:
    """Documents at a place that could make a node, but rarely do. They are all requested at once, and only once."""

    def __init__(self, where: StorePath, wanted: Sequence[Dialect]) -> None:
        self._where = where
        self._wanted = wanted
        self._values: dict[str, Buffer | None] = {}

    def __contains__(self, name: str) -> bool:
        return name in _RARE

    def get(self, name: str) -> Buffer | None:
        """Return the document of this name, or None."""
        if not self._values:
            names = [name for name in _makers(self._wanted) if name in _RARE]
            values = bounded.documents(self._where.store, (self._where.prefix + name for name in names))
            self._values = {names[position]: value for position, value in values}
        return self._values[name]


def _fetch(
    where: StorePath, keys: Mapping[str, str], names: Sequence[str], rare: _Rare | None = None
) -> dict[str, Buffer]:
    if len(names) == 1:
        name = names[0]
        values = [
            (0, bounded.document(where.store, keys[name]) if rare is None or name not in rare else rare.get(name))
        ]
    else:
        values = list(bounded.documents(where.store, (keys[name] for name in names)))
    return {
        names[position]: value
        for position, value in values
        if value is not None and (names[position] != "meta" or _is_of_zarr(value))
    }


def _is_of_zarr(data: Buffer) -> bool:
    """Whether a file named ``meta`` belongs to Zarr: v1 chose a common name."""
    return any(word in bytes(data) for word in (b"zarr_format", b"chunks"))


def parsed(where: StorePath, dialect: Dialect, found: Values) -> Documents:
    """Return the documents of one dialect at a place, from their bytes."""
    keys = dialect.keyspace.documents(where.path)
    return {name: _parse(where, keys[name], data) for name, data in found.items()}


def _parse(where: StorePath, key: str, data: Buffer) -> JSON:
    try:
        if key.endswith("__zmeta__") and bytes(data[:1]) in (b"(", b"\x80"):
            raise MetadataError(
                "a pickle, as zarr 0.3 wrote; it could run any code and is never read",
                expected="JSON, as zarr 0.4 wrote",
                remedy="open it with zarr 0.3 and save the array with a later version",
            )
        return documents.parse_shared(data, strict)
    except OmnizarrError as error:
        raise error.add(store=str(where.store), path=where.path, key=key, remedy=_DAMAGED) from None


def load(where: StorePath, dialect: Dialect, found: Documents) -> Metadata | None:
    """Return the metadata in documents of one dialect; None if they do not describe a node."""
    if not found:
        return None
    try:
        metadata = dialect.load(found, _strict_beside_consolidated)
    except OmnizarrError as error:
        name = _broken_document(dialect, found, error)
        key = None if name is None else dialect.keyspace.documents(where.path)[name]
        raise error.add(store=str(where.store), path=where.path, key=key)
    return None if metadata is None else dialect.keyspace.settle(metadata)


def _understood(where: StorePath, dialect: Dialect, found: Values) -> Metadata | None:
    """Return the metadata in documents of one dialect; None if they do not describe a node.

    Equal bytes give the same object.
    """
    if not found:
        return None
    question = _question(dialect, found)
    metadata = _remembered.known(question)
    if metadata is None:
        try:
            unparsed = _plain(dialect, found) if question else dialect.load_unread(found)
            metadata = unparsed or _interpreted(dialect, found)
        except OmnizarrError:
            return load(where, dialect, parsed(where, dialect, found))  # again, so that the error contains the place
        if question and metadata is not None:
            _remembered.put(question, metadata)
    return None if metadata is None else dialect.keyspace.settle(metadata)


def _plain(dialect: Dialect, found: Values) -> Metadata | None:
    """Return the array in ordinary documents of which only the attributes are new; None for anything else."""
    texts = {name: value if type(value) is bytes else bytes(value) for name, value in found.items()}
    is_plain = all(map(scanning.is_plain, texts.values()))
    return dialect.load_plain(texts, documents.parse) if is_plain else None


def _question(dialect: Dialect, found: Values) -> tuple[str | bytes, ...]:
    """Return the key of documents in `_remembered`; () for none, or for many bytes."""
    length = 0
    question: list[str | bytes] = [dialect.name]
    for name, value in found.items():
        length += len(value)
        question += name, value if type(value) is bytes else bytes(value)
    return tuple(question) if 0 < length <= _MAX_REMEMBERED else ()


def load_copy(where: StorePath, dialect: Dialect, found: Documents) -> Metadata | None:
    """Like `load`, for documents that do not change: equal documents give the same object."""
    if where.home is not None:
        return load(where, dialect, found)
    if isinstance(found, Copy):
        question = dialect.name, *found.texts.items()
        metadata = _remembered.known(question)
        if metadata is None:
            metadata = dialect.load_plain(found.texts, documents.parse_part) or load(where, dialect, found)
            if found.size <= _MAX_REMEMBERED:
                _remembered.put(question, metadata)
        return metadata
    return _remembered_copies.get((dialect.name, found), lambda: load(where, dialect, found))


def _interpreted(dialect: Dialect, found: Values) -> Metadata | None:
    """Return the metadata in documents, whatever their place."""
    return dialect.load({name: documents.parse(value) for name, value in found.items()}, _strict_beside_consolidated)


def _broken_document(dialect: Dialect, found: Documents, error: OmnizarrError) -> str | None:
    """Return the name of the document that an error is about; None if it is about several."""
    if len(found) == 1:
        return next(iter(found))
    for name in dict.fromkeys((dialect.array_document, dialect.group_document)):
        try:
            dialect.load({name: found[name]} if name in found else {}, _strict_beside_consolidated)
        except OmnizarrError as alone:
            if (alone.message, alone.pointer) == (error.message, error.pointer):
                return name
    return dialect.attributes_document if dialect.attributes_document in found else None


def _strict_beside_consolidated(problem: Problem) -> None:
    """Raise the problem, unless it is in copies of other nodes, which are checked when they are used."""
    if not issubclass(problem.kind, ConsolidatedMetadataError):
        raise problem.error()


# -- one node -----------------------------------------------------------------------


def detect(
    where: StorePath,
    zarr_format: int | str | None = None,
    kind: Kind = "array",
    entries: Entries | None = None,
    prefer: str = "",
) -> Found[Metadata] | None:
    """Return the node with documents at a place, or None.

    Parameters
    ----------
    where : StorePath
    zarr_format : int or str, optional
        Look only for this format.
    kind : {"array", "group"}
        The expected kind, whose documents are looked for first.
    entries : dict, optional
        Receives documents read at places above, so that they need not be read again.
    prefer : str
        The dialect to look for first, if it is any.

    Raises
    ------
    MetadataError
        If a document breaks its format.
    """
    wanted = _PREFERRING.get(prefer, DIALECTS) if prefer else dialects_for(zarr_format)
    found = here(where, wanted, kind)
    if found is not None or where.home is not None or not _may_be_in_draft(wanted):
        return found
    inside = _in_draft(where, zarr_format, entries)
    return None if inside is None else here(inside, wanted, kind)


def look(where: StorePath, prefer: str = "") -> Found[Metadata] | None:
    """Return the node at a place, including an implicit group (no document, but nodes below); None if there is none.

    `prefer` is the dialect to look for first.
    """
    return _look(where, None, "array", prefer)


@overload
def _look(
    where: StorePath, zarr_format: int | str | None, kind: Kind, prefer: str, error: type[NodeNotFoundError]
) -> Found[Metadata]: ...
@overload
def _look(
    where: StorePath, zarr_format: int | str | None, kind: Kind, prefer: str, error: None = None
) -> Found[Metadata] | None: ...
def _look(
    where: StorePath,
    zarr_format: int | str | None,
    kind: Kind,
    prefer: str,
    error: type[NodeNotFoundError] | None = None,
) -> Found[Metadata] | None:
    """Like `look`. Raise the `error`, if there is one, in place of returning None."""
    wanted = (
        _PREFERRING.get(prefer, DIALECTS) if prefer else DIALECTS if zarr_format is None else dialects_for(zarr_format)
    )
    found = here(where, wanted, kind)
    if found is not None:
        return found
    entries: Entries = {}
    if where.home is None:
        inside = _in_draft(where, zarr_format, entries)
        if inside is not None and _may_be_in_draft(wanted):
            found = here(inside, wanted, kind)
        where = inside or where
    try:
        found = found or _implied(where, zarr_format)
    except StoreError:
        # What a server cannot list may still be missing.
        if error is None or where.store.supports_listing:
            raise
    if found is None and error is not None:
        raise not_found(where, error, zarr_format, entries)
    return found


def _may_be_in_draft(wanted: Iterable[Dialect]) -> bool:
    return any(dialect.entry_point is not None for dialect in wanted)


def _in_draft(where: StorePath, zarr_format: int | str | None, entries: Entries | None = None) -> StorePath | None:
    """Return a place within the hierarchy of a draft that begins above it; None if there is none."""
    return _entered_above(where, entries) or without_entry_point(where, zarr_format)


def placed(where: StorePath) -> StorePath:
    """Return a place within the hierarchy of a draft that it lies in, if it does, also where there is no node."""
    return where if where.home is not None else _in_draft(where, None) or where


def here(
    where: StorePath, wanted: Sequence[Dialect], kind: Kind = "array", entry: Values | None = None
) -> Found[Metadata] | None:
    """Return the node of a wanted dialect that has documents, or its hierarchy's entry point, exactly at this place.

    `entry` is ``zarr.json`` by its name (empty if it is missing), if it has been read already.
    """
    if where.home is not None:
        return _here_in_draft(where, wanted, kind)
    rare = None
    for dialect in wanted:
        if dialect.entry_point is None and dialect.array_document != ENTRY:
            rare = rare or _Rare(where, wanted)
            found = fetch_documents(where, dialect, kind, rare)
        else:
            if entry is None:
                entry = _fetch_entry(where)
                question = _question(dialect, entry)
                known = _remembered.known(question)
                if known is None and question and (known := _plain(dialect, entry)) is not None:
                    _remembered.put(question, known)
                if known is not None:  # a document of Zarr v3, and so not an entry point
                    return Found(where, known)
                inside = _entered_here(where, entry, wanted)
                if inside is not None:
                    return here(inside, wanted, kind) or _implied_root(inside, wanted)
            found = entry if dialect.entry_point is None else {}
        metadata = _understood(where, dialect, found)
        if metadata is not None:
            return Found(where, metadata)
    return None


def _here_in_draft(where: StorePath, wanted: Sequence[Dialect], kind: Kind) -> Found[Metadata] | None:
    """Return the node at a place in the hierarchy of a draft. Drafts share keys, so documents are read once."""
    names = {dialect.name for dialect in wanted}
    formats = [dialect for dialect in dialects_at(where) if dialect.name in names]
    # read by a dialect with consolidated metadata, which may be all there is
    readers = sorted(formats, key=lambda dialect: dialect.consolidated.document is None)
    found = read_documents(where, readers[0], kind) if readers else {}
    for dialect in formats:
        metadata = load(where, dialect, found)
        if metadata is not None:
            return Found(where, metadata)
    return None


def is_free(where: StorePath, *others: str) -> bool:
    """Return whether nothing at a place has the name of a node's document, or another name. All are asked at once."""
    return not verbs.has_any(where.store, where.prefix, (*_MAKERS, *others))


def find(where: StorePath, zarr_format: int | str | None = None) -> Metadata | None:
    """Return the node with documents at a place, or None, like `detect`."""
    found = detect(where, zarr_format)
    return None if found is None else found.metadata


def _fetch_entry(where: StorePath) -> Values:
    """Return ``zarr.json``, which may be an entry point, by its name; empty if it is missing."""
    value = bounded.document(where.store, where.prefix + ENTRY)
    return {} if value is None else {ENTRY: value}


def _parse_entry(where: StorePath, found: Values) -> Documents:
    return {name: _parse(where, where.prefix + name, value) for name, value in found.items()}


def _entered_here(where: StorePath, entry: Values, wanted: Sequence[Dialect]) -> StorePath | None:
    """Return the root of the hierarchy of a wanted draft with this entry point; None if ``zarr.json`` is not one."""
    if wanted[0].entry_point is None and entry and not may_be_entry(bytes(entry[ENTRY])):
        return None
    if all(dialect.entry_point is None for dialect in wanted):
        return None
    return _enter(where, _parse_entry(where, entry))


def may_be_entry(data: bytes) -> bool:
    """Return False if a document is certainly not an entry point, without parsing it: in v3 the format is a number."""
    return b"\\" in data or _says_format_as_text(data) is not None  # escapes could hide any text


def _enter(where: StorePath, found: Documents) -> StorePath | None:
    """Return the root of the hierarchy with this entry point; None if ``zarr.json`` is not one."""
    document = found.get(ENTRY)
    if not isinstance(document, Mapping) or not isinstance(document.get("zarr_format"), str):
        return None
    for dialect in DIALECTS:
        if dialect.entry_point is not None:
            try:
                home = dialect.entry_point.enter(document, where.path, strict)
            except OmnizarrError as error:
                raise error.add(store=str(where.store), path=where.path, key=where.prefix + ENTRY)
            if home is not None:
                return replace(where, home=home)
    return None


def _implied_root(where: StorePath, wanted: Sequence[Dialect]) -> Found[Metadata] | None:
    """Return the root group of a hierarchy with an entry point but no document of its root."""
    if where.home is None or where.home.dialect not in {dialect.name for dialect in wanted}:
        return None
    return Found(where, GroupMetadata(dialect=where.home.dialect, implicit=True))


def _entered_above(where: StorePath, entries: Entries | None = None) -> StorePath | None:
    """Return a place within the hierarchy whose entry point is above it; None if there is none."""
    for place in reversed(list(where.ancestors())):
        try:
            entry = _fetch_entry(place)
            found = _parse_entry(place, entry)
        except StoreError:
            raise
        except OmnizarrError:
            return None  # something else, and broken
        if entries is not None:
            entries[place.path] = entry
        if found:
            inside = _enter(place, found)
            return None if inside is None else inside.at(where.path)
    return entered_above_the_store(where)


def without_entry_point(where: StorePath, zarr_format: int | str | None) -> StorePath | None:
    """Return the place within a hierarchy without an entry point, of a requested format that needs none.

    The hierarchy begins at the place itself, or at the nearest node above.
    """
    if zarr_format is None or where.home is not None:
        return None
    for dialect in dialects_for(zarr_format):
        keyspace = dialect.keyspace
        if dialect.entry_point is None or not dialect.entry_point.is_optional or not isinstance(keyspace, Split):
            continue
        candidates = [
            replace(where, home=replace(keyspace, root=place.path))
            for place in (where, *reversed(list(where.ancestors())))
        ]
        beyond = _beyond_the_store(where)
        if beyond is not None:
            candidates.append(replace(beyond, home=keyspace))
        found = next((inside for inside in candidates if here(inside, [dialect]) is not None), None)
        # listings come last, because not every store has them
        found = found or next((inside for inside in candidates if children(inside)), None)
        if found is not None:
            return found
    return None


def entered_above_the_store(where: StorePath) -> StorePath | None:
    """Return the place if a missing directory names a node of a draft whose entry point is further up.

    Nodes of a draft have no directories of their own, but users name them like those of other formats.
    """
    beyond = _beyond_the_store(where)
    return None if beyond is None else entered_at_root(beyond)


def entered_at_root(where: StorePath) -> StorePath | None:
    """Return a place within the hierarchy of a draft that begins at the root of the store; None if none does."""
    above = where.at("")
    try:
        inside = _enter(above, _parse_entry(above, _fetch_entry(above)))
    except StoreError:
        raise
    except OmnizarrError:
        return None  # something else, and broken
    return None if inside is None else inside.at(where.path)


def _beyond_the_store(where: StorePath) -> StorePath | None:
    """Return a place in a missing directory as a place in the nearest existing directory above."""
    if not isinstance(where.store, LocalStore):
        return None
    # os.path, unlike Path, returns False for paths without permission or with a name that is too long, and is faster.
    if where.store.has_root() or os.path.exists(where.store.root):  # noqa: PTH110
        return None
    root = parent = where.store.root
    while not os.path.exists(parent):  # noqa: PTH110
        above = os.path.dirname(parent)  # noqa: PTH120
        if above == parent:
            return None
        parent = above
    below = root[len(parent) :].replace(os.sep, "/")
    return StorePath(LocalStore(parent, read_only=where.store.read_only)) / f"{below}/{where.path}"


def open_node(where: StorePath, zarr_format: int | str | None = None, prefer: str = "") -> Found[Metadata]:
    """Return the node at a place, including an implicit group, which has no document but nodes below.

    `prefer` is the dialect to look for first. Raises NodeNotFoundError, which suggests similar names.
    """
    return _look(where, zarr_format, "array", prefer, NodeNotFoundError)


def open_array(
    where: StorePath, zarr_format: int | str | None = None, found: Found[Metadata] | None = None
) -> Found[ArrayMetadata]:
    """Return the array at a place, unless it is already `found`. Raises ArrayNotFoundError or ContainsGroupError."""
    found = found or _look(where, zarr_format, "array", "", ArrayNotFoundError)
    if not isinstance(found.metadata, ArrayMetadata):
        raise ContainsGroupError(
            "there is a group, not an array",
            store=str(where.store),
            path=where.path,
            remedy=Remedy("open it as a group, with {open_group}", open_group=Function())
            | Remedy("choose one of its arrays"),
        )
    return found  # type: ignore[return-value]


def open_group(
    where: StorePath, zarr_format: int | str | None = None, found: Found[Metadata] | None = None
) -> Found[GroupMetadata]:
    """Return the group at a place, unless it is already `found`. Raises GroupNotFoundError or ContainsArrayError."""
    found = found or _look(where, zarr_format, "group", "", GroupNotFoundError)
    if not isinstance(found.metadata, GroupMetadata):
        raise ContainsArrayError(
            "there is an array, not a group",
            store=str(where.store),
            path=where.path,
            remedy=Remedy("open it as an array, with {open_array}", open_array=Function())
            | Remedy("choose the group that contains it"),
        )
    return found  # type: ignore[return-value]


def implied(where: StorePath, zarr_format: int | str | None = None) -> Found[Metadata] | None:
    """Return the implicit group of nodes below, or None. Spec: Zarr v3, "Discover all nodes".

    Looks level by level, and stops after many directories, so that opening a directory that has nothing to do
    with Zarr does not search all of it.
    """
    return _implied(where if where.home is not None else _in_draft(where, zarr_format) or where, zarr_format)


def _implied(where: StorePath, zarr_format: int | str | None) -> Found[Metadata] | None:
    """Like `implied`, at a place that is known to be in the hierarchy of a draft, or not to be in one."""
    if where.home is not None:
        wanted = {dialect.name for dialect in dialects_for(zarr_format)}
        if where.home.dialect in wanted and children(where):
            return Found(where, GroupMetadata(dialect=where.home.dialect, implicit=True))
        return None
    names = {name: dialect for dialect in dialects_at(where, zarr_format) for name in dialect.keyspace.documents("")}
    pending = deque(where.store.list_dir(where.prefix).prefixes)
    for _ in range(_MAX_SEARCHED):
        if not pending:
            break
        prefix = pending.popleft()
        listing = where.store.list_dir(prefix)
        for key in listing.keys:
            dialect = names.get(key[len(prefix) :])
            if dialect is not None and _load_or_error(where.at(prefix[:-1]), dialect) is not None:
                return Found(where, GroupMetadata(dialect=dialect.name, implicit=True))
        pending.extend(listing.prefixes)
    return None


def _load_or_error(where: StorePath, dialect: Dialect) -> Metadata | OmnizarrError | None:
    """Return the metadata in documents of one dialect at a place; for a broken node, its error."""
    try:
        return load(where, dialect, read_documents(where, dialect))
    except OmnizarrError as error:
        return error


def _here_or_error(where: StorePath) -> Found[Metadata] | OmnizarrError | None:
    """Return the node with documents exactly at this place; for a broken node, its error."""
    try:
        return here(where, DIALECTS)
    except OmnizarrError as error:
        return error


def not_found(
    where: StorePath,
    kind: type[NodeNotFoundError],
    zarr_format: int | str | None = None,
    entries: Mapping[str, Values] | None = None,
) -> NodeNotFoundError:
    """Return the error for a missing node of the requested format, with similar names.

    `entries` are documents at places above that have been read.
    """
    what = {ArrayNotFoundError: "array", GroupNotFoundError: "group"}.get(kind, "node")
    where = _recalled(where, entries or {})
    other = _other_kind(where)
    reason = f"but {other.title}" if other else _absence(where)
    return kind(
        f"there is no {what} here{f', {reason}' if reason else ''}",
        store=str(where.store),
        path=where.path,
        expected=" or ".join(dict.fromkeys(_markers(where, zarr_format))),
        remedy=(other.remedy or None) if other else _remedy(where, zarr_format),
    )


def _recalled(where: StorePath, entries: Mapping[str, Values]) -> StorePath:
    """Return a place in a store that asks for nothing twice; in a directory, requests cost little."""
    if isinstance(where.store, LocalStore):
        return where
    store = recalling.RecallingStore(
        where.store, {where.at(path).prefix + ENTRY: found.get(ENTRY) for path, found in entries.items()}
    )
    store.look_along(where.path)
    return replace(where, store=store)


def _absence(where: StorePath) -> str:
    """Return why nothing is found in a directory, as far as the file system says it; "" if it says nothing."""
    store = where.store
    if not isinstance(store, LocalStore) or where.home is not None:
        return ""
    try:
        with os.scandir(f"{store.root}/{where.path}") as entries:
            return "" if next(entries, None) else "as the directory is empty"
    except NotADirectoryError:
        return "as a file is where a directory should be"
    except OSError as error:
        return "as there is no such directory" if isinstance(error, FileNotFoundError) else ""


def _other_kind(where: StorePath) -> kinds.Kind | None:
    """Return the kind of the file or the directory at a place that is not Zarr; None if it is not known."""
    try:
        found = kinds.of_directory(where.store, where.prefix)
        if found is None and not where.path and (above := where.store.above()) is not None:
            store, name = above
            file = kinds.of_head(bytes(store.get(name, (0, kinds.HEAD)) or b""))
            found = None if file is None or file.opens else file
    except (OmnizarrError, NotImplementedError):  # a server that refuses; what is missing is what counts
        return None
    return found


def _markers(where: StorePath, zarr_format: int | str | None) -> Iterator[str]:
    """Yield the documents that make a node, under the names that users look for."""
    found = dialects_at(where, zarr_format)
    for dialect in found:
        keys = dialect.keyspace.documents(where.path)
        for name in (dialect.array_document, dialect.group_document):
            yield name if where.home is None else keys[name]
    if not found:  # a draft, if there is no entry point, or another format within a draft
        for dialect in dialects_for(zarr_format):
            names = dialect.array_document, dialect.group_document
            if dialect.entry_point is None:
                yield from names
                continue
            yield ENTRY
            if dialect.entry_point.is_optional:
                own = dialect.keyspace.documents("")
                yield from (own[name] for name in names)


def _remedy(where: StorePath, zarr_format: int | str | None) -> str:
    """Return what to do about a missing node."""
    if zarr_format is not None:
        other = _here_or_error(where)
        if isinstance(other, Found):
            what = "an array" if isinstance(other.metadata, ArrayMetadata) else "a group"
            found = dialect_of(other.where, other.metadata).zarr_format
            other_format = Remedy(f"there is {what} of another format").also("leave out {zarr_format}", zarr_format=...)
            return other_format | Remedy("pass {zarr_format}", zarr_format=found)
    else:
        for dialect in DIALECTS:
            try:
                inside = without_entry_point(where, dialect.zarr_format)
            except OmnizarrError:
                continue  # a store that cannot be listed, or a broken document
            if inside is not None:
                documents = Remedy("there are documents without an entry point")
                return documents.also("pass {zarr_format}", zarr_format=dialect.zarr_format)
    for place in reversed(list(where.ancestors())):
        # Not `find`, which would search upwards again from each: the place already knows an entry point above.
        existing = _here_or_error(place)
        if isinstance(existing, Found) and isinstance(existing.metadata, ArrayMetadata):
            array = f"/{place.path}" if place.path else str(place.store)
            return f"there is an array at {array}, and nothing can lie below an array"
        if existing is not None:
            break
    near = suggestions.question(_near(where))
    if near is not None:
        return near
    if not where.store.supports_listing:
        return (
            "correct the address; a group without a document of its own cannot be found on a server that does not list "
            "its files: give the path of an array, or consolidate the metadata"
        )
    return "create it with create_array or create_group, or mode='a' or 'w'"


def _near(where: StorePath) -> list[str]:
    """Return paths similar to a missing one; paths of directories, if the directory of the store is missing."""
    if isinstance(where.store, LocalStore) and where.home is None:
        root = pathlib.Path(where.store.root)
        found = suggestions.near_directories(root / where.path)
        return [place.relative_to(root).as_posix() if root.is_dir() else str(place) for place in found]
    parts = where.path.split("/") if where.path else []

    @cache
    def names_in(place: tuple[str, ...]) -> list[str]:
        return children(where.at("/".join(place)))

    try:
        for depth, part in enumerate(parts):
            there = tuple(parts[:depth])
            if part not in names_in(there):
                return ["/".join(place) for place in suggestions.near_places(there, parts[depth:], names_in)]
    except OmnizarrError:
        pass  # a store that cannot be listed makes no suggestions
    return []


def beside(where: StorePath, metadata: Metadata, listed: Container[str] | None = None) -> tuple[Note, ...]:
    """Return notes on documents of other formats at a node's place, which were ignored.

    The order at the top of this module determines which format is used. Looks for each document, which opening a
    node does not do, unless the keys of all documents are `listed`.
    """
    own = set(_own_keys(where, metadata))
    others = [dialect for dialect in DIALECTS if dialect.entry_point is None and dialect.name != metadata.dialect]
    makers = {
        dialect.name: {
            name: key
            for name, key in dialect.keyspace.documents(where.path).items()
            if name in (dialect.array_document, dialect.group_document) and key not in own
        }
        for dialect in others
    }
    keys = {key for names in makers.values() for key in names.values()}
    exists = where.store.exists if listed is None else listed.__contains__
    workers = where.store.features.concurrency if listed is None else 1
    found = set(filter(None, pool.results(lambda key: key if exists(key) else "", keys, workers)))
    notes = []
    for dialect in others:
        there = [name for name, key in makers[dialect.name].items() if key in found]
        if there:
            message = f"documents of Zarr {dialect.name} lie at the same place: {', '.join(there)}"
            notes.append(Note("", f"{message}; zarr_format={dialect.zarr_format!r} opens them"))
    return tuple(notes)


def _own_keys(where: StorePath, metadata: Metadata) -> tuple[str, ...]:
    """Return the keys of a node's own format, including its entry point."""
    own = tuple(dialect_of(where, metadata).keyspace.documents(where.path).values())
    return own if where.home is None else (*own, where.home.entry_key)


# -- many nodes --------------------------------------------------------------------------


def children(where: StorePath) -> list[str]:
    """Return the sorted names of possible nodes directly below a place, including those of `unreachable`."""
    listing = where.store.list_dir(_directory(where))
    return _names(where, (*listing.keys, *listing.prefixes, *listing.others))


def unreachable(where: StorePath) -> list[str]:
    """Return the sorted names of possible nodes directly below a place for which the store has no keys."""
    return _names(where, where.store.list_dir(_directory(where)).others)


def _directory(where: StorePath) -> str:
    return dialects_at(where)[0].keyspace.directory(where.path)


def _names(where: StorePath, entries: Iterable[str]) -> list[str]:
    keyspace = dialects_at(where)[0].keyspace
    names = (keyspace.child(entry[len(_directory(where)) :]) for entry in entries)
    return sorted({name for name in names if name})


def load_children(
    where: StorePath, names: Iterable[str], prefer: str
) -> Iterator[tuple[str, Found[Metadata] | OmnizarrError]]:
    """Yield the nodes directly below a place; for one that cannot be read, its error.

    Everything else is skipped. Names that a format reserves or forbids are included, because other programs write
    them. `prefer` is the dialect to look for first.
    """
    look = partial(_child_or_error, where, _PREFERRING.get(prefer, DIALECTS))
    arrived: dict[int, tuple[str, Found[Metadata] | OmnizarrError | None]] = {}
    first = 0
    for position, answer in pool.gather(look, names, where.store.features.concurrency):
        arrived[position] = answer
        while first in arrived:
            name, found = arrived.pop(first)
            first += 1
            if found is not None:
                yield name, found


def _child_or_error(
    where: StorePath, dialects: Sequence[Dialect], name: str
) -> tuple[str, Found[Metadata] | OmnizarrError | None]:
    place = where.at(f"{where.prefix}{name}")
    if name in {".", ".."}:
        message = "a node cannot be called so: in a path it leads elsewhere"
        return name, NodeNameError(message, store=str(where.store), path=place.path, found=name, remedy=_RENAME)
    try:
        return name, here(place, dialects) or implied(place)
    except InvalidKeyError as error:
        return name, error.add(path=place.path, remedy=_RENAME)
    except OmnizarrError as error:
        return name, error
