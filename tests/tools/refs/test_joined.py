"""References to joins, whose chunks are stored chunks of several sources."""

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.errors import NotRepresentableError

CHUNKS = (5, 3)
UNITS = {"units": "days since 2000-01-01"}


def names_of(zarr_format, *names):
    return {"dimension_names": names} if zarr_format == 3 else {"attributes": {"_ARRAY_DIMENSIONS": list(names)}}


def make(path, start, length, zarr_format=3, chunks=CHUNKS, dtype="f4", fill_value=0, attributes=(), **options):
    """Store a group of `length` days from the day `start` on: t[time, x] = 10 * time + x."""
    root = omnizarr.create_group(path, zarr_format=zarr_format)
    days = np.arange(start, start + length)
    time = root.create_array("time", data=days, **names_of(zarr_format, "time"))
    time.attrs.update(UNITS)
    root.create_array("x", data=np.arange(4.0), **names_of(zarr_format, "x"))
    values = (days[:, None] * 10 + np.arange(4)).astype(dtype)
    extra = names_of(zarr_format, "time", "x")
    array = root.create_array("t", data=values, chunks=chunks, fill_value=fill_value, **extra, **options)
    array.attrs.update(dict(attributes))
    return path


def expected(length, dtype="f4"):
    return (np.arange(length)[:, None] * 10 + np.arange(4)).astype(dtype)


ZLIB = {"compressors": {"id": "zlib", "level": 3}, "filters": [{"id": "shuffle", "elementsize": 4}]}


@pytest.mark.parametrize("ending", ["json", "parq"])
@pytest.mark.parametrize(("zarr_format", "options"), [(2, {}), (2, ZLIB), (2, {"order": "F"}), (3, {})])
def test_groups_along_a_dimension(tmp_path, ending, zarr_format, options):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("kerchunk", reason="kerchunk is not installed")
    paths = [
        make(tmp_path / f"{start}.zarr", start, length, zarr_format, **options)
        for start, length in ((0, 10), (10, 5), (15, 7))
    ]
    made = omnizarr.references(omnizarr.combine(paths, "time"), tmp_path / f"r.{ending}")
    assert made.zarr_format == 2
    assert {each.path: each.chunks for each in made.arrays}["t"] == (2 + 1 + 2) * 2
    opened = omnizarr.open(tmp_path / f"r.{ending}")
    np.testing.assert_array_equal(opened["t"][...], expected(22))
    with xr.open_dataset(str(tmp_path / f"r.{ending}"), engine="kerchunk", mask_and_scale=False) as dataset:
        np.testing.assert_array_equal(dataset["t"].values, expected(22))
        np.testing.assert_array_equal(
            dataset["time"].values, np.datetime64("2000-01-01", "ns") + np.arange(22) * np.timedelta64(1, "D")
        )


def test_saved_views_and_patterns(tmp_path):
    paths = [make(tmp_path / f"part-{start}.zarr", start, 10) for start in (0, 10)]
    omnizarr.save_view(tmp_path / "all.zview", omnizarr.combine(paths, "time"))
    omnizarr.references(tmp_path / "all.zview", tmp_path / "view.json")
    omnizarr.references(str(tmp_path / "part-*.zarr"), tmp_path / "pattern.json", along="time")
    for name in ("view.json", "pattern.json"):
        np.testing.assert_array_equal(omnizarr.open(tmp_path / name)["t"][...], expected(20))


def test_several_sources_on_the_command_line(tmp_path, capsys):
    paths = [str(make(tmp_path / f"{start}.zarr", start, 10)) for start in (0, 10)]
    assert main(["refs", *paths, str(tmp_path / "r.json")]) == 2
    assert "--along" in capsys.readouterr().err
    assert main(["refs", *paths, str(tmp_path / "r.json"), "--along", "time"]) == 0
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "r.json")["t"][...], expected(20))


@pytest.mark.parametrize("inner", [False, True])
def test_shards(tmp_path, inner):
    paths = [make(tmp_path / f"{start}.zarr", start, 10, shards=(10, 6)) for start in (0, 10)]
    omnizarr.references(omnizarr.combine(paths, "time"), tmp_path / "r.json", inner=inner)
    opened = omnizarr.open(tmp_path / "r.json")["t"]
    assert opened.shards == (None if inner else (10, 6))
    np.testing.assert_array_equal(opened[...], expected(20))


def test_sources_shorter_than_their_shards_have_whole_inner_chunks(tmp_path):
    paths = [make(tmp_path / f"{start}.zarr", start, 10, shards=(20, 6)) for start in (0, 10)]
    group = omnizarr.combine(paths, "time")
    with pytest.raises(NotRepresentableError, match=r"chunks have other lengths|its last chunk is shorter"):
        omnizarr.references(group, tmp_path / "r.json")
    omnizarr.references(group, tmp_path / "r.json", inner=True)
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "r.json")["t"][...], expected(20))


def test_chunks_that_are_not_stored_stay_missing(tmp_path):
    paths = [make(tmp_path / f"{start}.zarr", start, 10) for start in (0, 10)]
    omnizarr.open_group(paths[1], mode="r+")["t"][:5] = 0
    made = omnizarr.references(omnizarr.combine(paths, "time"), tmp_path / "r.json", zarr_format=3)
    assert {each.path: (each.chunks, each.missing) for each in made.arrays}["t"] == (6, 2)
    wanted = expected(20)
    wanted[10:15] = 0
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "r.json")["t"][...], wanted)


def test_arrays_stacked_concatenated_in_blocks_and_selected(tmp_path):
    paths = [make(tmp_path / f"{start}.zarr", start, 10, chunks=(5, 4)) / "t" for start in (0, 10)]
    one, two = (omnizarr.open_array(path)[...] for path in paths)
    joins = {
        "concat": (omnizarr.concat(paths), np.concatenate([one, two])),
        "stack": (omnizarr.stack(paths), np.stack([one, two])),
        "block": (
            omnizarr.block([[paths[0], None], [None, paths[1]]], fill_value=0),
            np.block([[one, np.zeros_like(one)], [np.zeros_like(two), two]]),
        ),
        "select": (omnizarr.open_array(paths[0]).lazy[5:], one[5:]),
    }
    for name, (view, wanted) in joins.items():
        omnizarr.references(view, tmp_path / f"{name}.json")
        np.testing.assert_array_equal(omnizarr.open(tmp_path / f"{name}.json")[...], wanted)


def test_small_chunks_of_joins_are_inlined(tmp_path):
    paths = [make(tmp_path / f"{start}.zarr", start, 10) for start in (0, 10)]
    made = omnizarr.references(omnizarr.combine(paths, "time"), tmp_path / "r.json", inline_threshold=10**6)
    assert (made.chunks, made.inlined) == (0, 8 + 1 + 1)
    for path in paths:
        (path / "t").rename(path / "gone")
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "r.json")["t"][...], expected(20))


def test_a_rectilinear_grid_on_request(tmp_path):
    paths = [make(tmp_path / f"{start}.zarr", start, n, chunks=(n, 4)) for start, n in ((0, 10), (10, 7), (17, 9))]
    with pytest.raises(NotRepresentableError, match="chunks have other lengths"):
        omnizarr.references(omnizarr.combine(paths, "time"), tmp_path / "r.json")
    group = omnizarr.combine(paths, "time", grid="rectilinear")
    made = omnizarr.references(group, tmp_path / "r.json")
    assert made.zarr_format == 3
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "r.json")["t"][...], expected(26))


REFUSED = {
    "codecs": ({}, {"compressors": {"name": "gzip", "configuration": {"level": 1}}}, "their codecs differ.*gzip.*zstd"),
    "data type": ({}, {"dtype": "f8"}, "they are converted.*astype float64"),
    "fill value": ({}, {"fill_value": 7}, "fill values differ"),
    "chunks": ({}, {"chunks": (2, 3)}, "chunks have other lengths"),
    "packing": (
        {"attributes": {"scale_factor": 0.5}},
        {"attributes": {"scale_factor": 0.25}},
        "they are converted.*unpack",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_said_names_both_sources_and_the_difference(tmp_path, what):
    first, second, message = REFUSED[what]
    make(tmp_path / "one.zarr", 0, 10, **first)
    make(tmp_path / "two.zarr", 10, 10, **second)
    if what == "fill value":
        (tmp_path / "two.zarr/t/c/0/0").unlink()
    group = omnizarr.combine([tmp_path / "one.zarr", tmp_path / "two.zarr"], "time")
    with pytest.raises(NotRepresentableError, match=message) as caught:
        omnizarr.references(group, tmp_path / "r.json")
    assert "one.zarr" in str(caught.value)
    assert "two.zarr" in str(caught.value)
    assert not (tmp_path / "r.json").exists()


def test_a_shorter_chunk_in_the_middle_is_named(tmp_path):
    paths = [make(tmp_path / f"{name}.zarr", start, 12) for name, start in (("one", 0), ("two", 12))]
    with pytest.raises(
        NotRepresentableError, match=r"'time', its last chunk is shorter.*length 12, chunks of 5"
    ) as caught:
        omnizarr.references(omnizarr.combine(paths, "time"), tmp_path / "r.json")
    assert "one.zarr" in str(caught.value)
    assert "two.zarr" in str(caught.value)


def test_references_to_files_of_other_formats_are_joined(tmp_path):
    """As Kerchunk has them of netCDF files: one file each, chunks at some byte, compressed with zlib."""
    import zlib

    parts = []
    for start in (0, 10):
        data, refs = b"HEADER", {".zgroup": '{"zarr_format": 2}'}
        values = (np.arange(start, start + 10)[:, None] * 10 + np.arange(4)).astype("f4")
        refs["t/.zattrs"] = '{"_ARRAY_DIMENSIONS": ["time", "x"]}'
        refs["t/.zarray"] = (
            '{"zarr_format": 2, "shape": [10, 4], "chunks": [5, 4], "dtype": "<f4", "fill_value": null, "order": "C", '
            '"compressor": {"id": "zlib", "level": 4}, "filters": [{"id": "shuffle", "elementsize": 4}]}'
        )
        for number in range(2):
            raw = np.frombuffer(values[number * 5 :][:5].tobytes(), "u1").reshape(-1, 4).T.tobytes()
            chunk = zlib.compress(raw)
            refs[f"t/{number}.0"] = [str(tmp_path / f"{start}.nc"), len(data), len(chunk)]
            data += chunk
        (tmp_path / f"{start}.nc").write_bytes(data)
        parts.append(omnizarr.open_group({"version": 1, "refs": refs}, storage_options={"references": "trusted"}))
    omnizarr.references(omnizarr.combine(parts, "time"), tmp_path / "r.parq")
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "r.parq")["t"][...], expected(20))
