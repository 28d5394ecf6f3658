"""Requests to web servers, which may mean harm.

The client of obstore follows redirects by rules of its own: it passes on the headers of the user, such as
``X-Api-Key``, and the query of a signed URL as ``Referer``. And it reads the whole message of an error, even if that
never ends, until the memory is full and the process aborts. This client has the functions of obstore that
`omnizarr.stores.remote.object` uses for a web server, with the answers and errors of obstore.

Public servers
    References that you do not trust lead to public servers: none of a private network, also none to which a public
    one redirects, and none whose name means another address by the time of the connection. Where a proxy connects,
    the names alone are checked.

Redirects
    At most `MOST_REDIRECTS` are followed, none from https to http. Another server (host, port or scheme differ) gets
    the headers in `omnizarr.stores.redaction.HARMLESS` only, and no server gets a ``Referer``. Writes are redirected
    within the server only.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import re
import socket
import ssl
import sys
import time
import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias
from urllib import parse

from obstore import exceptions

from omnizarr.stores import trust
from omnizarr.stores.base import Buffer
from omnizarr.stores.redaction import HARMLESS
from omnizarr.stores.remote.object_answers import body_of
from omnizarr.support.lazy import Lazy

if TYPE_CHECKING:
    from urllib import request
else:
    request = Lazy("urllib.request")

MOST_REDIRECTS: Final = 10
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OWN: Final = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "omnizarr"}
_SAFE: Final = "/!$&'()*+,;=:@~"
_LONGEST_EXCUSE: Final = 4096
"""Bytes of an error response that are read. If there are more, the connection is closed."""
_SHORTLY: Final = 1.0
"""Seconds for reading an error response."""
_PIECE: Final = 1 << 20
_SAID: Final = {
    401: "The operation lacked valid authentication credentials",
    403: "The operation lacked the necessary privileges to complete",
}
"""What obstore says of these."""
_IDLE: Final = 64
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}
_duration = re.compile(r"([0-9]+) ?([a-z]*)").fullmatch
_content_range = re.compile(r"bytes ([0-9]+)-([0-9]+)/([0-9]+)").fullmatch

_Idle: TypeAlias = dict[tuple[int, str, str], deque[http.client.HTTPConnection]]
"""Connections by process and server."""
_Failed: Final = (OSError, http.client.HTTPException)


class Answer:
    """An answer, whose body is read on demand; as ``obstore.GetResult``."""

    attributes: Final[Mapping[str, str]] = {}

    def __init__(self, got: _Got, span: tuple[int, int], meta: Mapping[str, Any]) -> None:
        self._got, self.range, self.meta = got, span, meta

    def stream(self, size: int) -> Iterator[bytes]:
        """Yield the body, or the first byte too many and what was before."""
        yield self._got.read(size + 1)


class _Clock:
    """Until when an answer may take, and how long each part of it."""

    def __init__(self, end: float, patience: float) -> None:
        self.end = end
        self.patience = patience

    def left(self) -> float:
        """Return how long to wait for the next bytes. Raises TimeoutError."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(left, self.patience)


class _Timed(io.RawIOBase):
    """The data that arrive at a socket before a deadline."""

    def __init__(self, line: socket.socket, clock: _Clock) -> None:
        self._line = line
        self._file: Any = line.makefile("rb", buffering=0)
        self._clock = clock

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int | None:
        self._line.settimeout(self._clock.left())
        found: int | None = self._file.readinto(room)
        return found

    def close(self) -> None:
        self._file.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """An answer that a server cannot draw out by sending a byte now and then."""

    def __init__(self, clock: _Clock, line: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(line, *args, **kwargs)
        self.fp.close()
        self.fp = io.BufferedReader(_Timed(line, clock))


class _Got:
    """An answer whose head has come."""

    def __init__(self, client: Client, line: http.client.HTTPConnection, at: tuple[str, str]) -> None:
        self._client, self._line, self._at = client, line, at
        self._unread = weakref.finalize(self, line.close)  # such a reference also works within garbage
        self._clock = _Clock(time.monotonic() + client.timeout, client.patience)
        line.response_class = partial(_Response, self._clock)  # type: ignore[assignment]
        self.response = line.getresponse()
        if not (self.response.headers.get("Content-Length") or "0").isdecimal():
            raise http.client.HTTPException("the server announces a length that is no number")

    def read(self, most: int) -> bytes:
        """Return at most `most` bytes of the body. The connection stays open if these are all."""
        pieces: list[bytes] = []
        try:
            while most > 0 and (piece := self.response.read1(min(most, _PIECE))):
                pieces.append(piece)
                most -= len(piece)
        except _Failed as error:
            _broken(error)
        finally:
            self.close()
        return b"".join(pieces)

    def close(self) -> None:
        """Keep the connection if the answer has been read to its end."""
        if self._unread.detach() is None:
            return
        if self.response.isclosed() and self._line.sock is not None:
            self._client.give_back(self._at, self._line)
        else:
            self._line.close()

    def excuse(self) -> str:
        """Return what the server says of an error, if that is short and comes soon."""
        self._clock.end = min(self._clock.end, time.monotonic() + _SHORTLY)
        said = b""
        with contextlib.suppress(*_Failed):
            if (self.response.length or 0) <= _LONGEST_EXCUSE:
                said = self.response.read(_LONGEST_EXCUSE)
        self.close()
        return said.decode("utf-8", "replace")


class Client:
    """The functions of obstore for one web server.

    Parameters
    ----------
    store : obstore.store.HTTPStore
        It is asked for its URL and its options only.
    is_public : bool
        Whether to refuse servers of private networks.
    """

    def __init__(self, store: Any, *, is_public: bool = False) -> None:
        self._is_public = is_public
        options = store.client_options or {}
        retry = store.retry_config or {}
        backoff = retry.get("backoff") or {}
        self._root = parse.urlsplit(store.url)
        given = {name: _text(value) for name, value in (options.get("default_headers") or {}).items()}
        agent = options.get("user_agent")
        self._headers = {**_OWN, **({"User-Agent": _text(agent)} if agent else {}), **given}
        self.patience = _seconds(options.get("read_timeout"), 30)
        self._connect_patience = _seconds(options.get("connect_timeout"), 5)
        self.timeout = _seconds(options.get("timeout"), 600)
        self._retries = int(retry.get("max_retries", 10))
        self._retry_timeout = _seconds(retry.get("retry_timeout"), 180)
        self._pauses = _seconds(backoff.get("init_backoff"), 0.1), _seconds(backoff.get("max_backoff"), 15)
        self._trusts_all = str(options.get("allow_invalid_certificates", "")).lower() == "true"
        self._root_certificate = options.get("root_certificate")
        self._proxy = options.get("proxy_url")
        self._tls: ssl.SSLContext | None = None
        self._idle: _Idle = {}
        weakref.finalize(self, _close, self._idle)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tls": None, "_idle": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        weakref.finalize(self, _close, self._idle)

    # -- the functions of obstore -------------------------------------------------------

    def get(self, _: Any, path: str, *, options: Mapping[str, Any] | None = None) -> Answer:
        """Request a value, or a part of it."""
        options = options or {}
        wanted = options.get("range")
        headers = {"Range": _range(wanted)} if wanted is not None else {}
        headers |= {
            name: options[key]
            for key, name in (("if_match", "If-Match"), ("if_none_match", "If-None-Match"))
            if options.get(key)
        }
        method = "HEAD" if options.get("head") else "GET"
        got = self._sent(method, path, headers)
        try:
            answer = _answer(got, path, wanted)
        except BaseException:
            got.close()
            raise
        if method == "HEAD":
            got.close()
        return answer

    def get_range(self, _: Any, path: str, *, start: int, end: int) -> Buffer:
        """Request a part of a value."""
        answer: Any = self.get(_, path, options={"range": (start, end)})
        return body_of(answer)

    def head(self, _: Any, path: str) -> Mapping[str, Any]:
        """Request the size and version of a value."""
        return self.get(_, path, options={"head": True}).meta

    def put(self, _: Any, path: str, data: Any, **__: Any) -> Mapping[str, Any]:
        """Send a value. Directories that are missing are made, as WebDAV wants it."""
        try:
            got = self._sent("PUT", path, {}, bytes(data))
        except (FileNotFoundError, exceptions.AlreadyExistsError):
            self._make_folder(path.rpartition("/")[0])
            got = self._sent("PUT", path, {}, bytes(data))
        headers = got.response.headers
        got.read(_PIECE)
        return {"e_tag": headers.get("ETag"), "version": None}

    def _make_folder(self, folder: str) -> None:
        """Ask for a directory; if the server answers that those above it are missing, for these first."""
        above = folder.rpartition("/")[0]
        for is_last in (not above, True):
            try:
                self._sent("MKCOL", f"{folder}/", {}).read(_PIECE)
            except exceptions.AlreadyExistsError:
                if is_last:
                    raise
                self._make_folder(above)
            else:
                return

    def delete(self, _: Any, path: str) -> None:
        """Ask the server to delete a value."""
        self._sent("DELETE", path, {}).read(_PIECE)

    # -- requests -----------------------------------------------------------------------

    def _sent(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None) -> _Got:
        """Send a request until it is answered by success; raise what obstore raises."""
        url = parse.urlunsplit(
            self._root._replace(path=f"{self._root.path.rstrip('/')}/{parse.quote(path, safe=_SAFE)}", fragment="")
        )
        end = time.monotonic() + self._retry_timeout
        pause, longest = self._pauses
        for attempt in range(self._retries + 1):
            try:
                got = self._followed(method, url, {**self._headers, **headers}, body)
            except _Failed as error:
                if (
                    attempt == self._retries
                    or time.monotonic() > end
                    or isinstance(error, (ssl.SSLError, socket.gaierror))
                ):
                    _broken(error, f"Error performing {method} {url} - HTTP error: error sending request")
            else:
                status = got.response.status
                if status < 300 or (status, method) == (405, "MKCOL"):  # the directory exists
                    return got
                said = got.excuse()
                is_last = attempt == self._retries or time.monotonic() > end
                is_passing = (status >= 500 and status not in (501, 505)) or status in (408, 429)
                if is_last or not is_passing:
                    _refused(method, url, status, said)
            time.sleep(pause)
            pause = min(2 * pause, longest)
        raise AssertionError  # the last attempt returns or raises

    def _followed(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> _Got:
        for _ in range(MOST_REDIRECTS + 1):
            got = self._asked(method, url, headers, body)
            place = got.response.getheader("Location")
            if got.response.status not in _REDIRECTS or place is None:
                return got
            got.excuse()
            there = parse.urljoin(url, place)
            old, new = parse.urlsplit(url), parse.urlsplit(there)
            if new.scheme not in ("http", "https") or (old.scheme == "https" and new.scheme == "http"):
                _fail(f"redirect from {old.scheme} to {new.scheme or 'nowhere'}, which is refused")
            if self._is_public and not trust.is_public(there):
                _fail("redirect to a server that may be one of your network, which is refused")
            if _server(old) != _server(new):
                if method not in ("GET", "HEAD"):
                    _fail("redirect of a write to another server, which is refused")
                headers = {name: value for name, value in headers.items() if name.lower() in HARMLESS}
            url = there
        raise exceptions.GenericError("Generic HTTP error: too many redirects")

    def _asked(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> _Got:
        parts = parse.urlsplit(url)
        at = (parts.scheme, parts.netloc.rpartition("@")[2])
        proxy = self._proxy_for(*at)
        target = parse.urlunsplit(parts._replace(scheme="", netloc="", path=parts.path or "/", fragment=""))
        if proxy is not None and parts.scheme == "http":
            target = parse.urlunsplit(parts._replace(netloc=at[1], fragment=""))
        while True:
            line, is_used = self._line(at, proxy)
            try:
                line.request(method, target, body=body, headers=dict(headers))
                return _Got(self, line, at)
            except (http.client.RemoteDisconnected, ConnectionError):
                line.close()
                if not is_used:
                    raise
            except BaseException:
                line.close()
                raise

    def _line(self, at: tuple[str, str], proxy: parse.SplitResult | None) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection, and whether it was used before."""
        with contextlib.suppress(IndexError, KeyError):
            return self._idle[os.getpid(), *at].pop(), True
        scheme, host = at
        name = host if proxy is None else proxy.netloc.rpartition("@")[2]
        is_checked = self._is_public and proxy is None
        if scheme == "http":
            plain = _PublicHTTP if is_checked else http.client.HTTPConnection
            return plain(name, timeout=self._connect_patience), False
        secure = _PublicHTTPS if is_checked else http.client.HTTPSConnection
        line = secure(name, timeout=self._connect_patience, context=self._context())
        if proxy is not None:
            line.set_tunnel(host)
        return line, False

    def give_back(self, at: tuple[str, str], line: http.client.HTTPConnection) -> None:
        """Keep a connection for the next request."""
        idle = self._idle.setdefault((os.getpid(), *at), deque(maxlen=_IDLE))
        if len(idle) < _IDLE:
            idle.append(line)
        else:
            line.close()

    def _proxy_for(self, scheme: str, host: str) -> parse.SplitResult | None:
        if self._proxy:
            return parse.urlsplit(str(self._proxy))
        if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
            return None  # elsewhere the system may know one; the import of `request` takes 10 ms
        found = request.getproxies().get(scheme)
        return None if not found or request.proxy_bypass(host) else parse.urlsplit(found)

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context(cadata=_certificate(self._root_certificate))
            if self._trusts_all:
                self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        return self._tls


class _PublicHTTP(http.client.HTTPConnection):
    """A connection to a public address only: the one that it has, whatever the name meant before."""

    def connect(self) -> None:
        """Connect, and see where that leads before anything is sent."""
        super().connect()
        address = str(self.sock.getpeername()[0])
        if not trust.is_public_address(address):
            self.close()
            _fail(f"the name of a public server leads to an address of a private network ({address}), which is refused")


class _PublicHTTPS(http.client.HTTPSConnection, _PublicHTTP):
    """The same, checked before TLS begins."""


def _close(idle: _Idle) -> None:
    for lines in idle.values():
        for line in lines:
            line.close()


def _answer(got: _Got, path: str, wanted: Any) -> Answer:
    headers = got.response.headers
    size = int(headers.get("Content-Length") or 0) if (headers.get("Content-Length") or "0").isdecimal() else 0
    span = (0, size)
    if wanted is not None:
        if got.response.status != 206:
            raise exceptions.NotSupportedError("Range request not supported by this server: non-partial response")
        found = _content_range(headers.get("Content-Range", ""))
        if found is None:
            _fail("an answer without a valid CONTENT_RANGE")
        first, last, size = map(int, found.groups())
        span = (first, last + 1)
        if span != _bounds(wanted, size):
            _fail(f"Requested {_range(wanted)}, got {first}-{last} of {size}")
    elif "Content-Length" not in headers:
        _fail("the server does not say how long the value is (no Content-Length)")
    meta = {
        "path": path, "size": size, "e_tag": headers.get("ETag"), "version": None,
        "last_modified": _date(headers.get("Last-Modified")),
    }  # fmt: skip
    return Answer(got, span, meta)


def _range(wanted: Any) -> str:
    if isinstance(wanted, Mapping):
        return f"bytes=-{wanted['suffix']}" if "suffix" in wanted else f"bytes={wanted['offset']}-"
    start, stop = wanted
    return f"bytes={start}-{stop - 1}"


def _bounds(wanted: Any, size: int) -> tuple[int, int]:
    if isinstance(wanted, Mapping):
        return (max(0, size - wanted["suffix"]) if "suffix" in wanted else wanted["offset"]), size
    return wanted[0], min(wanted[1], size)


def _server(parts: parse.SplitResult) -> tuple[str, str, int]:
    return parts.scheme, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _refused(method: str, url: str, status: int, said: str) -> NoReturn:
    phrase = http.client.responses.get(status, "")
    text = (
        f"Error performing {method} {url.rstrip('/')} - Server returned non-2xx status code: {status} {phrase}".strip()
    )
    if said:
        text = f"{text}: {said}"
    if status in (404, 410) or (status == 405 and method != "PUT"):
        raise FileNotFoundError(text)
    kinds = {
        304: exceptions.NotModifiedError, 401: exceptions.UnauthenticatedError, 403: exceptions.PermissionDeniedError,
        409: exceptions.AlreadyExistsError, 412: exceptions.PreconditionError,
    }  # fmt: skip
    path = parse.unquote(parse.urlsplit(url).path).strip("/")
    meaning = _SAID.get(status)
    text = f"Generic HTTP error: {text}" if meaning is None else f"{meaning} for path {path}: {text}"
    raise kinds.get(status, exceptions.GenericError)(text)


def _fail(text: str) -> NoReturn:
    raise exceptions.GenericError(f"Generic HTTP error: {text}")


def _broken(error: BaseException, doing: str = "HTTP error: request or response body error") -> NoReturn:
    """Raise the error in terms of obstore, which `object_errors` knows."""
    if isinstance(error, ssl.SSLError):
        said = f"kind: Connect, rustls: {error}"
    elif isinstance(error, TimeoutError):
        said = "timed out"
    elif isinstance(error, socket.gaierror):
        said = "failed to lookup address"
    elif isinstance(error, ConnectionRefusedError):
        said = "Connection refused"
    elif isinstance(error, (ConnectionError, http.client.IncompleteRead, http.client.RemoteDisconnected)):
        said = "IncompleteMessage"
    else:
        said = f"{type(error).__name__}: {error}"
    raise exceptions.GenericError(f"Generic HTTP error: {doing}\n\nDebug source: {said}") from None


def _seconds(value: Any, default: float) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    found = _duration(str(value).strip().lower())
    return int(found[1]) * _UNITS.get(found[2], 1) if found else default


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _certificate(given: Any) -> str | bytes | None:
    return given if isinstance(given, (str, bytes)) and given else None


def _date(text: str | None) -> datetime:
    try:
        return parsedate_to_datetime(text or "")
    except ValueError:
        return _EPOCH
