"""Facts about chunks and codecs in an array's metadata, whether or not the codecs are available."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from omnizarr.codecs import registry, values
from omnizarr.errors import MetadataError, UnknownCodecError
from omnizarr.model import Named, grids

_MOST_SIZES: Final = 10**7
"""Chunks along a dimension whose lengths are listed one by one."""


def _sharding(codecs: tuple[Named, ...]) -> tuple[int, Named] | None:
    for position, codec in enumerate(codecs):
        if codec.name == "sharding_indexed":
            return position, codec
        if codec.name != "transpose":
            return None
    return None


def inner_chunk_shape(codecs: tuple[Named, ...]) -> tuple[int, ...] | None:
    """Return the shape of inner chunks in the order of the array's axes; None without shards."""
    found = _sharding(codecs)
    if found is None:
        return None
    position, codec = found
    lengths: Any = codec.configuration.get("chunk_shape")
    if not isinstance(lengths, (list, tuple)):
        return None
    for transpose in reversed(codecs[:position]):
        order: Any = transpose.configuration.get("order", ())
        # Encoded axis i is decoded axis order[i].
        lengths = [lengths[list(order).index(axis)] for axis in range(len(lengths))]
    return tuple(lengths)


def has_shards(codecs: tuple[Named, ...]) -> bool:
    """Return whether chunks are divided into inner chunks, also if the document does not say how."""
    return _sharding(codecs) is not None


def possible_inner_shape(codecs: tuple[Named, ...], ndim: int) -> tuple[int, ...] | None:
    """Return the shape of inner chunks; None if the document states none that is possible."""
    try:
        found = inner_chunk_shape(codecs)
    except (TypeError, ValueError, IndexError, AttributeError):
        return None
    is_shape = found is not None and len(found) == ndim
    return found if is_shape and all(type(each) is int and 0 < each < 2**63 for each in found or ()) else None


def axes_of_shards(codecs: tuple[Named, ...], ndim: int) -> tuple[int, ...]:
    """Return which axis of what becomes a shard corresponds to each axis of the array, after transpositions."""
    seen = list(range(ndim))
    for codec in codecs:
        if codec.name != "transpose":
            break
        order: Any = codec.configuration["order"]
        seen = [seen[axis] for axis in order]
    return tuple(seen.index(axis) for axis in range(ndim))


def is_fortran(codecs: tuple[Named, ...], ndim: int) -> bool:
    """Return whether the first axis varies fastest in the stored order."""
    return (
        bool(codecs) and codecs[0].name == "transpose" and codecs[0].configuration.get("order") == [*range(ndim)][::-1]
    )


def split(codecs: tuple[Named, ...]) -> tuple[tuple[Named, ...], Named | None, tuple[Named, ...]]:
    """Return the codecs by kind; with shards, those of the inner chunks."""
    if len(codecs) == 1 and codecs[0].name == "sharding_indexed":
        inner: Any = codecs[0].configuration.get("codecs")
        if isinstance(inner, (list, tuple)):
            codecs = tuple(values.named(codec) for codec in inner)
    at = next((i for i, codec in enumerate(codecs) if _kind(codec) == "array to bytes"), None)
    if at is None:
        return codecs, None, ()
    return codecs[:at], codecs[at], codecs[at + 1 :]


def _kind(codec: Named) -> str:
    try:
        return registry.find(codec.name).kind
    except (UnknownCodecError, ImportError):
        return "unknown"


def each_size(axis: grids.Axis, inner: int | None) -> Iterator[int]:
    """Yield the lengths of chunks along one dimension, each divided into inner chunks, cut at the array's edge."""
    for number in range(axis.count):
        start, size = axis.chunk(number)
        visible = min(size, axis.length - start)
        step = inner or size
        for at in range(0, visible, step):
            yield min(step, visible - at)


def sizes(axis: grids.Axis, inner: int | None) -> tuple[int, ...]:
    """Return the same lengths; raises MetadataError if there are too many."""
    number = sum(part.chunks * -(-part.size // (inner or part.size)) for part in axis.segments)
    if number > _MOST_SIZES:
        raise MetadataError(
            "there are too many chunks along a dimension to list the length of each",
            pointer="/chunk_grid",
            found=f"about {number:,}",
            expected=f"at most {_MOST_SIZES:,}",
            remedy="use cdata_shape, which has their number",
        )
    if inner is not None or axis.length >= 2**63:
        return tuple(each_size(axis, inner))
    found = [size for _, _, size, count in axis.segments for size in (size,) * count]
    if found:  # the array's edge may cut the last one
        start, _ = axis.chunk(axis.count - 1)
        found[-1] = min(found[-1], axis.length - start)
    return tuple(found)
