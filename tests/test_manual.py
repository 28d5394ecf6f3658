"""The examples in README, CONTRIBUTING and the manual run, those of the command line too."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import tables

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)])
# Pages that change what modules are found, with the libraries that they show.
ALONE = {"docs/howto/anndata.md": ("anndata",)}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
BLOCKS = re.compile(r"^```(python|pycon|console)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def session(text: str) -> str:
    """Return the interactive examples of a page, each on the line where the page has it."""

    def blank(prose: str) -> str:
        return "\n" * prose.count("\n")

    result, end = "", 0
    for block in BLOCKS.finditer(text):
        kind, body = block[1], block[2]
        result += blank(text[end : block.start(2)])
        if kind == "console":
            result += as_python(body)
        else:
            result += body if ">>>" in body else blank(body)
        end = block.end(2)
    return result


def as_python(console: str) -> str:
    """Return examples of the command line as interactive ones: `$ omnizarr ...`, and what it prints."""
    lines = []
    for line in console.splitlines():
        if line.startswith("$ "):
            lines.append(f">>> shell({line[2:]!r})")
        else:
            lines.append(line or "<BLANKLINE>")
    return "\n".join(lines) + "\n"


def shell(line: str) -> None:
    """Run a command and print what it says."""
    program, *arguments = shlex.split(line)
    assert program == "omnizarr", "only omnizarr is run"
    command = [sys.executable, "-m", "omnizarr", *arguments]
    environment = {**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, check=False)
    sys.stdout.write(done.stdout + done.stderr)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if name_of(page) not in ALONE], ids=name_of)
def test_examples_of_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page)


@pytest.mark.parametrize("name", ALONE)
def test_examples_of_page_run_in_a_process_of_its_own(name, tmp_path):
    missing = [library for library in ALONE[name] if find_spec(library) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    program = f"from tests.test_manual import ROOT, run; run(ROOT / {name!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def run(page: Path) -> None:
    """Run the examples of a page here."""
    name = name_of(page)
    names = {"shell": shell}
    test = doctest.DocTestParser().get_doctest(session(page.read_text(encoding="utf-8")), names, name, str(page), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not results.failed, "".join(report)


@pytest.mark.parametrize(("page", "text"), tables.pages().items(), ids=lambda each: getattr(each, "name", ""))
def test_tables_of_the_manual_say_what_the_source_says(page, text):
    assert page.read_text(encoding="utf-8") == text, "python -m tests.tables"
