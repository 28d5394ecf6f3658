"""Errors of obstore as errors of omnizarr, without dumps of its structures, and without secrets.

obstore has one exception for most errors. The cause is in its text, which contains the HTTP status.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from omnizarr.errors import ConflictError, Remedy, StorageOption, StoreAccessError, StoreError, StoreTimeoutError


class RangeError(StoreError):
    """The range is not satisfiable: the value has no byte in it, or the server does not support such ranges."""


class NoRangesError(RangeError):
    """The server answers with the whole value, whatever range is requested."""


class NotModifiedError(StoreError):
    """The caller already has the current value."""


class NotAllowedError(StoreError):
    """The server does not support the method."""


class NotConditionalError(StoreError):
    """The server does not support conditional writes."""


class NotFoundError(StoreError):
    """A server of S3 answers 404 to the deletion of one key.

    S3 answers 204, so either another server says this of a key that is missing, or it knows no such request.
    """


class BulkError(Exception):
    """A request that deletes several keys has failed, but may not have to: the keys can be deleted one by one.

    Parameters
    ----------
    cause : StoreError
        What it means if they cannot.
    of_key : str
        What the server says of the first key that it has not deleted, from the key on; "" if it refuses the request.
    """

    def __init__(self, cause: StoreError, of_key: str) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.of_key = of_key


_LONGEST = 300

_MISSING_PLACES: Final = {
    "NoSuchBucket": "there is no such bucket",
    "The specified bucket does not exist": "there is no such bucket",
    "ContainerNotFound": "there is no such container",
    "ContainerBeingDeleted": "the container is being deleted",
}

_status = re.compile(r"(?:status code|status): (\d{3})\b").search
_is_timeout = re.compile(r"timed ?out|RequestTimeout|kind: Timeout", re.IGNORECASE).search
_NO_CONNECTION: Final = (
    (
        re.compile(r"\b127\.0\.0\.1:0\b").search,  # see `redirects`
        "the server redirects to another host, which is refused: it could hear your credentials",
        Remedy("name the other server by {endpoint}, or the region of the bucket", endpoint=StorageOption()),
    ),
    (
        re.compile(r"ConnectionRefused|Connection refused").search,
        "the connection is refused",
        "see whether the server runs, and correct the host and the port",
    ),
    (
        re.compile(r'"dns error"|failed to lookup address').search,
        "the host is not known",
        "correct its name, or see whether there is a network",
    ),
    (
        re.compile(
            r"kind: Connect,(?s:.)*(?:InvalidContentType|[Cc]ertificate|UnknownIssuer|InvalidMessage|HandshakeFailure"
            r"|AlertReceived|rustls)"
        ).search,
        "there is no secure connection (TLS)",
        "see whether the server speaks https, and whether its certificate can be trusted",
    ),
    (
        re.compile(r"NetworkUnreachable|HostUnreachable").search,
        "the host cannot be reached",
        "check the network",
    ),
    (
        re.compile(r"IncompleteMessage|ConnectionReset|ConnectionAborted|BrokenPipe|UnexpectedEof").search,
        "the server breaks the connection off",
        "check whether the server runs, and read its log",
    ),
)
"""What obstore's dump says about the cause, our message, and the remedy."""
_CREDENTIALS: Final = {
    "S3Store": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "GCSStore": "GOOGLE_APPLICATION_CREDENTIALS",
    "AzureStore": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or AZURE_STORAGE_CONNECTION_STRING",
}
"""Environment variables with credentials, by the store of obstore."""
_OTHER_CREDENTIALS: Final = "user and secret in the URL, or headers"
_PUBLIC: Final = "for public data pass {anon}"
_ANONYMOUS: Final = {"anon": StorageOption(value=True)}
_OTHER_REGION: Final = (
    "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraint", "incorrectly configured region",
)  # fmt: skip
_region = re.compile(r"expecting '([a-z0-9-]+)'").search
_REFUSED: Final = (
    ("ExpiredToken", "the credentials have expired", "get new ones, and open the place again"),
    ("TokenRefreshRequired", "the credentials have expired", "get new ones, and open the place again"),
    ("Request has expired", "the signature of the URL has expired", "have the URL signed again"),
    ("RequestTimeTooSkewed", "the clock of this machine is wrong", "set the clock; signatures hold for minutes"),
    ("InvalidObjectState", "the value is in an archive (Glacier)", "restore it first: aws s3api restore-object"),
)
"""What a refusal says, our message, and the remedy."""
_is_write = re.compile(r"performing (?:PUT|POST|DELETE|MKCOL)\b|^(?:PUT|POST|DELETE|MKCOL) ").search
_is_range = re.compile(r"status code: 416\b|invalid range|InvalidRange|CONTENT_RANGE", re.IGNORECASE).search
_code = re.compile(r"<Code>([^<]{1,100})</Code>").search
_detail = re.compile(r"<Message>([^<]{1,300})").search

_OF_KEY: Final = "DeleteObjects request failed for key "
_NO_ANSWER_TO_BULK: Final = "Got invalid DeleteObjects response"
_is_bulk = re.compile(r"Error performing POST \S+\?delete in ").search

_pids: dict[str, int] = {}


def is_forked() -> bool:
    """Return whether this process was forked from one that used obstore, whose threads it does not have.

    Called before each use of obstore.
    """
    pid = os.getpid()
    return _pids.setdefault("pid", pid) != pid


def missing(error: FileNotFoundError, store: Any = None) -> StoreError | None:
    """Return the error if something else than the key is missing; None if it is the key.

    obstore treats 405, "method not allowed", like 404. A chunk that must not be fetched is not a chunk that was
    never written.
    """
    text = str(error)
    if (status := _status(text)) and status[1] == "405":
        if "performing HEAD" in text:
            return NotAllowedError("the server does not know HEAD")
        return _not_allowed(text, clean(text, store))
    if (place := _missing_place(text)) is None and _is_bulk(text):
        return StoreError(
            "the server has no requests that delete several keys",
            found=clean(text, store),
            remedy=Remedy("pass {disable_bulk_delete}", disable_bulk_delete=StorageOption(value=True)),
        )
    return place


def undeleted(raw: str) -> str | None:
    """Return `BulkError.of_key` for the text of a failure; None if deleting the keys one by one is of no use.

    It is not if there is no connection, and if the server is overloaded or has no such bucket.
    """
    text = raw.partition("\n\nDebug source")[0]
    _, is_of_key, told = text.partition(_OF_KEY)
    if is_of_key:
        return told
    if _NO_ANSWER_TO_BULK in text:
        return ""
    status = _status(text) if _is_bulk(text) else None
    if status is None or _missing_place(text) is not None:
        return None
    code = int(status[1])
    return "" if code == 501 or (400 <= code < 500 and code not in (408, 429)) else None


def missing_places() -> list[str]:
    """Return the words in an error's text which show that the bucket is missing, not the key."""
    return list(_MISSING_PLACES)


def _missing_place(text: str) -> StoreError | None:
    for sign, message in _MISSING_PLACES.items():
        if sign in text:
            return StoreError(message, remedy="create it, or correct the name, the endpoint or the region")
    return None


def translate(error: Exception, store: Any) -> StoreError:
    """Return the omnizarr error for `error`."""
    if isinstance(error, StoreError):  # not an error of obstore
        return error
    kind = "NotSupportedError" if isinstance(error, NotImplementedError) else type(error).__name__
    return said(kind, str(error), store)


def said(kind: str, raw: str, store: Any) -> StoreError:
    """Return the omnizarr error for an exception of obstore with this class and text."""
    if (place := _missing_place(raw)) is not None:
        return place
    found = clean(raw, store)
    status = _status(raw)
    code = int(status[1]) if status else 0
    if code == 501 and type(store).__name__ == "HTTPStore" and _is_write(raw):
        return _not_allowed(raw, found)
    if kind in ("AlreadyExistsError", "PreconditionError") or code == 412:
        return ConflictError("another writer was faster")
    if kind == "NotModifiedError":
        return NotModifiedError("not modified")
    if "Range request not supported by" in raw or "non-partial response" in raw:
        return NoRangesError("the server ignores ranges")
    if _is_range(raw) or (kind == "NotSupportedError" and "range" in raw.lower()):
        return RangeError("the range cannot be satisfied", found=found)
    if kind == "NotSupportedError" or code == 501 or "NotImplemented" in raw:
        return NotConditionalError("the server cannot do this", found=found)
    return _failure(kind, raw, found, code, _CREDENTIALS.get(type(store).__name__, _OTHER_CREDENTIALS))


def _failure(kind: str, raw: str, found: str, code: int, variables: str) -> StoreError:
    if code == 405:
        return _not_allowed(raw, found)
    refused = _refusal(raw, found)
    if refused is not None:
        return refused
    if "169.254.169.254" in raw or "metadata.google.internal" in raw or "169.254.170.2" in raw:
        return StoreAccessError(
            "there are no credentials",
            found="neither in the options, nor in the environment, nor from the machine this runs on",
            remedy=Remedy(f"give them in the storage options, or in the environment: {variables}").also(
                _PUBLIC, **_ANONYMOUS
            ),
        )
    is_denied = _OF_KEY in raw and "(code: AccessDenied)" in raw
    if is_denied or kind in ("PermissionDeniedError", "UnauthenticatedError") or code in (401, 403):
        return StoreAccessError(
            "access is denied",
            found=found,
            remedy=_credentials(variables, code),
        )
    for sign, message, remedy in _NO_CONNECTION:
        if sign(raw):
            return StoreError(message, found=found, remedy=remedy)
    if _is_timeout(raw):
        return StoreTimeoutError(
            "no answer in time",
            found=found,
            remedy=Remedy("raise {timeout}", timeout=StorageOption()) | Remedy("see whether it runs"),
        )
    return _by_status(raw, found, code)


def _refusal(raw: str, found: str) -> StoreError | None:
    """Return the error for a refusal whose code says what to do; None for other answers."""
    if any(sign in raw for sign in _OTHER_REGION):
        region = _region(raw)
        return StoreError(
            "the bucket is in another region",
            found=found,
            expected=region and region[1],
            remedy=Remedy("name its region by {region}", region=StorageOption(region[1] if region else ...)),
        )
    for sign, message, remedy in _REFUSED:
        if sign in raw:
            return StoreAccessError(message, found=found, remedy=remedy)
    return None


def _by_status(raw: str, found: str, code: int) -> StoreError:
    """Return the error for a status that no message explains."""
    if code == 429 or "SlowDown" in raw or "TooManyRequests" in raw or "ServerBusy" in raw:
        return StoreError(
            "the server asks for fewer requests",
            found=found,
            remedy=Remedy("wait, or choose a smaller {concurrency}", concurrency=StorageOption()).also(
                "a larger {retry_timeout} waits by itself", retry_timeout=StorageOption()
            ),
        )
    if code >= 500:
        return StoreError(
            "the server failed",
            found=found,
            remedy=Remedy("try again later").also(
                "a larger {retry_timeout} does that by itself", retry_timeout=StorageOption()
            ),
        )
    if code in (404, 410):
        return StoreError("the server has no such place", found=found, remedy="correct the name of the place")
    if 300 <= code < 400:
        return StoreError("the server redirects, and does not say where to", found=found, remedy="correct the address")
    if code:
        return StoreError(
            "the server refuses the request",
            found=found,
            remedy="correct the address and the options of the store; the log of the server may say more",
        )
    return StoreError("the request failed", found=found, remedy="see whether the server runs, and read its log")


def _not_allowed(raw: str, found: str) -> StoreAccessError:
    """Return the error for a method that a server does not have, or not for this place."""
    if _is_write(raw):
        return StoreAccessError(
            "the server does not allow writing",
            found=found,
            remedy="write to a directory or to an object store, or to a web server that takes PUT (WebDAV)",
        )
    return StoreAccessError(
        "the server does not allow this", found=found, remedy="correct the address: it is no place of files"
    )


def _credentials(variables: str, code: int) -> Remedy:
    """Return what to do about an access that is denied."""
    if variables == _OTHER_CREDENTIALS:
        advice = Remedy(f"give credentials ({variables})" if code == 401 else f"check the credentials ({variables})")
        return advice if code == 401 else advice.also("some servers also answer this for keys that do not exist")
    advice = Remedy(f"check the credentials ({variables})").also(_PUBLIC, **_ANONYMOUS)
    if variables == _CREDENTIALS["S3Store"]:
        advice = advice.also(
            "for buckets whose readers pay give {request_payer}", request_payer=StorageOption(value=True)
        )
    return advice.also("servers also return this for missing keys, unless you may list the bucket")


def clean(text: str, store: Any = None) -> str:
    r"""Return the message of obstore in one line, without dumps, queries of URLs and secrets of `store`.

    >>> clean("Generic S3 error: Error performing GET http://me:pw@host/k?Sig=1 in 2.1ms - 503 Slow\n\nDebug source: .")
    'S3: GET http://host/k: 503 Slow'
    """
    text = text.partition("\n\nDebug source")[0]
    if type(store).__name__ == "HTTPStore":  # a web server may repeat what it was sent
        text = re.sub(r"(?s)(status code: \d{3}[^:]*):.*", r"\1", text)
    code, detail = _code(text), _detail(text)
    text = text.partition("<?xml")[0].partition("<Error>")[0].partition("<!DOCTYPE")[0].partition("<html")[0]
    text = re.sub(r"^The operation lacked .*? for path [^:]*: ", "", text)
    text = re.sub(r"://[^/\s@]*@", "://", text)
    text = re.sub(r"(\w://[^\s?]*)\?\S*", r"\1", text)
    text = re.sub(r" in [0-9.]+(?:ns|µs|ms|s)\b", "", text)
    text = re.sub(r"(?:, [^,:]*)?, *max_retries: \d+, retry_timeout: [^ ,]+[ ,]*", " ", text)
    text = re.sub(r"^Generic (\w+) error: ", r"\1: ", text).replace("Error performing ", "").replace(" - ", ": ")
    text = text.replace("Server returned non-2xx status code: ", "").replace("\n", " ").strip(" :")
    if code:
        text = f"{text}: {code[1]}" + (f": {detail[1]}" if detail else "")
    for secret in _secrets(store):
        text = text.replace(secret, "***")
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _secrets(store: Any) -> list[str]:
    """Return the secrets in the options of a store, the longest first."""
    shown = {"bucket", "region", "default_region", "endpoint", "container_name", "account_name", "base_url"}
    config = {
        **(getattr(store, "config", None) or {}),
        **((getattr(store, "client_options", None) or {}).get("default_headers") or {}),
    }
    values = [
        value.decode("latin-1") if isinstance(value, bytes) else str(value)
        for name, value in config.items()
        if name not in shown
    ]
    words = {word for value in values for word in (value, *value.split())}  # a server may repeat one word of "Bearer x"
    return sorted((word for word in words if len(word) > 5), key=len, reverse=True)
