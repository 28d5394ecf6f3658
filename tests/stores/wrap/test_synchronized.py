import multiprocessing
import os
import pickle
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import omnizarr
from omnizarr.stores import LocalStore, MemoryStore, SynchronizedStore, WrapperStore, verbs
from omnizarr.stores.base import answers, check_key
from omnizarr.stores.wrap.synchronized import guarantee
from tests.fakes import FaultyStore
from tests.stores.contract import StoreContract, in_threads


class Locks:
    """As the ThreadSynchronizer of zarr-python 2: a lock per key, that its owner cannot take twice."""

    def __init__(self):
        self.guard = threading.Lock()
        self.locks = {}

    def __getitem__(self, key):
        with self.guard:
            return self.locks.setdefault(key, threading.Lock())

    def __eq__(self, other):
        return isinstance(other, Locks)

    __hash__ = None

    def __getstate__(self):
        return {}

    def __setstate__(self, state):
        self.__init__()


class TestSynchronizedStore(StoreContract):
    @pytest.fixture
    def store(self):
        return SynchronizedStore(MemoryStore(), Locks())


class Unlocked(WrapperStore):
    """A store whose locks exclude no writer, as those of a store without any do between processes."""

    @property
    def features(self):
        return replace(self.store.features, exclusion="process")

    @contextmanager
    def lock(self, key):
        self.check_writable()
        check_key(key)
        yield

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key, value):
        return verbs.set_if_absent.default(self, key, value)


class FileLock:
    """A lock of a file, without queue or reentrancy: who finds it waits and looks again."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        while True:
            try:
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL))
            except (FileExistsError, PermissionError):  # the second on Windows, while it is being removed
                time.sleep(0.001)
            else:
                return self

    def __exit__(self, *_):
        Path(self.path).unlink()


KINDS = {
    "getitem": Locks,
    "callable": lambda: Locks().__getitem__,
    "one": threading.Lock,
    "one reentrant": threading.RLock,
}


@pytest.mark.parametrize("kind", KINDS)
def test_users_lock_excludes_those_whom_the_store_does_not(kind):
    values, synchronizer = MemoryStore({"n": b"0"}), KINDS[kind]()
    stores = [SynchronizedStore(Unlocked(values), synchronizer) for _ in range(4)]

    def count(store):
        for _ in range(50):
            store.update("n", lambda old: b"%d" % (int(bytes(old)) + 1))

    in_threads(count, stores)
    assert values.get("n") == b"200"


@pytest.mark.parametrize("kind", KINDS)
def test_thread_may_enter_again_although_the_users_lock_cannot(kind):
    store = SynchronizedStore(MemoryStore(), KINDS[kind]())
    other = SynchronizedStore(store.store, store.synchronizer)
    with store.lock("a"), other.lock("a"), store.lock("a"):
        verbs.set_partial(store, "a", 0, b"x")
        assert not verbs.set_if_absent(store, "a", b"y")
    with store.lock("a"):
        pass


def test_lock_for_all_keys_may_be_entered_for_two_of_them():
    store = SynchronizedStore(MemoryStore(), threading.Lock())
    with store.lock("a"), store.lock("b"):
        pass


def test_lock_for_all_keys_lets_one_thread_in():
    store = SynchronizedStore(MemoryStore(), threading.Lock())
    entered = threading.Event()

    def enter():
        with store.lock("b"):
            entered.set()

    thread = threading.Thread(target=enter)
    with store.lock("a"):
        thread.start()
        assert not entered.wait(0.05)
    thread.join(10)
    assert entered.is_set()


def test_locks_are_asked_for_by_key():
    asked = []

    @contextmanager
    def lock(key):
        asked.append(key)
        yield

    array = omnizarr.create_array(SynchronizedStore(MemoryStore(), lock), name="x/y", shape=4, chunks=4, dtype="i4")
    asked.clear()
    array[1] = 1
    assert asked == ["x/y/c/0"]


def test_failing_lock_of_the_user_lets_nobody_in():
    @contextmanager
    def broken(_):
        raise TimeoutError("no lock")
        yield

    store = SynchronizedStore(MemoryStore(), broken)
    with pytest.raises(TimeoutError):
        store.update("a", lambda _: b"1")
    assert store.get("a") is None
    assert not store.store.exists("a")


def test_lock_is_released_after_an_error():
    lock = threading.Lock()
    store = SynchronizedStore(MemoryStore(), lock)
    with pytest.raises(KeyError), store.lock("a"):
        raise KeyError
    assert not lock.locked()


@pytest.mark.parametrize("synchronizer", [3, None, object()], ids=["number", "None", "object"])
def test_what_gives_no_locks_is_refused(synchronizer):
    with pytest.raises(TypeError, match="gives no locks"):
        SynchronizedStore(MemoryStore(), synchronizer)


def test_guarantee_says_how_writers_are_kept_apart(tmp_path):
    class Conditional(WrapperStore):
        @property
        def features(self):
            return replace(self.store.features, exclusion="condition")

    assert guarantee(LocalStore(tmp_path)) == "kept apart by locks"
    assert guarantee(Conditional(MemoryStore())) == "kept apart by conditional writes"
    assert "one process only" in guarantee(Unlocked(MemoryStore()))
    assert guarantee(SynchronizedStore(Unlocked(MemoryStore()), Locks())) == "kept apart by locks"
    assert SynchronizedStore(Conditional(MemoryStore()), Locks()).features.exclusion == "condition"


def test_store_is_shown_without_what_the_lock_may_tell():
    class Secret:
        def __call__(self, key):
            raise NotImplementedError

        def __repr__(self):
            return "password"

    assert repr(SynchronizedStore(MemoryStore(), Secret())).endswith(", Secret)")


# -- opening


@pytest.mark.parametrize(
    "open_",
    [
        lambda store, lock: omnizarr.open(store, path="a", synchronizer=lock),
        lambda store, lock: omnizarr.open_array(store, path="a", synchronizer=lock),
        lambda store, lock: omnizarr.open_group(store, synchronizer=lock)["a"],
        lambda store, lock: omnizarr.group(store, synchronizer=lock)["a"],
        lambda store, lock: omnizarr.create(
            4, store=store, path="b", dtype="i4", chunks=4, overwrite=True, synchronizer=lock
        ),
        lambda store, lock: omnizarr.create_array(store, name="b", shape=4, dtype="i4", chunks=4, synchronizer=lock),
        lambda store, lock: omnizarr.create_group(store, path="g", synchronizer=lock).create_array(
            "b", shape=4, dtype="i4", chunks=4
        ),
        lambda store, lock: omnizarr.zeros(4, store=store, path="b", dtype="i4", chunks=4, synchronizer=lock),
        lambda store, lock: omnizarr.open_like(
            omnizarr.open(store, path="a"), omnizarr.storage.StorePath(store, "b"), mode="w", synchronizer=lock
        ),
        lambda store, lock: omnizarr.from_array(
            store, name="b", data=omnizarr.open(store, path="a"), synchronizer=lock
        ),
    ],
    ids=[
        "open",
        "open_array",
        "open_group",
        "group",
        "create",
        "create_array",
        "create_group",
        "zeros",
        "like",
        "from",
    ],
)
def test_writers_of_arrays_take_the_lock_that_was_given(open_):
    store = MemoryStore()
    omnizarr.create_array(store, name="a", shape=4, chunks=4, dtype="i4")
    taken = []

    @contextmanager
    def lock(key):
        taken.append(key)
        yield

    array = open_(store, lock)
    taken.clear()
    array[1] = 5
    assert len(taken) == 1
    assert array[...].tolist() == [0, 5, 0, 0]


def test_one_lock_for_all_keys_may_be_held_by_who_needs_several(tmp_path):
    store = SynchronizedStore(LocalStore(tmp_path), threading.Lock())
    other = threading.Thread(target=verbs.set_partial, args=(store, "chunk", 0, b"1"))
    with store.lock("document"):
        other.start()
        other.join(0.1)
        assert other.is_alive()
        verbs.set_partial(store, "chunk", 1, b"2")
    other.join(10)
    assert not other.is_alive()
    assert store.get("chunk") == b"12"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_process_takes_the_lock_that_a_thread_had_entered(tmp_path):
    store = SynchronizedStore(LocalStore(tmp_path / "data"), FileLock(str(tmp_path / "lock")))
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with store.lock("a"):
            entered.set()
            leave.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert entered.wait(10)
    child = multiprocessing.get_context("fork").Process(target=verbs.set_partial, args=(store, "b", 0, b"1"))
    child.start()
    child.join(0.3)
    assert store.get("b") is None
    leave.set()
    holder.join(10)
    child.join(10)
    assert (child.exitcode, store.get("b")) == (0, b"1")


def test_no_synchronizer_wraps_nothing():
    store = MemoryStore()
    omnizarr.create_array(store, shape=4, chunks=4, dtype="i4", synchronizer=None)
    assert omnizarr.open_array(store, synchronizer=None).store is store


def test_synchronizer_that_gives_no_locks_is_refused():
    with pytest.raises(TypeError, match="gives no locks"):
        omnizarr.open_group(MemoryStore(), mode="w", synchronizer=3)


def _write(arguments):
    folder, path, number = arguments
    store = Unlocked(LocalStore(folder))
    array = omnizarr.open_array(store, mode="r+", synchronizer=FileLock(path))
    for index in range(number, 64, 2):
        array[index] = index + 1
    return number


def test_processes_with_one_lock_lose_nothing_on_a_store_that_has_none(tmp_path):
    omnizarr.create_array(tmp_path / "data", shape=64, chunks=32, dtype="i4")
    jobs = [(tmp_path / "data", str(tmp_path / "lock"), number) for number in range(2)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_write, jobs) == [0, 1]
    assert omnizarr.open_array(tmp_path / "data")[...].tolist() == list(range(1, 65))


def test_lock_of_dask_is_a_synchronizer():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        store = SynchronizedStore(FaultyStore(MemoryStore({"n": b"0"})), distributed.Lock("n"))
        in_threads(lambda _: [store.update("n", lambda old: b"%d" % (int(old) + 1)) for _ in range(5)], range(4))
        assert store.get("n") == b"20"
        copy = pickle.loads(pickle.dumps(store))
        with copy.lock("n"):
            assert copy.get("n") == b"20"
