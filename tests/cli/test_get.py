"""``omnizarr get`` with names of dimensions, and the functions beside the commands that look."""

import importlib
import json
import pickle

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import labels
from omnizarr.errors import SelectionError

VALUES = np.arange(40 * 3).reshape(40, 3)


@pytest.fixture
def era(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    root = omnizarr.create_group("era.zarr")
    days = {"units": "days since 2020-01-01"}
    root.create_array("time", data=np.arange(40), dimension_names=["time"], attributes=days)
    root.create_array("lat", data=[50.0, 45.0, 40.0], dimension_names=["lat"])
    root.create_array("t", data=VALUES, dimension_names=["time", "lat"])
    return root


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["time=2020-01-02"], VALUES[1]),
        (["time=2020-02"], VALUES[31:]),
        (["time=2020-01-30:2020-02-02", "lat=40:46"], VALUES[29:33, 1:]),
        (["time=2020-01-30..2020-02", "lat=45"], VALUES[29:, 1]),
        (["time=2020-02 lat=40"], VALUES[31:, 2]),
        (["time=:2020-01-03"], VALUES[:3]),
        (["time=2020-02-08T00:00..", "lat=50,40"], VALUES[38:][:, [0, 2]]),
    ],
)
def test_elements_are_chosen_by_coordinates(run, era, typed, expected):
    code, out, _ = run("get", "era.zarr/t", *typed, "--json")
    assert (code, json.loads(out)) == (0, expected.tolist())


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (["lat=41"], "dimension 'lat' has no place 41: found 41, expected 50.0, 45.0, 40.0"),
        (["lt=41"], "did you mean 'lat'?"),
        (["time=2021"], "expected one of 40 from 2020-01-01 to 2020-02-09"),
        (["lat=40", "0:3"], "mixed"),
        (["lat=40", "lat=45"], "twice"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(run, era, typed, says):
    code, out, err = run("get", "era.zarr/t", *typed)
    assert (code, out) == (2, "")
    assert says in " ".join(err.split())


@pytest.mark.parametrize(
    ("typed", "label"),
    [
        ("x=1", 1),
        ("x=-1.5", -1.5),
        ("x=2020", 2020),
        ("x=2020-01", "2020-01"),
        ("x=2020-01-01T12:30", "2020-01-01T12:30"),
        ("x=2020-01-01T12:30:2020-02", slice("2020-01-01T12:30", "2020-02")),
        ("x=2020-01-01T12..2020-02", slice("2020-01-01T12", "2020-02")),
        ("x=-10:10", slice(-10, 10)),
        ("x=:", slice(None, None)),
        ("x=a,b", ["a", "b"]),
        ("x=[1, 2]", [1, 2]),
        ("x='5'", "5"),
        ("x=a=b", "a=b"),
    ],
)
def test_labels_are_read_as_they_are_typed(typed, label):
    assert labels.parse([typed]) == {"x": label}


def test_slice_with_too_many_colons_is_refused():
    with pytest.raises(SelectionError, match="two ends"):
        labels.parse(["x=1:2:3:4:5"])


def test_pickled_objects_are_read_if_they_are_allowed(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numcodecs = pytest.importorskip("numcodecs")
    array = omnizarr.create_array(
        "old.zarr", shape=(2,), dtype=object, zarr_format=2, filters=[numcodecs.Pickle()], allow_pickle=True,
        fill_value=0,
    )  # fmt: skip
    array[:] = [{"a": 1}, {"b": 2}]
    assert pickle.loads(pickle.dumps(array[0])) == {"a": 1}
    code, _, err = run("get", "old.zarr", "--json")
    assert (code, "--allow-pickle" in " ".join(err.split())) == (1, True)
    code, out, _ = run("get", "old.zarr", "--json", "--allow-pickle")
    assert (code, json.loads(out)) == (0, [{"a": 1}, {"b": 2}])
    assert omnizarr.get("old.zarr", 0, allow_pickle=True) == {"a": 1}


def test_function_lists_what_the_command_prints(run, era):
    for options in ((), ("-r",)):
        listing = omnizarr.ls("era.zarr", recursive=bool(options))
        assert run("ls", *options, "era.zarr")[1] == f"{listing}\n"
        assert json.loads(run("ls", *options, "--json", "era.zarr")[1]) == [
            entry.to_dict() for entry in listing if entry.name != "/"
        ]
    assert omnizarr.ls("era.zarr", path="t")[0].shape == (40, 3)
    assert str(omnizarr.ls("era.zarr", path="t")).split() == ["t", *run("ls", "era.zarr/t")[1].split()[1:]]


def test_unreadable_member_is_listed(run, era):
    (era.store_path / "t").store.set("bad/zarr.json", b"{")
    entry = next(entry for entry in omnizarr.ls("era.zarr") if entry.name == "bad")
    assert (entry.kind, bool(entry.problem), entry.shape) == ("unreadable", True, None)


def test_function_tells_what_the_command_shows(run, era):
    facts = omnizarr.info("era.zarr", path="t")
    shown = json.loads(run("info", "--json", "era.zarr/t")[1])
    assert (list(facts.shape), facts.data_type, facts.chunks_stored, facts.nbytes_stored) == (
        shown["shape"], shown["data_type"], shown["stored"], shown["bytes_stored"]
    )  # fmt: skip
    assert (omnizarr.info("era.zarr").arrays, omnizarr.info("era.zarr").members) == (3, 3)


def test_function_shows_a_picture_although_a_module_has_its_name(era):
    assert omnizarr.show("era.zarr", path="t").page.title == era["t"].show().page.title
    picture = importlib.import_module("omnizarr.pictures.picture")
    assert callable(omnizarr.show)
    assert isinstance(omnizarr.show("era.zarr", (0,), path="t"), picture.Picture)


@pytest.mark.parametrize("dtype", ["optional[int32]", "optional[float32]", "optional[string]"])
def test_missing_elements_are_printed_as_missing(run, tmp_path, dtype):
    elements = [["a", "b"], ["c", "d"]] if dtype == "optional[string]" else [[1, 2], [3, 4]]
    values = np.ma.MaskedArray(np.array(elements, object), [[False, True], [False, False]])
    omnizarr.create_array(tmp_path / "x.zarr", shape=(2, 2), dtype=dtype, chunks=(1, 2))[...] = values
    path = str(tmp_path / "x.zarr")
    assert "--]" in run("get", path)[1]
    assert json.loads(run("get", path, "--json")[1]) == [[elements[0][0], None], elements[1]]
    assert json.loads(run("get", path, "--json", "0,1")[1]) is None
    assert run("get", path, "--csv")[1].splitlines()[0].endswith(",")
    assert run("get", path, "0,1")[1] == "--\n"
    assert run("get", path, "1,1")[1].strip() in ("4", "4.0", "d")
    assert "use --json or --csv" in run("get", path, "--npy", "-o", tmp_path / "x.npy")[2]
