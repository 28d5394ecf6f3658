"""Errors of other libraries as errors of omnizarr, without anything that could be a credential.

Each library below a filesystem or a store has its own exceptions. The cause is derived from what they have in
common: the type of the built-in exception, the status of the answer, the error code of the service.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from omnizarr.errors import OmnizarrError, StoreAccessError, StoreError, StoreTimeoutError
from omnizarr.stores.redaction import redact

# The wording of S3, HTTP and obstore.
_tells_of_the_end = re.compile(r"satisfiable|wanted range starting at", re.IGNORECASE).search

MISSING_PLACES: Final = frozenset({"NoSuchBucket", "ContainerNotFound"})


def translate(error: BaseException, store: object, key: str = "", secrets: Iterable[str] = ()) -> OmnizarrError:
    """Return the omnizarr error for `error`, to be raised.

    `error` is its cause, unless a traceback would then show secrets.
    """
    if isinstance(error, OmnizarrError):
        return error
    secrets = tuple(secrets)
    errors = list(chain(error))
    statuses = {status(each) for each in errors}
    names = " ".join(type(each).__name__ for each in errors)
    kind, remedy = StoreError, None
    if is_missing_place(error):
        remedy = "make the bucket first, or correct its name"
    elif isinstance(error, PermissionError) or statuses & {401, 403} or "Credential" in names:
        kind, remedy = StoreAccessError, "give credentials, or say that there are none, in the options of the store"
    elif isinstance(error, TimeoutError) or "Timeout" in names:
        kind = StoreTimeoutError
    text = redact(str(error), secrets) or type(error).__name__
    failure = kind(text, store=repr(store), key=key or None, remedy=remedy)
    failure.errno = getattr(error, "errno", None)
    failure.__suppress_context__ = True
    if all(redact(shown := f"{each!r} {each}", secrets) == shown for each in errors):
        failure.__cause__ = error
    return failure


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def is_missing_place(error: BaseException) -> bool:
    """Return whether the place that should hold the value is missing, such as the bucket, and not only the value."""
    return any(_code(each) in MISSING_PLACES for each in chain(error))


def is_past_the_end(error: BaseException) -> bool:
    """Return whether a service reports that the range is past the end of the value."""
    return any(
        status(each) == 416 or _code(each) == "InvalidRange" or _tells_of_the_end(str(each)) for each in chain(error)
    )


def status(error: BaseException) -> int | None:
    """Return the HTTP status of the error."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        found: Any = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return found if isinstance(found, int) else None
    for name in ("status", "status_code", "code"):
        found = getattr(error, name, None)
        if isinstance(found, int):
            return found
    return None


def _code(error: BaseException) -> object:
    """Return the error code of the service."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        return response.get("Error", {}).get("Code")
    return getattr(error, "error_code", None)  # Azure
