"""Attributes as JSON and a recorded type, and back.

Spec: NCZarr, "Appendix C. JSON Attribute Convention", "Appendix D", "Appendix E". Where netCDF-C and the document
differ, what is written is read right by netCDF-C 4.10, and by xarray, which knows no types of attributes: text is a
string, also if it is JSON, which only layouts C, D and E store as such; and numbers of single precision are written
with the digits that make them equal as doubles, too.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from omnizarr.errors import NotRepresentableError
from omnizarr.formats import lenient
from omnizarr.formats.documents import name_of_nonfinite
from omnizarr.formats.reader import is_integer, is_list, is_object
from omnizarr.model import JSON
from omnizarr.netcdf import types
from omnizarr.netcdf.header import Attribute
from omnizarr.netcdf.types import CHAR, DOUBLE, INT, INT64, STRING, UBYTE, UINT, UINT64, NcType
from omnizarr.nodes.attributes import quotes_nonfinite

Style: TypeAlias = Literal["codes", "U1", "S1", "v3", "none"]
"""How types are recorded: numbers of netcdf.h (A), typestrs with ``<U1`` (B) or ``>S1`` (C, D) for char, names, not."""

DEFAULT_MAXSTRLEN: Final = 128
_SPEC: Final = 'NCZarr, "Appendix C"'
_LEAST_LARGE: Final = 2.0**127
"""Smaller integers are exact in every type of float."""
_EXACT: Final = 2**53
"""Integers up to this size are exact in every reader of JSON."""

_TYPESTR = re.compile(r"([<>|]?)([iufSU])([0-9]{1,9})")
_NAMES: Final[Mapping[str, NcType]] = {
    **{each.dtype.name: each for each in types.TYPES.values() if not each.is_text},
    "bool": UBYTE,
    "char": CHAR,
    "json": CHAR,
    "|J0": CHAR,
    "string": STRING,
}
_NUMBERS: Final = frozenset({int, float})
_WORDS: Final = ("NaN", "Infinity", "-Infinity")
_NONFINITE: Final[Mapping[str, float]] = {
    f"{sign}{name}{suffix}": -value if sign else value
    for sign in ("", "-")
    for name, value in {"nan": math.nan, "infinity": math.inf, "inf": math.inf}.items()
    for suffix in ("", "f")
}


# -- types ---------------------------------------------------------------------------


def type_of(recorded: object) -> NcType | None:
    """Return the type that one layout or another recorded so; None if it is none.

    >>> type_of("<i2"), type_of(">S1"), type_of("<U1"), type_of("|S1"), type_of("6"), type_of("float32")
    (short, char, char, string, double, float)
    """
    if is_integer(recorded):
        return types.BY_CODE.get(recorded)
    return _type_named(recorded) if isinstance(recorded, str) else None


def _type_named(recorded: str) -> NcType | None:
    if recorded.isdecimal() and recorded.isascii():
        return types.BY_CODE.get(int(recorded)) if len(recorded) < 3 else None
    if recorded in _NAMES:
        return _NAMES[recorded]
    match = _TYPESTR.fullmatch(recorded)
    if match is None:
        return None
    order, kind, size = match.groups()
    if kind == "U":
        return CHAR if size == "1" else STRING
    if kind == "S":
        return CHAR if (order, size) == (">", "1") else STRING
    return next((each for each in types.TYPES.values() if each.dtype.str[1:] == kind + size), None)


def is_plain(attribute: Attribute, value: JSON) -> bool:
    """Return whether an attribute is known from its value alone, so that its type need not be recorded.

    >>> is_plain(Attribute.of("m"), "m"), is_plain(Attribute.of(np.int16(2)), 2), is_plain(Attribute.of(0.5), 0.5)
    (True, False, True)
    """
    is_finite = (
        isinstance(attribute.value, str) or attribute.value.dtype.kind != "f" or np.isfinite(attribute.value).all()
    )
    return bool(is_finite) and read(value) == attribute


def recorded_type(attribute: Attribute, style: Style, maxstrlen: int = DEFAULT_MAXSTRLEN) -> str:
    """Return what a layout records as the type of an attribute.

    Raises NotRepresentableError for string where netCDF-C had none yet.
    """
    nc_type = attribute.type
    if style == "v3":
        return nc_type.name if nc_type.is_text else nc_type.dtype.name
    if nc_type is STRING and style in {"codes", "U1"}:
        raise NotRepresentableError(
            "netCDF-C before 4.9.1 cannot read NCZarr attributes of type string",
            expected="char, or a number",
            remedy="make it text, or write layout C or D",
            spec='NCZarr, "Appendix D"',
        )
    if style == "codes":
        return str(nc_type.code)
    if nc_type is CHAR:
        return "<U1" if style == "U1" else ">S1"
    if nc_type is STRING:
        longest = max((len(each.encode("utf-8", "surrogatepass")) for each in attribute.value), default=0)
        return f"|S{max(longest, maxstrlen, 1)}"
    return f"<{nc_type.dtype.kind}{nc_type.dtype.itemsize}"


# -- reading -----------------------------------------------------------------------------


def read(value: JSON, recorded: object = None, expected: NcType | None = None) -> Attribute:
    """Return what an attribute is: by its recorded type, else by the type `expected`, else by its value.

    What does not fit the type is read by its value; what netCDF has no vector for, as the text of its JSON.

    >>> read([1, 2], "<i2").value, read({"a": [1, 2.5]}).value, read(["a", "b"]).type, read([1, 2.5]).type
    (array([1, 2], dtype=int16), '{"a": [1,2.5]}', string, double)
    """
    for nc_type in (type_of(recorded), expected):
        if nc_type is not None:
            found = _of_type(value, nc_type)
            if found is not None:
                return found
    return _of_type(value, _inferred(value)) or _text(value)


def fits(value: JSON, recorded: object, found: Attribute) -> bool:
    """Return whether an attribute's value, which was read as `found`, is of its recorded type, JSON as text aside."""
    nc_type = type_of(recorded)
    return nc_type is not None and (found.type is nc_type or _is_complex(value))


def is_nonfinite(value: JSON) -> bool:
    """Return whether a value is made of words that JSON has for floats, and nothing else.

    >>> is_nonfinite("NaN"), is_nonfinite(["-Infinity", "Infinity"]), is_nonfinite("nan"), is_nonfinite([])
    (True, True, False, False)
    """
    if type(value) in _NUMBERS:
        return False
    items: Sequence[Any] = value if is_list(value) else [value]
    return bool(items) and all(isinstance(each, str) and each in _WORDS for each in items)


def depends_on_spelling(value: JSON, recorded: object, text: str | None = None) -> bool:
    """Return whether an attribute is not known from its value alone, but from how a document spells the numbers in it.

    netCDF-C stores text that looks like a number as the number, and -0.0 as the integer -0. `text` is the document, if
    it is known: without that there, no number is it.

    >>> depends_on_spelling(1.5, ">S1"), depends_on_spelling(1.5, "<f8"), depends_on_spelling([0, 1], "<f8")
    (True, False, True)
    """
    nc_type = type_of(recorded)
    if nc_type is CHAR:
        return lenient.spelled(value)
    if nc_type is None or nc_type.dtype.kind != "f" or (text is not None and "-0" not in text):
        return False
    return any(is_integer(each) and not each for each in (value if is_list(value) else [value]))


def respelled(value: JSON, tokens: JSON, recorded: object) -> JSON:
    """Return the value of an attribute whose numbers are spelled as in `tokens`, where the spelling counts.

    >>> respelled([0, 1], lenient.tokens("[-0, 1]"), "<f8"), respelled(1.5, lenient.tokens("1.50"), ">S1")
    ([-0.0, 1], '1.50')
    """
    if type_of(recorded) is CHAR:
        return tokens
    if is_list(value) and is_list(tokens) and len(value) == len(tokens):
        return [_signed(each, token) for each, token in zip(value, tokens, strict=True)]
    return _signed(value, tokens)


def _signed(item: JSON, token: JSON) -> JSON:
    is_negative_zero = item == 0 and isinstance(token, lenient.Token) and token.startswith("-")
    return -0.0 if is_negative_zero else item


def _text(value: JSON) -> Attribute:
    return Attribute(CHAR, str(value) if isinstance(value, str) else unparse(value))


def _of_type(value: JSON, nc_type: NcType) -> Attribute | None:
    """Return a value as one of a type; None if it is none."""
    if nc_type is CHAR:
        return _text(value)
    if type(value) in _NUMBERS and nc_type is not STRING:
        number = as_number(value, nc_type)
        return None if number is None else Attribute(nc_type, np.array([number], nc_type.dtype))
    if _is_complex(value):
        return None
    items: Sequence[Any] = value if is_list(value) else [value]
    if nc_type is STRING:
        strings = np.empty(len(items), object)
        strings[:] = [each if isinstance(each, str) else unparse(each) for each in items]
        return Attribute(STRING, strings)
    numbers = [as_number(each, nc_type) for each in items]
    if any(each is None for each in numbers):
        return None
    return Attribute(nc_type, np.array(numbers, nc_type.dtype))


def as_number(item: JSON, nc_type: NcType) -> Any:
    """Return a number of a type in NumPy; None if JSON has none there that fits.

    >>> as_number(-5.0, INT), as_number(1e20, INT), as_number(-1, UBYTE), as_number("NaN", DOUBLE)
    (np.int32(-5), None, None, np.float64(nan))
    """
    if nc_type.dtype.kind == "f":
        return _float(item, nc_type.dtype)
    if isinstance(item, float) and item.is_integer():
        item = int(item)
    limits = np.iinfo(nc_type.dtype)
    if isinstance(item, int) and limits.min <= item <= limits.max:
        return nc_type.dtype.type(item)
    return None


def fill_number(attribute: Attribute | None, nc_type: NcType) -> Any:
    """Return the number of a ``_FillValue`` as one of a type; None if it is none that fits.

    Programs write all kinds of things there: text, 1e20 for a short, nothing.

    >>> fill_number(Attribute.of(np.float64([-9])), INT), fill_number(Attribute.of("-9"), INT)
    (np.int32(-9), None)
    """
    if attribute is None or attribute.type.is_text or len(attribute.value) != 1:
        return None
    if attribute.type is nc_type:
        return attribute.value[0]
    return as_number(np.asarray(attribute.value)[0].item(), nc_type)


def _float(item: JSON, dtype: np.dtype[Any]) -> Any:
    if isinstance(item, str):
        item = _NONFINITE.get(item.lower(), item)
        if isinstance(item, str):
            return None
    if not isinstance(item, int | float):
        return None
    if dtype.itemsize == 8 or -_LEAST_LARGE < item < _LEAST_LARGE:  # NumPy needs no word not to warn
        try:
            return dtype.type(item)
        except OverflowError:
            return None
    try:
        with np.errstate(over="ignore"):
            number = dtype.type(item)
    except OverflowError:
        return None
    return number if np.isfinite(number) or not math.isfinite(item) else None


def _is_complex(value: JSON) -> bool:
    """Return whether netCDF has no vector for a value: it is not an atom, and no list of atoms."""
    if is_list(value):
        return any(each is None or is_list(each) or is_object(each) for each in value)
    return value is None or is_object(value)


def _inferred(value: JSON) -> NcType:
    """Return the type of a value that has none recorded: that of the first item, or a wider one that all fit.

    Spec: NCZarr, "Appendix C", "Reading an attribute"; the choice among integers is netCDF-C's.
    """
    if isinstance(value, str) or _is_complex(value) or (is_list(value) and not value):
        return CHAR
    items: Sequence[Any] = value if is_list(value) else [value]
    if all(isinstance(each, str) for each in items):
        return STRING
    if any(isinstance(each, str | float) for each in items):
        return DOUBLE if all(_float(each, DOUBLE.dtype) is not None for each in items) else CHAR
    if all(isinstance(each, bool) for each in items):
        return UBYTE
    low, high = min(items), max(items)
    for nc_type in (INT, UINT, INT64, UINT64):
        limits = np.iinfo(nc_type.dtype)
        # netCDF-C takes the largest int64 for a uint64
        if limits.min <= low and high <= limits.max - (nc_type is INT64):
            return nc_type
    return DOUBLE


# -- writing -------------------------------------------------------------------------------


def write(
    attribute: Attribute, style: Style, maxstrlen: int = DEFAULT_MAXSTRLEN, *, as_json: bool = False
) -> tuple[JSON, str | None]:
    """Return the JSON of an attribute, and what is recorded as its type (None if the layout records none).

    `as_json`: text that is a JSON object or list is stored as such. Raises NotRepresentableError.

    >>> write(Attribute.of(np.int16([1, 2])), "S1"), write(Attribute.of("42"), "S1")
    (([1, 2], '<i2'), ('42', '>S1'))
    >>> write(Attribute.of('{"a": 1}'), "v3"), write(Attribute.of('{"a": 1}'), "v3", as_json=True)
    (('{"a": 1}', 'char'), ({'a': 1}, 'json'))
    """
    if style == "codes":
        # Raise NotRepresentableError for what netCDF-C 4.8.0 reads wrong: quotes, and numbers that are not finite.
        if isinstance(attribute.value, str):
            is_wrong = '"' in attribute.value
        else:
            is_wrong = attribute.type.dtype.kind == "f" and not np.isfinite(attribute.value).all()
        if is_wrong:
            raise NotRepresentableError(
                "netCDF-C 4.8.0 cannot read the attribute",
                found=attribute.value if isinstance(attribute.value, str) else attribute.value.tolist(),
                expected="text without quotes, finite numbers",
                remedy="write another layout",
                spec=_SPEC,
            )
    recorded = None if style == "none" else recorded_type(attribute, style, maxstrlen)
    if isinstance(attribute.value, str):
        value = _json_of(attribute.value) if as_json else attribute.value
        return value, "json" if style == "v3" and not isinstance(value, str) else recorded
    if attribute.type is STRING:
        items: list[Any] = [str(each) for each in attribute.value]
    elif attribute.type.dtype.kind == "f":
        items = [_float_to_json(each) for each in attribute.value]
    else:
        items = attribute.value.tolist()
    return items[0] if len(items) == 1 else items, recorded


def _float_to_json(number: Any) -> JSON:
    is_quoted = not np.isfinite(number) and quotes_nonfinite()
    return name_of_nonfinite(float(number)) if is_quoted else float(number)


def _json_of(text: str) -> JSON:
    """Return the JSON object or list that a text is, if it comes back the same but for spaces; else the text."""
    stripped = text.strip(" \t\r\n")
    if not (stripped[:1] == "{" and stripped[-1:] == "}") and not (stripped[:1] == "[" and stripped[-1:] == "]"):
        return text
    try:
        value: JSON = json.loads(text)
        same = unparse(value, ",") == "".join(_TOKENS.findall(text)) and _is_exact(value)
    except (ValueError, RecursionError):
        return text
    return value if same else text


_TOKENS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[^" \t\r\n]+')


def _is_exact(value: JSON) -> bool:
    """Return whether there is no number in JSON that readers may get wrong."""
    if is_object(value):
        return all(map(_is_exact, value.values()))
    if is_list(value):
        return all(map(_is_exact, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) <= _EXACT


_encode: Final[Callable[[str], str]] = json.JSONEncoder(ensure_ascii=False).encode


def unparse(value: JSON, comma: str = ", ") -> str:
    """Return JSON as text, spaced as netCDF-C does; with the comma ``,`` without spaces.

    >>> unparse({"a": [1, 2.0], "b": None})
    '{"a": [1,2.0], "b": null}'
    """
    if is_object(value):
        colon = ":" if comma == "," else ": "
        return f"{{{comma.join(f'{_encode(str(name))}{colon}{unparse(each, comma)}' for name, each in value.items())}}}"
    if is_list(value):
        return f"[{','.join(unparse(each, comma) for each in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return name_of_nonfinite(value)
    if isinstance(value, lenient.Token):
        return str(value)
    return _encode(value)  # type: ignore[arg-type]
