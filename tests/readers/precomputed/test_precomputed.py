"""Neuroglancer precomputed volumes: TensorStore, and volumes of CloudVolume, say what is in them."""

import gzip
import importlib.util
import itertools
import json
import pickle
import random
import struct
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.codecs import pictures
from omnizarr.codecs.pictures import jpegxl_shape
from omnizarr.errors import (
    ChunkError,
    ChunkSizeError,
    CodecError,
    MetadataError,
    MissingDependencyError,
    NodeNotFoundError,
    NotRepresentableError,
    OmnizarrError,
    ReadOnlyError,
    ShardIndexError,
    StoreError,
    StoreLimitError,
)
from omnizarr.readers.precomputed import volume
from omnizarr.readers.precomputed.store import PrecomputedStore
from omnizarr.stores import LocalStore, MemoryStore, verbs
from omnizarr.support.lazy import Lazy

DATA = Path(__file__).parent / "data"
_spec = importlib.util.spec_from_file_location("made_of_volumes", DATA / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)

PICTURES = ("jpeg", "png")
SCALE = {"key": "8", "size": [6, 5, 4], "chunk_sizes": [[4, 4, 4]], "encoding": "raw", "resolution": [8, 8, 40]}
INFO = {"@type": "neuroglancer_multiscale_volume", "type": "image", "data_type": "uint8", "num_channels": 1}
SHARDING = {
    "@type": "neuroglancer_uint64_sharded_v1",
    "preshift_bits": 0,
    "hash": "identity",
    "minishard_bits": 0,
    "shard_bits": 0,
}


def info(*scales, **changes):
    return json.dumps({**INFO, "scales": [{**SCALE, **each} for each in scales or ({},)], **changes}).encode()


def opened(values):
    return omnizarr.open_group(PrecomputedStore(MemoryStore(values)), mode="r")


def of_tensorstore(path, **more):
    ts = pytest.importorskip("tensorstore", reason="TensorStore says what is in a volume")
    spec = {"driver": "neuroglancer_precomputed", "kvstore": {"driver": "file", "path": str(path)}, **more}
    return ts.open(spec, create="scale_metadata" in more, open=True).result()


@pytest.fixture(scope="module")
def volumes(tmp_path_factory):
    """The directories of the volumes that others wrote."""
    top = tmp_path_factory.mktemp("volumes")
    for name in ("tensorstore", "cloudvolume"):
        with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
            archive.extractall(top / name)
    return top


# -- what others wrote


@pytest.mark.parametrize(("name", "count"), [("tensorstore", 30), ("cloudvolume", 27)])
def test_volumes_of_others_hold_their_values(volumes, name, count):
    seen = 0
    for place in sorted((volumes / name).iterdir()):
        encoding, dtype, channels, _ = place.name.split("-")
        if encoding == "compresso":
            continue
        if encoding in PICTURES:
            pytest.importorskip("imagecodecs", reason="imagecodecs decodes pictures")
        expected = make.values(dtype, int(channels), encoding).T
        array = omnizarr.open(place)["8_8_40"]
        assert (array.dtype, array.shape, array.chunks) == (dtype, (int(channels), 7, 13, 21), (int(channels), 4, 8, 8))
        assert array.dimension_names == ("channel", "z", "y", "x")
        # what CloudVolume writes as JPEG has a loss
        loss = 3 if name == "cloudvolume" and encoding == "jpeg" else 0
        assert np.abs(array[...].astype(float) - expected).max() <= loss, place.name
        assert np.abs(array[0, 3:5, 8, 2:20].astype(float) - expected[0, 3:5, 8, 2:20]).max() <= loss, place.name
        assert array.attrs["voxel_offset"] == make.OFFSET
        assert array.attrs["resolution"] == make.RESOLUTION
        seen += 1
    assert seen == count


def test_their_chunks_are_listed_as_they_are_found(volumes):
    for place in sorted(volumes.glob("*/*")):
        store = omnizarr.open(place).store
        keys = sorted(store.list())
        chunks = {f"8_8_40/c/0/{z}/{y}/{x}" for x in range(3) for y in range(2) for z in range(2)}
        assert set(keys) == {"zarr.json", "8_8_40/zarr.json", *chunks}
        assert len(keys) == len(set(keys))
        assert {key for key, size in verbs.list_sizes(store, "8_8_40/c/") if size > 0} == chunks
        assert sorted(store.list_prefix("8_8_40/c/0/1/0/")) == [f"8_8_40/c/0/1/0/{x}" for x in range(3)]
        assert store.list_dir("8_8_40/c/0/1/") == (
            [],
            ["8_8_40/c/0/1/0/", "8_8_40/c/0/1/1/"],
        )
        assert all(store.exists(key) for key in keys)
        assert not store.exists("8_8_40/c/0/2/0/0")


def _random_scale(rng):
    """Return a scale with a random grid, and random bits of shards."""
    minishard, shard = rng.randrange(4), rng.randrange(6)
    return {
        "size": [rng.randint(1, 40), rng.randint(1, 20), rng.randint(1, 12)],
        "chunk_size": [rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 5)],
        "voxel_offset": [rng.randint(-99, 99) for _ in range(3)],
        "resolution": [4, 4, 30],
        "encoding": "raw",
        "sharding": {
            **SHARDING,
            "hash": rng.choice(["identity", "murmurhash3_x86_128"]),
            "preshift_bits": rng.randrange(4),
            "minishard_bits": minishard,
            "shard_bits": shard,
            "minishard_index_encoding": rng.choice(["raw", "gzip"]),
            "data_encoding": rng.choice(["raw", "gzip"]),
        },
    }


@pytest.mark.parametrize("number", range(12))
def test_shards_of_any_bits_hold_what_tensorstore_wrote(tmp_path, number):
    rng = random.Random(number)
    scale = _random_scale(rng)
    kind = {"type": "image", "data_type": "uint16", "num_channels": 1}
    made = of_tensorstore(tmp_path / "x", multiscale_metadata=kind, scale_metadata=scale)
    size = scale["size"]
    begin = [rng.randrange(length) for length in size]
    part = made[
        tuple(slice(low + first, low + length) for low, first, length in zip(made.origin[:3], begin, size, strict=True))
    ]
    part[...] = np.random.default_rng(number).integers(1, 999, part.shape, "uint16")
    expected = of_tensorstore(tmp_path / "x").read().result()
    (array,) = omnizarr.open(tmp_path / "x").arrays()
    array = array[1]
    assert np.array_equal(array[...], expected.T)
    stored = sum(key.count("/c/") for key in array.store.list())
    counts = [
        -(-length // chunk) - first // chunk
        for length, chunk, first in zip(size, scale["chunk_size"], begin, strict=True)
    ]
    assert stored == np.prod(counts)


@pytest.mark.parametrize("grid", [(1, 1, 1), (5, 3, 2), (1, 9, 4), (16, 1, 3), (0, 4, 4)])
def test_codes_of_chunks_lead_back(grid):
    scale = volume.load(info({"size": list(grid), "chunk_sizes": [[1, 1, 1]]})).scales["8"]
    all_of_them = list(np.ndindex(grid))
    codes = [volume.morton(scale, at) for at in all_of_them]
    assert len(set(codes)) == len(codes)
    assert [volume.unmorton(scale, code) for code in codes] == all_of_them
    assert volume.unmorton(scale, 1 << 40) is None


# -- doors


def test_levels_are_one_image(tmp_path):
    scales = ({}, {"key": "16", "size": [3, 3, 4], "resolution": [16, 16, 40], "voxel_offset": [1, 0, 0]})
    (tmp_path / "info").write_bytes(info(*scales, mesh="meshes"))
    group = omnizarr.open(tmp_path)
    (image,) = group.attrs["ome"]["multiscales"]
    assert [axis["name"] for axis in image["axes"]] == ["channel", "z", "y", "x"]
    assert image["axes"][1]["unit"] == "nanometer"
    assert [level["path"] for level in image["datasets"]] == ["8", "16"]
    scale, translation = image["datasets"][1]["coordinateTransformations"]
    assert (scale["scale"], translation["translation"]) == ([1, 40, 16, 16], [0, 0, 0, 16])
    assert group.attrs["type"] == "image"
    assert any("meshes" in note for note in group.store.about()["notes"])
    assert {finding.code for finding in omnizarr.check(tmp_path).findings} == {"missing-chunks"}
    assert not group["16"][...].any()  # nothing is stored


def test_every_path_into_a_volume_opens(volumes, tmp_path, monkeypatch):
    place = volumes / "tensorstore" / "raw-int16-2-files"
    expected = make.values("int16", 2, "raw").T
    monkeypatch.chdir(place)
    for path in (place / "8_8_40", "8_8_40", f"precomputed://{place}/8_8_40", f"precomputed://file://{place}/8_8_40"):
        assert np.array_equal(omnizarr.open(path)[...], expected)
    assert np.array_equal(omnizarr.open(f"precomputed://{place}", path="8_8_40")[1], expected[1])
    named = tmp_path / "x.precomputed"
    named.symlink_to(place)
    assert list(omnizarr.open(named)) == ["8_8_40"]
    assert np.array_equal(omnizarr.open(named / "8_8_40")[...], expected)
    for path in ("8_8_40/c", "none"):
        with pytest.raises(NodeNotFoundError):
            omnizarr.open(place, path=path)
    with pytest.raises(StoreError, match="no info of a volume"):
        omnizarr.open(f"precomputed://{tmp_path}")
    with pytest.raises(StoreError, match="path or URL is missing"):
        omnizarr.open("precomputed://")


def test_zarr_beside_an_info_stays_zarr(tmp_path):
    omnizarr.create_array(tmp_path / "a", data=[1, 2])
    (tmp_path / "info").write_bytes(info())
    assert type(omnizarr.open(tmp_path / "a").store) is LocalStore
    omnizarr.create_array(tmp_path / "b.zarr", data=[1, 2])
    (tmp_path / "b.zarr" / "info").write_bytes(info())
    assert type(omnizarr.open(tmp_path / "b.zarr").store) is LocalStore
    (tmp_path / "other").mkdir()
    with pytest.raises(NodeNotFoundError):
        omnizarr.open(tmp_path / "other")


def test_over_http_where_nothing_can_be_listed(volumes):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def list_directory(self, _):
            self.send_error(403)

    (volumes / "x.precomputed").symlink_to(volumes / "tensorstore" / "raw-uint64-1-files")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(volumes)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        host = f"http://127.0.0.1:{server.server_address[1]}"
        expected = make.values("uint64", 1, "raw").T
        for url in (f"{host}/x.precomputed/8_8_40", f"precomputed://{host}/tensorstore/raw-uint64-1-files/8_8_40"):
            assert np.array_equal(omnizarr.open(url)[...], expected)
        with pytest.raises(NodeNotFoundError, match="a volume of Neuroglancer") as caught:
            omnizarr.open(f"{host}/tensorstore/raw-uint64-1-files")
        assert "precomputed://" in caught.value.remedy
    finally:
        server.shutdown()
        server.server_close()
        (volumes / "x.precomputed").unlink()


def test_the_command_line(volumes, tmp_path, capsys):
    place = volumes / "tensorstore" / "compressed_segmentation-uint64-2-murmurhash"
    for line in (["info", place], ["tree", place], ["get", f"{place}/8_8_40", "0,0,0,:3"], ["check", "--data", place],
                 ["convert", place, tmp_path / "x.zarr"], ["diff", place, tmp_path / "x.zarr"]):  # fmt: skip
        assert main([str(word) for word in line]) == 0
    text = capsys.readouterr().out
    for part in ("Neuroglancer precomputed", "(channel=2, z=7, y=13, x=21)", "12 of 12 chunks present", "equal"):
        assert part in text
    assert np.array_equal(
        omnizarr.open(tmp_path / "x.zarr")["8_8_40"][...], make.values("uint64", 2, "compressed_segmentation").T
    )
    assert omnizarr.check(tmp_path / "x.zarr").findings == ()


def test_stores_can_be_pickled_and_compared(volumes):
    store = omnizarr.open(volumes / "tensorstore" / "raw-uint8-1-identity").store
    again = pickle.loads(pickle.dumps(store))
    assert again == store
    assert hash(again) == hash(store)
    assert again.get("8_8_40/c/0/0/0/0") == store.get("8_8_40/c/0/0/0/0")
    assert store.with_read_only() is store
    for change in (lambda: store.set("a", b""), lambda: store.delete("a"), lambda: store.with_read_only(False)):
        with pytest.raises(ReadOnlyError, match="can only be read"):
            change()


def test_writing_is_refused(volumes):
    place = volumes / "tensorstore" / "raw-uint8-1-files"
    for path in (place, f"precomputed://{place}"):
        with pytest.raises(ReadOnlyError, match="can only be read") as caught:
            omnizarr.open(path, mode="r+")
        assert "convert" in caught.value.remedy
    assert omnizarr.open(place).read_only


def test_references_of_raw_chunks_are_read(tmp_path):
    data = np.arange(8 * 4 * 4, dtype="u1").reshape(1, 4, 4, 8)
    (tmp_path / "8").mkdir()
    (tmp_path / "info").write_bytes(info({"size": [8, 4, 4]}))
    for x in (0, 4):
        (tmp_path / "8" / f"{x}-{x + 4}_0-4_0-4").write_bytes(data[..., x : x + 4].tobytes())
    omnizarr.references(tmp_path, tmp_path / "refs.json")
    assert np.array_equal(omnizarr.open(tmp_path / "refs.json")["8"][...], data)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raw-uint8-1-files", "edge of the volume"),
        ("raw-uint8-1-murmurhash", "compressed"),
        ("png-uint8-1-files", "png"),
    ],
)
def test_references_of_other_chunks_are_refused(volumes, tmp_path, name, reason):
    with pytest.raises(NotRepresentableError, match="no part of a file") as caught:
        omnizarr.references(volumes / "tensorstore" / name, tmp_path / "refs.json")
    assert caught.value.found


# -- what is missing, or wrong


def test_missing_chunks_are_zeros(volumes, tmp_path):
    values = {"info": info(), "8/4-6_0-4_0-4": bytes(range(32))}
    array = opened(values)["8"]
    assert not array[..., :4].any()
    assert array[0, 0, 0, 4:].tolist() == [0, 1]
    sharded = opened({"info": info({"sharding": SHARDING})})["8"]
    assert not sharded[...].any()
    assert list(sharded.store.list_prefix("8/c")) == []


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"scales": []}, "/scales"),
        ({"scales": [{}]}, "/scales/0/key"),
        ({"scales": [3]}, "/scales/0"),
        ({"scales": [SCALE] * 1001}, "/scales"),
        ({"data_type": "complex64"}, "/data_type"),
        ({"num_channels": 0}, "/num_channels"),
        ({"num_channels": True}, "/num_channels"),
        *(
            ({"scales": [{**SCALE, name: value}]}, f"/scales/0/{name}")
            for name, value in [
                ("size", [1, 2]),
                ("size", [-1, 2, 3]),
                ("size", [2**63, 2, 3]),
                ("chunk_sizes", []),
                ("chunk_sizes", [[0, 1, 1]]),
                ("chunk_sizes", 4),
                ("voxel_offset", ["a", 0, 0]),
                ("resolution", [0, 1, 1]),
                ("resolution", None),
                ("encoding", None),
                ("encoding", "compressed_segmentation"),
                ("sharding", 3),
            ]
        ),
        ({"scales": [{**SCALE, "sharding": {**SHARDING, "hash": "md5"}}]}, "/scales/0/sharding/hash"),
        ({"scales": [{**SCALE, "sharding": {**SHARDING, "minishard_bits": 33}}]}, "/scales/0/sharding/minishard_bits"),
        ({"scales": [{**SCALE, "sharding": {**SHARDING, "shard_bits": 65}}]}, "/scales/0/sharding/shard_bits"),
        ({"scales": [{**SCALE, "sharding": SHARDING, "size": [2**60] * 3}]}, "/scales/0/size"),
    ],
)
def test_wrong_infos_say_where(changes, pointer):
    with pytest.raises(MetadataError) as caught:
        opened({"info": info(**changes)})
    if pointer.endswith("segmentation"):
        pointer = "/scales/0/compressed_segmentation_block_size"
    assert caught.value.pointer.startswith(pointer) or "block_size" in caught.value.pointer
    assert caught.value.key == "info"
    assert caught.value.expected


def test_infos_of_other_things_are_no_volumes(tmp_path):
    for text in (b'{"@type": "neuroglancer_annotations_v1"}', b"see the manual", b"{}", b"\xff"):
        (tmp_path / "info").write_bytes(text)
        with pytest.raises(NodeNotFoundError):
            omnizarr.open(tmp_path)


def test_scales_outside_the_volume_are_named():
    group = opened({"info": info({}, {"key": "../8"}, {"key": "a/b"}, {"key": "8"}), "a/b/0-4_0-4_0-4": bytes(64)})
    assert sorted(group) == ["8", "8_3", "scale_2"]
    assert group["scale_2"].store.exists("scale_2/c/0/0/0/0")
    assert any("'../8'" in note for note in group.store.about()["notes"])


def test_encodings_that_are_not_read_are_named(volumes):
    array = omnizarr.open(volumes / "cloudvolume" / "compresso-uint64-1-files")["8_8_40"]
    with pytest.raises(CodecError, match="compresso") as caught:
        array[...]
    assert "cloudvolume" in caught.value.remedy


def test_files_with_other_compressions_are_named(tmp_path):
    (tmp_path / "info").write_bytes(info())
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "0-4_0-4_0-4.br").write_bytes(b"")  # as CloudVolume names Brotli
    with pytest.raises(CodecError, match=r"\.br") as caught:
        omnizarr.open(tmp_path)["8"][...]
    assert "cloudvolume" in caught.value.remedy


@pytest.mark.parametrize(
    "stored", [b"", bytes(63), bytes(65), gzip.compress(bytes(63)), gzip.compress(bytes(64))[:-1]], ids=range(5)
)
def test_chunks_of_a_wrong_size_are_errors(stored):
    with pytest.raises(ChunkError) as caught:
        opened({"info": info(), "8/0-4_0-4_0-4": stored})["8"][...]
    assert caught.value.key == "8/0-4_0-4_0-4"


def test_large_values_are_not_read():
    with pytest.raises(StoreLimitError):
        opened({"info": info(), "8/0-4_0-4_0-4": bytes(10**6)})["8"][...]
    bomb = gzip.compress(bytes(10**8))
    with pytest.raises((ChunkSizeError, StoreLimitError)):
        opened({"info": info(), "8/0-4_0-4_0-4": bomb})["8"][...]


def test_pictures_of_any_width_are_read():
    imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs makes pictures")
    data = np.arange(64, dtype="u1").reshape(4, 4, 4)
    encoders = {
        "png": imagecodecs.png_encode,
        "jxl": partial(imagecodecs.jpegxl_encode, lossless=True),
        "jpegxl": partial(imagecodecs.jpegxl_encode, lossless=True, usecontainer=True),
    }
    for name, encode in encoders.items():
        for shape in ((16, 4), (4, 16), (64, 1), (8, 8)):
            values = {"info": info({"encoding": name}), "8/0-4_0-4_0-4": bytes(encode(data.reshape(shape)))}
            assert np.array_equal(opened(values)["8"][0, :, :4, :4], data), (name, shape)
        for shape in ((16, 5), (4, 4), (60, 60)):
            values = {"info": info({"encoding": name}), "8/0-4_0-4_0-4": bytes(encode(np.zeros(shape, "u1")))}
            with pytest.raises(ChunkSizeError, match="wrong size"):
                opened(values)["8"][...]
        values["8/0-4_0-4_0-4"] = bytes(encode(np.zeros((16, 4, 3), "u1")))
        with pytest.raises(ChunkSizeError, match="channels"):
            opened(values)["8"][...]


@pytest.mark.parametrize("size", [1, 7, 8, 255, 256, 400, 1000, 8200])
@pytest.mark.parametrize("columns", [1, 3, 8, 640])
def test_the_size_of_jpeg_xl_is_known_before_it_is_decoded(size, columns):
    imagecodecs = pytest.importorskip("imagecodecs", reason="imagecodecs makes pictures")
    for container in (False, True):
        packed = imagecodecs.jpegxl_encode(np.zeros((size, columns), "u1"), lossless=True, usecontainer=container)
        assert jpegxl_shape(bytes(packed)) == (size, columns)


def test_pictures_need_a_package(monkeypatch):
    missing = Lazy("imagecodecs_that_is_not_there")
    monkeypatch.setattr(pictures, "imagecodecs", missing)
    with pytest.raises(MissingDependencyError, match="imagecodecs") as caught:
        opened({"info": info({"encoding": "png"}), "8/0-4_0-4_0-4": b"\x89PNG"})["8"][...]
    assert "tiff" in caught.value.remedy


def _shard(index, start=0, stop=None):
    """Return a shard with one minishard."""
    return struct.pack("<QQ", start, len(index) if stop is None else stop) + index


ENTRY = struct.pack("<3Q", 0, 24, 64)


@pytest.mark.parametrize(
    "shard",
    [
        b"",
        bytes(15),
        _shard(ENTRY, 0, 2**63),
        _shard(ENTRY, 2**64 - 1, 0),
        _shard(ENTRY, 5, 3),
        _shard(ENTRY[:-1]),
        _shard(ENTRY, 0, 48),
        _shard(ENTRY) + bytes(63),
        _shard(struct.pack("<3Q", 0, 2**64 - 20, 64)),
        _shard(struct.pack("<3Q", 0, 2**62, 64)),
        _shard(struct.pack("<3Q", 0, 24, 2**40)),
        _shard(struct.pack("<30Q", *range(30))),
    ],
    ids=range(12),
)
def test_shards_that_lie_are_errors(shard):
    values = {"info": info({"sharding": SHARDING}), "8/0.shard": shard}
    with pytest.raises(ShardIndexError):
        opened(values)["8"][...]


def test_shards_of_the_old_format_are_refused():
    values = {"info": info({"sharding": SHARDING}), "8/0.index": bytes(16), "8/0.data": b""}
    with pytest.raises(StoreError, match="given up") as caught:
        opened(values)["8"][...]
    assert ".shard" in caught.value.remedy


def test_a_shard_that_is_replaced_is_read_again(tmp_path):
    (tmp_path / "8").mkdir()
    (tmp_path / "info").write_bytes(info({"size": [4, 4, 4], "sharding": SHARDING}))
    array = omnizarr.open(tmp_path)["8"]
    for value in (1, 2):
        stored = struct.pack("<QQ", 64, 88) if value == 1 else struct.pack("<QQ", 0, 24)
        chunk, index = bytes([value]) * 64, struct.pack("<3Q", 0, 0 if value == 1 else 24, 64)
        (tmp_path / "8" / "0.shard").write_bytes(stored + (chunk + index if value == 1 else index + chunk))
        assert np.unique(array[...]).tolist() == [value]


def test_indexes_that_overlap_are_not_listed():
    index = ENTRY
    head = struct.pack("<QQ", 0, 24) * 256
    shard = head + index + bytes(64)
    values = {"info": info({"sharding": {**SHARDING, "minishard_bits": 8}}), "8/0.shard": shard}
    store = PrecomputedStore(MemoryStore(values))
    with pytest.raises(ShardIndexError, match="longer than the shard"):
        list(store.list())
    assert opened(values)["8"][0, 0, 0, 0] == 0


@pytest.mark.parametrize("cut", [0, 3, 4, 20, 100, -4])
def test_segmentations_that_are_cut_off_are_errors(volumes, cut):
    place = volumes / "tensorstore" / "compressed_segmentation-uint64-2-files"
    values = {"info": (place / "info").read_bytes()}
    file = next((place / "8_8_40").iterdir())
    values[f"8_8_40/{file.name}"] = file.read_bytes()[: cut or None] if cut else b""
    with pytest.raises(ChunkError):
        opened(values)["8_8_40"][...]


def test_a_few_bytes_do_not_become_a_large_chunk():
    side = 2**12
    scale = {"size": [side] * 3, "chunk_sizes": [[side] * 3], "encoding": "compressed_segmentation",
             "compressed_segmentation_block_size": [side] * 3}  # fmt: skip
    stored = struct.pack("<5I", 1, 2, 0, 7, 7)
    with pytest.raises(ChunkError, match="stored bytes would become"):
        opened({"info": info(scale, data_type="uint32"), f"8/{'_'.join([f'0-{side}'] * 3)}": stored}).store.get(
            "8/c/0/0/0/0"
        )
    scale |= {"chunk_sizes": [[1, 1, 1]]}
    with pytest.raises(ChunkError, match="cut off, or broken"):
        opened({"info": info(scale, data_type="uint32"), "8/0-1_0-1_0-1": stored}).store.get("8/c/0/0/0/0")


def test_mutated_volumes_give_errors_of_omnizarr(volumes):
    rng = random.Random(7)
    ends = []
    for place in sorted((volumes / "tensorstore").iterdir()):
        if place.name.split("-")[0] in PICTURES:
            pytest.importorskip("imagecodecs", reason="imagecodecs decodes pictures")
        values = {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}
        for _ in range(8):
            name = rng.choice(sorted(values))
            changed = bytearray(values[name])
            for _ in range(rng.randint(1, 3)):
                at = rng.randrange(len(changed))
                changed[at : at + 4] = rng.choice([rng.randbytes(4), b"\xff" * 8, bytes(4), b"9", b""])
            try:
                group = opened({**values, name: bytes(changed)})
                keys = list(itertools.islice(group.store.list(), 100))
                for _, array in group.arrays():
                    if array.nbytes < 1 << 24:
                        array[...]
                ends.append(len(keys) > 0)
            except OmnizarrError:
                ends.append(False)
    assert 20 < sum(ends) < len(ends) - 20
