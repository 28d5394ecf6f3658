"""Servers on 127.0.0.1 that answer each request only after a while: files over HTTP, and S3.

nginx waits and serves the files, or passes requests on to an S3 server. Without nginx, or its module that can wait, a
server in Python waits instead, which is slower than what is measured; then there is no S3, and the report says so.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.running import ROOT

BUCKET = "latency"
NOBODY = 9  # a port without a listener
NGINX = """
load_module {module};
daemon off;
master_process off;
pid {home}/pid;
error_log {home}/log warn;
events {{ worker_connections 4096; }}
http {{
    access_log {requests};
    sendfile on;
    tcp_nodelay on;
    keepalive_requests 1000000;
    open_file_cache max=10000 inactive=60s;
    default_type application/octet-stream;
    client_max_body_size 64m;
    client_body_buffer_size 1m;
    client_body_temp_path {home}/t1; proxy_temp_path {home}/t2; fastcgi_temp_path {home}/t3;
    uwsgi_temp_path {home}/t4; scgi_temp_path {home}/t5;
    upstream s3 {{ server 127.0.0.1:{upstream}; keepalive 512; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=1024;
        location / {{ echo_sleep {seconds}; echo_exec @files; }}
        location @files {{ root {home}/data; }}
    }}
    server {{
        listen 127.0.0.1:{s3port} backlog=1024;
        location / {{ echo_read_request_body; echo_sleep {seconds}; echo_exec @s3; }}
        location @s3 {{
            proxy_pass http://s3;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            proxy_buffers 16 64k;
        }}
    }}
}}
"""


@dataclass(frozen=True)
class Bucket:
    """A bucket behind a server that takes its time, and the server itself."""

    endpoint: str
    direct: str
    access_key: str
    secret_key: str
    region: str
    name: str = BUCKET

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Yield a client of boto3 that does not wait."""
        with _tests().s3_client(self.direct) as client:
            yield client

    @property
    def options(self) -> dict[str, Any]:
        """How omnizarr reaches it."""
        return {
            "endpoint": self.endpoint, "access_key_id": self.access_key, "secret_access_key": self.secret_key,
            "region": self.region, "allow_http": True,
        }  # fmt: skip

    def put(self, key: str, value: bytes) -> None:
        """Store a value."""
        with self.client() as client:
            client.put_object(Bucket=self.name, Key=key, Body=value)

    def has(self, values: Mapping[str, bytes]) -> bool:
        """Return whether these values are stored."""
        with self.client() as client:
            return all(
                client.get_object(Bucket=self.name, Key=key)["Body"].read() == value for key, value in values.items()
            )

    def upload(self, directory: Path) -> None:
        """Store all files of a directory."""
        files = [path for path in directory.rglob("*") if path.is_file()]
        with self.client() as client, ThreadPoolExecutor(8) as pool:
            for _ in pool.map(
                lambda path: client.put_object(
                    Bucket=self.name, Key=path.relative_to(directory).as_posix(), Body=path.read_bytes()
                ),
                files,
            ):
                pass


@dataclass(frozen=True)
class Servers:
    """What was started, and why something was not."""

    files: Path
    url: str
    bucket: Bucket | None
    about: str
    log: Path | None = None

    def requests(self) -> int | None:
        """Return how many requests nginx has answered so far; None if it does not note them."""
        return None if self.log is None else self.log.read_bytes().count(b"\n")


def _tests() -> Any:
    """Return the module that starts servers for tests, which is in no package."""
    name = "benchmarks_servers"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "servers.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def _nginx() -> tuple[str, Path] | None:
    """Return nginx and its module that waits; None if one of them does not exist."""
    servers = _tests()
    program = servers.find("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    module = next((path for path in (Path(where, servers.ECHO) for where in servers.MODULES) if path.is_file()), None)
    return None if program is None or module is None else (program, module)


def _s3(home: Path) -> tuple[str, Any] | None:
    """Return the name of an S3 server and what runs it; None if there is none, or no way to make a bucket."""
    servers = _tests()
    if importlib.util.find_spec("boto3") is None:
        return None
    chosen = os.environ.get("OMNIZARR_S3_SERVER")
    for name in [chosen] if chosen else servers.S3_SERVERS:
        if program := servers.find(name):
            (home / name).mkdir()
            with suppress(servers.pytest.skip.Exception):  # it cannot run here
                return name, servers.S3_SERVERS[name](program, home / name)
    return None


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def started(home: Path, seconds: float, *, notes: bool = False) -> Iterator[Servers]:
    """Start what there is; `notes`: nginx notes requests, which takes it a little time."""
    servers = _tests()
    files = home / "data"
    files.mkdir()
    with ExitStack() as stack:

        def run(process: Any) -> int:
            stack.callback(process.kill)
            process.start()
            return int(process.port)

        found = _nginx()
        if found is None:
            script = str(ROOT / "tests" / "static.py")
            port = run(servers.Process(lambda port: [sys.executable, script, str(files), str(port)], log=home / "log"))
            about = "a server in Python, slower than nginx; no S3, as nginx with echo_sleep is not there"
            yield Servers(files, f"http://127.0.0.1:{port}/after/{seconds:.3f}", None, about)
            return
        program, module = found
        s3 = _s3(home)
        upstream = NOBODY if s3 is None else run(s3[1])
        s3port = _free_port()
        log = home / "requests" if notes else None

        def command_of(port: int) -> list[str]:
            conf = home / "nginx.conf"
            conf.write_text(
                NGINX.format(
                    module=module,
                    home=home,
                    port=port,
                    s3port=s3port,
                    upstream=upstream,
                    seconds=f"{seconds:.3f}",
                    requests=log or "off",
                )
            )
            return [program, "-c", str(conf), "-p", str(home), "-e", str(home / "log")]

        port = run(servers.Process(command_of, log=home / "log"))
        bucket, about = None, "nginx; no S3: neither versitygw nor MinIO, or not boto3"
        if s3 is not None:
            bucket = Bucket(
                f"http://127.0.0.1:{s3port}", f"http://127.0.0.1:{upstream}",
                servers.ACCESS_KEY, servers.SECRET_KEY, servers.REGION,
            )  # fmt: skip
            with bucket.client() as client:
                client.create_bucket(Bucket=bucket.name)
            about = f"nginx, for S3 {s3[0]} behind it"
        yield Servers(files, f"http://127.0.0.1:{port}", bucket, about, log)
