"""Rechunk one array with several libraries, in the same memory: seconds, CPU time, and peak of memory.

Usage: ``python -m benchmarks.rechunking [--megabytes 256 1024] [--memory 64] [--python PATH] [--directory PATH]
[--docs]``. An array of Zarr v2 in chunks of whole planes is written in chunks that reach through all planes. Each
library works in a process of its own; ``--python`` is an interpreter that has those that this one lacks. rechunker gets
half of the memory for each of two threads; dask's p2p has no such limit. TensorStore has no such operation: it copies
blocks of whole target chunks that fit in the memory, and so reads the source many times.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

import omnizarr
from benchmarks import reports, running, scripts

BEGIN, END = "<!-- rechunking: begin -->", "<!-- rechunking: end -->"
SIDE: Final = 512
_OURS: Final = """
import omnizarr
omnizarr.rechunk(source, target, chunks=chunks, max_memory=memory, verify={verify})
"""
LIBRARIES: Final = {
    "omnizarr": _OURS.format(verify=False),
    "omnizarr, verified": _OURS.format(verify=True),
    "rechunker": """
import dask, rechunker, zarr
dask.config.set(scheduler="threads", num_workers=2)
plan = rechunker.rechunk(zarr.open(source, mode="r"), chunks, memory // 2, target, temp_store=target + ".temporary")
plan.execute()
""",
    "dask, p2p": """
import dask, dask.array, distributed, zarr
dask.config.set({"temporary-directory": target + ".temporary"})
with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None):
    array = dask.array.from_zarr(zarr.open(source, mode="r"))
    array = array.rechunk(chunks, method="p2p")
    dask.array.to_zarr(array, zarr.open(target, mode="w", shape=array.shape, chunks=chunks, dtype=array.dtype))
""",
    "TensorStore": """
import itertools, numpy, tensorstore
def spec(path): return {"driver": "zarr", "kvstore": {"driver": "file", "path": path, "file_io_sync": False}}
old = tensorstore.open(spec(source)).result()
new = tensorstore.open(spec(target), create=True, dtype=old.dtype, shape=old.shape,
    chunk_layout=tensorstore.ChunkLayout(chunk_shape=chunks)).result()
step = list(chunks)
for axis in (2, 1):
    room = memory // (numpy.prod(step) * 4)
    step[axis] = min(old.shape[axis], step[axis] * max(1, room))
for at in itertools.product(*(range(0, n, s) for n, s in zip(old.shape, step))):
    part = tuple(slice(a, min(a + s, n)) for a, s, n in zip(at, step, old.shape))
    new[part].write(old[part].read().result()).result()
""",
}
_ARGUMENTS: Final = """
source, target, chunks, memory = sys.argv[1], sys.argv[2], tuple(json.loads(sys.argv[3])), int(sys.argv[4])
"""


def make(path: Path, megabytes: int) -> tuple[int, ...]:
    """Write the source, and return the shape of the chunks that are wanted."""
    planes = max(4, megabytes * 2**20 // (SIDE * SIDE * 4))
    array = omnizarr.create_array(
        path, shape=(planes, SIDE, SIDE), chunks=(2, SIDE, SIDE), dtype="f4", zarr_format=2,
        compressors={"id": "zstd", "level": 1},
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for plane in range(0, planes, 2):
        array[plane : plane + 2] = (rng.normal(0, 10, (2, SIDE, SIDE)) + plane).round(1)
    return (planes, 16, 16)


def measure(library: str, python: str, source: Path, target: Path, chunks: Any, memory: int) -> dict[str, float] | str:
    """Return what rechunking took, or why it did not work."""
    arguments = [str(source), str(target), json.dumps(chunks), str(memory)]
    found = scripts.measure(python, _ARGUMENTS + LIBRARIES[library], arguments)
    if isinstance(found, str):
        return found
    if not np.array_equal(
        omnizarr.open_array(target, mode="r")[::7, ::5, :9], omnizarr.open_array(source)[::7, ::5, :9]
    ):
        return "other values"
    return found


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rechunking", description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[256, 1024], help="sizes of the array")
    parser.add_argument("--memory", type=int, default=64, help="MiB that elements may take")
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has rechunker, dask, TensorStore")
    parser.add_argument("--directory", type=Path, help="where to make files; default: a temporary directory")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/benchmarks.md")
    options = parser.parse_args()
    lines = ["| | " + " | ".join(f"{size:,} MiB" for size in options.megabytes) + " |"]
    lines.append("|---|" + "--:|" * len(options.megabytes))
    cells: dict[str, list[str]] = {library: [] for library in options.only}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as folder:
        about = running.about(Path(folder))
        for size in options.megabytes:
            source = Path(folder) / f"{size}.zarr"
            chunks = make(source, size)
            for library in options.only:
                target = Path(folder) / "target.zarr"
                python = sys.executable if library.startswith("omnizarr") else options.python
                found = measure(library, python, source, target, chunks, options.memory * 2**20)
                cells[library].append(scripts.cell(found))
                print(f"{size:>6} MiB  {library:<20}{cells[library][-1]}", flush=True)
                for path in (target, Path(f"{target}.temporary")):
                    shutil.rmtree(path, ignore_errors=True)
            shutil.rmtree(source)
    lines += [f"| {library} | {' | '.join(row)} |" for library, row in cells.items()]
    measured = (
        f"Measured {about['date']} on {about['processor']}, {about['file system']}, CPython {about['python']}, load "
        f"{load:.1f} before it began: from (2, {SIDE}, {SIDE}) to (all, 16, 16), 32-bit floats, zstd, in "
        f"{options.memory} MiB. Peaks are of the whole process, with the libraries that it has loaded."
    )
    text = "\n".join([measured, "", *lines, ""])
    print(text)
    if options.docs:
        reports.into_page(running.ROOT / "docs" / "benchmarks.md", text, BEGIN, END)


if __name__ == "__main__":
    main()
