"""The nearest data type that a format has, the fill value in it, and elements as it has them.

A type is kept if the target can say it. If not, the next that holds the values is taken: one with more room, integers
for times of a unit that the target lacks, at last raw bytes. The first of these loses nothing, the others what the
elements mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from omnizarr.codecs.values import named as named_codec
from omnizarr.errors import OmnizarrError, ValueTypeError
from omnizarr.formats.contract import Dialect
from omnizarr.formats.conventions import fill_values
from omnizarr.formats.filters import byte_order_of
from omnizarr.formats.reader import is_list
from omnizarr.formats.spelling import same
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, Metadata, Named, datatypes
from omnizarr.model.datatypes import DataType
from omnizarr.model.datatypes.data_type import bytes_of
from omnizarr.model.datatypes.fixed_point import FixedPoint
from omnizarr.model.datatypes.optional import VALID, VALUE, Optional
from omnizarr.model.datatypes.registry import SMALL_COMPLEX, SMALL_FLOATS, SMALL_INTEGERS
from omnizarr.model.datatypes.strings import UTF32_BYTES
from omnizarr.model.datatypes.structs import with_lists
from omnizarr.nodes import new_metadata
from omnizarr.tools.translate.losses import NodeLosses, attempt, shown
from omnizarr.tools.translate.readers import structured

ByteOrder: TypeAlias = Literal["<", ">"]
Values: TypeAlias = Literal["same", "cast", "integers", "raw", "text", "filled"]
"""How elements change: not; to a wider type; from times to their integers; to their bytes; from objects to text; if
they are missing, to a fill value."""

_WORDS: Final[Mapping[str, str]] = {"omnizarr.object": "Python objects", "omnizarr.vlen_array": "ragged arrays"}
"""Data types that have no name in documents."""
_OF_VALUES: Final = {"json2": "JSON", "json": "JSON", "msgpack2": "MessagePack", "msgpack": "MessagePack"}
"""Object codecs of v2 for values of any type, which most often are texts."""
VALUE_CODECS: Final = tuple(f"numcodecs.{name}" for name in _OF_VALUES)
TEXT_CODECS: Final = ("vlen-utf8", "numcodecs.vlen-utf8", "zarrs.vlen", "zarrs.vlen_v2")
_ORDERS: Final[Mapping[str, str]] = {"<": "little-endian", ">": "big-endian"}


class Nearest(NamedTuple):
    """A data type that holds the values of another."""

    data_type: Named
    values: Values
    byte_order: ByteOrder


def new_array(dialect: Dialect, shape: tuple[int, ...], nearest: Nearest) -> ArrayMetadata:
    """Return the metadata of a new array with the codecs that are the dialect's own choice. Raises OmnizarrError."""
    data_type = datatypes.bind(nearest.data_type, nearest.byte_order)
    found = new_metadata.array_metadata(dialect, shape=shape, dtype=data_type, chunks=[1] * len(shape), fill_value=None)
    return replace(found, byte_order=nearest.byte_order) if dialect.new_arrays.has_byte_order else found


def with_nearest_type(
    source: ArrayMetadata,
    data_type: DataType,
    shape: tuple[int, ...],
    account: NodeLosses,
    *,
    keeps_chunks: bool,
    characters: int | None = None,
) -> tuple[ArrayMetadata, Values]:
    """Return a new array with the nearest data type of the target, and how its elements change.

    `keeps_chunks`: no type for which chunks would have to be encoded again, if there is another. `characters`: strings
    of any length get this length.
    Raises CannotCarryError if no type holds the values.
    """
    reasons: list[str] = []
    types = _types(source, data_type, account.dialect, keeps_chunks=keeps_chunks)
    if characters is not None:
        types = iter([Nearest(Named("fixed_length_utf32", {"length_bytes": UTF32_BYTES * characters}), "cast", "<")])
    for nearest in types:
        try:
            found = new_array(account.dialect, shape, nearest)
        except OmnizarrError as error:
            reasons.append(error.message)
            continue
        read, why = attempt(found, account.dialect)
        if read is not None:
            _explain(source, data_type, nearest, account)
            return found, nearest.values
        reasons.append(why)
    why = f"{account.title} has no such type, nor another that holds its values"
    if data_type.is_optional:
        why = f"{account.title} has no missing elements, and no fill value of the type can mean them"
    if reasons[0].startswith("field"):
        why = f"in {account.title} there is no place for it: {reasons[0]}"
    raise account.fail(account.pointer("data_type"), f"the array, for its data type {_name_of(data_type)}", why)


def _types(source: ArrayMetadata, data_type: DataType, dialect: Dialect, *, keeps_chunks: bool) -> Iterator[Nearest]:
    """Yield data types that hold the values, nearest first."""
    stored, name = stored_order(source), source.data_type.name
    if name == "struct" and dialect.name == "v3" != source.dialect and not (keeps_chunks and stored == ">"):
        record = structured(_with_one_order(source.data_type))
        if record is not None:
            yield Nearest(record, "same", "<")
    if name == "struct" and dialect.name == "v3" and _has_sub_arrays(data_type.dtype):
        yield Nearest(with_lists(_with_one_order(source.data_type)), "same", "<")
    orders: list[ByteOrder] = [">", "<"] if stored == ">" else ["<"]
    for order in orders:
        yield Nearest(source.data_type, "same", order)
    if isinstance(data_type.scalars, Optional):  # without a value to spare nothing: raw bytes would mean nothing
        if fill_of_missing(data_type.scalars.inner) is not None:
            yield Nearest(data_type.scalars.inner.named, "filled", "<")
        return
    yield from _others(source, data_type, dialect, orders)


def _others(
    source: ArrayMetadata, data_type: DataType, dialect: Dialect, orders: Sequence[ByteOrder]
) -> Iterator[Nearest]:
    """Yield types of other names that hold the values, nearest first."""
    name = source.data_type.name
    if name in ("struct", "structured"):
        yield Nearest(_with_one_order(source.data_type), "same", "<")
    if name in SMALL_FLOATS:
        yield Nearest(Named("float32"), "cast", "<")
    elif name in SMALL_COMPLEX:
        yield Nearest(Named("complex64"), "cast", "<")
    elif isinstance(data_type.scalars, FixedPoint):
        for order in orders:
            yield Nearest(data_type.scalars.base.named, "same", order)
    elif name in SMALL_INTEGERS:
        yield Nearest(Named("uint8" if name.startswith("u") else "int8"), "cast", "<")
    if source.data_type.configuration.get("object_codec") in _OF_VALUES:
        yield Nearest(Named("string"), "text", "<")
    if data_type.dtype.kind in "mM":
        for order in orders:
            yield Nearest(Named("int64"), "integers", order)
    # where there are records, those that it cannot hold are left to people to take apart
    if data_type.is_fixed_size and not (_has_sub_arrays(data_type.dtype) and _has_records(dialect)):
        yield Nearest(Named(f"r{8 * data_type.dtype.itemsize}"), "raw", "<")


def _explain(source: ArrayMetadata, data_type: DataType, nearest: Nearest, account: NodeLosses) -> None:
    pointer, name = account.pointer("data_type"), _name_of(data_type)
    stored = stored_order(source)
    match nearest.values:
        case "filled" if isinstance(data_type.scalars, Optional):
            fill = shown(data_type.scalars.inner.scalars.to_json(fill_of_missing(data_type.scalars.inner)))
            account.remark(
                f"{account.title} has no missing elements: they become {fill}, the fill value, which no other element "
                "may have"
            )
        case "text":
            kind = value_kind(source)
            account.remark(
                f"elements are {kind} values: texts become string, and all others, if there are any, JSON text"
            )
        case "cast" if not data_type.is_fixed_size:
            size = nearest.data_type.configuration["length_bytes"]
            account.remark(
                f"strings get the length of the longest, for readers without strings of any length: {name} becomes "
                f"{nearest.data_type.name} of {size} bytes"
            )
        case "cast":
            account.remark(f"data type {name} becomes {nearest.data_type.name}, which holds all its values")
        case "integers":
            what = "moments" if data_type.dtype.kind == "M" else "durations"
            why = f"{account.title} has no such type with this unit"
            account.lose(pointer, f"that elements are {what} ({data_type.dtype})", why, f"int64, {_unit(source)}")
        case "raw":
            order = "" if byte_order_of(data_type.dtype) is None else f", {_ORDERS[stored]}"
            order = ", as they are stored" if data_type.dtype.names is not None else order
            kept = f"{nearest.data_type.name}, the {data_type.dtype.itemsize} bytes of each element{order}"
            account.lose(pointer, f"what elements mean ({name})", f"{account.title} has no such type", kept)
        case _ if isinstance(data_type.scalars, FixedPoint) and nearest.data_type is not source.data_type:
            what = f"that elements are fixed-point numbers, {data_type.scalars.step!r} times their integers"
            account.lose(pointer, what, f"{account.title} has no such type", f"{nearest.data_type.name}, the integers")
        case _ if (
            nearest.data_type.name == "struct"
            and same(nearest.data_type, with_lists(_with_one_order(source.data_type)))
            and _has_sub_arrays(data_type.dtype)
        ):
            account.remark("arrays within records become the proposed type fixed_size_list, which few programs read")
        case _ if nearest.data_type is not source.data_type and not same(
            _with_one_order(source.data_type), source.data_type
        ):
            account.remark("fields with a byte order of their own are stored little-endian, as all others")
        case _ if nearest.byte_order != stored and nearest.data_type.name == "structured":
            account.remark("records are stored little-endian: zarr-python before 3.3 reads no others")
        case _ if nearest.byte_order != stored:
            account.remark(f"{account.title} has no big-endian {name}: elements are stored little-endian")


def _unit(source: ArrayMetadata) -> str:
    unit, factor = source.data_type.configuration.get("unit"), source.data_type.configuration.get("scale_factor", 1)
    return "counts without a unit" if unit == "generic" else f"counts of {factor} {unit}"


def _with_one_order(named: Named) -> Named:
    """Return a structured type whose fields have no byte order of their own."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: plain(item) for name, item in value.items() if name != "byte_order"}
        return [plain(item) for item in value] if is_list(value) else value

    return Named(named.name, plain(named.configuration))


def _has_records(dialect: Dialect) -> bool:
    record = Named("struct", {"fields": [{"name": "a", "data_type": "int8"}]})
    try:
        return attempt(new_array(dialect, (1,), Nearest(record, "same", "<")), dialect)[0] is not None
    except OmnizarrError:
        return False


def _has_sub_arrays(dtype: np.dtype[Any]) -> bool:
    if dtype.subdtype is not None:
        return True
    return dtype.fields is not None and any(_has_sub_arrays(field[0]) for field in dtype.fields.values())


def _name_of(data_type: DataType) -> str:
    if isinstance(data_type.scalars, Optional):
        return f"{data_type.named.name}[{_name_of(data_type.scalars.inner)}]"
    if data_type.dtype.names is not None:
        return str(data_type.dtype)
    return _WORDS.get(data_type.named.name, data_type.named.name)


def stored_order(metadata: ArrayMetadata) -> ByteOrder:
    """Return the byte order in which elements are stored, or that the first filter meets."""
    for codec in metadata.codecs:
        if codec.name == "bytes" and "endian" in codec.configuration:
            return ">" if codec.configuration["endian"] == "big" else "<"
        if codec.name == "sharding_indexed" and is_list(inner := codec.configuration.get("codecs")):
            return stored_order(replace(metadata, codecs=tuple(named_codec(item) for item in inner)))
        if codec.name not in ("transpose", "reshape"):
            break
    return metadata.byte_order


def remark_byte_order(source: ArrayMetadata, target: ArrayMetadata, data_type: DataType, account: NodeLosses) -> None:
    """Say so if elements have another byte order in memory."""
    if source.byte_order != target.byte_order and byte_order_of(data_type.dtype) is not None:
        before, after = _ORDERS[source.byte_order], _ORDERS[target.byte_order]
        account.remark(f"elements were {before} in memory, and are {after} now; the values are the same")


def carry(source: ArrayMetadata, target: ArrayMetadata, values: Values, array: np.ndarray[Any, Any]) -> Any:
    """Return decoded elements of the source as the target has them."""
    wanted = datatypes.bind(target.data_type, target.byte_order).dtype
    match values:
        case "raw":
            stored = datatypes.bind(source.data_type, stored_order(source)).dtype
            return np.ascontiguousarray(array.astype(stored)).view(wanted).reshape(array.shape)
        case "integers":
            native = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))
            return native.view(np.int64).reshape(array.shape).astype(wanted)
        case "cast":
            return array.astype(wanted)
        case "text":
            return as_text(array)
        case "filled":
            return _filled(array, datatypes.bind(target.data_type, target.byte_order))
    return array


def _filled(array: np.ndarray[Any, Any], data_type: DataType) -> np.ndarray[Any, Any]:
    """Return elements with the fill value where they are missing. Raises ValueTypeError if another element has it."""
    fill, valid = fill_of_missing(data_type), array[VALID]
    values = array[VALUE].astype(data_type.dtype)
    taken = valid & (np.isnan(values) if values.dtype.kind in "fc" else values == np.asarray(fill, values.dtype))
    if data_type.dtype.kind in "mM":
        taken = valid & np.isnat(values)
    if taken.any():
        raise ValueTypeError(
            "an element has the fill value that missing elements get",
            found=shown(data_type.scalars.to_json(fill)),
            expected="no such element",
            remedy="write Zarr v3, which has missing elements, or replace those that have this value first",
        )
    values[~valid] = fill
    return values


def fill_of_missing(data_type: DataType) -> Any:
    """Return the value that means missing elements in formats without them; None if the type has none to spare."""
    dtype = data_type.dtype
    if dtype.type.__module__ == "ml_dtypes":
        return None
    if dtype.kind in "fc":
        return dtype.type(np.nan)
    if dtype.kind in "iu":
        return fill_values.NETCDF_DEFAULTS[dtype.str[1:]]
    if dtype.kind in "mM":
        return data_type.cast("NaT")
    return data_type.default_fill_value if dtype.kind in "SUT" or data_type.named.name == "bytes" else None


def value_kind(source: ArrayMetadata) -> str:
    """Return as what the elements of an array of objects are encoded: "JSON" or "MessagePack"; "" if as neither."""
    return _OF_VALUES.get(str(source.data_type.configuration.get("object_codec")), "")


def as_text(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return values as text: a text as it is, anything else in JSON.

    Raises ValueTypeError for values that JSON does not have, such as bytes.
    """
    found = np.empty(array.shape, object)
    for at, value in np.ndenumerate(array):
        if isinstance(value, str):
            found[at] = value
            continue
        try:
            found[at] = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise ValueTypeError("an element is no text, and JSON has no such value", found=shown(value)) from error
    return found


# Fill values


def with_fill_value(
    target: ArrayMetadata, source: ArrayMetadata, before: DataType, values: Values, account: NodeLosses
) -> tuple[ArrayMetadata, bool]:
    """Return `target` with the fill value, and whether chunks that are missing read the same."""
    if values == "text":  # chunks that are missing are written, unless they hold a text
        is_text = isinstance(source.fill_value, str)
        return replace(target, fill_value=source.fill_value if is_text else ""), is_text
    after = datatypes.bind(target.data_type)
    if values == "filled":
        return replace(target, fill_value=after.fill_to_json(fill_of_missing(after))), source.fill_value is None
    default: JSON = after.fill_to_json(after.default_fill_value)
    undefined: Any = UNDEFINED if account.dialect.new_arrays.has_undefined_fill_value else default
    if source.fill_value is UNDEFINED:
        if undefined is not UNDEFINED:
            what, zero = "the undefined fill value (null)", _zero(after, default)
            if after.dtype.kind in "mM":
                why = f"{account.title} has none, and chunks are missing, which zarr-python reads as NaT"
                account.lose("/fill_value", what, why, zero, of_missing=True)
            else:  # programs read zeros where it is null, and zarr-python stores no chunks of zeros
                account.remark(f"{what} becomes {zero}; missing chunks read as before")
        return replace(target, fill_value=undefined), True
    bound = before.with_byte_order(stored_order(source) if values == "raw" else "<")
    wanted = _carried(bound.fill_from_json(source.fill_value), bound, after, values)
    is_object = source.data_type.name == "omnizarr.object"
    tried = replace(target, fill_value=source.fill_value if is_object else after.scalars.to_json(wanted))
    read, why = attempt(tried, account.dialect)
    what = f"the fill value {shown(tried.fill_value)}"
    if read is not None and read.fill_value is not UNDEFINED:
        if _are_equal(after.fill_from_json(read.fill_value), wanted, after):
            return tried, True
        kept = shown(read.fill_value)
        why = f"{account.title} cannot tell it from {kept}"
        account.lose("/fill_value", what, why, kept, of_missing=_is_nan(wanted))
        return tried, False
    kept = "null, which reads as zero" if undefined is UNDEFINED else shown(default)
    account.lose("/fill_value", what, f"{account.title} cannot express it: {why or 'null is undefined'}", kept)
    return replace(target, fill_value=undefined), _are_equal(after.default_fill_value, wanted, after)


def reads_alike(one: Metadata, other: Metadata) -> bool:
    """Return whether chunks of two arrays of one data type read the same where they are not stored."""
    if not isinstance(one, ArrayMetadata) or not isinstance(other, ArrayMetadata) or one is other:
        return True
    if one.fill_value is UNDEFINED or other.fill_value is UNDEFINED:
        return one.fill_value is other.fill_value
    if same(one.fill_value, other.fill_value):
        return True
    data_type = datatypes.bind(one.data_type)
    return _are_equal(data_type.fill_from_json(one.fill_value), data_type.fill_from_json(other.fill_value), data_type)


def _zero(data_type: DataType, default: JSON) -> str:
    return "zero bytes" if data_type.dtype.kind in "SV" and data_type.dtype.isbuiltin == 0 else shown(default)


def _carried(scalar: Any, before: DataType, after: DataType, values: Values) -> Any:
    if values in ("raw", "integers"):
        return np.frombuffer(bytes_of(scalar, before.dtype), after.dtype)[0]
    if values == "cast" or before.dtype.names is not None:
        return np.asarray(scalar, before.dtype).astype(after.dtype)[()]
    return scalar


def _is_nan(scalar: Any) -> bool:
    return isinstance(scalar, np.inexact) and bool(np.isnan(scalar))


def _are_equal(left: Any, right: Any, data_type: DataType) -> bool:
    if not data_type.is_fixed_size:
        return same(data_type.scalars.to_json(left), data_type.scalars.to_json(right))
    return bytes_of(left, data_type.dtype) == bytes_of(right, data_type.dtype)
