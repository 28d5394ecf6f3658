"""Zarr v2 and Zarr v3 as TensorStore 0.1.86 writes them.

python3.12 -m venv env; env/bin/pip install tensorstore==0.1.86 numpy==2.5.5 ml_dtypes==0.6.0
env/bin/python tests/corpus/make/tensorstore_.py
"""

from importlib.metadata import version

import ml_dtypes
import numpy as np
import tensorstore
from recorder import Case

PROGRAM = f"TensorStore {version('tensorstore')}, numpy {np.__version__}"
GRID = np.arange(35).reshape(5, 7)
CUBE = np.arange(120, dtype="i2").reshape(4, 6, 5)
RNG = np.random.default_rng(5)


def case(name):
    return Case("tensorstore", name, PROGRAM)


def write(recording, driver, path, metadata, data, only):
    """Create an array, write a part of `data` to it, open it again and read all."""
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{recording.store}/{path}/"}}
    array = tensorstore.open({**spec, "metadata": metadata}, create=True).result()
    if only is not None:
        array[only].write(data[only]).result()
    return np.asarray(tensorstore.open(spec, open=True).result().read().result())


def record(recording, path, found, data, fill_value, only, **more):
    if only is Ellipsis:
        assert found.astype(data.dtype).tobytes() == np.ascontiguousarray(data).tobytes()
    if data.dtype.type.__module__ == "numpy":
        recording.array(path, found, fill_value, **more)
        return
    bits = f"u{data.dtype.itemsize}"  # a type of ml_dtypes, for which .npy files have no word
    fill_value = None if fill_value is None else np.array(fill_value, data.dtype).view(bits)
    recording.array(path, found.view(bits), fill_value, dtype=data.dtype.name, **more)


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


def v2(recording, path, data, *, dtype=None, fill_value=0, fill=0, only=Ellipsis, chunks=None, **metadata):
    data = np.asarray(data)
    document = {
        "shape": list(data.shape),
        "chunks": list(chunks or ((3, 4) if data.ndim == 2 else (3,) * data.ndim)),
        "dtype": dtype or data.dtype.str,
        "fill_value": fill,
        "compressor": None,
        **metadata,
    }
    found = write(recording, "zarr", path, document, data, only)
    # TensorStore reads in native byte order; what the document says is what Zarr v2 users see.
    dtype = data.dtype if dtype is None else np.dtype(dtype) if dtype != "bfloat16" else data.dtype
    record(recording, path, found.astype(dtype), data, fill_value, only)


def v3(
    recording, path, data, *, data_type=None, fill_value=0, fill=0, only=Ellipsis, chunks=None, codecs=None, **metadata
):
    data = np.asarray(data)
    chunks = list(chunks or ((3, 4) if data.ndim == 2 else (3,) * data.ndim))
    document = {
        "shape": list(data.shape),
        "chunk_grid": named("regular", chunk_shape=chunks),
        "data_type": data_type or data.dtype.name,
        "fill_value": fill,
        **metadata,
    }
    if codecs is not None:
        document["codecs"] = codecs
    found = write(recording, "zarr3", path, document, data, only)
    more = {"attributes": metadata["attributes"]} if "attributes" in metadata else {}
    if "dimension_names" in metadata:
        more["dimension_names"] = metadata["dimension_names"]
    record(recording, path, found, data, fill_value, only, **more)


LITTLE = named("bytes", endian="little")
BIG = named("bytes", endian="big")
CRC = {"name": "crc32c"}
ZSTD = named("zstd", level=3)
GZIP = named("gzip", level=5)


def sharding(chunk_shape, codecs=(LITTLE, ZSTD), index_codecs=(LITTLE, CRC), index_location="end"):
    return named(
        "sharding_indexed",
        chunk_shape=list(chunk_shape),
        codecs=list(codecs),
        index_codecs=list(index_codecs),
        index_location=index_location,
    )


with case("v2") as c:
    for code in ["<i2", ">i4", "<i8", "|u1", ">u2", "<u4", ">u8", "<f2", ">f4", "<f8", ">c8", "<c16"]:
        name = code.replace("<", "little_").replace(">", "big_").replace("|", "")
        if "c" in code:
            v2(c, name, GRID.astype(code), fill=None, fill_value=None)
        else:
            v2(c, name, GRID.astype(code), only=np.s_[:3], fill=3, fill_value=3)
    v2(c, "bool", GRID % 3 == 0, fill=True, fill_value=True, only=np.s_[:, :4])
    v2(c, "bfloat16", GRID.astype(ml_dtypes.bfloat16), dtype="bfloat16", fill=1.5, fill_value=1.5, only=np.s_[3:])
    v2(c, "null_fill", GRID, fill=None, fill_value=None)
    v2(c, "nan_fill", GRID / 2, fill="NaN", fill_value=np.nan, only=np.s_[1:2])
    v2(c, "order_f", GRID, order="F")
    v2(c, "slash", GRID, dimension_separator="/")
    v2(c, "missing", GRID, fill=-7, fill_value=-7, only=None)
    for name, compressor in {
        "blosc": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0},
        "zlib": {"id": "zlib", "level": 5},
        "gzip": {"id": "gzip", "level": 5},
        "bz2": {"id": "bz2", "level": 5},
        "zstd": {"id": "zstd", "level": 5},
    }.items():
        v2(c, name, GRID.astype("<i4"), compressor=compressor)

with case("v3") as c:
    v3(c, "default_codecs", GRID)
    for name in "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split():
        fill = name == "bool" or 3
        v3(c, name, GRID.astype(name), fill=fill, fill_value=fill, only=np.s_[:3])
    v3(
        c,
        "complex64",
        (GRID - 1j).astype("c8"),
        fill=[1.5, "-Infinity"],
        fill_value=complex(1.5, -np.inf),
        only=np.s_[:3],
    )
    v3(c, "complex128", GRID - 1j, fill=[1.5, "NaN"], fill_value=complex(1.5, np.nan), only=np.s_[:3])
    v3(c, "big_endian", GRID.astype("f4"), codecs=[BIG])
    v3(c, "scalar", np.array(42), chunks=())
    v3(c, "zero_length", np.empty((0, 5)), chunks=(1, 2))
    v3(c, "missing", GRID, fill=-7, fill_value=-7, only=None)
    v3(c, "v2_keys", GRID, chunk_key_encoding=named("v2", separator="/"))
    v3(c, "dot_keys", GRID, chunk_key_encoding=named("default", separator="."))
    v3(
        c,
        "named",
        CUBE,
        chunks=(2, 3, 5),
        dimension_names=["t", None, "x"],
        attributes={"units": "K", "n": [1, {"a": None}]},
    )
    v3(c, "nan_fill", GRID / 2, fill="NaN", fill_value=np.nan, only=np.s_[1:2])
    v3(
        c,
        "hex_fill",
        GRID.astype("f4"),
        fill="0x7fc00123",
        fill_value=np.array([0x7FC00123], "u4").view("f4")[0],
        only=None,
    )
    v3(c, "negative_zero_fill", GRID / 2, fill=-0.0, fill_value=-0.0, only=None)
    v3(c, "uint64_fill", GRID.astype("u8"), fill=2**64 - 1, fill_value=2**64 - 1, only=None)
    transpose = named("transpose", order=[2, 0, 1])
    v3(c, "transpose", CUBE, chunks=(2, 3, 4), codecs=[transpose, LITTLE])
    v3(c, "transpose_zstd_crc32c", CUBE, chunks=(2, 3, 4), codecs=[transpose, BIG, ZSTD, CRC])
    v3(c, "gzip", GRID, codecs=[LITTLE, GZIP])
    for cname in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
        blosc = named("blosc", cname=cname, clevel=5, shuffle="bitshuffle", typesize=8, blocksize=0)
        v3(c, f"blosc_{cname}", GRID, codecs=[LITTLE, blosc])

with case("sharding") as c:
    data = RNG.integers(0, 99, (9, 10)).astype("u2")
    for location in ("start", "end"):
        v3(c, f"index_{location}", data, chunks=(6, 8), codecs=[sharding((3, 2), index_location=location)])
    v3(c, "index_plain", data, chunks=(6, 8), codecs=[sharding((3, 2), index_codecs=[LITTLE])])
    v3(c, "index_big", data, chunks=(6, 8), codecs=[sharding((3, 2), index_codecs=[BIG, CRC])])
    v3(c, "nested", data, chunks=(8, 8), codecs=[sharding((4, 4), codecs=[sharding((2, 2), index_location="start")])])
    turn = named("transpose", order=[1, 0])
    v3(c, "inner_transpose", data, chunks=(6, 8), codecs=[sharding((3, 2), codecs=[turn, BIG, GZIP])])
    v3(c, "outer_transpose", data, chunks=(6, 6), codecs=[turn, sharding((3, 2))])
    v3(c, "missing", data, chunks=(6, 8), codecs=[sharding((3, 2))], only=np.s_[:3, 8:10], fill=7, fill_value=7)
    v3(c, "inner_missing", np.where(GRID > 20, GRID, 0), chunks=(5, 8), codecs=[sharding((1, 2))])

with case("small_types") as c:
    numbers = np.array([0, 1, 0.5, 2, 3, 1.5])
    for (
        name
    ) in "bfloat16 float8_e3m4 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz".split():
        data = numbers.astype(getattr(ml_dtypes, name))
        try:
            v3(c, name, data, fill=1.0, fill_value=1.0)
        except ValueError as error:
            print(name, str(error)[:120])
    for name in ("int2", "int4", "uint2", "uint4"):
        data = np.array([0, 1, 1, 0]).astype(getattr(ml_dtypes, name))
        try:
            v3(c, name, data, fill=1, fill_value=1)
        except (ValueError, TypeError) as error:
            print(name, str(error)[:120])
