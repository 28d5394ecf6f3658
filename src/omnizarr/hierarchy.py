"""Nodes in a store: finding, reading, creating, changing and removing their documents.

This is where dialects (documents) and stores (bytes) meet. Every change of a node's
documents is made under the node's lock, after reading them again, so that two writers never undo
each other's changes.

Spec: Zarr v3 core, "Storage", "Operations"; Zarr v2, "Storage".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from omnizarr import keys as chunk_keys
from omnizarr import suggestions
from omnizarr.dialects import DIALECTS, documents
from omnizarr.dialects.contract import Dialect
from omnizarr.errors import (
    ArrayNotFoundError,
    ConsolidatedMetadataError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    NodeNameError,
    NodeNotFoundError,
    OmnizarrError,
    ReadOnlyError,
)
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata, Problem, strict
from omnizarr.stores import LocalStore, Store

M = TypeVar("M", ArrayMetadata, GroupMetadata)
Documents = Mapping[str, JSON]

_MAX_SEARCHED = 1000


@dataclass(frozen=True, slots=True)
class StorePath:
    """A place in a store: where a node is, or could be.

    Attributes
    ----------
    store : Store
    path : str
        Without leading and trailing slashes; "" is the root.
    """

    store: Store
    path: str = ""

    def __truediv__(self, name: str) -> StorePath:
        return StorePath(self.store, normalize(f"{self.path}/{name}"))

    @property
    def parent(self) -> StorePath:
        """The place one level up; the root is its own."""
        return StorePath(self.store, self.path.rpartition("/")[0])

    @property
    def name(self) -> str:
        """The last part of the path; "" for the root."""
        return self.path.rpartition("/")[2]

    @property
    def prefix(self) -> str:
        """What all keys of the node and of those below begin with."""
        return f"{self.path}/" if self.path else ""

    def ancestors(self) -> Iterator[StorePath]:
        """Yield the places above, the root first."""
        parts = self.path.split("/") if self.path else []
        for depth in range(len(parts)):
            yield StorePath(self.store, "/".join(parts[:depth]))

    def lies_in(self, other: StorePath) -> bool:
        """Tell whether this place is another one or below it, though the stores may be two upon the same data."""
        data, path = self._origin()
        other_data, other_path = other._origin()
        return data == other_data and f"{path}/".startswith(f"{other_path}/" if other_path else "")

    def _origin(self) -> tuple[Hashable, str]:
        data, path = self.store.origin()
        return data, f"{path}/{self.path}".strip("/")

    def lock(self) -> AbstractContextManager[None]:
        """Return the lock of the node: who changes its documents, in whichever dialect, holds it."""
        return self.store.lock(f"{self.prefix}zarr.json")

    def __str__(self) -> str:
        return f"{self.store}/{self.path}" if self.path else str(self.store)


def normalize(path: str | None) -> str:
    """Return a path without leading, trailing and doubled slashes.

    Raises NodeNameError for ``.`` and ``..``, which would not stay where they stand.
    Spec: Zarr v2, "Logical storage paths".

    >>> normalize("/ocean//temp/")
    'ocean/temp'
    """
    if path is None:
        return ""
    if not isinstance(path, str):
        raise NodeNameError("a path must be a string", found=repr(path), expected="a string")
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    for part in parts:
        if part in {".", ".."}:
            raise NodeNameError("a path cannot contain '.' or '..'", path=path, found=path)
    return "/".join(parts)


def dialect_named(name: str) -> Dialect:
    """Return a dialect by its own name, as a model bears it."""
    return next(dialect for dialect in DIALECTS if dialect.name == name)


def dialects_for(zarr_format: int | str | None) -> tuple[Dialect, ...]:
    """Return the dialects that ``zarr_format=`` means; all for None, in the order of detection.

    Raises ValueError if there is none.
    """
    if zarr_format is None:
        return DIALECTS
    wanted = str(zarr_format)
    found = tuple(dialect for dialect in DIALECTS if wanted in {dialect.name, str(dialect.zarr_format)})
    if not found:
        known = ", ".join(str(dialect.zarr_format) for dialect in DIALECTS)
        raise ValueError(f"there is no zarr_format {zarr_format!r}; known: {known}")
    return found


def read_documents(where: StorePath, dialect: Dialect) -> Documents:
    """Return the documents of one dialect that lie at a place, parsed, by name.

    A document of consolidated metadata is left alone (see `omnizarr.consolidated`), unless there is nothing else.
    """
    keys = dialect.documents(where.path)
    extra = dialect.consolidated.document
    found = _read(where, {name: key for name, key in keys.items() if name != extra})
    if not found and extra in keys:
        found = _read(where, {extra: keys[extra]})
    return found


def _read(where: StorePath, keys: Mapping[str, str]) -> dict[str, JSON]:
    names = list(keys)
    if len(names) == 1:
        raw = [(0, where.store.get(keys[names[0]]))]
    else:
        raw = list(where.store.get_many((keys[name], None) for name in names))
    found: dict[str, JSON] = {}
    for position, data in raw:
        if data is None:
            continue
        name = names[position]
        try:
            found[name] = documents.parse(data, strict)
        except OmnizarrError as error:
            raise error.add(store=str(where.store), path=where.path, key=keys[name]) from None
    return found


def load(where: StorePath, dialect: Dialect, found: Documents) -> Metadata | None:
    """Return what documents of one dialect say; None if they are no node."""
    if not found:
        return None
    try:
        return dialect.load(found, _strict_beside_consolidated)
    except OmnizarrError as error:
        # Of several documents, the dialect itself says which it means.
        key = dialect.documents(where.path)[next(iter(found))] if len(found) == 1 else None
        raise error.add(store=str(where.store), path=where.path, key=key)


def _strict_beside_consolidated(problem: Problem) -> None:
    """Raise the problem, unless it lies in copies of other nodes: who uses these has them checked."""
    if not issubclass(problem.kind, ConsolidatedMetadataError):
        raise problem.error()


def find(where: StorePath, zarr_format: int | str | None = None) -> Metadata | None:
    """Return the node that has documents at a place, or None.

    Raises MetadataError if a document breaks its format.
    """
    for dialect in dialects_for(zarr_format):
        metadata = load(where, dialect, read_documents(where, dialect))
        if metadata is not None:
            return metadata
    return None


def open_node(where: StorePath, zarr_format: int | str | None = None) -> Metadata:
    """Return the node at a place, also a group that no document speaks of but that has nodes below.

    Raises NodeNotFoundError, with the names that come near.
    """
    return _open(where, zarr_format, NodeNotFoundError)


def _open(where: StorePath, zarr_format: int | str | None, error: type[NodeNotFoundError]) -> Metadata:
    metadata = find(where, zarr_format)
    if metadata is None:
        metadata = _implicit(where, zarr_format)
    if metadata is None:
        raise not_found(where, error)
    return metadata


def open_array(where: StorePath, zarr_format: int | str | None = None) -> ArrayMetadata:
    """Return the array at a place. Raises ArrayNotFoundError, or ContainsGroupError."""
    metadata = _open(where, zarr_format, ArrayNotFoundError)
    if not isinstance(metadata, ArrayMetadata):
        raise ContainsGroupError(
            "there is a group, not an array", store=str(where.store), path=where.path, remedy="open it as a group"
        )
    return metadata


def open_group(where: StorePath, zarr_format: int | str | None = None) -> GroupMetadata:
    """Return the group at a place. Raises GroupNotFoundError, or ContainsArrayError."""
    metadata = _open(where, zarr_format, GroupNotFoundError)
    if not isinstance(metadata, GroupMetadata):
        raise ContainsArrayError(
            "there is an array, not a group", store=str(where.store), path=where.path, remedy="open it as an array"
        )
    return metadata


def _implicit(where: StorePath, zarr_format: int | str | None) -> GroupMetadata | None:
    """Return the group that is only implied by nodes below, or None. Spec: Zarr v3, "Discover all nodes".

    Looks level by level, and gives up after many directories: who opens a directory that has nothing to do with Zarr
    does not want it searched to the bottom.
    """
    names = {name: dialect for dialect in dialects_for(zarr_format) for name in dialect.documents("")}
    pending = deque(where.store.list_dir(where.prefix).prefixes)
    for _ in range(_MAX_SEARCHED):
        if not pending:
            break
        prefix = pending.popleft()
        listing = where.store.list_dir(prefix)
        for key in listing.keys:
            dialect = names.get(key[len(prefix) :])
            if dialect is not None and load_or_error(StorePath(where.store, prefix[:-1]), dialect) is not None:
                return GroupMetadata(dialect=dialect.name, implicit=True)
        pending.extend(listing.prefixes)
    return None


def load_or_error(where: StorePath, dialect: Dialect) -> Metadata | OmnizarrError | None:
    """Return what the documents of one dialect say at a place; for a broken node the error that says why."""
    try:
        return load(where, dialect, read_documents(where, dialect))
    except OmnizarrError as error:
        return error


def not_found(where: StorePath, kind: type[NodeNotFoundError]) -> NodeNotFoundError:
    """Return the error that says that nothing is there, and which names come near."""
    what = {ArrayNotFoundError: "array", GroupNotFoundError: "group"}.get(kind, "node")
    return kind(
        f"there is no {what} here",
        store=str(where.store),
        path=where.path,
        expected=" or ".join(sorted({name for dialect in DIALECTS for name in dialect.documents("")})),
        remedy=_remedy(where),
    )


def _remedy(where: StorePath) -> str:
    """Return what to do about a node that is not there."""
    for place in reversed(list(where.ancestors())):
        existing = _find_or_error(place)
        if isinstance(existing, ArrayMetadata):
            return f"there is an array at {place.path!r}, and nothing can lie below an array"
        if existing is not None:
            break
    return suggestions.question(_near(where)) or "create it with create_array or create_group, or mode='a' or 'w'"


def _near(where: StorePath) -> list[str]:
    """Return paths like one where nothing is; those of directories, if the store's own directory is not there."""
    if isinstance(where.store, LocalStore):
        root = Path(where.store.root)
        found = suggestions.near_directories(root / where.path)
        return [place.relative_to(root).as_posix() if root.is_dir() else str(place) for place in found]
    parts = where.path.split("/") if where.path else []

    def names_in(place: tuple[str, ...]) -> list[str]:
        return children(StorePath(where.store, "/".join(place)))

    try:
        for depth, part in enumerate(parts):
            there = tuple(parts[:depth])
            if part not in names_in(there):
                return ["/".join(place) for place in suggestions.near_places(there, parts[depth:], names_in)]
    except OmnizarrError:
        pass  # a store that cannot be listed makes no suggestions
    return []


def children(where: StorePath) -> list[str]:
    """Return the names of what may be nodes right below a place, sorted."""
    prefixes = where.store.list_dir(where.prefix).prefixes
    names = (prefix.rstrip("/").rpartition("/")[2] for prefix in prefixes)
    return sorted(name for name in names if name)


def load_children(
    where: StorePath, names: Iterable[str], prefer: str
) -> Iterator[tuple[str, Metadata | OmnizarrError]]:
    """Yield the nodes right below a place; for one that cannot be read, the error that says why.

    What is no node is passed over, and what cannot be one by its name. `prefer` names the dialect to look for first.
    """
    preferred = sorted(DIALECTS, key=lambda dialect: dialect.name != prefer)
    for name in names:
        order = [dialect for dialect in preferred if _allows(dialect, name)]
        place = StorePath(where.store, f"{where.prefix}{name}")
        try:
            metadata: Metadata | None = None
            for dialect in order:
                metadata = load(place, dialect, read_documents(place, dialect))
                if metadata is not None:
                    break
            else:
                metadata = _implicit(place, None) if len(order) == len(preferred) else None
        except OmnizarrError as error:
            yield name, error
            continue
        if metadata is not None:
            yield name, metadata


def _allows(dialect: Dialect, name: str) -> bool:
    try:
        dialect.check_name(name)
    except NodeNameError:
        return False
    return True


def check_path(dialect: Dialect, path: str) -> None:
    """Raise NodeNameError if the dialect does not allow a name in a path of a new node."""
    for part in path.split("/") if path else ():
        try:
            dialect.check_name(part)
        except OmnizarrError as error:
            raise error.add(path=path)


def create(where: StorePath, metadata: M, *, overwrite: bool = False) -> M:
    """Write the documents of a new node, and those of the groups above that have none.

    Of several that do so at the same time without `overwrite`, one succeeds.

    Raises
    ------
    ContainsArrayError, ContainsGroupError
        If there is a node already, or an array among the nodes above.
    NodeNameError
        If the dialect does not allow a name in the path.
    NotRepresentableError
        If the dialect has no words for `metadata`.
    ReadOnlyError
    """
    _refuse_read_only(where)
    dialect = dialect_named(metadata.dialect)
    check_path(dialect, where.path)
    _dump(where, dialect, metadata)  # refuse before anything is deleted or written
    _create_ancestors(where, dialect)
    with where.lock():
        existing = _find_or_error(where)
        if existing is not None:
            if not overwrite:
                raise _in_the_way(where, existing)
            where.store.delete_prefix(where.prefix)
        elif overwrite and isinstance(metadata, ArrayMetadata):
            _delete_strays(where, dialect, metadata)
        _write(where, dialect, metadata, {})
    return metadata


def _delete_strays(where: StorePath, dialect: Dialect, metadata: ArrayMetadata) -> None:
    """Delete what would become chunks of a new array: of one that was not removed completely, or written to since.

    Anything else stays: it may be somebody's files.
    """
    prefix = dialect.chunk_prefix(where.path)
    encoding = chunk_keys.bind(metadata.chunk_key_encoding)
    found = list(where.store.list_prefix(prefix))
    ndim = len(metadata.shape)
    where.store.delete_many([key for key in found if encoding.decode(key[len(prefix) :], ndim) is not None])


def require(where: StorePath, metadata: GroupMetadata) -> GroupMetadata:
    """Return the group at a place, after creating it if there is none.

    Raises ContainsArrayError if there is an array.
    """
    existing = find(where)
    if existing is None:
        try:
            return create(where, metadata)
        except ContainsGroupError:
            existing = find(where)  # another was faster
    if not isinstance(existing, GroupMetadata):
        raise ContainsArrayError("there is an array, not a group", store=str(where.store), path=where.path)
    return existing


def update(where: StorePath, kind: type[M], change: Callable[[M], M], zarr_format: int | str | None = None) -> M:
    """Change a node's documents: read them, apply `change`, write back those that differ, all under the node's lock.

    An implicit group gets a document of its own. Where documents of several formats lie side by side, `zarr_format`
    says which to change.

    Raises
    ------
    NodeNotFoundError
        If the node has gone.
    ReadOnlyError, NotRepresentableError, MetadataError
    """
    _refuse_read_only(where)
    with where.lock():
        return update_locked(where, kind, change, zarr_format)


def update_locked(where: StorePath, kind: type[M], change: Callable[[M], M], zarr_format: int | str | None = None) -> M:
    """Do as `update`, for a caller that holds the lock."""
    for dialect in dialects_for(zarr_format):
        found = read_documents(where, dialect)
        metadata = load(where, dialect, found)
        if metadata is not None:
            break
    else:
        implied = _implicit(where, zarr_format)
        if implied is None:
            raise not_found(where, NodeNotFoundError)
        metadata, found, dialect = implied, {}, dialect_named(implied.dialect)
    if not isinstance(metadata, kind):
        error = ContainsArrayError if isinstance(metadata, ArrayMetadata) else ContainsGroupError
        raise error("another node has taken this place", store=str(where.store), path=where.path)
    changed = change(metadata)
    _write(where, dialect, changed, found)
    return changed


def delete(where: StorePath) -> None:
    """Remove a node and all below it. Spec: Zarr v3, "Erase a group or array"."""
    _refuse_read_only(where)
    with where.lock():
        where.store.delete_prefix(where.prefix)


def copy(source: StorePath, target: StorePath, *, overwrite: bool = False) -> None:
    """Copy a node and all below it, byte for byte, to another place of this or another store.

    Documents come last, so that nothing is seen before it is complete.

    Raises
    ------
    NodeNotFoundError
        If there is nothing at `source`.
    ContainsArrayError, ContainsGroupError
        If there is something at `target`, and not `overwrite`.
    NodeNameError
        If `target` lies in `source`, or the other way round.
    """
    _refuse_read_only(target)
    metadata = open_node(source)
    dialect = dialect_named(metadata.dialect)
    check_path(dialect, target.path)
    refuse_overlap(source, target)
    _create_ancestors(target, dialect)
    names = {name for dialect in DIALECTS for name in dialect.documents("")}
    with target.lock():
        existing = _find_or_error(target)
        if existing is not None:
            if not overwrite:
                raise _in_the_way(target, existing)
            target.store.delete_prefix(target.prefix)
        last: list[str] = []
        for key in source.store.list_prefix(source.prefix):
            if key.rpartition("/")[2] in names:
                last.append(key)
            else:
                _copy_value(source, target, key)
        # The deepest first, and of one node the one that makes it a node last.
        makers = tuple(name for dialect in DIALECTS for name in (dialect.array_document, dialect.group_document))
        for key in sorted(last, key=lambda key: (-key.count("/"), key.endswith(makers), key)):
            _copy_value(source, target, key)


def refuse_overlap(source: StorePath, target: StorePath) -> None:
    """Raise NodeNameError if a node would be copied into itself, or over itself."""
    if target.lies_in(source):
        raise NodeNameError(
            "a node cannot be copied or moved into itself", path=target.path, expected=f"not below {source.path!r}"
        )
    if source.lies_in(target):
        raise NodeNameError(
            "a node cannot replace one that it lies in",
            path=target.path,
            expected=f"not above {source.path!r}",
            remedy="copy it elsewhere first",
        )


def _copy_value(source: StorePath, target: StorePath, key: str) -> None:
    value = source.store.get(key)
    if value is not None:
        target.store.set(target.prefix + key[len(source.prefix) :], value)


def move(source: StorePath, target: StorePath) -> None:
    """Move a node and all below it to another place of its store; raises as `copy`."""
    copy(source, target)
    delete(source)


def _dump(where: StorePath, dialect: Dialect, metadata: Metadata) -> Documents:
    try:
        return dialect.dump(metadata)
    except OmnizarrError as error:
        raise error.add(store=str(where.store), path=where.path)


def _write(where: StorePath, dialect: Dialect, metadata: Metadata, old: Documents) -> None:
    """Write the documents that differ from `old`: the one that makes the node last, so that it appears complete."""
    new = _dump(where, dialect, metadata)
    keys = dialect.documents(where.path)
    # A dialect names first the documents that make a node one.
    for name in sorted(new, key=list(keys).index, reverse=True):
        if name not in old or not _same(old[name], new[name]):
            where.store.set(keys[name], documents.render(new[name]))
    for name in old:
        if name not in new:
            where.store.delete(keys[name])


def _same(old: JSON, new: JSON) -> bool:
    return documents.render(old) == documents.render(new)


def _create_ancestors(where: StorePath, dialect: Dialect) -> None:
    """Give every place above a group's document, where there is no node; refuse an array among them."""
    for place in where.ancestors():
        existing = _find_or_error(place)
        if existing is None:
            with place.lock():
                existing = _find_or_error(place)  # another creator may have been faster
                if existing is None:
                    _write(place, dialect, GroupMetadata(dialect=dialect.name), {})
        if isinstance(existing, ArrayMetadata):
            raise ContainsArrayError(
                "an array is in the way: nodes cannot lie below it",
                store=str(where.store),
                path=place.path,
                found=f"an array at {'/' + place.path!r}",
                expected="a group",
            )


def _find_or_error(where: StorePath) -> Metadata | OmnizarrError | None:
    """Return what lies at a place, a broken node as the error that it raises."""
    try:
        return find(where)
    except OmnizarrError as error:
        return error


def _in_the_way(where: StorePath, existing: Metadata | OmnizarrError) -> OmnizarrError:
    what = {"store": str(where.store), "path": where.path, "remedy": "pass overwrite=True to replace it"}
    if isinstance(existing, ArrayMetadata):
        return ContainsArrayError("there is an array already", **what)
    if isinstance(existing, GroupMetadata):
        return ContainsGroupError("there is a group already", **what)
    return existing


def _refuse_read_only(where: StorePath) -> None:
    if where.store.read_only:
        raise ReadOnlyError("the store is read-only", store=str(where.store), path=where.path)
