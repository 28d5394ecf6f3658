"""The nodes of a group of any format as Zarr v3 has them: what lazy arrays of whole groups are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from omnizarr.formats import conventions
from omnizarr.model import Metadata
from omnizarr.nodes.array import Array
from omnizarr.nodes.group import Group
from omnizarr.nodes.members import UnreadableNode


class Variable(NamedTuple):
    """An array, as Zarr v3 has it."""

    array: Array
    names: tuple[str | None, ...]
    attributes: Mapping[str, Any]


def as_v3(node: Group | Array) -> tuple[dict[str, Variable], dict[str, Mapping[str, Any]]]:
    """Return the arrays of a node and below, and the attributes of its groups, by path. "" is the node itself.

    Raises the error of a node that cannot be read.
    """
    members = dict(node.members(max_depth=None)) if isinstance(node, Group) else {}
    nodes: dict[str, Metadata] = {"": node._metadata}  # noqa: SLF001 - the same library
    for path, each in members.items():
        if isinstance(each, UnreadableNode):
            raise each.error
        nodes[path] = each._metadata  # noqa: SLF001
    known = conventions.Nodes(nodes)
    arrays, groups = {}, {}
    for path, metadata in nodes.items():
        carried = conventions.carry(path, known, metadata, "v3").metadata
        each = members[path] if path else node
        if isinstance(each, Array):
            names = getattr(carried, "dimension_names", None) or (None,) * each.ndim
            arrays[path] = Variable(each, tuple(names), carried.attributes)
        else:
            groups[path] = carried.attributes
    return arrays, groups
