"""Dimension scales of HDF5 and netCDF-4, as names of dimensions; and the attributes that only mark them.

Spec: HDF5 Dimension Scale Specification; NetCDF-4 Format, "Dimensions", "The Order of Dimensions".
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from omnizarr.readers.hdf5.attributes import Attribute

NO_VARIABLE: Final = "This is a netCDF dimension but not a netCDF variable"
"""How the name of a dataset begins that is a dimension of netCDF alone."""
NON_COORDINATE: Final = "_nc4_non_coord_"
"""Prefix of the name of a variable that has the name of a dimension without being its coordinate."""

REFERENCES: Final = "REFERENCE_LIST"
"""The attribute of a dimension scale with all datasets that it belongs to."""

_MARKS: Final = frozenset(
    {REFERENCES, "DIMENSION_LIST", "DIMENSION_LABELS", "_Netcdf4Coordinates", "_Netcdf4Dimid", "_nc3_strict"}
)
_OF_SCALES: Final = frozenset({"CLASS", "NAME"})
_SCALE: Final = "DIMENSION_SCALE"
PROPERTIES: Final = "_NCProperties"


class Marks(NamedTuple):
    """What the attributes of a dataset say of its dimensions.

    Attributes
    ----------
    is_scale : bool
    is_dimension_only : bool
        Whether it is a dimension of netCDF, and no variable.
    number : int or None
        The number of the dimension of netCDF that it is.
    numbers : tuple of int
        The numbers of its own dimensions, if it is a coordinate of several.
    scales : tuple of (str or None)
        The path of the scale of each dimension.
    labels : tuple of str
        The label of each dimension.
    """

    is_scale: bool
    is_dimension_only: bool
    number: int | None
    numbers: tuple[int, ...]
    scales: tuple[str | None, ...]
    labels: tuple[str, ...]


def marks(values: dict[str, Any]) -> Marks:
    """Return the marks among the values of attributes, which are texts, NumPy scalars or arrays."""
    is_scale = str(values.get("CLASS", "")) == _SCALE
    listed = values.get("DIMENSION_LIST")
    scales: tuple[str | None, ...] = ()
    if listed is not None and getattr(listed, "ndim", 0) == 1:
        scales = tuple(str(each[0]) if len(each) and each[0] else None for each in listed)
    labels = values.get("DIMENSION_LABELS")
    return Marks(
        is_scale,
        is_scale and str(values.get("NAME", "")).startswith(NO_VARIABLE),
        _integer(values.get("_Netcdf4Dimid")),
        tuple(_integer(each) or 0 for each in _items(values.get("_Netcdf4Coordinates"))),
        scales,
        tuple(str(each) for each in _items(labels)),
    )


def _items(value: Any) -> list[Any]:
    return [] if value is None or getattr(value, "ndim", 0) != 1 else list(value)


def _integer(value: Any) -> int | None:
    try:
        return int(value.ravel()[0]) if hasattr(value, "ravel") else int(value)
    except (TypeError, ValueError, IndexError):
        return None


def is_hidden(attribute: Attribute, marks_here: Marks | None) -> bool:
    """Return whether an attribute only marks dimensions, or is a note of netCDF-C for itself."""
    if attribute.name in _OF_SCALES:
        return marks_here is not None and marks_here.is_scale
    return attribute.name in _MARKS or attribute.name == PROPERTIES


def plain(path: str) -> str:
    """Return the name of a dataset as in netCDF.

    >>> plain("a/_nc4_non_coord_x")
    'x'
    """
    return path.rpartition("/")[2].removeprefix(NON_COORDINATE)
