"""Help pages: what they say is true, their examples run, and they fit a terminal."""

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest

import omnizarr
from omnizarr.cli import help as pages
from omnizarr.cli import main
from omnizarr.cli.commands import _ELSEWHERE, COMMANDS
from omnizarr.cli.commands import omnizarr as program
from tests.pages import ROOT

pytestmark = pytest.mark.rules

SUMMARIES = {name: summary for group in COMMANDS.values() for name, (_, summary) in group.items()}
CDL = "netcdf tides { dimensions: time = 2 ; variables: double time(time) ; data: time = 0, 1 ; }"


def commands():
    """Return all commands, those of groups of commands too, by how they are typed."""
    found = {}
    context = click.Context(program, info_name="omnizarr")
    for name in SUMMARIES:
        command = program.get_command(context, name)
        found[f"omnizarr {name}"] = command
        found |= {f"omnizarr {name} {below}": each for below, each in getattr(command, "commands", {}).items()}
    return found


ALL = commands()


def help_of(name, capsys):
    assert main([*name.split()[1:], "--help"]) == 0
    return capsys.readouterr().out


# -- the page of the program -----------------------------------------------------


def test_omnizarr_alone_prints_its_page_on_stderr_and_is_a_usage_error(capsys):
    assert main(["--help"]) == 0
    page = capsys.readouterr().out
    assert main([]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", page)


def test_page_lists_each_command_with_its_summary_below_its_group(capsys):
    page = help_of("omnizarr", capsys)
    for heading, group in COMMANDS.items():
        section = re.search(rf"^{heading}:\n(.*?)\n\n", page, re.MULTILINE | re.DOTALL)[1]
        lines = [line.split(None, 1) for line in re.sub(r"\n {4,}", " ", section).splitlines()]
        assert dict(lines) == {name: summary for name, (_, summary) in group.items()}


def test_page_says_what_paths_can_be_and_all_exit_codes(capsys):
    page = help_of("omnizarr", capsys)
    for text in ("What PATH can be:", "a directory", "a zip archive", "a database", "s3://", "Exit codes:", "130"):
        assert text in page


def test_page_is_printed_without_importing_commands():
    code = "import sys; from omnizarr.cli import main; main(['--help']); sys.exit('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("inof", "info"), ("lst", "ls"), ("ncdump", "dump"), ("validate", "check"), ("h5ls", "ls"), ("convrt", "convert")],
)
def test_misspelt_command_brings_a_suggestion(capsys, typed, meant):
    assert main([typed, "x"]) == 2
    assert (
        capsys.readouterr().err == f"omnizarr: no command '{typed}'; did you mean '{meant}'?; see 'omnizarr --help'\n"
    )


def test_path_in_the_place_of_a_command_brings_a_command(capsys):
    assert main(["my data.zarr"]) == 2
    assert "omnizarr info 'my data.zarr'" in capsys.readouterr().err


def test_names_of_other_programs_lead_to_commands_and_hide_none():
    assert not set(_ELSEWHERE) & set(SUMMARIES)


@pytest.mark.parametrize("name", ["info", "convert", "check"])
def test_misspelt_option_brings_a_suggestion(capsys, name):
    assert main([name, "--jsno", "x"]) == 2
    error = capsys.readouterr().err
    assert error == f"omnizarr: no option '--jsno'; did you mean '--json'?; see 'omnizarr {name} --help'\n"


# -- pages of commands -----------------------------------------------------------


@pytest.mark.parametrize("name", SUMMARIES)
def test_summary_of_a_command_is_the_first_line_of_its_help(name):
    assert pages.Help.of(ALL[f"omnizarr {name}"]).summary == SUMMARIES[name]


@pytest.mark.parametrize("name", ["omnizarr", *ALL])
def test_help_fits_a_terminal_of_80_columns(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    page = help_of(name, capsys)
    assert [line for line in page.splitlines() if len(line) > 80] == []
    assert "\x1b" not in page
    assert "\b" not in page


@pytest.mark.parametrize("name", [name for name, command in ALL.items() if not hasattr(command, "commands")])
def test_each_option_is_explained_in_a_sentence(name):
    command = ALL[name]
    assert pages.Help.of(command).examples
    for heading, rows in pages.option_rows(command, click.Context(command)).items():
        for option, meaning in rows:
            assert re.match(r"[A-Z].*\.(  \[.*\])?$", meaning), (heading, option, meaning)


@pytest.mark.parametrize("name", [name for name, command in ALL.items() if not hasattr(command, "commands")])
def test_each_command_has_no_color_and_help(name, capsys):
    page = help_of(name, capsys)
    assert "--no-color" in page
    assert "--help" in page


# -- examples --------------------------------------------------------------------


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A directory with what examples name."""
    monkeypatch.chdir(tmp_path)
    elements = np.arange(8000.0).reshape(20, 20, 20)
    for place, zarr_format in (("era5.zarr", 3), ("old.zarr", 2), ("v2.zarr", 2)):
        names = ("time", "lat", "lon") if zarr_format == 3 else None
        root = omnizarr.create_group(place, zarr_format=zarr_format)
        for name in ("t2m", "ocean/temp"):
            root.create_array(name, data=elements, chunks=(10, 10, 10), dimension_names=names)
        if zarr_format == 3:
            days = {"units": "days since 2020-01-01"}
            root.create_array("time", data=np.arange(20), dimension_names=["time"], attributes=days)
            root.create_array("lat", data=np.arange(35.0, 55.0), dimension_names=["lat"])
        root["t2m"].attrs.update({"units": "K", "valid_range": [180, 340], "history": "made"})
    omnizarr.create_array("scan.zarr", data=elements, dimension_names=("z", "y", "x"))
    for year in (2020, 2021):
        days = {"units": f"days since {year}-01-01"}
        run = omnizarr.create_group(f"run-{year}.zarr")
        run.create_array(
            "time", data=np.arange(366 if year == 2020 else 365), dimension_names=["time"], attributes=days
        )
    omnizarr.create_group("cells.zarr").create_array("0", data=elements[None])
    (tmp_path / "tides.cdl").write_text(CDL)
    (tmp_path / "era5.zarr.omnizarr-repair-20260102T030405").mkdir()
    return tmp_path


# What is typed before examples that contain these words.
BEFORE = {
    "dump -h tides.nc": "omnizarr gen tides.cdl -o tides.nc",
    "convert tides.nc": "omnizarr gen tides.cdl -o tides.nc",
    "dump -s old.nc": "omnizarr gen tides.cdl -o old.nc",
    "attrs set tides.zarr": "omnizarr gen tides.cdl -o tides.zarr",
    "diff old.zarr new.zarr": "omnizarr convert old.zarr new.zarr",
    "old.zarr/t2m new.zarr/t2m": "omnizarr convert old.zarr new.zarr",
    "convert run.zview": "omnizarr combine --along time run-2020.zarr run-2021.zarr run.zview",
    "--no-values era5.zarr backup.zarr": "omnizarr cp era5.zarr backup.zarr",
    "--digest era5.digests": "omnizarr digest era5.zarr > era5.digests && omnizarr cp era5.zarr backup.zarr",
    " cells.ome.zarr": "omnizarr pyramid scan.zarr cells.ome.zarr",
    "map.zarr --convention": "omnizarr attrs set era5.zarr/t2m 'spatial:transform=[1, 0, 0, 0, -1, 90]' "
    """'spatial:dimensions=["lat", "lon"]' proj:code=EPSG:4326""",
    "labels/nuclei": "omnizarr pyramid scan.zarr cells.ome.zarr/labels/nuclei --levels 1",
}


def examples():
    """Return each example with the command whose help has it; lines that end with a backslash are continued."""
    texts = {"omnizarr": [line for line, _ in pages.EXAMPLES]}
    texts |= {name: pages.Help.of(command).examples for name, command in ALL.items()}
    return [
        (line, name) for name, lines in texts.items() for line in re.sub(r"\\\n *", "", "\n".join(lines)).split("\n")
    ]


def commands_in(line):
    """Return the calls of omnizarr in a line of a shell, each with the file to which its output goes."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    runs = [["", []]]
    for word in words:
        if set(word) <= set("()<>|&;"):
            runs.append([word, []])
        else:
            runs[-1][1].append(word)
    after = [*runs[1:], ["", []]]
    return [
        (typed[1:], file[0] if sign == ">" else None)
        for (_, typed), (sign, file) in zip(runs, after, strict=True)
        if typed[:1] == ["omnizarr"]
    ]


def type_in(line, capfd, monkeypatch):
    """Run a line of a shell; each call reads what the one before it has printed."""
    capfd.readouterr()
    for arguments, file in commands_in(line):
        assert main(arguments) == 0, capfd.readouterr().err
        out = capfd.readouterr().out
        if file:
            Path(file).write_text(out, "utf-8")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out.encode())))


def parse(arguments):
    """Parse what is typed, without running it."""
    name, *rest = arguments
    if f"omnizarr {name} {rest[0]}" in ALL:
        name, rest = f"{name} {rest[0]}", rest[1:]
    return ALL[f"omnizarr {name}"].make_context(name, rest)


# What needs another program, a server, a home of one's own or a record of a repair, or does not end, is parsed only.
PARSED = ("jq", "ncdump", "://", "~", "--undo", "attrs edit", "omnizarr serve", "omnizarr view")


@pytest.mark.parametrize(("line", "of"), examples(), ids=lambda text: text)
def test_example_runs(line, of, data, capfd, monkeypatch):
    assert commands_in(line), line
    if any(word in line for word in PARSED):
        for arguments, _ in commands_in(line):
            assert parse(arguments), line
        return
    for words, before in BEFORE.items():
        if words in line:
            type_in(before, capfd, monkeypatch)
    type_in(line, capfd, monkeypatch)


def test_manual_lists_the_exit_codes_of_the_help():
    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for code, meaning in pages.EXIT_CODES:
        assert f"| {code} | {meaning} |" in text


def typed_for_other_programs():
    """Return the commands that the manual names for those of other programs."""
    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    table = re.search(r"^\| you know \| type \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
    return [line for row in table.splitlines() for line in re.findall(r"`(omnizarr [^`]*)`", row.split(" | ")[1])]


@pytest.mark.parametrize("line", typed_for_other_programs())
def test_commands_for_those_of_other_programs_run(line, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.cdl").write_text(CDL)
    if "gen" not in line:
        root = omnizarr.create_group("x.zarr", zarr_format=2 if "--in-place" in line else 3)
        for name in ("temp", "ocean/temp"):
            root.create_array(name, data=np.zeros((200, 200)))
        if "pyramid" in line:
            root.create_array("0", data=np.zeros((200, 200)), dimension_names=("y", "x"))
    if "x.nc" in line:
        assert main(["gen", "x.cdl", "-o", "x.nc"]) == 0
    if "diff" in line:
        assert main(["cp", "x.zarr", "y.zarr"]) == 0
    line = line.replace("--chunks ... --shards ... --codecs ...", "--chunks 50,50 --shards 100,100 --codecs zstd:3")
    if any(word in line for word in PARSED):
        assert parse(shlex.split(line)[1:])
    else:
        type_in(line, capfd, monkeypatch)
