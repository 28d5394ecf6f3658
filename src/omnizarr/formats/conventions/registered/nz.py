"""NZ-1.0, the convention of netCDF for Zarr v3: named dimensions that arrays of a group share, and typed attributes.

Spec: https://github.com/zarr-conventions/nz, a proposal of 2026; in drafts it was nzug.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from omnizarr.errors import OmnizarrError
from omnizarr.formats.conventions import fill_values, nczarr_metadata
from omnizarr.formats.conventions.contract import Carried, Convention, Fault, Nodes
from omnizarr.formats.conventions.registered.records import LIST, Checking, Known, with_records
from omnizarr.formats.reader import is_object
from omnizarr.model import ArrayMetadata, Loss, Metadata, datatypes, dimensions, thawed

DECLARED: Final = "conventions"
NAME: Final = "nz"
"""Of the convention, and the wish to follow it."""
_FILL_VALUE: Final = "_FillValue"
SPELLINGS: Final = (DECLARED, "Conventions")
IDENTIFIER: Final = "NZ-1.0"
TYPES: Final = "_nczarr_attr"
TYPE_NAMES: Final = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip
"""Types of attributes, as the convention names them."""

NZ: Final = Known(
    name=IDENTIFIER,
    uuid="d0a980b5-c644-4dcc-85a1-283799a58f40",
    schema_url="https://raw.githubusercontent.com/zarr-conventions/nz/refs/tags/v1/schema.json",
    spec_url="https://github.com/zarr-conventions/nz/blob/v1/README.md",
    description="Structural interoperability layer for scientific array conventions on Zarr v3",
    repositories=("zarr-conventions/nz", "zarr-conventions/nzug"),
    keys=(),
    nodes=("array", "group"),
    state="proposal",
)


def is_named(node: Metadata) -> bool:
    """Return whether the attribute ``conventions`` of a node, or ``Conventions``, names NZ-1.0."""
    said = (node.attributes.get(name) for name in SPELLINGS)
    return any(isinstance(text, str) and IDENTIFIER in text.upper().split() for text in said)


def is_within(nodes: Nodes) -> bool:
    """Return whether the hierarchy follows NZ-1.0: its root says so."""
    root = nodes.get("")
    return root is not None and (is_named(root) or NZ.is_declared(root))


def _recognise(path: str, nodes: Nodes) -> bool:
    return NAME in nodes.wishes or is_within(nodes) or NZ.is_declared(nodes[path])


# -- writing -----------------------------------------------------------------------------------------------------------


def _carry(metadata: Metadata, path: str, nodes: Nodes, dialect: str) -> Carried:
    if NAME not in nodes.wishes or dialect != "v3":
        return Carried(metadata)
    remarks: list[str] = []
    losses: list[Loss] = []
    attributes = {name: thawed(value) for name, value in metadata.attributes.items()}
    if not path or isinstance(metadata, ArrayMetadata):
        attributes = with_records(attributes, [NZ])
    if not path and not isinstance(metadata, ArrayMetadata) and not _is_lower(attributes):
        said = next((text for name in SPELLINGS if isinstance(text := attributes.get(name), str) and text), "")
        attributes[DECLARED] = f"{IDENTIFIER} {said}".strip()
        remarks.append(f"the attribute {DECLARED} names {IDENTIFIER}")
    _type_attributes(attributes, path, nodes, remarks)
    if isinstance(metadata, ArrayMetadata):
        metadata = _with_names(metadata, path, nodes, remarks, losses)
        _fill_as_number(attributes, metadata, path, remarks, losses)
    return Carried(replace(metadata, attributes=attributes), tuple(remarks), tuple(losses))


def _is_lower(attributes: Mapping[str, Any]) -> bool:
    said = attributes.get(DECLARED)
    return isinstance(said, str) and IDENTIFIER in said.split()


def _type_attributes(attributes: dict[str, Any], path: str, nodes: Nodes, remarks: list[str]) -> None:
    """Write the types of attributes that NCZarr records, in the names of Zarr v3; texts have the default type."""
    node, group = nodes[path], nodes.get(path.rpartition("/")[0]) if path else None
    in_group = nczarr_metadata.listed(group, path.rpartition("/")[2]) if group is not None else None
    named = {name: _type_name(said) for name, said in nczarr_metadata.find(node, in_group=in_group).types.items()}
    kept = {name: said for name, said in named.items() if said is not None and name in attributes}
    wanted = {"types": kept} if kept else None
    if attributes.get(TYPES) != wanted:
        remarks.append("types of attributes get the names of Zarr v3")
        attributes.pop(TYPES, None)
        if wanted is not None:
            attributes[TYPES] = wanted


def _type_name(said: object) -> str | None:
    if said in TYPE_NAMES:
        return str(said)
    try:
        name = np.dtype(str(said)).name
    except (TypeError, ValueError, SyntaxError):
        return None
    return name if name in TYPE_NAMES else None


def _with_names(array: ArrayMetadata, path: str, nodes: Nodes, remarks: list[str], losses: list[Loss]) -> ArrayMetadata:
    """Name all dimensions of an array, such that each name has one length in its group."""
    there = dimensions.names_of(array) or (None,) * len(array.shape)
    known = _lengths(path.rpartition("/")[0], nodes)
    names = []
    for name, length in zip(there, array.shape, strict=True):
        made = name or f"dim_{length}"
        if name and known.get(name, length) != length:
            made = f"{name}_{length}"
            what = f"the name {name!r} of a dimension, which becomes {made!r}"
            why = f"NZ-1.0 wants one length of a name in a group, and other arrays have {known[name]}"
            losses.append(Loss(path, "/dimension_names", what, why))
        elif not name:
            remarks.append(f"a dimension without a name is called {made}")
        names.append(made)
    return replace(array, dimension_names=tuple(names))


def _lengths(group: str, nodes: Nodes) -> dict[str, int]:
    """Return the length of each dimension in a group: that of its coordinate, else that of the first array."""
    key = "lengths", group
    if key in nodes.memos:
        known: dict[str, int] = nodes.memos[key]
        return known
    found: dict[str, int] = {}
    nodes.memos[key] = found
    arrays = sorted(nodes.arrays_in(group).items())
    for only_coordinates in (True, False):
        for name, array in arrays:
            names = dimensions.names_of(array) or ()
            if (names == (name,)) is only_coordinates:
                for each, length in zip(names, array.shape, strict=False):
                    found.setdefault(each or "", length)
    return found


def _fill_as_number(
    attributes: dict[str, Any], array: ArrayMetadata, path: str, remarks: list[str], losses: list[Loss]
) -> None:
    """Write ``_FillValue`` of floats as a number, which xarray writes as base64 in v3."""
    said = attributes.get(_FILL_VALUE)
    try:
        dtype = datatypes.bind(array.data_type).dtype
    except OmnizarrError:
        return
    if not isinstance(said, str) or dtype.kind != "f":
        return
    value = fill_values.decode(said, dtype)
    if value is None or said in ("NaN", "Infinity", "-Infinity"):
        return
    attributes[_FILL_VALUE] = float(value) if np.isfinite(value) else str(float(value)).replace("nan", "NaN")
    if np.isinf(value):
        attributes[_FILL_VALUE] = "Infinity" if value > 0 else "-Infinity"
    remarks.append("_FillValue becomes a number")
    what = "that xarray itself opens the array"
    losses.append(Loss(path, f"/attributes/{_FILL_VALUE}", what, "it wants _FillValue of floats as base64 in Zarr v3"))


# -- what is wrong -----------------------------------------------------------------------------------------------------


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    node = nodes[path]
    at = Checking(NZ, path, node, "nz-invalid")
    if node.dialect != "v3":
        yield at.fault((LIST,), "NZ-1.0 is for Zarr v3", node.dialect, "v3")
    if not path and not isinstance(node, ArrayMetadata) and not is_named(node):
        message = "the root group does not name NZ-1.0"
        yield at.fault((DECLARED,), message, node.attributes.get(DECLARED), IDENTIFIER)
    yield from _of_types(at)
    if isinstance(node, ArrayMetadata):
        names = dimensions.names_of(node)
        if names is None or not all(isinstance(name, str) and name for name in names):
            message = "every dimension needs a name"
            expected = f"{len(node.shape)} names"
            found = None if names is None else list(names)
            yield Fault("nz-invalid", path, "/dimension_names", message, found, expected)
        return
    known: dict[str, tuple[str, int]] = {}
    for name, array in sorted(nodes.arrays_in(path).items()):
        for dimension, length in zip(dimensions.names_of(array) or (), array.shape, strict=False):
            first, expected_length = known.setdefault(dimension or "", (name, length))
            if dimension and length != expected_length:
                message = f"the dimension {dimension!r} of {name!r} has another length than in {first!r}"
                yield Fault("nz-shared-dimension", path, "", message, length, expected_length)


def _of_types(at: Checking) -> Iterator[Fault]:
    """Yield what is wrong with the types of attributes."""
    found = at.node.attributes.get(TYPES)
    if found is None:
        return
    types = found.get("types") if is_object(found) else None
    if not is_object(types):
        yield at.fault((TYPES,), "no types of attributes", found, "an object with types")
        return
    for name, said in types.items():
        if said not in TYPE_NAMES:
            message = "the type of an attribute is not the name of a data type of Zarr v3"
            yield at.fault((TYPES, "types", name), message, said, f"one of {', '.join(TYPE_NAMES)}")


CONVENTION: Final = Convention(
    name=NAME,
    title=IDENTIFIER,
    spec=NZ.spec_url,
    attributes=frozenset({*SPELLINGS, TYPES}),
    recognise=_recognise,
    carry=_carry,
    faults=_faults,
)
