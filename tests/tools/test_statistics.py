"""`omnizarr.tools.statistics`."""

import math

import numpy as np
import pytest

import omnizarr
from omnizarr.tools.statistics import info_complete


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_counts_of_a_group_are_the_sum_of_its_arrays(zarr_format):
    root = omnizarr.create_group({}, zarr_format=zarr_format)
    root.create_array("a/x", shape=(4, 4), chunks=(2, 2), dtype="i4")[:2] = 1
    root.create_array("y", data=np.arange(8), chunks=(4,))
    statistics = info_complete(root)
    assert (statistics.arrays, statistics.chunks_stored, statistics.chunks_expected) == (2, 4, 6)
    assert statistics.bytes_logical == 4 * 16 + 8 * 8
    assert statistics.bytes_stored == sum(len(root.store.get(key)) for key in root.store.list())
    assert statistics.ratio == statistics.bytes_logical / statistics.bytes_stored


def test_chunks_outside_the_shape_do_not_count():
    array = omnizarr.create_array({}, data=np.arange(4), chunks=(2,))
    array.store.set("c/9", b"")
    array.store.set("c/01", b"")
    assert info_complete(array).chunks_stored == 2


def test_array_of_unknown_type_counts_no_logical_bytes():
    array = omnizarr.create_array({}, shape=4, dtype="i4")
    document = {**array.documents()["zarr.json"], "data_type": "acme.decimal"}
    array.store.set("zarr.json", omnizarr.formats.documents.render(document))
    statistics = info_complete(omnizarr.open(array.store))
    assert (statistics.bytes_logical, statistics.chunks_expected) == (0, 1)
    assert statistics.ratio == 0


def test_ratio_of_nothing_is_nan():
    assert math.isnan(omnizarr.tools.statistics.Statistics(0, 0, 0, 0, 0).ratio)
