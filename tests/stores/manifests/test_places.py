"""Chunks that are found when somebody asks for them: references, read by both engines."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import StaleError, StoreAccessError, StoreError
from omnizarr.stores import MemoryStore, ReferenceStore
from omnizarr.stores.manifests.file import File
from omnizarr.stores.manifests.places import Places, Sought
from omnizarr.stores.remote.reference_sets import Partitions
from tests.engine.both import ENGINES, needs_native, served_by
from tests.stores.remote.test_reference_sets import parquet

SHAPE, CHUNKS = (7, 10), (2, 3)
VALUES = np.random.default_rng(5).integers(0, 1000, SHAPE).astype("<i4")
CODECS = [None, {"id": "zlib", "level": 1}]
SETS = ("json", "parquet")


def chunk(row, column, codec):
    """Return the stored bytes of a chunk, as numcodecs would have stored it."""
    block = np.full(CHUNKS, -1, "<i4")
    part = VALUES[2 * row : 2 * row + 2, 3 * column : 3 * column + 3]
    block[: part.shape[0], : part.shape[1]] = part
    return block.tobytes() if codec is None else zlib.compress(block.tobytes(), 1)


def made(folder, codec, base=None, missing=((3, 3),)):
    """Write files, and return references to chunks: in two files, as whole files, as bytes, and missing ones."""
    base = str(folder) if base is None else base
    document = {
        "zarr_format": 2, "shape": SHAPE, "chunks": CHUNKS, "dtype": "<i4", "fill_value": -5, "order": "C",
        "filters": None, "compressor": codec,
    }  # fmt: skip
    refs = {".zgroup": '{"zarr_format": 2}', "a/.zarray": json.dumps(document)}
    files = {"one.bin": b"head", "two.bin": b""}
    for number in range(16):
        row, column = divmod(number, 4)
        value, key = chunk(row, column, codec), f"a/{row}.{column}"
        if (row, column) in missing:
            continue
        if number % 5 == 3:
            name = f"whole{number}.bin"
            files[name] = value
            refs[key] = [f"{base}/{name}"]
        elif number % 5 == 4:
            refs[key] = "base64:" + base64.b64encode(value).decode()
        else:
            name = ("one.bin", "two.bin")[number % 2]
            refs[key] = [f"{base}/{name}", len(files[name]), len(value)]
            files[name] += value + b"gap"
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return refs


def as_parquet(folder, refs, record_size=5):
    """Write references as Parquet, and return the path."""
    target = folder / "refs.parq"
    (target / "a").mkdir(parents=True)
    documents = {key: json.loads(value) for key, value in refs.items() if "/." in key or key.startswith(".")}
    (target / ".zmetadata").write_text(json.dumps({"metadata": documents, "record_size": record_size}))
    for first in range(0, 16, record_size):
        rows = []
        for number in range(first, first + record_size):
            value = refs.get(f"a/{number // 4}.{number % 4}") if number < 16 else None
            if isinstance(value, str):
                rows.append((None, 0, 0, base64.b64decode(value[7:])))
            else:
                rows.append((*([*value, 0, 0][:3] if value else (None, 0, 0)), None))
        path, offset, size, raw = zip(*rows, strict=True)
        content = parquet(path=list(path), offset=list(offset), size=list(size), raw=list(raw))
        (target / "a" / f"refs.{first // record_size}.parq").write_bytes(content)
    return target


def expected(missing=((3, 3),)):
    values = VALUES.copy()
    for row, column in missing:
        values[2 * row : 2 * row + 2, 3 * column : 3 * column + 3] = -5
    return values


def opened(folder, refs, kind, engine, **options):
    path = as_parquet(folder, refs) if kind == "parquet" else folder / "refs.json"
    if kind == "json":
        path.write_text(json.dumps({"version": 1, "refs": refs}))
    return served_by(engine, omnizarr.open_array(str(path), path="a", storage_options=options))


@pytest.fixture
def asked(monkeypatch):
    """Count which chunks were looked for, and which were read by the store."""
    counts = Counter()
    find, pieces = Places.find, File.pieces

    def counted(self, keys, numbers):
        counts["calls"] += 1
        counts.update(keys)
        return find(self, keys, numbers)

    def read(self, spans):
        counts["pieces"] += 1
        return pieces(self, spans)

    monkeypatch.setattr(Places, "find", counted)
    monkeypatch.setattr(File, "pieces", read)
    return counts


@pytest.mark.parametrize("codec", CODECS, ids=["raw", "zlib"])
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("engine", ENGINES)
def test_all_forms_of_references_are_read(tmp_path, engine, kind, codec):
    array = opened(tmp_path, made(tmp_path, codec), kind, engine)
    values = expected()
    assert np.array_equal(array[...], values)
    assert np.array_equal(array[3], values[3])
    assert array[6, 9] == values[6, 9]
    assert np.array_equal(array[1:6:2, ::4], values[1:6:2, ::4])
    assert np.array_equal(array.vindex[[0, 6, 3], [9, 0, 4]], values[[0, 6, 3], [9, 0, 4]])
    assert np.array_equal(pickle.loads(pickle.dumps(array))[...], values)
    first, second = omnizarr.read_many([(array, slice(0, 4)), (array, (slice(2, 7), slice(4, None)))])
    assert np.array_equal(first, values[:4])
    assert np.array_equal(second, values[2:, 4:])


@needs_native
@pytest.mark.parametrize("kind", SETS)
def test_each_chunk_is_looked_for_once_and_none_is_read_by_the_store(tmp_path, kind, asked):
    array = opened(tmp_path, made(tmp_path, None), kind, "native")
    assert not asked
    assert array[6, 9] == -5
    assert asked == {"calls": 1, "a/3.3": 1}
    for _ in range(2):
        assert np.array_equal(array[...], expected())
        assert np.array_equal(array[2:4], expected()[2:4])
    assert asked.pop("calls") == 2
    assert len(asked) == 16
    assert set(asked.values()) == {1}


@needs_native
def test_one_chunk_of_very_many_is_one_look_up(tmp_path, asked):
    (tmp_path / "a.bin").write_bytes(bytes(range(200)))
    document = {
        "zarr_format": 2, "shape": [1 << 50] * 2, "chunks": [1, 4], "dtype": "|u1", "fill_value": 7, "order": "C",
        "filters": None, "compressor": None,
    }  # fmt: skip
    refs = {"a/.zarray": json.dumps(document), "a/1125899906842623.5": [str(tmp_path / "a.bin"), 8, 4]}
    store = ReferenceStore(refs, references=[str(tmp_path)])
    array = served_by("native", omnizarr.open_array(store, path="a"))
    assert list(array[(1 << 50) - 1, 20:24]) == [8, 9, 10, 11]
    assert "calls" not in asked  # numbers of chunks behind 2**64 are none: the store is asked
    assert list(array[0, :4]) == [7] * 4
    assert asked.pop("calls") == 1
    document["chunks"] = [1 << 20, 1 << 12]
    refs = {"a/.zarray": json.dumps({**document, "shape": [1 << 50, 1 << 12]})}
    array = served_by("native", omnizarr.open_array(ReferenceStore(refs, references=[str(tmp_path)]), path="a"))
    assert array[(1 << 50) - 1, 3] == 7
    assert asked["calls"] == 1


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_file_that_has_changed_is_an_error_and_never_other_bytes(tmp_path, engine, kind):
    refs = made(tmp_path, None)
    array = opened(tmp_path, refs, kind, engine)
    content = (tmp_path / "one.bin").read_bytes()
    (tmp_path / "one.bin").write_bytes(content)  # before the first read: that is what is read
    assert np.array_equal(array[...], expected())
    (tmp_path / "new").write_bytes(bytes(len(content)))
    (tmp_path / "new").replace(tmp_path / "one.bin")
    for _ in range(2):
        with pytest.raises(StaleError, match="has changed since it was opened") as caught:
            array[...]
        assert caught.value.remedy == "open it again"
    assert np.array_equal(array[0, 3:6], expected()[0, 3:6])  # of the other file
    again = omnizarr.open_array(str(tmp_path / ("refs.json" if kind == "json" else "refs.parq")), path="a")
    assert again[0, 0] == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_a_chunk_that_is_a_whole_file_may_be_replaced_as_in_a_directory(tmp_path, engine):
    refs = made(tmp_path, None)
    array = opened(tmp_path, refs, "json", engine)
    assert np.array_equal(array[...], expected())
    (name,) = refs["a/0.3"]
    block = np.arange(6, dtype="<i4")
    Path(name).write_bytes(block.tobytes())
    assert np.array_equal(array[:2, 9], [0, 3])
    Path(name).unlink()
    with pytest.raises(StoreError, match=r"which is not there"):
        array[:2]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        (["one.bin", 10, 10**6], StoreError, "too short"),
        (["gone.bin", 0, 24], StoreError, "not there"),
        (["/etc/hostname", 0, 4], StoreAccessError, "trust"),
        ([3, 4, 5], StoreError, "no reference"),
        (["one.bin", -4, 24], StoreError, "no reference"),
        (["one.bin", 1 << 63, 24], StoreError, "too short"),
        ("base64:!!", StoreError, "cannot be read"),
    ],
)
def test_what_is_wrong_is_said_of_the_chunk_and_others_are_read(tmp_path, engine, reference, error, message):
    refs = {**made(tmp_path, None), "a/1.1": reference}
    array = opened(tmp_path, refs, "json", engine)
    for _ in range(2):
        with pytest.raises(error, match=message) as caught:
            array[...]
        assert caught.value.key == "a/1.1"
        assert np.array_equal(array[4:], expected()[4:])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("is_first", [True, False])
def test_files_here_and_elsewhere_are_mixed(tmp_path, engine, is_first):
    refs = made(tmp_path, None)
    other = "a/0.0" if is_first else "a/3.0"
    url, offset, length = refs[other]
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed, which has memory://")
    fsspec.filesystem("memory").pipe_file("/places-test/one.bin", Path(url).read_bytes())
    refs[other] = ["memory://places-test/one.bin", offset, length]
    array = opened(tmp_path, refs, "json", engine, references="trusted")
    assert (array[6, 2], array[0, 0]) == (expected()[6, 2], expected()[0, 0])
    assert np.array_equal(array[...], expected())
    assert np.array_equal(array[...], expected())


def test_templates_and_links_lead_to_the_same_files(tmp_path):
    (tmp_path / "real").mkdir()
    refs = made(tmp_path / "real", CODECS[1], base="{{u}}")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    document = {"version": 1, "templates": {"u": str(tmp_path / "link")}, "refs": refs}
    (tmp_path / "refs.json").write_text(json.dumps(document))
    for trust in ("inside", "trusted"):
        for engine in ENGINES:
            options = {"references": trust}
            array = omnizarr.open_array(str(tmp_path / "refs.json"), path="a", storage_options=options)
            assert np.array_equal(served_by(engine, array)[...], expected())


@pytest.mark.parametrize("codec", CODECS, ids=["raw", "zlib"])
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("engine", ENGINES)
def test_files_on_a_server_are_read(tmp_path, http_server, engine, kind, codec, asked):
    place = http_server.fresh()
    refs = made(place.directory, codec, base=place.url)
    array = opened(tmp_path, refs, kind, engine, references="trusted", fs={"http": dict(place.options)})
    assert array[0, 0] == expected()[0, 0]
    for _ in range(2):
        assert np.array_equal(array[...], expected())
    assert np.array_equal(array[3:5, 1:9:3], expected()[3:5, 1:9:3])
    if engine == "native":
        assert asked["pieces"] == 0
        assert asked["calls"] == 2
    content = (place.directory / "one.bin").read_bytes()
    (place.directory / "one.bin").write_bytes(content + b"new")
    with pytest.raises(StoreError, match="has changed"):
        array[...]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_wrong_on_a_server_is_said_with_the_reference(tmp_path, http_server, engine):
    place = http_server.fresh()
    refs = made(place.directory, None, base=place.url)
    refs["a/2.1"] = [f"{place.url}/one.bin", 20, 10**7]
    refs["a/0.3"] = [f"{place.url}/gone.bin"]
    array = opened(tmp_path, refs, "json", engine, references="trusted", fs={"http": dict(place.options)})
    with pytest.raises(StoreError, match=r"the reference leads to .*one.bin, which is too short"):
        array[4, 3]
    with pytest.raises(StoreError, match=r"the reference leads to .*gone.bin, which is not there"):
        array[0, 9]
    assert np.array_equal(array[2:4], expected()[2:4])


def test_a_value_in_memory_that_is_too_large_is_an_error(tmp_path):
    refs = made(tmp_path, None)
    refs["a/0.0"] = "x" * 100
    for engine in ENGINES:
        with pytest.raises(omnizarr.errors.OmnizarrError, match=r"100 bytes|wrong size|expected 24"):
            served_by(engine, omnizarr.open_array(ReferenceStore(refs, allow_local=True), path="a"))[0, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_set_in_parquet_with_too_few_rows_is_an_error(engine):
    document = {
        "zarr_format": 2, "shape": SHAPE, "chunks": CHUNKS, "dtype": "<i4", "fill_value": -5, "order": "C",
        "filters": None, "compressor": None,
    }  # fmt: skip
    values = {
        ".zmetadata": json.dumps({"metadata": {"a/.zarray": document}, "record_size": 16}).encode(),
        "a/refs.0.parq": parquet(path=["/x"] * 3, offset=[0] * 3, size=[24] * 3, raw=[None] * 3),
    }
    store = ReferenceStore({"version": 1}, allow_local=True)
    store._set = Partitions(MemoryStore(values), "", values[".zmetadata"])
    with pytest.raises(StoreError, match="fewer rows"):
        served_by(engine, omnizarr.open_array(store, path="a"))[6]


def test_an_index_that_is_better_read_as_a_whole_is_a_value_and_no_error():
    assert Sought(lambda _: None, None, None, None).find(["a/0"], memoryview(bytes(8)).cast("Q")) is None
