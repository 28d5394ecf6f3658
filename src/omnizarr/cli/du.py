"""``omnizarr du``: the size of nodes, in their store and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import click

from omnizarr.cli import several
from omnizarr.cli.locate import Storage, open_node
from omnizarr.cli.options import command, json_option, paths_argument, quiet_option, storage_options
from omnizarr.cli.progress import wanted
from omnizarr.cli.tables import Column, table
from omnizarr.cli.text import fit, one_line, to_json
from omnizarr.cli.trace import traced
from omnizarr.nodes import wording
from omnizarr.support.text import visible
from omnizarr.tools.du import du as measure
from omnizarr.tools.du.report import SORTS, NodeUsage, Sort, Usage

PROBLEM = 1
UNKNOWN = "?"


@command(context_settings={"help_option_names": ["--help"]})
@paths_argument
@click.option("-s", "--summarize", is_flag=True, help="Print only the total.")
@click.option(
    "-d", "--max-depth", type=click.IntRange(min=0), metavar="N", help="Print N levels; groups count in full."
)
@click.option("-a", "--all", "in_parts", is_flag=True, help="Split each node into chunks, documents and other files.")
@click.option("-b", "--bytes", "exact", is_flag=True, help="Print numbers of bytes.")
@click.option("-h", "--human-readable", is_flag=True, help="Print sizes in KiB, MiB and GiB (default).")
@click.option("--sort", type=click.Choice(SORTS), default="name", show_default=True, help="Order; largest first.")
@storage_options
@quiet_option
@json_option
@traced
def du(
    paths: tuple[str, ...],
    storage: Storage,
    *,
    summarize: bool,
    max_depth: int | None,
    in_parts: bool,
    exact: bool,
    human_readable: bool,
    sort: Sort,
    as_json: bool,
) -> int:
    """Show how much space nodes take.

    The size of a group includes everything below it, so the last line is the total of all files in a directory.
    "chunks" has the number of stored chunks and of possible ones (shards, if there are any). Other files belong to no
    node: "omnizarr check" lists them by name. Every key below PATH is listed; no chunk is read. With several paths,
    each has a heading.

    \b
    Examples:
      omnizarr du era5.zarr
      omnizarr du -s era5.zarr
      omnizarr du -s era5.zarr scan.zarr
      omnizarr du -d 1 --sort stored era5.zarr
      omnizarr du --json s3://bucket/era5.zarr | jq .total.bytes_stored

    \b
    Exit codes:
      0  done
      1  not found, or a node cannot be read
      2  the command is not valid
    """  # noqa: D301 - click's mark of lines to be kept
    if summarize and max_depth:
        raise click.UsageError("--summarize prints the total only, and --max-depth more: give one of them")
    depth = 0 if summarize else max_depth

    def show(path: str) -> int:
        usage = _measured(open_node(path, storage))
        if as_json:
            click.echo(to_json(_as_json(usage, depth, sort), indent=2))
        else:
            for line in _lines(usage, depth, sort, exact=exact, in_parts=in_parts):
                click.echo(line)
        return PROBLEM if any(found.problem for found in usage.nodes) else 0

    return several.each(paths, show, as_json=as_json)


def _measured(node: Any) -> Usage:
    return measure(node, progress=wanted())


def _as_json(usage: Usage, max_depth: int | None, sort: Sort) -> dict[str, Any]:
    nodes = [node.to_dict() for node in usage.rows(max_depth=max_depth, sort=sort)]
    return {**usage.to_dict(), "nodes": nodes}


def _lines(usage: Usage, max_depth: int | None, sort: Sort, *, exact: bool, in_parts: bool) -> Iterator[str]:
    def rows() -> Iterator[tuple[str, ...]]:
        for node in usage.rows(max_depth=max_depth, sort=sort):
            if in_parts:
                for name, amount in (
                    ("chunks", node.chunks),
                    ("documents", node.documents),
                    ("other files", node.other),
                ):
                    if amount.files:
                        yield size(amount.nbytes, exact=exact), "", "", "", f"{visible(f'/{node.path}')} ({name})"
            yield _row(node, exact=exact)

    columns = [*(Column(name, is_number=True) for name in ("stored", "logical", "ratio", "chunks")), Column("path")]
    yield from table(columns, rows())
    if usage.unlisted:
        yield click.style(
            f"stored: unknown, as the store cannot list its keys: {one_line(usage.unlisted)}", fg="yellow"
        )
        return
    yield fit(" · ".join(_summary(usage.total, exact=exact)))


def _row(node: NodeUsage, *, exact: bool) -> tuple[str, ...]:
    name = visible(f"/{node.path}")
    if node.problem is not None:
        name += f"  ({click.style('cannot be read', fg='red')}: {one_line(node.problem)})"
    sizes = size(node.bytes_stored, exact=exact), size(node.bytes_logical, exact=exact)
    return *sizes, _ratio(node), chunks(node), name


def _summary(total: NodeUsage, *, exact: bool) -> Iterator[str]:
    """Yield the parts of the total."""
    kinds = ((total.chunks, "chunk"), (total.documents, "document"), (total.other, "other file"))
    for amount, noun in kinds:
        if amount.files or amount is not total.other:
            nbytes = f"{amount.nbytes:,} B" if exact else wording.size(amount.nbytes)
            yield f"{nbytes} in {wording.plural(amount.files, noun)}"


def size(nbytes: int | None, *, exact: bool = False) -> str:
    """Return a size as text for a table."""
    if nbytes is None:
        return UNKNOWN
    return str(nbytes) if exact else wording.size(nbytes)


def _ratio(node: NodeUsage) -> str:
    return "-" if node.ratio is None else wording.ratio(node.bytes_logical or 0, node.bytes_stored or 0)


def chunks(node: NodeUsage) -> str:
    """Return the number of stored chunks, and of possible ones."""
    stored = UNKNOWN if node.stored is None else f"{node.stored:,}"
    return f"{stored}/{UNKNOWN if node.expected is None else f'{node.expected:,}'}"


# -- ls -l -----------------------------------------------------------------------------

_COLUMNS = (
    *(Column(name) for name in ("kind", "type", "shape")),
    *(Column(name, is_number=True) for name in ("chunks", "stored", "ratio")),
    Column("name"),
)


def list_long(node: Any, title: str, *, recursive: bool, as_json: bool) -> int:
    """Print the lines of ``ls -l``, or with `as_json` a list with an entry per line; `title` names a lone array."""
    usage = _measured(node)
    if usage.total.node_type == "array" or recursive:
        found = sorted(usage.nodes, key=lambda one: one.path.split("/") if one.path else [])
    else:
        found = sorted(usage.rows(max_depth=1), key=lambda one: one.path)[1:]
        if usage.total.problem is not None:  # its members cannot be listed
            found = [replace(usage.total, node_type="unreadable")]
    if as_json:
        click.echo("[" + ",".join(f"\n  {to_json(one.to_dict())}" for one in found) + "\n]")
    else:
        for line in table(_COLUMNS, (_long_row(one, title, recursive=recursive) for one in found)):
            click.echo(line)
        if usage.unlisted:
            click.echo(
                click.style(f"stored: unknown, as the store cannot list keys: {one_line(usage.unlisted)}", fg="yellow")
            )
    return PROBLEM if any(one.node_type == "unreadable" for one in found) else 0


def _long_row(node: NodeUsage, title: str, *, recursive: bool) -> tuple[str, ...]:
    name = f"/{node.path}" if recursive else node.name or title
    if node.node_type == "unreadable":
        kind = click.style("unreadable", fg="red")
        return kind, "", "", "", size(node.bytes_stored), "", f"{visible(name)}: {one_line(node.problem or '')}"
    shape = "" if node.shape is None else fit(wording.lengths(node.shape))
    data_type = visible(node.data_type or "")
    return node.node_type, data_type, shape, chunks(node), size(node.bytes_stored), _ratio(node), visible(name)
