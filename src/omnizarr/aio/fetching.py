"""Chunks that the native engine fetches by itself, for event loops: no coroutine for each, and no thread.

What the tasks of a loop ask for in one turn of it is one batch, so a chunk that several of them need is fetched and
decoded once. The engine writes a byte to a socket whenever something is done; the loop wakes up, and looks what it is.
"""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from omnizarr import engine
from omnizarr.codecs.contract import AnyArray
from omnizarr.engine import Binding
from omnizarr.indexing import Plan

Left = tuple[list[tuple[int, ...]], bool, BaseException | None]
"""Chunks that are left to do, whether all others are done, and an error to raise."""


class _Request(NamedTuple):
    """A plan to be read, and who waits for it."""

    binding: Binding
    plan: Plan
    out: AnyArray
    concurrency: int | None
    done: asyncio.Future[Left | None]


class _Desk:
    """Takes the requests of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._bell, self._rings = socket.socketpair()
        for end in (self._bell, self._rings):
            end.settimeout(0)
        loop.add_reader(self._bell.fileno(), self._look)
        self._waiting: list[_Request] = []
        self._batches: dict[Any, list[_Request]] = {}

    def close(self) -> None:
        """Give the sockets back."""
        self._bell.close()
        self._rings.close()

    __del__ = close

    async def read(self, binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None) -> Left | None:
        """Fill `out`, and return what is left to do of it."""
        loop = asyncio.get_running_loop()
        request = _Request(binding, plan, out, concurrency, loop.create_future())
        if not self._waiting:
            loop.call_soon(self._begin)
        self._waiting.append(request)
        try:
            return await request.done
        except asyncio.CancelledError:
            self._give_up(request)
            raise

    def _give_up(self, request: _Request) -> None:
        """See to it that nothing more is written into the caller's memory."""
        for batch, requests in self._batches.items():
            for number, other in enumerate(requests):
                if other is request:
                    batch.give_up(number)

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting, []
        by_concurrency: dict[int | None, list[_Request]] = {}
        for request in waiting:
            if not request.done.done():  # cancelled already
                by_concurrency.setdefault(request.concurrency, []).append(request)
        for concurrency, requests in by_concurrency.items():
            try:
                batch = engine.begin(
                    [(request.binding, request.plan, request.out) for request in requests],
                    concurrency,
                    self._rings.fileno(),
                )
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                for request in requests:
                    request.done.set_exception(error)
                continue
            if batch is None:
                for request in requests:
                    request.done.set_result(([piece.coords for piece in request.plan], True, None))
            else:
                self._batches[batch] = requests

    def _look(self) -> None:
        """Tell those whose requests are done."""
        try:
            while self._bell.recv(4096):
                pass
        except BlockingIOError:
            pass
        for batch, requests in list(self._batches.items()):
            is_over = batch.is_over()
            for number in range(len(requests)) if is_over else batch.done():
                done = requests[number].done
                if not done.done():
                    done.set_result(batch.rest(number))
            if is_over:
                del self._batches[batch]


_desks: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[int, _Desk]] = WeakKeyDictionary()


def _desk() -> _Desk | None:
    """Return the desk of this loop; None if the loop cannot watch sockets."""
    loop = asyncio.get_running_loop()
    process, desk = _desks.get(loop, (None, None))
    if desk is None or process != os.getpid():
        for closed in [other for other in _desks if other.is_closed()]:
            _desks.pop(closed)[1].close()
        try:
            desk = _Desk(loop)
        except NotImplementedError:
            return None
        _desks[loop] = os.getpid(), desk
    return desk


async def read(binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None = None) -> Left | None:
    """Fill `out` with what a plan selects of an array for which `engine.is_remote`; return what is left to do of it."""
    desk = _desk() if os.name == "posix" else None
    if desk is None:
        return [piece.coords for piece in plan], True, None
    return await desk.read(binding, plan, out, concurrency)
