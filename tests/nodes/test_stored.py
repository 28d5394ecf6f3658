"""`omnizarr.nodes.stored`."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr.formats import documents
from omnizarr.nodes import stored
from omnizarr.nodes.location import StorePath
from omnizarr.stores import MemoryStore

WHERE = StorePath(MemoryStore(), "a")

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def new(**options):
    return omnizarr.create_array({}, shape=(4,), dtype="f4", **options).metadata


@given(st.dictionaries(st.text(min_size=1), values, min_size=1, max_size=4))
def test_document_of_an_array_like_another_is_what_it_would_be_alone(attributes):
    base = new()
    stored.rendered(WHERE, replace(base, attributes={"first": 1}))
    metadata = replace(base, attributes=attributes)
    alone = {name: documents.render(each) for name, each in stored.dump(WHERE, metadata).items()}
    found = stored.rendered(WHERE, metadata)
    assert found == alone
    assert repr(json.loads(found["zarr.json"])["attributes"]) == repr(json.loads(alone["zarr.json"])["attributes"])


@pytest.mark.parametrize("attributes", [{"long": "x" * 10**6}, {"half": "\ud800"}, {"many": list(range(10**5))}])
def test_attributes_that_are_long_or_odd_are_written_as_always(attributes):
    base = new()
    stored.rendered(WHERE, replace(base, attributes={"first": 1}))
    metadata = replace(base, attributes=attributes)
    alone = {name: documents.render(each) for name, each in stored.dump(WHERE, metadata).items()}
    assert stored.rendered(WHERE, metadata) == alone


@pytest.mark.parametrize(
    "options", [{"zarr_format": 2}, {"shards": 4, "chunks": 2}, {"dimension_names": ["attributes"]}]
)
def test_arrays_of_any_form_keep_their_own_attributes(options):
    store, options = {}, dict(options)
    group = omnizarr.create_group(store, zarr_format=options.pop("zarr_format", 3))
    for number in range(4):
        group.create_array(f"a{number}", shape=(4,), dtype="f4", attributes={"n": number, "d": {}}, **options)
        group.create_array(f"b{number}", shape=(8,), dtype="f4", attributes={"n": -number, "d": {}}, **options)
    again = omnizarr.open_group(store, mode="r")
    for number in range(4):
        assert dict(again[f"a{number}"].attrs) == {"n": number, "d": {}}
        assert (again[f"b{number}"].attrs["n"], again[f"b{number}"].shape) == (-number, (8,))


def test_changed_attributes_of_an_array_do_not_reach_the_document_that_is_remembered():
    store = MemoryStore()
    group = omnizarr.create_group(store)
    given_to_both = {"list": [1]}
    for name in ("a", "b"):
        group.create_array(name, shape=(4,), dtype="f4", attributes=given_to_both)
    given_to_both["list"].append(2)
    group["b"].attrs["more"] = 1
    assert dict(omnizarr.open_array(store, path="b").attrs) == {"list": [1], "more": 1}
