"""Settings of omnizarr, with the additional settings of zarr-python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from omnizarr.settings import DEFAULTS, Setting
from omnizarr.settings import config as settings
from omnizarr_as_zarr.codecs import numcodecs

_CODECS: Final[Mapping[str, str]] = {
    "blosc": "zarr.codecs.blosc.BloscCodec",
    "bytes": "zarr.codecs.bytes.BytesCodec",
    "crc32c": "zarr.codecs.crc32c_.Crc32cCodec",
    "endian": "zarr.codecs.bytes.BytesCodec",
    "gzip": "zarr.codecs.gzip.GzipCodec",
    "sharding_indexed": "zarr.codecs.sharding.ShardingCodec",
    "transpose": "zarr.codecs.transpose.TransposeCodec",
    "vlen-bytes": "zarr.codecs.vlen_utf8.VLenBytesCodec",
    "vlen-utf8": "zarr.codecs.vlen_utf8.VLenUTF8Codec",
    "zstd": "zarr.codecs.zstd.ZstdCodec",
    **{getattr(numcodecs, name).codec_name: f"zarr.codecs.numcodecs.{name}" for name in numcodecs.__all__},
}

_THEIRS: Final[Mapping[str, Any]] = {
    "array.order": "C",
    "async.concurrency": 10,
    "async.timeout": None,
    **{f"codecs.{name}": path for name, path in _CODECS.items()},
    "buffer": "zarr.buffer.cpu.Buffer",
    "codec_pipeline.batch_size": 1,
    "codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "json_indent": 2,
    "ndbuffer": "zarr.buffer.cpu.NDBuffer",
    "threading.max_workers": None,
}
"""Defaults of zarr-python for settings that omnizarr does not have, or has without a default."""


_MISSING: Final = object()


class BadConfigError(ValueError):
    """A setting has a value that means nothing."""


class Config:
    """The defaults of the process: `omnizarr.config`, under the names of zarr-python.

    Examples
    --------
    >>> with config.set({"default_zarr_format": 2}):
    ...     config.config["default_zarr_format"], config.get("array.order")
    (2, 'C')
    """

    def get(self, key: str, default: Any = _MISSING) -> Any:
        """Return a setting, or all that begin with a name. Raises KeyError without a setting and a `default`."""
        value = settings.get(key, _MISSING)
        if value is None or value is _MISSING:
            value = _THEIRS.get(key, value)
        if value is _MISSING:
            value = self.config.get(key, default)
        if value is _MISSING:
            raise KeyError(key)
        return value

    def set(self, arg: Mapping[str, Any] | None = None, **more: Any) -> Setting:
        """Change settings, for good or for a ``with`` block."""
        return settings.set(arg, **more)

    def reset(self) -> None:
        """Go back to the defaults."""
        settings.reset()

    refresh = reset

    @property
    def defaults(self) -> list[dict[str, Any]]:
        """The defaults, as nested dictionaries."""
        return [_nested(_with_theirs(DEFAULTS))]

    @property
    def config(self) -> dict[str, Any]:
        """All settings, as nested dictionaries."""
        return _nested(_with_theirs(settings.asdict()))


def _with_theirs(flat: Mapping[str, Any]) -> dict[str, Any]:
    return {**flat, **{key: value for key, value in _THEIRS.items() if flat.get(key) is None}}


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by the first part of their names, and in it by the rest."""
    found: dict[str, Any] = {}
    for key, value in flat.items():
        group, _, name = key.partition(".")
        if name:
            found.setdefault(group, {})[name] = value
        else:
            found[group] = value
    return found


config = Config()


def parse_indexing_order(data: Any) -> Literal["C", "F"]:
    """Return a memory layout. Raises ValueError."""
    if data in ("C", "F"):
        return data  # type: ignore[no-any-return]
    raise ValueError(f"Expected one of ('C', 'F'), got {data} instead.")
