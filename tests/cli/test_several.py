"""Commands that take several paths: `ls`, `du` and `digest`."""

import json

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main


@pytest.fixture
def two(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        omnizarr.create_group(f"{name}.zarr").create_array(name, data=np.arange(4))
    return tmp_path


def test_ls_and_du_print_a_heading_for_each_path(run, two):
    for command in (["ls"], ["ls", "-l"], ["ls", "-r"], ["du"], ["du", "-s"]):
        alone = {path: run(*command, path)[1] for path in ("a.zarr", "b.zarr")}
        code, out, err = run(*command, "a.zarr", "b.zarr")
        assert (code, err) == (0, "")
        assert out == f"a.zarr:\n{alone['a.zarr']}\nb.zarr:\n{alone['b.zarr']}"


def test_digests_of_several_paths_say_which(run, two):
    alone = {path: run("digest", path)[1] for path in ("a.zarr", "b.zarr")}
    assert run("digest", "a.zarr", "b.zarr") == (0, "".join(f"# {path}\n{out}" for path, out in alone.items()), "")
    for options in (["--summary"], ["--bytes"]):
        code, out, _ = run("digest", *options, "a.zarr", "b.zarr")
        found = [run("digest", *options, path)[1].split()[0] for path in ("a.zarr", "b.zarr")]
        assert (code, out) == (0, f"{found[0]}  a.zarr\n{found[1]}  b.zarr\n")


@pytest.mark.parametrize("command", ["ls", "du", "digest"])
def test_error_of_one_path_is_told_and_the_others_follow(run, two, command):
    code, out, err = run(command, "a.zarr", "missing.zarr", "b.zarr")
    assert code == 1
    assert "a.zarr" in out
    assert "b.zarr" in out
    assert err.startswith("omnizarr: ")
    assert "missing.zarr" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", [["ls"], ["ls", "-l"], ["du"], ["digest"], ["digest", "-s"]])
def test_json_of_several_paths_is_one_list(run, two, command):
    alone = json.loads(run(*command, "--json", "b.zarr")[1])
    code, out, _ = run(*command, "--json", "missing.zarr", "b.zarr")
    missing, found = json.loads(out)
    assert code == 1
    assert missing.keys() == {"place", "problem"}
    assert found == {"place": "b.zarr", **(alone if isinstance(alone, dict) else {"members": alone})}


def test_help_is_a_command(run, two):
    assert run("help") == run("--help")
    assert run("help", "ls") == run("ls", "--help")
    assert run("help", "attrs", "set") == run("attrs", "set", "--help")
    code, _, err = run("help", "lss")
    assert (code, err) == (2, "omnizarr: no command 'lss'; did you mean 'ls'?; see 'omnizarr --help'\n")


def test_version_has_a_short_option(run):
    assert run("-V") == run("--version")
    assert run("--no-color", "-V") == run("--version")


def test_choices_of_a_missing_argument_are_in_the_line(capsys):
    assert main(["completion"]) == 2
    assert "Choose from: bash, zsh, fish" in capsys.readouterr().err
