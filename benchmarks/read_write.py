"""Compare reading and writing of the same bytes by omnizarr and its peers, in one run.

Usage::

    python -m benchmarks.read_write [--quick] [--json FILE] [--markdown FILE]

All libraries read the very same directories (made here with NumPy data of moderate entropy), interleaved,
and their results are compared before anything is timed. What is printed are medians and ratios to the fastest peer;
absolute times on a shared machine mean little.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import omnizarr
from benchmarks import peers

AnyArray = npt.NDArray[Any]


@dataclass
class Case:
    """One array on disk and one thing to do with it."""

    name: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    codec: str = "none"
    shards: tuple[int, ...] | None = None
    selection: Any = ...
    zarr_format: int = 3
    write: bool = False
    prototype: bool = False
    times: dict[str, list[float]] = field(default_factory=dict)


def cases(scale: int) -> list[Case]:
    """Return the workloads; `scale` 8 for the full size, 1 for a quick look."""
    rows = 128 * scale * 16
    big = (rows, 8192)  # float32: 512 MiB at scale 8
    return [
        Case("read whole, 4 MiB chunks, raw", big, (128, 8192), prototype=True),
        Case("read whole, 4 MiB square chunks, raw", big, (1024, 1024), prototype=True),
        Case("read whole, 4 MiB chunks, zstd", (rows // 4, 8192), (128, 8192), "zstd", prototype=True),
        Case("read whole, 4 MiB chunks, blosc", (rows // 4, 8192), (128, 8192), "blosc", prototype=True),
        Case("read whole, 16 KiB chunks, raw", (rows // 2, 8192), (1, 4096), prototype=True),
        Case("read whole, 16 KiB square chunks, raw", (rows // 2, 8192), (64, 64), prototype=True),
        Case("read whole, 16 KiB chunks, zstd", (rows // 8, 8192), (64, 64), "zstd", prototype=True),
        Case("read whole, v2, 1 MiB chunks, zstd", (rows // 4, 8192), (512, 512), "zstd", zarr_format=2),
        Case("read whole, shards of 32^3, zstd", (256, 256, 256), (32, 32, 32), "zstd", (128, 128, 256)),
        Case(
            "read a plane, shards of 32^3, zstd",
            (256, 256, 256),
            (32, 32, 32),
            "zstd",
            (128, 128, 256),
            (slice(None), 100, slice(None)),
        ),
        Case("read one chunk of 16 KiB", (1024, 1024), (64, 64), selection=(slice(64, 128), slice(64, 128))),
        Case("write whole, 4 MiB chunks, raw", (rows // 4, 8192), (128, 8192), write=True),
        Case("write whole, 16 KiB chunks, raw", (rows // 16, 8192), (64, 64), write=True),
        Case("write whole, shards of 32^3, zstd", (256, 256, 256), (32, 32, 32), "zstd", (128, 128, 256), write=True),
        Case("write 100 rows off the grid", (2048, 2048), (256, 256), selection=slice(100, 200), write=True),
    ]


def data_for(shape: tuple[int, ...]) -> AnyArray:
    """Return float32 numbers that compress about as well as measured ones do."""
    rng = np.random.default_rng(7)
    steps = rng.integers(-3, 4, size=shape, dtype=np.int8)
    return np.cumsum(steps, axis=-1, dtype=np.float32)


def create(case: Case, path: Path, values: AnyArray) -> None:
    """Write the array once, for all to read."""
    codec: dict[str, Any] = {
        "none": {"compressors": None},
        "zstd": {"compressors": [{"name": "zstd", "configuration": {"level": 1, "checksum": False}}]},
        "blosc": {
            "compressors": [
                {
                    "name": "blosc",
                    "configuration": {
                        "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0,
                    },
                }
            ]
        },
    }[case.codec]  # fmt: skip
    if case.zarr_format == 2 and case.codec == "zstd":
        codec = {"compressors": {"id": "zstd", "level": 1}}
    array = omnizarr.create_array(
        path,
        shape=case.shape,
        dtype="float32",
        chunks=case.chunks,
        shards=case.shards,
        zarr_format=case.zarr_format,
        fill_value=0,
        **codec,
    )
    array[...] = values


def decoder(codec: str) -> Callable[..., Any] | None:
    """Return the fastest way there is in Python to decode into memory."""
    if codec == "none":
        return None
    from numcodecs import Blosc, Zstd

    return {"zstd": Zstd(), "blosc": Blosc()}[codec].decode  # type: ignore[no-any-return]


def contestants(case: Case) -> list[peers.Peer]:
    """Return who takes part in a case."""
    some = peers.installed()
    if case.prototype:
        some.append(peers.prototype(case.chunks, case.shape, "float32", decoder(case.codec)))
    return some


def measure(case: Case, root: Path, rounds: int) -> None:
    """Run all contestants in turn, `rounds` times, and keep their times."""
    path = root / "data.zarr"
    values = data_for(case.shape)
    create(case, path, values)
    some = contestants(case)
    opened = {peer.name: peer.open(path) for peer in some}
    part = np.ascontiguousarray(values[case.selection])
    if not case.write:
        for peer in some:
            if not np.array_equal(peer.read(opened[peer.name], case.selection), part):
                raise SystemExit(f"{peer.name} reads other values in {case.name!r}")
    repeat = 50 if part.nbytes < 1 << 20 else 1
    for _ in range(rounds):
        for peer in some:
            began = time.perf_counter()
            for _ in range(repeat):
                if case.write:
                    peer.write(opened[peer.name], case.selection, part)
                else:
                    peer.read(opened[peer.name], case.selection)
            case.times.setdefault(peer.name, []).append((time.perf_counter() - began) / repeat)
    if case.write:
        found = some[0].read(some[0].open(path), case.selection)
        if not np.array_equal(found, part):
            raise SystemExit(f"other values were written in {case.name!r}")


def table(results: list[Case]) -> str:
    """Return a markdown table of medians, in milliseconds, each with its ratio to omnizarr's."""
    names = list(dict.fromkeys(name for case in results for name in case.times))
    lines = ["| workload | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for case in results:
        ours = statistics.median(case.times["omnizarr"])
        cells = []
        for name in names:
            if name not in case.times:
                cells.append("")
                continue
            median = statistics.median(case.times[name])
            cells.append(f"{median * 1e3:.3g} ms" + ("" if name == "omnizarr" else f" ({median / ours:.2f}x)"))
        lines.append(f"| {case.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="an eighth of the size")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only workloads whose name contains this")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    results = []
    for case in cases(1 if arguments.quick else 8):
        if arguments.only not in case.name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            measure(case, Path(folder), arguments.rounds)
        results.append(case)
        print(f"{case.name}: " + ", ".join(f"{k} {statistics.median(v) * 1e3:.3g} ms" for k, v in case.times.items()))
    print()
    print(table(results))
    if arguments.markdown:
        arguments.markdown.write_text(table(results) + "\n")
    if arguments.json:
        about = {"python": sys.version, "machine": platform.machine()}
        found = {case.name: case.times for case in results}
        arguments.json.write_text(json.dumps({"about": about, "seconds": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
