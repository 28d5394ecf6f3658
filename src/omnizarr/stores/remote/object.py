"""Object stores: S3, Google Cloud Storage, Azure Blob Storage and HTTP, through obstore.

`omnizarr.stores.remote.object_urls` documents URLs and options.

Spec: Zarr v3 core, "Stores" and "Abstract store interface"; conditions: RFC 9110, section 13.
"""

from __future__ import annotations

import copy
import os
import time
import uuid
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

from omnizarr.errors import (
    ConflictError,
    InvalidKeyError,
    Remedy,
    StorageOption,
    StoreAccessError,
    StoreError,
    StoreLimitError,
    StoreTimeoutError,
)
from omnizarr.stores import conflicts, pool, threads, verbs, waiting
from omnizarr.stores.access import Access, Opened
from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Features,
    Listing,
    Parts,
    Reader,
    Request,
    Span,
    Stamped,
    Store,
    answers,
    as_prefix,
    bounds,
    check_key,
    fill,
    is_key,
    listing,
)
from omnizarr.stores.fork_locks import Gate
from omnizarr.stores.interrupts import contextmanager
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.redaction import redact
from omnizarr.stores.remote import object_access, object_coroutines, object_errors, object_forked, object_urls
from omnizarr.stores.remote.object_answers import (
    FARTHEST,
    LARGE,
    MOST_AT_ONCE,
    Answer,
    Read,
    Seen,
    Version,
    are_same,
    body_of,
    digest_of,
    excludes,
    grouped,
    max_value_bytes_of_machine,
    received,
)
from omnizarr.support import amounts
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import obstore

    from omnizarr.stores.kinds import Place
    from omnizarr.stores.remote import deadlines, web_requests
else:
    obstore = Lazy("obstore")
    deadlines = Lazy("omnizarr.stores.remote.deadlines")
    web_requests = Lazy("omnizarr.stores.remote.web_requests")

CONCURRENCY: Final = 192
"""Concurrent requests. A thousand values of 16 KiB, 20 ms away: 64 take 350 ms, 128 190, 192 and 256 140, 384 160."""

MAX_KEYS: Final = 50_000_000
"""Number of keys after which a listing is assumed never to end."""

_LARGE: Final = 32 * 2**20  # bytes above which a value is sent in parts
_MOST_FOR_A_PART: Final = 256 * 2**20  # bytes of a value that is read for a part of it, if the server ignores ranges
_PART: Final = 8 * 2**20  # bytes of such a part
_PARTS_AT_ONCE: Final = 4
_PAGE: Final = 1000
_ALL: Final = (0, None)
_ATTEMPTS: Final = 10  # attempts to read a value that changes while it is read

_CONDITIONAL: Final = frozenset({"S3Store", "GCSStore", "AzureStore", "MemoryStore"})
_FORGIVING: Final = frozenset({"S3Store", "MemoryStore"})  # deleting a missing key is not an error

_REMEDY: Final = Remedy("let the programs that write agree by a lock of their own: `omnizarr.stores.SynchronizedStore`")


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MARK: Final = "omnizarrwrite"  # metadata stored with a value; all clouds allow letters only
_INIT_BACKOFF: Final = timedelta(seconds=0.1)  # of obstore, before it repeats a request
_NEVER: Final = '"00000000000000000000000000000000"'  # an ETag that no value has
_copies: dict[Hashable, bool] = {}  # whether the server copies values, if known
_keep_conditions: set[Hashable] = set()  # servers that have been seen to do so
_lack_bulk: set[Hashable] = set()  # servers of S3 that delete keys one by one only


class _Learned:
    """What is known about a server by now, for all objects of a store."""

    values_are_small = True
    some_are_large = False
    ignores_ranges = False
    refuses_to_list = False
    singly: object_forked.Kept | None = None  # the store of obstore that deletes keys one by one


class _Record:
    """What a thread has read since it locked a key; by data and path, because stores may share both."""

    def __init__(self) -> None:
        self.depth = 0
        self.seen: dict[Hashable, Seen] = {}

    def __bool__(self) -> bool:
        return self.depth > 0


_record: Final = waiting.Local(_Record)


_in_memory: Final = Gate(close=lambda: None, abandon=lambda: None)
"""Held for obstore's stores in memory, because a fork within a call would leave their lock taken in the child."""


_Pins: TypeAlias = dict[str, Mapping[str, Any]]


class _Pinned:
    """Reads parts of a value, all of the version that it has read first."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        self._store, self._key = store, key
        self._pins: _Pins = {}

    def __call__(self, spans: Sequence[Span] | None) -> Buffers | None:
        return self._store._read_pinned(self._key, spans, self._pins)  # noqa: SLF001 - of its kind

    @property
    def version(self) -> Opened | None:
        """That version; None before something was read."""
        meta = self._pins.get("pin")
        if meta is None:
            return None
        changed = meta["last_modified"]
        since = changed.replace(tzinfo=changed.tzinfo or UTC) - _EPOCH
        modified = max(0, since // timedelta(microseconds=1))
        return Opened(meta["size"], meta["e_tag"], meta["version"], modified)

    def adopt(self, version: Opened) -> None:
        """Read that version, if none has been read yet."""
        changed = _EPOCH + timedelta(microseconds=version.modified)
        meta = {"last_modified": changed, "size": version.size, "e_tag": version.e_tag, "version": version.version}
        self._pins.setdefault("pin", meta)


class ObjectStore(Store):
    """A store in an object store, through obstore.

    Parameters
    ----------
    store : obstore.store.ObjectStore
        ``S3Store``, ``GCSStore``, ``AzureStore``, ``HTTPStore`` or ``MemoryStore`` of obstore.
    prefix : str, default ""
        Path in the object store where the keys begin.
    read_only : bool, default False
        Whether to refuse to write.
    concurrency : int, optional
        Number of concurrent requests. The default is 512 if the native engine sends them, otherwise
        `CONCURRENCY`, and 1 for obstore's ``MemoryStore``.
    max_value_bytes : int, optional
        Larger values raise StoreLimitError. The default is a quarter of the machine's memory, but at least 1 GiB.
    max_keys : int, default `MAX_KEYS`
        Longer listings raise StoreLimitError.
    list_timeout : float, default 60
        Time limit of `list_dir` in seconds.

    Notes
    -----
    *Writers.* S3, Google and Azure have conditional writes (`exclusion` is "condition"), so writers of disjoint
    regions do not lose each other's changes, on any number of machines. HTTP, and S3 with
    ``conditional_put="disabled"``, have none: then only threads of one process are kept apart.

    *Versions.* All parts of a value come from one version: from answers with the same ETag, or, if the server
    sends none or a weak one, with the same size and date.

    *Keys.* obstore does not support keys with control characters; they raise `InvalidKeyError`. Objects whose
    names are not valid keys (a leading slash, two slashes in a row, ``..``) are not listed.

    *Redirects.* At most 10 are followed, none from https to http. Another web server gets neither your headers nor
    the query of your URL: see `omnizarr.stores.remote.web_requests`.

    Examples
    --------
    >>> import obstore.store
    >>> store = ObjectStore(obstore.store.MemoryStore(), prefix="data")
    >>> store.set("c/0", b"abc")
    >>> bytes(store.get("c/0", (1, None))), store.get("c/1"), list(store.list())
    (b'bc', None, ['c/0'])
    """

    def __init__(
        self,
        store: Any,
        *,
        prefix: str = "",
        read_only: bool = False,
        concurrency: int | None = None,
        max_value_bytes: int | str | None = None,
        max_keys: int = MAX_KEYS,
        list_timeout: float = 60,
    ) -> None:
        kinds = object_urls.import_obstore().ObjectStoreMethods
        if not isinstance(store, kinds):
            raise TypeError(f"{type(store).__name__} is not a store of obstore")
        self._store = store
        self._kept = object_forked.Kept(store)
        self._kind = next(kind.__name__ for kind in type(store).__mro__ if kind.__module__.startswith("obstore"))
        self._prefix = as_prefix(prefix)
        self.read_only = read_only
        if self._kind == "LocalStore":
            raise TypeError("a directory is not an object store; use omnizarr.stores.LocalStore")
        self._asked_concurrency = concurrency
        default = 1 if self._kind == "MemoryStore" else CONCURRENCY
        self._concurrency = default if concurrency is None else concurrency
        self._max_value_bytes = amounts.limit(max_value_bytes, "max_value_bytes") or max_value_bytes_of_machine()
        self._max_keys = max_keys
        self._list_timeout = list_timeout
        backoff = (getattr(store, "retry_config", None) or {}).get("backoff") or {}
        self._soonest_repetition = backoff.get("init_backoff", _INIT_BACKOFF).total_seconds()
        self._limit: int | None = None
        self._learned = _Learned()
        self._data, self._below = object_urls.origin(store, self._kind)
        self._web = web_requests.Client(store) if self._kind == "HTTPStore" else None
        self._is_public = False
        self._features: Features | None = None
        self._of_child: object_forked.Requests | None = None

    @classmethod
    def from_url(
        cls, url: str, storage_options: Mapping[str, Any] | None = None, *, read_only: bool = False
    ) -> ObjectStore:
        """Return the store of a URL, with the options that `omnizarr.stores.remote.object_urls` documents."""
        store, prefix, own = object_urls.parse(url, dict(storage_options or {}))
        return cls(store, prefix=prefix, read_only=read_only, **own)

    def on_public_servers(self) -> ObjectStore:
        """Return this store of a web server, so that it reaches no server of a private network: see `web_requests`."""
        store = copy.copy(self)
        store._is_public = True  # noqa: SLF001 - of its kind
        store._web = web_requests.Client(self._store, is_public=True)  # noqa: SLF001 - of its kind
        return store

    @property
    def features(self) -> Features:
        """Writes are conditional if the server supports that. A web server lists nothing, other servers all.

        What is in memory is not shared: only this process sees it.
        """
        if self._features is None:
            self._features = Features(
                self._concurrency,
                "condition" if self._has_conditions else "process",
                is_shared=self._kind != "MemoryStore",
                listing="none" if self._kind == "HTTPStore" else "complete",
            )
        return self._features

    @property
    def is_of_obstore(self) -> bool:
        """Whether obstore sends the requests: not to web servers."""
        return self._web is None

    @property
    def _has_conditions(self) -> bool:
        if self._kind not in _CONDITIONAL:
            return False
        config = getattr(self._store, "config", None) or {}
        return str(config.get("conditional_put", "etag")).lower() != "disabled"

    @property
    def _are_conditions_doubtful(self) -> bool:
        """Whether this is not S3 itself, but a server of which it is not known whether it ignores conditions."""
        return (
            self._kind == "S3Store" and self._data not in _keep_conditions and bool(self._store.config.get("endpoint"))
        )

    @answers(verbs.access)
    def _access(self) -> Access | None:
        """Return how the store of obstore was set up, if all of that is known."""
        if type(self) is not ObjectStore or self._is_public:
            return None
        made = object_access.client_of(self._store, self._kind, self._asked_concurrency)
        if made is None:
            return None
        client, below = made[0].deleting_singly(), made[1]
        prefix = as_prefix(below) + self._prefix
        conditions = self._has_conditions, self._are_conditions_doubtful
        return Access(client, prefix, self._max_value_bytes, *conditions, self._learned.ignores_ranges)

    @answers(verbs.remembered)
    def _remembered(self) -> Sequence[str]:
        """Return what this thread remembers, in all of the bucket: keys in it without the prefix of this store."""
        record = _record.get()
        if not record:
            return ()
        seen = (path for data, path in cast("dict[tuple[Hashable, str], Seen]", record.seen) if data == self._data)
        return [path.removeprefix(self._prefix) for path in seen]

    def answered(self, kind: str, text: str, key: str | None) -> StoreError:
        """Return the omnizarr error for an exception of obstore with this class and text; for the native engine.

        The native engine reports a conflict only after `omnizarr.stores.conflicts.PATIENCE` seconds.
        """
        error = object_errors.said(kind, text, self._store)
        if isinstance(error, ConflictError):
            conflicts.given_up(error)
        return error.add(store=repr(self), key=key)

    # -- requests -------------------------------------------------------------------

    @answers(verbs.check_storable)
    def _check_storable(self, key: str) -> None:
        """Check for control characters, too."""
        check_key(key)
        if _has_control_character(key):
            raise InvalidKeyError("an object store can have no control character in a key", key=key, store=repr(self))

    def _path(self, key: str) -> str:
        verbs.check_storable(self, key)
        return self._prefix + key

    def _ask(self, key: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Return the answer of obstore for `key`, or None if it is missing.

        Errors of obstore become errors of omnizarr.
        """
        path = self._path(key)
        try:
            return self._call(function, self._store, path, *args, **kwargs)
        except StoreError as error:
            raise error.add(key=key) from None

    def _call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        name = getattr(function, "__name__", "")
        call = waiting.here.call
        if self._web is not None:
            function = getattr(self._web, name, function)
        elif self._is_forked():
            function = getattr(self._requests(), name, function)
            if call is not None:
                function = partial(call.block, partial(function, *args, **kwargs))
                args, kwargs = (), {}
        elif call is not None:
            send = object_coroutines.coroutine_of(name, self._max_value_bytes, self._list_timeout)
            if send is not None:
                function = partial(call.ask, (self._data, self._concurrency), send)
        try:
            if self._kind == "MemoryStore" and call is None:
                with _in_memory.enter():
                    return function(*args, **kwargs)
            return function(*args, **kwargs)
        except TimeoutError:
            undeleted: str | None = None
            failure: StoreError = StoreTimeoutError(
                "the listing takes too long",
                expected=f"at most {self._list_timeout:g} s",
                remedy=Remedy("raise {list_timeout} if there is so much", list_timeout=StorageOption()),
            )
        except FileNotFoundError as error:
            missing = object_errors.missing(error, self._store)
            if missing is None and (name != "delete" or self._kind != "S3Store"):
                return None
            failure = missing or object_errors.NotFoundError("the server answers 'not found' to the deletion")
            undeleted = object_errors.undeleted(str(error))
        except Exception as error:  # noqa: BLE001 - what obstore raises has no base in common
            failure = object_errors.translate(error, self._store)
            undeleted = object_errors.undeleted(str(error))
        # Raised outside the block: obstore's message, which may contain secrets, must not be shown as the
        # context.
        failure = failure.add(store=repr(self))
        if name == "delete" and undeleted is not None and not self._is_forked():
            raise object_errors.BulkError(failure, undeleted)
        raise failure

    def _is_forked(self) -> bool:
        return self._kind != "MemoryStore" and self._web is None and object_errors.is_forked()

    def _requests(self) -> object_forked.Requests:
        """Return what sends requests in a process in which obstore cannot."""
        if self._of_child is None:
            self._of_child = object_forked.Requests(self._store, self._kind, self._max_value_bytes, self._list_timeout)
        return self._of_child

    def _fetch(self, key: str, wanted: Any = None, part: Span | None = None, /, **conditions: str) -> Answer | None:
        """Return the answer to a request for `wanted` (None: everything), with conditions as in RFC 9110.

        `part`: what is needed of everything, as the server ignores ranges.
        """
        options = {**conditions} if wanted is None else {**conditions, "range": wanted}
        result = self._ask(key, obstore.get, options=options)
        if result is None:
            return None
        start, stop = result.range
        is_refused = self._limit is not None and stop - start > self._limit
        self._check_size(key, result.meta["size"] if is_refused else stop - start)
        if part is not None and stop - start > _MOST_FOR_A_PART:
            raise StoreLimitError(
                "the server ignores ranges, and the value is too large to be read for a part of it",
                store=repr(self),
                key=key,
                found=f"{stop - start} bytes",
                expected=f"at most {_MOST_FOR_A_PART}",
                remedy="copy the data from a server that knows ranges, or read the whole value",
            )
        receive = received if self._web is None else body_of
        data = self._ask(key, lambda *_: receive(result))
        if data is None:
            raise self._restless(key)
        return Answer(memoryview(data), start, result.meta)

    def _part(self, key: str, span: Span | None, **conditions: str) -> Answer | None:
        """Return at least the part of `key` within `span`, with one request if possible."""
        if span is None or self._learned.ignores_ranges:
            return self._fetch(key, None, None if span == _ALL else span, **conditions)
        start, stop = span
        try:
            if start < 0:
                return self._fetch(key, {"suffix": -start}, **conditions)
            if start < FARTHEST and stop is None:
                return self._fetch(key, {"offset": start}, **conditions)
            if stop is not None and start < min(stop, FARTHEST):
                return self._fetch(key, (start, min(stop, FARTHEST)), **conditions)
        except object_errors.RangeError:
            pass
        return self._known_part(key, span, **conditions)

    def _known_part(self, key: str, span: Span, **conditions: str) -> Answer | None:
        """Return the part of `key` within `span` that the server could not resolve, after requesting the size."""
        for _ in range(_ATTEMPTS):
            meta = self._head(key)
            if meta is None:
                return None
            start, length = bounds(span, meta["size"])
            if not length:
                return Answer(b"", start, meta)
            try:
                return self._fetch(key, (start, start + length), **conditions)
            except object_errors.NoRangesError:
                self._learned.ignores_ranges = True
                return self._fetch(key, None, span, **conditions)
            except object_errors.RangeError:
                continue  # it has become shorter meanwhile
        raise self._restless(key)

    def _head(self, key: str) -> Mapping[str, Any] | None:
        """Return the server's metadata of `key`; None if the key is missing."""
        try:
            meta = self._ask(key, obstore.head)
        except object_errors.NotAllowedError:  # a server that supports only GET
            result = self._ask(key, obstore.get)
            meta = None if result is None else result.meta
        return cast("Mapping[str, Any] | None", meta)

    def _at_most(self, most: int) -> Self:
        """Return the same store, in which values of more bytes raise StoreLimitError before they are received."""
        if most >= self._max_value_bytes:
            return self
        same = copy.copy(self)
        same._limit = same._max_value_bytes = most  # noqa: SLF001 - of its kind
        return same

    def _check_size(self, key: str, size: int) -> None:
        if self._limit is not None:
            verbs.check_limit(self, key, size, self._limit)
        elif size > self._max_value_bytes:
            raise StoreLimitError(
                "the value is too large",
                store=repr(self),
                key=key,
                found=f"{size} bytes",
                expected=f"at most {self._max_value_bytes}",
                remedy=Remedy("raise {max_value_bytes} if it is meant to be", max_value_bytes=StorageOption()),
            )

    def _restless(self, key: str) -> ConflictError:
        return ConflictError("the value changes faster than it can be read", store=repr(self), key=key)

    # -- reading ------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Request the value or the part, in one request if it is not empty."""
        if _record.get():
            answer = self._part(key, span)
            self._remember(key, answer and answer.meta)
            return None if answer is None else self._cut(key, span or _ALL, [answer])
        wanted = self._in_one_call(span)
        if wanted is None:
            return self._get(key, span)
        start, stop = wanted
        try:
            data = self._ask(key, obstore.get_range, start=start, end=stop)
        except object_errors.RangeError as error:
            value = self._get(key, span)
            self._learned.ignores_ranges |= isinstance(error, object_errors.NoRangesError) and bool(value)
            return value
        if data is None:
            return None
        if span is None and len(data) == stop:  # it may be longer, so request the size first, from now on
            self._learned.values_are_small = stop != MOST_AT_ONCE
            return self._get(key, span)
        self._check_size(key, len(data))
        return memoryview(data)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Request the value, and receive no more than its head if that announces too much."""
        bounded = self._at_most(most)
        if bounded is self or most < LARGE or not self._learned.some_are_large:
            return bounded.get(key)
        return bounded.get(key, (0, most + 1))  # in one request, and in pieces if it is large

    @answers(verbs.get_many_within)
    def _get_many_within(self, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
        """Request all values concurrently."""
        return verbs.get_many(self._at_most(most), ((key, None) for key in keys))

    def _in_one_call(self, span: Span | None) -> tuple[int, int] | None:
        """Return the range that requests `span` in one call where `_fetch` makes two; None if there is none.

        A thousand small values are a sixth faster without the second wait for the interpreter.
        """
        start, stop = (
            (0, MOST_AT_ONCE if self._limit is None else min(MOST_AT_ONCE, self._limit + 1)) if span is None else span
        )
        most = MOST_AT_ONCE if span is None else LARGE
        if stop is None or not 0 <= start < stop <= start + most or start > FARTHEST:
            return None
        if self._learned.ignores_ranges or (span is None and not self._learned.values_are_small):
            return None
        return start, stop

    def _get(self, key: str, span: Span | None) -> Buffer | None:
        answer = self._part(key, span)
        return None if answer is None else self._cut(key, span or _ALL, [answer])

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Request all values concurrently."""
        return self._get_many_remembered(requests) if _record.get() else verbs.get_many.default(self, requests)

    def _get_many_remembered(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        # Other threads send the requests; this thread, which holds the lock, remembers the answers.
        def ask(request: Request) -> tuple[Request, Answer | None]:
            return request, self._part(*request)

        for position, ((key, span), answer) in pool.gather(ask, requests, self._concurrency):
            self._remember(key, answer and answer.meta)
            yield position, None if answer is None else self._cut(key, span or _ALL, [answer])

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Request all parts at once, near ones as one; repeat if they belong to several versions."""
        read = self._read(key, spans, None)
        self._remember(key, read and read.meta)
        return read and read.parts

    def _read(self, key: str, spans: Sequence[Span] | None, pin: Mapping[str, Any] | None) -> Read | None:
        """Return parts of one version (that of `pin` if it is given); None if the key is missing."""
        version = pin and Version.of(pin)
        conditions = {"if_match": version.e_tag} if version and version.e_tag else {}
        groups = [None] if spans is None else grouped(spans)
        for _ in range(_ATTEMPTS):
            answers: list[Answer | None] = [None] * len(groups)
            for position, answer in pool.gather(
                lambda group: self._part(key, group, **conditions), groups, self._concurrency
            ):
                answers[position] = answer
            metas = [answer and answer.meta for answer in answers] or [self._head(key)]
            meta = metas[0]
            if pin is not None and not all(map(partial(are_same, pin), metas)):
                raise ConflictError("the value has changed since it was first read", store=repr(self), key=key)
            if not all(map(partial(are_same, meta), metas)):
                continue
            if meta is None:
                return None
            there = sorted((answer for answer in answers if answer is not None), key=attrgetter("start"))
            parts = [self._cut(key, span, there) for span in (spans if spans is not None else [_ALL])]
            return Read(Parts(parts, meta["size"], self._stamp_of(meta)), meta)
        raise self._restless(key)

    def _cut(self, key: str, span: Span, answers: Sequence[Answer]) -> Buffer:
        """Return a part of a value from answers in the order of their places."""
        start, length = bounds(span, answers[0].meta["size"]) if answers else (0, 0)
        last = bisect_right(answers, start, key=attrgetter("start"))
        for answer in chain(answers[max(last - 1, 0) : last], answers):  # nearly always the first of them
            part = answer.cut(span)
            if part is not None:
                return part
        if not length:
            return b""
        raise StoreError(
            "the server did not answer with all that was asked for",
            store=repr(self),
            key=key,
            expected=f"{length} bytes from byte {start} on",
        )

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Request as many bytes as fit and one more, which shows whether there are more."""
        data = self.get(key, (start, start + out.nbytes + 1))
        if data is None:
            return None
        filled = fill(out, memoryview(data))
        if filled <= out.nbytes:
            return filled
        size = self.size(key)
        return filled if size is None else max(filled, size - start)

    def exists(self, key: str) -> bool:
        """Check without transferring the value."""
        return self.size(key) is not None

    def size(self, key: str) -> int | None:
        """Return the size without transferring the value."""
        meta = self._head(key)
        self._remember(key, meta)
        return None if meta is None else int(meta["size"])

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return ETag and version; None if there is no ETag, or a weak one."""
        meta = self._head(key)
        self._remember(key, meta)
        return self._stamp_of(meta)

    def _stamp_of(self, meta: Mapping[str, Any] | None) -> Hashable | None:
        version = None if meta is None else Version.of(meta)
        return None if version is None else tuple(version)  # only text, which caches on disks can store

    @answers(verbs.get_stamped)
    def _get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Request value and stamp at once, without transferring the value if the stamp is `unless`."""
        known = unless[0] if isinstance(unless, tuple) else None
        try:
            answer = self._fetch(key, **({} if known is None else {"if_none_match": known}))
        except object_errors.NotModifiedError:
            return None
        self._remember(key, answer and answer.meta)
        if answer is None:
            return Stamped(None, None)
        stamp = self._stamp_of(answer.meta)
        return None if stamp is not None and stamp == unless else Stamped(answer.data, stamp)

    @answers(verbs.get_stamped_within)
    def _get_stamped_within(self, key: str, unless: Hashable | None, most: int) -> Stamped | None:
        """Request both at once."""
        return verbs.get_stamped(self._at_most(most), key, unless)

    @answers(verbs.pinned)
    def _pinned(self, key: str) -> Reader | None:
        """Return a function that requests the ETag that it read first."""
        self._path(key)
        return _Pinned(self, key)

    def _read_pinned(self, key: str, spans: Sequence[Span] | None, pins: _Pins) -> Buffers | None:
        found = self._read(key, spans, pins.get("pin"))
        self._remember(key, found and found.meta)
        if found is None:
            return None
        # If several threads make the first request, one of them decides.
        if not are_same(pins.setdefault("pin", found.meta), found.meta):
            raise ConflictError("the value has changed since it was first read", store=repr(self), key=key)
        return found.parts

    # -- writing ------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Send the value; within a lock, only if it has not changed since this thread read it."""
        self.check_writable()
        path = self._path(key)
        seen = _record.get().seen.get((self._data, path)) if self._has_conditions else None
        if seen == "unknown":
            raise StoreError(
                "the server does not say which version a value is, so a change by another writer cannot be noticed",
                store=repr(self),
                key=key,
                remedy=_REMEDY,
            )
        mode: Any = "create" if seen == "absent" else seen.condition() if isinstance(seen, Version) else "overwrite"
        try:
            answer = self._put(key, value, mode)
        except ConflictError:
            # A retry reads again, even within a longer lock of another key.
            _record.get().seen.pop((self._data, path), None)
            raise
        self._remember(key, answer, always=True)

    def _put(self, key: str, value: Buffer, mode: Any) -> Mapping[str, Any]:
        data: Any = memoryview(value).cast("B")
        if self._kind == "MemoryStore" and type(value) is not bytes:  # it keeps the same memory
            data = bytes(data)
        if mode != "overwrite":
            return self._put_if(key, data, mode)
        parts: dict[str, Any] = {"use_multipart": False}
        if len(data) > _LARGE:
            parts = {"use_multipart": True, "chunk_size": _PART, "max_concurrency": _PARTS_AT_ONCE}
        answer = self._ask(key, obstore.put, data, **parts)
        if answer is None:
            raise StoreError(
                "the server answered 'not found' to a write: the bucket or container may not exist",
                store=repr(self),
                key=key,
                remedy="create it, or correct the address",
            )
        return cast("Mapping[str, Any]", answer)

    def _put_if(self, key: str, data: Buffer, condition: Any) -> Mapping[str, Any]:
        """Send the value on a condition. Raises ConflictError if it does not hold."""
        answer = self._put_marked(key, data, condition)
        if answer is None:  # "not found"
            raise ConflictError("the value has been deleted since it was read", store=repr(self), key=key)
        self._check_conditions(key, data)
        return answer

    def _put_marked(self, key: str, data: Buffer, condition: Any) -> Mapping[str, Any] | None:
        """Send the value with a mark, which identifies it as ours if the answer is lost.

        Then it is unknown whether it was written. It is sent again, by obstore or by omnizarr; if it was written,
        that request fails because of the first one.
        """
        mark, begun = uuid.uuid4().hex, time.monotonic()
        options: dict[str, Any] = {"mode": condition, "attributes": {_MARK: mark}, "use_multipart": False}
        for is_last in (False, True):
            try:
                return cast("Mapping[str, Any] | None", self._ask(key, obstore.put, data, **options))
            except object_errors.NotConditionalError as error:
                raise error.add(remedy=_REMEDY) from None
            except StoreAccessError:
                raise
            except StoreError as error:
                is_conflict = isinstance(error, ConflictError)
                if is_conflict and time.monotonic() - begun < self._soonest_repetition:
                    raise
                found = self._ask(key, obstore.get, options={"head": True})
                if found is not None and found.attributes.get(_MARK) == mark:
                    return cast("Mapping[str, Any]", found.meta)
                # A server may break the connection off before it has read a large value that it refuses.
                if not is_conflict and excludes(condition, None if found is None else found.meta):
                    raise ConflictError("the value has changed since it was read", store=repr(self), key=key) from error
                if is_conflict or is_last:
                    raise
        return None

    def _check_conditions(self, key: str, data: Buffer) -> None:
        """Raise if the server ignores conditions, as some S3-compatible servers do. Checked once.

        The server is asked to write the value that it has just got, on a condition that cannot hold.
        """
        if not self._are_conditions_doubtful:
            return
        try:
            answer = self._ask(key, obstore.put, data, mode={"e_tag": _NEVER}, use_multipart=False)
        except ConflictError:
            _keep_conditions.add(self._data)
            return
        except object_errors.NotConditionalError as error:
            raise error.add(remedy=_REMEDY) from None
        except StoreError:
            return  # the value itself is written; the next write will tell
        if answer is not None:
            raise StoreError(
                "the server takes no notice of conditions, so writers can lose each other's changes",
                store=repr(self),
                key=key,
                remedy=_REMEDY.also("say so by {conditional_put}", conditional_put=StorageOption("disabled")),
            )

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Buffer) -> bool:
        """Send the value on condition that there is none."""
        self.check_writable()
        if not self._has_conditions:
            return verbs.set_if_absent.default(self, key, value)
        try:
            answer = self._put(key, value, "create")
        except ConflictError:
            return False
        self._remember(key, answer, always=True)
        return True

    def delete(self, key: str) -> None:
        """Ask the server to delete it."""
        self.check_writable()
        self._delete([key])
        self._remember(key, None, always=True)

    @answers(verbs.delete_many)
    def _delete_many(self, keys: Iterable[str]) -> None:
        """Delete a thousand keys at once, or concurrently."""
        self.check_writable()
        remaining = iter(keys)
        while batch := list(islice(remaining, _PAGE)):
            self._delete(batch)
            for key in batch:
                self._remember(key, None, always=True)

    def _delete(self, keys: Sequence[str]) -> None:
        paths = [self._path(key) for key in keys]
        # If a missing key is an error, obstore would skip the keys after it.
        if self._kind not in _FORGIVING or self._lacks_bulk:
            self._delete_singly(keys)
            return
        try:
            self._call(obstore.delete, self._store, paths if len(paths) > 1 else paths[0])
        except object_errors.NotFoundError:  # the environment says that keys are deleted one by one
            self._delete_singly(keys)
        except object_errors.BulkError as error:
            # The key that the server names goes first: most often it cannot be deleted by itself either.
            named = (at for at, path in enumerate(paths) if error.of_key.startswith(f"{self._whole(path)}: "))
            first = next(named, 0)
            self._delete_singly([keys[first]])
            self._delete_singly([*keys[:first], *keys[first + 1 :]])
            if not error.of_key:
                _lack_bulk.add(self._data)
        except StoreError as error:
            raise error.add(key=keys[0] if len(keys) == 1 else None) from None

    def _whole(self, path: str) -> str:
        return f"{self._below}/{path}".lstrip("/")

    @property
    def _lacks_bulk(self) -> bool:
        """Whether this is S3, without requests that delete several keys."""
        return self._kind == "S3Store" and (self._data in _lack_bulk or object_urls.lacks_bulk(self._store))

    def _delete_singly(self, keys: Sequence[str]) -> None:
        for _ in pool.gather(partial(self._delete_one, self._store_that_deletes_one()), keys, self._concurrency):
            pass

    def _store_that_deletes_one(self) -> Any:
        if self._kind != "S3Store" or self._is_forked() or object_urls.lacks_bulk(self._store):
            return self._store
        if self._learned.singly is None:
            self._learned.singly = object_forked.Kept(object_urls.without_bulk(self._store))
        return self._learned.singly.store

    def _delete_one(self, store: Any, key: str) -> None:
        try:
            self._call(obstore.delete, store, self._path(key))
        except object_errors.BulkError as error:
            raise error.cause.add(key=key) from None
        except object_errors.NotFoundError as error:
            if self._head(key) is not None:
                raise error.add(
                    key=key, found="the key is still there", remedy="see whether the server can delete, and how"
                ) from None
        except StoreError as error:
            raise error.add(key=key) from None

    @answers(verbs.delete_prefix)
    def _delete_prefix(self, prefix: str) -> None:
        """List the keys, and delete them."""
        self.check_writable()
        verbs.delete_many(self, list(self.list_prefix(prefix)))

    @answers(verbs.copy_value)
    def _copy_value(self, key: str, target: str) -> bool:
        """Ask the server to copy the value; if the server cannot, copy it through this process."""
        self.check_writable()
        if self._web is not None:
            return verbs.copy_value.default(self, key, target)
        path = self._path(target)
        does_copy = _copies.get(self._data)
        # Some servers write an empty value instead, so the size of the first copy is compared.
        size = self.size(key) if does_copy is None else None
        if does_copy is False or (does_copy is None and not size):
            return verbs.copy_value.default(self, key, target)
        try:
            copied = self._ask(key, self._copied, path)
        except StoreError:  # it has no such request, or only for smaller values
            return verbs.copy_value.default(self, key, target)
        if copied is None:
            return False
        _record.get().seen.pop((self._data, path), None)
        if does_copy is None:
            _copies[self._data] = self.size(target) == size
            return _copies[self._data] or verbs.copy_value.default(self, key, target)
        return True

    def _copied(self, store: Any, path: str, target: str) -> bool:
        send = self._requests().copy if self._is_forked() else obstore.copy
        send(store, path, target)
        return True

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Exclude the other threads of this process, and remember what this one reads, so that `set` is conditional."""
        self.check_writable()
        return self._lock((self._data, self._path(key)))

    @contextmanager
    def _lock(self, name: Hashable) -> Iterator[None]:
        call, record = waiting.here.call, _record.own()
        if call is not None and not self._has_conditions:
            raise RuntimeError("a lock without conditions must exclude threads, so it needs a thread")
        # Of tasks, conditions alone prevent lost changes.
        with threads.lock(name) if call is None else call.lock(name):
            record.depth += 1
            try:
                yield
            finally:
                record.depth -= 1
                if not record.depth:
                    record.seen.clear()

    def _remember(self, key: str, meta: Mapping[str, Any] | None, *, always: bool = False) -> None:
        """Remember what this thread first read of `key`, or has written since."""
        record = _record.get()
        if not record:
            return
        seen: Seen = "absent" if meta is None else Version.of(meta) or "unknown"
        name = self._data, self._prefix + key
        if always:
            record.seen[name] = seen
        else:
            record.seen.setdefault(name, seen)

    # -- listing ------------------------------------------------------------------

    def list(self) -> Iterator[str]:
        """Request page after page."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Request page after page."""
        return (key for key, _ in verbs.list_sizes(self, prefix))

    @answers(verbs.list_sizes)
    def _list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Request page after page, which also contain sizes."""
        full = self._prefix + as_prefix(prefix)
        self._check_lists()
        skip = len(self._prefix)
        found = ((meta["path"], meta["size"]) for page in self._pages(full) for meta in page)
        return ((path[skip:], size) for path, size in found if path.startswith(full) and is_key(path[skip:]))

    @answers(verbs.list_digests)
    def _list_digests(self, prefix: str) -> Iterator[tuple[str, bytes | None]]:
        """Request page after page, which also contain ETags: those of S3 come from the bytes of values."""
        if self._kind != "S3Store":
            raise NotImplementedError("only S3 lists digests of values")
        full = self._prefix + as_prefix(prefix)
        skip = len(self._prefix)
        found = ((meta["path"], meta) for page in self._pages(full) for meta in page)
        return ((path[skip:], digest_of(meta)) for path, meta in found if path.startswith(full) and is_key(path[skip:]))

    def _pages(self, full: str) -> Iterator[Sequence[Mapping[str, Any]]]:
        stream = self._call(obstore.list, self._store, full or None, chunk_size=_PAGE)
        begun: set[str] = set()
        count = 0
        while page := self._call(next, stream, None):
            count += len(page)
            self._learned.some_are_large |= any(meta["size"] >= LARGE for meta in page)
            first = page[0]["path"]
            if count > self._max_keys or first in begun:
                raise StoreLimitError(
                    "the listing does not end" if count > self._max_keys else "the listing repeats itself",
                    store=repr(self),
                    found=f"{count} keys",
                    expected=f"at most {self._max_keys}, each once",
                    remedy=Remedy("raise {max_keys} if there are more", max_keys=StorageOption())
                    if count > self._max_keys
                    else None,
                )
            begun.add(first)
            yield page

    @answers(verbs.has_any)
    def _has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Request one page of the keys below, which is empty at a new place. Only if it is full, ask for each name."""
        prefix, names = as_prefix(prefix), tuple(names)
        if len(names) < 2 or not self.supports_listing or self._learned.refuses_to_list:
            return verbs.has_any.default(self, prefix, names)
        for name in names:
            verbs.check_storable(self, prefix + name)
        full = self._prefix + prefix
        try:
            page = next(self._pages(full), ())
        except StoreTimeoutError:
            raise
        except StoreError:  # it may be read, and not listed: some servers forbid it, others do not know how
            self._learned.refuses_to_list = True
            return verbs.has_any.default(self, prefix, names)
        there = {meta["path"] for meta in page}
        if any(full + name in there for name in names):
            return True
        if len(page) >= _PAGE:
            return verbs.has_any.default(self, prefix, names)
        for name in names:
            self._remember(prefix + name, None)
        return False

    def list_dir(self, prefix: str) -> Listing:
        """Request the names directly below."""
        prefix = as_prefix(prefix)
        full = self._prefix + prefix
        self._check_lists()
        found = self._list_below(full or None)
        if found is None:
            return Listing([], [])
        skip = len(self._prefix)
        paths = [meta["path"] for meta in found["objects"]] + [f"{below}/" for below in found["common_prefixes"]]
        return listing((path[skip:] for path in paths if path.startswith(full)), prefix)

    def _list_below(self, full: str | None) -> Any:
        if self._kind == "MemoryStore" or waiting.here.call is not None or self._is_forked():
            return self._call(obstore.list_with_delimiter, self._store, full)
        # obstore requests all pages before it answers, so keys are not counted, and only a coroutine can be
        # cancelled.
        ask = partial(obstore.list_with_delimiter_async, self._store, full)
        return self._call(lambda: deadlines.within(self._list_timeout, ask))

    def _check_lists(self) -> None:
        if not self.supports_listing:
            raise StoreError(
                "an HTTP server does not say what it has",
                store=repr(self),
                remedy="consolidate the metadata, give the path of an array, or let fsspec look for links in its pages",
            )

    # -- the store itself ---------------------------------------------------------

    def origin(self) -> tuple[Hashable, str]:
        """Return the bucket, by endpoint and name, and the prefix in it."""
        return self._data, f"{self._below}{self._prefix}".strip("/")

    @answers(verbs.folder)
    def _folder(self, prefix: str) -> str | None:
        """Return the URL of a prefix; None in the memory of obstore."""
        if self._kind == "MemoryStore":
            return None
        return f"{object_urls.shown(self._store, self._kind, self._prefix + as_prefix(prefix)).rstrip('/')}/"

    def above(self) -> tuple[Store, str] | None:
        """Return a store with a shorter prefix; None for a bucket."""
        higher, _, name = self._prefix[:-1].rpartition("/")
        if not higher:
            return None
        store = copy.copy(self)
        store._prefix = as_prefix(higher)  # noqa: SLF001 - of its kind
        return store, name

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ObjectStore)
            and (self._store is other._store or self._store == other._store)
            and (self._prefix, self.read_only, self._is_public) == (other._prefix, other.read_only, other._is_public)
        )

    def __hash__(self) -> int:
        return hash((ObjectStore, self.origin()))

    @property
    def server(self) -> str | None:
        """The URL of the server of S3, without secrets, if it is named by an option."""
        found = self._store.config.get("endpoint") if self._kind == "S3Store" else None
        return None if found is None else redact(str(found)).rstrip("/")

    @property
    def place(self) -> str:
        """The URL, without secrets."""
        return object_urls.shown(self._store, self._kind, self._prefix)

    def __repr__(self) -> str:
        return f"ObjectStore({self.place!r})"


def _has_control_character(key: str) -> bool:
    return not key.isprintable() and any(character < " " or character == "\x7f" for character in key)


def open_place(place: Place) -> tuple[Store, str]:
    """Return the store of a URL. The hierarchy begins at its root."""
    return ObjectStore.from_url(place.text, place.of_store, read_only=place.read_only), ""


def adapt(storelike: Any, mode: str, options: Mapping[str, Any]) -> tuple[Store, str] | None:
    """Return the store for a store of obstore; None for other objects."""
    obstores = object_urls.import_obstore()
    if not isinstance(storelike, obstores.ObjectStoreMethods):
        return None
    if isinstance(storelike, obstores.LocalStore) and not options:
        return LocalStore(storelike.prefix or os.sep, read_only=mode == "r"), ""
    own = object_urls.own_options(dict(options))
    return ObjectStore(storelike, read_only=mode == "r", **own), ""
