"""How a lazy array is shown as an array of Zarr v3: in the chunks and with the codecs of its first source.

Codecs that few programs read are replaced as in a conversion, and those that cannot encode here, or do not bring back
all values, are left out: chunks that lie across two sources are encoded when they are read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

from omnizarr.codecs import chain, registry
from omnizarr.codecs import portable as replacements
from omnizarr.codecs.values import named
from omnizarr.errors import OmnizarrError
from omnizarr.formats import dialect_named
from omnizarr.formats.conventions import fill_values
from omnizarr.indexing.transforms import Along
from omnizarr.model import ArrayMetadata, Named, grids
from omnizarr.nodes import chunking, creating
from omnizarr.nodes.array import Array
from omnizarr.nodes.equivalence import have_same_bytes, spec_of
from omnizarr.nodes.lazy import tree
from omnizarr.nodes.lazy.deferred import Deferred
from omnizarr.nodes.lazy.reading import Job, jobs
from omnizarr.nodes.lazy.tree import Leaf
from omnizarr.nodes.lazy.view import LazyArray, chunks_of
from omnizarr.nodes.location import StorePath
from omnizarr.stores import MemoryStore

GridKind: TypeAlias = Literal["regular", "rectilinear"]
GRIDS: Final = ("regular", "rectilinear")

_MOST_BYTES: Final = 64 * 2**20
"""Size of a chunk of sources that are not chunked themselves."""
_MOST_LENGTHS: Final = 10**5
"""Runs of chunks along a dimension of a rectilinear grid, of which the document has all."""
_SHARDING: Final = "sharding_indexed"
_ORDERS: Final = frozenset({"bytes", "transpose"})
"""Codecs that only say in which order bytes and elements are."""


def metadata_of(
    lazy: LazyArray,
    attributes: Mapping[str, Any] | None,
    like: Array | None,
    grid: GridKind = "regular",
    *,
    portable: bool = True,
) -> ArrayMetadata:
    """Return the metadata of a lazy array as Zarr v3 has it.

    Parameters
    ----------
    lazy : LazyArray
    attributes : mapping of str to JSON, optional
        Those of the lazy array by default.
    like : Array, optional
        The array that it takes its codecs from, if no source is in a store.
    grid : {"regular", "rectilinear"}
        Whether all chunks have one shape, or start again with each source.
    portable : bool
        Whether compressors that few readers know are replaced.
    """
    first = _first(lazy)
    source = like if first is None else first
    plain = _plain(lazy, attributes, source)
    if not lazy.ndim or source is None:
        return _with_codecs(lazy, plain, source, None, portable=portable)
    outer = _stored_chunks(lazy)
    inner = None if chunking.inner_chunk_shape(source._metadata.codecs) is None else lazy.chunks  # noqa: SLF001
    if outer is not None:
        if inner is not None:  # sources may be shorter than their shards
            outer = tuple(-(-length // part) * part for length, part in zip(outer, inner, strict=True))
        lengths = _anew(lazy, outer) if grid == "rectilinear" else None
        if lengths is not None and (inner is None or _divides(inner, lengths)):
            found = Named("rectilinear", {"kind": "inline", "chunk_shapes": lengths})
            plain = replace(plain, chunk_grid=found if any(len(row) > 1 for row in lengths) else grids.regular(outer))
        else:
            plain = replace(plain, chunk_grid=grids.regular(outer))
    return _with_codecs(lazy, plain, source, inner if outer is not None else None, portable=portable)


def _first(lazy: LazyArray) -> Array | None:
    """Return the first source that is an array in a store."""
    for leaf in tree.leaves(lazy._node):  # noqa: SLF001 - two halves of one thing
        if isinstance(leaf.source, Array):
            return leaf.source
        if isinstance(leaf.source, Deferred):
            with suppress(OmnizarrError):  # reading it will raise the error
                found: Array = leaf.source.array()
                return found
            return None
    return None


def _plain(lazy: LazyArray, attributes: Mapping[str, Any] | None, source: Array | None) -> ArrayMetadata:
    """Return the metadata without compressors."""
    first = next((leaf.source for leaf in tree.leaves(lazy._node)), None)  # noqa: SLF001 - two halves of one thing
    same = source if source is not None and source.dtype == lazy.dtype else None
    dtype: Any = lazy.dtype
    if same is not None:
        dtype = same.metadata.data_type
    elif dtype.kind in "OT":
        dtype = "string"
    chunks: Any = lazy.chunks
    if getattr(first, "chunks", None) is None and lazy.nbytes > _MOST_BYTES:
        chunks = "auto"
    fill: Any = None if same is None else same.fill_value
    if fill is None and lazy.dtype.kind == "f":
        fill = math.nan
    made = creating.new_array(
        StorePath(MemoryStore(), ""),
        zarr_format=3,
        shape=lazy.shape,
        dtype=dtype,
        chunks=chunks if lazy.ndim else (),
        compressors=None,
        fill_value=fill,
        dimension_names=lazy.dimension_names,
        attributes=fill_values.in_form(lazy.attrs if attributes is None else attributes, lazy.dtype),
    )
    return made._metadata  # noqa: SLF001 - a part of Array


# -- chunks -----------------------------------------------------------------------------


def stored_chunk_shape(metadata: ArrayMetadata) -> tuple[int, ...] | None:
    """Return the shape of a stored chunk (shard); None if they have several."""
    with suppress(OmnizarrError):
        return grids.bind(metadata.chunk_grid, metadata.shape).chunk_shape
    return None


def _stored_chunks(lazy: LazyArray) -> tuple[int, ...] | None:
    """Return the lengths of the first source's stored chunks as the lazy array has them; None if they are not known."""
    first = next(tree.leaves(lazy._node), None)  # noqa: SLF001 - two halves of one thing
    if first is None or not isinstance(first.source, Array | Deferred):
        return None
    source = first.source
    if isinstance(source, Deferred):
        with suppress(OmnizarrError):  # reading it will raise the error
            source = source.array()
    known = stored_chunk_shape(source._metadata) if isinstance(source, Array) else source.chunks  # noqa: SLF001
    return chunks_of(lazy._node, lambda leaf: known if leaf is first else None)  # noqa: SLF001


def _divides(inner: Sequence[int], lengths: Sequence[Sequence[Any]]) -> bool:
    """Return whether shards of all these lengths consist of whole inner chunks."""
    return all(size % part == 0 for part, row in zip(inner, lengths, strict=True) for size, _ in row)


def _anew(lazy: LazyArray, lengths: Sequence[int]) -> list[list[list[int]]] | None:
    """Return runs of chunks for each dimension that begin where sources begin; None if there are no such chunks."""
    parts: list[dict[tuple[int, int], tuple[int, int]]] = [{} for _ in lazy.shape]
    for job in itertools.islice(jobs(lazy._node), _MOST_LENGTHS + 1):  # noqa: SLF001 - two halves of one thing
        begun = {
            output.dim: (output.indices.start, own or lengths[output.dim])
            for output, own in zip(job.source.outputs, _lengths_of(job), strict=True)
            if isinstance(output, Along) and output.indices.step == 1
        }
        for dim, (output, known) in enumerate(zip(job.target.outputs, parts, strict=True)):
            if not isinstance(output, Along) or output.indices.step != 1:
                return None
            known.setdefault((output.indices.start, output.indices.stop), begun.get(output.dim, (0, lengths[dim])))
    found = []
    for known, size in zip(parts, lazy.shape, strict=True):
        runs = list(_runs(known, size))
        if not runs or len(runs) > _MOST_LENGTHS:
            return None
        found.append(runs)
    return found


def _lengths_of(job: Job) -> tuple[int, ...]:
    """Return the lengths of the stored chunks of a job's source, 0 where they are not known."""
    source: Any = job.leaf.source if isinstance(job.leaf, Leaf) else None
    found = stored_chunk_shape(source._metadata) if isinstance(source, Array) else getattr(source, "chunks", None)  # noqa: SLF001
    is_known = found is not None and all(isinstance(length, int) for length in found)
    return tuple(found) if found is not None and is_known else (0,) * len(job.source.outputs)


def _runs(known: Mapping[tuple[int, int], tuple[int, int]], size: int) -> Iterator[list[int]]:
    """Yield length and number of chunks along a dimension; nothing if parts overlap."""
    found: list[list[int]] = []

    def add(each: int, count: int) -> None:
        if count and found and found[-1][0] == each:
            found[-1][1] += count
        elif count:
            found.append([each, count])

    at = 0
    for (start, stop), (begun, length) in sorted(known.items()):
        if start != at:
            return
        first = min(-begun % length, stop - start)
        whole, last = divmod(stop - start - first, length)
        add(first, int(first > 0))
        add(length, whole)
        # The last chunk of all may be longer than what is left of the array, as in the source.
        add(length if stop == size else last, int(last > 0))
        at = stop
    if at == size:
        yield from found


# -- codecs -----------------------------------------------------------------------------


def _with_codecs(
    lazy: LazyArray, plain: ArrayMetadata, source: Array | None, inner: tuple[int, ...] | None, *, portable: bool
) -> ArrayMetadata:
    """Return the metadata with the nearest codecs to those of a source that can be said in v3, and run."""
    if source is None:
        return plain
    is_same, metadata = source.dtype == lazy.dtype, source._metadata  # noqa: SLF001 - a part of Array
    for codecs in _candidates(plain, metadata, inner, is_same=is_same, portable=portable):
        made = replace(plain, codecs=codecs)
        if _is_possible(made):
            return made
    return plain


def _candidates(
    plain: ArrayMetadata, source: ArrayMetadata, inner: tuple[int, ...] | None, *, is_same: bool, portable: bool
) -> Iterator[tuple[Named, ...]]:
    spec = spec_of(plain)
    item = spec.dtype.itemsize if spec.data_type.is_fixed_size else 1
    codecs = source.codecs
    if portable and source.dialect != "v3":
        nbytes = item * math.prod(spec.shape)
        codecs = tuple(itertools.chain.from_iterable(new for _, new in replacements.replaced(codecs, item, nbytes)))
    if is_same and len(plain.shape) == len(source.shape) and (inner is not None or not _has_shards(codecs)):
        yield _with_inner(codecs, inner)
    _, _, compressors = chunking.split(codecs)
    fitting = tuple(_for_items(codec, item) for codec in compressors)
    simple = (*plain.codecs, *fitting)
    if inner is not None:
        sharding = next((codec for codec in codecs if codec.name == _SHARDING), None)
        if sharding is not None:
            within: Any = [{"name": each.name, "configuration": dict(each.configuration)} for each in simple]
            yield (Named(_SHARDING, {**sharding.configuration, "chunk_shape": list(inner), "codecs": within}),)
    yield simple


def remarks(lazy: LazyArray, shown: ArrayMetadata) -> Iterator[str]:
    """Yield what becomes of codecs of the first source that the chunks of a lazy array do not have."""
    source = _first(lazy)
    if source is None:
        return
    spec = spec_of(shown)
    item = spec.dtype.itemsize if spec.data_type.is_fixed_size else 1
    kept = {registry.bare(codec.name) for codec in _all(shown.codecs)}
    for old, new in replacements.replaced(_all(source._metadata.codecs), item, item * math.prod(spec.shape)):  # noqa: SLF001
        missing = [registry.bare(codec.name) for codec in old if registry.bare(codec.name) not in kept]
        missing = [name for name in missing if name not in _ORDERS]
        if not missing:
            continue
        what = " and ".join(map(repr, missing))
        if old != new and all(registry.bare(codec.name) in kept for codec in new):
            how = f"with {new[0].name!r}" if new else "without"
            yield f"few readers of Zarr v3 know {what} of the sources: chunks are encoded again {how}"
        else:
            yield f"{what} of the sources is left out: chunks have the same values, and are encoded again without it"


def _all(codecs: Sequence[Named]) -> list[Named]:
    """Return codecs, and those of inner chunks in place of sharding."""
    found: list[Named] = []
    for codec in codecs:
        inner: Any = codec.configuration.get("codecs") if codec.name == _SHARDING else None
        if inner is None:
            found.append(codec)
        else:
            found += map(named, inner)
    return found


def _has_shards(codecs: Sequence[Named]) -> bool:
    return any(codec.name == _SHARDING for codec in codecs)


def _with_inner(codecs: tuple[Named, ...], inner: tuple[int, ...] | None) -> tuple[Named, ...]:
    """Return codecs with inner chunks of a shape."""
    if inner is None or chunking.inner_chunk_shape(codecs) == inner:
        return codecs
    return tuple(
        Named(codec.name, {**codec.configuration, "chunk_shape": list(inner)}) if codec.name == _SHARDING else codec
        for codec in codecs
    )


def _for_items(codec: Named, size: int) -> Named:
    """Return a compressor for elements of another size."""
    for name in ("typesize", "elementsize"):
        if name in codec.configuration:
            return Named(codec.name, {**codec.configuration, name: size}, codec.must_understand)
    return codec


def _is_possible(made: ArrayMetadata) -> bool:
    """Return whether v3 can express an array, and its chunks can be encoded here without a loss."""
    dialect = dialect_named("v3")
    problems: list[Any] = []
    try:
        read = dialect.load(dialect.dump(made), problems.append)
        if problems or not isinstance(read, ArrayMetadata) or read.notes or not have_same_bytes(made, read):
            return False
        bound = chain.bind(read.codecs, spec_of(read))
        if bound.left_out or any(chain.losses(bound)):
            return False
        return not replacements.that_cannot_encode(chunking.split(read.codecs)[2])
    except OmnizarrError:
        return False
