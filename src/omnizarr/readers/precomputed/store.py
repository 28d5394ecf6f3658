"""Neuroglancer precomputed volumes as read-only stores: a group with an array of Zarr v3 for each scale.

The key ``8_8_40/c/0/2/1/0`` is the chunk 0, 1, 2 in x, y, z of the scale ``8_8_40``: a file of its own, or in a shard.
Documents are made of ``info``. What else lies in the directory is not shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from omnizarr.errors import CodecError, NotRepresentableError, OmnizarrError, ReadOnlyError, StoreError
from omnizarr.readers.precomputed import encodings, sharded, volume
from omnizarr.readers.precomputed.sharded import Piece, Shards
from omnizarr.readers.precomputed.volume import DOCUMENT, INFO, Scale, Three
from omnizarr.stores import bounded, kinds, urls, verbs
from omnizarr.stores.base import (
    Buffer,
    Extent,
    Features,
    Listing,
    Span,
    Store,
    answers,
    as_prefix,
    check_key,
    cut,
    fill,
    listing,
)
from omnizarr.stores.kinds import Place
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.shown import OverStore, ReadOnlyStore
from omnizarr.stores.urls import parse
from omnizarr.stores.wrap.wrappers import PrefixStore

SCHEME: Final = "precomputed"
NAME: Final = ".precomputed"
FORMAT: Final = "Neuroglancer precomputed"
_ZARR: Final = ("zarr.json", ".zarray", ".zgroup")
_PACKED: Final = ".gz"
_UNKNOWN: Final = (".br", ".zstd", ".xz", ".bz2")
_MOST_ABOVE: Final = 8
_MOST_THREADS: Final = 16
_chunk = re.compile(r"(.+)/c/0/(0|[1-9][0-9]{0,19})/(0|[1-9][0-9]{0,19})/(0|[1-9][0-9]{0,19})", re.DOTALL).fullmatch
_bounds = re.compile(
    r"(-?[0-9]{1,19})-(-?[0-9]{1,19})_(-?[0-9]{1,19})-(-?[0-9]{1,19})_(-?[0-9]{1,19})-(-?[0-9]{1,19})"
).fullmatch


class _Chunk(NamedTuple):
    """A chunk, and its scale."""

    scale: Scale
    at: Three


class PrecomputedStore(OverStore, ReadOnlyStore):
    r"""A Neuroglancer precomputed volume in a store, shown as Zarr v3.

    Parameters
    ----------
    store : Store
        The store in which the volume begins, with its ``info``. Closing this store closes it.

    Raises
    ------
    StoreError
        If there is no ``info``.
    MetadataError
        If it describes no volume that can be read.

    Examples
    --------
    >>> import json
    >>> from omnizarr.stores import MemoryStore
    >>> scale = {"key": "8", "size": [3, 2, 1], "chunk_sizes": [[3, 2, 1]], "encoding": "raw", "resolution": [8, 8, 8]}
    >>> info = {"type": "image", "data_type": "uint8", "num_channels": 1, "scales": [scale]}
    >>> values = {"info": json.dumps(info).encode(), "8/0-3_0-2_0-1": bytes(range(6))}
    >>> import omnizarr
    >>> omnizarr.open(PrecomputedStore(MemoryStore(values)))["8"][0, 0]
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        found = bounded.document(store, INFO)
        if found is None:
            raise StoreError("there is no info of a volume here", store=repr(store), key=INFO)
        try:
            self._volume = volume.load(found)
        except OmnizarrError as error:
            raise error.add(store=repr(store), key=INFO)
        self._shards = {
            name: Shards(store, scale) for name, scale in self._volume.scales.items() if scale.sharding is not None
        }
        self._is_near = store.features.concurrency == 1

    @property
    def features(self) -> Features:
        """Those of the store that holds the volume; several chunks are decoded at once."""
        found = replace(super().features, names_nodes=True)
        if any(scale.encoding != "raw" or scale.sharding for scale in self._volume.scales.values()):
            threads = min(os.cpu_count() or 1, _MOST_THREADS)
            found = replace(found, concurrency=max(found.concurrency, threads))
        return found

    # -- keys ---------------------------------------------------------------------------

    def _chunk(self, key: str) -> _Chunk | None:
        """Return the chunk that a key means; None if it means none."""
        match = _chunk(key)
        scale = None if match is None else self._volume.scales.get(match[1])
        if match is None or scale is None:
            return None
        at = int(match[4]), int(match[3]), int(match[2])
        return _Chunk(scale, at) if scale.holds(at) else None

    def _document(self, key: str) -> bytes | None:
        if key == DOCUMENT:
            return self._volume.document
        name, _, last = key.rpartition("/")
        scale = self._volume.scales.get(name) if last == DOCUMENT else None
        return None if scale is None else scale.document

    def _file(self, chunk: _Chunk) -> str:
        return f"{chunk.scale.folder}/{chunk.scale.file_of(chunk.at)}"

    def _packed(self, key: str) -> str | None:
        """Return the file of a chunk that CloudVolume has compressed; None if there is none."""
        if not self._is_near:  # servers and buckets have other ways to say that a file is compressed
            return None
        if self.store.exists(key + _PACKED):
            return key + _PACKED
        for ending in _UNKNOWN:
            if self.store.exists(key + ending):
                raise CodecError(
                    "a file with this compression around a chunk cannot be read",
                    store=repr(self),
                    key=key + ending,
                    found=ending,
                    expected=f"no compression, or {_PACKED}",
                    remedy="cloudvolume reads it, and can copy the volume without it",
                )
        return None

    # -- reading ------------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return a document, or a chunk."""
        check_key(key)
        chunk = self._chunk(key)
        found = self._document(key) if chunk is None else self._value(chunk)
        return None if found is None else cut(found, span)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Return the same, if it is not too large."""
        check_key(key)
        chunk = self._chunk(key)
        if chunk is not None:
            verbs.check_limit(self, key, chunk.scale.nbytes, most)
        found = self._document(key) if chunk is None else self._value(chunk)
        if found is not None:
            verbs.check_limit(self, key, len(found), most)
        return found

    def _value(self, chunk: _Chunk) -> Buffer | None:
        stored, key = self._stored(chunk)
        if stored is None:
            return None
        try:
            return encodings.chunk_of(chunk.scale, chunk.at, stored)
        except OmnizarrError as error:
            raise error.add(store=repr(self), key=key)

    def _stored(self, chunk: _Chunk) -> tuple[Buffer | None, str]:
        """Return what is stored of a chunk, and in which file."""
        most = encodings.most_stored(chunk.scale)
        if chunk.scale.sharding is None:
            key = self._file(chunk)
            found = verbs.get_within(self.store, key, most)
            if found is None and (packed := self._packed(key)) is not None:
                return verbs.get_within(self.store, packed, most), packed
            return found, key
        try:
            piece = self._shards[chunk.scale.name].find(chunk.at)
            if piece is None:
                return None, ""
            stored: Buffer = sharded.read_piece(self.store, piece)
            if chunk.scale.sharding.data_is_packed:
                stored = encodings.unpacked(stored, most)
        except OmnizarrError as error:
            raise error.add(store=repr(self))
        return stored, piece.key

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Read the whole chunk, and copy it."""
        value = self.get(key)
        return None if value is None else fill(out, memoryview(value)[start:])

    def exists(self, key: str) -> bool:
        """Whether there is a chunk or a node."""
        check_key(key)
        chunk = self._chunk(key)
        if chunk is None:
            return self._document(key) is not None
        if chunk.scale.sharding is not None:
            return self._shards[chunk.scale.name].find(chunk.at) is not None
        file = self._file(chunk)
        return self.store.exists(file) or self._packed(file) is not None

    def size(self, key: str) -> int | None:
        """Return the size of a value: of a chunk, that of its elements."""
        chunk = self._chunk(key)
        if chunk is not None:
            return chunk.scale.nbytes if self.exists(key) else None
        value = self.get(key)
        return None if value is None else len(value)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return the stamp of the file of a chunk; documents do not change as long as the store is open."""
        check_key(key)
        chunk = self._chunk(key)
        if chunk is None:
            return self._document(key)
        if chunk.scale.sharding is None:
            return verbs.stamp(self.store, self._file(chunk))
        piece = self._shards[chunk.scale.name].find(chunk.at)
        return None if piece is None else verbs.stamp(self.store, piece.key)

    @answers(verbs.extents)
    def _extents(self, keys: Iterable[str]) -> Iterator[tuple[int, Extent | Buffer | None]]:
        """Return where raw chunks of the full size lie."""
        base = verbs.folder(self.store, "")
        for position, key in enumerate(keys):
            chunk = self._chunk(key)
            if chunk is None:
                yield position, self._document(key)
                continue
            piece = self._piece(chunk)
            if piece is None:
                yield position, None
                continue
            reason = "" if base is not None else "a store without a path or URL"
            if chunk.scale.encoding != "raw":
                reason = f"the encoding {chunk.scale.encoding}"
            elif chunk.scale.shape_at(chunk.at) != chunk.scale.chunk:
                reason = "a chunk at the edge of the volume, which is smaller than the others"
            elif piece.stop - piece.start != chunk.scale.nbytes:
                reason = "a chunk that is compressed"
            if base is None or reason:
                raise NotRepresentableError(
                    "the bytes of a chunk are no part of a file as they are",
                    store=repr(self),
                    key=key,
                    found=reason,
                    expected="a raw chunk of the full size",
                    remedy="convert the volume, which copies its values",
                )
            yield position, Extent(base + piece.key, piece.start, piece.stop - piece.start)

    def _piece(self, chunk: _Chunk) -> Piece | None:
        """Return where the bytes of a chunk lie, as they are stored."""
        if chunk.scale.sharding is not None:
            return self._shards[chunk.scale.name].find(chunk.at)
        key = self._file(chunk)
        size = self.store.size(key)
        if size is None:
            packed = self._packed(key)
            return None if packed is None else Piece(packed, 0, self.store.size(packed) or 0)
        return Piece(key, 0, size)

    # -- listing ------------------------------------------------------------------------

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys of documents and chunks under a prefix."""
        for key, _ in self._shown(as_prefix(prefix)):
            yield key

    @answers(verbs.list_sizes)
    def _list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield the keys with the bytes that are stored, which are fewer than those of a chunk if it is compressed."""
        return self._shown(as_prefix(prefix), sized=True)

    def _shown(self, prefix: str, *, sized: bool = False) -> Iterator[tuple[str, int]]:
        if not prefix:
            yield DOCUMENT, len(self._volume.document)
        for name, scale in self._volume.scales.items():
            if not prefix or prefix == f"{name}/":
                yield f"{name}/{DOCUMENT}", len(scale.document)
            elif not prefix.startswith(f"{name}/c/"):
                continue
            for (x, y, z), size in self._stored_chunks(scale, sized=sized):
                key = f"{name}/c/0/{z}/{y}/{x}"
                if key.startswith(prefix):
                    yield key, size

    def _stored_chunks(self, scale: Scale, *, sized: bool) -> Iterator[tuple[Three, int]]:
        if scale.sharding is not None:
            yield from self._shards[scale.name].all()
            return
        prefix = f"{scale.folder}/"
        found: Iterable[tuple[str, int]] = (
            verbs.list_sizes(self.store, prefix) if sized else ((key, 0) for key in self.store.list_prefix(prefix))
        )
        for key, size in found:
            name = key[len(prefix) :]
            is_packed = self._is_near and name.endswith(_PACKED)
            match = _bounds(name.removesuffix(_PACKED) if is_packed else name)
            at = None if match is None else scale.at_of(tuple(map(int, match.groups())))
            if at is None or (is_packed and self.store.exists(key.removesuffix(_PACKED))):
                continue
            yield at, size

    def list_dir(self, prefix: str) -> Listing:
        """Return the scales, or what is directly below a prefix."""
        prefix = as_prefix(prefix)
        if not prefix:
            return listing([DOCUMENT, *(f"{name}/" for name in self._volume.scales)], prefix)
        if prefix[:-1] in self._volume.scales:
            return listing([prefix + DOCUMENT, f"{prefix}c/"], prefix)
        return listing(self.list_prefix(prefix), prefix)

    # -- the store itself -----------------------------------------------------------------

    @property
    def scales(self) -> Mapping[str, Scale]:
        """The scales by the paths of their arrays."""
        return self._volume.scales

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the volume is not shown, by name."""
        return self._volume.notes

    def _refusal(self) -> ReadOnlyError:
        return _refusal(repr(self))

    def about(self) -> Mapping[str, Any]:
        """Return the format, and what is not shown."""
        return {"format": FORMAT, **({"notes": list(self.notes)} if self.notes else {})}


def _refusal(store: str, mode: str | None = None) -> ReadOnlyError:
    return ReadOnlyError(
        "volumes of Neuroglancer can only be read",
        store=store,
        found=None if mode is None else f"mode {mode!r}",
        remedy='open it with mode "r", and convert it to Zarr to change it',
    )


# -- opening -----------------------------------------------------------------------------------


def open_place(place: Place) -> tuple[Store, str] | None:
    """Return the store of a volume at a path or URL, also of one of its scales; None if it is none."""
    scheme, mark, rest = place.text.partition("://")
    if mark and scheme.lower() == SCHEME:
        if not rest:
            raise StoreError("a path or URL is missing", found=place.text, expected=f"{SCHEME}://PATH_OR_URL")
        store, within = place.resolve(rest, "r", place.options)
        found = (store, within) if isinstance(store, PrecomputedStore) else _climb(store, within, most=_MOST_ABOVE)
        if found is None:
            raise StoreError(
                "there is no info of a volume here, nor in the directories above", store=repr(store), expected=INFO
            )
    elif place.path is None:
        found = _from_url(place)
    else:
        found = _from_path(place.path)
        if found is not None:
            place.refuse_options()
    if found is not None and not place.read_only:
        raise _refusal(repr(found[0]), place.mode)
    return found


def _climb(store: Store, path: str, *, most: int) -> tuple[Store, str] | None:
    """Return the volume at a path in a store, or in one of the directories above."""
    names = path.split("/") if path else []
    for end in range(len(names), max(len(names) - most, 0) - 1, -1):
        there = "/".join(names[:end])
        begun = PrefixStore(store, there) if there else store
        value = bounded.document(begun, INFO)
        if value is not None and volume.is_volume(value):
            return PrecomputedStore(begun), "/".join(names[end:])
    for _ in range(most):  # above the beginning of the store
        higher = store.above()
        if higher is None:
            break
        store, name = higher
        names.insert(0, name)
        value = bounded.document(store, INFO)
        if value is not None and volume.is_volume(value):
            return PrecomputedStore(store), "/".join(names)
    return None


def _from_path(given: str) -> tuple[Store, str] | None:
    """Return the volume at a path or directly above it; further above only if a name says that it is one."""
    path = Path(given).absolute()
    below: list[str] = []
    while True:
        if (path / INFO).is_file():
            store = LocalStore(path, read_only=True)
            value = None if store.files_at_root(_ZARR) else bounded.document(store, INFO)
            if value is None or not volume.is_volume(value):
                return None
            found = PrecomputedStore(store)
            is_inside = not below or below[0] in found.scales or NAME in path.name.lower()
            return (found, "/".join(below)) if is_inside else None
        name = str(path).lower()
        if name.endswith(NAME) or path.parent == path or (below and NAME not in name):
            return None
        below.insert(0, path.name)
        path = path.parent


def _from_url(place: Place) -> tuple[Store, str] | None:
    """Return the volume below a URL, of which a directory's name says that it is one."""
    parts = parse.urlsplit(place.text)
    names = parts.path.split("/")
    last = max((at for at, name in enumerate(names) if name.lower().endswith(NAME)), default=None)
    if last is None:
        return None
    root = parts._replace(path="/".join(names[: last + 1])).geturl()
    opener = kinds.of_scheme(parts.scheme.lower()) or kinds.FSSPEC
    found = opener.open(place._replace(text=root, mode="r"))
    if found is None:
        return None
    below = [urls.parse.unquote(name) for name in names[last + 1 :] if name]
    store = PrefixStore(found[0], found[1]) if found[1] else found[0]
    value = bounded.document(store, INFO)
    return (PrecomputedStore(store), "/".join(below)) if value is not None and volume.is_volume(value) else None
