"""All cases, and the levels that they are in."""

from __future__ import annotations

import functools

from zarr_conformance.case import Case
from zarr_conformance.cases import recorded, registered, served, sharding, v2, v3, writing, wrong

MODULES = (v2, v3, sharding, registered, wrong, writing, served)

LEVELS: dict[str, str] = {
    "v2-core": "layout, keys, order, missing chunks, selections",
    "v2-types": "data types of NumPy, structured ones among them",
    "v2-codecs": "compressors and filters of numcodecs",
    "v2-fills": "fill values in each spelling",
    "v2-strings": "strings and bytes of any length",
    "v2-groups": "hierarchies, names, attributes",
    "v2-consolidated": "`.zmetadata`",
    "v3-core": "layout, documents, missing chunks",
    "v3-selections": "parts of arrays",
    "v3-types": "core data types",
    "v3-fills": "fill values in each spelling",
    "v3-keys": "chunk key encodings",
    "v3-codecs": "codecs of the specification but shards",
    "v3-sharding": "shards",
    "v3-groups": "hierarchies and attributes",
    "v3-implicit-groups": "prefixes without a document",
    "v3-names": "names of nodes",
    "v3-consolidated": "consolidated metadata in the document of a group",
    "v3-strings": "registered: strings and bytes",
    "v3-registered-types": "registered: small numbers, dates",
    "v3-structs": "registered: records",
    "v3-registered-codecs": "registered: zstd, packbits, reshape, scale_offset, cast_value, bitround, conditional",
    "v3-grids": "registered: the rectilinear grid",
    "v3-n5": "registered: blocks of N5",
    "v3-numcodecs": "not registered: codecs under numcodecs.*",
    "refuse-v2-documents": "documents that must be refused",
    "refuse-v2-chunks": "chunks that must be refused",
    "refuse-v3-documents": "documents that must be refused",
    "refuse-v3-chunks": "chunks and shards that must be refused",
    "survive": "hostile data: values or an error, but no crash, no endless work, no boundless memory",
    "write-v2": "arrays that the implementation writes",
    "write-v3": "arrays that the implementation writes",
    "http": "stores behind a web server: ranges, 404, 403, no listing",
    "strict": "forbidden by the text, but understood by some readers",
}

RECORDED = recorded.LEVELS
"""Levels of data that other programs wrote; they run only when they are asked for, `corpus` for all of them."""

OPTIONAL = frozenset({"http", "strict", "v3-n5", "v3-numcodecs"})
"""Levels that run only when they are asked for."""


@functools.cache
def all_cases() -> tuple[Case, ...]:
    """Return all cases, in the order of the levels."""
    cases = [case for module in MODULES for case in module.cases()]
    return tuple(sorted(cases, key=lambda case: list(LEVELS).index(case.level)))


def usual() -> list[Case]:
    """Return the cases of all levels that are not optional."""
    return [case for case in all_cases() if case.level not in OPTIONAL]
