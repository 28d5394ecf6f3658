"""What is measured: arrays, what is done with them, and in which order. A new workload is one entry of `WORKLOADS`.

At scale 1 sizes are those of the targets. A larger scale divides the number of elements (`Dataset.scaled`), never the
shape of a chunk. What rows are called follows from the data: `Workload.title` and `Workload.group` have the names of
`Workload.facts` in braces, so a row of a small run cannot have the sizes of a large one in its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from benchmarks.peers.contract import Peer

AnyArray = npt.NDArray[Any]
Codec = Literal["raw", "blosc", "zstd", "gzip", "zstd+crc32c"]
Verb = Literal[
    "read",
    "read in threads",
    "write",
    "open and read",
    "create",
    "open",
    "list",
    "consolidated",
    "join",
    "read joined",
    "import",
    "begin",
    "memory",
    "stream",
]
WRITING: tuple[Verb, ...] = ("write", "create")
JOINING: tuple[Verb, ...] = ("join", "read joined")
ONE_MIB = 2**20


@dataclass(frozen=True)
class Dataset:
    """One array: its `chunks` are the inner ones if it has `shards`."""

    name: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    codec: Codec = "raw"
    dtype: str = "float32"
    shards: tuple[int, ...] | None = None
    zarr_format: int = 3

    @property
    def files(self) -> tuple[int, ...]:
        """The shape of what one file holds."""
        return self.shards or self.chunks

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def chunk_nbytes(self) -> int:
        return math.prod(self.chunks) * np.dtype(self.dtype).itemsize

    @property
    def file_nbytes(self) -> int:
        """Bytes in memory of what one file holds."""
        return math.prod(self.files) * np.dtype(self.dtype).itemsize

    @property
    def nchunks(self) -> int:
        return math.prod(self.shape) // math.prod(self.chunks)

    def scaled(self, scale: int) -> Dataset:
        """Return the same array with fewer chunks: dimensions shrink in turn, each to one file at least."""
        shape = []
        for length, step in zip(self.shape, self.files, strict=True):
            parts = length // step
            part = min(scale, parts)
            scale = max(1, scale // part)
            shape.append(-(-parts // part) * step)
        return replace(self, shape=tuple(shape))


@dataclass(frozen=True, eq=False)
class Region:
    """A slice along each dimension."""

    slices: tuple[slice, ...]

    def of(self, values: AnyArray) -> AnyArray:
        return values[self.slices]

    def read(self, peer: Peer, array: Any) -> AnyArray:
        return peer.region(array, self.slices)


@dataclass(frozen=True, eq=False)
class Rows:
    """A list along the first dimension, everything along the others."""

    indices: list[int]

    def of(self, values: AnyArray) -> AnyArray:
        return values[self.indices]

    def read(self, peer: Peer, array: Any) -> AnyArray:
        return peer.rows(array, self.indices)


@dataclass(frozen=True, eq=False)
class Points:
    """Single elements, asked for together."""

    coordinates: tuple[npt.NDArray[np.int64], ...]

    def of(self, values: AnyArray) -> AnyArray:
        return values[self.coordinates]

    def read(self, peer: Peer, array: Any) -> AnyArray:
        return peer.points(array, self.coordinates)


Selection = Region | Rows | Points
Select = Callable[
    [Dataset, int], list[Selection]
]  # of the scaled array, and the scale: what is read, one after the other


def whole(dataset: Dataset, _scale: int) -> list[Selection]:
    return [Region(tuple(slice(0, length) for length in dataset.shape))]


def windows(count: int, shape: tuple[int, ...]) -> Select:
    def select(dataset: Dataset, scale: int) -> list[Selection]:
        rng = np.random.default_rng(1)
        sizes = [min(size, length) for size, length in zip(shape, dataset.shape, strict=True)]
        corners = [
            [int(rng.integers(0, length - size + 1)) for length, size in zip(dataset.shape, sizes, strict=True)]
            for _ in range(max(2, count // scale))
        ]
        return [
            Region(tuple(slice(corner, corner + size) for corner, size in zip(some, sizes, strict=True)))
            for some in corners
        ]

    return select


def plane(axis: int) -> Select:
    def select(dataset: Dataset, _scale: int) -> list[Selection]:
        slices = [slice(0, length) for length in dataset.shape]
        middle = dataset.shape[axis] // 2 + 3
        slices[axis] = slice(middle, middle + 1)
        return [Region(tuple(slices))]

    return select


def rows(count: int) -> Select:
    def select(dataset: Dataset, scale: int) -> list[Selection]:
        some = np.random.default_rng(2).choice(dataset.shape[0], max(4, count // scale), replace=False)
        return [Rows(sorted(some.tolist()))]

    return select


def points(count: int) -> Select:
    def select(dataset: Dataset, scale: int) -> list[Selection]:
        rng = np.random.default_rng(3)
        return [Points(tuple(rng.integers(0, length, max(4, count // scale)) for length in dataset.shape))]

    return select


def middle(whole_axes: tuple[int, ...] = ()) -> Select:
    """Return one element near the middle, or all of these dimensions there."""

    def select(dataset: Dataset, _scale: int) -> list[Selection]:
        places = [length // 2 + 1 for length in dataset.shape]
        slices = [slice(place, place + 1) for place in places]
        for axis in whole_axes:
            slices[axis] = slice(0, dataset.shape[axis])
        return [Region(tuple(slices))]

    return select


def strides(step: int) -> Select:
    return lambda dataset, _scale: [Region(tuple(slice(1, length, step) for length in dataset.shape))]


def some_rows(*, as_list: bool) -> Select:
    """Return the same rows, off the chunk grid, as a list or as a slice."""

    def select(dataset: Dataset, _scale: int) -> list[Selection]:
        begin, end = dataset.chunks[0] // 3, dataset.shape[0] - dataset.chunks[0] // 5
        if as_list:
            return [Rows(list(range(begin, end)))]
        return [Region((slice(begin, end), *(slice(0, length) for length in dataset.shape[1:])))]

    return select


def one_chunk(dataset: Dataset, _scale: int) -> list[Selection]:
    return [Region(tuple(slice(0, length) for length in dataset.chunks))]


def chunk_by_chunk(dataset: Dataset, _scale: int) -> list[Selection]:
    counts = [length // size for length, size in zip(dataset.shape, dataset.chunks, strict=True)]
    return [
        Region(tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, dataset.chunks, strict=True)))
        for place in np.ndindex(*counts)
    ]


def some_chunks(count: int) -> Select:
    """Return chunks at random places, one after the other."""

    def select(dataset: Dataset, scale: int) -> list[Selection]:
        every = chunk_by_chunk(dataset, scale)
        chosen = np.random.default_rng(4).choice(len(every), min(len(every), max(8, count // scale)), replace=False)
        return [every[number] for number in chosen]

    return select


def in_units(nbytes: int) -> str:
    """Return a number of bytes in the largest unit of which there is one.

    >>> in_units(2**14), in_units(3 * 2**29)
    ('16 KiB', '1.5 GiB')
    """
    power, name = next(one for one in ((30, "GiB"), (20, "MiB"), (10, "KiB"), (0, "B")) if nbytes >= 2 ** one[0])
    return f"{nbytes / 2**power:.4g} {name}"


def in_dimensions(lengths: Sequence[int]) -> str:
    """Return a shape as people write it.

    >>> in_dimensions((40, 40, 40)), in_dimensions((512, 256))
    ('40³', '512 × 256')
    """
    if len(lengths) == 3 and len(set(lengths)) == 1:
        return f"{lengths[0]}³"
    return " × ".join(map(str, lengths))


@dataclass(frozen=True)
class Workload:
    """One row of the report: `verb` on `dataset`.

    `select` says which part, `cache` how much decoded may be kept, `threads` how many threads call the library.
    """

    name: str
    title: str
    group: str
    verb: Verb
    dataset: Dataset
    select: Select = field(default=whole, repr=False)
    cache: int = 0
    threads: int = 1

    @property
    def unit(self) -> str:
        return "B" if self.verb in {"memory", "stream"} else "s"

    def facts(self, scale: int) -> dict[str, str]:
        """Return what is known of the array and of what is read from it at this scale, for titles."""
        dataset = self.dataset.scaled(scale)
        selections = self.select(dataset, scale)
        first, count = selections[0], len(selections)
        part: list[int] = []  # lengths along those dimensions that a region has
        if isinstance(first, Region):
            lengths = [len(range(*one.indices(n))) for one, n in zip(first.slices, dataset.shape, strict=True)]
            part = [length for length in lengths if length > 1]
        elif isinstance(first, Rows):
            count = len(first.indices)
        else:
            count = len(first.coordinates[0])
        return {
            "size": in_units(dataset.nbytes),
            "chunk": in_units(dataset.chunk_nbytes),
            "chunk_shape": in_dimensions(dataset.chunks),
            "chunks": f"{dataset.nchunks:,}",
            "nodes": f"{dataset.shape[0]:,}",
            "count": f"{count:,}",
            "part": in_dimensions(part),
            "rows": f"{part[0] if part else count:,}",
        }

    def title_at(self, scale: int) -> str:
        """Return what the row is called at this scale."""
        return self.title.format(**self.facts(scale))

    def group_at(self, scale: int) -> str:
        """Return what the rows around it are called at this scale."""
        return self.group.format(**self.facts(scale))


def _large(codec: Codec, zarr_format: int = 3) -> Dataset:
    name = f"large-v{zarr_format}-{codec}"
    return Dataset(name, (16384, 8192), (128, 8192), codec, zarr_format=zarr_format)


LARGE = {codec: _large(codec) for codec in ("raw", "blosc", "zstd", "gzip", "zstd+crc32c")}
SQUARE = Dataset("large-square", (16384, 8192), (1024, 1024))  # its rows are apart in the result
LARGE_V2 = {codec: _large(codec, 2) for codec in ("raw", "blosc", "zstd")}
SMALL = {codec: Dataset(f"small-{codec}", (8192, 8192), (64, 64), codec) for codec in ("raw", "zstd")}
TINY = Dataset("tiny", (4096, 256), (1, 256))
SHARDS = {
    codec: Dataset(f"shards-{codec}", (512, 512, 512), (32, 32, 32), codec, "uint16", shards=(128, 128, 128))
    for codec in ("zstd", "raw")
}
MATRIX = Dataset("matrix", (4096, 4096), (256, 256), "zstd")
LATENCY = Dataset("latency", (1024, 1024), (64, 64))
NODES = Dataset("nodes", (1000, 100), (1, 10))  # a group of 1,000 arrays of 100 elements

LARGE_CHUNKS = "Large chunks: {chunk} each"
SMALL_CHUNKS = "Small chunks"
SHARDED = "Shards: {size}, inner chunks of {chunk_shape}"
SELECTIONS = "Selections from {size} in chunks of {chunk}, zstd"
THREADS = "Threads of one process: zstd, one call for each chunk"
METADATA = "Metadata"
JOINED = "Many arrays as one: {chunk} each, raw"
PROCESS = "Start, and memory"


def _bulk(datasets: dict[Any, Dataset], group: str, name: str, what: str = "{size}") -> list[Workload]:
    """Return a whole read and a whole write of each."""
    return [
        Workload(f"{verb}-{name}-{codec}", f"{verb} {what}, {codec}", group, verb, dataset)
        for codec, dataset in datasets.items()
        for verb in ("read", "write")
    ]


def _joined(count: int) -> list[Workload]:
    """Return the workloads that open and read `count` arrays as one."""
    dataset = Dataset(f"joined-{count}", (count, 64, 64), (1, 64, 64))
    parts = {"point": middle(), "series": middle((0,)), "plane": middle((1, 2))}
    return [
        Workload(f"join-{count}", "open {nodes} arrays as one", JOINED, "join", dataset),
        *(
            Workload(f"joined-{count}-{name}", f"a {name} of {{nodes}} arrays", JOINED, "read joined", dataset, select)
            for name, select in parts.items()
        ),
    ]


_SHARDS_CACHE = 512 * ONE_MIB
_CHUNKS = "{chunks} chunks of {chunk}"
_WINDOWS = "{count} random windows of {part}"
WORKLOADS = [
    *_bulk(LARGE, LARGE_CHUNKS, "large"),
    Workload("read-square-raw", "read {size}, chunks of {chunk_shape}, raw", LARGE_CHUNKS, "read", SQUARE),
    *_bulk(LARGE_V2, LARGE_CHUNKS, "v2", "{size}, Zarr v2"),
    *_bulk(SMALL, SMALL_CHUNKS, "small", _CHUNKS),
    *_bulk({"raw": TINY}, SMALL_CHUNKS, "tiny", _CHUNKS),
    Workload("read-shards-zstd", "read {size}, zstd", SHARDED, "read", SHARDS["zstd"]),
    Workload("windows", f"{_WINDOWS}, zstd", SHARDED, "read", SHARDS["zstd"], windows(200, (40, 40, 40))),
    Workload("plane", "a plane of {part}, zstd", SHARDED, "read", SHARDS["zstd"], plane(0)),
    Workload(
        "windows-cached", f"{_WINDOWS}, cached", SHARDED, "read", SHARDS["zstd"], windows(200, (40, 40, 40)),
        cache=_SHARDS_CACHE,
    ),
    Workload(
        "plane-cached", "a plane of {part}, cached", SHARDED, "read", SHARDS["zstd"], plane(0), cache=_SHARDS_CACHE
    ),
    *_bulk({"raw": SHARDS["raw"]}, SHARDED, "shards"),
    Workload("rows", "{count} rows (orthogonal)", SELECTIONS, "read", MATRIX, rows(1000)),
    Workload("points", "{count} points", SELECTIONS, "read", MATRIX, points(10_000)),
    Workload("strides", "every fifth along both: {part}", SELECTIONS, "read", MATRIX, strides(5)),
    Workload("elements", "{count} elements, one by one", SELECTIONS, "read", MATRIX, windows(1000, (1, 1))),
    Workload("rows-slice", "{rows} rows off the grid, a slice", SELECTIONS, "read", MATRIX, some_rows(as_list=False)),
    Workload("rows-list", "the same {rows} rows, as a list", SELECTIONS, "read", MATRIX, some_rows(as_list=True)),
    *(
        Workload(
            f"threads-{count}", f"read {{count}} chunks of {{chunk}} from {count} thread{'s'[: count > 1]}", THREADS,
            "read in threads", SMALL["zstd"], some_chunks(2000), threads=count,
        )
        for count in (1, 2, 4)
    ),
    Workload("create-nodes", "create {nodes} arrays", METADATA, "create", NODES),
    Workload("open-nodes", "open {nodes} arrays by name", METADATA, "open", NODES),
    Workload("list-nodes", "list {nodes} arrays with shapes", METADATA, "list", NODES),
    Workload("consolidated", "open {nodes} arrays, consolidated", METADATA, "consolidated", NODES),
    *_joined(1000),
    *_joined(12_000),
    Workload("latency", "open an array, read one chunk of {chunk}", PROCESS, "open and read", LATENCY, one_chunk),
    Workload("import", "import, over NumPy", PROCESS, "import", LATENCY),
    Workload("begin", "import, and read one chunk of {chunk}", PROCESS, "begin", LATENCY, one_chunk),
    Workload("memory-raw", "peak of memory, read {size}, raw", PROCESS, "memory", LARGE["raw"]),
    Workload("memory-zstd", "peak of memory, read {size}, zstd", PROCESS, "memory", LARGE["zstd"]),
    Workload(
        "memory-stream", "peak, read {size} by chunks, zstd", PROCESS, "stream", LARGE["zstd"], chunk_by_chunk
    ),
]  # fmt: skip
BY_NAME = {workload.name: workload for workload in WORKLOADS}
