"""The draft of Zarr v3 of October 2020 as zarr-python 2.12 to 2.18 writes it.

python3.9 -m venv env212; env212/bin/pip install zarr==2.12.0 numcodecs==0.10.2 'numpy<1.24'
python3.11 -m venv env218; env218/bin/pip install zarr==2.18.7 numcodecs==0.15.2 msgpack crc32c pytest
for env in env*; do $env/bin/python tests/corpus/make/draft2020_zarr.py; done

The environment of 2.18.7 makes the cases without a version in their names, the other only those with its own.
What 2.13.6, 2.14.2, 2.16.1 and 2.17.2 write is the same as what 2.18.7 does, but before 2.18.2 no array compressed
with Zstandard can be written: the URI in its document stops short of the name of the codec, and the program refuses
it. zarr-python imports its own tests to read a sharded array: hence pytest.
"""

import os

os.environ["ZARR_V3_EXPERIMENTAL_API"] = os.environ["ZARR_V3_SHARDING"] = "1"

import json
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
    Blosc,
    Categorize,
    Delta,
    FixedScaleOffset,
    GZip,
    PackBits,
    Pickle,
    Quantize,
    Shuffle,
    VLenArray,
    VLenBytes,
    Zlib,
    Zstd,
)
from recorder import Case

warnings.simplefilter("ignore")
if hasattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE"):
    numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE = True  # we read what we wrote
FIRST = zarr.__version__ == "2.12.0"  # no root groups, no sharding
PROGRAM = f"zarr-python {zarr.__version__}, numcodecs {numcodecs.__version__}, numpy {np.__version__}"
LOSSY = {"quantize", "fixedscaleoffset"}
GRID = np.arange(35).reshape(5, 7)
RNG = np.random.default_rng(2020)
DEFAULTS = {"chunks": (5, 4), "compressor": None, "fill_value": 0}
NOTHING = np.s_[:0]
STRUCTURE = np.array(
    [(1, 1.5, b"ab"), (2, -2.5, b"c"), (-3, np.inf, b"")], dtype=[("a", "<i4"), ("b", "<f8"), ("c", "S3")]
)
NESTED = np.array(
    [((1, 2.5), 3, [1, 2]), ((-1, -2.5), 4, [3, 4])],
    dtype=[("p", [("x", "<i2"), ("y", "<f4")]), ("n", "u1"), ("v", "<i4", (2,))],
)
WORDS = np.array(["red", "green", "blue", "red", "", "green"], dtype=object)


def case(name, program=PROGRAM, **options):
    recording = Case("draft_zarr", name, program, **options)
    recording.document["script"] = "tests/corpus/make/draft2020_zarr.py"
    return recording


def directory(recording):
    """Return an empty store, in the folder of the case."""
    try:
        return zarr.DirectoryStoreV3(str(recording.store))
    except AttributeError:
        from zarr._storage.v3 import DirectoryStoreV3

        return DirectoryStoreV3(str(recording.store))


def start(recording, store=None):
    """Return a hierarchy with a root group, as far as the version has root groups."""
    store = directory(recording) if store is None else store
    return zarr.open_group(store, mode="a", zarr_version=3, path="everything" if FIRST else None)


def objects(*values, shape=None):
    array = np.empty(len(values), dtype=object)
    for index, value in enumerate(values):
        array[index] = value
    return array if shape is None else array.reshape(shape)


def create(store, path, data, **options):
    options = {**DEFAULTS, **options}
    if data.ndim != 2 and options["chunks"] == DEFAULTS["chunks"]:
        options["chunks"] = (3,) * data.ndim if data.ndim else ()
    return zarr.create(
        shape=data.shape,
        dtype=options.pop("dtype", data.dtype),
        store=store,
        path=path,
        zarr_version=3,
        **options,
    )


def add(recording, root, path, data, *, only=Ellipsis, attributes=None, expect=None, **options):
    """Write `data` (only the part `only` of it), read it back, record what was read."""
    store = root.store if isinstance(root, zarr.Group) else root
    path = f"{root.path}/{path}".strip("/") if isinstance(root, zarr.Group) else path
    data = np.asanyarray(data)
    array = create(store, path, data, **options)
    array[only] = data[only]
    if attributes:
        array.attrs.update(attributes)
    array = zarr.open_array(store, mode="r", path=path, zarr_version=3)
    found = array[...]
    if path.rpartition("/")[2] not in LOSSY and not data.dtype.hasobject and only is Ellipsis:
        np.testing.assert_array_equal(found, data.astype(found.dtype))
    # zarr-python keeps filters in the attributes and shows them there; they are none.
    shown = {key: value for key, value in dict(array.attrs).items() if key != "filters"}
    assert json.dumps(shown, sort_keys=True) == json.dumps(attributes or {}, sort_keys=True)
    recording.array(path, found, array.fill_value, attributes, **(expect or {}))
    return array


def text(recording, root, path, data, fill_value="", **options):
    """Write variable-length strings and expect them."""
    path = f"{root.path}/{path}".strip("/")
    array = create(root.store, path, data, fill_value=fill_value, **{"dtype": str, **options})
    array[...] = data
    array = zarr.open_array(root.store, mode="r", path=path, zarr_version=3)
    assert array[...].tolist() == data.tolist()
    recording.array(path, array[...], array.fill_value, dtype="StringDType")
    if fill_value == 0:  # a number cannot be the fill value of strings; readers do not agree on its meaning
        del recording.document["nodes"][path]["fill_value"]


def shards(*chunks_per_shard):
    from zarr._storage.v3_storage_transformers import ShardingStorageTransformer

    return ShardingStorageTransformer("indexed", chunks_per_shard=chunks_per_shard)


if FIRST:
    with case(f"overview_{zarr.__version__}") as c:
        root = start(c)
        root.attrs.update({"title": "overview", "list": [1, 2.5, None]})
        for code in ["?", "i1", "u1", "<i2", ">i4", "<u8", ">u2", "<f2", ">f4", "<f8"]:
            name = code.replace("?", "bool").replace("<", "little_").replace(">", "big_")
            add(c, root, name, (GRID % 2 if code == "?" else GRID).astype(code))
        add(c, root, "complex64", (GRID - 1j * GRID).astype("<c8"), fill_value=1 - 2j, only=np.s_[:, 4:])
        add(c, root, "fixed_bytes", np.array([b"a", b"bc", b"", b"de"], dtype="S2"), fill_value=b"")
        add(c, root, "fixed_text", np.array(["a", "ü€", "", "\N{SNOWMAN}"], dtype="<U2"), fill_value="")
        add(c, root, "structured", STRUCTURE, fill_value=None)
        add(c, root, "datetime64", np.array(["2001-02-03", "NaT", "1969-12-31"], dtype="M8[s]"), fill_value=0)
        add(c, root, "timedelta64", np.array([1, -1, 0], dtype="m8[ns]"), fill_value=0)
        text(c, root, "vlen_utf8", WORDS)
        add(c, root, "json2", objects({"a": [1, None]}, "text", 3), dtype=object, object_codec=JSON(), fill_value=None)
        add(c, root, "scalar", np.array(42, dtype="i8"))
        add(c, root, "order_f", GRID.astype("i4"), order="F", compressor=Zlib(1))
        add(c, root, "dots", GRID.astype("i4"), dimension_separator=".")
        add(c, root, "null_fill", GRID.astype("i4"), fill_value=None)
        add(c, root, "nan_fill", GRID.astype("f4"), fill_value=np.nan, only=np.s_[3:])
        add(c, root, "infinite_fill", GRID.astype("f8"), fill_value=np.inf, only=np.s_[3:])
        add(c, root, "delta", GRID.astype("i4"), filters=[Delta("i4")], attributes={"units": "m"})
        for codec in [GZip(5), Zlib(9), BZ2(9), LZ4(), LZMA(), Blosc(), Blosc("zstd", 3, Blosc.BITSHUFFLE)]:
            name = f"compressors/{codec.codec_id}_{getattr(codec, 'cname', '')}".strip("_")
            add(c, root, name, GRID, compressor=codec)
        c.group(root.path, {"title": "overview", "list": [1, 2.5, None]}, list(root))

with case(f"array_without_path_{zarr.__version__}") as c:
    store = directory(c)
    array = zarr.open_array(store, mode="w", shape=GRID.shape, chunks=(3, 4), dtype="<i4", zarr_version=3)
    array[...] = GRID
    assert array.path == "array"
    c.array("array", zarr.open_array(store, mode="r", zarr_version=3)[...], array.fill_value)

if not FIRST:
    with case("numeric") as c:
        root = start(c)
        for code in ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]:
            for order in "<>" if int(code[1:]) > 1 else "|":
                kind = np.dtype(order + code)
                low, high = (np.iinfo(kind).min, np.iinfo(kind).max) if kind.kind in "iu" else (-0.0, np.inf)
                name = {"<": "little_", ">": "big_", "|": ""}[order] + code
                data = np.array([low, high, 1, 2, 3, 4, 0], dtype=kind)
                add(c, root, name, data, chunks=(4,), fill_value=kind.type(3))
        add(c, root, "bool", GRID % 3 == 0, fill_value=True, only=np.s_[:3])

    with case("layout") as c:
        root = start(c)
        add(c, root, "missing_chunks", GRID.astype("i4"), chunks=(3, 4), fill_value=-7, only=np.s_[3:, :4])
        add(c, root, "all_missing", GRID.astype("f4"), fill_value=2.5, only=NOTHING)
        add(c, root, "zero_length", np.empty((0, 5), dtype="i4"), chunks=(1, 2))
        add(c, root, "chunk_larger_than_shape", GRID.astype("i2"), chunks=(100, 11))
        add(c, root, "one_chunk", GRID.astype("i2"), chunks=(5, 7))
        cube = np.arange(60, dtype=">u2").reshape(3, 4, 5)
        add(c, root, "order_f_3d", cube, chunks=(2, 3, 4), order="F", compressor=Zlib(1))
        add(c, root, "order_f_plain", GRID.astype("i4"), chunks=(3, 4), order="F")
        add(c, root, "order_f_blosc", GRID.astype("i4"), order="F", compressor=Blosc())
        add(
            c,
            root,
            "order_f_dots_delta",
            GRID,
            chunks=(3, 4),
            order="F",
            dimension_separator=".",
            filters=[Delta("i8")],
        )
        add(c, root, "slashes", GRID.astype("i2"), dimension_separator="/")
        add(c, root, "scalar_f8", np.array(2.5), compressor=Zlib(1))
        add(c, root, "scalar_dots", np.array(-3, dtype="i2"), dimension_separator=".")
        add(c, root, "scalar_missing", np.array(5, dtype="i4"), fill_value=5, write_empty_chunks=False)
        add(c, root, "four_dimensions", np.arange(36, dtype="u1").reshape(2, 3, 2, 3), chunks=(1, 2, 2, 3))
        add(c, root, "long_1d", np.arange(50, dtype="i2"), chunks=(7,))
        sparse = np.where(GRID > 20, GRID, 9).astype("i4")
        add(c, root, "write_empty_chunks_false", sparse, fill_value=9, write_empty_chunks=False)

    with case("fills") as c:
        root = start(c)
        empty = np.zeros(5)
        for name, data, fill_value in [
            ("nan", empty.astype("f4"), np.nan),
            ("infinity", empty, np.inf),
            ("minus_infinity", empty, -np.inf),
            ("negative_zero", empty, -0.0),
            ("float16_third", empty.astype("f2"), np.float16(1 / 3)),
            ("u8_beyond_2_53", empty.astype("u8"), 2**64 - 1),
            ("i8_beyond_2_53", empty.astype("i8"), -(2**63) + 1),
            ("complex_nan", empty.astype("c8"), complex(np.nan, -np.inf)),
            ("bool_true", empty.astype("?"), True),
            ("null", empty, None),
            ("fixed_bytes", np.zeros(3, dtype="S4"), b"\x00\xff\n"),
            ("fixed_text", np.zeros(3, dtype="<U4"), "nä"),
            ("fixed_text_big_endian", np.zeros(3, dtype=">U4"), "nä"),
            ("structured", np.zeros(3, dtype=STRUCTURE.dtype), STRUCTURE[1]),
            ("structured_nested", np.zeros(3, dtype=NESTED.dtype), NESTED[1]),
            ("datetime64", np.zeros(3, dtype="M8[ns]"), np.datetime64("2020-01-01", "ns")),
            ("datetime64_nat", np.zeros(3, dtype="M8[D]"), np.datetime64("NaT", "D")),
            ("timedelta64", np.zeros(3, dtype="m8[us]"), np.timedelta64(-5, "us")),
        ]:
            if fill_value is None:  # what is missing is undefined
                add(c, root, name, data, fill_value=fill_value)
            else:
                add(c, root, name, data, fill_value=fill_value, only=NOTHING)

    with case("extension_types") as c:
        root = start(c)
        moments = np.array([0, 1, -1, 86400, np.iinfo("i8").min])
        for unit in ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"]:
            add(c, root, f"datetime64_{unit}", moments.view(f"<M8[{unit}]"))
        for unit in ["Y", "s", "ns"]:
            add(c, root, f"timedelta64_{unit}", moments.view(f"<m8[{unit}]"))
        add(c, root, "datetime64_big_endian", moments.astype(">i8").view(">M8[ns]"))
        add(c, root, "timedelta64_big_endian", moments.astype(">i8").view(">m8[ms]"), compressor=Blosc("zstd"))
        words = np.array(["a", "ü€", "", "\N{GRINNING FACE}x", "zarr"])
        add(c, root, "text_little", words.astype("<U5"), compressor=Zlib(1), fill_value="")
        add(c, root, "text_big", words.astype(">U5"), fill_value="")
        add(c, root, "text_zero_fill", words.astype("<U5"))
        blob = np.array([b"a", b"\xff\x00b", b"", b"zarr"], dtype="S5")
        add(c, root, "bytes", blob, fill_value=b"", compressor=Blosc())
        # The document has a structure of one field without a name, and so does zarr-python when it reads it.
        void = np.array([b"\x00\x01", b"\xff\xfe", b"ab"], dtype="V2")
        add(c, root, "void", void.view([("f0", "V2")]), dtype="V2", fill_value=None)
        c.arrays["void/values"] = void
        add(c, root, "structured", STRUCTURE, fill_value=None)
        add(c, root, "structured_zero_fill", STRUCTURE, only=NOTHING)
        add(c, root, "structured_compressed", STRUCTURE, fill_value=STRUCTURE[1], compressor=Blosc("lz4", shuffle=2))
        add(c, root, "structured_nested", NESTED, fill_value=None)
        add(c, root, "structured_f", np.tile(STRUCTURE, (2, 1)), fill_value=None, order="F", chunks=(2, 2))
        mixed = np.array([(1, 2.5), (3, -4.5)], dtype=[("a", "<i4"), ("b", ">f4")])
        add(c, root, "mixed_endian", mixed, fill_value=None)

    with case("objects") as c:
        root = start(c)
        more = {"dtype": object, "fill_value": None}
        things = objects({"a": [1, None]}, "text", 3, [1.5, True], None, "ü")
        add(c, root, "json2", things, object_codec=JSON(), compressor=Zlib(1), **more)
        add(c, root, "json2_2d", things.reshape(2, 3), object_codec=JSON(), chunks=(1, 2), **more)
        unpickled = {"open": {"allow_pickle": True}}
        add(c, root, "pickle", objects((1, 2), [3], "x"), object_codec=Pickle(), expect=unpickled, **more)
        ragged = objects(np.array([1, 2, 3]), np.array([4]), np.array([], dtype="i8"), np.arange(5))
        add(c, root, "vlen_array", ragged, object_codec=VLenArray("<i8"), compressor=Zlib(1), **more)
        blobs = objects(b"", b"\x00\xff", b"abc", b"d" * 20)
        add(c, root, "vlen_bytes", blobs, object_codec=VLenBytes(), compressor=Blosc(), **more)
        text(c, root, "vlen_utf8", WORDS)
        text(c, root, "vlen_utf8_zero_fill", WORDS, 0, compressor=Blosc())
        text(c, root, "vlen_utf8_f", objects(*["", "a", "bb", "ü", "x" * 30, "c"], shape=(2, 3)), order="F")
        labels = Categorize(["red", "green", "blue"], dtype=object)
        text(c, root, "categorize", WORDS, dtype=object, filters=[labels])
        from numcodecs import MsgPack

        add(c, root, "msgpack2", objects("a", 1, [2, "b"], {"k": None}, 2.5), object_codec=MsgPack(), **more)

    with case("compressors") as c:
        root = start(c)
        data = RNG.integers(0, 1000, (5, 7)).astype("<i4")
        shuffles = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2, "autoshuffle": -1}
        for cname in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"]:
            for name, shuffle in shuffles.items() if cname == "zstd" else [("shuffle", 1)]:
                add(c, root, f"blosc_{cname}_{name}", data, compressor=Blosc(cname, 5, shuffle), chunks=(5, 7))
        for name, codec in {
            "blosc_blocksize": Blosc("lz4", 9, 1, blocksize=64),
            "zlib_0": Zlib(0),
            "gzip": GZip(6),
            "bz2": BZ2(1),
            "lzma_xz": LZMA(preset=1),
            "lzma_alone": LZMA(format=2),
            "lzma_delta": LZMA(format=3, filters=[{"id": 3, "dist": 4}, {"id": 33, "preset": 1}]),
            "lz4_fast": LZ4(acceleration=10),
            "zstd": Zstd(3),
            "zstd_checksum": Zstd(5, checksum=True),
            "zstd_negative": Zstd(-3),
        }.items():
            add(c, root, name, data, compressor=codec, chunks=(5, 7))

    with case("filters") as c:
        root = start(c)
        data = (GRID * 3 % 100).astype("<i4")
        narrow = np.sort(data, axis=None).astype("<i8")
        add(c, root, "delta_narrow", narrow, filters=[Delta("<i8", astype="i2")], chunks=(10,))
        add(c, root, "delta_big_endian", data.astype(">i4"), filters=[Delta(">i4")], compressor=Zlib(1))
        scaled = FixedScaleOffset(offset=1000, scale=10, dtype="<f8", astype="u1")
        add(c, root, "fixedscaleoffset", 1000 + GRID / 10, filters=[scaled], fill_value=1000)
        add(c, root, "quantize", GRID / 7, filters=[Quantize(3, "<f8", "<f4")], compressor=GZip(1))
        add(c, root, "astype", data, filters=[AsType("<f8", "<i4")])
        add(c, root, "packbits", GRID % 3 == 0, filters=[PackBits()], compressor=Zlib(1), fill_value=False)
        add(c, root, "shuffle", data, filters=[Shuffle(4)], compressor=Zlib(1))
        add(c, root, "base64", data, filters=[Base64()])
        add(c, root, "crc32", data, filters=[CRC32()])
        add(c, root, "adler32_end", data, filters=[Adler32(location="end")])
        add(c, root, "compressor_as_filter", data, filters=[Delta("<i4"), Zlib(1), CRC32()], compressor=Zstd(1))
        add(c, root, "delta_then_astype", data, filters=[Delta("<i4"), AsType("<i2", "<i4")], compressor=Blosc())
        add(c, root, "order_f_shuffle_base64", data, order="F", filters=[Shuffle(4), Base64()], compressor=BZ2(1))

    with case("root_array") as c:
        attributes = {"units": "m", "valid_range": [0, 40]}
        add(c, directory(c), "", GRID.astype("f8"), chunks=(3, 4), compressor=Blosc(), attributes=attributes)

    with case("root_array_dots") as c:
        add(c, directory(c), "", GRID.astype(">i2"), chunks=(3, 4), dimension_separator=".", filters=[Delta(">i2")])

    with case("root_scalar") as c:
        add(c, directory(c), "", np.array(2.5, dtype="<f4"))

    ATTRIBUTES = {
        "title": "Größe \N{GRINNING FACE}",
        "list": [1, 2.5, None, True, "x"],
        "nested": {"a": {"b": []}},
        "big": 2**63,
        "empty": "",
        "filters": "none",
    }
    with case("groups") as c:
        root = start(c)
        root.attrs.update(ATTRIBUTES)
        inner = root.create_group("a/b.c/d_e-f")
        inner.attrs["depth"] = 3
        add(c, root, "a/b.c/d_e-f/x", GRID.astype("i2"), attributes={"_ARRAY_DIMENSIONS": ["y", "x"]})
        root.create_group("empty")
        # Names that end as keys of documents do
        odd = root.create_group("x.array")
        odd.attrs["kind"] = "group"
        add(c, root, "y.group", GRID.astype("i1"))
        add(c, root, "x.array/array", GRID.astype("i1"))
        add(c, root, "meta", GRID.astype("i1"))
        c.group("", ATTRIBUTES, list(root))
        c.group("a", members=["b.c"])
        c.group("a/b.c/d_e-f", {"depth": 3}, ["x"])
        c.group("empty", members=[])
        c.group("x.array", {"kind": "group"}, ["array"])

    with case("implicit_groups") as c:  # no group has a document
        store = directory(c)
        add(c, store, "a/b/x", GRID.astype("i4"))
        add(c, store, "a/y", GRID.astype("f4"), compressor=GZip(1))
        c.group("", members=["a"])
        c.group("a", members=["b", "y"])
        c.group("a/b", members=["x"])

    with case("nan_attributes") as c:
        root = start(c)
        odd = {"nan": float("nan"), "up": float("inf"), "down": -float("inf"), "list": [float("nan"), 1]}
        root.attrs.update(odd)
        add(c, root, "x", GRID.astype("i1"), attributes=odd)
        c.group("", odd, ["x"])

    for name in ("consolidated", "consolidated_only"):
        with case(name) as c:
            root = start(c)
            root.attrs["title"] = "consolidated"
            root.create_group("g").attrs["n"] = 1
            add(c, root, "g/x", GRID.astype("f4"), attributes={"units": "K"}, fill_value=np.nan)
            add(c, root, "y", GRID.astype(">u2"), compressor=Zlib(1))
            zarr.consolidate_metadata(root.store, path="")
            opened = zarr.open_consolidated(root.store, zarr_version=3)
            assert dict(opened.attrs) == {"title": "consolidated"}
            np.testing.assert_array_equal(opened["y"][...], GRID)
            c.group("", {"title": "consolidated"}, list(opened))  # with the group "consolidated", which is made for it
            c.group("g", {"n": 1}, ["x"])
            if name == "consolidated_only":  # as on a server that has only this one document below the root
                c.document["open"] = "root"
                for key in list(root.store):
                    if key.startswith("meta/root/") and not key.endswith(".zmetadata"):
                        del root.store[key]

    with case("zip", store="store.zip") as c:
        from zarr._storage.v3 import ZipStoreV3

        store = ZipStoreV3(str(c.store), mode="w")
        root = zarr.group(store, zarr_version=3)
        add(c, root, "g/x", GRID.astype("i4"), compressor=Blosc())
        text(c, root, "words", WORDS)
        c.group("", members=list(root))
        store.close()

    with case("sharded") as c:
        root = start(c)
        add(c, root, "complete", GRID, chunks=(2, 2), storage_transformers=[shards(2, 2)])
        partial = {"chunks": (2, 2), "storage_transformers": [shards(2, 2)], "fill_value": -1}
        add(c, root, "missing_shards_and_chunks", GRID.astype("i4"), only=np.s_[:1, :3], **partial)
        add(c, root, "all_missing", GRID.astype("i4"), only=NOTHING, **partial)
        add(c, root, "fewer_numbers_than_dimensions", GRID, chunks=(2, 2), storage_transformers=[shards(2)])
        add(c, root, "line", np.arange(50, dtype=">i2"), chunks=(3,), storage_transformers=[shards(5)])
        cube = np.arange(60, dtype=">u2").reshape(3, 4, 5)
        add(c, root, "cube_dots_f", cube, chunks=(1, 2, 3), dimension_separator=".", order="F", compressor=Blosc(),
            storage_transformers=[shards(2, 1, 2)])  # fmt: skip
        add(c, root, "compressed", GRID, chunks=(2, 2), compressor=GZip(1), storage_transformers=[shards(2, 4)])
        add(c, root, "filtered", GRID, chunks=(2, 2), filters=[Delta("i8")], storage_transformers=[shards(3, 1)])
        add(c, root, "one_chunk_per_shard", GRID, chunks=(2, 2), storage_transformers=[shards(1, 1)])
        sparse = np.where(GRID > 20, GRID, 9).astype("i4")
        add(c, root, "empty_chunks_left_out", sparse, chunks=(2, 2), fill_value=9, write_empty_chunks=False,
            storage_transformers=[shards(2, 2)])  # fmt: skip
        text(c, root, "vlen_utf8", WORDS, chunks=(2,), storage_transformers=[shards(2)])
        c.group("", members=list(root))
