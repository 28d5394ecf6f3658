"""TensorStore reads what omnizarr writes."""

import numpy as np
import pytest

import omnizarr
from tests.interop import written as w

tensorstore = pytest.importorskip("tensorstore", reason="TensorStore is not installed")

V3 = w.CORE_V3
# TensorStore's Zarr v2 wants complex fill values as a pair of numbers, where zarr-python writes base64 or a number.
V2 = {
    name: case._replace(options={**case.options, "fill_value": None}) if case.values.dtype.kind == "c" else case
    for name, case in w.CORE_V2.items()
}


def read(path, driver):
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}}
    array = tensorstore.open(spec, open=True).result()
    return array, np.asarray(array.read().result())


@pytest.mark.parametrize("name", V3)
def test_tensorstore_reads_zarr_v3(name, tmp_path):
    w.write(tmp_path / "x.zarr", V3[name], 3)
    array, found = read(tmp_path / "x.zarr", "zarr3")
    assert found.shape == V3[name].values.shape
    assert found.tobytes() == V3[name].expected().tobytes()
    if "dimension_names" in V3[name].options:
        assert array.domain.labels == tuple(label or "" for label in V3[name].options["dimension_names"])


@pytest.mark.parametrize("name", V2)
def test_tensorstore_reads_zarr_v2(name, tmp_path):
    w.write(tmp_path / "x.zarr", V2[name], 2)
    _, found = read(tmp_path / "x.zarr", "zarr")
    expected = V2[name].expected()
    assert found.astype(expected.dtype).tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4"])
def test_tensorstore_reads_small_types(name, tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    values = np.array([0, 1, 2, 3, 1]).astype(getattr(ml_dtypes, name))
    array = omnizarr.create_array(tmp_path, shape=5, chunks=2, dtype=name, compressors=None)
    array[...] = values
    _, found = read(tmp_path, "zarr3")
    assert found.dtype == values.dtype
    assert found.tobytes() == values.tobytes()


def test_both_write_the_same_shards_in_turn(tmp_path):
    ours = omnizarr.create_array(tmp_path, shape=(9, 9), chunks=(2, 2), shards=(4, 4), dtype="f8")
    ours[:5] = 1
    theirs, _ = read(tmp_path, "zarr3")
    theirs[3:, 2:].write(2).result()
    ours[8, :] = 3
    expected = np.zeros((9, 9))
    expected[:5] = 1
    expected[3:, 2:] = 2
    expected[8, :] = 3
    np.testing.assert_array_equal(ours[...], expected)
    np.testing.assert_array_equal(read(tmp_path, "zarr3")[1], expected)
