"""The tables of conformance: complete, proved, and the same as in the manual."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from omnizarr.formats import DRAFT2019, DRAFT2020, V1, V3
from omnizarr.formats.history import draft_entry
from tests.conformance import __main__ as command
from tests.conformance import sentences, table
from tests.conformance.table import NOT_OURS, PLANNED, ROOT, Entry, Table

pytestmark = pytest.mark.rules

TABLES = table.read_all()
SPECS = Path(os.environ.get("OMNIZARR_SPECS", ROOT.parent / "shared" / "specs"))
every = pytest.mark.parametrize("each", TABLES, ids=lambda each: each.name)


@every
def test_each_sentence_has_a_test_that_exists_or_a_reason(each):
    assert table.unproved(each) == []


@every
def test_each_listed_test_exists(each):
    assert [test for entry in each.entries for test in entry.tests if not table.exists(test)] == []


@every
def test_an_entry_has_either_tests_or_a_kind_with_a_reason(each):
    for entry in each.entries:
        assert bool(entry.tests) != bool(entry.kind and entry.reason), entry.id
        assert entry.kind in {None, NOT_OURS, PLANNED}, entry.id


@every
def test_identifiers_are_unique(each):
    identifiers = [entry.id for entry in each.entries]
    assert len(set(identifiers)) == len(identifiers)


@every
def test_no_entry_was_lost_or_altered(each):
    found = table.digest(each.entries)
    assert found == each.digest, f"compare with the document; if entries were changed on purpose, set digest to {found}"


def test_tables_agree_with_the_documents_that_are_there_in_both_directions():
    there = [each for each in TABLES if (SPECS / each.source).is_file()]
    assert [line for each in there for line in table.differences(each, (SPECS / each.source).read_text("utf-8"))] == []


def documents_in(code):
    """Yield the JSON objects in a block of code, without the commas that JSON does not have."""
    found = re.search(r"^( *)\{.*^\1\}", code, re.DOTALL | re.MULTILINE) or re.search(r"\{\}", code)
    if found:
        yield json.loads(re.sub(r",(?=\s*\})", "", found[0]))


def name_in(dialect, document):
    """Return the name that a document has in a dialect; None for the entry point of a hierarchy."""
    if dialect.name == "v1":
        return "meta" if "zarr_format" in document else "attrs"
    if dialect.name == "v3":
        return "zarr.json"
    return "array" if "shape" in document else "group" if "attributes" in document else None


@pytest.mark.parametrize(
    ("dialect", "source", "expected"),
    [
        pytest.param(V1, "zarr-v1.rst", 5, id="v1"),
        pytest.param(DRAFT2019, "zarr-v3-draft-2019.rst", 2, id="v3-draft-2019"),
        pytest.param(DRAFT2020, "zarr-v3-draft-2020.rst", 5, id="v3-draft-2020"),
        pytest.param(V3, "zarr-v3.0.txt", 3, id="v3"),
    ],
)
def test_examples_in_the_documents_that_are_there_round_trip(dialect, source, expected):
    if not (SPECS / source).is_file():
        return
    blocks = [each.text for each in sentences.find((SPECS / source).read_text("utf-8")) if each.is_example]
    documents = [document for block in blocks if "\n" in block for document in documents_in(block)]
    assert len(documents) == expected
    meta = next((document for document in documents if name_in(dialect, document) == "meta"), {})
    for document in documents:
        name = name_in(dialect, document)
        if name is None:
            assert draft_entry.enter(document, "") is not None
        else:
            both = {"meta": meta, name: document} if name == "attrs" else {name: document}
            written = dialect.dump(dialect.load(both))
            assert written[name] == document


def test_nothing_is_planned_any_more():
    assert [(each.name, entry.section) for each in TABLES for entry in each.entries if entry.kind == PLANNED] == []


TEXT = """
Names
=====

A name is text. It must not be empty.

For example, "a" is a name.
"""


def small_table(*entries):
    return Table("small", "Small", "small.rst", table.digest(entries), entries)


def entries_of(text):
    return [Entry(s.id, s.section, "says", example=s.is_example) for s in sentences.find(text)]


def test_missing_stale_and_disordered_entries_are_found():
    rule, example = entries_of(TEXT)
    assert table.differences(small_table(rule, example), TEXT) == []
    assert [line[:19] for line in table.differences(small_table(rule), TEXT)] == ["not in the table: n"]
    stale = small_table(rule, example, replace(rule, id="names/00000000"))
    assert table.differences(stale, TEXT) == ["not in the document: names/00000000: says"]
    assert len(table.differences(small_table(example, rule), TEXT)) == 2
    assert len(table.differences(small_table(rule, replace(example, section="Other")), TEXT)) == 1


def test_an_entry_whose_test_does_not_exist_counts_as_unproved():
    here = "tests/conformance/test_conformance.py"
    there = [
        f"{here}::test_identifiers_are_unique",
        "tests/stores/contract.py::StoreContract::test_missing_key_is_none",
    ]
    gone = [f"{here}::test_gone", "tests/gone.py::test_a", f"{here}::TABLES", here]
    rule, _ = entries_of(TEXT)
    assert table.unproved(small_table(replace(rule, tests=tuple(there)))) == []
    for test in gone:
        assert table.unproved(small_table(replace(rule, tests=(*there, test)))) == [rule.id]
    assert table.unproved(small_table(rule)) == [rule.id]
    assert table.unproved(small_table(replace(rule, kind=NOT_OURS))) == [rule.id]
    assert table.unproved(small_table(replace(rule, kind=NOT_OURS, reason="speaks to authors"))) == []


def test_a_test_that_is_skipped_or_may_fail_proves_nothing(tmp_path):
    file = tmp_path / "test_x.py"
    marks = ("", "@pytest.mark.skip", "@pytest.mark.xfail(reason='later')", "@pytest.mark.skipif(windows, reason='w')")
    file.write_text("\n".join(f"{mark}\ndef test_{number}(): ..." for number, mark in enumerate(marks)))
    assert table.names_of_tests(file) == {"test_0", "test_3"}


def test_the_command_fails_where_a_document_has_more_than_the_table(tmp_path, monkeypatch, capsys):
    rule, example = entries_of(TEXT)
    proved = [
        replace(entry, tests=("tests/model/test_keys.py::test_scalar_has_the_key_of_the_specification",))
        for entry in (rule, example)
    ]
    monkeypatch.setattr(table, "read_all", lambda: [small_table(*proved)])
    (tmp_path / "small.rst").write_text(TEXT)
    assert command.main([]) == 0
    assert command.main([str(tmp_path)]) == 0
    assert "1 requirements and 1 examples with tests" in capsys.readouterr().out
    (tmp_path / "small.rst").write_text(TEXT + "\nIt shall be short.\n")
    assert command.main([str(tmp_path)]) == 1
    assert "not in the table" in capsys.readouterr().out


@pytest.mark.parametrize(("path", "text"), table.pages(TABLES).items(), ids=lambda value: getattr(value, "name", ""))
def test_pages_of_the_manual_are_current(path, text):
    assert path.read_text("utf-8") == text, f"run {table.COMMAND} --write"
