"""Batches become the plan that they were made of; other batches become none."""

import numpy as np
import pytest

from omnizarr import indexing
from omnizarr.indexing.plans import Run
from omnizarr.interop.zarr_batches import Keys, planned
from omnizarr.model import Named, grids, keys

zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

from zarr.core import indexing as theirs  # noqa: E402

SHAPE, CHUNKS = (20, 30), (7, 8)
GRID = grids.bind(grids.regular(CHUNKS), SHAPE)
DEFAULT = keys.bind(Named("default"))


class Place:
    """What a batch has of a chunk."""

    def __init__(self, path):
        self.path = path


def their_grid():
    with zarr.config.set({"codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline"}):
        array = zarr.create_array({}, shape=SHAPE, chunks=CHUNKS, dtype="i4")
    return getattr(array._async_array, "_chunk_grid", array.metadata.chunk_grid)


def batch_of(indexer, prefix="a/"):
    return [
        (Place(prefix + DEFAULT.encode(tuple(map(int, coords)))), None, inner, outer, whole)
        for coords, inner, outer, whole in indexer
    ], indexer.drop_axes


def pieces(plan):
    """Return what goes where, as sets of places: chunk, place in it, place in the buffer."""
    places = np.arange(int(np.prod(plan.buffer_shape))).reshape(plan.buffer_shape)
    chunk = np.arange(int(np.prod(CHUNKS))).reshape(CHUNKS)
    found = {}
    for coords, inner, outer, _ in plan:
        found[tuple(map(int, coords))] = dict(
            zip(places[outer].ravel().tolist(), chunk[inner].ravel().tolist(), strict=True)
        )
    return found


CASES = {
    "all": (theirs.BasicIndexer, ..., indexing.basic),
    "box": (theirs.BasicIndexer, (slice(2, 19), slice(3, 17)), indexing.basic),
    "steps": (theirs.BasicIndexer, (slice(1, None, 3), slice(None, 20, 5)), indexing.basic),
    "row": (theirs.BasicIndexer, (5, slice(None)), indexing.basic),
    "element": (theirs.BasicIndexer, (5, 6), indexing.basic),
    "lists": (theirs.OrthogonalIndexer, ([17, 1, 1, 5], [29, 0]), indexing.orthogonal),
    "list and slice": (theirs.OrthogonalIndexer, ([17, 1, 1, 5], slice(3, 28)), indexing.orthogonal),
    "list and integer": (theirs.OrthogonalIndexer, (3, [29, 0, 5]), indexing.orthogonal),
    "mask": (theirs.OrthogonalIndexer, (np.arange(20) % 3 == 0, slice(None)), indexing.orthogonal),
    "points": (theirs.CoordinateIndexer, (np.array([17, 1, 5]), np.array([3, 3, 29])), indexing.coordinate),
    "sorted points": (theirs.CoordinateIndexer, (np.array([1, 2, 17]), np.array([3, 3, 29])), indexing.coordinate),
}


@pytest.mark.parametrize(("indexer", "selection", "plan"), CASES.values(), ids=CASES)
def test_batch_becomes_the_plan_of_its_selection(indexer, selection, plan):
    batch, drop_axes = batch_of(indexer(selection, SHAPE, their_grid()))
    found = planned(batch, Keys("a/", DEFAULT, 2), CHUNKS, drop_axes)
    expected = plan(selection, GRID)
    assert found is not None
    assert found.plan.buffer_shape == expected.buffer_shape
    assert pieces(found.plan) == pieces(expected)


@pytest.mark.parametrize(("indexer", "selection"), [case[:2] for case in CASES.values()], ids=CASES)
def test_view_has_the_dimensions_of_the_plan(indexer, selection):
    chosen = indexer(selection, SHAPE, their_grid())
    batch, drop_axes = batch_of(chosen)
    found = planned(batch, Keys("a/", DEFAULT, 2), CHUNKS, drop_axes)
    shape = tuple(length for axis, length in enumerate(chosen.shape) if axis not in drop_axes)
    if len(shape) + len(found.dropped) == len(found.plan.buffer_shape):
        assert found.view(np.zeros(shape)).shape == found.plan.buffer_shape


def all_chunks():
    return batch_of(theirs.BasicIndexer(..., SHAPE, their_grid()))[0]


CHANGES = {
    "a chunk is missing": lambda batch: batch.pop(5),
    "two chunks are exchanged": lambda batch: batch.insert(2, batch.pop(6)),
    "a chunk is there twice": lambda batch: batch.append(batch[-1]),
    "a chunk of another array": lambda batch: batch.__setitem__(5, (Place("b/c/1/1"), *batch[5][1:])),
    "another part of one chunk": lambda batch: batch.__setitem__(
        5, (*batch[5][:2], (slice(0, 7, 1), slice(1, 8, 1)), *batch[5][3:])
    ),
    "another place for one chunk": lambda batch: batch.__setitem__(
        5, (*batch[5][:3], (slice(0, 7), slice(8, 16)), batch[5][4])
    ),
    "more places than elements": lambda batch: batch.__setitem__(
        0, (*batch[0][:3], (slice(0, 8), slice(0, 8)), batch[0][4])
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_batch_that_is_no_selection_has_no_plan(change):
    batch = all_chunks()
    assert planned(batch, Keys("a/", DEFAULT, 2), CHUNKS) is not None
    change(batch)
    assert planned(batch, Keys("a/", DEFAULT, 2), CHUNKS) is None


@pytest.mark.parametrize("separator", ["/", "."])
@pytest.mark.parametrize("name", ["default", "v2"])
@pytest.mark.parametrize("prefix", ["", "a/", "a/0/1/", "c/c/"])
@pytest.mark.parametrize("coords", [(), (3,), (0, 12, 5)])
def test_prefix_of_an_array_is_what_stands_before_its_chunk_keys(separator, name, prefix, coords):
    encoding = keys.bind(Named(name, {"separator": separator}))
    found = Keys.of(prefix + encoding.encode(coords), encoding, len(coords))
    assert found is not None
    assert (found.prefix, found.coords(prefix + encoding.encode(coords))) == (prefix, coords)


def test_key_of_no_chunk_has_no_array():
    assert Keys.of("a/c/x", DEFAULT, 1) is None


@pytest.mark.parametrize("place", [2, 3])
def test_chunks_along_one_dimension_that_differ_along_another_are_no_selection(place):
    batch = batch_of(theirs.BasicIndexer((slice(None), slice(0, 8)), SHAPE, their_grid()))[0]
    assert planned(batch, Keys("a/", DEFAULT, 2), CHUNKS) is not None
    item = list(batch[1])
    item[place] = (item[place][0], slice(1, 8, 1))
    batch[1] = tuple(item)
    assert planned(batch, Keys("a/", DEFAULT, 2), CHUNKS) is None


@pytest.mark.parametrize("start", range(15))
def test_slice_over_neighbouring_chunks_is_given_as_a_run(start):
    for stop in range(start + 9, SHAPE[0] + 1):
        selection = (slice(start, stop), slice(3, 28))
        found = planned(
            batch_of(theirs.BasicIndexer(selection, SHAPE, their_grid()))[0], Keys("a/", DEFAULT, 2), CHUNKS
        )
        assert all(isinstance(part, Run) for part in found.plan.pieces.parts)
        assert pieces(found.plan) == pieces(indexing.basic(selection, GRID))
        covered = {piece.coords for piece in found.plan if piece.whole}
        assert covered == {(row, 1) for row in range(2) if start <= row * 7 and row * 7 + 7 <= stop} | {
            (row, 2) for row in range(2) if start <= row * 7 and row * 7 + 7 <= stop
        }
