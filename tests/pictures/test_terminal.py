"""Pictures in terminals: what characters and protocols say is what the picture holds, by decoders of their own."""

import base64
import io
import re
import shutil
import subprocess

import numpy as np
import PIL.Image
import pytest

from omnizarr.pictures.axes import Axis
from omnizarr.pictures.contents import Page, Style, Subject, content_of
from omnizarr.pictures.terminal import Terminal, cells, protocols, render

RNG = np.random.default_rng(0)
NOISE = RNG.integers(0, 256, (40, 50, 4), np.uint8) | np.array([0, 0, 0, 255], np.uint8)
PALE = np.repeat(np.repeat(NOISE[:4, :5], 9, 0), 9, 1)


def opened(data):
    return np.asarray(PIL.Image.open(io.BytesIO(data)))


# -- kitty ------------------------------------------------------------------------


def commands_of_kitty(text):
    """Return keys and data of each command, by the grammar of the specification."""
    found = re.findall(r"\x1b_G([^;\x1b]*);([A-Za-z0-9+/=]*)\x1b\\", text)
    assert "".join(f"\x1b_G{keys};{data}\x1b\\" for keys, data in found) == text
    return [(dict(key.split("=") for key in keys.split(",")), data) for keys, data in found]


def test_kitty_gets_a_png_in_chunks():
    commands = commands_of_kitty(protocols.kitty(NOISE, 25, 10))
    assert len(commands) > 1
    assert [keys["m"] for keys, _ in commands] == ["1"] * (len(commands) - 1) + ["0"]
    first = commands[0][0]
    assert {name: first[name] for name in "afcr"} == {"a": "T", "f": "100", "c": "25", "r": "10"}
    assert all(set(keys) <= {"m", "q"} for keys, _ in commands[1:])
    assert all(len(data) <= 4096 and len(data) % 4 == 0 for _, data in commands)
    assert (opened(base64.b64decode("".join(data for _, data in commands))) == NOISE).all()


# -- iTerm2 -----------------------------------------------------------------------


def test_iterm_gets_a_png_of_the_size_that_is_reported():
    found = re.fullmatch(r"\x1b\]1337;File=([^:]*):([A-Za-z0-9+/=]*)\x07", protocols.iterm(NOISE, 25, 10))
    keys = dict(key.split("=") for key in found[1].split(";"))
    data = base64.b64decode(found[2])
    assert keys == {"inline": "1", "size": str(len(data)), "width": "25", "height": "10", "preserveAspectRatio": "0"}
    assert (opened(data) == NOISE).all()


# -- Sixel -------------------------------------------------------------------------


def sixels(text):
    """Return the pixels that a command of Sixel paints, with alpha 0 where it paints none (VT340, chapter 14)."""
    body = re.fullmatch(r"\x1bP[\d;]*q(.*)\x1b\\", text)[1]
    width, height = map(int, re.match(r'"\d+;\d+;(\d+);(\d+)', body).groups())
    pixels = np.zeros((-(-height // 6) * 6, width, 4), np.uint8)
    registers, colour, x, top = {}, None, 0, 0
    for define, use, count, sign, move in re.findall(
        r"(?:#(\d+;2;\d+;\d+;\d+)|#(\d+)|(?:!(\d+))?([?-~])|([$-]))", body[body.index("#") :]
    ):
        if define:
            number, _, *channels = map(int, define.split(";"))
            registers[number] = [round(channel * 255 / 100) for channel in channels]
        elif use:
            colour = registers[int(use)]
        elif move:
            x, top = 0, top + 6 * (move == "-")
        else:
            for bit in range(6):
                if (ord(sign) - 63) >> bit & 1:
                    pixels[top + bit, x : x + int(count or 1)] = [*colour, 255]
            x += int(count or 1)
            assert x <= width
    assert not pixels[height:].any()
    return pixels[:height]


@pytest.mark.parametrize("height", [1, 5, 6, 7, 12, 36])
def test_sixel_holds_the_pixels(height):
    found = sixels(protocols.sixel(PALE[:height]))
    assert np.abs(found.astype(int) - PALE[:height]).max() <= 2  # colours are in per cent


def test_sixel_leaves_out_what_is_transparent():
    pixels = PALE.copy()
    pixels[3:20, 7:30, 3] = 0
    assert (sixels(protocols.sixel(pixels))[..., 3] == pixels[..., 3]).all()


def test_sixel_of_nothing_paints_nothing():
    assert protocols.sixel(np.zeros((6, 6, 4), np.uint8)) == '\x1bP0;1;0q"1;1;6;6\x1b\\'


def test_sixel_of_many_colours_is_near_to_them():
    ramp = np.full((64, 64, 4), 255, np.uint8)
    ramp[..., 0], ramp[..., 1] = np.meshgrid(np.arange(0, 256, 4), np.arange(0, 256, 4))
    assert np.abs(sixels(protocols.sixel(ramp)).astype(int) - ramp).mean() < 6


@pytest.mark.skipif(shutil.which("sixel2png") is None, reason="libsixel is not here")
def test_sixel_is_read_by_libsixel():
    done = subprocess.run(["sixel2png"], input=protocols.sixel(PALE).encode(), capture_output=True, check=True)
    theirs = np.asarray(PIL.Image.open(io.BytesIO(done.stdout)).convert("RGB"))
    assert theirs.shape[:2] == PALE.shape[:2]
    assert np.abs(theirs.astype(int) - PALE[..., :3]).max() <= 2


# -- half blocks ---------------------------------------------------------------------


def painted(lines, colour_of):
    """Return the pixels, two to a cell, that lines of half blocks paint."""
    rows = []
    for line in lines:
        upper, lower, above, below = [], [], None, None
        for codes, sign in re.findall(r"\x1b\[([\d;]*)m|([▀▄ ])", line):
            if sign:
                upper.append(below if sign == "█" else above if sign == "▀" else None)
                lower.append(above if sign == "▄" else below if sign == "▀" else None)
                continue
            if codes.split(";")[0] == "0":
                above = below = None
            for layer, colour in re.findall(r"(38|48);(2;\d+;\d+;\d+|5;\d+)", codes):
                if layer == "38":
                    above = colour_of(colour)
                else:
                    below = colour_of(colour)
        rows += [upper, lower]
    return [[(0, 0, 0, 0) if pixel is None else (*pixel, 255) for pixel in row] for row in rows]


def true_color(text):
    return tuple(map(int, text.split(";")[1:]))


def test_half_blocks_have_two_pixels_a_cell():
    lines = cells.half_blocks(NOISE, 50, 20, is_true_color=True)
    assert (np.array(painted(lines, true_color)) == NOISE).all()


def test_half_blocks_show_the_background_where_nothing_is():
    pixels = NOISE.copy()
    pixels[RNG.random((40, 50)) < 0.5] = 0
    assert (np.array(painted(cells.half_blocks(pixels, 50, 20, is_true_color=True), true_color)) == pixels).all()


def test_colours_of_256_are_the_nearest():
    def xterm(number):
        if number >= 232:
            return (8 + 10 * (number - 232),) * 3
        steps = (0, 95, 135, 175, 215, 255)
        return tuple(steps[(number - 16) // power % 6] for power in (36, 6, 1))

    table = np.array([xterm(number) for number in range(16, 256)])
    numbers = cells.numbers_of_256(NOISE).reshape(-1)
    theirs = ((NOISE[..., None, :3].reshape(-1, 1, 3).astype(int) - table) ** 2).sum(-1).min(axis=1)
    ours = ((NOISE[..., :3].reshape(-1, 3).astype(int) - table[numbers - 16]) ** 2).sum(-1)
    assert (ours <= theirs + 100).all()


# -- text ----------------------------------------------------------------------------


def page(values, names=("y", "x"), **more):
    values = np.asarray(values)
    axes = tuple(Axis(name, "", np.arange(length)) for name, length in zip(names, values.shape, strict=False))
    return Page("title", content_of(Subject(values, axes, **more), Style(percentiles=(0, 100))))


def test_shades_rise_with_values():
    image = page([[0, 1, 2, np.nan]], missing=np.array([[False, False, True, False]])).content
    assert cells.shades(image, 4, 1) == [".@ ?"]


def dots(lines):
    """Return where the dots of braille characters are (Unicode, "Braille Patterns")."""
    rows = []
    for line in lines:
        bits = np.array([ord(character) - 0x2800 for character in line])
        for left, right in ((0, 3), (1, 4), (2, 5), (6, 7)):
            rows.append(np.stack([bits >> left & 1, bits >> right & 1], axis=-1).reshape(-1))
    return np.array(rows, bool)


def test_braille_draws_the_line():
    values = RNG.random(60)
    chart = page(values, ("x",)).content
    found = dots(cells.braille(chart, 30, 10))
    assert found.shape == (40, 60)
    assert found.any(axis=0).all()
    height = ((1 - chart.levels) * 39).round().astype(int)
    assert all(found[y, x] for x, y in enumerate(height))


def test_braille_has_a_gap_where_there_is_no_value():
    values = np.r_[np.ones(20), np.full(20, np.nan), np.ones(20)]
    found = dots(cells.braille(page(values, ("x",)).content, 30, 4)).any(axis=0)
    assert found[:19].all()
    assert not found[21:39].any()
    assert found[41:].all()


@pytest.mark.parametrize("count", [1, 2, 3, 1000])
def test_a_line_of_any_length_is_as_wide_as_the_picture(count):
    assert dots(cells.braille(page(np.arange(count), ("x",)).content, 20, 5)).any(axis=0).all()


# -- the layout ------------------------------------------------------------------------

PAGES = {
    "image": page(np.arange(600.0).reshape(20, 30)),
    "tall": page(np.arange(600.0).reshape(200, 3)),
    "one": page(np.zeros((1, 1))),
    "photograph": page(NOISE),
    "line": page(np.arange(100.0), ("x",)),
    "text": page(np.array([["a" * 60] * 9] * 3)),
}


def plain(text):
    """Return a text as it stands in the terminal, without what commands it."""
    text = re.sub(r"\x1b7.*?\x1b8", "", text, flags=re.DOTALL)
    return re.sub(r"\x1b\[[\d;]*m", "", text)


@pytest.mark.parametrize("protocol", ["text", "blocks", "kitty", "iterm", "sixel"])
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (20, 10), (200, 60), (1, 1)])
def test_a_page_fits_its_terminal(name, protocol, columns, rows):
    text = plain(render(PAGES[name], Terminal(protocol, columns, rows)))
    lines = text.splitlines()
    assert lines[0] == "title"
    if columns >= 20:
        assert max(map(len, lines)) <= columns
    if rows >= 24:
        assert len(lines) <= rows


@pytest.mark.parametrize("protocol", ["kitty", "iterm", "sixel"])
def test_pixels_are_painted_over_the_blanks_and_the_cursor_comes_back(protocol):
    text = render(PAGES["image"], Terminal(protocol, 80, 24, cell=(10, 20)))
    before, up, left, paint = re.search(r"(.*)\x1b7\x1b\[(\d+)A\x1b\[(\d+)G(.*)\x1b8", text, re.DOTALL).groups()
    lines = plain(before).splitlines()
    top = len(lines) - 1 - int(up)
    blanks = lines[top:-1]
    assert all(line.rstrip("│┤0123456789 ") == "" for line in blanks)
    assert {len(line) for line in blanks} == {int(left) - 1}
    assert "x" not in lines[top - 1]
    assert paint


def test_axes_stand_where_their_elements_are():
    text = render(page(np.eye(10)), Terminal("text", 26, 30))
    lines = text.splitlines()
    for number, line in enumerate(lines):
        found = re.match(r" *(\d+) ┤(.*)", line)
        if found:
            assert "@" in found[2], number
            assert round(found[2].index("@") / (len(found[2]) / 10)) == int(found[1])


@pytest.mark.parametrize("name", PAGES)
def test_without_unicode_all_is_ascii(name):
    assert render(PAGES[name], Terminal("text", 60, 20, is_unicode=False)).isascii()


def test_text_has_no_escapes():
    for each in PAGES.values():
        assert "\x1b" not in render(each, Terminal("text"))
