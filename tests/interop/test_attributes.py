"""What is set as an attribute is what is read back, as the same type: by omnizarr, zarr-python and xarray."""

from __future__ import annotations

import enum
import json
import math

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr import netcdf

NAN, INF = math.nan, math.inf


class Level(enum.IntEnum):
    HIGH = 3


# What is set, and what comes back of it in Python.
VALUES = {
    "nan": (NAN, NAN),
    "inf": (INF, INF),
    "low": (-INF, -INF),
    "nan_of_numpy": (np.float64("nan"), NAN),
    "inf32": (np.float32("inf"), INF),
    "low16": (np.float16("-inf"), -INF),
    "long": (np.longdouble("nan"), NAN),
    "array": (np.array([1.5, NAN, -INF], "f4"), [1.5, NAN, -INF]),
    "array0": (np.array(NAN), NAN),
    "array2": (np.array([[INF], [1]]), [[INF], [1.0]]),
    "objects": (np.array([1, NAN, "x", None], object), [1, NAN, "x", None]),
    "nested": ({"a": [1, {"b": (NAN, np.float32("inf"))}]}, {"a": [1, {"b": [NAN, INF]}]}),
    "word": ("NaN", "NaN"),
    "words": (["NaN", NAN, "Infinity", INF], ["NaN", NAN, "Infinity", INF]),
    "float32": (np.float32(0.1), float(np.float32(0.1))),
    "whole": (1.0, 1.0),
    "one": (1, 1),
    "true": (True, True),
    "true_of_numpy": (np.True_, True),
    "flags": (np.array([True, False]), [True, False]),
    "big": (2**100, 2**100),
    "uint64": (np.uint64(2**64 - 1), 2**64 - 1),
    "int64": (np.int64(-(2**63)), -(2**63)),
    "huge": (1.7976931348623157e308, 1.7976931348623157e308),
    "tiny": (5e-324, 5e-324),
    "negative_zero": (-0.0, -0.0),
    "text": ('\u00e9 \U0001f30a \u2028 " \\ / \x00', '\u00e9 \U0001f30a \u2028 " \\ / \x00'),
    "text_of_numpy": (np.str_("x"), "x"),
    "enum": (Level.HIGH, 3),
    "none": (None, None),
    "empty": ([[], {}, ""], [[], {}, ""]),
}


def alike(found, expected):
    """Whether two values are the same, in type too; NaN is itself."""
    if type(found) is not type(expected):
        return False
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(alike(found[name], expected[name]) for name in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(alike, found, expected))
    return found.hex() == expected.hex() if isinstance(expected, float) else found == expected


def check_read(path, expected):
    """Hold what omnizarr, zarr-python and xarray read of a group and of its array ``v`` against what is expected."""
    group, opened = zarr.open_group(path, mode="r"), omnizarr.open_group(path)
    read = {
        "omnizarr": (opened.attrs.asdict(), opened["v"].attrs.asdict()),
        "zarr-python": (dict(group.attrs), dict(group["v"].attrs)),
    }
    with xr.open_zarr(path, consolidated=False) as dataset:
        read["xarray"] = (dict(dataset.attrs), dict(dataset["v"].attrs))
    for program, several in read.items():
        for attributes in several:
            mine = {name: attributes.get(name, "missing") for name in expected}
            assert alike(mine, expected), program


@pytest.fixture(params=[2, 3])
def zarr_format(request):
    return request.param


def hierarchy(path, zarr_format, group=None, array=None):
    root = omnizarr.create_group(path, zarr_format=zarr_format, attributes=group)
    named = {"dimension_names": ["x"]} if zarr_format == 3 else {}
    dimensions = {} if zarr_format == 3 else {"_ARRAY_DIMENSIONS": ["x"]}
    root.create_array("v", data=np.arange(3.0), attributes={**dimensions, **(array or {})}, **named)
    return root


EXPECTED = {name: expected for name, (_, expected) in VALUES.items()}
SET = {name: value for name, (value, _) in VALUES.items()}


def one_by_one(node):
    for name, value in SET.items():
        node.attrs[name] = value


def together(node):
    node.attrs.update(SET)


def all_anew(node):
    node.attrs.put({**node.attrs.asdict(), **SET})


def as_defaults(node):
    for name, value in SET.items():
        assert alike(node.attrs.setdefault(name, value), EXPECTED[name])


def as_zarr_python(node):
    node.update_attributes(SET)


@pytest.mark.parametrize("way", [one_by_one, together, all_anew, as_defaults, as_zarr_python])
def test_what_is_set_is_read_back(tmp_path, zarr_format, way):
    root = hierarchy(tmp_path / "x.zarr", zarr_format)
    for node in (root, root["v"]):
        way(node)
        assert alike({name: node.attrs[name] for name in EXPECTED}, EXPECTED)
    check_read(tmp_path / "x.zarr", EXPECTED)


def test_what_a_node_is_made_with_is_read_back(tmp_path, zarr_format):
    hierarchy(tmp_path / "x.zarr", zarr_format, SET, SET)
    check_read(tmp_path / "x.zarr", EXPECTED)


def test_what_is_set_is_read_back_from_consolidated_metadata(tmp_path, zarr_format):
    hierarchy(tmp_path / "x.zarr", zarr_format, SET, SET)
    omnizarr.consolidate_metadata(tmp_path / "x.zarr")
    with xr.open_zarr(tmp_path / "x.zarr", consolidated=True) as dataset:
        assert alike({name: dataset["v"].attrs[name] for name in EXPECTED}, EXPECTED)
    copied = omnizarr.open_group(tmp_path / "x.zarr", use_consolidated=True)["v"].attrs
    assert alike({name: copied[name] for name in EXPECTED}, EXPECTED)


def test_what_zarr_python_has_set_is_read_back_after_others_changed(tmp_path, zarr_format):
    hierarchy(tmp_path / "x.zarr", zarr_format)
    group = zarr.open_group(tmp_path / "x.zarr")
    for node in (group, group["v"]):
        node.attrs.update(EXPECTED)
    root = omnizarr.open_group(tmp_path / "x.zarr", mode="r+")
    root.attrs["another"] = 1
    root["v"].attrs["another"] = 1
    root["v"].resize(5)
    check_read(tmp_path / "x.zarr", EXPECTED)


TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=50)
@given(JSON, JSON, st.sampled_from([2, 3]))
def test_any_json_is_read_back_by_zarr_python(value, another, zarr_format):
    store = {}
    array = omnizarr.create_array(store, shape=2, dtype="i4", attributes={"first": value}, zarr_format=zarr_format)
    array.attrs["second"] = another
    array.attrs["first"] = [value]
    files = {key: zarr.core.buffer.cpu.Buffer.from_bytes(bytes(data)) for key, data in store.items()}
    found = dict(zarr.open_array(files, mode="r").attrs)
    assert repr(found) == repr({"first": [value], "second": another})


@pytest.mark.parametrize("mode", ["nczarr", "zarr"])
def test_numbers_set_through_netcdf_are_read_back_by_all(tmp_path, zarr_format, mode):
    path = tmp_path / "x.zarr"
    with netcdf.Dataset(f"{path.as_uri()}#mode={mode}", "w", zarr_format=zarr_format) as dataset:
        dataset.createDimension("x", 2)
        variable = dataset.createVariable("v", "f8", ("x",))
        for node in (dataset, variable):
            node.setncattr("nan", np.float64("nan"))
            node.setncattr("low", np.float32("-inf"))
            node.setncattr("several", np.array([1.0, np.nan, np.inf]))
            node.setncattr("word", "NaN")
    with netcdf.Dataset(path) as dataset:
        for node in (dataset, dataset["v"]):
            assert np.isnan(node.nan)
            assert node.low == -np.inf
            np.testing.assert_array_equal(node.several, [1.0, np.nan, np.inf])
            assert node.word == "NaN"
    check_read(path, {"nan": NAN, "low": -INF, "several": [1.0, NAN, INF], "word": "NaN"})


@pytest.mark.parametrize("zarr_format", [0, 1, 2, 3, "3-draft2019", "3-draft2020"], ids=str)
def test_strict_json_is_written_where_the_user_wants_it(zarr_format):
    store = {}
    with omnizarr.config.set({"attributes.nonfinite": "string"}):
        array = omnizarr.create_array(store, shape=2, dtype="f4", attributes={"a": NAN}, zarr_format=zarr_format)
        array.attrs.update(b=[-INF], c={"d": np.float32("inf")}, e=1.5)
    for key, data in store.items():
        json.loads(bytes(data), parse_constant=lambda token, key=key: pytest.fail(f"{token} in {key}"))
    expected = {"a": "NaN", "b": ["-Infinity"], "c": {"d": "Infinity"}, "e": 1.5}
    assert array.attrs.asdict() == omnizarr.open_array(store).attrs.asdict() == expected


def test_strict_json_leaves_existing_data(tmp_path, zarr_format):
    root = hierarchy(tmp_path / "x.zarr", zarr_format, {"a": NAN})
    with omnizarr.config.set({"attributes.nonfinite": "string"}):
        root.attrs["b"] = NAN
    assert alike(omnizarr.open_group(tmp_path / "x.zarr").attrs.asdict(), {"a": NAN, "b": "NaN"})


@pytest.mark.parametrize("target_format", [2, 3])
def test_strict_json_asked_for_is_a_loss_in_conversions(tmp_path, zarr_format, target_format):
    hierarchy(tmp_path / "x.zarr", zarr_format, {"a": NAN, "b": 1.5})
    with omnizarr.config.set({"attributes.nonfinite": "string"}):
        report = omnizarr.convert(tmp_path / "x.zarr", tmp_path / "y.zarr", zarr_format=target_format)
    assert ["'a' is, or holds, a number: nan" in str(loss) for loss in report.losses] == [True]
    assert zarr.open_group(tmp_path / "y.zarr").attrs["a"] == "NaN"


def test_a_setting_that_is_not_valid_is_named():
    with pytest.raises(ValueError, match=r"attributes\.nonfinite is not valid: found 'null', expected"):
        omnizarr.config.set({"attributes.nonfinite": "null"})


# What readers of other languages do, which the manual says (docs/formats/v3.md).


def test_tensorstore_refuses_a_document_of_v3_with_such_a_number(tmp_path):
    ts = pytest.importorskip("tensorstore")
    for zarr_format, driver in ((2, "zarr"), (3, "zarr3")):
        path = tmp_path / f"v{zarr_format}.zarr"
        omnizarr.create_array(path, data=np.arange(3), attributes={"a": NAN}, zarr_format=zarr_format)
        opened = ts.open({"driver": driver, "kvstore": {"driver": "file", "path": str(path)}})
        if zarr_format == 2:  # it reads no attributes
            assert opened.result().shape == (3,)
        else:
            with pytest.raises(ValueError, match="Invalid JSON"):
                opened.result()


def test_zarrs_refuses_a_document_with_such_a_number(tmp_path, zarr_format):
    zarrista = pytest.importorskip("zarrista")
    omnizarr.create_array(tmp_path / "a", data=np.arange(3), attributes={"a": NAN}, zarr_format=zarr_format)
    with pytest.raises(zarrista.exceptions.ArrayCreateError, match="error parsing metadata"):
        zarrista.Array.open(zarrista.store.FilesystemStore(str(tmp_path)), "/a")
