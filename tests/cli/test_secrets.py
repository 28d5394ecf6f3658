"""Passwords and signatures of URLs that were typed: no command prints them."""

import os
import pty
import subprocess
import sys

import click
import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.cli.commands import omnizarr as program
from tests.stores.recording import recording

SECRETS = ("hush-user", "hush-pass", "hush-sig", "hush-token", "hush-amz", "AKIAHUSH")
QUERY = "sig=hush-sig&token=hush-token&X-Amz-Signature=hush-amz&AWSAccessKeyId=AKIAHUSH"
URL = f"http://hush-user:hush-pass@{{host}}/{{name}}?{QUERY}"
MORE = {
    "attrs": [["{x}"], ["get", "{x}", "units"], ["get", "{x}", "none"], ["set", "{x}", "a=1"], ["delete", "{x}", "a"]],
    "consolidate": [["{x}"], ["--dry-run", "{x}"]],
    "convert": [["{x}", "{out}"], ["--dry-run", "{x}", "{out}"], ["{x}", "{x}"], ["--json", "{x}", "{out}"]],
    "cp": [["{x}", "{out}"], ["{x}", "{x}b"], ["--dry-run", "{x}", "{out}"], ["--resume", "{x}", "{out}"]],
    "create": [["{x}", "--shape", "2", "--dtype", "int8"]],
    "diff": [["{x}", "{x}"], ["--json", "{x}", "{x}"], ["{x}", "{gone}"]],
    "get": [["{x}"], ["{x}", "0"], ["{x}", "99"], ["{x}", "a b"]],
    "mv": [["{x}", "{out}"], ["--dry-run", "{x}", "{x}b"]],
    "rm": [["-r", "{x}"], ["--dry-run", "-r", "{x}"]],
}
SKIPPED = {"serve", "view", "completion", "man", "gen"}
"""Commands that do not end, or take no URL."""


@pytest.fixture(scope="module")
def places():
    values = {}
    for name, chunk in (("x", 0), ("broken", 1)):
        store = {}
        array = omnizarr.create_array(store, shape=(4,), chunks=(2,), dtype="i4", attributes={"units": "m"})
        array[...] = np.arange(4)
        values |= {f"/{name}/{key}": bytes(value) for key, value in store.items()}
        values[f"/{name}/c/0"] = values[f"/{name}/c/0"][chunk:]
    with recording() as server:
        server.values.update(values)
        server.answer = lambda handler: handler.__setattr__("path", handler.path.partition("?")[0])
        host = f"127.0.0.1:{server.server_port}"
        yield {name: URL.format(host=host, name=name) for name in ("x", "broken", "gone")}


def attempts(name):
    yield from MORE.get(name, [["{x}"], ["{broken}"], ["{gone}"], ["--json", "{x}"], ["--json", "{broken}"]])


@pytest.mark.parametrize("name", sorted(set(program.list_commands(click.Context(program))) - SKIPPED))
def test_no_command_prints_secrets_of_a_url(name, places, tmp_path, capfd):
    for words in attempts(name):
        filled = [word.format(**places, out=tmp_path / "out.zarr") for word in words]
        assert isinstance(main([name, *filled]), int)
        printed = "".join(capfd.readouterr())
        assert not [secret for secret in SECRETS if secret in printed], (words, printed)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("is_terminal", [False, True])
def test_raw_attribute_does_not_command_a_terminal(tmp_path, is_terminal):
    text = "a\x1b]0;title\x07\x1b[2J\nb"
    omnizarr.create_group(tmp_path / "x.zarr", attributes={"a": text})
    words = [sys.executable, "-m", "omnizarr", "attrs", "get", "--raw", str(tmp_path / "x.zarr"), "a"]
    if not is_terminal:
        assert subprocess.run(words, capture_output=True, check=True).stdout.decode() == f"{text}\n"
        return
    ours, theirs = pty.openpty()
    subprocess.run(words, stdout=theirs, check=True)
    os.close(theirs)
    shown = os.read(ours, 1000)
    os.close(ours)
    assert b"\x1b" not in shown
    assert b"\\x1b]0;title" in shown
