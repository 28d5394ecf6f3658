"""Whether netCDF-C can compress a variable by blosc: its filter fails where it cannot make a chunk smaller.

What fails is the whole file, when it is closed, and nothing tells which variable it was. So chunks are compressed here
first. Source: ``H5Zblosc.c`` of netCDF-C, which gives blosc as much room as the chunk has.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.codecs import registry
from omnizarr.codecs.contract import BytesSpec
from omnizarr.netcdf import types
from omnizarr.netcdf.files.planning import BLOSC, Plan
from omnizarr.netcdf.header import Source, VariableHeader

_COMPRESSORS: Final[Mapping[str, str]] = {option: option.replace("blosc_", "") for option in BLOSC.values()}
_NAMES: Final[Mapping[str, str]] = {"lz": "blosclz"}
_REFERENCE: Final = np.dtype([("length", "<u4"), ("address", "<u8"), ("index", "<u4")])
"""The data type of HDF5's reference to a string in a chunk."""


def candidates(planned: Plan) -> list[str]:
    """Return the full names of the variables that are to be compressed by blosc."""
    return [name for name, options in planned.options.items() if options.get("compression") in _COMPRESSORS]


def nbytes(planned: Plan, name: str) -> int:
    """Return the size of a variable in bytes."""
    header, shape = _found(planned, name)
    return math.prod(shape) * header.type.dtype.itemsize


def can_compress(source: Source, planned: Plan, name: str) -> bool:
    """Return whether blosc makes all chunks of a variable smaller. Of strings, chunks are guessed."""
    header, shape = _found(planned, name)
    options = planned.options[name]
    chunks = options.get("chunksizes") or [max(length, 1) for length in shape]
    fill = header.attributes.get("_FillValue")
    dtype = header.type.dtype
    padding = np.zeros(chunks, dtype) if fill is None or isinstance(fill.value, str) else np.full(chunks, fill.value)
    if dtype.kind in "iuf" and fill is None and isinstance(header.type, types.NcType):
        padding = np.full(chunks, header.type.default_fill)
    is_text = header.type is types.STRING
    stored = _REFERENCE if is_text else dtype.newbyteorder(options.get("endian", "little"))
    option = _COMPRESSORS[options["compression"]]
    codec = registry.find("numcodecs.blosc").bind(
        {
            "cname": _NAMES.get(option, option),
            "clevel": options["complevel"],
            "shuffle": options["blosc_shuffle"],
            "typesize": stored.itemsize,
        },
        BytesSpec(math.prod(chunks) * stored.itemsize, stored.itemsize),
    )
    for selection in _chunks(shape, chunks):
        values = source.read(name, selection)
        whole = np.full(chunks, "", object) if is_text else padding.astype(dtype)
        whole[tuple(map(slice, values.shape))] = values
        data = (_references(whole) if is_text else whole.astype(stored)).tobytes()
        if len(codec.encode(data)) > len(data):
            return False
    return True


def _found(planned: Plan, name: str) -> tuple[VariableHeader, tuple[int, ...]]:
    path, _, own = name.rpartition("/")
    header = dict(planned.root.walk())[path].variables[own]
    sizes = planned.root.sizes()
    return header, tuple(sizes[each].size for each in header.dimensions)


def _chunks(shape: tuple[int, ...], chunks: Any) -> Iterator[tuple[slice, ...]]:
    """Yield selections of single chunks that together are an array."""
    starts = [range(0, length, chunk) for length, chunk in zip(shape, chunks, strict=True)]
    for corner in itertools.product(*starts):
        yield tuple(
            slice(start, min(start + chunk, length)) for start, chunk, length in zip(corner, chunks, shape, strict=True)
        )


def _references(texts: NDArray[Any]) -> NDArray[Any]:
    references = np.zeros(texts.size, _REFERENCE)
    references["length"] = [len(text.encode("utf-8", "surrogateescape")) for text in texts.ravel()]
    references["address"], references["index"] = 4096, np.arange(1, texts.size + 1)
    return references
