"""Documents as bytes: JSON of other programs is read tolerantly, and unchanged parts keep their text.

New parts are valid JSON, except for NaN and infinities, which become the tokens of Python's `json`.

`parse` returns objects as `omnizarr.formats.spelling.Document`, which keeps its text. A dialect dumps a
`revision` of the document that was read, and `render` writes the changes into the old text
(`omnizarr.formats.jsontext`). Unchanged members keep every character, and a document within another (consolidated
metadata) keeps its tokens.

Spec: RFC 8259; Zarr v3 core, "Metadata"; Zarr v2, "Metadata".
"""

from __future__ import annotations

import json
import marshal
import math
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import numpy as np

from omnizarr.errors import MetadataError, NotJSONError
from omnizarr.formats import jsontext, scanning, splicing
from omnizarr.formats.reader import join
from omnizarr.formats.spelling import Document, same
from omnizarr.model import JSON, Note, Problem, Report, strict
from omnizarr.settings import config
from omnizarr.support.lazy import Lazy

MAX_DEPTH = 128
"""Maximum depth of objects and lists; real documents stay below 20."""

if TYPE_CHECKING:
    import decimal

    from omnizarr.formats import lenient
else:
    decimal = Lazy("decimal")
    lenient = Lazy("omnizarr.formats.lenient")

_PLAIN = frozenset({str, int, bool, type(None)})
_TEXT = frozenset({str})
_NESTED = frozenset({dict, list})
_NUMBERS = frozenset({int, float})
_INTEGERS = frozenset({int})
_NONFINITE: Mapping[str, float] = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The values of the tokens. NaN is always the same object, so that lists and objects with it are equal."""

_BREAK = re.compile(r"(?<![ \t\r])[ \t\r]*+\n[ \t\r\n]*")

_NETCDF_C = (b'">S1"', b'"_nczarr_', b'"must_understand": "false"')
"""Occurs in documents that netCDF-C may have written differently from Zarr."""

MAX_SHARED = 8 * 2**20
"""Maximum bytes of documents whose values are remembered."""

_NO_REFERENCES: Final = 2
"""The version of `marshal` in which it does not matter whether equal values are one object."""

_NOTHING = object()

MAX_INDENTED = 2**20
"""Maximum characters of a document that is indented for people."""


def parse(data: bytes | bytearray | memoryview, report: Report = strict) -> JSON:
    """Return the JSON value in `data`.

    The tokens ``NaN``, ``Infinity`` and ``-Infinity``, which old writers did not quote, become floats, and a byte
    order mark is ignored. Integers never become floats. An object becomes a `Document`, which keeps its text. If
    it deviates from JSON or Zarr only in the ways of netCDF-C, it has notes.

    Parameters
    ----------
    data : bytes-like
        UTF-8.
    report : callable
        Raises or collects a problem. None is returned if nothing could be read.

    Raises
    ------
    MetadataError
        `data` is not JSON, nests too deeply, is too large, or repeats a member name. The caller knows the store
        key and adds it: ``raise error.add(key=key)``.

    Examples
    --------
    >>> parse(b'{"fill_value": NaN, "shape": [18446744073709551615]}')
    {'fill_value': nan, 'shape': [18446744073709551615]}
    """
    most = config.get("documents.max_bytes")
    if len(data) > most:
        found = f"{len(data)} bytes"
        report(Problem("", "document is too large", found=found, expected=f"at most {most} bytes"))
        return None
    data = bytes(data)
    repeated: list[tuple[dict[str, JSON], list[str]]] = []
    if scanning.is_plain(data):
        text = data.decode()
        return _with_text(_rounded_once(_plain_decoder.decode(text), text), text)
    try:
        text = data.decode("utf-8-sig")
        document = _decode(text, repeated)
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
        # Skip this for documents with fewer brackets.
        if _brackets(text) > MAX_DEPTH and _is_too_deep(document):
            report(_too_deep())
            return None
        for built, names in repeated:
            for name in names:
                pointer = join(_find(document, built), name)
                message = f"member {name!r} occurs more than once in one object"
                report(Problem(pointer, message, spec="RFC 8259, section 4"))
        return _with_text(_adapted(document, data), text)
    return None


def _adapted(document: JSON, data: bytes) -> JSON:
    if isinstance(document, dict) and any(mark in data for mark in _NETCDF_C):
        return lenient.adapted(document)
    return document


def _with_text(value: Any, text: str) -> JSON:
    return Document(value, text, notes=notes_of(value)) if isinstance(value, dict) else value


def parse_part(text: bytes) -> JSON:
    """Return the value in a part of a text that is plain as a whole (`omnizarr.formats.scanning`)."""
    decoded = text.decode()
    value: JSON = _rounded_once(_plain_decoder.decode(decoded), decoded)
    return value


def parse_shared(data: bytes | bytearray | memoryview, report: Report = strict) -> JSON:
    """Return the same as `parse`, but the same object for the same bytes. The caller must not change it.

    Examples
    --------
    >>> parse_shared(b'{"shape": [1]}') is parse_shared(b'{"shape": [1]}')
    True
    """
    data = bytes(data)
    known = _known.get(data)
    if known is not None:
        return known
    document = parse(data, report)
    if isinstance(document, Document):
        _known.add(data, document)
    return document


def render_shared(document: object) -> bytes:
    """Return the same as `render`. `parse_shared` need not parse the result again, except in rare cases."""
    data, plain = _rendered(document)
    if isinstance(plain, Document):
        if not plain.notes:
            _add_dumped(data, plain)
    elif isinstance(plain, dict) and _adapted(plain, data) is plain:
        _add_dumped(data, plain)
    return data


def resized(document: JSON, before: Sequence[int], shape: Sequence[int]) -> bytes | None:
    r"""Return the bytes of an array's document with another ``shape``, in a tenth of the time of writing it again.

    Parameters
    ----------
    document : JSON
        The result of `parse_shared`.
    before, shape : sequence of int
        The current and the new lengths.

    Returns
    -------
    bytes or None
        None if this is not possible: `document` was not written by omnizarr, or does not have the shape `before`.

    Examples
    --------
    >>> written = render_shared(Document({"shape": [1, 4], "chunks": [2, 4]}))
    >>> resized(parse_shared(written), (1, 4), (3, 4)).decode()
    '{\n  "shape": [3, 4],\n  "chunks": [2, 4]\n}'
    """
    if not isinstance(document, Document) or not document.is_dumped or document.get("shape") != list(before):
        return None
    text = splicing.with_integers(document.text, "shape", shape)
    if text is None:
        return None
    data = text.encode()
    _add_dumped(data, {**document, "shape": list(shape)}, text)
    return data


class Template(NamedTuple):
    """The text and the members of a document that a dialect wrote, around one of its members."""

    name: str
    head: str
    tail: str
    members: Mapping[str, JSON]

    def filled(self, value: Mapping[str, JSON]) -> bytes | None:
        """Return what `render_shared` returns for the document with another value of the member; None if unsure.

        The value is an object in plain JSON types.
        """
        try:
            text = f"{self.head}{_WRITER.write(value, _SECOND)}{self.tail}"
            data = text.encode()
        except ValueError:  # half a surrogate pair, or an integer of thousands of digits
            return None
        if len(text) > MAX_INDENTED:  # it may be one that is not indented
            return None
        for mark in _NETCDF_C:
            if mark in data:
                return None
        _add_dumped(data, {**self.members, self.name: value}, text)
        return data


_SECOND: Final = "\n  "
"""What begins a line of a member of a document."""


def template(document: JSON, name: str) -> Template | None:
    """Return the template of documents that differ from one in an object that is its member; None if there is none."""
    data, plain = _rendered(document)
    if type(plain) is not dict or not isinstance(plain.get(name), dict):
        return None
    member = f'"{name}": '
    text, part = data.decode(), member + _Writer().write(plain[name], _SECOND)
    if text.count(part) != 1:
        return None
    head, _, tail = text.partition(part)
    return Template(name, head + member, tail, plain)


def _add_dumped(data: bytes, members: Mapping[str, JSON], text: str | None = None) -> None:
    """Remember a document that a dialect wrote."""
    document = Document(members, data.decode() if text is None else text)
    document.is_dumped = True
    _known.add(data, document)


def is_same(document: JSON, old: JSON) -> bool:
    """Return whether a document certainly has the same content as one that was read, in the same order.

    It costs a tenth of rendering both.

    Examples
    --------
    >>> old = parse(b'{"scale":1e2,"shape":[1]}')
    >>> is_same({"scale": 100.0, "shape": [1]}, old), is_same({"scale": 100, "shape": [1]}, old)
    (True, False)
    >>> is_same({"shape": [1], "scale": 100.0}, old)
    False
    """
    if not isinstance(old, Document) or not isinstance(document, dict) or old.said is not None or old.notes:
        return False
    try:
        return _is_identical(dict(document), dict(old))
    except ValueError:  # something that was created in memory
        return False


def _is_identical(new: Any, old: Any) -> bool:
    """Whether two plain values are the same. Raises ValueError if they are not plain."""
    if type(new) is dict and type(old) is dict:
        pairs = zip(new.values(), old.values(), strict=False)
        changed = [pair for pair in pairs if pair[0] is not pair[1]]
        return list(new) == list(old) and all(_is_identical(*pair) for pair in changed)
    return marshal.dumps(new, _NO_REFERENCES) == marshal.dumps(old, _NO_REFERENCES)


class _Known:
    """Documents by their bytes. If there are too many, all are dropped. Threads can share it."""

    def __init__(self) -> None:
        self._documents: dict[bytes, Document] = {}
        self._room = MAX_SHARED

    def get(self, data: bytes) -> Document | None:
        """Return the document for these bytes; None if it is unknown."""
        return self._documents.get(data)

    def add(self, data: bytes, document: Document) -> None:
        """Remember the document for bytes."""
        if len(data) > MAX_SHARED // 2:
            return
        self._room -= len(data)
        if self._room < 0:
            self._documents, self._room = {}, MAX_SHARED - len(data)
        self._documents[data] = document


_known: Final = _Known()


def notes_of(document: JSON) -> tuple[Note, ...]:
    """Return notes about invalid JSON in a document that `parse` returned."""
    return document.notes if isinstance(document, Document) else ()


def tokens(data: bytes | bytearray | memoryview) -> JSON:
    """Return a document that `parse` returned, with numbers and booleans in their spelling: `lenient.Token`."""
    return lenient.tokens(bytes(data).decode("utf-8-sig"))


class _RepeatedError(Exception):
    """An object has two members of one name."""


def _unrepeated(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    built = dict(pairs)
    if len(built) < len(pairs):
        raise _RepeatedError
    return built


# Creating a decoder takes as long as decoding a short document.
_decoder: Final = json.JSONDecoder(object_pairs_hook=_unrepeated, parse_constant=_NONFINITE.__getitem__)
_plain_decoder: Final = json.JSONDecoder(parse_constant=_NONFINITE.__getitem__)
value_at: Final[Callable[[str, int], tuple[JSON, int]]] = _plain_decoder.scan_once  # type: ignore[attr-defined]
"""Returns the value that begins at a place in a plain text, and where it ends, in characters."""


def _decode(text: str, repeated: list[tuple[dict[str, JSON], list[str]]]) -> JSON:
    """Return the JSON value in `text`, and add objects with repeated members, and their names, to `repeated`."""
    found: JSON = _rounded_once(_decoded(text, repeated), text)
    return found


def _rounded_once(found: Any, text: str) -> Any:
    """Change fill values so that those of types narrower than float64 are rounded once, from their text."""
    if any(map(_may_be_rounded_twice, _long_fills(text))) or (_small_float(text) and next(_long_fills(text), None)):
        _round_once(found, json.loads(text, parse_float=_Written, parse_constant=_NONFINITE.__getitem__))
    return found


# Numbers of fewer digits are not so near to the middle of two numbers of a narrower type that it matters.
_long_fills = re.compile(r'"fill_value"\s*:\s*(\[[^\]{}"]*[0-9][0-9.]{6}|[-+]?[0-9.]{7,}(?:[eE][-+]?[0-9]+)?)').finditer
_FLOAT32: Final = struct.Struct("<f")
_small_float = re.compile(r"float(?:16|8|6|4)|[<>=]f2").search
_is_narrow = re.compile(r"(?:complex_)?b?float(?:4|6|8|16|32)(?:_.*)?|complex64|[<>=]?(?:f[24]|c8)").fullmatch


def _may_be_rounded_twice(match: re.Match[str]) -> bool:
    """Return whether a fill value is no float32 yet: most that programs write are."""
    try:
        number = float(match[1])
        found: bool = _FLOAT32.unpack(_FLOAT32.pack(number))[0] != number
    except (ValueError, OverflowError):  # two numbers or none, or one that is too large
        return True
    return found


class _Written(float):
    """A number, with its text."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Remember the text."""
        made = super().__new__(cls, text)
        made.text = text
        return made


def _round_once(found: Any, written: Any) -> None:
    """Replace fill values by float64 that become the number of a narrower type that is nearest to the text."""
    if isinstance(found, list):
        for value, text in zip(found, written, strict=True):
            _round_once(value, text)
    elif isinstance(found, dict):
        for name, value in found.items():
            if name != "attributes" and not name.endswith(".zattrs"):  # which are the user's
                _round_once(value, written[name])
        named = found.get("data_type", found.get("dtype"))
        if isinstance(named, str) and _is_narrow(named) and "fill_value" in found and "shape" in found:
            fill, texts = found["fill_value"], written["fill_value"]
            if isinstance(fill, float):
                found["fill_value"] = _to_odd(texts)
            elif isinstance(fill, list):
                found["fill_value"] = list(map(_to_odd, texts))


def _to_odd(number: Any) -> Any:
    """Return the float64 beside a number whose last bit is 1; the number itself if it is a float64.

    Rounded again, it becomes what the number becomes: it lies on the same side of every middle.
    """
    if not isinstance(number, _Written):
        return number
    plain = float(number)
    if not math.isfinite(plain) or not plain:
        return plain
    exact, rounded = decimal.Decimal(number.text), decimal.Decimal(plain)  # which are compared exactly
    if exact == rounded or np.float64(plain).view(np.int64) & 1:
        return plain
    return math.nextafter(plain, math.inf if exact > rounded else -math.inf)


def _decoded(text: str, repeated: list[tuple[dict[str, JSON], list[str]]]) -> JSON:
    with suppress(_RepeatedError):
        found: JSON = _decoder.decode(text)
        return found

    def build(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
        built = dict(pairs)
        if len(built) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            repeated.append((built, [name for name, count in counts.items() if count > 1]))
        return built

    return json.loads(text, object_pairs_hook=build, parse_constant=_NONFINITE.__getitem__)  # type: ignore[no-any-return]


def _mended(text: str) -> Document | None:
    """Return the object in a text that is almost JSON; None if it is not, or violates another rule."""
    strict_text, notes = lenient.mend(text)
    if not notes:
        return None
    try:
        document = parse(strict_text.encode())
    except MetadataError:
        return None
    if not isinstance(document, Document):
        return None
    return Document(document, document.text, notes=(*notes, *document.notes))


def render(document: object) -> bytes:
    r"""Return `document` as JSON, in UTF-8.

    A `Document` is written as its text, with only the changed parts replaced. NumPy scalars and arrays become
    numbers and lists, tuples become lists. NaN and infinities become the tokens of Python's `json`: ``NaN``,
    ``Infinity`` and ``-Infinity``. In formats that require strings, `document` already has these.

    Raises
    ------
    MetadataError
        Something in `document` has no JSON form; `pointer` says where.

    Examples
    --------
    >>> render({"valid_range": (np.float32(0.5), float("inf"))}).decode()
    '{\n  "valid_range": [0.5, Infinity]\n}'

    >>> from omnizarr.formats.spelling import revision
    >>> read = parse(b'{"scale":1e2,"levels":[1,2]}')
    >>> render(revision({**read, "levels": [1, 3]}, read)).decode()
    '{"scale":1e2,"levels":[1,3]}'
    """
    return _rendered(document)[0]


def meaning(document: object) -> bytes:
    """Return what `document` means as JSON on one line, for digests: the same however a text spells it.

    >>> meaning(parse(b'{"scale": 1e2, "levels": [ 1 ]}')).decode()
    '{"scale":100.0,"levels":[1]}'
    """
    try:
        return json.dumps(document, default=to_json, separators=(",", ":")).encode()
    except (ValueError, RecursionError):  # a number of very many digits
        return render(to_json(document))


def on_one_line(document: object) -> bytes:
    r"""Return a document as `render` writes it within another one on a single line.

    Examples
    --------
    >>> on_one_line(parse(b'{"scale": 1e2,\n "levels": [1]}')).decode()
    '{"scale": 1e2,"levels": [1]}'
    """
    plain = _Conversion(keeps_texts=True).convert(document, 0, None)
    try:
        return _Writer().write(plain, None).encode()
    except UnicodeEncodeError:
        return _Writer(ensure_ascii=True).write(plain, None).encode()


def with_members(text: bytes, placeholder: tuple[str, bytes], members: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    r"""Yield a text in parts, with members of an object in the place of its only one, which is a placeholder.

    Parameters
    ----------
    text : bytes
    placeholder : tuple of str and bytes
        Its name, and its value as it is in the text, and nowhere else.
    members : iterable of (str, bytes)
        Names, and texts of values. Each has a line of its own if the placeholder has.

    Examples
    --------
    >>> parts = with_members(b'{\n "of": {\n  "x": 7\n }\n}', ("x", b"7"), [("a", b"[1]"), ("b", b"[2]")])
    >>> print(b"".join(parts).decode())
    {
     "of": {
      "a": [1],
      "b": [2]
     }
    }
    """
    before, after = text.split(placeholder[1])
    start = before.rindex(encode_basestring(placeholder[0]).encode())
    begin, colon = before[:start], before[start:].partition(b":")[2]
    margin = begin[len(begin.rstrip()) :] or b" "
    yield begin
    for number, (name, value) in enumerate(members):
        yield b"%b%b:%b%b" % (b"," + margin if number else b"", _quoted(name), colon, value)
    yield after


def _quoted(name: str) -> bytes:
    try:
        return encode_basestring(name).encode()
    except UnicodeEncodeError:
        return encode_basestring_ascii(name).encode()


def _rendered(document: object) -> tuple[bytes, JSON]:
    """Return a document as JSON, and its plain values."""
    if isinstance(document, Document) and document.text and document.said is None and not document.notes:
        return document.text.encode(), document  # as it was read
    conversion = _Conversion(keeps_texts=True)
    plain = conversion.convert(document, 0, None)
    try:
        return _Writer().root(plain, has_texts=conversion.found_texts).encode(), plain
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 cannot encode, but an escape can
        return _Writer(ensure_ascii=True).root(plain, has_texts=conversion.found_texts).encode(), plain
    except ValueError as error:  # Python converts no integer of more than 4300 digits
        raise MetadataError(f"document holds a number that cannot be written: {error}") from None


@dataclass(frozen=True, slots=True)
class _Writer:
    """Converts plain JSON to text.

    Characters beyond ASCII are not escaped, because netCDF-C does not support escapes.
    """

    ensure_ascii: bool = False

    def root(self, plain: JSON, *, has_texts: bool) -> str:
        """Return a whole document."""
        if isinstance(plain, Document) and plain.text:
            text = self._revised(plain)
            # A corrected text may not contain all parts of its document.
            if not plain.notes or same(parse(text.encode(), _ignore), plain):
                return text
            plain = dict(plain)
        text = self._dumps(plain)
        # Python indents slowly, and people do not read documents of this size
        if len(text) <= MAX_INDENTED:
            return self.write(plain, "\n")
        return self.write(plain, None) if has_texts else text

    def write(self, plain: JSON, margin: str | None) -> str:
        """Return ``json.dumps(plain, indent=2)``, in a third of the time.

        `margin` begins each further line; None: there is only one line. Lists of numbers stay on one line,
        because netCDF-C 4.8.0 cannot read a number before the end of a line.
        """
        kind = type(plain)
        if kind is str:  # the most frequent ones first
            return self._quoted(plain)  # type: ignore[arg-type]
        if kind is int:
            return repr(plain)
        if isinstance(plain, Document) and plain.text and not plain.notes:
            text = self._revised(plain).strip()
            return _BREAK.sub("", text) if margin is None else text.replace("\n", margin)
        inner = None if margin is None else f"{margin}  "
        if isinstance(plain, dict):
            members = [f"{self._quoted(name)}: {self.write(member, inner)}" for name, member in plain.items()]
            return _enclosed("{", members, "}", margin)
        if isinstance(plain, list):
            is_flat = margin is None or set(map(type, plain)) <= _NUMBERS
            if is_flat:
                return self._dumps(plain)
            parts = map(repr, plain) if _are_integers(plain) else (self.write(item, inner) for item in plain)
            return _enclosed("[", list(parts), "]", margin)
        if isinstance(plain, str):
            return self._quoted(plain)
        if plain is None:
            return "null"
        if isinstance(plain, float) and not math.isfinite(plain):
            return name_of_nonfinite(plain)
        return repr(plain).lower() if isinstance(plain, bool) else repr(plain)

    def _revised(self, document: Document) -> str:
        if document.said is None:
            return document.text
        old, new = document.said, dict(document)
        # A corrected text does not contain the corrected value.
        text = None if document.notes else splicing.spliced(jsontext.Revision(document.text, self.write), old, new)
        return jsontext.revised(document.text, old, new, self.write) if text is None else text

    def _dumps(self, plain: JSON) -> str:
        return json.dumps(plain, ensure_ascii=self.ensure_ascii)

    def _quoted(self, text: str) -> str:
        return encode_basestring_ascii(text) if self.ensure_ascii else encode_basestring(text)


_WRITER: Final = _Writer()


def _are_integers(plain: list[Any]) -> bool:
    """Return whether all items are integers or lists of them, which Python writes like JSON."""
    lists = [item for item in plain if type(item) is list]
    is_int = _INTEGERS.issuperset
    return (not lists or is_int(map(type, chain.from_iterable(lists)))) and is_int(set(map(type, plain)) - {list})


def _enclosed(opening: str, parts: list[str], closing: str, margin: str | None) -> str:
    if not parts:
        return opening + closing
    if margin is None:
        return f"{opening}{', '.join(parts)}{closing}"
    inner = f"{margin}  "
    return f"{opening}{inner}{f',{inner}'.join(parts)}{margin}{closing}"


def _ignore(_: Problem) -> None:
    """Ignore a problem."""


def to_json(value: object, pointer: str = "", *, quotes_nonfinite: bool = False) -> JSON:
    """Return `value` in plain JSON types, in the form that `render` writes.

    Parameters
    ----------
    value : object
        A value, for example one that a user set as an attribute.
    pointer : str
        JSON pointer of `value` within its document, for errors.
    quotes_nonfinite : bool
        Whether NaN and infinities, which JSON cannot express, become the strings ``"NaN"``, ``"Infinity"`` and
        ``"-Infinity"``.

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
        return _Conversion(quotes_nonfinite=quotes_nonfinite).convert(value, 0, None)
    except MetadataError as error:
        error.pointer = pointer + (error.pointer or "")
        raise


@dataclass(slots=True)
class _Conversion:
    """Converts values of users and dialects to plain JSON types. Errors have the pointer below the value."""

    quotes_nonfinite: bool = False
    keeps_texts: bool = False
    found_texts: bool = False

    def convert(self, value: Any, depth: int, known: Any) -> JSON:
        """Return `value` in plain JSON types; unchanged if it is `known`, which is plain already."""
        kind = type(value)
        if kind in _PLAIN or (value is known and self.keeps_texts):
            return value  # type: ignore[no-any-return]
        if kind is dict and depth < MAX_DEPTH:  # the most common ones first
            return self._members(value, depth + 1, known)
        if isinstance(value, np.ndarray | np.generic):
            value = _from_numpy(value)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str | int):  # of derived types: numpy.str_, IntEnum
            return str(value) if isinstance(value, str) else int(value)
        if isinstance(value, float):
            if math.isfinite(value):
                return float(value)
            name = name_of_nonfinite(value)
            return name if self.quotes_nonfinite else _NONFINITE[name]
        if depth >= MAX_DEPTH:
            raise _too_deep().error()
        if isinstance(value, Document) and self.keeps_texts:
            return self._document(value, depth + 1)
        if isinstance(value, Mapping):
            return self._members(value, depth + 1, known)
        if isinstance(value, list | tuple):
            return self._items(value, depth + 1, known)
        raise NotJSONError(
            f"a value of type {kind.__name__} has no form in JSON",
            pointer="",
            found=value,
            expected="a string, number, boolean, None, list, tuple, mapping, or NumPy array of numbers or strings",
            remedy="convert it to one of these",
        )

    def _document(self, value: Document, depth: int) -> JSON:
        self.found_texts = self.found_texts or bool(value.text)
        # `parse` has checked the depth of a whole document. Skip this for values with fewer brackets.
        if value.said is None and value.text and (depth == 1 or _brackets(value.text) <= MAX_DEPTH - depth):
            return value
        return Document(self._members(value, depth, value.said), value.text, value.said, value.notes)

    def _members(self, value: Mapping[Any, Any], depth: int, known: Any) -> dict[str, JSON]:
        if not set(map(type, value)) <= _TEXT:
            # The members of an object with names of the type `str`, and not of derived types.
            for name in value:
                if not isinstance(name, str):
                    message = "the names of an object's members are strings in JSON"
                    raise NotJSONError(message, pointer="", found=name, expected="a string")
            value = {str(name): item for name, item in value.items()}
        converted: dict[str, JSON] = dict(value)
        old: Mapping[Any, Any] = known if isinstance(known, Mapping) else {}
        for key in [key for key, item in converted.items() if type(item) not in _PLAIN]:
            item = converted[key]
            if self.keeps_texts and item is old.get(key, _NOTHING):
                continue
            try:
                converted[key] = self.convert(item, depth, old.get(key))
            except MetadataError as error:
                _place_below(key, error)
                raise
        return converted

    def _items(self, value: Sequence[Any], depth: int, known: Any) -> list[JSON]:
        converted: list[JSON] = []
        if type(value) is list and _PLAIN.issuperset(map(type, value)):
            return value.copy()
        old = known[: len(value)] if isinstance(known, list) else []
        old += [None] * (len(value) - len(old))
        for index, (item, same_item) in enumerate(zip(value, old, strict=True)):
            try:
                kind = type(item)
                if kind in _PLAIN or (item is same_item and self.keeps_texts):
                    converted.append(item)
                elif kind is list and depth < MAX_DEPTH and _PLAIN.issuperset(map(type, item)):
                    converted.append(item.copy())
                else:
                    converted.append(self.convert(item, depth, same_item))
            except MetadataError as error:
                _place_below(index, error)
                raise
        return converted


def _place_below(key: str | int, error: MetadataError) -> None:
    error.pointer = join("", key) + (error.pointer or "")


def _from_numpy(value: np.ndarray[Any, Any] | np.generic) -> object:
    """Return a NumPy value as Python objects; values that JSON cannot express are returned unchanged."""
    if value.dtype.kind in "biufUT":
        plain = value.tolist()
        # tolist returns long doubles unchanged
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
    """Return ``"NaN"``, ``"Infinity"`` or ``"-Infinity"``, the spelling in every Zarr document."""
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


def _brackets(text: str) -> int:
    return text.count("[") + text.count("{")


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
