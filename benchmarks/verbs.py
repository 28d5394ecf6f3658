"""Compare, digest and count an array, and do the same with other tools: seconds, CPU time, and peak of memory.

Usage: ``python -m benchmarks.verbs [--megabytes 1024] [--whole 1024] [--python PATH] [--directory PATH] [--docs]``. An
array of Zarr v2 is there three times: unchanged, copied byte by byte, and converted to v3 in other chunks. Each tool
works in a process of its own; ``--python`` is an interpreter that has those that this one lacks. Tools that hold the
whole array in memory are run up to ``--whole`` megabytes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

import omnizarr
from benchmarks import reports, running, scripts

BEGIN, END = "<!-- verbs: begin -->", "<!-- verbs: end -->"
SIDE: Final = 512


class Tool(NamedTuple):
    """What does a job, as lines of Python that return what is found; the places are in ``sys.argv``."""

    lines: str
    is_ours: bool = False
    holds_all: bool = False


_DASK: Final = """
import dask, dask.array
dask.config.set(scheduler="threads", num_workers=2)
"""
JOBS: Final = {
    "equal, a copy of the files": {
        "omnizarr.diff": Tool("import omnizarr\nreturn omnizarr.diff(sys.argv[1], sys.argv[2]).equal", is_ours=True),
        "diff -r": Tool("import subprocess\nreturn subprocess.run(['diff', '-rq', *sys.argv[1:3]]).returncode == 0"),
    },
    "equal, another format and other chunks": {
        "omnizarr.diff": Tool("import omnizarr\nreturn omnizarr.diff(sys.argv[1], sys.argv[3]).equal", is_ours=True),
        "dask": Tool(
            _DASK + "one, other = (dask.array.from_zarr(path) for path in (sys.argv[1], sys.argv[3]))\n"
            "same = (one == other) | (dask.array.isnan(one) & dask.array.isnan(other))\n"
            "return bool(same.all().compute())"
        ),
        "xarray, equals": Tool(
            _DASK + "import xarray, zarr\n"
            "def opened(path): return xarray.DataArray(dask.array.from_zarr(path))\n"
            "return bool(opened(sys.argv[1]).equals(opened(sys.argv[3])))"
        ),
        "zarr-python, NumPy": Tool(
            "import zarr\none, other = (zarr.open_array(path, mode='r')[...] for path in (sys.argv[1], sys.argv[3]))\n"
            "return bool(numpy.array_equal(one, other, equal_nan=True))",
            holds_all=True,
        ),
    },
    "digest": {
        "omnizarr.digest": Tool("import omnizarr\nreturn bool(omnizarr.digest(sys.argv[1]).digest)", is_ours=True),
        "omnizarr.digest, blake3": Tool(
            "import omnizarr\nreturn bool(omnizarr.digest(sys.argv[1], algorithm='blake3').digest)", is_ours=True
        ),
        "zarr-python, SHA-256": Tool(
            "import hashlib, zarr\nvalues = zarr.open_array(sys.argv[1], mode='r')[...]\n"
            "return bool(hashlib.sha256(values).hexdigest())",
            holds_all=True,
        ),
    },
    "digest of stored bytes": {
        "omnizarr.digest_of_bytes": Tool(
            "import omnizarr\nreturn bool(omnizarr.digest_of_bytes(sys.argv[1]))", is_ours=True
        ),
        "zarrsum": Tool(
            "import subprocess, pathlib\nprogram = pathlib.Path(sys.executable).with_name('zarrsum')\n"
            "done = subprocess.run([program, 'local', sys.argv[1]], capture_output=True, check=True)\n"
            "return done.returncode == 0"
        ),
        "sha256sum": Tool(
            "import subprocess\nline = f'find {sys.argv[1]} -type f -print0 | xargs -0 sha256sum'\n"
            "return subprocess.run(line, shell=True, stdout=subprocess.DEVNULL).returncode == 0"
        ),
    },
    "minimum, maximum, mean, standard deviation": {
        "omnizarr.stat": Tool(
            "import omnizarr\nfound = omnizarr.stat(sys.argv[1])[0]\n"
            "return bool(found.minimum < found.mean < found.maximum)",
            is_ours=True,
        ),
        "dask": Tool(
            _DASK + "array = dask.array.from_zarr(sys.argv[1])\n"
            "low, high, mean, _ = dask.compute(array.min(), array.max(), array.mean(), array.std())\n"
            "return bool(low < mean < high)"
        ),
        "zarr-python, NumPy": Tool(
            "import zarr\nvalues = zarr.open_array(sys.argv[1], mode='r')[...]\n"
            "low, high, mean, _ = values.min(), values.max(), values.mean(dtype='f8'), values.std(dtype='f8')\n"
            "return bool(low < mean < high)",
            holds_all=True,
        ),
    },
}


def make(folder: Path, megabytes: int) -> list[Path]:
    """Write the array, its copy, and what is converted of it."""
    one, copy, other = (folder / name for name in ("one.zarr", "copy.zarr", "other.zarr"))
    planes = max(4, megabytes * 2**20 // (SIDE * SIDE * 4))
    array = omnizarr.create_array(
        one, shape=(planes, SIDE, SIDE), chunks=(2, SIDE, SIDE), dtype="f4", zarr_format=2,
        compressors={"id": "zstd", "level": 1},
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for plane in range(0, planes, 2):
        array[plane : plane + 2] = (rng.normal(0, 10, (2, SIDE, SIDE)) + plane).round(1)
    shutil.copytree(one, copy)
    omnizarr.rechunk(one, other, chunks=(16, 128, 128), zarr_format=3, verify=False)
    return [one, copy, other]


def measure(tool: Tool, python: str, places: list[Path]) -> dict[str, float] | str:
    """Return what a tool took, or why it did not work."""
    measured = scripts.measure(sys.executable if tool.is_ours else python, tool.lines, [str(path) for path in places])
    return measured if isinstance(measured, str) or measured["found"] else "a wrong answer"


def measured_in_words(tool: Tool, python: str, places: list[Path]) -> str:
    """Return the result as a row of the table."""
    return scripts.cell(measure(tool, python, places))


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verbs", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024, help="size of the array")
    parser.add_argument("--whole", type=int, default=1024, help="up to this size for tools that hold all in memory")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has zarr-python, dask, zarrsum")
    parser.add_argument("--directory", type=Path, help="where to make files; default: a temporary directory")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/benchmarks-data.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    lines = ["| | | seconds, CPU time, peak of memory |", "|---|---|--:|"]
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as folder:
        about = running.about(Path(folder))
        places = make(Path(folder), options.megabytes)
        for job, tools in JOBS.items():
            for name, tool in tools.items():
                is_too_large = tool.holds_all and options.megabytes > options.whole
                told = (
                    "not run: holds all in memory" if is_too_large else measured_in_words(tool, options.python, places)
                )
                print(f"{job:<44}{name:<26}{told}", flush=True)
                lines.append(f"| {job if tool is next(iter(tools.values())) else ''} | {name} | {told} |")
    measured = (
        f"Measured {about['date']} on {about['processor']}, {about['file system']}, CPython {about['python']}, "
        f"load {load:.1f} before it began: {options.megabytes:,} MiB of 32-bit floats, zstd, in chunks of "
        f"(2, {SIDE}, {SIDE}); in other chunks: (16, 128, 128). Peaks are of the whole process, "
        "with the libraries that it has loaded."
    )
    text = "\n".join([measured, "", *lines, ""])
    print(text)
    if options.docs:
        reports.into_page(reports.PAGE, text, BEGIN, END)


if __name__ == "__main__":
    main()
