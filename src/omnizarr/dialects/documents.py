"""Documents as bytes: JSON that others wrote is read tolerantly, ours is written strictly.

Spec: RFC 8259; Zarr v3 core, "Metadata"; Zarr v2, "Metadata".
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Any

import numpy as np

from omnizarr.dialects.reading import join
from omnizarr.errors import MetadataError, NotJSONError
from omnizarr.late import Late
from omnizarr.model import JSON, Note, Problem, Report, strict

MAX_DEPTH = 128
"""Objects and lists within each other; real documents stay below 20."""

MAX_SIZE = 512 * 2**20
"""Bytes of one document. The consolidated metadata of 100,000 arrays takes about 100 MiB."""

if TYPE_CHECKING:
    from omnizarr.dialects import lenient
else:
    lenient = Late("omnizarr.dialects.lenient")

_PLAIN = frozenset({str, int, bool, type(None)})
_NESTED = frozenset({dict, list})
_NUMBERS = frozenset({int, float})

_NETCDF_C = (b'">S1"', b'"_nczarr_', b'"must_understand": "false"')
"""What is in documents that netCDF-C may have written otherwise than Zarr has it."""

MAX_INDENTED = 2**20
"""Characters of a document that is still written for people to read."""


def parse(data: bytes | bytearray | memoryview, report: Report = strict) -> JSON:
    """Return the JSON value that `data` holds.

    The tokens ``NaN``, ``Infinity`` and ``-Infinity``, which old writers left bare, become floats, and a
    byte order mark is passed over. Integers never go through floats. An object that is no JSON, or
    not Zarr's, only in the ways of netCDF-C becomes a `lenient.Mended`, which bears notes of them.

    Parameters
    ----------
    data : bytes-like
        UTF-8.
    report : callable
        What to do with a problem: raise it, or collect it. None is returned where nothing could be read.

    Raises
    ------
    MetadataError
        `data` is no JSON, nests too deeply, is too large, or repeats a member name. The caller knows the store
        key and adds it: ``raise error.add(key=key)``.

    Examples
    --------
    >>> parse(b'{"fill_value": NaN, "shape": [18446744073709551615]}')
    {'fill_value': nan, 'shape': [18446744073709551615]}
    """
    if len(data) > MAX_SIZE:
        found = f"{len(data)} bytes"
        report(Problem("", "document is too large", found=found, expected=f"at most {MAX_SIZE} bytes"))
        return None
    data = bytes(data)
    repeated: list[tuple[dict[str, JSON], list[str]]] = []
    try:
        document = _decode(data, repeated)
    except UnicodeDecodeError as error:
        odd = data[error.start : error.start + 8]
        report(Problem("", f"document is not UTF-8 (byte {error.start})", found=odd, spec="RFC 8259, section 8.1"))
    except json.JSONDecodeError as error:
        mended = _mended(error.doc)
        if mended is not None:
            return mended
        report(_no_json(error))
    except RecursionError:
        report(_too_deep())
    except ValueError as error:  # Python converts no integer of more than 4300 digits
        report(Problem("", f"document holds a number that cannot be read: {error}", spec="RFC 8259, section 6"))
    else:
        # No need to look into what has not that many brackets.
        if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _is_too_deep(document):
            report(_too_deep())
            return None
        for built, names in repeated:
            for name in names:
                pointer = join(_find(document, built), name)
                message = f"member {name!r} occurs more than once in one object"
                report(Problem(pointer, message, spec="RFC 8259, section 4"))
        if isinstance(document, dict) and any(mark in data for mark in _NETCDF_C):
            return lenient.adapted(document)
        return document
    return None


def notes_of(document: JSON) -> tuple[Note, ...]:
    """Return notes of what was not valid JSON in a document that `parse` returned."""
    return getattr(document, "notes", ()) if type(document) is not dict else ()


def tokens(data: bytes | bytearray | memoryview) -> JSON:
    """Return a document that `parse` has read, with numbers and truth values as they are spelled: `lenient.Token`."""
    return lenient.tokens(bytes(data).decode("utf-8-sig"))


def _decode(data: bytes, repeated: list[tuple[dict[str, JSON], list[str]]]) -> JSON:
    """Return the JSON value in `data`, and put objects with repeated members, and their names, into `repeated`."""

    def build(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        built = dict(pairs)
        if len(built) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            repeated.append((built, [name for name, count in counts.items() if count > 1]))
        return built

    return json.loads(data.decode("utf-8-sig"), object_pairs_hook=build)  # type: ignore[no-any-return]


def _mended(text: str) -> lenient.Mended | None:
    """Return the object in a text that is almost JSON; None if it is not, or breaks another rule."""
    strict_text, notes = lenient.mend(text)
    if not notes:
        return None
    try:
        document = parse(strict_text.encode())
    except MetadataError:
        return None
    if not isinstance(document, dict):
        return None
    result = lenient.Mended(document)
    result.notes = (*notes, *notes_of(document))
    return result


def render(document: object) -> bytes:
    r"""Return `document` as strict JSON, in UTF-8.

    NumPy scalars and arrays become numbers and lists, tuples become lists. Floats that are not finite, for which JSON
    has no words, become the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.

    Raises
    ------
    MetadataError
        Something in `document` has no JSON form; `pointer` says where.

    Examples
    --------
    >>> render({"valid_range": (np.float32(0.5), float("inf"))}).decode()
    '{\n  "valid_range": [\n    0.5,\n    "Infinity"\n  ]\n}'
    """
    plain = to_json(document)
    try:
        return _encoded(plain, ensure_ascii=False)
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 does not have, but an escape can say
        return _encoded(plain, ensure_ascii=True)
    except ValueError as error:  # Python converts no integer of more than 4300 digits
        raise MetadataError(f"document holds a number that cannot be written: {error}") from None


def _encoded(plain: JSON, *, ensure_ascii: bool) -> bytes:
    """Return JSON as text; what is not ASCII as it is, since netCDF-C knows no escapes for it."""
    text = json.dumps(plain, allow_nan=False, ensure_ascii=ensure_ascii)
    # Python indents slowly, and nobody reads documents of this size
    if len(text) <= MAX_INDENTED:
        text = _indented(plain, "\n", encode_basestring_ascii if ensure_ascii else encode_basestring)
    return text.encode()


def _indented(plain: JSON, margin: str, quoted: Callable[[str], str]) -> str:
    """Return what ``json.dumps(plain, indent=2)`` does, in a third of the time; `margin` begins each further line.

    Lists of numbers stay on one line: netCDF-C 4.8.0 trips over a number before a line's end.
    """
    inner = margin + "  "
    if isinstance(plain, dict):
        members = [f"{quoted(name)}: {_indented(member, inner, quoted)}" for name, member in plain.items()]
        return f"{{{inner}{f',{inner}'.join(members)}{margin}}}" if members else "{}"
    if isinstance(plain, list) and set(map(type, plain)) <= _NUMBERS:
        return json.dumps(plain)
    if isinstance(plain, list):
        items = [_indented(item, inner, quoted) for item in plain]
        return f"[{inner}{f',{inner}'.join(items)}{margin}]" if items else "[]"
    if isinstance(plain, str):
        return quoted(plain)
    if plain is None:
        return "null"
    return repr(plain).lower() if isinstance(plain, bool) else repr(plain)


def to_json(value: object, pointer: str = "") -> JSON:
    """Return `value` in plain JSON types, as `render` writes it.

    Parameters
    ----------
    value : object
        What a user set as an attribute, for example.
    pointer : str
        JSON pointer of `value` within its document, for errors.

    Raises
    ------
    NotJSONError
        `value`, or something in it, has no JSON form.
    MetadataError
        It is nested too deeply.

    Examples
    --------
    >>> to_json({"levels": np.arange(3)})
    {'levels': [0, 1, 2]}
    """
    try:
        return _convert(value, 0)
    except MetadataError as error:
        error.pointer = pointer + (error.pointer or "")
        raise


def _convert(value: Any, depth: int) -> JSON:
    """Return `value` in plain JSON types; errors bear the pointer from here on."""
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[no-any-return]
    if kind is dict and depth < MAX_DEPTH:  # the usual ones first
        return _convert_members(value, depth + 1)
    if isinstance(value, np.ndarray | np.generic):
        value = _from_numpy(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | int):  # of derived types: numpy.str_, IntEnum
        return str(value) if isinstance(value, str) else int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else name_of_nonfinite(value)
    if depth >= MAX_DEPTH:
        raise _too_deep().error()
    if isinstance(value, Mapping):
        return _convert_members(value, depth + 1)
    if isinstance(value, list | tuple):
        return _convert_items(value, depth + 1)
    raise NotJSONError(
        f"a value of type {kind.__name__} has no form in JSON",
        pointer="",
        found=value,
        expected="a string, number, boolean, None, list, tuple, mapping, or NumPy array of numbers or strings",
        remedy="convert it to one of these",
    )


def _convert_members(value: Mapping[Any, Any], depth: int) -> JSON:
    converted: dict[str, JSON] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            message = "the names of an object's members are strings in JSON"
            raise NotJSONError(message, pointer="", found=key, expected="a string")
        try:
            converted[str(key)] = item if type(item) in _PLAIN else _convert(item, depth)
        except MetadataError as error:
            _place_below(key, error)
            raise
    return converted


def _convert_items(value: Sequence[Any], depth: int) -> JSON:
    converted: list[JSON] = []
    for index, item in enumerate(value):
        try:
            converted.append(item if type(item) in _PLAIN else _convert(item, depth))
        except MetadataError as error:
            _place_below(index, error)
            raise
    return converted


def _place_below(key: str | int, error: MetadataError) -> None:
    error.pointer = join("", key) + (error.pointer or "")


def _from_numpy(value: np.ndarray[Any, Any] | np.generic) -> object:
    """Return a NumPy value as Python objects; those without a form in JSON as they are."""
    if value.dtype.kind in "biufUT":
        plain = value.tolist()
        # tolist leaves long doubles as they are
        return plain if value.dtype.char != "g" else np.asarray(value, np.float64).tolist()
    if value.dtype.kind == "O":
        return value.tolist()
    raise NotJSONError(
        f"NumPy values of data type {value.dtype} have no form in JSON",
        pointer="",
        found=value,
        expected="numbers, booleans or strings",
        remedy="convert them, for example with .astype(str)" if value.dtype.kind in "mMS" else "convert them",
    )


def name_of_nonfinite(value: float) -> str:
    """Return ``"NaN"``, ``"Infinity"`` or ``"-Infinity"``, as every Zarr document spells them."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _no_json(error: json.JSONDecodeError) -> Problem:
    if not error.doc.strip():
        return Problem("", "document is empty", spec="RFC 8259")
    start = max(error.pos - 20, 0)
    return Problem(
        "",
        f"document is not valid JSON (line {error.lineno}, column {error.colno}): {error.msg}",
        found=error.doc[start : error.pos + 20],
        spec="RFC 8259",
    )


def _too_deep() -> Problem:
    return Problem("", "document nests too deeply", expected=f"at most {MAX_DEPTH} levels", spec="RFC 8259, section 9")


def _is_too_deep(document: JSON) -> bool:
    level: list[Any] = [document] if isinstance(document, dict | list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return False
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) in _NESTED
        ]
    return bool(level)


def _find(value: JSON, wanted: JSON, pointer: str = "") -> str:
    """Return the JSON pointer of one object within another ("" if it was dropped with a repeated member)."""
    if value is wanted:
        return pointer
    members: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    for key, member in members:
        if isinstance(member, dict | list):
            found = _find(member, wanted, join(pointer, key))
            if found or member is wanted:
                return found
    return ""
