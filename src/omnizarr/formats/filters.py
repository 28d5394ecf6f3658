"""Filters, compressor and order of Zarr v2, as a chain of codecs in the terms of v3, and back.

A filter has the name of v3 where the bytes are the same (``blosc``, ``gzip``, ``crc32c``, ``vlen-utf8``,
...), else ``numcodecs.<id>`` with the configuration of numcodecs. Filters of arrays that stand before any filter of
bytes come before ``bytes``, as array to array codecs; one that stands after is ``omnizarr.bytes_filter``, bytes to
bytes. Order F is ``transpose`` with the axes reversed, and comes first. Object codecs are array to bytes codecs.

Spec: Zarr v2, "Filters"; the identifiers and parameters are those of numcodecs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from omnizarr.codecs import registry
from omnizarr.codecs.record import A2A, A2B, B2B
from omnizarr.errors import NotRepresentableError
from omnizarr.formats.reader import Reader, is_integer, join
from omnizarr.model import JSON, Named

SPEC: Final = 'Zarr v2, "Filters"'
BYTES_FILTER: Final = "omnizarr.bytes_filter"
"""A filter of arrays that follows one of bytes, which v3 cannot express: it reads the bytes as an array."""

_NUMERAL = re.compile(r"[-+]?[0-9]{1,19}(\.[0-9]{0,19})?([eE][-+]?[0-9]{1,3})?")

_GDAL_SHUFFLES: Mapping[str, int] = {"NONE": 0, "BYTE": 1, "BIT": 2}  # the option as it was typed
_POINTER_SIZE = 8
_SHUFFLED: Final = 4
"""Item size that numcodecs uses for a shuffle without one."""


class Step(NamedTuple):
    """One filter, or the compressor, in the form of a document."""

    id: str
    parameters: Mapping[str, JSON]
    pointer: str


class Stack(NamedTuple):
    """The members of a v2 document for a chain of codecs."""

    order: str
    filters: list[dict[str, JSON]]
    compressor: dict[str, JSON] | None
    endian: str | None
    """Byte order of the elements before the first filter, "<" or ">"; None if the codecs do not state it."""


# Reading


def read_step(reader: Reader, value: JSON, pointer: str) -> Step | None:
    """Return one filter or compressor; None if it is not a codec at all."""
    if not isinstance(value, Mapping):
        reader.problem(pointer, "not a codec", found=value, expected="an object with an id", spec=SPEC)
        return None
    name = value.get("id")
    if not isinstance(name, str) or not name:
        reader.problem(
            join(pointer, "id"),
            "a codec without an id",
            found=name if "id" in value else dict(value),
            expected="a string",
            spec=SPEC,
        )
        return None
    parameters = {}
    record = registry.of_numcodecs(name)
    for key, parameter in value.items():
        if key == "id":
            continue
        number = _number(parameter) if record is not None and record.has(key, int, float) else None
        if name == "blosc" and key == "shuffle" and isinstance(parameter, str):
            number = _GDAL_SHUFFLES.get(parameter, number)
        if number is not None:
            reader.note(join(pointer, key), f"the string {parameter!r}, read as a number", SPEC)
        parameters[key] = parameter if number is None else number
    return Step(name, parameters, pointer)


def _number(value: JSON) -> int | float | None:
    """Return the number in a string, as netcdf-c 4.9 writes numbers; None if there is none."""
    if not isinstance(value, str) or not _NUMERAL.fullmatch(value):
        return None
    return float(value) if set(value) & set(".eE") else int(value)


def load_chain(reader: Reader, steps: Sequence[Step], order: str, ndim: int, dtype: np.dtype[Any]) -> tuple[Named, ...]:
    """Return the codecs for `steps`.

    `dtype` is the type of the stored elements in their byte order, ``object`` for Python objects.
    """
    codecs: list[Named] = []
    if order == "F" and ndim > 1:
        codecs.append(Named("transpose", {"order": list(reversed(range(ndim)))}))
    is_bytes = False
    item_size = dtype.itemsize if not dtype.hasobject else 1
    for step in steps:
        record = registry.of_numcodecs(step.id)
        kind = B2B if record is None else record.kind
        if kind == A2A and not is_bytes:
            codecs.append(Named(f"numcodecs.{step.id}", step.parameters))
            dtype = _filtered(reader, step, dtype)
            item_size = dtype.itemsize
            continue
        if kind == A2B and not is_bytes:
            codecs.append(load_codec(step.id, step.parameters, item_size))
        elif kind != B2B:
            codecs.append(Named(BYTES_FILTER, {"id": step.id, **step.parameters}))
        else:
            if not is_bytes:
                codecs.append(bytes_codec(dtype))
            if dtype.hasobject:
                netcdf_size = 1
            else:
                netcdf_size = _POINTER_SIZE if dtype.kind == "S" and dtype.itemsize > 1 else dtype.itemsize
            codecs.append(load_step(reader, step, item_size, netcdf_size))
        is_bytes = True
        item_size = 1
    if not is_bytes:
        codecs.append(bytes_codec(dtype))
    return tuple(codecs)


_SZIP = "numcodecs.szip"
_SZIP_FITTED = frozenset({"bits-per-pixel", "endian", "pixels-per-scanline"})
_SZIP_BLOCKS_PER_SCANLINE = 128
_SZIP_PIXELS_PER_SCANLINE = 4096


def fit_szip(
    codecs: Sequence[Named], shape: Sequence[int], chunks: Sequence[int], dtype: np.dtype[Any]
) -> tuple[Named, ...]:
    """Return `codecs` with the part of szip's configuration that netCDF-C omits.

    A scanline is as long as the last dimension (of the array, not of a chunk), if that is at least one block and
    at most 128 blocks. This is the rule of HDF5.

    Parameters
    ----------
    codecs : sequence of Named
    shape, chunks : sequence of int
        Shape and chunks of the array.
    dtype : numpy.dtype
        Type of the stored elements, in their byte order.
    """
    return tuple(_fitted(codec, shape, chunks, dtype) if codec.name == _SZIP else codec for codec in codecs)


def _fitted(codec: Named, shape: Sequence[int], chunks: Sequence[int], dtype: np.dtype[Any]) -> Named:
    block = codec.configuration.get("pixels-per-block")
    if not shape or not is_integer(block) or block < 1 or _SZIP_FITTED & codec.configuration.keys():
        return codec
    most, length, points = block * _SZIP_BLOCKS_PER_SCANLINE, shape[-1], prod(chunks)
    if points < block:
        return codec
    if length < block:
        length = points
    elif length > _SZIP_PIXELS_PER_SCANLINE:
        length = most
    bits = 8 * dtype.itemsize
    fitted: dict[str, JSON] = {
        "bits-per-pixel": bits if bits <= 24 else 32 if bits <= 32 else 64,
        "pixels-per-scanline": min(most, length),
        "endian": "big" if byte_order_of(dtype) == ">" else "little",
    }
    return replace(codec, configuration={**codec.configuration, **fitted})


def bytes_codec(dtype: np.dtype[Any]) -> Named:
    """Return the ``bytes`` codec that stores elements of `dtype` in their byte order."""
    order = byte_order_of(dtype)
    return Named("bytes", {"endian": "big" if order == ">" else "little"} if order else {})


def byte_order_of(dtype: np.dtype[Any]) -> str | None:
    """Return "<" or ">"; None if it makes no difference. For structured types, that of the first field with one."""
    if dtype.hasobject or dtype.itemsize == 1 or dtype.newbyteorder("<") == dtype.newbyteorder(">"):
        return None
    return ">" if dtype == dtype.newbyteorder(">") else "<"


def _filtered(reader: Reader, step: Step, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the data type that a filter of arrays returns for `dtype`."""
    name = _result_type(step.id, step.parameters)
    if name is None:
        return dtype
    try:
        result = np.dtype(name)
    except (TypeError, ValueError, SyntaxError):
        result = None
    if not isinstance(name, str) or result is None or result.hasobject:
        reader.problem(
            step.pointer, f"filter {step.id!r} names no data type", found=name, expected="a type string", spec=SPEC
        )
        return dtype
    return result  # type: ignore[no-any-return]


def _result_type(codec_id: str, parameters: Mapping[str, JSON]) -> Any:
    record = registry.of_numcodecs(codec_id)
    return None if record is None else record.result_type(parameters)


def is_object_codec(codec_id: object) -> bool:
    """Return whether an id of numcodecs is that of a codec of Python objects.

    >>> is_object_codec("vlen-utf8"), is_object_codec("pcodec")
    (True, False)
    """
    record = registry.of_numcodecs(codec_id) if isinstance(codec_id, str) else None
    return record is not None and record.kind == A2B and not record.compresses


def load_step(reader: Reader, step: Step, item_size: int, element_size: int) -> Named:
    """Return one bytes-to-bytes codec, with netCDF-C's spelling corrected.

    `item_size` is the size of items before the codec, `element_size` that of netCDF's type.
    """
    parameters = step.parameters
    if step.id == "shuffle" and "elementsize" not in parameters:
        reader.note(step.pointer, f"no elementsize, read as {_SHUFFLED}", SPEC)
        parameters = {**parameters, "elementsize": _SHUFFLED}
    elif step.id == "shuffle" and parameters["elementsize"] == 0:
        # netCDF-C means the size of the array's elements, wherever the filter is
        reader.note(join(step.pointer, "elementsize"), f"0, read as the item size {element_size}", SPEC)
        parameters = {**parameters, "elementsize": element_size}
    return load_codec(step.id, parameters, item_size)


def load_codec(name: str, parameters: Mapping[str, JSON], item_size: int) -> Named:
    """Return one codec of numcodecs, under its v3 name if that has the same bytes."""
    record = registry.of_numcodecs(name)
    named = record.from_v2(parameters, item_size) if record is not None else None
    return named if named is not None else Named(f"numcodecs.{name}", parameters)


# Writing


def dump_chain(codecs: Sequence[Named], ndim: int, label: str = "Zarr v2") -> Stack:
    """Return the order, filters and compressor for `codecs`.

    Raises NotRepresentableError if the format called `label` has no place for one of them.
    """
    rest = list(codecs)
    order = "C"
    while rest and rest[0].name == "transpose":
        # two transposes, or one that is not a reversal, are refused by the table
        axes = rest[0].configuration.get("order")
        if axes == list(range(ndim)):
            rest.pop(0)
        elif axes == list(reversed(range(ndim))) and order == "C":
            order = "F"
            rest.pop(0)
        else:
            break
    filters: list[dict[str, JSON]] = []
    endian = None
    for codec in rest:
        if codec.name == "bytes":
            endian = {"little": "<", "big": ">"}.get(str(codec.configuration.get("endian")))
            if filters:
                _check_last_filter(filters, endian, label)
                endian = None
        else:
            filters.append(dump_codec(codec, label))
    compressor = None
    last = registry.of_numcodecs(str(filters[-1]["id"])) if filters else None
    if last is not None and last.compresses:
        compressor = filters.pop()
    return Stack(order, filters, compressor, endian)


def dump_codec(codec: Named, label: str = "Zarr v2") -> dict[str, JSON]:
    """Return the object for one codec other than ``bytes`` and ``transpose``.

    Raises NotRepresentableError if the format called `label` has none.
    """
    configuration = codec.configuration
    if codec.name == BYTES_FILTER:
        return dict(configuration)
    record, bare = registry.record(codec.name), codec.name.removeprefix("numcodecs.")
    to_v2 = record.to_v2 if record is not None and next(iter(record.names)) == codec.name else None
    if bare != codec.name and to_v2 is None:
        return {"id": bare, **configuration}
    if registry.of_numcodecs(bare) is not None:
        parameters = configuration if to_v2 is None else to_v2(configuration)
        if parameters is not None:
            return {"id": bare, **parameters}
    raise NotRepresentableError(
        f"cannot be written as {label}: codec {codec.name!r} has no place there",
        found=dict(configuration) or None,
        remedy=(record and record.remedy) or "re-encode with codecs that numcodecs has, or write v3",
        spec=SPEC,
    )


def _check_last_filter(filters: Sequence[Mapping[str, JSON]], endian: str | None, label: str) -> None:
    """Refuse a byte order that cannot be expressed: the result of a filter is stored unchanged."""
    if not filters or endian is None:
        return
    name = _result_type(str(filters[-1]["id"]), filters[-1])
    if not isinstance(name, str):
        return
    try:
        order = byte_order_of(np.dtype(name))
    except (TypeError, ValueError, SyntaxError):
        return
    if order is not None and order != endian:
        raise NotRepresentableError(
            f"cannot be written as {label}: filter {filters[-1]['id']!r} makes {name!r}, "
            f"stored in the other byte order ({endian!r})",
            remedy="give the filter and the bytes codec one byte order, or write v3",
            spec=SPEC,
        )
