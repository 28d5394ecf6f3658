"""Calling filesystems of fsspec: in this thread, on the event loop of fsspec, or with its web session."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from omnizarr.errors import StoreError, StoreLimitError
from omnizarr.stores import threads
from omnizarr.stores.base import RESERVED, TOO_LARGE, Span, cut
from omnizarr.stores.redaction import HARMLESS, redact
from omnizarr.stores.remote import loops
from omnizarr.stores.remote.object_answers import max_value_bytes_of_machine
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import asyncio

Info: TypeAlias = dict[str, Any]
"""What a filesystem reports about a file."""

local: Any = Lazy("fsspec.implementations.local")
memory: Any = Lazy("fsspec.implementations.memory")

_MANY: Final = 64  # requests at once, if each costs a task on an event loop
_PROBE: Final = 1 << 24  # bytes; if a bounded value has more, its size is requested
_LARGE: Final = 1 << 26  # bytes; before a larger part of a value is read, the size of the value is requested

has_magic = re.compile(r"[*?[]").search


class Files:
    """A filesystem with blocking methods."""

    keeps_slash = False
    """Whether the path of a directory ends with a slash in `ls`."""

    def __init__(self, fs: Any, *, many: bool) -> None:
        self.fs = fs
        self._is_local = isinstance(fs, local.LocalFileSystem)
        self._is_at_hand = self._is_local or isinstance(fs, memory.MemoryFileSystem)
        # Others may use one connection, or keep files open, and document little about threads.
        self._bears_threads = many or self._is_at_hand
        # The fallback of fsspec silently omits directories that it cannot list.
        self.finds = type(fs).find is not class_of("fsspec.spec", "AbstractFileSystem").find

    @property
    def concurrency(self) -> int:
        """Number of concurrent requests."""
        return 1

    def call(self, verb: str, *arguments: Any, fresh: str | None = None, **options: Any) -> Any:
        """Call a method of the filesystem. `fresh`: a path about which it must forget everything it cached."""
        with nullcontext() if self._bears_threads else threads.lock(("fsspec", id(self.fs))):
            if fresh is not None:
                self.fs.invalidate_cache(fresh)
            return getattr(self.fs, verb)(*arguments, **options)

    def get(self, path: str, span: Span | None) -> bytes:
        """Return a file, or a part of it."""
        if span is None or span == (0, None):
            return self._bytes(path)
        start, stop = span
        if start < 0 and not self._is_at_hand:  # the files of some do not check their end
            start = max(0, int(self.call("info", path, fresh=path)["size"]) + start)
        # Some allocate as much as is requested, or read everything if less than nothing is requested.
        if start > _LARGE or (stop is not None and not 0 < stop - start <= _LARGE):
            size = int(self.call("info", path, fresh=path)["size"])
            start, stop = min(start, size), size if stop is None else min(stop, size)
            if stop <= start:
                return self._bytes(path, 0, 1)[:0]
        return self._bytes(path, start, stop)

    def get_within(self, path: str, most: int) -> bytes:
        """Return a file. Raises StoreLimitError if it has more than `most` bytes."""
        first = min(most, _PROBE) + 1
        value = self._bytes(path, 0, first)
        if len(value) < first:
            return value
        _check_size(int(self.call("info", path, fresh=path)["size"]), most)
        return self._bytes(path)

    def _bytes(self, path: str, start: int | None = None, stop: int | None = None) -> bytes:
        return bytes(self.call("cat_file", path, start=start, end=stop))

    def put(self, path: str, data: bytes) -> None:
        """Write a file and the directories that it needs."""
        if not self._is_local:
            self._in_folder(path, lambda: self.call("pipe_file", path, data))
            return
        parent, _, _ = path.rpartition("/")
        temporary = f"{parent}/{RESERVED}{os.urandom(8).hex()}.tmp"

        def write() -> None:
            try:
                self.call("pipe_file", temporary, data)
                os.replace(self.fs._strip_protocol(temporary), self.fs._strip_protocol(path))  # noqa: SLF001
            except BaseException:
                with suppress(OSError):
                    self.call("rm_file", temporary)
                raise

        self._in_folder(path, write)

    def _in_folder(self, path: str, write: Callable[[], None]) -> None:
        """Write a file. If that fails, create the directory first; other writers may delete it at any time."""
        for _attempt in range(100):
            try:
                write()
            except FileNotFoundError as error:
                try:
                    self.call("makedirs", path.rpartition("/")[0], exist_ok=True)
                except OSError:
                    raise error
            else:
                return
        write()

    def create(self, path: str, data: bytes) -> None:
        """Write a file that does not exist. Raises FileExistsError."""
        self.call("pipe_file", path, data, mode="create")

    def remove(self, paths: list[str]) -> None:
        """Delete the files that exist."""
        for path in paths:
            with suppress(FileNotFoundError):
                self.call("rm_file", path)


class AsyncFiles(Files):
    """A filesystem whose methods are coroutines on the event loop that fsspec runs in a thread of its own."""

    def __init__(self, fs: Any, *, many: bool) -> None:
        super().__init__(fs, many=many)
        self.loop: asyncio.AbstractEventLoop = fs.loop
        self.finds = type(fs)._find is not class_of("fsspec.asyn", "AsyncFileSystem")._find  # noqa: SLF001
        # s3fs and others request the size first, if they may use several connections for one value.
        parameters = inspect.signature(fs._cat_file).parameters  # noqa: SLF001
        self._at_once = {"max_concurrency": 1} if "max_concurrency" in parameters else {}

    @property
    def concurrency(self) -> int:
        """Number of concurrent requests."""
        return _MANY

    def call(self, verb: str, *arguments: Any, fresh: str | None = None, **options: Any) -> Any:
        """Await a method of the filesystem."""
        if fresh is not None:
            self.fs.invalidate_cache(fresh)
        return loops.run(getattr(self.fs, f"_{verb}")(*arguments, **options), self.loop)

    def get(self, path: str, span: Span | None) -> bytes:
        """Return a file, or a part of it."""
        return loops.run(self.read(path, span), self.loop)

    def get_within(self, path: str, most: int) -> bytes:
        """Return a file. Raises StoreLimitError if it has more than `most` bytes."""
        return loops.run(self.read_within(path, most), self.loop)

    async def read_within(self, path: str, most: int) -> bytes:
        """Read a file. Raises StoreLimitError if it has more than `most` bytes."""
        first = min(most, _PROBE) + 1
        value = bytes(await self.fs._cat_file(path, start=0, end=first, **self._at_once))  # noqa: SLF001
        if len(value) < first:
            return value
        _check_size(int((await self.fs._info(path)).get("size") or 0), most)  # noqa: SLF001
        value = bytes(await self.fs._cat_file(path, **self._at_once))  # noqa: SLF001
        _check_size(len(value), most)
        return value

    async def read(self, path: str, span: Span | None) -> bytes:
        """Read a file, or a part of it."""
        if span is None or span == (0, None):
            return bytes(await self.fs._cat_file(path, **self._at_once))  # noqa: SLF001
        start, stop = span
        if stop is not None and stop <= start:  # no request can ask for zero bytes
            await self.fs._cat_file(path, start=0, end=1, **self._at_once)  # noqa: SLF001
            return b""
        part = bytes(await self.fs._cat_file(path, start=start, end=stop, **self._at_once))  # noqa: SLF001
        length = -start if stop is None and start < 0 else None if stop is None else stop - start
        if length is not None and len(part) > length:
            raise StoreError("more bytes than were asked for", found=len(part), expected=length)
        return part

    def put(self, path: str, data: bytes) -> None:
        """Write a file."""
        self.call("pipe_file", path, data)

    def remove(self, paths: list[str]) -> None:
        """Delete the files that exist."""
        # `rm` takes many paths for one request, and takes names with * or [ for patterns.
        patterns = [path for path in paths if has_magic(path)]
        plain = [path for path in paths if not has_magic(path)]
        if plain:
            with suppress(FileNotFoundError):
                self.call("rm", plain)
        for path in patterns:
            with suppress(FileNotFoundError):
                self.call("rm_file", path)


class WebFiles(AsyncFiles):
    """Files of a web server.

    They are requested directly. fsspec accepts any answer as the requested part, even the whole file, and takes
    every error for a missing file.
    """

    keeps_slash = True

    def __init__(self, fs: Any, *, many: bool) -> None:
        super().__init__(fs, many=many)
        self.finds = False

    async def read(self, path: str, span: Span | None) -> bytes:
        """Read a file, or a part of it."""
        start, stop = span or (0, None)
        headers = {}
        if span is not None and span != (0, None):
            limit = "" if stop is None else max(stop, start + 1) - 1
            headers["Range"] = f"bytes={start}-{limit}" if start >= 0 else f"bytes={start}"
        async with await self._ask("get", path, headers) as response:
            _check_response(response)
            if response.status == 416:
                return b""
            if response.status != 206:
                # All of the value, whatever was asked for; what comes after the part is not read.
                return bytes(cut(await _read(response, stop if start >= 0 else None), (start, stop)))
            wanted = -start if start < 0 else None if stop is None else max(stop, start + 1) - start
            body = await _read(response, None if wanted is None else wanted + 1)
        if start >= 0 and not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            raise StoreError("another part of the value than was asked for")
        if stop is not None and stop <= start:
            return b""
        length = -start if start < 0 else len(body) if stop is None else stop - start
        if len(body) > length:
            raise StoreError("more bytes than were asked for", found=len(body), expected=length)
        return body

    async def read_within(self, path: str, most: int) -> bytes:
        """Request a file, and receive no more than its head if that announces too much."""
        async with await self._ask("get", path, {}) as response:
            _check_response(response)
            if response.status == 416:
                return b""
            if (response.content_length or 0) > most:
                response.close()
                _check_size(response.content_length, most)
            return await _read(response, None, most)

    def call(self, verb: str, *arguments: Any, fresh: str | None = None, **options: Any) -> Any:
        """Await a method of the filesystem, or request the size of a file."""
        if verb == "info":
            return loops.run(self._info(*arguments), self.loop)
        loops.run(self._session(), self.loop)
        return super().call(verb, *arguments, fresh=fresh, **options)

    async def _info(self, path: str) -> Info:
        async with await self._ask("head", path, {}) as response:
            if response.status in (405, 501):  # some servers support only GET
                return {"type": "file", "size": len(await self.read(path, None))}
            _check_response(response)
            length = response.headers.get("Content-Length")
            return {"type": "file", "size": int(length) if length else None}

    async def _session(self) -> Any:
        """Return the session, which tells nothing to other servers."""
        session = await self.fs.set_session()
        traces = getattr(session, "trace_configs", None)
        if traces is not None and not any(getattr(trace, "is_discreet", False) for trace in traces):
            traces.append(_discreet())
        return session

    async def _ask(self, method: str, path: str, headers: dict[str, str]) -> Any:
        session = await self._session()
        options = {"allow_redirects": True, **self.fs.kwargs}
        # The stored bytes, not a compressed form of them.
        options["headers"] = {**options.get("headers", {}), "Accept-Encoding": "identity", **headers}
        return getattr(session, method)(self.fs.encode_url(path), **options)


async def _read(response: Any, most: int | None, most_of_all: int | None = None) -> bytes:
    """Return the body, or its first bytes. Raises StoreLimitError if it has more than `most_of_all`, or any value."""
    most_of_all = max_value_bytes_of_machine() if most_of_all is None else most_of_all
    pieces: list[bytes] = []
    size = 0
    while most is None or size < most:
        piece = await response.content.readany()
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
        if size > most_of_all:
            response.close()
            raise StoreLimitError(TOO_LARGE, found=f"more than {most_of_all} bytes")
    if most is not None and size >= most:
        response.close()
    return b"".join(pieces)[:most]


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise StoreLimitError(TOO_LARGE, found=f"{size} bytes", expected=f"at most {most} bytes")


def _discreet() -> Any:
    """Return what aiohttp calls at each redirect: it withholds headers from other servers, and refuses plain http."""

    async def redirected(_: Any, __: Any, parameters: Any) -> None:
        response = parameters.response
        place = response.headers.get("Location") or response.headers.get("URI") or ""
        old = response.url
        new = old.join(type(old)(place))
        if (old.scheme, new.scheme) == ("https", "http"):
            response.close()
            raise StoreError("a redirect from https to http is refused", found=redact(str(new)))
        if old.origin() != new.origin():
            for name in list(parameters.headers):
                if name.lower() not in HARMLESS:
                    parameters.headers.pop(name, None)

    made = class_of("aiohttp", "TraceConfig")()
    made.on_request_redirect.append(redirected)
    made.is_discreet = True
    made.freeze()
    return made


def _check_response(response: Any) -> None:
    if response.status in (404, 410):
        raise FileNotFoundError
    if response.status != 416:
        response.raise_for_status()
    if response.url.path.endswith("/"):  # the server's redirect for a directory
        raise IsADirectoryError


def files_of(fs: Any, *, many: bool) -> Files:
    """Return the filesystem in the form in which this process calls it."""
    if not fs.async_impl:
        return Files(fs, many=many)
    cache = getattr(fs, "dircache", None)
    caches = isinstance(cache, class_of("fsspec.dircache", "DirCache")) and cache.use_listings_cache
    if fs.asynchronous or caches or fs._pid != os.getpid():  # noqa: SLF001
        options = {**fs.storage_options, "asynchronous": False}
        options.pop("loop", None)
        if caches:
            options["use_listings_cache"] = False
        fs = type(fs)(*fs.storage_args, **options)
    kind = WebFiles if {"http", "https"} & set(protocols(fs)) else AsyncFiles
    return kind(fs, many=many)


def base_of(fs: Any, path: str) -> tuple[Any, str]:
    """Return the underlying filesystem, and the path in it."""
    if not isinstance(fs, class_of("fsspec.spec", "AbstractFileSystem")):
        raise TypeError(f"{type(fs).__name__} is not a filesystem of fsspec")
    if not isinstance(path, str):
        raise TypeError(f"a path must be a str, not {type(path).__name__}")
    while True:
        kind = type(fs).__name__
        if kind == "AsyncFileSystemWrapper":
            fs = fs.sync_fs
        elif kind == "DirFileSystem":
            fs, path = fs.fs, f"{fs.path}/{fs._strip_protocol(path)}".rstrip("/")  # noqa: SLF001
        else:
            return fs, fs._strip_protocol(path)  # noqa: SLF001


def protocols(fs: Any) -> tuple[str, ...]:
    """Return the schemes of a filesystem."""
    # Set per instance by filesystems that are caches.
    protocol = fs.protocol
    if type(fs).__module__ == "fsspec.implementations.cached":
        protocol = type(fs).protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def class_of(module: str, name: str) -> Any:
    """Return an attribute of a module that is imported now."""
    return getattr(Lazy(module), name)
