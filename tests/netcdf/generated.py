"""Datasets that Hypothesis makes: whatever netCDF-4 can say, without user-defined types."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from omnizarr.netcdf import Attribute, NcType, types
from omnizarr.netcdf.header import DimensionHeader, GroupHeader, Selection, Source, VariableHeader

NUMBERS = [each for each in types.TYPES.values() if not each.is_text]
FILTERS = {
    "_DeflateLevel": st.integers(1, 9),
    "_Filter": st.sampled_from(["307,9", "32015,3", "32001,0,0,0,0,5,1,0"]),  # bzip2, zstd, blosc with lz4
}
MAX_STRING = 128  # bytes that NCZarr gives to a string by default


class Made(NamedTuple):
    """A dataset in memory.

    Attributes
    ----------
    root : GroupHeader
    data : mapping of str to ndarray
        Of every variable, by full name.
    written : mapping of str to ndarray
        What a writer has to write; the rest of an unlimited dimension is fill values.
    """

    root: GroupHeader
    data: Mapping[str, np.ndarray]
    written: Mapping[str, np.ndarray]

    def read(self, name: str, selection: Selection) -> np.ndarray:
        return self.data[name][(..., *selection)]  # an array, even of a scalar

    def source(self) -> Source:
        return Source(self.root, self.read)


class Allowed(NamedTuple):
    """What a dataset may have: its predicates say no to what some reader or writer is known to do wrong.

    Attributes
    ----------
    attribute, variable : callable
        Whether there may be such an attribute, such a variable.
    unlimited : bool
        Whether dimensions may be unlimited.
    numbers : callable
        To what the numbers of an attribute are changed first.
    adapted : callable
        To what a variable is changed because of its data.
    """

    attribute: Callable[[Attribute], bool] = lambda _: True
    variable: Callable[[VariableHeader, Mapping[str, DimensionHeader]], bool] = lambda _, __: True
    unlimited: bool = True
    numbers: Callable[[np.ndarray], np.ndarray] = lambda values: values
    adapted: Callable[[VariableHeader, np.ndarray], VariableHeader] = lambda variable, _: variable


def variables(root: GroupHeader) -> Iterator[tuple[str, VariableHeader]]:
    """Yield all variables with their full names."""
    for path, group in root.walk():
        for name, each in group.variables.items():
            yield f"{path}/{name}", each


def fill_of(variable: VariableHeader) -> object:
    """Return the value of unwritten elements."""
    found = variable.attributes.get("_FillValue")
    if found is None:
        return variable.type.default_fill
    return found.value[0] if not isinstance(found.value, str) else found.value.encode("utf-8", "surrogateescape")


# Names and text

_FIRST = st.characters(codec="utf-8", categories=["L", "Nd"], include_characters="_")
_REST = st.characters(codec="utf-8", categories=["L", "N", "P", "S"], include_characters=" ", exclude_characters="/\\")


def names() -> st.SearchStrategy[str]:
    """Names as netCDF allows: normalized, no slash, no space at the end; and no backslash, which paths of Zarr lack."""
    odd = st.builds(
        lambda first, rest: unicodedata.normalize("NFC", first + rest.rstrip()), _FIRST, st.text(_REST, max_size=6)
    )
    return st.sampled_from(["x", "y", "t", "time", "a b", "Größe", "T2", "a.b", "0"]) | odd.filter(_is_name)


def _is_name(name: str) -> bool:
    return bool(name) and not name.startswith("_") and "/" not in name and not name.endswith(" ")


_TEXT = st.characters(codec="utf-8", exclude_characters="\0")
JSON_LIKE = ["42", "-1.5e3", "true", "null", '"quoted"', '{"a": [1, 2]}', "[1, 2]", "[]", "{}", "1 2", " ", "NaN", "'"]


def texts() -> st.SearchStrategy[str]:
    return st.sampled_from(
        ["", "m s-1", "Größe \U0001f30d", 'say "no"', "back\\slash", "two\nlines\t.", *JSON_LIKE]
    ) | st.text(_TEXT, max_size=10)


# Values


def numbers(nc_type: NcType, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    """All bit patterns of a type: NaNs of any payload, infinities, both zeros, the ends of the range."""
    bits = np.dtype(f"u{nc_type.dtype.itemsize}")
    if nc_type.dtype.kind == "f":
        special = [
            0.0,
            -0.0,
            1.5,
            np.nan,
            np.inf,
            -np.inf,
            0.1,
            np.finfo(nc_type.dtype).max,
            np.finfo(nc_type.dtype).tiny,
        ]
    else:
        ends = np.iinfo(nc_type.dtype)
        special = [0, 1, ends.min, ends.max, nc_type.default_fill]
    patterns = np.array(special, nc_type.dtype).view(bits).tolist()
    elements = st.sampled_from(patterns) | hnp.from_dtype(bits)
    return hnp.arrays(bits, shape, elements=elements).map(lambda array: array.view(nc_type.dtype))


def strings(shape: tuple[int, ...], text: st.SearchStrategy[str]) -> st.SearchStrategy[np.ndarray]:
    count = math.prod(shape)
    return st.lists(text, min_size=count, max_size=count).map(lambda items: _objects(items).reshape(shape))


def _objects(items: list[str]) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def data_of(nc_type: NcType, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    if nc_type is types.STRING:
        short = texts().filter(lambda text: len(text.encode()) <= MAX_STRING)
        return strings(shape, short)
    if nc_type is types.CHAR:
        return hnp.arrays(np.uint8, shape).map(lambda array: array.view("S1"))
    return numbers(nc_type, shape)


def in_json(nc_type: NcType, count: int, allowed: Allowed) -> st.SearchStrategy[np.ndarray]:
    """Numbers as JSON can hold them: a NaN is a NaN, without sign or payload."""

    def plain(values: np.ndarray) -> np.ndarray:
        if nc_type.dtype.kind != "f":
            return values
        return allowed.numbers(np.where(np.isnan(values), np.array(np.nan, values.dtype), values))

    return numbers(nc_type, (count,)).map(plain)


@st.composite
def attribute_values(draw: st.DrawFn, allowed: Allowed) -> Attribute:
    """An attribute of any type, scalar, vector, or empty."""
    nc_type = draw(st.sampled_from(list(types.TYPES.values())))
    if nc_type is types.CHAR:
        return Attribute(nc_type, draw(texts()))
    count = draw(st.sampled_from([1, 1, 2, 3, 0]))
    if nc_type is types.STRING:
        return Attribute(nc_type, draw(strings((count,), texts())))
    return Attribute(nc_type, draw(in_json(nc_type, count, allowed)))


@st.composite
def attributes(draw: st.DrawFn, allowed: Allowed) -> dict[str, Attribute]:
    found = {}
    for _ in range(draw(st.integers(0, 4))):
        found[draw(names())] = draw(attribute_values(allowed).filter(allowed.attribute))
    return found


# Structure


@st.composite
def _variable(draw: st.DrawFn, name: str, visible: dict[str, DimensionHeader], allowed: Allowed) -> VariableHeader:
    nc_type = draw(st.sampled_from(list(types.TYPES.values())))
    dimensions = tuple(draw(st.lists(st.sampled_from(sorted(visible)), max_size=3))) if visible else ()
    found = {}
    if nc_type is not types.STRING and draw(st.booleans()):
        if nc_type is types.CHAR:
            letters = st.characters(codec="ascii", exclude_characters="\0").map(Attribute.of)
            found["_FillValue"] = draw(letters.filter(allowed.attribute))
        else:
            found["_FillValue"] = draw(
                in_json(nc_type, 1, allowed).map(lambda values: Attribute(nc_type, values)).filter(allowed.attribute)
            )
    found |= draw(attributes(allowed))
    return VariableHeader(
        name=name,
        type=nc_type,
        dimensions=dimensions,
        attributes=found,
        special=draw(_special(nc_type, dimensions, visible)),
    )


@st.composite
def _special(
    draw: st.DrawFn, nc_type: NcType, dimensions: tuple[str, ...], visible: dict[str, DimensionHeader]
) -> dict[str, Attribute]:
    special = {}
    if dimensions and draw(st.booleans()):
        limits = [8 if visible[each].unlimited else visible[each].size for each in dimensions]
        chunks = [draw(st.integers(1, limit)) for limit in limits]
        special["_ChunkSizes"] = Attribute(types.INT, np.array(chunks, "i4"))
    if dimensions and draw(st.booleans()):
        if nc_type is not types.STRING and draw(st.booleans()):
            special["_Shuffle"] = Attribute.of("true")
        name = draw(st.sampled_from([None, *FILTERS]))
        if name:
            value = draw(FILTERS[name])
            special[name] = Attribute.of(np.int32(value) if isinstance(value, int) else value)
        if draw(st.booleans()):
            special["_Fletcher32"] = Attribute.of("true")
    if not nc_type.is_text and nc_type.dtype.itemsize > 1:
        order = draw(st.sampled_from([None, "little", "big"]))
        if order:
            special["_Endianness"] = Attribute.of(order)
    if nc_type is not types.STRING and draw(st.integers(0, 7)) == 7:
        special["_NoFill"] = Attribute.of("true")
    return special


@st.composite
def _group(
    draw: st.DrawFn, name: str, path: str, inherited: dict[str, DimensionHeader], depth: int, allowed: Allowed
) -> GroupHeader:
    dimensions = {}
    for each in draw(st.lists(names(), max_size=3, unique=True)):
        unlimited = allowed.unlimited and draw(st.booleans())
        dimensions[each] = DimensionHeader(each, draw(st.integers(0 if unlimited else 1, 4)), unlimited)
    visible = inherited | {f"{path}/{each}": header for each, header in dimensions.items()}
    taken = draw(st.lists(names(), max_size=4 if depth else 2, unique_by=str.casefold))
    parts = draw(st.integers(0, min(2, len(taken)))) if depth else 0
    within = {}
    for each in taken[parts:]:
        header = draw(_variable(each, visible, allowed))
        if "_NoFill" in header.special and "_FillValue" in header.attributes:
            header = replace(header, special={key: value for key, value in header.special.items() if key != "_NoFill"})
        if allowed.variable(header, visible):
            within[each] = header
    groups = {each: draw(_group(each, f"{path}/{each}", visible, depth - 1, allowed)) for each in taken[:parts]}
    return GroupHeader(
        name=name, dimensions=dimensions, variables=within, attributes=draw(attributes(allowed)), groups=groups
    )


def _grown(group: GroupHeader, sizes: Mapping[str, int], path: str = "") -> GroupHeader:
    """Return a group whose unlimited dimensions are as long as what was written along them."""
    return replace(
        group,
        dimensions={
            name: replace(each, size=sizes.get(f"{path}/{name}", 0)) if each.unlimited else each
            for name, each in group.dimensions.items()
        },
        groups={name: _grown(each, sizes, f"{path}/{name}") for name, each in group.groups.items()},
    )


def completed(root: GroupHeader, written: Mapping[str, np.ndarray]) -> Made:
    """Return a dataset of what was written: unlimited dimensions grow to the longest, fill values stand in the rest."""
    sizes: dict[str, int] = {}
    for name, variable in variables(root):
        if written[name].size:
            for dimension, extent in zip(variable.dimensions, written[name].shape, strict=True):
                sizes[dimension] = max(sizes.get(dimension, 0), extent)
    root = _grown(root, sizes)
    everything = root.sizes()
    data = {}
    for name, variable in variables(root):
        shape = tuple(everything[each].size for each in variable.dimensions)
        whole = np.full(shape, fill_of(variable), variable.type.dtype)
        if whole.size and written[name].size:
            whole[(..., *map(slice, written[name].shape))] = written[name]
        data[name] = whole
    return Made(root, data, written)


@st.composite
def datasets(draw: st.DrawFn, allowed: Allowed = Allowed()) -> Made:  # noqa: B008
    """A dataset that netCDF-4 can hold."""
    root = draw(_group("", "", {}, 2, allowed))
    everything = root.sizes()
    written = {}
    for name, variable in variables(root):
        extents = [everything[each] for each in variable.dimensions]
        repeated = len(set(variable.dimensions)) < len(variable.dimensions)
        may_end_early = not repeated and "_NoFill" not in variable.special and draw(st.booleans())
        shape = tuple(
            draw(st.integers(0, each.size)) if each.unlimited and may_end_early else each.size for each in extents
        )
        written[name] = draw(data_of(variable.type, shape))
    made = completed(root, written)
    return made._replace(root=_adapted(made.root, made.data, allowed))


def _adapted(group: GroupHeader, data: Mapping[str, np.ndarray], allowed: Allowed, path: str = "") -> GroupHeader:
    return replace(
        group,
        variables={name: allowed.adapted(each, data[f"{path}/{name}"]) for name, each in group.variables.items()},
        groups={name: _adapted(each, data, allowed, f"{path}/{name}") for name, each in group.groups.items()},
    )
