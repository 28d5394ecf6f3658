"""The facts about a hierarchy for the page, in every format; values come from NumPy and from the specifications."""

import json
import math
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import ContainsGroupError, NodeNotFoundError, SelectionError

pytest.importorskip("starlette", reason="the extra serve is not installed")
from omnizarr.storage import MemoryStore
from omnizarr.web.facts import MOST_VALUES, Dataset
from omnizarr.web.stopping import StoppedError
from tests.fakes import UnlistableStore, WatchedStore

FORMATS = (1, 2, 3, "3-draft2019", "3-draft2020")
TEMP = np.arange(24, dtype="f4").reshape(4, 6)


def opened(store, **options):
    return Dataset(omnizarr.open(store, mode="r", **options), "somewhere/x.zarr")


@pytest.fixture(params=FORMATS, ids=map(str, FORMATS))
def dataset(request):
    store = MemoryStore({})
    if request.param == 1:
        omnizarr.create_array(store, name="ocean/temp", data=TEMP, chunks=(2, 3), zarr_format=1, fill_value=0)
        return opened(store)
    root = omnizarr.create_group(store, zarr_format=request.param)
    root.create_array("ocean/temp", data=TEMP, chunks=(2, 3), attributes={"units": "K"}, fill_value=0)
    root.create_group("empty")
    return opened(store)


class TestTree:
    def test_groups_and_arrays_are_listed(self, dataset):
        assert dataset.tree("")["nodes"][-1] == {"path": "ocean", "name": "ocean", "kind": "group"}
        answer = dataset.tree("ocean")
        assert answer["nodes"] == [
            {"path": "ocean/temp", "name": "temp", "kind": "array", "shape": [4, 6], "dtype": "float32"}
        ]
        assert answer["total"] == 1
        assert answer["next"] is None

    def test_an_array_has_nothing_below(self, dataset):
        assert dataset.tree("ocean/temp")["nodes"] == []

    def test_pages_are_read_one_by_one(self):
        looked = []
        store = MemoryStore({})
        document = b'{"zarr_format": 3, "node_type": "group"}'
        store.set("zarr.json", document)
        for number in range(2000):
            store.set(f"n{number:05}/zarr.json", document)
        dataset = opened(WatchedStore(store, lambda _, key: looked.append(key)))
        looked.clear()
        answer = dataset.tree("", offset=1000, limit=100)
        assert [node["name"] for node in answer["nodes"]] == [f"n{number:05}" for number in range(1000, 1100)]
        assert (answer["total"], answer["next"]) == (2000, 1100)
        assert len(looked) < 500

    def test_the_last_page_has_no_next(self, dataset):
        total = dataset.tree("")["total"]
        assert dataset.tree("", offset=total - 1, limit=1)["next"] is None

    @pytest.mark.parametrize(("offset", "limit"), [(-1, 10), (0, 0), (0, 100_000)])
    def test_senseless_pages_are_refused(self, dataset, offset, limit):
        with pytest.raises(SelectionError):
            dataset.tree("", offset, limit)

    def test_what_cannot_be_read_is_listed_with_its_error(self):
        store = {}
        root = omnizarr.create_group(store)
        root["good"] = [1, 2]
        store["bad/zarr.json"] = b'{"zarr_format": 3, "node_type": "array", "shape": "no"}'
        nodes = {node["name"]: node for node in opened(store).tree()["nodes"]}
        assert nodes["good"]["kind"] == "array"
        assert nodes["bad"]["kind"] == "unreadable"
        assert "data_type is missing" in nodes["bad"]["error"]

    def test_paths_are_relative_to_what_was_opened(self):
        store = {}
        omnizarr.create_group(store)["a/b/c"] = [1]
        dataset = opened(store, path="a")
        assert dataset.tree()["nodes"] == [{"path": "b", "name": "b", "kind": "group"}]
        assert dataset.tree("b")["nodes"][0]["path"] == "b/c"
        assert dataset.info("b/c")["path"] == "b/c"

    @pytest.mark.parametrize("path", ["nothing", "ocean/temp/below"])
    def test_other_paths_are_not_found(self, dataset, path):
        with pytest.raises(NodeNotFoundError):
            dataset.tree(path)


class TestMembers:
    def test_rows_of_a_table(self):
        root = omnizarr.create_group({})
        root.create_array(
            "t", data=TEMP, dimension_names=["y", "x"], attributes={"units": "K", "long_name": "temperature"}
        )
        root.create_array("names", data=np.array(["a", "b"]))
        root.create_group("deep/er")
        answer = Dataset(root, "x").members()
        rows = {row["name"]: row for row in answer["nodes"]}
        assert (answer["total"], answer["next"]) == (3, None)
        assert rows["t"] == {
            "path": "t",
            "name": "t",
            "kind": "array",
            "shape": [4, 6],
            "dtype": "float32",
            "title": "temperature",
            "dimensions": ["y", "x"],
            "units": "K",
            "size": 96,
            "is_picture": True,
        }
        assert not rows["names"]["is_picture"]
        assert (rows["deep"]["kind"], rows["deep"]["is_picture"]) == ("group", False)

    def test_what_is_no_node_keeps_its_place(self):
        store = MemoryStore({})
        omnizarr.create_group(store).create_group("b")
        store.set("a/readme", b"text")
        answer = opened(store).members()
        assert [(row["name"], row["kind"]) for row in answer["nodes"]] == [("a", "nothing"), ("b", "group")]

    def test_each_node_is_read_once_for_the_tree_and_the_table(self):
        looked = []
        store = MemoryStore({})
        document = b'{"zarr_format": 3, "node_type": "group"}'
        store.set("zarr.json", document)
        for number in range(10_000):
            store.set(f"n{number:05}/zarr.json", document)
        dataset = opened(WatchedStore(store, lambda _, key: looked.append(key)))
        looked.clear()
        assert dataset.members("", 5000, 100)["nodes"][-1]["name"] == "n05099"
        assert dataset.tree("", 5000, 100)["total"] == 10_000
        read = [key for key in looked if key.endswith("/zarr.json")]
        assert sorted(read) == [f"n{number:05}/zarr.json" for number in range(5000, 5100)]

    def test_an_array_has_no_members(self, dataset):
        with pytest.raises(SelectionError, match="no members"):
            dataset.members("ocean/temp")


class TestSmall:
    def test_a_picture_has_the_proportions_of_its_array(self):
        root = omnizarr.create_group({})
        root["wide"] = np.eye(40, 400)
        root["tall"] = np.eye(400, 100)
        root["line"] = np.sin(np.arange(1000.0))
        dataset = Dataset(root, "x")

        def size(path):
            return struct.unpack(">II", dataset.small(path).data[16:24])

        assert size("wide")[0] > 2 * size("wide")[1]
        assert size("tall")[0] < size("tall")[1] <= 64
        assert size("line") == (96, 64)

    @pytest.mark.parametrize(("concurrency", "most"), [(1, 2048), (8, 64)], ids=["near", "far"])
    def test_few_chunks_are_read_however_many_there_are(self, monkeypatch, concurrency, most):
        features = replace(MemoryStore({}).features, concurrency=concurrency)
        monkeypatch.setattr(WatchedStore, "features", features)
        chunks = []
        store = WatchedStore(MemoryStore({}), lambda _, key: chunks.append(key) if "/c/" in f"/{key}" else None)
        root = omnizarr.create_group(store)
        root.create_array("a", shape=(10**6, 10**6), chunks=(100, 100), dtype="u1")
        root.create_array("b", shape=(10**12,), chunks=(1000,), dtype="u1")
        root.create_array("ones", shape=(10**15,), chunks=(1,), dtype="u1")
        root.create_array("some", shape=(3 * most,), chunks=(2,), dtype="u1")
        root.create_array("whole", shape=(2**15, 2**15), chunks=(2**15, 2**15), dtype="u1")
        dataset = Dataset(root, "x")
        chunks.clear()
        assert dataset.small("a") is not None
        assert 1 < len(chunks) <= most
        chunks.clear()
        for name in ("b", "ones", "some"):
            assert "of 1/" in dataset.small(name).note
            assert 1 < len(chunks) <= most
            chunks.clear()
        assert dataset.small("whole") is None  # one chunk of 1 GiB
        assert chunks == []

    @pytest.mark.parametrize("values", [np.float64(1), np.array(["a"]), np.zeros((0, 4)), np.zeros(2, "i4,f8")])
    def test_what_is_no_picture(self, values):
        root = omnizarr.create_group({})
        root.create_array("a", data=values)
        root.create_group("g")
        assert Dataset(root, "x").small("a") is None
        assert Dataset(root, "x").small("g") is None

    def test_the_picture_shows_the_values(self):
        root = omnizarr.create_group({})
        root["a"] = np.repeat([[0.0, 1.0]], 2, 0)
        data = Dataset(root, "x").small("a").data
        rows = np.frombuffer(zlib.decompress(data[41:-16]), np.uint8).reshape(2, 9)[:, 1:].reshape(2, 2, 4)
        assert rows[:, 0, :3].tolist() == [[0x44, 0x01, 0x54]] * 2  # both ends of viridis
        assert rows[:, 1, :3].tolist() == [[0xFD, 0xE7, 0x25]] * 2

    @pytest.mark.parametrize("place", [0, 123_456, 999_999])
    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_spike_of_a_long_line_is_seen(self, place, sign):
        data = np.zeros(1_000_000, "i2")
        data[place], data[::2] = sign * 1000, 1
        data[place] = sign * 1000
        root = omnizarr.create_group({})
        root.create_array("a", data=data, chunks=(10_000,))
        found = Dataset(root, "x").small("a")
        assert found.note == ""
        rows = zlib.decompress(found.data[41:-16])
        opacity = np.frombuffer(rows, np.uint8).reshape(64, 1 + 96 * 4)[:, 1:].reshape(64, 96, 4)[..., 3]
        heights = np.count_nonzero(opacity, axis=0)
        assert set(opacity[opacity > 0].tolist()) == {255}
        assert abs(int(heights.argmax()) - place * 96 // 1_000_000) <= 1
        assert heights.max() > 55 > 10 * np.median(heights)
        assert np.count_nonzero(heights > 55) >= min(2, 96 - place * 96 // 1_000_000)  # seen in a smaller size, too

    def test_what_is_read_of_a_longer_line_is_shown_and_told(self):
        store, data = MemoryStore({}), np.zeros(400_000, "i2")
        data[7] = 1000
        root = omnizarr.create_group(store)
        root.create_array("a", data=data, chunks=(100,))
        found = Dataset(root, "x").small("a")
        assert found.note == "smallest and largest of each 4167 elements, of 1/2 of them"
        opacity = (
            np.frombuffer(zlib.decompress(found.data[41:-16]), np.uint8).reshape(64, 385)[:, 1:].reshape(64, 96, 4)
        )
        assert np.count_nonzero(opacity[:, 0, 3]) > 55
        assert {*opacity[..., 3].ravel().tolist()} == {0, 110}


class TestSearch:
    def test_part_of_a_path_in_any_case(self, dataset):
        answer = dataset.search("N/TE")
        assert [node["path"] for node in answer["nodes"]] == ["ocean/temp"]
        assert not answer["more"]

    def test_nothing(self, dataset):
        assert dataset.search("salt") == {"nodes": [], "more": False}

    def test_a_walk_goes_on_where_it_was_stopped(self):
        root = omnizarr.create_group({})
        for number in range(5):
            root.create_group(f"g{number}")
        dataset = Dataset(root, "x")
        answers = iter([False, False, True])
        with pytest.raises(StoppedError):
            dataset.search("g", 9, lambda: next(answers))
        assert [node["path"] for node in dataset.search("g", 9)["nodes"]] == ["g0", "g1", "g2", "g3", "g4"]

    def test_a_limit(self):
        root = omnizarr.create_group({})
        for number in range(5):
            root.create_group(f"g{number}")
        dataset = Dataset(root, "x")
        answer = dataset.search("g", 3)
        assert [node["path"] for node in answer["nodes"]] == ["g0", "g1", "g2"]
        assert answer["more"]
        assert len(dataset.search("g", 5)["nodes"]) == 5
        assert not dataset.search("g", 5)["more"]


class TestInfo:
    def test_an_array(self, dataset):
        answer = dataset.info("ocean/temp")
        assert answer["kind"] == "array"
        facts = dict(answer["facts"])
        assert facts["Data type"] == "float32"
        assert facts["Shape"].startswith("4×6")
        assert facts["Chunks"] == "2×3 (24 B)"
        assert answer["storage"]["size"] == TEMP.nbytes
        assert (answer["storage"]["chunks"], answer["storage"]["chunks_stored"]) == (4, 4)
        assert answer["error"] is None
        array = answer["array"]
        assert (array["shape"], array["dtype"], array["chunks"], array["shards"]) == ([4, 6], "float32", [2, 3], None)
        assert (array["show"], array["view"], array["fill"]) == ("numbers", [0, 1], 0)

    def test_documents_are_as_they_are_stored(self):
        document = b'{"zarr_format":3,   "node_type":"group", "attributes":{"a":1}}'
        assert opened({"zarr.json": document}).info()["documents"] == {"zarr.json": document.decode()}

    def test_format_in_words(self, dataset):
        assert dataset.info("ocean/temp")["format"].startswith("Zarr v")

    def test_all_is_strict_json(self, dataset):
        json.dumps([dataset.info(path) for path in ("", "ocean", "ocean/temp")], allow_nan=False)

    def test_shards(self):
        root = omnizarr.create_group({})
        root.create_array("a", shape=(100, 100), chunks=(10, 10), shards=(50, 50), dtype="u1")[:10, :10] = 1
        answer = Dataset(root, "x").info("a")
        assert (answer["array"]["chunks"], answer["array"]["shards"]) == ([10, 10], [50, 50])
        assert (answer["storage"]["chunks"], answer["storage"]["chunks_stored"]) == (4, 1)

    def test_numbers_that_json_or_browsers_cannot_express(self):
        root = omnizarr.create_group({}, attributes={"big": 2**60, "small": 7})
        root.create_array("a", shape=(2,), dtype="f8", fill_value=math.nan)
        dataset = Dataset(root, "x")
        assert dataset.info()["attributes"] == {"big": str(2**60), "small": 7}
        assert dataset.info("a")["array"]["fill"] == "NaN"

    def test_an_unreadable_node_with_its_document(self):
        store = {}
        omnizarr.create_group(store)
        store["bad/zarr.json"] = b"{no json"
        answer = opened(store).info("bad")
        assert answer["kind"] == "unreadable"
        assert answer["documents"] == {"zarr.json": "{no json"}
        assert answer["error"]

    def test_an_array_of_an_unknown_codec(self):
        store = {}
        omnizarr.create_array(store, shape=(4,), chunks=(2,), dtype="i2", compressors=None)
        document = json.loads(bytes(store["zarr.json"]))
        document["codecs"].append({"name": "unheard-of"})
        store["zarr.json"] = json.dumps(document).encode()
        answer = opened(store).info()
        assert "unheard-of" in answer["error"]
        assert answer["array"]["shape"] == [4]

    @pytest.mark.parametrize(
        ("values", "show"),
        [
            (np.zeros(2, "?"), "numbers"),
            (np.zeros(2, "u8"), "numbers"),
            (np.zeros(2, "f2"), "numbers"),
            (np.zeros(2, "M8[s]"), "numbers"),
            (np.zeros(2, "c8"), "complex"),
            (np.zeros(2, "S3"), "table"),
            (np.array(["a", "b"], np.dtypes.StringDType()), "table"),
            (np.zeros(2, "i4,f8"), "table"),
        ],
    )
    def test_how_types_are_drawn(self, values, show):
        root = omnizarr.create_group({})
        root.create_array("a", data=values)
        assert Dataset(root, "x").info("a")["array"]["show"] == show

    @pytest.mark.parametrize("use", [None, False, True], ids=["default", "not used", "used"])
    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_a_group_is_consolidated_if_its_members_come_from_elsewhere_or_not(self, zarr_format, use):
        root = omnizarr.create_group({}, zarr_format=zarr_format)
        root.create_group("a")
        omnizarr.consolidate_metadata(root.store)
        facts = dict(Dataset(omnizarr.open(root.store, use_consolidated=use), "x").info()["facts"])
        assert facts["Consolidated"].partition(";")[0] == "yes"
        assert ("own documents" in facts["Consolidated"]) == (use is False)

    @pytest.mark.parametrize("zarr_format", FORMATS[1:])
    def test_a_group_without_consolidated_metadata_is_not_consolidated(self, zarr_format):
        root = omnizarr.create_group({}, zarr_format=zarr_format)
        root.create_group("a")
        assert dict(Dataset(root, "x").info()["facts"])["Consolidated"] == "no"

    @pytest.mark.parametrize(("zarr_format", "key"), [(2, ".zmetadata"), (3, "zarr.json")])
    def test_broken_consolidated_metadata_is_called_broken(self, zarr_format, key):
        store = MemoryStore({})
        omnizarr.create_group(store, zarr_format=zarr_format).create_group("a")
        omnizarr.consolidate_metadata(store)
        document = json.loads(bytes(store.get(key)))
        if zarr_format == 3:
            document["consolidated_metadata"]["metadata"] = 5
        else:
            document["metadata"] = 5
        store.set(key, json.dumps(document).encode())
        dataset = Dataset(omnizarr.open(store, use_consolidated=False), "x")
        assert dict(dataset.info()["facts"])["Consolidated"].startswith("broken: ")

    def test_counting_ends_where_it_would_take_long(self, monkeypatch):
        monkeypatch.setattr("omnizarr.web.facts._MOST_COUNTED", 3)
        root = omnizarr.create_group({})
        root.create_array("a", data=np.ones(10), chunks=(1,))
        answer = Dataset(root, "x").info("a")
        assert answer["storage"]["chunks_stored"] is None
        assert answer["storage"]["chunks"] == 10


class TestMeaning:
    @pytest.fixture(params=[2, 3])
    def climate(self, request):
        """Return a dataset as xarray writes it: netCDF's names, and CF's attributes."""
        root = omnizarr.create_group({}, zarr_format=request.param)

        def put(name, values, names, **attributes):
            if request.param == 2:
                root.create_array(name, data=values, attributes={"_ARRAY_DIMENSIONS": names, **attributes})
            else:
                root.create_array(name, data=values, dimension_names=names, attributes=attributes)

        put("time", np.arange(4) * 6.0, ["time"], units="hours since 2020-02-28 12:00", calendar="noleap")
        put("lat", np.array([-90.0, 0, 90]), ["lat"], units="degrees_north")
        put("eastward", np.arange(5, dtype="i2"), ["eastward"], axis="X", scale_factor=0.5, add_offset=10)
        put(
            "temp",
            np.zeros((4, 5, 3), "i2"),
            ["time", "eastward", "lat"],
            units="K",
            long_name="air temperature",
            scale_factor=[0.1],
            add_offset=273.15,
            missing_value=[-99, -98],
        )
        return Dataset(root, "x")

    def test_roles_and_coordinates(self, climate):
        array = climate.info("temp")["array"]
        assert [dimension["role"] for dimension in array["dimensions"]] == ["t", "x", "y"]
        assert [dimension["coordinate"] for dimension in array["dimensions"]] == ["time", "eastward", "lat"]
        assert array["view"] == [2, 1]

    def test_units_and_packing(self, climate):
        array = climate.info("temp")["array"]
        assert (array["units"], array["title"]) == ("K", "air temperature")
        assert (array["scale"], array["offset"]) == (0.1, 273.15)
        assert array["missing"][:2] == [-99, -98]

    def test_a_coordinate_has_none_itself(self, climate):
        assert climate.info("lat")["array"]["dimensions"][0]["coordinate"] is None

    def test_times_are_dates(self, climate):
        answer = climate.labels("temp", 0)
        assert answer == {
            "labels": ["2020-02-28T12:00", "2020-02-28T18:00", "2020-03-01", "2020-03-01T06:00"],  # no leap day
            "units": None,
            "numbers": [0, 6, 12, 18],
        }

    def test_packed_labels_are_unpacked(self, climate):
        assert climate.labels("temp", 1, 1, 5, 2)["labels"] == [10.5, 11.5]

    def test_labels_beyond_the_end_are_left_out(self, climate):
        assert climate.labels("temp", 2, 2, 99) == {"labels": [90.0], "units": "degrees_north"}
        assert climate.labels("temp", 2, 7, 99)["labels"] == []

    def test_without_coordinates_labels_count(self):
        root = omnizarr.create_group({})
        root.create_array("a", shape=(10**12,), dtype="u1")
        assert Dataset(root, "x").labels("a", 0, 5, 8) == {"labels": [5, 6, 7], "units": None}

    @pytest.mark.parametrize("arguments", [(3,), (-1,), (0, -1), (0, 0, 4, 0)])
    def test_senseless_labels_are_refused(self, climate, arguments):
        with pytest.raises(SelectionError):
            climate.labels("temp", *arguments)

    def test_too_many_labels_are_refused(self):
        root = omnizarr.create_group({})
        root.create_array("a", shape=(MOST_VALUES + 1,), dtype="u1")
        with pytest.raises(SelectionError, match="too many"):
            Dataset(root, "x").labels("a", 0)

    def test_coordinates_of_groups_above(self):
        root = omnizarr.create_group({})
        root.create_array("lat", data=[1.0, 2, 3], dimension_names=["lat"])
        root.create_array("deep/er/temp", shape=(3,), dtype="f4", dimension_names=["lat"])
        found = Dataset(root, "x").info("deep/er/temp")["array"]["dimensions"]
        assert found[0]["coordinate"] == "lat"

    def test_coordinates_along_two_dimensions(self):
        root = omnizarr.create_group({}, attributes={"coordinates": "depth"})
        names, named = ["time", "y", "x"], {"coordinates": "lat lon"}
        root.create_array("t", shape=(2, 3, 4), dtype="f4", dimension_names=names, attributes=named)
        root.create_array("lat", shape=(3, 4), dtype="f4", dimension_names=["y", "x"])
        east = {"units": "degrees_east"}
        root.create_array("lon", shape=(4, 3), dtype="f4", dimension_names=["x", "y"], attributes=east)
        root.create_array("depth", shape=(3,), dtype="f4", dimension_names=["y"], attributes={"positive": "down"})
        found = Dataset(root, "x").info("t")["array"]["auxiliaries"]
        assert found == [
            {"name": "lat", "path": "lat", "dimensions": [1, 2], "role": "y", "units": None},
            {"name": "lon", "path": "lon", "dimensions": [2, 1], "role": "x", "units": "degrees_east"},
            {"name": "depth", "path": "depth", "dimensions": [1], "role": "z", "units": None},
        ]
        assert Dataset(root["t"], "x").info("")["array"]["auxiliaries"] == []  # the page cannot ask for them

    def test_an_array_opened_by_its_own_path_has_coordinates(self, tmp_path):
        root = omnizarr.create_group(tmp_path / "x.zarr")
        root.create_array("t", shape=(3,), dtype="f4", dimension_names=["lat"])
        units = {"units": "degrees_north"}
        root.create_array("lat", data=[1.0, 2, 3], dimension_names=["lat"], attributes=units)
        dataset = Dataset(omnizarr.open(tmp_path / "x.zarr" / "t", mode="r"), "x")
        assert dataset.labels("", 0) == {"labels": [1, 2, 3], "units": "degrees_north"}
        assert dataset.info("")["array"]["dimensions"][0]["role"] == "y"

    def test_the_mask_of_v2_is_its_fill_value(self):
        root = omnizarr.create_group({}, zarr_format=2)
        named = {"_ARRAY_DIMENSIONS": ["x"]}
        root.create_array("a", shape=(3,), dtype="f4", fill_value=math.nan, attributes=named)
        root.create_array("b", shape=(3,), dtype="i4", fill_value=-1, attributes=named)
        root.create_array("c", shape=(3,), dtype="i4", fill_value=-1)
        dataset = Dataset(root, "x")
        assert [dataset.info(name)["array"]["missing"] for name in "abc"] == [["NaN"], [-1], []]

    def test_the_mask_of_v3_is_an_attribute(self):
        root = omnizarr.create_group({})
        # base64 of the double -9.0, as xarray writes it
        root.create_array("a", shape=(3,), dtype="f4", attributes={"_FillValue": "AAAAAAAAIsA="}, dimension_names=["x"])
        assert Dataset(root, "x").info("a")["array"]["missing"] == [-9.0]

    def test_attributes_of_other_kinds_do_no_harm(self):
        root = omnizarr.create_group({})
        strange = {
            "units": ["K"], "scale_factor": "two", "missing_value": {"a": 1}, "long_name": 7, "_FillValue": [[]],
            "axis": 3, "standard_name": [], "calendar": 5,
        }  # fmt: skip
        root.create_array("x", shape=(3,), dtype="f4", dimension_names=["x"], attributes=strange)
        root.create_array("a", shape=(3,), dtype="f4", dimension_names=["x"], attributes=strange)
        array = Dataset(root, "x").info("a")["array"]
        assert (array["units"], array["scale"], array["missing"], array["title"]) == (None, 1.0, [], None)
        assert Dataset(root, "x").labels("a", 0)["labels"] == [0.0, 0.0, 0.0]

    def test_pictures_of_red_green_and_blue(self):
        root = omnizarr.create_group({})
        root.create_array("rgb", shape=(5, 40, 30, 3), dtype="u1")
        root.create_array("flat", shape=(1, 40, 1, 30, 1), dtype="f4")
        dataset = Dataset(root, "x")
        assert dataset.info("rgb")["array"]["view"] == [1, 2]
        assert dataset.info("flat")["array"]["view"] == [1, 3]

    def test_scalars_and_lines(self):
        root = omnizarr.create_group({})
        root.create_array("scalar", data=3.5)
        root.create_array("line", data=[1, 2])
        dataset = Dataset(root, "x")
        assert dataset.info("scalar")["array"]["view"] == []
        assert dataset.info("line")["array"]["view"] == [0]


class TestMicroscopy:
    @pytest.fixture(params=["0.4", "0.5"])
    def image(self, request):
        """Return an image as the texts of OME-Zarr 0.4 and 0.5 want it."""
        scales = [
            {
                "path": path,
                "coordinateTransformations": [
                    {"type": "scale", "scale": [1, 2.0, size, size]},
                    {"type": "translation", "translation": [0, 0, 0.25, 10]},
                ],
            }
            for path, size in (("full", 0.5), ("half", 1.0))
        ]
        axes = [
            {"name": "c", "type": "channel"},
            {"name": "z", "type": "space", "unit": "micrometer"},
            {"name": "y", "type": "space", "unit": "micrometer"},
            {"name": "x", "type": "space", "unit": "micrometer"},
        ]
        members = {
            "multiscales": [{"version": request.param, "axes": axes, "datasets": scales}],
            "omero": {
                "channels": [
                    {"label": "DAPI", "color": "0000FF", "window": {"start": 5, "end": 900, "min": 0, "max": 65535}},
                    {"color": "00FF00"},
                ]
            },
        }
        is_new = request.param == "0.5"
        attributes = {"ome": {"version": "0.5", **members}} if is_new else members
        root = omnizarr.create_group({}, zarr_format=3 if is_new else 2)
        group = root.create_group("image", attributes=attributes)
        group.create_array("full", shape=(2, 3, 40, 60), dtype="u2")
        group.create_array("half", shape=(2, 3, 20, 30), dtype="u2")
        return Dataset(root, "x")

    def test_levels(self, image):
        levels = [{"path": "image/full", "shape": [2, 3, 40, 60]}, {"path": "image/half", "shape": [2, 3, 20, 30]}]
        assert image.info("image/full")["array"]["levels"] == levels
        assert image.info("image/half")["array"]["levels"] == levels

    def test_axes(self, image):
        found = image.info("image/half")["array"]
        assert [dimension["role"] for dimension in found["dimensions"]] == ["c", "z", "y", "x"]
        assert [dimension["step"] for dimension in found["dimensions"]] == [1, 2, 1, 1]
        assert [dimension["origin"] for dimension in found["dimensions"]] == [0, 0, 0.25, 10]
        assert found["dimensions"][2]["units"] == "micrometer"
        assert found["view"] == [2, 3]

    def test_labels_are_places(self, image):
        answer = image.labels("image/full", 3, 0, 4, 2)
        assert answer == {"labels": [10.0, 11.0], "units": "micrometer"}

    def test_channels(self, image):
        assert image.info("image/full")["array"]["channels"] == [
            {"label": "DAPI", "color": "0000FF", "window": [5.0, 900.0], "active": True},
            {"label": "channel 1", "color": "00FF00", "window": None, "active": True},
        ]

    def test_levels_in_groups_of_their_own_have_times_beside(self):
        """As multiscale-spatial-image writes them."""
        axes = [{"name": "t", "type": "time"}, *({"name": name, "type": "space"} for name in "yx")]
        scale = [{"type": "scale", "scale": [1, 0.5, 0.5]}]
        level = {"path": "scale0/image", "coordinateTransformations": scale}
        root = omnizarr.create_group(
            {}, attributes={"multiscales": [{"version": "0.4", "axes": axes, "datasets": [level]}]}
        )
        root.create_array("scale0/image", data=np.zeros((2, 3, 4)), dimension_names=["t", "y", "x"])
        days = {"units": "days since 2026-01-01"}
        root.create_array("scale0/t", data=[0, 1], dimension_names=["t"], attributes=days)
        root.create_array("scale0/y", data=[0, 1, 2], dimension_names=["y"], attributes=days)
        dataset = Dataset(root, "x")
        assert dataset.labels("scale0/image", 0)["labels"] == ["2026-01-01", "2026-01-02"]
        assert dataset.labels("scale0/image", 1)["labels"] == [0, 0.5, 1]
        assert "2026-01-02" in root["scale0/image"].show(1).page.notes

    def test_the_group_is_drawn_by_its_finest_level(self, image):
        assert image.info("image")["draw"] == "image/full"
        assert image.info("")["draw"] is None

    def test_a_fill_value_is_no_mask(self, image):
        assert image.info("image/full")["array"]["missing"] == []


class TestValues:
    def test_of_every_format(self, dataset):
        answer = dataset.values("ocean/temp", [1, [0, 6, 2]])
        assert answer == {"shape": [3], "fields": None, "values": [str(value) for value in TEMP[1, ::2]]}

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            (np.array([0.1, np.nan, -np.inf], "f4"), ["0.1", "nan", "-inf"]),
            (np.array([2**63], "u8"), ["9223372036854775808"]),
            (np.array([1 + 2j], "c8"), ["1+2j"]),
            (np.array(["2020-02-29", "NaT"], "M8[D]"), ["2020-02-29", "NaT"]),
            (np.array([b"ab", b"\xff"], "S2"), ["ab", r"\xff"]),
            (np.array(["<b>ä", ""], "U4"), ["<b>ä", ""]),
            (np.array([True, False]), ["True", "False"]),
            (np.array([b"\x01\x02"], "V2"), ["01 02"]),
        ],
    )
    def test_of_every_type(self, values, expected):
        root = omnizarr.create_group({})
        root.create_array("a", data=values)
        assert Dataset(root, "x").values("a", [[0, 10]])["values"] == expected

    def test_records(self):
        root = omnizarr.create_group({})
        root.create_array("a", data=np.array([(1, 0.5), (2, 1.5)], [("n", "i4"), ("x", "f4")]))
        answer = Dataset(root, "x").values("a", [[0, 2]])
        assert answer == {"shape": [2], "fields": ["n", "x"], "values": [["1", "0.5"], ["2", "1.5"]]}

    def test_objects(self):
        root = omnizarr.create_group({}, zarr_format=2)
        values = np.empty(2, object)
        values[:] = [{"a": [1]}, "text"]
        root.create_array("a", data=values, filters=[{"id": "json2", "encoding": "utf-8"}], dtype=object)
        assert Dataset(root, "x").values("a", [[0, 2]])["values"] == ['{"a": [1]}', "text"]

    def test_scalars(self):
        root = omnizarr.create_group({})
        root.create_array("a", data=3.5)
        assert Dataset(root, "x").values("a", []) == {"shape": [], "fields": None, "values": "3.5"}

    def test_long_text_is_cut(self):
        root = omnizarr.create_group({})
        root.create_array("a", data=np.array(["x" * 5000], np.dtypes.StringDType()))
        [text] = Dataset(root, "x").values("a", [[0, 1]])["values"]
        assert text == "x" * 999 + "…"

    def test_nothing(self, dataset):
        assert dataset.values("ocean/temp", [[2, 2], [0, 3]])["values"] == []
        assert dataset.values("ocean/temp", [[0, 2], [3, 3]])["values"] == [[], []]

    @pytest.mark.parametrize(
        "select", [[], [0], [0, 0, 0], [4, 0], [True, 0], ["0", 0], [[0], 0], [[0, 1, 0], 0], {"a": 1}, None, 5]
    )
    def test_selections_that_do_not_fit_are_refused(self, dataset, select):
        with pytest.raises(SelectionError):
            dataset.values("ocean/temp", select)

    def test_too_many_are_refused_before_they_are_read(self):
        root = omnizarr.create_group({})
        root.create_array("a", shape=(10**9, 10**9), dtype="f8")
        with pytest.raises(SelectionError, match="too many"):
            Dataset(root, "x").values("a", [[0, 10**9], [0, 10**9]])

    def test_groups_have_none(self, dataset):
        with pytest.raises(ContainsGroupError):
            dataset.values("ocean", [])


class TestChunks:
    def test_stored_and_missing(self):
        store = {}
        array = omnizarr.create_array(
            store, name="a", shape=(4, 6), chunks=(2, 3), dtype="i2", compressors=None, fill_value=0
        )
        array[2:, :3] = 1
        assert opened(store).chunks("a") == {
            "grid": [2, 2],
            "chunk_shape": [2, 3],
            "shards": False,
            "sizes": {"1,0": 12},
            "size_full": 12,
            "truncated": False,
            "note": None,
        }

    def test_of_every_format(self, dataset):
        assert sorted(dataset.chunks("ocean/temp")["sizes"]) == ["0,0", "0,1", "1,0", "1,1"]

    def test_a_grid_is_not_walked(self):
        root = omnizarr.create_group({})
        array = root.create_array("a", shape=(10**12, 10**12), chunks=(10, 10), dtype="u1")
        array[:20, :10] = 1
        answer = Dataset(root, "x").chunks("a")
        assert sorted(answer["sizes"]) == ["0,0", "1,0"]
        assert answer["grid"] == [10**11, 10**11]

    def test_a_map_ends(self, monkeypatch):
        monkeypatch.setattr("omnizarr.web.facts.MOST_CHUNKS", 3)
        root = omnizarr.create_group({})
        root.create_array("a", data=np.ones(10), chunks=(1,))
        answer = Dataset(root, "x").chunks("a")
        assert (len(answer["sizes"]), answer["truncated"]) == (3, True)

    def test_it_ends_when_nobody_waits(self):
        root = omnizarr.create_group({})
        root.create_array("a", data=np.ones(10), chunks=(1,))
        assert Dataset(root, "x").chunks("a", lambda: True)["truncated"]

    def test_a_scalar(self):
        root = omnizarr.create_group({})
        root.create_array("a", data=3.5)
        assert list(Dataset(root, "x").chunks("a")["sizes"]) == [""]

    def test_of_a_store_that_cannot_list(self):
        store = {}
        array = omnizarr.create_array(store, shape=(4,), chunks=(2,), dtype="i2", compressors=None, fill_value=0)
        array[:2] = 1

        array = omnizarr.open(UnlistableStore(MemoryStore(store)), mode="r")
        assert Dataset(array, "x").chunks("")["sizes"] == {"0": 4}


class TestNearest:
    def sparse(self, *stored, shape=(50, 20, 20), chunks=(1, 5, 5)):
        root = omnizarr.create_group({})
        array = root.create_array("a", shape=shape, chunks=chunks, dtype="f4", fill_value=0)
        for place in stored:
            array[place] = 1
        return Dataset(root, "x")

    def test_the_nearest_plane_comes_before_the_nearest_chunk(self):
        dataset = self.sparse((31, 17, 17), (40, 0, 0))
        answer = dataset.nearest("a", [30, 0, 0], [1, 2])
        assert answer == {"known": 2, "in_plane": False, "start": [31, 15, 15], "stop": [32, 20, 20]}
        assert dataset.nearest("a", [39, 0, 0], [1, 2])["start"] == [40, 0, 0]

    def test_the_chunk_of_the_plane_that_is_nearest(self):
        dataset = self.sparse((3, 0, 0), (3, 19, 19))
        answer = dataset.nearest("a", [3, 12, 12], [1, 2])
        assert (answer["in_plane"], answer["start"]) == (True, [3, 15, 15])

    def test_a_chunk_at_the_edge_ends_with_the_array(self):
        dataset = self.sparse((6, 6), shape=(7, 7), chunks=(5, 5))
        assert dataset.nearest("a", [0, 0], [0, 1])["stop"] == [7, 7]

    def test_nothing_is_stored(self):
        assert self.sparse().nearest("a", [0, 0, 0], [1, 2])["known"] == 0

    @pytest.mark.parametrize(
        ("at", "drawn"), [([0, 0], [1, 2]), ([0, 0, 20], [1, 2]), ([0, 0, 0], [3]), (["0", 0, 0], [1])]
    )
    def test_elements_that_do_not_fit(self, at, drawn):
        with pytest.raises(SelectionError):
            self.sparse().nearest("a", at, drawn)


class TestCheck:
    def test_in_order(self, dataset):
        assert dataset.check()["complete"]

    def test_a_broken_chunk_with_its_place(self):
        store = {}
        root = omnizarr.create_group(store)
        root.create_array("a", data=np.ones((4, 4), "i2"), chunks=(2, 2), compressors=None)
        store["a/c/1/0"] = b"short"
        [finding] = opened(store).check("a")["findings"]
        assert (finding["path"], finding["coords"], finding["severity"]) == ("a", [1, 0], "error")
        assert finding["code"] == "wrong-chunk-size"
        assert finding["key"] == "a/c/1/0"

    def test_data_is_decoded_if_wanted(self):
        store = {}
        root = omnizarr.create_group(store)
        root.create_array("a", data=np.ones(4, "i2"), chunks=(2,), compressors="gzip")
        store["a/c/1"] = b"no gzip at all"
        dataset = opened(store)
        assert dataset.check("a")["findings"] == []
        assert [finding["coords"] for finding in dataset.check("a", data=True)["findings"]] == [[1]]

    def test_it_ends_when_nobody_waits(self, dataset):
        with pytest.raises(StoppedError):
            dataset.check(stop=lambda: True)


class TestNetCDF:
    def test_dimensions_of_nczarr(self):
        store = {}
        with omnizarr.netcdf.Dataset(store, "w") as file:
            file.createDimension("lat", 3)
            file.createVariable("lat", "f8", ("lat",))[:] = [1, 2, 3]
            file.createVariable("temp", "i2", ("lat",))[:] = [4, 5, 6]
            file["lat"].units = "degrees_north"
        dataset = opened(store)
        [dimension] = dataset.info("temp")["array"]["dimensions"]
        assert (dimension["name"], dimension["role"], dimension["coordinate"]) == ("lat", "y", "lat")
        assert dataset.labels("temp", 0) == {"labels": [1.0, 2.0, 3.0], "units": "degrees_north"}
        assert dataset.values("temp", [[0, 3]])["values"] == ["4", "5", "6"]


class TestLine:
    def test_a_spike_among_a_million(self):
        data = np.full(1_000_000, 7, "i2")
        data[654_321], data[2000:3000] = 900, -1
        root = omnizarr.create_group({})
        attributes = {"scale_factor": 0.5, "missing_value": -1}
        root.create_array("v", data=data, chunks=(10_000,), attributes=attributes)
        found = Dataset(root, "memory").line("v", 0, [0])
        step = found["step"]
        assert len(found["low"]) == len(found["high"]) == -(-1_000_000 // step) <= 4096
        assert [place for place, value in enumerate(found["high"]) if value not in (3.5, None)] == [654_321 // step]
        assert found["high"][654_321 // step] == 450
        assert [place for place, value in enumerate(found["low"]) if value is None] == [9, 10, 11]  # of 245 elements
        assert (found["share"], found["error"]) == (1, None)

    def test_elements_in_bins_of_one(self):
        array = omnizarr.create_array({}, data=np.array([[1, 2, 3], [4, 0, 6]], "i4"), fill_value=0)
        dataset = Dataset(array, "memory")
        found = dataset.line("", 1, [1, 2], 1)
        assert (found["low"], found["high"]) == ([0, 6], [0, 6])
        assert dataset.line("", 1, [1, 2], 1, fill_is_missing=True)["low"] == [None, 6]
        assert dataset.line("", 0, [0, 0], step=2)["low"] == [1]
        assert dataset.line("", 1, [1, 0], 2, 2)["low"] == []

    def test_errors_of_a_line_are_worded_for_the_page(self, tmp_path):
        array = omnizarr.create_array(tmp_path / "x", data=np.arange(6.0), chunks=(2,))
        array.store.set("c/1", b"broken")
        found = Dataset(omnizarr.open(tmp_path / "x", mode="r"), "x").line("", 0, [[0, 6]])
        assert "c/1" in found["error"]
        assert "=" not in found["error"].partition("; ")[2], found["error"]  # no keyword of Python

    @pytest.mark.parametrize(
        ("part", "value"), [("magnitude", 5), ("real", 3), ("imaginary", -4), ("phase", np.arctan2(-4, 3)), ("", 5)]
    )
    def test_parts_of_complex_numbers(self, part, value):
        array = omnizarr.create_array({}, data=np.array([3 - 4j]))
        assert Dataset(array, "memory").line("", 0, [0], part=part)["low"] == [pytest.approx(value)]

    def test_broken_chunks_are_left_out(self):
        store = {}
        array = omnizarr.create_array(store, data=np.arange(20.0), chunks=(10,), compressors="gzip")
        store["c/0"] = b"no gzip"
        found = Dataset(array, "memory").line("", 0, [0], step=5)
        assert found["low"] == [None, None, 10, 15]
        assert "gzip" in found["error"]

    @pytest.mark.parametrize("asked", [{"dimension": 1}, {"at": [0, 0]}, {"at": 3}, {"step": 0}, {"start": -1}])
    def test_it_must_fit(self, asked):
        array = omnizarr.create_array({}, data=np.arange(20.0))
        with pytest.raises(SelectionError):
            Dataset(array, "memory").line("", **{"dimension": 0, "at": [0], **asked})
        with pytest.raises(SelectionError, match="numbers"):
            Dataset(omnizarr.create_array({}, data=np.array(["a"])), "memory").line("", 0, [0])

    def test_it_stops(self):
        array = omnizarr.create_array({}, data=np.arange(20.0))
        with pytest.raises(StoppedError):
            Dataset(array, "memory").line("", 0, [0], gone=lambda: True)


class TestMaps:
    """Expected places are those of the transform: ``x = 500000 + 100 * (column + 0.5)``."""

    @staticmethod
    def described(code, transform, **more):
        attributes = {"spatial:dimensions": ["y", "x"], "spatial:transform": transform, "proj:code": code, **more}
        store = MemoryStore({})
        omnizarr.create_array(store, shape=(4, 6), dtype="u1", dimension_names=("y", "x"), attributes=attributes)
        dataset = opened(store)
        return dataset, dataset.info("")

    def test_axes_have_the_places_and_units_that_attributes_say(self):
        dataset, found = self.described("EPSG:32633", [100.0, 0, 500000.0, 0, -50.0, 5000000.0])
        y, x = found["array"]["dimensions"]
        assert (x["origin"], x["step"], x["units"], y["origin"], y["step"]) == (500050.0, 100.0, "m", 4999975.0, -50.0)
        assert found["array"]["place"] == {"crs": "EPSG:32633", "bounds": [500000.0, 4999800.0, 500600.0, 5000000.0]}
        assert dataset.labels("", 1, 4) == {"labels": [500450.0, 500550.0], "units": "m"}
        assert ["CRS", "EPSG:32633"] in found["facts"]

    @pytest.mark.parametrize(("code", "degrees"), [("EPSG:4326", True), ("OGC:CRS84", True), ("EPSG:3857", False)])
    def test_longitudes_and_latitudes_are_those_of_geographic_systems(self, code, degrees):
        _, found = self.described(code, [1.0, 0, 10.0, 0, -1.0, 50.0], **{"spatial:registration": "node"})
        y, x = found["array"]["dimensions"]
        assert (y["units"], x["units"]) == (("degrees_north", "degrees_east") if degrees else ("m", "m"))
        assert (y["origin"], x["origin"], y["direction"]) == (50.0, 10.0, "up")

    def test_axes_of_a_rotated_map_count(self):
        _, found = self.described("EPSG:32633", [8.0, 2.0, 400.0, 1.0, -9.0, 700.0])
        assert [each["step"] for each in found["array"]["dimensions"]] == [None, None]
        assert found["array"]["place"]["bounds"] == [400.0, 664.0, 456.0, 706.0]

    def test_coordinates_that_are_there_say_it(self):
        store = MemoryStore({})
        root = omnizarr.create_group(store, attributes={"proj:code": "EPSG:4326"})
        for name in ("lat", "lon"):
            root.create_array(name, data=np.arange(4.0), dimension_names=(name,))
        root.create_array("t", shape=(4, 4), dtype="f4", dimension_names=("lat", "lon"))
        found = opened(store).info("t")["array"]
        assert [each["coordinate"] for each in found["dimensions"]] == ["lat", "lon"]
        assert found["place"] == {"crs": "EPSG:4326", "bounds": None}


class TestOptional:
    DATA = np.ma.masked_greater(np.arange(24, dtype="i4").reshape(4, 6), 20)

    @pytest.fixture
    def masked(self):
        store = MemoryStore({})
        omnizarr.create_array(store, data=self.DATA, dtype="optional[int32]", chunks=(2, 3))
        return opened(store)

    def test_missing_elements_are_no_numbers(self, masked):
        found = masked.info("")["array"]
        assert (found["show"], found["dtype"], found["type"]) == ("numbers", "float64", "optional[int32]")
        assert masked.values("", [3, [0, 6, 1]])["values"] == ["18", "19", "20", *["missing"] * 3]
        assert masked.line("", 1, [3, 0])["low"] == [18, 19, 20, None, None, None]

    def test_integers_that_float64_does_not_hold_are_a_table(self):
        store = MemoryStore({})
        omnizarr.create_array(store, data=self.DATA.astype("i8"), dtype="optional[int64]")
        dataset = opened(store)
        assert dataset.info("")["array"]["show"] == "table"
        assert dataset.values("", [3, [2, 4, 1]])["values"] == ["20", "missing"]


def test_wells_of_a_plate_have_their_places():
    store = MemoryStore({})
    wells = [{"path": "A/2", "rowIndex": 0, "columnIndex": 1}, {"path": "B/1"}, {"path": "Z/9"}, {"path": 3}]
    plate = {"rows": [{"name": "A"}, {"name": "B"}], "columns": [{"name": "1"}, {"name": "2"}], "wells": wells}
    root = omnizarr.create_group(store)
    root.create_group("screen", attributes={"ome": {"version": "0.5", "plate": plate}})
    dataset = opened(store)
    assert dataset.info("screen")["plate"] == {
        "rows": ["A", "B"],
        "columns": ["1", "2"],
        "wells": [{"path": "screen/A/2", "row": 0, "column": 1}, {"path": "screen/B/1", "row": 1, "column": 0}],
    }
    assert dataset.info("")["plate"] is None


def test_labels_that_can_be_drawn_over_an_image_are_named():
    store = MemoryStore({})
    root = omnizarr.create_group(store)
    for path, shape, names in (
        ("image", (3, 8, 8), "cyx"),
        ("image/labels/cells", (4, 4), "yx"),
        ("image/labels/turned", (4, 4), "zq"),
        ("image/labels/blurred", (4, 4), "yx"),
    ):
        axes = [{"name": name, "type": "space"} for name in names]
        scale = [{"type": "scale", "scale": [1.0] * len(names)}]
        image = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": scale}]}
        root.create_group(path, attributes={"ome": {"version": "0.5", "multiscales": [image]}})
        root.create_array(
            f"{path}/0", shape=shape, dtype="f4" if "blurred" in path else "u2", dimension_names=list(names)
        )
    listed = ["cells", "turned", "blurred", "nowhere", 3]
    root["image/labels"].attrs["ome"] = {"version": "0.5", "labels": listed}
    (found,) = opened(store).info("image/0")["array"]["labels"]
    assert found == {
        "name": "cells",
        "path": "image/labels/cells/0",
        "dtype": "uint16",
        "shape": [4, 4],
        "dimensions": [1, 2],
        "levels": [{"path": "image/labels/cells/0", "shape": [4, 4]}],
        "colours": {},
    }
