"""HTML of arrays and groups: well-formed, escaped, small, and without a read."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import omnizarr
from omnizarr.nodes.info_html import draw, render
from omnizarr.stores import MemoryStore

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
    class Documents(MemoryStore):
        def get(self, key, span=None):
            assert key.endswith("zarr.json")
            return super().get(key, span)

    values = {}
    omnizarr.create_array(values, data=np.arange(100))
    render(omnizarr.open(Documents(values), mode="r"))


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
        ((7, 20, 30, 40), (1, 10, 10, 10), [3 + 1, 1 + 2, 3 + 2]),
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


def test_more_than_three_dimensions_say_how_many_boxes():
    assert "6 of these" in draw((2, 3, 4, 5, 6), (1, 1, 1, 1, 1))
