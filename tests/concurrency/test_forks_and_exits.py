"""Parent and child go on after a fork, and a program ends as it should, whatever threads are doing to a store.

With `RUNS=300` so many forks and ends of each store; a few everywhere else.
"""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.concurrency import places
from tests.repeats import runs

RUNS = runs(10)
NEEDS = {"lmdb": "lmdb", "object": "obstore", "fsspec": "fsspec"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system"),
]


def run(program, kind, folder):
    """Run one of the programs beside; return what it says."""
    if kind in NEEDS and find_spec(NEEDS[kind]) is None:
        pytest.skip(f"{NEEDS[kind]} is not installed")
    command = [sys.executable, "-m", f"tests.concurrency.{program}", kind, str(folder), str(RUNS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 + 10 * RUNS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


# A lock of the user's own is held in a child for ever, if a thread of the parent has it.
@pytest.mark.parametrize("kind", [kind for kind in places.STORES if kind != "synchronized"])
def test_fork_while_threads_work_does_no_harm(kind, tmp_path):
    assert run("forked", kind, tmp_path) == {"forks": RUNS, "failures": []}


@pytest.mark.parametrize("kind", places.STORES)
def test_program_ends_while_daemon_threads_work(kind, tmp_path):
    assert run("exited", kind, tmp_path) == {"exits": RUNS, "failures": []}


FAILING_AT_THE_END = """
import sys, threading, time
from contextlib import suppress
import numpy as np
import omnizarr
from omnizarr.storage import Features, MemoryStore

class Slow:
    def __del__(self):  # runs where the last reference is dropped
        dying.set()
        time.sleep(0.5)

class Failing(MemoryStore):
    features = Features(concurrency=4)
    fails = False
    def get(self, key, span=None):
        if not self.fails or threading.current_thread() is threading.main_thread():
            return super().get(key, span)
        slow = Slow()  # kept by the traceback
        time.sleep(0.05)
        raise OSError("no")

class Last:
    def __init__(self):
        self.sleep = time.sleep
    def __del__(self):  # the interpreter ends, and threads that want it are ended
        self.sleep(1)

dying = threading.Event()
store = Failing()
omnizarr.create_array(store, data=np.arange(100), chunks=(10,))
array = omnizarr.open_array(store)
store.fails = True
def read():
    with suppress(OSError):
        array[:]
threading.Thread(target=read, daemon=True).start()
assert dying.wait(30)
sys.last = Last()
"""


def test_program_ends_while_exceptions_die():
    done = subprocess.run(
        [sys.executable, "-c", FAILING_AT_THE_END], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
