"""The commands by name; each is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from omnizarr.cli.version import version_line

# By groups, in the order of the help page: each command with its module and its summary, the first line of its help.
COMMANDS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Look": {
        "info": ("looking", "Show what a node is, and how much of it is stored."),
        "tree": ("looking", "Draw a hierarchy as a tree."),
        "ls": ("looking", "List the members of a group."),
        "get": ("looking", "Print elements of an array."),
        "stat": ("stat", "Print minimum, maximum, mean and more of arrays."),
        "diff": ("diff", "Compare two arrays or hierarchies in any formats."),
        "digest": ("digest", "Print digests of values, the same in all formats."),
        "check": ("check", "Check a hierarchy for errors. Nothing is changed."),
    },
    "Change": {
        "repair": ("repair", "Repair what a check finds, as far as that takes no guessing."),
    },
    "Convert": {
        "convert": ("convert", "Convert a hierarchy to another Zarr format, or to or from netCDF."),
    },
    "netCDF": {
        "dump": ("dump", "Print a dataset as CDL, as ncdump does."),
        "gen": ("gen", "Make a dataset from CDL, as ncgen does."),
    },
}
_MODULES: Final = {name: module for group in COMMANDS.values() for name, (module, _) in group.items()}
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
