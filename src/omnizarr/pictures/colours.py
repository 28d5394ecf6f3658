"""Colour maps, as small tables between which colours are interpolated.

viridis, magma and cividis come from Matplotlib (CC0); coolwarm is Kenneth Moreland's, for values on both sides of a
middle. A name that ends in ``_r`` is the map in reverse.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
"""Colours with the channels red, green and blue (and alpha) along the last dimension."""

_TABLES: Final = {
    "viridis": (
        "440154 470d60 48186a 482374 472d7b 453781 424086 3e4989 3b528b 375b8d 33638d "
        "2f6b8e 2c728e 297a8e 26828e 23898e 21918c 1f978b 1f9f88 21a685 27ad81 31b57b "
        "3dbc74 4cc26c 5cc863 6ece58 81d34d 95d840 aadc32 c0df25 d5e21a eae51a fde725"
    ),
    "magma": (
        "000004 030312 0a0822 130d34 1d1147 29115a 36106b 440f76 51127c 5d177f 6a1c81 "
        "762181 832681 902a81 9c2e7f aa337d b73779 c23b75 cf4070 db476a e55064 ee5b5e "
        "f4695c f9785d fb8761 fd9668 fea571 feb47b fec287 fed194 fde0a1 fceeb0 fcfdbf"
    ),
    "cividis": (
        "00224e 00285b 002e6a 053371 1a386f 273e6e 32436d 3b496c 434e6c 4b546c 535a6d "
        "5a5f6e 61656f 686a71 6f7073 767676 7d7c78 838179 8b8778 928d78 9a9376 a29975 "
        "aaa073 b3a670 bbad6d c3b369 ccba64 d4c15f ddc858 e6d051 efd748 f8df3c fee838"
    ),
    "coolwarm": (
        "3b4cc0 445acc 4e68d8 5875e1 6282ea 6c8ff1 779af7 82a6fb 8db0fe 98b9ff a3c2fe "
        "aec9fc b9d0f9 c3d5f4 ccd9ed d5dbe5 dddcdc e4d9d2 ebd3c6 f1cdba f4c5ad f7bca1 "
        "f7b194 f7a688 f49a7b f18d6f ec7f63 e57058 de614d d55042 cb3e38 c0282f b40426"
    ),
    "gray": "000000 ffffff",
}
NAMES: Final = tuple(_TABLES)
"""The colour maps. Each is also available in reverse, with ``_r`` appended to its name."""
_STEPS: Final = 256
_is_colour = re.compile("[0-9A-Fa-f]{6}").fullmatch

# The colour of NaN. It must not look like any colour of the map.
_GREY: Final = (136, 136, 136)
_RED: Final = (205, 60, 60)
_OLIVE: Final = (110, 140, 60)
_OF_NOTHING: Final = {"gray": _RED, "cividis": _RED, "coolwarm": _OLIVE}


@cache
def table(name: str) -> Pixels:
    """Return the 256 colours of a map. Raises ValueError for an unknown name.

    >>> table("gray")[[0, 255]].tolist(), table("gray_r")[0].tolist()
    ([[0, 0, 0], [255, 255, 255]], [255, 255, 255])
    """
    known = _TABLES.get(name.removesuffix("_r"))
    if known is None:
        raise ValueError(f"no colour map {name!r}: expected one of {', '.join(NAMES)}, or one of these with _r")
    anchors = np.array([list(bytes.fromhex(colour)) for colour in known.split()], np.float64)
    # Matplotlib's tables have been cut at whole places.
    places = np.linspace(0, _STEPS - 1, len(anchors)).round()
    steps = np.arange(_STEPS)
    colours = np.stack([np.interp(steps, places, channel) for channel in anchors.T], axis=-1)
    colours = colours.round().astype(np.uint8)
    colours = colours[::-1] if name.endswith("_r") else colours
    colours.flags.writeable = False
    return colours


def of_text(text: str) -> NDArray[np.uint8]:
    """Return red, green and blue of six hexadecimal digits; white for anything else.

    >>> of_text("00FF80").tolist(), of_text("blue").tolist()
    ([0, 255, 128], [255, 255, 255])
    """
    return np.frombuffer(bytes.fromhex(text if _is_colour(text) else "ffffff"), np.uint8)


def of_nothing(name: str) -> tuple[int, int, int]:
    """Return the colour of what has no value in a picture with this map."""
    return _OF_NOTHING.get(name.removesuffix("_r"), _GREY)


def mapped(levels: NDArray[Any], name: str) -> Pixels:
    """Return the colours of numbers from 0 to 1, opaque; NaN has the colour `of_nothing`.

    >>> mapped(np.array([0.0, 1.0, np.nan]), "gray").tolist()
    [[0, 0, 0, 255], [255, 255, 255, 255], [205, 60, 60, 255]]
    """
    known = np.isfinite(levels)
    steps = (np.where(known, levels, 0).clip(0, 1) * (_STEPS - 1)).round().astype(np.intp)
    pixels = np.full((*levels.shape, 4), 255, np.uint8)
    pixels[..., :3] = np.where(known[..., None], table(name)[steps], np.array(of_nothing(name), np.uint8))
    return pixels
