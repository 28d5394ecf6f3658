"""``omnizarr diff``: the differences between two hierarchies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from omnizarr.cli.locate import Storage, is_url, open_node
from omnizarr.cli.options import (
    PLACE,
    command,
    concurrency_option,
    json_option,
    max_memory_option,
    quiet_option,
    scheduler_option,
    storage_options,
)
from omnizarr.cli.progress import wanted
from omnizarr.cli.remedies import message
from omnizarr.cli.text import fit, one_line, shorten, to_json
from omnizarr.errors import OmnizarrError
from omnizarr.nodes import wording
from omnizarr.support.text import visible
from omnizarr.tools.diff import diff as diff_hierarchies
from omnizarr.tools.diff.report import Diff, Difference

EQUAL: Final = 0
DIFFERENT: Final = 1
TROUBLE: Final = 2

_MOST: Final = 20
"""Differences of one node that are shown."""
_LONGEST: Final = 200


@command()
@click.argument("left", metavar="A", type=PLACE)
@click.argument("right", metavar="B", type=PLACE)
@click.option("--rtol", type=float, default=0.0, metavar="NUMBER", help="Relative tolerance for numbers.")
@click.option("--atol", type=float, default=0.0, metavar="NUMBER", help="Absolute tolerance for numbers.")
@click.option("--storage", "of_storage", is_flag=True, help="Also compare format, chunks, codecs and fill value.")
@click.option("--no-values", "values", is_flag=True, flag_value=False, default=True, help="Do not compare elements.")
@click.option("--allow-pickle", is_flag=True, help="Read pickled objects, which can run any code.")
@concurrency_option
@scheduler_option
@max_memory_option
@storage_options
@quiet_option
@json_option
def diff(left: str, right: str, storage: Storage, *, of_storage: bool, as_json: bool, **options: Any) -> int:
    """Compare two arrays or hierarchies in any formats.

    This compares nodes, attributes, shapes, data types, names of dimensions, and values: everything that a conversion
    keeps. NaN is equal to NaN, and -0.0 to 0.0. Only --storage compares how elements are stored. Elements are streamed,
    so arrays can be larger than memory.

    \b
    Examples:
      omnizarr diff old.zarr new.zarr
      omnizarr diff --rtol 1e-6 old.zarr/t2m new.zarr/t2m
      omnizarr diff --storage --no-values era5.zarr backup.zarr
      omnizarr diff --quiet era5.zarr s3://bucket/era5.zarr && echo same

    \b
    Exit codes:
      0  equal
      1  different
      2  something could not be compared
    """  # noqa: D301 - click's mark of lines to be kept
    try:
        places = [open_node(text, storage if is_url(text) else None) for text in (left, right)]
        found = diff_hierarchies(*places, storage=of_storage, progress=wanted(), **options)
    except (OmnizarrError, OSError, ValueError) as error:
        click.echo(f"omnizarr: {one_line(message(error))}", err=True)
        return TROUBLE
    if as_json:
        click.echo(to_json({**found.to_dict(), "left": left, "right": right}, indent=2))
    else:
        for line in _lines(found, of_storage=of_storage):
            click.echo(line)
    if found.problems:
        return TROUBLE
    return DIFFERENT if found else EQUAL


def _lines(found: Diff, *, of_storage: bool) -> Iterator[str]:
    nodes: dict[str, list[Difference]] = {}
    for each in found:
        nodes.setdefault(each.path, []).append(each)
    for path, differences in nodes.items():
        yield click.style(visible(f"/{path}"), bold=True)
        for each in differences[:_MOST]:
            if each.values is not None:
                head, _, rest = one_line(each.text).partition(", first")
                yield f"  {head}"
                yield fit(f"    first{rest}")
            elif each.kind == "storage":
                yield f"  {each.name.replace('_', ' ')}"
                for sign, value in (("<", each.left), (">", each.right)):
                    yield fit(
                        f"    {sign} {shorten(one_line(value if isinstance(value, str) else to_json(value)), _LONGEST)}"
                    )
            else:
                yield fit(f"  {one_line(each.text)}")
        if len(differences) > _MOST:
            yield f"  and {len(differences) - _MOST:,} more"
    for path, why in found.problems:
        yield click.style(visible(f"/{path}"), bold=True)
        yield f"  cannot be compared: {one_line(why)}"
    yield fit(found.summary())
    names = sorted({each.name.replace("_", " ") for each in found.storage})
    if names and not of_storage:
        count = len({each.path for each in found.storage})
        yield fit(f"{wording.plural(count, 'array')} stored otherwise: {', '.join(names)} (--storage shows how)")
