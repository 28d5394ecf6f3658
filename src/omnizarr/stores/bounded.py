"""Documents of stores: values that are read whole and parsed, so their size is checked before they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from omnizarr.errors import Remedy, Setting, StoreLimitError
from omnizarr.settings import config
from omnizarr.stores import verbs
from omnizarr.stores.base import Buffer, Store

REMEDY: Final = Remedy("if you trust it, raise {setting}", setting=Setting("documents.max_bytes"))


def document(store: Store, key: str) -> Buffer | None:
    """Return the document under a key, or None. Raises StoreLimitError if it is too large."""
    try:
        return verbs.get_within(store, key, config.get("documents.max_bytes"))
    except StoreLimitError as error:
        raise error.add(remedy=REMEDY)


def documents(store: Store, keys: Iterable[str]) -> Iterator[tuple[int, Buffer | None]]:
    """Yield (position of the key, document or None) in the order in which they arrive. Raises StoreLimitError."""
    try:
        yield from verbs.get_many_within(store, keys, config.get("documents.max_bytes"))
    except StoreLimitError as error:
        raise error.add(remedy=REMEDY)
