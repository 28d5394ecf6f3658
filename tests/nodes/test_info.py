"""What is stored of arrays, against what was written."""

import numpy as np
import pytest

import omnizarr
from omnizarr.nodes.wording import exact_size
from omnizarr.tools.describe import describe, walk

FORMATS = [1, 2, 3, "3-draft2019", "3-draft2020"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_counts_of_a_group_are_the_sum_of_its_arrays(zarr_format):
    root = omnizarr.create_group({}, zarr_format=zarr_format)
    root.create_array("a/x", shape=(4, 4), chunks=(2, 2), dtype="i4")[:2] = 1
    root.create_array("y", data=np.arange(8), chunks=(4,))
    arrays = [describe(node) for _, node in walk(root) if isinstance(node, omnizarr.Array)]
    assert (len(arrays), sum(one.stored for one in arrays), sum(one.expected for one in arrays)) == (2, 4, 6)
    assert sum(one.bytes_logical for one in arrays) == 4 * 16 + 8 * 8
    nbytes = {key: len(root.store.get(key)) for key in root.store.list()}
    of_groups = sum(nbytes.get(f"{path}{name}", 0) for path in ("", "a/") for name in (".zgroup", "zarr.json"))
    assert sum(one.bytes_stored for one in arrays) == sum(nbytes.values()) - of_groups


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_bytes_and_chunks_are_counted_wherever_the_format_keeps_them(zarr_format):
    values = {}
    if zarr_format == 1:  # which has no groups
        others = set()
        array = omnizarr.create_array(values, data=np.arange(8), chunks=(4,), zarr_format=1)
    else:
        root = omnizarr.create_group(values, zarr_format=zarr_format)
        others = {*values}
        array = root.create_array("a", data=np.arange(8), chunks=(4,))
    nbytes = sum(len(values[key]) for key in values.keys() - others)
    card = array.info_complete()
    assert array.nbytes_stored() == card.nbytes_stored == describe(array).bytes_stored == nbytes
    assert card.chunks_stored == describe(array).stored == array.nchunks_initialized == 2


def test_chunks_outside_the_shape_do_not_count():
    array = omnizarr.create_array({}, data=np.arange(4), chunks=(2,))
    array.store.set("c/9", b"")
    array.store.set("c/01", b"")
    assert array.info_complete().chunks_stored == 2


def test_array_of_unknown_type_counts_no_logical_bytes():
    array = omnizarr.create_array({}, shape=4, dtype="i4")
    document = {**array.documents()["zarr.json"], "data_type": "acme.decimal"}
    array.store.set("zarr.json", omnizarr.formats.documents.render(document))
    facts = describe(omnizarr.open(array.store))
    assert (facts.bytes_logical, facts.expected) == (None, 1)
    assert facts.to_json()["ratio"] is None


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0"), (1023, "1023"), (1024, "1024 (1.0K)"), (2**40 + 1, "1099511627777 (1.0T)")]
)
def test_sizes_on_cards_are_those_of_zarr_python(nbytes, text):
    assert exact_size(nbytes) == text
