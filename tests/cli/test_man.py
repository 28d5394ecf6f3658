"""Manual pages, as man formats them."""

import re
import shutil
import subprocess

import pytest

from omnizarr.cli import help as pages
from omnizarr.cli import man
from omnizarr.cli.commands import COMMANDS

NAMES = [name for group in COMMANDS.values() for name in group]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    man.write(folder)
    return folder


def test_there_is_a_page_for_the_program_and_for_each_command(folder):
    written = {path.name for path in folder.iterdir()}
    assert {"omnizarr.1", *(f"omnizarr-{name}.1" for name in NAMES)} <= written


@pytest.mark.parametrize("name", ["omnizarr", *(f"omnizarr-{name}" for name in NAMES)])
def test_man_formats_the_page_without_a_warning(folder, name):
    if shutil.which("groff") is None:
        pytest.skip("groff is not here")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-Kutf8", folder / f"{name}.1"], capture_output=True, check=True
    )
    assert done.stderr == b""
    text = re.sub(".\b", "", done.stdout.decode())  # bold is typed twice
    for heading in ("NAME", "SYNOPSIS", "EXAMPLES"):
        assert heading in text


def test_page_says_what_the_help_says(folder):
    from omnizarr.cli.convert import convert

    text = (folder / "omnizarr-convert.1").read_text("utf-8").replace("\\-", "-")
    for line in pages.Help.of(convert).examples:
        assert f"\n{line}\n" in text
    assert "--max-memory BYTES" in text
    assert "EXIT STATUS" in text
