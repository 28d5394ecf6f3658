"""The stores of `omnizarr_as_zarr`, held against those of zarr-python."""

import asyncio
import zipfile

import numpy as np
import pytest

import omnizarr_as_zarr as as_zarr
from omnizarr_as_zarr import storage
from omnizarr_as_zarr.errors import ZarrDeprecationWarning
from omnizarr_as_zarr.storage._below import inner_of

zarr = pytest.importorskip("zarr", minversion="3.1")
MODULES = pytest.mark.parametrize("module", [zarr, as_zarr], ids=["zarr-python", "omnizarr"])


@MODULES
@pytest.mark.parametrize(("path", "expected"), [("/a", "a"), ("a/", "a"), ("/a//b/", "a/b"), ("/", ""), ("", "")])
def test_place_has_a_path_without_slashes_around_it(module, path, expected):
    place = module.storage.StorePath(module.storage.MemoryStore(), path)
    assert place.path == expected
    array = module.create_array(place, name="x", shape=(1,), dtype="i1")
    assert array.path == f"{expected}/x".strip("/")


@MODULES
def test_archive_is_opened_when_it_is_first_used(module, tmp_path):
    new = module.storage.ZipStore(tmp_path / "new.zip", mode="w")
    assert not new._is_open
    assert not new.read_only
    assert not (tmp_path / "new.zip").exists()
    module.create_array(new, data=np.arange(3))
    assert new._is_open
    new.close()
    assert module.open(module.storage.ZipStore(tmp_path / "new.zip"))[...].tolist() == [0, 1, 2]


@MODULES
def test_archive_that_is_missing_is_missed_when_it_is_first_used(module, tmp_path):
    missing = module.storage.ZipStore(tmp_path / "missing.zip", mode="r")
    assert missing.read_only
    with pytest.raises(FileNotFoundError):
        module.open(missing)
    assert list(tmp_path.iterdir()) == []


@MODULES
def test_archive_that_is_opened_to_write_again_is_emptied_when_it_is_first_used(module, tmp_path):
    path = tmp_path / "a.zip"
    with module.storage.ZipStore(path, mode="w") as store:
        module.create_array(store, data=np.arange(3))
    before = path.read_bytes()
    module.storage.ZipStore(path, mode="w")
    assert path.read_bytes() == before


def test_archive_keeps_compression_and_one_entry_of_a_name(tmp_path):
    with as_zarr.storage.ZipStore(tmp_path / "a.zip", mode="w", compression=zipfile.ZIP_DEFLATED) as store:
        array = as_zarr.create_array(store, shape=(4,), dtype="i4", compressors=None)
        array[...] = 1
        array[...] = 2
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert sorted(archive.namelist()) == ["c/0", "zarr.json"]
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_DEFLATED}


@MODULES
def test_directory_is_moved(module, tmp_path):
    store = module.storage.LocalStore(tmp_path / "old")
    module.create_array(store, name="a", data=np.arange(3))
    asyncio.run(store.move(tmp_path / "below" / "new"))
    assert store.root == tmp_path / "below" / "new"
    assert not (tmp_path / "old").exists()
    assert module.open(store, path="a")[...].tolist() == [0, 1, 2]
    other = module.storage.LocalStore(tmp_path / "other")
    module.create_group(other)
    with pytest.raises(FileExistsError, match="exists"):
        asyncio.run(other.move(tmp_path / "below" / "new"))
    assert module.open(store, path="a")[...].tolist() == [0, 1, 2]


@MODULES
def test_archive_is_moved(module, tmp_path):
    store = asyncio.run(module.storage.ZipStore.open(tmp_path / "old.zip", mode="a"))
    module.create_array(store, name="a", data=np.arange(3))
    asyncio.run(store.move(str(tmp_path / "below" / "new.zip")))
    assert store.path == tmp_path / "below" / "new.zip"
    assert not (tmp_path / "old.zip").exists()
    assert module.open(store, path="a")[...].tolist() == [0, 1, 2]


def test_moving_an_archive_loses_neither_it_nor_another_one(tmp_path):
    store = as_zarr.storage.ZipStore(tmp_path / "old.zip", mode="w")  # which zarr-python empties once more
    as_zarr.create_array(store, data=np.arange(3))
    (tmp_path / "there.zip").write_bytes(b"another one")
    with pytest.raises(FileExistsError, match=r"there\.zip"):
        asyncio.run(store.move(tmp_path / "there.zip"))
    assert (tmp_path / "there.zip").read_bytes() == b"another one"
    asyncio.run(store.move(tmp_path / "new.zip"))
    assert as_zarr.open(store)[...].tolist() == [0, 1, 2]


@MODULES
def test_deleting_a_place_in_a_directory_deletes_what_is_below(module, tmp_path):
    group = module.open_group(tmp_path / "x.zarr", mode="w")
    group.create_array("a/b", shape=(2,), dtype="i4")
    asyncio.run(group["a"].store_path.delete())
    assert list(group.keys()) == []
    asyncio.run(group.store_path.delete())
    with pytest.raises(FileNotFoundError):
        module.open_group(tmp_path / "x.zarr", mode="r")


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_key_that_is_deleted_is_no_directory(wrapped, tmp_path):
    class Own(as_zarr.storage.LocalStore):
        async def get(self, key, prototype=None, byte_range=None):
            return await super().get(key, prototype, byte_range)

    store = as_zarr.storage.WrapperStore(Own(tmp_path)) if wrapped else Own(tmp_path)
    group = as_zarr.create_group(store)
    group.create_array("a", data=np.arange(3))
    inner_of(store).delete("a")
    assert group["a"][...].tolist() == [0, 1, 2]
    inner_of(store).delete("a/c/0")
    assert group["a"][...].tolist() == [0, 0, 0]


def latent(module):
    """Return a store that takes its time, and what says how many requests it was asked at once at most."""

    class Latent(module.storage.MemoryStore):
        waiting = most = 0

        async def get(self, key, prototype=None, byte_range=None):
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            await asyncio.sleep(0.02)
            self.waiting -= 1
            return await super().get(key, prototype, byte_range)

    return Latent()


@pytest.mark.parametrize(("limit", "expected"), [(1, {1}), (4, {2, 3, 4})])
def test_stores_of_others_are_asked_for_several_values_at_once(limit, expected):
    store = latent(as_zarr)
    group = as_zarr.create_group(store)
    for number in range(6):
        group.create_group(f"g{number}")
    array = as_zarr.create_array(store, name="a", data=np.arange(8), chunks=(1,))
    for action in (group.members, lambda: array[...]):
        store.most = 0
        with as_zarr.config.set({"async.concurrency": limit}):
            action()
        assert store.most in expected


@MODULES
def test_no_key_begins_with_a_slash(module):
    store = module.storage.MemoryStore()
    module.create_group(store)

    async def listed():
        return [key async for key in store.list_prefix("/")]

    assert asyncio.run(listed()) == []


def test_setting_of_zarr_python_2_warns_that_it_has_no_effect():
    with pytest.warns(ZarrDeprecationWarning, match="default_compressor is deprecated"):
        storage.default_compressor = None
    assert not hasattr(storage, "default_compressor")


WRITERS = {
    "open": lambda module, place: module.open(place, mode="w", shape=(3,), dtype="i4"),
    "open_array": lambda module, place: module.open_array(place, mode="a", shape=(3,), dtype="i4"),
    "open_group": lambda module, place: module.open_group(place, mode="w-"),
    "open_like": lambda module, place: module.open_like(np.arange(3), place, mode="a"),
    "create": lambda module, place: module.create((3,), store=place),
    "create_array": lambda module, place: module.create_array(store=place, shape=(3,), dtype="i4"),
    "create_group": lambda module, place: module.create_group(place),
    "create_hierarchy": lambda module, place: dict(
        module.create_hierarchy(store=place, nodes={"": module.open_group({}).metadata})
    ),
    "from_array": lambda module, place: module.from_array(place, data=np.arange(3)),
    "group": lambda module, place: module.group(store=place),
    "save": lambda module, place: module.save(place, np.arange(3)),
    "save_array": lambda module, place: module.save_array(place, np.arange(3)),
    "save_group": lambda module, place: module.save_group(place, np.arange(3)),
    "zeros": lambda module, place: module.zeros((3,), store=place),
    "Group.from_store": lambda module, place: module.Group.from_store(place),
    "AsyncGroup.from_store": lambda module, place: asyncio.run(module.AsyncGroup.from_store(place)),
}


@pytest.mark.parametrize("kind", [str, lambda path: path, lambda path: path.as_uri()], ids=["str", "Path", "URL"])
@pytest.mark.parametrize("verb", WRITERS)
def test_new_directory_can_have_the_name_of_a_file_of_another_format(verb, kind, tmp_path):
    path = tmp_path / "x.nc"
    WRITERS[verb](as_zarr, kind(path))
    assert path.is_dir()
    written = zarr.open(path, mode="r")  # zarr-python's own
    assert list(written) == (["arr_0"] if verb == "save_group" else []) or written.shape == (3,)


@MODULES
def test_directory_with_the_name_of_a_file_grows(module, tmp_path):
    path = str(tmp_path / "x.nc")
    module.open_group(path, mode="w").create_array("a", data=np.arange(3))
    module.open_group(path, mode="a").create_array("b", data=np.arange(2))
    assert module.open(path, mode="r")["b"][...].tolist() == [0, 1]
    module.create_group(f"{path}/below.tif")
    assert sorted(module.open_group(path, mode="r")) == ["a", "b", "below.tif"]


@MODULES
def test_missing_directory_with_the_name_of_a_file_is_not_made_by_reading(module, tmp_path):
    with pytest.raises(FileNotFoundError):
        module.open(tmp_path / "x.nc", mode="r")
    assert list(tmp_path.iterdir()) == []
