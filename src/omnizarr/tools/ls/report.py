"""What `omnizarr.ls` returns and the command prints: an entry for each node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any, Final, Literal

from omnizarr.api import opening
from omnizarr.nodes import info
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.members import UnreadableNode
from omnizarr.support.text import visible
from omnizarr.tools import reaching
from omnizarr.tools.describe import walk

_WIDTH: Final = 24
"""h5ls's column for names."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A node in a listing.

    Attributes
    ----------
    name : str
        The last part of the path, or the full path with a leading slash.
    path : str
        The full path in the store, with a leading slash.
    kind : {"array", "group", "unreadable"}
    shape : tuple of int or None
        None for groups and unreadable nodes.
    data_type : str or None
        The data type in one word.
    problem : str or None
        Why a node is unreadable.
    """

    name: str
    path: str
    kind: Literal["array", "group", "unreadable"]
    shape: tuple[int, ...] | None = None
    data_type: str | None = None
    problem: str | None = None

    @classmethod
    def of(cls, node: Array | Group | UnreadableNode, name: str) -> Entry:
        """Return the entry for a node."""
        if isinstance(node, Array):
            kind = intern(info.type_name(node._metadata))  # noqa: SLF001 - `metadata` would copy all attributes
            return cls(name, node.name, "array", node.shape, kind)
        if isinstance(node, UnreadableNode):
            return cls(name, node.name, "unreadable", problem=str(node.error))
        return cls(name, node.name, "group")

    def __str__(self) -> str:
        what = self.kind.capitalize()
        if self.shape is not None:
            what = f"Array {{{', '.join(map(str, self.shape)) or 'SCALAR'}}} {visible(str(self.data_type))}"
        if self.problem is not None:
            what = f"Unreadable: {visible(self.problem)}"
        return f"{visible(self.name):<{_WIDTH}} {what}"

    def to_dict(self) -> dict[str, Any]:
        """Return the entry of ``omnizarr ls --json``."""
        entry: dict[str, Any] = {"path": self.path, "node_type": self.kind}
        if self.shape is not None:
            entry |= {"shape": list(self.shape), "data_type": self.data_type}
        return entry if self.problem is None else {**entry, "problem": self.problem}


class Listing(list[Entry]):
    """Entries. ``print`` shows one line for each."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    __repr__ = __str__


def run(store: Any, path: str | None, storage_options: Mapping[str, Any] | None, *, recursive: bool) -> Listing:
    """Return the entries; see `omnizarr.ls`."""
    node = opening.open(store, "r", path=path, storage_options=storage_options)
    if isinstance(node, Array):
        return Listing([Entry.of(node, node.basename or node.store.place.rpartition("/")[2] or "/")])
    reaching.check_members(node)
    skip = len(node.store_path.prefix)
    found = Listing([Entry.of(node, "/")] if recursive else [])
    for _, below in walk(node, None if recursive else 0):
        found.append(Entry.of(below, f"/{below.path[skip:]}" if recursive else below.basename))
    return found
