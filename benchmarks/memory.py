"""How much memory each verb needs for an array that is much larger: peaks above what the process had before.

Usage: ``python -m benchmarks.memory [--megabytes 512] [--budget 268435456] [--s3] [--only VERB ...] [--layouts NAME
...] [--directory PATH] [--docs]``. Each figure comes from a process of its own, which does the same with a small array
first, so that what is imported does not count. ``--budget`` is the setting ``bytes_in_flight``. With ``--s3``, arrays
are in a bucket, behind a server that takes 20 ms per request (`benchmarks.delayed`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

import omnizarr
from benchmarks import reports, running, scripts
from benchmarks.rechunking import Where, somewhere

MANUAL: Final = running.ROOT / "docs" / "concurrency.md"
MARKS: Final = {
    False: ("<!-- memory: begin -->", "<!-- memory: end -->"),
    True: ("<!-- memory on S3: begin -->", "<!-- memory on S3: end -->"),
}
SIDE: Final = 512
"""Elements of a plane in each direction: a plane of 32-bit integers has 1 MiB."""
LAYOUTS: Final = {
    "1 MiB": {"chunks": (1, SIDE, SIDE)},
    "16 MiB": {"chunks": (16, SIDE, SIDE)},
    "64 MiB": {"chunks": (64, SIDE, SIDE)},
    "shards of 256 MiB": {"chunks": (4, SIDE, SIDE), "shards": (256, SIDE, SIDE)},
}
FEW: Final = 2
"""Planes of the small array."""
VERBS: Final = {
    "copy": "omnizarr.copy_node(source, target, storage_options=options)",
    "convert, equal chunks": "omnizarr.convert(source, target, storage_options=options)",
    "convert, other codecs": "omnizarr.convert(source, target, compressors='gzip', storage_options=options)",
    "rechunk, to columns": "omnizarr.rechunk(source, target, chunks=(2**20, 32, 32), storage_options=options)",
    "rechunk, to shards": (
        "omnizarr.rechunk(source, target, chunks=(4, 512, 512), shards=(32, 512, 512), storage_options=options)"
    ),
    "check": "omnizarr.check(omnizarr.open_array(source, mode='r', storage_options=options).store_path, data=True)",
    "digest": "omnizarr.digest(source, storage_options=options)",
    "digest_of_bytes": "omnizarr.digest_of_bytes(source, storage_options=options)",
    "diff": "omnizarr.diff(source, other, storage_options=options)",
    "stat": "omnizarr.stat(source, storage_options=options)",
    "convert to netCDF": "omnizarr.convert(source.rpartition('/')[0], netcdf, storage_options=options)",
    "writer": """
old = omnizarr.open_array(source, mode='r', storage_options=options)
new = omnizarr.create_array(target, shape=(0, *old.shape[1:]), chunks=old.chunks, shards=old.shards, dtype=old.dtype,
    storage_options=options)
plane = numpy.random.default_rng(0).integers(0, 2**12, (1, *old.shape[1:]), old.dtype)
with new.writer() as writer:
    for _ in range(old.shape[0]):
        writer.append(plane)
""",
    "Loader": """
old = omnizarr.open_array(source, mode='r', storage_options=options)
for batch in omnizarr.data.Loader({'one': old}, 4, memory=budget):
    pass
""",
    "xarray and dask": """
import omnizarr.interop.xarray, xarray
path, _, name = source.rpartition('/')
more = {} if options is None else {'storage_options': options}
xarray.open_dataset(path, engine='omnizarr', chunks={}, **more)[name].max().compute(num_workers=2)
""",
    "serve": """
import subprocess, textwrap, threading
code = '''
import sys, urllib.request, concurrent.futures
def ask(url):
    with urllib.request.urlopen(url) as answer:
        while answer.read(2**20):
            pass
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(ask, sys.argv[1:]))
'''
places, begun = [], threading.Event()
def started(place):
    places.append(place)
    begun.set()
threading.Thread(target=omnizarr.serve, args=(source,), daemon=True,
    kwargs={'port': 0, 'started': started, 'storage_options': options}).start()
begun.wait(30)
array = omnizarr.open_array(source, mode='r', storage_options=options)
urls = [places[0].rstrip('/') + f'/c/{n}/0/0' for n in range(-(-array.shape[0] // (array.shards or array.chunks)[0]))]
subprocess.run([sys.executable, '-c', textwrap.dedent(code), *urls], check=True)
""",
}
LOCAL: Final = {"convert to netCDF"}
"""Verbs that write files."""
_AROUND: Final = """
import json, shutil, sys, warnings
import numpy, omnizarr
warnings.simplefilter('ignore')
few, many, options, budget = json.loads(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3]), int(sys.argv[4])
omnizarr.config.set(bytes_in_flight=budget)
def status(name):
    lines = open('/proc/self/status').read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
def work(source, other, target, netcdf):
{body}
work(*few)
with open('/proc/self/clear_refs', 'w') as file:
    file.write('5')
before = status('VmRSS')
work(*many)
return status('VmHWM') - before
"""


def make(where: Where, name: str, planes: int, layout: str) -> None:
    """Write a group with an array, and the same array again."""
    root = omnizarr.create_group(where.place(name), storage_options=where.options)
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**12, (min(planes, 256), SIDE, SIDE), "i4")
    for each in ("one", "other"):
        array = root.create_array(
            each, shape=(planes, SIDE, SIDE), dtype="i4", compressors="zstd", dimension_names=("t", "y", "x"),
            **LAYOUTS[layout],
        )  # fmt: skip
        for plane in range(0, planes, len(values)):
            array[plane : plane + len(values)] = values[: planes - plane]


def measure(verb: str, where: Where, budget: int) -> dict[str, Any] | str:
    """Return what a verb took, or why it did not work."""
    places = [
        [where.place(f"{name}.zarr/one"), where.place(f"{name}.zarr/other"), where.place(f"target-{name}-{slug(verb)}"),
         str(where.folder / f"target-{name}.nc")]
        for name in ("few", "many")
    ]  # fmt: skip
    lines = "\n".join(f"    {line}" for line in VERBS[verb].strip().splitlines())
    arguments = [*map(json.dumps, places), json.dumps(where.options), str(budget)]
    return scripts.measure(sys.executable, _AROUND.format(body=lines), arguments)


def remove(where: Where, verb: str) -> None:
    """Remove what a verb wrote."""
    for path in where.folder.glob("target*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in ("few", "many") if where.bucket is not None else ():
        with suppress(omnizarr.errors.NodeNotFoundError):
            omnizarr.delete_node(where.place(f"target-{name}-{slug(verb)}"), storage_options=where.options)


def slug(verb: str) -> str:
    """Return the name of a verb as a part of a URL."""
    return verb.replace(",", "").replace(" ", "-")


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=512, help="size of the array")
    parser.add_argument("--budget", type=int, default=2**28, help="the setting bytes_in_flight")
    parser.add_argument("--s3", action="store_true", help="in a bucket, with 20 ms per request")
    parser.add_argument("--only", nargs="+", choices=VERBS, default=list(VERBS))
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--directory", type=Path, help="where to make files; default: a temporary directory")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/concurrency.md")
    options = parser.parse_args()
    verbs = [verb for verb in options.only if not (options.s3 and verb in LOCAL)]
    cells: dict[str, list[str]] = {verb: [] for verb in verbs}
    for layout in options.layouts:
        with (
            tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as folder,
            somewhere(Path(folder), is_s3=options.s3) as where,
        ):
            about = running.about(where.folder)
            make(where, "few.zarr", FEW, layout)
            make(where, "many.zarr", options.megabytes, layout)
            for verb in verbs:
                found = measure(verb, where, options.budget)
                cells[verb].append(found if isinstance(found, str) else f"{found['found'] / 2**20:,.0f}")
                seconds = "" if isinstance(found, str) else f"{found['seconds']:8.1f} s"
                print(f"{layout:<20}{verb:<26}{cells[verb][-1]:>8}{seconds}", flush=True)
                remove(where, verb)
    place = where.about if options.s3 else about["file system"]
    lines = [f"| MiB | {' | '.join(options.layouts)} |", "|---|" + "--:|" * len(options.layouts)]
    lines += [f"| {verb} | {' | '.join(row)} |" for verb, row in cells.items()]
    measured = (
        f"Measured {about['date']} on {about['processor']}, {place}, CPython {about['python']}, with "
        f"`bytes_in_flight` {options.budget // 2**20} MiB: an array of {options.megabytes:,} MiB of 32-bit integers, "
        f"zstd. The columns are sizes of its chunks; shards have chunks of 4 MiB."
    )
    text = "\n".join([measured, "", *lines, ""])
    print(text)
    if options.docs:
        reports.into_page(MANUAL, text, *MARKS[options.s3])


if __name__ == "__main__":
    main()
