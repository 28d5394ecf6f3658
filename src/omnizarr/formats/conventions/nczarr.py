"""NCZarr: the additional notes of netCDF-C for the netCDF data model.

Notes are members of the documents of v2 (before netCDF-C 4.9.3) or attributes. v3 has no place for such members,
so they become attributes, which `omnizarr.netcdf` also reads and interprets.

Spec: NCZarr, "NCZarr versus Pure Zarr".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import numpy as np

from omnizarr.formats.conventions import fill_values
from omnizarr.formats.conventions.contract import Carried, Convention, Fault, Nodes
from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata, dimensions

_PREFIX: Final = "_nczarr"
_ATTRIBUTES: Final = "_nczarr_attr"
_NAMES: Final = frozenset(
    name
    for kind in ("superblock", "group", "array", "attr")
    for name in (f"_nczarr_{kind}", f"_NCZARR_{kind.upper()}", f"_nczarr_{kind}s", f"_NCZARR_{kind.upper()}S")
)
GROUP: Final = dimensions.NCZARR_GROUP
"""The note of a group, by the version of netCDF-C."""
GROUP_OBJECT: Final = ".nczgroup"
"""The document beside those of a group in which netCDF-C 4.8.0 keeps it."""
ARRAYS: Final = ("arrays", "vars")
GROUPS: Final = ("groups", "subgroups")
"""Members of the note: lists of names."""


def notes_of(node: Metadata) -> Mapping[str, JSON]:
    """Return the notes of NCZarr on a node, by name."""
    everything = {**node.unknown, **node.attributes}
    return {name: value for name, value in everything.items() if name.lower().startswith(_PREFIX)}


def named(group: GroupMetadata, beside: Iterable[JSON] = ()) -> list[str] | None:
    """Return the names that NCZarr says nodes directly below a group have; None if it says nothing.

    `beside` are the documents that netCDF-C 4.8.0 keeps beside those of the group.

    >>> named(GroupMetadata(dialect="v3", attributes={"_nczarr_group": {"arrays": ["x"], "groups": ["g"]}}))
    ['x', 'g']
    """
    inside = (members.get(key) for members in (group.attributes, group.unknown) for key in GROUP)
    note = next((value for value in (*inside, *beside) if is_object(value)), {})
    lists = [next((note[name] for name in names if name in note), None) for names in (ARRAYS, GROUPS)]
    found = [each for each in lists if is_list(each) and all(isinstance(name, str) for name in each)]
    return [name for name in dict.fromkeys(chain.from_iterable(found)) if "/" not in name] if found else None


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
