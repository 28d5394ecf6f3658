"""Reading OME-Zarr metadata from the attributes of a hierarchy.

OME-Zarr 0.1 to 0.4 store their metadata among the attributes of a group (``multiscales``, ``plate``, ...). From
0.5 on they are members of the attribute ``ome``. Names like ``labels`` and ``series`` are common; outside of
``ome`` they count only where OME-Zarr expects them. The coordinate systems of 0.6 are in `systems`.

Spec: https://ngff.openmicroscopy.org, versions 0.1 to 0.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from omnizarr.formats.conventions.contract import Nodes
from omnizarr.formats.conventions.ome import systems
from omnizarr.formats.paths import upwards
from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata

OME: Final = "ome"
"""The attribute that contains all others from version 0.5 on."""
IMAGES: Final = "multiscales"
LABEL: Final = "image-label"
LAYOUT: Final = "bioformats2raw.layout"
OUTSIDE: Final = (IMAGES, "omero", LABEL, "labels", "plate", "well", LAYOUT, "series")
"""Attributes of versions before 0.5, and members of `OME` from 0.5 on."""
VERSIONED: Final = ("plate", "well", LABEL, "omero")
"""Attributes with a version of their own. (Each entry of `IMAGES` also has one before 0.5.)"""
COUNTED: Final = VERSIONED[:2]
"""Attributes whose version readers use."""

EARLY: Final = ("0.1", "0.2", "0.3", "0.4")
"""Versions without `OME`, which are for Zarr v2."""
V05: Final = "0.5"
V06: Final = "0.6"
SCENE: Final = "scene"
"""From 0.6 on: transformations between the systems of several images."""
COLLECTION: Final = "collection"
"""The type of a group of images in RFC-8."""
FIRST_AXES: Final = ("t", "c", "z", "y", "x")
"""The axes of all images before version 0.3, which does not name axes."""
TYPES: Final[Mapping[str, str]] = {"t": "time", "c": "channel", "z": "space", "y": "space", "x": "space"}
"""The types of axes by name, up to version 0.3."""


class Level(NamedTuple):
    """One resolution of an image.

    Attributes
    ----------
    group : str
        Path of the group that lists it.
    image : mapping
        The entry of ``multiscales``.
    number : int
        The index in ``datasets``.
    """

    group: str
    image: Mapping[str, Any]
    number: int


def resolve(group: str, relative: object) -> str:
    """Return the path of a group's reference.

    >>> resolve("a/b", "./labels/0/"), resolve("a/OME", "../0")
    ('a/b/labels/0', 'a/0')
    """
    parts = group.split("/") if group else []
    for part in str(relative).split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def inside(node: ArrayMetadata | GroupMetadata) -> Mapping[str, JSON] | None:
    """Return the members of the attribute ``ome``; None if it is missing or something else."""
    found = node.attributes.get(OME)
    if not isinstance(node, GroupMetadata) or not is_object(found):
        return None
    return found if "version" in found or any(name in found for name in (*OUTSIDE, SCENE)) else None


def outside(path: str, nodes: Nodes) -> dict[str, JSON]:
    """Return the attributes of a node that belong to OME-Zarr, without ``ome``."""
    node = nodes[path]
    if not isinstance(node, GroupMetadata):
        return {}
    return {
        name: node.attributes[name]
        for name in OUTSIDE
        if name in node.attributes and _belongs(name, node.attributes[name], path, nodes)
    }


def members(path: str, nodes: Nodes) -> Mapping[str, JSON]:
    """Return the OME-Zarr metadata of a group, in the form for its Zarr format if it has both."""
    within, without = inside(nodes[path]), outside(path, nodes)
    return (within or without) if nodes[path].dialect == "v3" else (without or within or {})


def is_collection(found: JSON) -> bool:
    """Return whether a member ``ome`` is a collection of RFC-8."""
    return is_object(found) and found.get("type") == COLLECTION and is_list(found.get("nodes"))


def images(path: str, nodes: Nodes) -> Sequence[Mapping[str, Any]]:
    """Return the entries of ``multiscales`` of the group at a path; none if it is not an image."""
    node = nodes.get(path)
    if not isinstance(node, GroupMetadata):
        return ()
    within = (inside(node) or {}).get(IMAGES)
    without = node.attributes.get(IMAGES)
    if not _are_images(without, path, nodes):
        without = None
    found = (within or without) if node.dialect == "v3" else (without or within)
    return [image for image in found if is_object(image)] if is_list(found) else ()


def datasets(image: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the levels of an image that are objects with a path."""
    found = image.get("datasets")
    return [each for each in found if is_object(each) and isinstance(each.get("path"), str)] if is_list(found) else ()


def level(path: str, nodes: Nodes, *, most_above: int | None = None) -> Level | None:
    """Return the image of which the node at a path is a level; None if it is none.

    `most_above` is how many groups above it are asked, by default all.
    """
    for group in [*upwards(path)][1:][:most_above]:
        for image in images(group, nodes):
            for number, dataset in enumerate(datasets(image)):
                if resolve(group, dataset["path"]) == path:
                    return Level(group, image, number)
    return None


def arrays(group: str, image: Mapping[str, Any], nodes: Nodes) -> Iterator[ArrayMetadata | None]:
    """Yield the array of each level; None if it is missing."""
    for dataset in datasets(image):
        node = nodes.get(resolve(group, dataset["path"]))
        yield node if isinstance(node, ArrayMetadata) else None


def axes(group: str, image: Mapping[str, Any], nodes: Nodes) -> tuple[str, ...] | None:
    """Return the names of the axes of an image; None if neither the image nor its version defines them."""
    listed = systems.axes(image)
    if listed is None:
        lengths = {len(array.shape) for array in arrays(group, image, nodes) if array is not None}
        return FIRST_AXES if is_early(image) and lengths == {len(FIRST_AXES)} else None
    if not is_list(listed):
        return None
    names = [axis.get("name") if is_object(axis) else axis for axis in listed]
    return tuple(map(str, names)) if all(isinstance(name, str) for name in names) else None


def names_of_level(path: str, nodes: Nodes) -> tuple[str, ...] | None:
    """Return the names of the axes of the image directly above a level; None if the node is not a level."""
    found = level(path, nodes)
    if found is None or path.rpartition("/")[0] != found.group:
        return None
    return axes(found.group, found.image, nodes)


def is_early(image: Mapping[str, Any]) -> bool:
    """Return whether an image has a version before 0.4, in which axes were not objects."""
    listed = image.get("axes")
    if listed is None:
        return "coordinateSystems" not in image
    return is_list(listed) and all(isinstance(axis, str) for axis in listed)


def version_of(value: object) -> str | None:
    """Return the version of an object, which some writers store as a number; None if it has none."""
    version = value.get("version") if is_object(value) else None
    return None if version is None else str(version)


def versions(found: Mapping[str, JSON]) -> Iterator[tuple[tuple[str | int, ...], str | None]]:
    """Yield the places of versions in metadata in the form before 0.5, with the version; None if it is missing."""
    listed = found.get(IMAGES)
    for number, image in enumerate(listed if is_list(listed) else ()):
        yield (IMAGES, number, "version"), version_of(image)
    for name in COUNTED:
        if name in found:
            yield (name, "version"), version_of(found[name])


def _belongs(name: str, value: JSON, path: str, nodes: Nodes) -> bool:
    """Return whether an attribute of a group belongs to OME-Zarr."""
    if name == IMAGES:
        return _are_images(value, path, nodes)
    if name == "omero":
        return is_object(value) and ("channels" in value or bool(images(path, nodes)))
    if name == LABEL:
        return is_object(value)
    if name == "labels":
        return _are_texts(value) and _are_labels(value, path, nodes)
    if name == "plate":
        return is_object(value) and is_list(value.get("wells"))
    if name == "well":
        return is_object(value) and is_list(value.get("images"))
    if name == "series":
        return _are_texts(value) and _is_below_layout(path, nodes)
    return True


def _are_texts(value: JSON) -> bool:
    return is_list(value) and all(isinstance(item, str) for item in value)


def _are_images(value: JSON, path: str, nodes: Nodes) -> bool:
    """Return whether ``multiscales`` belongs to OME-Zarr.

    Pyramids of maps also have this attribute, with groups as levels.
    """
    listed = [image for image in value if is_object(image)] if is_list(value) else []
    if not any("datasets" in image for image in listed):
        return False
    if any("version" in image or "axes" in image for image in listed):
        return True
    return any(array is not None for image in listed for array in arrays(path, image, nodes))


def _are_labels(value: Any, path: str, nodes: Nodes) -> bool:
    """Return whether a list of names consists of label images: of an image's group ``labels``, or of images below."""
    parent, _, name = path.rpartition("/")
    if name == "labels" and images(parent, nodes):
        return True
    return any(images(resolve(path, item), nodes) for item in value)


def _is_below_layout(path: str, nodes: Nodes) -> bool:
    parent, _, name = path.rpartition("/")
    above = nodes.get(parent)
    if name != "OME" or above is None:
        return False
    return LAYOUT in above.attributes or LAYOUT in (inside(above) or {})
