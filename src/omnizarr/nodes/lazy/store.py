"""Lazy arrays as a hierarchy of Zarr v3, whose chunks are made when they are read."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omnizarr.errors import MetadataError, ReadOnlyError
from omnizarr.indexing import Plan
from omnizarr.indexing.inverse import transform_of
from omnizarr.model import Named, keys
from omnizarr.model.grids import Grid
from omnizarr.nodes import creating, detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.indexers import AnyArray
from omnizarr.nodes.lazy import tree
from omnizarr.nodes.lazy.deferred import Deferred
from omnizarr.nodes.lazy.reading import read
from omnizarr.nodes.lazy.tree import selected
from omnizarr.nodes.lazy.view import LazyArray
from omnizarr.nodes.location import StorePath
from omnizarr.stores import Buffer, Features, MemoryStore, Span, Store, verbs
from omnizarr.stores.base import Elements, answers, as_prefix, check_key, cut

_KEYS: Final = keys.bind(Named("default"))
_PLAIN: Final = "biufcmMSUV"
"""Kinds of data types whose elements are bytes."""
_ELSEWHERE: Final = Features(16, is_shared=True)
"""Of sources on other machines that are not open."""
_MOST_BYTES: Final = 64 * 2**20
"""Size of a chunk of sources that are not chunked themselves."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads elements of a lazy array as an engine does."""

    view: LazyArray

    def __call__(self, plan: Plan, grid: Grid, out: AnyArray, concurrency: int | None) -> None:
        if 0 not in plan.buffer_shape:
            read(selected(self.view._node, transform_of(plan, grid)), out, concurrency)  # noqa: SLF001 - one thing


class LazyStore(Store):
    """Lazy arrays, shown as a hierarchy of Zarr v3. Its chunks are read from the sources when they are requested.

    `omnizarr.combine` returns a group in such a store. `convert`, `serve`, `check`, xarray and whatever else takes a
    store or a group take this one. The store is read-only. Its chunks are not compressed, as they are made to be read:
    pass ``compressors`` to convert it.

    Parameters
    ----------
    arrays : mapping of str to LazyArray
        The arrays, by path.
    attributes : mapping of str to mapping, optional
        The attributes of arrays and groups, by path; ``""`` is the root. An array that is not named has those of its
        lazy array.
    notes : sequence of str
        What was done to bring sources together, and what they disagree about.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> from omnizarr.storage import LazyStore
    >>> store = LazyStore({"depth": omnizarr.concat([np.arange(3), np.arange(5)])})
    >>> omnizarr.open(store)["depth"][2:5]
    array([2, 0, 1])
    """

    read_only = True

    def __init__(
        self,
        arrays: Mapping[str, LazyArray],
        attributes: Mapping[str, Mapping[str, Any]] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self._features: Features | None = None
        self._views = dict(arrays)
        known = {path: dict(each) for path, each in (attributes or {}).items()}
        self.notes = tuple(notes)
        """What was done to bring sources together, and what they disagree about."""
        self._documents = MemoryStore()
        self._arrays: dict[str, Array] = {}
        self._chunks: dict[str, tuple[int, ...]] = {}
        groups = [path for path in ("", *known) if path not in self._views]
        for path in dict.fromkeys(groups):
            where = StorePath(self._documents, path)
            creating.new_group(where, 3, known.get(path), overwrite=False)
        for path, lazy in self._views.items():
            self._arrays[path] = array = self._created(path, lazy, known.get(path))
            lengths: Any = array.chunks  # of a regular grid
            self._chunks[path] = tuple(lengths)

    @classmethod
    def of_documents(
        cls, views: Mapping[str, LazyArray], documents: Mapping[str, Buffer], notes: Sequence[str] = ()
    ) -> LazyStore:
        """Return a store with documents that are known. Raises MetadataError if they do not fit the lazy arrays."""
        self = cls.__new__(cls)
        self._views, self._features, self.notes = {}, None, tuple(notes)
        self._documents = MemoryStore(dict(documents))
        self._arrays, self._chunks = {}, {}
        for path, view in views.items():
            found = detection.open_array(StorePath(self._documents, path))
            self._arrays[path] = array = Array(found.where, found.metadata, ArrayConfig.of())
            lengths: Any = array.chunks
            self._chunks[path] = tuple(lengths)
            if array.shape != view.shape or array.compressors or array.shards is not None:
                raise MetadataError(
                    "the document of an array does not describe its lazy array",
                    path=path,
                    found=f"shape {array.shape}",
                    expected=f"shape {view.shape}, neither compressed nor in shards",
                )
            self._views[path] = LazyArray(view._node, array.dimension_names, view.notes)  # noqa: SLF001
        return self

    @property
    def views(self) -> Mapping[str, LazyArray]:
        """The lazy arrays by path."""
        return self._views

    @property
    def documents(self) -> Mapping[str, Buffer]:
        """The documents by key."""
        return self._documents.store_dict

    def _created(self, path: str, lazy: LazyArray, attributes: Mapping[str, Any] | None) -> Array:
        first = next((leaf.source for leaf in tree.leaves(lazy._node)), None)  # noqa: SLF001 - two halves of one thing
        same = first if isinstance(first, Array) and first.dtype == lazy.dtype else None
        dtype: Any = lazy.dtype
        if same is not None:
            dtype = same.metadata.data_type
        elif dtype.kind in "OT":
            dtype = "string"
        is_chunked = getattr(first, "chunks", None) is not None
        chunks: Any = lazy.chunks
        if not is_chunked and lazy.nbytes > _MOST_BYTES:
            chunks = "auto"
        fill: Any = None if same is None else same.fill_value
        if fill is None and lazy.dtype.kind == "f":
            fill = math.nan
        return creating.new_array(
            StorePath(self._documents, path),
            zarr_format=3,
            shape=lazy.shape,
            dtype=dtype,
            chunks=chunks if lazy.ndim else (),
            compressors=None,
            fill_value=fill,
            dimension_names=lazy.dimension_names,
            attributes=lazy.attrs if attributes is None else attributes,
        )

    def view_of(self, path: str) -> LazyArray:
        """Return the lazy array at a path, which reads its sources without making chunks."""
        return self._views[path]

    # -- what it can do --------------------------------------------------------------

    @property
    def features(self) -> Features:
        """The most requests at once of a source. All chunks are listed, also those that hold only the fill value."""
        if self._features is None:
            below = [each.features if isinstance(each, Store) else _ELSEWHERE for each in self._stores()]
            self._features = Features(
                max((each.concurrency for each in below), default=1),
                is_shared=all(each.is_shared for each in below),
                listing="complete",
            )
        return self._features

    def _stores(self) -> Iterator[Store | Deferred]:
        """Yield the store of each source, and sources that are elsewhere and not open."""
        for view in self._views.values():
            for leaf in tree.leaves(view._node):  # noqa: SLF001 - two halves of one thing
                if isinstance(leaf.source, Array):
                    yield leaf.source.store
                elif isinstance(leaf.source, Deferred) and leaf.source.is_remote:
                    yield leaf.source

    # -- reading ---------------------------------------------------------------------

    @answers(verbs.elements)
    def _elements(self, prefix: str) -> Elements | None:
        """Return what reads elements of an array from its sources, without chunks."""
        view = self._views.get(as_prefix(prefix)[:-1])
        return None if view is None else Elements(_Reading(view))

    def _find(self, key: str) -> tuple[str, tuple[int, ...]] | None:
        """Return path and coordinates of the chunk with a key; None if there is no such chunk."""
        parts = key.split("/")
        for end in range(len(parts)):
            path = "/".join(parts[:end])
            array = self._arrays.get(path)
            if array is not None:
                grid = array.cdata_shape
                coords = _KEYS.decode(key[len(path) + 1 :] if path else key, len(grid))
                return (path, coords) if coords is not None and all(map(operator.lt, coords, grid)) else None
        return None

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return a document, or the elements of a chunk, which are read from the sources."""
        check_key(key)
        if (found := self._documents.get(key, span)) is not None:
            return found
        place = self._find(key)
        if place is None:
            return None
        value = self._chunk(*place, key)
        return value if span is None else cut(value, span)

    def _chunk(self, path: str, coords: tuple[int, ...], key: str) -> Buffer:
        array, view, chunks = self._arrays[path], self._views[path], self._chunks[path]
        box = tuple(
            slice(at * length, min((at + 1) * length, size))
            for at, length, size in zip(coords, chunks, array.shape, strict=True)
        )
        values = np.asarray(view[box] if box else view.read(), view.dtype)
        if view.dtype.kind in _PLAIN and not view.dtype.hasobject:
            whole = values
            if values.shape != chunks:
                whole = np.full(chunks, array.fill_value if array.fill_value is not None else 0, view.dtype)
                whole[tuple(map(slice, values.shape))] = values
            if whole.dtype.byteorder == ">":
                whole = whole.astype(whole.dtype.newbyteorder("<"))
            return whole.tobytes()
        scratch = MemoryStore()
        config = ArrayConfig.of(None, write_empty_chunks=True)
        Array(StorePath(scratch, path), array.metadata, config)[box or ...] = values
        found = scratch.get(key)
        assert found is not None  # noqa: S101 - it has just been written
        return found

    def exists(self, key: str) -> bool:
        """Return whether there is such a document or chunk, without reading it."""
        return self._documents.exists(key) or self._find(key) is not None

    def size(self, key: str) -> int | None:
        """Return the size of a value, without reading it if its elements have one size."""
        place = None if self._documents.exists(key) else self._find(key)
        if place is None:
            return self._documents.size(key)
        array = self._arrays[place[0]]
        if self._views[place[0]].dtype.kind in _PLAIN:
            return math.prod(self._chunks[place[0]]) * array.dtype.itemsize
        return super().size(key)

    def list(self) -> Iterator[str]:
        """Yield the keys of all documents and chunks."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys of documents and chunks below a prefix."""
        yield from self._documents.list_prefix(prefix)
        for path, array in self._arrays.items():
            below = f"{path}/" if path else ""
            if not (below.startswith(prefix) or prefix.startswith(below)):
                continue
            for coords in np.ndindex(*array.cdata_shape):
                key = below + _KEYS.encode(coords)
                if key.startswith(prefix):
                    yield key

    # -- the store itself ------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Refuse."""
        self._refuse(key)

    def delete(self, key: str) -> None:
        """Refuse."""
        self._refuse(key)

    def _refuse(self, key: str) -> None:
        raise ReadOnlyError(
            "arrays that are made of others cannot be written",
            store=repr(self),
            key=key,
            remedy="write to their sources, or convert them to a hierarchy of their own",
        )

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002 - zarr-python's signature
        """Return this store, which is read-only; refuse another."""
        if not read_only:
            self._refuse("")
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return LazyStore.of_documents, (self._views, dict(self.documents), self.notes)

    def __repr__(self) -> str:
        sources = max((view.nsources for view in self._views.values()), default=0)
        return f"LazyStore({len(self._views)} arrays of up to {sources} sources)"
