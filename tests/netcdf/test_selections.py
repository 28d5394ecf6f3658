"""What stands in ``variable[...]`` means what it means to netCDF4-python, and else what NumPy says."""

from contextlib import contextmanager

import netCDF4
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omnizarr.errors import BoundsCheckError, SelectionError, ShapeError
from omnizarr.netcdf.selections import for_reading, for_writing, is_basic, takes_last_whole

FILL = -2147483647


@contextmanager
def netcdf_variable(shape, unlimited, type_="i4"):
    """A variable of netCDF4-python, in memory, that holds 0, 1, 2, ..."""
    with netCDF4.Dataset("selections.nc", "w", diskless=True, persist=False) as dataset:
        names = tuple(f"d{number}" for number in range(len(shape)))
        for name, length, grows in zip(names, shape, unlimited, strict=True):
            dataset.createDimension(name, None if grows else length)
        # A variable along the dimension alone gives it its length, though others have none.
        for name, length, grows in zip(names, shape, unlimited, strict=True):
            if grows and length:
                dataset.createVariable(f"along_{name}", "i1", (name,))[:] = np.zeros(length)
        variable = dataset.createVariable("v", type_, names)
        variable.set_auto_maskandscale(False)
        if 0 not in shape:
            variable[...] = numbered(shape)
        yield variable


def numbered(shape):
    return np.arange(np.prod(shape, dtype=int), dtype="i4").reshape(shape)


def taken(data, picked):
    """What `Array.oindex` gives, with NumPy's own indexing."""
    for axis, selector in enumerate(picked.selection):
        data = data[(slice(None),) * axis + (selector,)]
    assert data.shape == picked.lengths
    return data.reshape(picked.shape)


def written(data, picked, values):
    """An array after `Array.oindex[...] = values`, with NumPy's own indexing."""
    grown = np.full(picked.grown, FILL, "i4")
    grown[tuple(map(slice, data.shape))] = data
    values = picked.fit(np.asarray(values))
    if values.size:
        places = [np.arange(n)[each] for n, each in zip(grown.shape, picked.selection, strict=True)]
        grown[np.ix_(*places)] = values
    return grown


def elements(variable):
    """What a variable of netCDF4-python holds, read one by one: netCDF-C 4.10.1 mixes up what it reads at once from
    beyond the end of what is stored, if an unlimited dimension is not the first."""
    return np.array([variable[place] for place in np.ndindex(variable.shape)], "i4").reshape(variable.shape)


def bounds(size):
    return st.none() | st.integers(-size - 2, size + 3)


def slices(size):
    return st.builds(slice, bounds(size), bounds(size), st.sampled_from([None, 1, 1, 2, 3, -1, -2]))


def items(size, *, beyond=0):
    """Selectors of a dimension."""
    end = size + beyond
    kinds = [slices(size)]
    if end:
        within = st.integers(-size, end - 1)
        kinds += [
            within,
            within.map(np.int16),
            within.map(float),
            st.lists(within, min_size=1, max_size=5),
            st.lists(within, min_size=1, max_size=5, unique=True).map(sorted).map(tuple),
            st.lists(within, max_size=5).map(lambda each: np.array(each, "i8")),
        ]
    if size:
        kinds.append(st.lists(st.booleans(), min_size=size, max_size=size).map(np.array))
    return st.one_of(kinds)


@st.composite
def selections(draw, shape, beyond=None):
    beyond = beyond or (0,) * len(shape)
    number = draw(st.integers(0, len(shape)))
    dots = draw(st.none() | st.integers(0, number))
    if dots is None:
        chosen = [draw(items(n, beyond=b)) for n, b in zip(shape[:number], beyond, strict=False)]
    else:
        rest = len(shape) - number
        chosen = [draw(items(n, beyond=b)) for n, b in zip(shape[:dots], beyond, strict=False)]
        chosen.append(Ellipsis)
        chosen += [draw(items(n, beyond=b)) for n, b in zip(shape[dots + rest :], beyond[dots + rest :], strict=True)]
    alone = len(chosen) == 1 and not isinstance(chosen[0], tuple) and draw(st.booleans())
    return chosen[0] if alone else tuple(chosen)


@st.composite
def variables(draw, min_dims=0):
    shape = draw(st.lists(st.integers(0, 5), min_size=min_dims, max_size=3))
    return tuple(shape), tuple(n == 0 or draw(st.booleans()) for n in shape)


# -- reading ------------------------------------------------------------------------


@given(st.data())
def test_reads_what_netcdf4_reads(data):
    shape, unlimited = data.draw(variables())
    elem = data.draw(selections(shape))
    with netcdf_variable(shape, unlimited) as variable:
        expected = np.asarray(variable[elem])
    result = taken(numbered(shape), for_reading(elem, shape))
    assert result.shape == expected.shape
    assert np.array_equal(result, expected)


@given(st.data())
def test_basic_selections_mean_the_same_to_numpy(data):
    shape, _ = data.draw(variables(min_dims=1))
    elem = data.draw(selections(shape))
    assume(is_basic(elem))
    assert np.array_equal(numbered(shape)[elem], taken(numbered(shape), for_reading(elem, shape)))


REFUSED = {
    "too large": (5, (5,)),
    "too small": (-6, (5,)),
    "too large in a list": ([0, 5], (5,)),
    "too small in an array": (np.array([-6]), (5,)),
    "too large beside nothing": ((slice(0, 0), 3), (5, 3)),
    "two ellipses": ((..., ...), (5, 3)),
    "too many": ((0, 0, 0), (5, 3)),
    "too many with an ellipsis": ((0, ..., 0, 0), (5, 3)),
    "mask too short": (np.array([True, False]), (5,)),
    "mask too long": ([True] * 6, (5,)),
    "mask of the whole shape": (np.ones((5, 3), bool), (5, 3)),
    "array of two dimensions": (np.zeros((2, 2), int), (5, 3)),
    "newaxis": (None, (5,)),
    "newaxis beside a slice": ((slice(None), None), (5,)),
    "fraction": (0.5, (5,)),
    "NaN": (float("nan"), (5,)),
    "infinity": (float("inf"), (5,)),
    "fractions": ([0.5, 1.0], (5,)),
    "array of floats": (np.array([0.0, 1.0]), (5,)),
    "text": ("x", (5,)),
    "bytes": (b"x", (5,)),
    "complex": (1j, (5,)),
    "object": (object(), (5,)),
    "dates": (np.array(["2000-01-01"], "M8[D]"), (5,)),
    "step zero": (slice(None, None, 0), (5,)),
    "slice of text": (slice("a", None), (5,)),
    "slice of fractions": (slice(0.5, 2), (5,)),
    "a scalar's second": (-2, ()),
    "two of a scalar": ((0, 0), ()),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_netcdf4_refuses_to_read_is_refused(case):
    elem, shape = REFUSED[case]
    with netcdf_variable(shape, (False,) * len(shape)) as variable, pytest.raises((IndexError, ValueError, TypeError)):
        variable[elem]
    with pytest.raises(SelectionError):
        for_reading(elem, shape)


@pytest.mark.parametrize("elem", [5, -6, [0, 5], [-6], np.uint64(2**64 - 1), np.array([2**64 - 1], "u8")], ids=str)
def test_an_index_outside_is_a_bounds_check_error(elem):
    with pytest.raises(BoundsCheckError) as caught:
        for_reading(elem, (5,))
    assert caught.value.expected == "-5 to 4"


@pytest.mark.parametrize("elem", [..., (), slice(None), 0, -1, [0], slice(0, 1), slice(None, None, -1), 0.0], ids=str)
def test_scalars_are_selected_as_netcdf4_does(elem):
    with netcdf_variable((), ()) as variable:
        assert np.asarray(variable[elem]) == 0
    assert for_reading(elem, ()) == ((), (), (), ())


@pytest.mark.parametrize("elem", [slice(0, 0), [0, 0], [], np.array([False])], ids=str)
def test_none_or_two_of_a_scalar_are_refused(elem):
    with pytest.raises(SelectionError, match="one value"):
        for_reading(elem, ())


@pytest.mark.parametrize("elem", ["3", b"-1", True, np.bool_(False), np.array(2), np.float32(4), range(1, 4)], ids=str)
def test_other_kinds_of_integers_are_taken_as_netcdf4_does(elem):
    with netcdf_variable((5,), (False,)) as variable:
        expected = np.asarray(variable[elem])
    assert np.array_equal(taken(numbered((5,)), for_reading(elem, (5,))), expected)


@pytest.mark.parametrize(
    "elem", [[], (), [[]][0], np.array([], "u1"), np.array([2, 1], "u8"), np.array([4], "u2")], ids=str
)
def test_empty_lists_and_unsigned_integers_select_as_in_numpy(elem):
    assert np.array_equal(taken(numbered((5, 2)), for_reading(elem, (5, 2))), numbered((5, 2))[elem])


def test_what_is_masked_in_a_mask_is_not_selected():
    mask = np.ma.masked_array([True, True, False], [False, True, False])
    assert for_reading(mask, (3,)).selection[0].tolist() == [0]


def test_masked_integers_are_no_indices():
    with pytest.raises(SelectionError, match="masked"):
        for_reading(np.ma.masked_array([0, 1], [False, True]), (3,))
    assert for_reading(np.ma.masked_array([2, 1], [False, False]), (3,)).selection[0].tolist() == [2, 1]


def test_slices_have_explicit_bounds():
    picked = for_reading((slice(None), slice(None, None, -2), slice(9, 2), -1), (3, 5, 4, 2))
    assert picked.selection == (slice(0, 3, 1), slice(4, None, -2), slice(0, 0, 1), slice(1, 2, 1))
    assert picked.lengths == (3, 3, 0, 1)
    assert picked.shape == (3, 3, 0)


@pytest.mark.parametrize(
    ("elem", "basic"),
    [
        (0, True),
        (..., True),
        ((), True),
        ((0, slice(1), ...), True),
        (True, False),
        ([0], False),
        ((0, [0]), False),
        (np.int64(0), False),
        (None, False),
        ("0", False),
        ((0.0,), False),
    ],
    ids=str,
)
def test_only_integers_slices_and_ellipsis_are_basic(elem, basic):
    assert is_basic(elem) is basic


@given(st.data())
def test_characters_make_strings_where_netcdf4_makes_them(data):
    shape, _ = data.draw(variables(min_dims=1))
    shape = (*shape[:-1], shape[-1] + 2)  # with one or none, netCDF4-python takes other dimensions for the last
    elem = data.draw(selections(shape))
    with netcdf_variable(shape, tuple(n == 0 for n in shape), "S1") as variable:
        plain = variable[elem]
        variable._Encoding = "ascii"
        expected = variable[elem].dtype.kind == "U"
    assert takes_last_whole(elem, shape) is expected, plain.shape


def test_a_scalar_has_no_last_dimension():
    assert not takes_last_whole(..., ())


# -- writing ------------------------------------------------------------------------


def same_but_for_ones(shape, other):
    return [n for n in shape if n != 1] == [n for n in other if n != 1]


def open_slices(elem):
    items = elem if isinstance(elem, tuple) else (elem,)
    return [each for each in items if isinstance(each, slice) and each.stop is None]


def from_the_end(item):
    return item.start is not None and item.start < 0


def has_steps(item):
    return item.step not in {None, 1, -1}


def broadcasts(shape, other):
    try:
        return np.broadcast_shapes(shape, other) == tuple(other)
    except ValueError:
        return False


@given(st.data())
def test_writes_what_netcdf4_writes(data):
    shape, unlimited = data.draw(variables(min_dims=1))
    elem = data.draw(selections(shape, tuple(4 * grows for grows in unlimited)))
    # Shapes that have a chance: those of the selection, changed a little.
    likely = list(for_writing(elem, shape, unlimited, ()).shape)
    if likely and data.draw(st.booleans()):
        likely[data.draw(st.integers(0, len(likely) - 1))] = data.draw(st.integers(0, 6))
    likely = likely[data.draw(st.integers(0, len(likely))) :] if data.draw(st.booleans()) else likely
    values = numbered(tuple(likely)) + 1000
    # If the last dimension is empty, netCDF4-python writes a scalar to the first of several elements only.
    assume(values.ndim or shape[-1] or len(shape) == 1)
    with netcdf_variable(shape, unlimited) as variable:
        try:
            variable[elem] = values
        except (IndexError, ValueError, RuntimeError):
            assume(False)
        expected = elements(variable)
    picked = for_writing(elem, shape, unlimited, values.shape)
    # Then netCDF4-python has fewer places than data, and fails, unless another shape or broadcasting saves it.
    aligned = values.ndim in {len(picked.lengths), len(picked.shape)}
    assume(not any(from_the_end(each) or (aligned and has_steps(each)) for each in open_slices(elem)))
    assume(same_but_for_ones(values.shape, picked.shape) or broadcasts(values.shape, picked.lengths))
    assert picked.grown == expected.shape
    assert np.array_equal(written(numbered(shape), picked, values), expected)


GROWTH = {
    "all, into nothing": (slice(None), (0, 3), (4, 3)),
    "all, fewer than there are": (slice(None), (5, 3), (2, 3)),
    "all, of one row": (slice(None), (5, 3), (1, 3)),
    "all, more than there are": (..., (2, 3), (4, 3)),
    "all, a scalar into nothing": (slice(None), (0,), ()),
    "all, a scalar": (slice(None), (4, 3), ()),
    "all, a row as long as it writes rows": (slice(None), (0, 3), (3,)),
    "from the end": (slice(2, None), (2, 3), (4, 3)),
    "from behind the end": (slice(7, None), (2, 3), (1, 3)),
    "up to": (slice(None, 4), (2, 3), (4, 3)),
    "between": (slice(5, 8), (2, 3), (3, 3)),
    "between, a scalar": (slice(5, 8), (2, 3), ()),
    "every second": (slice(0, 8, 2), (2, 3), (4, 3)),
    "nothing behind the end": (slice(10, 10), (2, 3), (0, 3)),
    "nothing, by an open slice": (slice(None), (2, 3), (0, 3)),
    "a row": (6, (2, 3), (3,)),
    "a row from the end": (-1, (2, 3), (3,)),
    "an element": ((6, 1), (2, 3), ()),
    "a column": ((slice(None), 0), (0, 3), (5,)),
    "a column of a row": ((slice(0, 4), 0), (0, 3), (4, 1)),
    "rows": ([0, 6, 3], (2, 3), (3, 3)),
    "rows in any order, one twice": ([6, 0, 0], (2, 3), (3, 3)),
    "masked rows": (np.array([True, False, False, True]), (2, 3), (2, 3)),
    "fewer masked rows": (np.array([False, True]), (5, 3), (1, 3)),
    "backwards": (slice(None, None, -1), (0, 3), (4, 3)),
    "backwards from": (slice(3, None, -1), (2, 3), (4, 3)),
    "counted from the new end": (slice(-2, 8), (2, 3), (2, 3)),
}


@pytest.mark.parametrize("case", GROWTH)
def test_an_unlimited_dimension_grows_as_netcdf4_lets_it(case):
    elem, shape, data_shape = GROWTH[case]
    unlimited = (True, False)[: len(shape)]
    values = numbered(data_shape) + 1000
    with netcdf_variable(shape, unlimited) as variable:
        variable[elem] = values
        expected = variable[...]
    picked = for_writing(elem, shape, unlimited, data_shape)
    assert picked.grown == expected.shape
    assert np.array_equal(written(numbered(shape), picked, values), expected)


MORE_GENERAL = {
    "every second as long as the data": (slice(None, None, 2), (0, 3), (3, 3), (5, 3), slice(0, 5, 2)),
    "every second from": (slice(1, None, 2), (2, 3), (2, 3), (4, 3), slice(1, 4, 2)),
    "backwards, every second": (slice(None, None, -2), (0, 3), (3, 3), (5, 3), slice(4, None, -2)),
    "from the end on": (slice(-1, None), (3, 3), (2, 3), (4, 3), slice(2, 4)),
    "from far before the beginning": (slice(-9, None), (3, 3), (2, 3), (3, 3), slice(0, 2)),
    "one value for several": (slice(0, 4), (0, 3), (1,), (4, 3), slice(0, 4)),
    "unsigned integers": (np.array([3, 1], "u8"), (0, 3), (2, 3), (4, 3), [3, 1]),
}


@pytest.mark.parametrize("case", MORE_GENERAL)
def test_where_netcdf4_refuses_what_has_one_meaning_numpy_gives_it(case):
    elem, shape, data_shape, grown, places = MORE_GENERAL[case]
    values = numbered(data_shape) + 1000
    picked = for_writing(elem, shape, (True, False), data_shape)
    expected = np.full(grown, FILL)
    expected[: shape[0]] = numbered(shape)
    expected[places] = values
    assert np.array_equal(written(numbered(shape), picked, values), expected)


@pytest.mark.parametrize(
    ("elem", "shape", "unlimited", "data_shape"),
    [
        (slice(None), (3, 4), (False, False), (2, 4)),
        (slice(0, 2), (3, 4), (False, False), (3, 4)),
        (slice(None), (0, 4), (True, False), (5, 3)),
        (slice(0, 5), (0, 4), (True, False), (6, 4)),
        ([0, 1], (3, 4), (False, False), (3, 4)),
        (slice(5, 5), (3, 4), (True, False), (2, 4)),
    ],
    ids=str,
)
def test_data_that_does_not_fit_is_refused(elem, shape, unlimited, data_shape):
    with netcdf_variable(shape, unlimited) as variable, pytest.raises((IndexError, ValueError)):
        variable[elem] = np.zeros(data_shape)
    picked = for_writing(elem, shape, unlimited, data_shape)
    with pytest.raises(ShapeError) as caught:
        picked.fit(np.zeros(data_shape))
    assert caught.value.found == f"shape {data_shape}"


def test_data_is_not_given_another_shape_than_it_has():
    picked = for_writing((slice(0, 2), slice(0, 3)), (2, 3), (False, False), (3, 2))
    with pytest.raises(ShapeError):
        picked.fit(np.zeros((3, 2)))


@pytest.mark.parametrize("elem", [3, [0, 3], np.array([True] * 4), -4], ids=str)
def test_a_limited_dimension_does_not_grow(elem):
    with netcdf_variable((3,), (False,)) as variable, pytest.raises((IndexError, RuntimeError)):
        variable[elem] = 1
    with pytest.raises(SelectionError):
        for_writing(elem, (3,), (False,))


def test_a_negative_index_does_not_reach_before_the_beginning_of_an_unlimited_dimension():
    with pytest.raises(BoundsCheckError):
        for_writing(-4, (3,), (True,))


def test_data_without_a_length_for_an_unlimited_dimension_is_refused():
    with netcdf_variable((3, 0), (False, True)) as variable, pytest.raises(IndexError):
        variable[:] = np.zeros(4)
    with pytest.raises(SelectionError, match="how far to write"):
        for_writing(slice(None), (3, 0), (False, True), (4,))


@pytest.mark.parametrize("elem", [2**64, [2**63 - 1], np.array([2**64 - 1], "u8")], ids=str)
def test_growth_beyond_what_an_array_can_count_is_no_other_index(elem):
    try:
        picked = for_writing(elem, (3,), (True,))
    except BoundsCheckError:
        return
    assert picked.grown == (2**64 + 1,)
