"""What other programs wrote is read as they read it: see README.md beside this file."""

import base64
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import omnizarr

CORPUS = Path(__file__).parent
NODES = [
    pytest.param(path.parent, node, expected, id=f"{path.parent.relative_to(CORPUS).as_posix()}/{node}")
    for path in sorted(CORPUS.glob("*/*/expected.json"))
    for node, expected in json.loads(path.read_text(encoding="utf-8"))["nodes"].items()
]
ARRAYS = [node for node in NODES if node.values[2]["node_type"] == "array"]
GROUPS = [node for node in NODES if node.values[2]["node_type"] == "group"]


def document_of(case):
    return json.loads((case / "expected.json").read_text(encoding="utf-8"))


def open_node(case, store, path, node_type, **options):
    """Open a node by its path, or, where only the root tells of it, through the root."""
    if document_of(case).get("open") == "root" and path:
        return omnizarr.open_group(store, mode="r")[path]
    return getattr(omnizarr, f"open_{node_type}")(store, path=path, mode="r", **options)


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory):
    """Return a function that unpacks the hierarchy of a case, once."""
    stores = {}

    def unpack(case):
        if case not in stores:
            if document_of(case)["store"] == "zip":
                stores[case] = case / "store.zip"
            else:
                stores[case] = tmp_path_factory.mktemp(case.name)
                with zipfile.ZipFile(case / "store.zip") as archive:
                    archive.extractall(stores[case])
        return stores[case]

    return unpack


def thing(value):
    """Return the Python object that `make/recorder.py` wrote as JSON."""
    match value:
        case {"array": items, "dtype": dtype}:
            return np.array(items, dtype=dtype)
        case {"bytes": text}:
            return base64.b64decode(text)
        case {"tuple": items}:
            return tuple(map(thing, items))
        case {"dict": items}:
            return {key: thing(item) for key, item in items.items()}
        case [*items]:
            return [thing(item) for item in items]
    return value


def same(found, expected):
    """Return whether two Python objects are equal and of the same types, all the way down."""
    if isinstance(expected, np.ndarray):
        return isinstance(found, np.ndarray) and found.dtype == expected.dtype and np.array_equal(found, expected)
    if isinstance(expected, float) and expected != expected:  # NaN  # noqa: PLR0124
        return found != found  # noqa: PLR0124
    if isinstance(expected, dict):
        return isinstance(found, dict) and {*found} == {*expected} and all(same(found[k], expected[k]) for k in found)
    if isinstance(expected, list | tuple):
        return type(found) is type(expected) and len(found) == len(expected) and all(map(same, found, expected))
    return type(found) is type(expected) and found == expected


def bits(values):
    """Return the bytes of an array, field by field, so that NaNs and signs of zero count and padding does not."""
    values = np.asanyarray(values)
    if values.dtype.names is not None:
        return [bits(values[name]) for name in values.dtype.names]
    return values.tobytes()


def dtype_named(name):
    """Return a dtype for which .npy files have no word."""
    if name == "StringDType":
        return np.dtypes.StringDType()
    if name == "object":
        return np.dtype(object)
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def expected_array(case, path, expected):
    """Return what an array must hold, and its fill value."""
    if "values" in expected:
        values = np.empty(int(np.prod(expected["shape"])), dtype=dtype_named(expected["dtype"]))
        for index, value in enumerate(expected["values"]):
            values[index] = thing(value)
        return values.reshape(expected["shape"]), thing(expected.get("fill_value"))
    with np.load(case / "expected.npz") as arrays:
        values = arrays[f"{path}/values"]
        fill_value = None if "fill_value" in expected else arrays[f"{path}/fill_value"]
    if "dtype" in expected:
        dtype = dtype_named(expected["dtype"])
        values, fill_value = values.view(dtype), fill_value.view(dtype)
    return values, fill_value


@pytest.mark.parametrize(("case", "path", "expected"), ARRAYS)
def test_array_is_read_as_its_writer_reads_it(case, path, expected, unpacked):
    values, fill_value = expected_array(case, path, expected)
    array = open_node(case, unpacked(case), path, "array", **expected.get("open", {}))
    assert array.shape == values.shape
    assert array.dtype == values.dtype
    assert same(dict(array.attrs), expected["attributes"])
    if "dimension_names" in expected:
        assert array.metadata.dimension_names == tuple(expected["dimension_names"])

    found = array[...]
    assert found.dtype == values.dtype
    if values.dtype.kind in "OT":
        assert same(found.ravel().tolist(), values.ravel().tolist())
        if "fill_value" in expected:
            assert same(array.fill_value, fill_value)
    else:
        assert bits(found) == bits(values)
        assert (array.fill_value is None) == (fill_value is None)
        if fill_value is not None:
            assert bits(np.asarray(array.fill_value, dtype=values.dtype)) == bits(fill_value)


@pytest.mark.parametrize(("case", "path", "expected"), GROUPS)
def test_group_is_read_as_its_writer_reads_it(case, path, expected, unpacked):
    group = open_node(case, unpacked(case), path, "group")
    assert same(dict(group.attrs), expected["attributes"])
    if "members" in expected:
        assert sorted(group) == expected["members"]
