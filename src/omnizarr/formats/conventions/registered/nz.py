"""NZ-1.0, the convention of netCDF for Zarr v3: named dimensions that arrays of a group share, and typed attributes.

Spec: https://github.com/zarr-conventions/nz, a proposal of 2026; in drafts it was nzug.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from omnizarr.formats.conventions.contract import Convention, Fault, Nodes
from omnizarr.formats.conventions.registered.records import LIST, Checking, Known, unchanged
from omnizarr.formats.reader import is_object
from omnizarr.model import ArrayMetadata, Metadata, dimensions

DECLARED: Final = "conventions"
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
    return is_within(nodes) or NZ.is_declared(nodes[path])


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
    name="nz",
    title=IDENTIFIER,
    spec=NZ.spec_url,
    attributes=frozenset({*SPELLINGS, TYPES}),
    recognise=_recognise,
    carry=unchanged,
    faults=_faults,
)
