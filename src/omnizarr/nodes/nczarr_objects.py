"""What netCDF-C 4.8.0 stored in separate objects beside the documents of Zarr v2.

Spec: NCZarr, "NCZarr versus Pure Zarr", "Appendix E".
"""

from __future__ import annotations

from omnizarr.errors import OmnizarrError
from omnizarr.formats import documents
from omnizarr.formats.conventions import nczarr_metadata as marks
from omnizarr.model import JSON, Metadata
from omnizarr.nodes.location import StorePath
from omnizarr.stores import bounded


def objects_at(where: StorePath, metadata: Metadata) -> dict[str, JSON]:
    """Return the documents of layout A that are beside those of a node, by name; broken ones are ignored."""
    kinds: tuple[marks.Kind, ...] = (
        ("superblock", "group", "attr") if metadata.node_type == "group" else ("array", "attr")
    )
    names = [name for kind in kinds for name in marks.OBJECTS[kind]]
    found: dict[str, JSON] = {}
    for position, data in bounded.documents(where.store, (where.prefix + name for name in names)):
        if data is not None:
            try:
                found[names[position]] = documents.parse(data)
            except OmnizarrError:
                found[names[position]] = None  # which is not an object, and noted as such
    return found
