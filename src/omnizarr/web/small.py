"""Small pictures of arrays, for the table of a group: of few chunks, so that they are soon there."""

from __future__ import annotations

from typing import Final

import numpy as np

from omnizarr.nodes import showing
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.pictures.contents import Chart, Image
from omnizarr.pictures.pixels import as_png

SIZE: Final = (96, 64)
"""Largest width and height, in pixels."""
_MOST_CHUNKS: Final = 2048
_MOST_CHUNKS_FAR: Final = 64
"""Of a remote store, where each takes a request."""
_MOST_BYTES: Final = 2**26
"""Of the decoded chunks that are read for a picture: of one chunk at least, up to `_LARGEST`."""
_LARGEST: Final = 2**28
_INK: Final = (11, 130, 150, 255)
"""Of lines: it is seen on light and on dark paper."""


def picture_of(node: Array | Group) -> bytes | None:
    r"""Return an array, or the image that a group is, as a file in PNG; None if it has no picture, or too costly a one.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> picture_of(omnizarr.create_array({}, data=np.eye(8)))[:4]
    b'\x89PNG'
    >>> picture_of(omnizarr.create_array({}, data=np.array(["a", "b"])))
    """
    array = showing.image_array(node) if isinstance(node, Group) else node
    if array is None or not array.ndim:
        return None
    most_chunks = _MOST_CHUNKS_FAR if array.store.features.concurrency > 1 else _MOST_CHUNKS
    content = showing.small(array, SIZE, most_chunks=most_chunks, most_bytes=_MOST_BYTES, largest=_LARGEST)
    if isinstance(content, Image):
        return as_png(content.pixels)
    return _line(content) if isinstance(content, Chart) else None


def _line(chart: Chart) -> bytes:
    """Draw a line: in each column, from the value before to its own."""
    width, height = SIZE
    pixels = np.zeros((height, width, 4), np.uint8)
    levels = chart.levels.clip(0, 1)
    levels = np.interp(np.linspace(0, len(levels) - 1, width), np.arange(len(levels)), levels)
    before = np.nan
    for column, row in enumerate((1 - levels) * (height - 3) + 1):
        if not np.isnan(row):
            ends = sorted((row, row if np.isnan(before) else before))
            pixels[int(ends[0]) : int(ends[1]) + 2, column] = _INK
        before = row
    return as_png(pixels)
