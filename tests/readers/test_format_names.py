"""The format of a file is named where it is shown: by `info`, and by `convert`."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from tests.readers import fits_files, grib_files

scipy = pytest.importorskip("scipy.io", reason="SciPy is not installed")
h5py = pytest.importorskip("h5py", reason="h5py is not installed")
tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed")

DATA = np.arange(12, dtype="i4").reshape(3, 4)


def _hdf5(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        file["x"] = DATA
        file["other"] = h5py.ExternalLink("elsewhere.h5", "/x")
    return folder / "x.h5"


def _netcdf3(folder):
    with scipy.netcdf_file(folder / "x.nc", "w") as file:
        file.createDimension("y", 3)
        file.createDimension("x", 4)
        file.createVariable("x", "i4", ("y", "x"))[:] = DATA
    return folder / "x.nc"


def _tiff(folder):
    tifffile.imwrite(folder / "x.tif", DATA)
    return folder / "x.tif"


def _n5(folder):
    endian = {"name": "bytes", "configuration": {"endian": "big"}}
    omnizarr.create_array(folder / "x.n5", data=DATA, serializer=endian, compressors=None, fill_value=0)
    return folder / "x.n5"


def _fits(folder):
    (folder / "x.fits").write_bytes(fits_files.image(DATA))
    return folder / "x.fits"


def _precomputed(folder):
    scale = {"key": "8", "size": [4, 3, 1], "chunk_sizes": [[4, 3, 1]], "encoding": "raw", "resolution": [8, 8, 8]}
    info = {"type": "image", "data_type": "int32", "num_channels": 1, "scales": [scale]}
    (folder / "x" / "8").mkdir(parents=True)
    (folder / "x" / "info").write_text(json.dumps(info))
    (folder / "x" / "8" / "0-4_0-3_0-1").write_bytes(DATA.tobytes())
    return folder / "x"


def _grib(folder):
    (folder / "x.grib2").write_bytes(grib_files.message2(grib_files.field2(DATA)))
    return folder / "x.grib2"


def _ocdbt(folder):
    with zipfile.ZipFile(Path(__file__).parents[1] / "stores" / "database" / "data" / "ocdbt.zip") as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith("single/")])
    return folder / "single"


MADE = {
    "HDF5": _hdf5,
    "netCDF-3": _netcdf3,
    "TIFF": _tiff,
    "N5": _n5,
    "FITS": _fits,
    "GRIB": _grib,
    "Neuroglancer precomputed": _precomputed,
    "OCDBT": _ocdbt,
}


@pytest.mark.parametrize("name", MADE)
def test_stores_of_files_name_their_format(name, tmp_path):
    store = omnizarr.open(MADE[name](tmp_path)).store
    assert store.about()["format"] == name
    assert pickle.loads(pickle.dumps(store)).about() == store.about()


def test_what_a_file_holds_besides_is_among_the_facts(tmp_path):
    store = omnizarr.open(_hdf5(tmp_path)).store
    assert ["elsewhere.h5" in note for note in store.about()["notes"]] == [True]


@pytest.mark.parametrize("name", ["TIFF", "N5", "FITS", "GRIB", "Neuroglancer precomputed", "OCDBT"])
def test_conversions_name_the_format(name, tmp_path):
    report = omnizarr.convert(MADE[name](tmp_path), tmp_path / "x.zarr")
    assert (report.source_format, report.target_format) == (name, "v3")
    assert str(report).splitlines()[0].endswith(f": {name} -> Zarr v3")


def test_conversions_to_n5_name_it(tmp_path):
    omnizarr.create_array(tmp_path / "x.zarr", data=DATA)
    report = omnizarr.convert(tmp_path / "x.zarr", tmp_path / "x.n5")
    assert (report.source_format, report.target_format) == ("v3", "N5")


@pytest.mark.parametrize("name", MADE)
def test_the_viewer_names_the_format(name, tmp_path):
    facts = pytest.importorskip("omnizarr.web.facts", reason="the extra serve is not installed")
    dataset = facts.Dataset(omnizarr.open(MADE[name](tmp_path)), "x")
    assert (dataset.summary()["format"], dataset.info("")["format"]) == (name, name)


@pytest.mark.parametrize("name", sorted(MADE.keys() - {"OCDBT"}))
def test_info_names_the_format_first_and_says_nothing_of_writers(name, tmp_path, capsys):
    command = pytest.importorskip("omnizarr.cli", reason="the extra cli is not installed")
    assert command.main(["info", str(MADE[name](tmp_path))]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.partition("   ")[2] in {f"{name} group", f"{name} array"}
    assert not [
        line for line in rest if line.startswith("  format ") or (line.startswith("  writers ") and name != "N5")
    ]


def test_info_says_which_zarr_a_database_holds(tmp_path, capsys):
    command = pytest.importorskip("omnizarr.cli", reason="the extra cli is not installed")
    assert command.main(["info", str(MADE["OCDBT"](tmp_path))]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.endswith("   Zarr v2 group · not consolidated")
    assert "  format      OCDBT" in rest
