"""A file of another format in a store, and what shows that it is not the same file any more.

A manifest is true for one version of a file. So size and change marker are recorded when the file is opened:

- of a file of this machine, the times of its last change, compared after each read; if it was changed only just
  before, so that a new file in its place could have the same times, also its number;
- of a value in an object store, its ETag: each request asks for that version (`omnizarr.stores.verbs.pinned`);
- elsewhere, the stamp of the value, if the store has one, compared after each read, or once if that takes a request.

Parts of two versions are never combined, and missing bytes are an error.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

from omnizarr.errors import ConflictError, StaleError, StoreError
from omnizarr.stores import verbs
from omnizarr.stores.access import Opened
from omnizarr.stores.base import Buffer, Buffers, Parts, Reader, Span, Store, fill
from omnizarr.stores.local import files
from omnizarr.stores.local.directory import LocalStore

T = TypeVar("T")

_REMEDY = "open it again"

FIRST: Final = 1 << 18
"""Bytes of a file on another machine that are read first: they often hold all that describes its arrays."""


class File:
    """A file in a store.

    Parameters
    ----------
    store : Store
        The store.
    key : str
        Its key there.
    size : int, optional
        Its size in bytes. None: unknown until `read` is first called.
    marker : object, optional
        What shows that it has changed, as `of` found it. None: nothing does but its size.

    Examples
    --------
    >>> from omnizarr.stores import MemoryStore
    >>> file = File.of(MemoryStore({"a.bin": b"0123456789"}), "a.bin")
    >>> file.size, [bytes(part) for part in file.read([(2, 4), (8, 10)])]
    (10, [b'23', b'89'])
    """

    __slots__ = ("_has_asked", "_head", "_is_checked", "_reads", "key", "marker", "size", "store")

    def __init__(self, store: Store, key: str, size: int | None = None, marker: Hashable = None) -> None:
        self.store = store
        self.key = key
        self.size = size
        self.marker = marker
        self._reads: Reader | None = None
        self._has_asked = False
        self._is_checked = False
        self._head: Buffer | None = None

    @classmethod
    def of(cls, store: Store, key: str) -> File:
        """Return a file as it is now. Raises StoreError if it does not exist."""
        file = cls(store, key)
        if file.is_local:
            file.size, file.marker = file._status()
        elif not file._pinned():
            file.marker, file.size = verbs.stamp(store, key), store.size(key)
            if file.size is None:
                raise file._missing()
        return file

    @classmethod
    def found(cls, store: Store, key: str) -> File | None:
        """Return a file as it is now; None if it does not exist. Of one on another machine, the beginning is read."""
        file = cls(store, key)
        if file.is_local or not file._pinned():
            return cls.of(store, key) if store.exists(key) else None
        return None if file.first() is None else file

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> File:
        """Return a file of this machine, as it is now. Links are followed. Raises StoreError if it does not exist."""
        folder, name = os.path.split(os.path.realpath(path))
        return cls.of(LocalStore(folder, read_only=True), name)

    @property
    def is_local(self) -> bool:
        """Whether it is a file of this machine."""
        return type(self.store) is LocalStore

    @property
    def path(self) -> str:
        """The path, or what messages call it."""
        if isinstance(self.store, LocalStore):
            return os.path.join(self.store.root, *self.key.split("/"))
        place = self.store.place
        return f"{place.rstrip('/')}/{self.key}" if place else self.key

    @property
    def status(self) -> tuple[str, int, int, int, int] | None:
        """Path without links of a file of this machine, and what shows that it is the same; None if that is unknown.

        Size, times of the last change of the contents and of the inode, and the number of the inode, or 0.
        """
        if isinstance(self.store, LocalStore) and self.is_local and self.size is not None:
            match self.marker:
                case (int() as modified, int() as changed, int() as number):
                    path = os.path.join(self.store.real_root(), *self.key.split("/"))
                    return path, self.size, modified, changed, number
        return None

    @property
    def version(self) -> Opened | None:
        """The version in an object store that is read; None if nothing tells it. This may send a request."""
        self._pinned()
        reads: Any = self._reads
        if not hasattr(reads, "version"):
            return None
        if reads.version is None:
            self.read([(0, min(1, self.size or 0))])
        version: Opened | None = reads.version
        return version

    # -- files that are not opened before they are read ------------------------------------

    def recorded(self, *, is_fixed: bool) -> tuple[str, int, int, int, int] | None:
        """Return what `status` says of a file of this machine, as it was first seen; None if there is no file.

        Of one that may change, return the path only.
        """
        path = os.path.realpath(self.path)
        if not is_fixed:
            return path, 0, 0, 0, 0
        status = self.status if self._record() else None
        return None if status is None else (path, *status[1:])

    def _record(self) -> bool:
        """Record what shows that a file of this machine is the same, and return whether there is one."""
        if self.size is None and self.marker is None:
            try:
                self.size, self.marker = self._status()
            except StoreError:
                return False
        return True

    @property
    def known_version(self) -> Opened | None:
        """The version in an object store that has been read; None if none has."""
        version: Opened | None = getattr(self._reads, "version", None)
        return version

    def adopt(self, size: int, e_tag: str | None, version: str | None, modified: int) -> None:
        """Read the version that somebody else has read."""
        reads: Any = self._reads if self._pinned() else None
        if hasattr(reads, "adopt"):
            reads.adopt(Opened(size, e_tag, version, modified))

    def pieces(self, spans: Sequence[Span]) -> Buffers | None:
        """Return parts of the file, shorter ones where it ends; None if it does not exist.

        What shows that it is the same is recorded by the first call. Raises StaleError if it is not the same any more.
        """
        if self.is_local and not self._record():
            return None
        if self._pinned() or len(spans) != 1:
            parts = self._parts(spans)
        else:
            part = self.store.get(self.key, spans[0])
            parts = None if part is None else [part]
        if parts is not None and self.is_local:
            self._check_local()
        return parts

    def pieces_into(self, out: memoryview, start: int) -> int | None:
        """Fill `out` from byte `start` on, and return how many bytes there were; otherwise like `pieces`."""
        if not self.is_local:
            parts = self.pieces([(start, start + out.nbytes)])
            return None if parts is None else fill(out, memoryview(parts[0]))
        if not self._record():
            return None
        found = verbs.read_into(self.store, self.key, out, start)
        if found is not None:
            self._check_local()
        return found

    # -- reading -----------------------------------------------------------------------

    def read(self, spans: Sequence[Span]) -> Buffers:
        """Return parts of the file.

        Raises
        ------
        StaleError
            If the file is not the one that was opened.
        StoreError
            If it does not exist, or ends before one of the parts does.
        """
        parts = self._answer(lambda: self._parts(spans))
        for part, (start, stop) in zip(parts, spans, strict=True):
            if stop is not None and start >= 0 and len(part) < stop - start:
                raise self.too_short(stop)
        return parts

    def head(self, stop: int) -> Buffer:
        """Return the first `stop` bytes, or all there are. After that, `size` is known. Raises what `read` raises."""
        if self._head is not None and (stop <= len(self._head) or len(self._head) == self.size):
            return self._head[:stop]
        return self._known(self._answer(lambda: self._parts([(0, stop)])), stop)

    def first(self) -> Buffer | None:
        """Return the first `FIRST` bytes, or all there are; None if there is no file.

        Those of a file on another machine are kept for `head`, until `forget_head` is called.
        """
        if self._head is None:
            parts = self._parts([(0, FIRST)])
            if parts is None:
                return None
            self._head = self._known(self._answer(lambda: parts), FIRST)
        head = self._head
        if self.is_local:
            self._head = None
        return head

    def keep_head(self, stop: int) -> Buffer:
        """Return what `head` returns, and keep it until `forget_head` is called."""
        self._head = head = self.head(stop)
        return head

    @property
    def kept_head(self) -> Buffer | None:
        """The first bytes, if they are kept."""
        return self._head

    def forget_head(self) -> None:
        """Forget the bytes that `first` or `keep_head` has kept."""
        self._head = None

    def _known(self, parts: Buffers, stop: int) -> Buffer:
        (part,) = parts
        if self.size is None:
            self.size = len(part) if len(part) < stop else self.store.size(self.key)
        return part

    def read_into(self, out: memoryview, start: int) -> None:
        """Fill `out` from byte `start` on. Raises what `read` raises."""
        if self._pinned():
            (part,) = self.read([(start, start + out.nbytes)])
            out.cast("B")[:] = part
            return
        found = self._answer(lambda: verbs.read_into(self.store, self.key, out, start))
        if found < out.nbytes:
            raise self.too_short(start + out.nbytes)

    def _parts(self, spans: Sequence[Span]) -> Buffers | None:
        if not self._pinned():
            if len(spans) == 1 and self.is_local:
                part = self.store.get(self.key, spans[0])
                return None if part is None else [part]
            return verbs.get_spans(self.store, self.key, spans)
        try:
            parts = self._reads(spans)  # type: ignore[misc]
        except ConflictError as error:
            raise self._changed("another version", "the one that was opened") from error
        if isinstance(parts, Parts) and parts.size is not None:
            if self.size is None:
                self.size = parts.size
            elif self.size != parts.size:
                raise self._changed(f"{parts.size} bytes", f"{self.size} bytes")
        return parts

    def _answer(self, ask: Callable[[], T | None]) -> T:
        answer = ask()
        if answer is None:
            raise self._missing()
        if self.is_local:
            self._check_local()
        elif not self._is_checked:
            self._check_marker()
            # Where a stamp takes a request, it is asked for once.
            self._is_checked = self._pinned() or self.store.features.concurrency > 1
        return answer

    def _pinned(self) -> bool:
        """Whether all reads are of one version, that of the first of them."""
        if not self._has_asked:
            self._reads = None if self.is_local else verbs.pinned(self.store, self.key)
            self._has_asked = True
        return self._reads is not None

    # -- what has changed ----------------------------------------------------------------

    def _status(self) -> tuple[int, tuple[int, int, int]]:
        """Return size and marker: both times of the last change, and the number of the file, or 0.

        Some file systems give the same file another number from time to time (`sshfs`), and other machines may see
        another one. So it is compared only if a new file in its place could have the same times.
        """
        now = time.time_ns()
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise self._missing() from error
        _, number, size, modified, changed = files.identity(status)
        return size, (modified, changed, number if files.unsettled(now, modified, changed) > 0 else 0)

    def _check_local(self) -> None:
        if self.size is None and self.marker is None:
            return
        try:
            _, number, size, modified, changed = files.identity(os.stat(self.path))
        except OSError as error:
            raise self._missing() from error
        if self.size not in {None, size}:
            raise self._changed(f"{size} bytes", f"{self.size} bytes")
        if self.marker is None:
            return
        if self.marker not in {(modified, changed, number), (modified, changed, 0)}:
            raise self._changed(_shown((modified, changed, number)), _shown(self.marker))

    def _check_marker(self) -> None:
        if self.marker is not None and (found := verbs.stamp(self.store, self.key)) not in {None, self.marker}:
            raise self._changed(f"version {found}", f"version {self.marker}")

    def _changed(self, found: str, expected: str) -> StaleError:
        return StaleError(
            f"the file {self.path} has changed since it was opened",
            store=repr(self.store),
            key=self.key,
            found=found,
            expected=expected,
            remedy=_REMEDY,
        )

    def _missing(self) -> StoreError:
        return StoreError(f"the file {self.path} does not exist", store=repr(self.store), key=self.key)

    def too_short(self, stop: int) -> StoreError:
        """Return the error for a part that ends behind the file."""
        return StoreError(
            f"the file {self.path} ends before its data do",
            store=repr(self.store),
            key=self.key,
            found="fewer bytes" if self.size is None else f"{self.size} bytes",
            expected=f"at least {stop} bytes",
            remedy="is it complete? Copy or download it again",
        )

    # -- the object itself -----------------------------------------------------------------

    def __reduce__(self) -> tuple[Any, ...]:
        if self._reads is not None and self.marker is None:
            self.marker = verbs.stamp(self.store, self.key)
            self.read([(0, min(1, self.size or 0))])  # that stamp is of the version that was opened
        return File, (self.store, self.key, self.size, self.marker)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, File) and self._place() == other._place()

    def __hash__(self) -> int:
        return hash(self.key)

    def _place(self) -> tuple[Any, ...]:
        return self.store, self.key, self.size, self.marker

    def __repr__(self) -> str:
        return f"File({self.path!r})"


def _shown(marker: object) -> str:
    """Return a marker in words, with what of it can differ."""
    match marker:
        case (modified, changed, number):
            return f"changed at {modified} ns, inode at {changed} ns" + (f", number {number}" if number else "")
    return f"version {marker}"
