"""Pending records: data written beyond the end of unlimited dimensions that is not stored yet.

Growing a dimension changes many documents: that of each variable, and that of the group. So a session keeps data
beyond the stored end in memory, and stores all of it in one growth, in the order of `omnizarr.nodes.resizing`:
data first, then the arrays, last the record of the group. Chunks beyond a stored end exist only while this runs.
So other writers and readers see the same as if each write had been stored separately.

Records are stored by `Dataset.sync` and `Dataset.close`; before any other change that depends on them; when a
dataset is opened in the same process; before the process forks or ends; and by the next write after some seconds
or many bytes. Data written in one piece is read from memory. Otherwise it is stored first. If storing fails, the
records are kept, and the call raises an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr import indexing
from omnizarr.engine import Binding
from omnizarr.errors import OmnizarrError
from omnizarr.nodes import chunking, renewing, unsaved
from omnizarr.nodes.writing import write_values
from omnizarr.support.locks import RLock

if TYPE_CHECKING:
    from omnizarr.netcdf.dimension import Dimension
    from omnizarr.netcdf.header import GroupHeader
    from omnizarr.netcdf.session import Session
    from omnizarr.netcdf.variable import Variable

Shape: TypeAlias = tuple[int, ...]
Selection: TypeAlias = "tuple[slice | NDArray[np.intp], ...]"

MOST: Final = 32 * 2**20
"""Maximum number of bytes in one session."""
MOST_AT_ONCE: Final = 24 * 2**20
"""The same, if a dimension is about to become longer than all variables."""
LONGEST: Final = 5.0
"""Seconds after which the next write stores pending records."""
_FIRST_ROOM: Final = 16
_GROWTH: Final = 16
_ROOMY: Final = 2 * 2**20
"""Up to this many bytes, a piece makes room for `_GROWTH` times as many records as it has. Copying them to a new place
takes longer than storing them, and pages that are not touched take no memory."""
_EXACT: Final = frozenset({"bytes", "vlen-utf8", "vlen-bytes", "transpose", "numcodecs.shuffle"})
"""Codecs of elements that return exactly what they got."""
_COST: Final = 4096
"""Bytes that a piece counts in addition to its values, because it is stored separately."""


class Place(Enum):
    """Where a selection is, relative to the stored ends of unlimited dimensions."""

    INSIDE = auto()
    ACROSS = auto()
    BEYOND = auto()


class Piece:
    """Data written at once, or one record after the other.

    Attributes
    ----------
    selection : tuple
        The selection of `omnizarr.netcdf.selections.Picked`.
    start, stop : int
        Its range along the first dimension; equal if records cannot be added.
    """

    __slots__ = ("_values", "selection", "start", "stop")

    def __init__(self, selection: Selection, values: NDArray[Any]) -> None:
        self._values = values
        self.selection = selection
        self.start = self.stop = 0
        first = selection[0]
        if isinstance(first, slice) and all(isinstance(each, slice) and each.step == 1 for each in selection):
            self.start, self.stop = first.start, first.stop

    @classmethod
    def kept(cls, selection: Selection, values: NDArray[Any], room: NDArray[Any] | None) -> Piece:
        """Return a piece with a copy of the values, in the room of an earlier piece if they fit."""
        piece = cls(selection, values)
        length = piece.stop - piece.start
        is_fit = room is not None and (room.dtype, room.shape[1:]) == (values.dtype, values.shape[1:])
        if length != len(values) or (length == 1 and not is_fit):  # room is made when others follow
            piece._values = values.copy()
            return piece
        if room is None or not is_fit or len(room) < length:
            room = _room(length, values)
        room[:length] = values
        piece._values = room
        return piece

    @property
    def room(self) -> NDArray[Any] | None:
        """Memory for a later piece, after this one is stored: with pages that the system need not find again."""
        return self._values if self.stop > self.start and not self._values.dtype.hasobject else None

    @property
    def values(self) -> NDArray[Any]:
        """The values to store."""
        return self._values[: self.stop - self.start] if self.stop > self.start else self._values

    def extend(self, selection: Selection, values: NDArray[Any]) -> bool:
        """Add data that follows along the first dimension, and matches along others. Return whether it does."""
        first = selection[0]
        if self.stop == self.start or not isinstance(first, slice) or first.step != 1 or first.start != self.stop:
            return False
        for new, old in zip(selection[1:], self.selection[1:], strict=True):
            if not isinstance(new, slice) or new != old:
                return False
        held = self.stop - self.start
        needed = held + len(values)
        if needed > len(self._values):
            roomy = _room(max(needed, 2 * held), self._values)
            roomy[:held] = self._values[:held]
            self._values = roomy
        self._values[held:needed] = values
        # Set last, so that an interrupt leaves either the old or the new state.
        self.stop += len(values)
        return True

    @property
    def whole(self) -> Selection:
        """The selection of the whole piece."""
        if self.stop == self.start:
            return self.selection
        return (slice(self.start, self.stop, 1), *self.selection[1:])

    def part(self, selection: Selection) -> NDArray[Any] | None:
        """Return a copy of the selected values, if the selection is completely inside."""
        if self.stop == self.start or not _lies_in(selection, self.whole):
            return None
        moved = [_moved(each, own.start) for each, own in zip(selection, self.whole, strict=True)]  # type: ignore[union-attr]
        held = self.values
        if all(isinstance(each, slice) for each in moved):
            return held[tuple(moved)].copy()
        ranges = [
            np.arange(length)[each] if isinstance(each, slice) else each
            for each, length in zip(moved, held.shape, strict=True)
        ]
        part: NDArray[Any] = held[np.ix_(*ranges)]
        return part

    def meets(self, selection: Selection) -> bool:
        """Return whether a selection may overlap the piece."""
        pairs = zip(map(_bounds, selection), map(_bounds, self.whole), strict=True)
        return all(start < end and begin < stop for (start, stop), (begin, end) in pairs)


def _room(least: int, like: NDArray[Any]) -> NDArray[Any]:
    """Return room for at least so many records, and for more if that takes no memory before they come."""
    fitting = _ROOMY // max(like[:1].nbytes, 1)
    return np.empty((max(least, min(_GROWTH * least, fitting), _FIRST_ROOM), *like.shape[1:]), like.dtype)


class Waiting(NamedTuple):
    """The part of a read that comes from pending records.

    Attributes
    ----------
    before : tuple, optional
        The selection to read from the store, which comes before it along the first dimension.
    values : ndarray
    """

    before: Selection | None
    values: NDArray[Any]


class Records:
    """The pending records of one session.

    Attributes
    ----------
    waits : bool
        Whether there are pending records.
    """

    __slots__ = ("__weakref__", "_is_storing", "_pieces", "_rooms", "_session", "_since", "_size", "waits")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._is_storing = False
        self._forget()
        unsaved.know(self)

    @property
    def lock(self) -> Any:
        """The lock of the session."""
        return self._session.lock

    def begin_anew(self) -> None:
        """Start empty in a forked child: pending records belong to its parent, and so do threads."""
        self._session.lock = RLock()
        self._is_storing = False
        self.drop()

    def _forget(self) -> None:
        self._pieces: dict[Variable, list[Piece]] = {}
        self._rooms: dict[Variable, NDArray[Any] | None] = {}
        self._size = 0
        self._since = 0.0
        self.waits = False

    # -- writing ------------------------------------------------------------------------

    def write(self, variable: Variable, selection: Selection, values: NDArray[Any], grown: Shape) -> bool:
        """Keep or store a write beyond the stored end. `grown` is the shape that it needs.

        Return False, without doing anything, if it is not beyond the end: another thread may just have stored
        that end.
        """
        with self._session.lock:
            if self.waits and self._is_time(variable, values.nbytes, grown):
                stored = self._pieces
                self.store()
                self._rooms = {each: pieces[-1].room for each, pieces in stored.items()}
            place = place_of(variable, selection)
            if place is Place.INSIDE:
                return False
            if not self._session.buffered or values.nbytes > MOST or place is Place.ACROSS:
                self.store()
                wanted = {dim: end for dim, end in zip(variable._dims, grown, strict=True) if end > dim.stored}
                self._grow({variable: [Piece(selection, values)]}, wanted)
            else:
                self._keep(variable, selection, values, grown)
            return True

    def _is_time(self, variable: Variable, more: int, grown: Shape) -> bool:
        """Whether what waits must be stored before more bytes wait."""
        # Rather at the beginning of a record, where all variables end at one length: what comes later is then also new.
        begins = any(end > dim.size for dim, end in zip(variable._dims, grown, strict=True))
        most = MOST_AT_ONCE if begins else MOST
        return self._size + more > most or time.monotonic() - self._since > LONGEST

    def _keep(self, variable: Variable, selection: Selection, values: NDArray[Any], grown: Shape) -> None:
        if not self.waits:
            self._since = time.monotonic()
            unsaved.wait(self)
            self.waits = True
        pieces = self._pieces.setdefault(variable, [])
        if not (pieces and pieces[-1].extend(selection, values)):
            pieces.append(Piece.kept(selection, values, self._rooms.pop(variable, None)))
            self._size += _COST
        self._size += values.nbytes
        for dim, length in zip(variable._dims, grown, strict=True):
            dim._size = max(dim._size, length)

    # -- storing ------------------------------------------------------------------------

    def store(self) -> None:
        """Store all pending records. If that fails, they stay pending."""
        if not self.waits:
            self._rooms = {}
            return
        with self._session.lock:
            if self._is_storing or not self.waits:
                return
            wanted = {dim: dim.size for each in self._pieces for dim in each._dims if dim.size > dim.stored}
            for variable, pieces in self._pieces.items():
                for piece in pieces:  # or an interrupt came before the dimensions were updated
                    for dim, (_, end) in zip(variable._dims, map(_bounds, piece.whole), strict=True):
                        if end > wanted.get(dim, dim.stored):
                            wanted[dim] = end
            self._is_storing = True
            try:
                self._grow(self._pieces, wanted)
            finally:
                self._is_storing = False
            self._forget()
            unsaved.forget(self)

    def store_waiting(self) -> None:
        """Store all pending records, before a fork or at the end of the program."""
        self.store()

    def settle(self, variable: Variable, selection: Selection) -> None:
        """Store pending records, if a selection to be read or written directly may overlap them."""
        if place_of(variable, selection) is not Place.INSIDE or not self._is_apart(variable):
            self.store()

    def _is_apart(self, variable: Variable) -> bool:
        """Whether no pending records are before the stored end of a variable."""
        return _is_ahead(variable) or variable not in self._pieces

    def read(self, variable: Variable, selection: Selection) -> Waiting | None:
        """Return the pending values of a selection; None if there are none, or if they have been stored now."""
        if place_of(variable, selection) is Place.INSIDE and self._is_apart(variable):
            return None
        with self._session.lock:
            found = self._found(variable, selection, place_of(variable, selection))
            if found is None:
                self.store()
            return found

    def _found(self, variable: Variable, selection: Selection, place: Place) -> Waiting | None:
        """Return the values of a selection, if everything pending was written in one piece, after everything else."""
        pieces = self._pieces.get(variable)
        if pieces is None or not _is_kept_exactly(variable):
            return None
        first, *others = selection
        before: Selection | None = None
        if place is Place.ACROSS:
            end = variable._dims[0].stored
            if not isinstance(first, slice) or first.step != 1 or not variable._dims[0].unlimited:
                return None
            before, selection = (slice(first.start, end, 1), *others), (slice(end, first.stop, 1), *others)
            if first.start >= end or place_of(variable, before) is not Place.INSIDE:
                return None
        for piece in reversed(pieces):
            part = piece.part(selection)
            if part is not None:
                return Waiting(before, part)
            if piece.meets(selection):
                return None
        return None

    def drop(self) -> str:
        """Drop pending records, and return the names of the dimensions that became shorter."""
        with self._session.lock:
            ahead = {dim.path: dim for each in self._pieces for dim in each._dims if dim.size > dim.stored}
            for dim in ahead.values():
                dim._size = dim.stored
            self._forget()
            unsaved.forget(self)
        return ", ".join(ahead)

    def _grow(self, pieces: Mapping[Variable, list[Piece]], wanted: Mapping[Dimension, int]) -> None:
        """Store pieces, and lengthen unlimited dimensions to at least this length.

        The arrays come first, then the record of the group. A reader that sees the new length there finds all
        arrays with that length and their data. If something fails, it is undone.
        """
        undo: list[Callable[[], None]] = []
        try:
            with renewing.together(self._session.root.store, every=True):
                for variable in dict.fromkeys([*pieces, *users([*wanted])]):
                    lengths = {axis: wanted[dim] for axis, dim in enumerate(variable._dims) if dim in wanted}
                    undo.append(_lengthen(self._session, variable, lengths, pieces.get(variable, [])))
            for dim, length in wanted.items():
                self.enter(dim, length)
        except BaseException:
            for each in undo:
                with suppress(OmnizarrError):
                    each()
            raise

    def enter(self, dim: Dimension, length: int) -> None:
        """Write the minimum length of a dimension into the record of its group."""
        sizes: list[int] = []

        def longer(header: GroupHeader) -> GroupHeader:
            known = header.dimensions.get(dim.name, dim.header)
            sizes.append(max(known.size, dim.stored, length))
            grown = replace(known, size=sizes[-1], unlimited=True)
            return replace(header, dimensions={**header.dimensions, dim.name: grown})

        self._session.change_group(dim.group()._where, longer)
        dim.adopt(sizes[-1])


def _lengthen(
    session: Session, variable: Variable, lengths: Mapping[int, int], pieces: list[Piece]
) -> Callable[[], None]:
    """Lengthen an array to at least this length, with its data. Return a function that undoes it."""
    before = _stored(variable)
    concurrency = variable._array.config.concurrency

    def write(binding: Binding) -> None:
        for piece in pieces:
            plan = indexing.orthogonal(piece.whole, binding.grid)
            write_values(binding, plan, piece.values, concurrency)

    covers = partial(_covered, [piece.whole for piece in pieces])
    return session.lengthen(variable._stored, before, lengths, write if pieces else None, covers)


def place_of(variable: Variable, selection: Selection) -> Place:
    """Return where a selection is: before the stored end, across it, or completely beyond it."""
    place = Place.INSIDE
    for dim, selector in zip(variable._dims, selection, strict=True):
        if dim.unlimited:
            start, stop = _bounds(selector)
            if start >= dim.stored:
                return Place.BEYOND
            if stop > dim.stored:
                place = Place.ACROSS
    return place


def _is_ahead(variable: Variable) -> bool:
    return any([dim.size > dim.stored for dim in variable._dims])  # noqa: C419 - twice as fast


def _bounds(selector: slice | NDArray[np.intp]) -> tuple[int, int]:
    """Return the first selected element, and the end of the last one."""
    if not isinstance(selector, slice):
        return int(selector.min()), int(selector.max()) + 1
    if selector.step == 1:
        return selector.start, selector.stop
    picked = range(selector.start, -1 if selector.stop is None else selector.stop, selector.step)
    return min(picked[0], picked[-1]), max(picked[0], picked[-1]) + 1


def _lies_in(selection: Selection, whole: Selection) -> bool:
    for each, own in zip(selection, whole, strict=True):
        if not isinstance(own, slice) or own.step != 1:
            return False
        start, stop = _bounds(each)
        if start >= stop or start < own.start or stop > own.stop:
            return False
    return True


def _moved(selector: slice | NDArray[np.intp], by: int) -> slice | NDArray[np.intp]:
    """Return a selection of the same elements, counted from another one."""
    if not isinstance(selector, slice):
        return selector - by
    stop = None if selector.stop is None or selector.stop < by else selector.stop - by
    return slice(selector.start - by, stop, selector.step)


def _is_kept_exactly(variable: Variable) -> bool:
    """Return whether stored values of a variable are read unchanged: all codecs are known, and none rounds."""
    filters, serializer, _ = chunking.split(variable._stored.metadata.codecs)
    return serializer is not None and serializer.name in _EXACT and all(each.name in _EXACT for each in filters)


def _stored(variable: Variable) -> Shape:
    return tuple([dim.stored for dim in variable._dims])


def _covered(selections: Sequence[Selection], before: Shape, after: Shape) -> Shape:
    """Return the shape up to which everything that is added along one dimension, and along no other, is selected."""
    axes = [axis for axis, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    reach = list(before)
    for selection in selections if len(axes) == 1 else ():
        is_box = all(isinstance(part, slice) and part.step == 1 for part in selection)
        begins = [old if axis in axes else 0 for axis, old in enumerate(reach)]
        ends = [0 if axis in axes else new for axis, new in enumerate(after)]
        if is_box and all(
            part.start <= begin and part.stop >= end  # type: ignore[union-attr]
            for part, begin, end in zip(selection, begins, ends, strict=True)
        ):
            reach[axes[0]] = max(reach[axes[0]], min(_bounds(selection[axes[0]])[1], after[axes[0]]))
    return tuple(reach)


def users(dims: Sequence[Dimension]) -> list[Variable]:
    """Return the variables of the dataset that have one of the dimensions."""
    return dims[0].group()._root()._users(*dims) if dims else []


def store_all() -> None:
    """Store pending records of all sessions of this process. What fails stays pending for `sync` and `close`."""
    for each in unsaved.waiting():
        if isinstance(each, Records):
            with suppress(OmnizarrError, OSError):
                each.store()
