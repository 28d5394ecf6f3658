"""Characters and strings as netCDF4-python turns them into each other."""

import netCDF4
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import ShapeError, ValueTypeError
from omnizarr.netcdf import chartostring, stringtoarr, stringtochar
from omnizarr.netcdf.chars import as_characters, as_objects, for_writing

ENCODINGS = ["utf-8", "latin-1", "utf-16-le", "ascii"]
SHAPES = st.lists(st.integers(1, 3), max_size=2).map(tuple)


def characters(shape, text):
    """An array of single bytes that hold a text over and over."""
    size = int(np.prod(shape))
    return np.frombuffer((text * size)[:size], "S1").reshape(shape)


@given(SHAPES, st.binary(min_size=1, max_size=6), st.sampled_from(["none", "bytes", "None", "latin-1"]))
def test_chartostring_of_bytes_is_netcdf4s(shape, text, encoding):
    given_ = characters((*shape, len(text)), text)
    expected = netCDF4.chartostring(given_, encoding=encoding)
    result = chartostring(given_, encoding)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    assert np.array_equal(result, expected)


@given(SHAPES, st.text(st.characters(max_codepoint=255), min_size=1, max_size=5), st.sampled_from(ENCODINGS))
def test_chartostring_of_text_is_netcdf4s(shape, text, encoding):
    coded = text.encode(encoding, "replace")
    given_ = characters((*shape, len(coded)), coded)
    expected = netCDF4.chartostring(given_, encoding=encoding)
    result = chartostring(given_, encoding)
    assert result.dtype == expected.dtype
    assert np.array_equal(result, expected)


def test_without_an_encoding_bytes_are_ascii():
    given_ = np.array([[b"a", b"b"], [b"c", b"\0"]])
    assert np.array_equal(chartostring(given_), netCDF4.chartostring(given_))
    with pytest.raises(UnicodeDecodeError):
        netCDF4.chartostring(np.array([b"\xe9"]))
    with pytest.raises(ValueTypeError, match="0xe9"):
        chartostring(np.array([b"\xe9"]))


def test_characters_that_are_cut_in_two_are_no_text():
    with pytest.raises(UnicodeDecodeError):
        netCDF4.chartostring(np.array([b"\xc3"]), encoding="utf-8")
    with pytest.raises(ValueTypeError):
        chartostring(np.array([b"\xc3"]), "utf-8")


def test_an_encoding_that_is_unknown_is_an_error():
    with pytest.raises(ValueTypeError, match="unknown encoding"):
        chartostring(np.array([b"a"]), "klingon")
    with pytest.raises(ValueTypeError, match="unknown encoding"):
        stringtochar(np.array(["a"]), "klingon")


def test_what_is_masked_counts_as_what_fills_it():
    given_ = np.ma.masked_array([b"a", b"b", b"c"], mask=[False, True, False], fill_value=b"x")
    assert chartostring(given_, "utf-8") == netCDF4.chartostring(given_, encoding="utf-8") == "axc"


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        (np.zeros((2, 0), "S1"), ["", ""]),
        (np.zeros((0, 3), "S1"), []),
        (np.array([["é", "b"], ["c", ""]]), ["éb", "c"]),
        (np.array([["é", "b"], ["c", ""]], ">U1"), ["éb", "c"]),
        (np.array([[b"a", b"x"], [b"b", b"y"]]).T, ["ab", "xy"]),
    ],
    ids=["no length", "no strings", "U1", "U1 big-endian", "not contiguous"],
)
def test_strings_consist_of_the_characters_along_the_last_dimension(given_, text):
    assert chartostring(given_, "utf-8").tolist() == text


@pytest.mark.parametrize("given_", [np.array([1]), np.array([None]), np.array([b"ab"]), np.array(["ab"])], ids=str)
def test_other_than_single_characters_make_no_strings(given_):
    with pytest.raises((ValueError, TypeError)):
        netCDF4.chartostring(given_)
    with pytest.raises(ValueTypeError):
        chartostring(given_)


def test_a_single_character_is_no_string():
    with pytest.raises(IndexError):
        netCDF4.chartostring(np.array(b"a"))
    with pytest.raises(ShapeError):
        chartostring(np.array(b"a"))


@given(st.lists(st.text(max_size=4), min_size=1, max_size=4), st.sampled_from(["utf-8", "utf-16-le", None]))
def test_stringtochar_of_text_is_netcdf4s(texts, encoding):
    given_ = np.array(texts, "U8")
    expected = netCDF4.stringtochar(given_, encoding=encoding)
    result = stringtochar(given_, encoding)
    assert result.dtype == expected.dtype
    assert np.array_equal(result, expected)


@given(SHAPES, st.text(st.characters(max_codepoint=127), min_size=1, max_size=5))
def test_stringtochar_of_ascii_bytes_is_netcdf4s(shape, text):
    given_ = np.full(shape, text.encode(), f"S{len(text)}")
    expected = netCDF4.stringtochar(given_)
    result = stringtochar(given_)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    assert np.array_equal(result, expected)


@given(st.lists(st.text(max_size=4), min_size=1, max_size=4), st.integers(16, 20))
def test_stringtochar_of_a_length_is_netcdf4s(texts, length):
    given_ = np.array(texts, "U4")
    expected = netCDF4.stringtochar(given_, n_strlen=length)
    assert np.array_equal(stringtochar(given_, n_strlen=length), expected)


@given(
    st.lists(st.lists(st.text(st.characters(exclude_characters="\0"), max_size=4), min_size=2, max_size=2), max_size=3)
)
def test_strings_of_any_shape_become_characters_and_back(texts):
    given_ = np.array(texts, "U4").reshape(len(texts), 2)
    made = stringtochar(given_, "utf-8")
    assert made.shape == (len(texts), 2, 16)
    assert chartostring(made, "utf-8").tolist() == given_.tolist()


@pytest.mark.parametrize("encoding", ["none", "bytes", "None", None])
def test_bytes_become_characters_unchanged(encoding):
    made = stringtochar(np.array([b"\xff\xfea", b"b"]), encoding)
    assert made.tolist() == [[b"\xff", b"\xfe", b"a"], [b"b", b"", b""]]


def test_a_string_alone_becomes_a_vector():
    assert stringtochar(np.array("é")).tolist() == [b"\xc3", b"\xa9", b"", b""]
    assert stringtochar(np.array("")).shape == (4,)


def test_no_length_and_no_strings_make_no_characters():
    assert stringtochar(np.array(["", ""]), n_strlen=0).shape == (2, 0)
    assert stringtochar(np.zeros(0, "U3"), n_strlen=5).shape == (0, 5)


def test_text_that_would_be_cut_is_refused():
    with pytest.raises(ValueTypeError) as caught:
        stringtochar(np.array(["aé"]), "utf-8", 2)
    assert (caught.value.found, caught.value.expected) == ("3 bytes in utf-8", "at most 2")


@pytest.mark.parametrize("function", [stringtochar, netCDF4.stringtochar])
def test_text_without_a_form_in_the_encoding_is_refused(function):
    with pytest.raises(ValueError):
        function(np.array(["€"]), encoding="latin-1")


@pytest.mark.parametrize("function", [stringtochar, netCDF4.stringtochar])
def test_other_than_text_makes_no_characters(function):
    with pytest.raises(ValueError):
        function(np.array([1]))


@given(st.text(st.characters(max_codepoint=127), max_size=5), st.integers(5, 8), st.sampled_from("SU"))
def test_stringtoarr_is_netcdf4s(text, length, dtype):
    expected = netCDF4.stringtoarr(text, length, dtype)
    result = stringtoarr(text, length, dtype)
    assert result.dtype == expected.dtype
    assert np.array_equal(result, expected)


@given(st.text(max_size=5))
def test_stringtoarr_makes_characters_of_any_text(text):
    assert np.array_equal(stringtoarr(text, 5, "U"), netCDF4.stringtoarr(text, 5, "U"))


def test_stringtoarr_takes_bytes():
    assert stringtoarr(b"ab", 3).tolist() == [b"a", b"b", b""]
    assert stringtoarr(b"ab", 3, "U").tolist() == ["a", "b", ""]
    assert stringtoarr(b"\xff", 1).tolist() == [b"\xff"]


@pytest.mark.parametrize(
    ("string", "length", "dtype"), [("abc", 2, "S"), ("abc", 0, "U"), ("é", 2, "S"), ("a", 1, "i")], ids=str
)
def test_what_stringtoarr_of_netcdf4_refuses_is_refused(string, length, dtype):
    with pytest.raises(ValueError):
        netCDF4.stringtoarr(string, length, dtype)
    with pytest.raises(ValueTypeError):
        stringtoarr(string, length, dtype)


def test_nothing_makes_no_characters():
    assert stringtoarr("", 0).shape == netCDF4.stringtoarr("", 0).shape == (0,)


ASSIGNED = {
    "str": "ab",
    "bytes": b"ab",
    "str, not ASCII": "é",
    "vector": np.array(["ab", "é"]),
    "vector of bytes": np.array([b"ab", b"c"]),
    "single bytes": np.array([[b"a", b"b", b"c", b"d"], [b"e", b"f", b"g", b"h"]]),
    "vector of single characters": np.array(["a", "é"]),
}


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("case", ASSIGNED)
def test_text_is_stored_in_a_variable_with_an_encoding_as_netcdf4_does(case, encoding):
    data = ASSIGNED[case]
    with netCDF4.Dataset("chars.nc", "w", diskless=True, persist=False) as dataset:
        dataset.createDimension("n", 2)
        dataset.createDimension("length", 4)
        variable = dataset.createVariable("v", "S1", ("n", "length"))
        variable._Encoding = encoding
        try:
            variable[:] = data
        except (ValueError, AttributeError):  # text that is not ASCII, and what netCDF4-python has no way for
            expected = None
        else:
            variable.set_auto_maskandscale(False)
            variable.set_auto_chartostring(False)
            expected = variable[:]
    if expected is None:
        if np.asarray(data).dtype.kind == "U" and not "".join(np.ravel(data)).isascii():
            with pytest.raises(ValueTypeError):
                for_writing(data, encoding, 4)
        else:
            assert chartostring(for_writing(data, encoding, 4), encoding).tolist() == np.asarray(data, "U").tolist()
    else:
        result = for_writing(data, encoding, 4)
        assert result.dtype == "S1"
        assert np.array_equal(np.broadcast_to(result, (2, 4)), expected)


def test_lists_and_objects_are_text_as_well():
    expected = [[b"a", b"b", b"c"], [b"d", b"", b""]]
    assert for_writing(["abc", "d"], "ascii", 3).tolist() == expected
    assert for_writing(np.array(["abc", "d"], object), "ascii", 3).tolist() == expected


def test_masked_text_is_empty():
    assert for_writing(np.ma.masked_array(["ab", "c"], [False, True]), "ascii", 2).tolist() == [
        [b"a", b"b"],
        [b"", b""],
    ]
    assert as_characters(np.ma.masked_array([b"a", b"c"], [False, True])).tolist() == [b"a", b""]
    assert as_characters(np.ma.masked).item() == b""
    assert as_objects(np.ma.masked).item() == ""
    assert as_objects(np.ma.masked_array(["ab", "c"], [False, True])).tolist() == ["ab", ""]


@pytest.mark.parametrize("data", ["ab", ["a", "bc"], np.array([b"ab"]), ["é"], 1, [None]], ids=str)
def test_without_an_encoding_a_character_is_one_byte(data):
    with pytest.raises(ValueTypeError):
        for_writing(data, None, 4)


@pytest.mark.parametrize("data", ["abcde", "ééé", b"abcde"], ids=str)
def test_text_longer_than_the_variable_is_refused(data):
    with pytest.raises(ValueTypeError, match="too long"):
        for_writing(data, "utf-8", 4)


@pytest.mark.parametrize("data", [1, [1.5], ["a", None], [b"\xff"], np.ma.masked_array([1], [True])], ids=str)
def test_objects_other_than_text_are_refused(data):
    with pytest.raises(ValueTypeError):
        as_objects(data)


@pytest.mark.parametrize("data", [["a\0b", ""], np.array(["é"]), np.array([b"\xc3\xa9"]), [np.str_("x")]], ids=str)
def test_strings_are_objects_of_type_str(data):
    objects = as_objects(data)
    assert objects.dtype == object
    assert {type(each) for each in objects.flat} == {str}
    assert objects.tolist() == [each.decode() if isinstance(each, bytes) else str(each) for each in data]
