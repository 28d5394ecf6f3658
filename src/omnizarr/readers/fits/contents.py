"""What a FITS file contains, as documents and manifests of arrays.

A file with one image is one array. All others are a group: images are arrays, and tables are groups of their columns.
They are named by EXTNAME, and by their number if they have none.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

from omnizarr.readers.fits import compressed, groups, headers, heaps, images, tables
from omnizarr.readers.fits.headers import Source, Unit
from omnizarr.readers.fits.images import Unshown
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.opening import Contents

_MOST_NOTES: Final = 100


def read(file: File) -> Contents | None:
    """Return what is in a file; None if it is no FITS file.

    Raises
    ------
    MetadataError
        If the first header of the file is broken.
    """
    walked = headers.walk(file)
    if walked is None:
        return None
    source, (units, notes) = walked
    made = _Made(source, notes)
    if len(units) == 1 and units[0].kind == "IMAGE" and units[0].shape:
        made.unit(units[0], "")
    else:
        names = _names(units)
        first = units[0]
        made.group("", {} if names.get(0) else headers.attributes(first))
        for unit in units:
            if unit.number in names:
                made.unit(unit, names[unit.number])
    if len(notes) > _MOST_NOTES:
        notes = [*notes[:_MOST_NOTES], f"and {len(notes) - _MOST_NOTES} more"]
    return Contents(made.documents, made.manifests, [source.file], tuple(notes), "FITS")


def _names(units: list[Unit]) -> dict[int, str]:
    """Return the name of each unit that is shown. The first is not, if it has no data: it describes the file."""
    found: dict[int, str] = {}
    shown = [unit for unit in units if unit.number or (unit.kind in ("IMAGE", "GROUPS") and unit.shape)]
    own = {unit.number: unit.string("EXTNAME").strip() or ("" if unit.number else "PRIMARY") for unit in shown}
    many = Counter(name.casefold() for name in own.values())
    taken: set[str] = set()
    for unit in shown:
        name = own[unit.number]
        if many[name.casefold()] > 1:
            name = f"{name}_{unit.integer('EXTVER', 1)}" if name else ""
        if not headers.is_name(name) or name.casefold() in taken:
            name = str(unit.number)
            while name in taken:
                name = f"{name}_"
        taken.add(name.casefold())
        found[unit.number] = name
    return found


class _Made:
    """What has been made of the units so far."""

    def __init__(self, source: Source, notes: list[str]) -> None:
        self.source = source
        self.documents: dict[str, bytes] = {}
        self.manifests: dict[str, Any] = {}
        self.notes = notes

    def unit(self, unit: Unit, path: str) -> None:
        """Add the documents and manifests of a unit, or say why it is not shown."""
        try:
            if unit.kind == "IMAGE":
                self._image(unit, path)
            elif heaps.is_compressed_image(unit):
                tables.check(unit)
                self._add(path, *heaps.image(self.source, unit, headers.attributes(unit)))
            elif unit.kind == "GROUPS":
                self._groups(unit, path)
            elif compressed.is_compressed(unit):
                self._compressed(unit, path)
            elif unit.kind in ("TABLE", "BINTABLE"):
                self._table(unit, path)
            else:
                self._unknown(unit, path)
        except Unshown as error:
            self.notes.append(f"{unit.title()}: not shown: {error}")
            self.group(path, headers.attributes(unit))

    def _unknown(self, unit: Unit, path: str) -> None:
        self.notes.append(f"{unit.title()}: not shown: it is of the kind {unit.kind}, which is not supported")
        self.group(path, headers.attributes(unit))

    def _image(self, unit: Unit, path: str) -> None:
        if not unit.shape:
            self.group(path, headers.attributes(unit))
            return
        found = images.image_of(unit)
        self._add(path, found.document(headers.attributes(unit)), found.manifest)

    def _groups(self, unit: Unit, path: str) -> None:
        found = list(groups.arrays(unit))
        attributes = headers.attributes(unit)
        self.group(path, {name: each for name, each in attributes.items() if not groups.OF_PARAMETERS.fullmatch(name)})
        for name, document, manifest in found:
            self._add(f"{path}/{name}", document, manifest)

    def _compressed(self, unit: Unit, path: str) -> None:
        table = compressed.Table(self.source, unit)
        attributes = headers.attributes(unit)
        hidden = compressed.OF_TABLE
        self.group(path, {name: each for name, each in attributes.items() if not hidden.fullmatch(name)})
        for name, shown in table.columns(self.notes):
            self._add(f"{path}/{name}", *shown)

    def _table(self, unit: Unit, path: str) -> None:
        tables.check(unit)
        attributes = headers.attributes(unit)
        self.group(path, {name: value for name, value in attributes.items() if not tables.OF_COLUMNS.fullmatch(name)})
        taken: set[str] = set()
        for column in tables.columns(unit, self.notes):
            try:
                shown = None if column.code in "PQ" else tables.shown(unit, column)
                ragged = heaps.ragged(self.source, unit, column) if shown is None else None
            except Unshown as error:
                self.notes.append(f"{unit.title()}: the column {column.name!r} is not shown: {error}")
                continue
            name = headers.name_of_column(column.name, column.number, taken)
            if shown is not None:
                self._add(f"{path}/{name}", shown.document, shown.manifest)
            elif ragged is not None:
                document, manifest, is_v3 = ragged
                own = tables.attributes(unit, column)
                if is_v3:
                    self._add(f"{path}/{name}", document | {"attributes": own}, manifest)
                else:
                    self._ragged(f"{path}/{name}", own, document, manifest)

    def _ragged(self, path: str, attributes: dict[str, Any], document: dict[str, Any], manifest: Any) -> None:
        """Add an array of lists, which only Zarr v2 has."""
        named = attributes | {"_ARRAY_DIMENSIONS": ["row"]}
        self.documents[f"{path}/.zarray"] = json.dumps(document).encode()
        self.documents[f"{path}/.zattrs"] = json.dumps(named).encode("utf-8", "replace")
        self.manifests[path] = manifest

    def group(self, path: str, attributes: dict[str, Any]) -> None:
        """Add a group."""
        self._add(path, {"zarr_format": 3, "node_type": "group", "attributes": attributes})

    def _add(self, path: str, document: dict[str, Any], manifest: Any = None) -> None:
        self.documents[f"{path}/zarr.json" if path else "zarr.json"] = json.dumps(document).encode("utf-8", "replace")
        if manifest is not None:
            self.manifests[path] = manifest
