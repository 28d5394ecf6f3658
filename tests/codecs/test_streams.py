"""Bounds on what a chunk may decode to: those of elements of variable length, which no document bounds."""

import json
import subprocess
import sys

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.codecs import registry
from omnizarr.codecs.contract import BytesSpec
from omnizarr.codecs.zstd import Zstd

MiB = 2**20


def silent_frame(nbytes, *, checksum=False):
    """Return a frame of zstd that holds zeros, and does not say how many: blocks of one byte, repeated."""
    blocks = nbytes // 2**17
    frame = b"\x28\xb5\x2f\xfd" + bytes([4 if checksum else 0, 0x40])
    for number in range(blocks):
        frame += (int(number == blocks - 1) | 1 << 1 | 2**17 << 3).to_bytes(3, "little") + b"\0"
    return frame + bytes(4 if checksum else 0)


def test_frame_that_states_no_size_is_decoded_up_to_the_bound():
    assert Zstd(0, False, BytesSpec(None, max_nbytes=MiB)).decode(silent_frame(MiB)) == bytes(MiB)
    assert Zstd(0, False, BytesSpec(None, max_nbytes=MiB + 2**16)).decode(silent_frame(MiB)) == bytes(MiB)


@pytest.mark.parametrize("checksum", [False, True])
def test_frame_that_states_no_size_is_refused_beyond_the_bound(checksum):
    with pytest.raises(errors.ChunkSizeError, match=f"at most {MiB} bytes"):
        Zstd(0, False, BytesSpec(None, max_nbytes=MiB)).decode(silent_frame(2 * MiB, checksum=checksum))


def test_frame_of_many_short_blocks_is_decoded_though_they_could_hold_more():
    frame = b"\x28\xb5\x2f\xfd\x00\x40"
    reached = b""
    # What a compressor makes of little data that is flushed after each piece: compressed blocks that hold a few bytes.
    inner = bytes(registry.find("zstd")({"level": 1}, BytesSpec(400)).encode(b"ab" * 200))
    content = inner[7:]
    size = int.from_bytes(content[:3], "little")
    assert size >> 1 & 3 == 2, "a compressed block"
    body = content[3 : 3 + (size >> 3)]
    for number in range(12):
        frame += (int(number == 11) | 2 << 1 | len(body) << 3).to_bytes(3, "little") + body
        reached += b"ab" * 200
    limit = len(reached) + 2**19
    assert bytes(Zstd(0, False, BytesSpec(None, max_nbytes=limit)).decode(frame)) == reached
    with pytest.raises(errors.ChunkSizeError):
        Zstd(0, False, BytesSpec(None, max_nbytes=len(reached) - 1)).decode(frame)


OBJECTS = {
    "vlen-utf8": ("|O", {"id": "vlen-utf8"}),
    "vlen-bytes": ("|O", {"id": "vlen-bytes"}),
    "vlen-array": ("|O", {"id": "vlen-array", "dtype": "<i4"}),
    "json2": ("|O", {"id": "json2"}),
    "json": ("|O", {"id": "json"}),
    "msgpack2": ("|O", {"id": "msgpack2"}),
    "pickle": ("|O", {"id": "pickle"}),
}
COMPRESSORS = {
    "zstd": {"id": "zstd"},
    "gzip": {"id": "gzip"},
    "zlib": {"id": "zlib"},
    "bz2": {"id": "bz2"},
    "lzma": {"id": "lzma"},
    "lz4": {"id": "lz4"},
    "blosc": {"id": "blosc"},
}
READER = """
import json, resource, sys, warnings
import omnizarr
from omnizarr import errors
warnings.simplefilter("ignore")
directory, bound, spare = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
omnizarr.config.set({"array.variable_chunk_bytes": bound, "concurrency": 1})
root = omnizarr.open_group(directory, mode="r", allow_pickle=True)
arrays = [(name, array) for name, array in root.members(max_depth=None) if isinstance(array, omnizarr.Array)]
for name, array in arrays:
    if array.nchunks > 1:
        array[1:]  # which is sound, and brings in what the codecs need
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + spare, used + spare))
results = {}
for name, array in arrays:
    try:
        array[:1]
    except errors.OmnizarrError as error:
        results[name] = [type(error).__name__, str(error)]
    except BaseException as error:
        results[name] = [type(error).__name__, repr(error)]
print(json.dumps(results))
"""


def read_in_little_memory(path, bound, spare):
    """Return what reading the first chunk of each array raises, in a process that gets `spare` bytes for that."""
    command = [sys.executable, "-c", READER, str(path), str(bound), str(spare)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def compressed(codec_id, data):
    return bytes(registry.find(f"numcodecs.{codec_id}")({}, BytesSpec(len(data))).encode(data))


limits_of_memory = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="address space is limited as Linux does"
)


@limits_of_memory
class TestBombs:
    def test_every_decompressor_stops_at_the_bound_of_every_codec(self, tmp_path):
        """The chunk holds zeros, 64 times the bound; what the compressor alone makes of them, and what two do."""
        zeros = bytes(64 * MiB)
        once = {name: compressed(name, zeros) for name in COMPRESSORS}
        once["silent"] = silent_frame(64 * MiB)
        for outer in ("zstd", "gzip", "blosc"):
            for inner in ("zstd", "lzma", "lz4", "silent"):
                once[f"{inner}+{outer}"] = compressed(outer, once[inner])
        for number, (codec, (dtype, filters)) in enumerate(OBJECTS.items()):
            for name, bomb in once.items():
                if number and "+" in name and name != "zstd+zstd":
                    continue  # what the compressors do does not depend on what is behind them
                steps = [{"id": "zstd"} if step == "silent" else COMPRESSORS[step] for step in name.split("+")]
                document = {
                    "zarr_format": 2, "shape": [2], "chunks": [1], "dtype": dtype, "order": "C", "fill_value": None,
                    "filters": [filters, *steps[:-1]], "compressor": steps[-1],
                }  # fmt: skip
                place = tmp_path / codec / name
                place.mkdir(parents=True)
                (place / ".zarray").write_text(json.dumps(document))
                (place / "0").write_bytes(bomb)
        results = read_in_little_memory(tmp_path, MiB, 48 * MiB)
        assert len(results) > 70
        for name, (kind, message) in results.items():
            assert kind == "ChunkSizeError", (name, message)
            assert str(tmp_path) in message
            assert f"/{name}: key '{name}/0'" in message
            assert "array.variable_chunk_bytes" in message

    def test_small_chunk_cannot_take_gigabytes_by_default(self, tmp_path):
        array = omnizarr.create_array(
            tmp_path / "a", shape=(2,), chunks=(1,), dtype="string", compressors=[{"name": "zstd"}, {"name": "zstd"}]
        )
        array[1] = "sound"
        bomb = compressed("zstd", silent_frame(2**31))
        assert len(bomb) < 100
        array.store.set("c/0", bomb)
        results = read_in_little_memory(tmp_path, 256 * MiB, 800 * MiB)
        assert results["a"][0] == "ChunkSizeError", results

    def test_inner_chunks_of_shards_have_the_bound_too(self, tmp_path):
        array = omnizarr.create_array(
            tmp_path / "a", shape=(4,), shards=(2,), chunks=(1,), dtype="string", compressors="zstd"
        )
        array[...] = ["a", "b", "c", "d"]
        bomb = compressed("zstd", bytes(64 * MiB))
        sound = bytes(array.store.get("c/1"))
        index = np.frombuffer(sound[-36:-4], "<u8").reshape(2, 2).copy()
        index[0] = len(sound) - 36, len(bomb)
        body = sound[:-36] + bomb + index.tobytes()
        array.store.set("c/0", body + registry.find("crc32c")({}, BytesSpec(32)).encode(index.tobytes())[-4:])
        results = read_in_little_memory(tmp_path, MiB, 48 * MiB)
        kind, message = results["a"]
        assert kind == "ChunkSizeError", message
        assert "array.variable_chunk_bytes" in message
        assert "inner chunk (0,)" in message

    def test_labels_mean_no_more_elements_than_promised(self, tmp_path):
        document = {
            "zarr_format": 2, "shape": [2], "chunks": [1], "dtype": "|O", "order": "C", "fill_value": "",
            "filters": [{"id": "categorize", "labels": ["a"], "dtype": "|O", "astype": "|u1"}],
            "compressor": {"id": "zlib"},
        }  # fmt: skip
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / ".zarray").write_text(json.dumps(document))
        (tmp_path / "a" / "0").write_bytes(compressed("zlib", bytes(64 * MiB)))
        assert read_in_little_memory(tmp_path, MiB, 48 * MiB)["a"][0] == "ChunkSizeError"


class TestSetting:
    def test_bound_grows_with_the_elements(self):
        text = "x" * 1000
        with omnizarr.config.set({"array.variable_chunk_bytes": 2000, "array.variable_element_bytes": 1010}):
            array = omnizarr.create_array(
                {}, data=np.array([text] * 100), dtype="string", chunks=(100,), compressors="zstd"
            )
            assert array[-1] == text
            few = omnizarr.create_array({}, data=np.array([text]), dtype="string", chunks=(1,), compressors="zstd")
            assert few[0] == text

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_what_could_not_be_read_is_not_written(self, zarr_format):
        store = {}
        with omnizarr.config.set({"array.variable_chunk_bytes": 2000, "array.variable_element_bytes": 10}):
            array = omnizarr.create_array(
                store, shape=3, chunks=3, dtype="string", zarr_format=zarr_format, compressors="gzip"
            )
            array[0] = "short"
            before = dict(store)
            with pytest.raises(errors.CodecError, match=r"raise .*array.variable_chunk_bytes"):
                array[1] = "x" * 3000
            assert store == before
        array = omnizarr.open_array(store)
        array[1] = "x" * 3000
        assert array[1] == "x" * 3000

    def test_without_a_compressor_there_is_no_bound(self):
        with omnizarr.config.set({"array.variable_chunk_bytes": 100, "array.variable_element_bytes": 10}):
            array = omnizarr.create_array({}, data=np.array(["x" * 3000]), dtype="string", compressors=None)
            assert array[0] == "x" * 3000

    def test_counts_when_the_array_is_opened(self):
        store = {}
        omnizarr.create_array(store, data=np.array(["x" * 3000]), dtype="string", compressors="gzip")
        with omnizarr.config.set({"array.variable_chunk_bytes": 100, "array.variable_element_bytes": 10}):
            small = omnizarr.open_array(store, mode="r")
        with pytest.raises(errors.ChunkSizeError):
            small[...]
        assert omnizarr.open_array(store, mode="r")[0] == "x" * 3000
