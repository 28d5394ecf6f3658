"""A live view (`omnizarr.storage.TranslatedStore`) beside the data it shows: what handing chunks through costs.

Usage: ``python -m benchmarks.view [--rounds N] [--megabytes N] [--directory PATH] [--docs]``. An array of Zarr v2 is
read whole, as it is and as Zarr v3 through a view, in turn. Its chunks are the same in both formats, so the
view passes them on.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zarr

import omnizarr
from benchmarks import reports, running
from omnizarr.interop.zarr_python import accelerate, to_zarr_python
from omnizarr.storage import TranslatedStore

BEGIN, END = "<!-- view: begin -->", "<!-- view: end -->"
CHUNKS = (64, 128, 256)
CODECS: dict[str, Any] = {"raw": None, "zstd": "auto"}

Read = Callable[[], Any]


class Row(NamedTuple):
    """What is read, through what, and the seconds that each round took: of the data itself, and of the view."""

    reader: str
    codec: str
    chunk: int
    direct: list[float]
    viewed: list[float]

    @property
    def ratio(self) -> float:
        """How long the view takes, divided by how long the data itself does: the median of the rounds."""
        return statistics.median(view / direct for view, direct in zip(self.viewed, self.direct, strict=True))


def ours(path: Path, engine: str) -> tuple[Read, Read]:
    """Return how omnizarr reads an array, and a view of it."""
    with omnizarr.config.set({"engine": engine}):
        direct = omnizarr.open_array(path, mode="r")
        viewed = omnizarr.open_array(TranslatedStore(path), mode="r")
    assert viewed.zarr_format == 3
    return lambda: direct[...], lambda: viewed[...]


def theirs(path: Path, *, is_accelerated: bool) -> tuple[Read, Read]:
    """Return how zarr-python reads an array, and a view of it."""
    with accelerate(is_accelerated):
        direct = zarr.open_array(path, mode="r")
        viewed = zarr.open_array(to_zarr_python(TranslatedStore(path)), mode="r")
    return lambda: direct[...], lambda: viewed[...]


READERS: dict[str, Callable[[Path], tuple[Read, Read]]] = {
    "omnizarr": lambda path: ours(path, "native"),
    "omnizarr (Python)": lambda path: ours(path, "reference"),
    "zarr-python": lambda path: theirs(path, is_accelerated=False),
    "zarr-python, omnizarr's pipeline": lambda path: theirs(path, is_accelerated=True),
}


def measured(folder: Path, nbytes: int, rounds: int) -> Iterator[Row]:
    """Yield a row for each reader, codec and size of chunk; the two of a row take turns, in random order."""
    side = int((nbytes // 4) ** 0.5) // max(CHUNKS) * max(CHUNKS)
    values = np.cumsum(np.random.default_rng(7).integers(-3, 4, (side, side)), axis=1, dtype="f4")
    for codec, compressors in CODECS.items():
        for chunk in CHUNKS:
            path = folder / f"{codec}-{chunk}"
            options = {"chunks": (chunk, chunk), "compressors": compressors, "zarr_format": 2}
            omnizarr.create_array(path, data=values, **options)
            for name, reader in READERS.items():
                ways = reader(path)
                for way in ways:
                    np.testing.assert_array_equal(way(), values)
                row = Row(name, codec, chunk, [], [])
                for _ in range(rounds):
                    for number in random.sample((0, 1), 2):
                        began = time.perf_counter()
                        ways[number]()
                        (row.direct, row.viewed)[number].append(time.perf_counter() - began)
                yield row


def markdown(rows: list[Row], folder: Path, load: float) -> str:
    """Return where it was measured, and the table."""
    about = running.about(folder)
    sizes = [f"{chunk} × {chunk}, {codec}" for codec in CODECS for chunk in CHUNKS]
    lines = ["| | " + " | ".join(sizes) + " |", "|---|" + "--:|" * len(sizes)]
    for reader in READERS:
        ratios = [f"{row.ratio:.2f} ×" for row in rows if row.reader == reader]
        lines.append(f"| {reader} | " + " | ".join(ratios) + " |")
    measured = (
        f"Measured {about['date']} with {len(rows[0].direct)} rounds on {about['processor']}, {about['file system']}, "
        f"CPython {about['python']}, zarr-python {zarr.__version__}, load {load:.1f} before it began."
    )
    return "\n".join([measured, "", *lines, ""])


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.view", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="how many times each reads")
    parser.add_argument("--megabytes", type=int, default=16, help="size of the array")
    parser.add_argument("--directory", type=Path, help="where to make files; default: a temporary directory")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/benchmarks-data.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as folder:
        rows = []
        for row in measured(Path(folder), options.megabytes * 2**20, options.rounds):
            rows.append(row)
            direct, viewed = (statistics.median(times) * 1e3 for times in (row.direct, row.viewed))
            print(f"{row.codec:<5}{row.chunk:>4}  {row.reader:<34}{direct:8.2f} ms{viewed:8.2f} ms{row.ratio:7.2f} ×")
        text = markdown(rows, Path(folder), load)
    print(text)
    if options.docs:
        reports.into_page(reports.PAGE, text, BEGIN, END)


if __name__ == "__main__":
    main()
