from __future__ import annotations

import numpy as np
import pytest

from omnizarr.formats.filters import dump_chain, load_chain, read_step
from omnizarr.formats.reader import Reader
from omnizarr.model import Named, strict

LITTLE = Named("bytes", {"endian": "little"})
BYTES = Named("bytes")


def chain(*steps, dtype="<f4", order="C", ndim=2):
    reader = Reader(strict)
    read = [read_step(reader, step, f"/filters/{i}") for i, step in enumerate(steps)]
    return load_chain(reader, read, order, ndim, np.dtype(dtype)), reader.notes


def blosc(shuffle, typesize):
    return Named("blosc", {"cname": "lz4", "clevel": 5, "shuffle": shuffle, "typesize": typesize, "blocksize": 0})


@pytest.mark.parametrize(
    ("step", "named"),
    [
        ({"id": "zlib", "level": 1}, Named("numcodecs.zlib", {"level": 1})),
        ({"id": "gzip", "level": 9}, Named("gzip", {"level": 9})),
        ({"id": "gzip"}, Named("gzip", {"level": 1})),
        ({"id": "gzip", "level": -1}, Named("numcodecs.gzip", {"level": -1})),
        ({"id": "zstd", "level": 3}, Named("zstd", {"level": 3, "checksum": False})),
        ({"id": "zstd", "level": 3, "window": 9}, Named("numcodecs.zstd", {"level": 3, "window": 9})),
        ({"id": "lz4", "acceleration": 1}, Named("numcodecs.lz4", {"acceleration": 1})),
        ({"id": "crc32c"}, Named("crc32c")),
        ({"id": "crc32c", "location": "end"}, Named("crc32c")),
        ({"id": "crc32c", "location": "start"}, Named("numcodecs.crc32c", {"location": "start"})),
        ({"id": "fletcher32"}, Named("numcodecs.fletcher32")),
        ({"id": "shuffle", "elementsize": 4}, Named("numcodecs.shuffle", {"elementsize": 4})),
        ({"id": "acme", "x": [1]}, Named("numcodecs.acme", {"x": [1]})),
        ({"id": "blosc"}, blosc("shuffle", 4)),
        ({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 0}, blosc("noshuffle", 4)),
        ({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 2, "blocksize": 0}, blosc("bitshuffle", 4)),
        ({"id": "blosc", "shuffle": -1}, blosc("shuffle", 4)),
        ({"id": "blosc", "shuffle": 7}, Named("numcodecs.blosc", {"shuffle": 7})),
    ],
)
def test_bytes_filters_have_the_name_of_v3_where_the_bytes_are_the_same(step, named):
    assert chain(step)[0] == (LITTLE, named)


@pytest.mark.parametrize(
    ("dtype", "shuffle", "typesize"),
    [("<f8", "shuffle", 8), ("|u1", "bitshuffle", 1), ("|V300", "shuffle", 1)],
)
def test_automatic_shuffling_of_blosc_depends_on_the_item_size(dtype, shuffle, typesize):
    assert chain({"id": "blosc", "shuffle": -1}, dtype=dtype)[0][-1] == blosc(shuffle, typesize)


def test_blosc_after_another_bytes_filter_sees_single_bytes():
    codecs, _ = chain({"id": "shuffle", "elementsize": 4}, {"id": "blosc", "shuffle": 1})
    assert codecs[-1] == blosc("shuffle", 1)


@pytest.mark.parametrize(
    ("steps", "serializer", "typesize"),
    [
        ([{"id": "delta", "dtype": "<f4"}], LITTLE, 4),
        ([{"id": "delta", "dtype": "<f4", "astype": ">i2"}], Named("bytes", {"endian": "big"}), 2),
        ([{"id": "fixedscaleoffset", "dtype": "<f4", "astype": "|u1", "scale": 1, "offset": 0}], BYTES, 1),
        ([{"id": "astype", "encode_dtype": "<f8", "decode_dtype": "<f4"}], LITTLE, 8),
        ([{"id": "bitround", "keepbits": 3}], LITTLE, 4),
        ([{"id": "packbits"}], BYTES, 1),
        ([{"id": "delta", "dtype": "<f4", "astype": "<i8"}, {"id": "packbits"}], BYTES, 1),
    ],
)
def test_array_filters_come_before_bytes_and_say_what_is_stored(steps, serializer, typesize):
    codecs, _ = chain(*steps, {"id": "blosc", "shuffle": 1})
    names = [f"numcodecs.{step['id']}" for step in steps]
    assert [codec.name for codec in codecs[: len(steps)]] == names
    assert codecs[len(steps) :] == (serializer, blosc("shuffle", typesize))


@pytest.mark.parametrize("name", ["zfpy", "pcodec"])
def test_codecs_of_arrays_take_the_place_of_bytes(name):
    codecs, _ = chain({"id": name}, {"id": "zlib", "level": 1})
    assert codecs == (Named(f"numcodecs.{name}"), Named("numcodecs.zlib", {"level": 1}))


def test_an_array_filter_after_a_bytes_filter_sees_the_bytes():
    codecs, _ = chain({"id": "zlib", "level": 1}, {"id": "delta", "dtype": "|u1"})
    assert codecs[-1] == Named("omnizarr.bytes_filter", {"id": "delta", "dtype": "|u1"})


@pytest.mark.parametrize(
    ("order", "ndim", "axes"), [("F", 3, [2, 1, 0]), ("F", 1, None), ("F", 0, None), ("C", 3, None)]
)
def test_order_f_reverses_the_axes(order, ndim, axes):
    codecs, _ = chain(order=order, ndim=ndim)
    assert codecs == ((LITTLE,) if axes is None else (Named("transpose", {"order": axes}), LITTLE))


def test_numbers_written_as_strings_are_numbers_with_a_note():
    codecs, notes = chain({"id": "shuffle", "elementsize": "0"}, {"id": "zlib", "level": "3"}, dtype="<i8")
    assert codecs[1:] == (Named("numcodecs.shuffle", {"elementsize": 8}), Named("numcodecs.zlib", {"level": 3}))
    assert [note.pointer for note in notes] == [
        "/filters/0/elementsize",
        "/filters/1/level",
        "/filters/0/elementsize",
    ]


def test_strings_that_are_no_numbers_stay_strings():
    codecs, notes = chain({"id": "delta", "dtype": "<f4"}, {"id": "acme", "level": "high", "mask": "3"})
    assert codecs[-1].configuration == {"level": "high", "mask": "3"}
    assert notes == []


STACKS = [
    ([], None),
    ([], {"id": "zlib", "level": 1}),
    ([], {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0}),
    ([{"id": "delta", "dtype": "<f4", "astype": "<f4"}], {"id": "gzip", "level": 1}),
    ([{"id": "shuffle", "elementsize": 4}, {"id": "packbits"}], {"id": "lz4", "acceleration": 1}),
    ([{"id": "zstd", "level": 1}, {"id": "crc32c"}], None),
    ([{"id": "acme"}], None),
    ([{"id": "bitround", "keepbits": 3}], {"id": "zfpy", "mode": 4}),
]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("filters", "compressor"), STACKS)
def test_dump_chain_inverts_load_chain(filters, compressor, order):
    codecs, _ = chain(*filters, *([compressor] if compressor else []), order=order)
    stack = dump_chain(codecs, 2)
    assert (stack.order, stack.filters, stack.compressor) == (order, filters, compressor)
