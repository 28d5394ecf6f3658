"""Keep the old values that a repair changes, and restore them.

A directory: ``journal.jsonl`` records the old and the new value of each change before it is made;
``values/`` has the old values; ``account.json`` is written at the end. A repair that was killed can be undone as well:
whether a change was made shows the value that exists now.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from omnizarr.errors import Remedy, StoreError
from omnizarr.stores import LocalStore, Store, ZipStore
from omnizarr.stores.base import RESERVED, Buffer, is_key

ACCOUNT: Final = "account.json"
JOURNAL: Final = "journal.jsonl"
_VERSION: Final = 1
_KEPT: Final = re.compile(r"values/[0-9]+").fullmatch
_OURS: Final = re.compile(re.escape(RESERVED) + r"[^/\\\0]+").fullmatch
_MARK: Final = ".omnizarr-repair-"
"""Infix of the names of backup directories, after the name of the hierarchy."""
_KINDS: Final = ("directory", "zip")
_WINDOW: Final = 2**20
"""Bytes of a journal that are read at once. No line is longer."""
_MARKERS: Final = ("zarr.json", ".zgroup", ".zarray", ".zmetadata")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A change of one key.

    Attributes
    ----------
    code, path, key : str
    lock : str
        Key to be locked.
    kept : str or None
        File with the old value, relative to the backup; None if there was no value.
    before, after : str or None
        SHA-256 of old and new value; None for no value.
    is_file : bool
        `key` is the path of a file that is not a key: one of our own temporary files.
    """

    code: str
    path: str
    key: str
    lock: str
    kept: str | None
    before: str | None
    after: str | None
    is_file: bool = False


def digest(value: Buffer | None) -> str | None:
    """Return what tells a value from others; None for none."""
    return None if value is None else sha256(value).hexdigest()


def base_of(store: Store) -> Store:
    """Return the store below all wrappers."""
    inner = getattr(store, "store", None)
    return base_of(inner) if isinstance(inner, Store) else store


def place_of(store: Store) -> dict[str, str] | None:
    """Return a description of a store, to open it again; None if this is not possible."""
    base = base_of(store)
    if isinstance(base, LocalStore):
        return {"kind": "directory", "path": str(directory_of(store)), "prefix": ""}
    if isinstance(base, ZipStore) and isinstance(base.path, str):
        return {"kind": "zip", "path": base.path, "prefix": _prefix(store, base)}
    return None


def directory_of(store: Store) -> Path | None:
    """Return the directory in which keys are paths; None if there is none."""
    base = base_of(store)
    return Path(base.root) / _prefix(store, base) if isinstance(base, LocalStore) else None


def _prefix(store: Store, base: Store) -> str:
    """Return at which path in the store below all wrappers the keys begin."""
    return store.origin()[1].removeprefix(base.origin()[1]).strip("/")


@dataclass(slots=True)
class Backup:
    """Where old values are kept. The directory is made with the first of them.

    Parameters
    ----------
    store : Store
    folder : Path or None
        None: beside the store.
    """

    store: Store
    folder: Path | None
    _count: int = field(default=0, init=False)

    def keep(self, entry: dict[str, Any], old: Buffer | None, new: Buffer | None) -> str:
        """Keep an old value, and note which comes in its place; return the file it is in, "" if there was none.

        Raises StoreError if that cannot be done: then nothing must be changed.
        """
        try:
            folder = self._begin()
            kept = None
            if old is not None:
                kept = f"values/{self._count:06}"
                _write(folder / kept, old)
            line = Entry(kept=kept, before=digest(old), after=digest(new), **entry)
            _append(folder / JOURNAL, {name: getattr(line, name) for name in Entry.__slots__})
        except OSError as error:
            raise StoreError(
                f"the old values cannot be kept: {error.strerror or error}",
                store=str(self.folder),
                remedy=Remedy("give another directory by {backup}", backup=...),
            ) from error
        self._count += 1
        return kept or ""

    def finish(self, account: str) -> None:
        """Write the report beside the old values, if there are any."""
        if self._count and self.folder is not None:
            _write(self.folder / ACCOUNT, account.encode())

    @property
    def place(self) -> str | None:
        """Where the old values are; None if there are none."""
        return str(self.folder) if self._count else None

    def _begin(self) -> Path:
        if self._count and self.folder is not None:
            return self.folder
        if self.folder is None:
            self.folder = _beside(self.store)
        if (self.folder / JOURNAL).exists():
            raise StoreError(
                "another repair has its old values there", store=str(self.folder), remedy="give another directory"
            )
        (self.folder / "values").mkdir(parents=True, exist_ok=True)
        self.folder = self.folder.absolute()
        _append(self.folder / JOURNAL, {"omnizarr_repair": _VERSION, "store": place_of(self.store)})
        return self.folder


def _beside(store: Store) -> Path:
    """Return a directory beside a store, and outside of all hierarchies, that does not exist yet."""
    there = place_of(store)
    if there is None:
        raise StoreError(
            "there is no place beside this store to keep old values in",
            store=str(store),
            remedy=Remedy("give a directory by {backup}", backup=...) | Remedy("{backup} to keep none", backup=False),
        )
    place = Path(there["path"])
    while place.parent != place and any((place.parent / name).exists() for name in _MARKERS):
        place = place.parent
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    name = f"{place.name}{_MARK}{stamp}"
    folder, number = place.parent / name, 1
    while folder.exists():
        number += 1
        folder = place.parent / f"{name}-{number}"
    return folder


def _write(path: Path, value: Buffer) -> None:
    with path.open("wb") as file:
        file.write(value)
        file.flush()
        os.fsync(file.fileno())


def _append(path: Path, line: dict[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(account: str | os.PathLike[str]) -> tuple[Path, dict[str, str] | None, list[Entry]]:
    """Return the directory, the hierarchy and the changes of a backup, given the directory or the report in it.

    Raises StoreError if it is not a backup.
    """
    folder = Path(account)
    if not folder.is_dir():
        folder = folder.parent
    try:
        first, *lines = _lines(folder)
        place = _checked_place(first)
        entries = [Entry(**line) for line in lines]
        for entry in entries:
            _check_entry(entry)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, StoreError) as error:
        raise StoreError(
            "there is no account of a repair here",
            store=str(account),
            found=str(error),
            expected=f"the directory that a repair has left, or {ACCOUNT} in it",
        ) from error
    return folder, place, entries


def kept_value(folder: Path, entry: Entry) -> bytes | None:
    """Return the old value of a change. Raises StoreError if it is not the one that was kept."""
    old = None if entry.kept is None else LocalStore(folder, read_only=True).get(entry.kept)
    if digest(old) != entry.before:
        raise StoreError("an old value that was kept is damaged", store=str(folder), key=entry.key)
    return None if old is None else bytes(old)


def lies_beside(folder: Path, place: Mapping[str, str]) -> bool:
    """Return whether a directory with old values lies and is called as a repair of this hierarchy would have it.

    Anybody can write an account, and name any place in it. Only the hierarchy beside is taken from it.
    """
    name, mark, _ = os.path.realpath(folder).rpartition(_MARK)
    path = place["path"]
    # Neither the hierarchy nor a directory on the way to the place in it may be a link.
    there = os.path.realpath(path)
    if not mark or not Path(path).is_absolute() or (there != name and not there.startswith(name + os.sep)):
        return False
    if place["kind"] == "zip":
        return Path(there).is_file()
    return Path(there).is_dir() and any((Path(name) / marker).is_file() for marker in _MARKERS)


def _checked_place(first: dict[str, Any]) -> dict[str, str] | None:
    """Return the hierarchy of the first line."""
    if first.get("omnizarr_repair") != _VERSION:
        raise ValueError("an account of another version")
    place = first["store"]
    if place is None:
        return None
    kind, path, prefix = place["kind"], place["path"], place["prefix"]
    if kind not in _KINDS or not isinstance(path, str) or "\0" in path or not isinstance(prefix, str):
        raise ValueError(f"no place of a store: {place!r}")
    if prefix and not is_key(prefix):
        raise ValueError(f"no path in a store: {prefix!r}")
    return {"kind": kind, "path": path, "prefix": prefix}


def _check_entry(entry: Entry) -> None:
    """Refuse paths that lead out of the backup or the store: a report may come from anywhere."""
    texts = (entry.code, entry.path, entry.key, entry.lock)
    optional = (entry.kept, entry.before, entry.after)
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(text, str | None) for text in optional):
        raise ValueError(f"not text: {(*texts, *optional)!r}")
    if not isinstance(entry.is_file, bool):
        raise TypeError(f"neither a file nor a key: {entry.is_file!r}")
    if entry.kept is not None and not _KEPT(entry.kept):
        raise ValueError(f"no place of an old value: {entry.kept!r}")
    if entry.is_file:
        folder, _, name = entry.key.rpartition("/")
        if not _OURS(name) or (folder and not is_key(folder)):
            raise ValueError(f"no file of omnizarr: {entry.key!r}")
    elif not is_key(entry.key) or not is_key(entry.lock):
        raise ValueError(f"no key of a store: {entry.key!r}, {entry.lock!r}")


def _lines(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a journal that are whole. What comes after was torn, and its change was never made."""
    store = LocalStore(folder, read_only=True)
    at, rest = 0, b""
    while window := store.get(JOURNAL, (at, at + _WINDOW)):
        at += len(window)
        *whole, rest = (rest + bytes(window)).split(b"\n")
        for line in whole:
            yield json.loads(line)
        if len(rest) > _WINDOW:
            raise ValueError("a line that is too long")
    if not at:
        raise ValueError(f"no {JOURNAL}")
