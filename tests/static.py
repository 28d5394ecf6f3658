"""A server of the files below a directory, for machines without nginx: ``python tests/static.py DIRECTORY PORT``.

GET and HEAD, one range, ETags and their conditions, many requests per connection; a path ``/after/0.020/...`` is
answered so many seconds later.

Spec: RFC 9110, sections 13 and 14.
"""

from __future__ import annotations

import asyncio
import re
import sys
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote

_after = re.compile(r"/after/([0-9.]+)(/.*)").fullmatch
_range = re.compile(r"bytes=(\d*)-(\d*)").fullmatch


async def serve(directory: Path, port: int) -> None:
    """Serve until the process ends."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                verb, path, _ = head[0].split(" ", 2)
                fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                if after := _after(path):
                    await asyncio.sleep(float(after[1]))
                    path = after[2]
                writer.writelines(answer(directory, verb, path, fields))
                await writer.drain()
                if fields.get("connection", "").lower() == "close":
                    return
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", port, backlog=1024) as server:
        await server.serve_forever()


def answer(directory: Path, verb: str, path: str, fields: dict[str, str]) -> list[bytes]:
    """Return the head and the body of the answer."""
    if verb not in ("GET", "HEAD"):
        return reply(HTTPStatus.METHOD_NOT_ALLOWED)
    file = (directory / unquote(path.partition("?")[0]).lstrip("/")).resolve()
    if file.is_relative_to(directory) and file.is_dir():
        return reply(HTTPStatus.FORBIDDEN, verb=verb)  # as nginx
    if not file.is_relative_to(directory) or not file.is_file():
        return reply(HTTPStatus.NOT_FOUND, verb=verb)
    status = file.stat()
    etag = f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
    described = {"ETag": etag, "Accept-Ranges": "bytes"}
    if "if-match" in fields and fields["if-match"] not in ("*", etag):
        return reply(HTTPStatus.PRECONDITION_FAILED, verb=verb)
    if fields.get("if-none-match") in ("*", etag):
        return reply(HTTPStatus.NOT_MODIFIED, described, verb=verb)
    body = file.read_bytes()
    asked = _range(fields.get("range", ""))
    if asked is None or asked.groups() == ("", ""):
        return reply(HTTPStatus.OK, described, body, verb=verb)
    first, last = asked.groups()
    start = int(first) if first else max(0, len(body) - int(last))
    stop = min(int(last) + 1, len(body)) if first and last else len(body)
    if start >= stop:
        unsatisfied = described | {"Content-Range": f"bytes */{len(body)}"}
        return reply(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, unsatisfied, verb=verb)
    described["Content-Range"] = f"bytes {start}-{stop - 1}/{len(body)}"
    return reply(HTTPStatus.PARTIAL_CONTENT, described, body[start:stop], verb=verb)


def reply(
    status: HTTPStatus, fields: dict[str, str] | None = None, body: bytes = b"", verb: str = "GET"
) -> list[bytes]:
    """Return the head, and the body unless the verb or the status has none."""
    lines = [f"HTTP/1.1 {status} {status.phrase}"]
    if status != HTTPStatus.NOT_MODIFIED:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in (fields or {}).items()]
    return [("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), b"" if verb == "HEAD" else body]


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]).resolve(), int(sys.argv[2])))
