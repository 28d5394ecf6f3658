"""omnizarr passes all cases, with both engines, but those that omnizarr.txt names with a reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PATHS = (HERE.parent / "src", HERE.parents[2] / "src")


def kit(*arguments, **environment):
    """Run the command line with the modules of this tree."""
    path = os.pathsep.join([*map(str, PATHS), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "zarr_conformance", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=500,
    )


ENGINES = pytest.mark.parametrize("engine", ["native", pytest.param("reference", marks=pytest.mark.slow)])


@ENGINES
def test_omnizarr_passes_all_cases(engine, tmp_path):
    if engine == "native":
        pytest.importorskip("omnizarr._native")
    options = ("--levels", "all", "--impl", "omnizarr", "--allow", HERE / "omnizarr.txt", "--timeout", "120")
    done = kit("run", *options, OMNIZARR_ENGINE=engine)
    assert done.returncode == 0, done.stdout + done.stderr


def test_omnizarr_reads_what_other_programs_wrote():
    done = kit(
        "run", "--levels", "corpus-tensorstore,corpus-zarrista,corpus-zarr300", "--impl", "omnizarr", "--timeout", "120"
    )
    assert done.returncode == 0, done.stdout + done.stderr


@ENGINES
def test_omnizarr_reads_random_arrays_as_they_were_written(engine):
    if engine == "native":
        pytest.importorskip("omnizarr._native")
    seed, count = os.environ.get("SEED", "1"), 60 * int(os.environ.get("RUNS", "1"))
    done = kit(
        "random", "--seed", seed, "--count", count, "--impl", "omnizarr", "--timeout", "120", OMNIZARR_ENGINE=engine
    )
    assert done.returncode == 0, done.stdout + done.stderr
