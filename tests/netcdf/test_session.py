"""What an edit leaves as it was: everything that it is not about."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.netcdf import Dataset

SAID = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["NaN", "-Infinity", '{"a":1}', "[1, 2]", '{"a": 12345678901234567890}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.text("abXY_é.", min_size=1, max_size=4)
OTHERS = {"_ARRAY_DIMENSIONS": ["lat"], "multiscales": [{"version": "0.4", "scale": [1.0, 2, 0.1]}]}


def stored(store, kind, zarr_format):
    """Return the attributes in a document, told apart by type and by spelling of numbers."""
    prefix = "v/" if kind == "array" else ""
    if zarr_format == 2:
        return json.loads(bytes(store.get(f"{prefix}.zattrs", b"{}")))
    return json.loads(bytes(store[f"{prefix}zarr.json"])).get("attributes", {})


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("kind", ["group", "array"])
@given(attributes=st.dictionaries(NAMES, SAID, max_size=4))
def test_attributes_that_are_not_edited_stay_as_they_are_spelled(kind, zarr_format, attributes):
    store = {}
    node = root = omnizarr.open_group(store, mode="w", zarr_format=zarr_format)
    if kind == "array":
        node = root.create_array("v", shape=(2,), dtype="i4")
    node.attrs.update(attributes)
    before = stored(store, kind, zarr_format)
    with Dataset(store, "a") as dataset:
        edited = dataset["v"] if kind == "array" else dataset
        edited.setncattr("new", "text")
        edited.delncattr("new")
    assert repr(stored(store, kind, zarr_format)) == repr(before)


@pytest.mark.parametrize("layout", ["B", "C", "D", "pure", "v3", "pure-v3"])
def test_members_and_attributes_of_other_programs_survive_edits(layout):
    store = {}
    with Dataset(store, "w", layout=layout) as dataset:
        dataset.createDimension("lat", 2)
        dataset.createVariable("v", "i4", ("lat",))
    zarr_format = 3 if "v3" in layout else 2
    document = "v/zarr.json" if zarr_format == 3 else "v/.zarray"
    array = json.loads(bytes(store[document]))
    array["someone"] = {"must_understand": False, "x": [1, 1.0]}
    store[document] = json.dumps(array).encode()
    omnizarr.open_array(store, path="v", mode="r+").attrs.update(OTHERS)
    with Dataset(store, "a") as dataset:
        dataset["v"].units = "K"
        dataset.renameDimension("lat", "y")
        dataset["v"].renameAttribute("units", "unit")
    assert json.loads(bytes(store[document]))["someone"] == array["someone"]
    kept = stored(store, "array", zarr_format)
    assert repr(kept["multiscales"]) == repr(OTHERS["multiscales"])
    with Dataset(store) as dataset:
        assert (dataset["v"].dimensions, dataset["v"].unit) == (("y",), "K")


def test_a_number_of_another_type_is_an_edit_in_pure_zarr():
    store = {}
    with Dataset(store, "w", layout="pure") as dataset:
        dataset.factor = 1
        dataset.factor = 1.0
    assert repr(stored(store, "group", 2)["factor"]) == "1.0"


@pytest.mark.parametrize("layout", ["D", "v3"])
def test_a_group_below_is_edited_as_a_dataset_without_harm_to_the_whole(layout):
    store = {}
    with Dataset(store, "w", layout=layout) as dataset:
        dataset.createDimension("time")
        group = dataset.createGroup("g")
        group.createDimension("x", 3)
        group.createVariable("v", "i4", ("time", "x"))[0:2] = 1
    with Dataset(omnizarr.open_group(store, mode="r+")["g"], "a") as part:
        part["v"].units = "K"
        part.title = "part"
    with Dataset(store) as dataset:
        variable = dataset["g/v"]
        assert variable.header.dimensions == ("/time", "/g/x")
        assert (variable.units, dataset["g"].title, variable.shape) == ("K", "part", (2, 3))
        assert dataset.all_notes() == {}


def test_what_a_layout_would_not_write_can_be_removed():
    store = {}
    with Dataset(store, "w", layout="A") as dataset:
        dataset.title = "a"
    store[".zattrs"] = b'{"title": "a", "quoted": "\\"b\\""}'
    with Dataset(store, "a") as dataset:
        del dataset.quoted
        assert dataset.ncattrs() == ["title"]
