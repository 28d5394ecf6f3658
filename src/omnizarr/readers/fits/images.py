"""Images: the array of a primary unit, or of an extension IMAGE.

Integers without a sign are stored as others from which half of the range is subtracted. These are shown as what they
are. Any other scale and offset is left to the attributes of CF, so that no element is rounded.

Spec: FITS Standard 4.0, sections 4.4.2, 5.3 and 7.1.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from omnizarr.readers.documents import array_document, bytes_codec
from omnizarr.readers.fits.headers import Unit
from omnizarr.stores.manifests.manifest import AnyManifest, strided

DTYPES: Final = {8: "uint8", 16: "int16", 32: "int32", 64: "int64", -32: "float32", -64: "float64"}
_SHIFTED: Final = {
    ("uint8", -128): "int8",
    ("int16", 1 << 15): "uint16",
    ("int32", 1 << 31): "uint32",
    ("int64", 1 << 63): "uint64",
}
"""Types by that of the stored elements, and what is added to them."""
_MOST_AXES: Final = 32
_AXIS: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*")


class Unshown(Exception):  # noqa: N818 - a reason, which becomes a note
    """Why something cannot be shown."""


@dataclass(frozen=True, slots=True)
class Elements:
    """How elements are stored, and what they mean.

    Attributes
    ----------
    dtype : str
        The data type in Zarr.
    is_shifted : bool
        Whether half of the range is subtracted in the file.
    scale, offset : float
        What the elements are multiplied by, and what is then added, to find physical values.
    missing : int or None
        The element that means that a value is missing.
    """

    dtype: str
    is_shifted: bool = False
    scale: float = 1
    offset: float = 0
    missing: int | None = None

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return np.dtype(self.dtype).itemsize

    def codecs(self) -> list[dict[str, Any]]:
        """Return the codecs of elements that are stored as they are."""
        found: list[dict[str, Any]] = [bytes_codec("big", self.itemsize)]
        if self.is_shifted:
            found.append({"name": "fits", "configuration": {"elements": "shifted", "size": self.itemsize}})
        return found

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of CF."""
        found: dict[str, Any] = {}
        if (self.scale, self.offset) != (1, 0):
            found |= {"scale_factor": float(self.scale), "add_offset": float(self.offset)}
        if self.missing is not None:
            found["_FillValue"] = self.missing
        return found


def elements_of(dtype: str, scale: float, offset: float, missing: int | None) -> Elements:
    """Return what elements mean, from the numbers of a header."""
    is_number = math.isfinite(scale) and math.isfinite(offset)
    shifted = _SHIFTED.get((dtype, int(offset))) if is_number and scale == 1 and offset == int(offset) else None
    if shifted is not None and missing is not None:
        missing += int(offset)
    shown = shifted or dtype
    if np.dtype(shown).kind == "f":
        missing = None
    elif missing is not None:
        limits = np.iinfo(shown)
        missing = missing if limits.min <= missing <= limits.max else None
    if shifted is not None:
        return Elements(shifted, is_shifted=True, missing=missing)
    return Elements(dtype, scale=scale, offset=offset, missing=missing)


@dataclass(frozen=True, slots=True)
class Image:
    """An image."""

    unit: Unit
    elements: Elements
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    manifest: AnyManifest

    def document(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """Return the document."""
        own = self.elements.attributes()
        if unit := self.unit.string("BUNIT"):
            own["units"] = unit
        missing = self.elements.missing
        fill = 0 if missing is None else missing
        names = names_of(self.unit, len(self.shape))
        return array_document(
            self.shape, self.elements.dtype, self.chunks, fill, self.elements.codecs(), attributes | own, names
        )


def image_of(unit: Unit) -> Image:
    """Return the image of a unit. Raises Unshown."""
    shape = unit.shape
    check_shape(shape)
    elements = image_elements(unit, DTYPES[unit.integer("BITPIX")])
    chunks, manifest = strided(shape, elements.itemsize, unit.start)
    return Image(unit, elements, shape, chunks, manifest)


def check_shape(shape: tuple[int, ...]) -> None:
    """Raise Unshown for a shape that NumPy cannot have."""
    if len(shape) > _MOST_AXES:
        raise Unshown(f"it has {len(shape)} axes, and arrays have at most {_MOST_AXES}")
    if prod(max(1, length) for length in shape) >= 1 << 60:
        raise Unshown(f"its shape is impossible: {shape}")


def image_elements(unit: Unit, dtype: str) -> Elements:
    """Return what the elements of an image mean."""
    missing = unit.integer("BLANK") if "BLANK" in unit.cards else None
    return elements_of(dtype, unit.number_of("BSCALE", 1), unit.number_of("BZERO", 0), missing)


def names_of(unit: Unit, rank: int) -> list[str | None]:
    """Return the names of dimensions: x and y for the first two axes of FITS, and the kind of coordinate for others."""
    found: list[str | None] = []
    for axis in range(1, rank + 1):
        name: str | None = "xy"[axis - 1] if axis < 3 and rank > 1 else None
        if name is None:
            match = _AXIS.match(unit.string(f"CTYPE{axis}"))
            name = match[0].lower() if match is not None else "x" if rank == 1 else None
        found.append(None if name in found else name)
    return found[::-1]
