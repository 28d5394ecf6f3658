"""Writers of disjoint regions that share chunks: the same scenario for any library.

A scenario cuts an array into random bands (not along chunks), gives each band to one
writer, lets all writers go at once and counts the elements that are wrong afterwards.
"""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

SHAPE = (64, 48)
CHUNKS = (16, 16)
SHARDS = (32, 48)

AnyArray = npt.NDArray[Any]
Region = tuple[slice, ...]


def regions(seed: int, writers: int) -> list[list[Region]]:
    """Cut the array into random rectangles, each whole row band cut at other columns, and deal them out."""
    rng = np.random.default_rng(seed)
    row_cuts = [0, *sorted(rng.choice(np.arange(1, SHAPE[0]), 11, replace=False).tolist()), SHAPE[0]]
    rectangles = []
    for top, bottom in pairwise(row_cuts):
        column_cuts = [0, *sorted(rng.choice(np.arange(1, SHAPE[1]), 5, replace=False).tolist()), SHAPE[1]]
        rectangles += [(slice(top, bottom), slice(left, right)) for left, right in pairwise(column_cuts)]
    rng.shuffle(rectangles)
    return [rectangles[writer::writers] for writer in range(writers)]


def values() -> AnyArray:
    """Return what the array must hold afterwards; no element equals the fill value 0."""
    return np.arange(1, np.prod(SHAPE) + 1, dtype="int32").reshape(SHAPE)


def write_regions(array: Any, some: list[Region]) -> None:
    """Write each region by itself."""
    wanted = values()
    for region in some:
        array[region] = wanted[region]


def in_threads(arrays: list[Any], seed: int) -> None:
    """Let one thread per array (or per repetition of one array) write its share."""
    barrier = threading.Barrier(len(arrays))
    failures: list[BaseException] = []

    def work(array: Any, some: list[Region]) -> None:
        barrier.wait()
        try:
            write_regions(array, some)
        except BaseException as error:  # noqa: BLE001  (any failure must reach the test)
            failures.append(error)

    shares = regions(seed, len(arrays))
    threads = [threading.Thread(target=work, args=pair) for pair in zip(arrays, shares, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _serve(open_array: Callable[[str], Any], ready: Any, done: Any, writers: int, number: int, tasks: Any) -> None:
    while (task := tasks.get()) is not None:
        path, seed = task
        array = open_array(path)
        ready.wait()
        write_regions(array, regions(seed, writers)[number])
        done.wait()


class Processes:
    """Writers in processes of their own, started once and used for many runs."""

    def __init__(self, open_array: Callable[[str], Any], writers: int = 4) -> None:
        context = multiprocessing.get_context("spawn")
        self.ready, self.done = context.Barrier(writers), context.Barrier(writers + 1)
        self.queues = [context.SimpleQueue() for _ in range(writers)]
        self.workers = [
            context.Process(target=_serve, args=(open_array, self.ready, self.done, writers, number, queue))
            for number, queue in enumerate(self.queues)
        ]
        for worker in self.workers:
            worker.start()

    def run(self, path: str, seed: int) -> None:
        """Let every process write its share of the array at `path`."""
        for queue in self.queues:
            queue.put((path, seed))
        self.done.wait(60)

    def close(self) -> None:
        """End the processes."""
        for queue in self.queues:
            queue.put(None)
        for worker in self.workers:
            worker.join(10)
            worker.kill()
