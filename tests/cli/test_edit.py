"""``omnizarr cp | mv | rm | create | attrs | consolidate | resize | pyramid``, run as a user runs them."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import attrs as attrs_module
from omnizarr.cli import change, nodes


@pytest.fixture(autouse=True)
def _in_an_empty_directory(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def era(tmp_path):
    root = omnizarr.create_group(tmp_path / "era.zarr", attributes={"title": "t"})
    root.create_array(
        "t2m", data=np.arange(24.0).reshape(6, 4), chunks=(2, 4), dimension_names=("time", "x"), compressors=None
    )
    root.create_array("time", data=np.arange(6), dimension_names=("time",))
    omnizarr.consolidate_metadata(tmp_path / "era.zarr")
    return tmp_path / "era.zarr"


def paths(place):
    found = omnizarr.open_group(place, mode="r", use_consolidated=True, check_consolidated=True)
    return [path for path, _ in found.members(None)]


def answering(monkeypatch, *modules, answer):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    for module in modules:
        monkeypatch.setattr(module, "_is_terminal", lambda: True)


class TestNodes:
    def test_cp_and_mv_and_rm(self, run, era):
        nbytes = sum(path.stat().st_size for path in (era / "t2m").rglob("*") if path.is_file())
        told = f"array copied: 4 keys, {nbytes} B · compared\n"
        assert run("cp", "era.zarr/t2m", "era.zarr/g/t2m")[:2] == (0, told)
        assert run("mv", "era.zarr/g/t2m", "era.zarr/g/t")[:2] == (
            0,
            "array era.zarr/g/t2m renamed: now era.zarr/g/t\n",
        )
        assert paths(era) == ["g", "g/t", "t2m", "time"]
        code, _, err = run("rm", "era.zarr/g")
        assert code == 1
        assert "'t'" in err
        assert run("rm", "-r", "era.zarr/g", "era.zarr/time")[0] == 0
        assert paths(era) == ["t2m"]

    def test_json_of_several_deleted_nodes_is_one_list(self, run, era):
        code, out, _ = run("rm", "--json", "era.zarr/time", "era.zarr/t2m")
        assert code == 0
        assert [Path(each["source"]).name for each in json.loads(out)] == ["time", "t2m"]
        assert paths(era) == []

    def test_json_names_what_was_deleted_before_an_error(self, run, era):
        code, out, err = run("rm", "--json", "era.zarr/time", "era.zarr/no-such", "era.zarr/t2m")
        assert code == 1
        assert "no-such" in err
        assert [Path(each["source"]).name for each in json.loads(out)] == ["time"]
        assert paths(era) == ["t2m"]

    @pytest.mark.parametrize("verb", ["cp", "mv", "rm"])
    def test_dry_run_and_json(self, verb, run, era):
        before = sorted(era.rglob("*"))
        target = [] if verb == "rm" else ["new.zarr"]
        flags = ["-r"] if verb == "rm" else []
        code, out, _ = run(verb, *flags, "-n", "--json", "era.zarr", *target)
        told = json.loads(out)
        assert (code, told["dry_run"], told["node_type"]) == (0, True, "group")
        assert sorted(era.rglob("*")) == before
        assert [*era.parent.iterdir()] == [era]

    @pytest.mark.parametrize(("answer", "code", "is_left"), [("y\n", 0, False), ("n\n", 130, True)])
    def test_rm_asks_in_a_terminal_before_a_whole_hierarchy(self, answer, code, is_left, run, era, monkeypatch):
        answering(monkeypatch, nodes, answer=answer)
        assert run("rm", "-r", "era.zarr")[0] == code
        assert era.exists() == is_left

    def test_rm_asks_nothing_with_force_nor_for_one_node(self, run, era, monkeypatch):
        answering(monkeypatch, nodes, answer="")
        assert run("rm", "-r", "era.zarr/t2m")[0] == 0
        assert run("rm", "-r", "-f", "era.zarr")[0] == 0
        assert not era.exists()

    def test_overwrite_and_resume_exclude_each_other(self, run, era):
        assert run("cp", "era.zarr", "b.zarr", "--overwrite", "--resume")[0] == 2


class TestCreate:
    def test_array(self, run):
        code, out, _ = run(
            "create", "a.zarr/g/x", "--shape", "6,4", "--dtype", "float32", "--chunks", "2,4", "--shards", "4,4",
            "--codecs", "zstd:3", "--fill-value", "NaN", "--dimension-names", "y,", "--attributes", '{"units": "K"}',
        )  # fmt: skip
        assert (code, out) == (0, f"<Array /g/x (6, 4) float32 local {Path.cwd()}/a.zarr>\n")
        found = omnizarr.open("a.zarr")["g/x"]
        assert (found.chunks, found.shards, found.attrs["units"]) == ((2, 4), (4, 4), "K")
        assert found.metadata.dimension_names == ("y", None)
        assert np.isnan(found.fill_value)

    def test_like(self, run, era):
        assert run("create", "era.zarr/u", "--like", "era.zarr/t2m", "--dtype", "int16")[0] == 0
        made, like = (omnizarr.open(era)[name] for name in ("u", "t2m"))
        assert (made.shape, made.chunks, made.compressors, made.dtype) == (
            like.shape,
            (2, 4),
            like.compressors,
            "int16",
        )
        assert paths(era) == ["t2m", "time", "u"]

    @pytest.mark.parametrize("name", ["v1", "v2", "v3", "v3-draft2020"])
    def test_formats(self, name, run):
        assert run("create", "a.zarr", "--shape", "3", "--dtype", "i4", "--format", name)[0] == 0
        assert str(omnizarr.open("a.zarr").zarr_format) == name.removeprefix("v")

    @pytest.mark.parametrize(
        "arguments",
        [
            ["--shape", "3"],
            ["--dtype", "i4"],
            ["--group", "--shape", "3"],
            ["--shape", "auto", "--dtype", "i4"],
            ["--group", "--attributes", "[1]"],
            ["--group", "--format", "v9"],
        ],
    )
    def test_command_that_is_not_valid(self, arguments, run, tmp_path):
        assert run("create", "a.zarr", *arguments)[0] == 2
        assert [*tmp_path.iterdir()] == []

    def test_existing_data_stays(self, run, era):
        assert run("create", "era.zarr/t2m", "--shape", "3", "--dtype", "i4")[0] == 1
        assert omnizarr.open(era)["t2m"].shape == (6, 4)


class TestAttrs:
    def test_get_set_and_delete(self, run, era):
        assert run("attrs", "set", "era.zarr/t2m", "units=K", "range=[1, 2]", "flag=true", "a=b=c")[0] == 0
        assert omnizarr.open(era)["t2m"].attrs == {"units": "K", "range": [1, 2], "flag": True, "a": "b=c"}
        assert json.loads(run("attrs", "era.zarr/t2m")[1]) == {"units": "K", "range": [1, 2], "flag": True, "a": "b=c"}
        assert run("attrs", "get", "era.zarr/t2m", "units")[1] == '"K"\n'
        assert run("attrs", "get", "--raw", "era.zarr/t2m", "units")[1] == "K\n"
        assert run("attrs", "delete", "era.zarr/t2m", "range", "flag", "a")[0] == 0
        assert paths(era)  # consolidated metadata is current
        code, _, err = run("attrs", "delete", "era.zarr/t2m", "units", "nope")
        assert (code, "'nope'" in err) == (1, True)
        assert omnizarr.open(era)["t2m"].attrs == {"units": "K"}
        assert run("attrs", "get", "era.zarr/t2m", "nope")[0] == 1

    def test_text(self, run, era):
        run("attrs", "set", "era.zarr", "--text", "version=1")
        assert omnizarr.open(era).attrs["version"] == "1"

    @pytest.mark.parametrize("arguments", [[], ["get"], ["set", "era.zarr"], ["set", "era.zarr", "x"]])
    def test_command_that_is_not_valid(self, arguments, run, era):
        assert run("attrs", *arguments)[0] == 2

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_types_of_netcdf(self, zarr_format, run, tmp_path):
        with omnizarr.netcdf.Dataset(tmp_path / "n.zarr", "w", zarr_format=zarr_format) as dataset:
            dataset.createDimension("x", 3)
            dataset.createVariable("v", "f4", ("x",))
        assert run("attrs", "set", "n.zarr/v", "--type", "float", "scale=0.5")[0] == 0
        assert run("attrs", "set", "n.zarr/v", "--type", "short", "range=[1, 2]")[0] == 0
        assert run("attrs", "set", "n.zarr/v", "units=K")[0] == 0
        assert run("attrs", "set", "n.zarr/v", "--type", "short", "big=70000")[0] == 1
        assert run("attrs", "set", "n.zarr/v", "--type", "float", "text=abc")[0] == 1
        assert run("attrs", "set", "n.zarr/v", "--type", "int", 'object={"a": 1}')[0] == 1
        with omnizarr.netcdf.Dataset(tmp_path / "n.zarr") as dataset:
            found = dataset["v"]
            assert (found.getncattr("scale").dtype, found.getncattr("range").dtype, found.units) == ("f4", "i2", "K")
            assert not {"big", "text", "object"} & set(found.ncattrs())
        assert run("attrs", "delete", "n.zarr/v", "scale")[0] == 0
        with omnizarr.netcdf.Dataset(tmp_path / "n.zarr") as dataset:
            assert "scale" not in dataset["v"].ncattrs()

    def test_type_without_netcdf(self, run, era):
        assert run("attrs", "set", "era.zarr", "--type", "float", "x=1")[0] == 1

    def test_edit(self, run, era, monkeypatch):
        monkeypatch.setattr(attrs_module.click, "edit", lambda text, **_: text.replace('"t"', '"new"'))
        assert run("attrs", "edit", "era.zarr")[0] == 0
        assert omnizarr.open(era).attrs == {"title": "new"}
        assert run("attrs", "edit", "era.zarr")[1] == "nothing was changed\n"

    def test_edit_again_if_it_is_no_json(self, run, era, monkeypatch):
        texts = iter(['{"title": ', '{"title": "new"}'])
        monkeypatch.setattr(attrs_module.click, "edit", lambda *_, **__: next(texts))
        monkeypatch.setattr(attrs_module.click, "confirm", lambda *_, **__: True)
        assert run("attrs", "edit", "era.zarr")[0] == 0
        assert omnizarr.open(era).attrs == {"title": "new"}

    def test_edit_loses_no_update_of_others(self, run, era, monkeypatch):
        def edit(*_, **__):
            omnizarr.open(era).attrs["other"] = 1
            return '{"title": "mine"}'

        monkeypatch.setattr(attrs_module.click, "edit", edit)
        code, _, err = run("attrs", "edit", "era.zarr")
        assert code == 1
        assert "another writer has changed" in err
        assert omnizarr.open(era).attrs == {"title": "t", "other": 1}
        kept = Path(err.strip().rpartition(" ")[2])
        assert json.loads(kept.read_text()) == {"title": "mine"}


class TestResize:
    @pytest.mark.parametrize(
        ("shape", "expected"), [("8,:", (8, 4)), ("time=8", (8, 4)), ("6,5", (6, 5)), ("9,9", (9, 9))]
    )
    def test_growing(self, shape, expected, run, era):
        assert run("resize", "era.zarr/t2m", shape)[0] == 0
        found = omnizarr.open_group(era, use_consolidated=True, check_consolidated=True)["t2m"]
        assert found.shape == expected
        np.testing.assert_array_equal(found[:6, :4], np.arange(24.0).reshape(6, 4))

    def test_shrinking_must_be_wanted(self, run, era):
        code, _, err = run("resize", "era.zarr/t2m", "3,:")
        assert (code, "1 chunk would be deleted and 1 chunk cut" in err) == (2, True)
        assert omnizarr.open(era)["t2m"].shape == (6, 4)
        code, out, _ = run("resize", "era.zarr/t2m", "3,:", "--shrink", "--json")
        told = json.loads(out)
        assert (code, told["deleted"], told["cut"]) == (0, 1, 1)
        assert told["remarks"] == ["'time' has 6 elements along 'time': resize it, too"]
        assert not (era / "t2m" / "c" / "2").exists()

    def test_terminal_asks(self, run, era, monkeypatch):
        answering(monkeypatch, change, answer="n\n")
        assert run("resize", "era.zarr/t2m", "3,:")[0] == 130
        answering(monkeypatch, change, answer="y\n")
        assert run("resize", "era.zarr/t2m", "3,:")[0] == 0
        assert omnizarr.open(era)["t2m"].shape == (3, 4)

    def test_dry_run(self, run, era):
        assert run("resize", "era.zarr/t2m", "3,:", "-n")[0] == 0
        assert omnizarr.open(era)["t2m"].shape == (6, 4)

    @pytest.mark.parametrize("shape", ["3", "3,4,5", "a,b", "q=3", "time=-1", "time=x"])
    def test_shape_that_is_not_valid(self, shape, run, era):
        assert run("resize", "era.zarr/t2m", shape)[0] == 2


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidate(zarr_format, run, tmp_path):
    omnizarr.create_group(tmp_path / "a.zarr", zarr_format=zarr_format).create_group("g")
    assert run("consolidate", "a.zarr")[:2] == (0, "a.zarr: metadata of 2 nodes consolidated\n")
    assert paths(tmp_path / "a.zarr") == ["g"]
    assert run("consolidate", "--remove", "a.zarr")[0] == 0
    assert not omnizarr.open_group(tmp_path / "a.zarr").is_consolidated


def test_pyramid(run, tmp_path):
    omnizarr.create_array(tmp_path / "a.zarr", data=np.arange(64).reshape(8, 8))
    code, out, _ = run("pyramid", "a.zarr", "b.zarr", "--levels", "2", "--axes", "yx", "--scale", "y=2", "--json")
    told = json.loads(out)
    assert (code, told["axes"], told["levels"][1]["scale"]) == (0, ["y", "x"], [4, 2])
    code, out, _ = run("pyramid", "b.zarr", "--overwrite", "--factor", "y=4", "--levels", "2", "--method", "max")
    assert (code, out.splitlines()[0]) == (0, "OME-Zarr 0.5 image, axes y,x, has 2 levels by max")
    np.testing.assert_array_equal(omnizarr.open("b.zarr")["1"][...], [[25, 27, 29, 31], [57, 59, 61, 63]])
    for arguments in (["--factor", "x"], ["--factor", "y="], ["--scale", "2"], ["--overwrite", "--resume"]):
        assert run("pyramid", "b.zarr", *arguments)[0] == 2
