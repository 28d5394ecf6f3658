"""The meaning of attributes for showing an array: numbers in them, flags, and channels.

Spec: CF conventions; OME-Zarr, "omero".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from omnizarr.formats.conventions.ome.systems import is_number, numbers
from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON

_CHANNELS: Final = 3
"""Red, green and blue."""
_BRIGHTEST: Final = 255


def number(attributes: Mapping[str, JSON], name: str) -> float | None:
    """Return the number in an attribute, alone or in a list of one; None for other values.

    >>> number({"scale_factor": [0.5]}, "scale_factor"), number({"scale_factor": "0.5"}, "scale_factor")
    (0.5, None)
    """
    value = attributes.get(name)
    if is_list(value) and len(value) == 1:
        value = value[0]
    return float(value) if is_number(value) else None


class Flag(NamedTuple):
    """What some stored values mean.

    Attributes
    ----------
    meaning : str
    value : int or None
        The value that has this meaning; None: each with any of the bits of `mask`.
    mask : int or None
        The bits that are compared with `value`; None: all.
    """

    meaning: str
    value: int | None
    mask: int | None

    def applies(self, stored: int) -> bool:
        """Return whether a stored value has this meaning."""
        part = stored if self.mask is None else stored & self.mask
        return part != 0 if self.value is None else part == self.value

    @property
    def words(self) -> str:
        """The value and the meaning, as in ``2 cloud`` or ``bits 4 cloud``."""
        number = "" if self.value is None else f"{self.value} "
        bits = "" if self.mask is None else f"bits {self.mask} "
        return f"{bits}{'= ' if number and bits else ''}{number}{self.meaning.replace('_', ' ')}"


def flags(attributes: Mapping[str, JSON]) -> tuple[Flag, ...]:
    """Return what ``flag_meanings``, ``flag_values`` and ``flag_masks`` say; none if their lengths differ.

    >>> flags({"flag_values": [0, 1], "flag_meanings": "clear cloudy"})
    (Flag(meaning='clear', value=0, mask=None), Flag(meaning='cloudy', value=1, mask=None))
    >>> [flag.meaning for flag in flags({"flag_masks": [1, 2], "flag_meanings": "day wet"}) if flag.applies(3)]
    ['day', 'wet']
    """
    said = attributes.get("flag_meanings")
    meanings = said.split() if isinstance(said, str) else list(said) if is_list(said) else []
    columns: list[list[Any]] = []
    for name in ("flag_values", "flag_masks"):
        value = attributes.get(name)
        listed = list(value) if is_list(value) else [None] * len(meanings) if value is None else [value]
        wanted = [each for each in listed if value is None or (isinstance(each, int) and not isinstance(each, bool))]
        columns.append(wanted)
    values, masks = columns
    is_said = "flag_values" in attributes or "flag_masks" in attributes
    if not is_said or not len(meanings) == len(values) == len(masks):
        return ()
    return tuple(Flag(str(name), value, mask) for name, value, mask in zip(meanings, values, masks, strict=True))


class Channel(NamedTuple):
    """A channel of an image, as ``omero`` describes it.

    Attributes
    ----------
    label : str
    color : str
        Red, green and blue in hexadecimal digits.
    window : list of float or None
        The values that are black, and in full colour.
    active : bool
        Whether it is seen at first.
    """

    label: str
    color: str
    window: list[float] | None
    active: bool = True


def channels(omero: JSON) -> list[Channel]:
    """Return the channels that the member ``omero`` of an image lists.

    >>> channels({"channels": [{"label": "DAPI", "color": "0000FF", "window": {"start": 0, "end": 1500}}]})
    [Channel(label='DAPI', color='0000FF', window=[0.0, 1500.0], active=True)]
    """
    listed = omero.get("channels") if is_object(omero) else None
    found = []
    for number, channel in enumerate(listed if is_list(listed) else ()):
        said = channel if is_object(channel) else {}
        label, color, window = said.get("label"), said.get("color"), said.get("window")
        ends = [window.get("start"), window.get("end")] if is_object(window) else []
        name = label if isinstance(label, str) and label else f"channel {number}"
        text = color.removeprefix("#")[:6] if isinstance(color, str) and color else "ffffff"
        found.append(Channel(name, text, numbers(ends, 2), said.get("active") is not False))
    return found


def label_colours(members: Mapping[str, Any]) -> dict[str, str]:
    """Return the colours that a label image gives to labels, as six hexadecimal digits; of those without any, nothing.

    >>> label_colours({"image-label": {"colors": [{"label-value": 3, "rgba": [255, 0, 16, 128]}, {"label-value": 4}]}})
    {'3': 'ff0010'}
    """
    label = members.get("image-label")
    listed = label.get("colors") if isinstance(label, Mapping) else None
    found: dict[str, str] = {}
    for each in listed if is_list(listed) else ():
        value, rgba = (each.get(key) for key in ("label-value", "rgba")) if isinstance(each, Mapping) else (None, None)
        if not is_list(rgba) or len(rgba) < _CHANNELS or not isinstance(value, int):
            continue
        if all(isinstance(part, int) and 0 <= part <= _BRIGHTEST for part in rgba[:_CHANNELS]):
            found[str(value)] = "".join(f"{part:02x}" for part in rgba[:_CHANNELS])
    return found
