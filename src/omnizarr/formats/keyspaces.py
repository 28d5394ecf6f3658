"""The keys of a hierarchy: documents of nodes, chunks, and how listings show both.

In Zarr v1, v2 and v3, everything of a node is below its own path (`Flat`). The drafts of v3 store documents and
chunks separately, below the entry point of the hierarchy (`Split`), which determines where everything is.

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


class NodeKeys(NamedTuple):
    """What belongs to a node and to all nodes below."""

    keys: tuple[str, ...]
    prefixes: tuple[str, ...]


class Keyspace(Protocol):
    """The scheme of keys. All paths are paths in the store."""

    def documents(self, path: str, /) -> dict[str, str]:
        """Return the store keys of the node at `path` by document name, with documents that make a node first."""

    def chunk_prefix(self, path: str, /) -> str:
        """Return the prefix of the keys of all chunks of the array at `path`."""

    def of_array(self, path: str, document: str, /) -> tuple[str, str]:
        """Return the key of a document of the array at `path`, and the result of `chunk_prefix`."""

    def directory(self, path: str, /) -> str:
        """Return the prefix whose listing shows the nodes directly below `path`."""

    def child(self, entry: str, /) -> str | None:
        """Return the name of the node for an entry of that listing: ``"b/"``, ``"b.array.json"``; or None."""

    def node_keys(self, path: str, /) -> NodeKeys:
        """Return what belongs to the node at `path` and to nodes below."""

    def settle(self, metadata: M, /) -> M:
        """Return the metadata completed with what only the place of the document determines."""

    def unsettle(self, metadata: M, /) -> M:
        """Undo `settle`."""


@dataclass(frozen=True, slots=True)
class Flat:
    """Everything of a node is below its own path.

    >>> Flat((".zarray", ".zattrs")).documents("a/b")
    {'.zarray': 'a/b/.zarray', '.zattrs': 'a/b/.zattrs'}
    """

    names: tuple[str, ...]
    """Names of the documents, with those that make a node first."""
    chunks: str = ""
    """Directory of the chunks within that of the node, with a slash at its end."""

    def documents(self, path: str, /) -> dict[str, str]:
        """Return the store keys by document name."""
        start = prefix(path)
        return {name: start + name for name in self.names}

    def chunk_prefix(self, path: str, /) -> str:
        """Return the prefix of the keys of all chunks."""
        return prefix(path) + self.chunks

    def of_array(self, path: str, document: str, /) -> tuple[str, str]:
        """Return both below the path."""
        start = f"{path}/" if path else ""
        return start + document, start + self.chunks

    def directory(self, path: str, /) -> str:
        """Return the node's own prefix."""
        return prefix(path)

    def child(self, entry: str, /) -> str | None:
        """Return the name of a directory; a file is not a node."""
        return entry[:-1] if entry.endswith("/") else None

    def node_keys(self, path: str, /) -> NodeKeys:
        """Return the node's own prefix."""
        return NodeKeys((), (prefix(path),))

    def settle(self, metadata: M, /) -> M:
        """Return `metadata`: documents are complete."""
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
    """True: chunks are ``c0/0``; False: ``0/0``."""
    dialect: str = "v3-draft2020"
    """Dialect of new nodes, and of implicit groups."""
    consolidated: str | None = "meta/root/consolidated/.zmetadata"
    """Key of the copies of all documents, relative to the root."""
    entry: Mapping[str, JSON] = field(default_factory=dict, compare=False, repr=False)
    """The entry point as it was read; empty for a new hierarchy."""

    def documents(self, path: str, /) -> dict[str, str]:
        """Return the store keys by document name. The entry point is not a document of a node."""
        stem = prefix(self.root) + self.meta + self._below(path)
        found = {"array": f"{stem}.array{self.suffix}", "group": f"{stem}.group{self.suffix}"}
        if path == self.root and self.consolidated is not None:
            found[".zmetadata"] = prefix(self.root) + self.consolidated
        return found

    def chunk_prefix(self, path: str, /) -> str:
        """Return the prefix of the keys of all chunks."""
        return f"{prefix(self.root)}{self.data}{self._below(path)}/"

    def of_array(self, path: str, document: str, /) -> tuple[str, str]:
        """Return both, which are apart."""
        return self.documents(path)[document], self.chunk_prefix(path)

    def directory(self, path: str, /) -> str:
        """Return the prefix of the documents of the nodes below."""
        return f"{prefix(self.root)}{self.meta}{self._below(path)}/"

    def child(self, entry: str, /) -> str | None:
        """Return the name of a node with a document, or of a directory that contains some."""
        if entry.endswith("/"):
            return entry[:-1]
        for kind in (f".array{self.suffix}", f".group{self.suffix}"):
            if entry.endswith(kind) and entry != kind:
                return entry.removesuffix(kind)
        return None

    def node_keys(self, path: str, /) -> NodeKeys:
        """Return the documents of the node, and the prefixes of everything below; for the root, everything."""
        keys = tuple(self.documents(path).values())
        if path == self.root:
            top = prefix(self.root)
            prefixes = sorted({f"{top}{place.partition('/')[0]}/" for place in (self.meta, self.data)})
            return NodeKeys((*keys, self.entry_key), tuple(prefixes))
        return NodeKeys(keys, (self.directory(path), self.chunk_prefix(path)))

    @property
    def entry_key(self) -> str:
        """Store key of the entry point."""
        return prefix(self.root) + "zarr.json"

    def settle(self, metadata: M, /) -> M:
        """Return the metadata with the chunk keys of this variant of the draft."""
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
    """Before separators had slashes: chunks are ``0.0`` if the document of an array names no separator.

    The period was the default in the specifications from May 2019 to May 2020; zarrita wrote such keys until
    September 2020.
    """

    __slots__ = ()

    def settle(self, metadata: M, /) -> M:
        """Return the metadata, with the separator of this variant if it states none."""
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
    """After "root" was dropped: ``meta/a.array.json``, ``data/a/c0/0``; the root itself has ``meta/array.json``."""

    __slots__ = ()

    def documents(self, path: str, /) -> dict[str, str]:
        """Return the store keys by document name."""
        if path != self.root:
            return Split.documents(self, path)
        return {kind: f"{prefix(self.root)}{self.meta}/{kind}{self.suffix}" for kind in ("array", "group")}


def _names_a_separator(metadata: ArrayMetadata) -> bool:
    """Whether the document that was read, if there was one, states the separator of coordinates."""
    spelling = metadata.spellings.get("v3-draft2020:chunk_grid")
    if spelling is None:
        return True
    grid = spelling.document.get("chunk_grid")
    return (isinstance(grid, Mapping) and "separator" in grid) or "dimension_separator" in spelling.document
