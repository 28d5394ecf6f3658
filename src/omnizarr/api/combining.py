"""Many groups as one group: `combine`."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from omnizarr.api.joining import as_one_packing, join, marks_nan
from omnizarr.api.opening import open_group
from omnizarr.api.ordering import Gaps, Ordering, Overlaps, Run
from omnizarr.errors import JoinError, OmnizarrError, Remedy, StoreError
from omnizarr.formats.conventions import fill_values, nczarr_metadata
from omnizarr.formats.conventions.calendars import Times
from omnizarr.nodes.group import Group
from omnizarr.nodes.lazy.hierarchies import Variable, as_v3
from omnizarr.nodes.lazy.layout import GRIDS, GridKind
from omnizarr.nodes.lazy.store import LazyStore
from omnizarr.nodes.lazy.tree import Filled
from omnizarr.nodes.lazy.view import LazyArray, as_lazy
from omnizarr.nodes.packing import ATTRIBUTES
from omnizarr.stores import pool, urls
from omnizarr.stores.urls import scheme_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Absent: TypeAlias = Literal["error", "fill", "drop"]
Compat: TypeAlias = Literal["equals", "override"]

_AT_ONCE: Final = 16
"""Groups that are opened, and coordinates that are read, at the same time."""
_MOST_BYTES: Final = 64 * 2**20
"""Size of what is read to bring different units of time together, or to compare."""


def combine(
    sources: str | Iterable[Any],
    along: str,
    *,
    overlaps: Overlaps = "error",
    gaps: Gaps = "error",
    absent: Absent = "error",
    compat: Compat = "equals",
    sort: bool = True,
    grid: GridKind = "regular",
    storage_options: Mapping[str, Any] | None = None,
) -> Group:
    """Return many groups as one group, without copying them.

    Variables that have the dimension `along` are joined along it, in the order of its coordinate. Others are compared,
    and taken once. Formats, codecs, chunks, data types, packing and units of time may differ between the groups.

    Parameters
    ----------
    sources : iterable or str
        Paths, URLs and groups, or one of them. A path can be a pattern, such as ``"data/*.zarr"``.
    along : str
        The dimension along which the groups follow each other. If there is a variable with this name, it is the
        coordinate, by which the groups are sorted.
    overlaps : {"error", "first", "last"}
        What to do if several groups have the same places: raise an error, or take the elements of the group that comes
        first or last in `sources`.
    gaps : {"error", "keep", "fill"}
        What to do if places are missing between two groups: raise an error, join the groups nevertheless, or fill the
        gap with missing values. A gap is more than one and a half times as long as the longest step within a group (if
        all groups have one place: than the usual step).
    absent : {"error", "fill", "drop"}
        What to do if a group lacks a variable that others have: raise an error, take its elements as missing, or drop
        the variable.
    compat : {"equals", "override"}
        Whether variables without the dimension must be equal in all groups. ``"override"`` takes those of the first
        group, and compares nothing.
    sort : bool
        Whether to sort the groups by the coordinate. If False, they stay in the order of `sources`, and nothing is
        checked along the dimension.
    grid : {"regular", "rectilinear"}
        How the group is cut into chunks, for copies of it and for other programs. "regular": in chunks of one shape,
        which all readers of Zarr v3 know. "rectilinear": chunks start again with each source, so that nearly all are
        stored chunks, and are copied unchanged. Few programs read such arrays but omnizarr, and new versions of
        zarr-python with a setting.
    storage_options : mapping, optional
        For opening URLs, as for `omnizarr.open_group`.

    Returns
    -------
    Group
        It can be read only. ``group.store.notes`` lists what was done and what the groups disagree about. Attributes
        that differ are left out.

    Raises
    ------
    JoinError
        If the groups do not fit together. It names two of them, and where they differ.
    NodeNotFoundError
        If a group does not exist, or no path matches the pattern.

    Examples
    --------
    >>> import omnizarr
    >>> parts = [omnizarr.create_group({}) for year in (2021, 2020)]
    >>> for part, year in zip(parts, (2021, 2020)):
    ...     _ = part.create_array("time", data=[0, 1], dimension_names=["time"],
    ...                           attributes={"units": f"days since {year}-12-31"})
    ...     _ = part.create_array("t", data=[year + 0.25, year + 0.5], dimension_names=["time"])
    >>> both = omnizarr.combine(parts, "time", gaps="keep")
    >>> both["t"][...]
    array([2020.25, 2020.5 , 2021.25, 2021.5 ])
    >>> both["time"][...], both["time"].attrs["units"]
    (array([  0,   1, 365, 366]), 'days since 2020-12-31')
    """
    _check("overlaps", overlaps, ("error", "first", "last"))
    _check("gaps", gaps, ("error", "keep", "fill"))
    _check("absent", absent, ("error", "fill", "drop"))
    _check("compat", compat, ("equals", "override"))
    _check("grid", grid, GRIDS)
    return _Combining(_opened(sources, storage_options), along, overlaps, gaps, absent, compat, sort, grid).group()


def _check(name: str, value: str, expected: Sequence[str]) -> None:
    if value not in expected:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, expected))}")


def _listed(sources: Any) -> Iterable[Any]:
    return [sources] if isinstance(sources, str | os.PathLike) else sources


def _matching(source: Any) -> Sequence[Any]:
    """Return the paths that match, if it is a pattern."""
    if not isinstance(source, str | os.PathLike):
        return [source]
    text = os.fspath(source)
    if scheme_of(text) is not None or not glob.has_magic(text) or os.path.lexists(text):
        return [text]
    if not (found := sorted(glob.glob(text))):  # noqa: PTH207 - the result has the form of the pattern
        raise JoinError("no path matches the pattern", found=text)
    return found


def _opened(sources: str | Iterable[Any], storage_options: Mapping[str, Any] | None) -> list[Group]:
    found = [each for source in _listed(sources) for each in _matching(source)]
    if not found:
        raise JoinError("there is nothing to join", found="no sources", expected="at least one")
    paths = [position for position, source in enumerate(found) if not isinstance(source, Group)]

    def opened(position: int) -> Group:
        return open_group(found[position], mode="r", storage_options=storage_options)

    gather = pool.gather_near if all(_is_near(found[at]) for at in paths) else pool.gather
    for number, group in gather(opened, paths, min(len(paths), _AT_ONCE)):
        found[paths[number]] = group
    return found


def _is_near(source: Any) -> bool:
    """Return whether a group, or what is at a path or URL, answers immediately."""
    if isinstance(source, Group):
        return source.store.features.concurrency <= 1
    return isinstance(source, str | os.PathLike) and urls.is_local(os.fspath(source))


@dataclass
class _Source:
    """One of the groups."""

    group: Group
    arrays: dict[str, Variable] = field(default_factory=dict)
    groups: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    length: int = 0
    implied: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Units and calendar of the arrays that hold the bounds of a coordinate, by path."""
    places: NDArray[Any] | None = None
    """The stored numbers of the coordinate."""

    def __str__(self) -> str:
        return str(self.group.store_path)


@dataclass
class _Combining:
    """The groups, and what was decided about them."""

    given: Sequence[Group]
    along: str
    overlaps: Overlaps
    gaps: Gaps
    absent: Absent
    compat: Compat
    sort: bool
    grid: GridKind
    notes: list[str] = field(default_factory=list)
    path: str | None = None
    """The path of the coordinate, if there is one."""

    def group(self) -> Group:
        """Return all groups as one."""
        self.gather = pool.gather_near if all(map(_is_near, self.given)) else pool.gather
        self.sources = [source for _, source in sorted(self.gather(_looked_at, self.given, _AT_ONCE))]
        if not any(self._axis(each) is not None for source in self.sources for each in source.arrays.values()):
            raise JoinError(
                f"no array has the dimension {self.along!r}",
                found=", ".join(
                    sorted({str(n) for s in self.sources for each in s.arrays.values() for n in each.names})
                ),
                remedy="name the dimensions of the arrays, or join arrays with omnizarr.concat",
            )
        for source in self.sources:
            source.length = self._length(source)
        self._check_kinds()
        arrays = {}
        self.runs = [Run(number, 0, source.length) for number, source in enumerate(self.sources)]
        self.path = self._coordinate()
        if self.path is not None:
            arrays[self.path] = self._ordered(self.path)
        for path in dict.fromkeys(path for source in self.sources for path in source.arrays):
            if path not in arrays and (found := self._variable(path)) is not None:
                arrays[path] = found
        lazy = {path: each for path, (each, _) in arrays.items()}
        attributes = {**self._group_attributes(), **{path: each for path, (_, each) in arrays.items()}}
        like = {path: each.array for source in reversed(self.sources) for path, each in source.arrays.items()}
        store = LazyStore(lazy, attributes, tuple(dict.fromkeys(self.notes)), like=like, grid=self.grid)
        return open_group(store, mode="r")

    # -- what there is ---------------------------------------------------------------

    def _axis(self, variable: Variable) -> int | None:
        return variable.names.index(self.along) if self.along in variable.names else None

    def _length(self, source: _Source) -> int:
        known: dict[int, str] = {}
        for path, variable in source.arrays.items():
            if (axis := self._axis(variable)) is not None:
                known.setdefault(variable.array.shape[axis], path)
        if len(known) > 1:
            (length, first), (other, second) = list(known.items())[:2]
            raise JoinError(
                f"arrays of one source have different lengths along {self.along!r}",
                found=f"{other} in {second!r} ({source})",
                expected=f"{length}, as in {first!r}",
            )
        if not known:
            raise JoinError(f"a source has no array with the dimension {self.along!r}", found=str(source))
        return next(iter(known))

    def _check_kinds(self) -> None:
        for source in self.sources:
            for other in self.sources[:1]:
                for path in source.arrays.keys() & other.groups.keys() | source.groups.keys() & other.arrays.keys():
                    raise JoinError("a group in one source is an array in another", found=f"{path!r} of {source}")

    def _group_attributes(self) -> dict[str, Mapping[str, Any]]:
        paths = dict.fromkeys(path for source in self.sources for path in source.groups)
        length = sum(run.stop - run.start for run in self.runs)
        return {
            path: self._common(
                path,
                [
                    (str(source), nczarr_metadata.with_length(source.groups[path], self.along, length))
                    for source in self.sources
                    if path in source.groups
                ],
            )
            for path in paths
        }

    def _common(self, path: str, found: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
        """Return the attributes that are equal everywhere, and note the others.

        NCZarr's marks are no attributes of netCDF. Those of a node are kept if all its marks are equal.
        """
        (_, first), *others = found
        names = dict.fromkeys(name for _, each in found for name in each)
        same = {}
        has_equal_marks = True
        for name in names:
            if name in first and all(name in each and _equal(each[name], first[name]) for _, each in others):
                same[name] = first[name]
                if "\ufffd" in str(first[name]):
                    where = f"{path!r}: " if path else ""
                    self.notes.append(f"{where}the attribute {name!r} has U+FFFD, as for bytes that are not UTF-8")
            elif name in nczarr_metadata.HIDDEN:
                has_equal_marks = False
            else:
                where = f"{path!r}: " if path else ""
                self.notes.append(f"{where}the attribute {name!r} differs between sources, and is left out")
        if not has_equal_marks:
            same = {name: each for name, each in same.items() if name not in nczarr_metadata.HIDDEN}
        return same

    # -- along the dimension ---------------------------------------------------------

    def _coordinate(self) -> str | None:
        """Return the path of the coordinate, if there is one."""
        paths = {
            path
            for source in self.sources
            for path, each in source.arrays.items()
            if path.rpartition("/")[2] == self.along and each.names == (self.along,)
        }
        path = min(paths, key=lambda each: (each.count("/"), each), default=None)
        if path is not None:
            for source in self.sources:
                if path not in source.arrays:
                    raise JoinError("a source has no coordinate", found=str(source), expected=f"an array {path!r}")
        return path

    def _ordered(self, path: str) -> tuple[LazyArray, Mapping[str, Any]]:
        """Decide about the order of all elements, and return the coordinate."""
        variables = [source.arrays[path] for source in self.sources]

        def read(number: int) -> NDArray[Any]:
            return np.asarray(variables[number].array[...])

        numbers = range(len(variables))
        for number, values in self.gather(read, numbers, min(len(numbers), _AT_ONCE)):
            self.sources[number].places = values
        wanted = variables[min(numbers, key=self._rank) if self.sort else 0].attributes
        found: list[NDArray[Any]] = []
        attributes: list[tuple[str, Mapping[str, Any]]] = []
        for source, variable in zip(self.sources, variables, strict=True):
            assert source.places is not None  # noqa: S101 - they have been read
            found.append(_converted(source.places, variable.attributes, wanted, f"{path!r} of {source}"))
            attributes.append((str(source), _in_units_of(wanted, variable.attributes)))
        filled: list[NDArray[Any]] = []
        if self.sort:
            names = [str(source) for source in self.sources]
            order = Ordering(self.along, names, wanted, self.overlaps, self.gaps)
            self.runs, filled, notes = order.of(found)
            self.notes += notes
        dtype = np.result_type(*(each.dtype for each in found))
        parts = [
            np.asarray(filled.pop(0), dtype) if run.source is None else found[run.source][run.start : run.stop]
            for run in self.runs
        ]
        whole = np.concatenate([part.astype(dtype, copy=False) for part in parts])
        lazy = as_lazy(whole).rename((self.along,))
        return lazy, self._common(path, attributes)

    def _rank(self, number: int) -> tuple[bool, Any]:
        """Return what tells which source comes first."""
        places = self.sources[number].places
        assert places is not None and self.path is not None  # noqa: PT018, S101 - they have been read
        times = Times.of(self.sources[number].arrays[self.path].attributes)
        if not places.size:
            return True, 0
        return False, places[0] if times is None else times.start + float(places[0]) * times.unit

    # -- variables -------------------------------------------------------------------

    def _variable(self, path: str) -> tuple[LazyArray, Mapping[str, Any]] | None:
        found = {number: source.arrays[path] for number, source in enumerate(self.sources) if path in source.arrays}
        axes = {self._axis(each) for each in found.values()}
        if len({each.names for each in found.values()}) > 1:
            (one, first), (other, second) = self._two_that_differ(found)
            raise JoinError(
                "an array has different dimensions in two sources",
                found=f"{second.names} ({path!r} of {self.sources[other]})",
                expected=f"{first.names} ({self.sources[one]})",
            )
        (axis,) = axes
        if axis is None:
            return self._static(path, found)
        lacking = [n for n in range(len(self.sources)) if n not in found and self.sources[n].length]
        if lacking and self.absent == "error":
            raise JoinError(
                "a source lacks an array that others have",
                found=str(self.sources[lacking[0]]),
                expected=f"an array {path!r}, as in {self.sources[next(iter(found))]}",
                remedy=Remedy('pass {absent} for missing values, or "drop" to leave the array out', absent="fill"),
            )
        if lacking and self.absent == "drop":
            self.notes.append(f"{path!r} is left out: {len(lacking)} sources lack it")
            return None
        if lacking:
            self.notes.append(f"{path!r} has missing values where {len(lacking)} sources lack it")
        return self._joined(path, found, axis)

    def _two_that_differ(self, found: Mapping[int, Variable]) -> tuple[tuple[int, Variable], tuple[int, Variable]]:
        first, *others = found.items()
        return first, next(each for each in others if each[1].names != first[1].names)

    def _joined(self, path: str, found: Mapping[int, Variable], axis: int) -> tuple[LazyArray, Mapping[str, Any]]:
        used = dict.fromkeys(run.source for run in self.runs)
        order = [number for number in used if number is not None and number in found] or list(found)
        wanted = self._with_units(order[0], path)
        views, attributes = {}, []
        for number in order:
            source, variable = self.sources[number], found[number]
            lazy, said = as_lazy(variable.array, watched=True).rename(variable.names), self._with_units(number, path)
            if Times.of(said) != Times.of(wanted):
                where = f"{path!r} of {source}"
                if lazy.nbytes > _MOST_BYTES:
                    raise JoinError(
                        "units of time differ, in an array that is too large to convert here",
                        found=f"{said.get('units')!r} ({where})",
                        expected=repr(wanted.get("units")),
                    )
                lazy = as_lazy(_converted(np.asarray(lazy.read()), said, wanted, where)).rename(variable.names)
            views[number] = lazy
            attributes.append((str(source), _in_units_of(wanted, variable.attributes)))
        same, common = self._as_one_packing(path, list(views.values()), attributes)
        views = dict(zip(views, same, strict=True))
        parts = []
        for run in self.runs:
            if run.source in views:
                view = views[run.source]
                box = (slice(None),) * axis + (slice(run.start, run.stop),)
                parts.append(view if run == (run.source, 0, view.shape[axis]) else view.lazy[box])
            else:
                parts.append(self._filled(path, same[0], axis, run.stop - run.start, common))
        return join(parts, axis), common

    def _with_units(self, number: int, path: str) -> dict[str, Any]:
        """Return the attributes of an array, with the units of its coordinate if it holds the bounds of one."""
        source = self.sources[number]
        return {**source.implied.get(path, {}), **source.arrays[path].attributes}

    def _as_one_packing(
        self, path: str, views: list[LazyArray], attributes: Sequence[tuple[str, Mapping[str, Any]]]
    ) -> tuple[Sequence[LazyArray], dict[str, Any]]:
        """Return arrays whose elements mean the same, and their attributes."""
        same, note = as_one_packing(views, [each for _, each in attributes])
        if note:
            self.notes += [f"{path!r}: {each}" for each in note]
            attributes = [
                (at, {name: value for name, value in each.items() if name not in ATTRIBUTES}) for at, each in attributes
            ]
        marks = {
            name
            for view, (_, each) in zip(views, attributes, strict=True)
            for name in each
            if marks_nan(name, each[name], view.dtype)
        }
        attributes = [(at, {name: each for name, each in said.items() if name not in marks}) for at, said in attributes]
        common = self._common(path, attributes)
        if note or marks:
            common["_FillValue"] = fill_values.encode(np.float64("nan"))
        return same, common

    def _filled(self, path: str, like: LazyArray, axis: int, length: int, attributes: Mapping[str, Any]) -> LazyArray:
        shape = (*like.shape[:axis], length, *like.shape[axis + 1 :])
        value: Any = fill_values.decode(attributes.get("_FillValue"), like.dtype)
        if value is None and like.dtype.kind in "fc":
            value = np.nan
        elif value is None and like.dtype.kind in "mM":
            value = np.array("NaT", like.dtype)[()]
        if value is None:
            raise JoinError(
                "nothing in an array means that an element is missing",
                found=f"{path!r}, {like.dtype}, without an attribute _FillValue",
                expected="floating-point numbers, or a _FillValue",
            )
        return LazyArray(Filled(shape, like.dtype, value), like.dimension_names)

    def _static(self, path: str, found: Mapping[int, Variable]) -> tuple[LazyArray, Mapping[str, Any]]:
        """Return an array without the dimension, which is the same in all sources."""
        if self.compat == "override":
            found = dict([next(iter(found.items()))])
        attributes = [(str(self.sources[number]), each.attributes) for number, each in found.items()]
        views = [as_lazy(each.array, watched=True).rename(each.names) for each in found.values()]
        (first, *others), common = self._as_one_packing(path, views, attributes)
        if others:
            expected = np.asarray(first.read())

            def differs(other: LazyArray) -> bool:
                return other.shape != first.shape or not _equal_values(np.asarray(other.read()), expected)

            for number, is_other in pool.gather(differs, others, min(len(others), _AT_ONCE)):
                if is_other:
                    raise JoinError(
                        f"an array without the dimension {self.along!r} differs between two sources",
                        found=f"{path!r} of {attributes[number + 1][0]}",
                        expected=f"the same as in {attributes[0][0]}",
                        remedy=Remedy("pass {compat} to take that of the first source", compat="override"),
                    )
        return first, common


def _looked_at(group: Group) -> _Source:
    """Return a group with all that is below, as Zarr v3 has it."""
    found = _Source(group)
    try:
        found.arrays, found.groups = as_v3(group)
    except StoreError:
        raise
    except OmnizarrError as error:
        raise JoinError("a node of a source cannot be read", found=str(error)) from error
    for path, each in found.arrays.items():
        above = path.rpartition("/")[0]
        for name in (each.attributes.get("bounds"), each.attributes.get("climatology")):
            if isinstance(name, str):
                found.implied[f"{above}/{name}" if above else name] = {
                    key: each.attributes[key] for key in ("units", "calendar") if key in each.attributes
                }
    return found


def _in_units_of(wanted: Mapping[str, Any], attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes of an array whose elements were converted to the units of another."""
    if Times.of(attributes) is None or Times.of(wanted) is None:
        return attributes
    said = {name: wanted[name] for name in ("units", "calendar") if name in wanted}
    return {**{name: each for name, each in attributes.items() if name not in {"units", "calendar"}}, **said}


def _converted(
    values: NDArray[Any], attributes: Mapping[str, Any], wanted: Mapping[str, Any], where: str
) -> NDArray[Any]:
    """Return numbers in the units of another array."""
    times, target = Times.of(attributes), Times.of(wanted)
    for name in ("calendar", "units"):
        given, expected = attributes.get(name), wanted.get(name)
        is_same = given == expected
        if name == "calendar" and times is not None and target is not None:
            is_same = times.means_the_same_dates(values, target.calendar)
        if not is_same and (name == "calendar" or times is None or target is None):
            raise JoinError(
                f"coordinates have different {name}",
                found=f"{given!r} ({where})",
                expected=repr(expected),
                remedy="write the coordinate of one source in the units and the calendar of the other",
            )
    if times is None or target is None or times == target:
        return values
    ahead = times.start - target.start
    if values.dtype.kind in "iu" and times.unit % target.unit == ahead % target.unit == 0:
        return values.astype(np.int64) * (times.unit // target.unit) + ahead // target.unit
    return (values.astype(np.float64) * times.unit + ahead) / target.unit


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)  # noqa: PLR0124 - NaN


def _equal_values(a: NDArray[Any], b: NDArray[Any]) -> bool:
    if a.dtype.kind in "fcmM" and b.dtype.kind in "fcmM":
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool(np.array_equal(a, b))
