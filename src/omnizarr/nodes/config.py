"""Settings of an open array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from omnizarr.codecs.contract import ChunkPolicy
from omnizarr.engine.cache import ChunkCache
from omnizarr.errors import SettingError
from omnizarr.settings import check
from omnizarr.settings import config as settings

# The settings of the process that have the same values.
_SETTINGS: Final[Mapping[str, str]] = {
    "order": "array.order",
    "write_empty_chunks": "array.write_empty_chunks",
    "concurrency": "concurrency",
    "chunk_cache": "array.chunk_cache",
    "variable_chunk_bytes": "array.variable_chunk_bytes",
    "variable_element_bytes": "array.variable_element_bytes",
    "bytes_in_flight": "bytes_in_flight",
    "engine": "engine",
}


@dataclass(frozen=True, slots=True)
class ArrayConfig:
    """Settings of an open array. They are not stored.

    Parameters
    ----------
    order : {"C", "F"}, optional
        Memory layout of results. None: the layout of the stored chunks. In Zarr v2, the metadata document
        states this layout.
    write_empty_chunks : bool
        Whether to store chunks that hold only the fill value.
    missing : {"fill", "error"}
        Whether reading a missing chunk returns the fill value or raises an error.
    allow_pickle : bool
        Whether to read pickled objects. Reading them can run arbitrary code.
    concurrency : int, optional
        Number of chunks to fetch or store at once; None: what suits the machine and the store.
    chunk_cache : int or ChunkCache
        Number of bytes of decoded chunks to cache, for overlapping selections (0: no cache), or a `ChunkCache`,
        which several arrays can share. A cached chunk is used only if the stored chunk has not changed.
    variable_chunk_bytes, variable_element_bytes : int
        How many bytes a compressed chunk with elements of variable length may decode to: the larger of
        `variable_chunk_bytes`, and `variable_element_bytes` times the number of elements (up to 2 GiB).
    bytes_in_flight : int
        Decoded bytes of the chunks that are fetched or stored at once in stores with latency. At least four
        chunks are always in flight.
    engine : {"native", "reference"}, optional
        The engine that reads and writes chunks; None: the value of ``OMNIZARR_ENGINE``, otherwise the best
        engine for the array.
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
    policy: ChunkPolicy = field(init=False, repr=False, compare=False)
    """The settings that concern chunks."""

    @classmethod
    def of(cls, config: ArrayConfig | Mapping[str, Any] | None = None, **more: Any) -> ArrayConfig:
        """Return the configuration from a mapping and keywords (None: not set).

        Raises TypeError for an unknown name.
        """
        if config is None and not more:
            return _default()
        if isinstance(config, ArrayConfig):
            base = config
            changes: dict[str, Any] = {}
        else:
            base = _default()
            changes = dict(config or {})
        for name, value in more.items():
            if value is not None:
                changes[name] = value
        if "read_missing_chunks" in changes:  # zarr-python's name
            changes["missing"] = "fill" if changes.pop("read_missing_chunks") else "error"
        return replace(base, **changes) if changes else base

    def __post_init__(self) -> None:
        if self.missing not in {"fill", "error"}:
            raise SettingError("missing is not valid", found=repr(self.missing), expected="'fill' or 'error'")
        if not isinstance(self.allow_pickle, bool):
            raise SettingError("allow_pickle is not valid", found=repr(self.allow_pickle), expected="True or False")
        for name, setting in _SETTINGS.items():
            value = getattr(self, name)
            if not isinstance(value, ChunkCache):
                meant = check(setting, value, name)
                if meant is not value:  # text such as "500MB"
                    object.__setattr__(self, name, meant)
        policy = ChunkPolicy(
            self.write_empty_chunks,
            self.missing,
            self.allow_pickle,
            self.variable_chunk_bytes,
            self.variable_element_bytes,
            self.bytes_in_flight,
            self.engine,
        )
        object.__setattr__(self, "policy", policy)


def _default() -> ArrayConfig:
    """Return the configuration from the current settings. It is the same object until they change."""
    version = settings.version
    known = _defaults.get("last")
    if known is None or known[0] is not version:
        known = _defaults["last"] = version, ArrayConfig()
    return known[1]


_defaults: Final[dict[str, tuple[object, ArrayConfig]]] = {}
