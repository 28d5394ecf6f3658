"""The summaries that `info` returns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from omnizarr.errors import OmnizarrError
from omnizarr.model import ArrayMetadata
from omnizarr.nodes import info, meaning
from omnizarr.nodes.holdings import count
from omnizarr.nodes.wording import exact_size
from omnizarr.support.text import visible


class _Card:
    """Lines of names and values."""

    def items(self) -> list[tuple[str, object]]:
        """Return names and values, in order."""
        raise NotImplementedError

    def __repr__(self) -> str:
        items = self.items()
        width = max(len(name) for name, _ in items)
        return "\n".join(f"{name:<{width}} : {visible(str(value))}" for name, value in items)


@dataclass(frozen=True, repr=False)
class ArrayInfo(_Card):
    """The facts of an array and, if counted, how much of it is stored."""

    zarr_format: int | str
    data_type: str
    fill_value: object
    shape: tuple[int, ...]
    shard_shape: object
    chunk_shape: object
    order: str
    read_only: bool
    store_type: str
    filters: tuple[object, ...]
    serializer: object
    compressors: tuple[object, ...]
    engine: str | None
    chunk_cache: int
    nbytes: int | None
    nbytes_stored: int | None = None
    chunks_stored: int | None = None
    chunks_expected: int | None = None
    meaning: tuple[tuple[str, str], ...] = ()

    def items(self) -> list[tuple[str, object]]:
        """Return names and values, in order."""
        rows: list[tuple[str, object]] = [
            ("Type", "Array"),
            ("Zarr format", self.zarr_format),
            ("Data type", self.data_type),
            ("Fill value", self.fill_value),
            ("Shape", self.shape),
        ]
        if self.shard_shape is not None:
            rows.append(("Shard shape", self.shard_shape))
        rows += [
            ("Chunk shape", self.chunk_shape),
            ("Order", self.order),
            ("Read-only", self.read_only),
            ("Store type", self.store_type),
            ("Filters", self.filters),
            ("Serializer", self.serializer),
            ("Compressors", self.compressors),
        ]
        if self.engine is not None:
            rows.append(("Engine", self.engine))
        if self.chunk_cache:
            rows.append(("Chunk cache", exact_size(self.chunk_cache)))
        if self.nbytes is not None:
            rows.append(("No. bytes", exact_size(self.nbytes)))
        if self.nbytes_stored is not None:
            rows.append(("No. bytes stored", exact_size(self.nbytes_stored)))
            if self.nbytes and self.nbytes_stored:
                rows.append(("Storage ratio", f"{self.nbytes / self.nbytes_stored:.1f}"))
        if self.chunks_stored is not None:
            what = "Chunks" if self.shard_shape is None else "Shards"
            rows.append((f"{what} stored", f"{self.chunks_stored} of {self.chunks_expected}"))
        return rows + _capitalised(self.meaning)


@dataclass(frozen=True, repr=False)
class GroupInfo(_Card):
    """The facts of a group and, if counted, its members."""

    name: str
    zarr_format: int | str
    read_only: bool
    store_type: str
    is_implicit: bool
    is_consolidated: bool
    members: int | None = None
    arrays: int | None = None
    groups: int | None = None
    meaning: tuple[tuple[str, str], ...] = ()

    def items(self) -> list[tuple[str, object]]:
        """Return names and values, in order."""
        rows: list[tuple[str, object]] = [
            ("Name", self.name),
            ("Type", "Group (implicit)" if self.is_implicit else "Group"),
            ("Zarr format", self.zarr_format),
            ("Read-only", self.read_only),
            ("Store type", self.store_type),
            ("Consolidated", self.is_consolidated),
        ]
        if self.members is not None:
            rows += [("No. members", self.members), ("No. arrays", self.arrays), ("No. groups", self.groups)]
        return rows + _capitalised(self.meaning)


def _capitalised(rows: Iterable[tuple[str, str]]) -> list[tuple[str, object]]:
    return [(f"{name[0].upper()}{name[1:]}", value) for name, value in rows]


def of_array(array: Any, *, complete: bool = False) -> ArrayInfo:
    """Return the summary of an array. `complete` counts what is stored."""
    metadata: ArrayMetadata = array._metadata  # noqa: SLF001 - `metadata` would copy all attributes
    facts = info.of_array(array.store_path, metadata)
    stored, nbytes_stored = count(array.store_path, metadata) if complete else (None, None)
    return ArrayInfo(
        zarr_format=facts.zarr_format,
        data_type=facts.data_type,
        fill_value=facts.fill_value if facts.has_fill_value else "undefined",
        shape=facts.shape,
        shard_shape=_or_name(lambda: array.shards, metadata),
        chunk_shape=_or_name(lambda: array.chunks, metadata),
        order=array.order,
        read_only=array.read_only,
        store_type=type(array.store).__name__,
        filters=array.filters,
        serializer=array.serializer,
        compressors=array.compressors,
        engine=info.engine_name(array),
        chunk_cache=getattr(array.config.chunk_cache, "limit", array.config.chunk_cache),
        nbytes=facts.bytes_logical,
        nbytes_stored=nbytes_stored,
        chunks_stored=stored,
        chunks_expected=facts.expected if complete else None,
        meaning=tuple(meaning.rows(meaning.of(array) if complete else meaning.own(array.path, metadata))),
    )


def of_group(group: Any, **counts: int) -> GroupInfo:
    """Return the summary of a group. `counts` are its members, if they were counted."""
    return GroupInfo(
        name=group.name,
        zarr_format=group.zarr_format,
        read_only=group.read_only,
        store_type=type(group.store).__name__,
        is_implicit=group._metadata.implicit,  # noqa: SLF001 - see `of_array`
        is_consolidated=group.is_consolidated,
        meaning=tuple(meaning.rows(meaning.of(group) if counts else meaning.own(group.path, group._metadata))),  # noqa: SLF001
        **counts,
    )


def _or_name(value: Any, metadata: ArrayMetadata) -> object:
    try:
        return value()
    except OmnizarrError:
        return f"grid {metadata.chunk_grid.name!r}"
