"""What Google's storage answers to a put in the manner of its XML interface, and fake-gcs-server does not.

``python tests/gcsfront.py PORT PROGRAM ARGUMENT...`` runs the program, in whose arguments ``{port}`` is a free port,
and listens on PORT. A put becomes an upload of the JSON interface, with its condition; what that says of the new object
becomes the fields of the answer. Everything else goes through.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.faultproxy import Head, read_body, read_head

CONDITION = "x-goog-if-generation-match"


async def serve(port: int, real: int) -> None:
    """Serve until the process ends."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream: asyncio.StreamWriter | None = None
        try:
            there, upstream = await asyncio.open_connection("127.0.0.1", real)
            while (head := await read_head(reader)) is not None:
                body = b"".join([piece async for piece in read_body(reader, head)])
                upload = head.line.startswith("PUT ")
                upstream.write((as_upload(head, len(body)) if upload else to_host(head.raw, real)) + body)
                answer = await read_head(there)
                if answer is None:
                    break
                bare = head.line.startswith("HEAD ") or answer.status in (204, 304)
                said = b"" if bare else b"".join([piece async for piece in read_body(there, answer)])
                writer.write(as_put(answer, said) if upload and answer.status == 200 else answer.raw + said)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()
            if upstream is not None:
                upstream.close()

    async with await asyncio.start_server(talk, "127.0.0.1", port, backlog=1024) as server:
        await server.serve_forever()


def to_host(head: bytes, port: int) -> bytes:
    """Return the head of a request to the program itself: it looks at the name by which it is called."""
    return re.sub(rb"(?im)^host:[^\r\n]*", b"Host: 127.0.0.1:%d" % port, head, count=1)


def as_upload(head: Head, length: int) -> bytes:
    """Return the head of the upload that means the same as a put."""
    bucket, _, name = urlsplit(head.line.split(" ")[1]).path.lstrip("/").partition("/")
    target = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(unquote(name), safe='')}"
    if CONDITION in head.fields:
        target += f"&ifGenerationMatch={head.fields[CONDITION]}"
    return f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\n".encode()


def as_put(answer: Head, said: bytes) -> bytes:
    """Return the answer to a put: the fields of the new object."""
    if "chunked" in answer.fields.get("transfer-encoding", ""):
        said = b"".join(re.findall(rb"(?s)\{.*\}", said))
    made = json.loads(said)
    fields = f'ETag: "{made["etag"]}"\r\nx-goog-generation: {made["generation"]}\r\nContent-Length: 0\r\n\r\n'
    return b"HTTP/1.1 200 OK\r\n" + fields.encode("latin-1")


def main() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        real = listener.getsockname()[1]
    with subprocess.Popen([argument.replace("{port}", str(real)) for argument in sys.argv[2:]]) as program:
        while program.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", real), 1).close()
                break
            except OSError:
                pass
        asyncio.run(serve(int(sys.argv[1]), real))


if __name__ == "__main__":
    main()
