"""HTML of arrays and groups: well-formed, escaped, small, and without a read."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import omnizarr
from omnizarr.nodes.info_drawing import draw
from omnizarr.nodes.info_html import render
from omnizarr.stores import MemoryStore
from tests.fakes import FaultyStore

EVIL = "<script>alert('x')</script>\"&"


def parsed(html):
    """Return the page as a tree; the subset of HTML that is written is XML too."""
    return ET.fromstring(html)


def text_of(html):
    return " ".join(parsed(html).itertext())


def chunk_lines(svg):
    """Return, for each face, how many lines are drawn on it."""
    return [path.count("M") for path in re.findall(r'<path d="([^"]*)" stroke="currentColor" stroke-opacity', svg)]


@pytest.fixture
def root():
    root = omnizarr.create_group({}, attributes={EVIL: EVIL, "n": [1, float("nan")]})
    root.create_array(
        "ocean/temp",
        shape=(365, 180, 360),
        chunks=(60, 90, 90),
        dtype="f4",
        dimension_names=["time", EVIL, None],
        attributes={EVIL: {EVIL: [EVIL]}},
    )
    root.create_array("names", data=np.array(["a", "b"], np.dtypes.StringDType()))
    root.create_array("scalar", data=np.float64(1.5))
    root.create_array("none", shape=(0, 4), dtype="i2")
    root.create_array("shards", shape=(8, 8, 8, 8), chunks=(2, 2, 2, 2), shards=(4, 4, 4, 4), dtype="i2")
    root.create_array("huge", shape=(2**63 - 1, 2**62), chunks=(2**20, 1), dtype="u1")
    root.create_array("ragged", shape=(10,), chunks=[[3, 7]], dtype="i2")
    return root


def test_group_is_well_formed_and_names_its_members(root):
    text = text_of(render(root))
    for name in ("ocean", "temp", "names", "huge", "float32"):
        assert name in text


@pytest.mark.parametrize("name", ["ocean/temp", "names", "scalar", "none", "shards", "huge", "ragged"])
def test_array_is_well_formed(root, name):
    assert parsed(render(root[name])).tag == "div"


def test_everything_from_data_is_escaped(root):
    for html in (render(root), render(root["ocean/temp"])):
        assert "<script" not in html
        assert EVIL in text_of(html)


def test_characters_that_html_has_no_place_for_are_replaced():
    values = {}
    omnizarr.create_group(values, attributes={"a": "\x00\x1b[31m"})
    assert "\N{REPLACEMENT CHARACTER}" in text_of(render(omnizarr.open(values)))


def test_facts_of_an_array_are_there(root):
    text = text_of(render(root["ocean/temp"]))
    for fact in ("time 365", "float32", "60×90×90 (1.9 MiB)", "56 chunks", "zstd", "90.2 MiB", "1 attribute"):
        assert fact in text


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_engine_that_serves_is_shown(root, monkeypatch, engine):
    monkeypatch.setattr(omnizarr.Array, "engine", engine)
    assert f"Engine {engine}" in text_of(render(root["ocean/temp"]))


def test_attributes_are_folded(root):
    details = parsed(render(root["ocean/temp"])).find(".//details")
    assert "open" not in details.attrib
    assert details.find("summary").text == "1 attribute"


def test_notebooks_find_it(root):
    assert root._repr_html_() == render(root)
    assert root["huge"]._repr_html_() == render(root["huge"])


def test_no_element_is_read():
    values = {}
    omnizarr.create_array(values, data=np.arange(100))
    store = FaultyStore(MemoryStore(values))
    render(omnizarr.open(store, mode="r"))
    assert {key for verb, key in store.log if verb.startswith("get")} == {"zarr.json"}


def test_unreadable_member_does_not_hide_the_rest():
    values = {}
    root = omnizarr.create_group(values)
    root["a"] = np.arange(3)
    values["b/zarr.json"] = b'{"zarr_format": 3, "node_type": "array"}'
    text = text_of(render(omnizarr.open_group(values)))
    assert "unreadable" in text
    assert "int64" in text


def test_unknown_codec_and_data_type_are_shown_by_name():
    values = {}
    omnizarr.create_array(values, data=np.arange(3))
    values["zarr.json"] = bytes(values["zarr.json"]).replace(b'"int64"', b'"enigma"').replace(b'"zstd"', b'"mystery"')
    text = text_of(render(omnizarr.open(values)))
    assert "enigma" in text
    assert "mystery" in text


@pytest.mark.slow
def test_page_stays_small_whatever_it_shows():
    root = omnizarr.create_group({}, attributes={f"a{n}": "x" * 10_000 for n in range(1000)})
    for n in range(300):
        root.create_group(f"g{n:03}")
    assert len(render(root)) < 300_000


def test_colours_follow_the_page(root):
    html = render(root["ocean/temp"])
    assert "currentColor" in html
    assert "black" not in html
    assert "white;" not in html.replace("white-space", "")


@pytest.mark.parametrize(
    ("shape", "chunk_shape", "lines"),
    [
        ((10,), (5,), [1]),
        ((10,), (10,), [0]),
        ((4, 9), (2, 3), [1 + 2]),
        ((20, 30, 40), (10, 10, 10), [3 + 1, 1 + 2, 3 + 2]),  # top, side, front
        ((7, 20, 30, 40), (1, 10, 10, 10), [6, 3 + 1, 1 + 2, 3 + 2]),  # what is before the last three is a sheet
        ((10,), ((3, 4, 3),), [2]),
    ],
)
def test_drawing_has_a_line_where_chunks_meet(shape, chunk_shape, lines):
    assert chunk_lines(draw(shape, chunk_shape)) == lines


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_what_has_no_elements_or_dimensions_is_not_drawn(shape):
    assert draw(shape, shape) == ""


@pytest.mark.parametrize("shape", [(1,), (2**63 - 1,), (1, 2**62), (3, 1, 2**40), (1, 1, 1), (5,) * 12])
def test_drawing_of_any_shape_stays_within_bounds(shape):
    svg = parsed(draw(shape, (1,) * len(shape)))
    assert 0 < float(svg.get("width")) < 600
    assert 0 < float(svg.get("height")) < 400
    assert len(ET.tostring(svg)) < 10_000


def test_all_dimensions_are_drawn_up_to_six():
    labels = [f"{name} {length}" for name, length in zip("tcszyx", range(2, 8), strict=True)]
    text = text_of(draw(range(2, 8), (1,) * 6, "tcszyx"))
    assert all(label in text for label in labels)
    assert "35 ×" in text_of(draw((5, 7, *range(2, 8)), (1,) * 8))


def strong_lines(svg):
    """Return, for each face, how many shards meet on it."""
    return [path.count("M") for path in re.findall(r'<path d="([^"]*)" stroke="currentColor" stroke-width="1.6"', svg)]


def test_shards_are_outlined_and_cut_into_chunks():
    svg = draw((8, 12), (2, 2), None, (4, 4))
    assert strong_lines(svg) == [1 + 2]
    assert chunk_lines(svg) == [3 + 5 - 3]
    assert strong_lines(draw((8, 8, 8), (4, 4, 4), None, (4, 4, 8))) == [1, 1 + 1, 1]  # top, side, front


def test_chunks_that_cannot_be_distinguished_are_drawn_in_one_shard():
    svg = draw((400,), (10,), None, (100,))
    assert (strong_lines(svg), chunk_lines(svg)) == ([3], [9])
    svg = draw((4000,), (10,), None, (1000,))
    assert (strong_lines(svg), chunk_lines(svg)) == ([3], [0])


def lines_at(svg):
    """Return where the lines across a strip are, from 0 to 1."""
    right = float(re.search(r'd="M4.0 4.0L([\d.]+)', svg)[1])
    return [(float(x) - 4) / (right - 4) for x in re.findall(r"M([\d.]+) 4.0l0.0", svg)]


def test_lines_are_to_scale():
    assert lines_at(draw((100,), (30,))) == pytest.approx([0.3, 0.6, 0.9], abs=0.01)
    assert lines_at(draw((100,), ((10, 70, 20),))) == pytest.approx([0.1, 0.8], abs=0.01)


def test_sizes_of_members_are_reported_where_they_are_near(tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr")
    array = root.create_array("x", data=np.zeros(1 << 20, "u1") + np.arange(1 << 20, dtype="u1"))
    stored = array.nbytes_stored()
    assert f"1.0 MiB · {stored / 1024:.1f} KiB stored" in text_of(render(root))


def test_nothing_is_listed_remote_for_the_sake_of_sizes():
    values = {}
    omnizarr.create_group(values)["x"] = np.arange(8.0)
    text = text_of(render(omnizarr.open_group(FaultyStore(MemoryStore(values), concurrency=8), mode="r")))
    assert "64 B" in text
    assert "stored" not in text


def test_many_keys_are_not_counted():
    root = omnizarr.create_group({})
    root.create_array("many", data=np.arange(3000), chunks=1)
    root.create_array("other", data=np.arange(3))
    assert "stored" not in text_of(render(root))


def test_arrays_in_the_tree_unfold_to_their_chunks(root):
    tree = parsed(render(root))
    found = [each for each in tree.iter("details") if (each.find("summary/b") is not None)]
    (temp,) = [each for each in found if each.find("summary/b").text == "temp"]
    assert "open" not in temp.attrib
    assert "60×90×90" in "".join(temp.itertext())


def test_thumbnail_is_there_when_asked_for(root):
    assert "<image" not in render(root["shards"])
    with omnizarr.config.set({"display.thumbnails": True}):
        assert "<image" in render(root["shards"])
        assert parsed(render(root["names"])).tag == "div"


def test_array_that_cannot_be_read_has_no_thumbnail():
    values = {}
    omnizarr.create_array(values, data=np.arange(3))
    values["c/0"] = b"broken"
    with omnizarr.config.set({"display.thumbnails": True}):
        text = text_of(render(omnizarr.open(values)))
    assert "int64" in text
    assert "c/0" in text


@pytest.mark.parametrize("dtype", ["M8", "m8", "M8[D]"])
def test_fill_value_that_is_a_time_is_shown(dtype):
    value = np.array(5, "i8").view(dtype)
    array = omnizarr.create_array({}, shape=(3,), dtype=dtype, fill_value=value)
    assert {"M8": "5", "m8": "5 generic time units", "M8[D]": "1970-01-06"}[dtype] in text_of(render(array))
