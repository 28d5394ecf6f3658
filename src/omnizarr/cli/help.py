r"""Help pages: one for the program, and one per command, cut into sections.

The docstring of a command is its help: a summary, paragraphs, and blocks behind ``\b`` with a heading in their first
line ("Examples:", "Exit codes:"). Blocks are printed below the options.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import click

from omnizarr.support import terminals

_COMMON: Final = frozenset({"--quiet", "--no-color", "--help", "--trace"})
_RANGE: Final = re.compile(r"  \[[^\[\]:]*[<>][^\[\]]*\]$|; [^\[\];]*[<>][^\[\]]*(?=\]$)")


class Formatter(click.HelpFormatter):
    """Headings are bold, and what is typed has a colour."""

    def write_heading(self, heading: str) -> None:
        """Write a heading."""
        self.write(f"{'':>{self.current_indent}}{bold(f'{heading}:')}\n")

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage of a command."""
        super().write_usage(typed(prog), args, bold("Usage:") + " " if prefix is None else prefix)

    def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
        """Write terms and what they mean in two columns."""
        super().write_dl([(typed(term), meaning) for term, meaning in rows], col_max, col_spacing)


class Block(NamedTuple):
    """Lines of a docstring that are not wrapped."""

    heading: str
    lines: tuple[str, ...]


class Help(NamedTuple):
    """The docstring of a command in its parts."""

    summary: str
    text: str
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, command: click.Command) -> Help:
        """Return the parts."""
        paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
        blocks = [part for part in paragraphs if part.startswith("\b\n")]
        texts = [" ".join(part.split()) for part in paragraphs if not part.startswith("\b\n")]
        return cls(texts[0], "\n\n".join(texts), tuple(map(_block, blocks)))

    @property
    def examples(self) -> tuple[str, ...]:
        """The lines below "Examples"."""
        return next((block.lines for block in self.blocks if block.heading == "Examples"), ())


def _block(text: str) -> Block:
    _, heading, *lines = text.split("\n")
    return Block(heading.rstrip(":"), tuple(line.removeprefix("  ") for line in lines))


class Context(click.Context):
    """A context whose help pages have our form."""

    formatter_class = Formatter


class Helped(click.Command):
    """A command with help pages in our form."""

    context_class = Context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what is typed; ``--no-color`` holds for help pages too, wherever it stands."""
        if "--no-color" in args or not terminals.wants_colors():
            ctx.color = False
        return super().parse_args(ctx, args)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        """Return the option ``--help``."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = "Print this help."
        return option


class Page(Helped):
    """A command whose help is in sections."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the text above the options."""
        formatter.write_paragraph()
        formatter.write_text(Help.of(self).text)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write options in sections, then examples and exit codes."""
        for heading, rows in option_rows(self, ctx).items():
            with formatter.section(heading):
                formatter.write_dl(rows)
        for block in Help.of(self).blocks:
            with formatter.section(block.heading):
                for line in block.lines:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def option_rows(command: click.Command, context: click.Context) -> Mapping[str, list[tuple[str, str]]]:
    """Return the options of a command by their sections: usage and meaning."""
    sections: dict[str, list[tuple[str, str]]] = {"Options": [], "Storage options": [], "Common options": []}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or isinstance(parameter, click.Argument):
            continue
        is_common = not _COMMON.isdisjoint(parameter.opts)
        section = getattr(parameter, "section", "Common options" if is_common else "Options")
        sections[section].append((record[0], _plain(record[1])))
    return {heading: rows for heading, rows in sections.items() if rows}


def _plain(meaning: str) -> str:
    """Return the meaning of an option with its default, but without click's signs for ranges.

    >>> _plain("Number of chunks.  [x>=1]"), _plain("Length.  [default: 80; x>=10]")
    ('Number of chunks.', 'Length.  [default: 80]')
    """
    return _RANGE.sub("", meaning)


# -- the page of the program ---------------------------------------------------

PATHS: Final = (
    ("era5.zarr", "a directory"),
    ("era5.zarr/ocean/temp", "a group or an array inside it"),
    ("era5.zip, era5.zip/ocean", "a zip archive, and a group inside it"),
    ("era5.sqlite, era5.lmdb", "a database"),
    ("tides.nc, dem.tif, scan.n5", "HDF5, netCDF, TIFF, FITS, GRIB, N5"),
    ("refs.json, refs.parq", "references of Kerchunk"),
    ("s3://bucket/era5.zarr/ocean", "a URL: s3, gs, az, https, file, ..."),
)
EXAMPLES: Final = (
    ("omnizarr info era5.zarr", "its metadata, how much is stored"),
    ("omnizarr tree era5.zarr", "groups and arrays as a tree"),
    ('omnizarr get era5.zarr/t2m "0, ::10, ::10"', "elements, selected as in Python"),
    ("omnizarr check era5.zarr", "errors, missing chunks"),
    ("omnizarr convert old.zarr new.zarr", "to Zarr v3, verified"),
    ("omnizarr dump -h tides.nc", "the header of a netCDF file"),
)
EXIT_CODES: Final = (
    ("0", "done, and nothing is wrong; diff: no difference"),
    ("1", "not found, failed, or something is wrong with the data; diff: different"),
    ("2", "the command is not valid; check, repair, diff: could not read the data"),
    ("130", "interrupted with Ctrl-C"),
)


def write_page(
    commands: Mapping[str, Mapping[str, str]], options: list[tuple[str, str]], formatter: click.HelpFormatter
) -> None:
    """Write the page of the program: commands in groups, paths, examples, options, exit codes."""
    formatter.write_text("Look into Zarr hierarchies of every format, check, change and convert them.")
    formatter.write("\n")
    formatter.write_usage("omnizarr", "COMMAND [OPTIONS] PATH")
    width = max(len(name) for group in commands.values() for name in group)
    for heading, group in commands.items():
        with formatter.section(heading):
            formatter.write_dl([(f"{name:<{width}}", summary) for name, summary in group.items()])
    for heading, rows in (("What PATH can be", PATHS), ("Examples", EXAMPLES)):
        with formatter.section(heading):
            formatter.write_dl(rows, col_max=45)
    with formatter.section("Options"):
        formatter.write_dl(options)
    with formatter.section("Exit codes"):
        formatter.write_dl(EXIT_CODES)
    formatter.write("\n")
    formatter.write(f"{typed('omnizarr help COMMAND')} explains a command, with its options and examples.\n")


def typed(text: str) -> str:
    """Return what is typed, in the colour for it."""
    return click.style(text, fg="cyan")


def bold(text: str) -> str:
    """Return text in bold."""
    return click.style(text, bold=True)
