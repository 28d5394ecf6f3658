"""The constants of CDL: numbers with their suffixes, characters, strings, names.

Facts from netCDF-C's ncgen (ncgen.l, escapes.c, cvt.c, semantics.c).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError, OmnizarrError
from omnizarr.netcdf import types
from omnizarr.netcdf.types import NcType

SPECIFICATION: Final = "NetCDF User's Guide, CDL"

STRING_PATTERN: Final = r'"(?:[^"\\]++|\\.)*+"'
CHAR_PATTERN: Final = r"'(?:[^\\]|\\[0-7]{3}|\\[xX][0-9a-fA-F]{2}|\\.)'"
COMMENT_PATTERN: Final = r"//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/"

_BLANK = re.compile(rf"(?:\s++|{COMMENT_PATTERN})*+", re.ASCII)
_LITERAL = re.compile(
    rf"""(?:\s++|{COMMENT_PATTERN})*+(?:
    (?P<comma>,)
    |(?P<string>{STRING_PATTERN})
    |(?P<hexadecimal>(?P<hexdigits>0[xX][0-9a-fA-F]++)(?P<hexsuffix>\w*+))
    |(?P<number>(?P<digits>[+-]?(?:[0-9]++(?P<point>\.[0-9]*+)?|(?P<fraction>\.[0-9]++))(?P<exponent>[eE][+-]?[0-9]++)?)
                (?P<suffix>\w*+))
    |(?P<char>{CHAR_PATTERN})
    |(?P<word>[+-]?[A-Za-z_][\w.]*+)
    |(?P<end>\Z))
    """,
    re.VERBOSE | re.ASCII,
)
_COMMENTS_OUTSIDE_TEXT = re.compile(f"{STRING_PATTERN}|{CHAR_PATTERN}|{COMMENT_PATTERN}")
_ESCAPE = re.compile(rb"\\(?:([0-7]{3})|x([0-9a-fA-F]{2})|([0-7x])|(.))", re.DOTALL)
_MEANING: Final = {
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
    b"?": b"\x7f",  # so says ncgen
}

_INTEGER_SUFFIXES: Final = {
    "": None,
    "b": types.BYTE,
    "s": types.SHORT,
    "l": types.INT,
    "ll": types.INT64,
    "u": types.UINT,
    "ub": types.UBYTE,
    "us": types.USHORT,
    "ul": types.UINT,
    "ull": types.UINT64,
    "bu": types.UBYTE,
    "su": types.USHORT,
    "lu": types.UINT,
    "llu": types.UINT64,
    "f": types.FLOAT,
    "d": types.DOUBLE,
}
_LIMITS: Final = {
    each.name: (int(np.iinfo(each.dtype).min), int(np.iinfo(each.dtype).max))
    for each in types.TYPES.values()
    if each.dtype.kind in "iu"
}
_REAL_SUFFIXES: Final = {"": types.DOUBLE, "f": types.FLOAT, "d": types.DOUBLE, "l": types.DOUBLE}
_CHARACTERS: Final = (types.CHAR, types.BYTE, types.UBYTE)
_WORDS: Final = {
    **dict.fromkeys(("NaN", "nan"), (types.DOUBLE, math.nan)),
    **dict.fromkeys(("NaNf", "nanf"), (types.FLOAT, math.nan)),
    **dict.fromkeys(("Infinity", "DoubleInf"), (types.DOUBLE, math.inf)),
    **dict.fromkeys(("Infinityf", "Inff", "FloatInf"), (types.FLOAT, math.inf)),
    "-Infinity": (types.DOUBLE, -math.inf),
    **dict.fromkeys(("-Infinityf", "-Inff"), (types.FLOAT, -math.inf)),
    **dict.fromkeys(("NIL", "nil", "Nil"), (types.STRING, None)),
    "_": (None, None),
}
# An integer without a suffix gets the first of these types that can hold it, as in ncgen.
_UNMARKED: Final = (types.INT, types.UINT)


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a document, to say where in it something is wrong."""

    text: str

    def error(
        self, message: str, start: int, end: int | None = None, kind: type[OmnizarrError] = MetadataError, **fields: Any
    ) -> OmnizarrError:
        """Return the error that begins with the line and column of `start`, and quotes what stands there."""
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        if end is None:
            end = start + len(self.text[start : start + 40].partition("\n")[0].rstrip())
        found = self.text[start:end].encode("utf-8", "backslashreplace").decode() or "the end of the text"
        return kind(f"line {line}, column {column}: {message}", **{"found": found, "spec": SPECIFICATION, **fields})


class Literal(NamedTuple):
    """A constant, with its type as written and its place in the text.

    A character has the type CHAR and is a number (0 to 255), a string the type STRING and is bytes; the fill mark
    ``_`` has no type.
    """

    type: NcType | None
    value: Any
    start: int
    end: int


def limits(nc_type: NcType) -> tuple[int, int]:
    """Return the least and the greatest of an integer type."""
    return _LIMITS[nc_type.name]


def without_comments(text: str) -> str:
    """Return the text with blanks in place of its comments, of the same length."""
    if "//" not in text and "/*" not in text:
        return text
    return _COMMENTS_OUTSIDE_TEXT.sub(lambda found: found[0] if found[0][0] != "/" else " " * len(found[0]), text)


def name(escaped: str, text: Text, start: int) -> str:
    """Return the netCDF name for an escaped one, in normal form C as netCDF-C stores it."""
    plain = unicodedata.normalize("NFC", re.sub(r"\\(.)", r"\1", escaped))
    try:
        size = len(plain.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= 256 or plain != plain.rstrip(" ") or plain in {".", ".."}:
        raise text.error(
            "not a name that netCDF allows",
            start,
            start + len(escaped),
            expected="at most 256 bytes of UTF-8, without a blank at the end",
        )
    return plain


def literals(text: Text, start: int, end: int) -> list[Literal]:
    """Return the constants of a list without braces.

    >>> [(each.type, each.value) for each in literals(Text("1, 2s, 3.5, 'a', _"), 0, 18)]
    [(int, 1), (short, 2), (double, 3.5), (char, 97), (None, None)]
    """
    found: list[Literal] = []
    wants_comma = False
    comma = at = start
    while True:
        match = _LITERAL.match(text.text, at, end)
        kind = match and match.lastgroup
        if match is None or kind is None:
            raise _no_value(text, at, end)
        if kind == "end":
            break
        if wants_comma != (kind == "comma"):
            raise _misplaced(text, match.start(kind), is_comma=kind == "comma")
        if kind == "comma":
            comma = match.start(kind)
        else:
            found.append(_literal(text, match, kind))
        wants_comma = not wants_comma
        at = match.end()
    if found and not wants_comma:
        raise text.error("a value is missing after the last comma", comma, comma + 1, expected="a value")
    return found


def _no_value(text: Text, at: int, end: int) -> OmnizarrError:
    blank = _BLANK.match(text.text, at, end)
    return text.error(
        "not a value",
        at if blank is None else blank.end(),
        expected="a number, a character, a string or _",
        remedy="text stands between double quotes, and a list of values ends with a semicolon",
    )


def _misplaced(text: Text, at: int, *, is_comma: bool) -> OmnizarrError:
    return text.error(
        "a value is missing" if is_comma else "a comma or a semicolon is missing",
        at,
        expected="a number, a character, a string or _" if is_comma else '"," or ";"',
        remedy="values are separated by commas, and a list ends with a semicolon",
    )


def _literal(text: Text, match: re.Match[str], kind: str) -> Literal:
    word, start, end = match[kind], match.start(kind), match.end()
    if kind == "string":
        return Literal(types.STRING, string(text, start, end), start, end)
    if kind == "char":
        return Literal(types.CHAR, _character(text, start, end), start, end)
    if kind == "number":
        return _number(text, match)
    if kind == "hexadecimal":
        start, end = match.start("hexdigits"), match.end()
        nc_type = _suffix(text, match, "hexsuffix", _INTEGER_SUFFIXES)
        return Literal(*_of_type(text, int(match["hexdigits"], 16), nc_type, start, end), start, end)
    if word not in _WORDS:
        raise text.error(
            "not a value",
            start,
            end,
            expected="a number, a character, a string, _, NaN, Infinity or NIL",
            remedy='text stands between double quotes: "..."; constants of an enum have no place in NCZarr',
        )
    nc_type, value = _WORDS[word]
    return Literal(nc_type, value, start, end)


def _number(text: Text, match: re.Match[str]) -> Literal:
    start, end, digits, suffix = match.start("digits"), match.end(), match["digits"], match["suffix"].lower()
    is_real = bool(match["point"] or match["fraction"] or match["exponent"])
    suffixes = _REAL_SUFFIXES if is_real else _INTEGER_SUFFIXES
    nc_type = _suffix(text, match, "suffix", suffixes)
    if is_real or suffix in {"f", "d"}:
        value = float(digits)
        if math.isinf(value):
            raise text.error("a number out of range", start, end, expected="at most 1.8e308")
        return Literal(nc_type, value, start, end)
    octal = re.fullmatch("[+-]?0[0-9]+", digits) is not None
    try:
        integer = int(digits, 8 if octal else 10)
    except ValueError:  # also of more digits than Python converts
        raise text.error(
            "not an octal number" if octal else "a number out of range",
            start,
            end,
            expected="the digits 0 to 7 after a leading zero" if octal else "at most 18446744073709551615",
        ) from None
    return Literal(*_of_type(text, integer, nc_type, start, end), start, end)


def _suffix(text: Text, match: re.Match[str], group: str, suffixes: Mapping[str, NcType | None]) -> NcType | None:
    suffix = match[group].lower()
    if suffix not in suffixes:
        raise text.error(
            "not a suffix of such a number",
            match.start(group),
            match.end(group),
            expected=", ".join(filter(None, suffixes)),
        )
    return suffixes[suffix]


def _of_type(text: Text, value: int, nc_type: NcType | None, start: int, end: int) -> tuple[NcType, int]:
    """Return the type and the value of an integer, given the type of its suffix if there is one."""
    if nc_type is None:
        nc_type = next((each for each in _UNMARKED if _holds(each, value)), types.UINT64 if value > 0 else types.INT64)
    low, high = limits(nc_type)
    if nc_type is types.INT and not low <= value <= 2 * high + 1:
        nc_type = types.INT64
    else:
        nc_type = types.UINT64 if nc_type is types.UINT and value > high else nc_type
    low, high = limits(nc_type)
    if not low <= value <= (2 * high + 1 if low < 0 else high):  # `65535s` may be -1
        raise text.error("a number out of range", start, end, expected=f"{nc_type} from {low} to {high}")
    return nc_type, value


def _holds(nc_type: NcType, value: int) -> bool:
    low, high = limits(nc_type)
    return low <= value <= high


def string(text: Text, start: int, end: int) -> bytes:
    """Return the bytes of a string constant, given with its quotes."""
    escaped = text.text[start + 1 : end - 1].encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(lambda match: _unescape(text, match, start), escaped) if b"\\" in escaped else escaped


def _unescape(text: Text, match: re.Match[bytes], start: int) -> bytes:
    octal, hexadecimal, broken, other = match.groups()
    if octal is not None and int(octal, 8) < 256:
        return bytes([int(octal, 8)])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    if other is not None:
        return _MEANING.get(other, other)
    before = match.string[: match.start()].decode("utf-8", "surrogateescape")
    raise text.error(
        "not an escape sequence",
        start + 1 + len(before),
        start + 1 + len(before) + (4 if broken is None else 2),
        expected=r"three octal digits up to \377, or x and two hexadecimal digits",
        remedy=r"a backslash itself is \\, and a byte of zero \000",
    )


def _character(text: Text, start: int, end: int) -> int:
    escaped = text.text[start + 1 : end - 1].replace("\\X", "\\x")
    if escaped == "\\0":
        return 0
    if len(escaped) == 2 and escaped[1] in "1234567x":  # no code follows
        return ord(escaped[1])
    if not escaped.isascii():
        raise text.error("not one byte", start, end, expected="a character of ASCII", remedy='write it as text: "..."')
    if len(escaped) == 1:
        return ord(escaped)
    octal = re.fullmatch(r"\\([0-7]{3})", escaped)
    if octal and int(octal[1], 8) > 255:
        raise text.error("not one byte", start, end, expected=r"at most '\377'")
    return _ESCAPE.sub(lambda match: _unescape(text, match, start), escaped.encode())[0]


def infer(text: Text, found: Sequence[Literal]) -> NcType:
    """Return the type of an attribute that was given none.

    Text makes char; any double double, else any float float; of integers the widest, of equally wide the last.
    A character is a byte.

    >>> given = Text("1b, 2us, 3s")
    >>> infer(given, literals(given, 0, 11))
    short
    """
    kinds = [types.BYTE if each.type is types.CHAR else each.type for each in found]
    for each, kind in zip(found, kinds, strict=True):
        if kind is None or ((kind is types.STRING) != (kinds[0] is types.STRING)):
            raise text.error(
                "values of an attribute that have no type in common",
                each.start,
                each.end,
                expected="all text, or all numbers",
                remedy="give the attribute a type, as in: double temperature:valid_range = 0, 40 ;",
            )
    if not kinds or kinds[0] is types.STRING:
        return types.CHAR
    for real in (types.DOUBLE, types.FLOAT):
        if real in kinds:
            return real
    if any(each.type is types.UINT64 and each.value > limits(types.INT64)[1] for each in found):
        return types.UINT64
    widest = max(each.dtype.itemsize for each in kinds if each is not None)
    return next(each for each in reversed(kinds) if each is not None and each.dtype.itemsize == widest)


def text_of(text: Text, found: Sequence[Literal], fill: bytes = b"\0") -> bytes:
    """Return the bytes of a char attribute: all constants, one after the other."""
    return b"".join(characters(text, each, fill) for each in found)


def characters(text: Text, literal: Literal, fill: bytes) -> bytes:
    """Return the bytes that a constant gives where characters are wanted."""
    if literal.type is None:
        return fill
    if literal.value is not None and literal.type is types.STRING:
        return bytes(literal.value)
    if literal.type in _CHARACTERS:
        return bytes([literal.value & 0xFF])
    raise text.error("not text", literal.start, literal.end, expected="a string or a character")


def values(text: Text, found: Sequence[Literal], nc_type: NcType, fill: Any) -> NDArray[Any]:
    """Return constants as values of a type other than char.

    An integer becomes any number that it fits, and else, as ``65535s`` in a short, the one with the same bits in the
    type of its suffix. A number with decimals in an integer type loses them, and numbers become text; what does not
    fit is an error.

    >>> given = Text("1.9, -2b, _")
    >>> values(given, literals(given, 0, 11), types.SHORT, -1)
    array([ 1, -2, -1], dtype=int16)
    """
    convert = _as_string if nc_type is types.STRING else _as_real if nc_type.dtype.kind == "f" else _as_integer
    items = [fill if each.type is None else convert(text, each, nc_type) for each in found]
    result = np.empty(len(found), nc_type.dtype)
    with np.errstate(over="ignore"):
        result[:] = items if nc_type is types.STRING else np.array(items, nc_type.dtype)
    if nc_type is types.FLOAT:
        _check_finite(text, found, result)
    return result


def _as_string(text: Text, literal: Literal, nc_type: NcType) -> str:
    value = literal.value
    if literal.type is types.CHAR:
        value = bytes([value])
    if value is None:
        return ""  # netCDF has a pointer to nothing there, which Zarr has not
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _as_real(text: Text, literal: Literal, nc_type: NcType) -> float:
    if literal.type is types.STRING:
        raise text.error(
            "text where a number is wanted",
            literal.start,
            literal.end,
            expected=f"a value of type {nc_type}",
            remedy="leave out the quotes, or declare the type char or string",
        )
    value: float = literal.value
    return value


def _as_integer(text: Text, literal: Literal, nc_type: NcType) -> int:
    number = _as_real(text, literal, nc_type)
    value = int(number) if math.isfinite(number) else None
    if value is not None and not _holds(nc_type, value):
        # bytes had no sign once, and characters have none
        value = with_sign(value, types.BYTE if nc_type is types.BYTE and value < 256 else literal.type)
    if value is None or not _holds(nc_type, value):
        low, high = limits(nc_type)
        raise text.error(
            "a number out of range",
            literal.start,
            literal.end,
            expected=f"{nc_type} from {low} to {high}",
            remedy="declare a wider type, or correct the number",
        )
    return value


def with_sign(value: int, suffix: NcType | None) -> int:
    """Return what the bits of a number mean, if the type of its suffix is a signed one.

    >>> with_sign(65535, types.SHORT), with_sign(65535, types.INT)
    (-1, 65535)
    """
    if suffix is None or suffix.dtype.kind != "i" or value <= limits(suffix)[1]:
        return value
    return value - (1 << 8 * suffix.dtype.itemsize)


def _check_finite(text: Text, found: Sequence[Literal], result: NDArray[Any]) -> None:
    for index in np.flatnonzero(np.isinf(result)):
        each = found[int(index)]
        if each.type is not None and math.isfinite(each.value):
            raise text.error(
                "a number out of range", each.start, each.end, expected="at most 3.4e38", remedy="declare it double"
            )
