"""N5 hierarchies as stores: each group and dataset has a document of Zarr v3, and blocks are read and written in place.

The key ``a/c/2/1/0`` is the block ``a/0/1/2`` of N5, and ``a/zarr.json`` is made of ``a/attributes.json``. A directory
without ``attributes.json`` is a group, as in N5, unless it holds blocks. What else lies in the hierarchy is not shown.
A group whose attributes say that it is a pyramid has the metadata of OME-Zarr, too (`pyramids`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple

from omnizarr.errors import NotRepresentableError, OmnizarrError, StoreError
from omnizarr.formats.documents import parse
from omnizarr.formats.paths import upwards
from omnizarr.model import ArrayMetadata
from omnizarr.readers.n5 import blocks, documents, pyramids
from omnizarr.readers.n5.documents import ATTRIBUTES, DOCUMENT, Dataset
from omnizarr.settings import config
from omnizarr.stores import bounded, kinds, verbs
from omnizarr.stores.access import Blocks
from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Extent,
    Features,
    Listing,
    Parts,
    Span,
    Store,
    answers,
    as_prefix,
    check_key,
    cut,
    fill,
    listing,
    parts_of,
)
from omnizarr.stores.kinds import Place
from omnizarr.stores.local.directory import LocalStore
from omnizarr.stores.shown import OverStore
from omnizarr.stores.urls import parse as urls

_chunk = re.compile(r"(?:(.*)/)?c((?:/(?:0|[1-9][0-9]*))+)", re.DOTALL).fullmatch
_is_number = re.compile(r"0|[1-9][0-9]*", re.ASCII).fullmatch
_MOST: Final = 1024  # datasets that are remembered
_ZARR: Final = ("zarr.json", ".zarray", ".zgroup")
_JOURNAL: Final = "omnizarr-conversion.json"  # of a conversion or a removal that has not ended
_NAME: Final = ".n5"
SCHEME: Final = "n5"


class _Block(NamedTuple):
    """A block, and its array."""

    key: str
    dataset: Dataset
    at: tuple[int, ...]
    """As N5 counts."""


class N5Store(OverStore):
    r"""An N5 hierarchy in a store, shown as Zarr v3.

    Parameters
    ----------
    store : Store
        The store in which the hierarchy begins. Closing this store closes it.

    Notes
    -----
    Writing makes N5: ``create_array`` needs a data type, big-endian bytes and a compressor that N5 has.

    Examples
    --------
    >>> import json
    >>> from omnizarr.stores import MemoryStore
    >>> about = {"dimensions": [3, 2], "blockSize": [3, 2], "dataType": "uint8", "compression": {"type": "raw"}}
    >>> block = b"\0\0\0\2\0\0\0\3\0\0\0\2" + bytes(range(6))
    >>> store = N5Store(MemoryStore({"attributes.json": json.dumps(about).encode(), "0/0": block}))
    >>> import omnizarr
    >>> omnizarr.open(store)[:]
    array([[0, 1, 2],
           [3, 4, 5]], dtype=uint8)
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read_only = store.read_only
        self._datasets: dict[str, Dataset | None] = {}
        self._expected: dict[str, Dataset] = {}  # of arrays whose chunks come before their document

    @property
    def features(self) -> Features:
        """Those of the store that holds the hierarchy: all its keys are listed here, too."""
        return super().features

    # -- keys ---------------------------------------------------------------------------

    def _attributes(self, path: str) -> dict[str, Any] | None:
        """Return the contents of an ``attributes.json``. Raises MetadataError if it is none."""
        key = f"{path}/{ATTRIBUTES}" if path else ATTRIBUTES
        value = verbs.get_within(self.store, key, config.get("documents.max_bytes"))
        if value is None:
            return None
        try:
            found = parse(value)
        except OmnizarrError as error:
            raise error.add(store=repr(self), key=key)
        if not isinstance(found, dict):
            raise StoreError("attributes.json is not an object", store=repr(self), key=key, found=found)
        return found

    def _document(self, path: str) -> bytes | None:
        """Return the document of a node, and remember how its blocks are read."""
        attributes = self._attributes(path)
        if attributes is None:
            self._datasets.pop(path, None)
            return documents_of_group() if self._is_directory(path) else None
        document, dataset = documents.load(attributes)
        self._remember(path, dataset)
        if document["node_type"] == "group" and (found := self._pyramid(path, attributes)) is not None:
            document["attributes"][pyramids.MEMBER] = found
        return json.dumps(document).encode()

    def _pyramid(self, path: str, attributes: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what OME-Zarr says of a pyramid; None if a group is none."""
        if not pyramids.may_be(attributes):
            return None
        levels: list[dict[str, Any] | None] = []
        while len(levels) < pyramids.MOST_LEVELS and None not in levels:
            names = [pyramids.name_of(level) for level in range(len(levels), len(levels) + pyramids.FEW)]
            keys = [f"{path}/{name}/{ATTRIBUTES}" if path else f"{name}/{ATTRIBUTES}" for name in names]
            found = dict(bounded.documents(self.store, keys))
            levels += [_object_or_none(found.get(position)) for position in range(len(keys))]
        return pyramids.describe(attributes, levels)

    def _remember(self, path: str, dataset: Dataset | None) -> None:
        if len(self._datasets) >= _MOST:
            self._datasets.clear()
        self._datasets[path] = dataset

    def _dataset(self, path: str) -> Dataset | None:
        """Return how the blocks of an array are read; None if there is no array that can be read."""
        try:
            return self._datasets[path]
        except KeyError:
            attributes = self._attributes(path)
            if attributes is None and path in self._expected:
                return self._expected[path]
            dataset = None if attributes is None else documents.load(attributes)[1]
            self._remember(path, dataset)
            return dataset

    def _is_directory(self, path: str) -> bool:
        """Whether a path without attributes is a group: it holds something, and is no directory of blocks."""
        if self.store.features.listing == "none" or path in self._expected:
            return False
        above, name = path, ""
        while above:
            above, _, name = above.rpartition("/")
            if not _is_number(name):
                break
            if self._dataset(above) is not None:
                return False
        found = self.store.list_dir(as_prefix(path))
        return bool(found.prefixes) or any(not _is_journal(key) for key in found.keys)

    def _block(self, key: str) -> _Block | None:
        """Return the block that a key means; None if it means none."""
        match = _chunk(key)
        if match is None:
            return None
        path: str = match[1] or ""
        dataset = self._dataset(path)
        names = match[2][1:].split("/")
        if dataset is None or len(names) != len(dataset.block):
            return None
        names.reverse()
        return _Block("/".join((path, *names)) if path else "/".join(names), dataset, tuple(map(int, names)))

    @staticmethod
    def _node(key: str) -> str | None:
        """Return the path of the node whose document has this key; None if it is another key."""
        if key == DOCUMENT:
            return ""
        return key[: -len(DOCUMENT) - 1] if key.endswith(f"/{DOCUMENT}") else None

    def _there(self, key: str) -> str | None:
        """Return the key of N5; None if there is none."""
        check_key(key)
        path = self._node(key)
        if path is not None:
            return f"{path}/{ATTRIBUTES}" if path else ATTRIBUTES
        if _is_journal(key):
            return key
        block = self._block(key)
        return None if block is None else block.key

    # -- reading ------------------------------------------------------------------------

    def get(self, key: str, span: Span | None = None) -> Buffer | None:
        """Return a document, or the chunk of a block."""
        if span is not None and self._block(key) is not None:
            parts = self._get_spans(key, [span])
            return None if parts is None else parts[0]
        value = self._value(key, None)
        return None if value is None else cut(value, span)

    @answers(verbs.get_within)
    def _get_within(self, key: str, most: int) -> Buffer | None:
        """Return the same, if the block is not too large."""
        return self._value(key, most)

    def _value(self, key: str, most: int | None) -> Buffer | None:
        check_key(key)
        path = self._node(key)
        if path is not None:
            return self._document(path)
        if _is_journal(key):
            return self.store.get(key) if most is None else verbs.get_within(self.store, key, most)
        block = self._block(key)
        if block is None:
            return None
        if most is None:
            value = self.store.get(block.key)
        else:
            value = verbs.get_within(self.store, block.key, most + len(block.dataset.header))
        return None if value is None else self._chunk(block, value)

    def _chunk(self, block: _Block, value: Buffer) -> Buffer:
        try:
            return blocks.chunk_of(block.dataset, value)
        except OmnizarrError as error:
            raise error.add(store=repr(self), key=block.key)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Read the header and the parts of a block of full size at once."""
        block = self._block(key)
        if block is None or block.dataset.is_decoded:
            value = self._value(key, None)
            return None if value is None else parts_of(value, spans)
        header = block.dataset.header
        skip = len(header)
        moved: list[Span] = [(0, skip)]
        for start, stop in spans:
            moved.append((start, None) if start < 0 else (start + skip, None if stop is None else stop + skip))
        found = verbs.get_spans(self.store, block.key, moved)
        if found is None:
            return None
        if bytes(found[0]) != header or any(start < 0 for start, _ in spans):
            value = self._value(key, None)
            return None if value is None else parts_of(value, spans)
        size = found.size if isinstance(found, Parts) else None
        parts = found[1:]
        return parts if size is None else Parts(parts, size - skip)

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Read the whole block, and copy it."""
        value = self._value(key, None)
        return None if value is None else fill(out, memoryview(value)[start:])

    def exists(self, key: str) -> bool:
        """Whether there is a block or a node."""
        check_key(key)
        path = self._node(key)
        if path is not None:
            there = f"{path}/{ATTRIBUTES}" if path else ATTRIBUTES
            return self.store.exists(there) or self._is_directory(path)
        block = self._there(key)
        return block is not None and self.store.exists(block)

    def size(self, key: str) -> int | None:
        """Return the size of a value. Blocks at the far edges are read for that."""
        block = self._block(key)
        if block is None or block.dataset.is_decoded:
            value = self._value(key, None)
            return None if value is None else len(value)
        header = block.dataset.header
        found = self.store.get(block.key, (0, len(header)))
        if found is None:
            return None
        size = self.store.size(block.key)
        if size is not None and bytes(found) == header:
            return size - len(header)
        value = self._value(key, None)
        return None if value is None else len(value)

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return the stamp of the file."""
        there = self._there(key)
        return None if there is None else verbs.stamp(self.store, there)

    @answers(verbs.blocks)
    def _blocks(self, prefix: str) -> Blocks | None:
        """Return where blocks lie in a directory that is only read: writing them needs more than a header."""
        dataset = self._dataset(prefix.rstrip("/"))
        if type(self.store) is not LocalStore or not self.read_only or dataset is None or dataset.is_decoded:
            return None
        return Blocks(self.store.real_root(), as_prefix(prefix), dataset.header)

    @answers(verbs.extents)
    def _extents(self, keys: Iterable[str]) -> Iterator[tuple[int, Extent | Buffer | None]]:
        """Return where blocks lie behind their headers."""
        base = verbs.folder(self.store, "")
        for position, key in enumerate(keys):
            block = self._block(key)
            if block is None:
                yield position, self._value(key, None)
                continue
            header = block.dataset.header
            found = self.store.get(block.key, (0, len(header)))
            size = None if found is None else self.store.size(block.key)
            if found is None or size is None:
                yield position, None
                continue
            if base is None or bytes(found) != header or block.dataset.is_decoded:
                raise NotRepresentableError(
                    "the bytes of a chunk are no part of a file as they are",
                    store=repr(self),
                    key=key,
                    found="a store without a path or URL" if base is None else "a block that is smaller than a chunk",
                )
            yield position, Extent(base + block.key, len(header), size - len(header))

    # -- listing ------------------------------------------------------------------------

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys of documents and chunks under a prefix."""
        prefix = as_prefix(prefix)
        inner = self._inner(prefix)
        for key, _ in self._shown(inner, ((key, 0) for key in self.store.list_prefix(inner))):
            if key.startswith(prefix):
                yield key

    @answers(verbs.list_sizes)
    def _list_sizes(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield the keys with the sizes of chunks, which compressed ones at the edge of an array can exceed."""
        prefix = as_prefix(prefix)
        inner = self._inner(prefix)
        for key, size in self._shown(inner, verbs.list_sizes(self.store, inner)):
            if key.startswith(prefix):
                yield key, size

    def _inner(self, prefix: str) -> str:
        """Return the prefix of N5 below which everything lies that a prefix shows."""
        path = self._array_above(prefix)
        return prefix if path is None else as_prefix(path)

    def _array_above(self, prefix: str) -> str | None:
        """Return the path of the array whose chunks lie below a prefix; None if there is none."""
        names = prefix[:-1].split("/") if prefix else []
        for position, name in enumerate(names):
            if name == "c" and all(map(_is_number, names[position + 1 :])):
                path = "/".join(names[:position])
                if self._dataset(path) is not None:
                    return path
        return None

    def _shown(self, prefix: str, found: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """Yield the keys that show those of N5."""
        known: dict[str, Dataset | None] = {}
        documented: set[str] = set()
        groups: set[str] = set()
        top = prefix[:-1]
        for key, size in found:
            folder, _, name = key.rpartition("/")
            if name == ATTRIBUTES and not self._is_block_folder(folder, known):
                documented.add(folder)
                yield f"{folder}/{DOCUMENT}" if folder else DOCUMENT, size
                continue
            if name == _JOURNAL:
                yield key, size
                continue
            path, dataset = self._nearest(folder, top, known, groups)
            if dataset is None:
                continue
            names = key[len(path) + 1 if path else 0 :].split("/")
            if len(names) == len(dataset.block) and all(map(_is_number, names)):
                there = _size_of_chunk(dataset, [*map(int, names)], size)
                names.reverse()
                yield "/".join((*([path] if path else ()), "c", *names)), there
        for path in sorted(groups - documented):
            if self._attributes(path) is None:
                yield f"{path}/{DOCUMENT}" if path else DOCUMENT, 0

    def _is_block_folder(self, folder: str, known: Mapping[str, Dataset | None]) -> bool:
        return False if not folder else any(known.get(above) is not None for above in upwards(folder))

    def _nearest(
        self, folder: str, top: str, known: dict[str, Dataset | None], groups: set[str]
    ) -> tuple[str, Dataset | None]:
        """Return the array that a directory belongs to, from the top; the groups on the way are added to `groups`."""
        at = len(top)
        while True:
            path = folder[:at]
            if path not in known:
                known[path] = self._dataset(path)
            if (dataset := known[path]) is not None:
                return path, dataset
            groups.add(path)
            if at >= len(folder):
                return path, None
            end = folder.find("/", at + 1)
            at = len(folder) if end < 0 else end

    def list_dir(self, prefix: str) -> Listing:
        """Return the document of a node and what is directly below; of an array, the directory of its chunks."""
        prefix = as_prefix(prefix)
        if self._array_above(prefix) is not None:
            return listing(self.list_prefix(prefix), prefix)
        path = prefix[:-1]
        found = self.store.list_dir(prefix)
        attributes = self._attributes(path) if prefix + ATTRIBUTES in found.keys else None
        names = [prefix + DOCUMENT] if attributes is not None or (found.prefixes and self._is_directory(path)) else []
        if attributes is not None and documents.load(attributes)[1] is not None:
            entries = (*found.keys, *found.prefixes)
            if any(_is_number(entry[len(prefix) :].removesuffix("/")) for entry in entries):
                names.append(f"{prefix}c/")
        elif names:
            names += found.prefixes
        if prefix + _JOURNAL in found.keys:
            names.append(prefix + _JOURNAL)
        return listing(names, prefix)

    # -- writing ------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        """Write ``attributes.json``, or a block."""
        self.check_writable()
        check_key(key)
        path = self._node(key)
        if path is not None:
            self._set_document(path, value)
            return
        if _is_journal(key):
            self.store.set(key, value)
            return
        block = self._block(key)
        if block is None:
            raise NotRepresentableError(
                "an N5 hierarchy holds only nodes and their chunks", store=repr(self), key=key, expected=f"a {DOCUMENT}"
            )
        self.store.set(block.key, blocks.block_of(block.dataset, value, block.at))

    def _set_document(self, path: str, value: Buffer) -> None:
        try:
            old = self._attributes(path)
            made = documents.dump(value, old, is_root=not path)
            if old is not None and made.get(pyramids.MEMBER) and made[pyramids.MEMBER] == self._pyramid(path, old):
                del made[pyramids.MEMBER]  # which says only what the attributes of N5 say
        except OmnizarrError as error:
            raise error.add(store=repr(self), path=path)
        if path and not self.store.exists(ATTRIBUTES):
            verbs.set_if_absent(self.store, ATTRIBUTES, _rendered({"n5": documents.VERSION}))
        self.store.set(f"{path}/{ATTRIBUTES}" if path else ATTRIBUTES, _rendered(made))
        self._remember(path, documents.load(made)[1])
        self._expected.pop(path, None)

    def delete(self, key: str) -> None:
        """Remove ``attributes.json``, or a block."""
        self.check_writable()
        there = self._there(key)
        if there is not None:
            self.store.delete(there)
            if (path := self._node(key)) is not None:
                self._datasets.pop(path, None)

    @answers(verbs.delete_prefix)
    def _delete_prefix(self, prefix: str) -> None:
        """Remove the blocks of an array, or everything in a directory."""
        self.check_writable()
        prefix = as_prefix(prefix)
        if self._array_above(prefix) is not None:
            keys = [self._there(key) for key in self.list_prefix(prefix)]
            verbs.delete_many(self.store, [key for key in keys if key is not None])
            return
        verbs.delete_prefix(self.store, prefix)
        self._datasets.clear()

    @answers(verbs.move_prefix)
    def _move_prefix(self, prefix: str, target: str) -> bool:
        """Rename a directory."""
        self.check_writable()
        prefix, target = as_prefix(prefix), as_prefix(target)
        if self._array_above(prefix) is not None or self._array_above(target) is not None:
            return False
        moved = verbs.move_prefix(self.store, prefix, target)
        self._datasets.clear()
        return moved

    @answers(verbs.check_storable)
    def _check_storable(self, key: str) -> None:
        """Ask the store about the key of N5."""
        verbs.check_storable(self.store, self._there(key) or key)

    @answers(verbs.as_stored)
    def _as_stored(self, prefix: str, metadata: ArrayMetadata, is_copy: bool) -> ArrayMetadata:  # noqa: FBT001
        """Return the metadata that N5 can express, and remember it for chunks that come before their document."""
        made = documents.adapted(metadata, is_copy=is_copy)
        dataset = documents.dataset_of(made)
        if dataset is not None:
            self._expected[as_prefix(prefix)[:-1]] = dataset
        return made

    @answers(verbs.remembered)
    def _remembered(self) -> Sequence[str]:
        """Return what the store remembers."""
        return verbs.remembered(self.store)

    def lock(self, key: str) -> AbstractContextManager[object]:
        """Lock the file."""
        self.check_writable()
        return self.store.lock(self._there(key) or key)

    # -- the store itself -----------------------------------------------------------------

    def with_read_only(self, read_only: bool = True) -> Store:  # noqa: FBT001, FBT002 - zarr-python's signature
        """Return the same hierarchy in a read-only store, or (False) in a writable one."""
        return _again(self.store.with_read_only(read_only), self._expected)

    def about(self) -> Mapping[str, Any]:
        """Return the format."""
        return {"format": "N5"}

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.store, self._expected)


def _again(store: Store, expected: Mapping[str, Dataset]) -> N5Store:
    made = N5Store(store)
    made._expected.update(expected)  # noqa: SLF001 - its own module
    return made


def _size_of_chunk(dataset: Dataset, at: Sequence[int], size: int) -> int:
    """Return the size of a chunk, from that of its file."""
    lengths = zip(dataset.block, dataset.dimensions, at, strict=True)
    is_whole = all(block * (position + 1) <= length for block, length, position in lengths)
    if dataset.is_raw and (dataset.is_decoded or not is_whole):
        return dataset.nbytes
    return max(0, size - len(dataset.header))


def _object_or_none(value: Buffer | None) -> dict[str, Any] | None:
    """Return the contents of an ``attributes.json``; None if there is none, or it is broken."""
    try:
        found = None if value is None else parse(value)
    except OmnizarrError:
        return None
    return found if isinstance(found, dict) else None


def _is_journal(key: str) -> bool:
    return key == _JOURNAL or key.endswith(f"/{_JOURNAL}")


def documents_of_group() -> bytes:
    """Return the document of a directory without attributes."""
    return json.dumps(documents.load({})[0]).encode()


def _rendered(attributes: Mapping[str, Any]) -> bytes:
    return json.dumps(attributes, indent=2, ensure_ascii=False).encode(errors="surrogatepass")


# -- opening -----------------------------------------------------------------------------------


def open_place(place: Place) -> tuple[Store, str] | None:
    """Return the store of a hierarchy at a path or URL; None if it is none."""
    scheme, mark, rest = place.text.partition("://")
    if mark and scheme.lower() == SCHEME:
        store, within = place.resolve(rest, place.mode, place.options)
        return (store if isinstance(store, N5Store) else N5Store(store)), within
    if place.path is None:
        return _from_url(place)
    if place.path.lower().endswith(".zip"):
        found = kinds.ZIP.open(place)
        return None if found is None else (N5Store(found[0]), found[1])
    place.refuse_options()
    path = Path(place.path).absolute()
    if path.is_file() or (not path.exists() and _is_in_zarr(path)):
        return None
    store = LocalStore(place.path, read_only=place.read_only)
    return (N5Store(store), "") if _is_hierarchy(store, path) else None


def _from_url(place: Place) -> tuple[Store, str] | None:
    opener = kinds.ZIP if urls.urlsplit(place.text).path.lower().endswith(".zip") else None
    opener = opener or kinds.of_scheme(place.text.partition(":")[0].lower()) or kinds.FSSPEC
    found = opener.open(place)
    return None if found is None else (N5Store(found[0]), found[1])


def _is_in_zarr(path: Path) -> bool:
    """Whether the nearest directory above that exists is a node of Zarr."""
    above = next((each for each in path.parents if each.is_dir()), None)
    return above is not None and any((above / name).is_file() for name in _ZARR)


def _is_hierarchy(store: LocalStore, path: Path) -> bool:
    """Whether a directory is one: by its name or that of one above, unless it is Zarr; or by its attributes."""
    if any(name.lower().endswith(_NAME) for name in path.parts):
        return not store.files_at_root(_ZARR)
    try:
        attributes = N5Store(store)._attributes("")  # noqa: SLF001 - its own module
    except OmnizarrError:
        return False
    return attributes is not None and ("n5" in attributes or {"dimensions", "dataType"} <= attributes.keys())
