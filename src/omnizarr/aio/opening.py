"""Opening nodes in event loops: the functions of `omnizarr.api.opening`, in the loop or in a thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from omnizarr.aio.nodes import reading, writing
from omnizarr.api import opening
from omnizarr.api.opening import Mode
from omnizarr.nodes.location import StorePath
from omnizarr.stores.tasks import waited


async def opened(
    function: Callable[..., Any],
    store: Any = None,
    path: str | None = None,
    mode: Mode | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """Return the array or group that a function of `omnizarr.api.opening` opens."""
    where, mode = await _located(store, path, mode, storage_options)
    call = reading if mode in {"r", "r+"} else writing
    return await call(where.store, function, where, mode=mode, **options)


async def _located(
    store: Any, path: str | None, mode: Mode | None, storage_options: Mapping[str, Any] | None
) -> tuple[StorePath, Mode]:
    """Return the place and the mode for the arguments of a user."""
    if isinstance(store, str | PathLike):  # it may look for a directory or an archive, or ask a server
        return await waited(opening.locate, store, path, mode, storage_options)
    return opening.locate(store, path, mode, storage_options)
