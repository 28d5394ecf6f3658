"""``omnizarr convert``: convert a hierarchy to another format, and report what was lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from omnizarr.cli import interrupts, labels
from omnizarr.cli.layouts import CODECS_HELP, FORMATS, SPELLED_CODECS, parse_codecs, parse_format, parse_lengths
from omnizarr.cli.locate import Storage, is_url, open_node, storage_of
from omnizarr.cli.options import (
    PLACE,
    command,
    concurrency_option,
    dry_run_option,
    json_option,
    max_memory_option,
    one_of,
    overwrite_option,
    quiet_option,
    scheduler_option,
    storage_options,
)
from omnizarr.cli.progress import wanted
from omnizarr.cli.remedies import message, safe
from omnizarr.cli.text import fit, to_json
from omnizarr.errors import OmnizarrError
from omnizarr.nodes.labels import Label
from omnizarr.nodes.location import StorePath
from omnizarr.stores import LocalStore, kinds, resolve
from omnizarr.support.lazy import Lazy
from omnizarr.support.text import visible
from omnizarr.tools.convert import convert as convert_hierarchy
from omnizarr.tools.convert import journal

if TYPE_CHECKING:
    from omnizarr.netcdf.tools import convert as netcdf
else:  # it imports the model of netCDF
    netcdf = Lazy("omnizarr.netcdf.tools.convert")

PROBLEM: Final = 1


@command()
@click.argument("source", metavar="SRC", type=PLACE)
@click.argument("target", metavar="[DST]", type=PLACE, required=False)
@click.option(
    "--to",
    "zarr_format",
    type=parse_format,
    metavar="FORMAT",
    default="v3",
    show_default=True,
    shell_complete=one_of(FORMATS),
    help="Format to write.",
)
@click.option(
    "--from",
    "source_format",
    type=parse_format,
    metavar="FORMAT",
    shell_complete=one_of(FORMATS),
    help="Format to read, if SRC has documents of several formats.",
)
@click.option(
    "--chunks",
    type=parse_lengths,
    metavar="LENGTHS",
    help="Chunk shape, as in 100,100. With --shards: inner chunks.",
)
@click.option("--shards", type=parse_lengths, metavar="LENGTHS", help="Shard shape, as in 1000,1000, or auto.")
@click.option(
    "--codecs",
    type=parse_codecs,
    metavar="CODECS",
    shell_complete=one_of(SPELLED_CODECS),
    help=CODECS_HELP.format("keep, "),
)
@click.option(
    "--select",
    multiple=True,
    metavar="NAME=WHAT",
    help="Part to convert, by coordinates, as in get: time=2020-01..2020-03. Repeat it for more dimensions.",
)
@click.option(
    "--strings",
    type=click.Choice(["keep", "fixed"]),
    default="keep",
    show_default=True,
    help="Keep strings of any length, or give them the length of the longest (fixed), for readers that have no others.",
)
@dry_run_option
@click.option("--estimate", is_flag=True, help="Report the objects, bytes and time that it would take. Write nothing.")
@overwrite_option
@click.option("--resume", is_flag=True, help="Continue an interrupted conversion.")
@click.option("--verify/--no-verify", default=True, show_default=True, help="Read DST back and compare it with SRC.")
@click.option("--in-place", is_flag=True, help="Write new metadata next to the old, and keep the chunks.")
@click.option("--remove-old", is_flag=True, help="With --in-place: remove the old metadata.")
@click.option("--strict", is_flag=True, help="Fail, and write nothing, if anything would be lost.")
@click.option("-m", "--message", metavar="TEXT", help="Message of the commit, if DST is a branch in Icechunk.")
@click.option(
    "--ome-version",
    type=click.Choice(["0.5", "0.6"]),
    help="Version of OME-Zarr that images become. Default: 0.5 from Zarr v2, or unchanged.",
)
@click.option(
    "--convention",
    type=click.Choice(["nz", "geozarr", "cf", "gdal"]),
    help="Convention to write: nz, for NZ-1.0 (netCDF for Zarr v3, a draft); or where arrays lie on the earth, "
    "as geozarr, cf or gdal.",
)
@click.option("--temporary", metavar="PLACE", type=PLACE, help="Place for temporary objects. Default: next to DST.")
@concurrency_option
@scheduler_option
@max_memory_option
@storage_options
@quiet_option
@json_option
def convert(
    source: str,
    target: str | None,
    codecs: dict[str, Any] | None,
    select: tuple[str, ...],
    storage: Storage,
    *,
    as_json: bool,
    **options: Any,
) -> int:
    """Convert between Zarr formats, netCDF, N5 and others.

    SRC and DST are paths or URLs of hierarchies or arrays. SRC can have any format that omnizarr opens, such as netCDF,
    HDF5, TIFF, FITS, GRIB or N5. It is not changed, unless you type --in-place. Formats of Zarr are v1, v2, v3,
    v3-draft2019 and v3-draft2020. Chunks are copied unchanged if the new format stores them in the same way, and
    encoded again if not. An array appears in DST when it is complete and verified. Everything that the new format
    cannot store is reported. The name of DST can end with .zarr, .zip, .sqlite or .lmdb; .nc and .h5 make netCDF-4
    files, and .n5 an N5 hierarchy; icechunk:///data/repo@main is a branch of Icechunk, in which all is committed at
    once. Names of other files, such as x.tif, become directories only if you type --to.

    \b
    Examples:
      omnizarr convert old.zarr new.zarr
      omnizarr convert old.zarr new.zarr --to v2 --codecs gzip:5
      omnizarr convert old.zarr new.zarr --chunks 100,100 --shards 1000,1000
      omnizarr convert era5.zarr europe.zarr --select time=2020 --select lat=35:70
      omnizarr convert old.zarr --to v1 --dry-run
      omnizarr convert v2.zarr --in-place
      omnizarr convert cells.zarr new.zarr --ome-version 0.6
      omnizarr convert tides.nc tides.zarr
      omnizarr convert old.zarr new.zarr --scheduler tcp://10.0.0.1:8786
      omnizarr convert era5.zarr era5.nc
      omnizarr convert era5.zarr icechunk:///data/repo@main -m "ERA5 of May"

    \b
    Exit codes:
      0  done; losses are printed
      1  failed, or a node or chunk could not be read (with --strict: or
         something would be lost)
      2  the command is not valid
    """  # noqa: D301 - click's mark of lines to be kept
    _check(target, {**options, "codecs": codecs})
    options["select"] = _parsed(select)
    begin: Any = source
    if not is_url(source) and not Path(source).expanduser().exists():
        place = open_node(source).store_path
        writes = options["in_place"] and not options["dry_run"]
        begin = replace(place, store=place.store.with_read_only(False)) if writes else place  # noqa: FBT003
    if storage:
        begin, options["storage_options"] = _with_storage(begin, target, storage)
    try:
        with interrupts.resumable(lambda: _is_begun(target, options)):
            report = convert_hierarchy(begin, _as_named(target), progress=wanted(), **(codecs or {}), **options)
    except ValueError as error:
        if isinstance(error, OmnizarrError):
            raise
        raise click.UsageError(message(error)) from None
    report = replace(report, source=source, target=source if options["in_place"] else target or "")
    if as_json:
        click.echo(to_json(report.to_json(), indent=2))
    else:
        for line in [fit(visible(safe(line))) for text in report.lines() for line in text.split("\n")]:
            click.echo(line)
    is_broken = report.unreadable or any(not node.node_type for node in report.nodes)
    return PROBLEM if is_broken else 0


def _parsed(select: tuple[str, ...]) -> dict[str, Label] | None:
    found = labels.parse(select)
    if select and not found:
        raise click.UsageError(
            f"--select takes names of dimensions with coordinates, such as lat=40:50, not {select[0]!r}"
        )
    return found or None


def _check(target: str | None, options: dict[str, Any]) -> None:
    if target is None and not (options["in_place"] or options["dry_run"] or options["estimate"]):
        raise click.UsageError("missing DST; only --in-place, --dry-run and --estimate work without it")
    for one, other in (("overwrite", "resume"), ("in_place", "resume")):
        if options[one] and options[other]:
            raise click.UsageError(f"--{one.replace('_', '-')} and --{other} exclude each other")
    if options["in_place"] and target is not None:
        raise click.UsageError("--in-place takes no DST")
    of_chunks = ("chunks", "shards", "codecs", "scheduler", "max_memory", "temporary")
    if options["in_place"] and any(options[name] is not None for name in of_chunks):
        given = next(name for name in of_chunks if options[name] is not None)
        raise click.UsageError(f"--in-place keeps chunks unchanged: leave out --{given.replace('_', '-')}")
    if options["in_place"] and options["estimate"]:
        raise click.UsageError("use either --in-place or --estimate, not both")
    if options["remove_old"] and not options["in_place"]:
        raise click.UsageError("--remove-old needs --in-place")


def _as_named(target: str | None) -> str | LocalStore | None:
    """Return the target; with --to on the command line, a new directory even if the name is that of another format."""
    is_asked = click.get_current_context().get_parameter_source("zarr_format") is ParameterSource.COMMANDLINE
    if target is None or is_url(target) or not is_asked or Path(target).exists() or netcdf.is_target(target):
        return target
    return LocalStore(target) if kinds.foreign(target) else target


def _with_storage(source: Any, target: str | None, storage: Storage) -> tuple[Any, dict[str, Any]]:
    """Return the source, and the storage options for source and target if they are URLs."""
    urls = [place for place in (source, target) if isinstance(place, str) and is_url(place)]
    if len(urls) < 2:
        return source, storage_of((urls or [source])[0], storage)
    return StorePath(*resolve(source, "r", storage_of(source, storage))), storage_of(urls[1], storage)


def _is_begun(target: str | None, options: dict[str, Any]) -> bool:
    """Return whether there is an unfinished conversion at the target that can be continued."""
    if target is None or options["in_place"] or options["dry_run"] or (not is_url(target) and Path(target).is_file()):
        return False
    storage = options.get("storage_options") if is_url(target) else None
    return journal.read(StorePath(*resolve(target, "r", storage))) is not None
