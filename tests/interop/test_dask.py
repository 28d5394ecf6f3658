"""Dask arrays of omnizarr arrays: names in graphs, reading, and writing that loses nothing."""

import contextlib
import pickle
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.interop.dask import from_zarr, to_zarr
from omnizarr.nodes import unsaved
from omnizarr.stores import LocalStore, MemoryStore, SQLiteStore, WrapperStore
from tests.fakes import WatchedStore

dask = pytest.importorskip("dask", reason="dask is what this is about")
da = pytest.importorskip("dask.array", reason="dask is what this is about")

VALUES = np.arange(40 * 60, dtype="i4").reshape(40, 60)


def stored(place, values=VALUES, **options):
    return omnizarr.create_array(place, data=values, **{"chunks": (10, 10), **options})


def ends(lengths):
    return set(np.cumsum(lengths).tolist())


class TestTokens:
    def test_array_opened_twice_has_one(self, tmp_path):
        stored(tmp_path)
        one, other = omnizarr.open(tmp_path), omnizarr.open(str(tmp_path) + "/", mode="r")
        assert dask.base.tokenize(one) == dask.base.tokenize(other)

    def test_it_is_the_same_by_another_way_to_the_place(self, tmp_path):
        stored(tmp_path / "a" / "b")
        ways = (
            omnizarr.open(tmp_path / "a" / "b"),
            omnizarr.open(tmp_path, path="a/b"),
            omnizarr.open(tmp_path / "a")["b"],
        )
        assert len({dask.base.tokenize(array) for array in ways}) == 1

    def test_it_is_the_same_in_another_process(self, tmp_path):
        array = stored(tmp_path)
        program = f"import dask, omnizarr; print(dask.base.tokenize(omnizarr.open({str(tmp_path)!r})))"
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == dask.base.tokenize(array)

    def test_it_is_deterministic(self, tmp_path):
        with dask.config.set({"tokenize.ensure-deterministic": True}):
            assert dask.base.tokenize(stored(tmp_path / "a"))
            assert dask.base.tokenize(omnizarr.create_group(tmp_path / "g"))

    def test_other_arrays_have_others(self, tmp_path):
        arrays = [stored(tmp_path / "a"), stored(tmp_path / "b"), stored({}), stored({})]
        arrays.append(omnizarr.open(tmp_path / "a", missing="error"))
        arrays.append(omnizarr.open(tmp_path / "a", order="F"))
        assert len({dask.base.tokenize(array) for array in arrays}) == len(arrays)

    def test_new_documents_give_another_one(self, tmp_path):
        array = stored(tmp_path)
        before = dask.base.tokenize(array)
        array.attrs["units"] = "K"
        changed = dask.base.tokenize(omnizarr.open(tmp_path))
        array.resize((41, 60))
        assert len({before, changed, dask.base.tokenize(array)}) == 3

    def test_groups_have_theirs(self, tmp_path):
        one, other = omnizarr.create_group(tmp_path / "a"), omnizarr.create_group(tmp_path / "b")
        assert dask.base.tokenize(one) == dask.base.tokenize(omnizarr.open(tmp_path / "a"))
        assert dask.base.tokenize(one) != dask.base.tokenize(other)


class TestPickles:
    @pytest.mark.parametrize("length", [100, 10_000])
    def test_size_does_not_grow_with_the_data(self, tmp_path, length):
        array = omnizarr.create_array(tmp_path, data=np.random.default_rng(0).normal(size=(length, 10)))
        array[...]
        assert len(pickle.dumps(array)) < 2000

    def test_group_pickles_without_its_members(self, tmp_path):
        group = omnizarr.create_group(tmp_path)
        for number in range(50):
            group.create_array(f"array{number}", data=VALUES)
        omnizarr.consolidate_metadata(tmp_path)
        group = omnizarr.open_group(tmp_path)
        assert len(list(group.arrays())) == 50
        assert len(pickle.dumps(group)) < 1000
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(group))["array7"][...], VALUES)


class TestReading:
    @pytest.mark.parametrize("scheduler", ["threads", "processes"])
    def test_values(self, tmp_path, scheduler):
        array = from_zarr(stored(tmp_path, shards=(20, 20)), chunks=(20, 20))
        context = {"multiprocessing.context": "fork"} if scheduler == "processes" and sys.platform == "linux" else {}
        with dask.config.set(context):
            np.testing.assert_array_equal(
                (array[::2, 5:50:3] + 1).compute(scheduler=scheduler), VALUES[::2, 5:50:3] + 1
            )

    def test_from_array_of_dask_takes_one(self, tmp_path):
        array = da.from_array(stored(tmp_path), chunks=(15, 15))
        np.testing.assert_array_equal(array[[3, 1, 3]].compute(), VALUES[[3, 1, 3]])

    @pytest.mark.parametrize("shards", [None, (20, 30)])
    @pytest.mark.parametrize("limit", ["1kB", "3kB", "1MB"])
    def test_chunks_are_whole_stored_ones(self, shards, limit):
        array = stored({}, shards=shards)
        with dask.config.set({"array.chunk-size": limit}):
            found = from_zarr(array)
        room = dask.utils.parse_bytes(limit)
        whole = array.write_chunk_sizes if shards is None or room >= 20 * 30 * 4 else array.read_chunk_sizes
        assert all(ends(ours) <= ends(theirs) for ours, theirs in zip(found.chunks, whole, strict=True))
        assert max(map(max, found.chunks)) > 0
        assert np.prod([max(lengths) for lengths in found.chunks]) * 4 <= room

    def test_chunks_of_different_lengths(self):
        array = omnizarr.create_array({}, data=VALUES, chunks=[[5, 35], [10, 20, 30]])
        with dask.config.set({"array.chunk-size": "1B"}):
            found = from_zarr(array)
        assert found.chunks == ((5, 35), (10, 20, 30))
        np.testing.assert_array_equal(found.compute(), VALUES)

    @pytest.mark.parametrize(
        "values",
        [
            np.array(["a", "bcd", "é"], np.dtypes.StringDType()),
            np.array([(1, 2.5), (3, 4.5)], [("a", "i2"), ("b", "f8")]),
            np.array(5.5),
            np.zeros((0, 3)),
            np.array(["2020-01-01", "NaT"], "M8[s]"),
        ],
        ids=["string", "struct", "no-dimensions", "empty", "datetime"],
    )
    def test_types_and_shapes(self, values):
        found = from_zarr(omnizarr.create_array({}, data=values))
        assert (found.dtype, found.shape) == (values.dtype, values.shape)
        np.testing.assert_array_equal(found.compute(scheduler="sync"), values)

    def test_place_is_opened(self, tmp_path):
        stored(tmp_path / "a")
        np.testing.assert_array_equal(from_zarr(tmp_path, path="a").compute(), VALUES)
        with pytest.raises(errors.ArrayNotFoundError):
            from_zarr(tmp_path / "b")


class TestWritingWhatIsRead:
    @pytest.mark.parametrize("compute", [True, False])
    def test_old_array_stays_if_it_would_be_read_later(self, tmp_path, compute):
        with SQLiteStore(tmp_path / "s.sqlite") as store:
            data = from_zarr(stored(store)) + 1
            scheduler = "processes" if compute else "threads"
            with dask.config.set(scheduler=scheduler), pytest.raises(ValueError, match="would be read"):
                to_zarr(data, store, overwrite=True, compute=compute)
            assert np.array_equal(omnizarr.open(store)[:], VALUES)

    def test_processes_replace_what_they_read_in_a_directory(self, tmp_path):
        with dask.config.set(scheduler="processes"):
            to_zarr(from_zarr(stored(tmp_path)) + 1, tmp_path, overwrite=True)
        assert np.array_equal(omnizarr.open(tmp_path)[:], VALUES + 1)

    @pytest.mark.parametrize("kind", ["memory", "local"])
    def test_array_is_read_before_its_values_are_replaced(self, tmp_path, kind):
        array = stored(MemoryStore() if kind == "memory" else tmp_path, attributes={"units": "m"}, zarr_format=2)
        to_zarr(da.from_array(array, chunks=(10, 10))[::-1, ::-1], array)
        assert np.array_equal(array[:], VALUES[::-1, ::-1])
        assert dict(omnizarr.open(array.store_path).attrs) == {"units": "m"}


class TestWriting:
    @pytest.mark.parametrize("shards", [None, (20, 30)])
    def test_threads_lose_nothing_where_chunks_do_not_align(self, tmp_path, shards):
        for number in range(3):
            target = omnizarr.create_array(
                tmp_path / str(number), shape=VALUES.shape, dtype="i4", chunks=(10, 10), shards=shards
            )
            da.store(da.from_array(VALUES, chunks=(7, 9)), target, lock=False, scheduler="threads", num_workers=8)
            np.testing.assert_array_equal(target[...], VALUES)

    @pytest.mark.skipif(sys.platform != "linux", reason="processes are forked, which takes little time")
    def test_processes_lose_nothing_where_chunks_do_not_align(self, tmp_path):
        target = omnizarr.create_array(tmp_path, shape=VALUES.shape, dtype="i4", chunks=(10, 10), shards=(20, 30))
        with dask.config.set({"multiprocessing.context": "fork"}):
            da.store(da.from_array(VALUES, chunks=(7, 9)), target, lock=False, scheduler="processes", num_workers=4)
        np.testing.assert_array_equal(target[...], VALUES)

    def test_new_array_has_the_chunks_of_dask(self, tmp_path):
        array = to_zarr(da.from_array(VALUES, chunks=(16, 60)), tmp_path, attributes={"units": "m"})
        assert (array.chunks, array.attrs["units"]) == ((16, 60), "m")
        np.testing.assert_array_equal(omnizarr.open(tmp_path)[...], VALUES)

    @pytest.mark.parametrize("options", [{}, {"chunks": (8, 8)}, {"chunks": (8, 8), "shards": (16, 16)}])
    def test_chunks_of_dask_that_differ(self, options):
        array = to_zarr(da.from_array(VALUES, chunks=((3, 30, 7), (60,))), {}, **options)
        assert array.chunks == options.get("chunks", array.chunks)
        np.testing.assert_array_equal(array[...], VALUES)

    def test_array_that_is_there(self):
        target = omnizarr.create_array({}, shape=VALUES.shape, dtype="f8", chunks=(13, 11))
        assert to_zarr(da.from_array(VALUES, chunks=(7, 9)), target) is target
        np.testing.assert_array_equal(target[...], VALUES)

    def test_nothing_is_stored_before_it_is_computed(self, tmp_path):
        waiting = to_zarr(da.from_array(VALUES, chunks=(16, 60)), tmp_path, compute=False)
        assert not omnizarr.open(tmp_path).nchunks_initialized
        waiting.compute()
        np.testing.assert_array_equal(omnizarr.open(tmp_path)[...], VALUES)

    def test_stored_chunks_are_written_by_one_where_nobody_keeps_writers_apart(self, tmp_path):
        written = []

        class Alone(WrapperStore):
            @property
            def features(self):
                return replace(self.store.features, exclusion="process")

            def set(self, key, value):
                written.append(key)
                super().set(key, value)

        target = omnizarr.create_array(Alone(LocalStore(tmp_path)), shape=VALUES.shape, dtype="i4", chunks=(10, 10))
        written.clear()
        to_zarr(da.from_array(VALUES + 1, chunks=(7, 9)), target)
        assert len(written) == len(set(written)) == 24
        np.testing.assert_array_equal(target[...], VALUES + 1)

    def test_memory_of_other_processes_is_refused(self):
        with dask.config.set(scheduler="processes"), pytest.raises(errors.SchedulerError, match="in the memory"):
            to_zarr(da.from_array(VALUES), MemoryStore())

    def test_other_shape_is_refused(self):
        with pytest.raises(errors.ShapeError):
            to_zarr(da.from_array(VALUES), omnizarr.create_array({}, shape=(60, 40), dtype="i4"))

    def test_unknown_shape_is_refused(self):
        array = da.from_array(VALUES, chunks=(10, 10))
        with pytest.raises(errors.ShapeError, match="compute_chunk_sizes"):
            to_zarr(array[array > 5], {})

    def test_options_of_an_array_that_is_there_are_refused(self):
        with pytest.raises(TypeError, match="chunks"):
            to_zarr(da.from_array(VALUES), stored({}), chunks=(1, 1))


def test_chunks_of_dask_that_end_within_shards_store_each_shard_once():
    keys = []
    store = WatchedStore(MemoryStore(), lambda verb, key: keys.append(key) if verb == "set" and "c/" in key else None)
    target = omnizarr.create_array(store, shape=(64, 40), chunks=(8, 10), shards=(32, 20), dtype="i4")
    data = np.arange(64 * 40, dtype="i4").reshape(64, 40)
    to_zarr(da.from_array(data, chunks=(5, 7)), target)
    assert len(keys) == len(set(keys)) == 4
    np.testing.assert_array_equal(target[:], data)


def test_what_was_gathered_is_dropped_if_the_computation_fails():
    target = omnizarr.create_array({}, shape=(64,), chunks=(32,), dtype="i4")

    def fail(block, block_info=None):
        if block_info[0]["chunk-location"] == (12,):
            raise KeyError("no such block")
        return block + 1

    others = unsaved.waiting()
    with pytest.raises(KeyError):
        to_zarr(da.zeros(64, chunks=5, dtype="i4").map_blocks(fail, dtype="i4"), target)
    assert [each for each in unsaved.waiting() if each not in others] == []
    target[...] = 7
    assert (target[:] == 7).all()


class TestRechunk:
    """`to_zarr(from_zarr(source).rechunk(...), ...)` in blocks that the plan of `omnizarr.rechunk` chooses."""

    METHODS = ("tasks", "p2p")

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("chunks", [(40, 2), (1, 60), (7, 11), (40, 60)])
    def test_values_and_chunks_are_those_asked_for(self, tmp_path, chunks, method):
        source = stored(tmp_path / "a", shards=(20, 20))
        with contextlib.ExitStack() as opened:
            opened.enter_context(dask.config.set({"array.chunk-size": "1kiB"}))
            if method == "p2p":
                distributed = pytest.importorskip("distributed", reason="p2p is a method of distributed")
                cluster = distributed.LocalCluster(
                    1, processes=False, threads_per_worker=2, dashboard_address=":0", silence_logs=50
                )
                opened.enter_context(cluster)
                opened.enter_context(distributed.Client(cluster))
            made = to_zarr(from_zarr(source).rechunk(chunks, method=method), tmp_path / "b")
        np.testing.assert_array_equal(made[...], VALUES)
        assert made.chunks == chunks

    def test_few_tasks_move_many_chunks(self):
        source = stored({}, chunks=(1, 60))
        made = to_zarr(from_zarr(source).rechunk((40, 1)), {}, compute=False)
        assert len(dict(made.__dask_graph__())) < 60

    def test_chunks_are_read_twice_at_most_and_stored_once(self):
        stored_values, asked = {}, []
        stored(stored_values, chunks=(1, 60))
        source = omnizarr.open_array(WatchedStore(MemoryStore(stored_values), lambda *request: asked.append(request)))
        target = WatchedStore(MemoryStore(), lambda *request: asked.append(request))
        asked.clear()
        with dask.config.set({"array.chunk-size": "2400B"}):
            made = to_zarr(from_zarr(source, chunks=(1, 60)).rechunk((40, 1)), target)
        counts = Counter(verb for verb, key in asked if key.startswith("c/"))
        np.testing.assert_array_equal(made[...], VALUES)
        assert counts["get"] <= 2 * 40
        assert counts["set"] == 60

    def test_a_target_that_exists_is_stored_in_its_own_chunks(self):
        target = omnizarr.create_array({}, shape=(40, 60), chunks=(8, 3), dtype="i4")
        to_zarr(from_zarr(stored({})).rechunk((3, 7)), target)
        np.testing.assert_array_equal(target[...], VALUES)

    @pytest.mark.parametrize(
        "change", [lambda array: array + 1, lambda array: array[::-1], lambda array: array.T.T * 2]
    )
    def test_values_that_are_computed_are_stored(self, change):
        source = stored({})
        made = to_zarr(change(from_zarr(source)).rechunk((40, 3)), {})
        np.testing.assert_array_equal(made[...], change(VALUES))
        np.testing.assert_array_equal(to_zarr(change(from_zarr(source).rechunk((40, 3))), {})[...], change(VALUES))

    def test_parts_and_joins_of_rechunked_arrays_are_stored(self):
        source = stored({})
        half = from_zarr(source).rechunk((40, 3))[:, :30]
        np.testing.assert_array_equal(to_zarr(half, {})[...], VALUES[:, :30])
        both = da.concatenate([from_zarr(source), from_zarr(stored({}, VALUES + 1))]).rechunk((80, 3))
        np.testing.assert_array_equal(to_zarr(both, {})[...], np.concatenate([VALUES, VALUES + 1]))

    def test_what_was_read_before_is_stored_as_it_was(self):
        source = stored({})
        read = from_zarr(source).persist()
        source[...] = 0
        np.testing.assert_array_equal(to_zarr(read.rechunk((40, 3)), {})[...], VALUES)

    def test_arrays_of_one_name_are_told_apart(self):
        made = [from_zarr(stored({}, values), name="x") for values in (VALUES, -VALUES)]
        for each, values in zip(made, (VALUES, -VALUES), strict=True):
            np.testing.assert_array_equal(to_zarr(each.rechunk((40, 3)), {})[...], values)

    def test_text_and_nothing_are_rechunked_by_dask(self):
        texts = np.array(["a", "bc", ""] * 4, dtype=np.dtypes.StringDType())
        made = to_zarr(from_zarr(omnizarr.create_array({}, data=texts, chunks=(5,))).rechunk(3), {})
        assert made[...].tolist() == texts.tolist()
        nothing = omnizarr.create_array({}, shape=(0, 3), chunks=(2, 3), dtype="i4")
        assert to_zarr(from_zarr(nothing).rechunk((2, 1)), {}, chunks=(2, 3)).shape == (0, 3)

    def test_an_array_is_rechunked_in_its_own_place(self, tmp_path):
        stored(tmp_path / "a")
        made = to_zarr(from_zarr(tmp_path / "a").rechunk((40, 2)), tmp_path / "a", overwrite=True)
        np.testing.assert_array_equal(made[...], VALUES)
        assert made.chunks == (40, 2)
