"""The counterpart of `pool` for event loops: do things concurrently, and run blocking functions in threads.

There are threads that compute, as many as cores; a few threads that read and write local data; and a bounded
number of threads that wait for stores without asynchronous methods.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any, Final, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from omnizarr.stores import pool
from omnizarr.support.workers import Job, Pool

T = TypeVar("T")
P = ParamSpec("P")

_MOST_WAITING: Final = 32
_LEAST_NEAR: Final = 4
"""Threads that read. More of them than cores delay the loop; fewer are too few for slow files."""

_pools: dict[str, Pool] = {}


async def computed(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `function`, called in a thread. There are as many such threads as cores.

    A cancelled task continues only when the function has returned, because it may write into the caller's memory.
    """
    return await _threads_for("compute", pool.default_concurrency()).call(partial(function, *args, **kwargs))


async def waited(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `function`, which waits for remote data, called in a thread. Cancelled like `computed`."""
    return await _threads_for("wait", _MOST_WAITING).call(partial(function, *args, **kwargs))


async def stoppable(function: Callable[[], T], stop: Callable[[], object]) -> T:
    """Return what `waited` does. If the task is cancelled while the function runs, `stop` makes it return soon."""
    return await _threads_for("wait", _MOST_WAITING).call(function, stop)


async def near(function: Callable[[], T], stop: Callable[[], object] | None = None, *, writes: bool = False) -> T:
    """Return the result of `function`, which accesses local data, called in a thread. Cancelled like `computed`.

    If the task is cancelled while the function runs, `stop` is called, and should make it return soon. Writers
    have threads of their own, because they may have to wait for locks.
    """
    threads = max(_LEAST_NEAR, pool.default_concurrency())
    return await _threads_for("write" if writes else "read", threads).call(function, stop)


class _Call(Generic[T]):
    """A function for a thread to call, and the task that waits for its result."""

    __slots__ = ("claim", "done", "function", "is_over", "settled", "stop")

    def __init__(self, function: Callable[[], T], stop: Callable[[], object] | None) -> None:
        context = contextvars.copy_context()
        self.function: Callable[[], T] = lambda: context.run(function)
        self.stop = stop
        self.done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.settled: asyncio.Future[None] | None = None
        """Set if the task was cancelled, and waits until the function has returned."""
        self.is_over = False
        self.claim = [None]
        """Empty once the thread that calls the function, or a cancelled caller, has taken the call."""

    def take(self) -> bool:
        """Return whether the call was still free."""
        try:
            self.claim.pop()
        except IndexError:
            return False
        return True

    def end(self, result: Any, error: BaseException | None) -> None:
        """Pass the result or error of the function to the caller."""
        self.is_over = True
        if self.settled is not None and not self.settled.done():
            self.settled.set_result(None)
        if self.done.done():
            return
        if error is None:
            self.done.set_result(result)
        else:
            self.done.set_exception(error)


class _LoopThreads:
    """Threads that make the calls of one loop, in order. The loop is woken once for all calls that have ended."""

    def __init__(self, kind: str, threads: int) -> None:
        self._kind = kind
        self._most = threads
        self._at_work = 0  # number of threads, changed only by the loop
        self._waiting: deque[_Call[Any]] = deque()
        self._ended: deque[tuple[_Call[Any] | None, Any, BaseException | None]] = deque()
        self._bell: list[None] = [None]
        """Empty between the call that wakes the loop and the moment when it looks."""

    async def call(self, function: Callable[[], T], stop: Callable[[], object] | None = None) -> T:
        """Return the result of `function`."""
        call = _Call(function, stop)
        self._waiting.append(call)
        try:
            self._call_help()
        except RuntimeError:  # at the end of the program, no threads can start
            call.take()
            raise
        try:
            return await call.done
        except asyncio.CancelledError:
            if not call.take():
                await _settled_call(call)
            raise

    def _call_help(self) -> None:
        if self._at_work < min(self._most, len(self._waiting)):
            threads = _pools.get(self._kind)
            if threads is None:  # loops of two threads may create two pools; the unused one has no thread yet
                threads = _pools.setdefault(self._kind, Pool(f"omnizarr-{self._kind}", self._most))
            threads.submit(Job(partial(self._work, asyncio.get_running_loop())))
            self._at_work += 1

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make calls until none is left; runs in a thread."""
        while self._waiting:
            try:
                call = self._waiting.popleft()
            except IndexError:
                break
            if call.take():
                try:
                    self._tell(loop, call, call.function(), None)
                except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                    self._tell(loop, call, None, error)
        self._tell(loop, None, None, None)

    def _tell(
        self, loop: asyncio.AbstractEventLoop, call: _Call[Any] | None, result: Any, error: BaseException | None
    ) -> None:
        self._ended.append((call, result, error))
        try:
            self._bell.pop()
        except IndexError:  # the loop will look, and find this, too
            return
        try:
            loop.call_soon_threadsafe(self._settle)
        except RuntimeError:  # the loop is closed: no task is waiting
            self._waiting.clear()
            self._ended.clear()

    def _settle(self) -> None:
        """Pass the results to the callers, in the loop."""
        self._bell.append(None)
        while self._ended:
            call, result, error = self._ended.popleft()
            if call is None:
                self._at_work -= 1
            else:
                call.end(result, error)
        self._call_help()


async def _settled_call(call: _Call[Any]) -> None:
    """Wait until a call that has begun ends, even if the caller is cancelled again."""
    if call.stop is not None:
        call.stop()
    while not call.is_over:
        call.settled = asyncio.get_running_loop().create_future()
        with suppress(asyncio.CancelledError):
            await call.settled
    if call.done.done() and not call.done.cancelled():
        call.done.exception()  # mark the exception as retrieved


_threads_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _LoopThreads]] = WeakKeyDictionary()


def _threads_for(kind: str, threads: int) -> _LoopThreads:
    """Return the threads of this loop for one purpose."""
    crews = _threads_by_loop.setdefault(asyncio.get_running_loop(), {})
    if kind not in crews:
        crews[kind] = _LoopThreads(kind, threads)
    return crews[kind]


if hasattr(os, "register_at_fork"):
    # The threads at work do not exist in the child.
    os.register_at_fork(after_in_child=_threads_by_loop.clear)


_MOST_BEGUN: Final = 16


class _Turns:
    """Lets only a few tasks of a loop start in each iteration."""

    def __init__(self) -> None:
        self._begun = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Return immediately, or in a later iteration if other tasks are first."""
        loop = asyncio.get_running_loop()
        if self._waiting or self._begun >= _MOST_BEGUN:
            future = loop.create_future()
            self._waiting.append(future)
            await future
        else:
            self._begun += 1
            if self._begun == 1:
                loop.call_soon(self._next, loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._begun = 0
        while self._waiting and self._begun < _MOST_BEGUN:
            future = self._waiting.popleft()
            if not future.done():  # otherwise it was cancelled
                future.set_result(None)
                self._begun += 1
        if self._begun:
            loop.call_soon(self._next, loop)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


async def turn() -> None:
    """Wait for a turn before work that blocks the loop, so that other tasks run in between."""
    await _turns.setdefault(asyncio.get_running_loop(), _Turns()).take()


async def run(task: Callable[[T], Awaitable[object]], items: Iterable[T], workers: int) -> None:
    """Await `task` for every item, `workers` at a time.

    Items are read as there is room. The first exception, or a cancellation, cancels the other tasks, and is
    raised when all have ended.
    """
    iterator = iter(items)
    first = list(islice(iterator, workers))
    items = chain(first, iterator)
    if len(first) <= 1:
        for item in items:
            await task(item)
        return

    async def work() -> None:
        for item in items:
            await task(item)

    tasks = [asyncio.ensure_future(work()) for _ in first]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for each in tasks:
            each.cancel()
        await settled(tasks)
    for each in tasks:
        if not each.cancelled():
            each.result()


async def settled(futures: Iterable[asyncio.Future[T]]) -> None:
    """Wait until all tasks are done, even if the caller is cancelled again.

    Their exceptions are marked as retrieved.
    """
    futures = list(futures)
    while not all(future.done() for future in futures):
        try:
            await asyncio.wait(futures)
        except asyncio.CancelledError:
            continue
    for future in futures:
        if not future.cancelled():
            future.exception()
