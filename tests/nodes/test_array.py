"""`omnizarr.array`."""

import asyncio
import multiprocessing
import operator
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr import aio, errors
from omnizarr.nodes.resizing import AppendedShape
from omnizarr.storage import StorePath
from omnizarr.stores import LocalStore, MemoryStore
from tests.fakes import FaultyStore

FORMATS = (2, 3)
RECORD = np.dtype([("x", "<i4"), ("y", "<f8")])


def make(store=None, **options):
    return omnizarr.create_array({} if store is None else store, **options)


@pytest.fixture(params=FORMATS)
def counted(request):
    """An array of 0 to 69 in (7, 10), not aligned to its chunks."""
    return make(data=np.arange(70).reshape(7, 10), chunks=(3, 4), zarr_format=request.param)


CHANGES = {"set", "set_if_absent", "delete", "delete_prefix"}
VALUES = np.arange(70).reshape(7, 10)


class TestReading:
    @pytest.mark.parametrize(
        "selection",
        [
            np.s_[...],
            np.s_[2],
            np.s_[-1, -2],
            np.s_[1:6:2, ::-3],
            np.s_[None, 3, :, None],
            np.s_[100:, 5],
            np.s_[..., 2],
            np.s_[[0, 5, 2]],
            np.s_[:, [1, 1, 9]],
            np.s_[[0, 5], [1, 2]],
            np.s_[np.arange(7) % 2 == 0],
            np.s_[VALUES % 3 == 0],
            (),
        ],
        ids=str,
    )
    def test_selection_is_numpys(self, counted, selection):
        expected = VALUES[selection]
        found = counted[selection]
        np.testing.assert_array_equal(found, expected)
        assert np.shape(found) == np.shape(expected)

    def test_single_element_is_a_numpy_scalar(self, counted):
        assert isinstance(counted[2, 3], np.int64)
        assert counted[2, 3] == 23

    def test_result_is_the_callers_own(self, counted):
        counted[...][...] = 0
        assert counted[6, 9] == 69

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_no_dimensions(self, zarr_format):
        array = make(shape=(), dtype="f4", fill_value=2.5, zarr_format=zarr_format)
        assert array[()] == np.float32(2.5)
        array[...] = 7
        assert array[()] == array[...] == 7
        with pytest.raises(TypeError):
            len(array)
        with pytest.raises(TypeError):
            iter(array)

    @pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
    def test_no_elements(self, shape):
        array = make(shape=shape, dtype="i2")
        assert array[...].shape == shape
        array[...] = 5
        assert list(array.store.list()) == ["zarr.json"]

    def test_orthogonal(self, counted):
        rows, columns = [4, 0, 1], [True, False] * 5
        np.testing.assert_array_equal(counted.oindex[rows, columns], VALUES[np.ix_(rows, columns)])

    def test_coordinates_keep_their_shape(self, counted):
        rows, columns = np.array([[0, 6], [3, 3]]), np.array([[9, 0], [1, 1]])
        np.testing.assert_array_equal(counted.vindex[rows, columns], VALUES[rows, columns])

    def test_mask(self, counted):
        np.testing.assert_array_equal(counted.vindex[VALUES > 60], VALUES[VALUES > 60])
        np.testing.assert_array_equal(counted.get_mask_selection(VALUES > 60), VALUES[VALUES > 60])

    def test_blocks(self, counted):
        np.testing.assert_array_equal(counted.blocks[1, 2], VALUES[3:6, 8:])
        np.testing.assert_array_equal(counted.blocks[-1], VALUES[6:])

    def test_several_arrays_among_slices_mean_what_they_mean_in_numpy(self):
        values = np.arange(60).reshape(3, 4, 5)
        array = omnizarr.create_array({}, data=values, chunks=(2, 2, 2))
        np.testing.assert_array_equal(array[[0, 2], :, [1, 3]], values[[0, 2], :, [1, 3]], strict=True)
        np.testing.assert_array_equal(array[:, [0, 2], [1, 3]], values[:, [0, 2], [1, 3]], strict=True)

    def test_arrays_that_do_not_broadcast_are_refused_with_the_way_out(self):
        array = make(shape=(3, 3, 3), dtype="i1")
        with pytest.raises(errors.SelectionError, match="oindex"):
            array[[0, 1], :, [0, 1, 2]]

    def test_index_outside_is_an_index_error(self, counted):
        with pytest.raises(IndexError):
            counted[7]

    @pytest.mark.parametrize("selection", [np.s_[1:3], np.s_[None, 1:3], np.s_[1, 2:4]])
    def test_out_is_filled_and_returned(self, counted, selection):
        out = np.empty(VALUES[selection].shape, VALUES.dtype)
        assert counted.get_basic_selection(selection, out=out) is out
        np.testing.assert_array_equal(out, VALUES[selection])

    def test_out_of_another_type_is_converted(self, counted):
        out = np.empty((7, 10), "f8")
        counted.get_basic_selection(out=out)
        np.testing.assert_array_equal(out, VALUES)

    def test_out_of_another_shape_is_refused(self, counted):
        with pytest.raises(errors.ShapeError):
            counted.get_basic_selection(out=np.empty((7, 9)))

    def test_out_with_strides_is_filled(self, counted):
        room = np.zeros((14, 20), int)
        counted.get_basic_selection(out=room[::2, ::-2])
        np.testing.assert_array_equal(room[::2, ::-2], VALUES)

    def test_len_and_iteration(self, counted):
        assert len(counted) == 7
        np.testing.assert_array_equal(np.stack(list(counted)), VALUES)

    def test_array_protocol(self, counted):
        assert np.asarray(counted).sum() == VALUES.sum()
        assert np.asarray(counted, dtype="f4").dtype == np.float32
        with pytest.raises(ValueError, match="copy"):
            np.array(counted, copy=False)

    def test_astype_reads_as_another_type(self, counted):
        view = counted.astype("f2")
        assert view.shape == (7, 10)
        assert view[2:4].dtype == np.float16
        assert isinstance(view[0, 1], np.float16)
        np.testing.assert_array_equal(np.asarray(view), VALUES.astype("f2"))

    def test_order_of_results(self):
        array = make(data=VALUES, chunks=(3, 4), order="F")
        assert array[...].flags.f_contiguous
        np.testing.assert_array_equal(array[...], VALUES)

    def test_order_of_v3_is_that_of_the_stored_chunks(self):
        transpose = omnizarr.codecs.TransposeCodec(order=(1, 0))
        array = make(shape=(7, 10), dtype="i4", chunks=(7, 10), filters=transpose)
        assert array.order == "F"
        assert array[...].flags.f_contiguous

    @pytest.mark.parametrize("chunks", [(7, 10), (3, 4)])
    @pytest.mark.parametrize("stored", [(0, 1), (1, 0)])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_order_that_is_asked_for_is_that_of_the_results_of_v3(self, order, stored, chunks):
        array = make(data=VALUES, chunks=chunks, filters=omnizarr.codecs.TransposeCodec(order=stored))
        array = array.with_config({"order": order})
        assert array.order == order
        for found in (array[...], array[1:6, 2:], asyncio.run(aio.AsyncArray(array).getitem(...))):
            assert found.flags.c_contiguous == (order == "C")
            assert found.flags.f_contiguous == (order == "F")
        np.testing.assert_array_equal(array[...], VALUES)

    @pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
    def test_other_transposes_are_no_order(self, order):
        array = make(shape=(2, 3, 4), dtype="i4", filters=omnizarr.codecs.TransposeCodec(order=order))
        assert array.order == "C"

    def test_order_f_of_v2_is_stored(self):
        array = make(data=VALUES, chunks=(7, 10), order="F", zarr_format=2, compressors=None)
        assert array.documents()[".zarray"]["order"] == "F"
        assert bytes(array.store.get("0.0")) == VALUES.tobytes("F")
        np.testing.assert_array_equal(array[...], VALUES)


class TestMissingChunks:
    def test_missing_reads_as_the_fill_value(self):
        array = make(shape=(4,), chunks=(2,), dtype="i4", fill_value=-9)
        array[:2] = 1
        assert array[...].tolist() == [1, 1, -9, -9]

    def test_missing_can_be_an_error(self):
        store = {}
        make(store, shape=(4,), chunks=(2,), dtype="i4")[:2] = 1
        array = omnizarr.open_array(store, missing="error")
        assert array[:2].tolist() == [1, 1]
        with pytest.raises(errors.ChunkNotFoundError) as caught:
            array[...]
        assert caught.value.coords == (1,)

    def test_with_config_changes_it_for_one_array(self):
        array = make(shape=(4,), chunks=(2,), dtype="i4")
        with pytest.raises(errors.ChunkNotFoundError):
            array.with_config({"missing": "error"})[...]
        with pytest.raises(errors.ChunkNotFoundError):
            array.with_config({"read_missing_chunks": False})[...]
        assert array[...].tolist() == [0] * 4

    def test_empty_chunks_are_not_stored_unless_asked_for(self):
        array = make(shape=(4,), chunks=(2,), dtype="i4", fill_value=5)
        array[...] = 5
        assert array.nchunks_initialized == 0
        array.with_config({"write_empty_chunks": True})[...] = 5
        assert array.nchunks_initialized == 2

    def test_unknown_policy_is_refused(self):
        with pytest.raises(ValueError, match="missing"):
            make(shape=1, dtype="i1", missing="ignore")
        with pytest.raises(TypeError):
            make(shape=1, dtype="i1", config={"colour": "red"})


class TestWriting:
    @pytest.mark.parametrize(
        ("selection", "value"),
        [
            (np.s_[...], -1),
            (np.s_[1:6:2, ::-3], np.arange(12).reshape(3, 4)),
            (np.s_[2], np.arange(10)),
            (np.s_[:, 3:5], np.array([[1], [2], [3], [4], [5], [6], [7]])),
            (np.s_[0, 0], 3),
            (np.s_[[1, 4]], 8),
            (np.s_[VALUES > 50], 0),
            (np.s_[2:4], np.ones((1, 1, 2, 10))),
            (np.s_[...], [[1.9]]),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_assignment_is_numpys(self, zarr_format, selection, value):
        array = make(data=VALUES, chunks=(3, 4), zarr_format=zarr_format)
        expected = VALUES.copy()
        expected[selection] = value
        array[selection] = value
        np.testing.assert_array_equal(array[...], expected)

    def test_kinds_of_selection(self):
        array, expected = make(data=VALUES, chunks=(3, 4)), VALUES.copy()
        array.oindex[[0, 3], [1, 9]] = expected[np.ix_([0, 3], [1, 9])] = -1
        array.vindex[[0, 6], [0, 9]] = expected[[0, 6], [0, 9]] = [-2, -3]
        array.blocks[1, 1] = expected[3:6, 4:8] = -4
        array.set_mask_selection(VALUES % 7 == 0, -5)
        expected[VALUES % 7 == 0] = -5
        np.testing.assert_array_equal(array[...], expected)

    @pytest.mark.parametrize(
        ("value", "error"),
        [
            (np.zeros(3), errors.ShapeError),
            (np.zeros((2, 7, 10)), errors.ShapeError),
            ("words", errors.ValueTypeError),
            (2**70, errors.ValueTypeError),
            (object(), errors.ValueTypeError),
        ],
        ids=["short", "long", "text", "huge", "object"],
    )
    def test_refused_value_has_written_nothing(self, counted, value, error):
        before = {key: bytes(counted.store.get(key)) for key in counted.store.list()}
        with pytest.raises(error) as caught:
            counted[...] = value
        assert caught.value.path == ""
        assert caught.value.found is not None
        assert {key: bytes(counted.store.get(key)) for key in counted.store.list()} == before

    def test_read_only_array_is_not_written(self):
        store = MemoryStore()
        make(store, data=VALUES)
        array = omnizarr.open_array(store, mode="r")
        assert array.read_only
        for change in (
            lambda: array.__setitem__(0, 1),
            lambda: array.resize(1, 1),
            lambda: array.append(VALUES),
            lambda: array.attrs.update(a=1),
        ):
            with pytest.raises(errors.ReadOnlyError):
                change()

    def test_concurrent_writers_of_one_chunk_lose_nothing(self):
        array = make(shape=(64,), chunks=(64,), dtype="i4")

        def put(number):
            array[number] = number + 1

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put, range(64)))
        np.testing.assert_array_equal(array[...], np.arange(1, 65))


class TestFields:
    @pytest.fixture
    def records(self):
        values = np.zeros(5, RECORD)
        values["x"], values["y"] = np.arange(5), np.arange(5) / 2
        return make(data=values, chunks=(2,)), values

    def test_one_field(self, records):
        array, values = records
        np.testing.assert_array_equal(array["y"], values["y"])
        np.testing.assert_array_equal(array["y", 1:3], values["y"][1:3])
        assert array["x", 3] == 3

    def test_several_fields(self, records):
        array, values = records
        found = array[["y", "x"]]
        assert found.dtype.names == ("y", "x")
        assert found.dtype.itemsize == 12
        assert found.tolist() == values[["y", "x"]].tolist()

    def test_writing_a_field_leaves_the_others(self, records):
        array, values = records
        array["x", 1:4] = -1
        values["x"][1:4] = -1
        np.testing.assert_array_equal(array[...], values)

    def test_writing_several_fields(self, records):
        array, values = records
        array.set_basic_selection(slice(2), (9, 9.5), fields=["x", "y"])
        values[:2] = (9, 9.5)
        np.testing.assert_array_equal(array[...], values)

    def test_unknown_field_is_refused(self, records):
        with pytest.raises(errors.SelectionError, match="'z'"):
            records[0]["z"]

    def test_field_that_is_an_array_itself(self):
        dtype = np.dtype([("n", "<i4"), ("pair", "<f8", (2,))])
        array, expected = make(shape=3, dtype=dtype, zarr_format=2), np.zeros(3, dtype)
        array["pair"] = expected["pair"] = [[1, 2], [3, 4], [5, 6]]
        array["pair", 1] = expected["pair"][1] = 7
        np.testing.assert_array_equal(array["pair"], expected["pair"])
        np.testing.assert_array_equal(array["pair", 1:], expected["pair"][1:])
        assert array[...].tobytes() == expected.tobytes()

    def test_writers_of_two_fields_lose_nothing(self):
        array = make(shape=(8,), chunks=(8,), dtype=RECORD)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: array.__setitem__(("xy"[n % 2], n // 2), n), range(16)))
        assert array[...].tolist() == [(n * 2, n * 2 + 1.0) for n in range(8)]

    def test_a_field_can_be_set_where_reading_refuses_missing_chunks(self):
        array = make(shape=4, chunks=2, dtype=RECORD, missing="error")
        array["x", 1] = 3
        np.testing.assert_array_equal(array[:2]["x"], [0, 3])


class TestResize:
    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_what_is_cut_off_is_gone(self, zarr_format):
        array = make(data=VALUES, chunks=(3, 4), fill_value=-1, zarr_format=zarr_format)
        array.resize(4, 5)
        np.testing.assert_array_equal(array[...], VALUES[:4, :5])
        array.resize((7, 10))
        expected = np.full((7, 10), -1)
        expected[:4, :5] = VALUES[:4, :5]
        np.testing.assert_array_equal(array[...], expected)

    def test_chunks_outside_are_deleted(self):
        array = make(data=VALUES, chunks=(3, 4))
        array.resize(3, 4)
        assert sorted(array.store.list()) == ["c/0/0", "zarr.json"]

    def test_shape_can_be_assigned(self):
        array = make(data=VALUES, chunks=(3, 4))
        array.shape = (2, 2)
        assert omnizarr.open_array(array.store).shape == (2, 2)

    def test_other_number_of_dimensions_is_refused(self):
        array = make(data=VALUES)
        with pytest.raises(errors.ShapeError):
            array.resize(70)
        with pytest.raises(errors.MetadataError):
            array.resize(-1, 3)
        assert array.shape == (7, 10)

    def test_shrinking_writes_metadata_first_and_growing_last(self):
        store = FaultyStore(MemoryStore())
        array = make(store, data=np.arange(4), chunks=(2,))
        store.log.clear()
        array.resize(2)
        assert [each for each in store.log if each[0] in CHANGES] == [("set", "zarr.json"), ("delete", "c/1")]
        store.log.clear()
        array.append([8, 9])
        assert [each for each in store.log if each[0] in CHANGES] == [("set", "c/1"), ("set", "zarr.json")]

    @pytest.mark.parametrize("shape", [(0, 0), (0, 10), (7, 0), (1, 1), (20, 3)])
    def test_there_and_back(self, shape):
        array = make(data=VALUES, chunks=(3, 4), shards=(6, 4))
        array.resize(shape)
        array.resize(7, 10)
        expected = np.zeros((7, 10), int)
        rows, columns = min(7, shape[0]), min(10, shape[1])
        expected[:rows, :columns] = VALUES[:rows, :columns]
        np.testing.assert_array_equal(array[...], expected)

    def test_huge_array_shrinks_without_naming_all_its_chunks(self):
        array = make(shape=(2**60,), chunks=(10,), dtype="u1")
        array[2**59] = array[3] = 1
        array.resize(10)
        assert sorted(array.store.list()) == ["c/0", "zarr.json"]

    def test_rectilinear_grid_grows_by_a_chunk(self):
        array = make(data=np.arange(10), chunks=[[1, 2, 7]])
        array.resize(14)
        assert array.write_chunk_sizes == ((1, 2, 7, 4),)
        assert array[...].tolist() == [*range(10), 0, 0, 0, 0]

    def test_sparse_array_of_huge_shape_shrinks_along_its_short_dimension(self):
        array = make(shape=(2**40, 10), chunks=(1, 10), dtype="u1")
        array[5] = 1
        array.resize(2**40, 5)
        array.resize(2**40, 10)
        np.testing.assert_array_equal(array[5], [1] * 5 + [0] * 5)

    def test_cutting_a_chunk_of_an_array_without_fill_value_keeps_it(self):
        array = make(shape=10, chunks=4, dtype="i4", fill_value=None, zarr_format=2)
        array[...] = 0
        array.resize(6)
        assert sorted(array.store.list()) == [".zarray", "0", "1"]

    def test_cutting_makes_no_chunk_where_none_is(self):
        array = make(shape=10, chunks=4, dtype="i4", write_empty_chunks=True)
        array.resize(6)
        assert list(array.store.list()) == ["zarr.json"]


class TestAppend:
    def test_what_failed_does_not_come_to_light_later(self):
        store = FaultyStore(MemoryStore())
        array = make(store, data=np.ones(8), chunks=5)
        store.fail("set", 2)
        with pytest.raises(errors.StoreError):
            array.append(np.full(7, 9.0))
        array = omnizarr.open_array(store)
        np.testing.assert_array_equal(array[...], np.ones(8))
        array.resize(15)
        np.testing.assert_array_equal(array[...], [1] * 8 + [0] * 7)

    def test_returns_new_shape_and_region(self):
        array = make(data=VALUES, chunks=(3, 4))
        landed = array.append(np.ones((2, 10)))
        assert landed == (9, 10)
        assert isinstance(landed, AppendedShape)
        np.testing.assert_array_equal(array[landed.region], np.ones((2, 10)))
        assert array.append(np.ones((9, 1)), axis=1).region == (slice(0, 9), slice(10, 11))
        assert array.append(np.ones((9, 1)), axis=-1) == (9, 12)

    @pytest.mark.parametrize(("block", "axis"), [(np.ones(10), 0), (np.ones((2, 9)), 0), (np.ones((2, 10)), 2)])
    def test_block_that_does_not_fit_is_refused(self, block, axis):
        array = make(data=VALUES)
        with pytest.raises(errors.ShapeError):
            array.append(block, axis)
        assert omnizarr.open_array(array.store).shape == (7, 10)

    def test_value_that_cannot_be_converted_leaves_the_shape(self):
        array = make(data=VALUES)
        with pytest.raises(errors.ValueTypeError):
            array.append(np.full((1, 10), "x"))
        assert omnizarr.open_array(array.store).shape == (7, 10)

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_concurrent_appends_lose_no_block(self, tmp_path, zarr_format):
        make(tmp_path, shape=(0, 2), chunks=(5, 2), dtype="i4", zarr_format=zarr_format)
        arrays = [omnizarr.open_array(tmp_path) for _ in range(4)]

        def add(number):
            return arrays[number % 4].append(np.full((1 + number % 3, 2), number)).region

        with ThreadPoolExecutor(8) as pool:
            regions = list(pool.map(add, range(24)))
        array = omnizarr.open_array(tmp_path)
        assert array.shape == (sum(1 + n % 3 for n in range(24)), 2)
        for number, region in enumerate(regions):
            assert (array[region] == number).all()

    def test_processes_lose_no_block(self, tmp_path):
        make(tmp_path, shape=(0,), chunks=(7,), dtype="i4")
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=_append_often, args=(tmp_path, number)) for number in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        values, counts = np.unique(omnizarr.open_array(tmp_path)[...], return_counts=True)
        assert values.tolist() == [1, 2, 3]
        assert counts.tolist() == [15, 15, 15]

    def test_append_sees_what_others_appended(self):
        store = MemoryStore()
        first = make(store, shape=(0,), dtype="i4")
        second = omnizarr.open_array(store)
        first.append([1, 2])
        assert second.append([3]).region == (slice(2, 3),)
        assert second[...].tolist() == [1, 2, 3]
        assert first.shape == (2,)
        first.refresh()
        assert first.shape == (3,)


def _append_often(path, number):
    array = omnizarr.open_array(path)
    for _ in range(5):
        region = array.append([number + 1] * 3).region
        if array[region].tolist() != [number + 1] * 3:
            raise AssertionError(region)


@st.composite
def histories(draw):
    ndim = draw(st.integers(1, 3))
    lengths = st.tuples(*[st.integers(0, 9)] * ndim)
    chunks = draw(st.tuples(*[st.integers(1, 4)] * ndim))
    sharded = draw(st.booleans())
    steps = draw(
        st.lists(
            st.one_of(
                st.tuples(st.just("resize"), lengths),
                st.tuples(st.just("append"), st.tuples(st.integers(0, ndim - 1), st.integers(0, 5))),
                st.tuples(st.just("write"), lengths),
            ),
            max_size=6,
        )
    )
    return draw(lengths), chunks, sharded, draw(st.sampled_from(FORMATS)), steps


@given(histories())
@settings(max_examples=60)
def test_resizing_and_appending_equal_numpy(history):
    shape, chunks, sharded, zarr_format, steps = history
    options = {"shards": tuple(2 * n for n in chunks)} if sharded and zarr_format == 3 else {}
    array = make(shape=shape, chunks=chunks, dtype="i2", fill_value=-7, zarr_format=zarr_format, **options)
    expected = np.full(shape, -7, "i2")
    for number, (verb, argument) in enumerate(steps):
        if verb == "resize":
            array.resize(argument)
            new = np.full(argument, -7, "i2")
            common = tuple(slice(min(a, b)) for a, b in zip(expected.shape, argument, strict=True))
            new[common] = expected[common]
            expected = new
        elif verb == "append":
            axis, length = argument
            block_shape = [*expected.shape]
            block_shape[axis] = length
            block = np.full(block_shape, number, "i2")
            array.append(block, axis)
            expected = np.concatenate([expected, block], axis)
        else:
            region = tuple(slice(stop) for stop in argument)
            array[region] = expected[region] = number + 100
        np.testing.assert_array_equal(array[...], expected)


class TestWhatItIs:
    def test_properties(self):
        array = make(
            shape=(7, 10), dtype="f4", chunks=(2, 3), shards=(4, 6), dimension_names=("y", "x"), name="ocean/temp"
        )
        assert (array.shape, array.ndim, array.size, array.nbytes) == ((7, 10), 2, 70, 280)
        assert (array.name, array.path, array.basename) == ("/ocean/temp", "ocean/temp", "temp")
        assert (array.chunks, array.shards) == ((2, 3), (4, 6))
        assert array.cdata_shape == (4, 4)
        assert array.nchunks == 16
        assert array.dimension_names == ("y", "x")
        assert array.zarr_format == 3
        assert array.store_path == StorePath(array.store, "ocean/temp")
        assert array.write_chunk_sizes == ((4, 3), (6, 4))
        assert array.read_chunk_sizes == ((2, 2, 2, 1), (3, 3, 3, 1))
        assert array.serializer.to_dict() == {"name": "bytes", "configuration": {"endian": "little"}}
        assert [codec.name for codec in array.compressors] == ["zstd"]
        assert array.filters == ()

    def test_chunks_behind_a_transpose_are_those_of_the_array(self):
        sharding = omnizarr.codecs.ShardingCodec(chunk_shape=(2, 3, 4))
        transpose = omnizarr.codecs.TransposeCodec(order=(2, 0, 1))
        array = make(shape=(9, 8, 4), dtype="i4", chunks=(9, 8, 4), codecs=[transpose, sharding])
        assert array.shards == (9, 8, 4)
        assert array.chunks == (3, 4, 2)

    def test_initialized_chunks_are_counted_within_shards(self):
        array = make(shape=(7,), dtype="i4", chunks=(2,), shards=(4,))
        array[6] = 1
        assert array.nchunks_initialized == 2
        array[0] = 1
        assert array.nchunks_initialized == array.nchunks == 4

    def test_repr_is_one_line(self):
        array = make(shape=(7, 10), dtype="f4", name="temp")
        assert repr(array) == "<Array /temp (7, 10) float32 memory>"

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_info_counts_what_is_stored(self, zarr_format):
        array = make(shape=(4,), chunks=(2,), dtype="i4", zarr_format=zarr_format)
        array[0] = 1
        card = array.info_complete()
        assert (card.chunks_stored, card.chunks_expected) == (1, 2)
        assert card.nbytes_stored == sum(len(array.store.get(key)) for key in array.store.list())
        assert "1 of 2" in repr(card)
        assert array.info.chunks_stored is None

    @pytest.mark.parametrize("engine", ["native", "reference"])
    def test_info_says_which_engine_serves(self, monkeypatch, engine):
        array = make(shape=(4,), chunks=(2,), dtype="i4")
        monkeypatch.setattr(omnizarr.Array, "engine", engine)
        assert array.info.engine == engine
        assert f"\nEngine      : {engine}\n" in repr(array.info)

    def test_equal_if_same_place_and_metadata(self):
        store = MemoryStore()
        array = make(store, shape=3, dtype="i4")
        assert array == omnizarr.open_array(store)
        assert hash(array) == hash(omnizarr.open_array(store))
        assert array != make(shape=3, dtype="i8")
        assert array != 5

    def test_pickle(self, tmp_path):
        array = make(tmp_path, data=VALUES, chunks=(3, 4), missing="error")
        again = pickle.loads(pickle.dumps(array))
        assert again == array
        assert again.config == array.config
        np.testing.assert_array_equal(again[...], VALUES)

    def test_dask_tokens_of_two_memory_stores_differ(self):
        first, second = make(shape=3, dtype="i4"), make(shape=3, dtype="i4")
        assert first.__dask_tokenize__() != second.__dask_tokenize__()
        assert first.__dask_tokenize__() == first.__dask_tokenize__()

    def test_from_dict(self, tmp_path):
        array = make(tmp_path, data=VALUES, chunks=(3, 4))
        document = array.documents()["zarr.json"]
        again = omnizarr.Array.from_dict(array.store_path, document)
        np.testing.assert_array_equal(again[...], VALUES)
        with pytest.raises(errors.MetadataError):
            omnizarr.Array.from_dict(array.store_path, {"zarr_format": 3, "node_type": "group"})

    def test_open_class_method(self, tmp_path):
        make(tmp_path, data=VALUES)
        assert omnizarr.Array.open(tmp_path).shape == (7, 10)
        with pytest.raises(errors.ArrayNotFoundError):
            omnizarr.Array.open(LocalStore(tmp_path / "nowhere"))

    def test_update_attributes_returns_the_array(self):
        array = make(shape=3, dtype="i4")
        assert array.update_attributes({"units": "K"}) is array
        assert omnizarr.open_array(array.store).attrs["units"] == "K"


class TestUnknown:
    """An array that cannot run opens, and says why when its data is touched."""

    @pytest.fixture
    def unknown(self):
        store = MemoryStore()
        array = make(store, data=VALUES, attributes={"units": "K"})
        document = array.documents()["zarr.json"]

        def with_member(name, value):
            store.set("zarr.json", omnizarr.formats.documents.render({**document, name: value}))
            return omnizarr.open_array(store)

        return with_member

    def test_codec(self, unknown):
        array = unknown("codecs", [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "acme.squeeze"}])
        assert array.shape == (7, 10)
        assert array.dtype == np.int64
        assert array.attrs["units"] == "K"
        assert [codec.name for codec in array.compressors] == ["acme.squeeze"]
        assert "acme.squeeze" in repr(array.info)
        with pytest.raises(errors.UnknownCodecError) as caught:
            array[0]
        assert caught.value.store is not None
        assert caught.value.path == ""

    def test_no_engine_is_named_for_what_none_can_read(self, unknown):
        card = unknown("codecs", [{"name": "bytes"}, {"name": "acme.squeeze"}]).info
        assert card.engine is None
        assert "Engine" not in repr(card)

    def test_data_type(self, unknown):
        array = unknown("data_type", "acme.decimal")
        assert repr(array) == "<Array / (7, 10) acme.decimal memory>"
        assert array.chunks == (7, 10)
        assert "acme.decimal" in repr(array.info_complete())
        with pytest.raises(errors.UnknownDataTypeError):
            _ = array.dtype
        with pytest.raises(errors.UnknownDataTypeError):
            array[0]

    def test_grid(self, unknown):
        array = unknown("chunk_grid", {"name": "acme.hexagons", "configuration": {}})
        assert array.shape == (7, 10)
        assert "acme.hexagons" in repr(array.info)
        with pytest.raises(errors.UnknownChunkGridError):
            array[0]

    def test_attributes_of_an_unknown_array_can_be_changed(self, unknown):
        array = unknown("data_type", "acme.decimal")
        array.attrs["more"] = 1
        assert omnizarr.open_array(array.store).attrs.asdict() == {"units": "K", "more": 1}
        assert array.documents()["zarr.json"]["data_type"] == "acme.decimal"


class TestObjects:
    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_strings(self, zarr_format):
        array = make(shape=(3, 2), chunks=(2, 2), dtype="string", zarr_format=zarr_format)
        array[0] = ["a", "bc"]
        array[1:, 1] = "déf"
        assert array[...].tolist() == [["a", "bc"], ["", "déf"], ["", "déf"]]
        assert array[0, 1] == "bc"

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_bytes(self, zarr_format):
        array = make(shape=(3,), chunks=(2,), dtype="bytes", zarr_format=zarr_format)
        array[:2] = [b"\x00a", b""]
        array[2] = b"xyz"
        assert array[...].tolist() == [b"\x00a", b"", b"xyz"]

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_type_of_lists_of_strings_is_found_out(self, zarr_format):
        array = make(data=np.array(["a", "bcd"], object), zarr_format=zarr_format)
        assert array[...].tolist() == ["a", "bcd"]

    def test_any_objects_in_v2(self):
        numcodecs = pytest.importorskip("numcodecs")
        array = make(shape=(2,), dtype=object, object_codec=numcodecs.JSON(), zarr_format=2, fill_value=None)
        array[0] = {"a": [1, 2]}
        array[1] = [3, 4]
        assert array[...].tolist() == [{"a": [1, 2]}, [3, 4]]

    def test_ragged_in_v2(self):
        numcodecs = pytest.importorskip("numcodecs")
        array = make(shape=(3,), dtype=object, object_codec=numcodecs.VLenArray("<i4"), zarr_format=2)
        array[0] = np.array([1, 2, 3], "i4")
        array[1:] = [np.array([4], "i4"), np.array([], "i4")]
        assert [item.tolist() for item in array[...]] == [[1, 2, 3], [4], []]


class TestPythonScalars:
    CONVERSIONS = (bool, int, float, complex, operator.index)

    @pytest.mark.parametrize("convert", CONVERSIONS)
    @pytest.mark.parametrize("value", [True, 0, 7, np.float32(1.5), 1 + 2j, np.datetime64("2020-01-01")])
    @pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
    @pytest.mark.filterwarnings("ignore:Conversion of an array:DeprecationWarning")
    @pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
    def test_one_element_becomes_what_numpy_makes_of_it(self, convert, value, shape):
        def outcome(array):
            try:
                return convert(array)
            except TypeError as error:
                return type(error)

        data = np.full(shape, value)
        assert outcome(make(data=data)) == outcome(data)

    @pytest.mark.parametrize("convert", CONVERSIONS)
    @pytest.mark.parametrize("shape", [(0,), (2,), (2**40,)])
    def test_other_arrays_are_refused_and_not_read(self, convert, shape):
        array = make(shape=shape, dtype="i8", chunks=(2**20,), missing="error")
        with pytest.raises(ValueError if convert is bool else TypeError, match="one element"):
            convert(array)

    def test_scalar_array_means_an_index(self):
        assert "abc"[make(data=np.int8(1))] == "b"

    def test_array_of_indices_is_no_index(self):
        array = make(data=VALUES)
        np.testing.assert_array_equal(array[make(data=[1, 3])], VALUES[[1, 3]])
        np.testing.assert_array_equal(array[make(data=[1])], VALUES[[1]])


class TestVariableSize:
    @pytest.mark.parametrize(
        "value", [None, ["a", None, "b"], np.array(["a", None], dtype=object)], ids=["none", "list", "array"]
    )
    def test_none_is_not_text(self, value):
        array = omnizarr.create_array({}, shape=np.shape(value) or (3,), chunks=(1,), dtype="string")
        with pytest.raises(TypeError, match="None is not text"):
            array[...] = value
        assert array.nchunks_initialized == 0

    def test_refused_bytes_have_written_nothing(self):
        array = omnizarr.create_array({}, shape=(2,), chunks=(1,), dtype="bytes")
        with pytest.raises(TypeError, match="not bytes"):
            array[...] = [b"x", "y"]
        assert array.nchunks_initialized == 0
