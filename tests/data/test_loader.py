"""Loaders: each sample once per epoch, the same batches everywhere, each chunk read once, and no hangs."""

from __future__ import annotations

import gc
import json
import os
import pickle
import re
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr import engine
from omnizarr.data import Loader, Samples, fetching, windows
from omnizarr.data.batches import Spare
from omnizarr.errors import BoundsCheckError, ChunkError, SettingError, ShapeError, ValueTypeError
from omnizarr.settings import engines
from omnizarr.support import progress
from tests.engine.both import needs_native, needs_posix, opened
from tests.repeats import runs
from tests.stores.recording import recording

EXAMPLES = runs(40)
SHUFFLES = [None, "full", "blocks"]


def rows(count=103, chunk=10, shape=(4, 3), shard=0):
    values = np.arange(count * int(np.prod(shape)), dtype="int32").reshape(count, *shape)
    shards = (shard, *shape) if shard else None
    return values, omnizarr.create_array({}, data=values, chunks=(chunk, *shape), shards=shards)


def seen(loader, name="i"):
    return [index for batch in loader for index in batch[name].tolist()]


@st.composite
def cases(draw):
    count, chunk = draw(st.integers(1, 60)), draw(st.integers(1, 12))
    kind = draw(st.sampled_from(["array", "shards", "lazy", "several", "windows", "random"]))
    values = np.arange(count * 6, dtype="int16").reshape(count, 6)
    if kind == "shards":
        array = omnizarr.create_array({}, data=values, chunks=(chunk, 3), shards=(chunk * 3, 6))
    else:
        array = omnizarr.create_array({}, data=values, chunks=(chunk, 4))
    if kind == "lazy":
        return array.lazy[::-1], values[::-1]
    if kind == "several":
        middle = draw(st.integers(0, count))
        return [array.lazy[:middle], values[middle:]], values
    if kind == "windows":
        size = draw(st.integers(1, min(count, 5))), draw(st.sampled_from([3, 6]))
        how = {"step": (draw(st.integers(1, 4)), draw(st.integers(1, 3)))}
        return windows(array, size, **how), windows(values, size, **how)
    if kind == "random":
        size = draw(st.integers(1, min(count, 5))), draw(st.sampled_from([2, 6]))
        how = {"random": draw(st.integers(1, 30)), "seed": 3}
        return windows(array, size, **how), windows(values, size, **how)
    return array, values


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    cases(),
    st.integers(1, 20),
    st.sampled_from(SHUFFLES),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["1GB", 4000, 1500]),
    st.integers(0, 5),
)
def test_each_sample_comes_once_in_an_epoch_with_its_values(case, batch, shuffle, world, prefetch, memory, epoch):
    source, values = case
    count = len(values)
    found = []
    for rank in range(world):
        try:
            loader = Loader(
                {"x": source, "y": values, "i": np.arange(count)},
                batch,
                shuffle=shuffle,
                rank=rank,
                world=world,
                prefetch=prefetch,
                memory=memory,
                seed=7,
            )
        except SettingError as error:
            assume("memory is too small" not in str(error))
            raise
        loader.epoch = epoch
        number = 0
        for each in loader:
            assert np.array_equal(each["x"], each["y"])
            assert len(each["x"]) <= batch
            assert np.array_equal(each["i"], loader.indexes(epoch, number))
            found += each["i"].tolist()
            number += 1
        assert number == len(loader)
        assert loader.stats.most_nbytes <= loader._memory
    assert sorted(found) == list(range(count))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(1, 40), st.integers(1, 9), st.sampled_from(SHUFFLES), st.integers(1, 3), st.data())
def test_a_loader_that_is_resumed_gives_what_is_left(count, batch, shuffle, epochs, data):
    _, array = rows(count, 4, (2,))
    options = {"batch": batch, "shuffle": shuffle, "epochs": epochs, "memory": 3000}
    make = lambda: Loader({"x": array, "i": np.arange(count)}, **options)  # noqa: E731
    whole = [each["i"].tolist() for each in make()]
    stop = data.draw(st.integers(0, len(whole)))
    first = make()
    got = []
    for each in first:
        got.append(each["i"].tolist())
        if len(got) == stop:
            break
    state = json.loads(json.dumps(first.state()))
    left = epochs - state["epoch"]
    second = Loader({"x": array, "i": np.arange(count)}, **{**options, "epochs": max(left, 0)})
    second.load_state(state)
    if not stop:
        return
    got += [each["i"].tolist() for each in second]
    assert got == whole


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_batches_do_not_depend_on_threads_or_prefetching(shuffle):
    _, array = rows()
    each = [
        seen(Loader({"x": array, "i": np.arange(103)}, 8, shuffle=shuffle, seed=2, prefetch=p, threads=t))
        for p, t in [(1, 1), (2, 2), (8, 4)]
    ]
    assert each[0] == each[1] == each[2]


def test_epochs_and_seeds_have_orders_of_their_own():
    loaders = [Loader({"i": np.arange(100)}, 10, shuffle="full", seed=seed) for seed in (1, 2)]
    orders = [seen(loader) for loader in loaders for _ in range(3)]
    assert len(set(map(tuple, orders))) == 6
    assert all(sorted(order) == list(range(100)) for order in orders)


def test_several_epochs_in_one_loop_are_those_of_several_loops():
    make = lambda epochs: Loader({"i": np.arange(25)}, 4, shuffle="full", epochs=epochs)  # noqa: E731
    one = make(1)
    assert seen(make(3)) == seen(one) + seen(one) + seen(one)


def test_a_loop_without_end_goes_on():
    found = []
    for batch in Loader({"i": np.arange(3)}, 2, epochs=None):
        found += batch["i"].tolist()
        if len(found) > 20:
            break
    assert found[:9] == [0, 1, 2] * 3


def test_dropping_the_last_samples_gives_all_processes_as_many_batches():
    loaders = [Loader({"i": np.arange(103)}, 8, drop_last=True, rank=rank, world=3) for rank in range(3)]
    assert [len(seen(loader)) for loader in loaders] == [32, 32, 32]


# -- reading -----------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", SHUFFLES)
@pytest.mark.parametrize("shard", [0, 50])
def test_each_chunk_is_read_once_if_memory_holds_them(shuffle, shard):
    _, array = rows(500, 5, shard=shard)
    loader = Loader({"x": array}, 16, shuffle=shuffle)
    assert len(seen(loader, "x")) == 500
    assert loader.stats.reads == 100


@pytest.mark.parametrize("shuffle", [None, "blocks"])
def test_each_chunk_is_read_once_if_memory_does_not_hold_them(shuffle):
    values, array = rows(2000, 10, (64,))
    loader = Loader({"x": array}, 16, shuffle=shuffle, memory=values.nbytes // 4)
    assert len(seen(loader, "x")) == 2000
    assert loader.stats.reads == 200
    assert loader.stats.most_nbytes < values.nbytes // 4
    if shuffle:
        assert 10 < loader.mixed < 2000


def test_chunks_that_are_used_sooner_are_kept():
    values, array = rows(1000, 10, (100,))
    loader = Loader({"x": array}, 8, shuffle="full", memory=values.nbytes // 2)
    assert len(seen(loader, "x")) == 1000
    # With memory for 3/8 of the chunks, one that keeps chunks at random would read five of eight uses.
    uses = loader.stats.reads + loader.stats.hits
    assert loader.stats.reads < 0.45 * uses


def test_windows_read_each_chunk_once():
    volume = omnizarr.create_array({}, data=np.arange(24**3, dtype="int32").reshape(24, 24, 24), chunks=(8, 8, 8))
    for shuffle in SHUFFLES:
        loader = Loader({"x": windows(volume, 8, step=4)}, 8, shuffle=shuffle)
        assert sum(len(batch["x"]) for batch in loader) == 125
        assert loader.stats.reads == 27


def test_random_windows_are_others_in_each_epoch_and_the_same_for_arrays_of_one_shape():
    values = np.arange(400).reshape(20, 20)
    array = omnizarr.create_array({}, data=values, chunks=(8, 8))
    loader = Loader({"x": windows(array, 5, random=30), "y": windows(-values, 5, random=30)}, 30)
    epochs = [next(iter(loader)) for _ in range(2)]
    for batch in epochs:
        assert np.array_equal(batch["x"], -batch["y"])
        assert len(np.unique(batch["x"][:, 0, 0])) > 20
    assert not np.array_equal(epochs[0]["x"], epochs[1]["x"])


def test_given_windows_are_those_that_were_given():
    values = np.arange(400).reshape(20, 20)
    array = omnizarr.create_array({}, data=values, chunks=(8, 8))
    places = [[0, 0], [15, 14], [7, 7], [0, 0]]
    batch = next(iter(Loader({"x": windows(array, (4, 6), at=places)}, 4)))
    assert np.array_equal(batch["x"], [values[y : y + 4, x : x + 6] for y, x in places])


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_10_to_the_15_samples_can_be_begun(shuffle):
    huge = omnizarr.create_array({}, shape=(10**15, 2), chunks=(1000, 2), dtype="int8", fill_value=3)
    many = Loader({"x": huge}, 16, shuffle=shuffle)
    batch = next(iter(many))
    assert batch["x"].tolist() == [[3, 3]] * 16
    assert many.samples == 10**15


@pytest.mark.parametrize("dtype", ["U5", "S3", "M8[s]", "bool", ">f4", "complex64"])
def test_every_data_type_can_be_loaded(dtype):
    values = np.arange(20).astype("int64").astype(dtype)
    array = omnizarr.create_array({}, data=values, chunks=3)
    loader = Loader({"x": array, "i": np.arange(20)}, 6, shuffle="full")
    for batch in loader:
        assert np.array_equal(batch["x"], values[batch["i"]])


def test_text_of_any_length_and_records_can_be_loaded():
    text = np.array(["a" * n for n in range(20)], dtype=np.dtypes.StringDType())
    record = np.array([(n, n / 2) for n in range(20)], dtype=[("a", "i4"), ("b", "f8")])
    arrays = {
        "t": omnizarr.create_array({}, data=text, chunks=3),
        "r": omnizarr.create_array({}, data=record, chunks=4),
    }
    for batch in Loader({**arrays, "i": np.arange(20)}, 6, shuffle="full"):
        assert batch["t"].tolist() == text[batch["i"]].tolist()
        assert batch["r"].tolist() == record[batch["i"]].tolist()


# -- batches -----------------------------------------------------------------------


def test_batches_that_are_kept_do_not_change():
    values, array = rows()
    kept = [(batch["x"], batch["i"][:]) for batch in Loader({"x": array, "i": np.arange(103)}, 8, shuffle="full")]
    for x, i in kept:
        assert np.array_equal(x, values[i])


def test_parts_of_batches_that_are_kept_do_not_change():
    values, array = rows()
    kept = [
        (memoryview(batch["x"][0]), batch["x"].T[..., -1].reshape(-1)[:2], batch["i"].tolist())
        for batch in Loader({"x": array, "i": np.arange(103)}, 8, shuffle="full")
    ]
    for first, last, i in kept:
        assert np.array_equal(first, values[i[0]])
        assert np.array_equal(last, values[i[-1]].T.reshape(-1)[:2])


def test_memory_of_batches_that_nobody_has_is_used_again():
    _, array = rows(2000, 10)
    places = set()
    for batch in Loader({"x": array}, 8):
        places.add(batch["x"].__array_interface__["data"][0])
        del batch
    assert len(places) < 12


@pytest.mark.parametrize("memory", ["1GB", 20_000])
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_memory_of_chunks_is_used_again_by_later_epochs(shuffle, memory):
    values, array = rows(1000, 30)
    loader = Loader({"x": array, "i": np.arange(1000)}, 8, shuffle=shuffle, memory=memory)
    loops = [[(batch["x"].copy(), batch["i"]) for batch in loader] for _ in range(3)]
    beside = [batch for pair in zip(loader, loader, strict=True) for batch in pair]
    for x, i in [*sum(loops, []), *((batch["x"], batch["i"]) for batch in beside)]:  # noqa: RUF017 - they are few
        assert np.array_equal(x, values[i])
    assert loader.stats.most_nbytes <= 34 * 30 * 12 * 4


def test_transforms_get_each_sample_and_numbers_that_depend_on_it_alone():
    def transform(sample, random):
        return {"i": sample["i"], "x": sample["x"] * 2, "r": random.random()}

    _, array = rows()
    arrays = {"x": array, "i": np.arange(103)}
    first = {}
    for batch_size in (8, 5):
        for batch in Loader(arrays, batch_size, shuffle="full", transform=transform):
            for i, r in zip(batch["i"].tolist(), batch["r"].tolist(), strict=True):
                assert first.setdefault(i, r) == r
    assert len(set(first.values())) == 103


def test_transforms_of_batches_get_the_batch():
    loader = Loader({"i": np.arange(10)}, 4, transform_batch=lambda batch: {"mean": batch["i"].mean()})
    assert [batch["mean"] for batch in loader] == [1.5, 5.5, 8.5]


def test_errors_of_transforms_name_the_sample():
    def transform(sample):
        return {"x": [1 / (int(sample["i"]) - 7)]}

    with pytest.raises(ZeroDivisionError) as caught:
        seen(Loader({"i": np.arange(10)}, 4, transform=transform, threads=1), "x")
    assert "sample 7" in caught.value.__notes__[0]


def test_progress_counts_samples():
    counted = []
    seen(Loader({"i": np.arange(10)}, 4, progress=counted.append))
    assert sum(counted) == 10


def test_progress_says_how_long_the_loop_waited():
    class Bar:
        done, said = 0, ""

        def update(self, n):
            self.done += n

        def set_postfix_str(self, words, refresh):
            self.said = words

        def close(self):
            """Stay."""

    bar = Bar()
    seen(Loader({"i": np.arange(10)}, 4, progress=bar))
    assert bar.done == 10
    assert re.fullmatch(r"waited \d+ % of the time", bar.said)
    assert re.fullmatch(r"loading: 100 %, 80 B, 10 of 10 samples.*, waited \d+ % of the time", progress.last().words())


# -- what is wrong -------------------------------------------------------------------


def broken():
    values, _ = rows()
    store = {}
    array = omnizarr.create_array(store, data=values, chunks=(10, 4, 3))
    store["c/3/0/0"] = b"broken"
    return values, array


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_broken_chunk_raises_with_the_sample(shuffle):
    _, array = broken()
    loader = Loader({"x": array, "i": np.arange(103)}, 8, shuffle=shuffle)
    found = []
    with pytest.raises(ChunkError) as caught:
        found.extend(batch["i"].tolist() for batch in loader)
    assert not set(sum(found, [])) & set(range(30, 40))  # noqa: RUF017 - they are few
    assert "of 'x'" in caught.value.__notes__[0]
    assert f"step {len(found)}" in caught.value.__notes__[0]


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_samples_of_a_broken_chunk_are_skipped_and_counted(shuffle):
    values, array = broken()
    loader = Loader({"x": array, "i": np.arange(103)}, 8, shuffle=shuffle, on_error="skip")
    found = []
    for batch in loader:
        assert np.array_equal(batch["x"], values[batch["i"]])
        found += batch["i"].tolist()
    assert sorted(found) == [n for n in range(103) if not 30 <= n < 40]
    assert (loader.stats.skipped, loader.stats.samples) == (10, 93)


def test_windows_that_reach_into_a_broken_chunk_are_skipped():
    values, array = broken()
    loader = Loader(
        {"windows": windows(array, (3, 4, 3), step=1), "i": np.arange(101)}, 8, shuffle="full", on_error="skip"
    )
    found = []
    for batch in loader:
        assert np.array_equal(batch["windows"], np.stack([values[n : n + 3] for n in batch["i"]]))
        found += batch["i"].tolist()
    assert sorted(found) == [n for n in range(101) if not 28 <= n < 40]


def test_arrays_for_which_the_system_has_no_memory_are_loaded_without_them(monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(Spare, "whole", fail)
    values, array = rows()
    loader = Loader({"x": array, "i": np.arange(103)}, 8, shuffle="full")
    for batch in loader:
        assert np.array_equal(batch["x"], values[batch["i"]])
    assert (loader.stats.samples, loader.stats.reads) == (103, 11)


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(ShapeError, match=r"'x': 5, 'y': 4"):
        Loader({"x": np.arange(5), "y": np.arange(4)})


def test_memory_that_is_too_small_for_a_batch_is_refused():
    _, array = rows()
    with pytest.raises(SettingError, match=r"memory is too small for one batch and one chunk.*at least 864 bytes"):
        Loader({"x": array}, 8, memory=500)
    assert len(seen(Loader({"x": array}, 8, memory=864), "x")) == 103


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"batch": 0}, "batch is too small"),
        ({"shuffle": "some"}, "no such way to shuffle"),
        ({"rank": 2, "world": 2}, "no such process"),
        ({"prefetch": 0}, "prefetch is too small"),
        ({"on_error": "ignore"}, "no such way to treat errors"),
        ({"to": "tensorflow"}, "cannot be made for this library"),
    ],
)
def test_wrong_parameters_are_refused(options, match):
    with pytest.raises(SettingError, match=match):
        Loader({"x": np.arange(5)}, **options)


def test_what_is_no_array_is_refused():
    with pytest.raises(ValueTypeError, match="a name for each array"):
        Loader(np.arange(5))
    with pytest.raises(ValueTypeError, match="not an array that can be loaded"):
        Loader({"x": "images.zarr"})
    with pytest.raises(ShapeError, match="without dimensions"):
        Loader({"x": np.array(5)})
    with pytest.raises(ShapeError, match="at least one array"):
        Loader({})


def test_windows_that_do_not_fit_are_refused():
    array = np.zeros((10, 10))
    with pytest.raises(ShapeError, match="does not fit along dimension 0"):
        windows(array, 11)
    with pytest.raises(BoundsCheckError, match="window 1 reaches beyond"):
        windows(array, 4, at=[[0, 0], [7, 0]])
    with pytest.raises(ShapeError, match="one row of integers"):
        windows(array, 4, at=[0, 0])
    with pytest.raises(ShapeError, match="one row of integers"):
        windows(array, 4, at=[[0, 0], [1]])
    with pytest.raises(BoundsCheckError, match=r"found \(9223372036854775808, 0\)"):
        windows(array, 4, at=np.array([[2**63, 0]], "uint64"))
    with pytest.raises(TypeError, match="integer"):
        windows(array, 2.5)
    with pytest.raises(SettingError, match="one of step, random, at"):
        windows(array, 4, step=1, random=5)


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_an_array_that_becomes_smaller_is_an_error_that_says_so(shuffle):
    _, array = rows()
    loader = Loader({"x": array}, 8, shuffle=shuffle)
    array.resize((55, 4, 3))
    with pytest.raises(ShapeError, match=r"has become smaller.*found shape \(55, 4, 3\).*make the loader again"):
        seen(loader, "x")


@pytest.mark.parametrize("wrong", [{"a": [1]}, {1, 2}, omnizarr.create_group({})])
def test_groups_and_mappings_are_no_arrays(wrong):
    with pytest.raises(ValueTypeError, match="one of its arrays"):
        Loader({"x": wrong})


def test_transforms_that_return_something_else_are_refused():
    with pytest.raises(ValueTypeError, match="mapping of names to arrays: found NoneType"):
        seen(Loader({"i": np.arange(10)}, 4, transform=lambda _: None), "i")
    with pytest.raises(ValueTypeError, match="mapping of names to arrays: found int"):
        seen(Loader({"i": np.arange(10)}, 4, transform_batch=lambda _: 3), "i")
    with pytest.raises(ShapeError, match=r"samples of 'i' of different shapes: found \(1,\) of sample 1"):
        seen(Loader({"i": np.arange(10)}, 4, transform=lambda sample: {"i": np.zeros(int(sample["i"]))}), "i")


def test_what_is_appended_later_is_not_loaded():
    _, array = rows(20)
    loader = Loader({"x": array, "i": np.arange(20)}, 8)
    found = 0
    for batch in loader:
        array.append(np.zeros((5, 4, 3), "int32"))
        found += len(batch["x"])
    assert found == 20


def test_the_state_of_another_loader_is_refused():
    state = Loader({"x": np.arange(10)}, 4, shuffle="full").state()
    for options, match in [
        ({"seed": 1}, "another seed"),
        ({"batch": 5}, "another batch"),
        ({"shuffle": None}, "another"),
    ]:
        with pytest.raises(SettingError, match=match):
            Loader({"x": np.arange(10)}, **{"batch": 4, "shuffle": "full", **options}).load_state(state)
    with pytest.raises(SettingError, match="not the state of a loader"):
        Loader({"x": np.arange(10)}).load_state({})


# -- threads -----------------------------------------------------------------------


def threads_of_loaders():
    return [thread for thread in threading.enumerate() if thread.name.startswith("omnizarr-load")]


def wait_for_no_threads():
    until = time.monotonic() + 20
    while threads_of_loaders():
        assert time.monotonic() < until, threads_of_loaders()
        time.sleep(0.01)


def test_a_loop_that_is_left_ends_its_threads():
    _, array = rows(1000, 3)
    for batch in Loader({"x": array}, 8, shuffle="full", epochs=None):
        assert len(batch["x"]) == 8
        break
    del batch
    gc.collect()
    wait_for_no_threads()


def test_an_error_in_the_loop_ends_its_threads():
    _, array = rows(1000, 3)

    def train():
        for _ in Loader({"x": array}, 8, epochs=None):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    gc.collect()
    wait_for_no_threads()


def test_a_broken_loader_ends_its_threads():
    _, array = broken()
    with pytest.raises(ChunkError):
        seen(Loader({"x": array}, 8, epochs=None), "x")
    wait_for_no_threads()


@pytest.mark.parametrize("memory", ["1GB", 20_000])
def test_the_first_batch_does_not_wait_for_plans_of_many_others(memory):
    _, array = rows(1000, 3)
    asked = []

    class Counted(Loader):
        def _samples_of(self, epoch, first, last):
            asked.extend(range(first, last))
            return super()._samples_of(epoch, first, last)

    loop = iter(Counted({"x": array}, 8, shuffle="full", epochs=None, memory=memory))
    next(loop)
    assert len(asked) < 1200
    loop.close()


def test_threads_wait_for_the_loop():
    reads = []

    def transform(sample):
        reads.append(sample["i"])
        return sample

    loop = iter(Loader({"i": np.arange(1000)}, 1, transform=transform, prefetch=3))
    next(loop)
    time.sleep(0.3)
    assert len(reads) <= 5
    loop.close()


def test_a_loader_that_is_pickled_gives_the_same_batches(tmp_path):
    values, _ = rows()
    array = omnizarr.create_array(tmp_path / "a.zarr", data=values, chunks=(10, 4, 3))
    loader = Loader({"x": array, "i": np.arange(103)}, 8, shuffle="blocks")
    assert seen(pickle.loads(pickle.dumps(loader))) == seen(loader)


def test_parts_of_a_loader_have_each_sample_once():
    _, array = rows()
    loader = Loader({"x": array, "i": np.arange(103)}, 8, shuffle="full", rank=1, world=2)
    whole = seen(loader)
    parts = [index for number in range(3) for index in seen(loader.part(number, 3, 0))]
    assert sorted(parts) == sorted(whole)


# -- samples by number -----------------------------------------------------------------


def test_samples_by_number_are_those_of_the_arrays():
    values, array = rows()
    samples = Samples({"x": array, "y": values})
    assert len(samples) == 103
    assert np.array_equal(samples[-1]["x"], values[-1])
    for at, sample in zip([5, 100, 5, 6], samples.__getitems__([5, 100, 5, 6]), strict=True):
        assert np.array_equal(sample["x"], values[at])
        assert np.array_equal(sample["y"], values[at])
    with pytest.raises(BoundsCheckError):
        samples[103]


def test_samples_of_a_broken_chunk_say_which():
    _, array = broken()
    with pytest.raises(ChunkError) as caught:
        Samples({"x": array})[35]
    assert "sample 35" in caught.value.__notes__[0]


# -- web servers -------------------------------------------------------------------------


@needs_native
@needs_posix
def test_a_forked_child_loads_from_a_web_server_that_its_parent_has_used(http_server):
    place = http_server.fresh()
    values = np.arange(400, dtype="int32").reshape(100, 4)
    omnizarr.create_array(f"{place.directory}/a.zarr", data=values, chunks=(5, 4), shards=(20, 4))
    loader = Loader({"x": opened(f"{place.url}/a.zarr", "native", mode="r"), "i": np.arange(100)}, 16, shuffle="full")
    loop = iter(loader)
    next(loop)
    child = os.fork()
    if not child:
        signal.alarm(60)
        code = 1
        try:
            for batch in loader.part(0, 1, epoch=3):
                assert np.array_equal(batch["x"], values[batch["i"]])
            code = 0
        finally:
            os._exit(code)
    assert sum(len(batch["x"]) for batch in loop) == 84
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# -- shards of servers --------------------------------------------------------------------


@pytest.fixture
def on_server(tmp_path):
    """Yield a function that puts an array on a web server, and returns the server and its array."""
    pytest.importorskip("obstore", reason="the extra cloud is not installed")
    with recording() as server:

        def put(values, **options):
            omnizarr.create_array(tmp_path / "a.zarr", data=values, **options)
            for path in tmp_path.rglob("*"):
                if path.is_file():
                    server.values[f"/{path.relative_to(tmp_path)}"] = path.read_bytes()
            return server, omnizarr.open_array(server.url("/a.zarr"), mode="r")

        yield put


needs_kept_indexes = pytest.mark.skipif(
    engines.module() is None or engines.is_refused(), reason="the reference engine asks for each chunk, and its index"
)


@needs_kept_indexes
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_shard_on_a_server_is_fetched_by_one_request(on_server, shuffle):
    values = np.arange(512 * 8, dtype="int32").reshape(512, 8)
    server, array = on_server(values, chunks=(4, 8), shards=(64, 8))
    loader = Loader({"x": array, "i": np.arange(512)}, batch=16, shuffle=shuffle, memory="1MB")
    server.requests()
    found = [batch for batch in loader if (batch["x"] == values[batch["i"]]).all()]
    asked = [path for _, path, _ in server.requests() if "/c/" in path]
    assert sorted(np.concatenate([batch["i"] for batch in found]).tolist()) == list(range(512))
    assert loader.stats.reads == 128
    assert len(asked) == len(set(asked)) == 8


@needs_kept_indexes
def test_a_shard_that_must_wait_for_memory_is_fetched_by_one_request(on_server):
    values = np.arange(2048 * 8, dtype="int32").reshape(2048, 8)
    server, array = on_server(values, chunks=(4, 8), shards=(64, 8))
    loader = Loader({"x": array}, batch=16, memory="20kB")
    server.requests()
    assert np.array_equal(np.concatenate([batch["x"].copy() for batch in loader]), values)
    asked = [path for _, path, _ in server.requests() if "/c/" in path]
    assert len(asked) == len(set(asked)) == 32
    assert loader.stats.most_nbytes <= 20_000


@needs_kept_indexes
def test_readers_that_want_parts_of_a_shard_that_is_on_its_way_wait_for_it(on_server):
    values = np.arange(64 * 8, dtype="int32").reshape(64, 8)
    server, array = on_server(values, chunks=(4, 8), shards=(64, 8))
    asked, go_on = threading.Event(), threading.Event()

    def answer(request):
        if "/c/" in request.path:
            asked.set()
            assert go_on.wait(30)
        return False

    server.answer = answer
    indexes = engine.shard_indexes(10_000)
    parts = [slice(0, 40), slice(40, 64), slice(40, 44)]
    outs = [np.zeros((part.stop - part.start, 8), "int32") for part in parts]
    threads = [
        threading.Thread(target=fetching.read, args=([fetching.Box(array, (part, slice(0, 8)), out)], indexes))
        for part, out in zip(parts, outs, strict=True)
    ]
    server.requests()
    threads[0].start()
    assert asked.wait(30)
    for each in threads[1:]:
        each.start()
    time.sleep(0.2)
    go_on.set()
    for each in threads:
        each.join()
    for part, out in zip(parts, outs, strict=True):
        assert np.array_equal(out, values[part])
    assert len([path for _, path, _ in server.requests() if "/c/" in path]) == 1
    indexes.begin()  # what is asked for from now on shares no request with those before
    assert indexes.nbytes == engine.shard_index_nbytes(16, len("a.zarr/c/0/0"))


@needs_kept_indexes
def test_memory_for_indexes_of_shards_holds_one_with_chunks_along_all_dimensions(on_server):
    values = np.arange(256 * 64, dtype="int32").reshape(256, 64)
    _, array = on_server(values, chunks=(4, 2), shards=(16, 64))
    loader = Loader({"x": array, "i": np.arange(256)}, batch=8, shuffle="full", memory="40kB")
    for batch in loader:
        assert (batch["x"] == values[batch["i"]]).all()
    assert engine.shard_index_nbytes(4 * 32, 1) <= loader._indexes.nbytes <= loader._index_nbytes < 10_000


@needs_kept_indexes
def test_chunks_on_a_server_that_follow_each_other_are_fetched_side_by_side(on_server):
    values = np.arange(48 * 8, dtype="int32").reshape(48, 8)
    server, array = on_server(values, chunks=(1, 8))
    lock, counts = threading.Lock(), [0, 0]

    def answer(_):
        with lock:
            counts[0] += 1
            counts[1] = max(counts)
        time.sleep(0.02)
        with lock:
            counts[0] -= 1
        return False

    server.answer = answer
    assert [int(batch["x"][0, 0, 0]) for batch in Loader({"x": windows(array, (1, 8))}, batch=1)] == values[
        :, 0
    ].tolist()
    assert counts[1] >= 5


@needs_kept_indexes
@pytest.mark.parametrize("shuffle", ["full", "blocks"])
def test_with_little_memory_the_index_of_a_shard_is_asked_for_once(on_server, shuffle):
    values = np.arange(256 * 256, dtype="int32").reshape(256, 256)
    server, array = on_server(values, chunks=(4, 256), shards=(64, 256))
    loader = Loader({"x": array, "i": np.arange(256)}, batch=16, shuffle=shuffle, memory="150kB")
    server.requests()
    for batch in loader:
        assert (batch["x"] == values[batch["i"]]).all()
    asked = [(path, headers.get("range", "")) for _, path, headers in server.requests() if "/c/" in path]
    indexes = [path for path, part in asked if part.startswith("bytes=-")]
    assert len(indexes) == len(set(indexes))
    assert len(asked) - len(indexes) <= loader.stats.reads


@needs_kept_indexes
@pytest.mark.parametrize("has_tags", [True, False])
def test_a_shard_that_changes_while_it_is_loaded_is_read_as_it_is_then(on_server, has_tags):
    values = np.arange(512 * 8, dtype="int32").reshape(512, 8)
    server, array = on_server(values, chunks=(4, 8), shards=(64, 8))
    if not has_tags:
        server.tag = lambda _: None
    other = {}
    omnizarr.create_array(other, data=values[::-1] + 7, chunks=(4, 8), shards=(64, 8))
    loader = Loader({"x": array, "i": np.arange(512)}, batch=16, shuffle="full", memory="20kB")
    for step, batch in enumerate(loader):
        old, new = values[batch["i"]], (values[::-1] + 7)[batch["i"]]
        assert ((batch["x"] == old) | (batch["x"] == new)).all()
        if step == 10:
            assert (batch["x"] == old).all()
            server.values.update({f"/a.zarr/{key}": bytes(value) for key, value in other.items() if "c/" in key})
    for batch in loader:
        assert (batch["x"] == (values[::-1] + 7)[batch["i"]]).all()


@needs_kept_indexes
def test_chunks_that_appear_in_a_shard_are_found_by_later_epochs(on_server, tmp_path):
    values = np.zeros((128, 8), dtype="int32")
    values[:4] = 1
    server, array = on_server(values, chunks=(4, 8), shards=(64, 8))
    loader = Loader({"x": array}, batch=4, memory=2000)
    assert sum(int(batch["x"].sum()) for batch in loader) == 32
    later = {}
    omnizarr.create_array(later, data=np.ones((128, 8), dtype="int32"), chunks=(4, 8), shards=(64, 8))
    server.values.update({f"/a.zarr/{key}": bytes(value) for key, value in later.items() if "c/" in key})
    assert sum(int(batch["x"].sum()) for batch in loader) == 128 * 8


def test_chunks_that_no_sample_needs_are_not_fetched_with_others(on_server):
    values = np.arange(64 * 64, dtype="int32").reshape(64, 64)
    _, array = on_server(values, chunks=(4, 4), shards=(32, 32))
    places = np.random.default_rng(0).integers(0, 6, (50, 2)) * 8 + 2
    loader = Loader({"x": windows(array, 6, at=places)}, batch=5, shuffle="full", memory="1MB")
    for step, batch in enumerate(loader):
        for at, index in enumerate(loader.indexes(0, step)):
            row, column = places[index]
            assert (batch["x"][at] == values[row : row + 6, column : column + 6]).all()
    chunks = {(row // 4 + a, column // 4 + b) for row, column in places for a in (0, 1) for b in (0, 1)}
    assert loader.stats.reads == len(chunks)


def test_little_memory_for_shards_on_a_server_is_kept_to(on_server):
    values = np.arange(512 * 8, dtype="int32").reshape(512, 8)
    _, array = on_server(values, chunks=(4, 8), shards=(64, 8))
    loader = Loader({"x": array, "i": np.arange(512)}, batch=16, shuffle="blocks", memory=6000)
    for batch in loader:
        assert (batch["x"] == values[batch["i"]]).all()
    assert loader.stats.reads == 128
    assert loader.stats.most_nbytes <= 6000


def test_samples_without_elements_are_given():
    array = omnizarr.create_array({}, shape=(10, 0), chunks=(2, 1), dtype="f4")
    assert [batch["x"].shape for batch in Loader({"x": array}, batch=4)] == [(4, 0), (4, 0), (2, 0)]


def test_transform_that_names_samples_differently_is_an_error():
    def transform(sample):
        return sample if sample["x"] < 3 else {"y": sample["x"]}

    with pytest.raises(ValueTypeError, match="samples with different names"):
        list(Loader({"x": np.arange(8)}, batch=8, transform=transform))
