"""The tables of conformance: what each document requires or shows, in our words, and the tests that prove it.

``<document>.toml`` lists the sentences that `sentences.find` finds, in their order. The documents themselves are not
kept here: an entry has the identifier of a sentence, never its words. It names tests; or it has a `kind`, ``planned``
or ``not for implementations``, and a reason.
"""

import ast
import functools
import hashlib
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conformance import sentences

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "formats"
NAMES = ("v1", "v3-draft-2019", "v3-draft-2020", "v3", "nczarr")
PLANNED, NOT_OURS = "planned", "not for implementations"
COMMAND = "python -m tests.conformance"


@dataclass(frozen=True, slots=True)
class Entry:
    """One sentence: what it says, in our words, and what proves it."""

    id: str
    section: str
    says: str
    tests: tuple[str, ...] = ()
    kind: str | None = None
    reason: str | None = None
    example: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """All sentences of one document."""

    name: str
    title: str
    source: str
    """Name of the file that holds the document."""
    digest: str
    """Of the identifiers: without the document, too, no entry is lost or altered unnoticed."""
    entries: tuple[Entry, ...]

    def count(self, kind: str | None = None, *, example: bool | None = None) -> int:
        """Return how many entries there are of a kind (None: with tests)."""
        return sum(entry.kind == kind and example in {None, entry.example} for entry in self.entries)


def read(name: str) -> Table:
    document = tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))
    entries = tuple(Entry(**{**entry, "tests": tuple(entry.get("tests", ()))}) for entry in document.pop("sentence"))
    return Table(name=name, **document, entries=entries)


def read_all() -> list[Table]:
    return [read(name) for name in NAMES]


def digest(entries: Iterable[Entry]) -> str:
    return hashlib.sha256("\n".join(f"{entry.id} {entry.example}" for entry in entries).encode()).hexdigest()[:16]


def unproved(table: Table) -> list[str]:
    """Return the sentences without an existing test, and without a kind and a reason instead."""
    return [
        entry.id
        for entry in table.entries
        if not (entry.tests and all(exists(test) for test in entry.tests)) and not (entry.kind and entry.reason)
    ]


def differences(table: Table, text: str) -> list[str]:
    """Return what a document has and its table has not, and the other way round."""
    found = {sentence.id: sentence for sentence in sentences.find(text)}
    listed = {entry.id: entry for entry in table.entries}
    missing = [f"not in the table: {name}: {found[name].text}" for name in found if name not in listed]
    stale = [f"not in the document: {name}: {listed[name].says}" for name in listed if name not in found]
    if missing or stale:
        return missing + stale
    facts = [(s.id, s.section, s.is_example) for s in found.values()]
    wrong = [entry.id for entry, fact in zip(table.entries, facts, strict=True) if facts_of(entry) != fact]
    return [f"out of order, or another section: {name}" for name in wrong]


def facts_of(entry: Entry) -> tuple[str, str, bool]:
    return entry.id, entry.section, entry.example


def exists(test: str) -> bool:
    """Return whether there is such a test that runs: ``tests/test_x.py::test_a``, ``tests/x.py::TestX::test_b``."""
    file, _, name = test.partition("::")
    return name in names_of_tests(ROOT / file)


@functools.cache
def names_of_tests(file: Path) -> frozenset[str]:
    """Return the tests defined in a file; those that classes inherit are named after the class that defines them."""
    return frozenset(walk(ast.parse(file.read_text("utf-8")).body)) if file.is_file() else frozenset()


def walk(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from walk(node.body, f"{prefix}{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_test(node):
            yield prefix + node.name


def is_test(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return node.name.startswith("test") and not any(map(prevents, node.decorator_list))


def prevents(decorator: ast.expr) -> bool:
    """Return whether a decorator skips a test in any case, or lets it fail."""
    mark = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(mark, ast.Attribute) and mark.attr in {"skip", "xfail"}


def pages(tables: list[Table]) -> dict[Path, str]:
    """Return the pages of the manual that show the tables."""
    return {PAGES / "conformance.md": overview(tables), **{PAGES / page_name(table): page(table) for table in tables}}


def page_name(table: Table) -> str:
    return f"conformance-{table.name}.md"


def overview(tables: list[Table]) -> str:
    rows = [
        f"| [{table.title}]({page_name(table)}) | {table.count(example=False)} | {table.count(example=True)} "
        f"| {table.count(NOT_OURS)} | {table.count(PLANNED)} | {len(unproved(table))} |"
        for table in tables
    ]
    links = [page_name(table).removesuffix(".md") for table in tables]
    return f"""# Conformance

Each sentence of the five source documents that says *must*, *must not*, *required* or *shall*, and each example that
they work out, stands in a table, in our words, beside the tests that prove it.

| document | requirements with tests | examples with tests | not for implementations | planned | without a test |
|---|---:|---:|---:|---:|---:|
{lines(rows)}

*Not for implementations* are sentences that speak to authors of other specifications, or of something else than Zarr;
each has its reason beside it. *Planned* is what needs stores in the cloud.

`{COMMAND} --write` makes these pages from `tests/conformance/*.toml`; `{COMMAND} DIRECTORY`
counts, and compares the tables with the documents themselves, where these lie in DIRECTORY.

```{{toctree}}
:hidden:

{lines(links)}
```
"""


def page(table: Table) -> str:
    rows = [f"| {cell(entry.section)} | {words(entry)} | {proof(entry)} |" for entry in table.entries]
    return f"""# Conformance: {table.title}

{table.count()} of {len(table.entries)} sentences and examples are proved by tests, files of which lie below `tests/`.
Tests of `stores/contract.py` run for each kind of store. [Conformance](conformance.md) says what is listed here.

| section | what it says | proved by |
|---|---|---|
{lines(rows)}
"""


def lines(items: list[str]) -> str:
    return "\n".join(items)


def words(entry: Entry) -> str:
    return f"*Example:* {cell(entry.says)}" if entry.example else cell(entry.says)


def proof(entry: Entry) -> str:
    if entry.kind:
        return f"*{entry.kind}*: {cell(entry.reason or '')}"
    return "<br>".join(f"`{test.removeprefix('tests/')}`" for test in entry.tests)


def cell(text: str) -> str:
    return text.replace("|", "\\|")
