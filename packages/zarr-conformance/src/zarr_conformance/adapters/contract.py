"""The contract of zarr-conformance, for implementations that Python can call. Copy it beside your adapter.

An adapter names its functions and calls `serve`::

    serve("mine", mine.__version__, read=lambda path, selection: mine.open(path)[selection])

It needs NumPy, and nothing of zarr-conformance.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np

REFUSED, UNSUPPORTED = 1, 3


class UnsupportedError(Exception):
    """The implementation does not claim to know this feature."""


def serve(
    name: str,
    version: str,
    *,
    read: Callable[[str, Any], Any] | None = None,
    list_nodes: Callable[[str], list[dict[str, Any]]] | None = None,
    write: Callable[[str, dict[str, Any], Any], None] | None = None,
    unsupported: Callable[[BaseException], bool] = lambda _: False,
) -> None:
    """Answer the command line.

    Parameters
    ----------
    name, version
        Of the implementation.
    read
        Called with the path of an array and a selection (a tuple of integers and slices, or ``...``), returns elements.
    list_nodes
        Called with the path of a group, returns objects with ``path``, relative to it, ``node_type``, and as many of
        ``shape``, ``attributes`` and ``dimension_names`` as the implementation tells.
    write
        Called with the path of a new array, the document that it must have, and its values.
    unsupported
        Called with an error: whether it says that a feature is unknown, not that the data are wrong.
    """

    def act(request: dict[str, Any]) -> bytes:
        if request["verb"] == "list":
            return json.dumps(called(list_nodes)(request["path"]), default=plain).encode()
        if request["verb"] == "write":
            with open(request["case"], encoding="utf-8") as file:
                document = json.load(file)
            called(write)(request["path"], document, values_of(document))
            return b""
        selection = request.get("selection")
        found = np.asarray(called(read)(request["path"], ... if selection is None else parsed(selection)))
        return as_json(found) if request.get("format") == "json" else as_raw(found)

    def attempt(request: dict[str, Any]) -> tuple[str, bytes, str]:
        try:
            return "ok", act(request), ""
        except UnsupportedError as error:
            return "unsupported", b"", str(error)
        except BaseException as error:  # an implementation may raise anything, a panic of Rust among it
            if isinstance(error, KeyboardInterrupt):
                raise
            state = "unsupported" if unsupported(error) else "refused"
            return state, b"", f"{type(error).__name__}: {error}"[:1000]

    # Libraries print: standard output is for answers alone.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    arguments = sys.argv[1:]
    if arguments == ["--batch"]:
        reply(output, {"zarr_conformance": 1, "implementation": name, "version": version})
        for line in sys.stdin.buffer:
            request = json.loads(line)
            state, value, message = attempt(request)
            reply(output, {"id": request["id"], "status": state, "length": len(value), "message": message}, value)
        return
    state, value, message = attempt(request_of(arguments))
    output.write(value)
    output.flush()
    if message:
        print(message, file=sys.stderr)
    sys.exit({"ok": 0, "unsupported": UNSUPPORTED}.get(state, REFUSED))


def called(function: Callable[..., Any] | None) -> Callable[..., Any]:
    if function is None:
        raise UnsupportedError("the implementation has no such function")
    return function


def reply(output: Any, head: dict[str, Any], value: bytes = b"") -> None:
    output.write(json.dumps(head).encode() + b"\n" + value)
    output.flush()


def request_of(arguments: list[str]) -> dict[str, Any]:
    """Return what the command line asks for."""
    words = [part for each in arguments for part in (each.split("=", 1) if each.startswith("--") else [each])]
    if words[0] == "--write":
        return {"verb": "write", "case": words[1], "path": words[2]}
    named = dict(zip(words[::2], words[1::2], strict=True))
    if "--list" in named:
        return {"verb": "list", "path": named["--list"]}
    more = {"selection": named.get("--selection"), "format": named.get("--format", "raw")}
    return {"verb": "read", "path": named["--array_path"], **more}


def parsed(text: str) -> tuple[int | slice, ...]:
    parts: list[int | slice] = []
    for part in text.split(","):
        if ":" in part:
            parts.append(slice(*(int(each) if each else None for each in part.split(":"))))
        elif part.strip():
            parts.append(int(part))
    return tuple(parts)


def values_of(document: dict[str, Any]) -> Any:
    """Take the values out of a request to write."""
    kind = document["data_type"] if document["zarr_format"] == 3 else np.dtype(document["dtype"]).newbyteorder("<").str
    raw = base64.b64decode(document.pop("values"))
    return np.frombuffer(raw, np.dtype(kind).newbyteorder("<")).reshape(document["shape"])


def is_v3(path: str) -> bool:
    """Return whether a node of Zarr v3 is there, for implementations that want to know before they look."""
    if not path.startswith("http"):
        return os.path.exists(f"{path}/zarr.json")
    try:
        with urllib.request.urlopen(f"{path}/zarr.json"):
            return True
    except urllib.error.HTTPError as error:
        return error.code != 404


def fill_of(document: dict[str, Any]) -> Any:
    """Return the fill value of a request to write, as a Python object."""

    def number(each: Any) -> Any:
        return float(each.replace("Infinity", "inf")) if isinstance(each, str) else each

    spelled = document["fill_value"]
    return complex(*map(number, spelled)) if isinstance(spelled, list) else number(spelled)


def as_raw(values: Any) -> bytes:
    """Return elements as little-endian bytes in C order, without padding."""
    if values.dtype.names:
        packed = np.empty(values.shape, little(values.dtype))
        for name in values.dtype.names:
            packed[name] = values[name]
        return packed.tobytes()
    if values.dtype.kind in "OT":
        raise UnsupportedError(f"{values.dtype} has no raw bytes: ask for JSON")
    order = values.dtype.byteorder
    big = order == ">" or (order == "=" and sys.byteorder == "big")
    return (values.byteswap() if big else values).tobytes()


def little(dtype: Any) -> Any:
    if dtype.subdtype is not None:
        return np.dtype((little(dtype.subdtype[0]), dtype.subdtype[1]))
    if dtype.names is None:
        return dtype if dtype.kind in "SV" else dtype.newbyteorder("<")
    return np.dtype([(name, little(dtype[name])) for name in dtype.names])


def as_json(values: Any) -> bytes:
    """Return elements as nested lists; byte strings in base64."""
    return json.dumps(encoded(values.tolist())).encode()


def encoded(items: Any) -> Any:
    if isinstance(items, list):
        return [encoded(each) for each in items]
    return base64.b64encode(items).decode() if isinstance(items, bytes) else items


def plain(value: Any) -> Any:
    """Return what json cannot: numbers of NumPy, tuples within mappings of a library's own."""
    if hasattr(value, "item"):
        return value.item()
    return dict(value) if hasattr(value, "keys") else list(value)
