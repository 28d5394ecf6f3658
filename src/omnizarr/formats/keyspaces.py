"""Where the keys of a hierarchy are: the documents of its nodes, their chunks, and how a listing shows both.

In Zarr v1, v2 and v3 a node has everything below its own path (`Flat`). The drafts of v3 kept documents and chunks
apart, below the entry point of the hierarchy (`Split`), which tells where everything is.

Spec: Zarr v3 drafts of June 2019, 2020 and November 2022, "Storage keys"; what zarrita wrote in July 2020;
Zarr v2, "Hierarchies".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol, TypeVar

from omnizarr.formats.paths import prefix
from omnizarr.model import JSON, ArrayMetadata, Metadata, Named

M = TypeVar("M", bound=Metadata)

KEYS_OF_2020: Final = "omnizarr.draft2020"
"""Chunk key encoding of the draft of 2020: ``c0/0``."""


class Belongings(NamedTuple):
    """What belongs to a node and to all below it."""

    keys: tuple[str, ...]
    prefixes: tuple[str, ...]


class Keyspace(Protocol):
    """Where keys are. All paths are paths in the store."""

    def documents(self, path: str, /) -> dict[str, str]:
        """Return document name -> store key, for the node at `path`; first those that make a node one."""

    def chunk_prefix(self, path: str, /) -> str:
        """Return what the keys of all chunks of the array at `path` begin with."""

    def directory(self, path: str, /) -> str:
        """Return the prefix whose listing shows the nodes directly below `path`."""

    def child(self, entry: str, /) -> str | None:
        """Return the name of the node that an entry of that listing shows: ``"b/"``, ``"b.array.json"``; or None."""

    def belongings(self, path: str, /) -> Belongings:
        """Return what belongs to the node at `path` and to those below."""

    def settle(self, metadata: M, /) -> M:
        """Return what a document says, with what only the place of the document tells."""

    def unsettle(self, metadata: M, /) -> M:
        """Undo `settle`."""


@dataclass(frozen=True, slots=True)
class Flat:
    """Everything of a node is below its own path.

    >>> Flat((".zarray", ".zattrs")).documents("a/b")
    {'.zarray': 'a/b/.zarray', '.zattrs': 'a/b/.zattrs'}
    """

    names: tuple[str, ...]
    """Names of the documents, first those that make a node one."""
    chunks: str = ""
    """Directory, within the node's, that has the chunks, with a slash at its end."""

    def documents(self, path: str, /) -> dict[str, str]:
        """Return document name -> store key."""
        return {name: prefix(path) + name for name in self.names}

    def chunk_prefix(self, path: str, /) -> str:
        """Return what the keys of all chunks begin with."""
        return prefix(path) + self.chunks

    def directory(self, path: str, /) -> str:
        """Return the node's own prefix."""
        return prefix(path)

    def child(self, entry: str, /) -> str | None:
        """Return the name of a directory; a file is not a node."""
        return entry[:-1] if entry.endswith("/") else None

    def belongings(self, path: str, /) -> Belongings:
        """Return the node's own prefix."""
        return Belongings((), (prefix(path),))

    def settle(self, metadata: M, /) -> M:
        """Return `metadata`: documents say everything."""
        return metadata

    def unsettle(self, metadata: M, /) -> M:
        """Return `metadata`."""
        return metadata


@dataclass(frozen=True, slots=True)
class Split:
    """Documents below one prefix, chunks below another, both next to the entry point ``zarr.json``.

    >>> Split().documents("a/b")["array"], Split().documents("")["array"], Split().chunk_prefix("a/b")
    ('meta/root/a/b.array.json', 'meta/root.array.json', 'data/root/a/b/')
    """

    root: str = ""
    """Path of the hierarchy's root in the store."""
    meta: str = "meta/root"
    data: str = "data/root"
    suffix: str = ".json"
    glued: bool = True
    """Chunks are ``c0/0``; False: ``0/0``."""
    dialect: str = "v3-draft2020"
    """Dialect of new nodes, and of groups that are implied."""
    consolidated: str | None = "meta/root/consolidated/.zmetadata"
    """Key of the copies of all documents, from the root."""
    entry: Mapping[str, JSON] = field(default_factory=dict, compare=False, repr=False)
    """The entry point as it was read; empty for a new hierarchy."""

    def documents(self, path: str, /) -> dict[str, str]:
        """Return document name -> store key. The entry point is none of a node's documents."""
        stem = prefix(self.root) + self.meta + self._below(path)
        found = {"array": f"{stem}.array{self.suffix}", "group": f"{stem}.group{self.suffix}"}
        if path == self.root and self.consolidated is not None:
            found[".zmetadata"] = prefix(self.root) + self.consolidated
        return found

    def chunk_prefix(self, path: str, /) -> str:
        """Return what the keys of all chunks begin with."""
        return f"{prefix(self.root)}{self.data}{self._below(path)}/"

    def directory(self, path: str, /) -> str:
        """Return where the documents of the nodes below are."""
        return f"{prefix(self.root)}{self.meta}{self._below(path)}/"

    def child(self, entry: str, /) -> str | None:
        """Return the name of a node with a document, or of a directory with such in it."""
        if entry.endswith("/"):
            return entry[:-1]
        for kind in (f".array{self.suffix}", f".group{self.suffix}"):
            if entry.endswith(kind) and entry != kind:
                return entry.removesuffix(kind)
        return None

    def belongings(self, path: str, /) -> Belongings:
        """Return the documents of the node, and the prefixes of what is below it; of the root everything."""
        keys = tuple(self.documents(path).values())
        if path == self.root:
            top = prefix(self.root)
            prefixes = sorted({f"{top}{place.partition('/')[0]}/" for place in (self.meta, self.data)})
            return Belongings((*keys, self.entry_key), tuple(prefixes))
        return Belongings(keys, (self.directory(path), self.chunk_prefix(path)))

    @property
    def entry_key(self) -> str:
        """Store key of the entry point."""
        return prefix(self.root) + "zarr.json"

    def settle(self, metadata: M, /) -> M:
        """Return what a document says, its chunks under the keys of this variant of the draft."""
        if isinstance(metadata, ArrayMetadata) and not self.glued and metadata.chunk_key_encoding.name == KEYS_OF_2020:
            separator = metadata.chunk_key_encoding.configuration.get("separator", "/")
            return replace(metadata, chunk_key_encoding=Named("v2", {"separator": separator}))
        return metadata

    def unsettle(self, metadata: M, /) -> M:
        """Undo `settle`."""
        if isinstance(metadata, ArrayMetadata) and not self.glued and metadata.dialect == "v3-draft2020":
            separator = metadata.chunk_key_encoding.configuration.get("separator", "/")
            return replace(metadata, chunk_key_encoding=Named(KEYS_OF_2020, {"separator": separator}))
        return metadata

    def _below(self, path: str) -> str:
        """Return a path from the root, with a slash before it: ``"/a/b"``, ``""`` for the root itself."""
        if path == self.root:
            return ""
        return "/" + path.removeprefix(prefix(self.root))


class Early(Split):
    """Before the slash: chunks are ``0.0`` where the document of an array names no separator.

    The texts called the period the default from May 2019 to May 2020; zarrita wrote keys so until September 2020.
    """

    __slots__ = ()

    def settle(self, metadata: M, /) -> M:
        """Return what a document says, with the separator of this variant where it says none."""
        if isinstance(metadata, ArrayMetadata) and metadata.chunk_key_encoding == Named(KEYS_OF_2020):
            return replace(metadata, chunk_key_encoding=Named("v2", {"separator": "."}))
        return Split.settle(self, metadata)

    def unsettle(self, metadata: M, /) -> M:
        """Undo `settle`."""
        if (
            isinstance(metadata, ArrayMetadata)
            and metadata.chunk_key_encoding == Named("v2", {"separator": "."})
            and not _names_a_separator(metadata)
        ):
            return replace(metadata, chunk_key_encoding=Named(KEYS_OF_2020))
        return Split.unsettle(self, metadata)


class Late(Split):
    """After "root" went: ``meta/a.array.json``, ``data/a/c0/0``; the root itself has ``meta/array.json``."""

    __slots__ = ()

    def documents(self, path: str, /) -> dict[str, str]:
        """Return document name -> store key."""
        if path != self.root:
            return Split.documents(self, path)
        return {kind: f"{prefix(self.root)}{self.meta}/{kind}{self.suffix}" for kind in ("array", "group")}


def _names_a_separator(metadata: ArrayMetadata) -> bool:
    """Whether the document that was read, if there was one, says what separates coordinates."""
    spelling = metadata.spellings.get("v3-draft2020:chunk_grid")
    if spelling is None:
        return True
    grid = spelling.document.get("chunk_grid")
    return (isinstance(grid, Mapping) and "separator" in grid) or "dimension_separator" in spelling.document
