"""A plugin of pytest for zarr-python's own tests: ``import zarr`` finds omnizarr.

These tests import private names of zarr-python, and the helpers for tests in `zarr.testing`. The plugin takes
the helpers from zarr-python. A name that omnizarr lacks can be imported, and fails the test that uses it.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

import omnizarr_as_zarr as as_zarr
from omnizarr_as_zarr._installing import own_name

HELPERS = Path(next(str(place) for place in (find_spec("zarr").submodule_search_locations or ())), "testing")  # type: ignore[union-attr]


class Missing:
    """What only zarr-python has: it can be named, and no more."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: object, **options: object) -> NoReturn:
        raise NotImplementedError(f"only zarr-python has {self.__name__}")

    def __getattr__(self, name: str) -> Missing:
        return missing(self.__name__, name)

    def __getitem__(self, item: object) -> Missing:
        return self

    def __iter__(self) -> NoReturn:
        raise NotImplementedError(f"only zarr-python has {self.__name__}")

    def __or__(self, other: object) -> Missing:
        return self

    __ror__ = __or__

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __mro_entries__(self, bases: object) -> tuple[type, ...]:
        return ()


def missing(module: str, name: str) -> Any:
    """Return the replacement of a name that a module lacks; a module, if there is one of this name below it."""
    if name.startswith(("__", "pytest")):
        raise AttributeError(name)
    if name.islower() and is_there(own_name(f"{module}.{name}")):
        return import_module(f"{module}.{name}")
    return Missing(f"{module}.{name}")


def oindex(values: NDArray[Any], selection: Any) -> NDArray[Any]:
    """Return what one selector per dimension selects of an array in memory, as in NumPy."""
    return values[grid(values, selection)].squeeze(axis=dropped(selection))


def oindex_set(values: NDArray[Any], selection: Any, value: Any) -> None:
    """Set what one selector per dimension selects of an array in memory."""
    if not np.isscalar(value):
        value = np.expand_dims(value, dropped(selection))
    values[grid(values, selection)] = value


def grid(values: NDArray[Any], selection: Any) -> tuple[NDArray[Any], ...]:
    """Return a selection as the indices along each dimension."""
    selectors = list(selection) if isinstance(selection, tuple) else [selection]
    if Ellipsis in [each for each in selectors if not isinstance(each, np.ndarray | list)]:
        at = next(number for number, each in enumerate(selectors) if each is Ellipsis)
        selectors[at : at + 1] = [slice(None)] * (values.ndim - len(selectors) + 1)
    selectors += [slice(None)] * (values.ndim - len(selectors))
    return np.ix_(
        *(np.atleast_1d(np.arange(length)[each]) for each, length in zip(selectors, values.shape, strict=True))
    )


def dropped(selection: Any) -> tuple[int, ...]:
    """Return the dimensions that integers select one element of."""
    selectors = selection if isinstance(selection, tuple) else (selection,)
    return tuple(number for number, each in enumerate(selectors) if isinstance(each, int | np.integer))


class Lacking(Loader):
    """Makes a module that has only names."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__.update(__getattr__=partial(missing, module.__name__), __path__=[])


class Finder(MetaPathFinder):
    """Finds the modules below ``zarr`` that omnizarr does not have."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, helper = name.rpartition(".")
        if package == "zarr.testing":
            return spec_from_file_location(name, HELPERS / f"{helper}.py")
        # Modules have names in lower case; who looks for a class tries it as a module first.
        if not name.startswith("zarr.") or not helper.islower() or is_there(own_name(name)):
            return None
        return ModuleSpec(name, Lacking(), is_package=True)


def is_there(name: str) -> bool:
    """Return whether there is a module of this name."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


as_zarr.install()
for each in pkgutil.walk_packages(as_zarr.__path__, f"{as_zarr.__name__}."):
    own = import_module(each.name)
    own.__dict__.setdefault("__getattr__", partial(missing, each.name.replace(as_zarr.__name__, "zarr")))
    if each.name == f"{as_zarr.__name__}.core.indexing":
        own.__dict__.update(oindex=oindex, oindex_set=oindex_set)
sys.meta_path.insert(0, Finder())
