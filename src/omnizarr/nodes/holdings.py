"""What is stored of nodes: keys, chunks, and their sizes.

A listing tells that, where it is known to be complete (`Features.listing`). Other stores are listed too, and then
asked for each chunk and document that there could be and that they did not list, because they may make values when
they are asked for them. In a store that cannot list at all, everything here raises the error of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import chain
from typing import Final

from omnizarr.engine import transformers
from omnizarr.errors import OmnizarrError, StoreError, UnknownExtensionError
from omnizarr.model import ArrayMetadata, Metadata, grids
from omnizarr.model import keys as chunk_keys
from omnizarr.model.grids import Coords, Grid
from omnizarr.model.key_forms import KeyEncoding
from omnizarr.nodes import bindings, detection, walk
from omnizarr.nodes.location import StorePath, chunk_prefix, dialect_of, dialects_at
from omnizarr.stores import Store, pool, verbs
from omnizarr.support.progress import Tick, silent

MOST_ASKED_FOR: Final = 10**7
"""Maximum number of chunks that are requested one by one."""


def is_asked(store: Store) -> bool:
    """Return whether a store lists keys, but may have others."""
    return store.features.listing == "partial"


# -- of an array ------------------------------------------------------------------------------


def found(store: Store, prefix: str, encoding: KeyEncoding, grid: Grid) -> Iterator[Coords]:
    """Yield the coordinates of the stored chunks (shards) with a prefix."""
    coords_of = _within(encoding, grid)
    is_complete = not is_asked(store)
    seen: set[Coords] = set()
    for key in store.list_prefix(prefix):
        coords = coords_of(key[len(prefix) :])
        if coords is None or coords in seen:
            continue
        if not is_complete:
            seen.add(coords)
        yield coords
    if not is_complete and len(seen) < grid.nchunks:
        yield from asked(store, prefix, encoding, grid, seen)


def asked(
    store: Store, prefix: str, encoding: KeyEncoding, grid: Grid, known: AbstractSet[Coords] = frozenset()
) -> Iterator[Coords]:
    """Yield the coordinates of the stored chunks but the known ones; each is asked for.

    Raises StoreError if there are too many.
    """
    if grid.nchunks > MOST_ASKED_FOR:
        raise StoreError(
            f"the store may have chunks that it does not list, and there are {grid.nchunks:,} to ask for",
            store=str(store),
            found=prefix,
            expected=f"at most {MOST_ASKED_FOR:,}",
            remedy="if it lists every key, give it lists_everything = True",
        )

    def look(coords: Coords) -> list[Coords]:
        return [coords] if store.exists(prefix + encoding.encode(coords)) else []

    candidates = (coords for coords in grid.coords() if coords not in known) if known else grid.coords()
    return chain.from_iterable(pool.results(look, candidates, max(store.features.concurrency, 1)))


def _within(encoding: KeyEncoding, grid: Grid) -> Callable[[str], Coords | None]:
    """Return a function from the rest of a key to the coordinates of the chunk; None if the array has none such."""
    grid_shape = grid.grid_shape

    def coords_of(rest: str) -> Coords | None:
        coords = encoding.decode(rest, len(grid_shape))
        if coords is None or not all(n < length for n, length in zip(coords, grid_shape, strict=True)):
            return None
        return coords

    return coords_of


def coords_decoder(metadata: ArrayMetadata) -> Callable[[str], Coords | None]:
    """Return a function that returns the coordinates of a chunk (shard) for the rest of its key after `chunk_prefix`.

    It returns None for other keys. Raises the errors of binding grid and key encoding.
    """
    encoding = chunk_keys.bind(metadata.chunk_key_encoding)
    return _within(encoding, grids.bind(metadata.chunk_grid, metadata.shape))


def key_decoder(where: StorePath, metadata: ArrayMetadata) -> Callable[[str], Coords | None]:
    """Return a function that returns the coordinates of the chunk (shard) for a key; None for other keys."""
    prefix = chunk_prefix(where, metadata)
    decode = coords_decoder(bindings.with_keys_in_use(where, metadata))
    return lambda key: decode(key[len(prefix) :]) if key.startswith(prefix) else None


def counter(where: StorePath, metadata: ArrayMetadata) -> Callable[[str], bool] | None:
    """Return a function that recognises keys of chunks (shards) of an array; None if they are unknown."""
    if metadata.storage_transformers:
        return None
    try:
        coords_of = key_decoder(where, metadata)
    except OmnizarrError:
        return None
    return lambda key: coords_of(key) is not None


def coords(where: StorePath, metadata: ArrayMetadata) -> Iterator[Coords]:
    """Yield the coordinates of the stored chunks (shards) of the array."""
    try:
        prefix, encoding, grid = _laid(where, metadata)
        store = transformers.apply(metadata.storage_transformers, where.store, prefix)
    except OmnizarrError as error:
        raise bindings.in_its_document(error.add(store=str(where.store), path=where.path), where, metadata)
    return found(store, prefix, encoding, grid)


def _laid(where: StorePath, metadata: ArrayMetadata) -> tuple[str, KeyEncoding, Grid]:
    metadata = bindings.with_keys_in_use(where, metadata)
    encoding = chunk_keys.bind(metadata.chunk_key_encoding)
    return chunk_prefix(where, metadata), encoding, grids.bind(metadata.chunk_grid, metadata.shape)


def chunk_sizes(where: StorePath, metadata: ArrayMetadata) -> Iterator[tuple[Coords, int | None]]:
    """Yield coordinates and size in bytes of the stored chunks (shards) of the array.

    Sizes are None with storage transformers, which store something other than chunks.
    """
    if metadata.storage_transformers:
        yield from ((each, None) for each in coords(where, metadata))
        return
    coords_of = key_decoder(where, metadata)
    for key, size in sizes(where):
        each = coords_of(key)
        if each is not None:
            yield each, size


def count(where: StorePath, metadata: ArrayMetadata, tick: Tick = silent) -> tuple[int | None, int]:
    """Return the number of stored chunks (shards) of an array, and the number of bytes under its path.

    The first is None if its grid or the keys of its chunks are unknown.
    """
    try:
        coords_of = key_decoder(where, metadata)
    except OmnizarrError:
        return None, _total(where, tick)
    if metadata.storage_transformers:  # the keys below are not keys of chunks
        stored: int | None = None
        with suppress(UnknownExtensionError):
            stored = sum(1 for _ in coords(where, metadata))
        return stored, _total(where, tick)
    chunks = total = 0
    for key, size in sizes(where):
        chunks += coords_of(key) is not None
        total += size
        tick(1)
    return chunks, total


def nbytes(where: StorePath) -> int:
    """Return the bytes under a node, documents included."""
    return _total(where, silent)


def _total(where: StorePath, tick: Tick) -> int:
    total = 0
    for _, size in sizes(where):
        tick(1)
        total += size
    return total


# -- of a node and all below it ---------------------------------------------------------------


def keys(where: StorePath) -> Iterator[str]:
    """Yield the keys of everything that belongs to the node at a place and to nodes below."""
    if not is_asked(where.store):
        yield from listed(where)
        return
    seen: set[str] = set()
    yield from _noted(listed(where), seen)
    yield from unlisted(where, seen)


def sizes(
    where: StorePath, sizes_below: Callable[[Store, str], Iterator[tuple[str, int]]] = verbs.list_sizes
) -> Iterator[tuple[str, int]]:
    """Yield the same keys, each with the size of its value in bytes."""
    store = where.store
    if is_asked(store):
        for _, (key, size) in pool.gather(
            lambda key: (key, store.size(key)), keys(where), max(store.features.concurrency, 1)
        ):
            if size is not None:
                yield key, size
        return
    for prefix in _prefixes(where):
        yield from sizes_below(store, prefix)
    yield from ((key, size) for key in _apart(where) if (size := store.size(key)) is not None)


def listed(where: StorePath) -> Iterator[str]:
    """Yield the keys of what belongs to the node at a place and to nodes below, as far as the store lists them."""
    for prefix in _prefixes(where):
        yield from where.store.list_prefix(prefix)
    yield from (key for key in _apart(where) if where.store.exists(key))


def _noted(found: Iterable[str], seen: set[str]) -> Iterator[str]:
    for key in found:
        if key not in seen:
            seen.add(key)
            yield key


def unlisted(where: StorePath, known: AbstractSet[str]) -> Iterator[str]:
    """Yield the keys of documents and chunks of a node, and of those below, that are stored but not `known`.

    Raises the error of an array whose chunks are not known.
    """
    store, seen = where.store, set(known)
    for place, node in _nodes(where):
        documents = dialect_of(place, node).keyspace.documents(place.path).values()
        yield from (key for key in documents if key not in seen and store.exists(key))
        seen.update(documents)
        if isinstance(node, ArrayMetadata):
            yield from _unlisted_chunks(place, node, known)


def possible(where: StorePath, metadata: Metadata) -> Iterator[str]:
    """Yield the keys of a node in a store that cannot be listed: of documents, and of all chunks, stored or not.

    Raises StoreError if there are too many, or if a storage transformer hides them.
    """
    names = dialect_of(where, metadata).keyspace.documents(where.path).values()
    yield from (key for key in names if where.store.exists(key))
    if not isinstance(metadata, ArrayMetadata):
        return
    prefix, encoding, grid = _laid(where, metadata)
    if grid.nchunks > MOST_ASKED_FOR or metadata.storage_transformers:
        raise StoreError(
            "the store cannot be listed, and the keys of the chunks are unknown or too many",
            store=str(where.store),
            path=where.path,
            found=f"{grid.nchunks:,} chunks",
            expected=f"at most {MOST_ASKED_FOR:,}, without storage transformers",
        )
    yield from (prefix + encoding.encode(coords) for coords in grid.coords())


def delete_unlisted(where: StorePath) -> None:
    """Delete what `unlisted` yields, which deleting everything under a prefix would leave."""
    if is_asked(where.store):
        verbs.delete_many(where.store, list(unlisted(where, set(listed(where)))))


def _unlisted_chunks(where: StorePath, metadata: ArrayMetadata, listed: AbstractSet[str]) -> Iterator[str]:
    try:
        prefix, encoding, grid = _laid(where, metadata)
    except OmnizarrError as error:
        raise error.add(store=str(where.store), path=where.path)
    coords_of = _within(encoding, grid)
    known = {each for key in listed if key.startswith(prefix) and (each := coords_of(key[len(prefix) :])) is not None}
    if len(known) < grid.nchunks:
        yield from (prefix + encoding.encode(each) for each in asked(where.store, prefix, encoding, grid, known))


def _nodes(where: StorePath) -> Iterator[tuple[StorePath, Metadata]]:
    """Yield the nodes that can be read: the one at a place, and those below that the store lists."""
    try:
        top = detection.detect(where) or detection.implied(where)
    except StoreError:
        raise
    except OmnizarrError:  # broken documents name no chunks
        return
    if top is None:
        return
    yield top.where, top.metadata
    for place, found in () if isinstance(top.metadata, ArrayMetadata) else walk.listed(top.where, top.metadata.dialect):
        if isinstance(found, StoreError):
            raise found
        if not isinstance(found, OmnizarrError):
            yield place, found


def _prefixes(where: StorePath) -> Iterable[str]:
    keyspace = dialects_at(where)[0].keyspace
    return dict.fromkeys((keyspace.directory(where.path), keyspace.chunk_prefix(where.path)))


def _apart(where: StorePath) -> Iterable[str]:
    return () if where.home is None else dialects_at(where)[0].keyspace.node_keys(where.path).keys
