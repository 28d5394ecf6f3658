"""A directory of Zarr does not get the name of a file of another format, by any verb."""

import asyncio

import numpy as np
import pytest

import omnizarr
from omnizarr import aio
from omnizarr.cli import main
from omnizarr.errors import NotRepresentableError, SettingError
from omnizarr.stores import LocalStore

NAMES = ["x.h5ad", "x.nwb", "x.TIF", "x.tiff", "x.grib2", "x.fits", "x.npz", "x.parquet", "x.tar.gz", "x.mat"]
FILES = ["x.nc", "x.nc4", "x.cdf", "x.h5", "x.hdf5"]
"""What `convert` writes."""


def group(place):
    made = omnizarr.create_group(place, zarr_format=2)
    made["a"] = np.arange(6)
    return made


def by_aio(path):
    asyncio.run(aio.create_group(path))


VERBS = {
    "create_array": lambda _, path: omnizarr.create_array(path, shape=3, dtype="i4"),
    "create_group": lambda _, path: omnizarr.create_group(path),
    "open": lambda _, path: omnizarr.open(path, mode="w", shape=3, dtype="i4"),
    "open_array": lambda _, path: omnizarr.open_array(path, mode="a", shape=3, dtype="i4"),
    "open_group": lambda _, path: omnizarr.open_group(path, mode="w-"),
    "save": lambda _, path: omnizarr.save(path, np.arange(3)),
    "save_group": lambda _, path: omnizarr.save_group(path, np.arange(3)),
    "from_store": lambda _, path: omnizarr.Group.from_store(path),
    "aio": lambda _, path: by_aio(path),
    "copy_store": omnizarr.copy_store,
    "copy_node": omnizarr.copy_node,
}
CONVERSIONS = {
    "convert": omnizarr.convert,
    "dry_run": lambda source, path: omnizarr.convert(source, path, dry_run=True),
    "rechunk": lambda source, path: omnizarr.rechunk(source, path, chunks=2),
}


@pytest.mark.parametrize("kind", [str, lambda path: path, lambda path: path.as_uri()], ids=["str", "Path", "URL"])
@pytest.mark.parametrize("verb", [*VERBS, *CONVERSIONS])
@pytest.mark.parametrize("name", NAMES[::4])
def test_no_verb_makes_a_directory_with_the_name_of_a_file(name, verb, kind, tmp_path):
    source = group({}).store_path
    with pytest.raises(SettingError, match="and a directory would be written") as caught:
        (VERBS | CONVERSIONS)[verb](source.store, kind(tmp_path / name))
    assert "x.zarr" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [*NAMES, *FILES])
def test_every_ending_is_known(name, tmp_path):
    with pytest.raises(ValueError, match=r"expected a name such as x\.zarr"):
        omnizarr.create_group(tmp_path / name)


@pytest.mark.parametrize("name", ["x.zarr", "x", "x.ome.zarr", "era5.2020", "x.zip", "x.sqlite", ".tif", "tif"])
def test_other_names_stay_possible(name, tmp_path):
    omnizarr.create_group(tmp_path / name).store_path.store.close()
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["x.tif", "x.nc"])
def test_a_directory_can_have_such_a_name_if_it_exists_or_is_a_store_or_lies_in_a_hierarchy(name, tmp_path):
    omnizarr.create_group(LocalStore(tmp_path / name))
    assert omnizarr.open_group(tmp_path / name, mode="a").create_group("b").path == "b"
    omnizarr.create_group(tmp_path / "a.zarr")
    omnizarr.create_group(tmp_path / "a.zarr" / name)
    assert name in omnizarr.open_group(tmp_path / "a.zarr", mode="r")


@pytest.mark.parametrize("name", ["x.h5", "x.hdf5"])
def test_hdf5_is_written_as_netcdf4(name, tmp_path):
    h5py = pytest.importorskip("h5py", reason="reads the file")
    pytest.importorskip("netCDF4", reason="writes the file")
    group(tmp_path / "a.zarr")
    omnizarr.convert(tmp_path / "a.zarr", tmp_path / name)
    with h5py.File(tmp_path / name) as file:
        assert file["a"][...].tolist() == list(range(6))


def test_the_command_line_takes_the_word_of_to(tmp_path, capsys):
    group(tmp_path / "a.zarr")
    source, target = str(tmp_path / "a.zarr"), tmp_path / "x.tif"
    assert main(["convert", source, str(target)]) != 0
    assert not target.exists()
    assert main(["convert", source, str(target), "--to", "v3"]) == 0
    assert (target / "zarr.json").is_file()


@pytest.mark.parametrize("verb", ["copy_store", "copy_node"])
def test_n5_gets_no_documents_of_another_format(verb, tmp_path):
    with pytest.raises(NotRepresentableError, match="an N5 hierarchy"):
        VERBS[verb](group({}).store_path.store, tmp_path / "x.n5")
    assert not [each for each in tmp_path.rglob("*") if each.name.startswith(".z")]
