"""Check documents strictly against their format: their JSON, their metadata, and mistakes of known writers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from omnizarr.errors import ConsolidatedMetadataError, OmnizarrError, UnknownExtensionError
from omnizarr.formats import documents
from omnizarr.formats.reader import is_list, join
from omnizarr.model import JSON, GroupMetadata, Metadata, Note, Problem
from omnizarr.model.datatypes import typestr
from omnizarr.tools.check import strictness
from omnizarr.tools.check.inventory import Document, Node
from omnizarr.tools.check.report import Findings

_BOM: Final = b"\xef\xbb\xbf"
_JSON: Final = "RFC 8259"
_ESCAPED: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""The escape of a half of a surrogate pair; two of them are a character."""
_HALF: Final = re.compile("[\ud800-\udfff]")


# As JSON


def check_json(findings: Findings, path: str, document: Document) -> None:
    """Report why a document is not JSON, once."""
    if document.is_read:
        return
    document.is_read = True
    for problem in document.problems:
        code = "unreadable-key" if document.is_unreadable else "not-json"
        if "not UTF-8" in problem.message:
            code = "not-utf8"
        elif "more than once" in problem.message:
            code = "repeated-member"
        _enter(findings, code, path, document.key, problem)
    if bytes(document.data[:3]) == _BOM:
        findings.add("byte-order-mark", path, "the document begins with a byte order mark", key=document.key,
                     spec=f"{_JSON}, section 8.1")  # fmt: skip
    if _ESCAPED.search(document.data):
        _report_halves(findings, path, document)
    bare: dict[str, tuple[str, float]] = {}
    counts = Counter[str]()
    for key, above, part in document.parts():
        kept = tuple(f"{pointer}/" for pointer in attributes_of(key, part, above))
        for pointer, value in _nonfinite(part, above):
            code = "nonfinite-attribute" if pointer.startswith(kept) else "bare-nan"
            bare.setdefault(code, (pointer, value))
            counts[code] += 1
    for code in ("bare-nan", "nonfinite-attribute"):
        if code in bare:
            pointer, value = bare[code]
            more = f" (and {counts[code] - 1} more)" if counts[code] > 1 else ""
            findings.add(
                code,
                path,
                f"a number that JSON has no token for{more}",
                key=document.key,
                pointer=pointer,
                found=documents.name_of_nonfinite(value),
                expected='a string: "NaN", "Infinity" or "-Infinity"' if code == "bare-nan" else None,
                spec=f"{_JSON}, section 6",
            )


def _report_halves(findings: Findings, path: str, document: Document) -> None:
    found = [each for _, above, part in document.parts() for each in _halves(part, above)]
    for pointer, value in found[:1]:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        findings.add(
            "half-surrogate",
            path,
            f"a text with half of a surrogate pair{more}",
            key=document.key,
            pointer=pointer,
            found=ascii(value),
            expected="characters of Unicode",
            spec=f"{_JSON}, section 8.2",
        )


def _halves(value: JSON, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if _HALF.search(value):
            yield pointer, value
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _halves(name, pointer)
            yield from _halves(member, join(pointer, name))
    elif is_list(value):
        for index, item in enumerate(value):
            yield from _halves(item, join(pointer, index))


def attributes_of(key: str, value: JSON, pointer: str = "") -> Iterator[str]:
    """Yield the pointers of user attributes in the document at a key, and of other members with that name."""
    if key.rpartition("/")[2] in {".zattrs", "attrs", "__zattr__", "attributes"}:
        yield pointer
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from attributes_of(name, member, join(pointer, name))


def _nonfinite(value: JSON, pointer: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield pointer, value
    elif isinstance(value, Mapping):
        for name, member in value.items():
            if isinstance(member, (float, list, dict)):
                yield from _nonfinite(member, join(pointer, name))
    elif is_list(value):
        for index, item in enumerate(value):
            if isinstance(item, (float, list, dict)):
                yield from _nonfinite(item, join(pointer, index))


# As metadata


def understand(findings: Findings, node: Node) -> None:
    """Load a node from its documents, and enter every problem and note with the key of the document concerned."""
    before = len(findings.found)
    for document in node.documents.values():
        check_json(findings, node.path, document)
    values = node.values
    if node.marker.is_broken:
        return
    problems: list[Problem] = []
    try:
        metadata = node.dialect.load(values, problems.append)
        node.metadata = None if metadata is None else node.dialect.keyspace.settle(_with_copies(node, metadata))
    except OmnizarrError as error:
        findings.add("invalid-metadata", node.path, error.message, key=node.marker.key, pointer=error.pointer or "",
                     found=error.found, expected=error.expected, remedy=error.remedy)  # fmt: skip
    of_marker = _of_marker(node, values) if problems else []
    for problem in _without_consequences(problems):
        enter_problem(findings, node, problem, of_marker)
    if node.metadata is not None:
        for note in node.metadata.notes:
            enter_note(findings, node, note)
    for name, pointer, code, message, found in _known_mistakes(node, values):
        findings.add(code, node.path, message, key=node.documents[name].key, pointer=pointer, found=found)
    known = tuple(problem.pointer for problem in problems)
    for each in strictness.departures(node, values):
        if not each.pointer.startswith(known):
            findings.add(each.code, node.path, each.message, key=node.documents[each.document].key,
                         pointer=each.pointer, found=each.found, expected=each.expected or None)  # fmt: skip
    node.is_sound = node.metadata is not None and not _has_own_error(findings, node, before)


def _with_copies(node: Node, metadata: Metadata) -> Metadata:
    """Return a node with the copies that its documents are without, if they hold some."""
    copies = node.documents.get(str(node.dialect.consolidated.document), node.marker).copies
    return replace(metadata, consolidated=copies) if isinstance(metadata, GroupMetadata) and copies else metadata


def _has_own_error(findings: Findings, node: Node, before: int) -> bool:
    """Whether the documents of a node leave the node uncertain. Additional members do not."""
    keys = {document.key for name, document in node.documents.items() if name != node.dialect.consolidated.document}
    return any(
        finding.severity == "error" and finding.key in keys and finding.code != "unknown-member"
        for finding in findings.found[before:]
    )


def _without_consequences(problems: list[Problem]) -> list[Problem]:
    """Return problems; leave out those that only follow from a missing shape, which has a problem of its own."""
    if all((problem.pointer, problem.message) != ("/shape", "shape is missing") for problem in problems):
        return problems
    return [problem for problem in problems if not problem.message.endswith("for 0 dimensions")]


def _of_marker(node: Node, values: Mapping[str, JSON]) -> list[tuple[str, str]]:
    """Return pointer and message of the problems that the document that makes the node has by itself."""
    alone = next((name for name, document in node.documents.items() if document is node.marker), "")
    problems: list[Problem] = []
    try:
        node.dialect.load({alone: values[alone]}, problems.append)
    except OmnizarrError:
        return []
    return [(problem.pointer, problem.message) for problem in problems]


def enter_problem(findings: Findings, node: Node, problem: Problem, of_marker: list[tuple[str, str]]) -> None:
    """Enter one departure of a document from its format."""
    key = node.marker.key
    if issubclass(problem.kind, ConsolidatedMetadataError):
        copies = node.documents.get(str(node.dialect.consolidated.document), node.marker)
        unknown = problem.message.startswith("unknown")
        code = "unknown-consolidated-metadata" if unknown else "broken-consolidated-metadata"
        _enter(findings, code, node.path, copies.key, problem)
        return
    code = _code_of(problem)
    if code != "array-and-group" and (problem.pointer, problem.message) not in of_marker:
        attributes = node.documents.get(str(node.dialect.attributes_document))
        key = attributes.key if attributes is not None else key
    _enter(findings, code, node.path, key, problem)


def _code_of(problem: Problem) -> str:
    if issubclass(problem.kind, UnknownExtensionError):
        return "unknown-extension"
    if "both .zarray and .zgroup" in problem.message:
        return "array-and-group"
    if "only memory may hold" in problem.message:
        return "private-extension"
    if problem.pointer == "/zarr_format":
        return "wrong-zarr-format"
    if problem.message.endswith("is missing"):
        return "missing-member"
    if problem.message.startswith("unknown member"):
        return "unknown-member"
    if problem.pointer.startswith("/fill_value"):
        return "invalid-fill-value"
    return "invalid-metadata"


def _enter(findings: Findings, code: str, path: str, key: str | None, problem: Problem) -> None:
    findings.add(
        code,
        path,
        problem.message,
        key=key,
        pointer=problem.pointer,
        found=problem.found,
        expected=problem.expected,
        remedy=problem.remedy,
        spec=problem.spec,
    )


# The codes of the readers' notes.


class _Rule(NamedTuple):
    """The codes of notes with this pointer and message, in these dialects. None: another finding reports it already."""

    code: str | None
    pointer: str
    message: str
    dialects: str = ""


_RULES: Final = tuple(
    _Rule(code, pointer, message, dialects)
    for code, pointer, message, dialects in (
        (None, "/fill_value.*", "a bare token", ""),
        ("only-consolidated", "", "there is only .zmetadata", ""),
        ("array-and-group", "", "an array and a group at one path", "v3-draft"),
        ("missing-filters", "/filters", "missing", "v2"),
        ("null-separator", "/dimension_separator", "null", "v2"),
        ("fixed-width-strings", "/dtype", "a fixed width", "v2"),
        ("objects-without-codec", ".*", "Python objects", ""),
        ("shuffle-word", ".*/shuffle", "the string '[A-Z]+'", ""),
        ("numbers-as-strings", ".*", "the string .*, read as a number", ""),
        ("zero-elementsize", ".*/elementsize", "0, read as", ""),
        ("missing-codecs", "/codecs", "missing, read as", "v3"),
        ("missing-elementsize", ".*", "no elementsize, read as", ""),
        ("codec-id", ".*/id", "the id of numcodecs", "v3"),
        ("empty-codecs", ".*", "no codecs, read as", "v3"),
        ("missing-serializer", ".*", "no array to bytes codec", "v3"),
        ("endian-codec", ".*", "'endian', the old name", "v3"),
        ("missing-endian", ".*", "no endian, read as", "v3"),
        ("transpose-letter", ".*/order", "order .*, read as a list", "v3"),
        ("missing-index-codecs", ".*/index_codecs", "missing", "v3"),
        ("null-fill-value", "/fill_value", "null", "v3"),
        ("empty-fill-value", "/fill_value", "an empty string", "v3"),
        ("fill-value-kind", "/fill_value", "(?!not Zarr).*, read as", r"v3\Z"),
        ("null-member", "/(dimension_names|storage_transformers)", "null", "v3"),
        ("zero-chunk-length", ".*", "chunk length 0", ""),
        ("attributes-missing", "", "attrs is missing", "v1"),
        ("order-not-stored", "/order", "F, but", "v1"),
        ("gzip-is-zlib", "/compression", "gzip", "v1"),
        ("integer-with-fraction", "/fill_value", r"-?[0-9.e+]+\.?[0-9]*, read as -?[0-9]+\Z", "v3-draft"),
        ("loose-fill-value", "/fill_value", "[0-9.]+, read as (True|False)", "v3-draft"),
        ("loose-fill-value", "/fill_value", "not base64", "v2"),
        ("titled-field", ".*", "a field with a (title|shape)", "v"),
        ("missing-byte-order", "/dtype.*", "no byte order", "v"),
        ("codec-uri", ".*", "a URI without a name", "v3-draft"),
        ("hidden-filters", "/attributes/filters", "filters", "v3-draft2020"),
        ("optional-extension", ".*", "extension .* is not known here; it may be ignored", "v3-draft"),
        ("unknown-extension", ".*", ".*not known here: chunks cannot be read", "v3-draft"),
        ("extra-member", ".*", "(unknown )?member .*ignored", "v3-draft"),
        ("tolerated-spelling", ".*", ".*", ""),
    )
)


def enter_note(findings: Findings, node: Node, note: Note) -> None:
    """Enter something that a reader corrected."""
    for rule in _RULES:
        if (
            re.match(rule.dialects, node.dialect.name)
            and re.fullmatch(rule.pointer, note.pointer)
            and re.match(rule.message, note.message)
        ):
            is_there = rule.code == "attributes-missing" and node.dialect.attributes_document in node.documents
            if rule.code is not None and not is_there:
                findings.add(rule.code, node.path, note.message, key=node.marker.key, pointer=note.pointer,
                             spec=note.spec)  # fmt: skip
            return


# Deviations that readers accept silently.

_ZARRAY: Final = (
    *("zarr_format", "shape", "chunks", "dtype", "compressor", "fill_value", "order", "filters"),
    "dimension_separator",
)
_ONE_BYTE = re.compile(r"[<>][biuSV]1|[<>]S[0-9]+|[<>]V[0-9]+")
_INTEGER = re.compile(r"[<>|]?[iu][1248]")
_NUMERAL = re.compile(r"-?[0-9]{1,20}")
_NO_ORDER = re.compile(r"[biuSV][0-9]+")

Mistake = tuple[str, str, str, str, object]
"""Document, JSON pointer, code, message, and what was found."""


def _known_mistakes(node: Node, values: Mapping[str, JSON]) -> Iterator[Mistake]:
    """Yield spellings that deviate from the specification, although readers accept them silently."""
    if node.dialect.name == "v2":
        yield from _mistakes_of_v2(values)
    for name in ("meta", "__zmeta__"):
        document = values.get(name)
        if isinstance(document, Mapping):
            yield from _in_dtype(name, document.get("dtype"), "/dtype")


def _mistakes_of_v2(values: Mapping[str, JSON]) -> Iterator[Mistake]:
    array = values.get(".zarray")
    if isinstance(array, Mapping):
        for member in array:
            if member not in _ZARRAY:
                yield _extra(".zarray", member)
        if array.get("filters") == []:
            yield ".zarray", "/filters", "empty-filters", "an empty list", "[]"
        fill_value, dtype = array.get("fill_value"), array.get("dtype")
        is_integer = isinstance(dtype, str) and _INTEGER.fullmatch(dtype)
        if is_integer and isinstance(fill_value, str) and _NUMERAL.fullmatch(fill_value):
            yield ".zarray", "/fill_value", "fill-value-as-string", "an integer as a string", fill_value
        yield from _in_dtype(".zarray", dtype, "/dtype")
    group = values.get(".zgroup")
    if isinstance(group, Mapping) and ".zarray" not in values:
        for member in group:
            if member != "zarr_format":
                yield _extra(".zgroup", member)


def _extra(document: str, member: str) -> Mistake:
    if member.lower().startswith("_nczarr"):
        return document, join("", member), "nczarr-members", f"member {member!r} of NCZarr", None
    return document, join("", member), "extra-member", f"member {member!r} is not defined", None


def _in_dtype(document: str, dtype: Any, pointer: str) -> Iterator[Mistake]:
    """Yield deviations in a type string, or in the type strings of the fields."""
    if is_list(dtype):
        for index, field in enumerate(dtype):
            if is_list(field) and len(field) > 1:
                yield from _in_dtype(document, field[1], join(pointer, index, 1))
    elif isinstance(dtype, str):
        if _ONE_BYTE.fullmatch(dtype):
            yield document, pointer, "byte-order-of-bytes", "a byte order where there are single bytes", dtype
        elif document == ".zarray" and _NO_ORDER.fullmatch(dtype):
            yield document, pointer, "missing-byte-order", "no byte order character", dtype
        elif dtype in typestr.BARE and not _NO_ORDER.fullmatch(dtype):
            yield document, pointer, "bare-type-name", "no type string, but the name of a type", dtype


def enter_entry_problem(findings: Findings, path: str, entry: Document, problem: Problem) -> None:
    """Report problems of the entry point of a hierarchy."""
    _enter(findings, _code_of(problem), path, entry.key, problem)
