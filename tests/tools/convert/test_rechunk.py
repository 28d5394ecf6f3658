"""`omnizarr.rechunk`."""

import numpy as np
import pytest

import omnizarr
from omnizarr import errors
from omnizarr.tools.convert import moving
from omnizarr.tools.convert.temporary import TemporaryObjects

VALUES = np.arange(60 * 40, dtype="i4").reshape(60, 40)


def make(zarr_format):
    root = omnizarr.create_group({}, zarr_format=zarr_format, attributes={"title": "t"})
    root.create_array("a", data=VALUES, chunks=(10, 40), fill_value=-1, attributes={"units": "K"})
    root.create_array("line", data=VALUES[0], chunks=40)
    return root


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_everything_but_chunks_stays(zarr_format):
    source, target = make(zarr_format), {}
    assert omnizarr.rechunk(source, target, chunks=(60, 8)).verified
    found = omnizarr.open(target)
    assert (found.zarr_format, found.attrs["title"]) == (zarr_format, "t")
    assert (found["a"].chunks, found["a"].fill_value, found["a"].attrs["units"]) == ((60, 8), -1, "K")
    assert found["line"].chunks == (40,)
    assert found["a"].compressors == source["a"].compressors
    np.testing.assert_array_equal(found["a"][...], VALUES)
    np.testing.assert_array_equal(found["line"][...], VALUES[0])


def test_shards():
    target = {}
    omnizarr.rechunk(make(3)["a"], target, chunks=(5, 5), shards=(30, 20))
    found = omnizarr.open(target)
    assert (found.chunks, found.shards) == ((5, 5), (30, 20))
    np.testing.assert_array_equal(found[...], VALUES)


@pytest.mark.parametrize(
    ("options", "chunks", "shards"),
    [
        ({"chunks": 128}, (60, 40), None),
        ({"chunks": 50}, (50, 40), None),
        ({"chunks": (100, 8)}, (60, 8), None),
        ({"chunks": (8, 8), "shards": 1000}, (8, 8), (64, 40)),
        ({"chunks": 1000, "shards": 1000}, (60, 40), (60, 40)),
        ({"shards": {"shape": (1000, 80), "index_location": "start"}}, (10, 40), (60, 40)),
    ],
)
def test_no_chunk_is_longer_than_the_array(options, chunks, shards):
    target = {}
    omnizarr.rechunk(make(3)["a"], target, **options)
    found = omnizarr.open(target)
    assert (found.chunks, found.shards) == (chunks, shards)
    np.testing.assert_array_equal(found[...], VALUES)


@pytest.mark.parametrize("options", [{"chunks": 128}, {"chunks": 4, "shards": 128}])
def test_large_chunks_are_refused_unless_all_lengths_are_given(options):
    root = omnizarr.create_group({})
    root.create_array("x", shape=(200, 200, 200, 200), dtype="i2", chunks=(1, 200, 200, 200))
    with pytest.raises(errors.MetadataError, match=r"each 512 MiB.*give a length for each dimension") as caught:
        omnizarr.rechunk(root, {}, **options)
    assert caught.value.path == "x"
    asked = {name: (length,) * 4 for name, length in options.items()}
    target = {}
    omnizarr.rechunk(root, target, **asked)
    found = omnizarr.open(target)["x"]
    assert (found.shards or found.chunks) == (128,) * 4


def test_one_length_is_enough_for_an_array_that_is_short_along_others():
    root = omnizarr.create_group({})
    root.create_array("x", shape=(3, 200, 200, 4), dtype="f8", chunks=(3, 200, 200, 4))
    target = {}
    omnizarr.rechunk(root, target, chunks=128)
    assert omnizarr.open(target)["x"].chunks == (3, 128, 128, 4)


def test_path():
    target = {}
    omnizarr.rechunk(make(3).store, target, path="a", chunks=(60, 1))
    assert omnizarr.open(target).chunks == (60, 1)


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("max_memory", [240, 480, 1600, 5000, 9600])
def test_no_more_is_read_at_a_time_than_memory_allows_or_one_chunk_has(monkeypatch, max_memory, verify):
    sizes = []
    read, fetched = moving.read, TemporaryObjects.read

    def noted(found):
        sizes.append(found.nbytes)
        return found

    monkeypatch.setattr(moving, "read", lambda *args, **more: noted(read(*args, **more)))
    monkeypatch.setattr(TemporaryObjects, "read", lambda *args: noted(fetched(*args)))
    source = make(3)["a"]
    omnizarr.rechunk(source, {}, chunks=(60, 1), max_memory=max_memory, verify=verify)
    assert max(sizes) <= max(max_memory, VALUES[:10].nbytes)


def test_memory_that_one_chunk_exceeds_is_refused_before_anything_is_written():
    target = {}
    with pytest.raises(ValueError, match=r"max_memory=239.*240 bytes"):
        omnizarr.rechunk(make(3)["a"], target, chunks=(60, 1), max_memory=239)
    assert not target


@pytest.mark.parametrize("options", [{}, {"chunks": None, "shards": None}, {"chunks": (1, 1), "max_memory": 0}])
def test_what_is_not_valid(options):
    with pytest.raises(ValueError):
        omnizarr.rechunk(make(3)["a"], {}, **options)


def test_source_is_no_target():
    source = make(3)
    with pytest.raises(errors.NodeNameError):
        omnizarr.rechunk(source, source.store, chunks=(60, 1))


def test_dry_run_needs_no_target():
    report = omnizarr.rechunk(make(3), chunks=(60, 1), dry_run=True)
    assert [(node.path, node.how) for node in report.nodes if node.node_type == "array"] == [
        ("a", "encoded"),
        ("line", "copied"),
    ]
