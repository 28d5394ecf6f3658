"""Plan which parts of a dataset a file of each netCDF format can hold, without I/O.

Spec: NetCDF Users Guide, "File Format Specifications"; the limits of netCDF4-python are those of its createVariable.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from omnizarr.errors import NodeNameError, NotRepresentableError, SettingError
from omnizarr.formats.paths import upwards
from omnizarr.model import Loss
from omnizarr.netcdf import filters, forms, types
from omnizarr.netcdf.attributed import checked_name
from omnizarr.netcdf.files import hdf5
from omnizarr.netcdf.header import Attribute, DimensionHeader, GroupHeader, VariableHeader
from omnizarr.netcdf.types import AnyType, NcType, UserType

Format: TypeAlias = Literal[
    "NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"
]

_CLASSIC_TYPES: Final = (types.BYTE, types.CHAR, types.SHORT, types.INT, types.FLOAT, types.DOUBLE)
_CDF5_TYPES: Final = tuple(each for each in types.TYPES.values() if each is not types.STRING)
BLOSC: Final = {at: option for at, option in enumerate(filters.BLOSC_OPTIONS) if option != "blosc_snappy"}
"""The compressors of Blosc that netCDF-C has, by number."""
_OPTIONS_OF_BLOSC: Final = ("compression", "complevel", "blosc_shuffle")
_ZSTD_DEFAULT, _ZSTD_MAX = 3, 22
_HDF5_FILTERS: Final = {"_Filter", "_DeflateLevel", "_Fletcher32", "_Shuffle"}
_OWN: Final = ("_Storage", "_Endianness", "_NoFill", "_ChunkSizes", "_Shuffle", "_DeflateLevel", "_Fletcher32")


@dataclass(frozen=True, slots=True)
class StoredOtherwise(Loss):
    """Values that are the same, stored otherwise: in other chunks, or without a filter."""


class Plan(NamedTuple):
    """What will be written, and what will not.

    Attributes
    ----------
    root : GroupHeader
        As the file will hold it.
    options : mapping of str to mapping
        Of each variable, by full name: how netCDF4-python's ``createVariable`` is called for it.
    losses : tuple of Loss
    """

    root: GroupHeader
    options: Mapping[str, Mapping[str, Any]]
    losses: tuple[Loss, ...]


def plan(root: GroupHeader, format: Format = "NETCDF4") -> Plan:  # noqa: A002 (netCDF4-python's name)
    """Return what a file of a format can hold of a dataset.

    Raises SettingError if there is no such format, NotRepresentableError if a group is called as a dimension beside it.

    >>> root = GroupHeader(variables={"n": VariableHeader(name="n", type=types.INT64)})
    >>> plan(root, "NETCDF3_CLASSIC").losses[0].why
    'this format has no int64'
    """
    if format not in get_args(Format):
        raise SettingError("no such format", found=format, expected=get_args(Format))
    return _Planner(root, format).plan()


class _Planner:
    def __init__(self, root: GroupHeader, format: Format) -> None:  # noqa: A002
        self.losses: list[Loss] = []
        self.is_classic_file = format.startswith("NETCDF3")
        self.is_classic = format != "NETCDF4"
        self.source = self._with_visible_dimensions(root, "", root.sizes())
        self.types: tuple[NcType, ...] = tuple(types.TYPES.values())
        if self.is_classic:
            self.types = _CDF5_TYPES if format == "NETCDF3_64BIT_DATA" else _CLASSIC_TYPES
        self.options: dict[str, Mapping[str, Any]] = {}
        self.dimensions: dict[str, DimensionHeader] = {}

    def plan(self) -> Plan:
        self.dimensions = self._dimensions()
        root = self._group(self.source, "")
        return Plan(_with_types(root, []), self.options, tuple(self.losses))

    def lose(self, path: str, pointer: str, what: str, why: str, kept: str = "") -> None:
        self.losses.append(Loss(path.lstrip("/"), pointer, what, why, kept))

    def store_otherwise(self, full_name: str, what: str, why: str, kept: str = "") -> None:
        self.losses.append(StoredOtherwise(full_name[1:], "", what, why, kept))

    # Dimensions

    def _with_visible_dimensions(
        self, group: GroupHeader, path: str, sizes: Mapping[str, DimensionHeader]
    ) -> GroupHeader:
        """Return a group in which all dimensions of variables are of this group or of one above; HDF5 links no other.

        A dimension of another group, which NCZarr can name, is replaced by one of the same name and length.
        """
        dimensions, variables = dict(group.dimensions), {}
        for name, header in group.variables.items():
            found = []
            for full_name in header.dimensions:
                home, _, wanted = full_name.rpartition("/")
                if home in upwards(path):
                    found.append(full_name)
                    continue
                dimension = sizes[full_name]
                place = next((each for each in upwards(path) if sizes.get(f"{each}/{wanted}") == dimension), None)
                if place is None:
                    place = path
                    if wanted in group.groups or dimensions.get(wanted, dimension) != dimension:
                        wanted = _free_name(wanted, {*dimensions, *group.groups, *group.variables})
                    dimensions[wanted] = replace(dimension, name=wanted)
                found.append(f"{place}/{wanted}")
                why = "it is in no group above the variable"
                self.lose(f"{path}/{name}", "/dimensions", f"dimension {full_name}", why, found[-1])
            variables[name] = replace(header, dimensions=tuple(found))
        groups = group.groups
        if not self.is_classic:  # otherwise, they are lost
            groups = {
                name: self._with_visible_dimensions(each, f"{path}/{name}", sizes) for name, each in groups.items()
            }
        return replace(group, dimensions=dimensions, variables=variables, groups=groups)

    def _dimensions(self) -> dict[str, DimensionHeader]:
        """Return all dimensions by full name, as the file will have them."""
        found = {}
        growing = self._one_unlimited() if self.is_classic else None
        for full_name, each in self.source.sizes().items():
            path, _, name = full_name.rpartition("/")
            if self.is_classic and path:
                continue  # lost with its group
            if why := _why_no_name(name):
                self.lose(path, f"/dimensions/{name}", f"dimension {name}", why)
                continue
            unlimited = each.unlimited if growing is None else full_name == growing
            if each.unlimited and not unlimited:
                why = "this format has one unlimited dimension, the first of each variable that has it"
                self.lose(path, f"/dimensions/{name}", f"unlimited dimension {name}", why, f"length {each.size}")
            if not unlimited and each.size == 0:
                why = "to netCDF-C a length of 0 means unlimited"
                if self.is_classic and (growing or not self._can_grow(name)):
                    self.lose(path, f"/dimensions/{name}", f"dimension {name} of length 0", why)
                    continue
                growing = full_name if self.is_classic else None
                unlimited = True
                self.lose(
                    path, f"/dimensions/{name}", f"fixed length of dimension {name}", why, "unlimited, of length 0"
                )
            found[full_name] = replace(each, unlimited=unlimited)
        return found

    def _one_unlimited(self) -> str:
        """Return the full name of the dimension that can be unlimited in a classic file; "" if none can."""
        names = [name for name, each in self.source.dimensions.items() if each.unlimited and self._can_grow(name)]
        return f"/{names[0]}" if names else ""

    def _can_grow(self, name: str) -> bool:
        """Return whether a dimension of the root is the first of each variable that has it."""
        return not any(f"/{name}" in each.dimensions[1:] for each in self.source.variables.values())

    # Groups

    def _group(self, group: GroupHeader, path: str) -> GroupHeader:
        variables = {}
        for name, header in group.variables.items():
            if why := _why_no_name(name):
                self.lose(f"{path}/{name}", "", "variable", why)
                continue
            made = self._variable(header, f"{path}/{name}")
            if made is not None:
                variables[name] = made
        clash = group.dimensions.keys() & group.groups.keys()
        if clash and not self.is_classic:
            raise NotRepresentableError(
                "netCDF-C keeps dimensions and groups under one name in one place",
                path=path.lstrip("/"),
                found=sorted(clash),
                expected="no group that is called as a dimension beside it",
            )
        groups = {}
        for name, below in group.groups.items():
            if self.is_classic:
                self.lose(f"{path}/{name}", "", "group with all in it", "this format has no groups")
            elif why := _why_no_name(name):
                self.lose(f"{path}/{name}", "", "group with all in it", why)
            else:
                groups[name] = self._group(below, f"{path}/{name}")
        defined = {name: each for name, each in group.types.items() if self._why_not(each) is None}
        for name, each in group.types.items():
            if name not in defined:
                self.lose(path, f"/types/{name}", f"type {name}", str(self._why_not(each)))
        return replace(
            group,
            dimensions={
                name: self.dimensions[f"{path}/{name}"]
                for name in group.dimensions
                if f"{path}/{name}" in self.dimensions
            },
            types=defined,
            variables=variables,
            attributes=self._attributes(group.attributes, path),
            special={},
            groups=groups,
        )

    def _attributes(self, attributes: Mapping[str, Attribute], path: str) -> dict[str, Attribute]:
        kept = {name: self._attribute(each, name, path) for name, each in attributes.items()}
        return {name: each for name, each in kept.items() if each is not None}

    def _attribute(self, attribute: Attribute, name: str, path: str) -> Attribute | None:
        pointer, what = f"/attributes/{name}", f"attribute {name}"
        if attribute.form == {"shape": [1]}:  # as netCDF-C writes all numbers
            attribute = Attribute(attribute.type, attribute.value)
        if attribute.form is not None and (why := self._why_no_form(attribute)):
            kept = f"a value of type {attribute.type.name}"
            self.lose(path, pointer, f"HDF5's shape or type of {what}", why, kept)
            attribute = Attribute(attribute.type, attribute.value)
        if isinstance(attribute.value, str):
            text = attribute.value.rstrip("\0") or "\0"
            if self.is_classic_file and text != attribute.value:
                why = "netCDF4-python writes no empty text, and no NULs at its end"
                self.lose(path, pointer, what, why, repr(text))
                return Attribute(types.CHAR, text)
            return attribute
        if attribute.type is types.STRING and any("\0" in each for each in attribute.value):
            self.lose(path, pointer, what, "a string ends at its first NUL", "the text before it")
            strings = attribute.value.copy()
            strings[:] = [each.split("\0")[0] for each in strings]
            attribute = replace(attribute, value=strings)
        if attribute.type in self.types:
            return attribute
        smaller = self._smaller(attribute)
        self.lose(path, pointer, what, f"this format has no {attribute.type}", smaller.type.name if smaller else "")
        return None if smaller is None else self._attribute(smaller, name, path)

    def _why_no_form(self, attribute: Attribute) -> str:
        """Return why an attribute cannot have its shape, or its type of HDF5; "" if it can."""
        of_type, shape = forms.kind(attribute), (attribute.form or {}).get("shape")
        if self.is_classic:
            has_vectors = not of_type and (not isinstance(shape, list) or len(shape) < 2)
            return "" if has_vectors else "this format has vectors of netCDF types only"
        if not of_type and attribute.type is not types.STRING and isinstance(shape, list) and len(shape) > 1:
            return "netCDF-C reads no attributes where numbers are in a table"
        lost = [path for path in attribute.value if path and not self._has(path)] if of_type == "reference" else []
        return f"there is nothing in the file at {lost[0]}" if lost else ""

    def _has(self, path: str) -> bool:
        """Return whether the file will have a group or a variable."""
        groups = dict(self.source.walk())
        above, _, name = path.rpartition("/")
        if path.rstrip("/") in groups:
            return not any(_why_no_name(each) for each in path.split("/") if each)
        header = groups[above].variables.get(name) if above in groups else None
        return header is not None and not self._why_no_variable(header) and not _why_no_name(name)

    def _smaller(self, attribute: Attribute) -> Attribute | None:
        """Return an attribute of a type that the format has, and of the same value; None if there is none."""
        if attribute.type is types.STRING:
            return Attribute(types.CHAR, attribute.value[0]) if len(attribute.value) == 1 else None
        for each in (types.SHORT, types.INT):
            values = np.asarray(attribute.value).astype(each.dtype)
            if [int(one) for one in values] == [int(one) for one in attribute.value]:
                return Attribute(each, values)
        return None

    # Variables

    def _why_not(self, each: AnyType) -> str | None:
        """Return why there can be no variables of a type; None if there can."""
        if each in self.types:
            return None
        if self.is_classic:
            return f"this format has no {each.name if isinstance(each, NcType) else 'user-defined types'}"
        if isinstance(each, UserType) and each.kind == "opaque":
            return "netCDF4-python writes no opaque types"
        if isinstance(each, UserType) and each.kind == "vlen" and (each.base is None or each.base.is_text):
            return "netCDF4-python writes no sequences of anything but numbers"
        if isinstance(each, UserType) and each.kind == "compound" and not _is_flat(each.dtype):
            return "netCDF4-python writes no compounds of anything but numbers and characters"
        return None

    def _why_no_variable(self, header: VariableHeader) -> str | None:
        gone = [each for each in header.dimensions if each not in self.dimensions]
        return self._why_not(header.type) or (
            f"it has the dimension {gone[0]}, which the file has not" if gone else None
        )

    def _variable(self, header: VariableHeader, full_name: str) -> VariableHeader | None:
        if why := self._why_no_variable(header):
            self.lose(full_name, "", "variable", why)
            return None
        attributes = self._attributes(header.attributes, full_name)
        for name in () if self.is_classic_file else hdf5.RESERVED & attributes.keys():
            self.lose(full_name, f"/attributes/{name}", f"attribute {name}", "HDF5 knows dimensions by this name")
            del attributes[name]
        fill = attributes.get("_FillValue")
        wanted = header.type.base if isinstance(header.type, UserType) else header.type
        if fill is not None and (fill.type is not wanted or len(fill.value) != 1):
            why = f"netCDF-C wants one {header.type.name}"
            self.lose(full_name, "/attributes/_FillValue", "attribute _FillValue", why)
            del attributes["_FillValue"]
            fill = None
        self.options[full_name] = self._options(header, full_name, fill)
        quantized = {name: each for name, each in header.special.items() if name.startswith("_Quantize")}
        return replace(header, attributes={**attributes, **quantized})

    def _options(self, header: VariableHeader, full_name: str, fill: Attribute | None) -> dict[str, Any]:
        options: dict[str, Any] = {}
        special = {name: _plain(each) for name, each in header.special.items()}
        if _is_true(special.get("_NoFill")) and fill is None and isinstance(header.type, NcType):
            options["fill_value"] = False
        elif fill is not None:
            if fill.type is types.CHAR:
                options["fill_value"] = str(fill.value).encode("utf-8", "surrogateescape")
            else:
                options["fill_value"] = fill.value[0]
        if self.is_classic_file:
            stored = [name for name in special if name in {"_ChunkSizes", "_Filter", "_Codecs", *_OWN[4:]}]
            if stored and header.dimensions:
                self.store_otherwise(full_name, ", ".join(stored), "netCDF-3 has neither chunks nor filters")
            return options
        order = special.get("_Endianness")
        if order in {"little", "big"} and isinstance(header.type, NcType) and not header.type.is_text:
            options["endian"] = order
        if header.dimensions:
            options |= self._chunks(header, special, full_name)
            path = full_name.rpartition("/")[0]
            is_hidden = hdf5.has_hidden_dimension(header.dimensions, path, self.dimensions)
            options |= self._filters(special, full_name, plugins=not is_hidden and isinstance(header.type, NcType))
            if options.get("contiguous") and len(options.keys() & {"compression", "fletcher32"}):
                del options["contiguous"]
        return options

    def _chunks(self, header: VariableHeader, special: Mapping[str, Any], full_name: str) -> dict[str, Any]:
        dimensions = [self.dimensions[each] for each in header.dimensions]
        storage, wanted = special.get("_Storage"), special.get("_ChunkSizes")
        if wanted is not None and len(wanted) == len(dimensions):
            chunks = [int(each) for each in wanted]
            cut = [
                each if dimension.unlimited else min(each, dimension.size)
                for each, dimension in zip(chunks, dimensions, strict=True)
            ]
            if cut != chunks:
                why = "chunks cannot exceed a fixed length"
                self.store_otherwise(full_name, f"chunks of {chunks}", why, str(cut))
            return {"chunksizes": cut}
        if storage == "compact":
            self.store_otherwise(full_name, "compact storage", "netCDF4-python does not write it", "contiguous")
        if storage in {"contiguous", "compact"} and not any(each.unlimited for each in dimensions):
            return {"contiguous": True}
        return {}

    def _filters(self, special: Mapping[str, Any], full_name: str, *, plugins: bool) -> dict[str, Any]:
        """Return how filters are asked for; those that h5py has not (`plugins`) only where netCDF-C stores values."""
        options: dict[str, Any] = {}
        lost: list[str] = []
        shuffle = _is_true(special.get("_Shuffle"))
        if _is_true(special.get("_Fletcher32")):
            options["fletcher32"] = True
        if special.get("_DeflateLevel") is not None:
            level = int(np.ravel(special["_DeflateLevel"])[0])
            if level:
                options |= {"compression": "zlib", "complevel": level, "shuffle": shuffle}
            else:
                lost.append("_DeflateLevel")
        for each in filter(None, str(special.get("_Filter", "")).split("|")):
            known = _filter_options(each)
            if known is None or "compression" in options or not plugins:
                lost.append(f"_Filter {each}")
            else:
                options |= known
        if shuffle and options.get("compression") != "zlib":
            lost.append("_Shuffle")
        if "_Codecs" in special and not _HDF5_FILTERS & special.keys():
            lost.append("_Codecs")
        if lost:
            self.store_otherwise(full_name, ", ".join(lost), "netCDF4-python has no way to ask for it")
        return options


def _with_types(group: GroupHeader, above: list[UserType]) -> GroupHeader:
    """Return a group, and those below, in which the types of all variables are defined once, there or above."""
    defined = {name: each for name, each in group.types.items() if each not in above}
    visible = [*above, *(each for each in defined.values() if isinstance(each, UserType))]
    taken = {*group.dimensions, *group.variables, *group.groups, *defined}
    renamed: list[tuple[UserType, UserType]] = []
    variables = dict(group.variables)
    for name, header in group.variables.items():
        given = header.type
        if isinstance(given, NcType) or given in visible:
            continue
        made = next((new for old, new in renamed if old == given), None)
        if made is None:  # HDF5 keeps types, dimensions, variables and groups under one name in one place
            made = replace(given, name=_free_name(given.name, taken))
            renamed.append((given, made))
            defined[made.name] = made
            taken.add(made.name)
        variables[name] = replace(header, type=made)
    visible += [new for _, new in renamed]
    groups = {name: _with_types(each, visible) for name, each in group.groups.items()}
    return replace(group, types=defined, variables=variables, groups=groups)


def _free_name(name: str, taken: Container[str]) -> str:
    others = (f"{name}_{number}" for number in itertools.count(1))
    return next(each for each in itertools.chain([name], others) if each not in taken)


def _why_no_name(name: str) -> str:
    """Return why nothing in a file can have a name; "" if it can."""
    try:
        stored = checked_name(name)
    except NodeNameError as error:
        return f"netCDF allows no name {name!r}: {error.message}"
    return "" if stored == name else f"netCDF stores the name in another form of Unicode, {stored!a}"


def without_blosc(planned: Plan, names: Iterable[str]) -> Plan:
    """Return a plan in which some variables are not compressed by blosc, which is reported."""
    options, losses = dict(planned.options), list(planned.losses)
    groups = dict(planned.root.walk())
    why = "netCDF-C stores no chunk that blosc cannot make smaller"
    for each in names:
        path, _, name = each.rpartition("/")
        options[each] = {key: value for key, value in options[each].items() if key not in _OPTIONS_OF_BLOSC}
        special = groups[path].variables[name].special["_Filter"]
        entry = next(one for one in str(_plain(special)).split("|") if one.startswith("32001"))
        losses.append(StoredOtherwise(each[1:], "", f"_Filter {entry}", why))
    return planned._replace(options=options, losses=tuple(losses))


def _filter_options(text: str) -> dict[str, Any] | None:
    """Return how createVariable is asked for a filter, ``"307,9"``; None if there is no way."""
    try:
        number, *parameters = map(int, text.split(","))
    except ValueError:
        return None
    match number, parameters:
        case 307, [level] if 1 <= level <= 9:
            return {"compression": "bzip2", "complevel": level}
        case filters.ZSTD, [level]:
            # as HDF5 has negative levels; 0 is Zstandard's word for its default, but no compression to netCDF4-python
            level = level - 2**32 if level >= 2**31 else level
            return (
                {"compression": filters.OPTIONS[filters.ZSTD], "complevel": level or _ZSTD_DEFAULT}
                if level <= _ZSTD_MAX
                else None
            )
        case 32001, [_, _, _, _, level, shuffle, compressor] if compressor in BLOSC:
            chosen = {"compression": BLOSC[compressor], "complevel": level, "blosc_shuffle": shuffle}
            return chosen if level else {}  # which compresses nothing
        case 4, [mask, pixels] if bool(mask & 4) != bool(mask & 32):
            return {"compression": "szip", "szip_coding": "nn" if mask & 32 else "ec", "szip_pixels_per_block": pixels}
        case _:
            return None


def _plain(attribute: Attribute) -> Any:
    """Return the value of a special attribute: text, or a vector."""
    if attribute.type is types.STRING:
        return attribute.value[0] if len(attribute.value) else ""
    return attribute.value


def _is_true(value: Any) -> bool:
    """Return whether a special attribute says so, as ncgen takes it: "true", or a number that is not 0."""
    if isinstance(value, str):
        return value.lower() in {"true", "1"}
    return value is not None and bool(np.any(value))


def _is_flat(dtype: np.dtype[Any]) -> bool:
    fields: Iterable[Any] = (dtype.fields or {}).values()
    return all(each[0].base.kind in "iuf" or each[0].base == np.dtype("S1") for each in fields)
