"""From the metadata and the place of an array to what reads and writes its chunks: under the keys that are in use.

`bind` binds data type, grid, chunk keys and codecs, and says in which document and where a part is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from omnizarr import engine
from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.engine import Binding
from omnizarr.engine.cache import ChunkCache
from omnizarr.errors import ArrayNotFoundError, OmnizarrError, StoreError
from omnizarr.formats import DIALECTS, pointers
from omnizarr.formats.contract import Dialect
from omnizarr.model import JSON, ArrayMetadata, Named
from omnizarr.model import keys as chunk_keys
from omnizarr.nodes.location import StorePath, dialect_of, dialects_at
from omnizarr.stores import LocalStore, bounded
from omnizarr.stores.local.directory import Home

_CONSOLIDATED: Final = {name for name in (dialect.consolidated.document for dialect in DIALECTS) if name is not None}
"""Documents of consolidated metadata that are stored beside those of the group."""


def bind(
    where: StorePath,
    metadata: ArrayMetadata,
    policy: ChunkPolicy,
    chunk_cache: int | ChunkCache = 0,
    document: JSON = None,
) -> Binding:
    """Return everything that reading and writing chunks of the array at a place needs.

    Raises the errors of `omnizarr.engine.bind`, with the key of the document and the place in it. `document` is the
    one that the metadata were read from, if it is known.
    """
    try:
        return _bind(where, metadata, policy, chunk_cache)
    except OmnizarrError as error:
        raise in_its_document(error, where, metadata, document)


def in_its_document(
    error: OmnizarrError, where: StorePath, metadata: ArrayMetadata, document: JSON = None
) -> OmnizarrError:
    """Return an error about a part of an array's metadata with the key of its document, and the place in that."""
    if error.pointer is None or error.key is not None:
        return error
    dialect = dialect_of(where, metadata)
    name = dialect.array_document
    if document is None:
        try:
            document = dialect.dump(metadata).get(name)
        except OmnizarrError:
            document = {}
    error.pointer = pointers.in_document(document, dialect.name, error.pointer, error.codec) or None
    return error.add(key=dialect.keyspace.documents(where.path)[name])


def _bind(where: StorePath, metadata: ArrayMetadata, policy: ChunkPolicy, chunk_cache: int | ChunkCache) -> Binding:
    dialect, store = dialect_of(where, metadata), where.store
    others = dialect.other_keys(metadata)
    if others:
        metadata = _with_keys_in_use(where, metadata, dialect, others)
    document, prefix = dialect.keyspace.of_array(where.path, dialect.array_document)
    if type(store) is LocalStore:
        store = store.of_array(Home(prefix[:-1], document, partial(check_there, where, document)))
    return engine.bind(metadata, store, prefix, policy, where.path, chunk_cache)


def check_there(where: StorePath, document: str) -> None:
    """Raise ArrayNotFoundError if the array at a place has been deleted or moved since it was opened."""
    if where.store.exists(document):
        return
    # It may have documents of another format by now.
    makers = [dialect.keyspace.documents(where.path)[dialect.array_document] for dialect in dialects_at(where)]
    if any(map(where.store.exists, makers)):
        return
    # Some hierarchies have only consolidated documents.
    for place in (*where.ancestors(), where):
        apart = [place.prefix + name for name in _CONSOLIDATED]
        within = bounded.document(where.store, place.prefix + "zarr.json") or b""
        if any(map(where.store.exists, apart)) or b'"consolidated_metadata"' in bytes(within):
            return
    raise ArrayNotFoundError(
        "the array is not there any more",
        store=str(where.store),
        path=where.path,
        found=f"no {document!r}",
        remedy="it was deleted, moved or renamed since it was opened: open it where it is now, or create it again",
    )


def with_keys_in_use(where: StorePath, metadata: ArrayMetadata) -> ArrayMetadata:
    """Return the metadata of an array, with the chunk keys that its writer used if the documents leave that open.

    Looks only where programs are known to differ, with at most two requests.
    """
    dialect = dialect_of(where, metadata)
    others = dialect.other_keys(metadata)
    return _with_keys_in_use(where, metadata, dialect, others) if others else metadata


def _with_keys_in_use(
    where: StorePath, metadata: ArrayMetadata, dialect: Dialect, others: Iterable[Named]
) -> ArrayMetadata:
    prefix = dialect.keyspace.chunk_prefix(where.path)
    first = (0,) * len(metadata.shape)
    if where.store.exists(prefix + chunk_keys.bind(metadata.chunk_key_encoding).encode(first)):
        return metadata
    for other in others:
        key = chunk_keys.bind(other).encode(first)
        if _is_there(where, prefix, key):
            return replace(metadata, chunk_key_encoding=other)
    return metadata


def _is_there(where: StorePath, prefix: str, key: str) -> bool:
    """Whether a chunk has this key, or another chunk is in the directory of this key."""
    if "/" not in key:
        return where.store.exists(prefix + key)
    directory = prefix + key.partition("/")[0] + "/"
    try:
        listing = where.store.list_dir(directory)
    except StoreError:
        return False  # a store that cannot be listed
    return any(entry[len(directory) :].rstrip("/").isdigit() for entry in (*listing.keys, *listing.prefixes))
