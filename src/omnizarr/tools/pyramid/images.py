"""The OME-Zarr metadata of a multiscale image: its axes, and its present or future levels.

Spec: https://ngff.openmicroscopy.org/0.5/, "multiscales" metadata; 0.4 says the same, outside of ``ome``, and 0.6 with
coordinate systems.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from omnizarr.errors import Function, MetadataError, NotRepresentableError, Remedy
from omnizarr.formats.conventions.ome import reading, systems, upgrading
from omnizarr.model import ArrayMetadata, GroupMetadata, dimensions, thawed
from omnizarr.nodes import detection
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath
from omnizarr.tools.pyramid.reducing import shift

VERSIONS: Final = {"v2": "0.4", "v3": "0.5"}
"""Versions of OME-Zarr for the formats that have one."""
_V06: Final = "0.6"
_SMALL: Final = 256
"""Levels are made until no spatial axis is longer than this."""
_MOST_LEVELS: Final = 32


class Axis(NamedTuple):
    """An axis: its name and its type."""

    name: str
    type: str
    unit: str | None = None

    def to_json(self) -> dict[str, str]:
        """Return the axis in the form of OME-Zarr."""
        return {"name": self.name, "type": self.type, **({"unit": self.unit} if self.unit else {})}


@dataclass(frozen=True, slots=True)
class Level:
    """One level of an image.

    Attributes
    ----------
    path : str
        Path relative to the group.
    shape : tuple of int
    scale : tuple of float
        Length of an element along each axis, in the units of the axes.
    translation : tuple of float
        Position of the centre of the first element.
    """

    path: str
    shape: tuple[int, ...]
    scale: tuple[float, ...]
    translation: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the level as an entry of ``datasets``."""
        transformations: list[dict[str, Any]] = [{"type": "scale", "scale": list(self.scale)}]
        if any(self.translation):
            transformations.append({"type": "translation", "translation": list(self.translation)})
        return {"path": self.path, "coordinateTransformations": transformations}


@dataclass(frozen=True, slots=True)
class Image:
    """An image whose levels are to be made.

    Attributes
    ----------
    group : Found
        The group that lists the levels.
    version : str
        Version of OME-Zarr.
    axes : tuple of Axis
    first : Level
        The full resolution, which exists.
    others : tuple of str
        Paths of the other listed levels.
    entry : mapping
        The entry of ``multiscales``, as far as it exists.
    is_label : bool
    has_flat_chunks : bool
        Whether the chunks of the full resolution are not in directories, which OME-Zarr 0.4 requires.
    """

    group: Found[GroupMetadata]
    version: str
    axes: tuple[Axis, ...]
    first: Level
    others: tuple[str, ...]
    entry: Mapping[str, Any]
    is_label: bool
    has_flat_chunks: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the axes."""
        return tuple(axis.name for axis in self.axes)

    def path_of(self, number: int) -> str:
        """Return the path of a level below the first."""
        return _numbered(self.first.path, number)

    def levels(self, factors: Sequence[int], method: str, count: int | None) -> tuple[Level, ...]:
        """Return the levels of the image, with the full resolution first.

        `count` is their number. By default, levels are added until no axis that becomes shorter is longer than
        256.
        """
        levels = [self.first]
        wanted = _MOST_LEVELS if count is None else count
        while len(levels) < wanted:
            above = levels[-1]
            steps = [factor if length > 1 else 1 for factor, length in zip(factors, above.shape, strict=True)]
            is_small = all(length <= _SMALL for length, factor in zip(above.shape, factors, strict=True) if factor > 1)
            if math.prod(steps) == 1 or (count is None and is_small):
                break
            levels.append(
                Level(
                    self.path_of(len(levels)),
                    tuple(-(-length // step) for length, step in zip(above.shape, steps, strict=True)),
                    tuple(scale * step for scale, step in zip(above.scale, steps, strict=True)),
                    tuple(
                        moved + shift(step, method) * scale
                        for moved, scale, step in zip(above.translation, above.scale, steps, strict=True)
                    ),
                )
            )
        return tuple(levels)

    def said(self, levels: Sequence[Level], method: str) -> dict[str, Any]:
        """Return the entry of ``multiscales`` with the levels."""
        if systems.has_systems(self.entry) or self.version == _V06:
            return self._said_with_systems(levels, method)
        entry: dict[str, Any] = {name: value for name, value in self.entry.items() if name != "metadata"}
        if self.version == "0.4":
            entry["version"] = self.version
        entry["axes"] = [axis.to_json() for axis in self.axes] if "axes" not in entry else entry["axes"]
        entry["datasets"] = [
            *(list(self.entry["datasets"])[:1] if self.entry.get("datasets") else [levels[0].to_json()]),
            *(level.to_json() for level in levels[1:]),
        ]
        return {**entry, **(_made(method) if len(levels) > 1 else {})}

    def _said_with_systems(self, levels: Sequence[Level], method: str) -> dict[str, Any]:
        """Return the entry in the form of 0.6. The coordinate systems of an image stay, and what leads to others."""
        listed = [level.to_json() for level in levels]
        written: Any = upgrading.to_06({"axes": [axis.to_json() for axis in self.axes], "datasets": listed}).image
        if not systems.has_systems(self.entry):
            kept = {
                name: value for name, value in self.entry.items() if name not in ("axes", "datasets", systems.STEPS)
            }
            return {**kept, **written, **(_made(method) if len(levels) > 1 else {})}
        name = systems.intrinsic(self.entry)
        for level in written["datasets"]:
            level[systems.STEPS][0]["output"] = {"name": name}
        datasets = [*list(self.entry["datasets"])[:1], *written["datasets"][1:]]
        return {**self.entry, "datasets": datasets, **(_made(method) if len(levels) > 1 else {})}

    def attributes(self, old: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of the group with another entry of ``multiscales``."""
        inside = old if self.version == "0.4" else old.get(reading.OME)
        members = dict(inside) if isinstance(inside, Mapping) else {}
        images = list(members.get(reading.IMAGES) or [])
        members[reading.IMAGES] = [entry, *images[1:]]
        if self.version == "0.4":
            return members
        stored = systems.family(reading.version_of(members))
        version = {} if stored == self.version else {"version": self.version}
        return {**old, reading.OME: {"version": self.version, **members, **version}}

    def of_level(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes of the array of a level, from those of the full resolution."""
        return {name: value for name, value in attributes.items() if name == dimensions.ATTRIBUTE}

    def remarks(self, method: str) -> tuple[str, ...]:
        """Return what to know about the image."""
        return ()

    def accompany(self, levels: Sequence[Level]) -> None:
        """Write what belongs beside the arrays of the levels."""


def _made(method: str) -> dict[str, Any]:
    """Return what an image says of how its levels were made."""
    return {"type": method, "metadata": {"method": "omnizarr.pyramid", "description": _DESCRIPTIONS[method]}}


_DESCRIPTIONS: Final = {
    "mean": "each element is the mean of a block of the level above",
    "mode": "each element is the most frequent value of a block of the level above",
    "max": "each element is the largest value of a block of the level above",
    "min": "each element is the smallest value of a block of the level above",
    "nearest": "each element is the one at the middle of a block of the level above",
}


def _numbered(path: str, number: int) -> str:
    """Return the path of a level below the first.

    >>> _numbered("0", 1), _numbered("s0", 2), _numbered("scale0/image", 1), _numbered("pixels", 1)
    ('1', 's2', 'scale1/image', 'pixels_1')
    """
    found = list(re.finditer(r"[0-9]+", path))
    if not found:
        return f"{path}_{number}"
    last = found[-1]
    return f"{path[: last.start()]}{int(last[0]) + number}{path[last.end() :]}"


def find(
    where: StorePath,
    axes: Sequence[str] | None,
    scale: Mapping[str, float],
    unit: Mapping[str, str],
    ome_version: str | None = None,
) -> Image:
    """Return the image at a place: the image of a group, or the image whose full resolution is the array at the place.

    Raises
    ------
    NotRepresentableError
        If OME-Zarr has no version for the format, or cannot express the image.
    MetadataError
        If a group is not an image, or its metadata is broken.
    """
    found = detection.open_node(where)
    version = _version(found, ome_version)
    if isinstance(found.metadata, GroupMetadata):
        return _of_group(Found(found.where, found.metadata), version, axes, scale, unit)
    if not found.where.path:
        raise without_group(where)
    group = detection.open_group(found.where.parent)
    listed = _listed(group.metadata)
    version = _version(group, ome_version)
    if listed is not None:
        if _first_path(listed) == found.where.name:
            return _of_group(group, version, axes, scale, unit)
        raise MetadataError(
            "the group lists another array as its full resolution",
            store=str(where.store),
            path=group.where.path,
            found=repr(_first_path(listed)),
            remedy="name the group",
        )
    metadata = found.metadata
    named = _axes_of(where, metadata, axes, unit)
    return _image(group, version, named, metadata, found.where.name, {}, scale)


def of_new(
    found: Found[ArrayMetadata],
    axes: Sequence[str] | None,
    scale: Mapping[str, float],
    unit: Mapping[str, str],
    ome_version: str | None = None,
) -> Image:
    """Return the image in a new group, whose full resolution is a copy of an array. Raises the errors of `find`."""
    version = _version(found, ome_version)
    group = Found(found.where, GroupMetadata(dialect=found.metadata.dialect))
    named = _axes_of(found.where, found.metadata, axes, unit)
    return _image(group, version, named, found.metadata, "0", {}, scale)


def _version(found: Found[Any], wanted: str | None) -> str:
    version = VERSIONS.get(found.metadata.dialect)
    stored = systems.family(reading.version_of(found.metadata.attributes.get(reading.OME)))
    if version == VERSIONS["v3"] and _V06 in (wanted, stored if wanted is None else None):
        return _V06
    if version is not None and wanted not in (None, version):
        raise NotRepresentableError(
            f"OME-Zarr {wanted} is not for Zarr {found.metadata.dialect}",
            store=str(found.where.store),
            path=found.where.path,
            remedy=Remedy("bring the array to another format with {convert} first", convert=Function()),
        )
    if version is None:
        raise NotRepresentableError(
            f"OME-Zarr has no version for Zarr {found.metadata.dialect}",
            store=str(found.where.store),
            path=found.where.path,
            remedy="convert it to v2 or v3 first",
        )
    return version


def without_group(where: StorePath) -> MetadataError:
    """Return the error for an array that is the root of its hierarchy."""
    return MetadataError(
        "the array is the root of its hierarchy, so there is no group that could list its levels",
        store=str(where.store),
        path=where.path,
        remedy="name a target, which gets a copy of it",
    )


def _of_group(
    group: Found[GroupMetadata],
    version: str,
    axes: Sequence[str] | None,
    scale: Mapping[str, float],
    unit: Mapping[str, str],
) -> Image:
    entry = _listed(group.metadata)
    if entry is None:
        raise MetadataError(
            "the group is not a multiscale image",
            store=str(group.where.store),
            path=group.where.path,
            remedy="name the array that is its full resolution",
        )
    path = _first_path(entry)
    array = detection.open_array(group.where / path)
    if systems.has_systems(entry) is not (version == _V06):
        raise MetadataError(
            f"the image is not of version {version}",
            store=str(group.where.store),
            path=group.where.path,
            remedy=Remedy("bring it to another version of OME-Zarr with {convert} first", convert=Function()),
        )
    named = tuple(_axis_in(group.where, each) for each in systems.axes(entry) or ())
    lengths = _level_in(entry["datasets"][0], Level(path, (), (1.0,) * len(named), ())).scale
    if not _are_there(named, lengths, axes, scale, unit):
        raise MetadataError(
            "the image has axes already, in its attributes",
            store=str(group.where.store),
            path=group.where.path,
            found=", ".join(axis.name for axis in named),
            remedy="leave out axes, scale and unit, or change its attributes",
        )
    if len(named) != len(array.metadata.shape):
        raise MetadataError(
            "the axes of the image do not fit its full resolution",
            store=str(group.where.store),
            path=group.where.path,
            found=f"{len(named)} axes",
            expected=f"{len(array.metadata.shape)}",
        )
    image = _image(group, version, named, array.metadata, path, entry, {})
    first = _level_in(entry["datasets"][0], image.first)
    others = tuple(str(each.get("path")) for each in entry["datasets"][1:])
    return replace(image, first=first, others=others)


def _are_there(
    named: Sequence[Axis],
    lengths: Sequence[float],
    axes: Sequence[str] | None,
    scale: Mapping[str, float],
    unit: Mapping[str, str],
) -> bool:
    """Whether an image has the axes, the scale and the units that were asked for, or none were."""
    names = [axis.name for axis in named]
    there = dict(zip(names, lengths, strict=False))
    return (
        (axes is None or list(axes) == names)
        and all(there.get(name) == float(length) for name, length in scale.items())
        and all((name, given) in ((axis.name, axis.unit) for axis in named) for name, given in unit.items())
    )


def is_image(found: Found[Any]) -> bool:
    """Return whether a node is a group that lists the levels of an image."""
    return isinstance(found.metadata, GroupMetadata) and _listed(found.metadata) is not None


def _image(
    group: Found[GroupMetadata],
    version: str,
    axes: tuple[Axis, ...],
    metadata: ArrayMetadata,
    path: str,
    entry: Mapping[str, Any],
    scale: Mapping[str, float],
) -> Image:
    unknown = [name for name in scale if name not in {axis.name for axis in axes}]
    if unknown:
        raise MetadataError(
            "there is no such axis",
            store=str(group.where.store),
            path=group.where.path,
            found=repr(unknown[0]),
            expected=f"one of {', '.join(axis.name for axis in axes)}",
        )
    lengths = tuple(float(scale.get(axis.name, 1.0)) for axis in axes)
    first = Level(path, metadata.shape, lengths, (0.0,) * len(axes))
    is_label = reading.LABEL in _members(group.metadata)
    is_flat = version == "0.4" and metadata.chunk_key_encoding.configuration.get("separator", ".") != "/"
    names = tuple(axis.name for axis in axes)
    if metadata.dimension_names not in (None, names):
        raise MetadataError(
            "the dimensions of the full resolution are not called as the axes, which OME-Zarr 0.5 requires",
            store=str(group.where.store),
            path=f"{group.where.prefix}{path}",
            found=f"dimensions {metadata.dimension_names}",
            expected=f"{names}",
        )
    return Image(group, version, axes, first, (), entry, is_label, is_flat)


def _members(group: GroupMetadata) -> Mapping[str, Any]:
    inside = group.attributes.get(reading.OME)
    members = inside if isinstance(inside, Mapping) else group.attributes
    return {name: thawed(value) for name, value in members.items()}


def _listed(group: GroupMetadata) -> Mapping[str, Any] | None:
    """Return the first entry of ``multiscales`` with levels; None if there is none."""
    images = _members(group).get(reading.IMAGES)
    first = images[0] if isinstance(images, list) and images else None
    if not isinstance(first, dict) or not isinstance(first.get("datasets"), list) or not first["datasets"]:
        return None
    return first


def _first_path(entry: Mapping[str, Any]) -> str:
    first = entry["datasets"][0]
    return str(first.get("path", "")) if isinstance(first, Mapping) else ""


def _axis_in(where: StorePath, axis: Any) -> Axis:
    if isinstance(axis, Mapping) and isinstance(axis.get("name"), str):
        return Axis(axis["name"], str(axis.get("type", "")), axis.get("unit"))
    raise MetadataError(
        "axes without names: the image is of an older version of OME-Zarr",
        store=str(where.store),
        path=where.path,
        found=repr(axis),
        remedy=Remedy("bring it to version 0.5 with {convert} first", convert=Function()),
    )


def _level_in(entry: Mapping[str, Any], default: Level) -> Level:
    """Return the first level from its entry, as far as the entry describes it."""
    scale, moved = default.scale, default.translation
    for each in systems.flat(entry.get("coordinateTransformations")):
        values = each.get(str(each.get("type")))
        if isinstance(values, list) and len(values) == len(scale):
            if each["type"] == "scale":
                scale = tuple(map(float, values))
            elif each["type"] == "translation":
                moved = tuple(map(float, values))
    return replace(default, scale=scale, translation=moved)


def _axes_of(
    where: StorePath, metadata: ArrayMetadata, axes: Sequence[str] | None, unit: Mapping[str, str]
) -> tuple[Axis, ...]:
    """Return the axes of an array: given ones, else the names of its dimensions, else the usual ones."""
    ndim = len(metadata.shape)
    known = dimensions.names_of(metadata)
    names = list(axes) if axes is not None else [name or "" for name in known or ()]
    if axes is None and not names:
        names = {2: ["y", "x"], 3: ["z", "y", "x"], 4: ["c", "z", "y", "x"], 5: ["t", "c", "z", "y", "x"]}.get(ndim, [])
    types = [reading.TYPES.get(name.lower(), "") for name in names]
    order = {"time": 0, "channel": 1, "space": 2}
    is_right = (
        len(names) == ndim
        and 2 <= ndim <= 5
        and "" not in types
        and types == sorted(types, key=order.__getitem__)
        and len(set(names)) == ndim
        and types.count("space") in (2, 3)
    )
    if not is_right:
        raise NotRepresentableError(
            "OME-Zarr wants two to five axes: time, channel, and two or three of space, in this order",
            store=str(where.store),
            path=where.path,
            found=f"{ndim} dimensions called {names}" if names else f"{ndim} dimensions",
            remedy=Remedy("say which they are, as in {axes}", axes="czyx"),
        )
    return tuple(Axis(name, kind, unit.get(name, unit.get(kind))) for name, kind in zip(names, types, strict=True))
