"""Compare import times, each in fresh processes, interleaved; NumPy's own time is taken off.

Usage: ``python -m benchmarks.import_time``.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

CODE = "import numpy, time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"
NAMES = ["omnizarr", "zarr", "tensorstore", "zarrista"]


def seconds(name: str) -> float | None:
    """Return the time that importing `name` takes once NumPy is there; None if it is not installed."""
    # What is installed for use has its bytecode beside it; a checkout gets it in the first round.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(  # noqa: S603  (the code is ours)
        [sys.executable, "-c", CODE.format(name)], capture_output=True, text=True, check=False, env=environment
    )
    return float(done.stdout) if done.returncode == 0 else None


def main() -> None:
    """Measure and print."""
    times: dict[str, list[float]] = {}
    for _ in range(11):
        for name in NAMES:
            found = seconds(name)
            if found is not None:
                times.setdefault(name, []).append(found)
    ours = statistics.median(times["omnizarr"])
    for name, some in times.items():
        median = statistics.median(some)
        print(f"{name}: {median * 1e3:.1f} ms over NumPy ({median / ours:.2f} x omnizarr)")


if __name__ == "__main__":
    main()
