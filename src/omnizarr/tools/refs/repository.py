"""References as virtual chunks of a repository of Icechunk: documents and places of chunks, in one commit."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnizarr.errors import (
    ContainsArrayError,
    ContainsGroupError,
    NotRepresentableError,
    Remedy,
)
from omnizarr.formats import documents
from omnizarr.model import ArrayMetadata
from omnizarr.nodes import detection, hierarchy
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.placement import Placement
from omnizarr.stores import verbs
from omnizarr.stores.redaction import redact
from omnizarr.stores.urls import parse as urls
from omnizarr.stores.urls import scheme_of
from omnizarr.tools.refs import kerchunk
from omnizarr.tools.refs.gathering import Gathered, Laid

if TYPE_CHECKING:
    from omnizarr.stores.remote.icechunk_writing import Repository, Session

_KEYS: Final = {"name": "default", "configuration": {"separator": "/"}}
_DOCUMENT: Final = "zarr.json"
_MOST_CONTAINERS: Final = 1000
_OTHER: Final = "write references of Kerchunk, to a name that ends in .json or .parq"
_FILES: Final = frozenset({None, "file", "local"})


def write(
    destination: str,
    found: Gathered,
    placed: Mapping[str, Placement],
    *,
    overwrite: bool,
    message: str,
    options: Mapping[str, Any] | None,
) -> tuple[str, int]:
    """Commit references, and return branch and snapshot of the commit, and the bytes of the documents.

    Raises
    ------
    NotRepresentableError
        If a file has no URL that Icechunk reads.
    NodeExistsError
        If there is a node, and `overwrite` is False.
    """
    icechunk = import_module("omnizarr.stores.remote.icechunk_writing")
    address = icechunk.Address.of(destination)
    containers = _containers(found, placed)
    repository: Repository = icechunk.Repository(
        address, {} if address.service == "file" else options or {}, create=True
    )
    session = None
    try:
        repository.add_containers(containers, dict(options or {}))
        session = repository.session()
        root = StorePath(session.store, address.within)
        for laid in found.arrays:
            icechunk.check_grid(laid.metadata.chunk_grid.name, session.store, laid.path)
        _make_room(root, overwrite=overwrite)
        nbytes = _write(root, session, repository, found, placed)
        snapshot = session.commit(message)
    except BaseException:
        if session is not None:
            session.discard()
        elif repository.is_new:
            repository.remove()
        raise
    return f"{session.branch}: {snapshot}", nbytes


def _make_room(root: StorePath, *, overwrite: bool) -> None:
    existing = detection.detect(root)
    if existing is None:
        return
    if not overwrite:
        is_array = isinstance(existing.metadata, ArrayMetadata)
        raise (ContainsArrayError if is_array else ContainsGroupError)(
            f"there is {'an array' if is_array else 'a group'} already",
            store=str(root.store),
            path=root.path,
            remedy=Remedy("pass {overwrite} to replace it", overwrite=True),
        )
    hierarchy.clear(root)


def _write(
    root: StorePath, session: Session, repository: Repository, found: Gathered, placed: Mapping[str, Placement]
) -> int:
    """Store documents first, as chunks have a place only below them, then the places of chunks."""
    written = {key: _adapted(value) for key, value in kerchunk.documents_of(found).items()}
    for key in sorted(written, key=lambda key: (key.count("/"), key)):
        session.store.set(root.prefix + key, written[key])
    for laid in found.arrays:
        _write_array(root, session, repository, laid, placed[laid.path])
    return sum(map(len, written.values()))


def _adapted(document: bytes) -> bytes:
    """Return a document with the only keys of chunks that Icechunk has."""
    content = documents.parse(document)
    if isinstance(content, dict) and "chunk_key_encoding" in content:
        return documents.render({**content, "chunk_key_encoding": _KEYS})
    return document


def _write_array(root: StorePath, session: Session, repository: Repository, laid: Laid, found: Placement) -> None:
    path = f"{root.prefix}{laid.path}".rstrip("/")
    changed = _Changed()
    for block in found.blocks():
        numbers, at = np.unique(found.files[block], return_inverse=True)
        names = found.names.at(numbers)
        locations, times = [_url(name) for name in names], [changed.time_of(name) for name in names]
        rows = zip(
            _coordinates(found, found.numbers[block]),
            at.tolist(),
            found.offsets[block].tolist(),
            found.lengths[block].tolist(),
            strict=True,
        )
        session.set_virtual(
            path, ((coords, locations[file], start, size, times[file]) for coords, file, start, size in rows)
        )
    numbers = np.array(sorted(found.values), np.int64)
    chunks = f"{path}/c" if path else "c"
    keys = ("/".join(map(str, [chunks, *coords])) for coords in _coordinates(found, numbers))
    verbs.set_many(session.store, zip(keys, (found.values[number] for number in numbers.tolist()), strict=True))


def _coordinates(found: Placement, numbers: Any) -> Iterator[list[int]]:
    if not found.grid_shape:
        return iter([[] for _ in numbers])
    return iter(np.stack(np.unravel_index(numbers, found.grid_shape), axis=-1).tolist())


class _Changed:
    """When files of this machine have changed: Icechunk refuses chunks of files that change later."""

    def __init__(self) -> None:
        self._known: dict[str, datetime | None] = {}

    def time_of(self, name: str) -> datetime | None:
        """Return the time, rounded up to seconds; None for files elsewhere."""
        if scheme_of(name) is not None:
            return None
        if name not in self._known:
            seconds = math.ceil(os.stat(name).st_mtime)  # noqa: PTH116 - there may be many files
            self._known[name] = datetime.fromtimestamp(seconds, UTC)
        return self._known[name]


def _url(name: str) -> str:
    if urls.quote(name, safe="/:@!$&'()*+,;=~%") != name or ("%" in name and scheme_of(name) in _FILES):
        # icechunk 1.1 compares one of them percent-encoded, and the other as it is.
        raise NotRepresentableError(
            "Icechunk finds no files with such names",
            found=redact(name),
            expected="no spaces, and ASCII only",
            remedy=_OTHER,
        )
    return f"file://{name}" if scheme_of(name) is None else name


def _containers(found: Gathered, placed: Mapping[str, Placement]) -> set[str]:
    """Return the directories, buckets and servers that the files are in."""
    made: set[str] = set()
    for laid in found.arrays:
        place = placed[laid.path]
        for block in place.blocks():
            made.update(map(_container, place.names.at(np.unique(place.files[block]))))
            if len(made) > _MOST_CONTAINERS:
                raise NotRepresentableError(
                    "the files are in too many directories for the containers of a repository",
                    found=f"more than {_MOST_CONTAINERS}",
                    remedy=_OTHER,
                )
    return made


def _container(name: str) -> str:
    scheme = scheme_of(name)
    if scheme in _FILES:
        return f"{_url(name).rpartition('/')[0]}/"
    parts = urls.urlsplit(name)
    if scheme not in {"s3", "gs", "http", "https"} or "?" in name or "@" in parts.netloc:
        raise NotRepresentableError(
            "Icechunk reads no chunks from such a place",
            found=redact(name),
            expected="files of this machine, s3://, gs://, https://",
            remedy=_OTHER,
        )
    return f"{parts.scheme}://{parts.netloc}/"
