"""Laws: an omnizarr array behaves as the NumPy array of the same values does.

Together these run well over 2,000 examples of selections and of sequences of changes, over random shapes, chunks,
shards, data types, both formats and both memory orders. NumPy computes what is expected.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import omnizarr
from omnizarr.stores import MemoryStore
from tests.fakes import FaultyStore
from tests.indexing.selections import advanced, stays_in_place

DTYPES = [
    "bool",
    "int8",
    "uint16",
    ">i4",
    "int64",
    "uint64",
    "float16",
    "float32",
    ">f8",
    "complex64",
    "M8[s]",
    "S3",
    "U2",
]
EXAMPLES = 400


@st.composite
def arrays(draw, min_dims=0, max_dims=3, min_side=0):
    """Draw NumPy values and an omnizarr array in memory that holds the same."""
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=max(min_side, 1), max_side=9)
                 if min_dims or draw(st.booleans()) else st.just(()))  # fmt: skip
    if min_side == 0 and shape and draw(st.integers(0, 9)) == 0:
        shape = (0, *shape[1:])
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    order = draw(st.sampled_from("CF"))
    zarr_format = draw(st.sampled_from(formats_for(shape, dtype, order)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = np.array(some_values(rng, shape, dtype))
    chunks = tuple(draw(st.integers(1, max(1, side) + 1)) for side in shape)
    options = {"order": order, "fill_value": np.zeros((), dtype)[()]}
    if zarr_format == 3 and shape and draw(st.booleans()):
        options["shards"] = tuple(chunk * draw(st.integers(1, 3)) for chunk in chunks)
    array = omnizarr.create_array(
        {}, shape=shape, chunks=chunks, dtype=dtype, zarr_format=zarr_format, compressors=None, **options
    )
    array[...] = values
    return values, array


def formats_for(shape, dtype, order):
    """Return the formats that can hold such an array without a compressor."""
    formats = [2, 3]
    if shape and order == "C":
        formats.append(1)
    if dtype.kind in "biufM":
        formats.append("3-draft2020")
    if dtype.kind in "bifcM" or dtype in ("u1", "<u4"):
        formats.append("3-draft2019")
    return formats


def some_values(rng, shape, dtype):
    """Return values of any type; about half of them zero, so that empty chunks occur."""
    octets = rng.integers(0, 120, size=(*shape, 2), dtype="u1")
    numbers = (octets[..., 0].astype("i4") * (octets[..., 1] > 60)).astype("i8")
    if dtype.kind == "b":
        return (numbers > 60).astype(dtype)
    if dtype.kind in "SU":
        return np.where(numbers == 0, "", np.char.mod("%d", numbers)).astype(dtype)
    return numbers.astype(dtype)


def basic_selections(shape, *, newaxis=True):
    max_dims = len(shape) + 2 if newaxis else len(shape)
    return hnp.basic_indices(shape, allow_newaxis=newaxis, allow_ellipsis=True, max_dims=max_dims)


def same(found, expected):
    found = np.asarray(found)
    assert found.shape == np.shape(expected)
    np.testing.assert_array_equal(found, expected)


def put(array, selection, value):
    array[selection] = value


@settings(max_examples=EXAMPLES)
@given(st.data(), arrays())
def test_basic_selection_reads_as_numpy(data, pair):
    values, array = pair
    selection = data.draw(basic_selections(values.shape))
    same(array[selection], values[selection])


@settings(max_examples=EXAMPLES)
@given(st.data(), arrays())
def test_basic_selection_writes_as_numpy(data, pair):
    values, array = pair
    selection = data.draw(basic_selections(values.shape, newaxis=False))
    rng = np.random.default_rng(0)
    value = some_values(rng, values[selection].shape, values.dtype)
    if data.draw(st.booleans()):
        value = some_values(rng, (), values.dtype)[()]  # broadcast
    put(array, selection, value)
    values[selection] = value
    same(array[...], values)


def axis_selection(side):
    return st.one_of(
        st.integers(-side, side - 1),
        st.slices(side),
        st.lists(st.integers(-side, side - 1), max_size=8).map(lambda some: np.array(some, dtype=np.intp)),
        hnp.arrays(np.bool_, side),
    )


def numpy_orthogonal(values, selection):
    """Select axis by axis, the last first, so that dropped axes do not move the others."""
    for axis in range(len(selection) - 1, -1, -1):
        values = values[(slice(None),) * axis + (selection[axis],)]
    return values


@settings(max_examples=EXAMPLES)
@given(st.data(), arrays(min_dims=1, min_side=1))
def test_orthogonal_selection_reads_as_numpy_axis_by_axis(data, pair):
    values, array = pair
    selection = tuple(data.draw(axis_selection(side)) for side in values.shape)
    same(array.oindex[selection], numpy_orthogonal(values, selection))


@settings(max_examples=EXAMPLES // 2)
@given(st.data(), arrays(min_dims=1, min_side=1))
def test_orthogonal_selection_writes_as_numpy_axis_by_axis(data, pair):
    values, array = pair
    selection = tuple(data.draw(axis_selection(side)) for side in values.shape)
    places = numpy_orthogonal(np.arange(values.size).reshape(values.shape), selection)
    value = some_values(np.random.default_rng(1), (), values.dtype)[()]
    array.oindex[selection] = value
    values.reshape(-1)[places] = value
    same(array[...], values)


@settings(max_examples=EXAMPLES)
@given(st.data(), arrays(min_dims=1, min_side=1))
def test_coordinate_selection_reads_and_writes_as_numpy(data, pair):
    values, array = pair
    shape = data.draw(hnp.array_shapes(max_dims=2, max_side=6))
    selection = tuple(
        data.draw(hnp.arrays(np.intp, shape, elements=st.integers(-side, side - 1))) for side in values.shape
    )
    same(array.vindex[selection], values[selection])
    value = some_values(np.random.default_rng(2), (), values.dtype)[()]
    array.vindex[selection] = value
    values[selection] = value
    same(array[...], values)


@settings(max_examples=EXAMPLES)
@given(st.data(), arrays(min_dims=1, min_side=1))
def test_mask_selection_reads_and_writes_as_numpy(data, pair):
    values, array = pair
    mask = data.draw(hnp.arrays(np.bool_, values.shape))
    same(array.get_mask_selection(mask), values[mask])
    value = some_values(np.random.default_rng(3), (int(mask.sum()),), values.dtype)
    array.set_mask_selection(mask, value)
    values[mask] = value
    same(array[...], values)


@settings(max_examples=2 * EXAMPLES)
@given(st.data(), arrays(min_dims=1, max_dims=4, min_side=1))
def test_arrays_among_slices_and_integers_read_and_write_as_numpy(data, pair):
    values, array = pair
    selection = data.draw(advanced(values.shape).filter(lambda some: not stays_in_place(some)))
    same(array[selection], values[selection])
    shape = values[selection].shape
    lengths = [1 if data.draw(st.integers(0, 3)) == 0 else length for length in shape]  # broadcast
    value = some_values(np.random.default_rng(5), tuple(lengths[data.draw(st.integers(0, len(shape))) :]), values.dtype)
    put(array, selection, value)
    values[selection] = value
    same(array[...], values)


@settings(max_examples=EXAMPLES // 4)
@given(st.data(), arrays(min_dims=1, max_dims=4, min_side=1))
def test_arrays_among_slices_fill_the_callers_array_whatever_its_layout(data, pair):
    values, array = pair
    selection = data.draw(advanced(values.shape).filter(lambda some: not stays_in_place(some)))
    out = np.empty(values[selection].shape, values.dtype, order=data.draw(st.sampled_from("CF")))
    (found,) = omnizarr.read_many([(array, selection)], out=[out])
    assert found is out
    same(out, values[selection])


@settings(max_examples=EXAMPLES // 4)
@given(st.data(), st.integers(0, 2**32 - 1))
def test_arrays_among_slices_change_one_field_as_numpy(data, seed):
    shape = data.draw(hnp.array_shapes(max_dims=3, max_side=6))
    values = np.zeros(shape, [("a", "i2"), ("b", "u1", (2,)), ("c", "f4")])
    array = omnizarr.create_array({}, data=values, chunks=tuple(-(-side // 2) for side in shape), zarr_format=2)
    selection = data.draw(advanced(shape).filter(lambda some: not stays_in_place(some)))
    places = np.arange(values.size).reshape(shape)[selection]
    for name in ("a", "b"):
        flat = values.reshape(-1)[name]
        value = np.random.default_rng(seed).integers(0, 99, flat[places].shape)
        array[(name, *selection)] = value
        flat[places] = value
        same(array[name], values[name])
        same(array[(name, *selection)], flat[places])


@settings(max_examples=EXAMPLES // 2)
@given(st.data(), arrays(min_dims=1, min_side=1))
def test_block_selection_reads_the_chunks_it_names(data, pair):
    values, array = pair
    chunks = array.chunks if array.shards is None else array.shards
    counts = [-(-side // chunk) for side, chunk in zip(values.shape, chunks, strict=True)]
    blocks = tuple(data.draw(st.integers(0, count - 1)) for count in counts)
    cut = tuple(slice(block * chunk, (block + 1) * chunk) for block, chunk in zip(blocks, chunks, strict=True))
    same(array.blocks[blocks], values[cut])


@settings(max_examples=EXAMPLES // 2)
@given(st.data(), arrays())
def test_reading_into_the_callers_array_fills_it_whatever_its_layout(data, pair):
    values, array = pair
    out = np.empty(values.shape, values.dtype, order=data.draw(st.sampled_from("CF")))
    array.get_basic_selection(..., out=out)
    same(out, values)


def resized(values, shape):
    """Return what resizing means: what is in both shapes stays, the rest is the fill value."""
    new = np.zeros(shape, values.dtype)
    both = tuple(slice(min(old, side)) for old, side in zip(values.shape, shape, strict=True))
    new[both] = values[both]
    return new


@settings(max_examples=EXAMPLES)
@given(st.data(), arrays(min_dims=1))
def test_sequences_of_resize_append_and_assignment_equal_numpy(data, pair):
    values, array = pair
    rng = np.random.default_rng(4)
    for step in data.draw(st.lists(st.sampled_from(["resize", "append", "assign", "reopen"]), max_size=6)):
        if step == "resize":
            shape = tuple(data.draw(st.integers(0, 12)) for _ in values.shape)
            array.resize(shape)
            values = resized(values, shape)
        elif step == "append":
            axis = data.draw(st.integers(0, values.ndim - 1))
            shape = list(values.shape)
            shape[axis] = data.draw(st.integers(0, 5))
            more = some_values(rng, tuple(shape), values.dtype)
            array.append(more, axis=axis)
            values = np.concatenate([values, more], axis=axis)
        elif step == "assign":
            selection = data.draw(basic_selections(values.shape, newaxis=False))
            value = some_values(rng, (), values.dtype)[()]
            put(array, selection, value)
            values[selection] = value
        else:
            array = omnizarr.open_array(array.store, mode="r+")
        assert array.shape == values.shape
        same(array[...], values)


@settings(max_examples=EXAMPLES // 2)
@given(arrays(min_dims=1, min_side=1))
def test_iteration_yields_what_numpy_yields(pair):
    values, array = pair
    assert len(array) == len(values)
    for found, expected in zip(array, values, strict=True):
        same(found, expected)


@pytest.mark.parametrize("selection", [[0, 1, 2, 3], slice(0, 4), np.array([True] * 4 + [False] * 5)], ids=str)
def test_list_slice_and_mask_of_the_same_rows_fetch_the_same_chunks(selection):
    store = FaultyStore(MemoryStore())
    array = omnizarr.create_array(store, shape=(9, 9), chunks=(2, 3), dtype="int32")
    array[...] = 1
    store.reset()
    assert array.oindex[selection, :].shape == (4, 9)
    assert [key for _, key in store.log] == [f"c/{i}/{j}" for i in range(2) for j in range(3)]
