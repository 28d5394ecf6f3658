"""Hierarchies of up to a million arrays, in a directory, in one file and on S3: what each operation takes.

Usage: ``python -m benchmarks.million [--nodes N ...] [--places NAME ...] [--only OPERATION ...] [--peers N]
[--directory PATH] [--json FILE] [--load FILE] [--docs]``. Arrays lie in groups of a thousand (``groups``), or all in
one (``one-group``). Each operation runs in a process of its own, which does the same with three arrays first, so that
imports do not count. Memory is how far its peak rises above what it had then. S3 is the server that the tests start,
behind nginx, which counts requests. A million arrays take 8 GB of a disk with blocks of 4 KiB.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from benchmarks import fresh, reports, running
from benchmarks.growth import LINEAR, remove

MARKS: Final = "<!-- million: begin -->", "<!-- million: end -->"
EACH: Final = 1000
"""Arrays of a group."""
FEW: Final = 3
"""Arrays of the hierarchy with which a process begins."""
ARRAY: Final[Mapping[str, Any]] = {"shape": (4,), "chunks": (4,), "dtype": "int16"}
PATIENCE: Final = 3600
PEERS: Final = {"omnizarr": "omnizarr", "zarr": "zarr-python", "tensorstore": "TensorStore"}
PLACES: Final = {
    "groups": "in a directory, in groups of 1,000",
    "one-group": "in a directory, in one group",
    "sqlite": "in an SQLite file, in groups of 1,000",
    "zip": "in a ZIP archive, in groups of 1,000",
    "s3": "on S3, in groups of 1,000",
}


@dataclass(frozen=True)
class Place:
    """Where a hierarchy is.

    Attributes
    ----------
    url : str
    options : mapping or None
        Storage options.
    in_groups : bool
        Whether its arrays lie in groups of a thousand.
    nodes : int
        Arrays.
    """

    url: str
    options: Mapping[str, Any] | None
    in_groups: bool
    nodes: int

    def name(self, number: int) -> str:
        """Return the path of an array."""
        return f"g{number // EACH}/a{number % EACH}" if self.in_groups else f"a{number}"

    @property
    def middle(self) -> str:
        """The path of an array in the middle."""
        return self.name(self.nodes // 2)

    @property
    def names(self) -> Iterator[str]:
        """The paths of all arrays."""
        return map(self.name, range(self.nodes))

    def open(self, mode: Any = "r", **options: Any) -> Any:
        """Open the root."""
        import omnizarr

        return omnizarr.open_group(self.url, mode=mode, storage_options=self.options, **options)


Run: TypeAlias = Callable[[], object]


def _create(place: Place) -> Run:
    import omnizarr

    metadata = omnizarr.create_array({}, **ARRAY).metadata
    root = omnizarr.create_group(place.url, storage_options=place.options)
    return lambda: sum(1 for _ in root.create_hierarchy(dict.fromkeys(place.names, metadata)))


def _copy(place: Place) -> Run:
    """Make one group, and the others as links to its files: a million arrays in seconds where that is not measured."""

    def run() -> None:
        copied = Place(place.url, place.options, place.in_groups, min(EACH, place.nodes))
        _create(copied)()
        for number in range(1, math.ceil(place.nodes / EACH)):
            copy = ["/bin/cp", "-al", f"{place.url}/g0", f"{place.url}/g{number}"]
            subprocess.run(copy, check=True)  # noqa: S603

    return run


def _create_one_by_one(place: Place) -> Run:
    import omnizarr

    def run() -> None:
        root = omnizarr.create_group(place.url, storage_options=place.options)
        for name in place.names:
            root.create_array(name, **ARRAY)
        root.close()

    return run


def _members(place: Place) -> Run:
    return lambda: sum(1 for _ in place.open(use_consolidated=False).members(max_depth=None))


def _consolidate(place: Place) -> Run:
    import omnizarr

    return lambda: omnizarr.consolidate_metadata(place.url, storage_options=place.options)


def _open(place: Place) -> Run:
    return lambda: place.open(use_consolidated=False)[place.middle].shape


def _open_consolidated(place: Place) -> Run:
    return lambda: place.open(use_consolidated=True)[place.middle].shape


def _members_consolidated(place: Place) -> Run:
    return lambda: sum(1 for _ in place.open(use_consolidated=True).members(max_depth=None))


def _ls(place: Place) -> Run:
    import omnizarr

    return lambda: omnizarr.ls(place.url, recursive=True, storage_options=place.options)


def _check(place: Place) -> Run:
    import omnizarr

    return lambda: omnizarr.check(place.open().store_path)


def _du(place: Place) -> Run:
    import omnizarr

    return lambda: omnizarr.du(place.url, storage_options=place.options)


def _digest(place: Place) -> Run:
    import omnizarr

    return lambda: omnizarr.digest(place.url, storage_options=place.options)


def _add_one(place: Place) -> Run:
    return lambda: place.open("r+").create_array("g0/added" if place.in_groups else "added", **ARRAY)


def _delete_group(place: Place) -> Run:
    import omnizarr

    name = "g0" if place.in_groups else "a0"
    return lambda: omnizarr.delete_node(place.url, path=name, recursive=True, storage_options=place.options)


OPERATIONS: Final[dict[str, tuple[str, Callable[[Place], Run]]]] = {
    "create": ("create all, `create_hierarchy`", _create),
    "one-by-one": ("create all, `create_array` for each", _create_one_by_one),
    "members": ("list all", _members),
    "open": ("open one", _open),
    "ls": ("`ls --recursive`", _ls),
    "du": ("`du`", _du),
    "check": ("`check`", _check),
    "consolidate": ("consolidate", _consolidate),
    "open-consolidated": ("open one, consolidated", _open_consolidated),
    "members-consolidated": ("list all, consolidated", _members_consolidated),
    "add": ("add one, consolidated", _add_one),
    "delete": ("delete a group of 1,000 (in one group: an array), consolidated", _delete_group),
    "digest": ("`digest`", _digest),
    "check-consolidated": ("`check`, consolidated", _check),
}
"""In the order in which they are done with one hierarchy."""
DO: Final = {name: prepare for name, (_, prepare) in OPERATIONS.items()}
NOT_IN: Final = {"zip": ("add", "delete", "one-by-one")}
"""What an archive cannot do, or what takes a new directory of it each time."""


# -- other libraries -------------------------------------------------------------------------------------------------


def _zarr_root(place: Place, **options: Any) -> Any:
    import zarr

    return zarr.open_group(place.url, mode="r+", **options)


def _zarr_create(place: Place) -> Run:
    import zarr

    metadata = zarr.create_array({}, **ARRAY).metadata
    return lambda: sum(
        1 for _ in zarr.create_hierarchy(store=_zarr_store(place), nodes=dict.fromkeys(place.names, metadata))
    )


def _zarr_store(place: Place) -> Any:
    from zarr.storage import LocalStore

    return LocalStore(place.url)


def _zarr_create_one_by_one(place: Place) -> Run:
    import zarr

    def run() -> None:
        root = zarr.create_group(place.url)
        for name in place.names:
            root.create_array(name, **ARRAY)

    return run


def _zarr_members(place: Place) -> Run:
    return lambda: len(_zarr_root(place, use_consolidated=False).members(max_depth=None))


def _zarr_consolidate(place: Place) -> Run:
    import zarr

    return lambda: zarr.consolidate_metadata(_zarr_store(place))


def _zarr_open(place: Place) -> Run:
    return lambda: _zarr_root(place, use_consolidated=False)[place.middle].shape


def _zarr_open_consolidated(place: Place) -> Run:
    return lambda: _zarr_root(place, use_consolidated=True)[place.middle].shape


def _zarr_members_consolidated(place: Place) -> Run:
    return lambda: len(_zarr_root(place, use_consolidated=True).members(max_depth=None))


def _zarr_delete(place: Place) -> Run:
    return lambda: _zarr_root(place).__delitem__("g0" if place.in_groups else "a0")


def _tensorstore_spec(place: Place, name: str) -> dict[str, Any]:
    kvstore = {"driver": "file", "path": f"{place.url}/{name}", "file_io_sync": False}
    return {"driver": "zarr3", "kvstore": kvstore}


def _tensorstore_create(place: Place) -> Run:
    import tensorstore

    from benchmarks.operations import layout

    metadata = layout((4,), (4,))

    def run() -> None:
        for several in _batched(place.names, EACH):
            begun = [
                tensorstore.open({**_tensorstore_spec(place, name), "metadata": metadata, "create": True})
                for name in several
            ]
            for each in begun:
                each.result()

    return run


def _batched(names: Iterator[str], count: int) -> Iterator[list[str]]:
    batch: list[str] = []
    for name in names:
        batch.append(name)
        if len(batch) == count:
            yield batch
            batch = []
    if batch:
        yield batch


def _tensorstore_open(place: Place) -> Run:
    import tensorstore

    return lambda: tensorstore.open(_tensorstore_spec(place, place.middle), open=True).result().shape


OTHERS: Final[Mapping[str, Mapping[str, Callable[[Place], Run]]]] = {
    "zarr": {
        "create": _zarr_create,
        "one-by-one": _zarr_create_one_by_one,
        "members": _zarr_members,
        "open": _zarr_open,
        "consolidate": _zarr_consolidate,
        "open-consolidated": _zarr_open_consolidated,
        "members-consolidated": _zarr_members_consolidated,
        "delete": _zarr_delete,
    },
    "tensorstore": {"create": _tensorstore_create, "open": _tensorstore_open},
}


# -- measured ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """What an operation took.

    Attributes
    ----------
    where, operation, library : str
    nodes : int
        Arrays.
    wall, cpu : float
        Seconds.
    memory : int
        Bytes above what the process had before.
    peak : int
        Bytes of the whole process.
    requests : int or None
    """

    where: str
    operation: str
    library: str
    nodes: int
    wall: float
    cpu: float
    memory: int
    peak: int
    requests: int | None = None


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def work(request: Mapping[str, Any]) -> dict[str, Any]:
    """Do an operation in this process, with few arrays and then with all, and return what it took."""
    warnings.filterwarnings("ignore", category=UserWarning)  # of zarr-python: that v3 does not define what it writes
    library, operation = request["library"], request["operation"]
    prepare = OTHERS[library][operation] if library != "omnizarr" else {**DO, "copy": _copy}[operation]
    prepare(Place(**request["few"]))()
    run = prepare(Place(**request["all"]))
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins again
    before, cpu, wall = _status("VmRSS"), time.process_time(), time.perf_counter()
    run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = _status("VmHWM")
    return {"wall": wall, "cpu": cpu, "memory": max(0, peak - before), "peak": peak}


@dataclass
class Where:
    """A directory or a bucket in which hierarchies are made."""

    folder: Path
    kind: str
    servers: Any = None

    def place(self, name: str, nodes: int) -> Place:
        """Return a hierarchy."""
        if self.servers is not None:
            bucket = self.servers.bucket
            return Place(f"s3://{bucket.name}/{name}", bucket.options, in_groups=True, nodes=nodes)
        ending = {"sqlite": ".sqlite", "zip": ".zip"}.get(self.kind, "")
        return Place(str(self.folder / f"{name}{ending}"), None, self.kind != "one-group", nodes)


@contextmanager
def somewhere(folder: Path, kind: str) -> Iterator[Where]:
    """Yield a place for hierarchies."""
    if kind != "s3":
        yield Where(folder, kind)
        return
    from benchmarks import delayed

    with delayed.started(folder, 0, notes=True) as servers:
        if servers.bucket is None:
            sys.exit(servers.about)
        yield Where(folder, kind, servers)


def measured(options: argparse.Namespace, kind: str, nodes: int, library: str, folder: Path) -> Iterator[Point]:
    """Make a hierarchy, do all operations with it, and yield what each took."""
    names = [name for name in OPERATIONS if library == "omnizarr" or name in OTHERS[library]]
    names = [name for name in names if name not in NOT_IN.get(kind, ())]
    with somewhere(folder, kind) as where:
        for name in names:
            if name != "create" and (name in options.skip or (options.only and name not in options.only)):
                continue
            if name == "one-by-one" and nodes > options.one_by_one:
                continue
            hierarchy = "two" if name == "one-by-one" else "one"
            asked: dict[str, Any] = {
                "library": library, "operation": "copy" if options.copies and name == "create" else name,
                "few": asdict(where.place(f"few-{hierarchy}", FEW)), "all": asdict(where.place(hierarchy, nodes)),
            }  # fmt: skip
            before = where.servers.requests() if where.servers is not None else 0
            try:
                found = fresh.run(__spec__.name, asked, options.patience)
            except fresh.Failed as error:
                print(f"{kind:<10} {library:<12} {name:<22} {nodes:>9,}  {error}", file=sys.stderr, flush=True)
                if name == "create":
                    return
                continue
            requests = where.servers.requests() - before if where.servers is not None else None
            if not where.servers and hierarchy == "two":
                remove(Path(asked["all"]["url"]))
            if asked["operation"] == "copy":
                continue
            yield Point(kind, name, library, nodes, **found, requests=requests)


# -- told ----------------------------------------------------------------------------------------------------------


def exponent(points: Sequence[Point], cost: str) -> float | None:
    """Return the slope between the two largest sizes on logarithmic axes; None where it cannot be told."""
    known = sorted((each for each in points if getattr(each, cost)), key=lambda each: each.nodes)[-2:]
    if len(known) < 2 or known[0].nodes == known[1].nodes:
        return None
    less, more = known
    return round(math.log(getattr(more, cost) / getattr(less, cost)) / math.log(more.nodes / less.nodes), 2)


def _seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 100 else f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def _grows(value: float | None) -> str:
    return "" if value is None else f"**{value:.2f}**" if value > LINEAR else f"{value:.2f}"


def table(points: Sequence[Point], kind: str) -> list[str]:
    """Return the table of a place, at its largest size."""
    ours = [each for each in points if each.where == kind and each.library == "omnizarr"]
    if not ours:
        return []
    largest = max(each.nodes for each in ours)
    is_remote = kind == "s3"
    lines = [f"{largest:,} arrays {PLACES[kind]}:", ""]
    lines.append("| | seconds | CPU time | growth | memory | for each array |" + (" requests |" if is_remote else ""))
    lines.append("|---|--:|--:|--:|--:|--:|" + ("--:|" if is_remote else ""))
    for name, (about, _) in OPERATIONS.items():
        title = about
        curve = [each for each in ours if each.operation == name]
        if not curve:
            continue
        last = max(curve, key=lambda each: each.nodes)
        if last.nodes != largest:
            title += f" ({last.nodes:,} arrays)"
        cells = [
            title, _seconds(last.wall), _seconds(last.cpu), _grows(exponent(curve, "cpu")),
            f"{last.memory / 2**20:,.0f} MiB", f"{last.memory / last.nodes:,.0f} B",
        ]  # fmt: skip
        if is_remote:
            cells.append(f"{last.requests:,}")
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def beside(points: Sequence[Point]) -> list[str]:
    """Return the table of all libraries."""
    others = {each.nodes for each in points if each.library != "omnizarr"}
    if not others:
        return []
    size = max(others)
    found = {(each.operation, each.library): each for each in points if each.where == "groups" and each.nodes == size}
    lines = [f"Beside other libraries, {size:,} arrays {PLACES['groups']}, CPU time and memory:", ""]
    lines += ["| | " + " | ".join(PEERS.values()) + " |", "|---|" + "--:|" * len(PEERS)]
    for name, (title, _) in OPERATIONS.items():
        row = [found.get((name, library)) for library in PEERS]
        if any(row[1:]):
            cells = ["" if each is None else f"{_seconds(each.cpu)}, {each.memory / 2**20:,.0f} MiB" for each in row]
            lines.append(f"| {title} | {' | '.join(cells)} |")
    return [*lines, ""]


def markdown(points: Sequence[Point], about: Sequence[str]) -> str:
    """Return all tables."""
    return "\n".join([*about, "", *(line for kind in PLACES for line in table(points, kind)), *beside(points)])


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million", description=__doc__)
    parser.add_argument("--nodes", nargs="+", type=int, default=[1000, 10_000, 100_000], help="numbers of arrays")
    parser.add_argument("--places", nargs="+", choices=PLACES, default=list(PLACES))
    parser.add_argument(
        "--only", nargs="+", choices=list(OPERATIONS), help="these operations, and those that they need"
    )
    parser.add_argument(
        "--copies", action="store_true", help="make the groups of a directory as links to the first, unmeasured"
    )
    parser.add_argument("--skip", nargs="+", choices=list(OPERATIONS), default=[], help="not these")
    parser.add_argument("--one-by-one", type=int, default=10**5, help="up to so many arrays are also made one by one")
    parser.add_argument("--peers", type=int, metavar="N", help="also other libraries, with so many arrays")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds for an operation")
    parser.add_argument("--directory", type=Path, help="where to make files; default: a temporary directory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save all figures, with those that it has")
    parser.add_argument("--docs", action="store_true", help="put the tables into docs/benchmarks-data.md")
    parser.add_argument("--load", action="store_true", help="measure nothing: report on the figures of --json")
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(work(options.work)))
        return
    about, points = [], []
    if options.json and options.json.exists():
        saved = json.loads(options.json.read_text(encoding="utf-8"))
        about, points = saved["about"], [Point(**each) for each in saved["points"]]
    if not options.load:
        about = sorted({*about, _measure(options, points)})
    text = markdown(points, about)
    print(text)
    if options.docs:
        reports.into_page(reports.PAGE, text, *MARKS)


def _measure(options: argparse.Namespace, points: list[Point]) -> str:
    """Add what was asked for to the points, in the file, too; return when and where it was measured."""
    load = os.getloadavg()[0]
    runs = [(kind, nodes, "omnizarr") for nodes in sorted(options.nodes) for kind in options.places]
    runs += [("groups", options.peers, library) for library in PEERS if options.peers]
    for kind, nodes, library in dict.fromkeys(runs):
        folder = Path(tempfile.mkdtemp(prefix="million-", dir=options.directory))
        try:
            facts = running.about(folder)
            sentence = (
                f"Measured {facts['date']} on {facts['processor']}, {facts['file system']}, CPython {facts['python']}, "
                f"load {load:.1f} before it began, with "
                + ", ".join(f"{title} {fresh.version_of(name)}" for name, title in PEERS.items())
                + "."
            )
            for each in measured(options, kind, nodes, library, folder):
                same = each.where, each.operation, each.library, each.nodes
                points[:] = [old for old in points if (old.where, old.operation, old.library, old.nodes) != same]
                points.append(each)
                asked = "" if each.requests is None else f"{each.requests:>11,} requests"
                took = f"{_seconds(each.wall):>9} {_seconds(each.cpu):>9} CPU {each.memory / 2**20:>8,.1f} MiB"
                print(
                    f"{kind:<10} {library:<12} {each.operation:<22} {nodes:>9,} {took} {each.memory / nodes:>8,.0f} B"
                    f"{asked}",
                    file=sys.stderr,
                    flush=True,
                )
                fresh.save(options.json, {"about": [sentence], "points": [asdict(point) for point in points]})
        finally:
            remove(folder)
    return sentence


if __name__ == "__main__":
    main()
