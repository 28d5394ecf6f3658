"""Advice on chunks and shards, as plain values and as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnizarr.nodes import wording
from omnizarr.tools.advise.layouts import Expected, Layout
from omnizarr.tools.advise.windows import Shape, Window


@dataclass(frozen=True, slots=True)
class Advice:
    """Recommended chunks and shards of an array, the reasons, and the cost of reads.

    Attributes
    ----------
    shape : tuple of int
    data_type : str
    place : {"local", "object"}
    windows : tuple of Window
        The typical reads, with `name`, `lengths` and `weight`.
    advised : Layout
        The recommended layout, with `chunks`, `shards`, `objects`, `nchunks` and `nbytes`.
    current : Layout or None
        The current layout of an existing array.
    ratio : float
        Compression ratio: bytes in memory for each stored byte.
    sampled : int
        Number of stored chunks used for the ratio; 0 if it was given, or assumed to be 1.
    reasons : tuple of str
        The reasons, as sentences.
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
        """The recommended shape of chunks (of inner chunks, with shards)."""
        return self.advised.chunks

    @property
    def shards(self) -> Shape | None:
        """The recommended shape of shards; None for no shards."""
        return self.advised.shards

    def reads(self, layout: Layout | None = None) -> tuple[Expected, ...]:
        """Return the cost of reading each window, and everything, with a layout. The default is the recommended one."""
        everything = Window("all", self.shape)
        windows = [window for window in self.windows if window.lengths != self.shape]
        return tuple(map((layout or self.advised).reading, [*windows, everything]))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
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
        """Yield the advice as text."""
        yield f"chunks {wording.lengths(self.chunks)}, {_shards(self.shards)}"
        yield from (f"  {reason}" for reason in self.reasons)


def _shards(shards: Shape | None) -> str:
    return "no shards" if shards is None else f"shards {wording.lengths(shards)}"
