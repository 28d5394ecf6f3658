"""``omnizarr view``: what it prints, what it refuses, and how it ends."""

import json
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.web.viewing import PAGE

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
needs_page = pytest.mark.skipif(not PAGE.is_dir(), reason="the page is not built: make page")


@pytest.fixture
def places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    omnizarr.create_group("old.zarr", zarr_format=2).create_array("temp", data=[280.5, 281.0])
    omnizarr.create_array("new.zarr", data=[1, 2])
    return "old.zarr", "new.zarr"


@needs_page
def test_hierarchies_are_shown_until_ctrl_c(places):
    command = [sys.executable, "-m", "omnizarr", "view", "--no-browser", *places]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        text, _, url = process.stdout.readline().strip().rpartition(": ")
        assert text == "old.zarr, new.zarr"
        with urlopen(f"{url}api/datasets", timeout=30) as answer:
            found = json.loads(answer.read())["datasets"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert [dataset["location"] for dataset in found] == ["old.zarr", "new.zarr"]
    assert [dataset["kind"] for dataset in found] == ["group", "array"]
    assert (process.returncode, out, err) == (0, "", "Ctrl-C ends this.\n")


def test_a_page_that_was_not_built(places, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("omnizarr.web.viewing.PAGE", tmp_path / "nowhere")
    assert main(["view", "--no-browser", *places]) == 1
    assert "make page" in capsys.readouterr().err


def test_nothing_there(capsys, tmp_path):
    assert main(["view", "--no-browser", str(tmp_path / "x.zarr")]) == 1
    assert "x.zarr" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--host", "0.0.0.0", "old.zarr"], ["--anon", "old.zarr"]])
def test_what_is_not_valid(places, options):
    assert main(["view", "--no-browser", *options]) == 2
