"""Files of other formats in zip archives, opened in place."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NodeNotFoundError, ReadOnlyError, StoreError
from omnizarr.stores import LocalStore
from tests.engine.both import ENGINES

h5py = pytest.importorskip("h5py", reason="h5py is not installed, which writes HDF5")
tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed, which writes TIFF")

VALUES = np.arange(32 * 48, dtype="u2").reshape(32, 48)


@pytest.fixture
def files(tmp_path):
    """A directory with a file of each format."""
    folder = tmp_path / "files"
    (folder / "sub").mkdir(parents=True)
    tifffile.imwrite(folder / "sub" / "x.tif", VALUES, tile=(16, 16), compression="zlib")
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("v", data=VALUES, chunks=(8, 8), compression="gzip")
    (folder / "no_ending").write_bytes((folder / "x.h5").read_bytes())
    (folder / "note.txt").write_text("hello")
    omnizarr.save(folder / "z.zarr", VALUES)
    return folder


def packed(files, how):
    path = files.parent / "all.zip"
    with zipfile.ZipFile(path, "w", how) as archive:
        for file in sorted(files.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(files))
    return path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "node"), [("sub/x.tif", ""), ("x.h5", "v"), ("no_ending", "v"), ("z.zarr", "")])
def test_a_stored_file_is_read_in_place(files, name, node, engine):
    path = packed(files, zipfile.ZIP_STORED)
    array = omnizarr.open_array(f"{path}/{name}", path=node or None, mode="r", config={"engine": engine})
    assert np.array_equal(array[...], VALUES)
    assert np.array_equal(array[5:20:3, 40], VALUES[5:20:3, 40])
    assert not omnizarr.open(f"file://{path}/{name}", mode="r").store.place.endswith(".tmp")
    assert sorted(each.name for each in path.parent.iterdir()) == ["all.zip", "files"]


def test_a_compressed_file_is_refused_with_what_to_do(files):
    path = packed(files, zipfile.ZIP_DEFLATED)
    with pytest.raises(StoreError, match="compressed in a zip archive") as caught:
        omnizarr.open(f"{path}/sub/x.tif")
    assert caught.value.key == "sub/x.tif"
    assert "zip -0" in caught.value.remedy
    assert np.array_equal(omnizarr.open(f"{path}/z.zarr")[...], VALUES)


def test_what_is_not_there_or_not_known_is_an_error_and_nothing_is_written(files):
    path = packed(files, zipfile.ZIP_STORED)
    before = path.read_bytes()
    with pytest.raises(NodeNotFoundError):
        omnizarr.open(f"{path}/none.tif", mode="r")
    with pytest.raises(StoreError, match="no known format"):
        omnizarr.open(f"{path}/note.txt", mode="r")
    with pytest.raises(ReadOnlyError, match="only be read by its own path"):
        omnizarr.open(f"{path}/x.h5", mode="r+")
    assert np.array_equal(omnizarr.open(path / "x.h5")["v"][...], VALUES)
    with pytest.raises((omnizarr.errors.OmnizarrError, OSError)):
        omnizarr.create_array(f"{path}/new", shape=3, dtype="u1", overwrite=True)[...] = 1
    assert path.read_bytes() == before


def test_directories_that_are_called_so_are_directories(tmp_path):
    omnizarr.save(tmp_path / "x.zip" / "a.zarr", VALUES)
    array = omnizarr.open(tmp_path / "x.zip" / "a.zarr")
    assert isinstance(array.store, LocalStore)
    assert np.array_equal(array[...], VALUES)
