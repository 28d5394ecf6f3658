"""Loaders do not hang: forks, spawned processes, Ctrl-C, loops that are left. `RUNS=1000` runs many rounds."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.repeats import runs

ROUNDS = {
    "fork": runs(10),
    "interrupt": runs(20),
    "leave": runs(10),
    "killed": runs(2),
    "process-fork": runs(3),
    "process-spawn": 1,
    "process-forkserver": 1,
}


@pytest.mark.skipif(os.name != "posix", reason="there is no fork, and there are no such signals, here")
@pytest.mark.parametrize("kind", ROUNDS)
def test_a_loader_does_not_hang(kind, tmp_path):
    if kind == "killed" and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    rounds = ROUNDS[kind]
    command = [sys.executable, "-W", "ignore", "-m", "tests.data.hanging", kind, str(rounds), str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60 + 3 * rounds, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == f"{kind}: {rounds} rounds"
