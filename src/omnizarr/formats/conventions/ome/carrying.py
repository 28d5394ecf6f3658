"""OME-Zarr from one Zarr format to another: before v3 it is 0.4, in v3 it is 0.5."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from omnizarr.formats.conventions.contract import Carried, Nodes
from omnizarr.formats.conventions.ome import reading, systems, upgrading
from omnizarr.formats.conventions.ome.reading import EARLY, IMAGES, LABEL, OME, SCENE, TYPES, V05, V06, VERSIONED
from omnizarr.formats.reader import is_list, is_object, join
from omnizarr.formats.spelling import same
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Loss, Metadata, Named

NAME: Final = "ome-zarr"
"""Of the convention."""
_V2: Final = "v2"
_V3: Final = "v3"
_V04: Final = EARLY[-1]
_NESTED: Final = Named("v2", {"separator": "/"})
"""The keys of chunks in versions 0.2 to 0.4."""
_DIMENSIONS: Final = "_ARRAY_DIMENSIONS"
_APART: Final = ("v0", "v1", "v2")
"""Formats with a separate document for attributes."""


@dataclass
class _Carrying:
    """One group that is being converted."""

    path: str
    nodes: Nodes
    source: GroupMetadata
    remarks: list[str] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    @property
    def attributes(self) -> Mapping[str, JSON]:
        return self.source.attributes

    def lose(self, what: str, why: str, *below: str | int) -> None:
        document = "" if self.source.dialect in _APART else "/attributes"
        self.losses.append(Loss(self.path, join(document, *below), what, why))


def carry(metadata: Metadata, path: str, nodes: Nodes, dialect: str) -> Carried:
    """Return a node with OME-Zarr in the form for the Zarr format of that name, or in the version that is asked for."""
    if _V3 not in (metadata.dialect, dialect):
        return Carried(metadata)
    if isinstance(metadata, GroupMetadata):
        carrying = _Carrying(path, nodes, metadata)
        attributes = (_inside(carrying) if metadata.dialect != _V3 else metadata.attributes) if dialect == _V3 else {}
        wanted = nodes.wishes.get(NAME) if dialect == _V3 else V05
        attributes = _in_version(carrying, attributes or metadata.attributes, wanted)
        if dialect != _V3:
            attributes = _outside(carrying, attributes)
        metadata = replace(metadata, attributes=attributes)
        return Carried(metadata, tuple(carrying.remarks), tuple(carrying.losses))
    if dialect == _V3:
        found = reading.level(path, nodes)
        names = None if found is None else reading.axes(found.group, found.image, nodes)
        if names is None or len(names) != len(metadata.shape) or metadata.dimension_names is not None:
            return Carried(metadata)
        listed = metadata.attributes.get(_DIMENSIONS)
        if listed is None:
            remark = "the names of the axes become dimension_names"
            return Carried(replace(metadata, dimension_names=names), (remark,))
        if same(listed, names):
            return Carried(metadata)  # they become dimension names anyway
        return Carried(
            metadata, (f"the attribute {_DIMENSIONS} is kept, though the axes of the image are {', '.join(names)}",)
        )
    return _unnamed(metadata, path, nodes) if dialect == _V2 else Carried(metadata)


# Groups, to 0.5


def _inside(carrying: _Carrying) -> Mapping[str, JSON]:
    """Return attributes with those of OME-Zarr as members of ``ome``."""
    found = reading.outside(carrying.path, carrying.nodes)
    if not found:
        return carrying.attributes
    listed = _listed(found)
    unknown = [version for _, version in reading.versions(found) if version not in (*EARLY, None)]
    if OME in carrying.attributes:
        why = f"there is an attribute {OME!r} already, which is kept"
        carrying.lose(f"{listed}: OME-Zarr 0.5 has them in the attribute {OME!r}", why)
        return carrying.attributes
    if unknown:
        why = f"they are of version {unknown[0]}, and only {', '.join(EARLY)} are known for Zarr before v3"
        carrying.lose(f"{listed}: OME-Zarr 0.5 has them in the attribute {OME!r}", why)
        return carrying.attributes
    lowest = min((version for _, version in reading.versions(found) if version is not None), default="")
    carrying.remarks.append(f"{f'OME-Zarr {lowest}'.strip()} becomes 0.5: {listed} under the attribute {OME!r}")
    within: dict[str, JSON] = {"version": V05, **found}
    if IMAGES in within:
        within[IMAGES] = [_modern_image(image, at, carrying) for at, image in enumerate(_objects(within[IMAGES]))]
    if "plate" in within:
        within["plate"] = {**_modern_plate(_object(within["plate"]), carrying), "version": V05}
    for name in VERSIONED:
        if "version" in _object(within.get(name)):
            within[name] = {**_object(within[name]), "version": V05}
    rest = {name: value for name, value in carrying.attributes.items() if name not in found}
    return {**rest, OME: within}


def _listed(names: Iterable[str]) -> str:
    listed = list(names)
    return " and ".join([*([", ".join(listed[:-1])] if listed[:-1] else []), *listed[-1:]])


def _objects(value: JSON) -> list[Any]:
    return list(value) if is_list(value) else []


def _object(value: JSON) -> Mapping[str, Any]:
    return value if is_object(value) else {}


def _modern_image(image: Any, at: int, carrying: _Carrying) -> Any:
    """Return an entry of ``multiscales`` in the form of 0.5: with axes that are objects, and scales, but no version."""
    if not is_object(image):
        return image
    modern = {name: value for name, value in image.items() if name != "version"}
    if not reading.is_early(image):
        return modern
    names = reading.axes(carrying.path, image, carrying.nodes)
    if names is None:
        what = f"what the dimensions of image {at} are: readers of OME-Zarr 0.5 refuse it"
        why = "the image does not name its axes, and has not the five that OME-Zarr 0.1 and 0.2 prescribe"
        carrying.lose(what, why, IMAGES, at)
        return modern
    if "axes" not in image:
        carrying.remarks.append(f"the axes are {', '.join(names)}, as OME-Zarr 0.1 and 0.2 prescribe")
    modern["axes"] = [{"name": name, **({"type": TYPES[name]} if name in TYPES else {})} for name in names]
    shapes = [None if array is None else array.shape for array in reading.arrays(carrying.path, image, carrying.nodes)]
    levels = _objects(image.get("datasets"))
    if all("coordinateTransformations" in _object(level) for level in levels):
        return modern
    if len(shapes) != len(levels) or not all(shape is not None and len(shape) == len(names) for shape in shapes):
        what = f"how large the pixels of image {at} are: readers of OME-Zarr 0.5 refuse it"
        why = "a level is not there, or has another number of dimensions than axes"
        carrying.lose(what, why, IMAGES, at, "datasets")
        return modern
    modern["datasets"] = [
        {"coordinateTransformations": [{"type": "scale", "scale": _scale(shape, shapes[0])}], **level}
        for level, shape in zip(levels, shapes, strict=True)
    ]
    carrying.remarks.append("no size of pixels was told: the scales are those between the levels")
    return modern


def _scale(shape: Any, first: Any) -> list[float]:
    """Return the ratio of the pixel sizes of a level to those of the first."""
    return [full / length if length else 1.0 for length, full in zip(shape, first, strict=True)]


def _modern_plate(plate: Mapping[str, Any], carrying: _Carrying) -> Mapping[str, Any]:
    """Return a plate whose wells have row and column numbers, which OME-Zarr requires from 0.4 on."""
    places = [
        {str(each["name"]): at for at, each in enumerate(_objects(plate.get(name))) if "name" in _object(each)}
        for name in ("rows", "columns")
    ]
    wells: list[Any] = []
    for at, well in enumerate(_objects(plate.get("wells"))):
        parts = str(_object(well).get("path")).split("/")
        if not is_object(well) or ("rowIndex" in well and "columnIndex" in well):
            wells.append(well)
        elif len(parts) == 2 and all(part in place for part, place in zip(parts, places, strict=True)):
            row, column = (place[part] for part, place in zip(parts, places, strict=True))
            wells.append({"rowIndex": row, "columnIndex": column, **well})
        else:
            what = f"in which row and column well {at} lies: readers of OME-Zarr 0.5 refuse the plate"
            carrying.lose(
                what, f"its path {well.get('path')!r} is not that of a row and a column", "plate", "wells", at
            )
            wells.append(well)
    if not same(wells, plate.get("wells")):
        carrying.remarks.append("wells get the numbers of their rows and columns")
    return {**plate, "wells": wells}


# Groups, between 0.5 and 0.6


def _in_version(carrying: _Carrying, attributes: Mapping[str, JSON], wanted: str | None) -> Mapping[str, JSON]:
    """Return attributes whose member ``ome`` is of a version, 0.5 or 0.6; unchanged if it cannot be."""
    within = attributes.get(OME)
    version = systems.family(reading.version_of(within))
    if not is_object(within) or wanted is None or {version, wanted} != {V05, V06}:
        return attributes
    changed = dict(within)
    listed = [
        (upgrading.to_06 if wanted == V06 else upgrading.to_05)(image) if is_object(image) else None
        for image in _objects(within.get(IMAGES))
    ]
    for number, image in enumerate(listed):
        if image is None or image.image is None:
            what = f"image {number} as OME-Zarr {wanted}: the group stays {reading.version_of(within)}"
            why = image.losses[0][0] if image is not None else "it is no object"
            carrying.lose(what, why, OME, IMAGES, number)
            return attributes
    for number, image in enumerate(listed):
        carrying.remarks += image.remarks if image is not None else ()
        for what, why in image.losses if image is not None else ():
            carrying.lose(what, why, OME, IMAGES, number)
    if IMAGES in within:
        changed[IMAGES] = [image.image for image in listed if image is not None]
    if SCENE in within and wanted == V05:
        what = "the scene: where its images lie"
        carrying.lose(what, "OME-Zarr 0.5 has no scenes; the member is kept, and readers ignore it", OME, SCENE)
    for name in (*VERSIONED[:2], LABEL):
        if is_object(within.get(name)):
            held = {key: value for key, value in _object(within[name]).items() if key != "version"}
            is_needed = wanted == V05 and name == "plate"
            changed[name] = {**held, "version": V05} if is_needed else held
    changed["version"] = wanted
    carrying.remarks.append(f"OME-Zarr {reading.version_of(within)} becomes {wanted}")
    return {**attributes, OME: changed}


# Groups, to 0.4


def _outside(carrying: _Carrying, attributes: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return attributes including the members of ``ome``, which are those of 0.5."""
    within = reading.inside(replace(carrying.source, attributes=attributes))
    if within is None:
        return carrying.attributes
    version = reading.version_of(within)
    found = {name: value for name, value in within.items() if name != "version"}
    rest = {name: value for name, value in attributes.items() if name != OME}
    if version not in (V05, None):
        what = f"that attribute {OME!r} is OME-Zarr {version}: readers of Zarr v2 do not look there"
        if systems.family(version) != V06:  # of which a loss has told why
            carrying.lose(what, f"OME-Zarr is {_V04} before Zarr v3, and only 0.5 is known to become that", OME)
        return carrying.attributes
    taken = [name for name in found if name in rest]
    if taken:
        what = f"{_listed(found)}: OME-Zarr {_V04} has them outside of the attribute {OME!r}"
        carrying.lose(what, f"there is an attribute {taken[0]!r} outside already, which is kept", OME)
        return carrying.attributes
    if found:
        carrying.remarks.append(f"OME-Zarr 0.5 becomes {_V04}: {_listed(found)} outside of the attribute {OME!r}")
    if is_list(found.get(IMAGES)):
        found[IMAGES] = [
            {"version": _V04, **{name: value for name, value in image.items() if name != "version"}}
            if is_object(image)
            else image
            for image in _objects(found[IMAGES])
        ]
    for name in VERSIONED:
        # it is required for plates, and recommended for all except omero
        if is_object(found.get(name)) and (name != "omero" or "version" in _object(found[name])):
            found[name] = {**_object(found[name]), "version": _V04}
    return {**rest, **found}


# Levels


def _unnamed(array: ArrayMetadata, path: str, nodes: Nodes) -> Carried:
    """Return a level without names of dimensions if the axes of its image state them, as in 0.4.

    Names that xarray could use are kept: those of levels in groups of their own. xarray cannot open several
    levels in one group.
    """
    names = reading.names_of_level(path, nodes)
    if names is None or array.dimension_names != names:
        return Carried(array, chunk_key_encoding=_NESTED)
    remarks = ("dimension_names are left out: they are the names of the axes",)
    return Carried(replace(array, dimension_names=None), remarks, chunk_key_encoding=_NESTED, is_settled=True)
