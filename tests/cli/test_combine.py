"""``omnizarr combine``, run as a user runs it."""

import json

import numpy as np
import pytest
import xarray

import omnizarr


@pytest.fixture
def runs(tmp_path):
    """A hierarchy per year."""
    paths = []
    for year in (2021, 2020, 2023):
        paths.append(tmp_path / f"run-{year}.zarr")
        times = np.arange(366 if year == 2020 else 365)
        dataset = xarray.Dataset(
            {"wind": (["time", "x"], np.full((len(times), 2), year / 2))},
            {"time": ("time", times, {"units": f"days since {year}-01-01"}), "x": [10, 20]},
            {"model": "M1"},
        )
        dataset.to_zarr(paths[-1], consolidated=False)
    return paths


def test_view_has_the_values_of_all_groups(run, runs, tmp_path):
    view = tmp_path / "run.zview"
    code, out, err = run("combine", "--along", "time", *runs[:2], view, columns=200)
    assert (code, out, err) == (0, f"{view}: 2 groups along time, 731 long; 2 arrays joined\n", "")
    expected = xarray.open_mfdataset(sorted(runs[:2]), engine="zarr", consolidated=False).load()
    xarray.testing.assert_equal(xarray.open_dataset(view, engine="omnizarr").load(), expected)
    code, out, err = run("convert", view, tmp_path / "all.zarr")
    assert (code, err) == (0, "")
    xarray.testing.assert_equal(xarray.open_zarr(tmp_path / "all.zarr", consolidated=False).load(), expected)


def test_pattern_in_quotes(run, runs, tmp_path):
    code, out, _ = run("combine", "--along=time", "--json", tmp_path / "run-202[01].zarr", tmp_path / "run.zview")
    found = json.loads(out)
    assert (code, found["sources"], found["length"], found["joined"]) == (0, 2, 731, ["time", "wind"])


def test_chunks_start_again_with_each_group_if_asked(run, runs, tmp_path):
    view = tmp_path / "run.zview"
    for grid in ("regular", "rectilinear"):
        assert run("combine", "--along=time", "--grid", grid, "--overwrite", *runs[:2], view)[0] == 0
        assert omnizarr.open(view)["wind"].metadata.chunk_grid.name == grid
    assert omnizarr.open(view)["wind"].chunks[0] == (366, 365)  # those of the groups


def test_what_to_type_for_a_gap(run, runs, tmp_path):
    view = tmp_path / "run.zview"
    code, _, err = run("combine", "--along", "time", *runs, view)
    assert code == 1
    assert err.endswith('; pass --gaps keep to join them, or "fill" for missing values\n')
    assert not view.exists()
    assert run("combine", "--along", "time", "--gaps", "keep", *runs, view)[0] == 0
    assert omnizarr.open(view)["wind"].shape == (1096, 2)
    code, out, _ = run("combine", "--along", "time", "--gaps=fill", "--overwrite", "--json", *runs, view)
    assert (code, json.loads(out)["length"]) == (0, 1461)


def test_what_to_type_for_an_absent_array(run, runs, tmp_path):
    omnizarr.open_group(runs[0]).create_array("late", data=np.ones(365), dimension_names=["time"])
    view = tmp_path / "run.zview"
    code, _, err = run("combine", "--along", "time", *runs[:2], view)
    assert code == 1
    assert err.endswith('; pass --absent fill for missing values, or "drop" to leave the array out\n')
    assert run("combine", "--along", "time", "--absent", "drop", *runs[:2], view)[0] == 0
    assert "late" not in omnizarr.open(view)


def test_file_is_only_replaced_on_request(run, runs, tmp_path):
    view = tmp_path / "run.zview"
    view.write_text("mine")
    code, _, err = run("combine", "--along", "time", *runs[:2], view)
    assert (code, err.partition(": the file exists; ")[2]) == (1, "pass --overwrite to replace it\n")
    assert view.read_text() == "mine"
    assert run("combine", "--along", "time", "--overwrite", *runs[:2], view)[0] == 0
    assert omnizarr.open(view)["wind"].shape == (731, 2)


def test_name_of_a_view_is_needed(run, runs, tmp_path):
    code, _, err = run("combine", "--along", "time", *runs[:2], tmp_path / "all.zarr")
    assert code == 2
    assert "expected a name that ends in .zview" in err
    assert not (tmp_path / "all.zarr").exists()
