"""A hierarchy of any format, shown as Zarr v3 or v2 without a copy."""

from __future__ import annotations

import itertools
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from omnizarr.api.opening import locate
from omnizarr.errors import NotRepresentableError, OmnizarrError, ReadOnlyError, Wording
from omnizarr.formats import dialects_for
from omnizarr.formats.paths import upwards
from omnizarr.model import ArrayMetadata, GroupMetadata, Loss
from omnizarr.model.grids import Coords
from omnizarr.nodes import detection
from omnizarr.stores import Buffer, Listing, Request, Span, Store, pool, verbs
from omnizarr.stores.base import (
    RESERVED,
    Buffers,
    Elsewhere,
    Extent,
    Features,
    Reader,
    Stamped,
    answers,
    as_prefix,
    check_key,
    cut,
    fill,
    listing,
    parts_of,
)
from omnizarr.stores.shown import ReadOnlyStore
from omnizarr.tools.convert.showing import Shown, ShownArray, ShownHierarchy, ViewTask
from omnizarr.tools.translate.coding import Encoding
from omnizarr.tools.translate.translation import KEEP, PORTABLE

_FORMATS: Final = ("v2", "v3")


class TranslatedStore(ReadOnlyStore):
    """A hierarchy of any format, shown as Zarr v3 or v2 without a copy.

    It has the keys and the values that `omnizarr.convert` would write. Documents are translated when they are
    requested. Chunks whose bytes mean the same in both formats are passed on unchanged, and others are encoded
    again, one by one. `copy_store` of this store is a conversion. The store is read-only.

    Parameters
    ----------
    source : path, URL, Store, StorePath, Array, Group or mapping
        The hierarchy to show.
    zarr_format : {3, 2}
        The format in which to show it.
    path : str, optional
        Path in the source of the node that becomes the root.
    source_format : int or str, optional
        The format to read, if the source has documents of several formats.
    compressors : {"portable", "keep"}
        In v3, compressors that few readers know are replaced, so that chunks are compressed again. ``"keep"``
        keeps them.
    consolidated : bool or int
        Whether to make consolidated metadata for groups that have none, so that readers find their members over HTTP,
        where nothing can be listed. A number: only for groups with at most this many nodes below them.
    strict : bool
        Whether to raise an error if something would be lost, like `omnizarr.convert`: here, and when a document
        has changed and is requested.
    allow_pickle : bool
        Whether to read pickled objects. Reading them can run arbitrary code.
    storage_options : mapping, optional
        Options of the store, such as credentials; see `omnizarr.stores.resolve`.

    Raises
    ------
    NodeNotFoundError
        If the source does not exist.
    NotRepresentableError
        If something would be lost and `strict` is True.
    MetadataError
        If the documents of the source's root break their format.

    Notes
    -----
    *Caching.* Stored values are not cached: a document is read and translated each time it is requested. What else is
    needed, to find and encode chunks and for the groups above, is remembered for at most five seconds. Chunks that
    were encoded again are kept in 64 MiB of memory, and used while the chunks that they were made of have the same
    stamps (`Store.stamp`): many ranges of one chunk, and many readers at a time, cost one encoding.

    *Losses.* What cannot be shown is omitted or differs, as in a conversion. `losses` lists it, and
    ``omnizarr.convert(source, dry_run=True)`` has more details. A chunk that cannot be read raises its usual error.

    *Listing* a group takes as many requests as in the source. So a listing may contain names that are not
    nodes, and, if chunks are encoded again, keys of chunks that hold only the fill value and are not stored.

    *Consolidated metadata* exists if the source has some, and covers the same nodes, or if `consolidated` asks for it.

    Examples
    --------
    >>> import omnizarr
    >>> from omnizarr.storage import TranslatedStore
    >>> old = {}
    >>> _ = omnizarr.create_array(old, name="temp", data=[280.5, 281.0], zarr_format=1)
    >>> view = TranslatedStore(old)
    >>> sorted(view.list())
    ['temp/c/0', 'temp/zarr.json', 'zarr.json']
    >>> omnizarr.open(view)["temp"]
    <Array /temp (2,) float64 ...>
    >>> omnizarr.open(view)["temp"][...]
    array([280.5, 281. ])
    """

    def __init__(
        self,
        source: Any,
        zarr_format: int | str = 3,
        *,
        path: str | None = None,
        source_format: int | str | None = None,
        compressors: str = PORTABLE,
        consolidated: bool | int = False,
        strict: bool = False,
        allow_pickle: bool = False,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        dialect = dialects_for(zarr_format)[0]
        if dialect.name not in _FORMATS:
            raise ValueError(Wording("{zarr_format}: hierarchies are shown in format 2 or 3", zarr_format=zarr_format))
        if compressors not in (PORTABLE, KEEP):
            raise ValueError(Wording(f"{{compressors}}: expected {PORTABLE!r} or {KEEP!r}", compressors=compressors))
        if not isinstance(consolidated, int) or consolidated < 0:
            raise ValueError(
                Wording("{consolidated}: expected True, False or a number of nodes", consolidated=consolidated)
            )
        options, most = Encoding(compressors=compressors), None if consolidated is True else int(consolidated)
        self._task = ViewTask(dialect.name, source_format, options, strict, allow_pickle, most)
        self._names = frozenset(dialect.keyspace.documents(""))
        where, _ = locate(source, path, "r", storage_options)
        try:
            found = detection.open_node(where, source_format)
            self._where, self._store = found.where, found.where.store
            self._shown = ShownHierarchy(found, self._task, self)
            self._shown.check()
        except BaseException:
            if isinstance(source, str | os.PathLike):
                where.store.close()
            raise

    @property
    def source(self) -> Store:
        """The store that contains the hierarchy."""
        return self._store

    @property
    def zarr_format(self) -> int | str:
        """The format in which the hierarchy is shown."""
        return self._task.dialect.zarr_format

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What cannot be shown, for all nodes at this moment. This reads all documents."""
        return self._shown.losses

    @property
    def features(self) -> Features:
        """Those of the source. If that can list, the view lists everything: it asks for chunks that are not listed."""
        of = self._store.features
        return Features(
            of.concurrency, is_shared=of.is_shared, listing="partial" if of.listing == "none" else "complete"
        )

    # -- looking up keys --------------------------------------------------------------

    def _find(self, key: str) -> _Document | _Chunk | str | None:
        """Return what a key means: a key of the source if its value is passed on; None if it is not a key."""
        check_key(key)
        path, _, name = key.rpartition("/")
        if name in self._names:
            return _Document(path, name)
        if (known := self._shown.known_array(path)) is not None:  # the place for which the key was made
            return self._chunk(*known, key)
        for at in reversed(list(upwards(path))):
            shown = self._shown.look(at)
            if shown is None:
                return None
            if isinstance(shown.metadata, ArrayMetadata):
                array = self._shown.array(shown)
                return None if array is None else self._chunk(at, array, key)
            if (file := self._file(at, shown, key)) is not None:
                return file
        return None

    def _chunk(self, path: str, array: ShownArray, key: str) -> _Chunk | str | None:
        coords = array.coords_of(key)
        if coords is None:
            return None
        if not array.holds(coords):  # the array may be longer by now
            shown = self._shown.look(path, again=True)
            found = None if shown is None else self._shown.array(shown)
            if found is None or not found.holds(coords):
                return None
            array = found
        return array.source.key_of(coords) if array.is_through else _Chunk(array, coords)

    def _file(self, path: str, shown: Shown, key: str) -> str | None:
        """Return the key in the source of a file that a convention stores below a group."""
        step = self._shown.step(shown)
        below = key[len(path) + 1 :] if path else key
        return f"{shown.where.prefix}{below}" if below in step.files else None

    def _value(self, found: _Document | _Chunk, span: Span | None) -> Buffer | None:
        if isinstance(found, _Chunk):
            return found.array.value(found.coords, span)
        value = self._shown.document(self._shown.look(found.path, again=True), found.name)
        return None if value is None else cut(value, span)

    # -- reading ------------------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return the value that a conversion would write, or a part of it."""
        found = self._find(key)
        if isinstance(found, str):
            return self._store.get(found, span)
        return None if found is None else self._value(found, span)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Pass the request on, if the value is passed on."""
        found = self._find(key)
        return (
            verbs.get_within(self._store, found, most)
            if isinstance(found, str)
            else verbs.get_within.default(self, key, most)
        )

    @answers(verbs.get_many_within)
    def _get_many_within(self, keys: Iterable[str], most: int) -> Iterator[tuple[int, Buffer | None]]:
        """Yield the values of `get_many`, which are of one version of each node."""
        asked = list(keys)
        for position, value in verbs.get_many(self, ((key, None) for key in asked)):
            if value is not None:
                verbs.check_limit(self, asked[position], len(value), most)
            yield position, value

    @answers(verbs.get_many)
    def _get_many(self, requests: Iterable[Request]) -> Iterator[tuple[int, Buffer | None]]:
        """Pass on what can be passed on, concurrently; then do the rest. A node's documents are of one version."""
        positions: list[int] = []
        others: list[tuple[int, _Document | _Chunk | None, Span | None]] = []

        def handed_on() -> Iterator[Request]:
            for position, (key, span) in enumerate(requests):
                found = self._find(key)
                if isinstance(found, str):
                    positions.append(position)
                    yield found, span
                else:
                    others.append((position, found, span))

        for number, value in verbs.get_many(self._store, handed_on()):
            yield positions[number], value
        paths = dict.fromkeys(found.path for _, found, _ in others if isinstance(found, _Document))
        nodes = dict(
            pool.results(lambda path: (path, self._shown.look(path, again=True)), paths, self.features.concurrency)
        )

        def answer(other: tuple[int, _Document | _Chunk | None, Span | None]) -> tuple[int, Buffer | None]:
            position, found, span = other
            if isinstance(found, _Document):
                value = self._shown.document(nodes[found.path], found.name)
                return position, None if value is None else cut(value, span)
            return position, None if found is None else self._value(found, span)

        yield from pool.results(answer, others, self.features.concurrency)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Pass the request on, if the value is passed on; otherwise return parts of what a conversion would write."""
        found = self._find(key)
        if isinstance(found, str):
            return verbs.get_spans(self._store, found, spans)
        value = None if found is None else self._value(found, None)
        return None if value is None else parts_of(value, spans)

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Pass the request on, if the value is passed on; otherwise copy it."""
        found = self._find(key)
        if isinstance(found, str):
            return verbs.read_into(self._store, found, out, start)
        value = None if found is None else self._value(found, (start, None))
        return None if value is None else fill(out, memoryview(value))

    def exists(self, key: str) -> bool:
        """Return whether a conversion would write the key."""
        found = self._find(key)
        match found:
            case str():
                return self._store.exists(found)
            case _Chunk(array, coords):
                return array.exists(coords)
            case _Document(path, name):
                shown = self._shown.look(path, again=True)
                return shown is not None and name in self._shown.names(shown)
        return False

    @answers(verbs.has_any)
    def _has_any(self, prefix: str, names: Iterable[str]) -> bool:
        """Return whether a conversion would write one of these keys."""
        prefix = as_prefix(prefix)
        keys = [prefix + name for name in names]
        for key in keys:
            check_key(key)
        return any(map(self.exists, keys))

    def size(self, key: str) -> int | None:
        """Return the size of the value that `get` returns."""
        found = self._find(key)
        match found:
            case str():
                return self._store.size(found)
            case _Chunk(array, coords):
                return array.size(coords)
            case None:
                return None
        value = self._value(found, None)
        return None if value is None else len(value)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return the stamp of the source, if the value is passed on; otherwise None."""
        found = self._find(key)
        return _stamp(found, verbs.stamp(self._store, found)) if isinstance(found, str) else None

    @answers(verbs.get_stamped)
    def _get_stamped(self, key: str, unless: Hashable | None = None) -> Stamped | None:
        """Pass the request on, if the value is passed on."""
        found = self._find(key)
        if not isinstance(found, str):
            return Stamped(None if found is None else self._value(found, None), None)
        known = unless[1] if isinstance(unless, tuple) and unless[:1] == (found,) else None
        answer = verbs.get_stamped(self._store, found, known)
        return None if answer is None else Stamped(answer.value, _stamp(found, answer.stamp))

    @answers(verbs.extents)
    def _extents(self, keys: Iterable[str]) -> Iterator[tuple[int, Extent | Buffer | None]]:
        """Pass the request on, if all values are passed on; otherwise they are nowhere stored."""
        found = [(key, self._find(key)) for key in keys]
        for key, place in found:
            if not isinstance(place, str | None):
                raise NotRepresentableError(
                    "a value is made when it is read, and stored nowhere", store=repr(self), key=key
                )
        there = [(position, place) for position, (_, place) in enumerate(found) if isinstance(place, str)]
        yield from ((position, None) for position, (_, place) in enumerate(found) if place is None)
        for number, extent in verbs.extents(self._store, (place for _, place in there)):
            yield there[number][0], extent

    @answers(verbs.pinned)
    def _pinned(self, key: str) -> Reader | None:
        """Pass the request on, if the value is passed on."""
        found = self._find(key)
        return verbs.pinned(self._store, found) if isinstance(found, str) else None

    @answers(verbs.elsewhere)
    def _elsewhere(self, prefix: str) -> Elsewhere | None:
        """Return where the chunks of an array are in the source, if they are passed on."""
        path = as_prefix(prefix)[:-1]
        try:
            shown = self._shown.look(path)
            array = None if shown is None else self._shown.array(shown)
        except OmnizarrError:  # reading a chunk will raise the error
            return None
        if array is None or not array.is_through or array.target.prefix != prefix:
            return None
        if (affixes := array.source.encoding.affixes) is None:
            return None
        head, separator, tail, scalar = affixes
        prefix = array.source.prefix
        return Elsewhere(self._store, (prefix + head, separator, tail, prefix + scalar))

    # -- listing ------------------------------------------------------------------------------

    def list(self) -> Iterator[str]:
        """Yield every key that a conversion would write."""
        return self.list_prefix("")

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key under `prefix` that a conversion would write."""
        prefix = as_prefix(prefix)
        keys = itertools.chain.from_iterable(map(self._keys, self._at(prefix)))
        return (key for key in keys if key.startswith(prefix))

    def _at(self, prefix: str) -> Iterator[Shown]:
        """Yield the nodes that may have keys under a prefix."""
        path = prefix.removesuffix("/")
        for at in reversed(list(upwards(path))):
            shown = self._shown.look(at, again=at == path)
            if shown is None:
                return
            if at == path:
                yield from self._shown.walk(at)
            elif isinstance(shown.metadata, ArrayMetadata) or self._shown.step(shown).files:
                yield shown

    def _keys(self, shown: Shown) -> Iterator[str]:
        """Yield the keys of one node."""
        at = f"{shown.node.path}/" if shown.node.path else ""
        yield from (f"{at}{name}" for name in self._shown.names(shown))
        yield from (f"{at}{name}" for name in self._shown.step(shown).files)
        array = self._shown.array(shown)
        if array is not None:
            yield from map(array.target.key_of, array.listed())

    @answers(verbs.list_sizes)
    def _list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield every key under `prefix` that has a value, with the size of its value."""
        prefix = as_prefix(prefix)
        sizes = itertools.chain.from_iterable(map(self._sizes, self._at(prefix)))
        return ((key, size) for key, size in sizes if key.startswith(prefix))

    def _sizes(self, shown: Shown) -> Iterator[tuple[str, int]]:
        at = f"{shown.node.path}/" if shown.node.path else ""
        for name in self._shown.names(shown):
            yield f"{at}{name}", len(self._shown.document(shown, name) or b"")
        for name in self._shown.step(shown).files:
            yield f"{at}{name}", self._store.size(f"{shown.where.prefix}{name}") or 0
        array = self._shown.array(shown)
        if array is not None:
            yield from ((array.target.key_of(coords), size) for coords, size in array.listed_sizes())

    def list_dir(self, prefix: str) -> Listing:
        """Return the keys and prefixes directly under `prefix`. For a group, this takes one listing of the source."""
        prefix = as_prefix(prefix)
        shown = self._shown.look(prefix.removesuffix("/"), again=True)
        if shown is None:
            return super().list_dir(prefix)
        step = self._shown.step(shown)
        if isinstance(shown.metadata, GroupMetadata):
            below = (f"{name}/" for name in self._shown.source.names(shown.node))
            return listing((f"{prefix}{name}" for name in (*self._shown.names(shown), *step.files, *below)), prefix)
        array = self._shown.array(shown)
        names = [f"{prefix}{name}" for name in self._shown.names(shown)]
        return listing(itertools.chain(names, () if array is None else array.listed_below()), prefix)

    # -- the store itself -----------------------------------------------------------------------

    def _refusal(self) -> ReadOnlyError:
        remedy = "write to the source, or convert it and write to the result"
        return ReadOnlyError("what is shown in another format can only be read", store=repr(self), remedy=remedy)

    def origin(self) -> tuple[Hashable, str]:
        """Return a place within the source, under a name that no key can have, so that nothing can overwrite it."""
        data, base = self._store.origin()
        return data, f"{base}/{self._where.path}/{RESERVED}{self._task.format}".strip("/")

    def close(self) -> None:
        """Close the source."""
        self._store.close()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TranslatedStore):
            return NotImplemented
        return self._where == other._where and self._task == other._task

    def __hash__(self) -> int:
        return hash((TranslatedStore, self._where, self._task.format))

    def __repr__(self) -> str:
        path = f", path={self._where.path!r}" if self._where.path else ""
        return f"TranslatedStore({self._store!r}, {self.zarr_format}{path})"


class _Document(NamedTuple):
    """A document of the node at a path."""

    path: str
    name: str


class _Chunk(NamedTuple):
    """A chunk that is not passed on unchanged."""

    array: ShownArray
    coords: Coords


def _stamp(key: str, stamp: Hashable | None) -> Hashable | None:
    """Return the stamp of a value that is passed on under a key: another key is another value."""
    return None if stamp is None else (key, stamp)
