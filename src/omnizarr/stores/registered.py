"""The door of this room, for modules behind it: `omnizarr.stores.resolve` registers itself here.

A set of references leads to files in any store, so `omnizarr.stores.remote.reference_targets` needs `resolve`, which
needs references. Neither imports the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

resolve: Callable[..., tuple[Any, str]]
"""`omnizarr.stores.resolve.resolve`."""
