"""Elements in other files: virtual datasets and external storage, within the directory of the file."""

import pickle
import shutil

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr.errors import OmnizarrError, StaleError
from omnizarr.readers.hdf5.store import HDF5Store
from omnizarr.stores import MemoryStore
from tests.readers.hdf5 import samples

NOTES = [
    "/not there: not shown: its elements are in the file 'missing.bin', which does not exist",
    "/outside: not shown: it leads to '/etc/passwd', which is not in the directory of the file",
    "/up: not shown: it leads to '../outside.h5', which is not in the directory of the file",
]


@pytest.mark.parametrize("version", [each for each in samples.VERSIONS if each[1] != "v108"], ids="-".join)
def test_elements_are_those_of_h5py(version, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # libhdf5 looks there for external files
    samples.write_elsewhere(tmp_path, version)
    root = omnizarr.open_group(tmp_path / "x.h5", mode="r")
    assert sorted(root.store.notes) == NOTES
    with h5py.File("x.h5") as file:
        shown = set(file) - {"not there", "outside", "up"}
        assert set(root) == shown
        for name in shown:
            expected, found = file[name][...], root[name][...]
            assert found.shape == expected.shape, name
            for field in expected.dtype.names or (...,):
                np.testing.assert_array_equal(found[field], expected[field], err_msg=name)
        assert root["rows"][7:25:3, 2:9].tolist() == file["rows"][7:25:3, 2:9].tolist()
    again = pickle.loads(pickle.dumps(root))
    assert again["stack"][2, 3, 4] == 2034
    assert again["one file"][3, 3] == 33
    keys = list(root.store.list())
    assert all(root.store.exists(key) and root.store.get(key) is not None for key in keys)
    assert "stack/c/3/0/0" not in keys
    assert root["rows"].chunks == (3, 4)


def test_files_are_found_in_any_store(tmp_path, http_server, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples.write_elsewhere(tmp_path, ("earliest", "latest"))
    place = http_server.fresh()
    values = {}
    for path in tmp_path.iterdir():
        shutil.copy(path, place.directory)
        values[f"below/{path.name}"] = path.read_bytes()
    for root in (
        omnizarr.open(f"{place.url}/x.h5", mode="r"),
        omnizarr.open_group(HDF5Store(MemoryStore(values), "below/x.h5"), mode="r"),
    ):
        assert root["stack"][:, 1, 1].tolist() == [11, 1011, 2011, -1]
        assert root["two files"][4, 9] == 49
        assert root["numbered"].shape == (3, 10, 10)


def test_links_that_leave_the_directory_are_refused(tmp_path):
    (tmp_path / "secret.bin").write_bytes(b"secret" * 10)
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    with h5py.File(folder / "x.h5", "w") as file:
        for name in ("link.bin", "../secret.bin", str(tmp_path / "secret.bin")):
            file.create_dataset(name.replace("/", "-"), (6,), "u1", external=[(name, 0, 6)])
    root = omnizarr.open_group(folder / "x.h5", mode="r")
    assert list(root) == []
    assert len([note for note in root.store.notes if "not in the directory of the file" in note]) == 3


def test_files_that_change_are_errors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples.write_elsewhere(tmp_path, ("earliest", "latest"))
    root = omnizarr.open_group(tmp_path / "x.h5", mode="r")
    assert root["stack"][0, 0, 1] == 1
    assert root["one file"][0, 1] == 1
    sent = pickle.dumps(root)
    for name in ("part0.h5", "raw.bin"):
        with (tmp_path / name).open("ab") as file:
            file.write(b"more")
    with pytest.raises(StaleError):
        root["one file"][...]
    for name in ("stack", "one file"):
        with pytest.raises(StaleError):
            pickle.loads(sent)[name][...]


def test_short_external_file_is_named(tmp_path):
    (tmp_path / "raw.bin").write_bytes(b"12345")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", (6,), "u1", external=[("raw.bin", 0, 6)])
    assert omnizarr.open_group(tmp_path / "x.h5", mode="r").store.notes == (
        "/x: not shown: its elements end after the file 'raw.bin', which has 5 bytes",
    )


def test_virtual_datasets_in_circles_are_errors(tmp_path):
    for one, other in (("a", "b"), ("b", "a")):
        layout = h5py.VirtualLayout((4,), "i4")
        layout[:] = h5py.VirtualSource(f"{other}.h5", "x", (4,))
        with h5py.File(tmp_path / f"{one}.h5", "w") as file:
            file.create_virtual_dataset("x", layout)
            own = h5py.VirtualLayout((4,), "i4")
            own[:] = h5py.VirtualSource(".", "self", (4,))
            file.create_virtual_dataset("self", own)
    root = omnizarr.open_group(tmp_path / "a.h5", mode="r")
    for name in root:
        with pytest.raises(OmnizarrError, match="too deep"):
            root[name][...]


def test_vast_virtual_dataset_lists_what_is_stored(tmp_path):
    with h5py.File(tmp_path / "part.h5", "w") as file:
        file.create_dataset("x", (10**15,), "u1", chunks=(10,))[3] = 1
        file.create_dataset("none", (10**12,), "u1", chunks=(10**6,))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, length in (("x", 10**15), ("none", 10**12)):
            layout = h5py.VirtualLayout((length,), "u1")
            layout[:] = h5py.VirtualSource("part.h5", name, (length,))
            file.create_virtual_dataset(name, layout)
    root = omnizarr.open_group(tmp_path / "x.h5", mode="r")
    assert root.store.notes == ("/x: not shown: it is virtual, and too large",)
    assert list(root.store.list_prefix("none")) == ["none/zarr.json"]
    assert root["none"][10**11] == 0
