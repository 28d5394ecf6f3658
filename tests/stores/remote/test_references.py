"""References of Kerchunk: what h5py reads from the files is what omnizarr reads through the references."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import pickle
import warnings

import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr import aio
from omnizarr.cli import main
from omnizarr.errors import (
    InvalidKeyError,
    MissingDependencyError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreAccessError,
    StoreError,
)
from omnizarr.stores import LocalStore, ReferenceStore, resolve, verbs
from omnizarr.stores.base import answers

h5py = pytest.importorskip("h5py", reason="h5py is not installed, which tells where chunks lie in a file")

SHAPE, CHUNKS = (6, 8), (2, 3)
CONTENT = bytes(range(256)) * 4


def array_document(dataset, compressor=None):
    return {
        "zarr_format": 2,
        "shape": list(dataset.shape),
        "chunks": list(dataset.chunks or dataset.shape),
        "dtype": dataset.dtype.str,
        "fill_value": -1,
        "order": "C",
        "filters": None,
        "compressor": compressor,
    }


def references_of(file, url):
    """Return references to the chunks of an HDF5 file, as h5py tells where they are."""
    found = {".zgroup": '{"zarr_format": 2}', ".zattrs": {"title": "made by hand"}}
    for name, dataset in file.items():
        compressor = {"id": "zlib", "level": 4} if dataset.compression else None
        found[f"{name}/.zarray"] = json.dumps(array_document(dataset, compressor))
        if dataset.chunks is None:
            found[f"{name}/{'.'.join('0' * dataset.ndim) or '0'}"] = [url, dataset.id.get_offset(), dataset.nbytes]
            continue
        for number in range(dataset.id.get_num_chunks()):
            info = dataset.id.get_chunk_info(number)
            coords = ".".join(str(start // size) for start, size in zip(info.chunk_offset, dataset.chunks, strict=True))
            found[f"{name}/{coords}"] = [url, info.byte_offset, info.size]
    return found


@pytest.fixture
def folder(tmp_path):
    """A directory with an HDF5 file, and with references to it that name it by its path."""
    directory = tmp_path / "data"
    directory.mkdir()
    with h5py.File(directory / "a.h5", "w") as file:
        file["plain"] = np.arange(48, dtype="<i4").reshape(SHAPE)
        file["number"] = np.float64(2.5)
        packed = file.create_dataset("packed", SHAPE, "<f4", chunks=CHUNKS, compression="gzip", fillvalue=-1)
        packed[:4] = np.random.default_rng(0).random((4, 8), "f4")
        (directory / "refs.json").write_text(
            json.dumps({"version": 1, "refs": references_of(file, str(directory / "a.h5"))})
        )
    return directory


def same_as_h5py(group, path):
    with h5py.File(path) as file:
        assert sorted(group) == sorted(file)
        for name in file:
            np.testing.assert_array_equal(group[name][...], file[name][...])
    return True


def rewritten(folder, name, change):
    """Write other references beside those that exist; return their path."""
    document = json.loads((folder / "refs.json").read_text())
    (folder / name).write_text(json.dumps(change(document)))
    return folder / name


def with_urls(change):
    def changed(document):
        refs = document["refs"]
        refs = {
            key: [change(value[0]), *value[1:]] if isinstance(value, list) else value for key, value in refs.items()
        }
        return {**document, "refs": refs}

    return changed


# -- forms of references -------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, os.fspath, lambda path: path, lambda path: path.as_uri()])
def test_a_json_file_opens_by_its_path(folder, kind):
    group = omnizarr.open(kind(folder / "refs.json"))
    assert same_as_h5py(group, folder / "a.h5")
    assert dict(group.attrs) == {"title": "made by hand"}
    assert group["packed"].nchunks_initialized == 6


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("refs.json.gz", gzip.compress),
        ("refs.json.zst", lambda data: numcodecs.Zstd(3).encode(data)),
        ("packed.json", gzip.compress),
    ],
)
def test_a_json_file_may_be_compressed_and_be_called_otherwise(folder, name, pack):
    (folder / name).write_bytes(pack((folder / "refs.json").read_bytes()))
    assert same_as_h5py(omnizarr.open(folder / name), folder / "a.h5")


def test_version_0_has_no_members_but_references(folder):
    path = rewritten(folder, "v0.json", lambda document: document["refs"])
    assert same_as_h5py(omnizarr.open(path), folder / "a.h5")


@pytest.mark.parametrize(
    ("url", "templates"),
    [
        ("{{u}}", {"u": "PATH"}),
        ("{{ d }}/{{name}}.h5", {"d": "DIRECTORY", "name": "a"}),
        ("{{f(c='a')}}", {"f": "DIRECTORY/{{c}}.h5"}),
        ("{{u}}", {"u": "nowhere"}),
    ],
)
def test_templates_mean_parts_of_urls(folder, url, templates):
    path = str(folder / "a.h5")
    overrides = {"u": path} if templates.get("u") == "nowhere" else None
    values = {key: value.replace("PATH", path).replace("DIRECTORY", str(folder)) for key, value in templates.items()}
    made = rewritten(folder, "t.json", lambda document: {**with_urls(lambda _: url)(document), "templates": values})
    assert same_as_h5py(ReferenceStoreOf(made, template_overrides=overrides), path)


def ReferenceStoreOf(path, **options):
    return omnizarr.open(path, storage_options={name: value for name, value in options.items() if value is not None})


def test_rules_make_references(tmp_path):
    (tmp_path / "b.bin").write_bytes(CONTENT)
    document = {
        "version": 1,
        "templates": {"u": str(tmp_path)},
        "gen": [
            {
                "key": "a/{{i}}.{{j}}",
                "url": "{{u}}/{{name}}.bin",
                "offset": "{{(i * 2 + j) * 100}}",
                "length": "10",
                "dimensions": {"i": {"stop": 4, "step": 2}, "j": {"start": 1, "stop": 3}, "name": ["b"]},
            },
            {"key": "whole{{i}}", "url": "{{u}}/b.bin", "dimensions": {"i": [7]}},
        ],
        "refs": {},
    }
    store = ReferenceStore(document, references=[str(tmp_path)])
    assert sorted(store.list()) == ["a/0.1", "a/0.2", "a/2.1", "a/2.2", "whole7"]
    assert bytes(store.get("a/2.1")) == CONTENT[500:510]
    assert bytes(store.get("whole7")) == CONTENT


def test_simple_templates_need_no_other_package_and_others_say_which(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    ReferenceStore({"version": 1, "templates": {"u": "a"}, "refs": {"k": ["{{u}}"]}})
    with pytest.raises(MissingDependencyError, match="pip install jinja2"):
        ReferenceStore({"version": 1, "templates": {"u": "{{c}}"}, "refs": {"k": ["{{u(c=1)}}"]}})


def test_values_may_stand_in_the_references(tmp_path):
    raw = bytes(range(256))
    store = ReferenceStore(
        {
            "version": 1,
            "refs": {
                "a/.zarray": {"zarr_format": 2},
                "text": "ä",
                "base64": "base64:" + base64.b64encode(raw).decode(),
                "empty": "",
            },
        }
    )
    assert json.loads(store.get("a/.zarray")) == {"zarr_format": 2}
    assert store.get("text") == "ä".encode()
    assert store.get("base64") == raw
    assert store.get("empty") == b""
    assert store.get("base64", (-3, None)) == raw[-3:]


def test_the_nameless_chunk_of_a_scalar_by_virtualizarr_is_found(folder):
    def nameless(document):
        refs = {key.replace("number/0", "number/"): value for key, value in document["refs"].items()}
        return {**document, "refs": refs}

    assert same_as_h5py(omnizarr.open(rewritten(folder, "nameless.json", nameless)), folder / "a.h5")


@pytest.mark.parametrize(
    "value",
    [None, 3, [], ["a", 1], ["a", 1, 2, 3], ["a", -1, 2], ["a", 1.5, 2], ["a", "1", 2], [3], [["a"]], "base64:*", True],
)
def test_what_is_no_reference_is_an_error_when_it_is_asked_for(value):
    store = ReferenceStore({".zgroup": "{}", "a/0": value})
    assert store.get(".zgroup") == b"{}"
    with pytest.raises(StoreError, match="reference") as caught:
        store.get("a/0")
    assert caught.value.key == "a/0"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (b"[]", "holds no references"),
        (b"{}", "holds no references"),
        (b'{"version": 2, "refs": {}}', "version 2"),
        (b'{"version": 1, "refs": []}', "holds no references"),
        (b'{"a": 1', "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"zarr_format": 3, "node_type": "group"}', "open its directory"),
        (b'{"version": 1, "templates": {"v": "x"}, "refs": {"a": ["{{u}}"]}}', "missing template"),
        (b'{"version": 1, "gen": [{"key": "a"}]}', "malformed"),
        (b'{"version": 1, "gen": [{"key": "a", "url": "b", "dimensions": {"i": {"stop": 99999999}}}]}', "too many"),
    ],
)
def test_other_json_files_are_refused(tmp_path, document, message):
    (tmp_path / "x.json").write_bytes(document)
    with pytest.raises(StoreError, match=message) as caught:
        omnizarr.open(tmp_path / "x.json")
    assert "x.json" in str(caught.value)


def test_references_that_are_not_there_are_not_found(tmp_path):
    with pytest.raises(NodeNotFoundError):
        ReferenceStore(tmp_path / "no.json")
    with pytest.raises(NodeNotFoundError):
        omnizarr.open(tmp_path / "no.json")


# -- where targets are ---------------------------------------------------------------------


def test_relative_paths_begin_where_the_references_are(folder, monkeypatch, tmp_path):
    path = rewritten(folder, "relative.json", with_urls(lambda _: "a.h5"))
    monkeypatch.chdir(tmp_path)
    assert same_as_h5py(omnizarr.open(path), folder / "a.h5")
    assert same_as_h5py(omnizarr.open("data/relative.json"), folder / "a.h5")


def test_relative_paths_may_begin_in_the_current_directory_as_in_fsspec(folder, monkeypatch, tmp_path):
    path = rewritten(folder, "relative.json", with_urls(lambda _: "data/a.h5"))
    monkeypatch.chdir(tmp_path)
    assert same_as_h5py(omnizarr.open(path), folder / "a.h5")


def test_relative_paths_that_mean_two_files_are_refused(folder, monkeypatch, tmp_path):
    path = rewritten(folder, "relative.json", with_urls(lambda _: "a.h5"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.h5").write_bytes(b"another one")
    with pytest.raises(StoreError, match="means two files"):
        omnizarr.open(path)["plain"][...]
    monkeypatch.chdir(folder)
    assert same_as_h5py(omnizarr.open("relative.json"), folder / "a.h5")


@pytest.mark.parametrize("name", ["a b.h5", "a%20b.h5", "a#b?.h5", "ä.h5"])
@pytest.mark.parametrize("kind", ["{}", "file://{}", "local://{}", "uri"])
def test_files_of_any_name_are_found(folder, name, kind):
    (folder / "a.h5").rename(folder / name)
    url = (folder / name).as_uri() if kind == "uri" else kind.format(folder / name)
    path = rewritten(folder, "named.json", with_urls(lambda _: url))
    assert same_as_h5py(omnizarr.open(path), folder / name)


def test_links_are_followed(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "a.h5").rename(tmp_path / "elsewhere" / "b.h5")
    (folder / "a.h5").symlink_to(tmp_path / "elsewhere" / "b.h5")
    (tmp_path / "link.json").symlink_to(folder / "refs.json")
    assert same_as_h5py(omnizarr.open(tmp_path / "link.json"), folder / "a.h5")


def test_references_without_a_file_are_about_the_target(folder):
    path = rewritten(folder, "null.json", with_urls(lambda _: None))
    assert same_as_h5py(ReferenceStoreOf(path, target=str(folder / "a.h5")), folder / "a.h5")
    with pytest.raises(StoreError, match=r"name it by storage_options={'target'"):
        omnizarr.open(path)["plain"][...]


def test_a_file_that_is_missing_is_an_error_and_not_the_fill_value(folder):
    (folder / "a.h5").unlink()
    array = omnizarr.open(folder / "refs.json")["packed"]
    assert array[4:, 6:].tolist() == [[-1, -1], [-1, -1]]  # there is no reference
    with pytest.raises(StoreError, match=r"a\.h5, which is not there") as caught:
        array[:]
    assert not isinstance(caught.value, FileNotFoundError)
    assert caught.value.key.startswith("packed/0.")
    assert "refs.json" in str(caught.value)
    report = omnizarr.check(folder / "refs.json", data=True)
    assert not report.ok


def test_a_file_that_is_too_short_is_an_error(folder):
    data = (folder / "a.h5").read_bytes()
    group = omnizarr.open(folder / "refs.json")
    (folder / "a.h5").write_bytes(data[: group.store._set.find("packed/1.2").offset + 1])
    for read in (lambda: group["packed"][2:4, 6:8], lambda: group["packed"][:], lambda: group.store.get("packed/1.2")):
        with pytest.raises(StoreError, match="too short"):
            read()


def test_options_that_mean_nothing_are_refused(folder):
    with pytest.raises(StoreError, match="mean nothing") as caught:
        omnizarr.open(folder / "refs.json", storage_options={"remot_options": {"key": "hidden"}})
    assert caught.value.found == ["remot_options"]
    assert "hidden" not in str(caught.value)


# -- the verbs of a store -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("content") / "content.bin"
    path.write_bytes(CONTENT)
    return str(path)


PARTS = st.tuples(st.integers(0, len(CONTENT)), st.integers(0, 300)).map(
    lambda part: (part[0], min(part[1], len(CONTENT) - part[0]))
)
SPANS = st.one_of(
    st.none(),
    st.tuples(st.integers(0, 400), st.none() | st.integers(0, 400)),
    st.tuples(st.integers(-400, -1), st.none()),
)


def sliced(value, span):
    if span is None:
        return value
    start, stop = span
    return value[start:] if stop is None else value[start : max(start, stop)]


@given(parts=st.lists(PARTS, max_size=8), spans=st.lists(st.tuples(st.integers(0, 9), SPANS), max_size=12))
def test_all_ways_to_read_give_the_same_bytes(content, parts, spans):
    refs = {f"a/{number}": [content, *part] for number, part in enumerate(parts)}
    values = {f"a/{number}": CONTENT[start : start + length] for number, (start, length) in enumerate(parts)}
    refs |= {"a/8": [content], "a/9": "inline"}
    values |= {"a/8": CONTENT, "a/9": b"inline"}
    store = ReferenceStore({"version": 1, "refs": refs}, references="trusted")
    requests = [(f"a/{number}", span) for number, span in spans]
    answers = dict(verbs.get_many(store, requests))
    assert sorted(answers) == list(range(len(requests)))
    for position, (key, span) in enumerate(requests):
        expected = None if key not in values else sliced(values[key], span)
        for found in (answers[position], store.get(key, span)):
            assert (None if found is None else bytes(found)) == expected
    for key in {key for key, _ in requests}:
        wanted = [span for other, span in requests if other == key and span is not None]
        found = verbs.get_spans(store, key, wanted)
        assert (found if found is None else list(map(bytes, found))) == (
            [sliced(values[key], span) for span in wanted] if key in values else None
        )
        for room, start in ((bytearray(50), 0), (bytearray(2000), 0), (bytearray(7), 5)):
            size = verbs.read_into(store, key, memoryview(room), start)
            if key not in values:
                assert size is None
                continue
            rest = values[key][start:]
            assert size == len(rest)
            assert bytes(room[: len(rest)]) == rest[: len(room)]
        assert store.exists(key) == (key in values)
        assert store.size(key) == (len(values[key]) if key in values else None)
    assert dict(verbs.list_sizes(store, "")) == {key: len(value) for key, value in values.items()}


NAMES = st.lists(st.text("ab.0", min_size=1, max_size=3).filter(lambda name: name.strip(".")), min_size=1, max_size=3)


@given(keys=st.sets(NAMES.map("/".join), max_size=12), prefix=NAMES.map("/".join) | st.just(""))
def test_listings_are_those_of_a_store_with_the_same_keys(keys, prefix):
    ours = ReferenceStore({"version": 1, "refs": dict.fromkeys(keys, "x")})
    theirs = resolve(dict.fromkeys(keys, b"x"))[0]
    assert sorted(ours.list_prefix(prefix)) == sorted(theirs.list_prefix(prefix))
    assert ours.list_dir(prefix) == theirs.list_dir(prefix)
    assert verbs.has_any(ours, prefix, ["a", "b"]) == verbs.has_any(theirs, prefix, ["a", "b"])


@pytest.mark.parametrize("key", ["", "/a", "a//b", "../a", "a\\b"])
def test_what_is_no_key_is_refused(key):
    store = ReferenceStore({"version": 1, "refs": {key: "x"}})
    with pytest.raises(InvalidKeyError):
        store.get(key)
    assert list(store.list()) == []


class Counting(LocalStore):
    """Counts how often a file is asked for."""

    asked = 0

    def get(self, key, span=None):
        Counting.asked += 1
        return super().get(key, span)

    @answers(verbs.get_spans)
    def _get_spans(self, key, spans):
        Counting.asked += 1
        return super()._get_spans(key, spans)


@pytest.mark.parametrize(("gap", "expected"), [(0, 1), (1 << 16, 1), ((1 << 16) + 1, 20)])
def test_neighbouring_parts_of_a_file_are_fetched_together(tmp_path, monkeypatch, gap, expected):
    monkeypatch.setattr("omnizarr.stores.remote.reference_targets.LocalStore", Counting)
    monkeypatch.setattr(Counting, "asked", 0)
    data = np.random.default_rng(0).bytes(20 * (10 + gap))
    (tmp_path / "x.bin").write_bytes(data)
    places = [number * (10 + gap) for number in range(20)]
    refs = {f"{number}": [str(tmp_path / "x.bin"), place, 10] for number, place in enumerate(places)}
    store = ReferenceStore({"version": 1, "refs": refs}, references=[str(tmp_path)])
    answers = dict(verbs.get_many(store, ((str(number), None) for number in range(20))))
    assert {position: bytes(part) for position, part in answers.items()} == {
        number: data[place : place + 10] for number, place in enumerate(places)
    }
    assert Counting.asked == expected


def test_references_cannot_be_written(folder):
    group = omnizarr.open(folder / "refs.json")
    assert group.read_only
    for write in (
        lambda: group.store.set("a", b""),
        lambda: group.store.delete("a"),
        lambda: group.store.with_read_only(False),
        lambda: group.create_group("new"),
        lambda: group["plain"].__setitem__(0, 1),
        lambda: omnizarr.open(folder / "refs.json", mode="r+"),
        lambda: omnizarr.open(folder / "refs.json", mode="w"),
        lambda: omnizarr.create_group(folder / "refs.json"),
    ):
        with pytest.raises(ReadOnlyError):
            write()


def test_stores_travel_to_other_processes(folder):
    group = omnizarr.open(folder / "refs.json")
    sent = pickle.dumps(group)
    assert len(sent) < 2000  # not the references themselves
    assert same_as_h5py(pickle.loads(sent), folder / "a.h5")
    (folder / "refs.json").unlink()
    with pytest.raises(StoreError, match="not there any more"):
        pickle.loads(sent)
    inline = ReferenceStore({"version": 1, "refs": {"a": "b"}})
    assert pickle.loads(pickle.dumps(inline)).get("a") == b"b"


def test_arrays_are_read_in_an_event_loop_too(folder):
    async def read():
        array = await aio.open_array(folder / "refs.json", path="packed", mode="r")
        return await array.getitem(...)

    with h5py.File(folder / "a.h5") as file:
        np.testing.assert_array_equal(asyncio.run(read()), file["packed"][...])


@pytest.mark.parametrize("command", [["info"], ["tree"], ["ls"], ["check", "--data"]])
def test_commands_take_references(folder, command, capsys):
    assert main([command[0], str(folder / "refs.json"), *command[1:]]) == 0
    said = capsys.readouterr().out
    assert "packed" in said or command[0] == "check"


def test_commands_take_places_in_references(folder, capsys):
    assert main(["info", str(folder / "refs.json" / "packed")]) == 0
    assert "6×8" in capsys.readouterr().out


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_references_are_converted_to_arrays_of_their_own(folder, zarr_format):
    report = omnizarr.convert(folder / "refs.json", folder / "out.zarr", zarr_format=zarr_format)
    assert "verified" in str(report)
    (folder / "a.h5").rename(folder / "b.h5")
    assert same_as_h5py(omnizarr.open(folder / "out.zarr"), folder / "b.h5")


# -- what is not references ------------------------------------------------------------------------


def test_directories_with_consolidated_metadata_stay_directories(tmp_path):
    group = omnizarr.create_group(tmp_path / "a.parq", zarr_format=2)
    group.create_array("x", data=np.arange(3))
    omnizarr.consolidate_metadata(group)
    assert resolve(tmp_path / "a.parq")[0] == LocalStore(tmp_path / "a.parq", read_only=True)
    (tmp_path / "a.parq" / ".zgroup").unlink()
    assert isinstance(resolve(tmp_path / "a.parq")[0], LocalStore)
    with pytest.raises(StoreError, match="without references"):
        ReferenceStore(tmp_path / "a.parq")


def test_new_hierarchies_may_be_called_as_references_are(tmp_path):
    omnizarr.create_array(tmp_path / "a.json", data=np.arange(3))
    assert omnizarr.open(tmp_path / "a.json")[:].tolist() == [0, 1, 2]


# -- fsspec -----------------------------------------------------------------------------------


def test_urls_of_fsspec_mean_the_same(folder):
    fo = str(folder / "refs.json")
    document = json.loads((folder / "refs.json").read_text())
    for opened in (
        omnizarr.open("reference://", storage_options={"fo": fo, "remote_protocol": "file"}),
        omnizarr.open("reference://", storage_options={"fo": document, "references": [str(folder)], "loop": None}),
        omnizarr.open(f"reference::{fo}"),
        omnizarr.open(
            f"reference::file://{fo}", storage_options={"reference": {"remote_protocol": "file"}, "file": {}}
        ),
    ):
        assert same_as_h5py(opened, folder / "a.h5")
    assert omnizarr.open("reference://packed", storage_options={"fo": fo}).shape == SHAPE
    with pytest.raises(StoreError, match=r"name them by storage_options={'fo'"):
        omnizarr.open("reference://")


def test_filesystems_and_stores_of_other_libraries_are_taken(folder):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")
    fo = str(folder / "refs.json")
    fs = fsspec.filesystem("reference", fo=fo)
    waiting = fsspec.filesystem("reference", fo=fo, asynchronous=True, remote_options={"asynchronous": True})
    for storelike in (fs, fs.get_mapper(""), zarr.storage.FsspecStore(waiting)):
        assert same_as_h5py(omnizarr.open(storelike), folder / "a.h5")
    assert omnizarr.open(fs.get_mapper("packed")).shape == SHAPE
    assert omnizarr.open(fs).read_only


def test_the_filesystem_of_the_targets_can_be_given(folder):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    memory = fsspec.filesystem("memory")
    memory.pipe("/omnizarr-references/a.h5", (folder / "a.h5").read_bytes())
    for url, options in (
        ("memory://omnizarr-references/a.h5", {"references": ["memory://omnizarr-references"]}),
        ("memory://omnizarr-references/a.h5", {"fs": memory}),
        ("/omnizarr-references/a.h5", {"fs": memory}),
        ("omnizarr-references/a.h5", {"remote_protocol": "memory"}),
        ("memory://omnizarr-references/a.h5", {"fs": {"memory": memory}}),
        ("memory://omnizarr-references/a.h5", {"fs": {"memory": {}}}),
    ):
        path = rewritten(folder, "memory.json", with_urls(lambda _, url=url: url))
        assert same_as_h5py(ReferenceStoreOf(path, **options), folder / "a.h5")
    memory.rm("/omnizarr-references", recursive=True)


# -- servers -------------------------------------------------------------------------------------


@pytest.fixture
def web(folder, http_server):
    """The same files on a web server; the references lead to them by URL."""
    place = http_server.fresh()
    for path in (folder / "a.h5", rewritten(folder, "refs.json", with_urls(lambda _: f"{place.url}/a.h5"))):
        (place.directory / path.name).write_bytes(path.read_bytes())
    return place


def test_references_and_files_may_be_on_a_web_server(folder, web):
    group = omnizarr.open(f"{web.url}/refs.json", storage_options=web.options)
    assert same_as_h5py(group, folder / "a.h5")
    assert group["packed"].store.features.concurrency > 1
    with pytest.raises(StoreAccessError, match=r"only what is below a root, by .*http://127"):
        omnizarr.open(folder / "refs.json", storage_options={"remote_options": web.options})["plain"][...]
    local = omnizarr.open(
        folder / "refs.json", storage_options={"remote_options": web.options, "references": [web.url]}
    )
    assert same_as_h5py(local, folder / "a.h5")
    assert same_as_h5py(pickle.loads(pickle.dumps(local)), folder / "a.h5")


@pytest.mark.parametrize("url", ["a.h5", "./a.h5"])
def test_relative_paths_begin_at_the_url_of_the_references(folder, web, url):
    path = rewritten(folder, "relative.json", with_urls(lambda _: url))
    (web.directory / "relative.json").write_bytes(path.read_bytes())
    assert same_as_h5py(omnizarr.open(f"{web.url}/relative.json", storage_options=web.options), folder / "a.h5")


@pytest.mark.parametrize("url", ["{}", "file://{}", "local://{}", "simplecache::file://{}", "memory://x{}"])
def test_references_from_elsewhere_read_no_file_of_this_machine_unless_they_may(folder, web, url):
    if url.startswith("simplecache"):
        pytest.importorskip("fsspec", reason="fsspec is not installed")
    path = rewritten(folder, "local.json", with_urls(lambda _: url.format(folder / "a.h5")))
    (web.directory / "local.json").write_bytes(path.read_bytes())
    group = omnizarr.open(f"{web.url}/local.json", storage_options=web.options)
    with pytest.raises(StoreAccessError, match="if you trust them"):
        group["plain"][...]
    if not url.startswith("memory"):
        for trust in ({"allow_local": True}, {"references": "trusted"}):
            group = omnizarr.open(f"{web.url}/local.json", storage_options={**web.options, **trust})
            assert same_as_h5py(group, folder / "a.h5")


def test_relative_paths_of_references_from_elsewhere_stay_there(folder, web):
    for url in ("../a.h5", "x/../../a.h5"):
        path = rewritten(folder, "outside.json", with_urls(lambda _, url=url: url))
        (web.directory / "outside.json").write_bytes(path.read_bytes())
        with pytest.raises(StoreError, match="leads out of the directory"):
            omnizarr.open(f"{web.url}/outside.json", storage_options=web.options)["plain"][...]


def test_a_document_of_a_node_on_a_web_server_is_no_reference(web):
    (web.directory / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    with pytest.raises(StoreError, match="open its directory"):
        omnizarr.open(f"{web.url}/zarr.json", storage_options=web.options)


def test_references_and_files_may_be_in_s3(folder, s3_server):
    place = s3_server.fresh()
    store = resolve(place.url, "a", place.options)[0]
    store.set("data/a.h5", (folder / "a.h5").read_bytes())
    for url in (f"{place.url}/data/a.h5", "a.h5"):
        path = rewritten(folder, "s3.json", with_urls(lambda _, url=url: url))
        store.set("data/refs.json", path.read_bytes())
        found = omnizarr.open(f"{place.url}/data/refs.json", storage_options=place.options)
        assert same_as_h5py(found, folder / "a.h5")
    path = rewritten(folder, "s3.json", with_urls(lambda _: f"{place.url}/data/a.h5".removeprefix("s3://")))
    options = {"remote_protocol": "s3", "remote_options": dict(place.options)}
    assert same_as_h5py(omnizarr.open(path, storage_options=options), folder / "a.h5")


# -- Parquet, by kerchunk itself ------------------------------------------------------------------


@pytest.fixture
def kerchunk(tmp_path):
    """netCDF-4 files, references to them that kerchunk made, and the module."""
    module = pytest.importorskip("kerchunk.hdf", reason="kerchunk is not installed")
    netcdf = pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    for number in range(3):
        with netcdf.Dataset(tmp_path / f"d{number}.nc", "w") as dataset:
            for name, length in {"time": 4, "y": 30, "x": 40}.items():
                dataset.createDimension(name, length)
            dataset.createVariable("time", "f8", ("time",))[:] = np.arange(4) + 4 * number
            temp = dataset.createVariable(
                "temp", "f4", ("time", "y", "x"), zlib=True, shuffle=True, chunksizes=(1, 15, 25), fill_value=-9
            )
            temp[:3] = np.random.default_rng(number).random((3, 30, 40))
            dataset.createGroup("deep").createVariable("raw", "i2", ("y", "x"))[:] = np.arange(1200).reshape(30, 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr-python says that consolidated metadata is not a part of Zarr v3
        return [module.SingleHdf5ToZarr(str(tmp_path / f"d{number}.nc")).translate() for number in range(3)]


def joined(references):
    """Return the references of several files to one array, the times one after the other."""
    from kerchunk.combine import MultiZarrToZarr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = [
            {**each, "refs": {key: value for key, value in each["refs"].items() if not key.startswith("deep")}}
            for each in references
        ]
        return MultiZarrToZarr(kept, concat_dims=["time"], identical_dims=["x", "y"]).translate()


def temperatures(directory):
    found = []
    for path in sorted(directory.glob("d*.nc")):
        with h5py.File(path) as file:
            found.append(file["temp"][...])
    return np.concatenate(found)


@pytest.mark.parametrize("reader", ["pyarrow", "fastparquet"])
@pytest.mark.parametrize("writer", ["pyarrow", "fastparquet"])
@pytest.mark.parametrize("record_size", [5, 100])
def test_a_set_in_parquet_opens_by_its_path(kerchunk, tmp_path, reader, writer, record_size, monkeypatch):
    for package in (reader, writer):
        pytest.importorskip(package, reason=f"{package} is not installed")
    mapper = pytest.importorskip("fsspec.implementations.reference").LazyReferenceMapper
    path = tmp_path / "all.parq"
    written = mapper.create(str(path), record_size=record_size, engine=writer)
    references = joined(kerchunk)["refs"]
    for key in sorted(references):
        written[key] = references[key]
    written.flush()
    if reader == "fastparquet":
        monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    group = omnizarr.open(path)
    assert sorted(group) == ["temp", "time"]
    np.testing.assert_array_equal(group["temp"][:], temperatures(tmp_path))
    np.testing.assert_array_equal(group["time"][:], np.arange(12))
    json_path = tmp_path / "all.json"
    json_path.write_text(json.dumps({"version": 1, "refs": references}))
    other = omnizarr.open(json_path)
    assert sorted(group.store.list()) == sorted(other.store.list())
    assert {key: other.store.size(key) for key in other.store.list() if "/.z" not in key and "/" in key} == {
        key: group.store.size(key) for key in group.store.list() if "/.z" not in key and "/" in key
    }
    assert pickle.loads(pickle.dumps(group))["temp"][3].tolist() == group["temp"][3].tolist()


def test_sets_that_kerchunk_writes_are_read_also_through_fsspec(kerchunk, tmp_path):
    from kerchunk.df import refs_to_dataframe

    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    pytest.importorskip("fastparquet", reason="fastparquet is not installed, by which kerchunk writes")
    path = str(tmp_path / "one.parquet")
    refs_to_dataframe(kerchunk[0], path, record_size=7)
    with h5py.File(tmp_path / "d0.nc") as file:
        # fsspec looks through all of its files for a protocol, and fails where one is left out that would be empty
        options = {"fo": path, "remote_protocol": "file"}
        fs, mapper = fsspec.filesystem("reference", **options), fsspec.get_mapper("reference://", **options)
        for storelike in (path, fs, mapper):
            group = omnizarr.open(storelike)
            np.testing.assert_array_equal(group["temp"][...], file["temp"][...])
            np.testing.assert_array_equal(group["deep/raw"][...], file["deep/raw"][...])
        opened = omnizarr.open("reference://", storage_options={"fo": path})
        np.testing.assert_array_equal(opened["temp"][...], file["temp"][...])
    assert main(["tree", path]) == 0
    assert main(["info", f"{path}/temp"]) == 0
    assert main(["info", f"{path}/deep/raw"]) == 0
    assert omnizarr.check(path, data=True).ok


def test_xarray_sees_the_same_through_kerchunk(kerchunk, tmp_path):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    path = tmp_path / "one.json"
    path.write_text(json.dumps(kerchunk[0]))
    group = omnizarr.open(path)
    options = {"storage_options": {"fo": str(path)}, "consolidated": False}
    with xarray.open_dataset(
        "reference://", engine="zarr", backend_kwargs=options, mask_and_scale=False, decode_times=False
    ) as dataset:
        assert sorted(dataset.variables) == sorted(group.array_keys())
        for name, variable in dataset.variables.items():
            np.testing.assert_array_equal(group[name][...], variable.values)
            assert variable.dtype == group[name].dtype


def test_sets_in_parquet_may_be_elsewhere(kerchunk, tmp_path, http_server):
    from kerchunk.df import refs_to_dataframe

    pytest.importorskip("fastparquet", reason="fastparquet is not installed, by which kerchunk writes")
    place = http_server.fresh()
    refs = {
        key: [f"{place.url}/d0.nc", *value[1:]] if isinstance(value, list) else value
        for key, value in kerchunk[0]["refs"].items()
    }
    refs_to_dataframe({"refs": refs}, str(place.directory / "refs.parq"), record_size=10)
    (place.directory / "d0.nc").write_bytes((tmp_path / "d0.nc").read_bytes())
    with h5py.File(tmp_path / "d0.nc") as file:
        found = omnizarr.open(f"{place.url}/refs.parq", storage_options=place.options)
        np.testing.assert_array_equal(found["temp"][...], file["temp"][...])
