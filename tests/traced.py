"""How much memory a function takes, and what the process has open: only what belongs to the test that asks."""

import threading
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def opened_below(folder: Path) -> list[str]:
    """Return the paths of the open files below a folder. What other tests and libraries have open does not count."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # what listed them
            found.append(str(descriptor.readlink()))
    return sorted(path for path in found if path.startswith(f"{folder}/"))


def own_threads() -> set[threading.Thread]:
    """Return the threads that omnizarr has started. Those of servers and libraries come and go by themselves."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("omnizarr")}


def peak_of(task: Callable[[], object], most: int) -> int:
    """Return the largest number of bytes that Python and NumPy held while `task` ran.

    Threads that other tests left running, of servers for example, count too. So a peak above `most` is measured twice
    more, and the smallest is returned.
    """
    return min(_peaks(task, most))


def _peaks(task: Callable[[], object], most: int) -> list[int]:
    peaks: list[int] = []
    while len(peaks) < 3 and not (peaks and peaks[-1] <= most):
        tracemalloc.start()
        try:
            task()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return peaks
