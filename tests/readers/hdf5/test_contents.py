"""One object of a file is shown as in a listing of the whole file, and only what leads to it is read."""

from pathlib import Path

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr.errors import MetadataError, NodeNotFoundError
from omnizarr.readers.hdf5.store import HDF5Store
from omnizarr.stores import LocalStore
from tests.readers.hdf5 import samples

NETCDF = Path(__file__).parents[2] / "netcdf" / "data" / "files"
FILES = sorted(path.name for path in NETCDF.glob("*.nc") if path.read_bytes()[:4] == b"\x89HDF")


def opened(path):
    return HDF5Store(LocalStore(path.parent, read_only=True), path.name)


def odd(path):
    """Write a file in which what one path shows depends on other objects."""
    with h5py.File(path, "w") as file:
        file["x"], file["g/x"], file["g/y"] = np.arange(3), np.arange(4), np.arange(2)
        for name in ("x", "g/x"):
            file[name].make_scale(name)
        for name, scale in {"a": "x", "g/a": "g/x", "g/below/a": "x", "g/other/b": "x"}.items():
            file[name] = np.zeros(file[scale].shape)
            file[name].dims[0].attach_scale(file[scale])
        file["far"] = np.zeros(2)
        file["far"].attrs["one"] = [1]  # a number in files of netCDF, of which scales are a sign
        file["far"].attrs["to"] = file["g/below/a"].ref
        file["second"] = file["g/y"]
        file["soft"] = h5py.SoftLink("/g/y")
        file["to a group"] = h5py.SoftLink("/g/below")
        file["group again"] = file["g/below"]
        file["external"] = h5py.ExternalLink("other.h5", "/x")
        file["_nc4_non_coord_z"], file["type"] = np.zeros(3), np.dtype("i4")


@pytest.mark.parametrize("name", ["earliest", "latest", "odd", *FILES])
def test_each_object_alone_is_what_a_listing_shows(name, tmp_path):
    path = tmp_path / "x.h5"
    if name == "odd":
        odd(path)
    elif name.endswith(".nc"):
        path = NETCDF / name
    else:
        samples.write(path, (name, "latest"))
    whole = opened(path)
    documents = whole._contents.whole().documents
    for key, document in [*documents.items()][:: 1 + len(documents) // 30]:
        store, node = opened(path), key.rpartition("/")[0]
        assert bytes(store.get(key)) == document
        assert str(store.attributes_of(node)) == str(whole.attributes_of(node))
        assert set(store.about_node(node).get("notes", ())) <= set(whole.notes)
    for gone in ("nothing", "soft", "external", "to a group", "type", "group again", "second", "z"):
        store = opened(path)
        assert store.exists(f"{gone}/zarr.json") == (f"{gone}/zarr.json" in documents)
        assert store.notes == whole.notes


@pytest.mark.parametrize("version", ["earliest", "latest"])
def test_only_what_leads_to_an_array_is_read(version, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w", libver=version) as file:
        for number in range(100):
            dataset = file.create_dataset(f"{number % 10}/{number}", data=np.full((4, 4), number), chunks=(2, 2))
            dataset.attrs["text"] = "of the array"
    array = omnizarr.open_array(tmp_path / "x.h5", path="3/43", mode="r")
    assert array[1:3, 2].tolist() == [43, 43]
    assert array.attrs["text"] == "of the array"
    assert array.store.about_node("3/43") == {"format": "HDF5"}
    assert len([*array.store.list_prefix("3/43/")]) == 5
    group = omnizarr.open_group(tmp_path / "x.h5", mode="r")
    assert group["5/55"].shape == (4, 4)
    for store in (array.store, group.store):
        read = [what for what, *_ in store._contents.file.source.memo if what == "header"]
        assert len(read) <= 4
    with pytest.raises(NodeNotFoundError):
        group["5/56"]
    assert len(dict(group.members(max_depth=None))) == 110


def test_what_is_broken_elsewhere_is_not_in_the_way(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as file:
        file["good/x"], file["bad/x"] = np.arange(3), np.arange(4)
        at = h5py.h5o.get_info(file["bad"].id).addr
    raw = bytearray((tmp_path / "x.h5").read_bytes())
    raw[at + 30] ^= 1
    (tmp_path / "x.h5").write_bytes(raw)
    store = opened(tmp_path / "x.h5")
    assert omnizarr.open_array(store, path="good/x")[...].tolist() == [0, 1, 2]
    for path in ("bad", "bad/x"):
        with pytest.raises(MetadataError, match="the checksum of an object header is wrong"):
            omnizarr.open(opened(tmp_path / "x.h5"), path=path, mode="r")
    assert [note.partition(" (")[0] for note in store.notes] == [
        "/bad: not shown: it cannot be read: the checksum of an object header is wrong: some of its bytes have changed"
    ]


def test_a_file_that_is_open_for_writing_has_a_note(tmp_path):
    path = tmp_path / "x.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["x"] = np.arange(3)
        file.swmr_mode = True
        assert opened(path).notes == (
            "/: a writer has this file open, or did not close it: what it has not stored is missing",
        )
    assert opened(path).notes == ()
    assert opened(path).get("x/zarr.json") is not None
