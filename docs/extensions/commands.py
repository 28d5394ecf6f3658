"""The reference of the command line, made from the help: it takes the place of a comment in `reference/commands.md`."""

import re

import click

from omnizarr.cli import help as pages
from omnizarr.cli.commands import COMMANDS, omnizarr

PAGE = "reference/commands"
PLACE = re.compile(r"<!-- commands:.*?-->", re.DOTALL)


def setup(app):
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}


def fill(app, name, source):
    """Put the reference into its page, when Sphinx reads that."""
    if name == PAGE:
        source[0], count = PLACE.subn(lambda _: text(), source[0])
        assert count == 1, f"{name}: no place for the commands"


def text() -> str:
    """Return the reference of all commands in Markdown, for MyST."""
    root = click.Context(omnizarr, info_name="omnizarr", **omnizarr.context_settings)
    lines = []
    for heading, group in COMMANDS.items():
        lines += ["", f"## {heading}"]
        for name in group:
            lines += of_command(name, omnizarr.get_command(root, name), root, level=3)
    lines += of_shared(root)
    lines += ["", "## Exit codes", "", "| code | meaning |", "|---|---|"]
    lines += [f"| {code} | {_cell(meaning)} |" for code, meaning in pages.EXIT_CODES]
    return "\n".join(lines) + "\n"


def of_command(name, command, parent, level):
    """Yield the lines of a command, and those of the commands below it."""
    context = click.Context(command, info_name=name, parent=parent)
    parts = pages.Help.of(command)
    typed = context.command_path.removeprefix("omnizarr ")
    yield from ("", f"{'#' * level} {typed}", "")
    yield from ("```text", f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}", "```")
    for paragraph in parts.text.split("\n\n"):
        yield from ("", _prose(paragraph))
    sections = dict(pages.option_rows(command, context))
    if own := sections.pop("Options", None):
        yield from ("", *_table("option", own))
    if sections:
        terms = (term for rows in sections.values() for term, _ in rows)
        names = (_code(re.match(r"(-\w, )?--[\w-]+", term)[0]) for term in terms)
        yield from ("", f"[Options of many commands](#options-of-many-commands): {', '.join(names)}")
    for block in parts.blocks:
        yield from ("", f"{block.heading}:", "", "```text", *block.lines, "```")
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            yield from of_command(below, command.get_command(context, below), context, level + 1)


def of_shared(root):
    """Yield the options that many commands have, each once."""
    found = {}
    for group in COMMANDS.values():
        for name in group:
            command = omnizarr.get_command(root, name)
            context = click.Context(command, info_name=name, parent=root)
            for heading, rows in pages.option_rows(command, context).items():
                if heading != "Options":
                    found.setdefault(heading, {}).update(rows)
    yield from ("", "## Options of many commands")
    for heading, rows in found.items():
        yield from ("", *_table(heading.lower(), rows.items()))


def _table(heading, rows):
    yield from (f"| {heading} | meaning |", "|---|---|")
    yield from (f"| {_code(term)} | {_cell(meaning)} |" for term, meaning in rows)


def _code(term):
    return f"`{_piped(term)}`"


def _cell(meaning):
    return _piped(_prose(meaning))


def _piped(text):
    return text.replace("|", r"\|")


def _prose(text):
    """Return text of the help, in which nothing is Markdown; options are code."""
    escaped = re.sub(r"([\\*_`<>\[\]#])", r"\\\1", text)
    return re.sub(r"(?<![\w-])--?[a-z][\w-]*", r"`\g<0>`", escaped)
