"""How synchronous code waits: its thread blocks or, in an event loop, the loop continues with other tasks.

Stores, wrappers and `omnizarr.nodes` are written once, as functions that return when they are done.
`omnizarr.stores.asynchronous` calls such a function in a greenlet of the loop's thread. Where it would block, it passes
a coroutine to the loop instead (`Call.ask`), and continues with the result. Few places do so: requests and locks of
`ObjectStore`, `pool.gather`, and `sleep`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

Limit: TypeAlias = tuple[Hashable, int]
"""A name, and how many requests with it may be under way at the same time."""


class Call(Protocol):
    """A call of a function in a greenlet. Its methods are for the function itself."""

    own: dict[Any, Any]
    """What `Local` keeps, and the locks that are held."""

    def ask(self, limit: Limit | None, request: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the loop gets from a coroutine function."""

    def gather(self, task: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[tuple[int, R]]:
        """Do what `pool.gather` does."""

    def lock(self, name: Hashable) -> AbstractContextManager[object]:
        """Exclude the other tasks of the loop that lock `name`. The same call may enter twice."""

    def compute(self, function: Callable[[], T]) -> T:
        """Return the result of a function that computes, called in a thread."""

    def block(self, function: Callable[[], T]) -> T:
        """Return the result of a function that blocks, called in a thread."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class _Here(threading.local):
    call: Call | None = None
    """The call that this thread is in, if it is in one."""


here = _Here()


def sleep(seconds: float) -> None:
    """Let time pass."""
    (time if here.call is None else here.call).sleep(seconds)


class Local(Generic[T]):
    """An object for each thread, and for each call in an event loop that changes it.

    If that of the thread is true (the thread holds a lock, and runs a loop meanwhile), calls share it.

    >>> names = Local(list)
    >>> names.own().append("a")
    >>> names.get()
    ['a']
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._thread = threading.local()

    def get(self) -> T:
        """Return the object, to be read."""
        call = here.call
        return self._of_thread() if call is None or self not in call.own else cast("T", call.own[self])

    def own(self) -> T:
        """Return the object, to be changed."""
        call = here.call
        if call is None:
            return self._of_thread()
        if self not in call.own:
            call.own[self] = self._of_thread() or self._make()
        return cast("T", call.own[self])

    def _of_thread(self) -> T:
        try:
            return cast("T", self._thread.value)
        except AttributeError:
            value = self._thread.value = self._make()
            return value
