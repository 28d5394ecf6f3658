"""Creating many nodes at a time: one after the other in a store nearby, and side by side in a remote one.

There, one listing shows where nothing is. Documents of nodes that go there are written without further questions, and
never replace those that another writer has made meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from itertools import groupby, islice
from operator import itemgetter
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from omnizarr.formats.contract import Dialect
from omnizarr.formats.paths import paths_above
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.nodes import detection
from omnizarr.nodes.hierarchy import Above
from omnizarr.nodes.location import StorePath, normalize
from omnizarr.nodes.naming import lists_members
from omnizarr.nodes.renewing import together
from omnizarr.stores import pool
from omnizarr.stores.base import NOT_LISTED

T = TypeVar("T")
Formats: TypeAlias = Mapping[str, Sequence[Dialect]]
"""In which formats groups may keep copies of the nodes below, by path."""

_MOST_LISTED: Final = 100_000
"""Keys that are listed to see where nothing is; in a larger hierarchy, each place is looked at."""


class New(NamedTuple):
    """A node to be created.

    Attributes
    ----------
    path : str
        Below the place of all of them.
    metadata : ArrayMetadata or GroupMetadata
    is_given : bool
        False for a group that only others need.
    """

    path: str
    metadata: ArrayMetadata | GroupMetadata
    is_given: bool


def complete(nodes: Mapping[str, ArrayMetadata | GroupMetadata]) -> list[New]:
    """Return new nodes and the groups above them, sorted by path."""
    given = {normalize(path): metadata for path, metadata in nodes.items()}
    implied = {
        path[:end]: GroupMetadata(dialect=metadata.dialect)
        for path, metadata in given.items()
        for end in (0, *(place for place, letter in enumerate(path) if letter == "/"))
        if path
    }
    found = sorted({**implied, **given}.items(), key=itemgetter(0))
    return [New(path, metadata, path in given) for path, metadata in found]


def created(
    where: StorePath,
    nodes: Mapping[str, ArrayMetadata | GroupMetadata],
    create: Callable[[StorePath, New, Formats | None], T],
    lists: Callable[[T], bool],
) -> Iterator[tuple[str, T]]:
    """Create nodes and the missing groups above them, and yield path and node of each.

    Parameters
    ----------
    where : StorePath
        What their paths are relative to.
    nodes : mapping
    create : callable
        Stores a node. It is given formats if there is nothing at the place, and only groups are above
        (see `hierarchy.create_in_new`). Several threads may call it.
    lists : callable
        Returns whether a node is a group that lists its members, which must learn of new ones.
    """
    wanted = complete(nodes)
    if where.store.features.concurrency > 1 and where.home is None and not where.store.documents_first:
        made = _Creation(where, create, lists).run(wanted)
        yield from ((new.path, made[new.path]) for new in wanted if new.path in made)
        return
    for new in wanted:
        if new.is_given or detection.detect(where / new.path) is None:
            yield new.path, create(where / new.path, new, None)


class _Creation(Generic[T]):
    """The creation of many nodes in a remote store."""

    def __init__(
        self, where: StorePath, create: Callable[[StorePath, New, Formats | None], T], lists: Callable[[T], bool]
    ) -> None:
        self._where, self._create, self._lists = where, create, lists
        self._taken: Container[str] | None = None
        self._groups: set[str] = set()
        """Paths of groups without lists that are there, and that were looked at or made here."""
        self._formats: dict[str, Sequence[Dialect]] = {}

    def run(self, wanted: Sequence[New]) -> dict[str, T]:
        """Create nodes, the groups of each depth before all that is below them, and return those that were created."""
        store = self._where.store
        self._look_around()
        made: dict[str, T] = {}
        ranked = sorted(wanted, key=_rank)
        with together(store):
            context = copy_context()
            for _, several in groupby(ranked, key=_rank):
                rest = list(several)
                for position, node in pool.gather(
                    lambda new: context.copy().run(self._one, new), rest, store.features.concurrency
                ):
                    if node is not None:
                        made[rest[position].path] = node
        return made

    def _look_around(self) -> None:
        where = self._where
        above = Above()
        above.look_at([*where.ancestors(), where])
        self._formats.update(above.formats())
        if where.store.features.listing != "complete" or any(map(lists_members, above.groups())):
            return
        with suppress(*NOT_LISTED):
            keys = list(islice(where.store.list_prefix(where.prefix), _MOST_LISTED + 1))
            if len(keys) <= _MOST_LISTED:
                skip = len(where.prefix)
                self._taken = {key[skip:end] for key in keys for end in range(skip, len(key)) if key[end] == "/"}

    def _one(self, new: New) -> T | None:
        """Create a node; return None for an existing group that only others need."""
        node: T | None
        where = self._where / new.path
        is_free = self._taken is not None and new.path and new.path not in self._taken
        if is_free and self._groups.issuperset(paths_above(new.path)):
            formats = {f"{self._where.prefix}{path}".rstrip("/"): () for path in paths_above(new.path) if path}
            node = self._create(where, new, {**self._formats, **formats})
            if isinstance(new.metadata, GroupMetadata):
                self._groups.add(new.path)
            return node
        found = None if new.is_given else detection.detect(where)
        if found is not None:
            if isinstance(found.metadata, GroupMetadata) and not lists_members(found.metadata):
                self._groups.add(new.path)
            return None
        node = self._create(where, new, None)
        if isinstance(new.metadata, GroupMetadata) and not self._lists(node):
            self._groups.add(new.path)
        return node


def _rank(new: New) -> tuple[bool, int]:
    is_group = isinstance(new.metadata, GroupMetadata)
    return not is_group, new.path.count("/") + bool(new.path) if is_group else 0
