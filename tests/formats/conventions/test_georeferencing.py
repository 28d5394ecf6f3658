"""Places of arrays in one convention become those of another: GDAL, rioxarray and PROJ say what they find.

The wheel of rasterio has a GDAL that reads Zarr v2 only, so what it reads is converted to v2.
"""

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NotRepresentableError

TRANSFORM = (10.0, 0.0, 500000.0, 0.0, -20.0, 5000000.0)
VALUES = np.arange(20, dtype="f4").reshape(4, 5)
X, Y = 500005 + 10.0 * np.arange(5), 4999990 - 20.0 * np.arange(4)
SPATIAL = {"spatial:dimensions": ["y", "x"], "spatial:transform": list(TRANSFORM)}
CODE = {"proj:code": "EPSG:32633"}
URL = {"_CRS": {"url": "http://www.opengis.net/def/crs/EPSG/0/32633"}}
SPHERE = {
    "grid_mapping_name": "lambert_conformal_conic",
    "standard_parallel": [38.5, 38.5],
    "longitude_of_central_meridian": -97.5,
    "latitude_of_projection_origin": 38.5,
    "earth_radius": 6370000.0,
}

WKT2 = 'PROJCRS["Mine",BASEGEOGCRS["WGS 84",DATUM["World Geodetic System 1984",ELLIPSOID["WGS 84",6378137,298.25]]]]'

pyproj = pytest.importorskip("pyproj", reason="pyproj is not installed, which knows systems")
rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed, the reference")


def source(attributes, mapping=None, *, has_lines=True, units="m", zarr_format=3):
    store = {}
    root = omnizarr.create_group(store, zarr_format=zarr_format)

    def add(name, data, names, said):
        said = said if zarr_format == 3 else {**said, "_ARRAY_DIMENSIONS": names}
        keywords = {"dimension_names": names} if zarr_format == 3 else {}
        root.create_array(name, data=data, attributes=said, **keywords)

    add("h", VALUES, ["y", "x"], attributes)
    if has_lines:
        add("x", X, ["x"], {"units": units})
        add("y", Y, ["y"], {"units": units})
    if mapping is not None:
        add("crs", np.zeros((), "i4"), [], mapping)
    return store


def converted(store, convention, **options):
    there = {}
    done = omnizarr.convert(store, there, convention=convention, **options)
    return omnizarr.open(there), done


def errors(root):
    return [each.code for each in omnizarr.check(root.store).findings if each.severity != "note"]


def of_gdal(path):
    with rasterio.open(f'ZARR:"{path}":/h') as file:
        return pyproj.CRS(file.crs.to_wkt()), tuple(file.transform)[:6]


def utm(version="WKT2_2019"):
    return pyproj.CRS(32633).to_wkt(version)


def of_cf():
    """Return the attributes of CF for UTM as PROJ writes them, without WKT."""
    return {name: value for name, value in pyproj.CRS(32633).to_cf().items() if name != "crs_wkt"}


def projected(system):
    """Return where a system has two places on the earth."""
    return pyproj.Transformer.from_crs("EPSG:4326", system, always_xy=True).transform([15.5, 12], [47, -20])


SOURCES = {
    "_CRS, WKT2": lambda: ({"_CRS": {"wkt": utm()}}, None),
    "_CRS, WKT1": lambda: ({"_CRS": {"wkt": utm("WKT1_GDAL")}}, None),
    "_CRS, URL": lambda: (URL, None),
    "_CRS, PROJJSON": lambda: ({"_CRS": {"projjson": pyproj.CRS(32633).to_json_dict()}}, None),
    "proj:code": lambda: (CODE, None),
    "CF, WKT2": lambda: ({"grid_mapping": "crs"}, {**of_cf(), "crs_wkt": utm()}),
    "CF, spatial_ref": lambda: ({"grid_mapping": "crs"}, {"spatial_ref": utm("WKT1_GDAL")}),
    "CF, names": lambda: ({"grid_mapping": "crs"}, of_cf()),
}


@pytest.mark.parametrize("said", SOURCES)
def test_each_form_becomes_each_other(said, tmp_path):
    attributes, mapping = SOURCES[said]()
    store = source(attributes, mapping)
    root, done = converted(store, "geozarr", strict=True)
    got = root["h"].attrs
    found = pyproj.CRS(got.get("proj:code") or got.get("proj:wkt2") or got["proj:projjson"])
    assert np.allclose(projected(found), projected("EPSG:32633"), rtol=0, atol=1e-6)
    assert got["spatial:transform"] == list(TRANSFORM)
    assert got["spatial:bbox"] == [500000.0, 4999920.0, 500050.0, 5000000.0]
    assert [each["name"] for each in got["zarr_conventions"]] == ["spatial", "proj"]
    assert (errors(root), done.verified) == ([], True)
    for convention in ("cf", "gdal"):
        omnizarr.convert(store, tmp_path / convention, zarr_format=2, convention=convention, strict=True)
        crs, transform = of_gdal(tmp_path / convention)
        assert (transform, np.allclose(projected(crs), projected("EPSG:32633"))) == (TRANSFORM, True)
        there = omnizarr.open(tmp_path / convention)
        if convention == "gdal":
            assert "_CRS" in there["h"].attrs
        else:
            mapping = there[there["h"].attrs["grid_mapping"].split(":")[0]].attrs.asdict()
            assert np.allclose(projected(pyproj.CRS.from_cf(mapping)), projected("EPSG:32633"))


def test_grid_mapping_has_the_attributes_of_proj_and_its_arrays_share_it():
    store = source({**CODE, **SPATIAL}, has_lines=False)
    omnizarr.open(store, mode="r+").create_array(
        "g", data=VALUES, dimension_names=("y", "x"), attributes={**CODE, **SPATIAL}
    )
    root, done = converted(store, "cf", strict=True)
    assert sorted(root) == ["g", "h", "spatial_ref", "x", "y"]
    mapping = root["spatial_ref"].attrs.asdict()
    assert mapping.pop("GeoTransform") == "500000.0 10.0 0.0 5000000.0 0.0 -20.0"
    assert mapping.pop("spatial_ref") == mapping["crs_wkt"]
    assert mapping == pyproj.CRS(32633).to_cf()
    assert (root["g"].attrs["grid_mapping"], root["h"].attrs["grid_mapping"]) == ("spatial_ref", "spatial_ref")
    assert (root["x"][...].tolist(), root["y"][...].tolist()) == (X.tolist(), Y.tolist())
    assert root["x"].attrs == {"axis": "X", "standard_name": "projection_x_coordinate", "units": "m"}
    assert (root["x"].dimension_names, root["spatial_ref"].shape) == (("x",), ())
    again, _ = converted(root.store, "cf", strict=True)
    assert {name: dict(each.attrs) for name, each in again.arrays()} == {
        name: dict(each.attrs) for name, each in root.arrays()
    }
    assert done.verified
    assert [node.path for node in done.nodes if any("does not have it" in each for each in node.remarks)] == [
        "y", "x", "spatial_ref",
    ]  # fmt: skip


def test_gdal_finds_the_place_that_spatial_says(tmp_path):
    for registration, first in (("pixel", 500000.0), ("node", 499995.0)):
        said = {**CODE, **SPATIAL, "spatial:registration": registration}
        target = tmp_path / registration
        omnizarr.convert(source(said, has_lines=False), target, zarr_format=2, convention="gdal", strict=True)
        crs, transform = of_gdal(target)
        assert (crs.to_epsg(), transform[0], transform[2]) == (32633, 10.0, first)


@pytest.mark.parametrize(
    ("mapping", "why"),
    [
        ({**of_cf(), "towards": 3.0}, "does not take the attribute towards"),
        ({k: v for k, v in of_cf().items() if k != "scale_factor_at_central_meridian"}, "does not say scale_factor"),
        ({"grid_mapping_name": "latitude_longitude"}, "nothing of the shape of the earth"),
        ({**of_cf(), "grid_mapping_name": "drawn_by_hand"}, "PROJ does not know the grid mapping drawn_by_hand"),
        ({**of_cf(), "inverse_flattening": 150.0}, "another inverse_flattening|another semi_minor_axis"),
        ({"crs_wkt": "PROJCS[no"}, "PROJ cannot read it"),
        ({"grid_mapping_name": "latitude_longitude", "geographic_crs_name": "unknown"}, "nothing of the shape"),
        (
            {
                "grid_mapping_name": "latitude_longitude",
                "geographic_crs_name": "NAD27",
                "longitude_of_prime_meridian": 0.0,
            },
            "nothing of the shape",
        ),
    ],
)
def test_what_proj_would_guess_is_lost(mapping, why):
    root, done = converted(source({"grid_mapping": "crs"}, mapping), "geozarr")
    (loss,) = done.losses
    assert (loss.path, "proj:code" in root["h"].attrs, "proj:wkt2" in root["h"].attrs) == ("h", False, False)
    assert "as proj:" in loss.what
    assert any(each in loss.why for each in why.split("|")), loss.why
    with pytest.raises(NotRepresentableError):
        converted(source({"grid_mapping": "crs"}, mapping), "geozarr", strict=True)


def test_sphere_of_a_weather_model_is_exact():
    root, _ = converted(source({"grid_mapping": "crs"}, SPHERE), "geozarr", strict=True)
    found = pyproj.CRS(root["h"].attrs["proj:wkt2"])
    made = pyproj.CRS("+proj=lcc +lat_1=38.5 +lat_2=38.5 +lat_0=38.5 +lon_0=-97.5 +R=6370000")
    assert np.allclose(projected(found), projected(made), rtol=0, atol=1e-6)


@pytest.mark.parametrize("code", [2154, 2263, 3857, 3413, 4326, 5070, 27700, 28992, 4978])
def test_attributes_of_cf_never_say_another_system(code):
    root, _ = converted(source({"proj:code": f"EPSG:{code}", **SPATIAL}, has_lines=False), "cf")
    said = root["spatial_ref"].attrs.asdict()
    assert pyproj.CRS(said.pop("crs_wkt")) == pyproj.CRS(code)
    if "grid_mapping_name" in said:
        expected = projected(f"EPSG:{code}")
        assert np.allclose(projected(pyproj.CRS.from_cf(said)), expected, rtol=0, atol=1e-3)
    assert ("grid_mapping_name" in said) == (code not in (2263, 3857, 28992, 4978))  # feet; no names; three axes


def test_coordinates_in_other_units_or_at_unequal_distances_give_no_transform():
    root, done = converted(source(URL, units="km"), "geozarr")
    assert "spatial:transform" not in root["h"].attrs
    assert "'km'" in str(done.nodes)
    store = source(URL)
    omnizarr.open(store, mode="r+")["x"][1] += 0.25
    root, done = converted(store, "geozarr")
    assert ("spatial:transform" in root["h"].attrs, done.losses) == (False, ())
    assert "equal distances along 'x'" in str(done.nodes)


def test_rotated_maps_are_lost_to_gdal_and_keep_geotransform_in_cf():
    rotated = {**CODE, **SPATIAL, "spatial:transform": [8.0, 2.0, 400.0, 1.0, -9.0, 700.0]}
    _, done = converted(source(rotated, has_lines=False), "gdal")
    assert [(loss.path, loss.what) for loss in done.losses] == [("h", "its place")]
    root, done = converted(source(rotated, has_lines=False), "cf", strict=True)
    assert root["spatial_ref"].attrs["GeoTransform"] == "400.0 8.0 2.0 700.0 1.0 -9.0"
    assert sorted(root) == ["h", "spatial_ref"]


@pytest.mark.parametrize("mapping", [None, {"grid_mapping_name": "latitude_longitude"}])
def test_rotated_maps_without_a_new_grid_mapping_are_lost_to_cf(mapping):
    rotated = {**SPATIAL, "spatial:transform": [8.0, 2.0, 400.0, 1.0, -9.0, 700.0]}
    attributes = rotated if mapping is None else {**rotated, "grid_mapping": "crs"}
    _, done = converted(source(attributes, mapping, has_lines=False), "cf")
    assert [(loss.path, loss.what) for loss in done.losses] == [("h", "its place")]


def test_packed_coordinates_are_unpacked():
    store = source(URL)
    root = omnizarr.open(store, mode="r+")
    del root["x"]
    said = {"scale_factor": 10.0, "add_offset": 500005.0, "units": "m"}
    root.create_array("x", data=np.arange(5, dtype="i2"), dimension_names=["x"], attributes=said)
    root, _ = converted(store, "geozarr")
    assert root["h"].attrs["spatial:transform"] == list(TRANSFORM)


def test_transform_of_nodes_is_that_of_the_places_of_elements():
    attributes = {**CODE, "spatial:dimensions": ["y", "x"], "spatial:registration": "node"}
    root, _ = converted(source(attributes), "geozarr")
    a, b, _, d, e, _ = TRANSFORM
    assert root["h"].attrs["spatial:transform"] == [a, b, X[0], d, e, Y[0]]
    assert root["h"].attrs["spatial:bbox"] == [X[0], Y[-1], X[-1], Y[0]]


def test_coordinates_in_metres_are_none_of_a_system_in_feet():
    root, done = converted(source({"proj:code": "EPSG:2263"}), "geozarr")
    assert "spatial:transform" not in root["h"].attrs
    assert "'m'" in str(done.nodes)


@pytest.mark.parametrize("convention", ["geozarr", "gdal"])
def test_false_easting_in_the_unit_of_coordinates_is_not_taken_for_metres(convention):
    """CF conventions, appendix F: it has the unit of the coordinate variable."""
    said = {**of_cf(), "false_easting": 500.0}
    root, done = converted(source({"grid_mapping": "crs"}, said, units="km"), convention)
    assert ["'km'" in loss.why for loss in done.losses] == [True]
    assert not {"proj:wkt2", "_CRS"} & set(root["h"].attrs)


def test_coordinates_of_a_rotated_pole_are_no_latitudes():
    said = {"grid_mapping_name": "rotated_latitude_longitude", "grid_north_pole_latitude": 39.25}
    said |= {"grid_north_pole_longitude": -162.0, "earth_radius": 6371000.0}
    attributes = {"proj:wkt2": pyproj.CRS.from_cf(said).to_wkt(), **SPATIAL}
    root, _ = converted(source(attributes, has_lines=False), "cf")
    assert (root["y"].attrs["standard_name"], root["x"].attrs["units"]) == ("grid_latitude", "degrees")


def test_arrays_with_dimensions_of_several_lengths_cannot_share_coordinates():
    store = source({**CODE, **SPATIAL}, has_lines=False)
    said = {**CODE, **SPATIAL, "spatial:transform": [20.0, 0.0, 500000.0, 0.0, -40.0, 5000000.0]}
    omnizarr.open(store, mode="r+").create_array(
        "h2", data=VALUES[::2, ::2], dimension_names=("y", "x"), attributes=said
    )
    root, done = converted(store, "cf")
    assert {loss.path for loss in done.losses} == {"h2"}
    assert sorted(root) == ["h", "h2", "spatial_ref", "spatial_ref_1", "x", "y"]


def test_array_alone_has_no_room_for_a_grid_mapping():
    store = {}
    omnizarr.create_array(store, data=VALUES, dimension_names=("y", "x"), attributes={**CODE, **SPATIAL})
    _, done = converted(store, "cf")
    assert {loss.what for loss in done.losses} == {"a grid mapping", "its place"}
    found, done = converted(store, "gdal")
    assert found.attrs["_CRS"] == URL["_CRS"]


def test_without_pyproj_texts_and_codes_alone_are_carried(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyproj", None)
    for said, wanted in ((URL, CODE), ({"_CRS": {"wkt": WKT2}}, {"proj:wkt2": WKT2})):
        root, done = converted(source(said), "geozarr", strict=True)
        assert wanted.items() <= root["h"].attrs.asdict().items()
    root, done = converted(source({"proj:wkt2": WKT2}), "cf", strict=True)
    mapping = root["spatial_ref"].attrs.asdict()
    assert (mapping["crs_wkt"], mapping["spatial_ref"], "grid_mapping_name" in mapping) == (WKT2, WKT2, False)
    assert "without pyproj" in str(done.nodes)
    _, done = converted(source(CODE), "cf")
    assert ["pyproj" in loss.why for loss in done.losses] == [True]


def test_grid_mapping_is_found_in_the_form_that_names_coordinates():
    root, _ = converted(source({"grid_mapping": "crs: x y other: lat lon"}, of_cf()), "geozarr", strict=True)
    assert np.allclose(projected(root["h"].attrs["proj:wkt2"]), projected("EPSG:32633"), rtol=0, atol=1e-6)


def test_what_is_there_stays():
    said = {**URL, "proj:code": "EPSG:4326", "grid_mapping": "crs"}
    for convention in ("geozarr", "cf", "gdal"):
        root, _ = converted(source(said, {"crs_wkt": utm()}), convention, strict=True)
        got = root["h"].attrs.asdict()
        assert {key: got[key] for key in said} == said
        assert dict(root["crs"].attrs) == {"crs_wkt": utm()}


def test_geozarr_is_for_zarr_v3():
    with pytest.raises(ValueError, match="GeoZarr is for Zarr v3"):
        converted(source(URL), "geozarr", zarr_format=2)
    with pytest.raises(ValueError, match="nz, geozarr, cf, gdal"):
        converted(source(URL), "stac")
