"""Conversions into repositories of Icechunk, and back. The oracle is zarr-python with the package icechunk."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.errors import (
    ChunkError,
    ConflictError,
    ContainsGroupError,
    NotRepresentableError,
    ReadOnlyError,
    StoreError,
)
from omnizarr.stores import LocalStore

icechunk = pytest.importorskip("icechunk", reason="icechunk is not installed")
zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

VALUES = np.arange(100.0).reshape(10, 10)


@pytest.fixture
def cli(capsys):
    """Return a function that runs a command in this process, and returns its exit code and what it printed."""

    def run(*words):
        code = main(list(map(str, words)))
        return SimpleNamespace(code=code, out=capsys.readouterr().out)

    return run


@pytest.fixture
def source(tmp_path):
    """A hierarchy of Zarr v2, with a separator and a file that Icechunk does not know."""
    path = tmp_path / "x.zarr"
    root = omnizarr.create_group(path, zarr_format=2)
    root.attrs["title"] = "here"
    root.create_array("v", data=VALUES, chunks=(3, 4))
    root.create_group("sub").create_array("s", data=np.array(5))
    return path


@pytest.fixture
def place(tmp_path):
    return tmp_path / "repo"


@pytest.fixture
def url(place):
    return f"icechunk://{place}@main"


def opened(place):
    return icechunk.Repository.open(icechunk.local_filesystem_storage(str(place)))


def theirs(place, branch="main"):
    return zarr.open(opened(place).readonly_session(branch).store, mode="r")


def messages(place, branch="main"):
    return [each.message for each in opened(place).ancestry(branch=branch)]


def test_new_repository_gets_one_commit(source, place, url):
    done = omnizarr.convert(source, url, message="first")
    assert done.is_lossless
    assert done.verified
    root = theirs(place)
    np.testing.assert_array_equal(root["v"][...], VALUES)
    assert (root["sub/s"][()], dict(root.attrs)) == (5, {"title": "here"})
    assert messages(place) == ["first", "Repository initialized"]
    assert done.commit == f"main: {opened(place).lookup_branch('main')}"
    assert done.commit in str(done)
    assert done.to_json()["commit"] == done.commit
    assert not list(place.rglob("*omnizarr*"))


def test_and_back(source, url, tmp_path):
    omnizarr.convert(source, url)
    for target in ("y.zarr", "y.zip"):
        assert omnizarr.convert(url, tmp_path / target).is_lossless
        assert omnizarr.diff(source, tmp_path / target).equal


def test_default_message_names_the_source(source, place, url):
    omnizarr.convert(source, url)
    assert messages(place)[0] == f"Convert {source}"


def test_existing_nodes_need_overwrite(source, place, url):
    omnizarr.convert(source, url)
    with pytest.raises(ContainsGroupError):
        omnizarr.convert(source, url)
    assert len(messages(place)) == 2
    omnizarr.open(source, mode="r+")["v"][...] = -VALUES
    omnizarr.convert(source, url, overwrite=True, message="again")
    np.testing.assert_array_equal(theirs(place)["v"][...], -VALUES)
    assert messages(place)[0] == "again"


def test_into_a_group_that_does_not_exist_yet(source, place, url):
    omnizarr.convert(source, url)
    omnizarr.convert(source, f"{url}/copies/one")
    root = theirs(place)
    np.testing.assert_array_equal(root["copies/one/v"][...], root["v"][...])
    omnizarr.convert(f"{url}/v", f"{url}/w")  # from a snapshot into a session of the same branch
    np.testing.assert_array_equal(theirs(place)["w"][...], VALUES)


@pytest.mark.parametrize(
    "encoding",
    [{"name": "v2", "separator": "."}, {"name": "default", "separator": "."}, {"name": "v2", "separator": "/"}],
    ids=str,
)
def test_other_keys_of_chunks_become_those_of_icechunk(tmp_path, place, url, encoding):
    array = omnizarr.create_array(tmp_path / "k.zarr", data=VALUES, chunks=(3, 4), chunk_key_encoding=encoding)
    assert omnizarr.convert(array, url).is_lossless
    np.testing.assert_array_equal(theirs(place)[...], VALUES)


def test_shards_and_missing_chunks(tmp_path, place, url):
    array = omnizarr.create_array(
        tmp_path / "k.zarr", shape=(64, 64), chunks=(8, 8), shards=(32, 32), dtype="f4", fill_value=np.nan
    )
    array[:20, :20] = 1
    omnizarr.convert(array, url)
    np.testing.assert_array_equal(theirs(place)[...], array[...])
    assert omnizarr.info(url).chunks_stored == 1


def test_rechunked_on_the_way(source, place, url):
    omnizarr.convert(source, url, chunks=(5, 5))
    np.testing.assert_array_equal(theirs(place)["v"][...], VALUES)
    assert theirs(place)["v"].chunks == (5, 5)


def test_files_that_are_not_zarr_are_losses(source, url):
    (source / "README.txt").write_text("hi")
    with pytest.raises(NotRepresentableError):
        omnizarr.convert(source, url, strict=True)
    done = omnizarr.convert(source, url)
    assert [loss.what for loss in done.losses] == ["the file 'README.txt'"]


def test_dry_run_makes_nothing(source, place, url):
    found = omnizarr.convert(source, url, dry_run=True)
    assert found.is_lossless
    assert not place.exists()
    omnizarr.convert(source, url)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    assert omnizarr.convert(source, f"{url}/again", dry_run=True).is_lossless
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_failure_leaves_neither_commit_nor_new_repository(source, place, url):
    chunk = next(path for path in (source / "v").iterdir() if path.name == "0.0")
    good = chunk.read_bytes()
    chunk.write_bytes(b"broken")
    with pytest.raises(ChunkError):
        omnizarr.convert(source, url, strict=True, chunks=(5, 5))
    assert not place.exists()
    chunk.write_bytes(good)
    omnizarr.convert(source, url, message="good")
    chunk.write_bytes(b"broken")
    with pytest.raises(ChunkError):
        omnizarr.convert(source, url, strict=True, overwrite=True, chunks=(5, 5))
    assert messages(place) == ["good", "Repository initialized"]
    np.testing.assert_array_equal(theirs(place)["v"][...], VALUES)


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize("calls", [1, 5, 12])
def test_killed_conversion_leaves_no_commit(source, place, url, calls):
    omnizarr.convert(source, url, message="good")
    code = f"""
import os, signal
import omnizarr
from omnizarr.stores.remote import icechunk_writing as icechunk
number = 0
real = icechunk.SessionStore.set
def set(self, key, value):
    global number
    number += 1
    if number > {calls}:
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, key, value)
icechunk.SessionStore.set = set
omnizarr.open({str(source)!r}, mode="r+")["v"][...] = 1
omnizarr.convert({str(source)!r}, {url!r}, overwrite=True)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode < 0
    assert messages(place) == ["good", "Repository initialized"]
    np.testing.assert_array_equal(theirs(place)["v"][...], VALUES)
    omnizarr.convert(source, url, overwrite=True, message="after")
    assert messages(place)[0] == "after"


def test_commits_of_others_meanwhile(source, place, url, monkeypatch):
    omnizarr.convert(source, url, message="good")
    from omnizarr.stores.remote.icechunk_writing import Session

    real = Session.commit

    def other(path):
        def commit(self, message):
            session = opened(place).writable_session("main")
            zarr.create_array(session.store, name=path, shape=(2,), dtype="i4", overwrite=True)[...] = 9
            session.commit("of another")
            return real(self, message)

        return commit

    monkeypatch.setattr(Session, "commit", other("elsewhere"))
    omnizarr.convert(source, f"{url}/copy", message="ours")
    assert messages(place)[:2] == ["ours", "of another"]
    assert theirs(place)["elsewhere"][0] == 9
    np.testing.assert_array_equal(theirs(place)["copy/v"][...], VALUES)
    monkeypatch.setattr(Session, "commit", other("v"))
    with pytest.raises(ConflictError, match="nothing was committed"):
        omnizarr.convert(source, url, overwrite=True)
    assert messages(place)[0] == "of another"


def test_tags_and_snapshots_cannot_be_written(source, place, url):
    omnizarr.convert(source, url)
    made = opened(place)
    made.create_tag("v1", made.lookup_branch("main"))
    for ref in ("v1", made.lookup_branch("main")):
        with pytest.raises(ReadOnlyError, match="never changes") as caught:
            omnizarr.convert(source, f"icechunk://{place}@{ref}", overwrite=True)
        assert f"{place}@main" in caught.value.remedy
    with pytest.raises(StoreError, match="no such branch"):
        omnizarr.convert(source, f"icechunk://{place}@mian")


def test_other_branch_of_a_new_repository(source, place):
    omnizarr.convert(source, f"icechunk://{place}@dev", message="first")
    assert messages(place, "dev") == ["first", "Repository initialized"]
    assert messages(place) == ["Repository initialized"]


def test_something_else_is_in_the_way(source, place, url):
    place.mkdir()
    (place / "thesis.txt").write_text("important")
    with pytest.raises(StoreError, match="something else"):
        omnizarr.convert(source, url)
    assert (place / "thesis.txt").read_text() == "important"


def test_what_has_no_meaning_is_refused(source, url, tmp_path):
    with pytest.raises(NotRepresentableError, match="Zarr v3 only"):
        omnizarr.convert(source, url, zarr_format=2)
    with pytest.raises(ValueError, match="resume"):
        omnizarr.convert(source, url, resume=True)
    with pytest.raises(ValueError, match="message"):
        omnizarr.convert(source, tmp_path / "y.zarr", message="x")
    assert not (tmp_path / "y.zarr").exists()


def test_uneven_chunks_are_an_error_and_leave_nothing(tmp_path, place, url):
    array = omnizarr.create_array(tmp_path / "k.zarr", shape=(10,), chunks=[[3, 7]], dtype="i4")
    array[...] = 1
    for only_plans in (True, False):
        with pytest.raises(omnizarr.errors.NotRepresentableError, match="chunks of one shape only") as caught:
            omnizarr.convert(array, url, dry_run=only_plans)
        assert "chunks=(100, 100)" in str(caught.value)
    with pytest.raises(omnizarr.errors.NotRepresentableError, match="chunks of one shape only"):
        omnizarr.references(tmp_path / "k.zarr", url)
    assert not place.exists()
    assert omnizarr.convert(array, url, chunks=(5,)).is_lossless
    np.testing.assert_array_equal(omnizarr.open(url)[...], np.ones(10))


def test_netcdf_file_becomes_a_commit(tmp_path, place, url):
    netcdf = pytest.importorskip("netCDF4", reason="netCDF4 is not installed")
    with netcdf.Dataset(tmp_path / "x.nc", "w") as file:
        file.createDimension("x", 6)
        file.createVariable("x", "f4", ("x",))[:] = np.arange(6)
    omnizarr.convert(tmp_path / "x.nc", url, message="netCDF")
    assert messages(place)[0] == "netCDF"
    np.testing.assert_array_equal(theirs(place)["x"][...], np.arange(6))


def test_in_s3(source, s3_server):
    bucket = s3_server.fresh()
    url = f"icechunk+s3://{bucket.name}/r@main"
    options = dict(bucket.options)
    assert omnizarr.convert(source, url, message="first", storage_options=options).is_lossless
    assert omnizarr.convert(source, f"{url}/copy", storage_options=options).is_lossless
    np.testing.assert_array_equal(omnizarr.open(url, storage_options=options)["copy/v"][...], VALUES)
    keys = list(omnizarr.stores.resolve(f"s3://{bucket.name}", "r", options)[0].list())
    assert all(key.startswith("r/") for key in keys)


def test_nothing_is_left_of_a_new_repository_in_a_bucket(tmp_path, source, s3_server):
    bucket = s3_server.fresh()
    options = dict(bucket.options)
    there = omnizarr.stores.resolve(f"s3://{bucket.name}", "r+", options)[0]
    there.set("r2/kept", b"of somebody else")
    array = omnizarr.create_array(tmp_path / "k.zarr", shape=(10,), chunks=[[3, 7]], dtype="i4")
    with pytest.raises(omnizarr.errors.NotRepresentableError, match="chunks of one shape only"):
        omnizarr.convert(array, f"icechunk+s3://{bucket.name}/r@dev", storage_options=options)
    assert list(there.list()) == ["r2/kept"]
    url = f"icechunk+s3://{bucket.name}/r"
    assert omnizarr.convert(source, url, storage_options=options).is_lossless
    with pytest.raises(omnizarr.errors.NotRepresentableError, match="chunks of one shape only"):
        omnizarr.convert(array, f"{url}/more", storage_options=options)
    np.testing.assert_array_equal(omnizarr.open(url, storage_options=options)["v"][...], VALUES)


def test_command_line(source, place, url, cli):
    assert cli("convert", source, url, "-m", "by hand").code == 0
    assert messages(place)[0] == "by hand"
    out = cli("info", url).out
    assert "by hand" in out
    assert "branches" in out
    assert json.loads(cli("info", "--json", f"{url}/v").out)["about"]["message"] == "by hand"
    for name in ("tree", "ls", "check", "digest", "dump"):
        assert cli(name, url).code == 0, name
    for name in ("get", "stat", "show", "missing", "du"):
        assert cli(name, f"{place}/v").code == 0, name
    assert "writers" not in cli("info", f"{place}/v").out
    assert cli("diff", source, url).code == 0
    assert cli("diff", url, f"{url}/sub").code == 1
    assert cli("cp", source, f"{url}/z").code == 1
    assert cli("attrs", url, "a=1").code != 0


def test_xarray_engine(tmp_path, place, url):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    data = xr.Dataset({"t": ("x", np.arange(6.0))}, {"x": np.arange(6)})
    session = icechunk.Repository.create(icechunk.local_filesystem_storage(str(place))).writable_session("main")
    data.to_zarr(session.store, consolidated=False)
    session.commit("by xarray")
    for name in (url, str(place)):
        xr.testing.assert_identical(xr.open_dataset(name, engine="omnizarr").load(), data)


def test_store_refuses_other_keys(tmp_path, source, url):
    omnizarr.convert(source, url)
    assert isinstance(omnizarr.stores.resolve(source, "r")[0], LocalStore)
    with pytest.raises(ReadOnlyError):
        omnizarr.open(url, mode="r+")
