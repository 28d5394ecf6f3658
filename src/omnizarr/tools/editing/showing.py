"""Telling how far something is, through what the user has given for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Show = Callable[..., Any]
"""Such as ``tqdm.tqdm``: called with ``total=``, ``desc=``, ``unit="B"`` and ``unit_scale=True``."""


def _unheard(_: int) -> None:
    """Show nothing."""


@contextmanager
def shown(progress: Show | None, total: int | None, what: str) -> Iterator[Callable[[int], None]]:
    """Give what is to be called with how many more bytes are done."""
    if progress is None:
        yield _unheard
        return
    bar = progress(total=total, desc=what, unit="B", unit_scale=True)
    try:
        yield bar.update
    finally:
        bar.close()
