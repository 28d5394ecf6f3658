"""Chunks that the native engine fetches and stores for event loops, without a coroutine or thread for each chunk.

All requests that the tasks of a loop make in one iteration form one batch, so a chunk that several tasks need is
fetched and decoded once. When something is done, the engine writes a byte to a socket. This wakes the loop, which
then asks the engine for the results.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from omnizarr import engine
from omnizarr.codecs.contract import AnyArray
from omnizarr.engine import Binding
from omnizarr.indexing import Plan
from omnizarr.stores import loops

Left = tuple[list[tuple[int, ...]], bool, BaseException | None]
"""Chunks that are left to do, whether all others are done, and an error to raise."""


class _Request(NamedTuple):
    """A plan to be read or written, and the task that waits for it."""

    binding: Binding
    plan: Plan
    array: AnyArray
    concurrency: int | None
    is_write: bool
    done: asyncio.Future[Left | None]


class _LoopRequests:
    """The requests of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._bell, self._rings = socket.socketpair()
        for end in (self._bell, self._rings):
            end.settimeout(0)
        loop.add_reader(self._bell.fileno(), self._look)
        self._waiting: list[_Request] = []
        self._batches: dict[Any, list[_Request]] = {}

    def close(self) -> None:
        """Close the sockets."""
        self._bell.close()
        self._rings.close()

    __del__ = close

    async def read(self, binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None) -> Left | None:
        """Fill `out`, and return the chunks that are left to do."""
        request = self._request(binding, plan, out, concurrency, is_write=False)
        try:
            return await request.done
        except asyncio.CancelledError:
            # Nothing more may be written into the caller's memory.
            for batch, number in self._places(request):
                batch.give_up(number)
            raise

    async def write(self, binding: Binding, plan: Plan, value: AnyArray, concurrency: int | None) -> Left | None:
        """Store `value`, and return the chunks that are left to do.

        A cancelled task continues only when nothing is under way, because it could be stored later than what the task
        writes next. What takes longer than two seconds is broken off.
        """
        request = self._request(binding, plan, value, concurrency, is_write=True)
        try:
            await asyncio.wait((request.done,))
        except asyncio.CancelledError:
            places = self._places(request)
            for batch, number in places:
                if batch.end(number):
                    request.done.cancel()
            if not places:  # not begun
                request.done.cancel()
            while not request.done.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((request.done,))
            if not request.done.cancelled():
                request.done.exception()  # mark it as retrieved
            raise
        return request.done.result()

    def _request(
        self, binding: Binding, plan: Plan, array: AnyArray, concurrency: int | None, *, is_write: bool
    ) -> _Request:
        loop = asyncio.get_running_loop()
        request = _Request(binding, plan, array, concurrency, is_write, loop.create_future())
        if not self._waiting:
            loop.call_soon(self._begin)
        self._waiting.append(request)
        return request

    def _places(self, request: _Request) -> list[tuple[Any, int]]:
        """Return the batch of a request, and its number there; nothing if it has not begun, or has ended."""
        return [
            (batch, number)
            for batch, requests in self._batches.items()
            for number, other in enumerate(requests)
            if other is request
        ]

    def _begin(self) -> None:
        waiting, self._waiting = self._waiting, []
        together: dict[tuple[int | None, bool], list[_Request]] = {}
        for request in waiting:
            if not request.done.done():  # cancelled already
                together.setdefault((request.concurrency, request.is_write), []).append(request)
        for (concurrency, is_write), requests in together.items():
            try:
                batch = engine.begin(
                    [(request.binding, request.plan, request.array) for request in requests],
                    concurrency,
                    self._rings.fileno(),
                    is_write=is_write,
                )
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                for request in requests:
                    request.done.set_exception(error)
                continue
            if batch is None:
                for request in requests:
                    request.done.set_result(_all(request.plan))
            else:
                self._batches[batch] = requests

    def _look(self) -> None:
        """Wake the tasks whose requests are done."""
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


_requests_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[int, _LoopRequests]] = WeakKeyDictionary()


def _loop_requests() -> _LoopRequests | None:
    """Return the `_LoopRequests` of this loop; None if the loop cannot watch sockets."""
    loop = asyncio.get_running_loop()
    process, desk = _requests_by_loop.get(loop, (None, None))
    if desk is None or process != os.getpid():
        for other in loops.closed(_requests_by_loop):
            if (left := _requests_by_loop.pop(other, None)) is not None:
                left[1].close()
        try:
            desk = _LoopRequests(loop)
        except NotImplementedError:
            return None
        _requests_by_loop[loop] = os.getpid(), desk
    return desk


async def read(binding: Binding, plan: Plan, out: AnyArray, concurrency: int | None = None) -> Left | None:
    """Fill `out` with the elements of an array that a plan selects, and return the chunks that are left to do.

    Only for arrays for which `engine.is_remote` is True.
    """
    desk = _loop_requests() if os.name == "posix" else None
    return _all(plan) if desk is None else await desk.read(binding, plan, out, concurrency)


async def write(binding: Binding, plan: Plan, value: AnyArray, concurrency: int | None = None) -> Left | None:
    """Store `value` in the elements of an array that a plan selects, and return the chunks that are left to do.

    Only for arrays for which `engine.is_remote` is True, and values for which `engine.can_write` is True.
    """
    desk = _loop_requests() if os.name == "posix" else None
    return _all(plan) if desk is None else await desk.write(binding, plan, value, concurrency)


def _all(plan: Plan) -> Left:
    return [piece.coords for piece in plan], True, None
