"""Estimate objects, bytes and time of a conversion by decoding and encoding a few chunks. Nothing is written.

A sample is a chunk (an inner chunk of shards) of the target, or where that would need many chunks of the source, a part
of it. It is read from the source, encoded into memory and decoded again, by one thread, and each is timed. The least
time is that of all threads at once at the rate of the fastest sample, the most is twice that of one thread at the
median rate. What the target's store takes to write is not known.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr import engine, indexing
from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.errors import ChunkError, OmnizarrError
from omnizarr.model import ArrayMetadata, grids
from omnizarr.model.grids import Coords, Grid
from omnizarr.nodes import chunking
from omnizarr.stores import MemoryStore, pool, verbs
from omnizarr.tools.convert.moving import Move, Sides
from omnizarr.tools.convert.report import Estimate
from omnizarr.tools.convert.routes import Pass
from omnizarr.tools.streaming.chunks import Chunks
from omnizarr.tools.streaming.regions import Box, Regions
from omnizarr.tools.translate.coding import within_shards

_SAMPLES: Final = 5
"""Number of samples in addition to the first one, which is not timed."""
_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_SLACK: Final = 2
_SECONDS: Final = 3.0
"""Seconds after which no further sample is taken."""
_MOST_READ: Final = 32 * 1024 * 1024
"""Bytes of elements that are decoded for a sample, unless one chunk has more."""
_LOOKED_THROUGH: Final = 10_000
"""Stored chunks among which samples are chosen."""
_COPIED_PER_SECOND: Final = 1e9
"""Bytes that go through temporary objects, which are not compressed, in a second."""


class _Sample(NamedTuple):
    """The cost of moving a part of the array."""

    elements: int
    """Those that are stored in the source."""
    decoded: int
    """Elements of the source chunks that were decoded for it."""
    nbytes: int
    """As it is encoded."""
    reading: float
    writing: float
    again: float
    """Seconds to decode what was encoded."""


def estimate(move: Move, passes: Sequence[Pass]) -> Estimate:
    """Return the estimated cost of moving an array.

    Raises
    ------
    StoreError
        If the source cannot be read.
    """
    source = move.sides()[0]
    stored = sum(1 for _ in source.stored())
    objects = stored if move.goes_by_chunks() else move.count_written()
    # Chunks that are missing in the source take almost no space in the target, even if they are written.
    in_chunk = math.prod(max((*axis.sizes, 1)) for axis in source.grid.axes)
    elements = min(stored * in_chunk, math.prod(source.grid.shape))
    temporary = sum(each.bytes_written for each in passes if each.writes == "temporary")
    nbytes = sum(size for _, size in source.sizes()) if move.translation.same_bytes and move.goes_by_chunks() else 0
    try:
        samples = list(_samples(move, move.bound()))
    except OmnizarrError:
        samples = []
    if not samples:
        return Estimate(objects, nbytes, temporary, None if objects else (0.0, 0.0))
    if not nbytes:
        nbytes = round(elements * sum(each.nbytes for each in samples) / sum(each.elements for each in samples))
    return Estimate(objects, nbytes, temporary, _seconds(move, samples, elements, passes))


def _seconds(move: Move, samples: Sequence[_Sample], elements: int, passes: Sequence[Pass]) -> tuple[float, float]:
    times_read = max((each.times_read for each in passes if each.reads == "source"), default=1.0)
    moved = 2 * sum(each.bytes_written for each in passes if each.writes == "temporary") / _COPIED_PER_SECOND
    each = []
    for sample in samples:
        reading, writing = times_read * sample.reading / sample.decoded, sample.writing / sample.elements
        if move.translation.same_bytes and move.goes_by_chunks():
            writing, reading = 0.0, reading / 4  # bytes are copied, and not decoded
        verifying = times_read * sample.reading / sample.decoded + sample.again / sample.elements
        each.append(elements * (reading + writing + (verifying if move.compares else 0)))
    copied = moved * (2 if move.compares else 1)
    return min(each) / min(move.at_once, pool.default_concurrency()) + copied / 2, _SLACK * (median(each) + copied)


def _samples(move: Move, sides: Sides) -> Iterator[_Sample]:
    """Yield samples. The first one is left out if there are others, because caches are cold at first."""
    fine, metadata = _fine_target(sides)
    began, first = time.perf_counter(), None
    for coords in _chosen(move, fine):
        box = _within_reach(move, sides, fine.slices_of(coords))
        try:
            sample = _taken(move, sides, metadata, box)
        except ChunkError:
            continue  # a broken chunk
        if first is None:
            first = sample
            continue
        yield sample
        first = first._replace(elements=0)
        if time.perf_counter() - began > _SECONDS:
            return
    if first is not None and first.elements:
        yield first


def _fine_target(sides: Sides) -> tuple[Grid, ArrayMetadata]:
    """Return the grid of the smallest parts of the target, and metadata of an array that encodes one such part."""
    target = sides.target
    inner = chunking.inner_chunk_shape(target.metadata.codecs)
    if inner is None or len(target.metadata.codecs) > 1:
        return target.grid, target.metadata
    codecs = within_shards(target.metadata.codecs)
    return grids.bind(grids.regular(inner), target.grid.shape), replace(target.metadata, codecs=codecs)


def _chosen(move: Move, fine: Grid) -> Iterator[Coords]:
    """Yield some parts of the target that stored chunks of the source are in, spread over the array."""
    source = move.sides()[0]
    found = sorted(itertools.islice(source.stored(), _LOOKED_THROUGH))
    step = max(len(found) // (_SAMPLES + 1), 1)
    regions = Regions(fine, (1,) * len(fine.axes))
    for number, coords in enumerate(found[::step][: _SAMPLES + 1], 1):
        starts = [_somewhere(part, number * (axis + 1)) for axis, part in enumerate(source.grid.slices_of(coords))]
        point = [slice(start, start + 1) for start in starts] + [slice(0, 1)] * (len(fine.axes) - len(starts))
        for region in regions.touched(tuple(point)):
            yield next(iter(regions.chunks(region)))


def _somewhere(part: slice, number: int) -> int:
    """Return an index in a slice, another one for another number, spread evenly."""
    return int(part.start + (part.stop - part.start) * (number * _GOLDEN % 1.0))


def _within_reach(move: Move, sides: Sides, box: Box) -> Box:
    """Shorten a box, where that saves most, until it needs few enough decoded elements of the source."""
    while True:
        elements = math.prod(_decoded(move, sides, box))
        halves = [_halved(box, axis) for axis, part in enumerate(box) if part.stop - part.start > 1]
        best = min(halves, key=lambda half: math.prod(_decoded(move, sides, half)), default=box)
        if elements * sides.item_bytes <= _MOST_READ or math.prod(_decoded(move, sides, best)) >= elements:
            return box
        box = best


def _halved(box: Box, axis: int) -> Box:
    part = box[axis]
    return (*box[:axis], slice(part.start, part.start + -(-(part.stop - part.start) // 2)), *box[axis + 1 :])


def _decoded(move: Move, sides: Sides, box: Box) -> list[int]:
    """Return how many elements along each dimension the chunks of the source have that a box touches."""
    found = []
    for part, axis in zip(box, move.smallest_read(sides).axes, strict=True):
        _, first, _ = axis.find(part.start)
        _, last, size = axis.find(part.stop - 1)
        found.append(min(last + size, axis.length) - first)
    return found


def _taken(move: Move, sides: Sides, metadata: ArrayMetadata, box: Box) -> _Sample:
    """Read, encode and decode a part of the array, by one thread."""
    shape = tuple(part.stop - part.start for part in box)
    alone = replace(move, concurrency=1)
    started = time.perf_counter()
    values = alone.read_as_target(sides, box)
    read = time.perf_counter()
    store = MemoryStore()
    part = replace(metadata, shape=shape, chunk_grid=grids.regular([max(length, 1) for length in shape]))
    writing = engine.bind(part, store, "", ChunkPolicy(missing="fill", allow_pickle=move.allow_pickle), "")
    whole = indexing.basic((), writing.grid)
    begun = time.perf_counter()
    engine.write(writing, whole, values, 1)
    written = time.perf_counter()
    again: Any = np.empty(whole.buffer_shape, writing.spec.dtype)
    engine.read(writing, whole, again, 1)
    done = time.perf_counter()
    nbytes = sum(size for _, size in verbs.list_sizes(store, ""))
    decoded = max(math.prod(_decoded(move, sides, box)), 1)
    return _Sample(
        max(_stored_in(sides.source, box), 1), decoded, nbytes, read - started, written - begun, done - written
    )


def _stored_in(source: Chunks, box: Box) -> int:
    """Return how many elements of a box are in stored chunks of the source."""
    own = box[: len(source.grid.axes)]
    chunks = Regions(source.grid, (1,) * len(own))
    found = 0
    for number in chunks.touched(own):
        coords = next(iter(chunks.chunks(number)))
        if source.store.exists(source.key_of(coords)):
            pairs = zip(own, source.grid.slices_of(coords), strict=True)
            found += math.prod(min(a.stop, b.stop) - max(a.start, b.start) for a, b in pairs)
    return found
