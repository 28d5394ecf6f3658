import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import MetadataError, UnknownChunkKeyEncodingError
from omnizarr.model import Named, keys

ENCODINGS = [
    *(keys.bind(Named(name, {"separator": separator})) for name in ("default", "v2") for separator in ("/", ".")),
    *(keys.bind(keys.separated_by(separator)) for separator in ("-", "c", "./.", "+")),
    keys.bind(Named(keys.SCALAR_AS_VECTOR, {"separator": "."})),
]


@pytest.mark.parametrize(
    ("name", "configuration", "key"),
    [
        ("default", {}, "c/1/23/45"),
        ("default", {"separator": "/"}, "c/1/23/45"),
        ("default", {"separator": "."}, "c.1.23.45"),
        ("v2", {}, "1.23.45"),
        ("v2", {"separator": "."}, "1.23.45"),
        ("v2", {"separator": "/"}, "1/23/45"),
    ],
)
def test_keys_are_those_of_the_specification(name, configuration, key):
    encoding = keys.bind(Named(name, configuration))
    assert encoding.encode((1, 23, 45)) == key
    assert encoding.decode(key, 3) == (1, 23, 45)


@pytest.mark.parametrize(("name", "key"), [("default", "c"), ("v2", "0")])
@pytest.mark.parametrize("separator", ["/", "."])
def test_scalar_has_the_key_of_the_specification(name, separator, key):
    encoding = keys.bind(Named(name, {"separator": separator}))
    assert encoding.encode(()) == key
    assert encoding.decode(key, 0) == ()


@pytest.mark.parametrize(("separator", "key"), [(".", "c.0"), ("/", "c/0")])
def test_a_scalar_may_have_the_key_of_a_vector(separator, key):
    encoding = keys.bind(Named(keys.SCALAR_AS_VECTOR, {"separator": separator}))
    assert encoding.encode(()) == key
    assert encoding.decode(key, 0) == ()


def test_name_and_separator_are_there_to_be_read():
    encoding = keys.bind(Named("v2"))
    assert (encoding.name, encoding.separator) == ("v2", ".")


@given(st.sampled_from(ENCODINGS), st.lists(st.integers(0, 2**64 - 1), max_size=5).map(tuple))
def test_decode_is_the_inverse_of_encode(encoding, coords):
    assert encoding.decode(encoding.encode(coords), len(coords)) == coords


@given(st.sampled_from(ENCODINGS), st.text("c0123./-+ _x²٣", max_size=9), st.integers(0, 3))
def test_only_the_key_of_coordinates_decodes_to_them(encoding, key, ndim):
    coords = encoding.decode(key, ndim)
    assert coords is None or (len(coords) == ndim and encoding.encode(coords) == key)


@pytest.mark.parametrize(
    "key",
    [
        *(
            "",
            "c",
            "c/",
            "c/0",
            "c/0/1/2",
            "c/0/01",
            "c/0/-1",
            "c/0/+1",
            "c/0/ 1",
            "c/0/1_0",
            "c/0/٣",
            "c/0/²",
            "C/0/1",
        ),
        *("0/1", "c.0.1", "zarr.json", "c/0/" + "9" * 5000, "c//0", "/c/0/1", "c/0/1/"),
    ],
)
def test_other_keys_are_no_chunk_keys(key):
    assert keys.bind(Named("default")).decode(key, 2) is None


def test_unknown_encoding_names_itself_and_those_known():
    with pytest.raises(UnknownChunkKeyEncodingError, match=r"hilbert.*default.*v2.*suffix") as caught:
        keys.bind(Named("hilbert"))
    assert caught.value.pointer == "/chunk_key_encoding/name"
    assert caught.value.found == "hilbert"


@pytest.mark.parametrize("name", ["default", "v2"])
@pytest.mark.parametrize("separator", ["-", "", "//", None, 0, True, ["/"], {}])
def test_other_separators_are_refused(name, separator):
    with pytest.raises(MetadataError, match="separator") as caught:
        keys.bind(Named(name, {"separator": separator}))
    assert caught.value.pointer == "/chunk_key_encoding/configuration/separator"


@pytest.mark.parametrize("separator", ["", "1", "-0-", None, 0])
def test_a_separator_tells_coordinates_apart(separator):
    with pytest.raises(MetadataError, match="separator"):
        keys.bind(Named("omnizarr.draft2019", {"separator": separator}))


def test_unknown_member_is_refused():
    with pytest.raises(MetadataError) as caught:
        keys.bind(Named("default", {"prefix": "x"}))
    assert caught.value.pointer == "/chunk_key_encoding/configuration/prefix"
