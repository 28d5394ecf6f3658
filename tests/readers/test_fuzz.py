"""A small sample of `tests.readers.fuzz`: mutated files give errors of omnizarr, in bounded time."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.readers import fuzz


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_mutated_files_give_errors_of_omnizarr(kind):
    ends = [fuzz.attempt(kind, number) for number in range(60)]
    assert 5 < ends.count("") < 60
    assert len(set(ends)) > 1


# In a process of its own: what the tests before have left in memory would count against the limit of each try.
@pytest.mark.slow
@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_many_mutated_files_give_errors_of_omnizarr(kind):
    command = [sys.executable, "-m", "tests.readers.fuzz", kind, "1000", "--first", "100000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout + done.stderr
