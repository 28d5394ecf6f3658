"""Remarks on a netCDF dataset in Zarr: what readers see differently, and what is stored differently from the file.

Spec: xarray, "Zarr Encoding Specification"; the limits of netCDF-C are those of 4.10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.netcdf import filters, types
from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.layouts import LAYOUTS, user_types
from omnizarr.netcdf.layouts.attributes import fill_number
from omnizarr.netcdf.masking import Packing
from omnizarr.netcdf.types import NcType, UserType

_FOR_NETCDF: Final = "for netCDF-C, convert to a URL with #mode=nczarr"
_LONG: Final = 60  # characters of a value
_PACKED: Final = ("scale_factor", "add_offset")
_STORED: Final = 127  # that many values are unpacked to find one that shows the difference: all types have them
_UNTYPED: Final = frozenset({"pure", "pure-v3"})  # layouts in which an attribute is a number of JSON and nothing else


def remarks_of(root: GroupHeader, layout: str) -> dict[str, tuple[str, ...]]:
    """Return remarks on groups and variables that are written in a layout, by full name."""
    sizes = root.sizes()
    found: dict[str, tuple[str, ...]] = {}
    for path, group in root.walk():
        found[path] = (*_on_nuls(group, layout), *_on_bytes(group))
        for name, each in group.variables.items():
            remarks = (
                *_on_readers(each, layout, group, sizes),
                *_on_records(each, layout),
                *_on_fill(each),
                *_on_filters(each, layout),
                *_on_nuls(each, layout),
                *_on_bytes(each),
            )
            found[f"{path}/{name}"] = remarks
    return {path: remarks for path, remarks in found.items() if remarks}


def without_nuls(attribute: Attribute) -> Attribute:
    """Return a text without the NULs at its end, which programs in C like to leave there."""
    value = attribute.value
    return replace(attribute, value=value.rstrip("\0")) if isinstance(value, str) else attribute


def _on_nuls(header: GroupHeader | VariableHeader, layout: str) -> Iterator[str]:
    names = [name for name, each in header.attributes.items() if without_nuls(each) != each]
    if names and layout not in {"xarray", "v3", "E"}:
        yield f"NULs at the end of text are left out: {', '.join(names)}"


def _on_bytes(header: GroupHeader | VariableHeader) -> Iterator[str]:
    """Yield a remark on texts that are not UTF-8, such as a degree sign in Latin-1: escapes keep their bytes."""
    names = [name for name, each in header.attributes.items() if each.type.is_text and not _is_unicode(each.value)]
    if names:
        who = "strict readers of JSON refuse (TensorStore, zarrs)"
        yield f"texts that are not UTF-8, whose escapes {who}: {', '.join(names)}"


def _is_unicode(value: Any) -> bool:
    try:
        "".join(map(str, np.ravel(value))).encode()
    except UnicodeEncodeError:
        return False
    return True


def _on_readers(
    header: VariableHeader, layout: str, group: GroupHeader, sizes: Mapping[str, DimensionHeader]
) -> Iterator[str]:
    yield from _on_packing(header, layout)
    if layout in {"D", "A", "B", "C"}:
        if header.type is types.CHAR:
            yield "zarr-python 3 and xarray cannot open char in the form of NCZarr"
        elif not header.dimensions:
            yield "zarr-python and xarray see a scalar of NCZarr as a vector of length 1"
        elif header.type is types.STRING:
            yield "xarray sees strings of NCZarr as bytes"
    if layout in {"xarray", "pure"}:
        if not header.dimensions:
            yield f"netCDF-C leaves out scalars of Zarr; {_FOR_NETCDF}"
        if header.type is types.CHAR:
            yield f"netCDF-C sees strings of one byte in place of char; {_FOR_NETCDF}"
        elif header.type is types.STRING:
            yield "zarr-python sees bytes; the attribute _Encoding makes them text for xarray"
    is_masked = "_FillValue" in header.attributes
    if layout in {"v3", "pure-v3"} and header.type is types.CHAR and is_masked:
        yield "xarray does not mask single characters in Zarr v3"
    if layout not in {"A", "B", "C", "D", "E"} and _is_ambiguous(header, group, sizes):
        yield "xarray cannot open the group: dimensions of one name have different lengths"


def _on_packing(header: VariableHeader, layout: str) -> Iterator[str]:
    """Yield a remark for each reader to whom packed values have other digits: a float is a double in JSON.

    Layouts with types of attributes tell netCDF programs and our engine for xarray that it is a float.
    """
    given = {name: each for name in _PACKED if (each := header.attributes.get(name)) is not None}
    floats = [name for name, each in given.items() if each.type is types.FLOAT]
    if not floats or not isinstance(header.type, NcType):
        return
    packing = Packing.of(given, header.type)
    if packing.scale_factor is None and packing.add_offset is None:
        return
    doubles = {
        name: replace(each, type=types.DOUBLE, value=np.asarray(each.value, "f8")) for name, each in given.items()
    }
    wider = Packing.of({**given, **{name: doubles[name] for name in floats}}, header.type)
    readers: dict[str, Callable[[Packing, NDArray[Any]], NDArray[Any]]] = {"xarray": _as_xarray_unpacks}
    if layout in _UNTYPED:
        readers["netCDF4-python"] = lambda packing, stored: packing.unpack(stored, mask=False)
    for reader, unpack in readers.items():
        stored = np.arange(1, _STORED + 1).astype(header.type.dtype)
        before, after = unpack(packing, stored), unpack(wider, stored)
        if before.dtype == after.dtype and np.array_equal(before, after):
            continue
        at = int(np.argmax(before != after))  # the first that differs; otherwise the first, whose digits differ
        who = reader if layout in _UNTYPED else f'{reader} with engine="zarr"'
        names = f"{' and '.join(floats)} {'becomes' if len(floats) == 1 else 'become'}"
        yield (
            f"{names} double: for {who}, a stored {stored[at]!s} is {after[at]!s} ({after.dtype}), "
            f"in the file {before[at]!s} ({before.dtype})"
        )


def _as_xarray_unpacks(packing: Packing, stored: NDArray[Any]) -> NDArray[Any]:
    """Return values as xarray unpacks them: all steps in one type, which it chooses by those of the attributes."""
    factor, offset = packing.scale_factor, packing.add_offset
    chosen = np.dtype("f8") if factor is None else factor.dtype
    is_int4 = stored.dtype.itemsize == 4 and stored.dtype.kind in "iu"
    if offset is not None and (factor is None or offset.dtype != factor.dtype or is_int4):
        chosen = np.dtype("f8")
    values = stored.astype(chosen)
    if factor is not None:
        values *= factor
    if offset is not None:
        values += offset
    return values


def _on_records(header: VariableHeader, layout: str) -> Iterator[str]:
    """Yield remarks on elements that are neither numbers nor text."""
    if layout in {"xarray", "pure"} and isinstance(header.type, UserType) and header.type.kind != "enum":
        yield f"netCDF-C cannot open a dataset with such values; {_FOR_NETCDF}, which leaves them out"
        if user_types.is_nested(header.type):
            yield "zarr-python and xarray cannot open a group of Zarr v2 with records in records, or arrays in records"


def _on_fill(header: VariableHeader) -> Iterator[str]:
    """Yield a remark on a ``_FillValue`` that no element can have, which many programs write."""
    attribute = header.attributes.get("_FillValue")
    if attribute is None or not isinstance(header.type, NcType) or header.type is types.STRING:
        return
    is_char = header.type is types.CHAR
    if not (attribute.type is types.CHAR if is_char else fill_number(attribute, header.type) is not None):
        yield f"_FillValue = {in_words(attribute)} is not one {header.type.name}, and masks nothing"


def in_words(attribute: Attribute) -> str:
    """Return type and value of an attribute, for people."""
    text = repr(attribute.value) if isinstance(attribute.value, str) else str(attribute.value.tolist())
    return f"{attribute.type.name} {text if len(text) <= _LONG else f'{text[:_LONG]}...'}"


def _is_ambiguous(header: VariableHeader, group: GroupHeader, sizes: Mapping[str, DimensionHeader]) -> bool:
    """Return whether a dimension is called as another one that variables of the group have, of another length."""
    lengths = {
        name.rpartition("/")[2]: sizes[name].size for each in group.variables.values() for name in each.dimensions
    }
    return any(sizes[name].size != lengths[name.rpartition("/")[2]] for name in header.dimensions)


def _on_filters(header: VariableHeader, layout: str) -> Iterator[str]:
    if layout in {"A", "B", "C", "D", "E"} or not header.dimensions:
        return
    chosen = LAYOUTS[layout]
    given = filters.chain(header.special, header.type)
    stored = filters.widely_read(given, header.type, chosen.zarr_format)
    if given != stored:
        names = [each.name.removeprefix("numcodecs.") for each in given]
        kept = " and ".join(each.name.removeprefix("numcodecs.") for each in stored) or "nothing"
        yield f"{' and '.join(names)} become {kept}, which more readers of Zarr v{chosen.zarr_format} know"
