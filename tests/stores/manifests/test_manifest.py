"""Columns of numbers and regular distances: where chunks lie."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import StoreError
from omnizarr.stores.manifests.manifest import NOT_STORED, Extent, Manifest, Strided, strided


def test_columns_take_at_most_24_bytes_per_chunk():
    numbers = np.arange(1000, dtype=np.uint64)
    small = np.zeros(1000, np.uint32)
    assert Manifest(numbers, numbers).nbytes == 16_000
    assert Manifest(numbers, numbers, small, small).nbytes == 24_000


def test_columns_are_not_copied_and_cannot_be_changed():
    numbers = np.arange(10, dtype=np.uint64)
    manifest = Manifest(numbers, numbers)
    assert np.shares_memory(manifest.offsets, numbers)
    assert numbers.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        manifest.offsets[0] = 1
    with pytest.raises(AttributeError, match="does not change"):
        manifest.offsets = numbers


def test_a_chunk_is_found_by_its_number():
    manifest = Manifest([10, 0, 30], [1, NOT_STORED, 0], [0, 0, 2], [0, 0, 5])
    assert manifest.find(0) == Extent(0, 10, 1)
    assert manifest.find(1) is None
    assert manifest.find(2) == Extent(2, 30, 0, 5)
    assert list(manifest.stored()) == [0, 2]
    assert manifest.most_files == 3
    assert manifest.masks() == [5]
    again = pickle.loads(pickle.dumps(manifest))
    assert [again.find(number) for number in range(3)] == [manifest.find(number) for number in range(3)]


@pytest.mark.parametrize(
    ("offsets", "lengths"), [([2**63 - 1], [1]), ([2**64 - 2], [1]), ([5], [2**64 - 2]), ([2**64 - 1], [2**63])]
)
def test_a_chunk_cannot_end_beyond_all_files(offsets, lengths):
    with pytest.raises(StoreError, match="beyond"):
        Manifest(offsets, lengths)


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(StoreError, match="different lengths"):
        Manifest([1, 2], [1])
    with pytest.raises(StoreError, match="different lengths"):
        Manifest([1, 2], [1, 2], [0])


@pytest.mark.parametrize("column", [np.array([1.5]), np.array([-1]), np.array([True])])
def test_columns_are_integers(column):
    with pytest.raises(TypeError, match="integers"):
        Manifest(column, [1])


shapes = st.lists(st.integers(1, 9), max_size=4).map(tuple)


@given(shapes, st.sampled_from([1, 4, 8]), st.integers(0, 100), st.integers(0, 200) | st.none(), st.integers(1, 400))
def test_chunks_of_undivided_data_are_where_its_elements_are(shape, itemsize, start, gap, most):
    # Told by NumPy: the addresses of all elements, with records `gap` bytes apart.
    record = int(np.prod(shape[1:], dtype=int)) * itemsize
    stride = None if gap is None or not shape else record + gap
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("omnizarr.stores.manifests.manifest._MOST_BYTES", most)
        chunks, manifest = strided(shape, itemsize, start, stride)
    inner = [int(np.prod(shape[axis + 1 :], dtype=int)) * itemsize for axis in range(len(shape))]
    strides = [stride, *inner[1:]] if stride else inner
    addresses = np.full(shape, start) + sum(
        np.arange(length).reshape([-1 if axis == at else 1 for axis in range(len(shape))]) * step
        for at, (length, step) in enumerate(zip(shape, strides, strict=True))
    )
    grid = tuple(-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True))
    assert manifest.grid == grid
    nbytes = int(np.prod(chunks, dtype=int)) * itemsize
    for number, coords in enumerate(itertools.product(*map(range, grid))):
        extent = manifest.find(number)
        assert extent.size == nbytes
        box = tuple(slice(at * chunk, (at + 1) * chunk) for at, chunk in zip(coords, chunks, strict=True))
        expected = (addresses[box].reshape(-1, 1) + np.arange(itemsize)).ravel()
        found = np.arange(extent.length) + np.arange(extent.parts)[:, np.newaxis] * extent.stride + extent.offset
        assert found.ravel().tolist() == expected.tolist()
    assert manifest.end == addresses.max() + itemsize


def test_large_data_is_divided_into_chunks_of_a_few_megabytes():
    for shape in [(10**9,), (7, 3, 10**6), (2, 2, 2, 10**7), (10**6, 3)]:
        chunks, manifest = strided(shape, 4, 0)
        assert 2**20 < np.prod(chunks) * 4 <= 2**22
        assert manifest.end == np.prod(shape) * 4


def test_records_far_apart_are_chunks_of_their_own():
    chunks, _ = strided((1000, 2), 8, 0, stride=10**6)
    assert chunks == (1, 2)
    chunks, _ = strided((1000, 2), 8, 0, stride=100)
    assert chunks == (1000, 2)


def test_an_array_that_claims_to_be_longer_than_its_file_lists_no_more_chunks_than_that_has():
    _, manifest = strided((2**62,), 1, 100)
    assert manifest.count > 2**39
    assert len(list(manifest.stored([10_000_000]))) == 3
    with pytest.raises(StoreError, match="beyond"):
        strided((2**62,), 4, 0)


def test_no_elements_are_no_chunks():
    for shape in [(0,), (0, 3), (3, 0)]:
        chunks, manifest = strided(shape, 4, 100)
        assert min(chunks) >= 1
        assert list(manifest.stored()) == []
        assert manifest.end == 100


def test_a_strided_manifest_is_as_small_when_it_is_pickled():
    _, manifest = strided((10**9, 10), 8, 0)
    assert pickle.loads(pickle.dumps(manifest)) == manifest
    assert len(pickle.dumps(manifest)) < 300
    assert isinstance(manifest, Strided)
