"""The base class of stores in zarr-python: keys and buffers, asynchronously."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

from omnizarr.errors import ReadOnlyError
from omnizarr_as_zarr.core.buffer import Buffer, BufferPrototype


@dataclass(frozen=True, slots=True)
class RangeByteRequest:
    """The bytes from `start` on, as far as `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OffsetByteRequest:
    """The bytes from `offset` on."""

    offset: int


@dataclass(frozen=True, slots=True)
class SuffixByteRequest:
    """The last bytes."""

    suffix: int


ByteRequest: TypeAlias = RangeByteRequest | OffsetByteRequest | SuffixByteRequest


class Store(ABC):
    """Keys and their values, with the asynchronous methods that a store of zarr-python defines."""

    _read_only: bool
    _is_open: bool

    def __init__(self, *, read_only: bool = False) -> None:
        self._is_open = False
        self._read_only = read_only

    @classmethod
    async def open(cls, *args: Any, **kwargs: Any) -> Self:
        """Return a store that is open."""
        store = cls(*args, **kwargs)
        await store._open()
        return store

    def with_read_only(self, read_only: bool = False) -> Store:  # noqa: FBT001, FBT002 - zarr-python's signature
        """Return a store on the same data that may not be written, or (False) one that may."""
        raise NotImplementedError(f"with_read_only is not implemented for the {type(self)} store type.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _open(self) -> None:
        if self._is_open:
            raise ValueError("store is already open")
        self._is_open = True

    async def _ensure_open(self) -> None:
        if not self._is_open:
            await self._open()

    async def is_empty(self, prefix: str) -> bool:
        """Return whether no key is below a prefix."""
        prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        async for _ in self.list_prefix(prefix):
            return False
        return True

    async def clear(self) -> None:
        """Remove every key."""
        self._check_writable()
        await self.delete_dir("")

    @property
    def read_only(self) -> bool:
        """Whether it refuses to be written."""
        return self._read_only

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnlyError("store was opened in read-only mode and does not support writing", store=repr(self))

    @abstractmethod
    def __eq__(self, value: object) -> bool:
        """Return whether two stores have the same data."""

    __hash__ = object.__hash__

    @abstractmethod
    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return a value, or a part of it; None if there is no such key."""

    @abstractmethod
    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return parts of values, in the order asked for."""

    @abstractmethod
    async def exists(self, key: str) -> bool:
        """Return whether a key has a value."""

    @property
    def supports_writes(self) -> bool:
        """Whether values can be set."""
        return True

    @property
    def supports_deletes(self) -> bool:
        """Whether keys can be removed."""
        return True

    @property
    def supports_listing(self) -> bool:
        """Whether keys can be listed."""
        return True

    @property
    def supports_partial_writes(self) -> bool:
        """Whether parts of values can be set; no store of zarr-python can."""
        return False

    @property
    def supports_consolidated_metadata(self) -> bool:
        """Whether metadata is consolidated here."""
        return True

    @abstractmethod
    async def set(self, key: str, value: Buffer) -> None:
        """Set a value."""

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Set a value, unless there is one."""
        if not await self.exists(key):
            await self.set(key, value)

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        await asyncio.gather(*(self.set(key, value) for key, value in values))

    @abstractmethod
    async def delete(self, key: str) -> None:
        """Remove a key."""

    @abstractmethod
    def list(self) -> AsyncIterator[str]:
        """Yield every key."""

    @abstractmethod
    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield every key that begins with a prefix."""

    @abstractmethod
    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names directly below a prefix."""

    async def delete_dir(self, prefix: str) -> None:
        """Remove every key below a prefix."""
        self._check_writable()
        prefix = prefix if not prefix or prefix.endswith("/") else f"{prefix}/"
        for key in [key async for key in self.list_prefix(prefix)]:
            await self.delete(key)

    def close(self) -> None:
        """Release its resources."""
        self._is_open = False

    async def _get_many(
        self, requests: Iterable[tuple[str, BufferPrototype, ByteRequest | None]]
    ) -> AsyncIterator[tuple[str, Buffer | None]]:
        for key, prototype, byte_range in requests:
            yield key, await self.get(key, prototype, byte_range)

    async def getsize(self, key: str) -> int:
        """Return the size of a value in bytes. Raises FileNotFoundError."""
        value = await self.get(key)
        if value is None:
            raise FileNotFoundError(key)
        return len(value)

    async def getsize_prefix(self, prefix: str) -> int:
        """Return the size of all values below a prefix, in bytes."""
        return sum([await self.getsize(key) async for key in self.list_prefix(prefix)])


@runtime_checkable
class ByteGetter(Protocol):
    """One value to be read."""

    async def get(self, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return the value."""


@runtime_checkable
class ByteSetter(Protocol):
    """One value to be read and written."""

    async def get(self, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Return the value."""

    async def set(self, value: Buffer) -> None:
        """Set the value."""

    async def delete(self) -> None:
        """Remove the value."""

    async def set_if_not_exists(self, default: Buffer) -> None:
        """Set the value, unless there is one."""
