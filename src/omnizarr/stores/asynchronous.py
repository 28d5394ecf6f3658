"""Stores with asynchronous methods: the methods of a store as coroutines, without threads.

Only object stores and some wrappers around them have such methods. For all others, `asynchronous` returns None,
and their methods are called in threads. The code of `omnizarr.stores.remote.object` is shared: its methods are
*rehearsed*. A coroutine sends the requests to obstore, and the method is called again with the answers, until it
makes no new request. Most methods make one.
"""

from __future__ import annotations

import asyncio
import atexit
import random
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from omnizarr.errors import ConflictError
from omnizarr.stores import conflicts, loops
from omnizarr.stores.async_verbs import AsyncReader, AsyncVerbs
from omnizarr.stores.base import Buffer, Buffers, Change, Listing, Span, Stamped, Store
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.remote import object as objects
from omnizarr.stores.remote import object_errors
from omnizarr.stores.remote.object import ObjectStore
from omnizarr.stores.remote.object_answers import Write, grouped, of_length
from omnizarr.stores.tasks import computed, run, waited
from omnizarr.stores.wrap.awaited import WRAPPERS
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import obstore
else:
    obstore = Lazy("obstore")

T = TypeVar("T")


def asynchronous(store: Store) -> AsyncVerbs | None:
    """Return the asynchronous methods of a store; None if they need a thread.

    >>> from omnizarr.stores import MemoryStore
    >>> asynchronous(MemoryStore())
    """
    if type(store) is ObjectStore:
        if not store.is_of_obstore:
            return None
        _rest_at_exit()
        return ObjectVerbs(store)
    wrapped = WRAPPERS.get(type(store))
    below = None if wrapped is None else asynchronous(store.store)  # type: ignore[attr-defined]
    return None if wrapped is None or below is None else wrapped(store, below)


@cache
def _rest_at_exit() -> None:
    # If a thread of obstore has just answered a coroutine while the interpreter ends, it aborts the process.
    atexit.register(time.sleep, 0.05)


# -- how many requests are under way ------------------------------------------------------

_Named = WeakValueDictionary[Hashable, T]  # a store may be named by its id, which a later one can have
_OfLoops = WeakKeyDictionary[asyncio.AbstractEventLoop, _Named[T]]

_gates: _OfLoops[asyncio.Semaphore] = WeakKeyDictionary()
_turns: _OfLoops[asyncio.Lock] = WeakKeyDictionary()


def _here(table: _OfLoops[T]) -> _Named[T]:
    """Return what the running loop has."""
    loop = asyncio.get_running_loop()
    if loop not in table:
        for closed in loops.closed(table):  # semaphores and locks keep their loops
            table.pop(closed, None)
    return table.setdefault(loop, WeakValueDictionary())


def _gate(store: Store) -> asyncio.Semaphore:
    """Return the semaphore that limits requests to what a store wants. All objects for the same data share it."""
    name = store.origin()[0], store.concurrency
    return _here(_gates).setdefault(name, asyncio.Semaphore(max(store.concurrency, _LEAST)))


def _turn(store: Store, key: str) -> asyncio.Lock:
    """Return the lock of the task that changes a value: others would only get in its way."""
    return _here(_turns).setdefault((store.origin(), key), asyncio.Lock())


_LEAST: Final = 8  # requests at once, if answers are so fast that threads do not pay


# -- rehearsing -----------------------------------------------------------------------------

_TWINS: Final = frozenset({"get", "get_range", "get_ranges", "head", "put", "delete", "list_with_delimiter"})
"""Functions of obstore that also exist as coroutines, with "_async" appended to the name."""


class _Question(BaseException):
    """A request whose answer is not known yet. Not an Exception, because methods handle those."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.name, self.args, self.kwargs = name, args, kwargs

    @property
    def identity(self) -> Hashable:
        """The identity of the request. How a value is stored may differ, because marks are random."""
        how = () if self.name == "put" else tuple(self.kwargs.items())
        return self.name, self.args[1], how if self.name == "get_range" else repr(how)


class _Fetched(NamedTuple):
    """The result of a read of obstore, with the bytes already in memory."""

    meta: Mapping[str, Any]
    attributes: Mapping[str, Any]
    range: tuple[int, int]
    data: Any

    def stream(self, _: int) -> Iterator[Any]:
        return iter([self.data])


class _Given:
    """An answer that is not an error."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


_Answer: TypeAlias = Callable[[], Any]
"""Returns or raises what obstore would."""

_Known: TypeAlias = dict[Hashable, list[_Answer]]
"""Answers by request; several if a request was repeated."""


class _Rehearsed(ObjectStore):
    """An object store that returns the known answers, and raises every other request."""

    def __init__(self, store: ObjectStore, known: _Known) -> None:  # a copy, so that nothing is created again
        self.__dict__.update(store.__dict__, known=known, _asked={}, _writes=[], _written=0, _original=store)

    known: _Known
    _asked: dict[Hashable, int]
    _writes: list[Write]
    _written: int
    _original: ObjectStore

    def __setattr__(self, name: str, value: object) -> None:
        """Pass on to the store what is learned about the server."""
        self.__dict__[name] = value
        setattr(self._original, name, value)

    def begin(self) -> None:
        """Start again with the first request."""
        self._asked.clear()
        self.__dict__["_written"] = 0

    def _new_write(self) -> Write:
        """Return the value that the same write got when it was rehearsed before."""
        if self._written == len(self._writes):
            self._writes.append(super()._new_write())
        self.__dict__["_written"] += 1
        return self._writes[self._written - 1]

    def _call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        name = getattr(function, "__name__", "")
        return super()._call(self._answer(name, args, kwargs) if name in _TWINS else partial(function, *args, **kwargs))

    def _list_below(self, full: str | None) -> Any:
        return self._answer("list_with_delimiter", (self._store, full), {})()

    def _answer(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Answer:
        """Return the known answer; raise the request if there is none."""
        question = _Question(name, args, kwargs)
        identity = question.identity
        answers = self.known.get(identity, ())
        number = self._asked.get(identity, 0)
        if number >= len(answers):
            raise question
        self._asked[identity] = number + 1
        return answers[number]

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        record = objects._record  # noqa: SLF001 - a part of ObjectStore
        record.depth += 1
        try:
            yield
        finally:
            record.depth -= 1
            if not record.depth:
                record.seen.clear()

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Remember what is read, so that `set` is conditional. This prevents lost changes without waiting."""
        self.check_writable()
        self._path(key)
        return self._remembering()


class ObjectVerbs:
    """The methods of an object store as coroutines, based on those of obstore.

    Parameters
    ----------
    store : ObjectStore
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._gate: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None

    async def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value, or the part of it within `span`."""
        store = self._store
        wanted = store._in_one_call(span)  # noqa: SLF001 - a part of ObjectStore
        if wanted is None:
            return await self._rehearse(lambda store: store.get(key, span))
        start, stop = wanted
        question = _Question("get_range", (store._store, store._path(key)), {"start": start, "end": stop})  # noqa: SLF001
        object_errors.check_fork()
        answer = await self._ask(question)
        if isinstance(answer, _Given) and len(answer.value) < min(stop - start, store._max_value_bytes + 1):  # noqa: SLF001
            return memoryview(answer.value)
        # Other answers have the usual meaning for the store.
        return await self._perform(_Rehearsed(store, {question.identity: [answer]}), lambda store: store.get(key, span))

    async def get_within(self, key: str, most: int) -> Buffer | None:
        """Return the value, and receive no more than its head if that announces too much."""
        return await ObjectVerbs(self._store._at_most(most)).get(key)  # noqa: SLF001 - a part of ObjectStore

    async def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Return several parts of one version of a value, fetched concurrently."""
        store = _Rehearsed(self._store, {})
        return await self._read(store, partial(store.get_spans, key), key, spans)

    def pinned(self, key: str) -> AsyncReader | None:
        """Return a function that reads parts of the version that it read first."""
        store = _Rehearsed(self._store, {})
        read = store.pinned(key)
        if read is None:
            return None

        async def reader(spans: Sequence[Span] | None) -> Buffers | None:
            store.known.clear()
            return await self._read(store, read, key, spans)

        return reader

    async def get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Return value and stamp in one request; None if the stamp is still `unless`."""
        return await self._rehearse(lambda store: store.get_stamped(key, unless))

    async def get_stamped_within(self, key: str, unless: Hashable | None, most: int) -> Stamped | None:
        """Return value and stamp in one request."""
        return await ObjectVerbs(self._store._at_most(most)).get_stamped(key, unless)  # noqa: SLF001 - as above

    async def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""
        return await self._rehearse(lambda store: store.exists(key))

    async def size(self, key: str) -> int | None:
        """Return the size of the value of `key` in bytes."""
        return await self._rehearse(lambda store: store.size(key))

    async def list_dir(self, prefix: str) -> Listing:
        """Return the keys and prefixes directly under `prefix`."""
        return await self._rehearse(lambda store: store.list_dir(prefix))

    async def set(self, key: str, value: Buffer) -> None:
        """Send the value."""
        await self._rehearse(lambda store: store.set(key, value))

    async def delete(self, key: str) -> None:
        """Ask the server to delete it."""
        await self._rehearse(lambda store: store.delete(key))

    async def update(self, key: str, change: Change) -> None:
        """Store the result of `change`, on condition that the value has not changed meanwhile.

        If it has, start again.
        """
        if self._store.exclusion != "condition":
            await waited(partial(self._store.update, key, change))
            return
        start, pause = time.monotonic(), 0.005
        while True:
            try:
                async with _turn(self._store, key):
                    await self._update_once(key, change)
            except ConflictError as error:
                if time.monotonic() - start > conflicts.PATIENCE:
                    raise conflicts.given_up(error)
                await asyncio.sleep(random.uniform(0, pause))  # noqa: S311 - no secret
                pause = min(2 * pause, 1.0)
            else:
                return

    async def _update_once(self, key: str, change: Change) -> None:
        made: list[Buffer | None] = []

        def once(store: Store) -> None:
            with store.lock(key):
                old = store.get(key)
                if not made:
                    made.append(change(old))
                    if made[0] is old:
                        made[0] = _SAME
                new = made[0]
                if new is _SAME:
                    return
                if new is None:
                    store.delete(key)
                else:
                    store.set(key, new)

        await self._rehearse(once, in_thread=True)

    # -- requests -------------------------------------------------------------------

    async def _rehearse(self, verb: Callable[[_Rehearsed], T], *, in_thread: bool = False) -> T:
        return await self._perform(_Rehearsed(self._store, {}), verb, in_thread=in_thread)

    async def _perform(self, store: _Rehearsed, verb: Callable[[_Rehearsed], T], *, in_thread: bool = False) -> T:
        """Call a method until it makes no new request. If there are too many, call it directly in a thread."""
        for _ in range(_MOST_QUESTIONS):
            asked = await computed(_attempt, store, verb) if in_thread else _attempt(store, verb)
            if not isinstance(asked, _Question):
                return asked
            store.known.setdefault(asked.identity, []).append(await self._ask(asked))
        return await waited(verb, cast("Any", self._store))

    async def _ask(self, question: _Question) -> _Answer:
        """Return the answer or error of obstore, as a function."""
        function = getattr(obstore, f"{question.name}_async")
        try:
            async with self._own_gate():
                asked = function(*question.args, **question.kwargs)
                is_listing = question.name == "list_with_delimiter"  # the answer may never end
                answer = await (asyncio.wait_for(asked, self._store._list_timeout) if is_listing else asked)  # noqa: SLF001
                if question.name == "get":
                    answer = await self._fetched(answer, question.kwargs.get("options") or {})
        except Exception as error:  # noqa: BLE001 - what obstore raises has no base in common
            return partial(_raise, error)
        return _Given(answer)

    def _own_gate(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._gate is None or self._gate[0] is not loop:
            self._gate = loop, _gate(self._store)
        return self._gate[1]

    async def _fetched(self, answer: Any, options: Mapping[str, Any]) -> _Fetched:
        start, stop = answer.range
        # A value that is too large is refused before its bytes are requested.
        is_wanted = not options.get("head") and stop - start <= self._store._max_value_bytes  # noqa: SLF001
        data = await _body(answer) if is_wanted else b""
        return _Fetched(answer.meta, answer.attributes, (start, stop), data)

    async def _read(
        self,
        store: _Rehearsed,
        read: Callable[[Any], Buffers | None],
        key: str,
        spans: Sequence[Span] | None,
    ) -> Buffers | None:
        """Return the result of `read` for `spans`. Its requests are sent in advance, concurrently."""
        groups = [] if spans is None else grouped(spans)
        if len(groups) > 1:
            asked = _attempt(store, lambda _: read(spans))
            if isinstance(asked, _Question) and asked.name == "get":
                conditions = {name: value for name, value in asked.kwargs["options"].items() if name != "range"}

                async def fetch(group: Span | None) -> None:
                    await self._perform(
                        _Rehearsed(self._store, store.known),
                        lambda part: part._part(key, group, **conditions),  # noqa: SLF001 - a part of ObjectStore
                    )

                await run(fetch, groups, len(groups))
        return await self._perform(store, lambda _: read(spans))


_MOST_QUESTIONS: Final = 64
_SAME: Final = cast("bytes", object())


def _attempt(store: _Rehearsed, verb: Callable[[_Rehearsed], T]) -> T | _Question:
    store.begin()
    try:
        return verb(store)
    except _Question as question:
        return question


async def _body(result: obstore.GetResult) -> Buffer:
    start, stop = result.range
    return of_length(await anext(result.stream(stop - start), b""), stop - start)


def _raise(error: Exception) -> Any:
    raise error
