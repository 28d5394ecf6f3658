"""The chunk key encodings that are proposed as extensions, with the examples of the proposals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.errors import MetadataError, UnknownChunkKeyEncodingError
from omnizarr.model import Named, keys


def bound(name, **configuration):
    return keys.bind(Named(name, configuration))


FANOUT = {"name": "fanout", "configuration": {"max_children": 100}}
ENCODINGS = [
    bound("suffix", suffix=".tiff", base_encoding={"name": "default"}),
    bound("suffix", suffix="1", base_encoding={"name": "v2", "configuration": {"separator": "/"}}),
    bound("suffix", suffix=".a", base_encoding=FANOUT),
    bound("zarrs.default_suffix", suffix=".jpg", separator="."),
    bound("fanout"),
    bound("fanout", max_children=100),
    bound("template", template="c/{*}", separator="/"),
    bound("template", template="0{*:03}1", separator="-"),
    bound("template", template="{-1}/x{*:02}%d{{}}", separator="_0"),
]


@pytest.mark.parametrize(
    ("template", "separator", "coords", "key"),
    [
        # the examples of the proposal
        ("c/{*}", "/", (11, 22, 33), "c/11/22/33"),
        ("{*}", ".", (11, 22, 33), "11.22.33"),
        ("prefix/{*}", "/", (11, 22, 33), "prefix/11/22/33"),
        ("{*}.suffix", "_", (11, 22, 33), "11_22_33.suffix"),
        ("{2}/{0}/{1}", ".", (11, 22, 33), "33/11/22"),
        ("{-1}/{*}", "/", (11, 22, 33), "33/11/22"),
        ("{*:04}", "/", (11, 22, 33), "0011/0022/0033"),
        ("{*:02}", "/", (111, 2, 33), "111/02/33"),
        # what its text says
        ("images/{-1}/{*:04}.jpeg", "_", (1, 2, 3), "images/3/0001_0002.jpeg"),
        ("{2}-{0}_{1}", None, (1, 2, 3), "3-1_2"),
        ("{{{0}}}", None, (5,), "{5}"),
    ],
)
def test_template(template, separator, coords, key):
    encoding = bound("template", template=template, **({} if separator is None else {"separator": separator}))
    assert encoding.encode(coords) == key
    assert encoding.decode(key, len(coords)) == coords


def test_the_examples_of_the_proposal_call_the_template_a_format():
    assert bound("template", format="{2}-{0}_{1}").encode((1, 2, 3)) == "3-1_2"


@pytest.mark.parametrize(
    ("coords", "key"),
    [
        ((), "c"),
        ((0,), "c/0/000"),
        ((12,), "c/0/012"),
        ((1234, 5, 0, 6789012), "c/1/001/234/0/005/0/000/2/006/789/012"),
        ((1234567,), "c/2/001/234/567"),
    ],
)
def test_fanout(coords, key):
    assert bound("fanout").encode(coords) == key
    assert bound("fanout").decode(key, len(coords)) == coords


@pytest.mark.parametrize(("most", "key"), [(250, "c/1/01/23"), (1234, "c/0/123"), (100, "c/1/01/23")])
def test_fanout_takes_the_next_lower_power_of_ten(most, key):
    assert bound("fanout", max_children=most).encode((123,)) == key


def test_suffix():
    assert bound("suffix", suffix=".tiff", base_encoding={"name": "default"}).encode((1, 2)) == "c/1/2.tiff"
    assert bound("suffix", suffix=".shard.zip", base_encoding={"name": "v2"}).encode((1, 2)) == "1.2.shard.zip"
    assert bound("suffix", suffix=".x", base_encoding="default").encode(()) == "c.x"
    assert bound("zarrs.default_suffix", suffix=".x").encode((1, 2)) == "c/1/2.x"
    assert bound("zarrs.default_suffix", suffix=".x").encode(()) == "c.x"


@given(st.sampled_from(ENCODINGS), st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=5).map(tuple))
def test_decode_is_the_inverse_of_encode(encoding, coords):
    assert encoding.decode(encoding.encode(coords), len(coords)) == coords


@given(st.sampled_from(ENCODINGS), st.text("c0123./-_{}%dx.tif²٣", max_size=12), st.integers(2, 3))
def test_only_the_key_of_coordinates_decodes_to_them(encoding, key, ndim):
    coords = encoding.decode(key, ndim)
    assert coords is None or (len(coords) == ndim and encoding.encode(coords) == key)


OUTSIDE = [
    "../{}",
    "/{}",
    "a//{}",
    "{}/../x",
    "{}\\x",
    "{}\0",
    "zarr.json/{}",
    "{}/zarr.json",
    ".zarray{}",
    "./{}",
    "{}/",
]


@pytest.mark.parametrize("form", OUTSIDE)
def test_no_key_lies_elsewhere_or_is_a_document(form):
    with pytest.raises(MetadataError) as caught:
        bound("template", template=form.format("{0}"))
    assert caught.value.pointer == "/chunk_key_encoding/configuration/template"
    if form.startswith("{}"):
        with pytest.raises(MetadataError):
            bound("suffix", suffix=form[2:], base_encoding="v2")


@pytest.mark.parametrize(
    ("name", "configuration", "member"),
    [
        ("template", {}, "template"),
        ("template", {"template": 3}, "template"),
        ("template", {"template": "x" * 10_000 + "{0}"}, "template"),
        ("template", {"template": "nothing"}, "template"),
        ("template", {"template": "{0"}, "template"),
        ("template", {"template": "{0:4}"}, "template"),
        ("template", {"template": "{*}-{*}", "separator": "/"}, "template"),
        ("template", {"template": "{*}"}, "separator"),
        ("template", {"template": "{*}", "separator": ".."}, "separator"),
        ("template", {"template": "{*}", "separator": ""}, "template"),
        ("template", {"template": "{0}{1}"}, "template"),
        ("template", {"template": "{0}7{1}"}, "template"),
        ("template", {"template": "{0}", "other": 1}, "other"),
        ("fanout", {"max_children": 99}, "max_children"),
        ("fanout", {"max_children": True}, "max_children"),
        ("fanout", {"max_children": "1000"}, "max_children"),
        ("fanout", {"children": 1000}, "children"),
        ("suffix", {"suffix": ".a"}, "base_encoding"),
        ("suffix", {"base_encoding": "v2"}, "suffix"),
        ("suffix", {"suffix": 1, "base_encoding": "v2"}, "suffix"),
        ("suffix", {"suffix": ".a", "base_encoding": {"name": "v2", "configuration": []}}, "base_encoding"),
    ],
)
def test_a_broken_configuration_is_refused(name, configuration, member):
    with pytest.raises(MetadataError) as caught:
        keys.bind(Named(name, configuration))
    assert caught.value.pointer == f"/chunk_key_encoding/configuration/{member}"


def test_encodings_within_encodings_are_bounded():
    named = {"name": "v2"}
    for _ in range(200):
        named = {"name": "suffix", "configuration": {"suffix": "a", "base_encoding": named}}
    with pytest.raises(MetadataError, match="too many encodings"):
        keys.bind(Named("suffix", named["configuration"]))
    with pytest.raises(UnknownChunkKeyEncodingError):
        bound("suffix", suffix="a", base_encoding={"name": "hilbert"})


@pytest.mark.parametrize(
    ("template", "ndim"), [("{1}", 1), ("{-3}_{0}_{1}", 2), ("{0}_{-1}", 1), ("{0}", 2), ("{0}_{*}", 1), ("{*}", 0)]
)
def test_a_template_has_each_coordinate_once(template, ndim):
    with pytest.raises(MetadataError, match="template") as caught:
        omnizarr.create_array(
            {}, shape=(4,) * ndim, dtype="u1",
            chunk_key_encoding={"name": "template", "configuration": {"template": template, "separator": "/"}},
        )  # fmt: skip
    assert caught.value.pointer == "/chunk_key_encoding/configuration/template"


@pytest.mark.parametrize(
    ("named", "first"),
    [
        ({"name": "fanout", "configuration": {"max_children": 100}}, "c/0/00/0/00"),
        ({"name": "template", "configuration": {"template": "{1}/img{0:03}.raw"}}, "0/img000.raw"),
        ({"name": "template", "configuration": {"template": "t{*}.raw", "separator": "-"}}, "t0-0.raw"),
        ({"name": "suffix", "configuration": {"suffix": ".bin", "base_encoding": {"name": "v2"}}}, "0.0.bin"),
        ({"name": "suffix", "configuration": {"suffix": ".bin", "base_encoding": FANOUT}}, "c/0/00/0/00.bin"),
        ({"name": "zarrs.default_suffix", "configuration": {"suffix": ".bin"}}, "c/0/0.bin"),
    ],
)
def test_arrays_with_these_keys_are_arrays_like_others(named, first, tmp_path):
    values = np.arange(1, 61).reshape(6, 10)
    root = omnizarr.create_group(tmp_path / "a.zarr")
    root.create_array("a", data=values, chunks=(2, 3), chunk_key_encoding=named)
    assert (tmp_path / "a.zarr" / "a" / first).is_file()
    array = omnizarr.open(tmp_path / "a.zarr")["a"]
    np.testing.assert_array_equal(array[1:5, ::3], values[1:5, ::3])
    assert array.nchunks_initialized == 12
    array.resize((3, 10))
    assert array.nchunks_initialized == 8
    array.resize((6, 10))
    np.testing.assert_array_equal(array[...], np.where(np.arange(6)[:, None] < 3, values, 0))
    report = omnizarr.check(tmp_path / "a.zarr")
    assert {finding.code for finding in report.findings} <= {"unregistered-extension", "missing-chunks"}
    omnizarr.convert(tmp_path / "a.zarr", tmp_path / "b.zarr", zarr_format=2)
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "b.zarr")["a"][...], array[...])
    del root["a"]
    assert sorted(p.name for p in (tmp_path / "a.zarr").iterdir()) == ["zarr.json"]
