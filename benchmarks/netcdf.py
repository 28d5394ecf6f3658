"""Compare `omnizarr.netcdf` with netCDF4-python on the same NCZarr datasets, which netCDF4-python writes.

Usage: ``python -m benchmarks.netcdf [--quick] [--directory PLACE] [--json FILE] [--docs]``. Each figure comes from a
process of its own; libraries take turns, and what they read is compared before anything is timed. HDF5 stands there for
orientation: netCDF4-python on a file with the same chunks. Files take up to 2.5 GB.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import fresh, reports, running

LIBRARIES: Final = {"omnizarr": "omnizarr.netcdf", "netCDF4": "netCDF4", "HDF5": "netCDF4"}
BEGIN, END = "<!-- netcdf: begin -->", "<!-- netcdf: end -->"
PATIENCE: Final = 600.0  # seconds for one process
FEWEST: Final = 2  # rounds that everybody takes part in, however slow
VARIABLES: Final = 200
CHUNKS: Final = (5, 180, 360)
BOX: Final = 10  # elements along each side of a small slice


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    planes: int
    slices: int
    appends: int
    records: int
    rounds: int
    budget: float  # seconds of each library in a workload; then it may miss rounds


FULL: Final = Size(planes=500, slices=10_000, appends=500, records=1_000, rounds=5, budget=60)
QUICK: Final = Size(planes=100, slices=1_000, appends=100, records=200, rounds=3, budget=10)


@dataclass(frozen=True)
class Task:
    """What one process has to do."""

    library: str
    folder: Path
    size: Size
    slices: int
    ncdump: str
    cpu: bool = False

    @property
    def clock(self) -> Callable[[], float]:
        """What is counted: seconds that pass, or those of processors that the process takes."""
        return time.process_time if self.cpu else time.perf_counter

    @property
    def dataset(self) -> Any:
        """The class that opens datasets."""
        return import_module(LIBRARIES[self.library]).Dataset

    def place(self, name: str) -> str:
        """Return the URL or the file of a dataset."""
        if self.library == "HDF5":
            return str(self.folder / f"{name}.nc")
        return f"file://{self.folder / name}.zarr#mode=nczarr,file"


# -- what is done: each returns seconds, and something by which the work is known to be right ------------------


Outcome = tuple[float, Any]


def make_large(task: Task, name: str) -> Outcome:
    """Store a walk in steps of 1/16, as a sensor of limited precision sees one, under noise enough to be work."""
    options = {"zlib": True, "complevel": 1, "shuffle": True} if name == "zlib" else {}
    rng = np.random.default_rng(7)
    began = task.clock()
    with task.dataset(task.place(name), "w") as dataset:
        for label, length in (("time", task.size.planes), ("y", 720), ("x", 720)):
            dataset.createDimension(label, length)
        variable = dataset.createVariable("v", "f4", ("time", "y", "x"), chunksizes=CHUNKS, **options)
        for start in range(0, task.size.planes, CHUNKS[0]):
            steps = rng.integers(-3, 4, (CHUNKS[0], 720, 720), dtype=np.int8)
            variable[start : start + CHUNKS[0]] = np.cumsum(steps, axis=-1, dtype=np.float32) / 16
    return task.clock() - began, None


def make_many(task: Task, name: str) -> Outcome:
    """Store many small variables with attributes."""
    began = task.clock()
    with task.dataset(task.place(name), "w") as dataset:
        dataset.createDimension("y", 10)
        dataset.createDimension("x", 20)
        for number in range(VARIABLES):
            variable = dataset.createVariable(f"v{number:03}", "f4", ("y", "x"))
            variable.setncatts({"units": "K", "long_name": f"temperature {number}", "valid_min": np.float32(0)})
            variable[...] = number
    return task.clock() - began, None


def whole(task: Task, name: str, *, mask: bool = True) -> Outcome:
    """Read all of a variable."""
    with task.dataset(task.place(name)) as dataset:
        variable = dataset["v"]
        variable.set_auto_maskandscale(mask)
        began = task.clock()
        result = variable[...]
        took = task.clock() - began
        return took, digest(result)


def unmasked(task: Task, name: str) -> Outcome:
    """Read all of a variable, as it is stored."""
    return whole(task, name, mask=False)


def scattered(task: Task, name: str) -> Outcome:
    """Read small slices from anywhere."""
    rng = np.random.default_rng(1)
    corners = rng.integers(0, (task.size.planes, 720 - BOX, 720 - BOX), (task.slices, 3))
    return boxes(task, name, corners.tolist())


def marching(task: Task, name: str) -> Outcome:
    """Read small slices as a program does that walks along time, and at each step along a row."""
    steps = task.slices // task.size.planes
    corners = [
        [plane, plane * 7 % (720 - BOX), step * 720 // steps]
        for plane in range(task.size.planes)
        for step in range(steps)
    ]
    return boxes(task, name, corners)


def boxes(task: Task, name: str, corners: list[list[int]]) -> Outcome:
    """Read a slice from each corner on."""
    results = []
    with task.dataset(task.place(name)) as dataset:
        variable = dataset["v"]
        began = task.clock()
        for t, y, x in corners:
            results.append(variable[t, y : y + BOX, x : x + BOX])
        took = task.clock() - began
    return took, digest(np.ma.stack(results))


def append(task: Task, name: str) -> Outcome:
    """Make a variable longer, row by row, and close the dataset."""
    place = task.place(f"{name}-{task.library}")
    rows = np.arange(task.size.appends * 64 * 64, dtype=np.float32).reshape(-1, 64, 64)
    dataset = task.dataset(place, "w")
    for label, length in (("time", None), ("y", 64), ("x", 64)):
        dataset.createDimension(label, length)
    variable = dataset.createVariable("v", "f4", ("time", "y", "x"), chunksizes=(1, 64, 64))
    began = task.clock()
    for number, row in enumerate(rows):
        variable[number] = row
    dataset.close()
    took = task.clock() - began
    with import_module("netCDF4").Dataset(place) as dataset:
        result = digest(dataset["v"][...])
    remove(place)
    return took, result


def records(task: Task, name: str) -> Outcome:
    """Write records, and those of a coordinate, one by one or in blocks, and close the dataset.

    `name` says what they are (planes, or numbers), whether each is read again at once, how many variables there are,
    how many records are written together, and how many are in a chunk; 0 leaves that to the library.
    """
    kind, *numbers = name.split("-")
    variables, block, length = map(int, numbers)
    inner = {} if kind == "numbers" else {"y": 16, "x": 32}
    place = task.place(f"{name}-{task.library}")
    shape = (task.size.records, *inner.values())
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    times = np.arange(task.size.records, dtype=np.float64)
    dataset = task.dataset(place, "w")
    for label, size in {"time": None, **inner}.items():
        dataset.createDimension(label, size)
    own = {"chunksizes": (length, *inner.values())} if length else {}
    made = [dataset.createVariable(f"v{number}", "f4", ("time", *inner), **own) for number in range(variables)]
    coordinate = dataset.createVariable("time", "f8", ("time",), **({"chunksizes": (length,)} if length else {}))
    began = task.clock()
    for start in range(0, task.size.records, block):
        which = start if block == 1 else slice(start, start + block)
        for variable in made:
            variable[which] = values[which]
            if kind == "echoed":
                _ = variable[which]
        coordinate[which] = times[which]
    dataset.close()
    took = task.clock() - began
    with import_module("netCDF4").Dataset(place) as dataset:
        result = [digest(dataset[each][...]) for each in ("time", "v0", f"v{variables - 1}")]
    remove(place)
    return took, result


def remove(place: str) -> None:
    """Remove a dataset."""
    written = Path(place.removeprefix("file://").partition("#")[0])
    shutil.rmtree(written) if written.is_dir() else written.unlink()


def open_many(task: Task, name: str) -> Outcome:
    """Open a dataset, and look at all that it has."""
    task.dataset(task.place(name)).close()
    began = task.clock()
    with task.dataset(task.place(name)) as dataset:
        result = {key: [variable.shape, variable.units] for key, variable in dataset.variables.items()}
    return task.clock() - began, result


def dump(task: Task, name: str) -> Outcome:
    """Print the header, with a program that is started for it."""
    program = [sys.executable, "-m", "omnizarr", "dump"] if task.library == "omnizarr" else [task.ncdump]
    began = task.clock()
    done = subprocess.run(  # noqa: S603
        [*program, "-h", task.place(name)], capture_output=True, text=True, check=True, cwd=running.ROOT
    )
    return task.clock() - began, sorted(line.strip() for line in done.stdout.splitlines()[1:])


def digest(result: Any) -> list[Any]:
    """Return what tells results apart: types, shapes, values and masks."""
    values = hashlib.blake2b(np.ascontiguousarray(np.ma.getdata(result)), digest_size=16).hexdigest()
    return [
        type(result).__name__,
        str(result.dtype),
        result.shape,
        int(np.count_nonzero(np.ma.getmaskarray(result))),
        values,
    ]


ACTIONS: Final[dict[str, Callable[[Task, str], Outcome]]] = {
    each.__name__: each
    for each in (make_large, make_many, whole, unmasked, scattered, marching, append, records, open_many, dump)
}


# -- who does it ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workload:
    """One row of the table."""

    title: str
    action: str
    data: str
    target: float | None = None  # how many times as fast as netCDF4
    share: float = 1  # of the slices


# Small slices of compressed chunks from anywhere are a matter of decompression alone, and take minutes.
WORKLOADS: Final = (
    Workload("whole variable", "whole", "raw", 3),
    Workload("whole variable, unmasked", "unmasked", "raw"),
    Workload("{slices:,} small slices, anywhere", "scattered", "raw", 10),
    Workload("{slices:,} small slices, marching", "marching", "raw", 10),
    Workload("whole variable, zlib", "whole", "zlib", 3),
    Workload("whole variable, zlib, unmasked", "unmasked", "zlib"),
    Workload("{slices:,} small slices, zlib, anywhere", "scattered", "zlib", share=0.1),
    Workload("{slices:,} small slices, zlib, marching", "marching", "zlib", 10),
    Workload("{appends:,} rows appended", "append", "rows"),
    *(
        Workload(
            f"{{records:,}} {words} of {variables} variable{'s' * (variables > 1)}, {how}",
            "records",
            f"{kind}-{variables}-{block}-0",
            1,
        )
        for kind, words, counts, blocks in (
            ("planes", "records", (1, 20), {1: "one by one", 10: "by ten", 100: "by a hundred"}),
            ("numbers", "numbers", (1, 20), {1: "one by one", 100: "by a hundred"}),
            ("echoed", "records", (1,), {1: "each read again"}),
        )
        for variables in counts
        for block, how in blocks.items()
    ),
    *(
        Workload(
            f"{{records:,}} {words} of {variables} variable{'s' * (variables > 1)} in chunks of {length:,}, {how}",
            "records",
            f"{kind}-{variables}-{block}-{length}",
            1,
        )
        for kind, words, counts, lengths in (
            ("planes", "records", (1, 20), (16, 100)),
            ("numbers", "numbers", (1, 20), (1, 16, 1024)),
        )
        for variables in counts
        for length in lengths
        for block, how in {1: "one by one", 10: "by ten", 100: "by a hundred"}.items()
    ),
    Workload(f"a dataset of {VARIABLES} variables opened", "open_many", "many", 1),
    Workload(f"the header of {VARIABLES} variables printed", "dump", "many"),
)
MAKERS: Final = {"raw": "make_large", "zlib": "make_large", "many": "make_many"}


def process(task: Task, action: str, name: str) -> Outcome:
    """Do something in a process of its own."""
    request = {**vars(task), "folder": str(task.folder), "size": vars(task.size), "action": action, "name": name}
    seconds, result = fresh.run("benchmarks.netcdf", request, PATIENCE)
    return seconds, result


def work(request: dict[str, Any]) -> None:
    """Be such a process."""
    action, name = ACTIONS[request.pop("action")], request.pop("name")
    task = Task(**{**request, "folder": Path(request["folder"]), "size": Size(**request["size"])})
    print(json.dumps(action(task, name)))


def measure(workload: Workload, tasks: list[Task]) -> dict[str, Any]:
    """Return seconds of all rounds per library, and what went wrong."""
    seconds: dict[str, list[float]] = {}
    reasons: dict[str, str] = {}

    def attempt(task: Task) -> Outcome | None:
        try:
            return process(task, workload.action, workload.data)
        except fresh.Failed as error:
            reasons[task.library] = str(error)
            return None

    expected: Any = None
    for task in sorted(tasks, key=lambda task: task.library != "netCDF4"):  # whom the others are compared with
        found = attempt(task)
        if found is None:
            continue
        expected = expected or found[1]
        if found[1] == expected:
            seconds[task.library] = []
        else:
            reasons[task.library] = "other values"
    for number in range(tasks[0].size.rounds):
        for task in tasks if number % 2 else tasks[::-1]:
            spent = seconds.get(task.library)
            if spent is None or (number >= FEWEST and sum(spent) > task.size.budget):
                continue
            found = attempt(task)
            if found is None:
                del seconds[task.library]
            else:
                spent.append(found[0])
    return {"seconds": seconds, "reasons": reasons}


def cells_of(found: dict[str, Any]) -> tuple[list[str], float | None]:
    """Return the medians of the libraries in words, and how many times as fast as netCDF4 omnizarr is."""
    medians = {library: statistics.median(values) for library, values in found["seconds"].items()}
    cells = [reports.amount(medians[library], "s") if library in medians else "-" for library in LIBRARIES]
    return cells, medians["netCDF4"] / medians["omnizarr"] if {"netCDF4", "omnizarr"} <= set(medians) else None


def row(title: str, workload: Workload, found: dict[str, Any]) -> str:
    """Return a line of the table."""
    cells, ratio = cells_of(found)
    words = "" if ratio is None else f"{ratio:.1f} ×"
    if workload.target is not None:
        words += f" (wanted: {workload.target:g} ×)"
    reasons = "".join(f"\n    {library}: {reason}" for library, reason in found["reasons"].items())
    return f"{title:<64}" + "".join(f"{cell:>11}" for cell in cells) + f"  {words}{reasons}"


def markdown(document: dict[str, Any], workloads: dict[str, Workload]) -> str:
    """Return the table of the manual."""
    about = document["about"]
    measured = (
        f"Measured {about['date']} with {document['size']['rounds']} rounds on {about['processor']}, "
        f"{about['file system']}, CPython {about['python']}, load {about['load']} before it began, "
        f"netCDF4 {about['netCDF4']} with netCDF-C {about['netCDF-C']}: "
        f"{document['size']['planes']} x 720 x 720 numbers of float32 in chunks of {' x '.join(map(str, CHUNKS))}."
    )
    lines = [
        measured,
        "",
        "| | omnizarr | netCDF4 | HDF5 | omnizarr is faster | wanted |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for title, found in document["results"].items():
        cells, ratio = cells_of(found)
        target = workloads[title].target
        words = ["-" if ratio is None else f"{ratio:.2g} ×", "" if target is None else f"{target:g} ×"]
        lines.append(f"| {' | '.join([title, *cells, *words])} |")
    return "\n".join(lines) + "\n"


def clear(folder: Path) -> None:
    """Remove all datasets."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def main() -> None:
    """Make, compare, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.netcdf", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the size, fewer slices and rounds")
    parser.add_argument("--only", help="workloads whose title contains this")
    parser.add_argument("--rounds", type=int, help="how many times each measures")
    parser.add_argument("--cpu", action="store_true", help="count seconds of processors, not those that pass")
    parser.add_argument("--directory", type=Path, help="where to make files (default: a temporary directory)")
    parser.add_argument(
        "--ncdump", default=shutil.which("ncdump"), help="netCDF-C's program, 4.9.3 or later (default: on the path)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="save all figures")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/benchmarks-data.md")
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled, too
    size = QUICK if options.quick else FULL
    size = replace(size, rounds=options.rounds or size.rounds)
    netcdf4 = import_module("netCDF4")
    document: dict[str, Any] = {"size": vars(size), "results": {}}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as place:
        folder = Path(place)
        document["about"] = {
            **running.about(folder), "netCDF4": netcdf4.__version__, "netCDF-C": netcdf4.__netcdf4libversion__,
        }  # fmt: skip
        print(", ".join(f"{name}: {value}" for name, value in document["about"].items()))
        print(" " * 64 + "".join(f"{library:>11}" for library in LIBRARIES) + "  omnizarr to netCDF4", flush=True)
        present = ""
        workloads: dict[str, Workload] = {}
        for workload in WORKLOADS:
            slices = int(size.slices * workload.share)
            title = workload.title.format(slices=slices, appends=size.appends, records=size.records)
            if options.only and options.only not in title:
                continue
            tasks = [
                Task(library, folder, size, slices, options.ncdump or "ncdump", options.cpu) for library in LIBRARIES
            ]
            if workload.data != present:
                clear(folder)
                present = workload.data
                for task in tasks:
                    if present in MAKERS and task.library != "omnizarr":
                        process(task, MAKERS[present], present)
            workloads[title] = workload
            found = document["results"][title] = measure(workload, tasks)
            print(row(title, workload, found), flush=True)
            if options.json:
                options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if options.docs:
        reports.into_page(reports.PAGE, markdown(document, workloads), BEGIN, END)


if __name__ == "__main__":
    main()
