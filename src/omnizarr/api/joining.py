"""Many arrays as one: `concat`, `stack` and `block`."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from omnizarr.api.opening import open_array
from omnizarr.errors import JoinError, Remedy
from omnizarr.formats.conventions import fill_values
from omnizarr.nodes.array import Array
from omnizarr.nodes.lazy.deferred import Deferred, Sources
from omnizarr.nodes.lazy.tree import Filled, joined, leaves
from omnizarr.nodes.lazy.view import LazyArray, all_lazy, as_lazy, attributes_of, with_attributes
from omnizarr.nodes.packing import HOW_STORED
from omnizarr.stores import pool, urls

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_UNITS: Final = ("units", "calendar")
_AT_ONCE: Final = 16
"""Arrays that are opened at the same time."""


def concat(
    sources: Iterable[Any],
    axis: int = 0,
    *,
    like: Any = None,
    lengths: int | Iterable[int] | None = None,
    dtype: DTypeLike | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> LazyArray:
    """Return several arrays one behind the other along a dimension, without reading them.

    The arrays may differ in format, store, codecs, chunks and data type. Where they are packed in different ways
    (their attributes ``scale_factor``, ``add_offset``, ``_FillValue`` or ``missing_value`` differ), each is unpacked
    by its own attributes, and `LazyArray.notes` says so.

    Parameters
    ----------
    sources : iterable of array_like
        `omnizarr.Array`, `omnizarr.LazyArray`, NumPy and dask arrays, and others with a shape, a dtype and brackets;
        paths and URLs of arrays, which are opened for reading, several at once. All have the same lengths except along
        `axis`.
    axis : int
        The dimension along which they follow each other.
    like : array_like or path, optional
        What the arrays at all paths and URLs are like, so that none of them is opened before its elements are needed:
        shape, data type, dimension names, chunks and attributes. Pass one of the paths, and only that is opened; or an
        array, or anything with a shape and a data type. A source that is different is an error when it is read.
    lengths : int or sequence of int, optional
        Length of each source along `axis`, where it differs from that of `like`.
    dtype : data-type, optional
        Data type of the result. The default is what NumPy promotes the data types to.
    storage_options : mapping, optional
        For opening URLs, as for `omnizarr.open_array`.

    Returns
    -------
    LazyArray

    Raises
    ------
    JoinError
        If the arrays do not fit together: shapes, data types, names of dimensions, units. It names two of them.
    StaleError
        When you read: a source is not what it was when they were joined, or not as `like` and `lengths` say.

    Examples
    --------
    >>> import omnizarr
    >>> january = omnizarr.create_array({}, data=[[1, 2], [3, 4]], dtype="int16")
    >>> february = omnizarr.create_array({}, data=[[5.5, 6.5]])
    >>> both = omnizarr.concat([january, february])
    >>> both.shape, both.dtype
    ((3, 2), dtype('float64'))
    >>> both[1:, 0]
    array([3. , 5.5])

    A year of daily files, of which one is opened now, and each other one when its elements are needed:

    >>> days = [f"2024-{day:03}.zarr" for day in range(1, 367)]
    >>> day = omnizarr.create_array({}, shape=(24, 180, 360), dtype="float32", chunks=(1, 180, 360))
    >>> omnizarr.concat(days, like=day).shape
    (8784, 180, 360)
    """
    found = list(sources)
    if like is None and lengths is not None:
        raise JoinError(
            "lengths are given, but not what else the arrays are like",
            remedy=Remedy("pass {like}: one of the paths, or an array", like=...),
        )
    described = None if like is None else _Like.of(like, storage_options)
    if described is not None and lengths is not None:
        described = described.with_lengths(axis, lengths, len(found))
    views = _views(found, storage_options, described)
    ndim = views[0].ndim
    if not -ndim <= axis < ndim:
        raise JoinError("there is no such dimension", found=f"axis {axis}", expected=f"{-ndim} to {ndim - 1}")
    return _joined(views, axis % ndim, dtype)


def stack(
    sources: Iterable[Any],
    axis: int = 0,
    *,
    like: Any = None,
    dtype: DTypeLike | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> LazyArray:
    """Return arrays of one shape along a new dimension, without reading them.

    Parameters
    ----------
    sources : iterable of array_like
        As for `concat`, all of the same shape.
    axis : int
        Position of the new dimension.
    like : array_like or path, optional
        What the arrays at all paths and URLs are like, so that none of them is opened now; see `concat`.
    dtype : data-type, optional
        Data type of the result.
    storage_options : mapping, optional
        For opening URLs.

    Returns
    -------
    LazyArray

    Raises
    ------
    JoinError
        As for `concat`.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> omnizarr.stack([np.arange(3), np.arange(3) * 10], axis=1)[...]
    array([[ 0,  0],
           [ 1, 10],
           [ 2, 20]])
    """
    views = _views(sources, storage_options, None if like is None else _Like.of(like, storage_options))
    ndim = views[0].ndim + 1
    if not -ndim <= axis < ndim:
        raise JoinError("there is no such dimension", found=f"axis {axis}", expected=f"{-ndim} to {ndim - 1}")
    axis %= ndim
    new = (slice(None),) * axis + (None,)
    for view in views:
        _check_shapes(views[0], view, None)
    return _joined([view.lazy[new] for view in views], axis, dtype)


def block(
    rows: Sequence[Any],
    *,
    fill_value: Any = 0,
    like: Any = None,
    dtype: DTypeLike | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> LazyArray:
    """Return a mosaic of arrays, without reading them.

    Parameters
    ----------
    rows : nested sequence of array_like or None
        A list of arrays is joined along the last dimension, a list of lists along the last two, and so on, as by
        `numpy.block`. None is a gap, as large as its neighbours in its row and column.
    fill_value : scalar
        Value of the elements in gaps.
    like : array_like or path, optional
        What the arrays at all paths and URLs are like, so that none of them is opened now; see `concat`.
    dtype : data-type, optional
        Data type of the result.
    storage_options : mapping, optional
        For opening URLs.

    Returns
    -------
    LazyArray

    Raises
    ------
    JoinError
        If the arrays do not fit together, or the size of a gap is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import omnizarr
    >>> omnizarr.block([[np.ones((1, 2), int), None], [None, np.full((2, 1), 5)]])[...]
    array([[1, 1, 0],
           [0, 0, 5],
           [0, 0, 5]])
    """
    depth = _depth(rows)
    tiles = dict(_tiles(rows, ()))
    places = [place for place, tile in tiles.items() if tile is not None]
    if not places:
        raise JoinError("a mosaic needs at least one array", found="none")
    described = None if like is None else _Like.of(like, storage_options)
    opened = _views([tiles[place] for place in places], storage_options, described)
    views = dict(zip(places, opened, strict=True))
    ndim = max(depth, *(view.ndim for view in views.values()))
    views = {place: _with_dimensions(view, ndim) for place, view in views.items()}
    example = next(iter(views.values()))
    first = ndim - depth
    lengths: list[dict[int, int]] = [{} for _ in range(depth)]
    for place, view in views.items():
        for level, number in enumerate(place):
            known = lengths[level].setdefault(number, view.shape[first + level])
            if known != view.shape[first + level]:
                raise JoinError(
                    "arrays in one row or column of a mosaic have different lengths",
                    found=f"{view.shape[first + level]} along axis {first + level} at {place}",
                    expected=str(known),
                )
    same, note = as_one_packing(list(views.values()))
    views = dict(zip(views, same, strict=True))
    common = np.dtype(dtype) if dtype is not None else _common_dtype(same)
    for place in tiles:
        if place not in views:
            try:
                size = [lengths[level][number] for level, number in enumerate(place)]
            except KeyError:
                raise JoinError(
                    "the size of a gap is unknown", found=f"no array in its row or column, at {place}"
                ) from None
            views[place] = LazyArray(
                Filled((*example.shape[:first], *size), common, fill_value), example.dimension_names
            )
    for level in reversed(range(depth)):
        groups: dict[tuple[int, ...], list[LazyArray]] = {}
        for place in sorted(views):
            groups.setdefault(place[:level], []).append(views[place])
        views = {place: _joined(parts, first + level, common) for place, parts in groups.items()}
    whole = views[()]
    return LazyArray(whole._node, whole.dimension_names, whole.notes + note)  # noqa: SLF001 - a part of LazyArray


@dataclass(frozen=True, slots=True)
class _Opening:
    """Opens the sources that were described."""

    storage_options: Mapping[str, Any] | None

    def __call__(self, place: str, path: str) -> Array:
        return open_array(place, mode="r", storage_options=self.storage_options)


@dataclass(frozen=True, slots=True)
class _Like:
    """What all sources at paths are like, which are not opened."""

    view: LazyArray
    shapes: Sequence[tuple[int, ...]]
    """The shape of each source; of all, if there is one."""
    sources: Sources

    @classmethod
    def of(cls, given: Any, storage_options: Mapping[str, Any] | None) -> _Like:
        if isinstance(given, str | PathLike):
            given = open_array(given, mode="r", storage_options=storage_options)
        if not (hasattr(given, "shape") and hasattr(given, "dtype")):
            raise JoinError(
                "what sources are like has no shape, or no data type",
                found=repr(given),
                expected="a path, an array, or anything with a shape and a dtype",
            )
        view = as_lazy(given)
        return cls(view, [view.shape], Sources(_Opening(storage_options)))

    def with_lengths(self, axis: int, lengths: int | Iterable[int], count: int) -> _Like:
        """Return the same for sources of other lengths along an axis."""
        shape = self.view.shape
        if not -len(shape) <= axis < len(shape):
            raise JoinError(
                "there is no such dimension", found=f"axis {axis}", expected=f"{-len(shape)} to {len(shape) - 1}"
            )
        axis %= len(shape)
        found = [operator.index(each) for each in (lengths if isinstance(lengths, Iterable) else (lengths,))]
        if len(found) != count and isinstance(lengths, Iterable):
            raise JoinError("there must be one length for each source", found=len(found), expected=count)
        if found and min(found) < 0:
            raise JoinError("a length is negative", found=min(found), expected="0 or more")
        known = {length: (*shape[:axis], length, *shape[axis + 1 :]) for length in found}
        return replace(self, shapes=[known[length] for length in found])

    def all(self, given: Sequence[Any]) -> list[Any]:
        """Return sources as they are, and an array that is opened later for each path."""
        view, attributes, chunks = self.view, self.view.attrs, self.view.chunks
        dtype, names = view.dtype, view.dimension_names
        found = list(given)
        for number, source in enumerate(found):
            if isinstance(source, str | PathLike):
                place = os.fspath(source)
                if urls.scheme_of(place) is None:  # the current directory may be another one when it is opened
                    place = os.path.abspath(os.path.expanduser(place))  # noqa: PTH100, PTH111 - several times faster
                shape = self.shapes[number % len(self.shapes)]
                found[number] = Deferred(
                    self.sources, place, "", shape, dtype, chunks, names, attributes, since="described"
                )
        return found


def _views(
    sources: Iterable[Any], storage_options: Mapping[str, Any] | None, like: _Like | None = None
) -> list[LazyArray]:
    found = list(sources) if like is None else like.all(list(sources))
    if not found:
        raise JoinError("there is nothing to join", found="no sources", expected="at least one")
    paths = [position for position, source in enumerate(found) if isinstance(source, str | PathLike)]

    def opened(position: int) -> Array:
        return open_array(found[position], mode="r", storage_options=storage_options)

    gather = pool.gather_near if all(urls.is_local(os.fspath(found[at])) for at in paths) else pool.gather
    for number, array in gather(opened, paths, min(len(paths), _AT_ONCE)):
        found[paths[number]] = array
    return all_lazy(found)


def _joined(views: Sequence[LazyArray], axis: int, dtype: DTypeLike | None) -> LazyArray:
    _check_lengths(views, axis)
    notes = tuple(dict.fromkeys(note for view in views for note in view.notes))
    views, note = as_one_packing(views)
    return join(views, axis, dtype, notes + note)


def join(
    views: Sequence[LazyArray], axis: int, dtype: DTypeLike | None = None, notes: tuple[str, ...] = ()
) -> LazyArray:
    """Return arrays whose elements mean the same one behind the other. Raises JoinError if they do not fit together."""
    _check_lengths(views, axis)
    for view in _first_with_each(views, lambda view: view.dimension_names):
        _check_names(views[0], view)
    wanted = np.dtype(dtype) if dtype is not None else _common_dtype(views)
    names = next((view.dimension_names for view in views if view.dimension_names), None)
    nodes = [view._node for view in views]  # noqa: SLF001 - a part of LazyArray
    return LazyArray(with_attributes(views, joined(nodes, axis, wanted)), names, notes)


def _first_with_each(views: Sequence[LazyArray], fact: Callable[[LazyArray], Hashable]) -> Iterable[LazyArray]:
    """Return those of many lazy arrays that differ in a fact: the first of each."""
    found: dict[Hashable, LazyArray] = {}
    for view in views:
        found.setdefault(fact(view), view)
    return found.values()


def _check_lengths(views: Sequence[LazyArray], axis: int) -> None:
    """Raise JoinError unless lengths are equal except along an axis."""
    for view in _first_with_each(views, lambda view: (view.shape[:axis], view.shape[axis + 1 :])):
        _check_shapes(views[0], view, axis)


def _check_shapes(first: LazyArray, other: LazyArray, axis: int | None) -> None:
    if first.ndim != other.ndim or any(
        a != b for dim, (a, b) in enumerate(zip(first.shape, other.shape, strict=True)) if dim != axis
    ):
        where = "" if axis is None else f" except along axis {axis}"
        raise JoinError(
            f"arrays have different shapes{where}",
            found=f"{other.shape} ({_name(other)})",
            expected=f"{first.shape} ({_name(first)})",
        )


def _check_names(first: LazyArray, other: LazyArray) -> None:
    if first.dimension_names and other.dimension_names and first.dimension_names != other.dimension_names:
        raise JoinError(
            "arrays have different dimensions",
            found=f"{other.dimension_names} ({_name(other)})",
            expected=f"{first.dimension_names} ({_name(first)})",
            remedy="transpose or rename one of them",
        )


def as_one_packing(
    views: Sequence[LazyArray], attributes: Sequence[Mapping[str, Any]] | None = None
) -> tuple[Sequence[LazyArray], tuple[str, ...]]:
    """Return arrays whose elements mean the same: unpacked if they are packed in different ways.

    `attributes` are what the arrays are known to have; the default is what they have. The result has a note if
    they are unpacked.
    """
    found = attributes_of(views) if attributes is None else attributes
    known: dict[int, tuple[LazyArray, Mapping[str, Any]]] = {}
    for view, some in zip(views, found, strict=True):
        if some is not None:  # gaps are not packed
            known.setdefault(id(some), (view, some))
    for name in _UNITS:
        stating = [(view, each[name]) for view, each in known.values() if name in each]
        for view, value in stating:
            first, expected = stating[0]
            if value != expected:
                raise JoinError(
                    f"arrays have different {name}",
                    found=f"{value!r} ({_name(view)})",
                    expected=f"{expected!r} ({_name(first)})",
                    remedy="convert one of them first",
                )
    packings = [
        {name: each[name] for name in HOW_STORED if name in each and not marks_nan(name, each[name], view.dtype)}
        for view, each in known.values()
    ]
    if all(packing == packings[0] for packing in packings):
        return views, ()
    is_scaled = any(name in packing for packing in packings for name in ("scale_factor", "add_offset"))
    return [view.unpack(dtype=view.dtype if view.dtype.kind == "f" and not is_scaled else "f8") for view in views], (
        "packed in different ways: each source is unpacked by its own attributes",
    )


def marks_nan(name: str, value: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether an attribute marks only NaN as missing, which says nothing new.

    >>> marks_nan("_FillValue", "NaN", np.dtype("f4")), marks_nan("_FillValue", -9.0, np.dtype("f4"))
    (True, False)
    """
    if name not in {"_FillValue", "missing_value"} or dtype.kind != "f":
        return False
    mark = fill_values.decode(value, dtype)
    return mark is not None and bool(np.isnan(mark))


def _common_dtype(views: Sequence[LazyArray]) -> np.dtype[Any]:
    """Return what NumPy promotes data types to. Raises JoinError for those that have nothing in common."""
    found = views[0].dtype
    for view in _first_with_each(views, lambda view: view.dtype):
        try:
            promoted = np.promote_types(found, view.dtype)
        except TypeError:
            promoted = None
        if promoted is None or (promoted.kind in "USO" and found.kind != view.dtype.kind):
            raise JoinError(
                "arrays have data types that have nothing in common",
                found=f"{view.dtype} ({_name(view)})",
                expected=f"{found} ({_name(views[0])})",
                remedy="convert one of them with astype",
            )
        found = promoted
    return found


def _name(view: LazyArray) -> str:
    leaf = next(leaves(view._node), None)  # noqa: SLF001 - a part of LazyArray
    return "a gap" if leaf is None else str(leaf)


def _depth(rows: Any) -> int:
    depth = 0
    while isinstance(rows, (list, tuple)):
        if not rows:
            raise JoinError("a mosaic has an empty row", found=rows)
        depth, rows = depth + 1, rows[0]
    return depth


def _tiles(rows: Any, place: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    if not isinstance(rows, (list, tuple)):
        yield place, rows
        return
    for number, row in enumerate(rows):
        yield from _tiles(row, (*place, number))


def _with_dimensions(view: LazyArray, ndim: int) -> LazyArray:
    return view if view.ndim == ndim else view.lazy[(None,) * (ndim - view.ndim)]
