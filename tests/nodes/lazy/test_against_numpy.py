"""Lazy arrays against NumPy: any chain of selections, conversions and joins, on sources of any kind."""

import itertools
import math
import pickle

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import omnizarr
from omnizarr.errors import SelectionError
from tests.indexing.selections import advanced, stays_in_place

SOURCES = ("v2", "v3", "sharded", "numpy", "dask")


@st.composite
def a_source(draw, shape=None, dtypes=("i4", "f4", "i8")):
    """A lazy array with one source, and the NumPy array that it has to equal."""
    shape = draw(st.lists(st.integers(1, 6), max_size=3).map(tuple)) if shape is None else shape
    kind = draw(st.sampled_from(SOURCES))
    values = np.arange(math.prod(shape)).reshape(shape).astype(draw(st.sampled_from(dtypes)))
    values += draw(st.integers(0, 3)) * 100
    if kind == "numpy":
        return omnizarr.concat([values]) if shape else omnizarr.stack([values]).lazy[0], values
    chunks = tuple(draw(st.integers(1, n + 1)) for n in shape)
    if kind == "dask":
        import dask.array

        source = dask.array.from_array(values, chunks=tuple(min(c, n) for c, n in zip(chunks, shape, strict=True)))
        return omnizarr.stack([source]).lazy[0], values
    options = {"shards": tuple(2 * c for c in chunks)} if kind == "sharded" and shape else {}
    zarr_format = 2 if kind == "v2" else 3
    return omnizarr.create_array({}, data=values, chunks=chunks, zarr_format=zarr_format, **options).lazy[...], values


def one_by_one(array, selection):
    """Select along one axis after the other, as orthogonal selections do."""
    for axis in reversed(range(array.ndim)):
        array = array[(slice(None),) * axis + (selection[axis],)]
    return array


@st.composite
def a_selection(draw, view, expected):
    """One more selection, on both."""
    shape = expected.shape
    kinds = ["basic", "advanced", "advanced", "orthogonal", "mask", "vindex"]
    kind = draw(st.sampled_from(kinds)) if shape and all(shape) else "basic"
    if kind == "basic":
        selection = draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True, max_dims=4))
    elif kind == "advanced":
        selection = draw(advanced(shape).filter(lambda each: not stays_in_place(each)))
    elif kind == "mask":
        selection = draw(hnp.arrays(bool, shape))
    elif kind == "orthogonal":
        lists = [np.array(draw(st.lists(st.integers(-n, n - 1), max_size=4)), np.int64) for n in shape]
        selection = tuple(slice(None, None, -2) if draw(st.booleans()) else each for each in lists)
        return view.lazy.oindex[selection], one_by_one(expected, selection)
    else:
        shapes = draw(hnp.mutually_broadcastable_shapes(num_shapes=len(shape), max_dims=2, max_side=3)).input_shapes
        points = tuple(
            draw(hnp.arrays(np.int64, each, elements=st.integers(-n, n - 1)))
            for each, n in zip(shapes, shape, strict=True)
        )
        return view.lazy.vindex[points], expected[points]
    return view.lazy[selection], expected[selection]


@st.composite
def a_shape_of(draw, size):
    """A shape with this number of elements: its factors in any order, some of them merged."""
    if not size:
        return draw(st.permutations([0, *draw(st.lists(st.integers(1, 3), max_size=2))]).map(tuple))
    factors = [1] * draw(st.integers(0, 1))
    while size > 1:
        factors.append(next(n for n in range(2, size + 1) if size % n == 0))
        size //= factors[-1]
    lengths = []
    for factor in draw(st.permutations(factors)):
        if lengths and draw(st.booleans()):
            lengths[-1] *= factor
        else:
            lengths.append(factor)
    while len(lengths) > 5:
        lengths[-2:] = [lengths[-2] * lengths[-1]]
    return tuple(lengths)


@st.composite
def a_change(draw, view, expected):
    """One more operation that keeps all elements, on both."""
    shape = expected.shape
    kind = draw(st.sampled_from(["transpose", "newaxis", "broadcast", "astype", "squeeze", "reshape", "reshape"]))
    if kind == "transpose":
        axes = draw(st.permutations(range(len(shape))))
        return view.transpose(axes), expected.transpose(axes)
    if kind == "astype":
        dtype = draw(st.sampled_from(["f8", "i8"]))
        return view.astype(dtype), expected.astype(dtype)
    if kind == "broadcast":
        wanted = (draw(st.integers(1, 2)), *(draw(st.sampled_from([1, 3])) if n == 1 else n for n in shape))
        return view.broadcast_to(wanted), np.broadcast_to(expected, wanted)
    if kind == "reshape":
        wanted = draw(a_shape_of(expected.size))
        return view.reshape(wanted), expected.reshape(wanted)
    place = draw(st.integers(0, len(shape)))
    wanted = (*shape[:place], 1, *shape[place:]) if kind == "newaxis" else tuple(n for n in shape if n != 1)
    return view.reshape(wanted), expected.reshape(wanted)


@st.composite
def a_join(draw, view, expected):
    """One more join with another source, on both."""
    shape = expected.shape
    other, values = draw(a_source(shape)) if all(shape) else (np.zeros(shape), np.zeros(shape))
    if not shape or draw(st.booleans()):
        axis = draw(st.integers(0, len(shape)))
        return omnizarr.stack([view, other], axis), np.stack([expected, values], axis)
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return omnizarr.concat([view, other, view], axis), np.concatenate([expected, values, expected], axis)


@pytest.mark.parametrize(
    "selection",
    [
        (None, [0, 1], Ellipsis, [0, 1]),
        (None, [[0], [1]], Ellipsis, [0, 1]),
        (None, 0, Ellipsis, [[0, 1]]),
        (None, [0, 1], [0, 1], Ellipsis),
        (Ellipsis, None, [0, 1], [0, 1]),
    ],
)
def test_ellipsis_between_lists_keeps_them_apart_even_if_it_means_no_axis(selection):
    values = np.arange(12).reshape(3, 4)
    view = omnizarr.create_array({}, data=values).lazy[selection]
    assert view.shape == values[selection].shape
    np.testing.assert_array_equal(view[...], values[selection])


def a_step(view, expected):
    """One more operation, on both."""
    return a_selection(view, expected) | a_change(view, expected) | a_join(view, expected)


@given(st.data())
@settings(max_examples=400)
def test_chain_of_operations_reads_what_numpy_has(data):
    view, expected = data.draw(a_source())
    for _ in range(data.draw(st.integers(1, 5))):
        view, expected = data.draw(a_step(view, expected))
        assert (view.shape, view.dtype, view.ndim, view.size) == (
            expected.shape,
            expected.dtype,
            expected.ndim,
            expected.size,
        )
        if expected.size > 4000 or expected.ndim > 7:
            break
    np.testing.assert_array_equal(view.read(), expected)
    selection = data.draw(hnp.basic_indices(expected.shape, max_dims=expected.ndim))
    np.testing.assert_array_equal(view[selection], expected[selection])


@given(st.data())
@settings(max_examples=100)
def test_out_of_any_strides_is_filled(data):
    view, expected = data.draw(a_source())
    for _ in range(data.draw(st.integers(0, 2))):
        view, expected = data.draw(a_step(view, expected))
    axes = data.draw(st.permutations(range(expected.ndim)))
    memory = np.full([2 * expected.shape[axis] for axis in axes], 7, data.draw(st.sampled_from([view.dtype, "f8"])))
    out = memory[(*(slice(None, None, -2),) * expected.ndim, ...)].transpose(np.argsort(axes))
    assert view.read(out=out) is out
    np.testing.assert_array_equal(out, expected)
    assert np.count_nonzero(memory != 7) <= expected.size


@given(st.data())
@settings(max_examples=100)
def test_pickled_array_is_the_same(data):
    view, expected = data.draw(a_source())
    for _ in range(data.draw(st.integers(0, 3))):
        view, expected = data.draw(a_step(view, expected))
    again = pickle.loads(pickle.dumps(view))
    assert (again.shape, again.dtype, again.dimension_names) == (view.shape, view.dtype, view.dimension_names)
    np.testing.assert_array_equal(again.read(), expected)


@given(st.data())
@settings(max_examples=300)
def test_selections_that_numpy_refuses_are_refused(data):
    view, expected = data.draw(a_source())
    selection = data.draw(advanced(expected.shape, faults=True))
    try:
        expected[selection]
    except (IndexError, DeprecationWarning):
        with pytest.raises(SelectionError):
            view.lazy[selection]


@given(st.data())
@settings(max_examples=200)
def test_written_view_changes_what_numpys_view_changes(data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple))
    expected = np.arange(math.prod(shape)).reshape(shape)
    array = omnizarr.create_array({}, data=expected, chunks=tuple(data.draw(st.integers(1, n)) for n in shape))
    first = data.draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=False, max_dims=4))
    view, numpys = array.lazy[first], expected[(*first, ...) if isinstance(first, tuple) else (first, ...)]
    axes = data.draw(st.permutations(range(numpys.ndim)))
    view, numpys = view.transpose(axes), numpys.transpose(axes)
    second = data.draw(hnp.basic_indices(numpys.shape, max_dims=numpys.ndim))
    value = data.draw(st.sampled_from([-1, -np.arange(numpys[second].size).reshape(numpys[second].shape)]))
    view[second] = value
    numpys[second] = value
    np.testing.assert_array_equal(array[...], expected)


def test_selecting_step_by_step_reads_the_chunks_of_one_selection(tmp_path):
    from omnizarr.stores import LocalStore, MetricsStore

    omnizarr.create_array(tmp_path / "a", data=np.arange(10_000).reshape(100, 100), chunks=(10, 10))
    store = MetricsStore(LocalStore(tmp_path / "a"))
    array = omnizarr.open_array(store)

    def requests(read):
        store.reset()
        return read(), store.report().total.requests

    lazily, some = requests(lambda: array.lazy[10:50].lazy[:, 5:25].lazy[::-1][3:12])
    at_once, same = requests(lambda: array[10:50, 5:25][::-1][3:12])
    np.testing.assert_array_equal(lazily, at_once)
    directly, fewest = requests(lambda: array[46:37:-1, 5:25])
    np.testing.assert_array_equal(lazily, directly)
    assert some == fewest < same


def test_composing_reads_nothing(tmp_path):
    array = omnizarr.create_array(tmp_path / "a", shape=(4, 4), chunks=(2, 2), dtype="i4")
    (tmp_path / "a" / "c" / "0").mkdir(parents=True)
    (tmp_path / "a" / "c" / "0" / "0").write_bytes(b"broken")
    view = omnizarr.concat([array, array.lazy[::-1]]).lazy[1:, [0, 3]].transpose().astype("f8")
    assert view.shape == (2, 7)
    repr(view), view._repr_html_(), view.chunks, view.attrs, len(view)
    with pytest.raises(omnizarr.errors.ChunkError):
        view[...]


@pytest.mark.parametrize("axis", range(3))
def test_deep_trees_read_print_and_pickle(axis):
    values = np.arange(8).reshape(2, 2, 2)
    view, expected = omnizarr.create_array({}, data=values).lazy[...], values
    for number in range(1200):
        # Reversed each time, so that joins cannot be merged.
        view = omnizarr.concat([view.lazy[::-1, ::-1, ::-1].astype("i8"), np.full((2, 2, 2), number)], axis)
        view = view.lazy[tuple(slice(-2, None) if each == axis else slice(None) for each in range(3))]
        expected = np.concatenate([expected[::-1, ::-1, ::-1], np.full((2, 2, 2), number)], axis)
        expected = expected[tuple(slice(-2, None) if each == axis else slice(None) for each in range(3))]
    np.testing.assert_array_equal(view.read(), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(view)).read(), expected)
    assert len(repr(view).splitlines()) < 80
    assert view.attrs == {}
    assert view.unpack().shape == view.shape
    assert len(view.chunks) == 3


def test_every_order_of_a_small_transposition_is_its_own():
    values = np.arange(24).reshape(2, 3, 4)
    array = omnizarr.create_array({}, data=values, chunks=(1, 2, 3))
    for axes in itertools.permutations(range(3)):
        np.testing.assert_array_equal(array.lazy.transpose(axes)[...], values.transpose(axes))
        np.testing.assert_array_equal(array.lazy.transpose(*[axis - 3 for axis in axes])[...], values.transpose(axes))


@pytest.mark.parametrize(
    "values",
    [
        np.array([3 - 4j, 1j], "c16"),
        np.array([3 - 4j, 1j], "c8"),
        np.array(["2026-01-01", "NaT"], "M8[D]"),
        np.array([1, 2], "m8[s]"),
        np.array(["a", "bc"]),
        np.array([(1, 2.5)], "i4,f8"),
    ],
    ids=lambda values: values.dtype.str,
)
def test_unpacking_loses_nothing_of_what_is_never_packed(values):
    array = omnizarr.create_array({}, data=values)
    for found in (array.lazy.unpack()[...], omnizarr.concat([array, array]).unpack()[: len(values)]):
        assert found.tolist() == values.tolist()
        assert found.dtype.kind == array.dtype.kind


def test_missing_complex_numbers_are_nan():
    array = omnizarr.create_array({}, data=np.array([3 - 4j, -9]), attributes={"missing_value": -9})
    found = array.lazy.unpack()[...]
    assert found[0] == 3 - 4j
    assert np.isnan(found[1])
