"""Pyramids of N5: a group whose arrays ``s0``, ``s1``, ... show one image, each coarser than the one before.

Paintera, BigDataViewer and n5-viewer say in attributes how the levels relate: ``downsamplingFactors`` of a level,
``scales`` of the group, ``resolution`` or ``pixelResolution`` in units of length. Here this becomes the metadata of
OME-Zarr, which everything that shows images knows. Lists of N5 are in the order x, y, z.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from omnizarr.readers.n5 import documents

MEMBER: Final = "ome"
MOST_LEVELS: Final = 32
FEW: Final = 8
"""Levels that are looked for at once."""
_AXES: Final = {2: ["y", "x"], 3: ["z", "y", "x"]}
_TYPES: Final = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}
_UNITS: Final = {
    "nm": "nanometer", "um": "micrometer", "µm": "micrometer", "μm": "micrometer", "micron": "micrometer",
    "mm": "millimeter", "cm": "centimeter", "m": "meter",
    **{name: name for name in ("nanometer", "micrometer", "millimeter", "centimeter", "meter")},
}  # fmt: skip


def name_of(level: int) -> str:
    """Return the name of the array of a level."""
    return f"s{level}"


def may_be(attributes: Mapping[str, Any]) -> bool:
    """Return whether the attributes of a group say that it is a pyramid."""
    if MEMBER in attributes or _is_ome(attributes.get("multiscales")):
        return False
    return attributes.get("multiScale") is True or any(
        isinstance(attributes.get(name), list) for name in ("scales", "resolution", "downsamplingFactors")
    )


def _is_ome(found: object) -> bool:
    """Return whether an attribute is that of OME-Zarr; COSEM's, of the same name, has neither version nor axes."""
    first = found[0] if isinstance(found, list) and found else None
    return isinstance(first, Mapping) and ("version" in first or "axes" in first)


def describe(attributes: Mapping[str, Any], levels: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Return the member "ome" of a group, from its attributes and those of s0, s1, ...; None if it is no pyramid.

    >>> level = {"dimensions": [8, 4], "dataType": "uint8", "compression": {"type": "raw"}}
    >>> coarse = {**level, "dimensions": [4, 2], "downsamplingFactors": [2, 2]}
    >>> found = describe({"resolution": [0.5, 1.0]}, [level, coarse])
    >>> [each["path"] for each in found["multiscales"][0]["datasets"]]
    ['s0', 's1']
    >>> found["multiscales"][0]["datasets"][1]["coordinateTransformations"][0]
    {'type': 'scale', 'scale': [2.0, 1.0]}
    """
    known = [each for each in takewhile(lambda each: each is not None, levels[:MOST_LEVELS]) if each is not None]
    loaded = [documents.load(each) for each in known]
    datasets = [dataset for _, dataset in takewhile(lambda each: each[1] is not None, loaded) if dataset is not None]
    if len(datasets) < 2 or len({len(each.dimensions) for each in datasets}) > 1:
        return None
    rank = len(datasets[0].dimensions)
    names = loaded[0][0].get("dimension_names") or _AXES.get(rank)
    if names is None or not all(name in _TYPES for name in names[-2:]):
        return None
    steps, unit = _resolution(attributes, known[0], rank)
    origin = _numbers(attributes.get("offset"), rank) or [0.0] * rank
    described = []
    for level, (own, dataset) in enumerate(zip(known, datasets, strict=False)):
        factors = _factors(attributes, own, level, rank) or [
            max(1.0, whole / part) if part else 1.0
            for whole, part in zip(datasets[0].dimensions, dataset.dimensions, strict=True)
        ]
        scale = [step * factor for step, factor in zip(steps, factors, strict=True)]
        # An element is the mean of several, and lies in the middle of them.
        begin = [start + step * (factor - 1) / 2 for start, step, factor in zip(origin, steps, factors, strict=True)]
        moves: list[dict[str, Any]] = [{"type": "scale", "scale": scale[::-1]}]
        if any(begin):
            moves.append({"type": "translation", "translation": begin[::-1]})
        described.append({"path": name_of(level), "coordinateTransformations": moves})
    axes = [_axis(name, unit) for name in names]
    return {"version": "0.5", "multiscales": [{"axes": axes, "datasets": described}]}


def _axis(name: str, unit: str | None) -> dict[str, Any]:
    kind = _TYPES.get(name)
    found = {"name": name} if kind is None else {"name": name, "type": kind}
    return {**found, "unit": unit} if unit is not None and kind == "space" else found


def _numbers(found: object, rank: int) -> list[float] | None:
    """Return a list of finite numbers, one for each dimension; None if it is none."""
    if not isinstance(found, list) or len(found) != rank:
        return None
    if not all(type(each) in (int, float) and math.isfinite(each) for each in found):
        return None
    return [float(each) for each in found]


def _positive(found: object, rank: int) -> list[float] | None:
    numbers = _numbers(found, rank)
    return numbers if numbers is not None and all(each > 0 for each in numbers) else None


def _resolution(attributes: Mapping[str, Any], first: Mapping[str, Any], rank: int) -> tuple[list[float], str | None]:
    """Return the distance between elements of s0 along each dimension, and its unit, if that is known."""
    for given in (attributes, first):
        found, unit = given.get("pixelResolution", given.get("resolution")), given.get("units", given.get("unit"))
        if isinstance(found, Mapping):
            unit = found.get("unit", unit)
            found = found.get("dimensions")
        steps = _positive(found, rank)
        if steps is not None:
            unit = unit[0] if isinstance(unit, list) and unit else unit
            return steps, _UNITS.get(unit) if isinstance(unit, str) else None
    return [1.0] * rank, None


def _factors(attributes: Mapping[str, Any], own: Mapping[str, Any], level: int, rank: int) -> list[float] | None:
    """Return how many elements of s0 are one of a level along each dimension; None if nothing says so."""
    if not level:
        return [1.0] * rank
    found = _positive(own.get("downsamplingFactors"), rank)
    for name in ("scales", "downsamplingFactors"):
        listed = attributes.get(name)
        if found is None and isinstance(listed, list) and level < len(listed):
            found = _positive(listed[level], rank)
    return found
