"""NCZarr on servers that cannot list: what it names is found."""

import zipfile
from pathlib import Path

import numpy as np
import pytest

from omnizarr.errors import StoreClosedError, StoreError
from omnizarr.netcdf import Dataset
from omnizarr.netcdf.layouts import LAYOUTS
from omnizarr.stores import MemoryStore
from tests.fakes import UnlistableStore, failing
from tests.netcdf.peers import described

DATA = Path(__file__).parent / "data" / "layouts"
NAMED = [name for name in LAYOUTS if not name.startswith("pure")]
WRITTEN_BY_NETCDF_C = [
    "A-4.8.0", "B-4.8.1", "B-4.9.0", "C-4.9.2", "D-4.9.3", "D-4.10.2", "ref_oldformat_1a45ee025", "v3-2918", "v3-plug",
]  # fmt: skip


def write(place, layout):
    with Dataset(place, "w", layout=layout) as dataset:
        dataset.title = "all"
        dataset.createDimension("x", 3)
        dataset.createVariable("v", "i2", ("x",), fill_value=-9)[:] = [1, -9, 3]
        dataset.createVariable("alone", "f8")[...] = 2.5
        inner = dataset.createGroup("outer").createGroup("inner größe")
        inner.createDimension("y", 2)
        inner.createVariable("letters", "S1", ("y", "x"))[:] = np.array([list("abc"), list("def")], "S1")
        dataset.createGroup("empty")


def seen(place):
    with Dataset(place) as dataset:
        return described(dataset.as_source())


@pytest.mark.parametrize("layout", NAMED)
def test_a_web_server_has_all_that_a_directory_has(http_server, layout):
    place = http_server.fresh()
    write(place.directory / "x.zarr", layout)
    assert seen(f"{place.url}/x.zarr") == seen(place.directory / "x.zarr")


@pytest.mark.parametrize("name", WRITTEN_BY_NETCDF_C)
def test_what_netcdf_c_wrote_is_found_on_a_web_server(http_server, name):
    place = http_server.fresh()
    zipfile.ZipFile(DATA / f"{name}.zip").extractall(place.directory / "x.zarr")
    there = place.directory / "x.zarr"
    roots = [there, *(each for each in there.iterdir() if each.is_dir() and not (there / "zarr.json").exists())]
    root = next(each for each in roots if any((each / name).exists() for name in (".zgroup", "zarr.json")))
    assert seen(f"{place.url}/{root.relative_to(place.directory).as_posix()}") == seen(root)


@pytest.mark.parametrize("layout", NAMED)
def test_a_store_that_cannot_list_is_walked_by_names_and_says_so(layout):
    values = {}
    write(values, layout)
    del values[next(key for key in values if key.startswith("v/") and key.endswith((".zarray", "zarr.json")))]
    dataset = Dataset(UnlistableStore(MemoryStore(values)))
    assert set(dataset.variables) == {"alone"}
    notes = [each.message for each in dataset.all_notes()["/"]]
    assert any("only what NCZarr names can be found" in each for each in notes)
    assert any("lists the array 'v', which is not there" in each for each in notes)


@pytest.mark.parametrize("layout", NAMED)
def test_a_document_that_is_broken_hides_no_sibling(layout):
    values = {}
    write(values, layout)
    values[next(key for key in values if key.startswith("v/") and key.endswith((".zarray", "zarr.json")))] = b"{"
    dataset = Dataset(UnlistableStore(MemoryStore(values)))
    assert set(dataset.variables) == {"alone"}
    assert any("'v' cannot be read" in each.message for each in dataset.all_notes()["/"])


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in NAMED])
def test_what_names_nothing_is_refused(layout):
    values = {}
    write(values, layout)
    with pytest.raises(StoreError, match="cannot list"):
        Dataset(UnlistableStore(MemoryStore(values)))


def test_names_of_nczarr_do_not_count_where_zarr_alone_is_wanted(http_server):
    place = http_server.fresh()
    write(place.directory / "x.zarr", "D")
    with pytest.raises(StoreError, match="does not say what it has"):
        Dataset(f"{place.url}/x.zarr#mode=zarr")


def test_a_store_that_fails_is_not_mistreated_as_one_that_cannot_list():
    values = {}
    write(values, "D")

    with pytest.raises(StoreClosedError):
        Dataset(failing(MemoryStore(values), StoreClosedError("closed"), verb="list_dir"))


@pytest.mark.parametrize("layout", NAMED)
def test_what_cannot_be_listed_is_written_too(layout):
    values = {}
    write(values, layout)
    with Dataset(UnlistableStore(MemoryStore(values)), "a") as dataset:
        dataset["v"][1] = 7
        dataset["v"].units = "m"
    dataset = Dataset(values)
    assert (dataset["v"][:].tolist(), dataset["v"].units) == ([1, 7, 3], "m")
