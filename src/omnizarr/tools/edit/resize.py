"""Resize an array, with the consequences for its chunks and for the arrays in the same group."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from omnizarr.errors import ShapeError, StoreError
from omnizarr.model import ArrayMetadata, dimensions
from omnizarr.nodes import bindings, detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.location import StorePath
from omnizarr.tools.streaming.chunks import Chunks

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Resize:
    """What another shape means.

    Attributes
    ----------
    where : StorePath
    old, new : tuple of int
    deleted, cut : int
        Stored chunks that are beyond the new shape, wholly and in part.
    remarks : tuple of str
        Arrays beside it that share a dimension, which has another length there.
    """

    where: StorePath
    old: Shape
    new: Shape
    deleted: int
    cut: int
    remarks: tuple[str, ...]

    @property
    def shrinks(self) -> bool:
        """Whether elements go."""
        return any(map(operator.lt, self.new, self.old))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "old": list(self.old),
            "new": list(self.new),
            "deleted": self.deleted,
            "cut": self.cut,
            "remarks": list(self.remarks),
        }


def plan(where: StorePath, shape: str) -> Resize:
    """Return the shape that is typed as ``400,:,:`` or ``time=400``.

    Raises ShapeError if it is not valid.
    """
    found = detection.open_array(where)
    metadata, where = found.metadata, found.where
    new = _parse(where, shape, metadata)
    deleted = cut = 0
    if any(map(operator.lt, new, metadata.shape)):
        chunks = Chunks.of(where, bindings.with_keys_in_use(where, metadata))
        for coords in _stored(chunks):
            bounds = [axis.chunk(at) for axis, at in zip(chunks.grid.axes, coords, strict=True)]
            if any(start >= length for (start, _), length in zip(bounds, new, strict=True)):
                deleted += 1
            elif any(
                min(start + size, had) > length
                for (start, size), length, had in zip(bounds, new, metadata.shape, strict=True)
            ):
                cut += 1
    return Resize(where, metadata.shape, new, deleted, cut, tuple(_disagreements(where, metadata, new)))


def run(resize: Resize) -> None:
    """Do it; consolidated metadata is renewed."""
    found = detection.open_array(resize.where)
    if found.metadata.shape != resize.old:
        raise StoreError(
            "another writer has resized the array meanwhile",
            store=str(resize.where.store),
            path=resize.where.path,
            found=found.metadata.shape,
            expected=str(resize.old),
        )
    Array(found.where, found.metadata).resize(resize.new)


def _stored(chunks: Chunks) -> Iterator[Any]:
    try:
        yield from chunks.stored()
    except StoreError:  # cannot be listed, and too many to be asked for
        return


def _parse(where: StorePath, text: str, metadata: ArrayMetadata) -> Shape:
    old = metadata.shape
    parts = [part.strip() for part in text.strip("()[] ").removesuffix(",").split(",")]
    if "=" in text:
        names = list(_names(metadata))
        lengths = list(old)
        for part in parts:
            name, _, length = part.partition("=")
            if name.strip() not in names:
                known = ", ".join(map(str, names)) or "none"
                raise ShapeError(
                    "there is no such dimension",
                    store=str(where.store),
                    path=where.path,
                    found=repr(name.strip()),
                    expected=f"one of {known}",
                )
            lengths[names.index(name.strip())] = _length(where, length)
        return tuple(lengths)
    if len(parts) != len(old):
        raise ShapeError(
            "an array keeps its number of dimensions",
            store=str(where.store),
            path=where.path,
            found=text,
            expected=f"{len(old)} lengths, as in {','.join(map(str, old))}",
        )
    return tuple(had if part in (":", "") else _length(where, part) for part, had in zip(parts, old, strict=True))


def _length(where: StorePath, text: str) -> int:
    try:
        length = int(text)
    except ValueError:
        length = -1
    if length < 0:
        raise ShapeError(
            "a length is a number, or a colon to keep it",
            store=str(where.store),
            path=where.path,
            found=repr(text),
        )
    return length


def _names(metadata: ArrayMetadata) -> tuple[str | None, ...]:
    return dimensions.names_of(metadata) or ()


def _disagreements(where: StorePath, metadata: ArrayMetadata, new: Shape) -> Iterator[str]:
    """Yield the arrays in the same group that share a changed dimension and have another length along it."""
    changed = {
        name: length
        for name, had, length in zip(_names(metadata), metadata.shape, new, strict=False)
        if name is not None and had != length
    }
    if not changed or not where.path:
        return
    for name, found in detection.load_children(where.parent, detection.children(where.parent), metadata.dialect):
        other = getattr(found, "metadata", None)
        if name == where.name or not isinstance(other, ArrayMetadata):
            continue
        for dimension, length in zip(_names(other), other.shape, strict=False):
            if dimension in changed and changed[dimension] != length:
                yield f"{name!r} has {length} elements along {dimension!r}: resize it, too"
