"""Resolutions of maps as GeoZarr: GDAL, xarray and NumPy say where they lie and what they hold.

The wheel of rasterio has a GDAL that reads Zarr v2 only, so it reads what `convert` makes of the map.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import omnizarr
from omnizarr.cli.commands import omnizarr as program
from omnizarr.errors import MetadataError, NodeExistsError, NotRepresentableError

TRANSFORM = [10.0, 0.0, 500000.0, 0.0, -20.0, 5000000.0]
VALUES = np.arange(5 * 8, dtype="u2").reshape(5, 8)


def source(attributes=None, group=None, names=("y", "x"), values=VALUES, **coordinates):
    """Return a store with the array `heights` in a group."""
    store = {}
    root = omnizarr.create_group(store, attributes=group or {})
    for name, each in coordinates.items():
        root.create_array(name, data=np.asarray(each), dimension_names=(name,), attributes={"long_name": name})
    root.create_array("heights", data=values, dimension_names=names, attributes=attributes or {})
    return store


def located(**more):
    return {"spatial:dimensions": ["y", "x"], "spatial:transform": TRANSFORM, "proj:code": "EPSG:32633", **more}


def layout(store):
    return omnizarr.open(store).attrs["multiscales"]["layout"]


def faults(store):
    return [each.code for each in omnizarr.check(store).findings if each.severity != "note"]


def made(store, target, **options):
    return omnizarr.pyramid(store, target, path="heights", convention="geozarr", levels=2, **options)


@pytest.mark.filterwarnings("ignore")  # of affine, which rasterio uses
def test_gdal_finds_each_resolution_of_a_geotiff_at_its_place(tmp_path):
    rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed, the reference")
    whole = rasterio.Affine(*TRANSFORM)
    with rasterio.open(
        tmp_path / "h.tif", "w", "GTiff", 8, 5, 1, "EPSG:32633", transform=whole, dtype="uint16"
    ) as file:
        file.write(VALUES, 1)
    made = omnizarr.pyramid(tmp_path / "h.tif", tmp_path / "h.zarr", convention="geozarr", levels=3)
    assert [level.shape for level in made.levels] == [(5, 8), (3, 4), (2, 2)]
    omnizarr.convert(tmp_path / "h.zarr", tmp_path / "v2.zarr", zarr_format=2)
    for number in range(3):
        with rasterio.open(f'ZARR:"{tmp_path}/v2.zarr/{number}":/data') as file:
            assert file.crs.to_epsg() == 32633
            assert file.transform.almost_equals(whole @ rasterio.Affine.scale(2**number))
            if number == 0:
                assert np.array_equal(file.read(1), VALUES)
            if number == 1:
                assert file.read(1)[0, 0] == round(VALUES[:2, :2].mean())
    assert faults(tmp_path / "h.zarr") == []


def test_place_comes_from_regular_coordinates_and_a_grid_mapping(tmp_path):
    wkt = 'GEOGCRS["WGS 84",DATUM["World Geodetic System 1984",ELLIPSOID["WGS 84",6378137,298.25]],ID["EPSG",4326]]'
    names, lat, lon = ("time", "lat", "lon"), np.linspace(60, 50, 5, dtype="f4"), np.linspace(0.1, 0.8, 8, dtype="f4")
    store = source({"grid_mapping": "crs", "units": "K"}, None, names, np.stack([VALUES, VALUES]), lat=lat, lon=lon)
    omnizarr.open(store, mode="r+").create_array("crs", shape=(), dtype="i4", attributes={"crs_wkt": wkt})
    assert made(store, tmp_path / "map.zarr").remarks == ()
    root = omnizarr.open(tmp_path / "map.zarr")
    assert root.attrs["proj:code"] == "EPSG:4326"
    assert root.attrs["spatial:bbox"] == pytest.approx([0.05, 48.75, 0.85, 61.25])
    assert layout(tmp_path / "map.zarr")[1]["spatial:transform"] == pytest.approx([0.2, 0, 0.05, 0, -5, 61.25])
    assert layout(tmp_path / "map.zarr")[1]["transform"]["scale"] == [1.0, 2.0, 2.0]
    assert (root["1/heights"].attrs["units"], root["1/crs"].attrs["crs_wkt"]) == ("K", wkt)
    assert np.allclose(root["1/lat"][...], [58.75, 53.75, 48.75])  # means of two coordinates, the last beyond the edge
    assert faults(tmp_path / "map.zarr") == []


@pytest.mark.filterwarnings("ignore")
def test_xarray_opens_a_resolution_with_the_coordinates_of_its_elements(tmp_path):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    made(source(group=located()), tmp_path / "map.zarr")
    found = xarray.open_dataset(tmp_path / "map.zarr/1", engine="omnizarr")
    assert found.x.values.tolist() == [500010.0, 500030.0, 500050.0, 500070.0]
    assert found.y.values.tolist() == [4999980.0, 4999940.0, 4999900.0]


def test_centres_of_nodes_move_with_the_blocks_that_they_are_made_of(tmp_path):
    made(source(located(**{"spatial:registration": "node"})), tmp_path / "map.zarr")
    root = omnizarr.open(tmp_path / "map.zarr")
    assert layout(tmp_path / "map.zarr")[1]["spatial:transform"] == [20.0, 0.0, 500005.0, 0.0, -40.0, 4999990.0]
    assert layout(tmp_path / "map.zarr")[1]["transform"]["translation"] == [0.5, 0.5]
    assert root["1/x"][:2].tolist() == [500005.0, 500025.0]
    assert root.attrs["spatial:registration"] == "node"
    assert root.attrs["spatial:bbox"] == [500000.0, 4999920.0, 500070.0, 5000000.0]
    assert faults(tmp_path / "map.zarr") == []


def test_rotated_maps_have_no_coordinates(tmp_path):
    rotated = [8.0, 2.0, 400.0, 1.0, -9.0, 700.0]
    made(source(located(**{"spatial:transform": rotated})), tmp_path / "map.zarr")
    assert layout(tmp_path / "map.zarr")[1]["spatial:transform"] == [16.0, 4.0, 400.0, 2.0, -18.0, 700.0]
    assert not {"x", "y"} & set(omnizarr.open(tmp_path / "map.zarr/1"))
    assert faults(tmp_path / "map.zarr") == []


def test_levels_are_made_beside_an_array_and_again():
    store = source(located(), x=np.arange(8.0))
    said = omnizarr.pyramid(store, path="heights", convention="geozarr", levels=2)
    assert [level.path for level in said.levels] == ["heights", "heights_1"]
    assert "xarray cannot open" in said.remarks[0]
    root = omnizarr.open(store)
    expected = VALUES[:4].reshape(2, 2, 4, 2).mean((1, 3)).round()
    assert np.array_equal(root["heights_1"][:2], expected)
    assert layout(store)[1]["derived_from"] == "heights"
    with pytest.raises(NodeExistsError, match="such levels already"):
        omnizarr.pyramid(store, convention="geozarr", levels=2)
    omnizarr.pyramid(store, convention="geozarr", levels=2, overwrite=True, method="max")
    assert np.array_equal(omnizarr.open(store)["heights_1"][:2], VALUES[:4].reshape(2, 2, 4, 2).max((1, 3)))
    assert layout(store)[1]["resampling_method"] == "max"


def test_complete_map_is_not_made_again(tmp_path):
    store = source(located())
    made(store, tmp_path / "map.zarr")
    assert "complete already" in made(store, tmp_path / "map.zarr", resume=True).remarks[0]
    with pytest.raises(NodeExistsError):
        made(store, tmp_path / "map.zarr")
    made(store, tmp_path / "map.zarr", overwrite=True)
    omnizarr.pyramid(tmp_path / "map.zarr", convention="geozarr", levels=3, overwrite=True)
    assert [entry["asset"] for entry in layout(tmp_path / "map.zarr")] == ["0", "1", "2"]
    assert faults(tmp_path / "map.zarr") == []


def test_records_and_attributes_of_the_group_stay(tmp_path):
    store = source(located(), {"title": "Heights", "license": {"spdx": "CC0-1.0"}})
    omnizarr.pyramid(store, path="heights", convention="geozarr", levels=2)
    attributes = omnizarr.open(store).attrs
    assert (attributes["title"], attributes["license"]) == ("Heights", {"spdx": "CC0-1.0"})
    assert [record["name"] for record in attributes["zarr_conventions"]] == ["multiscales", "spatial", "proj"]


def test_missing_system_is_remarked_and_wkt1_without_code_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyproj", None)
    store = source({name: value for name, value in located().items() if "proj" not in name})
    assert "no coordinate reference system" in made(store, tmp_path / "map.zarr").remarks[0]
    assert not any(name.startswith("proj") for name in omnizarr.open(tmp_path / "map.zarr").attrs)
    store = source(located(**{"proj:code": None, "proj:wkt2": 'GEOGCS["mine",UNIT["degree",0.017]]'}))
    with pytest.raises(NotRepresentableError, match="install pyproj"):
        made(store, tmp_path / "other.zarr")
    assert not (tmp_path / "other.zarr").exists()


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        (source(), "nothing says where the array lies"),
        (source(y=[0, 1, 2, 3, 5], x=np.arange(8.0)), "not at equal distances"),
        (source(y=[0, 1, 2, 3, np.nan], x=np.arange(8.0)), "not at equal distances"),
        (source(names=("i", None)), "no dimensions that are known to be y and x"),
        (source(located(**{"spatial:transform": [1.0, 0, 0, 2.0, 0, 0]})), "cannot be undone"),
    ],
)
def test_array_without_a_regular_place_is_refused_before_anything_is_written(store, expected):
    there = {}
    with pytest.raises(NotRepresentableError, match=expected):
        made(store, there)
    assert there == {}


def test_what_geozarr_does_not_take_is_refused():
    store = source(located())
    with pytest.raises(ValueError, match="takes axes, lengths and units from the array"):
        omnizarr.pyramid(store, path="heights", convention="geozarr", axes="yx")
    with pytest.raises(ValueError, match="expected one of ome, geozarr"):
        omnizarr.pyramid(store, path="heights", convention="geo")
    with pytest.raises(MetadataError, match="no resolutions"):
        omnizarr.pyramid(store, convention="geozarr")
    old = omnizarr.create_array({}, data=VALUES, zarr_format=2, attributes=located())
    with pytest.raises(NotRepresentableError, match="convert it to v3 first"):
        omnizarr.pyramid(old.store, {}, convention="geozarr")


def test_command_shows_the_levels(tmp_path):
    omnizarr.create_array(
        tmp_path / "h.zarr", data=VALUES, dimension_names=("y", "x"), attributes=located(), compressors=None
    )
    typed = [
        "pyramid",
        str(tmp_path / "h.zarr"),
        str(tmp_path / "map.zarr"),
        "--convention",
        "geozarr",
        "--levels",
        "2",
    ]
    told = CliRunner().invoke(program, typed)
    assert told.output.startswith("GeoZarr map, axes y,x, has 2 levels by mean\n"), told.output
    dry = json.loads(CliRunner().invoke(program, [*typed, "--json", "--dry-run"]).output)
    assert (dry["convention"], dry["levels"][1]["scale"]) == ("geozarr", [-40.0, 20.0])
