"""Pictures of characters: half blocks in colours, shades without, and lines of braille dots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.pictures.colours import Pixels
from omnizarr.pictures.contents import Chart, Image
from omnizarr.pictures.pixels import sampled, stretched

_RESET: Final = "\x1b[0m"
_SHADES: Final = ".:-=+*#%@"
_NAN: Final = "?"
_MISSING: Final = " "
_BRAILLE: Final = 0x2800
# The bits of the dots of a cell, row by row (Unicode, block "Braille Patterns").
_DOTS: Final = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
DOT_ROWS, DOT_COLUMNS = _DOTS.shape
"""Dots in a cell."""
# The 256 colours of xterm: 16 of the user's, a cube, and shades of gray.
_CUBE: Final = np.array([0, 95, 135, 175, 215, 255])
_GRAYS: Final = np.arange(8, 248, 10)


def half_blocks(pixels: Pixels, columns: int, rows: int, *, is_true_color: bool) -> list[str]:
    r"""Return lines of cells, each with two pixels, one above the other; where alpha is low, the background shows.

    >>> half_blocks(np.full((2, 1, 4), 255, np.uint8), 1, 1, is_true_color=False)
    ['\x1b[38;5;231;48;5;231m▀\x1b[0m']
    """
    painted = stretched(pixels, columns, 2 * rows)
    shown = painted[..., 3] >= 128
    colours = (
        [[f"2;{red};{green};{blue}" for red, green, blue in row] for row in painted[..., :3].tolist()]
        if is_true_color
        else [[f"5;{number}" for number in row] for row in numbers_of_256(painted).tolist()]
    )
    return [_half_line(colours[top], colours[top + 1], shown[top], shown[top + 1]) for top in range(0, 2 * rows, 2)]


def _half_line(
    upper: Sequence[str], lower: Sequence[str], is_upper: NDArray[np.bool_], is_lower: NDArray[np.bool_]
) -> str:
    line, before = [], ""
    for above, below, has_above, has_below in zip(upper, lower, is_upper, is_lower, strict=True):
        if has_above and has_below:
            style, sign = f"38;{above};48;{below}", "▀"
        elif has_above or has_below:
            style, sign = f"0;38;{above if has_above else below}", "▀" if has_above else "▄"
        else:
            style, sign = "0", " "
        line.append(sign if style == before else f"\x1b[{style}m{sign}")
        before = style
    return "".join(line) + _RESET


def numbers_of_256(pixels: Pixels) -> NDArray[np.intp]:
    """Return, for each pixel, the number of the most similar of xterm's 256 colours.

    >>> numbers_of_256(np.array([[[255, 0, 0, 255], [8, 8, 8, 255]]], np.uint8)).tolist()
    [[196, 232]]
    """
    channels = pixels[..., :3].astype(np.intp)
    steps = np.abs(channels[..., None] - _CUBE).argmin(axis=-1)
    gray = np.abs(channels.mean(axis=-1)[..., None] - _GRAYS).argmin(axis=-1)
    to_cube = ((channels - _CUBE[steps]) ** 2).sum(axis=-1)
    to_gray = ((channels - _GRAYS[gray][..., None]) ** 2).sum(axis=-1)
    in_cube: NDArray[np.intp] = 16 + (steps * np.array([36, 6, 1])).sum(axis=-1)
    return np.where(to_gray < to_cube, 232 + gray, in_cube)


def shades(image: Image, columns: int, rows: int) -> list[str]:
    """Return lines of cells in ASCII, without colours. Smaller values are darker.

    "?" is NaN; missing values are blank.
    """
    chosen = np.ix_(sampled(image.levels.shape[0], rows), sampled(image.levels.shape[1], columns))
    levels, is_shown = image.levels[chosen], image.pixels[..., 3][chosen] >= 128
    steps = (np.nan_to_num(levels) * len(_SHADES)).astype(np.intp).clip(0, len(_SHADES) - 1)
    signs = np.where(np.isnan(levels), _NAN, np.array(list(_SHADES))[steps])
    return ["".join(row) for row in np.where(is_shown, signs, _MISSING)]


def scale_of_shades() -> str:
    """Return the shades from the smallest value to the largest."""
    return _SHADES


def braille(chart: Chart, columns: int, rows: int) -> list[str]:
    """Return lines of cells of 2 by 4 dots, on which the values are a line."""
    dots = _dots(chart, columns * DOT_COLUMNS, rows * DOT_ROWS)
    cells = dots.reshape(rows, DOT_ROWS, columns, DOT_COLUMNS)
    return ["".join(map(chr, row)) for row in _BRAILLE + np.einsum("rych,yh->rc", cells, _DOTS)]


def stars(chart: Chart, columns: int, rows: int) -> list[str]:
    """Return lines of cells in ASCII, on which the values are a line."""
    return ["".join(row) for row in np.where(_dots(chart, columns, rows), "*", " ")]


def _dots(chart: Chart, width: int, height: int) -> NDArray[np.bool_]:
    """Return where the line is: in each column from its own value half the way to those beside it."""
    dots = np.zeros((height, width), np.bool_)
    levels = _along(chart.levels, width)
    heights = (1 - levels) * (height - 1)
    heights = np.where(np.isinf(heights), heights.clip(-1, height), heights)  # beyond the edge
    for x in np.flatnonzero(~np.isnan(heights)):
        around = heights[max(0, x - 1) : x + 2]
        here = heights[x]
        middles = [(each + here) / 2 for each in around if not np.isnan(each)]
        top, bottom = round(min(middles)), round(max(middles))
        if bottom >= 0 and top < height:
            dots[max(top, 0) : bottom + 1, x] = True
    return dots


def _along(levels: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the level at each column. Few values are interpolated linearly."""
    if len(levels) == 1:
        return np.repeat(levels, width)
    places = np.linspace(0, len(levels) - 1, width)
    left = np.floor(places).astype(np.intp).clip(0, len(levels) - 2)
    part = places - left
    # A line ends at its last value before a NaN.
    with np.errstate(invalid="ignore"):  # an infinite level beside a column that is exactly at another one
        between = levels[left] * (1 - part) + levels[left + 1] * part
    nearest = levels[np.round(places).astype(np.intp)]
    return np.where(np.isnan(between), nearest, between)
