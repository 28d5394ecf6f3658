"""Classes of stores as in zarr-python, which pass every call to a store of omnizarr."""

# ruff: noqa: SLF001 - what zarr-python calls private is part of what a store is there

from __future__ import annotations

import logging
import os
import shutil
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from types import GenericAlias
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar, cast

from omnizarr import stores
from omnizarr.nodes.location import normalize
from omnizarr.stores import threads, verbs
from omnizarr.stores.tasks import waited
from omnizarr_as_zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from omnizarr_as_zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

T = TypeVar("T")
T_Store = TypeVar("T_Store", bound=Store)

VERBS = ("get", "set", "delete", "exists", "list", "list_prefix", "list_dir", "set_if_not_exists", "delete_dir")
"""Methods that a class may override."""


def span_of(byte_range: ByteRequest | None) -> tuple[int, int | None] | None:
    """Return the part of a value that is wanted, as omnizarr says it."""
    match byte_range:
        case None:
            return None
        case RangeByteRequest(start, end):
            return start, end
        case OffsetByteRequest(offset):
            return offset, None
        case SuffixByteRequest(suffix):
            return (-suffix, None) if suffix else (0, 0)
    raise ValueError(f"Unexpected byte_range, got {byte_range}.")


class OwnStore(Store):
    """A store of zarr-python around one of omnizarr.

    Parameters
    ----------
    inner : omnizarr.stores.Store
    """

    _opened: stores.Store | None

    def __init__(self, inner: stores.Store) -> None:
        super().__init__(read_only=inner.read_only)
        self._opened = inner

    @property
    def _inner(self) -> stores.Store:
        """The store of omnizarr."""
        if self._opened is None:
            with threads.lock((id(self), "opening")):
                self._opened = self._opened or self._made()
        return self._opened

    def _made(self) -> stores.Store:
        """Return the store of omnizarr, when it is first used."""
        raise NotImplementedError(f"{type(self).__name__} is open from the beginning")

    @property
    def read_only(self) -> bool:
        """Whether it refuses to be written."""
        return self._read_only or (self._opened is not None and self._opened.read_only)

    @classmethod
    def _upon(cls, inner: stores.Store) -> Self:
        """Return a store of this class around another store, without asking the class's own way of making one."""
        self = cls.__new__(cls)
        OwnStore.__init__(self, inner)
        return self

    def with_read_only(self, read_only: bool = False) -> Store:  # noqa: FBT001, FBT002
        """Return a store on the same data that may not be written, or (False) one that may."""
        clone = type(self).__new__(type(self))
        clone.__dict__.update(self.__dict__)
        clone._opened = self._inner.with_read_only(read_only)
        clone._read_only = read_only
        return clone

    async def _ask(self, function: Callable[..., T], *args: Any) -> T:
        return await waited(function, *args) if self._inner.features.concurrency > 1 else function(*args)

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return a value, or a part of it; None if there is no such key."""
        value = await self._ask(self._inner.get, key, span_of(byte_range))
        return None if value is None else (prototype or default_buffer_prototype()).buffer.from_bytes(value)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Return parts of values, in the order asked for."""
        return [await self.get(key, prototype, byte_range) for key, byte_range in key_ranges]

    async def exists(self, key: str) -> bool:
        """Return whether a key has a value."""
        return await self._ask(self._inner.exists, key)

    async def set(self, key: str, value: Buffer) -> None:
        """Set a value."""
        self._check_writable()
        if not isinstance(value, Buffer):
            raise TypeError(f"{type(self).__name__}.set(): `value` must be a Buffer instance, got {type(value)}.")
        await self._ask(self._inner.set, key, value.as_buffer_like())

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Set a value, unless there is one."""
        self._check_writable()
        await self._ask(verbs.set_if_absent, self._inner, key, value.as_buffer_like())

    async def delete(self, key: str) -> None:
        """Remove a key; in a `LocalStore`, also every key below a directory."""
        self._check_writable()
        if self._is_directory(key):
            await self.delete_dir(key)
        elif key:
            await self._ask(self._inner.delete, key)

    def _is_directory(self, key: str) -> bool:
        return False

    async def delete_dir(self, prefix: str) -> None:
        """Remove every key below a prefix."""
        self._check_writable()
        await self._ask(verbs.delete_prefix, self._inner, prefix)

    async def clear(self) -> None:
        """Remove every key."""
        await self.delete_dir("")

    async def list(self) -> AsyncIterator[str]:
        """Yield every key."""
        async for key in self.list_prefix(""):
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Yield every key that begins with a prefix; none begins with a slash."""
        if not prefix.startswith("/"):
            for key in await self._ask(lambda: list(self._inner.list_prefix(prefix))):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Yield the names directly below a prefix."""
        prefix = prefix.rstrip("/")
        found = await self._ask(self._inner.list_dir, prefix)
        skip = len(prefix) + 1 if prefix else 0
        for name in sorted({entry[skip:].rstrip("/") for entries in found for entry in entries}):
            yield name

    async def getsize(self, key: str) -> int:
        """Return the size of a value in bytes. Raises FileNotFoundError."""
        size = await self._ask(self._inner.size, key)
        if size is None:
            raise FileNotFoundError(key)
        return size

    def close(self) -> None:
        """Release its resources."""
        super().close()
        if self._opened is not None:
            self._opened.close()

    def __eq__(self, value: object) -> bool:
        return isinstance(value, OwnStore) and type(value) is type(self) and self._inner == value._inner

    __hash__ = Store.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __str__(self) -> str:
        return str(self._inner)


class MemoryStore(OwnStore):
    """Values in the memory of this process.

    Parameters
    ----------
    store_dict : mutable mapping, optional
        Where the values are kept, as bytes.
    read_only : bool
    """

    def __init__(self, store_dict: Any = None, *, read_only: bool = False) -> None:
        super().__init__(stores.MemoryStore(store_dict, read_only=read_only))

    @property
    def _store_dict(self) -> Any:
        return cast("stores.MemoryStore", self._inner).store_dict

    def __str__(self) -> str:
        return f"memory://{id(self._store_dict)}"


class LocalStore(OwnStore):
    """A directory.

    Parameters
    ----------
    root : str or Path
    read_only : bool
    """

    def __init__(self, root: Path | str, *, read_only: bool = False) -> None:
        if not isinstance(root, str | Path):
            raise TypeError(f"'root' must be a string or Path instance. Got an instance of {type(root)} instead.")
        super().__init__(stores.LocalStore(root, read_only=read_only))

    @property
    def root(self) -> Path:
        """The directory."""
        return Path(cast("stores.LocalStore", self._inner).root)

    def _is_directory(self, key: str) -> bool:
        return (self.root / key).is_dir()

    async def move(self, dest_root: Path | str) -> None:
        """Move the directory. Raises FileExistsError if there is something at `dest_root`."""
        await self._ask(_move, self.root, Path(dest_root))
        self._opened = stores.LocalStore(dest_root, read_only=self.read_only)

    def __str__(self) -> str:
        return f"file://{self.root.as_posix()}"


def _move(source: Path, target: Path) -> None:
    if target.exists():
        raise FileExistsError(f"{target} exists already: {source} is not moved there")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(source, target)


class ZipStore(OwnStore):
    """A zip archive, which is opened when it is first used.

    Parameters
    ----------
    path : str or Path
    mode : {"r", "w", "a", "x"}
    read_only : bool, optional
        By default, if `mode` is "r".
    compression : int
        How new entries are compressed, as in `zipfile`.
    allowZip64 : bool
        Let the archive grow beyond 4 GiB.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        mode: Literal["r", "w", "a", "x"] = "r",
        read_only: bool | None = None,
        compression: int = 0,
        allowZip64: bool = True,  # noqa: N803 - zarr-python's name
    ) -> None:
        Store.__init__(self, read_only=mode == "r" if read_only is None else read_only)
        self._opened = None
        self.path = Path(path)
        self._zmode = mode
        self.compression = compression
        self.allowZip64 = allowZip64

    @classmethod
    def _upon(cls, inner: stores.Store) -> Self:
        self = super()._upon(inner)
        self.path = Path(str(getattr(inner, "path", "")))
        self._zmode = "r" if inner.read_only else "a"
        self.compression, self.allowZip64 = 0, True
        return self

    def _made(self) -> stores.Store:
        inner = stores.ZipStore(self.path, mode=self._zmode, compression=self.compression, allowZip64=self.allowZip64)
        self._is_open = True
        return inner.with_read_only() if self._read_only else inner

    def _sync_open(self) -> None:
        if self._is_open:
            raise ValueError("store is already open")
        self._opened = self._made()

    async def _open(self) -> None:
        self._sync_open()

    async def move(self, path: Path | str) -> None:
        """Close the archive, move it, and open it there. Raises FileExistsError if there is something at `path`."""
        _ = self._inner  # which makes an archive that is new
        self.close()
        self._zmode = "r" if self._zmode == "r" else "a"
        try:
            await self._ask(_move, self.path, Path(path))
            self.path = Path(path)
        finally:
            await self._open()

    def __eq__(self, value: object) -> bool:
        return type(value) is type(self) and self.path == value.path

    __hash__ = Store.__hash__

    def __str__(self) -> str:
        return f"zip://{self.path}"


class FsspecStore(OwnStore):
    """A filesystem of fsspec.

    Parameters
    ----------
    fs : fsspec filesystem
    read_only : bool
    path : str
        Where in the filesystem it begins.
    """

    def __init__(self, fs: Any, read_only: bool = False, path: str = "/", **ignored: Any) -> None:  # noqa: FBT001, FBT002
        super().__init__(stores.FsspecStore(fs, path, read_only=read_only))

    @classmethod
    def from_url(cls, url: Any, storage_options: Mapping[str, Any] | None = None, *, read_only: bool = False) -> Self:
        """Return the store of a URL, or of a path."""
        inner = stores.FsspecStore.from_url(os.fspath(url), storage_options=storage_options, read_only=read_only)
        return cls._upon(inner)

    @classmethod
    def from_upath(cls, upath: Any, *, read_only: bool = False) -> Self:
        """Return the store of a UPath."""
        return cls._upon(stores.FsspecStore.from_upath(upath, read_only=read_only))

    @classmethod
    def from_mapper(cls, fs_map: Any, *, read_only: bool = False) -> Self:
        """Return the store of an FSMap."""
        return cls._upon(stores.FsspecStore.from_mapper(fs_map, read_only=read_only))

    @property
    def fs(self) -> Any:
        """The filesystem."""
        return cast("stores.FsspecStore", self._inner).fs

    @property
    def path(self) -> str:
        """Where in the filesystem it begins."""
        return cast("stores.FsspecStore", self._inner).path


class ObjectStore(OwnStore):
    """A store of obstore.

    Parameters
    ----------
    store : obstore store
    read_only : bool
    """

    @classmethod
    def __class_getitem__(cls, item: object) -> GenericAlias:
        return GenericAlias(cls, item)

    def __init__(self, store: Any, *, read_only: bool = False) -> None:
        super().__init__(stores.resolve(store, "r" if read_only else "a")[0])
        self.store = store


class WrapperStore(Store, Generic[T_Store]):
    """A store that hands every verb on to another one.

    Parameters
    ----------
    store : Store
    """

    _store: T_Store

    def __init__(self, store: T_Store) -> None:
        self._store = store

    @property
    def store(self) -> T_Store:
        """The store below."""
        return self._store

    @classmethod
    async def open(cls, store_cls: type[T_Store], *args: Any, **kwargs: Any) -> Self:
        """Return a wrapper around a new store of a class."""
        return cls(await store_cls.open(*args, **kwargs))

    def _with_store(self, store: T_Store) -> Self:
        return type(self)(store)

    def with_read_only(self, read_only: bool = False) -> Store:  # noqa: FBT001, FBT002
        """Return a wrapper around a store that may not be written, or (False) one that may."""
        return self._with_store(cast("T_Store", self._store.with_read_only(read_only)))

    @property
    def read_only(self) -> bool:
        """That of the store below."""
        return self._store.read_only

    @property
    def _is_open(self) -> bool:  # type: ignore[override]
        return self._store._is_open

    async def _open(self) -> None:
        await self._store._open()

    async def _ensure_open(self) -> None:
        await self._store._ensure_open()

    async def is_empty(self, prefix: str) -> bool:
        """Hand on."""
        return await self._store.is_empty(prefix)

    async def clear(self) -> None:
        """Hand on."""
        await self._store.clear()

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Hand on."""
        return await self._store.get(key, prototype or default_buffer_prototype(), byte_range)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Hand on."""
        return await self._store.get_partial_values(prototype, key_ranges)

    async def exists(self, key: str) -> bool:
        """Hand on."""
        return await self._store.exists(key)

    async def set(self, key: str, value: Buffer) -> None:
        """Hand on."""
        await self._store.set(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Hand on."""
        await self._store.set_if_not_exists(key, value)

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        await self._store._set_many(values)

    @property
    def supports_writes(self) -> bool:
        """That of the store below."""
        return self._store.supports_writes

    @property
    def supports_deletes(self) -> bool:
        """That of the store below."""
        return self._store.supports_deletes

    @property
    def supports_listing(self) -> bool:
        """That of the store below."""
        return self._store.supports_listing

    @property
    def supports_consolidated_metadata(self) -> bool:
        """That of the store below."""
        return self._store.supports_consolidated_metadata

    async def delete(self, key: str) -> None:
        """Hand on."""
        await self._store.delete(key)

    def list(self) -> AsyncIterator[str]:
        """Hand on."""
        return self._store.list()

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Hand on."""
        return self._store.list_prefix(prefix)

    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Hand on."""
        return self._store.list_dir(prefix)

    async def delete_dir(self, prefix: str) -> None:
        """Hand on."""
        await self._store.delete_dir(prefix)

    async def getsize(self, key: str) -> int:
        """Hand on."""
        return await self._store.getsize(key)

    def close(self) -> None:
        """Hand on."""
        self._store.close()

    def __eq__(self, value: object) -> bool:
        return type(self) is type(value) and self._store == value._store

    __hash__ = Store.__hash__

    def __str__(self) -> str:
        return f"wrapping-{self._store}"

    def __repr__(self) -> str:
        return f"WrapperStore({type(self._store).__name__}, '{self._store}')"


class LoggingStore(WrapperStore[T_Store]):
    """A store that counts and logs requests.

    Parameters
    ----------
    store : Store
    log_level : str
    log_handler : logging.Handler, optional
    """

    counter: dict[str, int]

    def __init__(self, store: T_Store, log_level: str = "DEBUG", log_handler: Any = None) -> None:
        super().__init__(store)
        self.counter = defaultdict(int)
        self.log_level = log_level
        self.log_handler = log_handler
        self.logger = logging.getLogger(f"LoggingStore({store})")
        self.logger.setLevel(log_level)
        if log_handler is not None:
            self.logger.addHandler(log_handler)

    def _with_store(self, store: T_Store) -> Self:
        return type(self)(store, log_level=self.log_level, log_handler=self.log_handler)

    def _asked(self, verb: str, *keys: object) -> None:
        self.counter[verb] += 1
        self.logger.log(logging.getLevelName(self.log_level), "Calling %s%s", verb, keys)

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Count, and pass the request on."""
        self._asked("get", key)
        return await super().get(key, prototype, byte_range)

    async def exists(self, key: str) -> bool:
        """Count, and pass the request on."""
        self._asked("exists", key)
        return await super().exists(key)

    async def set(self, key: str, value: Buffer) -> None:
        """Count, and pass the request on."""
        self._asked("set", key)
        await super().set(key, value)

    async def delete(self, key: str) -> None:
        """Count, and pass the request on."""
        self._asked("delete", key)
        await super().delete(key)

    def list(self) -> AsyncIterator[str]:
        """Count, and pass the request on."""
        self._asked("list")
        return super().list()

    def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Count, and pass the request on."""
        self._asked("list_prefix", prefix)
        return super().list_prefix(prefix)

    def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Count, and pass the request on."""
        self._asked("list_dir", prefix)
        return super().list_dir(prefix)

    def __str__(self) -> str:
        return f"logging-{self._store}"

    def __repr__(self) -> str:
        return f"LoggingStore({type(self._store).__name__}, '{self._store}')"


class StorePath:
    """A place in a store.

    Parameters
    ----------
    store : Store
    path : str
    """

    store: Store
    path: str

    def __init__(self, store: Store, path: str = "") -> None:
        self.store = store
        self.path = normalize(path)

    @property
    def read_only(self) -> bool:
        """Whether the store refuses to be written."""
        return self.store.read_only

    @classmethod
    async def open(cls, store: Store, path: str, mode: str | None = None) -> StorePath:
        """Return a place, prepared for a mode: "w" empties it, "w-" refuses existing nodes."""
        await store._ensure_open()
        self = cls(store, path)
        if mode == "r" and not store.read_only:
            return cls(store.with_read_only(read_only=True), path)
        if mode is not None and mode != "r" and store.read_only:
            raise ValueError(f"Store is read-only but mode is {mode!r}. Create a writable store or use 'r' mode.")
        if mode == "w":
            await self.delete_dir()
        elif mode == "w-" and not await self.is_empty():
            raise FileExistsError(f"Cannot create '{path}' with mode 'w-' because it already contains data.")
        return self

    async def get(
        self, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return the value."""
        return await self.store.get(self.path, prototype or default_buffer_prototype(), byte_range)

    async def set(self, value: Buffer) -> None:
        """Set the value."""
        await self.store.set(self.path, value)

    async def delete(self) -> None:
        """Remove the value."""
        await self.store.delete(self.path)

    async def set_if_not_exists(self, default: Buffer) -> None:
        """Set the value, unless there is one."""
        await self.store.set_if_not_exists(self.path, default)

    async def delete_dir(self) -> None:
        """Remove every key below."""
        await self.store.delete_dir(self.path)

    async def exists(self) -> bool:
        """Return whether there is a value."""
        return await self.store.exists(self.path)

    async def is_empty(self) -> bool:
        """Return whether no key is below."""
        return await self.store.is_empty(self.path)

    def __truediv__(self, other: str) -> StorePath:
        return type(self)(self.store, f"{self.path}/{other}")

    def __str__(self) -> str:
        return f"{self.store}/{self.path}" if self.path else str(self.store)

    def __repr__(self) -> str:
        return f"StorePath({type(self.store).__name__}, {str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorePath) and self.store == other.store and self.path == other.path

    __hash__ = None  # type: ignore[assignment]


StoreLike: TypeAlias = Store | StorePath | os.PathLike[str] | str | Mapping[str, Any] | None
