"""The interface of stores, which hold keys and bytes.

A store maps keys to values. Four methods make a store (`get`, `set`, `delete`, `list`). The other methods, and the
functions of `omnizarr.stores.verbs`, have default implementations based on these; a store answers those that it can do
better.

A missing key is normal, and reads as None. A value becomes visible whole or not at all. A prefix is "" or ends
with a slash (a missing one is added). Keys that break the rules (``..``, a leading slash, ...) raise
`InvalidKeyError` in every method of every store. The tests of a store inherit ``tests/stores/contract.py``.

Latency
    Each store states how many requests to send at once (`Features.concurrency`). If it is more than 1, request several
    values concurrently. The engine has as many threads; each waits for a chunk, decodes it and takes the next.
    `omnizarr.aio` uses the same codecs without threads.

Writers
    If `Features.exclusion` is "condition" (object stores), a lock excludes only threads of this process, and remembers
    what was read within it. `Store.set` is then a conditional put, and raises `ConflictError` if another writer was
    faster. A change of a value (`Store.update`) or a document (`omnizarr.stores.conflicts.retried`) then starts again
    by reading. So a change of documents must be a function of the stored documents, and may run several times. A chunk
    that becomes empty is replaced by a chunk of fill values, because a deletion cannot be conditional. An append first
    clears what is beyond the edge, then reserves its place by making the array longer, then writes the block.

Spec: Zarr v3 core, "Abstract store interface".
"""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from types import MappingProxyType, TracebackType
from typing import Any, ClassVar, Concatenate, Final, Generic, Literal, NamedTuple, ParamSpec, Self, TypeAlias, TypeVar

from omnizarr.errors import InvalidKeyError, ReadOnlyError, StoreError
from omnizarr.stores import conflicts, threads

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes, C-contiguous and of format "B". The receiver never writes to them."""

Span: TypeAlias = tuple[int, int | None]
"""(start, stop) in bytes, half-open. A negative start counts from the end; then stop is None."""

Request: TypeAlias = tuple[str, Span | None]
"""A key, and the part of its value to read (None: all of it)."""

Buffers: TypeAlias = list[Buffer]
"""Several values, or parts of one value."""

NOT_LISTED: Final = (StoreError, NotImplementedError)
"""What a listing raises if the store cannot list, or fails. A store that you write may have a `list` that raises
NotImplementedError, and wrappers pass that on.
"""

Exclusion: TypeAlias = Literal["lock", "condition", "process"]
"""How writers of one value are kept from losing each other's changes. See `Features`."""


InNewFolder: TypeAlias = Literal["", "set", "alone"]
"""Whether a value was set in a new directory. "alone": after that, nothing else was there."""


class Parts(list[Buffer]):
    """Parts of one value, from a store that also knows the size of the whole value.

    Attributes
    ----------
    size : int, optional
        Size of the whole value in bytes.
    stamp : hashable, optional
        Stamp of the value, if the store knows it without another request.
    """

    def __init__(self, parts: Iterable[Buffer], size: int | None, stamp: Hashable | None = None) -> None:
        super().__init__(parts)
        self.size = size
        self.stamp = stamp


Change: TypeAlias = Callable[[Buffer | None], Buffer | None]
"""Takes the stored value (None: none) and returns the new one. Returning the same object means no change."""

Reader: TypeAlias = Callable[[Sequence[Span] | None], Buffers | None]
"""Returns parts of one value (None: all of it, as one part); None if the key is missing."""

RESERVED = ".omnizarr-"
"""How names of our temporary files begin. No part of a key may begin like this, so they are never read or listed."""

TOO_LARGE = "the value is larger than it may be"

# Possessive quantifiers halve the time for long keys.
_SEGMENT = rf"(?!\.(?:\.?(?:/|\Z)|{re.escape(RESERVED[1:])}))[^/\\\x00\ud800-\udfff]++"
_is_key = re.compile(rf"(?![A-Za-z]:(?:/|\Z)){_SEGMENT}(?:/{_SEGMENT})*+").fullmatch


class _KeysAndPrefixes(NamedTuple):
    keys: list[str]
    """Keys directly under the prefix: ``a/b``."""
    prefixes: list[str]
    """Prefixes of keys further below: ``a/d/``."""


class Listing(_KeysAndPrefixes):
    """What is directly under a prefix. Keys and prefixes are sorted, and complete as you would use them in requests.

    Attributes
    ----------
    others : list of str
        Other names under the prefix, which you cannot request: names that no key can have, and links that lead
        out of the store. Not part of the tuple.
    """

    others: Sequence[str]

    def __new__(cls, keys: list[str], prefixes: list[str], others: Sequence[str] = ()) -> Self:
        """Return keys and prefixes as a tuple."""
        self = super().__new__(cls, keys, prefixes)
        self.others = others
        return self

    def below(self, prefix: str) -> Listing:
        """Return the same listing as seen from a prefix that contains all of it."""
        skip = len(prefix)
        return Listing(*([entry[skip:] for entry in entries] for entries in (*self, self.others)))


class Stamped(NamedTuple):
    """A value, and a stamp that distinguishes it from all other values that its key ever has."""

    value: Buffer | None
    stamp: Hashable | None


class Extent(NamedTuple):
    """The place of a value: bytes of a file that other programs can read, too.

    Attributes
    ----------
    file : str
        An absolute path, or a URL without secrets.
    offset, length : int
        The bytes of the value.
    """

    file: str
    offset: int
    length: int


class Elsewhere(NamedTuple):
    """The place in another store of the chunks that a store passes on."""

    store: Store
    names: tuple[str, str, str, str]
    """Parts of a key before, between and after the coordinates; the key of a chunk without coordinates."""


class Elements(NamedTuple):
    """Elements of an array whose chunks a store makes when they are asked for."""

    read: Callable[..., None]
    """``read(plan, grid, out, concurrency)`` fills `out` with what a plan selects, as an engine does."""
    passes_on: Callable[[], bool]
    """Returns whether most chunks are stored chunks of others, which are passed on unchanged."""


class Verb(Generic[P, T]):
    """A function of a store, which the store can answer in a better way than by its methods.

    A call asks the store first (`Store.handle`). If that has no better way, the default implementation does the work
    with the methods of the store.

    Attributes
    ----------
    default : callable
        The default implementation.
    uses : frozenset of str
        The methods of the store for which the verb stands. If a class replaces one of them, answers of the classes
        above it no longer count: they would bypass it.
    names : str
        What the arguments begin with: "key", "prefix", "keys", "pairs" (of a key and something else), "two keys",
        "two prefixes", or "" (no key).
    writes : bool
        Whether it writes.
    bypasses : bool
        Whether the answer is a way around the store: wrappers do not ask the wrapped store.
    """

    def __init__(
        self,
        default: Callable[Concatenate[Any, P], T],
        names: str,
        uses: Iterable[str],
        *,
        writes: bool,
        bypasses: bool,
    ) -> None:
        self.default = default
        self.name = self.__name__ = default.__name__
        self.__doc__ = default.__doc__
        self.__module__ = default.__module__
        self.__wrapped__ = default
        self.names = names
        self.uses = frozenset(uses)
        self.writes = writes
        self.bypasses = bypasses

    def __call__(self, store: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask the store, and do the work if it has no better way."""
        if kwargs:  # stores get positional arguments
            last = self.default.__code__.co_varnames[1 + len(args) : 1 + len(args) + len(kwargs)]
            args = (*args, *(kwargs.pop(name) for name in last))  # type: ignore[assignment]
        known = type(store)._direct  # noqa: SLF001 - two halves of one thing
        if known is None:
            answer = store.handle(self, *args)
        elif (method := known.get(self)) is not None:  # what `Store.handle` does, without a call of it
            answer = method(store, *args)
        else:
            return self.default(store, *args, **kwargs)
        return self.default(store, *args, **kwargs) if answer is NotImplemented else answer

    def __repr__(self) -> str:
        return f"{self.__module__}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class Method(Verb[P, T]):
    """A verb that is a method of every store."""

    def __call__(self, store: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the method."""
        answer: T = getattr(store, self.name)(*args, **kwargs)
        return answer


def answers(verb: Verb[P, T]) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], T]]:
    """Mark a method that answers a verb. It gets the arguments of the verb, and may return NotImplemented."""

    def mark(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
        method.answered = verb  # type: ignore[attr-defined]
        return method

    return mark


def answers_itself(store: Store, verb: Verb[..., Any]) -> bool:
    """Return whether a store, or one that it wraps, may have a better way than the default implementation."""
    return verb in store._answers or type(store).handle is not Store.handle  # noqa: SLF001 - two halves of one thing


_METHODS: Final = ("get", "exists", "size", "set", "delete", "lock", "list", "list_prefix")


def _is_replaced(method: object, above: object) -> bool:
    return method is not above and not getattr(above, "__isabstractmethod__", False)


@dataclass(frozen=True)
class Features:
    """What a store can do.

    Parameters
    ----------
    concurrency : int, default: 1
        How many requests to send at once; 1 if each is answered immediately. More than 1 means that requests have
        latency. To get several values, request them concurrently, with `get_many` or from several threads.
    exclusion : {"process", "lock", "condition"}
        How writers of disjoint parts of one value are kept from losing each other's changes.

        "lock"
            `Store.lock` excludes all other writers of the data.
        "condition"
            `Store.lock` excludes the other threads of this process. Within it, the store remembers what this thread
            reads. If another writer has changed that value since, `Store.set` raises `ConflictError` and writes
            nothing. Then repeat the whole change, starting with the reading: see `Store.update` and
            `conflicts.retrying`. `Store.delete` is not conditional; to remove a value that others may be changing,
            write an equivalent value instead.
        "process"
            `Store.lock` excludes only the other threads of this process. Programs that share values need a lock of
            their own: see `omnizarr.stores.SynchronizedStore`.
    is_shared : bool, default: False
        Whether a pickled copy of the store reaches the same data, also in other processes. Without that, values
        written elsewhere would be lost silently.
    listing : {"partial", "complete", "none"}
        Which keys can be listed.

        "complete"
            Every key that has a value is listed. Tools then need fewer requests.
        "partial"
            There may be others. Some stores make values when they are asked for them, and list few of their keys.
            Only a request for a key shows that it is missing, and tools ask for each chunk (see
            `omnizarr.nodes.holdings`). A subclass with its own `get` or `exists` inherits "partial" for "complete".
        "none"
            None: a plain web server only answers requests for known keys.
    names_nodes : bool, default: False
        Whether `list_dir` shows all groups and arrays even if `listing` is "none": a document says which there are.
    sets_unlocked : bool, default: False
        Whether `set_in_new_folder` can set a value whose lock another writer holds. Then a writer that holds the lock
        must create a value with `set_if_absent`.

    Examples
    --------
    >>> from omnizarr.stores import MemoryStore
    >>> MemoryStore().features.listing
    'complete'
    """

    concurrency: int = 1
    exclusion: Exclusion = "process"
    is_shared: bool = False
    listing: Literal["complete", "partial", "none"] = "partial"
    names_nodes: bool = False
    sets_unlocked: bool = False


_FEATURES: Final = Features()
_SAID_BY_FEATURES: Final = frozenset({"supports_listing", *(each.name for each in fields(Features))})


def _not_all_listed(inherited: property | Features) -> property | Features:
    """Return the features of a class that has its own way to find values: what it inherits lists may not be all."""
    if isinstance(inherited, Features):
        return replace(inherited, listing="partial") if inherited.listing == "complete" else inherited
    ask = inherited.fget
    return property(lambda store: _not_all_listed(ask(store)))  # type: ignore[misc]


class Store(ABC):
    """Keys and their values.

    Keys are Unicode strings: names joined by ``/``, with no empty name, no ``.`` or ``..``, no backslash, no NUL
    and no drive letter. They are case-sensitive. A key that breaks these rules raises `InvalidKeyError` in every
    store, for reading too. A prefix is ``""`` (everything) or ends with a slash; a missing slash is added, so
    that ``"a"`` never means ``"ab/..."``.

    Threads can share a store. A value becomes visible whole or not at all. Stores can be pickled if other
    processes can reach their data.

    To write your own store, define `get`, `set`, `delete` and `list`, and `lock` if there can be several writers.
    Everything else is a function of `omnizarr.stores.verbs`, which needs only these methods. If your store has a better
    way, write a method for it, and mark it with ``@answers(verbs.get_spans)``.
    """

    read_only: bool = False
    """Whether every method that writes raises `ReadOnlyError`."""

    documents_first: bool = False
    """Whether chunks have a place only below the document of their array, as in Icechunk."""

    @property
    def features(self) -> Features:
        """What the store can do. Set it in your class, or override the property; a wrapper passes it on."""
        return _FEATURES

    @property
    def supports_listing(self) -> bool:
        """Whether keys can be listed, under the name of zarr-python. See `Features.listing`."""
        return self.features.listing != "none"

    # -- what it can do better ------------------------------------------------------

    _answers: ClassVar[Mapping[Verb[..., Any], str]] = MappingProxyType({})
    """The methods that answer verbs, by name."""

    _direct: ClassVar[Mapping[Verb[..., Any], Callable[..., Any]] | None] = MappingProxyType({})
    """The same as functions; None if the class has its own `handle`."""

    def handle(self, verb: Verb[..., T], *args: Any) -> T:
        """Answer a verb of `omnizarr.stores.verbs`; NotImplemented if the store has no better way than its default.

        Do not call this: call the verb. A store marks the methods that answer verbs with `answers`. A wrapper
        overrides this method, and so sees each request (see `omnizarr.stores.WrapperStore`).
        """
        name = self._answers.get(verb)
        answer: T = NotImplemented if name is None else getattr(self, name)(*args)
        return answer

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        above = next(base for base in cls.__mro__[1:] if issubclass(base, Store))
        own = {name for name in _METHODS if _is_replaced(getattr(cls, name), getattr(above, name))}
        answers = {verb: name for verb, name in above._answers.items() if verb.uses.isdisjoint(own)}  # noqa: SLF001
        for place in reversed(cls.__mro__):
            if place is cls or not issubclass(place, Store):
                answers.update((each.answered, name) for name, each in vars(place).items() if hasattr(each, "answered"))
        cls._answers = MappingProxyType(answers)
        cls._direct = (
            {verb: getattr(cls, name) for verb, name in answers.items()} if cls.handle is Store.handle else None
        )
        if not own.isdisjoint({"get", "exists"}) and "features" not in vars(cls):
            cls.features = _not_all_listed(above.features)  # type: ignore[assignment, arg-type]
        for name in sorted(vars(cls).keys() & _SAID_BY_FEATURES):
            raise TypeError(
                f"{cls.__name__}.{name} has no effect: set `features` instead, see omnizarr.stores.Features"
            )

    # -- reading ------------------------------------------------------------------

    @abstractmethod
    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value of `key`, or the part of it within `span`; None if the key is missing.

        A span that reaches past the end is cut there.
        """
        raise NotImplementedError

    def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""
        return self.size(key) is not None

    def size(self, key: str) -> int | None:
        """Return the size of the value of `key` in bytes; None if the key is missing."""
        value = self.get(key)
        return None if value is None else len(value)

    # -- writing ------------------------------------------------------------------

    @abstractmethod
    def set(self, key: str, value: Buffer) -> None:
        """Set the value of `key`. The old value stays readable until the new one is complete."""
        raise NotImplementedError

    def update(self, key: str, change: Change) -> None:
        """Replace the value of `key` by the result of `change`, without losing changes of other writers.

        `change` gets the stored value, or None, and returns the new one. It returns None to remove the value, or
        the same object to leave it. If `Features.exclusion` is "condition", `change` may be called several times, and
        must not return None for an existing value.

        Raises
        ------
        ConflictError
            If other writers were faster repeatedly.
        """

        def once() -> None:
            with self.lock(key):
                old = self.get(key)
                new = change(old)
                if new is old:
                    return
                if new is None:
                    self.delete(key)
                else:
                    self.set(key, new)

        conflicts.retrying(once)

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove `key` and its value. Removing a missing key is not an error."""
        raise NotImplementedError

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Exclude all others that lock `key` while the ``with`` block runs: to read, change and write its value.

        This excludes threads, other stores for the same data, and other processes that can reach the store. The
        same thread may enter twice. Locks of different keys do not wait for each other. A killed process leaves
        no lock behind. `set` and `delete` alone take no lock.

        The default implementation excludes only threads that use the same object. Stores that can be reached in
        other ways override it.
        """
        self.check_writable()
        check_key(key)
        return threads.lock((id(self), key))

    # -- listing ------------------------------------------------------------------

    @abstractmethod
    def list(self) -> Iterator[str]:
        """Yield every key, in any order."""
        raise NotImplementedError

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key under `prefix`, in any order.

        >>> from omnizarr.stores import MemoryStore
        >>> sorted(MemoryStore({"a/b": b"", "a/c/d": b"", "e/f/g": b""}).list_prefix("a/"))
        ['a/b', 'a/c/d']
        """
        prefix = as_prefix(prefix)
        return (key for key in self.list() if key.startswith(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """Return the keys and the prefixes directly under `prefix`.

        >>> from omnizarr.stores import MemoryStore
        >>> MemoryStore({"a/b": b"", "a/c": b"", "a/d/e": b"", "a/f/g": b""}).list_dir("a/")
        Listing(keys=['a/b', 'a/c'], prefixes=['a/d/', 'a/f/'])
        """
        return listing(self.list_prefix(prefix), as_prefix(prefix))

    # -- the store itself ---------------------------------------------------------

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002 - zarr-python's signature
        """Return a read-only store for the same data, or (False) a writable one."""
        clone = copy.copy(self)
        clone.read_only = read_only
        return clone

    def close(self) -> None:  # noqa: B027 - most stores have nothing to do
        """Write what is not written yet, and close files. A second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def place(self) -> str:
        """The path or URL of the data, without secrets, as messages show it; "" if it has none, as memory."""
        return ""

    def about(self) -> Mapping[str, Any]:
        """Return facts about the store besides its values, as JSON, by name, such as the branches of a repository.

        `omnizarr info` shows them.
        """
        return {}

    def about_node(self, path: str) -> Mapping[str, Any]:
        """Return those facts of `about` that concern the node at a path, as `omnizarr info` of one array shows them."""
        return self.about()

    def origin(self) -> tuple[Hashable, str]:
        """Return an identity of the data, and the path in it at which this store begins.

        Two stores that reach the same data, in whatever way, have equal origins, or one is below the other.
        """
        return id(self), ""

    def above(self) -> tuple[Store, str] | None:
        """Return a store that begins one directory further up, and the name of that of this store; None if unknown."""
        return None

    def check_writable(self) -> None:
        """Raise `ReadOnlyError` if the store is read-only."""
        if self.read_only:
            raise ReadOnlyError("the store is read-only", store=repr(self))


class Identity:
    """An object as a stamp. It equals only itself, and is kept, so that no other object can take its place in memory.

    >>> value = b"abc"
    >>> Identity(value) == Identity(value), Identity(value) == Identity(bytes(bytearray(value)))
    (True, False)
    """

    __slots__ = ("_kept",)

    def __init__(self, kept: object) -> None:
        self._kept = kept

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self._kept is other._kept

    def __hash__(self) -> int:
        return hash((Identity, id(self._kept)))


def is_key(key: str) -> bool:
    """Return whether `key` is a valid key.

    >>> [is_key(key) for key in ("zarr.json", "a/c/0/1", "", "/a", "a//b", "a/../b", "C:/a")]
    [True, True, False, False, False, False, False]
    """
    return _is_key(key) is not None


def check_key(key: str) -> None:
    """Raise `InvalidKeyError` unless `key` is a valid key."""
    if _is_key(key) is None:
        raise invalid_key(key)


def invalid_key(key: str) -> InvalidKeyError:
    """Return the error that states what is wrong with `key`."""
    names = key.split("/")
    if not key:
        reason = "a key cannot be empty"
    elif "\0" in key:
        reason = "a key cannot contain NUL"
    elif "\\" in key:
        reason = "a key cannot contain a backslash"
    elif "" in names:
        reason = "a key cannot begin or end with a slash, or contain two in a row"
    elif "." in names or ".." in names:
        reason = "a key cannot contain '.' or '..'"
    elif any(name.startswith(RESERVED) for name in names):
        reason = f"names that begin with {RESERVED!r} are for temporary files"
    elif len(names[0]) == 2 and names[0].endswith(":"):
        reason = "a key cannot begin with a drive letter"
    else:
        reason = "a key must consist of Unicode characters"
    return InvalidKeyError(reason, key=key)


def as_prefix(prefix: str) -> str:
    """Return `prefix` with a slash at its end. Raises `InvalidKeyError` if it cannot be a prefix."""
    if prefix:
        prefix = prefix.removesuffix("/")
        check_key(prefix)
        prefix += "/"
    return prefix


def listing(names: Iterable[str], prefix: str) -> Listing:
    """Return what is directly under `prefix`.

    `names` are all names that begin with it, keys or not, or at least those directly under it. A directory has a
    slash at its end.
    """
    keys: set[str] = set()
    prefixes: set[str] = set()
    others: set[str] = set()
    skip = len(prefix)
    for name in names:
        if len(name) == skip:
            continue  # the directory itself, as some archives contain it
        end = name.find("/", skip)
        entry = name if end < 0 else name[: end + 1]
        if entry in prefixes:
            continue
        if is_key(name.removesuffix("/")):
            (keys if end < 0 else prefixes).add(entry)
        elif not is_key(entry.removesuffix("/")) and not _is_temporary(entry[skip:]):
            others.add(entry)
    return Listing(sorted(keys), sorted(prefixes), sorted(others))


def _is_temporary(name: str) -> bool:
    return name.startswith(RESERVED) and not name.endswith("/")


def bounds(span: Span, size: int) -> tuple[int, int]:
    """Return start and length of the part that `span` means, in a value of `size` bytes.

    >>> bounds((2, 5), 10), bounds((-4, None), 10), bounds((8, 99), 10), bounds((12, None), 10)
    ((2, 3), (6, 4), (8, 2), (10, 0))
    """
    start, stop = span
    if start < 0:
        start = max(0, start + size)
    start = min(start, size)
    stop = size if stop is None else min(stop, size)
    return start, max(0, stop - start)


def cut(value: Buffer, span: Span | None) -> Buffer:
    """Return the part of `value` that `span` means, without copying it."""
    if span is None:
        return value
    start, length = bounds(span, len(value))
    return memoryview(value)[start : start + length]


def parts_of(value: Buffer, spans: Iterable[Span]) -> Parts:
    """Return the parts of `value` that `spans` mean, without copying them."""
    return Parts([cut(value, span) for span in spans], len(value))


def fill(out: memoryview, value: memoryview) -> int:
    """Copy as much of `value` as fits to the beginning of `out`, and return the size of `value`."""
    size = min(out.nbytes, value.nbytes)
    out.cast("B")[:size] = value[:size]
    return value.nbytes
