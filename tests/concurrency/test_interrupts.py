"""After a Ctrl-C, wherever it comes in between, a store works on: nothing is locked, left open or left behind.

With `RUNS=300` so many interrupts of each verb of each store; a few everywhere else, where
`tests/stores/test_interrupts.py` goes through every place of the modules under the stores.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.concurrency import places
from tests.repeats import runs

RUNS = runs(3)
NEEDS = {"lmdb": "lmdb", "object": "obstore", "fsspec": "fsspec"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors as Linux shows them"),
]


@pytest.mark.parametrize("kind", places.STORES)
def test_store_works_after_each_verb_was_interrupted(kind, tmp_path):
    if kind in NEEDS and find_spec(NEEDS[kind]) is None:
        pytest.skip(f"{NEEDS[kind]} is not installed")
    command = [sys.executable, "-m", "tests.concurrency.interrupted", kind, str(tmp_path), str(RUNS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 + 30 * RUNS, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["failures"] == []
    assert list(found["interrupts"]) == list(places.READS if kind == "references" else places.VERBS)
    assert all(found["interrupts"].values())
