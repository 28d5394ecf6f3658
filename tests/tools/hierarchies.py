"""A hierarchy with every data type, order, fill value and codec that a format has, for conversions."""

from typing import Any, NamedTuple

import numpy as np

import omnizarr
from omnizarr import errors

FORMATS = (1, 2, 3, "3-draft2019", "3-draft2020")
GRID = np.arange(70).reshape(10, 7)


class Case(NamedTuple):
    """An array: what is written into it, and how it is created."""

    values: Any
    options: dict[str, Any]


def case(values, **options):
    values = np.asarray(values)
    chunks = (4, 3) if values.ndim == 2 else (2,) * values.ndim
    return Case(values, {"chunks": chunks, "compressors": None, **options})


def nan_with_payload(dtype):
    size = np.dtype(dtype).itemsize
    word = np.dtype(f"<u{size}")
    quiet = {2: 0x7E01, 4: 0x7FC0_0ABC, 8: 0x7FF8_0000_0000_0ABC}[size]
    return np.array([quiet, 0, quiet], word).view(f"<f{size}")


RECORDS = np.array([(1, 1.5, b"ab"), (-2, np.nan, b""), (3, -0.0, b"c")], [("a", "<i4"), ("b", "<f8"), ("c", "S3")])
NUMBERS = [*"bhilqBHILQ", "e", "f", "d", "F", "D", "?"]
CASES: dict[str, Case] = {
    **{
        f"types/{order}{np.dtype(code).name}": case(GRID.astype(np.dtype(code).newbyteorder(name)), fill_value=1)
        for code in NUMBERS
        for order, name in (("big_", ">"), ("little_", "<"))
        if np.dtype(code).itemsize > 1 or name == "<"
    },
    "types/bytes5": case(np.array([b"a", b"", b"\xff\x00z", b"12345"], "S5")),
    "types/text3": case(np.array(["ä", "", "猫x", "abc"], "<U3")),
    "types/text3_big": case(np.array(["ä", "", "猫x", "abc"], ">U3")),
    "types/raw": case(np.array([b"\0\1\2", b"abc", b"\xff\0\0"], "V3")),
    "types/records": case(RECORDS),
    "types/moments": case(np.array([0, 1, "NaT"], "M8[ns]")),
    "types/moments_big": case(np.array([0, 1, -5], ">M8[D]")),
    "types/durations": case(np.array([0, 1, "NaT"], "m8[s]")),
    "types/string": case(np.array(["a", "ü€", "", "x" * 40], np.dtypes.StringDType())),
    "types/variable_bytes": Case(
        np.array([b"a", b"", b"\xff\0"], object), {"dtype": "bytes", "chunks": (2,), "compressors": None}
    ),
    "fills/nan": case([1.5, np.nan], fill_value=np.nan),
    "fills/infinity": case([1.5, np.nan], fill_value=-np.inf),
    "fills/minus_zero": case([0.0, -0.0], fill_value=-0.0),
    "fills/payload": case(nan_with_payload("f4"), fill_value=nan_with_payload("f4")[0]),
    "fills/largest": case(np.array([1, 2], "u8"), fill_value=2**64 - 1),
    "fills/complex": case([1 + 2j, 0], fill_value=complex(np.nan, -np.inf)),
    "fills/true": case([True, False], fill_value=True),
    "fills/undefined": case([1, 2, 3], fill_value=None),
    "payloads/half": case(nan_with_payload("f2")),
    "payloads/single": case(nan_with_payload("f4")),
    "payloads/double": case(nan_with_payload("f8")),
    "shapes/scalar": case(np.array(2.5)),
    "shapes/empty": case(np.zeros((0, 3), "i2")),
    "shapes/cube": case(np.arange(60).reshape(3, 4, 5)),
    "shapes/one_chunk": case(GRID, chunks=(20, 20)),
    "orders/fortran": case(GRID, order="F"),
    "orders/fortran_blosc": case(
        GRID.astype(">f4"), order="F", compressors={"id": "blosc", "cname": "lz4", "clevel": 5}
    ),
    "orders/transposed": case(
        np.arange(60).reshape(3, 4, 5), filters=[{"name": "transpose", "configuration": {"order": [1, 2, 0]}}]
    ),
    "codecs/zlib": case(GRID, compressors={"id": "zlib", "level": 3}),
    "codecs/gzip": case(GRID, compressors={"id": "gzip", "level": 3}),
    "codecs/bz2": case(GRID, compressors={"id": "bz2", "level": 3}),
    "codecs/lzma": case(GRID, compressors={"id": "lzma", "preset": 1}),
    "codecs/lz4": case(GRID, compressors={"id": "lz4", "acceleration": 1}),
    "codecs/zstd": case(GRID, compressors={"id": "zstd", "level": 3}),
    "codecs/blosc": case(GRID, compressors={"id": "blosc", "cname": "zstd", "clevel": 5, "shuffle": 2}),
    "codecs/crc32c": case(GRID, compressors=[{"name": "crc32c"}]),
    "codecs/delta": case(GRID, filters=[{"id": "delta", "dtype": "<i8", "astype": "<i8"}]),
    "codecs/shuffle": case(GRID, filters=[{"id": "shuffle", "elementsize": 8}]),
    "codecs/auto": case(GRID, compressors="auto"),
    "codecs/shards": case(GRID, chunks=(2, 7), shards=(4, 7)),
    "codecs/shards_transposed": case(
        GRID,
        chunks=(4, 7),
        codecs=[
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": [2, 7],
                    "codecs": [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}],
                    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                },
            }
        ],
    ),
    "grids/rectilinear": case(GRID, chunks=[[3, 3, 4], 7]),
    "names/dimensions": case(GRID, dimension_names=["time", "x"], attributes={"units": "K"}),
    "names/one_without": case(GRID, dimension_names=["time", None]),
    "names/attribute": case(GRID, attributes={"_ARRAY_DIMENSIONS": ["time", "x"], "n": [1, {"a": None}], "é": "ü"}),
    "names/wrong_attribute": case(GRID, attributes={"_ARRAY_DIMENSIONS": "time"}),
}
SPARSE = {"sparse/some": (slice(0, 4), slice(0, 3)), "sparse/none": (slice(0, 0), slice(0, 0))}
"""Arrays of which only a part is written; the rest is the fill value 7."""


def make(store, zarr_format):
    """Write what a format can have; return the cases by path, with the values that any reader must find."""
    made = {}
    if zarr_format != 1:
        omnizarr.create_group(store, zarr_format=zarr_format, attributes={"title": "everything", "n": 1.5})
    for path, (values, options) in CASES.items():
        if path == "fills/payload" and zarr_format in (1, 2):
            continue  # where NaN has no bits
        try:
            array = omnizarr.create_array(
                store, name=path, zarr_format=zarr_format, shape=values.shape, **{"dtype": values.dtype, **options}
            )
        except errors.OmnizarrError:
            continue  # nothing that this format has
        array[...] = values
        made[path] = values
    for path, part in SPARSE.items():
        array = omnizarr.create_array(
            store, name=path, zarr_format=zarr_format, shape=GRID.shape, dtype="i4", chunks=(4, 3), fill_value=7
        )
        array[part] = GRID[part]
        made[path] = np.full(GRID.shape, 7, "i4")
        made[path][part] = GRID[part]
    return made
