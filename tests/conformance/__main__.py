"""Count the sentences of the specifications without a test: ``python -m tests.conformance [DIRECTORY] [--write]``.

With DIRECTORY, where the documents are kept, the tables are compared with them. ``--write`` renews the pages of the
manual. The exit status is 1 unless each sentence has a test, or a reason to have none.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.conformance import table
from tests.conformance.table import NOT_OURS, PLANNED, Table


def main(arguments: list[str]) -> int:
    tables = table.read_all()
    if "--write" in arguments:
        for path, text in table.pages(tables).items():
            path.write_text(text, "utf-8")
    directories = [Path(argument) for argument in arguments if argument != "--write"]
    wrong = [line for each in tables for line in problems(each, directories)]
    summaries = [summary(each) for each in tables]
    sys.stdout.write("\n".join([*wrong, *summaries, f"{len(wrong)} problems"]) + "\n")
    return 1 if wrong else 0


def summary(each: Table) -> str:
    return (
        f"{each.name}: {len(each.entries)} sentences: {each.count(example=False)} requirements and "
        f"{each.count(example=True)} examples with tests, {each.count(NOT_OURS)} {NOT_OURS}, "
        f"{each.count(PLANNED)} {PLANNED}, {len(table.unproved(each))} without a test"
    )


def problems(each: Table, directories: list[Path]) -> Iterator[str]:
    yield from (f"{each.name}: without a test: {name}" for name in table.unproved(each))
    for directory in directories:
        text = (directory / each.source).read_text("utf-8")
        yield from (f"{each.name}: {difference}" for difference in table.differences(each, text))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
