"""Text about stores without the secrets that give access to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

HIDDEN = "***"

HARMLESS = frozenset({"accept", "accept-encoding", "if-match", "if-none-match", "range", "user-agent"})
"""Headers of a request that another server may see, when the first one redirects to it."""

_SHORTEST = 3  # shorter values occur in half of all messages, and protect nothing

# Words in the names of options that hold credentials, in any library.
_is_secret_name = re.compile(
    r"secret|token|pass|pwd|cred|auth|sign|sas|key|user|login|header|cookie|cert|connection_string", re.IGNORECASE
).search

# Parts of a URL that may be secret: the user, and everything after the path.
# In an address of Icechunk, a directory is before the branch.
_user = re.compile(r"(?<=://)(?<!icechunk://)[^/?#\s'\"]*@")
# A URL without a query matches too, so that no part of it is looked at again.
_query = re.compile(r"(://[^\s'\"?#]*+)(?:\?([^\s'\"]*+))?")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` without the secrets, and its URLs without user, password and query.

    >>> redact("no answer from https://me:pw@example.org/a?signature=x", ())
    'no answer from https://example.org/a?***'
    """
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return _query.sub(_without_query, _user.sub("", text))


def _without_query(url: re.Match[str]) -> str:
    return url[0] if url[2] is None else f"{url[1]}?{HIDDEN}"


def hidings(texts: Iterable[str]) -> dict[str, str]:
    """Return what to write instead of the secret parts of URLs: their users and queries.

    >>> hidings(["https://me:pw@example.org/a?sig=x", "b.zarr"])
    {'me:pw@': '', '?sig=x': '?***'}
    """
    found: dict[str, str] = {}
    for text in texts:
        found |= dict.fromkeys(_user.findall(text), "")
        found |= {f"?{each[2]}": f"?{HIDDEN}" for each in _query.finditer(text) if each[2] is not None}
    return dict(sorted(found.items(), key=lambda item: len(item[0]), reverse=True))


def secrets_of(options: Mapping[str, Any]) -> frozenset[str]:
    """Return the values in `options` that may be credentials, at any depth.

    >>> sorted(secrets_of({"key": "AKIA", "anon": False, "client_kwargs": {"aws_session_token": "abc"}}))
    ['AKIA', 'abc']
    """
    return frozenset(text for text in _secrets(options, secret=False) if len(text) >= _SHORTEST)


def _secrets(value: object, *, secret: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _secrets(inner, secret=secret or _is_secret_name(str(name)) is not None)
    elif isinstance(value, str):
        if secret:
            yield value
    elif isinstance(value, (list, tuple, set, frozenset)):  # aiohttp.BasicAuth is a tuple
        for inner in value:
            yield from _secrets(inner, secret=secret)
