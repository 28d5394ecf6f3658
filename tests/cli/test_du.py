"""``omnizarr du`` and ``omnizarr ls -l``, run as a user runs them."""

import json

import numpy as np
import pytest

import omnizarr


@pytest.fixture
def path(tmp_path):
    """Two arrays, one in a group, one chunk missing, and a file of no node."""
    path = tmp_path / "x.zarr"
    root = omnizarr.create_group(path)
    temp = root.create_array("ocean/temp", shape=(3, 4), chunks=(1, 4), dtype="float32", compressors=None, fill_value=0)
    temp[:2] = 1
    root.create_array("time", data=np.arange(3), compressors=None)
    (path / "notes.txt").write_bytes(bytes(100))
    return path


def size(*files):
    return sum(file.stat().st_size for file in files)


def test_du_prints_members_before_groups_and_the_total_last(run, path):
    code, out, err = run("du", "-b", path)
    temp = size(path / "ocean/temp/zarr.json") + 2 * 16
    time = size(path / "time/zarr.json") + 24
    ocean = temp + size(path / "ocean/zarr.json")
    root = ocean + time + size(path / "zarr.json") + 100
    documents = root - 32 - 24 - 100
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["stored", "logical", "ratio", "chunks", "path"]
    assert [(line[0], line[1], line[3], line[4]) for line in lines[1:5]] == [
        (str(temp), "48", "2/3", "/ocean/temp"),
        (str(ocean), "48", "2/3", "/ocean"),
        (str(time), "24", "1/1", "/time"),
        (str(root), "72", "3/4", "/"),
    ]
    assert out.splitlines()[5] == f"56 B in 3 chunks · {documents:,} B in 4 documents · 100 B in 1 other file"


def test_du_with_all_splits_each_node(run, path):
    _, out, _ = run("du", "-ab", "-d", "0", path)
    rows = [line.split(maxsplit=1) for line in out.splitlines()[1:-1]]
    parts = {name.strip(): int(nbytes) for nbytes, name in rows[:-1]}
    assert set(parts) == {"/ (chunks)", "/ (documents)", "/ (other files)"}
    assert parts["/ (other files)"] == 100
    assert sum(parts.values()) == int(rows[-1][0])


@pytest.mark.parametrize(("options", "names"), [(["-s"], ["/"]), (["-d", "1"], ["/ocean", "/time", "/"])])
def test_du_goes_down_to_a_depth(run, path, options, names):
    _, out, _ = run("du", *options, path)
    assert [line.split()[-1] for line in out.splitlines()[1:-1]] == names


def test_du_can_be_typed_as_people_do(run, path):
    assert run("du", "-sh", path) == run("du", "-s", path)


def test_du_sorts_the_largest_first(run, path):
    _, out, _ = run("du", "--sort", "logical", path)
    assert [line.split()[-1] for line in out.splitlines()[1:-1]] == ["/ocean/temp", "/ocean", "/time", "/"]


def test_du_json_is_what_the_function_returns(run, path):
    code, out, _ = run("du", "--json", path)
    assert code == 0
    assert json.loads(out) == omnizarr.du(path).to_dict()


def test_du_says_of_a_node_that_it_cannot_be_read(run, path):
    (path / "time" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    code, out, _ = run("du", path)
    assert code == 1
    assert "/time  (cannot be read: " in out


def test_du_of_nothing_is_an_error(run, tmp_path):
    code, out, err = run("du", tmp_path / "nothing")
    assert (code, out) == (1, "")
    assert "no node here" in err


def test_depth_and_total_exclude_each_other(run, path):
    assert run("du", "-s", "-d", "2", path)[0] == 2


def test_ls_long_has_aligned_columns(run, path):
    code, out, _ = run("ls", "-l", path)
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["kind", "type", "shape", "chunks", "stored", "ratio", "name"]
    assert [line.split()[0] for line in lines[1:]] == ["group", "array"]
    assert lines[2].split()[1:4] == ["int64", "3", "1/1"]
    assert {line.index(name) for line, name in zip(lines, ("name", "ocean", "time"), strict=True)} == {
        lines[0].index("name")
    }


def test_ls_long_recursive_lists_groups_before_members(run, path):
    _, out, _ = run("ls", "-lr", path)
    assert [line.split()[-1] for line in out.splitlines()[1:]] == ["/", "/ocean", "/ocean/temp", "/time"]


def test_ls_long_of_an_array_names_it_as_typed(run, path):
    _, out, _ = run("ls", "-l", path / "time")
    assert out.splitlines()[1].split()[-1] == str(path / "time")


def test_ls_long_json_has_sizes(run, path):
    _, out, _ = run("ls", "-l", "--json", path)
    ocean, time = json.loads(out)
    assert (ocean["path"], ocean["node_type"], ocean["expected"]) == ("/ocean", "group", 3)
    assert time["bytes_stored"] == size(path / "time/zarr.json") + 24
    assert (time["shape"], time["chunks"], time["shards"]) == ([3], [3], None)


def test_ls_long_widens_columns_for_long_rows_far_below(run, tmp_path):
    values = tmp_path / "many.zarr"
    root = omnizarr.create_group(values)
    for number in range(1005):
        root.create_group(f"a{number:04}")
    root.create_array("z", shape=(1,), chunks=(1,), dtype="datetime64[ns]")
    _, out, _ = run("ls", "-l", values)
    assert out.splitlines()[-1].split()[:3] == ["array", "datetime64[ns]", "1"]
    assert len(out.splitlines()) == 1 + 1006


def test_ls_long_of_a_group_whose_members_cannot_be_listed_says_so(run, path, monkeypatch):
    def refuse(self, prefix):
        raise omnizarr.errors.StoreError("the disk is on fire")

    monkeypatch.setattr(omnizarr.storage.LocalStore, "list_dir", refuse)
    code, out, _ = run("ls", "-l", path)
    assert code == 1
    assert "the disk is on fire" in out
    monkeypatch.setattr(omnizarr.storage.LocalStore, "list_prefix", refuse)
    code, out, _ = run("du", path)
    assert code == 1
    assert out.splitlines()[1].split()[:4] == ["?", "0", "B", "-"]
    assert "stored: unknown" in out
