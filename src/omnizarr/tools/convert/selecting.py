"""The part of a hierarchy that names of dimensions and their coordinates select, as a hierarchy of its own.

Selections mean what they mean to `omnizarr.get` (`omnizarr.nodes.labels`). The part is shown by a `LazyStore`: stored
chunks that it contains whole are copied unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from omnizarr.api.opening import locate, open_array, open_group
from omnizarr.errors import SelectionError
from omnizarr.formats import dialect_named
from omnizarr.formats.contract import Dialect
from omnizarr.model import ArrayMetadata, Metadata
from omnizarr.nodes import detection, showing
from omnizarr.nodes import labels as by_label
from omnizarr.nodes.array import Array
from omnizarr.nodes.detection import Found
from omnizarr.nodes.group import Group
from omnizarr.nodes.labels import Label
from omnizarr.nodes.lazy.hierarchies import Variable, as_v3
from omnizarr.nodes.lazy.store import LazyStore
from omnizarr.nodes.lazy.view import as_lazy
from omnizarr.nodes.location import StorePath
from omnizarr.support import suggestions
from omnizarr.tools.convert.planning import Plan
from omnizarr.tools.convert.sources import Source
from omnizarr.tools.convert.task import Task
from omnizarr.tools.extension import Extension
from omnizarr.tools.translate.coding import KEEP

_COORDINATES: Final = "coordinates"
"""The attribute of CF that names coordinates without a dimension of their own."""


def found(task: Task, whole: Found[Metadata], dialect: Dialect) -> Found[Metadata]:
    """Return the topmost node of what a task selects of a node, which is to be written in a format."""
    is_array = isinstance(whole.metadata, ArrayMetadata)
    opened = open_array if is_array else open_group
    node: Array | Group = opened(whole.where, mode="r", zarr_format=task.source_format)
    portable = task.compressors != KEEP and dialect.name == "v3"
    store = selected(node, task.select or {}, portable=portable, allow_pickle=task.allow_pickle)
    return detection.open_node(StorePath(store, ""))


def with_copies(made: Plan, whole: Found[Metadata]) -> Plan:
    """Return a plan that makes consolidated metadata, if the whole hierarchy has some."""
    top, *others = made.steps
    return made._replace(steps=(replace(top, has_copies=Source(whole).top(whole).has_copies), *others))


def of_task(task: Task, extension: Extension) -> Task:
    """Return the task of converting what is selected to a file of another data model.

    Raises ValueError if the source is such a file.
    """
    if extension.concerns(task.source, None):
        raise ValueError("a part of a netCDF file cannot be selected: convert the file to Zarr first, and select then")
    where, _ = locate(task.source, task.path, "r", task.store_options)
    whole = detection.open_node(where, task.source_format)
    return replace(task, source=found(task, whole, dialect_named("v3")).where.store, path=None, select=None)


def selected(node: Group | Array, select: Mapping[str, Label], *, portable: bool, allow_pickle: bool) -> LazyStore:
    """Return what is selected of a node and of all below it.

    Parameters
    ----------
    node : Group or Array
    select : mapping of str to label
        By names of dimensions. An array without any of them is taken whole.
    portable : bool
        Whether compressors that few readers of v3 know are replaced.
    allow_pickle : bool

    Raises
    ------
    SelectionError
        If no array has a dimension, or it has no such place; if positions are selected along a dimension without
        coordinates that has several lengths.
    """
    node = showing.in_its_group(node) if isinstance(node, Array) else node  # which has the coordinates
    arrays, groups = as_v3(node)
    names = {path: by_label.names_of(each.array) for path, each in arrays.items()}
    _check_names(node, names, select)
    _check_lengths(arrays, names, select)
    known: dict[by_label.Place, by_label.Chosen] = {}
    views, attributes = {}, dict(groups)
    for path, each in arrays.items():
        array = each.array.with_config({"allow_pickle": True}) if allow_pickle else each.array
        view = as_lazy(array, watched=True).rename(each.names)
        wanted = {name: label for name, label in select.items() if name in names[path]}
        attributes[path] = each.attributes
        if wanted:
            chosen = by_label.positions(array, wanted, known)
            view = view.lazy.oindex[chosen] if chosen else view
            dropped = [name for name, one in zip(names[path], chosen, strict=True) if isinstance(one, int)]
            attributes[path] = _with_coordinates(each, dropped)
        views[path] = view
    return LazyStore(views, attributes, portable=portable)


def _check_names(node: Group | Array, names: Mapping[str, Sequence[str]], select: Mapping[str, Label]) -> None:
    known = dict.fromkeys(name for each in names.values() for name in each if name)
    for name in select:
        if name not in known:
            raise SelectionError(
                f"there is no dimension {name!r}",
                found=repr(name),
                expected=", ".join(map(repr, known)) or "none: the dimensions have no names",
                remedy=suggestions.question(suggestions.near_names(name, list(known))) or None,
                store=str(node.store),
                path=node.path,
            )


def _check_lengths(
    arrays: Mapping[str, Variable], names: Mapping[str, Sequence[str]], select: Mapping[str, Label]
) -> None:
    """Raise SelectionError if positions would mean different places in two arrays, as in levels of an image."""
    first: dict[tuple[str, str], tuple[str, int]] = {}
    for path, each in arrays.items():
        above = path.rpartition("/")[0]
        for name, length in zip(names[path], each.array.shape, strict=True):
            if name not in select or by_label.coordinates_of(each.array, name, length) is not None:
                continue
            other, expected = first.setdefault((above, name), (path, length))
            if length != expected:
                raise SelectionError(
                    f"dimension {name!r} has no coordinates, and positions along it mean other places in other arrays",
                    store=str(each.array.store),
                    path=each.array.path,
                    found=f"length {length}",
                    expected=f"length {expected}, as in {other!r}",
                    remedy="convert one of the arrays",
                )


def _with_coordinates(variable: Variable, dropped: Sequence[str]) -> Mapping[str, Any]:
    """Return attributes that name the coordinates of dimensions that are gone, as CF has them."""
    array, attributes = variable.array, variable.attributes
    before = attributes.get(_COORDINATES, "")
    added = [
        name
        for name in dropped
        if name != array.basename
        and by_label.coordinates_of(array, name, array.shape[by_label.names_of(array).index(name)]) is not None
    ]
    if not added or not isinstance(before, str):
        return attributes
    return {**attributes, _COORDINATES: " ".join(dict.fromkeys([*before.split(), *added]))}
