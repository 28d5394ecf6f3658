"""Access control: requests with the token, and pages that call the server by its own name."""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnizarr.web.keys import refusal

_BEARER: Final = "bearer "
_is_token = re.compile(r"[A-Za-z0-9._~-]+").fullmatch
_is_origin = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]A-Z]+)(?::\d+)?|null|\*").fullmatch
_host_and_port = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::[0-9]*)?").fullmatch
_is_host = re.compile(r"\[?[0-9A-Fa-f:]+\]?|[^\s/?#@:\[\]]+").fullmatch


class TokenRequired:
    """Middleware that lets requests pass that carry a token; others are answered by 401.

    The token is in the query (``?token=...``), in the header ``Authorization: Bearer ...``, or in a cookie, which a
    request with the token in its query sets, and which counts for pages of this server only. Cookies do not tell
    ports apart, so the name of this one has the port.

    Parameters
    ----------
    app : ASGI application
    token : str
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        cookie = cookie_name(scope)
        headers = Headers(scope=scope)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if any(map(self._is_right, query.get("token", ()))):
            await self._app(scope, receive, _setting(cookie, self._token, scope, send))
            return
        authorization = headers.get("authorization", "")
        bearer = authorization[len(_BEARER) :].strip() if authorization.lower().startswith(_BEARER) else ""
        crumb = cookie_parser(headers.get("cookie", "")).get(cookie, "")
        if self._is_right(bearer) or (self._is_right(crumb) and is_own_page(headers)):
            await self._app(scope, receive, send)
            return
        text = "this server wants a token: ?token=... in the URL, or the header 'Authorization: Bearer ...'"
        response = refusal(HTTPStatus.UNAUTHORIZED, text, **{"WWW-Authenticate": "Bearer"})
        await response(scope, receive, send)

    def _is_right(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self._token.encode())


def check_token(token: str) -> None:
    """Raise ValueError if URLs and cookies cannot hold a token unchanged."""
    if not _is_token(token):
        raise ValueError("a token consists of letters, digits and the characters . _ ~ -")


def check_origins(origins: Iterable[str]) -> None:
    """Raise ValueError if no browser sends one of these origins.

    >>> check_origins(["https://viewer.example.org", "http://localhost:8080", "*"])
    """
    for origin in origins:
        if not _is_origin(origin):
            raise ValueError(f"not an origin: found {origin!r}, expected one as in https://viewer.example.org, or *")


def check_hosts(hosts: Iterable[str]) -> None:
    """Raise ValueError if one of these is not a name without scheme and port.

    >>> check_hosts(["data.example.org", "::1"])
    """
    for host in hosts:
        if not _is_host(host):
            raise ValueError(f"not the name of a host: found {host!r}, expected one as in data.example.org")


def cookie_name(scope: Scope) -> str:
    """Return the name of the cookie for the port that a request came to."""
    server = scope.get("server")
    return f"omnizarr-{server[1] if server else 0}"


def is_own_page(headers: Headers) -> bool:
    """Return whether a request comes from no page, or from one of this server, as far as the browser says.

    >>> is_own_page(Headers({"host": "localhost:8000", "origin": "http://localhost:3000"}))
    False
    """
    origin = headers.get("origin")
    is_own = origin is None or origin.partition("://")[2] == headers.get("host", "")
    return is_own and headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _setting(cookie: str, token: str, scope: Scope, send: Send) -> Send:
    path = scope.get("root_path") or "/"

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            value = f"{cookie}={token}; Path={path}; HttpOnly; SameSite=Strict"
            MutableHeaders(scope=message).append("Set-Cookie", value)
        await send(message)

    return sending


class SafeHeaders:
    """Middleware that adds fields to the header of each answer, which tell browsers what pages may do with it.

    Parameters
    ----------
    app : ASGI application
    headers : mapping
    """

    def __init__(self, app: ASGIApp, headers: Mapping[str, str]) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class KnownHost:
    """Middleware that answers requests by 421 unless they call the server by a name that it has.

    A malicious page can make its own name lead to 127.0.0.1, and so read in the browser what is served there.
    Such requests carry that name in the header ``Host``.

    Parameters
    ----------
    app : ASGI application
    hosts : iterable of str
        Names besides ``localhost`` and the addresses of this machine's loopback.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = ()) -> None:
        self._app = app
        self._hosts = frozenset(map(str.lower, hosts))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http":
            name = host_of(Headers(scope=scope).get("host", ""))
            if name not in self._hosts and not is_loopback(name):
                text = f"this server is not called {name!r}"
                await refusal(HTTPStatus.MISDIRECTED_REQUEST, text)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def host_of(header: str) -> str:
    """Return the name in a header ``Host``, without the port; "" if the header is no name with or without a port.

    >>> host_of("localhost:8000"), host_of("[::1]:8000"), host_of("Example.org"), host_of("[::1")
    ('localhost', '::1', 'example.org', '')
    """
    found = _host_and_port(header)
    return "" if found is None else (found[1] or found[2] or "").lower()


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
