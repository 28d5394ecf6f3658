"""The nodes that OME-Zarr metadata names, for stores that cannot list their keys.

Spec: https://ngff.openmicroscopy.org, versions 0.1 to 0.5.
"""

from __future__ import annotations

from typing import Any

from omnizarr.formats.conventions.ome.reading import OME, OUTSIDE, datasets, resolve
from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON, GroupMetadata


def named(metadata: GroupMetadata) -> list[str]:
    """Return the paths, relative to a group, of the nodes that its OME-Zarr metadata names; empty if it has none.

    There may be others, because OME-Zarr has no list of all members. Labels of an image are named even if it has
    none.

    >>> named(GroupMetadata(dialect="v2", attributes={"multiscales": [{"datasets": [{"path": "0"}, {"path": "1"}]}]}))
    ['0', '1', 'labels']
    """
    said = metadata.attributes.get(OME)
    members = {name: metadata.attributes[name] for name in OUTSIDE if name in metadata.attributes}
    if is_object(said):
        members |= said
    images = [image for image in _list(members.get("multiscales")) if is_object(image)]
    paths: list[Any] = [level["path"] for image in images for level in datasets(image)]
    paths += ["labels"] if images else []
    for name, inner in (("plate", "wells"), ("well", "images")):
        holder = members.get(name)
        entries = _list(holder.get(inner)) if is_object(holder) else []
        paths += [entry.get("path") for entry in entries if is_object(entry)]
    paths += [*_list(members.get("labels")), *_list(members.get("series"))]
    paths += ["OME"] if "bioformats2raw.layout" in members else []
    resolved = (resolve("", path) for path in paths if isinstance(path, str) and ".." not in path.split("/"))
    return [path for path in dict.fromkeys(resolved) if path]


def _list(value: JSON) -> list[Any]:
    return list(value) if is_list(value) else []
