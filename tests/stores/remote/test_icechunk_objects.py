"""Files of Icechunk repositories: version 2 of the format, and files that are broken."""

import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.zstd import Zstd
from omnizarr.errors import OmnizarrError, StoreAccessError, StoreError
from omnizarr.settings import engines
from omnizarr.stores.base import is_key
from omnizarr.stores.remote import icechunk_config as configs
from omnizarr.stores.remote import icechunk_objects as objects
from tests.repeats import runs

PACKED = Path(__file__).parents[1] / "data" / "icechunk2.zip"
VALUES = np.arange(100.0).reshape(10, 10)
RUNS = runs(3)


@pytest.fixture
def repo(tmp_path):
    """The repository of version 2, unpacked."""
    with zipfile.ZipFile(PACKED) as packed:
        packed.extractall(tmp_path / "repo")
    return tmp_path / "repo"


def test_version_2_is_read(repo):
    for ref, number in {"@main": 1, "@v1": 0, "@dev": 0, "@tag:v1": 0, "": 1}.items():
        root = omnizarr.open(f"icechunk://{repo}{ref}")
        assert dict(root.attrs) == {"title": ("first", "second")[number]}
        np.testing.assert_array_equal(root["ocean/temp"][...], VALUES + number)
        np.testing.assert_array_equal(root["big"][...], np.arange(4096))
        np.testing.assert_array_equal(root["split"][2:9:3], np.arange(10)[2:9:3] * (number + 1))
        assert root["ocean/scalar"][()] == 7
    about = omnizarr.open(repo).store.about()
    assert (about["spec"], about["branches"], about["tags"]) == ("version 2", ["dev", "main"], ["v1"])
    assert omnizarr.open(f"icechunk://{repo}@{about['snapshot']}").attrs["title"] == "second"


@pytest.mark.parametrize("name", ["gone", "nope", "0" * 20])
def test_version_2_names_its_branches(repo, name):
    with pytest.raises(StoreError, match="no such branch, tag or snapshot") as caught:
        omnizarr.open(f"icechunk://{repo}@{name}")
    assert caught.value.expected == "dev, main, v1"


def test_virtual_chunks_of_version_2(repo):
    root = omnizarr.open(repo)
    with pytest.raises(StoreAccessError, match="only if you trust them") as caught:
        root["few"][...]
    assert caught.value.found == "s3://omnizarr-test/a/x.bin"
    found = root.store._tree.find("few/c/0")
    assert (found.url, found.offset, found.length) == ("0\nabc\nvcc://data/a/x.bin", 8, 16)
    (container,) = root.store._repository.containers
    assert (container.name, container.prefix, container.kind) == ("data", "s3://omnizarr-test/", "s3")
    expected = {"region": "eu-west-1", "anonymous": True, "endpoint_url": "http://127.0.0.1:9", "allow_http": True}
    assert expected.items() <= container.options.items()


@pytest.mark.parametrize("name", ["repo", "snapshots", pytest.param("manifests", marks=pytest.mark.slow)])
def test_broken_files_are_errors_or_right(repo, name):
    """Mutations of what is in the files: nothing crashes, hangs or fills memory."""
    rng = np.random.default_rng(len(name))
    newest = omnizarr.open(repo).store
    paths = {"repo": ["repo"], "snapshots": [f"snapshots/{newest.snapshot}"]}.get(name, [])
    paths = paths or [
        f"manifests/{newest._tree.snapshot.manifests(each).ids[0]}" for each in ("big", "few", "ocean/temp")
    ]
    for path in (repo / each for each in paths):
        whole = path.read_bytes()
        kind = whole[37]
        body = bytes(objects.unwrapped(whole, kind)[1].data)
        for _ in range(RUNS * 5):
            broken = bytearray(body)
            for at in rng.integers(0, len(body), int(rng.integers(1, 6))):
                broken[at] = int(rng.choice([0, 1, 127, 128, 255, int(rng.integers(256))]))
            path.write_bytes(
                whole[:38] + b"\0" + bytes(broken[: int(rng.choice([len(body), rng.integers(len(body))]))])
            )
            try:
                root = omnizarr.open(repo)
                assert all(map(is_key, root.store.list()))
                for array in ("ocean/temp", "split", "big", "few"):
                    root[array][...]
            except OmnizarrError as error:
                assert "\n" not in str(error)  # noqa: PT017 - some mutations change nothing
        path.write_bytes(whole)
    assert omnizarr.open(repo)["split"][3] == 6


@pytest.mark.parametrize("kind", [objects.SNAPSHOT, objects.MANIFEST, objects.REPO])
@pytest.mark.parametrize(
    "body", [bytes(8), b"\4\0\0\0" * 50, b"\xff\xff\xff\x7f" + bytes(100), b"\x08\0\0\0" + b"\xff" * 200, b"", b"\4"]
)
def test_files_without_what_must_be_there_are_errors(kind, body):
    """What is missing is not read as no chunks, whose values would be the fill value."""
    data = objects.MAGIC + b"x".ljust(24) + bytes([2, kind, 0]) + body
    read = {objects.SNAPSHOT: objects.Snapshot, objects.MANIFEST: objects.Manifest}.get(kind)
    with pytest.raises(StoreError):
        objects.refs_of(data) if read is None else read(data, "0" * 20)


def test_a_file_under_another_name_is_an_error(repo):
    tree = omnizarr.open(repo).store._tree
    one, other = (tree.snapshot.manifests(name).ids[0] for name in ("ocean/temp", "big"))
    (repo / "manifests" / other).write_bytes((repo / "manifests" / one).read_bytes())
    with pytest.raises(StoreError, match="another file than its name says"):
        omnizarr.open(repo)["big"][...]


def test_a_bomb_is_an_error():
    body = Zstd(1, False, BytesSpec(None)).encode(bytes(300 << 20))
    data = objects.MAGIC + b"x".ljust(24) + bytes([2, objects.MANIFEST, 1]) + bytes(body)
    with pytest.raises(StoreError, match="cannot be decompressed"):
        objects.Manifest(data, "0" * 20)


def test_places_that_are_compressed_with_a_dictionary():
    """The dictionary and the frames are of the package zstandard 0.25, which the native engine does not need."""
    if engines.module() is None:
        pytest.importorskip("zstandard", reason="neither the native engine nor zstandard is here")
    dictionary = b"s3://omnizarr-test/a/b"
    frame = bytes.fromhex("28b52ffd2028b500007031322f6368756e6b30312e62696e0200b8e0529940")
    found = [objects._decompressed(frame, dictionary) for _ in range(2)]
    assert found == ["s3://omnizarr-test/a/b12/chunk000001.bin"] * 2
    large = bytes.fromhex("28b52ffda0701101004d0000080001006c11391002")  # 70,000 zeros
    for broken in (large, frame[:-3], b"", b"abcd" + frame[4:], frame[:9] + b"\xff\xff" + frame[11:]):
        with pytest.raises(StoreError, match="cannot be decompressed"):
            objects._decompressed(broken, dictionary)
    assert bytes(Zstd(1, False, BytesSpec(None)).decode(bytes.fromhex("28b52ffd2000010000"))) == b""  # by no dictionary


def test_names_of_objects():
    assert objects.id_of(bytes(range(12))) == "000G40R40M30E209185G"  # by the tests of icechunk
    rows = np.random.default_rng(0).integers(0, 256, (100, 12)).astype("u1")
    expected = []
    for row in rows:
        number = int.from_bytes(row.tobytes(), "big") << 4
        expected.append("".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[number >> 5 * at & 31] for at in range(19, -1, -1)))
    assert objects.ids_of(rows) == expected


# -- configurations


def test_containers_in_yaml_as_icechunk_writes_it():
    text = """inline_chunk_threshold_bytes: null
virtual_chunk_containers:
  s3://mybucket/:
    name: null
    url_prefix: s3://mybucket/
    store: !s3
      region: us-east-1
      endpoint_url: http://localhost:1
      anonymous: false
      network_stream_timeout_seconds: 60
  'file:///tmp/a: b''"#/':
    name: null
    url_prefix: 'file:///tmp/a: b''"#/'
    store: !local_file_system '/tmp/a: b''"#/'
  gs://b/:
    name: here
    url_prefix: gs://b/
    store: !gcs {}
manifest: null
"""
    found = {each.prefix: each for each in configs.containers_of(configs.of_yaml(text))}
    assert set(found) == {"s3://mybucket/", "gs://b/", "file:///tmp/a: b'\"#/"}
    assert found["s3://mybucket/"].options["endpoint_url"] == "http://localhost:1"
    assert (found["gs://b/"].kind, found["gs://b/"].name) == ("gcs", "here")
    assert configs.of_yaml("a: null\n") == configs.of_yaml("virtual_chunk_containers: null\n") == {}


@pytest.mark.parametrize(
    "line", ["  - a", "  a: *b\n c", "  &x a: b", "  ? a", "    {a: b}", "  a:\n    b: 1\n   c: 2\n d: 3"]
)
def test_other_yaml_is_an_error_or_no_container(line):
    try:
        found = configs.containers_of(configs.of_yaml(f"virtual_chunk_containers:\n{line}\n"))
    except StoreError as error:
        assert "configuration of the repository" in error.message  # noqa: PT017 - either is right
    else:
        assert found == []


def test_broken_flexbuffers_are_errors(repo):
    _, flat = objects.unwrapped((repo / "repo").read_bytes(), objects.REPO)
    data = bytes(flat.bytes(flat.vectors(flat.root(), 9, 1)))
    rng = np.random.default_rng(1)
    for _ in range(300):
        broken = bytearray(data)
        for at in rng.integers(0, len(data), int(rng.integers(1, 5))):
            broken[at] = int(rng.integers(256))
        with suppress(StoreError):
            configs.containers_of(configs.of_flexbuffer(bytes(broken[: int(rng.integers(1, len(data) + 1))])))
