"""Zarr v2 as zarr-python 2.18.7 writes it.

python3.11 -m venv env; env/bin/pip install zarr==2.18.7 numcodecs==0.15.2 msgpack crc32c 'pcodec<0.4' zfpy==1.0.1
env/bin/python tests/corpus/make/zarr2.py
"""

import warnings

import numcodecs
import numpy as np
import zarr
from numcodecs import (
    BZ2,
    CRC32,
    JSON,
    LZ4,
    LZMA,
    Adler32,
    AsType,
    Base64,
    BitRound,
    Blosc,
    Categorize,
    Delta,
    FixedScaleOffset,
    Fletcher32,
    GZip,
    JenkinsLookup3,
    MsgPack,
    PackBits,
    Pickle,
    Quantize,
    Shuffle,
    VLenArray,
    VLenUTF8,
    Zlib,
    Zstd,
)
from numcodecs.checksum32 import CRC32C
from numcodecs.pcodec import PCodec
from numcodecs.zfpy import ZFPY
from recorder import Case

warnings.simplefilter("ignore")
numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE = True  # we read what we wrote
PROGRAM = f"zarr-python {zarr.__version__}, numcodecs {numcodecs.__version__}, numpy {np.__version__}"
LOSSY = {"quantize", "bitround", "fixedscaleoffset", "zfpy_accuracy", "zfpy_rate", "zfpy_precision"}
GRID = np.arange(35).reshape(5, 7)
RNG = np.random.default_rng(2)
DEFAULTS = {"chunks": (3, 4), "compressor": None, "fill_value": 0}


def case(name, **options):
    return Case("zarr2", name, PROGRAM, **options)


def objects(*values, shape=None):
    array = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = value
    return array if shape is None else array.reshape(shape)


def add(recording, root, path, data, *, only=Ellipsis, attributes=None, expect=None, **options):
    """Write `data` (only the part `only` of it), read it back, record what was read."""
    data = np.asanyarray(data)
    options = {**DEFAULTS, **options}
    if data.ndim != 2 and "chunks" not in (set(options) - set(DEFAULTS)) and options["chunks"] == DEFAULTS["chunks"]:
        options["chunks"] = (3,) * data.ndim if data.ndim else ()
    array = zarr.create(
        shape=data.shape,
        dtype=options.pop("dtype", data.dtype),
        store=root.store if isinstance(root, zarr.Group) else root,
        path=path,
        overwrite=False,
        **options,
    )
    array[only] = data[only]
    if attributes:
        array.attrs.update(attributes)
    found = array[...]
    if path.rpartition("/")[2] not in LOSSY and not data.dtype.hasobject and only is Ellipsis:
        np.testing.assert_array_equal(found, data.astype(found.dtype))
    recording.array(path, found, array.fill_value, attributes, **(expect or {}))
    return array


def text(recording, path, values, shape=None, fill_value=""):
    """Expect variable-length strings."""
    values = np.array(values, dtype=np.dtypes.StringDType())
    recording.array(path, values if shape is None else values.reshape(shape), fill_value)


STRUCTURE = np.array(
    [(1, 1.5, b"ab"), (2, -2.5, b"c"), (-3, np.inf, b"")], dtype=[("a", "<i4"), ("b", "<f8"), ("c", "S3")]
)
NESTED = np.array(
    [((1, 2.5), 3, [1, 2]), ((-1, -2.5), 4, [3, 4])],
    dtype=[("p", [("x", "<i2"), ("y", "<f4")]), ("n", "u1"), ("v", "<i4", (2,))],
)
SUBARRAY = np.array(
    [(1, [[1, 2, 3], [4, 5, 6]]), (2, [[7, 8, 9], [10, 11, 12]])], dtype=[("id", "<i8"), ("m", "<f4", (2, 3))]
)
RAGGED = objects(np.array([1, 2, 3]), np.array([4]), np.array([], dtype="i8"), np.arange(5))
WORDS = np.array(["red", "green", "blue", "red", "", "green"], dtype=object)

# The 27 arrays that were compared across programs.
with case("long_tail") as c:
    root = zarr.open_group(str(c.store), mode="w")
    add(c, root, "f4", GRID.astype("f4"))
    add(c, root, "big_endian_i4", GRID.astype(">i4"))
    add(c, root, "blosc", GRID.astype("f8"), compressor=Blosc())
    add(c, root, "null_fill", GRID.astype("i2"), fill_value=None)
    add(c, root, "slash_separator", GRID.astype("i4"), dimension_separator="/")
    add(c, root, "order_f", GRID.astype("i4"), order="F", compressor=Zlib(1))
    add(c, root, "bool", GRID % 3 == 0, fill_value=True, only=np.s_[:3])
    add(c, root, "f2", GRID.astype("f2"))
    add(c, root, "complex128", GRID - 1j * GRID, fill_value=1 - 2j, only=np.s_[:, 4:])
    add(c, root, "scalar", np.array(42, dtype="i8"))
    add(c, root, "fixed_bytes", np.array([b"a", b"bc", b"", b"de"], dtype="S2"), fill_value=b"")
    add(c, root, "fixed_text", np.array(["a", "ü€", "", "\N{SNOWMAN}"], dtype="<U2"), fill_value="")
    array = add(c, root, "vlen_utf8", WORDS, dtype=object, object_codec=VLenUTF8(), fill_value="")
    text(c, "vlen_utf8", array[...])
    add(c, root, "datetime64", np.array(["2001-02-03", "NaT", "1969-12-31"], dtype="M8[s]"), fill_value=0)
    add(c, root, "structured", STRUCTURE, fill_value=None)
    add(c, root, "structured_nested", NESTED, fill_value=None)
    add(
        c,
        root,
        "object_json2",
        objects({"a": [1, None]}, "text", 3, [1.5, True]),
        dtype=object,
        object_codec=JSON(),
        fill_value=None,
    )
    add(
        c,
        root,
        "object_pickle",
        objects((1, 2), b"raw", {"k": "v"}, None),
        dtype=object,
        object_codec=Pickle(),
        fill_value=None,
        expect={"open": {"allow_pickle": True}},
    )
    array = add(
        c,
        root,
        "categorize",
        WORDS,
        dtype=object,
        filters=[Categorize(["red", "green", "blue"], dtype=object)],
        fill_value="",
    )
    text(c, "categorize", array[...])
    add(c, root, "vlen_array", RAGGED, dtype=object, object_codec=VLenArray("<i8"), fill_value=None)
    add(c, root, "delta", GRID.astype("i4"), filters=[Delta("i4")])
    add(c, root, "quantize", GRID / 7, filters=[Quantize(2, "f8")])
    add(c, root, "zlib", GRID.astype("i4"), compressor=Zlib(9))
    add(c, root, "bz2", GRID.astype("i4"), compressor=BZ2(9))
    add(c, root, "zstd", GRID.astype("i4"), compressor=Zstd(3))
    add(c, root, "lz4", GRID.astype("i4"), compressor=LZ4())
    add(c, root, "lzma", GRID.astype("i4"), compressor=LZMA())
    c.group("", members=list(root))

with case("numeric") as c:
    root = zarr.open_group(str(c.store), mode="w")
    for code in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]:
        for order in "<>" if int(code[1:]) > 1 else "|":
            kind = np.dtype(order + code)
            low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else (-0.0, np.inf)
            name = {"<": "little_", ">": "big_", "|": ""}[order] + code
            data = np.array([low, high, 1, 2, 3, 4, 0], dtype=kind)
            add(c, root, name, data, chunks=(4,), fill_value=kind.type(3))

with case("layout") as c:
    root = zarr.open_group(str(c.store), mode="w")
    add(c, root, "missing_chunks", GRID.astype("i4"), fill_value=-7, only=np.s_[3:, :4])
    add(c, root, "all_missing", GRID.astype("f4"), fill_value=2.5, only=np.s_[:0])
    add(c, root, "zero_length", np.empty((0, 5), dtype="i4"), chunks=(1, 2))
    add(c, root, "chunk_larger_than_shape", GRID.astype("i2"), chunks=(100, 11))
    add(c, root, "one_chunk", GRID.astype("i2"), chunks=(5, 7))
    add(
        c,
        root,
        "order_f_3d",
        np.arange(60, dtype=">u2").reshape(3, 4, 5),
        chunks=(2, 3, 4),
        order="F",
        compressor=Zlib(1),
    )
    add(
        c,
        root,
        "order_f_slash_delta",
        GRID.astype("i4"),
        order="F",
        dimension_separator="/",
        filters=[Delta("i4")],
        compressor=Zstd(1),
    )
    add(c, root, "scalar_f8", np.array(2.5), compressor=Zlib(1))
    add(c, root, "scalar_missing", np.array(5, dtype="i4"), fill_value=5, write_empty_chunks=False)
    add(c, root, "four_dimensions", np.arange(36, dtype="u1").reshape(2, 3, 2, 3), chunks=(1, 2, 2, 3))
    add(c, root, "long_1d", np.arange(50, dtype="i2"), chunks=(7,))
    add(
        c,
        root,
        "write_empty_chunks_false",
        np.where(GRID > 20, GRID, 9).astype("i4"),
        fill_value=9,
        write_empty_chunks=False,
    )

with case("fills") as c:
    root = zarr.open_group(str(c.store), mode="w")
    none = np.s_[:0]
    empty = np.zeros(5)
    add(c, root, "nan", empty.astype("f4"), fill_value=np.nan, only=none)
    add(c, root, "infinity", empty, fill_value=np.inf, only=none)
    add(c, root, "minus_infinity", empty, fill_value=-np.inf, only=none)
    add(c, root, "negative_zero", empty, fill_value=-0.0, only=none)
    add(c, root, "float16_third", empty.astype("f2"), fill_value=np.float16(1 / 3), only=none)
    add(c, root, "u8_beyond_2_53", empty.astype("u8"), fill_value=2**64 - 1, only=none)
    add(c, root, "i8_beyond_2_53", empty.astype("i8"), fill_value=-(2**63) + 1, only=none)
    add(c, root, "complex_nan", empty.astype("c8"), fill_value=complex(np.nan, -np.inf), only=none)
    add(c, root, "bool_true", empty.astype("?"), fill_value=True, only=none)
    add(c, root, "fixed_bytes", np.zeros(3, dtype="S4"), fill_value=b"\x00\xff\n", only=none)
    add(c, root, "fixed_text", np.zeros(3, dtype="<U4"), fill_value="nä", only=none)
    add(c, root, "fixed_text_big_endian", np.zeros(3, dtype=">U4"), fill_value="nä", only=none)
    add(c, root, "void", np.zeros(3, dtype="V3"), fill_value=np.void(b"\x01\x02\x03"), only=none)
    add(c, root, "structured", np.zeros(3, dtype=STRUCTURE.dtype), fill_value=STRUCTURE[1], only=none)
    add(c, root, "structured_nested", np.zeros(3, dtype=NESTED.dtype), fill_value=NESTED[1], only=none)
    add(c, root, "datetime64", np.zeros(3, dtype="M8[ns]"), fill_value=np.datetime64("2020-01-01", "ns"), only=none)
    add(c, root, "datetime64_nat", np.zeros(3, dtype="M8[D]"), fill_value=np.datetime64("NaT", "D"), only=none)
    add(c, root, "timedelta64", np.zeros(3, dtype="m8[us]"), fill_value=np.timedelta64(-5, "us"), only=none)

with case("datetime") as c:
    root = zarr.open_group(str(c.store), mode="w")
    moments = np.array([0, 1, -1, 86400, np.iinfo("i8").min])
    for unit in ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s"]:
        add(c, root, f"datetime64_{unit}", moments.view(f"<M8[{unit}]"))
        add(c, root, f"timedelta64_{unit}", moments.view(f"<m8[{unit}]"))
    add(c, root, "datetime64_big_endian", moments.astype(">i8").view(">M8[ns]"))
    add(c, root, "timedelta64_big_endian", moments.astype(">i8").view(">m8[ms]"), compressor=Blosc("zstd"))

with case("strings") as c:
    root = zarr.open_group(str(c.store), mode="w")
    words = np.array(["a", "ü€", "", "\N{GRINNING FACE}x", "zarr"])
    add(c, root, "text_little", words.astype("<U5"), compressor=Zlib(1), fill_value="")
    add(c, root, "text_big", words.astype(">U5"), fill_value="")
    add(c, root, "bytes", np.array([b"a", b"\xff\x00b", b"", b"zarr"], dtype="S5"), fill_value=b"", compressor=Blosc())
    add(c, root, "text_zero_fill", words.astype("<U5"))
    add(c, root, "raw_void", np.array([b"\x00\x01", b"\xff\xfe", b"ab"], dtype="V2"), fill_value=None)
    array = add(
        c,
        root,
        "vlen_utf8_2d",
        objects(*["", "a", "bb", "ü", "\N{GRINNING FACE}", "x" * 30], shape=(2, 3)),
        dtype=object,
        object_codec=VLenUTF8(),
        compressor=Zstd(1),
        fill_value="",
        chunks=(2, 2),
    )
    text(c, "vlen_utf8_2d", array[...].ravel(), (2, 3))
    # A number cannot be the fill value of strings; readers do not agree on its meaning.
    array = add(c, root, "vlen_utf8_zero_fill", WORDS, dtype=str, compressor=Blosc())
    text(c, "vlen_utf8_zero_fill", array[...])
    del c.document["nodes"]["vlen_utf8_zero_fill"]["fill_value"]
    array = add(c, root, "vlen_utf8_missing", WORDS, dtype=str, fill_value="none", only=np.s_[:3])
    text(c, "vlen_utf8_missing", array[...], fill_value="none")
    add(
        c,
        root,
        "vlen_bytes",
        objects(b"", b"\x00\xff", b"abc", b"d" * 20),
        dtype=bytes,
        fill_value=None,
        compressor=Blosc(),
    )

with case("structured") as c:
    root = zarr.open_group(str(c.store), mode="w")
    packed = np.dtype([("a", "i1"), ("b", "<f8"), ("c", "<U2"), ("d", "?"), ("t", "<M8[s]")])
    data = np.zeros(4, dtype=packed)
    data["a"], data["b"], data["c"], data["t"] = (
        [1, -2, 3, 4],
        [0.5, -np.inf, -0.0, 1e300],
        ["x", "ü", "", "yz"],
        np.arange(4),
    )
    add(c, root, "packed", data, fill_value=None)
    add(c, root, "packed_compressed", data, fill_value=None, compressor=Blosc("lz4", shuffle=2))
    big = np.array([(1, 2.5), (3, -4.5)], dtype=[("a", ">i4"), ("b", ">f4")])
    add(c, root, "big_endian", big, fill_value=big[0])
    mixed = np.array([(1, 2.5), (3, -4.5)], dtype=[("a", "<i4"), ("b", ">f4")])
    add(c, root, "mixed_endian", mixed, fill_value=None)
    add(c, root, "subarray", SUBARRAY, fill_value=None)
    add(c, root, "zero_fill", STRUCTURE, only=np.s_[:0])
    add(
        c,
        root,
        "deep",
        np.array(
            [(((1, 2), 3.0), b"x")], dtype=[("q", [("r", [("s", "u1"), ("t", ">u2")]), ("u", "<f4")]), ("v", "S1")]
        ),
        fill_value=None,
    )
    add(c, root, "two_dimensions", np.tile(STRUCTURE, (2, 1)), fill_value=None, order="F", chunks=(2, 2))
    # Padding becomes a field: the document says ["", "|V7"], which NumPy names "f1".
    aligned = np.dtype([("a", "i1"), ("b", "<i8")], align=True)
    padded = np.zeros(3, dtype=[("a", "i1"), ("f1", "V7"), ("b", "<i8")])
    padded["a"], padded["b"] = [1, 2, 3], [4, 5, 6]
    add(c, root, "padded", padded, dtype=aligned, fill_value=None)

with case("objects") as c:
    root = zarr.open_group(str(c.store), mode="w")
    things = objects({"a": [1, None]}, "text", 3, [1.5, True], None, "ü")
    more = {"dtype": object, "fill_value": None}
    add(c, root, "json2", things, object_codec=JSON(), compressor=Zlib(1), **more)
    add(c, root, "json2_2d", things.reshape(2, 3), object_codec=JSON(), chunks=(1, 2), **more)
    add(c, root, "json2_zero_fill", things, object_codec=JSON(), dtype=object, only=np.s_[:3])
    add(c, root, "msgpack2", objects("a", 1, [2, "b"], {"k": None}, 2.5), object_codec=MsgPack(), **more)
    add(
        c,
        root,
        "pickle",
        objects((1, 2), [3], "x"),
        object_codec=Pickle(),
        expect={"open": {"allow_pickle": True}},
        **more,
    )
    for kind in "<i2", ">i4", "<f4", "<f8", "|u1":
        parts = objects(*[np.arange(size).astype(kind) for size in (3, 0, 1, 4)])
        name = f"vlen_array_{kind[1:]}_{'big' if kind[0] == '>' else 'little'}"
        add(c, root, name, parts, object_codec=VLenArray(kind), compressor=Zstd(1), **more)
    array = add(
        c,
        root,
        "categorize_u2",
        WORDS,
        dtype=object,
        filters=[Categorize(["green", "red"], dtype=object, astype="u2")],
        compressor=Zlib(1),
        fill_value="",
    )
    text(c, "categorize_u2", array[...])

with case("compressors") as c:
    root = zarr.open_group(str(c.store), mode="w")
    data = RNG.integers(0, 1000, (5, 7)).astype("<i4")
    for cname in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
        for name, shuffle in {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2, "autoshuffle": -1}.items():
            add(c, root, f"blosc_{cname}_{name}", data, compressor=Blosc(cname, 5, shuffle))
    add(c, root, "blosc_blocksize", data, compressor=Blosc("lz4", 9, 1, blocksize=64))
    for name, codec in {
        "zlib_0": Zlib(0),
        "gzip": GZip(6),
        "bz2": BZ2(1),
        "lzma_xz": LZMA(preset=1),
        "lzma_alone": LZMA(format=2),
        "lzma_delta": LZMA(format=3, filters=[{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]),
        "lzma_raw": LZMA(format=3, filters=[{"id": 33, "preset": 1}]),
        "lz4_fast": LZ4(acceleration=10),
        "zstd_checksum": Zstd(5, checksum=True),
        "zstd_negative": Zstd(-3),
    }.items():
        add(c, root, name, data, compressor=codec)

with case("filters") as c:
    root = zarr.open_group(str(c.store), mode="w")
    data = (GRID * 3 % 100).astype("<i4")
    add(
        c,
        root,
        "delta_narrow",
        np.sort(data, axis=None).astype("<i8"),
        filters=[Delta("<i8", astype="i2")],
        chunks=(10,),
    )
    add(c, root, "delta_float", np.sort(data, axis=None) / 2, filters=[Delta("<f8")], compressor=Zlib(1))
    add(c, root, "delta_big_endian", data.astype(">i4"), filters=[Delta(">i4")], compressor=Zlib(1))
    add(
        c,
        root,
        "fixedscaleoffset",
        1000 + GRID / 10,
        filters=[FixedScaleOffset(offset=1000, scale=10, dtype="<f8", astype="u1")],
        fill_value=1000,
    )
    add(c, root, "quantize", GRID / 7, filters=[Quantize(3, "<f8", "<f4")], compressor=Zstd(1))
    add(c, root, "bitround", (GRID / 7).astype("f4"), filters=[BitRound(5)], compressor=Blosc())
    add(c, root, "astype", data, filters=[AsType("<f8", "<i4")])
    add(c, root, "packbits", GRID % 3 == 0, filters=[PackBits()], compressor=Zlib(1), fill_value=False)
    add(c, root, "packbits_1d", np.arange(20) % 3 == 0, filters=[PackBits()], chunks=(7,), fill_value=False)
    add(c, root, "shuffle", data, filters=[Shuffle(4)], compressor=Zlib(1))
    add(c, root, "base64", data, filters=[Base64()])
    add(c, root, "crc32", data, filters=[CRC32()])
    add(c, root, "crc32_end", data, filters=[CRC32(location="end")])
    add(c, root, "crc32c", data, filters=[CRC32C()])
    add(c, root, "crc32c_start", data, filters=[CRC32C(location="start")])
    add(c, root, "adler32", data, filters=[Adler32()])
    add(c, root, "adler32_end", data, filters=[Adler32(location="end")])
    add(c, root, "fletcher32", data, filters=[Fletcher32()])
    add(c, root, "jenkins_lookup3", data, filters=[JenkinsLookup3()])
    add(c, root, "jenkins_lookup3_initval", data, filters=[JenkinsLookup3(initval=7)])
    add(c, root, "compressor_as_filter", data, filters=[Delta("<i4"), Zlib(1), CRC32()], compressor=Zstd(1))
    add(c, root, "pcodec", data, compressor=PCodec(level=4))
    add(c, root, "pcodec_f8", GRID / 7, compressor=PCodec())
    add(c, root, "zfpy_accuracy", np.sin(GRID), compressor=ZFPY(mode=4, tolerance=1e-3))
    add(c, root, "zfpy_rate", np.sin(GRID).astype("f4"), compressor=ZFPY(mode=2, rate=16))
    add(c, root, "zfpy_precision", np.sin(GRID), compressor=ZFPY(mode=3, precision=20))
    add(c, root, "checksum_as_compressor", data, compressor=Fletcher32())
    add(c, root, "delta_then_astype", data, filters=[Delta("<i4"), AsType("<i2", "<i4")], compressor=Blosc())
    add(c, root, "order_f_shuffle_base64", data, order="F", filters=[Shuffle(4), Base64()], compressor=BZ2(1))

with case("root_array") as c:
    add(
        c,
        zarr.DirectoryStore(str(c.store)),
        "",
        GRID.astype("f8"),
        compressor=Blosc(),
        attributes={"units": "m", "valid_range": [0, 40]},
    )

ATTRIBUTES = {
    "title": "Größe \N{GRINNING FACE}",
    "list": [1, 2.5, None, True, "x"],
    "nested": {"a": {"b": []}},
    "big": 2**63,
    "empty": "",
}
with case("groups") as c:
    root = zarr.open_group(str(c.store), mode="w")
    root.attrs.update(ATTRIBUTES)
    inner = root.create_group("a/b c/ü")
    inner.attrs["depth"] = 3
    add(c, root, "a/b c/ü/x", GRID.astype("i2"), attributes={"_ARRAY_DIMENSIONS": ["y", "x"]})
    root.create_group("empty")
    c.group("", ATTRIBUTES, list(root))
    c.group("a", members=["b c"])
    c.group("a/b c/ü", {"depth": 3}, ["x"])
    c.group("empty", members=[])

with case("nan_attributes") as c:
    root = zarr.open_group(str(c.store), mode="w")
    odd = {"nan": float("nan"), "up": float("inf"), "down": -float("inf"), "list": [float("nan"), 1]}
    root.attrs.update(odd)
    add(c, root, "x", GRID.astype("i1"), attributes=odd)
    c.group("", odd, ["x"])

for name in ("consolidated", "consolidated_only"):
    with case(name) as c:
        root = zarr.open_group(str(c.store), mode="w")
        root.attrs["title"] = "consolidated"
        root.create_group("g").attrs["n"] = 1
        add(c, root, "g/x", GRID.astype("f4"), attributes={"units": "K"}, fill_value=np.nan)
        add(c, root, "y", GRID.astype(">u2"), compressor=Zlib(1))
        c.group("", {"title": "consolidated"}, ["g", "y"])
        c.group("g", {"n": 1}, ["x"])
        zarr.consolidate_metadata(root.store)
        if name == "consolidated_only":  # as on a server that has only this one document
            c.document["open"] = "root"
            for key in list(root.store):
                if key.rpartition("/")[2] in {".zarray", ".zgroup", ".zattrs"} and "/" in key:
                    del root.store[key]

with case("zip", store="store.zip") as c:
    store = zarr.ZipStore(str(c.store), mode="w")
    root = zarr.group(store)
    root.attrs.put({"title": "zip"})
    add(c, root, "g/x", GRID.astype("i4"), compressor=Blosc())
    array = add(c, root, "words", WORDS, dtype=str, fill_value="")
    text(c, "words", array[...])
    c.group("", {"title": "zip"}, ["g", "words"])
    store.close()

with case("nested_directory") as c:
    store = zarr.NestedDirectoryStore(str(c.store))
    root = zarr.group(store)
    add(c, root, "g/x", GRID.astype("i4"), compressor=Zlib(1))
    c.group("", members=["g"])
