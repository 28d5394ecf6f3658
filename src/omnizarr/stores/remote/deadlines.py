"""Timeouts for libraries that only let you cancel their coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from omnizarr.stores.remote import loops

T = TypeVar("T")

_own: Final = loops.OwnLoop("omnizarr-deadlines")
"""The caller's thread may already run a loop."""


def within(seconds: float, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return the result of the coroutine. If it takes too long, cancel it and raise TimeoutError.

    >>> import asyncio
    >>> within(10, lambda: asyncio.sleep(0, "done"))
    'done'
    """

    async def limited() -> T:
        return await asyncio.wait_for(ask(), seconds)

    return loops.run(limited(), _own.get())
