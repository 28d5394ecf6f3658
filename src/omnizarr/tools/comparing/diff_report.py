"""What a comparison finds, and the account that it gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from omnizarr.nodes import wording
from omnizarr.support.text import visible
from omnizarr.tools.streaming.plain import plain

Kind: TypeAlias = Literal["node", "kind", "shape", "data_type", "dimension_names", "attribute", "values", "storage"]

_LONGEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Unequal:
    """How the elements of two arrays differ.

    Attributes
    ----------
    count : int
        Elements that are not equal.
    size : int
        All elements.
    first : tuple of int
        Coordinates of the first of them in C order.
    left, right : object
        The two values there.
    largest : object
        The largest absolute difference: an integer, a float, or a `numpy.timedelta64`. None if there is none, as
        between texts, or NaN and a number.
    """

    count: int
    size: int
    first: tuple[int, ...]
    left: Any
    right: Any
    largest: Any = None

    @property
    def text(self) -> str:
        """What differs, in one clause."""
        share = f"{self.count:,} of {wording.plural(self.size, 'element')} {'differs' if self.count == 1 else 'differ'}"
        place = f"first at [{', '.join(map(str, self.first))}]: {_brief(self.left)} and {_brief(self.right)}"
        largest = "" if self.largest is None else f"; by {_brief(self.largest)} at most"
        return f"{share}, {place}{largest}"

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
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
    """One thing in which two hierarchies differ.

    Attributes
    ----------
    path : str
        Of the node, below what is compared, without a leading slash.
    kind : str
        ``"node"`` (it is in one of them only), ``"kind"`` (array and group), ``"shape"``, ``"data_type"``,
        ``"dimension_names"``, ``"attribute"``, ``"values"``, ``"storage"``.
    name : str
        Of an attribute, or of a member that says how elements are stored; else empty.
    left, right : object
        What is there; None where there is nothing.
    only : {"", "left", "right"}
        The side that has it, if the other has nothing.
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
        """What differs, in one clause."""
        if self.values is not None:
            return f"values: {self.values.text}"
        what = self.kind.replace("_", " ")
        if self.name:
            what = self.name if self.kind == "storage" else f"{what} {self.name!r}"
        if self.only:
            value = self.left if self.only == "left" else self.right
            side = {"left": "the first", "right": "the second"}[self.only]
            return f"{value} only in {side}" if self.kind == "node" else f"{what} only in {side}: {_brief(value)}"
        return f"{what}: {_brief(self.left)} and {_brief(self.right)}"

    def __str__(self) -> str:
        return visible(f"/{self.path}: {self.text}")

    def to_dict(self) -> dict[str, Any]:
        """Return it in plain JSON types."""
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
    """In what two hierarchies differ: a sequence of differences, empty if they are equal.

    Attributes
    ----------
    left, right : str
        What was compared.
    differences : tuple of Difference
        Of meaning and values; with ``storage=True`` also those of storage.
    storage : tuple of Difference
        In how elements are stored, whether they count or not.
    problems : tuple of (str, str)
        Path, and why nodes or values could not be compared.
    nodes : int
        Nodes that are in both.
    elements : int
        Elements that were compared.
    rtol, atol : float
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
        """Return the account in one line."""
        found = wording.plural(len(self.differences), "difference") if self.differences else "equal"
        if self.problems and not self.differences:
            found = "no difference found"
        compared = f"{wording.plural(self.nodes, 'node')}, {wording.plural(self.elements, 'element')} compared"
        failed = f" · {wording.plural(len(self.problems), 'node')} could not be compared" if self.problems else ""
        return f"{found} · {compared}{failed}"

    def __str__(self) -> str:
        told = [f"/{path}: cannot be compared: {why}" for path, why in self.problems]
        return "\n".join([*map(str, self.differences), *map(visible, told), self.summary()])

    def __repr__(self) -> str:
        return f"<Diff {self.summary()}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the account in plain JSON types."""
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
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the account as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


def _brief(value: object) -> str:
    if isinstance(value, np.timedelta64 | np.datetime64 | np.floating):
        text = str(value)  # the shortest number that is this one among its own kind
    elif isinstance(value, np.generic):
        text = repr(value.item())
    elif isinstance(value, str | bytes):
        text = repr(value)
    else:
        text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
