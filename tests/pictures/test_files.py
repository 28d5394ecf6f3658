"""Pictures as files, read by Pillow and as XML."""

import base64
import io
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import PIL.Image
import pytest

from omnizarr.errors import MissingDependencyError
from omnizarr.pictures.axes import Axis
from omnizarr.pictures.contents import Page, Style, Subject, content_of
from omnizarr.pictures.picture import Picture
from omnizarr.pictures.pixels import as_png

EVIL = '<script>alert(1)</script>&"'
RNG = np.random.default_rng(0)


def opened(data):
    return np.asarray(PIL.Image.open(io.BytesIO(data)))


def axes(*lengths, name="x"):
    return tuple(Axis(name, "m", np.arange(length)) for length in lengths)


IMAGE = content_of(Subject(np.arange(12.0).reshape(3, 4), axes(3, 4, name=EVIL), EVIL), Style("viridis"))
CHART = content_of(Subject(np.array([1, 3, np.nan, 2, np.nan, 7.0]), axes(6), EVIL))
TABLE = content_of(Subject(np.array(["a", EVIL]), axes(2)))
PAGES = [Page(EVIL, content, (EVIL,)) for content in (IMAGE, CHART, TABLE)]


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (200, 1), (64, 65)])
def test_png_holds_the_pixels(shape):
    pixels = RNG.integers(0, 256, (*shape, 4), np.uint8)
    assert (opened(as_png(pixels)) == pixels).all()


@pytest.mark.parametrize("page", PAGES)
def test_svg_is_well_formed_and_escaped(page, tmp_path):
    path = tmp_path / "a.svg"
    Picture(page).save(path)
    root = ET.fromstring(path.read_text("utf-8"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert EVIL in "".join(root.itertext())
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_svg_holds_the_pixels():
    html = Picture(PAGES[0])._repr_html_()
    data = base64.b64decode(re.search(r'href="data:image/png;base64,([^"]*)"', html)[1])
    assert (opened(data) == IMAGE.pixels).all()


@pytest.mark.parametrize("page", PAGES)
def test_html_is_escaped_and_without_scripts(page, tmp_path):
    tags = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, _: tags.append(tag)
    Picture(page).save(tmp_path / "a.html")
    parser.feed((tmp_path / "a.html").read_text("utf-8"))
    assert "script" not in tags
    assert {"svg"} <= set(tags) or {"table"} <= set(tags)


@pytest.mark.parametrize("page", PAGES)
def test_png_of_a_page_has_text_and_paper(page, tmp_path):
    path = tmp_path / "a.png"
    Picture(page).save(path)
    pixels = opened(path.read_bytes())
    assert pixels.shape[2] == 3
    assert (pixels[0] == 255).all()
    assert (pixels < 100).all(axis=-1).any()


def test_png_of_an_image_shows_its_colours():
    pixels = opened(Picture(PAGES[0], (400, 300))._repr_png_()).reshape(-1, 3)
    found = {tuple(pixel) for pixel in pixels.tolist()}
    assert {tuple(pixel[:3]) for pixel in IMAGE.pixels.reshape(-1, 4).tolist()} <= found


def test_line_is_broken_where_there_is_no_value():
    svg = Picture(PAGES[1])._repr_html_()
    lines = [line for line in re.findall(r"<polyline ([^/]*)/>", svg) if "#4a8fc2" in line]
    assert len(lines) == 3


def test_unknown_format_names_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"a\.bmp.*\.png"):
        Picture(PAGES[0]).save(tmp_path / "a.bmp")


def test_without_pillow_only_png_is_missing(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name == "PIL" or name.startswith("PIL.")]:
        monkeypatch.setitem(sys.modules, name, None)
    picture = Picture(PAGES[0])
    assert "<svg" in picture._repr_html_()
    picture.save(tmp_path / "a.svg")
    with pytest.raises(MissingDependencyError, match=r"omnizarr\[show\]"):
        picture.save(tmp_path / "a.png")


def test_repr_is_text_without_colours():
    text = repr(Picture(PAGES[0]))
    assert "\x1b" not in text
    assert EVIL in text
