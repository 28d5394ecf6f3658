"""``info`` as documents of Zarr v3.

``info`` lists dimensions with the fastest first: x, y, z. The arrays that are shown have them in C order: channel, z,
y, x, which are the bytes of a raw chunk as they are, and the order of images in OME-Zarr.
"""

from __future__ import annotations

import json
import math
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from omnizarr.errors import MetadataError
from omnizarr.formats.documents import parse
from omnizarr.readers.documents import array_document, bytes_codec
from omnizarr.stores.base import Buffer, is_key

Json: TypeAlias = dict[str, Any]
Three: TypeAlias = tuple[int, int, int]

INFO: Final = "info"
DOCUMENT: Final = "zarr.json"
SPEC: Final = "Neuroglancer, Precomputed Volume Format"
SHARDED: Final = "neuroglancer_uint64_sharded_v1"
VOLUME: Final = "neuroglancer_multiscale_volume"
TYPES: Final = (*("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32", "float64"),)
_OTHERS: Final = ("mesh", "skeletons", "segment_properties")
_MOST_SCALES: Final = 1000
_MOST_CHANNELS: Final = 2**20
_FAR: Final = 2**62
_MOST_CHUNK: Final = 2**31 - 1
_BITS: Final = 64


@dataclass(frozen=True)
class Sharding:
    """How chunks are put together in shards.

    Attributes
    ----------
    preshift, minishard, shard : int
        Numbers of bits.
    is_hashed : bool
        Whether the number of a chunk is hashed with murmurhash3_x86_128.
    index_is_packed, data_is_packed : bool
        Whether the indexes of minishards, and the chunks, are compressed with gzip.
    """

    preshift: int
    minishard: int
    shard: int
    is_hashed: bool
    index_is_packed: bool
    data_is_packed: bool


@dataclass(frozen=True)
class Scale:
    """What is needed to read the chunks of a scale. Everything in the order x, y, z.

    Attributes
    ----------
    name : str
        The path of its array.
    folder : str
        The directory of its chunks.
    size, chunk, offset : tuple of int
        Voxels; `offset` is where the volume begins.
    channels : int
    data_type : str
    encoding : str
    block : tuple of int
        The block size of compressed_segmentation.
    sharding : Sharding or None
    document : bytes
        The document of Zarr.
    """

    name: str
    folder: str
    size: Three
    chunk: Three
    offset: Three
    channels: int
    data_type: str
    encoding: str
    block: Three
    sharding: Sharding | None
    document: bytes = field(compare=False, repr=False)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of stored elements."""
        return np.dtype(self.data_type).newbyteorder("<")

    @property
    def grid(self) -> Three:
        """How many chunks there are."""
        x, y, z = (-(-size // chunk) for size, chunk in zip(self.size, self.chunk, strict=True))
        return x, y, z

    @property
    def nbytes(self) -> int:
        """Bytes of the elements of a chunk of full size."""
        return math.prod(self.chunk) * self.channels * self.dtype.itemsize

    def shape_at(self, at: Three) -> Three:
        """Return the voxels of a chunk, which is smaller at the far edges."""
        x, y, z = (
            min(chunk, size - chunk * position) for size, chunk, position in zip(self.size, self.chunk, at, strict=True)
        )
        return x, y, z

    def holds(self, at: Three) -> bool:
        """Return whether a chunk is in the volume."""
        return all(0 <= position < count for position, count in zip(at, self.grid, strict=True))

    def file_of(self, at: Three) -> str:
        """Return the name of the file of a chunk."""
        parts = []
        for position, chunk, size, offset in zip(at, self.chunk, self.size, self.offset, strict=True):
            begin = chunk * position
            parts.append(f"{offset + begin}-{offset + min(begin + chunk, size)}")
        return "_".join(parts)

    def at_of(self, bounds: tuple[int, ...]) -> Three | None:
        """Return the chunk that begins and ends at these voxels; None if there is none."""
        begins = [begin - offset for begin, offset in zip(bounds[::2], self.offset, strict=True)]
        x, y, z = (begin // chunk for begin, chunk in zip(begins, self.chunk, strict=True))
        ends = [
            begin + length + offset
            for begin, length, offset in zip(begins, self.shape_at((x, y, z)), self.offset, strict=True)
        ]
        aligned = all(begin % chunk == 0 for begin, chunk in zip(begins, self.chunk, strict=True))
        return (x, y, z) if aligned and self.holds((x, y, z)) and ends == list(bounds[1::2]) else None


@dataclass(frozen=True)
class Volume:
    """A volume: its scales by the paths of their arrays, the document of the group, and what is not shown."""

    scales: Mapping[str, Scale]
    document: bytes
    notes: tuple[str, ...]


class _Reader:
    """Reads members, and says what is wrong with them."""

    def __init__(self, members: Mapping[str, Any], pointer: str) -> None:
        self.members = members
        self.pointer = pointer

    def fail(self, name: str, message: str, expected: str) -> NoReturn:
        raise MetadataError(
            message,
            key=INFO,
            pointer=f"{self.pointer}/{name}",
            found=self.members.get(name),
            expected=expected,
            spec=SPEC,
        )

    def three(self, name: str, low: int, high: int, default: Three | None = None) -> Three:
        found = self.members.get(name)
        if found is None and default is not None:
            return default
        return self._three(name, found, low, high)

    def _three(self, name: str, found: object, low: int, high: int) -> Three:
        if not isinstance(found, list) or len(found) != 3:
            self.fail(name, "not one number for each of x, y and z", "a list of three integers")
        whole = [int(each) for each in found if type(each) is int or (type(each) is float and each.is_integer())]
        if len(whole) != 3 or not all(low <= each <= high for each in whole):
            self.fail(name, "not three integers in the range that is possible", f"integers from {low} to {high}")
        x, y, z = whole
        return x, y, z

    def chunks(self) -> Three:
        found = self.members.get("chunk_sizes")
        if not isinstance(found, list) or not found:
            self.fail("chunk_sizes", "no size of chunks", "a list of chunk sizes")
        return self._three("chunk_sizes", found[0], 1, _MOST_CHUNK)

    def text(self, name: str) -> str:
        found = self.members.get(name)
        if not isinstance(found, str):
            self.fail(name, "not a text", "a text")
        return found

    def choice(self, name: str, among: tuple[str, ...], default: str | None = None) -> str:
        found = self.members.get(name, default)
        if found not in among:
            self.fail(name, "an unknown value", f"one of {', '.join(among)}")
        return str(found)

    def integer(self, name: str, low: int, high: int) -> int:
        found = self.members.get(name)
        if type(found) is not int or not low <= found <= high:
            self.fail(name, "not an integer in the range that is possible", f"an integer from {low} to {high}")
        return found


def is_volume(value: Buffer) -> bool:
    """Return whether a document is the ``info`` of a volume, as far as that can be seen without judging it."""
    try:
        found = parse(value)
    except MetadataError:
        return False
    return isinstance(found, dict) and found.get("@type", VOLUME) == VOLUME and {"scales", "data_type"} <= found.keys()


def load(value: Buffer) -> Volume:
    """Return the volume that an ``info`` describes. Raises MetadataError.

    >>> scale = {"key": "8_8_40", "size": [6, 5, 4], "chunk_sizes": [[4, 4, 4]], "encoding": "raw"}
    >>> scale["resolution"] = [8, 8, 40]
    >>> info = {"type": "image", "data_type": "uint8", "num_channels": 1, "scales": [scale]}
    >>> volume = load(json.dumps(info).encode())
    >>> json.loads(volume.scales["8_8_40"].document)["shape"], volume.scales["8_8_40"].file_of((1, 1, 0))
    ([1, 4, 5, 6], '4-6_4-5_0-4')
    """
    found = parse(value)
    if not isinstance(found, dict):
        raise MetadataError(
            "the info of a volume is not an object", key=INFO, found=found, expected="an object", spec=SPEC
        )
    reader = _Reader(found, "")
    reader.choice("@type", (VOLUME,), VOLUME)
    data_type = reader.choice("data_type", TYPES)
    channels = reader.integer("num_channels", 1, _MOST_CHANNELS)
    listed = found.get("scales")
    if not isinstance(listed, list) or not 0 < len(listed) <= _MOST_SCALES:
        reader.fail("scales", "no list of scales that can be read", f"a list of 1 to {_MOST_SCALES} scales")
    notes: list[str] = []
    scales: dict[str, Scale] = {}
    levels: list[tuple[str, tuple[float, float, float], Three]] = []
    for number, members in enumerate(listed):
        pointer = f"/scales/{number}"
        if not isinstance(members, dict):
            raise MetadataError("a scale is not an object", key=INFO, pointer=pointer, found=members,
                                expected="an object", spec=SPEC)  # fmt: skip
        scale = _Reader(members, pointer)
        key = scale.text("key")
        folder = posixpath.normpath(key).lstrip("/")
        if not is_key(folder):
            notes.append(f"the scale {key!r} is not in the directory of the volume, and is not followed")
            continue
        made = _scale(scale, _name(key, number, scales), folder, data_type, channels)
        scales[made.name] = made
        resolution = _resolution(scale)
        levels.append((made.name, resolution, made.offset))
        sizes: Any = members["chunk_sizes"]
        if len(sizes) > 1:
            notes.append(f"{made.name}: of its {len(sizes)} sizes of chunks, the first is shown")
    notes += [f"{name} in {found[name]!r} is no array, and is not shown"[:300] for name in _OTHERS if name in found]
    kept = {name: each for name, each in found.items() if name not in ("scales", "data_type", "num_channels")}
    attributes = {"ome": _multiscales(levels), **{name: each for name, each in kept.items() if name != "ome"}}
    document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    return Volume(scales, json.dumps(document).encode(), tuple(notes))


def _name(key: str, number: int, taken: Mapping[str, Scale]) -> str:
    """Return the name of the array of a scale: its key, if that can be a name."""
    name = key if is_key(key) and "/" not in key and key not in (DOCUMENT, INFO) else f"scale_{number}"
    while name in taken:
        name = f"{name}_{number}"
    return name


def _resolution(scale: _Reader) -> tuple[float, float, float]:
    found = scale.members.get("resolution")
    if (
        not isinstance(found, list)
        or len(found) != 3
        or not all(type(each) in (int, float) and 0 < each < math.inf for each in found)
    ):
        scale.fail("resolution", "not the size of a voxel", "three positive numbers, in nanometers")
    x, y, z = map(float, found)
    return x, y, z


def _scale(scale: _Reader, name: str, folder: str, data_type: str, channels: int) -> Scale:
    size = scale.three("size", 0, _FAR)
    chunk = scale.chunks()
    encoding = scale.text("encoding")
    block: Three = (8, 8, 8)
    if encoding == "compressed_segmentation":
        block = scale.three("compressed_segmentation_block_size", 1, _MOST_CHUNK)
        if data_type not in ("uint32", "uint64"):
            scale.fail("encoding", f"an encoding that holds no {data_type}", "the data type uint32 or uint64")
    attributes = {key: each for key, each in scale.members.items() if key not in ("size", "chunk_sizes")}
    document = array_document(
        (channels, *size[::-1]),
        data_type,
        (channels, *chunk[::-1]),
        0,
        [bytes_codec("little", np.dtype(data_type).itemsize)],
        attributes,
        ["channel", "z", "y", "x"],
    )
    made = Scale(
        name, folder, size, chunk, scale.three("voxel_offset", -_FAR, _FAR, (0, 0, 0)), channels, data_type, encoding,
        block, _sharding(scale), json.dumps(document).encode(),
    )  # fmt: skip
    if made.sharding is not None and sum((count - 1).bit_length() for count in made.grid if count) > _BITS:
        scale.fail("size", "more chunks than numbers of 64 bits count", "fewer chunks of a sharded scale")
    return made


def _sharding(scale: _Reader) -> Sharding | None:
    found = scale.members.get("sharding")
    if found is None:
        return None
    if not isinstance(found, dict):
        scale.fail("sharding", "not an object", "an object, or null")
    reader = _Reader(found, f"{scale.pointer}/sharding")
    reader.choice("@type", (SHARDED,))
    minishard = reader.integer("minishard_bits", 0, 32)
    encodings = ("raw", "gzip")
    return Sharding(
        reader.integer("preshift_bits", 0, _BITS),
        minishard,
        reader.integer("shard_bits", 0, _BITS - minishard),
        reader.choice("hash", ("identity", "murmurhash3_x86_128")) != "identity",
        reader.choice("minishard_index_encoding", encodings, "raw") == "gzip",
        reader.choice("data_encoding", encodings, "raw") == "gzip",
    )


def _multiscales(levels: list[tuple[str, tuple[float, float, float], Three]]) -> Json:
    """Return the metadata of OME-Zarr 0.5: the scales as levels of one image, in nanometers."""
    axes: list[Json] = [{"name": "channel", "type": "channel"}]
    axes += [{"name": name, "type": "space", "unit": "nanometer"} for name in "zyx"]
    datasets = []
    moved = any(any(offset) for _, _, offset in levels)
    for name, resolution, offset in sorted(levels, key=lambda level: math.prod(level[1])):
        steps: list[Json] = [{"type": "scale", "scale": [1.0, *resolution[::-1]]}]
        if moved:
            begin = [float(voxels) * step for voxels, step in zip(offset, resolution, strict=True)]
            steps.append({"type": "translation", "translation": [0.0, *begin[::-1]]})
        datasets.append({"path": name, "coordinateTransformations": steps})
    return {"version": "0.5", "multiscales": [{"name": "volume", "axes": axes, "datasets": datasets}]}


def morton(scale: Scale, at: Three) -> int:
    """Return the compressed Morton code of a chunk."""
    number = 0
    for place, (dimension, bit) in enumerate(_interleaved(scale.grid)):
        number |= (at[dimension] >> bit & 1) << place
    return number


def unmorton(scale: Scale, number: int) -> Three | None:
    """Return the chunk of a compressed Morton code; None if it is not in the volume."""
    at = [0, 0, 0]
    for dimension, bit in _interleaved(scale.grid):
        at[dimension] |= (number & 1) << bit
        number >>= 1
    x, y, z = at
    return (x, y, z) if not number and scale.holds((x, y, z)) else None


def _interleaved(grid: Three) -> Iterator[tuple[int, int]]:
    """Yield which bit of which dimension is the next of a code."""
    for bit in range(max((count - 1).bit_length() if count else 0 for count in grid)):
        for dimension, count in enumerate(grid):
            if 1 << bit < count:
                yield dimension, bit
