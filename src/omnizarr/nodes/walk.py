"""One walk through a hierarchy for all that visit its nodes, wherever the names of nodes come from.

`walk` asks a function which nodes are directly below one: those of consolidated metadata, say. `listed` visits those
that a listing shows, and `by_name` those that documents name, where the store cannot list its keys. A node that cannot
be read is a value, its error; only errors of the store itself are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import TypeAlias, TypeVar

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
        groups of a level are looked into at the same time, before the first node is yielded.

    Examples
    --------
    >>> tree = {"": ["a", "d"], "a": ["b", "c"]}
    >>> list(walk("", tree.get))
    [(0, 'a'), (1, 'b'), (1, 'c'), (0, 'd')]
    """
    if concurrency > 1:
        below = _by_level(top, below, max_depth, concurrency)
    # Not recursive: a hierarchy may be deeper than Python's stack.
    stack = [iter(below(top) or ())]
    try:
        while stack:
            depth = len(stack) - 1
            for node in stack[-1]:
                yield depth, node
                inner = below(node) if max_depth is None or depth < max_depth else None
                if inner is not None:
                    stack.append(iter(inner))
                    break
            else:
                stack.pop()
    finally:
        stack.clear()  # their requests end, although the traceback of Ctrl-C may keep this frame


def _by_level(
    top: T, below: Callable[[T], Iterable[T] | None], max_depth: int | None, concurrency: int
) -> Callable[[T], list[T] | None]:
    """Return `below` with the answers about all groups, asked level by level, the groups of a level concurrently."""
    known: dict[int, list[T]] = {}
    level, depth = [top], 0
    while level and (max_depth is None or depth <= max_depth):
        asked = [(id(node), inner) for node in level if (inner := below(node)) is not None]
        answers = dict(pool.gather(list, (inner for _, inner in asked), concurrency))
        known.update((mark, answers[position]) for position, (mark, _) in enumerate(asked))
        level = [node for mark, _ in asked for node in known[mark]]
        depth += 1
    return lambda node: known.pop(id(node), None)


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
