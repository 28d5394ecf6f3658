"""The modules under the stores release everything, wherever a Ctrl-C comes in between: at each place there is one."""

import _thread
import contextlib
import functools
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from omnizarr import ChunkCache
from omnizarr.stores import LMDBStore, LocalStore, MemoryStore, SQLiteStore, SynchronizedStore, threads, verbs
from omnizarr.stores.fork_locks import Gate
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.local import filelocks
from tests.concurrency.interruptions import Interrupter
from tests.stores.contract import in_threads
from tests.traced import opened_below

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors as Linux shows them")


@pytest.fixture
def interrupter():
    interrupter = Interrupter()
    yield interrupter
    interrupter.close()


def at_each_place(interrupter, task, check):
    """Interrupt `task` at its first place, at its second, and so on; call `check` each time, in another thread."""
    at, interrupt = 0, True
    while interrupt is not None:
        at += 1
        interrupt = interrupter(task, at)  # kept while the check runs, with its traceback, as by a prompt
        in_threads(lambda _: check(), [0])
    assert at > 2
    return at


@functools.cache
def watch_files():
    """Have a function called before files are opened, linked and removed, for good: one more place each."""
    sys.addaudithook(lambda *_: None)


# -- what holds something ------------------------------------------------------------


def enter(manager):
    with manager():
        pass


@pytest.mark.parametrize("name", ["a", ("b", 1)])
def test_named_lock_is_free_again(interrupter, name):
    at_each_place(interrupter, lambda: enter(lambda: threads.lock(name)), lambda: enter(lambda: threads.lock(name)))


def test_gate_is_open_again(interrupter):
    gate = Gate(lambda: None, lambda: None)
    alone = []

    def check():
        alone.append(gate.alone(bool, 5))

    at_each_place(interrupter, lambda: enter(gate.enter), check)
    at_each_place(interrupter, lambda: gate.alone(bool), check)
    assert all(alone)


def test_gate_is_open_again_after_a_thread_came_the_first_time(interrupter):
    gates = [Gate(lambda: None, lambda: None)]

    def task():
        gates.append(Gate(lambda: None, lambda: None))
        enter(gates[-1].enter)

    at_each_place(interrupter, task, lambda: [gate.alone(bool, 5) for gate in gates])


@needs_proc
def test_lock_file_is_free_again_and_gone(interrupter, tmp_path):
    path = tmp_path / "a.lock"

    def take():
        return filelocks.lock(str(path), lambda: None)

    def check():
        enter(take)
        assert not path.exists()
        assert not filelocks._descriptors

    enter(take)
    at_each_place(interrupter, lambda: enter(take), check)
    assert opened_below(tmp_path) == []
    assert not filelocks.is_held()


@needs_proc
def test_lock_file_that_somebody_else_holds_is_left_to_him(tmp_path, monkeypatch):
    path = tmp_path / "a.lock"
    held, leave = threading.Event(), threading.Event()

    def hold():
        with filelocks.lock(str(path), lambda: None):
            held.set()
            leave.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(60)
    before, number = opened_below(tmp_path), path.stat().st_ino
    lock_file = filelocks._lock_file

    def wait(descriptor):  # it is certain to wait when the signal comes
        _thread.interrupt_main()
        lock_file(descriptor)

    monkeypatch.setattr(filelocks, "_lock_file", wait)
    with pytest.raises(KeyboardInterrupt):
        enter(lambda: filelocks.lock(str(path), lambda: None))
    assert path.stat().st_ino == number
    assert opened_below(tmp_path) == before
    leave.set()
    holder.join(60)
    assert not path.exists()


@pytest.mark.parametrize("kind", [MemoryStore, LocalStore, SQLiteStore, LMDBStore])
def test_lock_of_a_store_is_free_again(interrupter, kind, tmp_path):
    if kind is LMDBStore:
        pytest.importorskip("lmdb", reason="lmdb is not installed")
    store = kind() if kind is MemoryStore else kind(tmp_path / "a")
    at_each_place(interrupter, lambda: enter(lambda: store.lock("k")), lambda: enter(lambda: store.lock("k")))
    store.close()


def test_lock_of_the_user_is_free_again_and_taken_again(interrupter):
    own = threading.Lock()
    store = SynchronizedStore(MemoryStore(), own)

    def check():
        assert not own.locked()
        with store.lock("k"):
            assert own.locked()

    at_each_place(interrupter, lambda: enter(lambda: store.lock("k")), check)


# -- context managers ----------------------------------------------------------------


def test_generator_of_a_manager_has_ended_whatever_came_in_between(interrupter):
    held = []

    @contextmanager
    def hold():
        number = len(held)
        try:
            held.append(True)
            yield
        finally:
            held[number:] = [False]  # one act, as it begins

    at_each_place(interrupter, lambda: enter(hold), lambda: [].append(any(held)))
    assert held
    assert not any(held)


def test_manager_does_what_that_of_contextlib_does():
    seen = []

    def body(name):
        try:
            yield name
        except KeyError as error:
            seen.append(error.args)
        finally:
            seen.append(name)

    for make in (contextlib.contextmanager(body), contextmanager(body)):
        seen.clear()
        with make("a") as name:
            assert name == "a"
        with make("b"):
            raise KeyError("k")
        error = ValueError("v")
        with pytest.raises(ValueError, match="v") as raised, make("c"):
            raise error
        assert raised.value is error
        with contextlib.ExitStack() as stack:
            assert stack.enter_context(make("d")) == "d"
        assert seen == ["a", ("k",), "b", "c", "d"]


@pytest.mark.parametrize("numbers", [(), (1, 2)])
def test_generator_that_does_not_yield_once_is_refused(numbers):
    @contextmanager
    def hold():
        yield from numbers

    with pytest.raises((RuntimeError, StopIteration)), hold():
        pass


# -- stores --------------------------------------------------------------------------


@needs_proc
@pytest.mark.parametrize("verb", ["get", "set", "set_partial", "read_into", "get_spans", "stamp", "set_if_absent"])
def test_no_descriptor_of_a_directory_stays_open(interrupter, verb, tmp_path):
    store = LocalStore(tmp_path)
    store.set("a/k", b"abc")
    arguments = {
        "get": ("a/k",),
        "set": ("a/k", b"abc"),
        "set_partial": ("a/k", 1, b"b"),
        "read_into": ("a/k", memoryview(bytearray(3))),
        "get_spans": ("a/k", [(0, 1), (1, 2)]),
        "stamp": ("a/k",),
        "set_if_absent": ("a/k", b"abc"),
    }[verb]

    def check():
        assert store.get("a/k") == b"abc"

    watch_files()
    at_each_place(interrupter, lambda: getattr(verbs, verb)(store, *arguments), check)
    assert opened_below(tmp_path) == []
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "k"]


def test_cache_of_decoded_chunks_keeps_on_keeping(interrupter):
    cache = ChunkCache(1000)

    def task():
        cache.put((1, 0), "stamp", np.zeros(3))
        cache.get((1, 0), "stamp")

    def check():
        cache.put((1, 1), "stamp", np.ones(3))
        assert cache.get((1, 1), "stamp").tolist() == [1, 1, 1]

    at_each_place(interrupter, task, check)
