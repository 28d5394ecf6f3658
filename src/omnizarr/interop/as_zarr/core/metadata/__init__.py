"""Metadata, with what zarr-python's has beside that of omnizarr."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from omnizarr.metadata import ArrayMetadata

__all__ = [
    "ArrayMetadata",
    "ArrayV2Metadata",
    "ArrayV3Metadata",
    "ConsolidatedMetadata",
    "GroupMetadata",
]


class _OfFormat(type):
    """The type of metadata of arrays in one format."""

    zarr_format: int

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, ArrayMetadata) and instance.zarr_format == cls.zarr_format


class ArrayV2Metadata(metaclass=_OfFormat):
    """What an array of Zarr v2 is, for ``isinstance``."""

    zarr_format = 2


class ArrayV3Metadata(metaclass=_OfFormat):
    """What an array of Zarr v3 is, for ``isinstance``."""

    zarr_format = 3


AnyMetadata: TypeAlias = "ArrayMetadata | GroupMetadata"


@dataclass(frozen=True)
class ConsolidatedMetadata:
    """Copies of the metadata of all nodes below a group.

    Attributes
    ----------
    metadata : dict
        By path relative to the group; those of groups hold what is below them.
    """

    metadata: dict[str, Any]
    kind: str = "inline"
    must_understand: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return it as a document has it."""
        return {
            "kind": self.kind,
            "must_understand": self.must_understand,
            "metadata": {path: node.to_dict() for path, node in self.flattened_metadata.items()},
        }

    @property
    def flattened_metadata(self) -> dict[str, Any]:
        """The metadata of all nodes at all depths, by path."""
        found: dict[str, Any] = {}
        for name, node in self.metadata.items():
            found[name] = node
            inner = node.consolidated_metadata if isinstance(node, GroupMetadata) else None
            if inner is not None:
                found.update({f"{name}/{path}": each for path, each in inner.flattened_metadata.items()})
        return found

    @classmethod
    def nested(cls, nodes: Mapping[str, Any]) -> ConsolidatedMetadata:
        """Return the metadata of nodes at all depths, by path, with each group's below it."""
        here = {path: node for path, node in nodes.items() if "/" not in path}
        for path, node in here.items():
            if isinstance(node, GroupMetadata):
                skip = len(path) + 1
                below = {name[skip:]: each for name, each in nodes.items() if name.startswith(f"{path}/")}
                here[path] = GroupMetadata(node.attributes, node.zarr_format, cls.nested(below))
        return cls(here)


@dataclass(frozen=True)
class GroupMetadata:
    """What a group is.

    Parameters
    ----------
    attributes : dict
    zarr_format : {2, 3}
    consolidated_metadata : ConsolidatedMetadata, optional
    """

    attributes: dict[str, Any] = field(default_factory=dict)
    zarr_format: Any = 3
    consolidated_metadata: ConsolidatedMetadata | None = None
    node_type: str = field(default="group", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", dict(self.attributes or {}))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GroupMetadata:
        """Return what a document says."""
        return cls(data.get("attributes") or {}, data["zarr_format"])

    def to_dict(self) -> dict[str, Any]:
        """Return it as a document has it."""
        found: dict[str, Any] = {"attributes": self.attributes, "zarr_format": self.zarr_format}
        if self.zarr_format == 3:
            found["node_type"] = "group"
        if self.consolidated_metadata is not None:
            found["consolidated_metadata"] = self.consolidated_metadata.to_dict()
        return found
