"""Write Zarr v2 and v3 with NumPy and the standard library alone.

It is written from the specifications, to be read beside them, and knows no implementation of Zarr. Values go in as
NumPy arrays; documents and chunks come out as ``{key: bytes}``. Nothing is checked: cases that must be refused are
written with it, too.

Types that NumPy does not have travel as integers with the same bits: ``bfloat16`` as uint16, ``int4`` as int8. Strings
and byte strings of any length travel in arrays of objects.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zarr_conformance import squeeze

Array = NDArray[Any]
Json = Any
Files = dict[str, bytes]

MISSING = 2**64 - 1
"""Offset and length in the index of a shard of an inner chunk that is not stored."""


@dataclass(frozen=True)
class ShardStyle:
    """How inner chunks lie in a shard, of which the specification says nothing."""

    backwards: bool = False
    """Last inner chunk first."""
    gap: int = 0
    """Bytes of no meaning before each inner chunk."""
    keep_fill: bool = False
    """Store inner chunks that contain only the fill value, too."""


PLAIN = ShardStyle()


def text_of(document: Json) -> bytes:
    """Return a document as it is stored."""
    return json.dumps(document, indent=1, ensure_ascii=False).encode()


def named(name: str, **configuration: Json) -> Json:
    """Return an extension object: a name, and a configuration if there is one."""
    return {"name": name, "configuration": configuration} if configuration else {"name": name}


LITTLE = named("bytes", endian="little")
BIG = named("bytes", endian="big")


def in_order(values: Array, endian: str | None) -> bytes:
    """Return the elements in C order, in a byte order."""
    return values.astype(values.dtype.newbyteorder(">" if endian == "big" else "<")).tobytes()


# ---- grids and keys


def edges(grid: Json, shape: Sequence[int]) -> list[list[int]]:
    """Return the lengths of the chunks along each dimension."""
    configuration = grid["configuration"]
    if grid["name"] == "regular":
        lengths = configuration["chunk_shape"]
        return [[c] * (-(-n // c) if c else 0) for n, c in zip(shape, lengths, strict=True)]
    return [
        [each] * -(-n // each)
        if isinstance(each, int)
        else [length for part in each for length in ([part[0]] * part[1] if isinstance(part, list) else [part])]
        for n, each in zip(shape, configuration["chunk_shapes"], strict=True)
    ]


def blocks(values: Array, lengths: Sequence[Sequence[int]], fill: Any) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield coordinates and elements of each chunk that overlaps the array, with fill values beyond its edges."""
    starts = [list(itertools.accumulate(each, initial=0)) for each in lengths]
    for coords in np.ndindex(*map(len, lengths)):
        shape = tuple(each[c] for each, c in zip(lengths, coords, strict=True))
        begin = [each[c] for each, c in zip(starts, coords, strict=True)]
        part = values[tuple(slice(b, b + n) for b, n in zip(begin, shape, strict=True))]
        if part.size == 0 and values.ndim:
            continue
        block = np.empty(shape, values.dtype)
        block[...] = fill
        block[tuple(slice(0, n) for n in part.shape)] = part
        yield coords, block


def key_of(coords: Sequence[int], encoding: str = "default", separator: str | None = None) -> str:
    """Return the key of a chunk below its array."""
    names = list(map(str, coords))
    if encoding == "default":
        return ("/" if separator is None else separator).join(["c", *names])
    return ("." if separator is None else separator).join(names) or "0"


# ---- codecs of arrays


def transposed(block: Array, configuration: Json) -> Array:
    """Permute the axes: ``order[i]`` is the axis of the input that becomes axis ``i``."""
    out: Array = block.transpose(configuration["order"])
    return out


def reshaped(block: Array, configuration: Json) -> Array:
    """Give the chunk another shape, in C order."""
    shape = [
        int(np.prod([block.shape[axis] for axis in each])) if isinstance(each, list) else each
        for each in configuration["shape"]
    ]
    return np.ascontiguousarray(block).reshape(shape)


def scaled(block: Array, configuration: Json) -> Array:
    """Subtract the offset, multiply by the scale, in the type of the array."""
    kind = block.dtype.type
    moved: Array = block - kind(configuration.get("offset", 0))
    out: Array = (moved * kind(configuration.get("scale", 1))).astype(block.dtype)
    return out


def cast(block: Array, configuration: Json) -> Array:
    """Change the type of elements; cases hold only values that both types have, or that ``scalar_map`` maps."""
    target = np.dtype(configuration["data_type"])
    scalars = configuration.get("scalar_map", {}).get("encode", [])
    out = np.zeros(block.shape, target)
    rest = np.ones(block.shape, bool)
    for found, becomes in scalars:
        there = np.isnan(block) if found == "NaN" else block == np.float64(str(found).replace("Infinity", "inf"))
        out[there & rest] = becomes
        rest &= ~there
    out[rest] = block[rest].astype(target)
    return out


def delta(block: Array, configuration: Json) -> Array:
    """Store the first element, then differences, as numcodecs does: of the elements in C order."""
    flat = block.ravel().astype(configuration["dtype"])
    return np.concatenate([flat[:1], np.diff(flat)]).astype(configuration.get("astype", configuration["dtype"]))


def fixed(block: Array, configuration: Json) -> Array:
    """Scale and round, as numcodecs does."""
    moved: Array = (block.ravel() - configuration["offset"]) * configuration["scale"]
    out: Array = np.around(moved).astype(configuration["astype"])
    return out


def unchanged(block: Array, configuration: Json) -> Array:
    """Leave elements that are rounded already as they are."""
    return block


def as_type(block: Array, configuration: Json) -> Array:
    """Store elements as another type of NumPy."""
    return block.astype(configuration["encode_dtype"])


def bits_first(block: Array, configuration: Json) -> Array:
    """Pack booleans as numcodecs does: the number of unused bits, then the bits, highest first."""
    packed = np.packbits(block.ravel().astype(bool))
    return np.concatenate([[np.uint8(packed.size * 8 - block.size)], packed])


ARRAY_TO_ARRAY: dict[str, Callable[[Array, Json], Array]] = {
    "transpose": transposed,
    "reshape": reshaped,
    "scale_offset": scaled,
    "cast_value": cast,
    "bitround": unchanged,
    "quantize": unchanged,
    "delta": delta,
    "fixedscaleoffset": fixed,
    "astype": as_type,
}


# ---- codecs from arrays to bytes


def variable(block: Array) -> bytes:
    """Write strings or byte strings: their number, then each with its length."""
    items = [each.encode() if isinstance(each, str) else bytes(each) for each in block.ravel()]
    return struct.pack("<I", len(items)) + b"".join(struct.pack("<I", len(item)) + item for item in items)


BITS = {"bool": 1, "int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4, "float6_e2m3fn": 6}


def packed(block: Array, configuration: Json, data_type: str) -> bytes:
    """Write some bits of each element, lowest first, without gaps."""
    size = BITS.get(data_type, block.dtype.itemsize * 8)
    first = configuration.get("first_bit") or 0
    last = size - 1 if configuration.get("last_bit") is None else configuration["last_bit"]
    whole = np.frombuffer(in_order(block, "little"), np.uint8).reshape(block.size, block.dtype.itemsize)
    bits = np.unpackbits(whole, axis=1, bitorder="little")[:, first : last + 1].ravel()
    data = np.packbits(bits, bitorder="little").tobytes()
    padding = bytes([len(data) * 8 - bits.size])
    where = configuration.get("padding_encoding", "none")
    return (padding if where == "first_byte" else b"") + data + (padding if where == "last_byte" else b"")


def sharded(block: Array, configuration: Json, chunk: Chunk) -> bytes:
    """Write inner chunks, and the index of their offsets and lengths."""
    lengths = edges(named("regular", chunk_shape=configuration["chunk_shape"]), block.shape)
    index = np.full((*map(len, lengths), 2), MISSING, np.uint64)
    location = configuration.get("index_location", "end")
    index_codecs = configuration.get("index_codecs", [LITTLE, {"name": "crc32c"}])
    head = len(encode(index, index_codecs, Chunk("uint64", 0))) if location == "start" else 0
    data = b""
    inner = list(blocks(block, lengths, chunk.fill))
    for coords, part in reversed(inner) if chunk.style.backwards else inner:
        if not chunk.style.keep_fill and is_fill(part, chunk.fill):
            continue
        value = encode(part, configuration["codecs"], chunk)
        data += b"\xaa" * chunk.style.gap
        index[coords] = head + len(data), len(value)
        data += value
    stored = encode(index, index_codecs, Chunk("uint64", 0))
    return stored + data if location == "start" else data + stored


def is_fill(block: Array, fill: Any) -> bool:
    """Return whether a chunk contains only the fill value, bit for bit."""
    if block.dtype == object:
        return all(each == fill for each in block.ravel())
    return block.tobytes() == np.full(block.shape, fill, block.dtype).tobytes()


@dataclass(frozen=True)
class Chunk:
    """What codecs know of the chunk beside its elements."""

    data_type: str
    fill: Any
    style: ShardStyle = PLAIN


def serialized(block: Array, name: str, configuration: Json, chunk: Chunk) -> bytes:
    """Run a codec that makes bytes of an array."""
    match name:
        case "sharding_indexed":
            return sharded(block, configuration, chunk)
        case "packbits":
            return packed(block, configuration, chunk.data_type)
        case "vlen-utf8" | "vlen-bytes" | "variable_length_utf8" | "variable_length_bytes":
            return variable(block)
        case _:
            return in_order(block, configuration.get("endian"))


TO_BYTES = {"bytes", "endian", "sharding_indexed", "packbits", "vlen-utf8", "vlen-bytes"}


def encode(block: Array, codecs: Sequence[Json], chunk: Chunk) -> bytes:
    """Return the stored bytes of a chunk of Zarr v3."""
    value: bytes | None = None
    for codec in codecs:
        name = codec if isinstance(codec, str) else codec["name"]
        configuration = {} if isinstance(codec, str) else codec.get("configuration", {})
        short = name.removeprefix("numcodecs.")
        if name in TO_BYTES or (name.startswith("numcodecs.vlen") and value is None):
            value = serialized(block, short, configuration, chunk)
        elif name == "numcodecs.packbits":
            block = bits_first(block, configuration)
        elif value is None and short in ARRAY_TO_ARRAY:
            block = ARRAY_TO_ARRAY[short](block, configuration)
        else:
            assert value is not None, name
            value = squeeze.CODECS[short](value, configuration)
    assert value is not None
    return value


# ---- Zarr v3


def document_v3(
    values: Array,
    data_type: Json,
    chunks: Sequence[int],
    codecs: Sequence[Json] | None = None,
    fill_value: Json = 0,
    **members: Json,
) -> Json:
    """Return the document of an array; ``members`` are added to it, or stand in for its own."""
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(values.shape),
        "data_type": data_type,
        "chunk_grid": named("regular", chunk_shape=list(chunks)),
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": fill_value,
        "codecs": [LITTLE] if codecs is None else list(codecs),
    }
    return {**document, **members}


def array_v3(
    values: Array,
    data_type: Json,
    chunks: Sequence[int],
    codecs: Sequence[Json] | None = None,
    fill_value: Json = 0,
    *,
    fill: Any = 0,
    missing: bool = True,
    style: ShardStyle = PLAIN,
    path: str = "",
    written: Sequence[Json] | None = None,
    **members: Json,
) -> Files:
    """Return an array: its document, and its chunks.

    `fill` is the fill value as an element of NumPy. Chunks that contain nothing else are left out if `missing`.
    `written` are the codecs as the encoder needs them, with parameters that do not stand in the document.
    """
    document = document_v3(values, data_type, chunks, codecs, fill_value, **members)
    name = data_type if isinstance(data_type, str) else data_type["name"]
    encoding = document["chunk_key_encoding"]
    separator = encoding.get("configuration", {}).get("separator")
    chunk = Chunk(name, fill, style)
    prefix = f"{path}/" if path else ""
    files = {f"{prefix}zarr.json": text_of(document)}
    for coords, block in blocks(values, edges(document["chunk_grid"], values.shape), fill):
        if not (missing and is_fill(block, fill)):
            key = key_of(coords, encoding["name"], separator)
            files[prefix + key] = encode(block, written or document["codecs"], chunk)
    return files


def group_v3(path: str = "", attributes: Json = None, **members: Json) -> Files:
    """Return the document of a group."""
    document = {"zarr_format": 3, "node_type": "group", **members}
    if attributes is not None:
        document["attributes"] = attributes
    return {f"{path}/zarr.json" if path else "zarr.json": text_of(document)}


# ---- Zarr v2


def encode_v2(block: Array, document: Mapping[str, Json]) -> bytes:
    """Return the stored bytes of a chunk of Zarr v2."""
    value: bytes | None = None
    if document.get("order") == "F":
        block = block.transpose()
    endian = "big" if str(document["dtype"])[:1] == ">" else "little"
    for codec in document.get("filters") or []:
        name = codec["id"]
        if name in {"vlen-utf8", "vlen-bytes"}:
            value = variable(block)
        elif name == "packbits":
            block = bits_first(block, codec)
        elif name in ARRAY_TO_ARRAY:
            block = ARRAY_TO_ARRAY[name](block, codec)
            endian = "big" if block.dtype.byteorder == ">" else "little"
        else:
            value = squeeze.CODECS[name](in_order(block, endian) if value is None else value, codec)
    if value is None:
        value = block.tobytes() if block.dtype.names else in_order(block, endian)
    compressor = document.get("compressor")
    return squeeze.CODECS[compressor["id"]](value, compressor) if compressor else value


def array_v2(
    values: Array,
    dtype: Json,
    chunks: Sequence[int],
    fill_value: Json = 0,
    *,
    fill: Any = 0,
    missing: bool = True,
    path: str = "",
    attributes: Json = None,
    **members: Json,
) -> Files:
    """Return an array of Zarr v2: ``.zarray``, its chunks, and ``.zattrs`` if there are attributes."""
    document = {
        "zarr_format": 2,
        "shape": list(values.shape),
        "chunks": list(chunks),
        "dtype": dtype,
        "compressor": None,
        "fill_value": fill_value,
        "order": "C",
        "filters": None,
        **members,
    }
    prefix = f"{path}/" if path else ""
    files = {f"{prefix}.zarray": text_of(document)}
    if attributes is not None:
        files[f"{prefix}.zattrs"] = text_of(attributes)
    for coords, block in blocks(values, edges(named("regular", chunk_shape=list(chunks)), values.shape), fill):
        if not (missing and is_fill(block, fill)):
            key = key_of(coords, "v2", members.get("dimension_separator"))
            files[prefix + key] = encode_v2(block, document)
    return files


def group_v2(path: str = "", attributes: Json = None) -> Files:
    """Return ``.zgroup``, and ``.zattrs`` if there are attributes."""
    prefix = f"{path}/" if path else ""
    files = {f"{prefix}.zgroup": text_of({"zarr_format": 2})}
    if attributes is not None:
        files[f"{prefix}.zattrs"] = text_of(attributes)
    return files
