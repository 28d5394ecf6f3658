"""Selections of the same chunks, read together: a store that answers in Python is asked for each chunk once."""

from collections import Counter

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import omnizarr
from omnizarr.errors import ChunkError
from omnizarr.stores import FsspecStore

SHAPE = (64, 50)
KINDS = {
    "raw": {"chunks": (16, 25), "compressors": None},
    "zstd": {"chunks": (16, 25)},
    "shards": {"chunks": (4, 25), "shards": (16, 50)},
    "blosc of v2": {"chunks": (16, 25), "zarr_format": 2},
    "big-endian": {"chunks": (16, 25), "dtype": ">f4", "compressors": None},
}
ROWS = [np.s_[row] for row in range(0, 60, 3)]
MIXED = [np.s_[3:40:5, ::-7], np.s_[60, 49], (np.array([0, 63, 5]), slice(None)), np.s_[...], np.s_[10:12, 20:30]]


class Counting(MemoryFileSystem):
    """Files in memory, whose requests are counted."""

    protocol = "counting"
    cachable = False

    def __init__(self):
        super().__init__()
        self.requests = Counter()

    def cat_file(self, path, start=None, end=None, **options):
        self.requests[path] += 1
        return super().cat_file(path, start=start, end=end, **options)


@pytest.fixture(params=KINDS)
def array(request):
    options = {"dtype": "f4", **KINDS[request.param]}
    name = f"/{request.param}.zarr"
    made = omnizarr.create_array(FsspecStore(MemoryFileSystem(), name), shape=SHAPE, fill_value=7, **options)
    made[:48] = values()[:48]  # the last chunks are missing
    yield omnizarr.open_array(FsspecStore(Counting(), name))
    MemoryFileSystem().rm(name, recursive=True)


def values():
    found = np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE)
    found[48:] = 7
    return found


@pytest.mark.parametrize("selections", [ROWS, MIXED], ids=["rows", "mixed"])
@pytest.mark.parametrize("concurrency", [None, 1, 3])
def test_values_are_those_of_each_selection_by_itself(array, selections, concurrency):
    found = omnizarr.read_many([(array, each) for each in selections], concurrency=concurrency)
    for selection, part in zip(selections, found, strict=True):
        np.testing.assert_array_equal(part, values()[selection])


def test_elements_are_converted_for_each_selection(array):
    out = [np.empty(50, "f8"), None, np.empty(50, "c16")]
    found = omnizarr.read_many([(array, 1), (array, 2), (array, 1)], out=out)
    for row, part, dtype in zip((1, 2, 1), found, ("f8", array.dtype, "c16"), strict=True):
        np.testing.assert_array_equal(part, values()[row])
        assert part.dtype == dtype


def test_rows_of_a_chunk_need_the_requests_of_one(array):
    requests = array.store.fs.requests
    requests.clear()
    array[0:16]
    once = sum(requests.values())
    requests.clear()
    omnizarr.read_many([(array, row) for row in range(16)])
    assert sum(requests.values()) == once
    requests.clear()
    omnizarr.read_many([(array, (5, column)) for column in (0, 0, 1)])
    assert sum(requests.values()) <= (2 if array.shards is None else 3)  # of a shard, the index and an inner chunk


def test_a_broken_chunk_is_named(array):
    key = "c/0/0" if array.metadata.zarr_format == 3 else "0.0"
    array.store.set(key, b"\x01\x02\x03")
    with pytest.raises(ChunkError, match=key):
        omnizarr.read_many([(array, 0), (array, 1), (array, 40)])
