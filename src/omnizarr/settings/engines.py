"""Which engine is used: the native engine if it is built and you chose no other, otherwise the reference engine."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any, Final

from omnizarr.errors import Remedy, Setting, SettingError
from omnizarr.settings import ENGINES, FETCHES, config
from omnizarr.support.warned import warn

_MODULE: Final = "omnizarr._native"
_FROM_ENVIRONMENT: Final = os.environ.get("OMNIZARR_ENGINE") or None  # a lookup takes as long as a call
_FETCH_FROM_ENVIRONMENT: Final = os.environ.get("OMNIZARR_FETCH") or None


@cache
def module() -> Any:
    """Return the extension module. Return None if it is not built, or cannot be loaded, which causes one warning."""
    try:
        native = import_module(_MODULE)
    except ImportError as error:
        if not (isinstance(error, ModuleNotFoundError) and error.name == _MODULE):
            message = f"the native engine cannot be loaded ({error}): the reference engine serves, slower"
            warn(message, RuntimeWarning)
        return None
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=native.settle, after_in_child=native.forget_after_fork)
    return native


def is_refused() -> bool:
    """Return whether the environment asks for the reference engine."""
    return _FROM_ENVIRONMENT == "reference"


def choice(asked: str | None = None) -> str | None:
    """Return the engine that the user chose, "native" or "reference"; None: the fastest engine that supports the array.

    `asked` is the value given when an array was opened. Raises SettingError.
    """
    if _FETCH_FROM_ENVIRONMENT is not None:
        fetch()  # a wrong variable is an error for every array, not only for those on a server
    wanted = asked or _FROM_ENVIRONMENT
    if wanted is not None and wanted not in ENGINES:
        raise _no_such("engine", wanted, ENGINES)
    return wanted


def fetch() -> str:
    """Return what fetches from and stores to object stores and web servers, "native" or "python".

    Raises SettingError.
    """
    wanted = config.get("fetch") or _FETCH_FROM_ENVIRONMENT or FETCHES[0]
    if wanted not in FETCHES:
        raise _no_such("fetch", wanted, FETCHES)
    return str(wanted)


def _no_such(setting: str, found: Any, known: tuple[str, ...]) -> SettingError:
    variable = f"OMNIZARR_{setting.upper()}"
    return SettingError(
        f"there is no such {'engine' if setting == 'engine' else 'way to fetch'}",
        found=found,
        expected=" or ".join(map(repr, known)),
        remedy=Remedy(f"correct the variable {variable}") | Remedy("{setting}", setting=Setting(setting)),
    )


def name() -> str:
    """Return the name of the engine used for arrays that it supports, with its version if it has one."""
    native = None if choice(config.get("engine")) == "reference" else module()
    return "reference" if native is None else f"native {native.__version__}"
