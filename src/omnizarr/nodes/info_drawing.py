"""Drawings of arrays as boxes divided into shards and chunks, as SVG.

Colours are those of the page (``currentColor``) with one accent of medium brightness, so they suit light and dark
pages.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from typing import Final, TypeAlias

ACCENT: Final = "#4a8fc2"
_LONGEST_SIDE: Final = 150.0
_LONGEST_OF_TWO: Final = 105.0
_SHORTEST_SIDE: Final = 18.0
_MOST_LINES: Final = 24
_MOST_IN_SHARD: Final = 12
_LEAST_GAP: Final = 2.0
_LONGEST_LABEL: Final = 30
# Direction of a box's axes on paper: depth to the upper right, as seen from the upper left.
_DEPTH: Final = (0.55, -0.38)

Point: TypeAlias = tuple[float, float]
Lengths: TypeAlias = "Sequence[int | Sequence[int]]"
"""Opacities of the pieces along each dimension: one for all, or one for each."""


@dataclass(frozen=True, slots=True)
class _Side:
    """A dimension on paper: its length, and the boundaries of shards and chunks."""

    length: float
    shards: tuple[float, ...]
    chunks: tuple[float, ...]
    label: str


def draw(
    shape: Sequence[int],
    chunk_shape: Lengths | None,
    names: Sequence[str | None] | None = None,
    shard_shape: Lengths | None = None,
) -> str:
    """Return a drawing of an array divided into shards and chunks, as SVG; "" if it cannot be drawn.

    With more than three dimensions, the last three are one box, and up to three before them are another one,
    whose elements are such boxes.

    Examples
    --------
    >>> draw((4, 4), (2, 2)).startswith("<svg")
    True
    >>> draw((), ())
    ''
    """
    if not shape or 0 in shape:
        return ""
    names = list(names) if names is not None else [None] * len(shape)
    chunks = list(chunk_shape if chunk_shape is not None else shape)
    shards = list(shard_shape) if shard_shape is not None else [None] * len(shape)
    bounds = [(max(0, len(shape) - 3), len(shape))]
    if len(shape) > 3:
        bounds.insert(0, (max(0, len(shape) - 6), len(shape) - 3))
    longest = _LONGEST_SIDE if len(bounds) == 1 else _LONGEST_OF_TWO
    boxes = []
    for start, stop in bounds:
        lengths = _lengths(shape[start:stop], longest)
        boxes.append(
            _drawn(
                [_side(shape[at], chunks[at], shards[at], names[at], lengths[at - start]) for at in range(start, stop)]
            )
        )
    return _beside(boxes, shape)


def _lengths(shape: Sequence[int], longest: float) -> list[float]:
    """Return lengths on paper that grow with the actual lengths, but keep the shortest visible."""
    logs = [math.log2(length + 1) for length in shape]
    # Half by size, half by its logarithm: a box of 1 x 10000 should look long, but not like a line.
    return [
        max(_SHORTEST_SIDE, longest * (length / max(shape) * 0.5 + log / max(logs) * 0.5))
        for length, log in zip(shape, logs, strict=True)
    ]


def _side(
    length: int, chunk: int | Sequence[int], shard: int | Sequence[int] | None, name: str | None, drawn: float
) -> _Side:
    label = f"{name} {length}" if name else str(length)
    if shard is None:
        return _Side(drawn, (), _cuts(length, chunk, drawn), label)
    strong = _cuts(length, shard, drawn)
    if isinstance(chunk, int) and -(-length // chunk) > _MOST_LINES:
        # Too many to distinguish: show those of the first shard instead, if possible.
        step = drawn * chunk / length
        count = (shard if isinstance(shard, int) else shard[0]) // chunk
        is_fine = count <= _MOST_IN_SHARD and step >= _LEAST_GAP
        return _Side(drawn, strong, tuple(step * number for number in range(1, count)) if is_fine else (), label)
    return _Side(drawn, strong, tuple(at for at in _cuts(length, chunk, drawn) if at not in strong), label)


def _cuts(length: int, piece: int | Sequence[int], side: float) -> tuple[float, ...]:
    """Return the boundaries of pieces along a side, on paper.

    If there are very many, only as many as can be distinguished.
    """
    if not isinstance(piece, int):
        ends = list(accumulate(piece[: _MOST_LINES + 1]))
        return tuple(side * (end / length) for end in ends if end < length)
    count = -(-length // piece)
    if count <= _MOST_LINES:
        return tuple(side * (piece / length) * number for number in range(1, count))
    return tuple(side / _MOST_LINES * number for number in range(1, _MOST_LINES))


@dataclass(frozen=True, slots=True)
class _Drawn:
    content: str
    width: float
    height: float


def _drawn(sides: Sequence[_Side]) -> _Drawn:
    if len(sides) == 3:
        return _box(*sides)
    if len(sides) == 1:
        return _sheet(_Side(_SHORTEST_SIDE, (), (), ""), sides[0])
    return _sheet(*sides)


def _sheet(down: _Side, across: _Side) -> _Drawn:
    origin = (4.0, 4.0)
    face = _face(origin, (across.length, 0), (0, down.length), across, down, 0.28)
    texts = [_label(across.label, (origin[0] + across.length / 2, origin[1] + down.length + 16), "middle")]
    if down.label:
        at = (origin[0] + across.length + 8, origin[1] + down.length / 2 + 4)
        texts.append(_label(down.label, at, "start"))
    return _Drawn(face + "".join(texts), across.length + 16 + _width_of(down.label), max(down.length + 28, 40))


def _box(inward: _Side, down: _Side, across: _Side) -> _Drawn:
    back = (inward.length * _DEPTH[0], inward.length * _DEPTH[1])
    origin = (4.0, 4.0 - back[1])
    right, bottom = origin[0] + across.length, origin[1] + down.length
    shortened = _scaled(inward, math.hypot(*_DEPTH))
    front = _face(origin, (across.length, 0), (0, down.length), across, down, 0.28)
    far = (origin[0] + back[0], origin[1] + back[1])
    top = _face(far, (across.length, 0), (-back[0], -back[1]), across, _mirrored(shortened), 0.14)
    side = _face((right, origin[1]), back, (0, down.length), shortened, down, 0.42)
    texts = [
        _label(across.label, (origin[0] + across.length / 2, bottom + 16), "middle"),
        _label(down.label, (right + back[0] + 8, origin[1] + back[1] + down.length / 2 + 4), "start"),
        _label(inward.label, (right + back[0] / 2 + 8, bottom + back[1] / 2 + 12), "start"),
    ]
    room = across.length + back[0] + 16 + max(_width_of(down.label), _width_of(inward.label))
    return _Drawn(top + side + front + "".join(texts), room, bottom + 26)


def _scaled(side: _Side, factor: float) -> _Side:
    shards, chunks = (tuple(at * factor for at in cuts) for cuts in (side.shards, side.chunks))
    return _Side(side.length * factor, shards, chunks, side.label)


def _mirrored(side: _Side) -> _Side:
    """Return a side with its cuts counted from the other end: the top is drawn from its far edge."""
    shards, chunks = (tuple(side.length - at for at in cuts) for cuts in (side.shards, side.chunks))
    return _Side(side.length, shards, chunks, side.label)


def _face(origin: Point, across: Point, down: Point, columns: _Side, rows: _Side, shade: float) -> str:
    """Return a parallelogram with lines parallel to its sides, at distances along them."""
    corners = [origin, _plus(origin, across), _plus(_plus(origin, across), down), _plus(origin, down)]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "Z"
    fine = _lines(origin, across, down, columns.chunks, rows.chunks)
    strong = _lines(origin, across, down, columns.shards, rows.shards)
    return (
        f'<path d="{path}" fill="{ACCENT}" fill-opacity="{shade}" '
        f'stroke="currentColor" stroke-width="1.2" stroke-linejoin="round"/>'
        f'<path d="{fine}" stroke="currentColor" stroke-opacity=".45" stroke-width=".8" fill="none"/>'
        + (f'<path d="{strong}" stroke="currentColor" stroke-width="1.6" fill="none"/>' if strong else "")
    )


def _lines(origin: Point, across: Point, down: Point, columns: Iterable[float], rows: Iterable[float]) -> str:
    lines = [_line(_plus(origin, _part(across, at)), down) for at in columns]
    lines += [_line(_plus(origin, _part(down, at)), across) for at in rows]
    return "".join(lines)


def _plus(one: Point, other: Point) -> Point:
    return one[0] + other[0], one[1] + other[1]


def _part(side: Point, length: float) -> Point:
    whole = math.hypot(*side)
    return side[0] * length / whole, side[1] * length / whole


def _line(start: Point, way: Point) -> str:
    return f"M{start[0]:.1f} {start[1]:.1f}l{way[0]:.1f} {way[1]:.1f}"


def _label(text: str, at: Point, anchor: str) -> str:
    return f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}">{_escaped(_shortened(text))}</text>'


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"


def _escaped(text: str) -> str:
    return escape("".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text))


def _width_of(text: str) -> float:
    return 6.6 * len(_shortened(text))


def _beside(boxes: Sequence[_Drawn], shape: Sequence[int]) -> str:
    """Return one drawing of boxes beside each other."""
    height, left = max(box.height for box in boxes), 0.0
    parts = []
    if len(shape) > 6:
        text = f"{math.prod(shape[:-6]):,} ×" if max(shape) < 10**9 else "… ×"
        parts.append(_label(text, (0, height / 2), "start"))
        left = _width_of(text) + 8
    for number, box in enumerate(boxes):
        if number:
            parts.append(_label("×", (left + 4, height / 2), "middle"))
            left += 16
        moved = f' transform="translate({left:.1f} {(height - box.height) / 2:.1f})"' if len(boxes) > 1 else ""
        parts.append(f"<g{moved}>{box.content}</g>")
        left += box.width
    title = "chunks of an array, " + " by ".join(map(str, shape))
    return (
        f'<svg width="{left:.0f}" height="{height:.0f}" viewBox="0 0 {left:.0f} {height:.0f}" role="img" '
        f'style="overflow:visible;color:inherit" font-size="11" fill="currentColor">'
        f"<title>{_escaped(title)}</title>{''.join(parts)}</svg>"
    )
