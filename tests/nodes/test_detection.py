"""`omnizarr.nodes.detection`: which format is at a place, from the documents alone."""

import json
import zipfile

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.nodes import detection
from omnizarr.storage import StorePath
from omnizarr.stores import LocalStore, MemoryStore, WrapperStore, ZipStore, verbs
from omnizarr.stores.base import answers
from omnizarr.tools.describe import describe
from tests.fakes import FaultyStore, UnlistableStore

FORMATS = [3, 2, 1, "3-draft2020", "3-draft2019"]
VALUES = np.arange(12, dtype="<i4").reshape(3, 4)

V3_GROUP = b'{"zarr_format": 3, "node_type": "group"}'
V2_GROUP = b'{"zarr_format": 2}'
V2_ARRAY = json.dumps(
    {
        "zarr_format": 2,
        "shape": [2],
        "chunks": [2],
        "dtype": "<i2",
        "compressor": None,
        "fill_value": 7,
        "order": "C",
        "filters": None,
        "dimension_separator": ".",
    }
).encode()
V1_META = json.dumps(
    {
        "zarr_format": 1,
        "shape": [2],
        "chunks": [2],
        "dtype": "<i2",
        "compression": "none",
        "compression_opts": None,
        "fill_value": 5,
        "order": "C",
    }
).encode()
V0_META = json.dumps(
    {"shape": [2], "chunks": [2], "dtype": "<i2", "fill_value": 4, "cname": "blosclz", "clevel": 5, "shuffle": 1}
).encode()
URI = "https://purl.org/zarr/spec/protocol/core/3.0"
ENTRY = json.dumps(
    {"zarr_format": URI, "metadata_encoding": URI, "metadata_key_suffix": ".json", "extensions": []}
).encode()
DRAFT_ARRAY = json.dumps(
    {
        "shape": [2],
        "data_type": "<i2",
        "chunk_grid": {"type": "regular", "chunk_shape": [2], "separator": "/"},
        "chunk_memory_layout": "C",
        "fill_value": 3,
        "extensions": [],
        "attributes": {},
    }
).encode()


def written(store, zarr_format, path="ocean/temp"):
    array = omnizarr.create_array(store, name=path, data=VALUES, chunks=(2, 2), zarr_format=zarr_format)
    array.attrs["units"] = "K"
    return store


@pytest.fixture(params=FORMATS, ids=str)
def zarr_format(request):
    return request.param


class TestEveryFormat:
    def test_is_found_in_memory(self, zarr_format):
        array = omnizarr.open(written({}, zarr_format), path="ocean/temp")
        assert array.zarr_format == zarr_format
        np.testing.assert_array_equal(array[...], VALUES)
        assert dict(array.attrs) == {"units": "K"}

    def test_is_found_through_groups(self, zarr_format):
        root = omnizarr.open(written({}, zarr_format))
        assert root["ocean"].zarr_format == zarr_format
        np.testing.assert_array_equal(root["ocean/temp"][...], VALUES)
        assert [name for name, _ in root.members(max_depth=None)] == ["ocean", "ocean/temp"]

    def test_root_array_is_found(self, zarr_format):
        array = omnizarr.open(written({}, zarr_format, path=""))
        assert array.zarr_format == zarr_format
        np.testing.assert_array_equal(array[...], VALUES)

    def test_is_found_by_a_path_inside_a_directory(self, zarr_format, tmp_path):
        written(tmp_path / "x.zarr", zarr_format)
        for path in (tmp_path / "x.zarr" / "ocean" / "temp", f"{tmp_path}/x.zarr/ocean/temp"):
            np.testing.assert_array_equal(omnizarr.open(path)[...], VALUES)

    def test_is_found_below_the_root_of_a_store(self, zarr_format, tmp_path):
        written(tmp_path / "far" / "x.zarr", zarr_format)
        store = LocalStore(tmp_path)
        np.testing.assert_array_equal(omnizarr.open_array(store, path="far/x.zarr/ocean/temp")[...], VALUES)
        assert omnizarr.open_group(store, path="far/x.zarr").zarr_format == zarr_format

    def test_is_found_in_a_zip_archive(self, zarr_format, tmp_path):
        with ZipStore(tmp_path / "x.zip", mode="w") as store:
            written(store, zarr_format)
        np.testing.assert_array_equal(omnizarr.open(tmp_path / "x.zip", path="ocean/temp")[...], VALUES)

    def test_is_found_in_an_archive_of_a_directory(self, zarr_format, tmp_path):
        written(tmp_path / "x.zarr", zarr_format)
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
            for file in (tmp_path / "x.zarr").rglob("*"):
                archive.write(file, file.relative_to(tmp_path))
        np.testing.assert_array_equal(omnizarr.open(tmp_path / "x.zip", path="ocean/temp")[...], VALUES)

    def test_is_found_in_a_store_that_cannot_be_listed(self, zarr_format):
        store = UnlistableStore(MemoryStore(written({}, zarr_format)), admits=False)
        np.testing.assert_array_equal(omnizarr.open_array(store, path="ocean/temp")[...], VALUES)

    def test_can_be_asked_for(self, zarr_format):
        store = written({}, zarr_format)
        assert omnizarr.open(store, path="ocean/temp", zarr_format=zarr_format).zarr_format == zarr_format
        for other in FORMATS:
            if other != zarr_format:
                with pytest.raises((errors.NodeNotFoundError, errors.MetadataError)):
                    omnizarr.open(store, path="ocean/temp", zarr_format=other)

    def test_new_members_of_a_group_have_its_format(self, zarr_format):
        root = omnizarr.open(written({}, zarr_format))
        assert root.create_array("ocean/depth", data=VALUES, chunks=(2, 2)).zarr_format == zarr_format
        np.testing.assert_array_equal(root["ocean/depth"][...], VALUES)

    def test_misspelt_paths_get_a_suggestion(self, zarr_format):
        store = written({}, zarr_format)
        with pytest.raises(errors.NodeNotFoundError, match=r"did you mean.*ocean/temp"):
            omnizarr.open(store, path="ocean/tmp")

    def test_deleting_leaves_nothing_behind(self, zarr_format):
        store = written({}, zarr_format)
        before = set(store)
        root = omnizarr.open(store)
        root.create_array("ocean/depth", data=VALUES, chunks=(2, 2))
        del root["ocean/depth"]
        assert set(store) == before

    def test_overwriting_replaces_any_other(self, zarr_format):
        for other in FORMATS:
            store = written({}, other, path="")
            omnizarr.create_array(store, data=VALUES[:1], zarr_format=zarr_format, overwrite=True)
            found = omnizarr.open(store)
            assert found.zarr_format == zarr_format
            np.testing.assert_array_equal(found[...], VALUES[:1])
            assert len(store) <= 3, sorted(store)


class TestRequests:
    """On a store with latency each request counts: at most three for a node in the two current formats."""

    @pytest.mark.parametrize(
        ("zarr_format", "kind", "expected"),
        [
            (3, "array", ["x/zarr.json"]),
            (3, "group", ["x/zarr.json"]),
            (2, "array", ["x/zarr.json", "x/.zarray", "x/.zattrs"]),
            (2, "group", ["x/zarr.json", "x/.zgroup", "x/.zattrs"]),
        ],
    )
    def test_opening_asks_for_few_keys(self, zarr_format, kind, expected):
        values = {}
        if kind == "array":
            omnizarr.create_array(values, name="x", data=VALUES, zarr_format=zarr_format)
        else:
            omnizarr.create_group(values, path="x", zarr_format=zarr_format)
        asked = requests(values, lambda store: getattr(omnizarr, f"open_{kind}")(store, path="x", **no_copies(kind)))
        assert asked == expected

    @pytest.mark.parametrize(("zarr_format", "expected"), [(3, 1), (2, 3)])
    def test_open_finds_an_array_as_fast(self, zarr_format, expected):
        values = {}
        omnizarr.create_array(values, name="x", data=VALUES, zarr_format=zarr_format)
        assert len(requests(values, lambda store: omnizarr.open(store, path="x"))) == expected

    def test_member_of_a_draft_takes_one_request(self):
        values = written({}, "3-draft2020")
        store = FaultyStore(MemoryStore(values))
        root = omnizarr.open_group(store, use_consolidated=False)
        store.reset()
        root["ocean/temp"]
        assert store.log == [("get", "meta/root/ocean/temp.array.json")]

    @pytest.mark.parametrize("zarr_format", FORMATS)
    def test_what_is_asked_for_grows_no_faster_than_paths(self, zarr_format):
        values = written({}, zarr_format, path="a")

        def look_for(depth):
            def action(store):
                with pytest.raises(errors.NodeNotFoundError):
                    omnizarr.open(store, path="/".join("x" * depth))

            return len(requests(values, action))

        assert look_for(40) < 4.5 * look_for(10)


def no_copies(kind):
    return {"use_consolidated": False} if kind == "group" else {}


def requests(values, action):
    """Return the keys that `action` asks a store for."""
    store = FaultyStore(MemoryStore(values))
    action(store)
    return [key for _, key in store.log]


class TestSideBySide:
    """Two formats at one place: zarr.json, then .zarray and .zgroup, then meta, then __zmeta__."""

    @pytest.mark.parametrize(
        ("store", "expected"),
        [
            ({"zarr.json": V3_GROUP, ".zgroup": V2_GROUP}, 3),
            ({"zarr.json": ENTRY, "meta/root.group.json": b'{"attributes": {}}', ".zgroup": V2_GROUP}, "3-draft2020"),
            ({".zarray": V2_ARRAY, "meta": V1_META, "attrs": b"{}"}, 2),
            ({"meta": V1_META, "attrs": b"{}", "__zmeta__": V0_META}, 1),
        ],
        ids=["v3 and v2", "draft and v2", "v2 and v1", "v1 and v0"],
    )
    def test_the_newest_wins_and_info_names_the_other(self, store, expected):
        node = omnizarr.open(store)
        assert node.zarr_format == expected
        assert any("lie at the same place" in note.message for note in describe(node).notes)

    def test_zarr_format_opens_the_other(self):
        store = {"zarr.json": V3_GROUP, ".zarray": V2_ARRAY, "meta": V1_META, "attrs": b"{}", "__zmeta__": V0_META}
        assert omnizarr.open(store).zarr_format == 3
        assert omnizarr.open(store, zarr_format=2)[0] == 7
        assert omnizarr.open(store, zarr_format=1)[0] == 5
        assert omnizarr.open(store, zarr_format=0)[0] == 4

    def test_array_and_group_of_v2_are_what_they_are_opened_as(self):
        store = {".zarray": V2_ARRAY, ".zgroup": V2_GROUP}
        assert omnizarr.open(store)[0] == 7
        assert omnizarr.open_group(store).zarr_format == 2

    def test_draft_within_a_group_of_v3_is_its_member(self):
        store = {
            "zarr.json": V3_GROUP,
            "old/zarr.json": ENTRY,
            "old/meta/root/a.array.json": DRAFT_ARRAY,
            "older/meta": V1_META,
            "older/attrs": b"{}",
        }
        root = omnizarr.open(store)
        assert [name for name, _ in root.members(max_depth=None)] == ["old", "old/a", "older"]
        assert root["old/a"][0] == 3
        assert root["old"]["a"][0] == 3
        assert root["older"][0] == 5

    def test_groups_called_meta_and_data_are_no_draft(self):
        store = {}
        root = omnizarr.create_group(store)
        root.create_array("meta", data=VALUES)
        root.create_array("data", data=VALUES)
        assert sorted(omnizarr.open(store).keys()) == ["data", "meta"]

    def test_array_called_meta_is_no_v1(self):
        store = {}
        omnizarr.create_group(store, zarr_format=2).create_array("meta", data=VALUES)
        assert omnizarr.open(store).zarr_format == 2
        del store[".zgroup"]
        assert omnizarr.open(store).zarr_format == 2


class TestNoZarr:
    def test_error_says_what_was_looked_for(self, tmp_path):
        (tmp_path / "readme.txt").write_text("hello")
        with pytest.raises(errors.NodeNotFoundError) as caught:
            omnizarr.open(tmp_path)
        for name in ("zarr.json", ".zarray", ".zgroup", "meta", "__zmeta__"):
            assert name in str(caught.value)

    @pytest.mark.parametrize("document", [b'{"name": "zarr", "version": "1.0.0"}', b'{"zarr_format": "mine"}', b"[]"])
    def test_zarr_json_of_another_program_is_no_empty_group(self, document):
        with pytest.raises(errors.MetadataError, match=r"zarr\.json"):
            omnizarr.open({"zarr.json": document})

    def test_directory_whose_name_is_too_long_is_missing(self, tmp_path):
        with pytest.raises(errors.NodeNotFoundError):
            omnizarr.open(tmp_path / ("a" * 300))

    def test_file_called_meta_is_no_array(self):
        with pytest.raises(errors.NodeNotFoundError):
            omnizarr.open({"meta": b'{"title": "notes"}'})

    def test_node_that_a_draft_does_not_have_is_looked_for_under_its_keys(self):
        with pytest.raises(errors.NodeNotFoundError, match=r"meta/root/b\.array\.json"):
            omnizarr.open_group({"zarr.json": ENTRY, "meta/root/a.array.json": DRAFT_ARRAY})["b"]

    @pytest.mark.parametrize(
        ("array", "attributes", "document"),
        [
            (".zarray", ".zattrs", V2_ARRAY),
            ("meta", "attrs", V1_META),
            ("__zmeta__", "__zattr__", V0_META),
        ],
        ids=["v2", "v1", "v0"],
    )
    def test_broken_document_is_named_beside_others(self, array, attributes, document):
        for values, broken in (
            ({array: document.replace(b"[2]", b"[-2]"), attributes: b"{}"}, array),
            ({array: document, attributes: b"[]"}, attributes),
        ):
            with pytest.raises(errors.MetadataError) as caught:
                omnizarr.open({f"a/{name}": value for name, value in values.items()}, path="a")
            assert caught.value.key == f"a/{broken}"

    @pytest.mark.parametrize(
        ("zarr_format", "expected"),
        [(0, "__zmeta__"), (1, "meta"), (2, ".zarray or .zgroup"), (3, "zarr.json"), ("3-draft2020", "zarr.json")],
    )
    def test_what_is_looked_for_is_that_of_the_format_asked_for(self, zarr_format, expected):
        with pytest.raises(errors.NodeNotFoundError) as caught:
            omnizarr.open({}, zarr_format=zarr_format)
        assert caught.value.expected == expected

    @pytest.mark.parametrize("there", FORMATS)
    def test_node_of_another_format_than_asked_for_is_named(self, there):
        store = written({}, there)
        asked = 2 if there == 1 else 1
        with pytest.raises(errors.NodeNotFoundError, match=f"zarr_format={there!r}"):
            omnizarr.open(store, path="ocean/temp", zarr_format=asked)

    def test_draft_asked_for_as_final_v3_says_what_it_is(self):
        with pytest.raises(errors.MetadataError, match="draft"):
            omnizarr.open({"zarr.json": ENTRY}, zarr_format=3)


class TestDraftHierarchies:
    def test_begin_at_the_root_of_the_store(self):
        store = written({}, "3-draft2020", path="a/b")
        assert "zarr.json" in store
        assert "meta/root/a/b.array.json" in store

    def test_begin_at_the_node_within_another_format(self):
        store = {"zarr.json": V3_GROUP}
        written(store, "3-draft2020", path="old")
        assert {"old/zarr.json", "old/meta/root.array.json"} < set(store)
        np.testing.assert_array_equal(omnizarr.open(store)["old"][...], VALUES)

    def test_hold_no_nodes_of_other_formats(self):
        store = written({}, "3-draft2020", path="a/b")
        with pytest.raises(errors.NotRepresentableError, match="holds no nodes of Zarr v2"):
            omnizarr.create_array(store, name="a/c", data=VALUES, zarr_format=2)

    def test_take_new_nodes_of_their_own_format(self):
        store = written({}, "3-draft2020", path="a/b")
        assert omnizarr.create_array(store, name="a/c", data=VALUES).zarr_format == "3-draft2020"

    @pytest.mark.parametrize("zarr_format", ["3-draft2019", "3-draft2020"])
    def test_take_new_nodes_that_are_named_as_directories(self, zarr_format, tmp_path):
        written(tmp_path, zarr_format, path="a/b")
        for path in ("a/c", "d/e"):
            array = omnizarr.create_array(tmp_path / path, data=VALUES)
            assert (array.path, array.zarr_format) == (path, zarr_format)
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["data", "meta", "zarr.json"]

    @pytest.mark.parametrize("given", [None, "/", "."])
    @pytest.mark.parametrize(
        "entry",
        [
            {"metadata_encoding": "application/json"},
            {"metadata_encoding": "https://purl.org/zarr/spec/metadata/json/3.0"},
            {"metadata_encoding": URI},
            {"metadata_encoding": {"type": "json", "metadata_key_suffix": ".json"}},
        ],
        ids=["until August 2020", "July 2020", "September 2020", "November 2022"],
    )
    def test_what_is_written_to_new_arrays_of_older_variants_is_read(self, entry, given):
        values = {"zarr.json": json.dumps({"zarr_format": URI, "extensions": [], **entry}).encode()}
        options = {} if given is None else {"chunk_key_encoding": {"name": "v2", "separator": given}}
        array = omnizarr.create_array(values, name="a", data=VALUES, chunks=(2, 2), **options)
        array[0] = 77
        expected = VALUES.copy()
        expected[0] = 77
        np.testing.assert_array_equal(omnizarr.open(values)["a"][...], expected)
        assert array == omnizarr.open(values)["a"]

    @pytest.mark.parametrize("nth", range(1, 30))
    def test_do_not_begin_again_where_the_store_fails(self, nth):
        values = written({}, "3-draft2020", path="a/b")
        store = FaultyStore(MemoryStore(values))
        store.fail("get", nth)
        try:
            omnizarr.create_array(store, name="a/c", data=VALUES, zarr_format="3-draft2020")
        except errors.StoreError:
            assert not any("c" in key.removesuffix(".group.json").split("/") for key in values)
        assert [key for key in values if key.endswith("zarr.json")] == ["zarr.json"]

    def test_nodes_named_as_directories_are_not_created_twice(self, tmp_path):
        written(tmp_path, "3-draft2020", path="a/b")
        with pytest.raises(errors.ContainsArrayError):
            omnizarr.open_array(tmp_path / "a/b", mode="w-", shape=(1,), dtype="int8")
        replaced = omnizarr.open_array(tmp_path / "a/b", mode="w", shape=(1,), dtype="int8")
        assert omnizarr.open(tmp_path)["a/b"] == replaced

    @pytest.mark.parametrize("document", [b"null", b"[1", b'{"metadata": {}}'])
    def test_broken_consolidated_metadata_is_named_by_its_key(self, document):
        values = written({}, "3-draft2020", path="a/b")
        values["meta/root/consolidated/.zmetadata"] = document
        with pytest.raises(errors.ConsolidatedMetadataError) as caught:
            omnizarr.open_consolidated(values)
        assert caught.value.key == "meta/root/consolidated/.zmetadata"

    def test_empty_hierarchy_is_a_group_that_is_implied(self):
        assert omnizarr.open({"zarr.json": ENTRY}).metadata.implicit

    def test_unknown_extension_that_must_be_understood_stops_everything(self):
        extension = {"extension": "http://example.org/foo", "must_understand": True}
        entry = json.dumps({**json.loads(ENTRY), "extensions": [extension]}).encode()
        for path in ("", "a"):
            with pytest.raises(errors.MetadataError, match=r"example\.org/foo"):
                omnizarr.open({"zarr.json": entry, "meta/root/a.array.json": DRAFT_ARRAY}, path=path)

    def test_siblings_of_2019_differ_in_more_than_case(self):
        root = omnizarr.create_group({}, zarr_format="3-draft2019")
        root.create_array("foo", data=VALUES)
        with pytest.raises(errors.NodeNameError, match="foo"):
            root.create_array("FOO", data=VALUES)
        with pytest.raises(errors.NodeNameError, match="foo"):
            root.create_group("Foo")

    @pytest.mark.parametrize("entry", ["zarr.json", "sub/zarr.json"])
    def test_nodes_whose_names_gdal_allowed_are_listed(self, entry):
        names = ["...", "__x", "a+b", "my temp", "temp(K)", "temp\u00e9"]
        above = entry.removesuffix("zarr.json")
        values = {f"{above}meta/root/{name}.array.json": DRAFT_ARRAY for name in names}
        values |= {entry: ENTRY, f"{above}meta/root/g h/i j.array.json": DRAFT_ARRAY}
        group = omnizarr.open_group(values, path=above)
        assert [name for name, _ in group.members(max_depth=None)] == sorted([*names, "g h", "g h/i j"])
        assert group["temp\u00e9"][0] == 3
        group["my temp"].attrs["units"] = "K"
        assert omnizarr.open(values, path=f"{above}my temp").attrs["units"] == "K"

    def test_nodes_whose_names_lead_elsewhere_are_listed_but_cannot_be_read(self):
        values = {"zarr.json": ENTRY, "meta/root/..array.json": DRAFT_ARRAY, "meta/root/...array.json": DRAFT_ARRAY}
        found = dict(omnizarr.open_group(values).members())
        assert list(found) == [".", ".."]
        assert all(isinstance(node.error, errors.NodeNameError) for node in found.values())

    @pytest.mark.parametrize(
        "action",
        [
            lambda root: root.create_array("FOO/x", data=VALUES),
            lambda root: root.copy("foo", "FOO"),
            lambda root: root.copy("foo/a", "FOO/a"),
            lambda root: root.move("foo", "FOO"),
        ],
        ids=["group above", "copy", "group above a copy", "move"],
    )
    def test_siblings_of_2019_differ_however_they_come_to_be(self, action):
        root = omnizarr.create_group({}, zarr_format="3-draft2019")
        root.create_array("foo/a", data=VALUES)
        with pytest.raises(errors.NodeNameError, match="foo"):
            action(root)
        assert [name for name, _ in root.members(max_depth=None)] == ["foo", "foo/a"]

    def test_siblings_of_2020_may_differ_in_case_alone(self):
        root = omnizarr.create_group({}, zarr_format="3-draft2020")
        root.create_array("foo", data=VALUES)
        root.create_array("FOO", data=VALUES[:1])
        assert sorted(root.keys()) == ["FOO", "foo"]

    def test_are_copied_and_moved_key_by_key(self):
        store = written({}, "3-draft2020", path="a/b")
        root = omnizarr.open_group(store)
        root.copy("a", "x/y")
        root.move("a", "z")
        assert [name for name, _ in root.members(max_depth=None)] == ["x", "x/y", "x/y/b", "z", "z/b"]
        np.testing.assert_array_equal(root["x/y/b"][...], VALUES)
        np.testing.assert_array_equal(root["z/b"][...], VALUES)

    def test_consolidated_metadata_is_that_of_zarr_python(self):
        store = written({}, "3-draft2020", path="a/b")
        omnizarr.consolidate_metadata(store)
        document = json.loads(store["meta/root/consolidated/.zmetadata"])
        assert document["zarr_consolidated_format"] == 1
        assert "meta/root/a/b.array.json" in document["metadata"]
        root = omnizarr.open_consolidated(store)
        np.testing.assert_array_equal(root["a/b"][...], VALUES)


class TestKeysThatDocumentsLeaveOpen:
    @pytest.mark.parametrize("key", ["c", "c0"])
    def test_scalar_of_the_draft_of_2020(self, key):
        document = {**json.loads(DRAFT_ARRAY), "shape": [], "chunk_grid": {"type": "regular", "chunk_shape": []}}
        store = {
            "zarr.json": ENTRY,
            "meta/root/a.array.json": json.dumps(document).encode(),
            f"data/root/a/{key}": b"\x09\x00",
        }
        array = omnizarr.open(store, path="a")
        assert array[()] == 9
        array[...] = 11
        assert sorted(store)[:1] == [f"data/root/a/{key}"]
        assert omnizarr.open(store, path="a")[()] == 11

    def test_nested_chunks_of_zarr_before_2_8(self):
        document = {**json.loads(V2_ARRAY), "shape": [2, 2], "chunks": [1, 2], "dtype": "|u1"}
        del document["dimension_separator"]
        store = {".zarray": json.dumps(document).encode(), "0/0": b"\x01\x02", "1/0": b"\x03\x04"}
        array = omnizarr.open(store)
        assert array[...].tolist() == [[1, 2], [3, 4]]
        assert array.nchunks_initialized == 2
        array[1] = 9
        assert store["1/0"] == b"\x09\x09"
        assert set(store) == {".zarray", "0/0", "1/0"}


class TestNeighbours:
    def test_directory_of_arrays_may_hold_a_file_called_meta(self):
        store = {"a/meta": V1_META, "a/attrs": b"{}", "b/meta": b"these are notes, not JSON"}
        assert list(omnizarr.open(store).keys()) == ["a"]

    def test_implied_groups_may_have_names_that_other_formats_forbid(self):
        store = {"zarr.json": V3_GROUP, "sea level/a b/.zarray": V2_ARRAY}
        assert [path for path, _ in omnizarr.open(store).members(max_depth=None)] == ["sea level", "sea level/a b"]

    def test_pickle_of_zarr_0_3_is_named_and_never_read(self):
        with pytest.raises(errors.MetadataError, match=r"zarr 0\.3"):
            omnizarr.open({"__zmeta__": b"(dp0\nVshape\np1\n(I5\ntp2\ns."})


class TestRequestsOfAHierarchy:
    def test_opening_a_group_looks_for_copies_only_once_members_are_asked_for(self):
        values = {}
        omnizarr.create_group(values, zarr_format=2).create_array("a", data=VALUES)
        omnizarr.consolidate_metadata(values)
        store = FaultyStore(MemoryStore(values))
        root = omnizarr.open_group(store)
        assert [key for _, key in store.log] == ["zarr.json", ".zgroup", ".zattrs"]
        store.reset()
        assert root["a"].shape == (3, 4)
        assert [key for _, key in store.log] == [".zmetadata"]

    def test_opening_a_draft_takes_the_entry_point_and_the_document(self):
        values = written({}, "3-draft2020", path="a/b")
        assert requests(values, omnizarr.open_group) == ["zarr.json", "meta/root.group.json"]

    def test_null_is_no_document(self):
        with pytest.raises(errors.MetadataError, match="not an object"):
            omnizarr.open({"zarr.json": b"null"})


class TestBesideOthers:
    def test_entry_point_hides_no_neighbours(self):
        store = {"old/meta": V1_META, "old/attrs": b"{}"}
        omnizarr.create_array(store, name="new/a", data=VALUES, zarr_format="3-draft2020")
        assert "new/a/zarr.json" in store
        assert [path for path, _ in omnizarr.open(store).members(max_depth=None)] == ["new", "new/a", "old"]

    def test_root_of_a_draft_is_not_put_above_others(self):
        store = {"old/meta": V1_META, "old/attrs": b"{}"}
        with pytest.raises(errors.NotRepresentableError, match="would hide"):
            omnizarr.create_group(store, zarr_format="3-draft2020")
        assert len(store) == 2

    @pytest.mark.parametrize(("zarr_format", "most"), [(3, 12), (2, 16), ("3-draft2020", 9)])
    def test_creating_looks_at_each_place_once(self, zarr_format, most):
        store = FaultyStore(MemoryStore())
        root = omnizarr.create_group(store, zarr_format=zarr_format)
        root.create_group("g")
        store.reset()
        root.create_array("g/x", shape=(2,), dtype="i4")
        keys = [key for verb, key in store.log if verb == "get"]
        assert len(keys) == len(set(keys))
        assert len(store.log) <= most

    def test_copies_name_the_nodes_that_they_cannot_hold(self):
        store = {".zgroup": V2_GROUP, "a/.zarray": V2_ARRAY, "new/zarr.json": V3_GROUP}
        with pytest.warns(UserWarning, match=r"no place for nodes of other formats \('new'\)"):
            omnizarr.consolidate_metadata(store)
        assert "stale-consolidated-metadata" not in {finding.code for finding in omnizarr.check(store).findings}
        assert sorted(omnizarr.open_group(store, use_consolidated=False)) == ["a", "new"]

    def test_copies_are_held_against_documents_of_their_own_format(self):
        store = {}
        omnizarr.create_group(store, zarr_format=2).create_array("a", data=VALUES)
        omnizarr.consolidate_metadata(store)
        omnizarr.convert(store, in_place=True)
        assert "stale-consolidated-metadata" not in {finding.code for finding in omnizarr.check(store).findings}


@pytest.mark.parametrize(
    ("name", "free"),
    [
        ("zarr.json", False),
        (".zarray", False),
        (".zgroup", False),
        (".zmetadata", False),
        ("meta", False),
        ("__zmeta__", False),
        (".zattrs", True),
        ("attrs", True),
        ("c/0", True),
    ],
)
def test_place_is_free_without_the_documents_that_make_a_node(name, free):
    values = {f"a/{name}": b"{}", "b/zarr.json": b"{}"}
    assert detection.is_free(StorePath(MemoryStore(values), "a")) is free


def test_new_array_looks_for_what_is_in_its_way_at_once(tmp_path):
    class Counting(WrapperStore):
        rounds = 0

        @answers(verbs.has_any)
        def _has_any(self, prefix, names):
            self.rounds += 1
            return verbs.has_any(self.store, prefix, names)

    store = Counting(LocalStore(tmp_path))
    omnizarr.create_array(store, shape=(1,), dtype="i1")
    assert store.rounds == 1
