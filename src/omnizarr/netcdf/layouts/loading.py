"""Datasets of every layout of NCZarr, and Zarr without it, as netCDF.

Spec: NCZarr, "NCZarr versus Pure Zarr", "Translation", "XArray", "Appendix E".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Literal, TypeAlias

import numpy as np

from omnizarr.errors import OmnizarrError, StoreClosedError, StoreError, StoreTimeoutError, UnknownDataTypeError
from omnizarr.formats import dialect_named, documents, lenient
from omnizarr.formats.contract import Dialect
from omnizarr.formats.reader import is_list, is_object, join
from omnizarr.formats.spelling import Document
from omnizarr.metadata import as_model
from omnizarr.model import JSON, UNDEFINED, ArrayMetadata, GroupMetadata, Metadata, Named, Note, datatypes, grids
from omnizarr.netcdf import filters, types
from omnizarr.netcdf.header import MEMBERS, Attribute, DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.layouts import attributes, elements, quirks
from omnizarr.netcdf.layouts import nczarr_metadata as marks
from omnizarr.netcdf.layouts import xarray as for_xarray
from omnizarr.netcdf.layouts.contract import Layout, Loaded, Stored
from omnizarr.netcdf.layouts.dimensions import Claim, Scopes
from omnizarr.netcdf.layouts.nczarr_metadata import NOTHING, SPEC, NodeMarks
from omnizarr.netcdf.layouts.quirks import Version, Writer
from omnizarr.netcdf.layouts.writing import LAYOUTS, QUANTIZED, format_special
from omnizarr.netcdf.layouts.xarray import ENCODING, FILL_VALUE, UTF_8
from omnizarr.netcdf.types import AnyType, UserType
from omnizarr.nodes import detection
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group, UnreadableNode
from omnizarr.nodes.location import StorePath
from omnizarr.stores import pool
from omnizarr.stores.base import is_key

_VERSION: Final = re.compile(r"netcdf=([0-9]+(?:\.[0-9]+){1,3})")
_XARRAY: Final = "_ARRAY_DIMENSIONS"
_SCALAR: Final = "_scalar_"
_OF_THE_DATA: Final = frozenset({"missing_value", "valid_min", "valid_max", "valid_range", "actual_range"})
"""Attributes that have the type of their variable. Spec: CF conventions, "Missing data, valid and actual range"."""

_FAILED: Final = (StoreClosedError, StoreTimeoutError)
"""What does not mean that a store cannot list."""

_SERIALIZERS: Final = frozenset({"bytes", "vlen-utf8", "vlen-bytes"})


@dataclass(slots=True)
class _Node:
    """A node on its way to a header."""

    path: str
    where: StorePath
    metadata: Metadata
    marks: NodeMarks = NOTHING
    members: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)
    spelled: Mapping[str, JSON] = field(default_factory=dict)
    """Attributes with numbers as they are spelled, where that counts."""

    @property
    def attributes_key(self) -> str:
        """Key of the document with the attributes."""
        return self.where.prefix + (".zattrs" if self.metadata.dialect == "v2" else "zarr.json")

    @property
    def depends_on_spelling(self) -> bool:
        """Whether there is an attribute of which the value alone does not say what it is."""
        recorded = self.marks.types
        text = self.text
        return any(
            type(value) is not str
            and name not in marks.HIDDEN
            and name in recorded
            and attributes.depends_on_spelling(value, recorded[name], text)
            for name, value in self.metadata.attributes.items()
        )

    @property
    def text(self) -> str | None:
        """The document with the attributes, as it was read; None if that is not known, or it had to be mended."""
        memos, is_v2 = self.metadata.spellings, self.metadata.dialect == "v2"
        memo = memos.get("v2:documents" if is_v2 else "v3:zarr.json")
        found = None if memo is None else memo.document.get(".zattrs") if is_v2 else memo.document
        if not isinstance(found, Document) or found.said is not None or found.notes:
            return None
        return found.text


def load(root: Group, *, mode: Literal["nczarr", "zarr"] | None = None, xarray: bool = True) -> Loaded:
    """Return a dataset as it was found: the group `root` and all below it.

    Parameters
    ----------
    root : Group
    mode : {"nczarr", "zarr"}, optional
        "zarr": what NCZarr says is left out of account. Otherwise it is used where there is any.
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
    version = _version(top)
    layout = _layout(top, nodes.values())
    has_marks = layout.name not in {"pure", "pure-v3"}
    writer = Writer(has_marks, version, layout.name if has_marks else None)
    variables = _variables(nodes, writer, xarray=xarray)
    dimensions = _dimensions(nodes, variables)
    headers, stored = _headers(variables)
    root_header = _tree(nodes, dimensions, headers, variables, has_marks=has_marks)
    return Loaded(
        root=root_header,
        layout=layout,
        variables=stored,
        groups={path: node.where for path, node in nodes.items() if isinstance(node.metadata, GroupMetadata)},
        version=None if version is None else ".".join(map(str, version)),
        notes=nodes[""].marks.notes,
    )


# -- nodes and marks -----------------------------------------------------------------------


def _nodes(root: Group, *, by_name: bool) -> dict[str, _Node]:
    """Return all nodes by full name, parents first; what cannot be read as a note of its parent.

    Where the store cannot list, those that NCZarr names, if `by_name`.
    """
    found = {"": _Node("", root.store_path, root._metadata)}  # noqa: SLF001 - the model, as it is shared
    for path, where, node in _below(root, found[""], by_name=by_name):
        parent = _parent(found, root.store_path, path)
        if isinstance(node, OmnizarrError):
            parent.unreadable.add(where.name)
            message = f"{where.name!r} cannot be read: {node.message}"
            parent.notes.append(Note(join(MEMBERS, where.name), message))
        else:
            found.setdefault(path, _Node(path, where, node))
            parent.members.append(path)
    return found


_Below: TypeAlias = tuple[str, StorePath, Metadata | OmnizarrError]
"""Full name, place, and what the documents say, or why they cannot be read."""


def _below(root: Group, top: _Node, *, by_name: bool) -> Iterator[_Below]:
    """Yield all nodes below the root."""
    try:
        members = root.members(max_depth=None)
    except StoreError as error:
        named = _named(top) if by_name and not isinstance(error, _FAILED) else None
        if named is None:
            raise
        top.notes.append(Note("", f"only what NCZarr names can be found: {error.message}", SPEC))
        yield from _walk(top, named)
        return
    for relative, node in members:
        if isinstance(node, UnreadableNode):
            yield f"/{relative}", node.store_path, node.error
        elif isinstance(node, Array | Group):
            yield f"/{relative}", node.store_path, node._metadata  # noqa: SLF001 - as above


def _walk(top: _Node, named: list[str]) -> Iterator[_Below]:
    """Yield the nodes that groups name, level by level."""
    dialects = [dialect_named(top.metadata.dialect)]
    level = [(f"/{name}", top.where.at(f"{top.where.prefix}{name}")) for name in named]
    while level:
        answers = dict(
            pool.gather(partial(_look, dialects), [where for _, where in level], top.where.store.concurrency)
        )
        below = []
        for position, (path, where) in enumerate(level):
            answer = answers[position]
            if answer is not None:
                yield path, where, answer
            if isinstance(answer, GroupMetadata):
                names = _named(_Node(path, where, answer)) or ()
                below += [(f"{path}/{name}", where.at(f"{where.prefix}{name}")) for name in names]
        level = below


def _look(dialects: Sequence[Dialect], where: StorePath) -> Metadata | OmnizarrError | None:
    """Return what the documents at a place say, or why they cannot be read; None if there are none."""
    try:
        found = detection.here(where, dialects)
    except StoreError:
        raise
    except OmnizarrError as error:
        return error
    return None if found is None else found.metadata


def _named(node: _Node) -> list[str] | None:
    """Return the names that NCZarr says nodes right below a group have; None if it says nothing."""
    found = marks.find(node.metadata)
    if found.arrays is None and found.groups is None and node.metadata.dialect == "v2":
        found = marks.find(node.metadata, objects_at(node.where, node.metadata))
    if found.arrays is None and found.groups is None:
        return None
    names = dict.fromkeys((*(found.arrays or ()), *(found.groups or ())))
    return [name for name in names if is_key(name) and "/" not in name]


def _parent(nodes: dict[str, _Node], root: StorePath, path: str) -> _Node:
    """Return the group that a node lies in, made up if nothing spoke of it."""
    above = path.rpartition("/")[0]
    if above not in nodes:
        outer = _parent(nodes, root, above)
        where = root.at(f"{root.prefix}{above[1:]}")
        nodes[above] = _Node(above, where, GroupMetadata(dialect=nodes[""].metadata.dialect, implicit=True))
        outer.members.append(above)
    return nodes[above]


def _find_marks(root: Group, nodes: Mapping[str, _Node]) -> None:
    """Find the marks of all nodes; only where there are none else, or a superblock says so, those of layout A."""
    for path, node in nodes.items():
        above, _, name = path.rpartition("/")
        in_group = marks.listed(nodes[above].metadata, name) if path else None
        node.marks = marks.find(node.metadata, in_group=in_group)
    if root._metadata.dialect != "v2" or any(node.marks.layout for node in nodes.values()):  # noqa: SLF001 - as above
        return
    if not root.store.exists(f"{root.store_path.prefix}{marks.SUPERBLOCK}"):
        return
    for node in nodes.values():
        node.marks = marks.find(node.metadata, objects_at(node.where, node.metadata))


def _find_spellings(nodes: Iterable[_Node]) -> None:
    """Find how numbers are spelled in the attributes of nodes in which that counts."""
    unread: list[_Node] = []
    for node in nodes:
        if node.depends_on_spelling:
            text = node.text
            if text is None:
                unread.append(node)
            else:
                _spell(node, text)
    if unread:
        store = unread[0].where.store
        for position, data in store.get_many((node.attributes_key, None) for node in unread):
            if data is not None:  # else there is only consolidated metadata
                with suppress(UnicodeDecodeError):  # changed meanwhile
                    _spell(unread[position], bytes(data).decode("utf-8-sig"))


def _spell(node: _Node, text: str) -> None:
    try:
        document = lenient.tokens(text)
    except (ValueError, RecursionError):  # changed meanwhile
        return
    if is_object(document) and node.metadata.dialect != "v2":
        document = document.get("attributes")
    node.spelled = document if is_object(document) else {}


def objects_at(where: StorePath, metadata: Metadata) -> dict[str, JSON]:
    """Return the documents of layout A that lie beside those of a node, by name; broken ones are passed over."""
    kinds: tuple[marks.Kind, ...] = (
        ("superblock", "group", "attr") if metadata.node_type == "group" else ("array", "attr")
    )
    names = [name for kind in kinds for name in marks.OBJECTS[kind]]
    found: dict[str, JSON] = {}
    for position, data in where.store.get_many((where.prefix + name, None) for name in names):
        if data is not None:
            try:
                found[names[position]] = documents.parse(data)
            except OmnizarrError:
                found[names[position]] = None  # which is no object, and noted as such
    return found


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


@dataclass(slots=True)
class _Variable:
    """A variable on its way to a header."""

    node: _Node
    type: AnyType
    claim: Claim
    stored: Stored
    attributes: dict[str, Attribute]
    special: dict[str, Attribute]
    notes: list[Note]
    dimensions: tuple[str, ...] = ()


def _variables(nodes: Mapping[str, _Node], writer: Writer, *, xarray: bool) -> dict[str, _Variable]:
    """Return what the arrays are as variables; those that netCDF cannot know become notes of their groups."""
    found: dict[str, _Variable] = {}
    for path, node in nodes.items():
        if isinstance(node.metadata, ArrayMetadata):
            group = path.rpartition("/")[0]
            variable = _variable(node, group, writer, xarray=xarray)
            if variable is None:
                name = node.metadata.data_type.name
                message = f"{node.where.name!r} is left out: netCDF has no type for {name}"
                nodes[group].notes.append(Note(join(MEMBERS, node.where.name), message, SPEC))
            else:
                found[path] = variable
    return found


def _variable(node: _Node, group: str, writer: Writer, *, xarray: bool) -> _Variable | None:
    metadata = node.metadata
    if not isinstance(metadata, ArrayMetadata):
        return None
    name = node.where.name
    right, notes = quirks.as_meant(metadata, writer, node.marks.alias)
    alias = node.marks.alias
    is_char = alias == "char" or right.data_type is not metadata.data_type or _is_char(metadata, writer)
    known = elements.of(right, name, is_char=is_char and alias != "string")
    if known is None:
        return None
    node.marks = for_xarray.believed(node.marks, right, known.type)
    typed, odd = _attributes(node, known.type, right)
    quantized = {each: typed.pop(each) for each in QUANTIZED if each in typed}
    is_undefined = right.fill_value is UNDEFINED
    is_no_fill = node.marks.fill == "none" or (is_undefined and writer.is_netcdf and writer.layout != "xarray")
    if is_undefined and writer.layout == "xarray" and not is_no_fill:
        right = quirks.with_default(right, known.type)
    right, fill_notes = quirks.with_fill(right, known.type, typed.get("_FillValue"), writer)
    fill = quirks.fill_attribute(right, known.type, writer)
    if fill is not None and "_FillValue" not in typed:
        typed = {"_FillValue": fill, **typed}
    claim = Claim(group, name, metadata.shape, node.marks.references, _names(metadata, xarray=xarray))
    is_scalar = _is_scalar(metadata, node.marks)
    is_meant = is_undefined and writer.layout == "xarray"
    more = [*node.marks.notes, *notes, *known.notes, *([] if is_meant else fill_notes), *odd]
    if is_scalar:
        claim = replace(claim, shape=(), references=(), names=())
        if writer.loses_scalars:
            more.append(Note("", "netCDF-C 4.8 stored the fill value in place of a scalar's data", SPEC))
    elif node.marks.is_scalar:
        more.append(Note("", f"called a scalar, but of shape {list(metadata.shape)}: taken as an array", SPEC))
    special = {**_storage(right, metadata, known.type, is_scalar=is_scalar), **quantized}
    if node.marks.filters:
        special = {each: value for each, value in special.items() if each not in marks.FILTERS}
        said = for_xarray.special_of(node.marks.filters)  # in the order of filters, which CDL does not keep
        special |= {each: said[each] for each in marks.FILTERS if each in said}
    if (is_no_fill and right.fill_value is UNDEFINED) or node.marks.fill == "none":
        special["_NoFill"] = Attribute(types.CHAR, "true")
    stored = Stored(node.where, right, is_scalar, needs_chunks=is_undefined and right.fill_value is not UNDEFINED)
    return _Variable(node, known.type, claim, stored, typed, special, more)


def _is_char(metadata: ArrayMetadata, writer: Writer) -> bool:
    """Tell whether ``S1`` is a char: where it is called ``>S1``, to xarray where it names dimensions, and in v3.

    Spec: NCZarr, "Appendix D".
    """
    if metadata.dialect != "v2":
        return True
    spelling = metadata.spellings.get("v2:dtype")
    if spelling is not None and spelling.document.get("dtype") == ">S1":
        return True
    return not writer.is_netcdf and _XARRAY in metadata.attributes


def _is_scalar(metadata: ArrayMetadata, found: NodeMarks) -> bool:
    if not metadata.shape:
        return True
    if metadata.shape != (1,):
        return False
    names = metadata.attributes.get(_XARRAY)
    return found.is_scalar or found.references == () or names in ([], [_SCALAR])


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
    added = _added(node, nc_type, array)
    for name, given in {**node.metadata.attributes, **node.marks.attributes}.items():
        if name in marks.HIDDEN or name in added:
            continue
        if name == FILL_VALUE and array is not None and nc_type is not None and name not in node.marks.attributes:
            fill = for_xarray.fill_attribute(given, array, nc_type)
            if fill is not None:
                found[name] = fill
                continue
        of_type = node.marks.types.get(name)
        value = attributes.respelled(given, node.spelled[name], of_type) if name in node.spelled else given
        is_of_data = name == "_FillValue" or (name in _OF_THE_DATA and attributes.is_nonfinite(value))
        expected = nc_type if is_of_data and isinstance(nc_type, types.NcType) else None
        read = attributes.read(value, of_type, expected)
        found[name] = for_xarray.with_nuls(read, node.marks.nuls.get(name))
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
    """Return the shape of all chunks; None if they differ, or nobody can tell."""
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
    groups = {path: node.marks.dimensions for path, node in nodes.items() if isinstance(node.metadata, GroupMetadata)}
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


def _headers(variables: Mapping[str, _Variable]) -> tuple[dict[str, VariableHeader], dict[str, Stored]]:
    headers = {path: _header(each) for path, each in variables.items()}
    return headers, {path: each.stored for path, each in variables.items()}


def _header(variable: _Variable) -> VariableHeader:
    return VariableHeader(
        name=variable.claim.name,
        type=variable.type,
        dimensions=variable.dimensions,
        attributes=variable.attributes,
        special=variable.special,
        notes=(*variable.notes, *variable.claim.notes),
    )


def _tree(
    nodes: Mapping[str, _Node],
    scopes: Scopes,
    headers: Mapping[str, VariableHeader],
    variables: Mapping[str, _Variable],
    *,
    has_marks: bool,
) -> GroupHeader:
    """Return the header of the root, with all below; the innermost groups are made first."""
    made: dict[str, GroupHeader] = {}
    groups = [path for path, node in nodes.items() if isinstance(node.metadata, GroupMetadata)]
    for path in sorted(groups, key=lambda each: each.count("/") if each else -1, reverse=True):
        node = nodes[path]
        inner = {each.rpartition("/")[2]: each for each in node.members}
        order = _in_order(node, inner, headers, made)
        own = {name: headers[inner[name]] for name in order if inner[name] in headers}
        typed, odd = _attributes(node)
        special = {} if path else {**_written_by(node.metadata), **format_special(is_nczarr=has_marks)}
        made[path] = GroupHeader(
            name=path.rpartition("/")[2],
            dimensions=scopes.groups.get(path, {}),
            types={each.type.name: each.type for each in own.values() if isinstance(each.type, UserType)},
            variables=own,
            attributes=typed,
            special=special,
            groups={name: made[inner[name]] for name in order if inner[name] in made},
            notes=(*node.marks.notes, *node.notes, *scopes.notes.get(path, ()), *odd),
        )
    return made[""]


def _in_order(
    node: _Node, inner: Mapping[str, str], headers: Mapping[str, VariableHeader], made: Mapping[str, GroupHeader]
) -> list[str]:
    """Return the names of a group's members, as NCZarr lists them, then the others; notes where it differs."""
    found: list[str] = []
    for what, listed, there in (("array", node.marks.arrays, headers), ("group", node.marks.groups, made)):
        own = dict.fromkeys(name for name, path in inner.items() if path in there)
        names = dict.fromkeys(listed or ())
        known = dict.fromkeys(name for name in names if name in own)
        for name in names:
            if name not in inner and name not in node.unreadable:
                why = "which is not there" if "\\" not in name else "which no path in Zarr can name"
                node.notes.append(Note("", f"NCZarr lists the {what} {name!r}, {why}", SPEC))
        for name in own:
            if listed is not None and name not in names:
                node.notes.append(Note("", f"the {what} {name!r} is there, but NCZarr does not list it", SPEC))
        found += [*known, *(name for name in own if name not in known)]
    return found


# -- one node ---------------------------------------------------------------------------------------------


def _marks_at(where: StorePath, metadata: Metadata, layout: Layout, in_group: JSON = None) -> NodeMarks:
    if layout.name.startswith("pure"):
        return NOTHING
    return marks.find(metadata, objects_at(where, metadata) if layout.name == "A" else None, in_group)


def read_group(where: StorePath, metadata: GroupMetadata, layout: Layout) -> GroupHeader:
    """Return what a group's own documents say: dimensions, attributes, and its members by name alone."""
    found = _marks_at(where, metadata, layout)
    node = _Node(where.path, where, metadata, found)
    _find_spellings([node])
    typed, _ = _attributes(node)
    return GroupHeader(
        name=where.name,
        dimensions=found.dimensions,
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
    return _header(variable), variable.stored


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


def _by_group(sizes: Mapping[str, DimensionHeader]) -> dict[str, dict[str, DimensionHeader]]:
    found: dict[str, dict[str, DimensionHeader]] = {}
    for path, dimension in sizes.items():
        found.setdefault(path.rpartition("/")[0], {})[dimension.name] = dimension
    return found


def _group_of(where: StorePath, sizes: Mapping[str, DimensionHeader]) -> str:
    """Return the innermost group with dimensions that can be the one a node lies in."""
    above = f"/{where.parent.path}"
    groups = {path.rpartition("/")[0] for path in sizes}
    return max((group for group in groups if group and f"{above}/".endswith(f"{group}/")), key=len, default="")
