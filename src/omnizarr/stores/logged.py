"""A store that says what it is asked for."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from omnizarr.stores.base import Buffer, Buffers, Listing, Request, Span, Store
from omnizarr.stores.wrappers import WrapperStore

T = TypeVar("T")

LOGGER = logging.getLogger("omnizarr.stores")


class LoggingStore(WrapperStore):
    """A store that logs each request: verb, key, bytes and seconds; then it does what the store below does.

    Parameters
    ----------
    store : Store
        Where the values really are.
    log_level : int or str, default "DEBUG"
        Level of the records.
    log_handler : logging.Handler, optional
        Gets the records, whatever the logger ``omnizarr.stores`` does with them.

    Notes
    -----
    A record has the fields ``verb``, ``key``, ``bytes`` (None if none are moved) and ``seconds``. Lists are logged
    when they begin. Each key of `get_many`, `set_many` and `delete_many` has a record of its own.

    Examples
    --------
    >>> import sys
    >>> from omnizarr.stores import MemoryStore
    >>> store = LoggingStore(MemoryStore(), log_handler=logging.StreamHandler(sys.stdout))
    >>> store.set("zarr.json", b"{}")
    set 'zarr.json' 2 bytes ... s
    """

    def __init__(
        self, store: Store, log_level: int | str = "DEBUG", log_handler: logging.Handler | None = None
    ) -> None:
        super().__init__(store)
        self.log_level = logging.getLevelNamesMapping()[log_level] if isinstance(log_level, str) else log_level
        self.log_handler = log_handler

    def _log(self, verb: str, key: str, run: Callable[[], T], measure: Callable[[T], int | None] = lambda _: None) -> T:
        """Run a request and log it, also one that fails."""
        moved: int | None = None
        start = time.perf_counter()
        try:
            result = run()
            moved = measure(result)
        finally:
            self._record(verb, key, moved, time.perf_counter() - start)
        return result

    def _record(self, verb: str, key: str, moved: int | None, seconds: float) -> None:
        if self.log_handler is None and not LOGGER.isEnabledFor(self.log_level):
            return
        text = f"{verb} {key!r} {'' if moved is None else f'{moved} bytes '}{seconds:.6f} s"
        fields = {"verb": verb, "key": key, "bytes": moved, "seconds": seconds}
        record = LOGGER.makeRecord(LOGGER.name, self.log_level, "(store)", 0, text, (), None, extra=fields)
        if self.log_handler is not None:
            self.log_handler.handle(record)
        if LOGGER.isEnabledFor(self.log_level):
            LOGGER.handle(record)

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Log and hand on."""
        return self._log("get", key, lambda: super(LoggingStore, self).get(key, span), _length)

    def get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Hand on, and log each value when it arrives."""
        asked = [*requests]
        start = time.perf_counter()
        for position, value in super().get_many(asked):
            self._record("get", asked[position][0], _length(value), time.perf_counter() - start)
            yield position, value

    def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Log and hand on."""
        return self._log(
            "get_spans",
            key,
            lambda: super(LoggingStore, self).get_spans(key, spans),
            lambda parts: sum(map(len, parts or ())),
        )

    def read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Log and hand on."""
        return self._log(
            "read_into",
            key,
            lambda: super(LoggingStore, self).read_into(key, out, start),
            lambda size: min(size or 0, out.nbytes),
        )

    def exists(self, key: str) -> bool:
        """Log and hand on."""
        return self._log("exists", key, lambda: super(LoggingStore, self).exists(key))

    def size(self, key: str) -> int | None:
        """Log and hand on."""
        return self._log("size", key, lambda: super(LoggingStore, self).size(key))

    def stamp(self, key: str) -> Hashable | None:
        """Log and hand on."""
        return self._log("stamp", key, lambda: super(LoggingStore, self).stamp(key))

    def set(self, key: str, value: Buffer) -> None:
        """Log and hand on."""
        self._log("set", key, lambda: super(LoggingStore, self).set(key, value), lambda _: len(value))

    def set_many(self, items: Iterable[tuple[str, Buffer]]) -> None:
        """Set each with `set`."""
        Store.set_many(self, items)

    def set_if_absent(self, key: str, value: Buffer) -> bool:
        """Log and hand on."""
        return self._log(
            "set_if_absent",
            key,
            lambda: super(LoggingStore, self).set_if_absent(key, value),
            lambda was_set: len(value) if was_set else 0,
        )

    def set_partial(self, key: str, start: int, value: Buffer) -> None:
        """Log and hand on."""
        self._log(
            "set_partial", key, lambda: super(LoggingStore, self).set_partial(key, start, value), lambda _: len(value)
        )

    def delete(self, key: str) -> None:
        """Log and hand on."""
        self._log("delete", key, lambda: super(LoggingStore, self).delete(key))

    def delete_many(self, keys: Iterable[str]) -> None:
        """Delete each with `delete`."""
        Store.delete_many(self, keys)

    def delete_prefix(self, prefix: str) -> None:
        """Log and hand on."""
        self._log("delete_prefix", prefix, lambda: super(LoggingStore, self).delete_prefix(prefix))

    def list(self) -> Iterator[str]:
        """Log and hand on."""
        return self._log("list", "", super().list)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Log and hand on."""
        return self._log("list_prefix", prefix, lambda: super(LoggingStore, self).list_prefix(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """Log and hand on."""
        return self._log("list_dir", prefix, lambda: super(LoggingStore, self).list_dir(prefix))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoggingStore) and self.store == other.store

    def __hash__(self) -> int:
        return hash((LoggingStore, self.store))


def _length(value: Buffer | None) -> int | None:
    return None if value is None else len(value)
