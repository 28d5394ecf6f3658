"""Manifests: where the chunks of an array lie in files.

A chunk has a number: its place in the C order of the grid. A manifest says for each number which bytes of which file
are the chunk. There are two forms, and neither holds an object for each chunk.

`Manifest`
    Columns of numbers: for chunks that lie anywhere.
`Strided`
    A few numbers for all chunks, which lie at regular distances: one array after the other, or the records of several
    arrays in turns. `strided` chooses the chunks.

A reader of a format makes manifests; `omnizarr.stores.manifests.store.ManifestStore` shows them as a store.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from omnizarr.errors import StoreError
from omnizarr.stores import ranges

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

NOT_STORED: Final = 2**64 - 1
"""The length of a chunk that is not stored: it reads as the fill value."""

_END: Final = 2**63
_BLOCK: Final = 1 << 16  # numbers of stored chunks that are made at once
_MOST_BYTES: Final = 1 << 22  # of a chunk of data that is not divided into chunks in the file


class Extent(NamedTuple):
    """The bytes of one chunk."""

    file: int
    """The number of the file."""
    offset: int
    length: int
    """Bytes of each part."""
    skipped: int = 0
    """The codecs that this chunk skips. See `Manifest`."""
    parts: int = 1
    """Number of parts."""
    stride: int = 0
    """Bytes from the beginning of one part to that of the next."""
    padding: int = 0
    """Bytes behind the parts that are in no file, as the chunk reaches beyond the edge of the array. They are 0."""
    head: bytes = b""
    """What is before the bytes of the file. See `Manifest`."""

    @property
    def stop(self) -> int:
        """Where the last part ends in the file."""
        return self.offset + (self.parts - 1) * self.stride + self.length

    @property
    def size(self) -> int:
        """Bytes of the value."""
        return len(self.head) + self.parts * self.length + self.padding

    @property
    def is_made(self) -> bool:
        """Whether the value is made of all bytes in the file: no part of it is a part of the file."""
        return bool(self.skipped or self.head)


class Manifest:
    """Where the chunks of an array lie, as columns by the number of the chunk. The columns do not change.

    Parameters
    ----------
    offsets : array of uint64, shape (chunks,)
        The first byte of each chunk in its file.
    lengths : array of uint64, shape (chunks,)
        How many bytes each chunk has; `NOT_STORED` if it is not stored. Its offset then means nothing.
    files : array of uint32, shape (chunks,), optional
        The number of the file of each chunk, among the files of the store. None: all are in the first.
    skipped : array of uint32, shape (chunks,), optional
        The codecs that were not applied to each chunk: bit 0 is the first codec of the array, bit 1 the next one. The
        codec that turns the array into bytes does not count, as it has no bit. This is the filter mask of HDF5, if each
        filter of the file is one codec of the document. None: no chunk skips any.
    heads : array of uint8, shape (chunks, bytes), optional
        What comes before the bytes of the file in each chunk: what its codecs must know of it, and the file says
        elsewhere. None: nothing.

    Raises
    ------
    StoreError
        If the columns do not have the same length, or a chunk ends beyond 2**63 bytes.

    Examples
    --------
    >>> manifest = Manifest([100, 0, 300], [20, NOT_STORED, 25])
    >>> len(manifest), manifest.find(0), manifest.find(1), list(manifest.stored())
    (3, Extent(file=0, offset=100, length=20, skipped=0, parts=1, stride=0, padding=0, head=b''), None, [0, 2])
    """

    __slots__ = ("files", "heads", "lengths", "offsets", "skipped")

    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint64]
    files: NDArray[np.uint32] | None
    skipped: NDArray[np.uint32] | None
    heads: NDArray[np.uint8] | None

    def __init__(
        self,
        offsets: ArrayLike,
        lengths: ArrayLike,
        files: ArrayLike | None = None,
        skipped: ArrayLike | None = None,
        heads: NDArray[np.uint8] | None = None,
    ) -> None:
        columns = {
            "offsets": _column(offsets, np.uint64),
            "lengths": _column(lengths, np.uint64),
            "files": None if files is None else _column(files, np.uint32),
            "skipped": None if skipped is None else _column(skipped, np.uint32),
        }
        sizes = {name: column.shape for name, column in columns.items() if column is not None}
        if len(set(sizes.values())) > 1 or len(columns["lengths"].shape) != 1:  # type: ignore[union-attr]
            raise StoreError("the columns of a manifest have different lengths", found=sizes)
        if heads is not None and (heads.ndim != 2 or len(heads) != len(columns["lengths"])):  # type: ignore[arg-type]
            raise StoreError("the columns of a manifest have different lengths", found=heads.shape, expected=sizes)
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        object.__setattr__(self, "heads", None if heads is None else _column(heads, np.uint8))
        if len(self) and int(self._ends().max()) >= _END:
            raise StoreError("a chunk of a manifest ends beyond 2**63 bytes", expected="offsets and lengths in bytes")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a manifest does not change")

    def __len__(self) -> int:
        return len(self.lengths)

    def _ends(self) -> NDArray[np.uint64]:
        ends: NDArray[np.uint64] = np.where(self.lengths == NOT_STORED, np.uint64(0), self.offsets + self.lengths)
        wrapped = (self.lengths != NOT_STORED) & (ends < self.offsets)
        return np.where(wrapped, np.uint64(NOT_STORED), ends)

    @property
    def nbytes(self) -> int:
        """Bytes that the columns take in memory."""
        columns = (self.offsets, self.lengths, self.files, self.skipped, self.heads)
        return sum(column.nbytes for column in columns if column is not None)

    @property
    def most_files(self) -> int:
        """How many files there must be."""
        return 1 if self.files is None else int(self.files.max(initial=0)) + 1

    def find(self, number: int) -> Extent | None:
        """Return where a chunk lies; None if it is not stored."""
        length = int(self.lengths[number])
        if length == NOT_STORED:
            return None
        file = 0 if self.files is None else int(self.files[number])
        skipped = 0 if self.skipped is None else int(self.skipped[number])
        head = b"" if self.heads is None else self.heads[number].tobytes()
        return Extent(file, int(self.offsets[number]), length, skipped, head=head)

    def stored(self, sizes: Sequence[int | None] = ()) -> Iterator[int]:
        """Yield the numbers of the chunks that are stored, in order. `sizes` of files are not needed."""
        for start in range(0, len(self), _BLOCK):
            found = np.flatnonzero(self.lengths[start : start + _BLOCK] != NOT_STORED)
            yield from (found + start).tolist()

    def masks(self) -> list[int]:
        """Return the different masks of skipped codecs, without 0."""
        return [] if self.skipped is None else [int(mask) for mask in np.unique(self.skipped) if mask]

    def __reduce__(self) -> tuple[Any, ...]:
        return Manifest, (self.offsets, self.lengths, self.files, self.skipped, self.heads)

    def __repr__(self) -> str:
        return f"Manifest(<{len(self)} chunks>)"


def _column(values: ArrayLike, dtype: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    column = values if isinstance(values, np.ndarray) else np.asarray(values, dtype)
    if column.dtype != dtype:
        if column.dtype.kind not in "iu" or (column.size and column.dtype.kind == "i" and column.min() < 0):
            raise TypeError(f"a column of a manifest holds integers, none below 0, not {column.dtype}")
        if column.size and int(column.max()) > np.iinfo(dtype).max:
            raise StoreError("a number of a manifest is too large", found=int(column.max()), expected=dtype.__name__)
    column = np.ascontiguousarray(column, dtype)
    if column is values or column.base is not None:
        column = column.view()
    column.flags.writeable = False
    return column


@dataclass(frozen=True, slots=True)
class Strided:
    """Where the chunks of an array lie, if they lie at regular distances.

    Along one axis, a chunk has several units; before that axis it has length 1, and after it the whole length.

    Attributes
    ----------
    grid : tuple of int
        Number of chunks along each dimension.
    start : int
        The first byte of the array in the file.
    steps : tuple of int
        Bytes from one chunk to the next along each dimension.
    axis : int
        The dimension of the units.
    units : int
        How many units the array has along `axis`.
    per_chunk : int
        How many units a chunk has; the last one may have fewer in the file.
    unit : int
        Bytes of a unit.
    stride : int
        Bytes from one unit to the next: `unit` if they follow one another.
    file : int
        The number of the file.

    Examples
    --------
    Ten records of 8 bytes, every 100 bytes, four in a chunk:

    >>> manifest = Strided((3,), 1000, (400,), axis=0, units=10, per_chunk=4, unit=8, stride=100)
    >>> manifest.find(2)
    Extent(file=0, offset=1800, length=8, skipped=0, parts=2, stride=100, padding=16, head=b'')
    """

    grid: tuple[int, ...]
    start: int
    steps: tuple[int, ...]
    axis: int
    units: int
    per_chunk: int
    unit: int
    stride: int
    file: int = 0

    def __post_init__(self) -> None:
        if self.end >= _END:
            raise StoreError("a chunk of a manifest ends beyond 2**63 bytes", found=self.end)

    def __len__(self) -> int:
        raise TypeError("there may be more chunks than a length can say: see `count`")

    @property
    def count(self) -> int:
        """Number of chunks."""
        return math.prod(self.grid)

    @property
    def end(self) -> int:
        """Where the last chunk ends in the file."""
        last = self.find(self.count - 1) if self.count else None
        return self.start if last is None else last.stop

    @property
    def most_files(self) -> int:
        """How many files there must be."""
        return self.file + 1

    def find(self, number: int) -> Extent:
        """Return where a chunk lies."""
        offset, place = self.start, 0
        for axis in range(len(self.grid) - 1, -1, -1):
            number, coordinate = divmod(number, self.grid[axis])
            offset += coordinate * self.steps[axis]
            if axis == self.axis:
                place = coordinate
        count = min(self.per_chunk, self.units - place * self.per_chunk)
        padding = (self.per_chunk - count) * self.unit
        if count == 1 or self.stride == self.unit:
            return Extent(self.file, offset, count * self.unit, padding=padding)
        return Extent(self.file, offset, self.unit, parts=count, stride=self.stride, padding=padding)

    def divided(self) -> Strided:
        """Return the same array in smaller chunks, each of which is one piece of the file, and none cut off."""
        per_chunk = self.per_chunk
        if self.stride != self.unit:
            per_chunk = 1
        elif self.units:
            per_chunk = next(count for count in range(min(per_chunk, self.units), 0, -1) if not self.units % count)
        if per_chunk == self.per_chunk:
            return self
        grid, steps = list(self.grid), list(self.steps)
        grid[self.axis] = -(-self.units // per_chunk)
        steps[self.axis] = self.stride * per_chunk
        return replace(self, grid=tuple(grid), steps=tuple(steps), per_chunk=per_chunk)

    def stored(self, sizes: Sequence[int | None] = ()) -> Iterator[int]:
        """Yield the numbers of the chunks, in order: those that begin in a file of known size.

        So a document with a false length does not make them many: there are no more than the file has bytes.
        """
        size = sizes[self.file] if self.file < len(sizes) else None
        for number in range(self.count):
            if size is not None and self.find(number).offset >= size:
                return
            yield number

    def masks(self) -> list[int]:
        """Return no mask: no chunk skips codecs."""
        return []


AnyManifest: TypeAlias = Manifest | Strided
Seek: TypeAlias = Callable[[memoryview], tuple[Any, Any] | None]


@dataclass(frozen=True, slots=True)
class Index:
    """An index of which a part tells where some chunks lie. All are in the first file, and none skips codecs.

    Attributes
    ----------
    whole : callable
        Returns the manifest, for which the whole index is read.
    seek : callable
        Returns offsets and lengths of chunks by number, as buffers of 64-bit numbers, with `NOT_STORED` as the length
        of those that are not stored. None: the whole index is better read.
    near : object, optional
        The native engine's object that does the same without Python, in a file of this machine.
    """

    whole: Callable[[], AnyManifest]
    seek: Seek
    near: Any = None

    def __call__(self) -> AnyManifest:
        """Return the manifest."""
        return self.whole()


def strided(
    shape: Sequence[int], itemsize: int, start: int, stride: int | None = None, file: int = 0
) -> tuple[tuple[int, ...], Strided]:
    """Return the chunk shape and the manifest of an array that is not divided into chunks in its file.

    Parameters
    ----------
    shape : tuple of int
    itemsize : int
        Bytes of an element.
    start : int
        The first byte in the file.
    stride : int, optional
        Bytes from one index of the first dimension to the next, if something else lies in between: a record. The
        default is none.
    file : int, default: 0
        The number of the file.

    Examples
    --------
    >>> chunks, manifest = strided((3, 1000, 1000), 4, 512)
    >>> chunks, manifest.grid, manifest.find(1)
    ((1, 1000, 1000), (3, 1, 1), Extent(file=0, offset=4000512, length=4000000, ...))
    """
    shape = tuple(shape)
    below = [itemsize]  # bytes of all that is behind each dimension
    for length in reversed(shape[1:]):
        below.append(below[-1] * max(1, length))
    below.reverse()
    axis = next((axis for axis in range(len(shape)) if below[axis] <= _MOST_BYTES), len(shape) - 1)
    if not shape:
        return (), Strided((), start, (), 0, 1, 1, itemsize, itemsize, file)
    strides = [stride or below[0], *below[1:]]
    units, unit, apart = shape[axis], below[axis], strides[axis]
    per_chunk = 1 if apart - unit > ranges.GAP else max(1, min(units, _MOST_BYTES // max(1, apart)))
    per_chunk = -(-units // -(-units // per_chunk)) if units else 1  # of about the same size
    chunks = tuple(1 if at < axis else per_chunk if at == axis else max(1, n) for at, n in enumerate(shape))
    grid = tuple(-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True))
    steps = tuple(each * chunk for each, chunk in zip(strides, chunks, strict=True))
    return chunks, Strided(grid, start, steps, axis, units, per_chunk, unit, apart, file)
