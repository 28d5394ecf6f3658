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
from tests.engine.both import needs_native
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


COLLECTING_AT_THE_END = """
import gc, json, os, sys, threading, time
from collections import Counter
import numpy as np
import omnizarr
from omnizarr.stores import MemoryStore

class Foreign(MemoryStore):  # as it overrides `get`, the engine calls Python for each value
    def get(self, key, span=None):
        return super().get(key, span)

def end():
    sleep = time.sleep  # it is there until the end, as names of modules are not

    class Garbage:
        def __init__(self):
            self.itself = self
        def __del__(self):  # runs in a collection, and lets other threads go on, also the one that ends the program
            Garbage()
            sleep(1e-4)

    array = omnizarr.create_array(Foreign(), data=np.arange(400), chunks=(10,))
    def read():
        while True:
            Garbage()
            array[:], array[3:13]
    for _ in range(8):
        threading.Thread(target=read, daemon=True).start()
    gc.set_threshold(20, 3, 3)  # many collections
    sleep(0.03)
    sys.exit()

omnizarr.create_array(Foreign(), data=np.arange(8), chunks=(2,))[:]  # what is imported late
ends = Counter()
for _ in range(int(sys.argv[1])):
    if not (child := os.fork()):
        end()
    ends[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
print(json.dumps(ends))
"""


@needs_native
def test_program_ends_while_garbage_is_collected():
    """A collection may begin in any call of Python. Half of these ends were aborted while one call had no guard."""
    done = subprocess.run(
        [sys.executable, "-c", COLLECTING_AT_THE_END, str(2 * RUNS)],
        env={**os.environ, "OMNIZARR_ENGINE": "native"},
        capture_output=True,
        text=True,
        timeout=120 + 10 * RUNS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"0": 2 * RUNS}
