"""Files of other formats, opened as stores: what their readers have in common.

A reader is a function ``read(file) -> Contents or None``; None if the file is of another format. omnizarr's own are
modules of `omnizarr.readers`; packages add theirs under the entry point ``omnizarr.readers``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from omnizarr.errors import ReadOnlyError
from omnizarr.stores.base import Buffer, Store
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.manifest import AnyManifest
from omnizarr.stores.manifests.store import Loader, ManifestStore

if TYPE_CHECKING:
    from omnizarr.stores.kinds import Place


class Contents(NamedTuple):
    """What a reader finds in a file.

    Attributes
    ----------
    documents : mapping of str to bytes
        Documents of Zarr by key, and chunks that the reader has made itself.
    manifests : mapping of str to Manifest, Strided or callable
        Where the chunks of arrays lie, by path; or what returns that when it is first needed.
    files : sequence of File
        The files, by number. Empty: the file itself.
    notes : sequence of str
        What of the file is not shown, or is shown as something else, by name.
    format : str
        The name of the format, as people know it.
    """

    documents: Mapping[str, Buffer]
    manifests: Mapping[str, AnyManifest | Loader]
    files: Sequence[File] = ()
    notes: Sequence[str] = ()
    format: str = ""


Reader: TypeAlias = Callable[[File], Contents | None]

_ROOM: Final = "omnizarr.readers"


def open_place(reader: Reader | str, place: Place, file: File | None = None) -> tuple[Store, str] | None:
    """Return the store of a file at a path or URL; None if it is of another format.

    A string names one of omnizarr's own readers. `file` is the file, if another reader has looked at it.
    """
    read = _own(reader) if isinstance(reader, str) else reader
    if place.path is not None:
        place.refuse_options()
    file = file or (File.at(place.path) if place.path is not None else remote(place))
    if file is None:
        return None
    try:
        contents = read(file)
    finally:
        file.forget_head()
    if contents is None:
        return None
    if not place.read_only:
        raise ReadOnlyError(
            "files of other formats can only be read",
            store=file.path,
            found=f"mode {place.mode!r}",
            remedy='open it with mode "r", and convert it to Zarr to change it',
        )
    store = ManifestStore(contents.documents, contents.manifests, contents.files or [file])
    store.notes, store.format = tuple(contents.notes), contents.format
    return store, ""


def remote(place: Place) -> File | None:
    """Return a file that is not on this machine, whose first bytes were read; None if there is none."""
    return File.found(*place._replace(mode="r").file())


def _own(name: str) -> Reader:
    read: Reader = import_module(f"{_ROOM}.{name}").read
    return read
