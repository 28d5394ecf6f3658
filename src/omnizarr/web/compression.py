"""Text compressed on its way: the documents of a hierarchy, and the page; never chunks, and never ranges.

Spec: RFC 9110, sections 8.8.3 (ETags of encoded values), 12.5.3 and 12.5.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SMALLEST: Final = 1000
"""Minimum number of bytes for which compression is worth the time."""
_LEVEL: Final = 5


class Compressed:
    """Middleware that compresses whole answers to ``GET``, for clients that accept gzip.

    The ETag of an answer that may be compressed is weak, as the same value has other bytes for other clients.

    Parameters
    ----------
    app : ASGI application
    ends : sequence of str
        How the paths end of which the answers are compressed; by default those of all.
    """

    def __init__(self, app: ASGIApp, ends: Sequence[str] = ("",)) -> None:
        self._app = app
        self._gzip = GZipMiddleware(app, minimum_size=_SMALLEST, compresslevel=_LEVEL)
        self._ends = tuple(ends)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or not scope["path"].endswith(self._ends):
            await self._app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        is_whole = scope["method"] == "GET" and "range" not in asked
        is_weak = is_whole and "gzip" in asked.get("accept-encoding", "")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if "accept-encoding" not in headers.get("vary", "").lower():  # short answers, and 304
                    headers.add_vary_header("Accept-Encoding")
                etag = headers.get("etag", "")
                if is_weak and etag.startswith('"'):
                    headers["etag"] = f"W/{etag}"
            await send(message)

        await (self._gzip if is_whole else self._app)(scope, receive, send_with_headers)
