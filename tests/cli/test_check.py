"""``omnizarr check``, run as a user runs it."""

import json

import pytest

import omnizarr
from tests import damaged

COMMAND = "check"


@pytest.fixture
def store(tmp_path):
    """Return a function that writes files into a directory, and returns that."""

    def write(files):
        return damaged.build(damaged.Damaged("", files, []), tmp_path / "x.zarr")

    return write


def test_sound_hierarchy_gives_one_line_and_code_0(run, store):
    assert run(store(damaged.v3())) == (0, "nothing found · 2 nodes, 4 chunks looked at\n", "")


def test_errors_give_code_1_place_and_remedy(run, store):
    code, out, err = run(store({**damaged.v3(), "a/c/0/0": b"x"}))
    assert code == 1
    assert err == ""
    assert out.splitlines() == [
        "/a",
        "  error wrong-chunk-size: a/c/0/0: the chunk has the wrong size: found 1 bytes, expected 16 bytes",
        "what to do",
        "  wrong-chunk-size: restore it from a copy, or write it again",
        "1 error · 2 nodes, 4 chunks looked at",
    ]


def test_warnings_give_code_1_only_if_strict(run, store):
    path = store(damaged.v2(filters=...))
    assert run(path)[0] == 0
    assert run("--strict", path)[0] == 1


def test_data_option_decodes_chunks(run, store):
    path = store(damaged.coded(damaged.BYTES, damaged.GZIP, first=b"not gzip"))
    assert run(path)[0] == 0
    code, out, _ = run("--data", path)
    assert code == 1
    assert "undecodable-chunk" in out
    assert "4 chunks decoded" in out


def test_json_is_one_object_with_all_findings(run, store):
    files = {**damaged.v3(), **{f"a/c/0/{number}": b"" for number in range(2, 30)}}
    path = store(files)
    code, out, _ = run("--json", path)
    report = json.loads(out)
    assert code == 0
    assert report == omnizarr.check(path).to_dict()
    assert len(report["findings"]) == 28


def test_many_findings_of_one_kind_are_counted(run, store):
    files = {**damaged.v3(), **{f"a/c/0/{number}": b"" for number in range(2, 30)}}
    _, out, _ = run(store(files))
    assert out.count("chunk-beyond-grid: a/c") == 5
    assert "and 23 more of this kind" in out


def test_arrays_with_missing_chunks_are_counted_on_one_line(run, tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    for name in ("a", "b", "c"):
        root.create_array(name, shape=(4,), dtype="i4")
    code, out, _ = run(tmp_path / "x.zarr")
    said = [line for line in out.splitlines() if "missing-chunks" in line]
    assert code == 0
    assert said == [
        "note missing-chunks: of 3 arrays, chunks are not stored, and read as the fill value; --json lists them"
    ]
    assert "/a" not in out.splitlines()


def test_nothing_to_check_gives_code_2(run, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "notes.txt"):
        code, out, err = run(path)
        assert (code, out) == (2, "")
        assert err.startswith("omnizarr: ")


def test_place_within_an_archive_or_a_draft_can_be_named(run, tmp_path, store):
    import zipfile

    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for key, data in {**damaged.v3(), "b/zarr.json": b"{"}.items():
            archive.writestr(key, data)
    assert run(tmp_path / "x.zip" / "a")[0] == 0
    assert run(tmp_path / "x.zip" / "b")[0] == 1
    assert run(store({**damaged.d2020(), "data/root/a/c0/0": b""}) / "a")[0] == 1


def test_names_and_values_cannot_command_the_terminal(run, store):
    files = {**damaged.v3(), "\x1b[31mx/zarr.json": damaged.text({**damaged.V3_ARRAY, "zarr_format": "\x1b[2J"})}
    _, out, _ = run(store(files))
    assert "\x1b" not in out


def test_bad_option_gives_code_2(run):
    code, _, err = run("--nonsense", "x")
    assert code == 2
    assert "--nonsense" in err
