"""Zarr v3 and Zarr v2 as zarr-python 3.4.2 writes them.

python3.12 -m venv env
env/bin/pip install zarr==3.4.2 numcodecs==0.17.1 cast-value-rs==0.5.1 pcodec==1.1.0 zfpy==1.0.1 msgpack
env/bin/python tests/corpus/make/zarr3.py
"""

import json
import warnings

import numcodecs
import numpy as np
import zarr
from recorder import Case
from zarr.codecs import (
    BloscCodec,
    BytesCodec,
    CastValue,
    Crc32cCodec,
    GzipCodec,
    ScaleOffset,
    ShardingCodec,
    TransposeCodec,
    VLenBytesCodec,
    ZstdCodec,
)
from zarr.codecs import numcodecs as nc
from zarr.core.dtype import FixedLengthUTF32, RawBytes, VariableLengthBytes

warnings.simplefilter("ignore")
zarr.config.set({"array.rectilinear_chunks": True})
PROGRAM = f"zarr-python {zarr.__version__}, numcodecs {numcodecs.__version__}, numpy {np.__version__}"
GRID = np.arange(35).reshape(5, 7)
CUBE = np.arange(120, dtype="i2").reshape(4, 6, 5)
RNG = np.random.default_rng(3)
LITTLE = {"chunks": (3, 4), "compressors": None, "fill_value": 0}
NOTHING = np.s_[:0]


def case(name, **options):
    return Case("zarr3", name, PROGRAM, **options)


def native(values):
    """Return `values` in native byte order, in which arrays of Zarr v3 are read."""
    values = np.asanyarray(values)
    return values.astype(values.dtype.newbyteorder("=")) if values.dtype.kind not in "OT" else values


def add(recording, path, data, *, only=Ellipsis, attributes=None, lossy=False, expect=None, **options):
    """Write `data` (only the part `only` of it), read it back, record what was read."""
    data = np.asanyarray(data) if not isinstance(data, np.ndarray) else data
    options = {**LITTLE, **options}
    if data.ndim != 2 and options["chunks"] == LITTLE["chunks"]:
        options["chunks"] = (3,) * data.ndim if data.ndim else ()
    if isinstance(options["fill_value"], str) and options["fill_value"] == "default":
        del options["fill_value"]
    options.setdefault("dtype", data.dtype)
    array = zarr.create_array(
        store=str(recording.store), name=path or None, shape=data.shape, attributes=attributes, **options
    )
    array[only] = data[only]
    array = zarr.open_array(store=str(recording.store), path=path, mode="r", zarr_format=options.get("zarr_format", 3))
    found = np.asanyarray(array[...])
    if not lossy and only is Ellipsis:
        np.testing.assert_array_equal(found, data)
    more = dict(expect or {})
    if options.get("dimension_names"):
        more["dimension_names"] = list(options["dimension_names"])
    if found.dtype.kind in "OT" or options.get("zarr_format") == 2:
        recording.array(path, found, array.fill_value, attributes, **more)
    else:
        recording.array(path, native(found), array.fill_value, attributes, **more)
    return array


def documents(recording, path=""):
    return json.loads((recording.store / path / "zarr.json").read_text())


FIELDS = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3"), ("d", "?")])
RECORDS = np.array([(1, 1.5, b"ab", True), (2, -2.5, b"c", False), (-3, np.inf, b"", True)], dtype=FIELDS)
STRINGS = np.array(["a", "ü€", "", "\N{GRINNING FACE}x", "zarr", "x" * 40], dtype=np.dtypes.StringDType())
BYTES = np.empty(4, dtype=object)
BYTES[:] = [b"", b"\x00\xff", b"abc", b"d" * 30]

# The arrays of which it was checked how many other programs read them.
with case("long_tail") as c:
    add(c, "float32", GRID.astype("f4"), compressors="auto")
    add(c, "bool", GRID % 3 == 0, fill_value=True, only=np.s_[:3])
    add(c, "float16", GRID.astype("f2"))
    add(c, "complex128", GRID - 1j * GRID, fill_value=1 - 2j, only=np.s_[:, 4:])
    add(c, "sharding_index_end", GRID.astype("i4"), chunks=(2, 2), shards=(4, 4))
    add(
        c, "sharding_index_start", GRID.astype("i4"), chunks=(2, 2), shards={"shape": (4, 4), "index_location": "start"}
    )
    nested = ShardingCodec(
        chunk_shape=(2, 4), codecs=[ShardingCodec(chunk_shape=(1, 2), codecs=[BytesCodec(), ZstdCodec()])]
    )
    add(c, "sharding_nested", GRID.astype("i4"), chunks=(4, 8), serializer=nested)
    add(c, "transpose", CUBE, filters=[TransposeCodec(order=(2, 0, 1))], chunks=(2, 3, 4))
    add(c, "blosc", GRID, compressors=BloscCodec())
    add(c, "gzip", GRID, compressors=GzipCodec())
    add(c, "zstd", GRID, compressors=ZstdCodec())
    add(c, "crc32c", GRID, compressors=Crc32cCodec())
    add(c, "v2_keys", GRID, chunk_key_encoding={"name": "v2", "separator": "."})
    add(c, "scalar", np.array(42, dtype="i8"))
    add(c, "string", STRINGS, fill_value="")
    add(c, "fixed_length_utf32", np.array(["a", "ü€", "", "\N{SNOWMAN}"], dtype="U3"), fill_value="?")
    add(c, "null_terminated_bytes", np.array([b"a", b"bc", b"", b"def"], dtype="S3"), fill_value=b"n")
    add(
        c,
        "datetime64",
        np.array(["2001-02-03", "NaT", "1969-12-31"], dtype="M8[s]"),
        fill_value=np.datetime64("NaT", "s"),
    )
    add(c, "timedelta64", np.array([1, -5, 0], dtype="m8[ms]"), fill_value=np.timedelta64(3, "ms"))
    add(c, "struct", RECORDS, fill_value="default")
    add(c, "raw_bytes", np.array([b"\x00\x01", b"\xff\xfe", b"ab"], dtype="V2"), fill_value=np.void(b"\x01\x02"))
    add(c, "rectilinear", GRID, chunks=[[1, 3, 1], [4, 3]])
    add(c, "scale_offset", (1000 + GRID / 2).astype("f4"), filters=[ScaleOffset(offset=1000, scale=2)], fill_value=1000)
    add(c, "cast_value", GRID.astype("f8"), filters=[CastValue(data_type="uint8")])

with case("numeric") as c:
    for name in [
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]:
        kind = np.dtype(name)
        low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else (-0.0, np.inf)
        data = np.array([low, high, 1, 2, 3, 4, 0], dtype=kind)
        for endian in ("little", "big") if kind.itemsize > 1 else ("little",):
            add(c, f"{name}_{endian}", data, chunks=(4,), fill_value=kind.type(3), serializer=BytesCodec(endian=endian))
    add(c, "bool", np.array([True, False, True]), fill_value=False)

with case("fills") as c:
    empty = np.zeros(5)
    nan32 = np.array([0x7FC00123, 0xFFC00001], dtype="u4").view("f4")
    nan64 = np.array([0x7FF8000000000001], dtype="u8").view("f8")
    nan16 = np.array([0x7E01], dtype="u2").view("f2")
    for path, fill in {
        "nan": np.float64(np.nan),
        "infinity": np.float32(np.inf),
        "minus_infinity": np.float16(-np.inf),
        "negative_zero": np.float64(-0.0),
        "nan_payload_f4": nan32[0],
        "negative_nan_payload_f4": nan32[1],
        "nan_payload_f8": nan64[0],
        "nan_payload_f2": nan16[0],
        "float16_third": np.float16(1 / 3),
        "float32_tiny": np.float32(1e-45),
        "float64_third": np.float64(1 / 3),
        "uint64_beyond_2_53": np.uint64(2**64 - 1),
        "int64_beyond_2_53": np.int64(-(2**63) + 1),
        "complex_nan": np.complex64(complex(np.nan, -np.inf)),
        "complex128_negative_zero": np.complex128(complex(-0.0, -0.0)),
        "bool": np.bool_(True),
    }.items():
        add(c, path, empty.astype(fill.dtype), fill_value=fill, only=NOTHING)
    add(c, "string", np.full(3, "x", dtype=np.dtypes.StringDType()), fill_value="nä\n\N{GRINNING FACE}", only=NOTHING)
    add(c, "bytes", BYTES, dtype=VariableLengthBytes(), fill_value=b"\x00\xff", only=NOTHING)
    add(c, "fixed_length_utf32", np.zeros(3, dtype="U4"), fill_value="nä", only=NOTHING)
    add(c, "null_terminated_bytes", np.zeros(3, dtype="S4"), fill_value=b"\xff\n", only=NOTHING)
    add(c, "raw_bytes", np.zeros(3, dtype="V3"), fill_value=np.void(b"\x01\x00\x03"), only=NOTHING)
    add(c, "datetime64", np.zeros(3, dtype="M8[10us]"), fill_value=np.datetime64(7, "10us"), only=NOTHING)
    add(c, "timedelta64_nat", np.zeros(3, dtype="m8[D]"), fill_value=np.timedelta64("NaT", "D"), only=NOTHING)
    add(c, "struct", np.zeros(3, dtype=FIELDS), fill_value=RECORDS[2], only=NOTHING)

with case("layout") as c:
    add(c, "missing_chunks", GRID.astype("i4"), fill_value=-7, only=np.s_[3:, :4])
    add(c, "zero_length", np.empty((0, 5), dtype="i4"), chunks=(1, 2))
    add(c, "chunk_larger_than_shape", GRID.astype("i2"), chunks=(100, 11))
    add(c, "default_keys_dot", GRID, chunk_key_encoding={"name": "default", "separator": "."})
    add(c, "v2_keys_slash", GRID, chunk_key_encoding={"name": "v2", "separator": "/"})
    add(c, "v2_keys_scalar", np.array(3, dtype="i4"), chunk_key_encoding={"name": "v2", "separator": "."})
    add(c, "scalar_missing", np.array(5, dtype="i4"), fill_value=5)
    add(c, "scalar_compressed", np.array(2.5), compressors=[ZstdCodec(), Crc32cCodec()])
    add(c, "dimension_names", CUBE, dimension_names=["t", None, ""], attributes={"units": "K"}, chunks=(2, 3, 5))
    add(c, "write_empty_chunks", np.full((5, 7), 9), fill_value=9, config={"write_empty_chunks": True})
    add(c, "order_f", GRID.astype("i4"), order="F")
    add(c, "auto", np.arange(2000.0), chunks="auto", compressors="auto", fill_value="default")
    add(c, "rectilinear_runs", np.arange(60, dtype="u1"), chunks=[[10] * 3 + [5] * 6])
    add(
        c,
        "rectilinear_missing",
        np.arange(20, dtype="i2").reshape(4, 5),
        chunks=[[3, 1], [1, 1, 3]],
        fill_value=4,
        only=np.s_[:3, 2:],
        compressors=ZstdCodec(),
    )
    for name, shape in {"rectilinear_shrunk": (9,), "rectilinear_grown": (15,)}.items():
        array = zarr.create_array(str(c.store), name=name, shape=(12,), chunks=[[3, 4, 5]], dtype="i2", fill_value=-1)
        array[:] = np.arange(12)
        array.resize(shape)
        print(name, documents(c, name)["chunk_grid"])
        c.array(name, zarr.open_array(str(c.store), path=name, mode="r")[...], array.fill_value)
    add(c, "big_endian_dtype", GRID.astype(">i4"))

with case("sharding") as c:
    data = RNG.integers(0, 99, (9, 10)).astype("u2")
    zstd = [BytesCodec(), ZstdCodec()]
    add(c, "compressed", data, chunks=(3, 2), shards=(6, 8), compressors="auto")
    add(c, "missing_inner_chunks", np.where(data > 60, data, 0), chunks=(1, 2), shards=(3, 6), compressors=ZstdCodec())
    add(c, "missing_shards", data, chunks=(3, 2), shards=(6, 6), fill_value=8, only=np.s_[:2, 7:])
    for location in ("start", "end"):
        for name, index in {
            "crc32c": [BytesCodec(), Crc32cCodec()],
            "plain": [BytesCodec()],
            "big": [BytesCodec(endian="big"), Crc32cCodec()],
        }.items():
            codec = ShardingCodec(chunk_shape=(3, 2), codecs=zstd, index_codecs=index, index_location=location)
            add(c, f"index_{location}_{name}", data, chunks=(6, 8), serializer=codec)
    codec = ShardingCodec(chunk_shape=(3, 2), index_codecs=[TransposeCodec(order=(2, 1, 0)), BytesCodec()])
    add(c, "index_transposed", data, chunks=(6, 8), serializer=codec)
    for order in ("morton", "lexicographic", "colexicographic", "unordered"):
        codec = ShardingCodec(chunk_shape=(3, 2), codecs=zstd, subchunk_write_order=order)
        add(c, f"order_{order}", data, chunks=(6, 8), serializer=codec)
    deep = ShardingCodec(
        chunk_shape=(4, 4),
        codecs=[
            ShardingCodec(
                chunk_shape=(2, 4), codecs=[ShardingCodec(chunk_shape=(1, 2), codecs=zstd, index_location="start")]
            )
        ],
    )
    add(c, "nested_three_deep", data, chunks=(8, 8), serializer=deep)
    add(
        c,
        "outer_transpose",
        data,
        chunks=(6, 6),
        filters=[TransposeCodec(order=(1, 0))],
        serializer=ShardingCodec(chunk_shape=(3, 2), codecs=zstd),
    )
    inner = ShardingCodec(
        chunk_shape=(3, 2), codecs=[TransposeCodec(order=(1, 0)), BytesCodec(endian="big"), GzipCodec(), Crc32cCodec()]
    )
    add(c, "inner_transpose_gzip_crc32c", data, chunks=(6, 8), serializer=inner)
    add(
        c,
        "outer_crc32c",
        data,
        chunks=(6, 8),
        serializer=ShardingCodec(chunk_shape=(3, 2), codecs=zstd),
        compressors=[Crc32cCodec()],
    )
    add(c, "strings", STRINGS, chunks=(2,), shards=(4,), fill_value="")
    add(c, "bool_3d", CUBE % 7 == 0, chunks=(2, 2, 5), shards=(4, 4, 5), compressors=BloscCodec())
    add(c, "float_nan_fill", np.where(GRID > 20, GRID, np.nan), chunks=(1, 7), shards=(4, 7), fill_value=np.nan)
    add(c, "rectilinear_shards", CUBE[0], chunks=(1, 1), shards=[[2, 4], [3, 2]])

with case("codecs") as c:
    data = RNG.integers(0, 1000, (5, 7)).astype("i4")
    for cname in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
        for shuffle in ("noshuffle", "shuffle", "bitshuffle"):
            add(c, f"blosc_{cname}_{shuffle}", data, compressors=BloscCodec(cname=cname, clevel=5, shuffle=shuffle))
    add(
        c,
        "blosc_blocksize",
        data,
        compressors=BloscCodec(cname="lz4", clevel=9, shuffle="shuffle", typesize=4, blocksize=64),
    )
    add(c, "blosc_stored", data, compressors=BloscCodec(clevel=0))
    for level in (0, 1, 9):
        add(c, f"gzip_{level}", data, compressors=GzipCodec(level=level))
    add(c, "zstd_checksum", data, compressors=ZstdCodec(level=5, checksum=True))
    add(c, "zstd_negative", data, compressors=ZstdCodec(level=-3))
    add(c, "several", data, compressors=[GzipCodec(), Crc32cCodec(), ZstdCodec(), Crc32cCodec()])
    add(
        c,
        "transpose_twice",
        CUBE,
        chunks=(2, 3, 4),
        filters=[TransposeCodec(order=(2, 0, 1)), TransposeCodec(order=(1, 0, 2))],
    )
    add(c, "transpose_identity", data, filters=[TransposeCodec(order=(0, 1))])
    add(c, "big_endian_zstd", data, serializer=BytesCodec(endian="big"), compressors=ZstdCodec())

with case("values") as c:
    numbers = np.array([0, 1.5, 2.5, -3.5, 100.4, 7, 127.5, -128, 12])
    add(c, "scale_offset_f8", numbers, filters=[ScaleOffset(offset=-5, scale=0.1)], lossy=True)
    add(c, "scale_offset_i4", GRID.astype("i4"), filters=[ScaleOffset(offset=3, scale=2)], fill_value=5)
    add(c, "scale_only", GRID.astype("f4"), filters=[ScaleOffset(scale=4)])
    add(c, "identity", GRID.astype("f4"), filters=[ScaleOffset()])
    for rounding in ("nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"):
        codec = CastValue(data_type="int8", rounding=rounding, out_of_range="clamp")
        add(c, f"cast_{rounding}", numbers, filters=[codec], lossy=True)
    add(c, "cast_clamp", numbers * 5, filters=[CastValue(data_type="uint8", out_of_range="clamp")], lossy=True)
    add(
        c,
        "cast_wrap",
        np.array([-1, 256, 300, 5, -200]),
        filters=[CastValue(data_type="uint8", out_of_range="wrap")],
        lossy=True,
    )
    add(c, "cast_f4_to_f2", numbers.astype("f4"), filters=[CastValue(data_type="float16")], lossy=True)
    add(c, "cast_i4_to_f8", GRID.astype("i4"), filters=[CastValue(data_type="float64")])
    mapped = CastValue(data_type="uint8", scalar_map={"encode": [["NaN", 255]], "decode": [[255, "NaN"]]})
    add(c, "cast_scalar_map", np.array([1, np.nan, 3, 254]), filters=[mapped], fill_value=np.nan)
    packed = [ScaleOffset(offset=-10, scale=10), CastValue(data_type="int16", rounding="nearest-even")]
    add(
        c,
        "packed",
        np.array([0.1, 0.5, 12.3, -9.9]),
        filters=packed,
        fill_value=-10.0,
        lossy=True,
        compressors=ZstdCodec(),
    )

with case("strings") as c:
    add(c, "string_2d", STRINGS.reshape(2, 3), chunks=(2, 2), fill_value="none", compressors="auto")
    add(c, "string_missing", STRINGS, fill_value="none", only=np.s_[:3])
    add(c, "bytes", BYTES, dtype=VariableLengthBytes(), serializer=VLenBytesCodec(), fill_value=b"")
    add(
        c,
        "bytes_missing",
        BYTES,
        dtype=VariableLengthBytes(),
        serializer=VLenBytesCodec(),
        fill_value=b"n\x00",
        only=np.s_[:3],
        compressors=ZstdCodec(),
    )
    add(
        c,
        "utf32_big",
        np.array(["a", "ü€", "", "\N{SNOWMAN}"], dtype="U3"),
        dtype=FixedLengthUTF32(length=3),
        serializer=BytesCodec(endian="big"),
        fill_value="",
    )
    add(
        c,
        "null_terminated_compressed",
        np.array([b"a", b"\xff\x00b", b"", b"zarr"], dtype="S5"),
        fill_value=b"",
        compressors=BloscCodec(),
    )
    add(
        c,
        "raw_bytes_20",
        np.frombuffer(bytes(range(60)), dtype="V20"),
        dtype=RawBytes(length=20),
        fill_value=np.void(bytes(20)),
    )

with case("datetime") as c:
    moments = np.array([0, 1, -1, 86400, np.iinfo("i8").min])
    for unit in ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s", "generic"]:
        suffix = "" if unit == "generic" else f"[{unit}]"
        for kind in ("M8", "m8"):
            values = moments.view(f"<{kind}{suffix}")
            name = {"M8": "datetime64", "m8": "timedelta64"}[kind]
            try:
                add(c, f"{name}_{unit}", values, fill_value=values[1])
            except (TypeError, ValueError) as error:
                print(f"{name}_{unit}: {error}")
    add(
        c,
        "datetime64_big_endian",
        moments.view("<M8[ns]"),
        fill_value=np.datetime64(0, "ns"),
        serializer=BytesCodec(endian="big"),
    )

with case("struct") as c:
    add(c, "compressed", RECORDS, fill_value=RECORDS[0], compressors=BloscCodec())
    add(c, "missing", RECORDS, fill_value=RECORDS[1], chunks=(2,), only=np.s_[:2])
    add(c, "two_dimensions", np.tile(RECORDS, (2, 1)), fill_value=RECORDS[1], chunks=(2, 2))
    add(c, "big_endian", RECORDS, fill_value=RECORDS[0], serializer=BytesCodec(endian="big"))
    times = np.array(
        [(1, "2020-01-01", "ab"), (2, "1960-05-06", "ü")], dtype=[("i", "u2"), ("t", "M8[D]"), ("s", "U2")]
    )
    add(c, "times_and_text", times, fill_value=times[0])
    deep = np.array([((1, 2.5), 3), ((4, -5.5), 6)], dtype=[("p", [("x", "i2"), ("y", "f4")]), ("n", "u1")])
    add(c, "nested", deep, fill_value=deep[1])
    add(c, "sharded", np.tile(RECORDS, 3), chunks=(2,), shards=(4,), fill_value=RECORDS[1])

with case("numcodecs") as c:
    data = RNG.integers(0, 1000, (5, 7)).astype("i4")
    for name, codec in {
        "blosc": nc.Blosc(cname="lz4", shuffle=1),
        "lz4": nc.LZ4(acceleration=2),
        "zstd": nc.Zstd(level=3),
        "zlib": nc.Zlib(level=5),
        "gzip": nc.GZip(level=5),
        "bz2": nc.BZ2(level=5),
        "lzma": nc.LZMA(preset=1),
        "crc32": nc.CRC32(),
        "crc32_end": nc.CRC32(location="end"),
        "crc32c": nc.CRC32C(),
        "adler32": nc.Adler32(),
        "fletcher32": nc.Fletcher32(),
        "jenkins_lookup3": nc.JenkinsLookup3(initval=3),
    }.items():
        add(c, name, data, compressors=[codec])
    add(c, "shuffle", data, compressors=[nc.Shuffle(elementsize=4), nc.Zlib(level=1)])
    add(c, "delta", data, filters=[nc.Delta(dtype="<i4")])
    add(c, "delta_astype", np.arange(35, dtype="i8").reshape(5, 7), filters=[nc.Delta(dtype="<i8", astype="<i2")])
    add(c, "bitround", (GRID / 7).astype("f4"), filters=[nc.BitRound(keepbits=5)], lossy=True)
    add(
        c,
        "fixedscaleoffset",
        1000 + GRID / 10,
        filters=[nc.FixedScaleOffset(offset=1000, scale=10, dtype="<f8", astype="<u2")],
        fill_value=1000,
        lossy=True,
    )
    add(c, "quantize", GRID / 7, filters=[nc.Quantize(digits=2, dtype="<f8")], lossy=True)
    add(c, "packbits", np.arange(20) % 3 == 0, filters=[nc.PackBits()], chunks=(7,), fill_value=False)
    add(c, "astype", data, filters=[nc.AsType(encode_dtype="<f8", decode_dtype="<i4")])
    add(c, "pcodec", data, serializer=nc.PCodec(level=4))
    add(c, "pcodec_f8", GRID / 7, serializer=nc.PCodec())
    add(c, "zfpy_accuracy", np.sin(GRID), serializer=nc.ZFPY(mode=4, tolerance=1e-3), lossy=True)
    add(c, "zfpy_rate", np.sin(GRID).astype("f4"), serializer=nc.ZFPY(mode=2, rate=16), lossy=True)
    add(
        c,
        "sharded_delta_zlib",
        data,
        chunks=(2, 3),
        shards=(4, 6),
        filters=[nc.Delta(dtype="<i4")],
        compressors=[nc.Zlib(level=1)],
    )

ATTRIBUTES = {"title": "Größe", "list": [1, 2.5, None, True], "nested": {"a": {"b": []}}, "big": 2**63, "empty": ""}
for name in ("groups", "consolidated"):
    with case(name) as c:
        root = zarr.open_group(str(c.store), mode="w", zarr_format=3, attributes=ATTRIBUTES)
        root.create_group("a/b c/ü", attributes={"depth": 3})
        root.create_group("empty")
        add(c, "a/b c/ü/x", GRID, attributes={"units": "K"}, dimension_names=["y", "x"])
        add(c, "top", GRID.astype("f4"), fill_value=np.nan)
        c.group("", ATTRIBUTES, ["a", "empty", "top"])
        c.group("a", members=["b c"])
        c.group("a/b c", members=["ü"])
        c.group("a/b c/ü", {"depth": 3}, ["x"])
        c.group("empty", members=[])
        if name == "consolidated":
            zarr.consolidate_metadata(str(c.store))
            assert "consolidated_metadata" in documents(c)

with case("nan_attributes") as c:
    odd = {"nan": float("nan"), "up": float("inf"), "down": -float("inf"), "list": [float("nan"), 1]}
    root = zarr.open_group(str(c.store), mode="w", zarr_format=3, attributes=odd)
    add(c, "x", GRID.astype("i1"), attributes=odd)
    c.group("", odd, ["x"])

with case("root_array") as c:
    add(c, "", GRID.astype("f8"), compressors="auto", attributes={"units": "m"})

with case("zip", store="store.zip") as c:
    store = zarr.storage.ZipStore(c.store, mode="w")
    root = zarr.create_group(store, zarr_format=3, attributes={"title": "zip"})
    array = root.create_array("g/x", shape=GRID.shape, dtype=GRID.dtype, chunks=(2, 3), shards=(4, 6), fill_value=0)
    array[...] = GRID
    store.close()
    with zarr.storage.ZipStore(c.store, mode="r") as store:
        c.array("g/x", zarr.open_array(store, path="g/x", mode="r")[...], array.fill_value)
    c.group("", {"title": "zip"}, ["g"])

with case("v2") as c:
    root = zarr.open_group(str(c.store), mode="w", zarr_format=2, attributes={"title": "v2"})
    old = {"zarr_format": 2}
    for name in ["int8", ">i2", "<i4", ">i8", "uint8", "<u2", ">u4", "<u8", "<f2", ">f4", "<f8", ">c8", "<c16", "bool"]:
        add(c, f"numeric_{name.replace('<', 'little_').replace('>', 'big_')}", GRID.astype(name), **old)
    add(c, "auto", GRID.astype("f4"), compressors="auto", fill_value="default", attributes={"units": "K"}, **old)
    add(c, "null_fill", GRID, fill_value=None, **old)
    add(c, "nan_fill", GRID.astype("f8"), fill_value=np.nan, only=np.s_[:3], **old)
    add(c, "order_f", GRID, order="F", compressors=numcodecs.Zlib(1), **old)
    add(c, "slash", GRID, chunk_key_encoding={"name": "v2", "separator": "/"}, **old)
    add(c, "scalar", np.array(7), **old)
    add(c, "uint64_fill", np.zeros(3, dtype="u8"), fill_value=2**64 - 1, only=NOTHING, **old)
    add(c, "filters", GRID, filters=[numcodecs.Delta("<i8"), numcodecs.Zlib(1)], compressors=numcodecs.Zstd(1), **old)
    add(c, "shuffle_blosc", GRID, filters=[numcodecs.Shuffle(8)], compressors=numcodecs.Blosc("zstd", 3, 0), **old)
    add(c, "vlen_utf8", STRINGS, dtype=str, fill_value="", **old)
    add(c, "vlen_bytes", BYTES, dtype=VariableLengthBytes(), fill_value=b"", **old)
    add(c, "fixed_text", np.array(["a", "ü€", ""], dtype="U2"), fill_value="", **old)
    add(c, "fixed_bytes", np.array([b"a", b"bc", b""], dtype="S2"), fill_value=b"", **old)
    add(c, "raw_bytes", np.array([b"\x00\x01", b"\xff\xfe"], dtype="V2"), fill_value=np.void(b"ab"), **old)
    add(c, "datetime64", np.array(["2001-02-03", "NaT"], dtype="M8[ns]"), fill_value=np.datetime64("NaT", "ns"), **old)
    add(c, "timedelta64", np.array([1, 2], dtype="m8[s]"), fill_value=np.timedelta64(5, "s"), **old)
    add(c, "struct", RECORDS, fill_value=RECORDS[0], **old)
    add(c, "pcodec", GRID, compressors=numcodecs.PCodec(), **old)
    add(c, "zfpy", np.sin(GRID), compressors=numcodecs.ZFPY(mode=4, tolerance=1e-3), lossy=True, **old)
    add(c, "fletcher32", GRID, filters=[numcodecs.Fletcher32()], **old)
    c.group("", {"title": "v2"}, list(root))
    zarr.consolidate_metadata(str(c.store), zarr_format=2)
