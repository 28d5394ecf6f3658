"""``omnizarr dump``: a dataset as CDL, as ``ncdump`` prints it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from omnizarr.cli import trace
from omnizarr.cli.locate import Storage, storage_of, watched
from omnizarr.cli.options import command, path_argument, storage_options
from omnizarr.cli.text import NOTES, fit, note_lines, one_line
from omnizarr.cli.trace import traced
from omnizarr.errors import ContainsArrayError
from omnizarr.nodes.location import StorePath
from omnizarr.support.lazy import Lazy
from omnizarr.support.text import visible

if TYPE_CHECKING:
    from omnizarr.netcdf import dataset as datasets
    from omnizarr.netcdf import files, urls
    from omnizarr.netcdf.cdl import writing
    from omnizarr.netcdf.header import Source
    from omnizarr.netcdf.tools import planning
else:  # imported when first used, as listing a directory needs no netCDF
    datasets = Lazy("omnizarr.netcdf.dataset")
    files = Lazy("omnizarr.netcdf.files")
    planning = Lazy("omnizarr.netcdf.tools.planning")
    urls = Lazy("omnizarr.netcdf.urls")
    writing = Lazy("omnizarr.netcdf.cdl.writing")

_SHORTEST: Final = 10  # lines, as in ncdump
_MOST_DIGITS: Final = 20
_LANGUAGE: Final = click.Choice(["c", "f"], case_sensitive=False)
_SEPARATORS: Final[Mapping[str | None, bool | Literal["T"]]] = {None: False, "t": True, "i": "T"}
_UNFIT: Final = re.compile(r"[^\n\t -~]+")  # for a terminal, unless it is printable


def _names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...] | None:
    r"""Return names that are separated by commas; ``\,`` is a comma of a name."""
    names = [re.sub(r"\\,", ",", name) for value in values for name in re.split(r"(?<!\\),", value)]
    return tuple(filter(None, names)) or None


def _precision(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int | None, int | None]:
    """Return the digits for float and double: ``5`` or ``5,9``."""
    if value is None:
        return None, None
    match = re.fullmatch(r"(\d{1,2})(?:,(\d{1,2}))?", value, re.ASCII)
    digits = [int(number) for number in match.groups() if number is not None] if match is not None else []
    if not digits or not all(1 <= number <= _MOST_DIGITS for number in digits):
        raise click.BadParameter(f"{value!r}: digits are typed as 5, or as 5,9 for float and double")
    return digits[0], digits[1] if len(digits) > 1 else None


# -h prints the header, as in ncdump, not the help.
@command(context_settings={"help_option_names": ["--help"]})
@path_argument
@click.option("-h", "header_only", is_flag=True, help="Print the header only, no data.")
@click.option("-c", "coordinates_only", is_flag=True, help="Print the data of coordinate variables only.")
@click.option("-s", "special", is_flag=True, help="Also print special attributes: how variables are stored.")
@click.option("-t", "times", flag_value="t", help="Print times as dates.")
@click.option("-i", "times", flag_value="i", help="Print times as dates in ISO 8601 form, with a T.")
@click.option(
    "-v", "variables", metavar="NAMES", multiple=True, callback=_names, help="Print the data of these variables only."
)
@click.option("-g", "groups", metavar="NAMES", multiple=True, callback=_names, help="Print these groups only.")
@click.option("-n", "name", metavar="NAME", help="Name of the dataset. Default: PATH without its extension.")
@click.option(
    "-p",
    "precision",
    metavar="D[,D]",
    callback=_precision,
    help="Number of significant digits of float, and of double.",
)
@click.option("-b", "brief", type=_LANGUAGE, help="Print the indices of each row, as C or Fortran counts them.")
@click.option("-f", "full", type=_LANGUAGE, help="Print the indices of each value.")
@click.option(
    "-l",
    "width",
    metavar="N",
    type=click.IntRange(min=_SHORTEST),
    default=80,
    show_default=True,
    help="Maximum length of lines.",
)
@click.option("--notes", is_flag=True, help="Print mistakes of writers on stderr, and how they are read.")
@storage_options
@traced
def dump(
    path: str,
    name: str | None,
    times: str | None,
    brief: str | None,
    full: str | None,
    *,
    notes: bool,
    storage: Storage,
    **options: Any,
) -> None:
    """Print a dataset as CDL, as ncdump does.

    PATH is a hierarchy of Zarr v2 or v3 (NCZarr or not), a netCDF file, or a URL in the form of netCDF-C.

    \b
    Examples:
      omnizarr dump -h era5.zarr
      omnizarr dump -v time,lat "file:///data/era5.zip#mode=nczarr,zip"
      omnizarr dump -s old.nc | omnizarr gen - -o new.zarr
    """  # noqa: D301 - click's mark of lines to be kept
    if brief and full:
        raise click.UsageError("use either -b or -f, not both")
    if brief or full:
        options |= {"comments": "full" if full else "brief", "language": full or brief}
    with opened(path, storage, notes=notes) as source:
        # Print CDL in UTF-8, regardless of the terminal's encoding; names and attributes can contain any bytes.
        parts = writing.dump(source, name=name or urls.parse(path).name, times=_SEPARATORS[times], **options)
        if sys.stdout.isatty():
            for part in parts:
                click.echo(_UNFIT.sub(lambda found: visible(found[0]), part), nl=False)
            return
        sys.stdout.flush()
        for part in parts:
            sys.stdout.buffer.write(part.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()


@contextmanager
def opened(path: str, storage: Storage | None = None, *, notes: bool = False) -> Iterator[Source]:
    """Open a dataset, or a netCDF file, to be read."""
    location = urls.parse(path)
    if location.is_local and files.is_netcdf(location.place):
        with files.open_file(location.place) as source:
            _tell_unshown(source)
            yield source
        return
    try:
        opened = datasets.Dataset(_place(path, location, storage))
    except ContainsArrayError as error:
        error.remedy = (
            f"CDL describes groups: print the array with get, or its metadata with info: omnizarr info {path}"
        )
        raise
    with opened as dataset:
        if notes:
            for place, found in dataset.all_notes().items():
                for note in found:
                    pointer = f"{note.pointer}: " if note.pointer else ""
                    click.echo(one_line(f"{place}: {pointer}{note.message}"), err=True)
        source = dataset.as_source()
        _tell_unshown(source)
        for line in note_lines({NOTES: datasets.notes_of_store(dataset)}):
            click.echo(line, err=True)
        yield source


def _tell_unshown(source: Source) -> None:
    """Print what of a file is not in its CDL, on stderr."""
    if not any(group.notes or any(each.notes for each in group.variables.values()) for _, group in source.root.walk()):
        return
    for loss in planning.told(source.root):
        click.echo(fit(one_line(f"note: /{loss.path}: not shown: {loss.what}: {loss.why}")), err=True)


def _place(path: str, location: urls.Location, storage: Storage | None) -> Any:
    """Return a dataset's place; with ``--trace``, in a store that records its requests."""
    if not storage and not trace.is_on():
        return path
    store, inside = location.open_store("r", storage_of(path, storage))
    return watched(StorePath(store, inside))
