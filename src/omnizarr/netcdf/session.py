"""What the nodes of one open dataset share, and how their documents are changed.

Every change is made to the documents that are stored at that moment, under the lock of the node, so that datasets
in several threads or processes do not undo each other's changes of different things.

Spec: NCZarr, "NCZarr versus Pure Zarr".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from omnizarr.errors import Function, NotRepresentableError, OmnizarrError, ReadOnlyError, Remedy, StoreClosedError
from omnizarr.formats import documents, lenient
from omnizarr.formats.conventions import nczarr_metadata
from omnizarr.formats.conventions.nczarr_metadata import types_in
from omnizarr.formats.reader import is_list, is_object
from omnizarr.model import JSON, ArrayMetadata, GroupMetadata
from omnizarr.netcdf import layouts
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.layouts.contract import Layout, Marks, Stored
from omnizarr.netcdf.records import Records
from omnizarr.nodes import detection, hierarchy, resizing
from omnizarr.nodes.config import ArrayConfig
from omnizarr.nodes.location import StorePath
from omnizarr.support.locks import RLock

M = TypeVar("M", ArrayMetadata, GroupMetadata)
H = TypeVar("H", GroupHeader, VariableHeader)


_TYPES: Final = {"_nczarr_attr": "types", "_NCZARR_ATTR": "types", "_nczarr_attrs": "attribute_types"}
"""The marks that record the types of attributes, and their places."""


@dataclass(slots=True)
class Session:
    """One open dataset.

    Attributes
    ----------
    root : StorePath
    layout : Layout
        The layout in which the dataset is written.
    config : ArrayConfig
        Settings of the arrays.
    xarray : bool
        Whether to write ``_ARRAY_DIMENSIONS``.
    version : str, optional
        Version of the netCDF-C that wrote the dataset.
    is_complete : bool
        Whether all elements of new variables will be written.
    replaces : bool
        Whether new nodes replace remains of an older dataset.
    lock : threading.RLock
        Held while the state of nodes changes, and while records are stored.
    buffered : bool
        Whether records may wait to be stored.
    file : str
        The path or URL of the netCDF file, if the dataset is one, which can only be read.
    records : Records
        The pending records.
    """

    root: StorePath
    layout: Layout
    config: ArrayConfig
    xarray: bool = True
    version: str | None = None
    is_open: bool = True
    is_complete: bool = False
    replaces: bool = False
    lock: threading.RLock = field(default_factory=RLock)
    buffered: bool = True
    file: str = ""
    records: Records = field(init=False)

    def __post_init__(self) -> None:
        self.records = Records(self)

    def check_open(self) -> None:
        """Raise StoreClosedError if the dataset is closed."""
        if not self.is_open:
            raise StoreClosedError("the dataset is closed", store=str(self.root), remedy="open it again")

    def check_writable(self) -> None:
        """Raise ReadOnlyError if the dataset was opened for reading."""
        self.check_open()
        if self.file:
            raise read_only_file(self.file)
        if self.root.store.read_only:
            raise ReadOnlyError("the dataset is read-only", store=str(self.root), remedy='open it in mode "r+" or "a"')

    # -- documents ------------------------------------------------------------------

    def create_group(self, where: StorePath, header: GroupHeader, *, overwrite: bool = False) -> StorePath:
        """Store a new group, and return its place."""
        self.records.store()
        marks = self.layout.group(header, where.path == self.root.path)
        dialect = "v2" if self.layout.zarr_format == 2 else "v3"
        metadata = GroupMetadata(dialect=dialect, attributes=marks.attributes, unknown=marks.members)
        found = hierarchy.create(where, metadata, overwrite=overwrite or self.replaces)
        with or_nothing(where):
            self._write_objects(where, marks.objects)
        return found.where

    def create_array(
        self, where: StorePath, header: VariableHeader, group: str, sizes: Mapping[str, DimensionHeader]
    ) -> Mapping[str, JSON]:
        """Store a new array, and return its entry in the group: `Marks.listed`."""
        self.records.store()
        metadata = self.layout.array(header, group, sizes, self.xarray, self.is_complete)
        hierarchy.create(where, metadata, overwrite=self.replaces)
        marks = self.layout.variable(header, group, sizes, self.xarray)
        with or_nothing(where):
            self._write_objects(where, marks.objects)
        return marks.listed

    def retype(
        self, where: StorePath, header: VariableHeader, group: str, sizes: Mapping[str, DimensionHeader]
    ) -> None:
        """Change the type of the elements of an array without stored elements."""
        self.records.store()
        new = self.layout.array(header, group, sizes, self.xarray, self.is_complete)
        changed = {name: getattr(new, name) for name in ("data_type", "codecs", "fill_value", "spellings")}
        hierarchy.update(where, ArrayMetadata, lambda metadata: replace(metadata, **changed))

    def change_group(
        self,
        where: StorePath,
        change: Callable[[GroupHeader], GroupHeader],
        listed: Mapping[str, Mapping[str, JSON] | None] | None = None,
    ) -> GroupMetadata:
        """Apply `change` to a stored group (members only by name), and return the content of its document.

        `listed` contains the new entries of arrays in the group by name; None for removed ones.
        """
        self.check_writable()
        self.records.store()
        is_root = where.path == self.root.path

        def rewritten(metadata: GroupMetadata) -> GroupMetadata:
            old = layouts.read_group(where, metadata, self.layout)
            new = self._edited(where, metadata, lambda header: self.layout.group(header, is_root), old, change(old))
            return new if not listed or not self.layout.lists_arrays else nczarr_metadata.with_listed(new, listed)

        return hierarchy.update(where, GroupMetadata, rewritten)

    def change_variable(
        self,
        where: StorePath,
        group: str,
        sizes: Mapping[str, DimensionHeader],
        change: Callable[[VariableHeader], VariableHeader],
    ) -> VariableHeader:
        """Apply `change` to the stored metadata of a variable, and return the result."""
        self.check_writable()
        self.records.store()
        changed: list[VariableHeader] = []
        listed = self.listed(where)
        relisted: list[JSON] = []

        def rewritten(metadata: ArrayMetadata) -> ArrayMetadata:
            old = layouts.read_variable(
                where, metadata, self.layout, sizes, group=group, version=self.version, in_group=listed
            )
            header = change(old)
            after = self._relisted(
                listed, lambda each: self.layout.variable(each, group, sizes, self.xarray), old, header
            )
            relisted[:] = [after]
            new = self._edited(
                where, metadata, lambda each: self.layout.variable(each, group, sizes, self.xarray), old, header
            )
            if new.dimension_names is not None and header.dimensions != old.dimensions:
                new = replace(new, dimension_names=tuple(each.rpartition("/")[2] for each in header.dimensions))
            read = layouts.read_variable(
                where, new, self.layout, sizes, group=group, version=self.version, in_group=after
            )
            changed[:] = [read]
            return new

        hierarchy.update(where, ArrayMetadata, rewritten)
        if is_object(relisted[0]) and relisted[0] != listed:
            self.change_group(where.parent, lambda header: header, {where.name: relisted[0]})
        return changed[0]

    def listed(self, where: StorePath) -> JSON:
        """Return the entry of an array in its group, in a layout with such entries."""
        if not self.layout.lists_arrays:
            return None
        return nczarr_metadata.listed(detection.open_group(where.parent).metadata, where.name)

    def read_group(self, where: StorePath, metadata: GroupMetadata | None = None) -> GroupHeader:
        """Return a stored group, with members only by name."""
        return layouts.read_group(where, metadata or detection.open_group(where).metadata, self.layout)

    def _relisted(
        self, listed: JSON, marks_of: Callable[[VariableHeader], Marks], old: VariableHeader, new: VariableHeader
    ) -> JSON:
        """Return the new entry of a variable in its group; None in layouts without entries."""
        if not self.layout.lists_arrays:
            return None
        return _merged(listed if is_object(listed) else {}, marks_of(old).listed, marks_of(new).listed)

    def read_variable(
        self, where: StorePath, group: str, sizes: Mapping[str, DimensionHeader], listed: JSON
    ) -> tuple[VariableHeader, Stored]:
        """Return a stored variable, and how it is stored. `listed` is its present or future entry in the group."""
        metadata = detection.open_array(where).metadata
        return layouts.read_stored(
            where, metadata, self.layout, sizes, group=group, version=self.version, in_group=listed
        )

    def lengthen(
        self,
        stored: Stored,
        shape: tuple[int, ...],
        lengths: Mapping[int, int],
        write: resizing.Write | None = None,
        covers: resizing.Covers | None = None,
    ) -> Callable[[], None]:
        """Lengthen an array to at least these lengths along some dimensions. Its data does not move.

        Parameters
        ----------
        stored : Stored
        shape : tuple of int
            The lengths of its dimensions, which may be newer than those in its document.
        lengths : mapping of int to int
        write, covers
            See `omnizarr.nodes.resizing.grow`.

        Returns
        -------
        callable
            A function that undoes it, unless another writer has made the array longer since.
        """

        def longer(before: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(max(length, lengths.get(axis, 0)) for axis, length in enumerate(before))

        policy = (
            ArrayConfig.of(self.config, write_empty_chunks=True).policy if stored.needs_chunks else self.config.policy
        )
        growth = resizing.Growth(stored.where, longer, policy, meant=resizing.with_shape(stored.metadata, shape))
        grown = resizing.grow(growth, write, covers)
        return lambda: resizing.take_back(growth, grown)

    def _edited(self, where: StorePath, metadata: M, marks_of: Callable[[H], Marks], old: H, new: H) -> M:
        """Return metadata with the changes from `old` to `new`, and write the changed separate objects."""
        after = marks_of(new)
        try:
            before = marks_of(old)
        except NotRepresentableError:  # found in the dataset, although this layout would not write it
            before = Marks(dict.fromkeys(old.attributes))
        self._write_objects(
            where,
            {name: each for name, each in after.objects.items() if not _is_same(name, before.objects, after.objects)},
        )
        return replace(
            metadata,
            attributes=_merged(metadata.attributes, before.attributes, after.attributes),
            unknown=_merged(metadata.unknown, before.members, after.members),
        )

    def _write_objects(self, where: StorePath, objects: Mapping[str, JSON]) -> None:
        for name, document in objects.items():
            where.store.set(where.prefix + name, documents.render(document))


def read_only_file(path: str) -> ReadOnlyError:
    """Return the error that a netCDF file can only be read."""
    return ReadOnlyError(
        "a netCDF file can only be read in place",
        store=path,
        remedy=Remedy(
            "convert it: {convert}, or write it with netCDF4 or h5netcdf", convert=Function("(file, 'x.zarr')")
        ),
    )


@contextmanager
def or_nothing(where: StorePath) -> Iterator[None]:
    """Remove a new node again, if creating it fails."""
    try:
        yield
    except BaseException:
        with suppress(OmnizarrError):
            hierarchy.delete(where)
        raise


def _merged(stored: Mapping[str, JSON], before: Mapping[str, JSON], after: Mapping[str, JSON]) -> dict[str, JSON]:
    """Apply the difference between two states to what is stored. Everything else keeps its spelling."""
    merged: dict[str, JSON] = {}
    typed = _typed(stored)
    for name, value in after.items():
        if name in _TYPES and name in stored:
            merged[name] = _with_types_of(stored, before, after, name)
        elif not _is_same(name, before, after):
            merged[name] = value
        elif name in stored:
            is_spelled = name in typed and _lost_its_spelling(stored[name], value)
            merged[name] = value if is_spelled else stored[name]
    return {**merged, **{name: value for name, value in stored.items() if name not in before and name not in after}}


def _with_types_of(
    stored: Mapping[str, JSON], before: Mapping[str, JSON], after: Mapping[str, JSON], mark: str
) -> JSON:
    """Return the mark with the types of attributes. Unchanged attributes keep the recorded types.

    A type can be recorded in several ways: JSON is ``|J0`` in NCZarr, and ``>S1`` in netCDF-C.
    """
    new, old = after[mark], stored[mark]
    if not (is_object(new) and is_object(old)):
        return new
    written, kept = types_in(new), types_in(old)
    if written == kept and _is_same(mark, before, after):
        return old
    same = {name for name in kept.keys() & after.keys() if _is_same(name, before, after)}
    if _is_same(mark, before, after) and all(kept[name] == written.get(name) for name in kept.keys() - same):
        return old
    kind = _TYPES[mark]
    if is_list(new.get(kind)):
        return {**new, kind: [_typed_as(each, kept, same) for each in new[kind]]}
    return {**new, kind: {name: kept[name] if name in same else each for name, each in written.items()}}


def _typed_as(item: JSON, kept: Mapping[str, JSON], same: Container[str]) -> JSON:
    name = item.get("name") if is_object(item) else None
    return {"name": name, "configuration": {"type": kept[name]}} if isinstance(name, str) and name in same else item


def _typed(stored: Mapping[str, JSON]) -> Container[str]:
    """Return the names of attributes whose type NCZarr recorded on v2."""
    for key in ("_nczarr_attr", "_NCZARR_ATTR"):
        found = stored.get(key)
        types = found.get("types") if isinstance(found, Mapping) else None
        if isinstance(types, Mapping):
            return types.keys()
    return ()


def _lost_its_spelling(stored: JSON, meant: JSON) -> bool:
    """Whether a number was read from text that would be spelled differently, because JSON has no such number."""
    is_spelled = stored is None or isinstance(stored, bool | int | float)
    return is_spelled and isinstance(meant, str) and not lenient.is_strict(meant)


def _is_same(name: str, before: Mapping[str, JSON], after: Mapping[str, JSON]) -> bool:
    # repr distinguishes 1, 1.0 and True, and considers NaN equal to NaN.
    return name in before and repr(before[name]) == repr(after[name])
