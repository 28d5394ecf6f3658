"""The commands by name; each is imported when it is called."""

from __future__ import annotations

import shlex
from importlib import import_module
from typing import Final

import click
from click.shell_completion import CompletionItem

from omnizarr.cli import help  # noqa: A004 - what the command calls it
from omnizarr.cli.options import no_color_option
from omnizarr.cli.version import version_line
from omnizarr.support import suggestions

# By groups, in the order of the help page: each command with its module and its summary, the first line of its help.
COMMANDS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Look": {
        "info": ("looking", "Show the metadata of a node, and how much of it is stored."),
        "tree": ("looking", "Draw a hierarchy as a tree."),
        "ls": ("looking", "List the members of a group."),
        "du": ("du", "Show how much space nodes take."),
        "missing": ("missing", "List the chunks of an array that are not stored."),
        "advise": ("advise", "Advise on chunks and shards for an array."),
        "get": ("looking", "Print elements of an array."),
        "show": ("show", "Show an array as a picture, in the terminal or in a file."),
        "view": ("view", "Show hierarchies in the browser, in any format, until Ctrl-C."),
        "stat": ("stat", "Print minimum, maximum, mean and more of arrays."),
        "diff": ("diff", "Compare two arrays or hierarchies in any formats."),
        "digest": ("digest", "Print digests of values, the same in all formats."),
        "check": ("check", "Check a hierarchy for errors. Nothing is changed."),
    },
    "Change": {
        "repair": ("repair", "Repair what a check finds, if the repair is certain."),
        "cp": ("nodes", "Copy a node, or a whole hierarchy, byte for byte."),
        "mv": ("nodes", "Move or rename a node, or a whole hierarchy."),
        "rm": ("nodes", "Delete nodes: their documents and chunks, and nothing else."),
        "create": ("create", "Create an array, or a group."),
        "attrs": ("attrs", "Print, set, delete or edit attributes."),
        "consolidate": ("change", "Store copies of all documents below a group in one place."),
        "pyramid": ("pyramid", "Make the levels of a multiscale image, OME-Zarr or GeoZarr."),
        "resize": ("change", "Change the shape of an array; elements keep their coordinates."),
    },
    "Convert": {
        "convert": ("convert", "Convert between Zarr formats, netCDF, N5 and others."),
        "combine": ("combine", "Show many groups as one group, without copying them."),
        "refs": ("refs", "Write references of Kerchunk to the chunks of a hierarchy."),
    },
    "Share": {
        "serve": ("serve", "Serve a hierarchy over HTTP, read-only, until Ctrl-C."),
    },
    "netCDF": {
        "dump": ("dump", "Print a dataset as CDL, as ncdump does."),
        "gen": ("gen", "Make a dataset from CDL, as ncgen does."),
    },
    "Shell": {
        "completion": ("completion", "Print a script that completes commands, options and paths."),
    },
}
_MODULES: Final = {name: module for group in COMMANDS.values() for name, (module, _) in group.items()}
# Names of these commands in other programs.
_ELSEWHERE: Final = {
    **dict.fromkeys(("list", "dir", "h5ls", "ll"), "ls"),
    **dict.fromkeys(("describe", "gdalinfo", "inspect"), "info"),
    **dict.fromkeys(("cat", "print", "read", "head", "slice"), "get"),
    **dict.fromkeys(("plot", "draw", "imshow"), "show"),
    **dict.fromkeys(("browse", "gui", "ncview", "panoply", "napari", "vizarr"), "view"),
    **dict.fromkeys(("validate", "verify", "lint", "fsck", "doctor"), "check"),
    **dict.fromkeys(("fix", "mend"), "repair"),
    **dict.fromkeys(("references", "kerchunk", "virtualize"), "refs"),
    **dict.fromkeys(("rechunk", "migrate", "translate", "reencode", "nccopy"), "convert"),
    **dict.fromkeys(("ncrcat", "concat", "concatenate", "join", "merge"), "combine"),
    **dict.fromkeys(("ncdump", "h5dump", "cdl"), "dump"),
    **dict.fromkeys(("ncgen", "generate"), "gen"),
    **dict.fromkeys(("copy", "h5copy", "sync"), "cp"),
    **dict.fromkeys(("move", "rename"), "mv"),
    **dict.fromkeys(("remove", "delete", "del"), "rm"),
    **dict.fromkeys(("http", "server", "share", "host"), "serve"),
    **dict.fromkeys(("compare", "cmp", "h5diff"), "diff"),
    **dict.fromkeys(("checksum", "hash", "sum"), "digest"),
    **dict.fromkeys(("size", "usage"), "du"),
    **dict.fromkeys(("stats", "statistics", "h5stat"), "stat"),
    **dict.fromkeys(("attributes", "attr", "ncatted"), "attrs"),
    **dict.fromkeys(("multiscale", "multiscales", "coarsen", "overviews"), "pyramid"),
}
_CONTEXT = {"help_option_names": ["-h", "--help"]}


def _version(context: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if value and not context.resilient_parsing:
        click.echo(version_line())
        context.exit()


class _Commands(help.Helped, click.Group):
    """Imports a command when you call it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what is typed; ``help COMMAND`` is ``COMMAND --help``."""
        at = next((number for number, word in enumerate(args) if not word.startswith("-")), None)
        if at is not None and args[at] == "help":
            args = [*args[:at], *args[at + 1 :], "--help"]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _MODULES:
            return None
        module = import_module(f"omnizarr.cli.{_MODULES[cmd_name]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in _MODULES and not name.startswith("-"):
            if "/" in name or "." in name:
                no_command = f"{name!r} is a path, not a command; to look at it: omnizarr info {shlex.quote(name)}"
            else:
                other = _ELSEWHERE.get(name)
                meant = f"did you mean {other!r}?" if other in _MODULES else suggestions.meant(name, _MODULES)
                no_command = f"no command {name!r}{f'; {meant}' if meant else ''}"
            raise click.UsageError(no_command, ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        summaries = ((name, text) for group in COMMANDS.values() for name, (_, text) in group.items())
        return [CompletionItem(name, help=text) for name, text in summaries if name.startswith(incomplete)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = {
            heading: {name: summary for name, (_, summary) in group.items()} for heading, group in COMMANDS.items()
        }
        help.write_page(groups, [row for rows in help.option_rows(self, ctx).values() for row in rows], formatter)


@click.group(cls=_Commands, context_settings=_CONTEXT, invoke_without_command=True)
@click.option(
    "-V", "--version", is_flag=True, callback=_version, expose_value=False, is_eager=True, help="Print versions."
)
@click.pass_context
def omnizarr(context: click.Context) -> int:
    """Look into Zarr hierarchies of every format, check, change and convert them."""
    if context.invoked_subcommand is not None:
        return 0
    click.echo(context.get_help(), err=True)
    return 2


omnizarr.params.append(no_color_option())
