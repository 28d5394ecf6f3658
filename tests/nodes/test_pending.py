"""`omnizarr.nodes.pending`: parts of chunks that wait, whatever was selected."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.nodes.pending import Pending, as_box, own, united

SHAPE = (4, 5)


def selectors(length):
    starts = st.integers(0, length - 1)
    boxes = starts.flatmap(lambda start: st.integers(start + 1, length).map(lambda stop: slice(start, stop, 1)))
    strided = starts.map(lambda start: slice(start, length, 2))
    return boxes | strided


selections = st.tuples(*map(selectors, SHAPE)) | st.tuples(
    st.lists(st.integers(0, 3), min_size=1).map(lambda rows: np.array(rows)[:, None]),
    st.lists(st.integers(0, 4), min_size=1).map(np.array),
)


@given(st.lists(selections, max_size=12))
def test_what_is_written_is_what_numpy_has(several):
    pending = Pending(SHAPE, np.dtype("i4"))
    values, written = np.zeros(SHAPE, "i4"), np.zeros(SHAPE, bool)
    for number, selection in enumerate(several):
        part = np.full(values[selection].shape, number, "i4")
        pending.put(selection, part)
        values[selection], written[selection] = part, True
        assert pending.is_complete == written.all()
        found = pending.written(SHAPE)
        np.testing.assert_array_equal(written, True if found is None else found)
        np.testing.assert_array_equal(pending.values[written], values[written])
        bounds = pending.bounds()
        assert written[bounds].sum() == written.sum()
        assert all(written[bounds].any(axis=1 - axis)[[0, -1]].all() for axis in (0, 1))


@given(st.tuples(*map(selectors, SHAPE)), st.tuples(*map(selectors, SHAPE)))
def test_a_union_of_boxes_is_a_box_or_none(one, other):
    boxes = as_box(one), as_box(other)
    if None in boxes:
        return
    mask = np.zeros(SHAPE, bool)
    mask[one] = mask[other] = True
    found = united(*boxes)
    if found is not None:
        assert mask[found].all()
        assert mask[found].size == mask.sum()
    else:
        rows, columns = mask.any(axis=1), mask.any(axis=0)
        tight = np.ix_(np.nonzero(rows)[0], np.nonzero(columns)[0])
        # Something within the smallest box is not written, or the two do not touch.
        assert (
            not mask[tight].all()
            or (np.diff(np.nonzero(rows)[0]) > 1).any()
            or (np.diff(np.nonzero(columns)[0]) > 1).any()
        )


def test_rows_one_after_the_other_need_no_mask():
    pending = Pending((100, 5), np.dtype("i4"))
    for row in range(100):
        assert not pending.is_complete
        pending.put((slice(row, row + 1, 1), slice(0, 5, 1)), np.ones((1, 5), "i4"))
        assert pending.mask is None
    assert pending.is_complete


@pytest.mark.parametrize("item", [[1, 2], np.arange(3), {"a": [1]}])
def test_objects_that_can_change_are_copied(item):
    part = np.empty(1, object)
    part[0] = item
    kept = own(part)[0]
    assert kept is not item
    np.testing.assert_equal(kept, item)


def test_a_chunk_without_dimensions_is_complete_when_it_is_written():
    pending = Pending((), np.dtype("i4"))
    assert not pending.is_complete
    pending.put((), np.array(3, "i4"))
    assert pending.is_complete
    assert pending.values == 3
