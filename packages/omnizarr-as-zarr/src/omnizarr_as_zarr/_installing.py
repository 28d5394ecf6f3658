"""Making ``import zarr`` find this package, and undoing it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module, metadata
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from os import PathLike
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, Final

from omnizarr_as_zarr._modules import ELSEWHERE, PACKAGE

VERSION: Final = "3.1.6"
"""The release of zarr-python whose names and ways these are."""


class _Loader(Loader):
    """Hands out a module that exists under its own name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # which the import system has replaced by the module with the other name


class _Distribution(metadata.Distribution):
    """The version that packages get if they ask for the release of zarr."""

    def read_text(self, filename: str) -> str | None:
        return f"Metadata-Version: 2.1\nName: zarr\nVersion: {VERSION}\n" if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Any:
        raise FileNotFoundError(f"zarr is a name for omnizarr here, and has no file {path}")


class _Finder(MetaPathFinder):
    """Finds ``zarr`` and what is below it in this package."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name.partition(".")[0] != "zarr":
            return None
        own = own_name(name)
        if find_spec(own) is None:
            raise ModuleNotFoundError(f"No module named {name!r} (zarr is a name for omnizarr here)", name=name)
        return ModuleSpec(name, _Loader(own), is_package=True)

    def find_distributions(
        self, context: metadata.DistributionFinder.Context | None = None
    ) -> Iterator[metadata.Distribution]:
        if context is None or context.name is None or context.name == "zarr":
            yield _Distribution()


_FINDER: Final = _Finder()


def own_name(name: str) -> str:
    """Return the name that the module has here: of ``zarr.storage``, ``omnizarr_as_zarr.storage``."""
    below = name.removeprefix("zarr").removeprefix(".")
    below = ELSEWHERE.get(below, below)
    return f"{PACKAGE}.{below}" if below else PACKAGE


def names() -> Iterator[str]:
    """Yield the names of all modules that are found here."""
    yield "zarr"
    yield from (f"zarr.{name}" for name in ELSEWHERE)
    for module in walk_packages(import_module(PACKAGE).__path__, f"{PACKAGE}."):
        below = module.name.removeprefix(f"{PACKAGE}.")
        if not below.rpartition(".")[2].startswith("_"):
            yield f"zarr.{below}"


def _is_ours(module: ModuleType) -> bool:
    return module.__name__ == PACKAGE or module.__name__.startswith(f"{PACKAGE}.")


def installed() -> bool:
    """Return whether ``import zarr`` finds omnizarr."""
    return _FINDER in sys.meta_path


def install() -> None:
    """Make ``import zarr`` and imports of modules below it find this package, in this process.

    To be called before anything imports zarr. ``importlib.metadata.version("zarr")`` answers `VERSION` then, whether
    or not zarr-python is installed. Twice does no harm.

    Raises
    ------
    ImportError
        If zarr-python has been imported already: what holds its classes would not know the ones here.

    Examples
    --------
    >>> import omnizarr_as_zarr as as_zarr
    >>> as_zarr.installed()
    False
    """
    if installed():
        return
    found = sys.modules.get("zarr")
    if found is not None and not _is_ours(found):
        raise ImportError(
            f"zarr-python {getattr(found, '__version__', '')} is imported already, from {found.__file__}; "
            "call omnizarr_as_zarr.install() before anything imports zarr, in a new process",
            name="zarr",
        )
    sys.meta_path.insert(0, _FINDER)
    # At once, and not when they are asked for: pytest, for one, looks for modules before all others do.
    sys.modules.update({name: import_module(own_name(name)) for name in names()})


def uninstall() -> None:
    """Undo `install`: the next ``import zarr`` finds zarr-python, if it is installed.

    Modules that have imported zarr meanwhile keep what they have.
    """
    if installed():
        sys.meta_path.remove(_FINDER)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "zarr" and _is_ours(module):
            del sys.modules[name]


@contextmanager
def under_the_name() -> Iterator[None]:
    """Call `install` for a ``with`` block, and `uninstall` at its end."""
    install()
    try:
        yield
    finally:
        uninstall()
