"""Repositories of Icechunk by path and URL. The oracle is zarr-python with the package icechunk."""

import json
import pickle
import sys

import numpy as np
import pytest

import omnizarr
from omnizarr.errors import (
    MissingDependencyError,
    NodeNotFoundError,
    ReadOnlyError,
    StoreAccessError,
    StoreError,
)
from omnizarr.stores import kinds
from tests.engine.both import needs_native

icechunk = pytest.importorskip("icechunk", reason="icechunk is not installed")
zarr = pytest.importorskip("zarr", reason="zarr-python is not installed")

from omnizarr.stores.remote.icechunk import Address, IcechunkStore  # noqa: E402 - it needs icechunk

VALUES = np.arange(100.0).reshape(10, 10)


def write(repository, values=VALUES, message="first", **options):
    """Write a small hierarchy by zarr-python, commit it, and return the snapshot."""
    session = repository.writable_session("main")
    root = zarr.group(session.store, overwrite=True, attributes={"title": message})
    ocean = root.create_group("ocean")
    temp = ocean.create_array("temp", shape=values.shape, chunks=(3, 4), dtype=values.dtype, **options)
    temp[...] = values
    ocean.create_array("scalar", shape=(), dtype="int32")[...] = 7
    return session.commit(message)


@pytest.fixture
def repository(tmp_path):
    """A repository with two snapshots of main and a tag of the first."""
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")))
    made.create_tag("v1", write(made))
    write(made, VALUES + 1, "second")
    return made


@pytest.fixture
def url(tmp_path, repository):
    return f"icechunk://{tmp_path / 'repo'}"


# -- addresses


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("icechunk:///data/repo", Address("file", "", "/data/repo")),
        ("icechunk:///data/repo@main", Address("file", "", "/data/repo", "main")),
        ("icechunk:///data/repo@main/a/b", Address("file", "", "/data/repo", "main", "a/b")),
        ("icechunk+file:///data/a%40b@v1", Address("file", "", "/data/a@b", "v1")),
        ("icechunk:///data/repo@main/a@b", Address("file", "", "/data/repo", "main", "a@b")),
        ("icechunk+s3://bucket/a/repo@v1/x", Address("s3", "bucket", "a/repo", "v1", "x")),
        ("icechunk+gs://bucket/repo", Address("gs", "bucket", "repo")),
        ("icechunk+s3://bucket@main", Address("s3", "bucket", "", "main")),
    ],
)
def test_parts_of_a_url(text, expected):
    assert Address.of(text) == expected


def test_url_of_a_relative_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Address.of("icechunk://data/repo@main").path == str(tmp_path / "data" / "repo")


def test_at_in_the_path_of_a_directory_that_exists(tmp_path):
    folder = tmp_path / "me@home"
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(folder / "repo")))
    write(made)
    assert omnizarr.open(f"icechunk://{folder}/repo@main")["ocean/scalar"][()] == 7
    assert omnizarr.open(f"icechunk://{folder}/repo")["ocean/scalar"][()] == 7


@pytest.mark.parametrize("text", ["icechunk+ftp://host/repo", "icechunk+s3://@main", "icechunk+memory://a@main"])
def test_other_urls_are_refused(text):
    with pytest.raises(StoreError) as caught:
        omnizarr.open(text)
    assert caught.value.expected or caught.value.remedy


# -- reading


def test_branch_tag_and_snapshot(url, repository):
    first, second = repository.lookup_tag("v1"), repository.lookup_branch("main")
    for ref, values in {"main": VALUES + 1, "v1": VALUES, first: VALUES, second: VALUES + 1}.items():
        root = omnizarr.open(f"{url}@{ref}")
        np.testing.assert_array_equal(root["ocean/temp"][...], values)
        assert isinstance(root.store, IcechunkStore)
        assert root.read_only
    for ref in ("branch:main", "tag:v1", f"snapshot:{first}"):
        assert omnizarr.open(f"{url}@{ref}/ocean/scalar")[()] == 7


def test_path_without_a_scheme_is_the_branch_main(tmp_path, repository):
    for path in (tmp_path / "repo", str(tmp_path / "repo"), f"file://{tmp_path / 'repo'}"):
        assert omnizarr.open(path).attrs["title"] == "second"
    assert omnizarr.open(tmp_path / "repo", path="ocean")["temp"].shape == (10, 10)


def test_nodes_by_url(url):
    np.testing.assert_array_equal(omnizarr.open(f"{url}@main/ocean/temp")[2:5, ::3], VALUES[2:5, ::3] + 1)
    assert sorted(omnizarr.open(f"{url}/ocean")) == ["scalar", "temp"]
    with pytest.raises(NodeNotFoundError, match="did you mean 'ocean'"):
        omnizarr.open(f"{url}@main/oceam")


@pytest.mark.parametrize("name", ["nope", "a/b", "v9", "0" * 20, "tag:main", "branch:v1", "snapshot:v1"])
def test_unknown_references_name_those_that_there_are(url, name):
    with pytest.raises(StoreError, match="no such branch, tag or snapshot") as caught:
        omnizarr.open(f"{url}@{name}")
    assert caught.value.expected == "main, v1"


def test_name_of_a_branch_and_of_a_tag(url, repository):
    repository.create_branch("both", repository.lookup_branch("main"))
    repository.create_tag("both", repository.lookup_tag("v1"))
    with pytest.raises(StoreError, match="the same name") as caught:
        omnizarr.open(f"{url}@both")
    assert "@branch:both" in caught.value.remedy
    assert omnizarr.open(f"{url}@tag:both").attrs["title"] == "first"
    assert omnizarr.open(f"{url}@branch:both").attrs["title"] == "second"


def test_names_of_many_kinds(url, repository):
    for name in ("x y", "é", "a:b", "a@b", "a.b"):
        repository.create_branch(name, repository.lookup_tag("v1"))
        quoted = name.replace(" ", "%20")
        assert omnizarr.open(f"{url}@{quoted}").attrs["title"] == "first"


def test_what_is_open_never_changes(url, repository):
    root = omnizarr.open(f"{url}@main")
    write(repository, VALUES * 2, "third")
    np.testing.assert_array_equal(root["ocean/temp"][...], VALUES + 1)
    np.testing.assert_array_equal(omnizarr.open(f"{url}@main")["ocean/temp"][...], VALUES * 2)


@pytest.mark.parametrize(
    ("values", "options"),
    [
        (VALUES, {"compressors": None}),
        (VALUES.astype("float32"), {"shards": (6, 8)}),
        (np.full((10, 10), 3, "int16"), {"fill_value": 3}),
        (np.arange(100).reshape(10, 10).astype("complex64"), {}),
        (np.arange(100).reshape(10, 10) % 3 == 0, {}),
    ],
    ids=["raw", "sharded", "missing", "complex", "bool"],
)
def test_values_are_those_of_zarr_python(tmp_path, values, options):
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")))
    write(made, values, **options)
    theirs = zarr.open(made.readonly_session("main").store)["ocean/temp"]
    ours = omnizarr.open(tmp_path / "repo")["ocean/temp"]
    np.testing.assert_array_equal(ours[...], theirs[...])
    np.testing.assert_array_equal(ours[1:-1:2, [0, 9]], values[1:-1:2, [0, 9]])


def test_keys_that_icechunk_does_not_know_are_missing(url):
    store = omnizarr.open(url).store
    for key in ("ocean/.zgroup", ".zmetadata", "README.txt", "x/c/0", "ocean/temp/c/9/9", "ocean/temp/c.0"):
        assert (store.get(key), store.exists(key), store.size(key)) == (None, False, None)
    assert list(store.list_prefix("nothing/here")) == []
    assert store.list_dir("nothing").keys == []
    assert sorted(store.list_prefix("ocean/temp/c/0")) == [f"ocean/temp/c/0/{n}" for n in range(3)]
    assert store.list_dir("ocean/temp").prefixes == ["ocean/temp/c/"]
    assert set(store.list()) >= {"zarr.json", "ocean/temp/zarr.json", "ocean/scalar/c"}


def test_store_pickles(url):
    again = pickle.loads(pickle.dumps(omnizarr.open(f"{url}@v1").store))
    assert again == omnizarr.open(f"{url}@v1").store
    assert again.get("ocean/temp/zarr.json") is not None
    assert again != omnizarr.open(f"{url}@main").store


def test_what_there_is_to_know(url, repository):
    repository.create_branch("dev", repository.lookup_tag("v1"))
    about = omnizarr.open(f"{url}@v1").store.about()
    snapshot = repository.lookup_tag("v1")
    assert about["branches"] == ["dev", "main"]
    assert about["spec"] == "version 1"
    assert about["tags"] == ["v1"]
    assert (about["tag"], about["snapshot"], about["message"]) == ("v1", snapshot, "first")
    assert about["written"] == repository.lookup_snapshot(snapshot).written_at.isoformat(sep=" ", timespec="seconds")


def test_differences_of_snapshots(url):
    found = omnizarr.diff(f"{url}@v1", f"{url}@main")
    assert {each.path for each in found} == {"", "ocean/temp"}
    assert omnizarr.diff(f"{url}@main", f"{url}@branch:main").equal


# -- writing


@pytest.mark.parametrize("mode", ["r+", "a", "w", "w-"])
def test_writing_is_refused_with_what_to_do(url, mode):
    with pytest.raises(ReadOnlyError) as caught:
        omnizarr.open(f"{url}@main", mode=mode)
    assert "convert" in caught.value.remedy
    assert "session" in caught.value.remedy


def test_what_is_open_cannot_be_written(url):
    root = omnizarr.open(url)
    with pytest.raises(ReadOnlyError):
        root["ocean/temp"][0, 0] = 1
    with pytest.raises(ReadOnlyError):
        root.store.set("zarr.json", b"{}")
    with pytest.raises(ReadOnlyError):
        root.store.with_read_only(False)


# -- what is broken


def test_no_repository(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(StoreError, match="no repository of Icechunk here"):
            omnizarr.open(f"icechunk://{path}@main")
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_format_of_the_future_is_named(tmp_path):
    place = tmp_path / "new"
    place.mkdir()
    (place / "repo").write_bytes("ICE🧊CHUNK".encode() + b"ic-9.0.0".ljust(24) + bytes([3, 6, 1]) + b"more")
    for text in (str(place), f"icechunk://{place}@main"):
        with pytest.raises(StoreError, match="version of the format of Icechunk that is not known") as caught:
            omnizarr.open(text)
        assert (caught.value.found, caught.value.expected) == ("3", "1 or 2")


@pytest.mark.parametrize("part", ["refs/branch.main/ref.json", "snapshots", "manifests", "chunks"])
@pytest.mark.parametrize("how", ["gone", "empty", "garbage", "cut"])
def test_broken_repository_is_an_error_or_right(tmp_path, repository, part, how):
    session = repository.writable_session("main")  # chunks in files of their own: larger than what manifests hold
    zarr.create_array(session.store, name="big", shape=(4096,), chunks=(1024,), dtype="f8", compressors=None)[...] = 1
    session.commit("third")
    if (part, how) == ("chunks", "garbage"):
        how = "gone"  # chunks without a codec are all bytes: others of the same length are other values
    place = tmp_path / "repo" / part
    for file in [place] if place.is_file() else sorted(place.iterdir()):
        data = file.read_bytes()
        if how == "gone":
            file.unlink()
        else:
            file.write_bytes({"empty": b"", "garbage": b"\xff" * len(data), "cut": data[: len(data) // 2]}[how])
    with pytest.raises(omnizarr.errors.OmnizarrError) as caught:
        omnizarr.open(tmp_path / "repo")["big"][...]
    assert "\n" not in str(caught.value)


def test_directory_that_only_looks_like_a_repository(tmp_path):
    (tmp_path / "repo").write_bytes(b"git")
    (tmp_path / "refs" / "branch.main").mkdir(parents=True)
    (tmp_path / "refs" / "branch.main" / "ref.json").write_text("{}")
    with pytest.raises(NodeNotFoundError):
        omnizarr.open(tmp_path)
    omnizarr.create_group(tmp_path / "x")
    assert omnizarr.open(tmp_path / "x").name == "/"


def test_documents_of_zarr_beside_come_first(tmp_path, repository):
    omnizarr.create_group(omnizarr.stores.LocalStore(tmp_path / "repo")).attrs["a"] = 1
    assert dict(omnizarr.open(tmp_path / "repo").attrs) == {"a": 1}
    assert omnizarr.open(f"icechunk://{tmp_path / 'repo'}").attrs["title"] == "second"


def test_reading_needs_no_package_and_writing_names_it(url, monkeypatch):
    monkeypatch.setitem(sys.modules, "icechunk", None)
    np.testing.assert_array_equal(omnizarr.open(f"{url}@main")["ocean/temp"][...], VALUES + 1)
    with pytest.raises(MissingDependencyError, match="package 'icechunk'") as caught:
        omnizarr.convert(f"{url}@main", f"{url}@main/copy")
    assert "[icechunk]" in caught.value.remedy


def test_reading_imports_neither_icechunk_nor_zarr_python(url):
    import subprocess

    code = f"import sys, omnizarr; omnizarr.open({url!r})['ocean/temp'][:]; "
    code += "assert not {'icechunk', 'zarr', 'yaml'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_repository_elsewhere_is_called_what_it_is():
    with pytest.raises(NodeNotFoundError, match="an Icechunk repository") as caught:
        omnizarr.open({"a/repo": b"ICE\xf0\x9f\xa7\x8aCHUNK..."}, path="a")
    assert "icechunk+s3://" in caught.value.remedy
    assert kinds.ICECHUNK.title == "an Icechunk repository"


# -- virtual chunks


def virtual(tmp_path, container, location, name="repo"):
    """Make a repository with one virtual chunk, whatever its location, and return its path."""
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(container, icechunk.local_filesystem_store(container.removeprefix("file://")))
    )
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / name)), config=config)
    session = made.writable_session("main")
    zarr.create_array(session.store, name="v", shape=(16,), chunks=(16,), dtype="u1", compressors=None)
    spec = icechunk.VirtualChunkSpec([0], location, 0, 16)
    session.store.set_virtual_refs("v", [spec], validate_containers=False)
    session.commit("virtual")
    return tmp_path / name


@pytest.fixture
def outside(tmp_path_factory):
    file = tmp_path_factory.mktemp("outside") / "secret.bin"
    file.write_bytes(bytes(range(16)))
    return file


def test_virtual_chunks_beside_the_repository(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.bin").write_bytes(bytes(range(16)))
    path = virtual(tmp_path, f"file://{tmp_path}/data/", f"file://{tmp_path}/data/x.bin")
    assert omnizarr.open(path)["v"][...].tolist() == list(range(16))


def test_virtual_chunks_elsewhere_need_trust(tmp_path, outside):
    path = virtual(tmp_path, f"file://{outside.parent}/", f"file://{outside}")
    with pytest.raises(StoreAccessError, match="only if you trust them") as caught:
        omnizarr.open(path)["v"][...]
    assert str(outside.parent) in str(caught.value)
    for trusted in ("trusted", [str(outside.parent)], [f"file://{outside.parent}"]):
        found = omnizarr.open(path, storage_options={"references": trusted})["v"][...]
        assert found.tolist() == list(range(16))
    with pytest.raises(StoreAccessError):
        omnizarr.open(path, storage_options={"references": [str(tmp_path)]})["v"][...]


def test_virtual_chunks_outside_of_all_containers(tmp_path, outside):
    (tmp_path / "data").mkdir()
    path = virtual(tmp_path, f"file://{tmp_path}/data/", f"file://{outside}")
    with pytest.raises(StoreAccessError, match="outside of the containers"):
        omnizarr.open(path, storage_options={"references": "trusted"})["v"][...]


def test_virtual_chunks_through_a_link(tmp_path, outside):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.bin").symlink_to(outside)
    path = virtual(tmp_path, f"file://{tmp_path}/data/", f"file://{tmp_path}/data/x.bin")
    with pytest.raises(StoreAccessError):
        omnizarr.open(path)["v"][...]
    assert omnizarr.open(path, storage_options={"references": "trusted"})["v"][3] == 3


@pytest.mark.parametrize("dots", ["../", "%2e%2e/", "x/../../"])
def test_virtual_chunks_with_dots(tmp_path, outside, dots):
    (tmp_path / "data").mkdir()
    up = f"file://{tmp_path}/data/" + dots * 30 + str(outside).lstrip("/")
    try:
        path = virtual(tmp_path, f"file://{tmp_path}/data/", up)
    except Exception as error:  # noqa: BLE001 - icechunk itself may refuse to write it
        pytest.skip(f"icechunk does not write it: {str(error)[:80]}")
    with pytest.raises(omnizarr.errors.OmnizarrError):
        omnizarr.open(path)["v"][...]


# -- S3


@pytest.fixture(scope="module")
def bucket(s3_server):
    return s3_server.fresh()


@pytest.fixture(scope="module")
def remote(bucket):
    """A repository in a bucket, by icechunk itself."""
    storage = icechunk.s3_storage(
        bucket=bucket.name,
        prefix="a/repo",
        endpoint_url=bucket.endpoint,
        region="us-east-1",
        allow_http=True,
        force_path_style=True,
        access_key_id="omnizarr-access",
        secret_access_key="omnizarr-secret",
    )
    made = icechunk.Repository.create(storage)
    made.create_tag("v1", write(made))
    return made


def test_repository_in_s3(bucket, remote):
    url = f"icechunk+s3://{bucket.name}/a/repo"
    for place in (f"{url}@main", f"{url}@v1", url):
        root = omnizarr.open(place, storage_options=dict(bucket.options))
        np.testing.assert_array_equal(root["ocean/temp"][...], VALUES)
    array = omnizarr.open(f"{url}@main/ocean/temp", storage_options=dict(bucket.options))
    assert array.shape == (10, 10)
    assert "omnizarr-secret" not in repr(array.store)
    assert "omnizarr-secret" not in json.dumps(array.store.about())


def test_no_repository_in_s3(bucket):
    with pytest.raises(StoreError, match="no repository of Icechunk here"):
        omnizarr.open(f"icechunk+s3://{bucket.name}/nothing@main", storage_options=dict(bucket.options))


def test_repository_in_s3_without_the_scheme_is_called_what_it_is(bucket, remote):
    with pytest.raises(NodeNotFoundError, match="an Icechunk repository") as caught:
        omnizarr.open(f"s3://{bucket.name}/a/repo", storage_options=dict(bucket.options))
    assert "icechunk+s3://" in caught.value.remedy


def test_wrong_keys_are_an_error_without_them(bucket):
    options = {**bucket.options, "secret_access_key": "not-the-secret"}
    with pytest.raises(StoreError) as caught:
        omnizarr.open(f"icechunk+s3://{bucket.name}/a/repo@main", storage_options=options)
    assert "not-the-secret" not in str(caught.value)


def test_unknown_options_are_refused(bucket, url):
    with pytest.raises(StoreError, match="option"):
        omnizarr.open(f"icechunk+s3://{bucket.name}/a/repo", storage_options={"no_such_option": 1})
    with pytest.raises(StoreError, match="storage_options mean nothing"):
        omnizarr.open(url, storage_options={"region": "x"})


# -- what icechunk's own reader says


def hierarchy(seed, repository, tmp_path):
    """Write a random hierarchy in some commits, with rewrites, and return the snapshots."""
    rng = np.random.default_rng(seed)
    kinds = ["u1", "<i2", ">i4", "<f4", "<f8", "<c8", "?", "<U5", "datetime64[s]", "S3"]
    (tmp_path / "data").mkdir(exist_ok=True)
    outside = tmp_path / "data" / f"{seed}.bin"
    outside.write_bytes(rng.bytes(4096))
    snapshots = []
    for commit in range(3):
        session = repository.writable_session("main")
        root = zarr.open_group(session.store, mode="a")
        for number in range(4):
            name = f"g{number % 2}/{'a-b/' * (number == 3)}a{number}"
            if commit == 0:
                shape = tuple(int(each) for each in rng.integers(1, 40, number))
                chunks = tuple(int(each) for each in rng.integers(1, 12, number))
                root.create_array(
                    name,
                    shape=shape,
                    chunks=chunks,
                    dtype=np.dtype(kinds[int(rng.integers(len(kinds)))]),
                    compressors=None if rng.random() < 0.5 else "auto",
                )
            array = root[name]
            region = tuple(slice(*sorted(map(int, rng.integers(0, length + 1, 2)))) for length in array.shape)
            new = rng.integers(0, 100, array[region].shape).astype("u1").astype(array.dtype)
            array[region] = new
        virtual = root.require_array("virtual", shape=(64,), chunks=(16,), dtype="u1", compressors=None)
        spec = icechunk.VirtualChunkSpec([commit], f"file://{outside}", int(rng.integers(4000)), 16)
        session.store.set_virtual_refs("virtual", [spec])
        assert virtual.shape == (64,)
        snapshots.append(session.commit(f"commit {commit}"))
    return snapshots


@pytest.mark.filterwarnings("ignore:The data type")
@pytest.mark.parametrize("seed", range(4))
def test_random_hierarchies_are_what_icechunk_reads(tmp_path, seed):
    config = icechunk.RepositoryConfig.default()
    config.inline_chunk_threshold_bytes = (0, 40, 512, 40)[seed]
    if seed % 2:
        axis = icechunk.ManifestSplitDimCondition.Any()
        rule = {icechunk.ManifestSplitCondition.AnyArray(): {axis: 2}}
        config.manifest = icechunk.ManifestConfig(splitting=icechunk.ManifestSplittingConfig.from_dict(rule))
    prefix = f"file://{tmp_path}/data/"
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(prefix, icechunk.local_filesystem_store(f"{tmp_path}/data/"))
    )
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")), config, {prefix: None})
    snapshots = hierarchy(seed, made, tmp_path)
    made.create_tag("second", snapshots[1])
    for ref, where in {"main": {"branch": "main"}, "tag:second": {"tag": "second"}}.items():
        store = made.readonly_session(**where).store
        theirs, ours = zarr.open_group(store, mode="r"), omnizarr.open(f"icechunk://{tmp_path / 'repo'}@{ref}")
        members = dict(theirs.members(max_depth=None))
        assert set(ours.store.list()) == set(sync(store.list_prefix("")))
        assert members
        for path, member in members.items():
            if isinstance(member, zarr.Array):
                np.testing.assert_array_equal(ours[path][...], member[...], err_msg=f"{ref} {path}")


def sync(keys):
    """Return what an asynchronous iterator yields."""
    import asyncio

    async def gather():
        return [key async for key in keys]

    return asyncio.run(gather())


def test_sizes_are_listed_from_manifests(url, repository):
    import asyncio

    from omnizarr.stores import verbs

    store = omnizarr.open(f"{url}@main").store
    session = repository.readonly_session("main").store
    sizes = dict(verbs.list_sizes(store, ""))
    assert sizes
    for key, size in sizes.items():
        assert size == store.size(key) == asyncio.run(session.getsize(key))


# -- virtual chunks that have changed


@pytest.mark.parametrize("what", ["time", "tag", "none"])
def test_a_virtual_chunk_in_a_file_that_has_changed_is_an_error(tmp_path, what):
    import os
    from datetime import UTC, datetime, timedelta

    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "x.bin"
    file.write_bytes(bytes(range(16)))
    status = file.stat()
    checks = {
        "time": {"last_updated_at_checksum": datetime.fromtimestamp(status.st_mtime, UTC) + timedelta(seconds=1)},
        "tag": {"etag_checksum": f"{status.st_ino:x}-{status.st_mtime_ns // 1000:x}-{status.st_size:x}"},
        "none": {},
    }
    prefix = f"file://{tmp_path}/data/"
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(prefix, icechunk.local_filesystem_store(f"{tmp_path}/data/"))
    )
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")), config, {prefix: None})
    session = made.writable_session("main")
    zarr.create_array(session.store, name="v", shape=(16,), chunks=(16,), dtype="u1", compressors=None)
    session.store.set_virtual_refs("v", [icechunk.VirtualChunkSpec([0], f"file://{file}", 0, 16, **checks[what])])
    session.commit("virtual")
    assert omnizarr.open(tmp_path / "repo")["v"][3] == 3
    opened = omnizarr.open(tmp_path / "repo")
    file.write_bytes(bytes(range(16, 32)))
    os.utime(file, (status.st_mtime + 100, status.st_mtime + 100))
    if what == "none":
        assert opened["v"][3] == 19
        return
    for root in (opened, omnizarr.open(tmp_path / "repo")):
        with pytest.raises(omnizarr.errors.OmnizarrError, match="changed since its chunks were written"):
            root["v"][...]


# -- a web server


def test_repository_on_a_web_server(tmp_path, repository, http_server):
    import shutil

    place = http_server.fresh()
    shutil.copytree(tmp_path / "repo", place.directory / "repo")
    url = f"icechunk+{place.url}/repo"
    for ref, values in {"@main": VALUES + 1, "@v1": VALUES, "": VALUES + 1}.items():
        np.testing.assert_array_equal(omnizarr.open(f"{url}{ref}")["ocean/temp"][...], values)
    with pytest.raises(StoreError, match="no such branch, tag or snapshot"):
        omnizarr.open(f"{url}@nope")
    with pytest.raises(StoreError, match="no repository of Icechunk here"):
        omnizarr.open(f"icechunk+{place.url}/none@nope")
    with pytest.raises(StoreError, match="name and password"):
        omnizarr.open(f"icechunk+{place.url.replace('://', '://me:pw@')}/repo@main")
    with pytest.raises(ReadOnlyError):
        omnizarr.convert(tmp_path / "repo", f"{url}@main/copy")


def test_requests_over_http(tmp_path, repository, http_server):
    import shutil

    from tests.faultproxy import FaultProxy

    session = repository.writable_session("main")
    big = zarr.create_array(session.store, name="big", shape=(4096,), chunks=(512,), dtype="f8", compressors=None)
    big[...] = np.arange(4096)
    session.commit("big")
    place = http_server.fresh()
    shutil.copytree(tmp_path / "repo", place.directory / "repo")
    with FaultProxy(place.endpoint) as proxy:
        root = omnizarr.open(f"icechunk+{place.at(proxy.endpoint).url}/repo@main")
        array = root["big"]
        opening = [path.partition("/repo/")[2].partition("/")[0] for _, path in proxy.requests.elements()]
        # What of version 1 and 2 could be there is asked for at once.
        assert sorted(opening) == ["refs", "refs", "repo", "snapshots"]
        np.testing.assert_array_equal(array[...], np.arange(4096))
        reading = proxy.requests.total() - len(opening)
        assert reading == 1 + 8  # the manifest, and a request for each chunk
        np.testing.assert_array_equal(array[...], np.arange(4096))
        assert proxy.requests.total() == len(opening) + reading + 8


@needs_native
def test_the_native_engine_reads_chunks_and_asks_once_where_they_lie(tmp_path, repository, monkeypatch):
    from omnizarr.stores.manifests.file import File
    from omnizarr.stores.manifests.places import Places

    session = repository.writable_session("main")
    for name, chunk in (("small", 8), ("big", 512)):
        made = zarr.create_array(session.store, name=name, shape=(4096,), chunks=(chunk,), dtype="f8", compressors=None)
        made[...] = np.arange(4096)
    session.commit("many")
    find, calls = Places.find, []
    monkeypatch.setattr(Places, "find", lambda *given: calls.append(1) or find(*given))
    monkeypatch.setattr(File, "pieces", None)
    monkeypatch.setattr(File, "pieces_into", None)
    with omnizarr.config.set({"engine": "native"}):
        root = omnizarr.open(tmp_path / "repo")
        for name in ("small", "big"):
            array = root[name]
            for _ in range(2):
                np.testing.assert_array_equal(array[...], np.arange(4096))
    assert len(calls) == 2


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_a_chunk_that_was_removed_is_an_error_and_not_the_fill_value(tmp_path, repository, engine):
    session = repository.writable_session("main")
    made = zarr.create_array(session.store, name="big", shape=(4096,), chunks=(512,), dtype="f8", compressors=None)
    made[...] = 1
    session.commit("big")
    min((tmp_path / "repo" / "chunks").iterdir()).unlink()
    array = omnizarr.open(tmp_path / "repo")["big"]
    with pytest.raises(StoreError, match=r"a chunk lies in chunks/.*which is not there") as caught:
        array[...]
    assert "garbage collection" in caught.value.remedy


def test_virtual_chunks_in_s3(bucket, tmp_path, monkeypatch):
    from tests.servers import s3_client

    with s3_client(bucket.endpoint) as client:
        tag = client.put_object(Bucket=bucket.name, Key="in/x y.bin", Body=bytes(range(64)))["ETag"]
    prefix = f"s3://{bucket.name}/in/"
    config = icechunk.RepositoryConfig.default()
    store = icechunk.s3_store(
        region="us-east-1", endpoint_url=bucket.endpoint, allow_http=True, s3_compatible=True, force_path_style=True
    )
    config.set_virtual_chunk_container(icechunk.VirtualChunkContainer(prefix, store))
    made = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")), config)
    session = made.writable_session("main")
    for name, given in {"right": tag.strip('"'), "wrong": "0" * 32}.items():
        zarr.create_array(session.store, name=name, shape=(32,), chunks=(16,), dtype="u1", compressors=None)
        spec = icechunk.VirtualChunkSpec([0], f"{prefix}x%20y.bin", 8, 16, etag_checksum=given)
        session.store.set_virtual_refs(name, [spec], validate_containers=False)
    session.commit("virtual")
    with pytest.raises(StoreAccessError, match="only if you trust them"):
        omnizarr.open(tmp_path / "repo")["right"][...]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", str(bucket.options["access_key_id"]))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", str(bucket.options["secret_access_key"]))
    for trusted in ("trusted", [prefix]):
        root = omnizarr.open(tmp_path / "repo", storage_options={"references": trusted})
        if trusted == "trusted":
            assert root["right"][...].tolist() == [*range(8, 24), *[0] * 16]
            with pytest.raises(omnizarr.errors.OmnizarrError, match="changed since its chunks were written"):
                root["wrong"][...]
        else:  # the container names a server, which gets no credentials
            with pytest.raises(omnizarr.errors.OmnizarrError):
                root["right"][...]
