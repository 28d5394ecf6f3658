"""The nodes of a hierarchy that is converted, or shown in another format: all of them, or each by its name.

Documents themselves are read, not copies of them, unless there is only a copy, or the store cannot be listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple, TypeGuard

from omnizarr.errors import InvalidKeyError, OmnizarrError, StoreError
from omnizarr.formats.conventions import nczarr_metadata
from omnizarr.model import GroupMetadata, Metadata
from omnizarr.nodes import consolidated, detection, naming
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath, dialect_of
from omnizarr.nodes.nczarr_objects import objects_at
from omnizarr.nodes.walk import walk
from omnizarr.stores.base import NOT_LISTED
from omnizarr.tools import reaching


class Node(NamedTuple):
    """One node.

    Attributes
    ----------
    path : str
        Below the topmost node.
    found : Found or OmnizarrError
        The error that says why it cannot be read.
    siblings : sequence of str
        Names of the nodes beside it, if they were looked at.
    has_copies : bool
        A group with consolidated metadata.
    is_copy : bool
        It has no document but a copy in consolidated metadata.
    copies : Snapshot, optional
        Of a group: the nearest consolidated metadata, its own or that of a group above.
    """

    path: str
    found: Found[Metadata] | OmnizarrError
    siblings: Sequence[str] = ()
    has_copies: bool = False
    is_copy: bool = False
    copies: Snapshot | None = None

    @property
    def group(self) -> Found[GroupMetadata] | None:
        """The node, if it is a group that can be read."""
        found = self.found
        if isinstance(found, Found) and isinstance(found.metadata, GroupMetadata):
            return Found(found.where, found.metadata)
        return None


class Source:
    """A hierarchy.

    Parameters
    ----------
    root : Found
        Its topmost node.
    """

    def __init__(self, root: Found[Metadata]) -> None:
        where = root.where
        self.where = where
        self._named: naming.Named | None = None
        self._has_objects = root.metadata.dialect == "v2" and where.store.exists(
            where.prefix + nczarr_metadata.SUPERBLOCK
        )

    def top(self, found: Found[Metadata]) -> Node:
        """Return the topmost node; `found` is the metadata in its documents."""
        return self._whole(Node("", found), None)

    def walk(self, node: Node, *, concurrency: int = 1) -> Iterator[Node]:
        """Yield a node and all below it, parents first; `concurrency` is that of `omnizarr.nodes.walk.walk`.

        Raises StoreError if the store fails.
        """
        yield node
        yield from map(itemgetter(1), walk(node, self._looked_into, concurrency=concurrency))

    def _looked_into(self, node: Node) -> Iterator[Node] | None:
        return None if node.group is None else self.below(node)

    def below(self, group: Node) -> Iterator[Node]:
        """Yield the nodes directly below a group; none of any other node. Raises StoreError if the store fails."""
        if group.group is None:
            return
        below = list(_below(group.group, self._copies_below(group, group.group)))
        names = [name for name, _, _ in below]
        for name, found, is_copy in below:
            yield self._whole(self._child(group, name, found, names, is_copy=is_copy), group.copies)

    def names(self, group: Node) -> list[str]:
        """Return the sorted names of possible nodes directly below a group. Raises the errors of `below`."""
        if group.group is None:
            return []
        where, copies = group.group.where, self._copies_below(group, group.group)
        copied = [] if copies is None else copies.children(where.path)
        return sorted({*copied, *(_listed(where, copies) or ())})

    def child(self, group: Node, name: str) -> Node | None:
        """Return the node of a name directly below a group, or None. Raises StoreError if the store fails."""
        if group.group is None:
            return None
        where, prefer = group.group.where, group.group.metadata.dialect
        copies = group.copies or self._named_around(where)
        only = None if copies is None else _copy(where, copies, name)
        found = dict(detection.load_children(where, [name], prefer)).get(name)
        if is_failure(found):
            if only is None and naming.can_list(where):
                raise found
            found = None  # a store that cannot list fails where there is no document
        is_copy = only is not None and (found is None or (isinstance(found, Found) and is_implied(found.metadata)))
        found = only if is_copy else found
        return None if found is None else self._whole(self._child(group, name, found, is_copy=is_copy), group.copies)

    def copied(self, group: Node) -> Iterator[Node]:
        """Yield the nodes below a group of which its consolidated metadata has copies, parents first."""
        copies = group.copies

        def below(node: Node) -> Iterator[Node] | None:
            if node.group is None or copies is None:
                return None
            found = _copied(node.group.where, copies)
            return (self._child(node, name, each, is_copy=True) for name, each in found)

        return map(itemgetter(1), walk(group, below))

    def _child(
        self,
        group: Node,
        name: str,
        found: Found[Metadata] | OmnizarrError,
        siblings: Sequence[str] = (),
        *,
        is_copy: bool,
    ) -> Node:
        path = f"{group.path}/{name}" if group.path else name
        return Node(path, found, siblings, is_copy=is_copy)

    def _whole(self, node: Node, above: Snapshot | None) -> Node:
        """Return a node with all its details; `above` is the consolidated metadata of a group above."""
        if self._has_objects and isinstance(node.found, Found):
            node = node._replace(found=_with_objects(node.found))
        if node.group is None:
            return node
        own = _copies(node.group)
        return node._replace(has_copies=own is not None, copies=own or above)

    def _copies_below(self, group: Node, found: Found[GroupMetadata]) -> Snapshot | None:
        """Return the copies that apply below a group; in a store that cannot list and has none, what documents name."""
        if group.copies is not None or self.can_be_listed:
            return group.copies
        if not group.path or self._named_around(found.where) is None:
            self._named = naming.named_below(found.where, found.metadata)
        return self._named

    @property
    def can_be_listed(self) -> bool:
        """Whether the store says that it can list."""
        return self.where.store.supports_listing

    def _named_around(self, where: StorePath) -> Snapshot | None:
        named = self._named
        return named if named is not None and where.lies_in(named.root) else None

    @property
    def remark(self) -> str:
        """Why there may be nodes that were not found; "" if there are none."""
        named = self._named
        return reaching.source_in_words(named) if named is not None and named.source == "ome" else ""

    def check_is_whole(self) -> None:
        """Raise StoreError if there may be nodes that were not found."""
        if self.remark:
            raise StoreError(
                f"the store cannot list: {self.remark}",
                store=str(self.where.store),
                path=self.where.path,
                remedy=reaching.REMEDY,
            )

    @property
    def can_be_copied(self) -> bool:
        """Whether copies in consolidated metadata describe nodes completely."""
        return not self._has_objects


def _with_objects(found: Found[Metadata]) -> Found[Metadata]:
    """Return a node with the metadata that netCDF-C 4.8.0 stored in separate objects, as if it were in its documents.

    Later versions write it in this form, so it is carried in this form.
    """
    objects = objects_at(found.where, found.metadata)
    kinds = {name: kind for kind, names in nczarr_metadata.OBJECTS.items() for name in names}
    members = {f"_nczarr_{kinds[name]}": value for name, value in objects.items()}
    return replace(found, metadata=replace(found.metadata, unknown={**members, **found.metadata.unknown}))


def _copies(found: Found[GroupMetadata]) -> Snapshot | None:
    """Return the consolidated metadata of a group."""
    where, group = found.where, found.metadata
    dialect = dialect_of(where, group)
    is_within = dialect.consolidated.document is None
    if is_within and group.consolidated is None:
        return None
    try:
        nodes = consolidated.read(where, None, dialect, group if is_within else None)
    except StoreError:
        raise
    except OmnizarrError:
        return None  # broken: made again from the documents on request
    return None if nodes is None else Snapshot(where, None, nodes)


def _below(
    group: Found[GroupMetadata], copies: Snapshot | None
) -> Iterator[tuple[str, Found[Metadata] | OmnizarrError, bool]]:
    """Yield name and node of all below a group, and whether there is only a copy of its document."""
    where = group.where
    names = _listed(where, copies)
    if names is None:
        yield from ((name, found, False) for name, found in _copied(where, copies))
        return
    only = {} if copies is None else dict.fromkeys(copies.children(where.path))
    for name, found in detection.load_children(where, names, group.metadata.dialect):
        if is_failure(found):
            raise found
        is_whole = isinstance(found, OmnizarrError) or not is_implied(found.metadata)
        if name in only and (is_whole or copies is None or _copy(where, copies, name) is None):
            del only[name]
        if name not in only:
            yield name, found, False
    yield from ((name, found, True) for name, found in _copied(where, copies, only))


def _listed(where: StorePath, copies: Snapshot | None) -> list[str] | None:
    """Return the names that a listing shows; None if the store cannot be listed, and there are copies instead."""
    try:
        return detection.children(where)
    except NOT_LISTED as error:
        if copies is None or not naming.is_unlistable(error):
            raise
        return None


def is_failure(found: Found[Metadata] | OmnizarrError | None) -> TypeGuard[StoreError]:
    """Return whether the store has failed, so it is unknown which nodes exist."""
    return isinstance(found, StoreError) and not isinstance(found, InvalidKeyError)


def is_implied(metadata: Metadata) -> bool:
    """Whether a node is a group without a document."""
    return isinstance(metadata, GroupMetadata) and metadata.implicit


def _copied(
    where: StorePath, copies: Snapshot | None, names: Iterable[str] | None = None
) -> Iterator[tuple[str, Found[Metadata] | OmnizarrError]]:
    """Yield name and node of each copy directly below a group; of those with some names, if they are given."""
    if copies is None:
        return
    for name in copies.children(where.path) if names is None else names:
        found = _copy(where, copies, name)
        if found is not None:
            yield name, found


def _copy(where: StorePath, copies: Snapshot, name: str) -> Found[Metadata] | OmnizarrError | None:
    place = where.at(f"{where.prefix}{name}")
    try:
        metadata = copies.load(place.path)
    except OmnizarrError as error:
        return error
    return None if metadata is None else Found(place, metadata)
