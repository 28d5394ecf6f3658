"""Measure what a small change of a large shard on S3 sends and receives.

Usage: ``python -m benchmarks.large_shards [--rounds N] [--directory PLACE] [--docs]``. Each library changes one inner
chunk in the middle of a shard, on the server that the tests start (see tests/servers.py). Bytes are those that pass
through connections of its own to that server, and all values are read back. The first change of a process, in which a
library may ask the server what it can do, is not counted.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

import numpy as np

from benchmarks import remote, reports, running
from tests import servers

MIB: Final = 2**20
CHUNK: Final = MIB // 4
SHARDS: Final = (64 * MIB, 256 * MIB)
PAGE: Final = Path(__file__).parents[1] / "docs" / "howto" / "small-writes.md"
BEGIN, END = "<!-- large shards: begin -->", "<!-- large shards: end -->"


class Counter:
    """Passes on what clients and a server at `url` say, and counts the bytes."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname, parts.port)
        self.sent = self.received = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        started = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._listener = asyncio.run_coroutine_threadsafe(started, self._loop).result()
        self.endpoint = f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._listener.close()
        talks = asyncio.all_tasks() - {asyncio.current_task()}
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, to = await asyncio.open_connection(*self._server)
            await asyncio.gather(self._pass(reader, to, "sent"), self._pass(there, writer, "received"))
        except asyncio.CancelledError:  # by `_end`, which waits for us
            pass

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        try:
            while piece := await reader.read(MIB):
                setattr(self, name, getattr(self, name) + len(piece))
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


def _assign(array: Any, where: slice, values: Any) -> None:
    array[where] = values


def _write(array: Any, where: slice, values: Any) -> None:
    array[where].write(values).result()


Opener = Callable[[remote.Place], remote.Remote]
LIBRARIES: Final[dict[str, tuple[Opener, Callable[[Any, slice, Any], None]]]] = {
    "omnizarr": (remote.Omnizarr, _assign),
    "omnizarr, the whole shard": (remote.Omnizarr, _assign),
    "zarr-python": (lambda place: remote.ZarrPython(place, "obstore"), _assign),
    "TensorStore": (remote.TensorStore, _write),
}


def measure(library: str, server: servers.Server, size: int, rounds: int) -> dict[str, float]:
    """Return how many bytes a change of one chunk sends and receives, and its seconds: medians."""
    import omnizarr

    place = server.fresh()
    values = np.random.default_rng(1).integers(1, 256, size, "u1")
    array = omnizarr.create_array(
        f"{place.url}/a", shape=values.shape, shards=values.shape, chunks=(CHUNK,), dtype="u1", compressors=None,
        storage_options=dict(place.options),
    )  # fmt: skip
    array[...] = values
    opener, change = LIBRARIES[library]
    found: list[tuple[float, float, float]] = []
    # By way of Python, shards are stored as a whole.
    fetch = "python" if library.endswith("whole shard") else None
    with Counter(server.endpoint) as counter, omnizarr.config.set({"fetch": fetch}):
        moved = place.at(counter.endpoint)
        opened = opener(remote.Place(moved.url, moved.options)).open("a")
        for number in range(rounds + 1):
            where = slice(size // 2 + number * CHUNK, size // 2 + (number + 1) * CHUNK)
            values[where] = number + 1
            before = counter.sent, counter.received, time.perf_counter()
            change(opened, where, values[where])
            seconds = time.perf_counter() - before[2]
            found.append((counter.sent - before[0], counter.received - before[1], seconds))
        if not np.array_equal(array[...], values):
            raise ValueError(f"{library} has written other values")
    with servers.s3_client(server.endpoint) as client:
        client.delete_object(Bucket=place.name, Key="a/c/0")
    names = ("sent", "received", "seconds")
    return {name: statistics.median(each) for name, each in zip(names, zip(*found[1:], strict=True), strict=True)}


def markdown(about: dict[str, str], results: dict[int, dict[str, dict[str, float]]]) -> str:
    """Return the table of the page."""
    measured = (
        f"One inner chunk of {CHUNK // 1024} KiB in the middle of a shard of uint8, not compressed. Each cell has MiB "
        "sent, MiB received, and seconds, on a server on the same machine. "
        f"Measured {about['date']} on {about['processor']}, load {about['load']} before it began."
    )
    lines = [
        measured,
        "",
        "| | " + " | ".join(f"shard of {size // MIB} MiB" for size in results) + " |",
        "|---|" + "--:|" * len(results),
    ]
    for library in LIBRARIES:
        found = [each[library] for each in results.values()]
        cells = [f"{each['sent'] / MIB:.3g} · {each['received'] / MIB:.3g} · {each['seconds']:.3g} s" for each in found]
        lines.append(f"| {library} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and put the table into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_shards", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how many changes count; of these the median")
    parser.add_argument("--directory", type=Path, help="where the server has its data (default: a temporary directory)")
    parser.add_argument("--docs", action="store_true", help="put the table into docs/howto/small-writes.md")
    options = parser.parse_args()
    results: dict[int, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.directory) as home:
        about = running.about(Path(home))
        with servers.running_s3(Path(home)) as server:
            for size in SHARDS:
                results[size] = {}
                for library in LIBRARIES:
                    results[size][library] = measure(library, server, size, options.rounds)
                    print(f"{size // MIB:5} MiB {library:28} {results[size][library]}", flush=True)
    if options.docs:
        reports.into_page(PAGE, markdown(about, results), BEGIN, END)


if __name__ == "__main__":
    main()
