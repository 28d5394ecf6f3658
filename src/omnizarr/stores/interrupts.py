"""Context managers that are left whatever happens, a Ctrl-C at the worst moment included.

Python raises KeyboardInterrupt between bytecodes: where a function begins, behind a call of a function written in C,
where a loop jumps back. A ``with`` block of a lock of `threading` (which is written in C) has no such place between
taking the lock and being inside, nor between leaving and letting go. One of `contextlib.contextmanager` has two: behind
the call that has run the generator up to its ``yield``, and where ``__exit__`` begins. An interrupt there leaves the
generator as it is, with all that it holds, for as long as the traceback is kept, as a prompt keeps it.

So what holds something that others wait for is

- a lock of `threading` in a ``with`` statement, and nothing else, where that is enough; or
- a generator under `contextmanager` of this module. Within it hold, as everywhere: what is taken is taken inside of the
  ``try`` whose ``finally`` lets go of it, in such a way that this knows what is taken, however far it came; the first
  call of a ``finally`` does all that others wait for, or is made once more if it is interrupted. Such a manager is
  made where it is entered, and not kept in a variable: then the statement is the only thing that keeps it.

What a function of the system returns (the number of an open file) would be lost behind its call. ``(file,) =
map(os.open, (path,), (flags,))`` has no such place between opening and knowing the number, and neither has
``files.extend(map(os.open, ...))``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from functools import partial, wraps
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar, cast
from weakref import ref

P = ParamSpec("P")
T = TypeVar("T")


def contextmanager(function: Callable[P, Iterator[T]]) -> Callable[P, AbstractContextManager[T]]:
    """Do what `contextlib.contextmanager` does; what the generator holds is let go of even if its end is interrupted.

    >>> @contextmanager
    ... def within(name):
    ...     print("into", name)
    ...     try:
    ...         yield name.upper()
    ...     finally:
    ...         print("out of", name)
    >>> with within("a") as found:
    ...     print(found)
    into a
    A
    out of a
    """

    @wraps(function)
    def manager(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[T]:
        return cast("AbstractContextManager[T]", _Manager(function(*args, **kwargs)))

    return manager


class _Leave:
    """What a ``with`` statement calls at its end: the only thing that keeps the manager, and by it the generator.

    If this is interrupted before the generator is told, the statement drops it; so the generator ends then and there,
    as nothing that the traceback keeps refers to it.
    """

    def __get__(self, manager: _Manager[Any] | None, _: type) -> Callable[..., bool]:
        if manager is None:  # `contextlib.ExitStack` looks here
            return _leave_now
        leave = partial(_leave, ref(manager))
        leave.manager = manager  # type: ignore[attr-defined]
        return leave


class _Manager(Generic[T]):
    __slots__ = ("__weakref__", "generator")

    def __init__(self, generator: Iterator[T]) -> None:
        self.generator = cast("Generator[T]", generator)

    def __enter__(self) -> T:
        try:
            return next(self.generator)
        except BaseException:
            self.generator.close()
            raise

    __exit__ = _Leave()


def _leave(
    manager: Callable[[], _Manager[Any] | None],
    _: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> bool:
    found = manager()
    assert found is not None  # noqa: S101 - the caller keeps it
    if error is None:
        try:
            next(found.generator)
        except StopIteration:
            return False
        raise RuntimeError("a context manager yields more than once")
    try:
        found.generator.throw(error)
    except StopIteration:
        return True
    except BaseException as raised:
        if raised is not error:
            raise
        error.__traceback__ = trace
        return False
    raise RuntimeError("a context manager yields more than once")


def _leave_now(manager: _Manager[Any], *args: Any) -> bool:
    return _leave(ref(manager), *args)
