"""``multiscales`` of zarr-conventions: groups or arrays that have the same values at several resolutions.

OME-Zarr has an attribute of the same name, which is a list; this one is an object with ``layout``.

Spec: https://github.com/zarr-conventions/multiscales, v0.1, the same as v1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from omnizarr.formats.conventions.contract import Convention, Fault, Nodes
from omnizarr.formats.conventions.registered.records import Checking, Known, numbers, texts, unchanged
from omnizarr.formats.paths import upwards
from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import ArrayMetadata, GroupMetadata, Metadata, dimensions

KEY: Final = "multiscales"
LAYOUT: Final = "layout"
ASSET: Final = "asset"
_SOURCE: Final = "derived_from"
_OLDER: Final = "group"
"""What ``asset`` was called before the text had a version."""
_PATH: Final = re.compile(r"(?!.*\.\.)[^/]+(/[^/]+)*")
_MOST_ABOVE: Final = 3
"""Groups above a node that are asked whether it is one of their levels."""

MULTISCALES: Final = Known(
    name="multiscales",
    uuid="d35379db-88df-4056-af3a-620245f8e347",
    schema_url="https://raw.githubusercontent.com/zarr-conventions/multiscales/refs/tags/v0.1/schema.json",
    spec_url="https://github.com/zarr-conventions/multiscales/blob/v0.1/README.md",
    description="Multiscale layout of zarr datasets",
    repositories=("zarr-conventions/multiscales",),
    keys=(KEY,),
    nodes=("group",),
    state="proposal",
)


class Level(NamedTuple):
    """A node that is a resolution, or lies in one.

    Attributes
    ----------
    group : str
        Path of the group that lists it.
    number : int
        The index in ``layout``.
    entry : mapping
    """

    group: str
    number: int
    entry: Mapping[str, Any]


def layout(node: Metadata | None) -> Sequence[Any]:
    """Return the entries of a group; none if it has no resolutions."""
    found = node.attributes.get(KEY) if isinstance(node, GroupMetadata) else None
    entries = found.get(LAYOUT) if is_object(found) else None
    return entries if is_list(entries) else ()


def asset_of(entry: object, key: str = ASSET) -> str | None:
    """Return the path that an entry names, relative to its group; None if it names none."""
    found = entry.get(key) if is_object(entry) else None
    if found is None and key == ASSET and is_object(entry):
        found = entry.get(_OLDER)
    return found if isinstance(found, str) and _PATH.fullmatch(found) else None


def below(group: str, relative: str) -> str:
    """Return the path of a node below a group."""
    return f"{group}/{relative}" if group else relative


def level_of(path: str, nodes: Nodes) -> Level | None:
    """Return the resolution that the node at a path is, or that its group is; None if it belongs to none."""
    parent = path.rpartition("/")[0]
    for group in islice(upwards(path), 1, 1 + _MOST_ABOVE):
        for number, entry in enumerate(layout(nodes.get(group))):
            asset = asset_of(entry)
            if asset is not None and below(group, asset) in (path, parent):
                return Level(group, number, entry)
    return None


def arrays(group: str, entry: object, nodes: Nodes) -> Mapping[str, ArrayMetadata]:
    """Return the arrays of a resolution: by the name in its group, or by "" the array that it is."""
    asset = asset_of(entry)
    if asset is None:
        return {}
    path = below(group, asset)
    node = nodes.get(path)
    return {"": node} if isinstance(node, ArrayMetadata) else nodes.arrays_in(path)


def _recognise(path: str, nodes: Nodes) -> bool:
    node = nodes[path]
    return bool(layout(node)) or MULTISCALES.is_declared(node)


# -- what is wrong -----------------------------------------------------------------------------------------------------


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    node = nodes[path]
    at = Checking(MULTISCALES, path, node, "multiscales-invalid")
    yield from at.about()
    found = node.attributes.get(KEY)
    entries = found.get(LAYOUT) if is_object(found) else None
    if not is_list(entries) or not entries:
        if not (is_list(found) and not MULTISCALES.is_declared(node)):
            yield at.fault((KEY, LAYOUT), "no list of resolutions", entries, "a list of objects")
        return
    listed = {asset_of(entry): entry for entry in entries}
    for number, entry in enumerate(entries):
        place = (KEY, LAYOUT, number)
        if not is_object(entry):
            yield at.fault(place, "the resolution is no object", entry, "an object")
            continue
        if ASSET not in entry and _OLDER in entry:
            message = f"the path is called {_OLDER!r}, as before the text had a version"
            yield at.fault((*place, _OLDER), message, _OLDER, ASSET, "convention-older")
        yield from _of_paths(at, entry, place, nodes, listed)
        yield from _of_transform(at, entry, place)
        source = asset_of(entry, _SOURCE)
        if source is not None and source in listed:
            yield from _of_shapes(at, entry, listed[source], place, nodes)


def _of_paths(
    at: Checking,
    entry: Mapping[str, Any],
    place: tuple[str | int, ...],
    nodes: Nodes,
    listed: Mapping[str | None, Any],
) -> Iterator[Fault]:
    for key in (ASSET, _SOURCE):
        if key == _SOURCE and key not in entry:
            continue
        asset = asset_of(entry, key)
        if asset is None:
            message = f"{key} is no path below the group"
            yield at.fault((*place, key), message, entry.get(key), "names, separated by /")
        elif below(at.path, asset) not in nodes:
            if key == _SOURCE and asset in listed:
                continue  # the missing asset is reported once
            message = f"{key} leads to no readable group or array"
            yield at.fault((*place, key), message, asset, "the path of a node", "multiscales-missing-level")
        elif key == ASSET and not arrays(at.path, entry, nodes):
            message = "the group of the resolution has no readable array"
            yield at.fault((*place, key), message, asset, "a group with arrays", "multiscales-missing-level")


def _of_transform(at: Checking, entry: Mapping[str, Any], place: tuple[str | int, ...]) -> Iterator[Fault]:
    transform = entry.get("transform")
    if transform is None:
        if _SOURCE in entry:
            message = "a resolution that is derived from another one says not how"
            yield at.fault((*place, "transform"), message, None, "an object with scale")
        return
    if not is_object(transform):
        yield at.fault((*place, "transform"), "the transform is no object", transform, "an object")
        return
    for key in ("scale", "translation"):
        found = numbers(transform.get(key)) if key in transform else ()
        if found is None:
            yield at.fault((*place, "transform", key), f"the {key} is no list of numbers", transform[key])
        elif key == "scale" and any(each <= 0 for each in found):
            message = "a scale that is not above 0 cannot be undone"
            yield at.fault((*place, "transform", key), message, transform[key], "numbers above 0")


def _of_shapes(
    at: Checking, entry: Mapping[str, Any], source: object, place: tuple[str | int, ...], nodes: Nodes
) -> Iterator[Fault]:
    """Yield the arrays of a resolution whose lengths are not those of the source, divided by the scale."""
    transform = entry.get("transform")
    scale = numbers(transform.get("scale")) if is_object(transform) else None
    moved = numbers(transform.get("translation", ())) if is_object(transform) else None
    if not scale or any(each <= 0 for each in scale) or any(abs(each) >= 1 for each in moved or ()):
        return
    spatial = texts(at.node.attributes.get("spatial:dimensions"), 2)
    mine, theirs = arrays(at.path, entry, nodes), arrays(at.path, source, nodes)
    for name in mine.keys() & theirs.keys():
        level, above = mine[name], theirs[name]
        names = dimensions.names_of(level) or ()
        if len(level.shape) != len(above.shape):
            message = f"{_called(name)} has another number of dimensions than in the source"
            yield at.fault(place, message, list(level.shape), list(above.shape), "multiscales-shape")
            continue
        if len(scale) == len(level.shape):
            along: dict[int, float] = dict(enumerate(scale))
        elif spatial is not None and len(scale) == len(spatial):
            along = {names.index(each): factor for each, factor in zip(spatial, scale, strict=True) if each in names}
        else:
            continue
        wrong = [axis for axis, factor in along.items() if abs(level.shape[axis] - above.shape[axis] / factor) >= 1]
        if wrong:
            wanted = [round(length / along.get(axis, 1.0), 2) for axis, length in enumerate(above.shape)]
            message = f"the shape of {_called(name)} is not that of the source, divided by the scale"
            pointer = (*place, "transform", "scale")
            yield at.fault(pointer, message, list(level.shape), f"about {wanted}", "multiscales-shape")


def _called(name: str) -> str:
    return f"the array {name!r}" if name else "the array"


CONVENTION: Final = Convention(
    name="multiscales",
    title="multiscales",
    spec=MULTISCALES.spec_url,
    attributes=frozenset({KEY}),
    recognise=_recognise,
    carry=unchanged,
    faults=_faults,
)
