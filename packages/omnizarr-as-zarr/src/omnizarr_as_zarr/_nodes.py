"""Arrays and groups of omnizarr, with the additional members of zarr-python's."""

from __future__ import annotations

import asyncio
import inspect
from abc import ABCMeta
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import Any, Final, cast

from numpy.typing import DTypeLike

from omnizarr import aio, indexing
from omnizarr.aio.group import awaited
from omnizarr.api import creating
from omnizarr.errors import ContainsArrayError, ContainsGroupError, OmnizarrError
from omnizarr.formats import filters as v2_filters
from omnizarr.metadata import ArrayMetadata
from omnizarr.model import ArrayMetadata as ModelOfArray
from omnizarr.model import GroupMetadata as ModelOfGroup
from omnizarr.model import Metadata
from omnizarr.nodes import detection, hierarchy
from omnizarr.nodes.array import Array as CoreArray
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.detection import Found
from omnizarr.nodes.group import Group as CoreGroup
from omnizarr.nodes.indexers import AsType, points
from omnizarr.nodes.location import StorePath as Place
from omnizarr.nodes.members import UnreadableNode
from omnizarr.stores import resolve
from omnizarr.stores.tasks import waited
from omnizarr.support.memo import ById
from omnizarr_as_zarr._keywords import checked
from omnizarr_as_zarr._wording import worded
from omnizarr_as_zarr.abc.store import Store
from omnizarr_as_zarr.codecs.numcodecs import NOT_IN_SPECIFICATION
from omnizarr_as_zarr.core._tree import TreeRepr
from omnizarr_as_zarr.core.dtype._classes import ZDType
from omnizarr_as_zarr.core.indexing import AsyncOIndex, AsyncVIndex, is_orthogonal
from omnizarr_as_zarr.core.metadata import (
    ArrayV2Metadata,
    ArrayV3Metadata,
    ConsolidatedMetadata,
    GroupMetadata,
    array_metadata,
)
from omnizarr_as_zarr.errors import IncompatibleNodeError, ZarrDeprecationWarning, ZarrUserWarning, warn
from omnizarr_as_zarr.storage._below import below, place_given
from omnizarr_as_zarr.storage._classes import StorePath
from omnizarr_as_zarr.storage._outer import outer_of, place_of


class Info:
    """A printable summary of a node. Its members have zarr-python's names.

    Parameters
    ----------
    card : omnizarr.nodes.info_card.ArrayInfo or omnizarr.nodes.info_card.GroupInfo
    node : Array or Group
    """

    def __init__(self, card: Any, node: Any) -> None:
        self._card = card
        self._node = node

    def __getattr__(self, name: str) -> Any:
        plain_name = name.removeprefix("_")
        if name.startswith("__") or plain_name in {"card", "node"}:
            raise AttributeError(name)
        source = self._node if plain_name in {"compressors", "filters", "serializer"} else self._card
        return getattr(source, plain_name)

    def __repr__(self) -> str:
        return repr(self._card)

    def _repr_html_(self) -> str | None:
        html: str | None = self._card._repr_html_()
        return html


class _KindOfArray(ABCMeta):
    """Any array of omnizarr is one of these."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, CoreArray)


class _KindOfGroup(ABCMeta):
    """Any group of omnizarr is one of these."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, CoreGroup)


# -- from the ones to the others ---------------------------------------------------------


def named(node: Any) -> Any:
    """Return an array or group of omnizarr, or several, as those here; anything else unchanged."""
    if isinstance(node, CoreArray):
        return node if type(node) is Array else _warned(_with_state(Array, _in_c_order(node)))
    if isinstance(node, CoreGroup):
        return node if type(node) is Group else _with_state(Group, node)
    if isinstance(node, aio.AsyncArray):
        return node if type(node) is AsyncArray else AsyncArray(_warned(node.array))
    if isinstance(node, aio.AsyncGroup):
        return AsyncGroup(plain(node.group))
    return type(node)(map(named, node)) if type(node) in {tuple, list} else node


def plain(value: Any) -> Any:
    """Return omnizarr's equivalent of a node, a store or metadata; other values unchanged."""
    if isinstance(value, (AsyncArray, AsyncGroup)):
        return value.array if isinstance(value, AsyncArray) else value.group
    if type(value) is Array:
        return _with_state(CoreArray, value)
    if type(value) is Group:
        return _with_state(CoreGroup, value)
    if isinstance(value, GroupMetadata):
        return import_module("omnizarr.metadata").GroupMetadata.from_dict(
            {"zarr_format": value.zarr_format, "attributes": value.attributes}
            | ({"node_type": "group"} if value.zarr_format == 3 else {})
        )
    if isinstance(value, (ArrayV2Metadata, ArrayV3Metadata)):
        return value.own
    if isinstance(value, ZDType):
        return value.data_type
    return below(value)


def placed(store: Any) -> Any:
    """Return omnizarr's equivalent of what a program gives as the store of a node, which may be new."""
    found = place_given(store)
    return plain(store) if found is store else found


_STATE = {
    CoreArray: ("_where", "_state", "_config", "_snapshot"),
    CoreGroup: ("_where", "_metadata", "_config", "_copies", "_asked"),
}


def _in_c_order(array: CoreArray) -> CoreArray:
    """Return an array whose results have the layout "C" if nothing else is asked for, however chunks are stored."""
    if array._config.order is None:  # noqa: SLF001 - parts of it
        array._config = replace(array._config, order="C")  # noqa: SLF001
        array._state.bound = None  # noqa: SLF001 - it has been bound to another layout, or will be when it is used
    return array


def _with_state(kind: Any, node: Any) -> Any:
    """Return a node as one of another class: the two are one, and know of each other's changes of metadata."""
    made = kind.__new__(kind)
    for slot in _STATE[CoreArray if issubclass(kind, CoreArray) else CoreGroup]:
        setattr(made, slot, getattr(node, slot))
    return made


def _warned(array: Any) -> Any:
    """Return an array, after a warning if it has codecs of numcodecs in Zarr v3."""
    if array.zarr_format == 3 and any(each.name.startswith("numcodecs.") for each in array._metadata.codecs):  # noqa: SLF001 - a part of it
        warn(NOT_IN_SPECIFICATION, ZarrUserWarning)
    return array


def plain_all(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords as omnizarr takes them."""
    return {name: placed(value) if name == "store" else plain(value) for name, value in options.items()}


def handing_out(
    function: Callable[..., Any], check: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
) -> Callable[..., Any]:
    """Return a function that takes nodes and stores of here, and returns nodes of here; `check` sees its keywords."""
    of_store = placed if next(iter(inspect.signature(function).parameters)) == "store" else plain

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        options = check(options)
        with worded():
            return named(function(*map(of_store, args[:1]), *map(plain, args[1:]), **plain_all(options)))

    return call


create = handing_out(creating.create, checked)


def _method(name: str, check: Callable[[Mapping[str, Any]], dict[str, Any]] = dict) -> Any:
    """Return a method of omnizarr's groups that takes and returns nodes of here; `check` sees its keywords."""
    method = getattr(CoreGroup, name)

    @wraps(method)
    def call(self: Group, *args: Any, **options: Any) -> Any:
        options = check({"zarr_format": self.zarr_format, **options})
        options.pop("zarr_format")
        with worded(), _requiring(name):
            made = method(self, *map(plain, args), **plain_all(options))
        return map(named, made) if isinstance(made, Iterator) else named(made)

    return _signed(call) if name == "create_array" else call


def _awaited_method(name: str, check: Callable[[Mapping[str, Any]], dict[str, Any]] = dict) -> Any:
    """Return a coroutine method of omnizarr's asynchronous groups that takes and returns nodes of here."""
    method = getattr(aio.AsyncGroup, name)

    @wraps(method)
    async def call(self: AsyncGroup, *args: Any, **options: Any) -> Any:
        await asyncio.sleep(0)  # lets others begin, too, where the store answers at once
        options = check({"zarr_format": self.zarr_format, **options})
        options.pop("zarr_format")
        with worded(), _requiring(name):
            return named(await method(self, *map(plain, args), **plain_all(options)))

    return _signed(call) if name == "create_array" else call


def _signed(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method with the keywords of `create_array` in its signature."""
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    name = inspect.Parameter("name", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="str")
    others = [
        parameter
        for parameter in inspect.signature(creating.create_array).parameters.values()
        if parameter.name not in {"store", "name", "zarr_format"}
    ]
    method.__signature__ = inspect.Signature([itself, name, *others])  # type: ignore[attr-defined]
    return method


@contextmanager
def _requiring(method: str) -> Iterator[None]:
    """Have a method that requires a node of one kind raise TypeError if there is one of the other, as in h5py."""
    try:
        yield
    except (ContainsArrayError, ContainsGroupError) as error:
        if not method.startswith("require"):
            raise
        message = f"Incompatible object already exists: {error.message}"
        raise IncompatibleNodeError(message, store=error.store, path=error.path, remedy=error.remedy) from None


def _iterated_method(name: str) -> Any:
    """Return an asynchronous iterator of omnizarr's asynchronous groups that yields nodes of here."""
    method = getattr(aio.AsyncGroup, name)

    @wraps(method)
    async def call(self: AsyncGroup, *args: Any, **options: Any) -> AsyncIterator[Any]:
        async for item in method(self, *map(plain, args), **options):
            yield named(item)

    return call


def without_copies(store: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords that leave consolidated metadata alone where a store does not support it.

    Raises ValueError if they ask for it.
    """
    at = store.store if isinstance(store, StorePath) else store
    if isinstance(at, Store) and not at.supports_consolidated_metadata:
        if options.get("use_consolidated"):
            raise ValueError(f"The Zarr store in use ({type(at).__name__}) doesn't support consolidated metadata.")
        return {**options, "use_consolidated": False}
    return dict(options)


# -- arrays ------------------------------------------------------------------------------


class Array(CoreArray, metaclass=_KindOfArray):
    """An array in a store: `omnizarr.Array`, with the additional members of zarr-python's."""

    __slots__ = ()

    def __init__(self, store_path: Any, metadata: Any = None, config: Any = None, snapshot: Any = None) -> None:
        if isinstance(store_path, AsyncArray):
            source = store_path.array
            super().__init__(source.store_path, source._metadata, source.config, source._snapshot)  # noqa: SLF001
            return
        super().__init__(plain(store_path), plain(metadata), config, snapshot)
        _in_c_order(self)

    @classmethod
    def open(cls, store: Any, *, config: Any = None) -> Array:
        """Return the array at a place. Raises ArrayNotFoundError."""
        return cast("Array", named(CoreArray.open(plain(store), config=config)))

    @classmethod
    def create(cls, store: Any, **options: Any) -> Array:
        """Create an array and return it. Keywords are like those of `zarr.create`."""
        return cast("Array", create(store=store, **options))

    @classmethod
    def from_dict(cls, store_path: Any, data: Mapping[str, Any]) -> Array:
        """Return the array that a document describes, whether or not it is stored."""
        return cast("Array", named(CoreArray.from_dict(plain(store_path), _completed(data))))

    @property
    def async_array(self) -> AsyncArray:
        """The same array, to be awaited."""
        return AsyncArray(plain(self))

    _async_array = async_array

    @property
    def store(self) -> Store:  # type: ignore[override]
        """The store it is in."""
        return outer_of(self._where.store)

    @property
    def store_path(self) -> StorePath:  # type: ignore[override]
        """Where it is: store and path."""
        return place_of(self._where)

    @property
    def metadata(self) -> ArrayV2Metadata | ArrayV3Metadata:  # type: ignore[override]
        """What its documents say."""
        return array_metadata(super().metadata)

    @property
    def compressors(self) -> tuple[Any, ...]:
        """Bytes to bytes codecs; of Zarr v2, as objects of numcodecs."""
        return super().compressors if self.zarr_format != 2 else _numcodecs(self)[1]

    @property
    def filters(self) -> tuple[Any, ...]:
        """Array to array codecs; of Zarr v2, as objects of numcodecs."""
        return super().filters if self.zarr_format != 2 else _numcodecs(self)[0]

    @property
    def compressor(self) -> Any:
        """The compressor of Zarr v2; None if there is none. Raises TypeError for Zarr v3."""
        if self.zarr_format == 3:
            raise TypeError("`compressor` is not available for Zarr format 3 arrays.")
        compressors = self.compressors
        return compressors[-1] if compressors else None

    @property
    def info(self) -> Any:
        """A printable summary of the node."""
        return Info(plain(self).info, self)

    def info_complete(self) -> Any:
        """Return the card with what must be counted."""
        return Info(plain(self).info_complete(), self)

    def __getitem__(self, selection: Any) -> Any:
        """Return the selected elements; lists beside integers and slices select like `oindex`."""
        if is_orthogonal(selection, self.ndim):
            return self.oindex[selection]
        return super().__getitem__(selection)

    def __setitem__(self, selection: Any, value: Any) -> None:
        """Store elements; lists beside integers and slices select like `oindex`."""
        with worded():
            if is_orthogonal(selection, self.ndim):
                self.oindex[selection] = value
            else:
                super().__setitem__(selection, value)

    def astype(self, dtype: DTypeLike) -> AsType:
        """Return the array, to be read as another data type."""
        return cast("AsType", plain(self).astype(dtype))

    def with_config(self, config: ArrayConfig | Mapping[str, Any]) -> Array:
        """Return the same array, behaving otherwise."""
        return cast("Array", named(super().with_config(config)))

    def __repr__(self) -> str:
        return f"<Array {self.store_path} shape={self.shape} dtype={self.dtype}>"


def _completed(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document of an array with the defaults that zarr-python inserts for missing members."""
    if document.get("zarr_format") not in {2, 3}:
        raise ValueError(f"Invalid zarr_format: {document.get('zarr_format')}. Expected 2 or 3")
    return {"compressor": None, "filters": None, **document} if document.get("zarr_format") == 2 else document


def _numcodecs(array: Array) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return filters and compressor of an array of Zarr v2 as objects of numcodecs."""
    stack = v2_filters.dump_chain(array._metadata.codecs, array.ndim)  # noqa: SLF001 - its other half
    make = import_module("numcodecs").get_codec
    compressors = (stack.compressor,) if stack.compressor else ()
    return tuple(make(dict(each)) for each in stack.filters or ()), tuple(make(dict(each)) for each in compressors)


class AsyncArray(aio.AsyncArray):
    """An asynchronous array: `omnizarr.aio.AsyncArray`, with the additional members of zarr-python's."""

    __slots__ = ()

    def __init__(self, metadata: Any, store_path: Any = None, config: Any = None) -> None:
        if isinstance(metadata, CoreArray):
            super().__init__(_in_c_order(plain(metadata)))
            return
        place = plain(store_path)
        if isinstance(metadata, Mapping):
            super().__init__(_in_c_order(CoreArray.from_dict(place, _completed(metadata))))
        else:
            super().__init__(_in_c_order(CoreArray(place, plain(metadata), ArrayConfig.of(config))))

    @classmethod
    async def open(cls, store: Any, *, config: Any = None, zarr_format: Any = None) -> AsyncArray:
        """Return the array at a place. Raises ArrayNotFoundError."""
        return cast("AsyncArray", named(await aio.open_array(plain(store), config=config, zarr_format=zarr_format)))

    @classmethod
    async def create(cls, store: Any, **options: Any) -> AsyncArray:
        """Create an array and return it. Keywords are like those of `zarr.create`."""
        return (await waited(lambda: create(store=store, **options))).async_array  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, store_path: Any, data: Mapping[str, Any]) -> AsyncArray:
        """Return the array that a document describes, whether or not it is stored."""
        return cls(CoreArray.from_dict(plain(store_path), _completed(data)))

    async def getitem(self, selection: Any, *, prototype: Any = None) -> Any:
        """Return the selected elements as ``array[selection]`` does."""
        await asyncio.sleep(0)  # lets others begin, too, where the store answers at once
        return await super().getitem(selection, prototype=prototype)

    @property
    def store(self) -> Store:  # type: ignore[override]
        """The store it is in."""
        return outer_of(self.array.store)

    @property
    def store_path(self) -> StorePath:  # type: ignore[override]
        """Where it is: store and path."""
        return place_of(self.array.store_path)

    @property
    def metadata(self) -> ArrayV2Metadata | ArrayV3Metadata:  # type: ignore[override]
        """What its documents say."""
        return array_metadata(self.array.metadata)

    @property
    def compressors(self) -> tuple[Any, ...]:
        """Bytes to bytes codecs; of Zarr v2, as objects of numcodecs."""
        return cast("Array", named(self.array)).compressors

    @property
    def filters(self) -> tuple[Any, ...]:
        """Array to array codecs; of Zarr v2, as objects of numcodecs."""
        return cast("Array", named(self.array)).filters

    @property
    def compressor(self) -> Any:
        """The compressor of Zarr v2."""
        return cast("Array", named(self.array)).compressor

    @property
    def oindex(self) -> AsyncOIndex:
        """Orthogonal selections: ``await array.oindex.getitem(([0, 2], slice(None), mask))``."""
        return AsyncOIndex(self, indexing.orthogonal)

    @property
    def vindex(self) -> AsyncVIndex:
        """Selections of single elements: ``await array.vindex.getitem(([0, 2], [1, 1]))``, or by a mask."""
        return AsyncVIndex(self, points)

    def with_config(self, config: ArrayConfig | Mapping[str, Any]) -> AsyncArray:
        """Return the same array, behaving otherwise."""
        return AsyncArray(self.array.with_config(config))

    def __repr__(self) -> str:
        return f"<AsyncArray {self.store_path} shape={self.shape} dtype={self.dtype}>"


# -- groups ------------------------------------------------------------------------------


class Group(CoreGroup, metaclass=_KindOfGroup):
    """A group in a store: `omnizarr.Group`, with the additional members of zarr-python's."""

    __slots__ = ()

    def __init__(self, store_path: Any, metadata: Any = None, config: Any = None, snapshot: Any = None) -> None:
        if isinstance(store_path, AsyncGroup):
            source = store_path.group
            super().__init__(source.store_path, source._metadata, source._config, source._copies)  # noqa: SLF001
            return
        super().__init__(plain(store_path), plain(metadata), config, snapshot)

    @classmethod
    def open(cls, store: Any, *, zarr_format: Any = None, use_consolidated: bool | str | None = None) -> Group:
        """Return the group at a place. Raises GroupNotFoundError."""
        options = without_copies(store, {"use_consolidated": use_consolidated})
        with worded():
            return cast("Group", named(CoreGroup.open(plain(store), zarr_format=zarr_format, **options)))

    @classmethod
    def from_store(
        cls,
        store: Any,
        *,
        attributes: Mapping[str, Any] | None = None,
        zarr_format: Any = 3,
        overwrite: bool = False,
    ) -> Group:
        """Create a group at a place, and return it."""
        made = CoreGroup.from_store(placed(store), attributes=attributes, zarr_format=zarr_format, overwrite=overwrite)
        return cast("Group", named(made))

    def _node(self, found: Found[Metadata]) -> Any:
        return named(super()._node(found))

    def _children(self) -> Iterator[tuple[str, Any]]:
        if self._snapshot is not None:
            yield from super()._children()
            return
        names = detection.children(self._where)
        nodes = set()
        for name, found in detection.load_children(self._where, names, self._metadata.dialect):
            nodes.add(name)
            if isinstance(found, OmnizarrError):
                yield name, UnreadableNode(self._where.at(f"{self._where.prefix}{name}"), found)
            else:
                yield name, self._node(found)
        for name in sorted({*names} - nodes):
            warn(f"Object at {name} is not recognized as a component of a Zarr hierarchy.", ZarrUserWarning)

    def __getitem__(self, path: str) -> Any:
        """Return the node at a path; ``""`` is the group itself, as it is stored now."""
        if path.strip("/") or self._snapshot is not None:
            return named(super().__getitem__(path))
        return self._node(detection.open_node(self._where, prefer=self._metadata.dialect))

    def __delitem__(self, path: str) -> None:
        """Remove the node at a path, and all below it; ``""`` is the group itself, as in zarr-python."""
        if path.strip("/"):
            super().__delitem__(path)
        else:
            hierarchy.delete(self._where)

    @property
    def _async_group(self) -> AsyncGroup:
        return AsyncGroup(plain(self))

    @property
    def store(self) -> Store:  # type: ignore[override]
        """The store it is in."""
        return outer_of(self._where.store)

    @property
    def store_path(self) -> StorePath:  # type: ignore[override]
        """Where it is: store and path."""
        return place_of(self._where)

    @property
    def metadata(self) -> GroupMetadata:  # type: ignore[override]
        """The metadata in its documents, with the consolidated metadata of its members."""
        return metadata_of(self)

    def tree(  # type: ignore[override]
        self,
        expand: bool | None = None,  # noqa: FBT001 - zarr-python's signature
        level: int | None = None,
        *,
        max_nodes: int = 500,
        plain: bool = False,
    ) -> TreeRepr:
        """Return a drawing of the nodes below; see `omnizarr.Group.tree`."""
        if expand is not None:
            raise NotImplementedError("'expand' is not yet implemented.")
        return TreeRepr(self, level, max_nodes, plain=plain)

    @property
    def info(self) -> Any:
        """A printable summary of the node."""
        return Info(plain(self).info, self)

    def info_complete(self) -> Any:
        """Return the card with the number of members, at all depths."""
        return Info(plain(self).info_complete(), self)

    async def update_attributes_async(self, new_attributes: Mapping[str, Any]) -> Group:
        """Set several attributes in one atomic change; return the group."""
        await self._async_group.update_attributes(new_attributes)
        self.refresh()
        return self

    create_group = _method("create_group")
    require_group = _method("require_group")
    require_groups = _method("require_groups")
    create_array = _method("create_array", checked)
    create = create_array

    def create_dataset(self, name: str, **options: Any) -> Array:  # type: ignore[override] # keywords of zarr-python
        """Create an array below this group; another name of `create_array`."""
        warn("Use Group.create_array instead.", ZarrDeprecationWarning)
        return cast("Array", self.create_array(name, **options))

    def array(self, name: str, *, shape: Any, dtype: Any, data: Any = None, **options: Any) -> Array:  # type: ignore[override] # keywords of zarr-python
        """Create an array below this group, with values; another name of `create_array`."""
        warn("Use Group.create_array instead.", ZarrDeprecationWarning)
        # zarr-python says this of every call.
        warn("The `compressor` argument is deprecated. Use `compressors` instead.", ZarrUserWarning)
        given = {"data": data} if data is not None else {"shape": shape, "dtype": dtype}
        return cast("Array", self.create_array(name, **given, **options))

    require_array = _method("require_array", checked)

    def require_dataset(self, name: str, *, shape: Any, **options: Any) -> Array:  # type: ignore[override] # keywords of zarr-python
        """Return an array below this group; another name of `require_array`."""
        warn("Use Group.require_array instead.", ZarrDeprecationWarning)
        return cast("Array", self.require_array(name, shape=shape, **options))

    create_hierarchy = _method("create_hierarchy")
    empty_like = _method("empty_like")
    zeros_like = _method("zeros_like")
    ones_like = _method("ones_like")
    full_like = _method("full_like")
    __setitem__ = _method("__setitem__")

    def __repr__(self) -> str:
        return f"<Group {self.store_path}>"


def metadata_of(group: CoreGroup) -> GroupMetadata:
    """Return the metadata of a group, with that of the nodes below it if it was opened from consolidated metadata."""
    snapshot, own = group._snapshot, group._metadata  # noqa: SLF001 - parts of it
    if snapshot is not None:
        return GroupMetadata(group.attrs.asdict(), group.zarr_format, _copies(group, snapshot))
    kept = _remembered.get(own)
    if kept is None:
        kept = GroupMetadata(group.attrs.asdict(), group.zarr_format)
        _remembered.put(own, kept)
    return kept


_remembered: Final[ById[ModelOfGroup, GroupMetadata]] = ById(64)
"""Metadata of groups by omnizarr's metadata, which stays the same object until the group changes."""


def _copies(group: CoreGroup, snapshot: Snapshot) -> ConsolidatedMetadata:
    """Return the copies of the metadata of all below a group."""
    found: dict[str, Any] = {}
    skip = len(f"{group.path}/") if group.path else 0
    waiting = [group.path]
    while waiting:
        path = waiting.pop()
        for name in snapshot.children(path):
            below_it = f"{path}/{name}" if path else name
            node = snapshot.load(below_it)
            if isinstance(node, ModelOfArray):
                found[below_it[skip:]] = array_metadata(ArrayMetadata.of(node))
            elif isinstance(node, ModelOfGroup):
                zarr_format = CoreGroup(Place(resolve(None)[0]), node).zarr_format
                found[below_it[skip:]] = GroupMetadata(dict(node.attributes), zarr_format)
                waiting.append(below_it)
    return ConsolidatedMetadata.nested(dict(sorted(found.items())))


class AsyncGroup(aio.AsyncGroup):
    """An asynchronous group: `omnizarr.aio.AsyncGroup`, with the additional members of zarr-python's."""

    __slots__ = ()

    def __init__(self, metadata: Any, store_path: Any = None) -> None:
        if isinstance(metadata, CoreGroup):
            super().__init__(plain(metadata))
        else:
            super().__init__(CoreGroup(plain(store_path), plain(metadata)))

    @classmethod
    async def open(cls, store: Any, zarr_format: Any = None, use_consolidated: bool | str | None = None) -> AsyncGroup:  # noqa: FBT001
        """Return the group at a place. Raises GroupNotFoundError."""
        options = without_copies(store, {"use_consolidated": use_consolidated})
        with worded():
            return cast("AsyncGroup", named(await aio.open_group(plain(store), zarr_format=zarr_format, **options)))

    @classmethod
    async def from_store(
        cls,
        store: Any,
        *,
        attributes: Mapping[str, Any] | None = None,
        zarr_format: Any = 3,
        overwrite: bool = False,
    ) -> AsyncGroup:
        """Create a group at a place, and return it."""
        made = await aio.create_group(
            placed(store), attributes=attributes, zarr_format=zarr_format, overwrite=overwrite
        )
        return cast("AsyncGroup", named(made))

    @classmethod
    def from_dict(cls, store_path: Any, data: Mapping[str, Any]) -> AsyncGroup:
        """Return the group that a document describes, whether or not it is stored."""
        return cls(GroupMetadata.from_dict(data), store_path)

    @property
    def store(self) -> Store:  # type: ignore[override]
        """The store it is in."""
        return outer_of(self.group.store)

    @property
    def store_path(self) -> StorePath:  # type: ignore[override]
        """Where it is: store and path."""
        return place_of(self.group.store_path)

    @property
    def metadata(self) -> GroupMetadata:  # type: ignore[override]
        """The metadata in its documents, with the consolidated metadata of its members."""
        return metadata_of(self.group)

    _member = _awaited_method("getitem")

    async def getitem(self, key: str) -> Any:
        """Return the node at a path; ``""`` is the group itself, as it is stored now."""
        if key.strip("/"):
            return await self._member(key)
        group = named(self.group)
        return named(awaited(plain(await waited(lambda: group[""]))))

    get = _awaited_method("get")
    get_array = _awaited_method("get_array")
    get_group = _awaited_method("get_group")
    create_group = _awaited_method("create_group")
    require_group = _awaited_method("require_group")
    require_groups = _awaited_method("require_groups")
    create_array = _awaited_method("create_array", checked)
    require_array = _awaited_method("require_array", checked)

    async def create_dataset(self, name: str, **options: Any) -> AsyncArray:
        """Create an array below this group; another name of `create_array`."""
        warn("Use Group.create_array instead.", ZarrDeprecationWarning)
        return cast("AsyncArray", await self.create_array(name, **options))

    async def require_dataset(self, name: str, **options: Any) -> AsyncArray:
        """Return an array below this group; another name of `require_array`."""
        warn("Use Group.require_array instead.", ZarrDeprecationWarning)
        return cast("AsyncArray", await self.require_array(name, **options))

    empty = _awaited_method("empty")
    zeros = _awaited_method("zeros")
    ones = _awaited_method("ones")
    full = _awaited_method("full")
    setitem = _awaited_method("setitem")

    async def tree(  # type: ignore[override]
        self,
        expand: bool | None = None,  # noqa: FBT001 - zarr-python's signature
        level: int | None = None,
        *,
        max_nodes: int = 500,
        plain: bool = False,
    ) -> Any:
        """Return a drawing of the nodes below; see `omnizarr.Group.tree`."""
        group = named(self.group)
        return await waited(lambda: group.tree(expand, level, max_nodes=max_nodes, plain=plain))

    def __repr__(self) -> str:
        return f"<AsyncGroup {self.store_path}>"

    members = _iterated_method("members")
    groups = _iterated_method("groups")
    group_values = _iterated_method("group_values")
    arrays = _iterated_method("arrays")
    array_values = _iterated_method("array_values")
    create_hierarchy = _iterated_method("create_hierarchy")
