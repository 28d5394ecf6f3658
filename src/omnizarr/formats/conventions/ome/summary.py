"""What a group of OME-Zarr holds, in a few values: for all that describes nodes.

Only the group's own attributes are asked. What is not drawn is named: coordinate systems to which more than a scale and
a translation lead.

Spec: https://ngff.openmicroscopy.org, versions 0.1 to 0.6; RFC-8 (collections), a draft.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from omnizarr.formats.conventions.contract import Nodes
from omnizarr.formats.conventions.ome import reading, systems
from omnizarr.formats.conventions.ome.reading import IMAGES, LABEL, LAYOUT, SCENE
from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON, GroupMetadata

_MOST: Final = 12
_MOST_NODES: Final = 10_000


def summary(metadata: GroupMetadata) -> dict[str, Any]:
    """Return what a group holds; empty if it has no metadata of OME-Zarr.

    Returns
    -------
    dict
        With ``version``, ``holds`` (``"image"``, ``"plate"``, ...), ``name``, and what belongs to it, such as
        ``levels``, ``axes``, ``units``, ``systems``, ``not_drawn`` of an image, ``wells`` of a plate, and ``members``
        of a collection.

    Examples
    --------
    >>> said = {"version": "0.5", "labels": ["cells", "nuclei"]}
    >>> summary(GroupMetadata(dialect="v3", attributes={"ome": said}))
    {'version': '0.5', 'holds': ['labels'], 'labels': ['cells', 'nuclei']}
    """
    members = reading.members("", Nodes({"": metadata}))
    if not members:
        return {}
    version = reading.version_of(members) or next((said for _, said in reading.versions(members) if said), None)
    found: dict[str, Any] = {"version": version, "holds": []}
    for name, describe in _PARTS.items():
        if name in members:
            described = describe(members[name])
            if described is not None:
                found["holds"].append(_WORDS.get(name, name))
                found |= described
    if reading.is_collection(members):
        found["holds"].append("collection")
        found |= _of_collection(members)
    return found


def _of_images(value: JSON) -> dict[str, Any] | None:
    listed = systems.objects(value)
    if not listed:
        return None
    image = listed[0]
    axes = [axis if is_object(axis) else {"name": axis} for axis in systems.axes(image) or ()]
    units = {str(axis.get("name")): str(axis["unit"]) for axis in axes if isinstance(axis.get("unit"), str)}
    found: dict[str, Any] = {
        **({"name": image["name"]} if isinstance(image.get("name"), str) else {}),
        "levels": [level["path"] for level in reading.datasets(image)],
        "axes": [str(axis.get("name")) for axis in axes],
        **({"units": units} if units else {}),
        **({"images": len(listed)} if len(listed) > 1 else {}),
    }
    if systems.has_systems(image):
        found["systems"] = list(systems.systems(image))
        found["drawn"] = systems.intrinsic(image)
    return found | _not_drawn(systems.objects(image.get(systems.STEPS)))


def _not_drawn(steps: list[Mapping[str, Any]]) -> dict[str, Any]:
    listed = [
        f"{' to '.join(_end(step.get(member)) for member in ('input', 'output'))}: {systems.words(step)}"
        for step in steps
        if "input" in step or not systems.is_plain(step)
    ]
    return {"not_drawn": listed} if listed else {}


def _end(value: JSON) -> str:
    end = systems.reference(value)
    return "/".join(part for part in (end.path if end.path != end.name else None, end.name) if part) or "?"


def _of_scene(value: JSON) -> dict[str, Any] | None:
    if not is_object(value):
        return None
    steps = systems.objects(value.get(systems.STEPS))
    ends = [systems.reference(step.get(member)) for step in steps for member in ("input", "output")]
    images = list(dict.fromkeys(end.path for end in ends if end.path not in (None, "", end.name)))
    return {"images_of_scene": images, "systems_of_scene": list(systems.systems(value)), **_not_drawn(steps)}


def _of_plate(value: JSON) -> dict[str, Any] | None:
    if not is_object(value):
        return None
    counts = {name: len(systems.objects(value.get(name))) for name in ("rows", "columns", "wells")}
    name = value.get("name")
    return {**counts, **({"name": name} if isinstance(name, str) else {})}


def plate(path: str, nodes: Nodes) -> dict[str, Any] | None:
    """Return names of rows and columns of the plate at a path, and its wells; None if there is none.

    Wells have the paths of their groups, and the numbers of their row and column. Those that are at no place are left
    out.
    """
    value = reading.members(path, nodes).get("plate")
    if not is_object(value):
        return None
    sides = [[str(each.get("name")) for each in systems.objects(value.get(name))] for name in ("rows", "columns")]
    wells = []
    for each in systems.objects(value.get("wells"))[:_MOST_NODES]:
        at = each.get("path")
        names = at.split("/") if isinstance(at, str) else []
        found = [
            each.get(key, side.index(name) if name in side else None)
            for key, side, name in zip(("rowIndex", "columnIndex"), sides, names[-2:], strict=False)
        ]
        if len(found) == len(sides) and all(
            isinstance(number, int) and 0 <= number < len(side) for number, side in zip(found, sides, strict=True)
        ):
            wells.append({"path": reading.resolve(path, str(at)), "row": found[0], "column": found[1]})
    return {"rows": sides[0], "columns": sides[1], "wells": wells}


def _of_well(value: JSON) -> dict[str, Any] | None:
    fields = systems.objects(value.get("images") if is_object(value) else None)
    return {"fields": [str(each.get("path")) for each in fields]}


def _of_texts(name: str, value: JSON) -> dict[str, Any] | None:
    return {name: [str(each) for each in value]} if is_list(value) else None


def _of_nothing(_: JSON) -> dict[str, Any]:
    return {}


def _of_omero(value: JSON) -> dict[str, Any] | None:
    channels = systems.objects(value.get("channels") if is_object(value) else None)
    labels = [str(each.get("label", number)) for number, each in enumerate(channels)]
    return {"channels": labels} if labels else None


def _of_collection(members: Mapping[str, JSON]) -> dict[str, Any]:
    """Return name, type and path of the members of a collection, and of collections within it."""
    found: list[dict[str, Any]] = []
    due = [("", node) for node in reversed(systems.objects(members.get("nodes")))]
    while due and len(found) < _MOST_NODES:
        above, node = due.pop()
        said = {key: node[key] for key in ("name", "type", "path") if isinstance(node.get(key), str)}
        name = f"{above}{said.get('name', '?')}"
        found.append({**said, "name": name})
        due += [(f"{name}/", each) for each in reversed(systems.objects(node.get("nodes")))]
    title = members.get("name")
    return {**({"name": title} if isinstance(title, str) else {}), "members": found}


_PARTS: Final[Mapping[str, Any]] = {
    IMAGES: _of_images,
    LABEL: _of_nothing,
    "omero": _of_omero,
    "plate": _of_plate,
    "well": _of_well,
    SCENE: _of_scene,
    "labels": lambda value: _of_texts("labels", value),
    LAYOUT: _of_nothing,
    "series": lambda value: _of_texts("series", value),
}
_WORDS: Final = {IMAGES: "image", LABEL: "label image", "omero": "channels", LAYOUT: "series of images"}


def rows(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what `summary` returns as rows of text.

    >>> list(rows({"version": "0.5", "holds": ["labels"], "labels": ["cells", "nuclei"]}))
    [('OME-Zarr', '0.5: labels'), ('labels', 'cells, nuclei')]
    """
    if not found:
        return
    name = f" {found['name']!r}" if "name" in found else ""
    kinds = " with ".join(each for each in found["holds"] if each != "channels") or "no images"
    yield "OME-Zarr", f"{found['version'] or 'without a version'}: {kinds}{name}"
    if "axes" in found:
        units = found.get("units", {})
        yield "axes", ", ".join(f"{axis} [{units[axis]}]" if axis in units else axis for axis in found["axes"])
        yield "levels", _some(found["levels"])
    if "channels" in found:
        yield "channels", _some(found["channels"])
    if len(found.get("systems", ())) > 1:
        yield "systems", f"{_some(found['systems'])}; drawn in {found['drawn']}"
    if "wells" in found:
        yield "plate", f"{found['rows']} rows, {found['columns']} columns, {found['wells']} wells"
    for key, title in (
        ("fields", "fields"),
        ("labels", "labels"),
        ("series", "series"),
        ("images_of_scene", "images"),
        ("not_drawn", "not drawn"),
    ):
        if found.get(key):
            yield title, _some(found[key])
    if "members" in found:
        yield "members", _some([f"{each['name']} ({each.get('type', '?')})" for each in found["members"]])


def _some(listed: list[str]) -> str:
    more = f", and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    return ", ".join(listed[:_MOST]) + more
