"""Extensions of Zarr v3 that the registry zarr-extensions describes: data types, codecs, the rectilinear grid."""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from zarr_conformance.case import Array, Case, Json, Sentence
from zarr_conformance.cases.making import noise, ramp, read, refused, sample
from zarr_conformance.encoder import BIG, LITTLE, Chunk, array_v3, blocks, document_v3, edges, encode, named, text_of

TRANSPOSED = named("transpose", order=[1, 0])
GZIP = named("gzip", level=1)


def said(what: str, section: str, says: str) -> Sentence:
    return Sentence(f"zarr-extensions: {what}", section, says)


def cases() -> Iterator[Case]:
    """Yield all cases of registered extensions."""
    yield from small_types()
    yield from times()
    yield from texts()
    yield from structs()
    yield from codecs()
    yield from rectilinear()


# name, the integer that carries it, the bits that mean something, the bits of NaN, the bits of 1
SMALL: list[tuple[str, str, int, int | None, int]] = [
    ("int2", "int8", 0x03, None, 1),
    ("uint2", "uint8", 0x03, None, 1),
    ("int4", "int8", 0x0F, None, 1),
    ("uint4", "uint8", 0x0F, None, 1),
    ("float4_e2m1fn", "uint8", 0x0F, None, 0x02),
    ("float6_e2m3fn", "uint8", 0x3F, None, 0x08),
    ("float6_e3m2fn", "uint8", 0x3F, None, 0x0C),
    ("float8_e3m4", "uint8", 0xFF, 0x78, 0x30),
    ("float8_e4m3", "uint8", 0xFF, 0x7C, 0x38),
    ("float8_e4m3b11fnuz", "uint8", 0xFF, 0x80, 0x58),
    ("float8_e4m3fnuz", "uint8", 0xFF, 0x80, 0x40),
    ("float8_e5m2", "uint8", 0xFF, 0x7E, 0x3C),
    ("float8_e5m2fnuz", "uint8", 0xFF, 0x80, 0x40),
    ("float8_e8m0fnu", "uint8", 0xFF, 0xFF, 0x7F),
    ("bfloat16", "uint16", 0xFF, 0x7FC0, 0x3F80),
]


def small_types() -> Iterator[Case]:
    level = "v3-registered-types"
    for name, carrier, mask, nan, one in SMALL:
        width = np.dtype(carrier).itemsize
        count = 24 if mask == 0xFF else mask + 1
        top = 2 ** (8 * width)
        codes = (np.arange(count) * (mask + 1 if mask != 0xFF else top) // count % top).astype(f"u{width}")
        values = np.resize(codes, (4, count)).view(carrier)
        kind = f"`{name}` is stored in {width} byte{'s' * (width > 1)}; bits that it does not use are ignored."
        sentence = said(f"data-types/{name}", "Codec compatibility, bytes", kind)
        mark: dict[str, Any] = {} if mask == 0xFF else {"mask": mask}
        zero: Json = 1 if name == "float8_e8m0fnu" else 0
        for codec, word in ((LITTLE, "little"), (BIG, "big")):
            files = array_v3(values, name, (3, 5), [codec], zero, missing=False)
            yield read(level, f"{name}-{word}", f"{name}, {word}-endian", sentence, files, values, name, **mark)
        if width == 1:
            files = array_v3(values, name, (3, 5), [{"name": "bytes"}], zero, missing=False)
            yield read(
                level, f"{name}-no-endian", f"{name}, `bytes` without endian", sentence, files, values, name, **mark
            )
        if mask != 0xFF:
            dirty = values | np.array(0xFF & ~mask).astype(carrier)
            files = array_v3(dirty, name, (3, 5), [LITTLE], zero, missing=False)
            yield read(level, f"{name}-unused-bits", f"{name}, unused bits set", sentence, files, values, name, **mark)
        fill = said(f"data-types/{name}", "Fill value representation", "As for the core types of the same kind.")
        whole = np.full((2, 3), one, f"u{width}").view(carrier)
        yield read(
            level,
            f"{name}-fill-1",
            f"{name} with fill value 1",
            fill,
            array_v3(whole, name, (2, 2), [LITTLE], 1, fill=whole[0, 0]),
            whole,
            name,
            **mark,
        )
        if name in {"int2", "int4"}:
            least = -2 if name == "int2" else -8
            whole = np.full((2, 3), least, "int8")
            yield read(
                level,
                f"{name}-fill-least",
                f"{name} with fill value {least}",
                fill,
                array_v3(whole, name, (2, 2), [LITTLE], least, fill=least),
                whole,
                name,
                **mark,
            )
        if nan is not None:
            whole = np.full((2, 3), nan, f"u{width}")
            yield read(
                level,
                f"{name}-fill-NaN",
                f"{name} with fill value NaN",
                fill,
                array_v3(whole, name, (2, 2), [LITTLE], "NaN", fill=nan),
                whole,
                name,
            )
            digits = f"0x{one:0{2 * width}x}"
            ones = np.full((2, 3), one, f"u{width}")
            yield read(
                level,
                f"{name}-fill-hex",
                f"{name} with fill value {digits}",
                fill,
                array_v3(ones, name, (2, 2), [LITTLE], digits, fill=one),
                ones,
                name,
            )
    for alias, name in (("complex_float32", "complex64"), ("complex_float64", "complex128")):
        values = sample(name, (3, 4))
        yield read(
            level,
            alias,
            f"{alias}, an alias of {name}",
            said(f"data-types/{alias}", "Name", f"The same type as {name}."),
            array_v3(values, alias, (2, 2), [LITTLE], [0, 0], missing=False),
            values,
            alias,
        )
    for name, carrier in (
        ("complex_bfloat16", "uint16"),
        ("complex_float16", "uint16"),
        ("complex_float8_e5m2", "uint8"),
        ("complex_float8_e4m3", "uint8"),
    ):
        width = np.dtype(carrier).itemsize
        pairs = (np.arange(24) * 41 % 120).astype(carrier).reshape(4, 6)
        stored = pairs.astype(f"<u{width}").view(f"V{2 * width}")
        files = array_v3(
            np.ascontiguousarray(stored), name, (4, 3), [LITTLE], [0, 0], fill=np.zeros((), stored.dtype), missing=False
        )
        sentence = said(f"data-types/{name}", "Codec compatibility, bytes", "The real part, then the imaginary part.")
        yield read(level, name, f"{name}, little-endian", sentence, files, np.ascontiguousarray(stored), name)


def times() -> Iterator[Case]:
    level = "v3-registered-types"
    counts = np.array([0, 1, -1, 12345, np.iinfo("i8").min, 99], "int64")
    units = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
    for word in ("datetime64", "timedelta64"):
        sentence = said(
            f"data-types/numpy.{word}", "Configuration", "Counts of `scale_factor` units, as signed 64-bit integers."
        )
        for unit in units:
            kind = named(f"numpy.{word}", unit=unit, scale_factor=1)
            files = array_v3(counts, kind, (4,), [LITTLE], 0, missing=False)
            yield read(level, f"{word}-{unit}", f"{word} in {unit}, NaT among them", sentence, files, counts, kind)
        kind = named(f"numpy.{word}", unit="s", scale_factor=10)
        files = array_v3(counts, kind, (4,), [BIG], 0, missing=False)
        yield read(level, f"{word}-scaled", f"{word} of 10 seconds, big-endian", sentence, files, counts, kind)
        fill = said(f"data-types/numpy.{word}", "Fill value representation", 'A count, or "NaT", which is -2^63.')
        for label, text, number in (("NaT", "NaT", -(2**63)), ("least", -(2**63), -(2**63)), ("count", 77, 77)):
            whole = np.full((3,), number, "int64")
            files = array_v3(whole, kind, (2,), [LITTLE], text, fill=number)
            yield read(
                level, f"{word}-fill-{label}", f"{word} with fill value {json.dumps(text)}", fill, files, whole, kind
            )


WORDS = ["", "a", "été", "日本", "😀", "x" * 300, "a\0b", "\n"]


def texts() -> Iterator[Case]:
    level = "v3-strings"
    strings, octets = np.array(WORDS, object), np.array([word.encode("utf-16") for word in WORDS], object)
    codec = said(
        "codecs/vlen-utf8",
        "Format and algorithm",
        "The number of items, then each with its length in bytes, as 32-bit integers.",
    )
    for name, data_type, values, fill, plain in (
        ("string", "string", strings, "", ""),
        ("bytes", "bytes", octets, "", b""),
    ):
        serializer = {"name": "vlen-utf8" if name == "string" else "vlen-bytes"}
        for word, chain in {
            "plain": [serializer],
            "gzip": [serializer, GZIP],
            "crc32c": [serializer, {"name": "crc32c"}],
            "zstd": [serializer, named("zstd", level=1, checksum=False)],
            "empty-configuration": [{**serializer, "configuration": {}}],
        }.items():
            files = array_v3(values, data_type, (3,), chain, fill, fill=plain, missing=False)
            yield read(
                level, f"{name}-{word}", f"{data_type} with {json.dumps(chain)}", codec, files, values, data_type
            )
        square = values.reshape(2, 4)
        files = array_v3(square, data_type, (2, 3), [serializer], fill, fill=plain, missing=False)
        yield read(
            level,
            f"{name}-2d-edge",
            f"{data_type} with chunks that reach beyond the array",
            codec,
            files,
            square,
            data_type,
        )
        files = array_v3(square, data_type, (2, 2), [TRANSPOSED, serializer], fill, fill=plain, missing=False)
        yield read(level, f"{name}-transposed", f"{data_type} transposed", codec, files, square, data_type)
        shards = named(
            "sharding_indexed", chunk_shape=[2], codecs=[serializer, GZIP], index_codecs=[LITTLE, {"name": "crc32c"}]
        )
        files = array_v3(values, data_type, (4,), [shards], fill, fill=plain)
        yield read(level, f"{name}-sharded", f"{data_type} in shards", codec, files, values, data_type)
    fills: list[tuple[str, str, Json, Any]] = [
        ("string", "string", "föö", "föö"),
        ("string-empty", "string", "", ""),
        ("bytes-base64", "bytes", "AQID", b"\1\2\3"),
        ("bytes-list", "bytes", [1, 2, 3], b"\1\2\3"),
        ("bytes-empty-list", "bytes", [], b""),
    ]
    for name, data_type, spelled, value in fills:
        whole = np.full((3,), None, object)
        whole[:] = [value] * 3
        serializer = {"name": "vlen-utf8" if data_type == "string" else "vlen-bytes"}
        says = "A string." if data_type == "string" else "Base64, or a list of integers from 0 to 255."
        yield read(
            level,
            f"fill-{name}",
            f"{data_type} with fill value {json.dumps(spelled)}",
            said(f"data-types/{data_type}", "Fill value", says),
            array_v3(whole, data_type, (2,), [serializer], spelled, fill=value),
            whole,
            data_type,
        )
    fixed = np.array(["", "é", "日本語", "😀", "abc", "a b"], "U3")
    kind = named("fixed_length_utf32", length_bytes=12)
    utf32 = said(
        "data-types/fixed_length_utf32",
        "Codec compatibility",
        "Code points of 4 bytes in the byte order of `endian`, padded with U+0000.",
    )
    for codec_of, word in ((LITTLE, "little"), (BIG, "big")):
        order = "<" if word == "little" else ">"
        files = array_v3(fixed.astype(f"{order}U3"), kind, (4,), [codec_of], "", fill="", missing=False)
        yield read(level, f"fixed-utf32-{word}", f"texts of 3 code points, {word}-endian", utf32, files, fixed, kind)
    whole = np.full((3,), "né", "U3")
    yield read(
        level,
        "fixed-utf32-fill",
        "a fill value shorter than the text",
        utf32,
        array_v3(whole, kind, (2,), [LITTLE], "né", fill="né"),
        whole,
        kind,
    )
    yield refused(
        "refuse-v3-documents",
        "fixed-utf32-fill-too-long",
        "a fill value longer than the text",
        said("data-types/fixed_length_utf32", "JSON scalar encoding", "Strings of more code points are rejected."),
        array_v3(whole, kind, (2,), [LITTLE], "four", missing=False),
    )


def field(name: str, kind: Json) -> Json:
    return {"name": name, "data_type": kind}


STRUCTS: list[tuple[str, Json, list[tuple[str, Any]], Json]] = [
    ("two-fields", [field("a", "int32"), field("b", "float64")], [("a", "i4"), ("b", "f8")], {"a": 7, "b": "NaN"}),
    (
        "bytes",
        [field("a", "uint8"), field("b", "int8"), field("c", "bool")],
        [("a", "u1"), ("b", "i1"), ("c", "?")],
        {"a": 255, "b": -1, "c": True},
    ),
    (
        "nested",
        [field("p", named("struct", fields=[field("x", "float32"), field("y", "float32")])), field("v", "float64")],
        [("p", [("x", "f4"), ("y", "f4")]), ("v", "f8")],
        {"p": {"x": 1, "y": "Infinity"}, "v": 0.5},
    ),
    (
        "date",
        [field("t", named("numpy.datetime64", unit="s", scale_factor=1)), field("v", "int16")],
        [("t", "i8"), ("v", "i2")],
        {"t": "NaT", "v": -2},
    ),
    (
        "text",
        [field("s", named("fixed_length_utf32", length_bytes=8)), field("n", "uint16")],
        [("s", "U2"), ("n", "u2")],
        {"s": "é", "n": 9},
    ),
    ("complex", [field("z", "complex64")], [("z", "c8")], {"z": [1, -1]}),
]


def structs() -> Iterator[Case]:
    sentence = said(
        "data-types/struct",
        "Codec compatibility",
        "Fields in their order, without padding, all in the byte order of `endian`.",
    )
    fills = said("data-types/struct", "Fill value representation", "An object with a fill value for each field.")
    for name, fields, dtype, fill in STRUCTS:
        kind = named("struct", fields=fields)
        values = np.zeros((2, 3), np.dtype(dtype))
        scatter(values)
        for word, codec in (("little", LITTLE), ("big", BIG)):
            stored = swapped(values, ">" if word == "big" else "<")
            document = text_of(document_v3(values, kind, (2, 2), [codec], fill))
            files = {"zarr.json": document, **chunks_of(stored)}
            yield read("v3-structs", f"{name}-{word}", f"struct {name}, {word}-endian", sentence, files, values, kind)
        whole = np.full((3,), value_of(fill, values.dtype), values.dtype)
        files = {"zarr.json": text_of(document_v3(whole, kind, (2,), [LITTLE], fill))}
        yield read("v3-structs", f"{name}-fill", f"struct {name} with a fill value", fills, files, whole, kind)


def zero(values: Array) -> Any:
    return np.zeros((), values.dtype)


def scatter(values: Array) -> None:
    """Fill a record array with values that differ, field by field."""
    for name in values.dtype.names or ():
        part = values[name]
        if part.dtype.names:
            scatter(part)
        elif part.dtype.kind == "U":
            part[...] = np.array(["", "a", "é", "日", "😀", "xy"]).reshape(part.shape)
        else:
            part[...] = (
                (np.arange(part.size) * 37 % 101 - (0 if part.dtype.kind in "u?" else 50))
                .astype(part.dtype)
                .reshape(part.shape)
            )


def swapped(values: Array, order: Any) -> Array:
    def of(dtype: np.dtype[Any]) -> np.dtype[Any]:
        if dtype.names and dtype.fields:
            return np.dtype([(name, of(dtype.fields[name][0])) for name in dtype.names])
        return dtype.newbyteorder(order)

    return values.astype(of(values.dtype))


def chunks_of(stored: Array) -> dict[str, bytes]:
    grid = edges(named("regular", chunk_shape=[2, 2]), stored.shape)
    return {f"c/{i}/{j}": block.tobytes() for (i, j), block in blocks(stored, grid, zero(stored))}


def value_of(fill: Json, dtype: np.dtype[Any]) -> Any:
    """Return the record that a fill value in JSON means."""
    out = np.zeros((), dtype)
    for name in dtype.names or ():
        part, kind = fill[name], dtype[name]
        if kind.names:
            out[name] = value_of(part, kind)
        elif part == "NaT":
            out[name] = np.iinfo("i8").min
        elif isinstance(part, list):
            out[name] = complex(*part)
        else:
            out[name] = float(part.replace("Infinity", "inf")) if kind.kind == "f" and isinstance(part, str) else part
    return out


def codecs() -> Iterator[Case]:
    level = "v3-registered-codecs"
    plane = ramp((40, 50))
    zstd = said("codecs/zstd", "Format and algorithm", "The bytes are in the format of RFC 8878.")
    for what, values in (
        ("ramp", plane),
        ("noise", noise((40, 50))),
        ("constant", np.full((40, 50), 16843009, "int32")),
    ):
        for word, configuration, written in (
            ("plain", {"level": 1, "checksum": False}, {}),
            ("checksum", {"level": 3, "checksum": True}, {}),
            ("checksum-unsaid", {"level": 0}, {}),
            ("negative-level", {"level": -5, "checksum": False}, {}),
            ("without-size", {"level": 1, "checksum": False}, {"sized": False}),
            ("checksum-not-announced", {"level": 1, "checksum": False}, {"checksum": True}),
        ):
            codec = named("zstd", **configuration)
            true = named("zstd", **{**configuration, **written})
            files = array_v3(values, "int32", (40, 50), [LITTLE, codec], written=[LITTLE, true])
            yield read(level, f"zstd-{word}-{what}", f"zstd, {word}, {what}", zstd, files, values, "int32")
    large = (np.arange(300 * 300) * 7919 % 65521).astype("int32").reshape(300, 300)
    yield read(
        level,
        "zstd-several-blocks",
        "a Zstandard frame of six blocks",
        zstd,
        array_v3(large, "int32", (300, 300), [LITTLE, named("zstd", level=1, checksum=True)]),
        large,
        "int32",
    )
    yield from packed(level)
    cube = ramp((4, 6, 5))
    reshape = said("codecs/reshape", "Format and algorithm", "The elements in C order get another shape.")
    for name, shape, after in (
        ("sizes", [12, 5], []),
        ("merged-dimensions", [[0, 1], [2]], []),
        ("minus-one", [-1, 5], []),
        ("flat", [-1], []),
        ("more-dimensions", [2, 2, [1], [2]], []),
        ("then-transposed", [[0, 1], [2]], [named("transpose", order=[1, 0])]),
    ):
        chain = [named("reshape", shape=shape), *after, LITTLE]
        yield read(
            level,
            f"reshape-{name}",
            f"reshape to {json.dumps(shape)}",
            reshape,
            array_v3(cube, "int32", (4, 3, 5), chain),
            cube,
            "int32",
        )
    for name, bad in (("other-count", [7, 5]), ("two-unknown", [-1, -1]), ("exchanged", [[1], [0], [2]])):
        chain = [named("reshape", shape=bad), LITTLE]
        files = array_v3(cube, "int32", (4, 3, 5), chain, written=[LITTLE])
        yield refused(
            "refuse-v3-documents",
            f"reshape-{name}",
            f"reshape to {json.dumps(bad)}",
            said(
                "codecs/reshape", "Configuration parameters, shape", "It is an error if the number of elements changes."
            ),
            files,
        )
    scale = said("codecs/scale_offset", "Decoding", "Divide by `scale`, then add `offset`, in the type of the array.")
    halves = (np.arange(20) * 0.5 + 3).reshape(4, 5)
    scalings: tuple[tuple[str, str, Array, dict[str, Json]], ...] = (
        ("float", "float64", halves, {"offset": 3, "scale": 2}),
        ("offset-alone", "float32", halves.astype("f4"), {"offset": 3}),
        ("scale-alone", "float64", halves, {"scale": 4}),
        ("integers", "int32", ramp((4, 5)), {"offset": 10, "scale": 3}),
        ("nothing", "int16", ramp((4, 5), "int16"), {}),
    )
    for name, data_type, values, configuration in scalings:
        chain = [named("scale_offset", **configuration), LITTLE]
        files = array_v3(values, data_type, (2, 3), chain, 0, missing=False)
        yield read(
            level, f"scale-offset-{name}", f"scale_offset {json.dumps(configuration)}", scale, files, values, data_type
        )
    casting = said(
        "codecs/cast_value", "Procedure", "`scalar_map` first, then what both types have, then rounding and range."
    )
    small = (np.arange(20) % 17).astype("f8").reshape(4, 5)
    gaps = small.copy()
    gaps[1, 2] = np.nan
    casts: tuple[tuple[str, str, Array, dict[str, Json], Json], ...] = (
        ("float-to-int", "float64", small, {"data_type": "uint8"}, 0),
        ("int-to-smaller", "int32", ramp((4, 5)), {"data_type": "int8"}, 0),
        ("int-to-float", "int16", ramp((4, 5), "int16"), {"data_type": "float32"}, 0),
        ("double-to-single", "float64", small, {"data_type": "float32", "rounding": "nearest-even"}, 0),
        (
            "nan-by-map",
            "float64",
            gaps,
            {"data_type": "uint8", "scalar_map": {"encode": [["NaN", 255]], "decode": [[255, "NaN"]]}},
            "NaN",
        ),
    )
    for name, data_type, values, configuration, fill in casts:
        chain = [named("cast_value", **configuration), named("bytes", endian="little")]
        files = array_v3(values, data_type, (2, 3), chain, fill, fill=np.nan if fill == "NaN" else 0, missing=False)
        yield read(
            level, f"cast-value-{name}", f"cast_value {json.dumps(configuration)}", casting, files, values, data_type
        )
    both = [named("scale_offset", offset=1000), named("cast_value", data_type="uint8"), {"name": "bytes"}]
    values = ramp((4, 5), "uint16", 1000)
    yield read(
        level,
        "scale-offset-then-cast",
        "the example of the text: uint16 from 1000 on in a byte",
        scale,
        array_v3(values, "uint16", (2, 3), both, 1000, fill=1000),
        values,
        "uint16",
    )
    rounded = said(
        "codecs/bitround", "Format and algorithm", "Decoding returns the rounded values as they were stored."
    )
    for data_type in ("float32", "float64", "float16"):
        values = (np.arange(20) * 0.25).astype(data_type).reshape(4, 5)
        chain = [named("bitround", keepbits=5), LITTLE]
        yield read(
            level,
            f"bitround-{data_type}",
            f"bitround of {data_type}",
            rounded,
            array_v3(values, data_type, (2, 3), chain),
            values,
            data_type,
        )
    condition = said(
        "codecs/conditional",
        "Decoding process",
        "Bits of the header say which codecs were applied, the first codec in bit 0.",
    )
    inner = [GZIP, {"name": "crc32c"}]
    for mask, bits in itertools.product(range(4), (None, 16)):
        more = {} if bits is None else {"header_bits": bits}
        codec = named("conditional", codecs=inner, **more)
        true = named("conditional", codecs=inner, mask=mask, **more)
        files = array_v3(plane, "int32", (16, 20), [LITTLE, codec], written=[LITTLE, true])
        yield read(
            level,
            f"conditional-{mask}-{bits or 8}-bits",
            f"conditional, codecs {mask:02b}",
            condition,
            files,
            plane,
            "int32",
        )
    yield from n5_blocks(level)
    yield from numcodecs()


def packed(level: str) -> Iterator[Case]:
    sentence = said("codecs/packbits", "Format and algorithm", "The bits of each element, lowest first, without gaps.")
    kinds: list[tuple[str, Array, int | None]] = [("bool", sample("bool", (3, 5)), None)]
    for name, carrier, mask, _, _ in SMALL:
        if mask != 0xFF:
            codes = np.arange(15).astype("u1") & mask
            if name in {"int2", "int4"}:
                half = (mask + 1) // 2
                codes = ((codes.astype("i2") ^ half) - half).astype("i1").view("u1")
            kinds.append((name, codes.view(carrier).reshape(3, 5), mask))
    for name, values, bits in kinds:
        if name == "float6_e3m2fn":
            continue  # as float6_e2m3fn
        for padding in (None, "none", "first_byte", "last_byte"):
            codec = named("packbits", **({} if padding is None else {"padding_encoding": padding}))
            zero: Json = False if name == "bool" else 0
            files = array_v3(values, name, (2, 3), [codec], zero, missing=False)
            yield read(
                level,
                f"packbits-{name}-{padding or 'unsaid'}",
                f"{name} packed, padding {padding}",
                sentence,
                files,
                values,
                name,
                mask=bits,
            )
    for data_type, first, last in (
        ("uint16", 0, 9),
        ("uint16", 2, 9),
        ("int16", 0, 9),
        ("uint8", None, 3),
        ("int32", None, None),
        ("int8", 1, None),
    ):
        top = 15 if last is None else last
        low = first or 0
        values = (np.arange(15) * 37 % 2 ** min(top - low, 6) * 2**low).astype(data_type).reshape(3, 5)
        if data_type == "int16":
            values[0, 0] = -300
        codec = named("packbits", first_bit=first, last_bit=last)
        files = array_v3(values, data_type, (2, 3), [codec], 0, missing=False)
        yield read(
            level,
            f"packbits-{data_type}-bits-{first}-{last}",
            f"bits {first} to {last} of {data_type}",
            sentence,
            files,
            values,
            data_type,
        )


def n5_blocks(level: str) -> Iterator[Case]:
    sentence = said(
        "codecs/n5_default",
        "Decoding",
        "A header states mode, dimensions and size of the block; shorter blocks are padded.",
    )
    values = ramp((5, 7))
    for word, after in (("raw", []), ("gzip", [GZIP])):
        inner = [TRANSPOSED, BIG, *after]
        document = array_v3(values, "int32", (3, 4), [named("n5_default", codecs=inner)], 0, written=[LITTLE])[
            "zarr.json"
        ]
        files = {"zarr.json": document}
        for i, j in np.ndindex(2, 2):
            block = values[i * 3 : i * 3 + 3, j * 4 : j * 4 + 4]
            head = struct.pack(">HHII", 0, 2, *block.shape)
            files[f"c/{i}/{j}"] = head + encode(block, inner, Chunk("int32", 0))
        yield read("v3-n5", f"n5-default-{word}", f"blocks of N5, {word}", sentence, files, values, "int32")


def numcodecs() -> Iterator[Case]:
    level = "v3-numcodecs"
    sentence = Sentence("numcodecs.zarr3", "numcodecs.*", "The configuration is that of numcodecs, without the id.")
    values = ramp((5, 7))
    after: list[tuple[str, dict[str, Json]]] = [
        ("zlib", {"level": 1}),
        ("gzip", {"level": 1}),
        ("bz2", {"level": 1}),
        ("lz4", {"acceleration": 1}),
        ("zstd", {"level": 1}),
        ("lzma", {"format": 1, "check": -1, "preset": 1, "filters": None}),
        ("shuffle", {"elementsize": 4}),
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
        ("crc32", {}),
        ("adler32", {}),
        ("fletcher32", {}),
    ]
    for name, configuration in after:
        codec = {"name": f"numcodecs.{name}", "configuration": configuration}
        true = {"name": name, "configuration": {"typesize": 4, **configuration}} if name == "blosc" else codec
        files = array_v3(values, "int32", (3, 4), [LITTLE, codec], written=[LITTLE, true])
        yield read(level, name, f"numcodecs.{name}", sentence, files, values, "int32")
    before: list[tuple[str, str, Array, dict[str, Json]]] = [
        ("delta", "int32", values, {"dtype": "<i4", "astype": "<i4"}),
        ("delta", "int64", values.astype("i8"), {"dtype": "<i8", "astype": "<i2"}),
        ("fixedscaleoffset", "float64", values / 2 + 10, {"offset": 10, "scale": 2, "dtype": "<f8", "astype": "<i2"}),
        ("astype", "int32", values, {"encode_dtype": "<i2", "decode_dtype": "<i4"}),
        ("quantize", "float64", values / 2, {"digits": 1, "dtype": "<f8", "astype": "<f8"}),
        ("packbits", "bool", sample("bool", (5, 7)), {}),
    ]
    for name, data_type, array, configuration in before:
        codec = {"name": f"numcodecs.{name}", "configuration": configuration}
        zero: Json = False if data_type == "bool" else 0
        files = array_v3(array, data_type, (3, 4), [codec, LITTLE], zero, missing=False)
        yield read(level, f"{name}-{data_type}", f"numcodecs.{name} of {data_type}", sentence, files, array, data_type)


def rectilinear() -> Iterator[Case]:
    level = "v3-grids"
    sentence = said(
        "chunk-grids/rectilinear", "Chunk edge lengths", "Lengths along each dimension: one, a list, or runs of them."
    )
    values = ramp((6, 10))
    rows: list[tuple[str, Json]] = [
        ("lists", [[1, 2, 3], [4, 6]]),
        ("one-length", [4, 3]),
        ("runs", [[[2, 3]], [[3, 2], 4]]),
        ("runs-and-lengths", [[[1, 3], 3], [10]]),
        ("beyond-the-edge", [[4, 4], [7, 7]]),
        ("chunks-wholly-beyond", [[4, 4, 4], [10, 5]]),
        ("mixed", [[1, 5], 4]),
        ("chunks-of-one", [[[1, 6]], [[1, 10]]]),
    ]
    for name, shapes in rows:
        grid = named("rectilinear", kind="inline", chunk_shapes=shapes)
        for word, chain in (("raw", [LITTLE]), ("transposed-gzip", [TRANSPOSED, BIG, GZIP])):
            files = array_v3(values, "int32", (1, 1), chain, chunk_grid=grid)
            yield read(
                level,
                f"rectilinear-{name}-{word}",
                f"rectilinear grid {json.dumps(shapes)}",
                sentence,
                files,
                values,
                "int32",
            )
    grid = named("rectilinear", kind="inline", chunk_shapes=[[1, 2, 3], [4, 6]])
    for selection in ("1:4,3:5", "2,:", "::2,::3"):
        files = array_v3(values, "int32", (1, 1), [LITTLE], chunk_grid=grid)
        yield read(
            level,
            "rectilinear-selection-" + selection.translate(str.maketrans(":,", "-_")),
            f"[{selection}] of a rectilinear grid",
            sentence,
            files,
            values,
            "int32",
            selection=selection,
        )
    shards = [named("sharding_indexed", chunk_shape=[1, 2], codecs=[LITTLE], index_codecs=[LITTLE, {"name": "crc32c"}])]
    grid = named("rectilinear", kind="inline", chunk_shapes=[[1, 2, 3], [4, 6]])
    yield read(
        level,
        "rectilinear-sharded",
        "shards of different lengths",
        sentence,
        array_v3(values, "int32", (1, 1), shards, chunk_grid=grid),
        values,
        "int32",
    )
    for name, shapes in (
        ("too-short", [[1, 2], [4, 6]]),
        ("zero-length", [[0, 6], [4, 6]]),
        ("other-dimensions", [[1, 2, 3]]),
    ):
        files = array_v3(values, "int32", (6, 10))
        broken = named("rectilinear", kind="inline", chunk_shapes=shapes)
        files["zarr.json"] = text_of(document_v3(values, "int32", (6, 10), chunk_grid=broken))
        yield refused(
            "refuse-v3-documents",
            f"rectilinear-{name}",
            f"rectilinear grid {json.dumps(shapes)}",
            said(
                "chunk-grids/rectilinear",
                "Chunk edge lengths",
                "Lengths are positive, and their sum is at least that of the dimension.",
            ),
            files,
        )
