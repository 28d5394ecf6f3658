"""A store that logs requests."""

from __future__ import annotations

import logging

from omnizarr.stores.base import Store
from omnizarr.stores.wrap.observed import Asked, ObservedStore

LOGGER = logging.getLogger("omnizarr.stores")


class LoggingStore(ObservedStore):
    """A store that logs each request (method, key, span, bytes and seconds) and passes it on to another store.

    Parameters
    ----------
    store : Store
        The store to wrap.
    log_level : int or str, default "DEBUG"
        Level of the records.
    log_handler : logging.Handler, optional
        Handler of the records, in addition to those of the logger ``omnizarr.stores``.

    Notes
    -----
    A record has the fields ``verb``, ``key``, ``span`` (the requested part or parts of the value; None: all of
    it), ``bytes`` (None if no value was transferred) and ``seconds``. It is created when a request ends, also
    by an error. Each key of `get_many`, `set_many` and `delete_many` has its own record, and so has each call
    of the function that `pinned` returns. `lock` has no record, but reads and writes within it do.

    Examples
    --------
    >>> import sys
    >>> from omnizarr.stores import MemoryStore
    >>> store = LoggingStore(MemoryStore(), log_handler=logging.StreamHandler(sys.stdout))
    >>> store.set("zarr.json", b"{}")
    set 'zarr.json' 2 bytes ... s
    """

    runs_in_event_loops = True

    def __init__(
        self, store: Store, log_level: int | str = "DEBUG", log_handler: logging.Handler | None = None
    ) -> None:
        super().__init__(store)
        self.log_level = logging.getLevelNamesMapping()[log_level] if isinstance(log_level, str) else log_level
        self.log_handler = log_handler

    def _end(self, asked: Asked, moved: int | None, seconds: float, *, failed: bool) -> None:
        if self.log_handler is None and not LOGGER.isEnabledFor(self.log_level):
            return
        text = f"{asked.verb} {asked.key!r} {'' if moved is None else f'{moved} bytes '}{seconds:.6f} s"
        fields = {"verb": asked.verb, "key": asked.key, "span": asked.span, "bytes": moved, "seconds": seconds}
        record = LOGGER.makeRecord(LOGGER.name, self.log_level, "(store)", 0, text, (), None, extra=fields)
        if self.log_handler is not None:
            self.log_handler.handle(record)
        if LOGGER.isEnabledFor(self.log_level):
            LOGGER.handle(record)
