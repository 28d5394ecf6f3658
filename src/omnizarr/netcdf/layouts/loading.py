"""Datasets of every layout of NCZarr, and Zarr without it, as netCDF.

Spec: NCZarr, "NCZarr versus Pure Zarr", "Translation", "XArray", "Appendix E".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

import numpy as np

from omnizarr.errors import OmnizarrError, UnknownDataTypeError
from omnizarr.formats import lenient
from omnizarr.formats.conventions import nczarr_metadata
from omnizarr.formats.conventions.nczarr_metadata import NOTHING, SPEC, NodeMarks
from omnizarr.formats.reader import is_list, is_object, join
from omnizarr.formats.spelling import Document
from omnizarr.metadata import as_model
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, GroupMetadata, Metadata, Named, Note, datatypes, grids
from omnizarr.model.datatypes.optional import NAMES as OPTIONAL
from omnizarr.netcdf import filters, forms, types
from omnizarr.netcdf.header import MEMBERS, Attribute, DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.layouts import attributes, elements, quirks, user_types
from omnizarr.netcdf.layouts import xarray as for_xarray
from omnizarr.netcdf.layouts.contract import Layout, Loaded, Stored
from omnizarr.netcdf.layouts.dimensions import Claim, Scopes
from omnizarr.netcdf.layouts.quirks import Version, Writer
from omnizarr.netcdf.layouts.writing import LAYOUTS, QUANTIZED, format_special
from omnizarr.netcdf.layouts.xarray import ENCODING, FILL_VALUE, UTF_8
from omnizarr.netcdf.types import AnyType, UserType
from omnizarr.nodes import chunking, detection
from omnizarr.nodes.group import Group
from omnizarr.nodes.location import StorePath
from omnizarr.nodes.members import UnreadableNode
from omnizarr.nodes.naming import Named as NamedNodes
from omnizarr.nodes.nczarr_objects import objects_at
from omnizarr.stores import bounded

_VERSION: Final = re.compile(r"netcdf=([0-9]+(?:\.[0-9]+){1,3})")
_XARRAY: Final = "_ARRAY_DIMENSIONS"
_SCALAR: Final = "_scalar_"
_OF_THE_DATA: Final = frozenset({"missing_value", "valid_min", "valid_max", "valid_range", "actual_range"})
"""Attributes that have the type of their variable. Spec: CF conventions, "Missing data, valid and actual range"."""

_SERIALIZERS: Final = frozenset({"bytes", "vlen-utf8", "vlen-bytes"})


@dataclass(slots=True)
class _Node:
    """A node on its way to a header."""

    path: str
    where: StorePath
    metadata: Metadata
    marks: NodeMarks = NOTHING
    spellings: Mapping[str, JSON] | None = None
    """Attributes with numbers as they are spelled, where that counts; None if they have not been read yet."""

    @property
    def attributes_key(self) -> str:
        """Key of the document with the attributes."""
        return self.where.prefix + (".zattrs" if self.metadata.dialect == "v2" else "zarr.json")

    @property
    def depends_on_spelling(self) -> bool:
        """Whether there is an attribute of which the value alone does not say what it is."""
        recorded = self.marks.types
        for name, value in self.metadata.attributes.items():
            if type(value) is str or name in nczarr_metadata.HIDDEN or name not in recorded:
                continue
            if attributes.depends_on_spelling(value, recorded[name], self.text):
                return True
        return False

    @property
    def text(self) -> str | None:
        """The document with the attributes, as it was read; None if that is not known, or it had to be mended."""
        memos, is_v2 = self.metadata.spellings, self.metadata.dialect == "v2"
        memo = memos.get("v2:documents" if is_v2 else "v3:zarr.json")
        found = None if memo is None else memo.document.get(".zattrs") if is_v2 else memo.document
        if not isinstance(found, Document) or found.said is not None or found.notes:
            return None
        return found.text

    @property
    def spelled(self) -> Mapping[str, JSON]:
        """Attributes with numbers as they are spelled, where that counts."""
        if self.spellings is None:
            text = self.text
            self.spellings = {} if text is None or not self.depends_on_spelling else self.tokens(text)
        return self.spellings

    def tokens(self, text: str) -> Mapping[str, JSON]:
        """Return the attributes in a document with their numbers as they are spelled."""
        try:
            document = lenient.tokens(text)
        except (ValueError, RecursionError):  # changed meanwhile
            return {}
        if is_object(document) and self.metadata.dialect != "v2":
            document = document.get("attributes")
        return document if is_object(document) else {}


@dataclass(slots=True)
class _GroupNode(_Node):
    """A group on its way to a header: its members, and remarks on them."""

    members: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)


def load(root: Group, *, mode: Literal["nczarr", "zarr"] | None = None, xarray: bool = True) -> Loaded:
    """Return a dataset as it was found: the group `root` and all below it.

    Parameters
    ----------
    root : Group
    mode : {"nczarr", "zarr"}, optional
        "zarr": NCZarr's metadata is ignored. Otherwise it is used if there is any.
    xarray : bool
        Whether ``_ARRAY_DIMENSIONS`` names dimensions.

    Notes
    -----
    Broken marks, and nodes that cannot be read, become notes; nothing in them raises. Errors of the store do.
    """
    nodes = _nodes(root, by_name=mode != "zarr")
    if mode != "zarr":
        _find_marks(root, nodes)
    _find_spellings(nodes.values())
    top = nodes[""].metadata
    # None if another program did.
    properties = top.attributes.get("_NCProperties")
    match = _VERSION.search(properties) if isinstance(properties, str) else None
    version = tuple(map(int, match[1].split("."))) if match else None
    layout = _layout(top, nodes.values())
    has_marks = layout.name not in {"pure", "pure-v3"}
    writer = Writer(has_marks, version, layout.name if has_marks else None)
    variables = _variables(nodes, writer, xarray=xarray)
    dimensions = _dimensions(nodes, variables)
    root_header = _tree(nodes, dimensions, variables, has_marks=has_marks)
    return Loaded(
        root=root_header,
        layout=layout,
        variables=variables,
        groups={path: node.where for path, node in nodes.items() if isinstance(node.metadata, GroupMetadata)},
        version=None if version is None else ".".join(map(str, version)),
        notes=nodes[""].marks.notes,
    )


# -- nodes and marks -----------------------------------------------------------------------


def _nodes(root: Group, *, by_name: bool) -> dict[str, _Node]:
    """Return all nodes by full name, parents first; what cannot be read as a note of its parent.

    Where the store cannot list, those that NCZarr names, if `by_name`.
    """
    top = _GroupNode("", root.store_path, root._metadata)  # noqa: SLF001 - the model, as it is shared
    found: dict[str, _Node] = {"": top}
    for relative, node in root.members(max_depth=None):
        path, where = f"/{relative}", node.store_path
        parent = _parent(found, root.store_path, path)
        if isinstance(node, UnreadableNode):
            parent.unreadable.add(where.name)
            message = f"{where.name!r} cannot be read: {node.error.message}"
            parent.notes.append(Note(join(MEMBERS, where.name), message))
        else:
            kind = _GroupNode if isinstance(node, Group) else _Node
            found.setdefault(path, kind(path, where, node._metadata))  # noqa: SLF001 - as above
            parent.members.append(path)
    if isinstance(root._snapshot, NamedNodes):  # noqa: SLF001 - as all nodes below share it
        if not by_name:
            detection.children(root.store_path)  # raises why they cannot be listed
        title = "NCZarr" if root._snapshot.source == "nczarr" else "OME-Zarr"  # noqa: SLF001 - as above
        top.notes.append(Note("", f"the store cannot list: only what {title} names can be found", SPEC))
    return found


def _parent(nodes: dict[str, _Node], root: StorePath, path: str) -> _GroupNode:
    """Return the group that a node is in, created if it has no document."""
    above = path.rpartition("/")[0]
    there = nodes.get(above)
    if isinstance(there, _GroupNode):
        return there
    where = root.at(f"{root.prefix}{above[1:]}")
    made = _GroupNode(above, where, GroupMetadata(dialect=nodes[""].metadata.dialect, implicit=True))
    if there is None:  # else an array, which netCDF sees nothing in
        outer = _parent(nodes, root, above)
        nodes[above] = made
        outer.members.append(above)
    return made


def _find_marks(root: Group, nodes: Mapping[str, _Node]) -> None:
    """Find the marks of all nodes; only where there are none else, or a superblock says so, those of layout A."""
    lists = {path: node.metadata for path, node in nodes.items() if nczarr_metadata.LISTED in node.metadata.attributes}
    for path, node in nodes.items():
        above, _, name = path.rpartition("/") if lists else ("", "", "")
        in_group = nczarr_metadata.listed(lists[above], name) if above in lists and path else None
        node.marks = nczarr_metadata.find(node.metadata, in_group=in_group)
    if root._metadata.dialect != "v2" or any(node.marks.layout for node in nodes.values()):  # noqa: SLF001 - as above
        return
    if not root.store.exists(f"{root.store_path.prefix}{nczarr_metadata.SUPERBLOCK}"):
        return
    for node in nodes.values():
        node.marks = nczarr_metadata.find(node.metadata, objects_at(node.where, node.metadata))


def _find_spellings(nodes: Iterable[_Node]) -> None:
    """Read again how numbers are spelled in the attributes of nodes in which that counts, where it is not known."""
    unread = [node for node in nodes if node.text is None and node.depends_on_spelling]
    if unread:
        store = unread[0].where.store
        for position, data in bounded.documents(store, (node.attributes_key for node in unread)):
            if data is not None:  # else there is only consolidated metadata
                with suppress(UnicodeDecodeError):  # changed meanwhile
                    unread[position].spellings = unread[position].tokens(bytes(data).decode("utf-8-sig"))


def _version(root: Metadata) -> Version | None:
    """Return the version of netCDF-C that wrote a dataset; None if another program did."""
    properties = root.attributes.get("_NCProperties")
    match = _VERSION.search(properties) if isinstance(properties, str) else None
    return tuple(map(int, match[1].split("."))) if match else None


def _layout(root: Metadata, nodes: Iterable[_Node]) -> Layout:
    """Return the layout that the root has, or else most of the nodes."""
    marked = [node for node in nodes if node.marks.layout is not None]
    found = [node.marks.layout for node in marked if node.marks.layout is not None]
    if root.dialect != "v2":
        own = any(isinstance(node.metadata, ArrayMetadata) for node in marked)
        return LAYOUTS["E" if own else "v3" if found else "pure-v3"]
    return LAYOUTS[found[0] if found else "pure"]


# -- variables -------------------------------------------------------------------------------


class _Typed(NamedTuple):
    """The attributes of a variable, with their types.

    Attributes
    ----------
    attributes, quantized : dict
        Those that say how numbers are rounded stand apart.
    fill : Attribute, optional
        The ``_FillValue`` that stands among them in the document.
    notes : list of Note
    """

    attributes: dict[str, Attribute]
    quantized: dict[str, Attribute]
    fill: Attribute | None
    notes: list[Note]


@dataclass(slots=True, eq=False)
class _Variable:
    """A variable: what dimensions depend on, and what is understood when it is asked for.

    Any number of threads may ask: what is made twice is the same.

    Attributes
    ----------
    node : _Node
    type : NcType or UserType
    claim : Claim
    labelled, array : ArrayMetadata
        As the documents say, and with elements as they are meant.
    is_scalar : bool
    writer : Writer
    notes : tuple of Note
    user_type : UserType, optional
        What the elements are to netCDF, if they are numbers of `type` to others.
    dimensions : tuple of str
    """

    node: _Node
    type: AnyType
    claim: Claim
    labelled: ArrayMetadata
    array: ArrayMetadata
    is_scalar: bool
    writer: Writer
    notes: tuple[Note, ...]
    user_type: UserType | None = None
    dimensions: tuple[str, ...] = ()
    _typed: _Typed | None = None
    _made: tuple[VariableHeader, Stored] | None = None

    @property
    def attributes(self) -> dict[str, Attribute]:
        """See `FoundVariable`."""
        typed = self.typed
        return {**typed.quantized, **typed.attributes} if typed.quantized else typed.attributes

    @property
    def header(self) -> VariableHeader:
        """See `FoundVariable`."""
        return self._understood()[0]

    @property
    def stored(self) -> Stored:
        """See `FoundVariable`."""
        return self._understood()[1]

    @property
    def typed(self) -> _Typed:
        """The attributes."""
        if self._typed is None:
            typed, notes = _attributes(self.node, self.type, self.array)
            quantized = {each: typed.pop(each) for each in QUANTIZED if each in typed}
            fill = typed.get(FILL_VALUE)
            if fill is None and self.writer.hides_fill:
                hidden = quirks.fill_attribute(self._filled(None)[0], self.type)
                typed = typed if hidden is None else {FILL_VALUE: hidden, **typed}
            if fill is None and self.array.data_type.name in OPTIONAL and isinstance(self.type, types.NcType):
                fill = Attribute(self.type, np.array([self.type.default_fill], self.type.dtype))
                typed = {FILL_VALUE: fill, **typed}
            self._typed = _Typed(typed, quantized, fill, notes)
        return self._typed

    @property
    def _is_no_fill(self) -> bool:
        """Whether unwritten elements hold nothing in particular."""
        is_undefined, writer = self.array.fill_value is UNDEFINED, self.writer
        return self.node.marks.fill == "none" or (is_undefined and writer.is_netcdf and writer.layout != "xarray")

    @property
    def _is_filled_by_default(self) -> bool:
        """Whether netCDF's default is meant where there is no fill value."""
        return self.array.fill_value is UNDEFINED and self.writer.layout == "xarray"

    def _filled(self, attribute: Attribute | None) -> tuple[ArrayMetadata, tuple[Note, ...]]:
        """Return the array with the fill value that is meant, and notes; `attribute` is ``_FillValue``."""
        array = self.array
        if array.data_type.name in OPTIONAL:
            return array, ()
        if self._is_filled_by_default and not self._is_no_fill:
            array = quirks.with_default(array, self.type)
        return quirks.with_fill(array, self.type, attribute, self.writer)

    def _understood(self) -> tuple[VariableHeader, Stored]:
        if self._made is None:
            typed, found = self.typed, self.node.marks
            array, notes = self._filled(typed.fill)
            special = {**_storage(array, self.labelled, self.type, is_scalar=self.is_scalar), **typed.quantized}
            if found.filters:
                special = {each: value for each, value in special.items() if each not in nczarr_metadata.FILTERS}
                said = for_xarray.special_of(found.filters)  # in the order of filters, which CDL does not keep
                special |= {each: said[each] for each in nczarr_metadata.FILTERS if each in said}
            is_undefined = array.fill_value is UNDEFINED
            if (self._is_no_fill and is_undefined) or found.fill == "none":
                special["_NoFill"] = Attribute(types.CHAR, "true")
            header = VariableHeader(
                name=self.claim.name,
                type=self.user_type or self.type,
                dimensions=self.dimensions,
                attributes=typed.attributes,
                special=special,
                notes=(*self.notes, *(() if self._is_filled_by_default else notes), *typed.notes, *self._odd_shape()),
            )
            needs_chunks = self.array.fill_value is UNDEFINED and not is_undefined
            self._made = header, Stored(self.node.where, array, self.is_scalar, needs_chunks=needs_chunks)
        return self._made

    def _odd_shape(self) -> Iterator[Note]:
        """Yield remarks on scalars and dimensions."""
        if self.is_scalar and self.writer.loses_scalars:
            yield Note("", "netCDF-C 4.8 stored the fill value in place of a scalar's data", SPEC)
        elif self.node.marks.is_scalar and not self.is_scalar:
            shape = list(self.claim.shape)
            yield Note("", f"called a scalar, but of shape {shape}: read as an array", SPEC)
        yield from self.claim.notes


def _variables(nodes: Mapping[str, _Node], writer: Writer, *, xarray: bool) -> dict[str, _Variable]:
    """Return what the arrays are as variables; those that netCDF cannot know become notes of their groups."""
    found: dict[str, _Variable] = {}
    for path, node in nodes.items():
        if isinstance(node.metadata, ArrayMetadata):
            group = path.rpartition("/")[0]
            variable = _variable(node, group, writer, xarray=xarray)
            if variable is None:
                name = node.metadata.data_type.name
                if name in OPTIONAL:  # of numbers and text, there is one
                    name = f"missing elements of {node.metadata.data_type.configuration.get('name')}"
                message = f"{node.where.name!r} is left out: netCDF has no type for {name}"
                above = nodes[group]
                if isinstance(above, _GroupNode):
                    above.notes.append(Note(join(MEMBERS, node.where.name), message, SPEC))
            else:
                found[path] = variable
    return found


def _variable(node: _Node, group: str, writer: Writer, *, xarray: bool) -> _Variable | None:
    """Return what an array is as a variable, without its dimensions; None if netCDF has no type for it."""
    metadata = node.metadata
    if not isinstance(metadata, ArrayMetadata):
        return None
    name = node.where.name
    alias = node.marks.alias
    meant, notes = quirks.as_meant(metadata, writer, alias)
    is_char = alias == "char" or meant.data_type is not metadata.data_type or _is_char(metadata, writer)
    known = elements.of(meant, name, is_char=is_char and alias != "string")
    if known is None:
        return None
    node.marks, user = user_types.believed(for_xarray.believed(node.marks, meant, known.type), meant)
    found, of_type = node.marks, known.type
    if user is not None and isinstance(of_type, UserType):
        of_type, user, known = user, None, known._replace(notes=())
    if not metadata.shape:
        is_scalar = True
    elif metadata.shape != (1,):
        is_scalar = False
    else:
        names = metadata.attributes.get(_XARRAY)
        is_scalar = found.is_scalar or found.references == () or names in ([], [_SCALAR])
    claim = (
        Claim(group, name, (), (), ())
        if is_scalar
        else Claim(group, name, metadata.shape, found.references, _names(metadata, xarray=xarray))
    )
    remarks = (*found.notes, *notes, *known.notes)
    return _Variable(node, of_type, claim, metadata, meant, is_scalar, writer, remarks, user)


def _is_char(metadata: ArrayMetadata, writer: Writer) -> bool:
    """Return whether ``S1`` is a char: where it is called ``>S1``, to xarray where it names dimensions, and in v3.

    Spec: NCZarr, "Appendix D".
    """
    if metadata.dialect != "v2":
        return True
    spelling = metadata.spellings.get("v2:dtype")
    if spelling is not None and spelling.document.get("dtype") == ">S1":
        return True
    return not writer.is_netcdf and _XARRAY in metadata.attributes


def _names(metadata: ArrayMetadata, *, xarray: bool) -> list[str | None] | None:
    """Return the names that xarray or Zarr v3 give to dimensions."""
    if metadata.dimension_names is not None:
        return list(metadata.dimension_names)
    names = metadata.attributes.get(_XARRAY)
    if not xarray or not isinstance(names, list | tuple):
        return None
    return [each if isinstance(each, str) else None for each in names]


def _attributes(
    node: _Node, nc_type: AnyType | None = None, array: ArrayMetadata | None = None
) -> tuple[dict[str, Attribute], list[Note]]:
    """Return the attributes of a node with their types, and notes of those that do not fit the type recorded."""
    found: dict[str, Attribute] = {}
    notes = []
    added, recorded, nuls = _added(node, nc_type, array), node.marks.types, node.marks.nuls
    forms_of = node.marks.forms
    every, apart = node.metadata.attributes, node.marks.attributes
    for name, given in ({**every, **apart} if apart else every).items():
        if name in nczarr_metadata.HIDDEN or name in added:
            continue
        of_type = recorded.get(name)
        if type(given) is str and of_type == ">S1" and name not in nuls and name not in forms_of:
            found[name] = Attribute(types.CHAR, given)  # as most are
            continue
        if name == FILL_VALUE and array is not None and nc_type is not None and name not in apart:
            fill = for_xarray.fill_attribute(given, array, nc_type)
            if fill is not None:
                found[name] = forms.formed(fill, forms_of.get(name))
                continue
        mark = forms_of.get(name)
        if is_object(mark):
            given, of_type = forms.flat(given, mark), mark.get("of", of_type)  # noqa: PLW2901
        spelled = node.spelled
        value = attributes.respelled(given, spelled[name], of_type) if name in spelled else given
        is_of_data = name == "_FillValue" or (name in _OF_THE_DATA and attributes.is_nonfinite(value))
        expected = nc_type if is_of_data and isinstance(nc_type, types.NcType) else None
        read = attributes.read(value, of_type, expected)
        found[name] = forms.formed(for_xarray.with_nuls(read, nuls.get(name)), mark)
        if of_type is not None and not attributes.fits(value, of_type, read):
            message = f"the value of {name!r} is no {of_type!r}: read by its looks"
            notes.append(Note(join("", name), message, SPEC))
    return found, notes


def _added(node: _Node, nc_type: AnyType | None, array: ArrayMetadata | None) -> tuple[str, ...]:
    """Return the attributes that are none in netCDF: others need them to understand an array."""
    if node.marks.added or array is None or nc_type is not types.STRING or array.dialect != "v2":
        return node.marks.added
    is_said = str(node.metadata.attributes.get(ENCODING)).lower() == UTF_8
    return (ENCODING,) if is_said and array.data_type.name == "null_terminated_bytes" else ()


def _storage(
    metadata: ArrayMetadata, labelled: ArrayMetadata, nc_type: AnyType, *, is_scalar: bool
) -> dict[str, Attribute]:
    """Return the special attributes of how an array is stored, in the order of ``ncdump -s``."""
    found = {"_Storage": Attribute(types.CHAR, "chunked")}
    if not is_scalar:
        chunks = _chunk_shape(metadata)
        if chunks is not None:
            fits = all([length < 2**31 for length in chunks])  # noqa: C419 - a list is faster here
            found["_ChunkSizes"] = Attribute(
                *((types.INT, np.array(chunks, "i4")) if fits else (types.INT64, np.array(chunks, "i8")))
            )
    try:
        item_size = datatypes.bind(metadata.data_type).dtype.itemsize
        found |= filters.special(_after_bytes(metadata.codecs), item_size)
    except OmnizarrError:
        pass
    if isinstance(nc_type, types.NcType) and not nc_type.is_text and nc_type.dtype.itemsize > 1:
        endian = next((codec.configuration.get("endian") for codec in labelled.codecs if codec.name == "bytes"), None)
        found["_Endianness"] = Attribute(types.CHAR, "big" if endian == "big" else "little")
    return found


def _chunk_shape(metadata: ArrayMetadata) -> tuple[int, ...] | None:
    """Return the shape of all chunks, of shards that of the chunks in them; None if they differ, or are unknown.

    Shards that codecs encode as a whole are chunks: a part of one takes as long to read as all of it.
    """
    if metadata.codecs and metadata.codecs[-1].name == "sharding_indexed":
        inner = chunking.possible_inner_shape(metadata.codecs, len(metadata.shape))
        if inner is not None:  # else the document is wrong, and what reads the elements says how
            return inner
    grid = metadata.chunk_grid
    sizes = grid.configuration.get("chunk_shape")
    if grid.name == "regular" and is_list(sizes) and len(sizes) == len(metadata.shape):
        lengths = tuple([each for each in sizes if type(each) is int and each > 0])
        if len(lengths) == len(sizes):  # as nearly always, and a tenth of the time
            return lengths
    try:
        return grids.bind(grid, metadata.shape).chunk_shape
    except OmnizarrError:
        return None


def _after_bytes(codecs: tuple[Named, ...]) -> tuple[Named, ...]:
    """Return the codecs of bytes, which are filters to netCDF; none if they stand within shards."""
    places = [place for place, codec in enumerate(codecs) if codec.name in _SERIALIZERS]
    return codecs[places[0] + 1 :] if places else ()


# -- dimensions ---------------------------------------------------------------------------------


def _dimensions(nodes: Mapping[str, _Node], variables: Mapping[str, _Variable]) -> Scopes:
    """Find the dimensions of all variables, and of all groups."""
    groups = {path: _defined(node.marks) for path, node in nodes.items() if isinstance(node.metadata, GroupMetadata)}
    scopes = Scopes(groups)
    scopes.correct([each.claim for each in variables.values()])
    rest: list[_Variable] = []
    for variable in variables.values():
        found = scopes.by_reference(variable.claim)
        if found is None:
            rest.append(variable)
        else:
            variable.dimensions = found
    at_root = nodes[""].metadata.dialect != "v2"
    found_by_name = scopes.by_name([each.claim for each in rest], at_root=at_root)
    for variable, dimensions in zip(rest, found_by_name, strict=True):
        variable.dimensions = dimensions
    return scopes


# -- headers ------------------------------------------------------------------------------------------


class _Headers(Mapping[str, VariableHeader]):
    """The headers of the variables of a group, by name, made when they are asked for."""

    def __init__(self, variables: Mapping[str, _Variable]) -> None:
        self._variables = variables

    def __getitem__(self, name: str) -> VariableHeader:
        return self._variables[name].header

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


def _tree(
    nodes: Mapping[str, _Node],
    scopes: Scopes,
    variables: Mapping[str, _Variable],
    *,
    has_marks: bool,
) -> GroupHeader:
    """Return the header of the root, with all below; the innermost groups are made first."""
    made: dict[str, GroupHeader] = {}
    groups = [node for node in nodes.values() if isinstance(node, _GroupNode)]
    for node in sorted(groups, key=lambda each: each.path.count("/") if each.path else -1, reverse=True):
        path = node.path
        inner = {each.rpartition("/")[2]: each for each in node.members}
        order = _in_order(node, inner, variables, made)
        own = {name: variables[inner[name]] for name in order if inner[name] in variables}
        typed, odd = _attributes(node)
        special = {} if path else {**_written_by(node.metadata), **format_special(is_nczarr=has_marks)}
        made[path] = GroupHeader(
            name=path.rpartition("/")[2],
            dimensions=scopes.groups.get(path, {}),
            types={
                each.name: each
                for each in (one.user_type or one.type for one in own.values())
                if isinstance(each, UserType)
            },
            variables=_Headers(own),
            attributes=typed,
            special=special,
            groups={name: made[inner[name]] for name in order if inner[name] in made},
            notes=(*node.marks.notes, *node.notes, *scopes.notes.get(path, ()), *odd),
        )
    return made[""]


def _in_order(
    node: _GroupNode, inner: Mapping[str, str], variables: Mapping[str, _Variable], made: Mapping[str, GroupHeader]
) -> list[str]:
    """Return the names of a group's members, as NCZarr lists them, then the others; notes where it differs."""
    found: list[str] = []
    for what, listed, there in (("array", node.marks.arrays, variables), ("group", node.marks.groups, made)):
        own = dict.fromkeys(name for name, path in inner.items() if path in there)
        names = dict.fromkeys(listed or ())
        known = dict.fromkeys(name for name in names if name in own)
        for name in names:
            if name not in inner and name not in node.unreadable:
                why = "which is not there" if "\\" not in name else "which no path in Zarr can name"
                node.notes.append(Note("", f"NCZarr lists the {what} {name!r}, {why}", SPEC))
        for name in own:
            if listed is not None and name not in names:
                node.notes.append(Note("", f"the {what} {name!r} exists, but NCZarr does not list it", SPEC))
        found += [*known, *(name for name in own if name not in known)]
    return found


# -- one node ---------------------------------------------------------------------------------------------


def _marks_at(where: StorePath, metadata: Metadata, layout: Layout, in_group: JSON = None) -> NodeMarks:
    if layout.name.startswith("pure"):
        return NOTHING
    return nczarr_metadata.find(metadata, objects_at(where, metadata) if layout.name == "A" else None, in_group)


def read_group(where: StorePath, metadata: GroupMetadata, layout: Layout) -> GroupHeader:
    """Return what a group's own documents say: dimensions, attributes, and its members by name alone."""
    found = _marks_at(where, metadata, layout)
    node = _Node(where.path, where, metadata, found)
    _find_spellings([node])
    typed, _ = _attributes(node)
    return GroupHeader(
        name=where.name,
        dimensions=_defined(found),
        variables={name: VariableHeader(name=name, type=types.INT) for name in found.arrays or ()},
        groups={name: GroupHeader(name=name) for name in found.groups or ()},
        attributes=typed,
        special=_written_by(metadata),
        notes=found.notes,
    )


def _written_by(metadata: Metadata) -> dict[str, Attribute]:
    """Return the special attribute of a root that says which program wrote it."""
    properties = metadata.attributes.get("_NCProperties")
    return {} if properties is None else {"_NCProperties": attributes.read(properties, ">S1")}


def read_stored(
    where: StorePath,
    metadata: ArrayMetadata,
    layout: Layout,
    sizes: Mapping[str, DimensionHeader],
    *,
    group: str | None = None,
    version: str | None = None,
    in_group: JSON = None,
) -> tuple[VariableHeader, Stored]:
    """Return what an array's own documents say of a variable, and how it is stored.

    Parameters
    ----------
    where : StorePath
    metadata : ArrayMetadata
    layout : Layout
    sizes : mapping of str to DimensionHeader
        All dimensions of the dataset, by full name.
    group : str, optional
        Full name of the variable's group. Without it, it is guessed from `where`.
    version : str, optional
        Of the netCDF-C that wrote the dataset: `Loaded.version`.
    in_group : JSON, optional
        What the group says of the array, in layout v3: `Marks.listed`.

    Raises
    ------
    UnknownDataTypeError
        If netCDF has no type for it.
    """
    metadata = as_model(metadata)
    has_marks = not layout.name.startswith("pure")
    parsed = tuple(map(int, version.split("."))) if version else None
    writer = Writer(has_marks, parsed, layout.name if has_marks else None)
    group = _group_of(where, sizes) if group is None else group
    node = _Node(where.path, where, metadata, _marks_at(where, metadata, layout, in_group))
    _find_spellings([node])
    variable = _variable(node, group, writer, xarray=True)
    if variable is None:
        raise UnknownDataTypeError(
            "netCDF has no such type", store=str(where.store), path=where.path, found=metadata.data_type.name
        )
    scopes = Scopes(_by_group(sizes))
    found = scopes.by_reference(variable.claim)
    variable.dimensions = (
        next(scopes.by_name([variable.claim], at_root=layout.zarr_format == 3)) if found is None else found
    )
    return variable.header, variable.stored


def read_variable(
    where: StorePath,
    metadata: ArrayMetadata,
    layout: Layout,
    sizes: Mapping[str, DimensionHeader],
    *,
    group: str | None = None,
    version: str | None = None,
    in_group: JSON = None,
) -> VariableHeader:
    """Return what an array's own documents say of a variable; parameters as of `read_stored`."""
    return read_stored(where, metadata, layout, sizes, group=group, version=version, in_group=in_group)[0]


def _defined(found: NodeMarks) -> dict[str, DimensionHeader]:
    return {name: DimensionHeader(name, *each) for name, each in found.dimensions.items()}


def _by_group(sizes: Mapping[str, DimensionHeader]) -> dict[str, dict[str, DimensionHeader]]:
    found: dict[str, dict[str, DimensionHeader]] = {}
    for path, dimension in sizes.items():
        found.setdefault(path.rpartition("/")[0], {})[dimension.name] = dimension
    return found


def _group_of(where: StorePath, sizes: Mapping[str, DimensionHeader]) -> str:
    """Return the innermost group with dimensions that can be the one a node is in."""
    above = f"/{where.parent.path}"
    groups = {path.rpartition("/")[0] for path in sizes}
    return max((group for group in groups if group and f"{above}/".endswith(f"{group}/")), key=len, default="")
