"""Shards: inner chunks, the index, what is missing, what lies elsewhere, shards in shards."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import numpy as np

from zarr_conformance.case import Array, Case, Json, Sentence
from zarr_conformance.cases.making import ramp, read, refused, sample
from zarr_conformance.encoder import BIG, LITTLE, PLAIN, ShardStyle, array_v3, named

LEVEL = "v3-sharding"
DOCUMENT = "Zarr v3 codecs: sharding_indexed"
LAYOUT = Sentence(
    DOCUMENT,
    "Binary shard format",
    "Inner chunks lie anywhere in the shard; the index has offset and length of each, in C order.",
)
EMPTY = Sentence(
    DOCUMENT,
    "Binary shard format",
    "2^64 - 1 as offset and length is an inner chunk that is not stored: the fill value.",
)
LOCATION = Sentence(
    DOCUMENT,
    "Configuration parameters, index_location",
    "The index is at the start or the end of the shard; `end` if unsaid.",
)
INDEX_CODECS = Sentence(
    DOCUMENT,
    "Configuration parameters, index_codecs",
    "The index is encoded by these codecs, whose output has a fixed size.",
)
INNER = Sentence(
    DOCUMENT,
    "Configuration parameters, codecs",
    "Each inner chunk is encoded by these codecs, which may be shards again.",
)
AROUND = Sentence("Zarr v3.0", "Codecs", "Other codecs may stand before and after the array to bytes codec.")
DIVIDES = Sentence(
    DOCUMENT, "Configuration parameters, chunk_shape", "The shape of inner chunks divides the shape of the shard."
)
GZIP, CRC = named("gzip", level=1), {"name": "crc32c"}


def shard(chunks: list[int], codecs: list[Json] | None = None, **configuration: Json) -> Json:
    return named("sharding_indexed", chunk_shape=chunks, codecs=codecs or [LITTLE], **configuration)


WITH_CRC = {"index_codecs": [LITTLE, CRC]}


def cases() -> Iterator[Case]:
    """Yield all cases of shards."""
    values = ramp((9, 14))
    inner = {
        "raw": [LITTLE],
        "big": [BIG],
        "gzip": [LITTLE, GZIP],
        "crc32c": [LITTLE, CRC],
        "transposed": [named("transpose", order=[1, 0]), LITTLE],
    }
    for (word, codecs), location in itertools.product(inner.items(), ("start", "end")):
        codec = shard([2, 3], codecs, **WITH_CRC, index_location=location)
        yield case(
            f"{word}-index-at-{location}",
            f"inner codecs {json.dumps(codecs)}, index at the {location}",
            LOCATION,
            values,
            [codec],
        )
    for word, index in {
        "bare": [LITTLE],
        "big": [BIG],
        "big-crc32c": [BIG, CRC],
        "crc32c-twice": [LITTLE, CRC, CRC],
    }.items():
        for location in ("start", "end"):
            codec = shard([2, 3], index_codecs=index, index_location=location)
            yield case(
                f"index-{word}-at-{location}", f"index codecs {json.dumps(index)}", INDEX_CODECS, values, [codec]
            )
    yield case("location-unsaid", "no index_location", LOCATION, values, [shard([2, 3], **WITH_CRC)])
    for word, style in {
        "backwards": ShardStyle(backwards=True),
        "gaps": ShardStyle(gap=5),
        "backwards-with-gaps": ShardStyle(backwards=True, gap=1),
    }.items():
        for location in ("start", "end"):
            codec = shard([2, 3], **WITH_CRC, index_location=location)
            yield case(
                f"{word}-at-{location}",
                f"inner chunks {word}, index at the {location}",
                LAYOUT,
                values,
                [codec],
                style=style,
            )
    holes = ramp((8, 12))
    holes[:2, :3] = holes[4:6, 6:] = 7
    holes[4:, :6] = 7
    for location in ("start", "end"):
        codec = shard([2, 3], **WITH_CRC, index_location=location)
        yield case(f"missing-inner-at-{location}", "inner chunks that are not stored", EMPTY, holes, [codec], fill=7)
        full = ShardStyle(keep_fill=True)
        yield case(
            f"stored-fill-at-{location}",
            "inner chunks of the fill value, stored",
            EMPTY,
            holes,
            [codec],
            fill=7,
            style=full,
        )
    nothing = np.full((8, 12), 7, "int32")
    yield case("missing-shards", "no shard is stored", EMPTY, nothing, [shard([2, 3], **WITH_CRC)], fill=7)
    files = array_v3(nothing, "int32", (4, 6), [shard([2, 3], **WITH_CRC)], 7, fill=7, missing=False)
    yield read(LEVEL, "only-index", "shards of nothing but their index", EMPTY, files, nothing, "int32")
    nan = np.full((8,), np.nan, "float32")
    nan[3] = 1
    files = array_v3(nan, "float32", (4,), [shard([2], **WITH_CRC)], "NaN", fill=np.float32(np.nan))
    yield read(LEVEL, "missing-inner-nan", "NaN for an inner chunk that is not stored", EMPTY, files, nan, "float32")
    for depth, codec in {
        "two": shard([4, 6], [shard([2, 3], **WITH_CRC)], **WITH_CRC),
        "two-start": shard(
            [4, 6], [shard([2, 3], **WITH_CRC, index_location="start")], **WITH_CRC, index_location="start"
        ),
        "two-mixed": shard([4, 6], [shard([2, 3], [LITTLE, GZIP], **WITH_CRC)], **WITH_CRC, index_location="start"),
        "three": shard([4, 6], [shard([2, 6], [shard([1, 3], **WITH_CRC)], **WITH_CRC)], **WITH_CRC),
    }.items():
        yield case(f"nested-{depth}", f"shards in shards: {depth}", INNER, values, [codec], chunks=(8, 12))
        yield case(
            f"nested-{depth}-holes",
            f"shards in shards with missing chunks: {depth}",
            EMPTY,
            holes,
            [codec],
            chunks=(8, 12),
            fill=7,
        )
    codec = shard([2, 3], **WITH_CRC)
    turned = shard([3, 2], **WITH_CRC)
    yield case(
        "transpose-before", "transpose around shards", AROUND, values, [named("transpose", order=[1, 0]), turned]
    )
    yield case("gzip-after", "gzip around shards", AROUND, values, [codec, GZIP])
    yield case("crc32c-after", "crc32c around shards", AROUND, values, [codec, CRC])
    yield case(
        "everything",
        "transpose and gzip around shards",
        AROUND,
        values,
        [named("transpose", order=[1, 0]), turned, GZIP, CRC],
    )
    yield case("one-inner-chunk", "an inner chunk as large as its shard", INNER, values, [shard([4, 6], **WITH_CRC)])
    yield case("inner-chunks-of-one", "inner chunks of one element", INNER, values, [shard([1, 1], **WITH_CRC)])
    line = ramp((7,))
    yield case("1d", "shards of one dimension", LAYOUT, line, [shard([2], **WITH_CRC)], chunks=(4,))
    cube = ramp((5, 6, 7))
    yield case("3d", "shards of three dimensions", LAYOUT, cube, [shard([2, 1, 2], **WITH_CRC)], chunks=(4, 2, 4))
    scalar = np.array(5, "int32")
    yield case("scalar", "a shard without dimensions", LAYOUT, scalar, [shard([], **WITH_CRC)], chunks=())
    for name in ("bool", "uint8", "int64", "float16", "float64", "complex64"):
        sampled = sample(name, (8, 12))
        zero: Json = [0, 0] if name == "complex64" else False if name == "bool" else 0
        files = array_v3(sampled, name, (4, 6), [codec], zero, fill=np.zeros((), name))
        yield read(LEVEL, f"type-{name}", f"shards of {name}", INNER, files, sampled, name)
    yield from broken(values)


def case(
    name: str,
    title: str,
    sentence: Sentence,
    values: Array,
    codecs: list[Json],
    *,
    chunks: tuple[int, ...] = (4, 6),
    fill: int = 0,
    style: ShardStyle = PLAIN,
) -> Case:
    files = array_v3(values, "int32", chunks, codecs, fill, fill=fill, style=style)
    return read(LEVEL, name, title, sentence, files, values, "int32")


def broken(values: Array) -> Iterator[Case]:
    """Yield shards that must be refused."""
    level = "refuse-v3-chunks"
    bare = shard([2, 3], index_codecs=[LITTLE])
    files = array_v3(values, "int32", (4, 6), [bare])
    safe = array_v3(values, "int32", (4, 6), [shard([2, 3], **WITH_CRC)])
    stored, checked = files["c/0/0"], safe["c/0/0"]

    def with_entry(offset: int, length: int) -> bytes:
        entry = np.array([offset, length], "<u8").tobytes()
        return stored[:-64] + entry + stored[-48:]

    rows = {
        "index-crc32c": (
            "the checksum of the index is wrong",
            safe,
            checked[:-1] + bytes([checked[-1] ^ 1]),
            INDEX_CODECS,
        ),
        "index-altered": (
            "the index does not fit its checksum",
            safe,
            checked[:-20] + bytes([checked[-20] ^ 1]) + checked[-19:],
            INDEX_CODECS,
        ),
        "shorter-than-index": ("a shard shorter than its index", files, stored[:10], LAYOUT),
        "empty": ("a shard of no bytes", files, b"", LAYOUT),
        "beyond-end": ("an inner chunk beyond the end of the shard", files, with_entry(len(stored), 24), LAYOUT),
        "length-beyond-end": ("an inner chunk longer than the shard", files, with_entry(0, len(stored) + 1), LAYOUT),
        "overflow": ("an inner chunk whose end is beyond 2^64", files, with_entry(2**64 - 8, 24), LAYOUT),
        "half-missing": (
            "only the offset says that the inner chunk is missing",
            files,
            with_entry(2**64 - 1, 24),
            EMPTY,
        ),
        "inner-too-short": ("an inner chunk of too few bytes", files, with_entry(0, 20), LAYOUT),
        "inner-too-long": ("an inner chunk of too many bytes", files, with_entry(0, 28), LAYOUT),
    }
    for name, (title, whole, chunk, sentence) in rows.items():
        yield refused(level, f"shard-{name}", title, sentence, {**whole, "c/0/0": chunk})
    inner = array_v3(values, "int32", (4, 6), [shard([2, 3], [LITTLE, CRC], **WITH_CRC)])
    first = inner["c/0/0"]
    yield refused(
        level,
        "shard-inner-crc32c",
        "the checksum of an inner chunk is wrong",
        INNER,
        {**inner, "c/0/0": bytes([first[0] ^ 1]) + first[1:]},
    )
    nothing = np.zeros((8, 12), "int32")
    odd = array_v3(nothing, "int32", (4, 6), [shard([3, 4], **WITH_CRC)])
    yield refused(
        "strict", "shard-not-divided", "inner chunks that do not divide the shard: a proposal allows them", DIVIDES, odd
    )
    flat = array_v3(nothing, "int32", (4, 6), [shard([2], **WITH_CRC)])
    title = "inner chunks of other dimensions than the shard"
    yield refused("refuse-v3-documents", "shard-other-dimensions", title, DIVIDES, flat)
