"""The examples in README, CONTRIBUTING and the manual run."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def session(text: str) -> str:
    """Return the interactive examples of a page, each on the line where the page has it."""

    def blank(prose: str) -> str:
        return "\n" * prose.count("\n")

    result, end = "", 0
    for block in re.finditer(r"^```(?:python|pycon)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        result += blank(text[end : block.start(1)])
        result += block[1] if ">>>" in block[1] else blank(block[1])
        end = block.end(1)
    return result


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_of_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = page.relative_to(ROOT).as_posix()
    test = doctest.DocTestParser().get_doctest(session(page.read_text(encoding="utf-8")), {}, name, str(page), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not results.failed, "".join(report)
