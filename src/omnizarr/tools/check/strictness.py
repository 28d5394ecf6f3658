"""Deviations from a format that are read here silently, but that readers in other languages refuse.

Fill values in a form that the specification does not define for their data type, and parameters that are missing or not
integers. These were tried with zarrs (zarrista 0.1), TensorStore 0.1 and zarr-python 3.1.

Spec: Zarr v3 core, "fill_value", "Codecs"; zarr-extensions; Zarr v2, "Fill value encoding"; numcodecs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from omnizarr.codecs import registry
from omnizarr.codecs.blosc import MAX_TYPESIZE, SHUFFLES
from omnizarr.codecs.record import NUMCODECS, Record
from omnizarr.errors import OmnizarrError
from omnizarr.formats.history.draft_codecs import read_codec_uri
from omnizarr.formats.reader import is_list, is_object, join
from omnizarr.model import JSON, ArrayMetadata, Named, datatypes
from omnizarr.model.datatypes import DataType
from omnizarr.model.datatypes.data_type import Scalars
from omnizarr.model.datatypes.numeric import Bool, Complex, Float, Integer
from omnizarr.model.datatypes.strings import Bytes, FixedBytes, FixedText, Raw, Text
from omnizarr.model.datatypes.structs import Struct
from omnizarr.model.datatypes.times import Time
from omnizarr.tools.check.extensions import uses
from omnizarr.tools.check.inventory import Node

_TIMES: Final = ("numpy.datetime64", "numpy.timedelta64")
_GZIP_OF_DRAFTS: Final = ("codec/gzip", "codec/gzip/1.0")


class Departure(NamedTuple):
    """One departure from the letter."""

    document: str
    pointer: str
    code: str
    message: str
    found: object
    expected: str = ""


def departures(node: Node, values: Mapping[str, JSON]) -> Iterator[Departure]:
    """Yield deviations of the document of a readable array from its format."""
    metadata, name = node.metadata, node.dialect.array_document
    document = values.get(name)
    if not isinstance(metadata, ArrayMetadata) or not is_object(document):
        return
    if node.dialect.name == "v3":
        found = _of_v3(document, metadata)
    elif node.dialect.name == "v2":
        found = _of_v2(document, metadata)
    elif node.dialect.entry_point is not None:
        found = _of_drafts(document)
    else:
        return
    for each in found:
        yield each._replace(document=name)


def _departure(pointer: str, code: str, message: str, found: object, expected: str = "") -> Departure:
    return Departure("", pointer, code, message, found, expected)


# Zarr v3


def _of_v3(document: Mapping[str, JSON], metadata: ArrayMetadata) -> Iterator[Departure]:
    for point, pointer, named in uses(document):
        if point == "data type":
            yield from _type_of_v3(pointer, named)
            continue
        if isinstance(_at(document, pointer), str):
            yield _departure(pointer, "short-name", "a name in place of an object with this name", named.name)
        if point == "codec":
            yield from _codec_of_v3(pointer, named)
    bound, value = _bound(metadata), document.get("fill_value")
    if bound is not None and value is not None and value != "":
        yield from _fill_value(value, bound.scalars, metadata.data_type.name, "/fill_value", "v3")


def _type_of_v3(pointer: str, named: Named) -> Iterator[Departure]:
    place = join(pointer, "configuration")
    if named.name in _TIMES and "scale_factor" not in named.configuration:
        yield _missing(join(place, "scale_factor"), named.name)
    fields = named.configuration.get("fields")
    for index, field in enumerate(fields if named.name == "struct" and is_list(fields) else ()):
        if is_list(field):
            at = join(place, "fields", index)
            yield _departure(at, "legacy-struct", "a field as a pair", field, "an object with name and data_type")


def _codec_of_v3(pointer: str, named: Named) -> Iterator[Departure]:
    place, configuration = join(pointer, "configuration"), named.configuration
    # numcodecs has a default for each parameter
    required = "" if named.name.startswith(NUMCODECS) else named.name
    for name in _required(required):
        is_needed = name != "typesize" or configuration.get("shuffle") not in ("noshuffle", 0)
        if name not in configuration and is_needed:
            yield _missing(join(place, name), named.name)
    yield from _integers(place, configuration, registry.record(named.name))
    if named.name == "blosc":
        yield from _blosc_of_v3(place, configuration)
    if named.name in ("bytes", "endian") and "endian" in configuration and configuration["endian"] is None:
        yield _departure(join(place, "endian"), "null-member", "null in place of a byte order", "null")


def _blosc_of_v3(place: str, configuration: Mapping[str, Any]) -> Iterator[Departure]:
    shuffle, typesize = configuration.get("shuffle", ""), configuration.get("typesize", 1)
    if not isinstance(shuffle, str):
        message = "a shuffle as Zarr v2 numbers it"
        yield _departure(join(place, "shuffle"), "shuffle-of-other-format", message, shuffle, " or ".join(SHUFFLES))
    if isinstance(typesize, int) and not 1 <= typesize <= MAX_TYPESIZE and shuffle != "noshuffle":
        expected = f"an integer from 1 to {MAX_TYPESIZE}"
        yield _departure(join(place, "typesize"), "invalid-typesize", "no size of items", typesize, expected)


# Zarr v2


def _of_v2(document: Mapping[str, JSON], metadata: ArrayMetadata) -> Iterator[Departure]:
    listed = document.get("filters")
    steps = [(join("/filters", index), step) for index, step in enumerate(listed if is_list(listed) else ())]
    for pointer, step in [*steps, ("/compressor", document.get("compressor"))]:
        if is_object(step):
            yield from _codec_of_v2(pointer, step)
    yield from _units(document.get("dtype"), "/dtype")
    bound, value = _bound(metadata), document.get("fill_value")
    if bound is not None and value is not None:
        yield from _fill_value(value, bound.scalars, metadata.data_type.name, "/fill_value", "v2")


def _codec_of_v2(pointer: str, step: Mapping[str, Any]) -> Iterator[Departure]:
    codec = str(step.get("id"))
    for name in _required(NUMCODECS + codec):
        if name not in step:
            yield _missing(join(pointer, name), codec)
    yield from _integers(pointer, step, registry.of_numcodecs(codec))
    shuffle = step.get("shuffle")
    if codec == "blosc" and isinstance(shuffle, str) and shuffle in SHUFFLES:
        message = "a shuffle as Zarr v3 names it"
        yield _departure(join(pointer, "shuffle"), "shuffle-of-other-format", message, shuffle, "0, 1, 2 or -1")


def _units(dtype: JSON, pointer: str) -> Iterator[Departure]:
    if is_list(dtype):
        for index, field in enumerate(dtype):
            if is_list(field) and len(field) > 1:
                yield from _units(field[1], join(pointer, index, 1))
    elif isinstance(dtype, str) and dtype.lstrip("<>|=") in ("M8", "m8"):
        yield _departure(pointer, "time-without-unit", "a date or duration without a unit", dtype, f"{dtype}[s], ...")


# Drafts of v3: reading notes deviations in fill values


def _of_drafts(document: Mapping[str, JSON]) -> Iterator[Departure]:
    listed = document.get("chunk_codecs")
    items = [(join("/chunk_codecs", index), item) for index, item in enumerate(listed if is_list(listed) else ())]
    for pointer, item in [*items, ("/compressor", document.get("compressor"))]:
        if not is_object(item):
            continue
        is_apart = "configuration" in item or pointer == "/compressor"
        own = item.get("configuration", {}) if is_apart else item
        place = join(pointer, "configuration") if is_apart else pointer
        if not is_object(own):
            continue
        if str(item.get("codec")).endswith(_GZIP_OF_DRAFTS) and "level" not in own:
            yield _missing(join(place, "level"), "gzip")
        codec = read_codec_uri(str(item.get("codec")))
        yield from _integers(place, own, None if codec is None else registry.of_numcodecs(codec))


# Parameters


def _missing(pointer: str, owner: str) -> Departure:
    name = pointer.rpartition("/")[2]
    return _departure(pointer, "missing-parameter", f"{owner} without {name}", None)


def _required(codec: str) -> tuple[str, ...]:
    """Return the parameters that readers require of a codec, although decoding does not need them."""
    record = registry.record(codec)
    return () if record is None else record.names[codec].required


def _integers(place: str, parameters: Mapping[str, Any], record: Record | None) -> Iterator[Departure]:
    for name, value in parameters.items():
        if isinstance(value, float) and record is not None and record.has(name, int):
            yield _fraction(join(place, name), value)


def _fraction(pointer: str, value: float) -> Departure:
    return _departure(pointer, "integer-with-fraction", "an integer with a fraction or exponent", value, "an integer")


# Fill values


def _bound(metadata: ArrayMetadata) -> DataType | None:
    try:
        return datatypes.bind(metadata.data_type, metadata.byte_order)
    except OmnizarrError:
        return None


def _fill_value(value: JSON, scalars: Scalars, name: str, at: str, form: str) -> Iterator[Departure]:
    """Yield deviations in a fill value, or in the fill value of a field."""
    match scalars:
        case Integer() | Time():
            if isinstance(value, float):
                yield _fraction(at, value)
        case Bool():
            if _is_number(value) and not isinstance(value, bool):
                yield _loose(at, "a number for a boolean", value, "true or false")
        case Float():
            yield from _of_float(value, at, form)
        case Complex():
            for index, part in enumerate(value if is_list(value) else ()):
                yield from _of_float(part, join(at, index), form)
        case Raw() | FixedBytes() | Struct() if form == "v2":
            if not isinstance(value, str):  # plain text in place of base64 is noted in reading
                yield _loose(at, "no base64", value, f"base64 of {scalars.dtype.itemsize} bytes")
        case Struct():
            yield from _of_record(value, scalars, name, at, form)
        case Text() | Bytes() if form == "v2":
            return  # the specification does not define them; zarr 2 wrote 0, and all readers accept it
        case _:
            yield from _of_text(value, scalars, name, at)


def _of_text(value: JSON, scalars: Scalars, name: str, at: str) -> Iterator[Departure]:
    match scalars:
        case Raw() if name.startswith("r") and name[1:].isdecimal():
            if not is_list(value):
                yield _departure(at, "raw-bits-as-text", "raw bits, but no list of bytes", value, "a list of bytes")
        case Text() | FixedText() | Bytes() | FixedBytes() | Raw():
            if _is_number(value):
                is_text = isinstance(scalars, Text | FixedText)
                yield _loose(at, f"a number for {'text' if is_text else 'bytes'}", value, "a string")


def _is_number(value: JSON) -> bool:
    return isinstance(value, bool | int | float)


def _loose(at: str, message: str, found: object, expected: str) -> Departure:
    return _departure(at, "loose-fill-value", message, found, expected)


def _of_float(value: JSON, at: str, form: str) -> Iterator[Departure]:
    if isinstance(value, str) and value == "+Infinity":
        yield _departure(at, "infinity-spelling", "an infinity with a plus sign", value, "Infinity")
    elif form == "v2" and isinstance(value, str) and value.startswith("0x"):
        yield _loose(at, "hexadecimal digits for a number", value, '"NaN", "Infinity", "-Infinity" or a number')


def _of_record(value: JSON, record: Struct, name: str, at: str, form: str) -> Iterator[Departure]:
    if not is_object(value):
        if name == "struct" and value is not None:
            yield _departure(at, "legacy-struct", "no object for a record", value, "an object with each field")
        return
    for field in record.fields:
        inner = field.data_type
        for place, item in _items(value.get(field.name), len(field.shape), join(at, field.name)):
            yield from _fill_value(item, inner.scalars, inner.named.name, place, form)


def _items(value: JSON, depth: int, at: str) -> Iterator[tuple[str, JSON]]:
    """Yield the elements of a sub-array that is nested so deep."""
    if depth and is_list(value):
        for index, item in enumerate(value):
            yield from _items(item, depth - 1, join(at, index))
    else:
        yield at, value


def _at(document: JSON, pointer: str) -> Any:
    """Return what is at a JSON pointer."""
    value: Any = document
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if is_list(value) else value[name]
    return value
