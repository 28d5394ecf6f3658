"""What a check finds, and the account that it gives."""

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
from omnizarr.tools.checking.codes import CODES, RAISED_IF_STRICT, REPAIRABLE

Severity: TypeAlias = Literal["error", "warning", "note"]

SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")
"""From the worst on."""

MOST: Final = 10_000
"""Findings of one code at one node; of more only the number is told."""

_LONGEST = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check found.

    Attributes
    ----------
    code : str
        What kind of thing, in words that stay the same: one of the page "Checking" of the manual.
    severity : {"error", "warning", "note"}
        error: something cannot be read, or what is read may be wrong. warning: it is read here, but the format forbids
        it, or other readers fail. note: worth knowing.
    path : str
        Path of the node, without a leading slash.
    key : str or None
        Store key concerned.
    pointer : str
        JSON pointer within the document; "" for all of it, or where there is no document.
    message : str
        What is wrong, in one clause.
    found, expected : object
        None where there is nothing to show.
    remedy : str
        What to do about it.
    spec : str
        Where a specification says so.
    repairable : bool
        It can be mended without guessing.
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
        """Place within the node, message, and what was found and expected, on one line."""
        place = "" if self.key is None else self.key
        if self.pointer:
            place += f"{'#' if place else ''}{self.pointer}"
        parts = [f"found {_brief(self.found)}"] if self.found is not None else []
        if self.expected is not None:
            parts.append(f"expected {_brief(self.expected)}")
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}: {', '.join(parts)}" if parts else text

    def to_dict(self) -> dict[str, Any]:
        """Return the finding in plain JSON types."""
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
    """What a check found, and how much it looked at.

    Attributes
    ----------
    store : str
    path : str
        Where the check began.
    findings : tuple of Finding
        By path, the worst first.
    nodes : int
        Nodes with documents.
    chunks : int
        Stored chunks (shards) that were looked at.
    missing : int or None
        Chunks (shards) that could be stored and are not: they read as the fill value. None if the store cannot list,
        and chunks were not read.
    data : bool
        Whether chunks were decoded, or only their keys and sizes looked at.
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
        """Whether there are no errors and, if the check was strict, no warnings either."""
        return not self.counts["error"] and not (self.strict and self.counts["warning"])

    @property
    def counts(self) -> dict[str, int]:
        """How many findings there are of each severity."""
        found = Counter(finding.severity for finding in self.findings)
        return {severity: found[severity] for severity in SEVERITIES}

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def summary(self) -> str:
        """Return the account in one line."""
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
        """Return the account in plain JSON types."""
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
        """Return the account as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


@dataclass
class Findings:
    """Findings as they come, from several threads."""

    strict: bool = False
    found: list[Finding] = field(default_factory=list)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def add(self, code: str, path: str, message: str, **fields: Any) -> None:
        """Enter something that was found. What is not said of it is what `CODES` says of its code."""
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
        """Put `base` before the pointers of the findings from number `since` on: they are about a part of it."""
        if base:
            self.found[since:] = [replace(one, pointer=base + one.pointer) for one in self.found[since:]]

    def sorted(self) -> tuple[Finding, ...]:
        """Return all findings by path, the worst first; where there were too many of a kind, the number left out."""
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
