"""All nodes below a group from one listing, for remote stores, where each further question costs a request."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnizarr.formats import DIALECTS
from omnizarr.formats.contract import Dialect
from omnizarr.formats.paths import Above
from omnizarr.model import GroupMetadata
from omnizarr.nodes import holdings, naming
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.info import Consolidated
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.support.progress import Tick, silent


@dataclass(slots=True)
class _Count:
    """Counts below an array."""

    is_chunk: Callable[[str], bool] | None
    stored: int = 0
    nbytes: int = 0


@dataclass(slots=True)
class Survey:
    """What is stored below a group.

    Attributes
    ----------
    documents : frozenset of str or None
        Keys of all documents; None if the store cannot list.
    nodes : sequence
        All nodes below the group; a group comes before its members.
    """

    documents: frozenset[str] | None = None
    nodes: Sequence[Any] = ()
    _counts: dict[str, _Count] = field(default_factory=dict)

    def count(self, array: Array) -> tuple[int | None, int | None]:
        """Return the number of stored chunks (shards) of an array, and the bytes under its path; None if unknown."""
        found = self._counts.get(array.path)
        if found is None:
            return None, None
        return (None if found.is_chunk is None else found.stored), found.nbytes

    def consolidated(self, group: Group, *, is_used: bool) -> tuple[Consolidated, tuple[str, ...]] | None:
        """Return the state of a group's consolidated metadata, and the paths of nodes that only one of the two has.

        None if the metadata must be read to tell.
        """
        where, metadata = group.store_path, group._metadata  # noqa: SLF001 - the model, as it is shared
        dialect = dialect_of(where, metadata)
        copies = group._snapshot  # noqa: SLF001 - as all nodes below share it
        if is_used and copies is not None and copies.root.path == where.path:
            copied = copies.nodes.keys() - {""}
            stale = () if self.documents is None else tuple(sorted(self._nodes(where, dialect) ^ copied))
            return ("stale" if stale else "not compared"), stale
        name = dialect.consolidated.document
        is_there = metadata.consolidated is not None if name is None else self._has(where, dialect, name)
        if not is_there:
            return "none", ()
        return None if copies is None else ("not compared", ())

    def _has(self, where: StorePath, dialect: Dialect, name: str) -> bool:
        return dialect.keyspace.documents(where.path).get(name) in (self.documents or ())

    def _nodes(self, where: StorePath, dialect: Dialect) -> set[str]:
        """Return the paths, relative to a group, of nodes of a dialect."""
        makers = {f"/{name}" for name in (dialect.array_document, dialect.group_document)}
        found = (f"/{key[len(where.prefix) :]}" for key in self.documents or () if key.startswith(where.prefix))
        paths = {key.rpartition("/")[0][1:] for key in found if f"/{key.rpartition('/')[2]}" in makers}
        return paths - {""}


def of(group: Group, nodes: Sequence[Any], tick: Tick = silent) -> Survey:
    """Return what one listing shows about nodes below a group; without a listing, everything is unknown.

    Raises StoreError if the store fails.
    """
    where = group.store_path
    if not where.store.supports_listing:
        return Survey(nodes=nodes)
    arrays = (node for node in nodes if isinstance(node, Array))
    counts = {node.path: _Count(holdings.counter(node.store_path, node._metadata)) for node in arrays}  # noqa: SLF001 - as above
    names = {name for dialect in DIALECTS if dialect.entry_point is None for name in dialect.keyspace.documents("")}
    documents, above = set(), Above(counts)
    for key, size in holdings.sizes(where):
        tick(1)
        if key.rpartition("/")[2] in names:
            documents.add(key)
        for path in itertools.islice(above.of(key), 1):
            found = counts[path]
            found.nbytes += size
            found.stored += found.is_chunk is not None and found.is_chunk(key)
    return Survey(frozenset(documents), nodes, counts)


def is_worthwhile(group: Group) -> bool:
    """Return whether one listing costs less than a request for each node: in remote stores, or ones that cannot list.

    In hierarchies of the drafts, chunks are not below the documents of their array.
    """
    where = group.store_path
    return naming.is_far(where.store) and where.home is None and isinstance(group._metadata, GroupMetadata)  # noqa: SLF001
