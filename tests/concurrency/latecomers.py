"""Stores of other libraries whose requests are coroutines that take their time, and that count those under way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import fsspec.asyn
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype

SECONDS = 0.01


class Tally:
    """Counts requests.

    Attributes
    ----------
    begun, at_work : int
        How many have begun, and how many of them have not ended.
    """

    def __init__(self) -> None:
        self.begun = self.at_work = 0

    @asynccontextmanager
    async def later(self) -> AsyncIterator[None]:
        """Count what is done in a while."""
        self.begun += 1
        self.at_work += 1
        try:
            await asyncio.sleep(SECONDS)
            yield
        finally:
            self.at_work -= 1


class LateFiles(fsspec.asyn.AsyncFileSystem):  # type: ignore[misc]
    """A filesystem of fsspec over a dictionary."""

    protocol = "late"
    cachable = False

    def __init__(self, values: dict[str, bytes], tally: Tally, **options: Any) -> None:
        super().__init__(values, tally, **options)
        self.values, self.tally = values, tally

    def _held(self, path: str) -> bytes:
        try:
            return self.values[path.strip("/")]
        except KeyError:
            raise FileNotFoundError(path) from None

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        async with self.tally.later():
            return self._held(path)[start:end]

    async def _pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        async with self.tally.later():
            self.values[path.strip("/")] = bytes(value)

    async def _rm_file(self, path: str, **_: Any) -> None:
        async with self.tally.later():
            self.values.pop(path.strip("/"), None)

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        async with self.tally.later():
            path = path.strip("/")
            if path not in self.values and any(key.startswith(f"{path}/") for key in self.values):
                return {"name": path, "type": "directory", "size": 0}
            return {"name": path, "type": "file", "size": len(self._held(path))}

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> Any:
        async with self.tally.later():
            prefix = f"{path.strip('/')}/".lstrip("/")
            below = {key[len(prefix) :].partition("/")[:2] for key in list(self.values) if key.startswith(prefix)}
            if not below:
                raise FileNotFoundError(path)
            found = [
                {
                    "name": prefix + name,
                    "type": "directory" if inner else "file",
                    "size": 0 if inner else len(self.values[prefix + name]),
                }
                for name, inner in sorted(below)
            ]
            return found if detail else [each["name"] for each in found]


class LateStore(Store):
    """A store of zarr-python over a dictionary."""

    supports_writes = supports_deletes = supports_listing = True

    def __init__(self, values: dict[str, bytes], tally: Tally) -> None:
        super().__init__(read_only=False)
        self.values, self.tally = values, tally

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        async with self.tally.later():
            value = self.values.get(key)
        if value is None:
            return None
        match byte_range:
            case RangeByteRequest(start, end):
                value = value[start:end]
            case OffsetByteRequest(offset):
                value = value[offset:]
            case SuffixByteRequest(suffix):
                value = value[-suffix:]
        return prototype.buffer.from_bytes(value)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return [await self.get(key, prototype, asked) for key, asked in key_ranges]

    async def exists(self, key: str) -> bool:
        async with self.tally.later():
            return key in self.values

    async def set(self, key: str, value: Buffer) -> None:
        async with self.tally.later():
            self.values[key] = value.to_bytes()

    async def delete(self, key: str) -> None:
        async with self.tally.later():
            self.values.pop(key, None)

    async def list(self) -> AsyncIterator[str]:
        for key in [*self.values]:
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in [*self.values]:
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        start = f"{prefix.strip('/')}/".lstrip("/")
        for name in sorted({key[len(start) :].partition("/")[0] for key in self.values if key.startswith(start)}):
            yield name
