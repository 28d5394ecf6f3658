r"""Documents of netCDF-C that are not valid JSON, or not valid Zarr.

Up to 4.8.1 it wrote quotes within strings as ``\'`` (and apostrophes unchanged). All versions leave control
characters within strings unchanged, and write text that C parses as a number or a boolean as users typed it:
``1.``, ``.5``, ``+1``, ``00``, ``0x10``, ``TRUE``, ``inf``. In a directory they write a new document over the
old one, whose end remains if that was longer. Other errors are not corrected.

Spec: RFC 8259, sections 3, 6 and 7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from omnizarr.formats.reader import is_integer, is_object
from omnizarr.formats.spelling import Document
from omnizarr.model import JSON, Note

_NCZARR: Final = "NCZarr"

_TOKENS: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[-+.$\w]+|[^-+.$\w"]+', re.DOTALL | re.ASCII)
_TO_ESCAPE: Final = re.compile(r"\\(.)|[\x00-\x1f]", re.DOTALL)
_STRICT: Final = re.compile(r"true|false|null|NaN|-?Infinity|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_DECIMAL: Final = re.compile(r"([-+]?)0*+([0-9]*+)(\.?)([0-9]*+)((?:[eE][-+]?[0-9]++)?)")
_HEXADECIMAL: Final = re.compile(r"([-+]?)0[xX]([0-9a-fA-F]{1,16})")
_NONFINITE: Final = re.compile(r"([-+]?)(nan|inf|infinity)f?", re.IGNORECASE)


_raw_decode: Final = json.JSONDecoder(strict=False).raw_decode


class Token(str):
    """A number or boolean in the spelling of its document."""

    __slots__ = ()


def mend(text: str) -> tuple[str, tuple[Note, ...]]:
    r"""Return text with known errors of netCDF-C corrected, and notes about them; no notes if there are none.

    >>> mended, notes = mend('{"a": "say \\\'hi\\\'", "b": [1., .5, +1, 0x10, TRUE]}')
    >>> print(mended)
    {"a": "say \"hi\"", "b": [1.0, 0.5, 1, 16, true]}
    >>> len(notes)
    3
    >>> mend('{"zarr_format": 2}: 2}')[0]
    '{"zarr_format": 2}'
    """
    found: set[str] = set()
    text = _without_rest(text, found)

    def mended(match: re.Match[str]) -> str:
        token = match[0]
        if token[0] == '"':
            return _TO_ESCAPE.sub(lambda escape: _escaped(escape, found), token)
        return _atom(token, found)

    result = _without_rest(_TOKENS.sub(mended, text), found)
    return result, tuple(Note("", f"not valid JSON: {what}", "RFC 8259") for what in sorted(found))


_is_own: Final = re.compile(r"zarr_format|_nczarr_.*|_ncproperties|_array_dimensions", re.IGNORECASE).fullmatch
"""Whether a member is one that netCDF-C writes itself."""


def _without_rest(text: str, found: set[str]) -> str:
    """Return the object at the beginning of a text that is followed by the end of another document.

    netCDF-C writes its objects on one line. The rest is the end of one of its own, or of one with many lines.
    """
    try:
        value, end = _raw_decode(text)
    except (ValueError, RecursionError):
        return text
    rest = text[end:].strip()
    if not (isinstance(value, dict) and rest) or "\n" in text[:end] or rest[0] == "{" or rest[-1] != "}":
        return text
    if "\n" not in rest and not any(map(_is_own, value)):
        return text
    found.add("the end of a longer document, over which netCDF-C wrote this one, is left out")
    return text[:end]


def _escaped(match: re.Match[str], found: set[str]) -> str:
    if match[0] == "\\'":
        found.add("\\' in a string, read as the quote \" that netCDF-C 4.8 wrote so")
        return '\\"'
    if match[0][0] == "\\":
        return match[0]
    found.add("a control character in a string, kept")
    return f"\\u{ord(match[0]):04x}"


def is_strict(token: str) -> bool:
    """Whether a number or word keeps its spelling.

    >>> is_strict("1.50"), is_strict("+1")
    (True, False)
    """
    return _STRICT.fullmatch(token) is not None


def _atom(token: str, found: set[str]) -> str:
    """Return a number or word in JSON; other tokens unchanged."""
    if is_strict(token):
        return token
    decimal = _DECIMAL.fullmatch(token)
    if decimal and any(each.isdecimal() for each in token.partition("e")[0].partition("E")[0]):
        found.add("a number that begins or ends as none does in JSON, read as what it means")
        sign, whole, point, fraction, exponent = decimal.groups()
        return f"{sign.strip('+')}{whole or '0'}{point and '.'}{fraction or (point and '0')}{exponent}"
    word = None
    if token.lower() in {"true", "false"}:
        word = token.lower()
    elif hexadecimal := _HEXADECIMAL.fullmatch(token):
        word = f"{hexadecimal[1].strip('+')}{int(hexadecimal[2], 16)}"
    elif nonfinite := _NONFINITE.fullmatch(token):
        word = "NaN" if nonfinite[2].lower() == "nan" else f"{nonfinite[1].strip('+')}Infinity"
    if word is None:
        return token
    found.add("a number or truth value in words of C, read as what it means")
    return word


def tokens(text: str) -> JSON:
    """Return JSON, or what netCDF-C considers JSON, with numbers and booleans as `Token`.

    Raises
    ------
    ValueError, RecursionError
        If it is neither.

    >>> tokens('{"a": 1.50, "b": [+1, TRUE], "c": "2"}')
    {'a': '1.50', 'b': ['+1', 'TRUE'], 'c': '2'}
    """
    kept: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        word = match[0]
        if word[0] == '"':
            return _TO_ESCAPE.sub(lambda escape: _escaped(escape, set()), word)
        if word == "null" or not _STRICT.fullmatch(_atom(word, set())):
            return word
        kept.append(word)
        return str(len(kept) - 1)

    def restored(number: str) -> JSON:
        return Token(kept[int(number)])

    plain = _without_rest(_TOKENS.sub(numbered, _without_rest(text, set())), set())
    found: JSON = json.loads(plain, parse_int=restored)
    return found


def spelled(value: JSON) -> bool:
    """Return whether JSON contains a number or boolean, which may have several spellings."""
    if isinstance(value, bool | int | float):
        return True
    if isinstance(value, Mapping):
        return any(map(spelled, value.values()))
    return isinstance(value, Sequence) and not isinstance(value, str) and any(map(spelled, value))


# -- documents that are valid JSON, but not valid Zarr --------------------------------------------


def adapted(document: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return a node's document in the form of Zarr, with notes if netCDF-C wrote it differently.

    Corrected are: a digit as the fill value of char in Zarr v2; and from the two experimental writers of NCZarr
    in Zarr v3 (netcdf-c's pull request 2918, and the fork v3plug) text for the fill values of char and string,
    ``"false"`` in quotes, and consolidated metadata directly in the document of the root.

    >>> document = {"dtype": ">S1", "fill_value": 1}
    >>> dict(adapted(document)), adapted(document).notes[0].pointer
    ({'dtype': '>S1', 'fill_value': '1'}, '/fill_value')
    """
    notes: list[Note] = []
    if "dtype" in document:
        fill = document.get("fill_value")
        if document["dtype"] != ">S1" or not is_integer(fill) or not 0 < fill < 10:
            changed = document
        else:
            notes.append(
                Note("/fill_value", "not Zarr: a number, read as the digit that netCDF-C 4.10 writes so", _NCZARR)
            )
            changed = {**document, "fill_value": str(fill)}
    elif document.get("zarr_format") == 3 and "node_type" in document:
        changed = _of_v3(document, notes)
    elif "zarr_consolidated_format" in document and is_object(nodes := document.get("metadata")):
        found = {key: adapted(each) if is_object(each) else each for key, each in nodes.items()}
        changed = {**document, "metadata": found}
        notes += [note for each in found.values() if isinstance(each, Document) for note in each.notes]
    else:
        return document
    return Document(changed, notes=tuple(notes)) if notes else document


def _of_v3(document: Mapping[str, JSON], notes: list[Note]) -> Mapping[str, JSON]:
    changed = dict(document)
    if changed.get("must_understand") == "false":
        del changed["must_understand"]
        notes.append(Note("/must_understand", "not Zarr: said of a whole document, passed over", _NCZARR))
    if changed.get("kind") == "inline" and is_object(nodes := changed.get("metadata")):
        return _of_inlined(changed, nodes, notes)
    attributes = changed.get("attributes")
    mark = attributes.get("_nczarr_array") if is_object(attributes) else None
    if not is_object(mark):
        return changed
    fill = changed.get("fill_value")
    if isinstance(fill, str) and mark.get("type_alias", mark.get("nczarr_type")) in ("char", "string"):
        raw = fill.encode("utf-8", "replace")
        data_type = changed.get("data_type")
        if data_type == "uint8":
            size = 1
        else:
            match = re.fullmatch(r"r([0-9]{1,9})", data_type) if isinstance(data_type, str) else None
            size = int(match[1]) // 8 if match else 0
        if size and len(raw) <= size:
            padded = list(raw.ljust(size, b"\0"))
            changed["fill_value"] = padded if changed["data_type"] != "uint8" else padded[0]
            notes.append(Note("/fill_value", "not Zarr: text, read as its bytes", _NCZARR))
    return changed


def _of_inlined(root: dict[str, JSON], nodes: Mapping[str, JSON], notes: list[Note]) -> Mapping[str, JSON]:
    """Return the document of a root that contains the documents of all nodes, including its own, by key."""
    own = nodes.get("zarr.json")
    below: dict[str, JSON] = {}
    for key, document in nodes.items():
        path, _, name = key.rpartition("/")
        if path and name == "zarr.json" and is_object(document):
            below[path] = adapted(document)
    notes.append(Note("/metadata", "not Zarr: documents of all nodes, read as consolidated metadata", _NCZARR))
    inline: JSON = {"kind": "inline", "must_understand": False, "metadata": below}
    rest = {name: value for name, value in root.items() if name not in ("kind", "must_understand", "metadata")}
    return {**rest, **(own if is_object(own) else {}), "consolidated_metadata": inline}
