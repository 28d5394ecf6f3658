"""What stands between the brackets of an array, held against zarr-python: what both take means the same."""

import itertools

import numpy as np
import pytest

import omnizarr_as_zarr as as_zarr

zarr = pytest.importorskip("zarr", minversion="3.1")

VALUES = np.arange(3 * 4 * 5).reshape(3, 4, 5)
KINDS = {
    "integer": lambda length: length - 1,
    "numpy integer": lambda length: np.int64(length - 2),
    "slice": lambda length: slice(1, length),
    "all": lambda _: slice(None),
    "list": lambda length: [0, length - 1],
    "array": lambda _: np.array([1, 0]),
    "mask": lambda length: np.arange(length) % 2 == 0,
    "list of booleans": lambda length: [number < 2 for number in range(length)],
}
SELECTIONS = [
    tuple(KINDS[kind](length) for kind, length in zip(kinds, VALUES.shape, strict=False))
    for count in (1, 2, 3)
    for kinds in itertools.product(KINDS, repeat=count)
]


def made(module):
    """Return an array in several chunks."""
    return module.create_array({}, data=VALUES, chunks=(2, 3, 2))


def taken_by_both(module_of_theirs, action):
    """Return what zarr-python and this package give for each selection that zarr-python takes."""
    for selection in SELECTIONS:
        try:
            expected = action(module_of_theirs, selection)
        except (IndexError, ValueError, TypeError, NotImplementedError):
            continue
        yield selection, expected, action(as_zarr, selection)


def test_selections_that_zarr_python_takes_select_the_same():
    array = {module: made(module) for module in (zarr, as_zarr)}
    compared = 0
    for selection, expected, found in taken_by_both(zarr, lambda module, selection: array[module][selection]):
        np.testing.assert_array_equal(found, expected, err_msg=repr(selection), strict=np.ndim(expected) > 0)
        compared += 1
    assert compared > 300


@pytest.mark.slow
def test_selections_that_zarr_python_takes_store_the_same():
    def stored(module, selection):
        array = made(module)
        array[selection] = -np.arange(1, 1 + np.size(array[selection])).reshape(np.shape(array[selection]))
        return array[...]

    compared = 0
    for selection, expected, found in taken_by_both(zarr, stored):
        np.testing.assert_array_equal(found, expected, err_msg=repr(selection))
        compared += 1
    assert compared > 300


@pytest.mark.parametrize(
    "selection",
    [(0, slice(None), [0, 1]), tuple(np.arange(length) < 2 for length in VALUES.shape)],
    ids=["a list behind a slice", "a mask for each dimension"],
)
def test_lists_select_as_oindex_where_numpy_would_do_otherwise(selection):
    array = made(as_zarr)
    np.testing.assert_array_equal(array[selection], array.oindex[selection])
    assert np.shape(array[selection]) != np.shape(VALUES[selection])


def test_lists_of_all_dimensions_select_as_in_numpy():
    selection = ([0, 2], [1, 1], [4, 0])
    np.testing.assert_array_equal(made(as_zarr)[selection], VALUES[selection])


def test_records_select_their_fields_with_lists():
    records = np.zeros((2, 3, 4), dtype=[("a", "i4"), ("b", "f4")])
    records["a"] = np.arange(24).reshape(2, 3, 4)
    array = as_zarr.create_array({}, data=records, chunks=(1, 2, 3))
    np.testing.assert_array_equal(array["a", 0, :, [0, 1]], records["a"][0][:, [0, 1]])
