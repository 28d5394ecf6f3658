"""Finding violations of OME-Zarr in a hierarchy.

Spec: https://ngff.openmicroscopy.org, versions 0.1 to 0.6. Of others only the paths are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions.contract import Fault, Nodes
from omnizarr.formats.conventions.ome import reading, systems
from omnizarr.formats.conventions.ome.checking_systems import Place, of_axes, of_count, of_label, of_scene, of_systems
from omnizarr.formats.conventions.ome.reading import (
    COUNTED,
    EARLY,
    FIRST_AXES,
    IMAGES,
    LABEL,
    LAYOUT,
    OME,
    SCENE,
    V05,
    V06,
)
from omnizarr.formats.reader import is_integer, is_list, is_object, join
from omnizarr.model import JSON, ArrayMetadata, keys

_ATTRIBUTES: Final = "/attributes"
_V3: Final = "v3"
_WITHOUT_AXES: Final = EARLY[:2]
_WITH_NAMES: Final = EARLY[2]
_FLAT: Final = EARLY[0]
"""The version whose chunks have flat keys; those up to 0.4 have directories."""
_COLOR: Final = re.compile("[0-9A-Fa-f]{6}")
_NAME: Final = re.compile("[A-Za-z0-9]+")
_FIELD: Final = re.compile(r"(?!\.+$)(?!__)[A-Za-z0-9_.-]+")
_WINDOW: Final = ("min", "max", "start", "end")


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
    at = Place(path, nodes, join(_ATTRIBUTES, OME) if is_inside else _ATTRIBUTES)
    yield from _of_versions(at, found, is_inside=is_inside)
    version = systems.family(reading.version_of(within)) or V05 if is_inside else None
    for name, check in _CHECKS.items():
        if name in found:
            yield from check(at, found[name], version)
    if LABEL in found and IMAGES not in found:
        yield at.fault("ome-invalid", (LABEL,), f"a label image has {IMAGES}, and this has none")


def _of_versions(at: Place, found: Mapping[str, JSON], *, is_inside: bool) -> Iterator[Fault]:
    if is_inside:
        version = reading.version_of(found)
        if version is None:
            yield at.fault("ome-version", (), "the version is missing", None, {"version": V05})
        elif version in EARLY:
            message = f"the attribute {OME!r} came with version {V05}"
            yield at.fault("ome-version", ("version",), message, version, V05)
        elif systems.family(version) not in (V05, V06):
            expected = f"{V05} or {V06}"
            yield at.fault("ome-unknown-version", ("version",), "the version is not known here", version, expected)
        for name in (*COUNTED, LABEL):
            inner = reading.version_of(found.get(name))
            is_needed = name == "plate" and name in found and systems.family(version) != V06
            if inner not in (version, None) or (is_needed and inner is None):
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


def _of_images(at: Place, value: JSON, version: str | None) -> Iterator[Fault]:
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
        if known not in (*EARLY, V05, V06):
            continue
        yield from _of_sizes(at, image, below)
        if known == V06:
            yield from of_systems(at, image, below)
            continue
        if known in _WITHOUT_AXES:
            yield from of_count(at, image, FIRST_AXES, (*below, "axes"))
        elif known == _WITH_NAMES:
            axes = image.get("axes")
            if not is_list(axes) or list(axes) != [letter for letter in FIRST_AXES if letter in axes]:
                message = "the axes are not letters in this order"
                yield at.fault("ome-axes", (*below, "axes"), message, axes, f"some of {', '.join(FIRST_AXES)}")
                continue
            yield from of_count(at, image, axes, (*below, "axes"))
        else:
            yield from _of_axes(at, image, below)
            yield from _of_transformations(at, image, below)


def _version(image: Mapping[str, Any]) -> str:
    """Return the version of an image outside of ``ome``."""
    version = reading.version_of(image)
    if version is None and "axes" in image:
        version = _WITH_NAMES if reading.is_early(image) else EARLY[-1]
    return version or EARLY[0]


def _of_paths(at: Place, levels: Sequence[Any], below: tuple[str | int, ...]) -> Iterator[Fault]:
    for number, level in enumerate(levels):
        relative = level.get("path") if is_object(level) else None
        if not isinstance(relative, str):
            yield at.fault("ome-invalid", (*below, number, "path"), "the level has no path", level, "a text")
        elif not isinstance(at.nodes.get(reading.resolve(at.path, relative)), ArrayMetadata):
            message = "the path leads to no readable array"
            yield at.fault("ome-missing-level", (*below, number, "path"), message, relative, "the path of an array")


def _of_sizes(at: Place, image: Mapping[str, Any], below: tuple[str | int, ...]) -> Iterator[Fault]:
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


def _of_axes(at: Place, image: Mapping[str, Any], below: tuple[str | int, ...]) -> Iterator[Fault]:
    yield from of_axes(at, image.get("axes"), (*below, "axes"))
    listed = image.get("axes")
    if is_list(listed):
        yield from of_count(
            at, image, [axis.get("name") if is_object(axis) else axis for axis in listed], (*below, "axes")
        )


def _of_transformations(at: Place, image: Mapping[str, Any], below: tuple[str | int, ...]) -> Iterator[Fault]:
    axes = image.get("axes")
    ndim = len(axes) if is_list(axes) else None
    member = "coordinateTransformations"
    for number, level in enumerate(image["datasets"]):
        if is_object(level):
            place = (*below, "datasets", number, member)
            yield from _of_transformation(at, level.get(member), ndim, place)
    if member in image:
        yield from _of_transformation(at, image[member], ndim, (*below, member))


def _of_transformation(at: Place, value: Any, ndim: int | None, below: tuple[str | int, ...]) -> Iterator[Fault]:
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


def _of_omero(at: Place, value: JSON, version: str | None) -> Iterator[Fault]:
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


def _of_labels(at: Place, value: JSON, version: str | None) -> Iterator[Fault]:
    if not is_list(value) or not all(isinstance(item, str) for item in value):
        yield at.fault("ome-invalid", ("labels",), "no list of paths", value, "a list of texts")
        return
    for number, item in enumerate(value):
        if not reading.images(reading.resolve(at.path, item), at.nodes):
            message = "the path leads to no readable image"
            yield at.fault("ome-missing-group", ("labels", number), message, item, "the path of an image")


def _of_series(at: Place, value: JSON, version: str | None) -> Iterator[Fault]:
    if not is_list(value) or not all(isinstance(item, str) for item in value):
        yield at.fault("ome-invalid", ("series",), "no list of paths", value, "a list of texts")
        return
    for number, item in enumerate(value):
        # the paths begin at the group above
        yield from at.missing(("series", number), f"../{item}")


def _of_layout(at: Place, value: JSON, version: str | None) -> Iterator[Fault]:
    if value != 3:
        yield at.fault("ome-invalid", (LAYOUT,), "the layout is not known", value, 3)


def _of_well(at: Place, value: JSON, version: str | None) -> Iterator[Fault]:
    fields = value.get("images") if is_object(value) else None
    if not is_list(fields):
        yield at.fault("ome-invalid", ("well", "images"), "no list of fields", fields, "a list of objects")
        return
    if version == V06 and not fields:
        yield at.fault("ome-invalid", ("well", "images"), "the well has no fields", fields, "at least one")
    seen: list[str] = []
    for number, each in enumerate(fields):
        below = ("well", "images", number, "path")
        relative = each.get("path") if is_object(each) else None
        if not isinstance(relative, str):
            yield at.fault("ome-invalid", below, "the field has no path", each, "a text")
            continue
        if version == V06 and (not _FIELD.fullmatch(relative) or relative in seen):
            message = "the path is no name of a group, or that of another field"
            yield at.fault("ome-invalid", below, message, relative, "letters, digits and -_. without __ at the start")
        seen.append(relative)
        if version == V06 and not is_integer(each.get("acquisition", 0)):
            message = "the acquisition is no number"
            yield at.fault("ome-invalid", (*below[:-1], "acquisition"), message, each["acquisition"], "an integer")
        yield from at.missing(below, relative)


def _of_plate(at: Place, value: JSON, version: str | None) -> Iterator[Fault]:
    plate: Mapping[str, Any] = value if is_object(value) else {}
    names: list[list[object]] = []
    for member in ("rows", "columns", "wells"):
        listed = plate.get(member)
        if not is_list(listed) or not all(is_object(item) for item in listed):
            yield at.fault("ome-invalid", ("plate", member), f"no list of {member}", listed, "a list of objects")
            return
        names.append([item.get("name") for item in listed])
    if version == V06:
        yield from _of_plate_members(at, plate, names)
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
        is_needed = (version or reading.version_of(plate)) in (EARLY[-1], V05, V06)
        if (is_needed or any(is_integer(each) for each in stored.values())) and stored != expected:
            yield at.fault(
                "ome-invalid", below, "the numbers of row and column are not those of the path", stored, expected
            )


def _of_plate_members(at: Place, plate: Mapping[str, Any], names: Sequence[Sequence[object]]) -> Iterator[Fault]:
    """Yield what is wrong with names of rows and columns, with acquisitions and with counts."""
    for member, listed in zip(("rows", "columns"), names, strict=False):
        if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in listed) or len(set(listed)) < len(
            listed
        ):
            message = f"the {member} have not each a name of letters and digits of its own"
            yield at.fault("ome-invalid", ("plate", member), message, list(listed), "names of letters and digits")
    for member in ("rows", "columns", "wells"):
        if not plate[member]:
            yield at.fault("ome-invalid", ("plate", member), f"the plate has no {member}", [], "at least one")
    counts: list[tuple[tuple[str | int, ...], object, int]] = [(("field_count",), plate.get("field_count", 1), 1)]
    acquisitions = plate.get("acquisitions", ())
    for number, each in enumerate(acquisitions if is_list(acquisitions) else (None,)):
        said = each if is_object(each) else {}
        for key, lowest, usual in (("id", 0, -1), ("maximumfieldcount", 1, 1), ("starttime", 0, 0), ("endtime", 0, 0)):
            counts.append((("acquisitions", number, key), said.get(key, usual), lowest))
    for below, value, lowest in counts:
        if not is_integer(value) or value < lowest:
            expected = f"an integer from {lowest} on"
            yield at.fault("ome-invalid", ("plate", *below), f"{below[-1]} is no such number", value, expected)


_CHECKS: Final[Mapping[str, Callable[[Place, JSON, str | None], Iterator[Fault]]]] = {
    IMAGES: _of_images,
    "omero": _of_omero,
    "labels": _of_labels,
    "plate": _of_plate,
    "well": _of_well,
    LAYOUT: _of_layout,
    "series": _of_series,
    LABEL: of_label,
    SCENE: of_scene,
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
