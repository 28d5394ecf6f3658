"""Manual pages for ``man``, made from the help: ``python -m omnizarr.cli.man DIRECTORY``.

One page for the program, ``omnizarr.1``, and one per command, ``omnizarr-info.1``. Spec: man(7).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import click

from omnizarr.cli import help as pages
from omnizarr.cli.commands import COMMANDS, omnizarr


def write(directory: str | Path) -> list[Path]:
    """Write all pages into a directory, and return them."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in all_pages():
        path = folder / f"{name}.1"
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def all_pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page."""
    root = click.Context(omnizarr, info_name="omnizarr", **omnizarr.context_settings)
    yield "omnizarr", _of_program(root)
    for group in COMMANDS.values():
        for name in group:
            command = omnizarr.get_command(root, name)
            assert command is not None  # noqa: S101 - the table of commands names it
            yield from _of_command(name, command, root)


def _of_program(context: click.Context) -> str:
    summary = "look into Zarr hierarchies of every format, check, change and convert them"
    lines = [*_head("omnizarr", summary), ".SH SYNOPSIS", r".B omnizarr", r"\fICOMMAND\fR [\fIOPTIONS\fR] \fIPATH\fR"]
    lines.append(".SH COMMANDS")
    for heading, group in COMMANDS.items():
        lines.append(f".SS {_escaped(heading)}")
        lines += _terms((rf"\fBomnizarr\-{name}\fR(1)", _escaped(text)) for name, (_, text) in group.items())
    options = [row for rows in pages.option_rows(omnizarr, context).values() for row in rows]
    for heading, rows in (
        ("PATHS", pages.PATHS),
        ("OPTIONS", options),
        ("EXAMPLES", pages.EXAMPLES),
        ("EXIT STATUS", pages.EXIT_CODES),
    ):
        lines += [f".SH {heading}", *_terms((rf"\fB{_escaped(term)}\fR", _escaped(text)) for term, text in rows)]
    return "\n".join(lines) + "\n"


def _of_command(name: str, command: click.Command, parent: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the page of a command, and the pages of its subcommands."""
    context = click.Context(command, info_name=name, parent=parent)
    typed = context.command_path
    page = typed.replace(" ", "-")
    parts = pages.Help.of(command)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [*_head(page, parts.summary), ".SH SYNOPSIS", rf"\fB{_escaped(typed)}\fR {_escaped(usage)}"]
    lines.append(".SH DESCRIPTION")
    for paragraph in parts.text.split("\n\n"):
        lines += [".PP", _escaped(paragraph)]
    for heading, rows in pages.option_rows(command, context).items():
        lines += [f".SH {_escaped(heading.upper())}"]
        lines += _terms((rf"\fB{_escaped(term)}\fR", _escaped(text)) for term, text in rows)
    for block in parts.blocks:
        title = "EXIT STATUS" if block.heading == "Exit codes" else block.heading.upper()
        lines += [f".SH {_escaped(title)}", ".nf", *map(_escaped, block.lines), ".fi"]
    lines += [".SH SEE ALSO", r"\fBomnizarr\fR(1)"]
    yield page, "\n".join(lines) + "\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            each = command.get_command(context, below)
            if each is not None:
                yield from _of_command(below, each, context)


def _head(name: str, summary: str) -> list[str]:
    text = _escaped(summary.partition(". ")[0].rstrip("."))
    return [
        f'.TH {_escaped(name.upper())} 1 "" "omnizarr {version("omnizarr")}" "omnizarr"',
        ".SH NAME",
        rf"{_escaped(name)} \- {text[0].lower()}{text[1:]}",
    ]


def _terms(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in rows:
        yield from (".TP", term, text)


def _escaped(text: str) -> str:
    r"""Return text with roff commands escaped.

    >>> _escaped(".x -a 'b' \\")
    "\\&.x \\-a 'b' \\e"
    """
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"(?m)^(?=[.'])", r"\\&", text)


if __name__ == "__main__":
    write(*sys.argv[1:])
