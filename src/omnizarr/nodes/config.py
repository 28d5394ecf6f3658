"""How an array behaves while it is open."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.engine.cache import ChunkCache
from omnizarr.errors import SettingError
from omnizarr.settings import config as settings


@dataclass(frozen=True, slots=True)
class ArrayConfig:
    """How an array behaves while it is open; nothing of this is stored.

    Parameters
    ----------
    order : {"C", "F"}, optional
        Memory layout of results; None: "F" if chunks are stored so, else "C". Of Zarr v2, "F" is part of the format: if
        chunks are stored so, results are, too.
    write_empty_chunks : bool
        Store chunks that hold nothing but the fill value.
    missing : {"fill", "error"}
        What reading a chunk that is not stored means.
    allow_pickle : bool
        Let pickled objects be read, which can run any code.
    concurrency : int, optional
        Chunks in flight at a time; None: what suits the machine.
    chunk_cache : int or ChunkCache
        Bytes of decoded chunks to keep, for selections that overlap; 0: none; or a `ChunkCache`, which many arrays
        share. What is kept is looked at only as long as the stored chunk is the same.
    variable_chunk_bytes, variable_element_bytes : int
        Bytes that a compressed chunk with elements of variable length may decode to: the larger of the first, and the
        second times the number of elements (as far as that is no more than 2 GiB).
    bytes_in_flight : int
        Bytes, decoded, of the chunks that are fetched or stored at once, where a store takes its time to answer; four
        chunks are in any case.
    engine : {"native", "reference"}, optional
        Who moves chunks; None: what ``OMNIZARR_ENGINE`` says, else what suits the array.
    """

    order: Literal["C", "F"] | None = field(default_factory=lambda: settings.get("array.order"))
    write_empty_chunks: bool = field(default_factory=lambda: settings.get("array.write_empty_chunks"))
    missing: Literal["fill", "error"] = field(
        default_factory=lambda: "fill" if settings.get("array.read_missing_chunks") else "error"
    )
    allow_pickle: bool = False
    concurrency: int | None = field(default_factory=lambda: settings.get("concurrency"))
    chunk_cache: int | ChunkCache = field(default_factory=lambda: settings.get("array.chunk_cache"))
    variable_chunk_bytes: int = field(default_factory=lambda: settings.get("array.variable_chunk_bytes"))
    variable_element_bytes: int = field(default_factory=lambda: settings.get("array.variable_element_bytes"))
    bytes_in_flight: int = field(default_factory=lambda: settings.get("bytes_in_flight"))
    engine: str | None = field(default_factory=lambda: settings.get("engine"))

    @classmethod
    def of(cls, config: ArrayConfig | Mapping[str, Any] | None = None, **more: Any) -> ArrayConfig:
        """Return the configuration that a mapping and keywords (None: not said) ask for.

        Raises TypeError for a name that is none.
        """
        if isinstance(config, ArrayConfig):
            base = config
            changes: dict[str, Any] = {}
        else:
            base = cls()
            changes = dict(config or {})
        for name, value in more.items():
            if value is not None:
                changes[name] = value
        if "read_missing_chunks" in changes:  # zarr-python's name
            changes["missing"] = "fill" if changes.pop("read_missing_chunks") else "error"
        return replace(base, **changes) if changes else base

    def __post_init__(self) -> None:
        if self.missing not in {"fill", "error"}:
            raise ValueError(f"missing={self.missing!r}: expected 'fill' or 'error'")
        if self.order not in {"C", "F", None}:
            raise ValueError(f"order={self.order!r}: expected 'C' or 'F'")
        for name in ("variable_chunk_bytes", "variable_element_bytes", "bytes_in_flight"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise SettingError(f"{name} is no number of bytes", found=repr(value), expected="an integer from 0")
        if not isinstance(self.chunk_cache, ChunkCache) and operator.index(self.chunk_cache) < 0:
            raise ValueError(f"chunk_cache={self.chunk_cache!r}: expected a number of bytes, or an omnizarr.ChunkCache")

    @property
    def policy(self) -> ChunkPolicy:
        """The part that concerns chunks."""
        return ChunkPolicy(
            self.write_empty_chunks,
            self.missing,
            self.allow_pickle,
            self.variable_chunk_bytes,
            self.variable_element_bytes,
            self.bytes_in_flight,
            self.engine,
        )
