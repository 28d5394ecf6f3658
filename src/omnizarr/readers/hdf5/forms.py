"""Datatypes of HDF5 as data types of Zarr v3: with the same bytes, or made from them when they are read.

Spec: Zarr v3 core, "Core data types"; zarr-extensions for ``struct``, ``string`` and the types of bytes.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from omnizarr.model import JSON, Named, datatypes
from omnizarr.readers.hdf5.datatypes import Datatype

_TAG: Final = "NUMPY:"
_NUMBERS: Final = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


@dataclass(frozen=True, slots=True)
class Form:
    """How the elements of a datatype are shown.

    Attributes
    ----------
    data_type : JSON
        The data type in a document.
    order : {"little", "big", ""}
        Byte order of the stored elements; "" if they have none.
    made : {"", "text", "packed", "ragged", "json"}
        What the reader makes of stored elements: nothing, texts, numbers and compounds without gaps, vectors of
        different lengths, or JSON as text.
    dtype : dtype or None
        What the stored bytes are, the packed elements, or the items of vectors; None for texts.
    shape : tuple of int
        Dimensions within each element.
    is_v2 : bool
        Whether only Zarr v2 has a data type for these elements. The array has then a document of v2.
    """

    data_type: JSON
    order: Literal["little", "big", ""] = ""
    made: Literal["", "text", "packed", "ragged", "json"] = ""
    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    is_v2: bool = False


class Unshown(NamedTuple):
    """Why there is no form."""

    reason: str


def of(datatype: Datatype) -> Form | Unshown:
    """Return how elements are shown, or why they are not."""
    if datatype.kind == "array" and datatype.base is not None and not datatype.base.shape:
        inner = of(datatype.base)
        return inner if isinstance(inner, Unshown) else replace(inner, shape=datatype.shape)
    if datatype.kind == "vlen" and datatype.is_text:
        return Form("string", made="text")
    if datatype.kind == "vlen" and datatype.base is not None:
        return _ragged(datatype.base)
    if datatype.kind == "reference" and datatype.name == "object reference":
        return Form("string", made="text")
    if datatype.kind == "compound" and not datatype.is_complex:
        return _compound(datatype)
    plain = _plain(datatype)
    if plain is not None:
        name, dtype = plain
        return Form(name, _order(dtype), dtype=dtype)
    packed = _packed(datatype)
    if packed is None:
        return Unshown(f"Zarr has no data type for {_title(datatype)}")
    return Form(packed[0], _order(packed[1]), "packed", packed[1])


def _ragged(base: Datatype) -> Form:
    """Return the form of vectors of different lengths: of JSON, if their items are no numbers."""
    plain = _plain(base) or _packed(base)
    if plain is None or plain[1].kind not in "biufc":
        return Form("string", made="json")
    return Form("omnizarr.vlen_array", made="ragged", dtype=plain[1].newbyteorder("<"), is_v2=True)


def _ends_early(datatype: Datatype) -> bool:
    """Return whether texts end at their first NUL, or at the spaces that fill them: NumPy knows only NULs that fill."""
    return datatype.size > 1 and datatype.padding != 1


def _packed(datatype: Datatype) -> tuple[JSON, np.dtype[Any]] | None:
    """Return the data type for numbers whose bits must be moved, and texts that must be cut, and that of NumPy."""
    if datatype.kind == "string" and datatype.size:
        configuration: dict[str, JSON] = {"length_bytes": datatype.size}
        return {"name": "null_terminated_bytes", "configuration": configuration}, np.dtype(f"S{datatype.size}")
    bits = datatype.bits if datatype.kind != "enum" or datatype.base is None else datatype.base.bits
    dtype = None if bits is None else bits.dtype
    return None if dtype is None else (f"{_NUMBERS[dtype.kind]}{8 * dtype.itemsize}", dtype.newbyteorder("<"))


def _title(datatype: Datatype) -> str:
    if datatype.kind == "vlen":
        return f"sequences of variable length ({datatype.base.title() if datatype.base is not None else ''})"
    return datatype.title()


def _plain(datatype: Datatype) -> tuple[JSON, np.dtype[Any]] | None:
    """Return the data type for elements without fields, and that of NumPy."""
    if datatype.kind == "string":
        if not datatype.size or _ends_early(datatype):
            return None
        return {"name": "null_terminated_bytes", "configuration": {"length_bytes": datatype.size}}, np.dtype(
            f"S{datatype.size}"
        )
    if datatype.kind == "opaque":
        if (tagged := _tagged(datatype)) is not None:
            return tagged
        return {"name": "raw_bytes", "configuration": {"length_bytes": datatype.size}}, np.dtype(f"V{datatype.size}")
    if datatype.name == "bfloat16" and importlib.util.find_spec("ml_dtypes") is not None:
        return "bfloat16", datatypes.bind(Named("bfloat16")).dtype
    if datatype.kind not in {"integer", "float", "bitfield", "enum", "complex", "compound"}:
        return None
    dtype = datatype.dtype()
    if dtype is None or dtype.names:
        return None
    if dtype.kind == "b":
        return "bool", dtype
    return f"{_NUMBERS[dtype.kind]}{8 * dtype.itemsize}", dtype


def _tagged(datatype: Datatype) -> tuple[JSON, np.dtype[Any]] | None:
    """Return the type that h5py has noted in the tag of opaque elements: of times, and of bytes."""
    if not datatype.name.startswith(_TAG):
        return None
    try:
        dtype = np.dtype(datatype.name.removeprefix(_TAG))
    except (TypeError, ValueError):
        return None
    if dtype.itemsize != datatype.size:
        return None
    if dtype.kind == "S":
        return {"name": "null_terminated_bytes", "configuration": {"length_bytes": datatype.size}}, dtype
    if dtype.kind not in "Mm":
        return None
    unit, step = np.datetime_data(dtype)
    name = "numpy.datetime64" if dtype.kind == "M" else "numpy.timedelta64"
    return {"name": name, "configuration": {"unit": unit, "scale_factor": step}}, dtype


def _order(dtype: np.dtype[Any]) -> Literal["little", "big", ""]:
    if dtype.itemsize == 1 or dtype.kind in "bSV":
        return ""
    return "big" if dtype.byteorder == ">" else "little"


def _compound(datatype: Datatype) -> Form | Unshown:
    """Return the form of a compound: with its own bytes, if it has no gaps and one byte order."""
    found = _record(datatype)
    if isinstance(found, str):
        return Unshown(f"a compound has the member {found}")
    if found is None:
        return Form("string", made="json")
    stored, packed = datatype.dtype(), found.dtype
    if found.has_arrays:
        return Form(found.data_type, "little", "packed", packed.newbyteorder("<"), is_v2=True)
    order: Literal["little", "big", ""] = "big" if found.orders == {"big"} else "little" if found.orders else ""
    if (
        stored is None
        or found.is_moved
        or len(found.orders) > 1
        or stored.itemsize != packed.itemsize
        or not _same_places(stored, packed)
    ):
        return Form(found.data_type, "little", "packed", packed.newbyteorder("<"))
    return Form(found.data_type, order, dtype=stored)


class _Record(NamedTuple):
    """A compound of numbers and bytes: its data type, its packed type, its byte orders."""

    data_type: JSON
    dtype: np.dtype[Any]
    orders: set[str]
    has_arrays: bool
    is_moved: bool
    """Whether the bytes of a member are not its own in NumPy."""


def _record(datatype: Datatype) -> _Record | str | None:
    """Return a compound; None if JSON must show it, or the name of a member that nothing shows."""
    fields: list[JSON] = []
    types: list[Any] = []
    orders: set[str] = set()
    has_arrays = is_moved = False
    is_plain = True
    for name, _, each in datatype.fields:
        one = each
        shape: tuple[int, ...] = ()
        while one.kind == "array" and one.base is not None:
            one, shape = one.base, shape + one.shape
        if one.kind == "compound" and not one.is_complex:
            inner = _record(one)
            if isinstance(inner, str):
                return f"{name}/{inner}"
            if inner is None:
                is_plain = False
                continue
            data_type, dtype = inner.data_type, inner.dtype
            orders |= inner.orders
            has_arrays |= inner.has_arrays
            is_moved |= inner.is_moved
        elif one.kind in {"vlen", "reference"} or not name:
            is_plain = False
            continue
        else:
            plain = _plain(one) if one.name != "bfloat16" else None
            is_moved |= plain is None
            plain = plain or _packed(one)
            if plain is None:
                return f"{name!r}: {_title(one)}"
            data_type, dtype = plain
            orders |= {_order(dtype)} - {""}
        has_arrays |= bool(shape)
        fields.append({"name": name, "data_type": data_type})
        types.append((name, dtype, shape))
    if not is_plain:
        return None
    if not types:
        return "that is missing: it has none"
    return _Record(
        {"name": "struct", "configuration": {"fields": fields}}, np.dtype(types), orders, has_arrays, is_moved
    )


def _same_places(first: np.dtype[Any], second: np.dtype[Any]) -> bool:
    if not first.names or not second.names:
        return True
    for name in first.names:
        if first.fields is None or second.fields is None or first.fields[name][1] != second.fields[name][1]:
            return False
        if not _same_places(first.fields[name][0], second.fields[name][0]):
            return False
    return True


def fill(form: Form, raw: bytes | None) -> JSON:
    """Return the fill value for a document, from that of HDF5 in bytes; None: zero.

    Texts have the empty text: see the caller for theirs.
    """
    if form.dtype is None:
        return ""
    named = Named(form.data_type) if isinstance(form.data_type, str) else _named(form.data_type)
    bound = datatypes.bind(named)
    if raw is None:
        return bound.fill_to_json(bound.default_fill_value)
    value = np.frombuffer(raw, form.dtype.base, 1)
    return bound.fill_to_json(value.astype(bound.dtype)[0])


def _named(document: Any) -> Named:
    return Named(document["name"], document["configuration"])
