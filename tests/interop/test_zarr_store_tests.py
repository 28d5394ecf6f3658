"""zarr-python's own tests of stores, run upon omnizarr's; and our tests of stores, run upon zarr-python's."""

import pickle

import pytest

from omnizarr.errors import ReadOnlyError
from omnizarr.storage import LocalStore, MemoryStore, PrefixStore, ZipStore
from tests.stores.contract import StoreContract

zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

from zarr.core.buffer import cpu  # noqa: E402
from zarr.testing.store import StoreTests  # noqa: E402

from omnizarr.interop.zarr_python import OmnizarrStore, ZarrPythonStore  # noqa: E402


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


def test_store_that_cannot_be_written_is_read_only_by_itself():
    store = OmnizarrStore(MemoryStore(read_only=True))
    assert store.read_only
    with pytest.raises(ReadOnlyError):
        OmnizarrStore(MemoryStore(read_only=True), read_only=False)


# -- the other way round ------------------------------------------------------------


class TestZarrPythonMemoryStore(StoreContract):
    @pytest.fixture
    def store(self):
        return ZarrPythonStore(zarr.storage.MemoryStore())


class TestZarrPythonLocalStore(StoreContract):
    """By its own methods, as a store that somebody derived from it; `from_zarr_python` opens the directory itself."""

    # What was emptied stays as an empty directory, is listed, and is in the way of a value of that name.
    test_value_may_become_a_prefix_and_back_after_deleting = None
    test_lock_holds_while_everything_around_it_is_deleted = None
    test_behaves_like_a_dictionary = None

    @pytest.fixture
    def store(self, tmp_path):
        return ZarrPythonStore(zarr.storage.LocalStore(tmp_path))
