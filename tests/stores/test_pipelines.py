"""URL pipelines lead to the same values in omnizarr and TensorStore; their other segments are as ZEP 8 has them."""

import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.errors import ReadOnlyError, StoreError
from omnizarr.stores import pipelines, resolve

tensorstore = pytest.importorskip("tensorstore", reason="opens the same pipelines")

DATA = np.arange(24, dtype="u2").reshape(4, 6)


def packed(archive, **folders):
    """Write the files of directories, and others, into a zip archive without compression."""
    with zipfile.ZipFile(archive, "w") as file:
        for name, source in folders.items():
            for path in sorted(source.rglob("*")) if source.is_dir() else ():
                if path.is_file():
                    file.write(path, f"{name}/{path.relative_to(source).as_posix()}")
            if source.is_file():
                file.write(source, source.name)
    return archive


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Return a directory with one array in many places."""
    root = tmp_path_factory.mktemp("pipelines")
    for version in (2, 3):
        group = omnizarr.create_group(root / f"v{version}.zarr", zarr_format=version)
        group.create_array("a/b", data=DATA, chunks=(2, 3))
        group.create_array("@c", data=DATA)
    packed(root / "all.zip", v2=root / "v2.zarr", v3=root / "v3.zarr")
    packed(root / "outer.zip", inner=root / "all.zip")
    raw = (root / "all.zip").read_bytes()
    (root / "all.zip.gz").write_bytes(gzip.compress(raw))
    (root / "long.bin").write_bytes(b"x" * 10 + raw + b"y" * 5)
    (root / "x.json").write_text('{"a": {"b/c": [1, 2.5, null, "x", {"y": true}], "~": 3, "": 7, "n": [[1], [2]]}}')
    write(f"file://{root}/db.ocdbt/", "ocdbt", "zarr3", "a/")
    write(f"file://{root}/x.n5/", None, "n5", "a/b/")
    return root


def write(base, adapter, driver, path):
    """Let TensorStore write the array."""
    kvstore = {"driver": "ocdbt", "base": base} if adapter else {"driver": "file", "path": base.removeprefix("file://")}
    kvstore["path"] = kvstore.get("path", "") + path
    spec = {"driver": driver, "kvstore": kvstore, "create": True}
    tensorstore.open(spec, dtype="uint16", shape=[4, 6]).result()[...] = DATA


BOTH = [
    "v3.zarr/|zarr3:a/b/",
    "v3.zarr/a/b/|zarr3:",
    "v3.zarr/a/b|zarr3",
    "v3.zarr/%40c/|zarr3:",
    "v2.zarr/|zarr2:a/b/",
    "all.zip|zip:v3/a/b/|zarr3:",
    "all.zip|zip:v3/|zarr3:a/b/",
    "all.zip|zip:v2/|zarr2:a/b",
    "outer.zip|zip:all.zip|zip:v3/a/b/|zarr3:",
    "db.ocdbt/|ocdbt:a/|zarr3:",
    "db.ocdbt/|ocdbt:|zarr3:a/",
    "x.n5/|n5:a/b/",
]
OURS = [
    "v3.zarr/|zarr:a/b",
    "v2.zarr/|zarr:a/b",
    "v3.zarr|zarr3:%40c",
    "all.zip|zip:|zarr:v2/a/b",
    "all.zip|zip:v3/a/b",
    "all.zip.gz|gzip:|zip:v3/|zarr3:a/b",
    "all.zip.gz|gzip|zip|zarr3:v3/a/b",
    "long.bin|byte-range:10-{stop}|zip:v3/|zarr3:a/b",
]


@pytest.mark.parametrize("rest", BOTH)
def test_tensorstore_reads_the_same(root, rest):
    url = f"file://{root}/{rest}"
    theirs = tensorstore.open(url, read=True).result().read().result()
    assert np.array_equal(theirs, DATA)
    ours = omnizarr.open_array(url)[...]
    assert np.array_equal(ours.T if "n5:" in rest else ours, DATA)  # N5 has the axes in the other order


@pytest.mark.parametrize("rest", OURS)
def test_segments_of_zep_8(root, rest):
    rest = rest.format(stop=10 + (root / "all.zip").stat().st_size)
    for url in (f"file://{root}/{rest}", f"{root}/{rest}"):
        if "%" not in url or url.startswith("file:"):
            assert np.array_equal(omnizarr.open_array(url)[...], DATA)


def test_versions_of_ocdbt(root):
    # the first version has the metadata only
    assert "a" in omnizarr.open_group(f"file://{root}/db.ocdbt/|ocdbt:@v2/|zarr3:")
    with pytest.raises(StoreError, match="segment 1 of the pipeline, 'ocdbt:@v99/'"):
        omnizarr.open_group(f"file://{root}/db.ocdbt/|ocdbt:@v99/")


def test_repository_of_icechunk(tmp_path):
    icechunk = pytest.importorskip("icechunk", reason="makes the repository")
    repo = icechunk.Repository.create(icechunk.local_filesystem_storage(str(tmp_path / "repo")))
    zarr = pytest.importorskip("zarr", reason="writes into the session")
    session = repo.writable_session("main")
    zarr.create_array(session.store, name="a/b", data=DATA)
    snapshot = session.commit("one")
    repo.create_tag("v5", snapshot_id=snapshot)
    for rest in ("", "@branch.main/", "@tag.v5/", f"@{snapshot}/"):
        for url in (f"file://{tmp_path}/repo/|icechunk:{rest}|zarr3:a/b", f"{tmp_path}/repo|icechunk:{rest}a/b"):
            assert np.array_equal(omnizarr.open_array(url)[...], DATA)


def test_volume_of_neuroglancer(tmp_path):
    spec = {
        "driver": "neuroglancer_precomputed",
        "kvstore": {"driver": "file", "path": f"{tmp_path}/em/"},
        "create": True,
        "multiscale_metadata": {"type": "image", "data_type": "uint8", "num_channels": 1},
        "scale_metadata": {
            "key": "1",
            "size": [4, 3, 2],
            "encoding": "raw",
            "chunk_size": [4, 3, 2],
            "resolution": [1] * 3,
        },
    }
    tensorstore.open(spec).result()[...] = np.arange(24, dtype="u1").reshape(4, 3, 2, 1)
    url = f"file://{tmp_path}/em/|neuroglancer-precomputed:"
    theirs = tensorstore.open(url, read=True).result().read().result()
    ours = omnizarr.open_group(url)["1"][...]
    assert np.array_equal(ours.reshape(2, 3, 4), theirs[..., 0].T)
    packed(tmp_path / "em.zip", em=tmp_path / "em")
    in_archive = omnizarr.open_group(f"{tmp_path}/em.zip|zip:em/|neuroglancer-precomputed:")
    assert np.array_equal(in_archive["1"][...], ours)


@pytest.mark.parametrize(
    ("rest", "segment", "message"),
    [
        ("all.zip|zap:", "segment 1 of the pipeline, 'zap:'", "did you mean 'zip:'"),
        ("all.zip|zip:|zarr4:", "segment 2 of the pipeline, 'zarr4:'", "is not known"),
        ("none.zip|zip:v3/", "segment 1 of the pipeline, 'zip:v3/'", "there is no file"),
        ("all.zip|zip:none.zip|zip:", "segment 2 of the pipeline, 'zip:'", "there is no file"),
        ("all.zip|gzip:", "segment 1", "not in the format of gzip"),
        ("all.zip.gz|gzip:x", "segment 1", "it has no path"),
        ("all.zip|byte-range:9-3", "segment 1", "no range of bytes"),
        ("all.zip|byte-range:0-9|zip:", "segment 2", "not a zip archive"),
        ("all.zip|byte-range:0-99999999", "segment 1", "the file ends before the range"),
        ("all.zip|zip:v3/|zarr2:a/b", "segment 2 of the pipeline, 'zarr2:a/b'", "another format"),
        ("v2.zarr/|zarr3:a/b", "segment 1 of the pipeline, 'zarr3:a/b'", "another format"),
        ("v3.zarr/|ocdbt:", "segment 1 of the pipeline, 'ocdbt:'", "no OCDBT database"),
        ("all.zip|..:x", "segment 1 of the pipeline, '..:x'", "leads out of nothing"),
        ("x.json|json:a", "segment 1 of the pipeline, 'json:a'", "no JSON pointer"),
        ("x.json|json:/aa", "segment 1 of the pipeline, 'json:/aa'", "did you mean 'a'?"),
        ("x.json|json:/a/01", "segment 1 of the pipeline, 'json:/a/01'", "no such value"),
        ("all.zip|json:", "segment 1 of the pipeline, 'json:'", "no JSON"),
        ("all.zip|zip:|icechunk:", "segment 2 of the pipeline, 'icechunk:'", "has to be in a directory or a bucket"),
    ],
)
def test_error_names_the_segment(root, rest, segment, message):
    with pytest.raises(StoreError) as caught:
        omnizarr.open(f"file://{root}/{rest}")
    assert segment in str(caught.value)
    assert message in str(caught.value)


def test_what_is_compressed_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pipelines, "_LARGEST", 1000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"0" * 100_000))
    with pytest.raises(StoreError, match="too large to be decompressed"):
        resolve(f"{tmp_path}/bomb.gz|gzip:|zip:")


def test_only_pipelines_of_zarr_can_be_written(root, tmp_path):
    omnizarr.create_array(f"file://{tmp_path}/new.zarr/|zarr3:a", data=DATA)
    assert np.array_equal(omnizarr.open(tmp_path / "new.zarr" / "a")[...], DATA)
    with pytest.raises(ReadOnlyError, match="can only be read"):
        omnizarr.open(f"file://{root}/all.zip|zip:v3/", mode="r+")
    assert omnizarr.open(f"file://{root}/all.zip|zip:v3/").read_only


def test_name_of_a_file_can_have_the_letter(tmp_path):
    for name in ("a|b", "a|zarr", "a|B:c"):
        if name != "a|zarr":  # which is a pipeline
            omnizarr.create_array(tmp_path / name, data=DATA)
            assert np.array_equal(omnizarr.open(str(tmp_path / name))[...], DATA)
    assert Path(tmp_path / "a|b" / "zarr.json").is_file()


def test_commands_take_pipelines(root, tmp_path, capsys):
    for place in (f"file://{root}/all.zip|zip:v3/|zarr3:", f"{root}/all.zip|zip:v3/"):
        for line in (["info"], ["tree"], ["ls"], ["check"], ["du"], ["stat"], ["digest"], ["convert"], ["missing"]):
            target = [str(tmp_path / f"{len(place)}.zarr")] if line == ["convert"] else []
            assert main([*line, place, *target]) == 0, (line, capsys.readouterr())
        assert main(["get", "--json", f"{place.rstrip('/')}{'' if place.endswith(':') else '/'}a/b", "0,:3"]) == 0
        assert main(["diff", place, str(root / "v3.zarr")]) == 0


@pytest.mark.parametrize("pointer", ["", "/a", "/a/b~1c", "/a/b~1c/4/y", "/a/b~1c/3", "/a/~0", "/a/", "/a/n/1/0"])
def test_values_of_json_are_those_of_tensorstore(root, pointer):
    url = f"file://{root}/x.json|json:{pointer}"
    assert omnizarr.open(url)[()] == tensorstore.open(url).result().read().result().item()


def test_numbers_that_json_does_not_have_are_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"a": NaN}')
    with pytest.raises(StoreError, match="NaN is not JSON"):
        omnizarr.open(f"{tmp_path}/x.json|json:/a")


@pytest.mark.parametrize(
    ("pipeline", "expected"),
    [
        # of ZEP 8
        (
            "gs://bucket/path/to/outer.zip|zip:path/to/inner.zip|..:other/zarr/hierarchy/|zarr3:path/to/array",
            ("gs://bucket/path/to/other/zarr/hierarchy/", ["zarr3:path/to/array"]),
        ),
        ("gs://bucket/path/to/file.zip|zip:a/b|..:/path/other.zip|zip:c", ("gs://bucket/path/other.zip", ["zip:c"])),
        ("s3://b/x.zip|zip:a/y.zip|zip:c|..:../z.zip|zip:", ("s3://b/x.zip", ["zip:z.zip", "zip:"])),
        ("data/x.zip|zip:|..:../y%20z.zarr|zarr3:", ("y z.zarr", ["zarr3:"])),
    ],
)
def test_a_segment_leads_out_of_the_one_before_it(pipeline, expected):
    first, segments = pipelines.split(pipeline)
    assert (first, [segment.text for segment in segments]) == expected


def test_what_leads_out_leads_to_values(root):
    assert np.array_equal(omnizarr.open(f"{root}/all.zip|zip:v3/|..:v3.zarr|zarr3:a/b")[...], DATA)


@pytest.mark.parametrize("place", ["v3.zarr/a/b", "all.zip/v3/a/b", "v2.zarr", "all.zip|zip:v3/|zarr3:a"])
def test_info_names_the_pipeline_of_what_it_opened(root, place, capsys):
    assert main(["info", "--json", f"{root}/{place}"]) == 0
    url = json.loads(capsys.readouterr().out)["pipeline"]
    assert repr(omnizarr.open(url)) == repr(omnizarr.open(f"{root}/{place}"))
    assert main(["info", f"{root}/{place}"]) == 0
    assert (f"  pipeline    {url}" in capsys.readouterr().out) == ("zip" in place)
    if not place.endswith("zarr") and "|" not in place:  # TensorStore opens no groups
        assert np.array_equal(tensorstore.open(url).result().read().result(), DATA)


def test_values_in_memory_have_no_pipeline():
    assert pipelines.of(omnizarr.create_array({}, data=[1]).store, "", 3) is None


@pytest.mark.slow
def test_a_bucket_of_another_server_is_named_by_its_url(s3_server):
    place = s3_server.fresh()
    options = {name: value for name, value in place.options.items() if name not in {"endpoint", "allow_http"}}
    url = f"s3+{place.options['endpoint']}/{place.url.removeprefix('s3://')}/a.zarr"
    omnizarr.create_array(url, data=DATA, storage_options=options)
    array = omnizarr.open(f"{place.url}/a.zarr", storage_options=place.options)
    assert np.array_equal(array[...], DATA)
    assert pipelines.of(array.store, array.path, 3) == f"{url}/|zarr3:"
    for each in (url, f"{url}|zarr3:"):
        assert np.array_equal(omnizarr.open(each, storage_options=options)[...], DATA)
    assert main(["info", url, *(f"-o{name}={value}" for name, value in options.items())]) == 0


@pytest.mark.parametrize("url", ["s3+https://", "s3+https:///bucket", "s3+http://host", "s3+http://host/|zarr3:"])
def test_servers_without_a_bucket_are_refused(url):
    with pytest.raises(StoreError, match="names no bucket"):
        resolve(url)
