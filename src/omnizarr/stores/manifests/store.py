"""A store of arrays in files of other formats: documents that a reader made, and chunks where they lie in the files."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from omnizarr.codecs import chain as chains
from omnizarr.codecs.chain import Chain
from omnizarr.codecs.contract import ArraySpec
from omnizarr.errors import Function, NotRepresentableError, OmnizarrError, ReadOnlyError, Remedy, StoreError
from omnizarr.formats import V2, V3
from omnizarr.formats.documents import parse
from omnizarr.model import UNDEFINED, ArrayMetadata, datatypes, grids, keys, strict, thawed
from omnizarr.model.grids import Grid
from omnizarr.model.key_forms import KeyEncoding
from omnizarr.stores import ranges, threads, verbs
from omnizarr.stores.access import Access, Chunks, Divided, Finder, Remote
from omnizarr.stores.base import (
    Buffer,
    Buffers,
    Features,
    Listing,
    Parts,
    Span,
    Store,
    answers,
    as_prefix,
    bounds,
    cut,
    fill,
    is_key,
    listing,
    parts_of,
)
from omnizarr.stores.base import Extent as FilePart
from omnizarr.stores.local.memory import MemoryStore
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.manifest import AnyManifest, Extent, Index, Manifest, Strided
from omnizarr.stores.manifests.parts import PartStore, Wanted
from omnizarr.stores.manifests.places import Sought
from omnizarr.stores.ranges import Range

Loader: TypeAlias = Callable[[], AnyManifest]
"""Returns a manifest when it is first needed: opening a file reads no index of chunks. It may append to the files."""

Strings: TypeAlias = list[str]  # in a class whose `list` is a method

_MOST_REMOTE: Final = 16
"""Of more remote files the engine in Python asks for those that it reads: here the version of each must be known."""
_DIALECTS: Final = (V3, V2)
_DOCUMENT: Final = V3.array_document


class Table:
    """The chunks of an array, and what is needed to read them.

    Attributes
    ----------
    metadata : ArrayMetadata
    grid : Grid
    keys : KeyEncoding
    """

    def __init__(self, path: str, metadata: ArrayMetadata, load: Loader, files: Sequence[File]) -> None:
        self.metadata = metadata
        self.grid: Grid = grids.bind(thawed(metadata.chunk_grid), metadata.shape)
        self.keys: KeyEncoding = keys.bind(metadata.chunk_key_encoding)
        self.files = files
        self._path = path
        self._load = load
        self._chunks: AnyManifest | None = None
        self._chains: dict[int, Chain] = {}

    @property
    def is_loaded(self) -> bool:
        """Whether the manifest is in memory."""
        return self._chunks is not None

    @property
    def index(self) -> Index | None:
        """What finds chunks without the manifest, until that is in memory; None if nothing does."""
        return self._load if self._chunks is None and isinstance(self._load, Index) else None

    @property
    def chunks(self) -> AnyManifest:
        """The manifest. Raises StoreError if it cannot be made, or does not fit the array."""
        if self._chunks is None:
            with threads.lock((Table, id(self))):
                if self._chunks is None:
                    self._chunks = self._loaded()
        return self._chunks

    def _loaded(self) -> AnyManifest:
        manifest, grid = self._load(), self.grid.grid_shape
        if isinstance(manifest, Strided):
            found, expected, fits = f"a grid of {manifest.grid}", f"{grid}", manifest.grid == grid
        else:
            found, expected = f"{len(manifest)} chunks", f"{self.grid.nchunks}"
            fits = len(manifest) == self.grid.nchunks
        if not fits:
            raise StoreError("a manifest does not fit its array", path=self._path, found=found, expected=expected)
        if manifest.most_files > len(self.files):
            raise StoreError(
                "a manifest names an unknown file",
                path=self._path,
                found=f"file {manifest.most_files - 1}",
                expected=f"one of {len(self.files)}",
            )
        return manifest

    def chain(self, mask: int = 0) -> Chain:
        """Return the codecs of chunks that skip some of them."""
        chain = self._chains.get(mask)
        if chain is None:
            self._chains[mask] = chain = self._bound(mask)
        return chain

    def _bound(self, mask: int) -> Chain:
        document = self.metadata
        data_type = datatypes.bind(thawed(document.data_type), document.byte_order)
        is_undefined = document.fill_value is UNDEFINED
        value = data_type.default_fill_value if is_undefined else data_type.fill_from_json(thawed(document.fill_value))
        shape = self.grid.chunk_shape
        if shape is None:
            raise StoreError("an array with a manifest has a regular grid", found=document.chunk_grid)
        spec = ArraySpec(shape, data_type, value)
        codecs = tuple(map(thawed, document.codecs))
        whole = chains.bind(codecs, spec)
        return chains.bind(chains.without(codecs, mask, len(whole.filters)), spec) if mask else whole


class _Chunk(NamedTuple):
    """A chunk that is stored."""

    table: Table
    extent: Extent


def _within(extent: Extent, span: Span) -> tuple[int, int]:
    """Return the bytes of the file that hold a part of a value."""
    start, length = bounds(span, extent.size)
    return extent.offset + min(start, extent.length), extent.offset + min(start + length, extent.length)


class ManifestStore(PartStore):
    r"""A read-only store: documents in memory, and chunks in files of any format.

    Parameters
    ----------
    documents : mapping of str to bytes
        The documents by key, ``a/zarr.json``, and chunks that the reader has made itself.
    manifests : mapping of str to Manifest, Strided or callable
        Where the chunks of arrays lie, by path. A callable returns it when it is first needed.
    files : sequence of File, str or path
        The files, by number. A path is a file of this machine.
    name : str, optional
        What messages call the store. The default is the path of the first file.

    Raises
    ------
    StaleError
        In reading, if a file is not the one that was opened.
    StoreError
        In reading, if a file does not exist, or ends before a chunk does, or a manifest does not fit its array.

    Notes
    -----
    Chunk keys are those of the document of their array. A chunk that skips codecs is encoded again when it is
    requested, so that all readers see what the document says.

    Examples
    --------
    >>> import tempfile, pathlib, omnizarr
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "a.bin")
    >>> _ = file.write_bytes(b"header" + bytes(range(6)))
    >>> template = omnizarr.create_array({}, shape=6, chunks=2, dtype="u1", compressors=None)
    >>> documents = {"zarr.json": template.store.get("zarr.json")}
    >>> store = ManifestStore(documents, {"": Manifest([6, 8, 10], [2, 2, 2])}, [file])
    >>> omnizarr.open(store)[:], bytes(store.get("c/1"))
    (array([0, 1, 2, 3, 4, 5], dtype=uint8), b'\x02\x03')
    >>> folder.cleanup()
    """

    _Place = _Chunk
    _notes: tuple[str, ...] = ()
    format: str = ""
    """The format of the files, if a reader has made the store."""

    def __init__(
        self,
        documents: Mapping[str, Buffer],
        manifests: Mapping[str, AnyManifest | Loader],
        files: Sequence[Any],
        *,
        name: str = "",
    ) -> None:
        self._documents = MemoryStore(documents, read_only=True)
        self._manifests: Mapping[str, AnyManifest | Loader] = dict(manifests)
        self._lengths = frozenset(map(len, self._manifests))
        self._files = files if _are_files(files) else [*map(_as_file, files)]
        self._name = name
        self._features: Features | None = None
        self._tables: dict[str, Table] = {}
        self._known: tuple[tuple[str, int, int, int, int], ...] = ()
        self._below: Mapping[str, Sequence[str]] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the files is not shown, or is shown as something else, by name. A reader sets it."""
        return self._all_notes()

    @notes.setter
    def notes(self, notes: tuple[str, ...]) -> None:
        self._notes = notes

    def _all_notes(self) -> tuple[str, ...]:
        return self._notes

    @property
    def files(self) -> Sequence[File]:
        """The files, by number."""
        return self._files

    @property
    def documents(self) -> Mapping[str, Buffer]:
        """The documents by key."""
        return self._documents.store_dict

    def table_of(self, path: str) -> Table | None:
        """Return where the chunks of the array at a path lie; None if it has no manifest. Raises StoreError."""
        found = self._tables.get(path)
        if found is not None or path not in self._manifests:
            return found
        try:
            given = self._manifests[path]
            load = (lambda: given) if isinstance(given, Manifest | Strided) else given
            found = self._tables.setdefault(path, Table(path, self._metadata(path), load, self._files))
        except OmnizarrError as error:
            raise error.add(store=repr(self), path=path)
        return found

    def _metadata(self, path: str) -> ArrayMetadata:
        for dialect in _DIALECTS:
            known = {name: self._documents.get(key) for name, key in dialect.keyspace.documents(path).items()}
            found = {name: parse(value) for name, value in known.items() if value is not None}
            metadata = dialect.load(found, strict) if found else None
            if isinstance(metadata, ArrayMetadata):
                return metadata
        raise StoreError("there is a manifest, but no document of an array")

    # -- what it can do --------------------------------------------------------------

    @property
    def features(self) -> Features:
        """The concurrency of the stores of the files; other processes see the same files."""
        if self._features is None:
            below = [store.features for store in {id(file.store): file.store for file in self._files}.values()]
            concurrency = max((each.concurrency for each in below), default=1)
            is_shared = all(each.is_shared for each in below)
            self._features = Features(concurrency, is_shared=is_shared, listing="complete")
        return self._features

    # -- reading ---------------------------------------------------------------------

    def _find(self, key: str) -> Buffer | _Chunk | None:
        """Return a document, or where a chunk lies; None if there is neither."""
        if (document := self._documents.get(key)) is not None:
            return document
        place = self._place(key)
        if place is None:
            return None
        table, number = place
        try:
            extent = table.chunks.find(number)
        except OmnizarrError as error:
            raise error.add(store=repr(self))
        return None if extent is None else _Chunk(table, extent)

    def _place(self, key: str) -> tuple[Table, int] | None:
        for path in self._above(key):
            table = self.table_of(path)
            if table is None:
                continue
            shape = table.grid.grid_shape
            coords = table.keys.decode(key[len(path) + 1 :] if path else key, len(shape))
            if coords is None:
                return None
            number = 0
            for coordinate, length in zip(coords, shape, strict=True):
                if coordinate >= length:
                    return None
                number = number * length + coordinate
            return table, number
        return None

    def _above(self, key: str) -> Iterator[str]:
        """Yield the paths of arrays to which a key can belong."""
        end = -1
        while True:
            path = key[: max(end, 0)] if max(end, 0) in self._lengths else None
            if path is not None and path in self._manifests:
                yield path
            end = key.find("/", end + 1)
            if end < 0:
                return

    def _range(self, place: _Chunk, span: Span) -> Range:
        extent = place.extent
        if extent.parts > 1 or extent.is_made:
            return Range(extent.file, extent.offset, extent.stop)
        start, stop = _within(extent, span)
        return Range(extent.file, start, stop)

    def _known_size(self, place: _Chunk) -> int:
        return place.extent.size

    def _parts(self, group: Sequence[Wanted], most: int | None) -> Buffers:
        chunks: list[_Chunk] = [each.found for each in group]
        file = self._files[chunks[0].extent.file]
        spans = [span for each, chunk in zip(group, chunks, strict=True) for span in _spans_of(chunk.extent, each.span)]
        self._check_end(file, max(stop for _, stop in spans))
        if len(group) > 1:
            start, stop = min(start for start, _ in spans), max(stop for _, stop in spans)
            around = memoryview(file.read([(start, stop)])[0])
            parts: Buffers = [around[first - start : last - start] for first, last in spans]
        else:
            parts = file.read(spans)
        found: Buffers = []
        for each, chunk in zip(group, chunks, strict=True):
            own = [parts.pop(0) for _ in _spans_of(chunk.extent, each.span)]
            found.append(self._value(each, chunk, own, most))
        return found

    def _check_end(self, file: File, stop: int) -> None:
        if file.size is not None and stop > file.size:
            raise file.too_short(stop)

    def _value(self, wanted: Wanted, chunk: _Chunk, parts: Buffers, most: int | None = None) -> Buffer:
        """Return what was asked for, from the parts of the file."""
        extent = chunk.extent
        if extent.skipped:
            value = self._encoded(chunk, parts[0])
            if most is not None:
                verbs.check_limit(self, wanted.key, len(value), most)
            return cut(value, wanted.span)
        if extent.parts > 1:
            if len(parts) == 1:
                lines = np.ndarray((extent.parts, extent.length), "u1", parts[0], strides=(extent.stride, 1))
                parts = [lines.tobytes()]
            return cut(b"".join((*parts, bytes(extent.padding))), wanted.span)
        if extent.head:
            return cut(b"".join((extent.head, parts[0])), wanted.span)
        _, length = bounds(wanted.span, extent.size)
        missing = length - len(parts[0])
        return parts[0] if not missing else b"".join((parts[0], bytes(missing)))

    def _encoded(self, chunk: _Chunk, data: Buffer) -> Buffer:
        """Return a chunk that skips codecs as all codecs would have stored it."""
        table, mask = chunk.table, chunk.extent.skipped
        return table.chain().encode(table.chain(mask).decode(data))

    @answers(verbs.extents)
    def _extents(self, keys: Iterable[str]) -> Iterator[tuple[int, FilePart | Buffer | None]]:
        """Return where chunks lie in their files."""
        names: dict[int, tuple[str, int]] = {}
        for position, key in enumerate(keys):
            found = self._find(key)
            if not isinstance(found, _Chunk):
                yield position, found
                continue
            extent = found.extent
            if extent.parts > 1 or extent.is_made or extent.padding:
                raise NotRepresentableError(
                    "the bytes of a chunk are no part of a file as they are",
                    store=repr(self),
                    key=key,
                    found="several pieces"
                    if extent.parts > 1
                    else "a chunk that skips codecs, has a head, or is cut at its end",
                    remedy=Remedy("copy it instead: {convert}", convert=Function("(source, target)")),
                )
            if extent.file not in names:
                names[extent.file] = self._name_of(self._files[extent.file])
            name, start = names[extent.file]
            yield position, FilePart(name, start + extent.offset, extent.length)

    def _name_of(self, file: File) -> tuple[str, int]:
        """Return the path or URL of a file, and where in it the file begins: it can be part of an archive."""
        above, _, name = file.key.rpartition("/")
        base = verbs.folder(file.store, above)
        if base is not None:
            return base + name, 0
        with suppress(NotRepresentableError):
            ((_, part),) = verbs.extents(file.store, [file.key])
            if isinstance(part, FilePart):
                return part.file, part.offset
        raise NotRepresentableError("the file has no path or URL", store=repr(self), found=file.path)

    @answers(verbs.get_spans)
    def _get_spans(self, key: str, spans: Sequence[Span]) -> Buffers | None:
        """Read several parts of a chunk from one version of its file."""
        found = self._find(key)
        if found is None:
            return None
        if not isinstance(found, _Chunk) or found.extent.parts > 1 or found.extent.is_made:
            value = self.get(key)
            return None if value is None else parts_of(value, spans)
        extent = found.extent
        file = self._files[extent.file]
        wanted = [_within(extent, span) for span in spans]
        self._check_end(file, max((stop for _, stop in wanted), default=0))
        values = [
            self._value(Wanted(0, key, span, found), found, [part])
            for span, part in zip(spans, file.read(wanted), strict=True)
        ]
        return Parts(values, extent.size)

    @answers(verbs.read_into)
    def _read_into(self, key: str, out: memoryview, start: int = 0) -> int | None:
        """Read from the file directly into `out`."""
        found = self._find(key)
        if found is None:
            return None
        if not isinstance(found, _Chunk) or found.extent.parts > 1 or found.extent.is_made or found.extent.padding:
            value = self.get(key, (start, None))
            return None if value is None else fill(out, memoryview(value))
        extent = found.extent
        size = max(0, extent.length - start)
        room = out.cast("B")[:size]
        file = self._files[extent.file]
        self._check_end(file, extent.offset + start + room.nbytes)
        file.read_into(room, extent.offset + start)
        return size

    @answers(verbs.divided)
    def _divided(self, prefix: str) -> Divided | None:
        """Return an array whose chunks lie at regular distances with chunks that are one piece each."""
        path = next(self._above(f"{as_prefix(prefix)}0"), None)
        table = None if path is None else self.table_of(path)
        value = None if path is None else self._documents.get(f"{path}/{_DOCUMENT}" if path else _DOCUMENT)
        if table is None or value is None or not isinstance(table.chunks, Strided) or not table.grid.chunk_shape:
            return None
        manifest, shape = table.chunks.divided(), list(table.grid.chunk_shape)
        if manifest is table.chunks:
            return None
        shape[manifest.axis] = manifest.per_chunk
        document = {
            **json.loads(bytes(value)),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
        }
        documents = {_DOCUMENT: json.dumps(document).encode()}
        return Divided(ManifestStore(documents, {"": manifest}, self._files), tuple(shape))

    @answers(verbs.chunks)
    def _chunks(self, prefix: str) -> Chunks | None:
        """Return the manifest of an array, if all files are on this machine, or all behind the same client.

        Chunks with heads are made here, so there is none for them.
        """
        table = self._table_below(prefix)
        if table is None:
            return None
        manifest = table.chunks
        if isinstance(manifest, Manifest) and manifest.heads is not None:
            return None
        files = self._statuses() or self._remote()
        return None if files is None else Chunks(table.grid.grid_shape, manifest, files)

    def _table_below(self, prefix: str) -> Table | None:
        """Return where the chunks of an array lie; None if the reader has made some of them."""
        path = next(self._above(f"{as_prefix(prefix)}0"), None)
        table = None if path is None else self.table_of(path)
        if table is None or any(self._place(key) is not None for key in self._documents_below([as_prefix(prefix)])):
            return None
        return table

    @answers(verbs.places)
    def _places(self, prefix: str) -> Finder | None:
        """Return what finds chunks without the whole index, if there is such a thing."""
        table = self._table_below(prefix)
        index = None if table is None else table.index
        if index is None:
            return None
        file = self._files[0]
        if file.is_local:
            status = file.status
            return None if status is None else Sought(index.seek, status, None, None, index.near)
        access = verbs.access(file.store)
        version = None if access is None or access.ignores_ranges else file.version
        if access is None or version is None:
            return None
        return Sought(index.seek, None, (access.prefix + file.key, file.key, version), (file.store, access))

    def _remote(self) -> Remote | None:
        """Return the versions of remote files that are read; None if there are others, or reading them takes more."""
        if len(self._files) > _MOST_REMOTE:
            return None
        found = []
        first: Access | None = None
        for file in self._files:
            access = None if file.is_local else verbs.access(file.store)
            if access is None or access.ignores_ranges or (first is not None and access.client != first.client):
                return None
            first = access
            version = file.version
            if version is None:
                return None
            found.append((access.prefix + file.key, file.key, version))
        return None if first is None else Remote(self._files[0].store, first, tuple(found))

    def _statuses(self) -> tuple[tuple[str, int, int, int, int], ...] | None:
        """Return what shows that local files are the same; None if there are others."""
        if len(self._known) != len(self._files):
            found = [file.status for file in self._files]
            self._known = tuple(each for each in found if each is not None)
            if len(self._known) != len(found):
                self._known = ()
                return None
        return self._known

    def size(self, key: str) -> int | None:
        """Return the size of a value, without reading it unless it must be encoded again."""
        found = self._find(key)
        return None if found is None else self._size_of(key, found)

    def _size_of(self, key: str, found: Buffer | _Chunk) -> int:
        if not isinstance(found, _Chunk):
            return len(found)
        return len(self.get(key) or b"") if found.extent.skipped else found.extent.size

    @answers(verbs.stamp)
    def _stamp(self, key: str) -> Hashable | None:
        """Return the change marker of the file, and the part of it."""
        found = self._find(key)
        if not isinstance(found, _Chunk):
            return None if found is None else verbs.stamp(self._documents, key)
        file = self._files[found.extent.file]
        return None if file.marker is None else (file.path, file.size, file.marker, found.extent)

    # -- listing ---------------------------------------------------------------------

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys of documents and stored chunks under `prefix`."""
        prefix = as_prefix(prefix)
        directories = [prefix]
        yield from self._documents_below(directories)
        inside = (each.removesuffix("/") for each in directories)
        for path in dict.fromkeys((*self._above(prefix), *(path for path in inside if path in self._manifests))):
            yield from (key for key in self._chunk_keys(path) if key.startswith(prefix))

    def _documents_below(self, directories: Strings) -> Iterator[str]:
        """Yield the keys of documents under `directories`, and add the directories below them to that list."""
        for directory in directories:
            for name in self._directory(directory):
                if name.endswith("/"):
                    directories.append(name)
                elif is_key(name):
                    yield name

    def _directory(self, prefix: str) -> Sequence[str]:
        """Return the keys of documents directly under a prefix, and the directories there, with a slash at the end.

        Directories are found once: a tree of many groups asks for each of them.
        """
        if self._below is None:
            below: dict[str, Strings] = {"": []}
            for key in self.documents:
                name = key
                while True:
                    above = name[: name.rstrip("/").rfind("/") + 1]
                    is_known = above in below
                    below.setdefault(above, []).append(name)
                    if is_known:
                        break
                    name = above
            self._below = below
        return self._below.get(prefix, ())

    def _chunk_keys(self, path: str) -> Iterator[str]:
        table = self.table_of(path)
        if table is None:
            return
        below = f"{path}/" if path else ""
        for number in table.chunks.stored([file.size for file in self._files]):
            yield below + table.keys.encode(_coords(number, table.grid.grid_shape))

    def list_dir(self, prefix: str) -> Listing:
        """Return what is directly under `prefix`. The chunks of arrays further below are not looked at."""
        prefix = as_prefix(prefix)
        names = set(self._directory(prefix))
        for path in self._above(f"{prefix}."):
            names.update(self._names_of_chunks(path, prefix))
        return listing(names, prefix)

    def _names_of_chunks(self, path: str, prefix: str) -> Iterator[str]:
        """Yield what the keys of chunks of an array begin with, up to the first slash behind `prefix`."""
        table = self.table_of(path)
        head = (table.keys.affixes or [""])[0] if table is not None else ""
        for key in self._chunk_keys(path):
            if key.startswith(prefix):
                end = key.find("/", len(prefix))
                yield key if end < 0 else key[: end + 1]
                if len(prefix) <= len(path) + 1 and "/" in head:  # all begin so
                    return

    # -- the store itself ------------------------------------------------------------

    def _refusal(self) -> ReadOnlyError:
        return ReadOnlyError(
            "files of other formats can only be read",
            store=repr(self),
            remedy='open it with mode "r", and convert it to Zarr to change it',
        )

    @property
    def place(self) -> str:
        """The path or URL of the first file."""
        return self._name or (self._files[0].path if self._files else "")

    def origin(self) -> tuple[Hashable, str]:
        """Return the identity of the file, if there is one only."""
        if len(self._files) != 1:
            return super().origin()
        (file,) = self._files
        data, path = file.store.origin()
        return data, f"{path}/{file.key}".strip("/")

    def about(self) -> Mapping[str, Any]:
        """Return the format of the files, and what of them is not shown, or is shown as something else."""
        return {
            **({"format": self.format} if self.format else {}),
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (dict(self.documents), self._pickled(), list(self._files), self._name, self.notes, self.format)

    def _pickled(self) -> dict[str, Any]:
        """Return the manifests, or what makes them."""
        known = {path: table.chunks for path, table in self._tables.items() if table.is_loaded}
        return {**self._manifests, **known}

    def __repr__(self) -> str:
        return f"ManifestStore({self.place!r})"


def _again(
    documents: Mapping[str, Buffer],
    manifests: Mapping[str, Any],
    files: Sequence[File],
    name: str,
    notes: tuple[str, ...] = (),
    format_name: str = "",
) -> Store:
    store = ManifestStore(documents, manifests, files, name=name)
    store.notes, store.format = notes, format_name
    return store


def _as_file(given: Any) -> File:
    return given if isinstance(given, File) else File.at(given)


def _are_files(files: Sequence[Any]) -> bool:
    return all(isinstance(each, File) for each in files)


def _coords(number: int, grid: Sequence[int]) -> tuple[int, ...]:
    coords = []
    for length in reversed(grid):
        number, coordinate = divmod(number, length)
        coords.append(coordinate)
    return tuple(reversed(coords))


def _spans_of(extent: Extent, span: Span) -> list[tuple[int, int]]:
    """Return the bytes of the file that are needed: parts that are near each other together."""
    if extent.is_made:
        return [(extent.offset, extent.stop)]
    if extent.parts == 1:
        return [_within(extent, span)]
    if extent.stride - extent.length <= ranges.GAP and extent.stop - extent.offset <= 2 * ranges.LARGEST:
        return [(extent.offset, extent.stop)]
    starts = (extent.offset + number * extent.stride for number in range(extent.parts))
    return [(start, start + extent.length) for start in starts]
