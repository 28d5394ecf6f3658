"""Where the names of the nodes below a group come from, in words: a listing, or documents where a store cannot list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from omnizarr.errors import StoreError
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.naming import Named, named_below

Source: TypeAlias = Literal["listing", "consolidated", "nczarr", "ome", "store", "nothing"]
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
    "store": "members as its own document names them",
    "nothing": "its members are not known",
}


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
