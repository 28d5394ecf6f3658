"""Packed numbers: what the attributes of an array mean for its values. All that shows or unpacks values decides here.

`Packing.of_array` reads the attributes once: which stored values are missing or not valid (``_FillValue``,
``missing_value``, ``valid_range``, ``valid_min``, ``valid_max``), what the bits of integers mean (``_Unsigned``), and
the scale (``scale_factor``, ``add_offset``). Marks are compared with the stored values, in their type, before these
are scaled, as netCDF4-python does. An attribute that has a value which the type cannot hold marks nothing.

Spec: CF conventions, sections 2.5.1 and 8.1; NetCDF Users Guide, "Attribute Conventions"; netCDF4-python 1.7.5,
``Variable.set_auto_maskandscale``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from omnizarr.engine.conversion import Conversion, unpack_step
from omnizarr.errors import OmnizarrError
from omnizarr.formats.reader import is_list
from omnizarr.model import JSON, ArrayMetadata, datatypes, dimensions
from omnizarr.model.datatypes.fixed_point import NAME as FIXED_POINT
from omnizarr.model.datatypes.fixed_point import FixedPoint
from omnizarr.settings import config
from omnizarr.stores import pool
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.formats.conventions import display, fill_values
else:  # with the package come all conventions, which opening an array does not need
    display = Lazy("omnizarr.formats.conventions.display")
    fill_values = Lazy("omnizarr.formats.conventions.fill_values")

SPEAK_OF_VALUES: Final = ("missing_value", "_FillValue", "valid_range", "valid_min", "valid_max")
"""Attributes whose values are of the type of the stored ones."""
HOW_STORED: Final = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")
"""Attributes that say how numbers are stored. Arrays in which they differ are not of one kind."""
ATTRIBUTES: Final = frozenset({*HOW_STORED, *SPEAK_OF_VALUES})
"""Attributes that describe stored numbers, so that unpacked ones do not have them any more."""

_LARGE: Final = 2**20
"""Number of elements from which several threads, and avoiding large temporary arrays, are worth the effort."""
_BLOCK: Final = 2**16
"""Number of elements that stay in the cache of a processor, together with what is computed from them."""
_MARKED: Final = "biufc"
_OTHER_KIND: Final[Mapping[tuple[str, str], str]] = {("i", "true"): "u", ("u", "false"): "i"}


class Marks(NamedTuple):
    """Values that are not data, as scalars of the type of the data.

    Attributes
    ----------
    missing : tuple of scalar
    fill : scalar or None
        None if no value is a fill value.
    low, high : scalar or None
        The smallest and the largest valid value.
    filler : scalar
        The `fill_value` of a masked array without another one.
    """

    missing: tuple[Any, ...] = ()
    fill: Any = None
    low: Any = None
    high: Any = None
    filler: Any = None

    def find(self, data: NDArray[Any]) -> tuple[NDArray[np.bool_] | None, Any]:
        """Return where data is masked (None: nowhere), and the value that fills it there."""
        if not goes_in_blocks(data):
            return self._find(data)
        # Untouched memory costs nothing, and blocks without hits are never written.
        found = np.zeros(data.shape, np.bool_, "C" if data.flags.c_contiguous else "F")
        values, where = data.ravel(order="K"), found.ravel(order="K")
        fillers: list[Any] = []

        def look(block: slice) -> None:
            hits, filler = self._find(values[block])
            if hits is not None:
                where[block] = hits
                fillers.append(filler)

        each_block(look, data.size)
        if not fillers:
            return None, self.filler
        return found, next((filler for filler in fillers if filler is not self.filler), self.filler)

    def _find(self, data: NDArray[Any]) -> tuple[NDArray[np.bool_] | None, Any]:
        found, filler = None, self.filler
        if self.fill is not None:
            hits = _equal(data, self.fill)
            if np.count_nonzero(hits):
                found = hits
        for value in self.missing:
            hits = _equal(data, value)
            if np.count_nonzero(hits):
                found, filler = hits if found is None else found | hits, self.missing[0]
        for bound, lies_outside in ((self.low, np.less), (self.high, np.greater)):
            if bound is not None:
                hits = lies_outside(data, bound)
                if np.count_nonzero(hits):
                    found = hits if found is None else found | hits
        return found, filler

    def viewed(self, kind: str) -> Marks:
        """Return them with their bits read as integers of a kind, "u" or "i"."""

        def view(value: Any) -> Any:
            return None if value is None else value.view(f"{kind}{value.dtype.itemsize}")

        missing, *others = self
        return Marks(tuple(map(view, missing)), *map(view, others))


def own_scale(array: ArrayMetadata | None) -> dict[str, float]:
    """Return the ``scale_factor`` that a data type states, with that of the attributes: of fixed-point numbers only."""
    if array is None or array.data_type.name != FIXED_POINT:
        return {}
    factor = Packing.of_array(array).scale_factor
    return {} if factor is None else {"scale_factor": float(factor)}


def goes_in_blocks(data: NDArray[Any]) -> bool:
    """Return whether blocks of an array are worth being computed one by one."""
    return data.size >= _LARGE and data.flags.forc


def each_block(task: Callable[[slice], object], size: int) -> None:
    """Call `task`, in several threads, with slices that together cover `size` elements."""
    blocks = (slice(start, start + _BLOCK) for start in range(0, size, _BLOCK))
    pool.run(task, blocks, config.get("concurrency") or pool.default_concurrency(), batch=8)


def _equal(data: NDArray[Any], value: Any) -> Any:
    return np.isnan(data) if value != value else data == value  # noqa: PLR0124  (NaN)


def marks_of(stated: Mapping[str, NDArray[Any]], *, fill: Any = None, filler: Any = None) -> Marks:
    """Return the marks that attributes state, given their values in the type of the data.

    `fill` is the fill value where no attribute states one, and `filler` the other default.
    """
    own = _single(stated.get("_FillValue"))
    low, high = _single(stated.get("valid_min")), _single(stated.get("valid_max"))
    if "valid_range" in stated and stated["valid_range"].size == 2:
        low, high = stated["valid_range"]
    missing = tuple(stated.get("missing_value", ()))
    return Marks(missing, fill if own is None else own, low, high, filler if own is None else own)


def _single(values: NDArray[Any] | None) -> Any:
    return values[0] if values is not None and values.size == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """What the attributes of an array mean for its values.

    Attributes
    ----------
    dtype : numpy.dtype
        Data type of the stored values.
    marks : Marks or None
        The stored values that mean "missing", or are not valid.
    kind : {"", "u", "i"}
        The kind of integers that the bits mean, if ``_Unsigned`` says so.
    viewed : Marks or None
        The marks as integers of that kind.
    scale_factor, add_offset : scalar or None
    """

    dtype: np.dtype[Any]
    marks: Marks | None = None
    kind: str = ""
    viewed: Marks | None = None
    scale_factor: Any = None
    add_offset: Any = None

    @classmethod
    def of_json(
        cls, attributes: Mapping[str, JSON], dtype: np.dtype[Any], *, fill: Any = None, mask: Any = None
    ) -> Self:
        """Read attributes that have no types of their own, as in the documents of Zarr.

        Parameters
        ----------
        attributes : mapping
        dtype : numpy.dtype
            Data type of the stored values.
        fill : scalar, optional
            A stored value that is missing where there is no ``_FillValue``.
        mask : scalar, optional
            A stored value that is missing besides those of the attributes.

        Examples
        --------
        >>> packing = Packing.of_json({"scale_factor": 0.5, "valid_range": [0, 100]}, np.dtype("i2"))
        >>> packing.floats(np.array([-1, 3, 100], "i2"))
        array([ nan,  1.5, 50. ])
        """
        if dtype.kind not in _MARKED:
            return cls(dtype=dtype)
        said = str(attributes.get("_Unsigned", "")).lower()
        kind = _OTHER_KIND.get((dtype.kind, said), "")
        stated = {}
        for name in SPEAK_OF_VALUES:
            value = attributes.get(name)
            found = None if value is None else _of_json(value, dtype, kind)
            if found is not None:
                stated[name] = found
        if dtype.kind in "bc":  # neither is ordered
            stated = {name: each for name, each in stated.items() if not name.startswith("valid")}
        marks: Marks | None = marks_of(stated, fill=fill)
        if marks is not None and mask is not None:
            marks = marks._replace(missing=(*marks.missing, mask))
        if marks == Marks():
            marks = None
        scales = {}
        if dtype.kind in "iuf":
            numbers = {name: display.number(attributes, name) for name in ("scale_factor", "add_offset")}
            scales = {name: np.float64(value) for name, value in numbers.items() if value is not None}
        viewed = None if marks is None or not kind else marks.viewed(kind)
        return cls(dtype=dtype, marks=marks, kind=kind, viewed=viewed, **scales)

    @classmethod
    def of_array(cls, array: ArrayMetadata, *, fills: bool = True) -> Self:
        """Read the metadata of an array.

        Before v3, xarray and netCDF also mask the fill value of an array with named dimensions.
        In v3, a fill value that is netCDF's own for elements that were never written means such elements.

        Parameters
        ----------
        array : ArrayMetadata
        fills : bool
            Whether the array's own fill value may mean that elements are missing: not in levels of an OME-Zarr image,
            nor in the coordinates of a dimension.
        """
        try:
            data_type = datatypes.bind(array.data_type, array.byte_order)
        except OmnizarrError:
            return cls(dtype=np.dtype("V1"))
        dtype, fill = data_type.dtype, None
        if isinstance(data_type.scalars, FixedPoint):  # its own scale, below that of the attributes
            found = cls.of_json(array.attributes, dtype)
            outer = np.float64(1) if found.scale_factor is None else found.scale_factor
            return replace(found, scale_factor=outer * data_type.scalars.step)
        if dtype.kind in "iuf" and fills and isinstance(array.fill_value, int | float | str):
            with suppress(OmnizarrError):
                fill = data_type.fill_from_json(array.fill_value)
        if array.dialect.startswith("v3"):
            default = None if dtype.itemsize == 1 else fill_values.NETCDF_DEFAULTS.get(dtype.str[1:])
            return cls.of_json(array.attributes, dtype, fill=fill if default is not None and fill == default else None)
        is_mask = dimensions.names_of(array) is not None
        return cls.of_json(array.attributes, dtype, mask=fill if is_mask else None)

    def also_missing(self, value: Any) -> Self:
        """Return the same with one more stored value that is missing."""
        marks = self.marks or Marks()
        marks = marks._replace(missing=(*marks.missing, np.array(value, self.dtype)[()]))
        return replace(self, marks=marks, viewed=marks.viewed(self.kind) if self.kind else None)

    @property
    def is_trivial(self) -> bool:
        """Whether stored values mean themselves, and all are valid."""
        return self.marks is None and not self.kind and self.scale_factor is None and self.add_offset is None

    @property
    def words(self) -> str:
        """What is done to stored values, in words; "" for nothing.

        >>> Packing.of_json({"scale_factor": 0.5, "missing_value": -9, "valid_min": 0}, np.dtype("i2")).words
        'scale 0.5, missing -9, valid from 0'
        """
        marks = self.marks or Marks()
        missing = [*([] if marks.fill is None else [marks.fill]), *marks.missing]
        said = {
            "as": {"u": "unsigned", "i": "signed"}.get(self.kind),
            "scale": self.scale_factor,
            "offset": self.add_offset,
            "missing": " and ".join(map(str, missing)) or None,
            "valid from": marks.low,
            "valid to": marks.high,
        }
        return ", ".join(f"{name} {value}" for name, value in said.items() if value is not None)

    def meant(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return stored values as integers of the kind that their bits mean."""
        return data.view(f"{data.dtype.byteorder}{self.kind}{data.dtype.itemsize}") if self.kind else data

    def hidden(self, data: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Return where stored values are missing or not valid; None if none is."""
        marks = self.viewed if self.kind else self.marks
        return None if marks is None else marks.find(self.meant(data))[0]

    def decoded(self, data: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Return what stored values mean, and where they are missing or not valid (None: nowhere).

        >>> packing = Packing.of_json({"_Unsigned": "true", "valid_max": 100}, np.dtype("i1"))
        >>> packing.decoded(np.array([100, -1], "i1"))
        (array([100, 255], dtype=uint8), array([False,  True]))
        """
        return self.scaled(self.meant(data)), self.hidden(data)

    def floats(self, data: NDArray[Any], dtype: np.dtype[Any] | None = None) -> NDArray[Any]:
        """Return what stored values mean as floats of a type, float64 by default: NaN where they are missing."""
        data = np.asarray(data)
        values = self.meant(data).astype(np.float64 if dtype is None else dtype)
        for name in ("scale_factor", "add_offset"):
            number = getattr(self, name)
            if number is not None:
                with np.errstate(over="ignore", invalid="ignore"):
                    (np.multiply if name == "scale_factor" else np.add)(values, float(number), out=values)
        hidden = self.hidden(data)
        if hidden is not None:
            np.copyto(values, np.nan, where=hidden)
        return values

    def conversion(self, dtype: np.dtype[Any]) -> Conversion:
        """Return `floats` as a conversion, which engines apply as they read."""
        marks = (self.viewed if self.kind else self.marks) or Marks()
        missing = [mark for mark in (marks.fill, *marks.missing) if mark is not None]
        scale, offset = (None if number is None else float(number) for number in (self.scale_factor, self.add_offset))
        meant = self.meant(np.empty(0, self.dtype)).dtype
        step = unpack_step(meant, dtype, scale, offset, missing, (marks.low, marks.high))
        return Conversion(dtype, lambda data: self.floats(data, dtype), None if step is None else (step,))

    def scaled(self, data: NDArray[Any], hidden: NDArray[np.bool_] | None = None) -> Any:
        """Return values with scale and offset applied, except masked ones, in the type that NumPy computes.

        Masked arrays do the same, but take several times as long.
        """
        factor, offset = self.scale_factor, self.add_offset
        trivial = (factor is None or factor == 1) and (offset is None or offset == 0)
        if trivial:
            return data if factor is None or offset is None else data.astype(factor.dtype)
        if not goes_in_blocks(data):
            return self._computed(data, hidden)
        values = np.empty_like(data, self._computed(data.ravel(order="K")[:0], None).dtype)
        source, target = data.ravel(order="K"), values.ravel(order="K")
        where = None if hidden is None else hidden.ravel(order="K")

        def compute(block: slice) -> None:
            target[block] = self._computed(source[block], None if where is None else where[block])

        each_block(compute, data.size)
        return values

    def _computed(self, data: NDArray[Any], hidden: NDArray[np.bool_] | None) -> Any:
        with np.errstate(over="ignore", invalid="ignore"):
            values = data if self.scale_factor is None else data * self.scale_factor
            if self.add_offset is not None:
                values = values + self.add_offset
            if hidden is not None and data.ndim:
                np.copyto(values, data, casting="unsafe", where=hidden)
        return values


def _of_json(value: JSON, dtype: np.dtype[Any], kind: str) -> NDArray[Any] | None:
    """Return the value of an attribute as a vector of the type of the data; None if the type cannot hold it."""
    items = value if is_list(value) and not _is_complex(value, dtype) else [value]
    found = []
    for item in items:
        number = fill_values.decode(item, dtype)
        if number is None and kind:  # written as what the bits mean
            meant = fill_values.decode(item, np.dtype(f"{kind}{dtype.itemsize}"))
            number = None if meant is None else meant.view(dtype.newbyteorder("="))
        if number is None:
            return None
        found.append(number)
    return np.array(found, dtype.newbyteorder("=")) if found else None


def _is_complex(value: JSON, dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "c" and fill_values.decode(value, dtype) is not None
