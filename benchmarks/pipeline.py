"""The codec pipelines of zarr-python beside each other: its own, its fused one, that of zarrs, and that of omnizarr.

They are peers of every run of ``python -m benchmarks``: here is the table of those workloads that move chunks.
"""

from __future__ import annotations

import itertools
import statistics

from benchmarks import reports
from benchmarks.peers import PEERS
from benchmarks.running import Report, Result

OURS = "zarr-python-omnizarr"
OTHERS = ("zarr-python", "zarr-python-fused", "zarrs-python")


def rows(report: Report) -> list[Result]:
    """Return what moves chunks, without caches of decoded ones, which zarr-python does not have."""
    return [one for one in report.results if one.workload.verb in PEERS[OURS].verbs and not one.workload.cache]


def ratio(result: Result) -> float | None:
    """Return how long this pipeline takes, divided by the fastest of the others; None if one of both is missing.

    Each time is the median of the rounds.
    """
    ours = result.values.get(OURS)
    others = [statistics.median(result.values[key]) for key in OTHERS if result.values.get(key)]
    return statistics.median(ours) / min(others) if ours and others else None


def markdown(report: Report) -> str:
    """Return in how many rows this pipeline is ahead and where it is furthest behind, and a table: a row per workload.

    It has medians, and the ratio to the fastest other pipeline.
    """
    found = [(result, times) for result in rows(report) if (times := ratio(result)) is not None]
    if not found:
        return "Not measured in this run.\n"
    ahead, (last, most) = sum(times < 1 for _, times in found), max(found, key=lambda one: one[1])
    furthest = f"; furthest behind, {most:.2f} ×: {last.title}" if most > 1 else ""
    keys = [key for key in (*OTHERS, OURS) if key in report.versions]
    lines = [f"omnizarr's pipeline is ahead of all others in {ahead} of {len(found)} rows{furthest}.", ""]
    lines += ["| | " + " | ".join(PEERS[key].label for key in keys) + " | to the fastest other |"]
    lines += ["|---|" + "--:|" * (len(keys) + 1)]
    for group, some in itertools.groupby(found, key=lambda one: one[0].group):
        lines.append(f"| *{group}* |" + " |" * (len(keys) + 1))
        lines += [_row(result, keys, times) for result, times in some]
    return "\n".join(lines) + "\n"


def _row(result: Result, keys: list[str], times: float) -> str:
    medians = [result.median(key) for key in keys]
    cells = ["" if median is None else reports.amount(median, result.workload.unit) for median in medians]
    return f"| {result.title} | " + " | ".join([*cells, f"{times:.2f} ×"]) + " |"
