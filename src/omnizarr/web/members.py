"""The nodes directly below a group, read in pages: each is read once, when a page with it is asked for."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, TypeAlias

from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.members import UnreadableNode
from omnizarr.support.locks import RLock

Member: TypeAlias = Array | Group | UnreadableNode

_FRESH: Final = 10.0
"""Seconds for which the members of a group are remembered."""
_MOST_GROUPS: Final = 16


class Members:
    """The members of the groups that are looked at, for a few seconds.

    The tree and the table of a group ask for the same pages, at the same time.

    Examples
    --------
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> root["a"], root["b"] = [1], [2]
    >>> listing = Members().of(root)
    >>> listing.names, [node.path for _, node in listing.page(1, 1)]
    (['a', 'b'], ['b'])
    """

    def __init__(self) -> None:
        self._guard = RLock()
        self._known: OrderedDict[str, tuple[float, Listing]] = OrderedDict()

    def of(self, group: Group) -> Listing:
        """Return the members of a group.

        Raises
        ------
        StoreError
            If they cannot be listed.
        """
        now = time.monotonic()
        with self._guard:
            known = self._known.get(group.path)
        if known is not None and now - known[0] < _FRESH:
            return known[1]
        found = Listing(group)
        with self._guard:
            self._known[group.path] = now, found
            self._known.move_to_end(group.path)
            if len(self._known) > _MOST_GROUPS:
                self._known.popitem(last=False)
        return found


class Listing:
    """The members of one group.

    Parameters
    ----------
    group : Group
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self.names = group._names()  # noqa: SLF001 - without looking at the nodes
        """The sorted names of possible nodes."""
        self._nodes: dict[str, Member | None] = {}
        self._guard = RLock()

    def page(self, offset: int, limit: int) -> Iterator[tuple[str, Member | None]]:
        """Yield name and node of up to `limit` members from an offset on; None for a name that is no node."""
        names = self.names[offset : offset + limit]
        with self._guard:
            unread = [name for name in names if name not in self._nodes]
            if unread:
                found: dict[str, Member] = dict(self._group._members(unread))  # noqa: SLF001 - these alone
                self._nodes |= {name: found.get(name) for name in unread}
            return iter([(name, self._nodes[name]) for name in names])
