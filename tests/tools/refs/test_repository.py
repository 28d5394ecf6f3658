"""References as virtual chunks of Icechunk. The oracle is zarr-python with the package icechunk."""

import os

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import ContainsGroupError, NotRepresentableError, OmnizarrError, ReadOnlyError

icechunk = pytest.importorskip("icechunk", reason="icechunk is not installed")
zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

VALUES = np.arange(100, dtype="f4").reshape(10, 10)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "repo"


@pytest.fixture
def url(place):
    return f"icechunk://{place}@main"


def theirs(place, folder):
    """Open a repository by zarr-python, with virtual chunks in a folder."""
    repository = icechunk.Repository.open(
        icechunk.local_filesystem_storage(str(place)), authorize_virtual_chunk_access={f"file://{folder}/": None}
    )
    return zarr.open(repository.readonly_session("main").store, mode="r")


def messages(place):
    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(place)))
    return [each.message for each in repository.ancestry(branch="main")]


@pytest.fixture
def hdf5(tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["raw"] = VALUES
        file.create_dataset("packed", data=VALUES, chunks=(3, 4), compression="gzip")
        file["group/scalar"] = 5
        file["raw"].attrs["units"] = "m"
    return tmp_path / "x.h5"


@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
def test_hdf5_file_as_virtual_chunks(hdf5, place, url, tmp_path):
    made = omnizarr.references(hdf5, url, message="in place")
    assert (made.kind, made.zarr_format, made.chunks) == ("icechunk", 3, 14)
    root = theirs(place, tmp_path)
    for name in ("raw", "packed"):
        np.testing.assert_array_equal(root[name][...], VALUES)
        np.testing.assert_array_equal(omnizarr.open(url)[name][...], VALUES)
    assert root["group/scalar"][()] == 5
    assert root["raw"].attrs["units"] == "m"
    assert messages(place) == ["in place", "Repository initialized"]
    assert not list(place.glob("chunks/*"))


@pytest.mark.parametrize("separator", [".", "/"])
def test_directory_of_zarr_with_missing_chunks_and_any_keys(tmp_path, place, url, separator):
    array = omnizarr.create_array(
        tmp_path / "x.zarr", shape=(10, 10), chunks=(3, 4), dtype="f4", zarr_format=2, fill_value=0,
        chunk_key_encoding={"name": "v2", "separator": separator},
    )  # fmt: skip
    array[:5] = VALUES[:5] + 1
    omnizarr.references(array, url)
    folders = {f"file://{os.path.dirname(path)}/": None for path in map(str, (tmp_path / "x.zarr").rglob("*"))}  # noqa: PTH120
    repository = icechunk.Repository.open(
        icechunk.local_filesystem_storage(str(place)), authorize_virtual_chunk_access=folders
    )
    np.testing.assert_array_equal(zarr.open(repository.readonly_session("main").store)[...], array[...])
    np.testing.assert_array_equal(omnizarr.open(url)[...], array[...])


def test_inlined_chunks_and_the_inner_chunks_of_shards(tmp_path, place, url):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root.create_array("sharded", data=VALUES, chunks=(5, 5), shards=(10, 10))
    root.create_array("small", data=[1, 2], chunks=1)
    made = omnizarr.references(root, f"{url}/below", inner=True, inline_threshold=50)
    assert made.inlined == 2
    found = omnizarr.open(f"{url}/below")
    np.testing.assert_array_equal(found["sharded"][...], VALUES)
    assert found["sharded"].shards is None
    assert found["small"][...].tolist() == [1, 2]


def test_files_that_change_later_are_an_error(hdf5, url):
    omnizarr.references(hdf5, url)
    data = hdf5.read_bytes()
    hdf5.write_bytes(data)
    later = hdf5.stat().st_mtime + 100
    os.utime(hdf5, (later, later))
    with pytest.raises(OmnizarrError):
        omnizarr.open(url)["raw"][...]


def test_existing_nodes_need_overwrite(hdf5, place, url):
    omnizarr.references(hdf5, url)
    with pytest.raises(ContainsGroupError):
        omnizarr.references(hdf5, url)
    omnizarr.references(hdf5, url, overwrite=True, message="again")
    assert messages(place)[0] == "again"
    omnizarr.references(hdf5, f"{url}/other")
    np.testing.assert_array_equal(omnizarr.open(f"{url}/other/raw")[...], VALUES)


def test_chunks_that_are_no_parts_of_files_are_refused_and_leave_nothing(tmp_path, place, url):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("v", (4,), "i4", chunks=(2,), compression="gzip")
        dataset[:2] = 1
        dataset.id.write_direct_chunk((2,), np.array([7, 8], "i4").tobytes(), filter_mask=1)
    with pytest.raises(NotRepresentableError, match="no part of a file"):
        omnizarr.references(tmp_path / "x.h5", url)
    with pytest.raises(NotRepresentableError):
        omnizarr.references({"zarr.json": b'{"zarr_format":3,"node_type":"group"}'}, url, zarr_format=2)
    assert not place.exists()


def test_names_that_icechunk_does_not_find_are_refused(hdf5, tmp_path, place, url):
    (tmp_path / "a b.h5").write_bytes(hdf5.read_bytes())
    with pytest.raises(NotRepresentableError, match="no files with such names"):
        omnizarr.references(tmp_path / "a b.h5", url)
    assert not place.exists()


def test_what_has_no_meaning_is_refused(hdf5, tmp_path, url):
    with pytest.raises(ValueError, match="relative"):
        omnizarr.references(hdf5, url, relative=True)
    with pytest.raises(ValueError, match="message"):
        omnizarr.references(hdf5, tmp_path / "refs.json", message="x")
    with pytest.raises(ValueError, match="icechunk:///data"):
        omnizarr.references(hdf5, tmp_path / "refs.txt")


def test_tags_cannot_be_written(hdf5, place, url):
    omnizarr.references(hdf5, url)
    repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(place)))
    repository.create_tag("v1", repository.lookup_branch("main"))
    with pytest.raises(ReadOnlyError, match="never changes"):
        omnizarr.references(hdf5, f"icechunk://{place}@v1", overwrite=True)


def test_files_in_s3(s3_server, tmp_path, place, url):
    bucket = s3_server.fresh()
    options = dict(bucket.options)
    omnizarr.create_array(f"{bucket.url}/x.zarr", data=VALUES, chunks=(3, 4), storage_options=options)
    omnizarr.references(f"{bucket.url}/x.zarr", url, storage_options=options)
    text = b"".join(path.read_bytes() for path in place.rglob("*") if path.is_file())
    assert b"omnizarr-secret" not in text
    keys = icechunk.s3_credentials(access_key_id="omnizarr-access", secret_access_key="omnizarr-secret")
    repository = icechunk.Repository.open(
        icechunk.local_filesystem_storage(str(place)),
        authorize_virtual_chunk_access=icechunk.containers_credentials({f"s3://{bucket.name}/": keys}),
    )
    np.testing.assert_array_equal(zarr.open(repository.readonly_session("main").store)[...], VALUES)


def test_files_in_the_bucket_of_the_repository(s3_server):
    bucket = s3_server.fresh()
    options = dict(bucket.options)
    omnizarr.create_array(f"{bucket.url}/x.zarr", data=VALUES, chunks=(3, 4), storage_options=options)
    url = f"icechunk+s3://{bucket.name}/repo@main"
    omnizarr.references(f"{bucket.url}/x.zarr", url, storage_options=options)
    np.testing.assert_array_equal(omnizarr.open(url, storage_options=options)[...], VALUES)


def test_command_line(hdf5, place, url, capsys):
    from omnizarr.cli import main

    assert main(["refs", str(hdf5), url, "-m", "by hand"]) == 0
    assert "committed to main" in capsys.readouterr().out
    assert messages(place)[0] == "by hand"
