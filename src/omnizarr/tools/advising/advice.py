"""Advice on chunks and shards, as plain values and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnizarr.nodes import wording
from omnizarr.tools.advising.layouts import Expected, Layout
from omnizarr.tools.advising.windows import Shape, Window


@dataclass(frozen=True, slots=True)
class Advice:
    """Which chunks and shards suit an array, why, and what reading takes.

    Attributes
    ----------
    shape : tuple of int
    data_type : str
    place : {"local", "object"}
    windows : tuple of Window
        What is read: `name`, `lengths`, `weight`.
    advised : Layout
        With `chunks`, `shards`, `objects`, `nchunks` and `nbytes`.
    current : Layout or None
        Of an array that exists, unchanged.
    ratio : float
        Bytes in memory to a stored one.
    sampled : int
        Stored chunks of which the ratio was taken; 0: it was given, or 1 was assumed.
    reasons : tuple of str
        In sentences.
    """

    shape: Shape
    data_type: str
    place: str
    windows: tuple[Window, ...]
    advised: Layout
    current: Layout | None
    ratio: float
    sampled: int
    reasons: tuple[str, ...]

    @property
    def chunks(self) -> Shape:
        """The shape of chunks (inner chunks of shards) that is advised."""
        return self.advised.chunks

    @property
    def shards(self) -> Shape | None:
        """The shape of shards that is advised; None for none."""
        return self.advised.shards

    def reads(self, layout: Layout | None = None) -> tuple[Expected, ...]:
        """Return what reading each window takes, and reading all, with a layout; by default with that advised."""
        everything = Window("all", self.shape)
        windows = [window for window in self.windows if window.lengths != self.shape]
        return tuple(map((layout or self.advised).reading, [*windows, everything]))

    def to_dict(self) -> dict[str, Any]:
        """Return everything in values that JSON has words for."""
        return {
            "shape": list(self.shape),
            "data_type": self.data_type,
            "place": self.place,
            "windows": [
                {"name": window.name, "lengths": list(window.lengths), "weight": window.weight}
                for window in self.windows
            ],
            "ratio": self.ratio,
            "sampled": self.sampled,
            "advised": self._layout(self.advised),
            "current": None if self.current is None else self._layout(self.current),
            "reasons": list(self.reasons),
        }

    def _layout(self, layout: Layout) -> dict[str, Any]:
        return {**layout.to_dict(), "reads": [found.to_dict() for found in self.reads(layout)]}

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the advice in words."""
        yield f"chunks {wording.lengths(self.chunks)}, {_shards(self.shards)}"
        yield from (f"  {reason}" for reason in self.reasons)


def _shards(shards: Shape | None) -> str:
    return "no shards" if shards is None else f"shards {wording.lengths(shards)}"
