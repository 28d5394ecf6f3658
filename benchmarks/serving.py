"""How many requests per second `omnizarr serve` answers on the loopback, and what each costs.

``python -m benchmarks.serving [--seconds 60] [--clients 16] [--format 2] [--raw] [--json FILE]``. The server is a
process of its own. Clients are connections of this one: each sends its next request when its answer is there. Every
answer is compared with the bytes that are stored. Both sides share the machine, so a server alone answers more.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

import omnizarr
from omnizarr.storage import LocalStore, TranslatedStore
from omnizarr.web.application import FEW

CHUNKS: Final = 16  # in each direction
SIZE: Final = 100  # elements of a chunk in each direction; int16
_length: Final = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE).search


@dataclass
class Tally:
    """What clients have met."""

    times: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    nbytes: int = 0


def make(place: Path, zarr_format: int | str) -> None:
    """Write an array of 256 chunks of some kilobytes."""
    walk = np.random.default_rng(7).integers(-3, 4, (CHUNKS * SIZE,) * 2).cumsum(axis=1).astype("i2")
    if zarr_format != 1:
        omnizarr.create_group(place, zarr_format=zarr_format)
    omnizarr.create_array(place, name="temp", data=walk, chunks=(SIZE, SIZE), zarr_format=zarr_format)


def expected(place: Path, *, raw: bool) -> dict[str, bytes]:
    """Return what each key must be answered with."""
    store = LocalStore(place) if raw else TranslatedStore(place, consolidated=FEW)
    return {key: bytes(store.get(key) or b"") for key in store.list()}


async def client(port: int, values: dict[str, bytes], until: float, tally: Tally, seed: int) -> None:
    """Ask for keys in random order, one after another over one connection."""
    order = random.Random(seed)
    keys = list(values)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        key = order.choice(keys)
        began = time.perf_counter()
        writer.write(f"GET /{key} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            match = _length(head)
            body = await reader.readexactly(int(match[1]) if match else 0)
        except (OSError, asyncio.IncompleteReadError) as error:
            tally.errors.append(f"{key}: {error!r}")
            return
        tally.times.append(time.perf_counter() - began)
        tally.nbytes += len(body)
        if not head.startswith(b"HTTP/1.1 200 ") or body != values[key]:
            tally.errors.append(f"{key}: {head[:40]!r}")
    writer.close()


async def load(port: int, values: dict[str, bytes], seconds: float, clients: int) -> Tally:
    tally = Tally()
    until = time.perf_counter() + seconds
    await asyncio.gather(*(client(port, values, until, tally, seed) for seed in range(clients)))
    return tally


def measure(seconds: float, clients: int, zarr_format: int | str, *, raw: bool) -> dict[str, Any]:
    """Return requests per second, errors, and the processor time of the server."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "x.zarr"
        make(place, zarr_format)
        values = expected(place, raw=raw)
        command = [sys.executable, "-m", "omnizarr", "serve", "--port", "0", str(place), *(["--raw"] if raw else [])]
        server = subprocess.Popen(  # noqa: S603 - ourselves
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        port = int(server.stdout.readline().rstrip().rpartition(":")[2])
        began = time.perf_counter()
        tally = asyncio.run(load(port, values, seconds, clients))
        took = time.perf_counter() - began
        server.send_signal(signal.SIGINT)
        _, _, usage = os.wait4(server.pid, 0)
    times = sorted(tally.times)
    return {
        "requests": len(times),
        "errors": len(tally.errors),
        "first errors": tally.errors[:5],
        "seconds": round(took, 1),
        "requests per second": round(len(times) / took),
        "MB per second": round(tally.nbytes / took / 1e6, 1),
        "median ms": round(1e3 * statistics.median(times), 2),
        "99 % ms": round(1e3 * times[int(0.99 * len(times))], 2),
        "CPU ms per request": round(1e3 * (usage.ru_utime + usage.ru_stime) / len(times), 3),
        "memory MB": round(usage.ru_maxrss / 1e3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--format", default="2", help="1, 2, 3, 3-draft2019 or 3-draft2020")
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    zarr_format = int(asked.format) if asked.format.isdigit() else asked.format
    found = measure(asked.seconds, asked.clients, zarr_format, raw=asked.raw)
    for name, value in found.items():
        print(f"{name:>20}: {value}")
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return int(found["errors"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
