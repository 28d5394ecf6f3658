"""Nodes of a hierarchy whose store cannot list its keys: the nodes that documents name.

Consolidated metadata names all nodes below a group; NCZarr those directly below each; OME-Zarr images, labels and
wells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.model import GroupMetadata, Metadata
from omnizarr.nodes.array import Array
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.walk import by_name
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.formats.conventions.ome import naming
    from omnizarr.netcdf import layouts
else:  # most stores can list
    naming = Lazy("omnizarr.formats.conventions.ome.naming")
    layouts = Lazy("omnizarr.netcdf.layouts")

Source: TypeAlias = Literal["listing", "consolidated", "nczarr", "ome", "nothing"]
"""The source of the names of nodes."""

REMEDY = (
    "give the path of an array; or let the owner consolidate the metadata; or, where the server shows directories as "
    "pages of links, put fsspec+ before the URL"
)
_UNLISTED = "the server cannot list what is stored"
_WORDS: Mapping[Source, str] = {
    "listing": "members as the store lists them",
    "consolidated": "members as consolidated metadata names them",
    "nczarr": "members as NCZarr names them",
    "ome": "members as OME-Zarr names them, there may be others",
    "nothing": "its members are not known",
}

_Found: TypeAlias = Mapping[str, Metadata | OmnizarrError]
_Names: TypeAlias = Callable[[StorePath, GroupMetadata], list[str]]


class Named(Snapshot):
    """The nodes below a group that documents name, and the convention that names them."""

    def __init__(self, root: StorePath, found: _Found, source: Source) -> None:
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


def source_of(node: Array | Group) -> Source:
    """Return the source of the names of nodes below a node.

    Examples
    --------
    >>> import omnizarr
    >>> source_of(omnizarr.create_group({}))
    'listing'
    """
    snapshot = node._snapshot  # noqa: SLF001 - as all nodes below share it
    if isinstance(snapshot, Named):
        return snapshot.source
    if snapshot is not None:
        return "consolidated"
    return "listing" if node.store.supports_listing else "nothing"


def with_members(node: Array | Group) -> Array | Group:
    """Return a node with the members that documents name, if its store cannot list them and nothing else can."""
    if isinstance(node, Array) or source_of(node) != "nothing":
        return node
    where, metadata = node.store_path, node._metadata  # noqa: SLF001 - the model, as it is shared
    named = named_below(where, metadata)
    return node if named is None else Group(where, metadata, node._config, named)  # noqa: SLF001 - as above


def named_below(where: StorePath, metadata: GroupMetadata) -> Named | None:
    """Return the nodes below a group that OME-Zarr or NCZarr names, read level by level; None if neither names any."""
    ways: Iterable[tuple[Source, _Names]] = ("ome", lambda _, group: naming.named(group)), ("nczarr", _named_by_nczarr)
    for source, names in ways:
        if named := names(where, metadata):
            found: dict[str, Metadata | OmnizarrError] = {"": metadata}
            for place, answer in by_name(where, metadata.dialect, named, names):
                found[place.path[len(where.prefix) :]] = answer
            return Named(where, found, source)
    return None


def remark(node: Array | Group) -> str:
    """Return a line about what is unknown because the store cannot list; "" if everything is known."""
    if node.store.supports_listing:
        return ""
    return f"{_UNLISTED}; {source_in_words(node)}" if isinstance(node, Group) else _UNLISTED


def source_in_words(node: Group | Named) -> str:
    """Return where the names of nodes below a group come from, in words."""
    return _WORDS[node.source if isinstance(node, Named) else source_of(node)]


def check_members(node: Array | Group) -> None:
    """Raise StoreError if the members of a group are unknown."""
    if isinstance(node, Group) and source_of(node) == "nothing":
        raise StoreError("the members of the group are not known: the server cannot list them", remedy=REMEDY)


def _named_by_nczarr(where: StorePath, group: GroupMetadata) -> list[str]:
    return layouts.named(where, group) or []
