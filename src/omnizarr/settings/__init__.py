"""Defaults of the process, under the names of zarr-python.

You can also pass most of them to a single call, which is usually better.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple

from omnizarr.errors import SettingError
from omnizarr.support import amounts, suggestions
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


class Rule(NamedTuple):
    """What a setting may be: in words, and as a test."""

    expected: str
    allows: Callable[[Any], bool]
    is_size: bool = False
    """Whether it is a number of bytes, which may be text with a unit."""


def _one_of(*values: Any) -> Rule:
    return Rule(
        " or ".join(map(repr, values)), lambda value: any(type(value) is type(v) and value == v for v in values)
    )


def _integer(least: int, *, or_none: bool = False, what: str = "an integer") -> Rule:
    def allows(value: Any) -> bool:
        if value is None:
            return or_none
        return hasattr(value, "__index__") and not isinstance(value, bool) and value.__index__() >= least

    return Rule(f"{what} from {least}{', or None' if or_none else ''}", allows)


def _bytes(least: int, *, or_none: bool = False) -> Rule:
    rule = _integer(least, or_none=or_none, what="a number of bytes, such as 500MB: an integer")
    return rule._replace(is_size=True)


def _is_trust(value: Any) -> bool:
    if value is None or (isinstance(value, str) and value in TRUST):
        return True
    roots = value if isinstance(value, list | tuple | set | frozenset) else [value]
    return bool(roots) and all(isinstance(root, str | os.PathLike) and _is_place(os.fspath(root)) for root in roots)


def _is_place(root: str) -> bool:
    """Return whether a place is the same from every directory: an absolute path, or a URL."""
    return re.match(r"[/\\~]|[A-Za-z]:[/\\]|[A-Za-z][A-Za-z0-9+.-]+:", root) is not None


TRUST: Final = ("inside", "public", "trusted")
_FLAG: Final = _one_of(True, False)  # noqa: FBT003 - the values
_BYTES: Final = _bytes(0)
ENGINES: Final = ("native", "reference")
FETCHES: Final = ("native", "python")

RULES: Final[Mapping[str, Rule]] = {
    "default_zarr_format": _one_of(3, 2, 1, "3-draft2020", "3-draft2019"),
    "array.chunk_cache": _BYTES,
    "array.order": _one_of("C", "F", None),
    "array.write_empty_chunks": _FLAG,
    "array.read_missing_chunks": _FLAG,
    "array.target_shard_size_bytes": _bytes(1, or_none=True),
    "array.variable_chunk_bytes": _BYTES,
    "array.variable_element_bytes": _BYTES,
    "attributes.nonfinite": _one_of("token", "string"),
    "bytes_in_flight": _BYTES,
    "concurrency": _integer(1, or_none=True),
    "display.thumbnails": _FLAG,
    "documents.max_bytes": _BYTES,
    "engine": _one_of(*ENGINES, None),
    "fetch": _one_of(*FETCHES, None),
    "references.max_bytes": _BYTES,
    "references.max_count": _integer(0),
    "references.max_generated": _integer(0),
    "references.trust": Rule("'inside', 'trusted', None, or a list of absolute paths and URLs", _is_trust),
}
"""What each setting may be."""

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
        SettingError
            If a value is not one that the setting can have. It is also a ValueError. Nothing is changed.
        """
        flat = _flatten(settings or {})
        flat.update({name.replace("__", "."): value for name, value in more.items()})
        changed = {_ALIASES.get(key, key): value for key, value in flat.items()}
        for key in changed:
            if key not in DEFAULTS and not key.startswith(_WITHOUT_EFFECT):
                raise KeyError(_unknown(key))
        changed = {key: check(key, value) for key, value in changed.items()}
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


def check(name: str, value: Any, what: str = "the setting {}") -> Any:
    """Return the value of a setting: a number of bytes, if it is text with a unit.

    Raises SettingError if the setting cannot have this value. `what` is how the message calls it.

    >>> check("bytes_in_flight", "2KiB")
    2048

    >>> check("concurrency", -3)
    Traceback (most recent call last):
    omnizarr.errors.SettingError: the setting concurrency is not valid: found -3, expected an integer from 1, or None
    """
    rule = RULES.get(name)
    if rule is None:
        return value
    meant = value
    if rule.is_size and isinstance(value, str):
        with suppress(ValueError):
            meant = amounts.nbytes(value)
    if not rule.allows(meant):
        raise SettingError(f"{what.format(name)} is not valid", found=repr(value), expected=rule.expected)
    return meant


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
