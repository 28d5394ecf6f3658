"""``omnizarr repair``, run as a user runs it."""

import io
import json
import sys

import pytest

from omnizarr.cli import repair as module
from tests import damaged
from tests.damaged import A2, CHUNK, V2_ARRAY, v2, v3

COMMAND = "repair"

WOULD = """\
/a
  would missing-filters: a/.zarray#/filters: write that there are no filters: nothing -> null
1 repair to be made, nothing changed
"""


@pytest.fixture
def store(tmp_path):
    """Return a function that writes files into a directory, and returns that."""

    def write(files):
        return damaged.build(damaged.Damaged("", files, []), tmp_path / "x.zarr")

    return write


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_changed_without_yes(run, store):
    folder = store(v2(filters=...))
    before = tree(folder)
    assert run(folder) == (1, f"{WOULD}nothing was changed; to make these repairs, add --yes\n", "")
    assert tree(folder) == before
    assert [*folder.parent.iterdir()] == [folder]


def test_yes_does_it_and_says_where_old_values_are(run, store):
    folder = store(v2(filters=...))
    code, out, err = run(folder, "--yes")
    place = next(path for path in folder.parent.iterdir() if path != folder)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "/a",
        "  did missing-filters: a/.zarray#/filters: write that there are no filters: nothing -> null",
        f"old values are in {place}",
        "1 repair made",
    ]
    assert json.loads((folder / A2).read_bytes()) == V2_ARRAY
    assert run(folder) == (0, "0 repairs to be made, nothing changed\n", "")


@pytest.mark.parametrize(("answer", "code", "last"), [("y\n", 0, "1 repair made"), ("n\n", 1, "add --yes")])
def test_terminal_asks(answer, code, last, run, store, monkeypatch):
    folder = store(v2(filters=...))
    before = tree(folder)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(module, "_is_terminal", lambda: True)
    found, out, _ = run(folder)
    assert found == code
    assert "Do this?" in out
    assert out.rstrip().endswith(last)
    assert (tree(folder) == before) == bool(code)


def test_undo_puts_back_with_yes_only(run, store, tmp_path):
    folder = store(v2(filters=...))
    before = tree(folder)
    run(folder, "--yes", "--backup", tmp_path / "old")
    after = tree(folder)
    assert run(folder, "--undo", tmp_path / "old")[0] == 1
    code, _, err = run("--undo", tmp_path / "old")
    assert (code, "does not lie beside it" in err) == (2, True)
    assert tree(folder) == after
    code, out, _ = run(folder, "--undo", tmp_path / "old" / "account.json", "--yes")
    assert (code, out) == (0, "/a\n  did missing-filters: a/.zarray: put the old value back\n1 repair made\n")
    assert tree(folder) == before


def test_undo_takes_a_store_that_was_moved(run, store, tmp_path):
    folder = store(v2(filters=...))
    before = tree(folder)
    run(folder, "--yes", "--backup", tmp_path / "old")
    folder.rename(tmp_path / "y.zarr")
    assert run(tmp_path / "y.zarr", "--undo", tmp_path / "old", "--yes")[0] == 0
    assert tree(tmp_path / "y.zarr") == before


def test_what_cannot_be_mended_is_shown_with_a_remedy(run, store):
    code, out, _ = run(store({**v3(), "a/c/0/0": b"", "a/c/2/2": CHUNK}), "--yes")
    assert code == 1
    lines = out.splitlines()
    assert lines[0] == "/a"
    assert lines[1].startswith("  left empty-chunk: a/c/0/0: ")
    assert lines[2].startswith("    → restore it from a copy")
    assert "only if the code is named" in lines[2]
    assert lines[-1] == "0 repairs made, 2 findings left"


def test_only_names_what_is_mended(run, store):
    folder = store({**v3(fill_value=""), "a/c/0/0": b"", "a/c/2/2": CHUNK})
    code, out, _ = run(folder, "--only", "empty-chunk", "--only", "chunk-beyond-grid", "--yes")
    assert code == 0
    assert out.count("  did ") == 2
    assert sorted(key for key in tree(folder) if key.startswith("a/c")) == ["a/c/0/1", "a/c/1/0", "a/c/1/1"]


def test_json_is_the_account(run, store):
    folder = store(v2(filters=...))
    code, out, err = run(folder, "--json")
    account = json.loads(out)
    assert (code, err) == (1, "")
    assert (account["dry_run"], account["ok"], account["left"]) == (True, False, [])
    assert account["actions"][0]["key"] == A2
    code, out, _ = run(folder, "--json", "--yes")
    account = json.loads(out)
    assert (code, account["ok"], account["actions"][0]["done"]) == (0, True, True)


def test_data_finds_torn_shards(run, store):
    case = next(case for case in damaged.STORES if case.name == "shard whose tail was added and is torn")
    folder = store(case.files)
    assert run(folder)[0] == 0
    code, out, _ = run(folder, "--data", "--yes")
    assert code == 0
    assert "cut off" in out


def test_leftovers_are_deleted_when_they_are_old_enough(run, store):
    folder = store({**v3(), "a/c/0/.omnizarr-0123456789abcdef.tmp": b"x"})
    assert "left temporary-file" in run(folder, "--yes")[1]
    assert "did temporary-file" in run(folder, "--yes", "--older-than", "0")[1]


def test_more_than_a_few_repairs_of_a_node_are_counted(run, store):
    folder = store({**v3(), **{f"a/c/{number}/9": CHUNK for number in range(30)}})
    out = run(folder, "--only", "chunk-beyond-grid")[1]
    assert out.count("  would ") == 20
    assert "    and 10 more\n" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing argument 'PATH'"),
        (["x.zarr", "--only", "missing-filter"], "no code 'missing-filter'; did you mean 'missing-filters'"),
        (["x.zarr", "--only", "not-json"], "not-json cannot be repaired"),
        (["x.zarr", "--older-than", "-1"], "--older-than"),
        (["--undo", "nothing"], "does not exist"),
    ],
)
def test_command_that_is_not_valid_gives_code_2(arguments, message, run):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_where_nothing_can_be_looked_at_code_is_2(run, tmp_path):
    code, out, err = run(tmp_path / "nothing.zarr")
    assert (code, out) == (2, "")
    assert "there is no node here" in err
    code, _, err = run("--undo", tmp_path)
    assert code == 2
    assert "no account of a repair" in err


def test_where_old_values_cannot_be_kept_code_is_2(run, store, tmp_path):
    folder = store(v2(filters=...))
    before = tree(folder)
    (tmp_path / "file").write_text("")
    code, _, err = run(folder, "--yes", "--backup", tmp_path / "file" / "old")
    assert code == 2
    assert "cannot be kept" in err
    assert tree(folder) == before


def test_part_of_a_hierarchy_is_named_by_its_path(run, store):
    folder = store({**v2(filters=...), "b/.zarray": v2(filters=...)[A2]})
    out = run(folder / "b")[1]
    assert "b" in out
    assert "/a\n" not in out
