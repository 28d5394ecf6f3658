"""Types that are Python objects in memory: objects of any kind, and ragged arrays.

Only Zarr v2 stores them; no v3 document has these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnizarr.model import JSON
from omnizarr.model.datatypes.data_type import AnyDType, DataType, OfDtype, is_blank, reject


class Objects(OfDtype):
    """Any objects. The codec determines which ones."""

    __slots__ = ()

    def default(self) -> Any:
        """Return the zero of the type."""
        return None

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        return value

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        return scalar  # type: ignore[no-any-return]  # whether it is JSON shows when the document is rendered

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, slots=True)
class Ragged:
    """One-dimensional arrays of any length."""

    dtype: AnyDType
    items: DataType

    def default(self) -> Any:
        """Return the zero of the type."""
        return self._frozen(np.empty(0, self.items.dtype))

    def from_json(self, value: JSON, at: str) -> Any:
        """Return the scalar for `value`."""
        if is_blank(value):
            return self.default()
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise reject("the fill value is not an array", at, value, "a list", spec=None)
        return self._filled([self.items.scalars.from_json(item, f"{at}/{i}") for i, item in enumerate(value)])

    def to_json(self, scalar: Any) -> JSON:
        """Return the canonical v3 form of `scalar`."""
        return [self.items.scalars.to_json(item) for item in scalar]

    def cast(self, value: Any, at: str) -> Any:
        """Return the scalar for what a user passed."""
        if isinstance(value, np.ndarray) and value.ndim == 1:
            return self._filled([self.items.scalars.cast(item, f"{at}/{i}") for i, item in enumerate(value)])
        if isinstance(value, list | tuple):
            return self._filled([self.items.scalars.cast(item, f"{at}/{i}") for i, item in enumerate(value)])
        return self.from_json(value, at)

    def _filled(self, items: list[Any]) -> Any:
        array = np.empty(len(items), self.items.dtype)
        for i, item in enumerate(items):
            array[i] = item
        return self._frozen(array)

    def _frozen(self, array: Any) -> Any:
        array.flags.writeable = False
        return array
