"""``omnizarr missing``: chunks that are not stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, Final

import click

from omnizarr.cli.locate import Storage, open_node
from omnizarr.cli.options import command, is_quiet, json_option, path_argument, quiet_option, storage_options
from omnizarr.cli.progress import wanted
from omnizarr.cli.text import to_json
from omnizarr.cli.trace import traced
from omnizarr.errors import StoreLimitError
from omnizarr.nodes import wording
from omnizarr.nodes.array import Array
from omnizarr.nodes.members import UnreadableNode
from omnizarr.support.text import visible
from omnizarr.tools.describe import walk
from omnizarr.tools.missing import missing as find
from omnizarr.tools.missing.absent import MissingChunks

PROBLEM = 1
_MOST_ITEMS: Final = 10**7
"""Chunks of an array that are printed one by one."""


def _selection(region: tuple[slice, ...]) -> str:
    return ", ".join(f"{part.start}:{part.stop}" for part in region)


_FORMS: Final[
    dict[str, tuple[Callable[[MissingChunks], Iterable[Any]], Callable[[Any], str], Callable[[Any], Any]]]
] = {
    "coords": (MissingChunks.coords, lambda coords: ",".join(map(str, coords)), list),
    "regions": (MissingChunks.regions, _selection, lambda region: [[part.start, part.stop] for part in region]),
    "keys": (MissingChunks.keys, visible, str),
}
"""How to get items, and how to show one as a line and as JSON."""


@command()
@path_argument
@click.option("--coords", "form", flag_value="coords", default="coords", help="Print coordinates: 0,3,1. The default.")
@click.option("--regions", "form", flag_value="regions", help="Print regions of elements: 0:10, 20:40.")
@click.option("--keys", "form", flag_value="keys", help="Print keys in the store.")
@click.option("--inner", is_flag=True, help="Look for inner chunks of shards, which reads the index of each shard.")
@click.option("--count", "only_count", is_flag=True, help="Print only the number of missing chunks.")
@storage_options
@quiet_option
@json_option
@traced
def missing(path: str, storage: Storage, *, form: str, inner: bool, only_count: bool, as_json: bool) -> int:
    """List the chunks of an array that are not stored.

    Reading them returns the fill value. For a group, all arrays below it are listed, and each line begins with the path
    of the array. The number of missing chunks is printed on stderr. This takes one listing per array, and reads no
    chunk.

    \b
    Examples:
      omnizarr missing era5.zarr/t2m
      omnizarr missing --regions era5.zarr/t2m
      omnizarr missing --keys era5.zarr
      omnizarr missing --inner --count era5.zarr/t2m

    \b
    Exit codes:
      0  done, whether or not chunks are missing
      1  not found, or an array cannot be read
      2  the command is not valid
    """  # noqa: D301 - click's mark of lines to be kept
    if inner and form == "keys":
        raise click.UsageError("inner chunks have no keys: leave out --inner or --keys")
    node = open_node(path, storage)
    is_alone = isinstance(node, Array)
    arrays = [node] if isinstance(node, Array) else map(itemgetter(1), walk(node))
    show = _print_json if as_json else _print_lines
    return show(arrays, len(node.store_path.prefix), form, inner=inner, only_count=only_count, is_alone=is_alone)


def _found(arrays: Iterable[Any], *, inner: bool) -> Iterator[tuple[Any, MissingChunks | None]]:
    """Yield each array with its missing chunks; None for a node that cannot be read."""
    for node in arrays:
        if isinstance(node, UnreadableNode):
            yield node, None
        elif isinstance(node, Array):
            yield node, find(node, inner=inner, progress=wanted())


def _items(found: MissingChunks, form: str) -> Iterable[Any]:
    """Return what is printed of the missing chunks, in any form but regions one by one."""
    if form != "regions" and found.count > _MOST_ITEMS:
        raise StoreLimitError(
            "there are too many missing chunks to print each",
            path=found.path,
            found=f"{found.count:,}",
            expected=f"at most {_MOST_ITEMS:,}",
            remedy="print --regions, which are few where chunks are side by side, or their --count",
        )
    return _FORMS[form][0](found)


def _print_lines(arrays: Iterable[Any], skip: int, form: str, *, inner: bool, only_count: bool, is_alone: bool) -> int:
    _, text, _ = _FORMS[form]
    code = count = expected = 0
    unit = "chunk"
    for node, found in _found(arrays, inner=inner):
        name = visible(f"/{node.path[skip:]}")
        if found is None:
            click.echo(f"omnizarr: {name}: {node.error}", err=True)
            code = PROBLEM
            continue
        count, expected, unit = count + found.count, expected + found.expected, found.unit if is_alone else "chunk"
        before = "" if is_alone or form == "keys" else f"{name}  "
        if only_count:
            click.echo(f"{before}{found.count}")
            continue
        for item in _items(found, form):
            click.echo(f"{before}{text(item)}")
    if not is_quiet():
        click.echo(f"{count:,} of {wording.plural(expected, unit)} missing", err=True)
    return code


def _print_json(arrays: Iterable[Any], skip: int, form: str, *, inner: bool, only_count: bool, is_alone: bool) -> int:
    """Print one document piece by piece, because there may be millions of items."""
    _, _, plain = _FORMS[form]
    code = 0
    if not is_alone:
        click.echo("[", nl=False)
    for number, (node, found) in enumerate(_found(arrays, inner=inner)):
        click.echo(("," if number else "") + ("" if is_alone else "\n"), nl=False)
        if found is None:
            click.echo(to_json({"path": f"/{node.path[skip:]}", "problem": str(node.error)}), nl=False)
            code = PROBLEM
            continue
        head = to_json({**found.to_dict(), "path": f"/{node.path[skip:]}"})
        if only_count:
            click.echo(head, nl=False)
            continue
        click.echo(f'{head[:-1]}, "{form}": [', nl=False)
        for position, item in enumerate(_items(found, form)):
            click.echo(f"{',' if position else ''}\n  {json.dumps(plain(item))}", nl=False)
        click.echo("\n]}", nl=False)
    click.echo("" if is_alone else "\n]")
    return code
