"""Tables of things that belong to event loops, which several threads may run at once."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakKeyDictionary


def closed(table: WeakKeyDictionary[asyncio.AbstractEventLoop, Any]) -> list[asyncio.AbstractEventLoop]:
    """Return the closed loops of a table. Other threads may enter theirs meanwhile."""
    found = (known() for known in table.keyrefs())  # a list; iterating over the table fails if it changes
    return [loop for loop in found if loop is not None and loop.is_closed()]
