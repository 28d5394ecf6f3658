"""Writers of different fields of the same elements do not lose each other's values."""

import threading

import numpy as np
import pytest

import omnizarr
from omnizarr.stores import LocalStore, MemoryStore

pytestmark = pytest.mark.slow

RECORD = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "<u2", (3,))])
LENGTH = 200


def values_of(field):
    shape = (LENGTH, *RECORD[field].shape)
    return np.arange(np.prod(shape)).reshape(shape).astype(RECORD[field].base)


@pytest.mark.parametrize("layout", [{"chunks": (16,)}, {"chunks": (16,), "compressors": None}], ids=["zstd", "raw"])
@pytest.mark.parametrize("place", ["memory", "directory"])
def test_fields_written_side_by_side_are_all_there(place, layout, tmp_path):
    store = LocalStore(tmp_path) if place == "directory" else MemoryStore()
    omnizarr.create_array(store, shape=(LENGTH,), dtype=RECORD, zarr_format=2, **layout)

    def write(field):
        array = omnizarr.open_array(store)  # an object of its own
        for start in range(0, LENGTH, 7):
            array[field, start : start + 7] = values_of(field)[start : start + 7]

    writers = [threading.Thread(target=write, args=(field,)) for field in RECORD.names]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = omnizarr.open_array(store)[:]
    for field in RECORD.names:
        np.testing.assert_array_equal(found[field], values_of(field))


def test_field_of_what_is_not_stored_leaves_the_others_at_the_fill_value():
    store = MemoryStore()
    fill = np.array((7, 1.5, [1, 2, 3]), RECORD)
    array = omnizarr.create_array(store, shape=(LENGTH,), chunks=(16,), dtype=RECORD, fill_value=fill, zarr_format=2)
    array["b", 3:5] = [8, 9]
    expected = np.full(LENGTH, fill)
    expected["b"][3:5] = [8, 9]
    np.testing.assert_array_equal(array[:], expected)
    assert sum("zarray" not in key and "zattrs" not in key for key in store.list()) == 1
