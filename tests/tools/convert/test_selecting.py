"""`convert(select=...)`: the part of a hierarchy by names of dimensions and coordinates. The reference is xarray."""

import json

import numpy as np
import pytest
import xarray as xr

import omnizarr
from omnizarr.cli import main
from omnizarr.errors import NodeExistsError, NodeNameError, SelectionError

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")


def dataset():
    time = xr.date_range("2000-01-01", periods=1000, use_cftime=False)
    return xr.Dataset(
        {
            "t": (("time", "lat", "x"), np.arange(24_000.0).reshape(1000, 6, 4), {"units": "K"}),
            "weight": (("x",), np.arange(4.0)),
            "time_bnds": (("time", "nv"), np.arange(2000).reshape(1000, 2)),
        },
        coords={"time": ("time", time, {"bounds": "time_bnds"}), "lat": [50.0, 45, 40, 35, 30, 25]},
        attrs={"title": "all"},
    )


@pytest.fixture(params=[2, 3])
def source(request, tmp_path):
    path = str(tmp_path / "source.zarr")
    dataset().to_zarr(path, zarr_format=request.param, consolidated=True, encoding={"t": {"chunks": (100, 6, 4)}})
    return path


CASES = {
    "slices": (
        {"time": slice("2000-02", "2001-03"), "lat": slice(30, 45)},
        lambda d: d.sel(time=slice("2000-02", "2001-03"), lat=slice(45, 30)),
    ),
    "part of a date": ({"time": "2001"}, lambda d: d.sel(time="2001")),
    "value": ({"lat": 45}, lambda d: d.sel(lat=45)),
    "list": ({"lat": [45, 30]}, lambda d: d.sel(lat=[45, 30])),
    "by position": ({"x": slice(1, 3)}, lambda d: d.isel(x=slice(1, 3))),
    "one position": ({"x": 1, "lat": 25}, lambda d: d.isel(x=1).sel(lat=25)),
    "nothing": ({"lat": slice(60, 70)}, lambda d: d.sel(lat=slice(70, 60))),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("zarr_format", [None, 3])
def test_the_part_is_what_xarray_selects_and_writes(source, tmp_path, name, zarr_format):
    select, of_xarray = CASES[name]
    done = omnizarr.convert(source, tmp_path / "part.zarr", select=select, zarr_format=zarr_format)
    assert done.verified
    assert done.source == source
    assert done.source_format == f"v{omnizarr.open(source, mode='r').metadata.zarr_format}"
    written = omnizarr.open(source, mode="r").metadata.zarr_format
    of_xarray(xr.open_zarr(source)).load().to_zarr(tmp_path / "expected.zarr", zarr_format=written)
    found, expected = (xr.open_zarr(tmp_path / name).load() for name in ("part.zarr", "expected.zarr"))
    xr.testing.assert_identical(found, expected)
    group = omnizarr.open_group(tmp_path / "part.zarr")  # the source has consolidated metadata
    assert group.metadata.consolidated_metadata is not None or (tmp_path / "part.zarr/.zmetadata").exists()


def test_chunks_within_the_part_are_copied_unchanged(source, tmp_path):
    done = omnizarr.convert(source, tmp_path / "part.zarr", select={"time": slice("2000-04-10", None)}, zarr_format=3)
    assert {node.path: node.how for node in done.nodes}["t"] == "copied"  # from the second chunk on
    stored = omnizarr.open(source, mode="r")["t"].store
    first = stored.get("t/c/1/0/0") or stored.get("t/1.0.0")
    assert (tmp_path / "part.zarr/t/c/0/0/0").read_bytes() == bytes(first)


def test_one_array_is_selected_by_the_coordinates_beside_it(source, tmp_path):
    omnizarr.convert(f"{source}/t", tmp_path / "one.zarr", select={"lat": 45, "x": slice(0, 2)})
    found = omnizarr.open(tmp_path / "one.zarr")
    np.testing.assert_array_equal(found[...], dataset().t.sel(lat=45).isel(x=slice(0, 2)))
    assert found.dimension_names == ("time", "x")
    omnizarr.convert(source, tmp_path / "two.zarr", path="t", select={"lat": 45, "x": slice(0, 2)})
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "two.zarr")[...], found[...])


def test_groups_below_are_selected_by_their_own_coordinates():
    root = omnizarr.create_group({})
    for name, lat in (("north", [10, 20, 30]), ("south", [-20, 15])):
        group = root.create_group(name, attributes={"of": name})
        group.create_array("lat", data=lat, dimension_names=["lat"])
        group.create_array("t", data=np.arange(len(lat)), dimension_names=["lat"])
    target = {}
    omnizarr.convert(root, target, select={"lat": slice(12, 25)})
    found = omnizarr.open(target)
    assert (found["north/t"][...].tolist(), found["south/t"][...].tolist()) == ([1], [1])
    assert found["south"].attrs["of"] == "south"


def test_a_file_of_netcdf_gets_the_part(source, tmp_path):
    omnizarr.convert(source, tmp_path / "part.nc", select={"lat": slice(30, 45)})
    expected = xr.open_zarr(source).sel(lat=slice(45, 30))
    np.testing.assert_array_equal(xr.open_dataset(tmp_path / "part.nc").t, expected.t)
    with pytest.raises(ValueError, match="convert the file to Zarr first"):
        omnizarr.convert(tmp_path / "part.nc", tmp_path / "again.zarr", select={"lat": 30})


def test_the_command_selects_as_get_does(source, tmp_path, capsys):
    target = str(tmp_path / "part.zarr")
    assert main(["convert", source, target, "--select", "time=2000-02..2001-03", "--select", "lat=30:45"]) == 0
    capsys.readouterr()
    xr.testing.assert_equal(xr.open_zarr(target).load(), CASES["slices"][1](xr.open_zarr(source)).load())
    assert main(["convert", source, target, "--overwrite", "--json", "--select", "lat=45,30 x=0:2"]) == 0
    assert {node["path"] for node in json.loads(capsys.readouterr().out)["nodes"]} >= {"t", "lat", "weight"}
    assert xr.open_zarr(target).t.shape == (1000, 2, 2)
    assert main(["convert", source, target, "--overwrite", "--select", "0:10"]) == 2
    assert (
        "--select takes names of dimensions with coordinates, such as lat=40:50, not '0:10'" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ({"latt": 3}, r"there is no dimension 'latt': .*did you mean 'lat'"),
        ({"lat": 41}, "dimension 'lat' has no place 41"),
        ({"x": 7}, "dimension 'x' has no position 7"),
    ],
)
def test_what_is_not_there_is_an_error_before_anything_is_written(source, tmp_path, select, message):
    with pytest.raises(SelectionError, match=message):
        omnizarr.convert(source, tmp_path / "part.zarr", select=select)
    assert not (tmp_path / "part.zarr").exists()


def test_positions_that_mean_other_places_in_other_arrays_are_refused():
    image = omnizarr.create_group({})
    for name, size in (("0", 8), ("1", 4)):
        image.create_array(name, data=np.zeros((size, size)), dimension_names=["y", "x"])
    with pytest.raises(SelectionError, match="positions along it mean other places"):
        omnizarr.convert(image, {}, select={"x": slice(0, 2)})
    target = {}
    omnizarr.convert(image, target, path="1", select={"x": slice(0, 2)})
    assert omnizarr.open(target).shape == (4, 2)


def test_a_part_cannot_replace_the_whole(source):
    with pytest.raises(NodeNameError):
        omnizarr.convert(source, source, select={"lat": 45}, overwrite=True)
    with pytest.raises(ValueError, match="a part of it cannot be selected"):
        omnizarr.convert(source, in_place=True, select={"lat": 45})
    assert omnizarr.open(source, mode="r")["t"].shape == (1000, 6, 4)


def test_another_part_does_not_resume(source, tmp_path, monkeypatch):
    """Two parts can have equal documents, and other elements."""

    def fail(*_, **__):
        raise KeyboardInterrupt

    target = str(tmp_path / "part.zarr")
    with monkeypatch.context() as patched:
        patched.setattr("omnizarr.tools.convert.moving.Move.compare", fail)
        with pytest.raises(KeyboardInterrupt):
            omnizarr.convert(source, target, select={"lat": [45, 40]})
    with pytest.raises(NodeExistsError, match="other options"):
        omnizarr.convert(source, target, select={"lat": [35, 30]}, resume=True)
    omnizarr.convert(source, target, select={"lat": [45, 40]}, resume=True)
    xr.testing.assert_equal(xr.open_zarr(target).load(), xr.open_zarr(source).sel(lat=[45, 40]).load())


@pytest.mark.parametrize("compressors", ["portable", "keep"])
def test_compressors_are_those_of_a_conversion_of_all(tmp_path, compressors):
    source = omnizarr.create_array(
        tmp_path / "old", data=np.arange(8), chunks=2, zarr_format=2, compressors={"id": "zlib", "level": 1}
    )
    source.attrs["_ARRAY_DIMENSIONS"] = ["x"]
    for number, select in enumerate((None, {"x": slice(2, 8)})):
        omnizarr.convert(tmp_path / "old", tmp_path / f"{number}", select=select, compressors=compressors)
    whole, part = (omnizarr.open(tmp_path / name) for name in "01")
    assert part.metadata.codecs == whole.metadata.codecs
    assert part[...].tolist() == [2, 3, 4, 5, 6, 7]
