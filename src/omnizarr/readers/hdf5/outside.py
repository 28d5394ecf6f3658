"""Other files that an HDF5 file leads to: in its own directory, or below it, all links followed.

Spec: HDF5 Reference Manual, ``H5Pset_external``, ``H5Pset_virtual``; HDF5 File Format Specification, IV.A.2.h "The Data
Storage - External Data Files Message".
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from omnizarr.readers.hdf5 import heaps, messages
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.file import File
from omnizarr.readers.hdf5.source import decode
from omnizarr.stores import trust
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.manifests import file as files

_DEPTH: Final = 8  # virtual datasets of virtual datasets
_MOST_OPEN: Final = 256  # HDF5 files whose structure is kept
_SAME: Final = "."


class Outside(Exception):  # noqa: N818 - a reason, which becomes a note
    """A name leads out of the directory of the file."""


class Files:
    """The files that an HDF5 file may lead to.

    Parameters
    ----------
    file : File
        The HDF5 file itself.
    known : dict of str to File
        Those that were opened before, by key: all that is read of a file is of one version of it.
    depth : int
        How many files have led here.

    Attributes
    ----------
    listed : list of File
        The file, and those to which manifests lead.
    """

    def __init__(self, file: File, known: dict[str, files.File] | None = None, depth: int = 0) -> None:
        self.file, self.depth = file, depth
        self.known: dict[str, files.File] = {} if known is None else known
        self.listed = [file.source.file]
        self._opened: dict[str, Files | None] = {}

    def place_of(self, file: files.File) -> int:
        """Return the number of a file among `listed`, to which it is added."""
        if file not in self.listed:
            self.listed.append(file)
        return self.listed.index(file)

    def raw(self, name: str) -> files.File | None:
        """Return a file; None if there is none. Raises Outside."""
        key = self._key(name)
        return None if key is None else self._at(key)

    def opened(self, name: str) -> Files | None:
        """Return an HDF5 file, and what it leads to in turn; None if there is none. Raises Outside, MetadataError."""
        if name == _SAME:
            same = Files(self.file, self.known, self.depth + 1)
            same._opened = self._opened
            return same
        found = self._opened.get(name)
        if found is None and name not in self._opened:
            key = self._key(name)
            if key is None and posixpath.isabs(name.replace("\\", "/")):  # as libhdf5, which looks beside the file then
                key = self._key(posixpath.basename(name.replace("\\", "/")))
            file = None if key is None else self._at(key)
            if file is not None:
                found = Files(File(file.store, file.key, file), self.known, self.depth + 1)
            if len(self._opened) >= _MOST_OPEN:
                self._opened.clear()
            self._opened[name] = found
        return found

    def check(self, name: str) -> None:
        """Raise Outside if a name leads out of the directory."""
        if name != _SAME:
            self._key(name)

    def dataset(self, name: str, path: str) -> tuple[Dataset, Files] | None:
        """Return a dataset of an HDF5 file; None if there is none. Raises Outside, MetadataError."""
        file = self.opened(name)
        header = None if file is None else file.file.find(path)
        if file is None or header is None:
            return None
        if file.depth > _DEPTH:
            raise file.file.source.broken(header.address, "virtual datasets lead too deep", found=file.depth)
        return file.file.dataset(header), file

    def _at(self, key: str) -> files.File | None:
        found = self.known.get(key)
        if found is None:
            source = self.file.source
            if key == source.key:
                return source.file
            if not source.store.exists(key):
                return None
            found = files.File.of(source.store, key)
            found.head(1)  # after that, its size is known
            self.known[key] = found
        return found

    def _key(self, name: str) -> str | None:
        """Return the key of a file in the store; None if an absolute path leads out of the directory."""
        source = self.file.source
        folder = posixpath.dirname(source.key)
        if isinstance(source.store, LocalStore):
            own = Path(source.store.real_root(), folder)
            path = own / name
            if Path(name).is_absolute() and not os.path.lexists(path):
                return None
            place = trust.root_of(path, [own])
            if place is None:
                raise Outside(name)
            return posixpath.join(folder, place[1])
        joined = posixpath.normpath(name)
        if posixpath.isabs(joined):
            return None
        if joined.split("/")[0] == ".." or "\\" in joined:
            raise Outside(name)
        return posixpath.join(folder, joined)


# -- external storage -----------------------------------------------------------------


class Piece(NamedTuple):
    """A part of the elements of a dataset, in another file."""

    name: str
    offset: int
    length: int


def pieces(dataset: Dataset) -> list[Piece]:
    """Return where the elements of a dataset with external storage are, one after the other."""
    cursor = dataset.header.find(messages.EXTERNAL)
    if cursor is None:
        return []
    cursor.version("the list of external files", 1)
    cursor.skip(3)
    cursor.uint(2)
    count = cursor.uint(2)
    names = heaps.local(cursor.source, cursor.defined("the names of external files"))
    left = dataset.dataspace.count * dataset.datatype.size
    found = []
    for _ in range(count):
        name = decode(heaps.text_at(names, cursor.length()))
        offset, length = cursor.length(), cursor.length()
        found.append(Piece(name, offset, min(length, left)))
        left -= found[-1].length
    if left:
        cursor.fail("the external files have fewer bytes than the dataset", found=f"{left} bytes too few")
    return [each for each in found if each.length]


def read_pieces(parts: Iterable[tuple[files.File, int, int]], start: int, length: int) -> bytes:
    """Return bytes of what lies in parts of files, one after the other."""
    found = []
    for file, offset, size in parts:
        own = min(length, size - start)
        if own > 0:
            (part,) = file.read([(offset + start, offset + start + own)])
            found.append(bytes(part))
            length -= own
        start = max(0, start - size)
    return b"".join(found)
