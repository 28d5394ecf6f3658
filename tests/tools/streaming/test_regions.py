"""`omnizarr.tools.streaming.regions`: each chunk is in one region, no region is too large."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.model import grids
from omnizarr.tools.streaming.regions import Regions, plan


def regular(shape, chunks):
    return grids.bind(grids.regular(chunks), shape)


SHAPE = (20, 30)
LENGTHS = st.tuples(st.integers(1, 12), st.integers(1, 40))


@given(LENGTHS, LENGTHS, st.integers(1, 1000), st.integers(1, 4))
def test_each_element_is_in_one_region(chunks, other, budget, workers):
    regions = plan(regular(SHAPE, chunks), regular(SHAPE, other), 1, budget, workers)
    seen = np.zeros(SHAPE, int)
    for number in range(regions.total):
        seen[regions.box(number)] += 1
    assert (seen == 1).all()


@given(LENGTHS, LENGTHS, st.integers(1, 1000))
def test_region_has_no_more_than_the_budget_or_one_chunk(chunks, other, budget):
    regions = plan(regular(SHAPE, chunks), regular(SHAPE, other), 1, budget)
    for number in range(regions.total):
        size = np.zeros(SHAPE, bool)[regions.box(number)].size
        assert size <= budget or len(list(regions.chunks(number))) == 1


@given(LENGTHS, LENGTHS, st.integers(1, 1000))
def test_region_is_made_of_the_chunks_it_names(chunks, other, budget):
    grid = regular(SHAPE, chunks)
    regions = plan(grid, regular(SHAPE, other), 1, budget)
    for number in range(regions.total):
        whole, parts = np.zeros(SHAPE, bool), np.zeros(SHAPE, bool)
        whole[regions.box(number)] = True
        for coords in regions.chunks(number):
            parts[grid.slices_of(coords)] = True
        np.testing.assert_array_equal(whole, parts)


@given(LENGTHS, st.tuples(st.integers(0, 20), st.integers(0, 20)), st.tuples(st.integers(0, 30), st.integers(0, 30)))
def test_regions_touched_are_those_that_share_elements(chunks, rows, columns):
    regions = Regions(regular(SHAPE, chunks), (2, 1))
    box = slice(*sorted(rows)), slice(*sorted(columns))
    numbers = np.empty(SHAPE, int)
    for number in range(regions.total):
        numbers[regions.box(number)] = number
    assert list(regions.holding([box, box])) == sorted(set(numbers[box].ravel().tolist()))


def test_chunks_of_the_other_grid_are_covered_where_memory_allows():
    regions = plan(regular((100, 100), (10, 10)), regular((100, 100), (100, 1)), 8, 8 * 10 * 100)
    assert regions.per_axis == (10, 1)


def test_regions_of_a_huge_grid_are_found_without_a_mark_for_each():
    regions = plan(regular((2**63 - 1, 2**62), (1, 1)), regular((2**63 - 1, 2**62), (1, 1)), 1, 1)
    box = slice(2**62, 2**62 + 1), slice(5, 7)
    assert [regions.box(number) for number in regions.holding([box])] == [
        (slice(2**62, 2**62 + 1), slice(5, 6)),
        (slice(2**62, 2**62 + 1), slice(6, 7)),
    ]


def test_array_without_dimensions_has_one_region():
    grid = regular((), ())
    regions = plan(grid, grid, 8, 1)
    assert (regions.total, regions.box(0), list(regions.chunks(0))) == (1, (), [()])


def test_array_without_elements_has_no_region():
    grid = regular((0, 5), (2, 2))
    assert plan(grid, grid, 8, 1).total == 0


def test_chunks_of_differing_lengths():
    grid = grids.bind(
        grids.Named("rectilinear", {"kind": "inline", "chunk_shapes": [[[3, 2], 4]]}),
        (10,),
    )
    regions = Regions(grid, (2,))
    assert [regions.box(number) for number in range(regions.total)] == [(slice(0, 6),), (slice(6, 10),)]
