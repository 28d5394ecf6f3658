"""Event loops in other threads, used from threads that wait for their results.

Libraries with asynchronous stores and filesystems run an event loop in a thread. A request costs a task there and
no thread of omnizarr, so many concurrent requests are cheap.

A caller has a `Call` before the loop has it, like a `Job` of `omnizarr.support.workers`, so Ctrl-C cannot lose a
request that is under way. The caller waits for a lock or a queue written in C. Interrupted while it waits for a
future of `concurrent.futures`, it could leave that locked, and the loop would wait for it for ever.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from omnizarr.stores import threads
from omnizarr.support import workers
from omnizarr.support.workers import Job, rest

T = TypeVar("T")
R = TypeVar("R")


class Call(Job, Generic[R]):
    """A coroutine for an event loop to run in another thread. It is begun once, or cancelled."""

    __slots__ = ("_coroutine", "_loop", "_on_done", "_task", "_value")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, R],
        loop: asyncio.AbstractEventLoop,
        on_done: Callable[[Call[R]], object] | None = None,
    ) -> None:
        super().__init__(coroutine.close)
        self._coroutine = coroutine
        self._loop = loop
        self._on_done = on_done

    def send(self) -> None:
        """Let the loop begin it."""
        self._loop.call_soon_threadsafe(self.run)

    def run(self) -> None:
        """Begin, unless it was cancelled; runs on the loop."""
        if not self._take():
            return
        try:
            self._task = self._loop.create_task(self._coroutine)
        except BaseException as error:  # noqa: BLE001 - raised where the result is taken
            self._end(error)
        else:
            self._task.add_done_callback(self._note)

    def _note(self, task: asyncio.Task[R]) -> None:
        error = CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self._value = task.result()
        self._end(error)

    def _end(self, error: BaseException | None = None) -> None:
        super()._end(error)
        if self._on_done is not None:
            self._on_done(self)

    def cancel(self) -> bool:
        """Return whether it has not begun, and never will. One that has begun is asked to stop."""
        if super().cancel():
            self._coroutine.close()
            return True
        if not self.is_over:
            try:
                self._loop.call_soon_threadsafe(self._stop)
            except RuntimeError:  # the loop is closed: nothing runs there any more
                self._end(CancelledError())
        return False

    def _stop(self) -> None:
        if not self.is_over and not self._task.cancelling():
            self._task.cancel()

    def result(self) -> R:
        """Return the result of one that has ended, or raise its exception."""
        if self.error is None:
            return self._value
        try:
            raise self.error
        finally:
            del self  # which the traceback would keep, and with it itself


def run(coroutine: Coroutine[Any, Any, R], loop: asyncio.AbstractEventLoop) -> R:
    """Return the result of the coroutine on `loop`, in another thread. Ctrl-C cancels it, and waits for that.

    Raises
    ------
    RuntimeError
        If the caller runs on that loop itself, which could then never answer.
    """
    if _is_here(loop):
        coroutine.close()
        raise _stuck()
    call = Call(coroutine, loop)
    try:
        call.send()
        call.wait()
    except BaseException:
        rest((call,))
        raise
    try:
        return call.result()
    finally:
        del call


def gather(
    task: Callable[[T], Coroutine[Any, Any, R]], items: Iterable[T], most: int, loop: asyncio.AbstractEventLoop
) -> Iterator[tuple[T, int, Call[R]]]:
    """Yield (item, its position, the call with its result) as tasks end on `loop`, where at most `most` run at once.

    Items are read as there is room. Stopping early, or an exception, cancels the requests in flight, and waits for
    that. Keep this iterator in no variable: after Ctrl-C, the traceback would keep it, and the requests would go on.
    """
    if _is_here(loop):
        raise _stuck()
    crew = _GatherCalls(task, items, most, loop)
    try:
        yield from crew.results()  # no loop here: Python 3.13 leaves its jump back out of the block that is guarded
    finally:
        try:
            crew.dismiss()
        except BaseException:  # on Ctrl-C: no request must go on unknown
            crew.dismiss()
            raise


class _GatherCalls(Generic[T, R]):
    """The calls of one `gather`."""

    def __init__(
        self,
        task: Callable[[T], Coroutine[Any, Any, R]],
        items: Iterable[T],
        most: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._task = task
        self._items = enumerate(items)
        self._most = most
        self._loop = loop
        self._landed: SimpleQueue[tuple[T, int, Call[R]]] = SimpleQueue()
        self._pending: set[Call[R]] = set()

    def results(self) -> Iterator[tuple[T, int, Call[R]]]:
        """Yield the calls as they end."""
        while True:
            for position, item in islice(self._items, self._most - len(self._pending)):
                self._send(position, item)
            if not self._pending:
                return
            landed = self._landed.get()
            self._pending.discard(landed[2])
            yield landed
            del landed  # not kept while the next is waited for

    def _send(self, position: int, item: T) -> None:
        call = Call(self._task(item), self._loop, partial(self._land, position, item))
        self._pending.add(call)  # known before it can begin
        call.send()

    def _land(self, position: int, item: T, call: Call[R]) -> None:
        self._landed.put((item, position, call))

    def dismiss(self) -> None:
        """Cancel the calls in flight, and wait until they have ended."""
        if _is_here(self._loop):  # the garbage collector came by in that thread, which cannot wait for itself
            for call in self._pending:
                call.cancel()
        else:
            rest(self._pending)


def _is_here(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:  # no loop runs in this thread
        return False


def _stuck() -> RuntimeError:
    return RuntimeError("a store cannot be used from a coroutine on the event loop that it runs on")


class OwnLoop:
    """An event loop in a thread of its own. It begins when it is first asked for, and again in a child of a fork."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loops: dict[str, asyncio.AbstractEventLoop] = {}
        # Loops of the parent. Closing one in a child would close what wakes the parent's loop.
        self._abandoned: list[asyncio.AbstractEventLoop] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self) -> None:
        """Forget the loop in a child, where the thread that ran it does not exist."""
        self._abandoned.extend(self._loops.values())
        self._loops.clear()

    def get(self) -> asyncio.AbstractEventLoop:
        """Return the loop."""
        with threads.lock(self._name):
            while "loop" not in self._loops:
                # The thread itself publishes the loop, because a loop that does not run would never answer.
                made = SimpleQueue[None]()
                workers.start(lambda made=made: self._serve(made), self._name)  # type: ignore[misc]
                made.get()
            return self._loops["loop"]

    def _serve(self, made: SimpleQueue[None]) -> None:
        loop = asyncio.new_event_loop()
        is_first = self._loops.setdefault("loop", loop) is loop  # the thread that started the other one was interrupted
        made.put(None)
        if is_first:
            loop.run_forever()
        loop.close()
