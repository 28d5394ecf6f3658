"""Loaders do not hang: forks, spawned processes, Ctrl-C, loops that are left. `RUNS=1000` runs many rounds."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from omnizarr.settings import engines
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


FAR = {"fork": runs(3), "killed": runs(1), "process-fork": runs(1), "interrupt": runs(3)}

needs_posix = pytest.mark.skipif(os.name != "posix", reason="there is no fork, and there are no such signals, here")


def hang(kind, rounds, *where):
    if kind == "killed" and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    command = [sys.executable, "-W", "ignore", "-m", "tests.data.hanging", kind, str(rounds), *map(str, where)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60 + 3 * rounds, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == f"{kind}: {rounds} rounds"


@needs_posix
@pytest.mark.parametrize("kind", ROUNDS)
def test_a_loader_does_not_hang(kind, tmp_path):
    hang(kind, ROUNDS[kind], tmp_path)


@needs_posix
@pytest.mark.skipif(engines.module() is None, reason="the native engine is not built")
@pytest.mark.parametrize("kind", FAR)
@pytest.mark.parametrize("server", ["http_server", "s3_server"])
def test_a_loader_of_a_server_does_not_hang(server, kind, request, tmp_path):
    pytest.importorskip("obstore", reason="the extra cloud is not installed")
    place = request.getfixturevalue(server).fresh()
    options = [json.dumps(place.options)] if place.directory is None else []
    hang(kind, FAR[kind], place.directory or tmp_path, place.url, *options)
