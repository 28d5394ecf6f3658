"""Conventions that `zarr_conventions` names are recognised, shown, and compared with the arrays that they describe.

Where bounds and systems have a judge, it is rasterio (GDAL and PROJ).
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import omnizarr
from omnizarr.cli.commands import omnizarr as program
from omnizarr.formats.conventions import followed
from omnizarr.formats.conventions.contract import Nodes
from omnizarr.formats.conventions.georeference import of
from omnizarr.formats.conventions.registered import REGISTERED
from omnizarr.formats.conventions.registered.records import with_records
from omnizarr.metadata import as_model

MULTISCALES = "d35379db-88df-4056-af3a-620245f8e347"
SPATIAL = "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4"
PROJ = "f17cb550-5864-4468-aeb7-f3180cfb622f"
LICENSE = "b77365e5-2b0c-4141-b917-c03b7c68e935"
UOM = "3bbe438d-df37-49fe-8e2b-739296d46dfb"
CF = "77c308c7-4db2-4774-8b2d-aa37e9997db6"
NZ = "d0a980b5-c644-4dcc-85a1-283799a58f40"
TRANSFORM = [10.0, 0.0, 500000.0, 0.0, -20.0, 5000000.0]
UTM = {"proj:code": "EPSG:32633"}


def declared(*uuids, **more):
    return {"zarr_conventions": [{"uuid": uuid} for uuid in uuids], **more}


def located(**changes):
    said = {
        "spatial:dimensions": ["y", "x"],
        "spatial:shape": [4, 6],
        "spatial:transform": TRANSFORM,
        "spatial:bbox": [500000.0, 4999920.0, 500060.0, 5000000.0],
        **UTM,
    }
    said |= {f"spatial:{name}": value for name, value in changes.items()}
    return declared(SPATIAL, PROJ, **{name: value for name, value in said.items() if value is not None})


def raster(attributes, shape=(4, 6), names=("y", "x"), store=None, name=None):
    store = {} if store is None else store
    return omnizarr.create_array(
        store, name=name, shape=shape, dtype="u1", attributes=attributes, dimension_names=names
    )


def levels(
    *more, second=(2, 3), transform=(20.0, 0.0, 500000.0, 0.0, -40.0, 5000000.0), scale=(2.0, 2.0), store=None, **group
):
    """Return a store with two resolutions, each a group with one array and a coordinate."""
    layout = [
        {"asset": "0", "transform": {"scale": [1.0, 1.0]}, "spatial:shape": [4, 6], "spatial:transform": TRANSFORM},
        {"asset": "1", "derived_from": "0", "transform": {"scale": list(scale), "translation": [0.0, 0.0]},
         "spatial:shape": [2, 3], "spatial:transform": list(transform)},
        *more,
    ]  # fmt: skip
    attributes = {**located(shape=None, transform=None), "multiscales": {"layout": layout}, **group}
    attributes["zarr_conventions"] = [{"uuid": uuid} for uuid in (MULTISCALES, SPATIAL, PROJ)]
    store = {} if store is None else store
    root = omnizarr.create_group(store, attributes=attributes)
    for number, shape in enumerate([(4, 6), second]):
        root.create_array(f"{number}/band", shape=(3, *shape), dtype="u1", dimension_names=("c", "y", "x"))
        root.create_array(f"{number}/x", shape=shape[1:], dtype="f8", dimension_names=("x",))
    return store


def found_in(store, **options):
    findings = omnizarr.check(store, **options).findings
    return [(finding.code, finding.path) for finding in findings if finding.code != "missing-chunks"]


def test_each_convention_has_its_own_identity():
    assert len({known.uuid for known in REGISTERED}) == len({known.name for known in REGISTERED}) == 8


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"uuid": PROJ}, "proj"),
        ({"uuid": PROJ, "name": "spatial"}, "proj"),
        (
            {"schema_url": "https://raw.githubusercontent.com/zarr-experimental/geo-proj/refs/tags/v1/schema.json"},
            "proj",
        ),
        ({"spec_url": "https://github.com/zarr-conventions/spatial/blob/v1/README.md"}, "spatial"),
        ({"spec_url": "https://example.org/spatial", "name": "spatial:"}, None),
        ({"uuid": "00000000-0000-0000-0000-000000000000", "spec_url": "zarr-conventions/spatial/"}, None),
    ],
)
def test_records_are_recognised_by_uuid_then_by_address_and_never_by_name(record, name):
    array = raster({"zarr_conventions": [record]})
    names = [each.name for each in followed("", Nodes({"": as_model(array.metadata)})) if each.name != "xarray"]
    assert names == ["zarr-conventions", *([name] if name else [])]


def test_records_are_added_once():
    once = with_records({"a": 1, "zarr_conventions": [{"uuid": UOM}]}, REGISTERED)
    assert (with_records(once, REGISTERED), len(once["zarr_conventions"])) == (once, 8)


def test_nothing_is_found_where_attributes_and_arrays_agree():
    assert found_in(raster(located()).store) == []
    assert found_in(levels()) == []
    store = {}
    omnizarr.create_group(store, attributes=located())
    raster({}, store=store, name="heights")
    raster({}, (6,), ("x",), store=store, name="x")
    assert found_in(store) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"dimensions": None}, "spatial-invalid"),
        ({"dimensions": ["z", "y", "x"]}, "spatial-invalid"),
        ({"dimensions": ["y", "lon"]}, "spatial-dimensions"),
        ({"shape": [4, 7]}, "spatial-shape"),
        ({"shape": [4, 6.5]}, "spatial-invalid"),
        ({"bbox": [500000.0, 4999920.0, 500060.0]}, "spatial-invalid"),
        ({"bbox": [500005.0, 4999930.0, 500055.0, 4999990.0]}, "spatial-bbox"),  # of centres
        ({"registration": "node"}, "spatial-bbox"),
        ({"registration": "centre"}, "spatial-invalid"),
        ({"transform": TRANSFORM[:5]}, "spatial-invalid"),
        ({"transform": [True, *TRANSFORM[1:]]}, "spatial-invalid"),
        ({"transform": [10.0, 20.0, 0.0, 5.0, 10.0, 0.0]}, "spatial-transform"),
        ({"transform_type": "rpc"}, "convention-unknown"),
        ({"transform_type": 1}, "spatial-invalid"),
    ],
)
def test_spatial_is_compared_with_the_array(changes, code):
    assert found_in(raster(located(**changes)).store) == [(code, "")]


def test_order_of_dimensions_in_the_array_does_not_matter():
    array = raster(located(), (6, 2, 4), ("x", "time", "y"))
    assert found_in(array.store) == []


def test_centres_are_the_bounds_of_nodes():
    bounds = [500000.0, 5000000.0 - 3 * 20, 500000.0 + 5 * 10, 5000000.0]
    assert found_in(raster(located(registration="node", bbox=bounds)).store) == []


def test_group_speaks_for_arrays_directly_below():
    store = {}
    omnizarr.create_group(store, attributes=located(shape=[4, 5]))
    raster({}, store=store, name="heights")
    assert found_in(store) == [("spatial-shape", "")]
    raster({}, (9, 9), store=store, name="deeper/heights")
    raster({}, (9, 9), ("v", "u"), store=store, name="other")
    assert found_in(store) == [("spatial-shape", "")]
    omnizarr.create_group(store, attributes=located(dimensions=["lat", "lon"]), overwrite=True)
    raster({}, store=store, name="heights")
    assert found_in(store) == [("spatial-dimensions", "")]


@pytest.mark.parametrize(
    ("store", "codes"),
    [
        (levels(second=(2, 4)), ["multiscales-shape", "multiscales-shape", "spatial-shape"]),
        (levels(transform=(10.0, 0.0, 500000.0, 0.0, -20.0, 5000000.0)), ["spatial-levels"]),
        (levels(transform=(20.0, 0.0, 500005.0, 0.0, -40.0, 4999990.0)), ["spatial-levels"]),
        (levels(transform=(20.0, 0.0, 500000.0, 0.0, 0.0, 5000000.0)), ["spatial-transform"]),
        (levels(scale=(0.0, 2.0)), ["multiscales-invalid"]),
        (levels({"asset": "2"}), ["multiscales-missing-level"]),
        (levels({"asset": "../0"}), ["multiscales-invalid"]),
        (levels({"asset": "0", "derived_from": "9", "transform": {}}), ["multiscales-missing-level"]),
        (levels({"asset": "0", "derived_from": "1"}), ["multiscales-invalid"]),
        (levels(7), ["multiscales-invalid"]),
        (levels(multiscales={"layout": []}), ["multiscales-invalid"]),
    ],
)
def test_resolutions_are_compared_with_their_arrays(store, codes):
    assert sorted(code for code, path in found_in(store) if path == "") == codes


@pytest.mark.parametrize(
    ("attributes", "codes"),
    [
        (UTM, []),
        ({"proj:code": "IAU_2015:30100"}, []),
        ({"proj:code": "32633"}, ["proj-invalid"]),
        ({"proj:code": None}, ["proj-invalid"]),
        ({}, ["proj-invalid"]),
        ({"proj:wkt2": "EPSG:32633"}, ["proj-invalid"]),
        ({"proj:projjson": "{}"}, ["proj-invalid"]),
        ({"proj:code": "EPSG:3857", "proj:wkt2": 'GEOGCS["WGS 84",AUTHORITY["EPSG","4326"]]'}, ["proj-contradiction"]),
    ],
)
def test_systems_are_spelled_as_the_convention_says(attributes, codes, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyproj", None)
    assert [code for code, _ in found_in(raster(declared(PROJ, **attributes)).store)] == codes


def test_systems_are_looked_up_where_pyproj_is_installed():
    pytest.importorskip("pyproj", reason="pyproj is not installed, which looks systems up")
    assert found_in(raster(declared(PROJ, **{"proj:code": "EPSG:1"})).store) == [("proj-unknown", "")]


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        (declared(LICENSE, license={"spdx": "CC0-1.0"}), None),
        (declared(LICENSE, license=[]), "license-invalid"),
        (declared(LICENSE, license={"path": "nowhere"}), "license-missing"),
        (declared(LICENSE, license={"path": "../../elsewhere"}), None),
        (declared(UOM, uom={"ucum": {"unit": "kg.m/s2"}}), None),
        (declared(UOM, uom={"ucum": {}}), None),
        (declared(UOM, uom="m"), "uom-invalid"),
        (declared(UOM, uom={"ucum": {"unit": "20 kg"}}), "uom-invalid"),
        (declared(CF, axis="x"), "cf-invalid"),
        (declared(NZ, _nczarr_attr={"types": {"scale_factor": "float32"}}), None),
        (declared(NZ, _nczarr_attr={"types": {"scale_factor": "<f4"}}), "nz-invalid"),
        ({"uom": {"ucum": {"unit": "m"}}}, "convention-undeclared"),
        ({"proj:code": "EPSG:4326"}, "convention-undeclared"),
        ({"geo": {"proj": {"code": "EPSG:4326"}}}, "convention-older"),
        (
            {"zarr_conventions": [{"uuid": "7b255807-140c-42ca-97f6-7a1cfecdbc39", "name": "stac"}]},
            "convention-unknown",
        ),
        ({"zarr_conventions": {"uuid": UOM}}, "convention-record"),
        ({"zarr_conventions": ["uom"]}, "convention-record"),
        ({"zarr_conventions": [{"name": "uom"}]}, "convention-record"),
        ({"zarr_conventions": [{"uuid": LICENSE.upper()}], "license": {"spdx": "MIT"}}, "convention-record"),
    ],
)
def test_other_conventions_have_the_form_of_their_text(attributes, code):
    codes = [found for found, _ in found_in(raster(attributes).store)]
    assert code in codes if code else not codes


def test_attributes_of_other_programs_with_these_names_are_left_alone():
    assert found_in(raster({"license": "MIT", "uom": "m", "multiscales": [1], "geo": 1}).store) == []


def test_nz_wants_one_length_of_a_dimension_in_a_group():
    store = {}
    omnizarr.create_group(store, attributes=declared(NZ, conventions="CF-1.12 nz-1.0"))
    raster({}, store=store, name="a")
    assert found_in(store) == []
    raster({}, (4, 7), store=store, name="b")
    raster({}, (9, 9), store=store, name="below/c")
    raster({}, (9,), (None,), store=store, name="d")
    assert found_in(store) == [("nz-shared-dimension", ""), ("nz-invalid", "d")]


def test_cf_looks_for_the_arrays_that_attributes_name():
    store = {}
    omnizarr.create_group(store)
    raster(declared(CF, grid_mapping="crs", bounds="nothing"), store=store, name="inner/a")
    raster({}, (), (), store=store, name="crs")
    assert found_in(store) == [("cf-missing-array", "inner/a")]


@pytest.mark.filterwarnings("ignore")  # of affine, which rasterio uses
@pytest.mark.parametrize("registration", ["pixel", "node"])
def test_bounds_are_those_of_rasterio(registration):
    transforms = pytest.importorskip("rasterio.transform", reason="rasterio is not installed, the reference")
    rotated = [8.0, 2.0, 400.0, 1.0, -9.0, 700.0]
    array = raster(located(transform=rotated, bbox=None, registration=registration))
    place = of("", Nodes({"": as_model(array.metadata)}))
    less = registration == "node"
    left, bottom, right, top = transforms.array_bounds(4 - less, 6 - less, transforms.Affine(*rotated))
    assert place.placement.bounds == pytest.approx((left, bottom, right, top))
    assert place.crs.label == "EPSG:32633"


def test_names_and_codes_of_systems_are_those_of_proj():
    crs = pytest.importorskip("rasterio.crs", reason="rasterio is not installed").CRS.from_epsg(32633)
    for attributes in ({"proj:wkt2": crs.to_wkt(version="WKT2_2019")}, {"proj:wkt2": crs.to_wkt()}):
        place = of("", Nodes({"": as_model(raster(declared(PROJ, **attributes)).metadata)}))
        assert place.crs.label == "EPSG:32633 (WGS 84 / UTM zone 33N)"


@pytest.mark.parametrize(
    ("attributes", "label"),
    [
        ({"_CRS": {"url": "http://www.opengis.net/def/crs/EPSG/0/4326"}}, "EPSG:4326"),
        ({"_CRS": {"projjson": {"name": "WGS 84", "id": {"authority": "EPSG", "code": 4326}}}}, "EPSG:4326 (WGS 84)"),
        ({"geo": {"proj": {"code": "EPSG:4326"}}}, "EPSG:4326"),
        ({"grid_mapping": "crs"}, "EPSG:4326 (WGS 84)"),
    ],
)
def test_systems_of_gdal_and_cf_and_of_older_forms_are_shown(attributes, label, tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr")
    wkt = 'GEOGCRS["WGS 84",DATUM["World Geodetic System 1984",ELLIPSOID["WGS 84",6378137,298.25]],ID["EPSG",4326]]'
    root.create_array("crs", shape=(), dtype="i4", attributes={"crs_wkt": wkt, "GeoTransform": "5 2 0 60 0 -3"})
    root.create_array("t", shape=(4, 6), dtype="u1", dimension_names=("lat", "lon"), attributes=attributes)
    said = json.loads(run("info", "--json", tmp_path / "a.zarr/t"))["meaning"]
    assert said["crs"] == label
    if "grid_mapping" in attributes:
        assert (said["bounds"], said["spatial_dimensions"]) == ([5, 48, 17, 60], ["lat", "lon"])


def run(*arguments):
    result = CliRunner().invoke(program, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_info_shows_place_levels_licence_and_unit(tmp_path):
    store = levels(store=tmp_path / "map.zarr", license={"spdx": "CC-BY-4.0"})
    omnizarr.open(store, mode="r+")["0/band"].attrs["uom"] = {"ucum": {"unit": "W/m2"}}
    group, array = tmp_path / "map.zarr", tmp_path / "map.zarr/1/band"
    lines = {line.split()[0]: " ".join(line.split()[1:]) for line in run("info", group).splitlines() if line.strip()}
    expected = {
        "CRS": "EPSG:32633",
        "bounds": "x 500000 to 500060, y 4999920 to 5000000",
        "resolution": "10 x 20",
        "levels": "0 (4 x 6), 1 (2 x 3)",
        "license": "CC-BY-4.0",
    }
    assert {name: lines[name] for name in expected} == expected
    said = json.loads(run("info", "--json", array))["meaning"]
    assert said["transform"] == [20.0, 0.0, 500000.0, 0.0, -40.0, 5000000.0]
    assert (said["crs"], said["resolution"], said["license"]) == ("EPSG:32633", [20.0, 40.0], "CC-BY-4.0")
    assert said["bounds"] == [500000.0, 4999920.0, 500060.0, 5000000.0]
    assert "unit        W/m2" in run("info", tmp_path / "map.zarr/0/band")
    assert "license     CC-BY-4.0" in run("info", tmp_path / "map.zarr/1")  # a group, in the group that says it
    page, card = omnizarr.open(array)._repr_html_(), repr(omnizarr.info(array))
    assert "EPSG:32633" in page
    assert "Bounds" in card
    assert "EPSG:32633" in omnizarr.open(group)._repr_html_()


def test_coordinates_do_not_lie_anywhere(tmp_path):
    levels(store=tmp_path / "map.zarr")
    assert "bounds" not in json.loads(run("info", "--json", tmp_path / "map.zarr/0/x")).get("meaning", {})


@pytest.mark.parametrize("zarr_format", [2, "3-draft2020", 3])
def test_attributes_are_carried_to_all_formats(zarr_format):
    store, there = levels(), {}
    done = omnizarr.convert(store, there, zarr_format=zarr_format)
    assert not done.losses
    one, other = omnizarr.open(store), omnizarr.open(there)
    assert dict(one.attrs) == dict(other.attrs)
    assert found_in(there) == []
    assert done.nodes[0].conventions.keys() >= ({"multiscales", "spatial", "proj"} if zarr_format != 3 else set())
    assert np.array_equal(one["1/band"][...], other["1/band"][...])
