"""Laws of the draft of 2020 over generated documents, whole and damaged."""

from __future__ import annotations

import copy
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnizarr.errors import MetadataError, NotRepresentableError
from omnizarr.formats.history.draft2020 import dump, load
from omnizarr.formats.history.draft_consolidated import load_consolidated
from omnizarr.formats.history.draft_entry import enter, entry
from omnizarr.formats.spelling import same
from omnizarr.model import ArrayMetadata

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3)
URIS = st.from_regex(r"https://example\.org/[a-z]{1,8}/1\.0", fullmatch=True)
CODEC = "https://purl.org/zarr/spec/codec/{}/1.0"
COMPRESSORS = st.sampled_from(
    [
        {"codec": CODEC.format("gzip"), "configuration": {"level": 1}},
        {"codec": CODEC.format("gzip")},
        {"codec": CODEC.format("zlib"), "configuration": {"level": 9}},
        {"codec": CODEC.format("blosc"), "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "BIT"}},
        {"codec": CODEC.format("lz4"), "configuration": {"acceleration": 1}},
        {"codec": "https://purl.org/zarr/spec/codec/", "configuration": {"level": 1}},
        {"codec": "https://example.org/mine", "configuration": {"a": [1]}},
        None,
    ]
)
TYPES = st.one_of(
    st.tuples(
        st.sampled_from(["<f4", ">f4"]),
        st.floats(width=32, allow_nan=False, allow_infinity=False)
        | st.sampled_from(["NaN", "+Infinity", "Infinity", "-Infinity", "0x7fc00001", "0b" + "0" * 32, 0, None]),
    ),
    st.tuples(st.sampled_from(["i1", "|i1", "<i2", ">i8"]), st.integers(-128, 127) | st.none() | st.just(3.0)),
    st.tuples(st.just("bool"), st.booleans() | st.sampled_from([None, 0, 1])),
    st.tuples(st.just("r16"), st.sampled_from(["0x0102", None, [1, 2]])),
    st.tuples(
        st.sampled_from(
            [
                {"extension": "https://example.org/moments", "type": "<M8[ns]", "fallback": "<i8"},
                {"extension": "https://example.org/decimal", "type": {"digits": 3}, "fallback": ">i8"},
            ]
        ),
        st.integers(-(2**63), 2**63 - 1) | st.none(),
    ),
    st.tuples(
        st.just({"extension": "TODO: structured array protocol URL", "type": [["a", "<i2"]], "fallback": None}),
        st.sampled_from([None, "AQA="]),
    ),
    st.tuples(st.builds(lambda uri, kind: {"extension": uri, "type": kind}, URIS, st.integers()), JSON_VALUES),
)
EXTENSIONS = st.lists(
    st.builds(lambda uri, more: {**more, "extension": uri, "must_understand": False}, URIS, ATTRIBUTES), max_size=2
)


@st.composite
def arrays(draw):
    """A document of an array, spelled in one of the ways that the text or a program has."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(1, 2**20)), max_size=3))
    data_type, fill_value = draw(TYPES)
    grid = {"type": "regular", "chunk_shape": [chunk for _, chunk in pairs]}
    document = {
        "shape": [length for length, _ in pairs],
        "data_type": data_type,
        "chunk_grid": draw(st.sampled_from([grid, {**grid, "separator": "/"}, {**grid, "separator": "."}])),
        "chunk_memory_layout": draw(st.sampled_from(["C", "F"])),
        "fill_value": fill_value,
        "extensions": draw(EXTENSIONS),
        "attributes": draw(ATTRIBUTES),
    }
    if draw(st.booleans()):
        document["compressor"] = draw(COMPRESSORS)
    if draw(st.booleans()):
        document["dimension_separator"] = draw(st.sampled_from([".", "/"]))
    if draw(st.booleans()):
        document["attributes"]["filters"] = [{"id": "shuffle", "elementsize": 4}]
    if draw(st.booleans()):
        counts = draw(st.lists(st.integers(1, 4), max_size=len(pairs)))
        document["storage_transformers"] = [
            {
                "extension": "https://purl.org/zarr/spec/storage_transformers/sharding/1.0",
                "type": "indexed",
                "configuration": {"chunks_per_shard": counts},
            }
        ]
    if draw(st.booleans()):
        document["reserved"] = draw(JSON_VALUES)
    return {"array": document}


GROUPS = st.builds(lambda attributes: {"group": {"attributes": attributes}}, ATTRIBUTES)
DOCUMENTS = arrays() | GROUPS


@given(DOCUMENTS)
def test_dump_inverts_load(documents):
    assert same(dump(load(documents)), documents)


@given(DOCUMENTS)
def test_what_is_spelled_again_is_strict_and_means_the_same(documents):
    metadata = load(documents)
    try:
        written = dump(dataclasses.replace(metadata, spellings={}, unknown={}))
    except (NotRepresentableError, MetadataError):
        assert isinstance(metadata, ArrayMetadata)
        return
    again = load(written)
    assert again.notes == ()
    for field in ("data_type", "shape", "fill_value", "codecs", "chunk_grid"):
        if isinstance(metadata, ArrayMetadata):
            assert same(getattr(again, field), getattr(metadata, field))
    assert same(again.attributes, metadata.attributes)


@given(DOCUMENTS, st.data())
def test_damaged_documents_are_read_or_refused_in_words(documents, data):
    damaged = copy.deepcopy(documents)
    (document,) = damaged.values()
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(document)))
        place = document[name]
        if isinstance(place, dict) and place and data.draw(st.booleans()):
            place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON_VALUES)
        elif data.draw(st.booleans()):
            document[name] = data.draw(JSON_VALUES)
        elif len(document) > 1:
            del document[name]
    problems = []
    metadata = load(damaged, problems.append)
    if not problems:
        assert metadata is None or same(dump(metadata), damaged)
        return
    for problem in problems:
        assert str(problem.error())
    with pytest.raises(MetadataError):
        load(damaged)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(entry(), JSON_VALUES)), st.booleans())
def test_damaged_entry_points_are_read_or_refused_in_words(change, with_format):
    document = {**entry(), **change}
    if with_format:
        document["zarr_format"] = entry()["zarr_format"]
    problems = []
    keys = enter(document, "", problems.append)
    if problems:
        with pytest.raises(MetadataError):
            enter(document, "")
    elif with_format:
        assert keys.documents("a").keys() == {"array", "group"}


@given(JSON_VALUES | st.dictionaries(st.sampled_from(["metadata", "zarr_consolidated_format"]), JSON_VALUES))
def test_damaged_copies_are_read_or_refused_in_words(document):
    problems = []
    nodes = load_consolidated(document, problems.append)
    assert problems or isinstance(nodes, dict)
