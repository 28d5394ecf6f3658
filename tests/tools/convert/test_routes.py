"""`omnizarr.tools.convert.routes`: which blocks are moved, and through which cells."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.model import grids
from omnizarr.tools.convert import routes
from omnizarr.tools.convert.routes import Constraints, coarse, passes, route


def regular(shape, chunks):
    return grids.bind(grids.regular(chunks), shape)


@st.composite
def axes(draw):
    """An axis in chunks of one length, or of several."""
    length = draw(st.integers(1, 60))
    if draw(st.booleans()):
        return regular((length,), (draw(st.integers(1, 70)),)).axes[0]
    sizes = []
    while sum(sizes) < length:
        sizes.append(draw(st.integers(1, 20)))
    named = grids.Named("rectilinear", {"kind": "inline", "chunk_shapes": [sizes]})
    return grids.bind(named, (length,)).axes[0]


def edges(axis):
    return {axis.chunk(number)[0] for number in range(axis.count)}


@given(axes(), st.data())
def test_cells_are_what_the_edges_of_both_cut(one, data):
    other = data.draw(axes().filter(lambda axis: axis.length >= 1))
    other = regular((one.length,), (max(other.sizes),)).axes[0] if other.length != one.length else other
    assert routes._cells(one, other) == routes._cells(other, one) == len(edges(one) | edges(other))


@given(axes(), st.integers(1, 8))
def test_coarse_chunks_are_made_of_whole_ones(axis, step):
    found = coarse(routes._grid([axis]), (step,)).axes[0]
    assert edges(found) == {axis.chunk(number)[0] for number in range(0, axis.count, step)}
    assert found.length == axis.length


SHAPES = st.integers(1, 3).flatmap(lambda ndim: st.tuples(*[st.tuples(*[st.integers(1, 40)] * ndim) for _ in range(3)]))


@given(SHAPES, st.integers(1, 3000), st.booleans())
def test_source_is_read_twice_at_most_and_blocks_are_made_of_whole_chunks(shapes, memory, compares):
    shape, before, after = shapes
    source, target = regular(shape, before), regular(shape, after)
    given = Constraints(source, target, 1, memory, 2, compares=compares)
    found = route(given)
    told = passes(found, given)
    assert len(told) == len(found.blocks) == len(found.stages) + 1
    assert sum(each.bytes_read for each in told if each.reads == "source") <= 2 * math.prod(shape)
    for axis, whole in zip(found.blocks[-1].axes, target.axes, strict=True):
        assert edges(axis) <= edges(whole)
    if not found.is_direct:
        assert told[0].requests_read == source.nchunks
        for axis, whole in zip(found.blocks[0].axes, source.axes, strict=True):
            assert edges(axis) <= edges(whole)
    largest_chunk = max(math.prod(map(min, shape, before)), math.prod(map(min, shape, after)))
    for blocks in found.blocks:
        assert routes._largest(blocks) <= max(memory, largest_chunk)


@pytest.mark.parametrize("planes", [64, 128, 256, 512, 4096, 2**20])
def test_requests_grow_as_the_array_does(planes):
    shape = (planes, 256, 256)
    given = Constraints(regular(shape, (4, 256, 256)), regular(shape, (min(planes, 4096), 16, 16)), 4, 2**23, 2)
    found = route(given)
    told = passes(found, given)
    if not found.is_direct:
        nbytes = math.prod(shape) * 4
        requests = sum(each.requests_read + each.requests_written for each in told)
        assert requests < 100 + len(told) * nbytes / 2**14
        assert all(each.memory <= 2**23 for each in told)


def test_more_passes_come_in_where_cells_would_be_tiny():
    shape = (10**6, 500, 500)
    given = Constraints(regular(shape, (1, 500, 500)), regular(shape, (10**6, 1, 1)), 4, 2**23, 2)
    found = route(given)
    assert len(found.blocks) > 2
    assert min(stage.cell_bytes for stage in found.stages) > 2**14


def test_one_pass_is_enough_where_the_array_fits_in_memory():
    given = Constraints(regular((100, 100), (1, 100)), regular((100, 100), (100, 1)), 8, 10**6)
    assert route(given).is_direct
    (only,) = passes(route(given), given)
    assert (only.reads, only.writes, only.times_read) == ("source", "target", 1)


def test_without_a_place_for_temporary_objects_there_is_one_pass():
    given = Constraints(regular((100, 100), (1, 100)), regular((100, 100), (100, 1)), 8, 1000)
    assert not route(given).is_direct
    assert route(given, may_stage=False).is_direct


def test_grid_too_large_to_count_is_planned_at_once():
    shape = (2**62, 2**62)
    assert route(Constraints(regular(shape, (1, 1)), regular(shape, (1000, 2)), 4, 2**23)).is_direct


def test_blocks_stay_large_where_many_requests_are_on_their_way_at_once():
    shape, memory = (256, 512, 512), 2**26
    found = route(Constraints(regular(shape, (2, 512, 512)), regular(shape, (256, 16, 16)), 4, memory, 128))
    assert not found.is_direct
    # each block waits for its requests, so there are few: 256 MiB in blocks of a quarter of the memory, or more
    assert all(blocks.nchunks <= 4 * math.prod(shape) * 4 // memory for blocks in found.blocks)


@given(SHAPES, st.integers(1, 3000), st.booleans())
def test_next_block_is_read_ahead_only_where_two_fit_and_for_no_more_requests(shapes, memory, compares):
    shape, before, after = shapes
    near = Constraints(regular(shape, before), regular(shape, after), 1, memory, 2, compares=compares)
    far = near._replace(is_far=True)
    found = route(far)
    for is_ahead, blocks in zip(found.ahead, found.blocks, strict=True):
        assert not is_ahead or 2 * routes._largest(blocks) <= memory
    without, told = passes(route(near), near), passes(found, far)
    assert all(each.memory <= memory for each, is_ahead in zip(told, found.ahead, strict=True) if is_ahead)
    assert len(told) == len(without)
    for ours, theirs in zip(told, without, strict=True):
        assert ours.requests_read <= theirs.requests_read
        assert ours.requests_written <= theirs.requests_written
    assert not any(route(far._replace(width=2)).ahead)


def test_cells_that_are_read_in_place_leave_memory_for_another_block():
    shape, memory = (256, 512, 512), 2**26
    given = Constraints(regular(shape, (2, 512, 512)), regular(shape, (256, 16, 16)), 4, memory, 128)
    found = route(given)
    assert found.stages[0].is_read_in_place
    assert found.ahead == (False, True)
    turned = Constraints(regular(shape, (256, 512, 2)), regular(shape, (2, 2, 512)), 4, memory, 128)
    assert not any(stage.is_read_in_place for stage in route(turned).stages)
