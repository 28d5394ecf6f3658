"""Stores of zarr-python 3, and Icechunk's, as stores of omnizarr."""

import asyncio
import pickle
import traceback

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import ReadOnlyError, StoreAccessError, StoreError, StoreTimeoutError
from omnizarr.stores import LocalStore, MemoryStore, ZipStore, verbs
from tests.stores.contract import StoreContract

zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

from zarr.core.sync import sync  # noqa: E402

from omnizarr.interop.zarr_python import OmnizarrStore, from_zarr_python  # noqa: E402
from omnizarr.stores.remote.zarr_python import ZarrPythonStore, native  # noqa: E402


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self):
        return ZarrPythonStore(zarr.storage.MemoryStore())


class TestLocalStore(StoreContract):
    """By its own methods, as a store that somebody derived from it; otherwise the directory itself is opened."""

    # What was emptied stays as an empty directory, is listed, and is in the way of a value of that name.
    test_value_may_become_a_prefix_and_back_after_deleting = None
    test_lock_holds_while_everything_around_it_is_deleted = None
    test_behaves_like_a_dictionary = None

    @pytest.fixture
    def store(self, tmp_path):
        return ZarrPythonStore(zarr.storage.LocalStore(tmp_path))


class TestObjectStore(StoreContract):
    """By its own methods, as a store that somebody derived from it; otherwise obstore itself is used."""

    picklable = False
    test_behaves_like_a_dictionary = None  # takes half a minute
    test_unusual_key_is_a_key = None  # obstore refuses some, and others come back from its listings otherwise

    @pytest.fixture
    def store(self):
        obstore = pytest.importorskip("obstore", reason="obstore is not installed")
        return ZarrPythonStore(zarr.storage.ObjectStore(obstore.store.MemoryStore()))


class TestLoggingStore(StoreContract):
    test_behaves_like_a_dictionary = None  # that is the business of the store that it logs

    @pytest.fixture
    def store(self):
        return ZarrPythonStore(zarr.storage.LoggingStore(zarr.storage.MemoryStore(), log_level="CRITICAL"))


# -- which store it becomes


def test_store_whose_data_is_known_is_opened_by_one_of_ours(tmp_path):
    obstore = pytest.importorskip("obstore", reason="obstore is not installed")
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    assert native(zarr.storage.LocalStore(tmp_path)) == LocalStore(tmp_path)
    assert native(zarr.storage.LocalStore(tmp_path, read_only=True)).read_only
    bucket = obstore.store.MemoryStore()
    ours = native(zarr.storage.ObjectStore(bucket))
    ours.set("a", b"1")
    assert bytes(obstore.get(bucket, "a").bytes()) == b"1"
    assert native(zarr.storage.ObjectStore(bucket, read_only=True)).read_only
    assert native(zarr.storage.ObjectStore(obstore.store.LocalStore(tmp_path))) == LocalStore(tmp_path)
    ours = native(zarr.storage.FsspecStore.from_url("memory://a/b", read_only=True))
    assert (repr(ours), ours.read_only) == ("FsspecStore('memory://a/b')", True)
    assert ours.fs.store is fsspec.filesystem("memory").store


def test_archive_open_for_reading_is_opened_by_its_path(tmp_path):
    with ZipStore(tmp_path / "x.zip", mode="w") as ours:
        ours.set("a", b"1")
    with native(zarr.storage.ZipStore(tmp_path / "x.zip", mode="r", read_only=True)) as store:
        assert isinstance(store, ZipStore)
        assert store.get("a") == b"1"


def test_store_of_omnizarr_comes_out_of_its_wrapping():
    store = MemoryStore()
    assert native(OmnizarrStore(store)) is store
    assert native(OmnizarrStore(store, read_only=True)).read_only


@pytest.mark.parametrize("derived", [zarr.storage.LocalStore, zarr.storage.LoggingStore])
def test_store_that_may_do_things_of_its_own_is_used_by_its_own_methods(tmp_path, derived):
    inner = zarr.storage.LocalStore(tmp_path)
    theirs = derived(inner, log_level="CRITICAL") if derived is zarr.storage.LoggingStore else derived(tmp_path)
    theirs = theirs if derived is zarr.storage.LoggingStore else type("Derived", (derived,), {})(tmp_path)
    assert isinstance(native(theirs), ZarrPythonStore)
    assert ZarrPythonStore(theirs).features.concurrency == 1


@pytest.mark.parametrize("thing", [None, {}, "a", zarr])
def test_what_is_no_store_of_theirs_is_refused(thing):
    with pytest.raises(TypeError, match="not a store of zarr-python"):
        ZarrPythonStore(thing)


def test_options_for_a_store_that_is_there_are_refused():
    with pytest.raises(StoreError, match="storage_options") as caught:
        omnizarr.open(zarr.storage.MemoryStore(), storage_options={"secret": "hidden"})
    assert "hidden" not in str(caught.value)


def test_nodes_are_opened_where_a_store_path_leads(tmp_path):
    theirs = zarr.create_group(tmp_path).create_array("a/b", shape=(4,), dtype="i2")
    theirs[:] = [1, 2, 3, 4]
    ours = omnizarr.open_array(theirs.store_path, mode="r+")
    np.testing.assert_array_equal(ours[:], [1, 2, 3, 4])
    ours[1] = 7
    assert theirs[1] == 7


# -- many at once


class Remote(zarr.storage.WrapperStore):
    """A store that takes its time, and counts."""

    def __init__(self, store):
        super().__init__(store)
        self.now = self.most = 0

    async def get(self, *arguments, **options):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0.01)
            return await super().get(*arguments, **options)
        finally:
            self.now -= 1


class Foreign(zarr.storage.FsspecStore):
    """A store that is neither in memory nor in files, as far as omnizarr can see."""


@pytest.fixture
def remote():
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    fs = fsspec.implementations.asyn_wrapper.AsyncFileSystemWrapper(
        fsspec.implementations.memory.MemoryFileSystem(global_store=False, skip_instance_cache=True), asynchronous=True
    )
    return Remote(Foreign(fs, path="/a"))


def test_many_values_are_asked_for_at_once(remote):
    store = ZarrPythonStore(remote)
    assert store.features.concurrency == 64
    verbs.set_many(store, ((f"c/{i}", b"%d" % i) for i in range(200)))
    answers = dict(verbs.get_many(store, ((f"c/{i}", (0, 1) if i % 2 else None) for i in range(201))))
    assert answers == {i: (b"%d" % i)[: 1 if i % 2 else None] for i in range(200)} | {200: None}
    assert 32 < remote.most <= 64
    assert remote.now == 0


def test_array_in_a_store_remote_is_read_by_many_requests_at_once(remote):
    values = np.arange(400, dtype="i4").reshape(20, 20)
    omnizarr.create_array(remote, shape=(20, 20), chunks=(2, 4), dtype="i4")[:] = values
    remote.most = 0
    np.testing.assert_array_equal(omnizarr.open_array(remote, mode="r")[:], values)
    assert remote.most > 10


def test_first_of_many_that_fails_is_an_error(remote):
    store = ZarrPythonStore(remote)
    get = remote.get

    async def fail(key, *arguments, **options):
        if key == "c/7":
            raise PermissionError(13, "not for you")
        return await get(key, *arguments, **options)

    remote.get = fail
    with pytest.raises(StoreAccessError, match="not for you") as caught:
        list(verbs.get_many(store, ((f"c/{i}", None) for i in range(20))))
    assert caught.value.key == "c/7"


def test_parts_of_one_value_belong_together(remote):
    store = ZarrPythonStore(remote)
    store.set("a", b"0123456789")
    assert verbs.get_spans(store, "a", [(1, 3)]) == [b"12"]
    assert verbs.get_spans(store, "a", [(1, 3), (-2, None), (9, 99)]) == [b"12", b"89", b"9"]
    assert remote.most == 1  # all of it, once
    assert verbs.get_spans(store, "a", []) == []
    assert verbs.get_spans(store, "b", []) is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("no"), StoreAccessError),
        (TimeoutError("late"), StoreTimeoutError),
        (OSError("broken"), StoreError),
        (type("TheirError", (Exception,), {"__module__": "theirs"})("odd"), StoreError),
        (ValueError("wrong"), ValueError),
    ],
    ids=lambda thing: thing.__name__ if isinstance(thing, type) else type(thing).__name__,
)
def test_errors_are_ours(remote, error, kind):
    async def fail(*_, **__):
        raise error

    remote.get = fail
    with pytest.raises(kind) as caught:
        ZarrPythonStore(remote).get("a")
    assert type(caught.value) is kind


def test_credentials_in_errors_of_theirs_are_left_out(remote):
    async def fail(*_, **__):
        raise OSError(f"no answer from https://me:hidden-{'secret'}@host/a?sig=1")

    remote.get = fail
    with pytest.raises(StoreError) as caught:
        ZarrPythonStore(remote).get("a")
    assert "hidden-secret" not in "".join(traceback.format_exception(caught.value))


def test_use_on_the_loop_of_zarr_python_is_refused_and_does_not_hang(remote):
    store = ZarrPythonStore(remote)

    async def use():
        return list(verbs.get_many(store, [("a", None)]))

    with pytest.raises(Exception, match="loop"):
        sync(use())


# -- Icechunk


@pytest.fixture
def repository():
    icechunk = pytest.importorskip("icechunk", reason="icechunk is not installed")
    return icechunk.Repository.create(icechunk.in_memory_storage())


def test_session_of_icechunk_is_written_and_committed(repository):
    session = repository.writable_session("main")
    root = omnizarr.open_group(session.store, mode="a", attributes={"title": "x"})
    values = np.arange(600, dtype="i4").reshape(20, 30)
    root.create_array("a/b", shape=(20, 30), chunks=(6, 7), dtype="i4")[:] = values
    root["a/b"][3:5, 2:20] = values[3:5, 2:20] = -1
    session.commit("first")

    read_only = repository.readonly_session("main").store
    found = omnizarr.open_group(read_only, mode="r")
    assert dict(found.attrs) == {"title": "x"}
    assert sorted(name for name, _ in found.members(max_depth=None)) == ["a", "a/b"]
    np.testing.assert_array_equal(found["a/b"][:], values)
    np.testing.assert_array_equal(zarr.open_group(read_only, mode="r")["a/b"][:], values)


def test_session_of_icechunk_for_reading_cannot_be_written(repository):
    session = repository.writable_session("main")
    omnizarr.create_array(session.store, shape=(4,), dtype="i2")[:] = 1
    session.commit("first")
    store = repository.readonly_session("main").store
    with pytest.raises(ReadOnlyError):
        omnizarr.open_array(store, mode="r+")
    array = omnizarr.open_array(store, mode="r")
    with pytest.raises(ReadOnlyError):
        array[:] = 2
    assert array[:].tolist() == [1, 1, 1, 1]


def test_parts_of_a_value_in_icechunk_are_asked_for_by_themselves(repository):
    session = repository.writable_session("main")
    array = omnizarr.create_array(session.store, shape=(64,), chunks=(4,), shards=(64,), dtype="i2")
    array[:] = np.arange(64)
    store = from_zarr_python(session.store)
    whole = store.get("c/0")
    assert verbs.get_spans(store, "c/0", [(0, 8), (-20, None), (3, 3)]) == [whole[:8], whole[-20:], b""]
    np.testing.assert_array_equal(omnizarr.open_array(session.store, mode="r")[9:30], np.arange(9, 30))


def test_what_icechunk_cannot_hold_is_an_error(repository):
    store = from_zarr_python(repository.writable_session("main").store)
    with pytest.raises(StoreError) as caught:
        store.set("no/zarr/key", b"1")
    assert caught.value.key == "no/zarr/key"


def test_store_of_icechunk_pickles(tmp_path):
    icechunk = pytest.importorskip("icechunk", reason="icechunk is not installed")
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path)))
    session = repository.writable_session("main")
    omnizarr.create_array(session.store, shape=(4,), dtype="i2")[:] = 1
    session.commit("first")
    store = from_zarr_python(repository.readonly_session("main").store)
    assert pickle.loads(pickle.dumps(store)).get("zarr.json") == store.get("zarr.json")
