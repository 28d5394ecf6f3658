"""Notes on what the netCDF view of a node corrects, for readers of the same data as Zarr.

Spec: NCZarr, "NCZarr versus Pure Zarr".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnizarr.errors import OmnizarrError, StoreError
from omnizarr.model import GroupMetadata, Metadata, Note
from omnizarr.nodes import detection
from omnizarr.nodes.consolidated import Snapshot
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from omnizarr.formats.conventions import nczarr_metadata
    from omnizarr.netcdf import layouts
else:  # imported at first use: most hierarchies are not NCZarr
    layouts = Lazy("omnizarr.netcdf.layouts")
    nczarr_metadata = Lazy("omnizarr.formats.conventions.nczarr_metadata")


def repairs(where: StorePath, group: Group | None = None) -> dict[str, tuple[Note, ...]]:
    """Return the notes on all nodes of the NCZarr dataset that contains a place, by path in the store.

    Empty if there is no dataset. `group` is the group at that place, if there is one, so that it is not opened
    again.
    """
    root = _root(where, group)
    if root is None:
        return {}
    loaded = layouts.load(root)
    found = {root.path: list(loaded.notes)}
    for path, header in loaded.root.walk():
        for name, notes in (
            (path, header.notes),
            *((f"{path}/{each.name}", each.notes) for each in header.variables.values()),
        ):
            found.setdefault(root.store_path.at(f"{root.path}{name}".strip("/")).path, []).extend(notes)
    return {path: tuple(notes) for path, notes in found.items() if notes}


def _root(where: StorePath, group: Group | None) -> Group | None:
    """Return the highest group at or above a place that NCZarr marked as its own."""
    for place in (*where.ancestors(), where):
        if group is not None and place == where:
            return group if _is_marked(where, group._metadata) else None  # noqa: SLF001 - the model, as it is shared
        try:
            found = detection.detect(place, kind="group")
        except StoreError:  # what a store cannot tell must not count as missing
            raise
        except OmnizarrError:
            continue
        if found is not None and isinstance(found.metadata, GroupMetadata) and _is_marked(place, found.metadata):
            return Group(found.where, found.metadata, None, Snapshot.of(found, use=False))  # type: ignore[arg-type]
    return None


def _is_marked(where: StorePath, metadata: Metadata) -> bool:
    members = (*metadata.attributes, *metadata.unknown)
    if any(name.lower().startswith("_nczarr") or name == "_NCProperties" for name in members):
        return True
    return metadata.dialect == "v2" and where.store.exists(where.prefix + nczarr_metadata.SUPERBLOCK)
