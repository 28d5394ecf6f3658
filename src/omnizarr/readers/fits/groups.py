"""Random groups: a unit of equal records, each with a few parameters and a small array. It becomes a group of arrays.

Spec: FITS Standard 4.0, section 6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Any, Final

import numpy as np

from omnizarr.readers.documents import array_document
from omnizarr.readers.fits import headers, images
from omnizarr.readers.fits.headers import Unit
from omnizarr.readers.fits.images import Unshown
from omnizarr.stores.manifests.manifest import Strided, strided

OF_PARAMETERS: Final = re.compile(r"P(?:TYPE|SCAL|ZERO)\d+")
"""Keywords of parameters, which are attributes of these."""
_DATA: Final = "data"
_MOST_PARAMETERS: Final = 999


def arrays(unit: Unit) -> Iterator[tuple[str, dict[str, Any], Strided]]:
    """Yield the name, the document and the manifest of each parameter, and of the data. Raises Unshown."""
    count, parameters = unit.integer("GCOUNT", 1), unit.integer("PCOUNT")
    if parameters > _MOST_PARAMETERS:
        raise Unshown(f"it has {parameters} parameters")
    shape = (count, *unit.shape[:-1])  # the last axis, the first of FITS, has the length 0
    images.check_shape((*shape, parameters + 1))
    stored = images.DTYPES[unit.integer("BITPIX")]
    size = np.dtype(stored).itemsize
    width = size * (parameters + prod(shape[1:]))
    taken = {_DATA}
    for number in range(1, parameters + 1):
        said = unit.string(f"PTYPE{number}").strip() or f"parameter {number}"
        name = headers.name_of_column(said, number, taken)
        scale, zero = unit.number_of(f"PSCAL{number}", 1), unit.number_of(f"PZERO{number}", 0)
        elements = images.elements_of(stored, scale, zero, None)
        own = {card: unit.cards[key] for card in ("PTYPE",) if (key := f"{card}{number}") in unit.cards}
        yield name, *_array(unit, elements, (count,), (number - 1) * size, width, own, ["group"])
    elements = images.image_elements(unit, stored)
    own = {"units": units} if (units := unit.string("BUNIT")) else {}
    kinds = images.names_of(unit, len(unit.shape))[:-1]
    names = ["group", *(None if kind in ("x", "y") else kind for kind in kinds)]
    yield _DATA, *_array(unit, elements, shape, parameters * size, width, own, names)


def _array(
    unit: Unit, elements: images.Elements, shape: tuple[int, ...], start: int, width: int, own: dict[str, Any],
    names: list[str | None],
) -> tuple[dict[str, Any], Strided]:  # fmt: skip
    chunks, manifest = strided(shape, elements.itemsize, unit.start + start, width)
    fill = elements.missing or 0
    document = array_document(
        shape, elements.dtype, chunks, fill, elements.codecs(), own | elements.attributes(), names
    )
    return document, manifest
