"""Metadata without threads: synchronous functions on a `Store`, replayed in an event loop.

Functions that open nodes or list members are written for a store that answers immediately. Here, such a function
is called with a store that has no data. Its requests are fetched, concurrently if it makes several at once, and
the function is called again with the answers, until it returns. Most functions need two calls. They raise the
same errors as otherwise, because failures of the store are answers, too.

So the function must only read, and must send the same requests for the same answers. Its results must be bound to
the real store (`on`) before they are used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from omnizarr.errors import OmnizarrError
from omnizarr.stores import Store
from omnizarr.stores.async_verbs import AsyncVerbs
from omnizarr.stores.base import Buffer, Listing, Request, Span, as_prefix, check_key
from omnizarr.stores.tasks import run, waited

T = TypeVar("T")

_Question: TypeAlias = tuple[str, str, Span | int | None]
"""A method, a key or prefix, and for `get` the part that is wanted, for `get_within` the limit."""

_READS: Final = ("get", "get_within")

_MOST_ROUNDS: Final = 40
"""A function with more dependent requests runs in a thread, because each round repeats all requests before it."""


class Wanted(BaseException):
    """A request whose answer is not known yet."""

    def __init__(self, questions: list[_Question]) -> None:
        super().__init__(questions)
        self.questions = questions


class Answers(Store):
    """A store that returns the answers it has, and raises `Wanted` for other requests.

    Parameters
    ----------
    store : Store
        The store that it replaces.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.read_only = store.read_only
        self.known: dict[_Question, Callable[[], Any]] = {}

    def _answer(self, verb: str, key: str, span: Span | int | None = None) -> Any:
        check_key(key)
        question = verb, key, span
        if question not in self.known:
            raise Wanted([question])
        return self.known[question]()

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the known value."""
        answer: Buffer | None = self._answer("get", key, span)
        return answer

    def get_within(self, key: str, most: int) -> Buffer | None:
        """Return the known value."""
        answer: Buffer | None = self._answer("get_within", key, most)
        return answer

    def get_many_within(self, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
        """Yield the known values, or want all missing ones."""
        wanted = list(keys)
        for key in wanted:
            check_key(key)
        unknown: list[_Question] = [
            ("get_within", key, most) for key in wanted if ("get_within", key, most) not in self.known
        ]
        if unknown:
            raise Wanted(unknown)
        return ((position, self.get_within(key, most)) for position, key in enumerate(wanted))

    def get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Yield the known values, or want all missing ones."""
        wanted = list(requests)
        for key, _ in wanted:
            check_key(key)
        unknown: list[_Question] = [("get", key, span) for key, span in wanted if ("get", key, span) not in self.known]
        if unknown:
            raise Wanted(unknown)
        return ((position, self.get(*request)) for position, request in enumerate(wanted))

    def exists(self, key: str) -> bool:
        """Return whether the value is known to exist."""
        return self.size(key) is not None

    def size(self, key: str) -> int | None:
        """Return the known size."""
        if ("get", key, None) in self.known:
            value = self.get(key)
            return None if value is None else len(value)
        size: int | None = self._answer("size", key)
        return size

    def list_dir(self, prefix: str) -> Listing:
        """Return the known listing."""
        question = "list_dir", as_prefix(prefix), None
        if question not in self.known:
            raise Wanted([question])
        listing: Listing = self.known[question]()
        return listing

    def list(self) -> Iterator[str]:
        """Not supported: functions that open or list nodes do not list all keys."""
        raise NotImplementedError

    def set(self, key: str, value: Buffer) -> None:
        """Not supported: a function that may be called again must not write."""
        raise NotImplementedError

    def delete(self, key: str) -> None:
        """Not supported: a function that may be called again must not write."""
        raise NotImplementedError

    def origin(self) -> tuple[Hashable, str]:
        """Return the origin of the store."""
        return self.store.origin()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Answers) and self.store == other.store

    def __hash__(self) -> int:
        return hash(self.store)

    def __repr__(self) -> str:
        return repr(self.store)


async def replay(answers: Answers, verbs: AsyncVerbs, function: Callable[[Store], T]) -> T:
    """Return the result of `function` for the store that `answers` replaces. See the module docstring."""
    for _ in range(_MOST_ROUNDS):
        try:
            return function(answers)
        except Wanted as wanted:
            questions = list(dict.fromkeys(wanted.questions))
        await run(partial(_ask, answers, verbs), questions, len(questions))
    return await waited(function, answers.store)


async def _ask(answers: Answers, verbs: AsyncVerbs, question: _Question) -> None:
    verb, key, how = question
    asked: Awaitable[Any] = getattr(verbs, verb)(key, how) if verb in _READS else getattr(verbs, verb)(key)
    try:
        answer = await asked
    except OmnizarrError as error:
        answers.known[question] = partial(_raise, error)
    else:
        answers.known[question] = lambda: answer
        if verb == "get_within":
            answers.known.setdefault(("get", key, None), lambda: answer)


def _raise(error: OmnizarrError) -> Any:
    raise error
