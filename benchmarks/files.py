"""Measurements of files of other formats, read in place: HDF5 and TIFF, on a disk and over HTTP, beside others.

``python -m benchmarks.files [--quick] [--only WORD ...] [--peers NAME ...] [--python PATH] [--json FILE] [--docs]``.
Each figure is that of a process of its own, which opens the file, finds what it needs of the index, and reads: all of
that counts. Libraries take turns, and what they read is compared with what was stored. Over HTTP, the server waits
20 ms before it answers a request (`benchmarks.delayed`).

References of Kerchunk are made before the measurement begins. "fetch, h5py" and "fetch, tifffile" fetch the whole file
first, which is what one does without any of this.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import sys
import tempfile
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from benchmarks import delayed, fresh, reports, running
from benchmarks.workloads import AnyArray

SECONDS: Final = 0.020  # that the server waits
PATIENCE: Final = 600.0  # seconds for one process
MARKS: Final = "<!-- files: begin -->", "<!-- files: end -->"
INTRO: Final = """\
## Files of other formats

``python -m benchmarks.files`` reads HDF5 and TIFF files in place. Opening the file counts. Seconds, and in brackets
seconds of all processors; the first library is omnizarr."""
BOX: Final = 100  # elements along each side of a window
Place = Literal["disk", "HTTP"]
PLACES: Final[tuple[Place, ...]] = ("disk", "HTTP")


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    planes: int
    side: int
    windows: int
    points: int
    rounds: int
    runs: int  # of one process


FULL: Final = Size(planes=64, side=1024, windows=50, points=200, rounds=5, runs=3)
QUICK: Final = Size(planes=16, side=512, windows=10, points=50, rounds=3, runs=2)


# -- what is stored ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """A file with one array of three dimensions, float32."""

    title: str
    suffix: str
    chunks: tuple[int, int, int] | None = None
    codec: str = ""

    def make(self, path: Path, values: AnyArray) -> None:
        if self.suffix == ".tif":
            tifffile = import_module("tifffile")
            tifffile.imwrite(
                path, values, tile=self.chunks and self.chunks[1:], compression=self.codec or None, predictor=None,
                photometric="minisblack",
            )  # fmt: skip
            return
        options: dict[str, Any] = {"chunks": self.chunks and tuple(map(min, self.chunks, values.shape))}
        if self.codec == "zlib":
            options |= {"compression": "gzip", "compression_opts": 4, "shuffle": True}
        elif self.codec == "zstd":
            options |= {**import_module("hdf5plugin").Zstd(clevel=3), "shuffle": True}
        with import_module("h5py").File(path, "w") as file:
            file.create_dataset("v", data=values, **options)


DATA: Final = {
    "zlib": Data("HDF5, zlib, chunks of 1 MiB", ".h5", (4, 256, 256), "zlib"),
    "zlib-small": Data("HDF5, zlib, chunks of 16 KiB", ".h5", (1, 64, 64), "zlib"),
    "zstd": Data("HDF5, zstd, chunks of 1 MiB", ".h5", (4, 256, 256), "zstd"),
    "raw": Data("HDF5, raw, chunks of 16 KiB", ".h5", (1, 64, 64)),
    "contiguous": Data("HDF5, contiguous", ".h5"),
    "tiff-deflate": Data("TIFF, deflate, tiles of 256 KiB", ".tif", (1, 256, 256), "zlib"),
    "tiff-raw": Data("TIFF, raw, tiles of 256 KiB", ".tif", (1, 256, 256)),
}


def values_of(size: Size) -> AnyArray:
    """Return walks in steps of 1/16, as a sensor of limited precision sees them, under some noise."""
    steps = np.random.default_rng(7).integers(-3, 4, (size.planes, size.side, size.side), dtype=np.int8)
    return np.cumsum(steps, axis=-1, dtype=np.float32) / 16


def make(folder: Path, names: set[str], size: Size) -> dict[str, str]:
    """Store the files, and the values; return which could not be made, and why."""
    values = values_of(size)
    np.save(folder / "values.npy", values)
    missing = {}
    for name in sorted(names):
        data = DATA[name]
        try:
            data.make(folder / f"{name}{data.suffix}", values)
        except ImportError as error:
            missing[name] = str(error)
    return missing


# -- what is read --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Action:
    """What is read of a file."""

    title: str
    of: Callable[[Any, Size], AnyArray]
    """Returns what is read of an array; NumPy's array of the values says what that must be."""


def _windows(array: Any, size: Size) -> AnyArray:
    side = min(BOX, size.side)
    corners = np.random.default_rng(1).integers(0, (size.planes, *[size.side - side + 1] * 2), (size.windows, 3))
    return np.stack([np.asarray(array[t, y : y + side, x : x + side]) for t, y, x in corners.tolist()])


def _points(array: Any, size: Size) -> AnyArray:
    places = np.random.default_rng(2).integers(0, (size.planes, size.side, size.side), (size.points, 3))
    if hasattr(array, "vindex"):
        return np.asarray(array.vindex[tuple(places.T)])
    return np.array([array[tuple(place)] for place in places.tolist()])


ACTIONS: Final = {
    "whole": Action("all", lambda array, _: np.asarray(array[...])),
    "plane": Action("a plane", lambda array, size: np.asarray(array[size.planes // 2])),
    "windows": Action("{windows} windows", _windows),
    "points": Action("{points} points", _points),
}


# -- who reads it: each opens a file at a path or URL and yields an array ------------------------------------------


@contextmanager
def _omnizarr(place: str, name: str) -> Iterator[Any]:
    node = import_module("omnizarr").open(place, mode="r")
    yield node if name.startswith("tiff") else node["v"]


@contextmanager
def _h5py(place: Any, name: str) -> Iterator[Any]:
    with import_module("h5py").File(place, "r") as file:
        yield file["v"]


@contextmanager
def _netcdf4(place: str, name: str) -> Iterator[Any]:
    with import_module("netCDF4").Dataset(place) as dataset:
        dataset.set_auto_maskandscale(False)
        yield dataset["v"]


@contextmanager
def _h5netcdf(place: Any, name: str) -> Iterator[Any]:
    with import_module("h5netcdf").File(place, "r", phony_dims="sort") as file:
        yield file["v"]


@contextmanager
def _pyfive(place: Any, name: str) -> Iterator[Any]:
    with import_module("pyfive").File(place) as file:
        yield file["v"]


def _through_fsspec(
    reader: Callable[[Any, str], Any],
) -> Callable[[str, str], Any]:
    @contextmanager
    def opened(place: str, name: str) -> Iterator[Any]:
        with import_module("fsspec").open(place, "rb") as file, reader(file, name) as array:
            yield array

    return opened


def _fetched(reader: Callable[[Any, str], Any]) -> Callable[[str, str], Any]:
    @contextmanager
    def opened(place: str, name: str) -> Iterator[Any]:
        with urllib.request.urlopen(place) as answer:  # noqa: S310 - our own server
            content = answer.read()
        with reader(io.BytesIO(content), name) as array:
            yield array

    return opened


def _references(place: str) -> dict[str, Any]:
    """Return references of Kerchunk, as they are made once for a file."""
    hdf = import_module("kerchunk.hdf")
    with suppress(ImportError):
        import_module("hdf5plugin")  # with which it knows the filters that are not HDF5's own
    with import_module("fsspec").open(place, "rb") as file:
        found: dict[str, Any] = hdf.SingleHdf5ToZarr(file, place, inline_threshold=0).translate()
    return found


_made: dict[str, dict[str, Any]] = {}  # by place: the trial makes them


@contextmanager
def _kerchunk(place: str, name: str) -> Iterator[Any]:
    if place not in _made:
        _made[place] = _references(place)
    fsspec, zarr = import_module("fsspec"), import_module("zarr")
    protocol = "http" if place.startswith("http") else "file"
    options = {"asynchronous": True} if protocol == "http" else {}
    filesystem = fsspec.filesystem(
        "reference", fo=_made[place], remote_protocol=protocol, remote_options=options, asynchronous=True
    )
    yield zarr.open_group(zarr.storage.FsspecStore(filesystem, read_only=True), mode="r", zarr_format=2)["v"]


@contextmanager
def _virtualizarr(place: str, name: str) -> Iterator[Any]:
    parsers, zarr = import_module("virtualizarr.parsers"), import_module("zarr")
    registry = import_module("obspec_utils.registry").ObjectStoreRegistry()
    stores = import_module("obstore.store")
    if place.startswith("http"):
        root = place.rpartition("/")[0]
        registry.register(root, stores.HTTPStore.from_url(root, client_options={"allow_http": True}))
        url = place
    else:
        registry.register("file://", stores.LocalStore())
        url = f"file://{place}"
    yield zarr.open_group(parsers.HDFParser()(url, registry), mode="r")["v"]


class _Pages:
    """The pages of a TIFF file, as tifffile reads them: through zarr-python, unless all or whole pages are wanted."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def __getitem__(self, chosen: Any) -> AnyArray:
        if chosen is Ellipsis:
            return np.asarray(self._file.asarray())
        if isinstance(chosen, int):
            return np.asarray(self._file.asarray(key=chosen))
        return np.asarray(self._array[chosen])

    @property
    def _array(self) -> Any:
        if not hasattr(self, "_opened"):
            self._opened = import_module("zarr").open(self._file.aszarr(), mode="r")
        return self._opened


@contextmanager
def _tifffile(place: Any, name: str) -> Iterator[Any]:
    with import_module("tifffile").TiffFile(place) as file:
        yield _Pages(file)


class _Bands:
    """The pages of a TIFF file, as GDAL reads them: each is a dataset."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._rasterio = import_module("rasterio")

    def _read(self, page: int, rows: slice, columns: slice) -> AnyArray:
        with self._rasterio.open(f"GTIFF_DIR:{page + 1}:{self._place}") as file:
            window = None
            if (rows, columns) != (slice(None), slice(None)):
                window = self._rasterio.windows.Window.from_slices(rows, columns)
            return np.asarray(file.read(1, window=window))

    def __getitem__(self, chosen: Any) -> Any:
        if chosen is Ellipsis:
            with self._rasterio.open(self._place) as file:
                count = max(1, len(file.subdatasets))
            return np.stack([self._read(page, slice(None), slice(None)) for page in range(count)])
        if isinstance(chosen, int):
            return self._read(chosen, slice(None), slice(None))
        page, rows, columns = chosen
        if isinstance(rows, int):
            return self._read(page, slice(rows, rows + 1), slice(columns, columns + 1))[0, 0]
        return self._read(page, rows, columns)


@contextmanager
def _rasterio(place: str, name: str) -> Iterator[Any]:
    os.environ["CPL_VSIL_CURL_NON_CACHED"] = "/vsicurl/"  # what it read before does not count
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", import_module("rasterio.errors").NotGeoreferencedWarning)
        yield _Bands(f"/vsicurl/{place}" if place.startswith("http") else place)


@dataclass(frozen=True)
class Peer:
    """A library."""

    label: str
    opened: Callable[[str, str], Any]
    package: str
    formats: tuple[str, ...] = (".h5",)
    places: tuple[Place, ...] = PLACES


PEERS: Final = {
    "omnizarr": Peer("omnizarr", _omnizarr, "omnizarr", (".h5", ".tif")),
    "h5py": Peer("h5py", _h5py, "h5py", places=("disk",)),
    "netcdf4": Peer("netCDF4", _netcdf4, "netCDF4", places=("disk",)),
    "h5netcdf": Peer("h5netcdf", _h5netcdf, "h5netcdf", places=("disk",)),
    "pyfive": Peer("pyfive", _pyfive, "pyfive", places=("disk",)),
    "fsspec-h5py": Peer("fsspec + h5py", _through_fsspec(_h5py), "h5py", places=("HTTP",)),
    "fsspec-h5netcdf": Peer("fsspec + h5netcdf", _through_fsspec(_h5netcdf), "h5netcdf", places=("HTTP",)),
    "fsspec-pyfive": Peer("fsspec + pyfive", _through_fsspec(_pyfive), "pyfive", places=("HTTP",)),
    "fetch-h5py": Peer("fetch, h5py", _fetched(_h5py), "h5py", places=("HTTP",)),
    "kerchunk": Peer("Kerchunk + zarr-python", _kerchunk, "kerchunk"),
    "virtualizarr": Peer("VirtualiZarr", _virtualizarr, "virtualizarr"),
    "tifffile": Peer("tifffile", _tifffile, "tifffile", (".tif",), ("disk",)),
    "fsspec-tifffile": Peer("fsspec + tifffile", _through_fsspec(_tifffile), "tifffile", (".tif",), ("HTTP",)),
    "fetch-tifffile": Peer("fetch, tifffile", _fetched(_tifffile), "tifffile", (".tif",), ("HTTP",)),
    "rasterio": Peer("rasterio", _rasterio, "rasterio", (".tif",)),
}
"""The libraries that take part."""


def work(request: dict[str, Any]) -> dict[str, Any]:
    """Measure one case with one library, after a trial: that is what a process of its own does."""
    peer, name = PEERS[request["peer"]], request["name"]
    size, action = Size(**request["size"]), ACTIONS[request["action"]]
    try:
        if DATA[name].codec == "zstd" and peer.label != "omnizarr":
            import_module("hdf5plugin")  # which adds the filter to HDF5
        with peer.opened(request["place"], name) as array:
            found = action.of(array, size)
    except Exception as error:  # noqa: BLE001 - whatever a library cannot do
        return {"reason": f"{type(error).__name__}: {str(error).splitlines()[0][:100] if str(error) else ''}"}
    if not np.array_equal(found, action.of(np.load(request["values"], mmap_mode="r"), size)):
        return {"reason": "wrong values"}
    seconds, processor = [], []
    for _ in range(request["runs"]):
        spent, began = fresh.processor_seconds(), time.perf_counter()
        with peer.opened(request["place"], name) as array:
            action.of(array, size)
        seconds.append(time.perf_counter() - began)
        processor.append(fresh.processor_seconds() - spent)
    return {"seconds": seconds, "processor": processor, "version": fresh.version_of(peer.package)}


# -- rows ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """At most so many times what another library needs: in seconds, or in seconds of the processor."""

    times: float
    peer: str
    of: Literal["seconds", "processor"] = "seconds"

    @property
    def text(self) -> str:
        label = PEERS[self.peer].label + ("" if self.of == "seconds" else ", processor")
        return f"not slower than {label}" if self.times == 1 else f"≤ {self.times:g} × {label}"


@dataclass(frozen=True)
class Case:
    """One row: what is read of which file, and where that is."""

    data: str
    action: str
    place: Place

    def title(self, size: Size) -> str:
        words = ACTIONS[self.action].title.format(windows=size.windows, points=size.points)
        return f"{self.place}: {DATA[self.data].title}: {words}"

    @property
    def peers(self) -> list[str]:
        suffix = DATA[self.data].suffix
        return [name for name, peer in PEERS.items() if suffix in peer.formats and self.place in peer.places]

    @property
    def targets(self) -> list[Target]:
        """Return what is promised."""
        is_tiff = DATA[self.data].suffix == ".tif"
        if self.place == "HTTP":
            fetched = [Target(1, "fetch-tifffile" if is_tiff else "fetch-h5py")]
            if is_tiff or self.action != "whole":
                return fetched
            return [Target(0.5 if self.data in {"raw", "contiguous"} else 0.15, "fsspec-h5py"), *fetched]
        if is_tiff:
            return [Target(1, "tifffile")]
        if self.action != "whole":
            return [Target(1, "h5py")]
        most = {"zlib": 0.4, "zlib-small": 0.5, "zstd": 0.6}.get(self.data, 1.0)
        return [Target(most, "h5py", "processor"), Target(most / 2, "h5py")]


CASES: Final = tuple(Case(data, action, place) for place in PLACES for data in DATA for action in ACTIONS)


@dataclass
class Row:
    """What one case gave: seconds, and seconds of the processor, by library."""

    title: str
    case: Case
    seconds: dict[str, list[float]]
    processor: dict[str, list[float]]
    reasons: dict[str, str]

    def median(self, peer: str, of: str = "seconds") -> float | None:
        values = (self.seconds if of == "seconds" else self.processor).get(peer)
        return statistics.median(values) if values else None

    def verdict(self) -> str:
        """Return the targets in words, each with what was used of it."""
        words = []
        for target in self.case.targets:
            ours, other = self.median("omnizarr", target.of), self.median(target.peer, target.of)
            used = None if ours is None or other is None else ours / other / target.times
            missed = " (?)" if used is None else f" (missed: × {used:.2f})" if used > 1 else ""
            words.append(target.text + missed)
        return "; ".join(words)


def measure(
    case: Case, size: Size, files: Path, url: str, pythons: list[str], peers: list[str], versions: dict[str, str]
) -> Row:
    """Measure one case with all libraries, in turn."""
    file = f"{case.data}{DATA[case.data].suffix}"
    row = Row(case.title(size), case, {}, {}, {})
    taking = {peer: 0 for peer in case.peers if peer in peers}  # with which interpreter
    for number in range(size.rounds):
        for peer in list(taking) if number % 2 else list(taking)[::-1]:
            request = {
                "peer": peer, "name": case.data, "action": case.action, "size": vars(size), "runs": size.runs,
                "place": str(files / file) if case.place == "disk" else f"{url}/{file}",
                "values": str(files / "values.npy"),
            }  # fmt: skip
            found = fresh.ask("benchmarks.files", request, PATIENCE, pythons[taking[peer]])
            while "reason" in found and "ModuleNotFoundError" in found["reason"] and taking[peer] + 1 < len(pythons):
                taking[peer] += 1
                found = fresh.ask("benchmarks.files", request, PATIENCE, pythons[taking[peer]])
            if "reason" in found:
                row.reasons[peer] = found["reason"]
                del taking[peer]
                continue
            row.seconds.setdefault(peer, []).extend(found["seconds"])
            row.processor.setdefault(peer, []).extend(found["processor"])
            versions[peer] = found["version"]
    return row


# -- tables --------------------------------------------------------------------------------------------------------


def terminal(row: Row) -> None:
    """Print a row."""
    print(row.title)
    for peer in row.case.peers:
        seconds, processor = row.median(peer), row.median(peer, "processor")
        if seconds is not None and processor is not None:
            words = f"{reports.amount(seconds, 's'):>10}{reports.amount(processor, 's'):>10} of the processor"
            print(f"    {PEERS[peer].label:<24}{words}")
        elif peer in row.reasons:
            print(f"    {PEERS[peer].label:<24}{row.reasons[peer]}")
    print(f"    {row.verdict()}", flush=True)


def markdown(rows: list[Row], about: dict[str, str], size: Size, versions: dict[str, str]) -> str:
    """Return the tables of the manual: seconds, and seconds of the processor in brackets."""
    took_part = ", ".join(f"{PEERS[peer].label} {versions[peer]}" for peer in PEERS if peer in versions)
    shape = f"{size.planes} x {size.side} x {size.side}"
    measured = (
        f"Measured {about['date']} with {size.rounds} rounds on {about['processor']}, {about['file system']}, CPython "
        f"{about['python']}, load {about['load']} before it began: {shape} numbers of float32. {took_part}."
    )
    lines = [measured]
    for place in PLACES:
        for suffix, name in ((".h5", "HDF5"), (".tif", "TIFF")):
            some = [row for row in rows if row.case.place == place and DATA[row.case.data].suffix == suffix]
            peers = [peer for peer in PEERS if any(peer in row.seconds for row in some)]
            if not some or not peers:
                continue
            where = "on a disk" if place == "disk" else f"over HTTP, {SECONDS * 1e3:g} ms for each request"
            lines += ["", f"{name} {where}:", ""]
            lines += [f"|  | {' | '.join(PEERS[peer].label for peer in peers)} | target |"]
            lines += [f"|---|{'--:|' * len(peers)}---|"]
            for row in some:
                title = row.title.partition(": ")[2].removeprefix(f"{name}, ")
                lines.append(f"| {title} | {' | '.join(_cell(row, peer) for peer in peers)} | {row.verdict()} |")
    return "\n".join(lines) + "\n"


def _cell(row: Row, peer: str) -> str:
    seconds, processor = row.median(peer), row.median(peer, "processor")
    if seconds is None or processor is None:
        return "-"
    return f"{reports.amount(seconds, 's')} ({reports.amount(processor, 's')})"


def parse() -> argparse.Namespace:
    parser = fresh.parser("benchmarks.files", __doc__, PEERS, quick="a sixteenth of the size, fewer rounds")
    parser.add_argument(
        "--python", action="append", default=[], metavar="PATH",
        help="another interpreter to look in for libraries that this one does not have",
    )  # fmt: skip
    return parser.parse_args()


def main() -> None:
    """Make, compare, measure, print."""
    options = parse()
    if options.work:
        print(json.dumps(work(options.work)))
        return
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled, too
    size = QUICK if options.quick else FULL
    size = Size(**{**vars(size), "rounds": options.rounds or size.rounds})
    some = [case for case in CASES if options.only is None or any(word in case.title(size) for word in options.only)]
    if not some:
        sys.exit(f"no row has {options.only} in its title")
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as folder,
        delayed.started(Path(folder), SECONDS) as servers,
    ):
        about = {**running.about(Path(folder)), "server": servers.about}
        missing = make(servers.files, {case.data for case in some}, size)
        rows: list[Row] = []
        versions: dict[str, str] = {}
        for case in some:
            if case.data in missing:
                print(f"{case.title(size)}\n    not measured: {missing[case.data]}")
                continue
            pythons = [sys.executable, *options.python]
            row = measure(case, size, servers.files, servers.url, pythons, options.peers, versions)
            rows.append(row)
            terminal(row)
            found = {"about": about, "size": vars(size), "versions": versions, "results": [*map(_saved, rows)]}
            fresh.save(options.json, found)
    if options.docs:
        fresh.publish(markdown(rows, about, size, versions), MARKS, INTRO)


def _saved(row: Row) -> dict[str, Any]:
    return {
        "title": row.title, "seconds": row.seconds, "processor": row.processor, "reasons": row.reasons,
        "verdict": row.verdict(),
    }  # fmt: skip


if __name__ == "__main__":
    main()
