"""Defaults of the process, under the names of zarr-python.

You can also pass most of them to a single call, which is usually better.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final

from omnizarr.support import suggestions
from omnizarr.support.locks import RLock

DEFAULTS: Final[Mapping[str, Any]] = {
    "default_zarr_format": 3,
    "array.chunk_cache": 0,
    "array.order": None,
    "array.write_empty_chunks": False,
    "array.read_missing_chunks": True,
    "array.target_shard_size_bytes": None,
    "array.variable_chunk_bytes": 256 * 1024 * 1024,
    "array.variable_element_bytes": 64 * 1024,
    "attributes.nonfinite": "token",
    "bytes_in_flight": 256 * 1024 * 1024,
    "concurrency": None,
    "display.thumbnails": False,
    "documents.max_bytes": 512 * 1024 * 1024,  # consolidated metadata of 100,000 arrays takes about 100 MiB
    "engine": None,
    "fetch": None,
    "references.max_bytes": 256 * 1024 * 1024,
    "references.max_count": 1_000_000,
    "references.max_generated": 200_000,
    "references.trust": None,
}

# Two settings of zarr-python (tasks of an event loop, threads) that mean the same here: chunks in flight.
_ALIASES: Final[Mapping[str, str]] = {"async.concurrency": "concurrency", "threading.max_workers": "concurrency"}

# Settings of zarr-python that have no effect here. They are kept, so that programs that set them keep running.
_WITHOUT_EFFECT: Final = (
    "array.allow_unsafe_pickle_decode",
    "array.rectilinear_chunks",
    "array.sharding_coalesce",
    "async.timeout",
    "buffer",
    "codec_pipeline",
    "codecs",
    "json_indent",
    "ndbuffer",
)

_MISSING: Final = object()

_guards: Final[dict[str, threading.RLock]] = {}
if hasattr(os, "register_at_fork"):
    # The thread that holds the lock does not exist in the child.
    os.register_at_fork(after_in_child=_guards.clear)


def _guard() -> threading.RLock:
    """Return the lock of those who change settings. `dict.setdefault` is atomic, so all threads get the same."""
    return _guards.get("guard") or _guards.setdefault("guard", RLock())


class Setting:
    """The result of `Config.set`. In a ``with`` statement, it restores the old values at the end."""

    def __init__(self, config: Config, before: Mapping[str, Any]) -> None:
        self._config = config
        self._before = before

    def __enter__(self) -> Config:
        return self._config

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._config._restore(self._before)  # noqa: SLF001 - two halves of one thing


class Config:
    """The defaults of the process, by dotted name.

    Examples
    --------
    >>> config.get("default_zarr_format")
    3
    >>> with config.set({"array.write_empty_chunks": True}):
    ...     config.get("array.write_empty_chunks")
    True
    >>> config.get("array.write_empty_chunks")
    False
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = dict(DEFAULTS)

    def get(self, key: str, default: Any = _MISSING) -> Any:
        """Return a setting. Raises KeyError for an unknown name without a `default`."""
        value = self._values.get(_ALIASES.get(key, key), default)
        if value is _MISSING:
            raise KeyError(_unknown(key))
        return value

    def set(self, settings: Mapping[str, Any] | None = None, /, **more: Any) -> Setting:
        """Change settings permanently, or for a ``with`` block.

        Parameters
        ----------
        settings : mapping
            Values by dotted name, or nested: ``{"array": {"order": "F"}}``.
        **more
            The same, with two underscores instead of each dot: ``array__order="F"``.

        Raises
        ------
        KeyError
            If a setting does not exist.
        """
        flat = _flatten(settings or {})
        flat.update({name.replace("__", "."): value for name, value in more.items()})
        changed = {_ALIASES.get(key, key): value for key, value in flat.items()}
        for key in changed:
            if key not in DEFAULTS and not key.startswith(_WITHOUT_EFFECT):
                raise KeyError(_unknown(key))
        with _guard():
            before = {key: self._values.get(key, _MISSING) for key in changed}
            # A new dictionary each time, so that concurrent readers see the whole change or nothing of it.
            self._values = {**self._values, **changed}
        return Setting(self, before)

    @property
    def version(self) -> object:
        """An object that is another one after each change."""
        return self._values

    def asdict(self) -> dict[str, Any]:
        """Return a copy of all settings, by dotted name."""
        return dict(self._values)

    def reset(self) -> None:
        """Restore the defaults."""
        with _guard():
            self._values = dict(DEFAULTS)

    def _restore(self, before: Mapping[str, Any]) -> None:
        with _guard():
            values = {**self._values, **before}
            self._values = {key: value for key, value in values.items() if value is not _MISSING}

    def __repr__(self) -> str:
        return f"<Config {self._values}>"


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = value
    return flat


def _unknown(key: str) -> str:
    hint = suggestions.meant(key, DEFAULTS) or f"known: {', '.join(DEFAULTS)}"
    return f"there is no setting {key!r}; {hint}"


config = Config()
"""The settings that omnizarr uses."""
