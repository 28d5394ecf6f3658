"""Data types and fill values of the drafts of v3, in the terms of the model, and back.

Both drafts take their identifiers from NumPy, with the byte order in front (``<i4``; ``bool``, ``i1`` and ``u1`` have
none), and know extension types, objects of which ``type`` is left to the extension. Those that programs wrote, and the
two that have a text (moments and durations), all have NumPy's string or descr as ``type``: it identifies the type,
regardless of the URI. An unknown extension is read as its fallback; without one it keeps its URI as its name.

Spec: Zarr v3 draft of 2019, "Data types", "Array metadata"; draft of 2020, the same; "Extension data types" of the
extension datetime-dtypes/1.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from omnizarr.errors import MetadataError, MissingDependencyError, NotRepresentableError, UnknownDataTypeError
from omnizarr.formats.documents import name_of_nonfinite
from omnizarr.formats.filters import Step
from omnizarr.formats.objects import read_objects
from omnizarr.formats.reader import Reader, is_list, problem_of
from omnizarr.model import JSON, UNDEFINED, Named, Undefined, datatypes
from omnizarr.model.datatypes import typestr
from omnizarr.model.datatypes.data_type import DataType
from omnizarr.model.datatypes.lenient_fills import as_meant
from omnizarr.model.datatypes.numeric import Bool, Complex, Float, Integer
from omnizarr.model.datatypes.registry import NAMES_OF_NUMPY, RAW
from omnizarr.model.datatypes.strings import Raw

ByteOrder: TypeAlias = Literal["<", ">"]

DATETIMES: Final = "https://purl.org/zarr/spec/protocol/extensions/datetime-dtypes/1.0"
"""The extension that defines moments and durations."""

_TIMES = re.compile(r"([<>])[Mm]8\[(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]")
"""Their identifiers: one unit, without a factor."""
_CORE = re.compile(r"bool|[iu]1|[<>][iuf][248](?<!f1)")
_COMPLEX = re.compile(r"[<>]c(8|16)")
_LOOSE = re.compile(r"\|b1|[<>|][iu]1")
_NAMES_OF_2022 = frozenset(NAMES_OF_NUMPY.values())
_TODO = "TODO:"


class Elements(NamedTuple):
    """The members of a document that describe elements."""

    data_type: Named
    byte_order: ByteOrder
    bound: DataType | None
    """None if the type is unknown: only reading chunks needs it."""
    is_core: bool = True
    """False: the type comes from an extension, which also defines the form of fill values."""
    is_fallback: bool = False
    """The type is the fallback of an unknown extension."""

    @property
    def stored(self) -> np.dtype[Any]:
        """The elements as a chain of codecs meets them, in their byte order; ``object`` for Python objects."""
        if self.bound is None:
            return np.dtype("V1")
        return self.bound.dtype if self.bound.is_fixed_size else np.dtype(object)


# Reading


def read_core_type(text: str) -> tuple[Named, ByteOrder] | None:
    """Return the type for one of the drafts' identifiers, including ``r*`` and complex types; None if there is none.

    >>> read_core_type(">u2")
    (Named(name='uint16', configuration={}, must_understand=True), '>')
    >>> read_core_type("r24")
    (Named(name='r24', configuration={}, must_understand=True), '<')
    """
    if text == "bool":
        return Named("bool"), "<"
    if _CORE.fullmatch(text) or _COMPLEX.fullmatch(text):
        return Named(NAMES_OF_NUMPY[text.lstrip("<>")]), ">" if text[0] == ">" else "<"
    return (Named(text), "<") if RAW.fullmatch(text) else None


def read_elements(
    reader: Reader,
    value: JSON,
    steps: Sequence[Step] = (),
    *,
    spec: str,
    has_complex: bool = False,
    has_names: bool = False,
) -> Elements:
    """Parse the member ``data_type``.

    Parameters
    ----------
    value : JSON
        Of the member.
    steps : sequence of Step
        The codecs, which determine the type of Python objects.
    spec : str
        Section of the specification.
    has_complex : bool
        The text defines complex types (only the text of 2019 does; for the others there is a note).
    has_names : bool
        Types may be called as in the final v3 (the drafts of November 2022 do so, others get a note).
    """
    if isinstance(value, str):
        named, order = _read_identifier(reader, value, "/data_type", spec, has_complex=has_complex, has_names=has_names)
        return _bound(reader, named, order, spec)
    if isinstance(value, Mapping):
        uri = value.get("extension")
        if not isinstance(uri, str) or not uri:
            expected = "the URI of an extension"
            found = {"found": uri} if "extension" in value else {}
            reader.problem("/data_type/extension", "an extension without a URI", **found, expected=expected, spec=spec)
            uri = ""
        if "type" not in value:
            reader.problem(
                "/data_type/type", "type is missing", expected="a value that the extension defines", spec=spec
            )
        if uri.startswith(_TODO):
            reader.note("/data_type/extension", f"{uri!r} is not a URI; zarr-python left it open", spec)
        if "fallback" in value and value["fallback"] is None:
            reader.note("/data_type/fallback", "null, read as absent", spec)
        known = _read_type(reader, value.get("type"), steps, spec)
        return known if known is not None else _read_unknown(reader, uri, value, spec)
    reader.problem(
        "/data_type", "not a data type", found=value, expected="an identifier, or the object of an extension", spec=spec
    )
    return _bound(reader, Named("uint8"), "<", spec)


def _bound(
    reader: Reader, named: Named, order: ByteOrder, spec: str, *, is_core: bool = True, is_fallback: bool = False
) -> Elements:
    try:
        bound = datatypes.bind(named, order)
    except (UnknownDataTypeError, MissingDependencyError):
        return Elements(named, order, None, is_core, is_fallback)
    except MetadataError as error:
        reader.report(problem_of(error, "/data_type", spec))
        return Elements(named, order, None, is_core, is_fallback)
    return Elements(named, order, bound, is_core, is_fallback)


def _read_identifier(
    reader: Reader, text: str, pointer: str, spec: str, *, has_complex: bool, has_names: bool
) -> tuple[Named, ByteOrder]:
    found = read_core_type(text)
    if found is not None:
        if _COMPLEX.fullmatch(text) and not has_complex:
            reader.note(pointer, f"{text!r}, a type of the draft of 2019", spec)
        return found
    if _LOOSE.fullmatch(text):
        named = Named(NAMES_OF_NUMPY[text.lstrip("<>|")])
        reader.note(pointer, f"{text!r}, read as {write_core_type(named, '<')!r}", spec)
        return named, "<"
    if text in _NAMES_OF_2022:
        if not has_names:
            reader.note(pointer, f"{text!r}, a name of later drafts, read as little-endian", spec)
        return Named(text), "<"
    reader.problem(
        pointer,
        "unknown data type",
        found=text or "an empty string",
        expected='bool, i1, u1, or byte order, kind and size as in "<f8", or r8, r16, ...',
        spec=spec,
        kind=UnknownDataTypeError,
    )
    return Named(text), "<"


def _read_type(reader: Reader, value: JSON, steps: Sequence[Step], spec: str) -> Elements | None:
    """Return ``type`` in the terms of NumPy; None if it is not one of NumPy's, or does not need an extension."""
    if not isinstance(value, str) and not (is_list(value) and value):
        return None
    if is_list(value) and len(value) == 1 and is_list(value[0]) and len(value[0]) == 2 and value[0][0] == "":
        value = value[0][1]  # NumPy's descr of a type that has no fields
    try:
        named, order = typestr.load(value, "/data_type/type")
    except (MetadataError, UnknownDataTypeError):
        return None
    if named.name == "omnizarr.object":
        named, order = read_objects(reader, steps, "/attributes/filters", spec)
    elif named.name.startswith("numpy.") and not _TIMES.fullmatch(str(value)):
        reader.note("/data_type/type", f"{value!r}, not one of the units that the extension lists", spec)
    elif named.name in _NAMES_OF_2022 and not named.name.startswith("complex"):
        return None
    return _bound(reader, named, order, spec, is_core=False)


def _read_unknown(reader: Reader, uri: str, value: Mapping[str, JSON], spec: str) -> Elements:
    fallback = value.get("fallback")
    candidates = list(fallback) if is_list(fallback) else [fallback]
    for candidate in candidates:
        found = read_core_type(candidate) if isinstance(candidate, str) else None
        if found is None and isinstance(candidate, str) and candidate in _NAMES_OF_2022:
            found = Named(candidate), "<"
        if found is not None:
            reader.note("/data_type/extension", f"{uri!r} is not known here, read as its fallback {candidate!r}", spec)
            return _bound(reader, *found, spec, is_core=False, is_fallback=True)
    if fallback is not None:
        place, expected = "/data_type/fallback", "an identifier of the text"
        reader.problem(place, "no data type to fall back on", found=fallback, expected=expected, spec=spec)
    reader.note("/data_type/extension", f"{uri!r} is not known here: chunks cannot be read", spec)
    return Elements(Named(uri or "unknown", {"type": value.get("type")}), "<", None, is_core=False)


def read_fill_value(reader: Reader, value: JSON, elements: Elements, *, spec: str) -> JSON | Undefined:
    """Return the member ``fill_value`` in the form of v3; null is `UNDEFINED`."""
    if isinstance(value, float) and not math.isfinite(value):
        reader.note("/fill_value", "a bare token that is not JSON, read as the string of the same name", spec)
        value = name_of_nonfinite(value)
    if value is None:
        return UNDEFINED
    bound = elements.bound
    if bound is None or elements.data_type.name == "omnizarr.object":
        return value
    try:
        if not elements.is_core and not elements.is_fallback:
            return typestr.fill_from_v2(value, bound)
        if isinstance(value, str) and value[:2] in ("0x", "0b") and isinstance(bound.scalars, Integer | Float | Raw):
            return _from_digits(value, bound)
        return _read_core_fill(reader, value, bound, spec)
    except MetadataError as error:
        if elements.is_fallback:
            reader.note("/fill_value", "no value of the fallback type, read as null", spec)
        else:
            reader.report(problem_of(error, "/fill_value", spec))
        return UNDEFINED


def _read_core_fill(reader: Reader, value: JSON, bound: DataType, spec: str) -> JSON:
    scalars = bound.scalars
    taken = as_meant(value, scalars)
    result = scalars.to_json(scalars.from_json(taken, "/fill_value"))
    spelled_otherwise = (
        taken is not value
        or (isinstance(scalars, Integer) and not isinstance(value, int))
        or isinstance(scalars, Raw)
        or value == "Infinity"
    )
    if spelled_otherwise:
        canonical = write_fill_value(result, bound)
        reader.note("/fill_value", f"{value!r}, read as {canonical!r}", spec)
    return result


def _from_digits(text: str, bound: DataType) -> JSON:
    """Return the value with these digits, of which the first is the most significant (for raw bytes: the first)."""
    dtype = bound.dtype
    digits, base, form = (2, 16, "0x") if text[1] == "x" else (8, 2, "0b")
    count = digits * dtype.itemsize
    allowed = "[0-9a-fA-F]" if base == 16 else "[01]"
    if not re.fullmatch(allowed + f"{{{count}}}", text[2:]):
        raise MetadataError(
            "the fill value has the wrong form",
            pointer="/fill_value",
            found=text,
            expected=f"{form} and {count} {'hexadecimal' if base == 16 else 'binary'} digits",
        )
    data = int(text[2:], base).to_bytes(dtype.itemsize, "big")
    scalar = np.frombuffer(data, dtype.newbyteorder(">"))
    if dtype.newbyteorder("<") == dtype:
        scalar = scalar.byteswap().view(dtype)
    return bound.scalars.to_json(scalar[0])


# Writing


def write_core_type(named: Named, byte_order: ByteOrder, *, has_complex: bool = False) -> str | None:
    """Return the identifier of a type, None if the drafts have none.

    >>> write_core_type(Named("float64"), ">"), write_core_type(Named("int8"), "<"), write_core_type(Named("text"), "<")
    ('>f8', 'i1', None)
    """
    if named.name == "bool":
        return "bool"
    if match := RAW.fullmatch(named.name):
        return f"r{int(match[1])}"
    if named.name == "raw_bytes" and isinstance(length := named.configuration.get("length_bytes"), int):
        return f"r{8 * length}"
    code = typestr.CODES.get(named.name)
    if code is None or (code[0] == "c" and not has_complex):
        return None
    return code if code.endswith("1") else byte_order + code


def write_data_type(named: Named, byte_order: ByteOrder, *, has_complex: bool = False) -> JSON:
    """Return the member ``data_type``; raise NotRepresentableError if the draft cannot express the type."""
    text = write_core_type(named, byte_order, has_complex=has_complex)
    if text is not None:
        return text
    if ":" in named.name and named.configuration.keys() == {"type"}:
        return {"extension": named.name, "type": named.configuration["type"]}
    if named.name in ("numpy.datetime64", "numpy.timedelta64"):
        spelled = str(typestr.dump(named, byte_order))
        if _TIMES.fullmatch(spelled):
            return {"extension": DATETIMES, "type": spelled, "fallback": f"{byte_order}i8"}
        raise NotRepresentableError(
            "no such unit", found=spelled, expected="one unit from Y to as, without a factor", remedy="write v2 or v3"
        )
    remedy = "convert it to numbers or to raw bytes, or write v2 or v3"
    if named.name.startswith("complex"):
        remedy = "split it into real and imaginary parts, or write the draft of 2019, v2 or v3"
    raise NotRepresentableError("no such data type", found=named.name, remedy=remedy)


def write_fill_value(value: JSON | Undefined, bound: DataType) -> JSON:
    """Return the member ``fill_value``; types that only an extension has are written as zarr-python did.

    Raises MetadataError if it is not a value of the type.
    """
    if isinstance(value, Undefined):
        return None
    scalars = bound.scalars
    match scalars:
        case Raw():
            data: bytes = np.asarray(bound.fill_from_json(value), bound.dtype).tobytes()
            return f"0x{data.hex()}"
        case Float():
            number = scalars.to_json(bound.fill_from_json(value))
            return "+Infinity" if number == "Infinity" else number
        case Bool() | Integer() | Complex():
            return scalars.to_json(bound.fill_from_json(value))
    return typestr.fill_to_v2(value, bound)


def describe_type(named: Named, byte_order: ByteOrder) -> str:
    """Return the name that NumPy has for a type, or else its own: for messages."""
    try:
        return str(typestr.dump(named, byte_order))
    except NotRepresentableError:
        return named.name
