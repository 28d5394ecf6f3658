import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr import indexing
from omnizarr.codecs import transpose
from omnizarr.codecs.contract import ArraySpec
from omnizarr.errors import MetadataError
from omnizarr.model import datatypes, grids
from tests.indexing.selections import advanced


def spec_of(shape, name="int32"):
    data_type = datatypes.parse(name)
    return ArraySpec(tuple(shape), data_type, data_type.default_fill_value)


@pytest.mark.parametrize("order", [[2, 0, 1], [0, 1, 2], [1, 2, 0]])
def test_encoded_axis_i_is_decoded_axis_order_i(order):
    array = np.arange(24, dtype="i4").reshape(2, 3, 4)
    codec = transpose.bind({"order": order}, spec_of(array.shape))
    encoded = codec.encode(array)
    assert encoded.shape == codec.encoded.shape == tuple(array.shape[axis] for axis in order)
    np.testing.assert_array_equal(encoded, np.transpose(array, order))
    np.testing.assert_array_equal(codec.decode(encoded), array)


def test_both_directions_are_views():
    array = np.arange(6, dtype="i4").reshape(2, 3)
    codec = transpose.bind({"order": [1, 0]}, spec_of(array.shape))
    assert np.shares_memory(codec.encode(array), array)
    assert np.shares_memory(codec.decode(codec.encode(array)), array)


@pytest.mark.parametrize(("word", "order"), [("C", (0, 1, 2)), ("F", (2, 1, 0))])
def test_words_of_2023_mean_permutations(word, order):
    assert transpose.bind({"order": word}, spec_of((2, 3, 4))).order == order


def test_scalar_has_the_empty_permutation():
    codec = transpose.bind({"order": []}, spec_of(()))
    assert codec.encode(np.array(7, "i4")) == 7


def test_data_type_and_fill_value_stay():
    spec = ArraySpec((2, 3), datatypes.parse("float32"), np.float32("nan"))
    encoded = transpose.bind({"order": [1, 0]}, spec).encoded
    assert encoded.data_type == spec.data_type
    assert np.isnan(encoded.fill_value)


@pytest.mark.parametrize(
    "configuration",
    [
        {"order": None},
        {"order": "A"},
        {"order": [0]},
        {"order": [0, 0]},
        {"order": [0, 2]},
        {"order": [-1, 0]},
        {"order": [True, False]},
        {"order": [1.0, 0.0]},
        {"order": ["1", "0"]},
        {"order": [[1], [0]]},
        {"order": 10},
        {"order": {"0": 1}},
        {"order": [1, 0, 2]},
    ],
)
def test_order_must_be_a_permutation(configuration):
    with pytest.raises(MetadataError) as caught:
        transpose.bind(configuration, spec_of((2, 3)))
    assert caught.value.pointer == "/configuration/order"
    assert caught.value.expected == "each of 0 to 1 once"


def test_order_must_be_there():
    with pytest.raises(MetadataError) as caught:
        transpose.bind({}, spec_of((2, 3)))
    assert caught.value.pointer == "/configuration/order"


def test_unknown_field_is_refused():
    with pytest.raises(MetadataError) as caught:
        transpose.bind({"order": [0], "axes": [0]}, spec_of((2,)))
    assert caught.value.pointer == "/configuration/axes"


def assert_maps(array, order, selection):
    """Reading through the transposition gives what reading before it gives."""
    codec = transpose.bind({"order": order}, spec_of(array.shape))
    out = np.zeros_like(array[selection])
    mapped, view = codec.map_selection(selection, out)
    view[...] = codec.encode(array)[mapped]
    np.testing.assert_array_equal(out, array[selection])


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1], [0, 2, 1]])
@pytest.mark.parametrize(
    "selection",
    [
        (slice(0, 2, 1), slice(1, 3, 1), slice(0, 4, 2)),
        (slice(0, 2, 1), np.array([2, 0, 2]), slice(0, 4, 1)),
        (slice(0, 2, 1), *np.ix_([2, 0], [3, 1, 0])),
        (*np.ix_([1, 0], [2, 2]), slice(0, 4, 3)),
        np.ix_([1], [0, 2], [3, 0]),
        (np.array([0, 1, 1]), np.array([2, 0, 0]), np.array([3, 1, 2])),
        (np.array([0, 1, 1]), slice(1, 3, 1), np.array([3, 1, 2])),
        (np.array([0, 1, 1]), np.array([2, 0, 0]), slice(0, 4, 1)),
        (slice(0, 2, 1), np.array([2, 0, 0]), np.array([3, 1, 2])),
    ],
)
def test_selections_are_mapped(order, selection):
    assert_maps(np.arange(24, dtype="i4").reshape(2, 3, 4), order, tuple(selection))


@given(st.data())
def test_selections_of_plans_are_mapped(data):
    ndim = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.lists(st.integers(1, 6), min_size=ndim, max_size=ndim)))
    order = data.draw(st.permutations(range(ndim)))
    grid = grids.bind(grids.regular(shape), shape)
    lists = [data.draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=5)) for length in shape]
    kind = data.draw(st.sampled_from(["orthogonal", "coordinate", "advanced"]))
    if kind == "advanced":
        plan = indexing.plan(data.draw(advanced(shape)), grid)
    elif kind == "orthogonal":
        selection = tuple(data.draw(st.sampled_from([part, slice(None, None, 2), slice(1, None)])) for part in lists)
        plan = indexing.orthogonal(selection, grid)
    else:
        points = min(map(len, lists))
        plan = indexing.coordinate(tuple(part[:points] for part in lists), grid)
    array = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    for piece in plan:
        assert_maps(array, list(order), piece.chunk_selection)


def test_value_with_too_few_axes_is_not_mapped():
    codec = transpose.bind({"order": [1, 0]}, spec_of((2, 3)))
    assert codec.map_selection((slice(0, 2, 1), slice(0, 3, 1)), np.zeros(3)) is None
