"""One walk through a hierarchy for all that visit its nodes, wherever the names of nodes come from.

`walk` asks a function which nodes are directly below one: those of consolidated metadata, say. `listed` visits those
that a listing shows, and `by_name` those that documents name, where the store cannot list its keys. A node that cannot
be read is a value, its error; only errors of the store itself are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Final, Generic, TypeAlias, TypeVar

from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.formats import dialect_named
from omnizarr.model import GroupMetadata, Metadata
from omnizarr.nodes import detection
from omnizarr.nodes.location import StorePath
from omnizarr.stores import pool
from omnizarr.stores.base import is_key

T = TypeVar("T")
Place: TypeAlias = tuple[StorePath, Metadata | OmnizarrError]
"""A node: what its documents say, or why they cannot be read."""

_AHEAD: Final = 10_000
"""Nodes that wait for a walk before no more groups are looked into: some 0.6 KB each."""
_FIRST: Final = 16
"""Groups that are looked into at the same time, however many nodes they may have."""


def walk(
    top: T, below: Callable[[T], Iterable[T] | None], *, max_depth: int | None = None, concurrency: int = 1
) -> Iterator[tuple[int, T]]:
    """Yield depth (0: directly below the top) and node of each node below. A group comes before its members.

    Parameters
    ----------
    top : object
    below : callable
        Returns the nodes directly below one, at best as they are asked for; None for a node that has none.
    max_depth : int, optional
        Depth of the deepest nodes to yield.
    concurrency : int
        1: a group is looked into when the walk gets there, and only the current path is in memory. More: so many
        groups of a level are looked into at the same time, before the first node is yielded; of a hierarchy with more
        than ten thousand nodes, some at a time.

    Examples
    --------
    >>> tree = {"": ["a", "d"], "a": ["b", "c"]}
    >>> list(walk("", tree.get))
    [(0, 'a'), (1, 'b'), (1, 'c'), (0, 'd')]
    """
    inner: Iterable[T] | None
    ahead = _Ahead(top, below, max_depth, concurrency) if concurrency > 1 else None
    # Not recursive: a hierarchy may be deeper than Python's stack.
    stack = [iter((below(top) if ahead is None else ahead(top, 0)) or ())]
    try:
        while stack:
            depth = len(stack) - 1
            for node in stack[-1]:
                yield depth, node
                if max_depth is not None and depth >= max_depth:
                    inner = None
                else:
                    inner = below(node) if ahead is None else ahead(node, depth + 1)
                if inner is not None:
                    stack.append(iter(inner))
                    break
            else:
                stack.pop()
    finally:
        stack.clear()  # their requests end, although the traceback of Ctrl-C may keep this frame


class _Ahead(Generic[T]):
    """Which nodes are directly below others, asked level by level, the groups of a level concurrently.

    Of large hierarchies, only some levels or groups are asked before the walk gets there, so that few nodes wait.

    Parameters
    ----------
    top : object
    below : callable
        Is asked, once about each node.
    max_depth : int or None
    concurrency : int
    """

    def __init__(
        self, top: T, below: Callable[[T], Iterable[T] | None], max_depth: int | None, concurrency: int
    ) -> None:
        self._below, self._max_depth, self._concurrency = below, max_depth, concurrency
        self._known: dict[int, list[T]] = {}
        """What is below groups that the walk has not reached, by the identity of the group."""
        self._held = 0
        """How many nodes that are."""
        self._later: list[dict[int, Iterable[T]]] = [{}]
        """Groups of each level that are not asked yet, in their order."""
        self._seen: list[list[int]] = [[0, 0]]
        """Of each level, how many groups were asked, and how many nodes they have."""
        self._note([top], 0)

    def __call__(self, node: T, level: int) -> Iterable[T] | None:
        """Return what is below a node, to be used before the next call for another one; None if it is no group."""
        mark = id(node)
        if mark in self._known:
            found = self._known.pop(mark)
            self._held -= len(found)
            return found
        if level >= len(self._later) or mark not in self._later[level]:
            return None
        if len(self._later[level]) == 1:
            return self._in_parts(self._later[level].pop(mark), level)
        self._ask(level)
        self._look_ahead(level)
        return self(node, level)

    def _in_parts(self, members: Iterable[T], level: int) -> Iterator[T]:
        """Yield the members of a group, which may be many: what is below some of them is asked before the others."""
        rest = iter(members)
        while part := list(islice(rest, _AHEAD)):
            self._note(part, level + 1)
            self._look_ahead(level + 1)
            yield from part

    def _look_ahead(self, level: int) -> None:
        """Ask groups of this level and those below, as long as not many nodes wait."""
        while level < len(self._later) and self._held < _AHEAD:
            if self._later[level]:
                self._ask(level)
            else:
                level += 1

    def _ask(self, level: int) -> None:
        """Ask the first groups of a level that are not asked yet: so many as likely have not too many nodes."""
        asked, found = self._seen[level]
        count = _AHEAD * asked // max(found, 1) if asked else 0
        later = self._later[level]
        marks = list(islice(later, max(count, _FIRST)))
        answers = dict(pool.gather(list, map(later.pop, marks), self._concurrency))
        for position, mark in enumerate(marks):
            nodes = self._known[mark] = answers[position]
            self._held += len(nodes)
            self._seen[level][0] += 1
            self._seen[level][1] += len(nodes)
            self._note(nodes, level + 1)

    def _note(self, nodes: Iterable[T], level: int) -> None:
        """Note which of some nodes are groups, to be asked later."""
        if self._max_depth is not None and level > self._max_depth:
            return
        if level == len(self._later):
            self._later.append({})
            self._seen.append([0, 0])
        later = self._later[level]
        for node in nodes:
            members = self._below(node)
            if members is not None:
                later[id(node)] = members


def listed(top: StorePath, prefer: str = "", *, concurrency: int = 1) -> Iterator[Place]:
    """Yield each node below a group that a listing shows, parents first. `prefer` is the dialect to look for first."""
    place: Place = top, GroupMetadata(dialect=prefer)
    return map(itemgetter(1), walk(place, partial(_listed_below, prefer), concurrency=concurrency))


def _listed_below(prefer: str, node: Place) -> Iterator[Place] | None:
    return _directly_below(node[0], prefer) if isinstance(node[1], GroupMetadata) else None


def _directly_below(where: StorePath, prefer: str) -> Iterator[Place]:
    for name, found in detection.load_children(where, detection.children(where), prefer):
        if isinstance(found, OmnizarrError):
            yield where.at(f"{where.prefix}{name}"), found
        else:
            yield found.where, found.metadata


def by_name(
    top: StorePath,
    dialect: str,
    named: Iterable[str],
    names: Callable[[StorePath, GroupMetadata], Iterable[str] | None],
) -> Iterator[Place]:
    """Yield each node below a group that documents name, level by level.

    The requests of a level are concurrent. Names without a node are skipped.

    Parameters
    ----------
    top : StorePath
    dialect : str
        The format of all of them.
    named : iterable of str
        The paths, relative to the group, of the nodes that its own documents name.
    names : callable
        Returns the same of each group below; None for none.
    """
    dialects = [dialect_named(dialect)]

    def places(where: StorePath, named: Iterable[str]) -> list[StorePath]:
        return [where.at(f"{where.prefix}{name}") for name in named if is_key(name)]

    def look(where: StorePath) -> tuple[Metadata | OmnizarrError | None, list[StorePath]]:
        try:
            found = detection.here(where, dialects)
        except StoreError:
            raise
        except OmnizarrError as error:
            return error, []
        if found is None:
            return None, []
        metadata = found.metadata
        return metadata, places(where, names(where, metadata) or ()) if isinstance(metadata, GroupMetadata) else []

    level, seen = places(top, named), set[str]()
    while level:
        level = list({where.path: where for where in level if where.path not in seen}.values())
        seen.update(where.path for where in level)
        answers = dict(pool.gather(look, level, top.store.features.concurrency))
        yield from (
            (where, answer) for position, where in enumerate(level) if (answer := answers[position][0]) is not None
        )
        level = [where for position in range(len(level)) for where in answers[position][1]]
