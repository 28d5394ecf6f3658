"""Lists of codecs in documents of Zarr v3, with older spellings converted to current ones.

Spec: Zarr v3 core, "Codecs"; what zarrita and zarr-python wrote in 2023 and after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from omnizarr.codecs import registry
from omnizarr.codecs.record import B2B
from omnizarr.formats.extensions import read_extension, write_extension
from omnizarr.formats.filters import byte_order_of
from omnizarr.formats.reader import Reader, join, read_list
from omnizarr.model import JSON, Named, datatypes

LITTLE: Final = Named("bytes", {"endian": "little"})

_SPEC = 'Zarr v3, "Codecs"'
_SHARDING = 'Zarr v3, "Sharding codec"'
_NUMCODECS = "numcodecs."
_KEEP_THE_TYPE = {"reshape", "transpose"}


class _Elements(NamedTuple):
    """The elements that a list of codecs encodes; None if their type is unknown."""

    ndim: int
    of_array: datatypes.DataType | None
    here: datatypes.DataType | None
    """The result of the codecs before."""


def read_codecs(
    reader: Reader, value: JSON, pointer: str, ndim: int, bound: datatypes.DataType | None
) -> tuple[Named, ...]:
    """Return a list of codecs with older spellings converted to current ones."""
    return _read_list(reader, value, pointer, _Elements(ndim, bound, bound))


def _read_list(reader: Reader, value: JSON, pointer: str, elements: _Elements) -> tuple[Named, ...]:
    items = read_list(reader, value, pointer, _SPEC)
    if not items:
        reader.note(pointer, "no codecs, read as little-endian bytes", _SPEC)
        return (LITTLE,)
    codecs: list[Named] = []
    for index, item in enumerate(items):
        place = f"{pointer}/{index}"
        named = read_extension(reader, item, place)
        if named is not None:
            codecs.append(_read_codec(reader, named, place, elements))
            if named.name not in _KEEP_THE_TYPE:
                elements = elements._replace(here=None)
    at = next((index for index, codec in enumerate(codecs) if codec.name not in _KEEP_THE_TYPE), len(codecs))
    records = [registry.record(codec.name) for codec in codecs[at:]]
    if not all(record is not None and record.kind == B2B for record in records):
        return tuple(codecs)
    reader.note(pointer, "no array to bytes codec, read as little-endian bytes", _SPEC)
    return (*codecs[:at], LITTLE, *codecs[at:])


def _read_codec(reader: Reader, named: Named, pointer: str, elements: _Elements) -> Named:
    if named.name == "endian":
        reader.note(pointer, "'endian', the old name of 'bytes'", _SPEC)
        named = Named("bytes", named.configuration, named.must_understand)
    configuration = named.configuration
    place = f"{pointer}/configuration"
    if named.name.startswith(_NUMCODECS) and "id" in configuration:
        configuration = _without_id(reader, named, join(place, "id"))
    bound = elements.here
    if (
        named.name == "bytes"
        and "endian" not in configuration
        and bound is not None
        and (False if not bound.is_fixed_size else byte_order_of(bound.dtype) is not None)
    ):
        reader.note(place, "no endian, read as little", 'Zarr v3, "Bytes codec"')
        configuration = {**configuration, "endian": "little"}
    elif named.name == "transpose" and configuration.get("order") in ("C", "F"):
        axes = range(elements.ndim) if configuration["order"] == "C" else reversed(range(elements.ndim))
        reader.note(join(place, "order"), f"order {configuration['order']!r}, read as a list", "Zarr v3.0")
        configuration = {**configuration, "order": list(axes)}
    elif named.name.removeprefix(_NUMCODECS) == "shuffle" and configuration.get("elementsize") is None:
        configuration = _with_element_size(reader, configuration, place, elements.of_array)
    elif named.name == "sharding_indexed":
        configuration = _read_sharding(reader, configuration, place, elements)
    if configuration is named.configuration:
        return named
    return Named(named.name, configuration, named.must_understand)


def _without_id(reader: Reader, named: Named, pointer: str) -> Mapping[str, JSON]:
    """Return the configuration of a codec of numcodecs without its id, which numcodecs 0.14 wrote there, too."""
    found, expected = named.configuration["id"], named.name.removeprefix(_NUMCODECS)
    if found != expected:
        reader.problem(pointer, "the id of another codec", found=found, expected=repr(expected), spec=_SPEC)
    else:
        reader.note(pointer, "the id of numcodecs repeats the name of the codec", _SPEC)
    return {name: value for name, value in named.configuration.items() if name != "id"}


def _with_element_size(
    reader: Reader, configuration: Mapping[str, JSON], pointer: str, bound: datatypes.DataType | None
) -> Mapping[str, JSON]:
    """Return the configuration of a shuffle with the omitted element size.

    In netCDF-C and zarr-python, it is the size of the array's elements, whatever the codecs before it return.
    """
    if bound is None:
        return configuration
    size = bound.dtype.itemsize if bound.is_fixed_size else 1
    reader.note(pointer, f"no elementsize, read as the item size {size}", _SPEC)
    return {**configuration, "elementsize": size}


def _read_sharding(
    reader: Reader, configuration: Mapping[str, JSON], pointer: str, elements: _Elements
) -> dict[str, JSON]:
    """Return the configuration of ``sharding_indexed``, with its codecs in current spelling."""
    result = dict(configuration)
    if "codecs" in configuration:
        codecs = _read_list(reader, configuration["codecs"], join(pointer, "codecs"), elements)
        result["codecs"] = [write_extension(codec) for codec in codecs]
    if "index_codecs" not in configuration:
        reader.note(join(pointer, "index_codecs"), "missing, read as little-endian bytes and crc32c", _SHARDING)
        result["index_codecs"] = [write_extension(LITTLE), write_extension(Named("crc32c"))]
    else:
        index = datatypes.bind(Named("uint64"))
        place = join(pointer, "index_codecs")
        codecs = read_codecs(reader, configuration["index_codecs"], place, elements.ndim + 1, index)
        result["index_codecs"] = [write_extension(codec) for codec in codecs]
    return result
