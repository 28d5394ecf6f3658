"""Every command on a file of every format: on this machine, behind a web server, and in a zip archive of both."""

from __future__ import annotations

import gzip
import json
import zipfile

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.web.application import application
from tests.readers import fits_files, grib_files
from tests.stores.recording import recording
from tests.web.client import ask

h5py = pytest.importorskip("h5py", reason="h5py is not installed, which writes HDF5")
tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed, which writes TIFF")
netcdf4 = pytest.importorskip("netCDF4", reason="netCDF4 is not installed, which writes netCDF-3")
pytest.importorskip("obstore.store", reason="the extra cloud is not installed")

VALUES = np.arange(6 * 8).reshape(6, 8)
NODES = {
    "x.h5": "g/v", "x.nc": "v", "x.tif": "", "x.fits": "", "y.fits.gz": "", "x.grib2": "t", "x.n5": "",
    "x.precomputed": "1",
}  # fmt: skip
"""The array by file: "" is the file itself."""
PLACES = ("disk", "http", "zip", "zip over http")
COMMANDS = ("info", "tree", "ls", "du", "stat", "check", "digest")


def write_files(folder):
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("g/v", data=VALUES.astype("i4"), chunks=(3, 4), compression="gzip")
        file["far"] = h5py.SoftLink("/nowhere")
    with netcdf4.Dataset(folder / "x.nc", "w", format="NETCDF3_64BIT_OFFSET") as dataset:
        for name, length in zip("yx", VALUES.shape, strict=True):
            dataset.createDimension(name, length)
        dataset.createVariable("v", "i4", ("y", "x"))[:] = VALUES
    tifffile.imwrite(folder / "x.tif", VALUES.astype("u2"), tile=(16, 16), compression="zlib")
    (folder / "x.fits").write_bytes(fits_files.image(VALUES, code="i2"))
    (folder / "y.fits.gz").write_bytes(gzip.compress((folder / "x.fits").read_bytes()))
    (folder / "x.grib2").write_bytes(grib_files.message2(grib_files.field2(VALUES)))
    array = omnizarr.create_array({}, data=VALUES.astype("u1"), chunks=(3, 4), compressors=None, zarr_format=2)
    omnizarr.convert(array, f"n5://{folder}/x.n5")
    scale = {
        "key": "1", "size": [8, 6, 1], "resolution": [1, 1, 1], "voxel_offset": [0, 0, 0], "chunk_sizes": [[8, 6, 1]],
        "encoding": "raw",
    }  # fmt: skip
    volume = {"type": "image", "data_type": "uint8", "num_channels": 1, "scales": [scale]}
    (folder / "x.precomputed" / "1").mkdir(parents=True)
    (folder / "x.precomputed" / "info").write_text(json.dumps(volume))
    (folder / "x.precomputed" / "1" / "0-8_0-6_0-1").write_bytes(VALUES.astype("u1").tobytes())


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Where the files are, by place."""
    folder = tmp_path_factory.mktemp("doors")
    write_files(folder)
    with zipfile.ZipFile(folder.parent / "doors.zip", "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    with recording() as server:
        for file in [each for each in folder.rglob("*") if each.is_file()]:
            server.values[f"/d/{file.relative_to(folder).as_posix()}"] = file.read_bytes()
        server.values["/doors.zip"] = (folder.parent / "doors.zip").read_bytes()
        yield dict(
            zip(PLACES, (folder, server.url("/d"), folder.parent / "doors.zip", server.url("/doors.zip")), strict=True)
        )


@pytest.fixture
def run(capfd):
    """Run a command line, which must succeed, and return what it printed on stdout and stderr."""

    def run(*arguments, code=0):
        found = main([*map(str, arguments)])
        out, err = capfd.readouterr()
        assert found == code, (arguments, out, err)
        return out, err

    return run


def of_node(place, node):
    return f"{place}/{node}" if node else place


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", NODES)
def test_every_command_sees_the_same_in_every_place(places, run, tmp_path, name, where):
    local, place, node = f"{places['disk']}/{name}", f"{places[where]}/{name}", NODES[name]
    array = of_node(place, node)
    found = {command: run(command, place)[0] for command in COMMANDS}
    assert found["digest"] == run("digest", local)[0]
    is_unlisted = where == "http" and name in {"x.n5", "x.precomputed"}
    assert "the server cannot list" in found["check"] if is_unlisted else "nothing found" in found["check"]
    assert np.array_equal(np.squeeze(json.loads(run("get", array, "--json")[0])), VALUES)
    run("show", array, "-o", tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    run("missing", array)
    run("advise", array)
    assert run("diff", place, local)[0].startswith("equal")
    run("convert", place, tmp_path / "x.zarr")
    assert np.array_equal(np.squeeze(omnizarr.open(tmp_path / "x.zarr", path=node or None)[...]), VALUES)
    if node:
        assert run("dump", place)[0].startswith("netcdf x {")
    else:
        assert "print the array with get" in run("dump", place, code=1)[1]
    if (name, where) == ("x.precomputed", "http"):
        assert "does not say what it has" in run("cp", place, tmp_path / "copy.zarr", code=1)[1]
    else:
        run("cp", place, tmp_path / "copy.zarr")
        assert run("digest", tmp_path / "copy.zarr")[0] == found["digest"]
    opened = omnizarr.open(array, mode="r")
    assert np.array_equal(np.squeeze(opened[...]), VALUES)
    key = f"/{node}/zarr.json" if node else "/zarr.json"
    assert json.loads(ask(application(place), key).body)["shape"] == list(opened.shape)


TRUST = {"references": "trusted"}
REFERRED = {"x.h5": 4, "x.nc": 1, "x.tif": 1, "x.fits": 1}
"""Chunks in files."""


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", REFERRED)
def test_references_lead_into_files_and_archives(places, run, tmp_path, name, where):
    run("refs", f"{places[where]}/{name}", tmp_path / "refs.json")
    refs = json.loads((tmp_path / "refs.json").read_text())["refs"]
    inside = [each for each in refs.values() if isinstance(each, list)]
    assert len(inside) == REFERRED[name]
    file = str(places[where]) if "zip" in where else f"{places[where]}/{name}"
    assert {each[0].removeprefix("file://") for each in inside} == {file}
    node = omnizarr.open(
        str(tmp_path / "refs.json"), path=NODES[name] or None, storage_options={"references": "trusted"}
    )
    assert np.array_equal(node[...], VALUES)


@pytest.mark.parametrize("where", PLACES)
def test_what_is_not_shown_is_told(places, run, where):
    place = f"{places[where]}/x.h5"
    for command in ("tree", "ls", "dump"):
        assert "nowhere" in run(command, place)[1]
    assert run("info", place)[0].count("nowhere") == 1
