"""Lazy arrays as a hierarchy of Zarr v3, whose chunks are those of the sources, or made when they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from omnizarr.errors import MetadataError, ReadOnlyError, Wording
from omnizarr.formats.paths import paths_above
from omnizarr.model import Named, keys
from omnizarr.nodes import creating, detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.lazy import tree
from omnizarr.nodes.lazy.deferred import Deferred
from omnizarr.nodes.lazy.layout import GRIDS, GridKind, metadata_of, remarks
from omnizarr.nodes.lazy.passing import ShownChunks
from omnizarr.nodes.lazy.view import LazyArray
from omnizarr.nodes.location import StorePath
from omnizarr.stores import Buffer, Features, Listing, MemoryStore, Span, Store, verbs
from omnizarr.stores.base import Buffers, Elements, answers, as_prefix, check_key
from omnizarr.stores.shown import ReadOnlyStore
from omnizarr.stores.urls import scheme_of

_KEYS: Final = keys.bind(Named("default"))
_ELSEWHERE: Final = Features(16, is_shared=True)
"""Of sources on other machines that are not open."""
_MEANING: Final = ("units", "calendar", "scale_factor", "add_offset")
"""Attributes without which elements that are joined would mean something else."""


class LazyStore(ReadOnlyStore):
    """Lazy arrays, shown as a hierarchy of Zarr v3. Elements are read from the sources when they are requested.

    `omnizarr.combine` returns a group in such a store. `convert`, `serve`, `check`, xarray and whatever else takes a
    store or a group take this one. The store is read-only.

    An array has the codecs and the chunks (or shards) of its first source. Compressors of older formats that few
    readers of Zarr v3 know are replaced as by `omnizarr.convert`. A chunk that is a stored chunk of one source, in the
    same codecs, is passed on unchanged; others, such as those that lie across two sources, are encoded when they are
    requested. Where no elements of a chunk are stored, it is missing, if all sources can be listed.

    Parameters
    ----------
    arrays : mapping of str to LazyArray
        The arrays, by path.
    attributes : mapping of str to mapping, optional
        The attributes of arrays and groups, by path; ``""`` is the root. An array that is not named has those of its
        lazy array.
    notes : sequence of str
        What was done to bring sources together, and what they disagree about.
    like : mapping of str to Array, optional
        Arrays whose codecs others take, by path: those that have no source in a store.
    grid : {"regular", "rectilinear"}
        Whether all chunks of an array have one shape, or chunks start again with each source: then all are passed on
        but those that are shorter, at the end of a source. Few programs read such arrays but omnizarr, and new versions
        of zarr-python with a setting.
    portable : bool
        Whether compressors of older formats that few readers of Zarr v3 know are replaced.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> from omnizarr.storage import LazyStore
    >>> store = LazyStore({"depth": omnizarr.concat([np.arange(3), np.arange(5)])})
    >>> omnizarr.open(store)["depth"][2:5]
    array([2, 0, 1])
    """

    def __init__(
        self,
        arrays: Mapping[str, LazyArray],
        attributes: Mapping[str, Mapping[str, Any]] | None = None,
        notes: Sequence[str] = (),
        *,
        like: Mapping[str, Array] | None = None,
        grid: GridKind = "regular",
        portable: bool = True,
    ) -> None:
        if grid not in GRIDS:
            raise ValueError(Wording(f"{{grid}}: expected one of {', '.join(map(repr, GRIDS))}", grid=grid))
        self._features: Features | None = None
        self._views = dict(arrays)
        known = {path: dict(each) for path, each in (attributes or {}).items()}
        self.notes = tuple(notes)
        """What was done to bring sources together, and what they disagree about."""
        self._documents = MemoryStore()
        self._arrays: dict[str, Array] = {}
        self._shown: dict[str, ShownChunks] = {}
        self._meanings: dict[str, bool] = {}
        groups = [path for path in ("", *known) if path not in self._views]
        for path in dict.fromkeys(groups):
            where = StorePath(self._documents, path)
            creating.new_group(where, 3, known.get(path), overwrite=False)
        for path, lazy in self._views.items():
            metadata = metadata_of(lazy, known.get(path), (like or {}).get(path), grid, portable=portable)
            where = StorePath(self._documents, path)
            self._arrays[path] = creating.add_array(where, metadata, ArrayConfig.of(), overwrite=False)

    @classmethod
    def of_documents(
        cls, views: Mapping[str, LazyArray], documents: Mapping[str, Buffer], notes: Sequence[str] = ()
    ) -> LazyStore:
        """Return a store with documents that are known. Raises MetadataError if they do not fit the lazy arrays."""
        self = cls.__new__(cls)
        self._views, self._features, self.notes = {}, None, tuple(notes)
        self._documents = MemoryStore(dict(documents))
        self._arrays, self._shown, self._meanings = {}, {}, {}
        for path, view in views.items():
            found = detection.open_array(StorePath(self._documents, path))
            self._arrays[path] = array = Array(found.where, found.metadata, ArrayConfig.of())
            if array.shape != view.shape or not _is_dtype_of(array, view):
                raise MetadataError(
                    "the document of an array does not describe its lazy array",
                    path=path,
                    found=f"shape {array.shape}, data type {array.dtype}",
                    expected=f"shape {view.shape}, data type {view.dtype}",
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

    def view_of(self, path: str) -> LazyArray:
        """Return the lazy array at a path, which reads its sources without making chunks."""
        return self._views[path]

    def has_meaning_of_sources(self, path: str) -> bool:
        """Return whether elements mean what the attributes of the sources say.

        If not, because sources in memory have no attributes or the store was given others, the array itself is joined.
        """
        found = self._meanings.get(path)
        if found is None:
            given, known = self._arrays[path].attrs, self._views[path].attrs
            found = self._meanings[path] = all(given.get(name) == known.get(name) for name in _MEANING)
        return found

    def remarks_of(self, path: str) -> tuple[str, ...]:
        """Return what becomes of codecs of the first source that an array here does not have. It opens that source."""
        view = self._views.get(path)
        return () if view is None else tuple(remarks(view, self._arrays[path]._metadata))  # noqa: SLF001 - of Array

    # -- what it can do --------------------------------------------------------------

    @property
    def features(self) -> Features:
        """The most requests at once of a source."""
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
        path = as_prefix(prefix)[:-1]
        if path not in self._views:
            return None
        shown = self._shown_at(path)
        return Elements(shown.read, shown.passes_on)

    @answers(verbs.replaces_text)
    def _replaces_text(self, prefix: str, looks: bool) -> bool:  # noqa: FBT001
        """Return whether a source of an array has U+FFFD in place of bytes that are not UTF-8."""
        view = self._views.get(as_prefix(prefix)[:-1])
        return view is not None and view._replaces_text(looks=looks)  # noqa: SLF001 - two halves of one thing

    def _shown_at(self, path: str) -> ShownChunks:
        found = self._shown.get(path)
        if found is None:
            view, array = self._views[path], self._arrays[path]
            is_listed = all(_is_listed(leaf.source) for leaf in tree.leaves(view._node))  # noqa: SLF001 - two halves
            found = self._shown[path] = ShownChunks(view, array, is_listed=is_listed)
        return found

    def _find(self, key: str) -> tuple[ShownChunks, tuple[int, ...]] | None:
        """Return the chunks of an array, and the coordinates of the one with a key; None if there is no such chunk."""
        for path in paths_above(key):
            if path in self._arrays:
                shown = self._shown_at(path)
                coords = _KEYS.decode(key[len(path) + 1 :] if path else key, len(shown.grid.axes))
                return (shown, coords) if coords is not None and shown.holds(coords) else None
        return None

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return a document, or a chunk: a stored one of a source, or one that is encoded."""
        check_key(key)
        if (found := self._documents.get(key, span)) is not None:
            return found
        place = self._find(key)
        return None if place is None else place[0].value(place[1], span)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Pass the request on, if the chunk is passed on."""
        check_key(key)
        place = None if self._documents.exists(key) else self._find(key)
        return verbs.get_spans(self._documents, key, spans) if place is None else place[0].spans(place[1], spans)

    def exists(self, key: str) -> bool:
        """Return whether there is such a document or chunk, without reading it."""
        if self._documents.exists(key):
            return True
        place = self._find(key)
        return place is not None and place[0].exists(place[1])

    def size(self, key: str) -> int | None:
        """Return the size of a value, without reading it if it is passed on, or not compressed."""
        place = None if self._documents.exists(key) else self._find(key)
        return self._documents.size(key) if place is None else place[0].size(place[1])

    def list(self) -> Iterator[str]:
        """Yield the keys of all documents and chunks."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys of documents and chunks below a prefix."""
        yield from self._documents.list_prefix(prefix)
        for path in self._arrays:
            below = f"{path}/" if path else ""
            if not (below.startswith(prefix) or prefix.startswith(below)):
                continue
            for coords in self._shown_at(path).listed():
                key = below + _KEYS.encode(coords)
                if key.startswith(prefix):
                    yield key

    def list_dir(self, prefix: str) -> Listing:
        """Return what is directly below a prefix. Only below arrays, chunks are looked for."""
        prefix = as_prefix(prefix)
        is_in_array = any(prefix.startswith(f"{path}/" if path else "") for path in self._arrays)
        return super().list_dir(prefix) if is_in_array else self._documents.list_dir(prefix)

    # -- the store itself ------------------------------------------------------------

    def _refusal(self) -> ReadOnlyError:
        return ReadOnlyError(
            "arrays that are made of others cannot be written",
            store=repr(self),
            remedy="write to their sources, or convert them to a hierarchy of their own",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return LazyStore.of_documents, (self._views, dict(self.documents), self.notes)

    def __repr__(self) -> str:
        sources = max((view.nsources for view in self._views.values()), default=0)
        return f"LazyStore({len(self._views)} arrays of up to {sources} sources)"


def _is_listed(source: Any) -> bool:
    """Return whether all stored chunks of a source are listed."""
    if isinstance(source, Array):
        return source.store.features.listing == "complete"
    return not isinstance(source, Deferred) or scheme_of(source.place) not in ("http", "https")


def _is_dtype_of(array: Array, view: LazyArray) -> bool:
    dtype = array.dtype
    return dtype == view.dtype or dtype.newbyteorder("=") == view.dtype.newbyteorder("=") or dtype.kind in "OT"
