"""Consolidated metadata of many nodes: its copies are found and changed without parsing all of them."""

from __future__ import annotations

import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr import UnreadableNode
from omnizarr.errors import ConsolidatedMetadataError, MetadataError
from omnizarr.formats import scanning
from omnizarr.nodes import consolidated
from omnizarr.stores import MemoryStore

NAMES = [f"n{number:02}" for number in range(60)]
STYLES = [{}, {"indent": 2}, {"indent": 4, "sort_keys": True}, {"separators": (",", ":")}]
V3_GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}
needs_scanner = pytest.mark.skipif(not scanning.is_possible(), reason="without the native engine")


@pytest.fixture(autouse=True)
def _many(monkeypatch):
    """These copies count as many."""
    monkeypatch.setattr(consolidated, "_MANY_BYTES", 0)


@pytest.fixture(params=[2, 3])
def zarr_format(request):
    return request.param


@pytest.fixture(params=[True, pytest.param(False, id="parser")])
def scans(request, monkeypatch):
    """Whether the native scanner answers."""
    if not request.param:
        monkeypatch.setattr(scanning, "_scanner", lambda _: None)
    elif not scanning.is_possible():
        pytest.skip("without the native engine")
    return request.param


def node(number, zarr_format):
    if zarr_format == 2:
        return {".zarray": {"zarr_format": 2, "shape": [number], "chunks": [4], "dtype": "<i2", "compressor": None,
                            "fill_value": 0, "order": "C", "filters": None},
                ".zattrs": {"scale": 10.0, "name": f"µ{number}"}}  # fmt: skip
    return {"zarr.json": {
        "zarr_format": 3, "node_type": "array", "shape": [number], "data_type": "int16", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {"scale": 10.0, "name": f"µ{number}"}}}  # fmt: skip


def copies(zarr_format, names=NAMES):
    """Return the documents of arrays, by key, and of a group `g` with one in it."""
    group = {".zgroup": {"zarr_format": 2}} if zarr_format == 2 else {"zarr.json": V3_GROUP}
    nodes = {
        **{name: node(number, zarr_format) for number, name in enumerate(names)},
        "g": group,
        "g/h": node(3, zarr_format),
    }
    return {path: nodes[path] for path in sorted(nodes)}


def whole(zarr_format, nodes):
    """Return the keys of the consolidated metadata of a root with copies, and the documents there."""
    if zarr_format == 3:
        inline = {"kind": "inline", "must_understand": False}
        metadata = {path: documents["zarr.json"] for path, documents in nodes.items()}
        return {"zarr.json": {**V3_GROUP, "consolidated_metadata": {**inline, "metadata": metadata}}}
    metadata = {".zgroup": {"zarr_format": 2}}
    metadata |= {
        f"{path}/{name}": document for path, documents in nodes.items() for name, document in documents.items()
    }
    return {".zgroup": {"zarr_format": 2}, ".zmetadata": {"metadata": metadata, "zarr_consolidated_format": 1}}


def store_of(zarr_format, nodes=None, style=None, **changes):
    nodes = copies(zarr_format) if nodes is None else nodes
    there = {f"{path}/{name}": document for path, documents in nodes.items() for name, document in documents.items()}
    found = {**there, **whole(zarr_format, nodes), **changes}
    return MemoryStore({key: json.dumps(document, **(style or {})).encode() for key, document in found.items()})


def key_of(zarr_format):
    return "zarr.json" if zarr_format == 3 else ".zmetadata"


def copied(store, zarr_format):
    """Return the copies by the keys of the documents that they are of."""
    document = json.loads(bytes(store.get(key_of(zarr_format))))
    if zarr_format == 2:
        return document["metadata"]
    return {f"{path}/zarr.json": copy for path, copy in document["consolidated_metadata"]["metadata"].items()}


def originals(store, zarr_format):
    names = {".zarray", ".zgroup", ".zattrs"} if zarr_format == 2 else {"zarr.json"}
    keys = [key for key in store.list_prefix("") if key.rpartition("/")[2] in names and key != "zarr.json"]
    return {key: json.loads(bytes(store.get(key))) for key in keys}


def refuse(*_):
    raise AssertionError("all copies were parsed")


# -- opening -----------------------------------------------------------------------------


def test_members_are_as_the_copies_say(zarr_format, scans):
    root = omnizarr.open_group(store_of(zarr_format), mode="r", use_consolidated=True)
    assert [name for name, _ in root.members()] == ["g", *NAMES]
    assert {name: array.shape for name, array in root.arrays()} == {name: (n,) for n, name in enumerate(NAMES)}
    assert root["n07"].attrs.asdict() == {"scale": 10.0, "name": "µ7"}
    assert root["g/h"].shape == (3,)
    assert "n99" not in root


@needs_scanner
def test_copies_are_parsed_only_when_they_are_requested(zarr_format, monkeypatch):
    parsed = []
    known = omnizarr.formats.documents.parse_part
    monkeypatch.setattr("omnizarr.formats.documents.parse_part", lambda text: parsed.append(text) or known(text))
    root = omnizarr.open_group(store_of(zarr_format), mode="r", use_consolidated=True)
    assert len(root) == 61 or not parsed
    parsed.clear()
    root = omnizarr.open_group(store_of(zarr_format), mode="r", use_consolidated=True)
    assert root["n07"].attrs["name"] == "µ7"
    assert all(b"\\u00b57" in text or b"[7]" in text for text in parsed)


def test_metadata_holds_the_same_copies(zarr_format, scans):
    root = omnizarr.open_group(store_of(zarr_format), mode="r", use_consolidated=True)
    assert {path: dict(copy) for path, copy in root._snapshot.nodes.items() if path} == copies(zarr_format)
    if zarr_format == 3:
        assert root.metadata.to_dict() == whole(3, copies(3))["zarr.json"]
        assert root.metadata.consolidated == copies(3)


@pytest.mark.parametrize("style", STYLES)
def test_copies_keep_their_text_when_attributes_of_the_group_change(style, scans):
    store = store_of(3, style=style)
    before = bytes(store.get("zarr.json")).decode()
    root = omnizarr.open_group(store, mode="r+", use_consolidated=True)
    root.attrs["title"] = "x"
    after = bytes(store.get("zarr.json")).decode()
    assert json.loads(after) == {**json.loads(before), "attributes": {"title": "x"}}
    start = before.index('"n00"')
    assert before[start : before.index('"n59"')] in after


def test_consolidated_metadata_in_copies_counts_too(scans):
    inner = {"kind": "inline", "must_understand": False, "metadata": {"deep": node(5, 3)["zarr.json"]}}
    nodes = {**copies(3), "g": {"zarr.json": {**V3_GROUP, "consolidated_metadata": inner}}}
    root = omnizarr.open_group(store_of(3, nodes), mode="r", use_consolidated=True)
    assert root["g/deep"].shape == (5,)
    assert sorted(root["g"].array_keys()) == ["deep", "h"]


# -- what is broken ---------------------------------------------------------------------


def test_a_broken_copy_does_not_hide_others(zarr_format, scans):
    nodes = copies(zarr_format)
    name = ".zarray" if zarr_format == 2 else "zarr.json"
    nodes["n05"] = {**nodes["n05"], name: {**nodes["n05"][name], "shape": [-1]}}
    root = omnizarr.open_group(store_of(zarr_format, nodes), mode="r", use_consolidated=True)
    members = dict(root.members())
    assert isinstance(members["n05"], UnreadableNode)
    assert members["n06"].shape == (6,)
    with pytest.raises(MetadataError) as raised:
        root["n05"]
    assert (raised.value.path, raised.value.pointer, raised.value.key) == ("n05", "/shape/0", f"n05/{name}")


BREAKAGES = {
    "a list": lambda nodes: nodes.update(odd=[1]),
    "a path upwards": lambda nodes: nodes.update({"a/../b": nodes["n01"]}),
    "an absolute path": lambda nodes: nodes.update({"/a": nodes["n01"]}),
    "an empty name": lambda nodes: nodes.update({"": nodes["n01"]}),
    "a backslash": lambda nodes: nodes.update({"a\\b": nodes["n01"]}),
    "a null": lambda nodes: nodes.update(odd=None),
    "NaN": lambda nodes: nodes["n01"].update(fill_value=float("nan")),
    "escapes": lambda nodes: nodes["n01"].update({"é\n": {"must_understand": False}}),
    "an unknown member": lambda nodes: nodes["n01"].update(odd=1),
    "a broken group within": lambda nodes: nodes["g"].update(consolidated_metadata={"kind": "odd", "metadata": {}}),
    "no group within": lambda nodes: nodes["g"].update(consolidated_metadata=None),
}


def told(store, **options):
    """Return everything that opening a group tells, including errors and warnings."""

    def tell(name, member):
        return name, getattr(member, "shape", None), str(member.error) if isinstance(member, UnreadableNode) else None

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            root = omnizarr.open_group(store, mode="r", **options)
            found = [tell(*each) for each in root.members(None)], root.attrs.asdict()
        except MetadataError as error:
            found = type(error), str(error), error.pointer, error.key
    return found, [str(each.message) for each in warned]


@needs_scanner
@pytest.mark.parametrize("use", [None, True, False])
@pytest.mark.parametrize("breakage", BREAKAGES)
def test_errors_and_warnings_are_those_of_the_parser(breakage, use, monkeypatch):
    document = json.loads(json.dumps(whole(3, copies(3))["zarr.json"]))
    BREAKAGES[breakage](document["consolidated_metadata"]["metadata"])
    store = store_of(3, **{"zarr.json": document})
    found = told(store, use_consolidated=use)
    monkeypatch.setattr(scanning, "_scanner", lambda _: None)
    assert told(store, use_consolidated=use) == found


@needs_scanner
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"inline"', '"odd"'),
        lambda text: text.replace('"n02"', '"n01"'),
        lambda text: text.replace('"kind"', '"metadata": 1, "kind"'),
        lambda text: text.replace('"metadata": {', '"metadata": [{').replace("}}}", "}}]}"),
        lambda text: "\ufeff" + text,
        lambda text: text[:-1],
        lambda text: text + ",",
        lambda text: text.replace("[7]", "[07]"),
        lambda text: text.replace("[7]", "[" * 200 + "7" + "]" * 200),
        lambda text: text.replace('"node_type": "group"', '"node_type": "odd"'),
        lambda text: text.replace('"zarr_format": 3', '"zarr_format": 4'),
        lambda text: text.replace('"scale"', '"_nczarr_x"'),
        lambda text: text.replace("n03", "n\\u00303"),
    ],
)
def test_texts_that_are_unusual_are_read_by_the_parser(change, monkeypatch):
    text = change(json.dumps(whole(3, copies(3))["zarr.json"]))
    store = store_of(3)
    store.set("zarr.json", text.encode())
    found = [told(store, use_consolidated=use) for use in (None, True, False)]
    monkeypatch.setattr(scanning, "_scanner", lambda _: None)
    assert [told(store, use_consolidated=use) for use in (None, True, False)] == found


@pytest.mark.parametrize(
    "change", [lambda _: {"metadata": []}, lambda found: {**found, "zarr_consolidated_format": 2}, lambda _: []]
)
def test_broken_copies_of_zarr_v2_are_told(change, scans):
    document = whole(2, copies(2))[".zmetadata"]
    store = store_of(2, **{".zmetadata": change(document)})
    with pytest.raises(ConsolidatedMetadataError):
        omnizarr.open_group(store, mode="r", use_consolidated=True)


# -- changing ---------------------------------------------------------------------------


CHANGES = st.one_of(
    st.tuples(st.just("delete"), st.sampled_from([*NAMES, "g", "g/h"])),
    st.tuples(st.just("add"), st.sampled_from(["a", "n10a", "z", "g/i", "g/deep/er", "é"])),
    st.tuples(st.just("attribute"), st.sampled_from([*NAMES, "g"])),
    st.tuples(st.just("resize"), st.sampled_from(NAMES)),
    st.tuples(st.just("root"), st.just("")),
)


def apply(root, what, name):
    match what:
        case "delete":
            if name in root:
                del root[name]
        case "add":
            if name not in root:
                root.create_array(name, shape=(4,), chunks=(2,), dtype="i4", attributes={"new": 1})
        case "attribute":
            if name in root:
                root[name].attrs["changed"] = [1, {"é": None}]
        case "resize":
            if name in root:
                root[name].resize((9,))
        case "root":
            root.attrs["title"] = "x"


@needs_scanner
@given(st.sampled_from([2, 3]), st.lists(CHANGES, min_size=1, max_size=4), st.sampled_from(STYLES), st.booleans())
def test_changes_have_the_result_of_the_general_way(zarr_format, changes, style, has_inner):
    nodes = copies(zarr_format)
    if zarr_format == 3 and has_inner:  # as zarr-python writes groups
        inner = {"kind": "inline", "must_understand": False, "metadata": {}}
        nodes["g"] = {"zarr.json": {**V3_GROUP, "consolidated_metadata": inner}}
    stores = []
    for scans in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not scans:
                patch.setattr(scanning, "_scanner", lambda _: None)
            store = store_of(zarr_format, nodes, style=style)
            root = omnizarr.open_group(store, mode="r+", use_consolidated=True)
            for what, name in changes:
                apply(root, what, name)
            stores.append(store)
            there = originals(store, zarr_format)
            found = copied(store, zarr_format)
            assert found.keys() == there.keys()
            assert all(found[key] == there[key] for key in there if key != "g/zarr.json" or not has_inner)
            assert list(root) == list(omnizarr.open_group(store, mode="r", use_consolidated=False))
            assert list(root) == list(omnizarr.open_group(store, mode="r", use_consolidated=True))
    new, old = ({key: bytes(store.get(key)) for key in store.list_prefix("")} for store in stores)
    assert new == old


@needs_scanner
@pytest.mark.parametrize(
    ("what", "name"),
    [
        *[("delete", "n00"), ("delete", "n59"), ("delete", "g"), ("add", "n20a"), ("add", "é")],
        *[("attribute", "n01"), ("resize", "n58")],
    ],
)
def test_a_change_does_not_parse_all_copies(zarr_format, what, name, monkeypatch):
    store = store_of(zarr_format)
    root = omnizarr.open_group(store, mode="r+", use_consolidated=True)
    monkeypatch.setattr(consolidated, "write", refuse)
    apply(root, what, name)
    assert copied(store, zarr_format) == originals(store, zarr_format)


@pytest.mark.parametrize("order", [reversed, lambda names: [*names[20:], *names[:20]]])
def test_copies_in_another_order_are_changed_too(zarr_format, order, scans):
    nodes = copies(zarr_format)
    store = store_of(zarr_format, {path: nodes[path] for path in order(list(nodes))})
    root = omnizarr.open_group(store, mode="r+", use_consolidated=True)
    del root["n05"]
    root["n06"].attrs["x"] = 1
    assert copied(store, zarr_format) == originals(store, zarr_format)
    assert "n05" not in omnizarr.open_group(store, use_consolidated=True)


def test_copies_beside_unknown_members_are_changed_too(zarr_format, scans):
    document = whole(zarr_format, copies(zarr_format))[key_of(zarr_format)]
    inside = document["consolidated_metadata"] if zarr_format == 3 else document
    inside["extra"] = {"must_understand": False, "said": 1e2}
    store = store_of(zarr_format, **{key_of(zarr_format): document})
    root = omnizarr.open_group(store, mode="r+", use_consolidated=True)
    root["n05"].attrs["x"] = 1
    assert copied(store, zarr_format) == originals(store, zarr_format)


# long copies, which are not held as they were parsed


def long_documents(zarr_format):
    """Return documents of a group with 400 arrays: more text than is indented for people."""
    values = {}
    if zarr_format == 3:
        array = {"zarr_format": 3, "node_type": "array", "shape": [0], "data_type": "int16", "fill_value": 0,
                 "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
                 "chunk_key_encoding": {"name": "default"},
                 "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}]}  # fmt: skip
        values["zarr.json"] = b'{\n "zarr_format": 3,\n "node_type": "group", "attributes": {"scale": 1e2}}'
    else:
        array = {"zarr_format": 2, "shape": [0], "chunks": [4], "dtype": "<i2", "order": "C", "compressor": None,
                 "filters": None, "fill_value": 0, "dimension_separator": "."}  # fmt: skip
        values[".zgroup"] = b'{"zarr_format": 2}'
        values[".zattrs"] = b'{"scale": 1e2}'
    for number in range(400):
        attributes = {"title": f"\u00e4 {number}\n", "levels": list(range(number, number + 600))}
        if zarr_format == 3:
            values[f"a-{number}/zarr.json"] = json.dumps({**array, "attributes": attributes}, indent=2).encode()
        else:
            values[f"a-{number}/.zarray"] = json.dumps(array, indent=4).encode()
            values[f"a-{number}/.zattrs"] = json.dumps(attributes).encode()
    return values


def test_long_copies_say_what_their_documents_say(zarr_format):
    values = long_documents(zarr_format)
    group = omnizarr.consolidate_metadata(values)
    name = ".zmetadata" if zarr_format == 2 else "zarr.json"
    text = bytes(values[name])
    document = json.loads(text)
    copies = document["metadata"] if zarr_format == 2 else document["consolidated_metadata"]["metadata"]
    documents = {key: json.loads(bytes(value)) for key, value in values.items() if key != name}
    if zarr_format == 3:
        documents = {key.removesuffix("/zarr.json"): value for key, value in documents.items()}
        assert text.startswith(b'{\n "zarr_format": 3,\n "node_type": "group", "attributes": {"scale": 1e2}')
    assert copies == documents
    assert len(group) == 400
    assert group["a-399"].attrs["title"] == "\u00e4 399\n"
    opened = omnizarr.open_group(values, mode="r", use_consolidated=True)
    assert opened["a-77"].attrs["levels"] == list(range(77, 677))
    omnizarr.consolidate_metadata(values)
    assert bytes(values[name]) == text


def test_long_copies_are_renewed_and_removed():
    values = long_documents(3)
    before = bytes(values["zarr.json"])
    omnizarr.consolidate_metadata(values)
    group = omnizarr.open_group(values, mode="r+")
    group.create_array("a-new", shape=(3,), dtype="int8")
    del group["a-17"]
    copies = json.loads(bytes(values["zarr.json"]))["consolidated_metadata"]["metadata"]
    assert copies["a-new"]["shape"] == [3]
    assert "a-17" not in copies
    assert len(copies) == 400
    omnizarr.consolidate_metadata(values, remove=True)
    assert json.loads(bytes(values["zarr.json"])) == json.loads(before)
