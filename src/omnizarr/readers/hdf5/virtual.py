"""Virtual datasets: which elements of which datasets they show where.

Spec: HDF5 File Format Specification, IV.A.2.i "The Data Layout Message", "Dataspace Selection Serialization".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.readers.hdf5 import heaps
from omnizarr.readers.hdf5.datasets import Dataset
from omnizarr.readers.hdf5.source import SEAL, Cursor, decode

_RANK: Final = 32
_BLOCKS: Final = 1 << 16  # blocks of a selection that are listed one by one
_SAME: Final = "."
_SHARED_FILE, _SHARED_PATH, _SAME_FILE = 1, 2, 4
_UNSHOWN: Final = "its mapping selects elements in a way that is not supported"


class Unsupported(Exception):  # noqa: N818 - a reason, which becomes a note
    """A selection that is not supported."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Indices along a dimension: `count` blocks of `block` indices, one every `stride`.

    Attributes
    ----------
    count : int or None
        None: as many as there are.
    """

    start: int
    stride: int
    count: int | None
    block: int

    @property
    def length(self) -> int:
        """How many indices there are."""
        return (self.count or 0) * self.block

    @property
    def stop(self) -> int:
        """One more than the last index."""
        return self.start + (self.length and (self.length // self.block - 1) * self.stride + self.block)

    def ranks(self, first: int, stop: int) -> tuple[int, int]:
        """Return which of the indices are in a range: from the one number to before the other."""
        return self._rank(first), self._rank(stop)

    def _rank(self, index: int) -> int:
        """Return how many indices are smaller."""
        blocks, rest = divmod(max(0, index - self.start), self.stride)
        return min(blocks * self.block + min(rest, self.block), self.length)

    def indices(self, first: int, stop: int) -> NDArray[np.int64]:
        """Return some of the indices."""
        blocks, rest = np.divmod(np.arange(first, stop, dtype=np.int64), self.block)
        found: NDArray[np.int64] = self.start + blocks * self.stride + rest
        return found


Axes = tuple[Axis, ...]


class Mapping(NamedTuple):
    """A part of a virtual dataset.

    Attributes
    ----------
    file, path : str
        The dataset that is shown; the file "." is the same one.
    source, target : tuple of Axis, or None
        Its elements, and where they are shown. None: all.
    """

    file: str
    path: str
    source: Axes | None
    target: Axes | None


def read(dataset: Dataset) -> list[Mapping]:
    """Return the mappings of a virtual dataset. Raises MetadataError, Unsupported."""
    layout, source = dataset.layout, dataset.header.source
    if layout.address is None:
        return []
    cursor = Cursor(source, layout.address, bytes(heaps.global_heap(source).get(layout.address, layout.number)))
    source.check_seal(layout.address, cursor.data[:-SEAL], cursor.data[-SEAL:], "the mappings of a virtual dataset")
    version = cursor.uint(1)
    if version > 1:
        raise Unsupported(f"its list of mappings has a later version, {version}")
    found: list[Mapping] = []
    for _ in range(cursor.length()):
        flags = cursor.uint(1) if version else 0
        file = (
            _SAME if flags & _SAME_FILE else _name(cursor, found, is_path=False, is_shared=bool(flags & _SHARED_FILE))
        )
        path = _name(cursor, found, is_path=True, is_shared=bool(flags & _SHARED_PATH))
        found.append(Mapping(file, path, _selection(cursor), _selection(cursor)))
    return found


def numbered(name: str, number: int) -> str:
    """Return a name that may mean several files or paths, with a number."""
    return name.replace("%b", str(number)).replace("%%", "%")


def _name(cursor: Cursor, before: list[Mapping], *, is_path: bool, is_shared: bool) -> str:
    """Return a name; one that is shared is that of an earlier mapping, by number."""
    if not is_shared:
        return decode(cursor.text())
    number = cursor.length()
    if number >= len(before):
        cursor.fail("a mapping of a virtual dataset has the name of one that does not exist", found=number)
    return before[number].path if is_path else before[number].file


def _selection(cursor: Cursor) -> Axes | None:
    kind, version = cursor.uint(4), cursor.uint(4)
    if kind == 3:
        cursor.skip(8)
        return None
    if kind != 2 or version not in {1, 2, 3}:
        raise Unsupported(_UNSHOWN)
    is_regular, width = version > 1, 8
    if version == 1:
        cursor.skip(8)
        width = 4
    else:
        is_regular = bool(cursor.uint(1) & 1)
        if version == 3:
            width = cursor.uint(1)
        else:
            cursor.skip(4)
    rank = cursor.uint(4)
    if not 0 < rank <= _RANK or width not in {2, 4, 8}:
        cursor.fail("a selection of a virtual dataset is not valid", found=f"{rank} dimensions")
    if not is_regular:
        return _of_blocks(cursor, rank, width)
    axes = tuple(_axis(cursor, width) for _ in range(rank))
    if sum(axis.count is None for axis in axes) > 1:
        cursor.fail("a selection of a virtual dataset has no end along two dimensions")
    return axes


def _axis(cursor: Cursor, width: int) -> Axis:
    start, stride, count, block = (cursor.uint(width) for _ in range(4))
    most = (1 << 8 * width) - 1
    if block == most and count != most:  # one block without an end
        stride, count, block = 1, most, 1
    axis = Axis(start, max(stride, block), None if count == most else count, block)
    if not block or block == most or (stride < block and count != 1) or max(start, stride, axis.stop) >> 62:
        cursor.fail("a selection of a virtual dataset is not valid", found=(start, stride, count, block))
    return axis


def _of_blocks(cursor: Cursor, rank: int, width: int) -> Axes:
    """Return the axes of blocks that are listed one by one, if they lie at regular distances."""
    count = cursor.uint(width)
    if not count or count > _BLOCKS:
        raise Unsupported(_UNSHOWN)
    data = np.frombuffer(cursor.take(2 * count * rank * width), f"<u{width}").reshape(count, 2, rank).astype(np.int64)
    axes = []
    for axis in range(rank):
        starts, which = np.unique(data[:, 0, axis], return_index=True)
        lengths = data[:, 1, axis] - data[:, 0, axis] + 1
        steps = np.unique(np.diff(starts))
        if len(steps) > 1 or (lengths != lengths[0]).any() or lengths[0] < 1 or (len(steps) and steps[0] < lengths[0]):
            raise Unsupported(_UNSHOWN)
        block = int(lengths[0])
        axes.append(Axis(int(starts[0]), int(steps[0]) if len(steps) else block, len(which), block))
    if prod(axis.count or 0 for axis in axes) != count or len(np.unique(data[:, 0], axis=0)) != count:
        raise Unsupported(_UNSHOWN)
    return tuple(axes)


def whole(shape: Sequence[int]) -> Axes:
    """Return the axes of all elements of a shape."""
    return tuple(Axis(0, max(1, length), 1 if length else 0, max(1, length)) for length in shape)


def pairs(source: Axes, target: Axes) -> list[int | None]:
    """Return for each dimension of the target that of the source along which both go; None: there is one index.

    Raises Unsupported if the shapes differ by more than dimensions of length 1.
    """
    wide = [axis for axis, each in enumerate(source) if each.length != 1]
    found: list[int | None] = []
    for each in target:
        found.append(wide.pop(0) if each.length != 1 and wide else None)
        at = found[-1]
        if each.length != (1 if at is None else source[at].length):
            raise Unsupported("a mapping shows elements in another shape")
    if wide:
        raise Unsupported("a mapping shows elements in another shape")
    return found
