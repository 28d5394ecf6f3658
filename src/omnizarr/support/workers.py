"""Threads that Ctrl-C neither loses nor leaves at work.

Python raises KeyboardInterrupt in the main thread, between any two bytecodes. `threading.Thread.start` and
`ThreadPoolExecutor.submit` are written in Python: an interrupt within them loses the thread or the future, and may
leave a lock of `threading` held. The program then never ends, or the thread goes on unknown to its caller.

So here the main thread only makes calls into C, which are complete or not made at all. A caller has a `Job` before it
gives the job away. `start` calls ``_thread.start_new_thread``, and the new thread starts the thread that is wanted,
because no signal is handled there. A `Pool` hands a job to an idle thread in one call.
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from queue import SimpleQueue
from typing import Any, Final
from weakref import WeakSet

from omnizarr.support.locks import RLock

_PATIENCE: Final = 10.0
"""Seconds after which a caller that is interrupted a second time no longer waits for a thread at work."""


class Job:
    """A call for a thread to make. It is begun once, or cancelled.

    Attributes
    ----------
    error : BaseException or None
        What the call has raised.
    is_over : bool
        Whether the call has ended.
    """

    __slots__ = ("_bell", "_taken", "_work", "error", "is_over")

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._taken: dict[str, object] = {}
        self._bell = _thread.allocate_lock()
        self._bell.acquire()
        self.error: BaseException | None = None
        self.is_over = False

    def run(self) -> None:
        """Make the call, unless it was cancelled."""
        if not self._take():
            return
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - the caller that waits for the job looks at it
            self._end(error)
        else:
            self._end()

    def _take(self) -> bool:
        mark = object()  # not the job: it would be kept until a collection of garbage, with the arrays of its call
        return self._taken.setdefault("by", mark) is mark

    def _end(self, error: BaseException | None = None) -> None:
        self.error = error
        self.is_over = True
        self._bell.release()

    def cancel(self) -> bool:
        """Return whether no thread has begun the job. None will then. It can be asked again."""
        return self._taken.setdefault("by", None) is None

    def wait(self, seconds: float = -1) -> bool:
        """Wait until the call has ended, at most for some seconds, and return whether it has.

        It can be called again after an interrupt.
        """
        while not self.is_over:
            if not self._bell.acquire(timeout=seconds):
                break
        return self.is_over


def rest(jobs: Iterable[Job]) -> None:
    """Cancel those jobs that have not begun, and wait for the others, even if Ctrl-C interrupts; then raise it.

    Interrupted again after ten seconds, it raises at once: a thread may wait for something that never comes.
    """
    held: BaseException | None = None
    until = 0.0
    while True:
        try:
            for job in [job for job in jobs if not job.cancel()]:
                job.wait()
            break
        except BaseException as error:
            until = until or time.monotonic() + _PATIENCE
            if time.monotonic() > until:
                raise
            held = error
    if held is not None:
        try:
            raise held
        finally:
            del held


def start(work: Callable[[], object], name: str) -> Job:
    """Return the job of a new daemon thread."""
    job = Job(work)
    _start(partial(_run_alone, job), name)
    return job


def _run_alone(job: Job) -> None:
    job.run()
    if job.error is not None:
        raise job.error  # `threading.excepthook` shows it


def _start(run: Callable[[], object], name: str) -> None:
    """Start a daemon thread, in one call."""
    _thread.start_new_thread(_bear, (run, name))


def _bear(run: Callable[[], object], name: str) -> None:
    """Start the thread, with its name and hooks; in a thread without."""
    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError:  # there can be no more threads; but this is one
        run()


class Pool:
    """Threads that are started when they are needed, and then kept.

    A job that no thread can begin yet waits for one. A program that ends waits for jobs at work, and begins no others.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._begin()
        _pools.add(self)

    def _begin(self) -> None:
        self._guard = RLock()
        self._threads: WeakSet[_Thread] = WeakSet()
        self._idle: list[SimpleQueue[Job]] = []  # each with the thread that waits for it
        self._waiting: deque[Job] = deque()
        self._at_work: dict[int, Job] = {}

    def submit(self, job: Job) -> None:
        """Let a thread do the job.

        Raises
        ------
        RuntimeError
            If there can be no more threads, as at the end of the program.
        """
        if _has_ended:
            raise RuntimeError("the program ends, and starts no more threads")
        with self._guard:
            if self._idle:
                any(map(_hand, map(self._idle.pop, (-1,)), (job,)))  # one call: no thread is forgotten in between
            elif len(self._threads) < self._most:
                thread = _Thread(self, job)
                self._threads.add(thread)
                _start(thread, f"{self._name}_{len(self._threads) - 1}")
            else:
                self._waiting.append(job)

    def serve(self, jobs: list[Job]) -> None:
        """Do one job, and then others for ever; runs in a thread."""
        me, seat = _thread.get_ident(), SimpleQueue[Job]()
        job = jobs.pop()
        while True:
            self._at_work[me] = job
            job.run()
            del self._at_work[me], job
            with self._guard:
                is_next = bool(self._waiting)
                if is_next:
                    job = self._waiting.popleft()
                else:
                    self._idle.append(seat)
            if not is_next:
                job = seat.get()

    def end(self) -> None:
        """Wait for the jobs at work."""
        self._waiting.clear()
        for job in list(self._at_work.values()):
            job.wait()


class _Thread:
    """What a thread of a pool runs. It exists as long as the thread: not, if an interrupt came before its start."""

    __slots__ = ("__weakref__", "_first", "_pool")

    def __init__(self, pool: Pool, job: Job) -> None:
        self._pool = pool
        self._first = [job]

    def __call__(self) -> None:
        self._pool.serve(self._first)


_hand: Final[Any] = SimpleQueue.put
_pools: WeakSet[Pool] = WeakSet()
_has_ended: list[bool] = []  # one entry at the end of the program


def _end() -> None:
    _has_ended.append(True)
    for pool in list(_pools):
        pool.end()


def _start_anew() -> None:
    """Forget the threads of the parent, which do not exist in the child."""
    for pool in list(_pools):
        pool._begin()  # noqa: SLF001


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
