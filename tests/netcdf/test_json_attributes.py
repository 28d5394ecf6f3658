"""Attributes that are JSON, which NCZarr types ``|J0``, and netCDF-C ``>S1``: NCZarr, "Appendix C"."""

import json

import numpy as np
import pytest

from omnizarr.netcdf import Dataset, types
from tests.netcdf.peers import PeerError

# As they stand in a document; netCDF-C prints numbers as they are spelled.
VALUES = [
    '{"a": [1.50, 1E5, -0, true, null, "q\\"x", "é", {}], "b": []}',
    "[[1,2],[3.0,4]]",
    '{ "x" :1,"y":{"z":[ ]}}',
    "[1.50, 2]",
    '["a", "b\\\\c"]',
    '{"s": "line\\nbreak\\ttab"}',
    "[]",
    "{}",
    "[null]",
    '[1,"a"]',
    '{"n": 123456789012345678901234567890}',
]
_OLD = {"dims": {}, "vars": [], "groups": []}
MARKS = {
    "B": (".zgroup", {"_NCZARR_SUPERBLOCK": {"version": "2.0.0"}, "_NCZARR_GROUP": _OLD}),
    "C": (".zgroup", {"_nczarr_superblock": {"version": "2.0.0"}, "_nczarr_group": _OLD}),
    "D": (
        ".zattrs",
        {
            "_nczarr_superblock": {"version": "2.0.0"},
            "_nczarr_group": {"dimensions": {}, "arrays": [], "groups": []},
        },
    ),
}


def stored(value, nc_type, layout="D"):
    """Return a dataset with one attribute, spelled as given."""
    where, marks = MARKS[layout]
    mark, text = ("_NCZARR_ATTR", "<U1") if layout == "B" else ("_nczarr_attr", ">S1")
    documents = {
        ".zgroup": {"zarr_format": 2},
        ".zattrs": {"a": "VALUE", "b": "text", mark: {"types": {"a": nc_type, "b": text}}},
    }
    documents[where] |= marks
    return {name: json.dumps(each).replace('"VALUE"', value).encode() for name, each in documents.items()}


def stored_v3(value, nc_type):
    recorded = [{"name": "a", "configuration": {"type": nc_type}}, {"name": "b", "configuration": {"type": "char"}}]
    document = {
        "zarr_format": 3,
        "node_type": "group",
        "attributes": {
            "a": "VALUE",
            "b": "text",
            "_nczarr_superblock": {"version": "3.0.0", "format": 3},
            "_nczarr_group": {"dimensions": [], "arrays": [], "subgroups": []},
            "_nczarr_attrs": {"attribute_types": recorded},
        },
    }
    return {"zarr.json": json.dumps(document).replace('"VALUE"', value).encode()}


@pytest.mark.parametrize("value", VALUES)
def test_json_is_text_as_netcdf_c_prints_it(newest, tmp_path, value):
    for name, document in stored(value, ">S1").items():
        (tmp_path / name).write_bytes(document)
    theirs = newest.read(f"file://{tmp_path}#mode=nczarr,file").root.attributes["a"]
    for values in (stored(value, ">S1"), stored(value, "|J0"), stored_v3(value, "json")):
        with Dataset(values) as dataset:
            assert (dataset.getncattr_type("a"), dataset.a) == ("char", theirs.value)
            assert dataset.all_notes() == {}


def test_netcdf_c_opens_no_attribute_of_type_json(newest, tmp_path):
    for name, document in stored('{"a": 1}', "|J0").items():
        (tmp_path / name).write_bytes(document)
    with pytest.raises(PeerError):
        newest.read(f"file://{tmp_path}#mode=nczarr,file")


@pytest.mark.parametrize("layout", [*MARKS, "v3"])
def test_type_of_json_is_kept_when_other_attributes_change(layout):
    value = '{"a": [1.50, null]}'
    values = stored_v3(value, "json") if layout == "v3" else stored(value, "|J0", layout)
    kept = "json" if layout == "v3" else "|J0"
    with Dataset(values, "a") as dataset:
        dataset.c = np.int16(2)
        dataset.b = 5.5
        dataset.renameAttribute("c", "d")
        dataset.createDimension("x", 2)
        dataset.createVariable("v", "i4", ("x",))
    assert (types_in(values)["a"], spelled_in(values)) == (kept, {"a": [1.5, None]})
    with Dataset(values, "a") as dataset:
        assert dataset.a == '{"a": [1.50,null]}' if layout != "v3" else '{"a": [1.5,null]}'
        dataset.a = "no JSON any more"
    assert types_in(values)["a"] == {"v3": "char", "B": "<U1"}.get(layout, ">S1")
    with Dataset(values, "a") as dataset:
        assert (dataset.a, dataset.b, dataset.d) == ("no JSON any more", 5.5, 2)
        dataset.delncattr("a")
    assert "a" not in types_in(values)


def documents_in(values):
    document = json.loads(bytes(values.get(".zattrs") or values["zarr.json"]))
    return document.get("attributes", document)


def spelled_in(values):
    return documents_in(values)["a"]


def types_in(values):
    found = documents_in(values)
    mark = next(found[name] for name in ("_nczarr_attr", "_NCZARR_ATTR", "_nczarr_attrs") if name in found)
    listed = mark.get("types", mark.get("attribute_types"))
    return listed if isinstance(listed, dict) else {each["name"]: each["configuration"]["type"] for each in listed}


def test_json_that_is_set_is_stored_as_json_of_the_type_that_netcdf_c_reads(newest, tmp_path):
    with Dataset(tmp_path / "x", "w") as dataset:
        dataset.a = '{"a": [1,2]}'
    document = json.loads((tmp_path / "x" / ".zattrs").read_text())
    assert (document["a"], document["_nczarr_attr"]["types"]["a"]) == ({"a": [1, 2]}, ">S1")
    theirs = newest.read(f"file://{tmp_path}/x#mode=nczarr,file").root.attributes["a"]
    assert (theirs.type, theirs.value) == (types.CHAR, '{"a": [1,2]}')
