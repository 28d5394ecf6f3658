"""Ctrl-C while threads start: no thread is lost or goes on, and the program ends, wherever it comes in between.

With `RUNS=0` at each place; `RUNS=30` at 30 of each verb.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.concurrency import starting
from tests.repeats import runs

RUNS = str(runs(5))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each interrupt takes place in a fork")
@pytest.mark.parametrize("verb", starting.CASES)
def test_verb_that_is_interrupted_while_it_starts_threads_leaves_none_at_work(verb):
    command = [sys.executable, "-m", "tests.concurrency.starting", verb, RUNS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["failures"] == []
    assert found["interrupts"]
