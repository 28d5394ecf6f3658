"""``omnizarr missing``, run as a user runs it."""

import json

import pytest

import omnizarr


@pytest.fixture
def path(tmp_path):
    """Two arrays, one of them with gaps."""
    path = tmp_path / "x.zarr"
    root = omnizarr.create_group(path)
    temp = root.create_array("ocean/temp", shape=(4, 4), chunks=(1, 2), dtype="int16", fill_value=0)
    temp[0] = 1
    temp[2, :2] = 1
    root.create_array("time", shape=(3,), chunks=(3,), dtype="int8", fill_value=0)[:] = 1
    return path


def test_coordinates_are_printed_and_the_number_distinguished(run, path):
    code, out, err = run("missing", path / "ocean/temp")
    assert (code, out, err) == (0, "1,0\n1,1\n2,1\n3,0\n3,1\n", "5 of 8 chunks missing\n")


def test_regions_can_be_given_to_get(run, path):
    _, out, _ = run("missing", "--regions", path / "ocean/temp")
    assert out == "1:2, 0:4\n2:3, 2:4\n3:4, 0:4\n"
    assert run("get", path / "ocean/temp", out.splitlines()[0])[1] == "[[0 0 0 0]]\n"


def test_keys_are_those_of_the_store(run, path):
    _, out, _ = run("missing", "--keys", path)
    assert out.splitlines() == [f"ocean/temp/c/{at}" for at in ("1/0", "1/1", "2/1", "3/0", "3/1")]


def test_lines_of_a_group_begin_with_the_array(run, path):
    code, out, err = run("missing", path)
    assert code == 0
    assert out.splitlines()[0] == "/ocean/temp  1,0"
    assert err == "5 of 9 chunks missing\n"
    assert run("missing", "--count", path)[1] == "/ocean/temp  5\n/time  0\n"


def test_json_of_an_array_and_of_a_group(run, path):
    _, out, _ = run("missing", "--json", "--regions", path / "ocean/temp")
    found = json.loads(out)
    assert (found["missing"], found["expected"], found["unit"]) == (5, 8, "chunk")
    assert found["regions"] == [[[1, 2], [0, 4]], [[2, 3], [2, 4]], [[3, 4], [0, 4]]]
    _, out, _ = run("missing", "--json", path)
    temp, time = json.loads(out)
    assert temp["coords"] == [[1, 0], [1, 1], [2, 1], [3, 0], [3, 1]]
    assert (time["path"], time["coords"]) == ("/time", [])
    assert [one["missing"] for one in json.loads(run("missing", "--json", "--count", path)[1])] == [5, 0]
    assert json.loads(run("missing", "--json", "--keys", path / "time")[1])["keys"] == []


def test_node_that_cannot_be_read_is_a_problem(run, path):
    (path / "time" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    code, out, err = run("missing", path)
    assert code == 1
    assert "/time: " in err
    assert len(out.splitlines()) == 5
    assert json.loads(run("missing", "--json", path)[1])[1]["problem"]


def test_inner_chunks_have_no_keys(run, path):
    assert run("missing", "--inner", "--keys", path)[0] == 2
