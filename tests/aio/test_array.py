import asyncio
import gc
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

import omnizarr
from omnizarr import aio, engine, indexing
from omnizarr.aio import transfer
from omnizarr.errors import ChunkError, ChunkNotFoundError, ReadOnlyError, SelectionError, ShapeError, StoreError
from omnizarr.stores import MemoryStore
from omnizarr.stores.pool import default_concurrency
from tests.aio.stores import KINDS, Counting, objects, run
from tests.engine.both import needs_native
from tests.traced import own_threads

VALUES = np.arange(35 * 22, dtype="i4").reshape(35, 22)
SETTLED = 0.15
"""Seconds after which a file that was written has a stamp."""
LAYOUTS = {
    "chunks": {"chunks": (4, 5)},
    "raw": {"chunks": (35, 3), "compressors": None},
    "shards": {"chunks": (2, 3), "shards": (8, 6)},
    "v2": {"chunks": (4, 5), "zarr_format": 2, "order": "F", "fill_value": 7},
    "rectilinear": {"chunks": [[5, 10, 20], [11, 11]]},
}
SELECTIONS = [
    ("plan", ...),
    ("plan", (slice(3, 30, 7), -1)),
    ("plan", (5, 6)),
    ("plan", (None, slice(20, 2, -3))),
    ("plan", ([34, 0, 7], [3, 3, 21])),
    ("plan", VALUES % 5 == 1),
    ("plan", slice(9, 9)),
    ("plan", ([1, 34, 2], None, [3, 21, 3])),
    ("plan", ([[1, 34], [2, 2]], slice(3, None, 2))),
    ("oindex", ([1, 30, 2, 2], slice(2, 20, 4))),
    ("oindex", (VALUES[:, 0] % 3 == 0, [21, 0])),
    ("vindex", ([[1, 2], [30, 4]], [[0, 21], [5, 5]])),
    ("vindex", VALUES > 600),
    ("blocks", (0, slice(0, 2))),
]


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    with KINDS[request.param](tmp_path) as store:
        yield store


def stored(store, layout="chunks", **options):
    return omnizarr.create_array(store, name="a", data=VALUES, **{**LAYOUTS[layout], **options})


def way(array, how):
    return array if how == "plan" else getattr(array, how)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_selection_reads_as_without_await(store, layout):
    array = stored(store, layout)

    async def read():
        found = await aio.open_array(store, path="a")
        return await asyncio.gather(*(way(found, how).getitem(selection) for how, selection in SELECTIONS))

    for (how, selection), result in zip(SELECTIONS, run(read()), strict=True):
        expected = way(array, how)[selection]
        np.testing.assert_array_equal(result, expected, strict=True)
        assert type(result) is type(expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_selection_writes_as_without_await(store, layout):
    stored(store, layout)
    reference = stored({}, layout)

    async def write():
        found = await aio.open_array(store, path="a", mode="r+")
        for number, (how, selection) in enumerate(SELECTIONS):
            shape = np.shape(way(reference, how)[selection])
            values = -np.arange(np.prod(shape, dtype=int)).reshape(shape) - number * 1000
            await way(found, how).setitem(selection, values)
            way(reference, how)[selection] = values

    run(write())
    np.testing.assert_array_equal(omnizarr.open_array(store, path="a")[...], reference[...])


def test_chunks_of_only_the_fill_value_are_removed(store):
    array = stored(store)

    async def write():
        await aio.AsyncArray(array).setitem((slice(0, 8), slice(0, 10)), 0)
        await aio.AsyncArray(array).setitem((slice(8, 12), slice(0, 4)), 0)

    run(write())
    expected = VALUES.copy()
    expected[:8, :10] = expected[8:12, :4] = 0
    np.testing.assert_array_equal(array[...], expected)
    assert array.nchunks_initialized == array.nchunks - 4


def test_disjoint_writers_of_one_chunk_lose_nothing(store):
    array = aio.AsyncArray(omnizarr.create_array(store, shape=(24,), dtype="i4", chunks=(24,)))

    async def write():
        await asyncio.gather(*(array.setitem(slice(2 * n, 2 * n + 2), n + 1) for n in range(12)))

    run(write())
    np.testing.assert_array_equal(array.array[...], np.arange(24) // 2 + 1)


def test_named_ways_of_selecting_agree_with_numpy(store):
    array = aio.AsyncArray(stored(store))

    async def check():
        yield_ = [
            (await array.get_basic_selection((3, slice(2, 9))), VALUES[3, 2:9]),
            (await array.get_orthogonal_selection(([1, 4], [0, 9])), VALUES[np.ix_([1, 4], [0, 9])]),
            (await array.get_coordinate_selection(([1, 4], [0, 9])), VALUES[[1, 4], [0, 9]]),
            (await array.get_mask_selection(VALUES < 9), VALUES[VALUES < 9]),
            (await array.get_block_selection((1, 0)), VALUES[4:8, :5]),
        ]
        await array.set_basic_selection((3, slice(2, 9)), 1)
        await array.set_orthogonal_selection(([1, 4], [0, 9]), 2)
        await array.set_coordinate_selection(([5, 6], [0, 9]), [3, 4])
        await array.set_mask_selection(VALUES > 700, 5)
        await array.set_block_selection((2, 1), 6)
        return yield_

    for found, wanted in run(check()):
        np.testing.assert_array_equal(found, wanted)
    expected = VALUES.copy()
    expected[3, 2:9] = 1
    expected[np.ix_([1, 4], [0, 9])] = 2
    expected[[5, 6], [0, 9]] = [3, 4]
    expected[VALUES > 700] = 5
    expected[8:12, 5:10] = 6
    np.testing.assert_array_equal(array.array[...], expected)


def test_fields_are_read_and_written(store):
    values = np.array([(1, 2.5), (3, 4.5), (5, 6.5)], [("x", "i4"), ("y", "f8")])
    array = aio.AsyncArray(omnizarr.create_array(store, data=values, chunks=(2,)))

    async def check():
        await array.setitem(("x", slice(1, 3)), [30, 50])
        return await array.getitem("y"), await array.getitem("x"), await array.get_basic_selection(fields=["x"])

    y, x, both = run(check())
    assert (y.tolist(), x.tolist(), both.dtype.names) == ([2.5, 4.5, 6.5], [1, 30, 50], ("x",))


@pytest.mark.parametrize("values", [["a", "", "ccc"], np.array([b"x", b"", b"zz"], object)], ids=["texts", "bytes"])
def test_elements_of_variable_size_are_read_and_written(store, values):
    array = aio.AsyncArray(omnizarr.create_array(store, data=np.array(values, None), chunks=(2,)))

    async def check():
        await array.setitem(0, values[2])
        return await array.getitem(...)

    assert run(check()).tolist() == [values[2], *list(values)[1:]]


def test_memory_that_is_given_is_filled(store):
    array = aio.AsyncArray(stored(store))
    out = np.zeros((35, 4), "i4")
    assert run(array.get_basic_selection((..., slice(0, 4)), out=out)) is out
    np.testing.assert_array_equal(out, VALUES[:, :4])
    with pytest.raises(ShapeError):
        run(array.get_basic_selection((..., slice(0, 5)), out=out))


def test_large_chunks_are_decoded_and_encoded(store):
    values = np.random.default_rng(0).integers(0, 50, (300, 1000)).astype("i8")
    array = aio.AsyncArray(omnizarr.create_array(store, shape=values.shape, dtype="i8", chunks=(150, 1000)))

    async def check():
        await array.setitem(..., values)
        await array.setitem((slice(100, 200), slice(0, 900)), -values[:100, :900])
        return await array.getitem(...)

    expected = values.copy()
    expected[100:200, :900] = -values[:100, :900]
    np.testing.assert_array_equal(run(check()), expected)


# -- what arrays are ------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_array_says_about_itself_what_the_other_one_says(layout):
    array = stored({}, layout, attributes={"a": [1, {"b": 2}]})
    found = aio.AsyncArray(array)
    for name in (
        *["metadata", "config", "shape", "ndim", "size", "dtype", "nbytes", "fill_value", "order", "dimension_names"],
        *[
            "chunks",
            "shards",
            "read_chunk_sizes",
            "write_chunk_sizes",
            "cdata_shape",
            "nchunks",
            "filters",
            "serializer",
            "compressors",
            "compressor",
        ],
        *["attrs", "info", "store_path", "store", "path", "name", "basename", "read_only", "zarr_format"],
    ):
        assert getattr(found, name) == getattr(array, name), name
    assert found.array is array
    assert repr(found) == repr(array).replace("<Array", "<AsyncArray")
    assert found == aio.AsyncArray(array)
    assert found != array


def test_stored_chunks_and_bytes_are_counted(store):
    array = stored(store)
    array[:4, :20] = 0
    found = aio.AsyncArray(array)
    assert run(found.nchunks_initialized()) == array.nchunks_initialized == 41
    assert run(found.nbytes_stored()) == array.nbytes_stored()
    assert run(found.info_complete()) == array.info_complete()


def test_resize_append_and_attributes_are_stored(store):
    stored(store)

    async def change():
        found = await aio.open_array(store, path="a")
        shape = await found.append(VALUES[:2])
        await found.resize(40, 10)
        assert (await found.update_attributes({"unit": "K"})) is found
        return shape, found

    shape, found = run(change())
    assert (shape, shape.region) == ((37, 22), (slice(35, 37), slice(0, 22)))
    again = omnizarr.open_array(store, path="a")
    assert again.shape == found.shape == (40, 10)
    assert again.attrs == found.attrs == {"unit": "K"}
    np.testing.assert_array_equal(again[35:37], VALUES[:2, :10])


def test_many_appends_at_once_lose_nothing(store):
    array = aio.AsyncArray(omnizarr.create_array(store, shape=(0,), dtype="i4", chunks=(5,)))

    async def append():
        others = [await aio.open_array(store) for _ in range(4)]
        return await asyncio.gather(*(others[n % 4].append([n, n, n]) for n in range(12)))

    shapes = run(append())
    run(array.refresh())
    assert array.shape == (36,)
    for n, shape in enumerate(shapes):
        np.testing.assert_array_equal(array.array[shape.region], [n, n, n])


def test_refresh_sees_what_others_did(store):
    stored(store)
    array = run(aio.open_array(store, path="a"))
    omnizarr.open_array(store, path="a").resize(3, 4)
    run(array.refresh())
    assert array.shape == (3, 4)
    np.testing.assert_array_equal(run(array.getitem(...)), VALUES[:3, :4])


def test_behaviour_is_changed():
    array = aio.AsyncArray(omnizarr.create_array({}, shape=(4,), dtype="i4")).with_config({"missing": "error"})
    with pytest.raises(ChunkNotFoundError):
        run(array.getitem(0))


# -- errors ----------------------------------------------------------------------------


def outcome(error):
    return type(error), str(error)


@pytest.mark.parametrize("selection", [99, ("x",), ([1], [2], [3]), slice("a"), 1.5], ids=range(5))
def test_selection_that_is_not_valid_is_refused_as_without_await(store, selection):
    array = stored(store)
    with pytest.raises(SelectionError) as expected:
        array[selection]
    with pytest.raises(SelectionError) as found:
        run(aio.AsyncArray(array).getitem(selection))
    assert outcome(found.value) == outcome(expected.value)


@pytest.mark.parametrize("layout", ["chunks", "raw", "shards"])
@pytest.mark.parametrize("selection", [..., (slice(0, 3), slice(0, 4))], ids=["all", "part"])
def test_broken_chunk_is_reported_as_without_await(store, layout, selection):
    array = stored(store, layout)
    store.set("a/c/0/0", b"broken" * 7)
    with pytest.raises(ChunkError) as expected:
        array.with_config({"concurrency": 1})[selection]
    with pytest.raises(ChunkError) as found:
        run(aio.AsyncArray(array.with_config({"concurrency": 1})).getitem(selection))
    assert outcome(found.value) == outcome(expected.value)


def test_missing_chunk_is_reported_as_without_await(store):
    array = stored(store, missing="error")
    store.delete("a/c/1/1")
    with pytest.raises(ChunkNotFoundError) as expected:
        array[4, 5]
    with pytest.raises(ChunkNotFoundError) as found:
        run(aio.AsyncArray(array).getitem((4, 5)))
    assert outcome(found.value) == outcome(expected.value)


def test_value_that_does_not_fit_is_refused_before_anything_is_written(store):
    array = aio.AsyncArray(stored(store))
    with pytest.raises(ShapeError):
        run(array.setitem(slice(0, 2), np.zeros(3)))
    np.testing.assert_array_equal(array.array[...], VALUES)


def test_read_only_array_is_not_written(store):
    stored(store)
    array = run(aio.open_array(store.with_read_only(), path="a", mode="r"))
    for change in (array.setitem(0, 1), array.oindex.setitem(0, 1), array.resize(1, 1), array.append(VALUES)):
        with pytest.raises(ReadOnlyError):
            run(change)


# -- side by side ----------------------------------------------------------------------


def test_as_many_requests_are_under_way_as_the_store_wants(monkeypatch):
    array = aio.AsyncArray(stored(objects(concurrency=12)))
    counting = Counting(monkeypatch, delay=0.002)

    async def read():
        await asyncio.gather(array.getitem(...), array.getitem(...), aio.AsyncArray(array.array).getitem(...))

    run(read())
    assert counting.most == 12
    assert counting.asked == {"get_range": 3 * 45}


def test_reading_needs_no_thread_for_a_request(monkeypatch):
    values = np.arange(1_000_000, dtype="i4")
    store = objects(concurrency=256)
    array = aio.AsyncArray(omnizarr.create_array(store, data=values, chunks=(1000,)))
    counting = Counting(monkeypatch, delay=0.01)
    most = [0]

    async def read():
        reading = asyncio.ensure_future(array.getitem(...))
        while not reading.done():
            most[0] = max(most[0], len(own_threads() - before))
            await asyncio.sleep(0.001)
        return await reading

    before = own_threads()
    np.testing.assert_array_equal(run(read()), values)
    assert counting.asked == {"get_range": 1000}
    assert counting.most == 256
    assert most[0] <= default_concurrency()


def test_decoding_large_chunks_lets_the_loop_go_on():
    values = np.random.default_rng(0).integers(0, 9, (8, 1_000_000)).astype("i4")
    array = aio.AsyncArray(
        omnizarr.create_array(
            objects(), data=values, chunks=(1, 1_000_000), compressors=omnizarr.codecs.GzipCodec(level=1)
        )
    )
    names = set()

    async def read():
        reading = asyncio.ensure_future(array.getitem(...))
        pauses = 0
        while not reading.done():
            await asyncio.sleep(0)
            pauses += 1
            names.update(thread.name for thread in threading.enumerate() if thread.name.startswith("omnizarr-compute"))
        return await reading, pauses

    found, pauses = run(read())
    np.testing.assert_array_equal(found, values)
    assert pauses > 20
    assert 1 <= len(names) <= default_concurrency()


def test_shard_is_read_in_two_requests(monkeypatch):
    values = np.arange(200_000, dtype="i4")
    array = aio.AsyncArray(omnizarr.create_array(objects(), data=values, chunks=(1000,), shards=(200_000,)))
    run(array.getitem(0))
    counting = Counting(monkeypatch)
    np.testing.assert_array_equal(run(array.getitem(slice(70_000, 70_010))), values[70_000:70_010])
    assert counting.asked == {"get": 2}


def test_shard_that_is_replaced_while_it_is_read_is_read_again(monkeypatch):
    values = np.arange(200_000, dtype="i4")
    sync = omnizarr.create_array(objects(), data=values, chunks=(1000,), shards=(200_000,), compressors=None)
    array = aio.AsyncArray(sync)
    later = values + 1
    later[:1000] = 0  # so that all other inner chunks are elsewhere
    counting = Counting(monkeypatch)
    fetch = counting.__getattr__

    class Changing(Counting):
        def __getattr__(self, name):
            ask = fetch(name)

            async def after(*args, **kwargs):
                answer = await ask(*args, **kwargs)
                if counting.total == 1:
                    sync[...] = later
                return answer

            return after

    Changing(monkeypatch)
    np.testing.assert_array_equal(run(array.getitem(slice(70_000, 70_010))), later[70_000:70_010])


def test_failing_request_stops_the_others_and_is_reported(monkeypatch):
    array = aio.AsyncArray(stored(objects(concurrency=4)))
    counting = Counting(monkeypatch, delay=0.001)
    counting.failures["some/where/a/c/1/1"] = PermissionError("injected")
    with pytest.raises(StoreError) as caught:
        run(array.getitem(...))
    assert caught.value.key == "a/c/1/1"
    assert counting.total < 20
    assert counting.in_flight == 0


def test_timeout_ends_reading_and_leaves_no_task_behind(monkeypatch):
    array = aio.AsyncArray(stored(objects(concurrency=8)))
    counting = Counting(monkeypatch, delay=3600)

    async def read():
        async with asyncio.timeout(0.02):
            await array.getitem(...)

    with pytest.raises(TimeoutError):
        run(read())
    assert counting.in_flight == 0


def test_cancelled_writing_leaves_every_chunk_as_before_or_as_after(store):
    array = aio.AsyncArray(stored(store))

    async def write(after):
        writing = asyncio.ensure_future(array.setitem(..., -VALUES))
        await asyncio.sleep(after)
        writing.cancel()
        with suppress(asyncio.CancelledError):  # it may have been faster
            await writing

    for after in (0, 0.0005, 0.002):
        run(write(after))
        found = array.array[...]
        for row in range(0, 35, 4):
            for column in range(0, 22, 5):
                block = np.s_[row : row + 4, column : column + 5]
                assert (found[block] == VALUES[block]).all() or (found[block] == -VALUES[block]).all()
        array.array[...] = VALUES


def test_one_array_serves_several_loops(store):
    array = aio.AsyncArray(stored(store))
    for _ in range(3):
        np.testing.assert_array_equal(run(array.getitem(...)), VALUES)
    found = []
    threads = [threading.Thread(target=lambda: found.append(run(array.getitem(...)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for each in found:
        np.testing.assert_array_equal(each, VALUES)


def test_reading_leaves_nothing_to_collect(monkeypatch):
    array = aio.AsyncArray(stored(objects()))
    others = {id(each) for each in gc.get_objects() if isinstance(each, asyncio.Task)}  # of libraries in this process
    run(array.getitem(...))
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, asyncio.Task) and id(each) not in others]


# -- many --------------------------------------------------------------------------------


def test_many_selections_of_several_stores_are_read_together(tmp_path, monkeypatch):
    arrays = [stored(make(tmp_path)) for make in KINDS.values()]
    requests = [
        (array if number % 2 else aio.AsyncArray(array), selection)
        for number, array in enumerate(arrays)
        for how, selection in SELECTIONS
        if how == "plan"
    ]
    target = np.zeros((35, 22), "i4")
    found = run(aio.read_many(requests, out=[target, *[None] * (len(requests) - 1)]))
    assert found[0] is target
    for (_, selection), result in zip(requests, found, strict=True):
        np.testing.assert_array_equal(result, VALUES[selection])


def test_many_arrays_share_the_requests_that_a_store_wants(monkeypatch):
    store = objects(concurrency=10)
    arrays = [omnizarr.create_array(store, name=f"a{n}", data=np.arange(n, n + 6), chunks=(2,)) for n in range(50)]
    counting = Counting(monkeypatch, delay=0.001)
    found = run(aio.read_many([(array, ...) for array in arrays]))
    assert [result.tolist() for result in found] == [list(range(n, n + 6)) for n in range(50)]
    assert counting.most == 10
    assert counting.total == 150
    with pytest.raises(SelectionError):
        run(aio.read_many([(arrays[0], ...), (arrays[1], 77)]))
    assert counting.total == 150


def test_memory_is_at_hand_without_a_thread():
    array = aio.AsyncArray(stored(MemoryStore()))
    before = own_threads()
    run(array.getitem(...))
    assert own_threads() <= before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_windows_of_a_directory_that_are_read_at_once_agree_with_numpy(tmp_path, layout):
    array = aio.AsyncArray(stored(tmp_path, layout))
    time.sleep(SETTLED)  # from then on chunks can be shared
    corners = [(row, column) for row in range(0, 30, 2) for column in range(0, 18, 3)]

    async def read():
        wanted = [array.getitem((slice(row, row + 7), slice(column, column + 9))) for row, column in corners]
        return await asyncio.gather(*wanted)

    for (row, column), window in zip(corners, run(read()), strict=True):
        np.testing.assert_array_equal(window, VALUES[row : row + 7, column : column + 9])


@needs_native
def test_windows_that_are_read_at_once_share_decoded_chunks(tmp_path, monkeypatch):
    caches = []

    def shared_chunks(binding):
        caches.append(engine.native.shared_chunks(binding))
        return caches[-1]

    monkeypatch.setattr(transfer.engine, "shared_chunks", shared_chunks)
    array = aio.AsyncArray(stored(tmp_path, config={"engine": "native"}))
    time.sleep(SETTLED)

    async def alone():
        await array.getitem(...)
        await array.getitem(...)

    async def together():
        await asyncio.gather(*(array.getitem((slice(1, 6), slice(1, 6))) for _ in range(10)))

    run(alone())
    assert not caches
    run(together())
    assert [cache.nbytes for cache in caches] == [4 * 4 * 5 * 4]  # four chunks of 4 x 5 numbers
    run(together())
    assert len(caches) == 2  # nothing is kept when nothing is read


@needs_native
def test_reading_that_is_stopped_leaves_the_rest_alone(tmp_path):
    array = stored(tmp_path, config={"engine": "native"})
    binding = array._bind().binding
    limits = engine.Limits()
    limits.stop()
    out = np.full(VALUES.shape, -1, "i4")
    engine.read_within(limits, binding, indexing.plan(..., binding.grid), out)
    assert np.all(out == -1)


def test_cancelled_reading_leaves_memory_alone(tmp_path):
    array = aio.AsyncArray(stored(tmp_path))
    out = np.zeros(VALUES.shape, "i4")

    async def main():
        tasks = [asyncio.ensure_future(array.get_basic_selection(..., out=out)) for _ in range(40)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        out[...] = 0
        await array.getitem(...)
        return out.any()

    assert not run(main())


def test_show_is_that_of_the_array():
    async def main():
        root = await aio.create_group({})
        array = await root.create_array("waves", data=np.arange(12.0).reshape(3, 4))
        return await array.show((slice(2),), size=(10, 10)), await root.show(1)

    of_array, of_group = asyncio.run(main())
    assert of_array.page.title == "/waves[:2, :] float64"
    np.testing.assert_array_equal(of_array.page.content.legend.numbers.values, np.arange(8.0).reshape(2, 4))
    assert of_group.page.title == "/waves[1, :] float64"
