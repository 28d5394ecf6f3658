"""``omnizarr stat``: minimum, maximum, mean and more of arrays, as a table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import Any, Final

import click
import numpy as np

from omnizarr.cli.locate import Storage, open_node
from omnizarr.cli.options import (
    command,
    concurrency_option,
    json_option,
    max_memory_option,
    path_argument,
    quiet_option,
    scheduler_option,
    storage_options,
)
from omnizarr.cli.progress import wanted
from omnizarr.cli.tables import Column, table
from omnizarr.cli.text import fit, one_line, shorten, to_json
from omnizarr.support.text import text_of_time, visible
from omnizarr.tools.stat import stat as stat_hierarchy
from omnizarr.tools.stat.report import ArrayStat, Stat, Statistics

_PROBLEM: Final = 1
_LONGEST: Final = 24
_NAMES: Final = ("minimum", "maximum", "mean", "std", "NaN", "fill", "missing")
_VALUES: Final = 4
"""How many of `_NAMES` are values. The others are numbers of elements and chunks."""
_NONE: Final = "-"


@command()
@path_argument
@click.option("--skip-fill", is_flag=True, help="Ignore elements that equal the fill value.")
@click.option("--decoded", is_flag=True, help="Scale and mask numbers by their attributes; masked ones are NaN.")
@click.option("--allow-pickle", is_flag=True, help="Read pickled objects, which can run any code.")
@concurrency_option
@scheduler_option
@max_memory_option
@storage_options
@quiet_option
@json_option
def stat(path: str, storage: Storage, *, as_json: bool, **options: Any) -> int:
    """Print minimum, maximum, mean and more of arrays.

    Prints minimum, maximum, mean and standard deviation, ignoring NaN, and the numbers of NaNs, of elements with the
    fill value, and of missing chunks. Elements are used as stored, or with --decoded scaled and masked. They are
    streamed, so arrays can be larger than memory.

    \b
    Examples:
      omnizarr stat era5.zarr
      omnizarr stat --skip-fill era5.zarr/t2m
      omnizarr stat --decoded era5.zarr/t2m
      omnizarr stat --json era5.zarr | jq '.arrays[] | {path, missing}'

    \b
    Exit codes:
      0  done
      1  an array cannot be read
      2  the command is not valid
    """  # noqa: D301 - click's mark of lines to be kept
    found = stat_hierarchy(open_node(path, storage), progress=wanted(), **options)
    if as_json:
        click.echo(to_json(found.to_dict(), indent=2))
    else:
        for line in _lines(found):
            click.echo(line)
    for at, why in found.problems:
        click.echo(f"omnizarr: /{visible(at)}: {one_line(why)}", err=True)
    return _PROBLEM if found.problems else 0


def _lines(found: Stat) -> Iterator[str]:
    rows = [(_name(array, each), *_cells(array, each)) for array in found for each in array.fields]
    if not rows:
        return
    columns = [Column(""), *(Column(name, is_number=True) for name in _NAMES)]
    lines = list(table(columns, rows))
    if max(len(click.unstyle(line)) for line in lines) > shutil.get_terminal_size().columns:
        yield from _blocks(rows)
    else:
        yield from map(fit, lines)


def _blocks(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield two lines for each array, for terminals too narrow for a table."""
    for name, *cells in rows:
        yield click.style(name, bold=True)
        shown = [f"{title} {cell}" for title, cell in zip(_NAMES, cells, strict=True) if cell != _NONE]
        values = sum(cell != _NONE for cell in cells[:_VALUES])
        for part in (shown[:values], shown[values:]):
            if part:
                yield fit(f"  {' · '.join(part)}")


def _name(array: ArrayStat, each: Statistics) -> str:
    return visible(f"/{array.path}") + "".join(f"[{name!r}]" for name in each.field)


def _cells(array: ArrayStat, each: Statistics) -> tuple[str, ...]:
    values = (each.minimum, each.maximum, each.mean, each.std)
    missing = _NONE if array.missing is None else f"{array.missing:,} of {array.chunks:,}"
    fill = _NONE if each.fill is None else f"{each.fill:,}"
    return (*map(_cell, values), f"{each.nan:,}", fill, missing)


def _cell(value: Any) -> str:
    if value is None:
        return _NONE
    if isinstance(value, str | bytes):
        return shorten(visible(repr(value)), _LONGEST)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return text_of_time(value)
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, complex):
        return f"{value:.6g}"
    return f"{float(value):.6g}"
