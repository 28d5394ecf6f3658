"""``omnizarr create``: a new array or group."""

from __future__ import annotations

import json
from typing import Any

import click

from omnizarr.cli.layouts import CODECS_HELP, FORMATS, SPELLED_CODECS, parse_codecs, parse_format, parse_lengths
from omnizarr.cli.locate import Storage, open_node, storage_of
from omnizarr.cli.options import PLACE, command, one_of, path_argument, quiet_option, storage_options
from omnizarr.nodes.array import Array
from omnizarr.tools.edit.create import make


def _json(text: str) -> Any:
    """Parse JSON; return text that is not JSON unchanged."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _attributes(text: str) -> dict[str, Any]:
    found = _json(text)
    if not isinstance(found, dict):
        raise click.BadParameter(f'{text!r}: expected an object of JSON, as in {{"units": "K"}}')
    return found


def _dtype(text: str) -> Any:
    return _json(text) if text[:1] in "{[" else text


def _names(text: str) -> list[str | None]:
    return [name.strip() or None for name in text.split(",")]


def _shape(text: str) -> Any:
    lengths = parse_lengths(text) if text != "()" else ()
    if lengths == "auto":
        raise click.BadParameter("'auto': a shape is typed as in 365,721,1440")
    return lengths


@command()
@path_argument
@click.option("--shape", type=_shape, metavar="LENGTHS", help="Elements along each dimension: 365,721,1440.")
@click.option(
    "--dtype",
    type=_dtype,
    metavar="TYPE",
    help="Data type: float32, <M8[s], string, or a data type of Zarr v3 in JSON.",
)
@click.option("--chunks", type=parse_lengths, metavar="LENGTHS", help="Shape of chunks: 100,100, or auto.")
@click.option("--shards", type=parse_lengths, metavar="LENGTHS", help="Shape of shards.")
@click.option(
    "--codecs",
    type=parse_codecs,
    metavar="CODECS",
    shell_complete=one_of(SPELLED_CODECS),
    help=CODECS_HELP.format(""),
)
@click.option("--fill-value", type=_json, metavar="VALUE", help="Value of elements that were not written.")
@click.option("--dimension-names", type=_names, metavar="NAMES", help="Names of the dimensions: time,lat,lon.")
@click.option("--attributes", type=_attributes, metavar="JSON", help='Attributes: {"units": "K"}.')
@click.option(
    "--format",
    "zarr_format",
    type=parse_format,
    metavar="FORMAT",
    shell_complete=one_of(FORMATS),
    help="Zarr format; default: the format of the group above, or v3.",
)
@click.option("--group", is_flag=True, help="Create a group.")
@click.option("--like", type=PLACE, metavar="OTHER", help="Copy all other properties from this array.")
@click.option("--overwrite", is_flag=True, help="Replace an existing node at PATH.")
@storage_options
@quiet_option
def create(
    path: str,
    storage: Storage,
    *,
    codecs: dict[str, Any] | None,
    group: bool,
    like: str | None,
    **options: Any,
) -> int:
    """Create an array, or a group.

    Options have the names of the keywords of omnizarr.create_array. Missing groups above PATH are created, too.

    \b
    Examples:
      omnizarr create new.zarr --group --attributes '{"title": "ERA5"}'
      omnizarr create new.zarr/t2m --shape 365,721,1440 --dtype float32 \\
          --chunks 1,721,1440 --dimension-names time,lat,lon --fill-value NaN
      omnizarr create era5.zarr/d2m --like era5.zarr/t2m
    """  # noqa: D301 - click's mark of lines to be kept
    given = {name: value for name, value in options.items() if value is not None} | (codecs or {})
    of_arrays = [name for name in given if name not in ("attributes", "zarr_format", "overwrite")]
    if group and (of_arrays or like):
        raise click.UsageError(f"a group has no {(of_arrays or ['like'])[0].replace('_', '-')}")
    if not group and like is None and ("shape" not in given or "dtype" not in given):
        raise click.UsageError("an array needs --shape and --dtype, or --like; a group --group")
    template = open_node(like) if like is not None else None
    if template is not None and not isinstance(template, Array):
        raise click.UsageError(f"--like takes an array; {like} is a group")
    node = make(
        path,
        given,
        kind="group" if group else "array",
        like=template,
        storage_options=storage_of(path, storage) or None,
    )
    click.echo(repr(node))
    return 0
