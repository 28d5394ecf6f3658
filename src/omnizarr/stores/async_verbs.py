"""The verbs of a store as coroutines: what `omnizarr.stores.asynchronous` returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Protocol, TypeAlias

from omnizarr.stores.base import Buffer, Buffers, Change, Listing, Span, Stamped

AsyncReader: TypeAlias = Callable[[Sequence[Span] | None], Awaitable[Buffers | None]]
"""Returns parts of one value (None: all of it, as one part); None if there is no such key."""


class AsyncVerbs(Protocol):
    """The verbs of a store, to be awaited; they mean, and raise, what those of `Store` do."""

    async def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value, or the part of it within `span`."""

    async def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Return several parts of one version of a value."""

    def pinned(self, key: str) -> AsyncReader | None:
        """Return what reads parts of `key`, all of one version over several calls."""

    async def get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Return value and stamp, in one request; None if the stamp is `unless` still."""

    async def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""

    async def size(self, key: str) -> int | None:
        """Return the size of the value of `key` in bytes."""

    async def list_dir(self, prefix: str) -> Listing:
        """Return what stands directly under `prefix`."""

    async def set(self, key: str, value: Buffer) -> None:
        """Make `value` the value of `key`."""

    async def update(self, key: str, change: Change) -> None:
        """Replace the value of `key` by what `change` makes of it; `change` is called in a thread."""

    async def delete(self, key: str) -> None:
        """Remove `key` and its value."""
