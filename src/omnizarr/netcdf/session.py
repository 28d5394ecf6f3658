"""What the nodes of one open dataset share, and how their documents are changed.

Every change is made on the documents that are stored at that moment, under the lock of the node, so that several
datasets, in threads or processes, that change different things do not undo each other's work.

Spec: NCZarr, "NCZarr versus Pure Zarr".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnizarr import detection, hierarchy, resizing
from omnizarr.behaviour import ArrayConfig
from omnizarr.consolidated import Snapshot
from omnizarr.dialects import documents
from omnizarr.errors import ReadOnlyError, StoreClosedError
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata
from omnizarr.netcdf import layouts
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.layouts.contract import Layout, Marks, Stored
from omnizarr.places import StorePath


@dataclass(slots=True)
class Session:
    """One open dataset.

    Attributes
    ----------
    root : StorePath
    layout : Layout
        In which it is written.
    config : ArrayConfig
        How its arrays behave.
    xarray : bool
        Whether ``_ARRAY_DIMENSIONS`` is written.
    snapshot : Snapshot, optional
        Consolidated metadata, which is kept current.
    version : str, optional
        Of the netCDF-C that wrote it.
    lock : threading.RLock
        Held while what the nodes know of themselves changes; not while data moves.
    """

    root: StorePath
    layout: Layout
    config: ArrayConfig
    xarray: bool = True
    snapshot: Snapshot | None = None
    version: str | None = None
    is_open: bool = True
    lock: threading.RLock = field(default_factory=threading.RLock)

    def check_open(self) -> None:
        """Raise StoreClosedError if the dataset is closed."""
        if not self.is_open:
            raise StoreClosedError("the dataset is closed", store=str(self.root), remedy="open it again")

    def check_writable(self) -> None:
        """Raise ReadOnlyError if the dataset was opened to be read."""
        self.check_open()
        if self.root.store.read_only:
            raise ReadOnlyError("the dataset is read-only", store=str(self.root), remedy='open it in mode "r+" or "a"')

    # -- documents ------------------------------------------------------------------

    def create_group(self, where: StorePath, header: GroupHeader, *, overwrite: bool = False) -> StorePath:
        """Store a new group, and return where it is."""
        marks = self.layout.group(header, where.path == self.root.path)
        dialect = "v2" if self.layout.zarr_format == 2 else "v3"
        metadata = GroupMetadata(dialect=dialect, attributes=marks.attributes, unknown=marks.members)
        found = hierarchy.create(where, metadata, overwrite=overwrite)
        self._write_objects(where, marks.objects)
        self.note_change(where)
        return found.where

    def create_array(
        self, where: StorePath, header: VariableHeader, group: str, sizes: Mapping[str, DimensionHeader]
    ) -> ArrayMetadata:
        """Store a new array, and return what its documents say."""
        metadata = self.layout.array(header, group, sizes, self.xarray)
        found = hierarchy.create(where, metadata)
        self._write_objects(where, self.layout.variable(header, group, sizes, self.xarray).objects)
        self.note_change(where)
        return found.metadata

    def change_group(self, where: StorePath, change: Callable[[GroupHeader], GroupHeader]) -> GroupHeader:
        """Apply `change` to what is stored of a group (members by name alone), and return the result."""
        self.check_writable()
        is_root = where.path == self.root.path
        changed: list[GroupHeader] = []

        def rewritten(metadata: GroupMetadata) -> GroupMetadata:
            header = change(layouts.read_group(where, metadata, self.layout))
            marks = self.layout.group(header, is_root)
            self._write_objects(where, marks.objects)
            new = replace(metadata, attributes=marks.attributes, unknown=_members(metadata.unknown, marks))
            # What is known from now on is what a reader finds: texts may be spaced otherwise.
            changed[:] = [layouts.read_group(where, new, self.layout)]
            return new

        hierarchy.update(where, GroupMetadata, rewritten)
        self.note_change(where)
        return changed[0]

    def change_variable(
        self,
        where: StorePath,
        group: str,
        sizes: Mapping[str, DimensionHeader],
        change: Callable[[VariableHeader], VariableHeader],
    ) -> VariableHeader:
        """Apply `change` to what is stored of a variable beside its data, and return the result."""
        self.check_writable()
        changed: list[VariableHeader] = []

        def rewritten(metadata: ArrayMetadata) -> ArrayMetadata:
            header = change(
                layouts.read_variable(where, metadata, self.layout, sizes, group=group, version=self.version)
            )
            marks = self.layout.variable(header, group, sizes, self.xarray)
            self._write_objects(where, marks.objects)
            new = replace(metadata, attributes=marks.attributes, unknown=_members(metadata.unknown, marks))
            if new.dimension_names is not None:
                new = replace(new, dimension_names=tuple(each.rpartition("/")[2] for each in header.dimensions))
            read = layouts.read_variable(where, new, self.layout, sizes, group=group, version=self.version)
            changed[:] = [read]
            return new

        hierarchy.update(where, ArrayMetadata, rewritten)
        self.note_change(where)
        return changed[0]

    def read_group(self, where: StorePath) -> GroupHeader:
        """Return what is stored of a group, members by name alone."""
        return layouts.read_group(where, detection.open_group(where).metadata, self.layout)

    def read_variable(
        self, where: StorePath, group: str, sizes: Mapping[str, DimensionHeader]
    ) -> tuple[VariableHeader, Stored]:
        """Return what is stored of a variable, and how."""
        metadata = detection.open_array(where).metadata
        return layouts.read_stored(where, metadata, self.layout, sizes, group=group, version=self.version)

    def lengthen(self, where: StorePath, lengths: Mapping[int, int]) -> None:
        """Make an array at least so long along some of its dimensions; its data stays where it is."""

        def longer(metadata: ArrayMetadata) -> ArrayMetadata:
            shape = tuple(max(length, lengths.get(axis, 0)) for axis, length in enumerate(metadata.shape))
            return metadata if shape == metadata.shape else resizing.with_shape(metadata, shape)

        hierarchy.update(where, ArrayMetadata, longer)
        self.note_change(where)

    def note_change(self, *changed: StorePath) -> None:
        """Bring the consolidated metadata up to date, if there is any."""
        if self.snapshot is not None:
            self.snapshot.refresh([each.path for each in changed])

    def _write_objects(self, where: StorePath, objects: Mapping[str, JSON]) -> None:
        for name, document in objects.items():
            where.store.set(where.prefix + name, documents.render(document))


def _members(unknown: Mapping[str, Any], marks: Marks) -> dict[str, Any]:
    """Return the members of a document that Zarr does not know: NCZarr's as they are now, and those of others."""
    others = {name: value for name, value in unknown.items() if not name.lower().startswith("_nczarr")}
    return {**others, **marks.members}
