"""The Zarr v3 draft of May 2019, sentence by sentence: hierarchies written by hand from the text.

Nobody implemented this draft. `reference_2019` does, from the text alone: what it writes omnizarr reads, and the other
way round.
"""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr import errors
from omnizarr.stores import MemoryStore
from tests.conformance import reference_2019
from tests.conformance.drafts import ELSEWHERE, Draft, DraftContract, grid, pointers_of_notes
from tests.conformance.raw import document, keys, store, without
from tests.conformance.reference_2019 import CODEC, DATA_TYPES, ENTRY, URI

pytestmark = pytest.mark.rules

FORMAT = "3-draft2019"
GROUP = {"zarr_format": URI, "extensions": [], "attributes": {}}
ARRAY = {
    "zarr_format": URI,
    "shape": [4, 6],
    "data_type": "u1",
    "chunk_grid": {"type": "regular", "chunk_shape": [2, 3]},
    "chunk_memory_layout": "C",
    "chunk_codecs": [],
    "fill_value": 7,
    "extensions": [],
    "attributes": {},
}
ROWS = {
    "zarr_format": URI,
    "shape": [10000, 1000],
    "data_type": "<f8",
    "chunk_grid": {"type": "regular", "chunk_shape": [1000, 100]},
    "chunk_memory_layout": "C",
    "chunk_codecs": [{"codec": CODEC + "gzip", "level": 1}],
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
    suffix="",
    chunks="data/",
    key=lambda *coords: ".".join(map(str, coords)),
)
hierarchy, opened, refused, create = DRAFT.hierarchy, DRAFT.opened, DRAFT.refused, DRAFT.create
SAMPLE: dict[str, bytes] = {}
WRITTEN = reference_2019.sample(SAMPLE)


class TestWhatBothDraftsSay(DraftContract):
    @pytest.fixture
    def draft(self):
        return DRAFT


def refused_group(**changes):
    with pytest.raises(errors.MetadataError) as caught:
        omnizarr.open(hierarchy({"meta/root.group": {**GROUP, **changes}}))
    return caught.value.pointer


# An implementation that is not ours


@pytest.mark.parametrize("path", WRITTEN)
def test_what_another_implementation_of_the_text_writes_is_read(path):
    array = omnizarr.open(store(SAMPLE))[path]
    assert array.dtype == WRITTEN[path].dtype
    np.testing.assert_array_equal(array[...], WRITTEN[path])
    assert pointers_of_notes(array) == []


def test_what_another_implementation_writes_is_kept_unchanged():
    made = store(SAMPLE)
    root = omnizarr.open(made)
    assert dict(root.attrs) == {"title": "draft of 2019"}
    for path in WRITTEN:
        array = root[path]
        assert array.documents()["array"] == document(made, f"meta/root{path}.array")
        array[...] = WRITTEN[path]
    assert {key: bytes(made.get(key)) for key in SAMPLE if key.startswith("meta")} == {
        key: value for key, value in SAMPLE.items() if key.startswith("meta")
    }


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("codec", [None, "gzip", "zlib", "zstd", "blosc"])
@pytest.mark.parametrize("name", DATA_TYPES)
def test_another_implementation_of_the_text_reads_what_is_written(name, codec, layout):
    dtype = reference_2019.dtype_of(name)
    values = np.arange(35).reshape(5, 7).astype(dtype)
    made = MemoryStore()
    compressors = None if codec is None else {"id": codec}
    create(made, data=values, chunks=(2, 3), order=layout, compressors=compressors)
    written = {key: bytes(made.get(key)) for key in made.list()}
    assert document(made, "meta/root.array")["data_type"] == name
    found = reference_2019.read_array(written, "")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)


@st.composite
def arrays(draw):
    """Draw the elements of an array, and how they are stored."""
    ndim = draw(st.integers(0, 3))
    shape = draw(st.tuples(*[st.integers(0, 6)] * ndim))
    name = draw(st.sampled_from(DATA_TYPES))
    values = (
        np.random.default_rng(draw(st.integers(0, 9))).integers(0, 100, shape).astype(reference_2019.dtype_of(name))
    )
    options = {
        "data_type": name,
        "layout": draw(st.sampled_from("CF")),
        "codecs": draw(st.lists(st.sampled_from(sorted(reference_2019.PARAMETERS)), max_size=2)),
        "separator": draw(st.sampled_from([None, ".", "/", "-", "x", "_._", "/c/"])),
        "fill_value": draw(st.sampled_from([None, False if name == "bool" else [0, 5] if "c" in name else 5])),
    }
    return values, draw(st.tuples(*[st.integers(1, 4)] * ndim)), options


@settings(max_examples=100)
@given(drawn=arrays(), has_entry_point=st.booleans())
def test_both_implementations_of_the_text_read_what_the_other_writes(drawn, has_entry_point):
    values, chunk_shape, options = drawn
    written = {"zarr.json": json.dumps(ENTRY).encode()} if has_entry_point else {}
    reference_2019.write_array(written, "/a/b", values, chunk_shape, **options)
    made = store(written)
    array = omnizarr.open(made, zarr_format=None if has_entry_point else FORMAT)["a/b"]
    assert array.dtype == values.dtype
    np.testing.assert_array_equal(array[...], values)
    values = values[tuple(slice(None, None, -1) for _ in values.shape)]
    array[...] = values
    np.testing.assert_array_equal(
        reference_2019.read_array({key: bytes(made.get(key)) for key in made.list()}, "/a/b"), values
    )


@pytest.mark.parametrize("path", WRITTEN)
def test_the_format_that_is_asked_for_needs_no_entry_point(path):
    made = store({key: value for key, value in SAMPLE.items() if key != "zarr.json"})
    for array in (
        omnizarr.open(made, zarr_format=FORMAT)[path],
        omnizarr.open(made, path=path, zarr_format=FORMAT),
        omnizarr.open_array(made, path=path, zarr_format=FORMAT, mode="r"),
    ):
        np.testing.assert_array_equal(array[...], WRITTEN[path])


# Conceptual model and names


# Chunk grids and layouts


@pytest.mark.parametrize("separator", ["/", ".", "-", "x", "--"])
def test_chunks_have_keys_of_ascii_that_no_other_has(separator):
    array = {**ARRAY, "shape": [12, 12], "chunk_grid": grid(1, 1, separator=separator)}
    made = hierarchy({"meta/root.array": array})
    omnizarr.open(made)[...] = 1
    chunks = [key for key in keys(made) if key.startswith("data/")]
    assert len(set(chunks)) == 144
    assert all(key.isascii() for key in chunks)


@pytest.mark.parametrize("separator", ["", "0", "-1-"])
def test_separators_that_make_one_identifier_of_two_chunks_are_refused(separator):
    assert refused(chunk_grid=grid(2, 3, separator=separator)).endswith("/separator")
    assert opened({"1": b"\x2a"}, shape=[2], chunk_grid=grid(1, separator=separator))[1] == 42


# Codecs


def test_codecs_are_identified_by_uris():
    made = MemoryStore()
    create(made, shape=(2,), dtype="u1", compressors={"name": "gzip", "configuration": {"level": 3}})
    assert document(made, "meta/root.array")["chunk_codecs"] == [{"codec": CODEC + "gzip", "level": 3}]


def test_parameters_that_no_specification_declares_are_refused():
    with pytest.raises(errors.MetadataError, match="colour"):
        opened(chunk_codecs=[{"codec": CODEC + "gzip", "level": 1, "colour": "red"}])[...]


def test_codecs_may_lose_something():
    codecs = [{"codec": CODEC + "bitround", "keepbits": 2}]
    array = opened(data_type="<f4", chunk_codecs=codecs)
    array[...] = 1.9
    assert (array[...] == 2).all()


# Metadata of arrays and groups


@pytest.mark.parametrize("key", ["meta/root.array", "meta/root.group"])
@pytest.mark.parametrize("broken", [[GROUP], "group", 5])
def test_document_is_one_object(key, broken):
    with pytest.raises(errors.MetadataError):
        omnizarr.open(hierarchy({key: broken}))


@pytest.mark.parametrize(
    ("key", "base"), [("meta/root.array", ARRAY), ("meta/root.group", GROUP)], ids=["array", "group"]
)
def test_other_names_are_ignored_with_a_note_and_kept(key, base):
    made = hierarchy({key: {**base, "foo": 1}})
    node = omnizarr.open(made)
    assert pointers_of_notes(node) == ["/foo"]
    node.attrs["a"] = 1
    assert document(made, key)["foo"] == 1


@pytest.mark.parametrize("broken", [[], "foo", 1, None, [["foo", 42]]])
def test_attributes_are_an_object_of_any_names(broken):
    assert refused(attributes=broken) == refused_group(attributes=broken) == "/attributes"
    anything = {"": None, "shape": [1], "\u00e4 b/c": {"zarr_format": "x"}}
    assert dict(opened(attributes=anything).attrs) == anything


# Data types


@pytest.mark.parametrize("fallback", ["u1", "bool"])
def test_data_type_of_an_extension_is_an_object_with_a_fallback(fallback):
    data_type = {"extension": ELSEWHERE, "type": {"any": ["JSON"]}, "fallback": fallback, "more": 1}
    array = opened({"0": b"\1"}, shape=[1], data_type=data_type, chunk_grid=grid(1), fill_value=None)
    assert array[...].tobytes() == b"\1"
    assert array.documents()["array"]["data_type"] == data_type


# Grids and layouts in documents


def test_regular_grid_of_2_by_5():
    array = opened(shape=[4, 10], chunk_grid={"type": "regular", "chunk_shape": [2, 5]})
    assert (array.chunks, array.cdata_shape) == ((2, 5), (2, 2))


# Fill values


# Examples


@pytest.mark.parametrize("name", sorted(GROUP))
def test_document_of_a_group_has_the_names_of_the_text(name):
    made = hierarchy({"meta/root.group": GROUP, "meta/root/a.group": without(GROUP, name)})
    root = omnizarr.open(made)
    if name == "zarr_format":
        assert root["a"].zarr_format != FORMAT  # a document of a later draft
    else:
        assert pointers_of_notes(root["a"]) == [f"/{name}"]


def test_trailing_comma_of_the_printed_group_is_not_json():
    with pytest.raises(errors.MetadataError, match="JSON"):
        omnizarr.open(hierarchy({"meta/root.group": b'{"extensions": [], "attributes": {"spam": "ham", "eggs": 42,}}'}))
