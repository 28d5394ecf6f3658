"""Searching a hierarchy for nodes by their paths."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final

from omnizarr.nodes.group import Group
from omnizarr.nodes.members import Member, UnreadableNode
from omnizarr.support.locks import RLock
from omnizarr.tools import describe
from omnizarr.web.stopping import Stop, StoppedError

_MOST_SEARCHED: Final = 200_000
_FRESH: Final = 60.0
"""Seconds for which what was walked through is remembered."""
_PATIENCE: Final = 10.0
"""Seconds of one search."""


class Index:
    """All nodes of a hierarchy in a line each, walked through as far as searches needed it."""

    def __init__(self, group: Group, entry: Callable[[Member], dict[str, Any]]) -> None:
        self._entry = entry
        self._begun = time.monotonic()
        self._entries: list[tuple[str, dict[str, Any]]] = []
        self._walk = describe.walk(group)
        self._is_complete = False
        self._guard = RLock()

    @property
    def is_old(self) -> bool:
        """Whether the hierarchy may have changed since."""
        return time.monotonic() - self._begun > _FRESH

    def find(self, text: str, limit: int, stop: Stop) -> tuple[list[dict[str, Any]], bool]:
        """Return nodes whose path has a text, and whether there may be more."""
        found: list[dict[str, Any]] = []
        with self._guard:
            end = time.monotonic() + _PATIENCE
            for path, entry in self._all(end):
                if stop():
                    raise StoppedError
                if text in path:
                    if len(found) == limit:
                        return found, True
                    found.append(entry)
            return found, not self._is_complete

    def _all(self, end: float) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from self._entries
        while not self._is_complete and len(self._entries) < _MOST_SEARCHED and time.monotonic() < end:
            for _, node in islice(self._walk, 1):
                entry = self._entry(node)
                if isinstance(node, UnreadableNode) and self._entries and self._entries[-1][1]["path"] == entry["path"]:
                    continue  # a group whose members cannot be listed
                self._entries.append((entry["path"].casefold(), entry))
                yield self._entries[-1]
                break
            else:
                self._is_complete = True
