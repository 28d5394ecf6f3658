"""Sets of Kerchunk references: the file and the bytes in it for each key.

A set is written in one of two ways:

JSON
    Version 0 is one object, from keys to references. Version 1 has them in ``refs``; ``templates`` replace parts of
    their URLs, such as ``{{u}}``, and ``gen`` generates references. The file may be compressed with gzip or Zstandard.
Parquet
    A directory. ``.zmetadata`` has all documents, and ``record_size``. Each array has its references in the files
    ``<array>/refs.<number>.parq``, `record_size` chunks in each, in C order: columns ``path``, ``offset``, ``size`` and
    ``raw``. A file is read when one of its chunks is requested, and a bounded number of files is cached. A missing file
    means that none of its chunks is stored.

A reference is the value itself (text, ``base64:...`` or an object), or a list: ``[url]`` is a whole file, ``[url,
offset, length]`` a part of one.

Spec: Kerchunk, "References specification"; fsspec, ``ReferenceFileSystem``.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import itertools
import json
import math
import pickle
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from weakref import WeakValueDictionary

from omnizarr.errors import MissingDependencyError, Remedy, Setting, StoreError, StoreLimitError
from omnizarr.settings import config
from omnizarr.stores import threads, verbs
from omnizarr.stores.base import Buffer, Listing, Store, as_prefix, is_key
from omnizarr.stores.manifests import targets
from omnizarr.stores.manifests.manifest import NOT_STORED
from omnizarr.stores.manifests.places import ASK, WHOLE, Columns, Name
from omnizarr.stores.manifests.targets import Reference, Target
from omnizarr.support import extras
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from omnizarr.stores.remote import reference_templates as templates
else:
    templates = Lazy("omnizarr.stores.remote.reference_templates")
    np = Lazy("numpy")

MOST_METADATA: Final = 1 << 26
"""Bytes of a document that are read to find out whether it contains references."""
METADATA: Final = ".zmetadata"
"""The document of a set in Parquet that contains all others."""

_SPEC: Final = "Kerchunk, references specification"
_DOCUMENTS: Final = (".zgroup", ".zarray", ".zattrs", ".zmetadata", "zarr.json")
_VALUES: Final = 5
"""Number of JSON values for each reference: url, offset, length, and the list around them."""
_MOST_WALKED: Final = 1000  # files of an array in Parquet that are asked for without a listing
_MOST_BYTES: Final = 1 << 27  # files of a set in Parquet that are cached
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_is_variable = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}").sub


class References(targets.References, Protocol):
    """A set of Kerchunk references."""

    def sample(self) -> Target | None:
        """Return one of the targets; None if there is none."""


# -- JSON ------------------------------------------------------------------------------


class Table:
    """A set that is completely in memory.

    >>> table = Table({"a/0": ["/data/a.nc", 10, 4], ".zgroup": '{"zarr_format": 2}'})
    >>> table.find("a/0"), table.find("a/1"), table.below("")
    (Target(url='/data/a.nc', offset=10, length=4), None, Listing(keys=['.zgroup'], prefixes=['a/']))
    """

    def __init__(self, entries: Mapping[str, Any]) -> None:
        # VirtualiZarr gives the chunk of a scalar no name.
        nameless = [key for key in entries if key.endswith("/") and f"{key}.zarray" in entries]
        if nameless:
            entries = {**{f"{key}0": entries[key] for key in nameless}, **entries}
        self._entries = entries
        self._sorted: list[str] | None = None
        self._source: _Source | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # A set can be large, and a store can have many copies: each process reads it once from its source.
        return (_read_again, self._source) if self._source is not None else (Table, (dict(self._entries),))

    def find(self, key: str) -> Reference | None:
        """Return the value or target of `key`."""
        return reference_of(key, self._entries[key]) if key in self._entries else None

    def columns(self, keys: Sequence[str], numbers: NDArray[np.uint64]) -> Columns:
        """Return the references of chunks as columns. A reference that is not valid is left to `find`."""
        entries, names = self._entries, dict[Name, int]()
        places: list[tuple[int, int, int]] = []
        values: dict[int, bytes] = {}
        url, file = _NO_URL, 0  # of the chunk before
        for index, key in enumerate(keys):
            value = entries.get(key)
            if type(value) is list and len(value) == 3:  # most are so, and mostly of the same file
                name, offset, length = value
                if type(offset) is type(length) is int and 0 <= offset < _END and 0 <= length < _END:
                    if name is not url:
                        if not isinstance(name, str | None):
                            places.append(_ASKED)
                            continue
                        url, file = name, names.setdefault(Name(name, is_whole=False), len(names))
                    places.append((offset, length, file))
                    continue
            places.append(_place_of(key, value, int(numbers[index]), names, values))
        offsets, lengths, files = np.array(places, np.uint64).reshape(-1, 3).T
        return Columns(offsets, lengths.copy(), files.astype(np.uint32), list(names), values)

    @property
    def _keys(self) -> list[str]:
        if self._sorted is None:
            self._sorted = sorted(filter(is_key, self._entries))
        return self._sorted

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield all keys under a prefix."""
        start = bisect_left(self._keys, prefix)
        return itertools.takewhile(lambda key: key.startswith(prefix), itertools.islice(self._keys, start, None))

    def below(self, prefix: str) -> Listing:
        """Return what is directly under a prefix, without looking at what is deeper."""
        keys, position = self._keys, bisect_left(self._keys, prefix)
        found = Listing([], [])
        while position < len(keys) and keys[position].startswith(prefix):
            end = keys[position].find("/", len(prefix))
            if end < 0:
                found.keys.append(keys[position])
                position += 1
            else:
                below = keys[position][: end + 1]
                found.prefixes.append(below)
                # "0" follows "/"
                position = bisect_left(keys, below[:-1] + "0", position)
        return Listing(sorted(found.keys), sorted(found.prefixes))

    def sample(self) -> Target | None:
        """Return the first target."""
        found = (reference_of(key, value) for key, value in self._entries.items() if isinstance(value, list | tuple))
        return next((each for each in found if isinstance(each, Target)), None)


_NO_URL: Final = object()
_END: Final = 1 << 62
_ASKED: Final = (0, ASK, 0)


def _place_of(
    key: str, value: Any, number: int, names: dict[Name, int], values: dict[int, bytes]
) -> tuple[int, int, int]:
    """Return offset, length and number of the file of a reference; keep the bytes of one that is a value."""
    if value is None:
        return 0, NOT_STORED, 0
    try:
        found = reference_of(key, value)
    except StoreError:
        return _ASKED
    if isinstance(found, bytes):
        values[number] = found
        return 0, NOT_STORED, 0
    file = names.setdefault(Name(found.url, found.length is None), len(names))
    if found.length is None:
        return 0, WHOLE, file
    return (found.offset, found.length, file) if max(found.offset, found.length) < _END else _ASKED


class _Source(NamedTuple):
    """The source of a table."""

    store: Store
    key: str
    overrides: Mapping[str, str] | None


_REMEDY: Final = Remedy("if you trust them, raise {setting}", setting=Setting("references.max_bytes"))

_in_use: Final[WeakValueDictionary[bytes, Table]] = WeakValueDictionary()


def read(store: Store, key: str, overrides: Mapping[str, str] | None = None) -> Table | None:
    """Return the set in a file of a store; None if the file does not exist. Raises the errors of `parse`."""
    data = _value(store, key)
    if data is None:
        return None
    table = parse(data, overrides)
    table._source = _Source(store, key, overrides)  # noqa: SLF001 - of this module
    return table


def _value(store: Store, key: str) -> Buffer | None:
    try:
        return verbs.get_within(store, key, int(config.get("references.max_bytes")))
    except StoreLimitError as error:
        raise error.add(remedy=_REMEDY)


def _read_again(store: Store, key: str, overrides: Mapping[str, str] | None) -> Table:
    name = pickle.dumps((store, key, overrides, verbs.stamp(store, key)))
    table = _in_use.get(name) or read(store, key, overrides)
    if table is None:
        raise StoreError("the references are not there any more", store=repr(store), key=key)
    _in_use[name] = table
    return table


def reference_of(key: str, value: Any) -> Reference:
    """Return the target of a reference. Raises StoreError if it is not valid."""
    match value:
        case bytes():
            return value
        case str():
            return _inline(key, value)
        case Mapping():
            return json.dumps(value).encode()
        case [url] | [url, None, None] if isinstance(url, str | None):
            return Target(url)
        case [url, offset, length] if isinstance(url, str | None) and _is_size(offset) and _is_size(length):
            return Target(url, int(offset), int(length))
    if hasattr(value, "to_bytes") and not isinstance(value, int):  # a buffer of zarr-python
        return bytes(value.to_bytes())
    raise StoreError("no reference", key=key, found=value, expected="text, [url] or [url, offset, length]", spec=_SPEC)


def _inline(key: str, text: str) -> bytes:
    try:
        return base64.b64decode(text[7:], validate=True) if text.startswith("base64:") else text.encode()
    except (binascii.Error, ValueError) as error:
        raise StoreError(f"the value of a reference cannot be read: {error}", key=key, found=text) from error


def _is_size(value: Any) -> bool:
    if isinstance(value, float):
        return value >= 0 and value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def parse(data: Buffer, overrides: Mapping[str, str] | None = None) -> Table:
    """Return the set in the bytes of a file.

    `overrides` replace templates of the same name.

    Raises
    ------
    StoreError
        If the file contains something else.
    MissingDependencyError
        If its templates need a package that is not installed.
    """
    try:
        text = _unpacked(bytes(data))
        _check_size(len(text))
        _check_count((text.count(b",") + text.count(b"[") + text.count(b"{")) // _VALUES)
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"a file that is not JSON: {error}", expected="references of Kerchunk", spec=_SPEC) from error
    return of_document(document, overrides)


def of_document(document: Any, overrides: Mapping[str, str] | None = None) -> Table:
    """Return the set that a JSON document, or an equal Python object, describes. Raises the errors of `parse`."""
    if isinstance(document, Mapping) and "version" not in document and _is_version_0(document):
        return Table(document)
    version = document.get("version") if isinstance(document, Mapping) else None
    if version != 1 or isinstance(version, bool) or not isinstance(document.get("refs", {}), Mapping):
        is_node = isinstance(document, Mapping) and "zarr_format" in document
        raise StoreError(
            "a JSON file that holds no references",
            found=None if version is None else f"version {version!r}",
            expected="references of Kerchunk, version 0 or 1",
            remedy="this is the document of a node: open its directory" if is_node else None,
            spec=_SPEC,
        )
    own, rules = document.get("templates", {}), document.get("gen", [])
    if not isinstance(own, Mapping) or not isinstance(rules, list):
        raise StoreError("templates or rules of references are malformed", expected="an object, a list", spec=_SPEC)
    named = {**own, **(overrides or {})}
    entries: dict[str, Any] = dict(document.get("refs", {}))
    _check_count(len(entries))
    if named:
        renderer = _Renderer(named)
        for key, value in entries.items():
            if isinstance(value, list) and value and isinstance(value[0], str) and "{{" in value[0]:
                entries[key] = [renderer.render(value[0]), *value[1:]]
    left = int(config.get("references.max_generated"))
    for rule in rules:
        made = dict(_generated(rule, named, left))
        left -= max(1, len(made))
        entries.update(made)
    return Table(entries)


def _unpacked(data: bytes) -> bytes:
    if data.startswith(_GZIP):
        most = int(config.get("references.max_bytes"))
        with gzip.open(io.BytesIO(data)) as file:
            unpacked: bytes = file.read(most + 1)
        return unpacked
    if data.startswith(_ZSTD):
        zstd = import_module("omnizarr.codecs.zstd")
        _check_size(zstd.most_of(data))
        return bytes(zstd.zstd.decompress(data))
    return data


def _check_size(size: int) -> None:
    most = int(config.get("references.max_bytes"))
    if size > most:
        raise StoreLimitError(
            "references are larger than omnizarr reads",
            found=f"more than {most} bytes" if size == most + 1 else f"{size} bytes",
            expected=f"at most {most}",
            remedy=_REMEDY,
        )


def _check_count(number: int) -> None:
    most = int(config.get("references.max_count"))
    if number > most:
        raise StoreLimitError(
            "there are more references than omnizarr keeps",
            found=number,
            expected=f"at most {most}",
            remedy=Remedy("write them as Parquet") | Remedy("raise {setting}", setting=Setting("references.max_count")),
        )


def _is_version_0(document: Mapping[str, Any]) -> bool:
    """Whether the keys of an object are keys of a store."""
    return any(name.rpartition("/")[2] in _DOCUMENTS for name in document)


class _Renderer:
    """Fills in templates: plain names directly, everything else with jinja2."""

    def __init__(self, templates: Mapping[str, Any]) -> None:
        self._templates = templates
        self._compiled: dict[str, Callable[..., str]] = {}

    def render(self, text: str, variables: Mapping[str, Any] = MappingProxyType({})) -> str:
        """Return `text` with the values of templates and variables."""
        known = {**self._templates, **variables}

        def value_of(match: re.Match[str]) -> str:
            if match[1] not in known:
                raise StoreError(
                    "a reference uses a missing template",
                    found=match[0],
                    expected=f"one of {', '.join(map(repr, known))}" if known else None,
                    spec=_SPEC,
                )
            return str(known[match[1]])

        rendered = _is_variable(value_of, text)
        return rendered if "{{" not in rendered else self._render_by_jinja(text, variables)

    def _render_by_jinja(self, text: str, variables: Mapping[str, Any]) -> str:
        try:
            if text not in self._compiled:
                import_module("jinja2")
                self._compiled[text] = templates.compiled(text, self._templates)
            return self._compiled[text](**variables)
        except ImportError as error:
            raise MissingDependencyError(
                "templates of references with more than names in them need the package 'jinja2'",
                found=text,
                remedy="pip install jinja2",
            ) from error
        except Exception as error:  # templates are programs, and can raise any error
            raise StoreError(
                f"the template of a reference cannot be filled in: {error}", found=text[:200], spec=_SPEC
            ) from error


def _generated(rule: Any, given: Mapping[str, Any], most: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield the references that a rule generates, at most `most`."""
    renderer = _Renderer(given)
    try:
        ranges = {str(name): _range(each) for name, each in rule["dimensions"].items()}
        has_part = "offset" in rule or "length" in rule
        texts = [rule["key"], rule["url"], *((rule["offset"], rule["length"]) if has_part else ())]
        number = math.prod(map(len, ranges.values()))
    except OverflowError:
        number = most + 1
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(
            f"a rule that makes references is malformed: {error!r}",
            found=rule,
            expected="key, url, dimensions, and offset and length or neither",
            spec=_SPEC,
        ) from error
    if number > most:
        raise StoreLimitError(
            "rules make too many references",
            found=f"more than {most}",
            expected=f"at most {config.get('references.max_generated')}",
            remedy=Remedy("if you trust them, raise {setting}", setting=Setting("references.max_generated")),
        )
    for values in itertools.product(*ranges.values()):
        key, url, *part = (renderer.render(str(text), dict(zip(ranges, values, strict=True))) for text in texts)
        try:
            yield key, [url, *map(int, part)]
        except ValueError as error:
            raise StoreError(
                f"a rule makes no reference: {error}", found=part, expected="integers", spec=_SPEC
            ) from error


def _range(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list) else range(given.get("start", 0), given["stop"], given.get("step", 1))


# -- Parquet ---------------------------------------------------------------------------


def is_metadata(data: bytes) -> bool:
    """Return whether a ``.zmetadata`` belongs to a set in Parquet, and is not consolidated metadata of Zarr v2."""
    return b'"record_size"' in data


@dataclass(frozen=True, slots=True)
class _Array:
    """An array of a set in Parquet."""

    grid: tuple[int, ...]
    separator: str

    @property
    def nchunks(self) -> int:
        return math.prod(self.grid)

    def number_of(self, name: str) -> int | None:
        """Return the number of the chunk with this name; None if there is none."""
        if not self.grid:
            return 0 if name == "0" else None
        parts = name.split(self.separator)
        if len(parts) != len(self.grid):
            return None
        number = 0
        for part, length in zip(parts, self.grid, strict=True):
            if not part.isdecimal() or str(int(part[:20])) != part or int(part) >= length:
                return None
            number = number * length + int(part)
        return number

    def name_of(self, number: int) -> str:
        coords: list[str] = []
        for length in reversed(self.grid):
            number, index = divmod(number, length)
            coords.append(str(index))
        return self.separator.join(reversed(coords)) or "0"


@dataclass(frozen=True, slots=True)
class _Part:
    """The references of one file."""

    paths: _Words | None
    offsets: Any
    sizes: Any
    raws: Any
    """Columns: text or None; integers; integers; bytes or None. (n,) each; None for a missing column."""
    nbytes: int

    def __getitem__(self, index: int) -> Reference | None:
        raw = None if self.raws is None else self.raws[index]
        if isinstance(raw, bytes):
            return raw
        if isinstance(raw, str):
            return _inline("", raw)
        path = None if self.paths is None else self.paths[index]
        if path is None:
            return None
        offset, size = int(self.offsets[index]), int(self.sizes[index])
        return Target(path) if offset == size == 0 else Target(path, offset, size)

    def __len__(self) -> int:
        return next(len(column) for column in (self.paths, self.raws, ()) if column is not None)

    def columns(self, rows: NDArray[np.int64], numbers: NDArray[np.uint64]) -> Columns:
        """Return some rows. `numbers` are those of their chunks. Rows that are not valid are left to `find`."""
        values: dict[int, bytes] = {}
        length = np.full(len(rows), NOT_STORED, np.uint64)
        offset, file = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.uint32)
        names: list[Name] = []
        if self.paths is not None:
            codes = self.paths.codes[rows]
            used, places = np.unique(codes, return_inverse=True)
            starts, sizes = _integers(self.offsets, rows), _integers(self.sizes, rows)
            is_whole = (starts == 0) & (sizes == 0)
            # Two names for each file: of its parts, and of all of it.
            words = [None if code < 0 else self.paths.words[code] for code in used.tolist()]
            names = [Name(word, kind) for kind in (False, True) for word in words]
            offset = np.maximum(starts, 0).astype(np.uint64)
            length = np.where(is_whole, np.uint64(WHOLE), np.maximum(sizes, 0).astype(np.uint64))
            length[(starts < 0) | (sizes < 0)] = ASK
            length[codes < 0] = NOT_STORED
            file = (places + is_whole * len(used)).astype(np.uint32)
        if self.raws is not None:
            for index, row in enumerate(rows.tolist()):
                raw = self.raws[row]
                if isinstance(raw, str | bytes):
                    length[index] = NOT_STORED
                    try:
                        values[int(numbers[index])] = raw if isinstance(raw, bytes) else _inline("", raw)
                    except StoreError:
                        length[index] = ASK
        return Columns(offset, length, file, names, values)


class _Words:
    """A column of text in which the same few words repeat."""

    __slots__ = ("codes", "words")

    def __init__(self, words: Sequence[str], codes: NDArray[np.int64]) -> None:
        self.words = words
        self.codes = codes
        """Positions in `words`; -1 for none."""

    def __getitem__(self, index: int) -> str | None:
        code = self.codes[index]
        return None if code < 0 else self.words[code]

    def __len__(self) -> int:
        return len(self.codes)


def _integers(column: Any, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return rows of a column of integers; -1 for what is none, and for what is too large."""
    found = np.asarray(column[rows])
    if found.dtype.kind == "i":
        return found.astype(np.int64)
    found = found.astype(np.float64) if found.dtype.kind not in "uf" else found
    is_sound = (found >= 0) & (found < float(_END)) if found.dtype.kind == "f" else found < _END
    return np.where(is_sound, found, -1).astype(np.int64)


class Partitions:
    """A set in Parquet, whose files are read as needed.

    Parameters
    ----------
    store : Store
    prefix : str
        Path in the store where the set begins.
    data : buffer
        The bytes of its ``.zmetadata``.
    """

    def __init__(self, store: Store, prefix: str, data: Buffer) -> None:
        self._store = store
        self._prefix = as_prefix(prefix)
        try:
            document = json.loads(bytes(data))
            documents: Mapping[str, Any] = document["metadata"]
            self._record_size = int(document["record_size"])
            _check_range("record_size", self._record_size)
            self._arrays = {key[:-8]: _array(value) for key, value in documents.items() if key.endswith("/.zarray")}
        except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
            raise StoreError(
                f"the metadata of a set of references cannot be read: {error!r}",
                store=repr(store),
                key=self._prefix + METADATA,
                spec=_SPEC,
            ) from error
        unknown = [key for key in documents if key == ".zarray" or key.rpartition("/")[2] == "zarr.json"]
        if unknown:  # their chunks would seem to be missing
            raise StoreError(
                "references in Parquet are known of arrays of Zarr v2 below the root only",
                store=repr(store),
                found=unknown[0],
                remedy="write these references as JSON",
            )
        self._table = Table(documents)
        self._kept: dict[tuple[str, int], _Part | None] = {}

    @property
    def _guard(self) -> AbstractContextManager[object]:
        """The lock that excludes other threads. It is free in a forked child."""
        return threads.lock((id(self), "parts"))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}

    def find(self, key: str) -> Reference | None:
        """Return the value or target of `key`."""
        found = self._table.find(key)
        if found is not None:
            return found
        for path in self._above(key):
            array = self._arrays.get(path)
            if array is not None:
                number = array.number_of(key[len(path) + 1 :])
                return None if number is None else self._at(path, number)
        return None

    def columns(self, keys: Sequence[str], numbers: NDArray[np.uint64]) -> Columns:
        """Return the references of chunks as columns. Of an array, each file is read once, if it is needed."""
        first = keys[0] if keys else ""
        path = next((path for path in self._above(first) if path in self._arrays), None)
        if path is None or self._arrays[path].nchunks >= _END:
            return self._table.columns(keys, numbers)
        offsets, lengths = np.zeros(len(keys), np.uint64), np.full(len(keys), ASK, np.uint64)
        files = np.zeros(len(keys), np.uint32)
        names: list[Name] = []
        values: dict[int, bytes] = {}
        records, rows = np.divmod(numbers.astype(np.int64), self._record_size)
        for record in np.unique(records).tolist():
            at = np.flatnonzero(records == record)
            part = self._part(path, record)
            if part is None:
                lengths[at] = NOT_STORED
                continue
            at = at[rows[at] < len(part)]  # `find` says of the others what is wrong
            found = part.columns(rows[at], numbers[at])
            offsets[at], lengths[at], files[at] = found.offsets, found.lengths, found.files + np.uint32(len(names))
            names += found.names
            values.update(found.values)
        return Columns(offsets, lengths, files, names, values)

    @staticmethod
    def _above(key: str) -> Iterator[str]:
        return (key[:end] for end, character in enumerate(key) if character == "/")

    def _at(self, path: str, number: int) -> Reference | None:
        record, index = divmod(number, self._record_size)
        part = self._part(path, record)
        if part is None:
            return None
        if index >= len(part):
            raise StoreError(
                "a file of references has fewer rows than the metadata of the set states",
                store=repr(self._store),
                key=self._key_of(path, record),
                found=len(part),
                expected=self._record_size,
            )
        return part[index]

    def _key_of(self, path: str, record: int) -> str:
        return f"{self._prefix}{path}/refs.{record}.parq"

    def _part(self, path: str, record: int) -> _Part | None:
        """Return the references of one file; None if the file does not exist."""
        place = path, record
        with self._guard:
            if place in self._kept:
                self._kept[place] = part = self._kept.pop(place)
                return part
        key = self._key_of(path, record)
        data = _value(self._store, key)
        part = None if data is None else _read_parquet(bytes(data), repr(self._store), key)
        with self._guard:
            self._kept[place] = part
            while len(self._kept) > 1 and sum(each.nbytes for each in self._kept.values() if each) > _MOST_BYTES:
                del self._kept[next(iter(self._kept))]
        return part

    def keys(self, prefix: str) -> Iterator[str]:
        """Yield all keys under a prefix. This reads the files of the arrays there, one after the other."""
        yield from self._table.keys(prefix)
        for path, array in self._arrays.items():
            place = f"{path}/"
            if place.startswith(prefix) or prefix.startswith(place):
                yield from (key for key in self._chunks(path, array) if key.startswith(prefix))

    def _chunks(self, path: str, array: _Array) -> Iterator[str]:
        for first in self._records(path, array):
            part = self._part(path, first // self._record_size)
            for index in range(min(len(part or ()), array.nchunks - first)):
                if part is not None and part[index] is not None:
                    yield f"{path}/{array.name_of(first + index)}"

    def _records(self, path: str, array: _Array) -> Iterable[int]:
        """Return the first chunk of each file of an array; if there are very many, of the files that are there."""
        firsts = range(0, array.nchunks, self._record_size)
        if (array.nchunks - 1) // self._record_size < _MOST_WALKED:
            return firsts
        names = self._store.list_dir(f"{self._prefix}{path}/").keys
        numbers = (_number_in(name.rpartition("/")[2]) for name in names)
        found = sorted(number for number in numbers if number is not None)
        return [number * self._record_size for number in found if number * self._record_size < array.nchunks]

    def below(self, prefix: str) -> Listing:
        """Return what is directly under a prefix. For an array, this reads all its references."""
        found = self._table.below(prefix)
        if not any(prefix.startswith(f"{path}/") for path in self._arrays):
            return found
        keys, prefixes = set(found.keys), set(found.prefixes)
        for key in self.keys(prefix):
            end = key.find("/", len(prefix))
            if end < 0:
                keys.add(key)
            else:
                prefixes.add(key[: end + 1])
        return Listing(sorted(keys), sorted(prefixes))

    def sample(self) -> Target | None:
        """Return the first target of the first file that has one."""
        for path in self._arrays:
            part = self._part(path, 0)
            for index in range(len(part or ())):
                if part is not None and isinstance(found := part[index], Target):
                    return found
        return None


def _check_range(what: str, number: Any) -> None:
    if type(number) is not int or not 0 < number < 1 << 63:
        raise ValueError(f"{what}: {number!r}")


def _number_in(name: str) -> int | None:
    match = re.fullmatch(r"refs\.([0-9]{1,18})\.parq", name)
    return None if match is None else int(match[1])


def _array(document: Mapping[str, Any]) -> _Array:
    shape, chunks = document["shape"], document["chunks"]
    for each in shape:
        _check_range("shape", each + 1)
    for each in chunks:
        _check_range("chunks", each)
    grid = tuple(-(-length // size) for length, size in zip(shape, chunks, strict=True))
    separator = document.get("dimension_separator") or "."
    if separator not in {".", "/"}:
        raise ValueError(f"dimension_separator: {separator!r}")
    return _Array(grid, separator)


def _read_parquet(data: bytes, store: str, key: str) -> _Part:
    try:
        columns = _columns(data)
    except ImportError as error:
        raise MissingDependencyError(
            "references in Parquet need the package 'pyarrow' or 'fastparquet'",
            store=store,
            key=key,
            remedy=extras.remedy("parquet"),
        ) from error
    except StoreLimitError as error:
        raise error.add(store=store, key=key)
    except Exception as error:  # both can raise any error
        raise StoreError(f"no file of references in Parquet: {error}", store=store, key=key, spec=_SPEC) from error
    paths, raws = columns.get("path"), columns.get("raw")
    if raws is not None and not any(isinstance(raw, str | bytes) for raw in raws):  # None, NaN, or the NA of pandas
        raws = None
    kept = sum(len(raw) for raw in raws if isinstance(raw, str | bytes)) if raws is not None else 0
    length = next(map(len, columns.values()), 0)
    return _Part(paths, columns.get("offset"), columns.get("size"), raws, 64 * length + kept)


def _columns(data: bytes) -> dict[str, Any]:
    """Return the columns of a file as arrays of NumPy."""
    file = io.BytesIO(data)
    names = ["path", "offset", "size", "raw"]
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError:
        read = import_module("fastparquet").ParquetFile(file)
        _check_count(read.count())
        frame = read.to_pandas(columns=[name for name in names if name in read.columns])
        found = {name: frame[name].to_numpy(object if name in {"path", "raw"} else None) for name in frame.columns}
    else:
        # As dictionaries, values that repeat are in memory once.
        known = set(parquet.read_schema(file).names)
        read = parquet.ParquetFile(file, read_dictionary=[name for name in ("path", "raw") if name in known])
        _check_count(read.metadata.num_rows)
        groups = [read.metadata.row_group(number) for number in range(read.metadata.num_row_groups)]
        _check_size(sum(group.total_byte_size for group in groups))
        table = read.read(columns=[name for name in names if name in read.schema_arrow.names], use_threads=False)
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        found = {name: (_words_of if name == "path" else _values_of)(each) for name, each in columns.items()}
    if "path" in found and not isinstance(found["path"], _Words):
        found["path"] = _words_of(found["path"])
    return found


def _words_of(column: Any) -> _Words:
    """Return a column of text or nothing."""
    if hasattr(column, "dictionary"):
        words = column.dictionary.to_pylist()
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        if len(set(words)) == len(words) and all(isinstance(word, str) for word in words):
            return _Words(words, codes)
        column = _values_of(column)
    known: dict[str, int] = {}
    given = [known.setdefault(word, len(known)) if isinstance(word, str) else -1 for word in column]
    return _Words(list(known), np.array(given, np.int64))


def _values_of(column: Any) -> Any:
    """Return a column as an array of NumPy; values that repeat are one object."""
    if not hasattr(column, "dictionary"):
        return column.to_numpy(zero_copy_only=False)
    values = np.array([*column.dictionary.to_pylist(), None], object)
    return values[column.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)]
