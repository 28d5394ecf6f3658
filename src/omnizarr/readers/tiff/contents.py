"""What a TIFF file contains, as documents and manifests of arrays.

A file with one image is one array. Several images, or one with levels or a mask, are a group of arrays "0", "1", ...;
levels have the metadata of OME-Zarr.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, Final

import numpy as np

from omnizarr.errors import MetadataError, NotRepresentableError
from omnizarr.model import JSON
from omnizarr.readers.tiff import directories, layout, series, tags
from omnizarr.readers.tiff.directories import Directory
from omnizarr.readers.tiff.forms import Form, Unshown, form_of
from omnizarr.readers.tiff.layout import Pages
from omnizarr.readers.tiff.series import Page, Series
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.manifest import Strided
from omnizarr.stores.manifests.opening import Contents

_REDUCED, _MASK = 1, 4
_OLD_REDUCED: Final = 2
_STACKS: Final = {33629: "MetaMorph", 34412: "Zeiss LSM"}
"""Tags of formats whose further planes are not pages."""
_TYPES: Final = {"t": "time", "c": "channel", "band": "channel", "z": "space", "y": "space", "x": "space"}
_NAMES: Final = {"i": "page"}
_MOST_NOTES: Final = 100
_MOST_IMAGES: Final = 4096
"""Images of different forms that are shown."""


def read(file: File) -> Contents | None:
    """Return what is in a file; None if it is no TIFF file.

    Raises
    ------
    MetadataError
        If the file is broken.
    NotRepresentableError
        If none of its pages can be shown.
    """
    found = directories.source_of(file)
    if found is None:
        return None
    source, first = found
    walked = directories.walk(source, first)
    notes = walked.notes
    pages = _pages(walked, notes)
    if not pages:
        raise NotRepresentableError(
            "no page of the TIFF file can be shown", store=file.path, found="; ".join(notes[:3]),
            remedy="tifffile and GDAL read more of them",
        )  # fmt: skip
    images = series.find(pages, notes)
    if len(images) > _MOST_IMAGES:
        notes.append(f"images from {_MOST_IMAGES} on are not shown: the file has {len(images)} of different forms")
        images = images[:_MOST_IMAGES]
    documents: dict[str, bytes] = {}
    manifests: dict[str, Any] = {}
    for number, image in enumerate(images):
        _Image(image, "" if len(images) == 1 else str(number), documents, manifests, notes).show()
    if len(images) > 1:
        listed: dict[str, JSON] = {"series": [str(number) for number in range(len(images))]}
        attributes: dict[str, JSON] = {"ome": {"version": "0.5", **listed}}
        documents["zarr.json"] = _rendered({"zarr_format": 3, "node_type": "group", "attributes": attributes})
    if len(notes) > _MOST_NOTES:
        notes = [*notes[:_MOST_NOTES], f"and {len(notes) - _MOST_NOTES} more"]
    return Contents(documents, manifests, [file], tuple(notes), "TIFF")


def _rendered(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode("utf-8", "replace")


# -- pages --------------------------------------------------------------------------------


class _Forms:
    """Forms of pages, which are made once for pages whose tags are the same."""

    def __init__(self) -> None:
        self._last: tuple[Any, Form] | None = None

    def of(self, page: Directory) -> Form:
        key = page.structure
        if self._last is not None and key is not None and self._last[0] == key:
            return self._last[1]
        form = form_of(page)
        if key is not None:
            self._last = key, form
        return form


def _pages(walked: directories.Found, notes: list[str]) -> list[Page]:
    """Return the pages that can be shown, with their levels and masks."""
    forms = _Forms()
    found: list[Page] = []
    for number, directory in enumerate(walked.pages):
        page = _form(forms, directory, f"page {number}", notes)
        for tag, title in _STACKS.items():
            if tag in directory and not number:
                notes.append(f"the file is of {title}: planes that are no pages of TIFF are not shown")
        kind = directory.number(254)
        is_reduced = bool(kind & _REDUCED) or directory.number(255) == _OLD_REDUCED
        if page is not None:
            is_level = is_reduced and bool(found) and _is_smaller(page, found[-1].form)
            if kind & _MASK and found and page.dtype == "?":
                found[-1].masks.append((directory, page))
            elif is_level:
                found[-1].levels.append((directory, page))
            else:
                found.append(Page(number, directory, page))
        for each in walked.below.get(number, ()):
            form = _form(forms, each, f"a page below page {number}", notes)
            if form is None:
                continue
            above = found[-1] if found and found[-1].number == number else None
            if above is not None and _is_smaller(form, above.form):
                above.levels.append((each, form))
            else:
                found.append(Page(-1 - len(found), each, form))
    return found


def _is_smaller(form: Form, whole: Form) -> bool:
    return form.kind == whole.kind and form.height <= whole.height and form.width <= whole.width


def _form(forms: _Forms, page: Directory, title: str, notes: list[str]) -> Form | None:
    try:
        return forms.of(page)
    except Unshown as error:
        notes.append(f"{title}: not shown: {error}")
    except MetadataError as error:
        found = "" if error.found is None else f": {error.found}"
        notes.append(f"{title}: not shown: {error.message}{found}")
    return None


# -- documents -----------------------------------------------------------------------------


class _Image:
    """An image, and where it is shown."""

    def __init__(
        self, image: Series, path: str, documents: dict[str, bytes], manifests: dict[str, Any], notes: list[str]
    ) -> None:
        self.image, self.path, self.documents, self.manifests, self.notes = image, path, documents, manifests, notes
        first = image.first
        self.title = f"/{path}" if path else "/"
        self.is_geo = tags.is_georeferenced(first.directory)
        self.levels = self._levels()
        self.masks = first.masks if len(image.pages) == 1 else []
        self.is_group = bool(self.levels or self.masks)
        self.channels_first = self.is_geo or bool(self.levels)
        self.fill = tags.nodata(first.directory, np.dtype(first.form.dtype))

    def _levels(self) -> list[Pages]:
        found: list[Pages] = []
        for number in range(len(self.image.first.levels)):
            pages = self.image.level(number)
            if pages is None:
                self.notes.append(f"{self.title}: level {number + 1} is not shown: not all pages have it")
            else:
                found.append(pages)
        return found

    def show(self) -> None:
        """Add the documents and manifests."""
        directory, form = self.image.first.directory, self.image.first.form
        attributes = tags.attributes(directory, form, self.notes, self.title)
        if self.image.name:
            attributes["name"] = self.image.name
        if self.fill is not None and math.isfinite(self.fill) and form.dtype[0] != "c":
            attributes["_FillValue"] = self.fill
        self._compare()
        if not self.is_group:
            self._array(self.path, self.image.data(), attributes)
            return
        below = f"{self.path}/" if self.path else ""
        self._array(f"{below}0", self.image.data(), attributes)
        for number, pages in enumerate(self.levels, 1):
            own = {"_FillValue": attributes["_FillValue"]} if "_FillValue" in attributes else {}
            self._array(f"{below}{number}", pages, own)
        for number, (mask, its) in enumerate(self.masks):
            self._array(f"{below}mask{f'_{number}' if number else ''}", Pages(its, [mask]), {}, is_mask=True)
        members: dict[str, JSON] = {"ome": self._multiscales()} if self.levels else {}
        document = {"zarr_format": 3, "node_type": "group", "attributes": members}
        self.documents[f"{below}zarr.json"] = _rendered(document)

    def _compare(self) -> None:
        """Name the tags of further pages that the first one does not have, or has with other values."""
        first = self.image.first.directory
        other: set[int] = set()
        for page in self.image.pages:
            if page is not None and page.directory is not first:
                other |= page.directory.differing(first)
        if other:
            listed = ", ".join(tags.name(tag) for tag in sorted(other)[:20])
            self.notes.append(f"{self.title}: of further pages, these tags are not shown: {listed}")

    def _array(self, path: str, pages: Pages, attributes: dict[str, JSON], *, is_mask: bool = False) -> None:
        lead = () if is_mask else self.image.lead
        form = pages.form
        grid, manifest = layout.lay(lead, pages)
        shape = (*lead, *form.shape)
        axes = ("" if is_mask else self.image.axes) + form.axes.lower()
        codecs: list[dict[str, Any]] = []
        rank = len(lead)
        if self.channels_first and form.axes == "YXS":
            moved = (*range(rank), rank + 2, rank, rank + 1)
            shape, axes = tuple(shape[at] for at in moved), "".join(axes[at] for at in moved)
            member = "chunk_shape" if grid["name"] == "regular" else "chunk_shapes"
            grid["configuration"][member] = [grid["configuration"][member][at] for at in moved]
            if isinstance(manifest, Strided):
                manifest = replace(
                    manifest, grid=tuple(manifest.grid[at] for at in moved),
                    steps=tuple(manifest.steps[at] for at in moved), axis=moved.index(manifest.axis),
                )  # fmt: skip
            order = [*range(rank), rank + 1, rank + 2, rank]
            codecs.append({"name": "transpose", "configuration": {"order": order}})
        serializer: dict[str, Any] = {"name": "bytes"}
        if form.itemsize > 1:
            serializer["configuration"] = {"endian": form.endian}
        dtype = np.dtype(form.dtype)
        document = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": dtype.name,
            "chunk_grid": grid,
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": _fill(None if is_mask else self.fill, dtype),
            "codecs": [*codecs, serializer, *form.codecs()],
            "attributes": attributes,
            "dimension_names": self._named(axes),
        }
        self.documents[f"{path}/zarr.json" if path else "zarr.json"] = _rendered(document)
        self.manifests[path] = manifest

    def _named(self, axes: str) -> list[str | None]:
        """Return the names of dimensions."""
        found: list[str | None] = []
        for axis in axes:
            name: str | None = _NAMES.get(axis, axis)
            if axis == "s":
                name = "band" if self.is_geo else "s" if "c" in axes else "c"
            found.append(None if name in found or axis in "?q" else name)
        return found

    def _multiscales(self) -> JSON:
        form = self.image.first.form
        axes = self.image.axes + ("" if form.samples == 1 else "s") + "yx"
        names = [name or f"dim_{at}" for at, name in enumerate(self._named(axes))]
        units = dict(self.image.units)
        scale = dict(self.image.scale)
        if not scale and not self.is_geo:
            scale = dict(tags.resolution(self.image.first.directory))
            units = dict.fromkeys(scale, "micrometer")
        described: list[JSON] = []
        for name in names:
            axis: dict[str, JSON] = {"name": name}
            if name in _TYPES:
                axis["type"] = _TYPES[name]
            if name in units:
                axis["unit"] = units[name]
            described.append(axis)
        datasets: list[JSON] = []
        for number, each in enumerate([form, *(pages.form for pages in self.levels)]):
            factors = {"y": form.height / each.height, "x": form.width / each.width}
            steps: list[JSON] = [scale.get(name, 1.0) * factors.get(name, 1.0) for name in names]
            transformations: list[JSON] = [{"type": "scale", "scale": steps}]
            datasets.append({"path": str(number), "coordinateTransformations": transformations})
        return {
            "version": "0.5",
            "multiscales": [{"name": self.image.name or "image", "axes": described, "datasets": datasets}],
        }


def _fill(value: Any, dtype: np.dtype[Any]) -> JSON:
    if dtype.kind == "c":
        return [value or 0.0, 0.0]
    if dtype.kind == "b":
        return False
    if value is None:
        return 0.0 if dtype.kind == "f" else 0
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    found: JSON = value
    return found
