"""Interoperation with other libraries. Each module needs the library in its name; the rest of omnizarr does not."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["dask", "xarray", "zarr_python"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # imported when first used
        return import_module(f"omnizarr.interop.{name}")
    raise AttributeError(f"module 'omnizarr.interop' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
