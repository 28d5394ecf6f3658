"""What an HDF5 file contains, as documents and manifests: one object when its path is asked for, or everything.

What one path needs is read from the groups that lead to it. That suffices where each object on the way has one name,
and nothing depends on objects elsewhere. Otherwise, and to list, the whole file is read. Both show the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import MetadataError, OmnizarrError
from omnizarr.formats.paths import upwards
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
from omnizarr.stores import threads
from omnizarr.stores.base import is_key
from omnizarr.stores.manifests import file as files

DOCUMENT: Final = "zarr.json"
_LOOKED: Final = 1 << 16  # paths that were asked for


@dataclass(slots=True)
class Node:
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
    notes : list of str
        What of its attributes cannot be read.
    """

    path: str
    header: Header
    values: dict[str, tuple[Attribute, NDArray[Any]]] = field(default_factory=dict)
    marks: Marks | None = None
    notes: list[str] = field(default_factory=list)


class _Array(NamedTuple):
    """A dataset that is shown."""

    documents: dict[str, bytes]
    shown: Shown
    typed: dict[str, Any]


class _Elsewhere(Exception):  # noqa: N818 - no error: the whole file is read
    """What a path shows depends on objects that do not lead to it."""


class _Facts(ABC):
    """What is known of the objects of a file, as far as others depend on it."""

    @abstractmethod
    def name_of(self, address: int) -> str:
        """Return the path of an object, with a slash; "" if it has none."""

    @abstractmethod
    def is_netcdf(self, node: Node) -> bool:
        """Whether a library for netCDF has written the file."""

    @abstractmethod
    def scale(self, number: int) -> str | None:
        """Return the name of the dimension of netCDF with a number."""

    @abstractmethod
    def is_scale(self, path: str) -> bool:
        """Whether the object whose own path this is is a dimension scale."""


class _OfAll(_Facts):
    """What all objects together say."""

    def __init__(self, root: int, nodes: Mapping[int, Node], name_of: Callable[[int], str]) -> None:
        self._name_of = name_of
        marked = [(each.path, each.marks) for each in nodes.values() if each.marks is not None and each.marks.is_scale]
        self._is_netcdf = bool(marked) or naming.PROPERTIES in nodes[root].values
        self._scales = {marks.number: naming.plain(path) for path, marks in marked if marks.number is not None}
        self._scale_paths = {path for path, _ in marked}

    def name_of(self, address: int) -> str:
        return self._name_of(address)

    def is_netcdf(self, node: Node) -> bool:
        return self._is_netcdf

    def scale(self, number: int) -> str | None:
        return self._scales.get(number)

    def is_scale(self, path: str) -> bool:
        return path in self._scale_paths


class _OnTheWay(_Facts):
    """What the groups say that lead to one object. Raises _Elsewhere for all else."""

    def __init__(self, contents: Contents, way: Sequence[tuple[Header, str]]) -> None:
        self._contents = contents
        self._way = way
        self._names: dict[int, str] | None = None

    def name_of(self, address: int) -> str:
        file = self._contents.file
        if self._names is None:
            self._names = {
                link.address: _below(path, link.name)
                for group, path in self._way
                for link in file.links(group).values()
                if link.kind == "hard" and link.address is not None
            }
        found = self._names.get(address)
        if found is None or file.header(address).links != 1:
            raise _Elsewhere
        return f"/{found}"

    def is_netcdf(self, node: Node) -> bool:
        root, _ = self._way[0]
        if (node.marks is not None and node.marks.is_scale) or naming.PROPERTIES in self._contents.names_of(root):
            return True
        raise _Elsewhere

    def scale(self, number: int) -> str | None:
        raise _Elsewhere

    def is_scale(self, path: str) -> bool:
        file = self._contents.file
        above, _, name = path.rpartition("/")
        group = next((group for group, own in self._way if own == above), None)
        if group is None:
            raise _Elsewhere
        link = file.links(group).get(name)
        if link is None:
            return False
        if link.kind != "hard" or link.address is None:
            raise _Elsewhere
        header = file.header(link.address)
        if header.links != 1:
            raise _Elsewhere
        if not datasets.is_dataset(header):
            return False
        marks = self._contents.node(header, path, self).marks
        return marks is not None and marks.is_scale


class View:
    """Objects of a file, as documents and manifests."""

    def __init__(self, contents: Contents) -> None:
        self.notes: list[str] = []
        self.documents: dict[str, bytes] = {}
        self.manifests: dict[str, Any] = {}
        self.made: dict[str, Shown] = {}
        self.typed: dict[str, dict[str, Any]] = {}
        self.broken: dict[str, MetadataError] = {}
        self._contents, self._file = contents, contents.file
        self._known: dict[int, _Array | None] = {}

    # -- groups -------------------------------------------------------------------------

    def show_group(self, node: Node, facts: _Facts) -> bool:
        """Show a group; return whether its links can be read, and Zarr can have its path."""
        try:
            self._file.links(node.header)
        except MetadataError as error:
            self.note_broken(node.path, error)
            return False
        attributes, typed = self._attributes(node, None, facts)
        document: dict[str, JSON] = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
        if node.path and not is_key(node.path):
            self.notes.append(f"/{node.path}: not shown, because a path in Zarr cannot be of this form")
            return False
        self.documents[_below(node.path, DOCUMENT)] = arrays.rendered(document)
        self.typed[node.path] = typed
        return True

    def note_broken(self, path: str, error: Exception) -> None:
        """Note that an object is broken, so that its path gives the error, and all others are shown."""
        self.notes.append(f"/{path}: not shown: it cannot be read: {reason(error)}")
        known = error if isinstance(error, MetadataError) else None
        fields = {} if known is None else {name: getattr(known, name) for name in MetadataError.FIELDS}
        source = self._file.source
        fields |= {"store": repr(source.store), "key": source.key, "path": path}
        fields["remedy"] = (
            fields.get("remedy") or "everything else in the file can be read; the notes of info name this"
        )
        self.broken[path] = MetadataError(str(error) if known is None else known.message, **fields)

    def show_link(self, group: Node, link: groups.Link, nodes: Mapping[int, Node], facts: _Facts) -> None:
        """Show the dataset to which a link of a group leads, or note why nothing is shown."""
        path = _below(group.path, link.name)
        header: Header | None = None
        if link.kind == "external":
            self.notes.append(f"/{path}: not shown: it leads to {link.target!r} in the file {link.file!r}")
            return
        if link.kind == "other":
            self.notes.append(f"/{path}: not shown: a link of an unknown kind")
            return
        try:
            header = self._file.follow(group.header, link.name)
        except MetadataError as error:
            self.note_broken(path, error)
            return
        if header is None:
            if link.kind == "soft":
                self.notes.append(f"/{path}: not shown: it leads to {link.target!r}, which does not exist")
            return
        node = nodes.get(header.address)
        if node is None:
            self.notes.append(f"/{path}: not shown: the object has no path")
        elif groups.is_group(header):
            if node.path != path:
                self.notes.append(f"/{path}: not shown: another name of the group /{node.path}")
        elif node.marks is not None:
            self.show_array(node, path, facts)
        else:
            self.notes.append(f"/{path}: not shown: a named datatype, which has no elements")

    # -- datasets -----------------------------------------------------------------------

    def show_array(self, node: Node, path: str, facts: _Facts) -> None:
        """Show a dataset at a path, which need not be its own."""
        marks = node.marks
        if marks is None or marks.is_dimension_only:
            return
        shown_path = f"{path.rpartition('/')[0]}/{naming.plain(path)}".lstrip("/")
        if not is_key(shown_path):
            self.notes.append(f"/{path}: not shown, because a path in Zarr cannot be of this form")
            return
        address = node.header.address
        if address not in self._known:
            self._known[address] = self._array(node, facts)
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

    def _array(self, node: Node, facts: _Facts) -> _Array | None:
        try:
            dataset = self._file.dataset(node.header)
            shown = arrays.show(dataset, self._contents.name_of, self._contents.outside)
        except (OmnizarrError, ValueError, TypeError) as error:
            self.note_broken(node.path, error)
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
        attributes, typed = self._attributes(node, shown.dtype, facts)
        names = _dimensions(node, len(shown.grid), facts)
        if shown.is_v2:
            if all(name is not None for name in names):
                attributes[dimensions.ATTRIBUTE] = names
            return _Array({".zarray": arrays.rendered(document), ".zattrs": arrays.rendered(attributes)}, shown, typed)
        document["attributes"] = attributes
        if any(name is not None for name in names):
            document["dimension_names"] = names
        return _Array({DOCUMENT: arrays.rendered(document)}, shown, typed)

    def _attributes(
        self, node: Node, dtype: np.dtype[Any] | None, facts: _Facts
    ) -> tuple[dict[str, JSON], dict[str, Any]]:
        found: dict[str, JSON] = {}
        typed: dict[str, Any] = {}
        for name, (attribute, value) in node.values.items():
            if naming.is_hidden(attribute, node.marks):
                continue
            is_netcdf = attribute.dataspace.shape == (1,) and facts.is_netcdf(node)
            try:
                made = jsonform.of_attribute(value, attribute, is_netcdf=is_netcdf, dtype=dtype)
                found[_text(name)] = cleaned = _clean(made)
                typed[_text(name)] = jsonform.typed(value, attribute)
                if cleaned != made:
                    said = "shown with U+FFFD in place of bytes that are not UTF-8"
                    self.notes.append(f"/{node.path}: the attribute {name!r} is {said}")
            except (ValueError, TypeError, OverflowError) as error:
                self.notes.append(f"/{node.path}: the attribute {name!r} is not shown: {error}")
        return found, typed


def _dimensions(node: Node, rank: int, facts: _Facts) -> list[JSON]:
    marks = node.marks
    names: list[JSON] = [None] * rank
    if marks is None:
        return names
    if marks.scales:
        names = [None if path is None else _dimension(node, path.strip("/"), facts) for path in marks.scales]
    elif marks.numbers:
        names = [facts.scale(number) for number in marks.numbers]
    elif marks.is_scale and rank == 1:
        names = [naming.plain(node.path)]
    elif marks.labels:
        names = [each or None for each in marks.labels]
    return (names + [None] * rank)[:rank]


def _dimension(node: Node, scale: str, facts: _Facts) -> str:
    """Return the name of a dimension: its path, if a nearer one has its name."""
    name, group = naming.plain(scale), node.path
    while group:
        group = group.rpartition("/")[0]
        nearest = _below(group, name)
        if facts.is_scale(nearest):
            return name if nearest == scale else f"/{scale}"
    return name


def _below(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _single(value: Any) -> Any:
    return value.ravel()[0] if isinstance(value, np.ndarray) and value.ndim == 0 and value.size else value


def _text(text: str) -> str:
    return elements.unicode(text)


def _clean(value: JSON) -> JSON:
    """Return a value whose texts are all Unicode."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [_clean(each) for each in value]
    if isinstance(value, dict):
        return {_text(name): _clean(each) for name, each in value.items()}
    return value


class Contents:
    """What a file contains. What is asked for is found then, and stays the same.

    Parameters
    ----------
    file : File
    known : dict of str to File, optional
        Other files that were opened before, by key.

    Raises
    ------
    MetadataError
        If the root is broken.
    """

    def __init__(self, file: File, known: dict[str, files.File] | None) -> None:
        self.file = file
        self.outside = Files(file, known)
        if not groups.is_group(file.root):
            raise file.source.broken(file.root.address, "the root of the file is not a group")
        file.links(file.root)
        self._names: dict[int, frozenset[str]] = {}
        self._nodes: dict[int, Node] = {}
        self._view, self._is_whole = View(self), False
        self._looked: set[str] = set()

    def whole(self) -> View:
        """Return all objects."""
        if not self._is_whole:
            with self._lock():
                if not self._is_whole:
                    self._view, self._is_whole = self._read(), True
        return self._view

    def at(self, path: str) -> View:
        """Return objects of which one is that at a path, if there is one."""
        if self._is_whole or path in self._looked:
            return self._view
        with self._lock():
            try:
                if not self._is_whole and path not in self._looked:
                    self._look(path)
            except _Elsewhere:
                return self.whole()
            if len(self._looked) < _LOOKED:
                self._looked.add(path)
        return self._view

    def dataset_above(self, key: str) -> str | None:
        """Return the path of the dataset to which a key of a chunk may belong; None if there is none."""
        if not self._is_whole:
            with self._lock():
                try:
                    *_, (header, path) = self._way(key)
                except _Elsewhere:
                    self.whole()
                except MetadataError:
                    return None
                else:
                    return path if path != key and datasets.is_dataset(header) else None
        above = islice(upwards(key), 1, None)
        return next((path for path in above if path in self._view.manifests or path in self._view.made), None)

    def name_of(self, address: int) -> str:
        """Return the path of an object, with a slash; "" if it has none."""
        with self._lock():
            return _named(self.file.paths())(address)

    def _lock(self) -> Any:
        return threads.lock((Contents, id(self)))

    # -- one object ---------------------------------------------------------------------

    def _way(self, path: str) -> list[tuple[Header, str]]:
        """Return the objects on the way to a path with their own paths, as far as there are any, from the root on.

        Raises _Elsewhere where an object may have other names, and MetadataError where one is broken; the attribute
        `path` of that is where.
        """
        way = [(self.file.root, "")]
        for name in path.split("/") if path else ():
            group, above = way[-1]
            if not groups.is_group(group):
                break
            own = above
            try:
                links = self.file.links(group)
                link = links.get(name)
                if name.startswith(naming.NON_COORDINATE) or naming.NON_COORDINATE + name in links:
                    raise _Elsewhere
                if link is None or link.kind in {"external", "other"}:
                    break
                if link.kind == "soft" or link.address is None:
                    raise _Elsewhere
                own = _below(above, name)
                header = self.file.header(link.address)
            except MetadataError as error:
                error.path = own
                raise
            if header.links != 1:
                raise _Elsewhere
            way.append((header, own))
        return way

    def _look(self, path: str) -> None:
        """Show what is at a path. Raises _Elsewhere."""
        view = self._view
        try:
            way = self._way(path)
        except MetadataError as error:
            view.note_broken(str(error.path), error)
            return
        header, own = way[-1]
        if own != path:
            return
        is_group = groups.is_group(header)
        facts = _OnTheWay(self, way if is_group else way[:-1])
        node = self.node(header, own, facts)
        view.notes += node.notes
        if is_group:
            view.show_group(node, facts)
        else:
            view.show_array(node, own, facts)

    def names_of(self, header: Header) -> frozenset[str]:
        """Return the names of the attributes of an object that can be read."""
        found = self._names.get(header.address)
        if found is None:
            listed, _ = self.file.sound_attributes(header)
            found = self._names[header.address] = frozenset(each.name for each in listed)
        return found

    # -- everything ---------------------------------------------------------------------

    def _read(self) -> View:
        file, root, paths = self.file, self.file.root, self.file.paths()
        known = self._nodes
        name_of = _named(paths)
        tasks = [partial(self._node, address, path, name_of) for address, path in paths.items()]
        nodes = {}
        for address, made in zip(paths, file.source.together(tasks), strict=True):
            nodes[address] = known.setdefault(address, made)
        facts = _OfAll(root.address, nodes, name_of)
        view = View(self)
        if file.source.is_open:
            view.notes.append("/: a writer has this file open, or did not close it: what it has not stored is missing")
        for node in nodes.values():
            view.notes += node.notes
        for node in nodes.values():
            if groups.is_group(node.header) and view.show_group(node, facts):
                for link in file.links(node.header).values():
                    view.show_link(node, link, nodes, facts)
        return view

    def node(self, header: Header, path: str, facts: _Facts) -> Node:
        """Return an object of which the own path is known."""
        found = self._nodes.get(header.address)
        if found is None:
            found = self._nodes[header.address] = self._node(header.address, path, facts.name_of)
        return found

    def _node(self, address: int, path: str, name_of: Callable[[int], str]) -> Node:
        """Return an object. This does nothing but read."""
        known = self._nodes.get(address)
        if known is not None:
            return known
        header = self.file.header(address)
        node = Node(path, header)
        listed, broken = self.file.sound_attributes(header)
        for name, error in broken:
            what = f"the attribute {name!r}" if name else "some of its attributes"
            node.notes.append(f"/{path}: {what} cannot be read: {reason(error)}")
        for each in listed:
            if each.name == naming.REFERENCES:  # which lead to all that a scale belongs to
                continue
            try:
                value = elements.values(self.file.source, each.datatype, each.raw, name_of)
                value = value if each.dataspace.shape is None else elements.shaped(value, each.dataspace.shape)
                node.values[each.name] = each, value
            except (MetadataError, ValueError, TypeError) as error:
                node.notes.append(f"/{path}: the attribute {each.name!r} cannot be read: {reason(error)}")
        if datasets.is_dataset(header):
            node.marks = naming.marks({name: _single(value) for name, (_, value) in node.values.items()})
        return node


def _named(paths: Mapping[int, str]) -> Callable[[int], str]:
    """Return what gives the path of an object, with a slash; "" if it has none."""

    def name_of(address: int) -> str:
        path = paths.get(address)
        return "" if path is None else f"/{path}"

    return name_of
