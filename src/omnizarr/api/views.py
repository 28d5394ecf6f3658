"""Views: many arrays as one, kept in a small file that names them."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnizarr.api.opening import open_array
from omnizarr.errors import JoinError, NodeExistsError, NodeNotFoundError, ReadOnlyError, ValueTypeError
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.lazy import documents
from omnizarr.nodes.lazy.deferred import Sources
from omnizarr.nodes.lazy.store import LazyStore
from omnizarr.nodes.lazy.view import LazyArray
from omnizarr.stores import Store, bounded, kinds, resolve, trust, verbs
from omnizarr.stores.urls import parse, scheme_of

if TYPE_CHECKING:
    from omnizarr.stores.kinds import Place

_MOST_DEEP: Final = 32
"""Views within views."""
_within: ContextVar[tuple[str, ...]] = ContextVar("omnizarr_views", default=())
"""The views whose sources are being opened."""


def save_view(
    path: str | os.PathLike[str],
    view: Group | LazyArray,
    *,
    overwrite: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Save many arrays as one in a small file. It names the sources, and holds no elements of theirs.

    `omnizarr.open`, and everything else that takes a path, opens the file as the group or array that it was. No source
    is opened before its elements are needed. Its shape, data type and metadata are compared then, and size and time of
    a source that is one file, such as a zip archive: if they changed since the view was saved, that is an error
    (`StaleError`) which names the source.

    Parameters
    ----------
    path : str or os.PathLike
        Path or URL of the file. It ends in ``.zview``.
    view : Group or LazyArray
        What `omnizarr.combine`, `concat`, `stack` or `block` returned, or a selection of it.
    overwrite : bool
        Whether to replace an existing file.
    storage_options : mapping, optional
        For URLs, as for `omnizarr.open`.

    Raises
    ------
    JoinError
        If a source has no path or URL, as those in memory.
    NodeExistsError
        If the file exists, and `overwrite` is False.
    ValueError
        If the name has another ending.

    Notes
    -----
    Sources in the directory of the file, or below, are named by relative paths: move or copy them together. A file that
    leads elsewhere is opened only with ``storage_options={"references": "trusted"}``, or a list of directories and URLs
    that you trust, because a stranger's file could name any file of yours.

    Chunks that are replaced in a directory or an object store are read as they are. In a file, they are noticed when it
    is opened. Copy SQLite databases together with their times, such as with ``cp -p``.

    Elements that are in no store, such as the coordinate that `combine` makes, are in the file.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import omnizarr
    >>> folder = tempfile.TemporaryDirectory()
    >>> paths = [os.path.join(folder.name, f"{year}.zarr") for year in (2020, 2021)]
    >>> for year, path in zip((2020, 2021), paths):
    ...     omnizarr.save_array(path, np.full(3, year))
    >>> view = os.path.join(folder.name, "years.zview")
    >>> omnizarr.save_view(view, omnizarr.concat(paths))
    >>> omnizarr.open(view)[2:4]
    array([2020, 2021])
    >>> folder.cleanup()
    """
    text = os.fspath(path)
    if not text.endswith(kinds.VIEW):
        raise ValueError(f"{text!r}: expected a name that ends in {kinds.VIEW}")
    if isinstance(view, LazyArray):
        store = LazyStore({"": view})
    elif isinstance(view, Group | Array) and isinstance(view.store, LazyStore) and not view.path.strip("/"):
        store = view.store
    else:
        raise ValueTypeError(
            "only lazy arrays, and groups of combine, can be saved as a view",
            found=str(view),
            expected="what combine, concat, stack, block or array.lazy return",
        )
    base = _folder(text)
    folder, name = _placed(text, "a", storage_options)
    document = documents.dumped(store, lambda place: _relative(place, base))
    if overwrite:
        folder.set(name, document)
    elif not verbs.set_if_absent(folder, name, document):
        raise NodeExistsError("the file exists", store=text, remedy="pass overwrite=True to replace it")


def open_place(place: Place) -> tuple[Store, str]:
    """Return the store for a saved view."""
    text = place.text if place.path is None else os.path.abspath(place.path)
    if not place.read_only:
        raise ReadOnlyError("saved views are read-only", store=text, remedy="open it in mode 'r'")
    above = _within.get()
    if text in above or len(above) >= _MOST_DEEP:
        raise JoinError("a view contains itself", store=text, found=" in ".join([text, *reversed(above)]))
    store, key = place.file()
    value = bounded.document(store, key)
    if value is None:
        raise NodeNotFoundError("there is no such file", store=text)
    opening = _Opening(text, trust.of(place.options.get("references")), place.options, above)
    return documents.loaded(bytes(value), text, opening.place, Sources(opening)), ""


@dataclass(frozen=True, slots=True)
class _Opening:
    """How the sources of a view are opened.

    Attributes
    ----------
    document : str
        Path or URL of the view.
    allowed : Trust
        Where it may lead besides its own directory or server.
    options : dict
        The user's `storage_options`.
    above : tuple of str
        The views that the view is within.
    """

    document: str
    allowed: trust.Trust
    options: Mapping[str, Any]
    above: tuple[str, ...]

    def place(self, given: str) -> str:
        """Return the place of a source that the view names. Raises StoreAccessError if it leads elsewhere."""
        base = _folder(self.document)
        scheme = scheme_of(given)
        if scheme is None and scheme_of(base) is None:
            if not os.path.isabs(given) and os.pardir not in given:
                return f"{base}/{given}"  # links are followed and looked at when it is opened
            return self._checked(os.path.normpath(os.path.join(base, given)))
        return self._checked(_below(base, given) if scheme is None else given)

    def _checked(self, place: str) -> str:
        if scheme_of(place) is None:
            inside = [Path(_folder(self.document)), *map(Path, self.allowed.directories)]
            is_allowed = scheme_of(self.document) is None and trust.is_inside(Path(place), inside)
        else:
            is_allowed = self.allowed.covers(place) or trust.is_same_place(place, self.document)
        if not (is_allowed or self.allowed.is_complete):
            raise trust.refused_target(place)
        return place

    def __call__(self, place: str, path: str) -> Array:
        """Open a source."""
        token = _within.set((*self.above, self.document))
        try:
            options = {**self.options} or None
            return open_array(self._checked(place), path=path or None, mode="r", storage_options=options)
        finally:
            _within.reset(token)


def _placed(text: str, mode: str, storage_options: Mapping[str, Any] | None) -> tuple[Store, str]:
    if scheme_of(text) is None:
        folder, name = os.path.split(os.path.abspath(text))
    else:
        folder, _, name = text.rpartition("/")
    store, path = resolve(folder, mode, storage_options)
    return store, f"{path}/{name}" if path else name


def _folder(text: str) -> str:
    return os.path.dirname(os.path.abspath(text)) if scheme_of(text) is None else text.rpartition("/")[0]


def _relative(place: str, base: str) -> str:
    """Return a place as seen from a directory or URL, if it is below; otherwise the whole."""
    if scheme_of(base) is None and scheme_of(place) is None:
        place = os.path.abspath(place)
        relative = os.path.relpath(place, base)
        return place if relative.startswith(os.pardir) else Path(relative).as_posix()
    return place.removeprefix(f"{base}/")


def _below(base: str, place: str) -> str:
    parts = parse.urlsplit(base)
    return parts._replace(path=posixpath.normpath(f"{parts.path}/{place}")).geturl()
