"""The numbers that all libraries read and write, and the documents that say how they are stored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import AnyArray, Dataset

JSON = dict[str, Any]
VARIABLE = "t"
"""The array in each of the groups that are joined."""
DIMENSIONS = ("time", "y", "x")
LEVEL = {"zstd": 3, "gzip": 5, "blosc": 5}


def save_values(dataset: Dataset, path: Path) -> None:
    """Write the values of an array to a .npy file, to be mapped by all workers.

    float32 is a walk in steps of 1/16, as a sensor of limited precision sees one; uint16 is a smooth volume under the
    noise of a camera. Both shrink to between a half and a fifth with the usual codecs.
    """
    out = np.lib.format.open_memmap(path, mode="w+", dtype=dataset.dtype, shape=dataset.shape)
    rng = np.random.default_rng(7)
    planes = max(1, 2**22 * len(out) // out.size)
    smooth = sum(
        np.sin(np.arange(length) / (20 + 9 * axis)).reshape([-1 if d == axis else 1 for d in range(out.ndim)])
        for axis, length in enumerate(dataset.shape)
    )
    for begin in range(0, len(out), planes):
        part = out[begin : begin + planes]
        if dataset.dtype == "uint16":
            part[...] = smooth[begin : begin + planes] * 300 + 1000 + rng.integers(0, 24, part.shape, dtype=np.uint8)
        else:
            steps = rng.integers(-3, 4, part.shape, dtype=np.int8)
            np.cumsum(steps, axis=-1, dtype=np.float32, out=part)
            part /= 16
    out.flush()


def load_values(path: Path) -> AnyArray:
    """Map them, as a plain array whose pages exist already."""
    values: AnyArray = np.asarray(np.load(path, mmap_mode="r"))
    values.reshape(-1)[:: 4096 // values.itemsize].max()
    return values


def array_document(dataset: Dataset) -> JSON:
    """Return the metadata document of an array, in the terms of the specification."""
    itemsize = np.dtype(dataset.dtype).itemsize
    if dataset.zarr_format == 2:
        compressor: dict[str, JSON | None] = {
            "raw": None,
            "blosc": {"id": "blosc", "cname": "lz4", "clevel": LEVEL["blosc"], "shuffle": 1, "blocksize": 0},
            "zstd": {"id": "zstd", "level": LEVEL["zstd"]},
            "gzip": {"id": "gzip", "level": LEVEL["gzip"]},
        }
        return {
            "zarr_format": 2, "shape": dataset.shape, "chunks": dataset.chunks, "dtype": np.dtype(dataset.dtype).str,
            "compressor": compressor[dataset.codec], "filters": None, "fill_value": 0, "order": "C",
            "dimension_separator": ".",
        }  # fmt: skip
    little = {"name": "bytes", "configuration": {"endian": "little"}}
    zstd = {"name": "zstd", "configuration": {"level": LEVEL["zstd"], "checksum": False}}
    blosc = {"cname": "lz4", "clevel": LEVEL["blosc"], "shuffle": "shuffle", "typesize": itemsize, "blocksize": 0}
    codecs: list[JSON] = {
        "raw": [little],
        "blosc": [little, {"name": "blosc", "configuration": blosc}],
        "zstd": [little, zstd],
        "gzip": [little, {"name": "gzip", "configuration": {"level": LEVEL["gzip"]}}],
        "zstd+crc32c": [little, zstd, {"name": "crc32c"}],
    }[dataset.codec]
    if dataset.shards:
        configuration = {
            "chunk_shape": dataset.chunks, "codecs": codecs, "index_codecs": [little, {"name": "crc32c"}],
            "index_location": "end",
        }  # fmt: skip
        codecs = [{"name": "sharding_indexed", "configuration": configuration}]
    return {
        "zarr_format": 3, "node_type": "array", "shape": dataset.shape, "data_type": dataset.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": dataset.files}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0, "codecs": codecs, "attributes": {},
    }  # fmt: skip


def create(dataset: Dataset, path: Path) -> None:
    """Make the directory of an array without chunks."""
    path.mkdir(parents=True)
    name = ".zarray" if dataset.zarr_format == 2 else "zarr.json"
    (path / name).write_text(json.dumps(array_document(dataset)))


def create_root(zarr_format: int, path: Path) -> None:
    """Make a group of a directory, for those who open arrays by way of one."""
    name = ".zgroup" if zarr_format == 2 else "zarr.json"
    (path / name).write_text(json.dumps({"zarr_format": zarr_format, "node_type": "group"}))


def node(dataset: Dataset) -> Dataset:
    """Return one of the arrays in a group that `dataset` describes: as many as it has rows."""
    return Dataset("node", dataset.shape[1:], dataset.chunks[1:], dataset.codec, dataset.dtype)


def node_names(dataset: Dataset) -> list[str]:
    """Return the names of the arrays in that group."""
    return [f"a{number:04}" for number in range(dataset.shape[0])]


def create_group(dataset: Dataset, path: Path, *, consolidated: bool) -> None:
    """Make that group; consolidated metadata are in it as zarr-python writes them."""
    document = array_document(node(dataset))
    names = node_names(dataset)
    for name in names:
        create(node(dataset), path / name)
    group: JSON = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    if consolidated:
        inline = {"kind": "inline", "must_understand": False, "metadata": dict.fromkeys(names, document)}
        group["consolidated_metadata"] = inline
    (path / "zarr.json").write_text(json.dumps(group))


def is_group(dataset: Dataset, path: Path) -> bool:
    """Tell if that group is there, by looking into the files."""
    shape = list(node(dataset).shape)
    documents = {name: json.loads((path / name / "zarr.json").read_bytes()) for name in node_names(dataset)}
    return all(document["shape"] == shape and document["node_type"] == "array" for document in documents.values())


def create_sources(dataset: Dataset, path: Path, values: AnyArray) -> None:
    """Make groups with one array each, which together are `dataset`: one for each of its rows; raw."""
    shape = (1, *dataset.shape[1:])
    document = array_document(replace(dataset, shape=shape)) | {"dimension_names": DIMENSIONS}
    inline = {"kind": "inline", "must_understand": False, "metadata": {VARIABLE: document}}
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": inline}
    texts = json.dumps(document), json.dumps(group)
    for name, row in zip(source_names(dataset), values, strict=True):
        chunk = path / name / VARIABLE / "c" / "0" / "0" / "0"
        chunk.parent.mkdir(parents=True)
        chunk.write_bytes(row.tobytes())
        (path / name / VARIABLE / "zarr.json").write_text(texts[0])
        (path / name / "zarr.json").write_text(texts[1])


def source_names(dataset: Dataset) -> list[str]:
    """Return the names of those groups."""
    return [f"s{number:05}" for number in range(dataset.shape[0])]
