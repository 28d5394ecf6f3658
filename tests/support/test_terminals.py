"""Escape sequences only go to terminals that understand them."""

import os
import subprocess
import sys

import pytest

import omnizarr

pytestmark = pytest.mark.skipif(os.name != "posix", reason="terminals of Unix")

IN_TERMINAL = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"


@pytest.fixture
def place(tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root.create_array("a", data=[[1, 2], [3, 4]])
    return tmp_path / "x.zarr"


def said(words, **environment):
    """Return what a command writes to a terminal."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")}
    command = [sys.executable, "-c", IN_TERMINAL, sys.executable, "-m", "omnizarr", *map(str, words)]
    return subprocess.run(command, env={**inherited, **environment}, capture_output=True, check=False).stdout


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "xterm-256color", "NO_COLOR": "1"}], ids=str)
@pytest.mark.parametrize(
    "words", [["--help"], ["info"], ["ls", "-l"], ["tree"], ["show", "a"], ["digest"], ["nonsense"]], ids=" ".join
)
def test_terminals_without_colours_get_no_escapes(place, words, environment):
    command, *more = words
    typed = [command, place / more[0]] if more == ["a"] else [command, *more, *([] if command == "--help" else [place])]
    out = said(typed, **environment)
    assert out
    assert b"\x1b" not in out


def test_other_terminals_get_colours(place):
    assert b"\x1b[" in said(["info", place], TERM="xterm-256color")
