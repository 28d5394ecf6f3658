"""Find the node for a typed path: a hierarchy, an archive, Kerchunk references, or a place inside one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from omnizarr.api import opening
from omnizarr.cli import trace
from omnizarr.errors import OmnizarrError
from omnizarr.nodes import naming, outside
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath
from omnizarr.stores import kinds, pipelines, resolve
from omnizarr.stores.resolve import is_reference_set
from omnizarr.stores.urls import scheme_of
from omnizarr.tools import reaching

Storage = Mapping[str, Any]

_MOST_ABOVE: Final = 4
"""Levels above a group on a web server at which consolidated metadata is looked for."""
_ENDINGS: Final = "|".join(
    re.escape(ending)
    for kind in kinds.KINDS
    if kind.opens
    for ending in (*kind.endings, *(() if kind.is_local else kind.existing))
)
_in_file = re.compile(rf"(.*?(?:{_ENDINGS}))/+([^?#]+)$", re.IGNORECASE).fullmatch
_S3: Final = frozenset({"s3", "s3a"})
_CLOUDS: Final = frozenset({*_S3, "gs", "gcs", "az", "azure", "adl", "abfs", "abfss"})
_WEB: Final = frozenset({"http", "https"})
_LOCAL: Final = frozenset({"", "file", "local", "memory", "sqlite", "lmdb", "icechunk", "icechunk+file"})


def open_node(text: str, storage: Storage | None = None) -> Array | Group:
    """Return the node at ``x.zarr``, ``x.zarr/a/b``, ``x.zip/a/b``, ``refs.json/a/b``, or at a URL, to be read.

    Documents are read directly, not from consolidated metadata. Only in remote stores, where each document costs a
    request, nodes come from consolidated metadata if there is any. If a store cannot list, nodes come from the names in
    documents.

    Raises
    ------
    NodeNotFoundError
        If there is none; it suggests similar names.
    click.UsageError
        If storage options do not apply to such a place.
    OmnizarrError, OSError
    """
    if is_url(text) and not pipelines.is_pipeline(text):
        url, within = split_url(text)
        node = _open(url, within or None, storage_of(url, storage))
        return _named(node, text, storage or {})
    place, inside = split(text)
    return _open(place, inside or None, storage_of(str(place), storage))


def is_url(text: str) -> bool:
    """Return whether what was typed is a URL, or a chain of them."""
    return scheme_of(text) is not None


def split_url(url: str) -> tuple[str, str]:
    """Return the URL of a file that contains a hierarchy, and the path within it; other URLs stay whole.

    So do those that lead to or into a file of another format, which opening them finds.

    >>> split_url("https://example.org/x.zip/ocean/temp"), split_url("s3://bucket/x.zarr/ocean")
    (('https://example.org/x.zip', 'ocean/temp'), ('s3://bucket/x.zarr/ocean', ''))
    """
    match = None if pipelines.is_pipeline(url) else _in_file(url)
    is_whole = match is not None and kinds.leads_to_file(match[2])
    return (url, "") if is_whole or match is None else (match[1], match[2].strip("/"))


def split(text: str) -> tuple[str | Path, str]:
    """Return the store that a local path leads to, and the path within it; pipelines stay whole."""
    if pipelines.is_pipeline(text):
        return text, ""
    place = Path(text).expanduser()
    inside: list[str] = []
    while not place.exists() and place.parent != place:
        inside.insert(0, place.name)
        place = place.parent
    for above in place.parents if place.is_dir() and not _is_node(place) else ():
        if is_reference_set(os.fspath(above)):  # a Parquet set has directories with the names of its arrays
            return above, "/".join([*place.relative_to(above).parts, *inside])
    if inside and place.is_file() and kinds.leads_to_file("/".join(inside)):
        return text, ""  # of another format, in an archive
    is_known = not place.is_dir() or _is_node(place) or kinds.is_repository(os.fspath(place))
    is_misspelt_name = len(inside) == 1 and not is_known
    if not inside or is_misspelt_name:
        return text, ""
    return place, "/".join(inside)


def watched(place: str | Path | StorePath, storage: Storage | None = None) -> Any:
    """Return a place in its store; with ``--trace``, in a store that records its requests."""
    if isinstance(place, StorePath):
        return StorePath(trace.watched(place.store), place.path, place.home) if trace.is_on() else place
    if not trace.is_on() and not storage:
        return place
    store, path = resolve(place, "r", storage)
    return StorePath(trace.watched(store), path)


# -- storage options ---------------------------------------------------------------


def storage_of(place: str, storage: Storage | None) -> dict[str, Any]:
    """Return those storage options that a place takes.

    ``anon``, ``endpoint`` and ``region`` mean the same for all clouds; options that a web server does not have are left
    out.

    >>> storage_of("s3://bucket/x", {"anon": True, "endpoint": "http://127.0.0.1:9000"})
    {'anon': True, 'endpoint': 'http://127.0.0.1:9000'}
    >>> storage_of("fsspec+gs://bucket/x", {"anon": True})
    {'token': 'anon'}
    >>> storage_of("https://example.org/x.zarr", {"anon": True})
    {}
    """
    if not storage:
        return {}
    chain = place.partition("?")[0].split("::")
    scheme = scheme_of(chain[-1]) or chain[-1].lower()
    if not is_url(place) or scheme in _LOCAL:
        names = ", ".join(
            f"--{name}" if name in ("anon", "endpoint", "region") else f"-o {name}=..." for name in storage
        )
        raise click.UsageError(f"{names}: for URLs of object stores and web servers only, not for {place}")
    if scheme in _WEB:
        return _checked(dict(storage), scheme, leave_out="anon", unknown=("endpoint", "region"))
    if scheme.startswith("fsspec+") or len(chain) > 1:
        inner = scheme.removeprefix("fsspec+")
        options = _for_fsspec(dict(storage), inner)
        return {inner: options} if len(chain) > 1 and options else options
    if scheme in _CLOUDS - _S3:
        return _checked(dict(storage), scheme, unknown=("region",))
    return dict(storage)


def storage_of_both(source: str, target: str | None, storage: Storage | None) -> dict[str, Any] | None:
    """Return the storage options of a source and a target: of the one that is a URL, or of both if they are the same.

    Raises click.UsageError if they mean something else to the one than to the other.
    """
    urls = [place for place in (source, target) if place is not None and is_url(place)]
    found = [storage_of(place, storage) for place in urls or [source]]
    if any(one != found[0] for one in found):
        raise click.UsageError(f"storage options mean other things for {source} than for {target}: copy in two steps")
    return found[0] or None


def _checked(storage: dict[str, Any], scheme: str, *, leave_out: str = "", unknown: tuple[str, ...]) -> dict[str, Any]:
    storage.pop(leave_out, None)
    for name in unknown:
        if name in storage:
            raise click.UsageError(f"--{name} means nothing for {scheme}://")
    return storage


def _for_fsspec(storage: dict[str, Any], scheme: str) -> dict[str, Any]:
    """Return options in fsspec's spelling."""
    if scheme in _WEB:
        return _checked(storage, scheme, leave_out="anon", unknown=("endpoint", "region"))
    if scheme in ("gs", "gcs") and storage.pop("anon", False):
        storage["token"] = "anon"  # noqa: S105 - as gcsfs spells it
    if "endpoint" in storage:
        storage["endpoint_url"] = storage.pop("endpoint")
    if "region" in storage:
        storage["client_kwargs"] = {"region_name": storage.pop("region"), **storage.get("client_kwargs", {})}
    return storage


# -- nodes ---------------------------------------------------------------------------


def _open(place: str | Path, path: str | None, storage: dict[str, Any]) -> Array | Group:
    where, _ = opening.locate(watched(place, storage), path, "r", None)
    return opening.open(where, mode="r", use_consolidated=None if naming.is_far(where.store) else False)


def _named(node: Array | Group, url: str, storage: Storage) -> Array | Group:
    """Return a node with the members that documents name, if the store cannot list them."""
    if isinstance(node, Array) or reaching.source_of(node) != "nothing":
        return node
    found = reaching.with_members(node)
    if reaching.source_of(found) != "nothing" or node.path:
        return found
    return next(_from_above(url, storage), found)


def _from_above(url: str, storage: Storage) -> Iterator[Array | Group]:
    """Yield the group at a URL from the consolidated metadata of a group above."""
    outer, inside = url.rstrip("/"), ""
    for _ in range(_MOST_ABOVE):
        outer, _, name = outer.rpartition("/")
        inside = f"{name}/{inside}".rstrip("/")
        if outer.endswith(":/") or "/" not in outer.partition("://")[2]:
            return
        with suppress(OmnizarrError, KeyError):
            yield opening.open_group(watched(outer, storage_of(outer, storage)), mode="r", use_consolidated=True)[
                inside
            ]


def _is_node(place: Path) -> bool:
    return any((place / name).is_file() for name in outside.DOCUMENTS)
