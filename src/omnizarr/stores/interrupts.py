"""Context managers that always clean up, even if Ctrl-C interrupts at the worst moment.

Python raises KeyboardInterrupt between bytecodes: at the start of a function, after a call of a function written
in C, and at the end of a loop iteration. A ``with`` block of an `omnizarr.support.locks.RLock` has no
such place between taking the lock and entering the block, nor between leaving and releasing. A manager of
`contextlib.contextmanager` has two: after the call that runs the generator up to its ``yield``, and at the start
of ``__exit__``. An interrupt there leaves the generator suspended, with everything it holds, for as long as the
traceback is kept, as an interactive prompt keeps it.

So whatever holds something that others wait for is

- such a lock in a ``with`` statement, and nothing else, if that is enough; or
- a generator under `contextmanager` of this module. Follow two rules in it. Acquire inside the ``try`` whose
  ``finally`` releases, such that the ``finally`` knows what was acquired, wherever it was interrupted. The first call
  of a ``finally`` must release everything that others wait for, or be repeated if it is interrupted. Create such a
  manager in the ``with`` statement, not in a variable, so that the statement holds the only reference.

An interrupt after a system call would lose its result, such as the descriptor of an open file. ``(file,) =
map(os.open, (path,), (flags,))`` cannot be interrupted between opening and storing the descriptor, and neither
can ``files.extend(map(os.open, ...))``.
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
    """Like `contextlib.contextmanager`, but the generator cleans up even if its end is interrupted.

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
    """The function that a ``with`` statement calls at its end, which holds the only reference to the manager.

    If Ctrl-C interrupts before the generator is resumed, the statement drops this function. The generator then
    ends immediately, because the traceback holds no reference to it.
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
