"""Sources that change while a join lives: an error that names the source, and never other values; large, deep trees."""

import os
import pickle
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import ArrayNotFoundError, ChunkError, MetadataError, StaleError
from omnizarr.stores import MemoryStore
from tests.fakes import FaultyStore

COUNT = 3


def values(number):
    return np.arange(10) + 10 * number + 1


EXPECTED = np.concatenate([values(number) for number in range(COUNT)])


@pytest.fixture
def joined(tmp_path):
    """A join of three arrays, `0` to `2` in the directory of the test, in chunks of four."""
    for number in range(COUNT):
        omnizarr.create_array(tmp_path / str(number), data=values(number), chunks=(4,))
    return omnizarr.concat([tmp_path / str(number) for number in range(COUNT)])


def elsewhere(code):
    """Run code in another process, whose changes this one does not hear of."""
    subprocess.run([sys.executable, "-c", f"import numpy as np, omnizarr; {code}"], check=True)


def replaced(at, **options):
    omnizarr.create_array(at, overwrite=True, **{"data": np.arange(10), "chunks": (4,), **options})


CHANGES = {
    "deleted": (shutil.rmtree, ArrayNotFoundError, "not there any more"),
    "renamed": (lambda at: at.rename(at.with_name("other")), ArrayNotFoundError, "not there any more"),
    "shrunk": (lambda at: elsewhere(f"omnizarr.open_array({str(at)!r}).resize((5,))"), StaleError, r"shape \(5,\)"),
    "grown": (lambda at: elsewhere(f"omnizarr.open_array({str(at)!r}).resize((15,))"), StaleError, r"shape \(15,\)"),
    "of another type": (lambda at: replaced(at, data=np.arange(10.0)), StaleError, "float64"),
    "of other chunks": (lambda at: replaced(at, chunks=(5,)), StaleError, "chunk_grid"),
    "of other codecs": (lambda at: replaced(at, compressors=["gzip"]), StaleError, "gzip"),
    "a group": (lambda at: omnizarr.create_group(at, overwrite=True), ArrayNotFoundError, "a group"),
    "without a document": (lambda at: (at / "zarr.json").unlink(), ArrayNotFoundError, "not there any more"),
    "of garbage": (lambda at: (at / "zarr.json").write_bytes(b"garbage"), MetadataError, "not valid JSON"),
    "with a broken chunk": (lambda at: (at / "c/1").write_bytes(b"garbage"), ChunkError, "key 'c/1'"),
}


@pytest.mark.parametrize("has_been_read", [False, True])
@pytest.mark.parametrize("change", CHANGES)
def test_source_that_changes_is_an_error_that_names_it(joined, tmp_path, change, has_been_read):
    make, kind, said = CHANGES[change]
    if has_been_read:
        assert np.array_equal(joined[:], EXPECTED)
    make(tmp_path / "1")
    for read in (
        lambda: joined[:],
        lambda: joined[12:20],
        lambda: joined.astype("f4")[:],
        joined.lazy[::-1].read,
    ):
        with pytest.raises(kind, match=said) as caught:
            read()
        assert str(tmp_path / "1") in str(caught.value)
        assert caught.value.remedy


@pytest.mark.parametrize("change", CHANGES)
def test_sources_that_are_not_read_may_change(joined, tmp_path, change):
    CHANGES[change][0](tmp_path / "1")
    assert np.array_equal(joined[:10], EXPECTED[:10])
    assert np.array_equal(joined[25:], EXPECTED[25:])


def test_new_values_and_attributes_are_no_change(joined, tmp_path):
    array = omnizarr.open_array(tmp_path / "1")
    array[2] = -7
    array.attrs["units"] = "m"
    expected = EXPECTED.copy()
    expected[12] = -7
    assert np.array_equal(joined[:], expected)
    assert np.array_equal(pickle.loads(pickle.dumps(joined))[:], expected)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_source_that_may_not_be_read_any_more_is_an_error(joined, tmp_path):
    (tmp_path / "1/c/0").chmod(0)
    with pytest.raises(PermissionError, match="c/0"):
        joined[:]


@pytest.mark.parametrize("length", [5, 15])
def test_source_that_is_resized_in_this_process_is_an_error(length):
    arrays = [omnizarr.create_array({}, data=values(number)) for number in range(COUNT)]
    joined = omnizarr.stack(arrays)
    arrays[1].resize((length,))
    with pytest.raises(StaleError, match=rf"found shape \({length},\).* expected shape \(10,\)"):
        joined[:]


@pytest.mark.parametrize("is_far", [False, True], ids=["memory", "far"])
def test_source_that_goes_from_another_store_is_an_error(is_far):
    stores = [MemoryStore() for _ in range(COUNT)]
    if is_far:
        stores = [FaultyStore(store, concurrency=8) for store in stores]
    joined = omnizarr.concat([omnizarr.create_array(store, data=values(number)) for number, store in enumerate(stores)])
    assert np.array_equal(joined[:], EXPECTED)
    for key in list(stores[1].list()):
        stores[1].delete(key)
    with pytest.raises(ArrayNotFoundError, match="not there any more"):
        joined[:]
    assert np.array_equal(joined[:10], EXPECTED[:10])


def test_source_of_a_combined_group_that_changes_is_an_error_that_names_it(tmp_path):
    for number in range(COUNT):
        group = omnizarr.create_group(tmp_path / str(number))
        group.create_array("t", data=values(number), dimension_names=["time"])
    combined = omnizarr.combine([tmp_path / str(number) for number in range(COUNT)], "time")
    assert np.array_equal(combined["t"][:], EXPECTED)
    elsewhere(f"omnizarr.open_array({str(tmp_path / '1/t')!r}).resize((5,))")
    with pytest.raises(StaleError, match=r"found shape \(5,\)") as caught:
        combined["t"][:]
    assert str(tmp_path / "1") in str(caught.value)
    assert np.array_equal(combined["t"][:10], EXPECTED[:10])


def test_source_of_a_saved_view_that_changes_after_it_was_opened_is_an_error(joined, tmp_path):
    omnizarr.save_view(tmp_path / "v.zview", joined)
    view = omnizarr.open(tmp_path / "v.zview")
    assert np.array_equal(view[:], EXPECTED)
    elsewhere(f"omnizarr.open_array({str(tmp_path / '1')!r}).resize((15,))")
    with pytest.raises(StaleError, match=r"saved view has changed: found shape \(15,\)"):
        view[:]


def test_sources_that_hold_only_the_fill_value_are_read():
    arrays = [omnizarr.create_array({}, shape=(4,), dtype="f4", fill_value=np.nan) for _ in range(2)]
    assert np.isnan(omnizarr.concat(arrays)[:]).all()


def test_trees_of_many_levels_neither_recur_nor_change_values():
    conversions = chained = omnizarr.concat([np.arange(2000)])
    for number in range(1500):
        conversions = conversions.astype(("f4", "f8")[number % 2])
    assert np.array_equal(conversions[:], np.arange(2000))
    expected = np.arange(2000)
    begun = time.perf_counter()
    for number in range(1000):
        chained = omnizarr.stack([chained.lazy[1:]]).lazy[0]
        chained = omnizarr.concat([chained.astype(("f4", "f8")[number % 2]), [number]])
        expected = np.concatenate([expected[1:], [number]])
    assert time.perf_counter() - begun < 10  # a cost that follows the square of the depth took half a minute
    assert np.array_equal(chained[:], expected)
    assert np.array_equal(pickle.loads(pickle.dumps(chained))[:], expected)
    assert repr(chained)


def test_many_sources_are_read_in_part_at_a_cost_that_follows_what_is_read():
    source = np.arange(3)
    joined = omnizarr.concat([source] * 100_000)
    begun = time.perf_counter()
    assert joined[299_998] == 1
    assert joined[::150_000].tolist() == [0, 0]
    assert time.perf_counter() - begun < 2  # all of it takes a hundred times as long
