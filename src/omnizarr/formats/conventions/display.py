"""The meaning of attributes for showing an array: missing values, scale, offset, and positions of OME-Zarr's samples.

Spec: CF conventions, sections 2.5.1 and 8.1; OME-Zarr, "coordinateTransformations".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeGuard

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions import fill_values
from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON, ArrayMetadata, datatypes, dimensions


class Placement(NamedTuple):
    """The positions of the samples of an image level, in the unit of each axis.

    Attributes
    ----------
    scale, translation : list of float
        The distance between samples, and the position of the first, along each axis.
    """

    scale: list[float]
    translation: list[float]


def placement(ndim: int, dataset: Mapping[str, Any], image: Mapping[str, Any]) -> Placement | None:
    """Return the positions of samples by the transformations of a level and its image; None if neither has a scale.

    >>> level = {"coordinateTransformations": [{"type": "scale", "scale": [2.0, 4.0]}]}
    >>> placement(2, level, {"coordinateTransformations": [{"type": "translation", "translation": [1.0, 0.0]}]})
    Placement(scale=[2.0, 4.0], translation=[1.0, 0.0])
    """
    scale, translation = [1.0] * ndim, [0.0] * ndim
    is_scaled = False
    for holder in (dataset, image):
        listed = holder.get("coordinateTransformations")
        for each in listed if is_list(listed) else ():
            kind = each.get("type") if is_object(each) else None
            values = numbers(each.get(kind), ndim) if isinstance(kind, str) else None
            if kind == "scale" and values is not None:
                is_scaled = True
                scale = [a * b for a, b in zip(scale, values, strict=True)]
                translation = [a * b for a, b in zip(translation, values, strict=True)]
            elif kind == "translation" and values is not None:
                translation = [a + b for a, b in zip(translation, values, strict=True)]
    return Placement(scale, translation) if is_scaled else None


def missing_values(array: ArrayMetadata, *, is_image: bool = False) -> list[Any]:
    """Return the stored values that mean "missing".

    They are those of ``_FillValue`` and ``missing_value``. Before v3, xarray and netCDF also use the fill value
    of an array with named dimensions; OME-Zarr does not.

    Parameters
    ----------
    array : ArrayMetadata
    is_image : bool
        Whether the array is a level of an OME-Zarr image.

    Returns
    -------
    list of NumPy scalar
    """
    try:
        data_type = datatypes.bind(array.data_type, array.byte_order)
    except OmnizarrError:
        return []
    dtype = data_type.dtype
    if dtype.kind not in "biufc":
        return []
    listed = array.attributes.get("missing_value")
    stored = [array.attributes.get("_FillValue"), *(listed if is_list(listed) else [listed])]
    found = [fill_values.decode(value, dtype) for value in stored if value is not None]
    is_mask = not array.dialect.startswith("v3") and not is_image and dimensions.names_of(array) is not None
    if is_mask and dtype.kind in "iuf" and isinstance(array.fill_value, int | float | str):
        with suppress(OmnizarrError):
            found.append(data_type.fill_from_json(array.fill_value))
    return [value for value in found if value is not None]


def number(attributes: Mapping[str, JSON], name: str) -> float | None:
    """Return the number in an attribute, alone or in a list of one; None for other values.

    >>> number({"scale_factor": [0.5]}, "scale_factor"), number({"scale_factor": "0.5"}, "scale_factor")
    (0.5, None)
    """
    value = attributes.get(name)
    if is_list(value) and len(value) == 1:
        value = value[0]
    return float(value) if _is_number(value) else None


def numbers(values: JSON, count: int) -> list[float] | None:
    """Return a list of this many finite numbers; None for other values."""
    found = [float(value) for value in values if _is_number(value)] if is_list(values) else []
    return found if is_list(values) and len(found) == len(values) == count else None


class Channel(NamedTuple):
    """A channel of an image, as ``omero`` describes it.

    Attributes
    ----------
    label : str
    color : str
        Red, green and blue in hexadecimal digits.
    window : list of float or None
        The values that are black, and in full colour.
    """

    label: str
    color: str
    window: list[float] | None


def channels(omero: JSON) -> list[Channel]:
    """Return the channels that the member ``omero`` of an image lists.

    >>> channels({"channels": [{"label": "DAPI", "color": "0000FF", "window": {"start": 0, "end": 1500}}]})
    [Channel(label='DAPI', color='0000FF', window=[0.0, 1500.0])]
    """
    listed = omero.get("channels") if is_object(omero) else None
    found = []
    for number, channel in enumerate(listed if is_list(listed) else ()):
        said = channel if is_object(channel) else {}
        label, color, window = said.get("label"), said.get("color"), said.get("window")
        ends = [window.get("start"), window.get("end")] if is_object(window) else []
        name = label if isinstance(label, str) and label else f"channel {number}"
        text = color.removeprefix("#")[:6] if isinstance(color, str) and color else "ffffff"
        found.append(Channel(name, text, numbers(ends, 2)))
    return found


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
