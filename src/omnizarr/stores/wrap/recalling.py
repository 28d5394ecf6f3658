"""A store that asks for nothing twice, to say why something is missing."""

from __future__ import annotations

from collections.abc import Mapping

from omnizarr.errors import StoreError
from omnizarr.stores.base import Buffer, Listing, Span, Store, as_prefix
from omnizarr.stores.wrap.wrappers import WrapperStore


class RecallingStore(WrapperStore):
    """A view of a store that remembers each answer, and what follows from a listing.

    It is for a short time, in which nothing changes, such as the making of an error.

    Parameters
    ----------
    store : Store
        The store. If it lists every key, `look_along` saves requests for keys that are not listed.
    values : mapping of str to bytes or None, optional
        Values that are known already, and None for keys that are missing.

    Examples
    --------
    >>> from omnizarr.stores import MemoryStore
    >>> store = RecallingStore(MemoryStore({"a/b": b"1"}))
    >>> store.look_along("a/c")
    >>> store.get("a/c/zarr.json"), store.get("a/b")
    (None, b'1')
    """

    def __init__(self, store: Store, values: Mapping[str, Buffer | None] | None = None) -> None:
        super().__init__(store)
        self._lists_all = store.features.listing == "complete"
        self._values: dict[tuple[str, Span | None], Buffer | None] = {
            (key, None): value for key, value in (values or {}).items()
        }
        self._listings: dict[str, Listing] = {}

    def look_along(self, path: str) -> None:
        """List the directories that lead to a path, until one is missing, if the store lists every key."""
        if not self._lists_all:
            return
        prefix = ""
        try:
            for name in path.split("/") if path else []:
                found = self.list_dir(prefix)
                prefix = f"{prefix}{name}/"
                if prefix not in found.prefixes:
                    return
        except StoreError:
            return  # without the right to list

    def _is_missing(self, key: str) -> bool:
        """Return whether a key, or a prefix with a slash at its end, is missing, as far as the listings say it."""
        start = 0
        while (listing := self._listings.get(key[:start])) is not None:
            end = key.find("/", start) + 1
            if not 0 < end < len(key):
                return key not in (listing.prefixes if key.endswith("/") else listing.keys)
            if key[:end] not in listing.prefixes:
                return True
            start = end
        return False

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Read the value, unless it is known."""
        whole = self._values.get((key, None), ...)
        if whole is None:
            return None
        asked = key, span
        if asked not in self._values:
            known = self._lists_all and self._is_missing(key)
            self._values[asked] = None if known else self.store.get(key, span)
        return self._values[asked]

    def exists(self, key: str) -> bool:
        """Ask for the value, unless it is known."""
        for (known, _), value in self._values.items():
            if known == key:
                return value is not None
        if self._lists_all and self._is_missing(key):
            return False
        return self.store.exists(key)

    def list_dir(self, prefix: str) -> Listing:
        """List the directory, unless it is known."""
        prefix = as_prefix(prefix)
        if prefix not in self._listings:
            is_missing = prefix and self._lists_all and self._is_missing(prefix)
            self._listings[prefix] = Listing([], []) if is_missing else self.store.list_dir(prefix)
        return self._listings[prefix]

    def __repr__(self) -> str:
        return repr(self.store)
