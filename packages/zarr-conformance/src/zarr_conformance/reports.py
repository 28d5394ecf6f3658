"""Results for people and for machines: Markdown, HTML, JUnit, TAP."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from xml.etree import ElementTree as ET

from zarr_conformance.running import OUTCOMES, Run, failures

CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff￾￿]")


def markdown(runs: Sequence[Run]) -> str:
    """Return a table of levels and implementations, and what did not pass.

    A cell has the cases that passed, of those that the implementation claims to know.
    """
    lines = ["# Conformance", "", "| level | " + " | ".join(titled(each) for each in runs) + " |"]
    lines += ["|---|" + "---:|" * len(runs)]
    for level in dict.fromkeys(level for each in runs for level in each.levels()):
        lines.append(f"| `{level}` | " + " | ".join(cell(each, level) for each in runs) + " |")
    lines.append("| all | " + " | ".join(cell(each) for each in runs) + " |")
    for each in runs:
        lines += ["", f"## {titled(each)}", "", summary(each), ""]
        if failed := failures(each.results):
            lines += ["| case | outcome | what was found | what the specification says |", "|---|---|---|---|"]
            lines += [f"| `{r.id}` | {r.outcome} | {escaped(r.detail)} | {escaped(r.sentence)} |" for r in failed]
    return "\n".join(lines) + "\n"


def titled(run: Run) -> str:
    return f"{run.implementation} {run.version}".strip()


def cell(run: Run, level: str | None = None) -> str:
    """Return `passed / tried`, and by letters what else happened: wrong, refused, crashed, timeout, memory."""
    total = sum(level in {None, each.level} for each in run.results)
    if not total:
        return ""
    unsupported = run.count("unsupported", level)
    if total == unsupported:
        return "-"
    words = {"wrong": "W", "refused": "R", "crashed": "C", "timeout": "T", "memory": "M"}
    extra = [f"{count}{letter}" for word, letter in words.items() if (count := run.count(word, level))]
    return " ".join([f"{run.count('pass', level)}/{total - unsupported}", *extra])


def summary(run: Run) -> str:
    counts = ", ".join(f"{run.count(outcome)} {outcome}" for outcome in OUTCOMES if run.count(outcome))
    return f"{len(run.results)} cases on {run.date}, {run.platform}: {counts}."


def escaped(text: str) -> str:
    return CONTROL.sub("?", text).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")[:300]


def page(runs: Sequence[Run]) -> str:
    """Return the same as one HTML page."""
    levels = dict.fromkeys(level for each in runs for level in each.levels())
    head = "".join(f"<th>{html.escape(titled(each))}</th>" for each in runs)
    rows = "".join(
        f"<tr><th><code>{level}</code></th>" + "".join(colour(each, level) for each in runs) + "</tr>"
        for level in levels
    )
    details = "".join(
        f"<h2>{html.escape(titled(each))}</h2><p>{html.escape(summary(each))}</p><table>"
        + "".join(
            f"<tr><td><code>{html.escape(r.id)}</code></td><td>{r.outcome}</td><td>{html.escape(r.detail[:300])}</td>"
            f"<td>{html.escape(r.sentence)}</td></tr>"
            for r in failures(each.results)
        )
        + "</table>"
        for each in runs
    )
    style = (
        "body{font:15px sans-serif;margin:2em}table{border-collapse:collapse}"
        "td,th{border:1px solid #bbb;padding:.3em .6em;text-align:left;vertical-align:top}"
        ".good{background:#d7f0d7}.some{background:#fbeec2}.bad{background:#f6cfcf}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Conformance of Zarr</title><style>{style}</style>'
        f"<h1>Conformance of Zarr</h1><table><tr><th>level</th>{head}</tr>{rows}</table>{details}</html>\n"
    )


def colour(run: Run, level: str) -> str:
    text = cell(run, level)
    share = run.count("pass", level) / max(
        sum(each.level == level for each in run.results) - run.count("unsupported", level), 1
    )
    name = "" if text in {"", "-"} else "good" if share == 1 else "some" if share >= 0.5 else "bad"
    return f'<td class="{name}">{text}</td>'


def junit(runs: Sequence[Run]) -> str:
    """Return results as JUnit XML: one suite for each level."""
    root = ET.Element("testsuites", name="zarr-conformance")
    for each in runs:
        for level in each.levels():
            mine = [r for r in each.results if r.level == level]
            suite = ET.SubElement(root, "testsuite", name=f"{each.implementation}.{level}", tests=str(len(mine)))
            suite.set("failures", str(sum(r.outcome in {"wrong", "refused"} for r in mine)))
            suite.set("errors", str(sum(r.outcome in {"crashed", "timeout", "memory"} for r in mine)))
            suite.set("skipped", str(sum(r.outcome == "unsupported" for r in mine)))
            for r in mine:
                test = ET.SubElement(
                    suite, "testcase", classname=level, name=r.id.partition("/")[2], time=str(r.seconds)
                )
                kind = {"pass": None, "unsupported": "skipped", "wrong": "failure", "refused": "failure"}.get(
                    r.outcome, "error"
                )
                if kind:
                    node = ET.SubElement(test, kind, message=f"{r.outcome}: {CONTROL.sub('?', r.detail)}"[:500])
                    node.text = r.sentence
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def tap(runs: Sequence[Run]) -> str:
    """Return results in the Test Anything Protocol."""
    results = [r for each in runs for r in each.results]
    lines = ["TAP version 13", f"1..{len(results)}"]
    for number, r in enumerate(results, 1):
        word = "ok" if r.outcome in {"pass", "unsupported"} else "not ok"
        note = " # SKIP unsupported" if r.outcome == "unsupported" else ""
        lines.append(f"{word} {number} - {r.id}{note}")
        if word == "not ok":
            lines += [
                "  ---",
                f"  outcome: {r.outcome}",
                f"  detail: {quoted(r.detail)}",
                f"  sentence: {quoted(r.sentence)}",
                "  ...",
            ]
    return "\n".join(lines) + "\n"


def quoted(text: str) -> str:
    return "'" + CONTROL.sub("?", text).replace("'", "''").replace("\n", " ") + "'"


FORMATS: dict[str, Callable[[Sequence[Run]], str]] = {"markdown": markdown, "html": page, "junit": junit, "tap": tap}
