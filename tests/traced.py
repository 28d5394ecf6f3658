"""How much memory a function takes."""

import tracemalloc
from collections.abc import Callable


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
