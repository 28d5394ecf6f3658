"""What the reader of a page of the manual types, typed: `python`, `console` and `sh` blocks, one session per page.

`python` blocks with prompts are examples; those without run, and print nothing. Lines of `console` and `sh` blocks are
typed in a terminal of their own: what Python sets in `os.environ` does not reach it, and what an ``export`` sets
reaches both.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).parents[1]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
BLOCKS = re.compile(r"^```(python|pycon|console|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Files that a page tells the reader to write: a block with the name of the file as its caption.
FILES = re.compile(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ASSIGNMENT = re.compile(r"[A-Z_]+=.*")

PROGRAMS = {
    "omnizarr": "-m omnizarr",
    "python": "",
    "uvicorn": "-m uvicorn",
    "moto_server": "-c 'from moto.server import main; main()'",
}
"""What a reader has installed, and what Python runs for it here."""

NOT_RUN = {
    "git clone ": "needs the internet",
    "cd omnizarr": "goes into what git clone makes",
    "import micropip": "runs in Pyodide, as tests/test_pyodide.py does",
    "make bench": "takes hours; tests/benchmarks has its parts",
    "import napari\n": "opens a window",
    "omnizarr.serve(": "waits for Ctrl-C; tests/web/test_serving.py presses it",
}
"""How blocks and lines begin that are not run, and why."""
if find_spec("mpi4py") is None:
    NOT_RUN["mpiexec "] = "mpi4py is not installed"

SERVERS = {"moto_server": 5000, "omnizarr serve": 8000, "omnizarr view": 0, "uvicorn": 8000}
"""Commands that run until Ctrl-C, and the port that they take if none is typed (0: any)."""
PATIENCE = 60.0
"""Seconds that a server may take to start on a busy machine."""


def name_of(page: Path) -> str:
    """Return the name of a page, as the tables of these tests have it."""
    return page.relative_to(ROOT).as_posix()


def session(text: str) -> str:
    """Return what is typed on a page as interactive examples, each on the line where the page has it."""
    result, end = "", 0
    for block in BLOCKS.finditer(text):
        kind, body = block[1], block[2]
        result += "\n" * text.count("\n", end, block.start(2))
        if kind == "console":
            result += as_python(body)
        elif kind == "sh":
            result += lines_as_python(body)
        elif ">>>" in body:
            result += body
        else:
            result += f">>> exec(run_block({body!r}))" + "\n" * body.count("\n")
        end = block.end(2)
    return result


def as_python(console: str) -> str:
    """Return examples of the command line as interactive ones: `$ omnizarr ...`, and what it prints."""
    lines = []
    for line in console.splitlines():
        if line.startswith("$ "):
            lines.append(f">>> shell({line[2:]!r})")
        else:
            lines.append(line or "<BLANKLINE>")
    return "\n".join(lines) + "\n"


def lines_as_python(script: str) -> str:
    """Return lines without prompts as examples of which only the success counts."""
    return "".join(
        f">>> type_in({line!r})\n" if line and not line.startswith("#") else "\n" for line in script.splitlines()
    )


class Terminal:
    """A terminal in the current directory, with a home of its own, and servers that end with it."""

    def __init__(self, home: Path, places: Mapping[str, str] = MappingProxyType({})) -> None:
        self.places = dict(places)
        """What stands in the place of URLs that a page shows."""
        programs = home / ".local" / "bin"
        programs.mkdir(parents=True)
        for name, words in PROGRAMS.items():
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
        self.variables = {
            **os.environ,
            "HOME": str(home),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "100",
            "PYTHONIOENCODING": "utf-8",
            "BROWSER": "true",
            "MANPAGER": "cat",
        }
        self._servers: dict[int, subprocess.Popen[str]] = {}

    def shell(self, line: str) -> None:
        """Run a command, and print what it says."""
        done = self._run(line)
        sys.stdout.write(done.stdout + done.stderr)

    def type_in(self, line: str) -> None:
        """Type a line whose output the page does not show: it must succeed."""
        line = line.partition(" #")[0].strip()
        if not runs(line):
            return
        words = shlex.split(line)
        if words[0] == "export":
            for name, value in (word.split("=", 1) for word in words[1:]):
                if value != "...":  # for what the reader has
                    self.variables[name] = os.environ[name] = self.placed(value)
        elif words[:2] == ["pip", "install"]:
            assert installs(line)
        elif any(line.startswith(server) for server in SERVERS):
            self._serve(line)
        else:
            done = self._run(line)
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"

    def code(self, text: str) -> str:
        """Return code that a page shows without its output, as it runs here."""
        return self.placed(text) if runs(text) else ""

    def placed(self, text: str) -> str:
        """Return a line or code with the places of here."""
        for url, place in self.places.items():
            text = text.replace(url, place)
        return text

    def close(self) -> None:
        """Press Ctrl-C for each server."""
        for port in list(self._servers):
            self._stop(port)

    def _run(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-ec", self.placed(line)], capture_output=True, encoding="utf-8", env=self.variables, check=False
        )

    def _serve(self, line: str) -> None:
        """Start a server at a free port, and wait until it answers."""
        (usual,) = (port for server, port in SERVERS.items() if line.startswith(server))
        typed = re.search(r"--port (\d+)", line)
        port = int(typed[1]) if typed else usual
        self._stop(port)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            free = listener.getsockname()[1]
        log = Path(self.variables["HOME"], f"server-{free}")
        with log.open("w") as out:
            command = ["bash", "-ec", f"exec {self.placed(line)} --port {free}"]
            self._servers[port] = subprocess.Popen(command, stdout=out, stderr=out, env=self.variables, text=True)
        deadline = time.monotonic() + PATIENCE
        while not answers(free):
            said = log.read_text(encoding="utf-8")
            assert self._servers[port].poll() is None, f"{line}: {said}"
            assert time.monotonic() < deadline, f"{line}: no answer: {said}"
            time.sleep(0.1)
        self.places |= {f"{host}:{port}": f"127.0.0.1:{free}" for host in ("127.0.0.1", "192.0.2.7")}
        if "--token new" in line:
            self.places["TOKEN"] = re.search(r"token=([\w-]+)", log.read_text(encoding="utf-8"))[1]

    def _stop(self, port: int) -> None:
        server = self._servers.pop(port, None)
        if server is not None:
            server.send_signal(signal.SIGINT)
            server.wait(PATIENCE)


def answers(port: int) -> bool:
    """Return whether a server answers there, whatever it says."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def runs(text: str) -> bool:
    """Return whether a line or a block is run."""
    return not any(text.startswith(beginning) for beginning in NOT_RUN)


def installs(line: str) -> list[str]:
    """Return the requirements that a `pip install` names; those of omnizarr itself are extras that exist."""
    words = shlex.split(line.partition("#")[0])[2:]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for word in words:
        if word.startswith("."):
            path, _, names = word.rstrip("]").partition("[")
            assert (ROOT / path / "pyproject.toml").is_file(), line
            assert not names or {*names.split(",")} <= extras.keys(), line
    return words


def run(page: Path, places: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write the files of a page and type what it shows here, with these places instead of its URLs."""
    name, text = name_of(page), page.read_text(encoding="utf-8")
    for url in places:
        assert url in text, f"{name} does not show {url}"
    for file, content in FILES.findall(text):
        Path(file).write_text(content, encoding="utf-8")
    with terminal(places) as there:
        names = {"shell": there.shell, "type_in": there.type_in, "run_block": there.code}
        test = doctest.DocTestParser().get_doctest(there.placed(session(text)), names, name, str(page), 0)
        report: list[str] = []
        results = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not results.failed, "".join(report)


@contextlib.contextmanager
def terminal(places: Mapping[str, str]) -> Iterator[Terminal]:
    """Yield a terminal whose home is beside the current directory."""
    home = Path.cwd().with_name(f"home-of-{Path.cwd().name}")
    there = Terminal(home, places)
    before = dict(os.environ)
    try:
        yield there
    finally:
        there.close()
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(home)
