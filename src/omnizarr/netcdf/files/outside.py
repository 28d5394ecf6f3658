"""References from an HDF5 file to other files: external links, external storage, virtual datasets.

All are found before anything follows them, as netCDF-C does when it opens a file. Names are looked for where HDF5 looks
for them.

Spec: HDF5 Reference Manual, ``H5Lcreate_external``, ``H5Pset_external``, ``H5Pset_virtual``.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from omnizarr.errors import MetadataError
from omnizarr.netcdf.files.libraries import h5py
from omnizarr.stores import trust
from omnizarr.stores.trust import Trust

_MOST: Final = 1_000_000
"""Members of groups in one file, counted once for each way that leads to them."""


class Found(NamedTuple):
    """What is missing.

    Attributes
    ----------
    missing : dict
        Files, by the name of each virtual dataset that needs one. There the dataset has fill values.
    left_out : dict
        Why a member cannot be read at all, by its name.
    """

    missing: dict[str, str]
    left_out: dict[str, str]


def check(path: str, allowed: Trust) -> Found:
    """Return which files are missing, and what leads to nothing.

    Raises
    ------
    StoreAccessError
        If something outside would be read, and the user allows that neither for all files nor for that directory.
    MetadataError
        If links lead to a group above, where netCDF-C would never end.
    """
    found = _Check(Path(path), allowed)
    found.file(Path(path))
    return Found(found.missing, found.left_out)


class _Check:
    def __init__(self, path: Path, allowed: Trust) -> None:
        self._store = str(path)
        self._roots = [path.parent, Path(os.path.realpath(path)).parent, *map(Path, allowed.directories)]
        self._is_trusted = allowed.is_complete
        self._seen: set[str] = set()
        self._count = 0
        self._soft: list[tuple[Any, str, Path, str, tuple[Any, ...]]] = []
        self.missing: dict[str, str] = {}
        self.left_out: dict[str, str] = {}

    def file(self, path: Path) -> None:
        """Check everything in a file, once."""
        real = os.path.realpath(path)
        if real in self._seen:
            return
        self._seen.add(real)
        with h5py.File(path, "r", locking="best-effort") as file:
            self._group(file, path, "", ())
            while self._soft:  # they may lead through external links, all of which have been checked
                self._follow(*self._soft.pop())

    def _group(self, group: Any, path: Path, name: str, above: tuple[Any, ...]) -> None:
        info = h5py.h5o.get_info(group.id)
        address = info.fileno, info.addr
        if address in above:
            raise self._odd(MetadataError, "a link leads to a group above it, again and again", name, group.name)
        for each in group:
            self._count += 1
            if self._count > _MOST:
                raise self._odd(MetadataError, "links lead to the same groups too often", name, f"over {_MOST} members")
            self._member(group, each, path, f"{name}/{each}", (*above, address))

    def _member(self, group: Any, key: str, path: Path, name: str, above: tuple[Any, ...]) -> None:
        link = group.get(key, getlink=True)
        if isinstance(link, h5py.SoftLink):
            self._soft.append((group, key, path, name, above))
        elif isinstance(link, h5py.ExternalLink):
            target = self._target("external link", link.filename, path, name)
            if target is None:
                self.left_out[name] = f"an external link leads to {link.filename}, which is missing"
                return
            self.file(target)
            with h5py.File(target, "r", locking="best-effort") as other:
                if link.path not in other:
                    self.left_out[name] = f"an external link leads to {link.path} in {link.filename}, which has no such"
                elif isinstance(other[link.path], h5py.Group):
                    self._group(other[link.path], target, name, above)
        else:
            self._follow(group, key, path, name, above)

    def _follow(self, group: Any, key: str, path: Path, name: str, above: tuple[Any, ...]) -> None:
        try:
            found = group[key]
        except KeyError:
            link = group.get(key, getlink=True)
            self.left_out[name] = f"a link leads to {getattr(link, 'path', key)}, where nothing is"
            return
        if isinstance(found, h5py.Group):
            self._group(found, path, name, above)
        elif isinstance(found, h5py.Dataset):
            if found.shape is None:
                self.left_out[name] = "a dataset without a shape (h5py.Empty), which netCDF does not have"
                return
            created = found.id.get_create_plist()
            for number in range(created.get_external_count()):
                file = os.fsdecode(created.get_external(number)[0])
                if self._target("external storage", file, path, name) is None:
                    self.left_out[name] = f"its values are in the file {file}, which is missing"
                    return
            if created.get_layout() != h5py.h5d.VIRTUAL:
                return
            for number in range(created.get_virtual_count()):
                self._sources(created.get_virtual_filename(number), path, name)

    def _sources(self, file: str, path: Path, name: str) -> None:
        """Check the files of a virtual dataset; ``%b`` in a name means numbers from 0 on."""
        if file == ".":
            return
        for block in itertools.count():
            exact = file.replace("%b", str(block)).replace("%%", "%")
            source = self._target("virtual dataset", exact, path, name)
            if source is not None:
                if h5py.is_hdf5(source):  # anything else gives nothing
                    self.file(source)
            elif block == 0:
                self.missing[name] = exact
            if source is None or "%b" not in file:
                return

    def _target(self, what: str, file: str, path: Path, name: str) -> Path | None:
        """Return the file that HDF5 opens by a name; None if it is missing."""
        candidates = list(_candidates(what, file, path))
        found = next((each for each in candidates if each.exists()), None)
        if not self._is_trusted and not trust.is_inside(found or candidates[0], self._roots):
            raise trust.refused(f"the {what}", str(found or candidates[0]), store=self._store, path=name[1:])
        return found

    def _odd(self, kind: Any, why: str, name: str, found: str) -> Exception:
        error: Exception = kind(why, store=self._store, path=name[1:], found=found)
        return error


def _candidates(what: str, file: str, path: Path) -> Iterator[Path]:
    """Yield the places where HDF5 looks for a file, in its order."""
    if what == "external storage":
        yield Path(file).absolute()
        return
    own = Path(os.path.realpath(path)).parent
    if Path(file).is_absolute():
        yield Path(file)
        file = Path(file).name
    yield path.parent / file
    yield Path(file).absolute()
    yield own / file
