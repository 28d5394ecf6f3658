"""Nodes that documents name, for stores that cannot list their keys.

NCZarr and stores of some formats name all nodes directly below each group; OME-Zarr images, labels and wells, so that
there may be others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from omnizarr.errors import OmnizarrError, StoreClosedError, StoreTimeoutError
from omnizarr.formats import documents
from omnizarr.model import JSON, GroupMetadata, Metadata, dimensions
from omnizarr.nodes import detection
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.walk import by_name
from omnizarr.stores import Store, bounded
from omnizarr.stores.base import NOT_LISTED
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.formats.conventions import nczarr
    from omnizarr.formats.conventions.ome import naming as ome
else:  # most stores can list
    nczarr = Lazy("omnizarr.formats.conventions.nczarr")
    ome = Lazy("omnizarr.formats.conventions.ome.naming")

Convention: TypeAlias = Literal["nczarr", "ome", "store"]

T = TypeVar("T")

_Found: TypeAlias = Mapping[str, Metadata | OmnizarrError]
_Names: TypeAlias = Callable[[StorePath, GroupMetadata], list[str] | None]


def is_unlistable(error: BaseException) -> bool:
    """Return whether the error of a listing says that the store cannot list, and not that it fails at this moment."""
    is_momentary = isinstance(error, (StoreClosedError, StoreTimeoutError))
    return isinstance(error, NOT_LISTED) and not is_momentary


def can_list(where: StorePath) -> bool:
    """Return whether a store can list its keys: it says so, and does."""
    if not where.store.supports_listing:
        return False
    try:
        where.store.list_dir(where.prefix)
    except NOT_LISTED as error:
        if not is_unlistable(error):
            raise
        return False
    return True


def listed(where: StorePath, ask: Callable[[], T]) -> T | None:
    """Return what a function finds by listing; None if the store cannot list. Raises the error of a store that can."""
    if not where.store.supports_listing:
        return None
    try:
        return ask()
    except NOT_LISTED:
        if can_list(where):
            raise
        return None


def may_have_objects(metadata: Metadata) -> bool:
    """Return whether netCDF-C 4.8.0 may have described a node beside its documents, which it did in Zarr v2 only."""
    return metadata.dialect == "v2"


def lists_members(group: GroupMetadata) -> bool:
    """Return whether the document of a group lists its members, as those of NCZarr do."""
    return any(name in group.attributes or name in group.unknown for name in dimensions.NCZARR_GROUP)


def is_far(store: Store) -> bool:
    """Return whether one request for many nodes saves time: requests have latency, or nothing can be listed."""
    return store.features.concurrency > 1 or not store.supports_listing


def children(where: StorePath, metadata: GroupMetadata) -> list[str] | Named:
    """Return the sorted names of possible nodes directly below a group, or what its documents name below it.

    Raises the error of the listing if there is neither.
    """
    try:
        return detection.children(where)
    except NOT_LISTED as error:
        named = named_below(where, metadata) if is_unlistable(error) else None
        if named is None:
            raise
        return named


class Named(Snapshot):
    """The nodes below a group that documents name, and the convention that names them."""

    def __init__(self, root: StorePath, found: _Found, source: Convention) -> None:
        super().__init__(root, nodes={path: {} for path in found})
        self.source = source
        self._found = found

    def load_at(self, where: StorePath) -> Metadata | None:
        """Return the node at a place; None if it is not named. Raises the error of a node that cannot be read."""
        found = self._found.get(self._relative(where.path))
        if isinstance(found, OmnizarrError):
            raise found
        if found is None and self.children(where.path):
            return GroupMetadata(dialect=self.root_dialect, implicit=True)
        return found

    @property
    def root_dialect(self) -> str:
        """The dialect of the group."""
        found = self._found[""]
        return found.dialect if isinstance(found, GroupMetadata) else "v3"

    def __reduce__(self) -> tuple[Any, ...]:
        return Named, (self.root, self._found, self.source)


def named_below(where: StorePath, metadata: GroupMetadata) -> Named | None:
    """Return the nodes below a group that documents name, read level by level; None if none names any.

    The document is that of the store itself, of OME-Zarr or of NCZarr.
    """
    ways: Iterable[tuple[Convention, _Names]] = ("store", _of_store), ("ome", _of_ome), ("nczarr", _of_nczarr)
    for source, names in ways:
        if (named := names(where, metadata)) is not None:
            found: dict[str, Metadata | OmnizarrError] = {"": metadata}
            for place, answer in by_name(where, metadata.dialect, named, names):
                found[place.path[len(where.prefix) :]] = answer
            return Named(where, found, source)
    return None


def _of_store(where: StorePath, _: GroupMetadata) -> list[str] | None:
    if not where.store.features.names_nodes:
        return None
    return [prefix[len(where.prefix) : -1] for prefix in where.store.list_dir(where.prefix).prefixes]


def _of_ome(_: StorePath, group: GroupMetadata) -> list[str] | None:
    return ome.named(group) or None


def _of_nczarr(where: StorePath, group: GroupMetadata) -> list[str] | None:
    named = nczarr.named(group)
    return nczarr.named(group, _beside(where)) if named is None and may_have_objects(group) else named


def _beside(where: StorePath) -> Iterable[JSON]:
    data = bounded.document(where.store, where.prefix + nczarr.GROUP_OBJECT)
    return () if data is None else (documents.parse(data, lambda _: None),)
