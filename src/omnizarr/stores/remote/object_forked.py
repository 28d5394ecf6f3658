"""The functions of obstore that `ObjectStore` calls, for a process that was forked from one that used obstore.

obstore has none of its threads there, and would wait for them forever. So the native engine sends the requests: it
makes its own threads and connections in each process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from weakref import WeakSet

from omnizarr.errors import StoreError
from omnizarr.settings import engines
from omnizarr.stores.base import Buffer, as_prefix
from omnizarr.stores.remote import object_access, object_errors

_alive: Final[WeakSet[Kept]] = WeakSet()
_abandoned: Final[list[Any]] = []
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Kept:
    """Keeps a store of obstore in forked children: dropping it takes locks, which may never become free there."""

    def __init__(self, store: Any) -> None:
        self.store = store
        _alive.add(self)


def _abandon() -> None:
    _abandoned.extend(kept.store for kept in list(_alive))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon)


class _Fetched(NamedTuple):
    """The result of a read of obstore, with the bytes already in memory."""

    meta: Mapping[str, Any]
    attributes: Mapping[str, Any]
    range: tuple[int, int]
    data: bytes

    def stream(self, _: int) -> Iterator[Buffer]:
        return iter([self.data])


class Requests:
    """The functions, by the names that they have in obstore; each gets the store of obstore first, and needs it not.

    Parameters
    ----------
    store : obstore.store.ObjectStore
    kind : str
        Its class.
    most_bytes : int
        Larger values are not received.
    list_timeout : float
        Seconds that a listing of what is directly below a prefix may take.

    Raises
    ------
    StoreError
        If the native engine is missing, or cannot do what the store was set up for.
    """

    def __init__(self, store: Any, kind: str, most_bytes: int, list_timeout: float) -> None:
        self._store = store
        self._most_bytes = most_bytes
        self._list_timeout = list_timeout
        native = engines.module()
        made = None
        if native is not None and hasattr(native, "Objects"):
            made = object_access.client_of(store, kind, None)
        if made is None:
            raise StoreError(
                "this store cannot be used in a process that was forked from one that had used object stores",
                found="no native engine" if native is None else "credentials from Python, a proxy, or rare options",
                remedy="start processes by 'spawn' or 'forkserver', in a DataLoader with its multiprocessing_context",
            )
        client, below = made
        self._below = as_prefix(below)
        *given, _ = client
        self._failure = native.RequestError
        self._objects = native.Objects(native.Client(*given, object_errors.missing_places()))

    def _ask(self, request: Callable[..., Any], *args: Any) -> Any:
        try:
            return request(*args)
        except self._failure as error:
            kind, text = error.args
        if kind == "FileNotFoundError":
            raise FileNotFoundError(text)
        raise object_errors.said(kind, text, self._store)

    def get(self, _store: Any, path: str, *, options: Mapping[str, Any] | None = None) -> _Fetched:
        """Return an answer, with its bytes unless they are too many."""
        return self._fetched(path, options or {}, self._most_bytes)

    def get_range(self, _store: Any, path: str, *, start: int, end: int) -> bytes:
        """Return the bytes of a range."""
        return self._fetched(path, {"range": (start, end)}, end - start).data

    def _fetched(self, path: str, options: Mapping[str, Any], most: int) -> _Fetched:
        wanted, span = options.get("range"), None
        if isinstance(wanted, Mapping):
            span = (wanted.get("offset"), wanted.get("suffix"))
        elif wanted is not None:
            span = (wanted[0], wanted[1])
        conditions = options.get("if_match"), options.get("if_none_match")
        meta, found, attributes, data = self._ask(
            self._objects.get, self._below + path, span, *conditions, bool(options.get("head")), most
        )
        return _Fetched(self._meta(meta), dict(attributes), found, data or b"")

    def head(self, store: Any, path: str) -> Mapping[str, Any]:
        """Return the metadata of a value."""
        return self.get(store, path, options={"head": True}).meta

    def put(
        self,
        _store: Any,
        path: str,
        data: Buffer,
        *,
        mode: Any = "overwrite",
        attributes: Mapping[str, str] | None = None,
        **_parts: Any,
    ) -> Mapping[str, Any]:
        """Store a value. Large ones are sent in parts."""
        of = (mode.get("e_tag"), mode.get("version")) if isinstance(mode, Mapping) else None
        given = list((attributes or {}).items())
        e_tag, version = self._ask(self._objects.put, self._below + path, bytes(data), mode == "create", of, given)
        return {"e_tag": e_tag, "version": version}

    def delete(self, _store: Any, paths: str | Sequence[str]) -> None:
        """Delete one value, or several."""
        several = [paths] if isinstance(paths, str) else paths
        self._ask(self._objects.delete, [self._below + path for path in several])

    def copy(self, _store: Any, path: str, target: str) -> None:
        """Make another value with the same bytes."""
        self._ask(self._objects.copy, self._below + path, self._below + target)

    def list(self, _store: Any, prefix: str | None, **_size: int) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Yield the values below a prefix, page by page."""
        pages = self._objects.list((self._below + (prefix or "")).rstrip("/"))
        while (page := self._ask(pages.next)) is not None:
            yield [self._meta(meta) for meta in page]

    def list_with_delimiter(self, _store: Any, prefix: str | None) -> Mapping[str, Any]:
        """Return the values and prefixes directly below a prefix."""
        path = (self._below + (prefix or "")).rstrip("/")
        objects, below = self._ask(self._objects.list_below, path, self._list_timeout)
        skip = len(self._below)
        return {"objects": [self._meta(meta) for meta in objects], "common_prefixes": [each[skip:] for each in below]}

    def _meta(self, meta: tuple[str, int, str | None, str | None, int]) -> Mapping[str, Any]:
        path, size, e_tag, version, modified = meta
        changed = _EPOCH + timedelta(microseconds=modified)
        place = path[len(self._below) :]
        return {"path": place, "size": size, "e_tag": e_tag, "version": version, "last_modified": changed}
