"""Find the place of a path in its outermost hierarchy.

A path can lead to a node within a hierarchy: ``era5.zarr/ocean/temp``. A change there affects the groups above, which
keep copies of documents and lists of members. Therefore the store is opened at the outermost group.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from omnizarr.errors import OmnizarrError
from omnizarr.formats import DIALECTS
from omnizarr.nodes import detection, outside
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath, normalize
from omnizarr.stores import LocalStore, ZipStore, kinds, resolve
from omnizarr.stores.local.surroundings import files_in
from omnizarr.stores.resolve import refuse_other_format
from omnizarr.stores.urls import local_path, scheme_of

Mode = Literal["r", "r+", "a"]


@contextmanager
def opened(given: Any, path: str | None, mode: Mode, storage_options: Mapping[str, Any] | None) -> Iterator[StorePath]:
    """Give the place that a user means; a store that was opened for that is closed in the end.

    If the block fails, an archive stays as it was.
    """
    where = place(given, path, mode, storage_options)
    is_ours = isinstance(given, str | os.PathLike)
    try:
        yield where
    except BaseException:
        if is_ours and isinstance(where.store, ZipStore):
            where.store.discard()
        raise
    else:
        if is_ours:
            where.store.close()


def place(given: Any, path: str | None, mode: Mode, storage_options: Mapping[str, Any] | None = None) -> StorePath:
    """Return the place that a user means, in the outermost hierarchy that it is in.

    Examples
    --------
    >>> place({}, "ocean/temp", "a").path
    'ocean/temp'
    """
    if isinstance(given, Array | Group):
        given = given.store_path
    if isinstance(given, StorePath):
        where = given / (path or "")
    elif isinstance(given, str) and scheme_of(given) is not None and local_path(given) is None:
        return _at_url(given, path, mode, storage_options)
    elif isinstance(given, str | os.PathLike):
        local = local_path(given) if isinstance(given, str) else None
        where = _at_path(Path(local or given).expanduser().absolute(), mode, storage_options)
        if mode == "a":
            refuse_other_format(where.store)
        where = where / (path or "")
    else:
        store, above = resolve(given, mode, storage_options)
        where = StorePath(store, normalize(f"{above}/{path or ''}"))
    return _within_outermost(where)


def folder_of(where: StorePath) -> Path | None:
    """Return the directory of the node at a place, where it is one: all of it, and nothing else."""
    if type(where.store) is not LocalStore or (where.home is not None and where.path != where.home.root):
        return None
    return Path(where.store.root, where.path)


def _at_path(path: Path, mode: Mode, storage_options: Mapping[str, Any] | None) -> StorePath:
    """Return a place in a directory or a file that exists, or the place of a new one."""
    inside: list[str] = []
    there = path
    while not there.exists() and there.parent != there:
        inside.insert(0, there.name)
        there = there.parent
    if inside and there.is_dir() and not _is_node(there):
        # No Zarr above: a new hierarchy begins at a name that looks like one, or else at the place itself.
        names = (at for at, name in enumerate(inside) if _is_hierarchy(name))
        begins = next(names, len(inside) - 1 if mode == "a" else 0) + 1
        there, inside = there.joinpath(*inside[:begins]), inside[begins:]
    elif mode == "r" and there.is_file() and kinds.leads_to_file("/".join(inside)):
        there, inside = path, []  # of another format, in an archive
    store, above = resolve(there, mode, storage_options)
    return StorePath(store, normalize("/".join([above, *inside])))


def _is_hierarchy(name: str) -> bool:
    """Return whether a name is one of a hierarchy, or of a file that contains one."""
    kind = kinds.of_name(name)
    return name.lower().endswith(".zarr") or bool(kind and kind.opens and kind.has_name(name, is_new=True))


def _within_outermost(where: StorePath) -> StorePath:
    """Return the same place in the store of the outermost group above, if its own store is a directory in that."""
    if type(where.store) is not LocalStore:
        return where
    if not files_in(os.path.dirname(where.store.root), outside.DOCUMENTS):  # noqa: PTH120 - faster
        return where
    root = top = Path(where.store.root)
    while top.parent != top and _is_node(top.parent):
        top = top.parent
    if top == root:
        return where
    above = root.relative_to(top).as_posix()
    store = LocalStore(top, read_only=where.store.read_only)
    return StorePath(store, normalize(f"{above}/{where.path}"))


def _is_node(folder: Path) -> bool:
    """Whether a directory is a node, or the root of a draft's hierarchy."""
    if not files_in(str(folder), outside.DOCUMENTS):
        return False
    try:
        return detection.here(StorePath(LocalStore(folder, read_only=True)), DIALECTS) is not None
    except OmnizarrError:
        return True


def _at_url(url: str, path: str | None, mode: Mode, storage_options: Mapping[str, Any] | None) -> StorePath:
    store, above = resolve(url, mode, storage_options)
    where = StorePath(store, normalize(f"{above}/{path or ''}"))
    if type(store) is LocalStore:
        return _within_outermost(where)
    if above or any(sign in url for sign in "?#") or "::" in url:
        return where
    inside: list[str] = []
    scheme, _, rest = url.rstrip("/").partition("://")
    while "/" in rest:
        rest, _, name = rest.rpartition("/")
        if not rest.rpartition("/")[2] or "/" not in rest:  # a bucket, or a server
            break
        inside.insert(0, name)
        outer = None
        with suppress(OmnizarrError):
            candidate, at = resolve(f"{scheme}://{rest}", mode, storage_options)
            outer = None if at or detection.here(StorePath(candidate), DIALECTS) is None else candidate
        if outer is None:
            break
        where = replace(where, store=outer, path=normalize("/".join([*inside, path or ""])))
    return where
