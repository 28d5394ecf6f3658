"""Datasets: where they are, what many definers leave, and what is kept current."""

import json
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NodeExistsError, NotRepresentableError, SettingError
from omnizarr.netcdf import Dataset
from omnizarr.netcdf.layouts import loading
from tests.netcdf.peers import described

LAYOUTS = Path(__file__).parent / "data" / "layouts"
DEFINERS, DEFINED = 6, 5


def define(dataset, number):
    for step in range(DEFINED):
        name = f"{number}_{step}"
        dataset.createDimension(f"d{name}", step + 1)
        dataset.createVariable(f"v{name}", "i4", (f"d{name}",))[:] = number
        dataset.setncattr(f"a{name}", np.int16(number))
        dataset.createGroup(f"g{name}").createVariable("below", "f4")
        dataset[f"v{name}"].units = name


def check_defined(dataset, definers):
    names = {f"{number}_{step}" for number in range(definers) for step in range(DEFINED)}
    assert set(dataset.dimensions) == {f"d{name}" for name in names}
    assert set(dataset.variables) == {f"v{name}" for name in names}
    assert set(dataset.groups) == {f"g{name}" for name in names}
    assert set(dataset.ncattrs()) == {f"a{name}" for name in names}
    assert {each.units for each in dataset.variables.values()} == names
    assert all("below" in each.variables for each in dataset.groups.values())


@pytest.mark.parametrize("layout", ["C", "D", "v3"])
def test_definitions_by_threads_are_all_kept(layout):
    store = {}
    dataset = Dataset(store, "w", layout=layout)
    threads = [threading.Thread(target=define, args=(dataset, number)) for number in range(DEFINERS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    check_defined(dataset, DEFINERS)
    found = Dataset(store)
    check_defined(found, DEFINERS)
    assert found.all_notes() == {}


DEFINE = """
import sys
from omnizarr.netcdf import Dataset
from tests.netcdf.test_dataset import define
with Dataset(sys.argv[1], "a") as dataset:
    print(flush=True)
    sys.stdin.readline()
    define(dataset, int(sys.argv[2]))
"""


def test_definitions_by_processes_are_all_kept(tmp_path):
    Dataset(tmp_path / "x", "w").close()
    command = [sys.executable, "-c", DEFINE, str(tmp_path / "x")]
    both = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for number in range(2)
    ]
    for each in both:
        each.stdout.readline()
    for each in both:
        each.stdin.write(b"\n")
        each.stdin.flush()
    for each in both:
        each.communicate()
        assert not each.returncode
    found = Dataset(tmp_path / "x")
    check_defined(found, 2)
    assert found.all_notes() == {}


def test_consolidated_metadata_stays_current():
    store = {}
    with Dataset(store, "w") as dataset:
        dataset.createDimension("t")
        dataset.createVariable("v", "i4", ("t",))
        dataset.createGroup("g")
    omnizarr.consolidate_metadata(store)
    with Dataset(store, "a") as dataset:
        dataset["v"][0:3] = 1
        dataset["v"].units = "K"
        dataset.renameVariable("v", "w")
        dataset.renameGroup("g", "h")
        dataset.createVariable("h/deep", "f8")
        dataset.title = "x"
    copies = json.loads(bytes(store[".zmetadata"]))["metadata"]
    documents = {
        key: json.loads(bytes(value)) for key, value in store.items() if "/.z" in f"/{key}" and "zmeta" not in key
    }
    assert copies == documents


def test_an_archive_does_not_keep_every_state_of_its_documents(tmp_path):
    url = f"file://{tmp_path}/x.zip#mode=nczarr,zip"
    with Dataset(url, "w") as dataset:
        dataset.createDimension("t")
        variable = dataset.createVariable("v", "i4", ("t",), chunksizes=(1,))
        for step in range(30):
            variable.setncattr(f"a{step}", step)
            variable[step] = step
    names = zipfile.ZipFile(tmp_path / "x.zip").namelist()
    assert len(names) == len(set(names)) == 30 + 4
    with Dataset(url, "a") as dataset:
        dataset["v"][30] = 30
    assert Dataset(url)["v"][:].tolist() == list(range(31))


def made_in(place, mode="w", **options):
    with Dataset(place, mode, **options) as dataset:
        dataset.createDimension("x", 2)
        dataset.createGroup("g").createVariable("v", "i2", ("x",))[:] = [1, 2]


def names_in(path):
    return zipfile.ZipFile(path).namelist()


@pytest.mark.parametrize("mode", ["w", "a", "x"])
def test_archive_for_netcdf_c_has_everything_in_the_folder_of_its_name(tmp_path, mode):
    url = f"file://{tmp_path}/ref.v1.zip#mode=nczarr,zip"
    made_in(url, mode)
    assert all(name.startswith("ref.v1/") for name in names_in(tmp_path / "ref.v1.zip"))
    for again in (url, tmp_path / "ref.v1.zip"):
        assert Dataset(again)["g/v"][:].tolist() == [1, 2]
    with pytest.raises(NodeExistsError):
        Dataset(url, "x")


def test_archive_by_its_path_has_the_dataset_at_its_top(tmp_path):
    made_in(tmp_path / "x.zip")
    assert {".zgroup", "g/.zgroup", "g/v/.zarray"} < set(names_in(tmp_path / "x.zip"))


def test_replacing_an_archive_for_netcdf_c_leaves_nothing_beside_its_folder(tmp_path):
    url = f"file://{tmp_path}/x.zip#mode=nczarr,zip"
    made_in(tmp_path / "x.zip")
    made_in(url)
    assert all(name.startswith("x/") for name in names_in(tmp_path / "x.zip"))
    made_in(tmp_path / "x.zip")  # what is replaced by its path stays where it is
    assert all(name.startswith("x/") for name in names_in(tmp_path / "x.zip"))
    before = (tmp_path / "x.zip").read_bytes()
    with pytest.raises(SettingError, match="no such layout"):
        Dataset(url, "w", layout="Z")
    assert (tmp_path / "x.zip").read_bytes() == before


def test_what_is_added_to_an_archive_stays_in_its_only_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive, zipfile.ZipFile(LAYOUTS / "D-4.10.2.zip") as packed:
        for name in packed.namelist():
            archive.writestr(f"theirs/{name}", packed.read(name))
    with Dataset(tmp_path / "x.zip", "a") as dataset:
        dataset.createGroup("new").createVariable("v", "i4")[...] = 3
    assert all(name.startswith("theirs/") for name in names_in(tmp_path / "x.zip"))
    assert Dataset(tmp_path / "x.zip")["new/v"][...] == 3


@pytest.mark.parametrize("kind", ["path", "text", "mapping", "group", "group below"])
def test_a_dataset_is_wherever_zarr_does(tmp_path, kind):
    root = omnizarr.open_group({}, mode="w", zarr_format=2)
    places = {"path": tmp_path / "x", "text": str(tmp_path / "x"), "mapping": {}, "group": root}
    place = places.get(kind) or ({} if kind == "mapping" else root.create_group("a/b"))
    with Dataset(place, "w") as dataset:
        dataset.createVariable("v", "i4")[...] = 5
    with Dataset(place, "a") as dataset:
        dataset.createGroup("g").title = "t"
    with Dataset(place) as dataset:
        assert (int(dataset["v"][...]), dataset["g"].title) == (5, "t")


def test_a_tilde_is_the_home_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    Dataset("~/x.zarr", "w").close()
    assert (tmp_path / "x.zarr" / ".zgroup").exists()


def test_existing_data_is_replaced_only_where_that_is_asked_for(tmp_path):
    with Dataset(tmp_path / "x", "w") as dataset:
        dataset.createVariable("v", "i4")
    for options in ({"mode": "x"}, {"mode": "w", "clobber": False}):
        with pytest.raises(NodeExistsError):
            Dataset(tmp_path / "x", **options)
    assert list(Dataset(tmp_path / "x", "a").variables) == ["v"]
    assert not Dataset(tmp_path / "x", "w", zarr_format=3).variables
    assert not (tmp_path / "x" / ".zgroup").exists()


@pytest.mark.parametrize("name", ["source", "notes", "close", "title", "createVariable"])
def test_attributes_may_be_called_like_methods(name):
    dataset = Dataset({}, "w")
    setattr(dataset, name, "text")
    assert dataset.getncattr(name) == "text"


def test_the_root_has_no_name():
    with pytest.raises(NotRepresentableError):
        Dataset({}, "w").name = "x"


# -- datasets that netCDF-C wrote ------------------------------------------------------------

WRITTEN = ["A-4.8.0", "B-4.8.1", "B-4.9.0", "C-4.9.2", "D-4.9.3", "D-4.10.2", "pure-4.9.2", "pure-4.10.2"]
READABLE = ["D-4.9.3", "D-4.10.2", "pure-4.10.2"]  # by netCDF-C 4.10.1, which knows no older ones


def unpacked(name, target):
    zipfile.ZipFile(LAYOUTS / f"{name}.zip").extractall(target)
    found = sorted(target.rglob(".zgroup"), key=lambda each: len(each.parts))
    return found[0].parent


def values(dataset):
    return {
        each.full_name: (each.read_raw(tuple(map(slice, each.shape))).tolist(), each.dimensions)
        for group in dataset.walk()
        for each in group.variables.values()
    }


def edit(dataset):
    """Change each group, and write the first value of each variable again."""
    for group in dataset.walk():
        group.setncattr("edited", np.int16([1, 2]))
        for each in group.variables.values():
            first = tuple(slice(0, 1) for _ in each.shape)
            each.write_raw(first, each.read_raw(first))
    dataset.createDimension("added", 2)
    dataset.createVariable("added", "i4", ("added",))[:] = [1, 2]
    dataset["added"].units = "K"


@pytest.mark.parametrize("name", WRITTEN)
def test_an_edit_of_what_netcdf_c_wrote_keeps_its_data_right(tmp_path, name):
    place = unpacked(name, tmp_path)
    with Dataset(place, "a") as dataset:
        before = values(dataset)
        notes = dataset.all_notes()
        edit(dataset)
        known = values(dataset)
    with Dataset(place) as dataset:
        after = values(dataset)
        assert repr(sorted(after.items())) == repr(sorted(known.items()))
        assert repr({each: after[each] for each in before}) == repr(before)
        assert after.keys() - before.keys() == {"/added"}
        assert dataset["added"].units == "K"
        assert {each: found for each, found in dataset.all_notes().items() if each != "/added"} == notes


@pytest.mark.parametrize("name", READABLE)
def test_netcdf_c_reads_what_it_wrote_after_an_edit(newest, tmp_path, name):
    place = unpacked(name, tmp_path)
    url = f"file://{place}#mode=nczarr,file"
    before = described(newest.read(url).source())
    with Dataset(place, "a") as dataset:
        edit(dataset)
    after = described(newest.read(url).source())
    assert after.keys() - before.keys() == {"dimension /added", "variable /added"}
    kept = [name for name in before if name.startswith(("variable", "dimension"))]
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}


def test_opening_understands_no_more_than_is_asked_for(monkeypatch):
    store = {}
    with Dataset(store, "w") as dataset:
        dataset.createDimension("x", 2)
        for number in range(20):
            dataset.createVariable(f"v{number}", "f4", ("x",)).units = f"m{number}"
    asked = []

    def counted(what):
        known = getattr(loading, what)
        monkeypatch.setattr(loading, what, lambda *given, **options: asked.append(what) or known(*given, **options))

    counted("_attributes")
    counted("_storage")
    dataset = Dataset(store)
    assert [dataset[f"v{number}"].shape for number in range(20)] == [(2,)] * 20
    assert asked == ["_attributes"]  # of the root
    assert (dataset["v3"].units, dataset["v3"].ncattrs(), dataset["v4"].units) == ("m3", ["units"], "m4")
    assert asked == ["_attributes"] * 3
    assert dataset["v3"][:].mask.all()
    assert dataset["v3"].chunking() == [2]
    assert asked == [*["_attributes"] * 3, "_storage"]


@pytest.mark.parametrize(
    "first",
    [
        lambda variable: variable.renameAttribute("units", "unit"),
        lambda variable: variable.delncattr("units"),
        lambda variable: variable.group().renameVariable("v", "w"),
        lambda variable: variable.group().renameDimension("x", "y"),
        lambda variable: variable.group().renameGroup("g", "h"),
        lambda variable: variable.set_auto_truncate(True),
        lambda variable: variable.set_var_chunk_cache(0),
        lambda variable: variable.setncattr("_nczarr_maxstrlen", np.int32(9)),
        lambda variable: variable.__setitem__(0, "b"),
        repr,
        lambda variable: variable.quantization(),
    ],
)
def test_a_variable_is_the_same_whatever_is_done_with_it_first(first):
    """What is understood later must not take the place of what was changed before."""
    found = []
    for looks in (True, False):
        store = {}
        with Dataset(store, "w") as dataset:
            dataset.createDimension("x", 2)
            dataset.createGroup("g")
            dataset.createVariable("v", str, ("x",)).units = "m"
        with Dataset(store, "a") as dataset:
            variable = dataset["v"]
            if looks:
                assert variable.header.attributes
                assert variable.array is not None
            first(variable)
            found.append((described_by(variable), variable[:].tolist()))
        with Dataset(store) as dataset:
            found.append([(described_by(each), each[:].tolist()) for each in dataset.variables.values()])
    assert found[:2] == found[2:]


def described_by(variable):
    return variable.full_name, variable.header, variable.array.metadata, repr(variable)
