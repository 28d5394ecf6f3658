"""OCDBT databases: TensorStore says what is in them."""

import importlib.util
import json
import pickle
import random
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.codecs.checksums import crc32c
from omnizarr.errors import (
    NodeNotFoundError,
    OmnizarrError,
    ReadOnlyError,
    StoreError,
    StoreLimitError,
)
from omnizarr.readers.precomputed.store import PrecomputedStore
from omnizarr.stores import LocalStore, MemoryStore, verbs
from omnizarr.stores.database import ocdbt, ocdbt_nodes
from omnizarr.stores.database.ocdbt import OcdbtStore

DATA = Path(__file__).parent / "data"
_spec = importlib.util.spec_from_file_location("made_of_databases", DATA / "make_ocdbt.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)

NAMES = list(make.CONFIGS)
ODD = {"odd//name", "odd/\\"}


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    """The directory of the databases that TensorStore wrote."""
    top = tmp_path_factory.mktemp("databases")
    with zipfile.ZipFile(DATA / "ocdbt.zip") as archive:
        archive.extractall(top)
    return top


def of_tensorstore(place, **more):
    ts = pytest.importorskip("tensorstore", reason="TensorStore says what is in a database")
    store = ts.KvStore.open({"driver": "ocdbt", "base": f"file://{place}/", **more}).result()
    return {key.decode(): bytes(store.read(key).result().value) for key in store.list().result()}


def values_of(store):
    """Return all values, without the documents of groups that are made up."""
    return {key: bytes(store.get(key)) for key in store.list() if store._value(key.encode()) is not None}


# -- what TensorStore wrote


@pytest.mark.parametrize("name", NAMES)
def test_databases_hold_their_arrays(databases, name):
    for path in ("params.w", "step/params.v", "other/v3"):
        for place in (databases / name, f"ocdbt://{databases / name}"):
            assert np.array_equal(omnizarr.open(place, path=path)[...], make.DATA)
        assert np.array_equal(omnizarr.open(f"ocdbt://{databases / name}/{path}")[2:, 3:7], make.DATA[2:, 3:7])
    store = omnizarr.open(databases / name).store
    assert [bytes(store.get(f"values/v{each:02d}")) for each in range(make.COUNT)] == [
        b"x" * (7 * each) for each in range(make.COUNT)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_all_keys_and_values_are_those_that_tensorstore_reads(databases, name):
    expected = {key: value for key, value in of_tensorstore(databases / name).items() if key not in ODD}
    store = OcdbtStore(LocalStore(databases / name))
    assert values_of(store) == expected
    assert (
        dict(store.list_sizes() if hasattr(store, "list_sizes") else verbs.list_sizes(store, "")).items()
        >= {key: len(value) for key, value in expected.items()}.items()
    )
    for key, value in expected.items():
        assert store.size(key) == len(value)
        for span in ((0, 3), (2, None), (-4, None), (5, 5), (1, 10**9)):
            part = value[max(len(value) - 4, 0) :] if span[0] < 0 else value[slice(*span)]
            assert bytes(store.get(key, span)) == part, (key, span)
        assert not store.exists(f"{key}x")
    pairs = dict(verbs.get_many(store, ((key, None) for key in expected)))
    assert [bytes(pairs[at]) for at in range(len(expected))] == list(expected.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_version_is_the_one_that_tensorstore_reads(databases, name):
    newest = OcdbtStore(LocalStore(databases / name))
    last = newest._root.generation
    seen = set()
    for number in range(1, last + 1):
        store = OcdbtStore(LocalStore(databases / name), f"v{number}")
        expected = of_tensorstore(databases / name, version=number)
        assert values_of(store) == {key: value for key, value in expected.items() if key not in ODD}, number
        at = ocdbt.said(store._root.time)
        assert at in store.about()["version"]
        seen.add(len(expected))
    assert len(seen) > make.COUNT
    assert values_of(newest) == values_of(OcdbtStore(LocalStore(databases / name), f"v{last}"))


def test_versions_are_found_by_time(databases):
    place = databases / "deep"
    last = OcdbtStore(LocalStore(place))._root.generation
    for number in range(1, last + 1, 5):
        store = OcdbtStore(LocalStore(place), f"v{number}")
        micro = -(-store._root.time // 1000) * 1000  # times are given to microseconds
        text = ocdbt.said(micro)[:26] + "Z"
        found = OcdbtStore(LocalStore(place), text)
        assert found._root.time <= micro
        assert found._root.generation >= number
        assert ocdbt.wanted(text) == (None, micro)
    for version in ("v999", "2001-01-01T00:00:00Z"):
        with pytest.raises(StoreError, match="no such version") as caught:
            OcdbtStore(LocalStore(place), version)
        assert f"v{last}" in caught.value.expected
    with pytest.raises(StoreError, match="no version of an OCDBT"):
        OcdbtStore(LocalStore(place), "yesterday")


@pytest.mark.parametrize("name", NAMES)
def test_directories_are_listed(databases, name):
    store = OcdbtStore(LocalStore(databases / name))
    found = store.list_dir("")
    assert found.prefixes == ["em/", "odd/", "other/", "params.w/", "step/", "values/"]
    assert store.list_dir("values").keys == [f"values/v{each:02d}" for each in range(make.COUNT)]
    assert store.list_dir("odd/").others
    assert list(store.list_prefix("values/v0")) == []
    assert sorted(store.list_prefix("step")) == ["step/.zgroup", "step/params.v/.zarray", "step/params.v/0.0"]


def test_directories_of_checkpoints_are_groups(databases):
    root = omnizarr.open(databases / "single")
    assert sorted(root) == ["other", "params.w", "step"]
    assert list(root["step"]) == ["params.v"]
    assert list(root["other"]) == ["v3"]
    for path in ("values", "none", "params.w/0.0", "odd"):
        with pytest.raises(NodeNotFoundError):
            omnizarr.open(databases / "single", path=path)


def test_volumes_in_databases_are_read(databases):
    for url in (
        f"precomputed://ocdbt://{databases}/deep/em/8_8_40",
        f"file://{databases}/deep/|ocdbt:em/|neuroglancer-precomputed:8_8_40",
    ):
        array = omnizarr.open(url)
        assert type(array.store) is PrecomputedStore
        assert np.array_equal(array[0, 0], make.DATA)


@pytest.mark.parametrize("name", NAMES)
def test_urls_of_tensorstore_and_versions(databases, name):
    place = databases / name
    for url in (
        f"file://{place}/|ocdbt:params.w/|zarr2:",
        f"{place}|ocdbt:params.w",
        f"ocdbt://file://{place}/params.w",
        f"ocdbt://{place}@v10/params.w",
        f"file://{place}/|ocdbt:@v10/params.w|zarr:",
    ):
        assert np.array_equal(omnizarr.open(url)[...], make.DATA), url
    with pytest.raises(NodeNotFoundError):
        omnizarr.open(f"ocdbt://{place}@v1/step/params.v")
    with pytest.raises(StoreError, match="path or URL is missing"):
        omnizarr.open("ocdbt://")
    with pytest.raises(StoreError, match="no OCDBT database"):
        omnizarr.open("ocdbt://" + str(databases / "none"))


def test_over_http_where_nothing_can_be_listed(databases):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def list_directory(self, _):
            self.send_error(403)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(databases)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        host = f"http://127.0.0.1:{server.server_address[1]}"
        assert np.array_equal(omnizarr.open(f"ocdbt://{host}/small/params.w")[...], make.DATA)
        assert sorted(omnizarr.open(f"ocdbt://{host}/small")) == ["other", "params.w", "step"]
        with pytest.raises(StoreError, match="cannot list") as caught:
            omnizarr.open(f"ocdbt://{host}/numbered")
        assert caught.value.remedy
    finally:
        server.shutdown()
        server.server_close()


def test_the_command_line(databases, tmp_path, capsys):
    place = databases / "deep"
    for line in (["info", place], ["tree", place], ["get", f"ocdbt://{place}/params.w", "0,:3"],
                 ["convert", place, tmp_path / "x.zarr"], ["diff", place, tmp_path / "x.zarr"]):  # fmt: skip
        assert main([str(word) for word in line]) == 0
    text = capsys.readouterr().out
    for part in ("OCDBT", "params.w", "[0 1 2]", "equal"):
        assert part in text
    assert np.array_equal(omnizarr.open(tmp_path / "x.zarr")["params.w"][...], make.DATA)


def test_references_lead_into_data_files(databases, tmp_path):
    omnizarr.references(f"ocdbt://{databases}/single/step", tmp_path / "refs.json")
    references = json.loads((tmp_path / "refs.json").read_text())
    assert "params.v/0.0" in references.get("refs", references)
    found = omnizarr.open(tmp_path / "refs.json", storage_options={"references": "trusted"})
    assert np.array_equal(found["params.v"][...], make.DATA)


def test_stores_can_be_pickled_and_compared(databases):
    store = omnizarr.open(databases / "single").store
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert hash(again) == hash(store)
    assert again.about() == store.about()
    assert OcdbtStore(LocalStore(databases / "single"), "v2") != store
    assert store.with_read_only() is store
    for change in (lambda: store.set("a", b""), lambda: store.delete("a"), lambda: store.with_read_only(False)):
        with pytest.raises(ReadOnlyError, match="can only be read") as caught:
            change()
        assert "TensorStore" in caught.value.remedy
    for place in (databases / "single", f"ocdbt://{databases}/single"):
        with pytest.raises(ReadOnlyError, match="can only be read"):
            omnizarr.open_group(place, mode="r+")


class Counting(MemoryStore):
    """Counts requests."""

    asked = 0

    def get(self, key, span=None):
        type(self).asked += 1
        return super().get(key, span)


def test_a_value_is_found_along_one_way_through_the_tree(databases):
    values = _files(databases / "deep")
    store = OcdbtStore(Counting(values))
    height = store._root.height
    assert height > 3
    for key in ("values/v11", "params.w/0.0", "none"):
        Counting.asked = 0
        store._nodes = ocdbt.Weighed(1 << 20)
        store._value(key.encode())
        assert 0 < Counting.asked <= height + 1
        Counting.asked = 0
        store._value(key.encode())  # nodes are kept
        assert Counting.asked == 0
    Counting.asked = 0
    store._nodes = ocdbt.Weighed(1 << 20)
    listing = store._entries(b"values/", None)
    next(listing)
    assert Counting.asked <= 2 * (height + 1)  # the rest is read when it is asked for


# -- what is broken


def _files(place):
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def wrapped(magic, body):
    """Return a manifest or node with the right length and checksum."""
    rest = varint(0) + varint(0) + body
    data = magic.to_bytes(4, "big") + (16 + len(rest)).to_bytes(8, "little") + rest
    return data + crc32c(data).to_bytes(4, "little")


def table(*paths):
    numbers = [0] * (len(paths) - 1), [len(path) for path in paths], [0] * len(paths)
    return varint(len(paths)) + b"".join(varint(each) for column in numbers for each in column) + b"".join(paths)


def manifest(height, length, path=b"d/x", generation=1, offset=0):
    config = bytes(16) + bytes([0]) + varint(100) + varint(1000) + bytes([4]) + varint(0)
    version = (
        varint(1) + varint(generation) + bytes([height, 0]) + varint(offset) + varint(length) + bytes(3) + bytes(8)
    )
    return wrapped(ocdbt_nodes.MANIFEST, config + table(path) + version + varint(0))


def node(height, keys, values, path=b"d/x", lengths=None):
    """Return a node: values, or (offset, length) of children, all of whose keys are shared."""
    count = len(keys)
    columns = [[0] * (count - 1), lengths or [len(key) for key in keys]]
    if height:
        columns += [[len(key) for key in keys], [0] * count, *zip(*values, strict=True), [0] * (3 * count)]
        head, tail = columns[:3], columns[3:]
        packed = b"".join(varint(each) for column in head for each in column) + b"".join(keys)
        packed += b"".join(varint(each) for column in tail for each in column)
    else:
        packed = b"".join(varint(each) for column in columns for each in column) + b"".join(keys)
        packed += b"".join(varint(len(value)) for value in values) + bytes(count) + b"".join(values)
    return wrapped(ocdbt_nodes.NODE, bytes([height]) + table(path) + varint(count) + packed)


def database(root, height=0, **changes):
    return {"manifest.ocdbt": manifest(height, len(root), **changes), "d/x": root}


def test_our_own_nodes_are_read():
    store = OcdbtStore(MemoryStore(database(node(0, [b"a", b"b/c"], [b"1", b"22"]))))
    assert {key: store.get(key) for key in store.list()} == {"a": b"1", "b/c": b"22"}


def test_a_tree_that_leads_to_one_node_again_and_again_is_not_listed():
    leaf = node(0, [b"x"], [b"1"])
    data, start = leaf, 0
    for height in range(1, 9):
        child = (start, len(data) - start)
        start = len(data)
        data += node(height, [b"a", b"b", b"c"], [child] * 3)
    values = {"manifest.ocdbt": manifest(8, len(data) - start, offset=start), "d/x": data}
    store = OcdbtStore(MemoryStore(values))
    assert store.get("abcabcabx") == b"1"
    with pytest.raises(StoreLimitError, match="again and again"):
        list(store.list())


def test_trees_that_are_too_high_are_refused():
    with pytest.raises(StoreError, match="higher"):
        OcdbtStore(MemoryStore(database(node(0, [b"a"], [b"1"]), 65)))


def test_a_node_that_is_its_own_child_is_an_error():
    root = node(1, [b""], [(0, 60)])
    root = node(1, [b""], [(0, len(root))])
    with pytest.raises(StoreError, match="height"):
        list(OcdbtStore(MemoryStore(database(root, 1))).list())


@pytest.mark.parametrize("path", [b"../x", b"/etc/passwd", b"d/../../x", b"\xff", b"C:/x"])
def test_data_files_outside_the_database_are_refused(path):
    root = node(0, [b"a"], [b"1"])
    with pytest.raises(StoreError, match=r"outside of the database|no text"):
        OcdbtStore(MemoryStore(database(root, path=path))).get("a")


def test_nodes_that_say_they_are_huge_are_refused():
    root = node(0, [b"a"], [b"1"])
    for length, error in ((2**40, StoreLimitError), (2**63, StoreError)):
        values = {"manifest.ocdbt": manifest(0, length), "d/x": root}
        with pytest.raises(error):
            OcdbtStore(MemoryStore(values)).get("a")
    huge = wrapped(ocdbt_nodes.NODE, bytes([0]) + table(b"d/x") + varint(2**40))
    with pytest.raises(StoreError, match="number of entries"):
        OcdbtStore(MemoryStore(database(huge))).get("a")
    lying = wrapped(ocdbt_nodes.NODE, bytes([0]) + table(b"d/x") + varint(2**19) + b"\x01" * 9)
    with pytest.raises(StoreError, match="too early"):
        OcdbtStore(MemoryStore(database(lying))).get("a")


def test_keys_that_fill_the_memory_by_what_they_share_are_refused():
    count = 10_000
    key = b"k" * 60_000
    lengths = [0] + [60_000] * (count - 1), [60_000] + [1] * (count - 1)
    packed = b"".join(varint(each) for each in lengths[0][1:]) + b"".join(map(varint, lengths[1]))
    body = bytes([0]) + table(b"d/x") + varint(count) + packed + key + b"a" * count
    with pytest.raises(StoreError, match=r"broken, or too long|not in order"):
        OcdbtStore(MemoryStore(database(wrapped(ocdbt_nodes.NODE, body)))).get("a")


@pytest.mark.parametrize("name", NAMES)
def test_missing_data_files_are_errors(databases, name):
    values = {key: value for key, value in _files(databases / name).items() if not key.startswith("d/")}
    with pytest.raises(StoreError, match="data file is missing") as caught:
        OcdbtStore(MemoryStore(values)).get("params.w/.zarray")
    assert caught.value.key.startswith("d/")


def test_changed_bytes_are_noticed(databases):
    values = _files(databases / "single")
    changed = bytearray(values["manifest.ocdbt"])
    changed[20] ^= 1
    with pytest.raises(OmnizarrError, match="checksum"):
        OcdbtStore(MemoryStore({**values, "manifest.ocdbt": bytes(changed)}))


@pytest.mark.parametrize("name", NAMES)
def test_mutated_databases_give_errors_of_omnizarr(databases, name):
    rng = random.Random(name)
    values = _files(databases / name)
    ends = []
    for _ in range(60):
        key = "manifest.ocdbt" if rng.random() < 0.3 else rng.choice(sorted(values))
        changed = bytearray(values[key])
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(changed))
            changed[at : at + 3] = rng.choice([rng.randbytes(3), b"\xff" * 9, bytes(3), b""])
        if rng.random() < 0.7:  # with the right checksum
            changed[4:12] = len(changed).to_bytes(8, "little")
            changed[-4:] = crc32c(bytes(changed[:-4])).to_bytes(4, "little")
        try:
            store = OcdbtStore(MemoryStore({**values, key: bytes(changed)}))
            for _, each in zip(range(200), store.list(), strict=False):
                store.get(each)
            ends.append(True)
        except OmnizarrError:
            ends.append(False)
    assert False in ends
    assert True in ends or name == "single"


@pytest.mark.parametrize("seed", range(4))
def test_mutated_nodes_with_right_checksums_give_errors_of_omnizarr(seed):
    rng = random.Random(seed)
    body = bytearray(ocdbt_nodes.unwrap(node(0, [b"a", b"b/c", b"b/d"], [b"1", b"22", b"333"]), ocdbt_nodes.NODE))
    for _ in range(500):
        changed = bytearray(body)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(changed))
            changed[at : at + rng.randrange(3)] = rng.choice([rng.randbytes(2), b"\xff" * 10, b"\x80", b"\x01"])
        root = wrapped(ocdbt_nodes.NODE, bytes(changed))
        try:
            store = OcdbtStore(MemoryStore(database(root)))
            for each in store.list():
                store.get(each)
        except OmnizarrError:
            pass
