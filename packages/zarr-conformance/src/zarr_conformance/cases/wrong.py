"""What must be refused, what must be survived, and what the texts forbid but some readers understand."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Iterator

from zarr_conformance.case import Case, Json, Sentence
from zarr_conformance.cases.making import ramp, refused, survived
from zarr_conformance.encoder import LITTLE, array_v2, array_v3, group_v3, named, text_of
from zarr_conformance.squeeze import blosc, crc32c, zstd

VALUES = ramp((4, 6))
V3 = array_v3(VALUES, "int32", (2, 3))
V2 = array_v2(VALUES, "<i4", (2, 3))


def said(section: str, says: str) -> Sentence:
    return Sentence("Zarr v3.0", section, says)


def said_v2(section: str, says: str) -> Sentence:
    return Sentence("Zarr v2", section, says)


MANDATORY = said("Array metadata", "The document of an array is one JSON object with all mandatory members.")
FORMAT = said("Array metadata, zarr_format", "`zarr_format` of an array is 3.")
NODE_TYPE = said("Array metadata, node_type", "`node_type` of an array is `array`.")
SHAPE = said("Array metadata, shape", "The shape is a list of integers, not negative.")
TYPE = said("Array metadata, data_type", "A data type is identified by its name, a string.")
GRID = said(
    "Array metadata, chunk_grid",
    "The name of a regular grid is `regular`. Its `chunk_shape` is a list with one integer per dimension.",
)
KEYS = said(
    "Array metadata, chunk_key_encoding", "A chunk key encoding is an object with a name and an optional configuration."
)
SEPARATOR = said("Array metadata, default", "The separator of the `default` encoding is `/` or `.`.")
FILL = said("Array metadata, fill_value", "Fill values of integer types are integers in the range of the type.")
REQUIRED_FILL = said("Array metadata, fill_value", "`fill_value` is required.")
CODECS = said("Array metadata, codecs", "`codecs` is a list of objects with a name.")
CHAIN = said("Codecs", "Array to array codecs, then one array to bytes codec, then bytes to bytes codecs.")
DIMENSIONS = said("Array metadata, dimension_names", "`dimension_names` has a string or null for each dimension.")
UNKNOWN = said(
    "Array metadata, dimension_names",
    "Unknown members are refused, unless they are objects with `must_understand` false.",
)
READER = said("Extension points", "A reader must support the extensions that an array uses.")
TRANSFORMERS = said(
    "Array metadata, storage_transformers",
    "Storage transformers are objects with a name and an optional configuration.",
)
ATTRIBUTES = said("Array metadata, attributes", "`attributes` of an array is an object.")
LENGTH = said("Regular grids", "Each chunk has all elements of its shape.")
GROUP = said("Group metadata", "The document of a group has the mandatory members.")
TRANSPOSE = Sentence(
    "Zarr v3 codecs: transpose", "Configuration parameters", "`order` is a permutation of the dimensions."
)
ENDIAN = Sentence("Zarr v3 codecs: bytes", "Configuration parameters", "`endian` is `big` or `little`.")
CHECKSUM = Sentence("Zarr v3 codecs: crc32c", "Format and algorithm", "A wrong checksum is an error.")
GZIP = Sentence("Zarr v3 codecs: gzip", "Format and algorithm", "The bytes are in the format of RFC 1952.")


def cases() -> Iterator[Case]:
    """Yield all cases of wrong documents and chunks."""
    yield from documents_v3()
    yield from documents_v2()
    yield from chunks()
    yield from survivals()
    yield from strict()


DROP = object()


def altered(files: dict[str, bytes], key: str, pointer: str, value: object) -> dict[str, bytes]:
    """Return files in one document of which the member at a pointer has another value, or is left out."""
    document = json.loads(files[key])
    *parents, last = pointer.strip("/").split("/")
    place: Json = document
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if value is DROP:
        del place[last]
    elif isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value
    return {**files, key: text_of(document)}


V3_ROWS: list[tuple[str, str, object, Sentence]] = [
    ("no-zarr-format", "/zarr_format", DROP, FORMAT),
    ("zarr-format-4", "/zarr_format", 4, FORMAT),
    ("zarr-format-text", "/zarr_format", "3", FORMAT),
    ("no-node-type", "/node_type", DROP, NODE_TYPE),
    ("node-type-unknown", "/node_type", "table", NODE_TYPE),
    ("node-type-capital", "/node_type", "Array", NODE_TYPE),
    ("no-shape", "/shape", DROP, MANDATORY),
    ("shape-null", "/shape", None, SHAPE),
    ("shape-number", "/shape", 24, SHAPE),
    ("shape-negative", "/shape", [-4, 6], SHAPE),
    ("shape-half", "/shape", [4.5, 6], SHAPE),
    ("shape-text", "/shape", ["4", 6], SHAPE),
    ("no-data-type", "/data_type", DROP, MANDATORY),
    ("data-type-unknown", "/data_type", "int33", READER),
    ("data-type-number", "/data_type", 7, TYPE),
    ("data-type-numpy", "/data_type", "<i4", TYPE),
    ("data-type-empty", "/data_type", "", TYPE),
    ("data-type-unnamed", "/data_type", {"configuration": {}}, TYPE),
    ("data-type-unknown-object", "/data_type", {"name": "https://example.org/unknown", "configuration": {}}, READER),
    ("data-type-raw-of-12-bits", "/data_type", "r12", said("Data types", "The bits of raw types are a multiple of 8.")),
    ("no-chunk-grid", "/chunk_grid", DROP, MANDATORY),
    ("chunk-grid-unknown", "/chunk_grid/name", "hexagonal", READER),
    ("chunk-grid-unnamed", "/chunk_grid/name", DROP, GRID),
    ("chunk-grid-without-configuration", "/chunk_grid/configuration", DROP, GRID),
    ("chunk-shape-missing", "/chunk_grid/configuration", {}, GRID),
    ("chunk-shape-of-fewer-dimensions", "/chunk_grid/configuration/chunk_shape", [2], GRID),
    ("chunk-shape-of-more-dimensions", "/chunk_grid/configuration/chunk_shape", [2, 3, 1], GRID),
    ("chunk-shape-zero", "/chunk_grid/configuration/chunk_shape", [0, 3], GRID),
    ("chunk-shape-negative", "/chunk_grid/configuration/chunk_shape", [-2, 3], GRID),
    ("chunk-shape-half", "/chunk_grid/configuration/chunk_shape", [1.5, 3], GRID),
    ("no-chunk-key-encoding", "/chunk_key_encoding", DROP, MANDATORY),
    ("chunk-key-encoding-unknown", "/chunk_key_encoding/name", "morton", READER),
    ("chunk-key-separator", "/chunk_key_encoding/configuration/separator", "-", SEPARATOR),
    ("chunk-key-separator-number", "/chunk_key_encoding/configuration/separator", 1, SEPARATOR),
    ("no-fill-value", "/fill_value", DROP, REQUIRED_FILL),
    ("fill-out-of-range", "/fill_value", 2**31, FILL),
    ("fill-below-range", "/fill_value", -(2**31) - 1, FILL),
    ("fill-half", "/fill_value", 0.5, FILL),
    ("fill-list", "/fill_value", [0], FILL),
    ("fill-object", "/fill_value", {}, FILL),
    ("fill-text", "/fill_value", "seven", FILL),
    ("fill-nan", "/fill_value", "NaN", FILL),
    ("codecs-object", "/codecs", {"name": "bytes"}, CODECS),
    ("codec-unknown", "/codecs", [LITTLE, named("example.unknown", level=1)], READER),
    ("codec-unknown-without-configuration", "/codecs", [LITTLE, {"name": "rot13"}], READER),
    ("codec-unnamed", "/codecs", [LITTLE, {"configuration": {}}], CODECS),
    ("codec-number", "/codecs", [LITTLE, 5], CODECS),
    ("codecs-two-serializers", "/codecs", [LITTLE, LITTLE], CHAIN),
    ("codecs-array-codec-last", "/codecs", [LITTLE, named("transpose", order=[1, 0])], CHAIN),
    ("codecs-bytes-codec-first", "/codecs", [named("gzip", level=1), LITTLE], CHAIN),
    ("endian-middle", "/codecs", [named("bytes", endian="middle")], ENDIAN),
    ("transpose-not-permutation", "/codecs", [named("transpose", order=[0, 0]), LITTLE], TRANSPOSE),
    ("transpose-other-dimensions", "/codecs", [named("transpose", order=[0, 1, 2]), LITTLE], TRANSPOSE),
    ("transpose-out-of-range", "/codecs", [named("transpose", order=[1, 2]), LITTLE], TRANSPOSE),
    ("transpose-without-order", "/codecs", [{"name": "transpose", "configuration": {}}, LITTLE], TRANSPOSE),
    (
        "gzip-level-12",
        "/codecs",
        [LITTLE, named("gzip", level=12)],
        Sentence("Zarr v3 codecs: gzip", "Configuration parameters", "`level` is from 0 to 9."),
    ),
    ("dimension-names-fewer", "/dimension_names", ["y"], DIMENSIONS),
    ("dimension-names-more", "/dimension_names", ["y", "x", "z"], DIMENSIONS),
    ("dimension-names-number", "/dimension_names", ["y", 1], DIMENSIONS),
    ("dimension-names-text", "/dimension_names", "yx", DIMENSIONS),
    ("unknown-member", "/their_notes", {"a": 1}, UNKNOWN),
    ("unknown-member-text", "/their_notes", "a", UNKNOWN),
    ("unknown-member-true", "/their_notes", {"must_understand": True}, UNKNOWN),
    ("storage-transformer-unknown", "/storage_transformers", [named("example.unknown", a=1)], TRANSFORMERS),
    ("attributes-list", "/attributes", [1], ATTRIBUTES),
]


def documents_v3() -> Iterator[Case]:
    level = "refuse-v3-documents"
    for name, pointer, value, sentence in V3_ROWS:
        shown = "left out" if value is DROP else json.dumps(value)
        files = altered(V3, "zarr.json", pointer, value)
        unknown = sentence is READER or "unknown" in name or "data-type" in name
        yield refused(level, name, f"{pointer} {shown}", sentence, files, unknown=unknown)
    for name, data_type, fill in (
        ("fill-bool-number-2", "bool", 2),
        ("fill-uint8-negative", "uint8", -1),
        ("fill-uint8-256", "uint8", 256),
        ("fill-uint64-too-large", "uint64", 2**64),
        ("fill-float-word", "float32", "nought"),
        ("fill-float-list", "float64", [1.5]),
        ("fill-complex-number", "complex64", 1),
        ("fill-complex-three", "complex64", [1, 2, 3]),
        ("fill-raw-too-short", "r16", [1]),
        ("fill-raw-out-of-range", "r16", [1, 256]),
    ):
        values = VALUES.astype("V2" if data_type == "r16" else data_type)
        sentence = said("Array metadata, fill_value", "The type of the array says which fill values there are.")
        yield refused(
            level,
            name,
            f"{data_type} with fill value {json.dumps(fill)}",
            sentence,
            array_v3(values, data_type, (2, 3), [LITTLE], fill, missing=False, fill=values.flat[0]),
        )
    texts = {
        "not-json": b"{zarr_format: 3}",
        "empty": b"",
        "json-list": b"[]",
        "json-null": b"null",
        "cut": V3["zarr.json"][:-20],
        "not-utf8": V3["zarr.json"].replace(b"int32", b"int\xff32"),
        "two-documents": V3["zarr.json"] * 2,
    }
    for name, text in texts.items():
        yield refused(
            level, f"json-{name}", f"a document that is no JSON object: {name}", MANDATORY, {**V3, "zarr.json": text}
        )
    yield refused(level, "group-read-as-array", "a group where an array is asked for", NODE_TYPE, group_v3())
    yield refused(level, "nothing", "no document at all", MANDATORY, {"c/0/0": V3["c/0/0"]})


def documents_v2() -> Iterator[Case]:
    level = "refuse-v2-documents"
    meta = said_v2("Metadata", "`.zarray` has all members of the specification, each of its type.")
    rows: list[tuple[str, str, object]] = [
        ("zarr-format-9", "/zarr_format", 9),
        ("no-shape", "/shape", DROP),
        ("shape-negative", "/shape", [-4, 6]),
        ("shape-text", "/shape", "4,6"),
        ("shape-half", "/shape", [4.5, 6]),
        ("no-chunks", "/chunks", DROP),
        ("chunks-fewer", "/chunks", [2]),
        ("chunks-zero", "/chunks", [0, 3]),
        ("chunks-negative", "/chunks", [-2, 3]),
        ("no-dtype", "/dtype", DROP),
        ("dtype-unknown", "/dtype", "<q4"),
        ("dtype-number", "/dtype", 4),
        ("dtype-odd-size", "/dtype", "<i3"),
        ("order-unknown", "/order", "Z"),
        ("compressor-unknown", "/compressor", {"id": "rot13"}),
        ("compressor-without-id", "/compressor", {"level": 1}),
        ("filter-unknown", "/filters", [{"id": "rot13"}]),
        ("separator-unknown", "/dimension_separator", "-"),
        ("fill-out-of-range", "/fill_value", 2**31),
        ("fill-text", "/fill_value", "seven"),
        ("dtype-object-without-codec", "/dtype", "|O"),
    ]
    for name, pointer, value in rows:
        shown = "left out" if value is DROP else json.dumps(value)
        unknown = "unknown" in name or "dtype" in name
        yield refused(level, name, f"{pointer} {shown}", meta, altered(V2, ".zarray", pointer, value), unknown=unknown)
    for name, text in {
        "not-json": b"{zarr_format: 2}",
        "empty": b"",
        "json-list": b"[]",
        "cut": V2[".zarray"][:-20],
    }.items():
        yield refused(
            level, f"json-{name}", f"a document that is no JSON object: {name}", meta, {**V2, ".zarray": text}
        )


def chunks() -> Iterator[Case]:
    crc, squeezed = {"name": "crc32c"}, named("gzip", level=1)
    raw = V3["c/0/0"]
    packed = gzip.compress(raw, mtime=0)
    bad: list[tuple[str, str, list[Json], bytes, Sentence]] = [
        ("short", "a chunk of one byte less", [LITTLE], raw[:-1], LENGTH),
        ("one-element-short", "a chunk of one element less", [LITTLE], raw[:-4], LENGTH),
        ("long", "a chunk of one byte more", [LITTLE], raw + b"x", LENGTH),
        ("one-element-long", "a chunk of one element more", [LITTLE], raw + b"xxxx", LENGTH),
        ("empty", "a chunk of no bytes", [LITTLE], b"", LENGTH),
        ("only-the-part-within", "a chunk at the edge without what lies beyond", [LITTLE], raw[:8], LENGTH),
        ("gzip-of-too-little", "gzip of too few bytes", [LITTLE, squeezed], gzip.compress(raw[:-4], mtime=0), LENGTH),
        (
            "gzip-of-too-much",
            "gzip of too many bytes",
            [LITTLE, squeezed],
            gzip.compress(raw + b"xxxx", mtime=0),
            LENGTH,
        ),
        ("gzip-cut", "gzip that is cut", [LITTLE, squeezed], packed[:-9], GZIP),
        (
            "gzip-wrong-crc",
            "gzip with a wrong checksum",
            [LITTLE, squeezed],
            packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:],
            GZIP,
        ),
        ("gzip-not-gzip", "bytes that are not gzip", [LITTLE, squeezed], b"not gzip at all", GZIP),
        ("gzip-is-zlib", "zlib in place of gzip", [LITTLE, squeezed], zlib.compress(raw), GZIP),
        ("crc32c-wrong", "a wrong checksum", [LITTLE, crc], raw + bytes(4), CHECKSUM),
        (
            "crc32c-data-altered",
            "altered data with the old checksum",
            [LITTLE, crc],
            b"\2" + encode_crc(raw)[1:],
            CHECKSUM,
        ),
        ("crc32c-too-short", "three bytes with a checksum of four", [LITTLE, crc], b"abc", CHECKSUM),
        ("blosc-cut", "blosc that is cut", [LITTLE, BLOSC], blosc(raw, {"cname": "zlib", "typesize": 4})[:-3], LENGTH),
        ("blosc-not-blosc", "bytes that are not blosc", [LITTLE, BLOSC], b"\xff" * 40, LENGTH),
        (
            "blosc-of-too-little",
            "blosc of too few bytes",
            [LITTLE, BLOSC],
            blosc(raw[:8], {"cname": "zlib", "typesize": 4}),
            LENGTH,
        ),
        ("zstd-cut", "Zstandard that is cut", [LITTLE, ZSTD], zstd(raw, {})[:-3], LENGTH),
        ("zstd-not-zstd", "bytes that are not Zstandard", [LITTLE, ZSTD], b"not zstandard at all", LENGTH),
        ("zstd-of-too-little", "Zstandard of too few bytes", [LITTLE, ZSTD], zstd(raw[:8], {}), LENGTH),
        (
            "zstd-wrong-checksum",
            "Zstandard with a wrong checksum",
            [LITTLE, ZSTD],
            zstd(raw, {"checksum": True})[:-1] + b"?",
            Sentence(
                "zarr-extensions: codecs/zstd",
                "Configuration parameters, checksum",
                "The checksum is verified when reading.",
            ),
        ),
    ]
    for name, title, codecs, value, sentence in bad:
        files = {**array_v3(VALUES, "int32", (2, 3), codecs), "c/0/0": value}
        yield refused("refuse-v3-chunks", name, title, sentence, files)
    v2 = said_v2("Chunks", "Each chunk is stored whole.")
    words = array_v2(VALUES, "<i4", (2, 3), compressor={"id": "zlib", "level": 1})
    for name, title, files, value in (
        ("short", "a chunk of one byte less", V2, raw[:-1]),
        ("long", "a chunk of one byte more", V2, raw + b"x"),
        ("one-element-short", "a chunk of one element less", V2, raw[:-4]),
        ("empty", "a chunk of no bytes", V2, b""),
        ("zlib-cut", "zlib that is cut", words, zlib.compress(raw)[:-5]),
        ("zlib-not-zlib", "bytes that are not zlib", words, b"not zlib at all"),
        ("zlib-of-too-little", "zlib of too few bytes", words, zlib.compress(raw[:8])),
    ):
        yield refused("refuse-v2-chunks", name, title, v2, {**files, "0.0": value})
    text = {"name": "vlen-utf8"}
    four = Sentence(
        "zarr-extensions: codecs/vlen-utf8", "Format and algorithm", "The number of items, then each with its length."
    )
    for name, title, value in (
        ("fewer-items", "fewer items than elements", struct.pack("<II", 1, 1) + b"a"),
        ("item-beyond-end", "an item beyond the end", struct.pack("<II", 4, 2**30) + b"abcd"),
        ("count-beyond-end", "more items than there are bytes", struct.pack("<I", 2**31) + b"x"),
        ("not-utf8", "an item that is no UTF-8", struct.pack("<I", 4) + (struct.pack("<I", 1) + b"\xff") * 4),
    ):
        files = {
            "zarr.json": text_of(
                {
                    **json.loads(V3["zarr.json"]),
                    "data_type": "string",
                    "fill_value": "",
                    "codecs": [text],
                    "shape": [4],
                    "chunk_grid": named("regular", chunk_shape=[4]),
                }
            ),
            "c/0": value,
        }
        yield refused("refuse-v3-chunks", f"vlen-utf8-{name}", title, four, files)


def encode_crc(raw: bytes) -> bytes:
    return raw + struct.pack("<I", crc32c(raw))


BLOSC = named("blosc", cname="zlib", clevel=5, shuffle="noshuffle", typesize=4, blocksize=0)
ZSTD = named("zstd", level=1, checksum=False)


def survivals() -> Iterator[Case]:
    level = "survive"
    bound = Sentence(
        "zarr-conformance",
        "Survival",
        "Stored data decide neither how long a reader works nor how much memory it takes.",
    )
    zeros = gzip.compress(bytes(1 << 24), 9, mtime=0) * 256
    frame = zstd(b"", {"sized": False})[:-3]
    frame += ((131072 << 3 | 2).to_bytes(3, "little") + b"\0") * 32767 + (131072 << 3 | 3).to_bytes(3, "little") + b"\0"
    for name, codec, value in (("gzip", named("gzip", level=1), zeros), ("zstd", ZSTD, frame)):
        files = {**array_v3(VALUES, "int32", (2, 3), [LITTLE, codec]), "c/0/0": value}
        yield survived(level, f"bomb-{name}", f"a chunk of 24 bytes that {name} makes 4 GiB of", bound, files)
    lie = bytearray(blosc(VALUES.tobytes(), {"cname": "zlib", "typesize": 4}))
    lie[4:8] = struct.pack("<I", 2**31 - 17)
    yield survived(
        level,
        "blosc-size",
        "a buffer of blosc that says it holds 2 GiB",
        bound,
        {**array_v3(VALUES, "int32", (2, 3), [LITTLE, BLOSC]), "c/0/0": bytes(lie)},
    )
    for name, shape in (
        ("shape-of-10-to-18", [10**9, 10**9]),
        ("shape-beyond-64-bits", [2**62, 2**62]),
        ("length-beyond-64-bits", [2**64, 1]),
    ):
        files = altered(
            altered(V3, "zarr.json", "/shape", shape),
            "zarr.json",
            "/chunk_grid/configuration/chunk_shape",
            [1000, 1000],
        )
        yield survived(level, name, f"two elements of an array of shape {shape}", bound, files, selection="0:1,0:2")
    for name, chunk in (("chunk-of-10-to-18", [10**9, 10**9]), ("chunk-beyond-64-bits", [2**62, 4])):
        files = altered(V3, "zarr.json", "/chunk_grid/configuration/chunk_shape", chunk)
        yield survived(level, name, f"chunks of shape {chunk}", bound, files)
    deep = V3["zarr.json"].replace(b'"node_type"', b'"deep": ' + b"[" * 100_000 + b"]" * 100_000 + b', "node_type"')
    yield survived(level, "json-nested-deeply", "a document of 100,000 nested lists", bound, {**V3, "zarr.json": deep})
    long = V3["zarr.json"].replace(b"[\n  4,", b"[\n  " + b"4" * 100_000 + b",")
    yield survived(
        level, "json-number-of-100000-digits", "a length of 100,000 digits", bound, {**V3, "zarr.json": long}
    )
    nested: Json = [LITTLE]
    for _ in range(200):
        nested = [named("sharding_indexed", chunk_shape=[2, 3], codecs=nested, index_codecs=[LITTLE])]
    yield survived(
        level,
        "shards-200-deep",
        "shards in shards in shards, 200 times",
        bound,
        altered(V3, "zarr.json", "/codecs", nested),
    )
    many = [LITTLE, *[named("gzip", level=1)] * 2000]
    yield survived(level, "codecs-2000", "2000 codecs in a chain", bound, altered(V3, "zarr.json", "/codecs", many))
    index = named("sharding_indexed", chunk_shape=[1, 1], codecs=[LITTLE], index_codecs=[LITTLE])
    files = altered(
        altered(V3, "zarr.json", "/shape", [2**20, 2**20]),
        "zarr.json",
        "/chunk_grid/configuration/chunk_shape",
        [2**20, 2**20],
    )
    yield survived(
        level,
        "shard-index-of-16-TiB",
        "a shard whose index would have 2^40 entries",
        bound,
        altered(files, "zarr.json", "/codecs", [index]),
        selection="0,0",
    )
    text = {"name": "vlen-utf8"}
    files = altered(
        altered(altered(V3, "zarr.json", "/data_type", "string"), "zarr.json", "/fill_value", ""),
        "zarr.json",
        "/codecs",
        [text],
    )
    yield survived(
        level,
        "vlen-count",
        "a chunk of strings that says it has 2^32 - 1 items",
        bound,
        {**files, "c/0/0": struct.pack("<I", 2**32 - 1)},
    )
    for name, data in {
        "zeros": bytes(64),
        "ones": b"\xff" * 64,
        "text": b"The quick brown fox jumps over the lazy dog. " * 2,
    }.items():
        for codec_name, codec in (("gzip", named("gzip", level=1)), ("blosc", BLOSC), ("zstd", ZSTD)):
            files = {**array_v3(VALUES, "int32", (2, 3), [LITTLE, codec]), "c/0/0": data}
            yield survived(level, f"{codec_name}-of-{name}", f"{name} where {codec_name} is expected", bound, files)
        codec = named("sharding_indexed", chunk_shape=[1, 1], codecs=[LITTLE], index_codecs=[LITTLE])
        files = {**array_v3(VALUES, "int32", (2, 3), [codec]), "c/0/0": data}
        yield survived(level, f"shard-of-{name}", f"{name} where a shard is expected", bound, files)
    dots = {**V3, "zarr.json": V3["zarr.json"].replace(b'"separator": "/"', b'"separator": "/../"')}
    yield survived(level, "separator-that-climbs", "a separator that leads out of the store", bound, dots)


def strict() -> Iterator[Case]:
    level = "strict"
    rows: list[tuple[str, str, object, Sentence]] = [
        ("no-codecs", "/codecs", DROP, MANDATORY),
        (
            "codecs-empty",
            "/codecs",
            [],
            said("Array metadata, codecs", "`codecs` is never empty, because an array to bytes codec is required."),
        ),
        ("codecs-without-serializer", "/codecs", [named("gzip", level=1)], CHAIN),
        ("fill-null", "/fill_value", None, FILL),
        ("fill-integer-as-float", "/fill_value", 0.0, FILL),
        ("fill-integer-as-text", "/fill_value", "0", FILL),
        ("bytes-without-endian", "/codecs", [{"name": "bytes"}], ENDIAN),
        ("zarr-format-float", "/zarr_format", 3.0, FORMAT),
        ("dimension-names-null", "/dimension_names", None, DIMENSIONS),
        ("storage-transformers-null", "/storage_transformers", None, TRANSFORMERS),
        ("codec-member-unknown", "/codecs", [{**LITTLE, "extra": 1}], READER),
        (
            "codec-parameter-unknown",
            "/codecs",
            [named("bytes", endian="little", extra=1)],
            said("Specifying codecs", "The specification of a codec declares its parameters. Others are refused."),
        ),
        (
            "gzip-without-level",
            "/codecs",
            [LITTLE, {"name": "gzip"}],
            Sentence("Zarr v3 codecs: gzip", "Configuration parameters", "`level` is required."),
        ),
    ]
    for name, pointer, value, sentence in rows:
        shown = "left out" if value is DROP else json.dumps(value)
        yield refused(level, name, f"{pointer} {shown}", sentence, altered(V3, "zarr.json", pointer, value))
    twice = V3["zarr.json"].replace(b'"zarr_format": 3', b'"fill_value": 1, "zarr_format": 3')
    yield refused(level, "member-twice", "the same member twice", MANDATORY, {**V3, "zarr.json": twice})
