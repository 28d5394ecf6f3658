"""The examples that need no data of others run."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, *arguments):
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=120).stdout


def test_cloud_runs_in_a_bucket_in_memory():
    assert "20 blocks by 8 threads, each there once: (480, 5)" in run("cloud.py")


def test_cloud_runs_in_a_directory(tmp_path):
    assert "a mean of 9.5" in run("cloud.py", tmp_path / "buoys.zarr")
