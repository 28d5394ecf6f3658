from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.codecs import spans

FAR = spans.GAP + 1


def test_neighbours_become_one_span():
    assert spans.coalesce([(0, 10), (10, 20)]) == ([(0, 20)], [0, 0])


def test_runs_with_a_small_gap_become_one_span():
    assert spans.coalesce([(0, 10), (10 + spans.GAP, 20 + spans.GAP)]) == ([(0, 20 + spans.GAP)], [0, 0])


def test_runs_with_a_large_gap_stay_apart():
    assert spans.coalesce([(10 + FAR, 20 + FAR), (0, 10)]) == ([(0, 10), (10 + FAR, 20 + FAR)], [1, 0])


def test_overlapping_runs_become_one_span():
    assert spans.coalesce([(0, 100), (50, 60), (0, 100), (90, 110)]) == ([(0, 110)], [0, 0, 0, 0])


def test_spans_do_not_grow_for_ever():
    size = spans.LARGEST // 4
    found, places = spans.coalesce([(n * size, (n + 1) * size) for n in range(6)])
    assert found == [(0, 4 * size), (4 * size, 6 * size)]
    assert places == [0, 0, 0, 0, 1, 1]


def test_nothing_needs_no_span():
    assert spans.coalesce([]) == ([], [])


@given(st.lists(st.tuples(st.integers(0, 400_000), st.integers(0, 100_000)), max_size=12))
def test_each_run_is_in_its_span(runs):
    runs = [(start, start + size) for start, size in runs]
    found, places = spans.coalesce(runs)
    assert found == sorted(found)
    for (start, stop), place in zip(runs, places, strict=True):
        assert found[place][0] <= start <= stop <= found[place][1]


@given(st.data())
def test_spans_of_a_selection_hold_it_and_little_more(data):
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 5, 300]), min_size=1, max_size=3)))
    item_size = data.draw(st.sampled_from([1, 8, 1000]))
    points = data.draw(st.integers(1, 3))
    kinds = data.draw(st.sampled_from(["points", "slices", "both"]))

    def selector(length):
        if kinds == "points" or (kinds == "both" and data.draw(st.booleans())):
            return np.array(data.draw(st.lists(st.integers(0, length - 1), min_size=points, max_size=points)))
        return slice(data.draw(st.integers(0, length - 1)), length, data.draw(st.integers(1, 200)))

    selection = tuple(map(selector, shape))
    numbers = np.arange(np.prod(shape)).reshape(shape)
    wanted = np.unique(numbers[selection])
    found = spans.of_selection(selection, shape, item_size)
    assert all(stop + spans.GAP < start for (_, stop), (start, _) in pairwise(found))
    starts = np.array([start for start, _ in found])
    stops = np.array([stop for _, stop in found])
    at = np.searchsorted(starts, wanted * item_size, side="right") - 1
    assert (starts[at] <= wanted * item_size).all()
    assert ((wanted + 1) * item_size <= stops[at]).all()
    # Nothing is fetched in front of the first element or behind the last one, nor across a large gap.
    assert set(starts) <= set(wanted * item_size)
    assert set(stops) <= set((wanted + 1) * item_size)
