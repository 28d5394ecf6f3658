"""A store that cannot list, as a check needs it: with a listing of the keys that documents name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.formats import DIALECTS
from omnizarr.model import ArrayMetadata, GroupMetadata
from omnizarr.nodes import consolidated, detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath, chunk_prefix, dialect_of
from omnizarr.stores import Store, bounded, pool, verbs
from omnizarr.stores.base import Buffer, Features, Listing, Request, Span, answers, cut
from omnizarr.stores.wrap.wrappers import WrapperStore
from omnizarr.tools import reaching
from omnizarr.tools.check.bindings import Bindings
from omnizarr.tools.check.inventory import Inventory

_NAMES: Final = frozenset(
    name for dialect in DIALECTS if dialect.entry_point is None for name in dialect.keyspace.documents("")
)


class NamedKeys(WrapperStore):
    """A store whose listing has the keys of the documents that exist, as far as other documents name them.

    They are fetched when it is made, and kept; a document that nothing names does not exist.
    """

    @property
    def features(self) -> Features:
        """Those of the wrapped store, but it lists what is named."""
        return replace(self.store.features, listing="partial")

    def __init__(self, store: Store, keys: Iterable[str]) -> None:
        super().__init__(store)
        named = sorted(set(keys))
        fetched = dict(pool.gather(partial(_fetch, store), named, store.features.concurrency))
        values = ((key, fetched[position]) for position, key in enumerate(named))
        self._documents = {key: value for key, value in values if value is not None}

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return a document from memory, and chunks from the store."""
        value = self._documents.get(key)
        if isinstance(value, StoreError):
            raise value
        if value is not None:
            return cut(value, span)
        return None if key.rpartition("/")[2] in _NAMES else self.store.get(key, span)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Return a document from memory, and chunks from the store."""
        if key in self._documents or key.rpartition("/")[2] in _NAMES:
            return verbs.get_within.default(self, key, most)
        return verbs.get_within(self.store, key, most)

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Get each."""
        return verbs.get_many.default(self, requests)

    def exists(self, key: str) -> bool:
        """Return whether a document is kept, or the store has the chunk."""
        return key in self._documents or (key.rpartition("/")[2] not in _NAMES and self.store.exists(key))

    @answers(verbs.has_any)
    def _has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Ask for each."""
        return any(self.exists(prefix + name) for name in names)

    def list(self) -> Iterator[str]:
        """Yield the keys of documents."""
        return iter(self._documents)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield those below a prefix."""
        return Store.list_prefix(self, prefix)

    @answers(verbs.list_sizes)
    def _list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield those below a prefix, with the sizes of the documents."""
        sizes = {key: 0 if isinstance(value, StoreError) else len(value) for key, value in self._documents.items()}
        return ((key, sizes[key]) for key in self.list_prefix(prefix))

    def list_dir(self, prefix: str) -> Listing:
        """Return those directly below a prefix."""
        return Store.list_dir(self, prefix)


def _fetch(store: Store, key: str) -> Buffer | StoreError | None:
    try:
        return bounded.document(store, key)
    except StoreError as error:  # of one: the others can be read
        return error


def with_named_keys(where: StorePath) -> tuple[StorePath, bool]:
    """Return a place in a store that cannot list as one in a store that lists the documents that others name.

    And whether anything names the members of a group there.

    Raises StoreError if the store fails.
    """
    flat = (dialect for dialect in DIALECTS if dialect.entry_point is None)
    keys = {key for dialect in flat for key in dialect.keyspace.documents(where.path).values()}
    named: set[str] | None = set()
    with suppress(OmnizarrError):  # a broken document is among the keys, and so checked
        named = _named(where)
    return StorePath(NamedKeys(where.store, keys | (named or set())), where.path), named is not None


def _named(where: StorePath) -> set[str] | None:
    """Return the keys of the documents of all nodes below a place; None if nothing names them."""
    found = detection.open_node(where)
    if not isinstance(found.metadata, GroupMetadata):
        return set()
    group = reaching.with_members(Group(found.where, found.metadata, None, _copies(found.where, found.metadata)))
    if isinstance(group, Array) or reaching.source_of(group) == "nothing":
        return None
    keys: set[str] = set()
    for _, node in group.members(max_depth=None):
        place = node.store_path
        if isinstance(node, Array | Group):
            dialect = dialect_of(place, node._metadata)  # noqa: SLF001 - the model, as it is shared
            unwanted = dialect.group_document if isinstance(node, Array) else dialect.array_document
            same = dialect.group_document == dialect.array_document
            documents = dialect.keyspace.documents(place.path)
            copies = str(dialect.consolidated.document)
            keys |= {key for name, key in documents.items() if same or name not in (unwanted, copies)}
        else:
            keys |= {place.prefix + name for name in _NAMES}
    return keys


def _copies(where: StorePath, metadata: GroupMetadata) -> Snapshot | None:
    """Return the consolidated metadata of a group; None if there is none, or if it is broken, as the check says."""
    with suppress(OmnizarrError):
        group = metadata if metadata.consolidated is not None else None
        nodes = consolidated.read(where, None, dialect_of(where, metadata), group)
        return None if nodes is None else Snapshot(where, None, nodes)
    return None


def chunk_keys(inventory: Inventory, bindings: Bindings) -> Iterator[str]:
    """Yield the keys of the chunks that are stored; each chunk that there could be is asked for."""
    for node in inventory:
        binding = bindings.of(node)
        if binding is None or not isinstance(node.metadata, ArrayMetadata):
            continue
        prefix = chunk_prefix(node.where, node.metadata)
        candidates = map(prefix.__add__, map(binding.keys.encode, binding.grid.coords()))
        look = partial(_look, node.where.store)
        yield from filter(None, pool.results(look, candidates, node.where.store.features.concurrency))


def _look(store: Store, key: str) -> str:
    return key if store.exists(key) else ""
