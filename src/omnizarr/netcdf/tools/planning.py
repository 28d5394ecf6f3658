"""Find out what a netCDF file or an NCZarr layout can store of a dataset, and verify what was written.

To find what a layout cannot store, the definitions are created in memory and compared with the wanted ones.

Spec: NCZarr, "The NCZarr Data Model".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from omnizarr.errors import ChunkError, NodeNameError
from omnizarr.formats.contract import Dialect
from omnizarr.formats.conventions.nczarr_metadata import HIDDEN
from omnizarr.model import Note
from omnizarr.netcdf import chars, copying, files, stored, types
from omnizarr.netcdf.dataset import Dataset
from omnizarr.netcdf.files import writing
from omnizarr.netcdf.header import MEMBERS, Attribute, DimensionHeader, GroupHeader, Source, VariableHeader
from omnizarr.netcdf.layouts import LAYOUTS, Layout
from omnizarr.netcdf.layouts.writing import check_name
from omnizarr.netcdf.tools.remarks import in_words, remarks_of, without_nuls
from omnizarr.netcdf.types import UserType
from omnizarr.netcdf.variable import MAXSTRLEN
from omnizarr.support.progress import Tick
from omnizarr.tools.translate.translation import Loss

LEFT_OUT: Final = "left out: "
"""Beginnings of the notes of file readers on omitted data."""

_COMPARED: Final = 16 * 2**20  # bytes of each side at a time
_OBJECT: Final = 64  # bytes of a string, as a guess
_WHY: Final = "this layout of NCZarr has no way to say it"
_NO_MARKS: Final = (
    "the file is not one of netCDF, so that no attributes of NCZarr are written, which keep the exact types of "
    "attributes: a target with #mode=nczarr has them"
)
_TOO_SHORT: Final = "a string is longer, and netCDF-C would cut it"


@dataclass(frozen=True, slots=True)
class Plan:
    """The definitions to write, and the losses.

    Attributes
    ----------
    root : GroupHeader
        As it will be read again.
    losses : tuple of Loss
    defined : GroupHeader, optional
        Of a hierarchy, what is defined.
    remarks : mapping of str to (tuple of str)
        By full name of a variable: what is expressed differently, and what some readers see differently.
    copied : frozenset of str
        Full names of variables whose chunks were copied byte for byte.
    """

    root: GroupHeader
    losses: tuple[Loss, ...]
    defined: GroupHeader | None = None
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    copied: frozenset[str] = frozenset()


# -- losses ---------------------------------------------------------------------------------------


def for_file(root: GroupHeader) -> Plan:
    """Return the part of a dataset that a netCDF-4 file can store."""
    planned = files.plan(root)
    return with_told(Plan(planned.root, tuple(told(root))), planned.losses)


def with_told(plan: Plan, told: Iterable[Loss]) -> Plan:
    """Return a plan with the losses of a file. Data that is only stored differently is not a loss."""
    losses = dict.fromkeys(plan.losses)
    remarks = {name: dict.fromkeys(each) for name, each in plan.remarks.items()}
    for each in told:
        if isinstance(each, files.StoredOtherwise):
            instead = f"{each.kept} in place of" if each.kept else "without"
            remarks.setdefault(f"/{each.path}", {})[f"stored {instead} {each.what}: {each.why}"] = None
        else:
            losses[each] = None
    return replace(plan, losses=tuple(losses), remarks={name: tuple(each) for name, each in remarks.items()})


def for_zarr(source: Source, create: Callable[..., Dataset], dialect: Dialect) -> Plan:
    """Return the part of a dataset that a layout can store.

    `create` makes an empty dataset of this layout, or opens it with ``"r"``.
    """
    losses = list(told(source.root))
    place: dict[str, bytes] = {}
    with create(place, "w") as made:
        wanted = _without_what_has_no_place(source.root, "", dialect, LAYOUTS[made.layout], losses)
        losses += _unused_types(source.root, wanted)
        defined = copying.fitted(made, source._replace(root=wanted), beyond=True)
        copying.define(made, defined)
        layout = made.layout
    with create(place, "r") as made:
        held = made.header
    losses += _differences(wanted, held, "")
    return Plan(held, tuple(losses), defined, remarks_of(defined, layout))


def is_netcdf(root: GroupHeader) -> bool:
    """Whether a file is one of netCDF: netCDF-C says so of HDF5 files that it, or another library of netCDF, wrote."""
    said = root.special.get("_IsNetcdf4")
    return said is None or bool(np.any(np.asarray(said.value)))


def of_hdf5(plan: Plan) -> Plan:
    """Return the plan of an HDF5 file that is not netCDF's, which is written without the marks of netCDF.

    Dimensions that have no name in the file, the types of attributes that JSON does not tell apart and booleans as an
    enumeration are what netCDF makes of it, so that none of these is a loss.
    """
    losses = tuple(each for each in plan.losses if each.why != _WHY or not _is_of_netcdf(each))
    remarks = dict(plan.remarks)
    if len(losses) < len(plan.losses):
        remarks[""] = (*remarks.get("", ()), _NO_MARKS)
    return replace(plan, losses=losses, remarks=remarks)


def loses_for_layout(plan: Plan) -> bool:
    """Whether something is lost that another layout would keep."""
    return any(each.why == _WHY for each in plan.losses)


def _is_of_netcdf(loss: Loss) -> bool:
    kind, _, name = loss.pointer.strip("/").partition("/")
    if kind == "dimensions":
        return name.startswith("phony_dim_")
    return loss.kept.endswith("_bool_t") if kind == "type" else kind == "attributes" and bool(loss.kept)


def told_of_texts(names: Iterable[str]) -> tuple[Loss, ...]:
    """Return losses for variables with strings that are not UTF-8."""
    why = "strings are UTF-8 in Zarr v3"
    return tuple(Loss(name[1:], "", "bytes of strings that are not UTF-8", why, "U+FFFD") for name in names)


def told(root: GroupHeader) -> Iterator[Loss]:
    """Yield notes on data that the reader of a file left out."""
    for path, note in _notes(root):
        if is_loss(note):
            kind, _, name = note.pointer.strip("/").partition("/")
            what = f"{kind.removesuffix('s')} {name}" if name else kind
            yield Loss(path[1:], note.pointer, what, note.message.removeprefix(LEFT_OUT))


def is_loss(note: Note) -> bool:
    """Whether a note says that something was left out in reading."""
    return note.message.startswith(LEFT_OUT) or note.pointer.startswith(f"{MEMBERS}/")


def _notes(root: GroupHeader) -> Iterator[tuple[str, Note]]:
    for path, group in root.walk():
        yield from ((path, note) for note in group.notes)
        for name, each in group.variables.items():
            yield from ((f"{path}/{name}", note) for note in each.notes)


def _unused_types(root: GroupHeader, kept: GroupHeader) -> Iterator[Loss]:
    """Yield the types that no variable keeps: NCZarr has only those of variables."""
    used = [
        each.type for _, group in kept.walk() for each in group.variables.values() if isinstance(each.type, UserType)
    ]
    for path, group in root.walk():
        for name, of_type in group.types.items():
            if of_type not in used:
                yield Loss(
                    path[1:], f"/types/{name}", f"type {of_type.name}", "no variable that is kept is of this type"
                )


def _without_what_has_no_place(
    group: GroupHeader, path: str, dialect: Dialect, layout: Layout, losses: list[Loss]
) -> GroupHeader:
    group = _without_taken_names(group, path.rstrip("/"), losses)
    kept = {}
    for name, header in group.variables.items():
        each = _without_taken_names(header, f"{path}{name}", losses)
        if isinstance(each.type, UserType) and (why := layout.why_not(each.type)):
            losses.append(Loss(f"{path}{name}", "", f"variable of type {each.type.name} ({each.type.kind})", why))
        elif unnamed := _why_no_path(each, dialect):
            losses.append(Loss(f"{path}{name}", "", "variable", unnamed))
        else:
            kept[name] = each
    below = {}
    for name, inner in group.groups.items():
        if unnamed := _why_no_path(inner, dialect):
            losses.append(Loss(f"{path}{name}", "", "group with all in it", unnamed))
        else:
            below[name] = _without_what_has_no_place(inner, f"{path}{name}/", dialect, layout, losses)
    return replace(group, variables=kept, groups=below, types={})


_Header = TypeVar("_Header", GroupHeader, VariableHeader)


def _without_taken_names(header: _Header, path: str, losses: list[Loss]) -> _Header:
    """Return a header without attributes that would count as NCZarr's own."""
    taken = [name for name in header.attributes if name in HIDDEN]
    why = "in NCZarr, an attribute of this name has a meaning of its own"
    losses += [Loss(path, f"/attributes/{name}", f"attribute {name}", why) for name in taken]
    return (
        header
        if not taken
        else replace(header, attributes={name: each for name, each in header.attributes.items() if name not in taken})
    )


def _why_no_path(header: GroupHeader | VariableHeader, dialect: Dialect) -> str:
    """Return why a group or variable can have no path in Zarr; "" if it can."""
    try:
        check_name(header)
        dialect.check_name(header.name)
    except NodeNameError as error:
        return error.message
    return ""


def _differences(wanted: GroupHeader, held: GroupHeader, path: str) -> Iterator[Loss]:
    """Yield differences of a defined dataset from the wanted one."""
    for name, dimension in wanted.dimensions.items():
        found = held.dimensions.get(name)
        if found != dimension:
            unlimited = "unlimited " if dimension.unlimited else ""
            kept = "" if found is None else f"length {found.size}"
            yield Loss(path[:-1], f"/dimensions/{name}", f"{unlimited}dimension {name}", _WHY, kept)
    yield from _changed(wanted.attributes, held.attributes, path[:-1])
    for name, variable in wanted.variables.items():
        found_type = held.variables[name].type
        if found_type != variable.type:
            what = f"type {variable.type.name}"
            yield Loss(f"{path}{name}", "/type", what, _WHY, f"values, as {found_type.name}")
        yield from _changed(_attributes(variable), _attributes(held.variables[name]), f"{path}{name}")
    for name, group in wanted.groups.items():
        yield from _differences(group, held.groups[name], f"{path}{name}/")


def _changed(wanted: Mapping[str, Attribute], held: Mapping[str, Attribute], path: str) -> Iterator[Loss]:
    for name, each in wanted.items():
        found = held.get(name)
        if found not in (each, without_nuls(each), _as_vector(each)):
            kept = "" if found is None else in_words(found)
            why = _TOO_SHORT if name == MAXSTRLEN and kept else _WHY
            yield Loss(path, f"/attributes/{name}", f"attribute {name} = {in_words(each)}", why, kept)


def _as_vector(attribute: Attribute) -> Attribute:
    """Return a scalar as a vector of length 1: netCDF has no scalars, and its readers treat such vectors as scalars."""
    return replace(attribute, form=None) if attribute.form == {"shape": []} else attribute


def _attributes(header: VariableHeader) -> dict[str, Attribute]:
    """Return the attributes of a variable, with those that say how its values were rounded."""
    quantized = {name: each for name, each in header.special.items() if name.startswith("_Quantize")}
    return {**header.attributes, **quantized}


# -- the comparison -----------------------------------------------------------------------------------


def compare(source: Source, written: Source, plan: Plan, tick: Tick) -> None:
    """Raise ChunkError if what was written is not what was planned; `tick` gets the number of compared bytes."""
    known = {f"/{each.path}{each.pointer}" for each in plan.losses}
    found = dict(written.root.walk())
    if found.keys() != {path for path, _ in plan.root.walk()}:
        raise _other("groups", "", set(found), {path for path, _ in plan.root.walk()})
    for path, group in plan.root.walk():
        _compare_groups(group, found[path], path, known)
        for name, each in group.variables.items():
            _compare_variables(each, found[path].variables[name], f"{path}/{name}")
    for path, group in found.items():
        for name, each in group.variables.items():
            for selection in _parts(source, written, each, f"{path}/{name}"):
                ours = source.read(f"{path}/{name}", selection)
                if not _same(ours, written.read(f"{path}/{name}", selection), each):
                    at = ", ".join(f"{one.start}:{one.stop}" for one in selection)
                    raise ChunkError(
                        "what was written differs from what was read", path=f"{path}/{name}"[1:], found=f"at [{at}]"
                    )
                tick(ours.nbytes)


def _compare_groups(wanted: GroupHeader, found: GroupHeader, path: str, known: set[str]) -> None:
    lengths = {
        name: _as_told(each, found.dimensions.get(name), is_told=f"{path or '/'}/dimensions/{name}" in known)
        for name, each in wanted.dimensions.items()
    }
    if lengths != found.dimensions:
        raise _other("dimensions", path, found.dimensions, lengths)
    if dict(wanted.attributes) != dict(found.attributes):
        raise _other("attributes", path, found.attributes, wanted.attributes)
    if wanted.variables.keys() != found.variables.keys():
        raise _other("variables", path, list(found.variables), list(wanted.variables))


def _as_told(wanted: DimensionHeader, found: DimensionHeader | None, *, is_told: bool) -> DimensionHeader:
    """Return a dimension with its actual length, if the report has another one."""
    return replace(wanted, size=found.size) if found is not None and is_told else wanted


def _compare_variables(wanted: VariableHeader, found: VariableHeader, path: str) -> None:
    if wanted.type != found.type:
        raise _other("types", path, found.type, wanted.type)
    if wanted.dimensions != found.dimensions:
        raise _other("dimensions", path, found.dimensions, wanted.dimensions)
    if _attributes(wanted) != _attributes(found):
        raise _other("attributes", path, _attributes(found), _attributes(wanted))


def _other(what: str, path: str, found: Any, expected: Any) -> ChunkError:
    return ChunkError(f"other {what} were written than were read", path=path[1:], found=found, expected=expected)


def _parts(source: Source, written: Source, header: VariableHeader, name: str) -> Iterator[tuple[slice, ...]]:
    """Return the selections to compare: all blocks, or what either side stores, if there are very many."""
    ours, theirs = source.array(name), written.array(name)
    if ours is not None and theirs is not None:
        sizes = written.root.sizes()
        found = stored.regions(tuple(sizes[each].size for each in header.dimensions), [ours, theirs])
        if found is not None:
            return found
    return _blocks(written.root, header)


def _blocks(root: GroupHeader, header: VariableHeader) -> Iterator[tuple[slice, ...]]:
    """Yield selections of whole chunks that together are a variable."""
    sizes = root.sizes()
    shape = tuple(sizes[each].size for each in header.dimensions)
    chunks = header.special.get("_ChunkSizes")
    lengths = (1,) * len(shape) if chunks is None or isinstance(chunks.value, str) else chunks.value.tolist()
    item_size = _OBJECT if header.type.dtype == object else header.type.dtype.itemsize
    return writing.blocks(shape, lengths, item_size, _COMPARED)


def _same(one: NDArray[Any], other: NDArray[Any], header: VariableHeader) -> bool:
    is_same_type = one.dtype == other.dtype or (isinstance(header.type, UserType) and not one.dtype.hasobject)
    if one.shape != other.shape or not is_same_type:
        return False
    if one.dtype != object:
        return one.tobytes() == other.tobytes()
    pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
    if header.type is types.STRING:
        # A file stores a string up to its first NUL; Zarr v3 stores only UTF-8. The report says so.
        return all(
            ours == theirs or ours.split("\0")[0] == theirs or chars.as_utf8(np.array([ours], object))[0] == theirs
            for ours, theirs in pairs
        )
    return all(_same(np.asarray(ours), np.asarray(theirs), header) for ours, theirs in pairs)
