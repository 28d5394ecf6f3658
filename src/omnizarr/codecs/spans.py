"""Which bytes to fetch: runs that are close together become one span.

A request costs about as much as reading ten thousand more bytes, both on disks and in networks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

GAP: Final = 64 * 1024
"""Runs of bytes are fetched together if at most this many unneeded bytes are between them."""
LARGEST: Final = 16 * 1024 * 1024
"""A span grows by further runs up to this size. Beyond it, two concurrent requests are better."""


def coalesce(ranges: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """Return spans that cover all `ranges`, in ascending order, and for each range the number of its span.

    >>> coalesce([(200_000, 200_010), (0, 10), (50, 60)])
    ([(0, 60), (200000, 200010)], [1, 0, 0])
    """
    spans: list[tuple[int, int]] = []
    places = [0] * len(ranges)
    start = stop = 0
    for number in sorted(range(len(ranges)), key=ranges.__getitem__):
        low, high = ranges[number]
        if not spans or low > stop + GAP or (high > stop and high - start > LARGEST):
            spans.append((low, high))
            start, stop = low, high
        elif high > stop:
            stop = high
            spans[-1] = (start, stop)
        places[number] = len(spans) - 1
    return spans, places


def of_selection(selection: Sequence[Any], shape: Sequence[int], item_size: int) -> list[tuple[int, int]]:
    """Return the coalesced spans of a C-contiguous array's memory that contain ``array[selection]``.

    `selection` is the `chunk_selection` of a piece: slices with positive steps, and integer arrays that
    broadcast.
    """
    run, base = item_size, 0
    stride = item_size
    axis = len(shape) - 1
    while axis >= 0 and isinstance(selection[axis], slice):
        places = range(shape[axis])[selection[axis]]
        if not places:
            return []
        if len(places) > 1 and places.step * stride - run > GAP:
            break
        run += (places[-1] - places[0]) * stride
        base += places[0] * stride
        stride *= shape[axis]
        axis -= 1
    starts = _offsets(selection[: axis + 1], shape, stride) + base
    if not starts.size:
        return []
    breaks = np.flatnonzero(np.diff(starts) - run > GAP)
    firsts = starts[np.concatenate([[0], breaks + 1])]
    lasts = starts[np.concatenate([breaks, [starts.size - 1]])] + run
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _offsets(selection: Sequence[Any], shape: Sequence[int], stride: int) -> Any:
    """Return the sorted start of each selected item of the outer axes. `stride` is that of the innermost of them."""
    by_slices = np.zeros(1, np.int64)
    by_arrays: Any = np.zeros(1, np.int64)
    for axis in reversed(range(len(selection))):
        part = selection[axis]
        if isinstance(part, slice):
            places = np.arange(*part.indices(shape[axis])) * stride
            by_slices = np.add.outer(places, by_slices).reshape(-1)
        else:
            by_arrays = by_arrays + np.asarray(part) * stride
        stride *= shape[axis]
    return np.unique(np.add.outer(by_slices, by_arrays))


def size_of(spans: Sequence[tuple[int, int]]) -> int:
    """Return the number of bytes in spans that do not overlap."""
    return sum(stop - start for start, stop in spans)
