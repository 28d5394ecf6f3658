"""Real servers for tests, on 127.0.0.1: started when a test first asks for one, stopped whatever happens to the tests.

Programs are looked for in the directories of `OMNIZARR_SERVERS` (as many as `PATH` has), in `.servers` of the checkout
(which ``make servers`` fills) and on `PATH`. A test whose server is not there is skipped by name; the end of
the run says how many there were.

A fixture gives a `Server`. Its `fresh()` makes a bucket, container or directory that no other test has.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import hmac
import importlib.util
import itertools
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SERVERS = ROOT / ".servers"
ECHO = "ngx_http_echo_module.so"
MODULES = ("/usr/lib/nginx/modules", "/usr/local/lib/nginx/modules", "/usr/lib64/nginx/modules")
PATIENCE = 60.0
"""Seconds that a server may take to start on a busy machine."""

ABSENT = "no server:"
ACCESS_KEY, SECRET_KEY, REGION = "omnizarr-access", "omnizarr-secret", "us-east-1"
# What the emulators of Azure have for an account, all of them the same one.
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

_numbers = itertools.count()


@dataclass(frozen=True)
class Place:
    """A bucket, a container or a directory of one test; ``omnizarr.open(place.url, storage_options=place.options)``."""

    url: str
    options: Mapping[str, Any]
    endpoint: str
    """Where the server is: ``http://127.0.0.1:40123``."""
    name: str
    """Of the bucket, the container or the directory."""
    directory: Path | None = None
    """What an HTTP server serves below `url`."""

    def at(self, endpoint: str) -> Place:
        """Return the same place as it is reached through another address: that of a proxy before the server."""
        if self.url.startswith(self.endpoint):
            return replace(self, url=endpoint + self.url.removeprefix(self.endpoint), endpoint=endpoint)
        moved = {
            key: value.replace(self.endpoint, endpoint) if isinstance(value, str) else value
            for key, value in self.options.items()
        }
        return replace(self, options=moved, endpoint=endpoint)

    def delayed(self, seconds: float) -> Place:
        """Return the same directory of an HTTP server, each request to which takes so many seconds more."""
        path = self.url.removeprefix(self.endpoint)
        return replace(self, url=f"{self.endpoint}/after/{seconds:.3f}{path}")


@dataclass
class Process:
    """A program that listens on a port, and that ends when the tests end."""

    command: Callable[[int], Sequence[str]]
    """From the port to the command."""
    port: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    log: Path = Path(os.devnull)
    speaks_tls: bool = False
    _guard: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the program, and wait until it answers; again at the same port if it has run before."""
        attempts = 1 if self.port else 3  # somebody else may take a free port before the program does
        for attempt in range(1, attempts + 1):
            port = self.port or _free_port()
            command = [sys.executable, "-I", str(Path(__file__).with_name("guard.py")), *self.command(port)]
            with self.log.open("ab") as log:
                self._guard = subprocess.Popen(
                    command, env={**os.environ, **self.env}, stdin=subprocess.PIPE, stdout=log, stderr=log
                )
            if self._answers(port):
                self.port = port
                return
            self.kill()
            if attempt == attempts:
                said = self.log.read_text(errors="replace")[-2000:] if self.log.is_file() else ""
                raise RuntimeError(f"{command[3]} does not answer at port {port}: {said}")

    def kill(self) -> None:
        """End the program as a crash would."""
        guard, self._guard = self._guard, None
        if guard is None:
            return
        with contextlib.suppress(OSError):
            guard.stdin.close()
        try:
            guard.wait(10)
        except subprocess.TimeoutExpired:
            guard.kill()
            guard.wait()

    def _answers(self, port: int) -> bool:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self._guard.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
                if self.speaks_tls:
                    return self._guard.poll() is None
                connection.settimeout(5)
                connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                if connection.recv(8).startswith(b"HTTP/"):
                    return self._guard.poll() is None
            time.sleep(0.05)
        return False


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    name: str
    process: Process = field(repr=False)
    make: Callable[[Server, str], Place] = field(repr=False)
    """Makes the bucket of this name."""

    @property
    def endpoint(self) -> str:
        """Where it is: ``http://127.0.0.1:40123``."""
        return f"http://127.0.0.1:{self.process.port}"

    def fresh(self) -> Place:
        """Make an empty bucket, container or directory."""
        return self.make(self, f"t{os.getpid()}-{next(_numbers)}")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def find(program: str) -> str | None:
    """Return the path of a program, in the order in which the head of this module says; None if it does not exist."""
    given = os.environ.get("OMNIZARR_SERVERS", "").split(os.pathsep)
    local = [str(SERVERS / "bin"), str(SERVERS / "node_modules" / ".bin")]
    return shutil.which(program, path=os.pathsep.join(filter(None, [*given, *local]))) or shutil.which(program)


def need(program: str, remedy: str = "make servers") -> str:
    """Return the path of a program; skip the test if it does not exist."""
    path = find(program)
    if path is None:
        skip(program, remedy)
    return path


def need_package(name: str) -> Path:
    """Return the folder of a package of npm; skip the test if it does not exist."""
    folder = SERVERS / "node_modules" / name
    if not folder.is_dir() or shutil.which("node") is None:
        skip(name, "make servers")
    return folder


def need_module(name: str, program: str) -> None:
    """Skip the test if a Python module that is a server, or is needed to talk to one, does not exist."""
    if importlib.util.find_spec(name) is None:
        skip(program, f"no Python module {name}")


def skip(program: str, remedy: str) -> None:
    """Skip the test, in words that the end of the run finds again."""
    pytest.skip(f"{ABSENT} {program} ({remedy})")


def pytest_terminal_summary(terminalreporter):
    """Say how many tests were skipped for want of which server."""
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", []) if len(report.longrepr) == 3]
    missing = Counter(re.findall(rf"{ABSENT} (.*)", "\n".join(reasons)))
    if missing:
        terminalreporter.section("tests skipped: their servers are not there")
        for program, count in sorted(missing.items()):
            terminalreporter.line(f"{count:5d}  {program}")


# -- S3 -------------------------------------------------------------------------------


def _s3_place(server: Server, name: str) -> Place:
    options = {
        "endpoint": server.endpoint,
        "access_key_id": ACCESS_KEY,
        "secret_access_key": SECRET_KEY,
        "region": REGION,
        "allow_http": True,
    }
    with s3_client(server.endpoint) as client:
        client.create_bucket(Bucket=name)
    return Place(f"s3://{name}", options, server.endpoint, name)


@contextlib.contextmanager
def s3_client(endpoint: str):
    """Yield a client of boto3 for a server that the fixtures of this module started."""
    import boto3
    from botocore.config import Config

    config = Config(s3={"addressing_style": "path"}, retries={"mode": "standard", "max_attempts": 5})
    client = boto3.session.Session().client(
        "s3", endpoint_url=endpoint, aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY,
        region_name=REGION, config=config,
    )  # fmt: skip
    try:
        yield client
    finally:
        client.close()


def _versitygw(program: str, home: Path) -> Process:
    data = home / "data"
    data.mkdir()
    # Not with notes in files of their own (`--sidecar`): it does not replace both in one step, and loses puts.
    try:
        os.setxattr(data, "user.omnizarr", b"1")
    except (AttributeError, OSError):
        skip("versitygw", "the file system has no extended attributes")
    return Process(
        lambda port: [program, "--quiet", "--keep-alive", "--port", f"127.0.0.1:{port}", "posix", str(data)],
        env={"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY, "VGW_REGION": REGION},
        log=home / "log",
    )


def _minio(program: str, home: Path) -> Process:
    return Process(
        lambda port: [
            program, "server", "--quiet", "--address", f"127.0.0.1:{port}", "--console-address", "127.0.0.1:0",
            str(home / "data"),
        ],
        env={"MINIO_ROOT_USER": ACCESS_KEY, "MINIO_ROOT_PASSWORD": SECRET_KEY, "MINIO_BROWSER": "off"},
        log=home / "log",
    )  # fmt: skip


# In the order of preference; what makes its process, by the name of the program.
S3_SERVERS = {"versitygw": _versitygw, "minio": _minio}


@contextlib.contextmanager
def running_s3(home: Path):
    """Run a server of S3 that compares and puts in one step, and keeps its values in `home`; yield it.

    versitygw or MinIO; the environment's `OMNIZARR_S3_SERVER` names one of them.
    """
    need_module("boto3", "s3")
    chosen = os.environ.get("OMNIZARR_S3_SERVER")
    names = [chosen] if chosen else [name for name in S3_SERVERS if find(name)] or [*S3_SERVERS][:1]
    process = S3_SERVERS[names[0]](need(names[0]), home)
    with _running(process):
        yield Server(names[0], process, _s3_place)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory):
    """A server of S3, as `running_s3` says."""
    with running_s3(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory):
    """moto's S3: lenient, in memory, and slow."""
    need_module("moto", "moto")
    need_module("flask", "moto")
    process = Process(
        lambda port: [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        log=tmp_path_factory.mktemp("moto") / "log",
    )
    with _running(process):
        yield Server("moto", process, _s3_place)


# -- Azure ----------------------------------------------------------------------------


def _azure_place(server: Server, name: str) -> Place:
    account = f"{server.endpoint}/{AZURE_ACCOUNT}"
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    # Authorization by shared key: the verb, eleven headers that are empty, ours, and the resource, below the account,
    # which the emulator has twice.
    ours = (f"{key}:{value}" for key, value in headers.items())
    resource = f"/{AZURE_ACCOUNT}/{AZURE_ACCOUNT}/{name}"
    signed = "\n".join(["PUT", *([""] * 11), *ours, resource, "restype:container"])
    digest = hmac.new(base64.b64decode(AZURE_KEY), signed.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {AZURE_ACCOUNT}:{base64.b64encode(digest).decode()}"
    _request(f"{account}/{name}?restype=container", "PUT", headers=headers | {"Content-Length": "0"})
    options = {"account_name": AZURE_ACCOUNT, "account_key": AZURE_KEY, "endpoint": account, "allow_http": True}
    return Place(f"az://{name}", options, server.endpoint, name)


@pytest.fixture(scope="session")
def azurite_server(tmp_path_factory):
    """Azure's storage of blobs."""
    program = need("azurite-blob")
    need("node", "it runs Azurite")
    home = tmp_path_factory.mktemp("azurite")
    process = Process(
        lambda port: [
            program, "--silent", "--skipApiVersionCheck", "--disableTelemetry", "--blobHost", "127.0.0.1",
            "--blobPort", str(port), "--location", str(home / "data"),
        ],
        log=home / "log",
    )  # fmt: skip
    with _running(process):
        yield Server("azurite", process, _azure_place)


# -- Google ---------------------------------------------------------------------------


def _gcs_place(server: Server, name: str) -> Place:
    body = json.dumps({"name": name}).encode()
    _request(f"{server.endpoint}/storage/v1/b?project=test", "POST", body, {"Content-Type": "application/json"})
    # An account that needs no token.
    account = {"gcs_base_url": server.endpoint, "disable_oauth": True, "client_email": "", "private_key": ""}
    options = {"service_account_key": json.dumps(account | {"private_key_id": ""}), "allow_http": True}
    return Place(f"gs://{name}", options, server.endpoint, name)


@pytest.fixture(scope="session")
def gcs_server(tmp_path_factory):
    """Google's storage."""
    program = need("fake-gcs-server")
    front = str(Path(__file__).with_name("gcsfront.py"))
    process = Process(
        lambda port: [
            sys.executable, front, str(port), program, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1",
            "-port", "{port}", "-public-host", "127.0.0.1:{port}", "-log-level", "error",
        ],
        log=tmp_path_factory.mktemp("gcs") / "log",
    )  # fmt: skip
    with _running(process):
        yield Server("fake-gcs-server", process, _gcs_place)


# -- HTTP -----------------------------------------------------------------------------

NGINX = """
{load}
daemon off;
master_process off;
pid {home}/pid;
error_log {home}/log warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    tcp_nodelay on;
    keepalive_requests 1000000;
    default_type application/octet-stream;
    client_body_temp_path {home}/t1; proxy_temp_path {home}/t2; fastcgi_temp_path {home}/t3;
    uwsgi_temp_path {home}/t4; scgi_temp_path {home}/t5;
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        root {home}/data;
        location ~ ^/after/(?<seconds>[0-9.]+)(?<rest>/.*)$ {{ echo_sleep $seconds; echo_exec $rest; }}
    }}
}}
"""


def _nginx(home: Path) -> Process | None:
    """Return what runs nginx, with the module that lets it wait; None if one of them does not exist."""
    program = find("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    module = next((path for path in (Path(where, ECHO) for where in MODULES) if path.is_file()), None)
    if program is None or module is None:
        return None

    def command(port: int) -> list[str]:
        conf = home / "nginx.conf"
        conf.write_text(NGINX.format(load=f"load_module {module};", home=home, port=port))
        return [program, "-c", str(conf), "-p", str(home), "-e", str(home / "log")]

    return Process(command, log=home / "log")


def _static(home: Path) -> Process:
    script = str(Path(__file__).with_name("static.py"))
    return Process(lambda port: [sys.executable, script, str(home / "data"), str(port)], log=home / "log")


@functools.cache
def _http_place_maker(home: Path) -> Callable[[Server, str], Place]:
    def make(server: Server, name: str) -> Place:
        directory = home / "data" / name
        directory.mkdir()
        return Place(f"{server.endpoint}/{name}", {"allow_http": True}, server.endpoint, name, directory)

    return make


@pytest.fixture(scope="session")
def http_server(tmp_path_factory):
    """Files of a directory, by nginx or by a server of our own: ranges, ETags, and waiting (`Place.delayed`)."""
    home = tmp_path_factory.mktemp("http")
    (home / "data").mkdir()
    process = _nginx(home)
    name = "nginx" if process else "static"
    process = process or _static(home)
    with _running(process):
        yield Server(name, process, _http_place_maker(home))


# -- all ------------------------------------------------------------------------------


@contextlib.contextmanager
def _running(process: Process):
    process.start()
    try:
        yield process
    finally:
        process.kill()


def _request(url: str, method: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> None:
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)
    # Not through a proxy that the environment names.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30):
        pass
