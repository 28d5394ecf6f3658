"""The values of a store over HTTP: ``GET`` and ``HEAD`` of keys, with ranges and ETags.

A key is the path of the URL. Paths that are not keys, that lead out of the store, or that are behind a symbolic link
out of it, are not found, like keys without a value. Nothing is listed, and nothing can be written.

Spec: RFC 9110.
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from omnizarr.errors import ConflictError, InvalidKeyError, NodeNotFoundError, OmnizarrError, StoreTimeoutError
from omnizarr.stores import Buffer, Store, verbs
from omnizarr.stores.asynchronous import called, is_awaitable
from omnizarr.stores.base import cut, is_key
from omnizarr.stores.redaction import redact
from omnizarr.stores.tasks import waited
from omnizarr.support.text import visible
from omnizarr.web.ranges import Asked, Part

LOGGER: Final = logging.getLogger("omnizarr.web")
PIECE: Final = 1 << 22
"""Bytes that are read at once. Larger values are read in pieces of this size."""

_ATTEMPTS: Final = 3
_MOST_MARKS: Final = 10_000
DOCUMENTS: Final = (".json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", ".nczarr", ".nczgroup", ".nczarray")
"""Suffixes of the keys of documents in JSON."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A value as it was found."""

    etag: str
    size: int
    whole: Buffer | None
    """All of it, where that had to be read."""
    stamp: Hashable = None
    """An identification of its version, if parts of it are read later."""


class Keys:
    """An ASGI application that serves the values of a store, read-only.

    A value has a strong ETag: of its stamp, where the store has one, or of its bytes. Large values are read and sent in
    pieces; when another version takes the place of one that is being sent, the connection ends before its end.

    Parameters
    ----------
    store : Store
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._is_awaitable = is_awaitable(store)
        self._marks = _Marks()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        key = scope["path"].removeprefix(scope.get("root_path", "")).removeprefix("/")
        response = await self.answer(scope["method"], key, Headers(scope=scope))
        await response(scope, receive, send)

    async def answer(self, method: str, key: str, headers: Headers) -> Response:
        """Return the answer to a request for a key."""
        if method not in ("GET", "HEAD"):
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{method}: only GET and HEAD are served", Allow="GET, HEAD")
        if not is_key(key):
            return _missing(key)
        asked = Asked.of(method, headers)
        try:
            if self._is_awaitable and method == "GET" and asked.is_plain:
                stamped = await called(verbs.get_stamped, self.store, key)
                if stamped is None or stamped.value is None:
                    return _missing(key)
                value = self._in_memory(key, stamped.value, stamped.stamp)
                return _whole(value, key, stamped.value)
            return await waited(self._respond, method, key, asked)
        except (InvalidKeyError, NodeNotFoundError):
            return _missing(key)
        except (OmnizarrError, OSError) as error:
            return failure(error, key)

    def _respond(self, method: str, key: str, asked: Asked) -> Response:
        """Return the answer; if it is short, with its body."""
        for _ in range(_ATTEMPTS):
            value = self._look(key)
            if value is None:
                return _missing(key)
            with suppress(ConflictError):
                response = self._response(method, key, asked, value)
                if value.whole is not None or verbs.stamp(self.store, key) == value.stamp:
                    return response
        whole = self.store.get(key)  # the value changes all the time
        return _missing(key) if whole is None else self._response(method, key, asked, self._in_memory(key, whole, None))

    def _look(self, key: str) -> _Value | None:
        stamp = verbs.stamp(self.store, key)
        if stamp is None:
            whole = self.store.get(key)
            return None if whole is None else self._in_memory(key, whole, None)
        size = self.store.size(key)
        return None if size is None else _Value(self._marks.of(key, stamp), size, None, stamp)

    def _in_memory(self, key: str, whole: Buffer, stamp: Hashable | None) -> _Value:
        return _Value(_quoted(whole) if stamp is None else self._marks.of(key, stamp), len(whole), whole)

    def _response(self, method: str, key: str, asked: Asked, value: _Value) -> Response:
        if asked.fails(value.etag):
            return refusal(HTTPStatus.PRECONDITION_FAILED, f"{visible(key)} is another version", ETag=value.etag)
        if asked.is_known(value.etag):
            return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=_headers(value))
        if method == "HEAD":
            return _whole(value, key, b"")
        parts = asked.parts(value.etag, value.size)
        if parts is None:
            return self._sending(key, value, [(0, value.size)], _whole(value, key, b""))
        if not parts:
            text = f"{visible(key)} has {value.size} bytes"
            whole = f"bytes */{value.size}"
            return refusal(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, text, **{"Content-Range": whole})
        if len(parts) == 1:
            [(start, stop)] = parts
            fields = {"Content-Range": _content_range(parts[0], value.size), "Content-Length": str(stop - start)}
            return self._sending(key, value, parts, _partial(value, _media_type(key), fields))
        boundary = secrets.token_hex(16)
        segments = _multipart(parts, value.size, _media_type(key), boundary)
        length = sum(len(each) if isinstance(each, bytes) else each[1] - each[0] for each in segments)
        head = _partial(value, f"multipart/byteranges; boundary={boundary}", {"Content-Length": str(length)})
        return self._sending(key, value, segments, head)

    def _sending(self, key: str, value: _Value, segments: list[bytes | Part] | list[Part], head: Response) -> Response:
        """Return an answer with the head of another one, and these parts of a value for its body."""
        if value.whole is not None or sum(map(_length, segments)) <= PIECE:
            head.body = b"".join(each if isinstance(each, bytes) else self._read(key, value, each) for each in segments)
            return head
        streaming = StreamingResponse(self._pieces(key, value, segments), status_code=head.status_code)
        streaming.raw_headers = head.raw_headers
        return streaming

    async def _pieces(self, key: str, value: _Value, segments: list[bytes | Part] | list[Part]) -> AsyncIterator[bytes]:
        for segment in segments:
            if isinstance(segment, bytes):
                yield segment
                continue
            start, stop = segment
            for at in range(start, stop, PIECE):
                try:
                    yield bytes(await waited(self._piece, key, value, (at, min(stop, at + PIECE))))
                except OSError as error:  # which Starlette treats as a disconnected client
                    raise RuntimeError(str(error)) from error

    def _piece(self, key: str, value: _Value, part: Part) -> Buffer:
        piece = self._read(key, value, part)
        if verbs.stamp(self.store, key) != value.stamp:
            raise ConflictError("the value has changed while it was sent", store=repr(self.store), key=key)
        return piece

    def _read(self, key: str, value: _Value, part: Part) -> Buffer:
        found = self.store.get(key, part) if value.whole is None else cut(value.whole, part)
        if found is None or len(found) != part[1] - part[0]:
            raise ConflictError("the value has changed while it was sent", store=repr(self.store), key=key)
        return found


class _Marks:
    """ETags by the stamps of values."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Hashable, str]] = OrderedDict()

    def of(self, key: str, stamp: Hashable) -> str:
        """Return the ETag of a value; the same in each run, if the stamp consists of text and numbers."""
        if _is_plain(stamp):
            return _quoted(repr(stamp).encode())
        known = self._known.get(key)
        if known is not None and known[0] == stamp:
            return known[1]
        etag = f'"{secrets.token_hex(12)}"'
        self._known[key] = stamp, etag
        if len(self._known) > _MOST_MARKS:
            self._known.popitem(last=False)
        return etag


def refusal(status: HTTPStatus, text: str, **fields: str) -> Response:
    """Return the answer to a request that is not granted: ``{"error": text}``."""
    return Response(json.dumps({"error": text}), status, fields, "application/json")


def failure(error: Exception, what: str) -> Response:
    """Return the answer to a request that failed because of the stored data, or of the store.

    The log gets all of the error, the client nothing of where the data is.
    """
    LOGGER.warning("%s", error)
    is_late = isinstance(error, StoreTimeoutError)
    reason = error.message if isinstance(error, OmnizarrError) else "it cannot be read"
    status = HTTPStatus.GATEWAY_TIMEOUT if is_late else HTTPStatus.INTERNAL_SERVER_ERROR
    return refusal(status, f"{visible(what)}: {redact(reason)}")


def _missing(key: str) -> Response:
    return refusal(HTTPStatus.NOT_FOUND, f"there is no {visible(key)}" if key else "there is no directory listing")


def _headers(value: _Value) -> dict[str, str]:
    return {"ETag": value.etag, "Accept-Ranges": "bytes", "Cache-Control": "no-cache"}


def _whole(value: _Value, key: str, body: Buffer) -> Response:
    fields = {**_headers(value), "Content-Length": str(value.size), "X-Content-Type-Options": "nosniff"}
    return Response(bytes(body), headers=fields, media_type=_media_type(key))


def _partial(value: _Value, media_type: str, fields: Mapping[str, str]) -> Response:
    return Response(b"", HTTPStatus.PARTIAL_CONTENT, {**_headers(value), **fields}, media_type)


def _multipart(parts: list[Part], size: int, media_type: str, boundary: str) -> list[bytes | Part]:
    segments: list[bytes | Part] = []
    for part in parts:
        head = f"Content-Type: {media_type}\r\nContent-Range: {_content_range(part, size)}\r\n\r\n"
        segments += [f"\r\n--{boundary}\r\n{head}".encode(), part]
    return [*segments, f"\r\n--{boundary}--\r\n".encode()]


def _length(segment: bytes | Part) -> int:
    return len(segment) if isinstance(segment, bytes) else segment[1] - segment[0]


def _content_range(part: Part, size: int) -> str:
    return f"bytes {part[0]}-{part[1] - 1}/{size}"


def _media_type(key: str) -> str:
    return "application/json" if key.endswith(DOCUMENTS) else "application/octet-stream"


def _quoted(content: Buffer) -> str:
    return f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def _is_plain(stamp: Any) -> bool:
    """Return whether a stamp means the same in every process."""
    return all(map(_is_plain, stamp)) if isinstance(stamp, tuple) else isinstance(stamp, str | bytes | int | None)
