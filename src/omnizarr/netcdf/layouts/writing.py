"""The layouts of NCZarr, as they are written.

What they write is read by netCDF-C: A by 4.8.0, B by 4.8.1 and 4.9.0, C by 4.9.1 and 4.9.2, D, xarray and pure by
4.9.3 and later. No release reads v3. Layouts A to C are little-endian whatever ``_Endianness`` says, as the releases
that read them take everything for little-endian; and they have no unlimited dimensions.

Layouts xarray, pure, v3 and pure-v3 mean the same to xarray and zarr-python. xarray is D in words that they know,
and v3 is E ("Appendix E") without marks on arrays, which xarray would show as attributes.

Spec: NCZarr, "NCZarr versus Pure Zarr", "Appendix C", "Appendix D", "Appendix E".
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np

from omnizarr.errors import NodeNameError, NotRepresentableError
from omnizarr.formats import dialect_named, v2
from omnizarr.formats.conventions.nczarr_metadata import HIDDEN
from omnizarr.model import JSON, ArrayMetadata, Named
from omnizarr.netcdf import filters, forms, quantize, types
from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.layouts import attributes, user_types
from omnizarr.netcdf.layouts import xarray as for_xarray
from omnizarr.netcdf.layouts.attributes import DEFAULT_MAXSTRLEN, Style
from omnizarr.netcdf.layouts.contract import Layout, Marks
from omnizarr.netcdf.layouts.dimensions import is_anonymous
from omnizarr.netcdf.layouts.xarray import DocumentAttributes, is_no_fill
from omnizarr.netcdf.types import AnyType, UserType
from omnizarr.nodes import new_metadata
from omnizarr.nodes.new_metadata import Coding
from omnizarr.nodes.options import DEFAULT

Name = Literal["A", "B", "C", "D", "xarray", "pure", "v3", "E", "pure-v3"]

MAXSTRLEN: Final = "_nczarr_maxstrlen"
QUANTIZED: Final = tuple(quantize.ATTRIBUTES.values())
"""Special attributes that are stored as attributes."""

_SPEC: Final = "NCZarr"
_STYLES: Final[Mapping[Name, Style]] = {
    "A": "codes",
    "B": "U1",
    "C": "S1",
    "D": "S1",
    "xarray": "S1",
    "pure": "none",
    "v3": "v3",
    "E": "v3",
    "pure-v3": "none",
}
_FORMATS: Final[Mapping[Name, Literal[2, 3]]] = {name: 3 if name in {"v3", "E", "pure-v3"} else 2 for name in _STYLES}
_FOR_NETCDF: Final = frozenset({"A", "B", "C", "D", "E"})
"""Layouts that use the terms of netCDF-C, however other programs interpret them."""
_LONG_STRINGS: Final = frozenset({"v3", "pure-v3"})
_WITHOUT_NULS: Final = frozenset({"A", "B", "C", "D", "xarray", "pure", "v3", "pure-v3"})
"""Layouts in which no NULs stand at the end of text, where programs in C like to leave them: netCDF-C would show them
as u0000, and xarray as characters. netCDF4-python cuts them, too."""
_JSON_IN_TEXT: Final = frozenset({"C", "D", "E"})
"""Layouts in which text that is JSON is stored as such, as in NCZarr; in others xarray is to see text."""
_ONLY_UNLIMITED_BYTES: Final = 4096
_MAX_CHUNK_BYTES: Final = 4 * 2**20


def new_special(layout: Layout) -> dict[str, Attribute]:
    """Return the special attributes of the root of a new dataset: which program wrote it, and what it is."""
    if layout.name.startswith("pure"):
        return format_special(is_nczarr=False)
    nczarr = "1.0.0" if layout.name == "A" else f"{layout.zarr_format}.0.0"
    properties = Attribute(types.CHAR, f"version=2,omnizarr={sys.modules['omnizarr'].__version__},nczarr={nczarr}")
    return {"_NCProperties": properties, **format_special(is_nczarr=True)}


def format_special(*, is_nczarr: bool) -> dict[str, Attribute]:
    """Return the special attributes by which netCDF-C says what a dataset is; nothing of them is stored."""
    numbers = {"_SuperblockVersion": 2 if is_nczarr else 0, "_IsNetcdf4": 1}
    found = {name: Attribute(types.INT, np.array([value], types.INT.dtype)) for name, value in numbers.items()}
    return {**found, "_Format": Attribute(types.CHAR, "netCDF-4")}


# -- attributes ---------------------------------------------------------------------------


def _user_attributes(name: Name, header: GroupHeader | VariableHeader, special: Iterable[str]) -> DocumentAttributes:
    """Return the attributes of a node as JSON, and their recorded types; with some of the special ones."""
    style, as_json = _STYLES[name], name in _JSON_IN_TEXT
    given = {**header.attributes, **{each: header.special[each] for each in special if each in header.special}}
    values: dict[str, JSON] = {}
    recorded: dict[str, JSON] = {}
    nuls: dict[str, JSON] = {}
    formed: dict[str, JSON] = {}
    maxstrlen = _maxstrlen(header) if isinstance(header, VariableHeader) else DEFAULT_MAXSTRLEN
    for key, attribute in given.items():
        if key in HIDDEN and key != "_NCProperties":
            raise NotRepresentableError(
                "an attribute of this name would count as one of NCZarr's own",
                found=key,
                remedy="rename the attribute",
                spec=_SPEC,
            )
        if name in _WITHOUT_NULS and isinstance(attribute.value, str) and attribute.value.endswith("\0"):
            text = attribute.value.rstrip("\0")
            nuls[key] = len(attribute.value) - len(text)
            attribute = replace(attribute, value=text)  # noqa: PLW2901
        is_formed = attribute.form is not None and name not in _FOR_NETCDF
        is_json = as_json or (is_formed and forms.is_json(attribute))
        value, of_type = attributes.write(attribute, style, maxstrlen, as_json=is_json)
        if is_formed:
            value, of_type, formed[key] = _formed(key, attribute, value, of_type, style)
        values[key] = [value] if style == "codes" and not isinstance(value, str | list) else value
        if of_type is not None and key not in QUANTIZED:
            recorded[key] = of_type
    return DocumentAttributes(values, recorded, nuls, formed)


def _formed(
    key: str, attribute: Attribute, value: JSON, of_type: str | None, style: Style
) -> tuple[JSON, str | None, JSON]:
    """Return the JSON of an attribute in its shape, what is recorded as its type, and the mark of its form.

    To netCDF-C, lists in lists are JSON, which it shows as text. Then the mark says the type of the numbers.
    """
    mark: dict[str, JSON] = dict(attribute.form or {})
    value = forms.shaped(key, attribute, value)
    if isinstance(value, list) and any(isinstance(each, list) for each in value) and of_type is not None:
        mark["of"] = of_type
        of_type = attributes.recorded_type(Attribute.of(""), style)
    return value, of_type, mark


def _maxstrlen(header: VariableHeader) -> int:
    """Return the longest string that a variable can hold, in bytes."""
    given = header.attributes.get(MAXSTRLEN, header.special.get(MAXSTRLEN))
    if given is None or isinstance(given.value, str) or given.type.dtype.kind not in "iu" or len(given.value) != 1:
        return DEFAULT_MAXSTRLEN
    return max(int(given.value[0]), 1)


def _with_types(name: Name, in_document: DocumentAttributes, marks: Mapping[str, JSON]) -> Marks:
    """Return attributes and marks of a node, with the types of all of them, where the layout puts each.

    `marks` are by the names that they have in layout D.
    """
    values, recorded = in_document.values, in_document.types
    beside = _beside_types(in_document) if name in {"xarray", "v3"} else {}
    if name in {"v3", "E"}:
        every = {**recorded, **dict.fromkeys((*marks, "_nczarr_attrs"), "json")}
        return Marks(
            {
                **values,
                **marks,
                "_nczarr_attrs": {
                    "attribute_types": [
                        {"name": name, "configuration": {"type": of_type}} for name, of_type in every.items()
                    ],
                    **beside,
                },
            }
        )
    if name in {"D", "xarray"}:
        every = {**recorded, **dict.fromkeys((*marks, "_nczarr_attr"), "|J0")}
        return Marks({**values, **marks, "_nczarr_attr": {"types": every, **beside}})
    if name == "C":
        return Marks({**values, "_nczarr_attr": {"types": recorded}}, dict(marks))
    if name == "B":
        upper = {key.upper(): value for key, value in marks.items()}
        return Marks({**values, "_NCZARR_ATTR": {"types": recorded}}, upper)
    if name == "A":
        objects = {_OBJECTS[key]: value for key, value in marks.items()}
        return Marks(values, {}, {**objects, ".nczattr": {"types": recorded}})
    return Marks(values)


def _beside_types(in_document: DocumentAttributes) -> dict[str, JSON]:
    """Return what a mark says of attributes beside their types: NULs at the end, and forms unknown to netCDF."""
    return {
        **({"nuls": in_document.nuls} if in_document.nuls else {}),
        **({"forms": in_document.forms} if in_document.forms else {}),
    }


_OBJECTS: Final = {"_nczarr_superblock": ".nczarr", "_nczarr_group": ".nczgroup", "_nczarr_array": ".nczvar"}


# -- groups ----------------------------------------------------------------------------------


def check_name(header: GroupHeader | VariableHeader) -> None:
    """Raise NodeNameError if no layout has a path for a group or variable."""
    if "\\" in header.name:
        raise NodeNameError(
            "no path in Zarr has a backslash, which netCDF allows in names",
            found=repr(header.name),
            remedy="choose another name",
            spec='Zarr v2, "Logical storage paths"',
        )


def _group(name: Name, header: GroupHeader, is_root: bool) -> Marks:  # noqa: FBT001 - the contract's
    check_name(header)
    special = ("_NCProperties",) if is_root else ()
    in_document = _user_attributes(name, header, special)
    content: dict[str, JSON] = {"dimensions": {each.name: _size(each) for each in header.dimensions.values()}}
    content |= {"arrays": list(header.variables), "groups": list(header.groups)}
    version: dict[str, JSON] = {"version": "2.0.0", **({"layout": name} if name == "xarray" else {})}
    if name in {"v3", "E"}:
        content["dimensions"] = [
            {"name": each.name, "size": each.size, "unlimited": int(each.unlimited)}
            for each in header.dimensions.values()
        ]
        content["subgroups"] = content.pop("groups")
        version = {"version": "3.0.0", "format": 3}
    elif name in {"A", "B", "C"}:
        dims: JSON = {each.name: each.size for each in header.dimensions.values()}
        content = {"dims": dims, "vars": content["arrays"], "groups": content["groups"]}
        version = {"zarr_format": 2, "nczarr_version": "1.0.0"} if name == "A" else version
    superblock: dict[str, JSON] = {"_nczarr_superblock": version} if is_root else {}
    return _with_types(name, in_document, {"_nczarr_group": content, **superblock})


def _size(dimension: DimensionHeader) -> JSON:
    return {"size": dimension.size, "unlimited": 1} if dimension.unlimited else dimension.size


# -- variables ------------------------------------------------------------------------------------


def _variable(
    name: Name,
    header: VariableHeader,
    group_path: str,
    dimensions: Mapping[str, DimensionHeader],
    xarray: bool,  # noqa: FBT001 - the contract's
) -> Marks:
    given_header = header
    header, _ = user_types.plain(name, header)
    in_document = user_types.understood(given_header, _user_attributes(name, header, QUANTIZED), name, _STYLES[name])
    references = list(header.dimensions)
    beside: dict[str, JSON] = {}
    if name not in _FOR_NETCDF:
        in_document = for_xarray.understood(header, in_document, _FORMATS[name])
        given = filters.chain(header.special, header.type)
        beside = for_xarray.beside(header, in_document, given, filters.widely_read(given, header.type, _FORMATS[name]))
    else:
        beside = {"added": list(in_document.added)} if in_document.added else {}
    beside |= user_types.mark_of(given_header)
    if xarray and name in {"B", "C", "D", "xarray", "pure"} and _are_for_xarray(name, header, group_path):
        names: list[JSON] = [each.rpartition("/")[2] for each in references]
        in_document.values["_ARRAY_DIMENSIONS"] = names if names or name not in {"C", "D"} else ["_scalar_"]
    alias: dict[str, JSON] = {"type_alias": header.type.name} if header.type in (types.CHAR, types.STRING) else {}
    if name == "v3":
        odd = for_xarray.odd_types(header, in_document)
        types_of = {**({"attribute_types": odd} if odd else {}), **_beside_types(in_document)}
        return Marks(in_document.values, listed={"dimension_references": references, **types_of, **beside})
    mark: dict[str, JSON]
    if name == "E":
        mark = {"dimension_references": references, **alias, **beside}
    elif name in {"D", "xarray"}:
        scalar: dict[str, JSON] = {} if references else {"scalar": 1}
        mark = {"dimension_references": references, **scalar, "storage": "chunked"}
        mark |= {**(alias if name == "xarray" else {}), **beside}
    else:
        mark = {"dimrefs": references, "storage": "chunked" if references else "scalar", **beside}
    return _with_types(name, in_document, {"_nczarr_array": mark})


def _are_for_xarray(name: Name, header: VariableHeader, group_path: str) -> bool:
    """Return whether ``_ARRAY_DIMENSIONS`` is written: not below the root, nor of dimensions that are not in the root.

    Where nothing else keeps the names, they are written nevertheless, as netCDF-C does, unless they are not names.

    Spec: NCZarr, "XArray".
    """
    if name == "xarray":
        return True
    if name == "pure":
        return not header.dimensions or not all(is_anonymous(each.rpartition("/")[2]) for each in header.dimensions)
    return not group_path and all(each.count("/") == 1 for each in header.dimensions)


# -- arrays -------------------------------------------------------------------------------------------


def _array(
    name: Name,
    header: VariableHeader,
    group_path: str,
    dimensions: Mapping[str, DimensionHeader],
    xarray: bool,  # noqa: FBT001 - the contract's
    is_complete: bool = False,  # noqa: FBT001, FBT002 - as above
) -> ArrayMetadata:
    check_name(header)
    marks = _variable(name, header, group_path, dimensions, xarray)
    _check_type(name, header, group_path)
    header, made_of = user_types.plain(name, header)
    nc_type = header.type
    sizes = [dimensions[each] for each in header.dimensions]
    has_scalars = name not in {"A", "B", "C", "D"}
    shape = [each.size for each in sizes] if sizes or has_scalars else [1]
    is_v3 = _FORMATS[name] == 3
    # The data type of an array whose elements are no numbers, and the bytes in an element.
    dtype, item_size = (
        _dtype(name, header, nc_type)
        if made_of is None
        else (user_types.spelled(made_of, _FORMATS[name]), made_of.itemsize)
    )
    steps = filters.chain(header.special, nc_type)
    if name not in _FOR_NETCDF:
        steps = filters.widely_read(steps, nc_type, _FORMATS[name])
    order = "big" if _is_big(header) and name not in {"A", "B", "C"} else "little"
    serializer: list[Named] = []
    if is_v3:
        is_text = dtype == "string"
        has_order = item_size > 1 and not (made_of is not None and made_of.kind == "V" and not made_of.names)
        serializer = [Named("vlen-utf8") if is_text else Named("bytes", {"endian": order} if has_order else {})]
    metadata = new_metadata.array_metadata(
        dialect_named(f"v{_FORMATS[name]}"),
        shape=shape,
        dtype=dtype,
        chunks=_chunks(header, sizes, item_size) or [1] * len(shape),
        coding=Coding(codecs=[*serializer, *steps]),
        fill_value=_fill(name, header, nc_type, item_size, is_complete=is_complete),
        dimension_names=[each.name for each in sizes] if is_v3 and sizes else None,
    )
    metadata = replace(metadata, attributes=marks.attributes, unknown=marks.members)
    return metadata if is_v3 else _spelled(name, metadata, header, nc_type)


def _check_type(name: Name, header: VariableHeader, group_path: str) -> None:
    """Raise NotRepresentableError if a layout has no elements of a variable's type."""
    nc_type = header.type
    why = user_types.why_not(name, nc_type)
    if why or (nc_type is types.STRING and name in {"A", "B"}):
        raise NotRepresentableError(
            f"layout {name} of NCZarr has no such type{f': {why}' if why else ''}",
            path=f"{group_path}/{header.name}"[1:],
            found=nc_type.name,
            remedy="choose another type" if isinstance(nc_type, UserType) else "use char, or layout C or D",
            spec='NCZarr, "The NCZarr Data Model"',
        )


def _dtype(name: Name, header: VariableHeader, nc_type: AnyType) -> tuple[Any, int]:
    """Return the data type of an array, and the bytes in an element."""
    if nc_type is types.CHAR:
        return ("uint8" if name == "E" else "S1"), 1
    if nc_type is types.STRING:
        length = _maxstrlen(header)
        if name in _LONG_STRINGS:
            return "string", length
        return (f"r{8 * length}" if name == "E" else f"S{length}"), length
    is_big = _is_big(header) and name in {"D", "xarray", "pure"}
    return nc_type.dtype.newbyteorder(">" if is_big else "<"), nc_type.dtype.itemsize


def _is_big(header: VariableHeader) -> bool:
    endianness = header.special.get("_Endianness")
    return endianness is not None and endianness.value == "big"


def _fill(name: Name, header: VariableHeader, nc_type: AnyType, item_size: int, *, is_complete: bool) -> Any:
    """Return the fill value as it is to be cast; None if missing chunks hold nothing in particular.

    The fill value of v2 is what xarray masks. So it is None where nothing is masked, if it need not say what missing
    chunks hold; and for strings, which the attribute masks.
    """
    attribute = header.attributes.get("_FillValue")
    if isinstance(nc_type, UserType):
        return DEFAULT if _FORMATS[name] == 3 else None
    if attribute is None and is_no_fill(header):
        if _FORMATS[name] == 2:
            return None
        if is_complete and not nc_type.is_text:  # of a file, in which elements that were never written are zero
            return nc_type.dtype.type(0)
    given = None if nc_type.is_text else attributes.fill_number(attribute, nc_type)
    is_unmasked = nc_type is types.STRING if nc_type.is_text else given is None
    if is_complete and name in {"xarray", "pure"} and (attribute is None or is_unmasked):
        return None
    if not nc_type.is_text:
        return nc_type.default_fill if given is None else given
    text = _fill_text(attribute, nc_type)
    if name in _LONG_STRINGS and nc_type is types.STRING:
        return text.decode("utf-8", "replace")
    if name == "E":
        return (text or b"\0")[0] if nc_type is types.CHAR else text[:item_size].ljust(item_size, b"\0")
    return text[:item_size]


def _fill_text(attribute: Attribute | None, nc_type: AnyType) -> bytes:
    if attribute is None or len(attribute.value) == 0 or not attribute.type.is_text:
        return b""
    value = attribute.value if isinstance(attribute.value, str) else str(attribute.value[0])
    text = value.encode("utf-8", "surrogateescape")
    return text[:1] if nc_type is types.CHAR else text


def _spelled(name: Name, metadata: ArrayMetadata, header: VariableHeader, nc_type: AnyType) -> ArrayMetadata:
    """Return metadata whose document has the words that netCDF-C has for some types."""
    if name in {"xarray", "pure"}:
        return metadata
    if nc_type is types.CHAR:
        metadata = v2.spelled(metadata, "dtype", "<U1" if name in {"A", "B"} else ">S1")
    elif name == "A" and nc_type.dtype.itemsize == 1:  # netCDF-C 4.8.0 dies of "|i1"
        metadata = v2.spelled(metadata, "dtype", f"<{nc_type.dtype.str[1:]}")
    attribute = header.attributes.get("_FillValue")
    if nc_type.is_text and attribute is not None:
        text = _fill_text(attribute, nc_type).decode("utf-8", "replace")
        metadata = v2.spelled(metadata, "fill_value", text)
    return metadata


# -- chunks ----------------------------------------------------------------------------------------------


def _chunks(header: VariableHeader, sizes: Sequence[DimensionHeader], item_size: int) -> list[int]:
    """Return the chunk lengths that ``_ChunkSizes`` says, else some like netCDF's own."""
    storage = header.special.get("_Storage")
    is_whole = storage is not None and storage.value in {"contiguous", "compact"}
    given = header.special.get("_ChunkSizes")
    if not is_whole and given is not None and not isinstance(given.value, str) and len(given.value) == len(sizes):
        return [max(int(length), 1) for length in given.value]
    if is_whole and not any(each.unlimited for each in sizes):
        return [max(each.size, 1) for each in sizes]
    unlimited = sum(each.unlimited for each in sizes)
    if unlimited == len(sizes) and sizes:
        return [max(int((_ONLY_UNLIMITED_BYTES / item_size) ** (1 / unlimited)), 1)] * unlimited
    lengths = [1 if each.unlimited else max(each.size, 1) for each in sizes]
    if math.prod(lengths) * item_size > _MAX_CHUNK_BYTES:
        return list(new_metadata.guess_chunks(tuple(lengths), item_size, _MAX_CHUNK_BYTES))
    return lengths


def _made(name: Name) -> Layout:
    group: Callable[[GroupHeader, bool], Marks] = partial(_group, name)
    return Layout(
        name=name,
        zarr_format=_FORMATS[name],
        group=group,
        why_not=partial(user_types.why_not, name),
        variable=partial(_variable, name),
        array=partial(_array, name),
        has_unlimited=name in {"D", "xarray", "v3", "E"},
        has_string_attributes=name not in {"A", "B"},
        has_long_strings=name in _LONG_STRINGS,
        lists_arrays=name == "v3",
    )


LAYOUTS: Final[Mapping[str, Layout]] = {name: _made(name) for name in _FORMATS}
"""All layouts, by name."""
