"""Consolidated metadata: copies of many nodes' documents in one place.

The copies are passed on unparsed, so that one broken node does not hide its siblings.

Spec: Zarr v3 core, "Additional fields" (inline); for v2 a convention (``.zmetadata``, format 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from omnizarr.errors import ConsolidatedMetadataError
from omnizarr.formats.contract import Nodes
from omnizarr.formats.paths import is_path, key
from omnizarr.formats.reader import Reader, join
from omnizarr.model import JSON, Report, strict

_INLINE = "/consolidated_metadata"
_V3 = 'Zarr v3, "Additional fields"'
_V2 = "consolidated metadata of zarr-python, format 1"
V2_DOCUMENTS: Final = (".zarray", ".zgroup", ".zattrs")


def load_inline(document: JSON, report: Report = strict) -> dict[str, dict[str, JSON]]:
    """Return the documents in the member ``consolidated_metadata`` of a v3 group.

    Groups in it may contain consolidated metadata again, which is included, with paths from the outermost group.
    """
    reader = Reader(report)
    nodes: dict[str, dict[str, JSON]] = {}
    _collect(reader, document, _INLINE, "", nodes)
    return nodes


def _collect(reader: Reader, document: JSON, pointer: str, path: str, nodes: dict[str, dict[str, JSON]]) -> None:
    if not isinstance(document, Mapping):
        _problem(reader, pointer, "not an object", found=document, expected="an object", spec=_V3)
        return
    kind = document.get("kind", "inline")
    if kind != "inline":
        _problem(
            reader,
            join(pointer, "kind"),
            "unknown kind of consolidated metadata",
            found=kind,
            expected='"inline"',
            spec=_V3,
        )
        return
    place = join(pointer, "metadata")
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        _problem(reader, place, "not an object", found=metadata, expected="an object", spec=_V3)
        return
    nested = []
    for name, node in metadata.items():
        full = key(path, name)
        if not is_path(full):
            leave_out(reader, join(place, name), name, _V3)
            continue
        if not isinstance(node, Mapping):
            _problem(reader, join(place, name), "the document of a node is not an object", found=node, spec=_V3)
            continue
        nodes.setdefault(full, {"zarr.json": node})
        if node.get("consolidated_metadata") is not None:
            nested.append((name, full, node["consolidated_metadata"]))
    for name, full, inner in nested:
        _collect(reader, inner, join(place, name, "consolidated_metadata"), full, nodes)


def dump_inline(nodes: Nodes) -> dict[str, JSON]:
    """Return the member ``consolidated_metadata`` of the v3 group above `nodes`."""
    metadata: dict[str, JSON] = {path: documents["zarr.json"] for path, documents in sorted(nodes.items()) if path}
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def load_zmetadata(document: JSON, report: Report = strict) -> dict[str, dict[str, JSON]]:
    """Return the documents in ``.zmetadata``; those of the group itself have the path ``""``.

    Keys that are not documents of Zarr v2 are ignored.
    """
    reader = Reader(report)
    nodes: dict[str, dict[str, JSON]] = {}
    for name, value in copies_of(reader, document, _V2).items():
        path, _, last = name.rpartition("/")
        if last in V2_DOCUMENTS and name != last and not is_path(path):
            leave_out(reader, join("/metadata", name), name, _V2)
        elif last in V2_DOCUMENTS:
            nodes.setdefault(path, {})[last] = value
    return nodes


def copies_of(reader: Reader, document: JSON, spec: str) -> Mapping[str, JSON]:
    """Return the copies in a document of format 1, by key."""
    if not isinstance(document, Mapping):
        _problem(reader, "", "not an object", found=document, expected="an object", spec=spec)
        return {}
    number: Any = document.get("zarr_consolidated_format")
    if number != 1 or isinstance(number, bool):
        message = "unknown format of consolidated metadata"
        _problem(reader, "/zarr_consolidated_format", message, found=number, expected="1", spec=spec)
    metadata = document.get("metadata")
    if isinstance(metadata, Mapping):
        return metadata
    _problem(reader, "/metadata", "not an object", found=metadata, expected="an object", spec=spec)
    return {}


def dump_zmetadata(nodes: Nodes) -> dict[str, JSON]:
    """Return ``.zmetadata`` for `nodes`, with the group itself under ``""``."""
    metadata: dict[str, JSON] = {
        key(path, name): document
        for path, documents in nodes.items()
        for name, document in sorted(documents.items())
        if name in V2_DOCUMENTS
    }
    return {"metadata": metadata, "zarr_consolidated_format": 1}


def leave_out(reader: Reader, pointer: str, name: str, spec: str) -> None:
    """Report a copy whose path is not valid for a node, such as ``..`` or an absolute path."""
    reader.problem(
        pointer,
        "a copy with a name that no node can have, which is left out",
        found=repr(name),
        expected="a path below the group",
        spec=spec,
        kind=ConsolidatedMetadataError,
        is_left_out=True,
    )


def _problem(reader: Reader, pointer: str, message: str, **fields: object) -> None:
    reader.problem(pointer, message, **fields, kind=ConsolidatedMetadataError)
