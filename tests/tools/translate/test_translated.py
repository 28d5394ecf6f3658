"""A hierarchy of any format seen as one of another: what a conversion would write, and nothing is written."""

import json
import os
import pickle
import threading
from dataclasses import replace

import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnizarr
from omnizarr import errors
from omnizarr.settings import engines
from omnizarr.storage import CacheStore, LocalStore, MemoryStore, TranslatedStore
from omnizarr.stores import verbs
from omnizarr.tools.convert import showing
from tests.corpus.test_corpus import CORPUS, unpacked  # noqa: F401 - a fixture
from tests.fakes import FaultyStore, UnlistableStore

CASES = sorted(path.parent for path in CORPUS.glob("*/*/expected.json"))
FORMATS = (1, 2, 3, "3-draft2019", "3-draft2020")
GRID = np.arange(70).reshape(10, 7)


def old_hierarchy(store, zarr_format=1):
    """Make two arrays, one of which has chunks that are passed on, the other some that are compressed again."""
    raw = {"shape": (10, 7), "dtype": "i4", "compressors": None, "fill_value": -1}
    omnizarr.create_array(store, name="raw", chunks=(4, 3), zarr_format=zarr_format, **raw)[:7] = GRID[:7]
    zlib = {"data": GRID * 1.5, "compressors": {"id": "gzip" if zarr_format == "3-draft2019" else "zlib", "level": 1}}
    omnizarr.create_array(store, name="deep/zlib", chunks=(4, 3), zarr_format=zarr_format, **zlib)
    return omnizarr.open(store)


@pytest.fixture
def old():
    store = MemoryStore()
    old_hierarchy(store)
    return store


def values_of(store):
    return {key: bytes(store.get(key)) for key in store.list()}


def is_copy_of_copies(key):
    return key.endswith((".zmetadata", "zarr.json"))


# -- what a conversion would write


@pytest.mark.sampled(4)
@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.relative_to(CORPUS).as_posix())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_copy_of_view_is_the_conversion(case, zarr_format, unpacked):  # noqa: F811
    source = unpacked(case)
    converted, copied = MemoryStore(), MemoryStore()
    with TranslatedStore(source, zarr_format, allow_pickle=True) as view:
        omnizarr.copy_store(view, copied)
        losses = view.losses
    done = omnizarr.convert(source, converted, zarr_format=zarr_format, verify=False, allow_pickle=True)
    found, expected = values_of(copied), values_of(converted)
    assert found.keys() == expected.keys()
    assert losses == done.losses
    for key, value in expected.items():
        if done.source_format == done.target_format and is_copy_of_copies(key):
            # Copies keep the blanks that they have in the source's copies, not those of the documents.
            assert json.loads(found[key]) == json.loads(value)
        else:
            assert found[key] == value, key


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("source_format", FORMATS)
def test_all_verbs_agree_with_what_is_copied(source_format, zarr_format):
    source = MemoryStore()
    old_hierarchy(source, source_format)
    view, expected = TranslatedStore(source, zarr_format), MemoryStore()
    omnizarr.convert(source, expected, zarr_format=zarr_format)
    values = values_of(expected)
    assert sorted(view.list()) == sorted(values)
    assert sorted(verbs.list_sizes(view, "")) == sorted((key, len(value)) for key, value in values.items())
    prefixes = {"", "nothing/"} | {key[: end + 1] for key in values for end, sign in enumerate(key) if sign == "/"}
    for prefix in prefixes:
        assert sorted(view.list_prefix(prefix)) == sorted(expected.list_prefix(prefix)), prefix
        assert view.list_dir(prefix) == expected.list_dir(prefix), prefix
    for key, value in values.items():
        assert view.exists(key)
        assert view.size(key) == len(value)
        assert verbs.has_any(view, key.rpartition("/")[0], [key.rpartition("/")[2], "x"])
        for span in (None, (0, 3), (2, 9999), (-4, None)):
            part = value if span is None else value[slice(*span)]
            assert bytes(view.get(key, span)) == part
            assert [*map(bytes, verbs.get_spans(view, key, [span or (0, None)]))] == [part]
        out = bytearray(len(value))
        assert verbs.read_into(view, key, memoryview(out), 1) == len(value) - 1
        assert out == value[1:] + b"\0"
        stamped = verbs.get_stamped(view, key)
        assert bytes(stamped.value) == value
        assert stamped.stamp is None or verbs.get_stamped(view, key, stamped.stamp) is None
        assert stamped.stamp == verbs.stamp(view, key)
    requests = [(key, span) for key in (*values, "raw/none", "none") for span in (None, (1, 3))]
    answers = dict(verbs.get_many(view, iter(requests)))
    expectations = dict(verbs.get_many(expected, iter(requests)))
    assert len(answers) == len(requests)
    for number, value in expectations.items():
        assert (answers[number] is None) == (value is None)
        assert value is None or bytes(answers[number]) == bytes(value)


@pytest.mark.parametrize("key", ["none", "raw/c/9/9", "raw/c/01/0", "raw/0.0", "raw", "none/zarr.json", "raw/c/2/0/0"])
def test_other_keys_have_no_value(old, key):
    view = TranslatedStore(old)
    assert view.get(key) is None
    assert view.get(key, (0, 1)) is None
    assert verbs.get_spans(view, key, [(0, 1)]) is None
    assert verbs.read_into(view, key, memoryview(bytearray(1))) is None
    assert view.size(key) is None
    assert verbs.stamp(view, key) is None
    assert not view.exists(key)
    assert verbs.pinned(view, key) is None


@pytest.mark.parametrize("key", ["", "/a", "a//b", "../a", "a\0b", ".omnizarr-x.tmp"])
def test_invalid_keys_are_refused(old, key):
    view = TranslatedStore(old)
    for verb in (verbs.get, verbs.exists, verbs.size, verbs.stamp, verbs.pinned):
        with pytest.raises(errors.InvalidKeyError):
            verb(view, key)
    with pytest.raises(errors.InvalidKeyError):
        verbs.has_any(view, "", [key])


def test_missing_chunk_is_missing(old):
    view = TranslatedStore(old)
    assert view.get("raw/c/2/0") is None
    assert view.get("raw/c/1/0") is not None
    np.testing.assert_array_equal(omnizarr.open(view)["raw"][8:], np.full((2, 7), -1))


@pytest.mark.parametrize("compressors", ["portable", "keep"])
def test_compressors_are_kept_if_wished(compressors):
    source = MemoryStore()
    data = omnizarr.create_array(source, data=GRID, zarr_format=2, compressors={"id": "zlib", "level": 1})
    array = omnizarr.open(TranslatedStore(source, compressors=compressors))
    assert array.metadata.codecs[-1].name == ("gzip" if compressors == "portable" else "numcodecs.zlib")
    np.testing.assert_array_equal(array[...], data[...])


def test_shards_become_chunks_in_v2():
    source = MemoryStore()
    array = omnizarr.create_array(source, shape=(12, 12), shards=(6, 6), chunks=(3, 3), dtype="u2", fill_value=7)
    array[:4, :4] = 1
    view, converted = TranslatedStore(source, 2), MemoryStore()
    omnizarr.convert(source, converted, zarr_format=2)
    stored = {key for key in view.list() if view.exists(key)}
    assert stored == set(converted.list())
    assert {key: bytes(view.get(key)) for key in stored} == values_of(converted)
    assert {key for key, _ in verbs.list_sizes(view, "")} == stored
    np.testing.assert_array_equal(omnizarr.open(view)[...], array[...])


def test_chunks_of_another_fill_value_are_all_there():
    source = MemoryStore()
    # xarray's mask becomes the fill value, which missing chunks must not have
    array = omnizarr.create_array(
        source, shape=(6,), chunks=(2,), dtype="f4", fill_value=0, dimension_names=["x"], attributes={"_FillValue": 9.0}
    )
    array[:2] = 5
    converted, view = MemoryStore(), TranslatedStore(source, 2)
    omnizarr.convert(source, converted, zarr_format=2)
    assert sorted(view.list()) == sorted(converted.list())
    assert all(map(view.exists, view.list()))
    assert omnizarr.open(view).fill_value == 9
    np.testing.assert_array_equal(omnizarr.open(view)[:], omnizarr.open(converted)[:])
    np.testing.assert_array_equal(omnizarr.open(view)[:], [5, 5, 0, 0, 0, 0])


def test_text_that_bioformats_keeps_beside_the_images_is_passed_on():
    source = MemoryStore()
    omnizarr.create_group(source, zarr_format=2, attributes={"bioformats2raw.layout": 3})
    omnizarr.create_group(source, path="OME", zarr_format=2, attributes={"series": ["0"]})
    source.set("OME/METADATA.ome.xml", b"<OME/>")
    source.set("OME/other.xml", b"<OME/>")
    view = TranslatedStore(source)
    assert bytes(view.get("OME/METADATA.ome.xml", (1, 4))) == b"OME"
    assert sorted(view.list_prefix("OME/")) == ["OME/METADATA.ome.xml", "OME/zarr.json"]
    assert view.get("OME/other.xml") is None
    assert dict(omnizarr.open(view).attrs)["ome"]["bioformats2raw.layout"] == 3


def test_image_of_ome_zarr_is_shown_with_its_axes():
    source = MemoryStore()
    scale = [{"type": "scale", "scale": [1, 1]}]
    image = {"version": "0.4", "axes": [{"name": name, "type": "space"} for name in "yx"]}
    image["datasets"] = [{"path": "0", "coordinateTransformations": scale}]
    group = omnizarr.create_group(source, zarr_format=2, attributes={"multiscales": [image]})
    group.create_array("0", data=GRID, dimension_separator="/")
    view = TranslatedStore(source)
    # The level first: the group above defines its meaning.
    assert omnizarr.open(view, path="0").metadata.dimension_names == ("y", "x")
    assert omnizarr.open(view).attrs["ome"]["version"] == "0.5"


def test_consolidated_metadata_is_made_of_the_copies_that_the_source_has():
    source = MemoryStore()
    root = old_hierarchy(source, 2)
    assert omnizarr.open_group(TranslatedStore(source)).is_consolidated is False
    omnizarr.consolidate_metadata(source)
    root["raw"].attrs["later"] = True
    source = FaultyStore(source)
    view = TranslatedStore(source)
    source.reset()
    opened = omnizarr.open_group(view)
    assert opened.is_consolidated
    assert sorted(opened) == ["deep", "raw"]
    assert not [key for _, key in source.log if "raw" in key]
    consolidated = json.loads(bytes(view.get("zarr.json")))["consolidated_metadata"]["metadata"]
    assert sorted(consolidated) == ["deep", "deep/zlib", "raw"]


# -- what cannot be shown


@pytest.fixture
def lossy():
    store = MemoryStore()
    root = omnizarr.create_group(store, zarr_format=3)
    root.create_array("fine", data=GRID)
    root.create_array("quarters", shape=(4,), dtype="int4")
    store.set("broken/zarr.json", b'{"zarr_format": 3, "node_type": "array"}')
    return store


def test_losses_are_those_of_a_conversion_and_the_rest_is_shown(lossy):
    view = TranslatedStore(lossy, 2)
    assert view.losses == omnizarr.convert(lossy, zarr_format=2, dry_run=True).losses
    assert {"broken"} <= {loss.path for loss in view.losses}
    assert view.get("broken/.zarray") is None
    assert not view.exists("broken/.zarray")
    np.testing.assert_array_equal(omnizarr.open(view)["fine"][...], GRID)


def test_strict_view_refuses_losses(lossy):
    with pytest.raises(errors.NotRepresentableError, match="broken"):
        TranslatedStore(lossy, 2, strict=True)


def test_strict_view_refuses_what_is_lost_later():
    store = MemoryStore()
    root = omnizarr.create_group(store, zarr_format=3)
    root.create_array("a", data=GRID)
    view = TranslatedStore(store, 2, strict=True)
    assert view.get("a/.zarray") is not None
    root.create_array("b", data=GRID, dimension_names=["x", None])
    with pytest.raises(errors.NotRepresentableError, match="dimension_names"):
        view.get("b/.zarray")


def test_nothing_to_show_is_an_error(tmp_path):
    with pytest.raises(errors.NodeNotFoundError):
        TranslatedStore(tmp_path / "none.zarr")
    assert not (tmp_path / "none.zarr").exists()


def test_archive_that_cannot_be_shown_is_closed(tmp_path):
    with omnizarr.storage.ZipStore(tmp_path / "x.zip", mode="w") as store:
        store.set("note.txt", b"")
    with pytest.raises(errors.NodeNotFoundError):
        TranslatedStore(tmp_path / "x.zip")
    with omnizarr.storage.ZipStore(tmp_path / "y.zip", mode="w") as store:
        old_hierarchy(store, 2)
    with TranslatedStore(tmp_path / "y.zip") as view:
        view.get("raw/c/0/0")
    with pytest.raises(errors.StoreClosedError):
        view.get("raw/c/0/0")


def test_node_of_a_draft_is_shown_by_the_path_that_its_directory_would_have(tmp_path):
    old_hierarchy(LocalStore(tmp_path), "3-draft2020")
    view = TranslatedStore(tmp_path / "deep")
    np.testing.assert_array_equal(omnizarr.open(view)["zlib"][...], GRID * 1.5)


@pytest.mark.parametrize("options", [{"zarr_format": 1}, {"zarr_format": "3-draft2020"}, {"compressors": "gzip"}])
def test_other_options_are_refused(old, options):
    with pytest.raises(ValueError, match="|".join(options)):
        TranslatedStore(old, **options)


@pytest.mark.parametrize("zarr_format", [1, 2])
def test_broken_chunk_raises_what_reading_it_raises(old, zarr_format):
    old_hierarchy(broken := MemoryStore(), zarr_format)
    broken.set("deep/zlib/1.1", b"broken")
    with pytest.raises(errors.ChunkError) as direct:
        omnizarr.open(broken)["deep/zlib"][...]
    view = TranslatedStore(broken)
    with pytest.raises(errors.ChunkError) as caught:
        view.get("deep/zlib/c/1/1")
    assert (
        (caught.value.key, caught.value.coords) == (direct.value.key, direct.value.coords) == ("deep/zlib/1.1", (1, 1))
    )
    assert caught.value.message == direct.value.message
    with pytest.raises(errors.ChunkError):
        view.size("deep/zlib/c/1/1")
    with pytest.raises(errors.ChunkError):
        dict(verbs.get_many(view, [("deep/zlib/c/0/0", None), ("deep/zlib/c/1/1", None)]))
    assert view.get("deep/zlib/c/0/0") is not None


# -- nothing is written


def test_nothing_can_be_written(old):
    view, before = TranslatedStore(old), values_of(old)
    requests = [
        lambda: view.set("a", b"2"),
        lambda: verbs.set_many(view, [("a", b"2")]),
        lambda: verbs.set_if_absent(view, "a", b"1"),
        lambda: verbs.set_partial(view, "zarr.json", 0, b"2"),
        lambda: view.update("zarr.json", lambda _: b""),
        lambda: view.delete("zarr.json"),
        lambda: verbs.delete_many(view, ["zarr.json"]),
        lambda: verbs.delete_prefix(view, ""),
        lambda: view.lock("zarr.json").__enter__(),
        lambda: view.with_read_only(read_only=False),
        lambda: omnizarr.open(view, mode="a"),
        lambda: omnizarr.create_array(view, shape=(1,), dtype="i1", name="new"),
        lambda: omnizarr.open(view)["raw"].__setitem__(..., 0),
    ]
    for verb in requests:
        with pytest.raises(errors.ReadOnlyError):
            verb()
    assert view.read_only
    assert view.with_read_only() is view
    assert values_of(old) == before


@pytest.mark.parametrize("overwrite", [False, True])
def test_source_is_not_overwritten_by_its_own_view(tmp_path, overwrite):
    old_hierarchy(LocalStore(tmp_path), 2)
    before = values_of(LocalStore(tmp_path))
    with pytest.raises((errors.NodeNameError, errors.NodeExistsError)):
        omnizarr.convert(TranslatedStore(tmp_path), tmp_path, overwrite=overwrite)
    assert values_of(LocalStore(tmp_path)) == before


# -- a store like any other


def test_view_is_live(old):
    view = TranslatedStore(old)
    array = omnizarr.open(old)["raw"]
    view.get("raw/zarr.json"), view.get("raw/c/0/0")
    array.attrs["units"] = "m"
    array.resize((40, 7))
    array[39] = 5
    assert json.loads(bytes(view.get("raw/zarr.json")))["attributes"] == {"units": "m"}
    np.testing.assert_array_equal(omnizarr.open(view)["raw"][39], [5] * 7)
    omnizarr.open(old).create_array("new", data=GRID)
    assert "new" in omnizarr.open(view)
    del omnizarr.open(old)["new"]
    assert view.get("new/zarr.json") is None


def test_chunks_beyond_the_edge_that_is_remembered_are_looked_for_again(old):
    view = TranslatedStore(old)
    reader = omnizarr.open(view)["raw"]
    assert view.get("raw/c/0/0") is not None
    array = omnizarr.open(old)["raw"]
    array.resize((40, 7))
    array[39] = 5
    assert view.get("raw/c/9/0") is not None  # although the document has not been read meanwhile
    assert reader.shape == (10, 7)


def test_array_that_is_replaced_is_seen_when_its_document_is_read_or_time_has_passed(old, monkeypatch):
    view = TranslatedStore(old)
    assert bytes(view.get("raw/c/0/0"))
    replaced = omnizarr.open(old).create_array(
        "raw", data=GRID, chunks=(4, 3), compressors={"id": "zlib"}, overwrite=True
    )
    now = showing.time.monotonic()
    monkeypatch.setattr(showing.time, "monotonic", lambda: now + 5.1)
    assert bytes(view.get("raw/c/0/0")).startswith(b"\x1f\x8b")
    np.testing.assert_array_equal(omnizarr.open(view)["raw"][...], replaced[...])


def test_view_pickles(tmp_path):
    old_hierarchy(LocalStore(tmp_path))
    view = TranslatedStore(tmp_path)
    view.get("deep/zlib/c/0/0")
    other = pickle.loads(pickle.dumps(view))
    assert other == view
    assert hash(other) == hash(view)
    assert other != TranslatedStore(tmp_path, 2)
    assert view.features.is_shared
    assert values_of(other) == values_of(view)
    array = pickle.loads(pickle.dumps(omnizarr.open(view)["deep/zlib"]))
    np.testing.assert_array_equal(array[...], GRID * 1.5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_view_survives_a_fork(tmp_path):
    old_hierarchy(LocalStore(tmp_path))
    array = omnizarr.open(TranslatedStore(tmp_path))["deep/zlib"]
    np.testing.assert_array_equal(array[...], GRID * 1.5)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(array[...], GRID * 1.5) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_read_at_once(old):
    view, found = TranslatedStore(old), []

    def read():
        root = omnizarr.open(view)
        found.append(np.array_equal(root["deep/zlib"][...], GRID * 1.5) and np.array_equal(root["raw"][:7], GRID[:7]))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


def test_origin_tells_the_view_from_its_source(tmp_path):
    old_hierarchy(LocalStore(tmp_path / "old"), 2)
    source, cache = LocalStore(tmp_path / "old"), tmp_path / "cache"
    assert sorted(omnizarr.open(CacheStore(source, cache))) == ["deep", "raw"]
    assert sorted(omnizarr.open(CacheStore(TranslatedStore(source), cache))) == ["deep", "raw"]
    assert CacheStore(TranslatedStore(source), cache).get(".zgroup") is None


@pytest.mark.parametrize("place", ["zip", "sqlite", "path", "node", "mapping"])
def test_source_is_whatever_can_be_opened(tmp_path, place):
    values = {}
    match place:
        case "zip" | "sqlite":
            source = str(tmp_path / f"old.{place}")
            store = omnizarr.storage.resolve(source, "a")[0]
            old_hierarchy(store)
            store.close()
        case "path":
            source = tmp_path
            old_hierarchy(LocalStore(tmp_path))
        case _:
            node = old_hierarchy(MemoryStore(values))
            source = values if place == "mapping" else node
    with TranslatedStore(source) as view:
        np.testing.assert_array_equal(omnizarr.open(view)["deep/zlib"][...], GRID * 1.5)
    with TranslatedStore(source, path="deep") as view:
        assert sorted(view.list_dir("").prefixes) == ["zlib/"]


def test_kerchunk_references_are_shown(tmp_path):
    data = np.arange(12, dtype="<i4")
    (tmp_path / "data.bin").write_bytes(b"head" + data.tobytes())
    array = {"zarr_format": 2, "shape": [12], "chunks": [6], "dtype": "<i4", "compressor": None, "filters": None}
    references = {
        ".zgroup": json.dumps({"zarr_format": 2}),
        "a/.zarray": json.dumps({**array, "order": "C", "fill_value": 0}),
        "a/0": [str(tmp_path / "data.bin"), 4, 24],
        "a/1": [str(tmp_path / "data.bin"), 28, 24],
    }
    (tmp_path / "refs.json").write_text(json.dumps(references))
    view = TranslatedStore(tmp_path / "refs.json", storage_options={"allow_local": True})
    assert bytes(view.get("a/c/1", (4, 8))) == data[7:8].tobytes()
    np.testing.assert_array_equal(omnizarr.open(view)["a"][...], data)


@pytest.mark.parametrize("is_consolidated", [False, True])
def test_store_that_cannot_be_listed_shows_nodes_by_name(is_consolidated):
    old_hierarchy(memory := MemoryStore(), 2)
    if is_consolidated:
        omnizarr.consolidate_metadata(memory)
    source = UnlistableStore(MemoryStore(values_of(memory)), admits=False)
    view = TranslatedStore(source)
    np.testing.assert_array_equal(omnizarr.open(view, path="deep/zlib")[...], GRID * 1.5)
    assert view.get("none/zarr.json") is None
    if is_consolidated:
        assert sorted(omnizarr.open(view)) == ["deep", "raw"]
        assert view.list_dir("").prefixes == ["deep/", "raw/"]
    else:
        with pytest.raises(errors.StoreError):
            view.list_dir("")


def test_failure_of_the_source_is_not_mistreated_as_what_is_missing(old):
    source = FaultyStore(old)
    view = TranslatedStore(source)
    source.fail("get", error=errors.StoreError("the disk is gone"))
    with pytest.raises(errors.StoreError, match="gone"):
        view.get("deep/zarr.json")


# -- requests


@pytest.mark.parametrize(("zarr_format", "most"), [(1, 28), (2, 11), (3, 3), ("3-draft2019", 6), ("3-draft2020", 6)])
def test_opening_takes_the_requests_that_the_source_takes_and_those_for_the_groups_above(zarr_format, most):
    old_hierarchy(memory := MemoryStore(), zarr_format)
    source = FaultyStore(memory)
    omnizarr.open(source, mode="r")["deep/zlib"]
    direct = len(source.log)
    view = TranslatedStore(source)
    source.reset()
    omnizarr.open(view, mode="r")["deep/zlib"]
    assert direct - 1 <= len(source.log) <= most  # the entry point of a draft is not read again


def test_members_are_one_listing_and_the_documents_of_the_source():
    root = omnizarr.create_group(memory := MemoryStore(), zarr_format=2)
    for number in range(50):
        root.create_array(f"a{number}", shape=(4,), dtype="i4")
    source = FaultyStore(memory)
    assert len(omnizarr.open_group(source, mode="r").members()) == 50
    direct = len(source.log)
    view = TranslatedStore(source)
    source.reset()
    assert len(omnizarr.open_group(view, mode="r").members()) == 50
    assert source.requests["list_dir"] == 1
    assert len(source.log) <= direct + 60  # zarr.json is looked for first, because the format is not given


def test_chunks_that_are_passed_on_take_one_request_each_side_by_side(old):
    source = FaultyStore(old, concurrency=8)
    array = omnizarr.open(TranslatedStore(source))["raw"]
    array[...]
    source.reset()
    array[...]
    assert source.requests == {"get": 9}


def test_ranges_of_what_is_passed_on_are_ranges_of_the_source(old):
    source = FaultyStore(old)
    view = TranslatedStore(source)
    view.get("raw/c/0/0")
    source.reset()
    assert bytes(view.get("raw/c/0/0", (4, 8))) == np.int32(1).tobytes()
    assert source.log == [("get", "raw/0.0")]


# -- any array


@given(
    st.sampled_from(FORMATS),
    st.sampled_from([2, 3]),
    st.sampled_from(["<i2", ">i4", "<f8", ">f4", "|b1", "|u1"]),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5)), min_size=1, max_size=3),
    st.sampled_from([None, {"id": "zlib", "level": 1}, {"id": "blosc", "cname": "lz4", "clevel": 1}]),
    st.data(),
)
def test_any_array_is_read_as_directly(zarr_format, target, dtype, axes, compressor, data):
    shape, chunks = zip(*axes, strict=True)
    store = MemoryStore()
    array = omnizarr.create_array(
        store, shape=shape, chunks=chunks, dtype=dtype, zarr_format=zarr_format, compressors=compressor, fill_value=1
    )
    part = tuple(slice(data.draw(st.integers(0, length)), length) for length in shape)
    array[part] = (np.arange(np.prod(shape)) % 100).reshape(shape)[part].astype(dtype)
    seen = omnizarr.open(TranslatedStore(store, target))
    assert seen.zarr_format == target
    np.testing.assert_array_equal(seen[...], array[...])
    np.testing.assert_array_equal(seen[part], array[part])


# -- chunks that engines read where they are --------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_chunks_that_are_passed_on_are_stated_to_be_elsewhere(zarr_format):
    store = MemoryStore()
    root = omnizarr.create_group(store, zarr_format=2)
    root.create_array("in/temp", data=np.arange(6), chunks=2)
    root.create_array("point", data=np.array(3))
    view = TranslatedStore(store, zarr_format)
    for path in ("in/temp", "point"):
        there = verbs.elsewhere(view, f"{path}/")
        assert there.store.origin() == store.origin()
        assert there.names == (f"{path}/", ".", "", f"{path}/0")
    for other in ("", "in/", "in/temp/c/", "nothing/"):
        assert verbs.elsewhere(view, other) is None


def test_chunks_that_are_encoded_again_are_nowhere_else():
    store = MemoryStore()
    omnizarr.create_array(store, data=np.arange(6), chunks=2, zarr_format=2, compressors=numcodecs.LZMA())
    assert verbs.elsewhere(TranslatedStore(store), "") is None
    assert verbs.elsewhere(TranslatedStore(store, compressors="keep"), "") is not None


@pytest.mark.parametrize("engine", ["native", "reference"])
@pytest.mark.parametrize("where", ["files", "memory"])
def test_array_in_a_view_shows_what_becomes_of_chunks_after_it_was_opened(engine, where, tmp_path):
    source = tmp_path if where == "files" else MemoryStore()
    array = omnizarr.create_array(source, data=np.arange(6), chunks=2, zarr_format=2)
    with omnizarr.config.set({"engine": engine}):
        seen = omnizarr.open_array(TranslatedStore(source))
        assert seen.zarr_format == 3
        np.testing.assert_array_equal(seen[...], np.arange(6))
        array[2:5] = 7
        np.testing.assert_array_equal(seen[...], [0, 1, 7, 7, 7, 5])
        array[:2] = 0
        np.testing.assert_array_equal(seen[1:3], [0, 7])
        with pytest.raises(errors.ReadOnlyError):
            seen[0] = 1
        seen = pickle.loads(pickle.dumps(seen)) if where == "files" else seen
        np.testing.assert_array_equal(seen[...], array[...])


def test_native_engine_reads_the_files_of_a_view_itself(tmp_path, monkeypatch):
    omnizarr.create_array(tmp_path, data=np.arange(6), chunks=2, zarr_format=2)
    if engines.module() is None:
        pytest.skip("the native engine has not been built")
    with omnizarr.config.set({"engine": "native"}):
        seen = omnizarr.open_array(TranslatedStore(tmp_path))
        monkeypatch.setattr(TranslatedStore, "get", None)
        reading = dict.fromkeys((verbs.get_many, verbs.get_spans, verbs.read_into), None)
        monkeypatch.setattr(TranslatedStore, "_direct", TranslatedStore._direct | reading)
        np.testing.assert_array_equal(seen[...], np.arange(6))


# -- consolidated metadata that is made for readers -------------------------------------------


def copied_in(view, path=""):
    """Return the paths of which a group in a view has copies; None if it has no consolidated metadata."""
    above = f"{path}/" if path else ""
    if view.zarr_format == 2:
        found = view.get(f"{above}.zmetadata")
        keys = [] if found is None else json.loads(bytes(found))["metadata"]
        below = sorted({key.rpartition("/")[0] for key in keys} - {""})
        return None if found is None else below
    found = json.loads(bytes(view.get(f"{above}zarr.json"))).get("consolidated_metadata")
    return None if found is None else sorted(found["metadata"])


@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("source_format", FORMATS)
def test_every_group_gets_consolidated_metadata_if_wished(source_format, zarr_format):
    source = MemoryStore()
    old_hierarchy(source, source_format)
    view = TranslatedStore(source, zarr_format, consolidated=True)
    assert copied_in(view) == ["deep", "deep/zlib", "raw"]
    assert copied_in(view, "deep") == ["zlib"]
    assert copied_in(TranslatedStore(source, zarr_format)) is None
    group = omnizarr.open_group(view, use_consolidated=True)
    np.testing.assert_array_equal(group["deep/zlib"][...], GRID * 1.5)


@pytest.mark.parametrize("consolidated", [True, 5])
def test_documents_with_made_copies_are_listed_and_have_sizes(old, consolidated):
    view = TranslatedStore(old, 2, consolidated=consolidated)
    values = {key: bytes(view.get(key)) for key in view.list()}
    assert {".zmetadata", "deep/.zmetadata"} <= values.keys()
    assert dict(verbs.list_sizes(view, "")) == {key: len(value) for key, value in values.items()}
    assert "deep/.zmetadata" in view.list_dir("deep/").keys
    assert view.exists("deep/.zmetadata")
    assert not view.exists("raw/.zmetadata")


def test_made_copies_say_what_is_there_at_this_moment():
    source = MemoryStore()
    root = old_hierarchy(source, 2)
    view = TranslatedStore(source, consolidated=True)
    before = bytes(view.get("zarr.json"))
    assert bytes(view.get("zarr.json")) == before
    root.create_array("deep/later", data=GRID)
    assert copied_in(view) == ["deep", "deep/later", "deep/zlib", "raw"]
    root["raw"].attrs["units"] = "K"
    copy = json.loads(bytes(view.get("zarr.json")))["consolidated_metadata"]["metadata"]["raw"]
    assert copy["attributes"] == {"units": "K"}


@pytest.mark.parametrize("zarr_format", [3, 2])
def test_copies_are_made_of_few_nodes_only(zarr_format):
    source = FaultyStore(MemoryStore())
    root = old_hierarchy(source, 2)
    for number in range(20):
        root.create_group(f"many/{number}")
    view = TranslatedStore(source, zarr_format, consolidated=10)
    source.reset()
    assert copied_in(view) is None
    assert not [key for _, key in source.log if key.startswith("many/") and key.count("/") > 1]
    assert copied_in(view, "many") is None
    assert copied_in(view, "deep") == ["zlib"]
    assert view.exists(".zmetadata") is False
    assert ".zmetadata" not in view.list_dir("").keys
    assert len(copied_in(TranslatedStore(source, zarr_format, consolidated=24))) == 24
    assert copied_in(TranslatedStore(source, zarr_format, consolidated=23)) is None


def test_nodes_that_were_too_many_are_not_counted_again_at_once(monkeypatch):
    source = FaultyStore(MemoryStore())
    root = old_hierarchy(source, 2)
    view = TranslatedStore(source, consolidated=2)
    assert copied_in(view) is None
    source.reset()
    assert copied_in(view) is None
    assert not source.requests["list_dir"]
    verbs.delete_prefix(root.store, "deep/")
    monkeypatch.setattr(showing, "_CROWDED", 0.0)
    assert copied_in(view) == ["raw"]


def test_no_copies_are_made_if_the_source_cannot_be_listed():
    class Web(FaultyStore):
        @property
        def features(self):
            return replace(self.store.features, listing="none")

        def list_dir(self, prefix):
            raise errors.StoreError("an HTTP server does not say what it has")

    source = MemoryStore()
    root = old_hierarchy(source, 2)
    assert copied_in(TranslatedStore(Web(source), consolidated=True)) is None
    omnizarr.consolidate_metadata(source)
    root["raw"].attrs["later"] = True
    view = TranslatedStore(Web(source), consolidated=True)
    assert (copied_in(view), copied_in(view, "deep")) == (["deep", "deep/zlib", "raw"], ["zlib"])


@pytest.mark.parametrize("consolidated", [-1, "always"])
def test_wishes_for_copies_that_mean_nothing_are_refused(old, consolidated):
    with pytest.raises(ValueError, match="consolidated"):
        TranslatedStore(old, consolidated=consolidated)
