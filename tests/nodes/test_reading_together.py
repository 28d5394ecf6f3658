"""Many local arrays that are read by one call of the native engine: what reading one after the other returns."""

import shutil

import numpy as np
import pytest

import omnizarr
from omnizarr.engine import native
from omnizarr.errors import ArrayNotFoundError, ChunkError

KINDS = [
    {"chunks": (7,)},
    {"chunks": (40,), "compressors": None},
    {"chunks": (4,), "shards": (20,)},
    {"chunks": (13,), "zarr_format": 2},
    {"chunks": (40,), "dtype": ">i2"},
]


@pytest.fixture
def arrays(tmp_path):
    found = []
    for number in range(20):
        options = {"dtype": "f4", **KINDS[number % len(KINDS)]}
        place = {} if number % 7 == 3 else tmp_path / str(number)
        array = omnizarr.create_array(place, shape=(40,), fill_value=9, **options)
        array[: 40 - number] = np.arange(40 - number) + number
        found.append(array)
    return found


def expected(number):
    return np.where(np.arange(40) < 40 - number, np.arange(40) + number, 9)


@pytest.mark.parametrize("selection", [slice(None), slice(3, 33, 3), slice(None, None, -1), [0, 39, 5], 12], ids=repr)
@pytest.mark.parametrize("concurrency", [None, 1, 5])
def test_many_arrays_read_what_each_has(arrays, selection, concurrency):
    found = omnizarr.read_many([(array, selection) for array in arrays], concurrency=concurrency)
    for number, values in enumerate(found):
        np.testing.assert_array_equal(values, expected(number)[selection])


def test_joins_are_read_in_one_call_and_converted_in_it(arrays, monkeypatch):
    local = [array for array in arrays if array.shards is None]
    if not all(map(native.can_read_together, (array._bind().binding for array in local))):
        pytest.skip("the native engine is not in use")
    calls = []
    read_together = native.read_together

    def counted(jobs, concurrency=None):
        calls.append(len(jobs))
        read_together(jobs, concurrency)

    monkeypatch.setattr("omnizarr.engine.read_together", counted)
    monkeypatch.setattr("omnizarr.engine.read", lambda *_: pytest.fail("an array was read by itself"))
    view = omnizarr.concat(local).astype("f8")
    numbers = [number for number, array in enumerate(arrays) if array.shards is None]
    np.testing.assert_array_equal(view[...], np.concatenate([expected(number) for number in numbers]))
    assert calls == [len(local)]


def test_a_broken_chunk_is_named(arrays, tmp_path):
    (tmp_path / "5" / "c" / "1").write_bytes(b"broken")
    with pytest.raises(ChunkError, match=r"c/1"):
        omnizarr.read_many([(array, ...) for array in arrays])
    with pytest.raises(ChunkError, match=r"c/1"):
        omnizarr.concat([array for array in arrays if array.shards is None])[...]


def test_an_array_that_is_gone_is_an_error(arrays, tmp_path):
    shutil.rmtree(tmp_path / "11")
    with pytest.raises(ArrayNotFoundError, match="11"):
        omnizarr.read_many([(array, ...) for array in arrays])


def test_one_array_many_times_and_among_others(arrays):
    requests = [(array, slice(number)) for array in arrays[:3] for number in range(10)]
    for (array, selection), values in zip(requests, omnizarr.read_many(requests), strict=True):
        np.testing.assert_array_equal(values, array[selection])
