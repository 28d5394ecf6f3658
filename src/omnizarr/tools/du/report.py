"""The size of nodes in their store and in memory, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from omnizarr.errors import Wording
from omnizarr.nodes import wording

SORTS: Final = ("name", "stored", "logical", "ratio")
Sort: TypeAlias = Literal["name", "stored", "logical", "ratio"]


class Amount(NamedTuple):
    """Several values of a store, each a file or an object.

    Attributes
    ----------
    files : int
    nbytes : int
        The sum of their sizes.
    """

    files: int = 0
    nbytes: int = 0


_NOTHING: Final = Amount()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUsage:
    """The size of a node; for a group, including everything below it.

    Attributes
    ----------
    path : str
        Path relative to the measured node, which has the path "", without a leading slash.
    node_type : {"array", "group", "unreadable"}
    chunks : Amount
        Stored chunks (with shards: shards).
    documents : Amount
        Metadata documents, consolidated ones included.
    other : Amount
        Files that belong to no node: temporary files, chunks outside the grid or without an array, files of other
        programs. `omnizarr.check` lists them by name.
    expected : int or None
        Number of possible chunks (shards); None if unknown.
    bytes_logical : int or None
        Bytes of all elements in memory; None if they depend on the values. For a group: of the arrays below for
        which the number is known.
    is_listed : bool
        Whether the store could list its keys; if not, what is stored is unknown.
    data_type, shape, chunk_shape, shard_shape
        Facts about an array, as in `info`.
    problem : str or None
        Why a node, or the members of a group, cannot be read.
    """

    path: str
    node_type: Literal["array", "group", "unreadable"]
    chunks: Amount = _NOTHING
    documents: Amount = _NOTHING
    other: Amount = _NOTHING
    expected: int | None = None
    bytes_logical: int | None = None
    is_listed: bool = True
    data_type: str | None = None
    shape: tuple[int, ...] | None = None
    chunk_shape: tuple[int, ...] | None = None
    shard_shape: tuple[int, ...] | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def depth(self) -> int:
        """Number of levels below the measured node."""
        return self.path.count("/") + 1 if self.path else 0

    @property
    def bytes_stored(self) -> int | None:
        """Bytes in the store: chunks, documents and other files; None if the store cannot be listed."""
        return self.chunks.nbytes + self.documents.nbytes + self.other.nbytes if self.is_listed else None

    @property
    def stored(self) -> int | None:
        """Number of stored chunks (shards); None if the store cannot be listed."""
        return self.chunks.files if self.is_listed else None

    @property
    def ratio(self) -> float | None:
        """Logical bytes per stored byte; None if one of them is unknown, or 0."""
        if not self.bytes_stored or not self.bytes_logical:
            return None
        return self.bytes_logical / self.bytes_stored

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        of_array: dict[str, Any] = {}
        if self.node_type == "array":
            of_array = {
                "data_type": self.data_type,
                "shape": _listed(self.shape),
                "chunks": _listed(self.chunk_shape),
                "shards": _listed(self.shard_shape),
            }
        amounts = {"chunks": self.chunks, "documents": self.documents, "other": self.other}
        return {
            "path": f"/{self.path}",
            "node_type": self.node_type,
            **of_array,
            "stored": self.stored,
            "expected": self.expected,
            "bytes_stored": self.bytes_stored,
            "bytes_logical": self.bytes_logical,
            "ratio": self.ratio,
            **{f"bytes_{name}": amount.nbytes if self.is_listed else None for name, amount in amounts.items()},
            "files_other": self.other.files if self.is_listed else None,
            "problem": self.problem,
        }


def _listed(lengths: tuple[int, ...] | None) -> list[int] | None:
    return None if lengths is None else list(lengths)


@dataclass(frozen=True, slots=True)
class Usage:
    """The size of a hierarchy. `print` shows a line for each node.

    Attributes
    ----------
    nodes : tuple of NodeUsage
        Members before their group, by name. The measured node is last.
    arrays, groups : int
        Number of arrays and groups.
    unlisted : str
        Why the store cannot be listed; empty if it can.
    """

    nodes: tuple[NodeUsage, ...]
    arrays: int
    groups: int
    unlisted: str = ""

    @property
    def total(self) -> NodeUsage:
        """The measured node, with everything below it."""
        return self.nodes[-1]

    def rows(self, *, max_depth: int | None = None, sort: Sort = "name") -> Iterator[NodeUsage]:
        """Yield nodes down to a depth, by name or the largest first. The measured node is always last."""
        found = (node for node in self.nodes[:-1] if max_depth is None or node.depth <= max_depth)
        if sort not in SORTS:
            raise ValueError(Wording(f"{{sort}}: expected one of {', '.join(SORTS)}", sort=sort))
        yield from found if sort == "name" else sorted(found, key=_KEYS[sort], reverse=True)
        yield self.total

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        total = {"groups": self.groups, "arrays": self.arrays, **self.total.to_dict()}
        return {"nodes": [node.to_dict() for node in self.nodes], "total": total}

    def __str__(self) -> str:
        lines = []
        for node in self.nodes:
            stored = "unknown" if node.bytes_stored is None else wording.size(node.bytes_stored)
            lines.append(f"{stored:>11}  /{node.path}")
        return "\n".join(lines)


_KEYS: Final[dict[str, Callable[[NodeUsage], float]]] = {
    "stored": lambda node: node.bytes_stored or 0,
    "logical": lambda node: node.bytes_logical or 0,
    "ratio": lambda node: node.ratio or 0,
}
