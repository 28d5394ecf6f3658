"""Groups: mappings of names to arrays and other groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, Unpack, cast, overload

from omnizarr import metadata as public
from omnizarr.errors import (
    ArrayNotFoundError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    NodeNameError,
    NodeNotFoundError,
    OmnizarrError,
    Wording,
)
from omnizarr.formats import dialect_named
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata
from omnizarr.nodes import detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.attributes import Attrs, to_json
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.detection import Found
from omnizarr.nodes.late import (
    contents,
    habits,
    hierarchy,
    info,
    info_card,
    info_html,
    nczarr_members,
    new_hierarchy,
    replacing,
    showing,
)
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.members import Member, Members, UnreadableNode
from omnizarr.nodes.naming import Named, children, lists_members
from omnizarr.nodes.new_arrays import NewArrays
from omnizarr.nodes.options import ArrayOptions, RequireOptions, shows
from omnizarr.nodes.walk import walk
from omnizarr.stores import threads
from omnizarr.stores.resolve import refuse_other_format, resolve_root
from omnizarr.support.lazy import Lazy
from omnizarr.support.text import visible

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from omnizarr.nodes import creating
    from omnizarr.nodes.new_hierarchy import Formats, New
    from omnizarr.nodes.options import Shape
    from omnizarr.pictures.picture import Picture
else:
    creating = Lazy("omnizarr.nodes.creating")  # above arrays, so not with those of `late`

T = TypeVar("T")

# Type of what a path leads to, for type checkers.
AnyNode: TypeAlias = "Array | Group"


class Group(Members, NewArrays):
    """A group in a store.

    You get groups from `omnizarr.open_group`, `omnizarr.create_group` and other groups. A group keeps only its
    own metadata in memory; members are looked up when you ask for them. A group opened from consolidated metadata
    finds its members there, and updates the consolidated metadata when you change them.

    Examples
    --------
    >>> import omnizarr
    >>> root = omnizarr.create_group({})
    >>> temp = root.create_array("atmos/temp", shape=(365, 180), dtype="float32")
    >>> root["atmos"].attrs["source"] = "buoys"
    >>> root.tree()
    /
    └── atmos
        └── temp (365, 180) float32
    """

    __slots__ = ("_config", "_copies", "_metadata")

    _metadata: GroupMetadata

    def __init__(
        self,
        store_path: StorePath,
        metadata: GroupMetadata,
        config: ArrayConfig | None = None,
        snapshot: Snapshot | Callable[[], Snapshot | None] | None = None,
    ) -> None:
        self._where = store_path
        self._metadata = metadata
        self._config = config
        self._copies = snapshot
        self._asked = None

    @property
    def _snapshot(self) -> Snapshot | None:
        """The consolidated metadata with the members; looked for at first use."""
        copies = self._copies  # read once, because another thread may replace it
        if copies is not None and not isinstance(copies, Snapshot):
            copies = self._copies = copies()
        return copies

    @classmethod
    def open(
        cls, store: Any, *, zarr_format: int | str | None = None, use_consolidated: bool | str | None = None
    ) -> Group:
        """Return the group at a store, a `StorePath`, a path or a URL. Raises GroupNotFoundError.

        Examples
        --------
        >>> import omnizarr
        >>> values = {}
        >>> _ = omnizarr.create_group(values)
        >>> omnizarr.Group.open(values)
        <Group / memory>
        """
        where = store if isinstance(store, StorePath) else StorePath(*resolve_root(store))
        found = detection.open_group(where, zarr_format)
        return cls(found.where, found.metadata, None, Snapshot.of(found, use_consolidated))

    @classmethod
    def from_store(
        cls,
        store: Any,
        *,
        attributes: Mapping[str, Any] | None = None,
        zarr_format: int | str | None = None,
        overwrite: bool = False,
    ) -> Group:
        """Create a group at a store, a `StorePath`, a path or a URL, and return it.

        Examples
        --------
        >>> import omnizarr
        >>> omnizarr.Group.from_store({}, attributes={"title": "buoys"}).attrs
        {'title': 'buoys'}
        """
        where = store if isinstance(store, StorePath) else StorePath(*resolve_root(store, "a"))
        if where.store is not store:
            refuse_other_format(where.store)
        found = creating.new_group(where, zarr_format, attributes, overwrite=overwrite)
        return cls(found.where, found.metadata)

    # -- what it is ---------------------------------------------------------------

    @property
    def metadata(self) -> public.GroupMetadata:
        """The metadata of the group.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.metadata.zarr_format
        3
        """
        return public.GroupMetadata.of(self._metadata)

    @property
    def is_consolidated(self) -> bool:
        """Whether members come from consolidated metadata.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.is_consolidated, omnizarr.consolidate_metadata(root.store).is_consolidated
        (False, True)
        """
        return self._snapshot is not None and not isinstance(self._snapshot, Named)

    @property
    def info(self) -> info_card.GroupInfo:
        """A summary of the metadata. Print it to read it.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> print(root.info)
        Name         : /
        Type         : Group
        ...
        """
        return info_card.of_group(self)

    @property
    def filename(self) -> str:
        """The path or URL of the store, without secrets, as h5py calls it; "" if it has none, as memory.

        Examples
        --------
        >>> import omnizarr
        >>> omnizarr.create_group({}).filename
        ''
        """
        return self._where.store.place

    @property
    def file(self) -> Group:
        """The group at the root of the store, as h5py calls it. Raises GroupNotFoundError if there is none.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.create_group("ocean/deep").file
        <Group / memory>
        """
        return Group.open(self._where.at(""))

    def info_complete(self) -> info_card.GroupInfo:
        """Return the summary of `info` with the number of members at all depths.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.info_complete().arrays
        1
        """
        found = [node for _, node in self.members(max_depth=None)]
        arrays = sum(isinstance(node, Array) for node in found)
        groups = sum(isinstance(node, Group) for node in found)
        return info_card.of_group(self, members=len(found), arrays=arrays, groups=groups)

    # -- members ------------------------------------------------------------------

    def __getitem__(self, path: str) -> AnyNode:
        """Return the array or group at a path below this one.

        Raises
        ------
        NodeNotFoundError
            If there is none. It is also a KeyError, and suggests similar names.
        MetadataError
            If its metadata breaks its format.
        """
        where = self._where / path
        if where.path == self._where.path:
            return self
        snapshot = self._snapshot
        if snapshot is None:
            return self._node(detection.open_node(where, prefer=self._metadata.dialect))
        if type(snapshot) is Snapshot and (metadata := snapshot.load_at(where)) is not None:
            if isinstance(metadata, ArrayMetadata):
                return Array(where, metadata, self._config, snapshot)
            return Group(where, metadata, self._config, snapshot)
        found = self._find(where)
        if found is None:
            raise detection.not_found(where, NodeNotFoundError)
        return self._node(found)

    def _find(self, where: StorePath) -> Found[Metadata] | None:
        snapshot = self._snapshot
        if snapshot is None or isinstance(snapshot, Named):  # there may be others than documents name
            found = detection.look(where, self._metadata.dialect)
            if found is not None or snapshot is None:
                return found
        metadata = snapshot.load_at(where)
        return None if metadata is None else Found(where, metadata)

    def _node(self, found: Found[Metadata]) -> AnyNode:
        where, metadata = found.where, found.metadata
        if isinstance(metadata, ArrayMetadata):
            return Array(where, metadata, self._config, self._snapshot)
        return Group(where, metadata, self._config, self._snapshot)

    @overload
    def get(self, path: str) -> AnyNode | None: ...
    @overload
    def get(self, path: str, default: T) -> AnyNode | T: ...
    def get(self, path: str, default: Any = None) -> Any:
        """Return the array or group at a path, or `default` if there is none.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.get("ocean/temp")
        <Array /ocean/temp (3,) int64 memory>
        >>> root.get("ocean/salt", "none")
        'none'
        """
        where = self._where / path
        if where.path == self._where.path:
            return self
        found = self._find(where)
        return default if found is None else self._node(found)

    def get_array(self, path: str) -> Array:
        """Return the array at a path. Raises ArrayNotFoundError, or ContainsGroupError if there is a group.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.get_array("ocean/temp")[0]
        np.int64(1)
        """
        node = self._get(path, ArrayNotFoundError)
        if not isinstance(node, Array):
            raise ContainsGroupError("there is a group, not an array", store=str(self._where.store), path=node.path)
        return node

    def get_group(self, path: str) -> Group:
        """Return the group at a path. Raises GroupNotFoundError, or ContainsArrayError if there is an array.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.get_group("ocean")
        <Group /ocean memory>
        """
        node = self._get(path, GroupNotFoundError)
        if not isinstance(node, Group):
            raise ContainsArrayError("there is an array, not a group", store=str(self._where.store), path=node.path)
        return node

    def _get(self, path: str, kind: type[NodeNotFoundError]) -> AnyNode:
        try:
            return self[path]
        except NodeNotFoundError as error:
            raise kind(error.message, store=error.store, path=error.path, remedy=error.remedy) from None

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str):
            return False
        try:
            return self._find(self._where / path) is not None
        except NodeNotFoundError:
            return False
        except OmnizarrError:
            return True  # a node exists, although it cannot be read

    def _children(self) -> Iterator[tuple[str, Member]]:
        """Yield name and node of each direct member."""
        yield from self._members(self._names())

    def _names(self) -> list[str]:
        """Return the sorted names of possible nodes directly below the group, from wherever they are known."""
        known = self._snapshot or children(self._where, self._metadata)
        if isinstance(known, Named):
            self._copies = known  # for all nodes below, too
        return known.children(self._where.path) if isinstance(known, Snapshot) else known

    def _members(self, names: Sequence[str]) -> Iterator[tuple[str, Member]]:
        """Yield name and node of each direct member with one of some names."""
        where, snapshot = self._where, self._snapshot
        for name, found in (  # in no variable, as `pool.gather` says
            detection.load_children(where, names, self._metadata.dialect)
            if snapshot is None
            else _from_snapshot(snapshot, where, names)
        ):
            if isinstance(found, OmnizarrError):
                yield name, UnreadableNode(where.at(f"{where.prefix}{name}"), found)
            else:
                yield name, self._node(found)

    def _walk(
        self, max_depth: int | None, *, use_consolidated_for_children: bool = True
    ) -> Iterator[tuple[str, Member]]:
        if max_depth is not None and max_depth < 0:
            raise ValueError(
                Wording("{max_depth} must be None or an integer from 0, not " + str(max_depth), max_depth=...)
            )
        top = self
        if not use_consolidated_for_children and self._snapshot is not None:
            top = Group(self._where, self._metadata, self._config)
        concurrency = 1 if top._snapshot is not None else self._where.store.features.concurrency
        skip = len(self._where.prefix)
        for _, node in walk(cast("Member", top), _below, max_depth=max_depth, concurrency=concurrency):
            yield node.path[skip:], node

    # -- creating and removing ----------------------------------------------------------

    def create_group(self, name: str, *, overwrite: bool = False, attributes: Mapping[str, Any] | None = None) -> Group:
        """Create a group below this one, and missing groups between them, and return it.

        Raises ContainsArrayError or ContainsGroupError if a node exists at the path, unless `overwrite` is True.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.create_group("ocean/deep", attributes={"depth": 4000})
        <Group /ocean/deep memory>
        """
        where = self._below(name)
        metadata = creating.new_group_metadata(where, dialect_named(self._metadata.dialect), attributes)
        where = creating.add_group(where, metadata, overwrite=overwrite).where
        self._keep_up()
        return Group(where, metadata, self._config, self._snapshot)

    def require_group(self, name: str, overwrite: bool = False) -> Group:  # noqa: FBT001, FBT002 - zarr's signature
        """Return the group at a path. Create it if there is none.

        Raises ContainsArrayError if there is an array, unless `overwrite` is True.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.require_group("ocean"), root.require_group("land")
        (<Group /ocean memory>, <Group /land memory>)
        """
        if overwrite:
            return self.create_group(name, overwrite=True)
        where = self._where / name
        metadata = creating.new_group_metadata(where, dialect_named(self._metadata.dialect), None)
        found = creating.require_group(where, metadata)
        self._keep_up()
        return Group(found.where, found.metadata, self._config, self._snapshot)

    def require_groups(self, *names: str) -> tuple[Group, ...]:
        """Return the groups at several paths. Create missing ones.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.require_groups("ocean", "land")
        (<Group /ocean memory>, <Group /land memory>)
        """
        return tuple(self.require_group(name) for name in names)

    @shows(ArrayOptions)
    def create_array(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array below this group, and missing groups between them, and return it.

        Keywords are those of `omnizarr.create_array`.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.create_array("ocean/temp", shape=(365, 180), chunks=(30, 180), dtype="float32")
        <Array /ocean/temp (365, 180) float32 memory>
        """
        options.setdefault("config", self._config)
        where = self._below(name)
        array = creating.new_array(where, zarr_format=self.zarr_format, snapshot=self._snapshot, **options)
        self._keep_up()
        return array

    def _below(self, path: str) -> StorePath:
        """Return a place below this group.

        Raises NodeNameError for an empty path, which would mean the group itself.
        """
        where = self._where / path
        if where.path == self._where.path:
            raise NodeNameError("a member of a group must have a name", path=self.path, found=repr(path))
        return where

    create = create_array

    @shows(RequireOptions)
    def require_array(
        self,
        name: str,
        shape: Shape,
        dtype: DTypeLike | None = None,
        *,
        exact: bool = False,
        **options: Unpack[RequireOptions],
    ) -> Array:
        """Return the array at a path. Create it if there is none.

        Parameters
        ----------
        name : str
        shape : int or tuple of int
        dtype : data type, optional
        exact : bool
            True: an existing array must have exactly this `dtype`. False: its data type must be castable to `dtype`.
        **options
            Other keywords of `create_array`.

        Raises
        ------
        ValueTypeError
            If there is an array with another shape or data type.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.require_array("ocean/temp", shape=(3,), dtype="int64")[:]
        array([1, 2, 3])
        """
        options.setdefault("config", self._config)
        array = creating.require_array(
            self._where / name,
            shape=shape,
            dtype=dtype,
            exact=exact,
            zarr_format=self.zarr_format,
            snapshot=self._snapshot,
            **options,
        )
        self._keep_up()
        return array

    require_dataset = require_array

    def __setitem__(self, path: str, value: Any) -> None:
        """Store values as an array at a path.

        An existing array is replaced; an existing group raises ContainsGroupError.
        """
        if isinstance(self.get(path), Group):
            raise ContainsGroupError(
                "there is a group already",
                store=str(self._where.store),
                path=(self._where / path).path,
                remedy="delete it first",
            )
        self.create_array(path, data=value, overwrite=True)

    def __delitem__(self, path: str) -> None:
        """Remove the node at a path and all nodes below it. Raises NodeNotFoundError if there is none."""
        where = self._below(path)
        if path not in self:
            raise detection.not_found(where, NodeNotFoundError)
        if self._is_listed(path):
            nczarr_members.enter(where, None)
            self._keep_up()
        hierarchy.delete(where)

    def _keep_up(self) -> None:
        """Read the metadata again, if they list members, after one was created."""
        if lists_members(self._metadata):
            self.refresh()

    def _is_listed(self, path: str) -> bool:
        """Return whether this group, or that directly above a node, lists its members."""
        return nczarr_members.is_listed_below(self._where, self._metadata, self._where / path)

    def create_hierarchy(
        self, nodes: Mapping[str, ArrayMetadata | GroupMetadata], *, overwrite: bool = False
    ) -> Iterator[tuple[str, AnyNode]]:
        """Create many nodes below this group, and yield path and node of each, missing groups between them included.

        Parameters
        ----------
        nodes : mapping of str to metadata
            The metadata of each node by its path relative to this group.
        overwrite : bool
            Replace existing nodes that are among `nodes`.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> array = root.create_array("t", shape=(4,), dtype="int16")
        >>> [path for path, _ in root.create_hierarchy({"a/b/t": array.metadata})]
        ['a', 'a/b', 'a/b/t']
        """
        yield from create_nodes(self._where, nodes, self._config, self._snapshot, overwrite=overwrite)
        self._keep_up()

    def _like(self, name: str, data: Any, options: Mapping[str, Any]) -> Array:
        found = creating.like(data, {"zarr_format": self.zarr_format, **options})
        array = creating.new_array(self._below(name), snapshot=self._snapshot, **found)
        self._keep_up()
        return array

    # -- moving and copying -------------------------------------------------------------

    def move(self, source: str, dest: str) -> None:
        """Move a node and all nodes below it to another path in this group.

        In a directory, this is one rename. Object stores copy the chunks themselves.

        Raises
        ------
        NodeNotFoundError
            If there is no node at `source`.
        ContainsArrayError, ContainsGroupError
            If there is a node at `dest`.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.move("ocean", "sea")
        >>> list(root)
        ['sea']
        """
        old, new = self._where / source, self._where / dest
        if not (self._is_listed(source) or self._is_listed(dest)):
            hierarchy.move(old, new)
            return
        entry = nczarr_members.listed(old)
        nczarr_members.enter(old, None)
        try:
            hierarchy.move(old, new)
        except BaseException:
            nczarr_members.enter(old, entry.kind, entry.marks)
            raise
        nczarr_members.arrive(old, new, entry.marks)
        self._keep_up()

    rename = move

    def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        """Copy a node and all nodes below it, byte for byte, to another path in this group.

        Raises the errors of `move`.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["ocean/temp"] = [1, 2, 3]
        >>> root.copy("ocean", "sea")
        >>> list(root)
        ['ocean', 'sea']
        """
        old, new = self._where / source, self._where / dest
        replacing.copy(old, new, overwrite=overwrite)
        if self._is_listed(dest):
            nczarr_members.arrive(old, new, nczarr_members.listed(old).marks)
            self._keep_up()

    # -- metadata ------------------------------------------------------------------

    def update_attributes(self, new_attributes: Mapping[str, Any]) -> Group:
        """Set several attributes in one atomic change, and return the group.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root.update_attributes({"title": "buoys"}).attrs
        {'title': 'buoys'}
        """
        self.attrs.update(to_json(new_attributes))
        return self

    @property
    def _own_format(self) -> str | None:
        """The format of the group's own documents; None if it has none yet."""
        return None if self._metadata.implicit else self._metadata.dialect

    def refresh(self) -> None:
        """Read the metadata again, in case another program changed it.

        Examples
        --------
        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> same = omnizarr.open_group(root.store)
        >>> root.attrs["title"] = "buoys"
        >>> same.refresh()
        >>> same.attrs
        {'title': 'buoys'}
        """
        since = self._metadata
        self._adopt(self._stored(), since)

    def _stored(self) -> GroupMetadata:
        return detection.open_group(self._where, self._own_format).metadata

    def _adopt(self, metadata: GroupMetadata, since: GroupMetadata) -> None:
        """Use the metadata that is stored now.

        `since` is the metadata before. If another thread has replaced it, its metadata may be newer or older, so they
        are read again.
        """
        with threads.lock((Group, id(self))):
            self._metadata = metadata if self._metadata is since else self._stored()

    def _change_attributes(self, change: Callable[[Attrs], Attrs]) -> None:
        since = self._metadata
        metadata = hierarchy.update(
            self._where,
            GroupMetadata,
            lambda metadata: replace(metadata, implicit=False, attributes=change(dict(metadata.attributes))),
            self._own_format,
        )
        self._adopt(metadata, since)

    # -- Python protocols ----------------------------------------------------------------

    def close(self) -> None:
        """Close the store: a zip archive is complete, and its file and those of databases are closed. It is safe twice.

        Values in other stores are complete as soon as they are written. A ``with`` statement closes the group at its
        end. Other groups and arrays of the same store cannot use a closed archive or database either.

        Examples
        --------
        >>> import io
        >>> import omnizarr
        >>> file = io.BytesIO()  # or the path of a zip archive
        >>> with omnizarr.create_group(omnizarr.storage.ZipStore(file, mode="w")) as root:
        ...     root["temp"] = [1.5, 2.5]
        >>> root = omnizarr.open_group(omnizarr.storage.ZipStore(file))
        >>> root["temp"][:]
        array([1.5, 2.5])
        >>> root.close()
        """
        self._where.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    if not TYPE_CHECKING:  # for which every name would be one

        def __getattr__(self, name: str) -> object:
            raise habits.missing(type(self).__name__, name, habits.GROUP, self)

    def show(
        self,
        selection: Any = (),
        *,
        colormap: str = "viridis",
        limits: tuple[float, float] | None = None,
        percentiles: tuple[float, float] = (2, 98),
        rgb: bool | None = None,
        size: tuple[int, int] = (520, 400),
    ) -> Picture:
        """Return a picture of the group: of a multiscale image of OME-Zarr, or else of one of its arrays.

        It is the first array directly below, by name, with two or more dimensions; if there is none, the first
        with one dimension, or any. Arrays with the coordinates of a dimension come last. The picture names the
        others.

        Parameters
        ----------
        selection, colormap, limits, percentiles, rgb, size
            As in `Array.show`.

        Returns
        -------
        Picture

        Raises
        ------
        NodeNotFoundError
            If there is no array directly below the group.

        Examples
        --------
        >>> import omnizarr
        >>> group = omnizarr.create_group({})
        >>> group["waves"] = [[0.5, 1.5], [2.5, 3.5]]
        >>> group.show().page.title
        '/waves[:, :] float64'
        """
        style = contents.Style(colormap, limits, percentiles)
        return showing.picture_of_group(self, selection, style, size, rgb=rgb)

    def __repr__(self) -> str:
        return f"<Group {visible(self.name)} {info.store_name(self._where.store)}>"

    def _repr_html_(self) -> str:
        return info_html.render(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        return self._where == other._where and self._metadata == other._metadata

    def __hash__(self) -> int:
        return hash((Group, self._where.path))

    def __reduce__(self) -> tuple[Any, ...]:
        metadata = self._metadata
        if metadata.consolidated is not None:
            # It may hold copies of thousands of documents. The snapshot reads them again.
            metadata = replace(metadata, consolidated=None, spellings={})
        return type(self), (self._where, metadata, self._config, self._snapshot)

    def __dask_tokenize__(self) -> object:
        return self._token()


def create_nodes(
    where: StorePath,
    nodes: Mapping[str, ArrayMetadata | GroupMetadata],
    config: ArrayConfig | None = None,
    snapshot: Snapshot | None = None,
    *,
    overwrite: bool = False,
) -> Iterator[tuple[str, AnyNode]]:
    """Create nodes and the missing groups above them; `overwrite` replaces those that are given."""

    def create(place: StorePath, new: New, new_in: Formats | None) -> AnyNode:
        is_replaced = overwrite and new.is_given
        return create_node(place, new.metadata, config, snapshot, overwrite=is_replaced, new_in=new_in)

    def lists(node: AnyNode) -> bool:
        return isinstance(node, Group) and lists_members(node._metadata)  # noqa: SLF001 - of its kind

    return new_hierarchy.created(where, nodes, create, lists)


def create_node(
    where: StorePath,
    metadata: ArrayMetadata | GroupMetadata,
    config: ArrayConfig | None = None,
    snapshot: Snapshot | None = None,
    *,
    overwrite: bool = False,
    new_in: Formats | None = None,
) -> Array | Group:
    """Store the documents of a new node, and return the node. An existing explicit group is kept.

    `new_in` is that of `creating.add_array`.
    """
    if isinstance(metadata, ArrayMetadata):
        model = public.as_model(metadata)
        return creating.add_array(where, model, config, overwrite=overwrite, snapshot=snapshot, new_in=new_in)
    if new_in is not None:
        made = hierarchy.create_in_new(where, metadata, new_in)
        return Group(made.where, made.metadata, config, snapshot)
    found = (
        creating.add_group(where, metadata, overwrite=True) if overwrite else creating.require_group(where, metadata)
    )
    return Group(found.where, found.metadata, config, snapshot)


def _below(node: Member) -> Iterator[Member] | None:
    return node.values() if isinstance(node, Group) else None


def _from_snapshot(
    snapshot: Snapshot, where: StorePath, names: Iterable[str]
) -> Iterator[tuple[str, Found[Metadata] | OmnizarrError]]:
    prefix = where.prefix
    for name in names:
        place = where.at(prefix + name)
        try:
            metadata = snapshot.load_at(place)
        except OmnizarrError as error:
            yield name, error
            continue
        if metadata is not None:
            yield name, Found(place, metadata)
