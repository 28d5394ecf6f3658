"""The nodes that OME-Zarr metadata names, for stores that cannot list their keys.

Spec: https://ngff.openmicroscopy.org, versions 0.1 to 0.6.
"""

from __future__ import annotations

from typing import Any

from omnizarr.formats.conventions.ome.reading import LAYOUT, OME, OUTSIDE, datasets, resolve
from omnizarr.formats.reader import is_integer, is_list, is_object
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


def first(metadata: GroupMetadata) -> tuple[str, str] | None:
    """Return the path, relative to a group, of the first of several images or wells that it holds, and what it is.

    None if it holds no others. Wells come in the order of rows and columns.

    >>> said = {"images": [{"path": "0"}, {"path": "1"}]}
    >>> first(GroupMetadata(dialect="v3", attributes={"ome": {"version": "0.5", "well": said}}))
    ('0', 'field 0 of 2')
    """
    said = metadata.attributes.get(OME)
    members = {**metadata.attributes, **(said if is_object(said) else {})}
    for name, inner, word in (("plate", "wells", "well"), ("well", "images", "field")):
        holder = members.get(name)
        listed = _list(holder.get(inner)) if is_object(holder) else []
        entries = [each for each in listed if is_object(each) and isinstance(each.get("path"), str)]
        if entries:
            path = str(min(entries, key=_place)["path"] if name == "plate" else entries[0]["path"])
            return path, f"{word} {path} of {len(entries)}"
    texts = [each for each in _list(members.get("labels")) if isinstance(each, str)]
    if texts and "multiscales" not in members:
        return texts[0], f"label image {texts[0]} of {len(texts)}"
    return ("0", "the first image") if LAYOUT in members else None


def _place(well: Any) -> tuple[int, int]:
    row, column = (each if is_integer(each) else 0 for each in (well.get("rowIndex"), well.get("columnIndex")))
    return row, column


def _list(value: JSON) -> list[Any]:
    return list(value) if is_list(value) else []
