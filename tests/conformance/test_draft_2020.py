"""The Zarr v3 draft of October 2020, sentence by sentence: hierarchies written by hand from the text."""

import gzip

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.stores import MemoryStore
from tests.conformance.drafts import ELSEWHERE, Draft, DraftContract, grid, pointers_of_notes
from tests.conformance.raw import document, keys, store, without
from tests.fakes import FaultyStore, UnlistableStore

pytestmark = pytest.mark.rules

FORMAT = "3-draft2020"
URI = "https://purl.org/zarr/spec/protocol/core/3.0"
GZIP = "https://purl.org/zarr/spec/codec/gzip/1.0"
ENTRY = {"zarr_format": URI, "metadata_encoding": URI, "metadata_key_suffix": ".json", "extensions": []}
GROUP = {"attributes": {}}
ARRAY = {
    "shape": [4, 6],
    "data_type": "u1",
    "chunk_grid": {"type": "regular", "chunk_shape": [2, 3], "separator": "/"},
    "chunk_memory_layout": "C",
    "fill_value": 7,
    "extensions": [],
    "attributes": {},
}
ROWS = {
    "shape": [10000, 1000],
    "data_type": "<f8",
    "chunk_grid": {"type": "regular", "chunk_shape": [1000, 100], "separator": "/"},
    "chunk_memory_layout": "C",
    "compressor": {"codec": GZIP, "configuration": {"level": 1}},
    "fill_value": "NaN",
    "extensions": [],
    "attributes": {"foo": 42, "bar": "apples", "baz": [1, 2, 3, 4]},
}
DRAFT = Draft(
    name=FORMAT,
    entry=ENTRY,
    group=GROUP,
    array=ARRAY,
    rows=ROWS,
    suffix=".json",
    chunks="data/root/",
    key=lambda *coords: "c" + "/".join(map(str, coords)),
)
hierarchy, opened, refused, create = DRAFT.hierarchy, DRAFT.opened, DRAFT.refused, DRAFT.create
TIMES = {
    **ROWS,
    "data_type": {
        "extension": "https://purl.org/zarr/spec/protocol/extensions/datetime-dtypes/1.0",
        "type": "<M8[ns]",
        "fallback": "<i8",
    },
    "fill_value": None,
    "attributes": {},
}
ORDERS = ("<", ">")
TYPES = ["bool", "i1", "u1", *(o + kind + str(n) for kind in "iu" for n in (2, 4, 8) for o in ORDERS)]


class TestWhatBothDraftsSay(DraftContract):
    @pytest.fixture
    def draft(self):
        return DRAFT


def refused_entry(entry, kind=errors.MetadataError):
    with pytest.raises(kind) as caught:
        omnizarr.open(hierarchy({"meta/root.array.json": ARRAY}, entry))
    return caught.value.pointer


# Introduction and concepts


@pytest.mark.parametrize("count", [1, 30])
def test_opening_takes_few_requests_however_large_the_hierarchy(count):
    arrays = {f"meta/root/foo/a{number}.array.json": ARRAY for number in range(count)}
    made = FaultyStore(hierarchy({"meta/root.group.json": GROUP, **arrays}))
    root = omnizarr.open(made)
    assert len(made.log) <= 6
    made.log.clear()
    root["foo/a0"]
    assert len(made.log) <= 2
    assert not [verb for verb, _ in made.log if "list" in verb]


def test_path_of_a_group_may_be_typed_with_a_slash_at_its_end():
    root = omnizarr.open(hierarchy({"meta/root.group.json": GROUP, "meta/root/foo.group.json": GROUP}))
    assert root["foo/"].name == root["/foo"].name == "/foo"


# Node names


def test_names_are_case_sensitive():
    made = MemoryStore()
    root = omnizarr.create_group(made, zarr_format=FORMAT)
    root.create_group("foo", attributes={"is": "foo"})
    root.create_group("FOO", attributes={"is": "FOO"})
    assert [(name, node.attrs["is"]) for name, node in omnizarr.open(made).items()] == [("FOO", "FOO"), ("foo", "foo")]


# Data types


@pytest.mark.parametrize("name", ["|i1", "|u1", "|b1", "<c8", "float64"])
def test_identifiers_of_other_drafts_are_read_with_a_note(name):
    value = [0, 0] if name == "<c8" else 0
    assert "/data_type" in pointers_of_notes(opened(data_type=name, fill_value=False if name == "|b1" else value))


@pytest.mark.parametrize("fallback", ["u1", "r8", "bool"])
def test_fallback_means_a_data_type_that_is_not_known(fallback):
    data_type = {"extension": ELSEWHERE, "type": {"any": ["JSON"]}, "fallback": fallback}
    array = opened({"c0": b"\1"}, shape=[1], data_type=data_type, chunk_grid=grid(1), fill_value=None)
    assert array[...].tobytes() == b"\1"
    assert array.documents()["array"]["data_type"] == data_type


# Chunk grids


@pytest.mark.parametrize("separator", ["/", "."])
def test_chunks_have_keys_of_ascii_that_no_other_has(separator):
    grid_ = grid(1, 1, separator=separator)
    made = hierarchy({"meta/root.array.json": {**ARRAY, "shape": [12, 12], "chunk_grid": grid_}})
    omnizarr.open(made)[...] = 1
    chunks = [key for key in keys(made) if key.startswith("data/")]
    assert len(set(chunks)) == 144
    assert all(key.isascii() for key in chunks)


def test_last_chunk_of_the_text_hangs_over_the_edge():
    made = MemoryStore()
    create(made, shape=(10, 200, 3000), dtype="u1", chunks=(5, 20, 400), compressors=None)[9, 199, 2999] = 1
    chunk = np.frombuffer(bytes(made.get("data/root/c1/9/7")), "u1").reshape(5, 20, 400)
    assert np.argwhere(chunk).tolist() == [[4, 19, 199]]


def test_element_of_the_text_is_in_its_chunk():
    chunk = np.zeros((5, 20, 400), "u1")
    chunk[2, 10, 100] = 42
    array = opened({"c1/7/2": chunk.tobytes()}, shape=[10, 200, 3000], chunk_grid=grid(5, 20, 400), fill_value=0)
    assert array[7, 150, 900] == 42
    assert np.argwhere(array[...]).tolist() == [[7, 150, 900]]


@pytest.mark.parametrize(
    ("separator", "key"), [({}, "c1/23/45"), ({"separator": "/"}, "c1/23/45"), ({"separator": "."}, "c1.23.45")]
)
def test_chunk_1_23_45_has_the_key_of_the_text(separator, key):
    array = opened({key: b"\x2a"}, shape=[2, 24, 46], chunk_grid=grid(1, 1, 1, **separator))
    assert array[1, 23, 45] == 42
    assert (array[...] == 42).sum() == 1


def test_chunk_of_a_scalar_is_c():
    assert opened({"c": b"\x2a"}, shape=[], chunk_grid=grid())[()] == 42
    made = MemoryStore()
    create(made, shape=(), dtype="u1")[...] = 42
    assert [key for key in keys(made) if key.startswith("data/")] == ["data/root/c"]


# Memory layouts and codecs


def test_parameters_that_no_specification_declares_are_refused():
    compressor = {"codec": GZIP, "configuration": {"level": 1, "colour": "red"}}
    with pytest.raises(errors.MetadataError, match="colour"):
        opened(compressor=compressor)[...]


def test_codecs_may_lose_something():
    filters = {"filters": [{"id": "bitround", "keepbits": 2}]}  # where zarr-python keeps them
    array = opened(data_type="<f4", attributes=filters)
    array[...] = 1.9
    assert (array[...] == 2).all()


def test_compressor_that_is_unknown_is_named():
    with pytest.raises(errors.UnknownCodecError, match="rot13"):
        opened(compressor={"codec": "https://purl.org/zarr/spec/codec/rot13/1.0"})[...]


# Entry point


def test_a_hierarchy_has_an_entry_point():
    made = MemoryStore()
    omnizarr.create_group(made, zarr_format=FORMAT)
    assert document(made, "zarr.json") == ENTRY
    with pytest.raises(errors.NodeNotFoundError):
        omnizarr.open(store({"meta/root.group.json": GROUP}))


@pytest.mark.parametrize("broken", [[ENTRY], "entry", 3, without(ENTRY, "metadata_encoding")])
def test_entry_point_is_one_object_with_the_names_of_the_text(broken):
    refused_entry(broken)


def test_extension_that_must_be_understood_and_is_not_known_ends_everything():
    extension = {"extension": ELSEWHERE, "must_understand": True}
    with pytest.raises(errors.UnknownExtensionError, match=ELSEWHERE):
        omnizarr.open(hierarchy({"meta/root.array.json": ARRAY}, {**ENTRY, "extensions": [extension]}))
    with pytest.raises(errors.UnknownExtensionError, match=ELSEWHERE):
        opened(extensions=[extension])


def test_entry_point_of_json_documents():
    made = hierarchy({"meta/root.group.json": GROUP, "meta/root/a.array.json": ARRAY})
    root = omnizarr.open(made)
    assert root.zarr_format == FORMAT
    root.create_group("b")
    root.attrs["c"] = 1
    assert document(made, "zarr.json") == ENTRY
    assert list(root) == ["a", "b"]


def test_entry_point_with_an_extension_that_may_be_ignored():
    extension = {"extension": ELSEWHERE, "must_understand": False, "configuration": {"foo": "bar"}}
    entry = {**ENTRY, "extensions": [extension]}
    made = hierarchy({"meta/root.group.json": GROUP, "meta/root/a.array.json": ARRAY}, entry)
    root = omnizarr.open(made)
    assert root["a"][0, 0] == 7
    root.create_group("b")
    assert document(made, "zarr.json") == entry


# Array metadata


def test_an_array_has_a_document():
    chunks = {"data/root/a/c0/0": bytes(6)}
    with pytest.raises(errors.NodeNotFoundError):
        omnizarr.open_array(hierarchy(chunks), path="a")
    made = hierarchy({"meta/root/a.array.json": ARRAY, **chunks})
    assert omnizarr.open_array(made, path="a")[0].tolist() == [0, 0, 0, 7, 7, 7]


@pytest.mark.parametrize("name", ["extensions", "attributes"])
def test_array_without_another_mandatory_name_is_read_with_a_note(name):
    array = omnizarr.open(hierarchy({"meta/root.array.json": without(ARRAY, name)}))
    assert f"/{name}" in pointers_of_notes(array)


def test_regular_grid_of_2_by_5():
    array = opened(shape=[4, 10], chunk_grid={"type": "regular", "chunk_shape": [2, 5], "separator": "/"})
    assert (array.chunks, array.cdata_shape) == ((2, 5), (2, 2))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("chunk_grid", errors.UnknownChunkGridError), ("chunk_memory_layout", errors.UnknownExtensionError)],
)
def test_grid_or_layout_of_an_unknown_extension_is_kept_and_not_read(name, kind):
    value = {"extension": ELSEWHERE, "type": {"any": "JSON"}}
    array = opened(**{name: value})
    assert array.documents()["array"][name] == value
    with pytest.raises(kind, match=ELSEWHERE):
        array[...]


# Fill values


@pytest.mark.parametrize("name", TYPES[1:])
def test_fill_value_of_an_integer_type_is_an_integer_in_its_range(name):
    limits = np.iinfo(name)
    for value in (limits.min - 1, limits.max + 1, 0.5, "one", True, [1]):
        assert refused(data_type=name, fill_value=value) == "/fill_value"
    for value in (int(limits.min), int(limits.max)):
        array = opened(data_type=name, fill_value=value)
        assert array[0, 0] == value
        assert pointers_of_notes(array) == []
    assert pointers_of_notes(opened(data_type=name, fill_value="1")) == ["/fill_value"]


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("u1", "0x2a", 42),
        ("u1", "0b00101010", 42),
        ("<i2", "0xffff", -1),
        ("<u4", "0x00000100", 256),
        ("<f4", "0x3f800000", 1.0),
        ("<f4", "0b00111111100000000000000000000000", 1.0),
        ("<f8", "0xbff0000000000000", -1.0),
        ("<f8", "+Infinity", np.inf),
        ("<f8", "-Infinity", -np.inf),
    ],
)
def test_fill_value_in_digits_of_bits(name, value, meant):
    assert opened(data_type=name, fill_value=value)[0, 0] == meant


@pytest.mark.parametrize(
    "value", ["0x1", "0x001", "0b1", "0b000000001", "0x", "0b", "0xzz", "0b22222222", "2a", "0x+a"]
)
def test_fill_value_in_digits_has_all_of_them(value):
    assert refused(data_type="u1", fill_value=value) == "/fill_value"


# Attributes, groups and examples


@pytest.mark.parametrize("broken", [[], "foo", 1, [["foo", 42]]])
def test_attributes_are_an_object(broken):
    assert refused(attributes=broken) == "/attributes"
    with pytest.raises(errors.MetadataError) as caught:
        omnizarr.open(hierarchy({"meta/root.group.json": {"attributes": broken}}))
    assert caught.value.pointer == "/attributes"


def test_array_of_an_extension_data_type():
    counts = np.arange(100_000, dtype="<i8").reshape(1000, 100)
    made = hierarchy({"meta/root/a.array.json": TIMES, "data/root/a/c0/0": gzip.compress(counts.tobytes())})
    array = omnizarr.open(made)["a"]
    np.testing.assert_array_equal(array[:1000, :100].view("<i8"), counts)
    assert array.dtype in {np.dtype("<M8[ns]"), np.dtype("<i8")}
    assert array.documents()["array"] == TIMES


def test_document_of_a_group_has_attributes():
    made = MemoryStore()
    omnizarr.create_group(made, zarr_format=FORMAT)
    assert document(made, "meta/root.group.json") == {"attributes": {}}
    group = omnizarr.open(hierarchy({"meta/root.group.json": {}}))
    assert pointers_of_notes(group) == ["/attributes"]


def test_trailing_comma_of_the_printed_group_is_not_json():
    with pytest.raises(errors.MetadataError, match="JSON"):
        omnizarr.open(hierarchy({"meta/root.group.json": b'{"attributes": {"spam": "ham", "eggs": 42,}}'}))


def test_entry_point_is_json():
    for broken in (b"\xa4", b"{'zarr_format': 1}", b""):
        with pytest.raises(errors.MetadataError, match=r"RFC 8259|JSON"):
            omnizarr.open(store({"zarr.json": broken, "meta/root.group.json": GROUP}))


def test_documents_of_nodes_are_json():
    made = MemoryStore()
    root = omnizarr.create_group(made, zarr_format=FORMAT)
    root.create_array("a", shape=(2,), dtype="f4", fill_value=np.nan, attributes={"b": 1})
    assert document(made, "meta/root/a.array.json")["fill_value"] == "NaN"
    for broken in (b"\xa4", b"{'attributes': {}}", b""):
        with pytest.raises(errors.MetadataError, match=r"RFC 8259|JSON"):
            omnizarr.open(hierarchy({"meta/root.group.json": broken}))


# Storage


def test_paths_have_those_above_them():
    root = omnizarr.open(hierarchy({"meta/root/foo/bar.array.json": ARRAY}))
    assert [above.path for above in root["foo/bar"].store_path.ancestors()] == ["", "foo"]


def test_documents_are_under_the_keys_of_the_table():
    made = MemoryStore()
    root = omnizarr.create_group(made, zarr_format=FORMAT)
    root.create_group("foo/bar")
    root.create_array("foo/baz", shape=(1,), dtype="u1")
    assert keys(made) == [
        "meta/root.group.json",
        "meta/root/foo.group.json",
        "meta/root/foo/bar.group.json",
        "meta/root/foo/baz.array.json",
        "zarr.json",
    ]
    alone = MemoryStore()
    create(alone, data=np.ones((1, 1), "u1"))
    assert keys(alone) == ["data/root/c0/0", "meta/root.array.json", "zarr.json"]
    array = omnizarr.open(hierarchy({"meta/root.group.json": GROUP, "meta/root/foo.array.json": ARRAY}))["foo"]
    assert isinstance(array, omnizarr.Array)


def test_groups_are_implied_by_what_is_below():
    made = hierarchy({"meta/root/foo/bar.group.json": GROUP, "meta/root/foo/baz/qux.array.json": ARRAY})
    root = omnizarr.open(made)
    assert list(root) == ["foo"]
    assert list(root["foo"]) == ["bar", "baz"]
    assert isinstance(root["foo/baz"], omnizarr.Group)
    assert isinstance(root["foo/baz/qux"], omnizarr.Array)
    assert [name for name, _ in root.members(max_depth=None)] == ["foo", "foo/bar", "foo/baz", "foo/baz/qux"]


def test_where_nothing_can_be_listed_paths_lead_to_nodes():
    made = UnlistableStore(hierarchy({"meta/root.group.json": GROUP, "meta/root/a.array.json": ARRAY}), admits=False)
    root = omnizarr.open(made)
    assert root["a"][0, 0] == 7
    with pytest.raises(errors.StoreError):
        list(root)


def test_a_hierarchy_is_opened_at_its_root():
    made = hierarchy({"meta/root.group.json": GROUP, "meta/root/foo/bar.array.json": ARRAY})
    assert omnizarr.open(made).name == "/"
    assert omnizarr.open(made, path="foo/bar").name == "/foo/bar"
    for below in ("meta/root", "meta", "data/root"):
        with pytest.raises(errors.NodeNotFoundError):
            omnizarr.open(made, path=below)
