import time

import numpy as np
import pytest

from omnizarr import indexing
from omnizarr.errors import BoundsCheckError, SelectionError
from omnizarr.model import grids

GRID = grids.bind(grids.regular((4, 4)), (6, 3))
LINE = grids.bind(grids.regular((10,)), (35,))


def same(plan, other):
    return (plan.buffer_shape, plan.shape, list(plan)) == (other.buffer_shape, other.shape, list(other))


@pytest.mark.parametrize(
    "chosen", [slice(3, 27, 1), slice(3, 27, 4), slice(27, 3, -1), slice(30, None, -7), slice(4, 5), slice(0, 35)]
)
def test_slice_list_array_and_mask_that_mean_the_same_give_the_same_plan(chosen):
    plan = indexing.plan(chosen, LINE)
    numbers = np.arange(35)[chosen]
    for spelling in (numbers, numbers.tolist(), numbers - 35, numbers.astype(np.uint8), range(35)[chosen]):
        assert same(indexing.plan(spelling, LINE), plan)
        assert same(indexing.orthogonal(spelling, LINE), plan)
        assert same(indexing.coordinate((spelling,), LINE), plan)
    if numbers.size < 2 or numbers[1] > numbers[0]:
        mask = np.isin(np.arange(35), numbers)
        assert same(indexing.plan(mask, LINE), plan)
        assert same(indexing.plan(mask.tolist(), LINE), plan)
        assert same(indexing.mask(mask, LINE), plan)


def test_mask_of_a_box_is_planned_as_the_box():
    mask = np.zeros((6, 3), bool)
    mask[1:5, 1:] = True
    plan = indexing.mask(mask, GRID)
    assert plan.shape == (8,)
    assert plan.buffer_shape == (4, 2)
    assert list(plan) == list(indexing.basic(np.s_[1:5, 1:], GRID))


def test_open_mesh_of_coordinates_is_planned_axis_by_axis():
    plan = indexing.coordinate(np.ix_([1, 2, 3, 4], [1, 2]), GRID)
    assert same(plan, indexing.basic(np.s_[1:5, 1:], GRID))


def test_stretches_of_a_list_are_slices_within_the_chunks():
    pieces = list(indexing.orthogonal([20, 21, 22, 3, 5, 7, 18], LINE))
    assert pieces == [
        ((0,), (slice(3, 8, 2),), (slice(3, 6, 1),), False),
        ((1,), (slice(8, 9, 1),), (slice(6, 7, 1),), False),
        ((2,), (slice(0, 3, 1),), (slice(0, 3, 1),), False),
    ]


def test_stretch_that_covers_its_chunk_is_whole():
    assert [piece.whole for piece in indexing.orthogonal([*range(10), *range(30, 35)], LINE)] == [True, True]


@pytest.mark.parametrize("planner", [indexing.plan, indexing.orthogonal, indexing.coordinate])
@pytest.mark.parametrize("index", [35, -36, 2**63, 2**64 - 1])
def test_index_outside_names_dimension_index_and_length(planner, index):
    with pytest.raises(BoundsCheckError, match="dimension 0 with length 35") as caught:
        planner(([index, index],), LINE)
    assert caught.value.found == index


@pytest.mark.parametrize(
    "selection",
    [
        ([0, 0.5],),
        (["a"],),
        ([[0], [1, 2]],),
        ([2**70],),
        (np.zeros((1, 1), int),),
        (np.zeros(5, bool),),
        (np.zeros((6, 3), bool),),
        (slice(None), np.zeros(6, bool)),
        ([0], [0], [0]),
        (True, [0]),
        (np.array([0, 1], "M8[s]"),),
        (1.5, [0]),
    ],
    ids=repr,
)
def test_orthogonal_refuses(selection):
    with pytest.raises(SelectionError) as caught:
        indexing.orthogonal(selection, GRID)
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize(
    "selection",
    [
        (),
        0,
        [0, 1],
        (0, slice(None)),
        (0, ...),
        ([0, 1], [0, 1, 2]),
        (0, 0, 0),
        ([0.5], [0]),
        (True, 0),
        ([True, False], [0, 1]),
        np.zeros((3, 6), bool),
        (None, 0),
    ],
    ids=repr,
)
def test_coordinate_refuses(selection):
    with pytest.raises(SelectionError):
        indexing.coordinate(selection, GRID)


@pytest.mark.parametrize("selection", [np.zeros((3, 6), bool), np.zeros((6, 3), int), [True], (0, 1), "x", None])
def test_mask_refuses(selection):
    with pytest.raises(SelectionError, match=r"no mask|type"):
        indexing.mask(selection, GRID)


def test_mask_given_as_coordinates_is_a_mask():
    mask = np.eye(6, 3, dtype=bool)
    assert repr(list(indexing.coordinate(mask, GRID))) == repr(list(indexing.mask(mask, GRID)))


@pytest.mark.parametrize(("value", "shape"), [(True, (1,)), (False, (0,))])
def test_mask_of_a_scalar_is_numpys(value, shape):
    grid = grids.bind(grids.regular(()), ())
    plan = indexing.plan(np.array(value), grid)
    assert plan.shape == np.zeros(())[np.array(value)].shape == shape
    assert len(plan) == shape[0]


def test_integers_alone_as_coordinates_give_a_scalar():
    assert indexing.coordinate((2, -1), GRID).shape == ()


def test_array_beside_slices_and_integers_stays_in_its_place():
    grid = grids.bind(grids.regular((2, 2, 2)), (4, 5, 6))
    assert indexing.plan((0, slice(None), [0, 5, 1]), grid).shape == (5, 3)
    assert indexing.plan((slice(None), [0, 3, 2]), grid).shape == (4, 3, 6)
    assert indexing.plan((..., [True, False, True, False, True, True]), grid).shape == (4, 5, 4)
    assert indexing.plan(([1, 0], None, ...), grid).shape == (2, 1, 5, 6)


def test_integers_and_lists_for_all_dimensions_are_coordinates():
    assert indexing.plan(([0, 5, 1], [0, 1, 2]), GRID).shape == (3,)
    assert indexing.plan((0, [[0, 1], [2, 0]]), GRID).shape == (2, 2)


BOX = grids.bind(grids.regular((2, 2, 2)), (4, 5, 6))
CUBE = np.arange(120).reshape(4, 5, 6)


@pytest.mark.parametrize(
    "selection",
    [
        ([0, 1], slice(None), [0, 1]),
        (slice(None), [0, 1], [0, 1]),
        (slice(None), [0, 1], ..., [0, 1]),  # an Ellipsis of no dimension stands between them as well
        (slice(None), [0, 1], None, [0, 1]),
        (0, slice(None), [[0, 1]]),
        ([0, 1], 2, slice(None)),
        (CUBE[..., 0] % 7 == 1,),
        (slice(None), CUBE[0] % 7 == 1),
        (CUBE[..., 0] % 30 == 0, slice(1, 3)),
        ([0, 1, 1], CUBE[0] > 26),
        ([0, 1], [1, 2], ...),
        ([[0, 1], [3, 3]],),
        ([[0], [1]], slice(None), [[0, 1, 5]]),
        ([], slice(None), [9]),  # nothing is selected, and NumPy does not ask where
        ([], []),
    ],
    ids=repr,
)
def test_arrays_among_slices_and_integers_have_the_shape_that_numpy_gives_them(selection):
    assert indexing.plan(selection, BOX).shape == CUBE[selection].shape


@pytest.mark.parametrize(
    "selection",
    [
        ([0, 1], [0, 1, 2]),
        ([0, 4], slice(None), [0, 1]),
        ([], slice(None), 9),
        ([0], [0], [0], [0]),
        (np.zeros((4, 6), bool),),
        (np.zeros((4, 5, 6, 1), bool),),
        ([0, 1], [0.0, 1.0]),
        ([0, 1], ..., [0, 1], ...),
        ([0, 1], [0, 1], 0.5),
    ],
    ids=repr,
)
def test_arrays_that_numpy_refuses_are_refused_as_index_errors(selection):
    with pytest.raises(IndexError):
        CUBE[selection]
    with pytest.raises(SelectionError) as caught:
        indexing.plan(selection, BOX)
    assert isinstance(caught.value, IndexError)


def test_arrays_that_do_not_broadcast_are_refused_with_a_remedy():
    with pytest.raises(SelectionError, match="oindex"):
        indexing.plan(([True] * 6, [0, 1]), GRID)


def test_open_mesh_among_slices_is_planned_axis_by_axis():
    rows, columns = np.ix_([3, 0], [5, 1, 1])
    plan = indexing.plan((rows, slice(1, 4), columns), BOX)
    assert plan.shape == CUBE[rows, 1:4, columns].shape
    expected = indexing.orthogonal(([3, 0], slice(1, 4), [5, 1, 1]), BOX)
    assert repr(list(plan)) == repr(list(expected))


def test_coordinates_that_say_a_slice_cost_what_the_slice_costs():
    rows, columns = np.array([0, 3, 2]), np.array([5, 0, 1])
    spelt_out = indexing.coordinate((rows[:, None], np.arange(5)[None], columns[:, None]), BOX)
    assert spelt_out.shape == (3, 5)
    assert repr(list(spelt_out)) == repr(list(indexing.plan((rows, slice(None), columns), BOX)))


def test_points_beside_a_long_slice_are_planned_chunk_by_chunk():
    grid = grids.bind(grids.regular((10, 10**6, 10)), (100, 10**12, 100))
    plan = indexing.plan(([0, 99, 5], slice(None), [1, 2, 1]), grid)
    assert (plan.shape, len(plan)) == ((3, 10**12), 2 * 10**6)
    first = next(iter(plan))
    assert first.coords == (0, 0, 0)
    assert [np.asarray(item).tolist() for item in (first.chunk_selection[0], first.chunk_selection[2])] == [
        [0, 5],
        [1, 1],
    ]
    assert first.chunk_selection[1] == slice(0, 10**6, 1)


def test_array_of_a_selection_is_never_changed():
    index = np.array([-1, 5, -6, 2])
    index.flags.writeable = False
    indexing.plan(index, GRID)
    indexing.coordinate((index, [0, 1, 2, -1]), GRID)
    assert index.tolist() == [-1, 5, -6, 2]


def test_indices_at_the_end_of_64_bits_are_exact():
    end = 2**63 - 1
    grid = grids.bind(grids.regular((2**32,)), (2**63,))
    for planner in (indexing.orthogonal, indexing.coordinate):
        pieces = list(planner([-1, end - 1, 0, end - 3], grid))
        assert [piece.coords for piece in pieces] == [(0,), (2**31 - 1,)]
        (places,) = pieces[1].chunk_selection
        assert places.tolist() == [2**32 - 1, 2**32 - 2, 2**32 - 4]
    assert same(indexing.orthogonal([end - 1, end], grid), indexing.basic(slice(end - 1, end + 1), grid))


def test_coordinates_in_more_chunks_than_64_bits_count_are_grouped():
    grid = grids.bind(grids.regular((1, 1)), (2**62, 2**62))
    far = 2**62 - 1
    pieces = list(indexing.coordinate(([far, 0, far, far], [0, far, 1, 0]), grid))
    assert [piece.coords for piece in pieces] == [(0, far), (far, 0), (far, 1)]
    assert [np.ravel(np.arange(4)[piece.out_selection]).tolist() for piece in pieces] == [[1], [0, 3], [2]]


def test_million_coordinates_in_ten_thousand_chunks_are_planned_in_well_under_a_second():
    grid = grids.bind(grids.regular((100, 100)), (10_000, 10_000))
    coordinates = tuple(np.random.default_rng(0).integers(0, 10_000, (2, 10**6)))
    start = time.process_time()
    assert sum(1 for _ in indexing.coordinate(coordinates, grid)) == 10_000
    assert time.process_time() - start < 2  # 0.06 s on the machine of the first measurement
