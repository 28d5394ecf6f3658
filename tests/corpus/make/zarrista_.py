"""Zarr v3 as zarrista 0.1.0 (the Python bindings of zarrs) writes it.

python3.12 -m venv env; env/bin/pip install zarrista==0.1.0 numpy==2.5.5 ml_dtypes==0.6.0
env/bin/python tests/corpus/make/zarrista_.py
"""

import ml_dtypes
import numpy as np
import zarrista
from recorder import Case
from zarrista.store import FilesystemStore

PROGRAM = f"zarrista {zarrista.__version__}, numpy {np.__version__}"
GRID = np.arange(35).reshape(5, 7)
CUBE = np.arange(120, dtype="i2").reshape(4, 6, 5)
RNG = np.random.default_rng(4)
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BYTES = {"name": "bytes"}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": True}}
CRC = {"name": "crc32c"}


def case(name):
    return Case("zarrista", name, PROGRAM)


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


def sharding(chunk_shape, codecs=(LITTLE, ZSTD), index_codecs=(LITTLE, CRC), index_location="end"):
    return named(
        "sharding_indexed",
        chunk_shape=list(chunk_shape),
        codecs=list(codecs),
        index_codecs=list(index_codecs),
        index_location=index_location,
    )


def create(recording, path, shape, data_type, fill, codecs, *, chunks=(3, 4), **more):
    """Create an array from its document, and let zarrista write that."""
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": data_type,
        "chunk_grid": named("regular", chunk_shape=list(chunks)),
        "chunk_key_encoding": named("default", separator="/"),
        "fill_value": fill,
        "codecs": list(codecs),
        "attributes": {},
        **more,
    }
    array = zarrista.Array.from_metadata(document, FilesystemStore(recording.store), f"/{path}")
    array.store_metadata()
    return array


def add(recording, path, data, *codecs, data_type=None, fill=0, fill_value=0, only=Ellipsis, lossy=False, **more):
    """Write `data` (only the part `only` of it), read it back, record what was read."""
    more.setdefault("chunks", (3, 4) if data.ndim == 2 else (3,) * data.ndim)
    array = create(recording, path, data.shape, data_type or data.dtype.name, fill, codecs or [LITTLE], **more)
    array[only] = np.ascontiguousarray(data[only])
    array = zarrista.Array.open(FilesystemStore(recording.store), f"/{path}")
    found = np.asarray(array[...].to_numpy()).reshape(data.shape)
    if not lossy and only is Ellipsis:
        np.testing.assert_array_equal(found, data)
    extra = {"dimension_names": more["dimension_names"]} if "dimension_names" in more else {}
    recording.array(path, found, fill_value, array.attrs, **extra)


def attributes(recording, path):
    """Return the attributes of an array; zarrs adds one of its own."""
    return zarrista.Array.open(FilesystemStore(recording.store), f"/{path}").attrs


def raw(recording, path, data, *codecs, fill=0, fill_value=0, data_type=None, **more):
    """The same for types of ml_dtypes, of which bytes go in and out."""
    name = data_type or data.dtype.name
    more.setdefault("chunks", data.shape)
    array = create(recording, path, data.shape, name, fill, codecs or [LITTLE], **more)
    size = data.dtype.itemsize
    array.store_chunk([0] * data.ndim, zarrista.ArrayBytes(data.tobytes()))
    array = zarrista.Array.open(FilesystemStore(recording.store), f"/{path}")
    found = np.frombuffer(array[...].buffer(), dtype=data.dtype).reshape(data.shape)
    assert found.tobytes() == data.tobytes()
    bits = f"u{size}"
    fill = np.array(fill_value, data.dtype).view(bits)
    recording.array(path, found.view(bits), fill, attributes(recording, path), dtype=data.dtype.name)


with case("numeric") as c:
    for name in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split():
        kind = np.dtype(name)
        low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else (-0.0, np.inf)
        data = np.array([low, high, 1, 2, 3, 4, 0], dtype=kind)
        for endian in ("little", "big") if kind.itemsize > 1 else ("little",):
            add(c, f"{name}_{endian}", data, named("bytes", endian=endian), chunks=(4,), fill=3, fill_value=3)
    add(c, "bool", GRID % 3 == 0, BYTES, fill=True, fill_value=True)
    for name in ("complex64", "complex128"):
        data = (GRID - 1j * GRID).astype(name)
        array = create(c, name, data.shape, name, [1.5, "NaN"], [LITTLE], chunks=data.shape)
        array.store_chunk([0, 0], zarrista.ArrayBytes(data.tobytes()))
        found = np.frombuffer(array[...].buffer(), dtype=name).reshape(data.shape)
        np.testing.assert_array_equal(found, data)
        c.array(name, found, complex(1.5, np.nan), attributes(c, name))

with case("codecs") as c:
    data = RNG.integers(0, 1000, (5, 7)).astype("i4")
    add(c, "gzip", data, LITTLE, named("gzip", level=5))
    add(c, "zstd", data, LITTLE, named("zstd", level=5, checksum=False))
    add(c, "zstd_checksum", data, LITTLE, ZSTD)
    add(c, "crc32c", data, LITTLE, CRC)
    for cname in "blosclz lz4 lz4hc zlib zstd".split():
        for shuffle in ("noshuffle", "shuffle", "bitshuffle"):
            blosc = named("blosc", cname=cname, clevel=5, shuffle=shuffle, typesize=4, blocksize=0)
            add(c, f"blosc_{cname}_{shuffle}", data, LITTLE, blosc)
    add(c, "transpose", CUBE, named("transpose", order=[2, 0, 1]), LITTLE, chunks=(2, 3, 4))
    add(c, "bitround_f4", (GRID / 7).astype("f4"), named("bitround", keepbits=5), LITTLE, lossy=True)
    add(c, "bitround_i4", data, named("bitround", keepbits=3), LITTLE, lossy=True)
    add(c, "reshape", CUBE, named("reshape", shape=[[0, 1], -1]), LITTLE, chunks=(2, 3, 5))
    add(c, "reshape_flat", CUBE, named("reshape", shape=[-1]), LITTLE, ZSTD, chunks=(2, 3, 5))
    add(c, "packbits_bool", GRID % 3 == 0, named("packbits"), fill=False, fill_value=False)
    for padding in ("none", "first_byte", "last_byte"):
        add(c, f"packbits_bool_{padding}", GRID % 3 == 0, named("packbits", padding_encoding=padding), fill=False)
    add(
        c,
        "packbits_u2",
        (data % 1024).astype("u2"),
        named("packbits", first_bit=0, last_bit=9, padding_encoding="first_byte"),
    )
    # One chunk: of a part of a chunk, zarrista 0.1.0 forgets to shift the bits back.
    middle = named("packbits", first_bit=2, last_bit=7)
    add(c, "packbits_u2_middle", (data % 64 * 4).astype("u2"), middle, chunks=(5, 7))
    add(c, "shuffle", data, LITTLE, named("numcodecs.shuffle", elementsize=4), named("gzip", level=1))
    scaled = named("numcodecs.fixedscaleoffset", offset=1000, scale=10, dtype="f8", astype="u2")
    add(c, "fixedscaleoffset", 1000 + GRID / 10, scaled, LITTLE, fill=1000, fill_value=1000, lossy=True)

with case("sharding") as c:
    data = RNG.integers(0, 99, (9, 10)).astype("u2")
    for location in ("start", "end"):
        add(c, f"index_{location}", data, sharding((3, 2), index_location=location), chunks=(6, 8))
        add(
            c,
            f"index_{location}_plain",
            data,
            sharding((3, 2), index_codecs=[LITTLE], index_location=location),
            chunks=(6, 8),
        )
    big = named("bytes", endian="big")
    add(c, "index_big", data, sharding((3, 2), index_codecs=[big, CRC]), chunks=(6, 8))
    add(c, "nested", data, sharding((4, 4), codecs=[sharding((2, 2), index_location="start")]), chunks=(8, 8))
    add(
        c,
        "inner_transpose",
        data,
        sharding((3, 2), codecs=[named("transpose", order=[1, 0]), big, named("gzip", level=1)]),
        chunks=(6, 8),
    )
    add(c, "outer_zstd", data, sharding((3, 2)), ZSTD, chunks=(6, 8))
    add(c, "missing", data, sharding((3, 2)), chunks=(6, 8), only=np.s_[:3, 8:10], fill=7, fill_value=7)
    add(c, "empty_inner_chunks", np.where(GRID > 20, GRID, 0).astype("u2"), sharding((1, 2)), chunks=(5, 8))
    add(c, "packbits", GRID % 3 == 0, sharding((1, 2), codecs=[named("packbits")]), chunks=(5, 8), fill=False)

with case("layout") as c:
    add(c, "v2_keys", GRID, chunk_key_encoding=named("v2", separator="."))
    add(c, "dot_keys", GRID, chunk_key_encoding=named("default", separator="."))
    add(c, "missing_chunks", GRID, only=np.s_[3:, :4], fill=-7, fill_value=-7)
    add(
        c,
        "named",
        CUBE,
        chunks=(2, 3, 5),
        dimension_names=["t", None, "x"],
        attributes={"units": "K", "list": [1, None]},
    )
    rectilinear = named("rectilinear", kind="inline", chunk_shapes=[[1, 3, 1], [4, 3]])
    add(c, "rectilinear", GRID, chunk_grid=rectilinear)
    runs = named("rectilinear", kind="inline", chunk_shapes=[2, [[3, 2], 1]])
    add(c, "rectilinear_runs", GRID, chunk_grid=runs)
    array = create(c, "scalar", (), "int64", 5, [LITTLE], chunks=())
    array.store_chunk([], zarrista.ArrayBytes(np.int64(42).tobytes()))
    c.array("scalar", np.int64(42), 5, attributes(c, "scalar"))
    create(c, "scalar_missing", (), "int64", 5, [LITTLE], chunks=())
    c.array("scalar_missing", np.int64(5), 5, attributes(c, "scalar_missing"))

with case("fills") as c:

    def fill(path, data_type, document, expected):
        array = create(c, path, (5,), data_type, document, [LITTLE], chunks=(3,))
        found = np.frombuffer(array[...].buffer(), dtype=np.asarray(expected).dtype)
        assert found.tobytes() == np.full(5, expected).tobytes()
        c.array(path, found, expected, attributes(c, path))

    fill("nan", "float64", "NaN", np.float64(np.nan))
    fill("minus_infinity", "float32", "-Infinity", np.float32(-np.inf))
    fill("hex_f4", "float32", "0x7fc00123", np.array([0x7FC00123], "u4").view("f4")[0])
    fill("hex_f8", "float64", "0x3ff0000000000000", np.float64(1))
    fill("hex_f2", "float16", "0x7e01", np.array([0x7E01], "u2").view("f2")[0])
    fill("negative_zero", "float64", -0.0, np.float64(-0.0))
    fill("uint64_max", "uint64", 2**64 - 1, np.uint64(2**64 - 1))
    fill("int64_min", "int64", -(2**63), np.int64(-(2**63)))
    fill("complex_hex", "complex64", ["0x7fc00123", "Infinity"], np.array([0x7FC00123, 0x7F800000], "u4").view("c8")[0])

with case("raw") as c:
    data = np.frombuffer(bytes(range(12)), dtype="V3")
    array = create(c, "r24", (4,), "r24", [1, 0, 255], [BYTES], chunks=(4,))
    array.store_chunk([0], zarrista.ArrayBytes(data.tobytes()))
    assert bytes(array[...].buffer()) == data.tobytes()
    c.array("r24", data, np.void(b"\x01\x00\xff"), attributes(c, "r24"))

with case("variable") as c:
    words = ["a", "ü€", "", "\N{GRINNING FACE}x"]
    for path, data_type, codec, fill, items in [
        ("string", "string", "vlen-utf8", "none", [word.encode() for word in words]),
        ("bytes", "bytes", "vlen-bytes", [0, 255], [b"", b"\x00\xff", b"abc", b"d" * 30]),
    ]:
        array = create(c, path, (6,), data_type, fill, [named(codec), ZSTD], chunks=(4,))
        offsets = np.cumsum([0, *map(len, items)]).tolist()
        array.store_chunk([0], zarrista.ArrayBytes(b"".join(items), offsets=offsets))
        if data_type == "string":
            c.array(
                path, np.array([*words, "none", "none"], dtype=np.dtypes.StringDType()), "none", attributes(c, path)
            )
        else:
            values = np.empty(6, dtype=object)
            values[:] = [*items, b"\x00\xff", b"\x00\xff"]
            c.array(path, values, b"\x00\xff", attributes(c, path))
        print(path, array[...].to_numpy())

with case("datetime") as c:
    moments = np.array([0, 1, -1, 86400, np.iinfo("i8").min])
    for kind, code in {"datetime64": "M8", "timedelta64": "m8"}.items():
        for unit, scale in (("s", 1), ("ns", 1), ("D", 1), ("m", 10)):
            data_type = named(f"numpy.{kind}", unit=unit, scale_factor=scale)
            array = create(c, f"{kind}_{scale}{unit}", (5,), data_type, "NaT", [LITTLE], chunks=(5,))
            array.store_chunk([0], zarrista.ArrayBytes(moments.tobytes()))
            found = np.frombuffer(array[...].buffer(), dtype="i8").view(f"{code}[{scale}{unit}]")
            path = f"{kind}_{scale}{unit}"
            c.array(path, found, np.array("NaT", found.dtype), attributes(c, path))

with case("small_types") as c:
    numbers = np.array([0, 1, -1, 0.5, 2, 3])
    raw(c, "bfloat16", numbers.astype(ml_dtypes.bfloat16), fill=0.5, fill_value=0.5)
    for name in "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn".split():
        data = np.abs(numbers[1:]).astype(getattr(ml_dtypes, name))
        raw(c, name, data, BYTES, fill=1.0, fill_value=1.0)
    for name in "int2 uint2 int4 uint4".split():
        data = np.array([0, 1] if name.endswith("2") else [0, 1, 7, 3]).astype(getattr(ml_dtypes, name))
        raw(c, name, data, BYTES, fill=1, fill_value=1)
        raw(c, f"{name}_packbits", data, named("packbits"), fill=1, fill_value=1)
