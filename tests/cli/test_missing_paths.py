"""A path that is missing is an error of every command, whatever its options."""

from tempfile import TemporaryDirectory

import click
import numpy as np
import pytest

import omnizarr
from omnizarr.cli import commands
from omnizarr.errors import NodeNotFoundError, StoreError

HERE = "x.zarr"
ARGUMENTS = {
    **{
        name: ["{}"]
        for name in [
            "info",
            "tree",
            "ls",
            "du",
            "missing",
            "advise",
            "get",
            "show",
            "view",
            "stat",
            "digest",
            "check",
            "repair",
        ]
    },
    **{name: ["{}"] for name in ["rm", "consolidate", "pyramid", "serve", "dump"]},
    "ls of two": [HERE, "{}"],
    "du of two": [HERE, "{}"],
    "digest of two": ["{}", HERE],
    "view of two": [HERE, "{}"],
    "rm of two": ["{}", "{}2"],
    "diff": ["{}", HERE],
    "diff second": [HERE, "{}"],
    "check --digest digests": ["{}"],
    "combine": ["{}", "new.zview", "--along", "t"],
    "refs": ["{}", "new.json"],
    "cp": ["{}", "new.zarr"],
    "mv": ["{}", "new.zarr"],
    "convert": ["{}", "new.zarr"],
    "convert --in-place": ["{}"],
    "convert to netCDF": ["{}", "new.nc"],
    "resize": ["{}", "8"],
    "attrs get": ["{}"],
    "attrs set": ["{}", "a=1"],
    "attrs delete": ["{}", "a"],
    "gen": ["{}.cdl"],
}
ALONE = {"create", "completion", "attrs", "attrs edit"}
"""Commands that make what is missing, take no path, or open an editor."""
NOWHERE = ["missing.zarr", "x.zarr/missing", "missing.zip", "missing.sqlite"]


def found(name):
    """Return a command, and the words that call it."""
    words = name.partition(" of ")[0].partition(" to ")[0].removesuffix(" second").split()
    command = commands.omnizarr.get_command(None, words[0])
    if isinstance(command, click.Group):
        command = command.commands[words[1]]
    return command, words


def flags_of(command):
    ours = [option for option in command.params if isinstance(option, click.Option) and option.is_flag]
    return [option.opts[-1] for option in ours if option.name not in {"no_color", "anon", "trust_references"}]


CASES = [(name, flag) for name in ARGUMENTS for flag in ["", *flags_of(found(name)[0])]]


def test_no_command_is_left_out():
    named = {found(name)[0].name for name in ARGUMENTS}
    for name in commands._MODULES:
        command = commands.omnizarr.get_command(None, name)
        each = command.commands if isinstance(command, click.Group) else {"": command}
        for inner, below in each.items():
            assert below.name in named or f"{name} {inner}".strip() in ALONE


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("missing-paths")
    omnizarr.create_group(place / HERE)["t"] = np.arange(4)
    (place / "digests").write_text(f"omnizarr1:sha256:{'0' * 64}  /\n")
    return place


@pytest.fixture
def hierarchy(made, monkeypatch):
    monkeypatch.chdir(made)
    return made


@pytest.mark.parametrize(("name", "flag"), CASES, ids=lambda each: each or "plain")
def test_missing_path_is_an_error(name, flag, hierarchy, run):
    before = sorted(hierarchy.iterdir())
    _, words = found(name)
    said = 0
    for path in NOWHERE:
        arguments = [each.format(path) for each in ARGUMENTS[name]]
        code, out, err = run(*words, *filter(None, [flag]), *arguments)
        assert code in (1, 2), (path, out)
        assert "Traceback" not in err
        is_refused = any(words in err for words in ("--help", "without meaning"))
        assert is_refused or "missing" in err, (path, err)
        said += not is_refused
    assert said in (0, len(NOWHERE)), "some options are not valid, whatever the path"
    assert sorted(hierarchy.iterdir()) == before


@pytest.mark.parametrize("path", [*NOWHERE, "memory://missing-paths"])
def test_stored_bytes_of_a_missing_path_have_no_checksum(path, hierarchy):
    with pytest.raises((NodeNotFoundError, StoreError)):
        omnizarr.digest_of_bytes(path)


def test_stored_bytes_of_an_empty_directory_have_the_checksum_of_nothing(hierarchy):
    """As zarr_checksum has it: ``481a2f77ab786a0f45aafd5db0971caa-0--0``."""
    with TemporaryDirectory() as empty:
        assert omnizarr.digest_of_bytes(empty) == "481a2f77ab786a0f45aafd5db0971caa-0--0"
