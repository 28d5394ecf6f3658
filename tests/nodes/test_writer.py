"""`omnizarr.nodes.writer`: small writes are gathered, and nothing that anybody wrote is lost."""

import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore as ObstoreMemory

import omnizarr
from omnizarr import errors
from omnizarr.nodes import unsaved
from omnizarr.stores import LocalStore, MemoryStore, ObjectStore, SQLiteStore, ZipStore
from tests.engine.both import ENGINES, needs_native
from tests.fakes import FaultyStore, WatchedStore
from tests.repeats import runs

LAYOUTS = {
    "v0": {"zarr_format": 0},
    "v1": {"zarr_format": 1},
    "v2": {"zarr_format": 2},
    "v2, F": {"zarr_format": 2, "order": "F"},
    "draft of 2019": {"zarr_format": "3-draft2019"},
    "draft of 2020": {"zarr_format": "3-draft2020"},
    "v3": {"zarr_format": 3},
    "v3, with empty chunks": {"zarr_format": 3, "write_empty_chunks": True},
    "shards": {"zarr_format": 3, "shards": (8, 6)},
    "shards, uncompressed": {"zarr_format": 3, "shards": (8, 6), "compressors": None},
}
FILL = -1
SHAPE, CHUNKS = (11, 7), (4, 3)


@pytest.fixture(params=[pytest.param(name, marks=needs_native) if name == "native" else name for name in ENGINES])
def engine(request):
    with omnizarr.config.set({"engine": request.param}):
        yield request.param


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return {"fill_value": FILL, **LAYOUTS[request.param]}


def stores(tmp_path):
    return {
        "memory": MemoryStore,
        "local": lambda: LocalStore(tmp_path / "a.zarr"),
        "sqlite": lambda: SQLiteStore(tmp_path / "a.sqlite"),
        "zip": lambda: ZipStore(tmp_path / "a.zip", mode="w"),
        "condition": lambda: ObjectStore(ObstoreMemory()),
    }


@pytest.fixture(params=["memory", "local", "sqlite", "zip", "condition"])
def store(request, tmp_path):
    with stores(tmp_path)[request.param]() as store:
        yield store


def make(store, shape=SHAPE, chunks=CHUNKS, **layout):
    return omnizarr.create_array(store, shape=shape, chunks=chunks, dtype="i4", **{"fill_value": FILL, **layout})


def counted(store, key="c/"):
    """Return a store, and a list of the keys of chunks that are stored in it."""
    keys = []
    watched = WatchedStore(store, lambda verb, name: keys.append(name) if verb == "set" and key in name else None)
    return watched, keys


# -- whole chunks, once --------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 3, 10])
@pytest.mark.parametrize("layout", ["v2", "v3", "shards"])
def test_rows_in_any_step_store_each_chunk_once(layout, step, engine):
    store, keys = counted(MemoryStore(), "")
    array = make(store, (0, 7), **LAYOUTS[layout])
    data = np.arange(40 * 7, dtype="i4").reshape(40, 7)
    keys.clear()
    with array.writer() as writer:
        for at in range(0, 40, step):
            writer.append(data[at : at + step])
    chunks = [key for key in keys if not key.endswith((".zarray", "zarr.json", ".zattrs"))]
    assert len(chunks) == len(set(chunks)) == np.prod(array._grid.grid_shape)
    np.testing.assert_array_equal(array[:], data)
    assert writer.stats.nbytes_written == writer.stats.nbytes_stored == data.nbytes
    assert (writer.stats.chunks_stored, writer.stats.chunks_early) == (len(chunks), 0)


def test_elements_one_by_one_store_each_chunk_once(layout, engine):
    store, keys = counted(MemoryStore(), "")
    array = make(store, **layout)
    data = np.arange(77, dtype="i4").reshape(SHAPE)
    keys.clear()
    with array.writer() as writer:
        for place in np.random.default_rng(3).permutation(77):
            writer[divmod(int(place), 7)] = place
        assert not keys
    assert len(keys) == len(set(keys)) == np.prod(array._grid.grid_shape)
    np.testing.assert_array_equal(array[:], data)


def test_a_whole_chunk_is_stored_at_once_and_replaces_what_waits():
    store, keys = counted(MemoryStore())
    array = make(store)
    with array.writer() as writer:
        writer[0, 0] = 5
        writer[0:4, 0:3] = 7
        assert keys == ["c/0/0"]
        assert writer.nbytes_waiting == 0
    assert keys == ["c/0/0"]
    assert (array[0:4, 0:3] == 7).all()


def test_complete_chunks_are_stored_first_when_the_memory_is_full():
    array = make(MemoryStore(), (40, 3), (4, 3))
    with array.writer(memory=5000) as writer:  # room for four chunks, with what each costs
        writer[0] = 1  # never complete
        for row in range(4, 40):
            writer[row] = row
        assert (array[0] == FILL).all()
        assert (array[4:16] == np.arange(4, 16)[:, None]).all()
        assert writer.nbytes_waiting <= 5000
    assert writer.stats.chunks_early == 0
    assert writer.stats.chunks_stored == 10


def test_chunks_that_are_stored_early_are_counted_and_lose_nothing():
    array = make(MemoryStore(), (40, 3), (4, 3))
    data = np.arange(120, dtype="i4").reshape(40, 3)
    with array.writer(memory=5000) as writer:
        for column in range(3):
            for row in range(40):
                writer[row, column] = data[row, column]
                assert writer.nbytes_waiting <= 5000 + 1200
    assert writer.stats.chunks_early > 10
    np.testing.assert_array_equal(array[:], data)


def test_memory_for_less_than_a_chunk_is_refused():
    array = make(MemoryStore())
    with pytest.raises(ValueError, match="at least 48 bytes, the size of one chunk"):
        array.writer(memory=47)
    with pytest.raises(ValueError, match="memory='lots'"):
        array.writer(memory="lots")
    array.writer(memory="1KB").close()


def test_a_chunk_that_no_memory_holds_is_the_error_of_the_array():
    array = omnizarr.create_array({}, shape=(2**58,), chunks=(2**58,), dtype="i8")
    with array.writer() as writer, pytest.raises(errors.ChunkMemoryError, match="too large for the available memory"):
        writer[3] = 1
    with array.writer() as writer, pytest.raises(errors.SelectionMemoryError):
        writer[:]
    assert not unsaved.waiting()


def test_text_counts_what_it_refers_to():
    array = omnizarr.create_array({}, shape=(100,), chunks=(10,), dtype="string")
    with array.writer(memory=20_000) as writer:
        for number in range(100):
            writer[number] = "x" * 3000
            assert writer.nbytes_waiting < 25_000
    assert array[57] == "x" * 3000


# -- the same as NumPy ---------------------------------------------------------------


def boxes(shape):
    def part(length):
        return st.tuples(st.integers(0, length - 1), st.integers(1, length), st.integers(1, 3)).map(
            lambda t: slice(t[0], min(length, t[0] + t[1]), t[2])
        )

    return st.tuples(*map(part, shape))


def steps(shape):
    return st.lists(
        st.tuples(
            st.sampled_from(["box", "points", "mask", "rows", "plain", "read", "flush", "append"]),
            boxes(shape),
            st.integers(0, 2**32 - 1),
        ),
        max_size=14,
    )


@pytest.mark.parametrize("memory", [1100, None])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_writes_reads_and_flushes_beside_another_writer_are_those_of_numpy(layout, memory, engine):
    @settings(max_examples=runs(8))
    @given(steps(SHAPE))
    def check(several):
        store = MemoryStore()
        array = make(store, **LAYOUTS[layout])
        other = omnizarr.open_array(store, mode="r+")
        model = np.full(SHAPE, FILL, "i4")
        waits = np.zeros(SHAPE, bool)  # or is stored: written since the last flush
        number = 0
        with array.writer(memory=memory) as writer:
            for what, box, seed in several:
                number += 1000
                rng = np.random.default_rng(seed)
                if what == "box":
                    part = number + np.arange(model[box].size).reshape(model[box].shape)
                    writer[box], model[box], waits[box] = part, part, True
                elif what == "points":
                    rows, columns = rng.integers(0, len(model), 5), rng.integers(0, 7, 5)
                    writer.vindex[rows, columns], model[rows, columns], waits[rows, columns] = number, number, True
                elif what == "mask":
                    mask = rng.random(model.shape) < 0.3
                    writer[mask], model[mask], waits[mask] = number, number, True
                elif what == "rows":
                    rows = rng.permutation(len(model))[:3]
                    writer.oindex[rows], model[rows], waits[rows] = number, number, True
                elif what == "plain":
                    other.refresh()
                    known = model[: len(other)]
                    mask = (rng.random(known.shape) < 0.5) & ~waits[: len(other)]
                    other.vindex[mask], known[mask] = -number, -number
                elif what == "read":
                    np.testing.assert_array_equal(writer[box], model[box])
                    np.testing.assert_array_equal(writer[...], model)
                    rows = rng.integers(0, len(model), 4)
                    np.testing.assert_array_equal(writer.oindex[rows, 2:5], model[rows, 2:5])
                elif what == "append":
                    block = number + np.arange(7 * (seed % 4), dtype="i4").reshape(-1, 7)
                    found = writer.append(block)
                    model = np.concatenate([model, block])
                    waits = np.concatenate([waits, np.ones(block.shape, bool)])
                    assert found == model.shape == writer.shape
                    assert found.region[0] == slice(len(model) - len(block), len(model))
                else:
                    writer.flush()
                    waits[...] = False
                    assert writer.nbytes_waiting == 0
                    np.testing.assert_array_equal(omnizarr.open_array(store)[:], model)
                stored = omnizarr.open_array(store)[:]
                settled = ~waits[: len(stored)]
                np.testing.assert_array_equal(stored[settled], model[: len(stored)][settled])
        np.testing.assert_array_equal(omnizarr.open_array(store)[:], model)
        assert writer.shape == model.shape

    check()


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("string", ["a", "", "ccc", "dd"]),
        ("bool", [True, False, True, True]),
        ([("x", "i4"), ("y", "f8")], [(1, 2.0), (3, -0.0), (0, 0), (5, 6)]),
        ("datetime64[s]", [0, 1, "NaT", 3]),
        ("complex64", [1j, 2, np.nan, 0]),
        ("S3", [b"abc", b"", b"x", b"y"]),
    ],
)
def test_all_data_types_wait(dtype, values, engine):
    array = omnizarr.create_array({}, shape=(4,), chunks=(3,), dtype=dtype)
    data = np.array(values, array.dtype)
    with array.writer() as writer:
        for number in (3, 0, 2):
            writer[number] = data[number]
        np.testing.assert_array_equal(writer[[0, 2, 3]], data[[0, 2, 3]])
        writer.append(data)
        np.testing.assert_array_equal(writer[4:], data)
    np.testing.assert_array_equal(array[[0, 2, 3]], data[[0, 2, 3]])
    np.testing.assert_array_equal(array[4:], data)


def test_ragged_arrays_that_change_later_keep_their_values():
    group = omnizarr.create_group({}, zarr_format=2)
    array = group.create_array(
        "r", shape=(3,), chunks=(3,), dtype=object, filters=[{"id": "vlen-array", "dtype": "<i4"}]
    )
    row = np.arange(3, dtype="i4")
    with array.writer() as writer:
        writer[0] = row
        row[:] = 9
    np.testing.assert_array_equal(array[0], [0, 1, 2])


def test_fields_of_elements_that_wait():
    array = omnizarr.create_array({}, shape=(4,), chunks=(4,), dtype=[("x", "i4"), ("y", "i4")], fill_value=(0, 0))
    with array.writer() as writer:
        writer[1] = (1, 2)
        writer["x", 1:3] = 7
        assert writer["x"].tolist() == [0, 7, 7, 0]
        assert writer[["y"]][1].tolist() == (2,)
    assert array[:].tolist() == [(0, 0), (7, 2), (7, 0), (0, 0)]


def test_scalars_and_arrays_without_elements():
    array = omnizarr.create_array({}, shape=(), dtype="i4")
    with array.writer() as writer:
        writer[...] = 4
        assert writer[()] == 4
    assert array[()] == 4
    empty = omnizarr.create_array({}, shape=(0, 0), chunks=(2, 2), dtype="i4")
    with empty.writer() as writer:
        writer[...] = 1
        assert writer.append(np.empty((3, 0), "i4")) == (3, 0)
    assert empty.shape == (3, 0)


def test_missing_chunks_that_wait_are_not_missing():
    store = MemoryStore()
    make(store)
    array = omnizarr.open_array(store, mode="r+", missing="error")
    with array.writer() as writer:
        writer[0:4, 0:2] = 3
        np.testing.assert_array_equal(writer[0:4, 0:3], [[3, 3, FILL]] * 4)
        np.testing.assert_array_equal(writer[0:4, 0:2], [[3, 3]] * 4)
        with pytest.raises(errors.ChunkNotFoundError):
            writer[0:5, 0]


def test_errors_are_those_of_the_array_and_come_at_once():
    array = make(MemoryStore())
    with array.writer() as writer:
        for do in (
            lambda a: a.__setitem__((0, 99), 1),
            lambda a: a.__setitem__(0, [1, 2]),
            lambda a: a.__setitem__(0, "text"),
            lambda a: a.append([1, 2]),
            lambda a: a.append(np.zeros((1, 7)), axis=5),
            lambda a: a[99],
        ):
            with pytest.raises(errors.OmnizarrError) as ours:
                do(writer)
            with pytest.raises(errors.OmnizarrError) as theirs:
                do(array)
            assert str(ours.value) == str(theirs.value)
        assert writer.nbytes_waiting == 0


def test_a_read_only_array_has_no_writer():
    store = MemoryStore()
    make(store)
    with pytest.raises(errors.ReadOnlyError, match="the array is read-only"):
        omnizarr.open_array(store, mode="r").writer()


# -- appending -----------------------------------------------------------------------


def test_appended_elements_are_read_and_changed_while_they_wait(engine):
    array = make(MemoryStore(), (3, 7))
    model = np.full((3, 7), FILL, "i4")
    with array.writer() as writer:
        for number in range(6):
            writer.append(np.full((1, 7), number, "i4"))
            model = np.concatenate([model, np.full((1, 7), number, "i4")])
        writer[4:, 2], model[4:, 2] = 50, 50
        writer[-1], model[-1] = 60, 60
        assert (array.shape, writer.shape, len(writer)) == ((3, 7), (9, 7), 9)
        np.testing.assert_array_equal(writer[2:5, ::2], model[2:5, ::2])
        np.testing.assert_array_equal(writer.vindex[[0, 3, 8], [1, 2, 6]], model[[0, 3, 8], [1, 2, 6]])
        assert array.shape == (3, 7)
        writer[1:5], model[1:5] = 70, 70  # across the stored edge: what was appended is stored first
        assert array.shape == (9, 7)
        np.testing.assert_array_equal(writer[:], model)
    np.testing.assert_array_equal(array[:], model)


def test_appending_along_another_dimension_stores_what_waits():
    array = make(MemoryStore(), (3, 7))
    with array.writer() as writer:
        writer.append(np.ones((2, 7), "i4"))
        writer.append(np.full((5, 2), 2, "i4"), axis=1)
        writer.append(np.full((5, 1), 3, "i4"), axis=-1)
        assert array.shape == (5, 7)
    expected = np.full((5, 10), FILL)
    expected[3:, :7], expected[:, 7:9], expected[:, 9] = 1, 2, 3
    np.testing.assert_array_equal(array[:], expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rows_are_stored_where_chunks_end_when_there_are_many(axis, monkeypatch):
    monkeypatch.setattr("omnizarr.nodes.writer._TAIL", 3000)
    shape = [4, 4, 4]
    shape[axis] = 3
    array = omnizarr.create_array(MemoryStore(), shape=shape, chunks=(8, 8, 8), dtype="i4", compressors=None)
    array[:] = 0
    blocks = [np.full([1 if at == axis else 4 for at in range(3)], number, "i4") for number in range(100)]
    lengths = set()
    with array.writer() as writer:
        for block in blocks:
            writer.append(block, axis)
            lengths.add(array.shape[axis])
    assert lengths > {3}
    assert all(length % 8 == 0 for length in lengths - {3})
    np.testing.assert_array_equal(
        np.moveaxis(array[:], axis, 0)[3:], np.moveaxis(np.concatenate(blocks, axis), axis, 0)
    )


def test_large_blocks_are_stored_directly_up_to_where_chunks_end(monkeypatch):
    monkeypatch.setattr("omnizarr.nodes.writer._TAIL", 1000)
    store, keys = counted(MemoryStore())
    array = make(store, (0, 7), (4, 7))
    data = np.arange(700 * 7, dtype="i4").reshape(700, 7)
    with array.writer() as writer:
        for at in range(0, 700, 70):
            writer.append(data[at : at + 70])
            assert writer.nbytes_waiting < 1000
    assert len(keys) == len(set(keys)) == 175
    np.testing.assert_array_equal(array[:], data)


def test_what_does_not_fit_is_stored_early_and_counted():
    array = make(MemoryStore(), (0, 7), (1000, 7))
    data = np.arange(3000 * 7, dtype="i4").reshape(-1, 7)
    with array.writer(memory=10_000) as writer:
        for at in range(0, 3000, 50):
            writer.append(data[at : at + 50])
            assert writer.nbytes_waiting <= 10_000
    assert writer.stats.chunks_early > 0
    np.testing.assert_array_equal(array[:], data)


def test_blocks_of_several_writers_are_all_stored_one_after_another(store):
    make(store, (0, 7))
    one, two = (omnizarr.open_array(store, mode="r+") for _ in range(2))
    with one.writer() as first, two.writer() as second:
        for number in range(10):
            first.append(np.full((1, 7), number, "i4"))
            second.append(np.full((1, 7), 100 + number, "i4"))
            if number == 4:
                second.flush()
        two.append(np.full((1, 7), 1000, "i4"))
    found = omnizarr.open_array(store)[:, 0].tolist()
    assert sorted(found) == sorted([*range(10), *range(100, 110), 1000])
    assert [each for each in found if each < 100] == list(range(10))
    assert [each for each in found if 100 <= each < 200] == list(range(100, 110))


def test_consolidated_metadata_say_the_new_shape():
    store = MemoryStore()
    group = omnizarr.create_group(store)
    array = group.create_array("a", shape=(0, 7), chunks=(4, 7), dtype="i4")
    omnizarr.consolidate_metadata(store)
    with array.writer() as writer:
        writer.append(np.ones((5, 7), "i4"))
    assert omnizarr.open_consolidated(store)["a"].shape == (5, 7)


# -- other writers, threads, failures ------------------------------------------------


def test_other_elements_of_the_same_chunks_keep_what_others_store_meanwhile(store, engine):
    array = make(store, **LAYOUTS["shards"])
    others = omnizarr.open_array(store, mode="r+")
    with array.writer() as writer:
        for row in range(0, 11, 2):
            writer[row, ::2] = row
        others[1::2] = 500
        others[::2, 1::2] = 600
    expected = np.empty(SHAPE, "i4")
    expected[1::2], expected[::2, 1::2], expected[::2, ::2] = 500, 600, np.arange(0, 11, 2)[:, None]
    np.testing.assert_array_equal(others[:], expected)


def test_threads_share_a_writer(engine):
    array = make(MemoryStore(), (64, 30), (16, 10), shards=(32, 10))
    data = np.arange(64 * 30, dtype="i4").reshape(64, 30)
    failures = []
    with array.writer(memory=20_000) as writer:

        def work(number):
            try:
                for row in range(number, 64, 8):
                    for at in range(0, 30, 3):
                        writer[row, at : at + 3] = data[row, at : at + 3]
                        np.testing.assert_array_equal(writer[row, at : at + 3], data[row, at : at + 3])
            except Exception as error:  # noqa: BLE001 - the test raises it
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert not failures
    np.testing.assert_array_equal(array[:], data)


def test_what_was_written_before_an_exception_is_stored():
    array = make(MemoryStore())
    with pytest.raises(KeyError), array.writer() as writer:  # noqa: PT012
        writer[0] = 4
        writer.append(np.full((1, 7), 5, "i4"))
        raise KeyError
    assert (array[0] == 4).all()
    assert (array[11] == 5).all()


def test_what_is_discarded_is_not_stored():
    array = make(MemoryStore())
    writer = array.writer()
    writer[0] = 4
    writer.append(np.full((1, 7), 5, "i4"))
    writer.discard()
    assert array.shape == SHAPE
    assert (array[:] == FILL).all()
    assert not unsaved.waiting()
    with pytest.raises(errors.StoreClosedError, match="the writer is closed"):
        writer[0] = 1
    writer.close()


def test_a_closed_writer_says_so_and_keeps_nothing():
    array = make(MemoryStore())
    with array.writer() as writer:
        writer[0] = 1
        assert unsaved.waiting() == [writer]
    assert not unsaved.waiting()
    assert "closed" in repr(writer)
    for do in (lambda: writer[0], writer.flush, lambda: writer.append(np.zeros((1, 7))), writer.__enter__):
        with pytest.raises(errors.StoreClosedError):
            do()


@pytest.mark.parametrize("verb", ["set", "get"])
def test_what_could_not_be_stored_waits_for_the_next_flush(verb):
    store = FaultyStore(MemoryStore())
    array = make(store)
    writer = array.writer()
    writer[::2] = 3
    writer.append(np.full((2, 7), 4, "i4"))
    model = np.full((13, 7), FILL, "i4")
    model[:11:2], model[11:] = 3, 4
    for nth in range(1, 6):
        store.fail(verb, nth)
        with pytest.raises(errors.StoreError, match="injected"):
            writer.flush()
        store.reset()
        np.testing.assert_array_equal(writer[:], model)
    writer.close()
    np.testing.assert_array_equal(array[:], model)


def test_a_block_that_was_stored_although_the_store_failed_is_not_stored_twice():
    class Late(MemoryStore):
        fails = False

        def set(self, key, value):
            super().set(key, value)
            if self.fails and key == "zarr.json":
                self.fails = False
                raise errors.StoreError("no answer", store=repr(self))

    store = Late()
    array = make(store, (0, 7))
    writer = array.writer()
    writer.append(np.arange(21, dtype="i4").reshape(3, 7))
    store.fails = True
    with pytest.raises(errors.StoreError, match="no answer"):
        writer.flush()
    writer.append(np.full((1, 7), 9, "i4"))
    writer.close()
    np.testing.assert_array_equal(array[:, 0], [0, 7, 14, 9])


def test_who_appends_in_vain_can_append_again(monkeypatch):
    monkeypatch.setattr("omnizarr.nodes.writer._TAIL", 1)
    store = FaultyStore(MemoryStore())
    array = make(store, (0, 7))
    with array.writer() as writer:
        for number in range(10):
            block = np.full((1, 7), number, "i4")
            if number == 7:
                store.fail("set", 1)
                with pytest.raises(errors.StoreError, match="injected"):
                    writer.append(block)
                store.reset()
            writer.append(block)
    assert array[:, 0].tolist() == list(range(10))


def test_an_array_that_became_shorter_does_not_get_what_was_cut_off():
    array = make(MemoryStore())
    with array.writer() as writer:
        writer[:, 1] = 3
        array.resize(5, 7)
        writer[0, 0] = 4
    assert array.shape == (5, 7)
    assert array[:, 1].tolist() == [3] * 5
    array.resize(11, 7)
    assert (array[5:] == FILL).all()


def test_an_array_that_became_longer_gets_everything(engine):
    array = make(MemoryStore())
    with array.writer() as writer:
        writer[10] = 3
        array.resize(20, 9)
        writer[10:, 6:] = 4
        np.testing.assert_array_equal(writer[10], [3] * 6 + [4] * 3)
    np.testing.assert_array_equal(array[10], [3] * 6 + [4] * 3)
    assert (array[11:, 6:] == 4).all()


def test_a_writer_stays_in_its_process():
    writer = make(MemoryStore()).writer()
    with pytest.raises(TypeError, match=r"send its array"):
        pickle.dumps(writer)
    writer.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_what_waits_is_stored_before_a_fork_and_not_again_by_the_child(tmp_path):
    array = make(tmp_path / "a.zarr")
    writer = array.writer()
    writer[0] = 1
    child = os.fork()
    if not child:  # no pytest in the child
        os._exit(int(writer.nbytes_waiting != 0 or bool(unsaved.waiting()) or array[0, 0] != 1))
    assert os.waitpid(child, 0)[1] == 0
    assert (array[0] == 1).all()
    writer[1] = 2
    writer.close()
    assert (array[1] == 2).all()


PROGRAM = """
import sys, numpy as np, omnizarr
array = omnizarr.open_array(sys.argv[1], mode="r+")
writer = array.writer()
writer[0] = 1
writer.append(np.full((1, 7), 2, "i4"))
"""


def test_what_waits_is_stored_at_the_end_of_the_program(tmp_path):
    array = make(tmp_path / "a.zarr")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "a.zarr"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    array.refresh()
    assert (array[0] == 1).all()
    assert (array[11] == 2).all()


def test_numpy_and_dask_take_a_writer():
    array = make(MemoryStore())
    da = pytest.importorskip("dask.array")
    data = np.arange(77, dtype="i4").reshape(SHAPE)
    with array.writer() as writer:
        da.store(da.from_array(data, chunks=(2, 5)), writer, lock=False, scheduler="threads")
        np.testing.assert_array_equal(np.asarray(writer), data)
        assert (writer.ndim, writer.dtype, writer.path, writer.store) == (2, np.dtype("i4"), "", array.store)
    np.testing.assert_array_equal(array[:], data)
