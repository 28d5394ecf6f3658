"""Threads that use something for the first time together: each gets it whole, as modules are imported at first use."""

import json
import os
import subprocess
import sys

import pytest

from tests.concurrency import first_uses


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each use takes place in a fork")
def test_threads_that_use_something_for_the_first_time_together_all_succeed(tmp_path):
    command = [sys.executable, "-m", "tests.concurrency.first_uses", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {"uses": len(first_uses.USES), "failures": []}
