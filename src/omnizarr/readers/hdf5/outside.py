"""Other files that an HDF5 file leads to: in its own directory or below, all links followed, unless more is allowed.

Spec: HDF5 Reference Manual, ``H5Lcreate_external``, ``H5Pset_external``, ``H5Pset_virtual``; HDF5 File Format
Specification, IV.A.2.h "The Data Storage - External Data Files Message".
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
from omnizarr.readers.hdf5.messages import Header
from omnizarr.readers.hdf5.source import decode
from omnizarr.stores import Store, trust
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.manifests import file as files
from omnizarr.stores.trust import Trust

_DEPTH: Final = 8  # virtual datasets of virtual datasets
_LINKS: Final = 16  # external links that one path may follow, as in libhdf5
_MOST_OPEN: Final = 256  # HDF5 files whose structure is kept
_SAME: Final = "."


class Outside(Exception):  # noqa: N818 - a reason, which becomes a note
    """A name leads out of the directory of the file.

    Attributes
    ----------
    place : str
        Where it leads.
    """

    def __init__(self, name: str, place: str = "") -> None:
        super().__init__(name)
        self.place = place or name


class Found(NamedTuple):
    """An object, and the file that it is in."""

    header: Header
    files: Files


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
    allowed : Trust, optional
        What the user allows, of the files of this machine.
    roots : tuple of Path, optional
        Directories with what may be read. The default is that of the file.

    Attributes
    ----------
    listed : list of File
        The file, and those to which manifests lead.
    """

    def __init__(
        self,
        file: File,
        known: dict[str, files.File] | None = None,
        depth: int = 0,
        *,
        allowed: Trust | None = None,
        roots: tuple[Path, ...] | None = None,
    ) -> None:
        self.file, self.depth = file, depth
        self.known: dict[str, files.File] = {} if known is None else known
        self.listed = [file.source.file]
        self._opened: dict[str, Files | None] = {}
        self._allowed = allowed or Trust(trust.INSIDE)
        store, key = file.source.store, file.source.key
        if isinstance(store, LocalStore):
            path = Path(store.real_root(), key)
            # The root has no links, so mostly one look suffices.
            real = path if "/" not in key and not path.is_symlink() else Path(os.path.realpath(path))
            key = str(real)
            if roots is None:
                roots = path.parent, real.parent, *map(Path, self._allowed.directories)
        self._roots = roots or ()
        self.known.setdefault(key, file.source.file)

    def place_of(self, file: files.File) -> int:
        """Return the number of a file among `listed`, to which it is added."""
        if file not in self.listed:
            self.listed.append(file)
        return self.listed.index(file)

    def raw(self, name: str) -> files.File | None:
        """Return a file; None if there is none. Raises Outside."""
        return self._at(name)

    def opened(self, name: str) -> Files | None:
        """Return an HDF5 file, and what it leads to in turn; None if there is none. Raises Outside, MetadataError."""
        if name == _SAME:
            return self._below(self.file, self._opened)
        found = self._opened.get(name)
        if found is None and name not in self._opened:
            file = self._at(name, is_hdf5=True)
            if file is not None:
                found = self._below(File(file.store, file.key, file))
            if len(self._opened) >= _MOST_OPEN:
                self._opened.clear()
            self._opened[name] = found
        return found

    def _below(self, file: File, opened: dict[str, Files | None] | None = None) -> Files:
        made = Files(file, self.known, self.depth + 1, allowed=self._allowed, roots=self._roots)
        made._opened = {} if opened is None else opened
        return made

    def check(self, name: str) -> None:
        """Raise Outside if a name leads out of the directory."""
        if name != _SAME:
            self._place(name, is_hdf5=True)

    def follow(self, group: Header, path: str) -> Found | None:
        """Return the object at a path, through external links; None if there is none.

        Raises Outside, and MetadataError if a file is broken.
        """
        here = self
        found = self.file.trace(group, path)
        for _ in range(_LINKS):
            if not isinstance(found, tuple):
                return None if found is None else Found(found, here)
            link, rest = found
            other = here.opened(link.file)
            if other is None:
                return None
            here, path = other, f"{link.target}/{rest}"
            found = here.file.trace(here.file.root, path)
        raise here.file.source.broken(group.address, "external links lead too far", found=path)

    def dataset(self, name: str, path: str) -> tuple[Dataset, Files] | None:
        """Return a dataset of an HDF5 file; None if there is none. Raises Outside, MetadataError."""
        file = self.opened(name)
        found = None if file is None else file.follow(file.file.root, path)
        if found is None:
            return None
        header, there = found
        if there.depth > _DEPTH:
            raise there.file.source.broken(header.address, "virtual datasets lead too deep", found=there.depth)
        return there.file.dataset(header), there

    def _at(self, name: str, *, is_hdf5: bool = False) -> files.File | None:
        """Return a file by its name; None if there is none. Raises Outside."""
        place = self._place(name, is_hdf5=is_hdf5)
        if place is None:
            return None
        store, key, named = place
        found = self.known.get(named)
        if found is None:
            if not store.exists(key):
                return None
            found = files.File.of(store, key)
            found.head(1)  # after that, its size is known
            self.known[named] = found
        return found

    def _place(self, name: str, *, is_hdf5: bool) -> tuple[Store, str, str] | None:
        """Return where a file is: its store, its key there, and its key in `known`; None if it is not there.

        Raises Outside.
        """
        source = self.file.source
        folder = posixpath.dirname(source.key)
        if isinstance(source.store, LocalStore):
            root = source.store.real_root()
            path = self._path(name, Path(root, folder), is_hdf5=is_hdf5)
            if path is None:
                return None
            if path.is_relative_to(root):
                return source.store, path.relative_to(root).as_posix(), str(path)
            return LocalStore(path.parent, read_only=True), path.name, str(path)
        joined, plain = posixpath.normpath(name), name.replace("\\", "/")
        if posixpath.isabs(plain):
            if not is_hdf5:
                return None
            joined = posixpath.basename(plain)  # as libhdf5, which looks beside the file then
        if joined.split("/")[0] == ".." or "\\" in joined:
            raise Outside(name)
        key = posixpath.join(folder, joined)
        return source.store, key, key

    def _path(self, name: str, own: Path, *, is_hdf5: bool) -> Path | None:
        """Return the path of a file of this machine, all links followed; None if there is none. Raises Outside.

        It is looked for beside the file, and an HDF5 file then where libhdf5 looks for it: also by its last name, if
        that is an absolute one, in the working directory, and beside the file to which a link of the file leads.
        """
        places = [own / name]
        if is_hdf5:
            plain = name.replace("\\", "/")
            last = posixpath.basename(plain) if posixpath.isabs(plain) else name
            real = Path(os.path.realpath(own / posixpath.basename(self.file.source.key))).parent
            places += [own / last, Path(last).absolute(), real / last]
        path = next((each for each in places if os.path.lexists(each)), None)
        if path is None and Path(name).is_absolute():
            return None
        path = places[0] if path is None else path
        real = Path(os.path.realpath(path))
        if not self._allowed.is_complete and not trust.is_inside(real, self._roots):
            raise Outside(name, str(path))
        return real if real.exists() else None


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
