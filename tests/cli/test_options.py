"""Options that commands share."""

import json
import re

import click
import numpy as np
import pytest
from click.testing import CliRunner

import omnizarr
from omnizarr.cli import main, options
from omnizarr.cli.commands import COMMANDS
from omnizarr.cli.commands import omnizarr as program
from tests.pages import ROOT

pytestmark = pytest.mark.rules


@pytest.fixture
def place(tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr", zarr_format=2)
    root.create_array("a", shape=(40,), chunks=(20,), dtype="int32")[:20] = 1
    return tmp_path / "x.zarr"


def all_commands():
    context = click.Context(program)
    return {name: program.get_command(context, name) for group in COMMANDS.values() for name in group}


def has(command, name):
    return any(name in parameter.opts for parameter in command.params)


# -- quiet -----------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, command in all_commands().items() if has(command, "--json")])
def test_what_prints_json_can_be_quiet(name):
    assert has(all_commands()[name], "--quiet") or name == "get"


@pytest.mark.parametrize(
    "arguments",
    [["info"], ["ls", "-r"], ["tree"], ["check"], ["check", "--data"], ["repair"], ["convert", "--dry-run"]],
)
def test_quiet_prints_nothing_and_keeps_the_exit_code(capsys, place, arguments):
    assert main([*arguments, str(place)]) == 0
    assert capsys.readouterr().out
    assert main([*arguments, "-q", str(place)]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_quiet_prints_errors_and_keeps_their_exit_code(capsys, place):
    assert main(["info", "--quiet", str(place / "b")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "no node here" in captured.err


def test_quiet_prints_json_that_is_asked_for(capsys, place):
    assert main(["info", "--quiet", "--json", str(place)]) == 0
    assert json.loads(capsys.readouterr().out)["totals"]["arrays"] == 1


def test_output_is_restored_after_a_quiet_command(capsys, place):
    main(["ls", "-q", str(place)])
    main(["ls", str(place)])
    assert capsys.readouterr().out.startswith("a ")


# -- JSON ------------------------------------------------------------------------


def documented():
    """Return the fields that the manual promises, by command: those of the object, and those of objects in lists."""
    text = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    table = re.search(r"^\| command \| JSON \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
    rows = [row.strip("|").split(" | ") for row in table.splitlines()]
    return {head.strip(" `"): re.findall(r"`(\w+)`", fields) for head, fields in rows}


def test_manual_has_the_json_of_every_command_that_prints_some():
    found = {
        name
        for name, command in all_commands().items()
        for each in (command, *getattr(command, "commands", {}).values())
        if any("--json" in parameter.opts for parameter in each.params)
    }
    named = {words.strip("` ").split()[0] for heads in documented() for words in heads.split(",")}
    assert named == found | {"attrs"}  # which prints nothing but JSON


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("info ARRAY", ["info", "x.zarr/a"]),
        ("info GROUP", ["info", "x.zarr"]),
        ("ls`, `tree", ["ls", "x.zarr"]),
        ("du", ["du", "x.zarr"]),
        ("stat", ["stat", "x.zarr"]),
        ("missing ARRAY", ["missing", "x.zarr/a"]),
        ("diff", ["diff", "x.zarr", "y.zarr"]),
        ("digest", ["digest", "x.zarr"]),
        ("digest --bytes", ["digest", "--bytes", "x.zarr"]),
        ("advise", ["advise", "x.zarr/a"]),
        ("cp`, `mv`, `rm", ["cp", "x.zarr", "z.zarr"]),
        ("cp`, `mv`, `rm", ["mv", "x.zarr", "z.zarr"]),
        ("cp`, `mv`, `rm", ["rm", "x.zarr/a"]),
        ("resize", ["resize", "x.zarr/a", "50"]),
        ("pyramid", ["pyramid", "y.zarr/image", "z.zarr", "--axes", "yx"]),
        ("ls`, `tree", ["tree", "x.zarr"]),
        ("check", ["check", "x.zarr"]),
        ("repair", ["repair", "x.zarr"]),
        ("convert", ["convert", "x.zarr", "--dry-run"]),
        ("combine", ["combine", "--along", "n", "--compat", "override", "n.zarr", "n.zarr", "n.zview"]),
    ],
)
def test_json_has_the_fields_of_the_manual(capsys, monkeypatch, place, command, arguments):
    monkeypatch.chdir(place.parent)
    other = omnizarr.create_group("y.zarr")
    other.create_array("a", data=np.arange(40, dtype="int32"))
    other.create_array("image", data=np.zeros((20, 20)))
    omnizarr.create_group("n.zarr").create_array("a", data=np.arange(4), dimension_names=["n"])
    assert main([*arguments, "--json"]) == (1 if command == "diff" else 0)
    document = json.loads(capsys.readouterr().out)
    fields = set(documented()[command])
    assert fields
    # Only nodes that cannot be read have a problem and its reason in a list, and only those of OME-Zarr its images.
    assert fields - names(document) <= {"problem", "reason", "ome_zarr"}
    if command not in NESTED:
        assert names(document) - fields == set()


# What holds attributes, codecs and the like has more names than the manual can list.
NESTED = ("info ARRAY", "info GROUP", "diff", "check", "repair", "convert")


def names(document):
    """Return the names of all fields in a document."""
    if isinstance(document, dict):
        return set(document).union(*map(names, document.values()))
    return set().union(*map(names, document)) if isinstance(document, list) else set()


def test_json_of_all_commands_is_in_the_manual():
    verbs = {verb for heads in documented() for verb in re.findall(r"\b[a-z]+\b", heads)}
    assert {name for name, command in all_commands().items() if has(command, "--json")} <= verbs


# -- color -----------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [["info"], ["tree"], ["check"]])
def test_color_is_printed_on_terminals_only_if_wanted(monkeypatch, place, arguments):
    monkeypatch.delenv("NO_COLOR", raising=False)
    typed = [*arguments, str(place)]
    assert "\x1b[" in CliRunner().invoke(program, typed, color=True).output
    assert "\x1b[" not in CliRunner().invoke(program, [*typed, "--no-color"], color=True).output
    assert "\x1b[" not in CliRunner().invoke(program, ["--no-color", *typed], color=True).output
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in CliRunner().invoke(program, typed, color=True).output


def test_help_has_no_color_if_it_is_not_wanted(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in CliRunner().invoke(program, ["--help"], color=True).output
    monkeypatch.setenv("NO_COLOR", "1")
    for typed in (["--help"], ["info", "--help"], []):
        assert "\x1b[" not in CliRunner().invoke(program, typed, color=True).output
    monkeypatch.delenv("NO_COLOR")
    for typed in (["--help", "--no-color"], ["--no-color", "--help"], ["info", "--help", "--no-color"]):
        assert "\x1b[" not in CliRunner().invoke(program, typed, color=True).output


# -- storage ---------------------------------------------------------------------


@options.command()
@options.path_argument
@options.storage_options
def told(path, storage):
    """Print the options of a store."""
    click.echo(json.dumps(storage))


@pytest.mark.parametrize(
    ("typed", "storage"),
    [
        ([], {}),
        (["--anon"], {"anon": True}),
        (["-o", "anon=true", "--storage-option", "a=b=c"], {"anon": True, "a": "b=c"}),
        (
            ["--endpoint", "http://h:1", "--region", "eu", "-o", "region=us"],
            {"endpoint": "http://h:1", "region": "eu"},
        ),
        (["-o", "account=0123", "-o", "empty="], {"account": "0123", "empty": ""}),
    ],
)
def test_storage_options_are_collected(typed, storage):
    assert json.loads(CliRunner().invoke(told, [*typed, "x"]).output) == storage


@pytest.mark.parametrize("typed", ["anon", "=x"])
def test_storage_option_without_key_or_value_is_a_usage_error(typed):
    assert CliRunner().invoke(told, ["-o", typed, "x"]).exit_code == 2


# -- numbers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("2kB", 2000), ("2KiB", 2048), ("1 g", 10**9), ("3TiB", 3 << 40)]
)
def test_bytes_have_units(text, number):
    assert options.parse_bytes(text) == number


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5GB", "lots", "1PB"])
def test_numbers_of_bytes_without_sense_are_refused(text):
    with pytest.raises(click.BadParameter, match="500MB"):
        options.parse_bytes(text)


def test_values_are_read_with_each_option(place, capsys):
    assert main(["convert", str(place), str(place.parent / "y.zarr"), "--max-memory", "1MB", "--concurrency", "2"]) == 0
    capsys.readouterr()
    assert np.array_equal(omnizarr.open(place.parent / "y.zarr/a")[:], omnizarr.open(place / "a")[:])
