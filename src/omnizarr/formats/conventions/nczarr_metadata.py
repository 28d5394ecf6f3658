"""NCZarr's marks on a node: what its layouts store beside the documents of Zarr, in all places.

Broken marks are ignored with a note, and never hide the Zarr metadata.

Spec: NCZarr, "NCZarr versus Pure Zarr", "Appendix E".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from omnizarr.formats.conventions import nczarr
from omnizarr.formats.reader import MAX_LENGTH, is_integer, is_list, is_object, join
from omnizarr.model import JSON, GroupMetadata, Metadata, Note, dimensions
from omnizarr.support.memo import Memo

LayoutName: TypeAlias = Literal["A", "B", "C", "D", "xarray"]

SPEC: Final = 'NCZarr, "NCZarr versus Pure Zarr"'
Kind = Literal["superblock", "group", "array", "attr"]

SUPERBLOCK: Final = ".nczarr"
OBJECTS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "superblock": (SUPERBLOCK,),
    "group": (nczarr.GROUP_OBJECT,),
    "array": (".nczvar", ".nczarray"),
    "attr": (".nczattr", ".nczattrs"),
}
"""Documents of layout A: the names that netCDF-C 4.8.0 gives them, and those that it had before."""

_KEYS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "superblock": ("_nczarr_superblock", "_NCZARR_SUPERBLOCK"),
    "group": nczarr.GROUP,
    "array": dimensions.NCZARR,
    "attr": ("_nczarr_attr", "_nczarr_attrs", "_NCZARR_ATTR", "_NCZARR_ATTRS"),
}
_ALL_KEYS: Final = frozenset(key for keys in _KEYS.values() for key in keys)
LISTED: Final = "_nczarr_arrays"
"""The attribute of a group of Zarr v3 with its arrays' marks: xarray hides it on groups, but not on arrays."""

FILTERS: Final = ("_Fletcher32", "_Shuffle", "_DeflateLevel", "_Filter", "_Codecs")
"""Special attributes that state which filters a variable has."""

HIDDEN: Final = frozenset(
    {
        LISTED,
        "_NCProperties",
        dimensions.ATTRIBUTE,
        "_nczarr_default_separator",
        *_ALL_KEYS,
    }
)
"""Attributes that are not attributes in netCDF."""


class Dimension(NamedTuple):
    """The length of a dimension, and whether it may grow."""

    size: int
    unlimited: bool


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """NCZarr's description of one node.

    Attributes
    ----------
    layout : {"A", "B", "C", "D", "xarray"} or None
        The layout, by the place of the marks; in Zarr v3, D means v3 and E. None for marks that the group lists.
    dimensions : mapping of str to Dimension
        The dimensions that a group defines.
    arrays, groups : tuple of str, or None
        Names of what is directly below a group.
    references : tuple of str, or None
        Full names of an array's dimensions.
    is_scalar : bool
    alias : str or None
        "char", "string", "json": the netCDF type of an array with another type.
    types : mapping
        Recorded types of attributes.
    nuls : mapping
        Number of NULs at the end of texts.
    forms : mapping
        Shapes and HDF5 types of attributes that netCDF does not have.
    fill : {"none"}, optional
        Whether elements that were never written are undefined.
    added : tuple of str
        Attributes that are not attributes in netCDF: others need them to understand the array.
    attributes : mapping
        Attributes that are stored here, because other readers would misunderstand them.
    filters : mapping
        Special attributes of filters that the codecs do not show.
    user_type : mapping
        The user-defined type of a variable.
    """

    layout: LayoutName | None = None
    dimensions: Mapping[str, Dimension] = field(default_factory=dict)
    arrays: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    references: tuple[str, ...] | None = None
    is_scalar: bool = False
    alias: str | None = None
    types: Mapping[str, JSON] = field(default_factory=dict)
    nuls: Mapping[str, JSON] = field(default_factory=dict)
    forms: Mapping[str, JSON] = field(default_factory=dict)
    fill: str | None = None
    added: tuple[str, ...] = ()
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    filters: Mapping[str, JSON] = field(default_factory=dict)
    user_type: Mapping[str, JSON] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


NOTHING: Final = NodeMarks()

_of_arrays: Final[Memo[NodeMarks]] = Memo(plain=True)
"""Marks of arrays by the content of their documents, which are often the same within a dataset."""


def listed(group: Metadata, name: str) -> JSON:
    """Return the entry of an array in its group in layout v3; None if there is none."""
    found = group.attributes.get(LISTED)
    return found.get(name) if is_object(found) else None


def with_listed(group: GroupMetadata, arrays: Mapping[str, Mapping[str, JSON] | None]) -> GroupMetadata:
    """Return a group with changed entries of arrays, by name; None removes an entry."""
    found = group.attributes.get(LISTED)
    every = {**(found if is_object(found) else {}), **arrays}
    kept: JSON = {name: each for name, each in every.items() if each is not None}
    return replace(group, attributes={**group.attributes, LISTED: kept})


def with_length(attributes: Mapping[str, JSON], name: str, length: int) -> Mapping[str, JSON]:
    """Return attributes of a group in which its dimension of a name, if it has one, has another length.

    >>> with_length({"_nczarr_group": {"dimensions": {"time": {"size": 2, "unlimited": 1}}}}, "time", 3)
    {'_nczarr_group': {'dimensions': {'time': {'size': 3, 'unlimited': 1}}}}
    """
    changed = dict(attributes)
    for key in nczarr.GROUP:
        mark = attributes.get(key)
        if is_object(mark):
            member, found = _first(mark, "dimensions", "dims")
            if is_object(found) and name in found:
                changed[key] = {**mark, member: {**found, name: _lengthened(found[name], length)}}
            elif is_list(found):
                changed[key] = {
                    **mark,
                    member: [
                        _lengthened(each, length) if is_object(each) and each.get("name") == name else each
                        for each in found
                    ],
                }
    return changed


def _lengthened(described: JSON, length: int) -> JSON:
    """Return the description of a dimension with another length."""
    if not is_object(described):
        return length
    if is_object(described.get("configuration")):
        return {**described, "configuration": _lengthened(described["configuration"], length)}
    return {**described, "size": length}


def find(metadata: Metadata, objects: Mapping[str, JSON] | None = None, in_group: JSON = None) -> NodeMarks:
    """Return the marks of a node.

    Parameters
    ----------
    metadata : Metadata
    objects : mapping, optional
        The documents of layout A beside its own.
    in_group : JSON, optional
        The entry in its group; see `listed`.
    """
    if metadata.node_type == "group" or objects:
        return _found(metadata, objects or {}, in_group)
    attributes, unknown = (
        [(name, value) for name, value in members.items() if name in _ALL_KEYS]
        for members in (metadata.attributes, metadata.unknown)
    )
    if not (attributes or unknown or in_group is not None):
        return NOTHING
    question = metadata.dialect == "v2", attributes, unknown, in_group
    return _of_arrays.get(question, lambda: _found(metadata, {}, in_group))


def _found(metadata: Metadata, objects: Mapping[str, JSON], in_group: JSON) -> NodeMarks:
    search = _Search(metadata, objects, in_group)
    layout = None
    superblock = search.find("superblock")
    if superblock is not None:
        layout = superblock[0]
    kind: Kind = "group" if metadata.node_type == "group" else "array"
    fields: dict[str, Any] = {}
    found = search.find(kind)
    if found is not None:
        layout = layout if layout == "xarray" else found[0]
        where, mark = found[1:]
        fields = _read_group(search, where, mark) if kind == "group" else _read_array(search, where, mark)
    attr = search.find("attr")
    if attr is not None:
        fields["types"] = _read_types(search, attr[1], attr[2])
        fields["nuls"] = _members(attr[2].get("nuls"))
        fields["forms"] = _members(attr[2].get("forms"))
    return NodeMarks(layout=layout, notes=tuple(search.notes), **fields)


class _Search:
    """The search for the marks of one node."""

    def __init__(self, metadata: Metadata, objects: Mapping[str, JSON], in_group: JSON) -> None:
        self.metadata = metadata
        self.objects = objects
        self.in_group = in_group
        self.notes: list[Note] = []

    def find(self, kind: Kind) -> tuple[LayoutName | None, str, Mapping[str, JSON]] | None:
        """Return the layout of the first mark of a kind that is an object, its JSON pointer, and the mark."""
        for layout, pointer, value in self._candidates(kind):
            if is_object(value):
                return "xarray" if layout == "D" and value.get("layout") == "xarray" else layout, pointer, value
            self.note(pointer, "not an object: ignored")
        return None

    def _candidates(self, kind: Kind) -> Iterator[tuple[LayoutName | None, str, JSON]]:
        inside = "" if self.metadata.dialect == "v2" else "/attributes"
        for key in _KEYS[kind]:
            if key in self.metadata.attributes:
                yield "D", join(inside, key), self.metadata.attributes[key]
        for key in _KEYS[kind]:
            if key in self.metadata.unknown:
                yield "B" if key.isupper() else "C", join("", key), self.metadata.unknown[key]
        for name in OBJECTS[kind]:
            if name in self.objects:
                yield "A", "", self.objects[name]
        if self.in_group is not None and kind in {"array", "attr"}:
            yield None, "", self.in_group

    def note(self, pointer: str, message: str) -> None:
        self.notes.append(Note(pointer, message, SPEC))


def _first(mark: Mapping[str, JSON], *names: str) -> tuple[str, JSON]:
    return next(((name, mark[name]) for name in names if name in mark), (names[0], None))


def _names(search: _Search, pointer: str, mark: Mapping[str, JSON], *names: str) -> tuple[str, ...] | None:
    name, value = _first(mark, *names)
    if value is None:
        return None
    if is_list(value) and all(isinstance(each, str) for each in value):
        return tuple(value)
    search.note(join(pointer, name), "not a list of names: ignored")
    return None


def _read_group(search: _Search, pointer: str, mark: Mapping[str, JSON]) -> dict[str, Any]:
    name, value = _first(mark, "dimensions", "dims")
    at = join(pointer, name)
    dimensions: dict[str, Dimension] = {}
    for key, what in _dimension_items(search, at, value):
        found = _read_dimension(key, what)
        if found is None:
            search.note(join(at, key), "not a length of a dimension: ignored")
        else:
            dimensions[key] = found
    return {
        "dimensions": dimensions,
        "arrays": _names(search, pointer, mark, *nczarr.ARRAYS),
        "groups": _names(search, pointer, mark, *nczarr.GROUPS),
    }


def _dimension_items(search: _Search, pointer: str, value: JSON) -> Iterator[tuple[str, JSON]]:
    """Yield name and description of each dimension, from an object or, as in Zarr v3, a list of objects."""
    if value is None:
        return
    if is_object(value):
        yield from value.items()
        return
    if not is_list(value):
        search.note(pointer, "neither an object nor a list of dimensions: ignored")
        return
    for position, item in enumerate(value):
        name = item.get("name") if is_object(item) else None
        if isinstance(name, str):
            yield name, item.get("configuration", item)
        else:
            search.note(join(pointer, position), "a dimension without a name: ignored")


def _read_dimension(name: str, value: JSON) -> Dimension | None:
    size: Any = value
    unlimited = False
    if is_object(value):
        size, unlimited = value.get("size"), _is_true(value.get("unlimited"))
    if isinstance(size, str) and size.isascii() and size.isdecimal() and len(size) < 20:
        size = int(size)
    is_name = bool(name) and "/" not in name
    return Dimension(size, unlimited) if is_name and is_integer(size) and 0 <= size <= MAX_LENGTH else None


def _is_true(value: JSON) -> bool:
    return value in (1, "1") or (isinstance(value, str) and value.lower() == "true")


def _read_array(search: _Search, pointer: str, mark: Mapping[str, JSON]) -> dict[str, Any]:
    _, alias = _first(mark, "type_alias", "nczarr_type")
    return {
        "references": _names(search, pointer, mark, *dimensions.NCZARR_REFERENCES),
        "is_scalar": mark.get("storage") == "scalar" or _is_true(mark.get("scalar")),
        "alias": alias if isinstance(alias, str) else None,
        "fill": found if isinstance(found := mark.get("fill"), str) else None,
        "added": _names(search, pointer, mark, "added") or (),
        "attributes": _members(mark.get("attributes")),
        "filters": {name: each for name, each in _members(mark.get("filters")).items() if name in FILTERS},
        "user_type": _members(mark.get("user_type")),
    }


def _members(value: JSON) -> Mapping[str, JSON]:
    return value if is_object(value) else {}


def _read_types(search: _Search, pointer: str, mark: Mapping[str, JSON]) -> Mapping[str, JSON]:
    name, value = _first(mark, "types", "attribute_types")
    if value is not None and not is_object(value) and not is_list(value):
        search.note(join(pointer, name), "not types of attributes: ignored")
    return types_in(mark)


def types_in(mark: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the types of attributes by name, as recorded in a mark of any layout."""
    _, value = _first(mark, "types", "attribute_types")
    if is_object(value):
        return value
    found: dict[str, JSON] = {}
    for item in value if is_list(value) else ():
        if is_object(item) and isinstance(item.get("name"), str) and is_object(item.get("configuration")):
            found[str(item["name"])] = item["configuration"].get("type")
    return found
