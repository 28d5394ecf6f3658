"""What a terminal, a pipe and a log show of long commands; what Ctrl-C does. Real terminals, processes and signals."""

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import convert, main

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are for POSIX")

# A command whose directory takes its time for each value, so that there is something to be watched and interrupted.
SLOW = """
import sys, time
from omnizarr.cli import main
from omnizarr.stores import LocalStore
from omnizarr.support import progress

def slowly(verb):
    def call(self, key, *values):
        if "zarr.json" not in key and ".z" not in key and "omnizarr" not in key:
            time.sleep({seconds})
        return verb(self, key, *values)
    return call

LocalStore.set = slowly(LocalStore.set)
progress.Lines.first = progress.Lines.every = {every}
sys.exit(main(sys.argv[1:]))
"""
CLEARED = "\r\x1b[2K"
PATIENCE = 120.0


@pytest.fixture
def source(tmp_path):
    root = omnizarr.create_group(tmp_path / "my old.zarr")
    root.create_array("ocean/temp", data=np.arange(4000), chunks=100)
    return tmp_path / "my old.zarr"


def start(arguments, stdout, *, seconds=0.1, every=10.0, **options):
    one_by_one = ["--concurrency", "1"] if arguments[0] == "convert" else []
    code = SLOW.format(seconds=seconds, every=every)
    command = [sys.executable, "-c", code, *map(str, arguments), *one_by_one]
    environment = {**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
    environment.pop("COLUMNS", None)
    return subprocess.Popen(command, stdout=stdout, stderr=subprocess.STDOUT, env=environment, **options)


def watch(arguments, *, until=None, signals=0, columns=80, **options):
    """Run a command in a terminal, interrupt it when `until` is seen; return exit code and all that was shown."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    process = start(arguments, slave, stdin=slave, start_new_session=True, **options)
    os.close(slave)
    shown = ""
    deadline = time.monotonic() + PATIENCE
    poll = select.poll()  # also for a file of a high number, where tests before this one have left many open
    poll.register(master, select.POLLIN)
    try:
        while time.monotonic() < deadline:
            if poll.poll(50):
                try:
                    data = os.read(master, 65536)
                except OSError:  # the other end is closed
                    break
                shown += data.decode("utf-8", "replace")
            elif process.poll() is not None:
                break
            if signals and until is not None and re.search(until, shown):
                process.send_signal(signal.SIGINT)
                signals -= 1
                until = "again to stop immediately"
        return process.wait(timeout=10), shown
    finally:
        process.kill()
        os.close(master)


@pytest.mark.parametrize("columns", [80, 50, 30])
def test_terminal_shows_share_amounts_and_time_left_within_its_width(source, tmp_path, columns):
    code, shown = watch(["convert", source, tmp_path / "b.zarr"], columns=columns)
    assert code == 0
    frames = shown.split(CLEARED)
    bars = [frame for frame in frames if "converting" in frame and "%" in frame]
    assert len(bars) > 5
    assert all(len(frame) < columns for frame in bars)
    assert any("left" in frame for frame in bars)
    if columns == 80:
        assert any(re.search(r"\d+ %, [\d.]+ (B|KiB) of 62.5 KiB, \d+ of 40 chunks", frame) for frame in bars)
    assert "%" not in frames[-1]  # the bar goes, the account stays
    assert "verified" in frames[-1]


def test_quiet_terminal_shows_nothing(source, tmp_path):
    assert watch(["convert", "--quiet", source, tmp_path / "b.zarr"]) == (0, "")


def test_short_commands_show_no_bar(source):
    for command in ("info", "ls", "check"):
        code, shown = watch([command, source])
        assert code == 0
        assert CLEARED not in shown


def test_pipe_stays_silent_for_ten_seconds(source, tmp_path):
    process = start(["convert", "--json", source, tmp_path / "b.zarr"], subprocess.PIPE, seconds=0.05)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert out.startswith(b"{")


def test_log_has_a_line_now_and_then(source, tmp_path):
    process = start(["convert", source, tmp_path / "b.zarr"], subprocess.PIPE, every=0.5)
    out, _ = process.communicate(timeout=PATIENCE)
    lines = [line for line in out.decode().splitlines() if line.startswith("converting")]
    assert 2 <= len(lines) <= 60
    assert all(re.match(r"converting /ocean/temp: \d+ %, ", line) for line in lines)
    assert "\x1b" not in out.decode()


def test_ctrl_c_says_how_far_it_came_and_what_continues(source, tmp_path):
    target = tmp_path / "new one.zarr"
    typed = ["convert", source, target, "--to", "v2", "--codecs", "zstd:1", "--overwrite"]
    code, shown = watch(typed, until=r"\d+ % *, [1-9]|[1-9]\d? %", signals=1)
    assert code == 130
    assert "Traceback" not in shown
    found = re.search(r"interrupted while converting: [\d.]+ KiB of 62.5 KiB, (\d+) of 40 chunks done", shown)
    assert found is not None
    assert 0 < int(found[1]) < 40
    command = re.search(r"continue with: (omnizarr .*)\r\n", shown)[1]
    words = shlex.split(command)
    assert words == ["omnizarr", *map(str, typed[:-1]), "--concurrency", "1", "--resume"]
    with pytest.raises(omnizarr.errors.NodeNotFoundError):
        omnizarr.open(target, mode="r")["ocean/temp"]
    # what is printed does continue
    subprocess.run([sys.executable, "-m", "omnizarr", *words[1:]], check=True, capture_output=True)
    assert (omnizarr.open(target, mode="r")["ocean/temp"][:] == np.arange(4000)).all()


def test_ctrl_c_before_anything_is_written_says_to_begin_again(source, tmp_path, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(convert, "convert_hierarchy", interrupted)
    typed = ["convert", str(source), str(tmp_path / "b.zarr"), "--overwrite"]
    assert main(typed) == 130
    err = capsys.readouterr().err
    assert err.endswith(f"begin again with: {shlex.join(['omnizarr', *typed])}\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_second_ctrl_c_ends_at_once(source, tmp_path):
    begun = time.monotonic()
    code, shown = watch(["convert", source, tmp_path / "b.zarr"], until=r"[1-9]\d? %", signals=2, seconds=15.0)
    assert code == -signal.SIGINT
    assert "again to stop immediately" in shown
    assert time.monotonic() - begun < 30
    assert not (tmp_path / "b.zarr/ocean/temp/zarr.json").exists()


def test_ctrl_c_in_a_pipe_is_one_line(source, tmp_path):
    process = start(["convert", source, tmp_path / "b.zarr"], subprocess.PIPE, every=0.3)
    line = b""
    while process.poll() is None and b" 0 of 40 chunks" in (line := process.stdout.readline() or b" 0 of 40 chunks"):
        pass
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE)
    shown = (line + out).decode()
    assert process.returncode == 130
    assert "Traceback" not in shown
    assert "omnizarr: interrupted while converting" in shown
    assert "\x1b" not in shown
