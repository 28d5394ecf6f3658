"""Zarr v2: layout, data types, codecs, fill values, hierarchies."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from zarr_conformance.case import Case, Json, Sentence
from zarr_conformance.cases.making import COMPLEX, CORE, FLOATS, INTEGERS, listed, noise, ramp, read, sample
from zarr_conformance.encoder import array_v2, group_v2, text_of

DOCUMENT = "Zarr v2"


def said(section: str, says: str) -> Sentence:
    return Sentence(DOCUMENT, section, says)


CHUNKS = said("Chunks", "Each chunk is stored under its indices in the grid, separated by periods; all have full size.")
EDGE = said("Chunks", "Chunks at the edge of an array are stored whole; what lies beyond the edge has no meaning.")
ORDER = said("Metadata, order", "`C` is row-major and `F` column-major order of the bytes of each chunk.")
SEPARATOR = said(
    "Metadata, dimension_separator", "`.` or `/` separates the indices in the key of a chunk; `.` if absent."
)
FILL = said("Metadata, fill_value", "A scalar that replaces the elements of chunks that are not stored.")
NO_FILL = said("Metadata, fill_value", "null means that no default is defined.")
TYPES = said("Data type encoding", "Simple types are NumPy's type strings: byte order, kind, and size in bytes.")
RECORDS = said("Data type encoding", "Structured types are lists of name, type and optional shape; they may be nested.")
TIMES = said("Data type encoding", "Dates and durations have a unit, one of NumPy's.")
FILTERS = said("Filters", "Filters are applied in order when a chunk is written, before the compressor.")
COMPRESSOR = said("Metadata, compressor", "A codec by its id and parameters, or null for none.")
TEXTS = said("Fill value encoding", "Fill values of `S`, `V` and structured types are base64 of their bytes.")
SPECIALS = said("Fill value encoding", 'Floats that JSON lacks are the strings "NaN", "Infinity" and "-Infinity".')
SCALAR = said("Metadata, shape", "An array without dimensions has one chunk, under the key `0`.")
PATHS = said("Logical storage paths", "Keys of a node begin with its path; `\\` counts as `/`.")
GROUPS = said("Hierarchies, groups", "A group is where `.zgroup` is stored, with `zarr_format` 2.")
ATTRIBUTES = said("Attributes", "Attributes are an object in `.zattrs`, beside `.zarray` or `.zgroup`.")
CONSOLIDATED = Sentence(
    "consolidated metadata of v2 (convention)", ".zmetadata", "`metadata` maps each key of a document to the document."
)
OBJECTS = said("Filters", "Objects (`|O`) are made bytes by the first filter, such as `vlen-utf8`.")


def cases() -> Iterator[Case]:
    """Yield all cases of Zarr v2."""
    yield from core()
    yield from types()
    yield from codecs()
    yield from fills()
    yield from hierarchies()


LAYOUTS = [
    ("1d", (6,), (3,)),
    ("1d-edge", (7,), (3,)),
    ("1d-one-chunk", (5,), (5,)),
    ("1d-chunk-longer-than-array", (3,), (10,)),
    ("1d-chunks-of-one", (4,), (1,)),
    ("2d", (4, 6), (2, 3)),
    ("2d-edge", (5, 7), (2, 3)),
    ("2d-whole-rows", (6, 4), (2, 4)),
    ("3d-edge", (3, 4, 5), (2, 3, 2)),
    ("4d", (2, 3, 2, 3), (1, 2, 2, 2)),
    ("5d", (2, 2, 2, 2, 3), (2, 1, 2, 1, 2)),
    ("twelve-columns-of-chunks", (2, 12), (1, 1)),
]


def core() -> Iterator[Case]:
    level = "v2-core"
    for name, shape, chunks in LAYOUTS:
        values = ramp(shape)
        for order in "CF":
            files = array_v2(values, "<i4", chunks, order=order)
            title = f"int32 {list(shape)} in chunks of {list(chunks)}, order {order}"
            yield read(
                level, f"layout-{name}-{order}", title, EDGE if "edge" in name else CHUNKS, files, values, "int32"
            )
        files = array_v2(values, "<i4", chunks, dimension_separator="/")
        title = f"int32 {list(shape)} in chunks of {list(chunks)} with keys like 0/1"
        yield read(level, f"layout-{name}-slash", title, SEPARATOR, files, values, "int32")
    scalar = np.array(42, "int32")
    yield read(level, "scalar", "no dimensions", SCALAR, array_v2(scalar, "<i4", ()), scalar, "int32")
    yield read(
        level,
        "scalar-missing",
        "no dimensions, no chunk",
        FILL,
        array_v2(np.array(9, "i4"), "<i4", (), 9, fill=9),
        np.array(9, "i4"),
        "int32",
    )
    for shape in [(0,), (0, 3), (3, 0, 2)]:
        empty = np.zeros(shape, "int32")
        name = "empty-" + "x".join(map(str, shape))
        yield read(
            level,
            name,
            f"shape {list(shape)}",
            said("Metadata, shape", "Lengths of dimensions are integers, 0 too."),
            array_v2(empty, "<i4", [2] * len(shape)),
            empty,
            "int32",
        )
    holes = ramp((4, 6))
    holes[:2, 3:] = 7
    for order in "CF":
        files = array_v2(holes, "<i4", (2, 3), 7, fill=7, order=order)
        yield read(
            level, f"missing-chunk-{order}", f"a chunk that is not stored, order {order}", FILL, files, holes, "int32"
        )
    nothing = np.full((3, 3), -5, "int16")
    yield read(
        level, "no-chunks", "no chunk is stored", FILL, array_v2(nothing, "<i2", (2, 2), -5, fill=-5), nothing, "int16"
    )
    yield read(
        level,
        "null-fill",
        "fill_value null, all chunks stored",
        NO_FILL,
        array_v2(ramp((4,)), "<i4", (2,), None, missing=False),
        ramp((4,)),
        "int32",
    )
    values = ramp((3, 4))
    rows: dict[str, Json] = {"null": {"filters": None}, "empty-list": {"filters": []}}
    for spelling, members in rows.items():
        yield read(
            level,
            f"filters-{spelling}",
            f"filters: {members['filters']}",
            FILTERS,
            array_v2(values, "<i4", (2, 2), **members),
            values,
            "int32",
        )
    document = json.loads(array_v2(values, "<i4", (2, 2))[".zarray"])
    document["their_notes"] = {"a": 1}
    files = {**array_v2(values, "<i4", (2, 2)), ".zarray": text_of(document)}
    extra = said("Metadata", "Other members than those of the specification may be there, and are ignored.")
    yield read(level, "other-member", "a member that the specification does not have", extra, files, values, "int32")
    yield read(
        level,
        "with-attributes",
        "attributes beside the array",
        ATTRIBUTES,
        array_v2(values, "<i4", (2, 2), attributes={"a": [1, {"b": None}]}),
        values,
        "int32",
    )
    deep = {**group_v2(), **group_v2("a"), **array_v2(values, "<i4", (2, 2), path="a/b")}
    yield read(level, "below-groups", "an array at the path a/b", PATHS, deep, values, "int32", path="a/b")
    for selection in ["1,:", "0:2,1:3", ":,::2", "2,3", "1:1,:", "1:3,3", "::2,1::2"]:
        files = array_v2(ramp((5, 7)), "<i4", (2, 3))
        name = selection.translate(str.maketrans(":,", "-_"))
        yield read(
            level,
            f"selection-{name}",
            f"the selection [{selection}]",
            CHUNKS,
            files,
            ramp((5, 7)),
            "int32",
            selection=selection,
        )
    yield read(
        level, "zip", "an array in a zip archive", PATHS, array_v2(values, "<i4", (2, 2)), values, "int32", store="zip"
    )


def typestr(name: str, order: Any) -> str:
    return np.dtype(name).newbyteorder(order).str


def types() -> Iterator[Case]:
    level = "v2-types"
    for name in CORE:
        values = sample(name, (3, 7))
        for order, word in (("<", "little"), (">", "big")):
            if order == ">" and np.dtype(name).itemsize == 1:
                continue
            files = array_v2(
                values,
                typestr(name, order),
                (2, 3),
                [0, 0] if name in COMPLEX else False if name == "bool" else 0,
                missing=False,
            )
            yield read(level, f"{name}-{word}", f"{name}, {word}-endian", TYPES, files, values, name)
            if name not in {"bool", *COMPLEX}:
                files = array_v2(values, typestr(name, order), (2, 3), missing=False, order="F")
                yield read(
                    level, f"{name}-{word}-F", f"{name}, {word}-endian, column-major", ORDER, files, values, name
                )
    for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"):
        counts = np.array([0, 1, -1, 12345, np.iinfo("i8").min, 99], "int64")
        for kind, word in (("M", "datetime64"), ("m", "timedelta64")):
            files = array_v2(counts, f"<{kind}8[{unit}]", (4,), missing=False)
            yield read(
                level, f"{word}-{unit}", f"{word} in {unit}, NaT among them", TIMES, files, counts, f"{word}[{unit}]"
            )
    yield read(
        level,
        "datetime64-big",
        "datetime64[ns], big-endian",
        TIMES,
        array_v2(np.array([5, -5], "int64"), ">M8[ns]", (2,), missing=False),
        np.array([5, -5], "int64"),
        "datetime64[ns]",
    )
    words = np.array([b"", b"a", b"abc", b"a\0c", b"\xff\xfe", b"xyz"], "S3")
    yield read(
        level,
        "S3",
        "byte strings of 3 bytes",
        TYPES,
        array_v2(words, "|S3", (4,), base64.b64encode(bytes(3)).decode(), missing=False),
        words,
        "|S3",
    )
    texts = np.array(["", "é", "日本語", "😀", "abc", "a b"], "U3")
    for order, word in (("<", "little"), (">", "big")):
        files = array_v2(texts, f"{order}U3", (4,), "", missing=False)
        yield read(level, f"U3-{word}", f"texts of 3 code points, {word}-endian", TYPES, files, texts, f"{order}U3")
    opaque = np.array([bytes([i, 255 - i, 0]) for i in range(5)], "V3")
    yield read(
        level,
        "V3",
        "3 opaque bytes",
        TYPES,
        array_v2(opaque, "|V3", (2,), base64.b64encode(bytes(3)).decode(), fill=np.zeros((), "V3"), missing=False),
        opaque,
        "|V3",
    )
    yield from records()


RECORD_TYPES: list[tuple[str, Json]] = [
    ("two-fields", [["a", "<i4"], ["b", "<f8"]]),
    ("big-endian", [["a", ">i4"], ["b", ">f8"]]),
    ("mixed-order", [["a", ">i2"], ["b", "<i2"]]),
    ("bytes-and-bool", [["a", "|b1"], ["b", "|u1"], ["c", "|S4"]]),
    ("text", [["name", "<U4"], ["n", "<u2"]]),
    ("nested", [["p", [["x", "<f4"], ["y", "<f4"]]], ["n", "<i8"]]),
    ("sub-array", [["v", "<f4", [2, 3]], ["n", "|i1"]]),
    ("date", [["t", "<M8[s]"], ["v", "<f4"]]),
]


def dtype_of(fields: Json) -> np.dtype[np.void]:
    def one(kind: Json) -> Json:
        return dtype_of(kind) if isinstance(kind, list) else kind

    return np.dtype([(name, one(kind), *(tuple(s) for s in shape)) for name, kind, *shape in fields])


def records() -> Iterator[Case]:
    for name, fields in RECORD_TYPES:
        dtype = dtype_of(fields)
        bits = (np.arange(6 * dtype.itemsize) * 37 % 251).astype("u1")
        values = np.frombuffer(bits.tobytes(), dtype).copy()
        if name in {"bytes-and-bool", "text"}:
            values[:] = [(i % 2, i, b"ab") if name[0] == "b" else (f"é{i}", i) for i in range(6)]
        expected = values
        if name == "sub-array":
            flat = np.dtype([("v", "<f4", (2, 3)), ("n", "i1")])
            expected = np.frombuffer(values.tobytes(), np.dtype(f"V{flat.itemsize}"))
        zero = base64.b64encode(bytes(dtype.itemsize)).decode()
        files = array_v2(values, fields, (4,), zero, fill=np.zeros((), dtype), missing=False)
        yield read("v2-types", f"record-{name}", f"records: {json.dumps(fields)}", RECORDS, files, expected, fields)


COMPRESSORS: list[tuple[str, Json]] = [
    ("zlib", {"id": "zlib", "level": 1}),
    ("zlib-9", {"id": "zlib", "level": 9}),
    ("gzip", {"id": "gzip", "level": 5}),
    ("bz2", {"id": "bz2", "level": 1}),
    ("lzma", {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None}),
    ("lz4", {"id": "lz4", "acceleration": 1}),
    ("zstd", {"id": "zstd", "level": 0}),
    ("zstd-checksum", {"id": "zstd", "level": 3, "checksum": True}),
    *(
        (f"blosc-{cname}-{shuffle}", {"id": "blosc", "cname": cname, "clevel": 5, "shuffle": shuffle, "blocksize": 0})
        for cname in ("lz4", "lz4hc", "zlib", "zstd", "blosclz")
        for shuffle in (0, 1, 2)
    ),
]

FILTERS_OF: list[tuple[str, Json, str]] = [
    ("shuffle", [{"id": "shuffle", "elementsize": 4}], "<i4"),
    ("shuffle-2", [{"id": "shuffle", "elementsize": 2}], "<i2"),
    ("delta", [{"id": "delta", "dtype": "<i4", "astype": "<i4"}], "<i4"),
    ("delta-narrow", [{"id": "delta", "dtype": "<i4", "astype": "|i1"}], "<i4"),
    ("delta-big", [{"id": "delta", "dtype": ">i4", "astype": ">i4"}], ">i4"),
    ("crc32", [{"id": "crc32"}], "<i4"),
    ("adler32", [{"id": "adler32"}], "<i4"),
    ("fletcher32", [{"id": "fletcher32"}], "<i4"),
    ("base64", [{"id": "base64"}], "<i4"),
    ("astype", [{"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<i4"}], "<i4"),
    (
        "delta-then-shuffle",
        [{"id": "delta", "dtype": "<i4", "astype": "<i4"}, {"id": "shuffle", "elementsize": 4}],
        "<i4",
    ),
    (
        "fixedscaleoffset",
        [{"id": "fixedscaleoffset", "offset": 10, "scale": 2, "dtype": "<f8", "astype": "<i2"}],
        "<f8",
    ),
    ("quantize", [{"id": "quantize", "digits": 1, "dtype": "<f8", "astype": "<f8"}], "<f8"),
    ("bitround", [{"id": "bitround", "keepbits": 8}], "<f4"),
    ("packbits", [{"id": "packbits"}], "|b1"),
]


def codecs() -> Iterator[Case]:
    level = "v2-codecs"
    for name, compressor in COMPRESSORS:
        for what, values in {"ramp": ramp((40, 50)), "noise": noise((40, 50))}.items():
            size = {} if compressor["id"] != "blosc" else {"typesize": 4}
            files = array_v2(values, "<i4", (16, 20), compressor={**compressor, **size})
            files[".zarray"] = array_v2(values, "<i4", (16, 20), compressor=None)[".zarray"].replace(
                b'"compressor": null', b'"compressor": ' + json.dumps(compressor).encode()
            )
            yield read(
                level, f"{name}-{what}", f"compressor {json.dumps(compressor)}", COMPRESSOR, files, values, "int32"
            )
    for name, filters, dtype in FILTERS_OF:
        kind = np.dtype(dtype)
        values = ramp((5, 7), kind.newbyteorder("=").name) if kind.kind != "b" else sample("bool", (5, 7))
        if name == "fixedscaleoffset":
            values = values / 2 + 10
        for suffix, compressor in (("", None), ("-zlib", {"id": "zlib", "level": 1})):
            zero = False if kind.kind == "b" else 0
            files = array_v2(values, dtype, (3, 4), zero, filters=filters, compressor=compressor, missing=False)
            yield read(
                level, f"filter-{name}{suffix}", f"filters {json.dumps(filters)}", FILTERS, files, values, kind.name
            )
    values = ramp((5, 7))
    files = array_v2(values, "<i4", (3, 4), order="F", filters=[{"id": "delta", "dtype": "<i4", "astype": "<i4"}])
    yield read(level, "filter-delta-F", "delta of a column-major chunk", ORDER, files, values, "int32")
    for name, words, codec in (
        ("vlen-utf8", ["", "a", "été", "日本", "😀", "x" * 300], {"id": "vlen-utf8"}),
        ("vlen-bytes", [b"", b"a", b"\0\xff", b"abc", b"\n", b"x" * 300], {"id": "vlen-bytes"}),
    ):
        texts = np.array(words, object)
        for suffix, compressor in (("", None), ("-zlib", {"id": "zlib", "level": 1})):
            files = array_v2(
                texts,
                "|O",
                (4,),
                "",
                fill="" if "utf8" in name else b"",
                filters=[codec],
                compressor=compressor,
                missing=False,
            )
            yield read("v2-strings", f"{name}{suffix}", f"objects with {name}", OBJECTS, files, texts, "|O")


def fills() -> Iterator[Case]:
    level = "v2-fills"
    rows: list[tuple[str, str, Json, Sentence]] = [
        ("bool-true", "|b1", True, FILL),
        ("bool-false", "|b1", False, FILL),
        *(
            (f"{name}-{end}", typestr(name, "<"), int(getattr(np.iinfo(name), end)), FILL)
            for name in INTEGERS
            for end in ("min", "max")
        ),
        *(
            (f"{name}-{word}", typestr(name, "<"), word, SPECIALS)
            for name in FLOATS
            for word in ("Infinity", "-Infinity")
        ),
        *((f"{name}-{number}", typestr(name, "<"), number, FILL) for name in FLOATS for number in (0.5, -0.0, 3)),
        ("float64-tenth", "<f8", 0.1, FILL),
        ("float64-large", "<f8", 1.7976931348623157e308, FILL),
        ("float32-beyond-precision", "<f4", 16777217, FILL),
        ("big-endian", ">i4", 258, FILL),
        ("big-endian-float", ">f8", 1.5, FILL),
    ]
    for name, dtype, fill, sentence in rows:
        number = float(str(fill).replace("Infinity", "inf")) if "f" in dtype else fill
        values = np.full((2, 3), number, np.dtype(dtype).newbyteorder("="))
        files = array_v2(values, dtype, (2, 2), fill, fill=values[0, 0])
        yield read(
            level, name, f"{dtype} with fill value {json.dumps(fill)}", sentence, files, values, values.dtype.name
        )
    for name in FLOATS:
        values = np.full((2, 3), np.nan, name)
        files = array_v2(values, typestr(name, "<"), (2, 2), "NaN", fill=values[0, 0])
        yield read(level, f"{name}-NaN", f"{name} with fill value NaN", SPECIALS, files, values, name)
    for name, dtype, fill, values in (
        ("S3", "|S3", base64.b64encode(b"ab\0").decode(), np.full((3,), b"ab", "S3")),
        ("V2", "|V2", base64.b64encode(b"\x01\xff").decode(), np.full((3,), np.void(b"\x01\xff"), "V2")),
        ("U2", "<U2", "é", np.full((3,), "é", "U2")),
    ):
        yield read(
            level,
            name,
            f"{dtype} with a fill value",
            TEXTS,
            array_v2(values, dtype, (2,), fill, fill=values[0]),
            values,
            dtype,
        )
    record = np.array((7, 2.5), [("a", "<i4"), ("b", "<f8")])
    values = np.full((3,), record, record.dtype)
    fields = [["a", "<i4"], ["b", "<f8"]]
    files = array_v2(values, fields, (2,), base64.b64encode(record.tobytes()).decode(), fill=record)
    yield read(level, "record", "a record as fill value", TEXTS, files, values, fields)
    for kind in "Mm":
        counts = np.full((3,), 12, "int64")
        yield read(
            level,
            f"date-{kind}",
            "a count of days as fill value",
            TIMES,
            array_v2(counts, f"<{kind}8[D]", (2,), 12, fill=12),
            counts,
            f"{kind}8[D]",
        )


def hierarchies() -> Iterator[Case]:
    level = "v2-groups"
    values = ramp((3,))
    tree = {
        **group_v2(attributes={"title": "root"}),
        **group_v2("a"),
        **array_v2(values, "<i4", (2,), path="a/x", attributes={"units": "m"}),
        **group_v2("b"),
        **group_v2("b/c"),
    }
    nodes = {
        "a": "group",
        "a/x": {"node_type": "array", "shape": [3], "attributes": {"units": "m"}},
        "b": "group",
        "b/c": "group",
    }
    yield listed(level, "tree", "groups and an array", GROUPS, tree, nodes)
    yield listed(
        level,
        "subtree",
        "what lies below a group that is not the root",
        GROUPS,
        tree,
        {"x": {"node_type": "array", "shape": [3]}},
        path="a",
    )
    yield listed(level, "empty", "a group without members", GROUPS, group_v2(), {})
    strange = {"nothing.txt": b"x", "folder/readme": b"y", **tree}
    yield listed(level, "other-keys", "keys that are no nodes", GROUPS, strange, nodes)
    names = ["with space", "ünïcode", "UPPER", "upper", "a.b", "0", "-x", "x+y=z", "日本", "%41"]
    files = {**group_v2(), **{k: v for name in names for k, v in array_v2(values, "<i4", (2,), path=name).items()}}
    yield listed(level, "names", "unusual names", PATHS, files, dict.fromkeys(names, "array"))
    for name in names:
        label = name.encode("unicode_escape").decode().replace("\\", "_").replace(" ", "_").replace("%", "pct")
        yield read(level, f"name-{label}", f"an array called {name!r}", PATHS, files, values, "int32", path=name)
    yield listed(
        level,
        "attributes",
        "attributes of all kinds",
        ATTRIBUTES,
        {**group_v2(), **array_v2(values, "<i4", (2,), path="x", attributes=ODD)},
        {"x": {"node_type": "array", "attributes": ODD}},
    )
    documents = {key: json.loads(value) for key, value in tree.items() if key.rpartition("/")[2].startswith(".z")}
    together = {".zmetadata": text_of({"zarr_consolidated_format": 1, "metadata": documents}), **tree}
    yield listed("v2-consolidated", "tree", "consolidated metadata beside the documents", CONSOLIDATED, together, nodes)
    yield read(
        "v2-consolidated",
        "array",
        "an array of a consolidated hierarchy",
        CONSOLIDATED,
        together,
        values,
        "int32",
        path="a/x",
    )


ODD: Json = {
    "text": 'é😀\n"\\',
    "large": 2**53 + 1,
    "half": 0.5,
    "nothing": None,
    "yes": True,
    "list": [1, [2, {"three": 3}], []],
    "": "an empty name",
    "object": {},
}
