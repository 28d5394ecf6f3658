"""Modules that are imported at first use, so that what is rarely needed costs no time.

Importing all of omnizarr takes twice as long as importing what opening an array needs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


class Lazy:
    """A module that is imported at the first access to one of its attributes.

    Every access looks the attribute up in the module.

    For type checkers, import the module under ``if TYPE_CHECKING`` and create a `Lazy` otherwise.

    Examples
    --------
    >>> decimal = Lazy("decimal")
    >>> decimal.Decimal("0.1") + 1
    Decimal('1.1')
    """

    __slots__ = ("_found", "_module")

    def __init__(self, module: str) -> None:
        self._module = module
        self._found: Any = None

    def __getattr__(self, name: str) -> Any:
        # `import_module` takes longer than most of the functions called through this.
        found = self._found
        if found is None or sys.modules.get(self._module) is not found:
            found = self._found = import_module(self._module)
        return getattr(found, name)

    def __repr__(self) -> str:
        return f"Lazy({self._module!r})"
