"""A plan run by the simplest engine there can be means what NumPy means by the selection."""

import itertools
import math

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from omnizarr import indexing
from omnizarr.errors import SelectionError
from omnizarr.indexing import arrays as array_selections
from omnizarr.indexing import plans
from omnizarr.indexing.inverse import transform_of
from omnizarr.indexing.transforms import Along
from omnizarr.model import Named, grids
from tests.indexing.selections import advanced, stays_in_place

EXAMPLES = min(300, 5 * settings.default.max_examples)  # `make test` tries 50, all others 300
QUICK = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def split(array, grid):
    """Cut an array into chunks of full size; what is beyond the edge is -1."""
    chunks = {}
    for coords in grid.coords():
        chunk = np.full(grid.shape_of(coords), -1, array.dtype)
        part = array[grid.slices_of(coords)]
        chunk[tuple(map(slice, part.shape))] = part
        chunks[coords] = chunk
    return chunks


def join(chunks, grid):
    array = np.full(grid.shape, -2)
    for coords, chunk in chunks.items():
        cut = grid.slices_of(coords)
        array[cut] = chunk[tuple(slice(s.stop - s.start) for s in cut)]
    return array


def check_piece(piece, grid):
    """What a plan promises of each piece."""
    cut = tuple(s.stop - s.start for s in grid.slices_of(piece.coords))
    assert all(type(number) is int for number in piece.coords)
    for selector, length in zip(piece.chunk_selection, cut, strict=True):
        if isinstance(selector, slice):
            assert 0 <= selector.start < selector.stop <= length
            assert selector.step > 0
        else:
            assert selector.size
            assert 0 <= selector.min() <= selector.max() < length
    numbers = np.arange(math.prod(cut)).reshape(cut)
    covered = np.array_equal(numbers[piece.chunk_selection], numbers)
    if all(isinstance(selector, slice) for selector in piece.chunk_selection):
        assert piece.whole == covered
    else:
        assert not piece.whole or covered


def read(chunks, plan, grid):
    buffer = np.full(plan.buffer_shape, -9)
    filled = np.zeros(plan.buffer_shape, int)
    seen = set()
    for piece in plan:
        check_piece(piece, grid)
        assert piece.coords not in seen
        seen.add(piece.coords)
        part = chunks[piece.coords][piece.chunk_selection]
        assert buffer[piece.out_selection].shape == part.shape
        buffer[piece.out_selection] = part
        filled[piece.out_selection] += 1
    assert len(plan) == len(seen)
    assert (filled == 1).all()
    return plan.as_result(buffer)


def gathered(array, transform):
    """The elements of an array at the positions that a transform says."""
    places = []
    for output in transform.outputs:
        dims = () if isinstance(output, int) else (output.dim,) if isinstance(output, Along) else output.dims
        found = np.array(output if isinstance(output, int) else output.indices)
        lengths = dict(zip(dims, found.shape, strict=True))
        places.append(found.reshape([lengths.get(dim, 1) for dim in range(len(transform.shape))]))
    return np.broadcast_to(array[tuple(places)], transform.shape)


def write(chunks, plan, value):
    buffer = plan.as_buffer(value)
    for piece in plan:
        chunks[piece.coords][piece.chunk_selection] = buffer[piece.out_selection]


def check(plan, grid, expected, selection, *, writes=True):
    """Compare reading with `expected`, and writing with what NumPy's assignment to `selection` does."""
    array = np.arange(math.prod(grid.shape)).reshape(grid.shape)
    chunks = split(array, grid)
    assert plan.shape == np.shape(expected)
    if 0 not in plan.buffer_shape:
        assert np.array_equal(plan.as_result(gathered(array, transform_of(plan, grid))), expected)
    assert np.array_equal(read(chunks, plan, grid), expected)
    if writes:
        value = 1000 + np.arange(math.prod(plan.shape)).reshape(plan.shape)
        write(chunks, plan, value)
        changed = array.copy()
        changed[selection] = value
        assert np.array_equal(join(chunks, grid), changed)


@st.composite
def rows(draw, length):
    """Chunk lengths along one axis of a rectilinear grid, as its document may spell them."""
    if draw(st.booleans()):
        return draw(st.integers(1, 6))
    row, total = [], 0
    while total < length or not row:
        size, count = draw(st.integers(1, 5)), draw(st.integers(1, 3))
        row.append([size, count] if count > 1 else size)
        total += size * count
    return row + draw(st.sampled_from([[], [2], [[3, 2]]]))


@st.composite
def a_grid(draw, min_dims=0, max_dims=3, min_side=0):
    shape = draw(st.lists(st.integers(min_side, 11), min_size=min_dims, max_size=max_dims).map(tuple))
    if draw(st.booleans()):
        chunk_shape = [draw(st.integers(0 if not n else 1, n + 3)) for n in shape]
        return grids.bind(grids.regular(chunk_shape), shape)
    chunk_shapes = [draw(rows(n)) for n in shape]
    return grids.bind(Named("rectilinear", {"kind": "inline", "chunk_shapes": chunk_shapes}), shape)


@st.composite
def indices(draw, length, max_size=9):
    """Integers along an axis: in any order, repeated, negative; or a stretch of them."""
    if not length:
        return []
    if draw(st.booleans()):
        return draw(st.lists(st.integers(-length, length - 1), max_size=max_size))
    return list(range(length))[draw(st.slices(length))]


@st.composite
def masks(draw, length):
    return np.array(draw(st.lists(st.booleans(), min_size=length, max_size=length)), bool)


@given(st.data())
@QUICK
def test_basic_selection_is_numpys(data):
    grid = data.draw(a_grid())
    selection = data.draw(
        hnp.basic_indices(grid.shape, allow_newaxis=True, allow_ellipsis=True, max_dims=len(grid.shape) + 2)
    )
    expected = np.arange(math.prod(grid.shape)).reshape(grid.shape)[selection]
    check(indexing.basic(selection, grid), grid, expected, selection)
    check(indexing.plan(selection, grid), grid, expected, selection)


@given(st.data(), st.integers(-20, 20) | st.none(), st.integers(-20, 20) | st.none())
@QUICK
def test_slices_with_any_step_are_numpys(data, start, stop):
    grid = data.draw(a_grid(1, 2))
    step = data.draw(st.integers(-12, 12).filter(bool))
    selection = (..., slice(start, stop, step))
    expected = np.arange(math.prod(grid.shape)).reshape(grid.shape)[selection]
    check(indexing.basic(selection, grid), grid, expected, selection)


def orthogonal_of(array, selection):
    """Select along one axis after the other."""
    for axis in reversed(range(array.ndim)):
        array = array[(slice(None),) * axis + (selection[axis],)]
    return array


@given(st.data())
@QUICK
def test_orthogonal_selection_is_numpys_axis_by_axis(data):
    grid = data.draw(a_grid(1, 4))
    selection = []
    for n in grid.shape:
        kinds = [indices(n), masks(n), st.slices(n)] + ([st.integers(-n, n - 1)] if n else [])
        selection.append(data.draw(st.one_of(kinds)))
    array = np.arange(math.prod(grid.shape)).reshape(grid.shape)
    as_arrays = [np.array(s, int) if isinstance(s, list) else s for s in selection]
    expected = orthogonal_of(array, as_arrays)
    flat = np.ix_(*[np.atleast_1d(np.arange(n)[s]) for n, s in zip(grid.shape, as_arrays, strict=True)])
    plan = indexing.orthogonal(tuple(selection), grid)
    check(plan, grid, expected, flat, writes=False)
    chunks = split(array, grid)
    value = 1000 + np.arange(expected.size).reshape(expected.shape)
    write(chunks, plan, value)
    changed = array.copy()
    changed[flat] = value.reshape(array[flat].shape)
    assert np.array_equal(join(chunks, grid), changed)


@given(st.data(), st.integers(10, 60), st.integers(1, 7), st.booleans(), st.booleans())
@QUICK
def test_long_lists_are_numpys_however_they_are_looked_at(data, length, size, few, rectilinear):
    grid = grids.bind(grids.regular((size,)), (length,))
    if rectilinear:
        row = [[size, length // size // 2], 3, [size + 1, length]]
        row = row[not length // size // 2 :]
        grid = grids.bind(Named("rectilinear", {"kind": "inline", "chunk_shapes": [row]}), (length,))
    stretches = data.draw(st.lists(st.slices(length), max_size=6))
    selection = np.concatenate([np.arange(length)[s] for s in stretches] + [np.zeros(0, int)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_selections, "_FEW", 0 if few else 99)
        for planner in (indexing.orthogonal, indexing.coordinate, indexing.plan):
            check(planner(selection, grid), grid, np.arange(length)[selection], selection)


@given(st.data(), st.integers(1, 3))
@QUICK
def test_plan_walked_in_windows_is_the_same(data, window):
    grid = data.draw(a_grid(1, 3))
    basic = data.draw(hnp.basic_indices(grid.shape, allow_ellipsis=False))
    lists = tuple(data.draw(indices(n) | st.slices(n)) for n in grid.shape)
    for plan in (indexing.basic(basic, grid), indexing.orthogonal(lists, grid)):
        expected = sorted(repr(piece) for piece in plan)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plans, "_WINDOW", window)
            assert sorted(repr(piece) for piece in plan) == expected


@given(st.data())
@QUICK
def test_coordinate_selection_is_numpys(data):
    grid = data.draw(a_grid(1, 3, min_side=1))
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=len(grid.shape), max_dims=3, max_side=5))
    selection = tuple(
        data.draw(hnp.arrays(np.int64, shape, elements=st.integers(-n, n - 1)))
        for shape, n in zip(shapes.input_shapes, grid.shape, strict=True)
    )
    expected = np.arange(math.prod(grid.shape)).reshape(grid.shape)[selection]
    before = [index.copy() for index in selection]
    check(indexing.coordinate(selection, grid), grid, expected, selection)
    assert all(map(np.array_equal, before, selection))
    check(indexing.plan(selection, grid), grid, expected, selection)


@given(st.data())
@QUICK
def test_mask_selection_is_numpys(data):
    grid = data.draw(a_grid())
    selection = data.draw(hnp.arrays(bool, grid.shape))
    expected = np.arange(math.prod(grid.shape)).reshape(grid.shape)[selection]
    check(indexing.mask(selection, grid), grid, expected, selection)
    check(indexing.plan(selection, grid), grid, expected, selection)


@given(st.data())
@QUICK
def test_mask_of_a_box_is_numpys(data):
    grid = data.draw(a_grid())
    selection = np.zeros(grid.shape, bool)
    selection[data.draw(hnp.basic_indices(grid.shape, allow_ellipsis=False))] = True
    expected = np.arange(math.prod(grid.shape)).reshape(grid.shape)[selection]
    check(indexing.mask(selection, grid), grid, expected, selection)


@given(st.data())
@settings(QUICK, max_examples=4 * EXAMPLES)
def test_advanced_selection_is_numpys(data):
    grid = data.draw(a_grid(1, 4, min_side=1))
    selection = data.draw(advanced(grid.shape))
    expected = np.arange(math.prod(grid.shape)).reshape(grid.shape)[selection]
    if not stays_in_place(selection):
        check(indexing.plan(selection, grid), grid, expected, selection)


@given(st.data())
@settings(QUICK, max_examples=2 * EXAMPLES)
def test_advanced_selection_is_refused_where_numpy_refuses_it(data):
    grid = data.draw(a_grid(1, 4))
    selection = data.draw(advanced(grid.shape, faults=True))
    try:
        expected = np.arange(math.prod(grid.shape)).reshape(grid.shape)[selection]
    except (IndexError, DeprecationWarning):  # a warning of NumPy before 2.3, if nothing is selected
        with pytest.raises(SelectionError) as caught:
            indexing.plan(selection, grid)
        assert isinstance(caught.value, IndexError)
    else:
        if not stays_in_place(selection):
            check(indexing.plan(selection, grid), grid, expected, selection)


@given(st.data())
@QUICK
def test_block_selection_is_that_of_its_elements(data):
    grid = data.draw(a_grid())
    selection, elements = [], []
    for n, axis in zip(grid.grid_shape, range(len(grid.shape)), strict=True):
        item = data.draw(st.slices(n).filter(lambda s: s.step in (None, 1)) if not n else st.integers(-n, n - 1))
        if n and data.draw(st.booleans()):
            start = data.draw(st.integers(0, n))
            item = slice(start, data.draw(st.integers(start, n)))
        selection.append(item)
        chosen = range(n)[item] if isinstance(item, slice) else [range(n)[item]]
        covered = (
            [grid.slices_of((0,) * axis + (c,) + (0,) * (len(grid.shape) - axis - 1)) for c in chosen]
            if (0 not in grid.grid_shape)
            else []
        )
        elements.append(slice(covered[0][axis].start, covered[-1][axis].stop) if covered else slice(0, 0))
    expected = np.arange(math.prod(grid.shape)).reshape(grid.shape)[tuple(elements)]
    if 0 in grid.grid_shape:
        assert 0 in indexing.block(tuple(selection), grid).shape
    else:
        check(indexing.block(tuple(selection), grid), grid, expected, tuple(elements))


@given(st.data())
@QUICK
def test_piece_of_any_plan_can_be_planned_within_its_chunk(data):
    grid = data.draw(a_grid(1, 3, min_side=1))
    kind = data.draw(st.sampled_from(["basic", "orthogonal", "coordinate", "advanced"]))
    if kind == "advanced":
        plan = indexing.plan(data.draw(advanced(grid.shape)), grid)
    elif kind == "basic":
        plan = indexing.basic(data.draw(hnp.basic_indices(grid.shape)), grid)
    elif kind == "orthogonal":
        plan = indexing.orthogonal(tuple(data.draw(indices(n) | st.slices(n)) for n in grid.shape), grid)
    else:
        size = data.draw(st.integers(1, 9))
        arrays = hnp.arrays(np.int64, size, elements=st.integers(0, min(grid.shape) - 1))
        plan = indexing.coordinate(tuple(data.draw(arrays) for _ in grid.shape), grid)
    for piece in itertools.islice(plan, 5):
        shape = grid.shape_of(piece.coords)
        inner = grids.bind(grids.regular([data.draw(st.integers(1, n)) for n in shape]), shape)
        expected = np.arange(math.prod(shape)).reshape(shape)[piece.chunk_selection]
        subplan = indexing.subplan(piece.chunk_selection, inner)
        assert subplan.buffer_shape == expected.shape
        check(subplan, inner, expected.reshape(subplan.shape), None, writes=False)
