"""The law, over documents that other programs wrote: ``dump(load(documents)) == documents``."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from omnizarr.errors import NotRepresentableError
from omnizarr.formats import DIALECTS, documents
from omnizarr.formats.spelling import same
from omnizarr.model import ArrayMetadata
from omnizarr.nodes import consolidated, detection
from omnizarr.nodes.location import dialect_of
from omnizarr.storage import StorePath
from omnizarr.stores import ZipStore

DIALECT = {dialect.name: dialect for dialect in DIALECTS}
CORPUS = sorted((Path(__file__).parents[1] / "corpus").glob("*/*/store.zip"))


def collect():
    for path in sorted((Path(__file__).parent / "cases").glob("*.json")):
        case = json.loads(path.read_text("utf-8"))
        for name, node in case["nodes"].items():
            yield pytest.param(DIALECT[case["dialect"]], node, id=f"{path.stem}-{name}")


CASES = list(collect())
cases = pytest.mark.parametrize(("dialect", "node"), CASES)


def model_of(metadata):
    """The fields that mean something."""
    return {
        field.name: getattr(metadata, field.name)
        for field in dataclasses.fields(metadata)
        if field.name not in {"spellings", "notes"}
    }


@cases
def test_dump_inverts_load(dialect, node):
    assert same(dialect.dump(dialect.load(node)), node)


@cases
def test_dump_keeps_the_order_of_members(dialect, node):
    written = dialect.dump(dialect.load(node))
    assert {name: list(document) for name, document in written.items()} == {
        name: list(document) for name, document in node.items()
    }


# v2 is not asked to write again what it cannot: these documents are kept unchanged, or not at all.
BEYOND_WORDS = {"quirks_v2-unknown_dtype", "quirks_v2-object_without_codec"}


@pytest.mark.parametrize(("dialect", "node"), [case for case in CASES if case.id not in BEYOND_WORDS])
def test_what_is_spelled_again_means_the_same(dialect, node):
    metadata = dataclasses.replace(dialect.load(node), spellings={})
    assert same(model_of(dialect.load(dialect.dump(metadata))), model_of(metadata))


@cases
def test_new_attributes_leave_all_other_spellings(dialect, node):
    metadata = dialect.load(node)
    changed = dialect.dump(dataclasses.replace(metadata, attributes={"new": True}))
    assert same(dialect.load(changed).attributes, {"new": True})
    for name, document in node.items():
        if name in {".zarray", ".zgroup"}:
            assert same(changed[name], document)
        elif name == "zarr.json":
            assert same({**changed[name], "attributes": 0}, {**document, "attributes": 0})


@cases
def test_a_new_shape_leaves_all_other_spellings(dialect, node):
    metadata = dialect.load(node)
    if not isinstance(metadata, ArrayMetadata) or not metadata.shape or 0 in metadata.shape:
        return
    shape = (metadata.shape[0] + 7, *metadata.shape[1:])
    (name, document), *_ = node.items()
    assert same(dialect.dump(dataclasses.replace(metadata, shape=shape))[name], {**document, "shape": list(shape)})


@cases
def test_rendering_and_parsing_changes_nothing(dialect, node):
    for document in node.values():
        assert same(documents.parse(documents.render(document)), document)


@cases
def test_the_other_dialect_writes_it_or_says_why_not(dialect, node):
    other = DIALECT["v2" if dialect.name == "v3" else "v3"]
    metadata = dialect.load(node)
    try:
        written = other.dump(metadata)
    except NotRepresentableError as error:
        refusal = error
    else:
        again = other.load(written)
        assert again.node_type == metadata.node_type
        assert same(again.attributes, metadata.attributes)
        assert getattr(again, "shape", None) == getattr(metadata, "shape", None)
        return
    assert str(refusal).startswith(f"cannot be written as Zarr {other.name}: ")
    assert refusal.remedy


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: f"{path.parents[1].name}-{path.parent.name}")
def test_dump_inverts_load_over_the_corpus(path):
    with ZipStore(path, mode="r") as store:
        root = detection.open_node(StorePath(store))
        seen = set()
        for where in (root.where, *(place for place, _ in consolidated.walk(root.where))):
            found = detection.detect(where)
            if found is None:  # a group that is implied
                continue
            keyspace = dialect_of(found.where, found.metadata).keyspace
            values = {name: store.get(key) for name, key in keyspace.documents(where.path).items()}
            node = {name: documents.parse(value) for name, value in values.items() if value is not None}
            dialect = DIALECT[found.metadata.dialect]
            metadata = dialect.load(node)
            assert same(dialect.dump(metadata), node), where
            seen.update(keyspace.documents(where.path).values())
        names = {".zarray", ".zgroup", ".zattrs", "meta", "attrs", "__zmeta__", "__zattr__"}
        missed = [key for key in store.list() if key.rpartition("/")[2] in names and key not in seen]
    assert seen
    assert not missed
