"""Consolidated metadata: copies of many nodes' documents in one place.

The copies are passed on as documents, not as metadata, so that one broken node does not hide its siblings. In an
ordinary text, `scan_inline` and `scan_zmetadata` find them without parsing them.

Spec: Zarr v3 core, "Additional fields" (inline); for v2 a convention (``.zmetadata``, format 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final

from omnizarr.errors import ConsolidatedMetadataError, MetadataError
from omnizarr.formats import documents, scanning
from omnizarr.formats.contract import Nodes, Scanned
from omnizarr.formats.paths import are_paths, is_path, key
from omnizarr.formats.reader import Reader, join
from omnizarr.formats.scanning import Members
from omnizarr.model import JSON, Problem, Report, strict
from omnizarr.support.memo import Memo

_INLINE = "/consolidated_metadata"
_V3 = 'Zarr v3, "Additional fields"'
_V2 = "consolidated metadata of zarr-python, format 1"
V2_DOCUMENTS: Final = (".zarray", ".zgroup", ".zattrs")
_MEMBER: Final = b'"consolidated_metadata"'
_BRACE: Final = ord("{")
_MAX_REMEMBERED: Final = 4096
"""Bytes of a document whose content is remembered."""
_parsed: Final[Memo[JSON]] = Memo(exact=True)
"""What documents say, by their texts."""


class Copy(Mapping[str, JSON]):
    """The documents of one node by name, each parsed when it is requested.

    Equal documents give the same object, unless many others are requested in between.

    Parameters
    ----------
    texts : dict of str to bytes
    """

    __slots__ = ("texts",)

    def __init__(self, texts: dict[str, bytes]) -> None:
        self.texts = texts

    @property
    def size(self) -> int:
        """The length of all documents in bytes."""
        return sum(map(len, self.texts.values()))

    def __getitem__(self, name: str) -> JSON:
        text = self.texts[name]
        if len(text) > _MAX_REMEMBERED:
            return documents.parse_part(text)
        return _parsed.get(text, partial(documents.parse_part, text))

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __contains__(self, name: object) -> bool:
        return name in self.texts


class Slices(Mapping[str, Mapping[str, JSON]]):
    """Copies by path, found in an ordinary text: nothing is wrong with the document around them.

    They are made when they are asked for: of each, only its path and its place in the text are kept.

    Parameters
    ----------
    members : Members
        All documents in the text.
    places : mapping of str to int or tuple of int
        The numbers of the documents of each node among them. One number: it has the one document `document`.
    document : str
    others : mapping, optional
        Further copies, within those.
    """

    __slots__ = ("_document", "_others", "_places", "members")

    def __init__(
        self,
        members: Members,
        places: Mapping[str, int] | Mapping[str, tuple[int, ...]],
        document: str = "",
        others: Mapping[str, Mapping[str, JSON]] | None = None,
    ) -> None:
        self.members = members
        self._places = places
        self._document = document
        self._others = others or {}

    def __getitem__(self, path: str) -> Mapping[str, JSON]:
        numbers = self._places.get(path)
        if numbers is None:
            return self._others[path]
        members = self.members
        if isinstance(numbers, int):
            return Copy({self._document: members.value(numbers)})
        return Copy({members.names[number].rpartition("/")[2]: members.value(number) for number in numbers})

    def names(self, path: str) -> AbstractSet[str]:
        """Return the names of the documents of a node, which costs less than asking for them."""
        numbers = self._places.get(path)
        if numbers is None:
            return self._others[path].keys()
        if isinstance(numbers, int):
            return {self._document}
        return {self.members.names[number].rpartition("/")[2] for number in numbers}

    def __contains__(self, path: object) -> bool:
        return path in self._places or path in self._others

    def __iter__(self) -> Iterator[str]:
        yield from self._places
        yield from self._others

    def __len__(self) -> int:
        return len(self._places) + len(self._others)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, ({path: dict(node) for path, node in self.items()},)


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
    """Return what `load_inline` returns for the text of a group; None if it is unusual, or without copies."""
    found = scanning.members(text, ("consolidated_metadata", "metadata")) if _MEMBER in text else None
    if found is None or not are_paths(found.names):
        return None
    begins = found.bounds[2::4]
    if any(text[begin] != _BRACE for begin in begins):
        return None
    others: dict[str, dict[str, JSON]] = {}
    places = dict(zip(found.names, range(len(found.names)), strict=True))
    if text.count(_MEMBER) > 1:
        reader = Reader(_refuse)
        try:
            for number, path in enumerate(found.names):
                if text.find(_MEMBER, begins[number], found.bounds[4 * number + 3]) < 0:
                    continue
                inner = documents.parse_part(found.value(number))
                if isinstance(inner, Mapping) and inner.get("consolidated_metadata") is not None:
                    _collect(reader, inner["consolidated_metadata"], "", path, others)
        except MetadataError:
            return None
        others = {path: node for path, node in others.items() if path not in places}
    return Scanned(Slices(found, places, "zarr.json", others), found)


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
    places: dict[str, tuple[int, ...]] = {}
    for number, name in enumerate(found.names):
        path, slash, last = name.rpartition("/")
        if last in V2_DOCUMENTS:
            if slash and not path:
                return None
            places[path] = (*places.get(path, ()), number)
    if not are_paths([path for path in places if path]):
        return None
    return Scanned(Slices(found, places), found)


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
