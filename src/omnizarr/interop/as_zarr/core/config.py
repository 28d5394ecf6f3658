"""Settings, with what zarr-python's have beside those of omnizarr."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from omnizarr.settings import DEFAULTS, Setting
from omnizarr.settings import config as settings

_UNUSED: Final[Mapping[str, Any]] = {
    "array.rectilinear_chunks": False,
    "array.sharding_coalesce": True,
    "async.concurrency": 10,
    "async.timeout": None,
    "buffer": "zarr.buffer.cpu.Buffer",
    "codec_pipeline.batch_size": 1,
    "codec_pipeline.path": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "json_indent": 2,
    "ndbuffer": "zarr.buffer.cpu.NDBuffer",
    "threading.max_workers": None,
}
"""What zarr-python has by default, and omnizarr has no use for."""


class BadConfigError(ValueError):
    """A setting has a value that means nothing."""


class Config:
    """The defaults of the process: those of `omnizarr.config`, under the names of zarr-python.

    Examples
    --------
    >>> with config.set({"default_zarr_format": 2}):
    ...     config.config["default_zarr_format"], config.get("array.order")
    (2, 'C')
    """

    def get(self, key: str, default: Any = None) -> Any:
        """Return a setting, or all that begin with a name."""
        value = settings.get(key, _UNUSED.get(key))
        if value is None:
            value = self.config
            for name in key.split("."):
                value = value.get(name) if isinstance(value, Mapping) else None
        return default if value is None else value

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
        return [_nested({**_UNUSED, **DEFAULTS})]

    @property
    def config(self) -> dict[str, Any]:
        """All settings, as nested dictionaries."""
        return _nested({**_UNUSED, **settings.asdict()})


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in flat.items():
        *groups, name = key.split(".")
        at = found
        for group in groups:
            at = at.setdefault(group, {})
        at[name] = value
    return found


config = Config()


def parse_indexing_order(data: Any) -> Literal["C", "F"]:
    """Return a memory layout. Raises ValueError."""
    if data in ("C", "F"):
        return data  # type: ignore[no-any-return]
    raise ValueError(f"Expected one of ('C', 'F'), got {data} instead.")
