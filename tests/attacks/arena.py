"""Attacks: what somebody sends, serves or asks, and what must not happen to the person who uses it.

An attack lays its data into a *field* and names what the victim then does, its *tries*: commands of omnizarr, or Python
code. Each try runs in a process that is bounded in memory and time. An attack fails if a process crashes, hangs, takes
more memory or time than a small file is worth, changes anything that it only reads, shows or stores a file outside what
was received, asks a server that the victim did not name, or ends in an exception that is not an error of omnizarr.
"""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.attacks import victim

SECRET = "root:x:0:0:the-secret-of-the-victim"
"""What lies in files that no attack may read."""

HUSH = "hush-"
"""How credentials of the victim begin, which no output may show."""

COMPLETE = (
    "import os; os.environ |= dict(_OMNIZARR_COMPLETE='fish_complete', COMP_WORDS='omnizarr\\ninfo'); "
    "os.environ['COMP_WORD'] = '{x}/'; omnizarr.cli.main([])"
)
"""A try: Tab after the path of what was received."""

KINDS = ("data", "files", "servers", "browsers")


@dataclass(frozen=True)
class Attack:
    """One attack: how it is laid, what the victim does with it, and what may happen then."""

    kind: str
    name: str
    lay: Callable[[Field], None]
    tries: tuple[str, ...]
    changes: bool = False
    """Whether the tries may change what was received: commands that write into it."""
    refused: bool = False
    """Whether each try must fail: an attack that can only be refused."""
    memory: int = 1 << 30
    """How many bytes a try may hold."""
    cpu: int = 20
    """How many seconds of CPU a try may take, start of Python included."""


ATTACKS: list[Attack] = []


def attack(
    kind: str,
    name: str,
    *tries: str,
    changes: bool = False,
    refused: bool = False,
    memory: int = 1 << 30,
    cpu: int = 20,
) -> Callable[[Callable[[Field], None]], Callable[[Field], None]]:
    """Enter an attack in the table. The decorated function lays it into the field that it gets.

    A try that begins with `omnizarr ` is a command, any other is Python code, with `omnizarr` and `np` imported.
    `{x}` is what the victim received, `{out}` a new path for results.
    """
    assert kind in KINDS

    def enter(lay: Callable[[Field], None]) -> Callable[[Field], None]:
        ATTACKS.append(Attack(kind, name, lay, tries, changes, refused, memory, cpu))
        return lay

    return enter


@dataclass
class Field:
    """Directories of a victim: what was received, what is secret, a home, and a server that only the victim reaches."""

    root: Path
    url: str
    """A server of the victim's own network; asking it is a failure."""
    hits: list[str] = field(default_factory=list)
    served: str | None = None
    """Set by attacks that serve: the URL that the victim opens, `{x}` in tries."""
    ending: list[Callable[[], object]] = field(default_factory=list)
    """Called when the attack is over: stops servers."""

    def __post_init__(self) -> None:
        for name in ("received", "elsewhere", "home"):
            (self.root / name).mkdir(parents=True)
        self.secret.write_text(SECRET)

    @property
    def received(self) -> Path:
        """The directory that came from somebody; an attack lays its files here."""
        return self.root / "received"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def secret(self) -> Path:
        """A file of the victim, outside what was received."""
        return self.root / "elsewhere" / "secret.txt"

    @property
    def x(self) -> str:
        """What the victim opens: a URL, the only file that was received, or the directory."""
        inside = sorted(self.received.iterdir())
        return self.served or str(inside[0] if len(inside) == 1 else self.received)

    def state(self, *, received: bool) -> dict[str, str]:
        """Return what lies in the field, by path: contents of files and targets of links."""
        return {
            str(path.relative_to(self.root)): _content(path)
            for path in sorted(self.root.rglob("*"))
            if received or self.received not in path.parents
        }


def _content(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if not path.is_file():
        return "directory" if path.is_dir() else "device"
    if path.stat().st_size > 1 << 24:  # sparse files
        return f"{path.stat().st_size} bytes"
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Result:
    """How one try ended. `harm` is empty if nothing bad happened."""

    attempt: str
    harm: str
    outcome: str
    """What the victim saw: the error, or "read"."""
    memory: int
    cpu: float


def harm_of(attack: Attack, attempt: str, field: Field, out: Path) -> Result:
    """Let the victim do `attempt`, and look at what happened."""
    before = field.state(received=not attack.changes)
    end = victim.run(
        attempt.replace("{x}", field.x).replace("{out}", str(out)), field.home, memory=attack.memory, cpu=attack.cpu
    )
    harms = []
    if end.signal:
        harms.append(f"ended by {end.signal}")
    if end.memory > attack.memory:
        harms.append(f"took {end.memory >> 20} MiB")
    if end.cpu > attack.cpu:
        harms.append(f"took {end.cpu:.1f} s of CPU")
    if (end.error is not None and not end.is_ours) or "Traceback (most recent call last)" in end.output:
        harms.append(f"bare error {end.error}")
    if field.state(received=not attack.changes) != before:
        harms.append("changed files")
    if field.hits:
        harms.append(f"asked for {field.hits.pop(0)}")
        field.hits.clear()
    if "omnizarr: no command" in end.output or "No such option" in end.output:
        harms.append("was no command")
    if SECRET in end.output or HUSH in end.output or any(SECRET.encode() in part for part in _values(out)):
        harms.append("showed a secret")
    if attack.refused and end.error is None and not harms:
        harms.append(f"was not refused: {end.output[:200]!r}")
    return Result(attempt, "; ".join(harms), end.error or "no error", end.memory, end.cpu)


def _values(out: Path) -> Iterator[bytes]:
    for path in (out, *out.rglob("*")) if out.exists() else ():
        if path.is_file():
            yield path.read_bytes()


@contextmanager
def field_of(attack: Attack, root: Path) -> Iterator[Field]:
    """Lay `attack` into a new field below `root`."""
    with _intranet() as (url, hits):
        field = Field(root, url, hits)
        try:
            attack.lay(field)
            yield field
        finally:
            for end in field.ending:
                end()


@contextmanager
def _intranet() -> Iterator[tuple[str, list[str]]]:
    """Serve the secret to anybody who asks, and note each request."""
    hits: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            hits.append(f"{self.command} {self.path}")
            self.send_response(200)
            self.send_header("Content-Length", str(len(SECRET)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(SECRET.encode())

        def __getattr__(self, name: str) -> Callable[[], None]:
            if name.startswith("do_"):
                return self.answer
            raise AttributeError(name)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", hits
    finally:
        server.shutdown()
        server.server_close()
