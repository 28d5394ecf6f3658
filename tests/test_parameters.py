"""Few parameters of public functions and methods have the type Any, of which editors and checkers know nothing."""

import importlib
import inspect

import pytest

pytestmark = pytest.mark.rules

MODULES = ("omnizarr", "omnizarr.aio", "omnizarr.storage", "omnizarr.codecs", "omnizarr.netcdf", "omnizarr.metadata")
MOST = 250
"""There may be fewer, never more."""


def functions():
    """Yield the public functions and methods."""
    for module in map(importlib.import_module, MODULES):
        for name in getattr(module, "__all__", None) or dir(module):
            found = getattr(module, name)
            if not name.startswith("_") and getattr(found, "__module__", "").startswith("omnizarr"):
                members = vars(found).values() if inspect.isclass(found) else [found]
                yield from (each for each in members if inspect.isfunction(each) and not each.__name__.startswith("_"))


def test_parameters_have_types():
    parameters = {
        (function.__module__, function.__qualname__, each.name): each.annotation
        for function in functions()
        for each in inspect.signature(function).parameters.values()
    }
    untyped = [place for place, annotation in parameters.items() if annotation == "Any"]
    assert len(parameters) > 1500
    assert len(untyped) <= MOST, untyped
