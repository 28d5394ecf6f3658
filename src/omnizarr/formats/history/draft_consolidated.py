"""Consolidated metadata of hierarchies in the 2020 draft of v3: a convention of zarr-python, not part of any text.

The document is at ``meta/root/consolidated/.zmetadata`` and holds the documents of all nodes by their store keys,
relative to the root of the hierarchy, together with the entry point. The copies are handed on unread, so that one
broken node does not hide its siblings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnizarr.formats.consolidated import copies_of, leave_out
from omnizarr.formats.contract import Nodes
from omnizarr.formats.paths import is_path
from omnizarr.formats.reader import Reader, join
from omnizarr.model import JSON, Report, strict

DOCUMENT: Final = ".zmetadata"

_ENTRY = "zarr.json"
_ROOT = "meta/root"
_SUFFIX = ".json"
_SPEC = "consolidated metadata of zarr-python 2.12 to 2.18, format 1"


def load_consolidated(document: JSON, report: Report = strict) -> dict[str, dict[str, JSON]]:
    """Return path -> ``"array"`` or ``"group"`` -> document; the root's are under ``""``.

    Keys that are not documents of nodes, and the entry point, are ignored.

    >>> load_consolidated({"zarr_consolidated_format": 1, "metadata": {"meta/root/a/b.group.json": {"attributes": {}}}})
    {'a/b': {'group': {'attributes': {}}}}
    """
    reader = Reader(report)
    metadata = copies_of(reader, document, _SPEC)
    suffix = _suffix_of(metadata.get(_ENTRY))
    nodes: dict[str, dict[str, JSON]] = {}
    for key, value in metadata.items():
        node = _node_of(key, suffix)
        if node is not None:
            path, kind = node
            if path and not is_path(path):
                leave_out(reader, join("/metadata", key), key, _SPEC)
                continue
            nodes.setdefault(path, {})[kind] = value
    return nodes


def dump_consolidated(nodes: Nodes, entry: JSON = None) -> dict[str, JSON]:
    """Return the document for `nodes`, the root itself under ``""``; with the entry point, if it is given."""
    suffix = _suffix_of(entry)
    metadata: dict[str, JSON] = {} if entry is None else {_ENTRY: entry}
    for path, documents in nodes.items():
        for kind, document in documents.items():
            if kind in ("array", "group"):
                metadata[f"{_ROOT}{'/' if path else ''}{path}.{kind}{suffix}"] = document
    return {"metadata": metadata, "zarr_consolidated_format": 1}


def _suffix_of(entry: JSON) -> str:
    suffix = entry.get("metadata_key_suffix") if isinstance(entry, Mapping) else None
    return suffix if isinstance(suffix, str) else _SUFFIX


def _node_of(key: str, suffix: str) -> tuple[str, str] | None:
    """Return path and kind of the node with this key; None if it is not a key of a document."""
    for kind in ("array", "group"):
        ending = f".{kind}{suffix}"
        if key == _ROOT + ending:
            return "", kind
        path = key.removeprefix(f"{_ROOT}/").removesuffix(ending)
        if key.startswith(f"{_ROOT}/") and key.endswith(ending) and path:
            return path, kind
    return None
