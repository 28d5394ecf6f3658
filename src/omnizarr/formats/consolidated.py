"""Consolidated metadata: copies of many nodes' documents in one place.

The copies are passed on as documents, not as metadata, so that one broken node does not hide its siblings. In an
ordinary text, `scan_inline` and `scan_zmetadata` find them without parsing them.

Spec: Zarr v3 core, "Additional fields" (inline); for v2 a convention (``.zmetadata``, format 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from omnizarr.errors import ConsolidatedMetadataError, MetadataError
from omnizarr.formats import documents, scanning
from omnizarr.formats.contract import Nodes, Scanned
from omnizarr.formats.paths import are_paths, is_path, key
from omnizarr.formats.reader import Reader, join
from omnizarr.model import JSON, Problem, Report, strict

_INLINE = "/consolidated_metadata"
_V3 = 'Zarr v3, "Additional fields"'
_V2 = "consolidated metadata of zarr-python, format 1"
V2_DOCUMENTS: Final = (".zarray", ".zgroup", ".zattrs")
_MEMBER: Final = b'"consolidated_metadata"'


class Copy(Mapping[str, JSON]):
    """The documents of one node by name, each parsed when it is requested.

    Parameters
    ----------
    texts : dict of str to bytes
    parsed : dict of bytes to JSON
        Documents that have been parsed, by their texts. All copies in one text share it.
    """

    __slots__ = ("_parsed", "texts")

    def __init__(self, texts: dict[str, bytes], parsed: dict[bytes, JSON]) -> None:
        self.texts = texts
        self._parsed = parsed

    @property
    def size(self) -> int:
        """The length of all documents in bytes."""
        return sum(map(len, self.texts.values()))

    def __getitem__(self, name: str) -> JSON:
        text = self.texts[name]
        found = self._parsed.get(text)
        if found is None:
            found = self._parsed[text] = documents.parse_part(text)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __contains__(self, name: object) -> bool:
        return name in self.texts


class Slices(dict[str, Mapping[str, JSON]]):
    """Copies by path, found in an ordinary text: nothing is wrong with the document around them."""

    __slots__ = ()


def load_inline(document: JSON, report: Report = strict) -> dict[str, dict[str, JSON]]:
    """Return the documents in the member ``consolidated_metadata`` of a v3 group.

    Groups in it may contain consolidated metadata again, which is included, with paths from the outermost group.
    """
    reader = Reader(report)
    nodes: dict[str, dict[str, JSON]] = {}
    _collect(reader, document, _INLINE, "", nodes)
    return nodes


def _collect(reader: Reader, document: JSON, pointer: str, path: str, nodes: dict[str, Any]) -> None:
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


def scan_inline(text: bytes) -> Scanned | None:
    """Return what `load_inline` returns for the text of a group; None if it is unusual, or without copies.

    Equal copies are the same object.
    """
    found = scanning.members(text, ("consolidated_metadata", "metadata")) if _MEMBER in text else None
    if found is None or not are_paths(found.names):
        return None
    values = found.values()
    if any(value[0] != ord("{") for value in values):
        return None
    parsed: dict[bytes, JSON] = {}
    known = {value: Copy({"zarr.json": value}, parsed) for value in set(values)}
    nodes = Slices(zip(found.names, map(known.__getitem__, values), strict=True))
    if text.count(_MEMBER) > 1:
        reader = Reader(_refuse)
        try:
            for path, value in zip(found.names, values, strict=True):
                inner = documents.parse_part(value) if _MEMBER in value else None
                if isinstance(inner, Mapping) and inner.get("consolidated_metadata") is not None:
                    _collect(reader, inner["consolidated_metadata"], "", path, nodes)
        except MetadataError:
            return None
    return Scanned(nodes, found)


def _refuse(problem: Problem) -> None:
    raise problem.error()


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


def scan_zmetadata(text: bytes) -> Scanned | None:
    """Return what `load_zmetadata` returns for a text; None if it is unusual."""
    found = scanning.members(text, ("metadata",))
    if found is None:
        return None
    parsed: dict[bytes, JSON] = {}
    nodes: dict[str, Copy] = {}
    for name, value in zip(found.names, found.values(), strict=True):
        path, slash, last = name.rpartition("/")
        if last in V2_DOCUMENTS:
            if slash and not path:
                return None
            node = nodes.get(path)
            if node is None:
                node = nodes[path] = Copy({}, parsed)
            node.texts[last] = value
    if not are_paths([path for path in nodes if path]):
        return None
    return Scanned(Slices(nodes), found)


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
