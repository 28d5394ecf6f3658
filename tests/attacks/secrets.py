"""Credentials of the victim, and servers that want them to be seen, or pretend to be others."""

from __future__ import annotations

from tests.attacks.arena import Field, attack
from tests.attacks.redirects import AZURE, PATIENCE, S3
from tests.attacks.servers import HEADERS, Answer, Handler, give, respond, serving

QUIET = {"headers": HEADERS, **PATIENCE}
SPOKEN = """
import io, logging, traceback
said = io.StringIO()
logging.basicConfig(stream=said, level=1)
try:
    {code}
except Exception as error:
    said.write("".join(traceback.format_exception(error)) + repr(error))
    if not isinstance(error, (omnizarr.errors.OmnizarrError, FileNotFoundError, PermissionError)):
        raise
assert "hush-" not in said.getvalue(), said.getvalue()
"""
URLS = (
    "http://{x}/x.zarr?sig=hush-sig",
    "http://hush-key:hush-pass@{x}/x.zarr",
    "http://hush-key:hush-pass@{x}/x.zarr?sig=hush-sig",
)
LINES = (
    *(f"omnizarr.open('{url}', mode='r', storage_options={QUIET!r})" for url in URLS),
    *(f"print(omnizarr.open('{url}', mode='r', storage_options={QUIET!r}).store)" for url in URLS),
    *(
        f"omnizarr.open('{url}', mode='r', storage_options=dict(endpoint='http://{{x}}', **{options | PATIENCE!r}))"
        for url, options in (("s3://box/x.zarr", S3), ("az://box/x.zarr", AZURE))
    ),
)
COMMANDS = ("info", "tree", "check", "du", "digest", "attrs get")
TRIES = (
    *(SPOKEN.replace("{code}", line) for line in LINES),
    *(f"omnizarr {command} {URLS[2]} -o max_retries=0" for command in COMMANDS),
)


def _echo(status: int) -> Answer:
    """Return an answer that repeats what was asked, as servers do that help to find mistakes."""

    def answer(handler: Handler) -> None:
        respond(handler, status, f"{handler.path} {handler.headers}".encode())

    return answer


for _status in (400, 403, 500):

    @attack("servers", f"errors of status {_status} that repeat credentials", *TRIES)
    def _(field: Field, status: int = _status) -> None:
        field.served = serving(field, _echo(status)).removeprefix("http://")


@attack(
    "servers",
    "a certificate that no authority has signed",
    *(
        f"omnizarr.open('{scheme}{{x}}/x.zarr{query}', mode='r', storage_options={options!r})"
        for scheme, query, options in (
            ("https://", "", PATIENCE),
            ("https://", "?sig=hush-sig", PATIENCE),
            ("https://", "", QUIET),
            ("fsspec+https://", "", {}),
        )
    ),
    *(
        f"omnizarr.open('{url}', mode='r', storage_options=dict(endpoint='https://{{x}}', **{options | PATIENCE!r}))"
        for url, options in (("s3://box/x.zarr", S3), ("az://box/x.zarr", AZURE))
    ),
    refused=True,
)
def _(field: Field) -> None:
    field.served = serving(field, give, secure=True).removeprefix("https://")
