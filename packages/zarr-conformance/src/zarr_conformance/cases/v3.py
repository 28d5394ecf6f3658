"""Zarr v3, what its core specification says: layout, data types, fill values, grids, keys, hierarchies, codecs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import numpy as np

from zarr_conformance.case import Array, Case, Json, Sentence
from zarr_conformance.cases.making import COMPLEX, CORE, FLOATS, INTEGERS, listed, noise, ramp, read, sample
from zarr_conformance.cases.v2 import LAYOUTS, ODD
from zarr_conformance.encoder import BIG, LITTLE, array_v3, group_v3, named, text_of


def said(section: str, says: str) -> Sentence:
    return Sentence("Zarr v3.0", section, says)


def codec_said(name: str, says: str) -> Sentence:
    return Sentence(f"Zarr v3 codecs: {name}", "Format and algorithm", says)


GRID = said("Regular grids", "All chunks have the same shape; the last of a dimension may reach beyond the array.")
EDGE = said("Regular grids", "A chunk at the edge is stored in its full size, with any values outside the array.")
DEFAULT_KEYS = said(
    "Array metadata, default", "In the `default` encoding, keys are `c` and the indices, joined by the separator."
)
SCALAR_KEY = said("Array metadata, default", "In the `default` encoding, the only chunk of a scalar has the key `c`.")
V2_KEYS = said("Array metadata, v2", "In the `v2` encoding, keys are the indices, joined by the separator.")
TYPES = said("Data types", "The core data types and how the `bytes` codec stores them.")
ENDIAN = codec_said("bytes", "`endian` is the byte order of the stored elements, little or big.")
RAW_BITS = said("Data types", "`r8`, `r16` and `r24` are opaque types of 1, 2 and 3 bytes.")
FILL = said("Array metadata, fill_value", "Elements of chunks that are not stored have this value.")
BOOL_FILL = said("Array metadata, fill_value", "Fill values of `bool` are true and false.")
INT_FILL = said("Array metadata, fill_value", "Fill values of integer types are integers in the range of the type.")
FLOAT_FILL = said(
    "Array metadata, fill_value",
    "Fill values of floats are numbers, `Infinity`, `-Infinity`, `NaN`, or hexadecimal bits.",
)
HEX_FILL = said("Array metadata, fill_value", "For float32, `NaN` and `0x7fc00000` are the same value.")
COMPLEX_FILL = said(
    "Array metadata, fill_value", "Fill values of complex types are pairs of fill values of float types."
)
RAW_FILL = said("Array metadata, fill_value", "Fill values of raw types are lists of integers, one for each byte.")
CHAIN = said("Codecs", "Array to array codecs come first, then one array to bytes codec, then bytes to bytes codecs.")
TRANSPOSE = codec_said("transpose", "Axis `i` of the encoded array is axis `order[i]` of the decoded one.")
GZIP = codec_said("gzip", "The bytes are in the format of RFC 1952.")
BLOSC = codec_said("blosc", "The bytes are a buffer of C-Blosc, which states its own compressor and shuffle.")
CRC32C = codec_said("crc32c", "The CRC32C of RFC 3720 follows the bytes, as a little-endian 32-bit integer.")
ATTRIBUTES = said("Array metadata, attributes", "Names of attributes are strings. Values are any JSON.")
UNKNOWN = said(
    "Array metadata, dimension_names",
    "Unknown members are refused, unless they are objects with `must_understand` false.",
)
SHORT_NAMES = said("Extension points", "An extension without a configuration may be its name alone (3.1).")
DIMENSIONS = said(
    "Array metadata, dimension_names",
    "`dimension_names` has a string or null for each dimension, not necessarily distinct.",
)
KEYS = said(
    "Stored representation", "The document of a node is `zarr.json` below its path, and chunk keys are below that, too."
)
SHAPE = said("Array metadata, shape", "The shape is a list with the length of each dimension.")
GROUP = said("Group metadata, node_type", "`node_type` of a group is `group`.")
NAMES = said("Node names", "A name is any Unicode string without slash, not only of periods, not empty.")
CASE = said("Node names", "`foo` and `FOO` are different names.")
IMPLICIT = said("Explicit vs implicit groups", "Each group has a document: a prefix alone is no group.")
CONSOLIDATED = Sentence(
    "Zarr v3 consolidated metadata",
    "consolidated_metadata",
    "Documents of all nodes below, by path, in the document of a group.",
)


def cases() -> Iterator[Case]:
    """Yield all cases of the core of Zarr v3."""
    yield from core()
    yield from selections()
    yield from types()
    yield from fills()
    yield from keys()
    yield from codecs()
    yield from hierarchies()


def fill_of(name: str) -> Json:
    return [0, 0] if name in COMPLEX else False if name == "bool" else 0


def core() -> Iterator[Case]:
    level = "v3-core"
    for name, shape, chunks in LAYOUTS:
        values = ramp(shape)
        sentence = EDGE if "edge" in name else GRID
        title = f"int32 {list(shape)} in chunks of {list(chunks)}"
        yield read(level, f"layout-{name}", title, sentence, array_v3(values, "int32", chunks), values, "int32")
    scalar = np.array(42, "int32")
    yield read(level, "scalar", "no dimensions", SCALAR_KEY, array_v3(scalar, "int32", ()), scalar, "int32")
    nine = np.array(9, "int32")
    yield read(
        level,
        "scalar-missing",
        "no dimensions, no chunk",
        FILL,
        array_v3(nine, "int32", (), None, 9, fill=9),
        nine,
        "int32",
    )
    for shape in [(0,), (0, 3), (3, 0, 2)]:
        empty = np.zeros(shape, "int32")
        name = "empty-" + "x".join(map(str, shape))
        yield read(
            level, name, f"shape {list(shape)}", SHAPE, array_v3(empty, "int32", [2] * len(shape)), empty, "int32"
        )
    holes = ramp((4, 6))
    holes[:2, 3:] = 7
    yield read(
        level,
        "missing-chunk",
        "a chunk that is not stored",
        FILL,
        array_v3(holes, "int32", (2, 3), None, 7, fill=7),
        holes,
        "int32",
    )
    nothing = np.full((3, 3), -5, "int16")
    yield read(
        level,
        "no-chunks",
        "no chunk is stored",
        FILL,
        array_v3(nothing, "int16", (2, 2), None, -5, fill=-5),
        nothing,
        "int16",
    )
    yield read(
        level,
        "huge-and-empty",
        "a few elements of 10^12 x 10^12 without a chunk",
        FILL,
        array_v3(np.zeros((0, 0), "u1"), "uint8", (1000, 1000), None, 3, shape=[10**12, 10**12]),
        np.full((2, 3), 3, "u1"),
        "uint8",
        selection="0:2,0:3",
    )
    values = ramp((3, 4))
    members: list[tuple[str, str, Sentence, dict[str, Json]]] = [
        ("attributes", "attributes of all kinds", ATTRIBUTES, {"attributes": ODD}),
        ("attributes-empty", "no attributes", ATTRIBUTES, {"attributes": {}}),
        ("dimension-names", "names of dimensions", DIMENSIONS, {"dimension_names": ["y", "x"]}),
        ("dimension-names-null", "a dimension without name", DIMENSIONS, {"dimension_names": ["y", None]}),
        ("dimension-names-same", "two dimensions of the same name", DIMENSIONS, {"dimension_names": ["x", "x"]}),
        ("dimension-names-empty", "an empty name", DIMENSIONS, {"dimension_names": ["", "x"]}),
        (
            "storage-transformers-empty",
            "no storage transformers",
            said("Array metadata, storage_transformers", "Storage transformers are a list of objects."),
            {"storage_transformers": []},
        ),
        (
            "member-not-to-understand",
            "an unknown member that need not be understood",
            UNKNOWN,
            {"their_notes": {"must_understand": False, "a": 1}},
        ),
        ("codec-name-alone", "a codec as a mere string", SHORT_NAMES, {"codecs": [LITTLE, "crc32c"]}),
        (
            "key-encoding-name-alone",
            "a chunk key encoding as an object without configuration",
            DEFAULT_KEYS,
            {"chunk_key_encoding": {"name": "default"}},
        ),
        (
            "empty-configuration",
            "an empty configuration",
            SHORT_NAMES,
            {"codecs": [LITTLE, {"name": "crc32c", "configuration": {}}]},
        ),
    ]
    for name, title, sentence, changes in members:
        codecs = changes.get("codecs", [LITTLE])
        files = array_v3(values, "int32", (2, 2), codecs, **{k: v for k, v in changes.items() if k != "codecs"})
        yield read(level, name, title, sentence, files, values, "int32")
    for name, kind in (
        ("data-type-object", {"name": "int32"}),
        ("data-type-object-empty", {"name": "int32", "configuration": {}}),
    ):
        yield read(
            level,
            name,
            f"the data type {json.dumps(kind)}",
            SHORT_NAMES,
            array_v3(values, kind, (2, 2)),
            values,
            "int32",
        )
    deep = {**group_v3(), **group_v3("a"), **array_v3(values, "int32", (2, 2), path="a/b")}
    yield read(level, "below-groups", "an array at the path a/b", KEYS, deep, values, "int32", path="a/b")
    yield read(
        level, "zip", "an array in a zip archive", KEYS, array_v3(values, "int32", (2, 2)), values, "int32", store="zip"
    )
    compact = {
        key: json.dumps(json.loads(v), separators=(",", ":")).encode() if key.endswith(".json") else v
        for key, v in array_v3(values, "int32", (2, 2)).items()
    }
    yield read(level, "compact-json", "a document in one line", KEYS, compact, values, "int32")
    backwards = {
        key: text_of(dict(reversed(json.loads(v).items()))) if key.endswith(".json") else v
        for key, v in array_v3(values, "int32", (2, 2)).items()
    }
    yield read(
        level, "members-backwards", "the members of the document in another order", KEYS, backwards, values, "int32"
    )


SELECTIONS = ["1,:", "0:2,1:3", ":,::2", "2,3", "1:1,:", "1:3,3", "::2,1::2", "4,6", "0:5,0:7", "2:4,2:3"]


def selections() -> Iterator[Case]:
    whole = ramp((5, 7))
    plain = array_v3(whole, "int32", (2, 3))
    shards = array_v3(
        whole,
        "int32",
        (4, 6),
        [named("sharding_indexed", chunk_shape=[2, 3], codecs=[LITTLE], index_codecs=[LITTLE, {"name": "crc32c"}])],
    )
    turned = array_v3(whole, "int32", (2, 3), [named("transpose", order=[1, 0]), LITTLE, named("gzip", level=1)])
    for (name, files), selection in itertools.product(
        {"plain": plain, "sharded": shards, "transposed": turned}.items(), SELECTIONS
    ):
        part = selection.translate(str.maketrans(":,", "-_"))
        yield read(
            "v3-selections",
            f"{name}-{part}",
            f"the selection [{selection}] of a {name} array",
            said("Codecs", "Partial decoding returns the requested regions."),
            files,
            whole,
            "int32",
            selection=selection,
        )


def types() -> Iterator[Case]:
    level = "v3-types"
    for name in CORE:
        values = sample(name, (3, 7))
        for endian in ("little", "big"):
            codec = named("bytes", endian=endian)
            files = array_v3(values, name, (2, 3), [codec], fill_of(name), missing=False)
            yield read(level, f"{name}-{endian}", f"{name}, {endian}-endian", ENDIAN, files, values, name)
        files = array_v3(
            values,
            name,
            (2, 3),
            [named("transpose", order=[1, 0]), BIG, named("gzip", level=1)],
            fill_of(name),
            missing=False,
        )
        yield read(level, f"{name}-chain", f"{name} transposed, big-endian, gzip", CHAIN, files, values, name)
    for name in ("bool", "int8", "uint8"):
        values = sample(name, (3, 7))
        files = array_v3(values, name, (2, 3), [{"name": "bytes"}], fill_of(name), missing=False)
        yield read(
            level,
            f"{name}-no-endian",
            f"{name}, `bytes` without endian",
            codec_said("bytes", "`endian` may be left out for types of one byte."),
            files,
            values,
            name,
        )
    for size in (1, 2, 3, 8):
        opaque = np.frombuffer((np.arange(6 * size) * 41 % 256).astype("u1").tobytes(), f"V{size}")
        files = array_v3(
            opaque, f"r{size * 8}", (4,), [{"name": "bytes"}], [0] * size, fill=np.zeros((), f"V{size}"), missing=False
        )
        yield read(level, f"r{size * 8}", f"raw bits of {size} bytes", RAW_BITS, files, opaque, f"r{size * 8}")


FLOAT_BITS = {
    "float16": ("uint16", 0x7E01, 0x3C00),
    "float32": ("uint32", 0x7FC00001, 0x3F800000),
    "float64": ("uint64", 0x7FF8000000000001, 0x3FF0000000000000),
}


def fills() -> Iterator[Case]:
    for name, data_type, fill, value, sentence in fill_rows():
        values = np.full((2, 3), value, value.dtype)
        files = array_v3(values, data_type, (2, 2), [LITTLE], fill, fill=value)
        title = f"{data_type} with fill value {json.dumps(fill)}"
        yield read("v3-fills", name, title, sentence, files, values, data_type)
        if data_type in {"float32", "int16"}:
            stored = np.concatenate([values, np.ones((2, 3), value.dtype)])
            files = array_v3(stored, data_type, (2, 2), [LITTLE], fill, fill=value)
            yield read(
                "v3-fills",
                f"{name}-beside-chunks",
                f"{title}, beside chunks that are stored",
                sentence,
                files,
                stored,
                data_type,
            )


def fill_rows() -> Iterator[tuple[str, str, Json, Array, Sentence]]:
    for yes in (True, False):
        yield f"bool-{str(yes).lower()}", "bool", yes, np.array(yes), BOOL_FILL
    for name in INTEGERS:
        for end in ("min", "max"):
            number = int(getattr(np.iinfo(name), end))
            yield f"{name}-{end}", name, number, np.array(number, name), INT_FILL
    for name in FLOATS:
        bits, odd, one = FLOAT_BITS[name]
        width = np.dtype(name).itemsize * 2
        for word in ("Infinity", "-Infinity", "NaN"):
            yield f"{name}-{word}", name, word, np.array(float(word.replace("Infinity", "inf")), name), FLOAT_FILL
        for plain in (0.5, -0.0, 3, -7, 0.1, 1e-3):
            yield f"{name}-{plain}", name, plain, np.array(plain, name), FLOAT_FILL
        yield f"{name}-hex-one", name, f"0x{one:0{width}x}", np.array(one, bits).view(name), HEX_FILL
        yield f"{name}-hex-nan-with-payload", name, f"0x{odd:0{width}x}", np.array(odd, bits).view(name), HEX_FILL
        sign = odd | 1 << (width * 4 - 1)
        yield f"{name}-hex-negative-nan", name, f"0x{sign:0{width}x}", np.array(sign, bits).view(name), HEX_FILL
    yield "float64-largest", "float64", 1.7976931348623157e308, np.array(1.7976931348623157e308), FLOAT_FILL
    yield "float64-smallest", "float64", 5e-324, np.array(5e-324), FLOAT_FILL
    yield "float32-beyond-precision", "float32", 16777217, np.array(16777216, "f4"), FLOAT_FILL
    for name, part in zip(COMPLEX, ("float32", "float64"), strict=True):
        bits, odd, _ = FLOAT_BITS[part]
        width = np.dtype(part).itemsize * 2
        rows: list[tuple[str, Json, list[float]]] = [
            ("numbers", [1, 2.5], [1, 2.5]),
            ("specials", ["NaN", "-Infinity"], [np.nan, -np.inf]),
            ("negative-zero", [-0.0, 0.0], [-0.0, 0.0]),
            ("infinity", ["Infinity", 1], [np.inf, 1]),
        ]
        for word, fill, pair in rows:
            yield f"{name}-{word}", name, fill, np.array(pair, part).view(name).reshape(()), COMPLEX_FILL
        payload = np.array([odd, 0], bits).view(name).reshape(())
        yield f"{name}-hex", name, [f"0x{odd:0{width}x}", 0.0], payload, COMPLEX_FILL
    for size in (1, 2, 3):
        octets = [255, 1, 128][:size]
        yield f"r{size * 8}", f"r{size * 8}", octets, np.array(np.void(bytes(octets))), RAW_FILL


def keys() -> Iterator[Case]:
    level = "v3-keys"
    for shape, chunks in (((), ()), ((5,), (2,)), ((3, 4), (2, 2)), ((2, 24), (1, 2)), ((2, 3, 2), (1, 2, 2))):
        values = ramp(shape)
        for name, separator in itertools.product(("default", "v2"), ("/", ".", None)):
            encoding: Json = {"name": name} if separator is None else named(name, separator=separator)
            files = array_v3(values, "int32", chunks, chunk_key_encoding=encoding)
            label = {"/": "slash", ".": "dot", None: "unsaid"}[separator]
            yield read(
                level,
                f"{name}-{label}-" + ("x".join(map(str, shape)) or "scalar"),
                f"{json.dumps(encoding)}, {len(shape)} dimensions, {shape}",
                DEFAULT_KEYS if name == "default" else V2_KEYS,
                files,
                values,
                "int32",
            )


def codecs() -> Iterator[Case]:
    level = "v3-codecs"
    cube = ramp((4, 5, 6))
    for order in itertools.permutations(range(3)):
        files = array_v3(cube, "int32", (2, 3, 4), [named("transpose", order=list(order)), LITTLE])
        yield read(
            level, "transpose-" + "".join(map(str, order)), f"transpose {list(order)}", TRANSPOSE, files, cube, "int32"
        )
    twice = [named("transpose", order=[1, 2, 0]), named("transpose", order=[2, 1, 0]), LITTLE]
    yield read(
        level, "transpose-twice", "two transposes", TRANSPOSE, array_v3(cube, "int32", (2, 3, 4), twice), cube, "int32"
    )
    flat = ramp((5,))
    yield read(
        level,
        "transpose-1d",
        "transpose of one dimension",
        TRANSPOSE,
        array_v3(flat, "int32", (2,), [named("transpose", order=[0]), LITTLE]),
        flat,
        "int32",
    )
    plane = ramp((40, 50))
    for gzip_level in (0, 1, 5, 9):
        files = array_v3(plane, "int32", (16, 20), [LITTLE, named("gzip", level=gzip_level)])
        yield read(level, f"gzip-{gzip_level}", f"gzip, level {gzip_level}", GZIP, files, plane, "int32")
    for cname, shuffle in itertools.product(
        ("lz4", "lz4hc", "zlib", "zstd", "blosclz"), ("noshuffle", "shuffle", "bitshuffle")
    ):
        for what, values in (("ramp", plane), ("noise", noise((40, 50)))):
            codec = named("blosc", cname=cname, clevel=5, shuffle=shuffle, typesize=4, blocksize=0)
            files = array_v3(values, "int32", (16, 20), [LITTLE, codec])
            yield read(
                level,
                f"blosc-{cname}-{shuffle}-{what}",
                f"blosc with {cname}, {shuffle}",
                BLOSC,
                files,
                values,
                "int32",
            )
    for cname in ("zstd", "lz4"):
        said_lie = named("blosc", cname=cname, clevel=5, shuffle="noshuffle", typesize=4, blocksize=0)
        true = named("blosc", cname="zlib", clevel=5, shuffle="shuffle", typesize=4, blocksize=0)
        yield read(
            level,
            f"blosc-buffer-knows-better-{cname}",
            f"the document says {cname} and noshuffle, the buffer zlib and shuffle",
            BLOSC,
            array_v3(plane, "int32", (16, 20), [LITTLE, said_lie], written=[LITTLE, true]),
            plane,
            "int32",
        )
    values = ramp((5, 7))
    for name, chain in {
        "crc32c": [LITTLE, {"name": "crc32c"}],
        "crc32c-twice": [LITTLE, {"name": "crc32c"}, {"name": "crc32c"}],
        "crc32c-then-gzip": [LITTLE, {"name": "crc32c"}, named("gzip", level=1)],
        "gzip-then-crc32c": [LITTLE, named("gzip", level=1), {"name": "crc32c"}],
        "gzip-twice": [LITTLE, named("gzip", level=1), named("gzip", level=9)],
        "everything": [named("transpose", order=[1, 0]), BIG, named("gzip", level=1), {"name": "crc32c"}],
    }.items():
        sentence = CRC32C if "crc" in name else CHAIN
        yield read(
            level,
            name,
            f"codecs {json.dumps(chain)}",
            sentence,
            array_v3(values, "int32", (3, 4), chain),
            values,
            "int32",
        )


NAMES_OF_NODES = [
    "with space",
    "ünïcode",
    "foo",
    "FOO",
    "a.b",
    "0",
    "-x",
    "x+y=z",
    "日本",
    "%41",
    "c",
    "zarr",
    ".hidden",
    "a..b",
    "😀",
]


def hierarchies() -> Iterator[Case]:
    level = "v3-groups"
    values = ramp((3,))
    tree = {
        **group_v3(attributes={"title": "root"}),
        **group_v3("a"),
        **array_v3(values, "int32", (2,), path="a/x", attributes={"units": "m"}, dimension_names=["t"]),
        **group_v3("b"),
        **group_v3("b/c"),
    }
    array = {"node_type": "array", "shape": [3], "attributes": {"units": "m"}, "dimension_names": ["t"]}
    nodes: dict[str, Json] = {"a": "group", "a/x": array, "b": "group", "b/c": "group"}
    yield listed(level, "tree", "groups and an array", GROUP, tree, nodes)
    yield listed(level, "subtree", "what lies below a group that is not the root", GROUP, tree, {"x": array}, path="a")
    yield listed(level, "empty", "a group without members", GROUP, group_v3(), {})
    yield listed(
        level, "other-keys", "keys that are no nodes", KEYS, {"nothing.txt": b"x", "folder/readme": b"y", **tree}, nodes
    )
    yield listed(
        level,
        "attributes",
        "attributes of all kinds",
        ATTRIBUTES,
        {**group_v3(), **group_v3("x", attributes=ODD)},
        {"x": {"node_type": "group", "attributes": ODD}},
    )
    extra = {**group_v3(their_notes={"must_understand": False}), **group_v3("x")}
    yield listed(
        level,
        "member-not-to-understand",
        "an unknown member of a group that need not be understood",
        UNKNOWN,
        extra,
        {"x": "group"},
    )
    orphan = {**group_v3(), **array_v3(values, "int32", (2,), path="lost/x")}
    yield read(
        "v3-implicit-groups",
        "array-below",
        "an array below a prefix without a document",
        IMPLICIT,
        orphan,
        values,
        "int32",
        path="lost/x",
    )
    rootless = array_v3(values, "int32", (2,), path="x")
    yield read(
        "v3-implicit-groups",
        "array-without-root",
        "an array in a store without a root group",
        IMPLICIT,
        rootless,
        values,
        "int32",
        path="x",
    )
    names = {
        **group_v3(),
        **{k: v for name in NAMES_OF_NODES for k, v in array_v3(values, "int32", (2,), path=name).items()},
    }
    yield listed("v3-names", "list", "unusual names", NAMES, names, dict.fromkeys(NAMES_OF_NODES, "array"))
    for name in NAMES_OF_NODES:
        label = name.encode("unicode_escape").decode().replace("\\", "_").replace(" ", "_").replace("%", "pct")
        if name == "FOO":
            label = "capital-foo"
        yield read(
            "v3-names",
            f"name-{label}",
            f"an array called {name!r}",
            CASE if name.lower() == "foo" else NAMES,
            names,
            values,
            "int32",
            path=name,
        )
    metadata = {path: json.loads(tree[f"{path}/zarr.json"]) for path in nodes}
    inline = {"kind": "inline", "must_understand": False, "metadata": metadata}
    together = {**tree, **group_v3(attributes={"title": "root"}, consolidated_metadata=inline)}
    yield listed("v3-consolidated", "tree", "consolidated metadata in the root", CONSOLIDATED, together, nodes)
    yield read(
        "v3-consolidated",
        "array",
        "an array of a consolidated hierarchy",
        CONSOLIDATED,
        together,
        values,
        "int32",
        path="a/x",
    )
    odd = {**tree, **group_v3(consolidated_metadata={"kind": "elsewhere", "must_understand": False})}
    yield listed(
        "v3-consolidated",
        "other-kind",
        "consolidated metadata of an unknown kind that need not be understood",
        UNKNOWN,
        odd,
        nodes,
    )
