"""The order of elements of several sources along a dimension: sorted by a coordinate, with overlaps and gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from omnizarr.errors import JoinError, Remedy
from omnizarr.formats.conventions.calendars import Times

if TYPE_CHECKING:
    from numpy.typing import NDArray

Overlaps: TypeAlias = Literal["error", "first", "last"]
Gaps: TypeAlias = Literal["error", "keep", "fill"]

_GAP: Final = 1.5
"""A distance between two sources that is longer than this many steps is a gap: months differ by less."""
_UNEVEN: Final = 1e-3
"""By how much of a step a gap may differ from a multiple of it: numbers are rounded."""


class Run(NamedTuple):
    """Neighbouring elements of one source; of none: a gap that is filled."""

    source: int | None
    start: int
    stop: int


@dataclass
class Ordering:
    """How to bring sources into the order of their coordinates.

    Attributes
    ----------
    along : str
        The dimension.
    names : sequence of str
        What errors call the sources.
    attributes : mapping
        Of the coordinate.
    overlaps, gaps : str
        As for `omnizarr.combine`.
    """

    along: str
    names: Sequence[str]
    attributes: Mapping[str, Any]
    overlaps: Overlaps
    gaps: Gaps
    notes: list[str] = field(default_factory=list)

    def of(self, values: Sequence[NDArray[Any]]) -> tuple[list[Run], list[NDArray[Any]], list[str]]:
        """Return the order, the coordinates of the gaps that are filled, and notes, for the coordinates of the sources.

        >>> order = Ordering("x", ["a", "b"], {}, "first", "keep")
        >>> order.of([np.array([3, 4, 5]), np.array([1, 2, 3])])[0]
        [Run(source=1, start=0, stop=2), Run(source=0, start=0, stop=3)]
        """
        self._times = Times.of(self.attributes)
        known = [self._comparable(each, number) for number, each in enumerate(values)]
        runs, filled = self._with_gaps(self._sorted(known), known)
        return runs, filled, self.notes

    def _said(self, value: Any) -> str:
        """Return a coordinate in words."""
        return f"{self.along}={value if self._times is None else self._times.text(float(value))}"

    def _comparable(self, values: NDArray[Any], number: int) -> NDArray[Any]:
        if values.dtype.kind in "OT":
            return values.astype(object)  # texts
        is_missing = np.isnat(values) if values.dtype.kind in "mM" else values != values  # noqa: PLR0124 - NaN
        if np.any(is_missing):
            raise JoinError(
                "a coordinate has missing values",
                found=f"{int(np.argmax(is_missing))} along {self.along!r} ({self.names[number]})",
                remedy=Remedy("pass {sort} to keep the order of the sources", sort=False),
            )
        return values.astype(np.int64) if values.dtype.kind in "iu" else values

    def _sorted(self, values: Sequence[NDArray[Any]]) -> list[Run]:
        sign = self._direction(values)
        numbers = [number for number in range(len(values)) if values[number].size]
        numbers.sort(key=lambda number: values[number][0], reverse=sign < 0)
        said = self._said
        for before, after in pairwise(numbers):
            last, next_ = values[before][-1], values[after][0]
            if last >= next_ if sign > 0 else last <= next_:
                if self.overlaps == "error":
                    raise JoinError(
                        f"two sources overlap along {self.along!r}",
                        found=f"{self.names[after]} begins at {said(next_)}",
                        expected=f"after {said(last)}, where {self.names[before]} ends",
                        remedy=Remedy("pass {overlaps}: whose elements to take", overlaps="first"),
                    )
                return self._without_overlaps(values, numbers, sign)
        return [Run(number, 0, len(values[number])) for number in numbers] or [Run(0, 0, 0)]

    def _direction(self, values: Sequence[NDArray[Any]]) -> int:
        """Return 1 if all sources ascend, -1 if all descend."""
        signs = set()
        for number, each in enumerate(values):
            if len(each) < 2:
                continue
            up, down = bool(np.all(each[1:] > each[:-1])), bool(np.all(each[1:] < each[:-1]))
            if not (up or down):
                raise JoinError(
                    f"the coordinate {self.along!r} of a source neither ascends nor descends",
                    found=self.names[number],
                    remedy=Remedy("pass {sort} to keep the order of the sources", sort=False),
                )
            signs.add(1 if up else -1)
        if len(signs) > 1:
            raise JoinError(
                f"the coordinate {self.along!r} ascends in some sources and descends in others",
                remedy=Remedy("pass {sort} to keep the order of the sources", sort=False),
            )
        return signs.pop() if signs else 1

    def _without_overlaps(self, values: Sequence[NDArray[Any]], numbers: Sequence[int], sign: int) -> list[Run]:
        """Return the runs in which each place occurs once."""
        order = sorted(numbers, reverse=self.overlaps == "last")  # of several equal places, the first is taken
        every = np.concatenate([values[number] for number in order])
        whose = np.repeat(order, [len(values[number]) for number in order])
        where = np.concatenate([np.arange(len(values[number])) for number in order])
        _, picks = np.unique(every, return_index=True)
        picks = picks[::sign]
        if len(picks) < len(every):
            self.notes.append(
                f"{len(every) - len(picks)} places along {self.along!r} are in several sources: taken from the"
                f" {self.overlaps} one"
            )
        whose, where = whose[picks], where[picks]
        breaks = np.flatnonzero((np.diff(whose) != 0) | (np.diff(where) != 1)) + 1
        edges = [0, *breaks.tolist(), len(picks)]
        return [Run(int(whose[a]), int(where[a]), int(where[b - 1]) + 1) for a, b in pairwise(edges)]

    def _with_gaps(self, runs: Sequence[Run], values: Sequence[NDArray[Any]]) -> tuple[list[Run], list[NDArray[Any]]]:
        """Look for gaps between runs. Return the runs, with some of no source, and the coordinates of these."""
        said = self._said
        pieces = [values[run.source or 0][run.start : run.stop] for run in runs]
        if self.gaps == "keep" or not pieces or pieces[0].dtype.kind not in "iufmM":
            return list(runs), []
        inner = [np.abs(np.diff(piece)) for piece in pieces if len(piece) > 1]
        between = [abs(_minus(after[0], before[-1])) for before, after in pairwise(pieces)]
        step = max(each.max() for each in inner) if inner else (np.median(between) if between else 0)
        filled, found = [], list(runs[:1])
        for (before, after), (one, other), distance in zip(pairwise(pieces), pairwise(runs), between, strict=True):
            if distance > step * _GAP:
                if self.gaps == "error":
                    raise JoinError(
                        f"there is a gap along {self.along!r}",
                        found=f"{self.names[other.source or 0]} begins at {said(after[0])}",
                        expected=f"one step after {said(before[-1])}, where {self.names[one.source or 0]} ends",
                        remedy=Remedy('pass {gaps} to join them, or "fill" for missing values', gaps="keep"),
                    )
                count = round(float(distance / step)) if step else 0
                if not count or abs(distance - count * step) > abs(step) * _UNEVEN:
                    raise JoinError(
                        f"a gap along {self.along!r} cannot be filled, as it is no multiple of the step",
                        found=f"from {said(before[-1])} to {said(after[0])}",
                    )
                places = before[-1] + np.arange(1, count) * (_minus(after[0], before[-1]) / count)
                if before.dtype.kind in "iu":
                    places = np.rint(places).astype(before.dtype)
                filled.append(places)
                found.append(Run(None, 0, count - 1))
                self.notes.append(f"{count - 1} places after {said(before[-1])} are filled with missing values")
            found.append(other)
        return found, filled


def _minus(a: Any, b: Any) -> Any:
    """Return a difference that does not overflow."""
    return int(a) - int(b) if isinstance(a, np.integer) else a - b
