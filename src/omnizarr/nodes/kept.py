"""Metadata, or documents, of many nodes in little memory: what equal ones share is kept once, the rest compressed.

A node takes about 250 bytes, most of them for its path, where its parsed document takes 3,000.
"""

from __future__ import annotations

import pickle
import sys
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from omnizarr.formats import documents
from omnizarr.formats.consolidated import Copy
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata
from omnizarr.support.lazy import Lazy
from omnizarr.support.packed import Packed

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = Lazy("hashlib")

_PROTOCOL: Final = 5
_MADE: Final = 64
"""Nodes that are kept as they were made: each is asked for many times in a row."""
_NOT_PLAIN: Final = (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError)


class KeptNodes(Mapping[str, Metadata]):
    """Metadata of nodes by path, to be read: without the spelling of their documents, and without copies of others.

    Nodes are added one by one, and a node is made again each time it is asked for. Threads can ask at the same time.

    Examples
    --------
    >>> nodes = KeptNodes()
    >>> nodes.add("ocean", GroupMetadata(dialect="v3", attributes={"depth": [5, 10]}))
    >>> nodes["ocean"].attributes
    {'depth': [5, 10]}
    """

    __slots__ = ("_alike", "_arrays", "_groups", "_made", "_own", "_places", "_shared")

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        """The number of each node."""
        self._shared: list[Metadata] = []
        """What each node has in common with others."""
        self._own = Packed()
        """What it has of its own."""
        self._arrays: dict[tuple[object, ...], ArrayMetadata] = {}
        """What arrays have in common, by the identity of its parts, which are kept with it."""
        self._alike: dict[bytes, ArrayMetadata] = {}
        """The same by its content."""
        self._groups: dict[tuple[object, ...], GroupMetadata] = {}
        self._made: list[tuple[int, Metadata | None]] = [(-1, None)] * _MADE

    def add(self, path: str, metadata: Metadata) -> None:
        """Keep a node, which has not been added yet."""
        shared, own = self._divided(metadata)
        self._places[path] = self._own.add(own)
        self._shared.append(shared)

    def __getitem__(self, path: str) -> Metadata:
        number = self._places[path]
        known, made = self._made[number % _MADE]
        if known == number and made is not None:
            return made
        own = self._own[number]
        shared = self._shared[number]
        made = replace(shared, **pickle.loads(own)) if own else shared  # noqa: S301 - of this process
        self._made[number % _MADE] = number, made
        return made

    def __contains__(self, path: object) -> bool:
        return path in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def in_common(self, path: str) -> Metadata:
        """Return a node without its attributes, which most nodes share with similar ones."""
        shared = self._shared[self._places[path]]
        if not isinstance(shared, ArrayMetadata):
            return shared
        shape = cast("ArrayMetadata", self[path]).shape
        return shared if shared.shape == shape else replace(shared, shape=shape)

    def is_array(self, path: str) -> bool:
        """Return whether a node is an array, which costs less than asking for it."""
        return isinstance(self._shared[self._places[path]], ArrayMetadata)

    def _divided(self, metadata: Metadata) -> tuple[Metadata, bytes]:
        """Return what a node has in common with others, and what is its own, which replaces that."""
        own: dict[str, Any] = {"attributes": metadata.attributes} if metadata.attributes else {}
        shared: Metadata
        if isinstance(metadata, ArrayMetadata):
            like = shared = self._array_like(metadata)
            if like.shape != metadata.shape:
                own["shape"] = metadata.shape
        else:
            shared = self._group_like(metadata)
            if metadata.unknown:
                own["unknown"] = metadata.unknown
        try:
            return shared, pickle.dumps(own, _PROTOCOL) if own else b""
        except _NOT_PLAIN:  # made by a program, and no document
            return replace(metadata, spellings={}), b""

    def _array_like(self, metadata: ArrayMetadata) -> ArrayMetadata:
        """Return an array without attributes that differs in its shape only."""
        parts = _parts(metadata)
        shared = self._arrays.get(parts)
        if shared is None:
            bare = replace(metadata, attributes={}, spellings={})
            try:
                content = pickle.dumps(replace(bare, shape=()), _PROTOCOL)
            except _NOT_PLAIN:
                return bare
            shared = self._alike.setdefault(hashlib.blake2b(content, digest_size=16).digest(), bare)
            if shared is bare:
                self._arrays[parts] = bare
        return shared

    def _group_like(self, metadata: GroupMetadata) -> GroupMetadata:
        """Return a group without attributes and copies."""
        parts = metadata.dialect, metadata.implicit, metadata.consolidated is not None, metadata.notes
        shared = self._groups.get(parts)
        if shared is None:
            copies: Mapping[str, Any] | None = None if metadata.consolidated is None else {}
            shared = replace(metadata, attributes={}, unknown={}, spellings={}, consolidated=copies)
            self._groups[parts] = shared
        return shared


class KeptDocuments(Mapping[str, Copy]):
    """Documents of nodes by path, as texts on one line. They are parsed when they are asked for.

    Examples
    --------
    >>> kept = KeptDocuments()
    >>> kept.add("ocean", {"zarr.json": {"node_type": "group"}})
    >>> kept["ocean"]["zarr.json"], dict(kept["ocean"].texts)
    ({'node_type': 'group'}, {'zarr.json': b'{"node_type": "group"}'})
    """

    __slots__ = ("_names", "_numbers", "_places", "_texts", "nbytes")

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._names: list[tuple[str, ...]] = []
        """The names of the documents of each node."""
        self._numbers = array("Q")
        """The number of the first document of each node."""
        self._texts = Packed()
        self.nbytes = 0
        """The length of all texts."""

    def add(self, path: str, found: Mapping[str, JSON]) -> None:
        """Keep the documents of a node, which has not been added yet."""
        self._places[path] = len(self._names)
        names = tuple(map(sys.intern, found))
        self._names.append(self._names[-1] if self._names and self._names[-1] == names else names)
        self._numbers.append(len(self._texts))
        for document in found.values():
            text = documents.on_one_line(document)
            self.nbytes += len(text)
            self._texts.add(text)

    def __getitem__(self, path: str) -> Copy:
        at = self._places[path]
        first = self._numbers[at]
        return Copy({name: self._texts[first + number] for number, name in enumerate(self._names[at])})

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names of the documents of a node."""
        return self._names[self._places[path]]

    def __contains__(self, path: object) -> bool:
        return path in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _parts(metadata: ArrayMetadata) -> tuple[object, ...]:
    """Return what says whether arrays are similar: the identity of the parts that those of equal documents share."""
    return (
        metadata.dialect,
        metadata.byte_order,
        id(metadata.data_type),
        id(metadata.chunk_grid),
        id(metadata.chunk_key_encoding),
        id(metadata.fill_value),
        id(metadata.codecs),
        metadata.dimension_names,
        id(metadata.storage_transformers),
        id(metadata.unknown),
        metadata.notes,
    )
