"""Digests: writing and reading them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from omnizarr.support.text import visible
from omnizarr.tools import strangers

_LINE: Final = re.compile(r"(omnizarr1:[a-z0-9]+:[0-9a-f]{64})  (/.*)")
_ESCAPED: Final = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class NodeDigest:
    """The digest of a node with everything below it.

    Attributes
    ----------
    path : str
        Path below the topmost node, without a leading slash.
    kind : {"array", "group"}
    digest : str
        Such as ``omnizarr1:sha256:...``.
    """

    path: str
    kind: str
    digest: str

    def __str__(self) -> str:
        path = "".join(_ESCAPED.get(character, character) for character in self.path)
        return f"{self.digest}  /{path}"

    def to_dict(self) -> dict[str, str]:
        """Return it as JSON values."""
        return {"path": f"/{self.path}", "kind": self.kind, "digest": self.digest}


@dataclass(frozen=True, slots=True)
class Digest:
    """The digests of a hierarchy.

    ``str`` is the text of a file that `omnizarr.check` verifies: a line for each node, with digest and path.

    Attributes
    ----------
    nodes : tuple of NodeDigest
        The digests of all nodes, the topmost first.
    left_out : tuple of str
        Keys, below the topmost node, of files that are not Zarr: the digests do not cover them. Those of operating
        systems are not listed.
    """

    nodes: tuple[NodeDigest, ...]
    left_out: tuple[str, ...] = field(default=(), compare=False)

    @property
    def digest(self) -> str:
        """The digest of the topmost node, which covers everything below it."""
        return self.nodes[0].digest

    def __iter__(self) -> Iterator[NodeDigest]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __str__(self) -> str:
        lines = [*map(visible, map(str, self.nodes))]
        if self.left_out:
            lines.append(f"# without {strangers.counted(self.left_out)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return them as JSON values."""
        nodes = [node.to_dict() for node in self.nodes]
        return {"digest": self.digest, "nodes": nodes, "left_out": list(self.left_out)}

    def to_json(self, indent: int | None = 2) -> str:
        """Return them as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent)


def expected(given: Any) -> dict[str, str]:
    """Return digests by path: from a file, a `Digest`, a mapping, or the digest of the topmost node.

    Raises
    ------
    ValueError
        If it is something else, or a line of the file is not a digest.
    """
    if isinstance(given, Digest):
        return {node.path: node.digest for node in given}
    if isinstance(given, Mapping):
        return {str(path).strip("/"): str(digest) for path, digest in given.items()}
    if isinstance(given, str) and _LINE.fullmatch(f"{given}  /"):
        return {"": given}
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"digest must be a file, a Digest or a mapping, not {type(given).__name__}")
    return parse(Path(given).read_text(encoding="utf-8"), os.fspath(given))


def parse(text: str, name: str = "digests") -> dict[str, str]:
    """Return the digests in lines of text, by path. Empty lines, and lines that begin with ``#``, are ignored.

    >>> parse(f"omnizarr1:sha256:{'0' * 64}  /a")["a"].rpartition(":")[0]
    'omnizarr1:sha256'
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = _LINE.fullmatch(line)
        if parts is None:
            raise ValueError(
                f"{name}: line {number} is not a digest and path, as `omnizarr digest` prints them: {line!r}"
            )
        found[_unescaped(parts[2]).strip("/")] = parts[1]
    if not found:
        raise ValueError(f"{name}: there is no digest in it; make one by: omnizarr digest PATH > FILE")
    return found


def _unescaped(path: str) -> str:
    back = {written: character for character, written in _ESCAPED.items()}
    return re.sub(r"\\[\\nr]", lambda found: back[found[0]], path)
