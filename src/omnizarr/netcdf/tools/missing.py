"""Fill values for elements that may be missing (the data type ``optional``), where netCDF has none.

A file says with ``_FillValue`` which elements are missing, so no other element may have that value. All elements are
read to find one that none has: the array's own, netCDF's default, or another. Where each value is that of an element
and none is missing, the attribute is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.metadata import as_model
from omnizarr.model import grids
from omnizarr.model.datatypes.optional import is_optional
from omnizarr.netcdf import elements, types
from omnizarr.netcdf.header import MEMBERS, Attribute, GroupHeader, Selection, Source, VariableHeader
from omnizarr.nodes import creating
from omnizarr.nodes.array import Array
from omnizarr.tools.translate.translation import Loss

_FILL_VALUE: Final = "_FillValue"
_TEXTS: Final = ("", "NA", "<NA>", "missing")
_NONE_MISSING: Final = "no _FillValue is written: no element is missing, and elements have all values that were tried"
_MASKED: Final = "; netCDF4-python masks elements with netCDF's default fill value; set_auto_mask(False) prevents it"
"""Of numbers: strings have no default fill value that is masked."""
_FEW_BYTES: Final = 2
"""Bytes of integers of which all values are looked at."""


def with_exact_fills(source: Source) -> tuple[Source, tuple[Loss, ...], dict[str, tuple[str, ...]]]:
    """Return a dataset in which ``_FillValue`` means missing and nothing else, what it lacks, and remarks by variable.

    Variables of which each possible value is the value of an element are left out.
    """
    fills: dict[str, Any] = {}
    losses: list[Loss] = []
    remarks: dict[str, tuple[str, ...]] = {}

    def fitted(group: GroupHeader, path: str) -> GroupHeader:
        kept = {}
        for name, each in group.variables.items():
            full = f"{path}/{name}"
            array = source.array(full)
            if array is None or not is_optional(array.dtype) or not isinstance(each.type, types.NcType):
                kept[name] = each
                continue
            fill, why = _spare(each, array)
            if why and not _is_any_missing(array):
                kept[name] = replace(each, attributes={k: v for k, v in each.attributes.items() if k != _FILL_VALUE})
                fills[full] = None
                remarks[full] = (_NONE_MISSING if each.type is types.STRING else _NONE_MISSING + _MASKED,)
                continue
            if why:
                losses.append(Loss(path[1:], f"{MEMBERS}/{name}", f"member {name}", f"{name!r} is left out: {why}"))
                continue
            kept[name] = each
            if fill is not None:
                fills[full] = fill
                kept[name] = replace(each, attributes={**each.attributes, _FILL_VALUE: _attribute(each, fill)})
                said, ours = (
                    repr(value if isinstance(value, str) else value.item())
                    for value in (each.attributes[_FILL_VALUE].value[0], kept[name].attributes[_FILL_VALUE].value[0])
                )
                remarks[full] = (f"missing elements become {ours}, because another element is {said}",)
        below = {name: fitted(inner, f"{path}/{name}") for name, inner in group.groups.items()}
        return replace(group, variables=kept, groups=below)

    root = fitted(source.root, "")
    kinds = {f"{path}/{name}": each.type for path, group in root.walk() for name, each in group.variables.items()}

    def read(name: str, selection: Selection) -> NDArray[Any]:
        array = source.array(name) if name in fills else None
        decode = None if array is None else _decoder(array, kinds[name], fills[name])
        if array is None or decode is None:
            return source.read(name, selection)
        return decode(np.asanyarray(array[selection]))

    return source._replace(root=root, read=read), tuple(losses), remarks


def _decoder(array: Array, kind: Any, fill: Any) -> elements.Conversion | None:
    if fill is not None:
        return elements.decoder(array.dtype, kind, fill)
    return elements.decoder(array.dtype, kind, 0, warns=False)  # no element is missing


def _is_any_missing(array: Array) -> bool:
    return any(np.ma.getmaskarray(np.asanyarray(array[region])).any() for region in _regions(array))


def _attribute(header: VariableHeader, fill: Any) -> Attribute:
    if header.type is types.STRING or not isinstance(header.type, types.NcType):
        return Attribute.of([fill])
    return Attribute(header.type, np.array([fill], header.type.dtype))


def _spare(header: VariableHeader, array: Array) -> tuple[Any, str]:
    """Return another fill value, if the header's is the value of an element, and why there is none."""
    dtype, said = header.type.dtype, header.attributes[_FILL_VALUE].value[0]
    left = [said, *(each for each in _candidates(dtype) if not elements.equals(each, said))]
    decode = elements.decoder(array.dtype, header.type, said, warns=False)
    seen: set[Any] = set()
    is_small = dtype.kind in "iu" and dtype.itemsize <= _FEW_BYTES
    for region in _regions(array):
        found = np.asanyarray(array[region])
        valid = ~np.ma.getmaskarray(found)
        values = (found if decode is None else decode(found))[valid]
        if is_small:
            seen.update(np.unique(values).tolist())
        left = [each for each in left if not np.any(elements.equals(values, each))]
        if not left and not is_small:
            break
    if is_small and not left:
        limits = np.iinfo(dtype)
        left = [each for each in range(limits.max, limits.min - 1, -1) if each not in seen][:1]
    if not left:
        tried = "all values of the type" if is_small else "all values that were tried"
        return (
            None,
            f"elements have {tried}, so that no _FillValue can mean them: convert it to Zarr v3, which needs none",
        )
    return (None, "") if elements.equals(left[0], said) else (left[0], "")


def _candidates(dtype: np.dtype[Any]) -> Sequence[Any]:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return (limits.min, limits.max, *range(limits.max - 1, limits.max - 9, -1))
    if dtype.kind == "f":
        largest = np.finfo(dtype).max
        return tuple(map(dtype.type, (np.nan, -largest, largest, -np.inf, np.inf)))
    return _TEXTS


def _regions(array: Array) -> Iterator[tuple[slice, ...]]:
    metadata = as_model(array.metadata)
    return creating.blocks(grids.bind(metadata.chunk_grid, metadata.shape), array.dtype.itemsize)
