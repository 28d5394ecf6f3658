"""Output of ``omnizarr info | tree | ls | get``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, TypeAlias

import click

from omnizarr.cli import labels, listing, several, values
from omnizarr.cli.locate import Storage, open_node
from omnizarr.cli.options import (
    command,
    json_option,
    long_storage_options,
    path_argument,
    paths_argument,
    quiet_option,
    refuse_options,
    storage_options,
)
from omnizarr.cli.progress import tracking
from omnizarr.cli.selections import Part, parse, select
from omnizarr.cli.text import branches, fit, note_lines, to_json
from omnizarr.cli.trace import traced
from omnizarr.errors import ContainsGroupError, OmnizarrError, StoreError
from omnizarr.model import Note
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.info import ArrayFacts, Facts, GroupFacts, UnreadableFacts
from omnizarr.nodes.labels import positions
from omnizarr.nodes.members import UnreadableNode
from omnizarr.stores import pipelines
from omnizarr.support.lazy import Lazy
from omnizarr.support.progress import Tick
from omnizarr.support.text import visible
from omnizarr.tools import reaching
from omnizarr.tools import survey as surveys
from omnizarr.tools.describe import describe, describe_all, walk, with_meaning
from omnizarr.tools.survey import Survey

if TYPE_CHECKING:
    from omnizarr.cli import du as sizes
    from omnizarr.cli import show as around
    from omnizarr.netcdf import repairs as netcdf
else:  # imported when first used, as listing a directory needs no netCDF
    netcdf = Lazy("omnizarr.netcdf.repairs")
    sizes = Lazy("omnizarr.cli.du")
    around = Lazy("omnizarr.cli.show")

PROBLEM = 1
Notes: TypeAlias = Mapping[str, tuple[Note, ...]]


@command()
@path_argument
@storage_options
@quiet_option
@json_option
@traced
def info(path: str, as_json: bool, storage: Storage) -> int:  # noqa: FBT001 - click passes by name
    """Show the metadata of a node, and how much of it is stored.

    For an array: data type, shape, chunks, codecs, attributes and the number of stored chunks. For a group: all arrays
    below it. Every key below PATH is listed to count chunks, and consolidated metadata is compared with the documents.
    If an array cannot be read, the reason is shown. In a remote store, members come from consolidated metadata if there
    is any; a web server cannot list, so the number of stored chunks is unknown there.

    \b
    Examples:
      omnizarr info era5.zarr
      omnizarr info era5.zarr/t2m
      omnizarr info --json era5.zarr | jq '.nodes[].path'
      omnizarr info --trace https://example.org/era5.zarr
    """  # noqa: D301 - click's mark of lines to be kept
    node = open_node(path, storage)
    notes = _notes_of_netcdf(node)
    with tracking("counting") as shown:
        survey = _survey(node, shown.count)
        facts = describe(node, shown.count, notes, survey)
    facts = with_meaning(facts, around.in_its_group(node, path, storage) if isinstance(node, Array) else node)
    if isinstance(facts, ArrayFacts):
        about = node.store.about_node(node.path.strip("/"))
        if as_json:
            more: dict[str, Any] = {"pipeline": pipelines.of(node.store, node.path, node.zarr_format)}
            more |= {"about": about} if about else {}
            _print([to_json(facts.to_json() | more, indent=2)])
        else:
            _print(listing.array_card(_title(path), about, facts))
            _print(_pipeline_lines(path, node))
            _print(listing.about_lines(about, facts.notes))
        return _code([facts])
    if isinstance(facts, UnreadableFacts):
        _print([to_json(facts.to_json(), indent=2)] if as_json else [listing.unreadable_line(facts)])
        return PROBLEM
    show = _info_json if as_json else _info_text
    return show(_title(path), node, facts, notes, survey)  # type: ignore[arg-type]


def _pipeline_lines(path: str, node: Array | Group) -> Iterator[str]:
    """Yield the pipeline of a node that was asked for by one, or that lies within something else than a directory."""
    found = pipelines.of(node.store, node.path, node.zarr_format)
    if found is not None and ("|" in path or found.count("|") > 1):
        yield f"  pipeline    {fit(visible(found))}"


def _survey(node: Array | Group, tick: Tick) -> Survey | None:
    """Return the result of one listing for all nodes, if that costs less than one request per node; else None."""
    if isinstance(node, Array):
        return None
    try:
        return surveys.of(node, list(map(itemgetter(1), walk(node))), tick) if surveys.is_worthwhile(node) else None
    except StoreError:  # is reported for each node
        return None


def _notes_of_netcdf(node: Array | Group) -> Notes:
    """Return netCDF's notes on nodes; if the store cannot be read, the error is shown elsewhere."""
    try:
        return netcdf.repairs(node.store_path, node if isinstance(node, Group) else None)
    except OmnizarrError:
        return {}


def _info_text(title: str, group: Group, facts: GroupFacts, notes: Notes, survey: Survey | None) -> int:
    about = group.store.about()
    _print(listing.group_lines(title, about, facts))
    _print(_pipeline_lines(title, group))
    _print(listing.about_lines(about, facts.notes))
    _print(listing.remark_lines(reaching.remark(group)))
    reaching.check_members(group)
    sums = _Sums()
    with _facts_below(group, notes, survey) as below:
        for found in below:
            sums.add(found)
            _print(listing.block(found))
    _print([listing.total(sums.arrays, sums.groups, sums.stored, sums.logical)])
    return max(sums.code, _code([facts]))


def _info_json(title: str, group: Group, facts: GroupFacts, notes: Notes, survey: Survey | None) -> int:
    unknown, about = reaching.remark(group), group.store.about()
    more: dict[str, Any] = {"pipeline": pipelines.of(group.store, group.path, group.zarr_format)}
    more |= ({"unknown": unknown} if unknown else {}) | ({"about": about} if about else {})
    head = to_json(facts.to_json() | more, indent=2)
    click.echo(head[: head.rindex("\n}")] + ',\n  "nodes": [', nl=False)
    sums = _Sums()
    with _facts_below(group, notes, survey) as below:
        for number, found in enumerate(below):
            sums.add(found)
            click.echo(f"{',' if number else ''}\n    {to_json(found.to_json())}", nl=False)
    totals = {"groups": sums.groups, "arrays": sums.arrays, "bytes_stored": sums.stored, "bytes_logical": sums.logical}
    click.echo(f'\n  ],\n  "totals": {to_json(totals)}\n}}')
    return max(sums.code, _code([facts]))


class _Sums:
    """Totals of a hierarchy."""

    def __init__(self) -> None:
        self.arrays = self.logical = self.code = 0
        self.stored: int | None = 0
        self.groups = 1

    def add(self, facts: Facts) -> None:
        """Count a node."""
        self.code = max(self.code, _code([facts]))
        if isinstance(facts, ArrayFacts):
            self.arrays += 1
            self.stored = (
                None if self.stored is None or facts.bytes_stored is None else self.stored + facts.bytes_stored
            )
            self.logical += facts.bytes_logical or 0
        self.groups += isinstance(facts, GroupFacts)


@contextmanager
def _facts_below(group: Group, notes: Notes, survey: Survey | None) -> Iterator[Iterator[Facts]]:
    # On a terminal, lines and a progress display would mix.
    with tracking("counting", hidden=sys.stdout.isatty()) as shown:
        nodes = map(itemgetter(1), walk(group)) if survey is None else survey.nodes
        yield describe_all(nodes, shown.count, notes, group.store.features.concurrency, survey)


def _code(facts: Iterable[Facts]) -> int:
    return PROBLEM if any(isinstance(found, UnreadableFacts) or found.problem is not None for found in facts) else 0


@command()
@path_argument
@click.option("-L", "--level", type=click.IntRange(min=1), metavar="N", help="Show at most N levels.")
@storage_options
@quiet_option
@json_option
@traced
def tree(path: str, level: int | None, as_json: bool, storage: Storage) -> int:  # noqa: FBT001
    """Draw a hierarchy as a tree.

    Groups and arrays are shown with the shape and data type of each array.

    \b
    Examples:
      omnizarr tree era5.zarr
      omnizarr tree -L 1 era5.zarr
    """  # noqa: D301 - click's mark of lines to be kept
    node = _with_members(path, storage)
    if as_json:
        return _list_json(node, None if level is None else level - 1)
    if isinstance(node, Array):
        click.echo(listing.short_line(_title(path), node))
        _tell_notes(node)
        return 0
    click.echo(_title(path))
    code = 0
    for line, found in listing.tree_lines(node, branches(), level):
        click.echo(line)
        code = max(code, PROBLEM * isinstance(found, UnreadableNode))
    _tell_notes(node)
    return code


def _tell_notes(node: Array | Group) -> None:
    """Print what a file of another format has that is not shown, on stderr."""
    for line in note_lines(node.store.about()):
        click.echo(line, err=True)


@command()
@paths_argument
@click.option("-l", "--long", is_flag=True, help="Show type, shape, stored chunks and sizes; every key is listed.")
@click.option("-r", "--recursive", is_flag=True, help="List everything below, with full paths.")
@storage_options
@quiet_option
@json_option
@traced
def ls(paths: tuple[str, ...], *, long: bool, recursive: bool, as_json: bool, storage: Storage) -> int:
    """List the members of a group.

    Each member has its own line, with the shape and data type of an array. With --long, "chunks" has the number of
    stored chunks and of possible ones; "stored" is the size of chunks and documents, for a group of everything below
    it; "ratio" is the size in memory divided by "stored". With several paths, each has a heading.

    \b
    Examples:
      omnizarr ls era5.zarr
      omnizarr ls -l era5.zarr
      omnizarr ls era5.zarr scan.zarr
      omnizarr ls -r era5.zarr | grep float32
    """  # noqa: D301 - click's mark of lines to be kept

    def show(path: str) -> int:
        return _list(path, storage, long=long, recursive=recursive, as_json=as_json)

    return several.each(paths, show, as_json=as_json, name="members")


def _list(path: str, storage: Storage, *, long: bool, recursive: bool, as_json: bool) -> int:
    node = _with_members(path, storage)
    if long:
        return sizes.list_long(node, node.basename or _title(path), recursive=recursive, as_json=as_json)
    if as_json:
        return _list_json(node, None if recursive else 0)
    if isinstance(node, Array):
        click.echo(listing.short_line(node.basename or _title(path), node))
        return 0
    if recursive:
        click.echo(listing.short_line("/", node))
    code = 0
    for _, found in walk(node, None if recursive else 0):
        name = f"/{found.path[len(node.store_path.prefix) :]}" if recursive else found.basename
        click.echo(listing.short_line(name, found))
        code = max(code, PROBLEM * isinstance(found, UnreadableNode))
    _tell_notes(node)
    return code


def _with_members(path: str, storage: Storage) -> Array | Group:
    """Return the node at a path; raises StoreError if its members cannot be known."""
    node = open_node(path, storage)
    reaching.check_members(node)
    return node


def _list_json(node: Array | Group, max_depth: int | None) -> int:
    """Print nodes as one JSON list, an entry per line."""
    found: Iterable[Any] = [node] if isinstance(node, Array) else map(itemgetter(1), walk(node, max_depth))
    code = 0
    click.echo("[", nl=False)
    for number, below in enumerate(found):
        click.echo(f"{',' if number else ''}\n  {listing.short_json(below)}", nl=False)
        code = max(code, PROBLEM * isinstance(below, UnreadableNode))
    click.echo("\n]")
    return code


# A selection may begin with a minus sign.
@command(context_settings={"ignore_unknown_options": True})
@path_argument
@click.argument("selection", nargs=-1)
@click.option("--csv", "form", flag_value="csv", help="Print comma-separated values; one or two dimensions.")
@click.option("--json", "form", flag_value="json", help="Print JSON: nested lists; NaN and infinities as strings.")
@click.option("--npy", "form", flag_value="npy", help="Write a file that numpy.load reads.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write to a file instead of stdout."
)
@click.option("--allow-pickle", is_flag=True, help="Read pickled objects, which can run any code.")
@long_storage_options
@traced
def get(
    path: str,
    selection: tuple[str, ...],
    form: str | None,
    output: str | None,
    storage: Storage,
    *,
    allow_pickle: bool,
) -> int:
    """Print elements of an array.

    Type SELECTION as in Python, in quotes: integers, slices, "...", one list, names of fields; or names of dimensions
    with coordinates: lat=52.5, lat=40:50 with both ends, time=2020-01 for the whole month, time=2020-01..2020-03, and
    x=3 by position if x has no coordinates. Without SELECTION, the whole array is printed. Like NumPy, omnizarr
    shortens the output of a large array, and reads only what it prints; --csv, --json and --npy print all elements.

    \b
    Examples:
      omnizarr get era5.zarr/t2m "0:10, ::2, -1"
      omnizarr get era5.zarr/t2m time=2020-01 lat=40:50
      omnizarr get era5.zarr/t2m --csv 0 > first.csv
      omnizarr get era5.zarr/t2m --npy -o t2m.npy
    """  # noqa: D301 - click's mark of lines to be kept
    refuse_options((path, *selection))
    wanted = labels.parse(selection)
    chosen = () if wanted else parse(" ".join(selection))
    if form == "npy" and output is None and sys.stdout.isatty():
        raise click.UsageError("--npy writes binary data, which a terminal cannot show: use -o FILE, or a pipe")
    array = open_node(path, storage)
    if not isinstance(array, Array):
        raise ContainsGroupError(
            "PATH is a group, not an array", remedy=f"choose one of its arrays: omnizarr ls -r {visible(path)}"
        )
    if wanted:
        array = around.in_its_group(array, path, storage)  # which has the coordinates
    if allow_pickle:
        array = array.with_config({"allow_pickle": True})
    _write(select(array, positions(array, wanted) if wanted else chosen), form, output)
    return 0


def _write(part: Part, form: str | None, output: str | None) -> None:
    if form is None:
        with _text_to(output) as out:
            values.write_text(part, out)
        return
    with tracking("reading", part.size, "element") as shown:
        if form == "npy":
            with _bytes_to(output) as binary:
                values.write_npy(part, binary, shown.count)
            return
        with _text_to(output) as out:
            if form == "csv":
                values.write_csv(part, out, shown.count)
            else:
                values.write_json(part, out, shown.count)


@contextmanager
def _text_to(output: str | None) -> Iterator[IO[str]]:
    if output is None:
        yield sys.stdout
        return
    with _replacing(output) as name, Path(name).open("w", encoding="utf-8", newline="") as file:
        yield file


@contextmanager
def _bytes_to(output: str | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        return
    with _replacing(output) as name, Path(name).open("wb") as file:
        yield file


@contextmanager
def _replacing(output: str) -> Iterator[str]:
    """Yield the name of a temporary file, which becomes `output` on success, so that no incomplete file appears."""
    target = Path(output)
    if target.exists() and not target.is_file():  # a pipe, or /dev/null
        yield output
        return
    part = f"{output}.{os.getpid()}.part"
    try:
        yield part
        Path(part).replace(output)
    finally:
        Path(part).unlink(missing_ok=True)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _title(path: str) -> str:
    """Return the name of the requested node."""
    return fit(visible(path.rstrip("/") or "/"))
