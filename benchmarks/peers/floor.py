"""The floor: what this machine can do for a workload with everything known beforehand and nothing checked.

Moving chunks is a small program in C (`floor.c`, compiled when the worker starts): two threads, `pread` and `memcpy`,
and the codecs of libraries that are installed anyway, called directly: zstd and blosc of numcodecs, libdeflate of the
package `deflate`, crc32c of google-crc32c. Files are written in place, not atomically. For metadata it is plain Python:
reading or writing the same files, and only `json` on top.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from benchmarks import data
from benchmarks.peers.contract import Absent, Peer, Shapes, Unsupported, without_cache
from benchmarks.workloads import AnyArray, Dataset, Points, Region, Rows, Selection

THREADS = 2
CODECS = {"raw": 0, "blosc": 1, "zstd": 2, "gzip": 3, "zstd+crc32c": 4}
LEVELS = {codec: data.LEVEL.get(codec.partition("+")[0], 0) for codec in CODECS}
FUNCTIONS = {  # in the order of floor.c: which file has it
    "ZSTD_createDCtx": "numcodecs.zstd",
    "ZSTD_decompressDCtx": "numcodecs.zstd",
    "ZSTD_createCCtx": "numcodecs.zstd",
    "ZSTD_compressCCtx": "numcodecs.zstd",
    "libdeflate_alloc_decompressor": "deflate._deflate",
    "libdeflate_gzip_decompress": "deflate._deflate",
    "libdeflate_alloc_compressor": "deflate._deflate",
    "libdeflate_gzip_compress": "deflate._deflate",
    "blosc_decompress_ctx": "numcodecs.blosc",
    "blosc_compress_ctx": "numcodecs.blosc",
    "crc32c_extend": "google_crc32c",
}
NEEDED = {"raw": "", "blosc": "blosc", "zstd": "ZSTD", "gzip": "libdeflate", "zstd+crc32c": "crc32c"}


def _file_of(module: str) -> Path | None:
    """Return the shared library that has a module's C code."""
    if module == "google_crc32c":  # a library of its own, bundled beside the package
        folder = Path(google_crc32c.__file__).parents[1] / "google_crc32c.libs"
        return next(folder.glob("libcrc32c*"), None)
    parent = module.partition(".")[0]
    if find_spec(parent) is None or (spec := find_spec(module)) is None or spec.origin is None:
        return None
    return Path(spec.origin)


def _functions() -> dict[str, int]:
    """Return the addresses of those functions that exist."""
    found = {}
    for name, module in FUNCTIONS.items():
        path = _file_of(module)
        function = getattr(ctypes.CDLL(str(path)), name, None) if path else None
        if function is not None:
            found[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return found


def _compile() -> ctypes.CDLL:
    compiler = shutil.which("cc")
    if compiler is None:
        raise Absent("no C compiler (cc)")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "floor.so"
        source = Path(__file__).with_name("floor.c")
        command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", "-pthread", "-o", library, source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise Absent(f"cc failed: {done.stderr.strip()[:200]}")
        return ctypes.CDLL(str(library))


@dataclass
class _Program:
    """What `floor_run` is given for one selection."""

    paths: Any
    jobs: AnyArray
    copies: AnyArray
    shape: tuple[int, ...]
    tails: bytes = b""

    def __post_init__(self) -> None:
        self.arguments = (self.paths, self.jobs.ctypes.data, len(self.jobs), self.copies.ctypes.data)


@dataclass
class _Array:
    dataset: Dataset | None
    programs: dict[int, _Program]
    document: str


class Floor(Peer):
    """Plans first (`plan`), and only then, on the clock, runs."""

    serves_threads = False  # it has threads of its own

    def __init__(self) -> None:
        self._library = _compile()
        self._known: dict[Path, _Array] = {}
        addresses = _functions()
        self._there = set(addresses)
        pointers = (ctypes.c_void_p * len(FUNCTIONS))(*(addresses.get(name, 0) for name in FUNCTIONS))
        self._library.floor_bind(pointers)
        self._library.floor_run.argtypes = [
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p,
            ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int,
        ]  # fmt: skip

    def version(self) -> str:
        return f"C on {THREADS} threads; Python for metadata"

    def open(self, path: Path, *, cache: int = 0) -> _Array:
        without_cache(cache)
        known = self._known.get(path)
        if known is not None:  # the second time around, on the clock
            _load(known.document)
            return known
        name = ".zarray" if (path / ".zarray").exists() else "zarr.json"
        return _Array(None, {}, str(path / name))

    def plan(self, dataset: Dataset, path: Path, array: _Array, selections: list[Selection]) -> None:
        """See `Peer.plan`; no selections: the whole array will be written."""
        needed = NEEDED[dataset.codec]
        if not any(name.startswith(needed) for name in self._there):
            raise Unsupported(f"no functions of {needed} to call")
        array.dataset = dataset
        if selections:
            self._known[path] = array
            array.programs = {id(selection): _reading(dataset, path, selection) for selection in selections}
        else:
            array.programs = {0: _writing(dataset, path)}

    def read(self, array: _Array, selection: Selection) -> AnyArray:
        program = array.programs[id(selection)]
        assert array.dataset is not None
        out = np.empty(program.shape, array.dataset.dtype)
        self._run(array.dataset, program, out, writing=False)
        return out

    def write(self, array: _Array, values: AnyArray) -> None:
        assert array.dataset is not None
        self._run(array.dataset, array.programs[0], values, writing=True)

    def _run(self, dataset: Dataset, program: _Program, array: AnyArray, *, writing: bool) -> None:
        failed = self._library.floor_run(
            *program.arguments, array.__array_interface__["data"][0], program.tails, CODECS[dataset.codec],
            LEVELS[dataset.codec], array.itemsize, writing, THREADS,
        )  # fmt: skip
        assert not failed

    def create_nodes(self, path: Path, names: list[str], dataset: Dataset) -> None:
        document = data.array_document(dataset)
        path.mkdir()
        (path / "zarr.json").write_bytes(b'{"zarr_format":3,"node_type":"group"}')
        for name in names:
            folder = f"{path}/{name}"
            os.mkdir(folder)  # noqa: PTH102  (pathlib would not be the floor)
            descriptor = os.open(f"{folder}/zarr.json", os.O_WRONLY | os.O_CREAT)
            os.write(descriptor, json.dumps(document).encode())
            os.close(descriptor)

    def open_nodes(self, path: Path, names: list[str]) -> Shapes:
        return {name: tuple(_load(f"{path}/{name}/zarr.json")["shape"]) for name in names}

    def list_nodes(self, path: Path) -> Shapes:
        with os.scandir(path) as entries:
            folders = [entry for entry in entries if entry.is_dir()]
        return {folder.name: tuple(_load(f"{folder.path}/zarr.json")["shape"]) for folder in folders}

    def consolidated(self, path: Path) -> Shapes:
        documents = json.loads((path / "zarr.json").read_bytes())["consolidated_metadata"]["metadata"]
        return {name: tuple(document["shape"]) for name, document in documents.items()}


def _load(path: str) -> Any:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return json.loads(os.read(descriptor, 1 << 16))
    finally:
        os.close(descriptor)


def _key(dataset: Dataset, coords: tuple[int, ...]) -> str:
    return ".".join(map(str, coords)) if dataset.zarr_format == 2 else "c/" + "/".join(map(str, coords))


def _strings(paths: list[str]) -> Any:
    return (ctypes.c_char_p * len(paths))(*(path.encode() for path in paths))


def _program(
    paths: list[str], jobs: list[tuple[int, ...]], copies: list[tuple[int, ...]], shape: tuple[int, ...]
) -> _Program:
    return _Program(
        _strings(paths), np.array(jobs, np.int64).reshape(-1, 9), np.array(copies, np.int64).reshape(-1, 9), shape
    )


def _steps(shape: tuple[int, ...], itemsize: int) -> list[int]:
    """Return the strides of an array in C order."""
    return [int(np.prod(shape[axis + 1 :], dtype=np.int64)) * itemsize for axis in range(len(shape))]


def _box(
    chunk: tuple[int, list[int]], array: tuple[int, list[int]], counts: list[int], itemsize: int
) -> tuple[int, ...]:
    """Return the copy of a box; `chunk` and `array` are where it begins, and its strides."""
    (at, there), (to, here) = chunk, array
    counts, there, here = list(counts), list(there), list(here)
    run = itemsize
    while counts and there[-1] == run and here[-1] == run:  # what is contiguous on both sides is one run
        run *= counts.pop()
        there.pop(), here.pop()
    while len(counts) < 2:
        counts, there, here = [1, *counts], [0, *there], [0, *here]
    assert len(counts) == 2, "more dimensions than the floor knows"
    return (at, to, counts[0], counts[1], run, there[0], there[1], here[0], here[1])


def _spans(some: slice, size: int) -> list[tuple[int, int, int, int]]:
    """Return chunk number, first place in it, first place in the result, count, for each chunk that a slice touches."""
    step = some.step or 1
    every = np.arange(some.start, some.stop, step)
    numbers, firsts, counts = np.unique(every // size, return_index=True, return_counts=True)
    return [
        (int(number), int(every[first] % size), int(first), int(count))
        for number, first, count in zip(numbers, firsts, counts, strict=True)
    ]


class _Files:
    """Where the chunks of a dataset are: for shards, from their indexes."""

    def __init__(self, dataset: Dataset, path: Path) -> None:
        self._dataset, self._path = dataset, path
        self.paths: list[str] = []
        self._places: dict[tuple[int, ...], tuple[int, AnyArray | None]] = {}

    def place(self, coords: tuple[int, ...]) -> tuple[int, int, int]:
        """Return file number, start and number of bytes of a chunk."""
        per_file = [size // chunk for size, chunk in zip(self._dataset.files, self._dataset.chunks, strict=True)]
        outer = tuple(c // n for c, n in zip(coords, per_file, strict=True))
        if outer not in self._places:
            path = f"{self._path}/{_key(self._dataset, outer)}"
            self._places[outer] = (len(self.paths), self._index(path, per_file))
            self.paths.append(path)
        number, index = self._places[outer]
        if index is None:
            return number, 0, os.stat(self.paths[number]).st_size  # noqa: PTH116
        start, count = index[tuple(c % n for c, n in zip(coords, per_file, strict=True))]
        return number, int(start), int(count)

    def _index(self, path: str, per_file: list[int]) -> AnyArray | None:
        if self._dataset.shards is None:
            return None
        nbytes = int(np.prod(per_file)) * 16
        with open(path, "rb") as file:  # noqa: PTH123
            file.seek(-nbytes - 4, os.SEEK_END)
            return np.frombuffer(file.read(nbytes), "<u8").reshape(*per_file, 2)


def _reading(dataset: Dataset, path: Path, selection: Selection) -> _Program:
    if isinstance(selection, Region):
        return _reading_region(dataset, path, selection.slices)
    if isinstance(selection, Rows):
        slices = (slice(0, dataset.shape[0]), *(slice(0, length) for length in dataset.shape[1:]))
        return _reading_rows(dataset, path, slices, np.array(selection.indices))
    return _reading_points(dataset, path, selection)


def _reading_region(dataset: Dataset, path: Path, slices: tuple[slice, ...]) -> _Program:
    itemsize = np.dtype(dataset.dtype).itemsize
    shape = tuple(len(range(some.start, some.stop, some.step or 1)) for some in slices)
    here, there = _steps(shape, itemsize), _steps(dataset.chunks, itemsize)
    stepped = [stride * (some.step or 1) for stride, some in zip(there, slices, strict=True)]
    files = _Files(dataset, path)
    jobs: list[tuple[int, ...]] = []
    copies: list[tuple[int, ...]] = []
    for spans in product(*(_spans(some, size) for some, size in zip(slices, dataset.chunks, strict=True))):
        number, start, stored = files.place(tuple(span[0] for span in spans))
        begin = sum(span[1] * stride for span, stride in zip(spans, there, strict=True))
        target = sum(span[2] * stride for span, stride in zip(spans, here, strict=True))
        counts = [span[3] for span in spans]
        copy = _box((begin, stepped), (target, here), counts, itemsize)
        direct = target if copy[4] == dataset.chunk_nbytes else -1
        jobs.append((number, start, stored, dataset.chunk_nbytes, direct, len(copies), len(copies) + 1, 0, 0))
        copies.append(copy)
    return _program(files.paths, jobs, copies, shape)


def _reading_rows(dataset: Dataset, path: Path, slices: tuple[slice, ...], indices: AnyArray) -> _Program:
    itemsize = np.dtype(dataset.dtype).itemsize
    shape = (len(indices), *dataset.shape[1:])
    here, there = _steps(shape, itemsize), _steps(dataset.chunks, itemsize)
    files = _Files(dataset, path)
    jobs: list[tuple[int, ...]] = []
    copies: list[tuple[int, ...]] = []
    for row in np.unique(indices // dataset.chunks[0]).tolist():
        mine = np.flatnonzero(indices // dataset.chunks[0] == row)
        for spans in product(*(_spans(some, size) for some, size in zip(slices[1:], dataset.chunks[1:], strict=True))):
            number, start, stored = files.place((row, *(span[0] for span in spans)))
            first = len(copies)
            for position in mine.tolist():
                begin = int(indices[position] % dataset.chunks[0]) * there[0]
                target = position * here[0] + sum(span[2] * some for span, some in zip(spans, here[1:], strict=True))
                counts = [span[3] for span in spans]
                copies.append(_box((begin, there[1:]), (target, here[1:]), counts, itemsize))
            jobs.append((number, start, stored, dataset.chunk_nbytes, -1, first, len(copies), 0, 0))
    return _program(files.paths, jobs, copies, shape)


def _reading_points(dataset: Dataset, path: Path, selection: Points) -> _Program:
    itemsize = np.dtype(dataset.dtype).itemsize
    there = _steps(dataset.chunks, itemsize)
    files = _Files(dataset, path)
    by_chunk: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for position, point in enumerate(zip(*(some.tolist() for some in selection.coordinates), strict=True)):
        coords = tuple(place // size for place, size in zip(point, dataset.chunks, strict=True))
        begin = sum(place % size * stride for place, size, stride in zip(point, dataset.chunks, there, strict=True))
        by_chunk.setdefault(coords, []).append((begin, position * itemsize, 1, 1, itemsize, 0, 0, 0, 0))
    jobs: list[tuple[int, ...]] = []
    copies: list[tuple[int, ...]] = []
    for coords, some in sorted(by_chunk.items()):
        number, start, stored = files.place(coords)
        jobs.append((number, start, stored, dataset.chunk_nbytes, -1, len(copies), len(copies) + len(some), 0, 0))
        copies += some
    return _program(files.paths, jobs, copies, selection.coordinates[0].shape)


def _writing(dataset: Dataset, path: Path) -> _Program:
    """Return how all of an array is written; a shard is what is written at once, its chunks side by side in it."""
    if dataset.shards and dataset.codec != "raw":
        raise Unsupported("no compressed shards")
    itemsize = np.dtype(dataset.dtype).itemsize
    here, there = _steps(dataset.shape, itemsize), _steps(dataset.chunks, itemsize)
    inner = [range(size // chunk) for size, chunk in zip(dataset.files, dataset.chunks, strict=True)]
    file_nbytes = int(np.prod(dataset.files)) * itemsize
    tail = _index_of(file_nbytes // dataset.chunk_nbytes, dataset.chunk_nbytes) if dataset.shards else b""
    paths: list[str] = []
    jobs: list[tuple[int, ...]] = []
    copies: list[tuple[int, ...]] = []
    for coords in product(*(range(n // size) for n, size in zip(dataset.shape, dataset.files, strict=True))):
        first = len(copies)
        target = 0
        for number, place in enumerate(product(*inner)):
            target = sum(
                (c * size + p * chunk) * stride
                for c, size, p, chunk, stride in zip(coords, dataset.files, place, dataset.chunks, here, strict=True)
            )
            copies.append(_box((number * dataset.chunk_nbytes, there), (target, here), list(dataset.chunks), itemsize))
        direct = target if copies[-1][4] == file_nbytes else -1
        jobs.append((len(paths), 0, 0, file_nbytes, direct, first, len(copies), 0, len(tail)))
        paths.append(f"{path}/{_key(dataset, coords)}")
    program = _program(paths, jobs, copies, dataset.shape)
    program.tails = tail
    for folder in {os.path.dirname(name) for name in paths}:  # noqa: PTH120
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
    return program


def _index_of(count: int, nbytes: int) -> bytes:
    """Return the index of a shard whose chunks all have `nbytes` and stand in order."""
    index = np.stack([np.arange(count) * nbytes, np.full(count, nbytes)], axis=1).astype("<u8").tobytes()
    return index + google_crc32c.value(index).to_bytes(4, "little")
