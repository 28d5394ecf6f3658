"""Decoded chunks are kept where that saves decoding them again."""

import time

import numpy as np
import pytest

from omnizarr import ChunkCache
from omnizarr.netcdf import Dataset

SETTLED = 0.15
"""Seconds after which a file that was written can be told from one that will be."""


def variable_in(place, cache=None, **options):
    """A variable of 4 x 100 numbers in chunks of a row, in a dataset that keeps chunks in `cache`."""
    dataset = Dataset(place, "w", config=None if cache is None else {"chunk_cache": cache})
    dataset.createDimension("t")
    dataset.createDimension("x", 100)
    variable = dataset.createVariable("v", "i4", ("t", "x"), chunksizes=(1, 100), **options)
    variable[0:4] = np.arange(400).reshape(4, 100)
    dataset.sync()
    if cache is not None:
        time.sleep(SETTLED)
    return variable


@pytest.fixture(params=["directory", "memory"])
def place(request, tmp_path):
    return tmp_path / "d.zarr" if request.param == "directory" else {}


@pytest.mark.parametrize("options", [{"zlib": True}, {"fletcher32": True}], ids=str)
def test_chunks_that_are_encoded_are_kept(place, options):
    cache = ChunkCache(10_000)
    assert variable_in(place, cache, **options)[2, 5] == 205
    assert cache.nbytes == 400


@pytest.mark.parametrize("endian", ["little", "big"])
def test_chunks_that_are_stored_as_they_are_are_not_kept(place, endian):
    cache = ChunkCache(10_000)
    variable = variable_in(place, cache, endian=endian)
    assert variable[2, 5] == 205
    assert cache.nbytes == 0
    assert variable.get_var_chunk_cache()[0] == 0


def test_who_asks_for_a_cache_gets_one(place):
    variable = variable_in(place)
    variable.set_var_chunk_cache(4_000)
    assert variable[3, 5] == 305
    assert variable.get_var_chunk_cache()[0] == 4_000


def test_the_array_of_a_variable_is_as_long_as_the_variable(place):
    variable = variable_in(place)
    assert variable.array.shape == (4, 100)
    assert variable.array[3, 99] == 399
