"""Measure small writes to arrays with shards: bytes that each library writes for a byte of data, and seconds.

Usage: ``python -m benchmarks.small_writes [--rows N] [--rounds N] [--directory PLACE] [--docs]``. Each figure comes
from a process of its own, in which the library has written once before, and which reads all values back. Bytes are
those that the process passes to the system, or that the system copies for it (``wchar`` of ``/proc/self/io``).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import reports, running

COLUMNS: Final = 1024
SHARD, CHUNK = (256, COLUMNS), (16, COLUMNS)
BLOCK: Final = (64, 256)
"""What a task of dask writes: a sixteenth of a shard."""
PAGE: Final = Path(__file__).parents[1] / "docs" / "howto" / "small-writes.md"
BEGIN, END = "<!-- small writes: begin -->", "<!-- small writes: end -->"
PATIENCE: Final = 300.0
_DOCUMENT: Final = {
    "zarr_format": 3,
    "node_type": "array",
    "data_type": "float32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(SHARD)}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0.0,
    "codecs": [
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": list(CHUNK),
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                "index_location": "end",
            },
        }
    ],
    "attributes": {},
}

AnyArray = Any
Append = Callable[[Path, AnyArray, int], None]


def _steps(data: AnyArray, step: int) -> list[AnyArray]:
    return [data[at : at + step] for at in range(0, len(data), step)]


def _ours(path: Path, data: AnyArray, step: int) -> None:
    import omnizarr

    array = omnizarr.open_array(path, mode="r+")
    for block in _steps(data, step):
        array.append(block)


def _ours_gathered(path: Path, data: AnyArray, step: int) -> None:
    import omnizarr

    with omnizarr.open_array(path, mode="r+").writer() as writer:
        for block in _steps(data, step):
            writer.append(block)


def _zarr_python(path: Path, data: AnyArray, step: int) -> None:
    import zarr

    array: Any = zarr.open_array(path, mode="r+")
    for block in _steps(data, step):
        array.append(block)


def _zarrista(path: Path, data: AnyArray, step: int) -> None:
    """Write rows of an array that has its shape already: arrays of zarrista do not grow."""
    import zarrista
    from zarrista.store import FilesystemStore

    document = json.loads((path / "zarr.json").read_text("utf-8"))
    document["shape"] = list(data.shape)
    array: Any = zarrista.Array.from_metadata(document, FilesystemStore(str(path)), "/")
    array.store_metadata()
    for number, block in enumerate(_steps(data, step)):
        array.store_array_subset((slice(number * step, number * step + len(block)), slice(0, COLUMNS)), block)


def _opened(path: Path, length: int) -> Any:
    import tensorstore

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
    context = tensorstore.Context({"file_io_sync": False})
    array: Any = tensorstore.open(spec, open=True, context=context).result()
    return array.resize(exclusive_max=[length, None]).result()


def _tensorstore(path: Path, data: AnyArray, step: int) -> None:
    array = _opened(path, len(data))
    for number, block in enumerate(_steps(data, step)):
        array[number * step : number * step + len(block)].write(block).result()


def _tensorstore_gathered(path: Path, data: AnyArray, step: int) -> None:
    import tensorstore

    array = _opened(path, len(data))
    with tensorstore.Transaction() as transaction:
        bound = array.with_transaction(transaction)
        for number, block in enumerate(_steps(data, step)):
            bound[number * step : number * step + len(block)].write(block).result()


def _by_dask(target: Any, data: AnyArray) -> None:
    import dask.array as da

    da.store(da.from_array(data, chunks=BLOCK), target, lock=True, scheduler="threads")


def _dask_ours(path: Path, data: AnyArray, _: int) -> None:
    import dask.array as da

    import omnizarr
    from omnizarr.interop.dask import to_zarr

    array = omnizarr.open_array(path, mode="r+")
    array.resize(data.shape)
    to_zarr(da.from_array(data, chunks=BLOCK), array)


def _dask_zarr_python(path: Path, data: AnyArray, _: int) -> None:
    import zarr

    array: Any = zarr.open_array(path, mode="r+")
    array.resize(data.shape)
    _by_dask(array, data)


def _dask_tensorstore(path: Path, data: AnyArray, _: int) -> None:
    _by_dask(_opened(path, len(data)), data)


APPENDS: Final[dict[str, Append]] = {
    "omnizarr, `writer`": _ours_gathered,
    "omnizarr, `append`": _ours,
    "zarr-python": _zarr_python,
    "zarrista (zarrs)": _zarrista,
    "TensorStore": _tensorstore,
    "TensorStore, `Transaction`": _tensorstore_gathered,
}
DASK: Final[dict[str, Append]] = {
    "omnizarr, `writer`": _dask_ours,
    "zarr-python": _dask_zarr_python,
    "TensorStore": _dask_tensorstore,
}
WORKLOADS: Final = {
    "rows one by one": (APPENDS, 1),
    "rows by ten": (APPENDS, 10),
    "rows by a hundred": (APPENDS, 100),
    "chunks of dask": (DASK, 0),
}


def _made(path: Path) -> Path:
    path.mkdir()
    (path / "zarr.json").write_text(json.dumps({**_DOCUMENT, "shape": [0, COLUMNS]}), "utf-8")
    return path


def _written() -> int:
    found = dict(line.split(": ") for line in Path("/proc/self/io").read_text("ascii").splitlines())
    return int(found["wchar"])


def work(library: str, workload: str, folder: Path, rows: int) -> dict[str, float]:
    """Create an array, write it, read it back, and return the seconds and the bytes of writing."""
    import omnizarr

    function, step = WORKLOADS[workload][0][library], WORKLOADS[workload][1]
    data = np.random.default_rng(0).random((rows, COLUMNS), "f4")
    function(_made(folder / "first.zarr"), data[: SHARD[0]], step)  # which imports everything
    path = _made(folder / "array.zarr")
    before, began = _written(), time.perf_counter()
    function(path, data, step)
    seconds, written = time.perf_counter() - began, _written() - before
    if not np.array_equal(omnizarr.open_array(path)[...], data):
        raise ValueError(f"{library} has written other values")
    return {"seconds": seconds, "written": written / data.nbytes}


def measure(library: str, workload: str, folder: Path, rows: int) -> dict[str, float] | str:
    """Return what a process of its own measures, or why it has failed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    task = json.dumps([library, workload, str(folder), rows])
    command = [sys.executable, "-m", "benchmarks.small_writes", "--work", task]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"more than {PATIENCE:g} s"
    if done.returncode:
        return done.stderr.strip().rpartition("\n")[2]
    found: dict[str, float] = json.loads(done.stdout)
    return found


def markdown(about: dict[str, str], rows: int, results: dict[str, dict[str, dict[str, float] | str]]) -> str:
    """Return the table of the page."""
    measured = (
        f"{rows} rows of {COLUMNS} float32, shards of {SHARD[0]} rows with inner chunks of {CHUNK[0]} rows, "
        "not compressed. Each cell has bytes written for a byte of data, and seconds. "
        f"Measured {about['date']} on {about['processor']}, {about['file system']}, "
        f"load {about['load']} before it began."
    )
    lines = [
        measured,
        "",
        "| | " + " | ".join(results) + " |",
        "|---|" + "--:|" * len(results),
    ]
    for library in APPENDS:
        cells = []
        for found in results.values():
            each = found.get(library)
            cells.append("-" if not isinstance(each, dict) else f"{each['written']:.3g} × · {each['seconds']:.3g} s")
        lines.append(f"| {library} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and put the table into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_writes", description=__doc__)
    parser.add_argument("--rows", type=int, default=2048, help="how many rows are written (default: 2048)")
    parser.add_argument("--rounds", type=int, default=3, help="how many times each measures; the median counts")
    parser.add_argument("--directory", type=Path, help="where to make files (default: a temporary directory)")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/howto/small-writes.md")
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        library, workload, folder, rows = options.work
        print(json.dumps(work(library, workload, Path(folder), rows)))
        return
    results: dict[str, dict[str, dict[str, float] | str]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as place:
        about = running.about(Path(place))
        for workload, (libraries, _) in WORKLOADS.items():
            rounds: dict[str, list[dict[str, float] | str]] = {library: [] for library in libraries}
            for _ in range(options.rounds):
                for library, found in rounds.items():
                    found.append(measure(library, workload, Path(place) / "one", options.rows))
            results[workload] = {}
            for library, several in rounds.items():
                good = [each for each in several if isinstance(each, dict)]
                results[workload][library] = (
                    {name: statistics.median(each[name] for each in good) for name in ("seconds", "written")}
                    if good
                    else several[0]
                )
                print(f"{workload:20} {library:28} {results[workload][library]}", flush=True)
    if options.docs:
        reports.into_page(PAGE, markdown(about, options.rows, results), BEGIN, END)


if __name__ == "__main__":
    main()
