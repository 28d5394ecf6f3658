"""Pages in terminals: one layout of cells, which characters or pixels fill."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from omnizarr.pictures import colours
from omnizarr.pictures.axes import Tick, ticks_between
from omnizarr.pictures.contents import Chart, Image, Legend, Page, Table
from omnizarr.pictures.pixels import stretched
from omnizarr.pictures.terminal import cells, protocols

Protocol: TypeAlias = Literal["kitty", "iterm", "sixel", "blocks", "text"]
PROTOCOLS: Final[tuple[Protocol, ...]] = ("kitty", "iterm", "sixel", "blocks", "text")
"""How pixels are shown: by three protocols, by half blocks in colours, or by shades of ASCII."""
GRAPHICS: Final = frozenset({"kitty", "iterm", "sixel"})

_BAR: Final = 24
_LEAST_BAR: Final = 4
# Cells for the title, the name of the axis above, two lines of the axis below, its name, the legend and the prompt.
_LINES_AROUND: Final = 7
_LEAST_ROWS: Final = 4
_LEAST_CELL: Final = 11
_MORE: Final = "  …"
_PLAIN: Final = str.maketrans({"│": "|", "┤": "+", "└": "+", "┬": "+", "─": "-", "…": "~", "·": "-", "×": "x"})


@dataclass(frozen=True, slots=True)
class Terminal:
    """What a terminal can show.

    Attributes
    ----------
    protocol : {"kitty", "iterm", "sixel", "blocks", "text"}
    columns, rows : int
        Its size in cells.
    cell : tuple of int
        Width and height of a cell in pixels.
    is_true_color : bool
        It has all colours, not only 256.
    is_unicode : bool
        It has characters that are not ASCII.
    """

    protocol: Protocol = "text"
    columns: int = 80
    rows: int = 24
    cell: tuple[int, int] = (8, 16)
    is_true_color: bool = False
    is_unicode: bool = True

    @property
    def is_colored(self) -> bool:
        """Whether it shows colours."""
        return self.protocol != "text"

    @property
    def dots(self) -> tuple[int, int]:
        """How many elements it can show from left to right, and from top to bottom."""
        columns, rows = self.columns, max(_LEAST_ROWS, self.rows - _LINES_AROUND)
        if self.protocol in GRAPHICS:
            return columns * self.cell[0], rows * self.cell[1]
        return columns * cells.DOT_COLUMNS, rows * cells.DOT_ROWS


def render(page: Page, terminal: Terminal) -> str:
    """Return the text that shows a page on a terminal: lines that end with a newline.

    Examples
    --------
    >>> from omnizarr.pictures.axes import Axis
    >>> from omnizarr.pictures.contents import Subject, content_of
    >>> sides = (Axis("y", "", np.arange(4)), Axis("x", "", np.arange(8)))
    >>> content = content_of(Subject(np.arange(32).reshape(4, 8), sides))
    >>> print(render(Page("ramp", content), Terminal(columns=20)), end="")
    ramp
      y
    0 ┤........:::::::::
      │------=======++++
    2 ┤++++*******######
      │%%%%%%%%@@@@@@@@@
      └─┬─────────┬─────
        0         5
               x
    1 .:-=+*#%@ 30
    from 0 to 31
    """
    content = page.content
    if isinstance(content, Image):
        lines = _image(content, terminal)
    elif isinstance(content, Chart):
        lines = _chart(content, terminal)
    else:
        lines = _table(content, terminal)
    title = f"\x1b[1m{page.title}\x1b[0m" if terminal.is_colored else page.title
    below = _wrapped(page.notes, terminal.columns)
    text = "\n".join([title, *lines, *(_faint(line, terminal) for line in below)])
    return (text if terminal.is_unicode else text.translate(_PLAIN)) + "\n"


def _faint(text: str, terminal: Terminal) -> str:
    return f"\x1b[2m{text}\x1b[0m" if terminal.is_colored else text


def _wrapped(text: str, columns: int) -> list[str]:
    lines: list[str] = []
    for part in text.split(" · ") if text else ():
        if lines and len(f"{lines[-1]} · {part}") <= columns:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines


# -- images ---------------------------------------------------------------------


def _image(image: Image, terminal: Terminal) -> Iterator[str]:
    room = max(_LEAST_ROWS, terminal.rows - _LINES_AROUND)
    beside = max((len(tick.text) for tick in image.height.ticks(room)), default=0)
    columns, rows = _size(image, terminal, terminal.columns - beside - 2, room)
    ticks = image.height.ticks(max(2, rows // 3))
    beside = max((len(tick.text) for tick in ticks), default=0)
    labels = _beside(ticks, rows, beside, len(image.height))
    if terminal.protocol in GRAPHICS:
        painted = [""] * rows
    elif terminal.protocol == "blocks":
        painted = cells.half_blocks(image.pixels, columns, rows, is_true_color=terminal.is_true_color)
    else:
        painted = cells.shades(image, columns, rows)
    if image.height.title:
        yield " " * (beside + 1) + image.height.title
    for label, line in zip(labels, painted, strict=True):
        yield label + line
    for number, line in enumerate(_below(image.width.ticks(max(2, columns // 12)), columns, len(image.width))):
        # Pixels are painted over the blanks, once the lines are there.
        picture = _pixels(image, terminal, columns, rows, beside + 2) if number == 0 else ""
        yield " " * (beside + 1) + line + picture
    if image.width.title:
        yield " " * (beside + 2) + image.width.title.center(columns).rstrip()
    if image.legend is not None:
        yield _legend(image.legend, terminal)


def _size(image: Image, terminal: Terminal, columns: int, rows: int) -> tuple[int, int]:
    """Return how many cells an image takes of those that there are, in its proportions."""
    width, height = terminal.cell if terminal.protocol in GRAPHICS else (1, 2)
    proportion = image.proportion * width / height
    columns = max(1, columns)
    wanted = round(columns * proportion)
    if wanted <= rows:
        return columns, max(1, wanted)
    return max(1, min(columns, round(rows / proportion))), rows


def _pixels(image: Image, terminal: Terminal, columns: int, rows: int, left: int) -> str:
    """Return the control sequences that paint the image over the cells above the line of the cursor."""
    if terminal.protocol not in GRAPHICS:
        return ""
    pixels = stretched(image.pixels, columns * terminal.cell[0], rows * terminal.cell[1])
    if terminal.protocol == "kitty":
        painted = protocols.kitty(pixels, columns, rows)
    elif terminal.protocol == "iterm":
        painted = protocols.iterm(pixels, columns, rows)
    else:
        painted = protocols.sixel(pixels)
    # Cursor: save, up, to the column, and back again.
    return f"\x1b7\x1b[{rows}A\x1b[{left + 1}G{painted}\x1b8"


def _legend(legend: Legend, terminal: Terminal) -> str:
    low, high = legend.texts
    around = len(f"{low}  {high} {legend.title}")
    title = legend.title if around + _LEAST_BAR <= terminal.columns else ""
    if terminal.is_colored:
        width = max(_LEAST_BAR, min(_BAR, terminal.columns - around))
        gradient = np.full((2, 256, 4), 255, np.uint8)
        gradient[..., :3] = colours.table(legend.colormap)
        bar = cells.half_blocks(gradient, width, 1, is_true_color=terminal.is_true_color)[0]
    else:
        bar = cells.scale_of_shades()
    return " ".join(part for part in (low, bar, high, title) if part)


# -- lines -----------------------------------------------------------------------


def _chart(chart: Chart, terminal: Terminal) -> Iterator[str]:
    rows = max(_LEAST_ROWS, min(terminal.rows - _LINES_AROUND, 16))
    ticks = [Tick(1 - place, text) for place, text in ticks_between(chart.numbers, chart.low, chart.high, rows // 3)]
    beside = max((len(tick.text) for tick in ticks), default=0)
    columns = max(1, terminal.columns - beside - 2)
    lines = (cells.braille if terminal.is_unicode else cells.stars)(chart, columns, rows)
    if chart.title:
        yield " " * (beside + 1) + chart.title
    for label, line in zip(_beside(ticks, rows, beside, math.inf), lines, strict=True):
        yield label + (f"\x1b[36m{line}\x1b[0m" if terminal.is_colored else line.rstrip())
    for line in _below(chart.along.ticks(max(2, columns // 12)), columns, math.inf):
        yield " " * (beside + 1) + line
    if chart.along.title:
        yield " " * (beside + 2) + chart.along.title.center(columns).rstrip()


# -- axes ------------------------------------------------------------------------


def _cell_of(place: float, count: int, samples: float) -> int:
    """Return the cell that contains a sample of an axis."""
    inset = 0.5 / samples
    return min(count - 1, max(0, int((inset + place * (1 - 2 * inset)) * count)))


def _beside(ticks: list[Tick], rows: int, width: int, samples: float) -> list[str]:
    """Return the text before each line of a picture."""
    texts = {_cell_of(place, rows, samples): text for place, text in ticks}
    return [f"{texts.get(row, ''):>{width}} {'┤' if row in texts else '│'}" for row in range(rows)]


def _below(ticks: list[Tick], columns: int, samples: float) -> tuple[str, str]:
    """Return the line below a picture, and the labels below that."""
    rule, labels, free = ["─"] * columns, [" "] * columns, 0
    for place, text in ticks:
        at = _cell_of(place, columns, samples)
        rule[at] = "┬"
        start = min(max(0, at - len(text) // 2), columns - len(text))
        if start >= free:
            labels[start : start + len(text)] = text
            free = start + len(text) + 1
    return "└" + "".join(rule), (" " + "".join(labels)).rstrip()


# -- tables ----------------------------------------------------------------------


def _table(table: Table, terminal: Terminal) -> Iterator[str]:
    rows = [table.names, *table.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    shown, used = 0, 0
    for column, width in enumerate(widths):
        room = terminal.columns - used
        if width > room >= _LEAST_CELL:
            widths[column] = room if column == len(widths) - 1 else room - len(_MORE)
            shown += 1
            break
        if shown and width > room:
            break
        shown, used = shown + 1, used + width + 2
    for number, row in enumerate(rows):
        more = _MORE if shown < len(widths) else ""
        shortened = zip(row[:shown], widths, strict=False)
        line = "  ".join(f"{_cut(cell, width):<{width}}" for cell, width in shortened).rstrip() + more
        if number or line:
            yield _faint(line, terminal) if number == 0 else line


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
