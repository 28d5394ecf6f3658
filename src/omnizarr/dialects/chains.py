"""Lists of codecs as documents of Zarr v3 spell them, older spellings put into the words of today.

Spec: Zarr v3 core, "Codecs"; what zarrita and zarr-python wrote in 2023 and after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from omnizarr import datatypes
from omnizarr.dialects.extensions import read_extension, write_extension
from omnizarr.dialects.filters import byte_order_of
from omnizarr.dialects.reading import Reader, join, read_list
from omnizarr.model import JSON, Named

LITTLE: Final = Named("bytes", {"endian": "little"})

_SPEC = 'Zarr v3, "Codecs"'
_SHARDING = 'Zarr v3, "Sharding codec"'
_KEEP_THE_TYPE = {"reshape", "transpose"}
_OF_BYTES = {"blosc", "crc32c", "gzip", "zstd"}  # bytes to bytes, of those that there were in 2023


def read_codecs(
    reader: Reader, value: JSON, pointer: str, ndim: int, bound: datatypes.DataType | None
) -> tuple[Named, ...]:
    """Return a list of codecs, its older spellings put into the words of today."""
    items = read_list(reader, value, pointer, _SPEC)
    if not items:
        reader.note(pointer, "no codecs, taken as little-endian bytes", _SPEC)
        return (LITTLE,)
    codecs: list[Named] = []
    for index, item in enumerate(items):
        place = f"{pointer}/{index}"
        named = read_extension(reader, item, place)
        if named is not None:
            codecs.append(_read_codec(reader, named, place, ndim, bound))
            if named.name not in _KEEP_THE_TYPE:
                bound = None
    return _with_serializer(reader, codecs, pointer)


def _with_serializer(reader: Reader, codecs: list[Named], pointer: str) -> tuple[Named, ...]:
    """Return codecs with the one that makes bytes of elements, which until July 2023 could go without saying."""
    at = next((index for index, codec in enumerate(codecs) if codec.name not in _KEEP_THE_TYPE), len(codecs))
    if any(codec.name not in _OF_BYTES for codec in codecs[at:]):
        return tuple(codecs)
    reader.note(pointer, "no array to bytes codec, taken as little-endian bytes", _SPEC)
    return (*codecs[:at], LITTLE, *codecs[at:])


def _read_codec(reader: Reader, named: Named, pointer: str, ndim: int, bound: datatypes.DataType | None) -> Named:
    if named.name == "endian":
        reader.note(pointer, "'endian', the old name of 'bytes'", _SPEC)
        named = Named("bytes", named.configuration, named.must_understand)
    configuration = named.configuration
    place = f"{pointer}/configuration"
    if named.name == "bytes" and "endian" not in configuration and bound is not None and _has_byte_order(bound):
        reader.note(place, "no endian, taken as little", 'Zarr v3, "Bytes codec"')
        configuration = {**configuration, "endian": "little"}
    elif named.name == "transpose" and configuration.get("order") in ("C", "F"):
        axes = range(ndim) if configuration["order"] == "C" else reversed(range(ndim))
        reader.note(join(place, "order"), f"order {configuration['order']!r}, taken as a list", "Zarr v3.0")
        configuration = {**configuration, "order": list(axes)}
    elif named.name == "sharding_indexed":
        configuration = _read_sharding(reader, configuration, place, ndim, bound)
    if configuration is named.configuration:
        return named
    return Named(named.name, configuration, named.must_understand)


def _read_sharding(
    reader: Reader, configuration: Mapping[str, JSON], pointer: str, ndim: int, bound: datatypes.DataType | None
) -> dict[str, JSON]:
    """Return the configuration of ``sharding_indexed``, with the codecs in it in the words of today."""
    result = dict(configuration)
    if "codecs" in configuration:
        codecs = read_codecs(reader, configuration["codecs"], join(pointer, "codecs"), ndim, bound)
        result["codecs"] = [write_extension(codec) for codec in codecs]
    if "index_codecs" not in configuration:
        reader.note(join(pointer, "index_codecs"), "missing, taken as little-endian bytes and crc32c", _SHARDING)
        result["index_codecs"] = [write_extension(LITTLE), write_extension(Named("crc32c"))]
    else:
        index = datatypes.bind(Named("uint64"))
        place = join(pointer, "index_codecs")
        codecs = read_codecs(reader, configuration["index_codecs"], place, ndim + 1, index)
        result["index_codecs"] = [write_extension(codec) for codec in codecs]
    return result


def _has_byte_order(bound: datatypes.DataType) -> bool:
    if not bound.is_fixed_size:
        return False
    return byte_order_of(bound.dtype) is not None
