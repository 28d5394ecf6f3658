"""Text that people read is plain English: constructions that need a second reading are found by their words."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.rules

ROOT = Path(__file__).parents[1]

BANNED = (
    (r"\bnobody\b|\bwhoever\b|\bwhomever\b|\bwhomsoever\b", "name the program, thread or reader, or use the passive"),
    (r"(?:^|[.;:] )Who (?!or what)\w+(?! \w+\?)", 'begin with the subject: "A writer that ..."'),
    (
        r"\b(?:to|by|for|all|of) who (?:has|have|is|are|does|do|reads?|writes?|needs?|wants?|asks?|looks?|comes?)\b",
        "name them",
    ),
    (r"\bof (?:itself|themselves|its own accord)\b(?! own)", "say what does it"),
    (r"\b(?:comes?|brings?|brought|came) home\b", "say what is converted"),
    (r"\balike\b", 'use "both", "equal" or "in the same way"'),
    (r"\bat hand\b", 'use "current" or "available"'),
    (r"\bput up with\b|\bleft out of account\b", 'use "tolerated" or "ignored"'),
    (r"\bas the text has it\b|\bto the letter\b", 'use "as specified" or "strictly"'),
    (r"\bof its own kind\b|\bwhat is no [a-z]+\b", 'use "that is not a"'),
    (r"\bThere it may\b|\bThat it is\b|\bNor is\b", "put the subject first"),
    (r"\bif need be\b|\bbe it\b", 'use "if necessary"'),
    (r"\banew\b", 'use "again"'),
    (r"\bin the words of\b|\bno words? for\b", 'use "in the terms of" or "cannot express"'),
    (r"\bwhat (?:is|was|are|were) (?:not )?there\b", 'use "existing" or "missing"'),
    (r"\b(?:is|are) (?:not )?there already\b|\bthat (?:is|are) not there\b", 'use "exists" or "is missing"'),
    (r"\b(?:is|are|was|were) said\b|\b(?:is|are) told\b|\bit comes to\b", "say who states, reports or gets it"),
    (r"\b(?:taken|takes?|took) (?:it |them )?(?:as|for) (?=a |an |one |the )", 'use "read as" or "treated as"'),
    (r"\bstands? for\b", 'use "means", "replaces" or "represents"'),
    (r"\b(?:speaks?|spoken?) of\b", 'use "describes" or "names"'),
    (r"\bput(?:s|ting)? right\b", 'use "corrected"'),
    (r"\b(?:is|are|was|were|be) passed over\b", 'use "ignored" or "skipped"'),
    (r"\b(?:stay|stays|kept|copied|left|handed on) as (?:it is|they are)(?=[.,;:)]|$)", 'use "unchanged"'),
    (r"\bhad better\b", 'use "should"'),
    (r"\bhand(?:s|ed)? (?:it |them )?on(?=[.,;:)]|$)", 'use "pass on"'),
    (r"\bright (?:below|above)\b", 'use "directly below" or "directly above"'),
    (r"\bmakes? no sense\b", 'use "is not valid"'),
    (r"\bupon\b", 'use "on" or "around"'),
    (r"\bwhichever\b", 'use "any"'),
    (r"\bwithout a word\b", 'use "silently"'),
    (r"\bas (?!\w+ process)(?:an? |the |its |this |another )?[\w.'`-]+ has it\b", 'use "as in" or "in the form of"'),
    (r"\b[Ll]ets? go of\b", 'use "release"'),
    (r"\bwhat (?:else )?there (?:is|was) to (?:say|know)\b|\bwhat else there\b", 'use "remarks" or "other"'),
    (r"\bakin\b", 'use "similar" or "related"'),
    (r"\botherwise than\b", 'use "differently from"'),
    (r"\bEnter (?:what|why|that)\b", 'use "report" or "record"'),
    (r"\bno business of\b", 'use "do not define" or "do not concern"'),
    (r"(?:^|[.] )Do as `|\bTell whether\b", 'use "Like" or "Return whether"'),
    (r"\b[Oo]f so many\b|(?:^|[.] )So many\b", 'use "Number of" or the name of the parameter'),
    (r"\b(?:here|there)upon\b|\bthere(?:of|with|to|by)\b|\bwhere(?:of|with|upon)\b", "use two sentences"),
)
"""Patterns, and what to write instead."""

PAGES = [
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("packages/*/*.md"), *(ROOT / "docs").rglob("*.md"))
    if "_build" not in path.parts
]
MODULES = [
    path
    for folder in ("src", "packages", "examples", "benchmarks", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if path != Path(__file__)
]
CRATE = [*(ROOT / "rust" / "src").rglob("*.rs")]
TABLES = [*(ROOT / "tests" / "conformance").glob("*.toml")]


def of_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of a page in Markdown, without code."""
    fence = ""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        is_fence = mark is not None and (not fence or line.strip() == fence)
        if mark and is_fence:
            fence = "" if fence else mark[1]
        lines.append((number, "" if fence or is_fence else re.sub(r"`[^`]*`", "`", line)))
    yield from paragraphs(lines)


def of_module(text: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings, comments and longer strings of a module in Python."""
    comments = ((number, re.search(r"(?:^|\s)#:? (.*)", line)) for number, line in enumerate(text.splitlines(), 1))
    yield from paragraphs([(number, found[1] if found else "") for number, found in comments])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            lines = enumerate(node.value.splitlines(), node.lineno)
            code = (">>>", "...")
            yield from paragraphs([(number, "" if line.strip().startswith(code) else line) for number, line in lines])


def of_crate(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a module in Rust."""
    lines = ((number, re.match(r"\s*//[/!]? ?(.*)", line)) for number, line in enumerate(text.splitlines(), 1))
    yield from paragraphs([(number, found[1] if found else "") for number, found in lines])


def of_table(text: str) -> Iterator[tuple[int, str]]:
    """Yield what a table of requirements says, and the reasons in it."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"(?:says|reason) = (.*)", line):
            yield number, found[1].strip('"')


def paragraphs(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield runs of lines as one line each, with the number of the first."""
    begun, run = 0, []
    for number, line in [*lines, (0, "")]:
        if line.strip():
            begun = begun if run else number
            run.append(line.strip())
        elif run:
            yield begun, " ".join(run)
            run = []


def problems(path: Path) -> Iterator[str]:
    """Yield where a file has a banned construction."""
    read = {".md": of_page, ".py": of_module, ".rs": of_crate, ".toml": of_table}[path.suffix]
    for number, text in read(path.read_text("utf-8")):
        for pattern, advice in BANNED:
            for found in re.finditer(pattern, text):
                near = text[max(0, found.start() - 40) : found.end() + 40]
                yield f"{path.relative_to(ROOT)}:{number}: {found[0]!r} in '...{near}...': {advice}"


@pytest.mark.parametrize("files", [PAGES, MODULES, CRATE, TABLES], ids=["pages", "modules", "crate", "tables"])
def test_text_has_no_construction_that_needs_a_second_reading(files):
    assert files
    found = [problem for path in sorted(files) for problem in problems(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "Values are kept for whoever reads them.",
        "Who comes from zarr-python begins with the differences.",
        "It says to who has no lock that it is one.",
        "A document that is there is left out of account.",
        "An account of the array at hand.",
    ],
)
def test_banned_constructions_are_found(text):
    assert any(re.search(pattern, text) for pattern, _ in BANNED)


def test_code_of_a_page_is_not_prose():
    page = "One line.\n\n```python\n>>> nobody = 1\n```\nTwo `nobody`\nlines.\n"
    assert list(of_page(page)) == [(1, "One line."), (6, "Two ` lines.")]
