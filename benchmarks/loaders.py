"""Measurements of loaders: shuffled batches of 64 rows or windows, from a disk, over HTTP and S3, beside others.

``python -m benchmarks.loaders [--quick] [--only WORD ...] [--peers NAME ...] [--python PATH] [--json FILE] [--docs]``.
Each figure is that of a process of its own, which opens the array and loads some samples in random order, after a
small array has been loaded. Libraries take turns. The consumer adds up all numbers of each batch, and the sums are
compared with what was stored. Over HTTP and S3, the server waits 20 ms before it answers a request
(`benchmarks.delayed`).

"TensorStore" is what one writes by hand: two batches of futures in flight, each read as one `tensorstore.Batch`, with a
cache as large as the memory of the loader. "DataLoader" is torch's with two forked workers over zarr-python. "in order"
is omnizarr, which reads the same bytes from the first to the last, in slabs of chunks: no loader can be faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from benchmarks import delayed, fresh, reports, running
from benchmarks.workloads import AnyArray

SECONDS: Final = 0.020  # that the server waits
PATIENCE: Final = 300.0  # seconds for one process
BATCH: Final = 64
MEMORY: Final = 256_000_000
WORKERS: Final = 2
MARKS: Final = "<!-- loaders: begin -->", "<!-- loaders: end -->"
Place = Literal["disk", "HTTP", "S3"]
PLACES: Final[tuple[Place, ...]] = ("disk", "HTTP", "S3")
WITHOUT_S3: Final[tuple[Place, ...]] = ("disk", "HTTP")
Kind = Literal["rows", "windows"]


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    rows: int
    side: int
    windows: int
    slow: int  # samples of those who load them one by one
    rounds: int


FULL: Final = Size(rows=16_384, side=256, windows=128, slow=128, rounds=3)
QUICK: Final = Size(rows=2_048, side=128, windows=64, slow=64, rounds=1)
TRIAL: Final = Size(rows=64, side=64, windows=1, slow=64, rounds=1)
"""What each process loads first, so that imports and connections do not count."""


# -- what is stored ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """An array of uint16 in zstd chunks."""

    title: str
    kind: Kind
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None = None

    def make(self, path: Path, values: AnyArray) -> None:
        shards = None if self.shards is None else tuple(map(min, self.shards, values.shape))
        import_module("omnizarr").create_array(
            path, data=values, chunks=self.chunks, shards=shards, compressors=[{"name": "zstd"}]
        )


DATA: Final = {
    "rows": Data("rows of 2 KiB, chunks of 64 rows", "rows", (64, 1024)),
    "rows-shards": Data("rows of 2 KiB, chunks of 64 rows in shards of 1,024", "rows", (64, 1024), (1024, 1024)),
    "windows": Data("windows of 64³, chunks of 32³", "windows", (32, 32, 32)),
    "windows-shards": Data("windows of 64³, chunks of 32³ in shards of 128³", "windows", (32,) * 3, (128,) * 3),
}


def values_of(kind: Kind, size: Size) -> AnyArray:
    """Return a smooth signal under the noise of a camera."""
    shape = (size.rows, 1024) if kind == "rows" else (size.side,) * 3
    noise = np.random.default_rng(7).integers(0, 24, shape, dtype=np.uint16)
    return noise + (1000 + 300 * np.sin(np.arange(shape[-1]) / 20)).astype("uint16")


def places_of(size: Size) -> AnyArray:
    """Return where windows begin."""
    return np.random.default_rng(1).integers(0, size.side - 64 + 1, (size.windows, 3))


class Samples:
    """The samples of an array by number, and their order."""

    def __init__(self, array: Any, kind: Kind, size: Size) -> None:
        self.array = array
        self.places = None if kind == "rows" else places_of(size).tolist()
        self.count = size.rows if kind == "rows" else size.windows
        self.order = np.random.default_rng(2).permutation(self.count)

    def box(self, index: int) -> Any:
        if self.places is None:
            return index
        return tuple(slice(start, start + 64) for start in self.places[index])

    def batches(self, most: int) -> Iterator[list[int]]:
        for at in range(0, min(most, self.count), BATCH):
            yield self.order[at : at + BATCH].tolist()


# -- who loads them: each returns the number of samples, their sum, and what else it knows --------------------------


Found = tuple[int, int, dict[str, int]]
S3_OPTIONS: Final = "BENCHMARK_S3_OPTIONS"
"""The environment variable with what reaches a bucket, as JSON."""


def opened(place: str) -> Any:
    """Return an array of omnizarr."""
    options = json.loads(os.environ[S3_OPTIONS]) if place.startswith("s3:") else None
    return import_module("omnizarr").open_array(place, mode="r", storage_options=options)


def kvstore_of(place: str) -> Any:
    """Return where TensorStore finds an array; it has the keys from the environment."""
    if not place.startswith("s3:"):
        return place if place.startswith("http") else f"file://{place}/"
    options = json.loads(os.environ[S3_OPTIONS])
    os.environ["AWS_ACCESS_KEY_ID"] = options["access_key_id"]
    os.environ["AWS_SECRET_ACCESS_KEY"] = options["secret_access_key"]
    bucket, _, path = place.removeprefix("s3://").partition("/")
    where = {"bucket": bucket, "path": path, "endpoint": options["endpoint"], "aws_region": options["region"]}
    return {"driver": "s3", **where}


def total(batch: Any) -> int:
    """Return the sum of a batch: what a consumer does with it."""
    return int(np.asarray(batch).sum(dtype=np.uint64))


def _omnizarr(place: str, kind: Kind, size: Size) -> Found:
    omnizarr = import_module("omnizarr")
    array = opened(place)
    source = array if kind == "rows" else omnizarr.data.windows(array, 64, at=places_of(size))
    loader = omnizarr.data.Loader({"x": source}, BATCH, shuffle="full", seed=1, memory=MEMORY)
    found = sum(total(batch["x"]) for batch in loader)
    return loader.stats.samples, found, {"reads": loader.stats.reads}


def _in_order(place: str, kind: Kind, size: Size) -> Found:
    array = opened(place)
    step = array.shards[0] if array.shards else 8 * array.chunks[0]
    found = sum(total(array[at : at + step]) for at in range(0, len(array), step))
    return len(array) if kind == "rows" else size.windows, found, {}


def _tensorstore(place: str, kind: Kind, size: Size) -> Found:
    ts = import_module("tensorstore")
    pool = {"cache_pool": {"total_bytes_limit": MEMORY}}
    array = ts.open({"driver": "zarr3", "kvstore": kvstore_of(place)}, context=ts.Context(pool), read=True).result()
    samples = Samples(array, kind, size)

    def begin(indexes: list[int]) -> list[Any]:
        with ts.Batch() as batch:
            return [array[samples.box(index)].read(batch=batch) for index in indexes]

    count = found = 0
    waiting: deque[list[Any]] = deque()
    for indexes in [*samples.batches(samples.count), None]:
        if indexes is not None:
            waiting.append(begin(indexes))
        while waiting and (indexes is None or len(waiting) > 2):  # two batches ahead
            batch = np.stack([future.result() for future in waiting.popleft()])
            count += len(batch)
            found += total(batch)
    return count, found, {}


class _Dataset:
    """A map-style dataset of torch over zarr-python, which each worker opens."""

    def __init__(self, place: str, kind: Kind, size: Size, pipeline: str | None) -> None:
        self._of = place, kind, size, pipeline
        self._samples: Samples | None = None

    def __getitem__(self, index: int) -> Any:
        if self._samples is None:
            zarr = import_module("zarr")
            place, kind, size, pipeline = self._of
            if pipeline is not None:
                zarr.config.set({"codec_pipeline.path": pipeline})
            self._samples = Samples(zarr.open_array(place, mode="r"), kind, size)
        return self._samples.array[self._samples.box(index)]


def _dataloader(pipeline: str | None) -> Callable[[str, Kind, Size], Found]:
    def load(place: str, kind: Kind, size: Size) -> Found:
        data = import_module("torch.utils.data")
        samples = Samples(None, kind, size)
        some = samples.order[: size.slow].tolist()
        loader = data.DataLoader(
            _Dataset(place, kind, size, pipeline), BATCH, sampler=some, num_workers=WORKERS, collate_fn=np.stack,
            multiprocessing_context="fork",
        )  # fmt: skip
        count = found = 0
        for batch in loader:
            count += len(batch)
            found += total(batch)
        return count, found, {}

    return load


def _xbatcher(place: str, kind: Kind, size: Size) -> Found:
    array = import_module("zarr").open_array(place, mode="r")
    xarray, xbatcher = import_module("xarray"), import_module("xbatcher")
    variable = xarray.DataArray(import_module("dask.array").from_zarr(array), dims=("row", "column"), name="x")
    made = xbatcher.BatchGenerator(variable, {"row": 1, "column": 1024})
    samples = Samples(made, kind, size)
    count = found = 0
    for indexes in samples.batches(size.slow):
        batch = np.stack([made[index].values[0] for index in indexes])
        count += len(batch)
        found += total(batch)
    return count, found, {}


def _h5py(place: str, kind: Kind, size: Size) -> Found:
    with import_module("h5py").File(f"{place}.h5", "r", rdcc_nbytes=MEMORY, rdcc_nslots=10_007) as file:
        samples = Samples(file["v"], kind, size)
        count = found = 0
        for indexes in samples.batches(samples.count):
            batch = np.stack([samples.array[samples.box(index)] for index in indexes])
            count += len(batch)
            found += total(batch)
    return count, found, {}


@dataclass(frozen=True)
class Peer:
    """A library, and how it is used."""

    label: str
    load: Callable[[str, Kind, Size], Found]
    package: str
    places: tuple[Place, ...] = PLACES
    kinds: tuple[Kind, ...] = ("rows", "windows")
    is_slow: bool = False


PEERS: Final = {
    "omnizarr": Peer("omnizarr", _omnizarr, "omnizarr"),
    "in-order": Peer("in order", _in_order, "omnizarr"),
    "tensorstore": Peer("TensorStore", _tensorstore, "tensorstore"),
    "zarr": Peer("DataLoader, zarr-python", _dataloader(None), "zarr", WITHOUT_S3, is_slow=True),
    "zarrs": Peer("DataLoader, zarrs", _dataloader("zarrs.ZarrsCodecPipeline"), "zarrs", ("disk",), is_slow=True),
    "xbatcher": Peer("xbatcher", _xbatcher, "xbatcher", ("disk",), ("rows",), is_slow=True),
    "h5py": Peer("h5py", _h5py, "h5py", ("disk",)),
}
"""The libraries that take part. Those that load one sample after the other load fewer."""


# -- one process -------------------------------------------------------------------------------------------------------


def work(request: dict[str, Any]) -> dict[str, Any]:
    """Load samples, and return what that took for each: that is what a process of its own does."""
    peer, size, kind = PEERS[request["peer"]], Size(**request["size"]), request["kind"]
    try:
        peer.load(request["trial"], kind, TRIAL)
        if peer.is_slow:
            import_module("zarr")  # which only the workers have imported
        np.ones(MEMORY, np.uint8)  # a virtual machine gets memory slowly when it is first touched
        before = _resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the most that it had
        spent, began = fresh.processor_seconds(), time.perf_counter()
        count, found, known = peer.load(request["place"], kind, size)
        seconds, processor = time.perf_counter() - began, fresh.processor_seconds() - spent
        most = _resident("VmHWM") - before
    except Exception as error:  # noqa: BLE001 - whatever a library cannot do
        return {"reason": f"{type(error).__name__}: {str(error).splitlines()[0][:100] if str(error) else ''}"}
    if found != _expected(np.load(request["values"], mmap_mode="r"), request["peer"], kind, size, count):
        return {"reason": "wrong values"}
    return {
        "count": count, "seconds": seconds / count, "processor": processor / count, "nbytes": most, **known,
        "version": fresh.version_of(peer.package),
    }  # fmt: skip


def _expected(values: AnyArray, peer: str, kind: Kind, size: Size, count: int) -> int:
    if peer == "in-order":
        return total(values)
    samples = Samples(values, kind, size)
    return sum(total(values[samples.box(index)]) for index in samples.order[:count].tolist())


def _resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


# -- rows --------------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """What was measured of one array in one place."""

    data: str
    place: Place
    found: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"{self.place}: {DATA[self.data].title}"

    def median(self, peer: str, what: str = "seconds") -> float | None:
        values = [each[what] for each in self.found.get(peer, []) if what in each]
        return statistics.median(values) if values else None

    def verdict(self) -> str:
        """Return what is promised, and by how much it was missed."""
        words = []
        own = self.median("omnizarr")
        for peer, times, text in (
            ("tensorstore", 2.0, "2 × TensorStore"),
            ("zarr", 5.0, "5 × DataLoader"),
            ("in-order", 0.8, "0.8 × in order"),
        ):
            other = self.median(peer)
            if own is not None and other is not None:
                speed = other / own
                words.append(text if speed >= times else f"{text} (missed: {speed:.2f} ×)")
        return "; ".join(words)


def place_of(place: Place, servers: delayed.Servers, name: str) -> str:
    """Return the path or URL of an array."""
    if place == "disk":
        return str(servers.files / name)
    if place == "HTTP" or servers.bucket is None:
        return f"{servers.url}/{name}/"
    return f"s3://{servers.bucket.name}/{name}/"


def measure(row: Row, size: Size, servers: delayed.Servers, python: str, peers: list[str]) -> None:
    """Measure one array in one place with all libraries, in turn."""
    kind = DATA[row.data].kind
    taking = [name for name in peers if row.place in PEERS[name].places and kind in PEERS[name].kinds]
    if DATA[row.data].shards is not None and "h5py" in taking:
        taking.remove("h5py")  # which has none
    for number in range(size.rounds):
        for peer in taking[:: 1 if number % 2 else -1]:
            if peer in row.reasons or (PEERS[peer].is_slow and number):
                continue
            asked = servers.requests()
            request = {
                "peer": peer, "kind": kind, "size": vars(size), "values": str(servers.files / f"{kind}.npy"),
                "place": place_of(row.place, servers, row.data),
                "trial": place_of(row.place, servers, f"trial-{row.data}"),
            }  # fmt: skip
            found = fresh.ask("benchmarks.loaders", request, PATIENCE, python)
            if "reason" in found:
                row.reasons[peer] = found["reason"]
                continue
            if row.place != "disk" and asked is not None:
                found["requests"] = servers.requests() - asked
            row.found.setdefault(peer, []).append(found)


# -- tables ------------------------------------------------------------------------------------------------------------


def cell(row: Row, peer: str) -> str:
    """Return time for a sample, time of processors, and in how many times the time of omnizarr that is."""
    seconds, processor, own = row.median(peer), row.median(peer, "processor"), row.median("omnizarr")
    if seconds is None or processor is None:
        return "-"
    words = f"{reports.amount(seconds, 's')} ({reports.amount(processor, 's')})"
    return words if peer == "omnizarr" or own is None else f"{words}, {seconds / own:.1f} ×"


def terminal(row: Row) -> None:
    """Print a row."""
    print(row.title)
    for name, peer in PEERS.items():
        if name in row.found:
            more = {what: row.median(name, what) for what in ("requests", "reads", "nbytes")}
            print(f"    {peer.label:<24}{cell(row, name):<36}{ {k: int(v) for k, v in more.items() if v is not None} }")
        elif name in row.reasons:
            print(f"    {peer.label:<24}{row.reasons[name]}")
    print(f"    {row.verdict()}", flush=True)


def markdown(rows: list[Row], about: dict[str, str], size: Size) -> str:
    """Return the tables of the manual."""
    versions = {name: row.found[name][0]["version"] for row in rows for name in row.found}
    named = ", ".join(f"{PEERS[name].label} {versions[name]}" for name in PEERS if name in versions)
    measured = (
        f"Measured {about['date']} with {size.rounds} rounds on {about['processor']}, {about['file system']}, CPython "
        f"{about['python']}, load {about['load']} before it began: {size.rows:,} rows, {size.windows} windows of "
        f"{size.side}³ elements, uint16. {named}."
    )
    lines = [measured]
    for place in PLACES:
        some = [row for row in rows if row.place == place]
        names = [name for name in PEERS if any(name in row.found for row in some)]
        if not names:
            continue
        where = "On a disk" if place == "disk" else f"Over {place}, {SECONDS * 1e3:g} ms for each request"
        lines += ["", f"{where}:", "", f"|  | {' | '.join(PEERS[name].label for name in names)} | target |"]
        lines += [f"|---|{'--:|' * len(names)}---|"]
        for row in some:
            cells = " | ".join(cell(row, name) for name in names)
            lines.append(f"| {DATA[row.data].title} | {cells} | {row.verdict()} |")
    lines += [
        "",
        "Peak memory and requests:",
        "",
        "|  | chunks decoded by omnizarr | memory | requests |",
        "|---|--:|---|---|",
    ]
    for row in rows:
        fast = [name for name in row.found if not PEERS[name].is_slow]
        memory = ", ".join(
            f"{PEERS[name].label} {reports.amount(row.median(name, 'nbytes') or 0, 'B')}" for name in fast
        )
        asked = {name: row.median(name, "requests") for name in fast}
        requests = ", ".join(f"{PEERS[name].label} {n:,.0f}" for name, n in asked.items() if n is not None)
        lines.append(f"| {row.title} | {row.median('omnizarr', 'reads') or 0:,.0f} | {memory} | {requests} |")
    return "\n".join(lines) + "\n"


INTRO: Final = """\
## Loaders

`python -m benchmarks.loaders` loads an epoch in random order, in batches of 64, with 256 MB of memory. For each sample:
time, in brackets time of all processors, and how many times the time of omnizarr that is. TensorStore is used by hand,
with its batches, futures and cache. The DataLoader of torch has two forked workers, and like xbatcher loads 128 samples
only. h5py reads chunks of the same shape, in zlib. "In order" is omnizarr, which reads all of the array from its
beginning; windows overlap, so they have twice its elements. annbatch needs Python 3.12, and did not take part."""


def parse() -> argparse.Namespace:
    parser = fresh.parser("benchmarks.loaders", __doc__, PEERS, quick="an eighth of the size, one round")
    parser.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="the interpreter that has the libraries"
    )
    return parser.parse_args()


def make(folder: Path, size: Size) -> None:
    """Store the arrays, and their values."""
    for kind in ("rows", "windows"):
        values, trial = values_of(kind, size), values_of(kind, TRIAL)
        np.save(folder / f"{kind}.npy", values)
        for name, data in DATA.items():
            if data.kind != kind:
                continue
            data.make(folder / name, values)
            data.make(folder / f"trial-{name}", trial)
            if data.shards is None and find_spec("h5py") is not None:
                for path, stored in ((name, values), (f"trial-{name}", trial)):
                    with import_module("h5py").File(folder / f"{path}.h5", "w") as file:
                        file.create_dataset("v", data=stored, chunks=data.chunks, compression="gzip")


def main() -> None:
    """Make, measure, print."""
    options = parse()
    if options.work:
        print(json.dumps(work(options.work)))
        return
    size = QUICK if options.quick else FULL
    size = Size(**{**vars(size), "rounds": options.rounds or size.rounds})
    rows = [Row(name, place) for place in PLACES for name in DATA]
    rows = [row for row in rows if options.only is None or any(word in row.title for word in options.only)]
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as folder,
        delayed.started(Path(folder), SECONDS, notes=True) as servers,
    ):
        about = running.about(Path(folder))
        make(servers.files, size)
        if servers.bucket is None:
            rows = [row for row in rows if row.place != "S3"]
        else:
            os.environ[S3_OPTIONS] = json.dumps(servers.bucket.options)
            if any(row.place == "S3" for row in rows):
                servers.bucket.upload(servers.files)
        for row in rows:
            measure(row, size, servers, options.python, options.peers)
            terminal(row)
            saved = [{"title": each.title, "found": each.found, "reasons": each.reasons} for each in rows]
            fresh.save(options.json, {"about": about, "results": saved})
    if options.docs:
        fresh.publish(markdown(rows, about, size), MARKS, INTRO)


if __name__ == "__main__":
    main()
