"""Aligned columns, printed as rows arrive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import click

_HELD: Final = 1000
"""Number of rows that decide the column widths before the first one is printed; wider later rows widen columns."""
_GAP: Final = "  "


class Column(NamedTuple):
    """A column of a table; the last one has any width."""

    name: str
    is_number: bool = False
    """Whether it is aligned to the right."""


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a header line and a line for each row, in constant memory.

    >>> lines = table([Column("size", is_number=True), Column("name")], [("9", "a"), ("12345", "b")])
    >>> [click.unstyle(line) for line in lines]
    [' size  name', '    9  a', '12345  b']
    """
    widths = [len(column.name) for column in columns]
    remaining = iter(rows)
    held = list(islice(remaining, _HELD))
    is_first = True
    while held or is_first:
        for row in held:
            widths = [max(width, len(click.unstyle(text))) for width, text in zip(widths, row, strict=True)]
        if is_first:
            yield click.style(_line(columns, [column.name for column in columns], widths), dim=True)
            is_first = False
        yield from (_line(columns, row, widths) for row in held)
        held = list(islice(remaining, _HELD))


def _line(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> str:
    cells = []
    for column, text, width in zip(columns, row, widths, strict=True):
        space = " " * (width - len(click.unstyle(text)))
        cells.append(space + text if column.is_number else text + space)
    return _GAP.join(cells).rstrip()
