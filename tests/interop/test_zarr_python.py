"""zarr-python 3 reads what omnizarr writes."""

import json

import numpy as np
import pytest

import omnizarr
from tests.interop import written as w

zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

V3 = {**w.CORE_V3, **w.STRINGS_V3, **w.TIMES_V3, **w.RAW_V3, **w.TEXT_V3, **w.NUMCODECS_V3}
V2 = {**w.CORE_V2, **w.TAIL_V2}
# Released in later versions of zarr-python than those that run on Python 3.11.
LATE_V3 = {**w.STRUCT_V3, **w.RECTILINEAR_V3}

# zarr-python warns of every extension that its authors registered themselves.
pytestmark = pytest.mark.filterwarnings("ignore")


def same_values(found, expected):
    """Compare values bit by bit, byte order aside; strings by value."""
    assert found.shape == expected.shape
    if expected.dtype.kind in "OT":
        assert found.ravel().tolist() == expected.ravel().tolist()
    elif expected.dtype.names is not None:
        for name in expected.dtype.names:
            same_values(found[name], expected[name])
    else:
        assert np.ascontiguousarray(found).astype(expected.dtype).tobytes() == expected.tobytes()


def attributes_of(case):
    return case.options.get("attributes", {})


@pytest.mark.parametrize("name", V3)
def test_zarr_python_reads_zarr_v3(name, tmp_path):
    w.write(tmp_path / "x.zarr", V3[name], 3)
    array = zarr.open_array(tmp_path / "x.zarr", mode="r", zarr_format=3)
    same_values(np.asanyarray(array[...]), V3[name].expected())
    assert dict(array.attrs) == attributes_of(V3[name])


@pytest.mark.parametrize("name", LATE_V3)
def test_zarr_python_reads_zarr_v3_of_later_releases(name, tmp_path):
    release = tuple(map(int, zarr.__version__.split(".")[:2]))
    if release < (3, 4):
        pytest.skip(f"zarr-python {zarr.__version__} does not know {name}; 3.4 does")
    w.write(tmp_path / "x.zarr", LATE_V3[name], 3)
    with zarr.config.set({"array.rectilinear_chunks": True}):
        array = zarr.open_array(tmp_path / "x.zarr", mode="r", zarr_format=3)
        same_values(np.asanyarray(array[...]), LATE_V3[name].expected())


@pytest.mark.parametrize("name", V2)
def test_zarr_python_reads_zarr_v2(name, tmp_path):
    w.write(tmp_path / "x.zarr", V2[name], 2)
    array = zarr.open_array(tmp_path / "x.zarr", mode="r", zarr_format=2)
    same_values(np.asanyarray(array[...]), V2[name].expected())


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
def test_zarr_python_reads_groups(zarr_format, consolidated, tmp_path):
    attributes = {"title": "Größe", "list": [1, 2.5, None], "nested": {"a": {}}}
    root = omnizarr.create_group(tmp_path, zarr_format=zarr_format, attributes=attributes)
    array = root.create_array("a/b/x", shape=(5, 7), chunks=(2, 3), dtype="i4", attributes={"units": "K"})
    array[...] = np.arange(35).reshape(5, 7)
    root.create_group("empty")
    if consolidated:
        omnizarr.consolidate_metadata(tmp_path)

    found = zarr.open_group(tmp_path, mode="r", zarr_format=zarr_format, use_consolidated=consolidated)
    assert dict(found.attrs) == attributes
    assert sorted(name for name, _ in found.members(max_depth=None)) == ["a", "a/b", "a/b/x", "empty"]
    assert dict(found["a/b/x"].attrs) == {"units": "K"}
    np.testing.assert_array_equal(found["a/b/x"][...], np.arange(35).reshape(5, 7))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_both_write_the_same_array_in_turn(zarr_format, tmp_path):
    ours = omnizarr.create_array(tmp_path, shape=(9, 9), chunks=(4, 4), dtype="f8", zarr_format=zarr_format)
    ours[:5] = 1
    theirs = zarr.open_array(tmp_path, mode="r+")
    theirs[3:, 2:] = 2
    ours[8, :] = 3
    expected = np.zeros((9, 9))
    expected[:5] = 1
    expected[3:, 2:] = 2
    expected[8, :] = 3
    np.testing.assert_array_equal(ours[...], expected)
    np.testing.assert_array_equal(zarr.open_array(tmp_path, mode="r")[...], expected)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_documents_without_odd_attributes_are_strict_json(zarr_format, tmp_path):
    def refuse(token):
        raise AssertionError(token)

    attributes = {"half": np.float32(0.5), "values": np.arange(3)}
    omnizarr.create_array(
        tmp_path, shape=3, dtype="f4", fill_value=np.nan, zarr_format=zarr_format, attributes=attributes
    )
    documents = [path for path in tmp_path.iterdir() if path.name in {"zarr.json", ".zarray", ".zattrs"}]
    assert documents
    for path in documents:
        json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
