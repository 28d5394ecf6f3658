"""Tools that are killed at any change of a file: run again, they finish, or say what to do."""

import json
import os
import subprocess
import sys

import pytest

from tests.tools.interrupted import TOOLS

STRIDE = 1 if "RUNS" in os.environ else 6
"""Steps from one kill to the next."""


def steps(name, folder):
    """Return what is right, and what each way to go on did after each kill."""
    command = [sys.executable, "-m", "tests.tools.interrupted", name, str(folder), str(STRIDE)]
    done = subprocess.run(
        command, env={**os.environ, "OMNIZARR_ENGINE": "reference"}, capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    told = json.loads(done.stdout)
    assert told["expected"][0] == "done", told["expected"]
    return told["expected"][1], told["steps"]


def is_temporary(name):
    """Whether ``repair`` removes a file, or the result of the tool names it: what a replacement has left.

    A directory ``.omnizarr-*.new`` holds old values that a killed replacement had put aside: they are no keys.
    """
    last = name.rpartition("/")[2]
    beside = (".omnizarr-new-", ".omnizarr-old-")
    return name.startswith(beside) or (last.startswith(".omnizarr-") and last.endswith((".tmp", ".lock", ".new")))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
@pytest.mark.parametrize("name", TOOLS)
def test_tool_that_was_killed_finishes_when_it_runs_again_or_says_what_to_do(name, tmp_path):
    expected, told = steps(name, tmp_path)
    assert told
    for step in told:
        for way, (kind, state, residue, *error) in step["ways"].items():
            where = f"step {step['step']}, {way or 'again'}: {state} {residue} {error}"
            if kind == "done":
                assert state == expected, where
                assert all(map(is_temporary, residue)), where
            elif state != expected:  # it was not complete
                assert kind == "refused", where
                _, remedy = error
                assert remedy, where
                for option in ("resume", "overwrite"):
                    if f"{option}=True" in remedy:
                        assert step["ways"][option][0] == "done", where
