"""What omnizarr promises about each workload, in one place: `TARGETS` has one entry for each name in `workloads`.

A target looks at medians of one run. It says what is promised (`text`), and by how much of it a result used (`used`:
1 is just reached, above 1 is not; None: what it compares with was not there).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Protocol

from benchmarks.peers import PEERS
from benchmarks.running import Report, Result

CORES = 2  # that targets are about


class Target(Protocol):
    """One promise about one workload."""

    @property
    def text(self) -> str: ...

    def used(self, report: Report, result: Result) -> float | None: ...


def fastest_peer(result: Result) -> tuple[str, float] | None:
    """Return which other library did it fastest, and its median.

    HDF5 keeps all chunks in one file. Where Zarr has a file for each small chunk, this is another task: shown, but not
    compared.
    """
    many_files = result.dataset.file_nbytes < 2**16
    return min(
        (
            (key, statistics.median(values))
            for key, values in result.values.items()
            if PEERS[key].role == "peer" and not (many_files and PEERS[key].suffix)
        ),
        key=lambda one: one[1],
        default=None,
    )


@dataclass(frozen=True)
class Fastest:
    """No other library is faster."""

    @property
    def text(self) -> str:
        return "no peer is faster"

    def used(self, report: Report, result: Result) -> float | None:
        ours, best = result.median(report.ours), fastest_peer(result)
        return None if ours is None or best is None else ours / best[1]


@dataclass(frozen=True)
class Times:
    """At most so many times what a peer, or the floor, needs."""

    times: float
    key: str = "floor"

    @property
    def text(self) -> str:
        label = PEERS[self.key].label
        return f"not slower than {label}" if self.times == 1 else f"≤ {self.times:g} × {label}"

    def used(self, report: Report, result: Result) -> float | None:
        ours, other = result.median(report.ours), result.median(self.key)
        return None if ours is None or other is None else ours / other / self.times


@dataclass(frozen=True)
class OfWorkload:
    """At most so many times what omnizarr itself needs for another workload."""

    times: float
    name: str
    title: str

    @property
    def text(self) -> str:
        return f"≤ {self.times:g} × {self.title}"

    def used(self, report: Report, result: Result) -> float | None:
        other = next((one for one in report.results if one.workload.name == self.name), None)
        ours, base = result.median(report.ours), other.median(report.ours) if other else None
        return None if ours is None or base is None else ours / base / self.times


@dataclass(frozen=True)
class Within:
    """At most so many seconds, in all or per chunk."""

    seconds: float
    per_chunk: bool = False

    @property
    def text(self) -> str:
        amount = f"{self.seconds * 1e6:g} µs" if self.seconds < 1e-3 else f"{self.seconds * 1e3:g} ms"
        return f"≤ {amount}" + (" per chunk" if self.per_chunk else "")

    def used(self, report: Report, result: Result) -> float | None:
        ours = result.median(report.ours)
        count = result.dataset.nchunks if self.per_chunk else 1
        return None if ours is None else ours / count / self.seconds


@dataclass(frozen=True)
class Memory:
    """At most the result and two chunks per worker."""

    whole: bool = True  # the result is the whole array; else one chunk

    @property
    def text(self) -> str:
        return f"≤ {'result' if self.whole else 'a chunk'} + 2 chunks per worker"

    def used(self, report: Report, result: Result) -> float | None:
        ours, dataset = result.median(report.ours), result.dataset
        base = dataset.nbytes if self.whole else dataset.chunk_nbytes
        return None if ours is None else ours / (base + 2 * CORES * dataset.chunk_nbytes)


_BULK = (Fastest(), Times(1.3))
_METADATA = (Times(1, "tensorstore"), Times(3))
TARGETS: dict[str, tuple[Target, ...]] = {
    **{
        f"{verb}-large-{codec}": _BULK
        for verb in ("read", "write")
        for codec in ("raw", "blosc", "zstd", "gzip", "zstd+crc32c")
    },
    **{f"{verb}-v2-{codec}": _BULK for verb in ("read", "write") for codec in ("raw", "blosc", "zstd")},
    "read-square-raw": _BULK,
    **{f"{verb}-small-{codec}": (Times(1.5),) for verb in ("read", "write") for codec in ("raw", "zstd")},
    "read-tiny-raw": (Within(3e-6, per_chunk=True),),
    "write-tiny-raw": (Times(1, "zarrs-python"),),
    "read-shards-zstd": _BULK,
    "windows": _BULK,
    "plane": _BULK,
    "windows-cached": (Times(1, "tensorstore"),),
    "plane-cached": (Times(1, "tensorstore"),),
    "read-shards-raw": _BULK,
    "write-shards-raw": _BULK,
    "rows": (Fastest(),),
    "points": (Fastest(),),
    "strides": (Fastest(),),
    "elements": (Fastest(),),
    "rows-slice": (Fastest(),),
    "rows-list": (OfWorkload(1.3, "rows-slice", "the slice"),),
    "threads-1": (Fastest(),),
    **{f"threads-{count}": (Fastest(), OfWorkload(1, "threads-1", "one thread")) for count in (2, 4)},
    "create-nodes": _METADATA,
    "open-nodes": _METADATA,
    "list-nodes": (Times(3),),
    "consolidated": (Times(3),),
    **{f"join-{count}": (Fastest(),) for count in (1000, 12000)},
    **{f"joined-{count}-{part}": (Fastest(),) for count in (1000, 12000) for part in ("point", "series", "plane")},
    "latency": (Within(40e-6),),
    "import": (Within(60e-3),),
    "begin": (Within(120e-3),),
    "memory-raw": (Memory(),),
    "memory-zstd": (Memory(),),
    "memory-stream": (Memory(whole=False),),
}


def verdict(report: Report, result: Result) -> tuple[str, bool | None]:
    """Return the targets of a workload in words, with what was missed by how much, and if all are reached.

    None: cannot be told, as something to compare with is missing.
    """
    words, reached = [], []
    for target in TARGETS[result.workload.name]:
        used = target.used(report, result)
        missed = f" (missed: × {used:.2f})" if used is not None and used > 1 else ""
        unknown = " (?)" if used is None else ""
        words.append(target.text + missed + unknown)
        reached.append(None if used is None else used <= 1)
    if False in reached:
        return "; ".join(words), False
    return "; ".join(words), None if None in reached else True
