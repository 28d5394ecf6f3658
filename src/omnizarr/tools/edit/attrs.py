"""Change attributes of a node at a place, and update other documents that contain them.

Where NCZarr notes the types of attributes, numbers and text are set as netCDF sets
them, so that the notes stay right, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from omnizarr.errors import MetadataError, NotRepresentableError, StaleError
from omnizarr.formats.conventions.nczarr import notes_of
from omnizarr.formats.spelling import same
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, thawed
from omnizarr.nodes import detection, hierarchy, nczarr_members
from omnizarr.nodes.attributes import to_json
from omnizarr.nodes.location import StorePath
from omnizarr.tools.extension import extension

Attributes = dict[str, JSON]

TYPES: Final[Mapping[str, str]] = {
    "byte": "i1", "ubyte": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4",
    "int64": "i8", "uint64": "u8", "float": "f4", "double": "f8", "char": "", "string": "",
}  # fmt: skip
"""Types of netCDF, and NumPy's names of the numbers among them."""


def read(where: StorePath) -> dict[str, Any]:
    """Return the attributes of a node."""
    found = detection.open_node(where)
    return {name: thawed(value) for name, value in found.metadata.attributes.items()}


def update(where: StorePath, values: Mapping[str, Any], nc_type: str | None = None) -> None:
    """Set attributes of a node, in one change.

    Parameters
    ----------
    where : StorePath
    values : mapping
        What JSON has: texts, numbers, lists, and so on.
    nc_type : str, optional
        A type of netCDF, which NCZarr notes; one of `TYPES`.

    Raises
    ------
    NotRepresentableError
        If a type is given, and the node is none of NCZarr.
    MetadataError
        If a value does not fit the type.
    """
    found = detection.open_node(where)
    is_nczarr = bool(notes_of(found.metadata)) or nczarr_members.listed(found.where).is_nczarr
    if nc_type is not None and not is_nczarr:
        raise NotRepresentableError(
            "only NCZarr notes types of attributes",
            store=str(where.store),
            path=where.path,
            found=f"type {nc_type!r}",
            remedy="leave out the type",
        )
    others = [name for name, value in values.items() if not _is_simple(value)]
    if nc_type is not None and others:
        raise unfit(where, others[0], values[others[0]], nc_type)
    if is_nczarr and not others and extension().set_attributes(where, values, nc_type):
        return
    new = to_json(values)
    _change(where, lambda old: {**old, **new})


def delete(where: StorePath, names: tuple[str, ...]) -> None:
    """Delete attributes of a node, in one change. Raises KeyError, with nothing done, if there is one that is not."""

    def without(old: Attributes) -> Attributes:
        for name in names:
            if name not in old:
                raise KeyError(name)
        return {name: value for name, value in old.items() if name not in names}

    found = detection.open_node(where)
    missing = [name for name in names if name not in found.metadata.attributes]
    if missing:
        raise KeyError(missing[0])
    if not (notes_of(found.metadata) and extension().delete_attributes(where, names)):
        _change(where, without)


def put(where: StorePath, new: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Replace all attributes of a node, if they are still those that were `known`.

    Raises StaleError if another writer has changed them meanwhile.
    """
    changed, before = to_json(new), to_json(known)

    def replaced(old: Attributes) -> Attributes:
        if not same(dict(old), dict(before)):
            raise StaleError(
                "another writer has changed the attributes meanwhile; its changes are kept",
                store=str(where.store),
                path=where.path,
                remedy="look at what they are now, and edit them again",
            )
        return dict(changed)

    _change(where, replaced)


def _change(where: StorePath, change: Callable[[Attributes], Attributes]) -> None:
    found = detection.open_node(where)
    kind = ArrayMetadata if isinstance(found.metadata, ArrayMetadata) else GroupMetadata

    def changed(metadata: Any) -> Any:
        explicit = {"implicit": False} if isinstance(metadata, GroupMetadata) else {}
        return replace(metadata, attributes=change(dict(metadata.attributes)), **explicit)

    hierarchy.update(found.where, kind, changed, found.metadata.dialect)  # type: ignore[type-var]


def _is_simple(value: Any) -> bool:
    """Whether netCDF has a value: a text, a number, or a list of such."""
    several = value if isinstance(value, list) else [value]
    kinds = {str if isinstance(each, str) else float for each in several}
    return (
        bool(several)
        and all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in several)
        and len(kinds) == 1
    )


def unfit(where: StorePath, name: str, value: Any, nc_type: str) -> MetadataError:
    """Return the error of a value that does not fit a type of netCDF."""
    return MetadataError(
        f"attribute {name!r} cannot be of type {nc_type}", store=str(where.store), path=where.path, found=repr(value)
    )
