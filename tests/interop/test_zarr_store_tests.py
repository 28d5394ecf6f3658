"""zarr-python's own tests of stores, run on omnizarr's. (The reverse: `tests/stores/remote/test_zarr_python.py`.)"""

import itertools
import pickle

import pytest

from omnizarr.errors import ReadOnlyError
from omnizarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore, PrefixStore, ZipStore
from omnizarr.stores import SQLiteStore, verbs

zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

from zarr.core.buffer import cpu  # noqa: E402
from zarr.testing.store import StoreTests  # noqa: E402

from omnizarr.interop.zarr_python import OmnizarrStore  # noqa: E402

_numbers = itertools.count()


class StoreTestsUponOmnizarr(StoreTests):
    """The suite, with what it leaves to each store; `ours` is the store of omnizarr."""

    store_cls = OmnizarrStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def ours(self):
        raise NotImplementedError

    @pytest.fixture
    def store_kwargs(self, ours):
        return {"store": ours}

    async def set(self, store, key, value):
        store.store.set(key, value.to_bytes())

    async def get(self, store, key):
        return self.buffer_cls.from_bytes(store.store.get(key))

    def test_store_repr(self, store):
        assert repr(store) == f"OmnizarrStore({store.store!r})"

    def test_store_supports_writes(self, store):
        assert store.supports_writes

    def test_store_supports_listing(self, store):
        assert store.supports_listing


class TestMemoryStore(StoreTestsUponOmnizarr):
    @pytest.fixture
    def ours(self):
        return MemoryStore()

    async def test_serializable_store(self, store):
        # Theirs asks that the copy equals the original. Two of our stores in memory are equal if they share their
        # values, and a pickled one has a copy of them.
        await store.set("a", self.buffer_cls.from_bytes(b"1"))
        copy = pickle.loads(pickle.dumps(store))
        assert copy.store.get("a") == b"1"
        await copy.set("a", self.buffer_cls.from_bytes(b"2"))
        assert store.store.get("a") == b"1"
        assert copy != store


class TestLocalStore(StoreTestsUponOmnizarr):
    @pytest.fixture
    def ours(self, tmp_path):
        return LocalStore(tmp_path)


class TestPrefixStore(StoreTestsUponOmnizarr):
    @pytest.fixture
    def ours(self, tmp_path):
        return PrefixStore(LocalStore(tmp_path), "a/b")


class TestZipStore(StoreTestsUponOmnizarr):
    @pytest.fixture
    def ours(self, tmp_path):
        with ZipStore(tmp_path / "x.zip", mode="w") as store:
            yield store

    async def test_serializable_store(self, store, tmp_path):
        # Theirs writes to the copy. Ours has one writer per archive, so that one being written does not pickle.
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(store)
        await store.set("a", self.buffer_cls.from_bytes(b"1"))
        store.close()
        with OmnizarrStore(ZipStore(tmp_path / "x.zip")) as reader, pickle.loads(pickle.dumps(reader)) as copy:
            assert copy == reader
            assert copy.store.get("a") == b"1"


class TestFsspecStore(StoreTestsUponOmnizarr):
    @pytest.fixture
    def ours(self):
        fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
        store = FsspecStore(fsspec.filesystem("memory"), f"store-tests-{next(_numbers)}")
        yield store
        verbs.delete_prefix(store, "")


class TestObjectStore(StoreTestsUponOmnizarr):
    @pytest.fixture
    def ours(self):
        obstore = pytest.importorskip("obstore", reason="obstore is not installed")
        return ObjectStore(obstore.store.MemoryStore())

    async def test_serializable_store(self, store):
        # What is in the memory of obstore cannot be reached from elsewhere.
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(store)


class TestSQLiteStore(StoreTestsUponOmnizarr):
    @pytest.fixture
    def ours(self, tmp_path):
        with SQLiteStore(tmp_path / "x.sqlite") as store:
            yield store


def test_store_that_cannot_be_written_is_read_only_by_itself():
    store = OmnizarrStore(MemoryStore(read_only=True))
    assert store.read_only
    with pytest.raises(ReadOnlyError):
        OmnizarrStore(MemoryStore(read_only=True), read_only=False)
