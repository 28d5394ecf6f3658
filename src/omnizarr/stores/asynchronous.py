"""Functions that ask a store, called in an event loop without a thread.

`called` runs a function in a greenlet of the loop's thread. Where the function would wait, it passes a coroutine to
the loop, which continues with other tasks meanwhile (`omnizarr.stores.waiting`). So a store, its wrappers and all code
above them are written once. Only requests of obstore have coroutines: for other stores, and without the package
greenlet, functions are called in threads (`omnizarr.stores.tasks`).
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from functools import cache, partial
from itertools import islice
from typing import Any, Final, ParamSpec, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from omnizarr.stores import loops, waiting
from omnizarr.stores.base import Store
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.remote.object import ObjectStore
from omnizarr.stores.tasks import computed, settled, waited
from omnizarr.stores.wrap.wrappers import WrapperStore

try:
    from greenlet import getcurrent, greenlet
except ImportError:  # it needs a compiler, or a wheel
    greenlet = None

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


def is_awaitable(store: Store) -> bool:
    """Return whether functions that ask a store can be called in an event loop (`called`).

    >>> from omnizarr.stores import MemoryStore
    >>> is_awaitable(MemoryStore())
    False
    """
    if greenlet is None:
        return False
    while isinstance(store, WrapperStore) and "runs_in_event_loops" in vars(type(store)):
        if not store.runs_in_event_loops:
            return False
        store = store.store
    if type(store) is not ObjectStore or not store.is_of_obstore:
        return False
    _rest_at_exit()
    return True


@cache
def _rest_at_exit() -> None:
    # If a thread of obstore has just answered a coroutine while the interpreter ends, it aborts the process.
    atexit.register(time.sleep, 0.05)


async def called(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of `function`, called here. The loop continues while the function waits.

    A cancelled task raises CancelledError in the function, where it waits. The function may clean up and wait again.
    """
    call = _Call(partial(function, *args, **kwargs))
    resume = partial(call.greenlet.switch, call)
    while True:
        try:
            asked = call.enter(resume)
        finally:
            del resume  # it may hold an error, whose traceback holds this frame
        if call.is_over:
            return cast("T", asked)
        try:
            limit, request, given, named = asked
            if limit is None:
                answer = await request(*given, **named)
            else:
                async with _gate(limit):
                    answer = await request(*given, **named)
        except GeneratorExit as error:  # the loop has been given up
            call.is_given_up = True
            resume = partial(call.greenlet.throw, error)
        except BaseException as error:  # noqa: BLE001 - the function says what becomes of it
            resume = partial(call.greenlet.throw, error)
        else:
            resume = partial(call.greenlet.switch, answer)


class _Idle(threading.local):
    def __init__(self) -> None:
        self.greenlets: list[Any] = []


_idle: Final = _Idle()
"""Greenlets that have no function: to make one takes much longer than to use it again."""
_MOST_IDLE: Final = 1024


def _work(call: _Call | None) -> None:
    """Call one function after another; runs in a greenlet."""
    while call is not None:
        try:
            call.result = call.function()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            call.error = error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)  # without this frame
        call.is_over = True
        call = None
        call = getcurrent().parent.switch()


class _Call:
    """A function in a greenlet: `omnizarr.stores.waiting.Call`."""

    __slots__ = ("error", "function", "greenlet", "is_given_up", "is_over", "own", "result")

    def __init__(self, function: Callable[[], object]) -> None:
        self.function = function
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_over = self.is_given_up = False
        self.own: dict[Any, Any] = {}
        self.greenlet = _idle.greenlets.pop() if _idle.greenlets else greenlet(_work)
        self.greenlet.gr_context = contextvars.copy_context()

    def enter(self, resume: Callable[[], Any]) -> Any:
        """Continue until the function returns, or asks: then return what is to be awaited."""
        before, waiting.here.call = waiting.here.call, self
        self.greenlet.parent = getcurrent()
        try:
            asked = resume()
        finally:
            waiting.here.call = before
        if not self.is_over:
            return asked
        self.greenlet.gr_context = None  # it may hold large objects
        if len(_idle.greenlets) < _MOST_IDLE:
            _idle.greenlets.append(self.greenlet)
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None  # whose traceback holds this frame
        return self.result

    def ask(
        self, limit: waiting.Limit | None, request: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Let the loop await a request, and return the answer."""
        if self.is_given_up:
            raise GeneratorExit
        return cast("T", self.greenlet.parent.switch((limit, request, args, kwargs)))

    def gather(self, task: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[tuple[int, R]]:
        """Call `task` on up to `workers` items at a time, each in a task of the loop."""
        numbered = enumerate(items)
        under_way: dict[asyncio.Task[R], int] = {}
        landed: deque[tuple[int, asyncio.Task[R]]] = deque()
        bell = asyncio.Event()

        def land(done: asyncio.Task[R]) -> None:
            landed.append((under_way.pop(done), done))
            bell.set()

        try:
            while True:
                room = min(workers, 2 * workers - len(landed)) - len(under_way)
                for position, item in islice(numbered, room):
                    begun = asyncio.ensure_future(called(task, item))
                    under_way[begun] = position
                    begun.add_done_callback(land)
                if not landed and not under_way:
                    return
                while not landed:
                    bell.clear()
                    _wait(bell.wait)
                position, done = landed.popleft()
                yield position, done.result()
        finally:
            left = [*under_way, *(done for _, done in landed)]
            for each in left:
                each.cancel()
            if left:
                _wait(settled, left)

    @contextmanager
    def lock(self, name: Hashable) -> Iterator[None]:
        """Exclude the other tasks of the loop, which would only get in each other's way."""
        lock = _here(_turns).setdefault(name, asyncio.Lock())
        if lock in self.own:
            yield
            return
        try:
            self.own[lock] = self.ask(None, lock.acquire)
            yield
        finally:
            if self.own.pop(lock, False):
                lock.release()

    def compute(self, function: Callable[[], T]) -> T:
        """Let a thread that computes call `function`."""
        return self.ask(None, computed, function)

    def block(self, function: Callable[[], T]) -> T:
        """Let a thread that waits call `function`."""
        return self.ask(None, waited, function)

    def sleep(self, seconds: float) -> None:
        """Let the loop go on for some time."""
        self.ask(None, asyncio.sleep, seconds)


def _wait(request: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs) -> None:
    # Not necessarily the call that asks first: an iterator may be passed on.
    call = waiting.here.call
    if call is not None:
        call.ask(None, request, *args, **kwargs)


# -- how many requests are under way ------------------------------------------------------

_Named = WeakValueDictionary[Hashable, T]  # a store may be named by its id, which a later one can have
_OfLoops = WeakKeyDictionary[asyncio.AbstractEventLoop, _Named[T]]

_gates: _OfLoops[asyncio.Semaphore] = WeakKeyDictionary()
_turns: _OfLoops[asyncio.Lock] = WeakKeyDictionary()


def _here(table: _OfLoops[T]) -> _Named[T]:
    """Return what the running loop has."""
    loop = asyncio.get_running_loop()
    known = table.get(loop)
    if known is None:
        for closed in loops.closed(table):  # semaphores and locks keep their loops
            table.pop(closed, None)
        known = table.setdefault(loop, WeakValueDictionary())
    return known


def _gate(limit: waiting.Limit) -> asyncio.Semaphore:
    """Return the semaphore that limits requests. All objects for the same data share it."""
    gates = _here(_gates)
    return gates.get(limit) or gates.setdefault(limit, asyncio.Semaphore(max(limit[1], _LEAST)))


_LEAST: Final = 8  # requests at once, if answers are so fast that threads do not pay
