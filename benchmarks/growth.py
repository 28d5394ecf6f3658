"""How costs grow: each operation with 10² … 10⁶ items, in CPU time, requests and memory, beside other libraries.

Usage: ``python -m benchmarks.growth [--only NAME ...] [--sizes N ...] [--limit SECONDS] [--docs]``. Operations are
those of `benchmarks.operations`. Each point is measured in a process of its own, a fork of this one: the CPU time of
all its threads, and how far its memory rises above what it had when the operation began. Requests are counted in
another run, through a store that counts. A curve ends where a point, preparation included, takes longer than the limit.

The exponent is the slope of a line through the points on logarithmic axes, by least squares, over the largest sizes:
those within a factor of 32 of the largest one. 1 is linear, 0 is independent of the number of items.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from benchmarks import reports, running
from benchmarks.operations import LIBRARIES, OPERATIONS, Operation, Place

BEGIN, END = "<!-- growth: begin -->", "<!-- growth: end -->"
MANUAL: Final = running.ROOT / "docs"
SIZES: Final = tuple(round(10 ** (half / 2)) for half in range(4, 13))
LIMIT: Final = 2.0
SPAN: Final = 32
"""The exponent is that of sizes within this factor of the largest."""
LINEAR: Final = 1.1
"""An exponent that is called linear still."""
SURE: Final = 0.002
"""Seconds of CPU time from which growth is measured."""
AGAIN: Final = 0.05
"""What takes less CPU time is measured three times, of which the least counts."""


@dataclass(frozen=True)
class Point:
    """One measurement."""

    operation: str
    library: str
    items: int
    cpu: float
    """Seconds."""
    memory: int
    """Bytes."""
    requests: int | None
    wall: float
    """Seconds, with preparation."""


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float | None:
    """Return the slope of costs over sizes on logarithmic axes, over the largest sizes; None if there are too few.

    >>> exponent([100, 1000, 10_000], [1, 10, 100])
    1.0
    """
    pairs = [(math.log(n), math.log(cost)) for n, cost in zip(sizes, costs, strict=True) if cost > 0]
    pairs = [pair for pair in pairs if pair[0] >= math.log(max(sizes)) - math.log(SPAN) - 1e-9]
    if len(pairs) < 3:
        return None
    mean_x, mean_y = (statistics.fmean(pair[at] for pair in pairs) for at in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in pairs)
    return round(sum((x - mean_x) * (y - mean_y) for x, y in pairs) / spread, 2)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def work(operation: Operation, library: str, items: int, folder: Path, *, counts: bool) -> dict[str, float]:
    """Do an operation in this process, and return what it took."""
    operation.by[library](Place(folder / "few", counts), 3)()  # imports, and what is made once
    place = Place(folder / "all", counts)
    run = operation.by[library](place, items)
    place.requests.clear()
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins again
    before, began = _status("VmRSS"), time.process_time()
    run()
    return {
        "cpu": time.process_time() - began,
        "memory": max(0, _status("VmHWM") - before),
        "requests": sum(place.requests.values()),
    }


def in_fork(task: Callable[[], Any], patience: float) -> Any:
    """Return what a function returns in a process of its own; None if it fails or takes too long."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            os.write(writing, json.dumps(task()).encode())
        except BaseException as error:  # noqa: BLE001 - told, and the curve ends
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], patience)
        found = os.read(reading, 2**16) if ready else b""
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
    return json.loads(found) if found else None


def remove(folder: Path) -> None:
    """Remove a directory, however deep; `shutil.rmtree` calls itself for each level."""
    subprocess.run(["/bin/rm", "-rf", folder], check=False)  # noqa: S603


def point(operation: Operation, library: str, items: int, directory: Path, limit: float) -> Point | None:
    """Measure one point; None if it cannot be had in time."""

    def once(*, counts: bool) -> Any:
        folder = Path(tempfile.mkdtemp(dir=directory))
        try:
            return in_fork(lambda: work(operation, library, items, folder, counts=counts), 8 * limit)
        finally:
            remove(folder)

    began = time.monotonic()
    found = once(counts=False)
    wall = time.monotonic() - began
    if found is None:
        return None
    repeats = [found, *(once(counts=False) for _ in range(2 if found["cpu"] < AGAIN and wall < limit / 4 else 0))]
    counted = once(counts=True) if library != "tensorstore" and wall < limit else None
    return Point(
        operation.name,
        library,
        items,
        min(each["cpu"] for each in repeats if each),
        int(min(each["memory"] for each in repeats if each)),
        None if counted is None else int(counted["requests"]),
        wall,
    )


def curve(operation: Operation, library: str, sizes: Iterable[int], directory: Path, limit: float) -> Iterator[Point]:
    """Yield the points of a curve, the smallest first."""
    for items in sorted({min(size, operation.largest) for size in sizes}):
        found = point(operation, library, items, directory, limit)
        if found is None:
            return
        yield found
        if found.wall > limit:
            return


def present() -> dict[str, str]:
    """Return the versions of the libraries that exist; they are imported before any process is forked."""
    found = {}
    for library, module in {"omnizarr": "omnizarr", "zarr": "zarr", "tensorstore": "tensorstore"}.items():
        try:
            import_module(module)
        except ImportError:
            continue
        found[library] = version(module)
    return found


# -- told --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """All points of an operation with a library."""

    operation: Operation
    library: str
    points: tuple[Point, ...]

    @property
    def last(self) -> Point:
        """The largest."""
        return self.points[-1]

    def exponent_of(self, cost: str) -> float | None:
        """Return how a cost grows; None if it cannot be told."""
        known = [(each.items, getattr(each, cost)) for each in self.points if getattr(each, cost)]
        return exponent(*zip(*known, strict=True)) if known else None

    @property
    def is_too_steep(self) -> bool:
        """Whether CPU time, or requests, grow faster than the items."""
        found = self.exponent_of("cpu") if self.last.cpu > SURE else None
        return any(each is not None and each > LINEAR for each in (found, self.exponent_of("requests")))


def curves(points: Iterable[Point]) -> list[Curve]:
    """Return the curves that some points make, in the order of the tables."""
    kept: dict[tuple[str, str], list[Point]] = {}
    for each in points:
        kept.setdefault((each.operation, each.library), []).append(each)
    return [
        Curve(operation, library, tuple(sorted(kept[operation.name, library], key=lambda each: each.items)))
        for operation in OPERATIONS
        for library in LIBRARIES
        if (operation.name, library) in kept
    ]


def _amount(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _cell(found: Curve | None) -> str:
    """Return the exponent, and what an item costs at the largest size."""
    if found is None:
        return ""
    grows = found.exponent_of("cpu")
    per_item = found.last.cpu / found.last.items * 1e6
    told = "" if grows is None else f"**{grows:.2f}**" if grows > LINEAR else f"{grows:.2f}"
    return f"{told} · {per_item:.3g} µs at {found.last.items:,}"


def markdown(points: Sequence[Point], about: str) -> str:
    """Return the table, and what grows too fast."""
    found = {(each.operation.name, each.library): each for each in curves(points)}
    lines = [about, ""]
    lines.append("| | items | " + " | ".join(LIBRARIES.values()) + " | requests, memory of omnizarr |")
    lines.append("|---|---|" + "--:|" * (len(LIBRARIES) + 1))
    for operation in OPERATIONS:
        row = [found.get((operation.name, library)) for library in LIBRARIES]
        if not any(row):
            continue
        ours = row[0]
        rest = ""
        if ours is not None:
            most = next((each for each in reversed(ours.points) if each.requests), None)
            asked = ours.exponent_of("requests")
            grows = "" if asked is None else f" (exponent {asked:.2f})"
            rest = f"{most.requests:,} at {most.items:,}{grows}; " if most is not None else ""
            rest += f"{ours.last.memory / 2**20:.1f} MiB"
        lines.append(f"| {operation.title} | {operation.items} | {' | '.join(map(_cell, row))} | {rest} |")
    steep = [each for each in found.values() if each.is_too_steep]
    lines += ["", f"Steeper than {LINEAR}: " + ("; ".join(map(_steep, steep)) or "nothing") + "."]
    return "\n".join([*lines, ""])


def _steep(found: Curve) -> str:
    why = f", as {found.operation.why}" if found.operation.why else ""
    cpu, asked = found.exponent_of("cpu"), found.exponent_of("requests")
    told = f"{LIBRARIES[found.library]}, {found.operation.title}: CPU time {cpu}"
    return told + (f", requests {asked}" if asked is not None and asked > LINEAR else "") + why


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="operations whose name contains one of these")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="numbers of items")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for a point, after which a curve ends")
    parser.add_argument("--directory", type=Path, help="where to make files; default: a temporary directory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save all figures")
    parser.add_argument("--load", type=Path, metavar="FILE", help="report on figures saved before")
    parser.add_argument("--docs", action="store_true", help="renew docs/benchmarks-data.md and docs/growth.png")
    options = parser.parse_args()
    if options.load:
        document = json.loads(options.load.read_text(encoding="utf-8"))
        about, points = document["about"], [Point(**each) for each in document["points"]]
    else:
        points, about = measured(options)
    if options.json:
        told = {"about": about, "points": [asdict(each) for each in points]}
        options.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    text = markdown(points, about)
    print(text)
    if options.docs:
        from benchmarks.growth_plot import plot

        reports.into_page(reports.PAGE, text, BEGIN, END)
        plot(curves(points), MANUAL / "growth.png")


def measured(options: argparse.Namespace) -> tuple[list[Point], str]:
    """Measure what was asked for, and show each point as it is done."""
    warnings.filterwarnings("ignore", category=UserWarning)  # of zarr-python: that v3 does not define what it writes
    versions = present()
    load = os.getloadavg()[0]
    points = []
    folder = Path(tempfile.mkdtemp(prefix="growth-", dir=options.directory))
    try:
        facts = running.about(folder)
        for operation in OPERATIONS:
            if options.only and not any(name in operation.name for name in options.only):
                continue
            for library in operation.by:
                if library not in versions or library not in options.libraries:
                    continue
                for each in curve(operation, library, options.sizes, folder, options.limit):
                    points.append(each)
                    asked = "" if each.requests is None else f"{each.requests:>10,} requests"
                    print(
                        f"{operation.name:<20}{library:<12}{each.items:>9,}{_amount(each.cpu):>12}"
                        f"{each.memory / 2**20:>9.1f} MiB{asked}",
                        file=sys.stderr,
                        flush=True,
                    )
    finally:
        remove(folder)
    named = ", ".join(f"{LIBRARIES[library]} {number}" for library, number in versions.items())
    about = (
        f"Measured {facts['date']} on {facts['processor']}, {facts['file system']}, CPython {facts['python']}, load "
        f"{load:.1f} before it began, with {named}; a curve ends where a point takes longer than {options.limit:g} s."
    )
    return points, about


if __name__ == "__main__":
    main()
