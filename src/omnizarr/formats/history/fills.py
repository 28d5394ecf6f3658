"""Fill values of the formats before v2: the result of NumPy's ``fill`` with the document's value.

zarr 0.4 and 1.x gave the value of the document to ``ndarray.fill`` as it was, for chunks that are missing and for
the rest of chunks that were written in part. So NumPy's casts say what it means: 0 is ``"0"`` among strings and zero in
every field of a record, -1 is 255 among bytes, text is text, not base64. NumPy takes no complex number, no raw bytes
and no record from JSON; these have the forms of v2, a record being the list of its fields (which zarr 1.x wrote, and
could not read).

Spec: Zarr v1, "Metadata".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from omnizarr.errors import NotRepresentableError
from omnizarr.formats.documents import name_of_nonfinite
from omnizarr.formats.reader import is_list, join
from omnizarr.formats.spelling import same
from omnizarr.model import JSON
from omnizarr.model.datatypes import DataType
from omnizarr.model.datatypes.data_type import FILL_VALUE, bytes_of, bytes_to_base64, reject
from omnizarr.model.datatypes.numeric import NON_FINITE, Bool, Complex, Float, Integer
from omnizarr.model.datatypes.strings import UTF32_BYTES, FixedBytes, FixedText, Raw
from omnizarr.model.datatypes.structs import Field, Struct
from omnizarr.model.datatypes.times import Time

Say: TypeAlias = Callable[[str, str], None]
"""Takes a note: JSON pointer, message."""

_SPEC: Final = 'Zarr v1, "Metadata"'
_LOWEST: Final = -(2**63)
_HIGHEST: Final = 2**64 - 1
"""NumPy casts integers only within these bounds."""


def load(value: JSON, data_type: DataType, say: Say) -> JSON:
    """Return the v3 form of a fill value that is not null.

    `say` gets notes about casts.

    Raises
    ------
    MetadataError
        If neither NumPy nor v2 has such a value; the pointer starts at ``/fill_value``.

    Examples
    --------
    >>> from omnizarr.model import datatypes
    >>> load(-1, datatypes.parse("uint8"), print)
    /fill_value -1 is out of range, read as 255, as NumPy casts it
    255
    """
    form = _cast(value, data_type, FILL_VALUE, say)
    return data_type.scalars.to_json(data_type.scalars.from_json(form, FILL_VALUE))


def dump(value: JSON, data_type: DataType) -> JSON:
    """Return the value with which NumPy's ``fill``, or `load`, gives this v3 form. The payload of a NaN is lost.

    Raises
    ------
    MetadataError
        If `value` is not a value of the type.
    NotRepresentableError
        If it is a byte string that is not ASCII.

    Examples
    --------
    >>> from omnizarr.model import datatypes
    >>> dump([1.0, 0.0], datatypes.parse("complex64")), dump("YWI=", datatypes.parse("S3"))
    (1.0, 'ab')
    """
    return _spell(data_type.scalars.to_json(data_type.fill_from_json(value)), data_type)


# Reading


def _cast(value: JSON, data_type: DataType, at: str, say: Say) -> JSON:
    """Return the v3 form of what `value` fills with."""
    scalars = data_type.scalars
    match scalars:
        case Struct():
            return _cast_record(value, scalars, at, say)
        case FixedBytes():
            text = _cast_text(value, scalars.dtype.itemsize, at, say)
            if not text.isascii():
                raise reject("the fill value is text that is not ASCII", at, value, "ASCII", spec=_SPEC)
            return bytes_to_base64(text.encode("ascii"))
        case FixedText():
            return _cast_text(value, scalars.dtype.itemsize // UTF32_BYTES, at, say)
        case Raw():
            return 0 if value is False else value
        case Bool() if _is_number(value):
            if value not in (0, 1):
                say(at, f"{value!r}, read as true")
            return bool(value)
        case Integer() | Time():
            return _cast_integer(value, scalars, at, say)
        case Float():
            return _cast_float(value, at, say)
        case Complex():
            parts = value if is_list(value) else [value, 0.0]
            return [_cast_float(part, join(at, i) if is_list(value) else at, say) for i, part in enumerate(parts)]
    return value


def _is_number(value: JSON) -> bool:
    return isinstance(value, bool | int | float) and not (isinstance(value, int) and not _LOWEST <= value <= _HIGHEST)


def _cast_record(value: JSON, record: Struct, at: str, say: Say) -> JSON:
    if _is_number(value):
        values = {field.name: _repeated(value, field.shape) for field in record.fields}
        places = dict.fromkeys(values, at)
    elif is_list(value) and len(value) == len(record.fields):
        values = {field.name: item for field, item in zip(record.fields, value, strict=True)}
        places = {field.name: join(at, i) for i, field in enumerate(record.fields)}
    else:
        expected = f"a number for every field, or a list of {len(record.fields)}"
        raise reject("the fill value is not a record", at, value, expected, spec=_SPEC)
    return {
        field.name: _cast_nested(values[field.name], field, field.shape, places[field.name], say)
        for field in record.fields
    }


def _repeated(value: JSON, shape: tuple[int, ...]) -> JSON:
    for length in reversed(shape):
        value = [value] * length
    return value


def _cast_nested(value: JSON, field: Field, shape: tuple[int, ...], at: str, say: Say) -> JSON:
    if not shape:
        return _cast(value, field.data_type, at, say)
    if not is_list(value) or len(value) != shape[0]:
        raise reject("the fill value is no such sub-array", at, value, f"a list of {shape[0]}", spec=_SPEC)
    return [_cast_nested(item, field, shape[1:], at, say) for item in value]


def _cast_text(value: JSON, room: int, at: str, say: Say) -> str:
    if isinstance(value, str):
        text = value
    elif _is_number(value):
        text = str(value)
        say(at, f"{value!r}, read as the text {text[:room]!r}, as NumPy casts it")
    else:
        raise reject("the fill value is not text", at, value, "a string", spec=_SPEC)
    if isinstance(value, str) and len(text.rstrip("\0")) > room:
        say(at, f"too long, cut to {text[:room]!r}")
    return text[:room]


def _cast_integer(value: JSON, scalars: Integer | Time, at: str, say: Say) -> JSON:
    if isinstance(value, str) and isinstance(scalars, Time):
        return scalars.to_json(scalars.cast(value, at))
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        say(at, f"{value!r}, read as {int(value)}, as NumPy casts it")
        return int(value)
    if not isinstance(value, int | float):
        raise reject("the fill value is not a number", at, value, "an integer", spec=_SPEC)
    if not isinstance(value, int) or not isinstance(scalars, Integer) or not _is_number(value):
        return value
    cast = (value - scalars.lowest) % (scalars.highest - scalars.lowest + 1) + scalars.lowest
    if cast != value:
        say(at, f"{value} is out of range, read as {cast}, as NumPy casts it")
    return cast


def _cast_float(value: JSON, at: str, say: Say) -> JSON:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        say(at, "a bare token that is not JSON, read as the string of the same name")
        return name_of_nonfinite(value)
    if not isinstance(value, int | float) and not (isinstance(value, str) and value in NON_FINITE):
        raise reject(
            "the fill value is not a number", at, value, 'a number, "NaN", "Infinity" or "-Infinity"', spec=_SPEC
        )
    return value


# Writing


def _spell(form: JSON, data_type: DataType) -> JSON:
    """Return the form of a document for a canonical v3 form."""
    scalars = data_type.scalars
    match scalars:
        case Struct() if isinstance(form, Mapping):
            notes: list[str] = []
            zero = load(0, data_type, lambda _at, message: notes.append(message))
            if same(zero, form) and not notes:
                return 0
            return [_spell_nested(form[field.name], field, field.shape) for field in scalars.fields]
        case FixedBytes():
            return _spell_bytes(bytes(data_type.fill_from_json(form)))
        case Raw():
            data = bytes_of(data_type.fill_from_json(form), data_type.dtype)
            return bytes_to_base64(data) if any(data) else 0
        case Float():
            return _spell_float(form)
        case Complex() if is_list(form):
            real, imaginary = form
            return _spell_float(real) if same(imaginary, 0.0) else [_spell_float(real), _spell_float(imaginary)]
    return form


def _spell_nested(form: JSON, field: Field, shape: tuple[int, ...]) -> JSON:
    if not shape or not is_list(form):
        return _spell(form, field.data_type)
    return [_spell_nested(item, field, shape[1:]) for item in form]


def _spell_bytes(data: bytes) -> str:
    if not data.isascii():
        raise NotRepresentableError(
            "a fill value of bytes that are not ASCII has no form before Zarr v2",
            pointer=FILL_VALUE,
            found=data,
            remedy="fill with ASCII, or with nothing (null), or write v2",
            spec=_SPEC,
        )
    return data.decode("ascii")


def _spell_float(form: JSON) -> JSON:
    return "NaN" if isinstance(form, str) and form.startswith("0x") else form
