"""`omnizarr.support.amounts`: numbers of bytes with units, wherever a public parameter is one."""

import numpy as np
import pytest

import omnizarr
from omnizarr import stores
from omnizarr.stores import CacheStore, MemoryStore
from omnizarr.support import amounts


@pytest.mark.parametrize(
    ("given", "number"), [("1", 1), ("2kB", 2000), ("2KiB", 2048), ("1 g", 10**9), ("3TiB", 3 << 40), (np.int64(7), 7)]
)
def test_bytes_have_units(given, number):
    assert amounts.nbytes(given) == number


@pytest.mark.parametrize("text", ["", "-1", "1.5GB", "lots", "1PB", "MB"])
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match="as in 500MB"):
        amounts.nbytes(text)


@pytest.fixture
def place(tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root.create_array("a", data=np.arange(24).reshape(4, 6), chunks=(2, 3), dimension_names=("y", "x"))
    return tmp_path / "x.zarr"


FUNCTIONS = {
    "digest": lambda at, most: omnizarr.digest(at, max_memory=most),
    "diff": lambda at, most: omnizarr.diff(at, at, max_memory=most),
    "stat": lambda at, most: omnizarr.stat(at, max_memory=most),
    "check": lambda at, most: omnizarr.check(at, max_memory=most),
    "convert": lambda at, most: omnizarr.convert(at, at.parent / "y.zarr", max_memory=most),
    "rechunk": lambda at, most: omnizarr.rechunk(at, at.parent / "z.zarr", chunks=(4, 6), max_memory=most),
    "pyramid": lambda at, most: omnizarr.pyramid(at / "a", at.parent / "p.zarr", levels=2, max_memory=most),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_max_memory_is_a_number_or_text(place, name):
    FUNCTIONS[name](place, "500MB")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("wrong", ["lots", "0", 0, -5])
def test_max_memory_without_sense_is_a_valueerror_that_names_it(place, name, wrong):
    with pytest.raises(ValueError, match=rf"max_memory={wrong!r}: expected "):
        FUNCTIONS[name](place, wrong)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_max_memory_of_another_type_is_a_typeerror_that_names_it(place, name):
    with pytest.raises(TypeError, match=r"max_memory=1\.5: expected a number of bytes, as in 500MB"):
        FUNCTIONS[name](place, 1.5)


def test_caches_and_stores_take_text():
    assert omnizarr.ChunkCache("2KiB").limit == 2048
    assert CacheStore(MemoryStore(), max_bytes="1MB").max_bytes == 10**6
    obstore = pytest.importorskip("obstore.store", reason="obstore is not installed")
    with pytest.raises(ValueError, match="max_value_bytes='lots'"):
        stores.ObjectStore(obstore.MemoryStore(), max_value_bytes="lots")


def test_settings_take_text(place):
    with omnizarr.config.set({"bytes_in_flight": "1GiB", "array.target_shard_size_bytes": "2MB"}) as config:
        assert config.get("bytes_in_flight") == 1 << 30
        assert config.get("array.target_shard_size_bytes") == 2_000_000
    array = omnizarr.open_array(place / "a", config={"chunk_cache": "10MB"})
    assert array.config.chunk_cache == 10**7
    for wrong in ("lots", -1, 1.5):
        with pytest.raises(ValueError, match="such as 500MB"):
            omnizarr.config.set({"bytes_in_flight": wrong})
