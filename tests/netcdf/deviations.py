"""What netCDF-C itself does wrong, by release: one example each, and how to keep clear of it.

Nothing here is omnizarr's. Each example is tried with netCDF-C alone: written and read by the same release, it must
come to the recorded end, so that the day a release does better is noticed. Datasets made to compare omnizarr with a
release leave out just what is listed for the direction: what it writes wrong, or what it reads wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np

from omnizarr.netcdf import Attribute, types
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, VariableHeader
from tests.netcdf.generated import Allowed, Made, completed, fill_of

Side = Literal["writing", "reading", "both", "neither"]
Dimensions = Mapping[str, DimensionHeader]
NEWEST, OLD = "4.10.1", "4.9.0"


class Deviation(NamedTuple):
    """One thing that a release does wrong.

    Attributes
    ----------
    what : str
        The name of the test.
    releases : tuple of str
    side : {"writing", "reading", "both", "neither"}
        At which step; what is written wrong cannot be read right by anybody. "neither": only netCDF-C does not
        understand what it writes so; omnizarr does.
    example : Made
    outcome : str
        How the attempt ends: how the message begins if there is one, else what is seen.
    attribute, variable : callable
        Whether it meets an attribute, a variable.
    adapted : callable
        The variable as it does not meet it, given all data.
    stored : mapping of str to str, optional
        Objects to be read, where the release cannot write its example.
    """

    what: str
    releases: tuple[str, ...]
    side: Side
    example: Made
    outcome: str
    attribute: Callable[[Attribute], bool] = lambda _: False
    variable: Callable[[VariableHeader, Dimensions], bool] = lambda _, __: False
    adapted: Callable[[VariableHeader, np.ndarray], VariableHeader] = lambda variable, _: variable
    stored: Mapping[str, str] | None = None


def with_attribute(value: object) -> Made:
    return completed(GroupHeader(attributes={"a": Attribute.of(value)}), {})


def with_variable(
    nc_type: types.NcType,
    values: Any,
    attributes: Mapping[str, object] | None = None,
    unlimited: bool = False,
    **special: object,
) -> Made:
    array = np.array(values, nc_type.dtype)
    header = VariableHeader(
        name="v",
        type=nc_type,
        dimensions=("/x",) * array.ndim,
        attributes={name: Attribute.of(each) for name, each in (attributes or {}).items()},
        special={f"_{name}": Attribute.of(each) for name, each in special.items()},
    )
    dimensions = {"x": DimensionHeader("x", len(array), unlimited)} if array.ndim else {}
    return completed(GroupHeader(dimensions=dimensions, variables={"v": header}), {"/v": array})


def strings(*items: str) -> Attribute:
    return Attribute.of(list(items))


# Text that the parser for JSON within netCDF-C takes for something else

_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$+-.")
_BLANK = bytes(range(0x21)) + bytes(range(0x80, 0x100))  # its char is signed: what is not ASCII is below a space


def _text(attribute: Attribute) -> str | None:
    return attribute.value if isinstance(attribute.value, str) else None


def is_empty_text(attribute: Attribute) -> bool:
    return _text(attribute) == ""


def loses_ends(attribute: Attribute) -> bool:
    """Whether the text is one word between blanks, or only blanks with a DEL among them."""
    text = _text(attribute)
    if text is None:
        return False
    raw = text.encode("utf-8", "surrogateescape")
    core = raw.rstrip(_BLANK).lstrip(_BLANK + b"\x7f")
    if not core:
        return b"\x7f" in raw
    return core != raw and set(core) <= _WORD


def is_reformatted(attribute: Attribute) -> bool:
    """Whether the text begins and ends as JSON does, or is an escape, and would be written in another way."""
    text = _text(attribute)
    if text is None:
        return False
    core = text.encode("utf-8", "surrogateescape").rstrip(_BLANK).lstrip(_BLANK + b"\x7f")
    ends = {b"{": b"}", b"[": b"]", b'"': b'"'}.get(core[:1], b"")
    if not core.startswith(b"\\") and (not ends or not core.endswith(ends)):
        return False
    return text not in {"{}", "[]", "[1,2]", '{"a": [1,2]}', '["a","b"]'}


def is_reformatted_json(attribute: Attribute) -> bool:
    """Whether the text is JSON, and not as it would be written: without blanks, a string without quotes."""
    text = _text(attribute)
    if text is None:
        return False
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError:
        return False
    return isinstance(value, str) or json.dumps(value, separators=(",", ": ")) != text


def is_atom(attribute: Attribute) -> bool:
    """Whether the text is a number or a truth value, as netCDF-C sees it."""
    text = _text(attribute)
    if not text or not set(text.encode("utf-8", "surrogateescape")) <= _WORD:
        return False
    if text.lower() in {"true", "false", "nan", "nanf", "inf", "inff", "infinity", "infinityf"}:
        return True
    try:
        float.fromhex(text) if "x" in text.lower() else float(text)
    except ValueError:
        return text.lower() in {"-inf", "-inff", "-infinity", "-infinityf"}
    return "_" not in text


def is_json(attribute: Attribute) -> bool:
    try:
        json.loads(_text(attribute) or "", parse_constant=_refuse)
    except ValueError:
        return False
    return True


def _refuse(word: str) -> None:
    raise ValueError(word)


def needs_escape(attribute: Attribute) -> bool:
    """Whether a control character is in the text for which JSON has no letter."""
    value = attribute.value
    text = value if isinstance(value, str) else "".join(value) if attribute.type is types.STRING else ""
    return any(each < " " and each not in "\b\f\n\r\t" for each in text)


# Numbers


def six_digits(values: np.ndarray) -> np.ndarray:
    """Return floating-point numbers as netCDF-C writes them in JSON."""
    return np.array([f"{each:g}" for each in values], values.dtype)


def has_more_digits(attribute: Attribute) -> bool:
    value = attribute.value
    if isinstance(value, str) or value.dtype.kind != "f":
        return False
    return not np.array_equal(value, six_digits(value), equal_nan=True)


def has_no_numbers(attribute: Attribute) -> bool:
    value = attribute.value
    return not isinstance(value, str) and value.dtype.kind == "f" and not np.isfinite(value).all()


def has_negative_zero(attribute: Attribute) -> bool:
    value = attribute.value
    return not isinstance(value, str) and value.dtype.kind == "f" and bool(np.any((value == 0) & np.signbit(value)))


def little(variable: VariableHeader) -> VariableHeader:
    if "_Endianness" not in variable.special:
        return variable
    return replace(variable, special={name: each for name, each in variable.special.items() if name != "_Endianness"})


def little_if_filled(variable: VariableHeader, data: np.ndarray) -> VariableHeader:
    """Return a variable in which no chunk can be missing whose fill value would be swapped."""
    fill = fill_of(variable)
    missing = (data == fill) | ((data != data) & (fill != fill))  # noqa: PLR0124
    return little(variable) if missing.any() else variable


def has_digit_for_fill(variable: VariableHeader, _: Dimensions) -> bool:
    fill = variable.attributes.get("_FillValue")
    return variable.type is types.CHAR and fill is not None and (is_json(fill) or str(fill.value) in "+-")


def _has(name: str, value: str | None = None) -> Callable[[VariableHeader, Dimensions], bool]:
    def found(variable: VariableHeader, dimensions: Dimensions) -> bool:
        return name in variable.special and value in (None, str(variable.special[name].value).split(",")[0])

    return found


def unwritten(**special: object) -> Made:
    """Return a variable of which nothing is written, beside one that makes its dimension longer."""
    return _shorter([], **special)


def begun(**special: object) -> Made:
    """Return a variable of which one element is written, beside one that makes its dimension longer."""
    return _shorter([1], **special)


def _shorter(values: list[int], **special: object) -> Made:
    length = VariableHeader(name="length", type=types.BYTE, dimensions=("/x",))
    extent = len(values) + 1
    short = VariableHeader(
        name="v",
        type=types.SHORT,
        dimensions=("/x",),
        special={f"_{name}": Attribute.of(each) for name, each in special.items()},
    )
    root = GroupHeader(dimensions={"x": DimensionHeader("x", extent, True)}, variables={"length": length, "v": short})
    return completed(root, {"/length": np.zeros(extent, "i1"), "/v": np.array(values, "i2")})


def stored_attribute(value: str, dtype: str) -> dict[str, str]:
    """Return the objects of a dataset of layout D that has one attribute."""
    return {
        ".zgroup": '{"zarr_format": 2}',
        ".zattrs": (
            f'{{"a": {value}, "_nczarr_superblock": {{"version": "2.0.0"}}, '
            '"_nczarr_group": {"dimensions": {}, "arrays": [], "groups": []}, '
            f'"_nczarr_attr": {{"types": {{"a": "{dtype}", "_nczarr_superblock": "|J0"}}}}}}'
        ),
    }


_BOTH = (NEWEST, OLD)

KNOWN_DEVIATIONS = [
    Deviation(
        "empty text cannot be written",
        (NEWEST,),
        "writing",
        with_attribute(""),
        "nc_enddef",
        is_empty_text,
    ),
    Deviation(
        "empty text ends the program",
        (OLD,),
        "writing",
        with_attribute(""),
        "write: SIGSEGV",
        is_empty_text,
    ),
    Deviation(
        "empty text is read as a NUL",
        (NEWEST,),
        "reading",
        with_attribute(""),
        r"char '\x00'",
        is_empty_text,
        stored=stored_attribute('""', ">S1"),
    ),
    Deviation(
        "a word that is not ASCII loses its ends", (NEWEST,), "writing", with_attribute("°C"), "char 'C'", loses_ends
    ),
    Deviation(
        "a word loses the blanks around it", (NEWEST,), "writing", with_attribute(" K\n"), "char 'K'", loses_ends
    ),
    Deviation("a DEL makes text disappear", (NEWEST,), "writing", with_attribute("\x7f"), "nothing", loses_ends),
    Deviation(
        "text in quotes loses them",
        (NEWEST,),
        "writing",
        with_attribute('"q"'),
        "char 'q'",
        is_reformatted,
    ),
    Deviation(
        "text loses a backslash at its beginning",
        (NEWEST,),
        "writing",
        with_attribute("\\a"),
        "char 'a'",
        is_reformatted,
    ),
    Deviation(
        "JSON is formatted again, as it is specified",
        _BOTH,
        "both",
        with_attribute('{"a": [1, 2]}'),
        """char '{"a": [1,2]}'""",
        is_reformatted_json,
    ),
    Deviation(
        "text that is a number is cut to one character", (NEWEST,), "reading", with_attribute("42"), "char '4'", is_atom
    ),
    Deviation(
        "text that is a truth value becomes a digit", (NEWEST,), "reading", with_attribute("true"), "char '1'", is_atom
    ),
    Deviation(
        "a fill value of char that is a digit is written as a number",
        _BOTH,
        "neither",
        with_variable(types.CHAR, [b"a"], {"_FillValue": "1"}),
        "char [b'a']",
        variable=has_digit_for_fill,
    ),
    Deviation(
        "escapes by number are not understood",
        _BOTH,
        "reading",
        with_attribute("\x07"),
        "char 'u0007'",
        needs_escape,
        stored=stored_attribute(r'"\u0007"', ">S1"),
    ),
    Deviation(
        "control characters are written without escapes",
        _BOTH,
        "neither",
        with_attribute("a \x07 b"),
        r"char 'a \x07 b'",
        needs_escape,
    ),
    Deviation(
        "numbers and words that JSON does not have are written",
        _BOTH,
        "neither",
        with_attribute("+1"),
        "char '",
        lambda attribute: is_atom(attribute) and not is_json(attribute),
    ),
    Deviation(
        "a list of numbers that are none ends the program",
        (OLD,),
        "reading",
        with_attribute([np.nan, np.inf]),
        "read: SIGABRT",
        lambda attribute: len(attribute.value) > 1 and has_no_numbers(attribute),
        stored={
            ".zgroup": '{"zarr_format": 2, "_NCZARR_SUPERBLOCK": {"version": "2.0.0"}, '
            '"_NCZARR_GROUP": {"dims": {}, "vars": [], "groups": []}}',
            ".zattrs": '{"a": ["NaN", "Infinity"], "_NCZARR_ATTR": {"types": {"a": "<f8"}}}',
        },
    ),
    Deviation(
        "big-endian values are read as little-endian ones",
        (OLD,),
        "reading",
        with_variable(types.SHORT, [1], Endianness="big"),
        "short [256]",
        adapted=lambda variable, _: little(variable),
        stored={
            ".zgroup": '{"zarr_format": 2, "_NCZARR_SUPERBLOCK": {"version": "2.0.0"}, '
            '"_NCZARR_GROUP": {"dims": {"x": 1}, "vars": ["v"], "groups": []}}',
            "v/.zarray": '{"zarr_format": 2, "shape": [1], '
            '"dtype": ">i2", "chunks": [1], "fill_value": 0, '
            '"order": "C", "compressor": null, "filters": null, '
            '"_NCZARR_ARRAY": {"dimrefs": ["/x"], "storage": "chunked"}}',
            "v/0": "\0\1",
        },
    ),
    Deviation(
        "numbers are written with six digits",
        _BOTH,
        "writing",
        with_attribute(123456789.0),
        "double [1.23457e+08]",
        has_more_digits,
    ),
    Deviation(
        "zero loses its sign, being written as an integer",
        _BOTH,
        "neither",
        with_attribute(-0.0),
        "double [0.]",
        has_negative_zero,
    ),
    Deviation(
        "a chunk that blosc cannot make smaller cannot be written",
        (NEWEST,),
        "writing",
        with_variable(types.BYTE, [1, 2, 3], Filter="32001,0,0,0,0,5,1,0"),
        "nc_close",
        variable=lambda variable, dimensions: (
            _has("_Filter", "32001")(variable, dimensions) and variable.type is not types.STRING
        ),
    ),
    Deviation(
        "fill values of missing chunks are swapped",
        (NEWEST,),
        "reading",
        unwritten(Endianness="big"),
        "short [384]",
        adapted=little_if_filled,
    ),
    Deviation(
        "fill values of chunks that are written in part are swapped",
        (NEWEST,),
        "writing",
        begun(Endianness="big", ChunkSizes=np.int32([2])),
        "short [  1 384]",
        adapted=little_if_filled,
    ),
    Deviation(
        "strings have no attributes",
        (OLD,),
        "writing",
        with_attribute(["a"]),
        "nc_enddef: NetCDF: NCZarr error",
        attribute=lambda attribute: attribute.type is types.STRING,
    ),
    Deviation(
        "variables of strings end the program",
        (OLD,),
        "writing",
        with_variable(types.STRING, ["a"]),
        "write: SIGABRT",
        variable=lambda variable, _: variable.type is types.STRING,
    ),
    Deviation(
        "dimensions cannot be unlimited",
        (OLD,),
        "writing",
        with_variable(types.INT, [1], unlimited=True),
        "nc_def_dim",
    ),
    Deviation(
        "shuffle cannot be written",
        (OLD,),
        "writing",
        with_variable(types.INT, [1], Shuffle="true"),
        "nc_close",
        variable=_has("_Shuffle"),
    ),
    Deviation(
        "blosc cannot be written",
        (OLD,),
        "writing",
        with_variable(types.INT, [1] * 99, Filter="32001,0,0,0,0,5,1,0"),
        "nc_close",
        variable=_has("_Filter", "32001"),
    ),
    Deviation(
        "a scalar that it wrote ends the program",
        (OLD,),
        "reading",
        with_variable(types.INT, 1),
        "read: SIGABRT",
        variable=lambda variable, _: not variable.dimensions,
    ),
]


def allowed(release: str, side: Side) -> Allowed:
    """Return what datasets may have that a release is to write, or to read."""
    listed = [each for each in KNOWN_DEVIATIONS if release in each.releases]
    if side == "writing":
        listed = [each for each in listed if each.side in {"writing", "both"}]
    impossible = {"numbers": six_digits} if side == "writing" else {}
    if side == "reading":
        # What an old release cannot have at all, it cannot read either.
        listed = [each for each in listed if each.side in {"reading", "both"} or release == OLD]
    return Allowed(
        attribute=lambda attribute: not any(each.attribute(attribute) for each in listed),
        variable=lambda variable, dimensions: not any(each.variable(variable, dimensions) for each in listed),
        unlimited=release != OLD,
        adapted=lambda variable, data: reduce(lambda found, each: each.adapted(found, data), listed, variable),
        **impossible,
    )


# The specification has text that is JSON stored as the JSON: of that, blanks and the spelling of numbers are lost.
WITHOUT_JSON = Allowed(attribute=lambda attribute: not is_reformatted_json(attribute))
