"""What the files of an Icechunk repository say: references, snapshots and manifests, of both versions of the format.

Each file has a header of 39 bytes, and a flatbuffer, mostly in Zstandard. A snapshot has the documents of all nodes and
names the manifests of each array. A manifest says where chunks lie: in the manifest itself, in a file of the
repository, or, virtually, in a file elsewhere. In version 1, branches and tags are small files of their own; in
version 2 they are in the one file ``repo``.

Spec: Icechunk, format specification, versions 1 and 2.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.zstd import Zstd
from omnizarr.errors import ChunkError, MissingDependencyError, Remedy, Setting, StoreError, StoreLimitError
from omnizarr.settings import config, engines
from omnizarr.stores.base import Buffer, is_key
from omnizarr.stores.remote import icechunk_config
from omnizarr.stores.remote.icechunk_tables import SPEC, Flat, Vectors, broken
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = Lazy("numpy")

MAGIC: Final = "ICE\U0001f9caCHUNK".encode()
VERSION_AT: Final = len(MAGIC) + 24
"""Where the version of the format is in each file, behind the name of the program that wrote it."""
_HEADER: Final = VERSION_AT + 3
SNAPSHOT: Final = 1
MANIFEST: Final = 2
REPO: Final = 6
_NAMES: Final = {SNAPSHOT: "snapshot", MANIFEST: "manifest", REPO: "file of references"}
_ARRAY: Final = 1
_GROUP: Final = 2
_DIGITS: Final = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_MOST_NUMBER: Final = 1 << 62
_MOST_DIMENSIONS: Final = 32
_OFFLINE: Final = 2
DOCUMENT: Final = "zarr.json"

is_id = re.compile("[0-9A-HJKMNP-TV-Z]{20}").fullmatch
chunk_of = re.compile(r"(?:(.*)/)?c((?:/(?:0|[1-9][0-9]{0,9}))*)", re.DOTALL).fullmatch
"""Matches the key of a chunk: the path of its array, and its coordinates, each behind a slash."""


def most_bytes() -> int:
    """Return how many bytes a file may have."""
    return int(config.get("references.max_bytes"))


REMEDY: Final = Remedy("if you trust it, raise {setting}", setting=Setting("references.max_bytes"))


def unwrapped(data: Buffer, kind: int) -> tuple[int, Flat]:
    """Return the version of the format and the contents of a file. Raises StoreError if it is of another kind."""
    name, head = _NAMES[kind], bytes(data[:_HEADER])
    if len(head) < _HEADER or not head.startswith(MAGIC):
        raise broken(f"this is no {name} of Icechunk", f"{head[:12]!r}", f"{MAGIC!r}")
    version, found, compression = head[VERSION_AT:]
    if version not in {1, 2}:
        raise broken(f"the {name} has a version of the format of Icechunk that is not known", version, "1 or 2")
    if found != kind or compression > 1:
        raise broken(f"this is no {name} of Icechunk", f"kind {found}, compression {compression}", f"kind {kind}")
    body: Buffer = memoryview(data)[_HEADER:]
    if compression:
        try:
            body = Zstd(0, False, BytesSpec(None, max_nbytes=most_bytes())).decode(body)  # noqa: FBT003 - a checksum
        except ChunkError as error:
            raise StoreError(
                f"the {name} cannot be decompressed: {error.message}",
                found=error.found,
                expected=error.expected,
                remedy=REMEDY if "more" in error.message or "larger" in error.message else None,
                spec=SPEC,
            ) from error
    return version, Flat(body)


def id_of(raw: bytes) -> str:
    """Return the name of an object.

    >>> id_of(bytes(range(12)))
    '000G40R40M30E209185G'
    """
    return ids_of(np.frombuffer(raw, np.uint8).reshape(1, -1))[0]


def ids_of(rows: NDArray[np.uint8]) -> list[str]:
    """Return the names of objects, whose 12 bytes are rows: digits of 5 bits each."""
    made: list[str] = []
    weights, digits = np.array([16, 8, 4, 2, 1], np.uint8), np.frombuffer(_DIGITS, np.uint8)
    for start in range(0, len(rows), 1 << 14):
        bits = np.unpackbits(rows[start : start + (1 << 14)], axis=1)
        padded = np.pad(bits, ((0, 0), (0, -bits.shape[1] % 5)))
        values = padded.reshape(len(bits), -1, 5) @ weights
        text = digits[values]
        made += np.ascontiguousarray(text).view(f"S{text.shape[1]}").ravel().astype(str).tolist()
    return made


def _check_name(flat: Flat, root: NDArray[np.int64], name: str) -> None:
    """Raise StoreError if a file is another one than its name says."""
    (own,) = ids_of(flat.rows(flat.fields(root, 0), 12))
    if own != name:
        raise broken("this is another file than its name says", own, name)


# -- references ----------------------------------------------------------------------------


class Refs(NamedTuple):
    """Branches and tags of a repository of version 2, and what is known of its snapshots."""

    branches: Mapping[str, str]
    tags: Mapping[str, str]
    snapshots: frozenset[str]
    containers: Mapping[str, Any]
    """The containers of virtual chunks, as they are configured."""


def refs_of(data: Buffer) -> Refs:
    """Return what the file ``repo`` says. Raises StoreError if it is broken, or the repository is offline."""
    _, flat = unwrapped(data, REPO)
    root = flat.root()
    status = flat.inner(root, 5)
    if status[0]:
        (availability,) = flat.scalars(status, 0, 1)
        if availability >= _OFFLINE:
            reason = flat.vectors(status, 2, 1)
            raise StoreError(
                "the repository has been taken offline", found=flat.text(reason) if reason.starts[0] else None
            )
    infos = flat.tables(root, 4)
    snapshots = ids_of(flat.rows(flat.fields(infos, 0), 12))
    return Refs(
        _names_of(flat, flat.tables(root, 2), snapshots),
        _names_of(flat, flat.tables(root, 1), snapshots),
        frozenset(snapshots),
        _containers_of(flat, root),
    )


def _names_of(flat: Flat, refs: NDArray[np.int64], snapshots: Sequence[str]) -> dict[str, str]:
    texts = flat.vectors(refs, 0, 1)
    numbers = flat.scalars(refs, 1, 4).tolist()
    if numbers and max(numbers) >= len(snapshots):
        raise broken("a branch or tag leads to no snapshot", max(numbers), f"less than {len(snapshots)}")
    return {flat.text(texts, row): snapshots[number] for row, number in enumerate(numbers)}


def _containers_of(flat: Flat, root: NDArray[np.int64]) -> Mapping[str, Any]:
    found = flat.vectors(root, 9, 1)
    if not found.counts[0]:
        return {}
    return icechunk_config.of_flexbuffer(bytes(flat.bytes(found)))


def snapshot_of_ref(data: Buffer) -> str:
    """Return the snapshot that a file of a branch or tag of version 1 names."""
    try:
        found = json.loads(bytes(data))
        name = found["snapshot"]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise broken("the file of a branch or tag is broken", bytes(data)[:60], '{"snapshot": "..."}') from error
    if not isinstance(name, str) or not is_id(name):
        raise broken("a branch or tag leads to no snapshot", name, "20 digits and letters")
    return name


# -- snapshots -----------------------------------------------------------------------------


class ManifestRef(NamedTuple):
    """The manifests of an array, and which chunks each has: half-open ranges along each dimension."""

    ids: list[str]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


class Snapshot:
    """The nodes of a snapshot of this name.

    Attributes
    ----------
    paths : list of str
        Of all nodes, sorted; "" is the root.
    message : str
    flushed : int
        When it was committed: microseconds since 1970.
    """

    def __init__(self, data: Buffer, name: str) -> None:
        self.version, flat = unwrapped(data, SNAPSHOT)
        self._flat = flat
        root = flat.root()
        _check_name(flat, root, name)
        self.message = flat.text(flat.vectors(root, 4, 1))
        (self.flushed,) = flat.scalars(root, 3, 8).tolist()
        nodes = flat.tables(root, 2)
        texts, self._documents = flat.vectors(nodes, 1, 1), flat.vectors(nodes, 2, 1)
        if max(texts.counts.sum(), self._documents.counts.sum()) > flat.size:
            raise broken("the documents of a snapshot overlap")
        self._kinds = flat.scalars(nodes, 3, 1)
        if len(nodes) and not np.isin(self._kinds, (_ARRAY, _GROUP)).all():
            raise broken("a node of an unknown kind", self._kinds.max(), "an array or a group")
        self._data = flat.inner(nodes, 4)
        self._ids = flat.rows(flat.fields(nodes, 0), 8)
        paths = [flat.text(texts, row) for row in range(len(nodes))]
        self._rows = {path[1:]: row for row, path in enumerate(paths) if _is_path(path)}
        if len(self._rows) != len(paths):
            raise broken("the paths of nodes cannot be", f"{len(paths)} paths", f"{len(self._rows)} different ones")
        self.paths = sorted(self._rows)

    def __contains__(self, path: str) -> bool:
        return path in self._rows

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        return self._flat.size + 250 * len(self.paths)

    def document(self, path: str) -> memoryview | None:
        """Return the document of a node; None if there is none."""
        row = self._rows.get(path)
        return None if row is None else self._flat.bytes(self._documents, row)

    def is_array(self, path: str) -> bool:
        """Return whether a node is an array."""
        row = self._rows.get(path)
        return row is not None and self._kinds[row] == _ARRAY

    def id(self, path: str) -> bytes:
        """Return the bytes by which manifests call a node."""
        return bytes(self._ids[self._rows[path]])

    def manifests(self, path: str) -> ManifestRef:
        """Return the manifests of an array."""
        flat, row = self._flat, self._rows[path]
        array = self._data[row : row + 1]
        if not array[0]:
            raise broken("an array of a snapshot has no contents")
        refs = flat.tables(array, 2)
        extents = flat.vectors(refs, 1, 8)
        ids = ids_of(flat.rows(flat.fields(refs, 0), 12))
        dimensions = int(extents.counts[0]) if len(refs) else 0
        if (extents.counts != dimensions).any() or dimensions > _MOST_DIMENSIONS:
            raise broken("the manifests of an array have different dimensions", extents.counts.tolist()[:9])
        places = extents.starts[:, None] + 8 * np.arange(dimensions, dtype=np.int64)
        low = flat.numbers(places.ravel(), 4).reshape(places.shape)
        high = flat.numbers(places.ravel() + 4, 4).reshape(places.shape)
        return ManifestRef(ids, low, high)

    def below(self, path: str) -> list[str]:
        """Return the paths of a node and of all below it."""
        if not path:
            return self.paths
        start, stop = bisect_left(self.paths, f"{path}/"), bisect_left(self.paths, f"{path}0")
        return [*([path] if path in self._rows else ()), *self.paths[start:stop]]

    def children(self, path: str) -> list[str]:
        """Return the paths of what is directly below, without a look at what is deeper."""
        prefix = f"{path}/" if path else ""
        at, paths = bisect_left(self.paths, prefix), self.paths
        found: dict[str, None] = {}
        while at < len(paths) and paths[at].startswith(prefix):
            name, slash, _ = paths[at][len(prefix) :].partition("/")
            if name:
                found[prefix + name] = None
            # "a-b" lies between "a" and "a/b"; "0" follows "/".
            at = bisect_left(paths, f"{prefix}{name}0", at) if slash else at + 1
        return list(found)


def _is_path(path: str) -> bool:
    return path == "/" or (path.startswith("/") and is_key(path[1:]))


# -- manifests -----------------------------------------------------------------------------


class Manifest:
    """The chunks of some arrays, in the manifest of this name."""

    def __init__(self, data: Buffer, name: str) -> None:
        self.version, self._flat = unwrapped(data, MANIFEST)
        root = self._flat.root()
        _check_name(self._flat, root, name)
        self._arrays = self._flat.tables(root, 1)
        ids = self._flat.rows(self._flat.fields(self._arrays, 0), 8)
        self._rows = {each.tobytes(): row for row, each in enumerate(ids)}
        self._dictionary = self._flat.vectors(root, 2, 1)
        self._found: dict[bytes, Chunks] = {}

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory: each chunk has some numbers."""
        return 3 * self._flat.size // 2

    def chunks(self, node: bytes) -> Chunks | None:
        """Return the chunks of an array; None if there are none."""
        found = self._found.get(node)
        if found is None:
            row = self._rows.get(node)
            if row is None:
                return None
            tables = self._flat.tables(self._arrays[row : row + 1], 1)
            found = self._found[node] = Chunks(self._flat, tables, self._dictionary)
        return found


class Chunks:
    """The chunks of one array in one manifest, by row, sorted by their coordinates."""

    def __init__(self, flat: Flat, tables: NDArray[np.int64], dictionary: Vectors) -> None:
        self._flat, self._tables, self._dictionary = flat, tables, dictionary
        index = flat.vectors(tables, 0, 4)
        self.dimensions = int(index.counts[0]) if len(tables) else 0
        if len(tables) and ((index.counts != self.dimensions).any() or self.dimensions > _MOST_DIMENSIONS):
            raise broken("the chunks of an array have different dimensions", sorted(set(index.counts.tolist()))[:9])
        coords = [flat.numbers(index.starts + 4 * axis, 4) for axis in range(self.dimensions)]
        self._values, shape = _ranked(coords)
        self._shape = shape
        self._numbers = self._number(coords)[0]
        if (np.diff(self._numbers) <= 0).any():
            raise broken("the chunks of a manifest are not in their order")

    def __len__(self) -> int:
        return len(self._tables)

    def _number(self, coords: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the numbers of chunks, and which of them can be here."""
        count = len(coords[0]) if coords else len(self._tables)
        numbers, known = np.zeros(count, np.int64), np.ones(count, np.bool_)
        for values, length, each in zip(self._values, self._shape, coords, strict=True):
            ranks = each
            if values is not None:
                ranks = np.minimum(np.searchsorted(values, each), length - 1)
                known &= values[ranks] == each
            known &= ranks < length
            numbers = numbers * length + np.minimum(ranks, length - 1)
        return numbers, known

    def rows(self, coords: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of chunks with some coordinates, which are rows themselves; -1 where there is none."""
        if coords.shape[1] != self.dimensions or not len(self):
            return np.full(len(coords), -1)
        if not self.dimensions:
            return np.zeros(len(coords), np.int64)
        numbers, known = self._number(list(coords.T))
        rows = np.minimum(np.searchsorted(self._numbers, numbers), len(self) - 1)
        return np.where(known & (self._numbers[rows] == numbers), rows, -1)

    def coords(self) -> Iterator[tuple[int, ...]]:
        """Yield the coordinates of all chunks, in their order."""
        for start in range(0, len(self), 1 << 14):
            index = self._flat.vectors(self._tables[start : start + (1 << 14)], 0, 4)
            axes = [self._flat.numbers(index.starts + 4 * axis, 4).tolist() for axis in range(self.dimensions)]
            yield from zip(*axes, strict=True) if axes else [()] * len(index.starts)

    def located(self, rows: NDArray[np.int64]) -> Located:
        """Return where chunks lie, by row."""
        flat, tables = self._flat, self._tables[rows]
        inline = flat.vectors(tables, 1, 1)
        ids = flat.fields(tables, 4)
        located = flat.vectors(tables, 5, 1)
        packed = flat.vectors(tables, 8, 1)
        is_inline = inline.starts > 0
        is_native = ~is_inline & (ids > 0)
        is_virtual = ~is_inline & ~is_native
        if (is_virtual & (located.starts == 0) & (packed.starts == 0)).any():
            raise broken("a chunk of a manifest lies nowhere")
        offsets, lengths = flat.scalars(tables, 2, 8), flat.scalars(tables, 3, 8)
        lengths[is_inline] = inline.counts[is_inline]
        if len(rows) and max(offsets.max(), lengths.max()) >= _MOST_NUMBER:
            raise broken("a chunk lies behind all files", max(offsets.max(), lengths.max()))
        return Located(offsets, lengths, is_inline, is_native, is_virtual, self, rows)

    # -- what is read only of chunks of one kind ---------------------------------------------

    @cached_property
    def _are_apart(self) -> bool:
        inline = self._flat.vectors(self._tables, 1, 1)
        return int(inline.counts.sum()) <= self._flat.size

    def values(self, rows: NDArray[np.int64]) -> list[bytes]:
        """Return the bytes of chunks in the manifest."""
        if not self._are_apart:
            raise broken("chunks in a manifest overlap")
        found = self._flat.vectors(self._tables[rows], 1, 1)
        return [bytes(self._flat.bytes(found, row)) for row in range(len(rows))]

    def ids(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the names of files in the repository."""
        return ids_of(self._flat.rows(self._flat.fields(self._tables[rows], 4), 12))

    def virtual(self, rows: NDArray[np.int64]) -> list[Virtual]:
        """Return the files elsewhere."""
        tables = self._tables[rows]
        times = self._flat.scalars(tables, 7, 4).tolist()
        tags = self._flat.vectors(tables, 6, 1)
        known: dict[tuple[int, int], str] = {}
        found, packed = self._flat.vectors(tables, 5, 1), self._flat.vectors(tables, 8, 1)
        room = self._flat.size
        made: list[Virtual] = []
        for row, time in enumerate(times):
            source = found if found.starts[row] else packed
            place = int(source.starts[row]), int(source.counts[row])
            location = known.get(place)
            if location is None:
                room -= place[1]
                if room < 0:
                    raise broken("the places of chunks in a manifest overlap")
                location = self._flat.text(found, row) if source is found else self._unpacked(source, row)
                known[place] = location
            tag = self._flat.text(tags, row) if tags.counts[row] else None
            made.append(Virtual(location, tag, time))
        return made

    def _unpacked(self, source: Vectors, row: int) -> str:
        """Return a location that is compressed with the dictionary of the manifest."""
        if not self._dictionary.counts[0]:
            raise broken("the places of chunks in a manifest are compressed, and the dictionary is missing")
        try:
            return _decompressed(bytes(self._flat.bytes(source, row)), bytes(self._flat.bytes(self._dictionary)))
        except UnicodeDecodeError as error:
            raise broken("the place of a chunk in a manifest is not UTF-8") from error


class Virtual(NamedTuple):
    """A file elsewhere."""

    location: str
    tag: str | None
    """The ETag that it must have."""
    changed: int
    """The second since 1970 after which it must not have changed; 0: any."""


class Located(NamedTuple):
    """Where some chunks lie."""

    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    is_inline: NDArray[np.bool_]
    is_native: NDArray[np.bool_]
    is_virtual: NDArray[np.bool_]
    chunks: Chunks
    rows: NDArray[np.int64]


def _ranked(coords: Sequence[NDArray[np.int64]]) -> tuple[list[NDArray[np.int64] | None], list[int]]:
    """Return how coordinates along each dimension become numbers below which length, so that all fit into 62 bits."""
    if not coords or not len(coords[0]):
        return [None] * len(coords), [1] * len(coords)
    shape = [int(each.max()) + 1 for each in coords]
    if _product(shape) < _MOST_NUMBER:
        return [None] * len(coords), shape
    values: list[NDArray[np.int64] | None] = [np.unique(each) for each in coords]
    shape = [len(each) for each in values if each is not None]
    if _product(shape) >= _MOST_NUMBER:
        raise StoreLimitError("the grid of chunks of a manifest is larger than omnizarr reads", found=str(shape))
    return values, shape


def _product(shape: Sequence[int]) -> int:
    size = 1
    for each in shape:
        size *= each
    return size


_MOST_LOCATION: Final = 1 << 16


def _decompressed(data: bytes, dictionary: bytes) -> str:
    """Return a location that was compressed with a dictionary."""
    native: Any = engines.module()
    if hasattr(native, "zstd_by"):
        try:
            return str(native.zstd_by(dictionary, data, _MOST_LOCATION), "utf-8")
        except RuntimeError as error:
            raise _damaged(error) from error
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415 - few repositories need it
    except ImportError as error:
        raise MissingDependencyError(
            "the places of virtual chunks are compressed with a dictionary, and the native engine is not built",
            remedy="install the package 'zstandard': pip install zstandard",
        ) from error
    try:
        known = zstandard.ZstdCompressionDict(dictionary)
        made = zstandard.ZstdDecompressor(dict_data=known)
        return str(made.decompress(data, max_output_size=_MOST_LOCATION), "utf-8")
    except zstandard.ZstdError as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> StoreError:
    return broken(f"the place of a chunk in a manifest cannot be decompressed: {error}")
