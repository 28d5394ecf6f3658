"""Counting what nodes take, by reading all documents once and listing the keys once.

Reading the documents finds the nodes. The listing assigns each key to the nearest node above it, as one of its
chunks, one of its documents, or something else. Memory grows with the number of nodes, not of chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from sys import intern
from typing import Any, Final, Literal

from omnizarr.api import opening
from omnizarr.errors import OmnizarrError
from omnizarr.formats import DIALECTS
from omnizarr.formats.paths import Above
from omnizarr.model import ArrayMetadata
from omnizarr.model.grids import Coords
from omnizarr.nodes import bindings, erasing, holdings, info, naming
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath, chunk_prefix
from omnizarr.nodes.members import UnreadableNode
from omnizarr.stores import LocalStore, PrefixStore, Store, WrapperStore
from omnizarr.stores.base import NOT_LISTED
from omnizarr.support.memo import Memo
from omnizarr.support.progress import Progress, Tracker
from omnizarr.tools import describe, reaching
from omnizarr.tools.du.report import Amount, NodeUsage, Usage

_Decode = Callable[[str], Coords | None]

_OF_ANY: Final = frozenset(
    {
        *(name for dialect in DIALECTS if dialect.entry_point is None and dialect.name != "v1"
          for name in dialect.keyspace.documents("")),
        *erasing.NCZARR,
    }
)  # fmt: skip
"""Names of documents of all formats. Those of v1 could also be names of chunks, or of anything else."""
_OF_V1: Final = frozenset({"meta", "attrs"})


_amounts: Final[Memo[Amount]] = Memo(exact=True)


def _amount(counts: tuple[int, int]) -> Amount:
    """Return counts as a plain value; most documents have one of few sizes, and equal amounts are one object."""
    return _amounts.get(counts, lambda: Amount(*counts))


class _Node:
    """Counts of a node. There may be many nodes."""

    __slots__ = (
        "chunk_shape", "chunks", "data", "data_type", "decode", "documents", "expected", "kind", "logical", "names",
        "other", "parent", "path", "problem", "shape", "shard_shape", "transformed",
    )  # fmt: skip

    def __init__(self, path: str, kind: Literal["array", "group", "unreadable"], parent: _Node | None) -> None:
        self.path, self.kind, self.parent = path, kind, parent
        self.chunks = self.documents = self.other = (0, 0)
        self.data = ""
        """For an array: the prefix of the keys of its chunks, without the slash at the end."""
        self.decode: _Decode | None = None
        self.names = _OF_ANY
        self.expected: int | None = 0 if kind == "group" else None
        self.logical: int | None = 0 if kind == "group" else None
        self.data_type: str | None = None
        self.shape: tuple[int, ...] | None = None
        self.chunk_shape: tuple[int, ...] | None = None
        self.shard_shape: tuple[int, ...] | None = None
        self.problem: str | None = None
        self.transformed = False

    def take(self, folder: str, key: str, size: int, place: str) -> None:
        """Count a key below the node, and below a place of its keys."""
        start = len(place) + 1 if place else 0
        if self.decode is not None and place == self.data and self.decode(key[start:]) is not None:
            self.chunks = (self.chunks[0] + 1, self.chunks[1] + size)
        elif len(folder) == start and key[len(folder) :] in self.names:
            self.documents = (self.documents[0] + 1, self.documents[1] + size)
        elif self.transformed:  # the transformer determines the keys of chunks
            self.chunks = (self.chunks[0], self.chunks[1] + size)
        else:
            self.other = (self.other[0] + 1, self.other[1] + size)

    def add_to_parent(self) -> None:
        """Add the counts of the node, with everything below it, to its group."""
        above = self.parent
        if above is None:
            return
        for name in ("chunks", "documents", "other"):
            mine, theirs = getattr(self, name), getattr(above, name)
            setattr(above, name, (mine[0] + theirs[0], mine[1] + theirs[1]))
        above.expected = (above.expected or 0) + (self.expected or 0)
        above.logical = (above.logical or 0) + (self.logical or 0)

    def usage(self, skip: int, *, is_listed: bool) -> NodeUsage:
        """Return the counts as a plain value."""
        return NodeUsage(
            path=self.path[skip:],
            node_type=self.kind,
            chunks=_amount(self.chunks),
            documents=_amount(self.documents),
            other=_amount(self.other),
            expected=self.expected,
            bytes_logical=self.logical,
            is_listed=is_listed,
            data_type=self.data_type,
            shape=self.shape,
            chunk_shape=self.chunk_shape,
            shard_shape=self.shard_shape,
            problem=self.problem,
        )


def run(store: Any, *, path: str | None, progress: Progress, storage_options: Any = None) -> Usage:
    """Return what a node and all nodes below take. See `omnizarr.du`."""
    if isinstance(store, Array | Group) and not path:
        node = store  # with the members that are known
    else:
        node = opening.open(store, mode="r", path=path, use_consolidated=False, storage_options=storage_options)
    if isinstance(node, Group) and reaching.source_of(node) == "nothing":
        node = reaching.with_members(opening.open(node.store, mode="r", path=node.path))
    where = node.store_path
    count = _Count(where)
    count.walk(node)
    unlisted = ""
    try:
        with Tracker(progress, "counting", unit="key") as shown:
            count.list(shown)
    except NOT_LISTED as error:
        if naming.can_list(where):
            raise
        unlisted = f"{error}; {reaching.source_in_words(node)}" if isinstance(node, Group) else str(error)
    return count.usage(unlisted)


class _Count:
    """A hierarchy that is being counted."""

    def __init__(self, where: StorePath) -> None:
        self.where = where
        self._nodes: list[_Node] = []
        self._places: dict[str, _Node] = {}
        """Nodes by the prefixes of their keys, without the slash at the end."""
        self._documents: dict[str, _Node] = {}
        """Nodes by key, if documents are not at the path of their node."""
        self._decoders: dict[tuple[object, ...], _Decode] = {}
        self._above = Above(())
        self._last: tuple[str, _Node, str] | None = None

    # -- nodes -------------------------------------------------------------------

    def walk(self, top: Array | Group) -> None:
        """Find the nodes, each group before its members."""
        root = self._enter(top, None)
        above = [root]
        for depth, node in describe.walk(top) if isinstance(top, Group) else ():
            del above[depth + 1 :]
            if node.path == above[-1].path:  # a group whose members cannot be listed
                above[-1].problem = str(node.error)
                continue
            above.append(self._enter(node, above[-1]))

    def _enter(self, node: Array | Group | UnreadableNode, parent: _Node | None) -> _Node:
        kind: Literal["array", "group", "unreadable"]
        kind = "array" if isinstance(node, Array) else "group" if isinstance(node, Group) else "unreadable"
        entry = _Node(node.path, kind, parent)
        where = node.store_path
        if isinstance(node, UnreadableNode):
            entry.problem = describe.describe(node).to_json()["problem"]
        elif isinstance(node, Array):
            self._understand(entry, where, node._metadata)  # noqa: SLF001 - `metadata` would copy all attributes
        if not isinstance(node, UnreadableNode) and node._metadata.dialect == "v1":  # noqa: SLF001
            entry.names = _OF_ANY | _OF_V1
        self._nodes.append(entry)
        self._settle(entry, where)
        return entry

    def _settle(self, entry: _Node, where: StorePath) -> None:
        """Remember where the keys of a node are."""
        home = where.home
        if entry.kind == "array":
            self._places[entry.data] = entry
        if home is None:
            self._places[entry.path] = entry
            return
        for begin in (home.chunk_prefix(where.path), home.directory(where.path)):
            self._places[begin.removesuffix("/")] = entry
        self._documents.update(dict.fromkeys(home.documents(where.path).values(), entry))
        if where.path == home.root:
            self._places[entry.path] = entry
            self._documents[home.entry_key] = entry

    def _understand(self, entry: _Node, where: StorePath, metadata: ArrayMetadata) -> None:
        facts, begin = info.of_array(where, metadata), chunk_prefix(where, metadata).removesuffix("/")
        entry.data = entry.path if begin == entry.path else begin  # there may be many
        entry.expected, entry.logical = facts.expected, facts.bytes_logical
        entry.data_type, entry.shape = intern(facts.data_type), facts.shape
        entry.chunk_shape, entry.shard_shape = facts.chunks, facts.shards
        try:
            if metadata.storage_transformers:
                entry.transformed = True
                entry.chunks = (holdings.count(where, metadata)[0] or 0, 0)
            else:
                entry.decode = self._decoder(bindings.with_keys_in_use(where, metadata))
        except OmnizarrError as error:
            entry.problem = str(error)

    def _decoder(self, metadata: ArrayMetadata) -> _Decode:
        """Return the function that returns the coordinates of chunks. Many arrays share one."""
        encoding = metadata.chunk_key_encoding
        mark = encoding.name, str(encoding.configuration), str(metadata.chunk_grid), metadata.shape
        found = self._decoders.get(mark)
        if found is None:
            found = self._decoders[mark] = holdings.coords_decoder(metadata)
        return found

    # -- keys --------------------------------------------------------------------

    def list(self, shown: Tracker) -> None:
        """Assign each key to a node."""
        self._above = Above(self._places)
        for key, size in shown.counted(self._sizes()):
            folder = key[: key.rfind("/") + 1]
            node = self._documents.get(key)
            if node is not None:
                node.documents = (node.documents[0] + 1, node.documents[1] + size)
            else:
                node, place = self._owner(folder)
                node.take(folder, key, size, place)

    def _sizes(self) -> Iterator[tuple[str, int]]:
        home, store = self.where.home, self.where.store
        if home is None or self.where.path == home.root:
            yield from holdings.sizes(replace(self.where, home=None))
        else:
            yield from holdings.sizes(self.where)
        local, skip = _directory(store)
        tops = [self.where.prefix]
        if home is not None and self.where.path != home.root:
            tops = [home.directory(self.where.path), home.chunk_prefix(self.where.path)]
        if local is not None:
            for key, size in chain.from_iterable(local.list_unnamed(skip + top) for top in tops):
                yield key[len(skip) :], size

    def _owner(self, folder: str) -> tuple[_Node, str]:
        """Return the nearest node above a folder, and the place of its keys there."""
        last = self._last
        if last is not None and last[0] == folder:
            return last[1], last[2]
        place = next(self._above.of(folder), "")
        node = self._places.get(place, self._nodes[0])
        self._last = folder, node, place
        return node, place

    # -- sums --------------------------------------------------------------------

    def usage(self, unlisted: str) -> Usage:
        """Return the counts of nodes, members before their group."""
        skip = len(self.where.prefix)
        ordered = list(_members_first(self._nodes))
        self._nodes, self._places, self._above, self._last = [], {}, Above(()), None
        for node in ordered:
            node.add_to_parent()
        arrays, groups = (sum(node.kind == kind for node in ordered) for kind in ("array", "group"))
        ordered.reverse()
        nodes = []
        while ordered:  # each is released when its result is made
            nodes.append(ordered.pop().usage(skip, is_listed=not unlisted))
        return Usage(nodes=tuple(nodes), arrays=arrays, groups=groups, unlisted=unlisted)


def _members_first(nodes: Iterable[_Node]) -> Iterator[_Node]:
    """Yield nodes so that each comes after its members."""
    way: list[_Node] = []
    for node in nodes:
        while way and way[-1] is not node.parent:
            yield way.pop()
        way.append(node)
    yield from reversed(way)


def _directory(store: Store) -> tuple[LocalStore | None, str]:
    """Return the directory of a store, if there is one, and the path in it where the keys begin."""
    skip = ""
    while isinstance(store, WrapperStore):
        if isinstance(store, PrefixStore):
            skip = f"{store.prefix}{skip}"
        store = store.store
    return (store if isinstance(store, LocalStore) else None), skip
