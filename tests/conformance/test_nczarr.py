"""NCZarr, as far as it is Zarr and needs no data model of netCDF; documents written by hand from the text."""

import zipfile
import zlib

import numpy as np
import pytest

import omnizarr
from omnizarr.stores import ZipStore
from tests.conformance.raw import document, keys, store

GROUP = {"zarr_format": 2}
ARRAY = {
    "zarr_format": 2,
    "shape": [4],
    "chunks": [2],
    "dtype": "<i4",
    "compressor": {"id": "zlib", "level": 1},
    "filters": None,
    "fill_value": -1,
    "order": "C",
}
CHUNK = zlib.compress(np.arange(2, dtype="<i4").tobytes())


def test_pure_zarr_is_read_and_written_without_anything_of_nczarr():
    made = store({".zgroup": GROUP, "v/.zarray": ARRAY, "v/.zattrs": {"_ARRAY_DIMENSIONS": ["x"]}, "v/0": CHUNK})
    root = omnizarr.open(made)
    assert root["v"][...].tolist() == [0, 1, -1, -1]
    root.create_array("w", data=np.arange(3))
    root.attrs["title"] = "pure"
    assert not any("nczarr" in key for key in keys(made))
    assert all("nczarr" not in name for key in (".zattrs", "w/.zarray") for name in document(made, key))


def test_nczarr_documents_are_zarr_with_more_attributes():
    group = {
        "_nczarr_superblock": {"version": "2.0.0"},
        "_nczarr_group": {"dimensions": {"x": 4}, "arrays": ["v"], "groups": []},
        "_nczarr_attr": {"types": {"title": ">S1"}},
        "title": "text",
    }
    array = {"_nczarr_array": {"dimension_references": ["/x"], "storage": "chunked"}}
    root = omnizarr.open(
        store({".zgroup": GROUP, ".zattrs": group, "v/.zarray": ARRAY, "v/.zattrs": array, "v/0": CHUNK})
    )
    assert list(root) == ["v"]
    assert dict(root.attrs) == group
    assert dict(root["v"].attrs) == array
    assert root["v"][...].tolist() == [0, 1, -1, -1]


@pytest.mark.parametrize("name", ["testdata.file", "testdata.zip", "testdata.anyext"])
def test_the_extension_of_a_file_or_directory_does_not_matter(tmp_path, name):
    directory = tmp_path / "of" / name
    omnizarr.create_array(directory, data=np.arange(3), zarr_format=2)
    assert directory.is_dir() or name.endswith(".zip")
    assert omnizarr.open(directory)[...].tolist() == [0, 1, 2]


def test_a_zip_archive_is_searched_by_the_list_of_all_its_entries(tmp_path):
    with zipfile.ZipFile(tmp_path / "testdata.zip", "w") as archive:
        for key, value in {
            ".zgroup": b'{"zarr_format": 2}',
            "g/h/.zgroup": b'{"zarr_format": 2}',
            "g/.zattrs": b"{}",
        }.items():
            archive.writestr(key, value)
    with ZipStore(tmp_path / "testdata.zip", mode="r") as archived:
        assert archived.list_dir("") == ([".zgroup"], ["g/"])
        assert archived.list_dir("g/") == (["g/.zattrs"], ["g/h/"])
        assert list(omnizarr.open(archived)["g"]) == ["h"]


@pytest.mark.parametrize(
    "value", [{"wkt": "GEOGCS[]", "projjson": {"id": [1, {"a": None}]}}, [[1, 2], [3]], None, True]
)
def test_attributes_may_be_any_json(value):
    made = store({".zgroup": GROUP, ".zattrs": {"_CRS": value}})
    group = omnizarr.open(made)
    assert group.attrs["_CRS"] == value
    group.attrs["other"] = value
    assert document(made, ".zattrs") == {"_CRS": value, "other": value}


def test_dimension_names_of_xarray_are_an_attribute():
    names = ["time", "lon", "lat"]
    array = {**ARRAY, "shape": [1, 2, 3], "chunks": [1, 2, 3]}
    opened = omnizarr.open(store({".zarray": array, ".zattrs": {"_ARRAY_DIMENSIONS": names}}))
    assert opened.attrs["_ARRAY_DIMENSIONS"] == names


def test_a_codec_of_v2_has_its_parameters_beside_its_id():
    made = store({".zarray": ARRAY, "0": CHUNK})
    assert omnizarr.open(made)[:2].tolist() == [0, 1]
    created = store({})
    omnizarr.create_array(created, shape=(2,), dtype="i4", zarr_format=2, compressors={"id": "zlib", "level": 3})
    assert document(created, ".zarray")["compressor"] == {"id": "zlib", "level": 3}


def test_a_codec_of_v3_has_its_parameters_in_a_configuration():
    created = store({})
    gzip = {"name": "gzip", "configuration": {"level": 3}}
    omnizarr.create_array(created, shape=(2,), dtype="i1", zarr_format=3, compressors=gzip)
    assert document(created, "zarr.json")["codecs"][1] == gzip
