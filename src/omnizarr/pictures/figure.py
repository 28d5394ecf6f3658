"""A page laid out on paper: texts, lines and images at their places, which `svg` and `png` draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.pictures import colours
from omnizarr.pictures.axes import Tick, ticks_between
from omnizarr.pictures.colours import Pixels
from omnizarr.pictures.contents import Chart, Image, Legend, Page, Table

FONT: Final = 12.0
"""Height of letters."""
_LETTER: Final = 0.58 * FONT
_LINE: Final = 18.0
_TICK: Final = 4.0
_MARGIN: Final = 6.0
_BAR: Final = 12.0

Anchor: TypeAlias = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text; `y` is its foot."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    is_bold: bool = False
    is_faint: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points; they are pairs of x and y along the first dimension."""

    points: NDArray[np.float64]
    is_data: bool = False
    """It is in the colour of data, and stronger."""


@dataclass(frozen=True, slots=True)
class Bitmap:
    """An image, stretched."""

    x: float
    y: float
    width: float
    height: float
    pixels: Pixels


Shape: TypeAlias = Text | Line | Bitmap


@dataclass(frozen=True, slots=True)
class Figure:
    """Shapes to draw, on paper of this size."""

    width: float
    height: float
    shapes: tuple[Shape, ...]
    title: str


def width_of(text: str) -> float:
    """Return about how wide a text is."""
    return len(text) * _LETTER


def figure_of(page: Page, width: float, height: float) -> Figure:
    """Lay out a page. The picture fills as much of the width and height as its proportions allow."""
    content = page.content
    if isinstance(content, Image):
        body = _image(content, width, height)
    elif isinstance(content, Chart):
        high = min(height, width / 2)
        rows = ticks_between(content.numbers, content.low, content.high, max(2, int(high / 40)))
        columns = content.along.ticks(max(2, int(width / 80)))
        box = _Box(_room_for(rows), _LINE if content.title else _MARGIN, width, high)
        upward = [Tick(1 - place, text) for place, text in rows]
        around = [*_left(box, upward, content.title, 0), *_below(box, columns, content.along.title, 0)]
        shapes = (box.frame(), *around, *_lines(content, box))
        body = _Body(box.right + _half(columns), box.bottom + 2 * _LINE, shapes)
    else:
        body = _table(content)
    return _with_texts(page, body)


@dataclass(frozen=True, slots=True)
class _Body:
    width: float
    height: float
    shapes: tuple[Shape, ...]


def _with_texts(page: Page, body: _Body) -> Figure:
    """Put the title above, and the notes below."""
    top = _LINE + _MARGIN
    shapes: list[Shape] = [Text(_MARGIN, _LINE - 2, page.title, is_bold=True)]
    shapes += [_moved(shape, _MARGIN, top) for shape in body.shapes]
    width = max(body.width, width_of(page.title) * 1.06)
    bottom = top + body.height
    for line in _wrapped(page.notes, max(width, 300)):
        bottom += _LINE
        shapes.append(Text(_MARGIN, bottom - 5, line, is_faint=True))
        width = max(width, width_of(line))
    return Figure(width + 2 * _MARGIN, bottom + _MARGIN, tuple(shapes), page.title)


def _wrapped(text: str, width: float) -> list[str]:
    """Return a text in lines."""
    lines: list[str] = []
    for part in text.split(" · ") if text else ():
        if lines and width_of(f"{lines[-1]} · {part}") <= width:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines


def _moved(shape: Shape, x: float, y: float) -> Shape:
    if isinstance(shape, Text):
        return Text(shape.x + x, shape.y + y, shape.text, shape.anchor, shape.is_bold, shape.is_faint)
    if isinstance(shape, Line):
        return Line(shape.points + np.array([x, y]), shape.is_data)
    return Bitmap(shape.x + x, shape.y + y, shape.width, shape.height, shape.pixels)


# -- parts --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Box:
    """Where the picture itself is."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def frame(self) -> Line:
        corners = [(self.left, self.top), (self.right, self.top), (self.right, self.bottom), (self.left, self.bottom)]
        return Line(np.array([*corners, corners[0]]))


def _image(image: Image, width: float, height: float) -> _Body:
    wide = min(width, height / image.proportion)
    high = wide * image.proportion
    rows = image.height.ticks(max(2, int(high / 45)))
    columns = image.width.ticks(max(2, int(wide / 80)))
    box = _Box(_room_for(rows), _LINE if image.height.title else _MARGIN, wide, high)
    # Marks point to the middle of elements.
    inset = (0.5 / len(image.height), 0.5 / len(image.width))
    shapes: list[Shape] = [Bitmap(box.left, box.top, wide, high, image.pixels), box.frame()]
    shapes += _left(box, rows, image.height.title, inset[0]) + _below(box, columns, image.width.title, inset[1])
    right, bottom = box.right + _half(columns), box.bottom + 2 * _LINE
    if image.legend is not None:
        bar, more = _bar(image.legend, box)
        shapes += bar
        right = max(right, more)
    return _Body(right, bottom, tuple(shapes))


def _lines(chart: Chart, box: _Box) -> list[Shape]:
    """Return the line. Missing values interrupt it; a single value is a short stroke."""
    levels = chart.levels
    last = max(1, len(levels) - 1)
    points = np.stack([box.left + np.arange(len(levels)) / last * box.width, box.bottom - levels * box.height], axis=-1)
    points[:, 1] = points[:, 1].clip(box.top, box.bottom)
    known = np.flatnonzero(~np.isnan(levels))
    runs = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1) if len(known) else []
    strokes = [points[run] if len(run) > 1 else points[run] + [[-1.5, 0], [1.5, 0]] for run in runs]
    return [Line(stroke, is_data=True) for stroke in strokes]


def _table(table: Table) -> _Body:
    rows = (table.names, *table.rows)
    widths = [max(width_of(cell) for cell in column) + 16 for column in zip(*rows, strict=True)]
    starts = np.cumsum([0.0, *widths])
    shapes: list[Shape] = [
        Text(float(starts[column]), _LINE * (number + 1) - 5, cell, is_bold=number == 0)
        for number, row in enumerate(rows)
        for column, cell in enumerate(row)
    ]
    return _Body(float(starts[-1]), _LINE * len(rows), tuple(shapes))


def _room_for(ticks: list[Tick]) -> float:
    return max((width_of(tick.text) for tick in ticks), default=0) + _TICK + 5


def _half(ticks: list[Tick]) -> float:
    return width_of(ticks[-1].text) / 2 if ticks else 0


def _left(box: _Box, ticks: list[Tick], title: str, inset: float) -> list[Shape]:
    shapes: list[Shape] = [Text(0, box.top - 6, title)] if title else []
    for place, text in ticks:
        y = box.top + (inset + place * (1 - 2 * inset)) * box.height
        shapes += [
            Line(np.array([(box.left - _TICK, y), (box.left, y)])),
            Text(box.left - _TICK - 3, y + FONT / 3, text, "end"),
        ]
    return shapes


def _below(box: _Box, ticks: list[Tick], title: str, inset: float) -> list[Shape]:
    shapes: list[Shape] = []
    for place, text in ticks:
        x = box.left + (inset + place * (1 - 2 * inset)) * box.width
        shapes += [
            Line(np.array([(x, box.bottom), (x, box.bottom + _TICK)])),
            Text(x, box.bottom + _TICK + FONT, text, "middle"),
        ]
    if title:
        shapes.append(Text(box.left + box.width / 2, box.bottom + 2 * _LINE - 4, title, "middle"))
    return shapes


def _bar(legend: Legend, box: _Box) -> tuple[list[Shape], float]:
    """Return the bar of colours at the right of an image, and where it ends."""
    left = box.right + 18
    colors = np.full((256, 1, 4), 255, np.uint8)
    colors[:, 0, :3] = colours.table(legend.colormap)[::-1]
    bar = _Box(left, box.top, _BAR, box.height)
    ticks = ticks_between(legend.numbers, legend.low, legend.high, max(2, int(box.height / 45)))
    shapes: list[Shape] = [Bitmap(bar.left, bar.top, bar.width, bar.height, colors), bar.frame()]
    for place, text in ticks:
        y = bar.bottom - place * bar.height
        shapes += [
            Line(np.array([(bar.right, y), (bar.right + _TICK, y)])),
            Text(bar.right + _TICK + 3, y + FONT / 3, text),
        ]
    end = bar.right + _TICK + 3 + max((width_of(text) for _, text in ticks), default=0)
    if legend.title:
        shapes.append(Text(bar.left, bar.top - 6, legend.title))
        end = max(end, bar.left + width_of(legend.title))
    return shapes, end
