"""The containers of virtual chunks that the configuration of an Icechunk repository names.

Version 1 of the format has it in ``config.yaml``, version 2 as a FlexBuffer in the file ``repo``. Only what containers
are made of is read: of YAML, what Icechunk writes.

Spec: FlatBuffers, "FlexBuffers"; Icechunk, format specification.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from omnizarr.stores.remote.icechunk_tables import broken

_FIELD: Final = "virtual_chunk_containers"
_MOST_VALUES: Final = 100_000
_MOST_DEPTH: Final = 32


class Container(NamedTuple):
    """A container of virtual chunks."""

    name: str | None
    prefix: str
    """The URL that the places of its chunks begin with, with a slash at its end."""
    kind: str
    """The kind of its store, such as ``s3``."""
    options: Mapping[str, Any]


def containers_of(found: Any) -> list[Container]:
    """Return the containers of a configuration, the longest prefix first. What is malformed is none."""
    made: list[Container] = []
    for each in found.values() if isinstance(found, Mapping) else ():
        prefix = each.get("url_prefix") if isinstance(each, Mapping) else None
        store = each.get("store") if isinstance(each, Mapping) else None
        if not isinstance(prefix, str) or "://" not in prefix:
            continue
        kind, options = next(iter(store.items())) if isinstance(store, Mapping) and len(store) == 1 else (store, {})
        name = each.get("name")
        made.append(
            Container(
                name if isinstance(name, str) else None,
                prefix if prefix.endswith("/") else f"{prefix}/",
                str(kind),
                options if isinstance(options, Mapping) else {},
            )
        )
    return sorted(made, key=lambda container: -len(container.prefix))


# -- YAML ----------------------------------------------------------------------------------

_line = re.compile(
    r"( *)((?:'(?:[^']|'')*'|\"(?:[^\"\\]|\\.)*\"|[^\s'\"#&*!|>%@`{}\[\],?-][^#]*?)):(?: +(.*))?"
).fullmatch
_tagged = re.compile(r"!(\w+)(?: +(.*))?").fullmatch


def of_yaml(text: str) -> Any:
    r"""Return the containers in a ``config.yaml``.

    >>> of_yaml("virtual_chunk_containers:\n  a:\n    url_prefix: s3://b/\n    store: !gcs {}\n")
    {'a': {'url_prefix': 's3://b/', 'store': {'gcs': {}}}}
    """
    lines = text.splitlines()
    if len(lines) > _MOST_VALUES:
        raise broken("the configuration of the repository is too long", f"{len(lines)} lines")
    start = next((at for at, line in enumerate(lines) if line.startswith(f"{_FIELD}:")), None)
    if start is None or lines[start].partition(":")[2].strip() in {"null", "{}", "~"}:
        return {}
    section = [line for line in lines[start + 1 :] if line.strip()]
    stop = next((at for at, line in enumerate(section) if not line.startswith(" ")), len(section))
    rows = _rows(section[:stop])
    return _mapping(list(rows))


def _rows(lines: list[str]) -> Iterator[tuple[int, str, str | None]]:
    for line in lines:
        match = _line(line.rstrip())
        if match is None:
            raise broken("a line in the configuration of the repository cannot be read", line.strip()[:80])
        yield len(match[1]), str(_scalar(match[2])), match[3]


def _mapping(rows: list[tuple[int, str, str | None]], depth: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = {}
    at = 0
    while at < len(rows):
        indent, key, value = rows[at]
        stop = next((end for end in range(at + 1, len(rows)) if rows[end][0] <= indent), len(rows))
        if indent < rows[0][0] or depth > _MOST_DEPTH:
            raise broken("a line in the configuration of the repository is not where it should be", key)
        tag = None if value is None else _tagged(value)
        inner: Any = _mapping(rows[at + 1 : stop], depth + 1) if stop > at + 1 else None
        if tag is not None:
            made[key] = {tag[1]: inner if inner is not None else _scalar(tag[2])}
        else:
            made[key] = inner if inner is not None else _scalar(value)
        at = stop
    return made


def _scalar(text: str | None) -> Any:
    if text is None or text in {"null", "~", ""}:
        return None
    if text in {"true", "false"}:
        return text == "true"
    if text == "{}":
        return {}
    if text.startswith("'"):
        return text[1:-1].replace("''", "'")
    if text.startswith('"'):
        try:
            return json.loads(text)
        except ValueError as error:
            raise broken("a text in the configuration of the repository cannot be read", text[:80]) from error
    return text


# -- FlexBuffers ------------------------------------------------------------------------------


def of_flexbuffer(data: bytes) -> Mapping[str, Any]:
    """Return the containers in a configuration that is a FlexBuffer. Raises StoreError if it is broken."""
    found = _Flex(data).root()
    containers = found.get(_FIELD) if isinstance(found, Mapping) else None
    return containers if isinstance(containers, Mapping) else {}


class _Flex:
    """A reader of FlexBuffers. Values that are read count, so that a small buffer is never large in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = min(_MOST_VALUES, 4 * len(data) + 16)

    def root(self) -> Any:
        if len(self._data) < 3:
            raise broken("the configuration of the repository is too short")
        width = self._data[-1]
        if width not in {1, 2, 4, 8}:
            raise broken("the configuration of the repository has an unknown width", width)
        return self._value(len(self._data) - 2 - width, width, self._data[-2], 0)

    def _bytes(self, at: int, size: int) -> bytes:
        if at < 0 or size < 0 or at + size > len(self._data):
            raise broken("the configuration of the repository refers to bytes behind its end")
        return self._data[at : at + size]

    def _number(self, at: int, width: int) -> int:
        return int.from_bytes(self._bytes(at, width), "little")

    def _value(self, at: int, width: int, packed: int, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _MOST_DEPTH:
            raise broken("the configuration of the repository has too many values")
        kind, inner = packed >> 2, 1 << (packed & 3)
        if kind in {0, 26}:
            return bool(self._number(at, width)) if kind else None
        if kind in {1, 2}:
            return int.from_bytes(self._bytes(at, width), "little", signed=kind == 1)
        place = at - self._number(at, width)
        if kind in {4, 5, 25}:
            size = 0 if kind == 4 else self._number(place - inner, inner)
            found = self._ended(place) if kind == 4 else self._bytes(place, size)
            return found if kind == 25 else found.decode(errors="replace")
        if kind in {6, 7}:
            return self._number(place, inner)
        if kind == 9:
            return self._map(place, inner, depth)
        if kind == 10:
            return [self._element(place, inner, number, depth) for number in range(self._count(place, inner))]
        return None  # numbers with a point, and vectors of one type: nothing of containers

    def _ended(self, at: int) -> bytes:
        end = self._data.find(b"\0", max(at, 0))
        return self._bytes(at, end - at)

    def _count(self, place: int, width: int) -> int:
        count = self._number(place - width, width)
        if count > self._left:
            raise broken("the configuration of the repository has too many values")
        return count

    def _element(self, place: int, width: int, number: int, depth: int) -> Any:
        count = self._number(place - width, width)
        kind = self._number(place + count * width + number, 1)
        return self._value(place + number * width, width, kind, depth + 1)

    def _map(self, place: int, width: int, depth: int) -> dict[str, Any]:
        keys = place - 3 * width
        keys_at, keys_width = keys - self._number(keys, width), self._number(keys + width, width)
        if keys_width not in {1, 2, 4, 8}:
            raise broken("the configuration of the repository has an unknown width", keys_width)
        made: dict[str, Any] = {}
        for number in range(self._count(place, width)):
            at = keys_at + number * keys_width
            name = self._ended(at - self._number(at, keys_width)).decode(errors="replace")
            made[name] = self._element(place, width, number, depth)
        return made
