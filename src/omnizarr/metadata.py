"""The metadata that nodes show to users: the model, with additional names of zarr-python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from omnizarr import model
from omnizarr.errors import MetadataError
from omnizarr.formats import DIALECTS, dialect_named
from omnizarr.formats.consolidated import Slices
from omnizarr.formats.documents import to_json
from omnizarr.formats.spelling import LateSpellings
from omnizarr.model import JSON, Metadata, datatypes, thawed

M = TypeVar("M", model.ArrayMetadata, model.GroupMetadata)


class ArrayMetadata(model.ArrayMetadata):
    """The metadata of an array: the fields of `omnizarr.model.ArrayMetadata`, and these.

    Examples
    --------
    >>> import omnizarr
    >>> metadata = omnizarr.create_array({}, shape=(4,), dtype="int16", zarr_format=2).metadata
    >>> metadata.zarr_format, metadata.dtype, metadata.to_dict()["dtype"]
    (2, dtype('int16'), '<i2')
    >>> ArrayMetadata.from_dict(metadata.to_dict()) == metadata
    True
    """

    __slots__ = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> ArrayMetadata:
        """Return the metadata that a document describes.

        For Zarr v2, this is ``.zarray`` with the attributes as a member.

        Raises MetadataError.
        """
        return cls.of(_load(data, model.ArrayMetadata))

    @staticmethod
    def of(metadata: model.ArrayMetadata) -> ArrayMetadata:
        """Return the metadata with the additional names, but without `dimension_names` if the format has none."""
        values = _own_values(as_model(metadata))
        if values["dimension_names"] is None and not dialect_named(metadata.dialect).has_dimension_names:
            return _Nameless(**values)
        return ArrayMetadata(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return the document as it is stored, with the attributes, even if the format stores them separately."""
        return _dump(as_model(self))

    @property
    def zarr_format(self) -> int | str:
        """The format: 2 or 3."""
        return dialect_named(self.dialect).zarr_format

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy data type of the elements in memory. Raises UnknownDataTypeError."""
        return datatypes.bind(self.data_type, self.byte_order).dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __eq__(self, other: object) -> bool:
        # An object of the model with equal fields is equal, too.
        return isinstance(other, model.ArrayMetadata) and _comparable(as_model(self)) == _comparable(as_model(other))

    __hash__ = model.ArrayMetadata.__hash__


class _Nameless(ArrayMetadata):
    """The metadata of an array in a format that does not name dimensions: it has no attribute `dimension_names`.

    Programs made for zarr-python use this to decide where to look for names.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]] = {
        field.name: field for field in fields(model.ArrayMetadata) if field.name != "dimension_names"
    }

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        object.__delattr__(self, "dimension_names")  # the model sets it to None

    def __hash__(self) -> int:
        return hash(as_model(self))

    def __repr__(self) -> str:
        members = [f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr]
        return f"ArrayMetadata({', '.join(members)})"


def as_model(metadata: M) -> M:
    """Return the metadata as the model, with all its members."""
    if isinstance(metadata, _Nameless):
        return model.ArrayMetadata(**{field.name: getattr(metadata, field.name) for field in fields(metadata)})
    return metadata


class GroupMetadata(model.GroupMetadata):
    """The metadata of a group: the fields of `omnizarr.model.GroupMetadata`, and these."""

    __slots__ = ()

    @classmethod
    def from_dict(cls, data: Mapping[str, JSON]) -> Self:
        """Return the metadata that a document describes.

        For Zarr v2, this is ``.zgroup`` with the attributes as a member.

        Raises MetadataError.
        """
        return cls.of(_load(data, model.GroupMetadata))

    @classmethod
    def of(cls, metadata: model.GroupMetadata) -> Self:
        """Return the same metadata with the additional names."""
        return cls(**_own_values(metadata))

    def to_dict(self) -> dict[str, Any]:
        """Return the document as it is stored, with the attributes, even if the format stores them separately."""
        return _dump(self)

    @property
    def zarr_format(self) -> int | str:
        """The format: 2 or 3."""
        return dialect_named(self.dialect).zarr_format

    @property
    def consolidated_metadata(self) -> Mapping[str, Mapping[str, JSON]] | None:
        """The documents in the consolidated metadata of Zarr v3, by path; None if the document of the group has none.

        >>> import omnizarr
        >>> root = omnizarr.create_group({})
        >>> root["t"] = [1, 2]
        >>> list(omnizarr.consolidate_metadata(root.store).metadata.consolidated_metadata)
        ['t']
        """
        nodes = self.consolidated
        return thawed(nodes) if isinstance(nodes, _Nodes) else nodes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, model.GroupMetadata) and _comparable(self) == _comparable(other)

    __hash__ = model.GroupMetadata.__hash__


def _own_values(metadata: Metadata) -> dict[str, Any]:
    """Return the fields of the model by name. What a user could change is copied."""
    return {field.name: _own(getattr(metadata, field.name)) for field in fields(metadata)}


class _Nodes(Mapping[str, Mapping[str, JSON]]):
    """Documents by path that are made when they are asked for, as there may be many: a copy each time."""

    __slots__ = ("_nodes",)

    def __init__(self, nodes: Slices) -> None:
        self._nodes = nodes

    def __getitem__(self, path: str) -> Mapping[str, JSON]:
        found: Mapping[str, JSON] = thawed(self._nodes[path])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return self._nodes.__reduce__()


def _own(value: Any) -> Any:
    if isinstance(value, Slices):
        return _Nodes(value)
    if isinstance(value, (LateSpellings, _Nodes)):  # never changed
        return value
    # tuples hold lengths, names and codecs, and stay tuples
    return tuple(map(thawed, value)) if isinstance(value, tuple) else thawed(value)


def _comparable(metadata: Metadata) -> list[object]:
    return [getattr(metadata, field.name) for field in fields(metadata) if field.compare]


def _dump(metadata: Metadata) -> dict[str, Any]:
    dialect = dialect_named(metadata.dialect)
    name = dialect.array_document if isinstance(metadata, model.ArrayMetadata) else dialect.group_document
    document: Any = to_json(dialect.dump(metadata)[name])
    return {**document, "attributes": to_json(metadata.attributes, "/attributes")}


def _load(data: Mapping[str, JSON], kind: type[M]) -> M:
    """Return the metadata that a document with its attributes describes.

    Raises MetadataError for another kind of node.
    """
    is_array = issubclass(kind, model.ArrayMetadata)
    document = to_json(data)  # documents of zarr-python can hold tuples
    zarr_format: Any = document.get("zarr_format") if isinstance(document, dict) else None
    for dialect in DIALECTS:
        if not isinstance(document, dict) or dialect.zarr_format != zarr_format:
            continue
        apart = dialect.attributes_document
        documents = {apart: document.pop("attributes")} if apart is not None and "attributes" in document else {}
        metadata = dialect.load({dialect.array_document if is_array else dialect.group_document: document, **documents})
        if isinstance(metadata, kind):
            return metadata
    raise MetadataError(f"the document describes no {'array' if is_array else 'group'}", found=document)
