"""Read what an implementation wrote, with NumPy and the standard library alone.

Only the codecs that the cases of writing ask for are here. Anything else is an error, which says what was found.
"""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zarr_conformance.case import Array, Json, Written, raw_of
from zarr_conformance.encoder import MISSING, edges, key_of, named
from zarr_conformance.squeeze import crc32c


class DecodingError(Exception):
    """What was written is not what the format says, or what was asked for."""


def check(directory: Path, expects: Written) -> str | None:
    """Return what is wrong with a written array, or nothing."""
    try:
        document, values = read(directory)
    except (DecodingError, ValueError, KeyError, TypeError, IndexError, OSError, struct.error, zlib.error) as error:
        return f"{type(error).__name__}: {error}"
    request = expects.request
    for name in ("zarr_format", "shape", "chunks", "order", "chunk_grid", "data_type", "dtype", "dimension_names"):
        if name in request and document.get(name) != request[name]:
            return f"{name} is {json.dumps(document.get(name))}, asked for {json.dumps(request[name])}"
    found_attributes = document.get("attributes") or {}
    for name, value in request.get("attributes", {}).items():  # a writer may add some of its own
        if found_attributes.get(name) != value:
            return f"the attribute {name} is {json.dumps(found_attributes.get(name))}"
    found = raw_of(values)
    if found != expects.raw:
        wrong = sum(a != b for a, b in zip(found, expects.raw, strict=False))
        return f"{len(found)} bytes of values, {wrong} of which differ; expected {len(expects.raw)} bytes"
    return None


def read(directory: Path) -> tuple[Json, Array]:
    """Return the document and all elements of an array in a directory."""
    if (directory / "zarr.json").is_file():
        document = json.loads((directory / "zarr.json").read_bytes())
        return document, read_v3(directory, document)
    document = json.loads((directory / ".zarray").read_bytes())
    return document, read_v2(directory, document)


def read_v3(directory: Path, document: Json) -> Array:
    name = document["data_type"] if isinstance(document["data_type"], str) else document["data_type"]["name"]
    dtype = np.dtype(name)
    fill = fill_of(document["fill_value"], dtype)
    values = np.full(document["shape"], fill, dtype)
    encoding = document["chunk_key_encoding"]
    separator = encoding.get("configuration", {}).get("separator")
    lengths = edges(document["chunk_grid"], document["shape"])
    for coords in np.ndindex(*map(len, lengths)):
        path = directory / key_of(coords, encoding["name"], separator)
        if path.is_file():
            shape = tuple(each[c] for each, c in zip(lengths, coords, strict=True))
            place(values, coords, decode(path.read_bytes(), document["codecs"], shape, dtype, fill))
    return values


def place(values: Array, coords: Sequence[int], block: Array) -> None:
    """Put a chunk where it belongs, without what lies beyond the edge."""
    where = tuple(
        slice(c * n, min(c * n + n, total)) for c, n, total in zip(coords, block.shape, values.shape, strict=True)
    )
    target = values[where]
    values[where] = block[tuple(slice(0, n) for n in target.shape)]


def decode(value: bytes, codecs: Sequence[Json], shape: tuple[int, ...], dtype: np.dtype[Any], fill: Any) -> Array:
    """Undo the codecs of a chunk of Zarr v3."""
    orders: list[list[int]] = []
    after: list[tuple[str, Json]] = []
    serializer: tuple[str, Json] | None = None
    inner_shape = shape
    for codec in codecs:
        name, configuration = (
            (codec, {}) if isinstance(codec, str) else (codec["name"], codec.get("configuration") or {})
        )
        if name == "transpose":
            orders.append(configuration["order"])
            inner_shape = tuple(inner_shape[axis] for axis in configuration["order"])
        elif name in {"bytes", "sharding_indexed"}:
            serializer = name, configuration
        else:
            after.append((name, configuration))
    for name, _ in reversed(after):
        if name == "gzip":
            value = gzip.decompress(value)
        elif name == "crc32c":
            if struct.unpack("<I", value[-4:])[0] != crc32c(value[:-4]):
                raise DecodingError("the crc32c is wrong")
            value = value[:-4]
        else:
            raise DecodingError(f"the codec {name} was not asked for")
    if serializer is None:
        raise DecodingError("no array to bytes codec")
    if serializer[0] == "sharding_indexed":
        block = unshard(value, serializer[1], inner_shape, dtype, fill)
    else:
        order: Any = ">" if serializer[1].get("endian") == "big" else "<"
        block = np.frombuffer(value, dtype.newbyteorder(order)).reshape(inner_shape).astype(dtype)
    for axes in reversed(orders):
        block = block.transpose(np.argsort(axes))
    return block


def unshard(shard: bytes, configuration: Json, shape: tuple[int, ...], dtype: np.dtype[Any], fill: Any) -> Array:
    inner = configuration["chunk_shape"]
    counts = [len(each) for each in edges(named("regular", chunk_shape=inner), shape)]
    codecs = configuration["index_codecs"]
    size = int(np.prod(counts)) * 16 + 4 * sum((c if isinstance(c, str) else c["name"]) == "crc32c" for c in codecs)
    stored = shard[:size] if configuration.get("index_location") == "start" else shard[-size:]
    index = decode(stored, codecs, (*counts, 2), np.dtype("uint64"), 0)
    block = np.full(shape, fill, dtype)
    for coords in np.ndindex(*counts):
        offset, length = map(int, index[coords])
        if (offset, length) != (MISSING, MISSING):
            place(
                block,
                coords,
                decode(shard[offset : offset + length], configuration["codecs"], tuple(inner), dtype, fill),
            )
    return block


def read_v2(directory: Path, document: Json) -> Array:
    dtype = np.dtype(document["dtype"])
    values = np.full(document["shape"], fill_of(document["fill_value"], dtype), dtype)
    shape = tuple(document["chunks"])
    separator = document.get("dimension_separator", ".")
    for coords in np.ndindex(*(-(-n // c) for n, c in zip(document["shape"], shape, strict=True))):
        path = directory / key_of(coords, "v2", separator)
        if not path.is_file():
            continue
        value = path.read_bytes()
        for codec in reversed([*(document["filters"] or []), *filter(None, [document["compressor"]])]):
            if codec["id"] == "zlib":
                value = zlib.decompress(value)
            elif codec["id"] == "shuffle":
                value = np.frombuffer(value, "u1").reshape(codec["elementsize"], -1).T.tobytes()
            else:
                raise DecodingError(f"the codec {codec['id']} was not asked for")
        flat = np.frombuffer(value, dtype)
        place(values, coords, flat.reshape(shape[::-1]).T if document["order"] == "F" else flat.reshape(shape))
    return values


def fill_of(spelled: Json, dtype: np.dtype[Any]) -> Any:
    """Return the fill value that a document states."""
    if isinstance(spelled, list):
        return complex(*(float(str(each).replace("Infinity", "inf")) for each in spelled))
    if isinstance(spelled, str) and spelled.startswith("0x"):
        return np.array(int(spelled, 16), f"u{dtype.itemsize}").view(dtype)[()]
    if isinstance(spelled, str):
        return float(spelled.replace("Infinity", "inf"))
    return 0 if spelled is None else spelled
