"""Pixels in three protocols by which terminals show them.

All three paint over cells that exist already. Save the cursor before: each leaves it elsewhere.

Spec: https://sw.kovidgoyal.net/kitty/graphics-protocol/, https://iterm2.com/documentation-images.html, and for Sixel
the programmer reference of VT330 and VT340, chapter 14.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.pictures import paper
from omnizarr.pictures.colours import Pixels
from omnizarr.pictures.pixels import as_png

_ESCAPE: Final = "\x1b"
_END: Final = f"{_ESCAPE}\\"
# Kitty's own limit for the data of one command.
_MOST_DATA: Final = 4096
_MOST_COLOURS: Final = 255
_BAND: Final = 6


def kitty(pixels: Pixels, columns: int, rows: int) -> str:
    r"""Return the commands of kitty's protocol that show pixels, stretched over that many cells.

    >>> kitty(np.zeros((1, 1, 4), np.uint8), 8, 4)[:31]
    '\x1b_Gm=0,a=T,f=100,c=8,r=4,C=1,q='
    """
    data = base64.b64encode(as_png(pixels)).decode()
    parts = [data[start : start + _MOST_DATA] for start in range(0, len(data), _MOST_DATA)]
    # C=1: the cursor stays. q=2: the terminal does not answer.
    first = f",a=T,f=100,c={columns},r={rows},C=1,q=2"
    return "".join(
        f"{_ESCAPE}_Gm={int(number < len(parts) - 1)}{'' if number else first};{part}{_END}"
        for number, part in enumerate(parts)
    )


def iterm(pixels: Pixels, columns: int, rows: int) -> str:
    r"""Return the command of iTerm2 that shows pixels, stretched over that many cells.

    >>> iterm(np.zeros((1, 1, 4), np.uint8), 8, 4)[:36]
    '\x1b]1337;File=inline=1;size=68;width=8'
    """
    file = as_png(pixels)
    what = f"inline=1;size={len(file)};width={columns};height={rows};preserveAspectRatio=0"
    return f"{_ESCAPE}]1337;File={what}:{base64.b64encode(file).decode()}\a"


def sixel(pixels: Pixels) -> str:
    r"""Return the command of Sixel that shows pixels; those with an alpha below one half are left unchanged.

    >>> sixel(np.full((2, 3, 4), 255, np.uint8))
    '\x1bP0;1;0q"1;1;3;2#0;2;100;100;100#0BBB\x1b\\'
    """
    numbers, colours = paper.palette_of(pixels, _MOST_COLOURS)
    shown = np.where(pixels[..., 3] >= 128, numbers.astype(np.int16), -1)
    height, width = shown.shape
    used = np.unique(shown[shown >= 0])
    # Colours are in per cent.
    registers = "".join(
        f"#{number};2;" + ";".join(str(round(int(channel) * 100 / 255)) for channel in colours[number])
        for number in used
    )
    bands = "-".join(_band(shown[top : top + _BAND]) for top in range(0, height, _BAND))
    # 1: pixels that are not painted do not change.
    return f'{_ESCAPE}P0;1;0q"1;1;{width};{height}{registers}{bands}{_END}'


def _band(rows: NDArray[np.int16]) -> str:
    """Return six rows of pixels: one colour after another, each from the left."""
    bits = (1 << np.arange(len(rows)))[:, None]
    return "$".join(
        f"#{number}{''.join(_runs(((rows == number) * bits).sum(axis=0)))}" for number in np.unique(rows[rows >= 0])
    )


def _runs(sixels: NDArray[np.intp]) -> Iterator[str]:
    """Yield the characters of a row, the same ones behind a count; those at the end that paint nothing are left out."""
    ends = np.flatnonzero(sixels)
    row = sixels[: ends[-1] + 1]
    edges = [0, *(np.flatnonzero(np.diff(row)) + 1).tolist(), len(row)]
    for start, stop in pairwise(edges):
        character = chr(63 + int(row[start]))
        yield f"!{stop - start}{character}" if stop - start > 3 else character * (stop - start)
