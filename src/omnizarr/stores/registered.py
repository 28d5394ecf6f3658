"""`omnizarr.stores.resolve`, for modules that it imports.

References lead to files in any store, so `omnizarr.stores.remote.reference_targets` needs `resolve`, which needs
references. `resolve` registers itself here, so that the two do not import each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

resolve: Callable[..., tuple[Any, str]]
"""`omnizarr.stores.resolve.resolve`."""
