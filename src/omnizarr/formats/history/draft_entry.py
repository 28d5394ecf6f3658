"""The entry point of a hierarchy of the drafts of v3: ``zarr.json``, which gives the places of all other keys.

Entry points of the texts from June 2019 to November 2022 are read, and variants that programs wrote in between:

===================  ==========================================  ========================  =====================
draft                ``metadata_encoding``                       document of ``a``         chunk of ``a``
===================  ==========================================  ========================  =====================
until August 2020    ``"application/json"``                      ``meta/root/a.array``     ``data/a/0.0``
July 2020            ``".../spec/metadata/json/3.0"``            ``meta/root/a.array``     ``data/a/0/0``
September 2020       the URI, no ``metadata_key_suffix``         ``meta/root/a.array``     ``data/root/a/c0/0``
October 2020         the URI, and a suffix                       with the suffix           ``data/root/a/c0/0``
November 2022        an object with a suffix                     ``meta/a.array.json``     ``data/a/c0/0``
===================  ==========================================  ========================  =====================

Spec: Zarr v3 draft of 2020, "Entry point metadata", "Storage keys".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from omnizarr.formats.history.draft_extensions import read_extensions
from omnizarr.formats.keyspaces import Early, Late, Split
from omnizarr.formats.reader import Reader, join
from omnizarr.model import JSON, Report, strict

URI: Final = "https://purl.org/zarr/spec/protocol/core/3.0"

_ENTRY = 'Zarr v3 draft of 2020, "Entry point metadata"'
_JSON_2020 = "https://purl.org/zarr/spec/metadata/json/3.0"
_CORE = re.compile(r"https?://purl\.org/zarr/spec/(?:protocol/)?core/(?P<major>[0-9]+)(?:\.[0-9]+)*/?")
_FEBRUARY_2023 = re.compile(r"https?://purl\.org/zarr/spec/v3#(?P<node>array|group)")
_SUFFIX = re.compile(r"[A-Za-z0-9._-]{0,64}")


def enter(document: JSON, root: str, report: Report = strict) -> Split | None:
    """Return where the keys of a hierarchy are whose entry point ``zarr.json`` is `document`.

    None if `document` is not an entry point of a draft (in the final v3 ``zarr.json`` is the document of one node). The
    entry points of both drafts have the same form; an ``http`` URI means the draft of 2019.

    Parameters
    ----------
    document : JSON
    root : str
        Path in the store at which the entry point is.
    report : callable
        Where problems go; by default the first is raised, as a MetadataError.

    Examples
    --------
    >>> enter(entry(), "ocean").documents("ocean/a")["array"]
    'ocean/meta/root/a.array.json'
    >>> enter({"zarr_format": 3, "node_type": "group"}, "") is None
    True
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("zarr_format"), str):
        return None
    reader = Reader(report)
    found = str(document["zarr_format"])
    match = _CORE.fullmatch(found)
    if match is None:
        _explain_format(reader, found)
        return None
    if int(match["major"][:9]) != 3:
        reader.problem("/zarr_format", "another version of the protocol", found=found, expected=URI, spec=_ENTRY)
        return None
    read_extensions(reader, document.get("extensions"), "/extensions", _ENTRY)
    keyspace = _keyspace(reader, document, root)
    if keyspace is not None and found.startswith("http:"):
        return replace(keyspace, dialect="v3-draft2019")
    return keyspace


def entry() -> JSON:
    """Return the entry point of a new hierarchy."""
    return {"zarr_format": URI, "metadata_encoding": URI, "metadata_key_suffix": ".json", "extensions": []}


def _explain_format(reader: Reader, found: str) -> None:
    """Report strings that are URIs of Zarr. The drafts do not define others."""
    if match := _FEBRUARY_2023.fullmatch(found):
        reader.problem(
            "/zarr_format",
            f"the document of one {match['node']} in the draft of February 2023, which no program wrote",
            found=found,
            expected=f"3, or the entry point of a draft hierarchy, {URI}",
            spec='Zarr v3 draft of February 2023, "Array metadata"',
        )
    elif "purl.org/zarr/spec" in found:
        reader.problem("/zarr_format", "no version of Zarr known here", found=found, expected=URI, spec=_ENTRY)


def _keyspace(reader: Reader, document: Mapping[str, JSON], root: str) -> Split | None:
    pointer, encoding = "/metadata_encoding", document.get("metadata_encoding", URI)
    if "metadata_encoding" not in document:
        reader.problem(pointer, "metadata_encoding is missing", expected=URI, spec=_ENTRY)
    if isinstance(encoding, Mapping):  # November 2022
        if encoding.get("type") != "json" or "extension" in encoding:
            _refuse_encoding(reader, pointer, dict(encoding))
            return None
        suffix = _read_suffix(
            reader, encoding.get("metadata_key_suffix", ".json"), join(pointer, "metadata_key_suffix")
        )
        return Late(root, meta="meta", data="data", suffix=suffix, consolidated=None, entry=document)
    if encoding == "application/json":
        return Early(root, data="data", suffix="", glued=False, consolidated=None, entry=document)
    if encoding == _JSON_2020:  # zarrita, for a day in July 2020
        return Split(root, data="data", suffix="", glued=False, consolidated=None, entry=document)
    if not isinstance(encoding, str) or not _CORE.fullmatch(encoding):
        _refuse_encoding(reader, pointer, encoding)
        return None
    if "metadata_key_suffix" not in document:  # September 2020
        return Split(root, suffix="", consolidated=None, entry=document)
    suffix = _read_suffix(reader, document["metadata_key_suffix"], "/metadata_key_suffix")
    return Split(root, suffix=suffix, entry=document)


def _refuse_encoding(reader: Reader, pointer: str, found: object) -> None:
    reader.problem(
        pointer,
        "the documents of this hierarchy have an encoding that is not known here",
        found=found,
        expected=f"{URI} (JSON)",
        spec=_ENTRY,
    )


def _read_suffix(reader: Reader, value: JSON, pointer: str) -> str:
    if isinstance(value, str) and _SUFFIX.fullmatch(value):
        return value
    expected = "a string of the characters that keys have, without a slash"
    reader.problem(pointer, "no suffix of keys", found=value, expected=expected, spec=_ENTRY)
    return ".json"
