"""Completion, by the machinery of the shells themselves: Tab is pressed in bash, zsh and fish."""

import contextlib
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import completion, main, places

pty = pytest.importorskip("pty", reason="no pseudo-terminals here")

INTERACTIVE = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
SETUP = {"bash": "", "zsh": "autoload -U compinit; compinit -u -D; "}
# What is typed before Tab, and the words that the shell then has.
TYPED = [
    ("inf", ["info"]),
    ("info era", ["info", "era5.zarr/"]),
    ("info not", ["info", "notes.txt"]),
    ("info era5.zarr/oc", ["info", "era5.zarr/ocean/"]),
    ("info era5.zarr/ocean/se", ["info", "era5.zarr/ocean/sea temp"]),
    (r"info era5.zarr/ocean/sea\ t", ["info", "era5.zarr/ocean/sea temp"]),
    ("info v2.zarr/g", ["info", "v2.zarr/group/"]),
    ("info x.zip/oc", ["info", "x.zip/ocean/"]),
    ("info x.zip/ocean/se", ["info", "x.zip/ocean/sea temp"]),
    ("info ~/not", ["info", "{home}/notes.txt"]),
    ("convert era5.zarr new.zarr --to v3-draft2019", ["convert", "era5.zarr", "new.zarr", "--to", "v3-draft2019"]),
    ("convert --to=v3-draft2019", ["convert", "--to=v3-draft2019"]),
    ("convert --codecs blosc:l", ["convert", "--codecs", "blosc:lz4:5"]),
    ("create x.zarr --codecs blosc:l", ["create", "x.zarr", "--codecs", "blosc:lz4:5"]),
    ("create --format v3-draft201", ["create", "--format", "v3-draft2019"]),
    ("convert --dry", ["convert", "--dry-run"]),
    ("convert era5.zarr not", ["convert", "era5.zarr", "notes.txt"]),
    ("info --json era5.zarr/oc", ["info", "--json", "era5.zarr/ocean/"]),
    ("completion z", ["completion", "zsh"]),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A directory with hierarchies, a file, and the program."""
    folder = tmp_path_factory.mktemp("completion")
    for name, zarr_format in (
        ("era5.zarr", 3),
        ("v2.zarr", 2),
        ("x.zip", 3),
        ("draft.zarr", "3-draft2020"),
        ("x.sqlite", 3),
    ):
        with contextlib.ExitStack() as stack:
            root = omnizarr.create_group(folder / name, zarr_format=zarr_format)
            if hasattr(root, "__exit__"):
                stack.enter_context(root)
            root.create_group("group/below")
            space = "_" if name == "draft.zarr" else " "
            for path in (f"ocean/sea{space}temp", "ocean/ice", "t2m"):
                root.create_array(path, data=np.arange(4))
    omnizarr.create_array(folder / "alone.zarr", data=np.arange(4))
    (folder / "notes.txt").write_text("")
    (folder / ".hidden").write_text("")
    program = folder / "bin" / "omnizarr"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m omnizarr "$@"\n')
    program.chmod(0o755)
    return folder


def environment(folder):
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(folder), "TERM": "dumb", "PS1": "$ ", "HISTFILE": ""}


class Terminal:
    """A shell at which keys are pressed."""

    def __init__(self, arguments, folder):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(arguments[0], arguments, environment(folder))

    def press(self, keys, until):
        """Press keys, and return what is shown up to a sign."""
        os.write(self.file, keys.encode())
        shown, end = b"", time.monotonic() + 60
        poll = select.poll()
        poll.register(self.file, select.POLLIN)
        while until.encode() not in shown and time.monotonic() < end:
            if poll.poll(200):
                try:
                    shown += os.read(self.file, 65536)
                except OSError:  # the shell has gone
                    break
        return shown.decode(errors="replace")

    def close(self):
        os.close(self.file)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


@pytest.fixture(scope="module", params=list(INTERACTIVE))
def terminal(request, folder):
    name = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not here")
    terminal = Terminal(INTERACTIVE[name], folder)
    script = folder / f"completion.{name}"
    script.write_text(scripts(name))
    # The sign is typed in two parts: the shell shows what is typed as well.
    terminal.press(f"{SETUP[name]}source '{script}'; echo rea''dy\r", "ready\r\n")
    yield terminal
    terminal.close()


def scripts(name):
    done = subprocess.run(
        [sys.executable, "-m", "omnizarr", "completion", name], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(("typed", "words"), TYPED, ids=[typed for typed, _ in TYPED])
def test_tab_completes_in_bash_and_zsh(terminal, folder, typed, words):
    out = folder / "words"
    out.unlink(missing_ok=True)
    # Ctrl-A, Ctrl-E: to the start of the line, and its end. The completed line becomes the arguments of printf.
    terminal.press(f"omnizarr {typed}\t\x01printf '%s\\n' \x05 > words; echo do''ne\r", "done\r\n")
    found = out.read_text().splitlines()
    expected = ["omnizarr", *(word.format(home=folder) for word in words)]
    # bash knows a directory when it sees one, and adds a slash to an array too.
    assert [found[:-1], found[-1].rstrip("/")] == [expected[:-1], expected[-1].rstrip("/")]


@pytest.mark.parametrize(("typed", "words"), TYPED, ids=[typed for typed, _ in TYPED])
def test_fish_offers_what_is_meant(folder, typed, words):
    if shutil.which("fish") is None:
        pytest.skip("fish is not here")
    script = folder / "completion.fish"
    if not script.exists():
        script.write_text(scripts("fish"))
    line = f"omnizarr {typed}".replace("\\", "\\\\")
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    offered = [entry.partition("\t")[0] for entry in done.stdout.splitlines()]
    assert words[-1].format(home="~") in offered


# -- what the shells ask ---------------------------------------------------------


def asked(monkeypatch, capsys, folder, typed, incomplete):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COMP_WORDS", "\n".join(["omnizarr", *typed]))
    monkeypatch.setenv("COMP_WORD", incomplete)
    monkeypatch.setenv(completion.VARIABLE, "zsh_complete")
    assert main([]) == 0
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


def test_all_files_of_a_directory_are_offered_but_hidden_ones(monkeypatch, capsys, folder):
    offered = {value: kind for kind, value, _ in asked(monkeypatch, capsys, folder, ["info"], "")}
    for value, kind in {"notes.txt": "path", "era5.zarr/": "open", "x.zip": "path", "alone.zarr": "path"}.items():
        assert offered[value] == kind
    assert ".hidden" not in offered
    assert [value for _, value, _ in asked(monkeypatch, capsys, folder, ["info"], ".h")] == [".hidden"]


def test_commands_are_offered_with_their_summaries(monkeypatch, capsys, folder):
    offered = {value: text for _, value, text in asked(monkeypatch, capsys, folder, [], "")}
    assert offered["tree"] == "Draw a hierarchy as a tree."


@pytest.mark.parametrize("command", ["info", "convert", "cp"])
def test_options_are_those_of_the_command_whether_it_is_imported_or_not(monkeypatch, capsys, folder, command):
    offered = asked(monkeypatch, capsys, folder, [command], "--")
    imported = asked(monkeypatch, capsys, folder, [command, "--no-color"], "--")  # an option that is not offered again
    assert [row for row in offered if row[1] != "--no-color"] == imported


def test_only_nodes_are_offered_inside_a_hierarchy(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("era5.zarr", "v2.zarr", "x.zip", "draft.zarr", "x.sqlite"):
        assert places.complete(f"{name}/") == [f"{name}/group/", f"{name}/ocean/", f"{name}/t2m"]
        below = [path.replace("_", " ") for path in places.complete(f"{name}/ocean/")]
        assert below == [f"{name}/ocean/ice", f"{name}/ocean/sea temp"]
        assert places.complete(f"{name}/t2m/") == []
        assert places.complete(f"{name}/nothing/x") == []


class Silent(SimpleHTTPRequestHandler):
    """A web server that lists no directory."""

    def log_message(self, *_):
        pass

    def list_directory(self, _):
        self.send_error(404)


def test_consolidated_hierarchy_is_completed_in_a_store_that_lists_nothing(folder):
    omnizarr.consolidate_metadata(folder / "era5.zarr")
    handler = partial(Silent, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert places.complete(f"{url}/era5.zarr/oc") == [f"{url}/era5.zarr/ocean/"]
        assert f"{url}/era5.zarr/ocean/ice" in places.complete(f"{url}/era5.zarr/ocean/")
        server.shutdown()


def test_places_that_cannot_be_looked_into_offer_nothing(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for typed in ("https://", "https://127.0.0.1:1/x/", "nothing://x/y", "notes.txt/x", "\0/", "x.zip/\0"):
        assert places.complete(typed) == []


@pytest.mark.parametrize(
    ("typed", "incomplete"),
    [([], "i"), (["info"], "era5.zarr/"), (["convert"], "x.zip/o"), (["convert", "x.zip"], "--")],
)
def test_words_typed_first_are_completed_without_importing_numpy(folder, typed, incomplete):
    code = "import sys; from omnizarr.cli import main; main([]); sys.exit('numpy' in sys.modules)"
    words = {"COMP_WORDS": "\n".join(["omnizarr", *typed]), "COMP_WORD": incomplete}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **words, completion.VARIABLE: "zsh_complete"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stdout


def test_completion_of_an_unknown_shell_is_a_usage_error(capsys):
    assert main(["completion", "tcsh"]) == 2
    assert "zsh" in capsys.readouterr().err


def test_folder_is_as_it_was(folder):
    assert not list(Path(folder).glob(".omnizarr*"))
