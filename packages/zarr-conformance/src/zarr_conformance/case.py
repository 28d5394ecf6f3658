"""A case: stored data, the sentence that it proves, and what an implementation must make of it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Json = Any
Array = NDArray[Any]


@dataclass(frozen=True)
class Sentence:
    """What a document says, in our words, and where."""

    document: str
    section: str
    says: str

    def __str__(self) -> str:
        return f"{self.document}, {self.section}: {self.says}"


@dataclass(frozen=True)
class Values:
    """Elements that must come out: raw bytes, or JSON for types of variable length."""

    shape: tuple[int, ...]
    data_type: str
    raw: bytes | None = None
    items: Json = None
    """Nested lists, where elements have no fixed size."""
    mask: int | None = None
    """The bits of each byte that mean something."""

    @property
    def format(self) -> str:
        return "json" if self.raw is None else "raw"

    def differences(self, output: bytes) -> str | None:
        """Return what is wrong with an output, or nothing."""
        if self.raw is None:
            return self.of_items(output)
        expected: Array = np.frombuffer(self.raw, np.uint8)
        found: Array = np.frombuffer(output, np.uint8)
        if len(found) != len(expected):
            return f"{len(found)} bytes, expected {len(expected)} of {self.data_type} {list(self.shape)}"
        if self.mask is not None:
            expected, found = expected & self.mask, found & self.mask
        wrong = np.flatnonzero(expected != found)
        if not wrong.size:
            return None
        size = max(len(self.raw) // max(math.prod(self.shape), 1), 1)
        at = int(wrong[0]) // size
        place = tuple(int(i) for i in np.unravel_index(at, self.shape)) if self.shape else ()
        pair = (each[at * size : at * size + size].tobytes().hex() for each in (found, expected))
        count = len(set((wrong // size).tolist()))
        return f"{count} of {math.prod(self.shape)} elements differ; at {list(place)} " + " instead of ".join(pair)

    def of_items(self, output: bytes) -> str | None:
        try:
            found = json.loads(output)
        except ValueError as error:
            return f"no JSON: {error}"
        expected = json.loads(json.dumps(self.items))
        return None if found == expected else f"{brief(found)} instead of {brief(expected)}"

    def description(self) -> Json:
        """Return what stands in ``expected.json`` beside the raw bytes."""
        kind: Json = {"expect": "values", "shape": list(self.shape), "data_type": self.data_type}
        if self.raw is None:
            return {**kind, "items": self.items}
        return kind if self.mask is None else {**kind, "mask": self.mask}


@dataclass(frozen=True)
class Nodes:
    """Nodes that must be listed. Members that an implementation does not print are not compared."""

    nodes: tuple[Json, ...]
    format: str = "json"

    def differences(self, output: bytes) -> str | None:
        try:
            found = {each["path"].strip("/"): each for each in json.loads(output)}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return f"not a list of nodes: {error!r}"
        expected = {each["path"]: each for each in self.nodes}
        if lost := sorted(expected.keys() - found.keys()):
            return f"not listed: {brief(lost)}"
        if more := sorted(found.keys() - expected.keys()):
            return f"listed, though not there: {brief(more)}"
        for path, node in expected.items():
            for name, value in node.items():
                if name != "path" and name in found[path] and found[path][name] != value:
                    return f"{path or '/'}: {name} is {brief(found[path][name])} instead of {brief(value)}"
        return None

    def description(self) -> Json:
        return {"expect": "nodes", "nodes": list(self.nodes)}


@dataclass(frozen=True)
class Refusal:
    """The implementation must end with an error: it cannot know what the data mean."""

    why: str
    unknown: bool = False
    """What it cannot know is a feature: then to say so is right, too."""
    format: str = "raw"

    def description(self) -> Json:
        return {"expect": "refusal", "why": self.why}


@dataclass(frozen=True)
class Survival:
    """Values or an error will do. A crash, endless work, or more memory than the limit will not."""

    why: str
    format: str = "raw"

    def description(self) -> Json:
        return {"expect": "survival", "why": self.why}


@dataclass(frozen=True)
class Written:
    """The implementation must store this, and the decoder of this package must read it."""

    request: Json
    """What to create, in the terms of the format."""
    shape: tuple[int, ...]
    data_type: str
    raw: bytes
    format: str = "raw"

    def description(self) -> Json:
        return {"expect": "written", "request": self.request, "shape": list(self.shape), "data_type": self.data_type}


Expectation = Values | Nodes | Refusal | Survival | Written


@dataclass(frozen=True)
class Case:
    """One thing that an implementation does right or wrong."""

    level: str
    name: str
    title: str
    sentence: Sentence
    files: Mapping[str, bytes]
    expects: Expectation
    path: str = ""
    """Of the node, within the store."""
    selection: str | None = None
    store: str = "directory"
    """``directory``, ``zip`` or ``http``."""
    writer: str = "the encoder of zarr-conformance"
    licence: str = "CC0-1.0"
    faults: Mapping[str, int] = field(default_factory=dict)
    """For ``http``: keys that the server answers with a status of its own."""
    archive: Path | None = None
    """A packed hierarchy in place of `files`; it is unpacked once for all cases that share it."""

    @property
    def id(self) -> str:
        return f"{self.level}/{self.name}"

    @property
    def verb(self) -> str:
        match self.expects:
            case Nodes():
                return "list"
            case Written():
                return "write"
        return "read"

    @cached_property
    def digest(self) -> str:
        """Eight digits that change with the stored data and with what is expected."""
        summary = hashlib.sha256()
        for key in sorted(self.files):
            summary.update(key.encode() + b"\0" + self.files[key])
        summary.update(b"" if self.archive is None else self.archive.read_bytes())
        expected = self.expects.raw if isinstance(self.expects, Values | Written) else None
        summary.update((expected or b"") + json.dumps(self.description(), sort_keys=True).encode())
        return summary.hexdigest()[:8]

    def description(self) -> Json:
        """Return what ``case.json`` holds."""
        return {
            "id": self.id,
            "title": self.title,
            "sentence": {
                "document": self.sentence.document,
                "section": self.sentence.section,
                "says": self.sentence.says,
            },
            "verb": self.verb,
            "path": self.path,
            "selection": self.selection,
            "store": self.store,
            **self.expects.description(),
            "writer": self.writer,
            "licence": self.licence,
        }

    def put(self, directory: Path) -> Path:
        """Write the store below a directory; return the path of the node, as the implementation gets it."""
        directory.mkdir(parents=True, exist_ok=True)
        if self.verb == "write":
            request = directory / "case.json"
            request.write_text(json.dumps(self.request()), "utf-8")
            return directory / "store"
        if self.archive is not None:
            return self.unpacked(directory.parent)
        if self.store == "zip":
            path = directory / "store.zip"
            path.write_bytes(zipped(self.files))
            return path
        root = directory / "store"
        root.mkdir(exist_ok=True)
        for key, value in self.files.items():
            place = root / key
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(value)
        return root / self.path if self.path else root

    def unpacked(self, directory: Path) -> Path:
        """Unpack the archive below a directory if no other case did; return the path of the node."""
        if self.archive is None:
            raise TypeError(f"{self.id} has no archive")
        if self.store == "zip":
            return self.archive
        root = directory / "corpus" / self.archive.parent.parent.name / self.archive.parent.name
        if not root.exists():
            with zipfile.ZipFile(self.archive) as packed:
                packed.extractall(root)
        return root / self.path if self.path else root

    def request(self) -> Json:
        """Return what ``--write`` is given: what to create, and its values in base64."""
        if not isinstance(self.expects, Written):
            raise TypeError(f"{self.id} is not to be written")
        return {**self.expects.request, "values": base64.b64encode(self.expects.raw).decode()}


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return files as a zip archive without compression, the same bytes each time."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for key in sorted(files):
            archive.writestr(zipfile.ZipInfo(key), files[key])
    return buffer.getvalue()


def raw_of(values: Array) -> bytes:
    """Return elements as raw little-endian bytes in C order, without padding between fields."""
    if values.dtype.names:
        packed = np.empty(values.shape, little(values.dtype))
        for name in values.dtype.names:
            packed[name] = values[name]
        return packed.tobytes()
    return values.astype(values.dtype.newbyteorder("<")).tobytes()


def little(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return a type with fields in little-endian order, without padding."""
    if dtype.names is None or dtype.fields is None:
        return dtype.newbyteorder("<")
    return np.dtype([(name, little(dtype.fields[name][0])) for name in dtype.names])


def values_of(values: Array, data_type: Json, mask: int | None = None) -> Values:
    """Return the expectation that an array comes out."""
    name = data_type if isinstance(data_type, str) else json.dumps(data_type)
    if values.dtype == object:
        items = values.tolist()
        return Values(values.shape, name, items=encoded(items))
    return Values(values.shape, name, raw=raw_of(values), mask=mask)


def encoded(items: Json) -> Json:
    """Return nested lists with byte strings in base64."""
    if isinstance(items, list):
        return [encoded(each) for each in items]
    return base64.b64encode(items).decode() if isinstance(items, bytes) else items


def parse_selection(text: str) -> tuple[int | slice, ...]:
    """Return the selection that ``0:2,::3,5`` says.

    Examples
    --------
    >>> parse_selection("0:2,::3,5")
    (slice(0, 2, None), slice(None, None, 3), 5)
    """
    parts: list[int | slice] = []
    for part in text.split(","):
        if ":" in part:
            parts.append(slice(*(int(each) if each else None for each in part.split(":"))))
        elif part.strip():
            parts.append(int(part))
    return tuple(parts)


def brief(value: Json, most: int = 120) -> str:
    """Return a value as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= most else text[:most] + "…"


def chosen(cases: Iterable[Case], levels: Sequence[str] = (), words: Sequence[str] = ()) -> list[Case]:
    """Return the cases of some levels (``v3`` means all that begin with ``v3-``) whose names contain some words."""
    return [
        case
        for case in cases
        if (not levels or any(case.level == level or case.level.startswith(f"{level}-") for level in levels))
        and (not words or any(word in case.id for word in words))
    ]
