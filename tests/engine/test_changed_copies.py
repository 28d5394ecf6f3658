"""Parts of large shards are changed in a copy of the file that the system makes: the result is that of a new shard."""

import os
import shutil
import subprocess
import sys

import google_crc32c
import numpy as np
import pytest

import omnizarr
from omnizarr.settings import engines
from omnizarr.stores import LocalStore
from tests.concurrency import victim
from tests.engine.both import served_by, stored

pytestmark = pytest.mark.skipif(
    not getattr(engines.module(), "changes_copies", False), reason="the native engine is not built, or not for Linux"
)

SHAPE, CHUNKS = (640, 512), (64, 64)
CODECS = {
    "raw": {"compressors": None},
    "checked": {"compressors": [{"name": "crc32c"}]},
    "zstd": {},
    "index at the start": {
        "codecs": [
            {
                "name": "sharding_indexed",
                "configuration": {
                    "chunk_shape": list(CHUNKS),
                    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
                    "index_location": "start",
                },
            }
        ]
    },
}
SELECTIONS = {
    "whole inner chunk": np.s_[64:128, 128:192],
    "one element": np.s_[5, 7],
    "a row": np.s_[100],
    "every other": np.s_[10:60:2, ::70],
    "points": (np.array([0, 639, 7]), np.array([511, 0, 7])),
}


def made(place, codecs, shape=SHAPE, value=None):
    options = {"shards": SHAPE, "chunks": CHUNKS} if "codecs" not in codecs else {"chunks": SHAPE}
    array = omnizarr.create_array(place, shape=shape, dtype="f8", **options, **codecs)
    array[...] = np.random.default_rng(1).random(shape) if value is None else value
    return served_by("native", array)


@pytest.mark.parametrize("codecs", CODECS)
@pytest.mark.parametrize("selection", SELECTIONS)
def test_a_changed_part_is_what_the_reference_engine_makes_of_it(tmp_path, codecs, selection):
    ours, theirs = (made(tmp_path / name, CODECS[codecs]) for name in "ab")
    expected = ours[...]
    for number in range(3):
        expected[SELECTIONS[selection]] = number
        ours[SELECTIONS[selection]] = number
        served_by("reference", theirs)[SELECTIONS[selection]] = number
    for array in (ours, theirs):
        np.testing.assert_array_equal(served_by("reference", array)[...], expected)
    found = {key: len(value) for key, value in stored(LocalStore(tmp_path / "a")).items()}
    assert set(found) == {"zarr.json", "c/0/0"}
    if codecs != "zstd":
        assert stored(LocalStore(tmp_path / "a")) == stored(LocalStore(tmp_path / "b"))
    assert [each.name for each in (tmp_path / "a" / "c" / "0").iterdir()] == ["0"]


def copies(path, code, *options):
    """Return how many copies the system makes while a program changes an array."""
    if not victim.can_trace():
        pytest.skip("no strace, or it may not trace")
    log = path.parent / "calls.txt"
    program = f"import omnizarr, numpy as np\narray = omnizarr.open_array({str(path)!r}, mode='r+')\n{code}"
    command = ["strace", "-f", "-qq", "-e", "trace=copy_file_range", *options, "-o", log, sys.executable, "-c", program]
    native = os.environ | {"OMNIZARR_ENGINE": "native"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=native)
    assert done.returncode == 0, done.stderr
    return log.read_text().count("copy_file_range(")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "is_copied"),
    [
        ("array[5, 7] = 3", True),
        ("array[:320] = 3", False),  # many of its chunks
        ("array[...] = 3", False),
        ("array[0:64, 0:64] = 0", False),  # nothing but the fill value: it is not stored any more
    ],
)
def test_the_system_copies_only_what_changes_little(tmp_path, code, is_copied):
    made(tmp_path / "a", CODECS["raw"])
    assert bool(copies(tmp_path / "a", code)) == is_copied


@pytest.mark.slow
@pytest.mark.parametrize("error", ["EXDEV", "EOPNOTSUPP", "ENOSYS", "EINVAL", "ENOSPC", "EIO"])
def test_without_such_copies_everything_is_as_before(tmp_path, error):
    array = made(tmp_path / "a", CODECS["raw"])
    expected = array[...]
    expected[5, 7] = 3
    assert copies(tmp_path / "a", "array[5, 7] = 3", "-e", f"inject=copy_file_range:error={error}") > 0
    np.testing.assert_array_equal(array[...], expected)
    assert [each.name for each in (tmp_path / "a" / "c" / "0").iterdir()] == ["0"]


@pytest.fixture(params=["btrfs", "xfs"])
def sharing_disk(request, tmp_path):
    """A file system that shares blocks of files, in a file."""
    make, image, folder = shutil.which(f"mkfs.{request.param}"), tmp_path / "image", tmp_path / "disk"
    if make is None:
        pytest.skip(f"there is no mkfs.{request.param}: install btrfs-progs and xfsprogs")
    with image.open("wb") as file:
        file.truncate(320 << 20)
    folder.mkdir()
    subprocess.run([make, "-q", str(image)], check=True, capture_output=True)
    if subprocess.run(["mount", "-o", "loop", str(image), str(folder)], capture_output=True, check=False).returncode:
        pytest.skip(f"no file system can be mounted here, or none of the type {request.param}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_file_systems_that_share_blocks_store_only_what_changes(sharing_disk):
    def used():
        subprocess.run(["sync", "-f", str(sharing_disk)], check=True)
        room = os.statvfs(sharing_disk)
        return (room.f_blocks - room.f_bfree) * room.f_frsize

    shape = (4096, 1024)
    options = {"shards": shape, "chunks": CHUNKS, "dtype": "f8", "compressors": None}
    array = served_by("native", omnizarr.create_array(sharing_disk / "a", shape=shape, **options))
    array[...] = expected = np.random.default_rng(1).random(shape)
    before = used()
    (sharing_disk / "old").hardlink_to(sharing_disk / "a" / "c" / "0" / "0")  # which keeps its blocks
    array[5, 7] = expected[5, 7] = 3
    assert used() - before < array.nbytes / 8
    assert (sharing_disk / "old").stat().st_size == (sharing_disk / "a" / "c" / "0" / "0").stat().st_size > array.nbytes
    np.testing.assert_array_equal(array[...], expected)


def test_chunks_that_share_their_bytes_do_not_share_a_change(tmp_path):
    array = made(tmp_path / "a", CODECS["raw"], value=3)
    path = tmp_path / "a" / "c" / "0" / "0"
    data = path.read_bytes()
    count = 80
    table = np.frombuffer(data[-4 - 16 * count : -4], "<u8").reshape(-1, 2).copy()
    table[1] = table[0]  # as a writer that stores equal chunks once
    index = table.tobytes()
    path.write_bytes(data[: -4 - 16 * count] + index + google_crc32c.value(index).to_bytes(4, "little"))
    array[0, 0] = 5
    expected = np.full(SHAPE, 3.0)
    expected[0, 0] = 5
    np.testing.assert_array_equal(omnizarr.open_array(tmp_path / "a")[...], expected)


def test_an_index_of_nonsense_is_the_error_of_the_reference_engine(tmp_path):
    array = made(tmp_path / "a", CODECS["raw"])
    path = tmp_path / "a" / "c" / "0" / "0"
    data = bytearray(path.read_bytes())
    data[-30:-10] = b"\x55" * 20
    path.write_bytes(data)
    with pytest.raises(omnizarr.errors.ChunkError) as found:
        array[0, 0] = 5
    with pytest.raises(omnizarr.errors.ChunkError) as expected:
        served_by("reference", array)[0, 0] = 5
    assert str(found.value) == str(expected.value)
    assert path.read_bytes() == data


def test_missing_inner_chunks_and_parts_of_arrays_at_the_edge(tmp_path):
    array = omnizarr.create_array(
        tmp_path / "a", shape=(700, 500), chunks=CHUNKS, shards=SHAPE, dtype="f8", compressors=None
    )
    array = served_by("native", array)
    expected = np.zeros((700, 500))
    for selection, value in (
        (np.s_[0:300], 1),
        (np.s_[639:650, 3], 2),
        (np.s_[5, 5], 0),
        (np.s_[400, 400], 9),
        (np.s_[0:64, 0:64], 0),
    ):
        array[selection] = expected[selection] = value
        np.testing.assert_array_equal(array[...], expected)
