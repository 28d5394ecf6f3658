"""The predicted cost of layouts, against what reading through a store that counts takes."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr.stores import MemoryStore, MetricsStore
from omnizarr.tools.advise.layouts import Layout, choose_chunks, shard_shape, touched
from omnizarr.tools.advise.places import PLACES
from omnizarr.tools.advise.windows import Window, parse

LARGE = np.dtype("V4096")  # of which few elements make a shard that is not fetched whole


@given(st.data())
def test_touched_chunks_are_those_counted_one_by_one(data):
    per_chunk = data.draw(st.integers(1, 4))
    inner = data.draw(st.integers(1, 4))
    chunk, length = inner * per_chunk, data.draw(st.integers(1, 40))
    window = data.draw(st.integers(1, length))
    counts, full = [], []
    for start in range(length - window + 1):
        last = start + window - 1
        chunks = range(start // chunk, last // chunk + 1)
        pieces = set(range(start // inner, last // inner + 1))
        counts.append(len(chunks))
        full.append(sum(pieces >= set(range(at * per_chunk, (at + 1) * per_chunk)) for at in chunks))
    found = touched(length, window, chunk, per_chunk)
    assert found.mean == pytest.approx(np.mean(counts))
    assert found.most == max(counts)
    assert found.full == pytest.approx(np.mean(full))


def requests_and_bytes(shape, chunks, shards, dtype, lengths):
    """Read a window everywhere, and return requests and bytes of each place."""
    metered = MetricsStore(MemoryStore())
    array = omnizarr.create_array(
        metered, shape=shape, chunks=chunks, shards=shards, dtype=dtype, compressors=None, filters=None
    )
    array[...] = np.frombuffer(np.random.default_rng(0).bytes(math.prod(shape) * dtype.itemsize), dtype).reshape(shape)
    array = omnizarr.open_array(metered, mode="r")
    array[(0,) * len(shape)]  # what is read once
    found = []
    for starts in itertools.product(*(range(n - w + 1) for n, w in zip(shape, lengths, strict=True))):
        metered.reset()
        array[tuple(slice(at, at + w) for at, w in zip(starts, lengths, strict=True))]
        total = metered.report().total
        found.append((total.requests, total.nbytes))
    return found


@pytest.mark.parametrize("lengths", [(1, 1), (12, 1), (1, 10), (5, 4), (12, 10), (4, 4)])
@pytest.mark.parametrize(
    ("chunks", "shards", "dtype"),
    [
        ((5, 3), None, np.dtype("int64")),
        ((2, 2), (4, 4), LARGE),
        ((1, 2), (3, 8), LARGE),
        ((4, 4), (4, 4), LARGE),
        ((2, 2), (4, 4), np.dtype("int16")),  # so small that each is fetched whole
    ],
)
def test_requests_are_those_that_reading_makes(chunks, shards, dtype, lengths):
    shape = (12, 10)
    counted = requests_and_bytes(shape, chunks, shards, dtype, lengths)
    expected = Layout(shape, chunks, shards, dtype.itemsize, 1.0).reading(Window("", lengths))
    assert expected.requests == pytest.approx(np.mean([requests for requests, _ in counted]))
    assert expected.most_requests >= max(requests for requests, _ in counted)
    if shards is None:
        assert expected.most_requests == max(requests for requests, _ in counted)


def test_bytes_are_those_that_reading_fetches():
    shape, lengths = (12, 12), (3, 5)
    counted = requests_and_bytes(shape, (2, 3), None, LARGE, lengths)
    expected = Layout(shape, (2, 3), None, 4096, 1.0).reading(Window("", lengths))
    assert expected.nbytes == pytest.approx(np.mean([nbytes for _, nbytes in counted]))


def test_sums_are_those_of_the_files():
    values = {}
    array = omnizarr.create_array(values, shape=(10, 12), chunks=(2, 3), shards=(4, 6), dtype="f8", compressors=None)
    array[...] = np.arange(120).reshape(10, 12)
    layout = Layout((10, 12), (2, 3), (4, 6), 8, 1.0)
    assert layout.objects == len(values) - 1 == 6
    assert layout.nchunks == 20
    assert layout.index_nbytes == 16 * 4 + 4
    assert layout.nbytes == sum(map(len, values.values())) - len(values["zarr.json"])


SHAPES = st.lists(st.integers(1, 5000), min_size=1, max_size=4).map(tuple)


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.sampled_from([1, 2, 4, 8, 300]), st.sampled_from(sorted(PLACES)), st.booleans(), st.data())
def test_advice_is_a_layout_that_can_be_created(shape, item_bytes, name, has_shards, data):
    place = PLACES[name]
    windows = tuple(
        Window("w", tuple(data.draw(st.integers(1, length)) for length in shape), data.draw(st.floats(0.1, 10)))
        for _ in range(data.draw(st.integers(1, 3)))
    )
    chunks = choose_chunks(shape, item_bytes, 1.0, place, windows, has_shards=has_shards).chunks
    assert all(1 <= size <= length for size, length in zip(chunks, shape, strict=True))
    least = place.least_chunk if has_shards else place.least_object
    nbytes = math.prod(chunks) * item_bytes
    assert nbytes <= max(place.most_chunk, item_bytes)
    assert nbytes >= min(least, math.prod(shape) * item_bytes) / 2
    shards = shard_shape(shape, chunks, item_bytes, 1.0, place, windows)
    counts = [-(-length // size) for length, size in zip(shape, chunks, strict=True)]
    if shards is None:
        assert math.prod(counts) == 1
    else:
        assert all(shard % size == 0 for shard, size in zip(shards, chunks, strict=True))
        assert all(shard <= n * size for shard, n, size in zip(shards, counts, chunks, strict=True))
        assert math.prod(shards) * item_bytes <= max(place.shard, nbytes)


@pytest.mark.parametrize("name", sorted(PLACES))
def test_single_window_is_read_with_few_requests(name):
    shape = (8760, 721, 1440)
    for word in ("time series", "maps"):
        (window,) = windows = parse(word, shape)
        chunks = choose_chunks(shape, 4, 1.0, PLACES[name], windows, has_shards=False).chunks
        wanted = math.prod(window.lengths) * 4
        read = Layout(shape, chunks, None, 4, 1.0).reading(window)
        assert read.requests <= 8
        assert read.nbytes <= max(1.5 * wanted, 1.1 * PLACES[name].least_object)


def test_two_windows_that_cross_touch_about_as_many_chunks():
    shape = (10_000, 10_000)
    windows = parse(["1,*", "*,1"], shape)
    chunks = choose_chunks(shape, 4, 1.0, PLACES["local"], windows, has_shards=False).chunks
    rows, columns = (Layout(shape, chunks, None, 4, 1.0).reading(window).requests for window in windows)
    assert rows / columns == pytest.approx(1, abs=0.3)


def test_weight_favours_what_is_read_more_often():
    shape = (10_000, 10_000)
    even, skewed = (
        choose_chunks(shape, 4, 1.0, PLACES["local"], parse({"1,*": weight, "*,1": 1}, shape), has_shards=False).chunks
        for weight in (1, 20)
    )
    assert skewed[1] / skewed[0] > even[1] / even[0]


def test_array_of_any_size_is_advised_on():
    shape = (2**62, 2**62)
    windows = parse(None, shape)
    chunks = choose_chunks(shape, 1, 1.0, PLACES["object"], windows, has_shards=True).chunks
    assert shard_shape(shape, chunks, 1, 1.0, PLACES["object"], windows) is not None
    assert choose_chunks((), 1, 1.0, PLACES["object"], parse("all", ()), has_shards=True).chunks == ()
    assert choose_chunks((0, 5), 1, 1.0, PLACES["object"], parse("all", (0, 5)), has_shards=True).chunks == (1, 5)


@pytest.mark.parametrize("ratio", [1e-3, 1, 1e3, 1e9])
@pytest.mark.parametrize("name", sorted(PLACES))
def test_chunks_fit_in_memory_however_well_they_are_compressed(ratio, name):
    shape = (1000, 2000, 3000)
    for word in ("points", "all", "time series", "maps"):
        chunks = choose_chunks(shape, 4, ratio, PLACES[name], parse(word, shape), has_shards=True).chunks
        assert math.prod(chunks) * 4 <= 64 * 2**20
        assert math.prod(chunks) * 4 / ratio <= PLACES[name].most_chunk
        shards = shard_shape(shape, chunks, 4, ratio, PLACES[name], parse(word, shape))
        assert math.prod(shards) * 4 <= 512 * 2**20


def test_element_larger_than_a_chunk_should_be_is_a_chunk():
    windows = parse(None, (10, 10))
    assert choose_chunks((10, 10), 10**8, 1.0, PLACES["local"], windows, has_shards=True).chunks == (1, 1)
