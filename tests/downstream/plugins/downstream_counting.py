"""A plugin of pytest: leaves out the tests that do not apply, and writes down how the others ended."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

_RANKS = ("passed", "skipped", "xfailed", "failed")
_OUTCOMES: dict[str, dict[str, str]] = {}


def matching(identifier: str, patterns: Iterable[str]) -> str | None:
    """Return the first pattern that ends a test's identifier."""
    literal = identifier.replace("[", "<").replace("]", ">")  # brackets are not classes of characters here
    return next((each for each in patterns if fnmatch(literal, f"*{each}".replace("[", "<").replace("]", ">"))), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    apart = json.loads(os.environ["DOWNSTREAM_APART"])
    left_out = [item for item in items if matching(item.nodeid, apart)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _OUTCOMES[report.nodeid] = {"outcome": "failed", "message": _message(report)}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    outcome = report.outcome
    if hasattr(report, "wasxfail"):
        outcome = "xfailed" if report.skipped else "passed"  # type: ignore[assignment]
    before = _OUTCOMES.get(report.nodeid, {"outcome": "passed"})["outcome"]
    if _RANKS.index(outcome) >= _RANKS.index(before):
        _OUTCOMES[report.nodeid] = {"outcome": outcome, "message": _message(report) if report.failed else ""}


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["DOWNSTREAM_OUTCOMES"]).write_text(json.dumps(_OUTCOMES), encoding="utf-8")


def _message(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr)[:500]
