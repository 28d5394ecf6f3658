"""Find out which pictures a terminal can show: from its environment, else by asking it."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import struct
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, TextIO

from omnizarr.pictures import paper
from omnizarr.pictures.terminal import Protocol, Terminal

# Time in which a terminal answers, if it answers at all.
_PATIENCE: Final = 0.2
# "How large is a cell?" (xterm), and "What can you do?" (DA1), which all terminals answer, and so ends the wait.
_QUESTION: Final = b"\x1b[16t\x1b[c"
_CELL: Final = re.compile(rb"\x1b\[6;(\d+);(\d+)t")
_ATTRIBUTES: Final = re.compile(rb"\x1b\[\?([\d;]*)c")
_HAS_SIXEL: Final = b"4"
_LARGEST_CELL: Final = 100

_KITTY: Final = ("kitty", "ghostty")
_ITERM: Final = ("iTerm.app", "WezTerm")
_MULTIPLEXERS: Final = ("screen", "tmux")


def terminal_of(
    stream: TextIO,
    environment: Mapping[str, str] | None = None,
    protocol: Protocol | None = None,
    answers: tuple[frozenset[bytes], tuple[int, int] | None] | None = None,
) -> Terminal:
    """Return the abilities of the terminal behind a stream: ASCII shades if it is not a terminal, or without colours.

    Parameters
    ----------
    stream : text stream
    environment : mapping
        Default: the environment of the process.
    protocol : str, optional
        The protocol to use, even if the terminal does not seem to support it.
    answers : tuple
        The abilities of the terminal and the size of its cells. By default the terminal is asked.
    """
    environment = os.environ if environment is None else environment
    size = shutil.get_terminal_size()
    is_terminal = stream.isatty()
    if protocol is None:
        protocol = (
            _told(environment)
            if is_terminal
            and not environment.get("NO_COLOR")
            and environment.get("TERM") not in {None, "", "dumb", "linux", "vt100"}
            else "text"
        )
    cell = _cell_of(stream) if is_terminal else None
    if is_terminal and (protocol is None or (protocol == "sixel" and cell is None)):
        abilities, reported = _ask() if answers is None else answers
        cell = cell or reported
        if protocol is None:
            protocol = "sixel" if _HAS_SIXEL in abilities and paper.is_there() else "blocks"
    if environment.get("COLORTERM") in {"truecolor", "24bit"}:
        has_true_color = True
    else:
        has_true_color = _told(environment) is not None or "direct" in environment.get("TERM", "")
    return Terminal(
        protocol=protocol or "blocks",
        columns=size.columns,
        rows=size.lines,
        cell=cell or (8, 16),
        is_true_color=has_true_color,
        is_unicode=_has_unicode(stream),
    )


def _told(environment: Mapping[str, str]) -> Protocol | None:
    """Return the protocol that the environment speaks for; None if it speaks for none."""
    term = environment.get("TERM", "")
    # Variables of the terminal outside reach the shells in a multiplexer, which does not pass its commands on.
    if environment.get("TMUX") or term.startswith(_MULTIPLEXERS):
        return None
    program = environment.get("TERM_PROGRAM", "")
    if environment.get("KITTY_WINDOW_ID") or any(name in term or name == program for name in _KITTY):
        return "kitty"
    if program in _ITERM or environment.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    return None


def _has_unicode(stream: TextIO) -> bool:
    try:
        "│┤└┬─▀▄⣿…".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _cell_of(stream: TextIO) -> tuple[int, int] | None:
    """Return the size of a cell as the system knows it; None if it does not."""
    with suppress(OSError, ValueError, ImportError, AttributeError):
        fcntl, termios = import_module("fcntl"), import_module("termios")
        answer = fcntl.ioctl(stream.fileno(), termios.TIOCGWINSZ, b"\0" * 8)
        rows, columns, width, height = struct.unpack("4H", answer)
        if rows and columns and width >= columns and height >= rows:
            return width // columns, height // rows
    return None


def _ask() -> tuple[frozenset[bytes], tuple[int, int] | None]:
    """Ask the terminal of the process. The answer is empty if there is no terminal, or if it does not reply."""
    try:
        termios, tty = import_module("termios"), import_module("tty")
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except (ImportError, OSError):
        return frozenset(), None
    try:
        return understood(_answer(terminal, termios, tty))
    except (OSError, ValueError, termios.error):  # ValueError: on macOS, beyond 1,024 open files
        return frozenset(), None
    finally:
        os.close(terminal)


def _answer(terminal: int, termios: Any, tty: Any) -> bytes:
    before = termios.tcgetattr(terminal)
    # On Linux for any number of open files; on macOS `poll` knows no terminals.
    ready = selectors.PollSelector() if sys.platform == "linux" else selectors.SelectSelector()
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        os.write(terminal, _QUESTION)
        answer = b""
        ready.register(terminal, selectors.EVENT_READ)
        until = time.monotonic() + _PATIENCE
        while _ATTRIBUTES.search(answer) is None:
            if not ready.select(max(0, until - time.monotonic())):
                break
            answer += os.read(terminal, 256)
        return answer
    finally:
        ready.close()
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def understood(answer: bytes) -> tuple[frozenset[bytes], tuple[int, int] | None]:
    r"""Return the answer of a terminal: the numbers of its abilities, and width and height of a cell.

    >>> abilities, cell = understood(b"\x1b[6;20;10t\x1b[?62;4;22c")
    >>> sorted(abilities), cell
    ([b'22', b'4', b'62'], (10, 20))
    """
    attributes, cell = _ATTRIBUTES.search(answer), _CELL.search(answer)
    size = None if cell is None else (int(cell[2]), int(cell[1]))
    if size is not None and not 0 < min(size) <= max(size) <= _LARGEST_CELL:
        size = None
    return frozenset(attributes[1].split(b";") if attributes else ()), size
