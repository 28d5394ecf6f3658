"""``omnizarr advise``: chunks and shards for what is read of an array."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import click

from omnizarr.cli.locate import Storage, open_node
from omnizarr.cli.options import PLACE, command, json_option, quiet_option, storage_options
from omnizarr.cli.remedies import message
from omnizarr.cli.tables import Column, table
from omnizarr.cli.text import fit, to_json
from omnizarr.cli.trace import traced
from omnizarr.errors import ContainsGroupError, OmnizarrError
from omnizarr.nodes import wording
from omnizarr.nodes.array import Array
from omnizarr.support.text import visible
from omnizarr.tools.advise import advise as ask
from omnizarr.tools.advise.layouts import Layout
from omnizarr.tools.advise.places import PLACES
from omnizarr.tools.advise.report import Advice

_WIDTH = 100


def _shape(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(length) for length in text.removesuffix(",").split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r}: lengths are typed as in 8760,721,1440") from None


@command()
@click.argument("path", type=PLACE, required=False)
@click.option("--shape", type=_shape, metavar="LENGTHS", help="Shape of a new array, in place of PATH.")
@click.option("--dtype", metavar="TYPE", help="Data type of a new array, as in float32.")
@click.option(
    "--read",
    "reads",
    multiple=True,
    metavar="WINDOW",
    help="What you typically read. Can be repeated. Default: rows and columns, or time series and maps.",
)
@click.option(
    "--place", type=click.Choice(sorted(PLACES)), help="Where the data is stored; default: like PATH, or local."
)
@click.option("--no-shards", "shards", flag_value=False, default=True, help="Advise on chunks only, without shards.")
@click.option("--ratio", type=float, metavar="NUMBER", help="Assumed ratio of bytes in memory to stored bytes.")
@storage_options
@quiet_option
@json_option
@traced
def advise(path: str | None, storage: Storage, *, reads: Sequence[str], as_json: bool, **options: Any) -> int:
    """Advise on chunks and shards for an array.

    PATH is an existing array, whose layout is compared with the advice. For a new array, use --shape and --dtype.
    WINDOW is what you typically read, anywhere in the array: "time series", "maps", "points", "all"; lengths, as in
    "*,1,1", where * is all of a dimension; or "time=*,lat=10". "3x maps" is read three times as often as the others.

    \b
    Examples:
      omnizarr advise era5.zarr/t2m
      omnizarr advise era5.zarr/t2m --read "time series" --read "3x maps"
      omnizarr advise --shape 8760,721,1440 --dtype float32 --read "*,1,1"

    \b
    Exit codes:
      0  done
      1  not found
      2  the command is not valid
    """  # noqa: D301 - click's mark of lines to be kept
    if (path is None) == (options["shape"] is None):
        raise click.UsageError("give PATH, or --shape and --dtype")
    if (options["shape"] is None) != (options["dtype"] is None):
        raise click.UsageError("--shape and --dtype go together")
    node = None if path is None else open_node(path, storage)
    if node is not None and not isinstance(node, Array):
        remedy = f"choose one of its arrays: omnizarr ls -r {visible(path or '')}"
        raise ContainsGroupError("PATH is a group, not an array", remedy=remedy)
    try:
        advice = ask(node, reads=list(reads) or None, **options)
    except (OmnizarrError, OSError):
        raise
    except (ValueError, TypeError) as error:
        raise click.UsageError(message(error)) from None
    if as_json:
        click.echo(to_json(advice.to_dict(), indent=2))
    else:
        for line in _lines(advice, path):
            click.echo(line)
    return 0


def _lines(advice: Advice, path: str | None) -> Iterator[str]:
    size = wording.size(round(advice.advised.item_bytes * _volume(advice.shape)))
    head = (
        f"{visible(advice.data_type)} {wording.lengths(advice.shape)} · {size} in memory · {PLACES[advice.place].title}"
    )
    yield fit(f"{click.style(visible(path), bold=True)}  {head}" if path else head)
    yield ""
    layouts = [("advised", advice.advised), *([] if advice.current is None else [("now", advice.current)])]
    yield from map(fit, table(*_layouts(layouts)))
    yield ""
    yield from map(fit, table(*_reads(advice, layouts)))
    yield ""
    for reason in advice.reasons:
        yield from map(fit, textwrap.wrap(reason, _WIDTH, break_long_words=False))
    yield ""
    chunks = f" --chunks {_typed(advice.chunks)}" if advice.chunks else ""
    shards = f" --shards {_typed(advice.shards)}" if advice.shards else ""
    if path is not None:
        yield f"omnizarr convert {visible(path)} DST{chunks}{shards}"
    given = "" if advice.shards is None else f", shards={advice.shards}"
    yield f"create_array(..., chunks={advice.chunks}{given})"


def _volume(shape: Sequence[int]) -> int:
    volume = 1
    for length in shape:
        volume *= length
    return volume


def _layouts(layouts: Sequence[tuple[str, Layout]]) -> tuple[list[Column], list[tuple[str, ...]]]:
    columns = [Column(""), Column("chunks"), Column("shards")]
    columns += [Column(name, is_number=True) for name in ("chunk stored", "objects", "stored in all")]
    rows: list[tuple[str, ...]] = []
    for name, layout in layouts:
        chunk, all_ = layout.chunk_nbytes / layout.ratio, layout.nbytes
        shards = "none" if layout.shards is None else wording.lengths(layout.shards)
        numbers = wording.size(round(chunk)), f"{layout.objects:,}", wording.size(round(all_))
        rows.append((name, wording.lengths(layout.chunks), shards, *numbers))
    return columns, rows


def _reads(advice: Advice, layouts: Sequence[tuple[str, Layout]]) -> tuple[list[Column], list[tuple[str, ...]]]:
    columns = [Column("to read"), Column("window")]
    for name, _ in layouts:
        when = "" if name == "advised" else f" {name}"
        columns += [Column(f"requests{when}", is_number=True), Column(f"bytes{when}", is_number=True)]
    found = zip(*(advice.reads(layout) for _, layout in layouts), strict=True)
    rows = []
    for each in found:
        numbers = [text for one in each for text in (_number(one.requests), wording.size(round(one.nbytes)))]
        rows.append((visible(each[0].name), wording.lengths(each[0].lengths), *numbers))
    return columns, rows


def _number(mean: float) -> str:
    return f"{mean:.1f}" if mean < 10 and mean != round(mean) else f"{round(mean):,}"


def _typed(lengths: Sequence[int]) -> str:
    return ",".join(map(str, lengths)) + ("," if len(lengths) == 1 else "")
