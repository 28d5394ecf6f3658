"""`omnizarr.stat` against NumPy, and against Python's exact fractions."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import xarray
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import omnizarr
from omnizarr.stores import MemoryStore
from tests.fakes import UnlistableStore


def array(values, store=None, **options):
    values = np.asarray(values)
    made = omnizarr.create_array({} if store is None else store, shape=values.shape, dtype=values.dtype, **options)
    made[...] = values
    return made


def stat(values, **options):
    return omnizarr.stat(array(values, **options))[0]


def drawn(data, dtype, **options):
    values = data.draw(hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, max_side=8), **options))
    chunks = tuple(data.draw(st.integers(1, length)) for length in values.shape)
    made = array(values, chunks=chunks, fill_value=data.draw(hnp.from_dtype(np.dtype(dtype))))
    return values, omnizarr.stat(made, max_memory=data.draw(st.sampled_from([None, 8**4])))[0]


@settings(deadline=None)
@given(st.data())
def test_integers_are_exact(data):
    dtype = data.draw(st.sampled_from(["i1", "u1", ">i2", "u2", "i4", "u4", ">i8", "u8", "?"]))
    values, found = drawn(data, dtype)
    numbers = [int(value) for value in values.reshape(-1)]
    mean = Fraction(sum(numbers), len(numbers))
    assert (found.minimum, found.maximum, found.count, found.nan) == (min(numbers), max(numbers), len(numbers), 0)
    assert found.mean == float(mean)
    variance = sum((number - mean) ** 2 for number in numbers) / len(numbers)
    assert found.std == pytest.approx(math.sqrt(variance), rel=1e-12, abs=1e-12 * (max(numbers) - min(numbers)))


@settings(deadline=None)
@given(st.data())
def test_floats_are_those_of_numpy(data):
    dtype = np.dtype(data.draw(st.sampled_from(["f2", "<f4", ">f8"])))
    bound = {2: 1e4, 4: 2.0**100, 8: 2.0**400}[dtype.itemsize]
    elements = hnp.from_dtype(dtype, min_value=-bound, max_value=bound, allow_subnormal=False) | st.just(math.nan)
    values, found = drawn(data, dtype, elements=elements)
    valid = [float(value) for value in values.reshape(-1) if not np.isnan(value)]
    assert (found.count, found.nan) == (len(valid), values.size - len(valid))
    if not valid:
        assert (found.minimum, found.maximum, found.mean, found.std) == (None,) * 4
        return
    assert (found.minimum, found.maximum) == (min(valid), max(valid))
    scale = max(map(abs, valid))
    assert found.mean == pytest.approx(float(np.mean(valid)), rel=1e-12, abs=1e-14 * scale)
    assert found.std == pytest.approx(float(np.std(valid)), rel=1e-7, abs=1e-14 * scale)


@settings(deadline=None)
@given(st.data())
def test_fill_values_are_counted_as_numpy_does(data):
    dtype = data.draw(st.sampled_from(["i2", "f4", "M8[s]", "S2", "?"]))
    values = data.draw(hnp.arrays(dtype, st.integers(1, 30)))
    fill = data.draw(st.sampled_from(list(values)))
    found = stat(values, chunks=4, fill_value=fill)
    is_missing = (values == fill) | (np.array([repr(value) == repr(fill) for value in values]))
    assert found.fill == np.count_nonzero(is_missing)


def test_large_numbers_far_from_zero_are_stable():
    values = np.random.default_rng(3).normal(1e9, 1e-3, 10**6)
    found = stat(values, chunks=12345)
    exact = math.fsum(values) / len(values)
    assert found.mean == pytest.approx(exact, rel=1e-15)
    assert found.std == pytest.approx(math.sqrt(math.fsum((values - exact) ** 2) / len(values)), rel=1e-6)


def test_sums_that_overflow():
    found = stat(np.full(1000, 1.5e308), chunks=100)
    assert (found.mean, found.maximum) == (1.5e308, 1.5e308)
    found = stat(np.full(1000, 2**63 - 1), chunks=100)
    assert (found.mean, found.std) == (float(2**63 - 1), 0.0)


@pytest.mark.parametrize("values", [[1.0, np.inf], [-np.inf, 1.0], [np.inf, -np.inf]], ids=str)
def test_infinity(values):
    found = stat(values, chunks=1)
    assert (found.minimum, found.maximum) == (min(values), max(values))
    with np.errstate(invalid="ignore"):
        np.testing.assert_equal(found.mean, np.mean(values))
        np.testing.assert_equal(found.std, np.std(values))


def test_complex_numbers_have_a_mean_but_no_order():
    values = np.array([1 + 2j, 3 - 1j, complex(np.nan, 0)])
    found = stat(values, chunks=2)
    assert (found.minimum, found.maximum, found.nan) == (None, None, 1)
    assert found.mean == 2 + 0.5j
    assert found.std == pytest.approx(np.std(values[:2]))


def test_times():
    values = np.array(["2000-01-01", "2000-01-04", "NaT"], "M8[D]")
    found = stat(values, chunks=2)
    assert (found.minimum, found.maximum, found.nan) == (values[0], values[1], 1)
    assert found.mean == np.datetime64("2000-01-02")  # half a day is rounded to even
    assert found.std == np.timedelta64(2, "D")
    spans = stat(np.array([10, 20], "m8[s]"))
    assert (spans.minimum, spans.mean) == (np.timedelta64(10, "s"), np.timedelta64(15, "s"))


def test_times_in_other_units_and_byte_orders():
    found = stat(np.array([10, 30], ">M8[10s]"), zarr_format=2)
    assert found.mean == np.array(20, "M8[10s]")


@pytest.mark.parametrize("dtype", ["T", "U5", "S5"])
def test_text_has_a_first_and_a_last(dtype):
    values = np.array(["b", "ab", "c"]).astype(dtype)
    found = stat(values, chunks=2)
    assert (found.minimum, found.maximum, found.mean, found.std) == (values.tolist()[1], values.tolist()[2], None, None)


def test_bool():
    found = stat(np.array([True, False, True, True]))
    assert (found.minimum, found.maximum, found.mean) == (False, True, 0.75)


def test_structures_have_statistics_of_each_field():
    inner = np.dtype([("x", "f4"), ("y.z", "i2")])
    values = np.zeros(3, [("a", "i4"), ("b", inner)])
    values["a"], values["b"]["y.z"] = [1, 2, 6], [5, 7, 9]
    found = stat(values, zarr_format=2)
    assert [(each.field, each.minimum, each.mean) for each in found.fields] == [
        (("a",), 1, 3.0),
        (("b", "x"), 0.0, 0.0),
        (("b", "y.z"), 5, 7.0),
    ]


def test_missing_chunks_are_counted_but_not_read(monkeypatch):
    made = omnizarr.create_array({}, shape=(10**9, 10**9), chunks=(10, 10), dtype="i8", fill_value=-3)
    made[:10, :20] = 4
    found = omnizarr.stat(made)[0]
    assert (found.chunks, found.missing) == (10**16, 10**16 - 2)
    assert (found.minimum, found.maximum, found.fill) == (-3, 4, 10**18 - 200)
    assert found.mean == float(Fraction(-3 * (10**18 - 200) + 800, 10**18))
    monkeypatch.setattr("omnizarr.tools.streaming.walking.read", lambda *_: pytest.fail("a chunk was read"))
    empty = omnizarr.create_array({}, shape=100, chunks=10, dtype="f4", fill_value=np.nan)
    assert omnizarr.stat(empty)[0].nan == 100


def test_fill_values_can_be_left_out():
    found = omnizarr.stat(array(np.array([-99, 1, 3, -99], "i2"), chunks=2, fill_value=-99), skip_fill=True)[0]
    assert (found.minimum, found.mean, found.count, found.fill) == (1, 2.0, 2, 2)


def test_fill_value_that_is_undefined():
    assert stat([1, 2], zarr_format=2, fill_value=None).fill is None


def test_empty_array():
    found = stat(np.zeros((0, 3)))
    assert (found.count, found.size, found.minimum, found.mean, found.chunks) == (0, 0, None, None, 0)


def test_hierarchy_and_what_cannot_be_read():
    store = {}
    group = omnizarr.create_group(store)
    group["a"], group["b/c"] = np.arange(5), np.arange(10)
    store["a/c/0"] = b"broken"
    found = omnizarr.stat(group)
    assert [each.path for each in found] == ["b/c"]
    assert found["/b/c"].maximum == 9
    assert found.problems[0][0] == "a"
    with pytest.raises(KeyError):
        found["a"]


def test_store_that_cannot_be_listed():
    store = MemoryStore()
    array(np.arange(10), store=store, chunks=5)
    found = omnizarr.stat(UnlistableStore(store, admits=False))[0]
    assert (found.missing, found.maximum) == (None, 9)


def test_report_is_strict_json():
    found = omnizarr.stat(array([np.nan, np.inf, 1 / 3]))
    assert json.loads(found.to_json())["arrays"][0]["fields"][0]["maximum"] == "Infinity"
    moment = omnizarr.stat(array(np.array(["2000-01-01"], "M8[s]")))
    assert moment.to_dict()["arrays"][0]["fields"][0]["mean"] == "2000-01-01T00:00:00"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_decoded_elements_are_those_of_xarray(tmp_path, zarr_format):
    values = np.array([[1.5, np.nan, 3.0], [np.nan, -2.0, 0.5]])
    dataset = xarray.Dataset({"t": (("y", "x"), values)})
    encoding = {"dtype": "i2", "scale_factor": 0.5, "add_offset": 10.0, "_FillValue": -9, "chunks": (1, 2)}
    dataset.to_zarr(tmp_path / "x", zarr_format=zarr_format, encoding={"t": encoding}, consolidated=False)
    array = omnizarr.open_group(tmp_path / "x")["t"]
    array.resize((3, 3))  # the last row is not stored
    found = omnizarr.stat(tmp_path / "x", path="t", decoded=True)[0]
    read = xarray.open_zarr(tmp_path / "x", consolidated=False)["t"].to_numpy()
    expected = (np.nanmin(read), np.nanmax(read), np.nanmean(read), np.nanstd(read), np.isnan(read).sum())
    assert (found.minimum, found.maximum, found.mean, found.std, found.nan) == pytest.approx(expected)
    assert found.count == 9 - found.nan
    assert found.fill is None


def test_decoding_leaves_other_arrays_as_they_are():
    for data in (np.array(["a"]), np.array([True]), np.array(["2000-01-01"], "M8[D]"), np.arange(3)):
        array = omnizarr.create_array({}, data=data, attributes={"valid_max": "x"})
        assert omnizarr.stat(array, decoded=True) == omnizarr.stat(array)
