"""The tables of the manual that say what the source says: ``python -m tests.tables`` writes them again."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from omnizarr.cli.commands import omnizarr
from omnizarr.cli.completion import OPTIONS
from omnizarr.codecs import registry
from omnizarr.codecs.record import READERS, Record
from omnizarr.tools.check.codes import MENDS, REPAIRABLE, SECTIONS

NAMES_OF_HELP = ["-h", "--help"]
DOCS = Path(__file__).parents[1] / "docs"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    heads = list(head)
    cells = [heads, ["---"] * len(heads), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells).replace(" --- ", "---")


def of_findings() -> dict[str, str]:
    """Return the tables of what a check finds, by their headings."""
    return {
        section: table(
            ("code", "severity", "what it means", "what to do", "repair"),
            ((f"`{row.code}`", *row[1:4], "yes" if row.code in REPAIRABLE else "") for row in rows),
        )
        for section, rows in SECTIONS.items()
    }


def of_mends() -> dict[str, str]:
    """Return the tables of what a repair mends, by their headings."""
    return {
        heading: table(
            ("code", "what is done", why),
            (
                (f"`{code}`", mend.done, f"{mend.why}{_FOUND if mend.decodes and not asked else ''}")
                for code, mend in MENDS.items()
                if mend.asked == asked
            ),
        )
        for asked, heading, why in (
            (False, "Automatic repairs", "why it is certain"),
            (True, "Repairs that you must name", "what to consider"),
        )
    }


def of_codecs() -> dict[str, str]:
    """Return the tables of codecs, by their headings."""
    heads = {"array to array": "decoding", "array to bytes": "needs", "bytes to bytes": "run by"}
    rank = {"core": 0, "registered": 1, "": 2}

    def order(record: Record) -> int:
        return min(rank[name.status] for name in record.names.values())

    known = [record for record in registry.records() if not record.id.startswith("omnizarr.")]
    return {
        kind.capitalize(): table(
            ("v3", "v2", "configuration", last, "native engine"),
            (of_codec(record) for record in sorted(known, key=order) if record.kind == kind),
        )
        for kind, last in heads.items()
    }


def of_codec(record: Record) -> tuple[str, ...]:
    """Return the row of a codec."""
    signs = {"core": "**", "registered": "", "": "*"}
    names = (f"{signs[name.status]}`{each}`{signs[name.status]}" for each, name in record.names.items())
    package = f"{record.package[0]}: `omnizarr[{record.package[1]}]`" if record.package else ""
    parameters = ", ".join(f"`{name}`" for name in record.parameters)
    return ", ".join(names), record.v2 or f"`{record.id}`", parameters, record.note or package, "yes" * record.native


def of_readers() -> dict[str, str]:
    """Return the table of the programs that read each codec, by its heading."""
    known = [(name, found.readers) for record in registry.records() for name, found in record.names.items()]
    by_readers = {
        each: sorted((name for name, readers in known if readers == each), key=lambda name: ("." in name, name))
        for each in sorted(
            {readers for _, readers in known if readers is not None},
            key=lambda each: (-len(each), [name not in each for name in READERS]),
        )
    }
    rows = (
        (", ".join(f"`{name}`" for name in names), *("yes" if reader in each else "no" for reader in READERS))
        for each, names in by_readers.items()
    )
    return {"Readers of the result": table(("codec of v3", *READERS), rows)}


_FOUND = ". Found with `data=True`, `--data`"


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with the table below each of these headings replaced."""
    for heading, text in tables.items():
        pattern = rf"(?sm)(^##+ {re.escape(heading)}\n.*?)^\| (?:code|v3|codec of v3) .*?\n(?!\|)"
        page, count = re.subn(pattern, lambda found, text=text: f"{found[1]}{text}", page, count=1)
        assert count == 1, heading
    return page


def of_options() -> str:
    """Return the options of each command, with their help, as completion offers them without importing the command."""
    context = click.Context(omnizarr)
    rows = {}
    for name in omnizarr.list_commands(context):
        command = omnizarr.get_command(context, name)
        if command is None or isinstance(command, click.Group):  # whose options depend on the next word
            continue
        found = command.shell_complete(click.Context(command, context, name, help_option_names=NAMES_OF_HELP), "--")
        rows[name] = {item.value: item.help for item in found}
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def pages() -> dict[Path, str]:
    """Return the pages of the manual, and the table of options, as they should be."""
    tables = {"checking.md": of_findings(), "repairing.md": of_mends(), "codecs.md": of_codecs(),
              "converting.md": of_readers()}  # fmt: skip
    found = {DOCS / name: with_tables((DOCS / name).read_text("utf-8"), each) for name, each in tables.items()}
    return {**found, OPTIONS: of_options()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
