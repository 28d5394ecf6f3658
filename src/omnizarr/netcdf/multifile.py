"""Several datasets read as one: variables with the same dimension are joined along it.

Spec: netCDF4-python 1.7.5, ``MFDataset`` and ``MFTime``.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from glob import glob
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MissingDependencyError, NodeNotFoundError, NotRepresentableError, ShapeError, StoreError
from omnizarr.netcdf import selections
from omnizarr.netcdf.dataset import Dataset
from omnizarr.netcdf.dimension import Dimension
from omnizarr.netcdf.header import Attribute, DimensionHeader, Selection
from omnizarr.netcdf.in_file import FileVariable
from omnizarr.netcdf.variable import Variable
from omnizarr.nodes.array import Array
from omnizarr.stores.urls import scheme_of
from omnizarr.support import extras

_Records: TypeAlias = "slice | NDArray[np.intp]"
_SETTINGS: Final = ("mask", "scale", "always_mask", "chartostring")


class MFDataset(Dataset):
    """Several datasets, read as one that is as long as all of them along one dimension.

    Attributes, and variables without the dimension, come from the master. Other variables read their part from
    each dataset, masked and scaled by its attributes. The dataset is read-only.

    Parameters
    ----------
    files : str or sequence
        A pattern of paths, such as ``"tides-*.zarr"``, in the order of their names; or anything that `Dataset` opens.
    check : bool
        Whether to raise an error if variables have other dimensions, shapes or types than in the master.
    aggdim : str, optional
        The dimension along which datasets are joined, which must be the first one of the joined variables. The
        default is the unlimited one.
    exclude : sequence of str
        Variables that should not be joined.
    master_file : optional
        One of `files`. The default is the first.

    Raises
    ------
    NodeNotFoundError
        If there are no datasets, the dimension does not exist, or there are no variables to join (an OSError).
    StoreError
        If the datasets do not fit together (an OSError).
    NotRepresentableError
        If the datasets have groups (a ValueError).

    Examples
    --------
    >>> import numpy as np
    >>> from omnizarr import netcdf
    >>> parts = [{}, {}]  # or paths, or URLs
    >>> for number, part in enumerate(parts):
    ...     with netcdf.Dataset(part, "w") as ds:
    ...         _ = ds.createDimension("time", None)
    ...         level = ds.createVariable("level", "i2", ("time",))
    ...         level[:] = np.arange(3) + 10 * number
    >>> with netcdf.MFDataset(parts) as ds:
    ...     ds["level"].shape, ds["level"][1:5]
    ((6,), array([ 1,  2, 10, 11], dtype=int16))
    """

    __slots__ = ("_arguments", "_joined", "_parts")

    def __init__(
        self,
        files: Any,
        check: bool = False,  # noqa: FBT001, FBT002 - netCDF4-python's signature
        aggdim: str | None = None,
        exclude: Sequence[str] = (),
        master_file: Any = None,
    ) -> None:
        # The files that match a pattern are sorted by name.
        if not isinstance(files, str):
            places = list(files)
        elif scheme_of(files) is not None:
            raise ValueError(f"{files!r}: patterns match only local paths; give a list of URLs")
        else:
            places = sorted(glob(files))  # noqa: PTH207 - as netCDF4-python finds them, relative or not
        if not places:
            raise NodeNotFoundError("there are no datasets", found=files)
        at = 0 if master_file is None else _index(places, master_file)
        self._arguments = (places, check, aggdim, tuple(exclude), None if master_file is None else places[at])
        self._parts: list[Dataset] = []
        try:
            self._parts += [Dataset(each) for each in places]
            self._join(self._parts[at], check=check, aggdim=aggdim, exclude=exclude)
        except BaseException:
            for each in self._parts:
                each.close()
            raise

    def _join(self, master: Dataset, *, check: bool, aggdim: str | None, exclude: Sequence[str]) -> None:
        """Use the content of the master, with a longer dimension, and variables that span all datasets."""
        for name in ("_session", "_parent", "_name", "_where", "_special", "_types", "_notes", "_no_fill"):
            setattr(self, name, getattr(master, name))
        for name in ("_keepweakref", "_layout_notes", "_consolidates", "_owned", "_filename"):
            setattr(self, name, getattr(master, name))
        self._source = self._references = None
        self._attributes = dict(master._attributes)
        self._groups = {}
        for part in self._parts:
            if part.groups:
                raise NotRepresentableError(
                    "datasets with groups are not joined",
                    store=part.filepath(),
                    found=", ".join(part.groups),
                    remedy="open them one by one",
                )
        self._joined = joined = _dimension(master, aggdim)
        for part in self._parts:
            if joined not in part.dimensions:
                raise NodeNotFoundError("a dataset lacks the dimension", store=part.filepath(), found=joined)
        whole = Dimension(self, DimensionHeader(joined, self._length(), unlimited=True))
        self._dimensions = {**master._dimensions, joined: whole}
        self._variables = dict(master._variables)
        names = [name for name, each in master.variables.items() if each.dimensions[:1] == (joined,)]
        names = [name for name in names if name not in exclude]
        if not names:
            raise NodeNotFoundError(
                "there are no variables to join", store=master.filepath(), expected=f"{joined!r} as first dimension"
            )
        for name in names:
            first = master._variables[name]
            parts = [_same(part, first, check=check) for part in self._parts]
            self._variables[name] = MFVariable(self, first, parts, (whole, *first.get_dims()[1:]))

    def _length(self) -> int:
        return sum(part._dimensions[self._joined].size for part in self._parts)

    def sync(self) -> None:
        """Read the current lengths of the datasets."""
        for each in self._parts:
            each.sync()
        self._dimensions[self._joined]._size = self._length()

    def close(self) -> None:
        """Close all datasets."""
        for each in self._parts:
            each.close()

    def isopen(self) -> bool:
        """Return whether all datasets are open."""
        return all(each.isopen() for each in self._parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return MFDataset, self._arguments


class MFVariable(Variable):
    """A variable of an `MFDataset` that spans all its datasets.

    Without masked elements, reading returns plain arrays, as in netCDF4-python.
    """

    __slots__ = ("_parts",)

    def __init__(
        self, group: MFDataset, master: Variable, parts: Sequence[Variable], dims: tuple[Dimension, ...]
    ) -> None:
        if isinstance(master, FileVariable):
            self._describe(group, master.name, dims, master.header)
        else:
            super().__init__(group, master.header, dims, master._stored)
        self._parts = tuple(parts)

    def chunking(self) -> str | list[int]:
        """Return the lengths of the chunks of the first dataset; "contiguous" if there are none."""
        return self._parts[0].chunking()

    @property
    def array(self) -> Array:
        """Raise NotRepresentableError, because the variable is stored in several arrays."""
        raise NotRepresentableError(
            "a variable of several datasets is stored in several arrays",
            path=self.full_name[1:],
            remedy="open the datasets one by one",
        )

    def typecode(self) -> Any:
        """Return `dtype`."""
        return self.dtype

    def __getitem__(self, elem: Any) -> Any:
        """Return the selected elements, decoded by each dataset, like `Variable.__getitem__`.

        Raises
        ------
        ShapeError
            If some of the datasets return strings of characters, and some do not (a ValueError).
        """
        self._session.check_open()
        picked = selections.for_reading(elem, self.shape)
        records, *others = picked.selection
        takes_strings = self.ndim > 1 and selections.takes_last_whole(elem, self.shape)
        settings = {name: getattr(self, name) for name in _SETTINGS}
        settings["chartostring"] &= takes_strings

        def read(part: Variable, place: _Records) -> Any:
            for name, value in settings.items():
                object.__setattr__(part, name, value)
            return self._decoded(part, (place, *others))

        data = self._gathered(records, read)
        dropped = self.ndim - data.ndim  # strings have one dimension less than their characters
        data = data.reshape(picked.shape[: len(picked.shape) - dropped])
        if isinstance(data, np.ma.MaskedArray) and not np.ma.is_masked(data):
            data = data.data
        return data if data.ndim else data[()]

    def read_raw(self, selection: Selection) -> NDArray[Any]:
        """Return stored values, neither masked nor scaled. See `omnizarr.netcdf.header.Source`."""
        records, *others = selection
        values: NDArray[Any] = self._gathered(records, lambda part, place: part.read_raw((place, *others)))  # type: ignore[arg-type]
        return values

    def _decoded(self, part: Variable, selection: tuple[Any, ...]) -> Any:
        return part[selection]

    def _gathered(self, records: _Records, read: Callable[[Variable, _Records], Any]) -> Any:
        """Return the values from the datasets that contain the records, in the order of the selection."""
        starts = np.cumsum([0, *(len(part) for part in self._parts)])
        if isinstance(records, slice):
            chosen = range(*records.indices(int(starts[-1])))
            ordered = chosen if chosen.step > 0 else chosen[::-1]
            places = [_within(ordered, int(start), int(end)) for start, end in pairwise(starts)]
            order: Any = slice(None) if chosen.step > 0 else slice(None, None, -1)
        else:
            owners = np.searchsorted(starts[1:], records, side="right")
            places = [records[owners == number] - start for number, start in enumerate(starts[:-1])]
            order = np.argsort(np.argsort(owners, kind="stable"))
        pieces = [
            read(part, place)
            for part, place in zip(self._parts, places, strict=True)
            if (place.stop > place.start if isinstance(place, slice) else bool(place.size))
        ]
        pieces = pieces or [read(self._parts[0], slice(0, 0, 1))]
        if len({piece.ndim for piece in pieces}) > 1:
            raise ShapeError(
                "some of the datasets make strings of the characters, some do not",
                path=self.full_name[1:],
                remedy="call set_auto_chartostring(False)",
            )
        if len(pieces) == 1:
            return pieces[0][order]
        masked = next((piece for piece in pieces if isinstance(piece, np.ma.MaskedArray)), None)
        if masked is None:
            return np.concatenate(pieces)[order]
        together = np.ma.concatenate(pieces)  # type: ignore[no-untyped-call]
        together.fill_value = masked.fill_value
        return together[order]

    def __reduce__(self) -> tuple[Any, ...]:
        reopened, arguments, state = super().__reduce__()
        return reopened, arguments, {name: state[name] for name in _SETTINGS}

    def __setstate__(self, state: Any) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


class MFTime(MFVariable):
    """The time of an `MFDataset`, in the same units and calendar for all datasets.

    Parameters
    ----------
    time : MFVariable
        A variable with the attribute ``units``, such as ``days since 2000-01-01``.
    units : str, optional
        Units of the result. The default is those of the master.
    calendar : str, optional
        Calendar of all datasets, whatever their attributes are. The default is their attribute ``calendar``.

    Raises
    ------
    ValueError
        If `calendar` is not given, and a dataset has no attribute ``calendar`` or another one than the others.

    Examples
    --------
    >>> import numpy as np
    >>> from omnizarr import netcdf
    >>> january, february = {}, {}  # or paths, or URLs
    >>> for month, part in enumerate((january, february), 1):
    ...     with netcdf.Dataset(part, "w") as ds:
    ...         _ = ds.createDimension("time", None)
    ...         time = ds.createVariable("time", "i4", ("time",))
    ...         time.units, time.calendar = f"days since 2000-{month:02}-01", "standard"
    ...         time[:] = np.arange(29)
    >>> with netcdf.MFDataset([january, february]) as ds:
    ...     time = netcdf.MFTime(ds["time"])
    ...     time.units, time[28:31]
    ('days since 2000-01-01', array([28, 31, 32], dtype=int32))
    """

    __slots__ = ("_shifts",)

    def __init__(self, time: MFVariable, units: str | None = None, calendar: str | None = None) -> None:
        super().__init__(time._group, time, time._parts, time._dims)  # type: ignore[arg-type]
        for name in _SETTINGS:
            object.__setattr__(self, name, getattr(time, name))
        calendar = _calendar(time._parts) if calendar is None else calendar
        units = units or _text(time, "units")
        said = {"units": Attribute.of(units), "calendar": Attribute.of(calendar)}
        self._adopt_attributes({**self._attributes, **said})
        self._shifts = {id(part): _shift(_text(part, "units"), units, calendar) for part in self._parts}

    def _decoded(self, part: Variable, selection: tuple[Any, ...]) -> Any:
        factor, shift = self._shifts[id(part)]
        values = super()._decoded(part, selection)
        if factor != 1 or values.dtype.kind not in "iu" or not float(shift).is_integer():
            return values * np.float64(factor) + shift
        moved = values.astype("i8") + int(shift)
        return moved.astype(values.dtype) if (moved == moved.astype(values.dtype)).all() else moved


def _index(places: Sequence[Any], master: Any) -> int:
    for number, place in enumerate(places):
        if place is master or (isinstance(master, str) and str(place) == master) or place == master:
            return number
    raise ValueError(f"master_file={master!r}: not one of the files")


def _dimension(master: Dataset, wanted: str | None) -> str:
    """Return the name of the dimension along which datasets are joined."""
    unlimited = [name for name, each in master.dimensions.items() if each.isunlimited()]
    if wanted is None and len(unlimited) > 1:
        raise ValueError(f"aggdim: one of the unlimited dimensions {', '.join(unlimited)} has to be chosen")
    found = wanted if wanted in master.dimensions else None
    if wanted is None and unlimited:
        found = unlimited[0]
    if found is None:
        raise NodeNotFoundError(
            "there is no dimension to join datasets along",
            store=master.filepath(),
            found=", ".join(master.dimensions),
            expected=wanted or "an unlimited one",
            remedy="pass aggdim=",
        )
    return found


def _same(part: Dataset, first: Variable, *, check: bool) -> Variable:
    """Return a dataset's variable that continues one of the master. Raises StoreError if it does not fit."""
    found = part._variables.get(first.name)
    if found is None:
        raise StoreError("a dataset lacks a variable", store=part.filepath(), path=first.name)
    if check:
        for what in ("dimensions", "shape", "dtype"):
            here, there = (getattr(each, what) for each in (found, first))
            if (here[1:] != there[1:] or len(here) != len(there)) if what == "shape" else here != there:
                raise StoreError(
                    f"a variable has another {what} than in the master",
                    store=part.filepath(),
                    path=first.name,
                    found=here,
                    expected=there,
                )
    return found


def _within(chosen: range, start: int, end: int) -> slice:
    """Return the selected records from `start` to `end`, counted from `start`."""
    part = chosen[bisect_left(chosen, start) : bisect_left(chosen, end)]
    return slice(part[0] - start, part[-1] - start + 1, part.step) if part else slice(0, 0, 1)


def _text(variable: Variable, name: str) -> str:
    """Return an attribute of a time variable. Raises ValueError if it is missing."""
    found = variable._attributes.get(name)
    if found is None or not isinstance(found.python, str):
        raise ValueError(f"{variable.full_name}: a variable of time needs the attribute {name!r}")
    return found.python


def _calendar(parts: Sequence[Variable]) -> str:
    found = {_text(part, "calendar") for part in parts}
    if len(found) > 1:
        raise ValueError(f"{parts[0].full_name}: the datasets have several calendars ({', '.join(sorted(found))})")
    return found.pop()


def _shift(units: str, wanted: str, calendar: str) -> tuple[Any, Any]:
    """Return factor and offset that convert a number of one unit of time to another."""
    if units == wanted:
        return 1, 0
    try:
        cftime = import_module("cftime")
    except ImportError:
        raise MissingDependencyError("units of time need cftime", remedy=extras.remedy("netcdf")) from None
    first, second = (cftime.datetime(year, 1, 1, calendar=calendar) for year in (1900, 2000))
    here, there = ([cftime.date2num(each, said, calendar) for each in (first, second)] for said in (units, wanted))
    factor = (there[1] - there[0]) / (here[1] - here[0])
    if math.isclose(factor, 1, rel_tol=1e-9):
        return 1, there[0] - here[0]
    return factor, there[0] - here[0] * factor
