"""An image of OME-Zarr 0.5 in the form of 0.6, and back: axes become a coordinate system, and scales lead to it.

Both ways, the image lies where it did. What 0.5 cannot say is a loss: other coordinate systems, and transformations
between them.

Spec: https://ngff.openmicroscopy.org, versions 0.5 and 0.6 (RFC-5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from omnizarr.formats.conventions.ome import systems
from omnizarr.formats.conventions.ome.systems import STEPS, SYSTEMS, numbers
from omnizarr.formats.reader import is_list, is_object

INTRINSIC: Final = "intrinsic"
"""The name of the coordinate system of an image that had none."""
_PLACED: Final = (["scale"], ["scale", "translation"])


class Changed(NamedTuple):
    """An image in another version.

    Attributes
    ----------
    image : mapping or None
        None if it cannot be expressed.
    remarks : tuple of str
    losses : tuple of (str, str)
        What, and why.
    """

    image: Mapping[str, Any] | None
    remarks: tuple[str, ...] = ()
    losses: tuple[tuple[str, str], ...] = ()


def to_06(image: Mapping[str, Any]) -> Changed:
    """Return an image of 0.5 as one of 0.6.

    Examples
    --------
    >>> level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [2.0, 2.0]}]}
    >>> changed = to_06({"axes": [{"name": "y"}, {"name": "x"}], "datasets": [level]}).image
    >>> changed["coordinateSystems"]
    [{'name': 'intrinsic', 'axes': [{'name': 'y'}, {'name': 'x'}]}]
    >>> changed["datasets"][0]["coordinateTransformations"][0]["output"]
    {'name': 'intrinsic'}
    """
    axes = image.get("axes")
    if not is_list(axes) or not all(map(is_object, axes)):
        return Changed(None, losses=(("its axes are no objects", ""),))
    above = image.get(STEPS)
    levels = []
    for level in _objects(image.get("datasets")):
        steps = _joined(level.get(STEPS), above, len(axes))
        if steps is None or not isinstance(level.get("path"), str):
            return Changed(None, losses=(("a level has not one scale, and one translation at most, as numbers", ""),))
        step = steps[0] if len(steps) == 1 else {"type": "sequence", "transformations": steps}
        ends = {"input": {"path": level["path"]}, "output": {"name": INTRINSIC}}
        levels.append({**level, STEPS: [{**step, **ends}]})
    left = {name: value for name, value in image.items() if name not in ("axes", "datasets", STEPS)}
    remarks = ("the transformation of all levels becomes a part of those of each",) if above else ()
    system = {"name": INTRINSIC, "axes": list(axes)}
    holders = (image, *_objects(image.get("datasets")))
    losses = _members_of_others(step for each in holders for step in _objects(each.get(STEPS)))
    return Changed({**left, SYSTEMS: [system], "datasets": levels}, remarks, losses)


def _joined(own: Any, above: Any, count: int) -> list[dict[str, Any]] | None:
    """Return the transformations of a level, followed by those of its image, as a scale and a translation."""
    listed = [_values(each, count) for each in ((own,) if not above else (own, above))]
    if any(each is None for each in listed):
        return None
    scale, moved = listed[0] or ([], None)
    for more, shift in (each for each in listed[1:] if each is not None):
        scale = [a * b for a, b in zip(scale, more, strict=True)]
        moved = None if moved is None else [a * b for a, b in zip(moved, more, strict=True)]
        if shift is not None:
            moved = [a + b for a, b in zip(moved or [0.0] * count, shift, strict=True)]
    steps: list[dict[str, Any]] = [{"type": "scale", "scale": scale}]
    return steps if moved is None else [*steps, {"type": "translation", "translation": moved}]


def _values(steps: Any, count: int) -> tuple[list[Any], list[Any] | None] | None:
    """Return the scale and the translation of a list of these, as they are stored; None if it is none."""
    listed = _objects(steps)
    if [step.get("type") for step in listed] not in _PLACED or not is_list(steps) or len(steps) != len(listed):
        return None
    found = [step.get(str(step["type"])) for step in listed]
    if any(numbers(values, count) is None for values in found):
        return None
    listed_values: list[list[Any]] = [list(values) for values in found if is_list(values)]
    return listed_values[0], listed_values[1] if len(found) > 1 else None


def to_05(image: Mapping[str, Any]) -> Changed:
    """Return an image of 0.6 as one of 0.5.

    Examples
    --------
    >>> step = {"type": "identity", "input": {"path": "0"}, "output": {"name": "a"}}
    >>> systems = [{"name": name, "axes": [{"name": "y"}, {"name": "x"}]} for name in "ab"]
    >>> changed = to_05(
    ...     {"coordinateSystems": systems, "datasets": [{"path": "0", "coordinateTransformations": [step]}]}
    ... )
    >>> changed.image["datasets"][0]["coordinateTransformations"]
    [{'type': 'scale', 'scale': [1.0, 1.0]}]
    >>> [what for what, _ in changed.losses]
    ["the coordinate system 'b'"]
    """
    name = systems.intrinsic(image)
    axes = systems.axes(image)
    if name is None or not is_list(axes):
        return Changed(None, losses=(("its levels do not lead to one of its coordinate systems", ""),))
    levels = []
    named: list[str] = [] if name == INTRINSIC else [name]
    for level in _objects(image.get("datasets")):
        found = systems.placement(len(axes), level, image) if len(_objects(level.get(STEPS))) == 1 else None
        if found is None:
            return Changed(None, losses=(("a level has a transformation that is no scale and no translation", ""),))
        steps = list(systems.flat(level.get(STEPS)))
        kinds = [each.get("type") for each in steps]
        values: list[Any] = list(found)
        if kinds in _PLACED:
            values = [step.get(str(step.get("type"))) for step in steps]
        if len(values) == 2 and kinds not in _PLACED and not any(values[1]):
            values = values[:1]
        placed = [
            {"type": kind, kind: list(each)} for kind, each in zip(("scale", "translation"), values, strict=False)
        ]
        named += [each["name"] for each in _objects(level.get(STEPS)) if isinstance(each.get("name"), str)]
        levels.append({**level, STEPS: placed})
    left = {key: value for key, value in image.items() if key not in (SYSTEMS, "datasets", STEPS)}
    why = "OME-Zarr 0.5 has one coordinate system, that of the axes"
    losses = [(f"the coordinate system {other!r}", why) for other in systems.systems(image) if other != name]
    losses += _not_carried(image, name)
    for step in _objects(image.get(STEPS)):
        ends = [systems.reference(step.get(member)).name for member in ("input", "output")]
        losses.append((f"the transformation from {ends[0]!r} to {ends[1]!r} ({systems.words(step)})", why))
    remarks = (f"names of transformations and systems are left out: {', '.join(named)}",) if named else ()
    return Changed({**left, "axes": list(axes), "datasets": levels}, remarks, tuple(losses))


def _not_carried(image: Mapping[str, Any], intrinsic: str) -> list[tuple[str, str]]:
    """Return what an image of 0.6 says that 0.5 cannot: members of others, and ends that are not those of levels."""
    why = "OME-Zarr 0.5 has no place for it"
    found = [
        (f"member {each!r} of the coordinate system {intrinsic!r}", why)
        for system in _objects(image.get(SYSTEMS))
        if system.get("name") == intrinsic
        for each in system
        if each not in ("name", "axes")
    ]
    for level in _objects(image.get("datasets")):
        for step in _objects(level.get(STEPS)):
            ends = systems.reference(step.get("input")), systems.reference(step.get("output"))
            if (ends[0].path, ends[1].name) != (level.get("path"), intrinsic):
                found.append((f"what the transformation of level {level.get('path')!r} leads from and to", why))
        for step in (*_objects(level.get(STEPS)), *systems.flat(level.get(STEPS))):
            found += _members_of_others([step])
    return list(dict.fromkeys(found))


def _members_of_others(steps: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Return the members of transformations that no version defines, which are not carried."""
    known = {"type", "name", "input", "output", "transformations"}
    lost = (each for step in steps for each in step if each not in known and each != step.get("type"))
    return tuple((f"member {each!r} of a transformation", "no version of OME-Zarr defines it") for each in lost)


def _objects(value: Any) -> Sequence[Mapping[str, Any]]:
    return systems.objects(value)
