"""Repeating a change after another writer interfered.

Stores whose locks do not exclude all writers report a conflict afterwards (`omnizarr.errors.ConflictError`). Then
nothing was written, and the whole change is repeated, starting with the reading.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from importlib import import_module
from typing import Final, ParamSpec, TypeVar

from omnizarr.errors import ConflictError
from omnizarr.stores import waiting

T = TypeVar("T")
P = ParamSpec("P")

PATIENCE: Final = 60.0
"""Seconds after which a writer gives up."""

_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 1.0


def retrying(run: Callable[[], T]) -> T:
    """Return the result of `run`. While it raises ConflictError, call it again after a pause of random length.

    Raises ConflictError after `PATIENCE` seconds.
    """
    try:
        return run()
    except ConflictError:
        return _again(run)


def given_up(error: ConflictError) -> ConflictError:
    """Return the error of a writer that was too slow for `PATIENCE` seconds."""
    return error.add(
        found=f"other writers were faster for {PATIENCE:g} seconds",
        remedy="let fewer programs write to the same chunk or document, or choose smaller chunks",
    )


def _again(run: Callable[[], T]) -> T:
    uniform = import_module("random").uniform
    start = time.monotonic()
    pause = _FIRST_PAUSE
    while True:
        # The pause has a random length, so that writers that conflicted once do not conflict again.
        waiting.sleep(uniform(0, pause))
        pause = min(2 * pause, _LONGEST_PAUSE)
        try:
            return run()
        except ConflictError as error:
            if time.monotonic() - start > PATIENCE:
                raise given_up(error)


def retried(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function that begins with reading start again if another writer was faster."""

    @functools.wraps(function)
    def again(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except ConflictError:
            return _again(lambda: function(*args, **kwargs))

    return again
