"""Many arrays as one: what may differ between them, what may not, and the errors that name it."""

import pickle
import tracemalloc

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import (
    JoinError,
    NodeNotFoundError,
    OmnizarrError,
    ReadOnlyError,
    SelectionError,
    SelectionMemoryError,
    ShapeError,
    StaleError,
    ValueTypeError,
)
from omnizarr.storage import LazyStore
from omnizarr.stores import LocalStore, MetricsStore


def array(data, attributes=None, **options):
    made = omnizarr.create_array({}, data=np.asarray(data), **options)
    made.attrs.update(attributes or {})
    return made


def year(number, **options):
    names = {} if options.get("zarr_format") == 2 else {"dimension_names": ("time", "x")}
    attributes = {} if names else {"_ARRAY_DIMENSIONS": ["time", "x"]}
    return array(np.arange(12).reshape(4, 3) + 100 * number, attributes, **names, **options)


# ---- sources that are described


def days(folder, count, length=2, **options):
    paths = [str(folder / f"{number}.zarr") for number in range(count)]
    for number, path in enumerate(paths):
        data = np.arange(length * 3).reshape(length, 3) + 10 * number
        omnizarr.create_array(path, data=data, dimension_names=["time", "x"], **options)
    return paths


@pytest.mark.parametrize("like", ["path", "array", "lazy", "numpy"])
def test_described_sources_are_opened_when_their_elements_are_needed(tmp_path, like):
    paths = days(tmp_path, 5)
    expected = omnizarr.concat(paths)[...]
    known = omnizarr.open_array(paths[0])
    for path in paths[3:]:
        LocalStore(path).delete("zarr.json")
    given = {"path": paths[0], "array": known, "lazy": known.lazy[...], "numpy": np.empty((2, 3), int)}[like]
    joined = omnizarr.concat(paths, like=given)
    assert (joined.shape, joined.dtype) == (expected.shape, expected.dtype)
    assert joined.dimension_names == (None if like == "numpy" else ("time", "x"))
    for view in (joined, pickle.loads(pickle.dumps(joined))):
        np.testing.assert_array_equal(view[1:6, ::-1], expected[1:6, ::-1])
        with pytest.raises(NodeNotFoundError, match=r"3\.zarr"):
            view[:7]
    np.testing.assert_array_equal(omnizarr.stack(paths, axis=1, like=given)[:, 1], expected[2:4])
    np.testing.assert_array_equal(
        omnizarr.block([paths[:2]], like=given)[0], expected[:4].reshape(2, 2, 3)[:, 0].ravel()
    )


def test_thousands_of_described_sources_are_joined_without_a_request(tmp_path):
    paths = [tmp_path / f"{number}.zarr" for number in range(12_000)]
    like = array(np.zeros((24, 2), "f4"), {"units": "K"}, dimension_names=("time", "x"))
    tracemalloc.start()
    joined = omnizarr.concat(paths, like=like, lengths=[24, 23] * 6000)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown / len(paths) < 1000
    assert (joined.shape, joined.attrs) == ((12_000 * 47 // 2, 2), {"units": "K"})
    omnizarr.create_array(paths[1], data=np.ones((23, 2), "f4"), attributes={"units": "K"})
    assert joined[24:47].sum() == 46
    assert omnizarr.concat(paths, like=like, lengths=1).shape == (12_000, 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"data": np.zeros((3, 3), int)}, r"found shape \(3, 3\).*expected shape \(2, 3\)"),
        ({"data": np.zeros((2, 3))}, "found.*float64.*expected.*int64"),
        ({"attributes": {"scale_factor": 0.5, "units": "K"}}, "found scale_factor 0.5.*expected scale_factor 0.1"),
        ({"attributes": {"scale_factor": 0.1, "units": "degC"}}, "found units 'degC'.*expected units 'K'"),
        ({"attributes": {"units": "K"}}, "found scale_factor None"),
        ({"dimension_names": ["x", "time"]}, r"found dimensions \('x', 'time'\)"),
    ],
)
def test_a_source_that_is_not_as_described_is_an_error_that_names_it(tmp_path, options, said):
    attributes = {"scale_factor": 0.1, "units": "K"}
    paths = days(tmp_path, 3, attributes=attributes)
    usual = {"data": np.zeros((2, 3), int), "dimension_names": ["time", "x"], "attributes": attributes}
    omnizarr.create_array(paths[1], overwrite=True, **{**usual, **options})
    joined = omnizarr.concat(paths, like=paths[0])
    assert joined[:2].tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(StaleError, match=f"not as you described it: {said}") as caught:
        joined[...]
    assert "1.zarr" in str(caught.value)
    assert "like" in str(caught.value.remedy)


def test_numbers_whose_packing_was_not_described_are_not_read(tmp_path):
    paths = days(tmp_path, 2, attributes={"scale_factor": 0.5})
    with pytest.raises(StaleError, match=r"found scale_factor 0\.5.*expected scale_factor None"):
        omnizarr.concat(paths, like=np.empty((2, 3), int))[...]
    assert omnizarr.concat(paths, like=paths[0]).unpack()[0].tolist() == [0, 0.5, 1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"lengths": [1, 2]}, "lengths are given"),
        ({"like": np.zeros((2, 3)), "lengths": [1]}, "one length for each source: found 1, expected 2"),
        ({"like": np.zeros((2, 3)), "lengths": [1, -1]}, "negative"),
        ({"like": np.zeros((2, 3)), "lengths": [1, 1], "axis": 2}, "no such dimension"),
        ({"like": 5}, "no shape"),
    ],
)
def test_descriptions_that_make_no_sense(options, said):
    with pytest.raises(JoinError, match=said):
        omnizarr.concat(["a.zarr", "b.zarr"], **options)


@pytest.mark.parametrize("length", [2**40, 2**61])
def test_descriptions_of_more_than_any_memory_holds_cost_nothing(tmp_path, length):
    joined = omnizarr.concat([tmp_path / "a.zarr", tmp_path / "b.zarr"], like=np.empty((1, 2**10)), lengths=length)
    assert joined.shape == (2 * length, 2**10)
    assert repr(joined)
    with pytest.raises(SelectionMemoryError, match="do not fit in memory"):
        joined[...]
    with pytest.raises(NodeNotFoundError, match=r"b\.zarr"):
        joined[length + 5, 3]
    with pytest.raises(NodeNotFoundError, match=r"a\.zarr"):
        joined[length - 5 : length + 5, 3]


def test_described_sources_stand_beside_others_and_are_saved(tmp_path):
    paths = days(tmp_path, 3)
    joined = omnizarr.concat([*paths, np.ones((1, 3), int)], like=paths[0], lengths=[2, 2, 2, 9])
    omnizarr.save_view(tmp_path / "v.zview", joined)
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "v.zview")[...], joined[...])
    assert joined.shape == (7, 3)


# ---- joining


def test_sources_of_any_format_codec_and_chunk_shape_are_one_array(tmp_path):
    sources = [
        year(0, zarr_format=2, chunks=(3, 2)),
        year(1, shards=(4, 4), chunks=(2, 2)),
        year(2, compressors=None, chunks=(1, 3)),
        omnizarr.create_array(tmp_path / "x.zip", data=year(3)[...]),
        year(4).lazy[::-1],
        np.arange(12).reshape(4, 3) + 500,
    ]
    joined = omnizarr.concat(sources)
    expected = np.concatenate([np.asarray(source) for source in sources])
    np.testing.assert_array_equal(joined[...], expected)
    np.testing.assert_array_equal(joined[[20, 3, 3, 9], 1], expected[[20, 3, 3, 9], 1])
    assert (joined.dimension_names, joined.nsources, joined.notes) == (("time", "x"), 6, ())


def test_only_touched_sources_are_asked(tmp_path):
    stores = []
    for number in range(5):
        omnizarr.create_array(tmp_path / str(number), data=np.arange(4) + 10 * number, chunks=(2,))
        stores.append(MetricsStore(LocalStore(tmp_path / str(number))))
    joined = omnizarr.concat([omnizarr.open_array(store, mode="r") for store in stores])
    for store in stores:
        store.reset()
    assert joined[5] == 11
    assert joined[[13, 15]].tolist() == [31, 33]
    assert joined[9:11].tolist() == [21, 22]
    assert [store.report().total.requests > 0 for store in stores] == [False, True, True, True, False]


def test_data_types_are_promoted_as_numpy_does_or_as_asked():
    few, many = array(np.int16([1, 2])), array(np.float32([0.5]))
    assert omnizarr.concat([few, many]).dtype == np.concatenate([few[:], many[:]]).dtype == np.float32
    assert omnizarr.concat([few, many], dtype="i8")[...].tolist() == [1, 2, 0]
    times = omnizarr.concat([array(np.array(["2020-01-01"], "M8[D]")), array(np.array(["2020-01-02T03"], "M8[s]"))])
    assert times[...].tolist() == np.array(["2020-01-01T00", "2020-01-02T03"], "M8[s]").tolist()


@pytest.mark.parametrize(
    ("sources", "axis", "said"),
    [
        ([], 0, "nothing to join"),
        ([np.ones((2, 3)), np.ones((2, 4))], 0, "(2, 4)"),
        ([np.ones((2, 3)), np.ones(3)], 0, "(3,)"),
        ([np.ones((2, 3))], 2, "axis 2"),
        ([np.ones(2), np.array(["a"])], 0, "float64"),
        ([np.ones(2), np.array(["2020"], "M8[Y]")], 0, "datetime64[Y]"),
        ([np.ones(2), np.zeros(1, [("a", "i4")])], 0, "nothing in common"),
        ([np.array(1), np.array(2)], 0, "axis 0"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_sides(sources, axis, said):
    with pytest.raises(JoinError) as caught:
        omnizarr.concat(sources, axis)
    assert said in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_other_units_and_dimensions_are_refused_by_name():
    kelvin, celsius = array([1.0], {"units": "K"}), array([1.0], {"units": "degC"})
    with pytest.raises(JoinError, match=r"different units: found 'degC'.*expected 'K'"):
        omnizarr.concat([kelvin, celsius])
    with pytest.raises(JoinError, match=r"different units: found 'degC'.*expected 'K'"):
        omnizarr.concat([array([1.0]), kelvin, celsius])  # the first says nothing
    with pytest.raises(JoinError, match=r"different dimensions: found \('x', 'time'\)"):
        omnizarr.concat([year(0).lazy[:3], year(1).lazy[:3].T], 1)


# ---- packing


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_packing_that_differs_per_source_has_no_wrong_values(zarr_format):
    rng = np.random.default_rng(5)
    sources, expected = [], []
    for number in range(20):
        scale, offset, fill = float(rng.uniform(0.001, 0.1)), float(rng.uniform(200, 300)), int(rng.integers(-99, -1))
        stored = rng.integers(0, 1000, (3, 4)).astype("i2")
        stored[rng.integers(0, 3), rng.integers(0, 4)] = fill
        packing = {"scale_factor": scale, "add_offset": offset, "_FillValue": fill, "units": "K", "number": number}
        sources.append(array(stored, packing, zarr_format=zarr_format, chunks=(2, 2)))
        expected.append(np.where(stored == fill, np.nan, stored.astype("f8") * scale + offset))
    joined = omnizarr.concat(sources)
    np.testing.assert_array_equal(joined[...], np.concatenate(expected))
    assert joined.dtype == np.float64
    assert joined.attrs == {"units": "K"}
    assert len(joined.notes) == 1
    stacked = omnizarr.stack(sources, -1)
    np.testing.assert_array_equal(stacked[..., ::-3], np.stack(expected, -1)[..., ::-3])


def test_equal_packing_stays_packed_and_is_unpacked_on_demand():
    packing = {"scale_factor": 0.5, "_FillValue": -1}
    joined = omnizarr.concat([array(np.int16([1, -1]), packing), array(np.int32([3]), packing)])
    assert (joined.dtype, joined[...].tolist(), joined.attrs, joined.notes) == (np.int32, [1, -1, 3], packing, ())
    np.testing.assert_array_equal(joined.unpack()[...], [0.5, np.nan, 1.5])
    assert joined.unpack().attrs == {}
    np.testing.assert_array_equal(joined.unpack(dtype="f4")[...], np.float32([0.5, np.nan, 1.5]))


def test_pack_is_the_reverse_of_unpack():
    stored = np.int16([5, -1, 7])
    view = array(stored).lazy.unpack(0.1, 3.0, -1)
    np.testing.assert_array_equal(view.pack("i2", 0.1, 3.0, -1)[...], stored)
    with pytest.raises(ValueTypeError, match="floating-point"):
        view.unpack(1.0, dtype="i4")


def test_coordinates_that_are_not_packed_keep_their_values_beside_packed_ones():
    joined = omnizarr.concat([array(np.int16([2, 4]), {"scale_factor": 0.5}), np.array([1.5])])
    assert joined[...].tolist() == [1.0, 2.0, 1.5]


# ---- stacks and mosaics


def test_stack_has_a_new_dimension_anywhere():
    values = [np.arange(6).reshape(2, 3) + 10 * number for number in range(3)]
    sources = [array(each) for each in values]
    for axis in range(-3, 3):
        np.testing.assert_array_equal(omnizarr.stack(sources, axis)[...], np.stack(values, axis))
    with pytest.raises(JoinError, match="axis 3"):
        omnizarr.stack(sources, 3)
    with pytest.raises(JoinError, match="different shapes"):
        omnizarr.stack([np.ones(2), np.ones(3)])


def test_block_is_numpys_where_there_are_no_gaps():
    rows = [[np.ones((2, 2)), np.zeros((2, 3))], [np.full((1, 2), 5), np.full((1, 3), 6)]]
    mosaic = omnizarr.block([[array(each) for each in row] for row in rows])
    np.testing.assert_array_equal(mosaic[...], np.block(rows))
    cubes = [[[np.full((1, 2, 1), 4 * i + 2 * j + k) for k in range(2)] for j in range(2)] for i in range(2)]
    np.testing.assert_array_equal(omnizarr.block(cubes)[...], np.block(cubes))
    row = [np.ones((3, 2)), np.zeros((3, 1))]
    np.testing.assert_array_equal(omnizarr.block(row)[...], np.block(row))


def test_gaps_of_a_mosaic_are_as_large_as_their_neighbours():
    a, b = array(np.ones((2, 3), "i2")), array(np.full((1, 4), 7, "i2"))
    mosaic = omnizarr.block([[a, None], [None, b]], fill_value=-1)
    expected = np.full((3, 7), -1)
    expected[:2, :3], expected[2:, 3:] = 1, 7
    np.testing.assert_array_equal(mosaic[...], expected)
    assert mosaic.dtype == np.int16
    with pytest.raises(JoinError, match="size of a gap is unknown"):
        omnizarr.block([[a, None]])
    with pytest.raises(JoinError, match="different lengths"):
        omnizarr.block([[a, a], [a, b]])
    with pytest.raises(JoinError):
        omnizarr.block([[None]])
    with pytest.raises(JoinError, match="empty"):
        omnizarr.block([])


# ---- one view


def test_names_of_dimensions_follow_them():
    view = year(0).lazy
    assert view[None, ::2].dimension_names == (None, "time", "x")
    assert view[1].dimension_names == ("x",)
    assert view.T.dimension_names == ("x", "time")
    assert view[..., [0, 1]].dimension_names == ("time", "x")
    assert view.vindex[[0, 1], [0, 1]].dimension_names == (None,)
    assert view[[[0, 1], [2, 3]], :].dimension_names == (None, None, "x")
    assert view.rename({"x": "lon"}).dimension_names == ("time", "lon")
    assert view.rename(["a", None]).dimension_names == ("a", None)
    with pytest.raises(SelectionError, match="no such dimension: found y"):
        view.rename({"y": "lat"})
    with pytest.raises(ShapeError):
        view.rename(["a"])


def test_natural_chunks_are_those_of_the_source():
    source = array(np.zeros((20, 30)), chunks=(4, 6))
    assert source.lazy[...].chunks == (4, 6)
    assert source.lazy[::2, 3].chunks == (2,)
    assert source.lazy.T.chunks == (6, 4)
    assert omnizarr.concat([source, source.lazy[:2]]).chunks == (4, 6)  # the last part may be short
    assert omnizarr.concat([source, source.lazy[:2], source.lazy[:2]]).chunks == (2, 6)


def test_dask_reads_it_piece_by_piece_and_knows_it_again():
    dask_array = pytest.importorskip("dask.array")
    from dask.base import tokenize

    sources = [year(0, chunks=(2, 3)), year(1, chunks=(2, 3))]
    joined = omnizarr.concat(sources)
    lazily = dask_array.from_array(joined, chunks=joined.chunks)
    np.testing.assert_array_equal(lazily[3:6].compute(), joined[3:6])
    assert tokenize(joined) == tokenize(omnizarr.concat(sources))
    assert tokenize(joined) != tokenize(omnizarr.concat(sources[::-1]))


def test_views_that_cannot_be_written_say_why():
    source = array(np.zeros((2, 2)))
    with pytest.raises(ReadOnlyError, match="only selections of one array"):
        omnizarr.concat([source, source])[0, 0] = 1
    with pytest.raises(ReadOnlyError, match="only selections of one array"):
        source.lazy.astype("i4")[0, 0] = 1
    with pytest.raises(ReadOnlyError, match="broadcast"):
        source.lazy.broadcast_to((3, 2, 2))[...] = 1
    with pytest.raises(ShapeError):
        source.lazy[0][...] = [1, 2, 3]
    assert not source[...].any()


def test_shapes_of_other_sizes_are_refused():
    view = array(np.zeros((2, 3))).lazy
    for shape in ((2, 1, -1), (3, 2), (6,)):
        assert view.reshape(shape).shape == np.zeros((2, 3)).reshape(shape).shape
    for shape in ((2, 2), (4, -1)):
        with pytest.raises(SelectionError):
            view.reshape(shape)
    with pytest.raises(SelectionError, match="not an order"):
        view.transpose(0, 0)
    with pytest.raises(SelectionError, match="broadcast"):
        view.broadcast_to((2, 4))


def test_tree_is_drawn_in_text_and_html():
    joined = omnizarr.concat([year(number) for number in range(50)]).lazy[::2].astype("f4")
    lines = repr(joined).splitlines()
    assert lines[0] == "<LazyArray (100, 3) float32>"
    assert lines[1:4] == ["  astype float32", "    select (100, 3) of (200, 3)", "      concat 50 along axis 0"]
    assert any("... 45 more" in line for line in lines)
    assert len(lines) < 15
    assert "&lt;LazyArray" in joined._repr_html_()


def test_source_that_breaks_while_the_view_lives_is_an_error_that_names_it(tmp_path):
    for number in range(3):
        omnizarr.create_array(tmp_path / str(number), data=np.arange(4), chunks=(2,))
    joined = omnizarr.concat([omnizarr.open_array(tmp_path / str(number)) for number in range(3)])
    (tmp_path / "1" / "c" / "0").write_bytes(b"broken")
    assert joined[:4].tolist() == [0, 1, 2, 3]
    with pytest.raises(OmnizarrError) as caught:
        joined[...]
    assert str(tmp_path / "1") in str(caught.value)


def test_twelve_thousand_sources_take_little_memory_and_one_point_one_source():
    source = array(np.arange(10))
    sources = [source] * 12_000
    tracemalloc.start()
    joined = omnizarr.concat(sources)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown / len(sources) < 1000
    assert joined.shape == (120_000,)
    assert joined[119_999] == 9
    assert joined[::10_000].tolist() == [0] * 12


def test_parts_added_one_by_one_make_one_join():
    joined = year(0).lazy[...]
    for number in range(1, 30):
        joined = omnizarr.concat([joined, year(number)])
    assert repr(joined).splitlines()[1] == "  concat 30 along axis 0"
    assert joined[-1, -1] == 2911


def test_paths_and_urls_are_opened_for_reading(tmp_path):
    for number in range(3):
        omnizarr.create_array(tmp_path / f"{number}.zarr", data=np.arange(4) + 10 * number)
    paths = [tmp_path / "0.zarr", str(tmp_path / "1.zarr"), (tmp_path / "2.zarr").as_uri()]
    joined = omnizarr.concat([*paths, np.arange(2)])
    assert joined[3:].tolist() == [3, 10, 11, 12, 13, 20, 21, 22, 23, 0, 1]
    assert omnizarr.stack(paths)[:, 1].tolist() == [1, 11, 21]
    assert omnizarr.block([paths[:2]])[0, 2:6].tolist() == [2, 3, 10, 11]
    with pytest.raises(ReadOnlyError):
        omnizarr.concat(paths[:1]).lazy[:2][0] = 5
    with pytest.raises(omnizarr.errors.ArrayNotFoundError, match=r"4\.zarr"):
        omnizarr.concat([*paths, tmp_path / "4.zarr"])


def test_errors_name_the_place_of_both_arrays(tmp_path):
    for name, shape in (("a", (2, 3)), ("b", (2, 4))):
        omnizarr.create_array(tmp_path / name, shape=shape, dtype="i4")
    with pytest.raises(JoinError) as caught:
        omnizarr.concat([tmp_path / "a", tmp_path / "b"])
    assert str(tmp_path / "a") in str(caught.value)
    assert str(tmp_path / "b") in str(caught.value)


def test_packed_tiles_of_a_mosaic_keep_their_numbers_or_their_meaning():
    half, third = ({"scale_factor": factor, "add_offset": 100.0} for factor in (0.5, 0.25))
    tile = array(np.int16([[1, 2]]), half)
    mosaic = omnizarr.block([[tile, None], [None, tile]], fill_value=-1)
    assert (mosaic[...].tolist(), mosaic.dtype, mosaic.attrs) == ([[1, 2, -1, -1], [-1, -1, 1, 2]], np.int16, half)
    mixed = omnizarr.block([[tile, None], [None, array(np.int16([[4, 8]]), third)]], fill_value=-1)
    assert mixed[...].tolist() == [[100.5, 101, -1, -1], [-1, -1, 101, 102]]
    assert (mixed.attrs, len(mixed.notes)) == ({}, 1)


def test_integers_that_mean_others_of_the_same_bits_are_unpacked_as_xarray_does():
    xarray = pytest.importorskip("xarray")
    said = [
        (np.int8([-56, 5, -1]), {"_Unsigned": "true", "_FillValue": -1, "scale_factor": 0.5}),
        (np.uint8([200, 5, 255]), {"_Unsigned": "false", "scale_factor": 2.0}),
        (np.int16([-1, 7, 8]), {"add_offset": 1.0}),
    ]
    joined = omnizarr.concat([array(stored, attributes) for stored, attributes in said])
    each = [xarray.conventions.decode_cf_variable("v", xarray.Variable("x", *one)).values for one in said]
    np.testing.assert_array_equal(joined[...], np.concatenate(each))


# ---- arrays of groups in memory


def of_array(made):
    return made


def of_lazy(made):
    return made.lazy[...]


def of_group(made):
    """An array of a group in memory, which is made of a lazy array."""
    store = LazyStore({"t": omnizarr.concat([made])})
    return omnizarr.open_group(store, mode="r")["t"]


def of_values_in_a_group(made):
    """The same, of elements in memory: only the group has attributes."""
    store = LazyStore({"t": omnizarr.concat([made[...]])}, {"t": dict(made.attrs)})
    return omnizarr.open_group(store, mode="r")["t"]


def of_combined_groups(made):
    group = omnizarr.create_group({})
    group.create_array("t", data=made[...], dimension_names=["x"], attributes=dict(made.attrs))
    return omnizarr.combine([group], along="x")["t"]


JOINS = {
    "concat": (omnizarr.concat, np.concatenate),
    "stack": (omnizarr.stack, np.stack),
    "block": (lambda sources: omnizarr.block([[source] for source in sources]), np.stack),
}
KINDS = (of_array, of_lazy, of_group, of_values_in_a_group, of_combined_groups)
every_join = pytest.mark.parametrize("how", JOINS)
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_join
@every_kind
def test_times_in_other_units_are_refused_in_every_join(how, kind):
    sources = [kind(array([0, 1], {"units": f"days since {year}-01-01"})) for year in (2000, 2001)]
    with pytest.raises(JoinError, match=r"different units: found 'days since 2001-01-01'.*'days since 2000-01-01'"):
        JOINS[how][0](sources)


@every_join
@every_kind
def test_times_of_other_calendars_are_refused_in_every_join(how, kind):
    same = {"units": "days since 2000-01-01"}
    sources = [kind(array([0, 1], {**same, "calendar": name})) for name in ("standard", "noleap")]
    with pytest.raises(JoinError, match="different calendar: found 'noleap'"):
        JOINS[how][0](sources)


@every_join
@every_kind
def test_packing_that_differs_is_undone_in_every_join(how, kind):
    sources = [
        kind(array(np.int16([1, 2]), {"scale_factor": scale, "add_offset": 1.0, "units": "K"})) for scale in (0.5, 2.0)
    ]
    joined = JOINS[how][0](sources)
    np.testing.assert_array_equal(joined[...], JOINS[how][1]([np.array([1.5, 2.0]), np.array([3.0, 5.0])]))
    assert joined.notes == ("packed in different ways: each source is unpacked by its own attributes",)


@every_join
@every_kind
def test_packing_that_is_the_same_stays_in_every_join(how, kind):
    packing = {"scale_factor": 0.5, "add_offset": 1.0, "units": "K"}
    joined = JOINS[how][0]([kind(array(np.int16([n, 2]), packing)) for n in (1, 7)])
    assert (joined.dtype, joined.notes) == (np.int16, ())
    np.testing.assert_array_equal(joined[...], JOINS[how][1]([[1, 2], [7, 2]]))


@every_join
def test_attributes_that_a_group_gives_count_and_not_those_of_its_sources(how):
    """Their units, and how their numbers are packed, are those that a reader of the group sees."""

    def given(**attributes):
        store = LazyStore(
            {"t": array(np.int16([1, 2]), {"units": "K", "scale_factor": 5.0}).lazy[...]}, {"t": attributes}
        )
        return omnizarr.open_group(store, mode="r")["t"]

    with pytest.raises(JoinError, match="different units"):
        JOINS[how][0]([given(units="degC"), given(units="K")])
    joined = JOINS[how][0]([given(units="K", scale_factor=2.0), given(units="K", scale_factor=3.0)])
    np.testing.assert_array_equal(joined[...], JOINS[how][1]([[2.0, 4.0], [3.0, 6.0]]))
