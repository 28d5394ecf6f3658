"""Small pictures of arrays, for the table of a group: of few chunks, so that they are soon there."""

from __future__ import annotations

from typing import Final, NamedTuple

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
_INK: Final = (11, 130, 150)
"""Of lines: it is seen on light and on dark paper."""
_ALL, _PART = 255, 110
"""How opaque the ink is: of a line of which only a part was read, it is lighter."""


class Small(NamedTuple):
    """A small picture.

    Attributes
    ----------
    data : bytes
        A file in PNG.
    note : str
        What it shows of a long line, if that is not all.
    """

    data: bytes
    note: str = ""


def picture_of(node: Array | Group) -> Small | None:
    r"""Return a picture of an array, or of the image that a group is; None if it has no picture, or too costly a one.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> picture_of(omnizarr.create_array({}, data=np.eye(8))).data[:4]
    b'\x89PNG'
    >>> picture_of(omnizarr.create_array({}, data=np.array(["a", "b"])))
    """
    array = showing.image_array(node) if isinstance(node, Group) else node
    if array is None or not array.ndim:
        return None
    most_chunks = _MOST_CHUNKS_FAR if array.store.features.concurrency > 1 else _MOST_CHUNKS
    found = showing.small(array, SIZE, most_chunks=most_chunks, most_bytes=_MOST_BYTES, largest=_LARGEST)
    if found is None:
        return None
    content, note = found
    if isinstance(content, Image):
        return Small(as_png(content.pixels))
    return Small(_line(content, _PART if note else _ALL), note) if isinstance(content, Chart) else None


def _line(chart: Chart, opacity: int) -> bytes:
    """Draw a line: in each column, from the smallest to the largest of the values in it, and from the value before."""
    width, height = SIZE
    pixels = np.zeros((height, width, 4), np.uint8)
    levels = chart.levels.clip(0, 1)
    last = max(len(levels) - 1, 1)
    # Where values are, and where columns are between them.
    at = np.union1d(np.arange(len(levels)), np.linspace(0, last, width))
    rows = (1 - np.interp(at, np.arange(len(levels)), levels)) * (height - 3) + 1
    columns = (at / last * (width - 1)).round().astype(np.intp)
    before = np.nan
    for column, row in zip(columns.tolist(), rows.tolist(), strict=True):
        if not np.isnan(row):
            ends = sorted((row, row if np.isnan(before) else before))
            # Two pixels wide: the page shows it smaller, and leaves out less than every second one.
            pixels[int(ends[0]) : int(ends[1]) + 2, column : column + 2] = (*_INK, opacity)
        before = row
    return as_png(pixels)
