"""omnizarr passes all cases, with both engines, but those that omnizarr.txt names with a reason; others agree."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from zarr_conformance.running import Run

pytestmark = pytest.mark.rules

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


def test_zarr_python_returns_no_other_values(tmp_path):
    """What two implementations both return is no mistake of the cases. Errors are its own decision."""
    pytest.importorskip("zarr")
    path = tmp_path / "run.json"
    levels = "v2-core,v2-types,v3-core,v3-types,v3-keys,v3-codecs,v3-sharding,v3-selections"
    kit("run", "--levels", levels, "--impl", "zarr-python", "--json", path, "--timeout", "120")
    results = Run.read(path).results
    assert len(results) > 300
    assert [(each.id, each.detail) for each in results if each.outcome not in {"pass", "refused", "unsupported"}] == []
    assert sum(each.outcome == "pass" for each in results) > 300
