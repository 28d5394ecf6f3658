"""Measurements of reading and writing where each request takes 20 ms: over HTTP and S3, beside other libraries.

``python -m benchmarks.latency [--quick] [--only WORD ...] [--peers NAME ...] [--json FILE] [--docs]``. Servers run on
127.0.0.1 (`benchmarks.delayed`). Each library is measured as it comes, and with the settings that serve it best, each
in processes of its own, in turn; what it reads is compared with what was stored, what it writes with the bytes that
must be there. A ratio compares omnizarr as it comes with the best setting of the best other library; a second one,
for chunks over HTTP, with a program in Rust that only fetches them (`benchmarks.bare_client`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from benchmarks import bare_client, fresh, reports, running
from benchmarks.peers.contract import Unsupported
from benchmarks.remote import PEERS, Place, Remote
from benchmarks.workloads import AnyArray

PATIENCE: Final = 300.0  # seconds for one process
SLOW: Final = 4.0  # seconds: what takes longer is done once per process
GROUP: Final = "consolidated"
MANY: Final = "members"
NODES: Final = {GROUP: 500, MANY: 1000}
BARE: Final = bare_client.NAME
EVERYONE: Final = [*PEERS, BARE]
Verb = Literal["read", "open", "consolidated", "members", "write"]


# -- what is stored ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """An array, float32."""

    name: str
    shape: tuple[int, int]
    chunks: tuple[int, int]
    codec: Literal["raw", "zstd"] = "raw"
    shards: tuple[int, int] | None = None

    def values(self) -> AnyArray:
        """Return walks in steps of 1/16: what a sensor of limited precision sees; shrinks to about a quarter."""
        steps = np.random.default_rng(7).integers(-3, 4, self.shape, dtype=np.int8)
        return np.cumsum(steps, axis=-1, dtype=np.float32) / 16

    def create(self, folder: Path) -> Any:
        """Make the array, without chunks."""
        import omnizarr

        zstd = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
        return omnizarr.create_array(
            folder / self.name, shape=self.shape, chunks=self.chunks, shards=self.shards, dtype="float32",
            compressors=None if self.codec == "raw" else zstd, fill_value=0,
        )  # fmt: skip

    def chunk_bytes(self, values: AnyArray) -> dict[str, bytes]:
        """Return what must be stored, if raw."""
        rows, columns = self.chunks
        return {
            f"{self.name}/c/{i}/{j}": values[i * rows : (i + 1) * rows, j * columns : (j + 1) * columns].tobytes()
            for i, j in itertools.product(range(self.shape[0] // rows), range(self.shape[1] // columns))
        }


def _chunks(name: str, rows: int, columns: int, side: int, codec: Literal["raw", "zstd"] = "raw") -> Data:
    return Data(name, (rows * side, columns * side), (side, side), codec)


DATA: Final = {
    one.name: one
    for one in (
        _chunks("raw64", 8, 8, 64),
        _chunks("raw1000", 25, 40, 64),
        _chunks("zstd64", 8, 8, 128, "zstd"),
        _chunks("zstd1000", 25, 40, 128, "zstd"),
        Data("shards", (2048, 2048), (64, 64), "zstd", (1024, 1024)),
        _chunks("written", 16, 16, 64),
        _chunks("written1000", 25, 40, 64),
    )
}


def make(folder: Path, values: Path) -> None:
    """Store everything in files, and the values of arrays beside."""
    import omnizarr

    for data in DATA.values():
        array = data.create(folder)
        numbers = data.values()
        np.save(values / f"{data.name}.npy", numbers)
        if not data.name.startswith("written"):
            array[...] = numbers
    for name, count in NODES.items():
        group = omnizarr.create_group(folder / name)
        for number in range(count):
            group.create_array(f"a{number:04}", shape=(100, 100), chunks=(10, 10), dtype="float32", compressors=None)
    omnizarr.consolidate_metadata(folder / GROUP)


# -- what is done --------------------------------------------------------------------------------------------------

EVERYTHING: Final = ((0, None), (0, None))


@dataclass(frozen=True)
class Case:
    """One row of the table."""

    title: str
    verb: Verb
    data: str
    window: tuple[tuple[int, int | None], ...] = EVERYTHING
    transports: tuple[Literal["http", "s3"], ...] = ("http", "s3")

    @property
    def slices(self) -> tuple[slice, ...]:
        return tuple(slice(*some) for some in self.window)

    @property
    def reads_all(self) -> bool:
        """Whether it reads whole chunks, each of them stored by itself."""
        return self.verb == "read" and self.window == EVERYTHING and DATA[self.data].shards is None


CASES: Final = (
    Case("read 64 chunks of 16 KiB, raw", "read", "raw64"),
    Case("read 1,000 chunks of 16 KiB, raw", "read", "raw1000"),
    Case("read 64 chunks of 64 KiB, zstd", "read", "zstd64"),
    Case("read 1,000 chunks of 64 KiB, zstd", "read", "zstd1000"),
    Case("a window: 25 chunks of 4 shards", "read", "shards", ((900, 1156), (900, 1156))),
    Case("open an array, read one element", "open", "raw64", ((70, 71), (70, 71))),
    Case("open 500 consolidated arrays", "consolidated", GROUP),
    Case("find and open 1,000 arrays", "members", MANY, transports=("s3",)),
    Case("write 256 chunks of 16 KiB, raw", "write", "written", transports=("s3",)),
    Case("write 1,000 chunks of 16 KiB, raw", "write", "written1000", transports=("s3",)),
)


def _act(peer: Remote, case: Case, values: AnyArray | None, name: str) -> tuple[Callable[[], Any], Any]:
    """Return what is timed, and what it must return."""
    if case.verb in {"consolidated", "members"}:
        look = peer.consolidated if case.verb == "consolidated" else peer.members
        return lambda: look(case.data), {f"a{number:04}": (100, 100) for number in range(NODES[case.data])}
    assert values is not None
    if case.verb == "open":
        return lambda: peer.read(peer.open(case.data), case.slices), values[case.slices]
    array = peer.open(name)
    if case.verb == "write":
        return lambda: peer.write(array, values), None
    return lambda: peer.read(array, case.slices), values[case.slices]


def work(request: dict[str, Any]) -> dict[str, Any]:
    """Measure one case with one peer, after a trial: that is what a process of its own does."""
    entry, case = PEERS[request["peer"]], CASES[request["case"]]
    place = Place(request["url"], request["options"])
    values = None if case.data in NODES else np.load(Path(request["values"], f"{case.data}.npy"))
    try:
        peer = entry.of(place, **entry.settings)
        version = peer.version()
        action, expected = _act(peer, case, values, request["name"])
        began = time.perf_counter()
        result = action()
        took = time.perf_counter() - began
    except (Unsupported, ImportError) as error:
        return {"reason": str(error)}
    if isinstance(expected, np.ndarray):
        right = np.array_equal(np.asarray(result).reshape(expected.shape), expected)
    else:
        right = result == expected
    if not right:
        return {"reason": "wrong values"}
    del result
    seconds, processor = [], []
    for _ in range(request["runs"] if took < SLOW else 1):
        spent, began = fresh.processor_seconds(), time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - began)
        processor.append(fresh.processor_seconds() - spent)
        del result
    return {"seconds": seconds, "processor": processor, "version": version}


# -- who does it ---------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """What one case gave over one transport: seconds, and seconds of the processor, by peer."""

    case: Case
    transport: str
    seconds: dict[str, list[float]]
    processor: dict[str, list[float]]
    reasons: dict[str, str]

    @property
    def title(self) -> str:
        return f"{self.transport.upper()}: {self.case.title}"

    def median(self, peer: str) -> float:
        return statistics.median(self.seconds[peer])

    def best(self, peers: Iterable[str]) -> str | None:
        """Return which of some peers was fastest; None if none has done it."""
        return min((peer for peer in peers if peer in self.seconds), key=self.median, default=None)

    def to_json(self) -> dict[str, Any]:
        found = {name: {"median": self.median(name), "least": min(self.seconds[name])} for name in self.seconds}
        return {
            "title": self.title, "seconds": self.seconds, "processor": self.processor, "reasons": self.reasons,
            "summary": found,
        }  # fmt: skip

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Row | None:
        """Take what `to_json` returned; None if there is no such case any more."""
        for case, transport in itertools.product(CASES, ("http", "s3")):
            row = cls(case, transport, document["seconds"], document["processor"], document["reasons"])
            if row.title == document["title"]:
                return row
        return None


@dataclass(frozen=True)
class Bench:
    """What is needed to measure."""

    python: str
    peers: list[str]
    places: dict[str, Place]
    files: Path
    values: Path
    rounds: int
    runs: int
    prepare: Callable[[Data, str], None]  # makes the array of this name that is written
    written: Callable[[Data, str], bool]  # tells whether it is right

    def measure(self, number: int, transport: str) -> tuple[Row, dict[str, str]]:
        """Return the row of a case, and versions."""
        case, place = CASES[number], self.places[transport]
        row, versions = Row(case, transport, {}, {}, {}), {}
        peers = [peer for peer in self.peers if peer != BARE or (transport == "http" and case.reads_all)]
        for _ in range(self.rounds):
            for peer in random.sample(peers, len(peers)):
                if peer in row.reasons:
                    continue
                name = f"{case.data}-{peer}" if case.verb == "write" else case.data
                if case.verb == "write" and peer not in row.seconds:
                    self.prepare(DATA[case.data], name)
                request = {
                    "peer": peer, "case": number, "url": place.url, "options": dict(place.options),
                    "values": str(self.values), "runs": self.runs, "name": name,
                }  # fmt: skip
                found = (
                    self.fetch_bare(case, place)
                    if peer == BARE
                    else fresh.ask("benchmarks.latency", request, PATIENCE, self.python, **PEERS[peer].environment)
                )
                if case.verb == "write" and "reason" not in found and not self.written(DATA[case.data], name):
                    found = {"reason": "wrong values written"}
                if "reason" in found:
                    row.reasons[peer] = found["reason"]
                    row.seconds.pop(peer, None)
                    continue
                versions[label_of(peer)] = found["version"]
                row.seconds.setdefault(peer, []).extend(found["seconds"])
                row.processor.setdefault(peer, []).extend(found["processor"])
        return row, versions

    def fetch_bare(self, case: Case, place: Place) -> dict[str, Any]:
        """Fetch the chunks of a case without a library, with as many requests at once as omnizarr sends."""
        from omnizarr.stores.remote.object_access import CONCURRENCY

        chunks = sorted(path for path in (self.files / case.data / "c").rglob("*") if path.is_file())
        size = sum(path.stat().st_size for path in chunks)
        paths = [path.relative_to(self.files).as_posix() for path in chunks]
        return bare_client.fetch(place.url, paths, size, CONCURRENCY, self.runs, PATIENCE)


# -- tables --------------------------------------------------------------------------------------------------------


def ours(row: Row) -> str | None:
    """Return which of our engines the ratio is about: the native one if it exists."""
    return next((peer for peer, entry in PEERS.items() if entry.is_ours and peer in row.seconds), None)


def ratio(row: Row) -> float | None:
    """Return the ratio of omnizarr to the best setting of the best other library."""
    our, best = ours(row), row.best(peer for peer, entry in PEERS.items() if not entry.is_ours)
    return None if our is None or best is None else row.median(our) / row.median(best)


def bare_ratio(row: Row) -> float | None:
    """Return the ratio of omnizarr to a client that only fetches."""
    our = ours(row)
    return None if our is None or BARE not in row.seconds else row.median(our) / row.median(BARE)


def label_of(peer: str) -> str:
    """Return the name that readers see."""
    return bare_client.LABEL if peer == BARE else PEERS[peer].label


def how(peer: str) -> str:
    """Return with which settings a peer takes part; nothing: as it comes."""
    return "" if peer == BARE else PEERS[peer].how


def terminal(row: Row) -> None:
    """Print a row, fastest first."""
    ratios = {"the best of others": ratio(row), bare_client.LABEL: bare_ratio(row)}
    print(f"\n{row.title}" + "".join(f", {found:.2f} × {name}" for name, found in ratios.items() if found is not None))
    for peer in sorted(row.seconds, key=row.median):
        cells = [row.median(peer), min(row.seconds[peer]), statistics.median(row.processor[peer])]
        print(
            f"  {label_of(peer) + (f' ({how})' if how else ''):<42}"
            + "".join(f"{reports.amount(cell, 's'):>12}" for cell in cells)
        )
    for peer, reason in row.reasons.items():
        print(f"  {peer}: {reason}")
    sys.stdout.flush()


def markdown(rows: list[Row], about: str, versions: dict[str, str]) -> str:
    """Return a table: for each library as it comes, and below it the best setting where that is another."""
    labels = list(dict.fromkeys(entry.label for entry in PEERS.values()))
    named = [*labels, bare_client.LABEL]
    lines = [about, "", "Took part: " + "; ".join(f"{name} ({versions[name]})" for name in named if name in versions)]
    lines[-1] += "."
    columns = [*labels, "to the best", bare_client.LABEL, f"to {bare_client.LABEL}"]
    lines += ["", "| | " + " | ".join(columns) + " |", "|---|" + "--:|" * len(columns)]
    for row in rows:
        first = row.best(peer for peer, entry in PEERS.items() if not entry.is_ours)
        cells = [_cell(row, label, first) for label in labels]
        bare = _amount(row, BARE) if BARE in row.seconds else ""
        ratios = ["" if found is None else f"{found:.2f} ×" for found in (ratio(row), bare_ratio(row))]
        lines.append("| " + " | ".join([row.title, *cells, ratios[0], bare, ratios[1]]) + " |")
    return "\n".join(lines) + "\n"


def rows_of(document: dict[str, Any]) -> list[Row]:
    """Return the rows of a run that was saved."""
    return [row for one in document["rows"].values() if (row := Row.from_json(one)) is not None]


def markdown_of(document: dict[str, Any]) -> str:
    """Return the table of a run that was saved."""
    return markdown(rows_of(document), document["about"], document["versions"])


def _cell(row: Row, label: str, first: str | None) -> str:
    peers = [peer for peer, entry in PEERS.items() if entry.label == label]
    plain = next((peer for peer in peers if not PEERS[peer].how and peer in row.seconds), None)
    best = row.best(peers)
    parts = []
    for peer in dict.fromkeys(peer for peer in (plain, best) if peer is not None):
        text = f"**{_amount(row, peer)}**" if peer == first else _amount(row, peer)
        parts.append(text + (f" ({PEERS[peer].how})" if PEERS[peer].how else ""))
    return "; ".join(parts)


def _amount(row: Row, peer: str) -> str:
    return reports.amount(row.median(peer), "s").replace(" ", "\N{NO-BREAK SPACE}")


# -- the whole -----------------------------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    """Return what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round of two, instead of three of three")
    parser.add_argument("--rounds", type=int, help="processes for each figure")
    parser.add_argument("--runs", type=int, help="how many times each process measures")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="rows with one of these in the title")
    parser.add_argument("--peers", nargs="+", choices=EVERYONE, default=EVERYONE, metavar="NAME", help="only these")
    parser.add_argument("--seconds", type=float, default=0.02, help="how long a request takes")
    parser.add_argument("--python", default=sys.executable, help="the interpreter in which libraries are")
    parser.add_argument("--directory", type=Path, help="where to make files; default: a temporary directory")
    parser.add_argument("--json", type=Path, metavar="FILE", help="save all figures")
    parser.add_argument(
        "--docs",
        action="store_true",
        help="save all figures in docs/benchmarks.json, and write the pages that show them",
    )
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def chosen(words: list[str], places: dict[str, Place]) -> Iterator[tuple[int, str]]:
    """Yield cases and transports in whose titles there is one of the words."""
    for transport in places:
        for number, case in enumerate(CASES):
            if transport in case.transports and any(word in Row(case, transport, {}, {}, {}).title for word in words):
                yield number, transport


def measure(options: argparse.Namespace, home: Path) -> dict[str, Any]:
    """Start servers, store, measure, and return everything as JSON."""
    from benchmarks import delayed

    values = home / "values"
    values.mkdir()
    rows: list[Row] = []
    versions: dict[str, str] = {}
    with delayed.started(home, options.seconds) as servers:
        make(servers.files, values)
        places = {"http": Place(servers.url)}
        bucket = servers.bucket
        if bucket is not None:
            bucket.upload(servers.files)
            places["s3"] = Place(f"s3://{bucket.name}", bucket.options)

        def prepare(data: Data, name: str) -> None:
            bucket.put(f"{name}/zarr.json", (servers.files / data.name / "zarr.json").read_bytes())

        def is_written(data: Data, name: str) -> bool:
            expected = data.chunk_bytes(data.values())
            return bucket.has({key.replace(data.name, name, 1): value for key, value in expected.items()})

        bench = Bench(
            options.python, options.peers, places, servers.files, values, options.rounds or (1 if options.quick else 3),
            options.runs or (2 if options.quick else 3), prepare, is_written,
        )  # fmt: skip
        facts = running.about(home)
        about = (
            f"Measured {facts['date']} on {facts['processor']}, {facts['system']}, CPython {facts['python']}, "
            f"{options.seconds * 1e3:g} ms per request ({servers.about}), load {facts['load']} before it began, "
            f"medians of {bench.rounds} processes with {bench.runs} runs each."
        )
        print(about)
        for number, transport in chosen(options.only, places):
            row, found = bench.measure(number, transport)
            versions |= found
            rows.append(row)
            terminal(row)
            document = {
                "about": about, "seconds per request": options.seconds, "versions": versions,
                "rows": {one.title: one.to_json() for one in rows},
            }  # fmt: skip
            if options.json:
                options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return document


def main() -> None:
    """Measure, print, save."""
    options = parse()
    if options.work:
        print(json.dumps(work(options.work)), flush=True)
        os._exit(0)  # whatever threads libraries have
    with tempfile.TemporaryDirectory(prefix="latency-", dir=options.directory) as place:
        document = measure(options, Path(place))
    print("\n" + markdown_of(document))
    if options.docs:
        from benchmarks import pages

        pages.save("remote", document)
        pages.main()


if __name__ == "__main__":
    main()
