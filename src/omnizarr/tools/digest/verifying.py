"""Comparing a hierarchy with digests that were written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from omnizarr.errors import OmnizarrError, SchedulerError, StoreError
from omnizarr.support.progress import Tick
from omnizarr.tools.digest.digester import TAG, chunks_in, of_hierarchy, of_node, values_of
from omnizarr.tools.streaming.chunks import Chunks
from omnizarr.tools.streaming.executors import Executor
from omnizarr.tools.streaming.nodes import Hierarchy
from omnizarr.tools.streaming.several import QUIET, worked_on
from omnizarr.tools.streaming.walking import Effort


class Mismatch(NamedTuple):
    """A node that differs from its digest.

    Attributes
    ----------
    code : {"digest-mismatch", "digest-missing", "digest-unlisted"}
    path : str
    message : str
    found, expected : str, optional
    """

    code: str
    path: str
    message: str
    found: str | None = None
    expected: str | None = None


def verify(hierarchy: Hierarchy, expected: Mapping[str, str], effort: Effort, workers: Executor) -> Iterator[Mismatch]:
    """Yield the nodes that differ from their digests; a group only if it differs itself.

    Where only the topmost node is listed, all below it is covered by its digest.
    """
    algorithms = {digest.split(":")[1] for digest in expected.values()}
    if len(algorithms) != 1:
        raise ValueError(f"digests of several algorithms: {', '.join(sorted(algorithms))}; expected one")
    (algorithm,) = algorithms
    if expected.keys() == {""}:
        yield from _of_all(hierarchy, expected[""], algorithm, effort, workers)
        return
    for path in expected:
        if path not in hierarchy.nodes:
            yield Mismatch("digest-missing", path, "there is a digest of this node, but no node")
    yield from _of_each(hierarchy, expected, algorithm, effort, workers)


def _of_each(
    hierarchy: Hierarchy, expected: Mapping[str, str], algorithm: str, effort: Effort, workers: Executor
) -> Iterator[Mismatch]:
    hierarchy.nodes.look_for_chunks()
    members: dict[str, dict[str, str]] = {}
    for path, digest in expected.items():
        above, _, name = path.rpartition("/")
        if path:
            members.setdefault(above, {})[name] = digest.rpartition(":")[2]

    def digest_of(path: str, effort: Effort, tick: Tick) -> str | OmnizarrError:
        node = hierarchy.nodes[path]
        try:
            values = values_of(node, algorithm, effort, workers, tick) if path in expected else b""
            return of_node(node, members.get(path, {}), algorithm, values)
        except (StoreError, SchedulerError):
            raise
        except OmnizarrError as error:
            return error

    def arrays(path: str) -> list[Chunks]:
        return chunks_in(hierarchy.nodes[path]) if path in expected else []

    store = hierarchy.top.where.store
    for path, found in worked_on(hierarchy.nodes, digest_of, arrays, effort, workers, store, lambda _: QUIET, QUIET):
        if path not in expected:
            yield Mismatch("digest-unlisted", path, "there is no digest of this node")
        elif isinstance(found, OmnizarrError):
            yield Mismatch("digest-mismatch", path, f"no digest can be made: {found}", expected=expected[path])
        elif expected[path] != f"{TAG}:{algorithm}:{found}":
            yield _mismatch(path, f"{TAG}:{algorithm}:{found}", expected[path])


def _of_all(
    hierarchy: Hierarchy, expected: str, algorithm: str, effort: Effort, workers: Executor
) -> Iterator[Mismatch]:
    try:
        hierarchy.nodes.look_for_chunks()
        found = of_hierarchy(hierarchy, algorithm, effort, workers, None).digest
    except (StoreError, SchedulerError):
        raise
    except OmnizarrError as error:
        yield Mismatch("digest-mismatch", "", f"no digest can be made: {error}", expected=expected)
        return
    if found != expected:
        yield _mismatch("", found, expected)


def _mismatch(path: str, found: str, expected: str) -> Mismatch:
    return Mismatch("digest-mismatch", path, "values or meaning are not those of the digest", found, expected)
