"""References of conventions in groups to the nodes below them, which are reported if such a node is removed.

Groups above a node are updated where no guessing is necessary: NCZarr's lists of members
(`omnizarr.nodes.nczarr_members`) and consolidated metadata (`omnizarr.nodes.renewing`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.formats import conventions
from omnizarr.formats.conventions import Nodes
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata
from omnizarr.nodes import consolidated, detection
from omnizarr.nodes.location import StorePath
from omnizarr.stores import pool
from omnizarr.support.memo import Memo

MOST_LOOKED_AT: Final = 1000
"""Largest number of nodes in a hierarchy whose conventions are checked."""


def around(where: StorePath, *, few: bool = False, array: ArrayMetadata | None = None) -> dict[str, Metadata]:
    """Return the nodes above a place, at it and below it by path; empty if there are too many.

    `few`: it is known that there are not, so that many groups can be looked into at a time. `array`: what is at the
    place, if that has been read, and is an array.
    """
    found: dict[str, Metadata] = {}
    above = list(where.ancestors())
    read = dict(pool.gather(_readable, above, where.store.features.concurrency))
    for position, place in enumerate(above):
        one = read[position]
        if one is not None:
            found[place.path] = one
    if array is not None:
        found[where.path] = array
        return found
    for place, each in consolidated.walk_from(where, where.store.features.concurrency if few else 1):
        if each is not None:
            found[place.path] = each
        if len(found) > MOST_LOOKED_AT:
            return {}
    return found


def _readable(where: StorePath) -> Metadata | None:
    try:
        return detection.find(where)
    except StoreError:
        raise
    except OmnizarrError:
        return None


def missed(where: StorePath, nodes: Mapping[str, Metadata]) -> tuple[str, ...]:
    """Describe references to a node in the groups above that will be wrong after its removal.

    `nodes` are those that `around` returned while it was there.
    """
    without = {path: one for path, one in nodes.items() if path != where.path and not path.startswith(where.prefix)}
    above = [place.path for place in where.ancestors() if place.path in without]
    after = _faults(above, Nodes(without))
    before = _faults(above, Nodes(nodes)) if after else []
    return tuple(text for text in after if text not in before)


def _faults(paths: list[str], nodes: Nodes) -> list[str]:
    if not all(map(_is_plain, nodes.values())):
        return _found_faults(paths, nodes)
    question = (conventions.known(), tuple(paths), *((path, one.dialect) for path, one in nodes.items()))
    return _of_plain.get(question, lambda: _found_faults(paths, nodes))


_of_plain: Final[Memo[list[str]]] = Memo(exact=True)
"""What conventions say of groups that have nothing of their own, by path: finding out takes longer than reading."""


def _is_plain(node: Metadata) -> bool:
    return isinstance(node, GroupMetadata) and not (
        node.attributes or node.unknown or node.consolidated is not None or node.implicit or node.notes
    )


def _found_faults(paths: list[str], nodes: Nodes) -> list[str]:
    return [
        f"/{path}: {fault.message}" + ("" if fault.found is None else f": found {fault.found!r}")
        for path in paths
        for fault in conventions.faults(path, nodes)
    ]
