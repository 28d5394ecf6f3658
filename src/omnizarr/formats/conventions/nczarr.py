"""NCZarr: the additional notes of netCDF-C for the netCDF data model.

Notes are members of the documents of v2 (before netCDF-C 4.9.3) or attributes. v3 has no place for such members,
so they become attributes, which `omnizarr.netcdf` also reads and interprets.

Spec: NCZarr, "NCZarr versus Pure Zarr".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from omnizarr.formats.conventions import fill_values
from omnizarr.formats.conventions.contract import Carried, Convention, Fault, Nodes
from omnizarr.model import JSON, ArrayMetadata, Metadata

_PREFIX: Final = "_nczarr"
_ATTRIBUTES: Final = "_nczarr_attr"
_NAMES: Final = frozenset(
    name
    for kind in ("superblock", "group", "array", "attr")
    for name in (f"_nczarr_{kind}", f"_NCZARR_{kind.upper()}", f"_nczarr_{kind}s", f"_NCZARR_{kind.upper()}S")
)


def notes_of(node: Metadata) -> Mapping[str, JSON]:
    """Return the notes of NCZarr on a node, by name."""
    everything = {**node.unknown, **node.attributes}
    return {name: value for name, value in everything.items() if name.lower().startswith(_PREFIX)}


def is_fill_value(array: ArrayMetadata, value: Any) -> bool:
    """Return whether a value that masks an array is its ``_FillValue`` in netCDF, and not a default of its type.

    In v2 the attribute states this, if it is a finite number. The notes of NCZarr list all attributes of netCDF.
    """
    if not np.isfinite(value):
        return False
    default = fill_values.NETCDF_DEFAULTS.get(value.dtype.str[1:])
    listed = [types_of(note) for name, note in notes_of(array).items() if name.lower().startswith(_ATTRIBUTES)]
    if listed:
        return any("_FillValue" in types for types in listed)
    # netCDF-C writes the default of double with six digits
    return default is None or not np.isclose(float(value), float(default), rtol=1e-6)


def types_of(note: JSON) -> Mapping[str, JSON]:
    """Return the types of attributes by name, from a note of NCZarr."""
    types = note.get("types") if isinstance(note, Mapping) else None
    return types if isinstance(types, Mapping) else {}


def _recognise(path: str, nodes: Nodes) -> bool:
    return bool(notes_of(nodes[path]))


def _carry(metadata: Metadata, path: str, nodes: Nodes, dialect: str) -> Carried:
    members = {name: value for name, value in metadata.unknown.items() if name.lower().startswith(_PREFIX)}
    if metadata.dialect != "v2" or not members:
        return Carried(metadata)
    rest = {name: value for name, value in metadata.unknown.items() if name not in members}
    carried = replace(metadata, unknown=rest, attributes={**members, **metadata.attributes})
    return Carried(carried, tuple(f"member {name!r} becomes an attribute" for name in members))


def _faults(path: str, nodes: Nodes) -> Iterator[Fault]:
    return iter(())


NCZARR: Final = Convention(
    name="nczarr",
    title="NCZarr",
    spec="https://docs.unidata.ucar.edu/netcdf-c/current/nczarr_head.html",
    attributes=_NAMES,
    recognise=_recognise,
    carry=_carry,
    faults=_faults,
)
