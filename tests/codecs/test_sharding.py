import base64
import json
import struct
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr import indexing
from omnizarr.codecs import chain, spans
from omnizarr.codecs.contract import ArraySpec, ChunkPolicy
from omnizarr.errors import (
    ChecksumError,
    ChunkError,
    ChunkNotFoundError,
    ChunkSizeError,
    CodecError,
    ConflictError,
    MetadataError,
    ShardIndexError,
    UnknownCodecError,
)
from omnizarr.model import Named, datatypes, grids

MISSING = 2**64 - 1


def named(name, **configuration):
    return {"name": name, "configuration": configuration}


LITTLE, BIG = named("bytes", endian="little"), named("bytes", endian="big")
GZIP, CRC = named("gzip", level=1), {"name": "crc32c"}


def sharding(chunk_shape, *codecs, index=(LITTLE, CRC), location="end"):
    return named(
        "sharding_indexed",
        chunk_shape=list(chunk_shape),
        codecs=list(codecs) or [LITTLE],
        index_codecs=list(index),
        index_location=location,
    )


def bound(shape, *codecs, dtype="int32", fill=0, **policy):
    data_type = datatypes.parse(dtype)
    spec = ArraySpec(tuple(shape), data_type, data_type.fill_from_json(fill), ChunkPolicy(**policy))
    return chain.bind([Named(codec["name"], codec.get("configuration", {})) for codec in codecs], spec)


class Source:
    """A stored value that remembers which spans were asked for."""

    def __init__(self, data):
        self.data, self.calls = data, []

    def __call__(self, parts):
        self.calls.append(None if parts is None else list(parts))
        if self.data is None:
            return None
        return [self.data] if parts is None else [self.data[slice(*part)] for part in parts]


def whole(shape):
    return tuple(slice(0, length, 1) for length in shape)


# ---- shards of others (tests/codecs/make/shards.py wrote them)

SHARDS = json.loads((Path(__file__).parent / "data" / "shards.json").read_text())
SHARD_IDS = [f"{shard['program']}-{shard['name']}-{shard['data_type']}" for shard in SHARDS]
SELECTIONS = [
    whole((4, 6, 8)),
    (slice(1, 2, 1), slice(0, 6, 5), slice(3, 5, 1)),
    (slice(0, 1, 1), slice(0, 2, 1), slice(1, 4, 2)),
    (np.array([3, 0, 1]), np.array([5, 0, 2]), np.array([7, 1, 4])),
    (slice(0, 4, 1), *np.ix_([5, 0], [2, 6, 1])),
]


def of_others(shard):
    codecs = bound((4, 6, 8), *shard["codecs"], dtype=shard["data_type"], fill=shard["fill_value"])
    values = np.arange(1, 193).reshape(4, 6, 8).astype(shard["data_type"])
    values[:2, :3, :4] = codecs.spec.fill_value
    return codecs, base64.b64decode(shard["data"]), values


@pytest.mark.parametrize("shard", SHARDS, ids=SHARD_IDS)
def test_shards_of_others_are_read(shard):
    codecs, data, values = of_others(shard)
    np.testing.assert_array_equal(codecs.decode(data), values)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shard", SHARDS, ids=SHARD_IDS)
@pytest.mark.parametrize("selection", SELECTIONS, ids=range(len(SELECTIONS)))
def test_parts_of_shards_of_others_are_read(shard, selection):
    codecs, data, values = of_others(shard)
    out = np.zeros_like(values[selection])
    assert codecs.read(Source(data), selection, out)
    np.testing.assert_array_equal(out, values[selection])


@pytest.mark.parametrize("shard", SHARDS, ids=SHARD_IDS)
def test_shards_of_others_are_written_to(shard):
    codecs, data, values = of_others(shard)
    selection = (slice(1, 3, 1), slice(2, 6, 1), slice(0, 8, 3))
    values[selection] = 5
    written = codecs.write(data, selection, np.full((2, 4, 3), 5, values.dtype))
    np.testing.assert_array_equal(codecs.decode(written), values)


# ---- others read our shards

TURN = named("transpose", order=[2, 0, 1])
OUR_CODECS = {
    "plain": [sharding([2, 3, 4])],
    "start": [sharding([2, 3, 4], LITTLE, GZIP, location="start")],
    "big": [sharding([2, 3, 4], BIG, index=[BIG])],
    "nested": [sharding([2, 3, 4], sharding([1, 3, 2], LITTLE, GZIP))],
    "transposed": [TURN, sharding([4, 2, 2], named("transpose", order=[1, 0, 2]), LITTLE)],
}


@pytest.fixture(params=OUR_CODECS)
def ours(request, tmp_path):
    """A folder that holds an array of one shard that we encoded, and its values."""
    codecs = OUR_CODECS[request.param]
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [4, 6, 8],
        "data_type": "int32",
        "chunk_grid": named("regular", chunk_shape=[4, 6, 8]),
        "chunk_key_encoding": named("default", separator="/"),
        "fill_value": -7,
        "codecs": codecs,
        "attributes": {},
    }
    values = np.arange(1, 193, dtype="i4").reshape(4, 6, 8)
    values[:2, :3, :4] = -7
    (tmp_path / "zarr.json").write_text(json.dumps(document))
    (tmp_path / "c/0/0").mkdir(parents=True)
    (tmp_path / "c/0/0/0").write_bytes(bound((4, 6, 8), *codecs, fill=-7).encode(values))
    return tmp_path, values


def test_tensorstore_reads_our_shards(ours):
    tensorstore = pytest.importorskip("tensorstore")
    folder, values = ours
    store = {"driver": "file", "path": f"{folder}/"}
    found = tensorstore.open({"driver": "zarr3", "kvstore": store}).result()[...].read().result()
    np.testing.assert_array_equal(found, values)


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")  # it says that it reads them slowly
def test_zarr_python_reads_our_shards(ours):
    zarr = pytest.importorskip("zarr")
    folder, values = ours
    np.testing.assert_array_equal(zarr.open_array(folder, mode="r")[...], values)


def test_zarrista_reads_our_shards(ours):
    zarrista = pytest.importorskip("zarrista")
    folder, values = ours
    array = zarrista.Array.open(zarrista.store.FilesystemStore(str(folder)), "/")
    np.testing.assert_array_equal(np.asarray(array[...].to_numpy()), values)


# ---- the layout


def test_layout_of_a_shard():
    """Inner chunks in C order without gaps, then the index; one that holds only the fill value is missing."""
    codecs = bound((2, 2), sharding([1, 1], index=[LITTLE]), dtype="int16")
    data = bytes(codecs.encode(np.array([[1, 0], [2, 3]], "i2")))
    index = struct.pack("<8Q", 0, 2, MISSING, MISSING, 2, 2, 4, 2)
    assert data == struct.pack("<3h", 1, 2, 3) + index


def test_layout_of_a_shard_with_the_index_in_front():
    codecs = bound((2,), sharding([1], index=[BIG], location="start"), dtype="int16")
    index = struct.pack(">4Q", 32, 2, 34, 2)
    assert bytes(codecs.encode(np.array([1, 2], "i2"))) == index + struct.pack("<2h", 1, 2)


def test_index_codecs_may_be_missing():
    codec = named("sharding_indexed", chunk_shape=[1], codecs=[LITTLE])
    data = bound((2,), sharding([1])).encode(np.array([1, 2], "i4"))
    np.testing.assert_array_equal(bound((2,), codec).decode(data), [1, 2])


@pytest.mark.parametrize("codecs", [[], ["bytes"], [{"name": "endian", "configuration": {"endian": "little"}}]])
def test_older_ways_to_spell_inner_codecs(codecs):
    codec = named("sharding_indexed", chunk_shape=[1], codecs=codecs)
    data = bound((2,), sharding([1])).encode(np.array([1, 2], "i4"))
    np.testing.assert_array_equal(bound((2,), codec).decode(data), [1, 2])


def test_scalar_in_a_shard():
    codecs = bound((), sharding([]))
    data = codecs.encode(np.array(7, "i4"))
    assert codecs.decode(data) == 7
    out = np.zeros((), "i4")
    assert codecs.read(Source(data), (), out)
    assert out == 7
    assert codecs.write(data, (), np.array(0, "i4")) is None


def test_inner_chunks_may_be_anywhere():
    """Gaps, any order, and two entries with the same bytes are legal to read."""
    codecs = bound((4,), sharding([1], index=[LITTLE]), dtype="int16")
    body = struct.pack("<3h", 30, -1, 10)
    data = body + struct.pack("<8Q", 4, 2, 4, 2, 0, 2, MISSING, MISSING)
    np.testing.assert_array_equal(codecs.decode(data), [10, 10, 30, 0])


def test_variable_length_strings_in_shards():
    codecs = bound((4,), sharding([2], {"name": "vlen-utf8"}, GZIP), dtype="string", fill="none")
    values = np.array(["a", "\u00e9" * 1000, "none", "none"], np.dtypes.StringDType())
    data = codecs.encode(values)
    assert codecs.decode(data).tolist() == values.tolist()
    out = np.empty(2, np.dtypes.StringDType())
    codecs.read(Source(data), (slice(1, 3, 1),), out)
    assert out.tolist() == values[1:3].tolist()


# ---- the fill value


@pytest.mark.parametrize(
    ("dtype", "fill", "value", "stored"),
    [
        ("float32", "NaN", np.float32("nan"), False),
        ("float32", 0.0, np.float32(-0.0), True),
        ("float32", -0.0, np.float32(-0.0), False),
        ("float32", "0x7fc00001", np.float32("nan"), True),
        ("int16", -7, np.int16(-7), False),
        ("bool", True, np.True_, False),
    ],
)
def test_inner_chunks_that_hold_only_the_fill_value_bit_for_bit_are_missing(dtype, fill, value, stored):
    codecs = bound((4,), sharding([2], index=[LITTLE]), dtype=dtype, fill=fill)
    array = np.full(4, value)
    size = len(codecs.encode(array))
    assert size == 32 + (array.nbytes if stored else 0)
    assert (codecs.write(None, whole((4,)), array) is not None) == stored


def test_empty_inner_chunks_are_written_if_the_policy_says_so():
    codecs = bound((4,), sharding([2], index=[LITTLE]), write_empty_chunks=True)
    assert len(codecs.encode(np.zeros(4, "i4"))) == 32 + 16
    assert codecs.write(None, whole((4,)), np.zeros(4, "i4")) is not None


def test_shard_without_inner_chunks_is_the_fill_value():
    codecs = bound((2, 2), sharding([1, 2]), fill=5)
    data = codecs.encode(np.full((2, 2), 5, "i4"))
    assert (codecs.decode(data) == 5).all()


@pytest.mark.parametrize("selection", [whole((4,)), (slice(2, 3, 1),)])
def test_missing_inner_chunk_is_an_error_if_the_policy_says_so(selection):
    codecs = bound((4,), sharding([2]), missing="error")
    data = codecs.encode(np.array([1, 2, 0, 0], "i4"))
    with pytest.raises(ChunkNotFoundError) as caught:
        codecs.read(Source(data), selection, np.empty(4, "i4")[selection])
    assert "inner chunk (1,)" in str(caught.value)


def test_fill_value_reaches_inner_chunks_through_array_codecs():
    scaled = [named("scale_offset", offset=1, scale=2), LITTLE]
    codecs = bound((4,), sharding([2], *scaled), dtype="float32", fill=10.0)
    data = codecs.encode(np.array([1, 2, 10, 10], "f4"))
    np.testing.assert_array_equal(codecs.decode(data), [1, 2, 10, 10])
    before = bound((4,), scaled[0], sharding([2]), dtype="float32", fill=10.0)
    data = before.encode(np.array([1, 2, 10, 10], "f4"))
    assert len(data) == 8 + 32 + 4
    np.testing.assert_array_equal(before.decode(data), [1, 2, 10, 10])


# ---- which bytes are fetched

INDEX_SIZE = 16 * 16 + 4


def wide(location="end", codecs=(LITTLE,), index=(LITTLE, CRC)):
    """A shard of 16 inner chunks of 40,000 bytes each."""
    codecs = bound((16, 10_000), sharding([1, 10_000], *codecs, location=location, index=index), fill=-1)
    array = np.arange(160_000, dtype="i4").reshape(16, 10_000)
    return codecs, array, Source(bytes(codecs.encode(array)))


def read(codecs, source, array, selection):
    out = np.zeros_like(array[selection])
    assert codecs.read(source, selection, out)
    np.testing.assert_array_equal(out, array[selection])
    return source.calls


def test_whole_shard_is_fetched_in_one_request():
    codecs, array, source = wide()
    assert read(codecs, source, array, whole(array.shape)) == [None]


def test_shard_of_which_every_inner_chunk_is_needed_is_fetched_in_one_request():
    codecs, array, source = wide()
    assert read(codecs, source, array, (slice(0, 16, 1), slice(3, 4, 1))) == [None]


@pytest.mark.parametrize(
    ("location", "index", "stamp", "start"),
    [
        ("end", (-INDEX_SIZE, None), (-4, None), 0),
        ("start", (0, INDEX_SIZE), (INDEX_SIZE - 4, INDEX_SIZE), INDEX_SIZE),
    ],
)
def test_part_is_fetched_in_two_requests(location, index, stamp, start):
    codecs, array, source = wide(location)
    calls = read(codecs, source, array, (slice(5, 7, 1), slice(3, 4, 1)))
    assert calls == [[index], [(start + 5 * 40_000, start + 7 * 40_000), stamp]]


@pytest.mark.parametrize("codecs", [(LITTLE,), (LITTLE, GZIP)], ids=["raw", "gzip"])
def test_part_of_a_small_shard_is_fetched_in_one_request(codecs):
    array = np.arange(16_000, dtype="i4")
    codecs = bound(array.shape, sharding([1000], *codecs))
    source = Source(bytes(codecs.encode(array)))
    assert read(codecs, source, array, (slice(3, 4, 1),)) == [None]


def test_part_of_a_shard_is_fetched_in_two_requests_if_values_differ_in_size():
    codecs = bound((4,), sharding([1], {"name": "vlen-utf8"}), dtype="string", fill="")
    array = np.array(["a", "", "ccc", "d"], np.dtypes.StringDType())
    source = Source(bytes(codecs.encode(array)))
    assert [len(call) for call in read(codecs, source, array, (slice(2, 3, 1),))] == [1, 2]


def test_near_inner_chunks_are_fetched_as_one_and_distant_ones_in_one_request():
    codecs, array, source = wide()
    calls = read(codecs, source, array, (np.array([0, 2, 15, 9]), np.array([0, 0, 0, 0])))
    assert calls[1] == [(0, 3 * 40_000), (9 * 40_000, 10 * 40_000), (15 * 40_000, 16 * 40_000), (-4, None)]


def test_no_inner_chunk_is_fetched_if_all_are_missing():
    codecs, array, source = wide()
    array[:3] = -1
    source.data = bytes(codecs.encode(array))
    assert read(codecs, source, array, (slice(0, 2, 1), slice(0, 5, 1))) == [[(-INDEX_SIZE, None)]]


def test_nothing_stored_leaves_the_buffer_alone():
    codecs, array, _ = wide()
    for selection in (whole(array.shape), (slice(0, 1, 1), slice(0, 1, 1))):
        out = np.full_like(array[selection], 42)
        assert not codecs.read(Source(None), selection, out)
        assert (out == 42).all()


def nested():
    """A shard of 4 shards of 16 inner chunks of 40,000 bytes each."""
    codecs = bound((64, 10_000), sharding([16, 10_000], sharding([1, 10_000])))
    array = np.arange(1, 640_001, dtype="i4").reshape(64, 10_000)
    return codecs, array, Source(bytes(codecs.encode(array)))


def test_part_of_a_nested_shard_is_fetched_through_both_indexes():
    codecs, array, source = nested()
    size = 16 * 40_000 + INDEX_SIZE
    calls = read(codecs, source, array, (slice(20, 21, 1), slice(0, 5, 1)))
    assert calls == [
        [(-68, None)],
        [(-4, None)],
        [(2 * size - INDEX_SIZE, 2 * size)],
        [(size + 4 * 40_000, size + 5 * 40_000), (2 * size - 4, 2 * size)],
        [(-4, None)],
    ]


def test_whole_nested_shard_is_fetched_in_one_request():
    codecs, array, source = nested()
    assert read(codecs, source, array, whole(array.shape)) == [None]


def test_whole_inner_shard_is_fetched_at_once():
    codecs, array, source = nested()
    size = 16 * 40_000 + INDEX_SIZE
    calls = read(codecs, source, array, (slice(16, 32, 1), slice(0, 10_000, 1)))
    assert calls == [[(-68, None)], [(size, 2 * size), (-4, None)]]


class Changing(Source):
    """A stored value that somebody replaces after some requests."""

    def __init__(self, data, later, after):
        super().__init__(data)
        self.later, self.after = later, after

    def __call__(self, parts):
        values = super().__call__(parts)
        if len(self.calls) == self.after:
            self.data = self.later
        return values


@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("index", [(LITTLE, CRC), (LITTLE,)])
def test_shard_that_is_replaced_between_requests_is_read_again(location, index):
    codecs, before, source = wide(location, index=index)
    after = before + 1
    after[0] = -1  # a missing inner chunk: all others are elsewhere
    changing = Changing(source.data, codecs.encode(after), after=1)
    out = np.zeros((2, 5), "i4")
    assert codecs.read(changing, (slice(2, 4, 1), slice(0, 5, 1)), out)
    np.testing.assert_array_equal(out, after[2:4, :5])


def test_shard_that_is_deleted_between_requests_is_missing():
    codecs, _, source = wide()
    changing = Changing(source.data, None, after=1)
    assert not codecs.read(changing, (slice(2, 4, 1), slice(0, 5, 1)), np.zeros((2, 5), "i4"))


@pytest.mark.parametrize("after", [1, 2, 3])
def test_nested_shard_that_is_replaced_between_requests_is_read_again(after):
    codecs, array, source = nested()
    later = array.copy()
    later[:10] = 0
    changing = Changing(source.data, bytes(codecs.encode(later)), after)
    out = np.zeros((1, 5), "i4")
    selection = (slice(20, 21, 1), slice(0, 5, 1))
    assert codecs.read(changing, selection, out)
    np.testing.assert_array_equal(out, later[selection])


class Pinned(Changing):
    """Parts of one version; all of the one that exists."""

    is_pinned = True

    def __call__(self, parts):
        if parts is not None and self.data is self.later:
            self.calls.append("conflict")
            raise ConflictError("the value has changed")
        return super().__call__(parts)


def test_pinned_shard_is_not_looked_at_again():
    codecs, array, source = wide()
    pinned = Pinned(source.data, None, after=-1)
    assert read(codecs, pinned, array, (slice(5, 7, 1), slice(3, 4, 1))) == [
        [(-INDEX_SIZE, None)],
        [(5 * 40_000, 7 * 40_000)],
    ]


def test_pinned_nested_shard_is_not_looked_at_again():
    codecs, array, source = nested()
    size = 16 * 40_000 + INDEX_SIZE
    pinned = Pinned(source.data, None, after=-1)
    assert read(codecs, pinned, array, (slice(20, 21, 1), slice(0, 5, 1))) == [
        [(-68, None)],
        [(2 * size - INDEX_SIZE, 2 * size)],
        [(size + 4 * 40_000, size + 5 * 40_000)],
    ]


@pytest.mark.parametrize("after", [1, 2])
def test_pinned_nested_shard_that_is_replaced_between_requests_is_fetched_whole(after):
    codecs, array, source = nested()
    later = array + 1
    later[:10] = 0
    pinned = Pinned(source.data, bytes(codecs.encode(later)), after)
    assert read(codecs, pinned, later, (slice(20, 21, 1), slice(0, 5, 1)))[after:] == ["conflict", None]


def test_pinned_shard_that_is_deleted_between_requests_is_missing():
    codecs, _, source = wide()
    pinned = Pinned(source.data, None, after=1)
    assert not codecs.read(pinned, (slice(2, 4, 1), slice(0, 5, 1)), np.zeros((2, 5), "i4"))


def test_conflict_of_a_source_that_is_not_pinned_is_raised():
    codecs, _, source = wide()
    unpinned = Pinned(source.data, source.data, after=-1)
    unpinned.is_pinned = False
    with pytest.raises(ConflictError):
        codecs.read(unpinned, (slice(2, 4, 1), slice(0, 5, 1)), np.zeros((2, 5), "i4"))


def test_broken_inner_chunk_of_a_pinned_nested_shard_is_an_error():
    codecs, _, source = nested()
    data = bytearray(source.data)
    size = 16 * 40_000 + INDEX_SIZE
    data[2 * size - 1] ^= 1  # the checksum of the second inner shard's index
    with pytest.raises(ChecksumError, match=r"inner chunk \(1, 0\): index"):
        codecs.read(Pinned(bytes(data), None, -1), (slice(20, 21, 1), slice(0, 5, 1)), np.zeros((1, 5), "i4"))


# ---- writing


def test_untouched_inner_chunks_keep_their_bytes_undecoded():
    codecs = bound((3,), sharding([1], LITTLE, GZIP, index=[LITTLE]))
    data = b"no gzip" + struct.pack("<6Q", 0, 7, MISSING, MISSING, 3, 4)
    written = bytes(codecs.write(data, (slice(1, 2, 1),), np.array([5], "i4")))
    index = struct.unpack("<6Q", written[-48:])
    assert written[: index[1]] == b"no gzip"
    assert written[index[4] : index[4] + index[5]] == b"gzip"


def test_covered_inner_chunks_are_not_decoded():
    codecs = bound((4,), sharding([2], LITTLE, GZIP, index=[LITTLE]))
    data = b"broken" + struct.pack("<4Q", 0, 6, 2**60, 2**60)
    written = codecs.write(data, whole((4,)), np.array([1, 2, 3, 4], "i4"))
    np.testing.assert_array_equal(codecs.decode(written), [1, 2, 3, 4])


def test_written_shard_is_compact():
    codecs = bound((4,), sharding([1], index=[LITTLE]))
    array = np.array([1, 2, 3, 4], "i4")
    data = b"garbage" * 10 + array.tobytes() + struct.pack("<8Q", 70, 4, 74, 4, 78, 4, 82, 4)
    array[1] = 9
    assert bytes(codecs.write(data, (slice(1, 2, 1),), array[1:2])) == bytes(codecs.encode(array))


def test_nothing_is_left_when_all_is_fill_value():
    codecs = bound((4,), sharding([2]), fill=7)
    data = codecs.encode(np.array([1, 2, 7, 7], "i4"))
    assert codecs.write(data, (slice(0, 2, 1),), np.full(2, 7, "i4")) is None
    assert codecs.write(None, (slice(0, 1, 1),), np.full(1, 7, "i4")) is None


def test_part_of_nothing_is_the_fill_value():
    codecs = bound((4,), sharding([2]), fill=7)
    data = codecs.write(None, (slice(0, 1, 1),), np.array([1], "i4"))
    np.testing.assert_array_equal(codecs.decode(data), [1, 7, 7, 7])


def test_encode_refuses_another_shape():
    with pytest.raises(CodecError):
        bound((4,), sharding([2])).encode(np.zeros(6, "i4"))


# ---- broken shards

ACTS = [
    lambda codecs, data: codecs.decode(data),
    lambda codecs, data: codecs.read(Source(data), (slice(0, 1, 1),), np.empty(1, "i4")),
    lambda codecs, data: codecs.write(data, (slice(0, 1, 1),), np.empty(1, "i4")),
]
GOOD = struct.pack("<4i", 1, 2, 3, 4)

BROKEN = {
    "nothing": (b"", ShardIndexError),
    "shorter than the index": (struct.pack("<7Q", *[MISSING] * 7), ShardIndexError),
    "cut": (GOOD + struct.pack("<8Q", 0, 4, 4, 4, 8, 4, 12, 4)[:-1], (ShardIndexError, ChunkSizeError)),
    "offset beyond the end": (GOOD + struct.pack("<8Q", 0, 4, 4, 4, 2**40, 4, 12, 4), ShardIndexError),
    "last bytes beyond the end": (GOOD + struct.pack("<8Q", 0, 4, 4, 4, 78, 4, 12, 4), ShardIndexError),
    "overflow": (GOOD + struct.pack("<8Q", 0, 4, 4, 4, MISSING - 3, 4, 12, 4), ShardIndexError),
    "offset missing": (GOOD + struct.pack("<8Q", 0, 4, 4, 4, MISSING, 4, 12, 4), ShardIndexError),
    "size missing": (GOOD + struct.pack("<8Q", 0, 4, 4, 4, 8, MISSING, 12, 4), ShardIndexError),
    "too small": (GOOD + struct.pack("<8Q", 0, 4, 4, 4, 8, 3, 12, 4), ChunkSizeError),
    "too large": (GOOD + struct.pack("<8Q", 0, 4, 4, 4, 8, 5, 12, 4), ChunkSizeError),
    "empty": (GOOD + struct.pack("<8Q", 0, 4, 4, 4, 8, 0, 12, 4), ChunkSizeError),
}


@pytest.mark.parametrize("selection", [whole((4,)), (slice(2, 3, 1),)], ids=["whole", "part"])
@pytest.mark.parametrize("name", BROKEN)
def test_broken_shards_are_errors(name, selection):
    data, kind = BROKEN[name]
    codecs = bound((4,), sharding([1], index=[LITTLE]))
    with pytest.raises(kind) as caught:
        codecs.read(Source(data), selection, np.empty(4, "i4")[selection])
    error = caught.value
    assert error.codec is not None
    assert error.found is not None
    assert error.expected is not None
    if len(data) >= 64 and name != "cut":
        assert "inner chunk (2,)" in str(error)


READINGS = {
    "read": lambda codecs, selection, out: codecs.read(Source(b"123"), selection, out),
    "decode_part": lambda codecs, selection, out: codecs.decode_part(b"123", selection, out),
}


@pytest.mark.parametrize("how", READINGS)
def test_shard_without_room_for_its_index_is_refused_before_its_inner_chunks_are_listed(how):
    codecs = bound((2**40,), sharding([1]), dtype="int8")
    out = np.zeros(2**20, "i1")
    tracemalloc.start()
    try:
        with pytest.raises(ShardIndexError, match="shorter than its index"):
            READINGS[how](codecs, (slice(0, 2**20, 1),), out)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


# What a size means is not known before an inner chunk is decoded, and those that are kept are not.
@pytest.mark.parametrize("name", [name for name, (_, kind) in BROKEN.items() if kind is not ChunkSizeError])
def test_broken_shards_are_not_silently_replaced(name):
    data, _ = BROKEN[name]
    codecs = bound((4,), sharding([1], LITTLE, GZIP, index=[LITTLE]))
    with pytest.raises(ShardIndexError):
        codecs.write(data, (slice(0, 1, 1),), np.array([5], "i4"))


def test_sound_inner_chunks_of_a_broken_shard_are_read():
    codecs = bound((4,), sharding([1], index=[LITTLE]))
    out = np.zeros(2, "i4")
    codecs.read(Source(BROKEN["overflow"][0]), (slice(0, 2, 1),), out)
    np.testing.assert_array_equal(out, [1, 2])


@pytest.mark.parametrize("location", ["end", "start"])
@pytest.mark.parametrize("act", ACTS, ids=["decode", "read", "write"])
def test_checksum_of_the_index_is_checked(location, act):
    codecs = bound((4,), sharding([1], location=location))
    data = bytearray(codecs.encode(np.array([1, 2, 3, 4], "i4")))
    data[-10 if location == "end" else 10] ^= 1
    with pytest.raises(ChecksumError) as caught:
        act(codecs, data)
    assert caught.value.codec == "crc32c"
    assert "index of the shard" in str(caught.value)


@pytest.mark.parametrize("act", ACTS, ids=["decode", "read", "write"])
@pytest.mark.parametrize("size", range(0, 84, 7))
def test_torn_shards_are_errors(size, act):
    codecs = bound((4,), sharding([1]))
    data = bytes(codecs.encode(np.array([1, 2, 3, 4], "i4")))
    assert len(data) == 84
    with pytest.raises((ShardIndexError, ChecksumError)):
        act(codecs, data[:size])


def test_torn_shard_with_the_index_in_front_names_the_inner_chunk():
    codecs = bound((4,), sharding([1], location="start"))
    data = bytes(codecs.encode(np.array([1, 2, 3, 4], "i4")))[:-2]
    with pytest.raises(ShardIndexError) as caught:
        codecs.read(Source(data), (slice(2, 4, 1),), np.empty(2, "i4"))
    assert "inner chunk (3,)" in str(caught.value)
    assert (caught.value.found, caught.value.expected) == ("4 bytes at offset 80", "nothing beyond byte 82")


@pytest.mark.parametrize("codecs", [[sharding([1], LITTLE, CRC)], [sharding([2], sharding([1], LITTLE, CRC))]])
@pytest.mark.parametrize("selection", [whole((4,)), (slice(2, 3, 1),)])
def test_broken_inner_chunk_is_named(codecs, selection):
    codecs = bound((4,), *codecs)
    data = bytearray(codecs.encode(np.array([1, 2, 3, 4], "i4")))
    data[data.index(struct.pack("<i", 3))] ^= 1
    with pytest.raises(ChecksumError) as caught:
        codecs.read(Source(data), selection, np.empty(4, "i4")[selection])
    assert caught.value.codec == "crc32c"
    assert "inner chunk" in str(caught.value)


def test_overlapping_inner_chunks_do_not_multiply():
    codecs = bound((1000,), sharding([1], LITTLE, GZIP, index=[LITTLE]))
    data = bytes(10**6) + struct.pack("<2000Q", *[0, 10**6] * 1000)
    with pytest.raises(ShardIndexError) as caught:
        codecs.write(data, (slice(0, 1, 1),), np.array([5], "i4"))
    assert "overlap" in str(caught.value)


def test_index_of_an_impossible_size_allocates_nothing():
    codecs = bound((2**62,), sharding([1]))
    with pytest.raises(ShardIndexError):
        codecs.read(Source(bytes(100)), (slice(5, 7, 1),), np.empty(2, "i4"))


@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_errors_or_values(data, nest):
    codecs = bound((4,), sharding([2], sharding([1], index=[LITTLE]) if nest else LITTLE, index=[LITTLE]))
    for act in ACTS:
        with suppress(ChunkError):
            act(codecs, data)


# ---- broken configurations


@pytest.mark.parametrize(
    ("change", "kind", "pointer"),
    [
        ({"chunk_shape": None}, MetadataError, "chunk_shape"),
        ({"chunk_shape": "22"}, MetadataError, "chunk_shape"),
        ({"chunk_shape": [2]}, MetadataError, "chunk_shape"),
        ({"chunk_shape": [2, 0]}, MetadataError, "chunk_shape"),
        ({"chunk_shape": [2, -2]}, MetadataError, "chunk_shape"),
        ({"chunk_shape": [True, 2]}, MetadataError, "chunk_shape"),
        ({"chunk_shape": [2.0, 2]}, MetadataError, "chunk_shape"),
        ({"chunk_shape": [5, 2]}, CodecError, "chunk_shape"),
        ({"chunk_shape": [8, 4]}, CodecError, "chunk_shape"),
        ({"codecs": "bytes"}, MetadataError, "codecs"),
        ({"codecs": None}, MetadataError, "codecs"),
        ({"codecs": [5]}, MetadataError, "codecs/0"),
        ({"codecs": [{"name": "bytes", "configuration": 5}]}, MetadataError, "codecs/0"),
        ({"codecs": [LITTLE, {"name": "no such codec"}]}, UnknownCodecError, "codecs/1"),
        ({"codecs": [GZIP]}, CodecError, "codecs/0"),
        ({"codecs": [named("transpose", order=[1, 0])]}, CodecError, "codecs"),
        ({"codecs": [named("bytes", endian="middle")]}, MetadataError, "codecs/0/configuration/endian"),
        ({"codecs": [sharding([5, 2])]}, CodecError, "codecs/0/configuration/chunk_shape"),
        ({"index_codecs": [LITTLE, GZIP]}, CodecError, "index_codecs"),
        ({"index_codecs": [sharding([1, 1, 1])]}, CodecError, "index_codecs"),
        ({"index_codecs": [LITTLE, {"name": "no such codec"}]}, UnknownCodecError, "index_codecs/1"),
        ({"index_location": "middle"}, MetadataError, "index_location"),
        ({"index_location": None}, MetadataError, "index_location"),
        ({"index_place": "end"}, MetadataError, "index_place"),
    ],
)
def test_broken_configurations_are_errors(change, kind, pointer):
    codec = sharding([2, 2])
    with pytest.raises(kind) as caught:
        bound((4, 4), named("sharding_indexed", **{**codec["configuration"], **change}))
    assert caught.value.pointer == f"/codecs/0/configuration/{pointer}"


@pytest.mark.parametrize("field", ["chunk_shape", "codecs"])
def test_fields_without_which_there_is_no_shard(field):
    configuration = {name: value for name, value in sharding([2, 2])["configuration"].items() if name != field}
    with pytest.raises(MetadataError) as caught:
        bound((4, 4), named("sharding_indexed", **configuration))
    assert caught.value.pointer == f"/codecs/0/configuration/{field}"


# ---- laws


@st.composite
def shard_codecs(draw, shape, depth=2):
    """Draw a list of codecs with a shard in it, for an array of a shape."""
    before = []
    if draw(st.booleans()):
        order = draw(st.permutations(range(len(shape))))
        before = [named("transpose", order=list(order))]
        shape = [shape[axis] for axis in order]
    chunk_shape = [draw(st.sampled_from([n for n in range(1, length + 1) if length % n == 0])) for length in shape]
    if depth > 1 and draw(st.booleans()):
        inner = draw(shard_codecs(chunk_shape, depth - 1))
    else:
        inner = [draw(st.sampled_from([LITTLE, BIG])), *draw(st.sampled_from([[], [GZIP], [CRC], [GZIP, CRC]]))]
    ndim = len(shape) + 1
    index = draw(
        st.sampled_from([[LITTLE, CRC], [BIG], [named("transpose", order=list(range(ndim))[::-1]), LITTLE, CRC, CRC]])
    )
    return [*before, sharding(chunk_shape, *inner, index=index, location=draw(st.sampled_from(["end", "start"])))]


@st.composite
def selections(draw, shape):
    """Draw a piece's `chunk_selection`."""
    grid = grids.bind(grids.regular(shape), shape)
    kind = draw(st.sampled_from(["basic", "orthogonal", "coordinate"]))
    parts = []
    points = draw(st.integers(1, 5))
    for length in shape:
        place = st.integers(0, length - 1)
        start = draw(place)
        part = slice(start, draw(st.integers(start + 1, length)), draw(st.integers(1, 3)))
        if kind == "coordinate":
            part = draw(st.lists(place, min_size=points, max_size=points))
        elif kind == "orthogonal" and draw(st.booleans()):
            part = draw(st.lists(place, min_size=1, max_size=4, unique=True))
        parts.append(part)
    plan = getattr(indexing, kind)(tuple(parts), grid)
    (piece,) = plan
    return piece.chunk_selection


@st.composite
def scenes(draw):
    """Draw a chain with a shard in it, values for it (a part of them fill values), and a selection."""
    shape = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 12]), min_size=0, max_size=3)))
    codecs = bound(shape, *draw(shard_codecs(shape)), dtype=draw(st.sampled_from(["int16", "float64"])), fill=3)
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(codecs.spec.dtype)
    for _ in range(draw(st.integers(0, 2))):
        array[draw(selections(shape)) if shape else ()] = 3
    return codecs, array, draw(selections(shape)) if shape else ()


@given(scenes())
def test_decode_is_the_inverse_of_encode(scene):
    codecs, array, _ = scene
    np.testing.assert_array_equal(codecs.decode(codecs.encode(array)), array)


@given(scenes())
def test_reading_a_part_is_a_part_of_decoding(scene):
    codecs, array, selection = scene
    data = codecs.encode(array)
    out = np.zeros_like(array[selection])
    assert codecs.read(Source(data), selection, out)
    np.testing.assert_array_equal(out, array[selection])
    out = np.zeros_like(array[selection])
    codecs.decode_part(data, selection, out)
    np.testing.assert_array_equal(out, array[selection])


@given(scenes(), st.booleans())
def test_reading_deep_gives_the_same_as_reading_flat(scene, deep):
    codecs, array, selection = scene
    limit = 0 if deep else spans.GAP
    data = codecs.encode(array)
    out = np.zeros_like(array[selection])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "GAP", limit)
        assert codecs.read(Source(data), selection, out)
    np.testing.assert_array_equal(out, array[selection])


@given(scenes(), st.booleans(), st.booleans())
def test_writing_a_part_is_decoding_assigning_and_encoding(scene, constant, stored):
    codecs, array, selection = scene
    if not stored:
        array[...] = 3
    data = codecs.encode(array) if stored else None
    value = np.full_like(array[selection], 3) if constant else array[selection] + 1
    found = codecs.write(data, selection, value)
    array[selection] = value
    if found is None:
        assert (array == 3).all()
    else:
        np.testing.assert_array_equal(codecs.decode(found), array)
        # Compact: as large as if it were written at once.
        if not (array == 3).all():
            assert len(found) == len(codecs.encode(array))


def test_policy_reaches_the_inner_chain():
    codecs = bound((4,), sharding([2], sharding([1])), missing="error", write_empty_chunks=True)
    inner = codecs.serializer[1].inner
    assert inner.spec == replace(codecs.spec, shape=(2,))
    assert inner.serializer[1].inner.spec.policy == codecs.spec.policy


@pytest.mark.parametrize(
    "codecs",
    [
        [sharding([2]), CRC],
        [named("numcodecs.delta", dtype="<i4"), sharding([2])],
        [sharding([8], sharding([2]), CRC)],
    ],
    ids=["codec behind", "filter before", "codec behind, in a shard"],
)
def test_a_part_can_be_written_beside_missing_inner_chunks_that_reading_refuses(codecs):
    refusing, filling = (bound((8,), *codecs, missing=missing) for missing in ("error", "fill"))
    data = refusing.write(None, (slice(0, 1, 1),), np.array([3], "i4"))
    data = refusing.write(data, (slice(3, 4, 1),), np.array([4], "i4"))
    np.testing.assert_array_equal(filling.decode(data), [3, 0, 0, 4, 0, 0, 0, 0])
