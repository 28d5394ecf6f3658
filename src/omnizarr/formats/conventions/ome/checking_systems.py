"""Finding violations in the coordinate systems of OME-Zarr 0.6, and in the axes of all versions that describe them.

Transformations are compared with what they lead from and to: systems that exist, their numbers of axes, arrays and
images with parameters, and the sizes of the levels.

Spec: https://ngff.openmicroscopy.org, version 0.6 (RFC-5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omnizarr.formats.conventions.contract import Fault, Nodes
from omnizarr.formats.conventions.ome import reading, systems
from omnizarr.formats.conventions.ome.reading import SCENE
from omnizarr.formats.conventions.ome.systems import STEPS, SYSTEMS, Reference
from omnizarr.formats.conventions.ome.transformations import Stored, problems
from omnizarr.formats.reader import is_list, is_object, join
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata

Below = tuple[str | int, ...]
_MOST: Final[Mapping[str, int]] = {"time": 1, "channel": 1, "other": 1, "space": 3}
_ORDER: Final[Mapping[str, int]] = {"time": 0, "channel": 1, "other": 1, "space": 2}
_OF_ARRAYS: Final = "array"
"""The type of axes whose coordinates are indices."""
_TO_LABELS: Final = frozenset({"identity", "scale", "translation", "sequence"})


@dataclass(frozen=True, slots=True)
class Place:
    """A group, and the place of its OME-Zarr metadata."""

    path: str
    nodes: Nodes
    pointer: str

    def fault(
        self, code: str, below: Sequence[str | int], message: str, found: object = None, expected: object = None
    ) -> Fault:
        """Return a violation at a place in the metadata."""
        return Fault(code, self.path, join(self.pointer, *below), message, found, expected)

    def missing(self, below: Sequence[str | int], relative: object) -> Iterator[Fault]:
        """Yield a violation if a path does not lead to a group."""
        if not isinstance(self.nodes.get(reading.resolve(self.path, relative)), GroupMetadata):
            message = "the path leads to no readable group"
            yield self.fault("ome-missing-group", below, message, relative, "the path of a group")

    def stored(self, relative: str) -> Stored | None:
        """Return what is stored at a path, for a transformation."""
        path = reading.resolve(self.path, relative)
        node = self.nodes.get(path)
        if isinstance(node, ArrayMetadata):
            return Stored(node.shape)
        for image in reading.images(path, self.nodes):
            first = next(reading.arrays(path, image, self.nodes), None)
            axes = systems.axes(image)
            if first is not None and is_list(axes):
                return Stored(first.shape, axes)
        return None


# -- axes --------------------------------------------------------------------------------------------------------------


def of_axes(at: Place, axes: Any, below: Below) -> Iterator[Fault]:
    """Yield what is wrong with the axes of an image."""
    if not is_list(axes) or not all(is_object(axis) and isinstance(axis.get("name"), str) for axis in axes):
        yield at.fault("ome-axes", below, "the axes are not objects with names", axes, "a list of objects")
        return
    names = [axis["name"] for axis in axes]
    types = [axis.get("type") for axis in axes]
    kinds = [kind if kind in _ORDER else "other" for kind in types]
    if len(set(names)) != len(names):
        yield at.fault("ome-axes", below, "two axes have one name", names, "names that differ")
    if not 2 <= len(axes) <= 5:
        yield at.fault("ome-axes", below, f"the image has {len(axes)} axes", names, "2 to 5 axes")
    if all(kind == _OF_ARRAYS for kind in types):
        return
    if kinds.count("space") < 2 or any(kinds.count(kind) > most for kind, most in _MOST.items()):
        expected = "2 or 3 of space, and at most one each of time, of channel and of any other type"
        message = "the axes have types that do not go together"
        yield at.fault("ome-axes", below, message, types, expected)
    if kinds != sorted(kinds, key=lambda kind: _ORDER[kind]):
        message = "the axes are not in the order of their types"
        yield at.fault("ome-axes", below, message, kinds, "time, then channel or other, then space")


def of_count(at: Place, image: Mapping[str, Any], names: Sequence[object], below: Below) -> Iterator[Fault]:
    """Yield the levels whose number of dimensions differs from the axes of the image."""
    for level, array in zip(reading.datasets(image), reading.arrays(at.path, image, at.nodes), strict=True):
        if array is not None and len(array.shape) != len(names):
            message = f"the array {level['path']!r} has {len(array.shape)} dimensions, the image {len(names)} axes"
            yield at.fault("ome-axes-count", below, message, list(names), f"{len(array.shape)} axes")


def _of_list(at: Place, listed: Any, below: Below) -> Iterator[Fault]:
    """Yield what is wrong with the form of a list of coordinate systems."""
    if not is_list(listed) or not listed:
        yield at.fault("ome-systems", below, "no list of coordinate systems", listed, "a list of objects")
        return
    seen: set[str] = set()
    for number, system in enumerate(listed):
        name = system.get("name") if is_object(system) else None
        axes = system.get("axes") if is_object(system) else None
        if not isinstance(name, str) or not name or name in seen:
            message = "the coordinate system has no name, or that of another one"
            yield at.fault("ome-systems", (*below, number, "name"), message, name, "a name of its own")
        seen.add(str(name))
        place = (*below, number, "axes")
        if not is_list(axes) or not axes:
            yield at.fault("ome-systems", place, "the coordinate system has no axes", axes, "a list of objects")
            continue
        for index, axis in enumerate(axes):
            said = axis if is_object(axis) else {}
            wrong = [
                key
                for key, kind in (("name", str), ("type", str), ("unit", str), ("longName", str), ("discrete", bool))
                if key in said and not isinstance(said[key], kind)
            ]
            if wrong or not said.get("name"):
                message = "the axis has no name, or a member of another type than OME-Zarr says"
                yield at.fault("ome-axes", (*place, index), message, axis, "an object with a name")


# -- images ------------------------------------------------------------------------------------------------------------


def of_systems(at: Place, image: Mapping[str, Any], below: Below) -> Iterator[Fault]:
    """Yield what is wrong with the coordinate systems and transformations of an image of 0.6."""
    listed = image.get(SYSTEMS)
    yield from _of_list(at, listed, (*below, SYSTEMS))
    for number, system in enumerate(listed if is_list(listed) else ()):
        axes = system.get("axes") if is_object(system) else None
        if is_list(axes) and axes and all(is_object(axis) and isinstance(axis.get("name"), str) for axis in axes):
            yield from of_axes(at, axes, (*below, SYSTEMS, number, "axes"))
    known = systems.systems(image)
    if not known:
        return
    name = systems.intrinsic(image)
    for number, level in enumerate(image["datasets"]):
        if is_object(level):
            yield from _of_level(at, level, name, known, (*below, "datasets", number))
    if name is None:
        message = "no level leads to one of the coordinate systems"
        yield at.fault("ome-systems", (*below, SYSTEMS), message, sorted(known), "the system that the levels lead to")
        return
    yield from of_count(at, image, [axis.get("name") for axis in known[name] if is_object(axis)], (*below, SYSTEMS))
    yield from _of_types(at, image, below)
    yield from _of_scales(at, image, len(known[name]), below)
    if STEPS in image:
        yield from _of_more(at, image[STEPS], name, known, (*below, STEPS))
    yield from _of_graph(at, _edges(image, ""), [("", each) for each in known], (*below, SYSTEMS))


def _of_level(
    at: Place, level: Mapping[str, Any], name: str | None, known: Mapping[str, Sequence[Any]], below: Below
) -> Iterator[Fault]:
    steps = level.get(STEPS)
    step = steps[0] if is_list(steps) and len(steps) == 1 else None
    kinds = [each.get("type") for each in systems.flat([step] if is_object(step) else None)]
    is_nested = is_object(step) and step.get("type") == "sequence"
    allowed = (["scale", "translation"],) if is_nested else (["scale"], ["identity"])
    if not is_object(step) or kinds not in allowed:
        message = "the transformation is not an identity, a scale, or a sequence of a scale and a translation"
        yield at.fault("ome-transformations", (*below, STEPS), message, steps, "a list of one of these")
        return
    place = (*below, STEPS, 0)
    into = systems.reference(step.get("output"))
    for member, said in (("input", systems.reference(step.get("input")).path), ("output", into.name)):
        if not is_object(step.get(member)) or said is None:
            key = "path" if member == "input" else "name"
            message = f"the {member} is no object with a {key}"
            yield at.fault(
                "ome-transformations", (*place, member), message, step.get(member), f"an object with a {key}"
            )
    paths = [systems.reference(step.get("input")).path, level.get("path")]
    if all(isinstance(path, str) for path in paths) and len({reading.resolve("", path) for path in paths}) > 1:
        message = "the input is not the array of the level"
        yield at.fault("ome-transformations", (*place, "input", "path"), message, paths[0], paths[1])
    if into.name is not None and into.name not in known:
        message = "the output is no coordinate system of the image"
        yield at.fault("ome-systems", (*place, "output", "name"), message, into.name, f"one of {', '.join(known)}")
    elif into.name is not None and into.name != name:
        message = "the output is not the coordinate system of the other levels"
        yield at.fault("ome-systems", (*place, "output", "name"), message, into.name, name)
    ndim = len(known[into.name]) if into.name is not None and into.name in known else None
    yield from _of_step(at, step, ndim, ndim, place)


def _of_step(at: Place, step: Any, inputs: int | None, outputs: int | None, below: Below) -> Iterator[Fault]:
    for each in problems(step, inputs, outputs, at.stored):
        code = "ome-missing-parameters" if each.is_stored else "ome-transformations"
        yield at.fault(code, (*below, *each.below), each.message, each.found, each.expected)


def _of_types(at: Place, image: Mapping[str, Any], below: Below) -> Iterator[Fault]:
    arrays = [array for array in reading.arrays(at.path, image, at.nodes) if array is not None]
    names = list(dict.fromkeys(array.data_type.name for array in arrays))
    if len(names) > 1:
        message = "the levels have different data types"
        yield at.fault("ome-invalid", (*below, "datasets"), message, names, names[0])


def _of_scales(at: Place, image: Mapping[str, Any], ndim: int, below: Below) -> Iterator[Fault]:
    """Yield the levels that cover another space than the first, by more than an element of both."""
    first: tuple[Sequence[int], Sequence[float]] | None = None
    levels = zip(reading.datasets(image), reading.arrays(at.path, image, at.nodes), strict=True)
    for number, (level, array) in enumerate(levels):
        found = systems.placement(ndim, level, image)
        if found is None or array is None or len(array.shape) != ndim or not all(each > 0 for each in found.scale):
            continue
        if first is None:
            first = array.shape, found.scale
            continue
        sides = [
            (full * scale, length * step, scale + step)
            for full, scale, length, step in zip(*first, array.shape, found.scale, strict=True)
        ]
        if any(abs(one - other) > most * 1.01 for one, other, most in sides):
            message = "the level covers another space than the first: its scale does not fit its shape"
            expected = [one / length if length else one for (one, _, _), length in zip(sides, array.shape, strict=True)]
            yield at.fault("ome-scale", (*below, "datasets", number), message, found.scale, expected)


def _of_more(at: Place, steps: Any, name: str, known: Mapping[str, Sequence[Any]], below: Below) -> Iterator[Fault]:
    """Yield what is wrong with the transformations of an image that lead to other systems, or to those of labels."""
    if not is_list(steps) or not steps:
        yield at.fault("ome-transformations", below, "no list of transformations", steps, "a list of objects")
        return
    for number, step in enumerate(steps):
        ends = [systems.reference(step.get(member)) if is_object(step) else None for member in ("input", "output")]
        counts = []
        for member, end in zip(("input", "output"), ends, strict=True):
            place = (*below, number, member)
            yield from _of_end(at, step, member, known, place, needs_path=False)
            counts.append(None if end is None else _count(at, end, known))
        yield from _of_step(at, step, counts[0], counts[1], (*below, number))
        if not is_object(step) or not all(end is not None and end.name is not None for end in ends):
            continue
        if not any(end is not None and end.name == name and not _is_elsewhere(end) for end in ends):
            message = "neither side is the coordinate system that the levels lead to"
            yield at.fault("ome-systems", (*below, number), message, [end and end.name for end in ends], name)
        if any(end is not None and _is_elsewhere(end) for end in ends) and not (
            systems.is_plain(step) and step.get("type") in _TO_LABELS
        ):
            message = "to the system of a label image only a scale and a translation lead"
            yield at.fault("ome-transformations", (*below, number, "type"), message, step.get("type"), "scale")


def _is_elsewhere(end: Reference) -> bool:
    """Return whether a system is in another group. In drafts the name of a system was a text, read as a path, too."""
    return end.path not in (None, end.name)


def _of_end(
    at: Place, step: Any, member: str, known: Mapping[str, Sequence[Any]], below: Below, *, needs_path: bool
) -> Iterator[Fault]:
    """Yield what is wrong with the input or output of a transformation."""
    value = step.get(member) if is_object(step) else None
    end = systems.reference(value)
    if not is_object(value) or end.name is None:
        yield at.fault("ome-transformations", below, f"the {member} is no object with a name", value, {"name": "..."})
        return
    if end.path is None:
        if end.name not in known:
            message = f"the {member} is no coordinate system {'of the scene' if needs_path else 'of the image'}"
            expected = f"one of {', '.join(known)}" if known else "the path of an image"
            yield at.fault("ome-systems", (*below, "name"), message, end.name, expected)
        return
    found = _of_image(at, end.path)
    if found is None:
        message = "the path leads to no readable image"
        yield at.fault("ome-missing-group", (*below, "path"), message, end.path, "the path of an image")
    elif end.name not in found:
        message = f"the image {end.path!r} has no such coordinate system"
        yield at.fault("ome-systems", (*below, "name"), message, end.name, f"one of {', '.join(found)}")


def _of_image(at: Place, relative: str) -> Mapping[str, Sequence[Any]] | None:
    """Return the coordinate systems of the image at a path; None if there is no image."""
    listed = reading.images(reading.resolve(at.path, relative), at.nodes)
    return systems.systems(listed[0]) if listed else None


def _count(at: Place, end: Reference, known: Mapping[str, Sequence[Any]]) -> int | None:
    found = known if end.path is None else _of_image(at, end.path)
    axes = (found or {}).get(end.name or "")
    return None if axes is None else len(axes)


# -- graphs ------------------------------------------------------------------------------------------------------------

_Node = tuple[str, str]
"""The path of an image (the group itself: ""), and the name of a coordinate system."""


def _edges(holder: Mapping[str, Any], path: str) -> list[tuple[_Node, _Node]]:
    """Return what the transformations of an image or a scene join."""
    found = []
    listed = holder.get(STEPS)
    for step in listed if is_list(listed) else ():
        ends = [systems.reference(step.get(member)) if is_object(step) else None for member in ("input", "output")]
        pairs = [(reading.resolve(path, end.path or ""), end.name) for end in ends if end is not None and end.name]
        found += [(pairs[0], pairs[1])] if len(pairs) == 2 else []
    return found


def _of_graph(
    at: Place, edges: Sequence[tuple[_Node, _Node]], wanted: Sequence[_Node], below: Below
) -> Iterator[Fault]:
    """Yield the systems that no chain of transformations joins with the first."""
    joined: dict[_Node, set[_Node]] = {}
    for one, other in edges:
        joined.setdefault(one, set()).add(other)
        joined.setdefault(other, set()).add(one)
    reached, due = set(wanted[:1]), list(wanted[:1])
    while due:
        new = joined.get(due.pop(), set()) - reached
        reached |= new
        due += new
    apart = [node for node in dict.fromkeys(wanted) if node not in reached]
    if apart:
        message = "no transformations lead from the other coordinate systems to these"
        shown = [f"{path}: {name}" if path else name for path, name in apart]
        yield at.fault("ome-systems", below, message, shown, "a chain of transformations")


# -- scenes ------------------------------------------------------------------------------------------------------------


def of_scene(at: Place, value: JSON, version: str | None) -> Iterator[Fault]:
    """Yield what is wrong with a scene: transformations between the coordinate systems of several images."""
    scene: Mapping[str, Any] = value if is_object(value) else {}
    steps = scene.get(STEPS)
    if not is_list(steps) or not steps:
        message = "the scene has no list of transformations"
        yield at.fault("ome-invalid", (SCENE, STEPS), message, steps, "a list of objects")
        return
    if SYSTEMS in scene:
        yield from _of_list(at, scene[SYSTEMS], (SCENE, SYSTEMS))
    known = systems.systems(scene)
    for number, step in enumerate(steps):
        below = (SCENE, STEPS, number)
        counts = []
        for member in ("input", "output"):
            yield from _of_end(at, step, member, known, (*below, member), needs_path=True)
            end = systems.reference(step.get(member) if is_object(step) else None)
            counts.append(_count(at, end, known))
        yield from _of_step(at, step, counts[0], counts[1], below)
    edges = _edges(scene, "")
    images = list(dict.fromkeys(path for pair in edges for path, _ in pair if path))
    for path in images:
        for image in reading.images(reading.resolve(at.path, path), at.nodes)[:1]:
            name = systems.intrinsic(image)
            edges += [((path, name), (path, each)) for each in systems.systems(image) if name is not None]
    wanted = [("", name) for name in known] + [node for pair in edges for node in pair]
    yield from _of_graph(at, edges, wanted, (SCENE, STEPS))


# -- labels ------------------------------------------------------------------------------------------------------------


def of_label(at: Place, value: JSON, version: str | None) -> Iterator[Fault]:
    """Yield wrong colors and properties of the values of a label image."""
    label: Mapping[str, Any] = value if is_object(value) else {}
    name = reading.LABEL
    if not is_object(value):
        yield at.fault("ome-invalid", (name,), "no object", value, "an object")
    for member in ("colors", "properties"):
        listed = label.get(member)
        if member not in label:
            continue
        if not is_list(listed) or not listed:
            yield at.fault("ome-invalid", (name, member), f"no list of {member}", listed, "a list of objects")
            continue
        seen: list[JSON] = []
        for number, each in enumerate(listed):
            said = each.get("label-value") if is_object(each) else None
            if type(said) not in (int, float) or (member == "colors" and said in seen):
                message = "no value of a label, or one that is listed already"
                yield at.fault("ome-invalid", (name, member, number, "label-value"), message, said, "a number")
            seen.append(said)
            rgba = each.get("rgba", (0,) * 4) if is_object(each) else None
            if is_object(each) and (
                not is_list(rgba) or len(rgba) != 4 or not all(type(one) is int and 0 <= one < 256 for one in rgba)
            ):
                message = "the color is not red, green, blue and opacity"
                yield at.fault("ome-invalid", (name, member, number, "rgba"), message, rgba, "4 numbers up to 255")
