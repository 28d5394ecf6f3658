"""Stopping what is computed for a client that no longer waits for the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Stop: TypeAlias = Callable[[], bool]
"""Called repeatedly: returns whether to stop, because the client no longer waits for the answer."""


def never() -> bool:
    """Do not stop."""
    return False


class StoppedError(Exception):
    """The client no longer waits for the answer."""
