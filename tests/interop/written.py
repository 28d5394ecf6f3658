"""The arrays that omnizarr writes for other programs to read: one table, of which each program takes what it knows."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import omnizarr

GRID = np.arange(70).reshape(10, 7)
CUBE = np.arange(120, dtype="i2").reshape(4, 6, 5)
STRINGS = np.array(["a", "ü€", "", "\N{GRINNING FACE}x", "zarr", "x" * 40], dtype=np.dtypes.StringDType())
RECORDS = np.array(
    [(1, 1.5, b"ab", True), (2, -2.5, b"c", False), (-3, np.inf, b"", True)],
    dtype=[("a", "<i4"), ("b", "<f8"), ("c", "S3"), ("d", "?")],
)
MOMENTS = np.array([0, 1, -1, 86400, np.iinfo("i8").min])
NUMBERS = [
    *["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    *["float16", "float32", "float64", "complex64", "complex128", "bool"],
]


class Written(NamedTuple):
    """One array: its values, and how it is created."""

    values: Any
    options: Mapping[str, Any] = MappingProxyType({})
    only: Any = Ellipsis
    """The part of the values that is written; the rest stays missing and reads as the fill value."""

    def expected(self):
        """Return what any reader must find."""
        if self.only is Ellipsis:
            return self.values
        expected = np.full_like(self.values, self.options["fill_value"])
        expected[self.only] = self.values[self.only]
        return expected


def write(store, written, zarr_format):
    """Write one array with omnizarr, to the root of a new store."""
    values = written.values
    chunks = (4, 3) if values.ndim == 2 else (2,) * values.ndim
    options = {"chunks": chunks, "compressors": None, "fill_value": 0, **written.options}
    array = omnizarr.create_array(
        store=store, shape=values.shape, dtype=values.dtype, zarr_format=zarr_format, **options
    )
    array[written.only] = values[written.only]


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


LITTLE, BIG = named("bytes", endian="little"), named("bytes", endian="big")
CRC32C = {"name": "crc32c"}
ZSTD = named("zstd", level=3, checksum=False)
GZIP = named("gzip", level=5)


def shards(chunk_shape, codecs=(LITTLE, ZSTD), index_codecs=(LITTLE, CRC32C), index_location="end"):
    """Return the codec that makes shards of a chunk."""
    return named(
        "sharding_indexed",
        chunk_shape=list(chunk_shape),
        codecs=list(codecs),
        index_codecs=list(index_codecs),
        index_location=index_location,
    )


def numbers(name):
    kind = np.dtype(name)
    if kind.kind == "b":
        return np.array([True, False, True, True, False])
    low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else (-0.0, np.inf)
    return np.array([low, high, 1, 2, 3], dtype=kind)


# Zarr v3 that every program here reads.
CORE_V3 = {
    **{name: Written(numbers(name)) for name in NUMBERS},
    **{
        f"{name}_big": Written(numbers(name), {"serializer": BIG})
        for name in NUMBERS
        if name not in {"int8", "uint8", "bool"}
    },
    "auto": Written(GRID.astype("f4"), {"chunks": "auto", "compressors": "auto"}),
    "scalar": Written(np.array(42)),
    "zero_length": Written(np.empty((0, 5)), {"chunks": (1, 2)}),
    "chunk_larger_than_shape": Written(GRID, {"chunks": (100, 11)}),
    "missing": Written(GRID, {"fill_value": -7}, np.s_[:4, 3:]),
    "nan_fill": Written(GRID / 2, {"fill_value": np.nan}, np.s_[8:, :3]),
    "infinite_fill": Written(GRID.astype("f4"), {"fill_value": -np.inf}, np.s_[8:, :3]),
    "large_fill": Written(GRID.astype("u8"), {"fill_value": 2**64 - 1}, np.s_[8:, :3]),
    "dot_keys": Written(GRID, {"chunk_key_encoding": {"name": "default", "separator": "."}}),
    "v2_keys": Written(GRID, {"chunk_key_encoding": {"name": "v2", "separator": "."}}),
    "v2_keys_slash": Written(GRID, {"chunk_key_encoding": {"name": "v2", "separator": "/"}}),
    "transpose": Written(CUBE, {"filters": [named("transpose", order=[2, 0, 1])]}),
    "gzip": Written(GRID, {"compressors": GZIP}),
    "zstd": Written(GRID, {"compressors": ZSTD}),
    "crc32c": Written(GRID, {"compressors": CRC32C}),
    "several": Written(GRID, {"compressors": [GZIP, CRC32C, ZSTD]}),
    **{
        f"blosc_{cname}_{shuffle}": Written(
            GRID, {"compressors": named("blosc", cname=cname, clevel=5, shuffle=shuffle, typesize=8, blocksize=0)}
        )
        for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd")
        for shuffle in ("noshuffle", "shuffle", "bitshuffle")
    },
    "shards": Written(GRID, {"chunks": (2, 3), "shards": (4, 6)}),
    "shards_compressed": Written(GRID, {"chunks": (2, 3), "shards": (4, 6), "compressors": ZSTD}),
    "shards_missing": Written(GRID, {"chunks": (2, 3), "shards": (4, 6), "fill_value": -7}, np.s_[:3, 4:]),
    "shards_empty_inner": Written(np.where(GRID > 40, GRID, 0), {"chunks": (1, 2), "shards": (5, 8)}),
    "shards_index_start": Written(GRID, {"chunks": (4, 6), "serializer": shards((2, 3), index_location="start")}),
    "shards_index_plain": Written(GRID, {"chunks": (4, 6), "serializer": shards((2, 3), index_codecs=[LITTLE])}),
    "shards_index_big": Written(GRID, {"chunks": (4, 6), "serializer": shards((2, 3), index_codecs=[BIG, CRC32C])}),
    "shards_nested": Written(GRID, {"chunks": (8, 8), "serializer": shards((4, 4), codecs=[shards((2, 2))])}),
    "shards_inner_transpose": Written(
        GRID, {"chunks": (4, 6), "serializer": shards((2, 3), codecs=[named("transpose", order=[1, 0]), BIG, GZIP])}
    ),
    "dimension_names": Written(CUBE, {"dimension_names": ["t", None, "x"], "attributes": {"units": "K"}}),
}

# Zarr v3 of the extensions.
STRINGS_V3 = {
    "string": Written(STRINGS, {"fill_value": ""}),
    "string_compressed": Written(STRINGS.reshape(2, 3), {"fill_value": "none", "compressors": ZSTD}),
}
TIMES_V3 = {
    f"{kind}_{unit}": Written(MOMENTS.view(f"{kind}[{unit}]"), {"fill_value": np.array("NaT", f"{kind}[{unit}]")[()]})
    for kind in ("M8", "m8")
    for unit in ("D", "s", "ns", "10us")
}
RECTILINEAR_V3 = {"rectilinear": Written(GRID, {"chunks": [[3, 5, 2], [4, 3]]})}
RAW_V3 = {"raw_bytes": Written(np.frombuffer(bytes(range(15)), "V3"), {"fill_value": np.void(b"abc")})}
TEXT_V3 = {
    "fixed_length_utf32": Written(np.array(["a", "ü€", "", "\N{SNOWMAN}"], "U3"), {"fill_value": "?"}),
    "null_terminated_bytes": Written(np.array([b"a", b"bc", b"", b"def"], "S3"), {"fill_value": b"n"}),
}
STRUCT_V3 = {"struct": Written(RECORDS, {"fill_value": RECORDS[1]})}
NUMCODECS_V3 = {
    f"numcodecs_{name}": Written(GRID, {"compressors": named(f"numcodecs.{name}", **configuration)})
    for name, configuration in {
        "zlib": {"level": 5},
        "bz2": {"level": 5},
        "lz4": {"acceleration": 1},
        "lzma": {"preset": 1},
        "shuffle": {"elementsize": 8},
        "crc32": {},
        "adler32": {},
        "fletcher32": {},
    }.items()
}

# Zarr v2 that every program here which reads Zarr v2 reads.
CORE_V2 = {
    **{name: Written(numbers(name)) for name in NUMBERS},
    **{
        f"{name}_big": Written(numbers(np.dtype(name).newbyteorder(">")))
        for name in NUMBERS
        if np.dtype(name).itemsize > 1
    },
    "scalar": Written(np.array(42)),
    "missing": Written(GRID, {"fill_value": -7}, np.s_[:4, 3:]),
    "nan_fill": Written(GRID / 2, {"fill_value": np.nan}, np.s_[8:, :3]),
    "null_fill": Written(GRID, {"fill_value": None}),
    "order_f": Written(GRID, {"order": "F"}),
    "slash": Written(GRID, {"chunk_key_encoding": {"name": "v2", "separator": "/"}}),
    "zlib": Written(GRID, {"compressors": {"id": "zlib", "level": 5}}),
    "gzip": Written(GRID, {"compressors": {"id": "gzip", "level": 5}}),
    "bz2": Written(GRID, {"compressors": {"id": "bz2", "level": 5}}),
    "blosc": Written(GRID, {"compressors": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}}),
}
TAIL_V2 = {
    "auto": Written(GRID.astype("f4"), {"compressors": "auto"}),
    "zstd": Written(GRID, {"compressors": {"id": "zstd", "level": 5}}),
    "lz4": Written(GRID, {"compressors": {"id": "lz4", "acceleration": 1}}),
    "lzma": Written(GRID, {"compressors": {"id": "lzma", "preset": 1}}),
    "delta": Written(GRID, {"filters": [{"id": "delta", "dtype": "<i8"}]}),
    "delta_then_zlib": Written(
        GRID, {"filters": [{"id": "delta", "dtype": "<i8"}, {"id": "zlib", "level": 1}], "compressors": {"id": "zstd"}}
    ),
    "shuffle": Written(GRID, {"filters": [{"id": "shuffle", "elementsize": 8}], "compressors": {"id": "zlib"}}),
    "fletcher32": Written(GRID, {"filters": [{"id": "fletcher32"}]}),
    "order_f_3d": Written(CUBE, {"order": "F", "compressors": {"id": "zlib", "level": 1}}),
    "vlen_utf8": Written(STRINGS, {"fill_value": ""}),
    "fixed_text": Written(np.array(["a", "ü€", ""], "<U2"), {"fill_value": ""}),
    "fixed_text_big": Written(np.array(["a", "ü€", ""], ">U2"), {"fill_value": ""}),
    "fixed_bytes": Written(np.array([b"a", b"bc", b""], "S2"), {"fill_value": b""}),
    "raw_bytes": Written(np.frombuffer(bytes(range(15)), "V3"), {"fill_value": np.void(b"abc")}),
    "datetime64": Written(MOMENTS.view("<M8[ns]"), {"fill_value": np.datetime64("NaT", "ns")}),
    "timedelta64": Written(MOMENTS.view("<m8[s]"), {"fill_value": np.timedelta64(5, "s")}),
    "struct": Written(RECORDS, {"fill_value": RECORDS[1]}),
}
