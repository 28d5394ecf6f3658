"""References to stored chunks, which other programs read to equal values."""

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import NodeExistsError, NotRepresentableError, StoreLimitError
from omnizarr.storage import LocalStore, MemoryStore, SQLiteStore, TranslatedStore, ZipStore

ENDINGS = ("json", "json.gz", "json.zst", "parq")
GRID = np.arange(60, dtype="i4").reshape(6, 10)
NAMES = {"t": ["y", "x"], "y": ["y"], "x": ["x"]}
VALUES = {"t": np.where(GRID // 20 == 1, 0, GRID), "y": np.arange(6.0), "x": np.arange(10.0) / 4}
CHUNKS = {"t": (2, 5), "y": (6,), "x": (3,)}


def names_of(names, zarr_format):
    return {"dimension_names": names} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": names}}


def fill(group, zarr_format=3, **options):
    """Store `VALUES`: of `t`, two chunks are not stored."""
    for name, values in VALUES.items():
        extra = names_of(NAMES[name], zarr_format)
        group.create_array(name, data=values, chunks=CHUNKS[name], fill_value=0, **extra, **options)


@pytest.fixture(params=[2, 3])
def source(request, tmp_path):
    path = tmp_path / "a.zarr"
    fill(omnizarr.create_group(path, zarr_format=request.param), request.param)
    return path


def check(opened, names=VALUES):
    for name in names:
        np.testing.assert_array_equal(opened[name][...], VALUES[name])


# -- readers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("inline_threshold", [0, 45, 10**6])
@pytest.mark.parametrize("ending", ENDINGS)
def test_omnizarr_reads_equal_values(source, tmp_path, ending, inline_threshold):
    made = omnizarr.references(source, tmp_path / f"r.{ending}", inline_threshold=inline_threshold)
    check(omnizarr.open(tmp_path / f"r.{ending}"))
    assert [each.missing for each in made.arrays if each.path == "t"] == [2]
    assert made.chunks + made.inlined == 4 + 1 + 4
    assert bool(made.inlined) == bool(inline_threshold)
    assert bool(made.chunks) == (inline_threshold != 10**6)


@pytest.mark.parametrize("inline_threshold", [0, 45])
@pytest.mark.parametrize("ending", ["json", "parq"])
def test_xarray_reads_equal_values_by_the_engine_of_kerchunk(source, tmp_path, ending, inline_threshold):
    pytest.importorskip("kerchunk", reason="kerchunk is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    omnizarr.references(source, tmp_path / f"r.{ending}", inline_threshold=inline_threshold, zarr_format=2)
    with xr.open_dataset(str(tmp_path / f"r.{ending}"), engine="kerchunk", mask_and_scale=False) as opened:
        check({name: opened[name].values for name in VALUES})
        assert opened["t"].dims == ("y", "x")


@pytest.mark.parametrize("ending", ["json", "json.gz", "parq"])
def test_zarr_python_reads_equal_values_through_fsspec(source, tmp_path, ending):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    zarr = pytest.importorskip("zarr", minversion="3", reason="zarr-python 3 is not installed")
    omnizarr.references(source, tmp_path / f"r.{ending}")
    options = {"target_options": {"compression": "gzip"}} if ending == "json.gz" else {}
    fs = fsspec.filesystem("reference", fo=str(tmp_path / f"r.{ending}"), asynchronous=True, **options)
    check(zarr.open_group(zarr.storage.FsspecStore(fs, read_only=True), mode="r", use_consolidated=False))


def test_zarr_python_reads_documents_of_version_3(source, tmp_path):
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    zarr = pytest.importorskip("zarr", minversion="3", reason="zarr-python 3 is not installed")
    made = omnizarr.references(source, tmp_path / "r.json", zarr_format=3)
    assert made.zarr_format == 3
    fs = fsspec.filesystem("reference", fo=str(tmp_path / "r.json"), asynchronous=True)
    check(zarr.open_group(zarr.storage.FsspecStore(fs, read_only=True), mode="r", use_consolidated=False))


def test_fastparquet_reads_offsets_as_integers(source, tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("fastparquet", reason="fastparquet is not installed")
    omnizarr.references(source, tmp_path / "r.parq")
    frame = pandas.read_parquet(tmp_path / "r.parq/t/refs.0.parq", engine="fastparquet")
    assert [str(frame[name].dtype) for name in ("offset", "size")] == ["int64", "int64"]
    stored = Path(frame["path"][0]).stat().st_size
    assert (frame["offset"][0], frame["size"][0], frame["path"][2]) == (0, stored, None)


def test_parquet_is_written_without_pyarrow(source, tmp_path, monkeypatch):
    pytest.importorskip("fastparquet", reason="fastparquet is not installed")
    from omnizarr.tools.refs import kerchunk

    def found(name):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return __import__(name)

    monkeypatch.setattr(kerchunk, "import_module", found)
    omnizarr.references(source, tmp_path / "r.parq", inline_threshold=60)
    check(omnizarr.open(tmp_path / "r.parq"))


def test_documents_have_the_form_of_kerchunk(source, tmp_path):
    """VirtualiZarr takes compressors only as filters, as Kerchunk writes them of HDF5 files."""
    omnizarr.references(source, tmp_path / "r.json", zarr_format=2)
    document = json.loads(json.loads((tmp_path / "r.json").read_text())["refs"]["t/.zarray"])
    assert document["compressor"] is None
    assert document["filters"][-1]["id"] in {"zstd", "blosc", "zlib"}


def test_virtualizarr_reads_equal_values(source, tmp_path):
    pytest.importorskip("virtualizarr", minversion="2", reason="VirtualiZarr 2 is not installed")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore as Files
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import KerchunkJSONParser

    omnizarr.references(source, tmp_path / "r.json", zarr_format=2)
    registry = ObjectStoreRegistry({"file://": Files()})
    opened = open_virtual_dataset(
        f"file://{tmp_path}/r.json", registry=registry, parser=KerchunkJSONParser(), loadable_variables=["t", "x", "y"]
    )
    np.testing.assert_array_equal(np.nan_to_num(opened["t"].values), VALUES["t"])
    np.testing.assert_array_equal(np.nan_to_num(opened["x"].values), VALUES["x"])


# -- sources ----------------------------------------------------------------------------------


def test_entries_of_a_zip_archive_are_ranges_of_it(tmp_path):
    with ZipStore(tmp_path / "a.zip", mode="w") as archive:
        fill(omnizarr.create_group(archive))
    omnizarr.references(tmp_path / "a.zip", tmp_path / "r.json", zarr_format=2)
    check(omnizarr.open(tmp_path / "r.json"))
    file, offset, length = json.loads((tmp_path / "r.json").read_text())["refs"]["y/0"]
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        expected = archive.read("y/c/0")
    assert file == str(tmp_path / "a.zip")
    assert (tmp_path / "a.zip").read_bytes()[offset : offset + length] == expected


def test_a_compressed_archive_is_refused(tmp_path):
    with ZipStore(tmp_path / "a.zip", mode="w", compression=zipfile.ZIP_DEFLATED) as archive:
        fill(omnizarr.create_group(archive))
    with pytest.raises(NotRepresentableError, match=r"compressed or encrypted.*pack the archive again"):
        omnizarr.references(tmp_path / "a.zip", tmp_path / "r.json")
    assert not (tmp_path / "r.json").exists()


@pytest.mark.parametrize("ending", ["json", "parq"])
def test_references_to_references_lead_to_the_files(source, tmp_path, ending):
    omnizarr.references(source, tmp_path / f"one.{ending}", inline_threshold=45)
    omnizarr.references(tmp_path / f"one.{ending}", tmp_path / "two.json")
    check(omnizarr.open(tmp_path / "two.json"))
    entries = json.loads((tmp_path / "two.json").read_text())["refs"].values()
    assert {each[0].startswith(str(source)) for each in entries if isinstance(each, list)} == {True}


def test_values_in_memory_can_only_be_inlined(tmp_path):
    store = MemoryStore()
    fill(omnizarr.create_group(store))
    with pytest.raises(NotRepresentableError, match="no parts of files that other programs can read"):
        omnizarr.references(store, tmp_path / "r.json")


def test_values_of_a_database_are_refused(tmp_path):
    with SQLiteStore(tmp_path / "a.sqlite") as store:
        fill(omnizarr.create_group(store))
        with pytest.raises(NotRepresentableError, match="no parts of files"):
            omnizarr.references(store, tmp_path / "r.json")


def test_a_view_in_another_format_leads_to_the_source(tmp_path):
    fill(omnizarr.create_group(tmp_path / "a.zarr", zarr_format=2), 2)
    omnizarr.references(TranslatedStore(tmp_path / "a.zarr", compressors="keep"), tmp_path / "r.json")
    check(omnizarr.open(tmp_path / "r.json"))


@pytest.mark.parametrize("zarr_format", [0, 1, "v3-draft2019", "v3-draft2020"])
def test_old_formats(tmp_path, zarr_format):
    path = tmp_path / "a.zarr"
    name = {} if zarr_format == 0 else {"name": "t"}
    array = omnizarr.create_array(path, data=GRID, chunks=(2, 5), zarr_format=zarr_format, **name)
    omnizarr.references(path, tmp_path / "r.json")
    opened = omnizarr.open(tmp_path / "r.json")
    np.testing.assert_array_equal((opened["t"] if name else opened)[...], array[...])


def test_chunks_over_http(source, tmp_path, http_server):
    place = http_server.fresh()
    shutil.copytree(source, place.directory / "a b.zarr")
    url = f"{place.url}/a%20b.zarr"
    omnizarr.references(f"{url}/t", tmp_path / "r.json", storage_options=place.options, zarr_format=2)
    entries = json.loads((tmp_path / "r.json").read_text())["refs"]
    files = sorted(each[0] for each in entries.values() if isinstance(each, list))
    assert len(files) == 4
    assert files[0].startswith(f"{url}/t/")
    options = {**place.options, "references": "trusted"}
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "r.json", storage_options=options)[...], VALUES["t"])


def test_an_archive_on_a_web_server(tmp_path, http_server):
    place = http_server.fresh()
    with ZipStore(place.directory / "a.zip", mode="w") as archive:
        fill(omnizarr.create_group(archive))
    omnizarr.references(f"{place.url}/a.zip", tmp_path / "r.json", storage_options=place.options, zarr_format=2)
    file, offset, length = json.loads((tmp_path / "r.json").read_text())["refs"]["y/0"]
    with zipfile.ZipFile(place.directory / "a.zip") as archive:
        expected = archive.read("y/c/0")
    assert file == f"{place.url}/a.zip"
    assert (place.directory / "a.zip").read_bytes()[offset : offset + length] == expected


def test_a_bucket(tmp_path, s3_server):
    place = s3_server.fresh()
    fill(omnizarr.create_group(f"{place.url}/a.zarr", storage_options=place.options))
    for name in ("r.json", "r.parq"):
        omnizarr.references(f"{place.url}/a.zarr", f"{place.url}/{name}", storage_options=place.options)
        check(omnizarr.open(f"{place.url}/{name}", storage_options=place.options))
        with pytest.raises(NodeExistsError, match="exist already"):
            omnizarr.references(f"{place.url}/a.zarr", f"{place.url}/{name}", storage_options=place.options)
        omnizarr.references(
            f"{place.url}/a.zarr", f"{place.url}/{name}", storage_options=place.options, overwrite=True, relative=True
        )
        check(omnizarr.open(f"{place.url}/{name}", storage_options=place.options))


# -- codecs that only omnizarr has ------------------------------------------------------------


@pytest.mark.parametrize(("options", "codec"), [({"predictor": True}, "tiff_predictor"), ({}, None)])
@pytest.mark.parametrize("zarr_format", [None, 3])
def test_a_note_names_the_codec_that_zarr_python_does_not_have(tmp_path, options, codec, zarr_format):
    tifffile = pytest.importorskip("tifffile", reason="tifffile is not installed, which writes TIFF")
    zarr = pytest.importorskip("zarr", reason="zarr-python is the other reader")
    values = np.arange(32 * 32, dtype="u2").reshape(32, 32)
    tifffile.imwrite(tmp_path / "x.tif", values, tile=(16, 16), compression="zlib", **options)
    made = omnizarr.references(tmp_path / "x.tif", tmp_path / "r.json", zarr_format=zarr_format)
    assert np.array_equal(omnizarr.open(tmp_path / "r.json")[...], values)
    notes = [remark for remark in made.remarks if "only omnizarr reads" in remark]
    if codec is None:
        assert notes == []
        return
    assert notes == [f"only omnizarr reads /: zarr-python has no codec {codec!r}; convert the file for it"]
    document = json.loads((tmp_path / "r.json").read_text())["refs"]["zarr.json"]
    with pytest.raises(Exception, match=codec):
        zarr.open_array(
            zarr.storage.MemoryStore({"zarr.json": zarr.core.buffer.cpu.Buffer.from_bytes(document.encode())})
        )


# -- shards -----------------------------------------------------------------------------------


@pytest.fixture
def sharded(tmp_path):
    path = tmp_path / "s.zarr"
    root = omnizarr.create_group(path)
    root.create_array("t", data=VALUES["t"], chunks=(2, 5), shards=(4, 10), fill_value=0)
    return path


def test_whole_shards_need_documents_of_version_3(sharded, tmp_path):
    made = omnizarr.references(sharded, tmp_path / "r.json")
    assert (made.zarr_format, made.chunks) == (3, 2)
    assert any("Zarr v3" in remark for remark in made.remarks)
    check(omnizarr.open(tmp_path / "r.json"), ["t"])
    with pytest.raises(NotRepresentableError, match=r"inner=True"):
        omnizarr.references(sharded, tmp_path / "r.parq")


@pytest.mark.parametrize("ending", ["json", "parq"])
def test_inner_chunks_become_chunks(sharded, tmp_path, ending):
    made = omnizarr.references(sharded, tmp_path / f"r.{ending}", inner=True)
    assert (made.zarr_format, made.chunks, made.arrays[0].missing) == (2, 4, 2)
    opened = omnizarr.open(tmp_path / f"r.{ending}")
    assert (opened["t"].chunks, opened["t"].shards) == ((2, 5), None)
    check(opened, ["t"])


def test_inner_chunks_in_transposed_shards(tmp_path):
    codecs = [
        {"name": "transpose", "configuration": {"order": [1, 0]}},
        {
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": [5, 2],
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            },
        },
    ]
    root = omnizarr.create_group(tmp_path / "s.zarr")
    root.create_array("t", shape=GRID.shape, dtype="i4", chunks=(4, 10), codecs=codecs)[...] = VALUES["t"]
    omnizarr.references(tmp_path / "s.zarr", tmp_path / "r.json", inner=True, inline_threshold=0)
    check(omnizarr.open(tmp_path / "r.json"), ["t"])
    omnizarr.references(tmp_path / "s.zarr", tmp_path / "i.json", inner=True, inline_threshold=1000)
    check(omnizarr.open(tmp_path / "i.json"), ["t"])


def test_a_shard_whose_index_leads_outside_is_an_error(sharded, tmp_path):
    shard = sharded / "t/c/0/0"
    shard.write_bytes(shard.read_bytes()[-70:])
    with pytest.raises(omnizarr.errors.ShardIndexError, match="t"):
        omnizarr.references(sharded, tmp_path / "r.json", inner=True)


# -- paths and destinations -------------------------------------------------------------------


def test_relative_paths_move_with_the_data(source, tmp_path):
    (tmp_path / "there").mkdir()
    omnizarr.references(source, tmp_path / "r.json", relative=True, zarr_format=2)
    entries = json.loads((tmp_path / "r.json").read_text())["refs"]
    assert entries["y/0"][0].startswith("a.zarr/y/")
    source.rename(tmp_path / "there/a.zarr")
    (tmp_path / "r.json").rename(tmp_path / "there/r.json")
    check(omnizarr.open(tmp_path / "there/r.json"))


@pytest.mark.parametrize("ending", ENDINGS)
def test_existing_references_are_replaced_only_on_request(source, tmp_path, ending):
    place = tmp_path / f"r.{ending}"
    omnizarr.references(source, place)
    with pytest.raises(NodeExistsError, match="overwrite=True"):
        omnizarr.references(source, place)
    omnizarr.open_group(source, mode="r+")["y"][...] = 7
    omnizarr.references(source, place, overwrite=True, inline_threshold=10**6)
    np.testing.assert_array_equal(omnizarr.open(place)["y"][...], np.full(6, 7.0))


def test_a_directory_that_holds_something_else_is_not_replaced(source, tmp_path):
    place = tmp_path / "r.parq"
    place.mkdir()
    (place / "precious.txt").write_text("data")
    with pytest.raises(NodeExistsError, match="holds no references is in the way"):
        omnizarr.references(source, place, overwrite=True)
    assert (place / "precious.txt").read_text() == "data"


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_left_when_writing_fails(source, tmp_path, ending, monkeypatch):
    from omnizarr.tools.refs import kerchunk

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(kerchunk, "keys_of", fail)
    monkeypatch.setattr(kerchunk, "_names", fail)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OSError, match="full"):
        omnizarr.references(source, tmp_path / f"r.{ending}")
    assert sorted(tmp_path.iterdir()) == before


def test_old_references_stay_when_writing_fails(source, tmp_path, monkeypatch):
    from omnizarr.tools.refs import kerchunk

    omnizarr.references(source, tmp_path / "r.parq")

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(kerchunk, "_names", fail)
    with pytest.raises(OSError, match="full"):
        omnizarr.references(source, tmp_path / "r.parq", overwrite=True)
    check(omnizarr.open(tmp_path / "r.parq"))


def test_other_endings_are_refused(source, tmp_path):
    with pytest.raises(ValueError, match=r"expected a name that ends in \.json"):
        omnizarr.references(source, tmp_path / "r.txt")


def test_compressed_json_is_one_stream(source, tmp_path):
    omnizarr.references(source, tmp_path / "r.json")
    omnizarr.references(source, tmp_path / "r.json.gz")
    with gzip.open(tmp_path / "r.json.gz") as file:
        assert file.read() == (tmp_path / "r.json").read_bytes()


# -- bounds -----------------------------------------------------------------------------------


def test_chunks_that_are_not_stored_cost_nothing(tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    vast = root.create_array("vast", shape=(10**8, 10**7), chunks=(1, 1), dtype="u1", fill_value=0)
    vast[10**8 - 1, 10**7 - 1] = 9
    for ending in ("json", "parq"):
        made = omnizarr.references(tmp_path / "a.zarr", tmp_path / f"r.{ending}")
        assert (made.chunks, made.arrays[0].missing) == (1, 10**15 - 1)
        assert omnizarr.open(tmp_path / f"r.{ending}")["vast"][10**8 - 1, 10**7 - 1] == 9
    assert [path.name for path in (tmp_path / "r.parq/vast").iterdir()] == ["refs.9999999999.parq"]


def test_more_chunks_than_can_be_numbered_are_refused(tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr", zarr_format=2)
    root.create_array("vast", shape=(2**32, 2**32), chunks=(1, 1), dtype="u1")
    with pytest.raises(StoreLimitError, match="numbered"):
        omnizarr.references(tmp_path / "a.zarr", tmp_path / "r.json")


def test_json_has_no_more_references_than_readers_keep(source, tmp_path):
    with (
        omnizarr.config.set({"references.max_count": 5}),
        pytest.raises(StoreLimitError, match=r"\.parq"),
    ):
        omnizarr.references(source, tmp_path / "r.json")


def test_chunks_are_inlined_up_to_the_limit_of_references(source, tmp_path):
    with (
        omnizarr.config.set({"references.max_bytes": 100}),
        pytest.raises(StoreLimitError, match="lower inline_threshold"),
    ):
        omnizarr.references(source, tmp_path / "r.json", inline_threshold=10**6)


@pytest.mark.parametrize("record_size", [1, 3, 100])
def test_records_of_any_size(source, tmp_path, record_size):
    omnizarr.references(source, tmp_path / "r.parq", record_size=record_size)
    check(omnizarr.open(tmp_path / "r.parq"))


def test_an_array_alone(tmp_path):
    omnizarr.create_array(tmp_path / "a.zarr", data=GRID, chunks=(2, 5))
    omnizarr.references(tmp_path / "a.zarr", tmp_path / "r.json")
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "r.json")[...], GRID)
    with pytest.raises(NotRepresentableError, match="in a group only"):
        omnizarr.references(tmp_path / "a.zarr", tmp_path / "r.parq")
    assert not (tmp_path / "r.parq").exists()


def test_an_array_without_dimensions(tmp_path):
    root = omnizarr.create_group(LocalStore(tmp_path / "a.zarr"))
    root.create_array("s", data=np.float32(1.5))
    for ending in ("json", "parq"):
        omnizarr.references(tmp_path / "a.zarr", tmp_path / f"r.{ending}")
        assert omnizarr.open(tmp_path / f"r.{ending}")["s"][()] == 1.5


def test_names_that_need_quoting(tmp_path):
    root = omnizarr.create_group(tmp_path / 'a "b" %d é.zarr')
    root.create_array('x "y" %s ü', data=GRID, chunks=(2, 5))
    for ending in ("json", "parq"):
        omnizarr.references(tmp_path / 'a "b" %d é.zarr', tmp_path / f"r.{ending}")
        np.testing.assert_array_equal(omnizarr.open(tmp_path / f"r.{ending}")['x "y" %s ü'][...], GRID)
