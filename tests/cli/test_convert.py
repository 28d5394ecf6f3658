"""`omnizarr convert`, run as a user runs it."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import omnizarr
from omnizarr.tools.convert import journal

COMMAND = "convert"

VALUES = np.arange(60).reshape(6, 10)


@pytest.fixture
def old(tmp_path):
    root = omnizarr.create_group(tmp_path / "old.zarr", zarr_format=2, attributes={"title": "a\x1b[31m"})
    root.create_array("temp", data=VALUES, chunks=(2, 5), attributes={"_ARRAY_DIMENSIONS": ["y", "x"]})
    root.create_array("g/line", data=VALUES[0], chunks=(4,))
    return tmp_path / "old.zarr"


@pytest.mark.parametrize(
    ("word", "zarr_format"),
    [
        ("v1", 1),
        ("1", 1),
        ("v2", 2),
        ("2", 2),
        ("v3", 3),
        ("3", 3),
        ("3-draft2019", "3-draft2019"),
        ("v3-draft2020", "3-draft2020"),
    ],
)
def test_format_is_the_one_asked_for(run, old, tmp_path, word, zarr_format):
    code, out, err = run(old, tmp_path / "new", "--to", word)
    assert (code, err) == (0, "")
    found = omnizarr.open(tmp_path / "new")["temp"]
    assert found.zarr_format == zarr_format
    np.testing.assert_array_equal(found[...], VALUES)
    assert "verified" in out


def test_format_is_v3_if_nothing_is_stated(run, old, tmp_path):
    assert run(old, tmp_path / "new")[0] == 0
    assert omnizarr.open(tmp_path / "new").zarr_format == 3


def test_account_names_what_was_lost_and_shows_no_control_characters(run, old, tmp_path):
    code, out, _ = run(old, tmp_path / "new", "--to", "v1")
    assert code == 0
    assert "lost: attribute 'title'" in out
    assert out.rstrip().endswith("1 thing could not be carried")
    assert "\x1b" not in out


def test_account_as_json(run, old, tmp_path):
    code, out, _ = run(old, tmp_path / "new", "--to", "v1", "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["source"], document["target"]) == (str(old), str(tmp_path / "new"))
    assert document["lossless"] is False
    assert [loss["pointer"] for node in document["nodes"] for loss in node["losses"]] == ["/title"]


def test_strict_does_nothing_if_something_would_be_lost(run, old, tmp_path):
    code, out, err = run(old, tmp_path / "new", "--to", "v1", "--strict")
    assert (code, out) == (1, "")
    assert "something would be lost" in err
    assert not (tmp_path / "new").exists()


def test_dry_run_writes_nothing_and_needs_no_target(run, old, tmp_path):
    for target in ([tmp_path / "new"], []):
        code, out, _ = run(old, *target, "--to", "v1", "--dry-run")
        assert code == 0
        assert "1 thing would be lost" in out
    assert not (tmp_path / "new").exists()


def test_layout_and_codecs_are_those_asked_for(run, old, tmp_path):
    assert run(old, tmp_path / "new", "--chunks", "3,5", "--shards", "6,10", "--codecs", "gzip:7")[0] == 0
    root = omnizarr.open(tmp_path / "new")
    assert (root["temp"].chunks, root["temp"].shards) == ((3, 5), (6, 10))
    assert root["temp"].compressors == root["g/line"].compressors == (omnizarr.codecs.GzipCodec(level=7),)
    assert root["g/line"].chunks == (4,)


def test_length_for_all_dimensions_ends_with_the_array(run, old, tmp_path):
    assert run(old, tmp_path / "new", "--chunks", "8")[0] == 0
    root = omnizarr.open(tmp_path / "new")
    assert (root["temp"].chunks, root["g/line"].chunks) == ((6, 8), (8,))


def test_large_chunks_are_asked_for_with_all_lengths(run, tmp_path):
    large = omnizarr.create_array(tmp_path / "large", shape=(200, 200, 200, 200), dtype="i2", chunks=(1, 200, 200, 200))
    assert large.nchunks_initialized == 0
    code, out, err = run(tmp_path / "large", tmp_path / "new", "--chunks", "128")
    assert (code, out) == (1, "")
    assert "each 512 MiB" in err
    assert run(tmp_path / "large", tmp_path / "new", "--chunks", "128,128,128,128")[0] == 0


@pytest.mark.parametrize(("options", "name"), [((), "gzip"), (("--codecs", "keep"), "numcodecs.zlib")])
def test_zlib_becomes_gzip_unless_it_is_to_be_kept(run, tmp_path, options, name):
    omnizarr.create_array(tmp_path / "old", data=VALUES, zarr_format=2, compressors={"id": "zlib"})
    code, out, _ = run(tmp_path / "old", tmp_path / "new", *options)
    assert code == 0
    assert json.loads((tmp_path / "new" / "zarr.json").read_text())["codecs"][-1]["name"] == name
    assert "zlib" in out
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "new")[...], VALUES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zstd:3", {"id": "zstd", "level": 3}),
        ("zlib", {"id": "zlib", "level": 1}),
        ("bz2:9", {"id": "bz2", "level": 9}),
        ("blosc:zstd:7:bitshuffle", {"id": "blosc", "cname": "zstd", "clevel": 7, "shuffle": 2}),
        ("none", None),
        ('[{"id": "zlib", "level": 4}]', {"id": "zlib", "level": 4}),
    ],
)
def test_codecs_in_short(run, old, tmp_path, text, expected):
    assert run(old, tmp_path / "new", "--to", "v2", "--codecs", text)[0] == 0
    found = json.loads((tmp_path / "new" / "temp" / ".zarray").read_text())["compressor"]
    assert (found if expected is None else {name: found[name] for name in expected}) == expected
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "new")["temp"][...], VALUES)


@pytest.mark.parametrize(
    "arguments",
    [
        ("OLD",),
        ("OLD", "new", "--to", "v9"),
        ("OLD", "new", "--from", "netcdf"),
        ("OLD", "new", "--chunks", "a,b"),
        ("OLD", "new", "--codecs", "rar"),
        ("OLD", "new", "--codecs", "zstd:high"),
        ("OLD", "new", "--codecs", "zstd:1:2"),
        ("OLD", "new", "--codecs", "blosc:lz4:5:sideways"),
        ("OLD", "new", "--codecs", "[1"),
        ("OLD", "new", "--overwrite", "--resume"),
        ("OLD", "new", "--in-place"),
        ("OLD", "--in-place", "--resume"),
        ("OLD", "--in-place", "--chunks", "2,2"),
        ("OLD", "--in-place", "--codecs", "none"),
        ("OLD", "new", "--remove-old"),
        ("OLD", "new", "--concurrency", "0"),
    ],
    ids=" ".join,
)
def test_what_is_not_valid_is_a_usage_error(run, old, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*(old if text == "OLD" else text for text in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("omnizarr: ")
    assert not (tmp_path / "new").exists()


def test_source_that_is_missing(run, tmp_path):
    code, _, err = run(tmp_path / "nothing", tmp_path / "new")
    assert code == 1
    assert "there is no node here" in err


def test_target_that_is_there_is_refused_or_replaced_or_complete(run, old, tmp_path):
    assert run(old, tmp_path / "new")[0] == 0
    code, _, err = run(old, tmp_path / "new")
    assert code == 1
    assert "pass --overwrite" in err
    assert run(old, tmp_path / "new", "--resume")[0] == 0
    assert run(old, tmp_path / "new", "--overwrite", "--to", "v2")[0] == 0
    assert omnizarr.open(tmp_path / "new").zarr_format == 2


def test_unfinished_conversion_is_resumed(run, old, tmp_path):
    assert run(old, tmp_path / "new")[0] == 0
    whole = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / "new").rglob("*") if path.is_file()}
    for name in ("temp/zarr.json", "temp/c/0/1"):
        (tmp_path / "new" / name).unlink()
    source = omnizarr.open(old)
    # the journal of a conversion that was interrupted before its first value
    other = tmp_path / "other"
    with pytest.raises(KeyboardInterrupt):
        omnizarr.convert(source, other, progress=interrupt)
    (other / journal.KEY).rename(tmp_path / "new" / journal.KEY)
    code, out, _ = run(old, tmp_path / "new", "--resume")
    assert code == 0
    assert "1 chunk copied unchanged" in out
    again = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / "new").rglob("*") if path.is_file()}
    assert again == whole


def interrupt(**_):
    raise KeyboardInterrupt


def test_node_that_cannot_be_read_is_a_problem(run, old, tmp_path):
    (old / "bad").mkdir()
    (old / "bad" / ".zarray").write_text("{}")
    code, out, _ = run(old, tmp_path / "new")
    assert code == 1
    assert "/bad  left out" in out
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "new")["temp"][...], VALUES)


def test_in_place_and_back(run, old):
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    assert run(old, "--in-place")[0] == 0
    assert omnizarr.open(old).zarr_format == 3
    code, out, _ = run(old, "--in-place", "--to", "v2")
    assert code == 0
    assert "4 documents removed" in out
    assert {path: path.read_bytes() for path in old.rglob("*") if path.is_file()} == before


def test_in_place_with_remove_old(run, old):
    assert run(old, "--in-place", "--remove-old")[0] == 0
    assert not list(old.rglob(".z*"))
    np.testing.assert_array_equal(omnizarr.open(old)["temp"][...], VALUES)


@pytest.mark.parametrize("name", ["old.zarr/temp", "hierarchy/a/temp"])
def test_place_inside_a_hierarchy(run, old, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    omnizarr.convert(old, tmp_path / "hierarchy" / "a", zarr_format=3)
    omnizarr.convert(old, tmp_path / "draft", zarr_format="3-draft2020")
    assert run(name, "new")[0] == 0
    np.testing.assert_array_equal(omnizarr.open("new")[...], VALUES)
    assert run("draft/temp", "newer")[0] == 0
    np.testing.assert_array_equal(omnizarr.open("newer")[...], VALUES)


def test_zip_archives(run, old, tmp_path):
    assert run(old, tmp_path / "new.zip")[0] == 0
    assert run(f"{tmp_path}/new.zip/temp", tmp_path / "back.zip", "--to", "v1")[0] == 0
    np.testing.assert_array_equal(omnizarr.open(tmp_path / "back.zip", mode="r")[...], VALUES)


def test_without_verification_the_account_does_not_say_verified(run, old, tmp_path):
    assert "verified" not in run(old, tmp_path / "new", "--no-verify")[1]


def test_pipe_gets_no_progress(old, tmp_path):
    command = [sys.executable, "-m", "omnizarr", "convert", str(old), str(tmp_path / "new")]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    assert done.stderr == b""


def test_estimate_says_what_it_would_take_and_writes_nothing(run, tmp_path):
    omnizarr.create_array(tmp_path / "a.zarr", data=np.arange(4000.0).reshape(40, 100), chunks=(10, 10))
    code, out, _ = run(tmp_path / "a.zarr", tmp_path / "b.zarr", "--estimate", "--chunks", "20,20")
    assert code == 0
    assert "estimate: about 10 objects, " in out
    assert "nothing was written" in out
    assert not (tmp_path / "b.zarr").exists()
    code, out, _ = run(tmp_path / "a.zarr", "--estimate", "--shards", "auto", "--json")
    estimate = json.loads(out)["estimate"]
    assert estimate["objects"] == 1
    assert len(estimate["seconds"]) == 2
    assert run(tmp_path / "a.zarr", "--in-place", "--estimate")[0] == 2
    assert run(tmp_path / "a.zarr", "--estimate", "--shards", "auto", "-q")[1] == ""


def test_automatic_shards_can_be_typed(run, tmp_path):
    omnizarr.create_array(tmp_path / "a.zarr", data=np.arange(4000.0).reshape(40, 100), chunks=(10, 10))
    assert run(tmp_path / "a.zarr", tmp_path / "b.zarr", "--shards", "auto")[0] == 0
    made = omnizarr.open_array(tmp_path / "b.zarr")
    assert (made.chunks, made.shards) == ((10, 10), (40, 100))


def test_what_is_the_same_for_many_nodes_is_said_once(tmp_path):
    root = omnizarr.create_group(tmp_path / "a.zarr")
    for number in range(9):
        root.create_array(f"x{number}", data=[number])
    report = omnizarr.convert(tmp_path / "a.zarr", tmp_path / "b.zarr", zarr_format=2)
    nodes = [replace(node, remarks=("done before",)) if node.path else node for node in report.nodes]
    nodes[4] = replace(nodes[4], remarks=("done before", "and something else"))
    lines = str(replace(report, nodes=tuple(nodes))).splitlines()
    assert sum(line.startswith("/x") for line in lines) == 2
    assert "    the same for 7 other nodes" in lines
    assert "    and something else" in lines
