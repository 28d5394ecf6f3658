"""xarray's convention for netCDF-like datasets: names of dimensions, and values that are missing.

Names of dimensions are a member of v3's documents, and the attribute ``_ARRAY_DIMENSIONS`` in other formats.
Datasets of NCZarr without that attribute name them by their references to dimensions.

Before v3, the fill value of an array is its mask: xarray shows elements that equal it as missing. In v3 the
attribute ``_FillValue`` is the mask, and the fill value is only the value of missing chunks. So the mask of an
array moves to the place where its new format has it. If nothing is masked, the fill value becomes undefined
(null).

Spec: xarray, "Zarr Encoding Specification"; CF conventions, "Missing data".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions import anndata, fill_values, gdal, nczarr, ome
from omnizarr.formats.conventions.contract import Carried, Convention, Fault, Nodes
from omnizarr.formats.spelling import same
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, Loss, Metadata, datatypes
from omnizarr.model.datatypes import DataType
from omnizarr.model.dimensions import ATTRIBUTE as DIMENSIONS
from omnizarr.model.dimensions import names_of

FILL_VALUE: Final = "_FillValue"
MISSING_VALUE: Final = "missing_value"

_SPEC: Final = "https://docs.xarray.dev/en/stable/internals/zarr-encoding-spec.html"
_NAMED: Final = "v3"
"""The format whose documents name dimensions, and whose fill value is not a mask."""
_MASKED: Final = "biufcSUTO"
"""Kinds of NumPy data types for which xarray masks values: not times, for which NaT is missing, nor records."""
_ENCODED: Final = "biufc"
"""Kinds for which xarray reads ``_FillValue`` in v3."""
_NUMBERS: Final = "iuf"
"""Kinds for which ``_FillValue`` is a number in JSON, if it is finite."""
_TEXT: Final = "UT"
"""Kinds that xarray masks in v3 only by ``missing_value``, because it cannot read their ``_FillValue``."""
_USER: Final = 2
"""`numpy.dtype.isbuiltin` of types that other packages register."""


# Names of dimensions


def _recognise(path: str, nodes: Nodes) -> bool:
    node = nodes[path]
    if not isinstance(node, ArrayMetadata):
        return False
    if DIMENSIONS in node.attributes or _are_named(node):
        return True
    return _is_bare_scalar(node) and not anndata.is_element(node) and nodes.all_beside(path, _has_names)


def _is_bare_scalar(array: ArrayMetadata) -> bool:
    """Return whether an array has no dimensions and names none, as xarray writes scalars in v3."""
    return array.dialect == _NAMED and not array.shape


def _has_names(array: ArrayMetadata) -> bool:
    return _is_bare_scalar(array) or _are_named(array)


def _are_named(array: ArrayMetadata) -> bool:
    """Return whether each dimension has a name, which xarray needs to open an array."""
    names = names_of(array)
    return names is not None and all(isinstance(name, str) for name in names)


# From one format to another


@dataclass
class _Carrying:
    """One array that is being converted."""

    path: str
    array: ArrayMetadata
    attributes: dict[str, JSON]
    remarks: list[str] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def finished(self) -> Carried:
        return Carried(replace(self.array, attributes=self.attributes), tuple(self.remarks), tuple(self.losses))


def _carry(array: Metadata, path: str, nodes: Nodes, dialect: str) -> Carried:
    if not isinstance(array, ArrayMetadata) or _NAMED not in (array.dialect, dialect):
        return Carried(array)
    if not _has_names(array):
        remark = f"the attribute {DIMENSIONS} is not a list of {len(array.shape)} names, and stays an attribute"
        return Carried(array, (remark,) if DIMENSIONS in array.attributes else ())
    carrying = _Carrying(path, array, dict(array.attributes))
    is_masked = not ome.is_image(path, nodes)
    if dialect == _NAMED:
        names = names_of(carrying.array)
        if carrying.attributes.pop(DIMENSIONS, None) is not None:
            carrying.remarks.append(f"the attribute {DIMENSIONS} becomes dimension_names")
        elif carrying.array.dimension_names is None:
            carrying.remarks.append("the dimensions that NCZarr refers to become dimension_names")
        carrying.array = replace(carrying.array, dimension_names=names)
        if is_masked:
            _mask_by_attribute(carrying)
    else:
        _name_by_attribute(carrying)
        if is_masked and not gdal.is_georeferenced(array):
            _mask_by_fill_value(carrying)
    return carrying.finished()


def _name_by_attribute(carrying: _Carrying) -> None:
    names = list(carrying.array.dimension_names or ())
    there = carrying.attributes.get(DIMENSIONS)
    if there is None:
        carrying.attributes[DIMENSIONS] = names
        carrying.remarks.append(f"dimension_names become the attribute {DIMENSIONS}")
    elif not same(there, names):
        why = f"the format has no place for them, and the attribute {DIMENSIONS} has other names"
        carrying.losses.append(Loss(carrying.path, "/dimension_names", f"dimension_names {names}", why))
    carrying.array = replace(carrying.array, dimension_names=None)


def _data_type(array: ArrayMetadata) -> DataType | None:
    try:
        found = datatypes.bind(array.data_type)
    except OmnizarrError:
        return None
    # types of ml_dtypes may become a float or an integer in another format
    return found if found.dtype.kind in _MASKED or found.dtype.isbuiltin == _USER else None


def _mask_by_attribute(carrying: _Carrying) -> None:
    """State by attributes what the fill value states before v3: which elements xarray shows as missing."""
    data_type = _data_type(carrying.array)
    if data_type is None or data_type.dtype.isbuiltin == _USER:
        return
    attributes, kind = carrying.attributes, data_type.dtype.kind
    json = carrying.array.fill_value
    if json is UNDEFINED:
        value = fill_values.decode(attributes.get(FILL_VALUE), data_type.dtype)
        if value is not None and kind in _ENCODED:
            attributes[FILL_VALUE] = fill_values.encode(value)
        return
    try:
        value = data_type.fill_from_json(json)
    except OmnizarrError:
        return
    if kind in _ENCODED:
        attributes[FILL_VALUE] = fill_values.encode(value)
        carrying.remarks.append("the fill value, which xarray masks, becomes the attribute _FillValue as well")
    elif kind in _TEXT and MISSING_VALUE not in attributes:
        attributes.pop(FILL_VALUE, None)
        attributes[MISSING_VALUE] = str(value)
        carrying.remarks.append("the fill value, which xarray masks, becomes the attribute missing_value as well")
    else:
        attributes.pop(FILL_VALUE, None)
        what = f"that xarray shows elements that equal the fill value {json!r} as missing"
        why = f"in Zarr v3, xarray has no mask for values of the type {carrying.array.data_type.name}"
        carrying.losses.append(Loss(carrying.path, "/fill_value", what, why))


def _mask_by_fill_value(carrying: _Carrying) -> None:
    """Set the fill value to the attribute ``_FillValue`` in v3; undefined without one, because nothing is masked."""
    data_type = _data_type(carrying.array)
    if data_type is None:
        return
    stored = carrying.attributes.get(FILL_VALUE)
    value = None if stored is None else fill_values.decode(stored, data_type.dtype)
    if value is None:
        changed: Any = UNDEFINED
        carrying.remarks.append("fill_value becomes null, as xarray would show elements that equal it as missing")
    else:
        changed = data_type.fill_to_json(value)
        if data_type.dtype.kind in _NUMBERS and nczarr.is_fill_value(carrying.array, value):
            carrying.attributes[FILL_VALUE] = value.item()  # where netCDF-C looks for it
        else:
            del carrying.attributes[FILL_VALUE]
        carrying.remarks.append("the attribute _FillValue becomes the fill value, which xarray masks")
    carrying.array = replace(carrying.array, fill_value=changed)


# What is wrong


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    array = nodes[path]
    if isinstance(array, ArrayMetadata):
        listed = array.attributes.get(DIMENSIONS)
        if DIMENSIONS in array.attributes and names_of(replace(array, dimension_names=None)) is None:
            message, expected = "names of dimensions that do not fit the shape", f"{len(array.shape)} strings"
            yield Fault("array-dimensions", path, f"/attributes/{DIMENSIONS}", message, listed, expected)
        yield from _fault_of_mask(path, array)
        yield from _faults_of_lengths(path, array, nodes)


def _fault_of_mask(path: str, array: ArrayMetadata) -> Iterator[Fault]:
    stored = array.attributes.get(FILL_VALUE)
    data_type = _data_type(array)
    if stored is None or data_type is None or data_type.dtype.isbuiltin == _USER:
        return
    value, pointer = fill_values.decode(stored, data_type.dtype), f"/attributes/{FILL_VALUE}"
    expected = f"a value of {array.data_type.name}"
    if value is None:
        yield Fault(
            "mask-of-another-type", path, pointer, "_FillValue is not a value of the data type", stored, expected
        )
    elif array.dialect == _NAMED and data_type.dtype.kind not in _ENCODED:
        message = f"_FillValue of {array.data_type.name}: xarray cannot open the group"
        yield Fault("mask-unreadable", path, pointer, message, stored, "the attribute missing_value")
    elif array.dialect == _NAMED and not same(stored, form := fill_values.encode(value)):
        message = "_FillValue is not in the form that xarray reads in v3"
        yield Fault("mask-unreadable", path, pointer, message, stored, form)


def _faults_of_lengths(path: str, array: ArrayMetadata, nodes: Nodes) -> Iterator[Fault]:
    """Yield the dimensions that are longer or shorter than the coordinate of the same name."""
    parent = path.rpartition("/")[0]
    names = names_of(array) or ()
    for at, name in enumerate(names):
        beside = f"{parent}/{name}" if parent else str(name)
        coordinate = nodes.get(beside)
        if beside == path or not isinstance(coordinate, ArrayMetadata) or names_of(coordinate) != (name,):
            continue
        if coordinate.shape[0] != array.shape[at]:
            message = f"dimension {name!r} differs in length from its coordinate; xarray refuses the group"
            yield Fault(
                "coordinate-length", path, "/shape", message, found=array.shape[at], expected=coordinate.shape[0]
            )


XARRAY: Final = Convention(
    name="xarray",
    title="xarray/CF",
    spec=_SPEC,
    attributes=frozenset({DIMENSIONS, FILL_VALUE, MISSING_VALUE}),
    recognise=_recognise,
    carry=_carry,
    faults=_faults,
)
