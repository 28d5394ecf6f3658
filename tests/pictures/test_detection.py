"""Which protocol is chosen, by what the environment and the terminal say."""

import io
import os
import select
import struct
import sys
import threading

import pytest

from omnizarr.pictures.terminal import detection

NOTHING = (frozenset(), None)


class Screen(io.TextIOWrapper):
    def __init__(self, encoding="utf-8", *, is_terminal=True):
        super().__init__(io.BytesIO(), encoding=encoding)
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


def chosen(environment, answers=NOTHING, **more):
    return detection.terminal_of(Screen(), environment, answers=answers, **more)


@pytest.mark.parametrize(
    ("environment", "protocol"),
    [
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-ghostty", "TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, "iterm"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm"),
        ({"TERM": "xterm-256color"}, "blocks"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, "blocks"),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux"}, "blocks"),
        ({"TERM": "xterm-kitty", "NO_COLOR": "1"}, "text"),
        ({"TERM": "dumb"}, "text"),
        ({}, "text"),
    ],
)
def test_environment_chooses(environment, protocol):
    assert chosen(environment).protocol == protocol


def test_terminal_that_says_so_gets_sixel_with_its_cells():
    found = chosen({"TERM": "xterm-256color"}, (frozenset({b"62", b"4"}), (9, 18)))
    assert (found.protocol, found.cell) == ("sixel", (9, 18))


def test_terminal_of_level_four_without_sixel_is_not_mistreated_as_one():
    assert chosen({"TERM": "xterm"}, detection.understood(b"\x1b[?64;1;22c")).protocol == "blocks"


def test_no_terminal_gets_text_and_is_not_asked(monkeypatch):
    monkeypatch.setattr(detection, "_ask", lambda: pytest.fail("asked"))
    assert detection.terminal_of(Screen(is_terminal=False), {"TERM": "xterm-kitty"}).protocol == "text"


def test_protocol_that_is_asked_for_is_used_anywhere():
    screen = Screen(is_terminal=False)
    assert detection.terminal_of(screen, {}, "sixel").protocol == "sixel"


@pytest.mark.parametrize(("value", "has"), [("truecolor", True), ("24bit", True), ("", False)])
def test_colours(value, has):
    assert chosen({"TERM": "xterm-256color", "COLORTERM": value}).is_true_color is has


@pytest.mark.parametrize(("encoding", "has"), [("utf-8", True), ("ascii", False), ("latin-1", False)])
def test_signs(encoding, has):
    assert detection.terminal_of(Screen(encoding, is_terminal=False), {}).is_unicode is has


@pytest.mark.parametrize("answer", [b"", b"\x1b[", b"\x1b[6;0;0t", b"\x1b[6;9999;3t\x1b[?c", b"garbage\xff"])
def test_answers_that_mean_nothing_are_ignored(answer):
    abilities, cell = detection.understood(answer)
    assert not abilities & {b"4"}
    assert cell is None


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
def test_a_terminal_is_asked_and_left_as_it_was():
    import fcntl
    import pty
    import termios
    import tty

    outer, inner = pty.openpty()
    try:
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 800, 480))
        before = termios.tcgetattr(inner)
        heard = bytearray()
        poll = select.poll()
        poll.register(outer, select.POLLIN)

        def answer():
            while b"\x1b[c" not in heard and poll.poll(5000):
                heard.extend(os.read(outer, 64))
            os.write(outer, b"\x1b[6;20;10t\x1b[?62;4c")

        other = threading.Thread(target=answer)
        other.start()
        found = detection.understood(detection._answer(inner, termios, tty))
        other.join()
        assert found == (frozenset({b"62", b"4"}), (10, 20))
        assert termios.tcgetattr(inner) == before
        with os.fdopen(os.dup(inner), "w") as stream:
            assert detection._cell_of(stream) == (10, 20)
    finally:
        os.close(outer)
        os.close(inner)
