"""The draft of May 2019 in small: hierarchies written and read from the text alone, without omnizarr.

The text defines documents and chunks, and no keys; keys and entry point are those of the next text, of June 2019:
documents below ``meta/root``, chunks below ``data``. ``python tests/conformance/reference_2019.py DIRECTORY`` writes
the hierarchy `sample`.
"""

import gzip
import itertools
import json
import math
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np

URI = "http://purl.org/zarr/spec/protocol/core/3.0"
CODEC = "http://purl.org/zarr/spec/codec/"
ENTRY = {"zarr_format": URI, "metadata_encoding": "application/json", "extensions": []}
DATA_TYPES = (
    *("bool", "i1", "<i2", "<i4", "<i8", ">i2", ">i4", ">i8", "u1", "<u2", "<u4", "<u8"),
    *("<f2", "<f4", "<f8", ">f2", ">f4", ">f8", "<c8", "<c16", ">c8", ">c16"),
)
"""The table of the text."""
BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "gzip": {"level": 1},
    "zlib": {"level": 1},
    "zstd": {"level": 3},
    "blosc": BLOSC,
}
ENCODE: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 1),
    "zlib": lambda data: zlib.compress(data, 1),
    "zstd": lambda data: numcodecs.Zstd(level=3).encode(data),
    "blosc": lambda data: numcodecs.Blosc(**BLOSC).encode(data),
}
DECODE: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.decompress,
    "zlib": zlib.decompress,
    "zstd": lambda data: numcodecs.Zstd().decode(data),
    "blosc": lambda data: numcodecs.Blosc().decode(data),
}
Values = MutableMapping[str, bytes]


def dtype_of(identifier: str) -> np.dtype[Any]:
    return np.dtype("?" if identifier == "bool" else identifier)


def put(values: Values, key: str, document: object) -> None:
    values[key] = json.dumps(document, allow_nan=False).encode()


def write_group(values: Values, path: str, attributes: Mapping[str, Any] | None = None) -> None:
    """Write the group at `path`: "" is the root, "/a/b" is below it."""
    put(values, f"meta/root{path}.group", {"zarr_format": URI, "extensions": [], "attributes": attributes or {}})


def write_array(
    values: Values,
    path: str,
    data: np.ndarray[Any, Any],
    chunk_shape: Sequence[int],
    *,
    data_type: str,
    layout: str = "C",
    codecs: Sequence[str] = (),
    separator: str | None = None,
    fill_value: Any = None,
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Write the array at `path` with all its chunks; those that hold only `fill_value` are left out."""
    grid: dict[str, Any] = {"type": "regular", "chunk_shape": list(chunk_shape)}
    if separator is not None:
        grid["separator"] = separator
    document = {
        "zarr_format": URI,
        "shape": list(data.shape),
        "data_type": data_type,
        "chunk_grid": grid,
        "chunk_memory_layout": layout,
        "chunk_codecs": [{"codec": CODEC + name, **PARAMETERS[name]} for name in codecs],
        "fill_value": fill_value,
        "extensions": [],
        "attributes": attributes or {},
    }
    put(values, f"meta/root{path}.array", document)
    for coords in grid_of(data.shape, chunk_shape):
        chunk = np.zeros(chunk_shape, dtype_of(data_type))
        part = data[region(coords, chunk_shape)]
        chunk[tuple(map(slice, part.shape))] = part
        if isinstance(fill_value, int) and (part == fill_value).all():
            continue
        encoded = b"".join(np.array(chunk[index], chunk.dtype).tobytes() for index in elements(chunk_shape, layout))
        for name in codecs:
            encoded = bytes(ENCODE[name](encoded))
        values[f"data{path}/{identifier_of(coords, separator or '.')}"] = encoded


def read_array(values: Mapping[str, bytes], path: str) -> np.ndarray[Any, Any]:
    """Return all elements of the array at `path`."""
    document = json.loads(values[f"meta/root{path}.array"])
    assert document["zarr_format"] == URI
    grid, shape = document["chunk_grid"], tuple(document["shape"])
    data = np.zeros(shape, dtype_of(document["data_type"]))
    if document["fill_value"] is not None:
        data[...] = scalar(document["fill_value"])
    for coords in grid_of(shape, grid["chunk_shape"]):
        encoded = values.get(f"data{path}/{identifier_of(coords, grid.get('separator', '.'))}")
        if encoded is None:
            continue
        for codec in reversed(document["chunk_codecs"]):
            encoded = bytes(DECODE[codec["codec"].removeprefix(CODEC)](encoded))
        chunk = np.zeros(grid["chunk_shape"], data.dtype)
        for index, element in zip(
            elements(grid["chunk_shape"], document["chunk_memory_layout"]),
            np.frombuffer(encoded, data.dtype),
            strict=True,
        ):
            chunk[index] = element
        place = region(coords, grid["chunk_shape"])
        data[place] = chunk[tuple(map(slice, data[place].shape))]
    return data


def scalar(fill_value: Any) -> Any:
    if isinstance(fill_value, list):
        return complex(*map(float, fill_value))
    return float(fill_value) if isinstance(fill_value, str) else fill_value


def grid_of(shape: Sequence[int], chunk_shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    counts = (math.ceil(length / size) for length, size in zip(shape, chunk_shape, strict=True))
    return itertools.product(*map(range, counts))


def region(coords: Sequence[int], chunk_shape: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(index * size, (index + 1) * size) for index, size in zip(coords, chunk_shape, strict=True))


def identifier_of(coords: Sequence[int], separator: str) -> str:
    """Return the identifier of a chunk; without dimensions the text makes it empty, and no key: ``0``."""
    return separator.join(map(str, coords)) or "0"


def elements(shape: Sequence[int], layout: str) -> Iterator[tuple[int, ...]]:
    """Yield the places of elements in the order of a layout: the last index is the fastest in C, the first in F."""
    if layout == "C":
        yield from itertools.product(*map(range, shape))
    else:
        yield from (index[::-1] for index in itertools.product(*map(range, reversed(shape))))


def sample(values: Values) -> dict[str, np.ndarray[Any, Any]]:
    """Write a hierarchy with every data type, codec, layout and separator; return path -> elements."""
    written: dict[str, np.ndarray[Any, Any]] = {}

    def add(path: str, data: Any, chunk_shape: Sequence[int], data_type: str = "<i4", **options: Any) -> None:
        written[path] = np.asarray(data, dtype_of(data_type))
        write_array(values, path, written[path], chunk_shape, data_type=data_type, **options)

    put(values, "zarr.json", ENTRY)
    write_group(values, "", {"title": "draft of 2019"})
    write_group(values, "/types")
    rows = np.arange(35).reshape(5, 7)
    for name in DATA_TYPES:
        numbers = rows % 2 if name == "bool" else rows * (1 - 0.5j) if "c" in name else rows - 17 * ("u" not in name)
        add(f"/types/{name.replace('<', 'little-').replace('>', 'big-')}", numbers, (2, 3), name)
    for codecs in ([], *([name] for name in PARAMETERS), ["zlib", "gzip"]):
        for layout in "CF":
            add(f"/codecs/{'-'.join(codecs) or 'none'}-{layout}", rows, (3, 4), codecs=codecs, layout=layout)
    for word, separator in {"dot": ".", "slash": "/", "dash": "-", "colons": "::", "word": "/at/"}.items():
        add(f"/separators/{word}", rows, (2, 3), separator=separator)
    add("/shapes/scalar", 42, ())
    add("/shapes/one", np.arange(10), (4,))
    add("/shapes/three", np.arange(24).reshape(2, 3, 4), (1, 2, 3), layout="F")
    add("/shapes/nothing", np.zeros((0, 3)), (2, 3))
    add("/shapes/large-chunk", rows, (10, 10))
    add("/filled", np.where(rows < 9, rows, 5), (1, 7), fill_value=5, attributes={"a": [1, None, {"b": "c"}]})
    return written


def main(directory: Path) -> None:
    values: dict[str, bytes] = {}
    sample(values)
    for key, value in values.items():
        file = directory / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
