"""Processes, of several threads each, that do the same at the same time; for writers that share a server."""

from __future__ import annotations

import multiprocessing
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Self

from tests.concurrency import scenarios

PATIENCE = 300
"""Seconds after which a crew that does not answer is given up."""


class Crew:
    """Processes, started once, that call functions: ``with Crew(2) as crew: crew(function, [(1,), (2,)])``."""

    def __init__(self, processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.size = processes
        self._ready = context.Barrier(processes)
        self._queues = [context.SimpleQueue() for _ in range(processes)]
        self._answers = context.Queue()
        self._workers = [
            context.Process(target=_serve, args=(number, queue, self._ready, self._answers), daemon=True)
            for number, queue in enumerate(self._queues)
        ]

    def __enter__(self) -> Self:
        for worker in self._workers:
            worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        for queue in self._queues:
            queue.put(None)
        for worker in self._workers:
            worker.join(10)
            worker.kill()
            worker.join()
        self._answers.close()

    def __call__(self, function: Callable[..., Any], shares: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Let each process call the function with its share, all at once; return what they return, in their order."""
        for queue, share in zip(self._queues, shares, strict=True):
            queue.put((function, share))
        answers = dict(self._answers.get(timeout=PATIENCE) for _ in self._workers)
        failures = [answer for answer in answers.values() if isinstance(answer, _Failure)]
        if failures:
            raise AssertionError("\n".join(failure.text for failure in failures))
        return [answers[number] for number in range(self.size)]


class _Failure:
    def __init__(self, text: str) -> None:
        self.text = text


def _serve(number: int, tasks: Any, ready: Any, answers: Any) -> None:
    while (task := tasks.get()) is not None:
        function, share = task
        ready.wait(PATIENCE)
        try:
            answer = function(*share)
        except BaseException:  # noqa: BLE001 - any failure must reach the test
            answer = _Failure(traceback.format_exc())
        answers.put((number, answer))


def in_threads(threads: int, function: Callable[[int], Any]) -> list[Any]:
    """Call ``function(number)`` in so many threads at once; return what each returned, raise what the first raised."""
    barrier = threading.Barrier(threads)
    results: list[Any] = [None] * threads
    failures: list[BaseException] = []

    def work(number: int) -> None:
        barrier.wait()
        try:
            results[number] = function(number)
        except BaseException as error:  # noqa: BLE001 - any failure must reach the test
            failures.append(error)

    crew = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    if failures:
        raise failures[0]
    return results


def write_disjoint_regions(
    open_array: Callable[..., Any], where: tuple[Any, ...], seed: int, process: int, processes: int, threads: int
) -> None:
    """Write, in so many threads, the shares that this process has of `scenarios.regions`."""
    shares = scenarios.regions(seed, processes * threads)
    array = open_array(*where)
    in_threads(threads, lambda number: scenarios.write_regions(array, shares[process * threads + number]))
