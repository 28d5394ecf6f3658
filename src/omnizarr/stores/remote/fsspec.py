"""Values in the files of any filesystem that fsspec knows.

URLs
    ``scheme://path`` with every scheme that fsspec knows and omnizarr has no store of its own for (``sftp``, ``hf``,
    ``github``, ...), and chains in the notation of fsspec: ``zip://folder::https://host/a.zip``,
    ``simplecache::s3://bucket/a``. With ``fsspec+`` before a URL, fsspec opens it although omnizarr could:
    ``fsspec+s3://bucket/a`` takes the options of s3fs, and ``fsspec+https://host/a`` lists the links of a
    server's index pages. `storage_options` are passed to fsspec unchanged. Options for one part of a chain have
    its name as key: ``{"s3": {"anon": True}}``.

Guarantees
    fsspec has no conditional writes and no locks, so `FsspecStore.exclusion` is "process". A value becomes
    visible whole if the service guarantees it (object stores do), in memory, and in local directories, where it
    is written to a temporary file first. Archives, caches and web servers are read-only.

    Listings are requested each time, without the filesystem's cache. Values in a cache of fsspec may be as old as its
    options allow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias
from urllib.parse import quote, unquote

from omnizarr.errors import (
    MissingDependencyError,
    OmnizarrError,
    ReadOnlyError,
    StoreError,
    StoreLimitError,
)
from omnizarr.stores import failures, kinds, pool, threads, verbs
from omnizarr.stores.base import (
    RESERVED,
    Buffer,
    Buffers,
    Features,
    Listing,
    Request,
    Span,
    Store,
    answers,
    as_prefix,
    check_key,
    is_key,
    listing,
)
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.redaction import redact, secrets_of
from omnizarr.stores.remote import loops
from omnizarr.stores.remote.filesystems import (
    AsyncFiles,
    Files,
    Info,
    base_of,
    class_of,
    files_of,
    local,
    memory,
    protocols,
)
from omnizarr.stores.wrap import wrappers
from omnizarr.support import extras

if TYPE_CHECKING:
    from omnizarr.stores.kinds import Place

_List: TypeAlias = list  # within the classes, `list` is a method

_DEPTH: Final = 1000  # levels of directories; more means circular links
_ATTEMPTS: Final = 3  # attempts to read parts of a value that others keep replacing

_PREFIX: Final = "fsspec+"

# Read-only filesystems: archives are written by ZipStore, and with a cache that does not check whether it is
# current, writers would undo each other's changes.
_ONLY_READ: Final = frozenset({
    *("http", "https", "zip", "tar", "libarchive", "reference", "github", "git", "gist", "data", "jar"),
    *("cached", "blockcache", "filecache", "simplecache"),
})  # fmt: skip
# Services whose ETag depends on the bytes, not on the second in which they were written.
_HAS_ETAGS: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl"})
# Services that refuse to overwrite another writer's file.
_CREATES: Final = frozenset({"s3", "s3a", "gs", "gcs"})
# Filesystems whose `rmdir` removes empty directories only.
_HAS_RMDIR: Final = frozenset({"file", "local", "sftp", "ssh", "ftp"})

# Filesystems that list every file; a web server lists what its pages link to, and others may make files on demand.
_LISTS_ALL: Final = frozenset({
    *("file", "local", "memory", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "tos", "tosfs"),
    *("sftp", "ssh", "ftp", "smb", "hdfs", "arrow_hdfs", "webhdfs", "webHDFS", "dbfs", "box", "dropbox", "gdrive"),
    *("zip", "tar", "libarchive", "jar", "git", "github", "gist", "hf", "lakefs", "osdf", "root"),
})  # fmt: skip
# Filesystems of which a URL without options tells the place of a file.
_HAVE_URLS: Final = frozenset({
    *("http", "https", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "memory", "hdfs", "hf"),
    *("ftp", "sftp", "ssh"),
})  # fmt: skip
_PASS_ON: Final = frozenset({"cached", "blockcache", "filecache", "simplecache"})

_ABSENCE: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class FsspecStore(Store):
    """A store on a filesystem of fsspec.

    Parameters
    ----------
    fs : fsspec.AbstractFileSystem
        The filesystem. If it was created with ``asynchronous=True``, it is created again without; nothing else changes.
    path : str
        The directory in it, with or without the protocol: ``"bucket/prefix"``. "" is all of the filesystem.
    read_only : bool, optional
        Whether to refuse to write. The default is True for archives, caches and web servers, which cannot be written.
    concurrency : int, optional
        Number of concurrent requests. The default is 64 for filesystems on the event loop of fsspec, and 1 for
        others, many of which use one connection. With more than 1, the filesystem must allow calls from several
        threads.

    Raises
    ------
    MissingDependencyError
        If fsspec is not installed.
    ReadOnlyError
        If ``read_only=False`` and the filesystem cannot be written.

    Examples
    --------
    >>> import fsspec
    >>> store = FsspecStore(fsspec.filesystem("memory"), "few.zarr")
    >>> store.set("c/0", b"abc")
    >>> store, store.get("c/0", (1, None)), list(store.list())
    (FsspecStore('memory://few.zarr'), b'bc', ['c/0'])
    >>> verbs.delete_prefix(store, "")
    """

    def __init__(
        self, fs: Any, path: str = "", *, read_only: bool | None = None, concurrency: int | None = None
    ) -> None:
        _check_installed()
        fs, path = base_of(fs, path)
        self.fs = fs
        self.path: str = path.rstrip("/")
        self._protocol = protocols(fs)[0]
        can_write = _ONLY_READ.isdisjoint(protocols(fs))
        if concurrency is not None and concurrency < 1:
            raise ValueError(f"concurrency is {concurrency}, must be at least 1")
        self._concurrency = concurrency
        self._made: tuple[int, Files] | None = None
        self._features: Features | None = None
        self.read_only = not can_write if read_only is None else read_only
        if not (can_write or self.read_only):
            raise self._cannot_write()

    @classmethod
    def from_url(
        cls, url: str, storage_options: Mapping[str, Any] | None = None, *, read_only: bool | None = None
    ) -> Self:
        """Return the store of a URL or a chain of URLs, with the options of fsspec.

        Raises
        ------
        MissingDependencyError
            If fsspec, or the package that it needs for this scheme, is not installed.
        StoreError
            If fsspec does not know the scheme, or cannot parse the rest.

        Examples
        --------
        >>> FsspecStore.from_url("memory://data.zarr")
        FsspecStore('memory://data.zarr')
        """
        return cls(*_open(url.removeprefix(_PREFIX), storage_options or {}), read_only=read_only)

    @classmethod
    def from_upath(cls, path: Any, *, read_only: bool | None = None) -> Self:
        """Return the store in the directory of a ``UPath`` of universal_pathlib."""
        return cls(path.fs, path.path, read_only=read_only)

    @classmethod
    def from_mapper(cls, mapper: Any, *, read_only: bool | None = None) -> Self:
        """Return the store for the same files as an ``FSMap`` (from ``fsspec.get_mapper``)."""
        return cls(mapper.fs, mapper.root, read_only=read_only)

    @property
    def features(self) -> Features:
        """By default 64 concurrent requests on the event loop of fsspec, otherwise 1.

        Some kinds of filesystems are known to list every file. Only this process sees those in memory.
        """
        if self._features is None:
            innermost = self.fs
            while not _PASS_ON.isdisjoint(protocols(innermost)):
                innermost = innermost.fs
            self._features = Features(
                concurrency=self._concurrency or self._files.concurrency,
                is_shared=not isinstance(self.fs, memory.MemoryFileSystem),
                listing="partial" if _LISTS_ALL.isdisjoint(protocols(innermost)) else "complete",
            )
        return self._features

    @property
    def _files(self) -> Files:
        """The filesystem in the form in which it is called; created again after a fork, which stops the event loop."""
        if self._made is None or self._made[0] != os.getpid():
            self._made = (os.getpid(), files_of(self.fs, many=(self._concurrency or 1) > 1))
        return self._made[1]

    # -- reading ------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Read the file, or the part of it."""
        path = self._path_of(key)
        try:
            return self._files.get(path, span)
        except Exception as error:  # noqa: BLE001 - filesystems raise what the libraries below them raise
            return self._unread(error, key, span)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Read the file, unless it is too large."""
        path = self._path_of(key)
        try:
            return self._files.get_within(path, most)
        except Exception as error:  # noqa: BLE001 - filesystems raise what the libraries below them raise
            return self._unread(error, key, (0, most))

    @answers(verbs.get_many_within)
    def _get_many_within(self, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
        """Read concurrently, on the event loop of fsspec if the filesystem runs there."""
        files = self._files
        if not isinstance(files, AsyncFiles):
            yield from verbs.get_many_within.default(self, keys, most)
            return

        def task(key: str) -> Any:
            return files.read_within(self._path_of(key), most)

        for key, position, call in loops.gather(task, keys, self.features.concurrency, files.loop):
            yield position, self._answer(call, key, (0, most))

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Read concurrently, on the event loop of fsspec if the filesystem runs there."""
        files = self._files
        if not isinstance(files, AsyncFiles):
            yield from pool.gather(lambda request: self.get(*request), requests, self.features.concurrency)
            return

        def task(request: Request) -> Any:
            return files.read(self._path_of(request[0]), request[1])

        for (key, span), position, call in loops.gather(task, requests, self.features.concurrency, files.loop):
            yield position, self._answer(call, key, span)

    def _answer(self, call: loops.Call[bytes], key: str, span: Span | None) -> Buffer | None:
        try:
            return call.result()
        except Exception as error:  # noqa: BLE001 - filesystems raise what the libraries below them raise
            return self._unread(error, key, span)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Read the parts, and compare the stamps before and after; without stamps, read the whole file."""
        if len(spans) == 1:
            part = self.get(key, spans[0])
            return None if part is None else [part]
        for _attempt in range(_ATTEMPTS):
            before = verbs.stamp(self, key)
            if before is None:
                break
            parts: _List[Buffer | None] = [None] * len(spans)
            for position, part in verbs.get_many(self, ((key, span) for span in spans)):
                parts[position] = part
            if before == verbs.stamp(self, key) and None not in parts:
                return [part for part in parts if part is not None]
        return verbs.get_spans.default(self, key, spans)

    def size(self, key: str) -> int | None:
        """Return the size that the filesystem reports, otherwise that of the value."""
        info = self._info(key)
        if info is None:
            return None
        size = info.get("size")
        return super().size(key) if size is None else int(size)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return the ETag of S3, Google and Azure, which depends on the bytes."""
        check_key(key)
        if self._protocol not in _HAS_ETAGS:
            return None
        info = self._info(key) or {}
        return info.get("ETag") or info.get("etag") or None

    def _info(self, key: str) -> Info | None:
        path = self._path_of(key)
        try:
            info: Info = self._files.call("info", path, fresh=path)
        except Exception as error:  # noqa: BLE001 - filesystems raise what the libraries below them raise
            self._unread(error, key)
            return None
        return None if info.get("type") == "directory" else info

    # -- writing ------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Write the file. Missing directories are created."""
        self._write(key, value, self._files.put)

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Buffer) -> bool:
        """Check for the file and write it under the lock. S3 and Google also refuse it if another writer was faster."""
        if self._protocol not in _CREATES:
            return verbs.set_if_absent.default(self, key, value)
        with self.lock(key):
            if self.exists(key):
                return False
            try:
                self._write(key, value, self._files.create)
            except StoreError:  # filesystems report this in many ways
                if self.exists(key):
                    return False
                raise
            return True

    def _write(self, key: str, value: Buffer, write: Callable[[str, bytes], None]) -> None:
        self.check_writable()
        path = self._path_of(key)
        data = value if type(value) is bytes else memoryview(value).tobytes()
        try:
            write(path, data)
        except Exception as error:  # noqa: BLE001 - filesystems raise what the libraries below them raise
            raise self._failure(error, key)

    def delete(self, key: str) -> None:
        """Remove the file, and local directories that are empty then."""
        self.check_writable()
        path = self._path_of(key)
        if self._protocol in _HAS_RMDIR and not self.exists(key):  # it might be a directory
            return
        try:
            self._files.call("rm_file", path)
        except _ABSENCE:
            return
        except Exception as error:  # noqa: BLE001 - filesystems raise what the libraries below them raise
            raise self._failure(error, key)
        self._prune(key.rpartition("/")[0])

    @answers(verbs.delete_prefix)
    def _delete_prefix(self, prefix: str) -> None:
        """Remove everything below the prefix, many files at once if the service can."""
        self.check_writable()
        prefix = as_prefix(prefix)
        paths = [self._path_of(key) for key in self.list_prefix(prefix)]
        try:
            self._files.remove(paths)
        except Exception as error:  # noqa: BLE001 - filesystems raise what the libraries below them raise
            raise self._failure(error, prefix)
        if self._protocol in _HAS_RMDIR:
            self._remove_folders(prefix)
            self._prune(prefix[:-1])

    def _remove_folders(self, prefix: str) -> None:
        """Remove the directories below `prefix`, and temporary files of killed writers."""
        for info in self._ls(self._base + prefix):
            path = info["name"]
            name = path.rpartition("/")[2]
            with suppress(OSError):  # others may write there, or have removed it
                if info["type"] != "directory":
                    if name.startswith(RESERVED):
                        self._files.call("rm_file", path)
                elif is_key(prefix + name):
                    self._remove_folders(f"{prefix}{name}/")
                    self._files.call("rmdir", path)

    def _prune(self, folder: str) -> None:
        """Remove `folder` and its parents up to the root of the store, as long as they are empty."""
        if self._protocol not in _HAS_RMDIR:
            return
        with suppress(OSError):
            while folder:
                self._files.call("rmdir", self._base + folder)
                folder = folder.rpartition("/")[0]

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock the file for the threads of this process, in all stores of fsspec."""
        self.check_writable()
        check_key(key)
        data, path = self.origin()
        return threads.lock((data, f"{path}/{key}"))

    def check_writable(self) -> None:
        """Raise `ReadOnlyError` if the store is read-only, or cannot be written."""
        super().check_writable()
        if not _ONLY_READ.isdisjoint(protocols(self.fs)):
            raise self._cannot_write()

    def _cannot_write(self) -> ReadOnlyError:
        return ReadOnlyError(
            f"{self._protocol!r} of fsspec is for reading here",
            store=repr(self),
            remedy="archives are written by ZipStore, and what lies behind a cache is written without the cache",
        )

    # -- listing ------------------------------------------------------------------

    def list(self) -> Iterator[str]:
        """Yield the keys there are now."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """List everything at once if the filesystem can, otherwise directory by directory, many of them at once."""
        prefix = as_prefix(prefix)
        if not self._files.finds:
            return self._walk(prefix)
        return (key for key, _ in self._find(prefix))

    @answers(verbs.list_sizes)
    def _list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Take the sizes from the listing, if the filesystem lists everything at once with sizes."""
        if not self._files.finds:
            return verbs.list_sizes.default(self, prefix)
        found = self._find(as_prefix(prefix), detail=True)
        sizes = ((key, self.size(key) if info.get("size") is None else int(info["size"])) for key, info in found)
        return ((key, size) for key, size in sizes if size is not None)

    def _find(self, prefix: str, *, detail: bool = False) -> Iterator[tuple[str, Info]]:
        path = (self._base + prefix).removesuffix("/")
        try:
            found = self._files.call("find", path, fresh=path, detail=detail)
        except Exception as error:  # noqa: BLE001 - filesystems raise what the libraries below them raise
            self._unread(error, prefix)
            return
        for name in found:
            key = self._key_of(name)
            if key is not None and key.startswith(prefix) and is_key(key):
                yield key, found[name] if detail else {}

    def _walk(self, prefix: str) -> Iterator[str]:
        level = [prefix]
        for depth in count():
            if depth > _DEPTH:
                raise StoreLimitError(
                    "directories within directories without end", store=repr(self), key=prefix, expected=_DEPTH
                )
            below: _List[str] = []
            for _, found in pool.gather(self.list_dir, level, self.features.concurrency):
                yield from found.keys
                below += found.prefixes
            if not below:
                return
            level = below

    def list_dir(self, prefix: str) -> Listing:
        """List the directory."""
        prefix = as_prefix(prefix)
        return listing(self._entries(prefix), prefix)

    def _entries(self, prefix: str) -> Iterator[str]:
        for info in self._ls(self._base + prefix):
            name = self._key_of(info["name"].removesuffix("/"))
            if name is None or not name.startswith(prefix) or "/" in name[len(prefix) :]:
                continue  # a file lists itself, and web pages have links to anywhere
            if info["type"] == "directory":
                yield f"{name}/"
            elif info["type"] == "file" or self._files.call("isfile", info["name"]):
                yield name

    def _ls(self, path: str) -> _List[Info]:
        path = path if self._files.keeps_slash else path.removesuffix("/")
        try:
            return list(self._files.call("ls", path, detail=True, fresh=path))
        except Exception as error:  # noqa: BLE001 - filesystems raise what the libraries below them raise
            self._unread(error, path.removeprefix(self._base))
            return []

    # -- names and errors ---------------------------------------------------------

    @property
    def _base(self) -> str:
        """The part of a file's path before the key. The query of a URL is not part of it."""
        root = self.path.partition("?")[0].rstrip("/") if self._is_web else self.path
        return f"{root}/" if root else str(self.fs.root_marker)

    @property
    def _is_web(self) -> bool:
        return self._protocol in ("http", "https")

    def _path_of(self, key: str) -> str:
        check_key(key)
        if not self._is_web:
            return self._base + key
        _, mark, query = self.path.partition("?")  # a signature, for example
        return self._base + quote(key) + mark + query

    def _key_of(self, path: str) -> str | None:
        base = self._base
        if not path.startswith(base):
            path = "/" + path  # some omit the mark of the root
            if not path.startswith(base):
                return None
        key = path[len(base) :]
        if not self._is_web:
            return key
        return None if "?" in key or "#" in key else unquote(key)  # a link that sorts the page is not a file

    def _unread(self, error: Exception, key: str, span: Span | None = None) -> Buffer | None:
        """Return None if a read failed because the file does not exist; raise the actual error otherwise."""
        if isinstance(error, OmnizarrError) or failures.is_missing_place(error):
            raise self._failure(error, key)
        # FileExistsError: in memory, if a parent of the path is a file
        if isinstance(error, (*_ABSENCE, FileExistsError)):
            return None
        if span is not None and failures.is_past_the_end(error):
            size = self.size(key)
            if size is None or size == 0 or span[0] >= size:
                return None if size is None else b""
        raise self._failure(error, key)

    def _failure(self, error: Exception, key: str) -> OmnizarrError:
        return failures.translate(error, self, key, secrets_of(self.fs.storage_options))

    # -- the store itself ---------------------------------------------------------

    @answers(verbs.folder)
    def _folder(self, prefix: str) -> str | None:
        """Return the path or URL of a prefix; None within files, and where only the options tell the place."""
        prefix = as_prefix(prefix)
        if isinstance(self.fs, local.LocalFileSystem):
            return f"{self.path.rstrip('/')}/{prefix}"
        if _HAVE_URLS.isdisjoint(protocols(self.fs)):
            return None
        return f"{self.place.rstrip('/')}/{quote(prefix) if self._is_web else prefix}"

    def above(self) -> tuple[Store, str] | None:
        """Return the directory that this one is in; None for a bucket."""
        higher, _, name = self.path.rpartition("/")
        return (FsspecStore(self.fs, higher, read_only=self.read_only), name) if higher and name else None

    def origin(self) -> tuple[Hashable, str]:
        """Return the identity of the service, without credentials, and the path."""
        if isinstance(self.fs, local.LocalFileSystem):
            return LocalStore(self.path or "/").origin()
        path = self._base.strip("/")
        if self._is_web:
            return ("web",), redact(self._base).rstrip("/")
        if isinstance(self.fs, memory.MemoryFileSystem):
            return ("fsspec", "memory", id(self.fs.store)), path
        if self._protocol in _HAS_ETAGS:
            options = self.fs.storage_options
            clients = options.get("client_kwargs") or {}
            where = options.get("endpoint_url") or clients.get("endpoint_url") or options.get("account_name")
            return ("fsspec", self._protocol, where and redact(str(where))), path
        return ("fsspec", self._protocol, hash(self.fs)), path

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002
        """Return a read-only store for the same files, or (False) a writable one."""
        return type(self)(self.fs, self.path, read_only=read_only, concurrency=self._concurrency)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FsspecStore):
            return False
        return self._facts() == other._facts()

    def _facts(self) -> tuple[object, ...]:
        return self.fs, self.path, self.read_only, self._concurrency

    def __hash__(self) -> int:
        return hash((FsspecStore, self.fs, self.path))

    @property
    def place(self) -> str:
        """The URL, without secrets."""
        path = self.path if self._is_web else f"{self._protocol}://{self.path.removeprefix(self.fs.root_marker)}"
        return redact(path)

    def __repr__(self) -> str:
        return f"FsspecStore({self.place!r})"


# -- called by `omnizarr.stores.resolve` ------------------------------------------------


def open_place(place: Place) -> tuple[Store, str]:
    """Return the store that fsspec opens for a URL, and the path in it, which is ""."""
    return _in_mode(*_open(place.text.removeprefix(_PREFIX), place.of_store), place.mode), ""


def file_at(url: str, options: Mapping[str, Any]) -> tuple[Store, str]:
    """Return the store that contains the file of a URL, and its key."""
    return place_in(*_open(url.removeprefix(_PREFIX), options))


def place_in(fs: Any, path: str) -> tuple[Store, str]:
    """Return the store that contains a file of a filesystem, given by path or URL, and its key."""
    fs, path = base_of(fs, path)
    parent, _, name = path.rpartition("/")
    return _in_mode(fs, parent, "r"), name


def adapt(storelike: Any, mode: str, options: Mapping[str, Any]) -> tuple[Store, str] | None:
    """Return the store for a filesystem, an FSMap or a UPath; None for a local path and for other objects."""
    if hasattr(storelike, "storage_options") and hasattr(storelike, "fs") and hasattr(storelike, "path"):  # UPath
        if storelike.protocol in ("", "file", "local") and not options:
            return None
        fs, path = storelike.fs, storelike.path
    elif isinstance(storelike, class_of("fsspec.mapping", "FSMap")):
        fs, path = storelike.fs, storelike.root
    elif isinstance(storelike, class_of("fsspec.spec", "AbstractFileSystem")):
        fs, path = storelike, ""
    else:
        return None
    if options:
        raise StoreError("storage_options mean nothing to a filesystem that exists already", found=sorted(options))
    return _in_mode(fs, path, mode), ""


def _in_mode(fs: Any, path: str, mode: str) -> Store:
    """Return a store on a filesystem. A local directory is opened as a LocalStore."""
    fs, path = base_of(fs, path)
    if type(fs) is local.LocalFileSystem:
        return LocalStore(path or "/", read_only=mode == "r")
    return upon(fs, path, read_only=mode == "r")


def upon(fs: Any, path: str, *, read_only: bool | None) -> Store:
    """Return a store on a filesystem. References are opened as a ReferenceStore."""
    if "reference" in protocols(fs):
        store, below = kinds.REFERENCES.module().ReferenceStore.from_filesystem(fs), path.strip("/")
        return wrappers.PrefixStore(store, below) if below else store
    return FsspecStore(fs, path, read_only=read_only)


def _open(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return filesystem and path of a URL."""
    _check_installed()
    secrets = secrets_of(options)
    try:
        fs, path = class_of("fsspec.core", "url_to_fs")(url, **options)
    except ImportError as error:
        raise MissingDependencyError(
            f"fsspec needs another package for this URL: {error}",
            found=redact(url, secrets),
            remedy="install that package",
        ) from error
    except Exception as error:  # noqa: BLE001 - filesystems raise what the libraries below them raise
        text = redact(str(error), secrets)
        failure = StoreError(f"fsspec cannot open this URL: {text}", found=redact(url, secrets))
        raise failure from (error if text == str(error) else None)
    return fs, path


def known_protocols() -> list[str]:
    """Return the schemes that fsspec knows, whether their packages are installed or not; none without fsspec."""
    try:
        return list(class_of("fsspec.registry", "known_implementations"))
    except ImportError:
        return []


def _check_installed() -> None:
    try:
        class_of("fsspec", "__version__")
    except ImportError as error:
        raise MissingDependencyError(
            f"this store needs the package 'fsspec', which cannot be imported ({error})",
            remedy=extras.remedy("fsspec"),
        ) from error
