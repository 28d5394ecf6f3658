"""Lazy arrays whose dimensions are divided and merged: the elements of NumPy's, of the chunks that hold them."""

import json
import math
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import omnizarr
from omnizarr.errors import MetadataError, NotRepresentableError, ReadOnlyError, SelectionError
from omnizarr.nodes.lazy import documents, reading, reshaping
from omnizarr.stores import LocalStore, MetricsStore
from tests.nodes.lazy.test_against_numpy import a_shape_of, a_source, a_step

HOURS = np.arange(96 * 3).reshape(96, 3)


@pytest.fixture
def hours(tmp_path):
    return omnizarr.create_array(
        tmp_path / "hours", data=HOURS, chunks=(24, 3), compressors=None, dimension_names=["time", "x"]
    )


@given(st.data())
@settings(max_examples=300)
def test_few_positions_at_a_time_read_the_same(data):
    view, expected = data.draw(a_source())
    for _ in range(data.draw(st.integers(1, 3))):
        shape = data.draw(a_shape_of(expected.size))
        view, expected = view.reshape(shape), expected.reshape(shape)
        view, expected = data.draw(a_step(view, expected))
        if expected.size > 2000 or expected.ndim > 7:
            break
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reshaping, "_MOST_LISTED", data.draw(st.sampled_from([1, 4])))
        patch.setattr(reshaping, "_MOST_BYTES", data.draw(st.sampled_from([1, 64])))
        patch.setattr(reading, "_MOST_BYTES", data.draw(st.sampled_from([1, 500])))
        np.testing.assert_array_equal(view.read(), expected)
        out = np.empty(expected.shape[::-1], view.dtype).T
        np.testing.assert_array_equal(view.read(out=out), expected)


@given(st.data())
@settings(max_examples=200)
def test_boxes_are_the_elements_in_order(data):
    lengths = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, math.prod(lengths))] * 2)))
    array = np.arange(math.prod(lengths)).reshape(lengths)
    at = first
    for begin, end, box in reshaping.boxes(lengths, first, last):
        places = tuple(each if isinstance(each, int) else slice(each.start, each.stop) for each in box)
        assert array[places].ravel().tolist() == list(range(begin, end))
        assert begin == at
        at = end
    assert at == last


@pytest.mark.parametrize(
    ("selection", "chunks"),
    [
        ((0,), 1),
        ((slice(1, 3),), 2),
        ((slice(None), 5), 4),
        ((3, 20, 1), 1),
        ((slice(None, None, 2), slice(3, 20, 5)), 2),
        ((slice(None, None, -1), slice(None, None, -1)), 4),
        (([3, 0], slice(2, 4)), 2),
    ],
    ids=repr,
)
def test_a_selection_asks_for_the_chunks_of_its_elements(hours, selection, chunks):
    store = MetricsStore(LocalStore(hours.store.root))
    array = omnizarr.open_array(store)
    assert array[0, 0] == 0  # what is asked once is asked
    store.reset()
    found = array.lazy.reshape(4, 24, 3)[selection]
    assert store.report().total.requests == chunks
    np.testing.assert_array_equal(found, HOURS.reshape(4, 24, 3)[selection])


def test_merged_dimensions_ask_for_the_chunks_of_their_elements(hours):
    store = MetricsStore(LocalStore(hours.store.root))
    flat = omnizarr.open_array(store).lazy.reshape(-1)
    assert flat[0] == 0
    for selection, chunks in [(slice(72, 144), 1), (slice(70, 145), 3), ([0, 1, 280], 2), (slice(None, None, 100), 3)]:
        store.reset()
        np.testing.assert_array_equal(flat[selection], HOURS.reshape(-1)[selection])
        assert store.report().total.requests == chunks


def test_names_attributes_and_pieces(hours):
    hours.attrs["units"] = "K"
    days = hours.lazy.reshape(4, 24, 3)
    assert days.dimension_names == (None, None, "x")
    assert days.attrs == {"units": "K"}
    assert days.chunks == (1, 24, 3)
    assert days.reshape(96, 3).chunks == (24, 3)
    assert hours.lazy.reshape(1, 96, 3, 1).dimension_names == (None, "time", "x", None)
    assert hours.lazy.reshape(-1).chunks == (72,)
    assert repr(days).splitlines()[1].strip() == "reshape (96, 3) to (4, 24, 3)"
    assert "reshape (96, 3) to (4, 24, 3)" in days._repr_html_()


def test_reshaping_back_leaves_nothing_behind(hours):
    assert "reshape" not in repr(hours.lazy.reshape(4, 24, 3).reshape(96, 3))
    assert repr(hours.lazy.reshape(4, 24, 3).reshape(2, 48, 3)).count("reshape") == 1


def test_conversions_are_done_while_reading(hours):
    hours.attrs.update({"scale_factor": 0.5, "missing_value": 7})
    unpacked = hours.lazy.unpack().reshape(4, 24, 3)
    expected = np.where(HOURS == 7, np.nan, HOURS * 0.5).reshape(4, 24, 3)
    np.testing.assert_array_equal(unpacked[...], expected)
    np.testing.assert_array_equal(hours.lazy.reshape(4, 24, 3).unpack()[1:, ::5], expected[1:, ::5])


@pytest.mark.parametrize("shape", [(97, 3), (4, 24), (-1, -1), (-96, -3), (5, -1), (0, -1)], ids=repr)
def test_another_number_of_elements_is_refused(hours, shape):
    with pytest.raises(ValueError, match=r"cannot reshape|can only specify"):
        HOURS.reshape(shape)
    with pytest.raises(SelectionError, match="numbers of elements"):
        hours.lazy.reshape(shape)


def test_divided_dimensions_are_not_written(hours):
    days = hours.lazy.reshape(4, 24, 3)
    with pytest.raises(ReadOnlyError, match="write before you reshape"):
        days[0] = 1
    hours.lazy.reshape(96, 1, 3)[0] = -1  # lengths of 1 are
    assert hours[0].tolist() == [-1, -1, -1]


def test_joins_of_reshaped_arrays(hours):
    days = hours.lazy.reshape(4, 24, 3)
    both = omnizarr.concat([days, days.lazy[::-1]])
    expected = np.concatenate([HOURS.reshape(4, 24, 3), HOURS.reshape(4, 24, 3)[::-1]])
    np.testing.assert_array_equal(both[...], expected)
    np.testing.assert_array_equal(both.reshape(-1, 3)[90:110], expected.reshape(-1, 3)[90:110])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(both))[2:6], expected[2:6])


def test_dask_reads_pieces_and_knows_equal_arrays(hours):
    import dask.array
    from dask.base import tokenize

    days = hours.lazy.reshape(4, 24, 3)
    lazily = dask.array.from_array(days, chunks=days.chunks)
    np.testing.assert_array_equal(lazily.mean(axis=1).compute(), HOURS.reshape(4, 24, 3).mean(axis=1))
    assert tokenize(days) == tokenize(hours.lazy.reshape(4, 24, 3)) != tokenize(hours.lazy.reshape(2, 48, 3))


def test_saved_views_copies_and_references(hours, tmp_path):
    view = omnizarr.concat([hours.lazy.reshape(4, 24, 3), np.full((1, 24, 3), -5)])
    expected = np.concatenate([HOURS.reshape(4, 24, 3), np.full((1, 24, 3), -5)])
    omnizarr.save_view(tmp_path / "days.zview", view)
    again = omnizarr.open(tmp_path / "days.zview")
    np.testing.assert_array_equal(again[2:, 3], expected[2:, 3])
    omnizarr.convert(tmp_path / "days.zview", tmp_path / "copy.zarr")
    np.testing.assert_array_equal(omnizarr.open_array(tmp_path / "copy.zarr")[...], expected)
    assert omnizarr.diff(again, tmp_path / "copy.zarr").equal
    with pytest.raises(NotRepresentableError, match="divided or merged"):
        omnizarr.references(tmp_path / "days.zview", tmp_path / "days.json")


def test_documents_with_other_numbers_of_elements_are_broken(hours, tmp_path):
    place = tmp_path / "days.zview"
    omnizarr.save_view(place, hours.lazy.reshape(4, 24, 3))
    text = place.read_text()
    assert '["reshape",[4,24,3]]' in text
    place.write_text(text.replace('["reshape",[4,24,3]]', '["reshape",[4,24,4]]'))
    with pytest.raises(MetadataError, match="broken"):
        omnizarr.open(place)


def test_many_elements_are_not_looked_at(tmp_path):
    array = omnizarr.create_array(tmp_path / "a", shape=(2**40, 2**10), chunks=(2**20, 2**10), dtype="i1", fill_value=3)
    view = array.lazy.reshape(2**20, 2**20, 2**10).lazy[::-1].reshape(2**30, 2**20)
    assert view[5, 2**19 : 2**19 + 3].tolist() == [3, 3, 3]
    assert view.lazy[::2, 1:][-1, -1] == 3
    assert view.chunks
    repr(view)
    omnizarr.save_view(tmp_path / "a.zview", view)
    assert omnizarr.open(tmp_path / "a.zview")[2**29, 7] == 3


def test_deep_trees_of_reshaped_nodes(hours):
    view, expected = hours.lazy[...], HOURS
    for number in range(600):
        shape = [(4, 24, 3), (72, 4), (96, 3)][number % 3]
        view, expected = view.reshape(shape).transpose(), expected.reshape(shape).T
        view, expected = view.lazy[::-1], expected[::-1]
    np.testing.assert_array_equal(view[...], expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(view))[1:], expected[1:])
    assert len(repr(view).splitlines()) < 80


def test_joins_of_parts_of_themselves_stay_small(tmp_path):
    """What is in a tree many times is looked at once: otherwise each step would take twice as long."""
    from dask.base import tokenize

    omnizarr.create_array(tmp_path / "a", data=np.arange(6).reshape(2, 3), attributes={"units": "K"})
    view = omnizarr.concat([omnizarr.open_array(tmp_path / "a", mode="r")])
    expected = np.arange(6).reshape(2, 3)
    twice = view
    for number in range(60):
        view = omnizarr.concat([view, view.lazy[:1]])
        expected = np.concatenate([expected, expected[:1]])
        twice = omnizarr.stack([twice, twice], number % 2).lazy[1, :] if number % 3 else omnizarr.concat([twice, twice])
        twice = twice.lazy[:2]
    for each, values in ((view, expected), (twice, twice.read())):
        assert len(repr(each).splitlines()) < 80
        assert tokenize(each) == tokenize(each)
        stream = pickle.dumps(each)
        assert len(stream) < 300_000
        np.testing.assert_array_equal(pickle.loads(stream)[...], values)
        np.testing.assert_array_equal(each[-5:], values[-5:])
        assert each.attrs == {"units": "K"}
        assert each.nsources >= 60
        assert each.chunks
        np.testing.assert_array_equal(each.unpack()[...], values)
        place = tmp_path / "v.zview"
        omnizarr.save_view(place, each)
        assert place.stat().st_size < 300_000
        np.testing.assert_array_equal(omnizarr.open(place)[...], values)
        place.unlink()


def test_doubling_an_array_adds_one_node_each_time():
    view = omnizarr.concat([np.arange(2)])
    for _ in range(60):
        view = omnizarr.concat([view, view])
    assert view.shape == (2**61,)
    assert view[[0, 1, 2**61 - 1]].tolist() == [0, 1, 1]
    assert len(pickle.dumps(view)) < 20_000
    assert view.nsources == 2**60


def test_a_document_that_repeats_its_parts_is_refused(hours, tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "_MOST_NODES", 10_000)
    place = tmp_path / "v.zview"
    omnizarr.save_view(place, omnizarr.concat([hours, hours]))
    document = json.loads(place.read_text())
    ((path, rows),) = document["arrays"].items()
    for _ in range(60):  # 12 parts of 12 parts of ...
        rows.append(["join", [[len(rows) - 1, 0, 1]] * 12, 0, "<i8"])
    document["arrays"][path] = rows
    place.write_text(json.dumps(document))
    with pytest.raises(MetadataError, match="broken"):
        omnizarr.open(place)
    rows[-60:] = [["join", [[0, 1, len(rows) - 60]] * 1000, 0, "<i8"]] * 50
    place.write_text(json.dumps(document))
    with pytest.raises(MetadataError, match="broken"):
        omnizarr.open(place)
