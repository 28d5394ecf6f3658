"""What was measured, as tables: for the terminal while it runs, and in Markdown for the manual."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path
from typing import Any

from benchmarks.peers import PEERS
from benchmarks.running import ROOT, Report, Result
from benchmarks.targets import fastest_peer, verdict

PAGE = ROOT / "docs" / "benchmarks-data.md"
"""Where tables of all benchmarks are."""
MARKS = {True: "reached", False: "missed", None: "unknown"}


def amount(value: float, unit: str) -> str:
    """Return a time or a number of bytes to three figures: "58.1 ms"."""
    if unit == "B":
        return f"{value / 2**20:,.0f} MiB" if value >= 100 * 2**20 else f"{value / 2**20:.1f} MiB"
    size, name = next((one for one in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")) if value >= one[0]), (1e-9, "ns"))
    number = value / size
    return f"{number:.0f} {name}" if number >= 100 else f"{number:.3g} {name}"


def ratio(value: float | None, base: float | None) -> str:
    """Return "1.23 ×", or nothing."""
    return "" if value is None or base is None else f"{value / base:.2f} ×"


def terminal(report: Report, result: Result) -> None:
    """Print one workload as a table, fastest first: with rich where it is installed."""
    workload = result.workload
    best, floor = fastest_peer(result), result.median("floor")
    rows = []
    for key in sorted(result.values, key=lambda key: statistics.median(result.values[key])):
        median, least = statistics.median(result.values[key]), min(result.values[key])
        rows.append([
            PEERS[key].label, amount(median, workload.unit), amount(least, workload.unit),
            ratio(median, best[1] if best else None), ratio(median, floor),
        ])  # fmt: skip
    words, reached = verdict(report, result)
    title = f"{result.group}: {result.title}"
    caption = f"{MARKS[reached]}: {words}"
    reasons = "; ".join(f"{PEERS[key].label}: {reason}" for key, reason in result.reasons.items())
    heads = ["", "median", "least", "fastest peer", "floor"]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(f"\n{title}")
        for row in [heads, *rows]:
            print(f"  {row[0]:<22}" + "".join(f"{cell:>14}" for cell in row[1:]))
        print(f"  {caption}\n  not here: {reasons}" if reasons else f"  {caption}", flush=True)
        return
    table = Table(title=title, caption=caption, title_justify="left", caption_justify="left", box=None)
    for head in heads:
        table.add_column(head, justify="right" if head else "left", min_width=24 if not head else 10)
    ours = {PEERS[key].label for key in result.values if PEERS[key].role == "ours"}
    for row in rows:
        table.add_row(*row, style="bold" if row[0] in ours else "dim" if row[0] == "floor" else "")
    console = Console()
    console.print(table)
    if reasons:
        console.print(f"not here: {reasons}", style="dim", markup=False)
    console.print()


def label(key: str) -> str:
    """Return the name of a peer that readers see."""
    return PEERS[key].label


def where(report: Report) -> str:
    """Return when and where a run was measured, in a sentence."""
    about = report.about
    again = len(about.get("again", "").split())
    more = f" {again} rows were measured again by themselves, at load {about['load again']}." if again else ""
    return (
        f"Measured {about['date']} with {about['rounds']} rounds on {about['processor']}, {about['system']}, "
        f"{about['file system']}, CPython {about['python']}, load {about['load']} before it began"
        + ("." if about["scale"] == "1/1" else f", at {about['scale']} of the full size.")
        + more
    )


def markdown(report: Report) -> str:
    """Return all of a run: where it was measured, who took part, and a table per group."""
    lines = [
        f"{where(report)} {summary(report)}",
        "",
        "Took part: "
        + "; ".join(f"{PEERS[key].label} ({version})" for key, version in report.versions.items())
        + ". "
        + (
            "Absent: " + "; ".join(f"{PEERS[key].label} ({reason})" for key, reason in report.absent.items()) + "."
            if report.absent
            else "All libraries took part."
        ),
    ]
    for group, found in itertools.groupby(report.results, key=lambda result: result.group):
        lines += ["", f"### {group}", "", *_table(report, list(found))]
    return "\n".join(lines) + "\n"


def summary(report: Report) -> str:
    """Return how many targets are reached, in a sentence."""
    verdicts = [verdict(report, result)[1] for result in report.results]
    unknown = verdicts.count(None)
    return f"Targets reached by {PEERS[report.ours].label}: {verdicts.count(True)} of {len(verdicts)} rows" + (
        f" ({unknown} cannot be told)." if unknown else "."
    )


def _table(report: Report, results: list[Result]) -> list[str]:
    keys = [key for key in PEERS if any(key in result.values for result in results)]
    keys = [key for key in keys if PEERS[key].role == "ours"] + [key for key in keys if PEERS[key].role != "ours"]
    heads = ["", *(PEERS[key].label for key in keys), "to fastest peer", "to floor", "target", ""]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(keys) + 2) + "---|---|"]
    for result in results:
        best, ours = fastest_peer(result), result.median(report.ours)
        cells = [result.title]
        for key in keys:
            median = result.median(key)
            cell = "" if median is None else amount(median, result.workload.unit).replace(" ", "\N{NO-BREAK SPACE}")
            cells.append(f"**{cell}**" if cell and best and key == best[0] else cell)
        words, reached = verdict(report, result)
        cells += [
            ratio(ours, best[1] if best else None), ratio(ours, result.median("floor")), words,
            MARKS[reached] if reached else f"**{MARKS[reached]}**",
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def into_page(page: Path, text: str, begin: str, end: str) -> None:
    """Put what was measured between the marks of a page of the manual."""
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, mark, after = rest.partition(end)
    assert mark, f"{page} has no marks"
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")


def details(report: Report) -> dict[str, Any]:
    """Return the run as JSON, with medians and verdicts for those who read no Python."""
    document = report.to_json()
    for result in report.results:
        found = document["results"][result.workload.name]
        found["unit"] = result.workload.unit
        found["medians"] = {key: result.median(key) for key in result.values}
        words, reached = verdict(report, result)
        found["target"], found["reached"] = words, reached
    return document
