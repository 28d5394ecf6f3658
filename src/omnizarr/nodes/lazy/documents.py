"""Lazy arrays as a document of JSON, which names their sources and holds no elements of theirs.

The document has the rows of each tree (`omnizarr.nodes.lazy.tree.flattened`), the places of the sources, and what has
to be known of them so that none is opened until its elements are needed.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

import numpy as np

from omnizarr.errors import JoinError, MetadataError, OmnizarrError
from omnizarr.indexing.transforms import Along, Listed, Transform
from omnizarr.nodes.array import Array
from omnizarr.nodes.lazy import sources, tree
from omnizarr.nodes.lazy.deferred import Deferred, Sources
from omnizarr.nodes.lazy.sources import Mark
from omnizarr.nodes.lazy.store import LazyStore
from omnizarr.nodes.lazy.tree import Cast, Converted, Filled, Joined, Leaf, Node, Pack, Reshaped, Selected, Unpack
from omnizarr.nodes.lazy.view import LazyArray
from omnizarr.nodes.packing import Marks, Packing

VERSION: Final = 1
_KEY: Final = "omnizarr_view"
_STEPS: Final = {"cast": Cast, "unpack": Unpack, "pack": Pack}
_MOST_BYTES: Final = 64 * 2**20
"""Bytes of elements that a document holds itself."""
_MOST_NODES: Final = 10**7
"""Parts of all joins of an array, which a short document could repeat."""


# -- writing --------------------------------------------------------------------------------


class _Writing:
    """The tables of a document."""

    def __init__(self, place_of: Callable[[str], str]) -> None:
        self._place_of = place_of
        self.sources: dict[str, int] = {}
        self.marks: list[Mark | None] = []
        """Of the sources, in the same order."""
        self.kinds: dict[str, int] = {}

    def row(self, row: tuple[Any, ...]) -> list[Any]:
        kind, *values = row
        if kind == "select":
            shape, outputs = values
            return [kind, list(shape), [_of_output(output) for output in outputs]]
        if kind == "reshape":
            return [kind, list(values[0])]
        if kind == "again":
            return [kind, *values]
        if kind == "convert":
            (step,) = values
            name = next(name for name, each in _STEPS.items() if isinstance(step, each))
            return [kind, name, {each.name: _plain(getattr(step, each.name)) for each in fields(step)}]
        if kind == "join":
            below, axis, dtype = values
            return [kind, _ranges(below), axis, _of_dtype(dtype)]
        if kind == "fill":
            shape, dtype, value = values
            return [kind, list(shape), _of_dtype(dtype), _plain(np.asarray(value, dtype)[()])]
        return self._leaf(*values)

    def _leaf(self, source: Any, shape: tuple[int, ...], dtype: np.dtype[Any], *_: Any) -> list[Any]:
        if isinstance(source, Array):
            place, path, digest = source.store.place, source.path.strip("/"), sources.digest_of(source)
        elif isinstance(source, Deferred):
            place, path, digest = source.place, source.path, source.digest
        elif isinstance(source, np.ndarray):
            if source.nbytes > _MOST_BYTES:
                raise JoinError(
                    "a view holds elements that are in no store, and too many to save",
                    found=f"{source.nbytes} bytes",
                    expected=f"at most {_MOST_BYTES}",
                    remedy="save the array, and join it from there",
                )
            return ["values", list(shape), _of_dtype(dtype), _packed(source)]
        else:
            raise JoinError(
                "a source cannot be saved by its place", found=repr(source), expected="arrays in stores, or of NumPy"
            )
        if not place:
            raise JoinError(
                "a source is in memory, where other programs cannot find it",
                found=str(source),
                expected="arrays in files or on servers",
                remedy="save it first",
            )
        known = {
            "path": path,
            "dtype": _of_dtype(dtype),
            "chunks": None if source.chunks is None else list(source.chunks),
            "dimension_names": None if source.dimension_names is None else list(source.dimension_names),
            "attributes": dict(source.attrs),
            "digest": digest,
        }
        named = self._place_of(place)
        number = self.sources.setdefault(named, len(self.sources))
        if number == len(self.marks):
            self.marks.append(sources.mark_of(source.store) if isinstance(source, Array) else source.mark)
        kind = self.kinds.setdefault(json.dumps(known, sort_keys=True), len(self.kinds))
        return ["source", number, kind, list(shape)]


def dumped(store: LazyStore, place_of: Callable[[str], str]) -> bytes:
    """Return the document of the arrays of a store.

    Parameters
    ----------
    store : LazyStore
    place_of : callable
        Returns the place of a source as the document should have it: relative, if possible.

    Raises
    ------
    JoinError
        If a source has no place, as those in memory.
    """
    writing = _Writing(place_of)
    arrays = {
        path: [writing.row(row) for row in tree.flattened(view._node)]  # noqa: SLF001 - of this room
        for path, view in store.views.items()
    }
    document = {
        _KEY: VERSION,
        "notes": list(store.notes),
        "documents": {key: json.loads(bytes(value)) for key, value in store.documents.items()},
        "sources": list(writing.sources),
        **({"marks": [mark and list(mark) for mark in writing.marks]} if any(writing.marks) else {}),
        "kinds": [json.loads(kind) for kind in writing.kinds],
        "arrays": arrays,
    }
    return json.dumps(document, separators=(",", ":")).encode()


# -- reading --------------------------------------------------------------------------------


def loaded(text: bytes, place: str, place_of: Callable[[str], str], opener: Sources) -> LazyStore:
    """Return the store for a document.

    Parameters
    ----------
    text : bytes
    place : str
        Where the document is, for errors.
    place_of : callable
        Returns the place of a source. It raises an error if a stranger's document may not lead there.
    opener : Sources
        What opens them.

    Raises
    ------
    MetadataError
        If the document is broken, or newer than this program.
    """
    try:
        document = json.loads(text)
        version = document[_KEY]
        if version != VERSION:
            raise MetadataError(
                "a view of another version", store=place, found=version, expected=VERSION, remedy="update omnizarr"
            )
        places = [place_of(each) for each in document["sources"]]
        marks = [None if each is None else _mark(*each) for each in document.get("marks", [None] * len(places))]
        kinds: list[dict[str, Any]] = [
            {
                "path": str(each["path"]),
                "dtype": _dtype(each["dtype"]),
                "chunks": None if each["chunks"] is None else tuple(each["chunks"]),
                "dimension_names": None if each["dimension_names"] is None else tuple(each["dimension_names"]),
                "attrs": dict(each["attributes"]),
                "digest": str(each["digest"]),
            }
            for each in document["kinds"]
        ]

        def leaf(number: int, kind: int, shape: Sequence[int]) -> Leaf:
            known, place = kinds[_number(kind)], places[_number(number)]
            source = Deferred(opener, place, shape=_shape(shape), mark=marks[number], **known)
            return Leaf(source, source.shape, source.dtype)

        views = {str(path): LazyArray(_node(rows, leaf)) for path, rows in document["arrays"].items()}
        documents = {str(key): json.dumps(value).encode() for key, value in document["documents"].items()}
        return LazyStore.of_documents(views, documents, [str(each) for each in document["notes"]])
    except OmnizarrError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, zlib.error) as error:
        raise MetadataError(
            "the document of a view is broken", store=place, found=f"{type(error).__name__}: {error}"
        ) from error


def _node(rows: Sequence[Any], leaf: Callable[..., Leaf]) -> Node:
    nodes: list[Node] = []
    parts = 0
    for kind, *values in rows:
        if kind == "source":
            nodes.append(leaf(*values))
        elif kind == "values":
            shape, dtype, packed = values
            array = _unpacked(packed, _shape(shape), _dtype(dtype))
            nodes.append(Leaf(array, array.shape, array.dtype))
        elif kind == "fill":
            shape, dtype, value = values
            nodes.append(Filled(_shape(shape), _dtype(dtype), _value(value)))
        elif kind == "convert":
            name, given = values
            nodes.append(Converted(nodes[-1], _STEPS[name](**{key: _value(each) for key, each in given.items()})))
        elif kind == "select":
            shape, outputs = values
            nodes.append(Selected(nodes[-1], _transform(_shape(shape), outputs, nodes[-1].shape)))
        elif kind == "reshape":
            nodes.append(_reshaped(nodes[-1], _shape(*values)))
        elif kind == "again":
            (number,) = values
            nodes.append(nodes[_number(number)])
        elif kind == "join":
            below, axis, dtype = values
            numbers = _numbers(below, len(nodes), _MOST_NODES - parts)
            parts += len(numbers)
            nodes.append(_join([nodes[number] for number in numbers], _number(axis), _dtype(dtype)))
        else:
            raise ValueError(f"unknown row {kind!r}")
    return nodes[-1]


def _join(parts: Sequence[Node], axis: int, dtype: np.dtype[Any]) -> Joined:
    for part in parts:
        if len(part.shape) != len(parts[0].shape) or any(
            a != b for dim, (a, b) in enumerate(zip(part.shape, parts[0].shape, strict=True)) if dim != axis
        ):
            raise ValueError(f"joined shapes {parts[0].shape} and {part.shape}")
    found = tree.joined(parts, axis, dtype, is_flat=True)
    if math.prod(found.shape) >= 2**63:
        raise ValueError(f"shape {found.shape}")
    return found


def _reshaped(node: Node, shape: tuple[int, ...]) -> Reshaped:
    if math.prod(node.shape) != math.prod(shape):
        raise ValueError(f"shape {shape} of the elements of {node.shape}")
    return Reshaped(node, shape)


def _transform(shape: tuple[int, ...], outputs: Sequence[Any], base: tuple[int, ...]) -> Transform:
    found: list[Any] = []
    for (kind, *values), length in zip(outputs, base, strict=True):
        if kind == "at":
            indices: Any = (_number(values[0]),)
            found.append(indices[0])
        elif kind == "along":
            dim, start, stop, step = map(int, values)
            indices = range(start, stop, step)
            if len(indices) != shape[_number(dim)]:
                raise ValueError(f"{len(indices)} positions for a dimension of {shape[dim]}")
            found.append(Along(dim, indices))
            indices = (indices[0], indices[-1]) if indices else ()
        else:
            dims, lengths, packed = values
            indices = _unpacked(packed, _shape(lengths), np.dtype(np.int64))
            if any(a not in (1, shape[_number(dim)]) for dim, a in zip(dims, indices.shape, strict=True)):
                raise ValueError(f"positions of shape {indices.shape} for {shape}")
            found.append(Listed(tuple(map(_number, dims)), indices.astype(np.intp)))
            indices = (indices.min(), indices.max()) if indices.size else ()
        if any(not 0 <= each < length for each in indices):
            raise ValueError(f"positions {indices} in a dimension of {length}")
    return Transform(shape, found)


# -- values ---------------------------------------------------------------------------------


def _of_output(output: Any) -> list[Any]:
    if isinstance(output, Along):
        return ["along", output.dim, output.indices.start, output.indices.stop, output.indices.step]
    if isinstance(output, Listed):
        return ["listed", list(output.dims), list(output.indices.shape), _packed(np.asarray(output.indices, np.int64))]
    return ["at", int(output)]


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Return numbers as first, step and length of ranges: the parts of most joins are regular rows."""
    found: list[list[int]] = []
    for number in numbers:
        last = found[-1] if found else None
        if last is not None and last[2] == 1 and number != last[0]:
            last[1:] = [number - last[0], 2]
        elif last is not None and last[2] > 1 and number == last[0] + last[1] * last[2]:
            last[2] += 1
        else:
            found.append([number, 1, 1])
    return found


def _numbers(ranges: Sequence[Sequence[int]], below: int, most: int) -> list[int]:
    found: list[int] = []
    for first, step, count in ranges:
        if not 0 <= count <= below or len(found) + count > most:
            raise ValueError(f"{len(found) + count} parts")
        found += range(first, first + step * count, step)
    if any(not 0 <= each < below for each in found):
        raise ValueError("parts that do not exist")
    return found


def _of_dtype(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "T":
        return "text"
    if dtype.names is not None:
        return {"descr": json.loads(json.dumps(dtype.descr))}
    if np.dtype(dtype.str) != dtype:
        raise JoinError("arrays of this data type cannot be saved in a view", found=str(dtype))
    return dtype.str


def _dtype(given: Any) -> np.dtype[Any]:
    if given == "text":
        return np.dtype(np.dtypes.StringDType())
    if isinstance(given, Mapping):
        return np.dtype([tuple(tuple(x) if isinstance(x, list) else x for x in each) for each in given["descr"]])
    return np.dtype(str(given))


def _plain(value: Any) -> Any:
    """Return a field of a step as JSON."""
    if isinstance(value, np.dtype):
        return {"dtype": _of_dtype(value)}
    if isinstance(value, Packing):
        return {"packing": {each.name: _plain(getattr(value, each.name)) for each in fields(value)}}
    if isinstance(value, Marks):
        return {"marks": [_plain(each) for each in value]}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind not in "OT":
        return {"scalar": _of_dtype(value.dtype), "bytes": base64.b64encode(value.tobytes()).decode()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _value(given: Any) -> Any:
    if isinstance(given, list):
        return tuple(_value(each) for each in given)
    if not isinstance(given, dict):
        return given
    if "dtype" in given:
        return _dtype(given["dtype"])
    if "packing" in given:
        return Packing(**{name: _value(each) for name, each in given["packing"].items()})
    if "marks" in given:
        return Marks(*map(_value, given["marks"]))
    if "float" in given:
        return float(given["float"])
    return np.frombuffer(base64.b64decode(given["bytes"], validate=True), _dtype(given["scalar"]))[0]


def _packed(values: np.ndarray[Any, Any]) -> Any:
    """Return elements as JSON."""
    if values.dtype.kind in "OT":
        return values.tolist()
    return base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes(), 1)).decode()


def _unpacked(packed: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind in "OT":
        return np.array(packed, dtype).reshape(shape)
    size = math.prod(shape) * dtype.itemsize
    if size > _MOST_BYTES:
        raise ValueError(f"{size} bytes of elements")
    stream = zlib.decompressobj()
    data = stream.decompress(base64.b64decode(packed, validate=True), size + 1)
    if len(data) != size:
        raise ValueError(f"{len(data)} bytes of elements, expected {size}")
    return np.frombuffer(data, dtype).reshape(shape)


def _shape(given: Sequence[int]) -> tuple[int, ...]:
    found = tuple(map(_number, given))
    if math.prod(found) >= 2**63:
        raise ValueError(f"shape {found}")
    return found


def _mark(size: Any, modified: Any, contents: Any, number: Any = None, folder: Any = "") -> Mark:
    """Return a mark; views of older versions have no numbers in it."""
    if not isinstance(contents, str) or not isinstance(folder, str):
        raise TypeError(f"{contents!r} is no digest, or {folder!r} no folder")
    size, modified, number = (None if each is None else _number(each) for each in (size, modified, number))
    if max(size or 0, modified or 0) >= 2**63:
        raise ValueError(f"{size} bytes, changed at {modified}")
    return Mark(size, modified, contents, number, folder)


def _number(given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or given < 0:
        raise ValueError(f"{given!r} is no number of something")
    return given
