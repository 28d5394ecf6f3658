"""NCZarr's marks on a node that are not in its own document.

netCDF-C 4.8.0 stored them in separate objects beside the documents of Zarr v2. In Zarr v3, those of an array are in its
group.

Spec: NCZarr, "NCZarr versus Pure Zarr", "Appendix E".
"""

from __future__ import annotations

from collections.abc import Sequence

from omnizarr.errors import NotRepresentableError, OmnizarrError, StoreError
from omnizarr.formats import DIALECTS, dialect_named, documents
from omnizarr.formats.contract import Dialect
from omnizarr.formats.conventions import nczarr_metadata as marks
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata, Metadata
from omnizarr.nodes import detection, renewing
from omnizarr.nodes.detection import Found
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.naming import is_far, may_have_objects
from omnizarr.stores import bounded


def objects_at(where: StorePath, metadata: Metadata) -> dict[str, JSON]:
    """Return the documents of layout A that are beside those of a node, by name; broken ones are ignored."""
    kinds: tuple[marks.Kind, ...] = (
        ("superblock", "group", "attr") if metadata.node_type == "group" else ("array", "attr")
    )
    return objects_beside(where, [name for kind in kinds for name in marks.OBJECTS[kind]])


def objects_beside(where: StorePath, names: Sequence[str]) -> dict[str, JSON]:
    """Return those of some documents of layout A that exist beside those of a node, by name; None for broken ones."""
    found: dict[str, JSON] = {}
    for position, data in bounded.documents(where.store, (where.prefix + name for name in names)):
        if data is not None:
            try:
                found[names[position]] = documents.parse(data)
            except OmnizarrError:
                found[names[position]] = None  # which is not an object, and noted as such
    return found


def group_at(where: StorePath, formats: Sequence[Dialect] = DIALECTS) -> Found[GroupMetadata] | None:
    """Return the group of one of some formats at a place; None if there is none, or if its document is broken."""
    try:
        found = detection.here(where, formats, "group")
    except StoreError:
        raise
    except OmnizarrError:
        return None
    if found is None or not isinstance(found.metadata, GroupMetadata):
        return None
    return Found(found.where, found.metadata)


def refuse_other_lengths(where: StorePath, metadata: ArrayMetadata) -> None:
    """Raise NotRepresentableError if NCZarr says how long the dimensions of an array are.

    netCDF-C opens no dataset in which an array is longer than its dimension, and readers of the dimension do not see
    the rest.
    """
    if _has_dimensions(where, metadata):
        raise NotRepresentableError(
            "the array is a variable of NCZarr: its group says how long its dimensions are, for all its variables",
            store=str(where.store),
            path=where.path,
            remedy="make the dimension longer with omnizarr.netcdf.Dataset(path, 'a'), or convert the dataset to Zarr "
            "without NCZarr",
        )


def _has_dimensions(where: StorePath, metadata: ArrayMetadata) -> bool:
    entry, objects = None, None
    # Layout A is rare, and two requests for each growth are not: far away, the netCDF view names what it leaves out.
    if may_have_objects(metadata) and not is_far(where.store) and marks.find(metadata) is marks.NOTHING:
        objects = objects_beside(where, marks.OBJECTS["array"])
    if metadata.dialect == "v3" and metadata.dimension_names:
        place = where if where.path else renewing.from_above(where)
        group = None if place is None else group_at(place.parent, (dialect_named("v3"),))
        if place is not None and group is not None:
            entry = marks.listed(group.metadata, place.name)
    return bool(marks.find(metadata, objects, entry).references)
