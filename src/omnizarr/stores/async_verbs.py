"""The methods of a store as coroutines, which `omnizarr.stores.asynchronous` returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Protocol, TypeAlias

from omnizarr.stores.base import Buffer, Buffers, Change, Listing, Span, Stamped

AsyncReader: TypeAlias = Callable[[Sequence[Span] | None], Awaitable[Buffers | None]]
"""Returns parts of one value (None: all of it, as one part); None if the key is missing."""


class AsyncVerbs(Protocol):
    """The asynchronous methods of a store. They have the meaning and errors of those of `Store`."""

    async def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value, or the part of it within `span`."""

    async def get_within(self, key: str, most: int) -> Buffer | None:
        """Return the value. Raises StoreLimitError if it has more than `most` bytes."""

    async def get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Return several parts of one version of a value."""

    def pinned(self, key: str) -> AsyncReader | None:
        """Return a function that reads parts of `key`, all of one version over several calls."""

    async def get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Return value and stamp in one request; None if the stamp is still `unless`."""

    async def get_stamped_within(self, key: str, unless: Hashable | None, most: int) -> Stamped | None:
        """Return what `get_stamped` does. Raises StoreLimitError if the value has more than `most` bytes."""

    async def exists(self, key: str) -> bool:
        """Return whether `key` has a value."""

    async def size(self, key: str) -> int | None:
        """Return the size of the value of `key` in bytes."""

    async def list_dir(self, prefix: str) -> Listing:
        """Return the keys and prefixes directly under `prefix`."""

    async def set(self, key: str, value: Buffer) -> None:
        """Set the value of `key`."""

    async def update(self, key: str, change: Change) -> None:
        """Replace the value of `key` by the result of `change`, which is called in a thread."""

    async def delete(self, key: str) -> None:
        """Remove `key` and its value."""
