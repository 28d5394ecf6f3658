"""Where references are written: whole or not at all.

A file is written by one `set` of a store, which is atomic everywhere. A directory is made elsewhere, and put into place
by renaming, the document that makes it a set of references last. In object stores it is uploaded in that order.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from omnizarr.errors import NodeExistsError, Remedy, StoreError
from omnizarr.stores import LocalStore, Store, resolve, verbs
from omnizarr.stores.local import staging
from omnizarr.stores.remote import references as reference_store
from omnizarr.stores.remote.reference_sets import METADATA
from omnizarr.stores.urls import LOCAL, local_path, scheme_of


@dataclass(frozen=True, slots=True)
class Destination:
    """A place for references.

    Attributes
    ----------
    text : str
        As the user named it.
    store : Store
        In which the file or directory will be.
    name : str
        Its key there.
    path : Path, optional
        Its absolute path, if it is on this machine.
    folder : str
        The path or URL, with a slash, of the directory that it is in.
    """

    text: str
    store: Store
    name: str
    path: Path | None
    folder: str

    @classmethod
    def of(cls, given: str | os.PathLike[str], storage_options: Mapping[str, Any] | None) -> Destination:
        """Return the place for a path or URL."""
        text = os.fspath(given)
        local = text if scheme_of(text) is None else local_path(text) if scheme_of(text) in LOCAL else None
        if local is not None:
            path = Path(os.path.normpath(Path(local).expanduser().absolute()))
            return cls(text, LocalStore(path.parent), path.name, path, f"{path.parent.as_posix().rstrip('/')}/")
        above, _, name = text.rstrip("/").rpartition("/")
        store, base = resolve(above, "a", storage_options)
        key = f"{base}/{name}" if base else name
        return cls(text, store, key, None, f"{above}/")

    def check(self, *, is_directory: bool, overwrite: bool) -> None:
        """Raise NodeExistsError if there is something that may not be replaced."""
        path, is_there = self.path, False
        if path is None:
            keys = (self.name, f"{self.name}/{METADATA}") if is_directory else (self.name,)
            is_there = not overwrite and any(map(self.store.exists, keys))
        elif path.is_dir():
            is_there = next(path.iterdir(), None) is not None
            if not is_directory or (is_there and not reference_store.is_set(os.fspath(path))):
                raise self._in_the_way("a directory that holds no references")
        elif os.path.lexists(path):
            is_there = True
            if is_directory:
                raise self._in_the_way("a file")
        if is_there and not overwrite:
            raise self._exists()

    def _in_the_way(self, what: str) -> NodeExistsError:
        remedy = "move it away, or choose another name"
        return NodeExistsError(f"{what} is in the way", store=self.text, remedy=remedy)

    def _exists(self) -> NodeExistsError:
        remedy = Remedy("pass {overwrite} to replace them", overwrite=True)
        return NodeExistsError("the references exist already", store=self.text, remedy=remedy)

    def write_file(self, write: Callable[[BinaryIO], None], *, overwrite: bool) -> int:
        """Store what `write` writes to a file, and return its size."""
        with tempfile.TemporaryFile() as file:
            write(file)
            file.flush()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
                if overwrite:
                    self.store.set(self.name, view)
                elif not verbs.set_if_absent(self.store, self.name, view):
                    raise self._exists()
                return len(view)

    @contextmanager
    def folder_for(self) -> Iterator[Folder]:
        """Give a store for what will be in the directory. It is put into place if the block ends well."""
        if self.path is None:
            with tempfile.TemporaryDirectory(prefix="omnizarr-", ignore_cleanup_errors=True) as path:
                made = Folder(path)
                yield made
                self._upload(LocalStore(path))
            return
        is_new, is_done = not self.path.exists(), False
        try:
            with staging.staged(LocalStore(self.path)) as stage:
                yield Folder(stage.store.root)
                is_done = stage.exchange("", _turn)
        finally:
            if is_new and not is_done:
                with suppress(OSError):
                    self.path.rmdir()
        if not is_done:
            raise StoreError("the files cannot be renamed", store=self.text)

    def _upload(self, made: LocalStore) -> None:
        """Replace the directory: the document that makes it a set of references is removed first, and written last."""
        document, prefix = f"{self.name}/{METADATA}", f"{self.name}/"
        if self.store.exists(document):
            self.store.delete(document)
            verbs.delete_prefix(self.store, prefix)
        keys = sorted(made.list(), key=lambda key: key == METADATA)
        verbs.set_many(self.store, ((prefix + key, made.get(key) or b"") for key in keys))


def _turn(name: str) -> int:
    """Return when a name is put into place: the document that makes a directory a set of references last."""
    return int(name == METADATA)


class Folder:
    """A directory of this machine that is being made."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self.nbytes = 0
        """Bytes that were written."""

    def file(self, name: str) -> str:
        """Return the path of a new file in it."""
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.fspath(path)

    def done(self, name: str) -> None:
        """Count a file."""
        self.nbytes += (self._path / name).stat().st_size
