"""Data types and fill values in the form of Zarr v2 and v1: typestr, descr, base64.

A typestr is a byte order, a kind and a size (``"<f8"``, ``"|S3"``, ``"<M8[10s]"``), as defined by NumPy's array
interface. A descr is a list of fields ``[name, type]`` or ``[name, type, shape]``. Translating them needs neither
NumPy nor any extra package.

Spec: Zarr v2, "Data type encoding" and "Fill value encoding".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from omnizarr.errors import MetadataError, NotRepresentableError, UnknownDataTypeError
from omnizarr.model import JSON, UNDEFINED, Named, Undefined
from omnizarr.model.datatypes.data_type import FILL_VALUE, ByteOrder, DataType, bytes_of, bytes_to_base64
from omnizarr.model.datatypes.infer import FIXED, TIMES, join_fields
from omnizarr.model.datatypes.lenient_fills import as_meant
from omnizarr.model.datatypes.numeric import Bool, Complex, Float, Integer
from omnizarr.model.datatypes.registry import NAMES_OF_NUMPY, RAW, SMALL_FLOATS, SMALL_INTEGERS
from omnizarr.model.datatypes.strings import UTF32_BYTES, Raw
from omnizarr.model.datatypes.structs import DEEPEST, ITEMS, LARGEST, LIST, Struct, named_from_json, named_to_json
from omnizarr.model.datatypes.times import KINDS, LARGEST_SCALE, UNITS

SPEC = 'Zarr v2, "Data type encoding"'

TYPESTR = re.compile(r"([<>|]?)([a-zA-Z])([0-9]{0,10})(?:\[([0-9]{0,10})([a-zμµ]{1,7}|[A-Z])\])?")

BARE = {*SMALL_FLOATS, *SMALL_INTEGERS}
"""Names that TensorStore writes instead of a typestr, because NumPy has none for them."""

CODES = {
    **{name: code for code, name in NAMES_OF_NUMPY.items()},
    "complex_float32": "c8",
    "complex_float64": "c16",
}
LENGTHS = {"raw_bytes": ("V", 1), "null_terminated_bytes": ("S", 1), "fixed_length_utf32": ("U", UTF32_BYTES)}
"""Kind, and bytes per unit of its size."""

VARIABLE = {
    "string",
    "variable_length_utf8",
    "bytes",
    "variable_length_bytes",
    "omnizarr.object",
    "omnizarr.vlen_array",
}
"""Python objects; the first filter determines their kind."""


def load(document: JSON, pointer: str = "/dtype") -> tuple[Named, ByteOrder]:
    """Return the data type that the ``dtype`` of a v2 or v1 document describes.

    Parameters
    ----------
    document : JSON
        A typestr or a descr. One-byte types may have any byte order or none; TensorStore's bare names
        (``"bfloat16"``) are known. ``"|O"`` gives ``omnizarr.object``, whose filters determine what it is. A
        field without a name is called ``f0``, ``f1``, ... by its position, as in NumPy.
    pointer : str
        JSON pointer of `document`, for errors.

    Returns
    -------
    named : Named
    byte_order : {"<", ">"}
        ``"<"`` if the type has none, and if the fields of a record differ (other fields then state their own).

    Raises
    ------
    MetadataError
        If `document` is malformed.
    UnknownDataTypeError
        If it is well formed, but the type is unknown.

    Examples
    --------
    >>> load(">i4")
    (Named(name='int32', configuration={}, must_understand=True), '>')
    """
    named, order = _load(document, pointer, 0)
    return named, order or "<"


def dump(named: Named, byte_order: ByteOrder = "<") -> JSON:
    """Return the ``dtype`` of a v2 document: NumPy's ``dtype.str`` or ``dtype.descr``.

    Raises
    ------
    NotRepresentableError
        If v2 cannot express the type.

    Examples
    --------
    >>> from omnizarr.model import Named
    >>> dump(Named("fixed_length_utf32", {"length_bytes": 12}), ">")
    '>U3'
    """
    name, configuration = named.name, named.configuration
    if name in CODES:
        code = CODES[name]
        return f"{'|' if code.endswith('1') else byte_order}{code}"
    if name in BARE:
        return name
    if name in VARIABLE:
        return "|O"
    if name in KINDS:
        return f"{byte_order}{KINDS[name]}{_unit_text(configuration)}"
    if name in ("struct", "structured"):
        return [_dump_field(field, byte_order) for field in _sequence(configuration.get("fields"))]
    if name == LIST:  # a record of one field, as in memory
        return [_dump_field({"name": ITEMS, "data_type": named_to_json(named)}, byte_order)]
    if match := RAW.fullmatch(name):
        return f"|V{int(match[1]) // 8}"
    if name in LENGTHS and isinstance(length := configuration.get("length_bytes"), int):
        code, unit = LENGTHS[name]
        return f"{byte_order if code == 'U' else '|'}{code}{length // unit}"
    raise NotRepresentableError(
        "Zarr v2 cannot express the data type", pointer="/data_type", found=name, remedy="write Zarr v3", spec=SPEC
    )


def fill_from_v2(value: JSON, data_type: DataType) -> JSON | Undefined:
    """Return the v3 JSON form of the ``fill_value`` of a v2 document; null is `UNDEFINED`.

    In addition to the specified forms, it accepts what programs wrote: 0 or ``""`` for the zero of any kind of
    bytes, text or records, one-element lists (netCDF-C 4.8.0), and the forms of `as_meant`.

    Raises
    ------
    MetadataError
        If it is not a value of the type; the pointer starts at ``/fill_value``.
    """
    if value is None:
        return UNDEFINED
    scalars = data_type.scalars
    if isinstance(scalars, Bool | Integer | Float) and isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    value = as_meant(value, scalars)
    if isinstance(scalars, Struct) and isinstance(value, str) and value:
        return scalars.to_json(scalars.from_base64(value, scalars.dtype, FILL_VALUE))
    return scalars.to_json(scalars.from_json(value, FILL_VALUE))


def fill_to_v2(value: JSON | Undefined, data_type: DataType) -> JSON:
    """Return the ``fill_value`` of a v2 document for a v3 JSON form; `UNDEFINED` is null.

    A NaN is written as ``"NaN"`` whatever its payload, because v2 has no other form for it.

    Raises
    ------
    MetadataError
        If it is not a value of the type.
    """
    if value is UNDEFINED:
        return None
    scalars = data_type.scalars
    scalar = data_type.fill_from_json(value)
    document = scalars.to_json(scalar)
    match scalars:
        case Raw() | Struct():
            return bytes_to_base64(bytes_of(scalar, data_type.dtype))
        case Float():
            return _plain_nan(document)
        case Complex():
            return [_plain_nan(part) for part in _sequence(document)]
    return document


def _load(document: JSON, pointer: str, depth: int) -> tuple[Named, ByteOrder | None]:
    if isinstance(document, str):
        return _load_typestr(document, pointer)
    if isinstance(document, Sequence) and document and depth < DEEPEST:
        fields: list[dict[str, JSON]] = []
        orders: list[ByteOrder | None] = []
        names = set()
        for i, field in enumerate(document):
            at = f"{pointer}/{i}"
            if isinstance(field, str) or not isinstance(field, Sequence) or len(field) not in (2, 3):
                raise _malformed(field, at, "[name, type] or [name, type, shape]")
            name = _field_name(field[0], i, f"{at}/0")
            if name in names:
                raise _malformed(name, f"{at}/0", "names that differ")
            names.add(name)
            named, order = _load(field[1], f"{at}/1", depth + 1)
            entry: dict[str, JSON] = {"name": name, "data_type": named_to_json(named)}
            if len(field) > 2 and (shape := _shape(field[2], f"{at}/2")):  # it has a shape
                entry["shape"] = shape
            fields.append(entry)
            orders.append(order)
        return join_fields(fields, orders)
    raise _malformed(document, pointer, f"a typestr, or a list of fields (nested at most {DEEPEST} deep)")


def _load_typestr(text: str, pointer: str) -> tuple[Named, ByteOrder | None]:
    if text in BARE:
        return Named(text), None
    match = TYPESTR.fullmatch(text)
    if match is None:
        raise _malformed(text, pointer, 'byte order, kind and size, as in "<f8"')
    order, kind, size, scale, unit = match.groups()
    if unit is not None and kind not in TIMES:
        raise _malformed(text, pointer, "a unit for kinds M and m only")
    if kind == "O" and size in ("", "4", "8"):
        return Named("omnizarr.object"), None
    if kind in TIMES and size == "8":
        return Named(TIMES[kind], _load_unit(text, scale, unit, pointer)), _order(order, text, pointer)
    if kind in FIXED:
        nbytes = int(size or 0) * (UTF32_BYTES if kind == "U" else 1)
        if not 0 < nbytes <= LARGEST:
            raise _malformed(text, pointer, f"a size from 1 to {LARGEST // (UTF32_BYTES if kind == 'U' else 1)}")
        return Named(FIXED[kind][0], {"length_bytes": nbytes}), _order(order, text, pointer) if kind == "U" else None
    name = NAMES_OF_NUMPY.get(f"{kind}{size}")
    if name is None:
        raise UnknownDataTypeError("unknown data type", pointer=pointer, found=text, expected="a typestr", spec=SPEC)
    # netCDF-C gives one-byte types a byte order, xtensor-zarr gives them none.
    return Named(name), None if size == "1" else _order(order, text, pointer)


def _order(order: str, text: str, pointer: str) -> ByteOrder:
    if order == "<":
        return "<"
    if order == ">":
        return ">"
    raise _malformed(text, pointer, "a byte order, < or >, in front")


def _load_unit(text: str, scale: str | None, unit: str | None, pointer: str) -> dict[str, JSON]:
    unit, factor = unit or "generic", int(scale or 1)
    if unit not in UNITS or not 1 <= factor <= LARGEST_SCALE:
        raise _malformed(text, pointer, f"a unit ({', '.join(UNITS[:-1])}), perhaps with a factor in front")
    return {"unit": unit, "scale_factor": factor}


def _field_name(document: JSON, place: int, at: str) -> str:
    # NumPy writes a field with a title as [[title, name], type].
    if isinstance(document, Sequence) and not isinstance(document, str) and len(document) == 2:
        document = document[1]
    if not isinstance(document, str):
        raise _malformed(document, at, "the name of a field")
    return document or f"f{place}"


def _shape(document: JSON, at: str) -> list[JSON]:
    lengths = [document] if isinstance(document, int) else document
    if isinstance(lengths, str) or not isinstance(lengths, Sequence):
        raise _malformed(document, at, "a list of lengths")
    for length in lengths:
        if isinstance(length, bool) or not isinstance(length, int) or not 1 <= length <= LARGEST:
            raise _malformed(document, at, f"a list of integers from 1 to {LARGEST}")
    return list(lengths)


def _dump_field(field: JSON, byte_order: ByteOrder) -> JSON:
    if isinstance(field, Sequence) and not isinstance(field, str):  # the legacy form of v3
        field = {"name": field[0], "data_type": field[1]}
    if not isinstance(field, dict):
        raise NotRepresentableError("a field is malformed", pointer="/data_type", found=repr(field))
    order: ByteOrder = ">" if field.get("byte_order", byte_order) == ">" else "<"
    inner = named_from_json(field.get("data_type"))
    lengths = list(_sequence(field.get("shape", ())))
    while inner.name == LIST:
        lengths.append(inner.configuration.get("list_size"))
        inner = named_from_json(inner.configuration.get("base_data_type"))
    if inner.name in VARIABLE or inner.name in BARE:
        raise NotRepresentableError("Zarr v2 cannot express the field", pointer="/data_type", found=inner.name)
    described: list[JSON] = [field.get("name"), dump(inner, order)]
    if lengths:
        described.append(lengths)
    return described


def _unit_text(configuration: Any) -> str:
    unit, scale = configuration.get("unit"), configuration.get("scale_factor", 1)
    if unit == "generic":
        return ""
    ascii_unit = "us" if unit in ("μs", "µs") else unit
    return f"[{'' if scale == 1 else scale}{ascii_unit}]"


def _plain_nan(document: JSON) -> JSON:
    return "NaN" if isinstance(document, str) and document.startswith("0x") else document


def _sequence(document: JSON) -> Sequence[JSON]:
    return document if isinstance(document, Sequence) and not isinstance(document, str) else ()


def _malformed(found: object, pointer: str, expected: str) -> MetadataError:
    shown = "null" if found is None else "an empty string" if found == "" else found
    return MetadataError("not a data type", pointer=pointer, found=shown, expected=expected, spec=SPEC)
