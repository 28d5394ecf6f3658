"""What of a document is not changed keeps its text, whatever rewrites the document, in every format."""

from __future__ import annotations

import asyncio
import json
import re

import numpy as np
import pytest
import zarr

import omnizarr
from omnizarr import aio, netcdf
from omnizarr.stores import MemoryStore

FORMATS = (3, 2, 1, 0, "3-draft2019", "3-draft2020")
WITH_GROUPS = (3, 2, "3-draft2019", "3-draft2020")
WITH_COPIES = (3, 2, "3-draft2020")

RAW = {
    "overflow": "1e400",
    "underflow": "-1E-400",
    "whole": "1",
    "float": "1.0",
    "zeros": "1.500",
    "exponent": "1e2",
    "sign": "1E+2",
    "digits": "0.1000000000000000055511151231257827",
    "big": "123456789012345678901234567890",
    "bigfloat": "123456789012345678901234567890.0",
    "negative": "-0",
    "negative_float": "-0.0",
    "nan": "NaN",
    "low": "-Infinity",
    "nested": '[NaN,  [Infinity,1.0, 1e2], {"b": -0, "a": 1E400}]',
    "object": '{"b":1e2,"a":{"NaN":NaN}}',
    "escapes": r'"\u00e9\/\ud83d\ude00\u0041"',
    "surrogate": r'"\ud800"',
    "unescaped": '"é\u2028"',
    "word": '"NaN"',
    "empty": "[ ]",
}


def nasty(prefix=""):
    return ", ".join(f'"{prefix}{name}": {raw}' for name, raw in RAW.items())


def plant(store, members):
    """Put raw members beside the attribute ``anchor`` of every document."""
    for key in list(store.list()):
        data = bytes(store.get(key))
        if b'"anchor": 0' in data:
            store.set(key, data.replace(b'"anchor": 0', f'"anchor": 0, {members}'.encode()))


def documents(store):
    """Return the text of all documents, by key."""
    texts = {key: bytes(store.get(key)) for key in store.list()}
    return {key: text.decode() for key, text in texts.items() if text.lstrip()[:1] == b"{"}


def lost(text, prefix=""):
    """Return the members that a text does not have as they were planted."""
    return [name for name, raw in RAW.items() if not re.search(rf'"{prefix}{name}": {re.escape(raw)}\s*[,}}]', text)]


def check_kept(store, prefix=""):
    """Check every document that has planted members, and that there is one."""
    found = [text for text in documents(store).values() if f'"{prefix}overflow"' in text]
    assert found
    assert [lost(text, prefix) for text in found] == [[]] * len(found)


def array_in(zarr_format, **options):
    store = MemoryStore()
    path = "a" if zarr_format in WITH_GROUPS else ""
    omnizarr.create_array(
        store, name=path, data=np.arange(4.0), chunks=2, attributes={"anchor": 0}, zarr_format=zarr_format, **options
    )
    plant(store, nasty())
    return store, omnizarr.open_array(store, path=path, mode="r+")


def put_one(node):
    node.attrs["other"] = [1, float("nan")]


def put_several(node):
    node.attrs.update(other=1, anchor=np.float32("inf"))


def put_what_is_there(node):
    node.attrs["anchor"] = 0
    node.attrs["anchor"] = 1


def delete_one(node):
    del node.attrs["anchor"]


def pop_and_default(node):
    node.attrs.setdefault("more", {"x": 1e300})
    node.attrs.pop("anchor")


def put_within_another(node):
    node.attrs["anchor"] = {"deep": {}}
    node.attrs["anchor"] = {"deep": {"x": [1, {"y": 2}]}, "z": None}


def put_awaited(node):
    async def put():
        found = await aio.open(node.store, path=node.path, mode="r+")
        await found.update_attributes({"other": 2})

    asyncio.run(put())


CHANGES = [put_one, put_several, put_what_is_there, delete_one, pop_and_default, put_within_another, put_awaited]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("zarr_format", FORMATS, ids=str)
def test_attributes_of_arrays_keep_their_text_when_others_change(zarr_format, change):
    store, array = array_in(zarr_format)
    change(array)
    check_kept(store)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("zarr_format", WITH_GROUPS, ids=str)
def test_attributes_of_groups_keep_their_text_when_others_change(zarr_format, change):
    store = MemoryStore()
    omnizarr.create_group(store, attributes={"anchor": 0}, zarr_format=zarr_format)
    plant(store, nasty())
    change(omnizarr.open_group(store, mode="r+"))
    check_kept(store)


@pytest.mark.parametrize("zarr_format", FORMATS, ids=str)
def test_attributes_keep_their_text_when_the_shape_changes(zarr_format):
    store, array = array_in(zarr_format)
    array.resize(7)
    check_kept(store)
    array.append(np.ones(2))
    check_kept(store)
    array.resize(1)
    check_kept(store)
    assert omnizarr.open_array(store, path=array.path).shape == (1,)


@pytest.mark.parametrize("zarr_format", FORMATS, ids=str)
def test_only_the_shape_differs_after_a_resize(zarr_format):
    store, array = array_in(zarr_format)
    before = documents(store)
    array.resize(7)
    after = documents(store)
    for key, text in before.items():
        changed = re.sub(r'"shape": \[4\]', '"shape": [7]', text, count=1)
        assert after[key] == changed


@pytest.mark.parametrize("indent", [None, 1, "\t"])
@pytest.mark.parametrize("zarr_format", FORMATS, ids=str)
def test_layout_of_others_stays(zarr_format, indent):
    store, array = array_in(zarr_format)
    for key, text in documents(store).items():
        store.set(key, (json.dumps(json.loads(text), indent=indent, separators=(",", " : ")) + "\n").encode())
    before = documents(store)
    array.attrs["zz"] = 1
    del array.attrs["zz"]
    assert documents(store) == before


@pytest.mark.parametrize("zarr_format", WITH_COPIES, ids=str)
def test_consolidated_metadata_has_the_text_of_the_documents(zarr_format):
    store = MemoryStore()
    root = omnizarr.create_group(store, attributes={"anchor": 0}, zarr_format=zarr_format)
    root.create_array("a", data=np.arange(4.0), attributes={"anchor": 0})
    plant(store, nasty())
    omnizarr.consolidate_metadata(store)
    check_kept(store)
    root = omnizarr.open_group(store, mode="r+", use_consolidated=True)
    plant(store, nasty("copied_"))  # now in the documents, and once more in the copies
    root.attrs["other"] = 1
    root["a"].attrs["other"] = 1
    root["a"].resize(3)
    root.create_array("b", shape=2, dtype="i4")
    root.move("a", "c")
    check_kept(store)
    check_kept(store, "copied_")


@pytest.mark.parametrize("zarr_format", WITH_COPIES, ids=str)
def test_copies_of_other_nodes_keep_their_text(zarr_format):
    store = MemoryStore()
    root = omnizarr.create_group(store, zarr_format=zarr_format)
    root.create_array("a", data=np.arange(4.0), attributes={"anchor": 0})
    root.create_array("b", data=np.arange(4.0))
    omnizarr.consolidate_metadata(store)
    plant(store, nasty())
    root = omnizarr.open_group(store, mode="r+", use_consolidated=True)
    root["b"].attrs["other"] = 1
    check_kept(store)
    assert omnizarr.open_group(store, use_consolidated=True)["b"].attrs["other"] == 1


@pytest.mark.parametrize("zarr_format", WITH_GROUPS, ids=str)
def test_attributes_keep_their_text_when_nodes_are_moved_and_copied(zarr_format):
    store, _ = array_in(zarr_format)
    root = omnizarr.open_group(store, mode="r+")
    root.move("a", "b")
    root.copy("b", "c")
    check_kept(store)


@pytest.mark.parametrize("zarr_format", FORMATS, ids=str)
def test_attributes_keep_their_text_in_a_conversion_within_the_format(zarr_format):
    store, array = array_in(zarr_format)
    target = MemoryStore()
    report = omnizarr.convert(store, target, zarr_format=zarr_format, path=array.path)
    assert report.losses == ()
    check_kept(target)
    again = MemoryStore()
    omnizarr.convert(store, again, zarr_format=zarr_format, path=array.path, chunks=4)
    check_kept(again)


@pytest.mark.parametrize("zarr_format", WITH_GROUPS, ids=str)
def test_attributes_of_groups_keep_their_text_in_a_conversion_within_the_format(zarr_format):
    store = MemoryStore()
    root = omnizarr.create_group(store, attributes={"anchor": 0}, zarr_format=zarr_format)
    root.create_group("g", attributes={"anchor": 0})
    plant(store, nasty())
    target = MemoryStore()
    assert omnizarr.convert(store, target, zarr_format=zarr_format).losses == ()
    check_kept(target)
    assert len([text for text in documents(target).values() if "overflow" in text]) == 2


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("target_format", [2, 3])
def test_conversion_carries_numbers_that_are_not_finite(zarr_format, target_format):
    store, array = array_in(zarr_format)
    target = MemoryStore()
    report = omnizarr.convert(store, target, zarr_format=target_format, path=array.path)
    assert report.losses == ()
    # Python's own repr tells all that Python can tell of these values.
    before, after = zarr.open_array(in_zarr(store), path="a"), zarr.open_array(in_zarr(target))
    assert repr(dict(after.attrs)) == repr(dict(before.attrs))


def in_zarr(store):
    return {key: in_buffer(store.get(key)) for key in store.list()}


def in_buffer(data):
    return zarr.core.buffer.cpu.Buffer.from_bytes(bytes(data))


@pytest.mark.parametrize(
    ("zarr_format", "mistake"),
    [
        (2, lambda text: re.sub(r'"filters": null,?\s*', "", text)),
        (2, lambda text: text.replace('"fill_value": 0.0', '"fill_value": NaN')),
        (3, lambda text: text.replace('"fill_value": 0.0', '"fill_value": NaN')),
        (3, lambda text: text.replace('"fill_value": 0.0', '"fill_value": null')),
        (1, lambda text: text.replace('"fill_value": 0.0', '"fill_value": NaN')),
        (3, lambda text: "\ufeff" + text),
    ],
)
def test_attributes_keep_their_text_when_another_member_is_repaired(zarr_format, mistake):
    store, _ = array_in(zarr_format)
    before = documents(store)
    for key, text in before.items():
        store.set(key, mistake(text).encode())
    assert documents(store) != before
    account = omnizarr.repair(store, dry_run=False, backup=False)
    assert account.actions
    check_kept(store)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_copies_made_again_have_the_text_of_the_documents(zarr_format):
    store = MemoryStore()
    root = omnizarr.create_group(store, attributes={"anchor": 0}, zarr_format=zarr_format)
    root.create_array("a", data=np.arange(4.0))
    omnizarr.consolidate_metadata(store)
    holder = ".zmetadata" if zarr_format == 2 else "zarr.json"
    stale = store.get(holder)
    array = omnizarr.open_array(store, path="a", mode="r+")
    array.attrs["anchor"] = 0
    store.set(holder, stale)  # as a program leaves it that changes only the array
    plant(store, nasty())
    assert omnizarr.repair(store, dry_run=False, backup=False).actions
    check_kept(store)
    found = {finding.code for finding in omnizarr.check(store) if finding.severity != "note"}
    assert found == {"half-surrogate"}  # which the texts of `nasty` have


@pytest.mark.parametrize("zarr_format", [1, 2, 3])
def test_a_fill_value_that_is_no_json_stays_when_an_attribute_changes(zarr_format):
    store, array = array_in(zarr_format)
    for key, text in documents(store).items():
        store.set(key, text.replace('"fill_value": 0.0', '"fill_value":  NaN').encode())
    put_one(omnizarr.open_array(store, path=array.path, mode="r+"))
    check_kept(store)
    assert any('"fill_value":  NaN' in text for text in documents(store).values())


@pytest.mark.parametrize("mode", ["nczarr", "zarr"])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_attributes_keep_their_text_when_netcdf_sets_others(tmp_path, zarr_format, mode):
    path = tmp_path / "x.zarr"
    with netcdf.Dataset(f"{path.as_uri()}#mode={mode}", "w", zarr_format=zarr_format) as dataset:
        dataset.createDimension("x", 2)
        dataset.anchor = np.int32(0)
        variable = dataset.createVariable("v", "f8", ("x",))
        variable.anchor = np.int32(0)
    plant(omnizarr.stores.LocalStore(path), nasty())
    with netcdf.Dataset(path, "r+") as dataset:
        dataset.other = "text"
        dataset["v"].other = np.array([1.0, np.nan])
        dataset["v"].anchor = np.float32("inf")
        del dataset.anchor
        dataset["v"].setncattr("more", np.int16([1, 2]))
    check_kept(omnizarr.stores.LocalStore(path))


@pytest.mark.parametrize("spelling", ["1.50", "-0", "1e5", "true"])
def test_text_that_netcdf_c_wrote_as_a_number_stays_one_when_netcdf_sets_others(tmp_path, spelling):
    netcdf4 = pytest.importorskip("netCDF4")
    url = f"{(tmp_path / 'x.zarr').as_uri()}#mode=nczarr,file"
    with netcdf4.Dataset(url, "w") as dataset:
        dataset.createDimension("x", 2)
        dataset.createVariable("v", "f8", ("x",)).a = spelling
    with netcdf4.Dataset(url) as dataset:
        before = dataset["v"].a  # not always what it has written
    with netcdf.Dataset(tmp_path / "x.zarr", "r+") as dataset:
        dataset["v"].other = "text"
        dataset["v"].more = np.float64("nan")
        assert dataset["v"].a == spelling
    assert re.search(rf'"a": {re.escape(spelling)}\s*,', (tmp_path / "x.zarr" / "v" / ".zattrs").read_text())
    with netcdf4.Dataset(url) as dataset:
        assert dataset["v"].a == before
        assert dataset["v"].other == "text"
        assert np.isnan(dataset["v"].more)


# Documents of netCDF-C that are taken for something else than they say

V3PLUG = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [],
    "data_type": "int32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
    "chunk_key_encoding": {"name": "default"},
    "fill_value": 0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "dimension_names": [],
    "attributes": {"_nczarr_array": {"type_alias": "int"}, "anchor": 0},
    "must_understand": "false",
}


def test_a_digit_that_fills_char_stays_the_number_that_netcdf_c_wrote():
    document = {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": ">S1", "fill_value": 1, "order": "C"}
    store = {".zarray": json.dumps({**document, "compressor": None, "filters": None}).encode()}
    before = store[".zarray"]
    omnizarr.open_array(store, mode="r+").resize(6)
    assert store[".zarray"] == before.replace(b"[4]", b"[6]")
    assert omnizarr.open_array(store).fill_value == b"1"


def test_members_that_only_netcdf_c_understands_stay_when_an_attribute_changes():
    store = MemoryStore()
    store.set("zarr.json", json.dumps(V3PLUG).encode())
    plant(store, nasty())
    omnizarr.open_array(store, mode="r+").attrs["other"] = 1
    check_kept(store)
    document = json.loads(bytes(store.get("zarr.json")))
    assert document["attributes"].pop("other") == 1
    assert {**document, "attributes": V3PLUG["attributes"]} == V3PLUG


def test_what_cannot_be_said_in_the_old_text_is_written_again():
    group = {"zarr_format": 3, "node_type": "group", "attributes": {"inner": 1}}
    inline = {**group, "kind": "inline", "must_understand": False, "metadata": {"zarr.json": group}}
    store = {"zarr.json": json.dumps({**inline, "attributes": {"_nczarr_group": {}}}).encode()}
    omnizarr.open_group(store, mode="r+").attrs["other"] = 2
    assert dict(omnizarr.open_group(store).attrs) == {"inner": 1, "other": 2}
    assert dict(zarr.open_group({"zarr.json": in_buffer(store["zarr.json"])}).attrs) == {"inner": 1, "other": 2}
