"""Convert a large array, in processes of their own: seconds, peak of memory, and what becomes of a killed conversion.

Usage: ``python -m benchmarks.conversion [--gigabytes 2] [--directory PLACE]``.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAKE = """
import sys, numpy as np, omnizarr
planes = int(float(sys.argv[2]) * 10**9 / 4 / 1000**2)
array = omnizarr.create_array(
    sys.argv[1], shape=(planes, 1000, 1000), chunks=(1, 1000, 1000), dtype="float32", zarr_format=2,
    compressors={"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1},
)
rng = np.random.default_rng(0)
for plane in range(planes):
    array[plane] = (np.sin(np.arange(10**6) / 999 + plane) * 100 + rng.normal(0, 1, 10**6)).round(1).reshape(1000, 1000)
"""
CONVERT = """
import json, sys, omnizarr
def status(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))
before = status("VmRSS")
print("ready", flush=True)
report = omnizarr.convert(sys.argv[1], sys.argv[2], **json.loads(sys.argv[3]))
print(json.dumps({"seconds": report.seconds, "chunks": report.chunks(), "verified": report.verified,
                  "nbytes": report.nbytes, "memory": status("VmHWM") - before}))
"""
CASES = {
    "copied unchanged": {},
    "encoded again, zstd": {"compressors": {"id": "zstd", "level": 1}},
    "other chunks": {"chunks": [100, 100, 100]},
    "shards": {"chunks": [50, 50, 50], "shards": [100, 500, 500]},
    "other chunks, Zarr v1": {"chunks": [100, 100, 100], "zarr_format": 1},
}


def convert(
    source: Path, target: Path, options: dict[str, object], kill_after: float | None = None
) -> dict[str, float]:
    """Convert in a process of its own, and return what it measured; empty if it was killed."""
    command = [sys.executable, "-c", CONVERT, str(source), str(target), json.dumps(options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 - the code is ours
        assert process.stdout is not None
        process.stdout.readline()
        if kill_after is not None:
            time.sleep(kill_after)
            process.kill()
            return {}
        found: dict[str, float] = json.loads(process.stdout.read())
        return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--only", help="the cases whose title contains this")
    parser.add_argument("--directory", type=Path, help="where to (default: a temporary directory)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as place:
        source = Path(place) / "source.zarr"
        subprocess.run([sys.executable, "-c", MAKE, source, str(options.gigabytes)], check=True)  # noqa: S603
        cases = [(title, changes) for title, changes in CASES.items() if (options.only or "") in title]
        for number, (title, changes) in enumerate(cases):
            target = Path(place) / f"{number}.zarr"
            whole = convert(source, target, changes)
            print(
                f"{title}: {whole['seconds']:.1f} s, {whole['memory'] / 2**20:.0f} MiB above the interpreter, "
                f"{whole['chunks']} chunks, {whole['nbytes'] / 2**20:.0f} MiB, verified: {whole['verified']}",
                flush=True,
            )
            after = random.uniform(0.1, 0.5) * whole["seconds"]
            convert(source, target, {**changes, "overwrite": True}, kill_after=after)
            resumed = convert(source, target, {**changes, "resume": True})
            print(
                f"    killed after {after:.1f} s, resumed: {resumed['seconds']:.1f} s, {resumed['chunks']} chunks, "
                f"verified: {resumed['verified']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
