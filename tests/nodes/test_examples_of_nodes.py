"""Each public method and property of arrays and groups has an example; those of docstrings run with the tests."""

import inspect

import pytest

import omnizarr


def documented(kind):
    """Yield the public members of a class that are documented, with what their docstring is."""
    for name, member in inspect.getmembers(kind):
        if not name.startswith("_") and inspect.getdoc(member):
            yield name, inspect.getdoc(member)


@pytest.mark.parametrize("kind", [omnizarr.Array, omnizarr.Group])
def test_each_method_has_an_example(kind):
    without = [name for name, text in documented(kind) if ">>>" not in text]
    assert not without
    assert len(list(documented(kind))) > 40
