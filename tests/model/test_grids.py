import itertools
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import BoundsCheckError, MetadataError, UnknownChunkGridError
from omnizarr.model import Named, grids

POINTER = "/chunk_grid/configuration"


def rectilinear(*rows):
    return Named("rectilinear", {"kind": "inline", "chunk_shapes": list(rows)})


def test_regular_grid_is_that_of_the_specifications_example():
    grid = grids.bind(grids.regular((5, 20, 400)), (10, 200, 3000))
    assert grid.grid_shape == (2, 10, 8)
    assert grid.chunk_shape == grid.shape_of((1, 7, 2)) == (5, 20, 400)
    assert [axis.find(i)[0] for axis, i in zip(grid.axes, (7, 150, 900), strict=True)] == [1, 7, 2]


def test_chunk_at_the_edge_is_full_and_what_it_covers_is_cut():
    grid = grids.bind(grids.regular((16, 16)), (30, 30))
    assert grid.shape_of((0, 1)) == (16, 16)
    assert grid.slices_of((0, 1)) == (slice(0, 16), slice(16, 30))


def test_chunk_may_be_longer_than_the_array():
    grid = grids.bind(grids.regular((100,)), (3,))
    assert (grid.grid_shape, grid.shape_of((0,)), grid.slices_of((0,))) == ((1,), (100,), (slice(0, 3),))


def test_scalar_has_one_chunk():
    grid = grids.bind(grids.regular(()), ())
    assert (grid.grid_shape, grid.chunk_shape, grid.nchunks, list(grid.coords())) == ((), (), 1, [()])
    assert (grid.shape_of(()), grid.slices_of(())) == ((), ())


@pytest.mark.parametrize("size", [0, 1, 5])
def test_dimension_of_length_zero_has_no_chunks_whatever_their_length(size):
    grid = grids.bind(grids.regular((2, size)), (4, 0))
    assert (grid.grid_shape, grid.chunk_shape, list(grid.coords())) == ((2, 0), (2, size), [])


def test_huge_array_costs_nothing():
    grid = grids.bind(grids.regular((1, 2**62, 2**70)), (2**63, 2**63, 2**63))
    assert grid.grid_shape == (2**63, 2, 1)
    assert grid.slices_of((2**63 - 1, 1, 0)) == (slice(2**63 - 1, 2**63), slice(2**62, 2**63), slice(0, 2**63))
    assert list(itertools.islice(grid.coords(), 3)) == [(0, 0, 0), (0, 1, 0), (1, 0, 0)]
    last = np.array([2**63 - 1])
    assert [axis.locate(last)[0].tolist() for axis in grid.axes] == [[2**63 - 1], [1], [0]]
    assert [axis.locate(last)[1].tolist() for axis in grid.axes] == [[0], [2**62 - 1], [2**63 - 1]]


def test_rectilinear_grid_is_that_of_the_specifications_example():
    grid = grids.bind(rectilinear(4, [1, 2, 3], [[4, 2]], [[1, 3], 3], [4, 4, 4]), (6, 6, 6, 6, 6))
    assert grid.grid_shape == (2, 3, 2, 4, 2)  # the last chunk of the last axis holds no element
    assert [[axis.chunk(number)[1] for number in range(axis.count)] for axis in grid.axes] == [
        [4, 4],
        [1, 2, 3],
        [4, 4],
        [1, 1, 1, 3],
        [4, 4],
    ]
    assert grid.chunk_shape is None


def test_element_is_in_the_chunk_that_the_specification_says():
    grid = grids.bind(rectilinear([16, 10], [24, 14]), (26, 38))
    assert grid.axes[0].find(20) == (1, 16, 10)
    assert grid.axes[1].find(15) == (0, 0, 24)
    assert grid.shape_of((1, 0)) == (10, 24)


def test_rectilinear_grid_of_equal_chunks_has_one_chunk_shape():
    assert grids.bind(rectilinear([3, 3, [3, 4]], 2), (16, 5)).chunk_shape == (3, 2)


def test_short_last_chunk_is_another_shape_though_nothing_is_cut():
    grid = grids.bind(rectilinear([4, 4, 2]), (10,))
    assert (grid.chunk_shape, grid.shape_of((2,))) == (None, (2,))


def test_long_runs_are_never_written_out():
    grid = grids.bind(rectilinear([[1, 2**50], [2**40, 2**20]]), (2**60,))
    assert grid.grid_shape == (2**50 + 2**20 - 2**10,)
    assert grid.axes[0].find(2**60 - 1) == (grid.grid_shape[0] - 1, 2**60 - 2**40 + 2**50 % 2**40, 2**40)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=6), st.data())
def test_axis_agrees_with_its_chunks_written_out(runs, data):
    sizes = [size for size, count in runs for _ in range(count)]
    length = data.draw(st.integers(1, sum(sizes)))
    (axis,) = grids.bind(rectilinear([list(run) for run in runs]), (length,)).axes
    starts = [start for start in itertools.accumulate(sizes, initial=0) if start < length]
    assert axis.count == len(starts)
    assert [axis.chunk(number) for number in range(axis.count)] == list(zip(starts, sizes, strict=False))
    numbers = np.searchsorted(starts, np.arange(length), side="right") - 1
    assert [axis.find(index) for index in range(length)] == [(n, starts[n], sizes[n]) for n in numbers]
    found, places = axis.locate(np.arange(length))
    assert found.tolist() == numbers.tolist()
    assert places.tolist() == (np.arange(length) - np.array(starts)[numbers]).tolist()


@pytest.mark.parametrize("coords", [(2, 0), (-1, 0), (0,), (0, 0, 0)])
def test_chunk_outside_the_grid_is_refused(coords):
    grid = grids.bind(grids.regular((4, 4)), (6, 3))
    with pytest.raises(BoundsCheckError) as caught:
        grid.slices_of(coords)
    assert caught.value.found == coords
    with pytest.raises(IndexError):
        grid.shape_of(coords)


def test_unknown_grid_names_itself_and_those_known():
    with pytest.raises(UnknownChunkGridError, match=r"hexagonal.*regular.*rectilinear") as caught:
        grids.bind(Named("hexagonal"), (1,))
    assert caught.value.pointer == "/chunk_grid/name"


@pytest.mark.parametrize(
    ("named", "pointer"),
    [
        (Named("regular"), "/chunk_shape"),
        (Named("regular", {"chunk_shape": [2, 2], "separator": "."}), "/separator"),
        (Named("regular", {"chunk_shape": 2}), "/chunk_shape"),
        (Named("regular", {"chunk_shape": "23"}), "/chunk_shape"),
        (Named("regular", {"chunk_shape": {"0": 2}}), "/chunk_shape"),
        (Named("regular", {"chunk_shape": [2]}), "/chunk_shape"),
        (Named("regular", {"chunk_shape": [2, 3, 1]}), "/chunk_shape"),
        (Named("regular", {"chunk_shape": [2, 0]}), "/chunk_shape/1"),
        (Named("regular", {"chunk_shape": [-2, 2]}), "/chunk_shape/0"),
        (Named("regular", {"chunk_shape": [2, 2.0]}), "/chunk_shape/1"),
        (Named("regular", {"chunk_shape": [2, True]}), "/chunk_shape/1"),
        (Named("regular", {"chunk_shape": [2, "2"]}), "/chunk_shape/1"),
        (Named("regular", {"chunk_shape": [2, None]}), "/chunk_shape/1"),
        (Named("rectilinear", {"chunk_shapes": [2, 2]}), "/kind"),
        (Named("rectilinear", {"kind": "array", "chunk_shapes": [2, 2]}), "/kind"),
        (rectilinear(2), "/chunk_shapes"),
        (rectilinear(2, 0), "/chunk_shapes/1"),
        (rectilinear(2, "4"), "/chunk_shapes/1"),
        (rectilinear(2, [3, 2]), "/chunk_shapes/1"),
        (rectilinear(2, []), "/chunk_shapes/1"),
        (rectilinear(2, [3, 0, 3]), "/chunk_shapes/1/1"),
        (rectilinear(2, [3, [3]]), "/chunk_shapes/1/1"),
        (rectilinear(2, [3, [3, 0]]), "/chunk_shapes/1/1/1"),
        (rectilinear(2, [3, [True, 3]]), "/chunk_shapes/1/1/0"),
        (rectilinear(2, [3, [[3], 3]]), "/chunk_shapes/1/1/0"),
    ],
)
def test_broken_configuration_is_pointed_at(named, pointer):
    with pytest.raises(MetadataError) as caught:
        grids.bind(named, (4, 6))
    assert caught.value.pointer == POINTER + pointer
    assert caught.value.found is not None
    assert caught.value.expected is not None
    assert caught.value.spec


def test_document_keeps_its_spelling():
    named = rectilinear([[1, 3], 3], 4)
    assert grids.bind(named, (6, 6)).named is named


def test_regular_grid_keeps_its_chunks_when_the_array_is_resized():
    named = grids.regular((4, 4))
    assert grids.bind(named, (6, 3)).resized((100, 0)) == named


def test_chunk_length_zero_grows_with_the_array():
    assert grids.bind(grids.regular((0, 2, 0)), (0, 2, 0)).resized((5, 2, 0)) == grids.regular((5, 2, 0))


def test_rectilinear_grid_gets_one_chunk_more_where_the_array_outgrows_it():
    grid = grids.bind(rectilinear([[4, 2]], [1, 2, 3], 4), (8, 6, 6))
    assert grid.resized((11, 5, 9)) == rectilinear([[4, 2], 3], [1, 2, 3], 4)


def test_grid_survives_pickling():
    grid = grids.bind(rectilinear([4, 2]), (6,))
    assert pickle.loads(pickle.dumps(grid)) == grid


LONG = [size if number % 3 else [size, number % 4 + 1] for number, size in enumerate([3, 3, 1, 2, 5, 2] * 20)]


def written_out(row):
    return [size for item in row for size in ([item] if isinstance(item, int) else [item[0]] * item[1])]


@pytest.mark.parametrize("cut", [0, 1, 17])
def test_long_list_of_lengths_agrees_with_its_chunks_written_out(cut):
    sizes = written_out(LONG)
    ends = np.cumsum(sizes)
    length = int(ends[-1]) - cut
    (axis,) = grids.bind(rectilinear(LONG), (length,)).axes
    starts = [int(end) - size for end, size in zip(ends, sizes, strict=True)]
    expected = [(start, size) for start, size in zip(starts, sizes, strict=True) if start < length]
    assert [axis.chunk(number) for number in range(axis.count)] == expected
    assert grids.bind(rectilinear(LONG), (0,)).grid_shape == (0,)
    longer = grids.bind(rectilinear(LONG), (length,)).resized((int(ends[-1]) + 7,))
    assert longer.configuration["chunk_shapes"] == [[*LONG, 7]]


@pytest.mark.parametrize(
    ("item", "pointer"), [(0, "/100"), ([1], "/100"), ([1, 0], "/100/1"), (True, "/100"), ([1.0, 2], "/100/0")]
)
def test_broken_item_of_a_long_list_is_pointed_at(item, pointer):
    with pytest.raises(MetadataError) as caught:
        grids.bind(rectilinear([*LONG[:100], item, *LONG[100:]]), (sum(written_out(LONG)),))
    assert str(caught.value.pointer).endswith(f"/chunk_shapes/0{pointer}")


def test_long_list_may_hold_lengths_that_no_64_bits_hold():
    row = [*LONG, 2**70]
    (axis,) = grids.bind(rectilinear(row), (2**65,)).axes
    assert axis.chunk(axis.count - 1) == (sum(written_out(LONG)), 2**70)


@pytest.mark.parametrize(
    ("named", "before", "shape"),
    [
        (grids.regular((2, 3)), (4, 3), (9, 3)),
        (grids.regular((0, 3)), (0, 3), (9, 3)),
        (Named("rectilinear", {"kind": "inline", "chunk_shapes": [[1, 3], 3]}), (4, 3), (9, 3)),
        (grids.regular((2,)), (4, 3), (9, 3)),
        (grids.regular((2, -3)), (4, 3), (9, 3)),
        (Named("regular", {"chunk_shape": 2}), (4,), (9,)),
        (Named("regular", {}), (4,), (9,)),
        (Named("regular", {"chunk_shape": [2], "more": 1}), (4,), (9,)),
    ],
)
def test_a_grid_is_resized_without_being_bound(named, before, shape):
    try:
        expected = grids.bind(named, before).resized(shape)
    except MetadataError as error:
        with pytest.raises(type(error), match=re.escape(error.message)):
            grids.resized(named, before, shape)
    else:
        assert grids.resized(named, before, shape) == expected
