"""Rechunk one array with several libraries, in the same memory: seconds, CPU time, and peak of memory.

Usage: ``python -m benchmarks.rechunking [--megabytes 256 1024] [--memory 64] [--s3] [--python PATH] [--directory PATH]
[--docs]``. An array of Zarr v2 in chunks of whole planes is written in chunks that reach through all planes. Each
library works in a process of its own; ``--python`` is an interpreter that has those that this one lacks. rechunker gets
half of the memory for each of two threads; dask's p2p has no such limit. TensorStore has no such operation: it copies
blocks of whole target chunks that fit in the memory, and so reads the source many times.

With ``--s3``, source, target and temporary objects are in a bucket behind a server that takes 20 ms per request
(`benchmarks.delayed`). rechunker and dask reach it with s3fs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

import omnizarr
from benchmarks import reports, running, scripts

MARKS: Final = {
    False: ("<!-- rechunking: begin -->", "<!-- rechunking: end -->"),
    True: ("<!-- rechunking on S3: begin -->", "<!-- rechunking on S3: end -->"),
}
SIDE: Final = 512
LATENCY: Final = 0.02
"""Seconds that a request to the bucket takes."""
_OURS: Final = """
import omnizarr
omnizarr.rechunk(source, target, chunks=chunks, max_memory=memory, verify={verify}, storage_options=options)
"""
_MAPPED: Final = """
import fsspec
def mapped(place):
    if options is None:
        return place
    return fsspec.get_mapper(place, key=options["access_key_id"], secret=options["secret_access_key"],
        client_kwargs={"endpoint_url": options["endpoint"], "region_name": options["region"]})
"""
LIBRARIES: Final = {
    "omnizarr": _OURS.format(verify=False),
    "omnizarr, verified": _OURS.format(verify=True),
    "rechunker": _MAPPED
    + """
import dask, rechunker, zarr
dask.config.set(scheduler="threads", num_workers=2)
plan = rechunker.rechunk(zarr.open(mapped(source), mode="r"), chunks, memory // 2, mapped(target),
    temp_store=mapped(target + ".temporary"))
plan.execute()
""",
    "dask, p2p": _MAPPED
    + """
import dask, dask.array, distributed, zarr
dask.config.set({"temporary-directory": folder})
with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None):
    array = dask.array.from_zarr(zarr.open(mapped(source), mode="r"))
    array = array.rechunk(chunks, method="p2p")
    dask.array.to_zarr(array, zarr.open(mapped(target), mode="w", shape=array.shape, chunks=chunks, dtype=array.dtype))
""",
    "TensorStore": """
import itertools, numpy, os, tensorstore
def spec(place):
    if options is None:
        return {"driver": "zarr", "kvstore": {"driver": "file", "path": place, "file_io_sync": False}}
    os.environ["AWS_ACCESS_KEY_ID"] = options["access_key_id"]
    os.environ["AWS_SECRET_ACCESS_KEY"] = options["secret_access_key"]
    bucket, _, path = place.removeprefix("s3://").partition("/")
    return {"driver": "zarr", "kvstore": {"driver": "s3", "bucket": bucket, "path": path + "/",
        "endpoint": options["endpoint"], "aws_region": options["region"], "aws_credentials": {"type": "environment"}}}
old = tensorstore.open(spec(source)).result()
same = {"metadata": {"compressor": {"id": "zstd", "level": 1}}}  # by default blosc, which takes less time
new = tensorstore.open(spec(target) | same, create=True, dtype=old.dtype, shape=old.shape,
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
source, target, folder, chunks, memory, options = sys.argv[1:4] + [json.loads(each) for each in sys.argv[4:]]
"""


@dataclass(frozen=True)
class Where:
    """Where arrays are: in a directory, or in a bucket."""

    folder: Path
    about: str
    bucket: Any = None
    options: dict[str, Any] | None = field(default=None)

    def place(self, name: str) -> str:
        """Return the path or URL of an array."""
        return str(self.folder / name) if self.bucket is None else f"s3://{self.bucket.name}/{name}"

    def remove(self) -> None:
        """Remove everything but sources from the directory; a bucket keeps all."""
        for path in self.folder.glob("target*"):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def somewhere(folder: Path, *, is_s3: bool) -> Iterator[Where]:
    """Yield a directory; with `is_s3`, a bucket, whose server runs meanwhile."""
    if not is_s3:
        yield Where(folder, running.about(folder)["file system"])
        return
    from benchmarks import delayed

    with delayed.started(folder, LATENCY) as servers:
        if servers.bucket is None:
            sys.exit(servers.about)
        about = f"S3 with {LATENCY * 1e3:g} ms per request ({servers.about})"
        yield Where(folder, about, servers.bucket, servers.bucket.options)


def make(where: Where, name: str, megabytes: int) -> tuple[int, ...]:
    """Write the source, and return the shape of the chunks that are wanted."""
    planes = max(4, megabytes * 2**20 // (SIDE * SIDE * 4))
    array = omnizarr.create_array(
        where.place(name), shape=(planes, SIDE, SIDE), chunks=(2, SIDE, SIDE), dtype="f4", zarr_format=2,
        compressors={"id": "zstd", "level": 1}, storage_options=where.options,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for plane in range(0, planes, 2):
        array[plane : plane + 2] = (rng.normal(0, 10, (2, SIDE, SIDE)) + plane).round(1)
    return (planes, 16, 16)


def measure(library: str, python: str, where: Where, source: str, chunks: Any, memory: int) -> dict[str, float] | str:
    """Return what rechunking took, or why it did not work."""
    old, new = where.place(source), where.place(f"target-{source}-{list(LIBRARIES).index(library)}")
    folder = where.folder / "target-files"
    arguments = [old, new, str(folder), json.dumps(chunks), str(memory), json.dumps(where.options)]
    found = scripts.measure(python, _ARGUMENTS + LIBRARIES[library], arguments)
    if isinstance(found, str):
        return found
    source_array, target_array = (omnizarr.open_array(at, mode="r", storage_options=where.options) for at in (old, new))
    if not np.array_equal(target_array[::7, ::5, :9], source_array[::7, ::5, :9]):
        return "other values"
    return found


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rechunking", description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[256, 1024], help="sizes of the array")
    parser.add_argument("--memory", type=int, default=64, help="MiB that elements may take")
    parser.add_argument("--s3", action="store_true", help="in a bucket, with 20 ms per request")
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has rechunker, dask, TensorStore")
    parser.add_argument("--directory", type=Path, help="where to make files; default: a temporary directory")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/benchmarks-data.md")
    options = parser.parse_args()
    lines = ["| | " + " | ".join(f"{size:,} MiB" for size in options.megabytes) + " |"]
    lines.append("|---|" + "--:|" * len(options.megabytes))
    cells: dict[str, list[str]] = {library: [] for library in options.only}
    load = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as folder,
        somewhere(Path(folder), is_s3=options.s3) as where,
    ):
        about = running.about(where.folder)
        for size in options.megabytes:
            source = f"{size}.zarr"
            chunks = make(where, source, size)
            for library in options.only:
                python = sys.executable if library.startswith("omnizarr") else options.python
                found = measure(library, python, where, source, chunks, options.memory * 2**20)
                cells[library].append(scripts.cell(found))
                print(f"{size:>6} MiB  {library:<20}{cells[library][-1]}", flush=True)
                where.remove()
            shutil.rmtree(where.folder / source, ignore_errors=True)
    lines += [f"| {library} | {' | '.join(row)} |" for library, row in cells.items()]
    measured = (
        f"Measured {about['date']} on {about['processor']}, {where.about}, CPython {about['python']}, load "
        f"{load:.1f} before it began: from (2, {SIDE}, {SIDE}) to (all, 16, 16), 32-bit floats, zstd, in "
        f"{options.memory} MiB. Peaks are of the whole process, with the libraries that it has loaded."
    )
    text = "\n".join([measured, "", *lines, ""])
    print(text)
    if options.docs:
        reports.into_page(reports.PAGE, text, *MARKS[options.s3])


if __name__ == "__main__":
    main()
