"""HDF5 and netCDF-4 files as stores: each group and dataset has a document of Zarr v3, and chunks are read in place.

Dimensions are those of netCDF or of HDF5's dimension scales. Attributes that only mark them are hidden, as the engines
of xarray do. What cannot be shown is in `HDF5Store.notes`, by name.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from omnizarr.errors import MetadataError, OmnizarrError, ReadOnlyError
from omnizarr.readers.hdf5.arrays import Shown
from omnizarr.readers.hdf5.contents import DOCUMENT, Contents, View
from omnizarr.readers.hdf5.file import File
from omnizarr.readers.hdf5.source import NEAR
from omnizarr.readers.hdf5.superblock import SIGNATURE
from omnizarr.stores import verbs
from omnizarr.stores.base import Buffer, Store, answers, as_prefix
from omnizarr.stores.kinds import Place
from omnizarr.stores.manifests import file as files
from omnizarr.stores.manifests import opening
from omnizarr.stores.manifests.store import ManifestStore

_DOCUMENTS: Final = (DOCUMENT, ".zarray", ".zattrs", ".zgroup")
_STARTS: Final = (0, 512, 1024, 2048)  # where a file is looked for, behind what others put before it
_HEAD: Final = _STARTS[-1] + len(SIGNATURE)


class Documents(Mapping[str, Buffer]):
    """Documents by key, and chunks of arrays by path that the reader makes when they are requested.

    `broken`: errors by the path of an object, for those who ask for its document or for one below.
    """

    def __init__(
        self,
        documents: Mapping[str, bytes],
        made: Mapping[str, Shown],
        broken: Mapping[str, MetadataError] | None = None,
    ) -> None:
        self._documents = documents
        self._made = made
        self._broken = broken or {}
        self._numbers: dict[str, frozenset[int]] = {}

    def __getitem__(self, key: str) -> Buffer:
        found = self._documents.get(key)
        if found is not None:
            return found
        if self._broken and key.endswith(f"/{DOCUMENT}"):
            self._check(key.rpartition("/")[0])
        path, number = self._find(key)
        return self._made[path].make(number)

    def _check(self, path: str) -> None:
        """Raise MetadataError if a path leads to something broken, or through it."""
        while path:
            error = self._broken.get(path)
            if error is not None:
                raise copy.copy(error)
            path = path.rpartition("/")[0]

    def __contains__(self, key: object) -> bool:
        try:
            return key in self._documents or self._find(str(key)) is not None
        except KeyError:
            return False

    def _find(self, key: str) -> tuple[str, int]:
        path, _, coords = key.rpartition("/c/") if "/c/" in key else (key.removesuffix("/c"), "", "")
        shown = self._made.get(path)
        if shown is None or shown.is_v2:
            path, coords, shown = self._find_v2(key)
        elif not coords and key != f"{path}/c":
            raise KeyError(key)
        parts = coords.split("/") if coords else []
        if len(parts) != len(shown.grid):
            raise KeyError(key)
        number = 0
        for part, count in zip(parts, shown.grid, strict=True):
            if not (part.isascii() and part.isdigit()) or (len(part) > 1 and part[0] == "0") or int(part) >= count:
                raise KeyError(key)
            number = number * count + int(part)
        if not (shown.has(number) if shown.has is not None else number in self._stored(path)):
            raise KeyError(key)
        return path, number

    def _find_v2(self, key: str) -> tuple[str, str, Shown]:
        """Return the array of Zarr v2 to which a key of a chunk belongs, and the coordinates in it."""
        path, coords = key, ""
        while path:
            path, _, last = path.rpartition("/")
            coords = f"{last}/{coords}" if coords else last
            shown = self._made.get(path)
            if shown is not None and shown.is_v2:
                if not shown.grid and coords == "0":
                    coords = ""
                return path, coords, shown
            if not (last.isascii() and last.isdigit()):
                break
        raise KeyError(key)

    def _stored(self, path: str) -> frozenset[int] | range:
        found = self._numbers.get(path)
        if found is None:
            numbers = self._made[path].numbers()
            if isinstance(numbers, range):
                return numbers
            found = self._numbers[path] = frozenset(numbers)
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self._documents
        for path, shown in self._made.items():
            for number in sorted(self._stored(path)):
                coords = []
                left = number
                for count in reversed(shown.grid):
                    left, at = divmod(left, count)
                    coords.append(str(at))
                if shown.is_v2:
                    yield "/".join((path, *(reversed(coords) if coords else "0")))
                else:
                    yield "/".join((path, "c", *reversed(coords)))

    def __len__(self) -> int:
        return len(self._documents) + sum(len(self._stored(path)) for path in self._made)


class _OfContents(Mapping[str, Buffer]):
    """Documents and chunks, found in the file when they are asked for."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._shown: tuple[View, Documents] | None = None

    def _of(self, view: View) -> Documents:
        if self._shown is None or self._shown[0] is not view:
            self._shown = view, Documents(view.documents, view.made, view.broken)
        return self._shown[1]

    def _at(self, key: str) -> Documents:
        """Return documents and chunks of which one is that of a key, if there is one."""
        path, _, name = key.rpartition("/")
        return self._of(self._contents.at(path if name in _DOCUMENTS else self._contents.dataset_above(key) or ""))

    def __getitem__(self, key: str) -> Buffer:
        return self._at(key)[key]

    def __contains__(self, key: object) -> bool:
        return key in self._at(str(key))

    def __iter__(self) -> Iterator[str]:
        return iter(self._of(self._contents.whole()))

    def __len__(self) -> int:
        return len(self._of(self._contents.whole()))


class _Manifests(Mapping[str, Any]):
    """Where chunks of arrays lie, found when they are asked for."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    def __getitem__(self, path: str) -> Any:
        return self._contents.at(path).manifests[path]

    def __contains__(self, path: object) -> bool:
        return path in self._contents.at(str(path)).manifests

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents.whole().manifests)

    def __len__(self) -> int:
        return len(self._contents.whole().manifests)


class HDF5Store(ManifestStore):
    """A read-only store of an HDF5 or netCDF-4 file. It needs no library for HDF5, and takes no lock.

    Parameters
    ----------
    store : Store
        The store that the file is in.
    key : str
        Its key there.
    file : File, optional
        What reads it, if a certain version of it is wanted.
    known : dict of str to File, optional
        The same for the files that it leads to, by key.

    Attributes
    ----------
    notes : tuple of str
        What of the file is not shown, or is shown as something else, by name.

    Raises
    ------
    NodeNotFoundError
        If there is no file.
    MetadataError
        If it is not HDF5, or is broken.
    """

    format = "HDF5"

    def __init__(
        self, store: Store, key: str, file: files.File | None = None, known: dict[str, files.File] | None = None
    ) -> None:
        self._contents = contents = Contents(File(store, key, file), known)
        # What reads the documents reads the chunks, so both are of one version.
        super().__init__(_OfContents(contents), {}, contents.outside.listed)
        self._manifests = _Manifests(contents)

    def attributes_of(self, path: str) -> dict[str, Any] | None:
        """Return the attributes of a node with their types: texts, numbers and vectors of NumPy, lists of texts."""
        return self._contents.at(path).typed.get(path)

    def about_node(self, path: str) -> Mapping[str, Any]:
        """Return the format, and what of an object is not shown. Only that is read."""
        notes = [note for note in self._contents.at(path).notes if note.startswith(f"/{path}: ")]
        return {"format": self.format, **({"notes": list(dict.fromkeys(notes))} if notes else {})}

    @answers(verbs.replaces_text)
    def _replaces_text(self, prefix: str, looks: bool) -> bool:  # noqa: FBT001
        """Return whether an array has U+FFFD in place of bytes that are not UTF-8."""
        path = as_prefix(prefix)[:-1]
        shown = self._contents.at(path).made.get(path)
        return shown is not None and shown.must_replace_text(looks=looks)

    def _all_notes(self) -> tuple[str, ...]:
        return tuple(self._contents.whole().notes)

    def _above(self, key: str) -> Iterator[str]:
        path = self._contents.dataset_above(key)
        if path is not None and path in self._manifests:
            yield path

    def _directory(self, prefix: str) -> Sequence[str]:
        """Return documents without reading the whole file, if they are those of an array, below which are none."""
        path = self._contents.dataset_above(f"{prefix}{DOCUMENT}")
        view = None if path is None else self._contents.at(path)
        if view is None or path not in view.manifests:
            return super()._directory(prefix)
        return (
            [] if prefix != f"{path}/" else [key for name in _DOCUMENTS if (key := f"{path}/{name}") in view.documents]
        )

    def __reduce__(self) -> tuple[Any, ...]:
        file = self._files[0]
        return HDF5Store, (file.store, file.key, file, self._contents.outside.known)

    def __repr__(self) -> str:
        return f"HDF5Store({self.place!r})"


def open_place(place: Place, file: files.File | None = None) -> tuple[Store, str] | None:
    """Return the store of an HDF5 file at a path or URL; None if it is none.

    `file` is the file, if it was found already.
    """
    if place.path is None:
        try:
            file = file or opening.remote(place)
        except OmnizarrError:
            return None
        store, key = (file.store, file.key) if file is not None else place.file()
        head = b"" if file is None else bytes(file.head(_HEAD))
    else:
        file = files.File.found(*place.file())
        if file is None:
            return None
        store, key = file.store, file.key
        head = bytes(file.keep_head(NEAR))  # with which reading begins
    if not any(head.startswith(SIGNATURE, start) for start in _STARTS):
        return None
    place.refuse_options() if place.path is not None else None
    if not place.read_only:
        raise ReadOnlyError(
            "an HDF5 file can only be read",
            store=place.text,
            remedy='open it with mode "r", and convert it to Zarr to change it',
        )
    return HDF5Store(store, key, file), ""
