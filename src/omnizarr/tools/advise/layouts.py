"""Shapes of chunks and shards, and the cost of reading windows with them.

The number of chunks that a window touches is averaged over all positions of the window; this is done separately
for each dimension, because dimensions are independent. The chosen shape of chunks is the candidate for which the
weighted windows take least longer than with their own best chunks. For two windows that cross each other, this
gives chunks of which both touch about the same number, as Rew recommends ("Chunking Data: Choosing Shapes",
Unidata, 2013).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs import spans
from omnizarr.tools.advise.places import DECODED_PER_SECOND, LOCAL, Place
from omnizarr.tools.advise.windows import Shape, Window, usual

_Floats: TypeAlias = NDArray[np.float64]

_COUNTS: Final = sorted({round(1.25**power) for power in range(60)} | set(range(1, 17)))
"""Maximum number of parts of a dimension; 1.25**60 is more than half a million."""
_MOST_COMBINATIONS: Final = 300_000
_USUAL_DIMENSIONS: Final = 8
_PREFERENCE: Final = 0.03
"""Accepted extra cost, as a share, of a chunk with half or twice the preferred size."""
_EVENNESS: Final = 0.02
"""The same for a chunk whose shape is less similar to the array's."""
_INDEX_ENTRY: Final = 16
_CHECKSUM: Final = 4
_MOST_INNER: Final = 16_384
"""Maximum number of inner chunks in a shard; their index has 256 KiB."""
_MOST_CHUNK: Final = 64 * 1024**2
"""Maximum bytes of elements in a chunk, however well they compress: readers hold several in memory."""
_MOST_DECODED: Final = 512 * 1024**2
"""Maximum bytes of elements in a shard: a writer holds them in memory."""


class Touched(NamedTuple):
    """The number of chunks that a window touches along one dimension.

    Attributes
    ----------
    mean : float
        Mean over all positions of the window.
    most : int
    full : float
        Mean number of chunks with several inner chunks of which the window touches all.
    """

    mean: float
    most: int
    full: float


def touched(length: int, window: int, chunk: int, per_chunk: int = 1) -> Touched:
    """Return the number of chunks that a window touches along a dimension. Each has `per_chunk` inner chunks.

    >>> touched(10, 4, 5)
    Touched(mean=1.4285714285714286, most=2, full=1.4285714285714286)
    """
    if not length:
        return Touched(0.0, 0, 0.0)
    places, inner, reach = length - window + 1, chunk // per_chunk, window - 1
    # A window that begins at s touches the chunks from s // chunk to (s + reach) // chunk; where it touches the first
    # and the last inner chunk of a shard, it touches all of them.
    total = _sum_of_floors(reach, places, chunk) - _sum_of_floors(0, places, chunk) + places
    full = 0
    if reach + 2 * inner > chunk:
        full = _sum_of_floors(reach + inner, places, chunk) - _sum_of_floors(chunk - inner, places, chunk)
    whole, rest = divmod(reach, chunk)
    most = whole + 1 + (min(places, chunk) - 1 + rest >= chunk)
    return Touched(total / places, most, full / places)


def _sum_of_floors(offset: int, count: int, divisor: int) -> int:
    """Return the sum of (offset + i) // divisor for i from 0 to count - 1."""

    def below(stop: int) -> int:  # of i // divisor for i < stop
        quotient, rest = divmod(stop, divisor)
        return divisor * quotient * (quotient - 1) // 2 + rest * quotient

    return below(offset + count) - below(offset)


@dataclass(frozen=True, slots=True)
class Expected:
    """The cost of reading a window, averaged over all its positions.

    Attributes
    ----------
    name : str
        Name of the window.
    lengths : tuple of int
    requests : float
    most_requests : int
        Number of requests at the worst position of the window.
    chunks : float
        Number of chunks (with shards: of inner chunks) that are decoded.
    nbytes : float
        Number of stored bytes that are fetched. Bytes between neighbouring inner chunks, which are fetched with
        them, do not count.
    """

    name: str
    lengths: Shape
    requests: float
    most_requests: int
    chunks: float
    nbytes: float

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "name": self.name,
            "window": list(self.lengths),
            "requests": round(self.requests, 3),
            "most_requests": self.most_requests,
            "chunks": round(self.chunks, 3),
            "bytes": round(self.nbytes),
        }


@dataclass(frozen=True, slots=True)
class Layout:
    """Chunks and shards of an array.

    Attributes
    ----------
    shape, chunks : tuple of int
    shards : tuple of int or None
    item_bytes : float
        Bytes of an element in memory.
    ratio : float
        Compression ratio: bytes in memory for each stored byte.
    """

    shape: Shape
    chunks: Shape
    shards: Shape | None
    item_bytes: float
    ratio: float

    @property
    def outer(self) -> Shape:
        """Shape of a chunk or shard stored under one key."""
        return self.shards or self.chunks

    @property
    def objects(self) -> int:
        """Number of chunks (shards) of the array, each a file or an object."""
        return math.prod(-(-length // size) for length, size in zip(self.shape, self.outer, strict=True))

    @property
    def nchunks(self) -> int:
        """Number of chunks (with shards: of inner chunks) of the array."""
        return math.prod(-(-length // size) for length, size in zip(self.shape, self.chunks, strict=True))

    @property
    def chunk_nbytes(self) -> float:
        """Bytes of a chunk in memory."""
        return math.prod(self.chunks) * self.item_bytes

    @property
    def inner(self) -> Shape:
        """Number of inner chunks in a shard along each dimension; ones without shards."""
        return tuple(outer // size for outer, size in zip(self.outer, self.chunks, strict=True))

    @property
    def index_nbytes(self) -> int:
        """Bytes of the index of a shard."""
        return 0 if self.shards is None else _INDEX_ENTRY * math.prod(self.inner) + _CHECKSUM

    @property
    def nbytes(self) -> float:
        """Stored bytes of all chunks."""
        return math.prod(self.shape) * self.item_bytes / self.ratio + self.objects * self.index_nbytes

    def reading(self, window: Window) -> Expected:
        """Return the cost of reading a window, if every chunk is stored."""
        chunks = math.prod(self._touched(window, self.chunks, (1,) * len(self.shape), "mean"))
        outer = math.prod(self._touched(window, self.outer, self.inner, "mean"))
        most = math.prod(self._touched(window, self.outer, self.inner, "most"))
        requests, most_requests, indexes = outer, most, 0.0
        if self.shards is not None:
            shard_nbytes = math.prod(self.shards) * self.item_bytes
            # Small shards are fetched whole, as are shards whose inner chunks are all needed. Otherwise the index is
            # fetched first.
            if shard_nbytes + self.index_nbytes > spans.GAP:
                full = math.prod(self._touched(window, self.outer, self.inner, "full"))
                requests, most_requests, indexes = 2 * outer - full, 2 * most, outer
        if window.lengths == self.shape:
            most_requests = round(requests)
        nbytes = chunks * self.chunk_nbytes / self.ratio
        nbytes = min(nbytes, math.prod(self.shape) * self.item_bytes / self.ratio) + indexes * self.index_nbytes
        return Expected(window.name, window.lengths, requests, int(most_requests), chunks, nbytes)

    def _touched(self, window: Window, sizes: Shape, inner: Shape, what: str) -> Iterator[float]:
        for length, wanted, size, count in zip(self.shape, window.lengths, sizes, inner, strict=True):
            yield getattr(touched(length, wanted, size, count), what)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "chunks": list(self.chunks),
            "shards": None if self.shards is None else list(self.shards),
            "chunk_bytes_logical": round(self.chunk_nbytes),
            "chunk_bytes_stored": round(self.chunk_nbytes / self.ratio),
            "nchunks": self.nchunks,
            "objects": self.objects,
            "bytes_stored": round(self.nbytes),
        }


# -- chunks ----------------------------------------------------------------------------


class Chosen(NamedTuple):
    """A shape of chunks.

    Attributes
    ----------
    chunks : tuple of int
    slowdowns : tuple of float
        Approximate factor by which reading each window takes longer than with its best chunks.
    """

    chunks: Shape
    slowdowns: tuple[float, ...]


def choose_chunks(
    shape: Shape, item_bytes: float, ratio: float, place: Place, windows: Sequence[Window], *, has_shards: bool
) -> Chosen:
    """Return the shape of chunks that suits the windows best.

    Examples
    --------
    >>> from omnizarr.tools.advise import places, windows
    >>> shape = (8760, 720, 1440)
    >>> choose_chunks(shape, 4, 1.0, places.LOCAL, windows.parse("maps", shape), has_shards=False).chunks
    (1, 720, 1440)
    """
    if not shape or not math.prod(shape):
        return Chosen(tuple(max(length, 1) for length in shape), (1.0,) * len(windows))
    candidates = _candidates(shape, windows)
    elements = _outer(candidates, [np.asarray(sizes, float) for sizes in candidates])
    decoded = elements * item_bytes
    stored = decoded / ratio
    least = min(
        place.least_chunk if has_shards else place.least_object,
        math.prod(shape) * item_bytes / ratio,
        _MOST_CHUNK / 2 / ratio,
    )
    fits = decoded <= max(_MOST_CHUNK, item_bytes)
    allowed = fits & (stored >= least) & (stored <= place.most_chunk)
    if not allowed.any():  # elements are large, or intermediate sizes are missing: the nearest
        wanted = min(math.sqrt(least * place.most_chunk), place.most_chunk)
        distance = np.where(fits, np.abs(np.log(stored / wanted)), np.inf)
        allowed = distance == distance.min()
    score = np.zeros(stored.shape)
    relative = []
    for window in windows:
        axes = zip(shape, window.lengths, candidates, strict=True)
        means = [np.array([touched(length, wanted, size).mean for size in sizes]) for length, wanted, sizes in axes]
        chunks = _outer(candidates, means)
        cost = _seconds(place, chunks, stored, decoded)
        relative.append(cost / cost[allowed].min())
        score += window.weight * relative[-1]
    preferred = 1024**2 if has_shards else 4 * 1024**2
    score *= 1 + _PREFERENCE * np.abs(np.log2(stored / preferred)) + _EVENNESS * _unevenness(shape, candidates)
    best = np.unravel_index(int(np.where(allowed, score, np.inf).argmin()), score.shape)
    chunks_found = tuple(sizes[at] for sizes, at in zip(candidates, best, strict=True))
    return Chosen(chunks_found, tuple(float(costs[best]) for costs in relative))


def _seconds(place: Place, chunks: _Floats, stored: _Floats, decoded: _Floats) -> _Floats:
    waiting = place.latency * (1 + np.maximum(chunks / place.at_once - 1, 0))
    moved = chunks * stored / place.bytes_per_second
    seconds: _Floats = waiting + chunks * place.per_request + moved + chunks * decoded / DECODED_PER_SECOND
    return seconds


def _unevenness(shape: Shape, candidates: Sequence[Sequence[int]]) -> _Floats:
    """Return how much the numbers of chunks along dimensions differ. If windows do not care, they should be similar."""
    pairs = zip(shape, candidates, strict=True)
    counts = [np.array([math.log2(-(-length // size)) for size in sizes]) for length, sizes in pairs]
    stacked = np.stack(np.broadcast_arrays(*[_along(axis, len(shape), each) for axis, each in enumerate(counts)]))
    spread: _Floats = stacked.std(axis=0)
    return spread


def _along(axis: int, ndim: int, values: _Floats) -> _Floats:
    return values.reshape([-1 if at == axis else 1 for at in range(ndim)])


def _outer(candidates: Sequence[Sequence[int]], factors: Sequence[_Floats]) -> _Floats:
    """Return the products of factors, one per dimension, for each combination of candidates."""
    product: _Floats = np.ones((1,) * len(candidates))
    for axis, factor in enumerate(factors):
        product = product * _along(axis, len(candidates), factor)
    return product


def _candidates(shape: Shape, windows: Sequence[Window]) -> list[list[int]]:
    """Return candidates for chunk lengths along each dimension: parts of it, powers of two, lengths of windows."""
    found = []
    for axis, length in enumerate(shape):
        parts = {-(-length // count) for count in _COUNTS if count <= length}
        powers = {2**power for power in range((length - 1).bit_length())}
        halves = {-(-length // 2**power) for power in range(length.bit_length())}
        wanted = {window.lengths[axis] for window in windows}
        found.append(sorted(parts | powers | halves | wanted | {1, length}))
    most = _MOST_COMBINATIONS if len(shape) <= _USUAL_DIMENSIONS else _MOST_COMBINATIONS // len(shape)
    while math.prod(map(len, found)) > most:
        longest = max(range(len(found)), key=lambda axis: len(found[axis]))
        keep = {1, shape[longest], *(window.lengths[longest] for window in windows)}
        thinned = [size for at, size in enumerate(found[longest]) if at % 2 or size in keep]
        if len(thinned) == len(found[longest]):  # of many dimensions, not each can be divided
            thinned = [shape[longest]]
        found[longest] = thinned
    return found


# -- shards ----------------------------------------------------------------------------


def shard_shape(
    shape: Shape, chunks: Shape, item_bytes: float, ratio: float, place: Place, windows: Sequence[Window]
) -> Shape | None:
    """Return the shape of shards for chunks, lengthened step by step where that saves most requests.

    None if there is only one chunk.

    Examples
    --------
    >>> from omnizarr.tools.advise import places, windows
    >>> shape = (8760, 720, 1440)
    >>> shard_shape(shape, (1, 720, 1440), 4, 1.0, places.LOCAL, windows.parse("maps", shape))
    (16, 720, 1440)
    """
    counts = [max(-(-length // size), 1) for length, size in zip(shape, chunks, strict=True)]
    if math.prod(counts) <= 1:
        return None
    per_axis = [1] * len(shape)
    while True:
        found = []
        for axis, count in enumerate(counts):
            if per_axis[axis] == count:
                continue
            longer = [*per_axis]
            longer[axis] = min(2 * per_axis[axis], count)
            if _fits(longer, chunks, item_bytes, ratio, place):
                found.append((_requests(shape, chunks, longer, item_bytes, ratio, windows), longer[axis], longer))
        if not found:
            break
        per_axis = min(found)[2]
    return tuple(size * count for size, count in zip(chunks, per_axis, strict=True))


def automatic(shape: Shape, chunks: Shape | None, item_bytes: float) -> tuple[Shape, Shape | None]:
    """Return chunks and shards for unknown uses, on a disk and without compression. Chunks may be given.

    >>> automatic((8760, 720, 1440), (24, 90, 90), 4)
    ((24, 90, 90), (192, 180, 360))
    """
    windows = usual(shape)
    if chunks is None:
        chunks = choose_chunks(shape, item_bytes, 1.0, LOCAL, windows, has_shards=True).chunks
    return chunks, shard_shape(shape, chunks, item_bytes, 1.0, LOCAL, windows)


def _fits(per_axis: Sequence[int], chunks: Shape, item_bytes: float, ratio: float, place: Place) -> bool:
    inner = math.prod(per_axis)
    decoded = inner * math.prod(chunks) * item_bytes
    return inner <= _MOST_INNER and decoded / ratio <= place.shard and decoded <= _MOST_DECODED


def _requests(
    shape: Shape, chunks: Shape, per_axis: Sequence[int], item_bytes: float, ratio: float, windows: Sequence[Window]
) -> float:
    """Return the number of requests of windows, relative to those without shards."""
    shards = tuple(size * count for size, count in zip(chunks, per_axis, strict=True))
    flat, layout = Layout(shape, chunks, None, item_bytes, ratio), Layout(shape, chunks, shards, item_bytes, ratio)
    return sum(
        window.weight * layout.reading(window).requests / max(flat.reading(window).requests, 1e-9) for window in windows
    )
