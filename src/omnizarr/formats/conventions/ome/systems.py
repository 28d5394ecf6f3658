"""Coordinate systems of OME-Zarr 0.6, and the transformations between them.

Up to 0.5 an image has ``axes``. From 0.6 on it has ``coordinateSystems``, each with axes, and its levels lead to one of
them, the intrinsic one: that is the system in which an image is drawn.

Spec: https://ngff.openmicroscopy.org, version 0.6 (RFC-5).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeGuard

from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON

SYSTEMS: Final = "coordinateSystems"
STEPS: Final = "coordinateTransformations"
PLAIN: Final = ("identity", "scale", "translation")
"""Transformations that are drawn, and sequences of them."""
_LARGEST: Final = sys.float_info.max
_DEEPEST: Final = 16
"""Transformations within each other; documents have a few."""
_VERSION: Final = re.compile(r"0\.6(?:\.?dev[0-9]+|rc[0-9]+)?")


def family(version: str | None) -> str | None:
    """Return the version of OME-Zarr that a version is a draft of, or the version.

    >>> family("0.6.dev4"), family("0.6rc0"), family("0.5")
    ('0.6', '0.6', '0.5')
    """
    return "0.6" if version is not None and _VERSION.fullmatch(version) else version


class Reference(NamedTuple):
    """The input or output of a transformation: a system by name, in the group at a path; None for what is not said."""

    name: str | None
    path: str | None


def reference(value: JSON) -> Reference:
    """Return what an input or output refers to. In drafts before 0.6.dev4 it is a text.

    >>> reference({"name": "physical", "path": "tile"}), reference("s0"), reference({"path": "s0", "name": None})
    (Reference(name='physical', path='tile'), Reference(name='s0', path='s0'), Reference(name=None, path='s0'))
    """
    if isinstance(value, str):
        return Reference(value, value)
    found = [value.get(key) if is_object(value) else None for key in ("name", "path")]
    name, path = (each if isinstance(each, str) else None for each in found)
    return Reference(name, path)


def systems(holder: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """Return the axes of the coordinate systems of an image or a scene, by name."""
    listed = holder.get(SYSTEMS)
    return {
        system["name"]: system["axes"]
        for system in (listed if is_list(listed) else ())
        if is_object(system) and isinstance(system.get("name"), str) and is_list(system.get("axes"))
    }


def has_systems(image: Mapping[str, Any]) -> bool:
    """Return whether an image is one of 0.6."""
    return SYSTEMS in image and "axes" not in image


def intrinsic(image: Mapping[str, Any]) -> str | None:
    """Return the name of the system that the levels of an image lead to; None if there is none.

    >>> system = {"name": "world", "axes": [{"name": "y"}, {"name": "x"}]}
    >>> step = {"type": "identity", "input": {"path": "0"}, "output": {"name": "world"}}
    >>> intrinsic({"coordinateSystems": [system], "datasets": [{"path": "0", "coordinateTransformations": [step]}]})
    'world'
    """
    known = systems(image)
    levels = image.get("datasets")
    for level in levels if is_list(levels) else ():
        for step in objects(level.get(STEPS) if is_object(level) else None):
            name = reference(step.get("output")).name
            if name in known:
                return name
    return next(iter(known)) if len(known) == 1 else None


def axes(image: Mapping[str, Any]) -> Any:
    """Return the axes of an image, as it lists them: its own, or from 0.6 on those of its intrinsic system."""
    return systems(image).get(intrinsic(image) or "") if has_systems(image) else image.get("axes")


def flat(listed: JSON, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield the transformations of a list, with those of sequences instead of these.

    >>> [step["type"] for step in flat([{"type": "sequence", "transformations": [{"type": "scale"}]}])]
    ['scale']
    """
    for step in objects(listed):
        if step.get("type") == "sequence" and depth < _DEEPEST:
            yield from flat(step.get("transformations"), depth + 1)
        else:
            yield step


def is_plain(step: Mapping[str, Any]) -> bool:
    """Return whether a transformation consists of those that are drawn."""
    return all(each.get("type") in PLAIN for each in flat([step]))


def words(step: Mapping[str, Any]) -> str:
    """Return what a transformation is.

    >>> words({"type": "sequence", "transformations": [{"type": "scale"}, {"type": "rotation"}]})
    'scale, rotation'
    """
    return ", ".join(str(each.get("type")) for each in flat([step])) or "sequence of nothing"


# -- positions of samples ----------------------------------------------------------------------------------------------


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

    From OME-Zarr 0.6 on, only the transformations of the level lead to the system in which the image is drawn. None if
    some of these are not drawn.

    >>> level = {"coordinateTransformations": [{"type": "scale", "scale": [2.0, 4.0]}]}
    >>> placement(2, level, {"coordinateTransformations": [{"type": "translation", "translation": [1.0, 0.0]}]})
    Placement(scale=[2.0, 4.0], translation=[1.0, 0.0])
    """
    scale, translation = [1.0] * ndim, [0.0] * ndim
    is_modern = has_systems(image)
    is_scaled = is_modern
    for holder in (dataset,) if is_modern else (dataset, image):
        for each in flat(holder.get(STEPS)):
            kind = each.get("type")
            values = numbers(each.get(kind), ndim) if isinstance(kind, str) else None
            if is_modern and (kind not in PLAIN or (values is None and kind != PLAIN[0])):
                return None
            if kind == "scale" and values is not None:
                is_scaled = True
                scale = [a * b for a, b in zip(scale, values, strict=True)]
                translation = [a * b for a, b in zip(translation, values, strict=True)]
            elif kind == "translation" and values is not None:
                translation = [a + b for a, b in zip(translation, values, strict=True)]
    return Placement(scale, translation) if is_scaled else None


def numbers(values: JSON, count: int) -> list[float] | None:
    """Return a list of this many finite numbers; None for other values."""
    found = [float(value) for value in values if is_number(value)] if is_list(values) else []
    return found if is_list(values) and len(found) == len(values) == count else None


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value of JSON is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def objects(value: JSON) -> list[Mapping[str, Any]]:
    """Return the objects in a list; none of another value."""
    return [each for each in value if is_object(each)] if is_list(value) else []
