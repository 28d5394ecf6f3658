"""FITS files that are compressed as a whole: ``x.fits.gz``.

To find what is at the end of such a file, all of it must be decompressed. That is done once, when it is opened: into
memory if it is small, and otherwise into a temporary file, which is removed with the store. A few megabytes of the
compressed file are in memory at a time.
"""

from __future__ import annotations

import tempfile
import weakref
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnizarr.errors import (
    Function,
    NotRepresentableError,
    OmnizarrError,
    ReadOnlyError,
    Remedy,
    StoreError,
    StoreLimitError,
)
from omnizarr.readers.fits.contents import read
from omnizarr.readers.fits.headers import is_fits
from omnizarr.stores import verbs
from omnizarr.stores.base import Buffer, Extent, Store, answers
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.stores.manifests import opening
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.opening import Contents
from omnizarr.stores.manifests.store import ManifestStore

if TYPE_CHECKING:
    from omnizarr.stores.kinds import Place

_PART: Final = 1 << 22
_IN_MEMORY: Final = 1 << 26
_RATIO: Final = 128
_LEAST_LIMIT: Final = 1 << 30
"""A file may become `_RATIO` times as large, or as large as this."""
_MAGIC: Final = b"\x1f\x8b"
_GZIP: Final = 31
_NAME: Final = "x.fits"
_SLOW: Final = "slow: the file is compressed as a whole, and is decompressed each time it is opened"


class GzippedStore(ManifestStore):
    """The hierarchy of a FITS file that is compressed as a whole.

    Parameters
    ----------
    file : File
        The compressed file.
    contents : Contents
    unpacked : File
    """

    def __init__(self, file: File, contents: Contents, unpacked: File) -> None:
        super().__init__(contents.documents, contents.manifests, [unpacked], name=file.path)
        self._compressed = file
        self.notes, self.format = tuple(contents.notes), contents.format

    @answers(verbs.extents)
    def _extents(self, keys: Iterable[str]) -> Iterator[tuple[int, Extent | Buffer | None]]:
        """Raise NotRepresentableError: no chunk is a part of the file."""
        raise NotRepresentableError(
            "the bytes of a chunk are no part of a file as they are",
            store=repr(self),
            found="a file that is compressed as a whole",
            remedy=Remedy("copy it instead: {convert}", convert=Function("(source, target)")),
        )

    @answers(verbs.divided)
    def _divided(self, prefix: str) -> None:
        """Return None: smaller chunks are no parts of the file either."""

    def about(self) -> Mapping[str, Any]:
        """Return the format, what is not shown, and that opening takes long."""
        return {**super().about(), "access": _SLOW}

    def origin(self) -> tuple[Hashable, str]:
        """Return the identity of the compressed file."""
        data, path = self._compressed.store.origin()
        return data, f"{path}/{self._compressed.key}".strip("/")

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._compressed,)


def open_place(place: Place) -> tuple[Store, str] | None:
    """Return the store of a file at a path or URL; None if it is no FITS file in gzip."""
    if place.path is not None:
        place.refuse_options()
    file = File.at(place.path) if place.path is not None else opening.remote(place)
    store = None if file is None else _opened(file)
    if store is None:
        return None
    if not place.read_only:
        raise ReadOnlyError(
            "files of other formats can only be read", store=store.place, found=f"mode {place.mode!r}",
            remedy='open it with mode "r", and convert it to Zarr to change it',
        )  # fmt: skip
    return store, ""


def _again(file: File) -> Store:
    found = _opened(file)
    if found is None:
        raise StoreError("this is no FITS file in gzip any more", store=file.path)
    return found


def _opened(file: File) -> Store | None:
    head = bytes(file.head(_PART))
    file.forget_head()
    if not head.startswith(_MAGIC) or not is_fits(_begun(head)):
        return None
    folder, unpacked = _kept(file, head)
    contents = read(unpacked)
    if contents is None:
        return None
    store = GzippedStore(file, contents, unpacked)
    if folder is not None:
        weakref.finalize(store, folder.cleanup)
    return store


def _kept(file: File, head: bytes) -> tuple[tempfile.TemporaryDirectory[str] | None, File]:
    """Return the decompressed file, and the directory that it is in if it is not in memory."""
    folder: tempfile.TemporaryDirectory[str] | None = None
    parts: list[bytes] = []
    try:
        with ExitStack() as opened:
            write: Callable[[bytes], object] = parts.append
            size = 0
            for part in _unpacked(file, head):
                size += len(part)
                if folder is None and size > _IN_MEMORY:
                    folder = tempfile.TemporaryDirectory(prefix="omnizarr-")
                    target = opened.enter_context(Path(folder.name, _NAME).open("wb"))
                    target.writelines(parts)
                    parts, write = [], target.write
                write(part)
    except OSError as error:
        if isinstance(error, OmnizarrError):
            raise
        raise StoreError(f"the file cannot be decompressed into a temporary file: {error}", store=file.path,
                         remedy="decompress it with gunzip") from error  # fmt: skip
    if folder is not None:
        return folder, File.at(Path(folder.name, _NAME))
    return None, File.of(MemoryStore({_NAME: b"".join(parts)}, read_only=True), _NAME)


def _begun(head: bytes) -> bytes:
    """Return the first bytes of the file in gzip."""
    try:
        return zlib.decompressobj(_GZIP).decompress(head, 64)
    except zlib.error:
        return b""


def _unpacked(file: File, head: bytes) -> Iterator[bytes]:
    """Yield the file in parts. Raises StoreError if it is broken, and StoreLimitError if it becomes too large."""
    size, at, found = file.size or 0, len(head), 0
    most = max(_LEAST_LIMIT, _RATIO * size)
    unpacker = zlib.decompressobj(_GZIP)
    waiting = head
    while True:
        if not waiting:
            if at >= size:
                break
            stop = min(size, at + _PART)
            (piece,) = file.read([(at, stop)])
            waiting, at = bytes(piece), stop
        if unpacker.eof:  # another member, or zeros that fill a block of a tape
            waiting = waiting.lstrip(b"\0")
            if not waiting:
                continue
            unpacker = zlib.decompressobj(_GZIP)
        try:
            part = unpacker.decompress(waiting, _PART)
        except zlib.error as error:
            raise StoreError(f"the file is broken: {error}", store=file.path, expected="gzip") from error
        waiting = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        found += len(part)
        if found > most:
            raise StoreLimitError(
                "the file becomes too large when it is decompressed", store=file.path, found=f"over {most} bytes",
                expected=f"at most {_RATIO} times its {size} bytes, or {_LEAST_LIMIT} bytes",
                remedy="if you trust it, decompress it with gunzip",
            )  # fmt: skip
        if part:
            yield part
    if not unpacker.eof:
        raise StoreError("the file ends too early", store=file.path, expected="gzip", remedy="is it complete?")
