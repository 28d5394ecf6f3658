"""Finding chunks and shards for an array: one that exists, or the shape and data type of one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from omnizarr.api import opening
from omnizarr.errors import MetadataError, OmnizarrError, Wording
from omnizarr.formats import dialects_for
from omnizarr.model import datatypes
from omnizarr.model.grids import Coords, Grid
from omnizarr.nodes import bindings, chunking, info, new_metadata, wording
from omnizarr.nodes.array import Array
from omnizarr.nodes.holdings import coords as stored_coords
from omnizarr.nodes.new_metadata import parse_shape
from omnizarr.stores import LocalStore, MemoryStore, Store, WrapperStore, ZipStore, pool
from omnizarr.tools.advise.layouts import Chosen, Layout, choose_chunks, shard_shape
from omnizarr.tools.advise.places import LOCAL, OBJECT, PLACES, Place
from omnizarr.tools.advise.report import Advice
from omnizarr.tools.advise.windows import Shape, Window, parse
from omnizarr.tools.streaming.chunks import Chunks

_SAMPLED: Final = 16
"""Number of stored chunks whose size is read."""
_LOOKED_THROUGH: Final = 10_000
"""Number of keys among which these chunks are chosen."""


class _Subject(NamedTuple):
    """What is advised on."""

    shape: Shape
    names: Sequence[str | None] | None
    data_type: str
    item_bytes: float
    ratio: float
    sampled: int
    place: Place
    may_shard: bool
    current: tuple[Shape, Shape | None] | None


def run(
    store: Any,
    *,
    path: str | None,
    shape: Any,
    dtype: Any,
    reads: Any,
    place: str | None,
    shards: bool,
    ratio: float | None,
    zarr_format: int | str | None,
    storage_options: Any,
) -> Advice:
    """Return the advice; see `omnizarr.advise`."""
    if (store is None) == (shape is None):
        raise ValueError("give an array, or shape and dtype")
    if place is not None and place not in PLACES:
        raise ValueError(Wording(f"{{place}}: expected one of {', '.join(PLACES)}", place=place))
    if ratio is not None and not ratio > 0:
        raise ValueError(Wording("{ratio}: expected bytes in memory per stored byte, as 2.5", ratio=ratio))
    if shape is None:
        if not isinstance(store, Array) or path:
            store = opening.open_array(store, mode="r", path=path, storage_options=storage_options)
        subject = _of_array(store, zarr_format)
    else:
        subject = _of_shape(parse_shape(shape), dtype, zarr_format)
    subject = subject._replace(may_shard=subject.may_shard and shards)
    if place is not None:
        subject = subject._replace(place=PLACES[place])
    if ratio is not None:
        subject = subject._replace(ratio=float(ratio), sampled=0)
    return _advice(subject, parse(reads, subject.shape, subject.names))


def _advice(subject: _Subject, windows: tuple[Window, ...]) -> Advice:
    shape, item_bytes, ratio, place = subject.shape, subject.item_bytes, subject.ratio, subject.place
    chosen = choose_chunks(shape, item_bytes, ratio, place, windows, has_shards=subject.may_shard)
    found = shard_shape(shape, chosen.chunks, item_bytes, ratio, place, windows) if subject.may_shard else None
    advised = Layout(shape, chosen.chunks, found, item_bytes, ratio)
    current = None if subject.current is None else Layout(shape, *subject.current, item_bytes, ratio)
    reasons = tuple(_reasons(subject, windows, chosen, advised))
    return Advice(shape, subject.data_type, place.name, windows, advised, current, ratio, subject.sampled, reasons)


# -- what exists ---------------------------------------------------------------------


def _of_shape(shape: Shape, dtype: Any, zarr_format: int | str | None) -> _Subject:
    if dtype is None:
        raise ValueError(Wording("give the data type too: {dtype}", dtype="float32"))
    dialect = dialects_for(3 if zarr_format is None else zarr_format)[0]
    bound = datatypes.parse(dtype)
    if not bound.is_fixed_size:
        raise ValueError(
            Wording("{dtype}: elements have no fixed size; write some, and ask for advice on that array", dtype=dtype)
        )
    return _Subject(shape, None, str(bound.dtype), bound.dtype.itemsize, 1.0, 0, LOCAL, dialect.name == "v3", None)


def _of_array(array: Array, zarr_format: int | str | None) -> _Subject:
    where, metadata = array.store_path, array.metadata
    facts = info.of_array(where, metadata)
    sizes = list(_sample(array))
    outer = facts.shards or facts.chunks
    item_bytes, ratio = float(facts.itemsize or 0), 1.0
    if outer is not None and sizes:
        stored = sum(size for _, size in sizes) / sum(elements for elements, _ in sizes)
        item_bytes = item_bytes or stored  # elements of any size: as they are stored
        ratio = item_bytes / stored if stored else 1.0
    if not item_bytes:
        raise MetadataError(
            "elements have no fixed size, and no chunk is stored that would tell",
            store=str(where.store),
            path=where.path,
            remedy="write some first",
        )
    dialect = metadata.dialect if zarr_format is None else dialects_for(zarr_format)[0].name
    current = None if facts.chunks is None else (facts.chunks, facts.shards)
    return _Subject(
        facts.shape,
        facts.dimension_names,
        facts.data_type,
        item_bytes,
        ratio,
        len(sizes),
        _place_of(where.store),
        dialect == "v3",
        current,
    )


def _sample(array: Array) -> Iterator[tuple[int, int]]:
    """Yield elements and stored bytes of some stored chunks (shards), spread over those that a listing begins with."""
    where, metadata = array.store_path, array.metadata
    try:
        chunks = Chunks.of(where, bindings.with_keys_in_use(where, metadata))
    except OmnizarrError:  # the chunks are unknown
        return
    try:
        found = sorted(itertools.islice(stored_coords(where, metadata), _LOOKED_THROUGH))
    except (OmnizarrError, NotImplementedError):  # a store that cannot list
        found = list(itertools.islice(chunks.grid.coords(), _LOOKED_THROUGH))
    chosen = found[:: max(len(found) // _SAMPLED, 1)][:_SAMPLED]
    for position, size in pool.gather(where.store.size, map(chunks.key_of, chosen), where.store.features.concurrency):
        if size:
            coords = chosen[position]
            yield _encoded(chunks.grid, coords, chunking.inner_chunk_shape(metadata.codecs)), size


def _encoded(grid: Grid, coords: Coords, inner: Shape | None) -> int:
    """Return how many elements a chunk holds: it is whole at the array's edge too, a shard has whole inner chunks."""
    if inner is None:
        return math.prod(grid.shape_of(coords))
    lengths = [part.stop - part.start for part in grid.slices_of(coords)]
    return math.prod(-(-length // size) * size for length, size in zip(lengths, inner, strict=True))


def _place_of(store: Store) -> Place:
    while isinstance(store, WrapperStore):
        store = store.store
    return LOCAL if isinstance(store, LocalStore | MemoryStore | ZipStore) else OBJECT


# -- reasons ---------------------------------------------------------------------------


def _reasons(subject: _Subject, windows: Sequence[Window], chosen: Chosen, layout: Layout) -> Iterator[str]:
    place = subject.place
    if not layout.nchunks:
        yield "The array has no elements."
        return
    chunk = layout.chunk_nbytes / layout.ratio
    if layout.nchunks == 1:
        yield f"All of the array, {wording.size(round(chunk))} as it is stored, fits in one chunk."
        return
    least, most = place.least_chunk if subject.may_shard else place.least_object, wording.size(place.most_chunk)
    decoded = "" if layout.ratio == 1 else f", and {wording.size(round(layout.chunk_nbytes))} in memory"
    yield f"A chunk has about {wording.size(round(chunk))} as it is stored{decoded}."
    yield (
        f"On {_article(place.title)}, chunks of less than {wording.size(least)} cost more in requests than they save "
        f"in bytes, and chunks of more than {most} make small reads slow."
    )
    if len(windows) > 1:
        each = [f"{slow:.1f} times for {window.name!r}" for window, slow in zip(windows, chosen.slowdowns, strict=True)]
        yield f"It is a compromise. Compared with the chunks that suit it alone, a read takes {_and(each)} as long."
    if layout.shards is not None:
        size, held = layout.nbytes / layout.objects, math.prod(layout.outer) * layout.item_bytes
        yield (
            f"Shards make {wording.plural(layout.objects, _noun(place))} of {layout.nchunks:,} chunks, of about "
            f"{wording.size(round(size))} each. A reader fetches single chunks from a shard; a writer holds a whole "
            f"one in memory ({wording.size(round(held))})."
        )
        yield (
            f"A write of less than a shard reads and stores all its {math.prod(layout.inner):,} chunks: write whole "
            "shards, or gather small writes with array.writer()."
        )
        if subject.current is None:
            inner, outer = new_metadata.automatic(layout.shape, max(1, round(layout.item_bytes)))
            yield (
                f'shards="auto" would make shards of {wording.lengths(outer)} from chunks of {wording.lengths(inner)}: '
                "it knows the shape, but not what you read. Its size is the setting array.target_shard_size_bytes."
            )
    elif not subject.may_shard:
        yield f"Without shards, each of the {layout.nchunks:,} chunks is {_article(_noun(place))} of its own."
    if subject.sampled:
        yield f"The ratio {layout.ratio:.2g} is that of {wording.plural(subject.sampled, 'stored chunk')}."
    elif layout.ratio == 1:
        yield "No compression is assumed: with it, chunks could have more elements."


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def _noun(place: Place) -> str:
    return "file" if place is LOCAL else "object"


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
