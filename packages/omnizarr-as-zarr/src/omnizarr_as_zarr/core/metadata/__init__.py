"""Metadata of omnizarr, with the additional members of zarr-python's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from omnizarr.codecs.values import value_of
from omnizarr.formats import filters as v2_filters
from omnizarr.metadata import ArrayMetadata
from omnizarr.model import UNDEFINED, datatypes, grids, keys, thawed

__all__ = [
    "ArrayV2Metadata",
    "ArrayV3Metadata",
    "ConsolidatedMetadata",
    "GroupMetadata",
]


_V2: Final = 2


class _ArrayMetadata:
    """Metadata of an array: omnizarr's, with the names of zarr-python.

    Parameters
    ----------
    own : omnizarr.metadata.ArrayMetadata
    """

    def __init__(self, own: ArrayMetadata) -> None:
        self.own = own

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ArrayV2Metadata | ArrayV3Metadata:
        """Return what a document says."""
        return array_metadata(ArrayMetadata.from_dict(data))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "own":
            raise AttributeError(name)
        return getattr(self.own, name)

    @property
    def attributes(self) -> dict[str, Any]:
        """A copy of the attributes."""
        attributes: dict[str, Any] = self.to_dict()["attributes"]
        return attributes

    @property
    def fill_value(self) -> Any:
        """Value of elements that were never written; None if the document leaves it undefined."""
        if self.own.fill_value is UNDEFINED:
            return None
        return self._data_type.fill_from_json(thawed(self.own.fill_value))

    @property
    def _data_type(self) -> datatypes.DataType:
        return datatypes.bind(self.own.data_type, self.own.byte_order)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Shape of a chunk (with shards: of a shard)."""
        return grids.bind(self.own.chunk_grid, self.own.shape).chunk_shape

    def to_dict(self) -> dict[str, Any]:
        """Return the document, with the attributes."""
        return self.own.to_dict()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ArrayMetadata) and self.own == other.own

    def __hash__(self) -> int:
        return hash(self.own)

    def __repr__(self) -> str:
        return repr(self.own)


class ArrayV2Metadata(_ArrayMetadata):
    """Metadata of an array of Zarr v2, v1 or v0."""

    @property
    def order(self) -> str:
        """Memory layout of stored chunks."""
        return v2_filters.dump_chain(self.own.codecs, len(self.own.shape)).order

    @property
    def dimension_separator(self) -> str:
        """The separator of the numbers in a chunk's key."""
        return keys.bind(self.own.chunk_key_encoding).separator


class ArrayV3Metadata(_ArrayMetadata):
    """Metadata of an array of Zarr v3."""

    @property
    def codecs(self) -> tuple[Any, ...]:
        """The codecs, as values."""
        return tuple(value_of(thawed(codec)) for codec in self.own.codecs)

    def to_dict(self) -> dict[str, Any]:
        """Return the document, with members that documents may leave out."""
        document = super().to_dict()
        return {"storage_transformers": (), **document, "codecs": tuple(document["codecs"])}


def array_metadata(own: ArrayMetadata) -> ArrayV2Metadata | ArrayV3Metadata:
    """Return metadata of an array with the names that zarr-python has for it."""
    is_v2 = isinstance(own.zarr_format, int) and own.zarr_format <= _V2
    return ArrayV2Metadata(own) if is_v2 else ArrayV3Metadata(own)


AnyMetadata: TypeAlias = "ArrayV2Metadata | ArrayV3Metadata | GroupMetadata"


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
        """Return it in the form of a document."""
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
        """Return it in the form of a document."""
        found: dict[str, Any] = {"attributes": self.attributes, "zarr_format": self.zarr_format}
        if self.zarr_format == 3:
            found["node_type"] = "group"
        if self.consolidated_metadata is not None:
            found["consolidated_metadata"] = self.consolidated_metadata.to_dict()
        return found
