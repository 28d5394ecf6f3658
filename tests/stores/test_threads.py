"""A child that is forked while a thread of its parent holds a lock does not wait for that thread."""

import asyncio
import io
import os
import re
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import omnizarr
from omnizarr.errors import StoreError
from omnizarr.stores import MemoryStore, MetricsStore, ZipStore, threads, verbs
from omnizarr.stores.remote import deadlines
from tests.fakes import FaultyStore

SOURCE = Path(omnizarr.__file__).parent
LOCKS = {
    "settings/__init__.py": "forgotten in a child",
    "data/batches.py": "the loop that has begun takes it with it; a child's loops make their own",
    "data/keeping.py": "of one loop, taken by its own threads, which a child does not have; to go on there is an error",
    "data/loader.py": "the same",
    "data/whole.py": "the same",
    "engine/cache.py": "threads wait for it for some milliseconds at most",
    "nodes/copying.py": "of one copy; a child does not go on with the copies of its parent",
    "netcdf/records.py": "of a session; a child makes its own",
    "nodes/writer.py": "a child makes its own for its writers",
    "netcdf/session.py": "a child makes its own for its records",
    "stores/local/archive.py": "a child may not write, and gets the error before it reaches the lock",
    "stores/fork_locks.py": "each gate is closed before a fork, and opened after it",
    "stores/database/lmdb.py": "made again in a child",
    "stores/pool.py": "of one call; a child does not go on with the calls of its parent",
    "stores/threads.py": "forgotten in a child",
    "support/progress.py": "of one call; a child does not go on with it, nor draw its bar",
    "support/workers.py": "made again in a child",
    "tools/streaming/chunks.py": "of one reading of an array; a child makes its own",
    "web/members.py": "of one server; a child does not go on with the requests of its parent",
    "tools/streaming/executors.py": "of one conversion, or of a worker of a cluster",
    "web/facts.py": "of one server; a child does not answer its requests",
    "web/search.py": "of one server; a child does not answer its requests",
    "web/viewing.py": "of one server; a child does not answer its requests",
}
"""Where locks of `threading` are made, and why a fork does no harm. All else locks names (`threads.lock`)."""

pytestmark = [
    pytest.mark.rules,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def in_child(work: Callable[[], object]) -> int:
    """Call `work` in a child; return how that ended: 0 well, 1 with an error, -14 killed as it hung."""
    child = os.fork()
    if not child:
        signal.alarm(10)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def held_meanwhile(lock: AbstractContextManager[object], task: Callable[[], int]) -> int:
    """Call `task` while another thread holds a lock."""
    has_it, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            has_it.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    has_it.wait()
    try:
        return task()
    finally:
        done.set()
        thread.join()


def test_child_takes_a_lock_that_a_thread_of_the_parent_holds():
    def enter() -> None:
        with threads.lock("a"):
            pass

    assert held_meanwhile(threads.lock("a"), lambda: in_child(enter)) == 0


def test_child_counts_requests():
    store = MetricsStore(MemoryStore({"a": b"1"}))
    assert held_meanwhile(store._counted.guard, lambda: in_child(lambda: store.get("a"))) == 0


def test_child_has_its_faults():
    store = FaultyStore(MemoryStore({"a": b"1"}))
    assert held_meanwhile(store._guard, lambda: in_child(lambda: store.get("a"))) == 0


def test_child_is_reported_that_it_may_not_write_an_archive():
    store = ZipStore(io.BytesIO(), mode="w")
    store.set("a", b"1")

    def write() -> None:
        for verb in (
            lambda: store.set("b", b""),
            lambda: verbs.set_if_absent(store, "c", b""),
            lambda: store.delete("a"),
        ):
            with pytest.raises(StoreError, match="another process"):
                verb()

    assert held_meanwhile(store._archive._lock, lambda: in_child(write)) == 0
    store.close()


def test_child_has_deadlines_of_its_own_and_the_parent_keeps_its():
    def ask() -> None:
        assert deadlines.within(5, lambda: asyncio.sleep(0, "done")) == "done"

    ask()
    assert in_child(ask) == 0
    ask()


makes_lock = re.compile(
    r"^(?!.*>>>).*(\bRLock\(\)|default_factory=RLock|threading\.(Lock|Condition|Semaphore|Event)\(\))", re.MULTILINE
).search
takes_of_threading = re.compile(r"^(?!.*>>>)(?!.*type\(threading).*threading\.R?Lock\(\)", re.MULTILINE).search


def test_every_lock_is_known():
    made = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if makes_lock(path.read_text("utf-8"))}
    assert made - {"support/locks.py"} == set(LOCKS)


def test_no_lock_is_left_held_by_an_interrupt_on_entering():
    found = [path for path in SOURCE.rglob("*.py") if takes_of_threading(path.read_text("utf-8"))]
    assert found == [], "use omnizarr.support.locks.RLock"
