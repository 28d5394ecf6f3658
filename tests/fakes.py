"""Stores for tests of all rooms: one that cannot list, one that a test watches, and those of the library for tests.

`FaultyStore` counts requests, delays them, and lets the nth of them fail.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import md5

from omnizarr.errors import StoreError
from omnizarr.stores import Features, Store, WrapperStore, verbs
from omnizarr.stores.base import answers
from omnizarr.stores.wrap.faults import FaultyStore
from omnizarr.stores.wrap.observed import Asked, ObservedStore, Spans

__all__ = ["DigestStore", "FaultyStore", "UnlistableStore", "WatchedStore", "failing"]


class UnlistableStore(WrapperStore):
    """A store that finds what it is asked for, and lists nothing, as most web servers.

    `admits`: it says so before it is asked, by its features. `below`: the prefix that it does not list.
    """

    def __init__(self, store: Store, *, admits: bool = True, below: str = "") -> None:
        super().__init__(store)
        self.admits = admits
        self.below = below

    @property
    def features(self) -> Features:
        return replace(self.store.features, listing="none") if self.admits else self.store.features

    def list(self) -> Iterator[str]:
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        self._refuse(prefix)
        return super().list_prefix(prefix)

    def list_dir(self, prefix: str):
        self._refuse(prefix)
        return super().list_dir(prefix)

    @answers(verbs.list_sizes)
    def _list_sizes(self, prefix: str):
        self._refuse(prefix)
        return verbs.list_sizes(self.store, prefix)

    def _refuse(self, prefix: str) -> None:
        if prefix.startswith(self.below):
            raise StoreError("this store cannot list", store=repr(self), key=prefix)


class DigestStore(WrapperStore):
    """A store that lists digests of its values, as S3 does. Those of keys with `hidden` in them are not known."""

    def __init__(self, store: Store, hidden: str = "\0") -> None:
        super().__init__(store)
        self.hidden = hidden

    @answers(verbs.list_digests)
    def _list_digests(self, prefix: str) -> Iterator[tuple[str, bytes | None]]:
        for key in self.store.list_prefix(prefix):
            yield key, None if self.hidden in key else md5(self.store.get(key), usedforsecurity=False).digest()


class WatchedStore(ObservedStore):
    """A store that calls `before(verb, key)` before each request: it may note the request, wait, or raise."""

    def __init__(self, store: Store, before: Callable[[str, str], object]) -> None:
        super().__init__(store)
        self.before = before

    def _begin(self, verb: str, key: str, span: Spans = None) -> Asked:
        self.before(verb, key)
        return super()._begin(verb, key, span)


def failing(store: Store, error: BaseException, *, verb: str = "", key: str = "", once: bool = False) -> WatchedStore:
    """Return a store that raises `error` at requests (or at one) whose verb and key match patterns."""
    left = [error]

    def before(asked: str, found: str) -> None:
        if re.search(verb, asked) and re.search(key, found) and left:
            raise left.pop() if once else error

    return WatchedStore(store, before)
