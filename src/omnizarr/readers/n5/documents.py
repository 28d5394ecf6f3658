"""``attributes.json`` as a document of Zarr v3, and back.

N5 lists dimensions with the fastest first: x, y, z. The array that is shown has them in C order: z, y, x. The bytes of
a block are the same in both.

What an ``attributes.json`` says of an array is carried as it is, also if it is wrong: the reader of Zarr v3 judges it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, TypeGuard

from omnizarr.errors import MetadataError, NotRepresentableError
from omnizarr.formats import V3
from omnizarr.formats.documents import parse
from omnizarr.model import ArrayMetadata, GroupMetadata, Named, datatypes, strict, thawed
from omnizarr.stores.base import Buffer

Json: TypeAlias = dict[str, Any]

ATTRIBUTES: Final = "attributes.json"
DOCUMENT: Final = "zarr.json"
SPEC: Final = 'N5, "File-system specification"'
VERSION: Final = "2.0.0"
"""The version that a new hierarchy states. Readers refuse a later one than they know, and nothing here needs it."""

SIZES: Final = {f"{sign}int{8 * size}": size for size in (1, 2, 4, 8) for sign in ("u", "")} | {
    "float32": 4,
    "float64": 8,
}
"""Bytes of an element, by name of the type."""

_RESERVED: Final = ("dimensions", "blockSize", "dataType", "compression", "compressionType")
_DECODED: Final = ("lz4", "jpeg")
"""Compressions that no codec of Zarr has: the store decodes them."""
_SHUFFLES: Final = {0: "noshuffle", 1: "shuffle", 2: "bitshuffle"}
_LEVEL: Final = 6  # what -1 means to zlib
_BIG: Final = Named("bytes", {"endian": "big"})
_LARGEST: Final = 2**31 - 1  # block sizes are integers of Java


@dataclass(frozen=True)
class Dataset:
    """What is needed to read and write the blocks of an array.

    Attributes
    ----------
    dimensions, block : tuple of int
        As N5 lists them: the fastest first.
    data_type : str
    compression : str
        What the store decodes: "lz4" or "jpeg"; "raw" for everything else.
    codecs : tuple of Named
        As the document of Zarr lists them.
    """

    dimensions: tuple[int, ...]
    block: tuple[int, ...]
    data_type: str
    compression: str
    codecs: tuple[Named, ...] = field(compare=False)

    @property
    def header(self) -> bytes:
        """What a block of full size begins with."""
        return struct.pack(f">HH{len(self.block)}I", 0, len(self.block), *self.block)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements of a block of full size."""
        size = SIZES[self.data_type]
        for length in self.block:
            size *= length
        return size

    @property
    def is_decoded(self) -> bool:
        """Whether the store decodes the blocks, as no codec of Zarr does."""
        return self.compression in _DECODED

    @property
    def is_raw(self) -> bool:
        """Whether the value of a chunk is its elements."""
        return len(self.codecs) == 1


def load(attributes: Mapping[str, Any]) -> tuple[Json, Dataset | None]:
    """Return the document of Zarr v3, and what reads the blocks; None for a group, or an array that cannot be read.

    >>> given = {"dimensions": [6, 4], "blockSize": [3, 2], "dataType": "uint8", "compression": {"type": "raw"}}
    >>> document, dataset = load({**given, "resolution": [4, 40]})
    >>> document["shape"], document["attributes"], dataset.block
    ([4, 6], {'resolution': [4, 40]}, (3, 2))
    """
    if "dimensions" not in attributes:
        kept = {name: value for name, value in attributes.items() if name != "n5"}
        return {"zarr_format": 3, "node_type": "group", "attributes": kept}, None
    dimensions, block = attributes.get("dimensions"), attributes.get("blockSize")
    if block is None:
        block = dimensions  # what n5 does: one block
    data_type = attributes.get("dataType")
    compression = _compression(attributes)
    size = SIZES.get(data_type, 0) if isinstance(data_type, str) else 0
    codecs = _codecs(compression, size)
    document: Json = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": _reversed(dimensions),
        "data_type": data_type if size else _foreign(data_type),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": _reversed(block)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": codecs,
        "attributes": {name: value for name, value in attributes.items() if name not in (*_RESERVED, "n5")},
    }
    if (names := _dimension_names(attributes.get("axes"), dimensions)) is not None:
        document["dimension_names"] = names
    if not size or not _is_shape(dimensions, 0) or not _is_shape(block, 1) or len(dimensions) != len(block):
        return document, None
    listed = tuple(Named(each["name"], each.get("configuration", {})) for each in codecs)
    kind = "raw" if len(listed) > 1 else str(compression.get("type"))
    return document, Dataset(tuple(dimensions), tuple(block), str(data_type), kind, listed)


def _is_shape(found: object, least: int) -> TypeGuard[list[int]]:
    return isinstance(found, list) and bool(found) and all(type(each) is int and each >= least for each in found)


def _reversed(found: object) -> object:
    return found[::-1] if isinstance(found, list) else found


def _foreign(name: object) -> object:
    """Return the name of a type that Zarr does not have, as errors show it."""
    return f"n5.{name}" if isinstance(name, str) else name


def _dimension_names(axes: object, dimensions: object) -> list[str] | None:
    if not isinstance(axes, list) or not isinstance(dimensions, list) or len(axes) != len(dimensions):
        return None
    if not all(isinstance(each, str) and each for each in axes) or len(set(axes)) < len(axes):
        return None
    return axes[::-1]


def _compression(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    found = attributes.get("compression")
    if isinstance(found, Mapping):
        return found
    if isinstance(found, str):
        return {"type": found}
    old = attributes.get("compressionType")  # N5 1.0
    return {"type": old} if isinstance(old, str) else {"type": "raw" if found is None else found}


def _codecs(given: Mapping[str, Any], size: int) -> list[Json]:
    """Return the codecs behind the header of a block."""
    name = given.get("type")
    first: Json = {"name": "bytes", "configuration": {"endian": "big"}} if size > 1 else {"name": "bytes"}
    if name == "lz4" and "acceleration" in given:  # of numcodecs, by zarr-python 2
        return [first, {"name": "numcodecs.lz4", "configuration": {"acceleration": given["acceleration"]}}]
    if name in ("raw", *_DECODED):
        return [first]
    level = given.get("level", -1)
    match name:
        case "gzip":
            level = _LEVEL if level == -1 else level
            kind = "numcodecs.zlib" if given.get("useZlib") is True else "gzip"
            second: Json = {"name": kind, "configuration": {"level": level}}
        case "bzip2":
            second = {"name": "numcodecs.bz2", "configuration": {"level": given.get("blockSize", 9)}}
        case "xz":
            second = {"name": "numcodecs.lzma", "configuration": {"format": 1, "preset": given.get("preset", 6)}}
        case "zstd":
            second = {"name": "zstd", "configuration": {"level": given.get("level", 3), "checksum": False}}
        case "blosc":
            shuffle = given.get("shuffle", 1)
            if shuffle == -1:  # automatic
                shuffle = 2 if size == 1 else 1
            second = {
                "name": "blosc",
                "configuration": {
                    "cname": given.get("cname", "blosclz"),
                    "clevel": given.get("clevel", 6),
                    "shuffle": _SHUFFLES.get(shuffle, shuffle) if isinstance(shuffle, int) else shuffle,
                    "typesize": max(size, 1),
                    "blocksize": given.get("blocksize", 0),
                },
            }
        case _:
            second = {"name": f"n5.{name}" if isinstance(name, str) else "n5.unknown", "configuration": {}}
    return [first, second]


# -- writing ---------------------------------------------------------------------------------


def dump(value: Buffer, old: Mapping[str, Any] | None, *, is_root: bool) -> Json:
    """Return the contents of ``attributes.json`` for a document of Zarr v3.

    Parameters
    ----------
    value : bytes-like
        The document.
    old : mapping or None
        What is stored. Spellings that mean the same stay.
    is_root : bool
        Whether a new document states the version of N5.

    Raises
    ------
    NotRepresentableError
        If N5 cannot express it. The error names the member and what N5 has.
    MetadataError
        If it is no document of Zarr v3.
    """
    document = parse(value)
    metadata = V3.load({DOCUMENT: document}, strict)
    if metadata is None or not isinstance(document, Mapping):
        raise MetadataError("no document of Zarr v3")
    attributes: Json = json.loads(json.dumps(thawed(document.get("attributes", {}))))
    if isinstance(metadata, GroupMetadata):
        if "consolidated_metadata" in document:
            raise _refused("consolidated metadata", "/consolidated_metadata", "consolidated metadata", "none")
        made: Json = {}
    else:
        made = _dumped(metadata, attributes)
        if old is not None and "dimensions" in old:
            made = _as_spelled(made, old)
    taken = [name for name in (*_RESERVED, "n5") if name in attributes]
    if taken:
        raise _refused("an attribute of this name", f"/attributes/{taken[0]}", taken[0], f"other names than {taken}")
    version = old.get("n5") if old is not None else VERSION if is_root else None
    return {**({} if version is None else {"n5": version}), **made, **attributes}


def adapted(metadata: ArrayMetadata, *, is_copy: bool) -> ArrayMetadata:
    """Return the metadata of a new array with big-endian bytes; a copy gets other codecs, chunks and fill value, too.

    Raises NotRepresentableError if N5 has no such arrays.
    """
    if metadata.dialect != V3.name:
        raise NotRepresentableError(
            "an N5 hierarchy is written as Zarr v3 only", found=metadata.dialect, remedy="leave out zarr_format"
        )
    codecs, grid = [thawed(each) for each in metadata.codecs], metadata.chunk_grid
    if not is_copy:
        if codecs and codecs[0].name == "bytes":
            codecs[0] = _BIG
        return replace(metadata, codecs=tuple(codecs))
    if len(codecs) == 1 and codecs[0].name == "sharding_indexed":
        inner = codecs[0].configuration
        grid = Named("regular", {"chunk_shape": list(inner["chunk_shape"])})
        codecs = [Named(each["name"], each.get("configuration", {})) for each in inner["codecs"]]
    size = SIZES.get(metadata.data_type.name, 1)
    behind = [each for each in codecs[1:] if each.name not in ("crc32c", "bytes", "transpose")]
    known = [each for each in behind if _is_known(each, size)]
    compressor = known[:1] or ([Named("gzip", {"level": 1})] if behind else [])
    made = replace(
        metadata,
        chunk_grid=grid,
        chunk_key_encoding=Named("default", {"separator": "/"}),
        codecs=(_BIG if size > 1 else Named("bytes"), *compressor),
        fill_value=0.0 if metadata.data_type.name.startswith("float") else 0,
    )
    _dumped(made, json.loads(json.dumps(thawed(metadata.attributes))))
    return made


def dataset_of(metadata: ArrayMetadata) -> Dataset | None:
    """Return how the blocks of a new array are written; None if N5 cannot express it."""
    try:
        return load(_dumped(metadata, {}))[1]
    except NotRepresentableError:
        return None


def _is_known(codec: Named, size: int) -> bool:
    try:
        _compression_of([_BIG, codec], size)
    except NotRepresentableError:
        return False
    return True


def _refused(what: str, pointer: str, found: object, expected: str, remedy: str | None = None) -> NotRepresentableError:
    return NotRepresentableError(
        f"N5 cannot express {what}", pointer=pointer, found=found, expected=expected, remedy=remedy, spec=SPEC
    )


def _dumped(metadata: ArrayMetadata, attributes: Json) -> Json:
    """Return the members of an array, and set those attributes that hold the names of dimensions."""
    if not metadata.shape:
        raise _refused("an array without dimensions", "/shape", [], "at least one dimension")
    data_type = metadata.data_type.name
    if data_type not in SIZES:
        raise _refused("the data type", "/data_type", data_type, f"one of {', '.join(SIZES)}")
    chunks = metadata.chunk_grid.configuration.get("chunk_shape")
    if metadata.chunk_grid.name != "regular" or not isinstance(chunks, Sequence):
        raise _refused("the chunk grid", "/chunk_grid", metadata.chunk_grid.name, "a regular grid")
    if any(type(length) is not int or length > _LARGEST for length in chunks):
        raise _refused("the chunks", "/chunk_grid", list(chunks), f"lengths up to {_LARGEST}")
    keys = metadata.chunk_key_encoding
    if keys.name != "default" or keys.configuration.get("separator", "/") != "/":
        raise _refused("the chunk keys", "/chunk_key_encoding", keys.name, '"default" with the separator "/"')
    if metadata.storage_transformers:
        raise _refused("storage transformers", "/storage_transformers", "some", "none")
    value = datatypes.bind(thawed(metadata.data_type), metadata.byte_order).fill_from_json(thawed(metadata.fill_value))
    if any(bytes(value.tobytes())):
        raise _refused("the fill value", "/fill_value", thawed(metadata.fill_value), "0", "pass fill_value=0")
    names = metadata.dimension_names
    if names is not None and any(names):
        if None in names or len(set(names)) < len(names):
            raise _refused("the names of dimensions", "/dimension_names", list(names), "a different name for each")
        if _dimension_names(attributes.get("axes"), list(metadata.shape)) != list(names):
            attributes["axes"] = list(names[::-1])
    elif _dimension_names(attributes.get("axes"), list(metadata.shape)) is not None:
        del attributes["axes"]
    return {
        "dimensions": list(metadata.shape[::-1]),
        "blockSize": list(chunks[::-1]),
        "dataType": data_type,
        "compression": _compression_of([thawed(each) for each in metadata.codecs], SIZES[data_type]),
    }


def _compression_of(codecs: Sequence[Named], size: int) -> Json:
    endian = codecs[0].configuration.get("endian")
    if codecs[0].name != "bytes" or (endian != "big" and size > 1):
        raise _refused(
            "the order of bytes" if codecs[0].name == "bytes" else "the codec",
            "/codecs/0",
            {"name": codecs[0].name, **codecs[0].configuration},
            'the codec "bytes", big-endian',
            'pass serializer={"name": "bytes", "configuration": {"endian": "big"}}',
        )
    if len(codecs) == 1:
        return {"type": "raw"}
    name, given = codecs[1].name, dict(codecs[1].configuration)
    level = given.get("level")
    found: Json | None = None
    match name if len(codecs) == 2 else None:
        case "gzip" | "numcodecs.gzip":
            found = {"type": "gzip", "level": level, "useZlib": False}
        case "numcodecs.zlib" | "zlib":
            found = {"type": "gzip", "level": _LEVEL if level is None else level, "useZlib": True}
        case "numcodecs.bz2" | "bz2":
            found = {"type": "bzip2", "blockSize": 9 if level is None else level}
        case "numcodecs.lzma" | "lzma" if given.get("format", 1) == 1 and given.get("filters") is None:
            preset = given.get("preset")
            found = {"type": "xz", "preset": 6 if preset is None else preset}
        case "zstd" | "numcodecs.zstd" if not given.get("checksum"):
            found = {"type": "zstd", "level": 3 if level is None else level}
        case "blosc" if given.get("shuffle") in _SHUFFLES.values():
            shuffle = next(number for number, word in _SHUFFLES.items() if word == given["shuffle"])
            found = {
                "type": "blosc",
                "cname": given.get("cname"),
                "clevel": given.get("clevel"),
                "shuffle": shuffle,
                "blocksize": given.get("blocksize", 0),
            }
    if found is None:
        others = [each.name for each in codecs[1:]]
        expected = "at most one of gzip, zlib, bz2, lzma (xz), zstd without a checksum, blosc"
        raise _refused("the codecs", "/codecs/1", others, expected, "pass other compressors")
    return found


def _as_spelled(made: Json, old: Mapping[str, Any]) -> Json:
    """Return the members with the spelling of those that are stored and mean the same."""
    size = SIZES[made["dataType"]]
    given = _compression(old)
    if given.get("type") in _DECODED or old.get("dataType") != made["dataType"]:
        same = given.get("type") in _DECODED and made["compression"] == {"type": "raw"}
    else:
        same = _codecs(given, size) == _codecs(made["compression"], size)
    if not same:
        return made
    kept = {name: value for name, value in made.items() if name != "compression"}
    return kept | {name: old[name] for name in ("compression", "compressionType") if name in old}
