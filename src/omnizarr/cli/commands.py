"""The commands by name; each is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from omnizarr.cli.version import version_line

_MODULES: Final = {
    **dict.fromkeys(("info", "tree", "ls", "get"), "looking"),
    **{name: name for name in ("check", "convert", "dump", "gen", "repair")},
}
_CONTEXT = {"help_option_names": ["-h", "--help"]}


def _version(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if value and not context.resilient_parsing:
        click.echo(version_line())
        context.exit()


class _Commands(click.Group):
    """Imports a command when you call it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        command: click.Command = getattr(import_module(f"omnizarr.cli.{_MODULES[cmd_name]}"), cmd_name)
        return command


@click.group(cls=_Commands, context_settings=_CONTEXT)
@click.option(
    "--version", is_flag=True, callback=_version, expose_value=False, is_eager=True, help="Print the version."
)
def omnizarr() -> None:
    """Look into Zarr hierarchies.

    PATH is a directory, a zip archive, or a place inside one: x.zarr, x.zarr/ocean/temp, x.zip/ocean.

    \b
    Examples:
      omnizarr info era5.zarr
      omnizarr tree era5.zarr
      omnizarr ls -r era5.zarr
      omnizarr get era5.zarr/temp "0, ::10, ::10"

    \b
    Exit codes:
      0  done
      1  not found, or something is wrong with the data
      2  the command or the selection makes no sense
    """  # noqa: D301 - click's mark of lines to be kept
