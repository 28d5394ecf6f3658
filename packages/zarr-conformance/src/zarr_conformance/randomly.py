"""Random arrays from a seed: documents that are valid, and values that only the encoder knows."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from zarr_conformance.case import Array, Case, Json, Sentence
from zarr_conformance.cases.making import COMPLEX, CORE, read
from zarr_conformance.encoder import ShardStyle, array_v2, array_v3, named

SENTENCE = Sentence("Zarr", "all", "What was written is read.")
Random = np.random.Generator


def drawn(seed: int, count: int, levels: Sequence[str] = ("v2", "v3", "sharding")) -> list[Case]:
    """Return random cases: the same for the same seed, whatever other seeds were drawn."""
    makers = {"v2": one_v2, "v3": one_v3, "sharding": one_shard}
    return [
        makers[levels[number % len(levels)]](np.random.default_rng([seed, number]), f"{seed}-{number}")
        for number in range(count)
    ]


def some_values(rng: Random) -> tuple[str, Array, Json, Array]:
    """Return a data type, an array of it with runs of the fill value, and the fill value in JSON and in NumPy."""
    name = str(rng.choice(CORE))
    dtype = np.dtype(name)
    shape = tuple(int(n) for n in rng.integers(1, 9, rng.integers(0, 4)))
    bits = rng.integers(0, 256, int(np.prod(shape)) * dtype.itemsize, "u1").tobytes()
    if dtype.kind == "b":
        values = rng.integers(0, 2, shape).astype(bool)
    elif dtype.kind in "fc":
        parts = rng.normal(size=int(np.prod(shape)) * (2 if dtype.kind == "c" else 1))
        part = np.float32 if name == "complex64" else np.float64
        values = (parts.astype(part).view(dtype) if dtype.kind == "c" else parts.astype(dtype)).reshape(shape)
    else:
        values = np.frombuffer(bits, dtype).reshape(shape).copy()
    number = int(rng.integers(0, 3))
    fill: Json = [number, 0] if name in COMPLEX else bool(number % 2) if name == "bool" else number
    plain = np.array(complex(number) if name in COMPLEX else fill, dtype)
    if values.ndim and rng.integers(0, 2):
        values[: int(rng.integers(0, values.shape[0] + 1))] = plain
    return name, values, fill, plain


def some_chunks(rng: Random, shape: Sequence[int], multiple: Sequence[int] | None = None) -> list[int]:
    return [int(rng.integers(1, 5)) * step for step in (multiple or [1] * len(shape))]


def after(rng: Random) -> list[Json]:
    pool: list[Json] = [
        named("gzip", level=int(rng.integers(0, 10))),
        {"name": "crc32c"},
        named("zstd", level=1, checksum=bool(rng.integers(0, 2))),
    ]
    return [pool[i] for i in rng.permutation(len(pool))[: rng.integers(0, 3)]]


def chain(rng: Random, rank: int) -> list[Json]:
    before = [named("transpose", order=[int(i) for i in rng.permutation(rank)])] if rank and rng.integers(0, 2) else []
    return [*before, named("bytes", endian=str(rng.choice(["little", "big"]))), *after(rng)]


def some_selection(rng: Random, shape: Sequence[int]) -> str | None:
    if not shape or rng.integers(0, 2):
        return None
    parts = []
    for n in shape:
        start, stop = sorted(int(i) for i in rng.integers(0, n + 1, 2))
        parts.append(
            str(start) if start < n and rng.integers(0, 3) == 0 else f"{start}:{stop}:{int(rng.integers(1, 4))}"
        )
    return ",".join(parts)


def one_v2(rng: Random, name: str) -> Case:
    kind, values, fill, plain = some_values(rng)
    compressors: list[Json] = [
        None,
        {"id": "zlib", "level": 1},
        {"id": "gzip", "level": 1},
        {"id": "lz4", "acceleration": 1},
        {"id": "zstd", "level": 1},
    ]
    size = np.dtype(kind).itemsize
    files = array_v2(
        values,
        np.dtype(kind).newbyteorder("<" if rng.integers(0, 2) else ">").str,
        some_chunks(rng, values.shape),
        fill,
        fill=plain,
        order=str(rng.choice(["C", "F"])),
        dimension_separator=str(rng.choice([".", "/"])),
        compressor=compressors[int(rng.integers(0, len(compressors)))],
        filters=[{"id": "shuffle", "elementsize": size}] if rng.integers(0, 2) else None,
    )
    return read(
        "random-v2",
        name,
        summary(files[".zarray"]),
        SENTENCE,
        files,
        values,
        kind,
        selection=some_selection(rng, values.shape),
    )


def one_v3(rng: Random, name: str) -> Case:
    kind, values, fill, plain = some_values(rng)
    encoding = named(str(rng.choice(["default", "v2"])), separator=str(rng.choice([".", "/"])))
    files = array_v3(
        values,
        kind,
        some_chunks(rng, values.shape),
        chain(rng, values.ndim),
        fill,
        fill=plain,
        chunk_key_encoding=encoding,
    )
    return read(
        "random-v3",
        name,
        summary(files["zarr.json"]),
        SENTENCE,
        files,
        values,
        kind,
        selection=some_selection(rng, values.shape),
    )


def one_shard(rng: Random, name: str) -> Case:
    kind, values, fill, plain = some_values(rng)
    lengths = some_chunks(rng, values.shape)
    codecs = chain(rng, values.ndim)
    outer = lengths
    for _ in range(int(rng.integers(1, 3))):
        index = [
            named("bytes", endian=str(rng.choice(["little", "big"]))),
            *([{"name": "crc32c"}] if rng.integers(0, 2) else []),
        ]
        codecs = [
            named(
                "sharding_indexed",
                chunk_shape=outer,
                codecs=codecs,
                index_codecs=index,
                index_location=str(rng.choice(["start", "end"])),
            )
        ]
        outer = some_chunks(rng, values.shape, outer)
    style = ShardStyle(bool(rng.integers(0, 2)), int(rng.integers(0, 3)), bool(rng.integers(0, 2)))
    files = array_v3(values, kind, outer, codecs, fill, fill=plain, style=style)
    return read(
        "random-sharding",
        name,
        summary(files["zarr.json"]),
        SENTENCE,
        files,
        values,
        kind,
        selection=some_selection(rng, values.shape),
    )


def summary(document: bytes) -> str:
    return " ".join(json.dumps(json.loads(document)).split())[:400]
