"""Attributes of HDF5 of all types, wherever they are: each is carried or reported. Expected values are h5py's."""

import h5py
import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NotRepresentableError

CARRIED = {"boolean": np.True_, "booleans": np.array([True, False]), "empty": h5py.Empty("f4"), "int": 3, "text": "m"}
LOST = {
    "complex": 1 + 2j,
    "half": np.float16(0.5),
    "compound": np.array((1, 2.0), [("a", "i4"), ("b", "f8")]),
    "opaque": np.void(b"abc"),
}


@pytest.fixture
def path(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for each in (file, file.create_group("g"), file.create_dataset("v", data=np.arange(3))):
            each.attrs.update({**CARRIED, **LOST})
            each.attrs["reference"] = file.ref
    return tmp_path / "x.h5"


@pytest.mark.parametrize("target", ["x.zarr", "x.nc"])
def test_each_attribute_is_carried_or_listed(path, target):
    done = omnizarr.convert(path, path.with_name(target))
    lost = {(each.path, each.pointer) for each in done.losses}
    assert lost == {(at, f"/attributes/{name}") for at in ("", "g", "v") for name in [*LOST, "reference"]}
    with pytest.raises(NotRepresentableError):
        omnizarr.convert(path, path.with_name(f"strict-{target}"), strict=True)


def test_booleans_and_empty_attributes_are_carried(path):
    omnizarr.convert(path, path.with_name("x.zarr"))
    root = omnizarr.open(path.with_name("x.zarr"))
    for node in (root, root["g"], root["v"]):
        found = {name: node.attrs[name] for name in CARRIED}
        assert found == {"boolean": 1, "booleans": [1, 0], "empty": [], "int": 3, "text": "m"}


@pytest.mark.filterwarnings("ignore")
def test_anndata_reads_its_file_after_a_conversion(tmp_path):
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    kinds = pandas.Categorical(["a", "b", "a"])
    obs = pandas.DataFrame({"kind": kinds, "n": [1, 2, 3]}, index=list("xyz"))
    anndata.AnnData(np.eye(3, dtype="f4"), obs=obs).write_h5ad(tmp_path / "x.h5ad")
    omnizarr.convert(tmp_path / "x.h5ad", tmp_path / "x.zarr")
    found = anndata.read_zarr(tmp_path / "x.zarr")
    assert found.obs["kind"].tolist() == ["a", "b", "a"]
    np.testing.assert_array_equal(found.X, np.eye(3))
