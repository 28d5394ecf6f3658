"""Laws of dialects over generated documents, whole and damaged."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import MetadataError, NotRepresentableError
from omnizarr.formats import DIALECTS, V2, V3, v3
from omnizarr.formats.spelling import same

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3)
NAMES = st.from_regex(r"[a-z][a-z0-9-_.]{1,8}", fullmatch=True)
LENGTHS = st.integers(0, 2**63 - 1)
CHUNKS = st.integers(1, 2**63 - 1)
IGNORABLE = st.builds(lambda value: {**value, "must_understand": False}, ATTRIBUTES)


def shaped(members):
    """Documents of arrays: `members` makes the strategy of each member from shape and chunk shape."""
    pairs = st.lists(st.tuples(LENGTHS, CHUNKS), max_size=4)
    return pairs.flatmap(lambda pairs: members([shape for shape, _ in pairs], [chunk for _, chunk in pairs]))


def extension(names=NAMES):
    """An unknown extension, spelled in one of the ways that the text allows."""
    spelled_out = st.fixed_dictionaries({"name": names}, optional={"configuration": ATTRIBUTES})
    return names | spelled_out | spelled_out.map(lambda value: {**value, "must_understand": True})


FLOAT_FILLS = st.floats(allow_nan=False, allow_infinity=False, width=32) | st.sampled_from(
    ["NaN", "Infinity", "-Infinity", "0x7fc00001", 0, -1, None]
)
BYTES_CODECS = st.sampled_from(
    [
        ["bytes"],
        [{"name": "bytes"}],
        [{"name": "bytes", "configuration": {"endian": "big"}}],
        [{"name": "endian", "configuration": {"endian": "little"}}],
        [{"name": "transpose", "configuration": {"order": "F"}}, "bytes"],
        [{"name": "sharding_indexed", "configuration": {"chunk_shape": [1], "codecs": ["endian"]}}],
        [],
    ]
)


def v3_array(shape, chunks):
    keys = st.sampled_from(["default", "v2", {"name": "default"}, {"name": "v2", "configuration": {"separator": "/"}}])
    return st.fixed_dictionaries(
        {
            "zarr_format": st.just(3),
            "node_type": st.just("array"),
            "shape": st.just(shape),
            "data_type": st.sampled_from(["float32", {"name": "float32"}, {"name": "float32", "configuration": {}}]),
            "chunk_grid": st.just({"name": "regular", "configuration": {"chunk_shape": chunks}}),
            "chunk_key_encoding": keys | extension(NAMES.map("x".__add__)),
            "fill_value": FLOAT_FILLS,
            "codecs": st.tuples(BYTES_CODECS, st.lists(extension(), max_size=2)).map(lambda parts: parts[0] + parts[1]),
        },
        optional={
            "attributes": ATTRIBUTES,
            "dimension_names": st.lists(st.none() | st.text(max_size=4), min_size=len(shape), max_size=len(shape)),
            "storage_transformers": st.lists(extension(), max_size=2),
            "unknown.one": IGNORABLE,
            "unknown/two": IGNORABLE,
        },
    )


STEPS = st.sampled_from(
    [
        {"id": "zlib", "level": "3"},
        {"id": "blosc"},
        {"id": "blosc", "shuffle": -1, "cname": "zstd"},
        {"id": "gzip", "level": 5},
        {"id": "zstd", "level": 1, "checksum": True},
        {"id": "delta", "dtype": "<f4", "astype": "<i2"},
        {"id": "shuffle", "elementsize": "0"},
        {"id": "crc32c", "location": "end"},
        {"id": "zfpy", "mode": 4},
        {"id": "acme", "x": {"y": [1]}},
    ]
)


def v2_array(shape, chunks):
    return st.fixed_dictionaries(
        {
            "zarr_format": st.just(2),
            "shape": st.just(shape),
            "chunks": st.just(chunks),
            "dtype": st.sampled_from(["<f4", ">f8", "<f2"]),
            "compressor": st.none() | STEPS,
            "fill_value": st.floats(width=16) | st.none() | st.sampled_from(["NaN", "-Infinity", 0]),
            "order": st.sampled_from("CF"),
        },
        optional={
            "filters": st.none() | st.lists(STEPS, max_size=3),
            "dimension_separator": st.sampled_from([".", "/", None]),
            "_unknown": JSON_VALUES,
        },
    )


V2_NODES = st.fixed_dictionaries({".zarray": shaped(v2_array)}, optional={".zattrs": ATTRIBUTES})
V3_NODES = st.fixed_dictionaries({"zarr.json": shaped(v3_array)})


@given(V2_NODES)
def test_v2_dump_inverts_load(node):
    assert same(V2.dump(V2.load(node)), node)


@given(V3_NODES)
def test_v3_dump_inverts_load(node):
    assert same(V3.dump(V3.load(node)), node)


@given(V3_NODES, st.lists(LENGTHS, max_size=4))
def test_an_array_like_one_that_was_read_is_as_if_read_alone(node, shape):
    document = {**node["zarr.json"], "shape": shape, "attributes": {"other": 1}}
    for each in (document, node["zarr.json"], {**document, "shape": [-1] * len(document["shape"])}):
        remembered, alone = [], []
        after_others = v3.load({"zarr.json": each}, remembered.append)
        by_itself = v3._read_array(v3.Reader(alone.append), each)
        assert repr(after_others) == repr(by_itself)
        assert {name: repr(each) for name, each in after_others.spellings.items()} == {
            name: repr(each) for name, each in by_itself.spellings.items()
        }
        assert (after_others.notes, remembered) == (by_itself.notes, alone)


def test_arrays_that_differ_in_shape_and_attributes_are_interpreted_once(monkeypatch):
    read, calls = v3._read_array, []
    monkeypatch.setattr(v3, "_read_array", lambda *given: calls.append(1) or read(*given))
    document = {
        "zarr_format": 3, "node_type": "array", "shape": [1], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [77]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
    }  # fmt: skip
    for number in range(1, 20):
        V3.load({"zarr.json": {**document, "shape": [number], "attributes": {"number": number}}})
    assert len(calls) == 1


@given(V2_NODES)
def test_v2_becomes_v3_and_v2_again_with_the_same_meaning(node):
    metadata = V2.load({".zarray": {**node[".zarray"], "fill_value": 0}})
    try:
        document = V3.dump(metadata)
    except NotRepresentableError:
        return
    again = V2.dump(V3.load(document))
    once_more = V2.load(again)
    assert (once_more.shape, once_more.chunk_grid) == (metadata.shape, metadata.chunk_grid)
    assert same(V2.load(again).codecs, V3.load(document).codecs)


CASES = [
    node
    for path in sorted((Path(__file__).parent / "cases").glob("*.json"))
    for node in json.loads(path.read_text("utf-8"))["nodes"].values()
]


def places(value, above=()):
    """Every place within a document, as the keys that lead there."""
    yield above
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*above, key))


@st.composite
def damaged(draw):
    """Documents by other programs, with one or two values replaced, removed or added."""
    node = copy.deepcopy(draw(st.sampled_from(CASES)))
    for _ in range(draw(st.integers(1, 2))):
        found = [place for place in places(node) if len(place) > 1]
        if not found:
            break
        *above, last = draw(st.sampled_from(found))
        parent = node
        for key in above:
            parent = parent[key]
        match draw(st.sampled_from(["replace", "replace", "remove", "add"])):
            case "replace":
                parent[last] = copy.deepcopy(draw(JSON_VALUES | STEPS))
            case "remove":
                del parent[last]
            case "add" if isinstance(parent, dict):
                parent[draw(st.text(max_size=3))] = draw(JSON_VALUES)
    return node


@given(damaged())
def test_damaged_documents_are_read_or_refused_equally_by_both_attitudes(node):
    for dialect in DIALECTS:
        own = {name: node[name] for name in node if name in dialect.keyspace.documents("")}
        problems = []
        metadata = dialect.load(own, problems.append)
        if problems:
            with pytest.raises(MetadataError) as raised:
                dialect.load(own)
            assert raised.value.pointer == problems[0].pointer
            assert str(raised.value) == str(problems[0].error())
        elif metadata is not None:
            assert same(dialect.dump(dialect.load(own)), own)
