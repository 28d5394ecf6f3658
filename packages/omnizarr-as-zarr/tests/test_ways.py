"""What the functions and nodes of `omnizarr_as_zarr` warn of, refuse and print, held against zarr-python."""

import asyncio
import warnings
from importlib import import_module

import numpy as np
import pytest

import omnizarr_as_zarr as as_zarr

zarr = pytest.importorskip("zarr", minversion="3.1")
MODULES = pytest.mark.parametrize("module", [zarr, as_zarr], ids=["zarr-python", "omnizarr"])

WARNED = {
    "order": lambda module: module.create_array({}, shape=(2,), dtype="i4", order="F"),
    "write_empty_chunks": lambda module: module.create((2,), write_empty_chunks=True),
    "chunk_store": lambda module: module.create((2,), chunk_store={}),
    "cache_attrs": lambda module: module.create((2,), cache_attrs=True),
    "shards": lambda module: module.create_array({}, shape=(90,), chunks=(3,), shards="auto", dtype="i4"),
    "codec": lambda module: module.create_array(
        {}, shape=(2,), dtype="i4", filters=[{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}]
    ),
    "compressed shards": lambda module: module.create_array(
        {}, shape=(4,), chunks=(4,), dtype="i4", serializer=module.codecs.ShardingCodec(chunk_shape=(2,))
    ),
    "order of v2": lambda module: module.from_array(
        {}, data=module.create_array({}, data=np.ones((2, 2)), order="F", zarr_format=2), zarr_format=3
    ),
    "tree": lambda module: module.tree(module.group()),
    "create_dataset": lambda module: module.group().create_dataset("a", shape=(2,), dtype="i4"),
    "zarr_version": lambda module: module.open_group({}, mode="w", zarr_version=2),
    "consolidated": lambda module: module.consolidate_metadata(module.group().create_group("a").store),
    "other objects": lambda module: list(with_another_object(module).members()),
}


def with_another_object(module):
    """Return a group with something in it that is not a node."""
    group = module.group()
    make = import_module(f"{module.__name__}.core.buffer").default_buffer_prototype().buffer.from_bytes
    asyncio.run(group.store.set("another/object", make(b"1")))
    return group


def warnings_of(action, module):
    """Return names of class and builtin class, and the first words, of each warning that an action gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action(module)
    return {
        (each.category.__name__, each.category.__mro__[-4:], str(each.message)[:38])
        for each in caught
        if each.category is not ResourceWarning
    }


@pytest.mark.parametrize("case", WARNED)
def test_warnings_are_those_of_zarr_python(case):
    found = warnings_of(WARNED[case], as_zarr)
    assert found
    assert found <= warnings_of(WARNED[case], zarr)  # which warns of its asynchronous twin, too


def test_warnings_name_the_line_that_calls():
    for case in ("order", "tree", "other objects"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            WARNED[case](as_zarr)
        assert {each.filename for each in caught} == {__file__}


REFUSED = {
    "another format": ("Invalid value", lambda module: module.open_group({}, zarr_format="3.0")),
    "two formats": ("does not match", lambda module: module.open_group({}, mode="w", zarr_format=3, zarr_version=2)),
    "two names of chunks": ("Only one of", lambda module: module.create((4,), chunks=(2,), chunk_shape=(1,))),
    "length that is not an integer": ("", lambda module: module.create((4.5,))),
    "chunks that are not integers": ("", lambda module: module.create((4, 4), chunks=(2, 2.5))),
    "no shape": ("shape was not specified", lambda module: module.create_array({}, dtype="i4")),
    "no data type": ("dtype was not specified", lambda module: module.create_array({}, shape=(4,))),
    "serializer of v2": (
        "do not support `serializer`",
        lambda module: module.create_array({}, shape=(4,), dtype="i4", zarr_format=2, serializer="bytes"),
    ),
    "shards of v2": (
        "`shard_shape` set to `None`",
        lambda module: module.create_array({}, shape=(4,), dtype="i4", zarr_format=2, shards=(2,)),
    ),
    "names of v2": (
        "do not support dimension names",
        lambda module: module.create_array({}, shape=(4,), dtype="i4", zarr_format=2, dimension_names=["x"]),
    ),
    "below an array": ("only groups may have child nodes", lambda module: below_an_array(module)),  # noqa: PLW0108 - it is defined below
    "no copies": ("Consolidated metadata requested", lambda module: module.open_consolidated(module.group().store)),
    "keyword as an array": ("must be a", lambda module: module.save({}, np.ones(3), mode="w")),
    "depth": ("max_depth must be", lambda module: module.group().members(max_depth=-1)),
    "expanded tree": ("not yet implemented", lambda module: module.group().tree(expand=True)),
    "array of another type": (
        "Incompatible dtype",
        lambda module: required(module, "require_array", shape=(2,), dtype="f4", exact=True),
    ),
    "array of another shape": (
        "Incompatible shape",
        lambda module: required(module, "require_array", shape=(3,), dtype="i8"),
    ),
    "group where an array is": ("Incompatible object", lambda module: required(module, "require_group")),
    "setting": ("nonsense", lambda module: module.config.get("array.nonsense")),
}


def below_an_array(module):
    """Try to create a group below an array."""
    group = module.group()
    group.create_array("a", shape=(2,), dtype="i4")
    group.create_group("a/b/c")


def required(module, method, **options):
    """Require a node in the place of an array of two integers."""
    group = module.group()
    group.create_array("a", shape=(2,), dtype="i8")
    return getattr(group, method)("a", **options)


@pytest.mark.parametrize("case", REFUSED)
def test_errors_are_those_of_zarr_python_and_have_its_words(case):
    words, action = REFUSED[case]
    with pytest.raises(Exception, match=words or None) as expected:
        action(zarr)
    builtin = next(kind for kind in expected.type.__mro__ if kind.__module__ == "builtins")
    with pytest.raises(builtin, match=words or None):
        action(as_zarr)


@MODULES
def test_nodes_are_printed_with_their_place(module, tmp_path):
    group = module.open_group(tmp_path / "x.zarr", mode="w")
    array = group.create_array("a", shape=(2, 3), dtype="uint8")
    assert repr(group) == f"<Group file://{tmp_path}/x.zarr>"
    assert repr(array) == f"<Array file://{tmp_path}/x.zarr/a shape=(2, 3) dtype=uint8>"
    assert repr(array.async_array) == f"<AsyncArray file://{tmp_path}/x.zarr/a shape=(2, 3) dtype=uint8>"


def test_trees_are_drawn_as_by_zarr_python(monkeypatch):
    def drawn(module, **options):
        group = module.group()
        group.create_array("a/b", shape=(2,), dtype="int8")
        group.create_group("<c>")
        tree = group.tree(**options)
        return repr(tree), tree._repr_mimebundle_()["text/plain"]

    for is_terminal in (True, False):
        monkeypatch.setattr("sys.stdout.isatty", lambda is_terminal=is_terminal: is_terminal)
        for options in ({}, {"plain": True}, {"level": 0}, {"max_nodes": 2}):
            assert drawn(as_zarr, **options)[0] == drawn(zarr, **options)[0]
    group = as_zarr.group()
    group.create_group("<c>")
    assert "<b>&lt;c&gt;</b>" in group.tree()._repr_mimebundle_()["text/html"]


@MODULES
def test_metadata_of_a_group_is_one_object_until_it_changes(module):
    group = module.group(attributes={"a": 1})
    before = group.metadata
    assert group.metadata is before
    group.attrs["a"] = 2
    assert group.metadata.attributes == {"a": 2}


@pytest.mark.parametrize("stored", [(0, 1), (1, 0)])
@pytest.mark.parametrize("order", ["C", "F", None])
@MODULES
def test_results_have_the_order_that_is_asked_for_however_chunks_are_stored(module, order, stored):
    config = {} if order is None else {"order": order}
    transpose = module.codecs.TransposeCodec(order=stored)
    array = module.create_array({}, data=np.arange(6).reshape(2, 3), filters=[transpose], config=config)
    for found in (array[...], asyncio.run(array.async_array.getitem(...))):
        assert found.flags.f_contiguous == (order == "F")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("value", [b"x", b"", b"abcdefg", None])
@pytest.mark.filterwarnings("ignore")
def test_fill_values_of_raw_bytes_are_padded_as_by_zarr_python(value, zarr_format):
    made = {
        module: module.create_array({}, shape=(2,), dtype="V7", fill_value=value, zarr_format=zarr_format)
        for module in (zarr, as_zarr)
    }
    assert made[as_zarr].fill_value == made[zarr].fill_value
    assert made[as_zarr][:].tolist() == made[zarr][:].tolist()


def test_fill_value_of_raw_bytes_that_would_lose_some_is_refused():
    with pytest.raises(ValueError, match="wrong length"):
        as_zarr.create_array({}, shape=(2,), dtype="V2", fill_value=b"abc")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
@MODULES
def test_chunks_of_the_shape_of_an_array_without_elements(module, shape):
    array = module.create_array({}, shape=shape, chunks=shape, dtype="i4")
    array[...] = 1
    assert array[...].shape == shape


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[10ms]", "i4", "f8", "U3", "S3", "bool"])
def test_default_scalars_are_those_of_zarr_python(dtype):
    def default(module):
        data_types = import_module(f"{module.__name__}.core.dtype")
        return data_types.parse_dtype(np.dtype(dtype), zarr_format=3).default_scalar()

    np.testing.assert_equal(default(as_zarr), default(zarr))


@pytest.mark.parametrize(
    "key",
    [
        "array",
        "array.order",
        "async.concurrency",
        "codecs",
        "codec_pipeline.path",
        "default_zarr_format",
        "json_indent",
    ],
)
def test_settings_have_the_names_and_defaults_of_zarr_python(key):
    expected, found = zarr.config.get(key), as_zarr.config.get(key)
    assert {**found, **expected} == found if isinstance(expected, dict) else found == expected


def test_all_settings_are_there_as_in_zarr_python():
    assert zarr.config.config.keys() <= as_zarr.config.config.keys()
    assert as_zarr.config.get("nothing", 5) == zarr.config.get("nothing", 5) == 5
    with as_zarr.config.set({"array.order": "F"}):
        assert as_zarr.config.config["array"]["order"] == as_zarr.config.get("array")["order"] == "F"


def test_warnings_are_of_the_classes_of_zarr_python():
    theirs = import_module("zarr.errors")
    for name in dir(theirs):
        kind = getattr(theirs, name)
        if isinstance(kind, type) and issubclass(kind, Warning):
            assert [base.__name__ for base in getattr(as_zarr.errors, name).__mro__] == [
                base.__name__ for base in kind.__mro__
            ]
