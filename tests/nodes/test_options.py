"""The keywords that create arrays: every function shows them, takes them, and refuses others."""

import asyncio
import inspect

import pytest

import omnizarr
from omnizarr import aio
from omnizarr.nodes.options import DEFAULTS, ArrayOptions

PLACED = {"store", "path", "mode", "zarr_format", "storage_options", "synchronizer", "chunk_shape"}
KEYWORDS = DEFAULTS.keys()

# Function, arguments that it needs, and keywords of `create_array` that are not valid for it.
FUNCTIONS = [
    (omnizarr.create_array, ({},), set()),
    (omnizarr.create, (3,), set()),
    (omnizarr.empty, (3,), {"data"}),
    (omnizarr.zeros, (3,), {"data"}),
    (omnizarr.ones, (3,), {"data"}),
    (omnizarr.full, (3, 7), {"data"}),
    (omnizarr.array, ([1, 2],), {"shape"}),
    (omnizarr.zeros_like, ([1, 2],), {"data"}),
    (omnizarr.ones_like, ([1, 2],), {"data"}),
    (omnizarr.empty_like, ([1, 2],), {"data"}),
    (omnizarr.full_like, ([1, 2], 7), {"data"}),
    (omnizarr.from_array, ({},), set()),
    (omnizarr.open_array, ({},), set()),
    (omnizarr.open, ({},), set()),
]
METHODS = [
    ("create_array", {"name": "a"}, set()),
    ("require_array", {"name": "a", "shape": 3}, {"data"}),
    ("empty", {"name": "a", "shape": 3}, {"data"}),
    ("zeros", {"name": "a", "shape": 3}, {"data"}),
    ("ones", {"name": "a", "shape": 3}, {"data"}),
    ("full", {"name": "a", "shape": 3, "fill_value": 7}, {"data"}),
]
LIKE = [(f"{value}_like", {"name": "a", "data": [1, 2]}, set()) for value in ("empty", "zeros", "ones")]
NAMES = [function.__name__ for function, *_ in FUNCTIONS]
MEMBERS = [name for name, *_ in METHODS + LIKE]


def parameters(function):
    return inspect.signature(function).parameters


def test_each_keyword_has_a_default():
    assert ArrayOptions.__annotations__.keys() == KEYWORDS


@pytest.mark.parametrize(("function", "arguments", "without"), FUNCTIONS, ids=NAMES)
def test_function_shows_each_keyword(function, arguments, without):
    shown = parameters(function)
    assert KEYWORDS - without - shown.keys() == set()
    assert not [name for name, each in shown.items() if each.kind is each.VAR_KEYWORD]
    assert shown["dimension_names"].annotation == "Iterable[str | None] | None"


@pytest.mark.parametrize(("name", "arguments", "without"), METHODS + LIKE, ids=MEMBERS)
def test_method_shows_each_keyword(name, arguments, without):
    shown = parameters(getattr(omnizarr.Group, name))
    assert KEYWORDS - without - shown.keys() == set()
    assert not [name for name, each in shown.items() if each.kind is each.VAR_KEYWORD]


@pytest.mark.parametrize(
    "function", [each for each, *_ in FUNCTIONS if hasattr(aio, each.__name__)], ids=lambda x: x.__name__
)
def test_coroutine_function_shows_what_the_function_shows(function):
    awaiting = getattr(aio, function.__name__)
    assert inspect.iscoroutinefunction(awaiting)
    assert parameters(awaiting) == parameters(function)
    assert awaiting.__doc__ != function.__doc__


@pytest.mark.parametrize("name", ["create_array", "require_array", "empty", "zeros", "ones", "full"])
def test_coroutine_method_shows_what_the_method_shows(name):
    assert parameters(getattr(aio.AsyncGroup, name)) == parameters(getattr(omnizarr.Group, name))


def test_defaults_that_are_shown_are_those_that_hold():
    shown = parameters(omnizarr.create_array)
    given = {name: shown[name].default for name in KEYWORDS - {"shape", "dtype"}}
    array = omnizarr.create_array({}, shape=3, dtype="i4", **given)
    assert array.metadata == omnizarr.create_array({}, shape=3, dtype="i4").metadata


@pytest.mark.parametrize(("function", "arguments", "_"), FUNCTIONS, ids=NAMES)
def test_function_refuses_a_misspelt_keyword(function, arguments, _):
    more = {"data": [1, 2]} if function is omnizarr.from_array else {}
    more = {"mode": "w", "shape": 3} if function.__name__.startswith("open") else more
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'chnks'; did you mean 'chunks'"):
        function(*arguments, chnks=(2,), **more)


@pytest.mark.parametrize(("name", "arguments", "_"), METHODS + LIKE, ids=MEMBERS)
def test_method_refuses_a_misspelt_keyword(name, arguments, _):
    group = omnizarr.create_group({})
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'chnks'; did you mean 'chunks'"):
        getattr(group, name)(**arguments, chnks=(2,))
    assert list(group) == []


@pytest.mark.parametrize("opener", [omnizarr.open, omnizarr.open_array])
def test_misspelt_keyword_is_refused_where_an_array_is_there_already(opener):
    values = {}
    omnizarr.create_array(values, shape=3, dtype="i4")
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'mdoe'; did you mean 'mode'"):
        opener(values, mdoe="r")


@pytest.mark.parametrize("opener", [omnizarr.open, omnizarr.open_group])
def test_misspelt_keyword_is_refused_where_a_group_is_there_already(opener):
    values = {}
    omnizarr.create_group(values)
    with pytest.raises(TypeError, match="unexpected keyword argument 'use_consolidatd'"):
        opener(values, use_consolidatd=True)


def test_misspelt_keyword_is_refused_by_coroutines():
    with pytest.raises(TypeError, match="'chnks'"):
        asyncio.run(aio.zeros(3, chnks=2))


def test_older_names_of_keywords_mean_the_same():
    array = omnizarr.create_array(
        {}, shape=4, dtype="i4", chunks=2, zarr_format=2, compressor=None, dimension_separator="/"
    )
    assert array.compressors == ()
    assert array.metadata.chunk_key_encoding.configuration["separator"] == "/"
    with pytest.raises(ValueError, match="Only one of compressor or compressors"):
        omnizarr.create_array({}, shape=4, dtype="i4", compressor=None, compressors=None)


def test_keywords_without_effect_are_reported_and_pass():
    values = {}
    omnizarr.create_array(values, shape=3, dtype="i4")
    with pytest.warns(UserWarning, match="cache_attrs is without effect"):
        omnizarr.open(values, cache_attrs=True)
    with pytest.warns(UserWarning, match="chunk_store is without effect"):
        omnizarr.open_array(values, chunk_store={})
