import numpy as np
import pytest

from omnizarr import indexing
from omnizarr.errors import BoundsCheckError, SelectionError
from omnizarr.model import grids

GRID = grids.bind(grids.regular((4, 4)), (6, 3))
ONE_CHUNK = grids.bind(grids.regular((10, 10)), (6, 3))


@pytest.mark.parametrize("grid", [GRID, ONE_CHUNK], ids=["chunks", "one chunk"])
@pytest.mark.parametrize(
    ("selection", "axis", "length"), [(6, 0, 6), (-7, 0, 6), ((0, 3), 1, 3), ((..., -4), 1, 3), (np.int8(6), 0, 6)]
)
def test_integer_outside_names_dimension_index_and_length(grid, selection, axis, length):
    with pytest.raises(BoundsCheckError, match=f"dimension {axis} with length {length}") as caught:
        indexing.plan(selection, grid)
    assert caught.value.found == (selection if np.isscalar(selection) else selection[-1])
    assert isinstance(caught.value, IndexError)


@pytest.mark.parametrize(
    "selection",
    [
        (0, 0, 0),
        (..., 0, ...),
        (0, 0, 0, ...),
        1.0,
        "x",
        b"x",
        True,
        np.True_,
        (0, False),
        slice(None, None, 0),
        slice(0.5),
        slice("a"),
        {},
        np.float64(1),
        object(),
    ],
    ids=lambda selection: type(selection).__name__,
)
def test_other_selections_are_refused_as_index_errors(selection):
    for grid in (GRID, ONE_CHUNK):
        with pytest.raises(SelectionError) as caught:
            indexing.basic(selection, grid)
        assert isinstance(caught.value, IndexError)
        with pytest.raises(SelectionError):
            indexing.plan(selection, grid)


@pytest.mark.parametrize("index", [np.int64(2), np.uint8(2), np.array(2), -4])
def test_anything_with_an_index_is_an_integer(index):
    plan, same = indexing.plan((index, 0), GRID), indexing.plan((2, 0), GRID)
    assert (plan.shape, list(plan)) == (same.shape, list(same)) == ((), list(same))


def test_selectors_are_python_integers_whatever_the_selection_is_made_of():
    (piece,) = indexing.plan((np.int16(2), slice(np.int8(0), np.uint64(2))), GRID)
    numbers = [*piece.coords, *[n for s in piece.chunk_selection + piece.out_selection for n in (s.start, s.stop)]]
    assert {type(number) for number in numbers} == {int}


def test_integers_and_newaxis_live_in_the_shape_alone():
    plan = indexing.plan((None, 5, ..., None), GRID)
    assert (plan.buffer_shape, plan.shape) == ((1, 3), (1, 3, 1))


@pytest.mark.parametrize("selection", [(), ..., (...,), (None, ...)])
def test_scalar_array_has_one_piece(selection):
    grid = grids.bind(grids.regular(()), ())
    plan = indexing.plan(selection, grid)
    assert list(plan) == [((), (), (), True)]
    assert plan.buffer_shape == ()


def test_scalar_array_takes_no_index():
    grid = grids.bind(grids.regular(()), ())
    with pytest.raises(SelectionError, match="too many"):
        indexing.plan(0, grid)


@pytest.mark.parametrize("selection", [slice(0, 0), slice(4, 2), slice(100, 200), slice(2, 4, -1)])
def test_empty_selection_has_no_pieces(selection):
    plan = indexing.plan(selection, GRID)
    assert (list(plan), len(plan), plan.shape, plan.whole) == ([], 0, (0, 3), True)


def test_piece_is_whole_if_it_covers_what_the_array_has_of_the_chunk():
    assert [piece.whole for piece in indexing.plan((slice(1, None), ...), GRID)] == [False, True]
    assert indexing.plan(..., GRID).whole
    assert not indexing.plan(slice(1, None), GRID).whole


def test_integer_covers_a_chunk_of_length_one():
    grid = grids.bind(grids.regular((1, 4)), (5, 3))
    (piece,) = indexing.plan(2, grid)
    assert piece.whole


def test_long_steps_visit_only_the_chunks_they_touch():
    grid = grids.bind(grids.regular((10,)), (2**62,))
    plan = indexing.plan(slice(5, None, 2**60), grid)
    assert [piece.coords for piece in plan] == [((5 + k * 2**60) // 10,) for k in range(4)]


def test_first_pieces_of_a_huge_array_come_at_once():
    grid = grids.bind(grids.regular((1, 2**40)), (2**63, 2**63))
    plan = indexing.plan(..., grid)
    assert plan.shape == (2**63, 2**63)
    assert len(plan) == 2**63 - 1  # as many as `len` can say
    first = (slice(0, 1, 1), slice(0, 2**40, 1))
    assert next(iter(plan)) == ((0, 0), first, first, True)


def test_negative_step_stands_in_the_buffers_selection():
    pieces = list(indexing.plan((slice(None, None, -1), 0), GRID))
    assert [piece.chunk_selection[0] for piece in pieces] == [slice(0, 4, 1), slice(0, 2, 1)]
    assert [piece.out_selection[0] for piece in pieces] == [slice(5, 1, -1), slice(1, None, -1)]


def test_block_keeps_axes_and_is_cut_at_the_edge():
    plan = indexing.block((1, 0), GRID)
    assert plan.shape == (2, 3)
    assert [piece.coords for piece in plan] == [(1, 0)]


@pytest.mark.parametrize("selection", [2, -3, (0, 1)])
def test_block_outside_the_grid_is_refused(selection):
    with pytest.raises(BoundsCheckError):
        indexing.block(selection, GRID)


@pytest.mark.parametrize("selection", [[0, 1], slice(None, None, 2), 1.0, None, (0, 0, 0), True, "x"], ids=repr)
def test_blocks_are_integers_and_slices_of_step_one(selection):
    with pytest.raises(SelectionError):
        indexing.block(selection, GRID)
