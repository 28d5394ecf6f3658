"""The result of a comparison."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from omnizarr.nodes import wording
from omnizarr.support.text import visible
from omnizarr.tools.streaming.plain import plain

Kind: TypeAlias = Literal[
    "node", "kind", "shape", "data_type", "dimension_names", "attribute", "values", "storage", "file"
]

_LONGEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Unequal:
    """How the elements of two arrays differ.

    Attributes
    ----------
    count : int
        Number of elements that are not equal.
    size : int
        Number of all elements.
    first : tuple of int
        Coordinates of the first unequal element in C order.
    left, right : object
        The two values at `first`.
    largest : object
        The largest absolute difference: an integer, a float, or a `numpy.timedelta64`. None if there is none,
        for example between texts, or between NaN and a number.
    """

    count: int
    size: int
    first: tuple[int, ...]
    left: Any
    right: Any
    largest: Any = None

    @property
    def text(self) -> str:
        """The difference in a few words."""
        share = f"{self.count:,} of {wording.plural(self.size, 'element')} {'differs' if self.count == 1 else 'differ'}"
        place = f"first at [{', '.join(map(str, self.first))}]: {_brief(self.left)} and {_brief(self.right)}"
        largest = "" if self.largest is None else f"; by {_brief(self.largest)} at most"
        return f"{share}, {place}{largest}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "count": self.count,
            "size": self.size,
            "first": list(self.first),
            "left": plain(self.left),
            "right": plain(self.right),
            "largest": plain(self.largest),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference between two hierarchies.

    Attributes
    ----------
    path : str
        Path of the node below the compared one, without a leading slash.
    kind : str
        ``"node"`` (it exists on one side only), ``"kind"`` (array and group), ``"shape"``, ``"data_type"``,
        ``"dimension_names"``, ``"attribute"``, ``"values"``, ``"storage"``, ``"file"`` (one that is not Zarr).
    name : str
        Name of an attribute, of a member that states how elements are stored, or of a file below the node; otherwise
        empty.
    left, right : object
        The values on both sides, of files the sizes in bytes; None for a missing one.
    only : {"", "left", "right"}
        The side that has it, if the other has not.
    values : Unequal, optional
        How elements differ.
    """

    path: str
    kind: Kind
    name: str = ""
    left: Any = None
    right: Any = None
    only: Literal["", "left", "right"] = ""
    values: Unequal | None = None

    @property
    def text(self) -> str:
        """The difference in a few words."""
        if self.values is not None:
            return f"values: {self.values.text}"
        what = self.kind.replace("_", " ")
        if self.name:
            what = self.name if self.kind == "storage" else f"{what} {self.name!r}"
        if self.only:
            value = self.left if self.only == "left" else self.right
            side = {"left": "the first", "right": "the second"}[self.only]
            shown = f"{value:,} B" if self.kind == "file" else _brief(value)
            return f"{value} only in {side}" if self.kind == "node" else f"{what} only in {side}: {shown}"
        if self.kind == "file":
            if self.left == self.right:
                return f"{what}: {self.left:,} B in both, but other bytes"
            return f"{what}: {self.left:,} and {self.right:,} bytes"
        return f"{what}: {_brief(self.left)} and {_brief(self.right)}"

    def __str__(self) -> str:
        return visible(f"/{self.path}: {self.text}")

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "path": f"/{self.path}",
            "kind": self.kind,
            "name": self.name,
            "left": plain(self.left),
            "right": plain(self.right),
            "only": self.only,
            "values": None if self.values is None else self.values.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The differences between two hierarchies: a sequence of `Difference`, empty if they are equal.

    Attributes
    ----------
    left, right : str
        The compared places.
    differences : tuple of Difference
        Differences in meaning and values; with ``storage=True``, also in storage.
    storage : tuple of Difference
        Differences in how elements are stored, whether they count or not.
    problems : tuple of (str, str)
        Paths of nodes that could not be compared, with the reason.
    nodes : int
        Number of nodes in both.
    elements : int
        Number of compared elements.
    rtol, atol : float
    files : int
        Number of compared files that are not Zarr; those of operating systems do not count.
    remarks : tuple of str
        What was not compared, and does not make the result unequal.
    """

    left: str
    right: str
    differences: tuple[Difference, ...]
    storage: tuple[Difference, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()
    nodes: int = 0
    elements: int = 0
    rtol: float = 0.0
    atol: float = 0.0
    files: int = 0
    remarks: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether there is no difference, and everything could be compared."""
        return not self.differences and not self.problems

    def __iter__(self) -> Iterator[Difference]:
        return iter(self.differences)

    def __len__(self) -> int:
        return len(self.differences)

    def __getitem__(self, number: int) -> Difference:
        return self.differences[number]

    def summary(self) -> str:
        """Return a summary on one line."""
        found = wording.plural(len(self.differences), "difference") if self.differences else "equal"
        if self.problems and not self.differences:
            found = "no difference found"
        counts = [wording.plural(self.nodes, "node"), wording.plural(self.elements, "element")]
        if self.files:
            counts.append(wording.plural(self.files, "file"))
        compared = f"{', '.join(counts)} compared"
        failed = f" · {wording.plural(len(self.problems), 'node')} could not be compared" if self.problems else ""
        return " · ".join([f"{found} · {compared}{failed}", *self.remarks])

    def __str__(self) -> str:
        unreadable = [f"/{path}: cannot be compared: {why}" for path, why in self.problems]
        return "\n".join([*map(str, self.differences), *map(visible, unreadable), self.summary()])

    def __repr__(self) -> str:
        return f"<Diff {self.summary()}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "left": self.left,
            "right": self.right,
            "equal": self.equal,
            "differences": [each.to_dict() for each in self.differences],
            "storage": [each.to_dict() for each in self.storage],
            "problems": [{"path": f"/{path}", "reason": why} for path, why in self.problems],
            "nodes": self.nodes,
            "elements": self.elements,
            "rtol": self.rtol,
            "atol": self.atol,
            "files": self.files,
            "remarks": list(self.remarks),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the report as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


def _brief(value: object) -> str:
    if isinstance(value, np.timedelta64 | np.datetime64 | np.floating):
        text = str(value)  # the shortest number that is equal within its own type
    elif isinstance(value, np.generic):
        text = repr(value.item())
    elif isinstance(value, str | bytes):
        text = repr(value)
    else:
        text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
