"""HDF5 and netCDF-4 files as stores: each group and dataset has a document of Zarr v3, and chunks are read in place.

Dimensions are those of netCDF or of HDF5's dimension scales. Attributes that only mark them are hidden, as the engines
of xarray do. What cannot be shown is in `HDF5Store.notes`, by name.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError, OmnizarrError, ReadOnlyError
from omnizarr.model import JSON, dimensions
from omnizarr.readers.hdf5 import arrays, datasets, elements, groups, jsonform, naming
from omnizarr.readers.hdf5.arrays import Shown
from omnizarr.readers.hdf5.attributes import Attribute
from omnizarr.readers.hdf5.file import File
from omnizarr.readers.hdf5.forms import Unshown
from omnizarr.readers.hdf5.messages import Header
from omnizarr.readers.hdf5.naming import Marks
from omnizarr.readers.hdf5.outside import Files
from omnizarr.readers.hdf5.source import reason
from omnizarr.readers.hdf5.superblock import SIGNATURE
from omnizarr.stores import verbs
from omnizarr.stores.base import Buffer, Buffers, Store, is_key
from omnizarr.stores.kinds import Place
from omnizarr.stores.manifests import file as files
from omnizarr.stores.manifests import opening
from omnizarr.stores.manifests.store import ManifestStore

DOCUMENT: Final = "zarr.json"
_STARTS: Final = (0, 512, 1024, 2048)  # where a file is looked for, behind what others put before it
_HEAD: Final = _STARTS[-1] + len(SIGNATURE)


@dataclass(slots=True)
class _Node:
    """An object of the file.

    Attributes
    ----------
    path : str
        Its own path in the file.
    header : Header
    values : dict
        Of its attributes, each with its elements.
    marks : Marks or None
        Of a dataset.
    """

    path: str
    header: Header
    values: dict[str, tuple[Attribute, NDArray[Any]]] = field(default_factory=dict)
    marks: Marks | None = None


class _Contents:
    """What a file contains, as documents and manifests."""

    def __init__(self, file: File, known: dict[str, files.File] | None) -> None:
        self.file = file
        self.outside = Files(file, known)
        self.notes: list[str] = []
        self.documents: dict[str, bytes] = {}
        self.manifests: dict[str, Any] = {}
        self.made: dict[str, Shown] = {}
        self.typed: dict[str, dict[str, Any]] = {}
        self.broken: dict[str, MetadataError] = {}
        self._known: dict[int, tuple[dict[str, bytes], Shown, dict[str, Any]] | None] = {}
        if not groups.is_group(file.root):
            raise file.source.broken(file.root.address, "the root of the file is not a group")
        paths = file.paths()
        self._own = paths
        found = file.source.together([partial(self._node, address, path) for address, path in paths.items()])
        self._nodes: dict[int, _Node] = {}
        for address, (node, notes) in zip(paths, found, strict=True):
            self._nodes[address] = node
            self.notes += notes
        self.is_netcdf = naming.PROPERTIES in self._nodes[file.root.address].values or any(
            each.marks is not None and each.marks.is_scale for each in self._nodes.values()
        )
        self._scales = {
            each.marks.number: naming.plain(each.path)
            for each in self._nodes.values()
            if each.marks is not None and each.marks.is_scale and each.marks.number is not None
        }
        self._dimension_paths = {
            each.path for each in self._nodes.values() if each.marks is not None and each.marks.is_scale
        }
        for node in self._nodes.values():
            if groups.is_group(node.header):
                self._show_group(node)

    def name_of(self, address: int) -> str:
        """Return the path of an object, with a slash; "" if it has none."""
        path = self._own.get(address)
        return "" if path is None else f"/{path}"

    def _node(self, address: int, path: str) -> tuple[_Node, list[str]]:
        """Return an object, and what of it cannot be read."""
        header = self.file.header(address)
        node = _Node(path, header)
        notes: list[str] = []
        listed, broken = self.file.sound_attributes(header)
        for name, error in broken:
            what = f"the attribute {name!r}" if name else "some of its attributes"
            notes.append(f"/{path}: {what} cannot be read: {reason(error)}")
        for each in listed:
            try:
                value = elements.values(self.file.source, each.datatype, each.raw, self.name_of)
                value = value if each.dataspace.shape is None else elements.shaped(value, each.dataspace.shape)
                node.values[each.name] = each, value
            except (MetadataError, ValueError, TypeError) as error:
                notes.append(f"/{path}: the attribute {each.name!r} cannot be read: {reason(error)}")
        if datasets.is_dataset(header):
            node.marks = naming.marks({name: _single(value) for name, (_, value) in node.values.items()})
        return node, notes

    # -- groups -------------------------------------------------------------------------

    def _show_group(self, node: _Node) -> None:
        try:
            links = self.file.links(node.header)
        except MetadataError as error:
            self._break(node.path, error)
            return
        attributes, typed = self._attributes(node, None)
        document: dict[str, JSON] = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        if node.path and not is_key(node.path):
            self.notes.append(f"/{node.path}: not shown, because a path in Zarr cannot be of this form")
            return
        self.documents[f"{node.path}/{DOCUMENT}" if node.path else DOCUMENT] = arrays.rendered(document)
        self.typed[node.path] = typed
        for link in links.values():
            self._show_link(node, link)

    def _break(self, path: str, error: Exception) -> None:
        """Note that an object is broken, so that its path gives the error, and all others are shown."""
        self.notes.append(f"/{path}: not shown: it cannot be read: {reason(error)}")
        known = error if isinstance(error, MetadataError) else None
        fields = {} if known is None else {name: getattr(known, name) for name in MetadataError.FIELDS}
        source = self.file.source
        fields |= {"store": repr(source.store), "key": source.key, "path": path}
        fields["remedy"] = (
            fields.get("remedy") or "everything else in the file can be read; the notes of info name this"
        )
        self.broken[path] = MetadataError(str(error) if known is None else known.message, **fields)

    def _show_link(self, group: _Node, link: groups.Link) -> None:
        path = f"{group.path}/{link.name}" if group.path else link.name
        header: Header | None = None
        if link.kind == "external":
            self.notes.append(f"/{path}: not shown: it leads to {link.target!r} in the file {link.file!r}")
            return
        if link.kind == "other":
            self.notes.append(f"/{path}: not shown: a link of an unknown kind")
            return
        try:
            header = self.file.follow(group.header, link.name)
        except MetadataError as error:
            self._break(path, error)
            return
        if header is None:
            if link.kind == "soft":
                self.notes.append(f"/{path}: not shown: it leads to {link.target!r}, which does not exist")
            return
        node = self._nodes.get(header.address)
        if node is None:
            self.notes.append(f"/{path}: not shown: the object has no path")
        elif groups.is_group(header):
            if node.path != path:
                self.notes.append(f"/{path}: not shown: another name of the group /{node.path}")
        elif node.marks is not None:
            self._show_array(node, path)
        else:
            self.notes.append(f"/{path}: not shown: a named datatype, which has no elements")

    # -- datasets -----------------------------------------------------------------------

    def _show_array(self, node: _Node, path: str) -> None:
        marks = node.marks
        if marks is None or marks.is_dimension_only:
            return
        shown_path = f"{path.rpartition('/')[0]}/{naming.plain(path)}".lstrip("/")
        if not is_key(shown_path):
            self.notes.append(f"/{path}: not shown, because a path in Zarr cannot be of this form")
            return
        address = node.header.address
        if address not in self._known:
            self._known[address] = self._array(node)
        known = self._known[address]
        if known is None:
            if node.path in self.broken:
                self.broken.setdefault(shown_path, self.broken[node.path])
            if node.path != path:
                self.notes.append(f"/{path}: not shown: another name of /{node.path}")
            return
        documents, shown, self.typed[shown_path] = known
        self.documents |= {f"{shown_path}/{name}": text for name, text in documents.items()}
        if shown.manifest is not None:
            self.manifests[shown_path] = shown.manifest
        else:
            self.made[shown_path] = shown

    def _array(self, node: _Node) -> tuple[dict[str, bytes], Shown, dict[str, Any]] | None:
        try:
            dataset = self.file.dataset(node.header)
            shown = arrays.show(dataset, self.name_of, self.outside)
        except (OmnizarrError, ValueError, TypeError) as error:
            self._break(node.path, error)
            return None
        if isinstance(shown, Unshown):
            self.notes.append(f"/{node.path}: not shown: {shown.reason}")
            return None
        labels = dataset.datatype.labels
        if labels and not dataset.datatype.is_bool:
            listed = ", ".join(f"{name} = {value}" for name, value in list(labels.items())[:20])
            self.notes.append(f"/{node.path}: shown as numbers, of which the file names some: {listed}")
        if shown.is_json:
            self.notes.append(f"/{node.path}: shown as JSON texts, because Zarr has no such data type")
        document = shown.document
        attributes, typed = self._attributes(node, shown.dtype)
        names = self._dimensions(node, len(shown.grid))
        if shown.is_v2:
            if all(name is not None for name in names):
                attributes[dimensions.ATTRIBUTE] = names
            return {".zarray": arrays.rendered(document), ".zattrs": arrays.rendered(attributes)}, shown, typed
        document["attributes"] = attributes
        if any(name is not None for name in names):
            document["dimension_names"] = names
        return {DOCUMENT: arrays.rendered(document)}, shown, typed

    def _dimensions(self, node: _Node, rank: int) -> list[JSON]:
        marks = node.marks
        names: list[JSON] = [None] * rank
        if marks is None:
            return names
        if marks.scales:
            names = [None if path is None else self._dimension(node, path.strip("/")) for path in marks.scales]
        elif marks.numbers:
            names = [self._scales.get(number) for number in marks.numbers]
        elif marks.is_scale and rank == 1:
            names = [naming.plain(node.path)]
        elif marks.labels:
            names = [each or None for each in marks.labels]
        return (names + [None] * rank)[:rank]

    def _dimension(self, node: _Node, scale: str) -> str:
        """Return the name of a dimension: its path, if a nearer one has its name."""
        name, group = naming.plain(scale), node.path
        while group:
            group = group.rpartition("/")[0]
            nearest = f"{group}/{name}" if group else name
            if nearest in self._dimension_paths:
                return name if nearest == scale else f"/{scale}"
        return name

    def _attributes(self, node: _Node, dtype: np.dtype[Any] | None) -> tuple[dict[str, JSON], dict[str, Any]]:
        found: dict[str, JSON] = {}
        typed: dict[str, Any] = {}
        for name, (attribute, value) in node.values.items():
            if naming.is_hidden(attribute, node.marks):
                continue
            try:
                found[_text(name)] = _clean(
                    jsonform.of_attribute(value, attribute, is_netcdf=self.is_netcdf, dtype=dtype)
                )
                typed[_text(name)] = jsonform.typed(value, attribute)
            except (ValueError, TypeError, OverflowError) as error:
                self.notes.append(f"/{node.path}: the attribute {name!r} is not shown: {error}")
        return found, typed


def _single(value: Any) -> Any:
    return value.ravel()[0] if isinstance(value, np.ndarray) and value.ndim == 0 and value.size else value


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode() if not text.isascii() else text


def _clean(value: JSON) -> JSON:
    """Return a value whose texts are all Unicode."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {_text(name): _clean(each) for name, each in value.items()}
    return value


class Documents(Mapping[str, Buffer]):
    """Documents by key, and chunks of arrays by path that the reader makes when they are requested.

    `broken`: errors by the path of an object, for those who ask for its document or for one below.
    """

    def __init__(
        self,
        documents: Mapping[str, bytes],
        made: Mapping[str, Shown],
        broken: Mapping[str, MetadataError] | None = None,
    ) -> None:
        self._documents = documents
        self._made = made
        self._broken = broken or {}
        self._numbers: dict[str, frozenset[int]] = {}

    def __getitem__(self, key: str) -> Buffer:
        found = self._documents.get(key)
        if found is not None:
            return found
        if self._broken and key.endswith(f"/{DOCUMENT}"):
            self._check(key.rpartition("/")[0])
        path, number = self._find(key)
        return self._made[path].make(number)

    def _check(self, path: str) -> None:
        """Raise MetadataError if a path leads to something broken, or through it."""
        while path:
            error = self._broken.get(path)
            if error is not None:
                raise copy.copy(error)
            path = path.rpartition("/")[0]

    def __contains__(self, key: object) -> bool:
        try:
            return key in self._documents or self._find(str(key)) is not None
        except KeyError:
            return False

    def _find(self, key: str) -> tuple[str, int]:
        path, _, coords = key.rpartition("/c/") if "/c/" in key else (key.removesuffix("/c"), "", "")
        shown = self._made.get(path)
        if shown is None or shown.is_v2:
            path, coords, shown = self._find_v2(key)
        elif not coords and key != f"{path}/c":
            raise KeyError(key)
        parts = coords.split("/") if coords else []
        if len(parts) != len(shown.grid):
            raise KeyError(key)
        number = 0
        for part, count in zip(parts, shown.grid, strict=True):
            if not (part.isascii() and part.isdigit()) or (len(part) > 1 and part[0] == "0") or int(part) >= count:
                raise KeyError(key)
            number = number * count + int(part)
        if not (shown.has(number) if shown.has is not None else number in self._stored(path)):
            raise KeyError(key)
        return path, number

    def _find_v2(self, key: str) -> tuple[str, str, Shown]:
        """Return the array of Zarr v2 to which a key of a chunk belongs, and the coordinates in it."""
        path, coords = key, ""
        while path:
            path, _, last = path.rpartition("/")
            coords = f"{last}/{coords}" if coords else last
            shown = self._made.get(path)
            if shown is not None and shown.is_v2:
                if not shown.grid and coords == "0":
                    coords = ""
                return path, coords, shown
            if not (last.isascii() and last.isdigit()):
                break
        raise KeyError(key)

    def _stored(self, path: str) -> frozenset[int] | range:
        found = self._numbers.get(path)
        if found is None:
            numbers = self._made[path].numbers()
            if isinstance(numbers, range):
                return numbers
            found = self._numbers[path] = frozenset(numbers)
        return found

    def __iter__(self) -> Iterator[str]:
        yield from self._documents
        for path, shown in self._made.items():
            for number in sorted(self._stored(path)):
                coords = []
                left = number
                for count in reversed(shown.grid):
                    left, at = divmod(left, count)
                    coords.append(str(at))
                if shown.is_v2:
                    yield "/".join((path, *(reversed(coords) if coords else "0")))
                else:
                    yield "/".join((path, "c", *reversed(coords)))

    def __len__(self) -> int:
        return len(self._documents) + sum(len(self._stored(path)) for path in self._made)


class HDF5Store(ManifestStore):
    """A read-only store of an HDF5 or netCDF-4 file. It needs no library for HDF5, and takes no lock.

    Parameters
    ----------
    store : Store
        The store that the file is in.
    key : str
        Its key there.
    file : File, optional
        What reads it, if a certain version of it is wanted.
    known : dict of str to File, optional
        The same for the files that it leads to, by key.

    Attributes
    ----------
    notes : tuple of str
        What of the file is not shown, or is shown as something else, by name.

    Raises
    ------
    NodeNotFoundError
        If there is no file.
    MetadataError
        If it is not HDF5, or is broken.
    """

    format = "HDF5"

    def __init__(
        self, store: Store, key: str, file: files.File | None = None, known: dict[str, files.File] | None = None
    ) -> None:
        contents = _Contents(File(store, key, file), known)
        # What read the documents reads the chunks, so both are of one version.
        documents = Documents(contents.documents, contents.made, contents.broken)
        super().__init__(documents, contents.manifests, contents.outside.listed)
        self._outside = contents.outside
        self._typed = contents.typed
        self.notes = tuple(contents.notes)

    def attributes_of(self, path: str) -> dict[str, Any] | None:
        """Return the attributes of a node with their types: texts, numbers and vectors of NumPy, lists of texts."""
        return self._typed.get(path)

    def __reduce__(self) -> tuple[Any, ...]:
        file = self._files[0]
        return HDF5Store, (file.store, file.key, file, self._outside.known)

    def __repr__(self) -> str:
        return f"HDF5Store({self.place!r})"


def open_place(place: Place, file: files.File | None = None) -> tuple[Store, str] | None:
    """Return the store of an HDF5 file at a path or URL; None if it is none.

    `file` is the file, if it was found already.
    """
    if place.path is None:
        try:
            file = file or opening.remote(place)
        except OmnizarrError:
            return None
        store, key = (file.store, file.key) if file is not None else place.file()
        head = b"" if file is None else bytes(file.head(_HEAD))
        heads: Buffers = [head[start : start + len(SIGNATURE)] for start in _STARTS]
    else:
        store, key = place.file()
        heads = verbs.get_spans(store, key, [(start, start + len(SIGNATURE)) for start in _STARTS]) or []
    if not any(bytes(each) == SIGNATURE for each in heads):
        return None
    place.refuse_options() if place.path is not None else None
    if not place.read_only:
        raise ReadOnlyError(
            "an HDF5 file can only be read",
            store=place.text,
            remedy='open it with mode "r", and convert it to Zarr to change it',
        )
    return HDF5Store(store, key, file), ""
