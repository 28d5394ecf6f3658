"""``omnizarr gen``: a dataset from CDL, as ``ncgen`` makes it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from omnizarr.cli.locate import Storage, storage_of
from omnizarr.cli.options import PLACE, command, long_storage_options, one_of
from omnizarr.cli.text import one_line
from omnizarr.errors import NodeExistsError, ValueTypeError
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.netcdf import copying, files, urls
    from omnizarr.netcdf import dataset as datasets
    from omnizarr.netcdf.cdl import compiling
else:  # imported when first used, as listing a directory needs no netCDF
    copying = Lazy("omnizarr.netcdf.copying")
    datasets = Lazy("omnizarr.netcdf.dataset")
    files = Lazy("omnizarr.netcdf.files")
    urls = Lazy("omnizarr.netcdf.urls")
    compiling = Lazy("omnizarr.netcdf.cdl.compiling")

_FILES: Final = (".nc", ".nc3", ".nc4", ".cdf", ".netcdf")


_LAYOUTS: Final = {each.lower(): each for each in ("A", "B", "C", "D", "pure")}
_KINDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("3", "nc3", "classic"), "NETCDF3_CLASSIC"),
    **dict.fromkeys(("6", "nc6", "64-bit offset", "64-bit-offset"), "NETCDF3_64BIT_OFFSET"),
    **dict.fromkeys(("5", "nc5", "64-bit data", "64-bit-data"), "NETCDF3_64BIT_DATA"),
    **dict.fromkeys(("4", "nc4", "netcdf-4", "netcdf4", "enhanced", "hdf5"), "NETCDF4"),
    **dict.fromkeys(("7", "nc7", "netcdf-4 classic model", "enhanced-nc3", "hdf5-nc3"), "NETCDF4_CLASSIC"),
}
"""Formats of files, by ncgen's words and numbers."""


def _kind(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Return a layout, or the format of a file."""
    if value is None:
        return None
    found = _LAYOUTS.get(value.lower()) or _KINDS.get(value.lower())
    if found is None:
        names = ", ".join([*_LAYOUTS.values(), *_KINDS])
        raise click.BadParameter(f"{value!r}: expected one of {names}")
    return str(found)


def _language(_: click.Context, __: click.Parameter, value: str | None) -> None:
    if value not in (None, "b", "binary"):
        raise click.BadParameter(f"{value!r}: a dataset is made, no program that makes one")


_layouts: Final = one_of((*_LAYOUTS.values(), "nc3", "nc4", "nc5", "nc6", "nc7"))


@command()
@click.argument("cdl", metavar="FILE.cdl", type=click.Path(allow_dash=True))
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=PLACE,
    required=True,
    help="The dataset to make: a path, a URL or a netCDF file.",
)
@click.option(
    "-k",
    "--layout",
    metavar="LAYOUT",
    callback=_kind,
    shell_complete=_layouts,
    help="Layout of NCZarr metadata: A (netCDF-C 4.8.0), B, C, D (4.9.3 and later), or pure for none. "
    "For a netCDF file, its kind as for ncgen: nc3, nc4, nc5, nc6, nc7.",
)
@click.option("--zarr-format", metavar="[2|3]", type=click.IntRange(2, 3), help="Zarr format. Default: 2.")
@click.option("--overwrite", is_flag=True, help="Replace an existing dataset.")
# The spelling of ncgen.
@click.option("-3", "kind", flag_value="nc3", hidden=True, callback=_kind)
@click.option("-4", "kind", flag_value="nc4", hidden=True, callback=_kind)
@click.option("-5", "kind", flag_value="nc5", hidden=True, callback=_kind)
@click.option("-6", "kind", flag_value="nc6", hidden=True, callback=_kind)
@click.option("-7", "kind", flag_value="nc7", hidden=True, callback=_kind)
@click.option("-b", "binary", is_flag=True, hidden=True, expose_value=False)
@click.option("-l", "language", callback=_language, hidden=True, expose_value=False)
@long_storage_options
def gen(
    cdl: str,
    output: str,
    storage: Storage,
    layout: str | None,
    zarr_format: int | None,
    kind: str | None,
    *,
    overwrite: bool,
) -> None:
    """Make a dataset from CDL, as ncgen does.

    If FILE.cdl is "-", CDL is read from stdin. The dataset is NCZarr on Zarr v2, unless the options or the mode of a
    URL choose another format. A PATH that ends with .zip becomes a zip archive, one that ends with .nc a netCDF-4 file.

    \b
    Examples:
      omnizarr gen tides.cdl -o tides.zarr
      omnizarr gen tides.cdl -o "file:///data/tides.zip#mode=zarr,zip,v3"
      omnizarr gen tides.cdl -o s3://bucket/tides.zarr --region eu-west-1
      ncdump tides.nc | omnizarr gen - -o tides.zarr --layout B
    """  # noqa: D301 - click's mark of lines to be kept
    location = urls.parse(output)
    has_mode = location.mode or location.storage or location.zarr_format
    is_file = location.is_local and location.place.lower().endswith(_FILES) and not has_mode
    if layout in _KINDS.values():
        layout, kind = None, layout
    _check(location, layout, zarr_format, kind or "NETCDF4", is_file=is_file)
    source = compiling.load(sys.stdin.buffer if cdl == "-" else cdl).source
    with _whole_or_not_at_all(location):
        if is_file:
            for loss in files.write_file(location.place, source, format=_format(kind), overwrite=overwrite):
                click.echo(one_line(f"omnizarr: lost: /{loss.path}{loss.pointer}: {loss.what}: {loss.why}"), err=True)
            return
        mode, options = "w" if overwrite else "x", storage_of(output, storage) or None
        with datasets.Dataset(output, mode, layout=layout, zarr_format=zarr_format, storage_options=options) as dataset:
            copying.write(dataset, source)


def _format(kind: str | None) -> Any:
    return kind or "NETCDF4"


def _check(location: urls.Location, layout: str | None, zarr_format: int | None, kind: str, *, is_file: bool) -> None:
    if not is_file and kind != "NETCDF4":
        raise click.UsageError(f"{kind} is a file format: pass a file name (x.nc)")
    if is_file and (layout or zarr_format):
        raise click.UsageError("--layout and --zarr-format mean nothing to a netCDF file")
    if layout in ("A", "B", "C") and (zarr_format or location.zarr_format) == 3:
        raise click.UsageError(f"layout {layout} is one of Zarr v2")
    if zarr_format and location.zarr_format and zarr_format != location.zarr_format:
        raise click.UsageError(f"--zarr-format {zarr_format} contradicts the URL, which names v{location.zarr_format}")
    if layout and location.mode and (layout == "pure") != (location.mode == "zarr"):
        raise click.UsageError(f"--layout {layout} contradicts the URL, which names {location.mode}")


@contextmanager
def _whole_or_not_at_all(location: urls.Location) -> Iterator[None]:
    """Remove an unfinished dataset, unless it replaced an older one; and give advice in terms of the command line."""
    was_there = location.is_local and os.path.lexists(location.place)
    try:
        yield
    except BaseException as error:
        if location.is_local and not was_there:
            place = Path(location.place)
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink(missing_ok=True)
        if isinstance(error, ValueTypeError):
            error.remedy = "give the variable an attribute _nczarr_maxstrlen, in the CDL"
        elif isinstance(error, NodeExistsError) and error.remedy is not None:  # no directory is replaced by a file
            error.remedy = "replace it with --overwrite"
        raise
