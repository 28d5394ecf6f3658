"""Errors of servers: what they refuse, lack, or cannot do."""

import contextlib
import socket

import omnizarr
import omnizarr.stores
from tests.certificates import secure, self_signed
from tests.provoked.cases import answering, case

ONCE = {"max_retries": 0}
OPEN = contextlib.ExitStack()
"""Servers of one test; `close` ends them."""


def close():
    OPEN.close()


def refused(name, kind, status, *says, remedy, typed=None, body=b"", headers=(), **has):
    """Put the answer of a web server to everything into the table."""

    def prepare(at):
        url = OPEN.enter_context(answering(status, body, headers))
        place = f"{url}/x.zarr"
        return lambda: omnizarr.open(place, storage_options=ONCE), ["info", place, "-o", "max_retries=0"]

    prepare.__name__ = name
    case(kind, "http://127.0.0.1:", "/x.zarr", *says, remedy=remedy, typed=typed, **has)(prepare)


def s3(name, kind, status, code, *says, remedy, typed=None, message="what the server says"):
    """Put an answer of S3 to everything into the table."""
    body = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'.encode()

    def prepare(at):
        url = OPEN.enter_context(answering(status, body))
        options = {"endpoint": url, "anon": True, "region": "us-east-1", **ONCE}
        words = ["--anon", "--endpoint", url, "--region", "us-east-1", "-o", "max_retries=0"]
        return lambda: omnizarr.open("s3://bucket/x.zarr", storage_options=options), [
            "info",
            "s3://bucket/x.zarr",
            *words,
        ]

    prepare.__name__ = name
    case(kind, "s3://bucket/x.zarr", *says, remedy=remedy, typed=typed)(prepare)


KEY = "key 'zarr.json'"
refused("http_404", FileNotFoundError, 404, "there is no node here", "zarr.json", remedy="correct the address")
refused("http_410", FileNotFoundError, 410, "there is no node here", "zarr.json", remedy="correct the address")
refused(
    "http_401",
    PermissionError,
    401,
    KEY,
    "access is denied",
    "401 Unauthorized",
    remedy="give credentials",
    key="zarr.json",
)
refused("http_403", PermissionError, 403, KEY, "access is denied", "403 Forbidden", remedy="check the credentials")
refused("http_405", PermissionError, 405, KEY, "does not allow this", "405", remedy="correct the address")
refused("http_400", OSError, 400, KEY, "refuses the request", "400 Bad Request", remedy="correct the address")
refused(
    "http_429",
    OSError,
    429,
    KEY,
    "asks for fewer requests",
    "429",
    remedy="a smaller `concurrency`",
    typed=(KEY, "asks for fewer requests", "429", "a smaller -o concurrency=..."),
)
refused("http_500", OSError, 500, KEY, "the server failed", "500 Internal Server Error", remedy="try again later")
refused("http_503", OSError, 503, KEY, "the server failed", "503 Service Unavailable", remedy="try again later")
refused("http_301_to_nowhere", OSError, 301, KEY, "does not say where to", "301", remedy="correct the address")
refused(
    "page_in_place_of_a_document",
    ValueError,
    200,
    KEY,
    "not valid JSON (line 1, column 1)",
    "<html>",
    remedy="correct the document",
    body=b"<html>hello</html>",
)

s3(
    "s3_access_denied",
    PermissionError,
    403,
    "AccessDenied",
    KEY,
    "access is denied",
    "403 Forbidden: AccessDenied",
    remedy="AWS_ACCESS_KEY_ID",
    message="Access Denied",
)
s3(
    "s3_wrong_key",
    PermissionError,
    403,
    "InvalidAccessKeyId",
    "access is denied",
    "InvalidAccessKeyId",
    remedy="AWS_PROFILE",
)
s3(
    "s3_wrong_secret",
    PermissionError,
    403,
    "SignatureDoesNotMatch",
    "access is denied",
    "SignatureDoesNotMatch",
    remedy="check the credentials",
)
s3("s3_expired_token", PermissionError, 400, "ExpiredToken", "the credentials have expired", remedy="get new ones")
s3(
    "s3_clock",
    PermissionError,
    403,
    "RequestTimeTooSkewed",
    "the clock of this machine is wrong",
    remedy="set the clock",
)
s3("s3_archived", PermissionError, 403, "InvalidObjectState", "in an archive", remedy="restore it first")
s3("s3_no_bucket", OSError, 404, "NoSuchBucket", "there is no such bucket", remedy="create it, or correct the name")
s3(
    "s3_wrong_region",
    OSError,
    400,
    "AuthorizationHeaderMalformed",
    "in another region",
    "expected eu-west-1",
    remedy="storage_options={'region': 'eu-west-1'}",
    message="the region is wrong; expecting 'eu-west-1'",
    typed=("in another region", "expected eu-west-1", "--region eu-west-1"),
)
s3("s3_redirect_of_a_region", OSError, 301, "PermanentRedirect", "in another region", remedy="name its region")
s3(
    "s3_slow_down",
    OSError,
    503,
    "SlowDown",
    "asks for fewer requests",
    "SlowDown",
    remedy="smaller `concurrency`",
    typed=("asks for fewer requests", "-o concurrency=..."),
)
s3("s3_failure", OSError, 500, "InternalError", "the server failed", "InternalError", remedy="try again later")
s3(
    "s3_name_of_a_bucket",
    OSError,
    400,
    "InvalidBucketName",
    "refuses the request",
    "InvalidBucketName",
    remedy="correct the address",
)


@case(PermissionError, "http://127.0.0.1:", "does not allow writing", "PUT", "405", remedy="write to a directory")
def http_write(at):
    url = OPEN.enter_context(answering(405))
    store = omnizarr.stores.ObjectStore.from_url(f"{url}/x.zarr", ONCE)
    return lambda: store.set("zarr.json", b"{}")


@case(PermissionError, "http://127.0.0.1:", "does not allow writing", "PUT", "501", remedy="write to a directory")
def http_write_that_is_not_implemented(at):
    url = OPEN.enter_context(answering(501))
    store = omnizarr.stores.ObjectStore.from_url(f"{url}/x.zarr", {})  # and is not tried again
    return lambda: store.set("zarr.json", b"{}")


@case(PermissionError, "http://127.0.0.1:", "does not allow writing", "DELETE", remedy="write to a directory")
def http_delete(at):
    url = OPEN.enter_context(answering(405))
    store = omnizarr.stores.ObjectStore.from_url(f"{url}/x.zarr", ONCE)
    return lambda: store.delete("zarr.json")


@case(OSError, "/x.zarr", KEY, "the connection is refused", remedy="see whether the server runs")
def no_server_listens(at):
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"http://127.0.0.1:{free.getsockname()[1]}/x.zarr"
    return lambda: omnizarr.open(place, storage_options=ONCE), ["info", place, "-o", "max_retries=0"]


@case(OSError, "no-such-host.invalid", KEY, "the host is not known", remedy="correct its name")
def unknown_host(at):
    place = "http://no-such-host.invalid/x.zarr"
    return lambda: omnizarr.open(place, storage_options=ONCE), ["info", place, "-o", "max_retries=0"]


@case(
    TimeoutError,
    "/x.zarr",
    KEY,
    "no answer in time",
    remedy="raise `timeout`",
    typed=("/x.zarr", KEY, "no answer in time", "raise -o timeout=..."),
)
def silent_server(at):
    silent = OPEN.enter_context(socket.create_server(("127.0.0.1", 0)))
    place = f"http://127.0.0.1:{silent.getsockname()[1]}/x.zarr"
    return (
        lambda: omnizarr.open(place, storage_options={"read_timeout": 0.3, **ONCE}),
        ["info", place, "-o", "max_retries=0", "-o", "read_timeout=0.3"],
    )


@case(OSError, "/x.zarr", KEY, "no secure connection (TLS)", remedy="its certificate can be trusted")
def certificate_that_is_not_trusted(at):
    certificate = self_signed(at)
    url = OPEN.enter_context(answering(200, secure=lambda server: secure(server, certificate)))
    place = f"{url}/x.zarr"
    return lambda: omnizarr.open(place, storage_options=ONCE), ["info", place, "-o", "max_retries=0"]
