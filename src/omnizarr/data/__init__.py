"""Loaders: arrays become batches for training, shuffled, read once per epoch, and resumed where they stopped.

A *field* is one entry of the batches: an array, several arrays one behind the other, or windows of an array
(`sources`). Sample ``i`` of all fields belongs together. An *order* says which sample comes when (`orders`). All is
known before anything is read, so a *plan* says for each step which chunks it reads, and which of them are kept for
later steps (`keeping`). Threads read ahead and put samples into batches (`loader`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from omnizarr.data.loader import Loader, Stats
    from omnizarr.data.samples import Samples
    from omnizarr.data.sources import Windows, windows

__all__ = ["Loader", "Samples", "Stats", "Windows", "windows"]

_MODULES: Final = {
    "Loader": "loader",
    "Stats": "loader",
    "Samples": "samples",
    "Windows": "sources",
    "windows": "sources",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:  # imported when first used
        return getattr(import_module(f"omnizarr.data.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'omnizarr.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
