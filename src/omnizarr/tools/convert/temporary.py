"""Temporary objects: elements on their way from one block to another, see `omnizarr.tools.convert.routes`.

They are below the name ``omnizarr-conversion``, beside the target or where the user wants them, and are gone when the
array is complete. An object holds some cells of one block, one after the other, in C order. Elements are bytes as in
memory, so that the place of each cell is known and only its bytes is fetched. Elements of variable size are
encoded as in the target, each cell in an object of its own. Nothing is compressed: that takes longer than to write and
read the bytes, where stores are not much slower than local disks.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.codecs import chain
from omnizarr.codecs.chain import Chain, memory_of
from omnizarr.codecs.contract import AnyArray, ArraySpec, Buffer
from omnizarr.errors import OmnizarrError, Remedy, StoreError
from omnizarr.model import ArrayMetadata, Named
from omnizarr.nodes import chunking
from omnizarr.nodes.location import StorePath
from omnizarr.stores import pool, verbs
from omnizarr.tools.convert.routes import Room, Route, Stage, regions_of
from omnizarr.tools.streaming.regions import Box

NAME: Final = "omnizarr-conversion"
"""First part of the keys, below the place that holds them."""
_REMEDY: Final = Remedy("let nothing change temporary data, and continue with {resume}", resume=True)


def home_in(place: StorePath, target: StorePath | None = None) -> StorePath:
    """Return the prefix of all temporary objects of a conversion at a place.

    The place may be shared, so it depends on `target`.
    """
    home = place.at(f"{place.prefix}{NAME}")
    return home if target is None else home.at(f"{home.path}/{_digest(str(target.store.origin()), target.path)}")


def place_of(home: StorePath, path: str) -> StorePath:
    """Return the prefix of the temporary objects of one array."""
    return home.at(f"{home.path}/{_digest(path)}")


def remove(where: StorePath, but: Sequence[TemporaryObjects] = ()) -> None:
    """Remove all temporary objects below a place, but those of some shelves."""
    kept = {shelf.where.parent.prefix for shelf in but}
    for prefix in where.store.list_dir(where.prefix).prefixes:
        if prefix not in kept:
            verbs.delete_prefix(where.store, prefix)


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


class Cell(NamedTuple):
    """The elements that two blocks share."""

    number: int
    """In the block that writes it, in C order."""
    part: Box
    """Index of the block that writes or reads it."""


@dataclass(frozen=True)
class TemporaryObjects:
    """The temporary objects between two passes.

    Attributes
    ----------
    where : StorePath
        All keys are below.
    stage : Stage
    spec : ArraySpec
        Of the elements.
    serializer : Named, optional
        How elements of variable size are encoded.
    room : Room
        Bytes that may be in memory beside the blocks of the pass that reads them, and of the one that writes them.
    held : frozenset of int
        Blocks that have objects; None: all. The others hold only `fill`.
    fill : array
        Without dimensions.
    """

    where: StorePath
    stage: Stage
    spec: ArraySpec
    serializer: Named | None
    room: Room
    held: frozenset[int] | None
    fill: AnyArray = field(repr=False)

    def write(self, number: int, block: list[Any], on_copied: Callable[[], object] = lambda: None) -> None:
        """Write the objects of the block that a list holds. It is taken from there when all of it is copied.

        `on_copied` is called then, in any thread, though objects are still on their way.
        """
        cells = self._cells(number)
        starts = range(0, len(cells), self._joined)
        copied: list[int] = []

        def put(at: int) -> None:
            value = self._value_of(cells[at : at + self._joined], block[0])
            copied.append(at)
            if len(copied) == len(starts) and at == copied[-1]:
                block.clear()
                on_copied()
            self.where.store.set(self._key(number, at), value)

        pool.run(put, starts, self._at_once(self.room.writing), 1)

    def is_there(self, number: int) -> bool:
        """Return whether all objects of a block are there."""
        count = math.prod(len(row) - 1 for row in self._edges(number))
        return all(self.where.store.exists(self._key(number, at)) for at in range(0, count, self._joined))

    def read(self, number: int) -> AnyArray:
        """Return the elements of a block of the next pass. Raises StoreError if an object is missing or broken."""
        box = regions_of(self.stage.after).box(number)
        out = np.empty(_shape(box), self.spec.dtype)
        writers = regions_of(self.stage.before)

        def fetch(writer: int) -> None:
            cell = self._shared(writer, box)
            part = out[cell.part]
            found = self._get(writer, cell.number, part if part.flags.c_contiguous else None)
            if found is not part:
                part[...] = found

        pool.run(fetch, writers.touched(box), self._at_once(self.room.reading), 1)
        return out

    def each(self, number: int, task: Callable[[Box, AnyArray], None]) -> None:
        """Call a function in several threads with each part of a block and its bytes from the objects."""
        at_once = self._at_once(self.room.writing)
        pool.run(lambda cell: task(cell.part, self._get(number, cell.number)), self._cells(number), at_once, 1)

    # -- objects -------------------------------------------------------------------

    @property
    def _joined(self) -> int:
        return self.stage.joined if self.serializer is None else 1

    def _at_once(self, room: int) -> int:
        """Return how many objects are on their way at a time."""
        wanted = max(pool.default_concurrency(), self.where.store.features.concurrency)
        return max(1, min(wanted, room // max(self.stage.cell_bytes * self._joined, 1)))

    def _key(self, number: int, first: int) -> str:
        return f"{self.where.prefix}{number}/{first}"

    def _value_of(self, cells: list[Cell], values: AnyArray) -> Buffer:
        """Return the value of the object that holds cells of a block."""
        if self.serializer is not None:
            part = np.ascontiguousarray(values[cells[0].part])
            return self._chain(self.serializer, part.shape).encode(part)
        out = np.empty(sum(math.prod(_shape(cell.part)) for cell in cells), values.dtype)
        at = 0
        for cell in cells:
            shape = _shape(cell.part)
            end = at + math.prod(shape)
            out[at:end].reshape(shape)[...] = values[cell.part]
            at = end
        return memory_of(out)

    def _get(self, writer: int, cell: int, out: AnyArray | None = None) -> AnyArray:
        """Return the elements of a cell; in `out`, if there is one and they are stored as in memory."""
        edges = self._edges(writer)
        shape = tuple(row[at + 1] - row[at] for row, at in zip(edges, _index(cell, edges), strict=True))
        if self.held is not None and writer not in self.held:
            return np.broadcast_to(self.fill, shape)
        first = cell - cell % self._joined
        key = self._key(writer, first)
        if self.serializer is not None:
            return self._decoded(key, self._chain(self.serializer, shape))
        values = np.empty(shape, self.spec.dtype) if out is None else out
        start = (_before(cell, edges) - _before(first, edges)) * values.itemsize
        found = verbs.read_into(self.where.store, key, memory_of(values), start)
        if found is None or found < values.nbytes:
            found_text = "nothing" if found is None else f"{start + found} bytes"
            raise self._broken(key, found_text, f"at least {start + values.nbytes} bytes")
        return values

    def _chain(self, serializer: Named, shape: tuple[int, ...]) -> Chain:
        return chain.bind((serializer,), replace(self.spec, shape=shape))

    def _decoded(self, key: str, codecs: Chain) -> AnyArray:
        data = self.where.store.get(key)
        if data is None:
            raise self._broken(key, "nothing", "elements")
        try:
            return codecs.decode(data)
        except OmnizarrError as error:
            raise self._broken(key, str(error), "elements") from error

    def _broken(self, key: str, found: str, expected: str) -> StoreError:
        return StoreError(
            "a temporary object of the conversion is missing or broken",
            store=str(self.where.store),
            key=key,
            found=found,
            expected=expected,
            remedy=_REMEDY,
        )

    # -- cells ---------------------------------------------------------------------

    def _edges(self, number: int) -> list[list[int]]:
        """Return where a block of the first pass is cut by those of the next, along each axis."""
        box = regions_of(self.stage.before).box(number)
        rows = []
        for part, axis in zip(box, self.stage.after.axes, strict=True):
            first, last = axis.find(part.start)[0], axis.find(part.stop - 1)[0]
            inner = (axis.chunk(at)[0] for at in range(first + 1, last + 1))
            rows.append([part.start, *inner, part.stop])
        return rows

    def _cells(self, number: int) -> list[Cell]:
        """Return the cells of a block of the first pass, as parts of it."""
        edges = self._edges(number)
        rows = [[slice(a - row[0], b - row[0]) for a, b in pairwise(row)] for row in edges]
        return [Cell(at, part) for at, part in enumerate(product(*rows))]

    def _shared(self, writer: int, box: Box) -> Cell:
        """Return the part of a block of the next pass that lies in a block of the first pass."""
        own = regions_of(self.stage.before).box(writer)
        number = 0
        part = []
        for ours, theirs, axis in zip(box, own, self.stage.after.axes, strict=True):
            first, last = axis.find(theirs.start)[0], axis.find(theirs.stop - 1)[0]
            number = number * (last - first + 1) + axis.find(ours.start)[0] - first
            start, stop = max(ours.start, theirs.start), min(ours.stop, theirs.stop)
            part.append(slice(start - ours.start, stop - ours.start))
        return Cell(number, tuple(part))


def shelves(
    where: StorePath,
    route: Route,
    spec: ArraySpec,
    metadata: ArrayMetadata,
    held: Sequence[frozenset[int] | None],
    fill: AnyArray,
) -> tuple[TemporaryObjects, ...]:
    """Return the temporary objects of an array, which another route does not take for its own."""
    serializer = serializer_of(spec, metadata)
    kind = ([(stage, stage.before.axes, stage.after.axes) for stage in route.stages], spec.dtype.str)
    own = where.at(f"{where.path}/{_digest(kind)}")
    return tuple(
        TemporaryObjects(
            own.at(f"{own.path}/{number}"),
            stage,
            spec,
            serializer,
            Room(route.rooms[number + 1].reading, route.rooms[number].writing),
            held[number],
            fill,
        )
        for number, stage in enumerate(route.stages)
    )


def can_hold(spec: ArraySpec, metadata: ArrayMetadata) -> bool:
    """Return whether elements can be put into temporary objects."""
    return _is_plain(spec) or serializer_of(spec, metadata) is not None


def serializer_of(spec: ArraySpec, metadata: ArrayMetadata) -> Named | None:
    """Return the codec that encodes elements of variable size; None if they have a fixed one, or there is none."""
    if _is_plain(spec):
        return None
    filters, serializer, _ = chunking.split(metadata.codecs)
    is_safe = serializer is not None and serializer.name in _SERIALIZERS and not filters
    return serializer if is_safe else None


_SERIALIZERS: Final = frozenset({"vlen-utf8", "vlen-bytes"})


def _is_plain(spec: ArraySpec) -> bool:
    """Whether the bytes of elements in memory are all that there is to them."""
    return spec.dtype.itemsize > 0 and not spec.dtype.hasobject and spec.dtype.kind != "T"


def _shape(box: Box) -> tuple[int, ...]:
    return tuple(part.stop - part.start for part in box)


def _index(number: int, edges: list[list[int]]) -> tuple[int, ...]:
    """Return which part along each axis a cell is."""
    index = []
    for row in reversed(edges):
        number, at = divmod(number, len(row) - 1)
        index.append(at)
    return tuple(reversed(index))


def _before(number: int, edges: list[list[int]]) -> int:
    """Return how many elements the cells before one have, in C order."""
    total, own = 0, 1
    lengths = [row[-1] - row[0] for row in edges]
    for axis, (row, at) in enumerate(zip(edges, _index(number, edges), strict=True)):
        total += own * (row[at] - row[0]) * math.prod(lengths[axis + 1 :])
        own *= row[at + 1] - row[at]
    return total
