"""``--trace``: what a command has asked of the store."""

import re

import numpy as np
import pytest

import omnizarr
from omnizarr.cli import main
from omnizarr.cli.trace import Trace
from omnizarr.stores import MemoryStore, verbs


@pytest.fixture
def place(tmp_path):
    root = omnizarr.create_group(tmp_path / "x.zarr")
    root.create_array("a", data=np.arange(40), chunks=20, compressors=None)
    return tmp_path / "x.zarr"


def traced(capsys, *arguments):
    """Return the exit code, what was printed, and the requests: (verb, key, bytes)."""
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    lines = re.findall(r"^ +\d+ +[\d.]+ ms +([\d,]+|-)  (\w+) +(.*)$", err, re.MULTILINE)
    return code, out, [(verb, key, moved) for moved, verb, key in lines], err


def test_requests_are_shown_after_the_output_on_stderr(capsys, place):
    code, out, requests, err = traced(capsys, "get", "--trace", "--csv", place / "a", "0:3")
    assert (code, out) == (0, "0\n1\n2\n")
    assert requests[0] == ("get", "zarr.json", f"{(place / 'a' / 'zarr.json').stat().st_size:,}")
    assert ("c/0" in err, "c/1" in err) == (True, False)
    assert re.search(r"^all +\d+ +[\d,]+ +\d+\.\d+ +0$", err, re.MULTILINE)


@pytest.mark.parametrize("command", ["info", "tree", "ls", "check"])
def test_every_command_that_reads_can_show_requests(capsys, place, command):
    code, out, requests, _ = traced(capsys, command, "--trace", place)
    assert code == 0
    assert any(key == "a/zarr.json" for _, key, _ in requests)
    assert out == traced(capsys, command, place)[1]


def test_nothing_is_shown_without_the_option(capsys, place):
    assert traced(capsys, "info", place)[3] == ""


def test_requests_before_an_error_are_shown(capsys, place):
    code, _, requests, err = traced(capsys, "info", "--trace", place / "missing")
    assert code == 1
    assert ("get", "missing/zarr.json", "-") in requests
    assert err.splitlines()[-1].startswith("omnizarr: ")


def test_parts_are_shown_as_slices():
    trace = Trace()
    store = trace.wrap(MemoryStore({"a": bytes(20)}))
    store.get("a", (0, 16))
    store.get("a", (-4, None))
    verbs.get_spans(store, "a", [(0, 2), (4, 6)])
    verbs.get_spans(store, "a", [(n, n + 1) for n in range(10)])
    shown = [line.rpartition("  ")[2] for line in trace.lines() if " ms  " in line][1:]
    assert shown == ["[0:16]", "[-4:]", "[0:2, 4:6]", "[0:1, 1:2, 2:3, 3:4, 6 more]"]


def test_keys_cannot_command_the_terminal():
    trace = Trace()
    trace.wrap(MemoryStore()).get("a\x1b[2J\nb")
    assert not any("\x1b[2J" in line or "\n" in line for line in trace.lines())


def test_of_very_many_requests_the_first_and_the_last_are_shown():
    trace = Trace()
    store = trace.wrap(MemoryStore())
    for number in range(1000):
        store.get(str(number))
    lines = list(trace.lines())
    assert len(lines) < 210
    assert any("800 more requests" in line for line in lines)
    assert any(line.endswith(" 999") for line in lines)
    assert any(re.match(r"all +1,000 ", re.sub(r"\x1b\[\d*m", "", line)) for line in lines)


def test_info_says_how_writers_are_kept_apart_where_that_is_not_plain(capsys, place, tmp_path):
    with omnizarr.open_group(tmp_path / "x.zip", mode="w") as root:
        root.create_array("a", data=np.arange(4))
    row = re.compile(r"^  writers +kept apart ", re.MULTILINE)
    assert not row.search(traced(capsys, "info", place / "a")[1])
    assert not row.search(traced(capsys, "info", "--trace", place / "a")[1])
    assert row.search(traced(capsys, "info", tmp_path / "x.zip" / "a")[1])
