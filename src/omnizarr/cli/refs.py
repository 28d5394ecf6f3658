"""``omnizarr refs``: references to the chunks of hierarchies, for other programs."""

from __future__ import annotations

from typing import Any

import click

from omnizarr.cli.locate import Storage, open_node, storage_of_both
from omnizarr.cli.options import PLACE, command, json_option, overwrite_option, quiet_option, storage_options
from omnizarr.cli.progress import wanted
from omnizarr.cli.remedies import message
from omnizarr.cli.text import fit, to_json
from omnizarr.errors import OmnizarrError
from omnizarr.support.text import visible
from omnizarr.tools.refs import references


@command()
@click.argument("sources", metavar="SRC...", type=PLACE, nargs=-1, required=True)
@click.argument("destination", metavar="DST", type=PLACE)
@click.option("--along", metavar="NAME", help="The dimension along which several groups, or a pattern, become one.")
@click.option(
    "--to",
    "zarr_format",
    type=click.Choice(["v2", "v3"]),
    help="Format of the documents; default: v2, which all readers know, if nothing is lost.",
)
@click.option("--inner", is_flag=True, help="Refer to the inner chunks of shards, as chunks without shards.")
@click.option(
    "--inline-threshold",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="BYTES",
    help="Put chunks of fewer bytes into the references themselves.",
)
@click.option("--relative", is_flag=True, help="Name files below the directory of DST by relative paths.")
@click.option(
    "--record-size",
    type=click.IntRange(min=1),
    default=100_000,
    show_default=True,
    metavar="N",
    help="References in each file of Parquet.",
)
@click.option("-m", "--message", metavar="TEXT", help="Message of the commit, if DST is a branch in Icechunk.")
@overwrite_option
@storage_options
@quiet_option
@json_option
def refs(
    sources: tuple[str, ...],
    destination: str,
    along: str | None,
    zarr_format: str | None,
    storage: Storage,
    *,
    as_json: bool,
    **options: Any,
) -> int:
    """Write references of Kerchunk to the chunks of a hierarchy.

    They say for each chunk in which file, and at which byte, it lies, so that fsspec with zarr-python, xarray,
    VirtualiZarr and GDAL read it in place. SRC is a directory, a zip archive without compression, a bucket, a web
    server, an HDF5 or netCDF-4 file, references, or a join of them that "omnizarr combine" made. The name of DST ends
    with .json, .json.gz, .json.zst or .parq; icechunk:///data/repo@main is a branch, which gets virtual chunks.

    \b
    Examples:
      omnizarr refs era5.zarr era5.json
      omnizarr refs s3://bucket/era5.zarr era5.parq --anon
      omnizarr refs era5.zarr era5.parq --inline-threshold 500
      omnizarr refs run-2020.zarr run-2021.zarr run.json --along time
      omnizarr refs scan.zarr scan.json --inner --to v2
      omnizarr refs era5.nc icechunk:///data/repo@main -m "ERA5 in place"

    \b
    Exit codes:
      0  done
      1  failed, or the references cannot express an array
      2  the command is not valid
    """  # noqa: D301 - click's mark of lines to be kept
    if len(sources) > 1 and along is None:
        raise click.UsageError("several sources become one along a dimension: name it by --along")
    number = None if zarr_format is None else int(zarr_format[1:])
    options["storage_options"] = storage_of_both(sources[0], destination, storage)
    source: Any = open_node(sources[0], storage) if along is None else sources if len(sources) > 1 else sources[0]
    try:
        made = references(source, destination, along=along, zarr_format=number, progress=wanted(), **options)
    except ValueError as error:
        if isinstance(error, OmnizarrError):
            raise
        raise click.UsageError(message(error)) from None
    if as_json:
        click.echo(to_json(made.to_dict(), indent=2))
    else:
        for line in made.lines():
            click.echo(fit(visible(line)))
    return 0
