"""Servers that send the victim on: clouds to hosts that listen, and public servers into the victim's network."""

from __future__ import annotations

import sys

from tests.attacks.arena import Field, attack
from tests.attacks.references import TEXT, refs, write
from tests.attacks.servers import ENGINES, HEADERS, OBSTORE, VALUES, Handler, give, listening, respond, serving

PATIENCE = {"max_retries": 1, "retry_timeout": 1}
S3 = {"access_key_id": "a", "secret_access_key": "hush-pass", "session_token": "hush-token", "headers": HEADERS}
ENCRYPTED = {"server_side_encryption": "sse-c", "sse_customer_key_base64": "aHVzaC1rZXk" + 32 * "A" + "="}
AZURE = {"account_name": "acc", "sas_key": "sv=1&sig=hush-sig"}


def _reads(url: str, **options: object) -> tuple[str, ...]:
    """Return tries: to read an array of a service whose endpoint is `{x}`, with both engines."""
    given = ", ".join(f"{name}={value!r}" for name, value in {**options, **PATIENCE}.items())
    return tuple(
        f"omnizarr.config.set(dict(engine='{engine}'))\n"
        f"print(omnizarr.open_array('{url}', mode='r', storage_options=dict(endpoint='{{x}}', {given}))[...])"
        for engine in ENGINES
    )


OF_CLOUDS = (*_reads("s3://box/x.zarr", **S3), *_reads("s3://box/x.zarr", **S3, **ENCRYPTED))
OF_CLOUDS += _reads("az://box/x.zarr", **AZURE) + _reads("az://box/x.zarr", **AZURE, headers=HEADERS)
WRITTEN = "omnizarr.create_array('s3://box/new', shape=2, dtype='i1', storage_options=dict(endpoint='{x}', {options}))"
OF_CLOUDS += (WRITTEN.replace("{options}", f"**{S3 | PATIENCE!r}"),)
NO_CONDITION = {"ETag": '"1"', "Last-Modified": "Sat, 28 Nov 2026 00:00:00 GMT"}


def _of_box(handler: Handler) -> None:
    """Answer as an honest service of a cloud whose bucket is called "box"."""
    handler.path = handler.path.partition("?")[0].removeprefix("/acc").removeprefix("/box")
    value = VALUES.get(handler.path)
    if value is None or handler.headers.get("Range"):
        give(handler)
        return
    respond(handler, 200, value, **{name.replace("-", "_"): value for name, value in NO_CONDITION.items()})


def _elsewhere(field: Field) -> str:
    """Return the address of a server that hears secrets, under another name of this machine."""
    return serving(field, listening(field)).replace("127.0.0.1", "localhost")


@attack("servers", "a redirect of S3 or Azure to another host gets no secrets", *OF_CLOUDS, refused=True)
def _(field: Field) -> None:
    other = _elsewhere(field)
    field.served = serving(
        field, lambda handler: respond(handler, 307, Location=other + handler.path.partition("?")[0])
    )


@attack("servers", "a redirect of S3 or Azure for chunks only gets no secrets", *OF_CLOUDS[:-1], refused=True)
def _(field: Field) -> None:
    other = _elsewhere(field)

    def answer(handler: Handler) -> None:
        if "/c/" in handler.path:
            respond(handler, 302, Location=other + handler.path.partition("?")[0])
        else:
            _of_box(handler)

    field.served = serving(field, answer)


@attack(
    "servers",
    "a redirect of a cloud, or of a public URL, from https to http is refused",
    *_reads("s3://box/x.zarr", **S3, allow_invalid_certificates=True),
    *_reads("s3://box/x.zarr", skip_signature=True, allow_invalid_certificates=True),
    *_reads("az://box/x.zarr", **AZURE, allow_invalid_certificates=True),
    *(
        f"omnizarr.open_array('{{x}}/x.zarr', mode='r', storage_options={options!r})[...]"
        for options in ({"allow_invalid_certificates": True, **PATIENCE}, {**OBSTORE, "max_retries": 0})
    ),
    refused=True,
)
def _(field: Field) -> None:
    other = serving(field, listening(field))
    field.served = serving(field, lambda handler: respond(handler, 302, Location=other + handler.path), secure=True)


# -- into the victim's network -------------------------------------------------------------------

PUBLIC = f"""
from omnizarr.stores import trust
known = trust.is_public_address
trust.is_public_address = lambda text: text == "127.0.0.2" or known(text)
{TEXT}
"""
REBOUND = f"""
import socket
known, asked = socket.getaddrinfo, []
def lookup(host, *args, **kwargs):
    if host == "data.example.org":
        asked.append(host)
        host = "93.184.215.14" if len(asked) <= {{times}} else "127.0.0.1"
    return known(host, *args, **kwargs)
socket.getaddrinfo = lookup
{TEXT}
assert asked
"""

if sys.platform == "linux":  # others have one address of their own only

    @attack("servers", "references to a public server that sends the victim on into his network", PUBLIC, refused=True)
    def _(field: Field) -> None:
        public = serving(field, lambda handler: respond(handler, 302, Location=field.url), host="127.0.0.2")
        write(field, refs(f"{public}/x"))

    @attack("servers", "references to a public server whose second redirect leads into the victim's network", PUBLIC,
            refused=True)  # fmt: skip
    def _(field: Field) -> None:
        def answer(handler: Handler) -> None:
            place = "/y" if handler.path == "/x" else field.url
            respond(handler, 307, Location=place)

        write(field, refs(f"{serving(field, answer, host='127.0.0.2')}/x"))


@attack(
    "servers",
    "references to a name whose address changes after it was checked",
    *(REBOUND.replace("{times}", str(times)) for times in (1, 2)),
    refused=True,
)
def _(field: Field) -> None:
    write(field, refs(f"{field.url.replace('127.0.0.1', 'data.example.org')}/x"))
