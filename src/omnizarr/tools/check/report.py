"""The result of a check."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import Any, Final, Literal, TypeAlias

from omnizarr.errors import MetadataError
from omnizarr.formats import documents
from omnizarr.nodes import wording
from omnizarr.support.text import visible
from omnizarr.tools.check.codes import CODES, RAISED_IF_STRICT, REPAIRABLE

Severity: TypeAlias = Literal["error", "warning", "note"]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""The severities, the worst first."""

MOST: Final = 10_000
"""Maximum number of findings of one code at one node; further ones are only counted."""

_LONGEST = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a check found.

    Attributes
    ----------
    code : str
        The kind of finding. Codes do not change; the page "Checking" of the manual lists them.
    severity : {"error", "warning", "note"}
        error: something cannot be read, or may be read wrong. warning: omnizarr reads it, but the format
        forbids it, or other readers fail. note: worth knowing.
    path : str
        Path of the node, without a leading slash.
    key : str or None
        Store key of the document or chunk.
    pointer : str
        JSON pointer within the document; "" for the whole document, or without a document.
    message : str
        What is wrong, in a few words.
    found, expected : object
        The actual value and the expected one; None if there is nothing to show.
    remedy : str
        What to do about it.
    spec : str
        The section of the specification.
    repairable : bool
        Whether it can be repaired without guessing.
    """

    code: str
    severity: Severity
    path: str
    key: str | None = None
    pointer: str = ""
    message: str = ""
    found: object = None
    expected: object = None
    remedy: str = ""
    spec: str = ""
    repairable: bool = False

    def __str__(self) -> str:
        return visible(f"{self.severity}: /{self.path}: {self.text} [{self.code}]")

    @property
    def text(self) -> str:
        """Place within the node, message, found and expected values, on one line."""
        place = "" if self.key is None else self.key
        if self.pointer:
            place += f"{'#' if place else ''}{self.pointer}"
        parts = [f"found {_brief(self.found)}"] if self.found is not None else []
        if self.expected is not None:
            parts.append(f"expected {_brief(self.expected)}")
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}: {', '.join(parts)}" if parts else text

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as JSON values."""
        plain = asdict(self)
        return {**plain, "found": _plain(self.found), "expected": _plain(self.expected)}


def _brief(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _plain(value: object) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    try:
        return documents.to_json(value, quotes_nonfinite=True)
    except MetadataError:
        return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """The findings of a check, and counts of checked nodes and chunks.

    Attributes
    ----------
    store : str
    path : str
        Path of the checked node.
    findings : tuple of Finding
        The findings by path, the worst first.
    nodes : int
        Number of nodes with documents.
    chunks : int
        Number of stored chunks (shards) that were checked.
    missing : int or None
        Number of chunks (shards) that are not stored and read as the fill value. None if the store cannot list,
        and chunks were not read.
    data : bool
        Whether chunks were decoded. If not, only their keys and sizes were checked.
    strict : bool
        Whether warnings count as well.
    """

    store: str
    path: str
    findings: tuple[Finding, ...]
    nodes: int
    chunks: int
    missing: int | None
    data: bool
    strict: bool

    @property
    def ok(self) -> bool:
        """Whether there are no errors and, if the check was strict, no warnings."""
        return not self.counts["error"] and not (self.strict and self.counts["warning"])

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings of each severity."""
        found = Counter(finding.severity for finding in self.findings)
        return {severity: found[severity] for severity in SEVERITIES}

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def summary(self) -> str:
        """Return a summary on one line."""
        counts = [wording.plural(count, severity) for severity, count in self.counts.items() if count]
        looked = "decoded" if self.data else "looked at"
        chunks = f"{wording.plural(self.chunks, 'chunk')} {looked}"
        return f"{', '.join(counts) or 'nothing found'} · {wording.plural(self.nodes, 'node')}, {chunks}"

    def __str__(self) -> str:
        return "\n".join([*map(str, self.findings), self.summary()])

    def __repr__(self) -> str:
        return f"<CheckReport {'ok' if self.ok else 'not ok'}: {self.summary()}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{finding.severity}</td><td>/{escape(finding.path)}</td>"
            f"<td>{escape(finding.text)}</td><td><code>{finding.code}</code></td></tr>"
            for finding in self.findings
        )
        return f"<p>{escape(self.summary())}</p><table>{rows}</table>"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "store": self.store,
            "path": f"/{self.path}",
            "ok": self.ok,
            "strict": self.strict,
            "data": self.data,
            "nodes": self.nodes,
            "chunks": self.chunks,
            "missing": self.missing,
            "counts": self.counts,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the report as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


@dataclass
class Findings:
    """Findings as they are added, from several threads."""

    strict: bool = False
    found: list[Finding] = field(default_factory=list)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def add(self, code: str, path: str, message: str, **fields: Any) -> None:
        """Add a finding. Missing fields come from the entry of its code in `CODES`."""
        kind = CODES[code]
        severity: Severity = fields.pop("severity", None) or kind.severity
        if self.strict and code in RAISED_IF_STRICT:
            severity = "warning"
        fields["remedy"] = fields.get("remedy") or kind.remedy
        fields["spec"] = fields.get("spec") or ""
        fields.setdefault("repairable", code in REPAIRABLE)
        finding = Finding(code=code, severity=severity, path=path, message=message, **fields)
        with self._guard:
            self._counts[code, path] += 1
            if self._counts[code, path] <= MOST:
                self.found.append(finding)

    def rebase(self, since: int, base: str) -> None:
        """Prepend `base` to the pointers of the findings from number `since` on, which are about a part of it."""
        if base:
            self.found[since:] = [replace(one, pointer=base + one.pointer) for one in self.found[since:]]

    def sorted(self) -> tuple[Finding, ...]:
        """Return all findings by path, the worst first. If there were too many of a kind, a count replaces the rest."""
        more = [
            Finding(code=code, severity=CODES[code].severity, path=path, message=f"{count - MOST:,} more of these")
            for (code, path), count in self._counts.items()
            if count > MOST
        ]
        return tuple(sorted([*self.found, *more], key=_order))


def _order(finding: Finding) -> tuple[Any, ...]:
    return (
        finding.path.split("/"),
        SEVERITIES.index(finding.severity),
        finding.key is None,
        finding.key or "",
        finding.pointer,
        finding.code,
    )


def grouped(findings: tuple[Finding, ...]) -> Mapping[str, list[Finding]]:
    """Return findings by path of the node."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.path, []).append(finding)
    return groups
