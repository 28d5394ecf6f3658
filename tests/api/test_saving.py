"""`omnizarr.api.saving`."""

import numpy as np
import pytest

import omnizarr

FORMATS = (2, 3)
VALUES = np.arange(12).reshape(3, 4)


class TestSaveAndLoad:
    @pytest.mark.parametrize("zarr_format", FORMATS)
    @pytest.mark.parametrize("name", ["a.zarr", "a.zip"])
    def test_one_array(self, tmp_path, zarr_format, name):
        omnizarr.save(tmp_path / name, VALUES, zarr_format=zarr_format)
        np.testing.assert_array_equal(omnizarr.load(tmp_path / name), VALUES)

    @pytest.mark.parametrize("name", ["a.zarr", "a.zip"])
    def test_several_arrays(self, tmp_path, name):
        omnizarr.save(tmp_path / name, VALUES, VALUES + 1, z=VALUES + 2)
        loaded = omnizarr.load(tmp_path / name)
        assert sorted(loaded) == ["arr_0", "arr_1", "z"]
        np.testing.assert_array_equal(loaded["z"], VALUES + 2)

    def test_saving_again_replaces(self, tmp_path):
        omnizarr.save_array(tmp_path, VALUES)
        omnizarr.save_array(tmp_path, VALUES + 1, chunks=(1, 1))
        np.testing.assert_array_equal(omnizarr.load(tmp_path), VALUES + 1)
        omnizarr.save_group(tmp_path, x=VALUES)
        assert sorted(omnizarr.load(tmp_path)) == ["x"]

    def test_saving_leaves_other_files_alone(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("ten years of work")
        omnizarr.save(tmp_path, VALUES)
        assert (tmp_path / "thesis.tex").exists()

    def test_nothing_to_save(self):
        with pytest.raises(ValueError, match="nothing"):
            omnizarr.save({})

    def test_nothing_to_load(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            omnizarr.load(tmp_path / "a")
