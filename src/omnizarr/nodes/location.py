"""Places: a store and the path of a node in it, and the formats that the node can have.

If the hierarchy of a place has an entry point, `StorePath.home` holds the place of that hierarchy;
`omnizarr.nodes.detection` finds it. `dialect_of` returns a dialect with the keys that it uses there.

Spec: Zarr v3 core, "Conceptual model"; Zarr v2, "Logical storage paths".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from omnizarr.errors import NodeNameError
from omnizarr.formats import DIALECTS, dialect_named, dialects_for
from omnizarr.formats.contract import Dialect
from omnizarr.formats.keyspaces import Split
from omnizarr.formats.paths import paths_above
from omnizarr.model import Metadata
from omnizarr.stores import Store


@dataclass(frozen=True, slots=True)
class StorePath:
    """A place in a store: the store, and the path of a node that exists or could be created.

    Attributes
    ----------
    store : Store
    path : str
        Without leading and trailing slashes; "" is the root.
    """

    store: Store
    path: str = ""
    home: Split | None = field(default=None, compare=False, repr=False)
    """Where the keys of the hierarchy begin, if it is known to be a hierarchy of a draft with an entry point."""

    def __truediv__(self, name: str) -> StorePath:
        if type(name) is str and name.isidentifier():  # like most names
            return self.at(f"{self.path}/{name}" if self.path else name)
        return self.at(normalize(f"{self.path}/{name}"))

    def at(self, path: str) -> StorePath:
        """Return another place in the store. It belongs to the same hierarchy if its path is within that."""
        home = self.home
        if home is not None and home.root and not f"{path}/".startswith(f"{home.root}/"):
            home = None
        # The assignments of a frozen dataclass are calls; those of another class with the same layout are not.
        made: Any = _Draft()
        made.store = self.store
        made.path = path
        made.home = home
        made.__class__ = StorePath
        place: StorePath = made
        return place

    @property
    def parent(self) -> StorePath:
        """The place one level up; for the root, the root."""
        return self.at(self.path.rpartition("/")[0])

    @property
    def name(self) -> str:
        """The last part of the path; "" for the root."""
        return self.path.rpartition("/")[2]

    @property
    def prefix(self) -> str:
        """The prefix of all keys of the node and of the nodes below."""
        return f"{self.path}/" if self.path else ""

    def ancestors(self) -> Iterator[StorePath]:
        """Yield the places above this one, starting with the root."""
        yield from map(self.at, paths_above(self.path))

    def lies_in(self, other: StorePath) -> bool:
        """Return whether this place is another one or below it. Two stores for the same data count as one."""
        data, path = self._origin()
        other_data, other_path = other._origin()
        return data == other_data and f"{path}/".startswith(f"{other_path}/" if other_path else "")

    def _origin(self) -> tuple[Hashable, str]:
        data, path = self.store.origin()
        return data, f"{path}/{self.path}".strip("/")

    def lock(self) -> AbstractContextManager[object]:
        """Return the lock of the node. Hold it to change the documents in any dialect."""
        return self.store.lock(self.lock_key)

    @property
    def lock_key(self) -> str:
        """The key to lock before the documents of the node are changed, in any dialect."""
        return f"{self.prefix}zarr.json" if self.home is None else self.home.documents(self.path)["array"]

    def __str__(self) -> str:
        return f"{self.store}/{self.path}" if self.path else str(self.store)


class _Draft:
    """A `StorePath` while it is made."""

    __slots__ = tuple(member.name for member in fields(StorePath))


def normalize(path: str | None) -> str:
    """Return a path without leading, trailing and repeated slashes.

    Raises NodeNameError for ``.`` and ``..``.
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


def dialects_at(where: StorePath, zarr_format: int | str | None = None) -> tuple[Dialect, ...]:
    """Return the dialects that a node at a place can have, in the order of detection, with their keys there."""
    if where.home is None and zarr_format is None:
        return _WITHOUT_ENTRY_POINTS
    wanted = dialects_for(zarr_format)
    if where.home is None:
        return tuple(dialect for dialect in wanted if dialect.entry_point is None)
    return tuple(replace(dialect, keyspace=where.home) for dialect in wanted if dialect.entry_point is not None)


_WITHOUT_ENTRY_POINTS: Final = tuple(dialect for dialect in DIALECTS if dialect.entry_point is None)


def dialect_of(where: StorePath, metadata: Metadata) -> Dialect:
    """Return the dialect of the node at a place, with the keys that it uses there."""
    dialect = dialect_named(metadata.dialect)
    if where.home is None or dialect.entry_point is None:
        return dialect
    return replace(dialect, keyspace=where.home)


def chunk_prefix(where: StorePath, metadata: Metadata) -> str:
    """Return the prefix of the keys of all chunks of the array at a place."""
    return dialect_of(where, metadata).keyspace.chunk_prefix(where.path)
