"""Conversions of arrays of which some chunks are broken: all others are carried, and these are named.

Sources are written by zarr-python, and what was carried is read by it again.
"""

import gzip
import json
import re
import zlib

import numcodecs
import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import omnizarr
from omnizarr import errors
from omnizarr.cli import main
from omnizarr.cli.convert import convert as command
from omnizarr.stores import LocalStore, MemoryStore, WrapperStore
from tests.fakes import failing

VALUES = np.arange(1, 71, dtype="i4").reshape(10, 7)
BROKEN = np.s_[4:8, 3:6]
"""What the chunk (1, 1) of (4, 3) holds."""
DAMAGES = {
    "garbage": lambda _: b"garbage",
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "flipped": lambda data: bytes(byte ^ 0xFF for byte in data),
    "of another length": lambda _: zlib.compress(b"abc"),
}
SOURCES = {
    "v2 zlib": (2, {"compressors": numcodecs.Zlib()}),
    "v2 zstd": (2, {"compressors": numcodecs.Zstd()}),
    "v2 blosc": (2, {"compressors": numcodecs.Blosc()}),
    "v3 gzip": (3, {"compressors": zarr.codecs.GzipCodec()}),
    "v3 zstd": (3, {"compressors": zarr.codecs.ZstdCodec()}),
    "v3 blosc": (3, {"compressors": zarr.codecs.BloscCodec()}),
    "v3 crc32c": (3, {"compressors": zarr.codecs.Crc32cCodec()}),
    "v3 plain": (3, {"compressors": None}),
}
ways = pytest.mark.parametrize(
    ("options", "how"),
    [({}, ("copied", "recompressed")), ({"chunks": (5, 5)}, ("encoded",)), ({"shards": (8, 6)}, ("encoded",))],
    ids=["as they are", "chunks", "shards"],
)


def write(place, name="v3 gzip", **more):
    """Write VALUES with zarr-python in chunks of (4, 3)."""
    zarr_format, options = SOURCES[name]
    root = zarr.open_group(place, mode="a", zarr_format=zarr_format)
    array = root.create_array("x", shape=(10, 7), dtype="i4", **{"chunks": (4, 3), **options, **more})
    array[...] = VALUES
    return "1.1" if zarr_format == 2 else "c/1/1"


def damage(place, key, how="garbage"):
    path = place / "x" / key
    path.write_bytes(DAMAGES[how](path.read_bytes()))


def others():
    mask = np.ones(VALUES.shape, bool)
    mask[BROKEN] = False
    return mask


def carried(place, fill=None):
    """Return whether zarr-python reads in a target what is not broken; in the rest is a fill value, or an error."""
    array = zarr.open_array(place, path="x", mode="r")
    if fill is not None:
        found = array[...]
        return (found[others()] == VALUES[others()]).all() and (found[BROKEN] == fill).all()
    with pytest.raises(errors.ChunkError):  # not of numcodecs, which reads beyond the end of a Blosc buffer
        omnizarr.open(place, mode="r")["x"][BROKEN]
    pieces = [np.s_[:4], np.s_[8:], np.s_[4:8, :3], np.s_[4:8, 6:]]
    return all((array[piece] == VALUES[piece]).all() for piece in pieces)


# bytes that nothing compresses or checks can be flipped without anybody noticing
CASES = [(name, how) for name in SOURCES for how in DAMAGES if (name, how) != ("v3 plain", "flipped")]


@pytest.mark.sampled(4)
@ways
@pytest.mark.parametrize(("name", "how_broken"), CASES)
def test_broken_chunk_is_named_and_the_rest_is_carried(tmp_path, name, how_broken, options, how):
    key = write(tmp_path / "old", name)
    damage(tmp_path / "old", key, how_broken)
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new", **options)
    assert not report.is_lossless
    assert not report.verified
    assert report.unreadable == (f"x/{key}",)
    node = report.nodes[1]
    assert (len(node.unreadable), node.stored, node.verified) == (1, 9, "")
    assert node.how in how
    assert carried(tmp_path / "new", None if node.how in ("copied", "recompressed") else 0)
    lines = str(report).splitlines()
    assert lines[-1] == f"1 of 9 chunks of {tmp_path / 'old'}/x cannot be read"
    assert any(line.strip().startswith(f"1 of 9 chunks cannot be read: x/{key} (") for line in lines)
    assert not any("nothing was lost" in line or line.endswith("· verified") for line in lines)


@ways
def test_strict_fails_and_no_array_appears(tmp_path, options, how):
    damage(tmp_path / "old", write(tmp_path / "old"))
    with pytest.raises(errors.ChunkError, match=r"1 of 9 chunks of the source cannot be read: x/c/1/1 \(") as caught:
        omnizarr.convert(tmp_path / "old", tmp_path / "new", strict=True, **options)
    assert caught.value.path == "x"
    assert "x" not in omnizarr.open(tmp_path / "new", mode="r")
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new", resume=True, **options)
    assert report.unreadable == ("x/c/1/1",)
    assert how
    assert carried(tmp_path / "new", 0 if options else None)


@pytest.mark.parametrize("options", [(), ("--chunks", "5,5"), ("--strict",), ("--to", "v2")], ids=" ".join)
def test_command_line_says_so_and_fails(tmp_path, options, capfd):
    damage(tmp_path / "old", write(tmp_path / "old"))
    assert main(["convert", str(tmp_path / "old"), str(tmp_path / "new"), *options]) == 1
    out, err = capfd.readouterr()
    assert "1 of 9 chunks" in out + err
    assert "x/c/1/1" in out + err
    assert "nothing was lost" not in out


def test_json_has_them_all(tmp_path):
    damage(tmp_path / "old", write(tmp_path / "old"))
    done = CliRunner().invoke(
        command, [str(tmp_path / "old"), str(tmp_path / "new"), "--json"], standalone_mode=False, catch_exceptions=False
    )
    found = json.loads(done.stdout)
    assert (found["verified"], found["lossless"], found["chunks_unreadable"]) == (False, False, 1)
    assert list(found["nodes"][1]["unreadable"]) == ["x/c/1/1"]


def test_only_the_first_of_many_are_shown(tmp_path):
    write(tmp_path / "old")
    for path in (tmp_path / "old" / "x" / "c").glob("*/*"):
        path.write_bytes(b"garbage")
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new")
    assert len(report.unreadable) == 9
    (line,) = [line for line in str(report).splitlines() if "9 of 9 chunks cannot be read" in line]
    assert line.count("x/c/") == 5
    assert "; and 4 more" in line


def test_arrays_without_broken_chunks_are_not_counted(tmp_path):
    damage(tmp_path / "old", write(tmp_path / "old"))
    root = zarr.open_group(tmp_path / "old", mode="a", zarr_format=3)
    root.create_array("y", data=VALUES, chunks=(2, 2))
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new")
    assert [(node.path, node.verified, node.stored) for node in report.nodes[1:]] == [("x", "", 9), ("y", "values", 0)]
    assert str(report).endswith(f"1 of 9 chunks of {tmp_path / 'old'}/x cannot be read")


# -- shards ----------------------------------------------------------------------------------------


@pytest.fixture
def sharded(tmp_path):
    """Return shards of 8 x 6 of which one inner chunk, (1, 1) of the array, is garbage."""
    write(tmp_path / "old", "v3 zstd", shards=(8, 6))
    path = tmp_path / "old" / "x" / "c" / "0" / "0"
    data = bytearray(path.read_bytes())
    index = np.frombuffer(data[-4 * 16 - 4 : -4], "<u8").reshape(2, 2, 2)
    start, length = (int(number) for number in index[1, 1])
    data[start : start + length] = bytes(length)
    path.write_bytes(data)
    return tmp_path / "old"


@pytest.mark.parametrize(
    "options", [{"zarr_format": 2}, {"chunks": (5, 7)}, {"chunks": (2, 2), "shards": (4, 4)}], ids=str
)
def test_other_inner_chunks_of_a_shard_are_carried(sharded, tmp_path, options):
    report = omnizarr.convert(sharded, tmp_path / "new", **options)
    assert (report.unreadable, report.nodes[1].stored) == (("x/c/0/0",), 4)
    assert carried(tmp_path / "new", 0)


def test_shard_with_a_broken_inner_chunk_is_copied_unchanged(sharded, tmp_path):
    report = omnizarr.convert(sharded, tmp_path / "new")
    assert (report.unreadable, report.nodes[1].how) == (("x/c/0/0",), "copied")
    assert carried(tmp_path / "new")


def test_shard_with_a_broken_index_is_named(tmp_path):
    write(tmp_path / "old", "v3 zstd", shards=(8, 6))
    path = tmp_path / "old" / "x" / "c" / "0" / "0"
    path.write_bytes(path.read_bytes()[:-1])
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new", zarr_format=2)
    assert report.unreadable == ("x/c/0/0",)
    found = zarr.open_array(tmp_path / "new", path="x", mode="r")[...]
    np.testing.assert_array_equal(found[8:], VALUES[8:])
    np.testing.assert_array_equal(found[:, 6:], VALUES[:, 6:])
    assert not found[:8, :6].any()


# -- resumed ---------------------------------------------------------------------------------------


def fails_once(store, key):
    """Return a store that fails to set a key, once."""
    return failing(store, KeyboardInterrupt(), verb="set", key=f"^{re.escape(key)}$", once=True)


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("options", [{}, {"chunks": (5, 5)}], ids=str)
def test_arrays_that_were_done_before_are_still_not_verified(tmp_path, options, verify):
    damage(tmp_path / "old", write(tmp_path / "old"))
    zarr.open_group(tmp_path / "old", mode="a", zarr_format=3).create_array("y", data=VALUES, chunks=(2, 2))
    target = fails_once(LocalStore(tmp_path / "new"), "y/zarr.json")
    with pytest.raises(KeyboardInterrupt):
        omnizarr.convert(tmp_path / "old", target, **options)
    report = omnizarr.convert(tmp_path / "old", target, resume=True, verify=verify, **options)
    assert (report.nodes[1].path, report.nodes[1].how) == ("x", "done before")
    assert report.unreadable == ("x/c/1/1",)
    assert not report.verified
    assert not report.is_lossless
    again = omnizarr.convert(tmp_path / "old", target, resume=True, **options)
    assert (again.unreadable, again.verified) == (("x/c/1/1",), False)


@pytest.mark.parametrize("options", [{}, {"chunks": (5, 5)}], ids=str)
@pytest.mark.parametrize("then", ["mended", "broken elsewhere", "other values"])
def test_arrays_of_which_other_chunks_are_broken_now_are_converted_again(tmp_path, options, then):
    key = write(tmp_path / "old")
    chunk = (tmp_path / "old/x" / key).read_bytes()
    damage(tmp_path / "old", key)
    root = zarr.open_group(tmp_path / "old", mode="a", zarr_format=3)
    root.create_array("y", data=VALUES, chunks=(2, 2))
    target = fails_once(LocalStore(tmp_path / "new"), "y/zarr.json")
    with pytest.raises(KeyboardInterrupt):
        omnizarr.convert(tmp_path / "old", target, **options)
    expected = VALUES.copy()
    if then == "mended":
        (tmp_path / "old/x" / key).write_bytes(chunk)
    elif then == "broken elsewhere":
        damage(tmp_path / "old", "c/0/0")
    else:
        root["x"][8:] = expected[8:] = -1
    report = omnizarr.convert(tmp_path / "old", target, resume=True, **options)
    unreadable = {"mended": (), "broken elsewhere": ("x/c/0/0", "x/c/1/1"), "other values": ("x/c/1/1",)}
    assert (report.nodes[1].how != "done before", report.unreadable) == (True, unreadable[then])
    readable = np.s_[:] if then == "mended" else np.s_[8:]
    found = zarr.open_array(tmp_path / "new", path="x", mode="r")
    np.testing.assert_array_equal(found[readable], expected[readable])


@pytest.mark.parametrize(
    ("options", "key"), [({}, "x/c/2/2"), ({"chunks": (5, 5)}, "x/c/1/1")], ids=["recompressed", "encoded"]
)
def test_chunks_that_were_carried_before_are_looked_at_if_nothing_is_compared(tmp_path, options, key):
    damage(tmp_path / "old", write(tmp_path / "old", "v2 zlib"))
    options = {"verify": False, "concurrency": 1, "max_memory": 200, **options}
    target = fails_once(LocalStore(tmp_path / "new"), key)
    with pytest.raises(KeyboardInterrupt):
        omnizarr.convert(tmp_path / "old", target, **options)
    assert any("x/c/" in there for there in target.list())
    report = omnizarr.convert(tmp_path / "old", target, resume=True, **options)
    assert (report.unreadable, report.is_lossless) == (("x/1.1",), False)


def test_what_was_resumed_without_comparing_is_compared_when_it_is_resumed_again(tmp_path):
    source, target = MemoryStore(), MemoryStore()
    root = omnizarr.create_group(source)
    for name in "abc":
        root.create_array(name, data=VALUES, chunks=(4, 3))
    for key, options in (("b/zarr.json", {}), ("c/zarr.json", {"resume": True, "verify": False})):
        with pytest.raises(KeyboardInterrupt):
            omnizarr.convert(source, fails_once(target, key), **options)
    target.set("b/c/0/0", target.get("b/c/1/1"))
    with pytest.raises(errors.ChunkError, match="the target differs from the source"):
        omnizarr.convert(source, target, resume=True)


# -- what is broken, and what is not -----------------------------------------------------------------


def test_without_comparing_nothing_is_stated_of_chunks_that_nobody_read(tmp_path):
    damage(tmp_path / "old", write(tmp_path / "old"))
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new", verify=False)
    assert (report.unreadable, report.verified) == ((), False)
    assert "verified" not in str(report)


def test_chunks_that_have_to_be_decoded_are_known_without_comparing(tmp_path):
    damage(tmp_path / "old", write(tmp_path / "old"))
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new", chunks=(5, 5), verify=False)
    assert (report.unreadable, report.is_lossless) == (("x/c/1/1",), False)


def test_chunks_of_a_codec_that_cannot_be_run_here_are_not_broken(tmp_path):
    write(tmp_path / "old")
    path = tmp_path / "old" / "x" / "zarr.json"
    document = json.loads(path.read_text())
    document["codecs"].append({"name": "enigma"})
    path.write_text(json.dumps(document))
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new")
    assert (report.unreadable, report.nodes[1].verified) == ((), "bytes")
    assert "its elements cannot be read here" in str(report)


def test_bytes_of_a_broken_chunk_that_were_not_copied_are_found(tmp_path):
    class Forgets(WrapperStore):
        def set(self, key, value):
            super().set(key, b"other" if key == "x/c/1/1" else value)

    damage(tmp_path / "old", write(tmp_path / "old"))
    with pytest.raises(errors.ChunkError, match="other bytes than that of the source"):
        omnizarr.convert(tmp_path / "old", Forgets(LocalStore(tmp_path / "new")))


def test_good_chunk_beside_a_broken_one_that_came_out_otherwise_is_found(tmp_path):
    class Spoils(WrapperStore):
        def set(self, key, value):
            super().set(key, gzip.compress(bytes(48)) if key == "x/1.0" else value)

    damage(tmp_path / "old", write(tmp_path / "old"))
    with pytest.raises(errors.ChunkError, match=r"the target differs from the source in the region \[4:8, 0:3\]"):
        omnizarr.convert(tmp_path / "old", Spoils(LocalStore(tmp_path / "new")), zarr_format=2)


@pytest.mark.parametrize("dtype", ["f8", "datetime64[s]", "U3", "string"])
def test_elements_of_any_type_are_the_fill_value_where_they_cannot_be_read(tmp_path, dtype):
    values = np.array(["1", "2", "3", "4"]).astype(dtype if dtype != "string" else "T")
    omnizarr.create_array(tmp_path / "old", data=values, chunks=2, fill_value=values[3])
    (tmp_path / "old" / "c" / "0").write_bytes(b"garbage")
    report = omnizarr.convert(tmp_path / "old", tmp_path / "new", chunks=3)
    assert report.unreadable == ("c/0",)
    expected = values[[3, 3, 2, 3]]
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "new")[...], expected)


def test_array_without_dimensions():
    source = omnizarr.create_array({}, data=np.array(5))
    source.store.set("c", b"garbage")
    for zarr_format in (1, 2, 3):
        report = omnizarr.convert(source, MemoryStore(), zarr_format=zarr_format)
        assert (report.unreadable, report.verified) == (("c",), False)


@settings(max_examples=40)
@given(
    chunks=st.tuples(st.integers(1, 12), st.integers(1, 8)),
    asked=st.tuples(st.integers(1, 12), st.integers(1, 8)),
    data=st.data(),
)
def test_exactly_what_broken_chunks_hold_is_missing(chunks, asked, data):
    source, target = MemoryStore(), MemoryStore()
    array = omnizarr.create_array(source, data=VALUES, chunks=chunks)
    coords = data.draw(st.sets(st.tuples(*(st.integers(0, count - 1) for count in array.cdata_shape)), max_size=5))
    expected = VALUES.copy()
    for at in coords:
        source.set("c/" + "/".join(map(str, at)), b"garbage")
        expected[tuple(slice(i * n, (i + 1) * n) for i, n in zip(at, chunks, strict=True))] = 0
    report = omnizarr.convert(source, target, chunks=asked)
    assert set(report.unreadable) == {"c/" + "/".join(map(str, at)) for at in coords}
    assert report.verified is report.is_lossless is not coords
    if tuple(min(*pair) for pair in zip(asked, VALUES.shape, strict=True)) != chunks:
        np.testing.assert_array_equal(omnizarr.open(target)[...], expected)


# -- the same by other names ---------------------------------------------------------------------------


def test_rechunk(tmp_path):
    damage(tmp_path / "old", write(tmp_path / "old"))
    report = omnizarr.rechunk(tmp_path / "old", tmp_path / "new", chunks=(10, 2))
    assert report.unreadable == ("x/c/1/1",)
    assert carried(tmp_path / "new", 0)


def test_in_place_nothing_is_read_and_nothing_is_stated_to_be_verified(tmp_path):
    damage(tmp_path / "old", write(tmp_path / "old", "v2 zlib"))
    report = omnizarr.convert(tmp_path / "old", in_place=True)
    assert not report.verified
    assert "verified" not in str(report)
    with pytest.raises(errors.ChunkError):
        omnizarr.open(tmp_path / "old")["x"][...]


def test_copy_carries_broken_chunks_unchanged(tmp_path):
    key = write(tmp_path / "old")
    damage(tmp_path / "old", key)
    omnizarr.copy_all(omnizarr.open(tmp_path / "old", mode="r"), omnizarr.create_group(tmp_path / "new"))
    omnizarr.copy_store(tmp_path / "old", tmp_path / "store")
    assert carried(tmp_path / "new")
    assert carried(tmp_path / "store")


def test_copy_to_another_format_names_the_chunk(tmp_path):
    damage(tmp_path / "old", write(tmp_path / "old"))
    target = omnizarr.create_group(tmp_path / "new", zarr_format=2)
    with pytest.raises(errors.ChunkError) as caught:
        omnizarr.copy(omnizarr.open(tmp_path / "old", mode="r")["x"], target)
    assert caught.value.key == "x/c/1/1"


def test_netcdf_file_is_not_written(tmp_path):
    pytest.importorskip("netCDF4", reason="netCDF4 is what writes files")
    damage(tmp_path / "old", write(tmp_path / "old", dimension_names=["y", "x"]))
    with pytest.raises(errors.ChunkError) as caught:
        omnizarr.convert(tmp_path / "old", tmp_path / "new.nc")
    assert caught.value.key == "x/c/1/1"
    assert list(tmp_path.glob("*new*")) == []
