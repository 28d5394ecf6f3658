"""What holds for every store in a database: its tests inherit `DatabaseContract`."""

import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import StoreClosedError, StoreError
from omnizarr.stores import resolve, verbs

METHODS = ["spawn", "fork"] if hasattr(os, "fork") else ["spawn"]
# Many with `RUNS` in the environment; a few everywhere else, as each takes a while to start.
PROCESSES, KILLED = (4, 20) if "RUNS" in os.environ else (2, 3)
DATA = Path(__file__).parents[1] / "data"


def run(kind, code, *arguments):
    """Start another process, which knows a class of stores by its name."""
    code = (
        f"import sys\nfrom omnizarr.stores import verbs\nfrom {kind.__module__} import {kind.__name__}\n"
        + textwrap.dedent(code)
    )
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE)


def increment(make, path, times):
    with make(path) as store:
        for number in range(times):
            store.update("n", lambda old: b"%d" % (int(old or 0) + 1))
            store.set(f"{os.getpid()}/{number}", bytes(5000))


def fill_columns(array, part):
    for column in range(part, array.shape[1], 4):
        array[:, column] = column


def finish(processes):
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0


class DatabaseContract:
    """Tests of a store in a database."""

    kind: type
    """The class."""
    options: ClassVar[dict]
    """Options of a URL."""

    def make_small(self):
        """What opens a database that has to grow soon."""
        return self.kind

    def check(self, path):
        """Assert that the database is whole; no process has it open."""

    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / f"data.{self.kind.kind}"

    @pytest.fixture
    def store(self, path):
        with self.kind(path) as store:
            yield store

    def test_looking_creates_nothing(self, tmp_path):
        store = self.kind(tmp_path / "folder" / "data")
        assert store.get("a") is None
        assert store.get("a", (0, 1)) is None
        assert verbs.get_spans(store, "a", [(0, 1)]) is None
        assert verbs.read_into(store, "a", memoryview(bytearray(1))) is None
        assert verbs.get_stamped(store, "a") == (None, None)
        assert verbs.pinned(store, "a") is None
        assert list(store.list()) == []
        assert store.list_dir("") == ([], [])
        store.delete("a")
        verbs.delete_prefix(store, "")
        verbs.set_many(store, [])
        assert list(tmp_path.iterdir()) == []

    def test_listing_goes_page_by_page(self, store, monkeypatch):
        monkeypatch.setattr(import_module(self.kind.__module__), "PAGE", 7)
        keys = sorted([f"a/{i}" for i in range(50)] + ["a/" + "k" * 509])
        verbs.set_many(store, ((key, b"") for key in keys))
        assert list(store.list()) == keys
        assert list(store.list_prefix("a/")) == keys

    def test_list_dir_of_names_that_sort_around_the_slash(self, store):
        keys = ["a", "a-b", "a.b/c", "a/b", "a/c/d", "a0", "a0/x", "aä/b", "b/c", "b0", "b\U0010ffff/c", "b\U0010ffff"]
        verbs.set_many(store, ((key, b"") for key in keys))
        assert store.list_dir("") == (
            sorted(key for key in keys if "/" not in key),
            sorted({key.partition("/")[0] + "/" for key in keys if "/" in key}),
        )
        assert store.list_dir("a/") == (["a/b"], ["a/c/"])

    # -- several writers

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    def test_processes_begin_a_database_and_count_together(self, path, method):
        context = multiprocessing.get_context(method)
        arguments = (self.make_small(), path, 25)
        finish([context.Process(target=increment, args=arguments) for _ in range(PROCESSES)])
        with self.kind(path) as store:
            assert store.get("n") == b"%d" % (25 * PROCESSES)
            assert len(list(store.list())) == 25 * PROCESSES + 1

    @pytest.mark.parametrize("sharded", [False, True])
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    def test_processes_that_write_parts_of_the_same_chunks_lose_nothing(self, store, sharded):
        chunks = {"chunks": (8, 4), "shards": (16, 16)} if sharded else {"chunks": (16, 16)}
        array = omnizarr.create_array(store, shape=(32, 32), dtype="int32", **chunks)
        context = multiprocessing.get_context(METHODS[-1])
        finish([context.Process(target=fill_columns, args=(array, part)) for part in range(4)])
        np.testing.assert_array_equal(array[...], np.tile(np.arange(32, dtype="int32"), (32, 1)))

    @pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
    def test_killed_writer_leaves_old_or_new_values_and_no_lock(self, path):
        code = f"""
            store = {self.kind.__name__}(sys.argv[1])
            print(flush=True)
            n = 0
            while True:
                n = n % 100 + 1
                with store.lock("0"):
                    verbs.set_many(store, ((f"{{i}}", bytes([n]) * 50_000) for i in range(3)))
        """
        with self.kind(path) as store:
            verbs.set_many(store, ((f"{i}", bytes(50_000)) for i in range(3)))
            choose = random.Random(0)
            for _ in range(KILLED):
                process = run(self.kind, code, path)
                process.stdout.readline()
                time.sleep(choose.random() * 0.05)
                process.send_signal(signal.SIGKILL)
                process.communicate()
                with store.lock("0"):
                    values = {store.get(f"{i}") for i in range(3)}
                    assert len(values) == 1
                    assert len(set(values.pop())) == 1
                    store.set("1", store.get("0"))
        self.check(path)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    def test_store_serves_parent_and_forked_child_while_threads_use_it(self, path):
        with self.kind(path) as store:
            store.set("a", b"1")
            stop = threading.Event()

            def work(number):
                while not stop.is_set():
                    store.set(f"thread/{number}", b"x" * 1000)
                    assert store.get("a") == b"1"

            threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
            for thread in threads:
                thread.start()
            children = []
            for number in range(4):
                child = os.fork()
                if child == 0:
                    code = 1
                    try:
                        assert store.get("a") == b"1"
                        for turn in range(10):
                            store.set(f"child/{number}/{turn}", b"2")
                        code = 0
                    finally:
                        os._exit(code)
                children.append(child)
            codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
            stop.set()
            for thread in threads:
                thread.join()
            assert codes == [0] * 4
            assert len(list(store.list_prefix("child/"))) == 40
        self.check(path)

    # -- the store itself

    def test_closed_store_says_so_and_others_go_on(self, path):
        store = self.kind(path)
        store.set("a", b"1")
        view = store.with_read_only()
        store.close()
        for verb in (
            lambda: store.get("a"),
            lambda: store.set("a", b""),
            lambda: store.delete("a"),
            lambda: list(store.list()),
        ):
            with pytest.raises(StoreClosedError):
                verb()
        assert view.get("a") == b"1"
        view.close()
        assert list(path.parent.iterdir()) == [path]
        self.check(path)

    def test_stores_of_one_path_are_equal_also_after_pickling(self, path, store):
        assert store == self.kind(str(path)) == pickle.loads(pickle.dumps(store))
        assert store != store.with_read_only()
        assert store.origin() == store.with_read_only().origin()

    @pytest.mark.parametrize("url", ["{}://{}", "{}://localhost{}"])
    @pytest.mark.parametrize("is_upper", [False, True])
    def test_url_is_a_store(self, path, url, is_upper):
        scheme = self.kind.kind.upper() if is_upper else self.kind.kind
        store, inner = resolve(url.format(scheme, path), "a", self.options)
        assert (store, inner) == (self.kind(path), "")
        assert {name: getattr(store, name) for name in self.options} == self.options
        assert resolve(url.format(scheme, path), "r", {})[0].read_only

    @pytest.mark.parametrize("rest", ["//host/a", "///", "///a?b=c", "///a#b"])
    def test_url_with_what_a_database_has_not_is_refused(self, rest):
        with pytest.raises(StoreError, match="URL"):
            resolve(f"{self.kind.kind}:{rest}", "r", {})

    def test_unknown_option_is_refused(self):
        with pytest.raises(StoreError, match="options") as caught:
            resolve(f"{self.kind.kind}:///a", "r", {"token": "secret"})
        assert "secret" not in str(caught.value)


def check_array_of_zarr_python_2(store):
    """See data/README.md."""
    group = omnizarr.open_group(store, mode="r+")
    assert dict(group.attrs) == {"written by": "zarr-python 2.18.7"}
    np.testing.assert_array_equal(group["a"][...], np.arange(20, dtype="<i4").reshape(4, 5))
    group["a"][1, 1:4] = -1
    assert list(group["a"][1]) == [5, -1, -1, -1, 9]
