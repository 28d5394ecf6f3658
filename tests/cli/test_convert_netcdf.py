"""`omnizarr convert` with netCDF files, run as a user runs it."""

import json

import netCDF4
import numpy as np
import pytest

from omnizarr import netcdf

COMMAND = "convert"


@pytest.fixture
def old(tmp_path):
    with netCDF4.Dataset(tmp_path / "old.nc", "w") as dataset:
        dataset.createDimension("x", 3)
        variable = dataset.createVariable("v", "i2", ("x",))
        variable[:] = [1, 2, 3]
        variable.setncattr("limits", np.array([1, 3], "i2"))
    return tmp_path / "old.nc"


@pytest.fixture
def typed(old):
    with netCDF4.Dataset(old, "a") as dataset:
        sky = dataset.createVLType("i4", "sky")
        dataset.createVariable("clouds", sky, ("x",))[0] = np.array([0, 1, 0], "i4")
    return old


@pytest.mark.parametrize(("word", "document"), [("v2", ".zgroup"), ("v3", "zarr.json")])
def test_file_becomes_zarr_of_the_format_asked_for(run, old, tmp_path, word, document):
    code, out, err = run(old, tmp_path / "new.zarr", "--to", word)
    assert (code, err) == (0, "")
    first, *_, last = out.splitlines()
    assert first.endswith(f"netCDF-4 -> Zarr {word}")
    assert last == "nothing was lost"
    assert "1 group, 1 array · 1 chunk copied unchanged" in out
    assert "verified" in out
    assert (tmp_path / "new.zarr" / document).exists()


def test_zarr_becomes_a_file(run, old, tmp_path):
    run(old, tmp_path / "new.zarr")
    code, out, err = run(tmp_path / "new.zarr", tmp_path / "back.nc")
    assert (code, err) == (0, "")
    assert "Zarr v3 -> netCDF-4" in out
    with netCDF4.Dataset(tmp_path / "back.nc") as dataset:
        assert dataset["v"][:].tolist() == [1, 2, 3]
        assert dataset["v"].limits.dtype == "i2"


def test_json_is_for_programs(run, old, tmp_path):
    code, out, err = run(old, tmp_path / "new.zarr", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert {key: told[key] for key in ("source_format", "target_format", "verified", "lossless", "chunks_copied")} == {
        "source_format": "netCDF-4",
        "target_format": "v3",
        "verified": True,
        "lossless": True,
        "chunks_copied": 1,
    }
    assert [each["path"] for each in told["nodes"]] == ["", "v"]


def test_what_is_lost_is_printed(run, typed, tmp_path):
    code, out, err = run(typed, tmp_path / "new.zarr")
    assert (code, err) == (0, "")
    assert "/clouds  array: left out" in out
    assert "lost: variable of type sky (vlen): NCZarr has no types that a program defines" in out
    with netcdf.Dataset(tmp_path / "new.zarr") as dataset:
        assert list(dataset.variables) == ["v"]


def test_strict_is_a_failure_if_something_would_be_lost(run, typed, tmp_path):
    code, out, err = run(typed, tmp_path / "new.zarr", "--strict")
    assert (code, out) == (1, "")
    assert "would be lost" in err
    assert not (tmp_path / "new.zarr").exists()


def test_dry_run_writes_nothing(run, typed, tmp_path):
    code, out, err = run(typed, "--dry-run")
    assert (code, err) == (0, "")
    assert "nothing was written (dry run)" in out
    assert "would be lost" in out
    assert [each.name for each in tmp_path.iterdir()] == ["old.nc"]


def test_target_that_exists_is_a_failure_with_advice(run, old, tmp_path):
    run(old, tmp_path / "new.nc")
    code, out, err = run(old, tmp_path / "new.nc")
    assert (code, out) == (1, "")
    assert "overwrite" in err
    code, _, err = run(old, tmp_path / "new.nc", "--overwrite")
    assert (code, err) == (0, "")


@pytest.mark.parametrize("options", [["--chunks", "2"], ["--codecs", "none"], ["--resume"], ["--to", "v1"]], ids=str)
def test_option_without_meaning_is_a_failure(run, old, tmp_path, options):
    code, out, err = run(old, tmp_path / "new.zarr", *options)
    assert (code, out) == (1, "")
    assert "netCDF" in err
    assert "Traceback" not in err
    assert not (tmp_path / "new.zarr").exists()


def test_missing_file_is_a_failure(run, tmp_path):
    code, out, err = run(tmp_path / "none.nc", tmp_path / "new.zarr")
    assert (code, out) == (1, "")
    assert "none.nc" in err
    assert "Traceback" not in err


def test_broken_file_is_a_failure(run, old, tmp_path):
    (tmp_path / "cut.nc").write_bytes(old.read_bytes()[:3000])
    code, out, err = run(tmp_path / "cut.nc", tmp_path / "new.zarr")
    assert (code, out) == (1, "")
    assert "cut.nc" in err
    assert not (tmp_path / "new.zarr").exists()
