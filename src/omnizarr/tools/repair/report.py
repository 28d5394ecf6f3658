"""The report of a repair: actions, done or planned, and remaining findings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Final

from omnizarr.nodes import wording
from omnizarr.tools.check.report import Finding

_LONGEST: Final = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """Something that was repaired, or would be.

    Attributes
    ----------
    code : str
        The code of the finding; see `check`.
    path : str
        Path of the node, without a leading slash.
    key : str
        Store key that was changed, written or deleted.
    pointer : str
        JSON pointer within the document; "" for the whole document, or without a document.
    what : str
        What was done, in plain words.
    before, after : str
        The old and the new value: JSON, or a number of bytes; "" for nothing.
    done : bool
        False in a dry run, and if another writer has changed the value meanwhile.
    kept : str
        File with the old value of the key, relative to the backup; "" if there was none, or no backup.
    """

    code: str
    path: str
    key: str
    pointer: str = ""
    what: str
    before: str = ""
    after: str = ""
    done: bool = False
    kept: str = ""

    def __str__(self) -> str:
        return f"{'did' if self.done else 'did not'}: /{self.path}: {self.text} [{self.code}]"

    @property
    def text(self) -> str:
        """Place within the node, action, and old and new value, on one line."""
        place = f"{self.key}#{self.pointer}" if self.pointer else self.key
        change = ""
        if self.before or self.after:
            change = f": {_brief(self.before) or 'nothing'} -> {_brief(self.after) or 'nothing'}"
        return f"{place}: {self.what}{change}"


def _brief(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The report of a repair: actions, done or planned, and remaining findings.

    Attributes
    ----------
    store : str
    path : str
        Path of the repaired node.
    dry_run : bool
        Whether nothing was changed.
    actions : tuple of Action
        The repairs in order.
    left : tuple of Finding
        Errors and warnings that were found and not repaired, with remedies.
    backup : str or None
        Directory with the old values and this report; None if nothing was kept.
    """

    store: str
    path: str
    dry_run: bool
    actions: tuple[Action, ...]
    left: tuple[Finding, ...]
    backup: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is left to do: all actions were done, and there are no errors."""
        return all(action.done for action in self.actions) and not any(one.severity == "error" for one in self.left)

    def __bool__(self) -> bool:
        return self.ok

    def __iter__(self) -> Iterator[Action]:
        return iter(self.actions)

    def __len__(self) -> int:
        return len(self.actions)

    def summary(self) -> str:
        """Return a summary on one line."""
        done = sum(action.done for action in self.actions)
        if self.dry_run:
            parts = [f"{wording.plural(len(self.actions), 'repair')} to be made, nothing changed"]
        else:
            parts = [f"{wording.plural(done, 'repair')} made"]
            if done < len(self.actions):
                parts.append(f"{len(self.actions) - done:,} not made")
        if self.left:
            parts.append(f"{wording.plural(len(self.left), 'finding')} left")
        return ", ".join(parts)

    def __str__(self) -> str:
        verb = "would" if self.dry_run else "did"
        lines = [f"{verb if action.done or self.dry_run else 'did not'}: /{action.path}: {action.text} [{action.code}]"
                 for action in self.actions]  # fmt: skip
        lines += [f"left: /{one.path}: {one.text} [{one.code}]; {one.remedy}" for one in self.left]
        if self.backup is not None:
            lines.append(f"old values are in {self.backup}")
        return "\n".join([*lines, self.summary()])

    def __repr__(self) -> str:
        return f"<Account {'ok' if self.ok else 'not ok'}: {self.summary()}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{'done' if action.done else ''}</td><td>/{escape(action.path)}</td>"
            f"<td>{escape(action.text)}</td><td><code>{action.code}</code></td></tr>"
            for action in self.actions
        )
        left = "".join(
            f"<tr><td>left</td><td>/{escape(one.path)}</td><td>{escape(one.text)}</td><td><code>{one.code}</code></td></tr>"
            for one in self.left
        )
        return f"<p>{escape(self.summary())}</p><table>{rows}{left}</table>"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "store": self.store,
            "path": f"/{self.path}",
            "dry_run": self.dry_run,
            "ok": self.ok,
            "backup": self.backup,
            "actions": [asdict(action) for action in self.actions],
            "left": [finding.to_dict() for finding in self.left],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return the report as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)
