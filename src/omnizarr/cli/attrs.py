"""``omnizarr attrs``: the attributes of a node."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

import click

from omnizarr.cli.help import Page
from omnizarr.cli.locate import Storage, open_node, storage_of
from omnizarr.cli.options import Command, path_argument, quiet_option, storage_options
from omnizarr.cli.text import to_json
from omnizarr.errors import OmnizarrError
from omnizarr.support.text import visible_lines
from omnizarr.tools.edit import attrs as attributes
from omnizarr.tools.edit import places

_ALL = "get"


class _Attributes(Page, click.Group):
    """A word that is not a command is a path, whose attributes are printed."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            raise click.UsageError("missing argument 'PATH'", ctx)
        if args[0] not in (*self.commands, "-h", "--help"):
            args = [_ALL, *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)


@click.group(cls=_Attributes)
def attrs() -> None:
    """Print, set, delete or edit attributes.

    attrs PATH prints all attributes as JSON. If the path is called get, set, delete or edit, type ./get and so on.

    \b
    Examples:
      omnizarr attrs era5.zarr/t2m
      omnizarr attrs get era5.zarr/t2m units
      omnizarr attrs set era5.zarr/t2m units=K valid_range='[180, 340]'
      omnizarr attrs delete era5.zarr/t2m valid_range
      omnizarr attrs edit era5.zarr
    """  # noqa: D301 - click's mark of lines to be kept


@attrs.command(name="get")
@path_argument
@click.argument("name", required=False)
@click.option("--raw", is_flag=True, help="Print text without quotes; a terminal gets control characters escaped.")
@storage_options
def get_(path: str, name: str | None, storage: Storage, *, raw: bool) -> int:
    """Print one attribute, or all, as JSON.

    \b
    Examples:
      omnizarr attrs get era5.zarr/t2m
      omnizarr attrs get era5.zarr/t2m units
      units=$(omnizarr attrs get --raw era5.zarr/t2m units)
    """  # noqa: D301 - click's mark of lines to be kept
    found = open_node(path, storage).attrs.asdict()
    if name is None:
        click.echo(to_json(found, indent=2))
        return 0
    if name not in found:
        raise click.ClickException(_missing(path, name, found))
    value = found[name]
    if raw and isinstance(value, str):
        # A terminal obeys control characters. click would drop some of them elsewhere.
        sys.stdout.write(f"{visible_lines(value) if sys.stdout.isatty() else value}\n")
    else:
        click.echo(to_json(value, indent=2))
    return 0


def _missing(path: str, name: str, found: dict[str, Any]) -> str:
    known = ", ".join(sorted(found)) or "none"
    return f"{path} has no attribute {name!r}; it has: {known}"


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise click.BadParameter(f"{text!r}: expected NAME=VALUE, as in units=K")
    return name, value


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@attrs.command(name="set")
@path_argument
@click.argument("assignments", metavar="NAME=VALUE...", nargs=-1, required=True, type=_pair)
@click.option("--text", is_flag=True, help="Take all values as text, even if they are JSON.")
@click.option(
    "--type",
    "nc_type",
    type=click.Choice(list(attributes.TYPES)),
    metavar="TYPE",
    help=f"Type in NCZarr: {', '.join(attributes.TYPES)}.",
)
@storage_options
@quiet_option
def set_(
    path: str, assignments: tuple[tuple[str, str], ...], storage: Storage, *, text: bool, nc_type: str | None
) -> int:
    """Set attributes, in one change.

    A VALUE that is not JSON is text: units=K, levels='[1, 2]', flag=true, version='"1"'. In NCZarr, numbers and text
    get the netCDF type that netCDF4-python would give them, or the type that --type names.

    \b
    Examples:
      omnizarr attrs set era5.zarr/t2m units=K valid_range='[180, 340]'
      omnizarr attrs set era5.zarr/t2m --text version=1
      omnizarr attrs set tides.zarr/time --type float scale_factor=0.5
    """  # noqa: D301 - click's mark of lines to be kept
    values = {name: value if text else _json_or_text(value) for name, value in assignments}
    with places.opened(path, None, "r+", storage_of(path, storage) or None) as where:
        attributes.update(where, values, nc_type)
    return 0


@attrs.command(name="delete")
@path_argument
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@storage_options
@quiet_option
def delete_(path: str, names: tuple[str, ...], storage: Storage) -> int:
    """Delete attributes, in one change.

    \b
    Examples:
      omnizarr attrs delete era5.zarr/t2m valid_range history
    """  # noqa: D301 - click's mark of lines to be kept
    with places.opened(path, None, "r+", storage_of(path, storage) or None) as where:
        try:
            attributes.delete(where, names)
        except KeyError as error:
            raise click.ClickException(_missing(path, str(error.args[0]), attributes.read(where))) from None
    return 0


@attrs.command(name="edit")
@path_argument
@storage_options
def edit_(path: str, storage: Storage) -> int:
    """Edit all attributes as JSON in $VISUAL or $EDITOR.

    Nothing is changed unless you save. If the text is not JSON, you can edit it again. If another program changes the
    attributes meanwhile, its changes are kept.

    \b
    Examples:
      omnizarr attrs edit era5.zarr/t2m
    """  # noqa: D301 - click's mark of lines to be kept
    with places.opened(path, None, "r+", storage_of(path, storage) or None) as where:
        known = attributes.read(where)
        text = json.dumps(known, indent=2, ensure_ascii=False) + "\n"
        while True:
            text = click.edit(text, extension=".json", require_save=False) or text
            try:
                new = json.loads(text)
                if not isinstance(new, dict):
                    raise ValueError("expected an object: {...}")  # noqa: TRY004, TRY301 - told as all that is wrong
            except ValueError as error:
                click.echo(f"omnizarr: {error}", err=True)
                if click.confirm("This is not a JSON object. Edit again?", default=True, err=True):
                    continue
                raise click.ClickException("nothing was changed") from None
            break
        if new == known:
            click.echo("nothing was changed")
            return 0
        try:
            attributes.put(where, new, known)
        except OmnizarrError as error:
            raise click.ClickException(f"{error}; what you typed is in {_kept(text)}") from None
    return 0


def _kept(text: str) -> str:
    """Save the edited text in a file, and return its name."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False, encoding="utf-8") as file:
        file.write(text)
    return file.name
