"""Finding violations of OME-Zarr in a hierarchy.

Spec: https://ngff.openmicroscopy.org, versions 0.1 to 0.5. Of later versions only the paths are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions.contract import Fault, Nodes
from omnizarr.formats.conventions.ome import reading
from omnizarr.formats.conventions.ome.reading import COUNTED, EARLY, FIRST_AXES, IMAGES, LABEL, LAYOUT, OME, V05
from omnizarr.formats.reader import is_integer, is_list, is_object, join
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, keys

_ATTRIBUTES: Final = "/attributes"
_V3: Final = "v3"
_WITHOUT_AXES: Final = EARLY[:2]
_WITH_NAMES: Final = EARLY[2]
_FLAT: Final = EARLY[0]
"""The version whose chunks have flat keys; those up to 0.4 have directories."""
_COLOR: Final = re.compile("[0-9A-Fa-f]{6}")
_WINDOW: Final = ("min", "max", "start", "end")
_MOST: Final[Mapping[str, int]] = {"time": 1, "channel": 1, "other": 1, "space": 3}
_ORDER: Final[Mapping[str, int]] = {"time": 0, "channel": 1, "other": 1, "space": 2}


def faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    """Yield the violations in the node at a path."""
    node = nodes[path]
    if isinstance(node, ArrayMetadata):
        yield from _of_level(path, node, nodes)
        return
    within, without = reading.inside(node), reading.outside(path, nodes)
    first = join(_ATTRIBUTES, next(iter(without), ""))
    if within and without:
        message = f"metadata lie both in the attribute {OME!r} and outside of it"
        yield Fault("ome-both-forms", path, first, message, sorted(without), "one of them")
    elif node.dialect == _V3 and without:
        message = "metadata as OME-Zarr 0.4 has them, which is for Zarr v2"
        yield Fault("ome-wrong-form", path, first, message, sorted(without), f"the attribute {OME!r} of OME-Zarr 0.5")
    elif node.dialect != _V3 and within:
        message = "metadata as OME-Zarr 0.5 has them, which is for Zarr v3"
        expected = f"attributes of OME-Zarr 0.4, outside of {OME!r}"
        yield Fault("ome-wrong-form", path, join(_ATTRIBUTES, OME), message, OME, expected)
    found = reading.members(path, nodes)
    is_inside = found is within
    at = _Place(path, nodes, join(_ATTRIBUTES, OME) if is_inside else _ATTRIBUTES)
    yield from _of_versions(at, found, is_inside=is_inside)
    version = reading.version_of(within) or V05 if is_inside else None
    for name, check in _CHECKS.items():
        if name in found:
            yield from check(at, found[name], version)
    if LABEL in found and IMAGES not in found:
        yield at.fault("ome-invalid", (LABEL,), f"a label image has {IMAGES}, and this has none")


@dataclass(frozen=True, slots=True)
class _Place:
    """A group, and the place of its OME-Zarr metadata."""

    path: str
    nodes: Nodes
    pointer: str

    def fault(
        self, code: str, below: Sequence[str | int], message: str, found: object = None, expected: object = None
    ) -> Fault:
        return Fault(code, self.path, join(self.pointer, *below), message, found, expected)

    def missing(self, below: Sequence[str | int], relative: object) -> Iterator[Fault]:
        """Yield a violation if a path does not lead to a group."""
        if not isinstance(self.nodes.get(reading.resolve(self.path, relative)), GroupMetadata):
            message = "the path leads to no readable group"
            yield self.fault("ome-missing-group", below, message, relative, "the path of a group")


def _of_versions(at: _Place, found: Mapping[str, JSON], *, is_inside: bool) -> Iterator[Fault]:
    if is_inside:
        version = reading.version_of(found)
        if version is None:
            yield at.fault("ome-version", (), "the version is missing", None, {"version": V05})
        elif version in EARLY:
            message = f"the attribute {OME!r} came with version {V05}"
            yield at.fault("ome-version", ("version",), message, version, V05)
        elif version != V05:
            yield at.fault("ome-unknown-version", ("version",), "the version is not known here", version, V05)
        for name in (*COUNTED, LABEL):
            inner = reading.version_of(found.get(name))
            if inner not in (version, None) or (name == "plate" and name in found and inner is None):
                message = "the version is not that of the group" if inner else "the version of the plate is missing"
                yield at.fault("ome-version", (name, "version"), message, inner, version or V05)
        return
    for below, version in reading.versions(found):
        if version is None and below[0] in (IMAGES, "plate"):
            message = "the version is missing, and readers assume the first"
            yield at.fault("ome-version", below, message, None, " or ".join(EARLY))
        elif version == V05:
            message = f"version {V05} has its metadata in the attribute {OME!r}"
            yield at.fault("ome-version", below, message, version, EARLY[-1])
        elif version not in (*EARLY, None):
            yield at.fault("ome-unknown-version", below, "the version is not known here", version, EARLY[-1])


# Images


def _of_images(at: _Place, value: JSON, version: str | None) -> Iterator[Fault]:
    if not is_list(value) or not value:
        yield at.fault("ome-invalid", (IMAGES,), "no list of images", value, "a list of objects")
        return
    for number, image in enumerate(value):
        below = (IMAGES, number)
        levels = image.get("datasets") if is_object(image) else None
        if not is_object(image) or not is_list(levels) or not levels:
            yield at.fault("ome-invalid", (*below, "datasets"), "the image has no levels", levels, "a list of objects")
            continue
        yield from _of_paths(at, levels, (*below, "datasets"))
        known = version or _version(image)
        if known not in (*EARLY, V05):
            continue
        yield from _of_sizes(at, image, below)
        if known in _WITHOUT_AXES:
            yield from _of_count(at, image, FIRST_AXES, below)
        elif known == _WITH_NAMES:
            axes = image.get("axes")
            if not is_list(axes) or list(axes) != [letter for letter in FIRST_AXES if letter in axes]:
                message = "the axes are not letters in this order"
                yield at.fault("ome-axes", (*below, "axes"), message, axes, f"some of {', '.join(FIRST_AXES)}")
                continue
            yield from _of_count(at, image, axes, below)
        else:
            yield from _of_axes(at, image, below)
            yield from _of_transformations(at, image, below)


def _version(image: Mapping[str, Any]) -> str:
    """Return the version of an image outside of ``ome``."""
    version = reading.version_of(image)
    if version is None and "axes" in image:
        version = _WITH_NAMES if reading.is_early(image) else EARLY[-1]
    return version or EARLY[0]


def _of_paths(at: _Place, levels: Sequence[Any], below: tuple[str | int, ...]) -> Iterator[Fault]:
    for number, level in enumerate(levels):
        relative = level.get("path") if is_object(level) else None
        if not isinstance(relative, str):
            yield at.fault("ome-invalid", (*below, number, "path"), "the level has no path", level, "a text")
        elif not isinstance(at.nodes.get(reading.resolve(at.path, relative)), ArrayMetadata):
            message = "the path leads to no readable array"
            yield at.fault("ome-missing-level", (*below, number, "path"), message, relative, "the path of an array")


def _of_sizes(at: _Place, image: Mapping[str, Any], below: tuple[str | int, ...]) -> Iterator[Fault]:
    """Yield the levels that are larger than the one before."""
    before: tuple[int, ...] | None = None
    for number, array in enumerate(reading.arrays(at.path, image, at.nodes)):
        if array is None:
            continue
        shape = array.shape
        if any(now > was for now, was in zip(shape, before or (), strict=False)):
            message, expected = "the level is larger than the one before", f"at most {list(before or ())}"
            yield at.fault("ome-level-order", (*below, "datasets", number), message, list(shape), expected)
        before = shape


def _of_count(
    at: _Place, image: Mapping[str, Any], names: Sequence[object], below: tuple[str | int, ...]
) -> Iterator[Fault]:
    """Yield the levels whose number of dimensions differs from the axes of the image."""
    for level, array in zip(reading.datasets(image), reading.arrays(at.path, image, at.nodes), strict=True):
        if array is not None and len(array.shape) != len(names):
            message = f"the array {level['path']!r} has {len(array.shape)} dimensions, the image {len(names)} axes"
            yield at.fault("ome-axes-count", (*below, "axes"), message, list(names), f"{len(array.shape)} axes")


def _of_axes(at: _Place, image: Mapping[str, Any], below: tuple[str | int, ...]) -> Iterator[Fault]:
    axes = image.get("axes")
    below = (*below, "axes")
    if not is_list(axes) or not all(is_object(axis) and isinstance(axis.get("name"), str) for axis in axes):
        yield at.fault("ome-axes", below, "the axes are not objects with names", axes, "a list of objects")
        return
    names = [axis["name"] for axis in axes]
    kinds = [axis.get("type") if axis.get("type") in _ORDER else "other" for axis in axes]
    if len(set(names)) != len(names):
        yield at.fault("ome-axes", below, "two axes have one name", names, "names that differ")
    if not 2 <= len(axes) <= 5:
        yield at.fault("ome-axes", below, f"the image has {len(axes)} axes", names, "2 to 5 axes")
    if kinds.count("space") < 2 or any(kinds.count(kind) > most for kind, most in _MOST.items()):
        expected = "2 or 3 of space, and at most one each of time, of channel and of any other type"
        message = "the axes have types that do not go together"
        yield at.fault("ome-axes", below, message, [axis.get("type") for axis in axes], expected)
    if kinds != sorted(kinds, key=lambda kind: _ORDER[kind]):
        message = "the axes are not in the order of their types"
        yield at.fault("ome-axes", below, message, kinds, "time, then channel or other, then space")
    yield from _of_count(at, image, names, below[:-1])


def _of_transformations(at: _Place, image: Mapping[str, Any], below: tuple[str | int, ...]) -> Iterator[Fault]:
    axes = image.get("axes")
    ndim = len(axes) if is_list(axes) else None
    member = "coordinateTransformations"
    for number, level in enumerate(image["datasets"]):
        if is_object(level):
            place = (*below, "datasets", number, member)
            yield from _of_transformation(at, level.get(member), ndim, place)
    if member in image:
        yield from _of_transformation(at, image[member], ndim, (*below, member))


def _of_transformation(at: _Place, value: Any, ndim: int | None, below: tuple[str | int, ...]) -> Iterator[Fault]:
    steps = [step for step in value if is_object(step)] if is_list(value) else []
    kinds = [step.get("type") for step in steps]
    if kinds not in (["scale"], ["scale", "translation"]) or len(steps) != len(value):
        message = "the transformations are not one scale, and one translation at most"
        yield at.fault("ome-transformations", below, message, value, "a scale, then at most one translation")
        return
    for number, (kind, step) in enumerate(zip(kinds, steps, strict=True)):
        numbers = step.get(str(kind))
        if "path" in step and numbers is None:
            continue  # the numbers are in an array
        if not is_list(numbers) or not all(type(each) in (int, float) for each in numbers):
            message = f"the {kind} is not a list of numbers"
            yield at.fault("ome-transformations", (*below, number), message, numbers, f"{ndim} numbers")
        elif ndim is not None and len(numbers) != ndim:
            message = f"the {kind} has {len(numbers)} numbers for {ndim} axes"
            yield at.fault("ome-transformations", (*below, number, str(kind)), message, numbers, f"{ndim} numbers")


def _of_omero(at: _Place, value: JSON, version: str | None) -> Iterator[Fault]:
    channels = value.get("channels") if is_object(value) else None
    if not is_list(channels):
        yield at.fault("ome-invalid", ("omero", "channels"), "no list of channels", channels, "a list of objects")
        return
    for number, channel in enumerate(channels):
        color = channel.get("color") if is_object(channel) else None
        window = channel.get("window") if is_object(channel) else None
        below = ("omero", "channels", number)
        if not isinstance(color, str) or _COLOR.fullmatch(color) is None:
            yield at.fault("ome-invalid", (*below, "color"), "the channel has no color", color, "6 hexadecimal digits")
        if not is_object(window) or not all(type(window.get(name)) in (int, float) for name in _WINDOW):
            expected = f"numbers {', '.join(_WINDOW)}"
            yield at.fault("ome-invalid", (*below, "window"), "the channel has no whole window", window, expected)


# Collections of images


def _of_labels(at: _Place, value: JSON, version: str | None) -> Iterator[Fault]:
    if not is_list(value) or not all(isinstance(item, str) for item in value):
        yield at.fault("ome-invalid", ("labels",), "no list of paths", value, "a list of texts")
        return
    for number, item in enumerate(value):
        if not reading.images(reading.resolve(at.path, item), at.nodes):
            message = "the path leads to no readable image"
            yield at.fault("ome-missing-group", ("labels", number), message, item, "the path of an image")


def _of_series(at: _Place, value: JSON, version: str | None) -> Iterator[Fault]:
    if not is_list(value) or not all(isinstance(item, str) for item in value):
        yield at.fault("ome-invalid", ("series",), "no list of paths", value, "a list of texts")
        return
    for number, item in enumerate(value):
        # the paths begin at the group above
        yield from at.missing(("series", number), f"../{item}")


def _of_layout(at: _Place, value: JSON, version: str | None) -> Iterator[Fault]:
    if value != 3:
        yield at.fault("ome-invalid", (LAYOUT,), "the layout is not known", value, 3)


def _of_well(at: _Place, value: JSON, version: str | None) -> Iterator[Fault]:
    fields = value.get("images") if is_object(value) else None
    if not is_list(fields):
        yield at.fault("ome-invalid", ("well", "images"), "no list of fields", fields, "a list of objects")
        return
    for number, each in enumerate(fields):
        below = ("well", "images", number, "path")
        relative = each.get("path") if is_object(each) else None
        if not isinstance(relative, str):
            yield at.fault("ome-invalid", below, "the field has no path", each, "a text")
        else:
            yield from at.missing(below, relative)


def _of_plate(at: _Place, value: JSON, version: str | None) -> Iterator[Fault]:
    plate: Mapping[str, Any] = value if is_object(value) else {}
    names: list[list[object]] = []
    for member in ("rows", "columns", "wells"):
        listed = plate.get(member)
        if not is_list(listed) or not all(is_object(item) for item in listed):
            yield at.fault("ome-invalid", ("plate", member), f"no list of {member}", listed, "a list of objects")
            return
        names.append([item.get("name") for item in listed])
    for number, well in enumerate(plate["wells"]):
        below = ("plate", "wells", number)
        relative = well.get("path")
        parts = str(relative).split("/")
        if len(parts) != 2 or parts[0] not in names[0] or parts[1] not in names[1]:
            yield at.fault("ome-invalid", (*below, "path"), "the path is not that of a row and a column", relative)
            continue
        yield from at.missing((*below, "path"), relative)
        expected = {"rowIndex": names[0].index(parts[0]), "columnIndex": names[1].index(parts[1])}
        stored = {name: well.get(name) for name in expected}
        is_needed = (version or reading.version_of(plate)) in (EARLY[-1], V05)
        if (is_needed or any(is_integer(each) for each in stored.values())) and stored != expected:
            yield at.fault(
                "ome-invalid", below, "the numbers of row and column are not those of the path", stored, expected
            )


_CHECKS: Final[Mapping[str, Callable[[_Place, JSON, str | None], Iterator[Fault]]]] = {
    IMAGES: _of_images,
    "omero": _of_omero,
    "labels": _of_labels,
    "plate": _of_plate,
    "well": _of_well,
    LAYOUT: _of_layout,
    "series": _of_series,
}


# Levels


def _of_level(path: str, array: ArrayMetadata, nodes: Nodes) -> Iterator[Fault]:
    found = reading.level(path, nodes)
    if found is None:
        return
    within = reading.inside(nodes[found.group])
    version = reading.version_of(within) if within and IMAGES in within else _version(found.image)
    if array.dialect == _V3 and version == V05:
        names = reading.axes(found.group, found.image, nodes)
        if names is not None and len(names) == len(array.shape) and array.dimension_names != names:
            stored = array.dimension_names
            message = (
                "the names of the dimensions are not those of the axes" if stored else "the dimensions have no names"
            )
            yield Fault("ome-dimension-names", path, "/dimension_names", message, stored and list(stored), list(names))
    if array.dialect != _V3 and version in EARLY and version != _FLAT and len(array.shape) > 1:
        try:
            separator = keys.bind(array.chunk_key_encoding).separator or None
        except OmnizarrError:
            separator = None
        if separator not in ("/", None):
            message = f"chunks are not in directories, as OME-Zarr has them from {EARLY[1]} to {EARLY[-1]}"
            yield Fault("ome-separator", path, "/chunk_key_encoding", message, separator, "/")
    if LABEL in reading.members(found.group, nodes) and not re.fullmatch("u?int[0-9]+", array.data_type.name):
        message = "the pixels of a label image are not integers"
        yield Fault("ome-label-type", path, "/data_type", message, array.data_type.name, "an integer type")
