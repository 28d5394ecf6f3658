"""``omnizarr pyramid``: the levels of a multiscale image."""

from __future__ import annotations

from typing import Any, Final

import click

from omnizarr.cli.locate import Storage, storage_of_both
from omnizarr.cli.options import (
    PLACE,
    command,
    dry_run_option,
    json_option,
    max_memory_option,
    quiet_option,
    scheduler_option,
    storage_options,
)
from omnizarr.cli.progress import wanted
from omnizarr.cli.remedies import message
from omnizarr.cli.text import fit, to_json
from omnizarr.nodes import wording
from omnizarr.support.text import visible
from omnizarr.tools.pyramid import pyramid as make_pyramid
from omnizarr.tools.pyramid.building import Pyramid


def _named(what: str, convert: Any) -> Any:
    """Return a parser for ``z=1,y=2``; numbers can also be a single one for all axes."""

    def parse(text: str) -> Any:
        if "=" not in text and convert is int and text.isdecimal():
            return int(text)
        pairs = [part.partition("=") for part in text.split(",")]
        try:
            named = {name.strip(): convert(value.strip()) for name, _, value in pairs}
        except ValueError:
            named = {}
        if not named or not all(name.strip() and value.strip() for name, _, value in pairs):
            raise click.BadParameter(f"{text!r}: expected {what}")
        return named

    return parse


def _axes(text: str) -> list[str]:
    return text.split(",") if "," in text else list(text)


@command()
@click.argument("source", metavar="SRC", type=PLACE)
@click.argument("target", metavar="[DST]", type=PLACE, required=False)
@click.option(
    "--method",
    type=click.Choice(["mean", "mode", "max", "min", "nearest"]),
    help="How to combine a block of elements; default: mean, and mode for labels.",
)
@click.option(
    "--levels", type=click.IntRange(min=1), metavar="N", help="Total number of levels; default: down to 256 elements."
)
@click.option(
    "--factor",
    type=_named("a number, or numbers for axes: z=1,y=2,x=2", int),
    default="2",
    metavar="N",
    show_default=True,
    help="Number of elements to combine along axes of space, or by name: z=1,y=2,x=2.",
)
@click.option("--axes", type=_axes, metavar="NAMES", help="Axes of an array: tczyx; default: names of its dimensions.")
@click.option(
    "--scale",
    type=_named("lengths of axes: z=1,y=0.5,x=0.5", float),
    metavar="LENGTHS",
    help="Length of an element along axes of an array: z=1,y=0.5,x=0.5.",
)
@click.option(
    "--unit",
    type=_named("units of axes: space=micrometer", str),
    metavar="UNITS",
    help="Units of axes of an array: space=micrometer,t=second.",
)
@click.option(
    "--ome-version",
    type=click.Choice(["0.4", "0.5", "0.6"]),
    help="Version of OME-Zarr. Default: that of the image; else 0.4 in Zarr v2, 0.5 in v3.",
)
@click.option(
    "--convention",
    type=click.Choice(["ome", "geozarr"]),
    default="ome",
    show_default=True,
    help="Kind of metadata: OME-Zarr, or GeoZarr for maps.",
)
@click.option("--overwrite", is_flag=True, help="Replace existing levels; with DST, the whole image.")
@click.option("--resume", is_flag=True, help="Continue an interrupted command.")
@dry_run_option
@storage_options
@scheduler_option
@max_memory_option
@quiet_option
@json_option
def pyramid(source: str, target: str | None, storage: Storage, *, as_json: bool, **options: Any) -> int:
    """Make the levels of a multiscale image, OME-Zarr or GeoZarr.

    The image becomes OME-Zarr 0.4 in Zarr v2, 0.5 or 0.6 in v3; with --convention geozarr, a map in Zarr v3 with
    multiscales, spatial: and proj: of zarr-conventions. SRC is an array, or a multiscale image with its full
    resolution. With DST, a new image is made there, with a copy of the array. Only axes of space become shorter. The
    levels appear in the metadata when all are complete.

    \b
    Examples:
      omnizarr pyramid cells.zarr/0 --axes czyx --scale z=2,y=0.5,x=0.5 \\
          --unit space=micrometer
      omnizarr pyramid scan.zarr scan.ome.zarr --factor z=1
      omnizarr pyramid cells.ome.zarr --overwrite --method max
      omnizarr pyramid cells.ome.zarr/labels/nuclei --method mode
      omnizarr pyramid era5.zarr/t2m map.zarr --convention geozarr
      omnizarr pyramid big.zarr/0 --scheduler tcp://10.0.0.1:8786 --max-memory 1GiB
    """  # noqa: D301 - click's mark of lines to be kept
    if options["overwrite"] and options["resume"]:
        raise click.UsageError("--overwrite and --resume exclude each other")
    options["storage_options"] = storage_of_both(source, target, storage)
    try:
        made = make_pyramid(source, target, progress=wanted(), **options)
    except (TypeError, ValueError) as error:
        if type(error) in (TypeError, ValueError):
            raise click.UsageError(message(error)) from None
        raise
    if as_json:
        click.echo(to_json(made.to_dict(), indent=2))
        return 0
    for line in _lines(made):
        click.echo(fit(line))
    return 0


_KINDS: Final = {"ome": "OME-Zarr {} image", "geozarr": "GeoZarr map"}


def _lines(made: Pyramid) -> list[str]:
    verb = "would have" if made.dry_run else "has"
    count = wording.plural(len(made.levels), "level")
    rows: list[tuple[str, ...]] = [("level", "shape", "scale", "translation")]
    for level in made.levels:
        numbers = [",".join(f"{each:.10g}" for each in several) for several in (level.scale, level.translation)]
        rows.append((level.path, wording.lengths(level.shape), *numbers))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    return [
        f"{_KINDS[made.convention].format(made.version)}, axes {','.join(made.axes)}, {verb} {count} by {made.method}",
        *("  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows),
        *(f"note: {visible(remark)}" for remark in made.remarks),
    ]
