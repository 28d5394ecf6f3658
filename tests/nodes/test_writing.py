"""Values of every type, in every form in which they can be given, are stored as NumPy stores them."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numcodecs
import numpy as np
import pytest
from hypothesis import given, settings

import omnizarr
from omnizarr.errors import ShapeError, ValueTypeError
from omnizarr.settings import engines

TEXT = np.dtypes.StringDType()
RECORD = np.dtype([("a", "<i2"), ("b", "<f8"), ("c", "S3")])
FIXED = [
    *map(np.dtype, ["bool", "i1", "u1", ">i4", "u8", "f2", "<f8", "c8", "M8[s]", "m8[ns]", "S3", "U3", ">U2", "V4"]),
    RECORD,
]
ENGINES = ["reference"] if engines.module() is None else ["reference", "native"]
SCALARS = st.recursive(
    st.none() | st.booleans() | st.integers(-100, 100) | st.text(st.characters(codec="utf-8"), max_size=3),
    lambda some: st.lists(some, max_size=2) | st.dictionaries(st.text("ab", max_size=2), some, max_size=2),
    max_leaves=3,
)


def formats_of(shape, dtype):
    """Return the formats that hold such an array."""
    formats = [2, 3]
    if shape and dtype != RECORD and dtype.kind != "V":
        formats.append(1)
    if dtype.kind in "biuf":
        formats.append("3-draft2020")
    if dtype.kind in "bif" or dtype == "u1":
        formats.append("3-draft2019")
    return formats


def scalars(dtype):
    """Return a strategy for scalars of NumPy."""
    if dtype.kind == "V" and dtype.names is None:
        return st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize).map(np.void)
    return hnp.from_dtype(dtype).map(lambda item: np.array(item, dtype)[()])


def boxed(item):
    """Return an object as the only element of an array without dimensions."""
    box = np.empty((), object)
    box[()] = item
    return box


@st.composite
def selections(draw):
    """Draw a shape, and a selection of it that may select one element, several or none."""
    shape = draw(st.sampled_from([(), (), (1,), (3,), (2, 3), (0,), (2, 0)]))
    selection = draw(hnp.basic_indices(shape, max_dims=len(shape))) if 0 not in shape else ...
    return shape, selection


def same(found, expected):
    assert found.shape == expected.shape
    for name in expected.dtype.names or (...,):  # a record with a NaN in it is not equal to itself
        np.testing.assert_array_equal(found[name], expected[name])


def check(array, selection, value, expected):
    """Assign a value, and compare all elements with what NumPy has stored."""
    array[selection] = value
    same(np.asarray(array[...], array.dtype), expected)


@settings(max_examples=400)
@given(st.data(), st.sampled_from(FIXED), selections(), st.sampled_from(ENGINES))
def test_values_of_fixed_size_are_stored_as_numpy_stores_them(data, dtype, where, engine):
    shape, selection = where
    scalar = data.draw(scalars(dtype))
    expected = np.zeros(shape, dtype)
    expected[selection] = scalar
    forms = [scalar, np.array(scalar, dtype), np.array(scalar, dtype.newbyteorder("S")), boxed(scalar)]
    if np.ndim(expected[selection]):
        forms += [np.array([scalar], dtype), [scalar], np.full(expected[selection].shape, scalar, dtype)]
    if dtype.kind in "biufcSU" or dtype == RECORD:
        forms.append(scalar.item())
    zarr_format = data.draw(st.sampled_from(formats_of(shape, dtype)))
    with omnizarr.config.set({"engine": engine}):
        array = omnizarr.create_array({}, shape=shape, dtype=dtype, fill_value=None, zarr_format=zarr_format)
        for form in forms:
            array[...] = np.zeros((), dtype)
            check(array, selection, form, expected)
        full = np.full(shape, scalar, dtype)
        copy = omnizarr.create_array({}, data=full, zarr_format=zarr_format)
        same(np.asarray(copy[...], dtype), full)


@settings(max_examples=300)
@given(st.data(), selections(), st.sampled_from([2, 3]))
def test_text_is_stored_as_numpy_stores_it(data, where, zarr_format):
    shape, selection = where
    given = data.draw(
        st.text(st.characters(codec="utf-8"), max_size=4)
        | st.integers()
        | st.booleans()
        | st.floats(allow_nan=False)
        | st.text("ab").map(str.encode)
    )
    expected = np.zeros(shape, TEXT)
    expected[selection] = given
    text = str(np.array(given, TEXT))
    forms = [given, np.array(text, TEXT), boxed(given), boxed(text)]
    if "\0" not in text:
        forms += [np.str_(text), np.array(text)]
    if np.ndim(expected[selection]):
        forms += [[given], np.array([text], TEXT), expected[selection].copy()]
    array = omnizarr.create_array({}, shape=shape, dtype=str, chunks=1 if shape else "auto", zarr_format=zarr_format)
    whole = omnizarr.create_array({}, shape=shape, dtype=str, zarr_format=zarr_format)
    for form in forms:
        for some in (array, whole):
            some[...] = ""
            check(some, selection, form, expected)
    copy = omnizarr.create_array({}, data=expected, zarr_format=zarr_format)
    np.testing.assert_array_equal(np.asarray(copy[...], TEXT), expected)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "value", [np.array("hi"), np.array("hi", TEXT), np.array("hi", object), np.str_("hi")], ids=repr
)
def test_text_without_dimensions_is_stored_from_an_array_without_dimensions(zarr_format, value):
    array = omnizarr.create_array({}, shape=(), dtype=str, zarr_format=zarr_format)
    array[...] = value
    assert array[...] == array[()] == "hi"
    assert omnizarr.create_array({}, data=value, zarr_format=zarr_format)[...] == "hi"


@settings(max_examples=100)
@given(st.binary(max_size=4), selections(), st.sampled_from([2, 3]))
def test_byte_strings_are_stored_from_all_that_holds_bytes(item, where, zarr_format):
    shape, selection = where
    expected = np.full(shape, b"", object)
    expected[selection] = item
    forms = [item, boxed(item), boxed(bytearray(item)), boxed(memoryview(item))]
    if not item.endswith(b"\0"):
        forms += [np.bytes_(item), np.array(item), boxed(np.bytes_(item))]
    if np.ndim(expected[selection]):
        forms += [[item], [bytearray(item)], expected[selection].copy()]
    array = omnizarr.create_array({}, shape=shape, dtype="bytes", zarr_format=zarr_format)
    for form in forms:
        array[...] = b""
        check(array, selection, form, expected)


@settings(max_examples=100)
@given(SCALARS, selections(), st.sampled_from([numcodecs.JSON(), numcodecs.MsgPack(), numcodecs.Pickle()]))
def test_objects_are_stored_unchanged(item, where, codec):
    shape, selection = where
    array = omnizarr.create_array(
        {}, shape=shape, dtype=object, zarr_format=2, filters=[codec], fill_value=0, config={"allow_pickle": True}
    )
    array[selection] = boxed(item)
    found = array[...] if shape else boxed(array[...])
    selected = np.zeros(shape, bool)
    selected[selection] = True
    assert [value == item for value in found[selected]] == [True] * selected.sum()
    assert (found[~selected] == 0).all()
    if not np.ndim(selected[selection]) and not isinstance(item, list):
        array[selection] = item
        assert array[selection] == item


@settings(max_examples=100)
@given(hnp.arrays("i4", st.integers(0, 3)), selections())
def test_ragged_arrays_are_stored_from_lists_and_arrays(item, where):
    shape, selection = where
    selected = np.zeros(shape, bool)
    selected[selection] = True
    forms = [boxed(item), boxed(item.tolist()), boxed(item.astype("i8"))]
    if not np.ndim(selected[selection]):
        forms += [item, item.tolist(), tuple(item.tolist()), item.astype(object)]
    for form in forms:
        array = omnizarr.create_array({}, shape=shape, dtype=object, zarr_format=2, filters=[numcodecs.VLenArray("i4")])
        array[selection] = form
        found = boxed(array[...]) if shape == () else array[...]
        assert [value.tolist() for value in found[selected]] == [item.tolist()] * selected.sum()


@pytest.mark.parametrize("dtype", ["i4", "U2", "S2", str, "bytes"], ids=str)
def test_array_of_one_element_is_stored_as_that_element(dtype):
    array = omnizarr.create_array({}, shape=(3,), dtype=dtype)
    item = {"i4": 7, "S2": b"hi", "bytes": b"hi"}.get(dtype, "hi")
    for value in (np.array([item], object), np.array([[item]], object)):
        array[0] = value
        assert array[0] == item
        array[...] = value[0]
        assert array[...].tolist() == [item] * 3
        alone = omnizarr.create_array({}, shape=(), dtype=dtype)
        alone[...] = value.astype(dtype) if dtype not in (str, "bytes") else value
        assert alone[...] == item


@pytest.mark.parametrize("value", [None, np.nan, np.datetime64("NaT", "s")], ids=str)
@pytest.mark.parametrize("form", [lambda value: [value], lambda value: np.array(["a", value], object)[1:], boxed])
def test_missing_values_are_not_text(value, form):
    array = omnizarr.create_array({}, shape=(1,), dtype=str, fill_value="as it was")
    with pytest.raises(ValueTypeError, match="not text"):
        array[...] = form(value)
    assert array[0] == "as it was"


def test_missing_values_of_numpys_text_are_not_text():
    array = omnizarr.create_array({}, shape=(2,), dtype=str)
    with pytest.raises(ValueTypeError, match="not text"):
        array[...] = np.array(["a", None], np.dtypes.StringDType(na_object=None))


def test_list_is_not_one_text():
    array = omnizarr.create_array({}, shape=(2,), dtype=str)
    with pytest.raises(ShapeError):
        array[0] = ["a", "b"]


def test_numbers_are_the_same_text_in_whole_chunks_and_in_parts():
    array = omnizarr.create_array({}, shape=(4,), chunks=(2,), dtype=str)
    array[:3] = [1, 2.5, 3]
    expected = np.zeros(4, TEXT)
    expected[:3] = [1, 2.5, 3]
    assert array[...].tolist() == expected.tolist()


def test_array_of_another_store_is_stored_whatever_its_shape():
    for data in (np.array("hi"), np.array(["a", "b"]), np.array(3), np.array([b"x"], object)):
        array = omnizarr.create_array({}, data=data)
        copy = omnizarr.create_array({}, shape=array.shape, dtype=array.dtype if data.dtype != object else "bytes")
        copy[...] = array
        np.testing.assert_array_equal(copy[...], array[...])


MASKED = np.ma.MaskedArray([1, 2, 3], [False, True, False])


@pytest.mark.parametrize("options", [{}, {"zarr_format": 2, "fill_value": 0}, {"attributes": {"_FillValue": "x"}}])
def test_masked_elements_are_refused_where_nothing_means_missing(options):
    array = omnizarr.create_array({}, shape=(3,), dtype="i4", **options)
    array[...] = 7
    for value in (MASKED, np.ma.masked):
        with pytest.raises(ValueTypeError, match="elements are missing") as error:
            array[...] = value
        assert "_FillValue" in error.value.remedy
    with pytest.raises(ValueTypeError, match="1 of 3 elements are masked"), array.writer() as writer:
        writer[...] = MASKED
    assert array[...].tolist() == [7, 7, 7]
    array[...] = np.ma.MaskedArray([1, 2, 3])
    assert array[...].tolist() == [1, 2, 3]
    with pytest.raises(ValueTypeError, match="elements are missing"):
        omnizarr.create_array({}, data=MASKED)


@pytest.mark.parametrize(
    ("dtype", "options", "fill"),
    [
        ("i4", {"attributes": {"_FillValue": -9}}, -9),
        ("u1", {"attributes": {"missing_value": 255}}, 255),
        ("f4", {"attributes": {"_FillValue": "AAAAAAAAIsA="}}, -9),
        ("f8", {"attributes": {"_FillValue": "NaN"}}, np.nan),
        ("i2", {"zarr_format": 2, "attributes": {"_ARRAY_DIMENSIONS": ["x"]}, "fill_value": -3}, -3),
        ("i2", {"fill_value": -32767}, -32767),
    ],
)
def test_masked_elements_get_the_value_that_means_missing(dtype, options, fill):
    """What xarray and netCDF4-python mask when they read."""
    array = omnizarr.create_array({}, shape=(3,), dtype=dtype, **options)
    for value in (MASKED, MASKED.astype("f8")):
        array[...] = 0
        array[...] = value
        np.testing.assert_array_equal(array[...], np.array([1, fill, 3], dtype))
    array[0] = np.ma.masked
    array.append(MASKED)
    with array.writer() as writer:
        writer[2] = np.ma.masked
    np.testing.assert_array_equal(array[...], np.array([fill, fill, fill, 1, fill, 3], dtype))


def test_a_fill_value_that_comes_later_counts():
    array = omnizarr.create_array({}, data=[1, 2, 3])
    array.attrs["_FillValue"] = -1
    array[...] = MASKED
    assert array[...].tolist() == [1, -1, 3]


def test_masked_text_and_records():
    text = omnizarr.create_array({}, data=["a", "b"], dtype="string", attributes={"_FillValue": "-"})
    text[...] = np.ma.MaskedArray(np.array(["x", None], object), [False, True])
    assert text[...].tolist() == ["x", "-"]
    data = omnizarr.create_array({}, shape=2, dtype="bytes", attributes={"_FillValue": "TkE="})
    data[...] = np.ma.MaskedArray(np.array([b"a", b"b"], object), [False, True])
    assert data[...].tolist() == [b"a", b"NA"]
    records = omnizarr.create_array({}, data=np.zeros(3, RECORD), attributes={"_FillValue": 1})
    for selection, value in (("a", MASKED), (..., np.ma.MaskedArray(np.ones(3, RECORD), [(0, 1, 0)] * 3))):
        with pytest.raises(ValueTypeError, match="elements are missing"):
            records[selection] = value
    assert records["a"].tolist() == [0, 0, 0]
