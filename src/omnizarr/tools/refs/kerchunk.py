"""The forms of Kerchunk's references: JSON, which may be compressed, and Parquet.

`omnizarr.stores.remote.reference_sets` describes both, and reads them. They are written in blocks, so that no object of
Python is kept for each chunk.

Spec: Kerchunk, "References specification"; fsspec, ``LazyReferenceMapper``.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from omnizarr.errors import MissingDependencyError, NotRepresentableError, Remedy
from omnizarr.nodes.placement import Integers, Placement, keys_of
from omnizarr.stores.base import Buffer
from omnizarr.stores.remote.reference_sets import METADATA
from omnizarr.support import extras
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.codecs import zstd
    from omnizarr.tools.refs.destinations import Folder
    from omnizarr.tools.refs.gathering import Gathered, Laid
else:
    zstd = Lazy("omnizarr.codecs.zstd")

Rename = Callable[[Sequence[str]], Sequence[str]]
"""Returns paths and URLs as references have them."""

_LEVEL: Final = 3
_NUMBERS: Final = ("offset", "size")
_ARRAY: Final = ".zarray"


def documents_of(found: Gathered) -> Mapping[str, bytes]:
    """Return the documents as Kerchunk writes them: the compressor of an array is the last of its filters.

    Each reader decodes the same bytes. VirtualiZarr takes no other form.
    """
    return {key: _with_filters(value) if key.endswith(_ARRAY) else value for key, value in found.documents.items()}


def _with_filters(value: bytes) -> bytes:
    document = json.loads(value)
    if document["compressor"] is None:
        return value
    document["filters"] = [*(document["filters"] or ()), document["compressor"]]
    document["compressor"] = None
    return json.dumps(document).encode()


# -- JSON -------------------------------------------------------------------------------------


def write_json(
    file: BinaryIO, found: Gathered, placed: Mapping[str, Placement], rename: Rename, compression: str
) -> None:
    """Write references as JSON, of version 1. `compression` is "", "gz" or "zst"."""
    pieces = (piece.encode() for piece in _json(found, placed, rename))
    if compression == "gz":
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
            packed.writelines(pieces)
    elif compression == "zst":  # as one frame: readers of streams take no second one
        file.write(zstd.zstd.compress(b"".join(pieces), _LEVEL, False))  # noqa: FBT003 - as in numcodecs
    else:
        file.writelines(pieces)


def _json(found: Gathered, placed: Mapping[str, Placement], rename: Rename) -> Iterator[str]:
    separator = '{"version": 1, "refs": {\n'
    for key, value in documents_of(found).items():
        yield f"{separator}{json.dumps(key)}: {json.dumps(value.decode())}"
        separator = ",\n"
    for laid in found.arrays:
        for lines in _lines(laid, placed[laid.path], rename):
            yield separator + ",\n".join(lines)
            separator = ",\n"
    yield "\n}}\n"


def _lines(laid: Laid, found: Placement, rename: Rename) -> Iterator[list[str]]:
    base = json.dumps(laid.prefix)[1:-1]
    for block in found.blocks():
        keys = keys_of(base, laid.encoding, found.grid_shape, found.numbers[block])
        numbers, at = np.unique(found.files[block], return_inverse=True)
        names = [json.dumps(name) for name in rename(found.names.at(numbers))]
        columns = (at.tolist(), found.offsets[block].tolist(), found.lengths[block].tolist())
        yield [
            f'"{key}": [{names[file]}, {offset}, {length}]'
            for key, file, offset, length in zip(keys, *columns, strict=True)
        ]
    if found.values:
        inlined = np.array(list(found.values), np.int64)
        keys = keys_of(base, laid.encoding, found.grid_shape, inlined)
        yield [f'"{key}": "{_text(value)}"' for key, value in zip(keys, found.values.values(), strict=True)]


def _text(value: Buffer) -> str:
    return f"base64:{base64.b64encode(value).decode()}"


# -- Parquet ----------------------------------------------------------------------------------


def write_parquet(
    folder: Folder, found: Gathered, placed: Mapping[str, Placement], rename: Rename, record_size: int
) -> None:
    """Write references as Parquet, `record_size` in each file.

    Raises
    ------
    NotRepresentableError
        If the topmost node is an array, which the form cannot express.
    MissingDependencyError
        If neither pyarrow nor fastparquet is installed.
    """
    put = _writer()
    for laid in found.arrays:
        if not laid.path:
            raise NotRepresentableError(
                "references in Parquet are for arrays in a group only",
                found="an array as the topmost node",
                remedy=Remedy("write JSON, or refer to the group that it is in"),
            )
        _write_array(folder, laid, placed[laid.path], rename, record_size, put)
    documents = {key: json.loads(value) for key, value in documents_of(found).items()}
    text = json.dumps({"metadata": documents, "record_size": record_size})
    Path(folder.file(METADATA)).write_text(text, encoding="utf-8")
    folder.done(METADATA)


def _write_array(
    folder: Folder, laid: Laid, found: Placement, rename: Rename, size: int, put: Callable[[str, dict[str, Any]], None]
) -> None:
    total = math.prod(found.grid_shape)
    inlined = np.array(sorted(found.values), np.int64)
    records = np.union1d(found.numbers // size, inlined // size)
    for record in records.tolist():
        first, stop = record * size, min((record + 1) * size, total)
        rows = slice(*np.searchsorted(found.numbers, [first, stop]).tolist())
        at = found.numbers[rows] - first
        columns: dict[str, Any] = {
            "path": np.full(stop - first, None, object),
            "offset": np.zeros(stop - first, np.int64),
            "size": np.zeros(stop - first, np.int64),
            "raw": np.full(stop - first, None, object),
        }
        columns["path"][at] = _names(found, found.files[rows], rename)
        columns["offset"][at], columns["size"][at] = found.offsets[rows], found.lengths[rows]
        for number in inlined[slice(*np.searchsorted(inlined, [first, stop]).tolist())].tolist():
            columns["raw"][number - first] = bytes(found.values[number])
        name = f"{laid.path}/refs.{record}.parq"
        put(folder.file(name), columns)
        folder.done(name)


def _names(found: Placement, files: Integers, rename: Rename) -> Any:
    numbers, at = np.unique(files, return_inverse=True)
    names = np.empty(len(numbers), object)
    names[:] = rename(found.names.at(numbers))
    return names[at]


def _writer() -> Callable[[str, dict[str, Any]], None]:
    """Return a function that writes columns to a file, by the package that also reads them."""
    try:
        parquet, arrow = import_module("pyarrow.parquet"), import_module("pyarrow")
    except ImportError:
        return _fastparquet()

    def put(path: str, columns: dict[str, Any]) -> None:
        kinds = {"path": arrow.string(), "offset": arrow.int64(), "size": arrow.int64(), "raw": arrow.binary()}
        fields = [arrow.field(name, kind, nullable=name not in _NUMBERS) for name, kind in kinds.items()]
        arrays = [arrow.array(columns[name], kind, from_pandas=False) for name, kind in kinds.items()]
        table = arrow.Table.from_arrays(arrays, schema=arrow.schema(fields))
        # Without statistics, fastparquet reads integers as floating-point numbers, with which fsspec fails.
        parquet.write_table(table, path, compression="zstd", use_dictionary=["path"], write_statistics=[*_NUMBERS])

    return put


def _fastparquet() -> Callable[[str, dict[str, Any]], None]:
    try:
        fastparquet, pandas = import_module("fastparquet"), import_module("pandas")
    except ImportError as error:
        raise MissingDependencyError(
            "references in Parquet need the package 'pyarrow' or 'fastparquet'",
            remedy=extras.remedy("parquet"),
        ) from error

    def put(path: str, columns: dict[str, Any]) -> None:
        encodings = {"raw": "bytes", "path": "utf8"}
        fastparquet.write(
            path,
            pandas.DataFrame(columns),
            compression="ZSTD",
            object_encoding=encodings,
            has_nulls=["path", "raw"],
            stats=False,
            write_index=False,
        )

    return put
