"""Pages and programs that ask the servers of the victim: `serve` and `view`."""

from __future__ import annotations

from tests.attacks.arena import Field, attack

SERVED = """
import http.client, socket, time, sys, resource
from urllib.parse import urlsplit
from omnizarr.web.application import application
from omnizarr.web.serving import running
group = omnizarr.create_group({{}})
group["a"] = np.arange(1000, dtype="i4")
def ask(url, path, **fields):
    line = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    line.request("GET", path, headers={{name.replace("_", "-"): value for name, value in fields.items()}})
    answer = line.getresponse()
    answer.body = answer.read()
    return answer
many = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, many))
with running(application(group{options})) as url:
    port = urlsplit(url).port
    {check}
"""


def served(*lines: str, options: str = "") -> str:
    """Return a try: serve a hierarchy, and let a page or a program ask."""
    return SERVED.format(options=options, check="\n    ".join(lines))


PAGE = "answer = ask(url, '/zarr.json', Origin='https://evil.example')"
READABLE = "assert not answer.getheader('Access-Control-Allow-Origin'), 'a page can read this'"
HEAD = "b'GET /zarr.json HTTP/1.1\\r\\nHost: x\\r\\nX: '"
FLOOD = f"""
import socket, sys, time
lines = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) for _ in range(1500)]
for line in lines:
    try: line.send({HEAD})
    except OSError: pass
print("sent", flush=True)
time.sleep(100)
"""
FLOODED = (
    "import subprocess",
    "bound = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (2048, many))",
    "told = dict(stdout=subprocess.PIPE, preexec_fn=bound)",
    f"flood = subprocess.Popen([sys.executable, '-c', {FLOOD!r}, str(port)], **told)",
    "said = flood.stdout.readline()",
    "begun = time.monotonic()",
    "try: assert ask(url, '/zarr.json').status == 200, 'no answer'",
    "finally: flood.kill()",
    "assert time.monotonic() - begun < 30, 'it took too long'",
)


@attack(
    "browsers",
    "a page reads what is served on this machine",
    served(PAGE, READABLE),
    served(PAGE, READABLE, options=", token='t0ken'"),
    served("answer = ask(url, '/a/c/0', Origin='null')", READABLE),
)
def _(field: Field) -> None:
    pass


@attack(
    "browsers",
    "a page uses the cookie of the victim",
    *(
        served(
            "cookie = ask(url, '/zarr.json?token=t0ken').getheader('Set-Cookie').partition(';')[0]",
            f"answer = ask(url, '/zarr.json', Cookie=cookie, Origin='{origin}')",
            "assert answer.status == 401, answer.status",
            options=f", token='t0ken'{options}",
        )
        for options in ("", ", origins=['*']")
        for origin in ("https://evil.example", "http://localhost:3000", "null")
    ),
)
def _(field: Field) -> None:
    pass


@attack("browsers", "1,500 half-sent requests", served(*FLOODED))
def _(field: Field) -> None:
    pass


@attack(
    "browsers",
    "a head without end",
    served(
        "line = socket.create_connection(('127.0.0.1', port), timeout=60)",
        f"line.sendall({HEAD})",
        "try:\n        for _ in range(2000): line.sendall(b'y' * (1 << 20))",
        "except OSError: sys.exit()",
        "raise AssertionError('2 GB of a head were taken')",
    ),
    memory=256 << 20,
)
def _(field: Field) -> None:
    pass
