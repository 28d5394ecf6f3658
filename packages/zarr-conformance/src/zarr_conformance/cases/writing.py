"""Write-back: an implementation creates an array, and the decoder of this package reads it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import numpy as np

from zarr_conformance.case import Array, Case, Json, Sentence, Written, raw_of
from zarr_conformance.cases.making import COMPLEX, CORE, ramp, sample
from zarr_conformance.encoder import BIG, LITTLE, document_v3, named

STORED = Sentence("Zarr v3.0", "Codecs", "What the document says is what the chunks hold.")
STORED_V2 = Sentence("Zarr v2", "Chunks", "What the document says is what the chunks hold.")


def cases() -> Iterator[Case]:
    """Yield all cases of writing."""
    for name in CORE:
        values = sample(name, (5, 7))
        zero: Json = [0, 0] if name in COMPLEX else False if name == "bool" else 0
        for word, codec in (("little", LITTLE), ("big", BIG)):
            yield written_v3(f"{name}-{word}", f"{name}, {word}-endian", values, name, (2, 3), [codec], zero)
        yield written_v2(f"{name}", f"{name}", values, np.dtype(name).str, (2, 3), fill_value=zero)
        if np.dtype(name).itemsize > 1:
            big = np.dtype(name).newbyteorder(">").str
            yield written_v2(f"{name}-big", f"{name}, big-endian", values, big, (2, 3), fill_value=zero)
    values = ramp((5, 7))
    gzip, crc = named("gzip", level=1), {"name": "crc32c"}
    shard = named(
        "sharding_indexed", chunk_shape=[2, 3], codecs=[LITTLE, gzip], index_codecs=[LITTLE, crc], index_location="end"
    )
    first = named(
        "sharding_indexed", chunk_shape=[2, 3], codecs=[LITTLE], index_codecs=[LITTLE], index_location="start"
    )
    nested = named(
        "sharding_indexed", chunk_shape=[2, 6], codecs=[shard], index_codecs=[LITTLE, crc], index_location="end"
    )
    chains: dict[str, list[Json]] = {
        "gzip": [LITTLE, gzip],
        "crc32c": [LITTLE, crc],
        "gzip-crc32c": [LITTLE, gzip, crc],
        "transpose": [named("transpose", order=[1, 0]), LITTLE],
        "everything": [named("transpose", order=[1, 0]), BIG, gzip, crc],
        "shards": [shard],
        "shards-index-at-start": [first],
        "shards-nested": [nested],
    }
    for name, codecs in chains.items():
        yield written_v3(name, f"codecs {json.dumps(codecs)}", values, "int32", (4, 6), codecs)
    for (name, shape), chunks in itertools.product({"1d": (7,), "2d": (5, 7), "3d": (3, 4, 5)}.items(), (1, 2, 10)):
        cube = ramp(shape)
        yield written_v3(
            f"layout-{name}-{chunks}",
            f"{list(shape)} in chunks of {chunks}",
            cube,
            "int32",
            (chunks,) * len(shape),
            [LITTLE],
        )
        yield written_v2(
            f"layout-{name}-{chunks}",
            f"{list(shape)} in chunks of {chunks}",
            cube,
            "<i4",
            (chunks,) * len(shape),
            order="F" if len(shape) > 1 else "C",
        )
    for name, separator in itertools.product(("default", "v2"), "/."):
        encoding = named(name, separator=separator)
        label = "slash" if separator == "/" else "dot"
        yield written_v3(
            f"keys-{name}-{label}",
            f"keys {json.dumps(encoding)}",
            values,
            "int32",
            (2, 3),
            [LITTLE],
            chunk_key_encoding=encoding,
        )
    yield written_v2("keys-slash", "keys with slashes", values, "<i4", (2, 3), dimension_separator="/")
    yield written_v2("zlib", "zlib", values, "<i4", (2, 3), compressor={"id": "zlib", "level": 1})
    yield written_v2(
        "shuffle-zlib",
        "shuffle and zlib",
        values,
        "<i4",
        (2, 3),
        filters=[{"id": "shuffle", "elementsize": 4}],
        compressor={"id": "zlib", "level": 1},
    )
    nan = np.full((4, 4), np.nan, "float32")
    nan[0, 0] = 1
    yield written_v3("fill-nan", "fill value NaN", nan, "float32", (2, 2), [LITTLE], "NaN")
    yield written_v3("fill-infinity", "fill value -Infinity", nan, "float64", (2, 2), [LITTLE], "-Infinity")
    yield written_v3(
        "fill-largest",
        "the largest fill value",
        np.full((3,), 2**64 - 1, "uint64"),
        "uint64",
        (2,),
        [LITTLE],
        2**64 - 1,
    )
    yield written_v3("scalar", "no dimensions", np.array(5, "int32"), "int32", (), [LITTLE])
    yield written_v3("empty", "a length of 0", np.zeros((0, 3), "int32"), "int32", (2, 2), [LITTLE])
    yield written_v3(
        "names-and-attributes",
        "dimension names and attributes",
        values,
        "int32",
        (2, 3),
        [LITTLE],
        dimension_names=["y", None],
        attributes={"units": "m", "n": [1, 2.5, None, {"é": True}]},
    )


def written_v3(
    name: str,
    title: str,
    values: Array,
    data_type: str,
    chunks: tuple[int, ...],
    codecs: list[Json],
    fill: Json = 0,
    **members: Json,
) -> Case:
    values = values.astype(data_type)
    document = document_v3(values, data_type, chunks, codecs, fill, **members)
    expects = Written(document, values.shape, data_type, raw_of(values))
    return Case("write-v3", name, title, STORED, {}, expects)


def written_v2(name: str, title: str, values: Array, dtype: str, chunks: tuple[int, ...], **members: Json) -> Case:
    document = {
        "zarr_format": 2,
        "shape": list(values.shape),
        "chunks": list(chunks),
        "dtype": dtype,
        "compressor": None,
        "fill_value": 0,
        "order": "C",
        "filters": None,
        **members,
    }
    return Case(
        "write-v2", name, title, STORED_V2, {}, Written(document, values.shape, values.dtype.name, raw_of(values))
    )
