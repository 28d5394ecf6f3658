"""Random arrays of every kind that the native engine serves, and random plans for them.

A layout says how an array is stored; `create` makes it, `some_values` what it can hold without loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import omnizarr
from omnizarr.model import datatypes
from omnizarr.stores import LocalStore, MemoryStore, Store, ZipStore
from tests.fakes import FaultyStore
from tests.indexing.selections import advanced, stays_in_place

RECORD = np.dtype([("a", "<i2"), ("b", [("x", "?"), ("y", "<f8")]), ("d", "S3")])
# Only v2 has arrays in records, and fields of several byte orders.
RECORD_OF_V2 = np.dtype([("a", ">i2"), ("b", "<c8"), ("c", "<u2", (2,)), ("d", "<U1")])
BOTH_ORDERS = ["i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "M8[s]", "m8[ns]", "U2"]
SINGLE = ["?", "i1", "u1", "S3", "V5", *("<" + name for name in BOTH_ORDERS), *(">" + name for name in BOTH_ORDERS)]
ML = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "int2", "float4_e2m1fn", "float6_e3m2fn"]
DTYPES = [*map(np.dtype, SINGLE), RECORD, RECORD_OF_V2, *(np.dtype(getattr(ml_dtypes, name)) for name in ML)]


@dataclass(frozen=True)
class Layout:
    """Everything about an array but its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    options: dict[str, Any] = field(hash=False)
    fill: Any = 0
    is_tame: bool = False
    """Only small whole numbers pass through its filters unchanged."""
    store: str = "memory"


def named(name: str, **configuration: Any) -> dict[str, Any]:
    return {"name": name, "configuration": configuration}


# Bytes to bytes: in v3 and in numcodecs' words; those that v2 has alone are None in v3.
COMPRESSORS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (named("gzip", level=1), {"id": "gzip", "level": 1}),
    (named("zlib", level=6), {"id": "zlib", "level": 6}),
    (named("zstd", level=3, checksum=True), {"id": "zstd", "level": 3, "checksum": True}),
    (named("zstd", level=-1, checksum=False), {"id": "zstd", "level": 0}),
    (named("numcodecs.lz4", acceleration=1), {"id": "lz4", "acceleration": 1}),
    (named("crc32c"), {"id": "crc32c", "location": "start"}),
    (named("numcodecs.crc32"), {"id": "crc32", "location": "end"}),
    (named("numcodecs.adler32"), {"id": "adler32"}),
    (named("numcodecs.fletcher32"), {"id": "fletcher32"}),
    *(
        (
            named("blosc", cname=cname, clevel=5, shuffle=word, typesize=size, blocksize=block),
            {"id": "blosc", "cname": cname, "clevel": 5, "shuffle": number, "blocksize": block},
        )
        for cname, size, block in (("lz4", 4, 0), ("lz4hc", 2, 64), ("blosclz", 8, 0), ("zstd", 1, 32), ("zlib", 4, 0))
        for number, word in enumerate(("noshuffle", "shuffle", "bitshuffle"))
    ),
]


def filters_for(dtype: np.dtype[Any]) -> list[dict[str, Any]]:
    """Return filters, as numcodecs has them, that small whole numbers of a type pass unchanged."""
    if dtype.byteorder == ">" or dtype.str[1:] not in {"i2", "i4", "i8", "u2", "u4", "f4", "f8", "u1", "i1"}:
        return []
    if dtype.kind in "iu":
        wider = "<i8" if dtype.itemsize < 8 else dtype.str
        return [
            {"id": "delta", "dtype": dtype.str, "astype": dtype.str},
            {"id": "delta", "dtype": dtype.str, "astype": wider},
            {"id": "astype", "encode_dtype": wider, "decode_dtype": dtype.str},
        ]
    return [
        {"id": "fixedscaleoffset", "offset": -2, "scale": 4, "dtype": dtype.str, "astype": "<i2"},
        {"id": "astype", "encode_dtype": "<f4", "decode_dtype": dtype.str},
        {"id": "quantize", "digits": 3, "dtype": dtype.str},
        {"id": "bitround", "keepbits": 12},
        {"id": "delta", "dtype": dtype.str, "astype": dtype.str},
    ]


def as_v3(step: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in step.items() if name != "id"}
    return named("numcodecs." + step["id"], **rest)


def words(dtype: np.dtype[Any]) -> Any:
    return np.dtype(f"V{dtype.itemsize}")


def fills_for(dtype: np.dtype[Any], array_format: Any) -> list[Any]:
    """Return fill values, also those that only their bits tell from others."""
    if dtype.names is not None:
        return (
            [np.zeros((), dtype)[()]] if array_format == 2 else [np.zeros((), dtype)[()], some_values(3, (), dtype)[()]]
        )
    if dtype.kind in "SUV" and dtype.name not in ML:
        return [np.zeros((), dtype)[()]]
    if dtype.kind in "mM":
        return [np.array(0, dtype)[()], np.array("NaT", dtype)[()]]
    fills = [np.array(value, dtype)[()] for value in (0, 1)]
    if dtype.kind in "fc":
        fills += [np.array(-0.0, dtype)[()], np.array(np.nan, dtype)[()]]
    if dtype.kind == "f" and dtype.name not in ML and array_format == 3:
        payload = {2: 0x7E01, 4: 0x7FC00123, 8: 0xFFF8000000000ABC}[dtype.itemsize]
        fills.append(np.array(payload, f"u{dtype.itemsize}").view(dtype.newbyteorder("="))[()])
    return fills


def formats_for(dtype: np.dtype[Any], shape: tuple[int, ...]) -> list[Any]:
    if dtype == RECORD_OF_V2:
        return [2]
    formats: list[Any] = [3, 3, 3]
    if dtype.name not in ML:
        formats += [2, 2]
        if dtype.names is None and shape:
            formats += [1] if dtype.kind in "biufM" else []
            formats += [0] if dtype.kind in "biuf" else []
        if dtype.kind in "biuf":
            formats += ["3-draft2020"]
            formats += ["3-draft2019"] if dtype.kind in "bif" or dtype in ("u1", "<u4") else []
    return formats


def small_shapes() -> Any:
    return st.one_of(
        st.lists(st.integers(1, 7), max_size=4).map(tuple),
        st.lists(st.integers(1, 7), max_size=3).map(lambda lengths: (*lengths, 0)),
    )


def large_shapes() -> Any:
    """Return shapes of arrays that are worth several threads, or reading in parts."""
    lengths = st.integers(100, 400)
    return st.one_of(st.integers(100_000, 200_000).map(lambda n: (n,)), st.tuples(lengths, lengths))


@st.composite
def layouts(
    draw: Any,
    shapes: Any,
    *,
    stores: tuple[str, ...] = ("memory", "local", "zip", "counting"),
    is_tame: bool = False,
) -> Layout:
    """Draw how an array is stored; with `is_tame`, always behind a filter that may lose something."""
    shape = draw(shapes)
    dtype = draw(st.sampled_from([dtype for dtype in DTYPES if not is_tame or filters_for(dtype)]))
    array_format = draw(st.sampled_from([2, 3] if is_tame else formats_for(dtype, shape)))
    chunks = tuple(draw(st.integers(length // 8 + 1, length + 1)) for length in shape)
    fill = draw(st.sampled_from(fills_for(dtype, array_format)))
    options: dict[str, Any] = {
        "zarr_format": array_format,
        "chunks": chunks,
        "fill_value": fill,
        "write_empty_chunks": draw(st.booleans()),
    }
    tame: list[dict[str, Any]] = []
    if array_format in {2, 3} and (choices := filters_for(dtype)) and (is_tame or draw(st.booleans())):
        tame = [draw(st.sampled_from(choices))]
        if not is_tame and dtype.kind == "f" and fill == 0:  # these filters do not keep the sign of zero
            options["fill_value"] = fill = np.abs(fill)
    if array_format == 3:
        options.update(draw(v3_codecs(dtype, chunks, tame)))
        if "serializer" not in options and not tame and 0 not in shape and draw(st.integers(0, 3)) == 0:
            options["chunks"] = [cut(draw, length) for length in shape]
    elif array_format == 2:
        steps = [v2 for _, v2 in draw(st.lists(st.sampled_from(COMPRESSORS), max_size=2))]
        if not tame and draw(st.booleans()):
            steps.insert(0, {"id": "shuffle", "elementsize": dtype.itemsize})
        options.update(order=draw(st.sampled_from("CF")), filters=[*tame, *steps[:-1]], compressors=steps[-1:] or None)
    elif array_format == 1:
        options["compressors"] = draw(st.sampled_from([None, *(v2 for _, v2 in COMPRESSORS if v2["id"] == "zlib")]))
    return Layout(shape, dtype, options, fill, bool(tame), draw(st.sampled_from(stores)))


def cut(draw: Callable[[Any], Any], length: int) -> Any:
    """Draw lengths of chunks that fill a dimension."""
    lengths = []
    while sum(lengths) < length:
        lengths.append(min(draw(st.integers(1, max(4, length // 2))), length - sum(lengths)))
    return lengths


@st.composite
def v3_codecs(draw: Any, dtype: np.dtype[Any], chunks: tuple[int, ...], tame: list[dict[str, Any]]) -> dict[str, Any]:
    """Draw filters, serializer and compressors."""
    options: dict[str, Any] = {"filters": [], "compressors": draw(compressors())}
    order = draw(st.permutations(range(len(chunks))))
    if draw(st.booleans()):
        options["filters"].append(named("transpose", order=list(order)))
        chunks = tuple(chunks[axis] for axis in order)
    if tame:
        options["filters"] += map(as_v3, tame)
        return options
    kinds = ["bytes", "bytes", "sharding"]
    if dtype.kind in "biufc" and dtype.name not in ML:
        kinds.append("packbits")
    options["serializer"] = draw(serializers(dtype, chunks, draw(st.sampled_from(kinds))))
    if options["serializer"]["name"] == "bytes":
        if draw(st.booleans()):
            options["compressors"].insert(0, named("numcodecs.shuffle", elementsize=dtype.itemsize))
        if draw(st.booleans()):
            del options["serializer"]
    return options


def compressors() -> Any:
    return st.lists(st.sampled_from([v3 for v3, _ in COMPRESSORS]), max_size=3)


def parts_of(length: int) -> list[int]:
    """Return lengths of which a few, or at most 20, make up `length`."""
    return [n for n in range(max(1, length // 20), length + 1) if length % n == 0]


@st.composite
def serializers(draw: Any, dtype: np.dtype[Any], chunks: tuple[int, ...], kind: str) -> dict[str, Any]:
    if kind == "packbits":
        return named("packbits", padding_encoding=draw(st.sampled_from(["none", "first_byte", "last_byte"])))
    if kind == "bytes":
        orders = ["little", "big"] if datatypes.parse(dtype).has_byte_order else []
        return named("bytes", endian=draw(st.sampled_from(orders))) if orders else named("bytes")
    inner = tuple(draw(st.sampled_from(parts_of(length))) for length in chunks)
    codecs: list[dict[str, Any]] = []
    order = draw(st.permutations(range(len(inner))))
    if draw(st.booleans()):
        codecs.append(named("transpose", order=list(order)))
    within = tuple(inner[axis] for axis in order) if codecs else inner
    kinds = ["bytes", "bytes", "sharding"] if math.prod(inner) > 1 else ["bytes"]
    codecs += [draw(serializers(dtype, within, draw(st.sampled_from(kinds)))), *draw(compressors())]
    index = [named("bytes", endian=draw(st.sampled_from(["little", "big"])))]
    index += [named("crc32c")] if draw(st.booleans()) else []
    return named(
        "sharding_indexed",
        chunk_shape=list(inner),
        codecs=codecs,
        index_codecs=index,
        index_location=draw(st.sampled_from(["start", "end"])),
    )


# -- stores and arrays -------------------------------------------------------------


@contextmanager
def new_stores(kind: str, count: int) -> Iterator[list[Store]]:
    """Make empty stores of one kind."""
    if kind in {"memory", "counting"}:
        stores: list[Store] = [MemoryStore() for _ in range(count)]
        yield [FaultyStore(store) for store in stores] if kind == "counting" else stores
        return
    with TemporaryDirectory() as folder:
        if kind == "local":
            yield [LocalStore(Path(folder, str(number))) for number in range(count)]
            return
        archives: list[Store] = [ZipStore(Path(folder, f"{number}.zip"), mode="w") for number in range(count)]
        try:
            yield archives
        finally:
            for archive in archives:
                archive.close()


def create(layout: Layout, store: Store) -> None:
    """Create the array, without chunks."""
    options = {name: value for name, value in layout.options.items() if name != "write_empty_chunks"}
    omnizarr.create_array(store, shape=layout.shape, dtype=layout.dtype, **options)


def some_values(seed: int, shape: tuple[int, ...], dtype: np.dtype[Any], *, is_tame: bool = False) -> Any:
    """Return random elements: any bits that a type can have, or small whole numbers."""
    rng = np.random.default_rng(seed)
    count = math.prod(shape)
    if is_tame:
        return rng.integers(0, 50, shape).astype(dtype)
    if dtype.names is not None:
        values = np.empty(shape, dtype)
        for number, name in enumerate(dtype.names):
            part = dtype[name]
            values[name] = some_values(seed + number + 1, (*shape, *part.shape), part.base)
        return values
    if dtype.kind == "U":
        points = rng.integers(0, 0x3000, (count, dtype.itemsize // 4)).astype(dtype.byteorder + "u4")
        return points.view(dtype).reshape(shape)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.name in ML and dtype.itemsize == 1 and not dtype.name.startswith("float8"):
        return rng.integers(-2 if dtype.name.startswith("int") else 0, 2, shape).astype(dtype)
    octets = rng.integers(0, 256, (count, dtype.itemsize), "u1")
    return octets.view(words(dtype)).view(dtype).reshape(shape)


def with_fill(seed: int, values: Any, fill: Any) -> Any:
    """Return values of which whole stretches, and so whole chunks, are the fill value."""
    rng = np.random.default_rng(seed)
    result = values.copy()
    for axis, length in enumerate(values.shape):
        start, stop = sorted(rng.integers(0, length + 1, 2).tolist())
        result[(slice(None),) * axis + (slice(start, stop),)] = fill
    if not values.shape and rng.integers(2):
        result[()] = fill
    return result


# -- plans -------------------------------------------------------------------------


@dataclass(frozen=True)
class Selected:
    """A selection: the verb's name, what it is given, and the places in C order of what it selects."""

    kind: str
    selection: Any
    places: Any

    def read(self, array: Any, **options: Any) -> Any:
        if self.kind == "advanced":
            return omnizarr.read_many([(array, self.selection)], out=[options.get("out")])[0]
        return getattr(array, f"get_{self.kind}_selection")(self.selection, **options)

    def write(self, array: Any, value: Any, **options: Any) -> None:
        if self.kind == "advanced":
            array[self.selection] = value
            return
        getattr(array, f"set_{self.kind}_selection")(self.selection, value, **options)


def axis_selections(length: int) -> Any:
    return st.one_of(
        st.integers(-length, length - 1),
        st.slices(length),
        st.lists(st.integers(-length, length - 1), max_size=9).map(lambda some: np.array(some, np.intp)),
        hnp.arrays(np.bool_, length),
    )


@st.composite
def plans(draw: Any, shape: tuple[int, ...], grid: Any = None) -> Selected:
    """Draw a selection of an array; `grid` is that of its chunks."""
    places = np.arange(math.prod(shape)).reshape(shape)
    kinds = ["basic", "basic"]
    if shape and 0 not in shape:
        kinds += ["orthogonal", "orthogonal", "coordinate", "mask", "block", "advanced", "advanced"]
    kind = draw(st.sampled_from(kinds))
    if kind == "basic":
        selection = draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=len(shape) + 2))
        return Selected(kind, selection, places[selection])
    if kind == "advanced":
        selection = draw(advanced(shape).filter(lambda some: not stays_in_place(some)))
        return Selected(kind, selection, places[selection])
    if kind == "mask":
        mask = draw(hnp.arrays(np.bool_, shape))
        return Selected(kind, mask, places[mask])
    if kind == "coordinate":
        points = draw(hnp.array_shapes(max_dims=2, max_side=6))
        indices = tuple(draw(hnp.arrays(np.intp, points, elements=st.integers(-n, n - 1))) for n in shape)
        return Selected(kind, indices, places[indices])
    if kind == "block":
        blocks = tuple(draw(st.integers(0, axis.count - 1)) for axis in grid.axes)
        starts = [axis.chunk(number) for axis, number in zip(grid.axes, blocks, strict=True)]
        return Selected(kind, blocks, places[tuple(slice(first, first + size) for first, size in starts)])
    parts = tuple(draw(axis_selections(length)) for length in shape)
    for axis in range(len(parts) - 1, -1, -1):  # the last first, so that dropped axes do not move the others
        places = places[(slice(None),) * axis + (parts[axis],)]
    return Selected(kind, parts, places)


def some_plan(seed: int, shape: tuple[int, ...]) -> Selected:
    """Return a selection of a large array."""
    rng = np.random.default_rng(seed)
    places = np.arange(math.prod(shape)).reshape(shape)
    kind = str(rng.choice(["basic", "basic", "orthogonal", "coordinate", "mask", "advanced"]))
    cuts = [sorted(rng.integers(0, length + 1, 2).tolist()) for length in shape]
    slices = [slice(start, stop, int(rng.choice([1, 1, 2, 7]))) for start, stop in cuts]
    if kind == "basic":
        turned = [slice(None, None, -s.step) if rng.integers(4) == 0 else s for s in slices]
        return Selected(kind, tuple(turned), places[tuple(turned)])
    if kind == "mask":
        mask = rng.random(shape) < rng.choice([0.001, 0.5])
        return Selected(kind, mask, places[mask])
    count = int(rng.choice([1, 10, 3000]))
    if kind == "coordinate":
        points = tuple(rng.integers(0, length, count) for length in shape)
        return Selected(kind, points, places[points])
    if kind == "advanced" and len(shape) > 1:
        axes = rng.choice(len(shape), 2, replace=False)
        among = [rng.integers(0, n, min(count, 300)) if axis in axes else slices[axis] for axis, n in enumerate(shape)]
        return Selected(kind, tuple(among), places[tuple(among)])
    kind = "orthogonal"
    rows = rng.integers(0, shape[0], min(count, 300))
    return Selected(kind, (rows, *slices[1:]), places[(rows, *slices[1:])])


@st.composite
def memories(draw: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Draw an array to be filled, of any strides."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 2, -1, -3])) for _ in shape]
    base = np.zeros([shape[axis] * abs(steps[axis]) for axis in order], dtype).transpose(np.argsort(order))
    out = base[(*(slice(None, None, step) for step in steps), ...)]
    assert out.shape == shape
    return out
