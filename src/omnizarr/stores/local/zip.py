"""Values in one zip archive."""

from __future__ import annotations

import os
import weakref
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Final
from zipfile import ZIP_STORED, is_zipfile

from omnizarr.errors import (
    NodeExistsError,
    NodeNotFoundError,
    NotRepresentableError,
    OmnizarrError,
    ReadOnlyError,
    StoreError,
)
from omnizarr.stores import pool, threads, verbs
from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Extent,
    Features,
    Listing,
    Span,
    Store,
    answers,
    as_prefix,
    check_key,
    is_key,
    listing,
)
from omnizarr.stores.local import ozx
from omnizarr.stores.local.archive import Archive, Mode, Value
from omnizarr.stores.wrap.wrappers import ReadOnlyStore
from omnizarr.support.warned import warn

if TYPE_CHECKING:
    from omnizarr.stores.kinds import Place

_OF_FILE: Final = Features(exclusion="lock", listing="complete")
_OF_PATH: Final = replace(_OF_FILE, is_shared=True)


class ZipStore(Store):
    """A store in a zip archive.

    Parameters
    ----------
    path : path or binary file object
        The archive. A file object must be able to seek, and is not closed with the store. With `store`: the key
        of the archive there.
    store : Store, optional
        The store that holds the archive as a value. It is not closed with this store.
    mode : {"r", "r+", "a", "w", "w-", "x"}, default "r"
        "r": read. "r+": read and write an existing archive. "a": the same, or create one. "w": create one. "w-"
        and "x": create one; it must not exist.
    read_only : bool, optional
        Whether to refuse to write. The default follows from the mode.
    compression : int, default zipfile.ZIP_STORED
        How new entries are compressed. Chunks usually are compressed already.
    allowZip64 : bool, default True
        Whether the archive may be larger than 4 GiB.

    Notes
    -----
    Writes go to a temporary file beside the archive. `close` (or leaving the ``with`` block, or the end of the
    program) merges old and new entries, without those that were overwritten or deleted, and renames the result.
    Until then the archive is unchanged, whatever happens. Only one process at a time can write.

    An archive in a store is read in parts: one or two requests to open it, and one for each entry, sent
    concurrently. All parts are of one version: if the archive is replaced, reading raises `ConflictError` if
    the store can detect it. `close` writes the whole archive at once, unless another program has written it
    meanwhile.

    Entries that are not valid keys (``../x``, ``/x``) are ignored. If a name occurs several times, the last
    entry counts.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> with ZipStore(file, mode="w") as store:
    ...     store.set("a/c/0", b"old")
    ...     store.set("a/c/0", b"new")
    >>> with ZipStore(file) as store:
    ...     store.get("a/c/0")
    b'new'
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | IO[bytes],
        *,
        store: Store | None = None,
        mode: str = "r",
        read_only: bool | None = None,
        compression: int = ZIP_STORED,
        allowZip64: bool = True,  # noqa: N803 - zipfile's and zarr-python's name
    ) -> None:
        self.mode = _mode(mode)
        self.path: str | IO[bytes]
        self.store = store
        if store is not None:
            self.path = str(path)
            check_key(self.path)
            if self.mode != "r":
                store.check_writable()
        else:
            self.path = os.path.abspath(os.fspath(path)) if isinstance(path, str | os.PathLike) else path
        if read_only is None:
            read_only = self.mode == "r"
        if self.mode == "r" and not read_only:
            raise ReadOnlyError("an archive opened for reading cannot be written", remedy='open it with mode "r+"')
        self.read_only = read_only
        self._compression = compression
        self._allow_zip64 = allowZip64
        self._open()

    def _open(self) -> None:
        place = self.path if self.store is None else Value(self.store, str(self.path))
        self._archive = Archive(place, self.mode, self._compression, allow_zip64=self._allow_zip64)
        # also when the program ends, or the store is no longer referenced
        self._finalizer = weakref.finalize(self, _close_at_the_end, self._archive)

    @property
    def features(self) -> Features:
        """Locks exclude all other writers. The archive is shared if it is a file, or a value of a shared store."""
        if self.store is None:
            return _OF_PATH if isinstance(self.path, str) else _OF_FILE
        below = self.store.features
        return replace(_OF_FILE, concurrency=below.concurrency, is_shared=below.is_shared)

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Read the entry; only the wanted part if it is not compressed.

        The checksum is checked if all of it is read.
        """
        values = self._read(key, None if span is None else [span])
        return None if values is None else values[0]

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Read the entry, unless it is too large."""
        size = self.size(key)
        if size is not None:
            verbs.check_limit(self, key, size, most)
        return self.get(key)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Read only the parts of the entry, if it is not compressed."""
        return self._read(key, list(spans))

    def _read(self, key: str, spans: Sequence[Span] | None) -> Buffers | None:
        check_key(key)
        try:
            return self._archive.read(key, spans)
        except OmnizarrError as error:
            raise error.add(store=repr(self), key=key) from error.__cause__

    @answers(verbs.extents)
    def _extents(self, keys: Iterable[str]) -> Iterator[tuple[int, Extent | None]]:
        """Look where entries that are not compressed lie in the archive."""
        file = self._file()

        def look(key: str) -> Extent | None:
            check_key(key)
            try:
                found = self._archive.extent(key)
            except OmnizarrError as error:
                raise error.add(store=repr(self), key=key) from error.__cause__
            return None if found is None else Extent(file, *found)

        return pool.gather(look, keys, self.features.concurrency) if self.store else enumerate(map(look, keys))

    def _file(self) -> str:
        """Return the path or URL of the archive. Raises NotRepresentableError if it has none."""
        if self.store is None:
            if isinstance(self.path, str):
                return self.path.replace(os.sep, "/")
            raise NotRepresentableError("an archive in memory has no path", store=repr(self))
        (_, found) = next(verbs.extents(self.store, [str(self.path)]))
        if not isinstance(found, Extent) or found.offset:
            raise NotRepresentableError("the archive is no file of its own", store=repr(self))
        return found.file

    def size(self, key: str) -> int | None:
        """Return the size that the directory of the archive states."""
        check_key(key)
        return self._archive.size(key)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return the entry and the version of the file; None if the archive has no file of its own."""
        check_key(key)
        return self._archive.stamp(key)

    def set(self, key: str, value: Buffer) -> None:
        """Append an entry. An old entry of that name is removed by `close`."""
        self.check_writable()
        check_key(key)
        self._archive.write(key, value)

    @answers(verbs.set_if_absent)
    def _set_if_absent(self, key: str, value: Buffer) -> bool:
        """Append an entry, if there is none of that name."""
        self.check_writable()
        check_key(key)
        return self._archive.write_if_absent(key, value)

    def delete(self, key: str) -> None:
        """Forget the entry. `close` removes it."""
        self.check_writable()
        check_key(key)
        self._archive.remove(key)

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock the key for the threads of this process. No other process can write the archive."""
        self.check_writable()
        check_key(key)
        return threads.lock((id(self._archive), key))

    def list(self) -> Iterator[str]:
        """Yield the names of the entries."""
        return filter(is_key, self._archive.names())

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the names of the entries under `prefix`."""
        return filter(is_key, self._names(as_prefix(prefix)))

    def list_dir(self, prefix: str) -> Listing:
        """Look at the names of the entries under `prefix`."""
        prefix = as_prefix(prefix)
        return listing(self._names(prefix), prefix)

    def _names(self, prefix: str) -> Iterator[str]:
        names = self._archive.names()
        for position in range(bisect_left(names, prefix), len(names)):
            if not names[position].startswith(prefix):
                return
            yield names[position]

    def origin(self) -> tuple[Hashable, str]:
        """Return the identity of the archive."""
        if self.store is not None:
            data, path = self.store.origin()
            return ("zip", data, f"{path}/{self.path}".strip("/")), ""
        return ("zip", os.path.realpath(self.path) if isinstance(self.path, str) else id(self.path)), ""

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002
        """Return a read-only view. An archive opened for reading cannot become writable."""
        if read_only:
            return self if self.read_only else ReadOnlyStore(self)
        self.check_writable()
        return self

    def close(self) -> None:
        """Write the archive, if anything changed."""
        self._finalizer.detach()
        self._archive.close()

    def discard(self) -> None:
        """Close the archive without writing changes. The file stays as it was."""
        self._finalizer.detach()
        self._archive.discard()

    def __getstate__(self) -> dict[str, Any]:
        if self.mode != "r" or not isinstance(self.path, str):
            raise TypeError(f"cannot pickle {self!r}: only an archive that is opened for reading, by its path")
        return {name: value for name, value in self.__dict__.items() if name not in ("_archive", "_finalizer")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ZipStore):
            return False
        same = self.path == other.path and self.store == other.store
        return self is other or (self.mode == other.mode == "r" and same)

    def __hash__(self) -> int:
        return hash((ZipStore, self.path))

    @property
    def place(self) -> str:
        """The path of the archive; within another store, below its place."""
        path = self.path if isinstance(self.path, str) else ""
        outer = "" if self.store is None else self.store.place
        return f"{outer.rstrip('/')}/{path}" if outer else path

    def __repr__(self) -> str:
        store = "" if self.store is None else f"store={self.store!r}, "
        return f"ZipStore({self.path!r}, {store}mode={self.mode!r})"


def _close_at_the_end(archive: Archive) -> None:
    """Write an archive that the program did not close. An error cannot be caught any more, and becomes a warning."""
    try:
        archive.close()
    except (OmnizarrError, OSError) as error:
        warn(f"the changes of an archive that was not closed are lost: {error}", RuntimeWarning)


def _mode(mode: str) -> Mode:
    modes: dict[str, Mode] = {"r": "r", "r+": "r+", "a": "a", "w": "w", "w-": "x", "x": "x"}
    if mode not in modes:
        raise ValueError(f"mode is {mode!r}, must be one of {', '.join(map(repr, modes))}")
    return modes[mode]


def ozx_faults(store: Store) -> list[tuple[str, str]]:
    """Return what a single-file OME-Zarr lacks of its specification: found and expected; nothing for other stores."""
    while not isinstance(store, ZipStore):
        inner = getattr(store, "store", None)
        if not isinstance(inner, Store):
            return []
        store = inner
    return store._archive.ozx_faults() if ozx.is_ozx(store.path) else []  # noqa: SLF001 - its own module


def open_place(place: Place) -> tuple[Store, str] | None:
    """Return the store for an archive, and its only folder; None if it is another file, or a folder in a store."""
    is_new = place.mode in ("w", "w-", "x")
    if place.path is not None:
        place.refuse_options()
        is_there = os.path.isfile(place.path)
        if place.mode in ("w-", "x") and is_there:
            raise NodeExistsError("the archive exists already", store=place.path, remedy='overwrite it with mode "w"')
        if not place.read_only and is_there and not is_zipfile(place.path):  # it is not overwritten
            return None
        try:
            archive = ZipStore(place.path, mode=place.mode)
        except StoreError:
            if is_there and not is_zipfile(place.path):
                return None
            raise
        return archive, "" if is_new else _top_folder(archive)
    store, key = place.file()
    if key.endswith("/") or not key:
        return None
    try:
        archive = ZipStore(key, store=store, mode=place.mode)
    except NodeNotFoundError:
        with suppress(StoreError):  # not every store can list
            if next(store.list_prefix(key), None) is not None:
                return None
        raise
    return archive, "" if is_new else _top_folder(archive)


def _top_folder(store: Store) -> str:
    """Return the name of the folder that contains everything in the archive; "" if there is no such folder."""
    keys, prefixes = store.list_dir("")
    # Files that macOS adds to the archives it packs.
    folders = [prefix for prefix in prefixes if prefix != "__MACOSX/"]
    if len(folders) == 1 and all(key == ".DS_Store" for key in keys):
        return folders[0].removesuffix("/")
    return ""
